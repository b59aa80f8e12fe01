/* Computes the defaults of settings. */
#include "config/internal.h"

#include <math.h>

/* ---- rules ---------------------------------------------------------------------------------- */

/* Not every rule reads all of its parameters. */
#define RULE(name)                                                                      \
    double config_rule_##name(__attribute__((unused)) const struct vkn_config *config,  \
                              __attribute__((unused)) const struct config_facts *facts, \
                              __attribute__((unused)) double value)

/* Placeholder, for a configuration that is resolved before the tuner has chosen the backend. */
RULE(precision)
{
    return VKN_PRECISION_FP32;
}

RULE(model)
{
    return config_model(config);
}

RULE(background)
{
    return facts->background ? facts->background : VKN_BACKGROUND_RANDOM;
}

/* Parameter averaging does not average appearances. */
RULE(appearance)
{
    return config->parallel.mode == VKN_PARALLEL_AVERAGE || !facts->appearance ? VKN_APPEARANCE_OFF
                                                                               : facts->appearance;
}

/* Points of a cloud may be hidden, or made up for a start of Gaussians. */
RULE(loss_depth)
{
    return facts->depths > 0 ? 3e-3 : -1.0;
}

/* Parameter averaging does not average skies. A plain background needs none. */
RULE(sky)
{
    bool needs_sky = facts->sky && !facts->background;
    return needs_sky && config->parallel.mode != VKN_PARALLEL_AVERAGE ? VKN_SWITCH_ON
                                                                      : VKN_SWITCH_OFF;
}

RULE(steps)
{
    return config->seconds > 0.0 ? 0.0 : value;
}

static bool is_contracted(const struct vkn_config *config)
{
    return config->scene.contraction == VKN_CONTRACTION_CUBE;
}

/* Returns the side, in training units, of what encodings span: the cube, or contracted space. */
static uint32_t cube_sides(const struct vkn_config *config)
{
    return (is_contracted(config) ? 2 : 1) * config->scene.aabb_scale;
}

/* Without known images, encodings are as fine as for the largest. */
static double pixels_per_unit(const struct config_facts *facts)
{
    return facts->pixels_per_unit > 0 ? facts->pixels_per_unit : HUGE_VAL;
}

/* With cells much smaller than a pixel, test views get worse. 2.5 cells a pixel are instant-ngp's
 * 2048 for 800 pixels. */
RULE(finest)
{
    double cells = (facts->is_cpu ? 1.25 : 2.5) * pixels_per_unit(facts);
    return fmax(fmin(value, exp2(round(log2(cells)))) * cube_sides(config), config->grid.coarsest);
}

static bool has_surroundings(const struct vkn_config *config)
{
    return config->scene.aabb_scale > 1 || is_contracted(config);
}

RULE(cone_angle)
{
    return has_surroundings(config) ? value : -1.0;
}

/* instant-ngp's 0.1 keeps floaters away from the cameras. If known content begins nearer than 0.2,
 * half of its distance is used, as the known depths may miss the nearest surfaces. */
RULE(near_distance)
{
    float most = (float)value;
    return (double)(facts->near > 0 ? fminf(most, fmaxf(0.5f * facts->near, 1e-3f)) : most);
}

