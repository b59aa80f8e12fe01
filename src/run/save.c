/* Saves checkpoints during and after a training; names saved and lost steps in error messages. */
#include "run/training.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "train/train.h"
#include "run/internal.h"

#define SAVE_SHARE 50.0 /* interval over duration of a save: at most 2 % of the time */
#define FIRST_WAIT 0.5  /* seconds until the first retry after a failure; doubles each time */
#define MOST_WAIT  60.0 /* seconds, longest time until a retry */

/* ---- kept checkpoints ---------------------------------------------------------------------- */

/* A checkpoint with a step in its name. */
struct kept {
    char *path;
    unsigned long long step;
    struct timespec written;
};

struct kept_list {
    struct kept *items;
    size_t count, capacity;
};

/* Returns the path of the kept checkpoint of a step: "checkpoint_000400.safetensors". */
static char *kept_path(const char *folder, uint64_t step)
{
    char *name =
        base_format(RUN_CHECKPOINT_STEM "_%06llu" RUN_CHECKPOINT_ENDING, (unsigned long long)step);
    char *path = name ? base_path_join(folder, name) : NULL;
    free(name);
    return path;
}

static bool parse_kept(const char *name, unsigned long long *step)
{
    static const char begin[] = RUN_CHECKPOINT_STEM "_", ending[] = RUN_CHECKPOINT_ENDING;
    if (strncmp(name, begin, sizeof(begin) - 1) != 0)
        return false;
    char *end;
    *step = strtoull(name + sizeof(begin) - 1, &end, 10);
    return isdigit((unsigned char)name[sizeof(begin) - 1]) && strcmp(end, ending) == 0;
}

static bool grow(struct kept_list *list)
{
    if (list->count < list->capacity)
        return true;
    size_t capacity = 2 * list->capacity + 16;
    struct kept *items = realloc(list->items, capacity * sizeof(*items));
    if (!items)
        return false;
    list->items = items;
    list->capacity = capacity;
    return true;
}

static void add_kept(struct kept_list *list, const char *folder, const char *name)
{
    struct stat information;
    struct kept item = {0};
    if (!parse_kept(name, &item.step))
        return;
    item.path = base_path_join(folder, name);
    bool is_file = item.path && lstat(item.path, &information) == 0 && S_ISREG(information.st_mode);
    if (!is_file || !grow(list)) {
        free(item.path);
        return;
    }
    item.written = information.st_mtim;
    list->items[list->count++] = item;
}

/* Orders by time of writing: a run that was resumed from an earlier step may have written the lower
 * of two steps later. */
static int newest_first(const void *left, const void *right)
{
    const struct kept *a = left, *b = right;
    if (a->written.tv_sec != b->written.tv_sec)
        return a->written.tv_sec > b->written.tv_sec ? -1 : 1;
    if (a->written.tv_nsec != b->written.tv_nsec)
        return a->written.tv_nsec > b->written.tv_nsec ? -1 : 1;
    return a->step > b->step ? -1 : a->step < b->step;
}

/* Removes all but the `keep` newest kept checkpoints. */
static void remove_older(const char *folder, size_t keep)
{
    struct kept_list list = {0};
    DIR *stream = opendir(folder);
    struct dirent *entry;
    while (stream && (entry = readdir(stream)))
        add_kept(&list, folder, entry->d_name);
    if (stream)
        closedir(stream);
    if (list.count > 0)
        qsort(list.items, list.count, sizeof(*list.items), newest_first);
    for (size_t i = 0; i < list.count; i++) {
        if (i >= keep)
            unlink(list.items[i].path);
        free(list.items[i].path);
    }
    free(list.items);
}

void run_remove_checkpoints(const char *folder)
{
    char *path = base_path_join(folder, RUN_CHECKPOINT);
    if (path)
        unlink(path);
    free(path);
    remove_older(folder, 0);
}

/* Keeps the checkpoint that was just written: hard-links it under the step's name, or writes it
 * once more where the file system has no hard links. */
static vkn_status keep(struct run_saver *saver)
{
    uint32_t count = vkn_trainer_config(saver->trainer)->keep;
    if (count <= 1)
        return VKN_OK;
    char *path = kept_path(saver->folder, saver->step);
    if (!path)
        return VKN_ERROR;
    vkn_status status = VKN_OK;
    unlink(path);
    if (link(saver->path, path) != 0)
        status = vkn_trainer_save(saver->trainer, path);
    free(path);
    if (status == VKN_OK)
        remove_older(saver->folder, count);
    return status;
}

