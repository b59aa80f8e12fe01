/* vknerf/scene.h: opens scenes and returns their cameras and photographs; needs no device. */
#ifndef VKNERF_SCENE_H
#define VKNERF_SCENE_H

#include <vknerf/camera.h>
#include <vknerf/config.h>

VKN_BEGIN_DECLARATIONS

/* A scene: cameras and the locations of their images. */
typedef struct vkn_scene vkn_scene;

/* Reads the cameras and image headers of all splits, from a folder or from a file that identifies a
 * format. Of the configuration the settings scene.* are used. The caller owns *scene. */
VKN_API vkn_status vkn_scene_open(const char *path, const vkn_config *config, vkn_scene **scene);
/* Closes a scene and sets *scene to NULL; accepts NULL. Trainers and steppers of the scene stay
 * valid. */
VKN_API void vkn_scene_close(vkn_scene **scene);

/* Splits of the views. */
enum vkn_split {
    VKN_SPLIT_DEFAULT, /* the first of test, val and train that is not empty */
    VKN_SPLIT_TRAIN,   /* for training */
    VKN_SPLIT_VAL,     /* for validation during training */
    VKN_SPLIT_TEST     /* for the evaluation of quality */
};

/* A photograph in memory. */
struct vkn_view {
    size_t size;
    enum vkn_split split;            /* DEFAULT: TRAIN */
    const struct vkn_camera *camera; /* pose, lens, and size of the photograph */
    const uint8_t *pixels; /* [height][width][4], RGBA, sRGB, straight alpha, from the top row */
    const uint8_t *mask; /* [height][width], 0: the pixel does not count; NULL: all pixels count */
};
/* Creates a scene from `count` photographs, which are copied. `name` is its name in messages and
 * checkpoints; runs of such a scene cannot open it again. Of the configuration the settings scene.*
 * are used; the training space is measured (docs/training_space.md). The caller owns *scene.
 * VKN_BAD_INPUT names the view and its error. */
VKN_API vkn_status vkn_scene_create(const char *name, const struct vkn_view *const *views,
                                    size_t count, const vkn_config *config, vkn_scene **scene);

/* Returns the number of views of a split; 0 for NULL and for an unknown split. */
VKN_API size_t vkn_scene_view_count(const vkn_scene *scene, enum vkn_split split);
/* Returns the camera of a view. VKN_BAD_INPUT if the view does not exist. */
VKN_API vkn_status vkn_scene_camera(const vkn_scene *scene, enum vkn_split split, size_t view,
                                    struct vkn_camera *camera);
/* Sets `point` to the focus point of the training cameras, which is the point nearest to all
 * viewing axes, or to the centre of the reconstructed cube if the cameras have no common focus.
 * `up`, unless NULL, becomes the mean upward direction of the images, of unit length. Both are 3
 * numbers in the dataset's axes and units; `vknerf render --orbit` and the viewer use them. */
VKN_API vkn_status vkn_scene_look_at(const vkn_scene *scene, double *point, double *up);
/* Result of vkn_scene_find_look, in the dataset's axes and units. */
struct vkn_scene_look {
    size_t size;            /* see <vknerf/api.h> */
    double point[3], up[3]; /* see vkn_scene_look_at */
    double distance;        /* mean distance of the training cameras from the point */
    double cube[6];         /* reconstructed cube: low corner, high corner */
    double unit_length;     /* metres of a dataset unit; 0: unknown. Needs `size` */
};
/* Returns focus point, upward direction, distance and cube for a default view of the scene. */
VKN_API vkn_status vkn_scene_find_look(const vkn_scene *scene, struct vkn_scene_look *look);
/* Returns camera `view` of the `count` cameras of `vknerf render --orbit`: evenly spaced on a
 * circle around the focus point, at the mean height and distance of the training cameras, with the
 * first training camera's size and lens without distortion. In dynamic scenes their times go from 0
 * to 1. VKN_BAD_INPUT unless `view` < `count`. */
VKN_API vkn_status vkn_scene_orbit_camera(const vkn_scene *scene, uint32_t view, uint32_t count,
                                          struct vkn_camera *camera);
/* Returns the photograph of a view with colours, opacities and `used` pixels, composited on the
 * background in sRGB space as in vkn_render and in evaluations. The caller frees *picture. */
