/* What the training views see: for every pixel of each, how far it looks into the field. */
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
    uint64_t pixels;            /* of all views */
    struct scene_camera *shown; /* the views, of their maps' sizes; first_pixel: where these begin
                                 */
    struct gpu_arena *arena;
    struct gpu_buffer cameras;          /* Camera[views]: `shown`, as the device has it */
    struct gpu_buffer inverse_distance; /* see BIND_VISIBILITY_MAPS */
};

/* Renders where half of the light is gone for all training views of the scene, evenly chosen ones
 * where there are more than a thousand, in sizes that together keep to what suits the device.
 * VKN_BAD_INPUT: there are no training views; VKN_INTERRUPTED. `progress` and `stop` may be NULL.
 * The caller destroys *sight, also after a failure. */
vkn_status visibility_maps_create(vkn_renderer *renderer, const struct vkn_scene *scene,
                                  struct report_progress *progress,
                                  const volatile sig_atomic_t *stop,
                                  struct visibility_maps *visibility_maps);
void visibility_maps_destroy(struct visibility_maps *visibility_maps);

/* The box, in the dataset's space, of what the views see within the cube that was trained, with a
 * margin of 1/64 of its longest edge. `outliers`: the share of what is seen that is left out at
 * either end of each axis. The whole unit cube where nothing is seen. */
vkn_status visibility_maps_box(const struct visibility_maps *visibility_maps,
                               const struct vkn_scene *scene, double outliers, double low[3],
                               double high[3]);

#endif
