/* Serves `vknerf train --view`: renders in callbacks of the training, in a share of its time. */
#include "viewer/internal.h"

#include <math.h>
#include <string.h>

/* Share of the time for rendering. Fewer steps per submission cost time too: up to 10 % in all. */
#define SHARE          0.08
#define MOST_CREDIT    0.05  /* seconds that accumulate while no page asks for a frame */
#define MOVING_SECONDS 0.016 /* 5 frames per second within SHARE */
#define TILE_SECONDS   0.016
#define READY_SECONDS  0.1 /* until the next callback while a page is open */
#define SHARE_SECONDS  5.0 /* interval that the reported share is measured over */
#define POSES_SECONDS  1.0 /* between reads of refined poses */

/* Limits while the training is paused, as in `vknerf view`: the viewer has all of the time. */
#define PAUSED_MOVING (1.0 / 12)
#define PAUSED_TILE   0.08

static void set_time_limits(struct viewer *viewer, bool paused)
{
    struct renderers *renderers = &viewer->renderers;
    renderers->time_share = paused ? 1 : SHARE;
    renderers->moving_seconds = paused ? PAUSED_MOVING : MOVING_SECONDS;
    renderers->tile_seconds = paused ? PAUSED_TILE : TILE_SECONDS;
}

/* ---- the share ------------------------------------------------------------------------------- */

static void begin_share(struct viewer *viewer)
{
    double now = viewer_now();
    viewer->budget.time.refilled_at = viewer->budget.reported_at = now;
    viewer->budget.rendering_time = 0;
}

static void count_rendering_time(struct viewer *viewer, double seconds)
{
    viewer->budget.time.credit -= seconds;
    viewer->budget.rendering_time += seconds;
}

static void report_share(struct viewer *viewer, double now)
{
    double passed = now - viewer->budget.reported_at;
    if (passed < SHARE_SECONDS)
        return;
    pthread_mutex_lock(&viewer->lock);
    viewer->used_share = fmin(viewer->budget.rendering_time / passed, 1);
    pthread_mutex_unlock(&viewer->lock);
    viewer->budget.rendering_time = 0;
    viewer->budget.reported_at = now;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static void opened(void *context, vkn_trainer *trainer, const char *folder, const char *scene)
{
    struct viewer *viewer = context;
    struct vkn_communication communication = {.size = sizeof communication};
    char *folder_copy = strdup(folder);
    viewer->renderers.trainer = trainer;
    viewer->budget.time = (struct allowance){.rate = SHARE, .most = MOST_CREDIT};
    begin_share(viewer);
    set_time_limits(viewer, false);
    if (vkn_trainer_communication(trainer, &communication) != VKN_OK)
        communication.ranks = 1;
    pthread_mutex_lock(&viewer->lock);
    viewer->state = STATE_TRAINING;
    viewer->folder = folder_copy;
    viewer->step = vkn_trainer_step(trainer);
    viewer->seconds = vkn_trainer_seconds(trainer);
    viewer->can_pause =
        communication.ranks <= 1 || communication.ranks == communication.ranks_per_device;
    pthread_mutex_unlock(&viewer->lock);
    if (facts_find(viewer, folder, scene, VKN_SCENE_AUTO, vkn_trainer_config(trainer)) != VKN_OK)
        viewer_set_message(viewer, "%s", vkn_last_error());
}

static double due(void *context)
{
    struct viewer *viewer = context;
    double now = viewer_now(), wait = HUGE_VAL, credit = allowance_left(&viewer->budget.time, now);
    pthread_mutex_lock(&viewer->lock);
    if (viewer->pause_requested || viewer->save_requested)
        wait = 0;
    else if (clients_present(viewer, now))
        wait = READY_SECONDS;
    /* Waiting pages are served as soon as the rendering time has credit again. */
    if (wait > 0 && clients_waiting(viewer))
        wait = fmax(0, -credit / SHARE);
    pthread_mutex_unlock(&viewer->lock);
    return wait;
}

static void update_progress(struct viewer *viewer, const vkn_trainer *trainer)
{
    uint64_t step = vkn_trainer_step(trainer);
    bool trained = step != viewer->step;
    pthread_mutex_lock(&viewer->lock);
    viewer->seconds = vkn_trainer_seconds(trainer);
    if (viewer->state == STATE_SAVING)
        viewer->saved_at = viewer_now(); /* the requested checkpoint has been written */
    pthread_mutex_unlock(&viewer->lock);
    if (trained)
        viewer_new_model(viewer, step);
}

/* Returns and clears the request of a checkpoint. */
static bool take_save(struct viewer *viewer)
{
    pthread_mutex_lock(&viewer->lock);
    bool save = viewer->save_requested;
    viewer->save_requested = false;
    if (save)
        viewer->state = STATE_SAVING;
    pthread_mutex_unlock(&viewer->lock);
    return save;
}

static bool is_paused(struct viewer *viewer)
{
    pthread_mutex_lock(&viewer->lock);
    bool paused = viewer->pause_requested && !__atomic_load_n(viewer->stop, __ATOMIC_RELAXED);
    bool save = viewer->save_requested;
    viewer->state = paused ? STATE_PAUSED : STATE_TRAINING;
    pthread_mutex_unlock(&viewer->lock);
    return paused && !save; /* the callback returns to save; the next one continues the pause */
}

static void serve_while_paused(struct viewer *viewer)
{
    set_time_limits(viewer, true);
    while (is_paused(viewer))
        if (frames_work(viewer) <= 0)
            viewer_wait_for_request(viewer, 0.1);
    set_time_limits(viewer, false);
    begin_share(viewer);
}

static void update_poses(struct viewer *viewer)
{
    double began = viewer_now();
    if (began - viewer->poses_read_at < POSES_SECONDS)
        return;
    poses_read(viewer);
    viewer->poses_read_at = viewer_now();
    count_rendering_time(viewer, viewer->poses_read_at - began);
}

static vkn_status between_steps(void *context, vkn_trainer *trainer, bool *save)
{
    struct viewer *viewer = context;
    double began = viewer_now(), seconds = 1;
    update_progress(viewer, trainer);
    update_poses(viewer);
    while (viewer->budget.time.credit >= 0 && seconds > 0) {
        seconds = frames_work(viewer);
        count_rendering_time(viewer, seconds);
    }
    allowance_left(&viewer->budget.time, viewer_now());
    report_share(viewer, began);
    serve_while_paused(viewer);
    *save = take_save(viewer);
    return VKN_OK;
}

static void closed(void *context, vkn_trainer *trainer, vkn_status status)
{
    struct viewer *viewer = context;
    if (status == VKN_OK)
        poses_read(viewer);
    pthread_mutex_lock(&viewer->lock);
    viewer->state = status == VKN_OK ? STATE_FINISHED : STATE_STOPPED;
    viewer->step = vkn_trainer_step(trainer);
    viewer->seconds = vkn_trainer_seconds(trainer);
    clients_refuse_waiting(viewer, clients_after_training(viewer));
    pthread_mutex_unlock(&viewer->lock);
    renderers_close(&viewer->renderers);
    viewer->renderers.trainer = NULL;
}

void train_set_callbacks(struct viewer *viewer)
{
    viewer->callbacks = (struct vkn_train_callbacks){.size = sizeof viewer->callbacks,
                                                     .context = viewer,
                                                     .opened = opened,
                                                     .due = due,
                                                     .between_steps = between_steps,
                                                     .closed = closed};
}

const struct vkn_train_callbacks *viewer_callbacks(struct viewer *viewer)
{
    return &viewer->callbacks;
}
