#version 460
#extension GL_GOOGLE_include_directive : require
// Pass mesh_scan (one workgroup): computes the exclusive prefix sums of the counts of push.a tiles,
// followed by the totals.
//
//   buffer      shape                                access
//   MESH_TILES  [tile + 1][vertices, triangles] u32  read, write
#include "shared/common.glsl"

layout(std430, BINDING(MESH_TILES)) buffer TileBuffer { uvec2 tiles[]; };

shared uvec2 totals[LOCAL_SIZE];

void main()
{
    // Each invocation owns a consecutive share of the tiles.
    uint share = (push.a + LOCAL_SIZE - 1u) / LOCAL_SIZE;
    uint begin = min(gl_LocalInvocationID.x * share, push.a), end = min(begin + share, push.a);
    uvec2 sum = uvec2(0u);
    for (uint i = begin; i < end; i++)
        sum += tiles[min(i, push.a)];
    totals[gl_LocalInvocationID.x] = sum;
    barrier();
    uvec2 before = uvec2(0u);
    for (uint i = 0u; i < gl_LocalInvocationID.x; i++)
        before += totals[min(i, LOCAL_SIZE - 1u)];
    if (gl_LocalInvocationID.x == LOCAL_SIZE - 1u)
        tiles[push.a] = before + sum;
    for (uint i = begin; i < end; i++) {
        uvec2 made = tiles[min(i, push.a)];
        tiles[min(i, push.a)] = before;
        before += made;
    }
}
