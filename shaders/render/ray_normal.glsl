// Computes a ray's normal from the sum that composite_normals has stored. The including file declares
// rays.
// Passes: finish_normals, finish_points. Reads NORMALS [sample], then [ray] vec4.

layout(std430, BINDING(NORMALS)) readonly buffer NormalBuffer { vec4 normals[]; };

// Normalises a vector; returns zero for one that is not finite or nearly zero.
vec3 unit_or_zero(vec3 v)
{
    float square = dot(v, v);
    return square > 1e-30 && square < 1e38 ? v * inversesqrt(square) : vec3(0.0);
}

// Returns a ray's normal. Visible surfaces do not face away from the camera, so a normal that noise
// turns away from the camera is projected perpendicular to the ray.
vec3 ray_normal(uint ray)
{
    vec3 normal = unit_or_zero(normals[config.sample_capacity + ray].xyz);
    vec3 direction = vec3(rays[ray].direction[0], rays[ray].direction[1], rays[ray].direction[2]);
    return unit_or_zero(normal - max(dot(normal, direction), 0.0) * direction);
}
