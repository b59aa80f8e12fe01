/* Runs a training on several ranks, which are threads (--devices) or processes (mpirun). */
#include "run/training.h"

#include <stdlib.h>
#include <string.h>

#include "parallel/parallel.h"
#include "step/step.h"
#include "run/compare.h"
#include "run/internal.h"

/* A thread of a rank other than 0. */
struct follower {
    struct run_ranks *ranks;
    uint32_t number;
    char prefix[24]; /* prefix of log lines: "rank 1" */
    struct base_task *task;
};

/* Ranks of a training; one struct per process. */
struct run_ranks {
    const struct vkn_train_params *params;
    struct parallel *comm;        /* this rank's communicator; NULL: a single rank, or ended */
    struct parallel_group *group; /* of threads; NULL: ranks are processes */
    uint32_t number, count;       /* this rank; number of ranks */
    char **devices;               /* [device_count], of --devices; NULL: not given */
    uint32_t device_count;
    struct compare_device *all_devices; /* [count], of all ranks */
    struct follower *followers;         /* [count], of threads; the first is not used */
    vkn_scene *scene;                   /* of rank 0's thread, or of this process */
    struct vkn_config config;           /* effective, of rank 0's trainer */
};

/* ---- the list of devices --------------------------------------------------------------------- */

static vkn_status add_device(struct run_ranks *ranks, const char *text, size_t length)
{
    while (length > 0 && text[0] == ' ')
        text++, length--;
    while (length > 0 && text[length - 1] == ' ')
        length--;
    if (length == 0)
        return base_fail(VKN_BAD_INPUT, "--devices: \"%s\" is not a list such as 0,1",
                         ranks->params->devices);
    ranks->devices[ranks->device_count] = base_format("%.*s", (int)length, text);
    return ranks->devices[ranks->device_count++] ? VKN_OK : VKN_ERROR;
}

static vkn_status read_devices(struct run_ranks *ranks)
{
    const char *text = ranks->params->devices;
    if (!text)
        return VKN_OK;
    if (ranks->params->job->device)
        return base_fail(VKN_BAD_INPUT, "--device and --devices: give only one of them");
    ranks->devices = base_alloc(strlen(text) + 1, sizeof *ranks->devices);
    if (!ranks->devices)
        return VKN_ERROR;
    for (;;) {
        size_t length = strcspn(text, ",");
        BASE_TRY(add_device(ranks, text, length));
        if (text[length] == '\0')
            return VKN_OK;
        text += length + 1;
    }
}

/* Returns the priority of a device's type, as in the choice of a single device: discrete first. */
static int priority_of(const struct gpu_capabilities *device)
{
    static const int priorities[] = {[GPU_DISCRETE] = 4,
                                     [GPU_INTEGRATED] = 3,
                                     [GPU_VIRTUAL] = 2,
                                     [GPU_OTHER] = 1,
                                     [GPU_CPU] = 0};
    return device->unusable ? -1 : priorities[device->type];
}

#define MOST_DEVICES 64u

/* Chooses a device of the best type by the process's rank on its machine, and writes its index. */
static vkn_status choose_by_local_rank(uint32_t number, char text[16])
{
    size_t count = 0, alike = 0;
    int best = -1;
    struct gpu_capabilities *devices = base_alloc(MOST_DEVICES, sizeof *devices);
    vkn_status status = devices ? gpu_list(devices, MOST_DEVICES, &count) : VKN_ERROR;
    count = status == VKN_OK ? count < MOST_DEVICES ? count : MOST_DEVICES : 0;
    for (size_t i = 0; i < count; i++)
        best = priority_of(&devices[i]) > best ? priority_of(&devices[i]) : best;
    for (size_t i = 0; i < count; i++)
        alike += priority_of(&devices[i]) == best;
    size_t wanted = alike > 0 ? number % alike : 0, i = 0;
    for (; i < count; i++)
        if (priority_of(&devices[i]) == best && wanted-- == 0)
            break;
    snprintf(text, 16, "%zu", i);
    free(devices);
    return status;
}

