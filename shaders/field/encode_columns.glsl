// Writes frequency encodings to columns of the activations. The including file includes
// field/layers.glsl.
// Passes: encode_inputs, encode_deformation.
#include "field/frequencies.glsl"

// Writes the encoding of the first `axes` components of x from column `to` on: the values, then for
// each octave sines and cosines. Returns the next column.
uint encode(uint row, uint to, vec3 x, uint axes, uint octaves)
{
    for (uint axis = 0; axis < axes; axis++)
        put_activation(row, to + axis, x[axis]);
    to += axes;
    float scale = 1.0;
    for (uint octave = 0; octave < octaves; octave++, scale *= 2.0, to += 2u * axes)
        for (uint axis = 0; axis < axes; axis++) {
            vec2 waves = half_turns(x[axis] * scale);
            put_activation(row, to + axis, waves.x);
            put_activation(row, to + axes + axis, waves.y);
        }
    return to;
}

// Writes zeros to columns [to, end).
void fill(uint row, uint to, uint end)
{
    for (; to < end; to++)
        put_activation(row, to, 0.0);
}
