/* Declares lens kinds, and lens models and intrinsics as written in files (internal to scene). */
#ifndef SCENE_LENS_H
#define SCENE_LENS_H

#include "scene/scene.h"

struct cJSON;

/* Largest size, focal length and centre (pixels), and largest coefficient that a file may have. */
#define LENS_MAX_PIXELS      1e7
#define LENS_MAX_COEFFICIENT 1e3

/* ---- kinds (lenses.c) ------------------------------------------------------------------------ */

/* A kind of lens: maps between rays and image positions. `local` directions are in the camera's
 * axes (x right, y up, looking down -z). `ideal` are distorted ideal coordinates (u, v), y down. */
struct lens_kind {
    const char *name;        /* in inspect_json, which calls an undistorted perspective "pinhole" */
    const char *camera_type; /* nerfstudio's name in camera paths, for the first such kind */
    const char *distortion;  /* supported coefficients, for messages; "": none */
    bool perspective; /* (u, v) are tangents: the field of view is below 180 degrees, and depths lie
                         along the viewing axis */
    bool panoramic;   /* an equirectangular panorama */
    /* Sets the unit direction of the ray; returns false when there is none (scene_camera_ray). */
    bool (*ray)(const struct scene_camera *camera, const double ideal[2], double local[3]);
    /* Inverts `ray` for directions of any length; false: beyond `limit` (scene_camera_limit). */
    bool (*project)(const struct scene_camera *camera, double limit, const double local[3],
                    double ideal[2]);
};
extern const struct lens_kind lens_kinds[SCENE_LENSES]; /* indexed by enum vkn_lens */

/* The names of the coefficients, in the order of SCENE_COEFFICIENTS. */
#define LENS_NAME(name) #name,
extern const char *const lens_coefficient_names[SCENE_COEFFICIENT_COUNT];
/* Read and set a distortion coefficient by its index in SCENE_COEFFICIENTS. */
double lens_coefficient(const struct vkn_camera *camera, size_t index);
void lens_set_coefficient(struct vkn_camera *camera, size_t index, double value);

/* Returns the focal length, in pixels per radian, of a full panorama of `size` pixels: its width
 * (axis 0) or height (axis 1). */
double lens_focal_panorama(double size, int axis);
/* Returns whether any distortion coefficient is not 0. */
bool lens_is_distorted(const struct scene_camera *camera);

/* ---- intrinsics as written ------------------------------------------------------------------- */

/* Intrinsics as written, in pixels of an image of size[0] x size[1]. A frame starts with the values
 * from the top level of the file, which the frame's own keys override. */
struct transforms_lens {
    double focal[2];  /* 0: not given */
    double angle[2];  /* full field of view in radians, used when focal is 0; 0: not given */
    double center[2]; /* NAN: not given, the middle of the image */
    double size[2];   /* 0: not given */
    enum vkn_lens kind;
    bool per_radian; /* a panorama's focal lengths are in pixels per radian; false: pi times as
                        large, as in nerfstudio */
    bool is_full;    /* a full panorama; the focal lengths are ignored */
    double distortion[SCENE_COEFFICIENT_COUNT]; /* in the order of SCENE_COEFFICIENTS */
};
/* Intrinsics without a given value. */
extern const struct transforms_lens lens_none;

/* Overrides *lens with the keys of one JSON object. `where`: prefix of messages. */
vkn_status lens_read(const struct cJSON *object, const char *where, struct transforms_lens *lens);
/* Returns whether the focal length of one axis is given or known (panorama). */
bool lens_has_focal(const struct transforms_lens *lens);
/* Sets size, focal length, centre, kind and distortion of *camera for a stored image of width x
 * height pixels that is downscaled by k. The lens must have a focal length. */
void lens_apply(const struct transforms_lens *lens, uint32_t width, uint32_t height, uint32_t k,
                struct scene_camera *camera);
/* Returns whether an image of width x height can be a resized version of the image that the lens
 * was given for: equal aspect ratios up to the rounding of either side. */
bool lens_fits_size(const struct transforms_lens *lens, uint32_t width, uint32_t height);

/* Checks the numbers of a lens against the ranges of files and the coefficients of its kind, which
 * must not be panoramic. `where` begins messages. */
vkn_status lens_check(const struct transforms_lens *lens, const char *where);
/* Converts a lens to pixels of an image of another size. */
void lens_resize(struct transforms_lens *lens, const double size[2]);
/* Returns the name of the first parameter that differs between two lenses with focal lengths, by
 * more than the rounding to single precision; NULL: there is none. A centre may be the middle. */
enum { LENS_FOCAL = 1, LENS_CENTER = 2, LENS_DISTORTION = 4, LENS_SIZE = 8, LENS_ALL = 15 };
const char *lens_difference(const struct transforms_lens *a, const struct transforms_lens *b,
                            unsigned parts);

/* ---- models (lenses.c) ----------------------------------------------------------------------- */

/* A camera model of COLMAP; the camera_model of a transforms.json has the same names. */
struct lens_model {
    int id; /* number in cameras.bin */
    const char *name;
    unsigned count; /* number of parameters */
    enum vkn_lens kind;
    const char *parameters; /* parameter names, separated by spaces; NULL: not supported */
};
#define LENS_MAX_PARAMETERS 16
/* Return the model with an id or a name of `length` bytes; NULL: there is no such model. */
const struct lens_model *lens_model_by_id(int id);
const struct lens_model *lens_model_by_name(const char *name, size_t length);
/* Makes a lens from the parameters of a model. `where` begins messages: "cameras.bin: camera 3". */
vkn_status lens_from_model(const struct lens_model *model, const char *where, const double size[2],
                           const double *parameters, struct transforms_lens *lens);
/* Returns `model` if it can hold a lens, else OPENCV or OPENCV_FISHEYE if one of them can; NULL: no
 * model can, and *problem becomes the name of a parameter. */
const struct lens_model *lens_model_for(const struct lens_model *model,
                                        const struct transforms_lens *lens, const char **problem);
/* Computes the parameters of a model that can hold the lens. */
void lens_parameters(const struct lens_model *model, const struct transforms_lens *lens,
                     double parameters[LENS_MAX_PARAMETERS]);
/* Fails with the message that a model is not supported. */
vkn_status lens_model_unsupported(const char *where, const char *name);
extern const char lens_models_supported[]; /* the supported models, for messages */

#endif
