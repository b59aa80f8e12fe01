/* What a run begins with: its own configuration, and what it takes over from another run. */
#ifndef RUN_BEGIN_H
#define RUN_BEGIN_H

#include <vknerf/run.h>

#include "config/config.h"
#include "gpu/gpu.h"

struct run_beginning {
    const struct vkn_train_params *params;
    struct vkn_config config;   /* for the trainer, not effective yet */
    struct vkn_config recorded; /* of the run to resume */
    char *scene_path;
    char *checkpoint; /* to resume or to take weights from; NULL: neither */
};

/* Reads the checkpoint's configuration. Refuses a new limit that a run to resume has passed, where
 * nothing would be trained, and says when it is at the limit that it had. The caller closes
 * *beginning, also after a failure. */
vkn_status run_begin(const struct vkn_train_params *params, struct run_beginning *beginning);
/* Settings that a resumed run was trained with but that this device cannot do become what it can,
 * with a warning each; what the user asks for stays, for the trainer to refuse. */
void run_begin_fit(struct run_beginning *beginning, const vkn_scene *scene,
                   const struct gpu_capabilities *device);
/* Makes vkn_backend.why of a resumed run's trainer say why the run computes as it does, when that
 * was decided as the run began: a trainer says "asked for" of every precision that it is given. */
void run_begin_explain(const struct run_beginning *beginning, vkn_trainer *trainer);
/* Opens the scene that is trained on; of a resumed run whose scene has moved the message says what
 * to do. */
vkn_status run_begin_scene(const struct run_beginning *beginning, vkn_scene **scene);
void run_begin_close(struct run_beginning *beginning);

#endif
