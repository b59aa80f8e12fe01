#version 460
#extension GL_GOOGLE_include_directive : require
// Pass finish_step: reduce_gradients, then in the last workgroup to finish check_gradients without the
// norm and begin_step of the next step, in one dispatch. push.a: the step's index in the update interval;
// push.b: workgroup size of the passes. The next step runs: the host records this pass only where it does.
//
//   buffer        shape                                            access
//   PARTIALS      [workgroup or split][summed parameter] f32       read
//   ACCUMULATORS  [parameter][low, high word] i32, with SUM_FIXED  read, write
//   GRADIENTS     [parameter] f32                                  write
//   REDUCE        REDUCE_LOSS, REDUCE_DISTORTION [workgroup] f32   read
//   CONTROL       step_limit, time_progress                        read
//   STATE         all                                              read, write
//   STATS         [STATS_RING]                                     write
//   DISPATCHES    [DISPATCH_COUNT]: State.dispatches               write
#include "shared/common.glsl"

layout(constant_id = SPEC_SAMPLING) const uint SAMPLING = SAMPLING_OCCUPANCY; // not of a second field

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(CONTROL)) readonly buffer ControlBuffer { Control control; };
layout(std430, BINDING(REDUCE)) coherent readonly buffer ReduceBuffer { float reduce[]; };

#include "optim/reduce.glsl"
#include "optim/finish.glsl"
#include "step/begin.glsl"

void main()
{
    reduce_gradients();
    if (any_overflows)
        atomicOr(state.nonfinite, 1u);
    if (!is_last_workgroup())
        return;
    vec4 total = sum_groups(loss_groups(), 0u);
    if (gl_LocalInvocationID.x == 0u) {
        state.nonfinite = atomicOr(state.nonfinite, 0u); // of all workgroups
        finish(total, -1.0, false);
        begin(push.a + 1u);
    }
}
