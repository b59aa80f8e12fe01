/* Implements the transport between processes by MPI, through the shared object of module mpi:
 * starts non-blocking calls and polls them, with sleeps in between. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpi/mpi.h"
#include "parallel/internal.h"

#define MODULE "vknerf-mpi.so"

/* Sleeps between polls grow with the wait so far: an all-reduce of gradients takes a millisecond,
 * rank 0's evaluation a minute. All in seconds. */
#define SHORTEST_SLEEP    2e-5
#define SLEEP_SHARE       0.1 /* of the wait so far */
#define LONGEST_SLEEP     2e-3
#define TRANSFER          5e-3 /* first part of an all-reduce, polled without sleep */
/* Time until ranks that are missing after a stop request count as lost; longer if delays are
 * expected. */
#define STOP_SECONDS      0.6
#define LONG_STOP_SECONDS 3.0
#define NOTICE_SECONDS    0.3 /* interval between a waiting rank's notices */
#define NOTICE_TIMEOUT    5.0 /* from a rank's last notice until it counts as missing */

struct process {
    struct parallel comm;
    struct mpi_layout layout;
    const struct mpi_module *module;
    const volatile sig_atomic_t *stop;
    bool lost;             /* a rank is lost: all further calls fail */
    double notice_time;    /* base_seconds() of this rank's last notice */
    double *heard;         /* [size], base_seconds() of each rank's last notice */
    size_t *begins;        /* [size + 1], see mpi_module */
    float *shards;         /* [size][length of this rank's shard], see mpi_module.all_to_all */
    size_t shard_capacity; /* values allocated for `shards` */
};

/* ---- the module ------------------------------------------------------------------------------ */

bool parallel_launched(void)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < BASE_COUNT(ranks); i++)
        if (getenv(ranks[i]))
            return true;
    return false;
}

/* Opens the module in folder `below` ("" or "NAME/") of the folder of file `path`. */
static void *open_relative(const char *path, const char *below)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (!slash)
        return NULL;
    char *file = base_format("%.*s/%s" MODULE, (int)(slash - path), path, below);
    void *library = file && access(file, R_OK) == 0 ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    free(file);
    return library;
}

static void *open_module(void)
{
    char program[4096] = "";
    Dl_info self;
    const char *asked = getenv("VKNERF_MPI_MODULE");
    if (asked)
        return dlopen(asked, RTLD_NOW | RTLD_LOCAL);
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        program[0] = '\0';
    /* /proc/self/exe names the dynamic loader if the program was started as the loader's argument;
     * dladdr still knows the program. */
    const char *known = dladdr((const void *)open_relative, &self) ? self.dli_fname : NULL;
    const char *const candidates[] = {program, known};
    void *library = NULL;
    for (size_t i = 0; i < BASE_COUNT(candidates) && !library; i++) {
        library = open_relative(candidates[i], "");
        if (!library)
            library = open_relative(candidates[i], "../" VKNERF_LIBDIR "/vknerf/");
    }
    return library ? library : dlopen(MODULE, RTLD_NOW | RTLD_LOCAL);
}

static vkn_status load_module(const struct mpi_module **module)
{
    dlerror();
    void *library = open_module();
    const char *why = library ? NULL : dlerror();
    *module = library ? (const struct mpi_module *)dlsym(library, MPI_MODULE_SYMBOL) : NULL;
    if (!*module || (*module)->version != MPI_MODULE_VERSION)
        return base_fail(VKN_BAD_INPUT,
                         "started by mpirun, but this program has no MPI (%s): install "
                         "libopenmpi-dev and build again, or train with --devices 0,1",
                         why ? why : MODULE ": of another version");
    return VKN_OK;
}

/* ---- collective calls ------------------------------------------------------------------------ */

static vkn_status lose(struct process *process, const char *why)
{
    process->lost = true;
    return base_fail(VKN_NO_DEVICE, "rank %u: another rank is lost: %s", process->comm.rank, why);
}

/* Sends the other ranks a notice that this rank waits, if one is due, and receives theirs. */
static void exchange_notices(struct process *process)
{
    unsigned char heard[PARALLEL_MOST_RANKS] = {0};
    double now = base_seconds();
    bool send = now - process->notice_time >= NOTICE_SECONDS;
    process->module->exchange_notices(send, heard);
    process->notice_time = send ? now : process->notice_time;
    for (uint32_t rank = 0; rank < process->comm.size; rank++)
        process->heard[rank] =
            heard[rank] || rank == process->comm.rank ? now : process->heard[rank];
}

/* Sets present[rank] to whether a notice of the rank has arrived at time `since` or later. */
static void find_waiting(const struct process *process, double since,
                         bool present[PARALLEL_MOST_RANKS])
{
    for (uint32_t rank = 0; rank < process->comm.size; rank++)
        present[rank] = process->heard[rank] >= since;
}

/* Fails with the names of the ranks that are missing although all ranks were asked to stop. */
static vkn_status fail_missing(struct process *process, const bool *present)
{
    char names[PARALLEL_NAMES];
    parallel_name_missing(&process->comm, present, names);
    process->lost = true;
    return base_fail(VKN_NO_DEVICE, "rank %u: %s did not reach the end of step %llu",
                     process->comm.rank, names[0] ? names : "another rank",
                     (unsigned long long)process->comm.step);
}

static void sleep_for(double seconds)
{
    const struct timespec length = {0, (long)(1e9 * seconds)};
    nanosleep(&length, NULL);
}

/* Warns of missing ranks, and fails if they are still missing some time after a stop request.
 * `stop_time`: base_seconds() when this process was asked to stop; 0: not yet. */
