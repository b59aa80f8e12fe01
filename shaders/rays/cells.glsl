// Chooses the cells of the occupancy grid that an update evaluates in each group of four neighbours:
// all cells during the warm-up, later one random cell and one occupied cell (instant-ngp samples a
// quarter of the cells at random and a quarter among occupied cells).
// Passes: update_occupancy, pick_cells.

const uint CELL_GROUPS = TIME_BIN_CELLS / 4u;

// Returns the number of cells per group that an update evaluates.
uint cells_per_group()
{
    return state.step < OCCUPANCY_WARMUP ? 4u : 2u;
}

vec4 decayed_cells(uint group)
{
    vec4 value; // not an array: arrays that are indexed dynamically live in memory
    for (uint k = 0; k < 4u; k++) {
        value[k] = occupancy[4u * group + k];
        if (value[k] > 0.0)
            value[k] *= config.occupancy_decay;
    }
    return value;
}

// Returns whether a group is in this rank's share of the cells. Multiples of the golden ratio spread
// the blocks evenly over the ranks, for any stride of workgroups.
bool in_own_share(uint group)
{
    uint hash = group / CELL_BLOCK * 0x9e3779b9u >> 16;
    return hash * config.cell_shares >> 16 == config.cell_share;
}

// Returns which of the four cells an iteration evaluates, or 4 for none. Cells that no camera sees
// (negative values) and groups in other ranks' shares are never evaluated.
uint chosen_cell(uint group, vec4 value, uint round)
{
    uvec3 bits = random_bits(state.step, group, RANDOM_CELL);
    uint random_cell = bits.x & 3u; // evaluated whatever the cell's value
    uint occupied_cell = 4u;            // the first other cell above the threshold, from a random cell on
    for (uint k = 0; k < 4u; k++) {
        uint cell = (k + (bits.x >> 2)) & 3u;
        if (occupied_cell == 4u && cell != random_cell && value[cell] > state.threshold)
            occupied_cell = cell;
    }
    uint k = cells_per_group() == 4u ? round : round == 0u ? random_cell : occupied_cell;
    return k < 4u && value[min(k, 3u)] >= 0.0 && in_own_share(group) ? k : 4u;
}

// Returns a random position in the k-th cell of a group.
vec3 random_cell_position(uint group, uint k)
{
    uint index = 4u * group + k;
    vec3 inside = random_unit(state.step, group, RANDOM_CELL + 1u + k);
    return cell_position(index / CELLS, morton_decode(index % CELLS), inside);
}
