#version 460
// Runs subgroup operations and integer atomics for the self-test (src/gpu/self_test.c).
//
//   buffer  shape                        access
//   Values  [workgroup][LOCAL_SIZE] u32  read
//   Slots   [LOCAL_SIZE] Slot            read, write
//   Bins    [bin][3] u32                 read, write
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require

layout(local_size_x_id = 1) in;
layout(constant_id = 0) const uint SUBGROUP_SIZE = 32;
layout(constant_id = 1) const uint LOCAL_SIZE = 64;

// Results of one invocation of the first workgroup. The driver chooses the order of invocations within
// a workgroup, so a slot belongs to (subgroup, lane).
struct Slot {
    uint subgroup_size, visits;
    uint ballot_word, ones_before, ones;
    uint sum, shuffled, unused;
};

layout(std430, set = 0, binding = 0) readonly buffer Values { uint values[]; };
layout(std430, set = 0, binding = 1) buffer Slots { Slot slots[]; };
// [bin][3]: sum, maximum and bitwise or of the values whose remainder is the bin.
layout(std430, set = 0, binding = 2) buffer Bins { uint bins[]; };
layout(push_constant) uniform Push { uint bin_count; };

void main()
{
    uint lane = gl_SubgroupInvocationID;
    uint slot = gl_SubgroupID * SUBGROUP_SIZE + lane;
    uint value = values[gl_WorkGroupID.x * LOCAL_SIZE + slot];

    bool odd = (value & 1u) != 0u;
    uvec4 ballot = subgroupBallot(odd);
    uint ones_before = subgroupBallotExclusiveBitCount(ballot);
    uint ones = subgroupBallotBitCount(ballot);
    uint sum = subgroupInclusiveAdd(value);
    uint shuffled = subgroupShuffle(value, SUBGROUP_SIZE - 1u - lane);
    if (gl_WorkGroupID.x == 0u && slot < LOCAL_SIZE) {
        slots[slot].subgroup_size = gl_SubgroupSize;
        atomicAdd(slots[slot].visits, 1u);
        slots[slot].ballot_word = ballot[lane / 32u];
        slots[slot].ones_before = ones_before;
        slots[slot].ones = ones;
        slots[slot].sum = sum;
        slots[slot].shuffled = shuffled;
    }

    uint bin = value % bin_count;
    atomicAdd(bins[3u * bin], value);
    atomicMax(bins[3u * bin + 1u], value);
    atomicOr(bins[3u * bin + 2u], value);
}
