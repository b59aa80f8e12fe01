// Finds the occupancy cell of a point, and the distance that a ray may skip where cells are empty.
// Passes: march_rays, mesh_points.

// Returns the finest cascade that contains the point and whose cells are not smaller than the step.
uint cascade_at(vec3 position, float step)
{
    float reach = 2.0 * maximum_norm(position - 0.5); // side of the centred cube that contains the point
    if (CONTRACTION == CONTRACTION_CUBE && reach > config.aabb_scale)
        return CUBE_CASCADES;
    float wanted = max(reach, step * float(RESOLUTION));
    return wanted <= 1.0 ? 0u : min(uint(int(ceil(log2(wanted)))), CUBE_CASCADES - 1u);
}

// Returns the point's position in units of cells from the cascade's corner.
vec3 to_cells(vec3 position, uint cascade)
{
    if (cascade >= CUBE_CASCADES)
        return (contract(from_center(position)) / (2.0 * CONTRACTED) + 0.5) * float(RESOLUTION);
    return ((position - 0.5) / float(1u << cascade) + 0.5) * float(RESOLUTION);
}

// Returns the distance along the ray from `unit` to the far faces of the surrounding empty cube, which
// has its lowest corner at `low` and `edge` cells along an edge.
float cascade_distance(vec3 unit, vec3 direction, vec3 low, float edge, uint cascade)
{
    vec3 face = mix(low, low + edge, greaterThan(direction, vec3(0.0)));
    vec3 distance = (face - unit) / direction; // 0 / 0 compares false in min()
    float cells = min(min(distance.x, distance.y), distance.z);
    return cells * float(1u << cascade) / float(RESOLUTION);
}

// ---- contracted space ------------------------------------------------------------------------------
//
// Outside of the cube contraction bends rays: where axis a has the largest coordinate, r = |x_a|,
// another coordinate becomes c_b = x_b / f(r) with f(r) = r^2 / (2 r - 1). f is convex: tangents and
// chords on the inner side of f bound a region that is within the faces c_b = const and has plane
// faces. A ray skips to the end of that region: never too far, and nearly as far as possible, because
// f is close to r / 2 + 1 / 4.

const float UNBOUNDED = 1e9;

float norm_over_contracted(float r)
{
    return r * r / (2.0 * r - 1.0);
}

// Returns the slope of the chord of norm_over_contracted from r to q, or of the tangent where r = q.
float chord_slope(float r, float q)
{
    return 0.5 - 0.5 / ((2.0 * r - 1.0) * (2.0 * q - 1.0));
}

// Returns the distance t up to which value + t * speed stays at or below 0.
vec2 distance_below_zero(vec2 value, vec2 speed)
{
    return mix(vec2(UNBOUNDED), max(-value, 0.0) / max(speed, 1e-12), greaterThan(speed, vec2(0.0)));
}

// Returns the distance at which one of two coordinates x passes its face `high` in contracted space,
// or exceeds the norm r. The norm changes at `rate` and does not pass `until`.
float distance_below(vec2 x, vec2 speed, vec2 high, float r, float rate, float until)
{
    vec2 slope = mix(vec2(chord_slope(r, until)), vec2(chord_slope(r, r)), greaterThan(high, vec2(0.0)));
    vec2 to_face = distance_below_zero(x - high * norm_over_contracted(r), speed - high * slope * rate);
    vec2 to_sector = distance_below_zero(x - r, speed - rate);
    vec2 both = min(to_face, to_sector);
    return min(both.x, both.y);
}

// Returns the distance from the point x, whose first coordinate is its norm r >= 1, to the end of the
// box low..high of contracted space.
float outer_distance(vec3 x, vec3 speed, vec3 low, vec3 high)
{
    float r = x.x;
    float until = speed.x > 0.0 ? expanded_norm(high.x) : expanded_norm(max(low.x, 1.0));
    float t = speed.x != 0.0 ? (until - r) / speed.x : UNBOUNDED;
    t = min(t, distance_below(x.yz, speed.yz, high.yz, r, speed.x, until));
    return min(t, distance_below(-x.yz, -speed.yz, -low.yz, r, speed.x, until));
}

// Returns the distance that a ray may skip in empty cells from the point x, whose norm exceeds 1.
float contracted_distance(vec3 x, vec3 direction, vec3 low_cell, float edge)
{
    vec3 speed = direction * (2.0 / config.aabb_scale);
    vec3 low = (low_cell / float(RESOLUTION) - 0.5) * (2.0 * CONTRACTED);
    vec3 high = low + edge / float(RESOLUTION) * (2.0 * CONTRACTED);
    vec3 size = abs(x);
    float r = maximum_norm(x);
    // Rotates the axes so that the largest coordinate comes first, and mirrors them so that this
    // coordinate is positive.
    if (size.y == r) {
        x = x.yzx, speed = speed.yzx, low = low.yzx, high = high.yzx;
    } else if (size.x != r) {
        x = x.zxy, speed = speed.zxy, low = low.zxy, high = high.zxy;
    }
    if (x.x < 0.0)
        return outer_distance(-x, -speed, -high, -low);
    return outer_distance(x, speed, low, high);
}
