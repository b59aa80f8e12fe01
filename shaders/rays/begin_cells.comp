#version 460
#extension GL_GOOGLE_include_directive : require
// Pass begin_cells (one invocation): sets the number of cells that pick_cells has chosen to 0.
//
//   buffer  shape                              access
//   STATE   dispatches[DISPATCH_ONE].finished  write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };

void main()
{
    if (gl_LocalInvocationID.x == 0u)
        state.dispatches[DISPATCH_ONE].finished = 0u;
}
