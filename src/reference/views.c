/* Reference refinement of cameras (CamP, Park et al. 2023): rotations are matrix exponentials,
 * derivatives are central differences. */
#include "reference/reference.h"

#include <math.h>
#include <string.h>

#define STEP 1e-5 /* of the central differences */

static void multiply(const double matrix[3][3], const double v[3], double product[3])
{
    for (int i = 0; i < 3; i++)
        product[i] = matrix[i][0] * v[0] + matrix[i][1] * v[1] + matrix[i][2] * v[2];
}

void reference_rotation(const double w[3], double rotation[3][3])
{
    const double transposed[3][3] = {{0, w[2], -w[1]}, {-w[2], 0, w[0]}, {w[1], -w[0], 0}};
    double term[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}; /* [w]^n / n!, with [w] v = w x v */
    memset(rotation, 0, sizeof term);
    for (int n = 1; n <= 40; n++)
        for (int i = 0; i < 3; i++) {
            double next[3];
            multiply(transposed, term[i], next);
            for (int k = 0; k < 3; k++) {
                rotation[i][k] += term[i][k];
                term[i][k] = next[k] / n;
            }
        }
}

/* Returns the part of the loss that depends on a sample, to first order, when the camera has
 * changed by (rotation vector, translation, change of the lens). */
static double moved_loss(const struct reference_space *space,
                         const struct reference_moving_sample *sample,
                         const double change[VIEW_SUMS])
{
    double rotation[3][3], before[3], direction[3], position[3], loss = 0;
    memcpy(before, sample->direction, sizeof before);
    if (sample->camera)
        reference_change_lens(sample->camera, change + VIEW_PARAMETERS, sample->direction, before);
    reference_rotation(change, rotation);
    multiply((const double(*)[3])rotation, before, direction);
    for (int i = 0; i < 3; i++) {
        position[i] = sample->origin[i] + change[3 + i] + sample->t * direction[i];
        loss += sample->by_position[i] * position[i] + sample->by_direction[i] * direction[i];
    }
    return loss + sample->by_log_width * log(reference_shrinking(space, position));
}

void reference_view_gradient(const struct reference_space *space,
                             const struct reference_moving_sample *sample,
                             double gradient[VIEW_SUMS])
{
    double offset[3], along = 0, *by_focal = gradient + VIEW_PARAMETERS;
    double *by_scale = by_focal + LENS_SCALE;
    for (int k = 0; k < VIEW_PARAMETERS + LENS_PARAMETERS; k++) {
        double low[VIEW_SUMS] = {0}, high[VIEW_SUMS] = {0};
        low[k] = -STEP;
        high[k] = STEP;
        gradient[k] =
            (moved_loss(space, sample, high) - moved_loss(space, sample, low)) / (2 * STEP);
    }
    for (int i = 0; i < 3; i++) {
        offset[i] = sample->origin[i] - 0.5;
        along += offset[i] * sample->direction[i];
    }
    by_scale[0] = 0;
    for (int i = 0; i < 3 && sample->camera; i++)
        by_scale[0] += gradient[3 + i] * (offset[i] - along * sample->direction[i]);
    by_scale[1] = by_scale[0] * by_scale[0];
    by_scale[2] = by_scale[0] * by_focal[0];
    by_scale[3] = by_scale[0] * by_focal[1];
    by_scale[4] = by_scale[0] * by_focal[4];
    by_scale[5] = by_scale[0] * by_focal[5];
}

/* Computes the rotation vector of the turn by which the rotation changes when component k of its
 * rotation vector w changes, per unit. */
static void turn_of_component(const double w[3], int k, double turn[3])
{
    double low[3][3], high[3][3], changed[2][3];
    memcpy(changed[0], w, sizeof changed[0]);
    memcpy(changed[1], w, sizeof changed[1]);
    changed[0][k] -= STEP;
    changed[1][k] += STEP;
    reference_rotation(changed[0], low);
    reference_rotation(changed[1], high);
    for (int i = 0; i < 3; i++) { /* the antisymmetric part of high low^T */
        int a = (i + 1) % 3, b = (i + 2) % 3;
        double difference = 0;
        for (int n = 0; n < 3; n++)
            difference += high[b][n] * low[a][n] - high[a][n] * low[b][n];
        turn[i] = difference / 2 / (2 * STEP);
    }
}

/* Returns the share of Adam's step that is taken: 1 - 3 s^2 / m^2, at least 0, for a mean gradient
 * m whose standard error is s. The weights of the mean are summed one by one. */
static double significance(const struct reference_optimizer *adam, uint64_t updates, double moment1,
                           double moment2)
{
    double weights = 0, squares = 0, all = 1 - pow(adam->beta2, (double)updates);
    for (uint64_t i = 0; i < updates; i++) {
        double weight = (1 - adam->beta1) * pow(adam->beta1, (double)i);
        weights += weight;
        squares += weight * weight;
    }
    double mean = moment1 / weights, error = moment2 / all * squares / (weights * weights);
    return mean != 0 ? fmax(1 - 3 * error / (mean * mean), 0) : 0;
}

