#version 460
#extension GL_GOOGLE_include_directive : require
// Pass begin_step (one invocation): advances the step and its schedules, chooses the ray count, and
// sets the dispatch sizes of the step's passes.
//
// A command buffer holds UPDATE_INTERVAL steps. begin_step gets the step's index in the update
// interval as push.a. A step whose number modulo UPDATE_INTERVAL is not push.a stays idle (all
// dispatch sizes 0), so that a training that was stopped at any step continues exactly as it would
// have. push.a = UPDATE_INTERVAL begins the interval and decides whether an occupancy update is due.
// In a command buffer of a single step push.a is ANY_STEP. push.b: workgroup size of the passes.
//
//   buffer      shape                                                        access
//   CONTROL     step_limit, time_progress                                    read
//   STATE       all                                                          read, write
//   DISPATCHES  [2 * DISPATCH_COUNT]: State.dispatches, then the proposal's  write
#include "shared/common.glsl"

layout(constant_id = SPEC_SAMPLING) const uint SAMPLING = SAMPLING_OCCUPANCY;

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(CONTROL)) readonly buffer ControlBuffer { Control control; };

#include "step/begin.glsl"

void main()
{
    if (gl_LocalInvocationID.x == 0u)
        begin(push.a);
}
