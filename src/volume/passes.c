/* Lists the passes of compositing and loss with their cost formulas, and sets their constants. */
#include <math.h>

#include "volume/volume.h"

/* Operations for one ray or sample, counted in volume/composite.comp; an exponential and a division
 * count as one operation each. */
#define COMPOSITE_RAY         47
#define COMPOSITE_SAMPLE      16 /* colour and depth */
#define COMPOSITE_LIVE        38 /* gradients */
/* Operations of known depths: a sample's agreement; the gradient, of rays with a known depth. */
#define KNOWN_SAMPLE          9
#define KNOWN_LIVE            15
/* Operations of the distortion loss: position and cumulative sums of a sample, for the loss and
 * again for the gradient; the sample's gradient. */
#define DISTORTION_RAY        2
#define DISTORTION_SUMS       13
#define DISTORTION_LIVE       23
#define DISTORTION_CONTRACTED 12 /* in addition to DISTORTION_SUMS, to contract the positions */
#define DISTORTION_ON_LADDER  44 /* in addition to DISTORTION_SUMS, for the power ladder */

static double distortion_flops(const struct cost_model *m, const struct cost_counts *n,
                               double reached)
{
    bool contracted = m->config->scene.contraction == VKN_CONTRACTION_CUBE;
    bool is_ladder = m->config->loss.distortion_curve == VKN_DISTORTION_LADDER;
    double sums = DISTORTION_SUMS + (is_ladder    ? DISTORTION_ON_LADDER
                                     : contracted ? DISTORTION_CONTRACTED
                                                  : 0);
    return m->config->loss.distortion > 0.0F
               ? DISTORTION_RAY * n->rays + sums * (reached + n->live) + DISTORTION_LIVE * n->live
               : 0;
}

/* Operations of volume/appearance.glsl for a ray, a power and a sum in fixed point counting as one
 * and eight operations: its colour, gradients with respect to its colour, the gradient with respect
 * to the transmittance, gradients with respect to exposure, white balance and other parameters.
 * FULL_*: in addition to EXPOSURE_*. */
#define EXPOSURE_RAY       62
#define EXPOSURE_BACK      46
#define BY_TRANSMITTANCE   28
#define EXPOSURE_GRADIENT  35
#define FULL_RAY           147
#define FULL_BACK          201
#define GAINS_GRADIENT     57
#define OTHERS_GRADIENT    599
#define BALANCE_PARAMETERS 3  /* exposure and white balance */
#define RAYS_PER_SUM       16 /* one ray in so many has the gradients OTHERS_GRADIENT */
/* Operations of update_appearance for a parameter, and for a trend's nine terms of a view. */
#define UPDATE_PARAMETER   30
#define UPDATE_TREND       200

static double appearance_parameters(const struct cost_model *m)
{
    uint32_t kind = volume_appearance_kind(m->config);
    return kind == APPEARANCE_FULL ? APPEARANCE_PARAMETERS : kind == APPEARANCE_EXPOSURE ? 1 : 0;
}

/* Returns the cost of a ray's colour and its gradients, which composite and appearance_gradients
 * both compute. */
static struct cost cost_appearance(const struct cost_model *m, const struct cost_counts *n)
{
    bool is_full = volume_appearance_kind(m->config) == APPEARANCE_FULL;
    double ray = 4 + 4 + 16; /* number of the view, position; colour and transmittance */
    double view = 4 + 4 * appearance_parameters(m);
    return (struct cost){
        .flops = (EXPOSURE_RAY + EXPOSURE_BACK + (is_full ? FULL_RAY + FULL_BACK : 0)) * n->rays,
        .bytes = (ray + view) * n->rays,
        .memory = ray * n->rays + view * fmin(m->constants->view_count, n->rays),
    };
}

