#version 460
#extension GL_GOOGLE_include_directive : require
// Per live sample and level: the gradient of the grid's features, spread over the corners of the
// sample's cell by atomics. One level after the other, so that its table stays in cache. How sums are
// kept, fastest first:
//   SUM_FLOAT      atomic f32 addition
//   SUM_HALF       two f16 at once in BIND_FIXED (opt-in: 11 bits, and overflow above 65504)
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
#include "field/sample.glsl"
#include "field/place.glsl"
#include "field/features.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };

#include "field/live.glsl"

#if defined(SUM_FLOAT)
layout(std430, BINDING(GRADIENTS)) buffer GradientBuffer { float gradients[]; };

void add_gradients(uint index, vec2 values)
{
    atomicAdd(gradients[index], values.x);
    atomicAdd(gradients[index + 1u], values.y);
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

void add_gradients(uint index, vec2 values)
{
    add_gradient(index, values.x);
    add_gradient(index + 1u, values.y);
}
#elif defined(SUM_HALF)
layout(std430, BINDING(FIXED)) buffer HalfSumBuffer { f16vec2 half_sums[]; };

void add_gradients(uint index, vec2 values)
{
    atomicAdd(half_sums[index / 2u], f16vec2(values));
}
#elif defined(SUM_HALF_SWAP)
layout(std430, BINDING(FIXED)) buffer HalfSumBuffer { uint half_sums[]; };

void add_gradients(uint index, vec2 values)
{
    uint expected = half_sums[index / 2u], found = expected;
    do {
        expected = found;
        uint sum = packHalf2x16(unpackHalf2x16(expected) + values);
        found = atomicCompSwap(half_sums[index / 2u], expected, sum);
    } while (found != expected);
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

void add_gradients(uint index, vec2 values)
{
    add_gradient(index, values.x);
    add_gradient(index + 1u, values.y);
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
vec2 sum_run(vec2 values, Run run)
{
    uint lane = gl_SubgroupInvocationID;
    [[unroll]] for (uint reach = 1; reach < SUBGROUP_SIZE; reach *= 2u) {
        uint from = max(lane, reach) - reach;
        vec2 before = vec2(subgroupShuffle(values.x, from), subgroupShuffle(values.y, from));
        if (lane >= run.first + reach)
            values += before;
    }
    return values;
}

// All lanes of a subgroup come here; `used`: this one has a sample.
void scatter(uint level, uint i, bool used)
{
    uint index = gradient_sample(i);
    vec2 gradient[FEATURES / 2u];
    bool any_gradient = false;
    for (uint f = 0; f < FEATURES / 2u; f++) {
        gradient[f] = used ? get_features(level, index, f) : vec2(0.0);
        any_gradient = any_gradient || gradient[f] != vec2(0.0); // true for NaN
    }
    vec3 direction, inside;
    vec3 position = sample_position(index, direction);
    uvec3 cell = grid_cell(level, to_unit_cube(position), inside);
    Run run;
    bool runs = find_runs(level, cell, any_gradient, run);
    [[unroll]] for (uint corner = 0; corner < 8u; corner++) {
        uint entry = grid_entry(level, cell + corner_offset(corner));
        float weight = corner_weight(corner, inside);
        for (uint f = 0; f < FEATURES / 2u; f++) {
            vec2 values = weight * gradient[f];
            if (runs)
                values = sum_run(values, run);
            if (any_gradient && (!runs || run.last))
                add_gradients(entry + 2u * f, values);
        }
    }
}

void main()
{
    uint count = gradient_count();
    uint tiles = (count + LOCAL_SIZE - 1u) / LOCAL_SIZE;
    uint mine = gl_SubgroupID * SUBGROUP_SIZE + gl_SubgroupInvocationID;
    for (uint tile = gl_WorkGroupID.x; tile < tiles * LEVELS; tile += gl_NumWorkGroups.x) {
        uint i = tile % tiles * LOCAL_SIZE + mine;
        scatter(tile / tiles, min(i, count - 1u), i < count);
    }
}
