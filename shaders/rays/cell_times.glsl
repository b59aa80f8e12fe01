// Selects the time bins of the occupancy grid that an update evaluates and raises, and stores with
// each cell the time at which the cell was found occupied. Random times would hardly ever find a cell
// that is occupied for a hundredth of the time, so occupied cells are evaluated at their stored time.
// The including file declares state and control.
// Passes: pick_cells, store_cells.
#include "shared/progress.glsl"

layout(constant_id = SPEC_DEFORMED) const uint DEFORMED = 0;

const bool STORES_TIME = DEFORMED != 0u;
const uint TIME_BITS = 0xffu; // mask of the last bits of a cell's value, which hold the time, 0 to 1

// Returns whether an update treats all time bins as one, as updates do until the curriculum has
// reached all times: densities at later times are not known yet, and cells that had decayed to empty
// by then would not be trained.
bool bins_merged()
{
    return curriculum_share() < 1.0;
}

// Returns the time bin that this update evaluates. Updates evaluate the bins in turn.
uint updated_bin()
{
    return state.step / UPDATE_INTERVAL % TIME_BINS;
}

// Return the first and last bin that this update raises: also the evaluated bin's neighbours, because
// objects were or soon are in the cell at those times.
uint first_updated_bin()
{
    return bins_merged() ? 0u : max(updated_bin(), 1u) - 1u;
}

uint last_updated_bin()
{
    return bins_merged() ? TIME_BINS - 1u : min(updated_bin() + 1u, TIME_BINS - 1u);
}

// Returns whether this update evaluates cells at a time.
bool is_in_updated_bin(float time)
{
    return bins_merged() || time_bin_of(time) == updated_bin();
}

// Stores the time in the last bits of a cell's value, unless the value is zero or negative.
float with_stored_time(float value, float time)
{
    if (!STORES_TIME || value < 1e-30)
        return value;
    uint quantized = uint(clamp(time, 0.0, 1.0) * float(TIME_BITS) + 0.5);
    return uintBitsToFloat((floatBitsToUint(value) & ~TIME_BITS) | quantized);
}

float stored_time(float value)
{
    return float(floatBitsToUint(value) & TIME_BITS) / float(TIME_BITS);
}
