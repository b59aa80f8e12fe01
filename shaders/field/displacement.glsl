// How far the deformation's layers take a row's sample, in training space. What includes this has included
// field/layers.glsl.
vec3 displacement(uint row)
{
    vec3 sides;
    for (uint axis = 0; axis < 3u; axis++)
        sides[axis] = get_activation(row, config.deformation_output + axis);
    return config.aabb_scale * sides;
}
