/* What the files of the room share. */
#ifndef STEPPER_INTERNAL_H
#define STEPPER_INTERNAL_H

#include <vknerf/stepper.h>

#include "images/images.h"
#include "step/step.h"

/* ---- samples as callers see them (listing.c) ------------------------------------------------- */

#define LISTING_ARRAYS 13u

/* Of one set of buffers: BIND_SAMPLES, BIND_RAYS, ... as arrays of the public API. */
struct listing {
    struct gpu_arena *arena, *listed_arena;
    struct gpu_buffer listed; /* struct Listed, mapped */
    struct gpu_buffer arrays[LISTING_ARRAYS];
    struct gpu_bindings *bindings; /* of list_samples and import_densities */
    struct vkn_samples samples;    /* whose arrays are those */
};

/* As many samples and rays as `of` has room for. `host`: see vkn_stepper_params. The caller
 * destroys *listing, also after a failure. */
vkn_status listing_create(struct gpu_device *device, const struct buffers *of, bool host,
                          struct listing *listing);
void listing_destroy(struct listing *listing);
/* The array as the caller has it; `host`: whether in host memory. */
struct vkn_array listing_array(const struct gpu_buffer *buffer, bool host);
/* The buffer behind one of listing->samples' arrays. */
const struct gpu_buffer *listing_buffer(const struct listing *listing,
                                        const struct vkn_array *array);
/* Records a barrier, then that samples are listed; see LIST_*. `rays`: of LIST_VIEW. */
void listing_record(const struct listing *listing, struct gpu_recording *recording,
                    const struct gpu_pipeline *list_samples, uint32_t whose, uint32_t rays,
                    uint32_t groups);
/* After that has run: takes over what was found. */
const struct ListSummary *listing_read(struct listing *listing);

/* ---- the stepper ----------------------------------------------------------------------------- */

struct vkn_stepper {
    vkn_context *context;
    struct gpu_device *device;
    struct vkn_scene *scene;
    bool host;
    struct images_plan images;
    struct step step;      /* of a field that the caller evaluates */
    struct stream *stream; /* NULL: all images stay as they are */
    uint64_t steps;        /* begun */
    bool sampled;          /* the listing has the step's samples */
    struct gpu_pipeline *list_samples, *import_densities;
    struct listing listing, viewed; /* of the step; of pictures, made when it is needed */
    struct gpu_arena *arena;
    struct gpu_buffer gradients;
    struct gpu_recording *sampling, *compositing;
    struct vkn_composited composited;
    vkn_renderer *renderer; /* made when it is needed */
    /* While vkn_stepper_render runs. */
    vkn_field_fn *field;
    void *user;
};

/* Begins a recording, runs what `record` puts into it and waits. */
typedef void stepper_recorder(struct vkn_stepper *s, struct gpu_recording *recording,
                              uint32_t number);
vkn_status stepper_run(struct vkn_stepper *s, const char *name, stepper_recorder *record,
                       uint32_t number);
/* That the caller's function has failed, unless it has not. */
vkn_status stepper_check_callback(const char *call, const char *function, vkn_status status);

#endif
