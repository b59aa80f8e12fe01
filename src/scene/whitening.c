/* Computes parameters of camera poses that are equally stiff, and the movements of all cameras
 * together that change no picture (Park et al., CamP, 2023, section 4). */
#include <math.h>
#include <string.h>

#include "scene/camera_path.h"
#include "scene/transforms.h"

#define GRID    8    /* points along an edge of the image */
#define EPSILON 1e-4 /* of the numerical derivatives: radians, and parts of the distance */
#define DAMPING 1    /* part of each parameter's own stiffness that is added to it */
/* A gauge is a combination of earlier ones if this part of its squared length is left without them.
 */
#define LEAST   1e-12

/* Distances of the points from the camera, evenly spaced in 1 / distance, relative to the distance
 * of the content. */
static const double distances[] = {0.75, 0.9, 1.125, 1.5};
#define POINTS (GRID * GRID * BASE_COUNT(distances))

/* Returns the distance of the content: the cameras' mean distance from the cube's centre or, for
 * cameras inside of their scene, at least half of the unit cube's side. */
static double content_distance(const struct scene_split *split)
{
    const double center[3] = {0.5, 0.5, 0.5};
    return fmax(scene_mean_distance(split, center), 0.5);
}

static double parameter_step(int parameter, double distance)
{
    return parameter < 3 ? EPSILON : EPSILON * distance;
}

/* Projects the point after the camera has turned or moved by `step` in one parameter: as a point
 * that has moved the other way. */
static bool project_moved(const struct scene_camera *camera, const double point[3], int parameter,
                          double step, double pixel[2])
{
    double moved[3], axis[3] = {0}, offset[3], across[3];
    axis[parameter % 3] = step;
    for (int i = 0; i < 3; i++)
        offset[i] = point[i] - (double)camera->pose[4 * i + 3];
    vector_cross(offset, axis, across);
    for (int i = 0; i < 3; i++)
        moved[i] = point[i] + (parameter < 3 ? across[i] : -axis[i]);
    return scene_camera_project(camera, moved, &pixel[0], &pixel[1]);
}

/* Computes the derivatives of the point's pixel with respect to the pose's parameters. */
static bool differentiate(const struct scene_camera *camera, const double point[3], double distance,
                          double jacobian[2][SCENE_POSE])
{
    for (int p = 0; p < SCENE_POSE; p++) {
        double step = parameter_step(p, distance), low[2], high[2];
        if (!project_moved(camera, point, p, -step, low) ||
            !project_moved(camera, point, p, step, high))
            return false;
        for (int i = 0; i < 2; i++)
            jacobian[i][p] = (high[i] - low[i]) / (2 * step);
        if (fabs(high[0] - low[0]) > 0.5 * camera->width)
            return false; /* across the edge of a panorama */
    }
    return true;
}

/* Adds J^T J of one point. */
static void add_products(const double jacobian[2][SCENE_POSE],
                         double stiffness[SCENE_POSE][SCENE_POSE])
{
    for (int p = 0; p < SCENE_POSE; p++)
        for (int q = 0; q < SCENE_POSE; q++)
            stiffness[p][q] += jacobian[0][p] * jacobian[0][q] + jacobian[1][p] * jacobian[1][q];
}

/* Finds point n of the view's frustum. Returns false where the lens has no ray. */
static bool frustum_point(const struct scene_camera *camera, double distance, size_t n,
                          double point[3])
{
    size_t column = n % GRID, row = n / GRID % GRID;
    double origin[3], direction[3], t = distances[n / (GRID * GRID)] * distance;
    if (!scene_camera_ray(camera, ((double)column + 0.5) / GRID * camera->width,
                          ((double)row + 0.5) / GRID * camera->height, origin, direction))
        return false;
    for (int i = 0; i < 3; i++)
        point[i] = origin[i] + t * direction[i];
    return true;
}

/* Computes the mean of J^T J over points in the view's frustum: the mean squared movement of the
 * points' pixels is its quadratic form. Returns false when the lens projects none of the points. */
static bool measure_stiffness(const struct scene_camera *camera, double distance,
                              double stiffness[SCENE_POSE][SCENE_POSE])
{
    size_t count = 0;
    memset(stiffness, 0, sizeof(double[SCENE_POSE][SCENE_POSE]));
    for (size_t n = 0; n < POINTS; n++) {
        double point[3], jacobian[2][SCENE_POSE];
        if (!frustum_point(camera, distance, n, point) ||
            !differentiate(camera, point, distance, jacobian))
            continue;
        add_products((const double(*)[SCENE_POSE])jacobian, stiffness);
        count++;
    }
    for (int p = 0; p < SCENE_POSE; p++)
        for (int q = 0; q < SCENE_POSE; q++)
            stiffness[p][q] /= count > 0 ? (double)count : 1;
    return count > 0;
}

