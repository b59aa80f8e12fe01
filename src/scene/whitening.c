/* Computes parameters of camera poses and lenses that are equally stiff, and the movements of all
 * cameras together that change no picture (Park et al., CamP, 2023, section 4). */
#include <math.h>
#include <string.h>

#include "scene/camera_path.h"
#include "scene/transforms.h"

#define GRID         8    /* points along an edge of the image */
#define EPSILON      1e-4 /* of the numerical derivatives: radians, and parts of the distance */
#define CHANGE       0.01 /* of a lens, for numerical derivatives */
/* Part of each parameter's own stiffness that is added to it. A lens has the rays of all views of
 * its group, which determine more combinations of parameters. */
#define POSE_DAMPING 1.0
#define LENS_DAMPING 0.1
/* A gauge is a combination of earlier ones if this part of its squared length is left without them.
 */
#define LEAST        1e-12
#define MOST         SCENE_LENS /* most parameters of a pose or a lens */
_Static_assert(MOST >= SCENE_POSE, "matrices hold the parameters of a pose");

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
                          double jacobian[2][MOST])
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

void scene_change_lens(const double change[SCENE_LENS], struct scene_camera *camera)
{
    float *const coefficients[] = {&camera->k1, &camera->k2, &camera->p1, &camera->p2};
    camera->center_x += (float)(camera->focal_x * change[2]);
    camera->center_y += (float)(camera->focal_y * change[3]);
    camera->focal_x *= (float)exp(change[0]);
    camera->focal_y *= (float)exp(change[1]);
    for (int i = 0; i < 4; i++)
        *coefficients[i] += (float)change[4 + i];
}

/* Returns whether a parameter of the lens changes on its own. A single focal length stays one. */
static bool has_parameter(const struct scene_camera *camera, int parameter)
{
    if (scene_is_panoramic(camera->lens) || (parameter == 1 && camera->focal_x == camera->focal_y))
        return false;
    return parameter < 6 || camera->lens != VKN_LENS_FISHEYE;
}

/* Computes the derivatives of the point's pixel with respect to the lens's parameters. */
static bool differentiate_lens(const struct scene_camera *camera, double limit,
                               const double point[3], double jacobian[2][MOST])
{
    for (int p = 0; p < SCENE_LENS; p++) {
        double pixels[2][2] = {{0}};
        for (int side = 0; side < 2 && has_parameter(camera, p); side++) {
            double change[SCENE_LENS] = {0};
            struct scene_camera changed = *camera;
            change[p] = side == 0 ? -CHANGE : CHANGE;
            if (p == 0 && !has_parameter(camera, 1))
                change[1] = change[0];
            scene_change_lens(change, &changed);
            if (!scene_camera_project_within(&changed, limit, point, &pixels[side][0],
                                             &pixels[side][1]))
                return false;
        }
        for (int i = 0; i < 2; i++)
            jacobian[i][p] = (pixels[1][i] - pixels[0][i]) / (2 * CHANGE);
    }
    return true;
}

