/* Reads datasets into cameras and images, and writes copies of datasets with other cameras.
 * The module does not use Vulkan. */
#ifndef SCENE_SCENE_H
#define SCENE_SCENE_H

#include <stdatomic.h>

#include <vknerf/scene.h>

#include "base/base.h"
#include "config/config.h"
#include "scene/exif.h"

/* Largest width or height of an image, in pixels. */
#define SCENE_MAX_IMAGE_SIZE 16384u

/* Value of an ignored pixel: masked out, or not reached by the lens. Premultiplied colours with
 * alpha 0 are black, so no other pixel has this value. */
#define SCENE_IGNORED 0x00ffffffu

/* The splits, as indices of vkn_scene.splits. */
enum scene_split_name { SCENE_TRAIN, SCENE_VAL, SCENE_TEST, SCENE_SPLITS };
extern const char *const scene_split_names[SCENE_SPLITS]; /* "train", "val", "test" */

/* X(name): the distortion coefficients of the lenses, also fields of struct vkn_camera and of the
 * device's Camera. Files may also give SCENE_OTHER_COEFFICIENTS, which are refused unless 0. */
#define SCENE_COEFFICIENTS(X)       X(k1) X(k2) X(p1) X(p2) X(k3) X(k4) X(sx1) X(sy1)
#define SCENE_OTHER_COEFFICIENTS(X) X(k5) X(k6)
#define SCENE_COEFFICIENT(name)     SCENE_##name,
enum { SCENE_COEFFICIENTS(SCENE_COEFFICIENT) SCENE_COEFFICIENT_COUNT };
#define SCENE_LENSES (VKN_LENS_THIN_PRISM_FISHEYE + 1) /* number of lens kinds */

/* One view. Pixel (x, y) has its centre at (x + 0.5, y + 0.5), y down. The camera looks down its
 * -z, y up (OpenGL / Blender convention). A pixel's ideal coordinates are u = (x + 0.5 - center_x)
 * / focal_x, and v likewise. The lens maps undistorted to distorted ideal coordinates, so ray
 * generation inverts the lens. All values are for the image as loaded (after downscaling). */
struct scene_camera {
    uint32_t width, height;                     /* pixels */
    float focal_x, focal_y, center_x, center_y; /* pixels */
    enum vkn_lens lens;
    union { /* distortion coefficients, 0: none */
        struct {
            float k1, k2, p1, p2, k3, k4, sx1, sy1; /* in the order of SCENE_COEFFICIENTS */
        };
        float distortion[SCENE_COEFFICIENT_COUNT];
    };
    float time;           /* 0..1 for dynamic scenes, else 0 */
    float pose[12];       /* camera to world, 3 rows x 4 columns, in training space */
    uint32_t file, frame; /* the scene's file that lists the view, as index of its split, or
                             SCENE_TRAIN if one file lists all; position in this file's list */
    uint64_t first_pixel; /* index in the split's `pixels`; 0 outside of the share */
    char *image_path;     /* image file, or a name for messages; owned by the scene */
    char *mask_path;      /* mask file; NULL: every pixel is used; owned by the scene */
    char *depth_path;     /* picture of depths; NULL: none; owned by the scene */
    double depth_unit;    /* of the picture's values, in dataset units */
    bool mask_inverted;   /* the mask is bright at the ignored pixels instead of the used ones */
    unsigned applied_orientation; /* EXIF orientation that is applied to the pixels; 0, 1: none */
    bool has_exposure;            /* the image file gives its exposure */
    float exposure;               /* in stops, see exif_exposure */
    uint32_t *tracked; /* the sparse model's points whose tracks list this view, as indices; owned
                          by the scene */
    size_t tracked_count; /* 0 and NULL: the model has no tracks, or the camera is not of a split */
    size_t first_depth, depth_count; /* the view's range of the split's depths */
};

/* The subset of a split's views whose pixels are loaded: views first .. first + count - 1 of every
 * `of` consecutive views. All views when `of` equals `count` (both may be 0). */
struct scene_share {
    uint32_t first, count, of;
};

/* A known depth in a view, from a sparse point or a depth picture. */
struct scene_depth {
    float x, y;  /* position in the image as loaded, pixels */
    float depth; /* as in scene_camera_depth_scale, training units */
    float sigma; /* standard deviation of `depth` */
};

