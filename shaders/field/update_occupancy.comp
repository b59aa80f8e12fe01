#version 460
#extension GL_GOOGLE_include_directive : require
// Pass update_occupancy (ngp): raises the occupancy grid to the field's density. The pass uses the
// buffers of rays/update_occupancy.glsl and
//
//   buffer                shape                   access
//   PARAMS or F16_PARAMS  [parameter] f32 or f16  read
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "rays/occupancy.glsl"
#include "field/encoding.glsl"
#include "field/mlp.glsl"
#include "field/density.glsl"

#include "rays/update_occupancy.glsl"
