#version 460
#extension GL_GOOGLE_include_directive : require
// One workgroup, where several ranks take a step together: what this rank's samples came to, where the host
// finds it. push.e: FOUND_*.
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(REDUCE)) buffer ReduceBuffer { float reduce[]; };
layout(std430, BINDING(REDUCE)) buffer ReduceWordBuffer { uint reduce_words[]; };

#include "optim/loss_groups.glsl"

shared vec2 sums[LOCAL_SIZE];

// Those of composite's workgroups, always in the same order: loss, squared error.
vec2 sum_losses()
{
    uint groups = loss_groups();
    vec2 sum = vec2(0.0);
    for (uint i = gl_LocalInvocationID.x; i < groups; i += LOCAL_SIZE)
        sum += vec2(reduce[REDUCE_LOSS + 2u * i], reduce[REDUCE_LOSS + 2u * i + 1u]);
    sums[gl_LocalInvocationID.x] = sum;
    barrier();
    if (gl_LocalInvocationID.x == 0u)
        for (uint i = 1; i < LOCAL_SIZE; i++)
            sum += sums[i];
    return sum;
}

void main()
{
    vec2 sum = sum_losses();
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
}