/* The views of one split. */
struct scene_split {
    struct scene_camera *cameras;
    size_t camera_count;
    /* Known depths, view after view, by y in a view; NULL before scene_find_depths. Training views
     * have the depths to train on; other views have the depths that are held out. */
    struct scene_depth *depths;
    size_t depth_count;
    struct scene_share share;
    uint32_t *pixels;     /* R | G << 8 | B << 16 | A << 24, sRGB, premultiplied by alpha, or
                             SCENE_IGNORED; rows from the top, view after view; NULL until loaded */
    uint64_t pixel_count; /* pixels of all views of the share, also before they are loaded */
    bool has_alpha;       /* any used pixel has alpha < 255; known after loading */
};

/* A point of a sparse model. */
struct scene_point {
    float position[3]; /* training space */
    uint8_t color[3];  /* sRGB */
    float error;       /* mean reprojection error, radians; 0: unknown */
};

/* The background of images without alpha, measured along the borders of a sample of the training
 * images. Plain: most borders have one colour. */
struct scene_background {
    bool is_plain;
    uint8_t color[3];   /* sRGB, if is_plain */
    size_t views;       /* sampled images that could be read */
    size_t plain_views; /* sampled images whose borders have the colour */
    bool has_alpha;     /* a sampled image has alpha < 255 */
};

/* How the exposures of the training images differ, in stops; 0: unknown. */
struct scene_exposures {
    double files; /* range of what the image files give */
    /* Upper quartiles of the jumps between neighbouring views, in mean brightness and in the ratios
     * of the mean channels. */
    double light, color;
};

/* Where known depths come from. */
enum scene_depth_kind {
    SCENE_DEPTH_TRACKS,   /* points of a sparse model, in the views of their tracks */
    SCENE_DEPTH_CLOUD,    /* points without tracks, in views that seem to see them */
    SCENE_DEPTH_PICTURES, /* pixels of depth pictures */
    SCENE_DEPTH_KINDS
};
extern const char *const scene_depth_kinds[SCENE_DEPTH_KINDS]; /* keys of inspect_json */
/* The training views' known depths. */
struct scene_depths {
    bool are_known[SCENE_SPLITS]; /* scene_find_depths has been called */
    size_t counts[SCENE_DEPTH_KINDS];
    double sigma; /* median of sigma / depth */
};

/* What training images show above the horizon, as shares of pixels; 0: unknown. */
struct scene_sky {
    bool is_known;   /* scene_find_sky has been called */
    double compared; /* of all pixels: those in directions that several views show */
    double same;     /* of these: those with the colour that most views show in their direction */
};

/* A scene. In training space the reconstructed region is the cube with centre (0.5, 0.5, 0.5) and
 * side aabb_scale. training = dataset * scale + offset: axes are kept, so exports keep the
 * dataset's axes. scale and offset are rounded to single precision unless scene_needs_double. */
struct vkn_scene {
    char *path; /* folder or .json file, as given */
    char *file; /* file where reading starts; NULL: a scene in memory */
    struct scene_split splits[SCENE_SPLITS];
    double scale, offset[3];
    uint32_t aabb_scale;        /* power of two, 1..128 */
    double unit_length;         /* metres of a dataset unit; 0: unknown */
    struct scene_point *points; /* of a COLMAP model or nerfstudio's ply_file_path; NULL: none */
    size_t point_count;
    float near;                   /* depth of the nearest content in training units; 0: unknown */
    enum vkn_scene_format format; /* never VKN_SCENE_AUTO after scene_open */
    uint32_t downscale;
    uint32_t load_downscale; /* part of `downscale` to apply: images_N are smaller already */
    bool dynamic;            /* frames have different times */
    struct scene_background background; /* set by scene_find_background */
    struct scene_exposures exposures;   /* set by scene_find_exposures */
    struct scene_depths depths;         /* set by scene_find_depths */
    struct scene_sky sky;               /* set by scene_find_sky */
    _Atomic uint32_t references;        /* reference count minus 1 */
};

