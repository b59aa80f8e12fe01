// The samples that carry a gradient.

layout(constant_id = SPEC_DETERMINISTIC) const uint DETERMINISTIC = 0;

layout(std430, BINDING(LIVE)) readonly buffer LiveBuffer { uint live[]; };

// Without compaction the order of the samples is the rays', whatever the timing.
uint gradient_count()
{
    return DETERMINISTIC != 0u ? min(state.sample_count, config.sample_capacity) : state.live_count;
}

uint gradient_sample(uint i)
{
    return DETERMINISTIC != 0u ? i : live[i];
}
