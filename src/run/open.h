/* Declares how a run is opened for rendering: its renderer, its scene, and a progress line. */
#ifndef RUN_OPEN_H
#define RUN_OPEN_H

#include <vknerf/run.h>

#include "report/report.h"

/* A run opened for rendering. */
struct run_opened {
    vkn_context *context;
    vkn_renderer *renderer;
    vkn_scene *scene;
    struct report_progress *progress;
};

/* Opens a run. `scene`: NULL for the recorded path; `format`: AUTO for the recorded format;
 * `precision`: see vkn_renderer_open. On failure there is nothing to close. */
vkn_status run_open(const struct vkn_job *job, const char *run, const char *scene,
                    enum vkn_scene_format format, enum vkn_precision precision,
                    struct run_opened *opened);
/* Sets the time at which the field is rendered. Warns if the scene is static. */
vkn_status run_set_time(struct run_opened *opened, double time);
void run_close(struct run_opened *opened);

#endif
