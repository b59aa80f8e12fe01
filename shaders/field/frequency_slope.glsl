// Computes gradients with respect to vectors from the gradients of the vectors' frequency encodings.
// Sine and cosine are each other's derivatives, up to sign and factor; the activations contain their
// values. The including file includes field/layers.glsl.
// Passes: frequency_gradients, direction_gradients, deformation_input_gradients.

// Returns the gradient with respect to one axis of the vector whose encoding begins at column `first`.
float axis_slope(uint row, uint first, uint axis, uint octaves)
{
    float slope = get_gradient(row, first + axis), frequency = 3.141592653589793;
    [[dont_unroll]] for (uint octave = 0; octave < octaves; octave++, frequency *= 2.0) {
        uint sine = first + 3u + 6u * octave + axis, cosine = sine + 3u; // columns of sine and cosine
        slope += frequency * (get_gradient(row, sine) * get_activation(row, cosine) -
                          get_gradient(row, cosine) * get_activation(row, sine));
    }
    return slope;
}

vec3 frequency_slope(uint row, uint first, uint octaves)
{
    return vec3(axis_slope(row, first, 0u, octaves), axis_slope(row, first, 1u, octaves),
                axis_slope(row, first, 2u, octaves));
}
