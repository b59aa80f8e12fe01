// Cells of the occupancy grid of a scene that moves: the slices of time that an update raises, and when each cell
// was found to be occupied. What is somewhere at one moment in a hundred would hardly ever be found there again by
// looks at random moments, so looks at what is occupied are at that moment. What includes this has declared state
// and control.
#include "shared/progress.glsl"

layout(constant_id = SPEC_WARPED) const uint WARPED = 0;

const bool REMEMBERS = WARPED != 0u;
const uint MOMENTS = 0xffu; // the last bits of a cell's value: the moment from 0 to 1

// As long as the curriculum has not come to all moments slices are as one: nobody knows yet what is where at those
// to come, and what a slice has lost at them would never be learnt.
bool are_one()
{
    return followed_share() < 1.0;
}

// Then updates look at one slice after the other,
uint looked_at()
{
    return state.step / PERIOD_STEPS % SLICES;
}

// and raise its neighbours as well: what moves is soon there, or was.
uint first_raised()
{
    return are_one() ? 0u : max(looked_at(), 1u) - 1u;
}

uint last_raised()
{
    return are_one() ? SLICES - 1u : min(looked_at() + 1u, SLICES - 1u);
}

// Whether an update looks at cells at that moment.
bool is_looked_at(float time)
{
    return are_one() || slice_of(time) == looked_at();
}

// The value of a cell that was found at that time; what is no number's last bits stays as it is.
float found_at(float value, float time)
{
    if (!REMEMBERS || value < 1e-30)
        return value;
    uint moment = uint(clamp(time, 0.0, 1.0) * float(MOMENTS) + 0.5);
    return uintBitsToFloat((floatBitsToUint(value) & ~MOMENTS) | moment);
}

float moment_of(float value)
{
    return float(floatBitsToUint(value) & MOMENTS) / float(MOMENTS);
}
