#version 460
#extension GL_GOOGLE_include_directive : require
// Pass texture_list: lists the texels that belong to a triangle.
//
//   buffer       shape                           access
//   TEXELS       [row][column] u32               read
//   STATE        live_count: length of the list  write
//   MESH_POINTS  [listed texel] u32              write
#include "render/mesh_grid.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(TEXELS)) readonly buffer TexelBuffer { uint texels[]; };
layout(std430, BINDING(MESH_POINTS)) writeonly buffer PointBuffer { uint points[]; };

void main()
{
    // push.b: texels per row; push.c: number of rows.
    uint i = gl_GlobalInvocationID.x;
    bool is_listed = i < push.b * push.c && texels[min(i, push.b * push.c - 1u)] != TEXEL_NONE;
    uvec4 ballot = subgroupBallot(is_listed);
    uint listed = subgroupBallotBitCount(ballot), first = 0u;
    if (subgroupElect() && listed > 0u)
        first = atomicAdd(state.live_count, listed);
    uint slot = subgroupBroadcastFirst(first) + subgroupBallotExclusiveBitCount(ballot);
    if (is_listed)
        points[slot] = i;
}
