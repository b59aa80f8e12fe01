#version 460
#extension GL_GOOGLE_include_directive : require
// Per sample of each splat: it is looked at from all sides, and along its normal through its depth.
#include "render/mesh_grid.glsl"
#include "render/harmonics.glsl"

layout(std430, BINDING(RAYS)) writeonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(SAMPLES)) writeonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(SPLATS)) readonly buffer SplatBuffer { Splat splats[]; };

void main()
{
    // push: splats.
    uint i = gl_GlobalInvocationID.x, splat = i / (SPLAT_VIEWS + SPLAT_DEPTHS);
    if (splat >= push.a)
        return;
    uint k = i % (SPLAT_VIEWS + SPLAT_DEPTHS);
    vec3 position = vec3(splats[splat].position[0], splats[splat].position[1], splats[splat].position[2]);
    vec3 normal = vec3(splats[splat].normal[0], splats[splat].normal[1], splats[splat].normal[2]);
    vec3 direction = -normal;
    float width = 2.0 * splats[splat].spacing * grid.scale / float(SPLAT_DEPTHS);
    position = position * grid.scale + vec3(grid.offset[0], grid.offset[1], grid.offset[2]);
    if (k < SPLAT_VIEWS) {
        // Nobody sees a surface from behind. What it looks like from in front, mirrored, keeps the low
        // degrees right in front.
        direction = view_direction(k);
        direction -= 2.0 * max(dot(direction, normal), 0.0) * normal;
    } else {
        position += (float(k - SPLAT_VIEWS) + 0.5 - 0.5 * float(SPLAT_DEPTHS)) * width * direction;
    }
    rays[i].origin = float[3](position.x, position.y, position.z);
    rays[i].direction = float[3](direction.x, direction.y, direction.z);
    rays[i].time = grid.time;
    samples[i] = Sample(0.0, width, i);
}
