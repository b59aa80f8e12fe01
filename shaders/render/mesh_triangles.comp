#version 460
#extension GL_GOOGLE_include_directive : require
// Pass mesh_triangles: writes the triangles of each cell, counterclockwise seen from outside
// (marching cubes: Lorensen and Cline 1987, with the table of src/render/marching_cubes_table.c).
//
//   buffer             shape                                             access
//   MESH               struct MeshGrid                                   read
//   MESH_VALUES        [layer][y][x] f32                                 read
//   MESH_TABLE         [case][2] u32                                     read
//   MESH_TILES         [tile + 1][vertices, triangles] u32: prefix sums  read
//   MESH_FIRST_VERTEX  [layer][y][x] u32                                 read
//   MESH_TRIANGLES     [triangle][3] u32                                 write
#include "render/mesh_cells.glsl"
#include "render/mesh_order.glsl"

layout(std430, BINDING(MESH_FIRST_VERTEX)) readonly buffer FirstBuffer { uint firsts[]; };
layout(std430, BINDING(MESH_TRIANGLES)) writeonly buffer TriangleBuffer { uint corners[]; };

// Returns the index of the vertex on edge 4 * axis + k of the cell above p. The bits of k are the
// edge's offsets along the other two axes.
uint edge_number(ivec3 p, uint edge)
{
    uint axis = edge >> 2;
    uint along = 1u << (axis + 1u) % 3u, across = 1u << (axis + 2u) % 3u;
    uint corner = ((edge & 1u) != 0u ? along : 0u) | ((edge & 2u) != 0u ? across : 0u);
    p += ivec3(corner & 1u, corner >> 1 & 1u, corner >> 2);
    uint before = edge_vertices(p) & ((1u << axis) - 1u);
    return firsts[(uint(p.z) * grid.points[1] + uint(p.y)) * grid.points[0] + uint(p.x)] + bitCount(before);
}

void main()
{
    // push.a: first triangle of the slab to write; push.b: number of triangles that fit.
    uint first = tiles[gl_WorkGroupID.x].y;
    if (first == tiles[gl_WorkGroupID.x + 1u].y)
        return;
    uint count = grid.layers * layer_points(), made = 0u;
    for (uint k = 0u; k < MESH_TILE_STEPS; k++) {
        uint i = point_of_step(k);
        made += i < count ? case_triangles(cell_case(ivec3(slab_point(min(i, count - 1u))))) : 0u;
    }
    uint triangle = first + count_before(made);
    for (uint k = 0u; k < MESH_TILE_STEPS; k++) {
        uint i = point_of_step(k);
        ivec3 p = ivec3(slab_point(min(i, count - 1u)));
        uint corners_inside = i < count ? cell_case(p) : 0u;
        uint triangles = case_triangles(corners_inside);
        for (uint n = 0u; n < triangles; n++, triangle++) {
            if (triangle - push.a >= push.b) // unsigned: also true before push.a
                continue;
            for (uint corner = 0u; corner < 3u; corner++)
                corners[3u * (triangle - push.a) + corner] =
                    edge_number(p, case_edge(corners_inside, min(3u * n + corner, 14u)));
        }
    }
}