static vkn_status open_device(const struct run_ranks *ranks, uint32_t number, vkn_context **context)
{
    struct vkn_job job = *ranks->params->job;
    char chosen[16];
    if (ranks->devices) {
        job.device = ranks->devices[number % ranks->device_count];
    } else if (!job.device) {
        BASE_TRY(choose_by_local_rank(number, chosen));
        job.device = chosen;
    }
    return context_of_job(&job, context);
}

vkn_status run_ranks_context(const struct run_ranks *ranks, const struct vkn_train_params *params,
                             vkn_context **context)
{
    if (!ranks)
        return context_of_job(params->job, context);
    return open_device(ranks, ranks->group || !ranks->comm ? 0 : parallel_local_rank(ranks->comm),
                       context);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Joins the processes that mpirun has started; a single one trains without a communicator. */
static vkn_status join_processes(struct run_ranks *ranks)
{
    BASE_TRY(parallel_join(ranks->params->job->stop, &ranks->comm));
    ranks->number = parallel_rank(ranks->comm);
    ranks->count = parallel_size(ranks->comm);
    vkn_share_processors(parallel_local_size(ranks->comm));
    if (ranks->count > 1)
        return VKN_OK;
    parallel_leave(ranks->comm);
    ranks->comm = NULL;
    return VKN_OK;
}

static vkn_status make_threads(struct run_ranks *ranks)
{
    ranks->count = ranks->device_count;
    if (ranks->count < 2)
        return VKN_OK;
    BASE_TRY(parallel_group_create(ranks->count, &ranks->group));
    ranks->comm = parallel_group_rank(ranks->group, 0);
    ranks->followers = base_alloc(ranks->count, sizeof *ranks->followers);
    return ranks->followers ? VKN_OK : VKN_ERROR;
}

static vkn_status open_ranks(struct run_ranks *ranks)
{
    BASE_TRY(read_devices(ranks));
    BASE_TRY(parallel_launched() ? join_processes(ranks) : make_threads(ranks));
    ranks->all_devices = base_alloc(ranks->count, sizeof *ranks->all_devices);
    return ranks->all_devices ? VKN_OK : VKN_ERROR;
}

/* Compares program and command line of processes; threads share both. */
static vkn_status compare_processes(const struct run_ranks *ranks)
{
    if (!run_ranks_comm(ranks) || ranks->group)
        return VKN_OK;
    BASE_TRY(compare_programs(ranks->comm));
    return compare_requests(ranks->comm, ranks->params);
}

vkn_status run_ranks_open(const struct vkn_train_params *params, struct run_ranks **opened)
{
    *opened = NULL;
    if (!params->devices && !parallel_launched())
        return VKN_OK;
    struct run_ranks *ranks = base_alloc(1, sizeof *ranks);
    if (!ranks)
        return VKN_ERROR;
    ranks->params = params;
    vkn_status status = open_ranks(ranks);
    if (status != VKN_OK)
        run_ranks_close(&ranks);
    *opened = ranks;
    return ranks ? compare_processes(ranks) : status;
}

void run_ranks_close(struct run_ranks **closed)
{
    BASE_KEEP_ERROR;
    struct run_ranks *ranks = *closed;
    if (!ranks)
        return;
    *closed = NULL;
    run_ranks_leave(ranks, VKN_OK);
    for (uint32_t i = 0; i < ranks->device_count; i++)
        free(ranks->devices[i]);
    free(ranks->devices);
    free(ranks->all_devices);
    free(ranks->followers);
    parallel_group_destroy(&ranks->group);
    free(ranks);
}

struct parallel *run_ranks_comm(const struct run_ranks *ranks)
{
    return ranks ? ranks->comm : NULL;
}

uint32_t run_ranks_rank(const struct run_ranks *ranks)
{
    return ranks ? ranks->number : 0;
}

size_t run_ranks_count(const struct run_ranks *ranks)
{
    return ranks ? ranks->count : 0;
}

const char *run_ranks_device(const struct run_ranks *ranks, size_t index)
{
    return ranks->all_devices[index].name;
}

/* ---- training on all ranks ------------------------------------------------------------------- */

/* Compares configurations and devices, and broadcasts rank 0's state. Collective. */
static vkn_status join_training(struct parallel *comm, vkn_trainer *trainer,
                                struct compare_device *devices)
{
    const struct vkn_config *config = vkn_trainer_config(trainer);
    const struct gpu_capabilities *device =
        gpu_device_capabilities(train_internals(trainer).step->device);
    struct compare_device mine = {"", ""};
    snprintf(mine.name, sizeof mine.name, "%s", device->name);
    snprintf(mine.driver, sizeof mine.driver, "%s", device->driver);
    BASE_TRY(compare_configs(comm, config));
    BASE_TRY(compare_devices(comm, &mine, config, devices));
    return train_broadcast_state(trainer);
}

/* Trains until rank 0 ends. When rank 0's vkn_trainer_run returns, this rank's returns too. */
static vkn_status train(const struct run_ranks *ranks, vkn_trainer *trainer)
{
    const struct vkn_train_run run = {.stop = ranks->params->job->stop};
    while (!vkn_trainer_finished(trainer))
        BASE_TRY(vkn_trainer_run(trainer, &run));
    return VKN_OK;
}

/* Trains as a rank other than 0. `device`: index into --devices, or the rank on the machine. */
static vkn_status open_and_train(struct run_ranks *ranks, struct parallel *comm, vkn_scene *scene,
                                 uint32_t device)
{
    vkn_context *context = NULL;
    vkn_trainer *trainer = NULL;
    struct compare_device *devices = base_alloc(ranks->count, sizeof *devices);
    vkn_status status = devices ? compare_scenes(comm, scene) : VKN_ERROR;
    if (status == VKN_OK)
        status = open_device(ranks, device, &context);
    if (status == VKN_OK) {
        gpu_set_stop_flag(context->device, ranks->params->job->stop);
        status = train_create(context, scene, &ranks->config, comm, &trainer);
    }
    if (status == VKN_OK)
        status = join_training(comm, trainer, devices);
    if (status == VKN_OK)
        status = train(ranks, trainer);
    train_announce_end(comm, status);
    vkn_trainer_destroy(&trainer);
    vkn_context_destroy(&context);
    train_leave(comm, status); /* last: after a failure, launchers soon kill all processes */
    free(devices);
    return status;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Opens this rank's own scene if each rank holds a share of the images; else *own stays NULL. */
static vkn_status open_own_scene(const struct run_ranks *ranks, vkn_scene **own)
{
    if (ranks->config.parallel.images != VKN_PART_SHARE)
        return VKN_OK;
    return vkn_scene_open(ranks->scene->path, &ranks->config, own);
}

static vkn_status run_thread(void *context)
{
    struct follower *follower = context;
    struct run_ranks *ranks = follower->ranks;
    base_log_prefix(follower->prefix);
    struct parallel *comm = parallel_group_rank(ranks->group, follower->number);
    vkn_scene *own = NULL;
    vkn_status status = open_own_scene(ranks, &own);
    if (status == VKN_OK)
        status = open_and_train(ranks, comm, own ? own : ranks->scene, follower->number);
    else
        train_leave(comm, status);
    vkn_scene_close(&own);
    return status;
}

static vkn_status start_threads(struct run_ranks *ranks)
{
    for (uint32_t i = 1; i < ranks->count; i++) {
        struct follower *follower = &ranks->followers[i];
        *follower = (struct follower){.ranks = ranks, .number = i};
        snprintf(follower->prefix, sizeof follower->prefix, "rank %u", i);
        BASE_TRY(base_task_start_thread(run_thread, follower, &follower->task));
    }
    return VKN_OK;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Broadcasts rank 0's text. The other ranks free *text. */
static vkn_status broadcast_text(struct parallel *comm, char **text)
{
    bool leads = parallel_rank(comm) == 0;
    uint64_t size = leads ? strlen(*text) + 1 : 0;
    BASE_TRY(parallel_broadcast(comm, &size, sizeof size));
    if (!leads)
        *text = base_alloc(size + 1, 1);
    BASE_TRY(train_sync_status(comm, *text ? VKN_OK : VKN_ERROR));
    return parallel_broadcast(comm, *text, size);
}

/* Broadcasts configuration and scene path. Another machine may have the scene at another path. */
static vkn_status send_job(struct run_ranks *ranks)
{
    char *path = ranks->scene->path, *config = vkn_config_write_json(&ranks->config);
    vkn_status status = train_sync_status(ranks->comm, config ? VKN_OK : VKN_ERROR);
    if (status == VKN_OK)
        status = broadcast_text(ranks->comm, &config);
    if (status == VKN_OK)
        status = broadcast_text(ranks->comm, &path);
    free(config);
    return status;
}

static vkn_status receive_job(struct run_ranks *ranks, char **path)
{
    char *config = NULL;
    BASE_TRY(train_sync_status(ranks->comm, VKN_OK));
    vkn_status status = broadcast_text(ranks->comm, &config);
    if (status == VKN_OK)
        status = broadcast_text(ranks->comm, path);
    if (status == VKN_OK)
        status = vkn_config_parse_json(&ranks->config, "rank 0's configuration", config, false);
    free(config);
    return status;
}

static vkn_status open_scene(struct run_ranks *ranks, const char *path)
{
    char *own = ranks->params->scene ? run_absolute_path(ranks->params->scene) : NULL;
    vkn_status status = run_open_scene(own, path, &ranks->config, &ranks->scene);
    free(own);
    return status;
}

bool run_ranks_other_failed(const struct run_ranks *ranks, vkn_status status)
{
    const char *error = vkn_last_error();
    char number[24];
    if (!ranks || ranks->group || status == VKN_OK)
        return false;
    snprintf(number, sizeof number, "rank %u:", ranks->number);
    return strncmp(error, "rank ", 5) == 0 && strncmp(error, number, strlen(number)) != 0;
}

vkn_status run_ranks_follow(struct run_ranks *ranks)
{
    char prefix[24], *path = NULL;
    snprintf(prefix, sizeof prefix, "rank %u", ranks->number);
    base_log_prefix(prefix);
    uint32_t local = parallel_local_rank(ranks->comm);
    vkn_status status = receive_job(ranks, &path);
    if (status == VKN_OK)
        status = open_scene(ranks, path);
    if (status == VKN_OK)
        status = open_and_train(ranks, ranks->comm, ranks->scene, local);
    else
        train_leave(ranks->comm, status);
    ranks->comm = NULL;
    vkn_scene_close(&ranks->scene);
    free(path);
    base_log_prefix(NULL);
    if (status != VKN_OK && strncmp(vkn_last_error(), "rank ", 5) != 0)
        base_fail(status, "rank %u: %s", ranks->number, vkn_last_error());
    return status == VKN_INTERRUPTED ? VKN_OK : status;
}

/* ---- rank 0 ---------------------------------------------------------------------------------- */

vkn_status run_ranks_start(struct run_ranks *ranks, vkn_scene *scene, vkn_trainer *trainer)
{
    if (!run_ranks_comm(ranks))
        return VKN_OK;
    ranks->scene = scene;
    ranks->config = *vkn_trainer_config(trainer);
    BASE_TRY(ranks->group ? start_threads(ranks) : send_job(ranks));
    BASE_TRY(compare_scenes(ranks->comm, scene));
    BASE_TRY(join_training(ranks->comm, trainer, ranks->all_devices));
    for (uint32_t i = 0; i < ranks->count; i++)
        base_log(BASE_LOG_INFO, "rank %u of %u: %s", i, ranks->count, run_ranks_device(ranks, i));
    return VKN_OK;
}

void run_ranks_announce_end(struct run_ranks *ranks, vkn_status status)
{
    if (run_ranks_comm(ranks))
        train_announce_end(ranks->comm, status);
}

void run_ranks_leave(struct run_ranks *ranks, vkn_status status)
{
    BASE_KEEP_ERROR;
    if (!run_ranks_comm(ranks))
        return;
    for (uint32_t i = 1; ranks->group && i < ranks->count; i++)
        if (!ranks->followers[i].task) /* a thread that was not started cannot leave by itself */
            parallel_leave(parallel_group_rank(ranks->group, i));
    train_leave(ranks->comm, status);
    ranks->comm = NULL;
    for (uint32_t i = 1; ranks->group && i < ranks->count; i++)
        (void)base_task_wait(&ranks->followers[i].task); /* rank 0 already has the error */
}
