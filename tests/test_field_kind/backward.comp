#version 460
#extension GL_GOOGLE_include_directive : require
// Adds each live sample's gradient to the eight points around it, by compare-and-swap.
#define GRADIENTS_ONLY
#include "shared/common.glsl"
#include "field/sample.glsl"
#include "field/output_activations.glsl"
#include "voxels.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(FIELD_GRADIENTS)) readonly buffer FieldGradientBuffer { vec4 field_gradients[]; };
layout(std430, BINDING(GRADIENTS)) coherent buffer GradientBuffer { uint gradients[]; };

#include "field/live_samples.glsl"

void add_gradient(uint index, float x)
{
    uint before = gradients[index], seen;
    do {
        seen = before;
        before = atomicCompSwap(gradients[index], seen, floatBitsToUint(uintBitsToFloat(seen) + x));
    } while (before != seen);
}

void main()
{
    uint count = gradient_count();
    for (uint n = gl_GlobalInvocationID.x; n < count; n += gl_NumWorkGroups.x * LOCAL_SIZE) {
        uint i = gradient_sample(n);
        vec3 direction, inside;
        uvec3 cell = voxel_cell(sample_position(i, direction), inside);
        vec4 value = field[i], gradient = field_gradients[i];
        gradient = vec4(raw_color_gradient(value.rgb, gradient.rgb), gradient.w * value.w);
        for (uint corner = 0; corner < 8u; corner++)
            for (uint c = 0; c < 4u; c++)
                add_gradient(4u * corner_point(cell, corner) + c,
                             trilinear_weight(inside, corner) * gradient[c]);
    }
}
