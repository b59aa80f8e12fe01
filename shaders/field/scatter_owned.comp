#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
// Pass scatter_gradients_owned (hash grid, CPU devices): adds the gradients of the live samples'
// features to the entries of a level, one subgroup per level of bucket push.d. The pass suits devices
// that run few subgroups at a time and have slow atomics: only one subgroup adds to a level, so sums
// need no atomics. Lanes are the corners of one sample's cell, for one feature per eight lanes; two
// lanes share an entry only where corners collide.
//
//   buffer                shape                                            access
//   STATE                 live_count (read), nonfinite (write)             read, write
//   LIVE                  [live sample] u32                                read
//   RAYS, SAMPLES, FIELD  [ray], [sample], canonical positions             read
//   FEATURES              [level][sample][feature]: gradients of features  read
//   GRADIENTS             [level][entry][feature] f32                      read, write
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/canonical.glsl"
#include "field/unit_cube.glsl"
#include "field/features.glsl"
#include "shared/finite.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(GRADIENTS)) subgroupcoherent buffer GradientBuffer { float gradients[]; };

#include "field/live_samples.glsl"

const uint AT_ONCE = SUBGROUP_SIZE / 8u; // features per iteration
uint lane = gl_SubgroupInvocationID;

uvec3 broadcast(uvec3 x, uint from)
{
    return uvec3(subgroupBroadcast(x.x, from), subgroupBroadcast(x.y, from), subgroupBroadcast(x.z, from));
}

vec3 broadcast(vec3 x, uint from)
{
    return vec3(subgroupBroadcast(x.x, from), subgroupBroadcast(x.y, from), subgroupBroadcast(x.z, from));
}

void add(uint at, float value)
{
    gradients[at] += value;
    subgroupMemoryBarrierBuffer();
}

// Returns whether two corners of a cell share an entry. In a hash table corners of different parity
// never share one, because their hashes differ in the lowest bit; all other pairs of corners differ
// along two axes.
bool corners_collide(Level table, bool is_dense, uvec3 cell)
{
    if (is_dense)
        return any(greaterThan(cell + 1u, uvec3(table.resolution - 1u)));
    uvec3 change = uvec3(cell.x ^ (cell.x + 1u), cell.y * 2654435761u ^ (cell.y + 1u) * 2654435761u,
                         cell.z * 805459861u ^ (cell.z + 1u) * 805459861u) &
                   (table.entries - 1u);
    return change.x == change.y || change.y == change.z || change.z == change.x;
}

void scatter_level(uint level, bool is_dense)
{
    Level table = config.levels[level];
    uvec3 offset = corner_offset(lane & 7u);
    uint count = gradient_count();
    bool any_overflows = false;
    for (uint base = 0; base < count; base += SUBGROUP_SIZE) {
        uint index = gradient_sample(min(base + lane, count - 1u));
        vec3 inside;
        uvec3 cell = grid_cell(level, to_unit_cube(canonical_position(index)), inside);
        bool has_sample = base + lane < count;
        vec4 gradient = has_sample ? get_level_features(level, index) : vec4(0.0);
        any_overflows = any_overflows || overflows(gradient);
        [[unroll]] for (uint s = 0; s < SUBGROUP_SIZE; s++) {
            uvec3 corner = broadcast(cell, s);
            bool collide = corners_collide(table, is_dense, corner);
            uint entry = is_dense ? dense_entry(table, corner + offset) : hashed_entry(table, corner + offset);
            float weight = corner_weight(lane & 7u, broadcast(inside, s));
            [[unroll]] for (uint f = 0; f < FEATURES; f += AT_ONCE) {
                float lane_gradient = subgroupBroadcast(gradient[f], s);
                [[unroll]] for (uint k = 1; k < AT_ONCE; k++) {
                    float other = subgroupBroadcast(gradient[f + k], s);
                    lane_gradient = lane / 8u == k ? other : lane_gradient;
                }
                uint at = table.first + entry * FEATURES + f + lane / 8u;
                if (!collide)
                    add(at, weight * lane_gradient);
                else
                    for (uint turn = 0; turn < 8u; turn++)
                        if ((lane & 7u) == turn)
                            add(at, weight * lane_gradient);
            }
        }
    }
    if (any_overflows)
        state.nonfinite = 1u;
}

void main()
{
    uint end = config.buckets[push.d + 1u].level;
    for (uint level = config.buckets[push.d].level + gl_WorkGroupID.x; level < end; level += gl_NumWorkGroups.x)
        if (config.levels[level].dense != 0u)
            scatter_level(level, true);
        else
            scatter_level(level, false);
}
