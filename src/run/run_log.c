/* Writes metrics.jsonl and TensorBoard event files during a run. */
#include "run/training.h"

#include <math.h>
#include <stdlib.h>

#include "render/render.h"

struct run_log {
    const char *folder;
    struct report_progress *progress;
    struct report_log *log;
    struct report_events *events; /* NULL: switched off, or failed */
    char *error;                  /* message of the first failure; NULL: none */
};

vkn_status run_log_open(const char *folder, uint64_t step, const struct vkn_config *config,
                        struct report_progress *progress, struct run_log **run_log)
{
    *run_log = base_alloc(1, sizeof(**run_log));
    if (!*run_log)
        return VKN_ERROR;
    (*run_log)->folder = folder;
    (*run_log)->progress = progress;
    vkn_status status = report_log_open(folder, step, &(*run_log)->log);
    if (status == VKN_OK && config->log.tensorboard != VKN_SWITCH_OFF)
        status = report_events_open(folder, step, &(*run_log)->events);
    if (status != VKN_OK)
        run_log_close(run_log);
    return status;
}

void run_log_close(struct run_log **run_log)
{
    BASE_KEEP_ERROR;
    if (!*run_log)
        return;
    report_log_close(&(*run_log)->log);
    report_events_close(&(*run_log)->events);
    free((*run_log)->error);
    free(*run_log);
    *run_log = NULL;
}

vkn_status run_log_status(const struct run_log *run_log)
{
    return run_log->error ? base_fail(VKN_ERROR, "%s", run_log->error) : VKN_OK;
}

/* Keeps the first failure and warns of it. Returns whether `status` is a failure. */
static bool note_failure(struct run_log *run_log, vkn_status status)
{
    if (status == VKN_OK)
        return false;
    report_progress_pause(run_log->progress);
    base_log(BASE_LOG_WARNING, "%s; training goes on without this log", vkn_last_error());
    if (!run_log->error)
        run_log->error = base_format("%s", vkn_last_error());
    return true;
}

void run_log_add(struct run_log *run_log, const struct report_metrics *metrics)
{
    if (run_log->log && note_failure(run_log, report_log_add(run_log->log, metrics)))
        report_log_close(&run_log->log);
    if (run_log->events && note_failure(run_log, report_events_add(run_log->events, metrics)))
        report_events_close(&run_log->events);
}

/* ---- evaluations ---------------------------------------------------------------------------- */

/* Adds a picture with a tag such as "views/test_003/render". Frees `file`. */
static vkn_status add_picture(const struct run_log *run_log, uint64_t step, const char *view,
                              const char *what, char *file)
{
    char *path = file ? base_path_join(run_log->folder, file) : NULL;
    char *tag = base_format("views/%s/%s", view, what);
    vkn_status status =
        path && tag ? report_events_add_picture(run_log->events, step, tag, path) : VKN_ERROR;
    free(file);
    free(path);
    free(tag);
    return status;
}

static vkn_status add_means(const struct run_log *run_log, uint64_t step,
                            const struct run_pictures *pictures)
{
    BASE_TRY(report_events_add_scalar(run_log->events, step, "eval/psnr", pictures->psnr));
    if (isnan(pictures->ssim))
        return VKN_OK;
    return report_events_add_scalar(run_log->events, step, "eval/ssim", pictures->ssim);
}

static vkn_status add_evaluation(const struct run_log *run_log,
                                 const struct vkn_evaluation *evaluation,
                                 const struct run_pictures *pictures, bool targets)
{
    BASE_TRY(add_means(run_log, evaluation->step, pictures));
    for (size_t i = 0; i < pictures->end; i += pictures->every) {
        const char *view = evaluation->views[i]->name;
        BASE_TRY(add_picture(run_log, evaluation->step, view, "render",
                             run_picture_file(pictures->prefix, view, "")));
        if (targets)
            BASE_TRY(add_picture(run_log, evaluation->step, view, "target",
                                 run_picture_file("", view, "_target")));
    }
    return VKN_OK;
}

void run_log_add_evaluation(struct run_log *run_log, const struct vkn_evaluation *evaluation,
                            const struct run_pictures *pictures, bool targets)
{
    if (run_log->events &&
        note_failure(run_log, add_evaluation(run_log, evaluation, pictures, targets)))
        report_events_close(&run_log->events);
}
