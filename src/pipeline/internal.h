/* What the files of the room share. */
#ifndef PIPELINE_INTERNAL_H
#define PIPELINE_INTERNAL_H

#include "pipeline/pipeline.h"

/* Sets of samples where sampling is hierarchical; else there is the step's own alone. The coarse
 * field evaluates SET_COARSE. The others have the step's own samples: with the parameters of the
 * coarse field; with what it makes of the coarse samples, BIND_COARSE_*. */
enum { SET_STEP, SET_COARSE, SET_COARSE_FIELD, SET_FINE, HIERARCHICAL_SETS };
_Static_assert(HIERARCHICAL_SETS <= STEP_MAX_SETS, "room for all");

/* The passes that a setup's step has, in order; returns how many. Those behind STEP_MAX_PASSES are
 * counted alone. */
size_t pipeline_list_passes(const struct setup *setup, struct step_pass passes[STEP_MAX_PASSES]);
/* The name of a pass in its place: the one that also begins a period has another there. */
const char *pipeline_label(const struct step_pass *pass);
/* Records a period: see step_begin, step_profile. */
vkn_status pipeline_record_period(struct step *step, uint32_t recording);
/* Runs one of the step's programs once on the masters, in groups that share out all there is. */
vkn_status pipeline_run_once(struct step *step, const struct gpu_program *program,
                             struct Push push);
/* Finds the cells that no camera sees, some at a time: there may be 10^10 points to look at. */
vkn_status pipeline_mark_unseen(struct step *step);
/* Records one pass in place `slot` of the period, for a chunk of rows. */
void pipeline_record_pass(struct step *step, struct gpu_recording *recording,
                          const struct step_pass *pass, uint32_t slot, uint32_t chunk, bool timed);
/* How many chunks of rows a pass of the step runs for. */
uint32_t pipeline_chunks(const struct step *step, size_t pass);
/* Behind the passes from `first` on that run together for each chunk of rows; behind `first` alone
 * where it does not. */
size_t pipeline_chunk_end(const struct step *step, size_t first);
/* Of a period, as measured. */
double pipeline_period_seconds(const struct step *step);
/* Whether the pass, a number in step->passes, is to begin a part; counts it in. */
bool pipeline_begins_part(struct step *step, size_t pass);
/* Checks what an opened checkpoint holds, see checkpoint_open. */
vkn_status checkpoint_check(const char *path, const struct safetensors_file *file);

#endif
