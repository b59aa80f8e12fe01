#version 460
#extension GL_GOOGLE_include_directive : require
// Pass scatter_gradients_* (hash grid): adds the gradients of each live sample's features to the
// entries at the corners of the sample's cell, as field/accumulate.glsl does. The levels of bucket
// push.d are processed one after the other, so that a level's table stays in cache.
//
//   buffer                     shape                                             access
//   STATE                      live_count, loss scale (read), nonfinite (write)  read, write
//   LIVE                       [live sample] u32                                 read
//   RAYS, SAMPLES, FIELD       [ray], [sample], canonical positions              read
//   FEATURES                   [level][sample][feature]: gradients of features   read
//   GRADIENTS or ACCUMULATORS  [level][entry][feature]                           read, write
#ifdef SUM_FLOAT
#extension GL_EXT_shader_atomic_float : require
#endif
#ifdef SUM_F16
#extension GL_NV_shader_atomic_fp16_vector : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#extension GL_KHR_shader_subgroup_shuffle : require
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/canonical.glsl"
#include "field/unit_cube.glsl"
#include "field/features.glsl"
#include "shared/f16.glsl"
#include "shared/finite.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };

#include "field/live_samples.glsl"

#include "field/accumulate.glsl"

#ifdef SUM_FIXED
const bool MERGES_RUNS = false; // float sums of runs would depend on which samples are neighbours
#else
const bool MERGES_RUNS = true;
#endif

// Atomics of one instruction on neighbouring addresses make one memory request. So four neighbouring
// lanes, each with the sums of a sample of its own, exchange these sums: one instruction then adds four
// of one sample's values that are neighbours in memory. With two features these are the values of two
// corners that are neighbours in x, whose entries are mostly neighbours; with four features, of one
// corner. The instruction does so for a sample of each four lanes; these samples are neighbours, because
// neighbours in memory are likely among them, too: SAMPLE_STRIDE lanes are from one sample to the next.
// SPEC_SAMPLE_LANES is 1 on devices on which the exchange takes longer than the saved requests. Sums in
// f16 need no exchange, because one atomic adds all features of an entry.
#if defined(SUM_F16) || defined(SUM_F16_CAS)
#define ONE_ATOMIC_PER_ENTRY
const bool EXCHANGES = false;
#else
layout(constant_id = SPEC_SAMPLE_LANES) const uint SAMPLE_LANES = 4;
const bool EXCHANGES = SAMPLE_LANES == 4u;
#endif
const uint SAMPLE_STRIDE = EXCHANGES ? 4u : 1u;

// Neighbouring samples are mostly of one ray and, in coarse levels, in one cell: the lanes of such a
// run first sum their gradients, and only the last of these lanes adds the sum to the table.
struct Run {
    uint first;   // first lane
    bool is_last; // whether this lane is the run's last
};

// Finds this lane's run. Returns whether to sum the gradients of runs.
bool find_runs(uint level, uvec3 cell, bool has_gradient, out Run run)
{
    uint lane = gl_SubgroupInvocationID;
    if (!MERGES_RUNS || config.levels[level].resolution > 1024u)
        return false;
    uint key = has_gradient ? cell.x | cell.y << 10 | cell.z << 20 : 0xffffffffu - lane;
    bool starts = lane < SAMPLE_STRIDE ||
                  key != subgroupShuffle(key, max(lane, SAMPLE_STRIDE) - SAMPLE_STRIDE);
    uvec4 run_starts = subgroupBallot(starts);
    uint own_lanes = (EXCHANGES ? 0x11111111u : 0xffffffffu) << lane % SAMPLE_STRIDE;
    run.first = subgroupBallotFindMSB(run_starts & gl_SubgroupLeMask & uvec4(own_lanes));
    run.is_last = lane >= SUBGROUP_SIZE - SAMPLE_STRIDE ||
                  subgroupBallotBitExtract(run_starts, lane + SAMPLE_STRIDE);
    // The sums need shuffles, which pay off if they save half of the atomics.
    return subgroupBallotBitCount(run_starts) <= SUBGROUP_SIZE / 2u;
}

// Returns the sum over the run's lanes up to this lane (Hillis and Steele, Data Parallel Algorithms,
// 1986).
float sum_run(float value, Run run)
{
    uint lane = gl_SubgroupInvocationID;
    [[unroll]] for (uint reach = SAMPLE_STRIDE; reach < SUBGROUP_SIZE; reach *= 2u) {
        float before = subgroupShuffle(value, max(lane, reach) - reach);
        if (lane >= run.first + reach)
            value += before;
    }
    return value;
}

