/* scene: datasets become cameras and images; nothing here knows Vulkan. */
#ifndef SCENE_SCENE_H
#define SCENE_SCENE_H

#include <stdatomic.h>

#include <vknerf/scene.h>

#include "base/base.h"
#include "config/config.h"
#include "scene/exif.h"

/* Largest width or height of an image, in pixels. */
#define SCENE_MAX_IMAGE_SIZE 16384u

/* A pixel that does not count: masked out, or out of the lens's reach. Premultiplied colours
 * without alpha are black. */
#define SCENE_IGNORED 0x00ffffffu

enum scene_split_name { SCENE_TRAIN, SCENE_VAL, SCENE_TEST, SCENE_SPLITS };
extern const char *const scene_split_names[SCENE_SPLITS]; /* "train", "val", "test" */

/* X(name): coefficients of lenses' distortion, which vkn_camera and the device's Camera have too;
 * and others that files name and no lens has. */
#define SCENE_COEFFICIENTS(X)       X(k1) X(k2) X(p1) X(p2) X(k3) X(k4) X(sx1) X(sy1)
#define SCENE_OTHER_COEFFICIENTS(X) X(k5) X(k6)
#define SCENE_COEFFICIENT(name)     SCENE_##name,
enum { SCENE_COEFFICIENTS(SCENE_COEFFICIENT) SCENE_COEFFICIENT_COUNT };
#define SCENE_LENSES (VKN_LENS_THIN_PRISM_FISHEYE + 1) /* kinds of lenses */

/* One view. Pixel (x, y) has its centre at (x + 0.5, y + 0.5), y down. The camera looks down its
 * -z, y up (OpenGL / Blender convention). A pixel's ideal coordinates are u = (x + 0.5 - center_x)
 * / focal_x, v likewise; the lens maps undistorted to distorted ideal coordinates, so ray
 * generation inverts it. All values are for the image as loaded (after downscaling). */
struct scene_camera {
    uint32_t width, height;                     /* pixels */
    float focal_x, focal_y, center_x, center_y; /* pixels */
    enum vkn_lens lens;
    union { /* distortion, 0: none */
        struct {
            float k1, k2, p1, p2, k3, k4, sx1, sy1; /* the order of SCENE_COEFFICIENTS */
        };
        float distortion[SCENE_COEFFICIENT_COUNT];
    };
    float time;           /* 0..1 for dynamic scenes, else 0 */
    float pose[12];       /* camera to world, 3 rows x 4 columns, in training space */
    uint64_t first_pixel; /* index of this view's first pixel in its split's `pixels`, or 0 */
    char *image_path;     /* for messages; owned by the scene */
    char *mask_path;      /* NULL: every pixel counts; owned by the scene */
    bool mask_inverted;   /* the mask is bright where pixels do not count, instead of dark */
    unsigned applied_orientation; /* EXIF orientation by which pixels are turned; 0, 1: as stored */
    struct scene_point *tracked;  /* points of the sparse model that its tracks say are seen here,
                                     some of many; */
    size_t tracked_count;         /* owned by the scene; NULL and 0: no tracks, or not in a split */
};

/* The views that a split holds the pixels of: of every `of` in a row `count`, from `first` on; of
 * 0, or `count`: all. */
struct scene_share {
    uint32_t first, count, of;
};

struct scene_split {
    struct scene_camera *cameras;
    size_t camera_count;
    struct scene_share share;
    uint32_t *pixels;     /* R | G << 8 | B << 16 | A << 24, sRGB, premultiplied by alpha, or
                             SCENE_IGNORED; row-major from the top; NULL until loaded */
    uint64_t pixel_count; /* width * height of all the share's views; before loading, too */
    bool has_alpha;       /* any pixel that counts with alpha < 255; known after loading */
};

/* A point of a sparse model: roughly where a surface is. */
struct scene_point {
    float position[3]; /* training space */
    uint8_t color[3];  /* sRGB */
};

/* Training space: the region that is reconstructed is the cube with centre (0.5, 0.5, 0.5) and side
 * aabb_scale; training = dataset * scale + offset (axes kept, so that exports keep the dataset's),
 * both of single precision unless scene_needs_double. */
