// Contracts unbounded scenes (Mip-NeRF 360, Barron et al. 2022, equation 10) in the maximum norm,
// which keeps the faces of a cube flat, as grids need. The cube of side aabb_scale around (0.5, 0.5,
// 0.5) has norms up to 1 and is not contracted; everything beyond is mapped to norms between 1 and 2.
// Passes: all that use positions or sample widths.
#ifndef SHARED_CONTRACTION
#define SHARED_CONTRACTION

layout(constant_id = SPEC_CONTRACTION) const uint CONTRACTION = CONTRACTION_NONE;

const float CONTRACTED = 2.0;            // norm of points at infinity
const float MIN_INVERSE_DISTANCE = 1e-4; // 1 / norm of the farthest points that are distinguished

float maximum_norm(vec3 v)
{
    vec3 a = abs(v);
    return max(max(a.x, a.y), a.z);
}

// Converts from training space to coordinates in which the faces of the cube have norm 1.
vec3 from_center(vec3 position)
{
    return (position - 0.5) * (2.0 / config.aabb_scale);
}

// Returns whether the field is defined at a position: in the cube, or anywhere in contracted space.
bool is_trained(vec3 position)
{
    return CONTRACTION == CONTRACTION_CUBE || maximum_norm(from_center(position)) <= 1.0;
}

// Returns the width of a sample in the density's unit: training units or, in contracted space, units
// of contracted radius, d(2 - 1 / r) = dr / r^2. Then empty space needs equally little training
// everywhere, and the threshold of the occupancy grid does not depend on the distance.
float width_at(vec3 position, float width)
{
    if (CONTRACTION == CONTRACTION_NONE)
        return width;
    float norm = max(maximum_norm(from_center(position)), 1.0);
    return width / (norm * norm);
}

// Returns the factor by which the contraction shrinks x, and lengths across the direction from the centre.
float contraction_factor(vec3 x)
{
    float norm = max(maximum_norm(x), 1.0);
    return (2.0 - 1.0 / norm) / norm;
}

vec3 contract(vec3 x)
{
    return x * contraction_factor(x);
}

// Returns the norm of the points whose contracted norm is `norm`.
float expanded_norm(float norm)
{
    return norm <= 1.0 ? norm : 1.0 / max(2.0 - norm, MIN_INVERSE_DISTANCE);
}

vec3 expand(vec3 c)
{
    float norm = max(maximum_norm(c), 1.0);
    return c * (expanded_norm(norm) / norm);
}

#endif