static vkn_status watch_ranks(struct process *process, struct parallel_wait *wait, double stop_time)
{
    bool present[PARALLEL_MOST_RANKS];
    parallel_count_wait(wait);
    if (wait->seconds < NOTICE_SECONDS && stop_time <= 0)
        return VKN_OK;
    exchange_notices(process);
    find_waiting(process, base_seconds() - NOTICE_TIMEOUT, present);
    parallel_warn_missing(&process->comm, present, wait);
    find_waiting(process, stop_time, present);
    if (stop_time <= 0 || parallel_may_be_late(&process->comm, present))
        return VKN_OK;
    double limit = process->comm.expects_delays ? LONG_STOP_SECONDS : STOP_SECONDS;
    return base_seconds() - stop_time > limit ? fail_missing(process, present) : VKN_OK;
}

/* Waits for a call that was started. `failed`: error of the start, or NULL. `all_present`: all
 * ranks are known to have made the call; the first polls are without sleep, because MPI transfers
 * only while polled. */
static vkn_status wait(struct process *process, const char *failed, bool all_present)
{
    double began = base_seconds(), stop_time = 0;
    struct parallel_wait watch = {0};
    for (int done = 0; !failed;) {
        failed = process->module->done(&done);
        if (failed || done)
            break;
        double now = base_seconds(), waited = now - began;
        if (stop_time <= 0 && base_stop_asked(process->stop))
            stop_time = now;
        BASE_TRY(watch_ranks(process, &watch, stop_time));
        if (all_present && waited < TRANSFER) {
            sched_yield();
            continue;
        }
        double length = SLEEP_SHARE * waited;
        sleep_for(length < SHORTEST_SLEEP  ? SHORTEST_SLEEP
                  : length < LONGEST_SLEEP ? length
                                           : LONGEST_SLEEP);
    }
    return failed ? lose(process, failed) : VKN_OK;
}

static vkn_status check_lost(const struct process *process)
{
    return process->lost
               ? base_fail(VKN_NO_DEVICE, "rank %u: another rank is lost", process->comm.rank)
               : VKN_OK;
}

static vkn_status gather(struct parallel *parallel, const void *mine, size_t size, void *all)
{
    struct process *process = parallel->group;
    BASE_TRY(check_lost(process));
    return wait(process, process->module->gather(mine, size, all), false);
}

static vkn_status broadcast(struct parallel *parallel, void *data, size_t size)
{
    struct process *process = parallel->group;
    BASE_TRY(check_lost(process));
    return wait(process, process->module->broadcast(data, size), false);
}

static vkn_status reserve(struct process *process, size_t numbers)
{
    if (numbers <= process->shard_capacity)
        return VKN_OK;
    free(process->shards);
    process->shards = base_alloc(numbers, sizeof *process->shards);
    process->shard_capacity = process->shards ? numbers : 0;
    return process->shards ? VKN_OK : VKN_ERROR;
}

/* All-reduces as reduce-scatter and all-gather: each rank reduces one shard for all ranks. */
static vkn_status combine(struct parallel *parallel, parallel_combination *combination,
                          float *values, size_t count)
{
    struct process *process = parallel->group;
    float *others[PARALLEL_MOST_RANKS];
    BASE_TRY(check_lost(process));
    for (uint32_t rank = 0; rank <= parallel->size; rank++)
        process->begins[rank] = parallel_shard_begin(count, rank, parallel->size);
    size_t begin = process->begins[parallel->rank],
           length = process->begins[parallel->rank + 1] - begin;
    BASE_TRY(reserve(process, length * parallel->size));
    BASE_TRY(
        wait(process, process->module->all_to_all(values, process->begins, process->shards), true));
    for (uint32_t rank = 0; rank < parallel->size; rank++)
        others[rank] = process->shards + rank * length;
    combination(others, parallel->size, 1, 0, length);
    memcpy(values + begin, process->shards, length * sizeof *values);
    return wait(process, process->module->all_gather(values, process->begins), true);
}

/* ---- joining and leaving --------------------------------------------------------------------- */

static void leave(struct parallel *parallel)
{
    struct process *process = parallel->group;
    if (!process->lost && process->module)
        (void)process->module->finish();
    process->module = NULL;
    free(process->begins);
    free(process->heard);
    free(process->shards);
    free(process);
}

static const struct parallel_transport processes = {gather, broadcast, combine, leave};

static vkn_status start(struct process *process)
{
    BASE_TRY(load_module(&process->module));
    const char *failed = process->module->start(&process->layout);
    if (failed)
        return base_fail(VKN_ERROR, "%s", failed);
    uint32_t size = process->layout.size;
    if (size > PARALLEL_MOST_RANKS)
        return base_fail(VKN_BAD_INPUT, "%u ranks: at most %u can train together", size,
                         PARALLEL_MOST_RANKS);
    process->begins = base_alloc(size + 1, sizeof *process->begins);
    process->heard = base_alloc(size, sizeof *process->heard);
    process->comm = (struct parallel){.transport = &processes,
                                      .group = process,
                                      .rank = process->layout.rank,
                                      .size = size,
                                      .expects_delays = true};
    return process->begins && process->heard ? VKN_OK : VKN_ERROR;
}

vkn_status parallel_join(const volatile sig_atomic_t *stop, struct parallel **joined)
{
    *joined = NULL;
    struct process *process = base_alloc(1, sizeof *process);
    if (!process)
        return VKN_ERROR;
    process->stop = stop;
    vkn_status status = start(process);
    if (status == VKN_OK)
        *joined = &process->comm;
    else
        free(process);
    return status;
}

uint32_t parallel_local_rank(const struct parallel *parallel)
{
    const struct process *process = parallel->group;
    return process->layout.local_rank;
}

uint32_t parallel_local_size(const struct parallel *parallel)
{
    const struct process *process = parallel->group;
    return process->layout.local_size;
}
