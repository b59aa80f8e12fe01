/* Inside of the scene room: a capture as written, before it becomes cameras. It is named after
 * transforms.json; what the other formats say is read into the same structures.
 *
 * Three dialects share transforms.json and are told apart by the keys that are there, not by a
 * name:
 *   Blender     camera_angle_x, file_path without extension, one file per split, no image size
 *   instant-ngp fl_x fl_y cx cy w h k1 k2 p1 p2, aabb_scale, scale, offset, sharpness; one file
 *   nerfstudio  as instant-ngp, each intrinsic also per frame, camera_model, applied_transform,
 *               train_filenames / val_filenames / test_filenames
 * In all of them transform_matrix takes OpenGL camera coordinates (x right, y up, looking down -z)
 * to the world, and distortion is OpenCV's, defined with y down.
 */
#ifndef SCENE_TRANSFORMS_H
#define SCENE_TRANSFORMS_H

#include "scene/lens.h"

struct transforms_point;
struct transforms_frame {
    size_t index;       /* position in the file, for messages */
    char *file_path;    /* as written; its order decides what is held out */
    char *image_path;   /* the file found; NULL before transforms_find_images */
    char *mask_name;    /* mask_path as written; NULL: none */
    char *mask_path;    /* the file found, which mask_check has seen; NULL: every pixel counts */
    bool mask_inverted; /* bright where pixels do not count */
    unsigned found, mask_found; /* how the files' names differ from what is written (find.h) */
    bool skipped;               /* by findings_skip_frame */
    unsigned orientation;       /* of the image, as EXIF has it */
    bool turned;            /* by that, which makes width and height those of the upright picture */
    bool orientation_known; /* of the stored and the upright picture only one has the camera's size
                             */
    uint32_t width, height;
    struct transforms_lens lens;
    double time;
    double pose[12];  /* camera to world in the dataset's own units, rotation orthonormal */
    double bounds[2]; /* depths of the nearest and farthest content in view; 0: not known */
    unsigned splits;  /* bits 1 << scene_split_name, from the filename lists */
    bool has_sharpness;
    struct transforms_point *tracked; /* points that the model's tracks say are seen here, some of
                                         many */
    size_t tracked_count;
};

/* A point of a sparse model, in the dataset's own units. */
struct transforms_point {
    double position[3];
    uint8_t color[3]; /* sRGB */
};

/* Points that a file has and that are not taken, because they are no place: one number of theirs is
 * not finite. */
struct rejected_points {
    size_t count;
    char *first; /* the message about the first; owned, NULL: none */
};
/* Counts one more, about which vkn_last_error() is. VKN_ERROR without memory. */
vkn_status points_reject(struct rejected_points *left_out);
#define POINTS_MAX_COORDINATE 1e9 /* largest coordinate of poses and points; others are left out \
                                   */

struct transforms {
    char *file; /* for messages */
    struct transforms_frame *frames;
    size_t count;
    size_t missing;              /* frames that were dropped because they have no image */
    const char *list;            /* what the file calls its frames, for messages; static */
    struct transforms_lens lens; /* at the top of the file */
    bool measures_space; /* where the file names no space, its dialect leaves the choice to us */
    uint32_t prescaled;  /* the images found are already this much smaller, of
                            scene_options.downscale */
    bool has_lists;      /* train_filenames and so on decide the splits */
    bool has_scale, has_offset;
    double scale, offset[3];
    uint32_t aabb_scale;  /* 0: not given */
    bool mitsuba;         /* poses are of cameras with x left, y up and z forwards */
    bool reads_ray_files; /* files of rays beside images count, as in instant-ngp */
    struct cJSON *unread; /* keys that nothing reads (keys.h), as findings have them; NULL: none */
    char *cloud_name;     /* ply_file_path as written; NULL: none */
    struct transforms_point *points;
    size_t point_count;
    struct rejected_points left_out;
};

