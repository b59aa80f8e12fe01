#version 460
#extension GL_GOOGLE_include_directive : require
// Pass import_step_stats (synchronous data parallelism, one workgroup): replaces this rank's step
// statistics by the totals over all ranks. The total losses become the losses of workgroup 0; the
// losses of all other workgroups become 0. push.e: RANK_STATS_*.
//
//   buffer  shape                                                   access
//   REDUCE  REDUCE_RANK_STATS: [push.e] RankStats                   read
//   REDUCE  REDUCE_LOSS [workgroup of composite][2] f32             write
//   REDUCE  REDUCE_DISTORTION [workgroup of composite] f32          write
//   STATE   counts of samples, rays and underflowed gradients       write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(REDUCE)) buffer ReduceBuffer { float reduce[]; };
layout(std430, BINDING(REDUCE)) buffer ReduceWordBuffer { uint reduce_words[]; };

#include "optim/loss_groups.glsl"

void main()
{
    uint from = REDUCE_RANK_STATS + push.e * RANK_STATS_WORDS;
    uint groups = loss_groups();
    for (uint i = gl_LocalInvocationID.x; i < groups; i += LOCAL_SIZE) {
        reduce[REDUCE_LOSS + 2u * i] = i == 0u ? reduce[from + 6u] : 0.0;
        reduce[REDUCE_LOSS + 2u * i + 1u] = i == 0u ? reduce[from + 7u] : 0.0;
        if (DISTORTION != 0u)
            reduce[REDUCE_DISTORTION + i] = i == 0u ? reduce[from + 8u] : 0.0;
    }
    if (gl_LocalInvocationID.x != 0u)
        return;
    state.sample_count = reduce_words[from];
    state.live_count = reduce_words[from + 1u];
    state.live_rays = reduce_words[from + 2u];
    state.nonfinite = reduce_words[from + 3u];
    state.underflowed = reduce_words[from + 4u];
    state.rounded = reduce_words[from + 5u];
    state.reached_count = reduce_words[from + 9u];
    state.kept_rays = reduce_words[from + 10u];
}
