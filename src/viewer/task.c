/* Runs a command of this program for pages, one at a time: a video of a path, or an export. The
 * command is a process of its own, so that no failure of it ends the viewer or a training. */
#define _GNU_SOURCE
#include "viewer/internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "base/base.h"

#define POLL_SECONDS  0.1
/* A checkpoint that was requested less than this many seconds ago is recent enough. */
#define FRESH_SECONDS 10.0

static const char *const state_names[] = {"none", "running", "done", "failed", "cancelled"};

static void clear(struct task *task)
{
    for (size_t i = 0; i < task->argument_count; i++)
        free(task->arguments[i]);
    free(task->file);
    free(task->command);
    *task = (struct task){0};
}

static bool must_end(void *context)
{
    struct viewer *viewer = context;
    pthread_mutex_lock(&viewer->lock);
    bool end = viewer->task.cancelled || viewer->ending;
    pthread_mutex_unlock(&viewer->lock);
    return end;
}

/* ---- output of the command ------------------------------------------------------------------- */

/* Handles "progress 3 24 rendering" and, as any other line, results and errors. */
static void read_line(struct task *task)
{
    unsigned long long done = 0, total = 0;
    int at = 0;
    task->line[task->line_size] = 0;
    if (sscanf(task->line, "progress %llu %llu %n", &done, &total, &at) == 2 && at > 0) {
        snprintf(task->what, sizeof task->what, "%s", task->line + at);
        task->share = total > 0 ? fmin((double)done / (double)total, 1) : 0;
    } else if (task->line_size > 0) {
        memcpy(task->message, task->line, sizeof task->message);
        vkn_clean_line(task->message);
    }
    task->line_size = 0;
}

static void read_output(void *context, const char *data, size_t size)
{
    struct viewer *viewer = context;
    struct task *task = &viewer->task;
    pthread_mutex_lock(&viewer->lock);
    for (size_t i = 0; i < size; i++)
        if (data[i] == '\n')
            read_line(task);
        else if (task->line_size + 1 < sizeof task->line)
            task->line[task->line_size++] = data[i];
    pthread_mutex_unlock(&viewer->lock);
}

/* ---- the checkpoint -------------------------------------------------------------------------- */

/* Returns a number that changes when the checkpoint is replaced; 0: there is none. */
static uint64_t checkpoint_version(const char *file)
{
    struct stat now;
    if (stat(file, &now) != 0)
        return 0;
    return (uint64_t)now.st_ino ^ ((uint64_t)now.st_mtim.tv_sec << 20) ^
           (uint64_t)now.st_mtim.tv_nsec;
}

/* Requests a checkpoint of the training in this process unless there is a recent one. Returns
 * whether one must be waited for. */
static bool request_checkpoint(struct viewer *viewer, uint64_t version)
{
    pthread_mutex_lock(&viewer->lock);
    double now = viewer_now();
    bool trains = viewer->state >= STATE_TRAINING && viewer->state <= STATE_SAVING;
    bool recent = viewer->saved_at > 0 && now - viewer->saved_at < FRESH_SECONDS;
    if (trains && !recent) {
        viewer->saved_at = now;
        viewer->save_requested = true;
        pthread_cond_signal(&viewer->wake_renderer);
    }
    pthread_mutex_unlock(&viewer->lock);
    return trains && (!recent || version == 0);
}

static bool is_training(struct viewer *viewer)
{
    pthread_mutex_lock(&viewer->lock);
    bool trains = viewer->state >= STATE_TRAINING && viewer->state <= STATE_ENDING;
    pthread_mutex_unlock(&viewer->lock);
    return trains;
}