/* The settings scene.* of a configuration. */
struct scene_options scene_options_of(const char *path, const struct vkn_config *config);
/* From training space to the dataset's. */
struct vkn_camera scene_camera_to_public(const struct scene_camera *camera, double scale,
                                         const double offset[3]);
/* A camera of the caller's, complete; VKN_BAD_INPUT names what is wrong with it. */
vkn_status scene_read_camera(const struct vkn_camera *given, struct vkn_camera *camera);

/* A camera path file may have no images and so no file_path; `needs_images` tells. The caller frees
 * with transforms_free, after a failure too. */
vkn_status transforms_parse(const char *file, const struct cJSON *json, bool needs_images,
                            struct transforms *transforms);
vkn_status transforms_read(const char *file, bool needs_images, struct transforms *transforms);
void transforms_free(struct transforms *transforms);

/* Sets image_path, width and height of every frame. Frames of an instant-ngp file whose images are
 * absent are dropped with a warning where the frames carry "sharpness": that tool's users delete
 * blurred pictures, and its own loader skips them. Any other missing image is an error, or with
 * `findings` (may be NULL) left out and counted there. */
vkn_status transforms_find_images(struct transforms *transforms, struct scene_findings *findings);
/* The points of the file's ply_file_path, with a warning where there is no such file, and from them
 * the frames' bounds; images have been found. nerfstudio writes them in the coordinates of
 * transform_matrix: applied_transform and applied_scale, which lead back to where those came from,
 * are in both. */
vkn_status cloud_read(struct transforms *transforms);
/* The bounds of frames from the points in their pictures, hidden ones too. */
vkn_status cloud_set_bounds(struct transforms *transforms);
/* Drops frames without an image_path, keeping the others' order: a warning counts them and names
 * the folder where they were looked for, unless `findings` (may be NULL) tells of them.
 * VKN_BAD_INPUT when none is left. */
vkn_status transforms_drop_missing(struct transforms *transforms, const char *folder,
                                   const struct scene_findings *findings);
/* After a frame's image and mask have been looked for, with that status: with `findings` (may be
 * NULL) a frame that VKN_BAD_INPUT is about is counted there and loses its image_path, which leaves
 * it out as if the image were not there. */
vkn_status findings_skip_frame(struct scene_findings *findings, struct transforms_frame *frame,
                               vkn_status status);
/* Sets findings->missing, and the points when the file has any; with `findings` NULL a line of the
 * log says how many points are left out. */
vkn_status findings_add_files(struct scene_findings *findings, const struct vkn_scene *scene,
                              struct transforms files[SCENE_SPLITS]);

struct finder;

/* A mask named as COLMAP names it: in a folder of masks, the image's name (with the folders that it
 * has there) and ".png", the same name, or the name with another extension. *path is fresh memory,
 * or NULL where there is none. Such masks are bright where pixels count. */
vkn_status mask_find(struct finder *masks, const char *image_name, char **path);
/* Whether the frame's mask (its header alone is read) fits its image. */
vkn_status mask_check(const struct transforms_frame *frame);
/* The mask of a frame whose image has been found and measured, and mask_path where mask_name is
 * given; file names are relative to `folder`. */
vkn_status transforms_find_mask(const struct transforms *transforms, struct finder *finder,
                                const char *folder, struct transforms_frame *frame);
/* One byte for each pixel of an image of that size: 1 where it counts. A mask of an image that has
 * been turned by an orientation may be turned already, or as the image is stored: its size tells.
 * The caller frees *used. */
vkn_status mask_read(const char *path, bool hides, unsigned applied_orientation, uint32_t width,
                     uint32_t height, uint8_t **used);
/* Pixels of the camera's image that its lens does not reach become SCENE_IGNORED. */
void mask_mark_outside_lens(const struct scene_camera *camera, uint32_t *pixels);

/* Reads the frames of the file, whose top has been read. */
vkn_status transforms_read_frames(const struct cJSON *json, bool needs_images,
                                  struct transforms *transforms);
/* Reads the training space that the file names, or whether its dialect names none (measures_space).
 */
