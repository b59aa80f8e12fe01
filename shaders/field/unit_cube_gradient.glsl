// From gradients by the unit cube's position, field/unit_cube.glsl, back to those by the position.

// From the gradient by the unit cube's position to that by the position in training space: the
// transposed Jacobian of to_unit_cube.
vec3 from_unit_gradient(vec3 position, vec3 slope)
{
    if (CONTRACTION != CONTRACTION_CUBE)
        return slope / config.aabb_scale;
    vec3 x = from_center(position);
    slope *= 1.0 / (CONTRACTED * config.aabb_scale);
    float norm = maximum_norm(x);
    if (norm <= 1.0)
        return slope;
    // With the norm n along axis k, contracted y = s(n) x, s = (2 - 1 / n) / n: across the axis dy = s dx;
    // along it dy_k = dx_k / n^2, and s'(n) x for the others.
    vec3 size = abs(x);
    bvec3 axis = bvec3(size.x == norm, size.y == norm && size.x < norm, size.z > max(size.x, size.y));
    float near = 1.0 / norm, falling = 2.0 * near * near * (near - 1.0); // s'(n)
    vec3 across = mix(slope, vec3(0.0), axis);
    vec3 along = near * near * slope + falling * dot(across, x) * sign(x);
    return mix((2.0 - near) * near * slope, along, axis);
}

// Where the position is clamped, it does not matter.
vec3 to_training_gradient(vec3 position, vec3 unit, vec3 slope)
{
    bvec3 free = bvec3(uvec3(greaterThan(unit, vec3(0.0))) & uvec3(lessThan(unit, vec3(1.0))));
    return from_unit_gradient(position, mix(vec3(0.0), slope, free));
}
