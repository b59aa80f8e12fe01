/* The field that a renderer holds, for other passes over it. */
#ifndef RENDER_FIELD_H
#define RENDER_FIELD_H

#include <vknerf/renderer.h>

#include "field/path.h"

/* Everything lives as long as the renderer. */
struct render_field {
    struct gpu_device *device;
    const struct field_model *model;
    const struct field_path *path;
    struct Config constants; /* of the renderer's batches of rays and samples */
    struct gpu_constants specialization;
    const struct gpu_buffer *buffers[GPU_BINDINGS]; /* the parameters and the occupancy grid */
};
struct render_field render_field_of(const vkn_renderer *renderer);

#endif