vkn_status transforms_read_space(const struct cJSON *json, struct transforms *transforms);

/* Reads a 4x4 or 3x4 matrix into `pose`; the rotation, up to a uniform scale, is made orthonormal.
 */
vkn_status pose_read(const struct cJSON *matrix, const char *name, const char *where,
                     double pose[12]);

/* The same from three rows of four numbers: NULL, or what is wrong with them. */
const char *pose_from_rows(const double (*rows)[4], double pose[12]);
/* The same from four rows, of which the last is 0 0 0 w; all of the matrix is divided by w. */
const char *pose_from_matrix(const double (*rows)[4], double pose[12]);
/* Inverts a matrix whose last row is 0 0 0 w; not finite where there is no inverse. */
void pose_invert_matrix(double rows[4][4]);
double pose_determinant(const double m[3][3]);

/* Reads an array of `count` numbers up to 1e9; VKN_BAD_INPUT for anything else. */
vkn_status pose_read_numbers(const struct cJSON *array, const char *name, const char *where,
                             int count, double *values);
/* The same of 16 numbers in one array, row by row. */
vkn_status pose_read_flat(const struct cJSON *matrix, const char *name, const char *where,
                          double pose[12]);

/* Makes the scene's splits, cameras and training space. `files` is indexed by scene_split_name; an
 * absent file has count 0. With `single`, files[SCENE_TRAIN] holds the frames of all splits. Frames
 * must have a size and an image_path (transforms_find_images). */
vkn_status scene_assemble(struct vkn_scene *scene, struct transforms files[SCENE_SPLITS],
                          bool single, const struct scene_options *options);
/* Of a training space, scale or a number of the offset as positions are computed with: near the
 * dataset's origin rounded to single precision, which their shortest decimals, as they are stored,
 * stand for. */
double scene_round_number(double number, const double offset[3]);
void scene_to_training(const struct vkn_scene *scene, const double position[3], double result[3]);
/* Puts *camera where `pose`, in the dataset's space, is in the scene's training space; or where a
 * frame is, at its time. */
void camera_set_pose(const struct vkn_scene *scene, const double pose[12],
                     struct scene_camera *camera);
void camera_set_frame(const struct vkn_scene *scene, const struct transforms_frame *frame,
                      struct scene_camera *camera);
/* The cameras of a camera path that has been parsed (scene_read_camera_path). */
vkn_status camera_path_cameras(const struct vkn_scene *scene, const struct transforms *path,
                               const struct scene_camera *like, struct scene_camera **cameras,
                               size_t *count);

/* The point that the views look at: nearest in the least-squares sense to all optical axes. `views`
 * are positions and unit directions. False when the axes are nearly parallel, or when the point
 * does not lie in front of most of the views (a camera that looks around). */
bool scene_focus_point(const double (*views)[6], size_t count, double point[3]);
/* The same of training cameras, in training space; *found tells whether there is such a point. */
vkn_status scene_find_focus(const struct scene_split *train, bool *found, double point[3]);
/* Returns the mean distance of the training cameras from a point. */
double scene_mean_distance(const struct scene_split *train, const double point[3]);

/* Whether the lens reaches the corners of the image: its distortion can be undone there (it folds
 * over otherwise). */
bool scene_camera_invertible(const struct scene_camera *camera);
/* The inverse of scene_camera_ray: image position (it may be outside of the picture) of a point in
 * training space; false behind a perspective camera and beyond the range of the lens. */
bool scene_camera_project(const struct scene_camera *camera, const double point[3], double *x,
                          double *y);
/* The same of many points: `limit` is scene_camera_limit(camera), which takes most of
 * the time. */
bool scene_camera_project_within(const struct scene_camera *camera, double limit,
                                 const double point[3], double *x, double *y);
/* A fisheye's depths count along rays: those at 90 degrees have none along the viewing axis. This
 * is what a distance along `direction` (of scene_camera_ray) is multiplied by to get a depth. */
double scene_camera_depth_scale(const struct scene_camera *camera, const double direction[3]);

#endif