/* Lets a training in this process save its present field. */
static void save_field(struct viewer *viewer)
{
    pthread_mutex_lock(&viewer->lock);
    char *file = name_path(viewer, "checkpoint.safetensors", "", "");
    pthread_mutex_unlock(&viewer->lock);
    uint64_t version = file ? checkpoint_version(file) : 0;
    if (file && request_checkpoint(viewer, version))
        while (checkpoint_version(file) == version && is_training(viewer) && !must_end(viewer))
            nanosleep(&(struct timespec){.tv_nsec = (long)(POLL_SECONDS * 1e9)}, NULL);
    free(file);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Sets the result. Called under the lock. */
static void end_task(struct viewer *viewer, int error, const char *how)
{
    struct task *task = &viewer->task;
    struct stat made;
    read_line(task);
    task->seconds = viewer_now() - task->began;
    task->state = TASK_FAILED;
    if (task->cancelled)
        task->state = TASK_CANCELLED;
    else if (error != 0)
        snprintf(task->message, sizeof task->message, "%s: %s", task->arguments[0],
                 strerror(error));
    else if (how[0])
        snprintf(task->what, sizeof task->what, "%s", how);
    else if (stat(task->file, &made) == 0)
        task->state = TASK_DONE;
    task->size = task->state == TASK_DONE ? (uint64_t)made.st_size : 0;
}

static void *run_task(void *context)
{
    struct viewer *viewer = context;
    struct task *task = &viewer->task; /* its arguments do not change while the thread runs */
    const struct base_program program = {.path = task->arguments[0],
                                         .arguments = task->arguments,
                                         .errors = -1,
                                         .keep = -1,
                                         .output = read_output,
                                         .must_end = must_end,
                                         .context = viewer};
    char how[BASE_HOW_SIZE] = "";
    save_field(viewer);
    int error = mkdir(task->folder, 0777) == 0 || errno == EEXIST ? 0 : errno;
    if (error == 0 && !must_end(viewer))
        error = base_program_run(&program, how);
    pthread_mutex_lock(&viewer->lock);
    end_task(viewer, error, how);
    pthread_mutex_unlock(&viewer->lock);
    return NULL;
}

void task_stop(struct viewer *viewer)
{
    pthread_mutex_lock(&viewer->lock);
    viewer->task.cancelled = viewer->task.state == TASK_RUNNING;
    pthread_mutex_unlock(&viewer->lock);
    if (viewer->task.has_thread)
        pthread_join(viewer->task.thread, NULL);
    clear(&viewer->task);
}

/* Starts the command in `next`, whose memory it takes. Returns the HTTP status. */
static unsigned start(struct viewer *viewer, struct task *next)
{
    struct task *task = &viewer->task;
    if (task->has_thread)
        pthread_join(task->thread, NULL); /* has ended: it sets the state at last */
    clear(task);
    *task = *next;
    task->state = TASK_RUNNING;
    task->number = ++viewer->last_task;
    task->began = viewer_now();
    snprintf(task->what, sizeof task->what, "starting");
    task->has_thread = pthread_create(&task->thread, NULL, run_task, viewer) == 0;
    if (!task->has_thread)
        clear(task);
    return task->has_thread ? 200 : 500;
}

/* ---- answers --------------------------------------------------------------------------------- */

struct answer task_state_answer(const struct viewer *viewer)
{
    const struct task *task = &viewer->task;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "state", state_names[task->state]);
    if (task->state == TASK_NONE)
        return answer_json(200, json);
    cJSON_AddNumberToObject(json, "number", (double)task->number);
    cJSON_AddStringToObject(json, "kind", task->kind);
    answer_add_text(json, "command", task->command);
    answer_add_text(json, "name", task->name);
    answer_add_text(json, "file", task->file);
    answer_add_text(json, "what", task->what);
    answer_add_text(json, "message", task->message);
    cJSON_AddNumberToObject(json, "share", task->share);
    cJSON_AddNumberToObject(
        json, "seconds", task->state == TASK_RUNNING ? viewer_now() - task->began : task->seconds);
    cJSON_AddNumberToObject(json, "size", (double)task->size);
    return answer_json(200, json);
}

struct answer task_answer(struct viewer *viewer, const char *body)
{
    cJSON *json = body ? cJSON_Parse(body) : NULL;
    char problem[VIEWER_MESSAGE] = "";
    struct task next = {0};
    unsigned code = 400;
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "cancel"))) {
        code = 200;
        viewer->task.cancelled = viewer->task.state == TASK_RUNNING;
    } else if (viewer->task.state == TASK_RUNNING) {
        code = 409;
        snprintf(problem, sizeof problem, "another command runs: cancel it, or wait for its end");
    } else if (!viewer->folder) {
        code = 409;
        snprintf(problem, sizeof problem,
                 "a checkpoint without a run folder has no folder for results");
    } else if (task_command(viewer, json, &next, problem)) {
        code = start(viewer, &next);
    } else {
        clear(&next);
    }
    cJSON_Delete(json);
    if (code == 500)
        return answer_error(500, "the command cannot be started");
    return code == 200 ? task_state_answer(viewer) : answer_error(code, problem);
}
