/* Reads and computes camera paths (internal to the module scene). */
#ifndef SCENE_CAMERA_PATH_H
#define SCENE_CAMERA_PATH_H

#include "scene/transforms.h"

/* ---- vectors (vectors.c) --------------------------------------------------------------------- */

/* Return the dot product; compute the cross product. */
double vector_dot(const double a[3], const double b[3]);
void vector_cross(const double a[3], const double b[3], double result[3]);
/* Normalises a vector unless it is 0; returns its length. */
double vector_normalize(double v[3]);
/* Solves m x = b by Cramer's rule; the result is not finite when there is none. */
void vector_solve(const double m[3][3], const double b[3], double x[3]);

/* Computes the camera-to-world pose (3 rows x 4 columns) of a camera at `position` that looks along
 * -`back`, which must not be 0, with `up` upwards in its image. The roll is arbitrary when the
 * camera looks along `up`. */
void look_along(const double position[3], const double back[3], const double up[3],
                double pose[12]);

/* ---- splines (spline.c) ---------------------------------------------------------------------- */

/* A smooth curve through points: cubic Hermite segments whose tangent at a point is the slope
 * between its neighbours (Catmull and Rom 1974), one-sided at the ends. */
struct spline {
    size_t count, channels; /* at least 1 */
    const double *values;   /* [count][channels] */
    const double *times;    /* [count], increasing; with `loop` [count + 1]: the last is the time of
                               the return to point 0 */
    bool loop;
};
#define SPLINE_CHANNELS 12 /* largest number of channels */
/* Evaluates the curve at `time`, from times[0] to the last time. values: [channels]. */
void spline_at(const struct spline *spline, double time, double *values);

/* ---- camera paths ---------------------------------------------------------------------------- */

/* Returns a camera with the vertical field of view `angle` (radians) and a centred optical axis. A
 * side of 0 follows from the other side by the aspect ratio of `like`; 0 0: the size of `like`. */
struct scene_camera camera_path_camera(const struct scene_camera *like, const uint32_t size[2],
                                       double angle);
/* Returns a pinhole camera with size and intrinsics of *like, without distortion, pose or time. For
 * a fisheye or a panorama the pinhole has the lens's scale in the middle, but sees at most 90
 * degrees along the longer side, since its image would be stretched beyond. */
struct scene_camera camera_path_undistorted(const struct scene_camera *like);
/* Returns the vertical field of view in radians. */
double camera_path_angle(const struct scene_camera *camera);
/* Reads the array `name` of `count` numbers. Returns VKN_BAD_INPUT for anything else, and when a
 * required array is absent. */
vkn_status camera_path_numbers(const struct cJSON *json, const char *name, const char *where,
                               bool required, int count, double *values);

/* Transform from nerfstudio's space to the dataset's. */
struct camera_path_space {
    double pose[12]; /* dataset = pose * (factor * nerfstudio) */
    double factor;
};
/* The identity: both spaces are the same. */
extern const struct camera_path_space camera_path_same_space;

/* Parses a camera path of any kind, which it recognises by the keys (scene_read_camera_path). The
 * caller frees camera_path->cameras. */
vkn_status camera_path_parse(const struct vkn_scene *scene, const char *file,
                             const struct cJSON *json, const struct camera_path_space *space,
                             const struct scene_camera *like,
                             struct scene_camera_path *camera_path);
/* camera_path_is_... returns whether a file is of that kind; camera_path_parse_... parses it. */
bool camera_path_is_nerfstudio(const struct cJSON *json);
vkn_status camera_path_parse_nerfstudio(const struct vkn_scene *scene, const char *file,
                                        const struct cJSON *json,
                                        const struct camera_path_space *space,
                                        struct scene_camera_path *camera_path);
/* Reads the box of `crop`, an object of "crop_center", "crop_scale", "crop_rot" (radians) and
 * "crop_bg_color". */
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
/* Reads the transform of a nerfstudio export from a dataparser_transforms.json (`dataparser`; NULL:
 * in the folder of `file`) and from the applied_transform of the scene's transforms.json. */
vkn_status camera_path_read_space(const struct vkn_scene *scene, const char *file,
                                  const char *dataparser, struct camera_path_space *space);

#endif
