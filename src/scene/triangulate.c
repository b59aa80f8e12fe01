/* Finds the positions of points that images show: least squares over reprojection errors. */
#include "scene/triangulate.h"

#include <math.h>
#include <string.h>

#include "scene/camera_path.h"

#define ROUNDS     20
#define DAMPING    1e-4  /* first part of each squared derivative that is added to it */
#define LEAST      1e-9  /* smallest damping: points that only one view shows stay determined */
#define MOST       1e6   /* largest damping; its steps no longer lower the errors */
#define DIFFERENCE 1e-6  /* of the numerical derivatives, in parts of the distance to the camera */
#define PRECISION  1e-12 /* relative decrease of the squared errors that is too small to go on */

struct triangulate_view triangulate_view(const struct transforms_frame *frame)
{
    struct triangulate_view view = {.focal = {0}};
    const struct transforms_lens *lens = &frame->lens;
    lens_apply(lens, (uint32_t)lens->size[0], (uint32_t)lens->size[1], 1, &view.camera);
    const double focal[2] = {view.camera.focal_x, view.camera.focal_y},
                 center[2] = {view.camera.center_x, view.camera.center_y};
    bool panoramic = lens_kinds[lens->kind].panoramic;
    for (int axis = 0; axis < 2; axis++) {
        view.focal[axis] = panoramic ? focal[axis] : lens->focal[axis];
        view.center[axis] = panoramic ? center[axis] : lens->center[axis];
    }
    memcpy(view.pose, frame->pose, sizeof(view.pose));
    return view;
}

/* ---- reprojection errors --------------------------------------------------------------------- */

/* Computes a point's position in the camera's axes. Differences come first: coordinates may be far
 * from the origin. */
static void to_camera(const struct triangulate_view *view, const double point[3], double local[3])
{
    const double *pose = view->pose;
    for (int i = 0; i < 3; i++)
        local[i] = pose[i] * (point[0] - pose[3]) + pose[4 + i] * (point[1] - pose[7]) +
                   pose[8 + i] * (point[2] - pose[11]);
}

/* Computes the difference between projection and pixel. The lens is not limited to its range, as in
 * COLMAP, whose points may be a little beyond. Returns false behind a camera. */
static bool find_residual(const struct triangulate_observation *observation, const double local[3],
                          double residual[2])
{
    const struct triangulate_view *view = observation->view;
    const struct lens_kind *kind = &lens_kinds[view->camera.lens];
    double ideal[2];
    if (!kind->project(&view->camera, SCENE_NO_LIMIT, local, ideal))
        return false;
    for (int axis = 0; axis < 2; axis++)
        residual[axis] =
            ideal[axis] * view->focal[axis] + view->center[axis] - observation->pixel[axis];
    if (kind->panoramic) /* the shorter way around */
        residual[0] -= view->camera.width * round(residual[0] / view->camera.width);
    return isfinite(residual[0]) && isfinite(residual[1]);
}

/* Adds up squared and plain errors in pixels. Returns false when a view does not project the point.
 */
static bool find_errors(const struct triangulate_observation *observations, size_t count,
                        const double point[3], double *squares, double *errors)
{
    *squares = *errors = 0;
    for (size_t i = 0; i < count; i++) {
        double local[3], residual[2];
        to_camera(observations[i].view, point, local);
        if (!find_residual(&observations[i], local, residual))
            return false;
        *squares += residual[0] * residual[0] + residual[1] * residual[1];
        *errors += hypot(residual[0], residual[1]);
    }
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The normal equations J^T J step = -J^T residual. */
struct equations {
    double matrix[3][3], vector[3];
};

/* Computes the derivatives of a residual with respect to the point. */
static bool differentiate(const struct triangulate_observation *observation, const double local[3],
                          double jacobian[2][3])
{
    const double *pose = observation->view->pose;
    double step = DIFFERENCE * sqrt(vector_dot(local, local));
    memset(jacobian, 0, 6 * sizeof(double));
    for (int k = 0; k < 3; k++) {
        double low[2], high[2], at[3];
        memcpy(at, local, sizeof(at));
        at[k] = local[k] - step;
        if (!find_residual(observation, at, low))
            return false;
        at[k] = local[k] + step;
        if (!find_residual(observation, at, high))
            return false;
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 3; j++)
                jacobian[i][j] += (high[i] - low[i]) / (2 * step) * pose[4 * j + k];
    }
    return true;
}

static bool add_observation(const struct triangulate_observation *observation,
                            const double point[3], struct equations *equations)
{
    double local[3], residual[2], jacobian[2][3];
    to_camera(observation->view, point, local);
    if (!find_residual(observation, local, residual) ||
        !differentiate(observation, local, jacobian))
        return false;
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 3; j++) {
            equations->vector[j] -= jacobian[i][j] * residual[i];
            for (int k = 0; k < 3; k++)
                equations->matrix[j][k] += jacobian[i][j] * jacobian[i][k];
        }
    }
    return true;
}

/* Computes the point after a step. The damping is relative to the diagonal (Marquardt 1963). */
static bool find_step(const struct triangulate_observation *observations, size_t count,
                      double damping, const double point[3], double moved[3])
{
    struct equations equations = {.vector = {0}};
    double step[3];
    for (size_t i = 0; i < count; i++)
        if (!add_observation(&observations[i], point, &equations))
            return false;
    for (int i = 0; i < 3; i++)
        equations.matrix[i][i] *= 1 + damping;
    vector_solve((const double(*)[3])equations.matrix, equations.vector, step);
    bool valid = true;
    for (int i = 0; i < 3; i++) {
        moved[i] = point[i] + step[i];
        valid = valid && fabs(moved[i]) <= POINTS_MAX_COORDINATE;
    }
    return valid;
}

/* Takes steps until the squared errors do not fall any more. */
static void minimize(const struct triangulate_observation *observations, size_t count,
                     double position[3], double *squares, double *errors)
{
    double damping = DAMPING;
    for (int round = 0; round < ROUNDS && damping <= MOST; round++) {
        double moved[3], new_squares = 0, new_errors = 0;
        bool lower = find_step(observations, count, damping, position, moved) &&
                     find_errors(observations, count, moved, &new_squares, &new_errors) &&
                     new_squares < *squares;
        damping = lower ? fmax(0.1 * damping, LEAST) : 10 * damping;
        if (!lower)
            continue;
        bool converged = *squares - new_squares <= PRECISION * *squares;
        memcpy(position, moved, sizeof(moved));
        *squares = new_squares;
        *errors = new_errors;
        if (converged)
            break;
    }
}

bool triangulate(const struct triangulate_observation *observations, size_t count,
                 double position[3], double *error)
{
    double squares = 0, first = 0, moved[3];
    memcpy(moved, position, sizeof(moved));
    if (count == 0 || !find_errors(observations, count, position, &squares, &first))
        return false;
    double errors = first;
    minimize(observations, count, moved, &squares, &errors);
    if (errors < first)
        memcpy(position, moved, sizeof(moved));
    *error = fmin(errors, first) / (double)count;
    return true;
}
