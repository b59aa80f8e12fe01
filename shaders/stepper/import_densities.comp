#version 460
#extension GL_GOOGLE_include_directive : require
// Densities that somebody else found, of the samples that list_samples listed, to where passes look for them.
// What is no number would stay in the occupancy grid for ever: it counts as nothing.
#include "shared/common.glsl"

layout(std430, BINDING(FIELD)) writeonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(LIST_SUMMARY)) buffer ListedBuffer { ListSummary listed; };
layout(std430, BINDING(LISTED_DENSITIES)) readonly buffer DensityBuffer { float densities[]; };

void main()
{
    for (uint i = gl_GlobalInvocationID.x; i < listed.samples; i += gl_NumWorkGroups.x * LOCAL_SIZE) {
        float density = densities[i];
        bool usable = !isnan(density) && !isinf(density);
        if (!usable)
            atomicAdd(listed.unusable, 1u);
        field[i] = vec4(0.0, 0.0, 0.0, usable ? max(density, 0.0) : 0.0);
    }
}
