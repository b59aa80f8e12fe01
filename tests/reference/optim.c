/* Adam (Kingma and Ba 2015), loss scaling (PyTorch's GradScaler), learning rate and ray count. */
#include "reference/reference.h"

#include <float.h>
#include <math.h>

void reference_adam_update(const struct reference_adam *adam, uint32_t count, double gradient,
                           double *weight, double *moment1, double *moment2)
{
    double g = gradient + adam->decay * *weight;
    *moment1 = adam->beta1 * *moment1 + (1 - adam->beta1) * g;
    *moment2 = adam->beta2 * *moment2 + (1 - adam->beta2) * g * g;
    double correction1 = 1 - pow(adam->beta1, count), correction2 = 1 - pow(adam->beta2, count);
    /* The paper's more efficient order (section 2), epsilon beside the uncorrected root. */
    double rate = adam->rate * sqrt(correction2) / correction1;
    *weight -= rate * *moment1 / (sqrt(*moment2) + adam->epsilon);
}

double reference_learning_rate(const struct Config *config, uint32_t step, double time_progress)
{
    double rate = config->learning_rate, decays = 0;
    bool limited = config->total_steps != UINT32_MAX;
    double progress = limited ? (double)step / config->total_steps : 0;
    if (config->time_schedule)
        progress = fmax(progress, time_progress);
    if (limited || config->time_schedule)
        for (size_t i = 0; i < BASE_COUNT(config->milestones); i++)
            decays += progress >= config->milestones[i];
    else if (step >= config->decay_start)
        decays = 1 + floor((double)(step - config->decay_start) / config->decay_interval);
    rate *= pow(config->decay_factor, decays);
    return step < config->warmup_steps ? rate * (step + 1) / config->warmup_steps : rate;
}

uint32_t reference_ray_count(const struct Config *config, const struct State *last)
{
    if (last->live_rays == 0)
        return last->ray_count;
    double live_per_ray = fmax(last->live_count, 1) / last->live_rays;
    double samples_per_ray = fmax(last->sample_count, 1) / last->ray_count;
    double wanted = config->target_samples / live_per_ray;
    double fitting = 0.9 * config->sample_capacity / samples_per_ray;
    double next = fmin(fmin(wanted, fitting), 2.0 * last->ray_count);
    next = fmin(fmax(next, 64), config->ray_capacity);
    return (uint32_t)next / 64 * 64;
}

double reference_scheduled_scale(const struct Config *config, uint32_t step, double initial)
{
    uint32_t reached = 0;
    for (uint32_t i = 0; i < config->scale_points; i++)
        reached += config->schedule[i].step <= step;
    return reached > 0 ? config->schedule[reached - 1].scale : initial;
}

/* After scale_falls back-offs since the scale last grew the learning rate is cut; back-offs that no
 * good step came before, since the start or the last cut, do not count. */
static void back_off(const struct Config *config, struct State *state)
{
    bool counts = state->settled;
    state->falls += counts;
    if (!counts || state->falls != config->scale_falls)
        return;
    bool cuts = config->fall_factor != 1 && state->rate_cuts < MAX_RATE_CUTS;
    state->rate_cuts += cuts;
    state->falls = state->settled = 0;
}

void reference_loss_scale(const struct Config *config, bool finite, struct State *state)
{
    double scale = state->loss_scale;
    state->updates += finite;
    state->skipped_steps += !finite;
    state->good_steps = finite ? state->good_steps + 1 : 0;
    if (config->scale_kind != SCALE_DYNAMIC)
        return;
    if (!finite)
        back_off(config, state);
    else
        state->settled = 1;
    if (!finite)
        scale = fmax(scale * config->scale_backoff, FLT_MIN);
    else if (state->good_steps >= config->scale_interval) {
        /* Its reciprocal is a normal number too. */
        scale = fmin(scale * config->scale_growth, 1 / FLT_MIN);
        state->good_steps = state->falls = 0;
    }
    state->loss_scale = (float)scale;
}
