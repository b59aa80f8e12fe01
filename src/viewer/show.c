/* Serves `vknerf view`, and `train --view` after the training: shows a run on disk and reloads its
 * checkpoint when it changes. */
#define _GNU_SOURCE
#include "viewer/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOVING_SECONDS 0.125
#define STRIP_SECONDS  0.08
#define CHECK_SECONDS  0.5 /* between checks of the checkpoint's file */

/* Identifies the content of a file. */
struct version {
    uint64_t inode, size;
    int64_t seconds, nanoseconds; /* when it was written */
};

struct show {
    struct viewer *viewer;
    const struct viewer_run *run;
    char *checkpoint;
    struct version version;
    vkn_context *context;
};

static bool check_file(const char *file, struct version *version)
{
    struct stat now;
    memset(version, 0, sizeof *version);
    if (stat(file, &now) != 0)
        return false;
    version->inode = now.st_ino;
    version->size = (uint64_t)now.st_size;
    version->seconds = now.st_mtim.tv_sec;
    version->nanoseconds = now.st_mtim.tv_nsec;
    return true;
}

static bool is_folder(const char *path)
{
    struct stat now;
    return stat(path, &now) == 0 && S_ISDIR(now.st_mode);
}

/* Finds the checkpoint and the run's folder, unless a training has set the folder; a run given as a
 * checkpoint has no folder. */
static vkn_status find_files(struct show *show)
{
    const char *run = show->run->run;
    struct viewer *viewer = show->viewer;
    bool is_directory = is_folder(run);
    if (asprintf(&show->checkpoint, is_directory ? "%s/checkpoint.safetensors" : "%s", run) < 0) {
        show->checkpoint = NULL;
        return VKN_ERROR;
    }
    if (viewer->folder) /* this thread has set it */
        return VKN_OK;
    char *folder_copy = is_directory ? strdup(run) : NULL;
    pthread_mutex_lock(&viewer->lock);
    viewer->folder = folder_copy;
    pthread_mutex_unlock(&viewer->lock);
    return is_directory && !folder_copy ? VKN_ERROR : VKN_OK;
}

/* Loads the checkpoint; keeps the present model after a failure. */
static vkn_status load(struct show *show)
{
    struct renderers *renderers = &show->viewer->renderers;
    vkn_renderer *renderer = NULL;
    (void)check_file(show->checkpoint,
                     &show->version); /* before loading, so that a change meanwhile is noticed */
    vkn_status status =
        vkn_renderer_open(show->context, show->checkpoint, show->run->precision, &renderer);
    if (status != VKN_OK)
        return status;
    renderers_close(renderers);
    renderers->color = renderer;
    viewer_new_model(show->viewer, vkn_renderer_step(renderer));
    return VKN_OK;
}

static void reload_if_changed(struct show *show)
{
    struct version now;
    bool exists = check_file(show->checkpoint, &now);
    if (!exists || memcmp(&now, &show->version, sizeof now) == 0)
        return;
    bool loaded = load(show) == VKN_OK;
    viewer_set_message(show->viewer, "%s", loaded ? "" : vkn_last_error());
    if (loaded)
        poses_read(show->viewer);
}

static vkn_status open_run(struct show *show)
{
    const struct viewer_run *run = show->run;
    struct renderers *renderers = &show->viewer->renderers;
    const struct vkn_context_params device = {
        .size = sizeof device,
        .device = run->job->device,
        .shader_dir = run->job->shader_dir,
        .low_priority = run->job->low_priority,
        .progress = viewer_progress,
        .progress_context = show->viewer,
    };
    vkn_status status = find_files(show);
    viewer_begin_activity(show->viewer, "opening the device");
    if (status == VKN_OK)
        status = vkn_context_create(&device, &show->context);
    if (status != VKN_OK)
        return status;
    renderers->context = show->context;
    renderers->checkpoint = show->checkpoint;
    renderers->precision = run->precision;
    renderers->moving_seconds = MOVING_SECONDS;
    renderers->strip_seconds = STRIP_SECONDS;
    renderers->time_share = 1;
    viewer_begin_activity(show->viewer, "loading the checkpoint, compiling pipelines");
    status = load(show);
    viewer_begin_activity(show->viewer, "opening the scene");
    if (status == VKN_OK && !show->viewer->facts)
        status = facts_find(show->viewer, run->run,
                            run->scene ? run->scene : vkn_renderer_scene_path(renderers->color),
                            run->format, vkn_renderer_config(renderers->color));
    return status;
}

/* Renders frames from here on. */
static void begin_frames(struct viewer *viewer)
{
    poses_read(viewer);
    viewer_begin_activity(viewer, NULL);
    viewer_set_state(viewer, viewer->stays ? viewer->outcome : STATE_VIEWING);
}

static void serve(struct show *show)
{
    double last_check = viewer_now();
    while (!__atomic_load_n(show->viewer->stop, __ATOMIC_RELAXED)) {
        double now = viewer_now();
        if (now - last_check > CHECK_SECONDS) {
            reload_if_changed(show);
            last_check = viewer_now();
        }
        if (frames_work(show->viewer) <= 0)
            viewer_wait_for_request(show->viewer, 0.1);
    }
}

vkn_status viewer_show(struct viewer *viewer, const struct viewer_run *run,
                       char message[VIEWER_MESSAGE])
{
    struct show show = {.viewer = viewer, .run = run};
    vkn_status status = open_run(&show);
    if (status == VKN_OK) {
        begin_frames(viewer);
        serve(&show);
    } else {
        snprintf(message, VIEWER_MESSAGE, "%s", vkn_last_error());
    }
    renderers_close(&viewer->renderers);
    vkn_context_destroy(&show.context);
    pthread_mutex_lock(&viewer->lock);
    viewer->ending = true;
    pthread_mutex_unlock(&viewer->lock);
    free(show.checkpoint);
    return status;
}
