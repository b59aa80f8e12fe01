// Converts gradients with respect to the position in the unit cube (field/unit_cube.glsl) to gradients
// with respect to the position in training space.
// Passes: input_gradients, frequency_gradients, deformation_input_gradients.

// Returns the length in the unit cube of a short line of length 1 across the direction from the cube's
// centre.
float across_unit_cube(vec3 position)
{
    float factor = CONTRACTION == CONTRACTION_CUBE ? contraction_factor(from_center(position)) / CONTRACTED : 1.0;
    return factor / config.aabb_scale;
}

// Multiplies by the transposed Jacobian of to_unit_cube.
vec3 from_unit_gradient(vec3 position, vec3 slope)
{
    if (CONTRACTION != CONTRACTION_CUBE)
        return slope / config.aabb_scale;
    vec3 x = from_center(position);
    slope *= 1.0 / (CONTRACTED * config.aabb_scale);
    float norm = maximum_norm(x);
    if (norm <= 1.0)
        return slope;
    // If axis k has the norm n, the contracted position is y = s(n) x with s(n) = (2 - 1 / n) / n. So
    // dy_k = dx_k / n^2, and dy = s dx + s'(n) x dx_k sign(x_k) along the other axes.
    vec3 a = abs(x);
    bvec3 axis = bvec3(a.x == norm, a.y == norm && a.x < norm, a.z > max(a.x, a.y));
    float inverse = 1.0 / norm, s_slope = 2.0 * inverse * inverse * (inverse - 1.0); // s'(n)
    vec3 across = mix(slope, vec3(0.0), axis);
    vec3 along = inverse * inverse * slope + s_slope * dot(across, x) * sign(x);
    return mix((2.0 - inverse) * inverse * slope, along, axis);
}

// Returns the gradient with respect to the position in training space, which is 0 along axes on which
// to_unit_cube clamps the position.
vec3 to_training_gradient(vec3 position, vec3 unit, vec3 slope)
{
    bvec3 unclamped = bvec3(uvec3(greaterThan(unit, vec3(0.0))) & uvec3(lessThan(unit, vec3(1.0))));
    return from_unit_gradient(position, mix(vec3(0.0), slope, unclamped));
}
