/* Inside of the scene room: kinds of lenses, their models in files, and intrinsics as written. */
#ifndef SCENE_LENS_H
#define SCENE_LENS_H

#include "scene/scene.h"

struct cJSON;

/* The largest size, focal length and centre that a file may have, and coefficient. */
#define LENS_MAX_PIXELS      1e7
#define LENS_MAX_COEFFICIENT 1e3

/* ---- kinds (lenses.c) ------------------------------------------------------------------------ */

/* What a kind of lens makes of rays. Directions `local` are in the camera's own axes (x right, y
 * up, looking down -z); `ideal` are the picture's (u, v), distorted, y down. */
struct lens_kind {
    const char *name;        /* of its views in inspect_json; a perspective's, if distorted */
    const char *camera_type; /* nerfstudio's, of camera paths, which mean the first of this name */
    const char *distortion;  /* in words, which coefficients it has; "": none */
    bool perspective; /* (u, v) are tangents: it sees less than 180 degrees, depths lie along the
                         viewing axis */
    bool around;      /* a panorama */
    /* Sets the unit direction of the ray; false where there is none, as scene_camera_ray has it. */
    bool (*ray)(const struct scene_camera *camera, const double ideal[2], double local[3]);
    /* The inverse, of a direction of any length; `limit` is scene_camera_limit(camera). */
    bool (*project)(const struct scene_camera *camera, double limit, const double local[3],
                    double ideal[2]);
};
extern const struct lens_kind lens_kinds[SCENE_LENSES]; /* by enum vkn_lens */

#define LENS_NAME(name) #name,
extern const char *const lens_coefficient_names[SCENE_COEFFICIENT_COUNT];
double lens_coefficient(const struct vkn_camera *camera, size_t index);
void lens_set_coefficient(struct vkn_camera *camera, size_t index, double value);

/* The focal length of a panorama whose width (axis 0) or height shows all around. */
double lens_focal_panorama(double size, int axis);
/* Whether any coefficient is not 0. */
bool lens_is_distorted(const struct scene_camera *camera);

/* ---- intrinsics as written ------------------------------------------------------------------- */

/* In pixels of an image of size[0] x size[1]. A frame starts from the values at the top of the file
 * and overrides what it names. */
struct transforms_lens {
    double focal[2];  /* 0: not given */
    double angle[2];  /* full field of view in radians, used where focal is 0; 0: not given */
    double center[2]; /* NAN: not given, the middle */
    double size[2];   /* 0: not given */
    enum vkn_lens kind;
    bool per_radian; /* focal lengths of a panorama are pixels to a radian; else, as nerfstudio has
                        them, half of the picture's width and all of its height */
    bool whole;      /* a panorama all around, whatever the focal lengths are */
    double distortion[SCENE_COEFFICIENT_COUNT]; /* in the order of SCENE_COEFFICIENTS */
};
extern const struct transforms_lens lens_none;

/* Adds the keys of one JSON object to *lens. `where` is the message prefix (base_json_number). */
vkn_status lens_read(const struct cJSON *object, const char *where, struct transforms_lens *lens);
bool lens_has_focal(const struct transforms_lens *lens);
/* Fills size, focal, centre and distortion of *camera for an image of width x height pixels as
 * stored, then for downscaling by k. The lens must have a focal length. */
void lens_apply(const struct transforms_lens *lens, uint32_t width, uint32_t height, uint32_t k,
                struct scene_camera *camera);
/* Whether an image of width x height can be a resized picture of what the lens was given for: equal
 * shapes up to the rounding of either side. */
bool lens_fits_size(const struct transforms_lens *lens, uint32_t width, uint32_t height);

/* ---- models (lenses.c) ----------------------------------------------------------------------- */

/* COLMAP's camera models, whose names are the camera_model of a transforms.json as well. */
struct lens_model {
    int id; /* in cameras.bin */
    const char *name;
    unsigned count; /* parameters */
    enum vkn_lens kind;
    const char *parameters; /* their names, one after the other; NULL: it is not supported */
};
#define LENS_MAX_PARAMETERS 16
/* NULL when there is none such. */
const struct lens_model *lens_model_by_id(int id);
const struct lens_model *lens_model_by_name(const char *name, size_t length);
/* A lens from a model's parameters. `where` begins messages: "cameras.bin: camera 3". */
vkn_status lens_from_model(const struct lens_model *model, const char *where, const double size[2],
                           const double *parameters, struct transforms_lens *lens);
vkn_status lens_model_unsupported(const char *where, const char *name);
extern const char lens_models_supported[]; /* in words, for such messages */

#endif
