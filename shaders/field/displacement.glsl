// Returns the displacement of a row's sample into canonical space, in units of training space. The
// including file includes field/layers.glsl.
// Passes: encode_inputs, deform_samples, frequency_gradients.
vec3 displacement(uint row)
{
    vec3 sides;
    for (uint axis = 0; axis < 3u; axis++)
        sides[axis] = get_activation(row, config.deformation_output + axis);
    return config.aabb_scale * sides;
}