/* Half of the way to what the cameras look at, unless content is known to be nearer. */
RULE(near_start)
{
    double half = 0.5 * facts->camera_distance;
    double start = facts->near > 0 ? fmin(half, (double)facts->near) : half;
    return has_surroundings(config) && start > 0 ? start : -1.0;
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

/* Returns `vanilla` for the vanilla model and layered models without a hash grid, else `value`. */
static double vanilla_or(const struct vkn_config *config, double vanilla, double value)
{
    bool lacks_grid = config_is_layered(config) && config->field.position != VKN_POSITION_HASH;
    return is_vanilla(config) || lacks_grid ? vanilla : value;
}

RULE(position)
{
    return is_vanilla(config) ? VKN_POSITION_FREQUENCIES : VKN_POSITION_HASH;
}

RULE(direction)
{
    return vanilla_or(config, VKN_DIRECTION_FREQUENCIES, VKN_DIRECTION_HARMONICS);
}

/* A small MLP after a hash grid learns fastest with exp. Softplus keeps a gradient in empty space
 * and stays within the range of f16; dynamic scenes need both where objects appear at a later
 * time. */
RULE(density_activation)
{
    return vanilla_or(config, VKN_DENSITY_SOFTPLUS,
                      config->model == VKN_MODEL_DYNAMIC ? VKN_DENSITY_SOFTPLUS : VKN_DENSITY_EXP);
}

/* Densities before colours are faster, as measured, if no occupancy grid skips empty samples. */
RULE(visibility)
{
    bool has_empty_samples =
        config->march.sampling == VKN_SAMPLING_UNIFORM && config->march.alpha_threshold > 0;
    bool is_possible =
        config->mlp.activation_checkpointing != VKN_CHECKPOINTING_OFF && !(config->batch.keep < 1);
    return has_empty_samples && is_possible ? VKN_SWITCH_ON : VKN_SWITCH_OFF;
}

/* CPU devices train narrower MLPs, as with a hash grid: they learn more in the same time. */
static double half_on_cpu(const struct config_facts *facts, double width)
{
    return facts->is_cpu ? width / 2 : width;
}

#define MODEL_RULE(name, vanilla)                  \
    RULE(name)                                     \
    {                                              \
        return vanilla_or(config, vanilla, value); \
    }
MODEL_RULE(density_width, half_on_cpu(facts, 256))
MODEL_RULE(density_layers, 8)
MODEL_RULE(color_width, half_on_cpu(facts, 128))
MODEL_RULE(color_layers, 1)

static bool has_few_views(const struct config_facts *facts)
{
    return facts->views > 0 && facts->views <= 9;
}

/* Few views fit a wrong surface whose colour is a different one for each of them. The colours of
 * degree 1 do not depend on the direction at all, which is worse where surfaces shine. */
RULE(sh_degree)
{
    return has_few_views(facts) ? 2 : value;
}

/* Passes of layers work on multiples of 32 columns. */
RULE(geometry)
{
    return vanilla_or(config, half_on_cpu(facts, 256),
                      config_is_layered(config) ? 2 * value : value);
}

/* The finest wave, sides / 2^(octaves - 1) long, has 2 to 4 pixels, on GPUs 1 to 2: finer ones only
 * delay the learning. NeRF's 10 octaves are for 800 pixels. High frequencies give a deformation no
 * useful gradient at the beginning. */
RULE(position_octaves)
{
    double waves = (facts->is_cpu ? 1 : 2) * pixels_per_unit(facts) * cube_sides(config);
    double most = config->model == VKN_MODEL_DYNAMIC ? 5 : value;
    return fmax(fmin(most, floor(log2(waves))), 4);
}

/* Returns smaller defaults for CPU devices, which evaluate models of layers slowly: more steps with
 * fewer rays, and more rays with fewer samples, give better results in the same time. */
static double cpu_or(const struct vkn_config *config, const struct config_facts *facts,
                     double vanilla, double dynamic, double value)
{
    bool has_layers = config->model == VKN_MODEL_DYNAMIC || config->model == VKN_MODEL_LAYERED;
    return facts->is_cpu ? vanilla_or(config, vanilla, has_layers ? dynamic : value) : value;
}

RULE(batch_samples)
{
    return cpu_or(config, facts, 1024, 4096, vanilla_or(config, value / 4, value));
}

RULE(steps_per_unit)
{
    return cpu_or(config, facts, 80, config->model == VKN_MODEL_DYNAMIC ? 80 : value, value);
}

/* Scenes that reach beyond the unit cube show surroundings, where a proposal gives better results,
 * as measured, than the cascades of an occupancy grid. */
RULE(sampling)
{
    return has_surroundings(config) && config->model == VKN_MODEL_NGP ? VKN_SAMPLING_PROPOSAL
                                                                      : VKN_SAMPLING_OCCUPANCY;
}

static bool has_proposal(const struct vkn_config *config)
{
    return config->march.sampling == VKN_SAMPLING_PROPOSAL;
}

/* Uses nerfacc's sample counts for unbounded scenes, and a quarter of them on CPU devices. */
RULE(coarse_samples)
{
    return has_proposal(config) && !facts->is_cpu ? 256 : value;
}

RULE(fine_samples)
{
    return has_proposal(config) ? facts->is_cpu ? 24 : 48 : value;
}

/* A weight that is set, also by a configuration of an earlier build, is one of linear distances. */
RULE(distortion_curve)
{
    bool has_weight = config->loss.distortion < 0 || config->loss.distortion > 0;
    return has_weight ? VKN_DISTORTION_LINEAR : VKN_DISTORTION_LADDER;
}

/* On the ladder, one weight fits all scenes (docs/sampling.md), and a smaller one fits few views
 * better, as measured. Of linear distances, nerfstudio's weight: a proposal also samples empty
 * space near the cameras, and no decaying occupancy grid removes floaters there. Haze of the colour
 * of a plain background costs nothing, but hides objects. */
RULE(distortion)
{
    bool is_plain = facts->background && facts->background == config->background;
    if (config->loss.distortion_curve == VKN_DISTORTION_LADDER)
        return has_few_views(facts) ? 3e-3 : value;
    return has_proposal(config) ? 2e-3 : is_plain ? 3e-3 : -1.0;
}

/* Few views contradict less of what is close to one of their cameras. */
RULE(near_density)
{
    return has_few_views(facts) ? 10 * value : value;
}

RULE(proposal_finest)
{
    return is_contracted(config) ? 2 * value : value;
}

/* The evaluation of a cell costs as much as that of a sample. */
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
    return is_given(config->optimizer.rates) ? VKN_RATE_FILE : VKN_RATE_STEP;
}

