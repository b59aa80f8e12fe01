/* What the files of the room share. */
#ifndef PIPELINE_INTERNAL_H
#define PIPELINE_INTERNAL_H

#include "pipeline/pipeline.h"

/* The passes that a setup's step has, in order; returns how many. Those behind STEP_MAX_PASSES are
 * counted alone. */
size_t pipeline_list_passes(const struct setup *setup, struct step_pass passes[STEP_MAX_PASSES]);
/* The name of a pass in its place: the one that also begins a period has another there. */
const char *pipeline_label(const struct step_pass *pass);
/* Records the period: see step_begin, step_profile. */
vkn_status pipeline_record_period(struct step *step, struct gpu_recording **recording);
/* Checks what an opened checkpoint holds, see checkpoint_open. */
vkn_status checkpoint_check(const char *path, const struct safetensors_file *file);

#endif
