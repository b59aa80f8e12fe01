// Converts positions from training space to the unit cube that the grid covers.
// Passes: all that encode positions, and their backward passes.
#include "shared/contraction.glsl"

vec3 to_unit_cube(vec3 position)
{
    if (CONTRACTION == CONTRACTION_CUBE)
        return clamp(contract(from_center(position)) / (2.0 * CONTRACTED) + 0.5, 0.0, 1.0);
    return clamp((position - 0.5) / config.aabb_scale + 0.5, 0.0, 1.0);
}
