/* vknerf/scene.h: cameras and photographs, without a device. */
#ifndef VKNERF_SCENE_H
#define VKNERF_SCENE_H

#include <vknerf/camera.h>
#include <vknerf/config.h>

VKN_BEGIN_DECLARATIONS

/* A capture: its cameras, and where their images are. */
typedef struct vkn_scene vkn_scene;

/* Cameras and image headers of all splits of a folder, or of a file that a format is known by; the
 * settings scene.* of the configuration count. The caller owns *scene; close nulls it, and takes
 * NULL. */
VKN_API vkn_status vkn_scene_open(const char *path, const vkn_config *config, vkn_scene **scene);
VKN_API void vkn_scene_close(vkn_scene **scene);

/* Views are for one purpose each. */
enum vkn_split {
    VKN_SPLIT_DEFAULT, /* test, or the first with views of val and train */
    VKN_SPLIT_TRAIN,   /* what is trained on */
    VKN_SPLIT_VAL,     /* what is looked at meanwhile */
    VKN_SPLIT_TEST     /* what quality is measured on */
};

/* A photograph in memory. */
struct vkn_view {
    size_t size;
    enum vkn_split split;            /* DEFAULT: TRAIN */
    const struct vkn_camera *camera; /* where it was taken from; its pixels' width and height */
    const uint8_t *pixels; /* R G B A of each, sRGB, colours not multiplied by alpha, row by row
                              from the top */
    const uint8_t *mask;   /* one of each, 0 where it does not count; NULL: all do */
};
/* A scene of `count` photographs, which are copied. `name` stands for it in messages and in
 * checkpoints, of whose runs nothing opens it again. The settings scene.* of the configuration
 * count; as of a capture without one, the training space is measured (docs/training_space.md). The
 * caller owns *scene. VKN_BAD_INPUT names the view, and what is wrong with it. */
VKN_API vkn_status vkn_scene_create(const char *name, const struct vkn_view *const *views,
                                    size_t count, const vkn_config *config, vkn_scene **scene);

/* 0 of NULL and of a split that there is not. */
VKN_API size_t vkn_scene_view_count(const vkn_scene *scene, enum vkn_split split);
/* Where a view was taken from. VKN_BAD_INPUT for a view that there is not. */
VKN_API vkn_status vkn_scene_camera(const vkn_scene *scene, enum vkn_split split, size_t view,
                                    struct vkn_camera *camera);
/* The point that the training cameras look at, nearest to all of their viewing axes; where they
 * look at none, the middle of the cube that is reconstructed. `up`: what is upwards in their
 * pictures, of unit length; may be NULL. Both 3 numbers in the dataset's axes and units, as `vknerf
 * render --orbit` and the viewer have them (since 0.2). */
VKN_API vkn_status vkn_scene_look_at(const vkn_scene *scene, double *point, double *up);
/* Of vkn_scene_find_look (since 0.2): in the dataset's axes and units. */
struct vkn_scene_look {
    size_t size;            /* see <vknerf/api.h> */
    double point[3], up[3]; /* as vkn_scene_look_at has them */
    double distance;        /* of the training cameras from the point, their mean */
    double cube[6];         /* that is reconstructed: its low corner, its high corner */
};
/* Finds from where to look at the scene. */
VKN_API vkn_status vkn_scene_find_look(const vkn_scene *scene, struct vkn_scene_look *look);
/* Its photograph as a picture of colours and opacities, composited on the background in sRGB space
 * as vkn_render and evaluations do; `used` says which pixels count. The caller frees *picture. */
VKN_API vkn_status vkn_scene_image(vkn_scene *scene, enum vkn_split split, size_t view,
                                   enum vkn_background background, struct vkn_picture **picture);
/* Its file, whose pixels may be on their side where vkn_scene_image turns them by their EXIF
 * orientation; owned by the scene, NULL for a view that there is not. */
VKN_API const char *vkn_scene_image_file(const vkn_scene *scene, enum vkn_split split, size_t view);

/* Whether the file is a camera path as vkn_render_params.camera_path takes it in this scene (since
 * 0.2). VKN_BAD_INPUT names what of it is wrong. */
VKN_API vkn_status vkn_scene_check_path(const vkn_scene *scene, const char *file);

/* ---- what a scene holds and what is wrong with it -------------------------------------------- */

/* Of vkn_scene_info_json. */
struct vkn_scene_info_params {
    size_t size;
    const char *scene;            /* folder, or file of a scene */
    enum vkn_scene_format format; /* AUTO: found out from its files */
    uint32_t downscale;           /* 0 means 1 */
    float scale;                  /* dataset to training space; 0: as training chooses it */
    uint32_t aabb_scale;          /* side of the reconstructed cube; 0: as training chooses it */
    const char *svg;              /* file to draw the cameras into; NULL: none */
};

/* One JSON object in fresh memory that the caller frees: {"scene", "format", "views": {"train",
 * "val", "test"}, "sizes": [{"width", "height", "views"}], "downscale", "dynamic", "other_names"?,
 * "turned"?, "as_stored"? (sentences on images under other names than the scene's files say, and
 * with EXIF orientations), "lenses": {"pinhole", "opencv", "fisheye", ... (views of each kind),
 * "focal_x", "focal_y" (pixels), "fov_x", "fov_y" (degrees), "first_distortion"? (of the first
 * view: coefficients that are not 0, by name)}, "training_space": {"scale", "offset", "aabb_scale",
 * "origin_distance" (dataset units from the cube's middle to the dataset's origin),
 * "near_distance", "views_inside"}, "cameras": {"from", "to", "spread", "look_at"?, "distance"?},
 * "points"?: {"count", "from", "to", "inside"}, "masks"?: {"views", "hidden"}, "unread_keys"?:
 * [{"key", "count", "file", "note", "meant"? (the key that it resembles)}] of a transforms.json,
 * "photo_consistency": {"not_checked"?, "views"?, "by"?, "fit"?, "poor"?, "nearest_fit"?,
 * "per_view"?: [{"image", "split", "tracked"?: {"points", "agreement", "others", "fit"},
 * "nearest"?: the same, "fits"?}]}, since 0.2, "problems":
 * [{"problem", "advice"}]}. Ranges are [low, high]; "from", "to" are corners; positions are in
 * training space. Frames without images are a problem here; what cannot be read at all is
 * VKN_BAD_INPUT. */
VKN_API vkn_status vkn_scene_info_json(const struct vkn_scene_info_params *params, char **json);

VKN_END_DECLARATIONS

#endif
