// Includes the user's snippet of a field in GLSL (docs/fields.md). The snippet comes before all other
// code, so that it can use nothing of the library but the functions below, which the including shader
// defines later. The snippet defines
//   void encode(vec3 position, uint first_parameter)            puts all features of a position
//   void encode_backward(vec3 position, uint first_parameter)   adds to the parameters' gradients
// FIELD_PARAMETERS and FIELD_FEATURES are the numbers of parameters and features.
// src/gpu/snippet_check.c compares the compiled shader with the same shader compiled with
// field/snippet_plain.glsl, and rejects the snippet if the library's code differs or if the snippet
// does more than compute.
// Passes: snippet_encode, snippet_scatter, snippet_check.
#extension GL_EXT_control_flow_attributes : require

float parameter(uint i);
vec2 parameter_pair(uint i); // parameters i and i + 1; i is even
void put_feature(uint i, float x);
float feature_gradient(uint i);
void add_gradient(uint i, float x);

#include "snippet"
