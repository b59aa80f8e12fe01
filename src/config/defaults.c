/* What settings are that nobody gave: the table's values, rules that make them of others, and what
 * does not go together once all are known. */
#include "config/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- rules ---------------------------------------------------------------------------------- */

#define RULE(name)                                                                               \
    double config_rule_##name(const struct vkn_config *config, const struct config_facts *facts, \
                              double value)
#define UNUSED(name) ((void)(name))

/* Until the device is asked what it can do: that may have come before. */
RULE(precision)
{
    UNUSED(config), UNUSED(facts), UNUSED(value);
    return VKN_PRECISION_FP32;
}

/* Who asks for another encoding or activation than ngp's asks for layers. */
RULE(model)
{
    UNUSED(facts), UNUSED(value);
    return config_model(config);
}

RULE(steps)
{
    UNUSED(facts);
    return config->seconds > 0.0 ? 0.0 : value;
}

static bool is_contracted(const struct vkn_config *config)
{
    return config->scene.contraction == VKN_CONTRACTION_CUBE;
}

/* The grid spans the cube, or twice that where space is contracted. */
RULE(finest)
{
    UNUSED(facts);
    uint32_t sides = is_contracted(config) ? 2 : 1;
    return (uint32_t)value * sides * config->scene.aabb_scale;
}

RULE(cone_angle)
{
    UNUSED(facts);
    return config->scene.aabb_scale > 1 || is_contracted(config) ? value : -1.0;
}

/* instant-ngp's 0.1 keeps floaters away from the lenses. Content that is known to begin nearer than
 * twice that is not cut: half its depth leaves room for what the known depths miss. */
RULE(near_distance)
{
    UNUSED(config);
    float most = (float)value;
    return (double)(facts->near > 0 ? fminf(most, fmaxf(0.5f * facts->near, 1e-3f)) : most);
}

static bool is_vanilla(const struct vkn_config *config)
{
    return config->model == VKN_MODEL_VANILLA ||
           (config->model == VKN_MODEL_DYNAMIC &&
            config->dynamic.canonical == VKN_CANONICAL_VANILLA);
}

bool config_is_layered(const struct vkn_config *config)
{
    return config->model == VKN_MODEL_LAYERED ||
           (config->model == VKN_MODEL_DYNAMIC &&
            config->dynamic.canonical == VKN_CANONICAL_LAYERED);
}

/* Chooses the vanilla model's default for that model and for layers behind its encoding. */
static double vanilla_or(const struct vkn_config *config, double vanilla, double value)
{
    bool layered = config_is_layered(config) && config->field.position != VKN_POSITION_HASH;
    return is_vanilla(config) || layered ? vanilla : value;
}

RULE(position)
{
    UNUSED(facts), UNUSED(value);
    return is_vanilla(config) ? VKN_POSITION_FREQUENCIES : VKN_POSITION_HASH;
}

RULE(direction)
{
    UNUSED(facts), UNUSED(value);
    return vanilla_or(config, VKN_DIRECTION_FREQUENCIES, VKN_DIRECTION_HARMONICS);
}

/* A small MLP behind a hash grid learns fastest in logarithms. Softplus is never without a slope,
 * and stays within 16 bits: where something comes to later, what was empty has to become dense. */
RULE(density_activation)
{
    UNUSED(facts), UNUSED(value);
    return vanilla_or(config, VKN_DENSITY_SOFTPLUS,
                      config->model == VKN_MODEL_DYNAMIC ? VKN_DENSITY_SOFTPLUS : VKN_DENSITY_EXP);
}

/* Where it measures faster: nearly all of the samples are empty, and no grid has left them out. */
RULE(visibility)
{
    UNUSED(facts), UNUSED(value);
    bool many = config->march.sampling == VKN_SAMPLING_UNIFORM && config->march.alpha_threshold > 0;
    return many && config->mlp.activation_checkpointing != VKN_CHECKPOINTING_OFF ? VKN_SWITCH_ON
                                                                                 : VKN_SWITCH_OFF;
}