/* ---- opening ------------------------------------------------------------------------------- */

vkn_status run_saver_open(struct run_saver *saver)
{
    saver->path = base_path_join(saver->folder, RUN_CHECKPOINT);
    saver->last_try = base_seconds();
    saver->step = vkn_trainer_step(saver->trainer);
    if (!saver->path)
        return VKN_ERROR;
    saver->exists = base_file_exists(saver->path);
    return VKN_OK;
}

void run_saver_close(struct run_saver *saver)
{
    free(saver->path);
    *saver = (struct run_saver){0};
}

/* ---- when to save -------------------------------------------------------------------------- */

/* Returns the seconds between two checkpoints; HUGE_VAL: no checkpoints by time. */
static double save_interval(const struct run_saver *saver)
{
    const struct vkn_config *config = vkn_trainer_config(saver->trainer);
    double asked = config->save_seconds;
    if (saver->wait_seconds > 0.0)
        return saver->wait_seconds;
    if (saver->is_delayed)
        return FIRST_WAIT;
    if (asked > 0.0)
        return asked;
    if (asked < 0.0 || config->save_every > 0)
        return HUGE_VAL;
    return fmax(config_default_number("save_seconds"), SAVE_SHARE * saver->cost_seconds);
}

uint64_t run_saver_until_step(const struct run_saver *saver)
{
    uint32_t every = vkn_trainer_config(saver->trainer)->save_every;
    uint64_t step = vkn_trainer_step(saver->trainer);
    return every > 0 && saver->wait_seconds <= 0.0 && !saver->is_delayed
               ? (step / every + 1) * every
               : UINT32_MAX;
}

double run_saver_seconds(const struct run_saver *saver)
{
    double left = save_interval(saver) - (base_seconds() - saver->last_try);
    return fmax(left, 1e-3);
}

/* ---- saving -------------------------------------------------------------------------------- */

/* Writes the checkpoint. VKN_BAD_INPUT becomes VKN_ERROR: a path that was writable at first is no
 * mistake of the command line. */
static vkn_status write_checkpoint(struct run_saver *saver)
{
    vkn_status status = run_lock_check(saver->lock);
    if (status != VKN_OK) {
        saver->exists = saver->written_here = false;
        return status;
    }
    status = vkn_trainer_save(saver->trainer, saver->path);
    if (status == VKN_BAD_INPUT)
        status = VKN_ERROR;
    return status;
}

static void note_success(struct run_saver *saver)
{
    unsigned long long step = saver->step = vkn_trainer_step(saver->trainer);
    saver->exists = saver->written_here = true;
    if (saver->wait_seconds > 0.0) {
        report_progress_pause(saver->progress);
        base_log(BASE_LOG_INFO, "step %llu: the checkpoint is saved again", step);
    }
    saver->wait_seconds = 0.0;
    if (keep(saver) == VKN_OK)
        return;
    report_progress_pause(saver->progress);
    base_log(BASE_LOG_WARNING, "step %llu: %s; only " RUN_CHECKPOINT " has it", step,
             vkn_last_error());
}

static vkn_status save(struct run_saver *saver)
{
    double began = base_seconds();
    vkn_status status = write_checkpoint(saver);
    saver->last_try = base_seconds();
    saver->cost_seconds = saver->last_try - began;
    if (status != VKN_OK)
        return status;
    note_success(saver);
    train_add_event(saver->trainer, "checkpoint", began);
    return VKN_OK;
}

vkn_status run_saver_save(struct run_saver *saver)
{
    uint64_t step = vkn_trainer_step(saver->trainer);
    vkn_status status = train_check_failed_save(saver->trainer, save(saver));
    if (status == VKN_OK || status == VKN_NO_DEVICE || train_ended_early(saver->trainer))
        return status;
    report_progress_pause(saver->progress);
    saver->wait_seconds =
        saver->wait_seconds > 0.0 ? fmin(2.0 * saver->wait_seconds, MOST_WAIT) : FIRST_WAIT;
    base_log(BASE_LOG_WARNING,
             "step %llu: %s; the checkpoint is not saved, training goes on and tries again in %.1f "
             "s",
             (unsigned long long)step, vkn_last_error(), saver->wait_seconds);
    return VKN_OK;
}

