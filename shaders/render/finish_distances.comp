#version 460
#extension GL_GOOGLE_include_directive : require
// Pass finish_distances: writes for each ray 1 / distance of the visible surface, where the
// transmittance falls to 0.5, or 0 for a ray without a surface. The inverse distance is linear across
// the image of a plane, and is defined at infinity.
//
//   buffer   shape                             access
//   RESULTS  [ray]: depth is the median depth  read
//   OUTPUT   [ray] f32                         write
#include "shared/common.glsl"

layout(std430, BINDING(RESULTS)) readonly buffer ResultBuffer { RayResult results[]; };
layout(std430, BINDING(OUTPUT)) writeonly buffer OutputBuffer { float inverse_distance[]; };

void main()
{
    // push.a: number of rays.
    uint ray = gl_GlobalInvocationID.x;
    if (ray >= push.a)
        return;
    RayResult result = results[ray];
    inverse_distance[ray] = result.transmittance <= 0.5 ? 1.0 / max(result.depth, 1e-6) : 0.0;
}
