/* The device as the public API sees it. */
#ifndef PIPELINE_CONTEXT_H
#define PIPELINE_CONTEXT_H

#include <vknerf/context.h>

#include "gpu/gpu.h"

struct vkn_context {
    struct gpu_device *device;
};

/* What `params`, which may be NULL, ask for. */
struct gpu_options context_options(const struct vkn_context_params *params);

#endif
