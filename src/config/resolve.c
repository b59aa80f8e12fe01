/* Makes configurations effective: sets unset settings to their defaults, and rejects settings that
 * contradict each other. */
#include "config/internal.h"

#include <stdio.h>
#include <string.h>

static bool power_of_two(uint32_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

static vkn_status check_resolution(const struct vkn_config *config)
{
    const struct config_setting *setting = config_find("march.resolution");
    uint32_t resolution = config->march.resolution;
    if (power_of_two(resolution) && resolution >= setting->minimum &&
        resolution <= setting->maximum)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "config: %s: %u is not a power of two from %.10g to %.10g",
                     setting->key, resolution, setting->minimum, setting->maximum);
}

static vkn_status check_march(const struct vkn_config *config)
{
    BASE_TRY(check_resolution(config));
    if (config->scene.contraction == VKN_CONTRACTION_CUBE && !(config->march.cone_angle > 1e-5F))
        return base_fail(VKN_BAD_INPUT,
                         "config: march.cone_angle: %g: contracted space (scene.contraction) needs "
                         "growing steps, a value above 1e-5",
                         (double)config->march.cone_angle);
    if (config->march.far_distance > 0.0F &&
        config->march.far_distance <= config->march.near_distance)
        return base_fail(VKN_BAD_INPUT,
                         "config: march.far_distance: %g is not beyond march.near_distance, %g",
                         (double)config->march.far_distance, (double)config->march.near_distance);
    if (config->march.alpha_threshold > config->march.occupancy_threshold)
        return base_fail(
            VKN_BAD_INPUT,
            "config: march.alpha_threshold: %g is above march.occupancy_threshold, %g: samples "
            "that keep a cell occupied would be skipped",
            (double)config->march.alpha_threshold, (double)config->march.occupancy_threshold);
    return VKN_OK;
}

/* Models other than layered have fixed encodings and activations. */
static vkn_status check_field(const struct vkn_config *config)
{
    const struct vkn_config model = {.model = config->model, .dynamic = config->dynamic};
    const char *wrong = NULL;
    if (config_is_layered(config))
        return VKN_OK;
    if (config->field.activation != VKN_ACTIVATION_RELU)
        wrong = "activation";
    if (config->field.direction != config_rule_direction(&model, NULL, 0))
        wrong = "direction";
    if (config->field.position != config_rule_position(&model, NULL, 0))
        wrong = "position";
    return wrong ? base_fail(VKN_BAD_INPUT,
                             "config: field.%s: model %s has a fixed one; use model=layered", wrong,
                             config_model_names[config->model])
                 : VKN_OK;
}

static vkn_status check_least(const struct vkn_config *config, const char *key)
{
    const struct config_setting *setting = config_find(key);
    double value = config_get(setting, 0, config);
    if (value < setting->minimum)
        return base_fail(VKN_BAD_INPUT, "config: %s: %.10g is below %.10g", key, value,
                         setting->minimum);
    return VKN_OK;
}

/* Checks a loss scale against loss_scale.minimum and loss_scale.maximum. */
static vkn_status check_scale(const struct vkn_config *config, const char *key, float scale)
{
    float minimum = config->loss_scale.minimum, maximum = config->loss_scale.maximum;
    if (scale < minimum)
        return base_fail(VKN_BAD_INPUT, "config: %s: %.8g is below loss_scale.minimum %.8g", key,
                         (double)scale, (double)minimum);
    if (maximum > 0 && scale > maximum)
        return base_fail(VKN_BAD_INPUT, "config: %s: %.8g is above loss_scale.maximum %.8g", key,
                         (double)scale, (double)maximum);
    return VKN_OK;
}

static vkn_status check_loss_scale(const struct vkn_config *config)
{
    const struct vkn_schedule_point *points = config->loss_scale.schedule;
    bool scheduled = config->loss_scale.kind == VKN_LOSS_SCALE_SCHEDULE;
    if (scheduled && !(points[0].value > 0))
        return base_fail(VKN_BAD_INPUT,
                         "config: loss_scale.schedule: empty, but loss_scale.kind is schedule");
    if (config->loss_scale.minimum > 0)
        BASE_TRY(check_scale(config, "loss_scale.minimum", config->loss_scale.minimum));
    for (size_t i = 0; scheduled && i < VKN_SCHEDULE_POINTS && points[i].value > 0; i++) {
        char key[64];
        snprintf(key, sizeof key, "loss_scale.schedule[%zu]", i);
        BASE_TRY(check_scale(config, key, points[i].value));
    }
    return check_scale(config, "loss_scale.initial", config->loss_scale.initial);
}

