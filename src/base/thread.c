/* Runs loops on all processors and work in the background. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

#define MAX_THREADS 64

/* Least stack of a thread, in bytes: compilers of drivers recurse deeply, and the default is less
 * in some C libraries (musl: 128 KiB). */
#define LEAST_STACK ((size_t)8 << 20)

/* The load is atomic because another thread may set the flag: a plain read would be a data race
 * (C11, 5.1.2.4). */
bool base_stop_asked(const volatile sig_atomic_t *stop)
{
    return stop && __atomic_load_n(stop, __ATOMIC_RELAXED);
}

/* A base_parallel loop. */
struct loop {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an index finished */
    base_work work;
    void *context;
    size_t count, next, running, finished; /* numbers of indices; next: the next index to start */
    size_t failed_index;                   /* lowest index that failed; count when none */
    vkn_status status;
    char *message; /* of the failure at failed_index; NULL: out of memory */
};

/* Keeps the failure with the lowest index. Indices start in order, so the reported error does not
 * depend on timing. */
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
    BASE_C_LOCALE;
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

static void set_stack(pthread_attr_t *attributes)
{
    size_t size = 0;
    if (pthread_attr_getstacksize(attributes, &size) == 0 && size < LEAST_STACK)
        pthread_attr_setstacksize(attributes, LEAST_STACK);
}

/* Starts up to `wanted` threads and returns their number. The threads block signals, so that Ctrl-C
 * interrupts the waits of the calling thread and not a worker's write. */
static size_t start_threads(void *(*run)(void *argument), void *argument, size_t wanted,
                            pthread_t *threads)
{
    sigset_t all, previous;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    set_stack(&attributes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    size_t started = 0;
    while (started < wanted && pthread_create(&threads[started], &attributes, run, argument) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

static bool wait_a_second(struct loop *loop)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    return pthread_cond_timedwait(&loop->changed, &loop->lock, &until) == 0;
}

static void wait_and_report(struct loop *loop, void (*done)(void *context, size_t finished))
{
    size_t reported = 0;
    bool second_over = false;
    pthread_mutex_lock(&loop->lock);
    for (;;) {
        bool starts_more = loop->next < loop->count && loop->failed_index == loop->count;
        if (loop->finished > reported || second_over) {
            reported = loop->finished;
            second_over = false;
            if (done != NULL) {
                pthread_mutex_unlock(&loop->lock);
                done(loop->context, reported);
                pthread_mutex_lock(&loop->lock);
            }
        } else if (!starts_more && loop->running == 0) {
            break;
        } else {
            second_over = !wait_a_second(loop);
        }
    }
    pthread_mutex_unlock(&loop->lock);
}

static void create_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
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
    create_condition(&loop.changed);

    size_t wanted = base_processors();
    wanted = wanted < MAX_THREADS ? wanted : MAX_THREADS;
    pthread_t threads[MAX_THREADS];
    size_t started = start_threads(run_indices, &loop, wanted < count ? wanted : count, threads);
    if (started == 0)
        run_indices(&loop); /* no thread could be created */
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

/* ---- background work ------------------------------------------------------------------------- */

struct base_task {
    vkn_status (*work)(void *context);
    void *context;
    pthread_t thread;
    bool has_thread;
    atomic_bool finished;
    vkn_status status;
    char *message; /* of a failure; NULL: out of memory */
};

static void *run_task(void *argument)
{
    BASE_C_LOCALE;
    struct base_task *task = argument;
    task->status = task->work(task->context);
    if (task->status != VKN_OK)
        task->message = base_format("%s", vkn_last_error());
    atomic_store(&task->finished, true);
    return NULL;
}

static vkn_status create_task(vkn_status (*work)(void *context), void *context,
                              struct base_task **task)
{
    *task = base_alloc(1, sizeof(**task));
    if (*task == NULL)
        return VKN_ERROR;
    (*task)->work = work;
    (*task)->context = context;
    (*task)->has_thread = start_threads(run_task, *task, 1, &(*task)->thread) == 1;
    return VKN_OK;
}

vkn_status base_task_start(vkn_status (*work)(void *context), void *context,
                           struct base_task **task)
{
    BASE_TRY(create_task(work, context, task));
    if (!(*task)->has_thread)
        run_task(*task);
    return VKN_OK;
}

vkn_status base_task_start_thread(vkn_status (*work)(void *context), void *context,
                                  struct base_task **task)
{
    BASE_TRY(create_task(work, context, task));
    if ((*task)->has_thread)
        return VKN_OK;
    free(*task);
    *task = NULL;
    return base_fail(VKN_ERROR, "no thread can be started: too many processes, or out of memory");
}

bool base_task_finished(struct base_task *task)
{
    return atomic_load(&task->finished);
}

vkn_status base_task_wait(struct base_task **task)
{
    if (*task == NULL)
        return VKN_OK;
    if ((*task)->has_thread)
        pthread_join((*task)->thread, NULL);
    vkn_status status = (*task)->status;
    if (status != VKN_OK)
        base_fail(status, "%s", (*task)->message != NULL ? (*task)->message : "out of memory");
    free((*task)->message);
    free(*task);
    *task = NULL;
    return status;
}
