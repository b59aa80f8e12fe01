// The snippet of a field in GLSL (docs/fields.md), before everything else, so that it can name nothing of the
// library but the functions below, whose bodies follow in the program that includes this. It defines
//   void encode(vec3 position, uint first_parameter)            puts all features of a place
//   void encode_backward(vec3 position, uint first_parameter)   adds to the parameters' gradients
// FIELD_PARAMETERS and FIELD_FEATURES are how many there are. src/gpu/snippet_check.c refuses a program whose code
// of the library is not what it is with field/snippet_plain.glsl, or whose snippet does more than compute.
#extension GL_EXT_control_flow_attributes : require

float parameter(uint i);
vec2 parameter_pair(uint i); // i is even: that and the next
void put_feature(uint i, float x);
float feature_gradient(uint i);
void add_gradient(uint i, float x);

#include "snippet"
