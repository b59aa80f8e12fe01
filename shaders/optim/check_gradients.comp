#version 460
#extension GL_GOOGLE_include_directive : require
// Per gradient: sum of squares by workgroup. An infinity or NaN anywhere makes the sum not finite. The
// workgroup that ends last adds up the sums, and the losses that composite left, and updates the loss
// scale: a dispatch of its own would wait for all of this one first. With COARSE the field is that of the
// coarse samples: its sums are left for those of the fine one, which has the same loss scale.
#include "shared/common.glsl"
#include "optim/gradients.glsl"

layout(constant_id = SPEC_SAMPLING) const uint SAMPLING = SAMPLING_OCCUPANCY;

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(REDUCE)) coherent buffer ReduceBuffer { float reduce[]; };

#include "optim/loss_groups.glsl"
#include "optim/loss_scale.glsl"
#include "shared/proposal.glsl"

// A stretch in a row for each workgroup: a CPU's prefetching follows it.
float sum_squares_cpu(float unscale)
{
    uint rows = (config.param_count - 1u) / (gl_NumWorkGroups.x * LOCAL_SIZE) + 1u;
    uint first = gl_WorkGroupID.x * rows * LOCAL_SIZE;
    uint end = min(config.param_count, first + rows * LOCAL_SIZE);
    float sum = 0.0;
    for (uint i = first + gl_LocalInvocationID.x; i < end; i += LOCAL_SIZE) {
        float value = get_gradient(i) * unscale;
        sum += value * value;
    }
    return sum;
}

// Several wide loads at once. (Models have multiples of 16 parameters.)
float sum_squares_gpu(float unscale)
{
    const uint AT_ONCE = 4u;
    uint fours = config.param_count / 4u, stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    float sum = 0.0;
    for (uint first = gl_GlobalInvocationID.x; first < fours; first += AT_ONCE * stride) {
        vec4 values[AT_ONCE];
        [[unroll]] for (uint k = 0; k < AT_ONCE; k++)
            values[k] = get_gradient_four(min(first + k * stride, fours - 1u)) * unscale;
        [[unroll]] for (uint k = 0; k < AT_ONCE; k++)
            sum += first + k * stride < fours ? dot(values[k], values[k]) : 0.0;
    }
    return sum;
}

shared float squares[LOCAL_SIZE];
shared bool is_last;

// The workgroup's sum to the others'. True in all of its invocations when theirs are there as well.
bool store_squares(float sum)
{
    squares[gl_LocalInvocationID.x] = sum;
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        for (uint i = 1; i < LOCAL_SIZE; i++)
            sum += squares[i];
        reduce[REDUCE_GRADIENT + gl_WorkGroupID.x] = sum;
        memoryBarrierBuffer();
        uint others = atomicAdd(state.dispatches[DISPATCH_PARAMS].finished, 1u);
        is_last = others == gl_NumWorkGroups.x - 1u;
        memoryBarrierBuffer();
    }
    barrier();
    return is_last;
}

shared vec3 sums[LOCAL_SIZE];

// In order for each invocation, with several loads at once: loss, squared error, squared gradient.
vec3 sum_groups(uint losses, uint groups)
{
    const uint AT_ONCE = 8u;
    vec3 sum = vec3(0.0);
    for (uint first = gl_LocalInvocationID.x; first < max(losses, groups); first += AT_ONCE * LOCAL_SIZE) {
        vec3 values[AT_ONCE];
        [[unroll]] for (uint k = 0; k < AT_ONCE; k++) {
            uint i = min(first + k * LOCAL_SIZE, REDUCE_GROUPS - 1u);
            values[k] = vec3(reduce[REDUCE_LOSS + 2u * i], reduce[REDUCE_LOSS + 2u * i + 1u],
                             reduce[REDUCE_GRADIENT + i]);
        }
        [[unroll]] for (uint k = 0; k < AT_ONCE; k++) {
            uint i = first + k * LOCAL_SIZE;
            sum += vec3(i < losses ? values[k].xy : vec2(0.0), i < groups ? values[k].z : 0.0);
        }
    }
    sums[gl_LocalInvocationID.x] = sum;
    barrier();
    if (gl_LocalInvocationID.x == 0u)
        for (uint i = 1; i < LOCAL_SIZE; i++)
            sum += sums[i];
    return sum;
}

void main()
{
    // Unscaled before it is squared: a finite gradient must not overflow here.
    float unscale = 1.0 / state.loss_scale;
    float sum = CPU_SHAPED != 0u ? sum_squares_cpu(unscale) : sum_squares_gpu(unscale);
    if (!store_squares(sum))
        return;
    vec3 total = sum_groups(loss_groups(), gl_NumWorkGroups.x);
    if (gl_LocalInvocationID.x == 0u) {
        state.dispatches[DISPATCH_PARAMS].finished = 0u;
#ifdef COARSE
        // What did not fit fixed point is missing from the gradient: it is not finite.
        reduce[REDUCE_COARSE] = total.x;
        reduce[REDUCE_COARSE + 1u] = state.nonfinite == 0u ? total.z : uintBitsToFloat(0x7f800000u);
#else
        if (SAMPLING == SAMPLING_HIERARCHICAL || SAMPLING == SAMPLING_PROPOSAL && proposal_learns())
            total += vec3(reduce[REDUCE_COARSE], 0.0, reduce[REDUCE_COARSE + 1u]);
        update_loss_scale(total);
#endif
    }
}
