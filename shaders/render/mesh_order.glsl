// Order within a tile: every invocation has consecutive points, and knows what those before it make.

layout(std430, BINDING(MESH_TILES)) readonly buffer TileBuffer { uvec2 tiles[]; };

shared uint invocation_counts[LOCAL_SIZE];

// What the invocations before this one make. Whole workgroups.
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