/* What scene_open skipped or found worth reporting. Strings are owned; NULL: nothing to report. */
struct scene_findings {
    size_t broken;        /* number of frames skipped for a missing or broken image or mask */
    char *first_broken;   /* message about the first of these frames; NULL: none */
    char **broken_images; /* image files of the skipped frames, where they exist */
    size_t broken_image_count;
    size_t missing; /* number of frames without an image; training skips them too */
    char *others;   /* names the sparse model that is read and the others, when there are several */
    /* Describe images found under other names; images rotated by their EXIF orientation; images
     * used as stored, since only then they fit their camera; images that may need a rotation. */
    char *other_names, *rotated, *as_stored, *orientation_unknown;
    double (*points)[3];            /* of the sparse model, in training space; NULL: none */
    size_t point_count, bad_points; /* bad: not finite or beyond 1e9, skipped */
    char *first_bad_point;          /* message about the first of these points; NULL: none */
    struct cJSON *unread;           /* `unread_keys` of inspect_json; NULL: none */
};
/* Frees what the struct owns. */
void scene_findings_free(struct scene_findings *findings);

/* How scene_open opens a scene. */
struct scene_options {
    const char *path; /* folder of a scene or of a sparse model, or a transforms.json,
                         poses_bounds.npy or intrinsics.txt */
    enum vkn_scene_format format;
    uint32_t downscale; /* 0 means 1; image sizes are divided and rounded down (edge rows and
                           columns are dropped) */
    double scale;       /* 0: from the file or the dialect's default */
    double offset[3];
    uint32_t aabb_scale;             /* 0: from the file or the dialect's default */
    bool is_fixed;                   /* scale, offset and aabb_scale are all given */
    double unit_length;              /* 0: from the file, else unknown */
    enum vkn_test_views test_views;  /* the default means FILES */
    struct scene_findings *findings; /* NULL: missing and broken images are errors */
};

/* Detects the format, reads the cameras of all splits, and checks that every image exists and has
 * the expected size (reads image headers only). The caller owns *scene; scene_close(scene) frees it
 * and sets the pointer to NULL.
 *
 * Splits: transforms_train.json, _val.json and _test.json of the folder (the path may also be
 * the first file's); else transforms.json with its train_filenames, val_filenames and
 * test_filenames. Without the three lists every 8th frame in order of file_path is for testing, and
 * none for validation. Other transforms_*.json are not read. Captures in formats without splits are
 * split in the same way, by image names. options->test_views NONE makes all frames training views,
 * EIGHTH splits the frames of all files in this way. Frames of COLMAP and frames with a "sharpness"
 * (instant-ngp) are skipped with a warning when their image is missing.
 *
 * Masks: a frame's mask_path (nerfstudio) is bright at used pixels; a dynamic_mask_NAME.png beside
 * NAME.jpg (instant-ngp) is bright at ignored pixels. Bright means more than half of the mask's
 * brightest value. A mask has the size of its image, or an integer multiple or fraction of it.
 *
 * Space: scale, offset and aabb_scale of the file, by default 0.33, 0.5 and 1. When a nerfstudio
 * file gives none of the three, and for formats that cannot give them, the space is measured on the
 * training cameras and the known depths (space.h): the focus point is put in the middle, the
 * cameras at the mean distance 1.32 from it, and the cube of side aabb_scale contains cameras and
 * content (16 when no depths are known). options->is_fixed overrides file and measurement. */
vkn_status scene_open(const struct scene_options *options, struct vkn_scene **scene);

/* A new camera of a view. */
struct scene_new_camera {
    uint32_t file, frame; /* as in struct scene_camera */
    double pose[12];      /* camera to world, 3 rows x 4 columns, in the dataset's units */
    bool has_lens;        /* false: the lens stays; not for panoramas */
    /* Pixels of the image as it was before scene->downscale; coefficients as in scene_camera. */
    double focal[2], center[2], distortion[SCENE_COEFFICIENT_COUNT];
};
/* Writes a copy of the scene's files with these cameras, in the scene's format, into the folder
 * `out`, which exists. Everything else stays as it is: all other keys of a transforms.json, frames
 * without a new camera, text or binary files of a COLMAP model. All other files and folders of the
 * scene's folder become symbolic links with absolute targets, except hidden ones, `out` itself, and
 * folders that `out` has already. VKN_BAD_INPUT, before anything is written: another entry to be
 * made exists in `out`, a file of the scene has changed so that it no longer has a frame, or the
 * format cannot hold a new lens. Frames that share a lens in the files share a new lens, even those
 * without a new camera. `again`: completes the copy of a call that was ended; its entries may
 * exist.
 *
 * COLMAP: the points move to the least squared reprojection errors of their tracks, with the new
 * cameras and, of images without one, the old. A point's new mean error is written. A point stays
 * as it is when none of its images has a new camera, its track names an absent image or 2D point,
 * or it is behind one of its cameras. A point that would get a larger mean error does not move.
 * rigs and frames (COLMAP 3.12 and later) hold poses too: they are left out, and COLMAP makes them
 * anew for cameras that are no rigs. The model's files in the other form and points3D.ply are left
 * out.
 *
 * A camera whose model cannot hold its new lens becomes OPENCV or OPENCV_FISHEYE; images of a
 * camera must agree about their lens.
 *
 * transforms.json: names of files that lead out of the scene's folder become absolute. Intrinsics
 * are replaced where they stand, or added there; frames whose lenses differ get keys of their own.
 * LLFF and NSVF hold no distortion, LLFF one focal length and the image's middle as centre.
 * Poses in files of other formats beside the scene's stay old: those files are linked. (write.c) */
