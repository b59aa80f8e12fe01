// Per group of four neighbouring cells: decay, then the field's density at a random point of some
// of them: all four at first, later one at random and one that is occupied (instant-ngp samples a
// quarter of the cells each way). The value is the optical thickness of a smallest marching step, in
// contracted units where space is contracted, as density is.
//
// For every kind of field: what includes this has declared rays/occupancy.glsl and
//   float density(vec3 position)   in training space; whole workgroups call it together
//   bool any_row(bool needed)      whether density() is needed: it may be left out where not

#include "shared/rows.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(OCCUPANCY)) buffer OccupancyBuffer { float occupancy[]; };
layout(std430, BINDING(REDUCE)) writeonly buffer ReduceBuffer { float reduce[]; };

shared float sums[TILE_ROWS];

// Decays and evaluates four cells; returns the sum of their values.
float update_group(uint group, bool inside)
{
    uint first = 4u * group;
    vec4 value; // not an array: those that are indexed by number live in memory
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
    for (uint round = 0; round < (all ? 4u : 2u); round++) {
        uint k = all ? round : round == 0u ? pick : occupied;
        bool chosen = inside && k < 4u && value[min(k, 3u)] >= 0.0;
        if (!any_row(chosen))
            continue;
        k = min(k, 3u);
        uint index = first + k;
        vec3 place = random_unit(state.step, group, RANDOM_CELL + 1u + k);
        float found = density(cell_position(index / CELLS, morton_decode(index % CELLS), place));
        if (chosen)
            value[k] = max(value[k], found * config.step_min);
    }

    float sum = 0.0;
    for (uint k = 0; k < 4u; k++) {
        if (inside && row_part() == 0u)
            occupancy[first + k] = value[k];
        sum += max(value[k], 0.0);
    }
    return sum;
}

void main()
{
    uint groups = CASCADES * CELLS / 4u;
    float sum = 0.0;
    // Whole workgroups stay together: the MLPs broadcast between lanes.
    uint base = gl_WorkGroupID.x * TILE_ROWS;
    if (base >= groups)
        return;
    do {
        uint group = base + tile_row();
        float added = update_group(min(group, groups - 1u), group < groups);
        // The threshold follows the mean over the innermost cascade.
        sum += group < CELLS / 4u ? added : 0.0;
        base += gl_NumWorkGroups.x * TILE_ROWS;
    } while (base < groups);
    if (row_part() == 0u)
        sums[tile_row()] = sum;
    barrier();
    if (invocation() == 0u) {
        for (uint i = 1; i < TILE_ROWS; i++)
            sum += sums[i];
        reduce[REDUCE_OCCUPANCY + gl_WorkGroupID.x] = sum;
    }
}
