// A proposal's training. What includes this has declared state, whose step counts from 1 within a step.

// Whether it learns in this step: later it changes little.
bool proposal_learns()
{
    return state.step <= config.anneal_steps || state.step % config.proposal_interval == 0u;
}

// What its weights are raised to before samples follow them: from 0, when it knows nothing, to 1 (Mip-NeRF 360,
// equation 18).
float anneal_exponent()
{
    const float BIAS = 10.0;
    float share = min(float(state.step) / float(config.anneal_steps), 1.0);
    return BIAS * share / ((BIAS - 1.0) * share + 1.0);
}
