#version 460
#extension GL_GOOGLE_include_directive : require
// Per ray: 1 / distance of the place where half of its light is gone, 0 where it never is. Nearness and
// not distance, because across a plane's picture it is linear, and what is infinitely far has one.
#include "shared/common.glsl"

layout(std430, BINDING(RESULTS)) readonly buffer ResultBuffer { RayResult results[]; };
layout(std430, BINDING(OUTPUT)) writeonly buffer OutputBuffer { float inverse_distance[]; };

void main()
{
    // push: rays.
    uint ray = gl_GlobalInvocationID.x;
    if (ray >= push.a)
        return;
    RayResult result = results[ray];
    inverse_distance[ray] = result.transmittance <= 0.5 ? 1.0 / max(result.depth, 1e-6) : 0.0;
}