struct vkn_scene {
    char *path; /* the folder or .json file as given */
    struct scene_split splits[SCENE_SPLITS];
    double scale, offset[3];
    uint32_t aabb_scale;        /* power of two, 1..128 */
    struct scene_point *points; /* of a COLMAP model or nerfstudio's ply_file_path, else none */
    size_t point_count;
    float near;                   /* the nearest content's depth in training units; 0: not known */
    enum vkn_scene_format format; /* never AUTO after scene_open */
    uint32_t downscale;
    uint32_t load_downscale;     /* what of it is left for loading: images_N folders are smaller */
    bool dynamic;                /* frames carry different times */
    _Atomic uint32_t references; /* beside the one who opened it: the last to close it frees it */
};

/* What opening a scene passes over. */
struct scene_findings {
    size_t broken;        /* frames left out because their image or mask is missing or broken */
    char *first_broken;   /* the message about the first of them; NULL: none */
    char **broken_images; /* theirs, where there are files */
    size_t broken_image_count;
    size_t missing; /* frames without an image that training leaves out as well */
    char *others;   /* in words, which of several sparse models is taken; NULL: there is one */
    /* In words, images under other names, and with an EXIF orientation; or NULL. */
    char *other_names, *turned, *as_stored, *orientation_unknown;
    double (*points)[3];            /* of the sparse model, in training space; NULL: none */
    size_t point_count, bad_points; /* bad: left out, as a number of theirs is not finite */
    char *first_bad_point;          /* the message about the first of them; NULL: none */
    struct cJSON *unread; /* keys of a transforms.json that nothing reads, as inspect_json has them;
                             NULL: none */
};
void scene_findings_free(struct scene_findings *findings);

struct scene_options {
    const char *path; /* folder of a scene or of a sparse model of it, or a transforms.json or
                         poses_bounds.npy */
    enum vkn_scene_format format;
    uint32_t downscale; /* 0 means 1; image sizes divide rounding down (edge rows dropped) */
    double scale;       /* 0: from the file or the dialect's default */
    double offset[3];
    uint32_t aabb_scale; /* 0: from the file or the dialect's default */
    bool placed;         /* scale, offset and aabb_scale are all given: those of a run */
    struct scene_findings *findings; /* NULL: missing and broken images are errors, as training
                                        wants them */
};

/* Detects the format, reads cameras of all splits and checks that every image exists and has the
 * size it should (image headers only). The caller owns *scene; scene_close(scene) frees it and
 * nulls the pointer.
 *
 * Splits: transforms_train.json, _val.json and _test.json of the folder (path may also name the
 * first); else transforms.json, whose train_filenames, val_filenames and test_filenames decide, or
 * without them every 8th frame in order of file_path is for testing and nothing for validation. No
 * other file is read. Captures of formats without splits are split in the same way, by the names of
 * the images. Frames with a "sharpness" (instant-ngp) and those of COLMAP may lack their image:
 * they are left out, with a warning.
 *
 * Masks: a frame's mask_path (nerfstudio) is bright where pixels count; a dynamic_mask_NAME.png
 * beside NAME.jpg (instant-ngp) where they do not. Bright is more than half of the mask's brightest
 * value. A mask is as large as its image, or a whole number of times larger or smaller.
 *
 * Space: scale, offset and aabb_scale of the file, by default 0.33, 0.5 and 1. A nerfstudio file
 * without any of them (whose ply_file_path may give points), and a capture of a format without one,
 * gets a space measured on its training cameras and what is known of the depths in view (space.h):
 * what they look at in the middle, the cameras at the mean distance 1.32 from it, and an aabb_scale
 * that holds both, 16 when no depths are known. Not with options->placed. */
vkn_status scene_open(const struct scene_options *options, struct vkn_scene **scene);
/* Another share: pixels that are loaded are freed, unless the same views stay. */
void scene_set_share(struct vkn_scene *scene, enum scene_split_name split,
                     struct scene_share share);
/* How many of `views` views it has; the number of one of these; whether it has a view. */
size_t scene_share_count(struct scene_share share, size_t views);
size_t scene_share_view(struct scene_share share, size_t index);
bool scene_share_has(struct scene_share share, size_t view);
/* Decodes one split's share in parallel; `progress` may be NULL. VKN_BAD_INPUT for training images
 * of which no pixel counts. */
vkn_status scene_load(struct vkn_scene *scene, enum scene_split_name split,
                      void (*progress)(void *context, size_t done, size_t total), void *context);
/* One view, made `shrink` times smaller than its camera (rounding down), as rows of pixels like
 * those of scene_split: from there when that holds it, else from its file, with the same result.
 * Views can be read by several threads at once. */
vkn_status scene_read_view(const struct vkn_scene *scene, enum scene_split_name split, size_t index,
                           uint32_t shrink, uint32_t *pixels);
