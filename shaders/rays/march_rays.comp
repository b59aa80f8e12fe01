#version 460
#extension GL_GOOGLE_include_directive : require
// Pass march_rays (variants march_rays_count, march_rays_write, march_view_rays): places samples at
// the steps of a ray that lie in occupied cells, one subgroup per ray. The lanes test consecutive
// steps; hits are compacted by ballot into shared memory.
//
//   buffer          shape                                              access
//   RAYS            [ray]                                              read; write: step, last
//   OCCUPANCY_BITS  [time bin][cascade][cell] 1 bit, then [block] u32  read
//   STATE           ray count (read), sample_count (write)             read, write
//   RESULTS         [ray] first, count                                 write
//   SAMPLES         [sample]; not with MARCH_COUNT                     write
#include "shared/common.glsl"
#include "rays/march.glsl"
#include "rays/occupancy.glsl"
#include "rays/empty_space.glsl"
#include "rays/sample_rays.glsl"

layout(std430, BINDING(OCCUPANCY_BITS)) readonly buffer BitBuffer { uint bits[]; };

shared float staged[SUBGROUPS][MAX_RAY_SAMPLES];

// Returns whether the ray at step n is in an occupied cell of the time bin whose first cell is
// `time_bin`. If the cell is empty, `exit` becomes the first step beyond the cell or, if the cell's
// whole block is empty, beyond the block.
bool probe(vec3 origin, vec3 direction, uint time_bin, float n, out float exit)
{
    float t = from_steps(n);
    vec3 p = origin + t * direction;
    uint cascade = cascade_at(p, step_at(t));
    vec3 unit = to_cells(p, cascade);
    uvec3 cell = to_unsigned(clamp(floor(unit), 0.0, float(RESOLUTION - 1u)));
    uint index = time_bin + cascade * CELLS + morton_encode(cell);
    if ((bits[index >> 5] >> (index & 31u) & 1u) != 0u) {
        exit = n;
        return true;
    }
    float edge = bits[BLOCK_BASE + index / BLOCK_CELLS] == 0u ? float(OCCUPANCY_BLOCK) : 1.0;
    vec3 low = floor(unit / edge) * edge;
    float distance = cascade >= CUBE_CASCADES ? contracted_distance(from_center(p), direction, low, edge)
                                      : cascade_distance(unit, direction, low, edge, cascade);
    exit = ceil(to_steps(t + max(distance, 0.0)) - n) + n;
    return false;
}

void sample_ray(uint ray, uint limit)
{
    vec3 origin = vec3(rays[ray].origin[0], rays[ray].origin[1], rays[ray].origin[2]);
    vec3 direction = vec3(rays[ray].direction[0], rays[ray].direction[1], rays[ray].direction[2]);
    float base = rays[ray].step;
    float last = rays[ray].last;
    uint time_bin = time_bin_of(rays[ray].time) * TIME_BIN_CELLS;
    uint count = 0;
    while (base <= last && count < limit) {
        float n = base + float(gl_SubgroupInvocationID);
        float exit = n;
        bool hit = n <= last && probe(origin, direction, time_bin, n, exit);
        uvec4 ballot = subgroupBallot(hit);
        uint slot = count + subgroupBallotExclusiveBitCount(ballot);
        if (hit && slot < limit)
            staged[gl_SubgroupID][slot] = n;
        count += subgroupBallotBitCount(ballot);
        // Steps between the last lane's step and its exit are in empty cells, which are skipped.
        float skip = subgroupMax(gl_SubgroupInvocationID == SUBGROUP_SIZE - 1u ? exit : 0.0);
        base = max(base + float(SUBGROUP_SIZE), skip);
    }
    wait_for_staged();
    if (count >= limit) {
        count = limit;
        base = staged[gl_SubgroupID][limit - 1u] + 1.0;
    }

    uint first;
    bool fits = reserve_samples(ray, count, first);
#ifndef MARCH_COUNT
    if (fits)
        for (uint i = gl_SubgroupInvocationID; i < count; i += SUBGROUP_SIZE) {
            float t = from_steps(staged[gl_SubgroupID][i]);
            samples[first + i] = Sample(t, step_at(t), ray);
        }
#endif
#ifndef TRAIN
    if (subgroupElect())
        rays[ray].step = base;
#endif
    wait_for_staged(); // before the next ray is staged
}