vkn_status scene_write(const struct vkn_scene *scene, const struct scene_new_camera *cameras,
                       size_t count, const char *out, bool again);
/* Sets the share. Frees pixels that are loaded, unless the share stays the same. */
void scene_set_share(struct vkn_scene *scene, enum scene_split_name split,
                     struct scene_share share);
/* Return how many of a split's `views` views are in the share; the index in the split of the
 * share's view `index`; whether the split's view `view` is in the share. */
size_t scene_share_count(struct scene_share share, size_t views);
size_t scene_share_view(struct scene_share share, size_t index);
bool scene_share_has(struct scene_share share, size_t view);
/* Decodes the images of a split's share in parallel; `progress` may be NULL. Returns VKN_BAD_INPUT
 * when masks hide every pixel of the training images. */
vkn_status scene_load(struct vkn_scene *scene, enum scene_split_name split,
                      void (*progress)(void *context, size_t done, size_t total), void *context);
/* Reads a training view, reduced to a longer side of `longest` pixels or a few more and to one
 * pixel at least. Returns fresh pixels as of scene_read_view and sets the reduced camera; NULL:
 * failed. */
uint32_t *scene_read_small(const struct vkn_scene *scene, size_t view, uint32_t longest,
                           struct scene_camera *camera);
/* Sets scene->background. Reads up to 16 training views, from memory if they are loaded; views that
 * cannot be read do not count. The background is not plain if a view has alpha. */
void scene_find_background(struct vkn_scene *scene);
/* Returns white or black if the scene has this plain background, else the default. */
enum vkn_background scene_plain_background(const struct vkn_scene *scene);
/* Writes "plain white background, #ffffff along the borders of 16 of 16 images". Returns whether
 * the background is plain. */
bool scene_describe_background(const struct vkn_scene *scene, char text[128]);
/* Writes one view, `shrink` times smaller than its camera's image (rounding down), in the layout of
 * scene_split.pixels. Reads the split's pixels when they are loaded, else decodes the image file
 * with the same result. Several threads may read views at once. */
vkn_status scene_read_view(const struct vkn_scene *scene, enum scene_split_name split, size_t index,
                           uint32_t shrink, uint32_t *pixels);
/* Like scene_read_view, but only for the rows first_row .. first_row + rows - 1. */
vkn_status scene_read_rows(const struct vkn_scene *scene, enum scene_split_name split, size_t index,
                           uint32_t first_row, uint32_t rows, uint32_t shrink, uint32_t *pixels);
/* Returns the camera of a shrunk view (scene_read_view); first_pixel and image_path stay equal. */
struct scene_camera scene_shrink_camera(const struct scene_camera *camera, uint32_t shrink);
/* Returns the camera of the rows that scene_read_rows reads. first_pixel is not adapted to them. */
struct scene_camera scene_crop_camera(const struct scene_camera *camera, uint32_t first_row,
                                      uint32_t rows);
/* Returns the camera, reduced if needed to about `max_pixels` pixels. */
struct scene_camera scene_fit_camera(const struct scene_camera *camera, uint64_t max_pixels);
/* Drops a reference, frees the scene with the last one, and sets the pointer to NULL. */
void scene_close(struct vkn_scene **scene);
/* Adds a reference for another scene_close. */
struct vkn_scene *scene_retain(struct vkn_scene *scene);
/* Returns whether the offset is 16 or more: single precision is too coarse for the coordinates. */
bool scene_needs_double(const double offset[3]);
/* Makes a pose from three rows of four numbers: removes a uniform scale and makes the rotation
 * orthonormal. Returns NULL or the problem in words. (pose.c) */
