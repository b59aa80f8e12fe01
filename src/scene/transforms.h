/* Declares a capture as written in its files, before it becomes cameras (internal to the module
 * scene). The structs are named after transforms.json; the readers of other formats fill the same
 * structs.
 *
 * Three dialects share transforms.json and are told apart by their keys, not by a name:
 *   Blender     camera_angle_x, file_path without extension, one file per split, no image size
 *   instant-ngp fl_x fl_y cx cy w h k1 k2 p1 p2, aabb_scale, scale, offset, sharpness; one file
 *   nerfstudio  as instant-ngp, each intrinsic also per frame, camera_model, applied_transform,
 *               train_filenames / val_filenames / test_filenames
 * In all of them transform_matrix maps OpenGL camera coordinates (x right, y up, looking down -z)
 * to the world, and distortion is OpenCV's, defined with y down. */
#ifndef SCENE_TRANSFORMS_H
#define SCENE_TRANSFORMS_H

#include "scene/lens.h"
#include "scene/write.h"

struct transforms_point;
/* A frame of a capture. */
struct transforms_frame {
    size_t index;     /* position in the file */
    uint32_t file;    /* as in struct scene_camera */
    char *file_path;  /* as written; the order of these strings decides which views are held out */
    char *image_path; /* image file; NULL before transforms_find_images */
    char *mask_name;  /* mask_path as written; NULL: none */
    char *mask_path;  /* mask file, checked by mask_check; NULL: no mask */
    bool mask_inverted; /* the mask is bright at the ignored pixels */
    char *depth_path;   /* depth_file_path or depth_path, with the file's folder; NULL: none */
    double depth_unit;  /* of its values, in dataset units */
    /* FOUND_... flags (find.h): how the files' names differ from the written names. */
    unsigned image_differences, mask_differences;
    bool skipped;         /* skipped by findings_skip_frame */
    unsigned orientation; /* EXIF orientation of the image */
    bool has_exposure;
    float exposure; /* as in struct scene_camera */
    bool rotated; /* the orientation is applied: width and height are those of the upright image */
    bool orientation_known; /* exactly one of the stored and the upright image fits the camera */
    uint32_t width, height;
    struct transforms_lens lens;
    double time;
    double pose[12];  /* camera to world in the dataset's own units, rotation orthonormal */
    double bounds[2]; /* depths of the nearest and the farthest visible content; 0: unknown */
    unsigned splits;  /* bits 1 << scene_split_name, from the filename lists */
    bool has_sharpness;
    uint32_t *tracked; /* the points whose tracks list this frame, as indices */
    size_t tracked_count;
};

/* A point of a sparse model, in the dataset's own units. */
struct transforms_point {
    double position[3];
    uint8_t color[3]; /* sRGB */
    float error;      /* mean reprojection error: pixels in a file, then radians; 0: unknown */
};

/* Points of a file that are skipped because a value is not finite or a coordinate is beyond
 * POINTS_MAX_COORDINATE. */
struct rejected_points {
    size_t count;
    char *first; /* message about the first of them; owned, NULL: none */
};
/* Counts a skipped point; vkn_last_error() is its message. VKN_ERROR: out of memory. */
vkn_status points_reject(struct rejected_points *left_out);
#define POINTS_MAX_COORDINATE 1e9 /* largest coordinate of poses and points */

/* A capture, or one split of it. */
struct transforms {
    char *file; /* for messages */
    struct transforms_frame *frames;
    size_t count;
    size_t missing;              /* number of frames that were dropped for lack of an image */
    const char *list;            /* what the file calls its frames, for messages; static */
    struct transforms_lens lens; /* from the top level of the file */
    bool measures_space;         /* a training space is measured when the file gives none */
    uint32_t image_factor;       /* the found images are this many times smaller already */
    bool has_lists;              /* train_filenames etc. decide the splits */
    bool has_scale, has_offset;
    double scale, offset[3];
    uint32_t aabb_scale;  /* 0: not given */
    double unit_length;   /* metres; 0: not given */
    bool mitsuba;         /* in the file cameras have x left, y up and z forwards */
    bool reads_ray_files; /* instant-ngp reads rays from files beside the images
                             (enable_ray_loading) */
    struct cJSON *unread; /* unread keys (keys.h), as in scene_findings; NULL: none */
    char *cloud_name;     /* ply_file_path as written; NULL: none */
    struct transforms_point *points;
    size_t point_count;
    struct rejected_points left_out;
};