#define MODEL_RULE(name, vanilla)                  \
    RULE(name)                                     \
    {                                              \
        UNUSED(facts);                             \
        return vanilla_or(config, vanilla, value); \
    }
MODEL_RULE(density_width, 256)
MODEL_RULE(density_layers, 8)
MODEL_RULE(color_width, 128)
MODEL_RULE(color_layers, 1)

/* Columns of layers come by 32. */
RULE(geometry)
{
    UNUSED(facts);
    return vanilla_or(config, 256, config_is_layered(config) ? 2 * value : value);
}

/* What is fine from the start gives a deformation no direction to move it in. */
RULE(position_octaves)
{
    UNUSED(facts);
    return config->model == VKN_MODEL_DYNAMIC ? 5 : value;
}

/* Where layers are passes of their own, a CPU has time for few samples: more steps of fewer rays,
 * and more rays of fewer samples, are worth more. */
static double cpu_or(const struct vkn_config *config, const struct config_facts *facts,
                     double vanilla, double dynamic, double value)
{
    bool layers = config->model == VKN_MODEL_DYNAMIC || config->model == VKN_MODEL_LAYERED;
    return facts->cpu ? vanilla_or(config, vanilla, layers ? dynamic : value) : value;
}

RULE(batch_samples)
{
    return cpu_or(config, facts, 1024, 4096, vanilla_or(config, value / 4, value));
}

RULE(steps_per_unit)
{
    return cpu_or(config, facts, 40, 64, value);
}

/* What reaches beyond the unit cube is what a capture shows of its surroundings. There a proposal
 * measures better than the cascades of a grid. */
RULE(sampling)
{
    UNUSED(facts), UNUSED(value);
    bool surrounded = config->scene.aabb_scale > 1 || is_contracted(config);
    return surrounded && config->model == VKN_MODEL_NGP ? VKN_SAMPLING_PROPOSAL
                                                        : VKN_SAMPLING_OCCUPANCY;
}

static bool has_proposal(const struct vkn_config *config)
{
    return config->march.sampling == VKN_SAMPLING_PROPOSAL;
}

/* Nerfacc's numbers for unbounded scenes; a CPU has time for a quarter. */
RULE(coarse_samples)
{
    return has_proposal(config) && !facts->cpu ? 256 : value;
}

RULE(fine_samples)
{
    return has_proposal(config) ? facts->cpu ? 24 : 48 : value;
}

/* Nerfstudio's. A proposal samples air near the cameras as readily as surfaces, and no grid forgets
 * what has grown there. */
RULE(distortion)
{
    UNUSED(facts), UNUSED(value);
    return has_proposal(config) ? 2e-3 : -1.0;
}

RULE(proposal_finest)
{
    UNUSED(facts);
    return is_contracted(config) ? 2 * value : value;
}

/* Each cell that is looked at costs as much as a sample. */
RULE(resolution)
{
    return cpu_or(config, facts, value / 2, value / 2, value);
}

static bool is_given(const struct vkn_schedule_point points[VKN_SCHEDULE_POINTS])
{
    return points[0].value > 0.0f;
}

RULE(rate_schedule)
{
    UNUSED(facts), UNUSED(value);
    return is_given(config->optimizer.rates) ? VKN_RATE_FILE : VKN_RATE_STEP;
}

/* Also before the schedule is resolved. */
static bool is_drawn(const struct vkn_config *config)
{
    return config->optimizer.schedule == VKN_RATE_FILE ||
           (config->optimizer.schedule == VKN_RATE_DEFAULT && is_given(config->optimizer.rates));
}

/* Adam's steps become short where gradients disagree, Lion's never. */
RULE(learning_rate)
{
    double factor = config->optimizer.kind == VKN_OPTIMIZER_LION ? 0.3 : 1.0;
    return is_drawn(config) ? (double)config->optimizer.rates[0].value
                            : factor * vanilla_or(config, facts->cpu ? 4e-3 : 1e-3, value);
}