/* The same of its rows first_row .. first_row + rows - 1 alone. */
vkn_status scene_read_rows(const struct vkn_scene *scene, enum scene_split_name split, size_t index,
                           uint32_t first_row, uint32_t rows, uint32_t shrink, uint32_t *pixels);
/* The camera of such a view; first_pixel and image_path stay. */
struct scene_camera scene_shrink_camera(const struct scene_camera *camera, uint32_t shrink);
/* The camera of those rows, which first_pixel is still not that of. */
struct scene_camera scene_crop_camera(const struct scene_camera *camera, uint32_t first_row,
                                      uint32_t rows);
struct scene_camera scene_fit_camera(const struct scene_camera *camera,
                                     uint64_t most); /* in about `most` pixels at most */
void scene_close(struct vkn_scene **scene);
struct vkn_scene *scene_retain(struct vkn_scene *scene); /* for one more to close */
bool scene_needs_double(const double offset[3]); /* dataset coordinates are too large for single
                                              precision: an offset of 16 or more */
/* The default is the first with views of test, val, train. VKN_BAD_INPUT when it has none. */
vkn_status scene_find_split(const vkn_scene *scene, enum vkn_split split,
                            enum scene_split_name *name);
/* The same, and that it has this view. */
vkn_status scene_find_view(const vkn_scene *scene, enum vkn_split split, size_t view,
                           enum scene_split_name *name);
/* From the dataset's space to training space; VKN_BAD_INPUT names what is wrong with it. */
vkn_status scene_camera_from_public(const struct vkn_camera *given, double scale,
                                    const double offset[3], struct scene_camera *camera);
/* The folder of a scene's images: `path`, or above a model's, such as SCENE/sparse/1. The caller
 * frees *folder. */
vkn_status scene_capture_folder(const char *path, char **folder);

/* ---- looking a scene over: what is in it and what is wrong with it (vknerf info SCENE) ------- */

struct inspection;
/* `near`: rays start this far from the camera. Reads masks, no images. `scene` and `findings` must
 * outlive *inspection, which the caller frees with inspect_free; NULL after a failure. */
vkn_status inspect_scene(const struct vkn_scene *scene, const struct scene_findings *findings,
                         double near, struct inspection **inspection);
void inspect_free(struct inspection **inspection);
/* What `vknerf info SCENE --json` prints, for cJSON_Delete; NULL without memory. */
struct cJSON *inspect_json(const struct inspection *inspection);

/* What a drawing shows of an inspection. Positions are in training space. */
struct inspect_overview {
    const struct vkn_scene *scene;
    const struct scene_findings *findings;
    size_t views, problems;
    uint32_t width, height; /* of most views */
    bool sizes_differ;
    double fov[2];          /* the largest, degrees */
    double low[3], high[3]; /* box of the camera positions */
    bool has_focus;         /* the training cameras look at `attention` */
    double focus[3];
};
struct inspect_overview inspect_overview(const struct inspection *inspection);

/* The share of the training views' rays that meet the cube, from every view in so many. */
double inspect_inside(const struct vkn_scene *scene, size_t stride);
#define INSPECT_MIN_INSIDE 0.25 /* less is a problem */
/* A warning where poses do not belong to their pictures, by a sample of these: a few seconds
 * (photo_consistency.h). */
void scene_warn_consistency(const struct vkn_scene *scene);

/* ---- camera paths --------------------------------------------------------------------------- */

#define SCENE_MAX_FRAMES 100000 /* of a camera path that is made up: an hour of video */
struct scene_camera_path {
    struct scene_camera *cameras; /* no image_path; the caller frees */
    size_t count;
    /* Frames a second, 0: not given; box that is shown, as vkn_render_params has it. */
    double fps, crop[6];
    enum vkn_background background;
};

/* Reads one of four kinds of JSON file, told apart by their keys:
 *   path         what instant-ngp writes (base_cam.json), in the space that it puts the scene into
 *   camera_path  what nerfstudio's viewer writes. Positions are in nerfstudio's own space: `dataparser`,
 *                or else a dataparser_transforms.json in the file's folder, leads back to the
 *                dataset's; without either, the two are taken to be the same, with a warning
 *   keyframes    few cameras with a spline through them: docs/rendering.md
 *   frames       like a transforms.json, but without need for images
 * Sizes and lenses that the file does not give are those of `like` (NULL: the first training
 * camera), without distortion; of a fisheye or a panorama those of a pinhole with at most 90
 * degrees. */
