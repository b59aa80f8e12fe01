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

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };

#include "field/live_samples.glsl"

#include "field/accumulate.glsl"

#ifdef SUM_FIXED
const bool MERGES_RUNS = false; // float sums of runs would depend on which samples are neighbours
#else
const bool MERGES_RUNS = true;
#endif

// Neighbouring samples are mostly of one ray and, in coarse levels, in one cell: the lanes of such a
// run first sum their gradients, and only the run's last lane adds them to the table.
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
    bool starts = lane == 0u || key != subgroupShuffle(key, max(lane, 1u) - 1u);
    uvec4 run_starts = subgroupBallot(starts);
    run.first = subgroupBallotFindMSB(run_starts & gl_SubgroupLeMask);
    run.is_last = lane == SUBGROUP_SIZE - 1u || subgroupBallotBitExtract(run_starts, lane + 1u);
    // The sums need shuffles, which pay off if they save half of the atomics.
    return subgroupBallotBitCount(run_starts) <= SUBGROUP_SIZE / 2u;
}

// Returns the sum over the run's lanes up to this lane (Hillis and Steele, Data Parallel Algorithms,
// 1986).
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

// All lanes of a subgroup call this function, with a sample or without one.
void scatter(uint level, uint i, bool has_sample)
{
    uint index = gradient_sample(i);
    vec4 gradient = has_sample ? get_level_features(level, index) : vec4(0.0);
    bool has_gradient = gradient != vec4(0.0); // true for NaN
    vec3 inside;
    uvec3 cell = grid_cell(level, to_unit_cube(canonical_position(index)), inside);
    Level table = config.levels[level];
    Run run;
    bool sums_runs = find_runs(level, cell, has_gradient, run);
    bool adds = has_gradient && (!sums_runs || run.is_last);
    [[unroll]] for (uint corner = 0; corner < 8u; corner++) {
        uint entry = grid_entry(table, cell + corner_offset(corner));
        vec4 values = corner_weight(corner, inside) * gradient;
        if (sums_runs)
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
    uint first = config.buckets[push.d].level, levels = config.buckets[push.d + 1u].level - first;
    for (uint tile = gl_WorkGroupID.x; tile < tiles * levels; tile += gl_NumWorkGroups.x) {
        uint i = tile % tiles * LOCAL_SIZE + mine;
        scatter(first + tile / tiles, min(i, count - 1u), i < count);
    }
}
