#version 460
#extension GL_GOOGLE_include_directive : require
// One workgroup, the counterpart of export_step_stats: what all ranks' samples came to takes the place of this rank's
// own, the losses that of the first workgroup's. push.e: FOUND_*.
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
    }
    if (gl_LocalInvocationID.x != 0u)
        return;
    state.sample_count = reduce_words[from];
    state.live_count = reduce_words[from + 1u];
    state.live_rays = reduce_words[from + 2u];
    state.nonfinite = reduce_words[from + 3u];
    state.underflowed = reduce_words[from + 4u];
    state.rounded = reduce_words[from + 5u];
}
