// Cells of the occupancy grid of a scene that moves: the slices of time that an update raises, and when each cell
// was found to be occupied. What is somewhere at one moment in a hundred would hardly ever be found there again by
// looks at random moments, so looks at what is occupied are at that moment. What includes this has declared state
// and control.
#include "shared/progress.glsl"

layout(constant_id = SPEC_DEFORMED) const uint DEFORMED = 0;

const bool STORES_TIME = DEFORMED != 0u;
const uint TIME_BITS = 0xffu; // the last bits of a cell's value: the moment from 0 to 1

// As long as the curriculum has not come to all moments slices are as one: nobody knows yet what is where at those
// to come, and what a slice has lost at them would never be learnt.
bool bins_merged()
{
    return curriculum_share() < 1.0;
}

// Then updates look at one slice after the other,
uint updated_bin()
{
    return state.step / UPDATE_INTERVAL % TIME_BINS;
}

// and raise its neighbours as well: what moves is soon there, or was.
uint first_updated_bin()
{
    return bins_merged() ? 0u : max(updated_bin(), 1u) - 1u;
}

uint last_updated_bin()
{
    return bins_merged() ? TIME_BINS - 1u : min(updated_bin() + 1u, TIME_BINS - 1u);
}

// Whether an update looks at cells at that moment.
bool is_in_updated_bin(float time)
{
    return bins_merged() || time_bin_of(time) == updated_bin();
}

// The value of a cell that was found at that time; what is no number's last bits stays as it is.
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
