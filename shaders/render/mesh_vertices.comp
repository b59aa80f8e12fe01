#version 460
#extension GL_GOOGLE_include_directive : require
// Pass mesh_vertices: writes the vertices on the three edges of each grid point, at which the linear
// interpolation of the values is 0, with normals from the values' gradient (central differences, also
// interpolated). Vertices are numbered in the order of the points, whatever the timing.
//
//   buffer             shape                                             access
//   MESH               struct MeshGrid                                   read
//   MESH_VALUES        [layer][y][x] f32                                 read
//   MESH_TILES         [tile + 1][vertices, triangles] u32: prefix sums  read
//   MESH_FIRST_VERTEX  [layer][y][x] u32: the point's first vertex       write
//   MESH_VERTICES      [vertex]                                          write
#include "render/mesh_cells.glsl"
#include "render/mesh_order.glsl"

layout(std430, BINDING(MESH_FIRST_VERTEX)) writeonly buffer FirstBuffer { uint firsts[]; };
layout(std430, BINDING(MESH_VERTICES)) writeonly buffer VertexBuffer { MeshVertex vertices[]; };

vec3 gradient(ivec3 p)
{
    return vec3(value_at(p + ivec3(1, 0, 0)) - value_at(p - ivec3(1, 0, 0)),
                value_at(p + ivec3(0, 1, 0)) - value_at(p - ivec3(0, 1, 0)),
                value_at(p + ivec3(0, 0, 1)) - value_at(p - ivec3(0, 0, 1)));
}

MeshVertex edge_vertex(ivec3 p, uint axis)
{
    ivec3 along = ivec3(axis == 0u, axis == 1u, axis == 2u);
    float from = value_at(p), to = value_at(p + along);
    // Keeps vertices of different edges apart, so that no triangle has two corners at one position.
    float t = clamp(from / (from - to), 1e-3, 1.0 - 1e-3);
    vec3 outwards = -mix(gradient(p), gradient(p + along), t);
    if (dot(outwards, outwards) < 1e-12)
        outwards = vec3(along) * sign(from - to);
    vec3 normal = normalize(grid_vector(outwards));
    // The slab's layer z is the grid's layer push.d + z - 1.
    vec3 position = grid_position(vec3(p.xy, p.z + int(push.d) - 1) + t * vec3(along));
    return MeshVertex(float[3](position.x, position.y, position.z),
                      float[3](normal.x, normal.y, normal.z), 0xff000000u);
}

void main()
{
    // push.a: first vertex of the slab to write; push.b: number of vertices that fit; push.c: number
    // of the slab's first vertex; push.d: the slab's lowest layer.
    uint first = tiles[gl_WorkGroupID.x].x;
    if (first == tiles[gl_WorkGroupID.x + 1u].x)
        return;
    uint count = grid.layers * layer_points(), made = 0u;
    for (uint k = 0u; k < MESH_TILE_STEPS; k++) {
        uint i = point_of_step(k);
        ivec3 p = ivec3(slab_point(min(i, count - 1u))) + ivec3(0, 0, 1);
        made += i < count ? bitCount(edge_vertices(p)) : 0u;
    }
    uint vertex = first + count_before(made);
    for (uint k = 0u; k < MESH_TILE_STEPS; k++) {
        uint i = point_of_step(k);
        ivec3 p = ivec3(slab_point(min(i, count - 1u))) + ivec3(0, 0, 1);
        uint edges = i < count ? edge_vertices(p) : 0u;
        if (edges != 0u)
            firsts[layer_points() + i] = push.c + vertex;
        for (uint axis = 0u; axis < 3u; axis++) {
            if ((edges >> axis & 1u) == 0u)
                continue;
            if (vertex - push.a < push.b) // unsigned: also false before push.a
                vertices[vertex - push.a] = edge_vertex(p, axis);
            vertex++;
        }
    }
}
