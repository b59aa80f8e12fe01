#version 460
#extension GL_GOOGLE_include_directive : require
// The occupancy grid raised to the ngp field's density.
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "rays/occupancy.glsl"
#include "field/encoding.glsl"
#include "field/mlp.glsl"
#include "field/density.glsl"

#include "rays/update_occupancy.glsl"
