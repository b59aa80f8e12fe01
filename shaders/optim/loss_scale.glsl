// Once in a step: are loss and gradient finite, the gradient's norm, the clip factor; the loss scale
// grows, holds or backs off (PyTorch's GradScaler: x growth after `interval` good steps, x backoff on
// overflow), between minimum and maximum. Leaves the step's figures in the ring that the host reads late.
//
// Hysteresis is that of DeepSpeed's DynamicLossScaler with its default, and of Megatron-LM: the first
// `hysteresis - 1` overflows leave the scale as it is, every further one lowers it, and only a scale that
// grows tolerates as many again. A tolerated overflow is a skipped step, but no back-off.
//
// A falling scale lowers the learning rate: after `falls` back-offs without an interval of good steps
// between, the rate is multiplied by `rate_cut_factor`, for good. In healthy training the scale goes up
// and down by one factor; when it only falls, the gradients grow faster than training absorbs. What
// falls before a first good step does not count: a skipped step changes no weight, so the scale has
// only begun too high (or says nothing yet about a rate that was just lowered).

layout(std430, BINDING(STATS)) writeonly buffer StatsBuffer { Stats stats[]; };

void adapt_scale(bool finite)
{
    if (finite) {
        state.settled = 1u;
        if (state.good_steps < config.scale_interval)
            return;
        state.loss_scale = min(state.loss_scale * config.scale_growth, config.scale_maximum);
        state.good_steps = 0u;
        state.backoffs = 0u;
        state.tolerated = 0u;
        return;
    }
    if (state.tolerated + 1u < config.scale_hysteresis) {
        state.tolerated++;
        return;
    }
    state.loss_scale = max(state.loss_scale * config.scale_backoff, config.scale_minimum);
    if (state.settled == 0u)
        return;
    state.backoffs++;
    if (state.backoffs < config.max_backoffs)
        return;
    state.backoffs = 0u;
    state.settled = 0u;
    if (config.rate_cut_factor < 1.0)
        state.rate_cuts = min(state.rate_cuts + 1u, MAX_RATE_CUTS);
}

// From the sums of loss, squared error and squared gradient.
void update_loss_scale(vec3 sum)
{
    float scale = state.loss_scale;
    float norm = sqrt(sum.z);
    // The loss as well: the derivative of an absolute value hides a NaN from the gradient.
    bool finite = state.nonfinite == 0u && !isnan(norm) && !isinf(norm) && !isnan(sum.x) &&
                  !isinf(sum.x);
    float factor = 1.0 / scale;
    if (finite && config.clip_norm > 0.0 && norm > config.clip_norm)
        factor *= config.clip_norm / norm;
    state.nonfinite = finite ? 0u : 1u;
    state.gradient_factor = factor;
    state.grad_norm = norm;
    if (finite) {
        state.updates++;
        state.good_steps++;
    } else {
        state.skipped_steps++;
        state.good_steps = 0u;
    }
    if (config.scale_kind == SCALE_DYNAMIC)
        adapt_scale(finite);

    float rays = max(float(state.live_rays), 1.0);
    float underflowed = float(state.underflowed) / max(float(state.rounded), 1.0);
    stats[state.step % STATS_RING] =
        Stats(state.step, state.ray_count * config.ranks, state.sample_count, state.live_count, sum.x / rays,
              sum.y / rays, state.learning_rate, scale, norm, state.skipped_steps, underflowed,
              state.rate_cuts);
}
