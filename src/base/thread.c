/* Threads: a parallel loop, and the clock. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

#define MAX_THREADS 64

double base_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct loop {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an index finished */
    base_work work;
    void *context;
    size_t count, next, running, finished;
    size_t failed_index; /* lowest index that failed; count when none */
    vkn_status status;
    char *message; /* of the failure at failed_index; NULL when out of memory */
};

/* The lowest failing index wins: indices start in order, so it has always been started, and the
 * reported error does not depend on timing. */
static void note_failure(struct loop *loop, size_t index, vkn_status status)
{
    if (index >= loop->failed_index)
        return;
    free(loop->message);
    loop->message = base_format("%s", vkn_last_error());
    loop->failed_index = index;
    loop->status = status;
}

static void *run_indices(void *argument)
{
    struct loop *loop = argument;
    pthread_mutex_lock(&loop->lock);
    while (loop->next < loop->count && loop->failed_index == loop->count) {
        size_t index = loop->next++;
        loop->running++;
        pthread_mutex_unlock(&loop->lock);
        vkn_status status = loop->work(loop->context, index);
        pthread_mutex_lock(&loop->lock);
        loop->running--;
        loop->finished++;
        if (status != VKN_OK)
            note_failure(loop, index, status);
        pthread_cond_signal(&loop->changed);
    }
    pthread_mutex_unlock(&loop->lock);
    return NULL;
}

/* Signals stay with the caller's thread, so that Ctrl-C interrupts its waits and not a worker's
 * write. */
static size_t start_threads(struct loop *loop, size_t wanted, pthread_t *threads)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    size_t started = 0;
    while (started < wanted && pthread_create(&threads[started], NULL, run_indices, loop) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static void wait_and_report(struct loop *loop, void (*done)(void *context, size_t finished))
{
    size_t reported = 0;
    pthread_mutex_lock(&loop->lock);
    for (;;) {
        bool starts_more = loop->next < loop->count && loop->failed_index == loop->count;
        if (loop->finished > reported) {
            reported = loop->finished;
            if (done != NULL) {
                pthread_mutex_unlock(&loop->lock);
                done(loop->context, reported);
                pthread_mutex_lock(&loop->lock);
            }
        } else if (!starts_more && loop->running == 0) {
            break;
        } else {
            pthread_cond_wait(&loop->changed, &loop->lock);
        }
    }
    pthread_mutex_unlock(&loop->lock);
}

uint32_t base_processors(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors > 0 ? (uint32_t)processors : 1;
}

vkn_status base_parallel(size_t count, base_work work, void *context,
                         void (*done)(void *context, size_t finished))
{
    struct loop loop = {.work = work, .context = context, .count = count, .failed_index = count};
    pthread_mutex_init(&loop.lock, NULL);
    pthread_cond_init(&loop.changed, NULL);

    size_t wanted = base_processors();
    wanted = wanted < MAX_THREADS ? wanted : MAX_THREADS;
    pthread_t threads[MAX_THREADS];
    size_t started = start_threads(&loop, wanted < count ? wanted : count, threads);
    if (started == 0)
        run_indices(&loop); /* no thread to be had: do it here */
    wait_and_report(&loop, done);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);

    pthread_cond_destroy(&loop.changed);
    pthread_mutex_destroy(&loop.lock);
    if (loop.status != VKN_OK)
        base_fail(loop.status, "%s", loop.message != NULL ? loop.message : "out of memory");
    free(loop.message);
    return loop.status;
}