/* A deterministic run must not depend on time, but a falling learning rate needs a known end. */
static vkn_status check_rate(const struct vkn_config *config)
{
    enum vkn_rate_schedule schedule = config->optimizer.schedule;
    if (schedule == VKN_RATE_FILE && !(config->optimizer.rates[0].value > 0))
        return base_fail(VKN_BAD_INPUT,
                         "config: optimizer.rates: empty, but optimizer.schedule is file");
    if ((schedule == VKN_RATE_EXPONENTIAL || schedule == VKN_RATE_COSINE) &&
        config->deterministic && config->steps == 0)
        return base_fail(VKN_BAD_INPUT,
                         "config: optimizer.schedule: in a deterministic run the learning rate "
                         "depends on the step: set a number of steps (--steps), not only seconds");
    return VKN_OK;
}

static vkn_status check_moments(const struct vkn_config *config)
{
    if (config->optimizer.moments == VKN_MOMENTS_BF16 &&
        config->optimizer.kind != VKN_OPTIMIZER_ADAM)
        return base_fail(VKN_BAD_INPUT, "config: optimizer.moments: bf16 needs the two moments of "
                                        "optimizer.kind=adam");
    return VKN_OK;
}

static vkn_status check_progressive(const struct vkn_config *config)
{
    if (!power_of_two(config->progressive.start_downscale))
        return base_fail(VKN_BAD_INPUT,
                         "config: progressive.start_downscale: %u is neither 2, 4 nor 8",
                         config->progressive.start_downscale);
    if (config->progressive.enabled && config->deterministic && config->steps == 0)
        return base_fail(
            VKN_BAD_INPUT,
            "config: progressive.enabled: in a deterministic run the reduction depends "
            "on the step: set a number of steps (--steps), not only seconds");
    return VKN_OK;
}

static vkn_status check_parallel(const struct vkn_config *config)
{
    if (config->parallel.ranks_per_device > 1 && config->parallel.mode == VKN_PARALLEL_AVERAGE)
        return base_fail(VKN_BAD_INPUT, "config: parallel.ranks_per_device: several ranks per "
                                        "device need parallel.mode=synchronous");
    if (config->parallel.communication_type == VKN_COMMUNICATION_F16 &&
        config->parallel.mode == VKN_PARALLEL_AVERAGE)
        return base_fail(
            VKN_BAD_INPUT,
            "config: parallel.communication_type: f16 is for gradients, but parallel.mode=average "
            "sends parameters");
    if (config->scene.appearance > VKN_APPEARANCE_OFF &&
        config->parallel.mode == VKN_PARALLEL_AVERAGE)
        return base_fail(VKN_BAD_INPUT, "config: scene.appearance: parallel.mode=average does not "
                                        "estimate it; use parallel.mode=synchronous");
    if (config->scene.sky == VKN_SWITCH_ON && config->parallel.mode == VKN_PARALLEL_AVERAGE)
        return base_fail(VKN_BAD_INPUT, "config: scene.sky: parallel.mode=average does not average "
                                        "skies; use parallel.mode=synchronous");
    if (config->scene.refine > VKN_REFINEMENT_OFF && config->parallel.mode == VKN_PARALLEL_AVERAGE)
        return base_fail(VKN_BAD_INPUT, "config: scene.refine: parallel.mode=average does not "
                                        "average cameras; use parallel.mode=synchronous");
    return VKN_OK;
}

static void resolve(const struct config_setting *setting, const struct config_facts *facts,
                    struct vkn_config *config)
{
    if (setting->fallback.origin == CONFIG_SCENE)
        memcpy((char *)config + setting->offset, (const char *)facts + setting->fallback.fact,
               config_setting_size(setting));
    if (setting->fallback.origin != CONFIG_VALUE)
        return;
    for (size_t i = 0; i < setting->count; i++)
        if (config_get(setting, i, config) == 0.0)
            config_put(setting, i, config_default(setting, i, config, facts), config);
}

vkn_status config_resolve(struct vkn_config *config, const struct config_facts *facts)
{
    for (size_t i = 0; i < config_setting_count; i++)
        resolve(&config_settings[i], facts, config);
    BASE_TRY(check_field(config));
    BASE_TRY(check_march(config));
    BASE_TRY(check_least(config, "batch.samples"));
    BASE_TRY(check_least(config, "batch.max_rays"));
    BASE_TRY(check_loss_scale(config));
    BASE_TRY(check_rate(config));
    BASE_TRY(check_moments(config));
    BASE_TRY(check_progressive(config));
    return check_parallel(config);
}
