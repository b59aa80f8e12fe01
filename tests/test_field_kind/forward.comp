#version 460
#extension GL_GOOGLE_include_directive : require
// Evaluates rgb and density of each sample.
#include "shared/common.glsl"
#include "field/sample.glsl"
#include "field/output_activations.glsl"
#include "voxels.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(FIELD)) writeonly buffer FieldBuffer { vec4 field[]; };

void main()
{
    uint count = min(state.sample_count, config.sample_capacity);
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * LOCAL_SIZE) {
        vec3 direction;
        vec4 raw = interpolate_voxels(sample_position(i, direction));
        field[i] = vec4(color_of(raw.rgb), density_of(raw.w));
    }
}