/* Delays a save: weights after skipped or bad steps must not replace the last good checkpoint. */
static vkn_status delay_save(struct run_saver *saver)
{
    if (!saver->is_delayed) {
        report_progress_pause(saver->progress);
        base_log(BASE_LOG_INFO,
                 "step %llu: the last steps were skipped or much worse than before: no checkpoint "
                 "is saved until the training recovers",
                 (unsigned long long)vkn_trainer_step(saver->trainer));
    }
    saver->is_delayed = true;
    saver->last_try = base_seconds();
    return VKN_OK;
}

vkn_status run_saver_save_if_due(struct run_saver *saver, uint64_t until)
{
    bool due = vkn_trainer_step(saver->trainer) >= until ||
               base_seconds() - saver->last_try >= save_interval(saver);
    if (!due)
        return VKN_OK;
    if (!train_is_sound(saver->trainer))
        return delay_save(saver);
    saver->is_delayed = false;
    return run_saver_save(saver);
}

/* Sets the error of a failed training, which is not saved: the last checkpoint is better. */
static void explain_early_end(const struct run_saver *saver, vkn_status status, const char *message)
{
    if (saver->exists)
        base_fail(status,
                  "%s. The last good checkpoint is %s, of step %llu; go on from it with such a "
                  "change: vknerf train --resume %s --set KEY=VALUE",
                  message, saver->path, (unsigned long long)saver->step, saver->folder);
    else
        base_fail(status, "%s. Nothing is saved: no checkpoint was due before", message);
}

/* Sets the error of a save that has failed: its message, which step is lost, and what to do. */
static vkn_status explain_lost_step(const struct run_saver *saver, vkn_status status)
{
    char *message = base_format("%s", vkn_last_error());
    unsigned long long step = vkn_trainer_step(saver->trainer);
    if (message && train_ended_early(saver->trainer))
        explain_early_end(saver, status, message);
    else if (message && saver->exists)
        base_fail(status,
                  "%s; step %llu is not saved, but step %llu is: go on with: vknerf train --resume "
                  "%s",
                  message, step, (unsigned long long)saver->step, saver->folder);
    else if (message && !train_is_sound(saver->trainer))
        base_fail(status, "%s; step %llu is not saved, and there is no earlier checkpoint", message,
                  step);
    else if (message)
        base_fail(status,
                  "%s; step %llu is not saved, and there is no earlier checkpoint: make sure that "
                  "%s can be written, and train again",
                  message, step, saver->folder);
    free(message);
    return status;
}

vkn_status run_saver_finish(struct run_saver *saver)
{
    bool saved = saver->written_here && saver->step == vkn_trainer_step(saver->trainer);
    if (saved && run_lock_check(saver->lock) == VKN_OK)
        return VKN_OK;
    vkn_status status = train_check_failed_save(saver->trainer, save(saver));
    return status == VKN_OK ? VKN_OK : explain_lost_step(saver, status);
}

/* ---- a run that failed --------------------------------------------------------------------- */

/* Saves the training after another failure, unless its device is lost, and sets the error. */
static void explain_failure(struct run_saver *saver, vkn_status status, const char *message)
{
    if (vkn_trainer_step(saver->trainer) == 0)
        base_fail(status, "%s", message);
    else if (!train_device_is_lost(saver->trainer) && run_saver_finish(saver) == VKN_OK)
        base_fail(status, "%s; step %llu is saved, go on with: vknerf train --resume %s", message,
                  (unsigned long long)saver->step, saver->folder);
    else if (saver->exists)
        base_fail(status, "%s; the last saved step is %llu, go on with: vknerf train --resume %s",
                  message, (unsigned long long)saver->step, saver->folder);
    else
        base_fail(status, "%s; nothing is saved", message);
}

vkn_status run_saver_fail(struct run_saver *saver, vkn_status status)
{
    if (status == VKN_BAD_INPUT && run_lock_check(saver->lock) != VKN_OK)
        status = VKN_ERROR; /* the run directory has gone, not the input */
    char *message = base_format("%s", vkn_last_error());
    const char *text = message ? message : "out of memory";
    if (train_ended_early(saver->trainer))
        explain_early_end(saver, status, text);
    else
        explain_failure(saver, status, text);
    free(message);
    return status;
}
