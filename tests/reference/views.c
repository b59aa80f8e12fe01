/* Reference refinement of camera poses (CamP, Park et al. 2023): rotations are matrix exponentials,
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

/* Returns the part of the loss that depends on a sample, to first order, when the pose has changed
 * by (rotation vector, translation). */
static double moved_loss(const struct reference_space *space,
                         const struct reference_moving_sample *sample, const double pose[6])
{
    double rotation[3][3], direction[3], position[3], loss = 0;
    reference_rotation(pose, rotation);
    multiply((const double(*)[3])rotation, sample->direction, direction);
    for (int i = 0; i < 3; i++) {
        position[i] = sample->origin[i] + pose[3 + i] + sample->t * direction[i];
        loss += sample->by_position[i] * position[i] + sample->by_direction[i] * direction[i];
    }
    return loss + sample->by_log_width * log(reference_shrinking(space, position));
}

void reference_pose_gradient(const struct reference_space *space,
                             const struct reference_moving_sample *sample, double gradient[6])
{
    for (int k = 0; k < 6; k++) {
        double low[6] = {0}, high[6] = {0};
        low[k] = -STEP;
        high[k] = STEP;
        gradient[k] =
            (moved_loss(space, sample, high) - moved_loss(space, sample, low)) / (2 * STEP);
    }
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

/* Updates the latent parameters from the gradient with respect to turning and moving the camera. */
static void update_latent(const struct reference_optimizer *adam, struct reference_view *view)
{
    double gradient[6];
    memcpy(gradient, view->gradient, sizeof gradient);
    for (int k = 0; k < 3; k++) {
        double turn[3];
        turn_of_component(view->pose, k, turn);
        gradient[k] =
            turn[0] * view->gradient[0] + turn[1] * view->gradient[1] + turn[2] * view->gradient[2];
    }
    view->updates++;
    for (int k = 0; k < 6; k++) {
        double by_latent = 0;
        for (int p = 0; p < 6; p++)
            by_latent += gradient[p] * view->whitening[p][k];
        double before = view->latent[k];
        reference_updates[VKN_OPTIMIZER_ADAM](adam, view->updates, by_latent, &view->latent[k],
                                              &view->moment1[k], &view->moment2[k]);
        double share = significance(adam, view->updates, view->moment1[k], view->moment2[k]);
        view->latent[k] = before + share * (view->latent[k] - before);
    }
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

/* Limits the latent parameters' length, and computes the pose from them. */
static void finish(struct reference_view *view, double most)
{
    double squared = 0;
    for (int k = 0; k < 6; k++)
        squared += view->latent[k] * view->latent[k];
    for (int k = 0; k < 6 && squared > most * most; k++)
        view->latent[k] *= most / sqrt(squared);
    for (int p = 0; p < 6; p++) {
        view->pose[p] = 0;
        for (int k = 0; k < 6; k++)
            view->pose[p] += view->whitening[p][k] * view->latent[k];
    }
}

void reference_update_views(const struct Config *config, uint32_t step, double time_progress,
                            struct reference_view *views)
{
    bool ends = config->total_steps != UINT32_MAX || config->time_schedule;
    double progress = reference_progress(config, step, time_progress), start = config->refine_start;
    double first = config->refine_rate, last = config->refine_final_rate;
    double done = ends ? fmin((progress - start) / (1 - start), 1) : 0;
    const struct reference_optimizer adam = {
        .rate = first * pow(last / first, done), .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-15};
    for (uint32_t i = 0; i < config->camera_count; i++)
        if (views[i].has_rays && done >= 0)
            update_latent(&adam, &views[i]);
    remove_gauges(views, config->camera_count);
    for (uint32_t i = 0; i < config->camera_count; i++)
        finish(&views[i], config->refine_limit);
}
