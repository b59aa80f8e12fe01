/* Computes the constants and capacities of rays, samples and the occupancy grid. */
#include "rays/rays.h"

#include <float.h>
#include <math.h>

/* In contracted space a ray ends this many half cube sides from its camera. The image of a point
 * there moves by a thousandth of the focal length when the camera moves by half a cube side. */
#define FARTHEST_NORM 1024.0F

static bool contracts(const struct vkn_config *config)
{
    return config->scene.contraction == VKN_CONTRACTION_CUBE;
}

uint32_t rays_cascades(const struct vkn_config *config)
{
    uint32_t cascades = 1;
    while (cascades < 8 && (1u << (cascades - 1)) < config->scene.aabb_scale)
        cascades++;
    return contracts(config) ? cascades + 1 : cascades;
}

uint32_t rays_time_bins(const struct vkn_config *config)
{
    bool is_dynamic = config->model == VKN_MODEL_DYNAMIC;
    return is_dynamic && config->dynamic.time_bins > 0 ? config->dynamic.time_bins : 1;
}

#define BLOCK_CELLS (OCCUPANCY_BLOCK * OCCUPANCY_BLOCK * OCCUPANCY_BLOCK)

void rays_size_buffers(const struct vkn_config *config, struct buffer_counts *counts)
{
    uint64_t edge = config->march.resolution;
    counts->cells = edge * edge * edge * rays_cascades(config) * rays_time_bins(config);
    counts->bit_words = counts->cells / 32 + counts->cells / BLOCK_CELLS;
}

uint32_t rays_pack_groups(const struct vkn_config *config, uint32_t local_size)
{
    uint64_t edge = config->march.resolution;
    return (uint32_t)(edge * edge * edge / BLOCK_CELLS / local_size + 1);
}

/* Returns the marching steps from distance 0 to `distance`, as in shaders/rays/march.glsl. */
static double steps_to(const struct vkn_config *config, const struct Config *constants,
                       double distance)
{
    double cone = constants->cone_angle, shortest = constants->step_min,
           longest = constants->step_max;
    if (cone <= 1e-5)
        return distance / shortest;
    double last = longest / cone, geometric = fmin(distance, last);
    double steps = fmin(distance, shortest / cone) / shortest;
    if (geometric > shortest / cone)
        steps += log(geometric * cone / shortest) / log(1.0 + cone);
    if (distance > geometric)
        steps +=
            contracts(config) ? (1.0 - last / distance) / cone : (distance - geometric) / longest;
    return steps;
}

_Static_assert(MAX_COARSE_SAMPLES + MAX_FINE_SAMPLES <= MAX_RAY_SAMPLES, "a ray has both");

bool rays_are_hierarchical(const struct vkn_config *config)
{
    return config->march.sampling == VKN_SAMPLING_HIERARCHICAL;
}

bool rays_have_proposal(const struct vkn_config *config)
{
    return config->march.sampling == VKN_SAMPLING_PROPOSAL;
}

bool rays_have_coarse(const struct vkn_config *config)
{
    return rays_are_hierarchical(config) || rays_have_proposal(config);
}

bool rays_use_grid(const struct vkn_config *config)
{
    return config->march.sampling != VKN_SAMPLING_UNIFORM && !rays_have_coarse(config);
}

_Static_assert(VKN_REFINEMENT_POSES - VKN_REFINEMENT_OFF == REFINE_POSES &&
                   VKN_REFINEMENT_LENSES - VKN_REFINEMENT_OFF == REFINE_LENSES &&
                   VKN_REFINEMENT_ALL - VKN_REFINEMENT_OFF == (REFINE_POSES | REFINE_LENSES),
               "settings and shaders agree");

uint32_t rays_refine(const struct vkn_config *config)
{
    return config->scene.refine > VKN_REFINEMENT_OFF
               ? (uint32_t)(config->scene.refine - VKN_REFINEMENT_OFF)
               : 0;
}

uint64_t rays_error_cells(const struct vkn_config *config, uint64_t cells)
{
    if (config->loss.robust == VKN_SWITCH_ON)
        return cells + 1;
    return config->batch.by_error > 0.0F ? cells : 0;
}

/* Returns the stratified samples of each ray; 0 when the occupancy grid places samples. */
static uint32_t uniform_samples(const struct vkn_config *config)
{
    if (rays_use_grid(config))
        return 0;
    return rays_have_coarse(config) ? config->march.coarse_samples : config->march.ray_samples;
}

static uint32_t fine_samples(const struct vkn_config *config)
{
    return rays_have_coarse(config) ? config->march.fine_samples : 0;
}

bool rays_are_complete(const struct vkn_config *config)
{
    return config->march.resolution && config->batch.max_rays &&
           (rays_use_grid(config) || uniform_samples(config)) &&
           (!rays_have_coarse(config) || fine_samples(config));
}

/* Returns the main field's samples of each ray, without an occupancy grid. */
static uint32_t samples_per_ray(const struct vkn_config *config)
{
    return (rays_have_proposal(config) ? 0 : uniform_samples(config)) + fine_samples(config);
}

uint32_t rays_max_steps(const struct vkn_config *config, const struct Config *constants)
{
    if (!rays_use_grid(config))
        return samples_per_ray(config);
    /* The longest path through the cube is its diagonal. If the camera is outside the cube, the
     * path is further away, where steps are no shorter. */
    double distance = constants->far_distance;
    if (!contracts(config))
        distance = fmin(distance, sqrt(3.0) * constants->aabb_scale);
    return (uint32_t)ceil(steps_to(config, constants, distance)) + 1;
}

