#version 460
#extension GL_GOOGLE_include_directive : require
// Per live sample and level: the gradient of the grid's features, spread over the corners of the
// sample's cell by atomics. One level of the piece push.d after the other, so that its table stays in cache. How sums are
// kept, fastest first:
//   SUM_FLOAT      atomic f32 addition
//   SUM_HALF       two or four f16 at once in BIND_FIXED, where the optimiser reads them (opt-in: 11 bits,
//                  and overflow above 65504)
//   SUM_FIXED      64-bit fixed point in two words: the same in any order
//   SUM_SWAP       f32 by compare-and-swap
//   SUM_HALF_SWAP  SUM_HALF where the device lacks the instruction
#ifdef SUM_FLOAT
#extension GL_EXT_shader_atomic_float : require
#endif
#ifdef SUM_HALF
#extension GL_NV_shader_atomic_fp16_vector : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#extension GL_KHR_shader_subgroup_shuffle : require
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/canonical.glsl"
#include "field/place.glsl"
#include "field/features.glsl"
#include "shared/half.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };

#include "field/live.glsl"

#if defined(SUM_FLOAT)
layout(std430, BINDING(GRADIENTS)) buffer GradientBuffer { float gradients[]; };

void add_gradient(uint index, float value)
{
    atomicAdd(gradients[index], value);
}
#elif defined(SUM_SWAP)
layout(std430, BINDING(GRADIENTS)) buffer GradientBuffer { uint gradients[]; };

void add_gradient(uint index, float value)
{
    uint expected = gradients[index], found = expected;
    do {
        expected = found;
        uint sum = floatBitsToUint(uintBitsToFloat(expected) + value);
        found = atomicCompSwap(gradients[index], expected, sum);
    } while (found != expected);
}
#elif defined(SUM_HALF)
layout(std430, BINDING(FIXED)) buffer HalfPairBuffer { f16vec2 half_pairs[]; };
layout(std430, BINDING(FIXED)) buffer HalfFourBuffer { f16vec4 half_fours[]; };

void add_gradients(uint entry, vec4 values)
{
    if (FEATURES == 4u)
        atomicAdd(half_fours[entry], f16vec4(values));
    else
        atomicAdd(half_pairs[entry], f16vec2(values));
}
#elif defined(SUM_HALF_SWAP)
layout(std430, BINDING(FIXED)) buffer HalfSumBuffer { uint half_sums[]; };

void add_pair(uint index, vec2 values)
{
    uint expected = half_sums[index], found = expected;
    do {
        expected = found;
        uint sum = pack_half(unpackHalf2x16(expected) + values);
        found = atomicCompSwap(half_sums[index], expected, sum);
    } while (found != expected);
}

void add_gradients(uint entry, vec4 values)
{
    add_pair(entry * FEATURES / 2u, values.xy);
    if (FEATURES == 4u)
        add_pair(2u * entry + 1u, values.zw);
}
#else
layout(std430, BINDING(FIXED)) buffer FixedBuffer { uint fixed_sums[]; };

// Adds to a 64-bit sum held in two words. The carry out of the low word follows from its value
// before the addition, so the total is exact whatever the order.
void add_gradient(uint index, float value)
{
    // Units of 2^-42 of a gradient whose loss is summed over the rays: split without a 64-bit type.
    float scaled = value * (float(state.ray_count) / state.loss_scale) *
                   float(FIXED_SCALE / 4294967296.0);
    if (!(abs(scaled) < 1073741824.0)) { // NaN, infinite or beyond what the sum holds
        state.nonfinite = 1u;
        return;
    }
    float whole = floor(scaled);
    uint high = uint(int(whole));
    uint low = uint(min((scaled - whole) * 4294967296.0, 4294967040.0));
    uint before = atomicAdd(fixed_sums[2u * index], low);
    uint carry = before + low < before ? 1u : 0u;
    if (high + carry != 0u)
        atomicAdd(fixed_sums[2u * index + 1u], high + carry);
}
#endif

#if !defined(SUM_HALF) && !defined(SUM_HALF_SWAP)
// Those of an entry.
void add_gradients(uint entry, vec4 values)
{
    [[unroll]] for (uint f = 0; f < FEATURES; f++)
        add_gradient(entry * FEATURES + f, values[f]);
}
#endif

#ifdef SUM_FIXED
const bool ALONG_RAYS = false; // sums of floats would depend on which samples are neighbours
#else
const bool ALONG_RAYS = true;
#endif

// Neighbouring samples are mostly of one ray, and in coarse levels share their cell: such a run of
// lanes adds up its gradients first, and its last lane alone adds them to the table.
struct Run {
    uint first; // lane
    bool last;  // this lane is
};

bool find_runs(uint level, uvec3 cell, bool used, out Run run)
{
    uint lane = gl_SubgroupInvocationID;
    if (!ALONG_RAYS || config.levels[level].resolution > 1024u)
        return false;
    uint key = used ? cell.x | cell.y << 10 | cell.z << 20 : 0xffffffffu - lane;
    bool head = lane == 0u || key != subgroupShuffle(key, max(lane, 1u) - 1u);
    uvec4 heads = subgroupBallot(head);
    run.first = subgroupBallotFindMSB(heads & gl_SubgroupLeMask);
    run.last = lane == SUBGROUP_SIZE - 1u || subgroupBallotBitExtract(heads, lane + 1u);
    // Adding up costs shuffles: worth it when it saves half of the atomics.
    return subgroupBallotBitCount(heads) <= SUBGROUP_SIZE / 2u;
}

// Sum over the run's lanes up to this one (Hillis and Steele, Data Parallel Algorithms, 1986).
vec4 sum_run(vec4 values, Run run)
{
    uint lane = gl_SubgroupInvocationID;
    [[unroll]] for (uint reach = 1; reach < SUBGROUP_SIZE; reach *= 2u) {
        uint from = max(lane, reach) - reach;
        vec4 before = subgroupShuffle(values, from);
        if (lane >= run.first + reach)
            values += before;
    }
    return values;
}

// All lanes of a subgroup come here; `used`: this one has a sample.
void scatter(uint level, uint i, bool used)
{
    uint index = gradient_sample(i);
    vec4 gradient = used ? get_level_features(level, index) : vec4(0.0);
    bool any_gradient = gradient != vec4(0.0); // true for NaN
    vec3 inside;
    uvec3 cell = grid_cell(level, to_unit_cube(canonical_position(index)), inside);
    Level table = config.levels[level];
    Run run;
    bool runs = find_runs(level, cell, any_gradient, run);
    bool adds = any_gradient && (!runs || run.last);
    [[unroll]] for (uint corner = 0; corner < 8u; corner++) {
        uint entry = grid_entry(table, cell + corner_offset(corner));
        vec4 values = corner_weight(corner, inside) * gradient;
        if (runs)
            values = sum_run(values, run);
        if (adds)
            add_gradients(entry, values);
    }
}

void main()
{
    uint count = gradient_count();
    uint tiles = (count + LOCAL_SIZE - 1u) / LOCAL_SIZE;
    uint mine = gl_SubgroupID * SUBGROUP_SIZE + gl_SubgroupInvocationID;
    uint first = config.pieces[push.d].level, levels = config.pieces[push.d + 1u].level - first;
    for (uint tile = gl_WorkGroupID.x; tile < tiles * levels; tile += gl_NumWorkGroups.x) {
        uint i = tile % tiles * LOCAL_SIZE + mine;
        scatter(first + tile / tiles, min(i, count - 1u), i < count);
    }
}
