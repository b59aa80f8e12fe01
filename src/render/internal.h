/* The inside of a renderer, for the files that make something else than pictures with it. */
#ifndef RENDER_INTERNAL_H
#define RENDER_INTERNAL_H

#include <vknerf/renderer.h>

#include "field/path.h"

#define ROUND_SAMPLES   64u
#define LOCAL_SIZE_VIEW 64u

struct vkn_renderer {
    struct gpu_device *device;
    struct vkn_config config;
    char *scene_path;
    uint64_t step;
    const vkn_trainer *trainer; /* whose step this follows; NULL: a checkpoint's */
    struct field_model model;
    struct field_path path;
    struct Config constants;
    struct gpu_constants specialization;
    struct gpu_arena *arena;
    struct gpu_buffer constants_buffer, state, camera, rays, results, samples, features, field,
        output;
    /* The field of a checkpoint. */
    struct gpu_buffer weights, halves, occupancy, bits;
    struct gpu_bindings *bindings;
    struct gpu_program *generate_view_rays, *march_view_rays, *encode_samples, *field_forward,
        *composite_view, *finish_pixels, *pack_occupancy, *round_parameters;
    /* Once normals are wanted; else NULL. */
    struct gpu_arena *normal_arena;
    struct gpu_buffer normals;
    struct gpu_program *sample_normals, *composite_normals, *finish_normals;
};

/* Programs of LOCAL_SIZE_VIEW invocations, for the renderer's path. */
vkn_status render_create_passes(struct vkn_renderer *r, const struct field_pass_request *passes,
                                size_t count);
/* Marches and evaluates the first `rays` of BIND_RAYS to their ends; `forward` is the pass that
 * evaluates their samples, `composite` the one that adds them up. A barrier behind it. */
void render_record_rounds(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                          const struct gpu_program *forward, const struct gpu_program *composite);

#endif
