/* Runs the worker's thread, which reads files and ends waits that exceed their time limit. */
#define _GNU_SOURCE
#include "viewer/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLL_SECONDS 0.25 /* between reads of the curves; longest wait for a job */

bool worker_enqueue(struct exchange *exchange, enum job job)
{
    struct viewer *viewer = exchange->viewer;
    struct exchange **end = &viewer->jobs;
    if (viewer->job_count >= VIEWER_JOBS)
        return false;
    while (*end)
        end = &(*end)->next;
    *end = exchange;
    exchange->next = NULL;
    exchange->job = job;
    viewer->job_count++;
    answer_park(exchange);
    pthread_cond_signal(&viewer->wake_worker);
    return true;
}

static struct exchange *next_job(struct viewer *viewer)
{
    struct exchange *exchange = viewer->jobs;
    if (exchange) {
        viewer->jobs = exchange->next;
        viewer->job_count--;
    }
    return exchange;
}

/* Returns whether a job may start: photographs get a limited share of a training's time. */
static bool may_read(struct viewer *viewer, double now)
{
    return allowance_left(&viewer->reading, now) > 0 || viewer->state != STATE_TRAINING;
}

/* Runs a job without the caller's lock: a parked exchange stays valid. */
static void do_job(struct viewer *viewer, struct exchange *exchange)
{
    const struct photo_request photo = exchange->photo;
    const enum job job = exchange->job;
    double began = viewer_now();
    pthread_mutex_unlock(&viewer->lock);
    const struct answer answer = job == JOB_PHOTO  ? photo_answer(viewer, &photo)
                                 : job == JOB_PATH ? path_answer(viewer, exchange->body)
                                 : job == JOB_FILE ? file_answer(viewer, exchange->name)
                                                   : path_read_answer(viewer, exchange->name);
    pthread_mutex_lock(&viewer->lock);
    if (viewer->state == STATE_TRAINING)
        viewer->reading.credit -= viewer_now() - began;
    answer_set(exchange, &answer);
}

static void refuse_jobs(struct viewer *viewer)
{
    for (struct exchange *job = next_job(viewer); job; job = next_job(viewer))
        answer_fail(job, 503, "the program is ending");
}

static void wait_for_work(struct viewer *viewer)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(POLL_SECONDS * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&viewer->wake_worker, &viewer->lock, &until);
}

static void *run_worker(void *context)
{
    struct viewer *viewer = context;
    double last_read = -HUGE_VAL;
    pthread_setname_np(pthread_self(), "viewer-worker");
    pthread_mutex_lock(&viewer->lock);
    while (!viewer->ending) {
        double now = viewer_now();
        struct exchange *job = may_read(viewer, now) ? next_job(viewer) : NULL;
        clients_expire(viewer, now);
        if (job) {
            do_job(viewer, job);
        } else if (now - last_read > POLL_SECONDS) {
            pthread_mutex_unlock(&viewer->lock);
            curves_read(viewer);
            pthread_mutex_lock(&viewer->lock);
            last_read = now;
        } else {
            wait_for_work(viewer);
        }
    }
    refuse_jobs(viewer);
    clients_refuse_waiting(viewer, "the program is ending");
    pthread_mutex_unlock(&viewer->lock);
    return NULL;
}

bool worker_start(struct viewer *viewer)
{
    viewer->worker_started = pthread_create(&viewer->worker, NULL, run_worker, viewer) == 0;
    return viewer->worker_started;
}

void worker_stop(struct viewer *viewer)
{
    pthread_mutex_lock(&viewer->lock);
    viewer->ending = true;
    pthread_cond_signal(&viewer->wake_worker);
    pthread_mutex_unlock(&viewer->lock);
    if (viewer->worker_started)
        pthread_join(viewer->worker, NULL);
    viewer->worker_started = false;
}