const char *scene_pose_from_rows(const double (*rows)[4], double pose[12]);
/* Translates a public split. The default is the first of test, val and train that has views.
 * Returns VKN_BAD_INPUT when the split has none. */
vkn_status scene_find_split(const vkn_scene *scene, enum vkn_split split,
                            enum scene_split_name *name);
/* Like scene_find_split; also checks that the split has this view. */
vkn_status scene_find_view(const vkn_scene *scene, enum vkn_split split, size_t view,
                           enum scene_split_name *name);
/* Converts a position from dataset space to training space. */
void scene_position_from_public(const double position[3], double scale, const double offset[3],
                                double result[3]);
/* Converts a public camera (dataset space) to training space. Returns VKN_BAD_INPUT, with a message
 * that names the field, for an invalid camera. */
vkn_status scene_camera_from_public(const struct vkn_camera *given, double scale,
                                    const double offset[3], struct scene_camera *camera);
/* Converts a camera from training space to a public one in dataset space. */
struct vkn_camera scene_camera_to_public(const struct scene_camera *camera, double scale,
                                         const double offset[3]);
/* Returns the folder of the capture: `path`, or its parent when `path` is a folder of models such
 * as SCENE/sparse/1. The caller frees *folder. */
vkn_status scene_capture_folder(const char *path, char **folder);

/* ---- captures of other programs -------------------------------------------------------------- */

/* Programs that write captures with poses, which vknerf prepare converts. */
enum scene_program {
    SCENE_NO_PROGRAM,
    SCENE_METASHAPE,
    SCENE_REALITYCAPTURE,
    SCENE_POLYCAM,
    SCENE_RECORD3D,
    SCENE_OPENSFM,
    SCENE_OPF,
    SCENE_PROGRAMS
};
extern const char *const scene_program_names[SCENE_PROGRAMS];
/* Finds such a capture: `path` is its folder or its file. Sets *file, which the caller frees, to
 * the file where reading starts (Polycam: a folder), or to NULL when there is none. VKN_BAD_INPUT:
 * the folder has several. (foreign.c) */
vkn_status scene_find_program(const char *path, enum scene_program *program, char **file);
/* Decodes %XX in place unless to control characters or separators; returns whether any was.
 * (find.c) */
bool scene_decode_percent(char *name);
/* Returns a key that is equal for names with the same letters: the decomposed name (name_key.c), in
 * lower case with `fold`. The caller frees it; NULL: out of memory. */
char *scene_name_key(const char *name, bool fold);

/* ---- inspection of a scene (vknerf info SCENE) ----------------------------------------------- */

struct inspection;
/* Measures a scene and lists its problems. `near`: distance from the camera at which rays start.
 * Reads masks, and a sample of the images. `scene` and `findings` must outlive *inspection, which
 * the caller frees with inspect_free (NULL after a failure). */
vkn_status inspect_scene(const struct vkn_scene *scene, const struct scene_findings *findings,
                         double near, struct inspection **inspection);
/* Frees an inspection and sets the pointer to NULL. */
void inspect_free(struct inspection **inspection);
/* Returns the output of `vknerf info SCENE --json`, for cJSON_Delete; NULL: out of memory. */
struct cJSON *inspect_json(const struct inspection *inspection);

/* The part of an inspection that a drawing of the scene shows. Positions are in training space. */
struct inspect_overview {
    const struct vkn_scene *scene;
    const struct scene_findings *findings;
    size_t views, problems;
    uint32_t width, height; /* most frequent size */
    bool sizes_differ;
    double fov[2];          /* largest horizontal and vertical field of view, degrees */
    double low[3], high[3]; /* bounding box of the camera positions */
    bool has_focus;         /* the training cameras have the focus point `focus` */
    double focus[3];
};
/* Returns the overview of an inspection. Its scene and findings must outlive the result. */
struct inspect_overview inspect_overview(const struct inspection *inspection);

/* Returns the fraction of rays that hit the cube, over every `stride`-th training view. */
double inspect_inside(const struct vkn_scene *scene, size_t stride);
#define INSPECT_MIN_INSIDE 0.25 /* smaller fractions are reported as a problem */
/* Logs a warning when poses do not fit their images, measured on a sample of the views
 * (photo_consistency.h). Takes a few seconds. */
void scene_warn_consistency(const struct vkn_scene *scene);

/* ---- boxes ----------------------------------------------------------------------------------- */

