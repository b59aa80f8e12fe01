/* Starts and stops a viewer. */
#include "viewer/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Requests that change something: per second, and at once. */
#define COMMANDS         2.0
#define COMMANDS_AT_ONCE 20.0
/* The worker's time for photographs during a training: share of one thread, seconds at once. */
#define READING_SHARE    0.25
#define READING_AT_ONCE  1.0

const char *viewer_address(const struct viewer *viewer)
{
    return viewer->address;
}

bool viewer_is_open(const struct viewer *viewer)
{
    return viewer->is_open;
}

/* The condition variables use the monotonic clock. */
static bool init_locks(struct viewer *viewer)
{
    pthread_condattr_t attributes;
    bool made =
        pthread_mutex_init(&viewer->lock, NULL) == 0 && pthread_condattr_init(&attributes) == 0;
    if (!made)
        return false;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    made = pthread_cond_init(&viewer->wake_renderer, &attributes) == 0 &&
           pthread_cond_init(&viewer->wake_worker, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return made;
}

static bool start_threads(struct viewer *viewer, const struct viewer_params *params, char *message)
{
    int descriptor = address_listen(viewer, params, message);
    if (descriptor < 0)
        return false;
    if (!server_start(viewer, descriptor, message)) {
        close(descriptor);
        return false;
    }
    if (worker_start(viewer))
        return true;
    snprintf(message, VIEWER_MESSAGE, "the viewer's thread cannot be started");
    return false;
}

vkn_status viewer_start(const struct viewer_params *params, struct viewer **viewer,
                        char message[VIEWER_MESSAGE])
{
    sigset_t all, before;
    *viewer = NULL;
    if (!libraries_load(message, VIEWER_MESSAGE))
        return VKN_ERROR;
    struct viewer *v = calloc(1, sizeof *v);
    if (!v || !init_locks(v)) {
        snprintf(message, VIEWER_MESSAGE, "out of memory");
        free(v);
        return VKN_ERROR;
    }
    v->stop = params->stop;
    v->program = params->program;
    v->options = params->options;
    v->renderers.time_share = 1;
    v->time_share = VIEWER_SHARE;
    v->psnr = v->ssim = NAN;
    v->commands = (struct allowance){COMMANDS, COMMANDS_AT_ONCE, COMMANDS_AT_ONCE, viewer_now()};
    v->reading = (struct allowance){READING_SHARE, READING_AT_ONCE, READING_AT_ONCE, viewer_now()};
    train_set_callbacks(v);
    /* Threads started here inherit the mask: they receive no signals. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool started = start_threads(v, params, message);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started)
        viewer_stop(&v);
    *viewer = v;
    return started ? VKN_OK : VKN_BAD_INPUT;
}

/* ---- the end of a training ------------------------------------------------------------------- */

void viewer_set_result(struct viewer *viewer, const struct viewer_result *result)
{
    if (!viewer)
        return;
    pthread_mutex_lock(&viewer->lock);
    snprintf(viewer->result, sizeof viewer->result, "%s", result->text);
    snprintf(viewer->command, sizeof viewer->command, "%s", result->command ? result->command : "");
    vkn_clean_line(viewer->result);
    viewer->psnr = result->psnr;
    viewer->ssim = result->ssim;
    viewer->stays = result->stays;
    viewer->outcome = result->status == VKN_OK            ? STATE_FINISHED
                      : result->status == VKN_INTERRUPTED ? STATE_STOPPED
                                                          : STATE_FAILED;
    if (viewer->state == STATE_ENDING && !result->stays)
        viewer->state = viewer->outcome;
    bool watched = viewer->state_polled_at > 0 &&
                   viewer_now() - viewer->state_polled_at < VIEWER_PRESENT_SECONDS;
    pthread_mutex_unlock(&viewer->lock);
    if (watched && !result->stays)
        nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 500000000}, NULL);
}

/* The worker answers parked requests first: libmicrohttpd must not stop suspended connections. */
void viewer_stop(struct viewer **viewer)
{
    struct viewer *v = viewer ? *viewer : NULL;
    if (!v)
        return;
    worker_stop(v);
    server_stop(v);
    task_stop(v); /* no page can start another one */
    renderers_close(&v->renderers);
    for (size_t i = 0; i < VIEWER_CLIENTS; i++)
        refine_free(&v->clients[i].refinement);
    vkn_scene_close(&v->scene);
    curves_free(&v->curves);
    pthread_cond_destroy(&v->wake_renderer);
    pthread_cond_destroy(&v->wake_worker);
    pthread_mutex_destroy(&v->lock);
    free(v->facts);
    free(v->poses);
    free(v->folder);
    free(v->run);
    free(v);
    *viewer = NULL;
}

bool viewer_has_trained(const struct viewer *viewer)
{
    return viewer && viewer->callbacks_opened;
}
