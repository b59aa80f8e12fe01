#version 460
// Evaluates a soft ball in fog, with colours by position and direction: rgb and density, or densities only.
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; };
layout(std430, binding = 0) readonly buffer Positions { float positions[]; };
layout(std430, binding = 1) readonly buffer Directions { float directions[]; };
#ifdef DENSITIES
layout(std430, binding = 2) writeonly buffer Densities { float densities[]; };
#else
layout(std430, binding = 2) writeonly buffer Values { vec4 values[]; };
#endif

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i >= count)
        return;
    vec3 position = vec3(positions[3u * i], positions[3u * i + 1u], positions[3u * i + 2u]);
    vec3 from_middle = position - vec3(0.6, 0.5, 0.5);
    float density = 0.25 + 60.0 * max(0.0, 1.0 - 20.0 * dot(from_middle, from_middle));
#ifdef DENSITIES
    densities[i] = position.x < 0.25 ? 0.0 : density;
#else
    vec3 direction = vec3(directions[3u * i], directions[3u * i + 1u], directions[3u * i + 2u]);
    values[i] = vec4(0.5 + 0.25 * (position - 0.5) + 0.125 * direction, density);
#endif
}