vkn_status scene_read_camera_path(const struct vkn_scene *scene, const char *file,
                                  const char *dataparser, const struct scene_camera *like,
                                  struct scene_camera_path *camera_path);
/* `count` views on a smooth way through all training cameras, in the order of their file names, or,
 * when that goes to and fro, of a short tour from the first. Its lens as scene_orbit has it. The
 * caller frees *cameras. */
vkn_status scene_interpolate(const struct vkn_scene *scene, uint32_t count,
                             struct scene_camera **cameras);
/* `count` views on a circle around the centre of the training cameras' point of attention, looking
 * at it, at their mean height and distance, with the intrinsics (without distortion) of the first,
 * as of scene_read_camera_path's `like`. */
vkn_status scene_orbit(const struct vkn_scene *scene, uint32_t count,
                       struct scene_camera **cameras);
/* All around from where a camera is, level unless `up` (unit length) is NULL or it looks along
 * that. A side of 0: twice as wide as high, with both as high as the camera's picture. */
struct scene_camera scene_panorama(const struct scene_camera *camera, uint32_t width,
                                   uint32_t height, const double *up);

/* The mean of the training cameras' up vectors, of unit length; the nearest axis when that is
 * within 30 degrees: cameras that look down on an object all tilt, and datasets have an axis up. */
void scene_up(const struct scene_split *train, double up[3]);

/* CPU camera model, the definition that shaders are tested against. Direction of the ray through
 * image position (x, y) (pixel units, 0..width), in training space, unit length, double precision.
 * False where no ray meets that position, beyond the range of the lens; the ray then is one at the
 * end of that range or nearby. */
bool scene_camera_ray(const struct scene_camera *camera, double x, double y, double origin[3],
                      double direction[3]);
bool scene_is_perspective(enum vkn_lens lens), scene_is_panoramic(enum vkn_lens lens); /* lens.h */
/* The range of the lens: where its radial distortion, followed outwards, stops growing. In the
 * undistorted ideal coordinates of a perspective lens, SCENE_NO_LIMIT where it never stops; an
 * angle, at most pi, of others. */
double scene_camera_limit(const struct scene_camera *camera);
/* The distance that 1 % of the points in the picture do not exceed; 0: fewer than 100 are there. */
double scene_nearest_point(const struct vkn_scene *scene, const struct scene_camera *camera);
#define SCENE_NO_LIMIT 1e9

/* Image files. 8-bit RGBA rows from the top, R first in memory; PNG, JPEG, WebP, TIFF, BMP, TGA,
 * GIF or HDR; 1 to 4 channels, or a palette, become RGBA; 16-bit samples are rounded. The caller
 * frees *rgba. Truncated or hostile files: VKN_BAD_INPUT names the file. */
vkn_status scene_image_size(const char *path, uint32_t *width, uint32_t *height);
vkn_status scene_image_read(const char *path, uint8_t **rgba, uint32_t *width, uint32_t *height);
/* PNG with 1 (grey), 3 or 4 channels, or grey of 16 bits, written atomically. */
vkn_status scene_image_write_png(const char *path, const uint8_t *pixels, uint32_t width,
                                 uint32_t height, uint32_t channels);
vkn_status scene_image_write_png16(const char *path, const uint16_t *grey, uint32_t width,
                                   uint32_t height);
/* The 8-bit one into memory for embedding in a report; the caller frees *png. */
vkn_status scene_image_encode_png(const uint8_t *pixels, uint32_t width, uint32_t height,
                                  uint32_t channels, uint8_t **png, size_t *size);
/* Copies (image_copies.c): PNG files `factors` times smaller, the pixels those of training with
 * --downscale; mask: may be NULL. */
vkn_status scene_copy_smaller(const char *image, const char *mask, const uint32_t *factors,
                              char *const *paths, size_t count);
/* A JPEG turned as EXIF's orientation says, with a segment (its exif) behind its start; a PNG where
 * `size` is 0. */
vkn_status scene_copy_upright(const char *image, unsigned orientation, const void *segment,
                              size_t size, const char *path);
vkn_status scene_check_model(const char *folder); /* of COLMAP's, binary; VKN_BAD_INPUT: a file of
                                                     it is cut off */
/* The mask in that folder for an image once `name`, black and white in the image's size; *found:
 * there is one. */
vkn_status scene_copy_mask(const char *masks, const char *name, const char *image,
                           unsigned orientation, const char *path, bool *found);

#endif