#ifndef ONE_ATOMIC_PER_ENTRY
// Transposes the matrix that four neighbouring lanes hold, a row each: component k of a lane becomes
// component `lane % 4` of the k-th of these lanes. First transposes the blocks of 2 x 2, then the
// elements of each block.
uvec4 transpose_lanes(uvec4 row)
{
    bool is_odd = (gl_SubgroupInvocationID & 1u) != 0u, is_high = (gl_SubgroupInvocationID & 2u) != 0u;
    uvec2 block = subgroupShuffleXor(is_high ? row.xy : row.zw, 2u);
    row = is_high ? uvec4(block, row.zw) : uvec4(row.xy, block);
    uvec2 element = subgroupShuffleXor(is_odd ? row.xz : row.yw, 1u);
    return is_odd ? uvec4(element.x, row.y, element.y, row.w) : uvec4(row.x, element.x, row.z, element.y);
}

// Adds the sums of four neighbouring lanes, one after the other: an instruction adds the four values of
// one lane's sample, a lane each. `entries` are the entries of these values; `lanes` has a bit for each
// lane whose sample adds. All lanes call this function.
void add_exchanged(uvec4 entries, vec4 values, uint lanes)
{
    uvec4 words = transpose_lanes(floatBitsToUint(values));
    entries = transpose_lanes(entries);
    uint feature = gl_SubgroupInvocationID % FEATURES;
    [[unroll]] for (uint k = 0; k < 4u; k++)
        if ((lanes >> k & 1u) != 0u)
            add_gradient(entries[k] * FEATURES + feature, uintBitsToFloat(words[k]));
}
#endif

// All lanes of a subgroup call this function, with a sample or without one.
void scatter(uint level, uint i, bool has_sample)
{
    const uint VALUES = EXCHANGES ? 4u : FEATURES; // that are added together
    uint index = gradient_sample(i);
    vec4 gradient = has_sample ? get_level_features(level, index) : vec4(0.0);
    bool has_gradient = gradient != vec4(0.0); // true for NaN
    if (overflows(gradient))
        state.nonfinite = 1u;
    vec3 inside;
    uvec3 cell = grid_cell(level, to_unit_cube(canonical_position(index)), inside);
    Level table = config.levels[level];
    Run run;
    bool sums_runs = find_runs(level, cell, has_gradient, run);
    bool adds = has_gradient && (!sums_runs || run.is_last);
    uint lanes = EXCHANGES ? subgroupBallot(adds)[gl_SubgroupInvocationID / 32u] >> (gl_SubgroupInvocationID & 28u) : 0u;
    [[unroll]] for (uint first = 0; first < 8u * FEATURES; first += VALUES) {
        uvec4 entries;
        vec4 values;
        [[unroll]] for (uint v = 0; v < VALUES; v++) {
            uint corner = (first + v) / FEATURES;
            entries[v] = grid_entry(table, cell + corner_offset(corner));
            values[v] = corner_weight(corner, inside) * gradient[v % FEATURES];
        }
        if (sums_runs)
            [[unroll]] for (uint v = 0; v < VALUES; v++)
                values[v] = sum_run(values[v], run);
#ifdef ONE_ATOMIC_PER_ENTRY
        if (adds)
            add_gradients(entries.x, values);
#else
        if (EXCHANGES)
            add_exchanged(entries, values, lanes);
        else if (adds)
            [[unroll]] for (uint f = 0; f < FEATURES; f++)
                add_gradient(entries[f] * FEATURES + f, values[f]);
#endif
    }
}

void main()
{
    uint count = gradient_count();
    uint tiles = (count + LOCAL_SIZE - 1u) / LOCAL_SIZE;
    uint lane = gl_SubgroupInvocationID, mine = gl_SubgroupID * SUBGROUP_SIZE + lane / SAMPLE_STRIDE +
                                                lane % SAMPLE_STRIDE * (SUBGROUP_SIZE / SAMPLE_STRIDE);
    uint first = config.buckets[push.d].level, levels = config.buckets[push.d + 1u].level - first;
    for (uint tile = gl_WorkGroupID.x; tile < tiles * levels; tile += gl_NumWorkGroups.x) {
        uint i = tile % tiles * LOCAL_SIZE + mine;
        scatter(first + tile / tiles, min(i, count - 1u), i < count);
    }
}
