/* What the files of the training step share. */
#ifndef BENCH_STEP_H
#define BENCH_STEP_H

#include "bench/internal.h"
#include "scene/scene.h"

/* A ball with a pattern, seen from all around, without files. The caller closes *scene. */
vkn_status step_make_scene(uint32_t views, uint32_t size, struct vkn_scene **scene);

#endif
