/* vknerf/scene.h: what a scene holds and what is wrong with it, without a device. */
#ifndef VKNERF_SCENE_H
#define VKNERF_SCENE_H

#include <stdint.h>

#include <vknerf/config.h>
#include <vknerf/error.h>

struct vkn_scene_info_params {
    const char *scene;            /* folder, or file of a scene */
    enum vkn_scene_format format; /* AUTO: found out from its files */
    uint32_t downscale;           /* 0 means 1 */
    float scale;                  /* dataset to training space; 0: as training chooses it */
    uint32_t aabb_scale;          /* side of the reconstructed cube; 0: as training chooses it */
    const char *svg;              /* file to draw the cameras into; NULL: none */
};

/* One JSON object in fresh memory that the caller frees: {"scene", "format", "views": {"train", "val",
 * "test"}, "sizes": [{"width", "height", "views"}], "downscale", "dynamic", "lenses": {"pinhole", "opencv",
 * "fisheye" (views), "focal_x", "focal_y" (pixels), "fov_x", "fov_y" (degrees)}, "training_space": {"scale",
 * "offset", "aabb_scale", "near_distance", "views_inside"}, "cameras": {"from", "to", "spread", "look_at"?,
 * "distance"?}, "points"?: {"count", "from", "to", "inside"}, "masks"?: {"views", "hidden"}, "problems":
 * [{"problem", "advice"}]}. Ranges are [low, high]; "from", "to" are corners; positions are in training
 * space. Frames without images are a problem here; what cannot be read at all is VKN_BAD_INPUT. */
vkn_status vkn_scene_info_json(const struct vkn_scene_info_params *params, char **json);

#endif
