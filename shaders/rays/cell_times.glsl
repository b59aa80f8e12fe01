// Occupancy grid of a dynamic scene: which time bins an update evaluates and raises, and at which time
// each cell was found occupied. A cell that is occupied for a hundredth of the time would hardly ever
// be found again at random times, so occupied cells are evaluated at the time stored with them. The
// including file declares state and control.
// Passes: pick_cells, store_cells.
#include "shared/progress.glsl"

layout(constant_id = SPEC_DEFORMED) const uint DEFORMED = 0;

const bool STORES_TIME = DEFORMED != 0u;
const uint TIME_BITS = 0xffu; // the last bits of a cell's value: the time, 0 to 1

// Until the curriculum has reached all times, an update treats all time bins as one: densities at
// later times are not known yet, and cells that had decayed to empty by then would not be trained.
bool bins_merged()
{
    return curriculum_share() < 1.0;
}

// Returns the time bin that this update evaluates: one after the other.
uint updated_bin()
{
    return state.step / UPDATE_INTERVAL % TIME_BINS;
}

// Returns the first bin that this update raises: the neighbours as well, because objects are soon
// there or were.
uint first_updated_bin()
{
    return bins_merged() ? 0u : max(updated_bin(), 1u) - 1u;
}

uint last_updated_bin()
{
    return bins_merged() ? TIME_BINS - 1u : min(updated_bin() + 1u, TIME_BINS - 1u);
}

// Returns whether an update evaluates cells at that time.
bool is_in_updated_bin(float time)
{
    return bins_merged() || time_bin_of(time) == updated_bin();
}

// Stores the time in the last bits of a cell's value; leaves zero, negative and NaN values as they
// are.
float with_stored_time(float value, float time)
{
    if (!STORES_TIME || value < 1e-30)
        return value;
    uint moment = uint(clamp(time, 0.0, 1.0) * float(TIME_BITS) + 0.5);
    return uintBitsToFloat((floatBitsToUint(value) & ~TIME_BITS) | moment);
}

float stored_time(float value)
{
    return float(floatBitsToUint(value) & TIME_BITS) / float(TIME_BITS);
}
