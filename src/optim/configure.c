/* Computes the optimiser's constants from a configuration: loss scale, schedules, groups. */
#include "optim/optim.h"

#include <float.h>
#include <math.h>

#include "base/base.h"

_Static_assert(MAX_SCHEDULE_POINTS == VKN_SCHEDULE_POINTS, "host and shaders have as many points");

/* Copies the points of a schedule. Returns their number. */
static uint32_t copy_points(const struct vkn_schedule_point from[VKN_SCHEDULE_POINTS],
                            struct SchedulePoint to[MAX_SCHEDULE_POINTS])
{
    uint32_t count = 0;
    for (; count < VKN_SCHEDULE_POINTS && from[count].value > 0.0f; count++)
        to[count] = (struct SchedulePoint){from[count].step, from[count].value};
    return count;
}

static void configure_loss_scale(const struct vkn_config *config, struct Config *constants)
{
    static const uint32_t kinds[] = {
        [VKN_LOSS_SCALE_DEFAULT] = SCALE_STATIC,
        [VKN_LOSS_SCALE_STATIC] = SCALE_STATIC,
        [VKN_LOSS_SCALE_DYNAMIC] = SCALE_DYNAMIC,
        [VKN_LOSS_SCALE_SCHEDULE] = SCALE_SCHEDULE,
    };
    constants->scale_kind = kinds[config->loss_scale.kind];
    constants->scale_growth = config->loss_scale.growth;
    constants->scale_backoff = config->loss_scale.backoff;
    constants->scale_interval = config->loss_scale.interval;
    constants->scale_underflow = config->loss_scale.underflow;
    constants->max_backoffs = config->loss_scale.max_backoffs;
    constants->rate_cut_factor = config->loss_scale.rate_cut_factor;
    constants->scale_minimum = fmaxf(config->loss_scale.minimum, FLT_MIN);
    /* 2^126: the reciprocal is the smallest normal number. */
    constants->scale_maximum =
        config->loss_scale.maximum > 0 ? config->loss_scale.maximum : 1 / FLT_MIN;
    constants->scale_hysteresis = config->loss_scale.hysteresis;
    constants->scale_points = copy_points(config->loss_scale.schedule, constants->schedule);
}

static void configure_rate(const struct vkn_config *config, struct Config *constants)
{
    static const uint32_t kinds[] = {
        [VKN_RATE_DEFAULT] = RATE_STEP,
        [VKN_RATE_STEP] = RATE_STEP,
        [VKN_RATE_EXPONENTIAL] = RATE_EXPONENTIAL,
        [VKN_RATE_COSINE] = RATE_COSINE,
        [VKN_RATE_FILE] = RATE_POINTS,
    };
    constants->rate_kind = kinds[config->optimizer.schedule];
    constants->learning_rate = config->optimizer.learning_rate;
    constants->final_rate = config->optimizer.final_rate;
    constants->rate_points = copy_points(config->optimizer.rates, constants->rates);
    constants->warmup_steps = config->optimizer.warmup_steps;
    constants->decay_factor = config->optimizer.decay_factor;
    for (size_t i = 0; i < BASE_COUNT(constants->milestones); i++)
        constants->milestones[i] =
            i < BASE_COUNT(config->optimizer.milestones) ? config->optimizer.milestones[i] : 2.0f;
    constants->decay_start = config->optimizer.decay_start;
    constants->decay_interval = config->optimizer.decay_interval;
}

void optim_configure(const struct vkn_config *config, struct Config *constants)
{
    constants->total_steps = config->steps > 0 ? config->steps : UINT32_MAX;
    /* With a time limit the rate follows the elapsed time, unless the run is deterministic. */
    constants->time_schedule = config->seconds > 0 && !config->deterministic;
    constants->beta1 = config->optimizer.beta1;
    constants->beta2 = config->optimizer.beta2;
    constants->epsilon = config->optimizer.epsilon;
    constants->clip_norm = config->optimizer.clip_norm;
    constants->norm_interval = config->optimizer.clip_norm > 0 ? 1 : UPDATE_INTERVAL;
    constants->average_decay = config->optimizer.ema_decay;
    configure_rate(config, constants);
    configure_loss_scale(config, constants);
}

static bool are_paired(const struct ParameterGroup *groups, uint32_t count, uint32_t entry)
{
    bool paired = entry % 2 == 0;
    for (uint32_t i = 0; i < count; i++)
        paired = paired && groups[i].entry == entry && groups[i].first % entry == 0;
    return paired;
}

void optim_configure_groups(const struct vkn_config *config, const struct parameter_group *groups,
                            uint32_t count, struct Config *constants,
                            struct gpu_constants *specialization)
{
    uint32_t parameters = 0, largest = 1;
    for (uint32_t i = 0; i < MAX_PARAMETER_GROUPS; i++)
        constants->groups[i] = (struct ParameterGroup){.first_entry = UINT32_MAX};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t entries = groups[i].count / groups[i].entry;
        constants->groups[i] = (struct ParameterGroup){
            .first = parameters,
            .count = groups[i].count,
            .entry = groups[i].entry,
            .first_entry = groups_entry_count(groups, i + 1) - entries,
            .sparse = groups[i].sparse,
            .rate = groups[i].rate,
            .decay = groups[i].decay * fmaxf(config->optimizer.weight_decay, 0.0f),
        };
        parameters += groups[i].count;
        largest = groups[i].entry > largest ? groups[i].entry : largest;
    }
    constants->entry_count = groups_entry_count(groups, count);
    specialization->values[SPEC_OPTIMIZER] = config->optimizer.kind;
    specialization->values[SPEC_BF16_MOMENTS] = optim_packs_moments(config);
    specialization->values[SPEC_ENTRY_SIZE] = largest;
    specialization->values[SPEC_PAIRED] = are_paired(constants->groups, count, largest);
}