VKN_API vkn_status vkn_scene_image(vkn_scene *scene, enum vkn_split split, size_t view,
                                   enum vkn_background background, struct vkn_picture **picture);
/* Returns the path of a view's image file, owned by the scene; NULL if the view does not exist.
 * Pixels in the file may be rotated: vkn_scene_image applies the EXIF orientation. */
VKN_API const char *vkn_scene_image_file(const vkn_scene *scene, enum vkn_split split, size_t view);

/* Checks that a file is a camera path for vkn_render_params.camera_path in this scene.
 * VKN_BAD_INPUT names the error. */
VKN_API vkn_status vkn_scene_check_path(const vkn_scene *scene, const char *file);

/* Cameras of a camera path, one per frame. */
struct vkn_camera_path {
    size_t size;                /* see <vknerf/api.h> */
    struct vkn_camera *cameras; /* [count], with pose, lens, size and time */
    size_t count;               /* number of `cameras` */
    double fps;                 /* frames per second; 0: the file gives none */
};
/* Reads a camera path of any kind that `vknerf render --path` reads. `dataparser` is the file
 * dataparser_transforms.json for a path of nerfstudio; NULL: the one beside the path, if any. The
 * caller frees path->cameras with vkn_free. VKN_BAD_INPUT names the error. */
VKN_API vkn_status vkn_scene_read_path(const vkn_scene *scene, const char *file,
                                       const char *dataparser, struct vkn_camera_path *path);

/* ---- content and problems of a scene --------------------------------------------------------- */

/* Parameters of vkn_scene_info_json. */
struct vkn_scene_info_params {
    size_t size;
    const char *scene;            /* folder, or a file that identifies a format */
    enum vkn_scene_format format; /* AUTO: detected from the files */
    uint32_t downscale;           /* factor by which images are reduced; 0: 1 */
    float scale;         /* factor from dataset units to training space; 0: as in training */
    uint32_t aabb_scale; /* side of the reconstructed cube; 0: as in training */
    const char *svg;     /* file for a drawing of the cameras; NULL: none */
    double unit_length;  /* metres of a dataset unit; 0: as in training. Needs `size` */
};

/* Describes a scene and its problems in one JSON object, in memory that the caller frees. Ranges
 * are [low, high], "from" and "to" are corners, positions are in training space:
 *
 * {"scene", "format", "views": {"train", "val", "test"},
 * "sizes": [{"width", "height", "views"}], "downscale", "dynamic",
 * "unit_length"? (metres of a dataset unit),
 * "other_names"?, "turned"?, "as_stored"?: sentences about images that were found under other
 *     names, and about EXIF orientations,
 * "lenses": {"pinhole", "opencv", "fisheye", ... (number of views), "focal_x", "focal_y" (pixels),
 *     "fov_x", "fov_y" (degrees), "first_distortion"? (first view's non-zero coefficients)},
 * "training_space": {"scale", "offset", "aabb_scale", "origin_distance" (dataset units from the
 *     cube's centre to the dataset's origin), "near_distance", "views_inside"},
 * "cameras": {"from", "to", "spread", "look_at"?, "distance"?},
 * "points"?: {"count", "from", "to", "inside"}, "masks"?: {"views", "hidden"},
 * "depths"?: {"tracked_points"?, "cloud_points"?, "picture_pixels"? (known depths of training
 *     views), "relative_sigma" (median), "held_out" (known depths of test views)},
 * "background"?, "exposures"?, "sky"?: sentences about the plain background of images without
 *     alpha, exposures that differ, and the sky that images show,
 * "unread_keys"?: [{"key", "count", "file", "note", "meant"? (a similar known key)}],
 * "photo_consistency": {"not_checked"?, "views"?, "by"?, "fit"?, "poor"?, "nearest_fit"?,
 *     "per_view"?: [{"image", "split", "tracked"?: {"points", "agreement", "others", "fit"},
 *     "nearest"?: (as tracked), "fits"?}]},
 * "problems": [{"problem", "advice"}]}
 *
 * Frames without images are listed as a problem. VKN_BAD_INPUT if a file cannot be read. */
VKN_API vkn_status vkn_scene_info_json(const struct vkn_scene_info_params *params, char **json);

VKN_END_DECLARATIONS

#endif
