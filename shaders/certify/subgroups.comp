#version 460
#extension GL_GOOGLE_include_directive : require
// Test of a device: operations of subgroups, in every size that the device offers.
//
//   buffer     shape                                                                access
//   GRADIENTS  [invocation][8] u32: size, lane, inclusive sum, largest value, ballot
//              count below the lane, value of the mirrored lane, of the lane xor 1,  write
//              of lane 3
#extension GL_KHR_shader_subgroup_shuffle : require
#include "shared/common.glsl"

layout(std430, BINDING(GRADIENTS)) writeonly buffer ResultBuffer { uint results[]; };

void main()
{
    uint lane = gl_SubgroupInvocationID;
    uint i = gl_WorkGroupID.x * LOCAL_SIZE + gl_SubgroupID * SUBGROUP_SIZE + lane;
    uint value = pcg3d(uvec3(i, push.a, 0u)).x & 0xffffu;
    uvec4 odd = subgroupBallot((value & 1u) != 0u);
    results[8u * i] = gl_SubgroupSize;
    results[8u * i + 1u] = lane;
    results[8u * i + 2u] = subgroupInclusiveAdd(value);
    results[8u * i + 3u] = subgroupMax(value);
    results[8u * i + 4u] = subgroupBallotExclusiveBitCount(odd);
    results[8u * i + 5u] = subgroupShuffle(value, SUBGROUP_SIZE - 1u - lane);
    results[8u * i + 6u] = subgroupShuffleXor(value, 1u);
    results[8u * i + 7u] = subgroupBroadcast(value, 3u);
}
