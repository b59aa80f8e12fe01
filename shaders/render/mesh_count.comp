#version 460
#extension GL_GOOGLE_include_directive : require
// Pass mesh_count: counts the vertices and triangles of each tile of grid points, one workgroup per
// tile.
//
//   buffer       shape                            access
//   MESH         struct MeshGrid                  read
//   MESH_VALUES  [layer][y][x] f32                read
//   MESH_TABLE   [case][2] u32                    read
//   MESH_TILES   [tile][vertices, triangles] u32  write
#include "render/mesh_cells.glsl"

layout(std430, BINDING(MESH_TILES)) writeonly buffer TileBuffer { uvec2 tiles[]; };

shared uvec2 sums[LOCAL_SIZE];

void main()
{
    uint count = grid.layers * layer_points();
    uvec2 sum = uvec2(0u);
    for (uint k = 0u; k < MESH_TILE_STEPS; k++) {
        uint i = gl_WorkGroupID.x * TILE + k * LOCAL_SIZE + gl_LocalInvocationID.x;
        ivec3 p = ivec3(slab_point(min(i, count - 1u))) + ivec3(0, 0, 1);
        uvec2 made = uvec2(bitCount(edge_vertices(p)), case_triangles(cell_case(p - ivec3(0, 0, 1))));
        sum += i < count ? made : uvec2(0u);
    }
    sums[gl_LocalInvocationID.x] = sum;
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        for (uint i = 1u; i < LOCAL_SIZE; i++)
            sum += sums[i];
        tiles[gl_WorkGroupID.x] = sum;
    }
}