/* Adds J^T J of one point. */
static void add_products(const double jacobian[2][MOST], int count, double stiffness[MOST][MOST])
{
    for (int p = 0; p < count; p++)
        for (int q = 0; q < count; q++)
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
 * points' pixels is its quadratic form. `count`: SCENE_POSE for the pose, SCENE_LENS for the lens.
 * Returns false when the lens projects none of the points. */
static bool measure_stiffness(const struct scene_camera *camera, double distance, int count,
                              double stiffness[MOST][MOST])
{
    double limit = scene_camera_limit(camera);
    size_t points = 0;
    memset(stiffness, 0, sizeof(double[MOST][MOST]));
    for (size_t n = 0; n < POINTS; n++) {
        double point[3], jacobian[2][MOST];
        if (!frustum_point(camera, distance, n, point) ||
            !(count == SCENE_POSE ? differentiate(camera, point, distance, jacobian)
                                  : differentiate_lens(camera, limit, point, jacobian)))
            continue;
        add_products((const double(*)[MOST])jacobian, count, stiffness);
        points++;
    }
    for (int p = 0; p < count; p++)
        for (int q = 0; q < count; q++)
            stiffness[p][q] /= points > 0 ? (double)points : 1;
    return points > 0;
}

/* Factors the damped stiffness into root root^T, with a lower triangular root (Cholesky). */
static void take_root(double stiffness[MOST][MOST], int count, double root[MOST][MOST])
{
    const double damping = count == SCENE_POSE ? POSE_DAMPING : LENS_DAMPING;
    memset(root, 0, sizeof(double[MOST][MOST]));
    for (int p = 0; p < count; p++)
        stiffness[p][p] += fmax(damping * stiffness[p][p], 1e-8);
    for (int p = 0; p < count; p++) {
        for (int q = 0; q <= p; q++) {
            double rest = stiffness[p][q];
            for (int k = 0; k < q; k++)
                rest -= root[p][k] * root[q][k];
            root[p][q] = p == q ? sqrt(fmax(rest, 1e-12)) : rest / root[q][q];
        }
    }
}

/* Computes column `column` of the inverse of the root's transpose: parameters = inverse * latent.
 */
static void invert_root(double root[MOST][MOST], int column, double inverse[MOST])
{
    memset(inverse, 0, sizeof(double[MOST]));
    for (int p = column; p >= 0; p--) {
        double rest = p == column ? 1 : 0;
        for (int k = p + 1; k <= column; k++)
            rest -= root[k][p] * inverse[k];
        inverse[p] = rest / root[p][p];
    }
}

/* Computes the latent parameters of the movements that are the same for all cameras: translations
 * along the axes, rotations about the cameras' centre, and a change of scale. */
static void place_gauges(const struct scene_camera *camera, const double center[3],
                         double root[MOST][MOST], double gauge[][SCENE_POSE])
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

bool scene_same_lens(const struct scene_camera *a, const struct scene_camera *b)
{
    bool same = a->width == b->width && a->height == b->height && a->lens == b->lens &&
                a->focal_x == b->focal_x && a->focal_y == b->focal_y &&
                a->center_x == b->center_x && a->center_y == b->center_y;
    for (int i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        same = same && a->distortion[i] == b->distortion[i];
    return same;
}

/* Finds the first view with the same lens as view n, among the groups of earlier views. */
static size_t find_group(const struct scene_split *split, const struct scene_whitening *views,
                         size_t n)
{
    size_t first = 0;
    while (first < n && (views[first].group != first ||
                         !scene_same_lens(&split->cameras[first], &split->cameras[n])))
        first++;
    return first;
}

static void whiten_lens(const struct scene_camera *camera, double distance,
                        struct scene_whitening *view)
{
    double stiffness[MOST][MOST], root[MOST][MOST];
    if (!measure_stiffness(camera, distance, SCENE_LENS, stiffness))
        return; /* the lens does not change */
    take_root(stiffness, SCENE_LENS, root);
    for (int k = 0; k < SCENE_LENS; k++) {
        double column[MOST];
        invert_root(root, k, column);
        for (int p = 0; p < SCENE_LENS && has_parameter(camera, k); p++)
            view->lens[p][k] = column[p];
        if (!has_parameter(camera, 1))
            view->lens[1][k] = view->lens[0][k];
    }
}

static void whiten_pose(const struct scene_camera *camera, double distance, const double center[3],
                        struct scene_whitening *view)
{
    double stiffness[MOST][MOST], root[MOST][MOST];
    if (!measure_stiffness(camera, distance, SCENE_POSE, stiffness))
        return; /* the view does not move */
    take_root(stiffness, SCENE_POSE, root);
    for (int k = 0; k < SCENE_POSE; k++) {
        double column[MOST];
        invert_root(root, k, column);
        for (int p = 0; p < SCENE_POSE; p++)
            view->whitening[p][k] = column[p];
    }
    place_gauges(camera, center, root, view->gauge);
}

void scene_whiten(const struct scene_split *split, struct scene_whitening *views)
{
    const size_t count = split->camera_count;
    double distance = content_distance(split), center[3] = {0};
    for (size_t n = 0; n < count; n++)
        for (int i = 0; i < 3; i++)
            center[i] += (double)split->cameras[n].pose[4 * i + 3] / (double)count;
    for (size_t n = 0; n < count; n++) {
        views[n] = (struct scene_whitening){.group = find_group(split, views, n)};
        whiten_pose(&split->cameras[n], distance, center, &views[n]);
        if (views[n].group == n)
            whiten_lens(&split->cameras[n], distance, &views[n]);
    }
    make_orthonormal(views, count);
}

/* Returns v, turned by the rotation vector w (Rodrigues' formula). */
static void turn_vector(const float w[3], const double v[3], double turned[3])
{
    double a2 = 0, along = 0;
    for (int i = 0; i < 3; i++) {
        a2 += (double)w[i] * (double)w[i];
        along += (double)w[i] * v[i];
    }
    double angle = sqrt(a2), sine = angle > 0 ? sin(angle) / angle : 1;
    double cosine = angle > 0 ? (1 - cos(angle)) / a2 : 0.5;
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        double across = (double)w[j] * v[k] - (double)w[k] * v[j];
        turned[i] = v[i] + sine * across + cosine * ((double)w[i] * along - a2 * v[i]);
    }
}

void scene_move_camera(struct scene_camera *camera, const float turn[3], const float shift[3])
{
    for (int column = 0; column < 3; column++) {
        double axis[3], turned[3];
        for (int i = 0; i < 3; i++)
            axis[i] = (double)camera->pose[4 * i + column];
        turn_vector(turn, axis, turned);
        for (int i = 0; i < 3; i++)
            camera->pose[4 * i + column] = (float)turned[i];
    }
    for (int i = 0; i < 3; i++)
        camera->pose[4 * i + 3] += shift[i];
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
