#version 460
#extension GL_GOOGLE_include_directive : require
// One invocation: none of a chunk's cells is to be looked at yet.
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };

void main()
{
    if (gl_LocalInvocationID.x == 0u)
        state.dispatches[DISPATCH_ONE].finished = 0u;
}
