// Updates the loss scale once per step, at the end of check_gradients or finish_step: tests loss and gradient for
// NaN and infinity, computes the gradient norm and the clip factor, adapts the scale, and writes
// STATS.
//
// The scale adapts as in PyTorch's GradScaler, between a minimum and a maximum: it is multiplied by
// scale_growth after scale_interval good steps and by scale_backoff on overflow. While more than a
// share scale_underflow of the gradients underflow, it also grows after every UPDATE_INTERVAL good
// steps, unless an overflow was counted since its last growth: a larger scale would overflow again.
//
// Hysteresis works as in DeepSpeed's DynamicLossScaler by default, and as in Megatron-LM: the
// first `scale_hysteresis - 1` overflows leave the scale unchanged, every further overflow lowers it,
// and only a growth of the scale resets the count. A tolerated overflow skips the step.
//
// Repeated back-offs lower the learning rate: after `max_backoffs` back-offs without a growth between
// them, the rate is multiplied by `rate_cut_factor` for the rest of the training. In healthy training
// the scale goes up and down by one factor; if the scale only falls, the training diverges. Back-offs
// before the first good step, also the first after a cut of the rate, do not count: they show only
// that the scale is still too high.

layout(std430, BINDING(STATS)) writeonly buffer StatsBuffer { Stats stats[]; };

// Returns the share of this step's f16 gradients that underflowed.
float underflowed_share()
{
    return float(state.underflowed) / max(float(state.rounded), 1.0);
}

// Returns whether the scale grows before the end of scale_interval.
bool grows_early()
{
    return state.good_steps % UPDATE_INTERVAL == 0u && state.backoffs + state.tolerated == 0u &&
           underflowed_share() > config.scale_underflow;
}

void adapt_scale(bool is_finite)
{
    if (is_finite) {
        state.settled = 1u;
        if (state.good_steps < config.scale_interval && !grows_early())
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

// Updates State and Stats from the sums of loss, squared error, squared gradient and distortion loss,
// and from the loss of the coarse field or the proposal, negative if the step trains neither. In a step
// without the norm (`has_norm` is false) the sum of squared gradients is 0, or infinite if the coarse
// field's gradients overflow.
void update_loss_scale(vec4 sum, float coarse_loss, bool has_norm)
{
    float scale = state.loss_scale;
    float norm = sqrt(sum.z), all_losses = sum.x + sum.w + coarse_loss;
    // Also tests the losses: the derivative of an absolute value hides a NaN from the gradient.
    bool is_finite = state.nonfinite == 0u && !isnan(norm) && !isinf(norm) && !isnan(all_losses) &&
                  !isinf(all_losses);
    float factor = 1.0 / scale;
    if (is_finite && config.clip_norm > 0.0 && norm > config.clip_norm)
        factor *= config.clip_norm / norm;
    state.nonfinite = is_finite ? 0u : 1u;
    state.gradient_factor = factor;
    state.update_rate = state.learning_rate;
    state.update_skipped = state.nonfinite;
    if (is_finite) {
        state.grad_norm = has_norm ? norm : state.grad_norm;
        state.updates++;
        state.good_steps++;
    } else {
        state.skipped_steps++;
        state.good_steps = 0u;
    }
    if (config.scale_kind == SCALE_DYNAMIC)
        adapt_scale(is_finite);

    float rays = max(float(state.live_rays), 1.0);
    float reported_norm = !is_finite ? uintBitsToFloat(0x7f800000u) : has_norm ? norm : -1.0;
    vec2 kept = keep_stats();
    stats[state.step % STATS_RING] =
        Stats(state.step, state.ray_count * config.ranks, state.sample_count, state.live_count, sum.x / rays,
              sum.y / rays, state.learning_rate, scale, reported_norm, state.skipped_steps,
              underflowed_share(), state.rate_cuts, sum.w / rays, coarse_loss / rays, kept.x, kept.y);
}
