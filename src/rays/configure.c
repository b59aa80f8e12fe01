#include "rays/rays.h"

#include <math.h>

uint32_t rays_cascades(uint32_t aabb_scale)
{
    uint32_t cascades = 1;
    while (cascades < 8 && (1u << (cascades - 1)) < aabb_scale)
        cascades++;
    return cascades;
}

uint64_t rays_occupancy_cells(const struct vkn_config *config)
{
    uint64_t edge = config->march.resolution;
    return edge * edge * edge * rays_cascades(config->scene.aabb_scale);
}

uint64_t rays_occupancy_words(const struct vkn_config *config)
{
    uint64_t cells = rays_occupancy_cells(config);
    return cells / 32 + cells / (OCCUPANCY_BLOCK * OCCUPANCY_BLOCK * OCCUPANCY_BLOCK);
}

uint32_t rays_most_steps(const struct Config *constants)
{
    /* A camera inside the cube can look along its whole diagonal; one outside sees the same chord
     * from further away, with steps that are no smaller. */
    double diagonal = sqrt(3.0) * constants->aabb_scale;
    double cone = constants->cone_angle, shortest = constants->step_min,
           longest = constants->step_max;
    if (cone <= 1e-5)
        return (uint32_t)ceil(diagonal / shortest) + 1;
    double geometric = fmin(diagonal, longest / cone);
    double steps = fmin(diagonal, shortest / cone) / shortest;
    if (geometric > shortest / cone)
        steps += log(geometric * cone / shortest) / log(1.0 + cone);
    if (diagonal > geometric)
        steps += (diagonal - geometric) / longest;
    return (uint32_t)ceil(steps) + 1;
}

void rays_configure(const struct vkn_config *config, struct Config *constants,
                    struct gpu_constants *specialization)
{
    float side = (float)config->scene.aabb_scale;
    constants->aabb_scale = side;
    constants->near_distance = config->march.near_distance;
    constants->step_min = sqrtf(3.0f) / (float)config->march.steps_per_unit;
    /* The step never outgrows a cell of the outermost cascade. */
    constants->step_max = fmaxf(constants->step_min, side / (float)config->march.resolution);
    constants->cone_angle = config->march.cone_angle;
    constants->early_stop = config->march.early_stop;
    constants->occupancy_decay = config->march.decay;
    constants->occupancy_threshold = config->march.threshold;
    constants->ray_capacity = config->batch.max_rays;
    constants->target_samples = config->batch.samples;
    /* Empty space that the grid has not learnt yet and samples behind surfaces come on top of the
     * live samples that are wanted. */
    constants->sample_capacity = 4 * config->batch.samples;
    uint32_t *values = specialization->values;
    values[SPEC_RESOLUTION - 2] = config->march.resolution;
    values[SPEC_CASCADES - 2] = rays_cascades(config->scene.aabb_scale);
    values[SPEC_BACKGROUND - 2] = config->background == VKN_BACKGROUND_WHITE   ? BACKGROUND_WHITE
                                  : config->background == VKN_BACKGROUND_BLACK ? BACKGROUND_BLACK
                                                                               : BACKGROUND_RANDOM;
}
