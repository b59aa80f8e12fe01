// Adapts State.keep_gain, the probability with which composite keeps a ray of mean loss, so that the
// share of live samples that carry a gradient converges to batch.keep. The share grows at most in
// proportion to the gain, because probabilities are limited to keep_least and 1; the fourth root damps
// the share's noise. The including file declares STATE as `state`.
// Passes: check_gradients, finish_step.

layout(constant_id = SPEC_KEEP) const uint KEEP = 0;

const float LEAST_GAIN = 1.0 / 1024.0, MOST_GAIN = 1024.0;

// Returns the share of the step's live samples that carry a gradient.
float kept_share()
{
    return float(state.live_count) / max(float(state.reached_count), 1.0);
}

// Updates the gain after a good step. `mean_loss`: of the step's rays, from the main field's composite.
void update_keep(float mean_loss)
{
    if (state.keep_gain == 0.0)
        state.keep_gain = config.keep_share; // right if no probability is clamped
    else if (state.mean_loss > 0.0 && state.reached_count > 0u)
        state.keep_gain = clamp(state.keep_gain * sqrt(sqrt(config.keep_share / max(kept_share(), config.keep_least))),
                                LEAST_GAIN, MOST_GAIN);
    state.mean_loss = mean_loss;
}

// Returns Stats.kept_share and Stats.keep_weight.
vec2 keep_stats()
{
    if (KEEP == 0u)
        return vec2(0.0);
    return vec2(kept_share(), float(state.live_rays) / max(float(state.kept_rays), 1.0));
}
