#version 460
#extension GL_GOOGLE_include_directive : require
// Pass check_gradients (variant check_coarse_gradients with COARSE): in steps that need the norm, sums
// the squares of all unscaled gradients; the last workgroup to finish then updates the loss scale. The
// passes that compute gradients have set nonfinite if a gradient overflows. The last workgroup also
// sums the losses of composite's workgroups: a separate dispatch would have to wait for this one. With
// COARSE the pass runs on the coarse field or the proposal and stores its sums in REDUCE_COARSE, and
// check_gradients adds them to its own sums, because both fields share one loss scale.
//
//   buffer        shape                                                        access
//   CONTROL       step_limit                                                   read
//   GRADIENTS     [parameter] f32                                              read
//   ACCUMULATORS  [4 parameters] f16, with F16_SUMS                            read
//   REDUCE        REDUCE_LOSS, REDUCE_GRADIENT [workgroup] f32; REDUCE_COARSE  read, write
//   REDUCE        REDUCE_DISTORTION [workgroup] f32, with distortion           read
//   STATE         loss scale and its counters; keep_gain, mean_loss            read, write
//   STATS         [STATS_RING], without COARSE                                 write
#include "shared/common.glsl"
#include "optim/gradients.glsl"

layout(constant_id = SPEC_SAMPLING) const uint SAMPLING = SAMPLING_OCCUPANCY;

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(CONTROL)) readonly buffer ControlBuffer { Control control; };
layout(std430, BINDING(REDUCE)) coherent buffer ReduceBuffer { float reduce[]; };

#include "optim/finish.glsl"
#include "shared/proposal.glsl"

// Returns whether this step needs the norm of the gradient.
bool needs_norm()
{
    return state.step % config.norm_interval == 0u || state.step == min(config.total_steps, control.step_limit);
}

// Sums on CPU devices: each workgroup reads one contiguous range, which the prefetcher follows.
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

// Sums on GPUs, with several wide loads in flight. A model's number of parameters is a multiple of 16.
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

// Stores the workgroup's sum.
void store_squares(float sum)
{
    squares[gl_LocalInvocationID.x] = sum;
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        for (uint i = 1; i < LOCAL_SIZE; i++)
            sum += squares[i];
        reduce[REDUCE_GRADIENT + gl_WorkGroupID.x] = sum;
    }
}

void main()
{
    // Unscaled before it is squared: a finite gradient must not overflow here.
    float unscale = 1.0 / state.loss_scale;
    float sum = 0.0;
    if (needs_norm())
        sum = CPU_KERNELS != 0u ? sum_squares_cpu(unscale) : sum_squares_gpu(unscale);
    store_squares(sum);
    if (!is_last_workgroup())
        return;
    vec4 total = sum_groups(loss_groups(), gl_NumWorkGroups.x);
    if (gl_LocalInvocationID.x == 0u) {
#ifdef COARSE
        // The sum lacks gradients that overflowed fixed point, so it counts as not finite.
        reduce[REDUCE_COARSE] = total.x;
        reduce[REDUCE_COARSE + 1u] = state.nonfinite == 0u ? total.z : uintBitsToFloat(0x7f800000u);
#else
        float coarse_loss = -1.0;
        if (SAMPLING == SAMPLING_HIERARCHICAL || SAMPLING == SAMPLING_PROPOSAL && proposal_learns()) {
            coarse_loss = reduce[REDUCE_COARSE];
            total.z += reduce[REDUCE_COARSE + 1u];
        }
        finish(total, coarse_loss, needs_norm());
#endif
    }
}
