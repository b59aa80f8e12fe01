#version 460
#extension GL_GOOGLE_include_directive : require
// Pass scan_rays (deterministic mode, one workgroup): computes the exclusive prefix sum of the rays'
// sample counts.
//
//   buffer   shape                                   access
//   RESULTS  [ray] count                             read
//   RESULTS  [ray] first                             write
//   STATE    ray count (read), sample_count (write)  read, write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(RESULTS)) buffer ResultBuffer { RayResult results[]; };

shared uint totals[LOCAL_SIZE];

void main()
{
    // Each invocation owns a consecutive share of the rays.
    uint share = (state.ray_count + LOCAL_SIZE - 1u) / LOCAL_SIZE;
    uint begin = gl_LocalInvocationID.x * share;
    uint end = min(begin + share, state.ray_count);
    uint sum = 0;
    for (uint i = begin; i < end; i++)
        sum += results[i].count;
    totals[gl_LocalInvocationID.x] = sum;
    barrier();
    uint first = 0;
    for (uint i = 0; i < gl_LocalInvocationID.x; i++)
        first += totals[i];
    if (gl_LocalInvocationID.x == LOCAL_SIZE - 1u)
        state.sample_count = first + sum;
    for (uint i = begin; i < end; i++) {
        results[i].first = first;
        first += results[i].count;
    }
}