double rays_count_steps(const struct vkn_config *config, const struct Config *constants,
                        const double origin[3], const double direction[3])
{
    double from = constants->near_distance, to = constants->far_distance;
    for (int i = 0; i < 3 && !contracts(config); i++) {
        double half = 0.5 * constants->aabb_scale;
        double a = (0.5 - half - origin[i]) / direction[i];
        double b = (0.5 + half - origin[i]) / direction[i];
        from = fmax(from, fmin(a, b));
        to = fmin(to, fmax(a, b));
    }
    if (!(to > from))
        return 0.0;
    return fmin(steps_to(config, constants, to) - steps_to(config, constants, from),
                MAX_RAY_SAMPLES);
}

/* Sets the capacity for samples and rays of a step. The sample capacity is four times the wanted
 * number of live samples, because samples in empty space and behind surfaces are not live; twice is
 * enough with a proposal, which places few such samples. Without a grid all rays have equally many
 * samples, so that the ray capacity follows from the sample capacity. */
static void set_capacity(const struct vkn_config *config, struct Config *constants)
{
    uint32_t samples = (rays_have_proposal(config) ? 2 : 4) * config->batch.samples;
    uint32_t rays = config->batch.max_rays;
    if (!rays_use_grid(config)) {
        uint32_t each = samples_per_ray(config);
        samples = samples > MIN_STEP_RAYS * each ? samples : MIN_STEP_RAYS * each;
        rays = rays < samples / each ? rays : samples / each;
    }
    constants->ray_capacity = rays;
    constants->sample_capacity = samples;
}

static uint32_t spacing_of(const struct vkn_config *config)
{
    switch (config->march.spacing) {
    case VKN_SPACING_LINEAR:
        return SPACING_LINEAR;
    case VKN_SPACING_DISPARITY:
        return SPACING_DISPARITY;
    case VKN_SPACING_LOG:
        return SPACING_LOG;
    default:
        return SPACING_STEPS;
    }
}

void rays_configure_proposal(struct Config *constants)
{
    constants->sample_capacity = constants->ray_capacity * constants->ray_samples;
}

void rays_configure(const struct vkn_config *config, struct Config *constants,
                    struct gpu_constants *specialization)
{
    float side = (float)config->scene.aabb_scale;
    constants->aabb_scale = side;
    constants->near_distance = config->march.near_distance;
    constants->near_start = fmaxf(config->march.near_start, constants->near_distance);
    constants->near_steps = config->march.near_steps;
    constants->step_min = sqrtf(3.0f) / (float)config->march.steps_per_unit;
    constants->cone_angle = config->march.cone_angle;
    /* A step is no longer than a cell of the outermost cascade. In contracted space cells grow
     * faster than steps, so steps grow with the distance up to twice the inner cube's norm. */
    float longest =
        contracts(config) ? side * constants->cone_angle : side / (float)config->march.resolution;
    constants->step_max = fmaxf(constants->step_min, longest);
    constants->far_distance = contracts(config) ? 0.5F * side * FARTHEST_NORM : FLT_MAX;
    if (config->march.far_distance > 0.0F)
        constants->far_distance = fminf(constants->far_distance, config->march.far_distance);
    for (int i = 0; i < 3; i++) {
        constants->crop_low[i] = -FLT_MAX;
        constants->crop_high[i] = FLT_MAX;
        constants->crop_axes[4 * i] = 1.0F;
    }
    constants->occupancy_decay = config->march.occupancy_decay;
    constants->occupancy_threshold = config->march.occupancy_threshold;
    constants->target_samples = config->batch.samples;
    constants->ray_samples = uniform_samples(config);
    constants->fine_samples = fine_samples(config);
    constants->anneal_steps = config->proposal.anneal_steps;
    constants->proposal_interval = config->proposal.interval;
    set_capacity(config, constants);
    constants->depth_share = config->batch.depth_share;
    constants->error_share = config->batch.by_error;
    constants->error_unbiased = config->batch.unbiased;
    constants->refine_rate = config->refine.initial_rate;
    constants->refine_final_rate = config->refine.final_rate;
    constants->refine_start = fmaxf(config->refine.start, 0.0F);
    constants->refine_limit = config->refine.limit;
    constants->refine_detail = config->refine.detail > 0.0F ? config->refine.detail : FLT_MAX;
    uint32_t *values = specialization->values;
    values[SPEC_REFINE] = rays_refine(config);
    values[SPEC_RESOLUTION] = config->march.resolution;
    values[SPEC_CASCADES] = rays_cascades(config);
    values[SPEC_TIME_BINS] = rays_time_bins(config);
    values[SPEC_CONTRACTION] = contracts(config) ? CONTRACTION_CUBE : CONTRACTION_NONE;
    values[SPEC_SAMPLING] = rays_are_hierarchical(config) ? SAMPLING_HIERARCHICAL
                            : rays_have_proposal(config)  ? SAMPLING_PROPOSAL
                            : rays_use_grid(config)       ? SAMPLING_OCCUPANCY
                                                          : SAMPLING_UNIFORM;
    values[SPEC_SPACING] = rays_use_grid(config) ? SPACING_STEPS : spacing_of(config);
    values[SPEC_BY_ERROR] = config->batch.by_error > 0.0F;
    values[SPEC_ROBUST] = config->loss.robust == VKN_SWITCH_ON;
    values[SPEC_BACKGROUND] = config->background == VKN_BACKGROUND_WHITE   ? BACKGROUND_WHITE
                              : config->background == VKN_BACKGROUND_BLACK ? BACKGROUND_BLACK
                                                                           : BACKGROUND_RANDOM;
}
