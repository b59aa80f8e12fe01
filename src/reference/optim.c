/* Reference optimisers, loss scaling (PyTorch's GradScaler), learning rate and ray count. */
#include "reference/reference.h"

#include <math.h>

/* Kingma and Ba 2015. */
static void update_adam(const struct reference_optimizer *adam, uint32_t count, double gradient,
                        double *weight, double *moment1, double *moment2)
{
    double g = gradient + adam->decay * *weight;
    *moment1 = adam->beta1 * *moment1 + (1 - adam->beta1) * g;
    *moment2 = adam->beta2 * *moment2 + (1 - adam->beta2) * g * g;
    if (adam->f16_moments) {
        *moment1 = reference_round_to_f16(*moment1);
        *moment2 = reference_round_to_f16(*moment2);
    }
    double correction1 = 1 - pow(adam->beta1, count), correction2 = 1 - pow(adam->beta2, count);
    /* The paper's more efficient order (section 2): epsilon is added to the uncorrected root. */
    double rate = adam->rate * sqrt(correction2) / correction1;
    *weight -= rate * *moment1 / (sqrt(*moment2) + adam->epsilon);
    if (adam->f16_weights)
        *weight = reference_round_to_f16(*weight);
}

/* Chen et al. 2023, algorithm 2: the decay is decoupled from the gradient. */
static void update_lion(const struct reference_optimizer *lion, uint32_t count, double gradient,
                        /* A reference_update's: NOLINTNEXTLINE(readability-non-const-parameter) */
                        double *weight, double *moment1, double *moment2)
{
    (void)count, (void)moment2;
    double update = lion->beta1 * *moment1 + (1 - lion->beta1) * gradient;
    update = (update > 0) - (update < 0);
    *moment1 = lion->beta2 * *moment1 + (1 - lion->beta2) * gradient;
    if (lion->f16_moments)
        *moment1 = reference_round_to_f16(*moment1);
    *weight -= lion->rate * (update + lion->decay * *weight);
    if (lion->f16_weights)
        *weight = reference_round_to_f16(*weight);
}

reference_update *const reference_updates[] = {
    [VKN_OPTIMIZER_ADAM] = update_adam,
    [VKN_OPTIMIZER_LION] = update_lion,
};

static double stepped_rate(const struct Config *config, uint32_t step, double progress)
{
    double decays = 0;
    if (config->total_steps != UINT32_MAX || config->time_schedule)
        for (size_t i = 0; i < BASE_COUNT(config->milestones); i++)
            decays += progress >= config->milestones[i];
    else if (step >= config->decay_start)
        decays = 1 + floor((double)(step - config->decay_start) / config->decay_interval);
    return config->learning_rate * pow(config->decay_factor, decays);
}

/* Interpolates linearly between the two points around the step. */
static double interpolated_rate(const struct Config *config, uint32_t step)
{
    const struct SchedulePoint *points = config->rates;
    uint32_t after = 0; /* the first point in the future */
    while (after < config->rate_points && points[after].step <= step)
        after++;
    if (after == 0 || after == config->rate_points)
        return points[after > 0 ? after - 1 : 0].value;
    double from = points[after - 1].step, slope = (double)points[after].value;
    slope = (slope - (double)points[after - 1].value) / (points[after].step - from);
    return points[after - 1].value + slope * (step - from);
}

static double scheduled_rate(const struct Config *config, uint32_t step, double progress)
{
    double first = config->learning_rate, last = config->final_rate;
    switch (config->rate_kind) {
    case RATE_EXPONENTIAL:
        return exp(log(first) * (1 - progress) + log(last) * progress);
    case RATE_COSINE:
        return last + (first - last) * (1 + cos(acos(-1.0) * progress)) / 2;
    case RATE_POINTS:
        return interpolated_rate(config, step);
    default:
        return stepped_rate(config, step, progress);
    }
}

double reference_progress(const struct Config *config, uint32_t step, double time_progress)
{
    double progress = config->total_steps != UINT32_MAX ? (double)step / config->total_steps : 0;
    return config->time_schedule ? fmax(progress, time_progress) : progress;
}

double reference_learning_rate(const struct Config *config, uint32_t step, double time_progress)
{
    double progress = reference_progress(config, step, time_progress);
    double rate = scheduled_rate(config, step, fmin(progress, 1));
    return step < config->warmup_steps ? rate * (step + 1) / config->warmup_steps : rate;
}

uint32_t reference_ray_count(const struct Config *config, const struct State *last)
{
    if (last->live_rays == 0)
        return last->ray_count;
    double live_per_ray = fmax(last->live_count, 1) / last->live_rays;
    double samples_per_ray = fmax(last->sample_count, 1) / (last->ray_count * config->ranks);
    double wanted = config->target_samples / live_per_ray;
    double fitting = 0.9 * config->sample_capacity / samples_per_ray;
    if (config->ray_samples > 0) /* of each ray; the capacity suffices for all */
        fitting = config->ray_capacity;
    double next = fmin(fmin(wanted, fitting), 2.0 * last->ray_count);
    next = fmin(fmax(next, 64), config->ray_capacity);
    return (uint32_t)next / 64 * 64;
}

double reference_keep_gain(const struct Config *config, const struct State *last)
{
    if (last->keep_gain == 0)
        return config->keep_share;
    if (last->mean_loss == 0 || last->reached_count == 0)
        return last->keep_gain;
    double kept = fmax((double)last->live_count / last->reached_count, config->keep_least);
    return fmin(fmax(last->keep_gain * pow(config->keep_share / kept, 0.25), 1.0 / 1024), 1024);
}

double reference_scheduled_scale(const struct Config *config, uint32_t step, double initial)
{
    uint32_t reached = 0;
    for (uint32_t i = 0; i < config->scale_points; i++)
        reached += config->schedule[i].step <= step;
    return reached > 0 ? config->schedule[reached - 1].value : initial;
}

/* Cuts the learning rate after max_backoffs back-offs without growth between. Back-offs before the
 * first good step, since the start or the last cut, do not count. */
static void back_off(const struct Config *config, struct State *state)
{
    bool counts = state->settled;
    state->backoffs += counts;
    if (!counts || state->backoffs != config->max_backoffs)
        return;
    bool cuts = config->rate_cut_factor != 1 && state->rate_cuts < MAX_RATE_CUTS;
    state->rate_cuts += cuts;
    state->backoffs = state->settled = 0;
}

void reference_loss_scale(const struct Config *config, bool finite, struct State *state)
{
    double scale = state->loss_scale;
    state->updates += finite;
    state->skipped_steps += !finite;
    state->good_steps = finite ? state->good_steps + 1 : 0;
    if (config->scale_kind != SCALE_DYNAMIC)
        return;
    /* DeepSpeed counts down from the hysteresis to 1, and then backs off at each overflow. */
    bool tolerates = !finite && config->scale_hysteresis > 1 + state->tolerated;
    state->tolerated += tolerates;
    state->settled |= finite;
    if (!finite && !tolerates) {
        back_off(config, state);
        scale = fmax(scale * config->scale_backoff, config->scale_minimum);
    }
    /* While too many gradients underflow, 16 good steps suffice until the first overflow. */
    bool overflowed = state->backoffs > 0 || state->tolerated > 0;
    bool early = state->good_steps % 16 == 0 && !overflowed &&
                 state->underflowed > (double)config->scale_underflow * state->rounded;
    if (finite && (early || state->good_steps >= config->scale_interval)) {
        scale = fmin(scale * config->scale_growth, config->scale_maximum);
        state->good_steps = state->backoffs = state->tolerated = 0;
    }
    state->loss_scale = (float)scale;
}