/* A short run must not spend itself on warming up, and a file says how the rate rises. */
RULE(warmup_steps)
{
    UNUSED(facts);
    if (is_drawn(config))
        return 1;
    uint32_t short_run = config->steps / 20 + 1;
    return config->steps > 0 && config->steps < 2000 ? short_run : value;
}

RULE(final_rate)
{
    UNUSED(facts), UNUSED(value);
    return (double)(config->optimizer.learning_rate / 100);
}

/* 16-bit gradients need scaling; what is large enough and not too large shows in training. */
RULE(loss_scale)
{
    UNUSED(facts), UNUSED(value);
    if (is_given(config->loss_scale.schedule))
        return VKN_LOSS_SCALE_SCHEDULE;
    bool halves = config->precision != VKN_PRECISION_FP32 ||
                  config->parallel.communication_type == VKN_COMMUNICATION_F16;
    return halves ? VKN_LOSS_SCALE_DYNAMIC : VKN_LOSS_SCALE_STATIC;
}

float config_limit_scale(const struct vkn_config *config, float scale)
{
    float maximum = config->loss_scale.maximum;
    scale = fmaxf(scale, config->loss_scale.minimum);
    return maximum > 0.0f ? fminf(scale, maximum) : scale;
}

RULE(initial_scale)
{
    UNUSED(facts);
    if (config->loss_scale.kind == VKN_LOSS_SCALE_SCHEDULE)
        return (double)config->loss_scale.schedule[0].value;
    bool dynamic = config->loss_scale.kind == VKN_LOSS_SCALE_DYNAMIC;
    return (double)config_limit_scale(config, dynamic ? (float)value : 1.0f);
}

/* Sums of f16 are exchanged as they are. */
RULE(communication_type)
{
    UNUSED(facts), UNUSED(value);
    bool halves =
        config->gradient_sums == VKN_SUMS_F16 || (config->gradient_sums == VKN_SUMS_DEFAULT &&
                                                  config->policy.grid_gradients == VKN_POLICY_F16);
    return halves && config->parallel.mode == VKN_PARALLEL_SYNCHRONOUS ? VKN_COMMUNICATION_F16
                                                                       : VKN_COMMUNICATION_F32;
}

/* A GPU updates all cells in less time than it takes to copy them. */
RULE(cells)
{
    UNUSED(config), UNUSED(value);
    return facts->cpu ? VKN_PART_SHARE : VKN_PART_ALL;
}

/* ---- resolving ------------------------------------------------------------------------------ */

double config_default(const struct config_setting *setting, size_t index,
                      const struct vkn_config *config, const struct config_facts *facts)
{
    const struct config_default *fallback = &setting->fallback;
    if (fallback->origin != CONFIG_VALUE)
        return 0.0;
    const double *values = facts->cpu && fallback->cpu ? fallback->cpu : fallback->gpu;
    double value = values ? values[index] : 0.0;
    return fallback->rule ? fallback->rule(config, facts, value) : value;
}

double config_default_number(const char *key)
{
    const struct config_setting *setting = config_find(key);
    return setting && setting->fallback.gpu ? setting->fallback.gpu[0] : 0.0;
}