#define SCENE_MOST_ROTATION 360.0 /* degrees */
/* A box, in dataset units: low and high corner before the box is rotated about its centre, by
 * `rotation` degrees about the dataset's x axis, then y, then z. Corners of zeros: no box. (box.c)
 */
struct scene_box {
    double low[3], high[3], rotation[3];
};
/* Returns the box of these corners and this rotation. */
struct scene_box scene_box_of(const double low[3], const double high[3], const double rotation[3]);
/* Returns whether a corner is not 0 0 0. */
bool scene_box_given(const struct scene_box *box);
/* Returns VKN_BAD_INPUT, with a message on "crop" or "crop_rotation", unless there is no box and no
 * rotation, or the box has a volume and its numbers are finite. */
vkn_status scene_box_check(const struct scene_box *box);
/* Computes the unit vectors along the box's edges: axes[k] is where rotation takes the k-th axis.
 */
void scene_box_axes(const struct scene_box *box, double axes[3][3]);
/* Sets the rotation whose axes, as scene_box_axes computes them, are `axes`: a right-handed system.
 */
void scene_box_set_axes(const double axes[3][3], struct scene_box *box);
/* A box by its axes: it contains the positions p with low[k] <= p . axes[k] <= high[k]. Without a
 * rotation, low and high exactly equal the box's low and high. */
struct scene_box_limits {
    double axes[3][3], low[3], high[3];
};
struct scene_box_limits scene_box_limits(const struct scene_box *box);
bool scene_box_contains(const struct scene_box_limits *limits, const double position[3]);

/* ---- camera paths ---------------------------------------------------------------------------- */

#define SCENE_MAX_FRAMES 100000 /* limit of computed paths: about an hour of video */
/* The cameras of a camera path, and the rendering options of its file. */
struct scene_camera_path {
    struct scene_camera *cameras; /* without image_path; the caller frees the array */
    size_t count;
    double fps; /* frames per second, 0: not given */
    struct scene_box crop;
    enum vkn_background background;
};

/* Reads one of four kinds of JSON file, told apart by their keys:
 *   path         instant-ngp's (base_cam.json), in its unit cube's space
 *   camera_path  nerfstudio's, in its own space. The transform to the dataset's space is read from
 *                `dataparser`, or else dataparser_transforms.json in the file's folder; without
 *                either, the spaces are assumed to be equal, with a warning
 *   keyframes    a few cameras with a spline through them: docs/rendering.md
 *   frames       like a transforms.json, but images are not needed
 * A size or lens that the file lacks is that of `like` (NULL: the first training camera) without
 * distortion, or of a pinhole of at most 90 degrees if `like` is a fisheye or a panorama. */
vkn_status scene_read_camera_path(const struct vkn_scene *scene, const char *file,
                                  const char *dataparser, const struct scene_camera *like,
                                  struct scene_camera_path *camera_path);
/* Makes `count` views on a smooth path through all training cameras, in the order of their file
 * names or, when a short tour from the first camera is much shorter, in the tour's order.
 * Intrinsics are those of scene_orbit. The caller frees *cameras. */
vkn_status scene_interpolate(const struct vkn_scene *scene, uint32_t count,
                             struct scene_camera **cameras);
/* Makes `count` views on a circle around the training cameras' focus point, looking at the focus
 * point, at the cameras' mean height and distance. Intrinsics are those of the first training
 * camera without distortion, as for `like` of scene_read_camera_path. The caller frees *cameras. */
vkn_status scene_orbit(const struct vkn_scene *scene, uint32_t count,
                       struct scene_camera **cameras);
/* Returns an equirectangular camera at the position of `camera`, levelled to `up` (unit length)
 * unless `up` is NULL or `camera` looks along `up`. A width or height of 0 is chosen so that the
 * image is twice as wide as high; when both are 0 the height is that of `camera`. */
struct scene_camera scene_panorama(const struct scene_camera *camera, uint32_t width,
                                   uint32_t height, const double *up);

/* Finds the box, in dataset units, of the object that most training views look at. `points`: random
 * points, in training space, on the surfaces that the views see; their order is changed. *problem:
 * NULL, or the reason why there is no such object. The box is rounded outwards to short decimals.
 * (object_box.c) */
vkn_status scene_find_object(const struct vkn_scene *scene, double (*points)[3], size_t count,
                             double low[3], double high[3], const char **problem);

