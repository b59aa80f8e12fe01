// Which cells of the occupancy grid an update looks at, per group of four neighbouring ones: all at first, later
// one at random and one that is occupied (instant-ngp samples a quarter of the cells each way).

const uint CELL_GROUPS = TIME_BIN_CELLS / 4u;

// Rounds that an update goes through a group in.
uint cells_per_group()
{
    return state.step < OCCUPANCY_WARMUP ? 4u : 2u;
}

vec4 decayed_cells(uint group)
{
    vec4 value; // not an array: those that are indexed by number live in memory
    for (uint k = 0; k < 4u; k++) {
        value[k] = occupancy[4u * group + k];
        if (value[k] > 0.0)
            value[k] *= config.occupancy_decay;
    }
    return value;
}

// Whether a group is in this device's share. Multiples of the golden ratio spread blocks evenly over the shares,
// and any stride of workgroups as well.
bool in_own_share(uint group)
{
    uint place = group / CELL_BLOCK * 0x9e3779b9u >> 16;
    return place * config.cell_shares >> 16 == config.cell_share;
}

// The cell of a round among the four; 4: none. Those that no camera sees are negative and never looked at, those of
// other devices' shares are not looked at by this one.
uint chosen_cell(uint group, vec4 value, uint round)
{
    uvec3 bits = random_bits(state.step, group, RANDOM_CELL);
    uint pick = bits.x & 3u;      // the cell chosen whatever it holds
    uint occupied = 4u;           // the first one above the threshold, counting from a random place
    for (uint k = 0; k < 4u; k++) {
        uint cell = (k + (bits.x >> 2)) & 3u;
        if (occupied == 4u && cell != pick && value[cell] > state.threshold)
            occupied = cell;
    }
    uint k = cells_per_group() == 4u ? round : round == 0u ? pick : occupied;
    return k < 4u && value[min(k, 3u)] >= 0.0 && in_own_share(group) ? k : 4u;
}

// A random place in a cell, the k-th of a group.
vec3 random_cell_position(uint group, uint k)
{
    uint index = 4u * group + k;
    vec3 inside = random_unit(state.step, group, RANDOM_CELL + 1u + k);
    return cell_position(index / CELLS, morton_decode(index % CELLS), inside);
}