static struct cost cost_composite(const struct cost_model *m, const struct cost_counts *n)
{
    bool deterministic = m->config->deterministic;
    /* A ray has offset and number of samples, pixel, background, end, a share of partial sums. */
    double sums = m->config->loss.distortion > 0.0F ? 12 : 8;
    double ray = 8 + 16 + 12 + 4 + sums / m->local_size, sample = 16 + sizeof(struct Sample);
    double index = deterministic ? 0 : 4, cleared = deterministic ? n->marched - n->live : 0;
    /* A subgroup counts its rays by one atomic. A ray whose samples fit a subgroup stays in
     * registers unless the loss has distortion; the second loads of longer rays are not counted. */
    double subgroups = m->constants->forward_groups * m->local_size / m->subgroup_size;
    double busy_subgroups = fmin(n->rays, subgroups);
    double known = m->config->loss.depth > 0.0F ? 1 : 0;
    bool takes_photograph = volume_appearance_kind(m->config) && n->pass->rows != COMPOSITE_COARSE;
    bool has_sky = m->config->scene.sky == VKN_SWITCH_ON && n->pass->rows != COMPOSITE_COARSE;
    ray += 8 * known + (has_sky && !takes_photograph ? 16 : 0); /* result for sum_sky */
    double again = m->cpu_kernels || m->config->loss.distortion > 0.0F ? sample : 0;
    double reached = n->pass->rows == COMPOSITE_COARSE
                         ? n->live
                         : volume_reached_samples(m->config, n->live, n->marched);
    double per_invocation =
        n->rays * ((deterministic ? 1 : 1 / m->subgroup_size) + 1 / m->subgroup_size);
    bool maps_errors = m->config->batch.by_error > 0.0F || m->config->loss.robust == VKN_SWITCH_ON;
    double by_error = maps_errors ? 2 : 0; /* loss and number of rays */
    double per_subgroup = (deterministic ? busy_subgroups : n->rays) + busy_subgroups;
    struct cost appearance = {0};
    if (takes_photograph) {
        appearance = cost_appearance(m, n);
        appearance.flops += BY_TRANSMITTANCE * n->rays;
    }
    return (struct cost){
        .flops = COMPOSITE_RAY * n->rays + COMPOSITE_SAMPLE * reached + COMPOSITE_LIVE * n->live +
                 distortion_flops(m, n, reached) + appearance.flops +
                 known * (KNOWN_SAMPLE * reached +
                          KNOWN_LIVE * (double)m->config->batch.depth_share * n->live),
        .bytes = ray * n->rays + sample * reached + (again + 16 + index) * n->live + 16 * cleared +
                 appearance.bytes,
        .memory = ray * n->rays + sample * reached + (16 + index) * n->live + 16 * cleared +
                  appearance.memory,
        .atomics = (m->cpu_kernels ? per_invocation : per_subgroup) + by_error * n->rays,
    };
}

/* Reads offset, number and end of each ray's samples, and density and position of each visible
 * sample; writes the sample's index. A sample takes a third of compositing's operations. */
static struct cost cost_visible(const struct cost_model *m, const struct cost_counts *n)
{
    double index = m->config->deterministic ? 0 : 4;
    struct cost cost =
        cost_streaming(6 * n->live, 12 * n->rays + (16 + sizeof(struct Sample) + index) * n->live);
    cost.atomics = n->rays;
    return cost;
}

static const struct pass visibility[] = {
    {"find_visible", .dispatch = DISPATCH_FORWARD, .cost = cost_visible},
};
const struct pass_list volume_visibility = PASS_LIST(visibility);

static const struct pass compositing[] = {
    {"composite", .dispatch = DISPATCH_RAYS, .gpu_dispatch = DISPATCH_FORWARD,
     .cost = cost_composite},
};
const struct pass_list volume_compositing = PASS_LIST(compositing);

static const struct pass coarse[] = {
    {"composite", .dispatch = DISPATCH_RAYS, .gpu_dispatch = DISPATCH_FORWARD,
     .rows = COMPOSITE_COARSE, .cost = cost_composite},
};
const struct pass_list volume_coarse = PASS_LIST(coarse);

/* Operations of interlevel, per bin of the proposal and per sample of the field; no searches. */
#define INTERLEVEL_BIN    26 /* weight 13, cumulative sum 2, derivative of the loss 2, gradient 9 */
#define INTERLEVEL_SAMPLE 47 /* weight 13, overlapped bins 26, loss 8 */

static struct cost cost_interlevel(const struct cost_model *m, const struct cost_counts *n)
{
    double bins = n->rays * m->constants->ray_samples;
    double fine = n->rays * m->constants->fine_samples;
    double read = 4 + sizeof(struct Sample), index = m->config->deterministic ? 0 : 4;
    double ray = 24 + 4 + 8 + 8; /* origin, direction, end; offset and number of both samples */
    struct cost cost = cost_streaming(INTERLEVEL_BIN * bins + INTERLEVEL_SAMPLE * fine,
                                      ray * n->rays + read * (2 * bins + fine) +
                                          (16 + index) * (index > 0 ? n->live : bins));
    cost.memory -= read * bins; /* bins are loaded twice */
    cost.atomics = m->config->deterministic ? 0 : bins / m->subgroup_size;
    return cost;
}

