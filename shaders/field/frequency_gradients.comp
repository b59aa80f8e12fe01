#version 460
#extension GL_GOOGLE_include_directive : require
// Pass frequency_gradients (deformation without a grid): computes the gradient with respect to the
// displaced position from the gradients of its frequency encoding, for a chunk of live rows. Sine and
// cosine are each other's derivatives, up to sign and factor; the activations contain their values.
//
//   buffer           shape                                        access
//   LIVE             [live sample] u32                            read
//   RAYS, SAMPLES    [ray], [sample]                              read
//   FEATURES         [row] columns: frequencies, displacement     read
//   SCRATCH          [row] columns: gradients of the frequencies  read
//   INPUT_GRADIENTS  [sample] vec4: by position                   write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/unit_cube.glsl"
#include "field/unit_cube_gradient.glsl"
#include "field/sample.glsl"
#include "field/layers.glsl"
#include "field/displacement.glsl"

layout(constant_id = SPEC_LEVELS) const uint POSITION_OCTAVES = 10;

layout(std430, BINDING(INPUT_GRADIENTS)) writeonly buffer InputGradientBuffer {
    vec4 input_gradients[]; // [sample][position, direction]
};

// Returns the gradient with respect to one axis of the encoded position, -1 .. 1.
float axis_slope(uint row, uint axis)
{
    float slope = get_gradient(row, axis), frequency = 3.141592653589793;
    [[dont_unroll]] for (uint octave = 0; octave < POSITION_OCTAVES; octave++, frequency *= 2.0) {
        uint sine = 3u + 6u * octave + axis, cosine = sine + 3u; // columns of sine and cosine
        slope += frequency * (get_gradient(row, sine) * get_activation(row, cosine) -
                          get_gradient(row, cosine) * get_activation(row, sine));
    }
    return slope;
}

void main()
{
    uint count = row_count(), stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint row = gl_GlobalInvocationID.x; row < count; row += stride) {
        uint index = row_sample(row);
        vec3 direction, position = sample_position(index, direction) + displacement(row);
        vec3 slope = vec3(axis_slope(row, 0u), axis_slope(row, 1u), axis_slope(row, 2u));
        input_gradients[2u * index] =
            vec4(to_training_gradient(position, to_unit_cube(position), 2.0 * slope), 0.0);
    }
}