/* Returns whether a file gives the learning rates; works before the schedule is resolved. */
static bool has_rate_file(const struct vkn_config *config)
{
    return config->optimizer.schedule == VKN_RATE_FILE ||
           (config->optimizer.schedule == VKN_RATE_DEFAULT && is_given(config->optimizer.rates));
}

/* Lion's steps have a constant length, while Adam's shrink where gradients disagree. */
RULE(learning_rate)
{
    double factor = config->optimizer.kind == VKN_OPTIMIZER_LION ? 0.3 : 1.0;
    return has_rate_file(config) ? (double)config->optimizer.rates[0].value
                                 : factor * vanilla_or(config, facts->is_cpu ? 4e-3 : 1e-3, value);
}

static bool is_short(const struct vkn_config *config)
{
    return config->steps > 0 && config->steps < 2000;
}

/* Short runs warm up for a twentieth of their steps; a file of rates contains its own warm-up. */
RULE(warmup_steps)
{
    if (has_rate_file(config))
        return 1;
    uint32_t short_run = config->steps / 20 + 1;
    return is_short(config) ? short_run : value;
}

/* A short run has learned too little to lower its rate before the last fifth. A run that is limited
 * by seconds may be as short: how many steps it takes shows at its end. */
RULE(milestones)
{
    return is_short(config) || config->seconds > 0 ? 1 - 0.4 * (1 - value) : value;
}

RULE(final_rate)
{
    return (double)(config->optimizer.learning_rate / 100);
}

/* f16 gradients need a loss scale, which training has to find. */
RULE(loss_scale)
{
    if (is_given(config->loss_scale.schedule))
        return VKN_LOSS_SCALE_SCHEDULE;
    bool is_f16 = config->precision != VKN_PRECISION_FP32 ||
                  config->parallel.communication_type == VKN_COMMUNICATION_F16;
    return is_f16 ? VKN_LOSS_SCALE_DYNAMIC : VKN_LOSS_SCALE_STATIC;
}

float config_limit_scale(const struct vkn_config *config, float scale)
{
    float maximum = config->loss_scale.maximum;
    scale = fmaxf(scale, config->loss_scale.minimum);
    return maximum > 0.0f ? fminf(scale, maximum) : scale;
}

RULE(initial_scale)
{
    if (config->loss_scale.kind == VKN_LOSS_SCALE_SCHEDULE)
        return (double)config->loss_scale.schedule[0].value;
    bool is_dynamic = config->loss_scale.kind == VKN_LOSS_SCALE_DYNAMIC;
    return (double)config_limit_scale(config, is_dynamic ? (float)value : 1.0f);
}

/* Gradients that are accumulated in f16 are sent as f16. */
RULE(communication_type)
{
    bool is_f16 =
        config->gradient_sums == VKN_SUMS_F16 || (config->gradient_sums == VKN_SUMS_DEFAULT &&
                                                  config->policy.grid_gradients == VKN_POLICY_F16);
    return is_f16 && config->parallel.mode == VKN_PARALLEL_SYNCHRONOUS ? VKN_COMMUNICATION_F16
                                                                       : VKN_COMMUNICATION_F32;
}

/* A GPU updates all cells faster than ranks could exchange their shares. */
RULE(cells)
{
    return facts->is_cpu ? VKN_PART_SHARE : VKN_PART_ALL;
}

/* ---- defaults ------------------------------------------------------------------------------- */

double config_default(const struct config_setting *setting, size_t index,
                      const struct vkn_config *config, const struct config_facts *facts)
{
    const struct config_default *fallback = &setting->fallback;
    if (fallback->origin != CONFIG_VALUE)
        return 0.0;
    const double *values = facts->is_cpu && fallback->cpu ? fallback->cpu : fallback->gpu;
    double value = values ? values[index] : 0.0;
    return fallback->rule ? fallback->rule(config, facts, value) : value;
}

double config_default_number(const char *key)
{
    const struct config_setting *setting = config_find(key);
    return setting && setting->fallback.gpu ? setting->fallback.gpu[0] : 0.0;
}

enum vkn_model config_model(const struct vkn_config *config)
{
    bool needs_layers = config->field.position > VKN_POSITION_HASH ||
                        config->field.direction > VKN_DIRECTION_HARMONICS ||
                        config->field.activation > VKN_ACTIVATION_RELU;
    if (config->model != VKN_MODEL_DEFAULT)
        return config->model;
    return needs_layers ? VKN_MODEL_LAYERED : VKN_MODEL_NGP;
}
