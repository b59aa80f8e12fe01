/* Evaluations of a field in training: quick ones of a few views on the way, whose pictures stay,
 * and the one at the end. */
#ifndef RUN_VALIDATE_H
#define RUN_VALIDATE_H

#include <vknerf/run.h>

#include "scene/scene.h"
#include "run/journal.h"

/* Belongs to the caller, as does all that it points to but the renderer. */
struct validation {
    vkn_trainer *trainer;
    vkn_scene *scene;
    enum scene_split_name split; /* to evaluate on */
    const char *folder;          /* the run directory */
    struct journal *journal;
    struct cJSON *evaluations; /* see run_add_evaluation */
    const volatile sig_atomic_t *stop;
    vkn_renderer *renderer; /* of the trainer; NULL until needed */
    bool targets_logged;
};

/* `eval_views` views, always the same. A picture or log that cannot be written is a warning. */
vkn_status validate_quickly(struct validation *validation, struct report_progress *progress);
/* All views, with their pictures; a few when there are but training views. The caller frees
 * *evaluation. */
vkn_status validate_finally(struct validation *validation, struct report_progress *progress,
                            struct vkn_evaluation **evaluation);
void validate_close(struct validation *validation);

#endif
