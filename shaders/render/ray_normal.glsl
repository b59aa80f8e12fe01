// The normal that composite_normals has summed up along a ray. After BIND_RAYS is declared.

layout(std430, BINDING(NORMALS)) readonly buffer NormalBuffer { vec4 normals[]; };

// Zero also for what is not finite.
vec3 unit_or_zero(vec3 v)
{
    float square = dot(v, v);
    return square > 1e-30 && square < 1e38 ? v * inversesqrt(square) : vec3(0.0);
}

// No visible surface faces away: what noise turns beyond the horizon is brought back to it.
vec3 ray_normal(uint ray)
{
    vec3 normal = unit_or_zero(normals[config.sample_capacity + ray].xyz);
    vec3 direction = vec3(rays[ray].direction[0], rays[ray].direction[1], rays[ray].direction[2]);
    return unit_or_zero(normal - max(dot(normal, direction), 0.0) * direction);
}