/* Returns the options for a path with the settings scene.* of a configuration. */
struct scene_options scene_options_of(const char *path, const struct vkn_config *config);
/* Reads a public camera of any struct size, fills in defaults and checks it. Returns VKN_BAD_INPUT
 * with a message that names the field. */
vkn_status scene_read_camera(const struct vkn_camera *given, struct vkn_camera *camera);

#define TRANSFORMS_MAX_SIZE ((size_t)64 << 20) /* largest file, in bytes */
/* Parse or read a transforms.json. `needs_images` is false for a camera path, whose frames need no
 * file_path. The caller frees the result with transforms_free, also after a failure. */
vkn_status transforms_parse(const char *file, const struct cJSON *json, bool needs_images,
                            struct transforms *transforms);
vkn_status transforms_read(const char *file, bool needs_images, struct transforms *transforms);
/* Names the files of a scene: all splits' files if `path` is the training file's, else `path`
 * alone; NULL: none. The caller frees the names, also after a failure. */
vkn_status transforms_files(const char *path, char *files[SCENE_SPLITS], bool *single);
/* Implements scene_reader.write. */
vkn_status transforms_write(const char *path, const struct write_view *views, size_t count,
                            struct write_files *copies);
/* Frees what the struct owns and sets it to zeros. */
void transforms_free(struct transforms *transforms);

/* Sets image_path, width and height of every frame. Frames with a "sharpness" (instant-ngp) whose
 * images are absent are dropped with a warning, because users of instant-ngp delete blurred images
 * and its loader skips them. Any other missing image is an error or, with `findings` (may be NULL),
 * counted there and skipped. */
vkn_status transforms_find_images(struct transforms *transforms, struct scene_findings *findings);
/* Reads the points of the file's ply_file_path, with a warning when the file is missing, and sets
 * the frames' depth bounds from the points; images must have been found. Points and
 * transform_matrix share one coordinate system: nerfstudio applies applied_transform and
 * applied_scale to both. */
vkn_status cloud_read(struct transforms *transforms);
/* Sets the frames' depth bounds from the points in their images, occluded points included. */
vkn_status cloud_set_bounds(struct transforms *transforms);
/* Drops frames without an image_path and keeps the order of the others. When `findings` is NULL,
 * logs the number of dropped frames and the folder. Returns VKN_BAD_INPUT when none remains. */
vkn_status transforms_drop_missing(struct transforms *transforms, const char *folder,
                                   const struct scene_findings *findings);
/* Handles the status of finding or checking a frame's image or mask. With `findings` (may be NULL)
 * and VKN_BAD_INPUT the frame is counted there and loses its image_path, so that it is dropped
 * later, and VKN_OK is returned. Else returns `status`. */
vkn_status findings_skip_frame(struct scene_findings *findings, struct transforms_frame *frame,
                               vkn_status status);
/* Sets findings->missing and the findings about points; without `findings` logs skipped points. */
vkn_status findings_add_files(struct scene_findings *findings, const struct vkn_scene *scene,
                              struct transforms files[SCENE_SPLITS]);

struct finder;

/* Finds a mask by COLMAP's rules: in a folder of masks, the image's name (with its subfolders) plus
 * ".png", the same name, or the name with another extension. *path is fresh memory; NULL: no such
 * file. Such masks are bright at used pixels. */
vkn_status mask_find(struct finder *masks, const char *image_name, char **path);
/* Checks that the size of the frame's mask fits its image; reads the header only. */
vkn_status mask_check(const struct transforms_frame *frame);
/* Finds the mask of a frame whose image has been found and measured: mask_path when mask_name is
 * given, else instant-ngp's dynamic_mask_NAME.png. File names are relative to `folder`. */
vkn_status transforms_find_mask(const struct transforms *transforms, struct finder *finder,
                                const char *folder, struct transforms_frame *frame);
/* Reads a mask as one byte per pixel of an image of width x height: 1 for used pixels, which are
 * the bright ones unless `inverted`. When the image is rotated by an EXIF orientation, the mask's
 * size decides whether it is rotated already or stored like the image. The caller frees *used. */
vkn_status mask_read(const char *path, bool inverted, unsigned applied_orientation, uint32_t width,
                     uint32_t height, uint8_t **used);
/* Sets the pixels that the camera's lens does not reach to SCENE_IGNORED. */
void mask_mark_outside_lens(const struct scene_camera *camera, uint32_t *pixels);

/* Reads the frames of the file; its top level must have been read. */
vkn_status transforms_read_frames(const struct cJSON *json, bool needs_images,
                                  struct transforms *transforms);
