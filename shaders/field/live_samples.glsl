// Reads the list of live samples, which are the samples that carry a gradient.
// Passes: all that process live samples. Reads LIVE [live sample] u32.

layout(constant_id = SPEC_DETERMINISTIC) const uint DETERMINISTIC = 0;

layout(std430, BINDING(LIVE)) readonly buffer LiveBuffer { uint live[]; };

// Deterministic mode uses no list, but processes all samples in the order of the rays.
uint gradient_count()
{
    return DETERMINISTIC != 0u ? min(state.sample_count, config.sample_capacity) : state.live_count;
}

uint gradient_sample(uint i)
{
    return DETERMINISTIC != 0u ? i : live[i];
}
