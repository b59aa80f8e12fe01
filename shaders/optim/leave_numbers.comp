#version 460
#extension GL_GOOGLE_include_directive : require
// Per entry: its numbers times this rank's share, in the place of gradients, of which there are none between two
// steps. Their mean over all ranks is the weighted one: nothing that devices may round differently comes behind it.
#include "shared/common.glsl"
#include "optim/blend.glsl"
#include "optim/entries.glsl"

layout(std430, BINDING(PARAMS)) readonly buffer ParamBuffer { float params[]; };
layout(std430, BINDING(GRADIENTS)) writeonly buffer GradientBuffer { float gradients[]; };

void main()
{
    uint rows = entry_rows();
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
        Group group = group_of_row(row);
        uint entry = row * LOCAL_SIZE + gl_LocalInvocationID.x, first = first_parameter(entry, group);
        if (first >= group.first + group.count)
            continue;
        float share = steps[entry];
        for (uint i = first; i < first + group.entry; i++)
            gradients[i] = share * params[i];
    }
}
