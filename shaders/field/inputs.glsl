// From a sample's place to the MLPs' inputs.

vec3 to_unit_cube(vec3 position)
{
    return clamp((position - 0.5) / config.aabb_scale + 0.5, 0.0, 1.0);
}

void encode_position(vec3 position)
{
    vec3 unit = to_unit_cube(position);
    for (uint level = 0; level < LEVELS; level++) {
        vec3 inside;
        uvec3 cell = grid_cell(level, unit, inside);
        float feature[FEATURES];
        for (uint f = 0; f < FEATURES; f++)
            feature[f] = 0.0;
        [[unroll]] for (uint corner = 0; corner < 8u; corner++) {
            uint entry = grid_entry(level, cell + corner_offset(corner));
            float weight = corner_weight(corner, inside);
            for (uint f = 0; f < FEATURES; f++)
                feature[f] += weight * params[entry + f];
        }
        for (uint f = 0; f < FEATURES; f++)
            values[level * FEATURES + f] = feature[f];
    }
    for (uint i = LEVELS * FEATURES; i < ENCODED; i++)
        values[i] = 0.0;
}

void encode_direction(vec3 direction)
{
    float sh[SH_SIZE];
    spherical_harmonics(direction, sh);
    for (uint i = 0; i < SH_SIZE; i++)
        values[AT_DIRECTION + i] = sh[i];
}
