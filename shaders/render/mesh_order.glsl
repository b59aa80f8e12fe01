// Computes prefix sums within a tile: an invocation processes consecutive points and gets the number
// of vertices or triangles that earlier invocations make.
// Passes: mesh_vertices, mesh_triangles. Reads MESH_TILES [tile + 1][vertices, triangles] u32.

layout(std430, BINDING(MESH_TILES)) readonly buffer TileBuffer { uvec2 tiles[]; };

shared uint invocation_counts[LOCAL_SIZE];

// Returns the sum of `made` over the invocations before this one. Called by whole workgroups.
uint count_before(uint made)
{
    invocation_counts[gl_LocalInvocationID.x] = made;
    barrier();
    uint sum = 0u;
    for (uint i = 0u; i < gl_LocalInvocationID.x; i++)
        sum += invocation_counts[min(i, LOCAL_SIZE - 1u)];
    return sum;
}

uint point_of_step(uint k)
{
    return gl_WorkGroupID.x * TILE + gl_LocalInvocationID.x * MESH_TILE_STEPS + k;
}
