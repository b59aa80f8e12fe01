/* Declares struct vkn_stepper, and lists of samples for callers. */
#ifndef STEPPER_INTERNAL_H
#define STEPPER_INTERNAL_H

#include <vknerf/stepper.h>

#include "images/images.h"
#include "step/step.h"

/* ---- samples as arrays (listing.c) ----------------------------------------------------------- */

#define LISTING_ARRAYS 13u

/* Samples and rays of one set of buffers, copied to the arrays of struct vkn_samples. */
struct listing {
    struct gpu_arena *arena, *listed_arena;
    struct gpu_buffer listed; /* struct ListSummary, mapped */
    struct gpu_buffer arrays[LISTING_ARRAYS];
    struct gpu_bindings *bindings; /* of list_samples and import_densities */
    struct vkn_samples samples;    /* refers to `arrays` */
};

/* Creates arrays for as many samples and rays as `buffers` hold. `host`: see vkn_stepper_params.
 * The caller destroys *listing, also after a failure. */
vkn_status listing_create(struct gpu_device *device, const struct buffers *buffers, bool host,
                          struct listing *listing);
void listing_destroy(struct listing *listing);
/* Returns the public description of a buffer; `host`: whether it is in host memory. */
struct vkn_array listing_array(const struct gpu_buffer *buffer, bool host);
/* Returns the buffer of one of listing->samples' arrays. */
const struct gpu_buffer *listing_buffer(const struct listing *listing,
                                        const struct vkn_array *array);
/* Records a barrier and the pass list_samples. `kind`: LIST_*; `rays`: number of rays for
 * LIST_VIEW; `groups`: number of workgroups. */
void listing_record(const struct listing *listing, struct gpu_recording *recording,
                    const struct gpu_pipeline *list_samples, uint32_t kind, uint32_t rays,
                    uint32_t groups);
/* Reads the numbers of samples and rays after list_samples has run. */
const struct ListSummary *listing_read(struct listing *listing);

/* ---- the stepper ----------------------------------------------------------------------------- */

struct vkn_stepper {
    vkn_context *context;
    struct gpu_device *device;
    struct vkn_scene *scene;
    bool host; /* see vkn_stepper_params */
    struct images_plan images;
    struct step step;      /* of a field that the caller evaluates */
    struct stream *stream; /* NULL: no images are streamed */
    uint64_t steps;        /* number of steps begun */
    bool sampled;          /* `listing` holds the step's samples, not composited yet */
    struct gpu_pipeline *list_samples, *import_densities, *given_rays;
    struct listing listing, viewed; /* of the step; of pictures, created when needed */
    struct gpu_arena *arena;
    struct gpu_buffer gradients; /* [sample][r, g, b, density] f32 */
    struct gpu_recording *sampling, *compositing;
    struct vkn_composited composited;
    vkn_renderer *renderer; /* created when needed */
    /* The caller's function while vkn_stepper_render runs. */
    vkn_field_fn *field;
    void *user;
};

/* Adds commands to a command buffer; `number` is the argument of stepper_run. */
typedef void stepper_recorder(struct vkn_stepper *s, struct gpu_recording *recording,
                              uint32_t number);
/* Runs the commands that `record` adds to a new command buffer, and waits. */
vkn_status stepper_run(struct vkn_stepper *s, const char *name, stepper_recorder *record,
                       uint32_t number);
/* Fails unless the configuration has another step. */
vkn_status stepper_check_steps(const struct vkn_stepper *s, const char *what);
/* Records the listing of a step's samples. Counts all samples as live until the stepper composites,
 * so that the ray count also adapts for callers that composite by themselves. */
void stepper_record_listing(struct vkn_stepper *s, struct gpu_recording *recording);
/* Reads what was listed. */
void stepper_read_listing(struct vkn_stepper *s);
/* Returns the status of the caller's function, with an error message if it has failed. */
vkn_status stepper_check_callback(const char *call, const char *function, vkn_status status);

#endif
