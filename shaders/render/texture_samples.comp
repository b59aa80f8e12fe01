#version 460
#extension GL_GOOGLE_include_directive : require
// Pass texture_samples: makes a short ray at each listed texel, along the surface's normal from one
// voxel above the surface to one below: triangles only approximate the surface, and the field's
// colour is untrained far from the surface.
//
//   buffer             shape                            access
//   MESH               struct MeshGrid                  read
//   TEXTURE_TRIANGLES  [triangle]                       read
//   TEXELS             [row][column] u32                read
//   MESH_POINTS        [listed texel] u32: its index    read
//   RAYS               [listed texel]                   write
//   SAMPLES            [listed texel][TEXTURE_SAMPLES]  write
#include "render/texture.glsl"

layout(std430, BINDING(RAYS)) writeonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(SAMPLES)) writeonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(MESH_POINTS)) readonly buffer PointBuffer { uint points[]; };
layout(std430, BINDING(TEXELS)) readonly buffer TexelBuffer { uint texels[]; };

vec3 corner_position(uint triangle, uint corner)
{
    return vec3(triangles[triangle].position[3u * corner], triangles[triangle].position[3u * corner + 1u],
                triangles[triangle].position[3u * corner + 2u]);
}

vec3 corner_normal(uint triangle, uint corner)
{
    return vec3(triangles[triangle].normal[3u * corner], triangles[triangle].normal[3u * corner + 1u],
                triangles[triangle].normal[3u * corner + 2u]);
}

void main()
{
    // push.a: first of the listed texels; push.b: number of texels; push.c: texels per row.
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.b)
        return;
    uint pixel = points[push.a + i], triangle = texels[pixel] & ~TEXEL_MARGIN;
    float squared;
    vec3 weights = nearest_weights(triangle, vec2(pixel % push.c, pixel / push.c) + 0.5, squared);
    vec3 position = mat3(corner_position(triangle, 0u), corner_position(triangle, 1u),
                      corner_position(triangle, 2u)) * weights;
    vec3 outwards = mat3(corner_normal(triangle, 0u), corner_normal(triangle, 1u),
                         corner_normal(triangle, 2u)) * weights;
    outwards /= max(length(outwards), 1e-12);
    position = position * grid.scale + vec3(grid.offset[0], grid.offset[1], grid.offset[2]) + grid.spacing * outwards;
    rays[i].origin = float[3](position.x, position.y, position.z);
    rays[i].direction = float[3](-outwards.x, -outwards.y, -outwards.z);
    rays[i].time = grid.time;
    const float width = 2.0 * grid.spacing / float(TEXTURE_SAMPLES);
    for (uint k = 0u; k < TEXTURE_SAMPLES; k++)
        samples[i * TEXTURE_SAMPLES + k] = Sample((float(k) + 0.5) * width, width, i);
}