static const struct pass interlevel[] = {
    {"interlevel", .dispatch = DISPATCH_RAYS, .gpu_dispatch = DISPATCH_FORWARD,
     .cost = cost_interlevel},
};
const struct pass_list volume_interlevel = PASS_LIST(interlevel);

static struct cost cost_appearance_gradients(const struct cost_model *m,
                                             const struct cost_counts *n)
{
    bool is_full = volume_appearance_kind(m->config) == APPEARANCE_FULL;
    struct cost cost = cost_appearance(m, n);
    double ray = 4 + 16 + 12; /* end, pixel, background */
    double gains = is_full ? GAINS_GRADIENT + (double)OTHERS_GRADIENT / RAYS_PER_SUM : 0;
    double others = is_full ? APPEARANCE_PARAMETERS - BALANCE_PARAMETERS : 0;
    cost.flops += (EXPOSURE_GRADIENT + gains) * n->rays;
    cost.bytes += ray * n->rays;
    cost.memory += ray * n->rays;
    /* A sum has two words, and the parameters of image and camera have a count. */
    cost.atomics = (2 * (appearance_parameters(m) - others) + 1 +
                    (is_full ? (2 * others + 1) / RAYS_PER_SUM : 0)) *
                   n->rays;
    return cost;
}

static struct cost cost_update_appearance(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    double parameters = appearance_parameters(m);
    double bytes = 2 * (sizeof(struct ErrorCell) + 12) * parameters + 12;
    return cost_streaming((UPDATE_PARAMETER * parameters + UPDATE_TREND) *
                              m->constants->camera_count,
                          bytes * m->constants->camera_count);
}

static const struct pass appearance_gradients[] = {
    {"appearance_gradients", .dispatch = DISPATCH_RAYS, .cost = cost_appearance_gradients},
};
const struct pass_list volume_appearance_gradients = PASS_LIST(appearance_gradients);

static const struct pass update_appearance[] = {
    {"update_appearance", .dispatch = DISPATCH_THRESHOLD, .cost = cost_update_appearance},
};
const struct pass_list volume_appearance = PASS_LIST(update_appearance);

/* Operations of sum_sky for a ray besides the sky's colour, without appearance and sums, and for
 * its texel in a map; of update_sky for a texel. */
#define SKY_RAY     30
#define SKY_TEXEL   27
#define SKY_UPDATED 20

/* Counts all rays as rays that add to the sums. */
static struct cost cost_sum_sky(const struct cost_model *m, const struct cost_counts *n)
{
    struct cost cost = {0};
    double sums = 4 * SKY_LEVELS;
    if (volume_appearance_kind(m->config))
        cost = cost_appearance(m, n);
    else
        cost.bytes = cost.memory = 16 * n->rays; /* colour and transmittance */
    double ray = 4 + 16 + 12 + COST_SKY_BYTES;   /* end, pixel, direction */
    cost.flops += (COST_SKY_FLOPS + SKY_RAY + SKY_TEXEL * SKY_LEVELS + 8 * sums) * n->rays;
    cost.bytes += ray * n->rays;
    cost.memory += ray * n->rays;
    cost.atomics = sums * n->rays; /* sums of positive numbers rarely carry */
    return cost;
}

static struct cost cost_update_sky(const struct cost_model *m, const struct cost_counts *n)
{
    (void)m, (void)n;
    return cost_streaming(SKY_UPDATED * SKY_TEXELS, 2.0 * sizeof(struct ErrorCell) * SKY_CELLS);
}

static const struct pass sum_sky[] = {
    {"sum_sky", .dispatch = DISPATCH_RAYS, .cost = cost_sum_sky},
};
const struct pass_list volume_sum_sky = PASS_LIST(sum_sky);

static const struct pass update_sky[] = {
    {"update_sky", .dispatch = DISPATCH_OCCUPANCY, .cost = cost_update_sky},
};
const struct pass_list volume_sky = PASS_LIST(update_sky);

/* These passes have no cost formulas, because pictures are not profiled. On devices without CPU
 * kernels they work with any number of workgroups. */
