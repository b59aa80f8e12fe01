#version 460
#extension GL_GOOGLE_include_directive : require
// Per vertex: a sample that looks straight down at the surface.
#include "render/mesh_grid.glsl"

layout(std430, BINDING(RAYS)) writeonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(SAMPLES)) writeonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(MESH_VERTICES)) readonly buffer VertexBuffer { MeshVertex vertices[]; };

void main()
{
    // push: vertices.
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.a)
        return;
    MeshVertex vertex = vertices[i];
    rays[i].origin = vertex.position;
    rays[i].direction = float[3](-vertex.normal[0], -vertex.normal[1], -vertex.normal[2]);
    rays[i].time = grid.time;
    samples[i] = Sample(0.0, 0.0, i);
}
