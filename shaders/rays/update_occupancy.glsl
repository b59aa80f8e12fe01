// Pass update_occupancy: decays groups of four neighbouring cells and raises some of the cells to the
// field's density at a random position in each. A cell's value is the optical thickness of the
// smallest marching step, density * step_min; in contracted space the density is per unit of
// contracted radius. The including file includes rays/occupancy.glsl and declares
//   float density(vec3 position)   in training space; called by whole workgroups
//   bool any_row(bool needed)      false where density() may be skipped
//
//   buffer     shape                                                            access
//   STATE      step, threshold                                                  read
//   OCCUPANCY  [cascade][cell] f32                                              read, write
//   REDUCE     REDUCE_OCCUPANCY [workgroup] f32: sums of the innermost cascade  write

#include "shared/rows.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(OCCUPANCY)) buffer OccupancyBuffer { float occupancy[]; };
layout(std430, BINDING(REDUCE)) writeonly buffer ReduceBuffer { float reduce[]; };

#include "rays/cells.glsl"

shared float sums[TILE_ROWS];

// Decays and evaluates four cells; returns the sum of their values.
float update_group(uint group, bool exists)
{
    vec4 value = decayed_cells(group);
    for (uint round = 0; round < cells_per_group(); round++) {
        uint k = exists ? chosen_cell(group, value, round) : 4u;
        bool is_chosen = k < 4u;
        if (!any_row(is_chosen))
            continue;
        k = min(k, 3u);
        float found = density(random_cell_position(group, k));
        if (is_chosen)
            value[k] = max(value[k], found * config.step_min);
    }

    float sum = 0.0;
    for (uint k = 0; k < 4u; k++) {
        if (exists && invocation_in_row() == 0u)
            occupancy[4u * group + k] = value[k];
        sum += max(value[k], 0.0);
    }
    return sum;
}

void main()
{
    const uint groups = CELL_GROUPS;
    float sum = 0.0;
    // Keeps whole workgroups in the loop, because the MLPs broadcast between lanes.
    uint base = gl_WorkGroupID.x * TILE_ROWS;
    if (base >= groups)
        return;
    do {
        uint group = base + tile_row();
        float added = update_group(min(group, groups - 1u), group < groups);
        // The threshold uses the mean of the innermost cascade.
        sum += group < CELLS / 4u ? added : 0.0;
        base += gl_NumWorkGroups.x * TILE_ROWS;
    } while (base < groups);
    if (invocation_in_row() == 0u)
        sums[tile_row()] = sum;
    barrier();
    if (invocation() == 0u) {
        for (uint i = 1; i < TILE_ROWS; i++)
            sum += sums[i];
        reduce[REDUCE_OCCUPANCY + gl_WorkGroupID.x] = sum;
    }
}
