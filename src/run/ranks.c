#include "run/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "parallel/parallel.h"
#include "pipeline/pipeline.h"
#include "run/internal.h"

struct rank {
    struct run_ranks *all;
    struct parallel *end;
    char *device;     /* as asked for */
    char name[256];   /* of the device, once it is open; else empty */
    char speaker[24]; /* in the log */
    struct base_task *task;
};

struct run_ranks {
    const struct vkn_train_params *params;
    struct parallel_group *group;
    struct rank ranks[PARALLEL_MOST_RANKS];
    uint32_t count;
    /* Rank 0's. */
    vkn_scene *scene;
    struct vkn_config config; /* effective */
    bool left;
};

/* ---- the list -------------------------------------------------------------------------------- */

static vkn_status add_device(struct run_ranks *ranks, const char *text, size_t length)
{
    while (length > 0 && text[0] == ' ')
        text++, length--;
    while (length > 0 && text[length - 1] == ' ')
        length--;
    if (length == 0)
        return base_fail(VKN_BAD_INPUT, "--devices: \"%s\" is no list such as 0,1",
                         ranks->params->devices);
    if (ranks->count == PARALLEL_MOST_RANKS)
        return base_fail(VKN_BAD_INPUT, "--devices: more than %u", PARALLEL_MOST_RANKS);
    struct rank *rank = &ranks->ranks[ranks->count];
    rank->all = ranks;
    rank->device = base_format("%.*s", (int)length, text);
    snprintf(rank->speaker, sizeof rank->speaker, "rank %u", ranks->count);
    ranks->count++;
    return rank->device ? VKN_OK : VKN_ERROR;
}

static vkn_status read_devices(struct run_ranks *ranks)
{
    const char *text = ranks->params->devices;
    for (;;) {
        size_t length = strcspn(text, ",");
        BASE_TRY(add_device(ranks, text, length));
        if (text[length] == '\0')
            break;
        text += length + 1;
    }
    BASE_TRY(parallel_group_create(ranks->count, &ranks->group));
    for (uint32_t i = 0; i < ranks->count; i++)
        ranks->ranks[i].end = parallel_group_rank(ranks->group, i);
    return VKN_OK;
}

vkn_status run_ranks_open(const struct vkn_train_params *params, struct run_ranks **opened)
{
    *opened = NULL;
    if (!params->devices)
        return VKN_OK;
    if (params->job.context.device)
        return base_fail(VKN_BAD_INPUT, "--device is one, --devices are several: give either");
    struct run_ranks *ranks = base_alloc(1, sizeof *ranks);
    if (!ranks)
        return VKN_ERROR;
    ranks->params = params;
    vkn_status status = read_devices(ranks);
    if (status != VKN_OK)
        run_ranks_close(&ranks);
    *opened = ranks;
    return status;
}

void run_ranks_close(struct run_ranks **closed)
{
    BASE_KEEP_ERROR;
    struct run_ranks *ranks = *closed;
    if (!ranks)
        return;
    *closed = NULL;
    run_ranks_leave(ranks, VKN_OK);
    for (uint32_t i = 0; i < ranks->count; i++)
        free(ranks->ranks[i].device);
    parallel_group_destroy(&ranks->group);
    free(ranks);
}

struct parallel *run_ranks_end(const struct run_ranks *ranks)
{
    return ranks && ranks->count > 1 ? ranks->ranks[0].end : NULL;
}

static struct vkn_context_params context_of(const struct vkn_train_params *params,
                                            const struct rank *rank)
{
    struct vkn_context_params context = params->job.context;
    context.device = rank->device;
    return context;
}

vkn_status run_ranks_context(const struct run_ranks *ranks, const struct vkn_train_params *params,
                             vkn_context **context)
{
    const struct vkn_context_params opened =
        ranks ? context_of(params, &ranks->ranks[0]) : params->job.context;
    return vkn_context_create(&opened, context);
}

size_t run_ranks_count(const struct run_ranks *ranks)
{
    return ranks ? ranks->count : 0;
}

const char *run_ranks_device(const struct run_ranks *ranks, size_t index)
{
    return ranks->ranks[index].name;
}

/* ---- a rank ------------------------------------------------------------------------------------
 */

/* As long as rank 0 goes on; its runs end the others'. */
static vkn_status train(struct rank *rank, vkn_trainer *trainer)
{
    const struct vkn_train_run run = {.stop = rank->all->params->job.stop};
    BASE_TRY(train_spread(trainer));
    while (!vkn_trainer_finished(trainer))
        BASE_TRY(vkn_trainer_run(trainer, &run));
    return VKN_OK;
}

static vkn_status open_and_train(struct rank *rank)
{
    const struct run_ranks *all = rank->all;
    struct vkn_context_params params = context_of(all->params, rank);
    vkn_context *context = NULL;
    vkn_trainer *trainer = NULL;
    vkn_status status = vkn_context_create(&params, &context);
    if (status == VKN_OK) {
        snprintf(rank->name, sizeof rank->name, "%s", vkn_context_device_name(context));
        gpu_watch_stop(context->device, all->params->job.stop);
        status = train_create(context, all->scene, &all->config, rank->end, &trainer);
    }
    if (status == VKN_OK)
        status = train(rank, trainer);
    train_leave(rank->end, status);
    vkn_trainer_destroy(&trainer);
    vkn_context_destroy(&context);
    return status;
}

static vkn_status run_rank(void *context)
{
    struct rank *rank = context;
    base_log_speaker(rank->speaker);
    return open_and_train(rank);
}

/* ---- all of them -------------------------------------------------------------------------------
 */

static void name_first(struct run_ranks *ranks, const vkn_trainer *trainer)
{
    snprintf(ranks->ranks[0].name, sizeof ranks->ranks[0].name, "%s",
             gpu_device_capabilities(train_shown(trainer).step->device)->name);
}

vkn_status run_ranks_start(struct run_ranks *ranks, vkn_scene *scene, vkn_trainer *trainer)
{
    if (!run_ranks_end(ranks))
        return VKN_OK;
    ranks->scene = scene;
    ranks->config = *vkn_trainer_config(trainer);
    name_first(ranks, trainer);
    for (uint32_t i = 1; i < ranks->count; i++)
        BASE_TRY(base_task_start_apart(run_rank, &ranks->ranks[i], &ranks->ranks[i].task));
    BASE_TRY(train_spread(trainer));
    for (uint32_t i = 0; i < ranks->count; i++)
        base_log(BASE_LOG_INFO, "rank %u of %u: %s", i, ranks->count, ranks->ranks[i].name);
    return VKN_OK;
}

void run_ranks_leave(struct run_ranks *ranks, vkn_status status)
{
    BASE_KEEP_ERROR;
    if (!ranks || ranks->left || !ranks->group)
        return;
    ranks->left = true;
    train_leave(ranks->ranks[0].end, status);
    for (uint32_t i = 1; i < ranks->count; i++)
        (void)base_task_wait(&ranks->ranks[i].task); /* rank 0 knows why */
}