void reference_significant_steps(const struct reference_optimizer *adam, uint32_t updates,
                                 int count, const double *gradient, const double *whitening,
                                 double *latent, double *moment1, double *moment2)
{
    for (int k = 0; k < count; k++) {
        double by_latent = 0;
        for (int p = 0; p < count; p++)
            by_latent += gradient[p] * whitening[p * count + k];
        double before = latent[k];
        reference_updates[VKN_OPTIMIZER_ADAM](adam, updates, by_latent, &latent[k], &moment1[k],
                                              &moment2[k]);
        double share = significance(adam, updates, moment1[k], moment2[k]);
        latent[k] = before + share * (latent[k] - before);
    }
}

/* Updates the latent parameters from the gradient with respect to turning and moving the camera. */
static void update_pose(const struct reference_optimizer *adam, struct reference_view *view)
{
    double gradient[6];
    memcpy(gradient, view->gradient, sizeof gradient);
    for (int k = 0; k < 3; k++) {
        double turn[3];
        turn_of_component(view->pose, k, turn);
        gradient[k] =
            turn[0] * view->gradient[0] + turn[1] * view->gradient[1] + turn[2] * view->gradient[2];
    }
    reference_significant_steps(adam, ++view->updates, 6, gradient, view->whitening[0],
                                view->latent, view->moment1, view->moment2);
}

/* Updates the latent parameters of the camera group whose first view is `first`. */
static void update_lens(const struct reference_optimizer *adam, struct reference_view *views,
                        uint32_t count, uint32_t first)
{
    double gradient[LENS_SUMS] = {0}, *by_scale = gradient + LENS_SCALE;
    struct reference_view *view = &views[first];
    bool has_rays = false;
    for (uint32_t i = 0; i < count; i++)
        for (int k = 0; k < LENS_SUMS && views[i].group == first; k++) {
            gradient[k] += views[i].gradient[6 + k];
            has_rays |= views[i].has_rays;
        }
    /* Takes out what the gradient with respect to the scale explains, by linear regression. */
    for (int i = 0; i < 4 && by_scale[1] > 0; i++)
        gradient[i < 2 ? i : i + 2] -= by_scale[2 + i] / by_scale[1] * by_scale[0];
    if (has_rays)
        reference_significant_steps(adam, ++view->lens_updates, 8, gradient,
                                    view->lens_whitening[0], view->lens_latent, view->lens_moment1,
                                    view->lens_moment2);
}

/* Projects the latent parameters of all views onto the complement of the gauges, which are
 * orthonormal. */
static void remove_gauges(struct reference_view *views, uint32_t count)
{
    for (int g = 0; g < VIEW_GAUGES; g++) {
        double product = 0;
        for (uint32_t i = 0; i < count; i++)
            for (int k = 0; k < 6; k++)
                product += views[i].gauge[g][k] * views[i].latent[k];
        for (uint32_t i = 0; i < count; i++)
            for (int k = 0; k < 6; k++)
                views[i].latent[k] -= product * views[i].gauge[g][k];
    }
}

/* Limits the latent parameters' length. */
static void limit(double *latent, int count, double most)
{
    double squared = 0;
    for (int k = 0; k < count; k++)
        squared += latent[k] * latent[k];
    for (int k = 0; k < count && squared > most * most; k++)
        latent[k] *= most / sqrt(squared);
}

/* Computes parameters from latent parameters. */
static void unwhiten(const double *whitening, const double *latent, int count, double *parameters)
{
    for (int p = 0; p < count; p++) {
        parameters[p] = 0;
        for (int k = 0; k < count; k++)
            parameters[p] += whitening[p * count + k] * latent[k];
    }
}

static void update_poses(const struct Config *config, const struct reference_optimizer *adam,
                         bool begun, struct reference_view *views)
{
    for (uint32_t i = 0; i < config->camera_count; i++)
        if (views[i].has_rays && begun)
            update_pose(adam, &views[i]);
    remove_gauges(views, config->camera_count);
    for (uint32_t i = 0; i < config->camera_count; i++) {
        limit(views[i].latent, 6, config->refine_limit);
        unwhiten(views[i].whitening[0], views[i].latent, 6, views[i].pose);
    }
}

static void update_lenses(const struct Config *config, const struct reference_optimizer *adam,
                          bool begun, struct reference_view *views)
{
    const uint32_t count = config->camera_count;
    for (uint32_t i = 0; i < count; i++) {
        if (views[i].group == i && begun)
            update_lens(adam, views, count, i);
        if (views[i].group == i)
            limit(views[i].lens_latent, 8, config->refine_limit);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct reference_view *group = &views[views[i].group];
        unwhiten(group->lens_whitening[0], group->lens_latent, 8, views[i].lens);
    }
}

void reference_update_views(uint32_t refine, const struct Config *config, uint32_t step,
                            double time_progress, struct reference_view *views)
{
    bool ends = config->total_steps != UINT32_MAX || config->time_schedule;
    double progress = reference_progress(config, step, time_progress), start = config->refine_start;
    double first = config->refine_rate, last = config->refine_final_rate;
    double done = ends ? fmin((progress - start) / (1 - start), 1) : 0;
    const struct reference_optimizer adam = {
        .rate = first * pow(last / first, done), .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-15};
    if (refine & REFINE_POSES)
        update_poses(config, &adam, done >= 0, views);
    if (refine & REFINE_LENSES)
        update_lenses(config, &adam, done >= 0, views);
}
