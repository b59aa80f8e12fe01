#version 460
#extension GL_GOOGLE_include_directive : require
// Pass mesh_samples: makes a sample at each listed grid point, where the field is evaluated.
//
//   buffer         shape                   access
//   MESH           struct MeshGrid         read
//   MESH_POINTS    [listed point] u32      read
//   RAYS, SAMPLES  [sample]: one ray each  write
#include "render/mesh_grid.glsl"

layout(std430, BINDING(RAYS)) writeonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(SAMPLES)) writeonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(MESH_POINTS)) readonly buffer PointBuffer { uint points[]; };

void main()
{
    // push.a: first of the listed points; push.b: number of points; push.c: the grid's layer of the
    // slab's first new layer.
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.b)
        return;
    vec3 position = point_position(points[push.a + i], push.c);
    rays[i].origin = float[3](position.x, position.y, position.z);
    rays[i].direction = float[3](0.0, 0.0, 1.0);
    rays[i].time = grid.time;
    samples[i] = Sample(0.0, 0.0, i);
}
