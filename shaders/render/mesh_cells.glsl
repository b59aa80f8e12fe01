// Determines which edges of a slab of grid points have vertices, and the triangles of its cells. A
// vertex belongs to the grid edge on which it is, and an edge to the lower of its two points: a point
// has up to three vertices, along x, y and z. A cell between the points (x, y, z) and
// (x + 1, y + 1, z - 1) has the number of the point (x, y, z), because the layers that the cell needs
// are known when the point's vertices are made.
// Passes: mesh_count, mesh_vertices, mesh_triangles. Reads MESH_VALUES [layer][y][x] f32 and
// MESH_TABLE [case][2] u32.
#include "render/mesh_grid.glsl"

layout(std430, BINDING(MESH_VALUES)) readonly buffer ValueBuffer { float values[]; };
layout(std430, BINDING(MESH_TABLE)) readonly buffer TableBuffer { uvec2 table[]; };

// Returns the value of point p, whose z is the layer of MESH_VALUES; points beyond the sides are
// empty.
float value_at(ivec3 p)
{
    ivec2 last = ivec2(grid.points[0], grid.points[1]) - 1;
    ivec2 clamped = clamp(p.xy, ivec2(0), last);
    float value = values[(uint(p.z) * grid.points[1] + uint(clamped.y)) * grid.points[0] + uint(clamped.x)];
    return clamped == p.xy ? value : -MESH_LIMIT;
}

// Returns a mask whose bit a is set if there is a vertex between the point and the next along axis a.
uint edge_vertices(ivec3 p)
{
    bool is_inside = value_at(p) > 0.0;
    return (is_inside != (value_at(p + ivec3(1, 0, 0)) > 0.0) ? 1u : 0u) |
           (is_inside != (value_at(p + ivec3(0, 1, 0)) > 0.0) ? 2u : 0u) |
           (is_inside != (value_at(p + ivec3(0, 0, 1)) > 0.0) ? 4u : 0u);
}

// Returns a mask whose bit c is set if corner c of the cell above p is inside. The bits of c are the
// corner's offsets along x, y and z.
uint cell_case(ivec3 p)
{
    uint corners_inside = 0u;
    [[unroll]] for (uint c = 0u; c < 8u; c++)
        corners_inside |= value_at(p + ivec3(c & 1u, c >> 1 & 1u, c >> 2)) > 0.0 ? 1u << c : 0u;
    return corners_inside;
}

// Returns the number of triangles of a case. A case of the table has four bits for each edge of up to
// five triangles, and the number of triangles in the last four bits: see
// src/render/marching_cubes_table.c.
uint case_triangles(uint corners_inside)
{
    return table[corners_inside].y >> 28;
}

uint case_edge(uint corners_inside, uint i)
{
    return (i < 8u ? table[corners_inside].x >> 4u * i : table[corners_inside].y >> 4u * (i - 8u)) & 15u;
}
