// Computes the schedule of a proposal's training. The including file declares state. Within a step
// State.step counts from 1.
// Passes: begin_step, finish_step, check_gradients, sample_proposal.

// Returns whether this step trains the proposal, as all steps do during annealing and then every
// proposal_interval-th step.
bool proposal_learns()
{
    return state.step <= config.anneal_steps || state.step % config.proposal_interval == 0u;
}

// Returns the exponent of the proposal's weights in sampling: from 0, while the proposal is untrained,
// to 1 (Mip-NeRF 360, equation 18).
float anneal_exponent()
{
    const float BIAS = 10.0;
    float share = min(float(state.step) / float(config.anneal_steps), 1.0);
    return BIAS * share / ((BIAS - 1.0) * share + 1.0);
}