const char *config_default_text(const struct config_setting *setting)
{
    const struct config_default *fallback = &setting->fallback;
    bool constant = fallback->origin == CONFIG_VALUE && fallback->gpu && !fallback->rule;
    if (constant && setting->type == CONFIG_ENUM)
        return setting->names[(size_t)fallback->gpu[0]];
    if (constant && setting->type == CONFIG_BOOL)
        return "false"; /* the zero of the struct */
    return fallback->words;
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

enum vkn_model config_model(const struct vkn_config *config)
{
    bool other = config->field.position > VKN_POSITION_HASH ||
                 config->field.direction > VKN_DIRECTION_HARMONICS ||
                 config->field.activation > VKN_ACTIVATION_RELU;
    if (config->model != VKN_MODEL_DEFAULT)
        return config->model;
    return other ? VKN_MODEL_LAYERED : VKN_MODEL_NGP;
}

/* ---- what goes together --------------------------------------------------------------------- */

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
    if (is_contracted(config) && !(config->march.cone_angle > 1e-5F))
        return base_fail(VKN_BAD_INPUT,
                         "config: march.cone_angle: %g: steps that do not grow never end in "
                         "contracted space (scene.contraction)",
                         (double)config->march.cone_angle);
    if (config->march.far_distance > 0.0F &&
        config->march.far_distance <= config->march.near_distance)
        return base_fail(VKN_BAD_INPUT,
                         "config: march.far_distance: %g is not beyond march.near_distance, %g",
                         (double)config->march.far_distance, (double)config->march.near_distance);
    if (config->march.alpha_threshold > config->march.occupancy_threshold)
        return base_fail(
            VKN_BAD_INPUT,
            "config: march.alpha_threshold: %g is above march.occupancy_threshold, %g: what "
            "keeps a cell occupied must not count as empty",
            (double)config->march.alpha_threshold, (double)config->march.occupancy_threshold);
    return VKN_OK;
}

/* Other models have their own. */
static vkn_status check_field(const struct vkn_config *config)
{
    const struct vkn_config own = {.model = config->model, .dynamic = config->dynamic};
    const char *wrong = NULL;
    if (config_is_layered(config))
        return VKN_OK;
    if (config->field.activation != VKN_ACTIVATION_RELU)
        wrong = "activation";
    if (config->field.direction != config_rule_direction(&own, NULL, 0))
        wrong = "direction";
    if (config->field.position != config_rule_position(&own, NULL, 0))
        wrong = "position";
    return wrong
               ? base_fail(VKN_BAD_INPUT, "config: field.%s: model %s has its own, layered has any",
                           wrong, config_model_names[config->model])
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

/* A loss scale that was given, against its limits. */
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
    if (scheduled && !is_given(points))
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

/* A deterministic run that only its time ends has no end to come down to. */
static vkn_status check_rate(const struct vkn_config *config)
{
    enum vkn_rate_schedule schedule = config->optimizer.schedule;
    if (schedule == VKN_RATE_FILE && !is_given(config->optimizer.rates))
        return base_fail(VKN_BAD_INPUT,
                         "config: optimizer.rates: empty, but optimizer.schedule is file");
    if ((schedule == VKN_RATE_EXPONENTIAL || schedule == VKN_RATE_COSINE) &&
        config->deterministic && config->steps == 0)
        return base_fail(VKN_BAD_INPUT,
                         "config: optimizer.schedule: a deterministic run's learning rate falls "
                         "by its steps, so it needs their number (--steps), not its time alone");
    return VKN_OK;
}

static vkn_status check_progressive(const struct vkn_config *config)
{
    if (!power_of_two(config->progressive.start_downscale))
        return base_fail(VKN_BAD_INPUT,
                         "config: progressive.start_downscale: %u is neither 2, 4 nor 8",
                         config->progressive.start_downscale);
    if (config->progressive.enabled && config->deterministic && config->steps == 0)
        return base_fail(VKN_BAD_INPUT,
                         "config: progressive.enabled: a deterministic run grows by its steps, so "
                         "it needs their number (--steps), not its time alone");
    return VKN_OK;
}

static vkn_status check_parallel(const struct vkn_config *config)
{
    if (config->parallel.ranks_per_device > 1 && config->parallel.mode == VKN_PARALLEL_AVERAGE)
        return base_fail(VKN_BAD_INPUT, "config: parallel.ranks_per_device: ranks in turn exchange "
                                        "gradients in every step, which "
                                        "parallel.mode=average does not");
    if (config->parallel.communication_type == VKN_COMMUNICATION_F16 &&
        config->parallel.mode == VKN_PARALLEL_AVERAGE)
        return base_fail(
            VKN_BAD_INPUT,
            "config: parallel.communication_type: parallel.mode=average exchanges weights, which "
            "f16 would round");
    return VKN_OK;
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
    BASE_TRY(check_progressive(config));
    return check_parallel(config);
}
