/* Renders visibility maps: the distance of the visible surface in every training view's pixels. */
#ifndef RENDER_VISIBILITY_MAPS_H
#define RENDER_VISIBILITY_MAPS_H

#include <signal.h>

#include <vknerf/renderer.h>

#include "gpu/gpu.h"
#include "report/report.h"
#include "scene/scene.h"

struct visibility_maps {
    struct gpu_device *device;
    uint32_t views;
    uint64_t pixels;                  /* of all views */
    struct scene_camera *map_cameras; /* [views], in the maps' sizes; first_pixel: map's offset */
    struct gpu_arena *arena;
    struct gpu_buffer cameras;          /* [views] struct Camera: `map_cameras` */
    struct gpu_buffer inverse_distance; /* [pixels] float: 1 / distance, 0: no surface;
                                           BIND_VISIBILITY_MAPS */
};

/* Renders the distance at which the transmittance falls to 1/2, for every training view (1024
 * evenly chosen ones where the scene has more), scaled down to the device's budget of pixels.
 * VKN_BAD_INPUT: the scene has no training views; VKN_INTERRUPTED. `progress`, `stop`: may be NULL.
 * The caller destroys *visibility_maps, also after a failure. */
vkn_status visibility_maps_create(vkn_renderer *renderer, const struct vkn_scene *scene,
                                  struct report_progress *progress,
                                  const volatile sig_atomic_t *stop,
                                  struct visibility_maps *visibility_maps);
void visibility_maps_destroy(struct visibility_maps *visibility_maps);

/* Computes the bounding box of the visible surface points within the trained cube, in dataset
 * units, with a margin of 1/64 of its longest edge; without such points the box of the unit cube.
 * `outlier_share`: share of the points that is ignored at each end of each axis. */
vkn_status visibility_maps_box(const struct visibility_maps *visibility_maps,
                               const struct vkn_scene *scene, double outlier_share, double low[3],
                               double high[3]);

#endif
