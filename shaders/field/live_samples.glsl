// Lists the live samples, which carry a gradient.
// Passes: those of live samples. Reads LIVE [live sample] u32.

layout(constant_id = SPEC_DETERMINISTIC) const uint DETERMINISTIC = 0;

layout(std430, BINDING(LIVE)) readonly buffer LiveBuffer { uint live[]; };

// Deterministic mode processes all samples in the order of the rays, independent of timing, instead of
// a compacted list.
uint gradient_count()
{
    return DETERMINISTIC != 0u ? min(state.sample_count, config.sample_capacity) : state.live_count;
}

uint gradient_sample(uint i)
{
    return DETERMINISTIC != 0u ? i : live[i];
}
