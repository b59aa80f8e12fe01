/* Declares what the files of the training step share. */
#ifndef STEP_INTERNAL_H
#define STEP_INTERNAL_H

#include "step/step.h"

#define STEP_MAX_CHUNKS 8u /* most chunks of a step's samples */

/* Sets of samples. Without a coarse field or proposal there is only SET_STEP.
 *   SET_STEP          the step's samples and the main field
 *   SET_COARSE        coarse samples and the coarse field or proposal
 *   SET_COARSE_FIELD  the step's samples and the parameters of the coarse field
 *   SET_FINE          the step's samples and the coarse samples as BIND_COARSE_* */
enum { SET_STEP, SET_COARSE, SET_COARSE_FIELD, SET_FINE, COARSE_SETS };
_Static_assert(COARSE_SETS <= STEP_MAX_SETS, "STEP_MAX_SETS covers all sets");

/* Lists the passes of a setup's step in order. Returns their number; passes beyond STEP_MAX_PASSES
 * are counted but not stored. */
size_t step_list_passes(const struct setup *setup, struct step_pass passes[STEP_MAX_PASSES]);
/* Returns whether steps of the setup may be joined: no step but the last of an update interval
 * needs the norm of the gradient, and there is one field, which has partial gradients to reduce. */
bool setup_joins_steps(const struct setup *setup);
/* Returns the pass's name in timings: "begin_update_interval" for begin_step outside of a step. */
const char *step_pass_label(const struct step_pass *pass);
/* Returns whether a pass of STEP_EVERY runs in a step that is joined to its neighbours or not. */
bool step_pass_runs(const struct step_pass *pass, bool joins_before, bool joins_next);
/* Records a whole update interval into step->intervals[recording]. */
vkn_status step_record_interval(struct step *step, uint32_t recording);
/* Uploads the setup's constants. */
vkn_status step_upload_constants(struct step *step);
/* Records the passes of a phase that runs once per update interval. */
void step_record_interval_passes(struct step *step, struct gpu_recording *recording,
                                 enum step_phase phase);
/* A part of a step, in which passes by bucket run for some buckets only. */
struct segment {
    size_t from, end;            /* passes [from, end) */
    uint32_t bucket, bucket_end; /* buckets [bucket, bucket_end) */
    uint32_t field, fields; /* the segment completes buckets of `fields` fields from `field` on */
};
/* Records the passes of a segment. */
void step_record_segment(struct step *step, struct gpu_recording *recording,
                         const struct segment *segment);
/* Appends the timed passes of a finished recording to timings[before], as passes of step `slot` if
 * they belong to a step. Returns the new number of timings. */
uint32_t step_append_timings(const struct step *step, struct gpu_recording *recording,
                             uint32_t slot, struct step_timing *timings, uint32_t before);
/* Runs a pipeline that works with any number of workgroups once, with the bindings of SET_STEP. */
vkn_status step_run_pipeline(struct step *step, const struct gpu_pipeline *pipeline,
                             struct Push push);
/* Marks the cells that no camera sees, in batches: there may be 10^10 pairs of camera and point. */
vkn_status step_mark_unseen(struct step *step);
/* Records one pass of step number `slot` in the update interval, for one chunk or bucket. */
void step_record_pass(struct step *step, struct gpu_recording *recording,
                      const struct step_pass *pass, uint32_t slot, uint32_t chunk, bool timed);
/* Returns the number of chunks or buckets that a pass runs for. */
uint32_t step_pass_chunks(const struct step *step, size_t pass);
/* Returns the end of the passes that share chunks or buckets with `first`, at least first + 1. */
size_t step_chunk_end(const struct step *step, size_t first);
/* Returns the measured seconds of an update interval. */
double step_interval_seconds(const struct step *step);
/* Return the number of fields that a step trains, and the buffers and setup of a field: 0 is the
 * main field, 1 the coarse field or proposal. */
static inline uint32_t step_field_count(const struct step *step)
{
    return step->coarse.arena ? 2 : 1;
}
static inline const struct buffers *step_field_buffers(const struct step *step, uint32_t field)
{
    return field > 0 ? &step->coarse : &step->buffers;
}
static inline const struct setup *step_field_setup(const struct step *step, uint32_t field)
{
    return field > 0 ? &step->coarse_setup : &step->setup;
}
/* Records commands by `record`, runs the commands once and waits until they have finished. */
typedef void step_recorder(const struct step *step, struct gpu_recording *recording);
vkn_status step_record_and_run(const struct step *step, const char *name, step_recorder *record);
/* Records commands that set the gradients of all fields to zero. */
step_recorder step_record_clear_gradients;
/* Returns the number of virtual ranks of each device. */
static inline uint32_t setup_virtual_ranks(const struct vkn_config *config)
{
    return config->parallel.ranks_per_device > 0 ? config->parallel.ranks_per_device : 1;
}
/* Returns the number of views from `first` on, one in every constants.view_stride. */
static inline uint32_t step_view_count(const struct Config *constants, uint32_t first)
{
    return (constants->camera_count - first + constants->view_stride - 1) / constants->view_stride;
}
/* Returns whether submissions chosen for intervals of `planned_seconds` must be chosen again. */
bool step_submissions_differ(const struct step *step, double planned_seconds);
/* Resets the passes' times before passes are measured. Times of passes outside of steps become
 * unknown unless an update interval begins. */
void step_reset_times(struct step *step, bool begins_interval);
/* Runs the passes [from, end) of a phase one by one, and adds their seconds to pass_seconds. */
vkn_status step_measure_passes(struct step *step, enum step_phase phase, uint32_t slot, size_t from,
                               size_t end);
/* Create and destroy the buffers and command buffers of synchronous data parallelism. */
vkn_status step_ranks_create(struct step *step);
void step_ranks_destroy(struct step_ranks **ranks);
/* Returns the bytes of the buffers of synchronous data parallelism, for `summed_cells` struct
 * ErrorCell in BIND_STATE; 0 for a single rank. */
uint64_t step_ranks_memory(const struct setup *setup, uint64_t summed_cells);
/* Create and destroy the buffers and command buffers of parameter averaging. */
vkn_status step_average_create(struct step *step);
void step_average_destroy(struct step_average **averaging);
/* Returns the bytes of the buffers of parameter averaging; 0 without it. */
uint64_t step_average_memory(const struct setup *setup);
/* Returns whether step->passes[pass] begins a new submission. Adds the pass's time to the current
 * submission. */
bool step_begins_submission(struct step *step, size_t pass);

/* Returns the byte of BIND_STATE where the sums of the views' gradients begin; the views follow. */
static inline uint64_t step_view_sums_offset(const struct step *step)
{
    return sizeof(struct State) + sizeof(struct ErrorCell) * step->setup.constants.first_sum;
}

/* ---- appearance.c ---------------------------------------------------------------------------- */

/* Returns whether the step estimates the images' appearance. */
bool step_has_appearance(const struct step *step);
/* Uploads the first appearances: exposures of the image files, if any, about their mean. */
vkn_status step_begin_appearances(const struct step *step, const struct scene_split *train);
/* Returns whether all parameters are in the range in which training keeps them. */
bool step_appearance_is_finite(const struct Appearance *appearance);

/* ---- step.c ---------------------------------------------------------------------------------- */

/* Lists the memory that step_create would allocate. Returns the number of items. */
#define STEP_MAX_NEEDS (2 * GPU_BINDINGS + 2)
size_t step_list_memory(const struct setup *setup, const struct step_images *images,
                        struct gpu_need needs[STEP_MAX_NEEDS]);

#endif
