#version 460
#extension GL_GOOGLE_include_directive : require
// Per group of four neighbouring cells: decay, then the field's density at a random point of some
// of them: all four at first, later one at random and one that is occupied (instant-ngp samples a
// quarter of the cells each way). The value is the optical thickness of a smallest marching step.
#include "shared/common.glsl"
#include "rays/occupancy.glsl"
#include "field/encoding.glsl"
#include "field/mlp.glsl"
#include "field/inputs.glsl"

layout(std430, set = 0, binding = BIND_STATE) readonly buffer StateBuffer { State state; };
layout(std430, set = 0, binding = BIND_OCCUPANCY) buffer OccupancyBuffer { float occupancy[]; };
layout(std430, set = 0, binding = BIND_REDUCE) writeonly buffer ReduceBuffer { float reduce[]; };

shared float sums[LOCAL_SIZE];

void main()
{
    uint group = gl_GlobalInvocationID.x;
    bool inside = group < CASCADES * CELLS / 4u;
    uint first = inside ? 4u * group : 0u;
    float value[4];
    for (uint k = 0; k < 4u; k++) {
        value[k] = occupancy[first + k];
        if (value[k] > 0.0)
            value[k] *= config.occupancy_decay;
    }

    uvec3 bits = random_bits(state.step, group, RANDOM_CELL);
    uint pick = bits.x & 3u;      // the cell chosen whatever it holds
    uint occupied = 4u;           // the first one above the threshold, counting from a random place
    for (uint k = 0; k < 4u; k++) {
        uint cell = (k + (bits.x >> 2)) & 3u;
        if (occupied == 4u && cell != pick && value[cell] > state.threshold)
            occupied = cell;
    }
    bool all = state.step < OCCUPANCY_WARMUP;
    for (uint k = 0; k < 4u; k++) {
        bool chosen = inside && value[k] >= 0.0 && (all || k == pick || k == occupied);
        if (!subgroupAny(chosen))
            continue;
        uint index = first + k;
        vec3 place = random_unit(state.step, group, RANDOM_CELL + 1u + k);
        encode_position(cell_position(index / CELLS, morton_decode(index % CELLS), place));
        density_forward();
        if (chosen)
            value[k] = max(value[k], exp(values[AT_GEOMETRY]) * config.step_min);
    }

    float sum = 0.0;
    for (uint k = 0; k < 4u; k++) {
        if (inside)
            occupancy[first + k] = value[k];
        sum += max(value[k], 0.0);
    }
    // The threshold follows the mean over the innermost cascade.
    sums[gl_LocalInvocationIndex] = inside && first < CELLS ? sum : 0.0;
    barrier();
    if (gl_LocalInvocationIndex == 0u && gl_WorkGroupID.x < REDUCE_GROUPS) {
        sum = 0.0;
        for (uint i = 0; i < LOCAL_SIZE; i++)
            sum += sums[i];
        reduce[REDUCE_OCCUPANCY + gl_WorkGroupID.x] = sum;
    }
}
