/* Gives other passes access to the buffers and the setup of a renderer's field. */
#ifndef RENDER_FIELD_H
#define RENDER_FIELD_H

#include <vknerf/renderer.h>

#include "step/step.h"

/* Pointers into the renderer, valid as long as the renderer. */
struct render_field {
    struct gpu_device *device;
    const struct setup *setup; /* sized for the renderer's batches of rays and samples */
    const struct gpu_buffer *buffers[GPU_BINDINGS]; /* the parameters and the occupancy grid */
};
/* Returns the renderer's field. */
struct render_field render_field_of(const vkn_renderer *renderer);

#endif
