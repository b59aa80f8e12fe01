/* Inside of the scene room: what camera paths are made of. */
#ifndef SCENE_CAMERA_PATH_H
#define SCENE_CAMERA_PATH_H

#include "scene/transforms.h"

/* ---- vectors (vectors.c) ----------------------------------------------------------------------
 */

double vector_dot(const double a[3], const double b[3]);
void vector_cross(const double a[3], const double b[3], double result[3]);
/* To unit length, unless it is 0; returns the length. */
double vector_normalize(double v[3]);

/* Camera to world, 3 rows x 4 columns, of a camera at `position` that looks along -`back` with `up`
 * upwards in its picture; any roll when it looks along `up`. `back` must not be 0. */
void look_along(const double position[3], const double back[3], const double up[3],
                double pose[12]);

/* ---- splines (spline.c) -------------------------------------------------------------------- */

/* A smooth curve through points: cubic Hermite pieces whose tangent at a point is the slope between
 * its neighbours (Catmull and Rom 1974), one-sided at the ends. */
struct spline {
    size_t count, channels; /* at least 1 */
    const double *values;   /* [count][channels] */
    const double *times; /* [count], increasing; with `loop` [count + 1]: when the first returns */
    bool loop;
};
#define SPLINE_CHANNELS 12 /* at most */
/* The curve at `time` within times[0] .. the last time: `channels` values. */
void spline_at(const struct spline *spline, double time, double *values);

/* ---- camera paths -------------------------------------------------------------------------- */

/* A camera that sees `angle` radians vertically, in the middle of the picture, as `like` otherwise:
 * where size is 0 it is that of `like`, or in proportion to the other. */
struct scene_camera camera_path_camera(const struct scene_camera *like, const uint32_t size[2],
                                       double angle);
/* A pinhole of the size of *like, with its lens but for the distortion, without a place or time.
 * One like a fisheye has the fisheye's scale in the middle, but sees at most 90 degrees along the
 * longer side: beyond, a pinhole's picture is all stretched border. */
struct scene_camera camera_path_undistorted(const struct scene_camera *like);
double camera_path_angle(const struct scene_camera *camera); /* its vertical field of view */
/* Reads the array `name` of so many numbers; VKN_BAD_INPUT for another, or where it is required and
 * absent. */
vkn_status camera_path_numbers(const struct cJSON *json, const char *name, const char *where,
                               bool required, int count, double *values);

/* From nerfstudio's space to the dataset's. */
struct camera_path_space {
    double pose[12]; /* the dataset's = pose * (factor * nerfstudio's) */
    double factor;
};
extern const struct camera_path_space camera_path_same_space;

/* Camera paths by content: see scene_read_camera_path. The caller frees camera_path->cameras. */
vkn_status camera_path_parse(const struct vkn_scene *scene, const char *file,
                             const struct cJSON *json, const struct camera_path_space *space,
                             const struct scene_camera *like,
                             struct scene_camera_path *camera_path);
bool camera_path_is_nerfstudio(const struct cJSON *json);
vkn_status camera_path_parse_nerfstudio(const struct vkn_scene *scene, const char *file,
                                        const struct cJSON *json,
                                        const struct camera_path_space *space,
                                        struct scene_camera_path *camera_path);
/* The box of its `crop`, an object of "crop_center", "crop_scale", "crop_rot" (radians) and
 * "crop_bg_color"; VKN_BAD_INPUT where the box does not lie along the dataset's axes. */
vkn_status camera_path_read_crop(const char *file, const struct cJSON *json,
                                 const struct camera_path_space *space,
                                 struct scene_camera_path *camera_path);
bool camera_path_is_ngp(const struct cJSON *json);
vkn_status camera_path_parse_ngp(const struct vkn_scene *scene, const char *file,
                                 const struct cJSON *json, const struct scene_camera *like,
                                 struct scene_camera_path *camera_path);
bool camera_path_is_keyframes(const struct cJSON *json);
vkn_status camera_path_parse_keyframes(const struct vkn_scene *scene, const char *file,
                                       const struct cJSON *json, const struct scene_camera *like,
                                       struct scene_camera_path *camera_path);
/* The space of a nerfstudio export: from `dataparser`, a dataparser_transforms.json, by default the
 * one in the folder of `file`, and what the scene's transforms.json says was applied before. */
vkn_status camera_path_read_space(const struct vkn_scene *scene, const char *file,
                                  const char *dataparser, struct camera_path_space *space);

#endif