static const struct pass viewing[] = {
    [VOLUME_VIEW] = {.name = "composite_view", .dispatch = DISPATCH_RAYS},
    [VOLUME_NORMALS] = {.name = "composite_normals", .dispatch = DISPATCH_RAYS},
    [VOLUME_HITS] = {.name = "composite_normals_median", .dispatch = DISPATCH_RAYS},
    [VOLUME_DISTANCES] = {.name = "composite_median", .dispatch = DISPATCH_RAYS},
};
const struct pass_list volume_viewing = PASS_LIST(viewing);

/* ---- constants ------------------------------------------------------------------------------- */

bool volume_finds_visible(const struct vkn_config *config)
{
    return config->march.visibility == VKN_SWITCH_ON;
}

/* Returns the power ladder with exponent -1/4 of a distance (Zip-NeRF, Barron et al. 2023). */
static double power_ladder(double distance, double unit)
{
    return 5 - 5 * pow(1 + distance / unit / 1.25, -0.25);
}

/* The power ladder counts twice the near distance as 1. Equal ratios of distances then differ on
 * the ladder by a factor of at most 2.1, from the near distance to 500 times as far. */
static void configure_distortion(const struct vkn_config *config, struct Config *constants,
                                 struct gpu_constants *specialization)
{
    double near = constants->near_distance, far = constants->far_distance, unit = 2 * near;
    bool is_ladder = config->loss.distortion_curve == VKN_DISTORTION_LADDER;
    constants->loss_distortion = fmaxf(config->loss.distortion, 0.0F);
    if (is_ladder) {
        constants->ladder_unit = (float)unit;
        constants->ladder_range = (float)(power_ladder(far, unit) - power_ladder(near, unit));
    }
    if (config->loss.distortion > 0.0F)
        specialization->values[SPEC_DISTORTION] = is_ladder ? DISTORTION_LADDER : DISTORTION_LINEAR;
}

bool volume_drops_rays(const struct vkn_config *config)
{
    return config->batch.keep > 0.0F && config->batch.keep < 1.0F;
}

double volume_reached_samples(const struct vkn_config *config, double live, double marched)
{
    return volume_drops_rays(config) ? fmin(live / (double)config->batch.keep, marched) : live;
}

/* The least probability is a quarter of batch.keep: whatever the losses are, the share of kept
 * samples can then fall below batch.keep, and no gradient is multiplied by more than
 * 4 / batch.keep. */
static void configure_keep(const struct vkn_config *config, struct Config *constants)
{
    constants->keep_share = volume_drops_rays(config) ? config->batch.keep : 1.0F;
    constants->keep_least = 0.25F * constants->keep_share;
}

_Static_assert(VKN_APPEARANCE_EXPOSURE - VKN_APPEARANCE_OFF == APPEARANCE_EXPOSURE &&
                   VKN_APPEARANCE_FULL - VKN_APPEARANCE_OFF == APPEARANCE_FULL,
               "settings and shaders agree");

uint32_t volume_appearance_kind(const struct vkn_config *config)
{
    return config->scene.appearance > VKN_APPEARANCE_OFF
               ? (uint32_t)(config->scene.appearance - VKN_APPEARANCE_OFF)
               : 0;
}

uint32_t volume_sky_cells(const struct vkn_config *config)
{
    return config->scene.sky == VKN_SWITCH_ON ? SKY_CELLS : 0;
}

void volume_configure(const struct vkn_config *config, struct Config *constants,
                      struct gpu_constants *specialization)
{
    configure_distortion(config, constants, specialization);
    constants->early_stop = config->march.early_stop;
    constants->alpha_threshold = config->march.alpha_threshold;
    constants->loss_delta = config->loss.delta;
    constants->loss_near = fmaxf(config->loss.near_density, 0.0F);
    constants->loss_depth = fmaxf(config->loss.depth, 0.0F);
    constants->loss_interlevel = config->loss.interlevel;
    configure_keep(config, constants);
    constants->appearance_rate = config->appearance.initial_rate;
    constants->appearance_final_rate = config->appearance.final_rate;
    constants->sky_cells = volume_sky_cells(config);
    specialization->values[SPEC_SKY] = constants->sky_cells > 0;
    specialization->values[SPEC_APPEARANCE] = volume_appearance_kind(config);
    specialization->values[SPEC_DEPTH] = config->loss.depth > 0.0F;
    specialization->values[SPEC_KEEP] = volume_drops_rays(config);
    specialization->values[SPEC_ALPHA_THRESHOLD] = config->march.alpha_threshold > 0.0F;
    specialization->values[SPEC_LOSS] = config->loss.kind;
    specialization->values[SPEC_VISIBILITY] = volume_finds_visible(config);
}
