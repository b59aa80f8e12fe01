#version 460
#extension GL_GOOGLE_include_directive : require
// Pass mesh_color_samples: makes a sample at each vertex, viewed along the surface's normal from
// outside, for the vertex's colour.
//
//   buffer         shape                   access
//   MESH           struct MeshGrid         read
//   MESH_VERTICES  [vertex]                read
//   RAYS, SAMPLES  [vertex]: one ray each  write
#include "render/mesh_grid.glsl"

layout(std430, BINDING(RAYS)) writeonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(SAMPLES)) writeonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(MESH_VERTICES)) readonly buffer VertexBuffer { MeshVertex vertices[]; };

void main()
{
    // push.a: number of vertices.
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.a)
        return;
    MeshVertex vertex = vertices[i];
    rays[i].origin = vertex.position;
    rays[i].direction = float[3](-vertex.normal[0], -vertex.normal[1], -vertex.normal[2]);
    rays[i].time = grid.time;
    samples[i] = Sample(0.0, 0.0, i);
}
