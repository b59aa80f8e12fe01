/* A run opened for pictures: its field, its scene, and somewhere to show progress. */
#ifndef RUN_OPEN_H
#define RUN_OPEN_H

#include <vknerf/run.h>

#include "report/report.h"

struct run_opened {
    vkn_context *context;
    vkn_renderer *renderer;
    vkn_scene *scene;
    struct report_progress *progress;
};

/* `scene`: NULL for where the run found it; `format`: AUTO for as the run found it; `precision`:
 * see vkn_renderer_open. On failure there is nothing to close. */
vkn_status run_open(const struct vkn_job *job, const char *run, const char *scene,
                    enum vkn_scene_format format, enum vkn_precision precision,
                    struct run_opened *opened);
/* Shows the moment that is asked for, with a warning where the scene has no times. */
vkn_status run_freeze(struct run_opened *opened, double time);
void run_close(struct run_opened *opened);

#endif
