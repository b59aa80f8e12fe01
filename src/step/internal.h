/* What the files of the room share. */
#ifndef STEP_INTERNAL_H
#define STEP_INTERNAL_H

#include "step/step.h"

#define STEP_MAX_CHUNKS 8u /* of a step's samples */

/* Sets of samples where there are coarse ones; else there is the step's own alone. The coarse field
 * or proposal evaluates SET_COARSE. The others have the step's own samples: with the parameters of
 * the coarse field; with what it makes of the coarse samples, BIND_COARSE_*. */
enum { SET_STEP, SET_COARSE, SET_COARSE_FIELD, SET_FINE, COARSE_SETS };
_Static_assert(COARSE_SETS <= STEP_MAX_SETS, "room for all");

/* The passes that a setup's step has, in order; returns how many. Those behind STEP_MAX_PASSES are
 * counted alone. */
size_t step_list_passes(const struct setup *setup, struct step_pass passes[STEP_MAX_PASSES]);
/* The name of a pass in its place: the one that also begins a period has another there. */
const char *step_pass_label(const struct step_pass *pass);
/* Records a period: see step_begin, step_profile. */
vkn_status pipeline_record_interval(struct step *step, uint32_t recording);
/* Uploads the constants again after they were changed. */
vkn_status step_upload_constants(struct step *step);
/* Records what runs once a period, at its begin or end. */
void step_record_interval_passes(struct step *step, struct gpu_recording *recording,
                                 enum step_phase phase);
/* Part of a step: passes by number, up to and without `end`, and those that run for pieces of the
 * gradients for pieces from `piece` up to and without `bucket_end`. */
struct segment {
    size_t from, end;
    uint32_t piece, bucket_end;
    uint32_t field, fields; /* whose pieces are complete with it */
};
void step_record_segment(struct step *step, struct gpu_recording *recording,
                         const struct segment *segment);
/* Adds the timed passes of a finished recording, in order, to the `before` that there are; those of
 * a step are of that place in its period. Returns how many there are then. */
uint32_t step_append_timings(const struct step *step, struct gpu_recording *recording,
                             uint32_t slot, struct step_timing *timings, uint32_t before);
/* Runs one of the step's programs once on the masters, in groups that share out all there is. */
vkn_status step_run_pipeline(struct step *step, const struct gpu_pipeline *pipeline,
                             struct Push push);
/* Finds the cells that no camera sees, some at a time: there may be 10^10 points to look at. */
vkn_status step_mark_unseen(struct step *step);
/* Records one pass in place `slot` of the period, for a chunk of rows. */
void step_record_pass(struct step *step, struct gpu_recording *recording,
                      const struct step_pass *pass, uint32_t slot, uint32_t chunk, bool timed);
/* How many chunks of rows a pass of the step runs for. */
uint32_t step_pass_chunks(const struct step *step, size_t pass);
/* Behind the passes from `first` on that run together for each chunk of rows; behind `first` alone
 * where it does not. */
size_t step_chunk_end(const struct step *step, size_t first);
/* Of a period, as measured. */
double pipeline_interval_seconds(const struct step *step);
/* How many fields a step trains, and whose parameters they have: the coarse one's is the last. */
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
/* Records something once, waits for it and forgets it. */
typedef void step_recorder(const struct step *step, struct gpu_recording *recording);
vkn_status step_record_and_run(const struct step *step, const char *name, step_recorder *record);
/* Records that no field has any gradients. */
step_recorder step_record_clear_gradients;
/* Ranks that the device plays, one after the other. */
static inline uint32_t setup_virtual_ranks(const struct vkn_config *config)
{
    return config->parallel.ranks_per_device > 0 ? config->parallel.ranks_per_device : 1;
}
/* Views that a turn draws its rays from, one in every constants.view_stride. */
static inline uint32_t step_view_count(const struct Config *constants, uint32_t first)
{
    return (constants->camera_count - first + constants->view_stride - 1) / constants->view_stride;
}
/* Whether parts that were chosen when a period took so many seconds are to be chosen anew. */
bool step_submissions_differ(const struct step *step, double planned);
/* Before passes are measured: nothing is known of any, and what runs once a period does so, or not.
 */
void step_reset_times(struct step *step, bool begins_interval);
/* Runs passes of that place, by their numbers from `from` up to and without `end`, one by one, and
 * takes the time. */
vkn_status step_measure_passes(struct step *step, enum step_phase phase, uint32_t slot, size_t from,
                               size_t end);
/* What several ranks need to take a step together (ranks.c), of the bytes that the other function
 * tells. */
vkn_status step_ranks_create(struct step *step);
void step_ranks_destroy(struct step_ranks **ranks);
uint64_t step_ranks_memory(const struct setup *setup);
/* The same for ranks that are averaged (averaging.c). */
vkn_status step_average_create(struct step *step);
void step_average_destroy(struct step_average **averaging);
uint64_t step_average_memory(const struct setup *setup);
/* Whether the pass, a number in step->passes, is to begin a part; counts it in. */
bool step_begins_submission(struct step *step, size_t pass);

/* ---- step.c ---------------------------------------------------------------------------------- */

/* What step_create would allocate for a setup, buffer by buffer; returns how many. */
#define STEP_MAX_NEEDS (2 * GPU_BINDINGS + 2)
size_t step_list_memory(const struct setup *setup, const struct step_images *images,
                        struct gpu_need needs[STEP_MAX_NEEDS]);

#endif