/* Factors the damped stiffness into root root^T, with a lower triangular root (Cholesky). */
static void take_root(double stiffness[SCENE_POSE][SCENE_POSE], double root[SCENE_POSE][SCENE_POSE])
{
    memset(root, 0, sizeof(double[SCENE_POSE][SCENE_POSE]));
    for (int p = 0; p < SCENE_POSE; p++)
        stiffness[p][p] += fmax(DAMPING * stiffness[p][p], 1e-8);
    for (int p = 0; p < SCENE_POSE; p++) {
        for (int q = 0; q <= p; q++) {
            double rest = stiffness[p][q];
            for (int k = 0; k < q; k++)
                rest -= root[p][k] * root[q][k];
            root[p][q] = p == q ? sqrt(fmax(rest, 1e-12)) : rest / root[q][q];
        }
    }
}

/* Computes the inverse of the root's transpose: pose = whitening * latent. */
static void invert_root(double root[SCENE_POSE][SCENE_POSE],
                        double whitening[SCENE_POSE][SCENE_POSE])
{
    memset(whitening, 0, sizeof(double[SCENE_POSE][SCENE_POSE]));
    for (int column = 0; column < SCENE_POSE; column++) {
        for (int p = column; p >= 0; p--) {
            double rest = p == column ? 1 : 0;
            for (int k = p + 1; k <= column; k++)
                rest -= root[k][p] * whitening[k][column];
            whitening[p][column] = rest / root[p][p];
        }
    }
}

/* Computes the latent parameters of the movements that are the same for all cameras: translations
 * along the axes, rotations about the cameras' centre, and a change of scale. */
static void place_gauges(const struct scene_camera *camera, const double center[3],
                         double root[SCENE_POSE][SCENE_POSE], double gauge[][SCENE_POSE])
{
    double offset[3];
    for (int i = 0; i < 3; i++)
        offset[i] = (double)camera->pose[4 * i + 3] - center[i];
    for (int g = 0; g < SCENE_GAUGES; g++) {
        double pose[SCENE_POSE] = {0};
        if (g < 3) {
            pose[3 + g] = 1;
        } else if (g < 6) {
            pose[g - 3] = 1;
            vector_cross(pose, offset, pose + 3);
        } else {
            memcpy(pose + 3, offset, sizeof offset);
        }
        for (int k = 0; k < SCENE_POSE; k++) {
            gauge[g][k] = 0;
            for (int p = 0; p < SCENE_POSE; p++)
                gauge[g][k] += root[p][k] * pose[p];
        }
    }
}

static double gauge_product(const struct scene_whitening *views, size_t count, int g, int h)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < SCENE_POSE; k++)
            sum += views[i].gauge[g][k] * views[i].gauge[h][k];
    return sum;
}

/* Makes the gauges, vectors over all views, orthonormal (modified Gram-Schmidt). A gauge that is a
 * combination of others, such as the scale of cameras in one place, becomes zero. */
static void make_orthonormal(struct scene_whitening *views, size_t count)
{
    for (int g = 0; g < SCENE_GAUGES; g++) {
        double before = gauge_product(views, count, g, g);
        for (int h = 0; h < g; h++) {
            double product = gauge_product(views, count, g, h);
            for (size_t i = 0; i < count; i++)
                for (int k = 0; k < SCENE_POSE; k++)
                    views[i].gauge[g][k] -= product * views[i].gauge[h][k];
        }
        double rest = gauge_product(views, count, g, g);
        double factor = rest > LEAST * before ? 1 / sqrt(rest) : 0;
        for (size_t i = 0; i < count; i++)
            for (int k = 0; k < SCENE_POSE; k++)
                views[i].gauge[g][k] *= factor;
    }
}

void scene_whiten(const struct scene_split *split, struct scene_whitening *views)
{
    const size_t count = split->camera_count;
    double distance = content_distance(split), center[3] = {0};
    for (size_t n = 0; n < count; n++)
        for (int i = 0; i < 3; i++)
            center[i] += (double)split->cameras[n].pose[4 * i + 3] / (double)count;
    for (size_t n = 0; n < count; n++) {
        double stiffness[SCENE_POSE][SCENE_POSE], root[SCENE_POSE][SCENE_POSE];
        views[n] = (struct scene_whitening){0};
        if (!measure_stiffness(&split->cameras[n], distance, stiffness))
            continue; /* the view does not move */
        take_root(stiffness, root);
        invert_root(root, views[n].whitening);
        place_gauges(&split->cameras[n], center, root, views[n].gauge);
    }
    make_orthonormal(views, count);
}

double scene_pixel_movement(const struct scene_split *split, size_t view,
                            const struct scene_camera *moved)
{
    const struct scene_camera *camera = &split->cameras[view];
    double distance = content_distance(split), sum = 0;
    size_t count = 0;
    for (size_t n = 0; n < POINTS; n++) {
        double point[3], before[2], after[2];
        if (!frustum_point(camera, distance, n, point) ||
            !scene_camera_project(camera, point, &before[0], &before[1]) ||
            !scene_camera_project(moved, point, &after[0], &after[1]))
            continue;
        double across = fabs(after[0] - before[0]);
        if (scene_is_panoramic(camera->lens) && across > 0.5 * camera->width)
            across = camera->width - across; /* over the edge of a panorama */
        sum += across * across + (after[1] - before[1]) * (after[1] - before[1]);
        count++;
    }
    return count > 0 ? sqrt(sum / (double)count) : 0;
}
