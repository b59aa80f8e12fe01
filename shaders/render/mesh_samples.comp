#version 460
#extension GL_GOOGLE_include_directive : require
// Per listed grid point: a sample for the field to be evaluated at.
#include "render/mesh_grid.glsl"

layout(std430, BINDING(RAYS)) writeonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(SAMPLES)) writeonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(MESH_POINTS)) readonly buffer PointBuffer { uint points[]; };

void main()
{
    // push: first of the listed points, how many, the grid's layer that the slab's first new one is.
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.b)
        return;
    vec3 position = point_position(points[push.a + i], push.c);
    rays[i].origin = float[3](position.x, position.y, position.z);
    rays[i].direction = float[3](0.0, 0.0, 1.0);
    rays[i].time = grid.time;
    samples[i] = Sample(0.0, 0.0, i);
}
