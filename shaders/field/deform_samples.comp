#version 460
#extension GL_GOOGLE_include_directive : require
// Per row of a chunk: where the deformation takes its sample in the canonical scene. See field/canonical.glsl.
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/sample.glsl"
#include "field/layers.glsl"
#include "field/displacement.glsl"

layout(std430, BINDING(FIELD)) writeonly buffer CanonicalBuffer { vec4 canonical[]; };

void main()
{
    uint count = row_count(), stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint row = gl_GlobalInvocationID.x; row < count; row += stride) {
        uint index = row_sample(row);
        vec3 direction, position = sample_position(index, direction);
        canonical[index].xyz = position + displacement(row);
    }
}
