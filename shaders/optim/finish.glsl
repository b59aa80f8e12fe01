// Finishes a step: sums the losses of composite's workgroups and updates the loss scale. The last
// workgroup of a pass does so: a separate dispatch would have to wait for this one. The including file
// declares STATE as `state` and, coherently, REDUCE as `reduce`.
// Passes: check_gradients, finish_step. Reads REDUCE; writes STATE and STATS.
#include "optim/loss_groups.glsl"
#include "optim/keep_gain.glsl"
#include "optim/loss_scale.glsl"

shared bool is_last;

// Returns true in all invocations of the workgroup that calls this function last, to which the other
// workgroups' atomic operations and writes to coherent buffers are visible.
bool is_last_workgroup()
{
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        uint finished_before = atomicAdd(state.dispatches[DISPATCH_PARAMS].finished, 1u);
        is_last = finished_before == gl_NumWorkGroups.x - 1u;
        if (is_last)
            state.dispatches[DISPATCH_PARAMS].finished = 0u;
        memoryBarrierBuffer();
    }
    barrier();
    return is_last;
}

shared vec4 sums[LOCAL_SIZE];

// Returns the totals of loss, squared error, squared gradient and distortion loss, summed in a fixed
// order, in invocation 0.
vec4 sum_groups(uint losses, uint groups)
{
    const uint AT_ONCE = 8u;
    vec4 sum = vec4(0.0);
    for (uint first = gl_LocalInvocationID.x; first < max(losses, groups); first += AT_ONCE * LOCAL_SIZE) {
        vec4 values[AT_ONCE];
        [[unroll]] for (uint k = 0; k < AT_ONCE; k++) {
            uint i = min(first + k * LOCAL_SIZE, REDUCE_GROUPS - 1u);
            values[k] = vec4(reduce[REDUCE_LOSS + 2u * i], reduce[REDUCE_LOSS + 2u * i + 1u],
                             reduce[REDUCE_GRADIENT + i],
                             DISTORTION != 0u ? reduce[REDUCE_DISTORTION + i] : 0.0);
        }
        [[unroll]] for (uint k = 0; k < AT_ONCE; k++) {
            uint i = first + k * LOCAL_SIZE;
            sum += vec4(i < losses ? values[k].xy : vec2(0.0), i < groups ? values[k].z : 0.0,
                        i < losses ? values[k].w : 0.0);
        }
    }
    sums[gl_LocalInvocationID.x] = sum;
    barrier();
    if (gl_LocalInvocationID.x == 0u)
        for (uint i = 1; i < LOCAL_SIZE; i++)
            sum += sums[i];
    return sum;
}

// Updates the loss scale and what else depends on the step's losses, see update_loss_scale.
void finish(vec4 total, float coarse_loss, bool has_norm)
{
    float mean_loss = (total.x + total.w) / max(float(state.live_rays), 1.0);
    update_loss_scale(total, coarse_loss, has_norm);
    if (KEEP != 0u && state.nonfinite == 0u)
        update_keep(mean_loss);
}
