#version 460
#extension GL_GOOGLE_include_directive : require
// Pass export_step_stats (synchronous data parallelism, one workgroup): stores this rank's step
// statistics where the host reads them for the all-reduce. push.e: RANK_STATS_*.
//
//   buffer  shape                                                   access
//   STATE   counts of samples, rays and underflowed gradients       read
//   REDUCE  REDUCE_LOSS [workgroup of composite][2] f32             read
//   REDUCE  REDUCE_DISTORTION [workgroup of composite] f32          read
//   REDUCE  REDUCE_RANK_STATS: [push.e] RankStats                   write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(REDUCE)) buffer ReduceBuffer { float reduce[]; };
layout(std430, BINDING(REDUCE)) buffer ReduceWordBuffer { uint reduce_words[]; };

#include "optim/loss_groups.glsl"

shared vec3 sums[LOCAL_SIZE];

// Returns, in invocation 0, the sums over composite's workgroups of loss, squared error and distortion
// loss, in fixed order.
vec3 sum_losses()
{
    uint groups = loss_groups();
    vec3 sum = vec3(0.0);
    for (uint i = gl_LocalInvocationID.x; i < groups; i += LOCAL_SIZE)
        sum += vec3(reduce[REDUCE_LOSS + 2u * i], reduce[REDUCE_LOSS + 2u * i + 1u],
                    DISTORTION != 0u ? reduce[REDUCE_DISTORTION + i] : 0.0);
    sums[gl_LocalInvocationID.x] = sum;
    barrier();
    if (gl_LocalInvocationID.x == 0u)
        for (uint i = 1; i < LOCAL_SIZE; i++)
            sum += sums[i];
    return sum;
}

void main()
{
    vec3 sum = sum_losses();
    if (gl_LocalInvocationID.x != 0u)
        return;
    uint to = REDUCE_RANK_STATS + push.e * RANK_STATS_WORDS;
    reduce_words[to] = state.sample_count;
    reduce_words[to + 1u] = state.live_count;
    reduce_words[to + 2u] = state.live_rays;
    reduce_words[to + 3u] = state.nonfinite;
    reduce_words[to + 4u] = state.underflowed;
    reduce_words[to + 5u] = state.rounded;
    reduce[to + 6u] = sum.x;
    reduce[to + 7u] = sum.y;
    reduce[to + 8u] = sum.z;
    reduce_words[to + 9u] = state.reached_count;
    reduce_words[to + 10u] = state.kept_rays;
}
