/* The training step: its buffers, its passes in order, and their recording. */
#ifndef PIPELINE_STEP_H
#define PIPELINE_STEP_H

#include "field/field.h"
#include "field/path.h"
#include "gpu/gpu.h"
#include "scene/scene.h"
#include "shared/layout.h"
#include "train/images.h"

#define STEP_RECORDINGS 2u
#define STEP_MAX_PASSES 24u

struct step_buffers {
    struct gpu_buffer config, state, control, stats, cameras, pixels, rays, results, samples, field,
        live, params, gradients, fixed, moment1, moment2, counts, average, partials, scratch,
        reduce, occupancy, bits, halves, half_average, features;
    struct gpu_buffer exchanges[IMAGES_EXCHANGES]; /* see stream.h */
};

/* One run of a pass. */
struct step_timing {
    const char *name;
    uint32_t slot;     /* place of its step in the period; PERIOD_STEPS: once a period */
    double begin, end; /* seconds on the device's clock */
};
#define STEP_MAX_TIMINGS ((PERIOD_STEPS + 1u) * STEP_MAX_PASSES)

struct step {
    struct gpu_device *device;
    struct field_model model;
    struct field_path path;
    struct Config constants;
    struct gpu_constants specialization;
    uint32_t local_size;
    struct images_plan images;
    struct gpu_arena *arena;
    struct step_buffers buffers;
    struct gpu_bindings *training;  /* BIND_PARAMS: the masters */
    struct gpu_bindings *inference; /* BIND_PARAMS: their average */
    struct gpu_program *programs[STEP_MAX_PASSES];
    struct gpu_program *mark_unseen_cells, *round_parameters;
    struct gpu_recording *period[STEP_RECORDINGS];
    bool profile; /* see step_profile */
};

/* Allocates everything for an effective configuration, fills in cameras, pixels (which a stream does
 * where its plan exchanges images), initial parameters and state, and records the period. */
vkn_status step_create(struct gpu_device *device, const struct scene *scene,
                       const struct vkn_config *config, struct step *step);
void step_destroy(struct step *step);
/* Bytes that step_create would allocate, but for alignment. VKN_BAD_INPUT as there. */
vkn_status step_memory(const struct gpu_device *device, const struct scene *scene,
                       const struct vkn_config *config, uint64_t *bytes);
/* Uploads the constants again after they were changed. */
vkn_status step_upload_constants(struct step *step);
/* Records the passes of one step in place `slot` of its period, from the pass of that name (NULL:
 * the first) up to and without the other (NULL: the last and all). For tests that look in between.
 */
void step_record_part(struct step *step, struct gpu_recording *recording, uint32_t slot,
                      const char *from, const char *until);
/* Rebuilds the occupancy bits from the occupancy values and the state's threshold. */
vkn_status step_pack_occupancy(struct step *step);
/* Refreshes the 16-bit copies after parameters or their average were uploaded. */
vkn_status step_round_parameters(struct step *step);
vkn_status step_submit(struct step *step, uint32_t recording);
vkn_status step_wait(struct step *step, uint32_t recording);
/* See gpu_wait_a_while. */
bool step_wait_a_while(const struct step *step, uint32_t recording, double seconds);
/* Records the period anew, none being in flight: from here on every pass of every step is timed
 * from its begin to its end, so that what lies between passes shows. Else only the last step's
 * passes are, each up to the begin of the next, which is all that their times take. */
vkn_status step_profile(struct step *step);
/* The timed passes of a recording in order, after step_wait; none on devices without timestamps. */
uint32_t step_timings(struct step *step, uint32_t recording,
                      struct step_timing timings[STEP_MAX_TIMINGS]);

/* Constants and specialisation of a configuration; shared with the renderer. */
vkn_status step_configure(const struct vkn_config *config, const struct gpu_capabilities *device,
                          struct field_model *model, struct field_path *path,
                          struct Config *constants, struct gpu_constants *specialization);
/* The same, and the path as it was tuned for the device, see field_tune. */
vkn_status step_configure_tuned(const struct vkn_config *config, const struct gpu_device *device,
                                struct field_model *model, struct field_path *path,
                                struct Config *constants, struct gpu_constants *specialization);
/* The device's form of a camera. */
struct Camera step_camera(const struct scene_camera *camera);

#endif
