#version 460
#extension GL_GOOGLE_include_directive : require
// Pass splat_samples: makes the samples of each splat: one per direction of SPLAT_VIEWS at its
// position, and SPLAT_DEPTHS samples along its normal.
//
//   buffer         shape                                 access
//   MESH           struct MeshGrid: scale, offset, time  read
//   SPLATS         [splat] position, normal, spacing     read
//   RAYS, SAMPLES  [splat][SPLAT_VIEWS + SPLAT_DEPTHS]   write
#include "render/mesh_grid.glsl"
#include "render/harmonics.glsl"

layout(std430, BINDING(RAYS)) writeonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(SAMPLES)) writeonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(SPLATS)) readonly buffer SplatBuffer { Splat splats[]; };

void main()
{
    // push.a: number of splats.
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
        // Directions from behind the surface get the colour of the mirrored direction from the front:
        // no camera looks from behind, and with a symmetric function the low degrees fit the front.
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