/* Returns the training cameras' mean up vector, of unit length, or an axis within 30 degrees of the
 * vector: cameras that look down on an object all tilt, but datasets have an up axis. */
void scene_up(const struct scene_split *train, double up[3]);

/* Computes the ray through image position (x, y) (pixel units, 0..width), in training space, with a
 * unit direction, in double precision. This is the reference that the shaders are tested against.
 * Returns false when no ray passes through the position because it is beyond the range of the lens;
 * the ray is then at or near the end of the range. */
bool scene_camera_ray(const struct scene_camera *camera, double x, double y, double origin[3],
                      double direction[3]);
/* Return whether a lens is perspective; whether it is panoramic. */
bool scene_is_perspective(enum vkn_lens lens), scene_is_panoramic(enum vkn_lens lens);
/* Returns the range of the lens: where its radial distortion stops growing outwards. The range of a
 * perspective lens is a radius in undistorted ideal coordinates, or SCENE_NO_LIMIT; the range of
 * other lenses is an angle of at most pi. */
double scene_camera_limit(const struct scene_camera *camera);
/* Projects a point in training space to an image position, which may be outside of the image: the
 * inverse of scene_camera_ray. Returns false behind a perspective lens and beyond its range. */
bool scene_camera_project(const struct scene_camera *camera, const double point[3], double *x,
                          double *y);
/* Returns the factor from distance along `direction` (of scene_camera_ray) to depth: the cosine to
 * the viewing axis for perspective lenses; 1 for other lenses, whose depths are distances because a
 * ray at 90 degrees has no depth along the axis. */
double scene_camera_depth_scale(const struct scene_camera *camera, const double direction[3]);
/* Returns whether the lens reaches the image's corners, so that its distortion is invertible. */
bool scene_camera_invertible(const struct scene_camera *camera);
/* Returns the 1 % quantile of the distances from the camera to the sparse points in its image; 0
 * when fewer than 100 points are in the image. */
double scene_nearest_point(const struct vkn_scene *scene, const struct scene_camera *camera);
/* The range of a lens that reaches everywhere. */
#define SCENE_NO_LIMIT 1e9

/* ---- exposures (exposure.c) ------------------------------------------------------------------ */

#define SCENE_MOST_EXPOSURE 16.0F /* stops from the mean */

/* Returns the linear light of an sRGB value, both 0..1 (IEC 61966-2-1). */
double scene_linear_light(double value);
/* Returns a camera's exposure in stops about the mean of the split's views, by what image files
 * give (has_exposure); 0 where the files give none. */
float scene_relative_exposure(const struct scene_split *split, const struct scene_camera *camera);
/* Sets scene->exposures. Reads up to 16 training views and a neighbour of each, from memory if they
 * are loaded; views that cannot be read do not count. */
void scene_find_exposures(struct vkn_scene *scene);
/* Returns what a training estimates by default of the appearance of the scene's images. */
enum vkn_appearance scene_default_appearance(const struct vkn_scene *scene);
/* Writes "exposures differ: by 2.3 stops in the image files". Returns whether they differ. */
bool scene_describe_exposures(const struct vkn_scene *scene, char text[128]);

/* Lists the known depths of a split's views, unless they are known already: of points that two
 * training views see, and of depth pictures. Every eighth point is held out from training.
 * (depth.c) */
vkn_status scene_find_depths(struct vkn_scene *scene, enum scene_split_name split);

/* Checks a parameter `unit_length` of a public function `what`: 0, or as scene.unit_length. */
vkn_status scene_check_unit(const char *what, double unit_length);

/* ---- the sky (sky.c) ------------------------------------------------------------------------- */

/* Sets scene->sky, unless it is known already. Reads up to 32 training views, from memory if they
 * are loaded; views that cannot be read do not count. */
void scene_find_sky(struct vkn_scene *scene);
/* Returns whether the images show a sky, and have no alpha. */
bool scene_shows_sky(const struct vkn_scene *scene);
/* Writes "images show a sky: 93 % of what is above the horizon depends on the direction alone".
 * Returns whether they do. */
bool scene_describe_sky(const struct vkn_scene *scene, char text[128]);

#define SCENE_POSE   6 /* parameters of a pose's change: rotation vector, translation */
#define SCENE_GAUGES 7 /* translations, rotations and change of scale of all cameras together */
/* Parameters of a lens's change, which does not depend on the image's size: of the logarithms of
 * the focal lengths (x, y), of the principal point in focal lengths (x, y), of k1, k2, p1, p2. */
