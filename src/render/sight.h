/* What the training views see: for every pixel of each, how far it looks into the field. */
#ifndef RENDER_SIGHT_H
#define RENDER_SIGHT_H

#include <signal.h>

#include "render/probe.h"
#include "report/report.h"
#include "scene/scene.h"

struct sight {
    uint32_t views;
    struct gpu_arena *arena;
    struct gpu_buffer cameras;  /* Camera[views], of the maps' sizes */
    struct gpu_buffer nearness; /* see BIND_SIGHT */
};

/* Renders where half of the light is gone for all training views of the scene, evenly chosen ones
 * where there are more than a thousand, in sizes that together keep to what suits the device.
 * `probe`: of the same renderer. VKN_BAD_INPUT: there are no training views; VKN_INTERRUPTED.
 * `progress` and `stop` may be NULL. The caller destroys *sight, also after a failure. */
vkn_status sight_create(vkn_renderer *renderer, const struct probe *probe,
                        const struct scene *scene, struct report_progress *progress,
                        const volatile sig_atomic_t *stop, struct sight *sight);
void sight_destroy(struct sight *sight);

#endif
