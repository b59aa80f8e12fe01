#version 460
#extension GL_GOOGLE_include_directive : require
// Per vertex: the field's colour; and its place in the dataset's space.
#include "render/mesh_grid.glsl"

layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(MESH_VERTICES)) buffer VertexBuffer { MeshVertex vertices[]; };

void main()
{
    // push: vertices.
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.a)
        return;
    for (uint axis = 0u; axis < 3u; axis++)
        vertices[i].position[axis] = (vertices[i].position[axis] - grid.offset[axis]) / grid.scale;
    vertices[i].color = packUnorm4x8(vec4(field[i].rgb, 0.0)) | vertices[i].color & 0xff000000u;
}
