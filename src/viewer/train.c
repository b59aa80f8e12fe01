/* Serves `vknerf train --view`: renders in callbacks of the training, in a share of its time. */
#include "viewer/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rendering has a share of the time, which pages set. A picture of a moving camera is sized so that
 * FRAME_RATE of them fit into the share. Fewer steps per submission cost time beside the share. */
#define FRAME_RATE    4.0
#define MOST_MOVING   0.125 /* seconds, as in `vknerf view` */
/* Share of the share when no camera has moved for REST_SECONDS. */
#define REST_SHARE    0.5
#define REST_SECONDS  5.0
#define LEAST_CREDIT  0.05 /* seconds that accumulate while no page asks for a frame, at least */
#define MOST_SECONDS  0.25 /* of rendering between two submissions, whatever the share, about */
#define READY_SECONDS 0.1  /* until the next callback while a page is open */
#define SHARE_SECONDS 5.0  /* interval that the reported share is measured over */
#define POSES_SECONDS 1.0  /* between reads of refined poses */

/* Sets the limits for a share of the time; 1 while the training is paused. */
static void set_share(struct viewer *viewer, double share)
{
    struct renderers *renderers = &viewer->renderers;
    renderers->time_share = share;
    renderers->moving_seconds = renderers->strip_seconds = fmin(share / FRAME_RATE, MOST_MOVING);
    viewer->budget.time.rate = share;
    viewer->budget.time.most = fmax(LEAST_CREDIT, renderers->moving_seconds);
}

/* Applies the share that pages have set. The sizes of pictures do not depend on the rest. */
static void update_share(struct viewer *viewer)
{
    pthread_mutex_lock(&viewer->lock);
    double share = viewer->time_share;
    bool rests = viewer_now() - viewer->moved_at > REST_SECONDS;
    pthread_mutex_unlock(&viewer->lock);
    set_share(viewer, fmin(share, 0.999)); /* 1: not training, see struct renderers */
    if (rests)
        viewer->budget.time.rate *= REST_SHARE;
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

/* Returns a limit of the training; 0: none. */
static double limit_of(const vkn_trainer *trainer, const char *key)
{
    char *text = NULL;
    double limit =
        vkn_config_get(vkn_trainer_config(trainer), key, &text) == VKN_OK ? strtod(text, NULL) : 0;
    vkn_free(text);
    return limit;
}

static void opened(void *context, vkn_trainer *trainer, const char *folder, const char *scene)
{
    struct viewer *viewer = context;
    struct vkn_communication communication = {.size = sizeof communication};
    char *folder_copy = strdup(folder);
    viewer->renderers.trainer = trainer;
    viewer->budget.time = (struct allowance){0};
    begin_share(viewer);
    update_share(viewer);
    if (vkn_trainer_communication(trainer, &communication) != VKN_OK)
        communication.ranks = 1;
    double limits[2] = {limit_of(trainer, "steps"), limit_of(trainer, "seconds")};
    pthread_mutex_lock(&viewer->lock);
    viewer->callbacks_opened = true;
    viewer->activity.what[0] = 0;
    viewer->folder = folder_copy;
    viewer->step_limit = limits[0];
    viewer->second_limit = limits[1];
    viewer->step = vkn_trainer_step(trainer);
    viewer->seconds = vkn_trainer_seconds(trainer);
    viewer->can_pause =
        communication.ranks <= 1 || communication.ranks == communication.ranks_per_device;
    pthread_mutex_unlock(&viewer->lock);
    if (facts_find(viewer, folder, scene, VKN_SCENE_AUTO, vkn_trainer_config(trainer)) != VKN_OK)
        viewer_set_message(viewer, "%s", vkn_last_error());
    viewer_set_state(viewer, STATE_TRAINING);
}

static double due(void *context)
{
    struct viewer *viewer = context;
    double now = viewer_now(), wait = HUGE_VAL;
    update_share(viewer);
    double credit = allowance_left(&viewer->budget.time, now);
    pthread_mutex_lock(&viewer->lock);
    if (viewer->pause_requested || viewer->save_requested)
        wait = 0;
    else if (clients_present(viewer, now))
        wait = READY_SECONDS;
    /* Waiting pages are served as soon as the rendering time has credit again. */
    if (wait > 0 && clients_waiting(viewer))
        wait = fmax(0, -credit / viewer->budget.time.rate);
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
    if (!is_paused(viewer))
        return;
    set_share(viewer, 1);
    do {
        if (frames_work(viewer) <= 0)
            viewer_wait_for_request(viewer, 0.1);
    } while (is_paused(viewer));
    update_share(viewer);
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
    while (viewer->budget.time.credit >= 0 && seconds > 0 && viewer_now() - began < MOST_SECONDS) {
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
    viewer->state = STATE_ENDING;
    viewer->step = vkn_trainer_step(trainer);
    viewer->seconds = vkn_trainer_seconds(trainer);
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