#define SCENE_LENS   8
/* Returns whether two cameras have the same lens: equal sizes, kinds and intrinsics. */
bool scene_same_lens(const struct scene_camera *a, const struct scene_camera *b);
/* Changes the lens of a camera. */
void scene_change_lens(const double change[SCENE_LENS], struct scene_camera *camera);
/* The latent parameters of a view's pose. The pose changes by whitening * latent: the camera turns
 * about its position by a rotation vector (radians), and moves, in training space. A change of
 * `latent` by a vector of length 1 moves points in the view's frustum by at most about one pixel.
 */
struct scene_whitening {
    double whitening[SCENE_POSE][SCENE_POSE]; /* zero: the pose cannot change */
    double gauge[SCENE_GAUGES][SCENE_POSE];   /* the view's part of orthonormal vectors over all
                                                 views: the movements that change no picture */
    size_t group;                        /* the first view with the same lens (scene_same_lens) */
    double lens[SCENE_LENS][SCENE_LENS]; /* of the group's first view: the lens changes by lens *
                                            latent, with pixels as for the pose. Zero: parameters
                                            that the lens does not have; equal rows: a single focal
                                            length stays one */
};
/* Computes views[split->camera_count]. Points of a view's frustum are 8 x 8 pixels at 0.75, 0.9,
 * 1.125 and 1.5 times the cameras' mean distance from the cube's centre, or at least 0.5. */
void scene_whiten(const struct scene_split *split, struct scene_whitening *views);
/* Turns the camera about its position by a rotation vector, and moves it, in training space. */
void scene_move_camera(struct scene_camera *camera, const float turn[3], const float shift[3]);
/* Returns the root mean square distance, in pixels, between the images of these points in a view of
 * the split and in the moved camera. */
double scene_pixel_movement(const struct scene_split *split, size_t view,
                            const struct scene_camera *moved);

/* Read image files: PNG, JPEG, WebP, TIFF, BMP, TGA, GIF or HDR. Pixels are 8-bit RGBA, rows from
 * the top; 1 to 4 channels or a palette become RGBA; 16-bit samples are rounded. The caller frees
 * *rgba. Truncated or hostile files return VKN_BAD_INPUT with a message that names the file. */
vkn_status scene_image_size(const char *path, uint32_t *width, uint32_t *height);
vkn_status scene_image_read(const char *path, uint8_t **rgba, uint32_t *width, uint32_t *height);
/* Write a PNG file atomically: 8 bits with 1 (grey), 3 or 4 channels, or 16 bits grey. */
vkn_status scene_image_write_png(const char *path, const uint8_t *pixels, uint32_t width,
                                 uint32_t height, uint32_t channels);
vkn_status scene_image_write_png16(const char *path, const uint16_t *grey, uint32_t width,
                                   uint32_t height);
/* Encodes an 8-bit PNG in memory, for embedding in a report; the caller frees *png. */
vkn_status scene_image_encode_png(const uint8_t *pixels, uint32_t width, uint32_t height,
                                  uint32_t channels, uint8_t **png, size_t *size);
/* Writes `count` PNG files, the image downscaled by factors[i] at paths[i], with the pixels that
 * training with --downscale uses. `mask` may be NULL. (image_copies.c) */
vkn_status scene_copy_smaller(const char *image, const char *mask, const uint32_t *factors,
                              char *const *paths, size_t count);
/* Writes an upright copy of an image that has an EXIF orientation: a JPEG with the EXIF segment
 * `segment`, or a PNG when `size` is 0. */
vkn_status scene_copy_upright(const char *image, unsigned orientation, const void *segment,
                              size_t size, const char *path);
/* Writes a copy of a 16-bit depth picture with the value 0, unknown, at pixels whose value in the
 * picture `confidence`, of any size, is 0. (depth_picture.c) */
vkn_status scene_filter_depth(const char *depth, const char *confidence, const char *filtered);
/* Checks that a binary COLMAP model can be read; VKN_BAD_INPUT: a file is damaged or cut off. */
vkn_status scene_check_model(const char *folder);
/* Finds the mask of the image with the original name `name` in the folder `masks` and writes it in
 * black and white and in the image's size. Sets *found to whether there is a mask. */
vkn_status scene_copy_mask(const char *masks, const char *name, const char *image,
                           unsigned orientation, const char *path, bool *found);

#endif
