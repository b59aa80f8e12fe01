// From training space to the unit cube that the grid covers.

vec3 to_unit_cube(vec3 position)
{
    return clamp((position - 0.5) / config.aabb_scale + 0.5, 0.0, 1.0);
}
