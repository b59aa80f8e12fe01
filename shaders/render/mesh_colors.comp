#version 460
#extension GL_GOOGLE_include_directive : require
// Pass mesh_colors: stores the field's colour in each vertex and converts the vertex's position to
// dataset space.
//
//   buffer         shape               access
//   MESH           struct MeshGrid     read
//   FIELD          [vertex] vec4: rgb  read
//   MESH_VERTICES  [vertex]            read, write
#include "render/mesh_grid.glsl"

layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(MESH_VERTICES)) buffer VertexBuffer { MeshVertex vertices[]; };

void main()
{
    // push.a: number of vertices.
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.a)
        return;
    for (uint axis = 0u; axis < 3u; axis++)
        vertices[i].position[axis] = (vertices[i].position[axis] - grid.offset[axis]) / grid.scale;
    vertices[i].color = packUnorm4x8(vec4(field[i].rgb, 0.0)) | vertices[i].color & 0xff000000u;
}
