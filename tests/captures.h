/* Makes cameras and binary data for tests of COLMAP and LLFF captures. Include after cmocka.h. */
#ifndef TESTS_CAPTURES_H
#define TESTS_CAPTURES_H

#include <math.h>

#include "scene/transforms.h"
#include "scenes.h"

/* ---- bytes ----------------------------------------------------------------------------------- */

static inline void add_u64(struct base_text *text, uint64_t value)
{
    base_text_add_bytes(text, &value, sizeof(value));
}

static inline void add_u32(struct base_text *text, uint32_t value)
{
    base_text_add_bytes(text, &value, sizeof(value));
}

static inline void add_doubles(struct base_text *text, const double *values, size_t count)
{
    base_text_add_bytes(text, values, count * sizeof(*values));
}

/* ---- findings -------------------------------------------------------------------------------- */

/* Opens a capture as `vknerf info` does, which lists problems instead of warning. */
static inline struct vkn_scene *inspect_capture(struct scene_options *options,
                                                struct scene_findings *findings)
{
    struct vkn_scene *scene = NULL;
    options->findings = findings;
    base_log_threshold(BASE_LOG_NOTHING);
    assert_ok(scene_open(options, &scene));
    base_log_threshold(BASE_LOG_INFO);
    return scene;
}

/* ---- cameras --------------------------------------------------------------------------------- */

/* Returns camera `index` of `count` cameras 4 to 6 units around (1, 2, 3), at different heights,
 * which look there, each with another roll: position and axes in the world (rows right, down,
 * forwards, as in OpenCV). */
static inline void known_camera(unsigned index, unsigned count, double axes[3][3],
                                double position[3])
{
    static const double middle[3] = {1, 2, 3};
    double angle = 6.283185307179586 * index / count, distance = 4 + 2.0 * index / count;
    const double offset[3] = {distance * cos(angle), distance * sin(angle),
                              1.5 - 0.25 * (index % 5)};
    double length = sqrt(offset[0] * offset[0] + offset[1] * offset[1] + offset[2] * offset[2]);
    double flat = hypot(offset[0], offset[1]), tilt = 0.1 * index;
    double right[3], down[3];
    for (int i = 0; i < 3; i++) {
        position[i] = middle[i] + offset[i];
        axes[2][i] = -offset[i] / length;
    }
    /* forwards x up is right; forwards x right is down */
    right[0] = axes[2][1] * length / flat;
    right[1] = -axes[2][0] * length / flat;
    right[2] = 0;
    for (int i = 0; i < 3; i++)
        down[i] =
            axes[2][(i + 1) % 3] * right[(i + 2) % 3] - axes[2][(i + 2) % 3] * right[(i + 1) % 3];
    for (int i = 0; i < 3; i++) {
        axes[0][i] = cos(tilt) * right[i] + sin(tilt) * down[i];
        axes[1][i] = cos(tilt) * down[i] - sin(tilt) * right[i];
    }
}

/* Returns z of a point in the camera's space, and x / z and y / z in `ideal`. */
static inline double known_ideal(double axes[3][3], const double position[3], const double point[3],
                                 double ideal[2])
{
    double local[3] = {0};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            local[i] += axes[i][j] * (point[j] - position[j]);
    ideal[0] = local[0] / local[2];
    ideal[1] = local[1] / local[2];
    return local[2];
}

/* Checks that the camera projects the dataset's point to (x, y) within 1e-3 pixels, and that the
 * pixel's ray meets the point. */
static inline void assert_projects(const struct vkn_scene *scene, const struct scene_camera *camera,
                                   const double point[3], double x, double y)
{
    double training[3], at[2] = {0}, origin[3], direction[3], distance = 0, along = 0;
    for (int i = 0; i < 3; i++)
        training[i] = point[i] * scene->scale + scene->offset[i];
    assert_true(scene_camera_project(camera, training, &at[0], &at[1]));
    if (!(hypot(at[0] - x, at[1] - y) < 1e-3))
        fail_msg("%s: (%.6f, %.6f) is not (%.6f, %.6f)", camera->image_path, at[0], at[1], x, y);
    scene_camera_ray(camera, x, y, origin, direction);
    for (int i = 0; i < 3; i++)
        along += (training[i] - origin[i]) * direction[i];
    for (int i = 0; i < 3; i++)
        distance += pow(origin[i] + along * direction[i] - training[i], 2);
    assert_true(along > 0 && sqrt(distance) < 1e-5 * along);
}

/* Returns the camera, of any split, whose image path ends in `name`. */
static inline const struct scene_camera *camera_of(const struct vkn_scene *scene, const char *name)
{
    for (unsigned split = 0; split < SCENE_SPLITS; split++) {
        for (size_t i = 0; i < scene->splits[split].camera_count; i++) {
            const char *path = scene->splits[split].cameras[i].image_path;
            size_t size = strlen(path), end = strlen(name);
            if (size >= end && strcmp(path + size - end, name) == 0)
                return &scene->splits[split].cameras[i];
        }
    }
    fail_msg("no camera has the image %s", name);
    return NULL;
}

/* Checks that the image that ends in `name`, of known camera `index` of `count`, shows the
 * dataset's point (1.3, 1.8, 3.1) where a pinhole lens projects it, in pixels. */
static inline void assert_known_view(const struct vkn_scene *scene, const char *name,
                                     unsigned index, unsigned count, const double focal[2],
                                     const double center[2])
{
    static const double point[3] = {1.3, 1.8, 3.1};
    double axes[3][3], position[3], ideal[2];
    known_camera(index, count, axes, position);
    assert_true(known_ideal(axes, position, point, ideal) > 3);
    assert_projects(scene, camera_of(scene, name), point, center[0] + focal[0] * ideal[0],
                    center[1] + focal[1] * ideal[1]);
}

#endif
