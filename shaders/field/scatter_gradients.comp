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

// LANES neighbouring lanes share a sample. Atomics of one instruction on neighbouring addresses make one
// memory request, so each of the lanes adds another feature. With two features, two lanes take the
// corners with the smaller x, and two lanes those with the larger x, whose entries are mostly the next
// ones in memory. SPEC_SAMPLE_LANES has other values for devices on which the instructions of four
// lanes take longer than the saved requests. 2: a sample has one lane, which computes the sums, and two
// neighbouring lanes exchange them, so that one instruction adds two features of one sample. 1: a
// sample has one lane. Sums in f16 also have one lane per sample, because one atomic adds all features
// of an entry.
#if defined(SUM_F16) || defined(SUM_F16_CAS)
const uint LANES = 1;
const bool EXCHANGES = false;
#else
layout(constant_id = SPEC_SAMPLE_LANES) const uint SAMPLE_LANES = 4;
const uint LANES = SAMPLE_LANES == 4u ? 4u : 1u;
const bool EXCHANGES = SAMPLE_LANES == 2u;
#endif
const uint LANES_IN_X = LANES == 4u && FEATURES == 2u ? 2u : 1u;

// Neighbouring samples are mostly of one ray and, in coarse levels, in one cell: the lanes of such a
// run that have the same feature and corners first sum their gradients, and only the last of these
// lanes adds the sum to the table.
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
    bool starts = lane < LANES || key != subgroupShuffle(key, max(lane, LANES) - LANES);
    uvec4 run_starts = subgroupBallot(starts);
    run.first =
        subgroupBallotFindMSB(run_starts & gl_SubgroupLeMask) / LANES * LANES + lane % LANES;
    run.is_last =
        lane >= SUBGROUP_SIZE - LANES || subgroupBallotBitExtract(run_starts, lane + LANES);
    // The sums need shuffles, which pay off if they save half of the atomics.
    return subgroupBallotBitCount(run_starts) <= SUBGROUP_SIZE / 2u;
}

// Returns the sum over the run's lanes up to this lane (Hillis and Steele, Data Parallel Algorithms,
// 1986).
float sum_run(float value, Run run)
{
    uint lane = gl_SubgroupInvocationID;
    [[unroll]] for (uint reach = LANES; reach < SUBGROUP_SIZE; reach *= 2u) {
        float before = subgroupShuffle(value, max(lane, reach) - reach);
        if (lane >= run.first + reach)
            value += before;
    }
    return value;
}

// Returns a vector that begins with this lane's feature. Selects it without an index, because compilers
// would move an indexed vector to memory.
vec4 own_features(vec4 all)
{
    uint feature = gl_SubgroupInvocationID % FEATURES;
    if (LANES == 1u)
        return all;
    vec2 two = feature < 2u ? all.xy : all.zw;
    return vec4(feature % 2u == 0u ? two.x : two.y, 0.0, 0.0, 0.0);
}

#if !defined(SUM_F16) && !defined(SUM_F16_CAS)
// Adds the sums of two neighbouring lanes, two features by each instruction: the even lane adds the
// even feature of its own sum and then of the odd lane's sum, the odd lane the odd feature. All lanes
// call this function.
void add_exchanged(uint entry, vec4 values, bool adds)
{
    bool is_odd = (gl_SubgroupInvocationID & 1u) != 0u;
    uint parity = is_odd ? 1u : 0u, other_entry = subgroupShuffleXor(entry, 1u);
    bool other_adds = subgroupShuffleXor(adds ? 1u : 0u, 1u) != 0u;
    [[unroll]] for (uint f = 0; f < FEATURES; f += 2u) {
        float sent = is_odd ? values[f] : values[f + 1u], kept = is_odd ? values[f + 1u] : values[f];
        float received = subgroupShuffleXor(sent, 1u);
        if (is_odd ? other_adds : adds) // the even lane's sample
            add_gradient((is_odd ? other_entry : entry) * FEATURES + f + parity, is_odd ? received : kept);
        if (is_odd ? adds : other_adds)
            add_gradient((is_odd ? entry : other_entry) * FEATURES + f + parity, is_odd ? kept : received);
    }
}
#endif

// All lanes of a subgroup call this function, with a sample or without one.
void scatter(uint level, uint i, bool has_sample)
{
    const uint OWN = LANES == 1u ? FEATURES : 1u;
    uint side = gl_SubgroupInvocationID >> 1 & 1u;
    uint index = gradient_sample(i);
    vec4 gradient = has_sample ? get_level_features(level, index) : vec4(0.0);
    bool has_gradient = gradient != vec4(0.0); // true for NaN
    if (overflows(gradient))
        state.nonfinite = 1u;
    gradient = own_features(gradient);
    vec3 inside;
    uvec3 cell = grid_cell(level, to_unit_cube(canonical_position(index)), inside);
    Level table = config.levels[level];
    Run run;
    bool sums_runs = find_runs(level, cell, has_gradient, run);
    bool adds = has_gradient && (!sums_runs || run.is_last);
    [[unroll]] for (uint number = 0; number < 8u / LANES_IN_X; number++) {
        uint corner = LANES_IN_X == 2u ? number << 1 | side : number;
        uint entry = grid_entry(table, cell + corner_offset(corner));
        vec4 values = corner_weight(corner, inside) * gradient;
        if (sums_runs)
            [[unroll]] for (uint f = 0; f < OWN; f++)
                values[f] = sum_run(values[f], run);
#if !defined(SUM_F16) && !defined(SUM_F16_CAS)
        if (EXCHANGES) {
            add_exchanged(entry, values, adds);
            continue;
        }
#endif
        if (!adds)
            continue;
#if defined(SUM_F16) || defined(SUM_F16_CAS)
        add_gradients(entry, values);
#else
        uint first = entry * FEATURES + (LANES == 1u ? 0u : gl_SubgroupInvocationID % FEATURES);
        [[unroll]] for (uint f = 0; f < OWN; f++)
            add_gradient(first + f, values[f]);
#endif
    }
}

void main()
{
    const uint SAMPLES = LOCAL_SIZE / LANES;
    uint count = gradient_count();
    uint tiles = (count + SAMPLES - 1u) / SAMPLES;
    uint mine = (gl_SubgroupID * SUBGROUP_SIZE + gl_SubgroupInvocationID) / LANES;
    uint first = config.buckets[push.d].level, levels = config.buckets[push.d + 1u].level - first;
    for (uint tile = gl_WorkGroupID.x; tile < tiles * levels; tile += gl_NumWorkGroups.x) {
        uint i = tile % tiles * SAMPLES + mine;
        scatter(first + tile / tiles, min(i, count - 1u), i < count);
    }
}