/* Reads the training space that the file names, and sets measures_space by its dialect. */
vkn_status transforms_read_space(const struct cJSON *json, struct transforms *transforms);

/* Reads a 4x4 or 3x4 matrix; removes a uniform scale and makes the rotation orthonormal. */
vkn_status pose_read(const struct cJSON *matrix, const char *name, const char *where,
                     double pose[12]);

/* Makes a pose from four rows, the last 0 0 0 w; divides them by w. Returns NULL or the problem. */
const char *pose_from_matrix(const double (*rows)[4], double pose[12]);
/* Inverts a matrix whose last row is 0 0 0 w. The result is not finite when there is no inverse. */
void pose_invert_matrix(double rows[4][4]);
/* Converts a pose from Mitsuba's camera axes, x left, y up and z forwards, or to them. */
void pose_convert_mitsuba(double pose[12]);
/* Computes the quaternion w x y z of a rotation, its largest component first (Shepperd 1978). */
void pose_quaternion(const double m[3][3], double q[4]);
/* Returns the determinant of a 3x3 matrix. */
double pose_determinant(const double m[3][3]);

/* Reads an array of `count` numbers up to 1e9 in magnitude; VKN_BAD_INPUT for anything else. */
vkn_status pose_read_numbers(const struct cJSON *array, const char *name, const char *where,
                             int count, double *values);
/* Reads a pose from an array of 16 numbers, row by row. */
vkn_status pose_read_flat(const struct cJSON *matrix, const char *name, const char *where,
                          double pose[12]);

/* Makes the scene's splits, cameras and training space. `files` is indexed by scene_split_name; an
 * absent file has count 0. With `single`, files[SCENE_TRAIN] holds the frames of all splits. Frames
 * must have a size and an image_path (transforms_find_images). */
vkn_status scene_assemble(struct vkn_scene *scene, struct transforms files[SCENE_SPLITS],
                          bool single, const struct scene_options *options);
/* Rounds the scale or an offset component of a training space to single precision, in which
 * positions are computed, unless scene_needs_double. Scenes store the shortest decimals of the
 * rounded numbers. */
double scene_round_number(double number, const double offset[3]);
/* Converts a position from dataset space to training space. */
void scene_to_training(const struct vkn_scene *scene, const double position[3], double result[3]);
/* Set the pose of *camera, converted from dataset space to the scene's training space;
 * camera_set_frame also sets the time. */
void camera_set_pose(const struct vkn_scene *scene, const double pose[12],
                     struct scene_camera *camera);
void camera_set_frame(const struct vkn_scene *scene, const struct transforms_frame *frame,
                      struct scene_camera *camera);
/* Makes the cameras of a parsed camera path (scene_read_camera_path). */
vkn_status camera_path_cameras(const struct vkn_scene *scene, const struct transforms *transforms,
                               const struct scene_camera *like, struct scene_camera **cameras,
                               size_t *count);

/* Computes the focus point of `views` (positions and unit directions): the least-squares nearest
 * point to all optical axes. Returns false when the axes are nearly parallel, or when the point is
 * in front of fewer than 80 % of the views, as when a camera looks around. */
bool scene_focus_point(const double (*views)[6], size_t count, double point[3]);
/* Computes the focus point of the training cameras, in training space. *found: there is one. */
vkn_status scene_find_focus(const struct scene_split *train, bool *found, double point[3]);
/* Returns the mean distance of the training cameras from a point. */
double scene_mean_distance(const struct scene_split *train, const double point[3]);

/* Projects like scene_camera_project, but faster, with a precomputed `limit` =
 * scene_camera_limit(camera). */
bool scene_camera_project_within(const struct scene_camera *camera, double limit,
                                 const double point[3], double *x, double *y);
/* Returns whether a known depth is at a pixel of the camera, and whether its square and that of its
 * standard deviation are finite in single precision. (depth.c) */
bool depth_is_usable(const struct scene_camera *camera, const struct scene_depth *depth);
/* Adds known depths from a view's depth picture (scene_camera.depth_path) to a list of struct
 * scene_depth: a PNG of 16 bits, an EXR file or an .npy file, whose values that are not positive
 * or not finite are unknown. VKN_BAD_INPUT if the picture is missing, broken or of another shape
 * than the image, or has no known depth. (depth_picture.c) */
vkn_status depth_picture_read(const struct vkn_scene *scene, const struct scene_camera *camera,
                              struct base_text *list);

#endif
