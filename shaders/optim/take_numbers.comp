#version 460
#extension GL_GOOGLE_include_directive : require
// Per entry: the means of all ranks' numbers, bit by bit, in the place of this rank's. There are no gradients again.
#include "shared/common.glsl"
#include "optim/blend.glsl"
#include "optim/entries.glsl"

layout(std430, BINDING(PARAMS)) writeonly buffer ParamBuffer { uint params[]; };
layout(std430, BINDING(GRADIENTS)) buffer GradientBuffer { uint gradients[]; };

void main()
{
    uint rows = entry_rows();
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
        Group group = group_of_row(row);
        uint entry = row * LOCAL_SIZE + gl_LocalInvocationID.x, first = first_parameter(entry, group);
        if (first >= group.first + group.count)
            continue;
        bool taken = steps[entry] != UNTOUCHED;
        for (uint i = first; i < first + group.entry; i++) {
            if (taken)
                params[i] = gradients[i];
            gradients[i] = 0u;
        }
    }
}
