#include "run/training.h"

#include <math.h>
#include <stdlib.h>

#include "render/render.h"

struct journal {
    const char *folder;
    struct report_progress *progress;
    struct report_log *log;
    struct report_events *events; /* NULL: not wanted, or failed */
    char *error;                  /* the first failure */
};

vkn_status journal_open(const char *folder, uint64_t step, const struct vkn_config *config,
                        struct report_progress *progress, struct journal **journal)
{
    *journal = base_alloc(1, sizeof(**journal));
    if (!*journal)
        return VKN_ERROR;
    (*journal)->folder = folder;
    (*journal)->progress = progress;
    vkn_status status = report_log_open(folder, step, &(*journal)->log);
    if (status == VKN_OK && config->log.tensorboard != VKN_SWITCH_OFF)
        status = report_events_open(folder, step, &(*journal)->events);
    if (status != VKN_OK)
        journal_close(journal);
    return status;
}

void journal_close(struct journal **journal)
{
    BASE_KEEP_ERROR;
    if (!*journal)
        return;
    report_log_close(&(*journal)->log);
    report_events_close(&(*journal)->events);
    free((*journal)->error);
    free(*journal);
    *journal = NULL;
}

vkn_status journal_status(const struct journal *journal)
{
    return journal->error ? base_fail(VKN_ERROR, "%s", journal->error) : VKN_OK;
}

/* Returns whether `status` is a failure, which is kept and said. */
static bool note_failure(struct journal *journal, vkn_status status)
{
    if (status == VKN_OK)
        return false;
    report_progress_pause(journal->progress);
    base_log(BASE_LOG_WARNING, "%s; training goes on without this log", vkn_last_error());
    if (!journal->error)
        journal->error = base_format("%s", vkn_last_error());
    return true;
}

void journal_add(struct journal *journal, const struct report_metrics *metrics)
{
    if (journal->log && note_failure(journal, report_log_add(journal->log, metrics)))
        report_log_close(&journal->log);
    if (journal->events && note_failure(journal, report_events_add(journal->events, metrics)))
        report_events_close(&journal->events);
}

/* ---- evaluations ---------------------------------------------------------------------------- */

/* "test_003" and "render" make the tag "views/test_003/render". */
static vkn_status add_picture(const struct journal *journal, uint64_t step, const char *view,
                              const char *what, char *file)
{
    char *path = file ? base_path_join(journal->folder, file) : NULL;
    char *tag = base_format("views/%s/%s", view, what);
    vkn_status status =
        path && tag ? report_events_add_picture(journal->events, step, tag, path) : VKN_ERROR;
    free(file);
    free(path);
    free(tag);
    return status;
}

static vkn_status add_means(const struct journal *journal, const struct vkn_evaluation *evaluation)
{
    BASE_TRY(
        report_events_add_scalar(journal->events, evaluation->step, "eval/psnr", evaluation->psnr));
    if (isnan(evaluation->ssim))
        return VKN_OK;
    return report_events_add_scalar(journal->events, evaluation->step, "eval/ssim",
                                    evaluation->ssim);
}

static vkn_status add_evaluation(const struct journal *journal,
                                 const struct vkn_evaluation *evaluation,
                                 const struct run_pictures *pictures, bool targets)
{
    BASE_TRY(add_means(journal, evaluation));
    for (size_t i = 0; i < pictures->end; i += pictures->every) {
        const char *view = evaluation->views[i]->name;
        BASE_TRY(add_picture(journal, evaluation->step, view, "render",
                             run_picture_file(pictures->prefix, view, "")));
        if (targets)
            BASE_TRY(add_picture(journal, evaluation->step, view, "target",
                                 run_picture_file("", view, "_target")));
    }
    return VKN_OK;
}

void journal_add_evaluation(struct journal *journal, const struct vkn_evaluation *evaluation,
                            const struct run_pictures *pictures, bool targets)
{
    if (journal->events &&
        note_failure(journal, add_evaluation(journal, evaluation, pictures, targets)))
        report_events_close(&journal->events);
}
