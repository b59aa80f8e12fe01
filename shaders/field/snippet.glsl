// The snippet of a field in GLSL (docs/fields.md). It defines
//   void encode(vec3 position, uint first_parameter)            puts all features of a place
//   void encode_backward(vec3 position, uint first_parameter)   adds to the parameters' gradients
// and calls the functions below, whose bodies are of the program that includes this. FIELD_PARAMETERS and
// FIELD_FEATURES are how many there are.

float parameter(uint i);
vec2 parameter_pair(uint i); // i is even: that and the next
void put_feature(uint i, float x);
float feature_gradient(uint i);
void add_gradient(uint i, float x);

#include "snippet"
