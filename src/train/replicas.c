/* Keeps the states of all ranks equal: broadcasts rank 0's state and compares hashes of states. */
#include <stdlib.h>

#include "parallel/parallel.h"
#include "train/loop.h"

static vkn_status hash_state(const struct vkn_trainer *t, uint64_t *hash)
{
    struct saved_buffer saved[MAX_SAVED_BUFFERS];
    size_t count = step_list_saved(&t->step, saved);
    *hash = 0;
    for (size_t i = 0; i < count; i++) {
        const struct gpu_buffer *buffer = step_saved(&t->step, &saved[i]);
        if (saved[i].number == BIND_STATE && !t->step.ranks)
            continue; /* with parameter averaging each rank has a separate state */
        void *data = base_alloc(buffer->size, 1);
        vkn_status status =
            data ? gpu_download(t->device, buffer, 0, data, buffer->size) : VKN_ERROR;
        if (status == VKN_OK)
            *hash = parallel_hash(*hash, data, buffer->size);
        free(data);
        BASE_TRY(status);
    }
    return VKN_OK;
}

vkn_status ranks_check_hashes(struct vkn_trainer *t, struct message *messages)
{
    struct message mine = {.step = t->steps_done};
    struct reduction reduction = {t->parallel, VKN_OK};
    BASE_TRY(step_exchange_errors(&t->step, ranks_all_reduce, &reduction));
    BASE_TRY(hash_state(t, &mine.hash));
    BASE_TRY(messages_exchange(t->parallel, &mine, messages));
    for (uint32_t rank = 1; rank < t->ranks; rank++)
        if (messages[rank].hash != messages[0].hash)
            return base_fail(VKN_ERROR,
                             "step %llu: rank %u has other weights than rank 0: their devices or "
                             "drivers do not compute the same bits; see parallel.mode=average",
                             (unsigned long long)t->steps_done, rank);
    return VKN_OK;
}

/* State of a trainer on the host. */
struct progress {
    uint64_t steps_done;
    double seconds, seconds_before;
    uint32_t rate_cuts, skipped_steps;
    double constant_error; /* see struct monitor_convergence; of rank 0's views */
};

static vkn_status broadcast_buffer(struct vkn_trainer *t, const struct gpu_buffer *buffer)
{
    void *data = base_alloc(buffer->size, 1);
    vkn_status status = data ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && trainer_leads(t))
        status = gpu_download(t->device, buffer, 0, data, buffer->size);
    status = train_sync_status(t->parallel, status); /* else ranks would wait for a failed one */
    if (status == VKN_OK)
        status = parallel_broadcast(t->parallel, data, buffer->size);
    if (status == VKN_OK && !trainer_leads(t))
        status = gpu_upload(t->device, buffer, 0, data, buffer->size);
    free(data);
    return status;
}

vkn_status train_broadcast_state(vkn_trainer *t)
{
    struct saved_buffer saved[MAX_SAVED_BUFFERS];
    size_t count = step_list_saved(&t->step, saved);
    struct progress progress = {t->steps_done,
                                t->seconds,
                                t->seconds_before,
                                t->rate_cuts,
                                t->monitor.skips.state_skipped,
                                t->monitor.convergence.constant_error};
    BASE_TRY(train_sync_status(t->parallel, VKN_OK)); /* another rank may have no trainer */
    for (size_t i = 0; i < count; i++)
        BASE_TRY(broadcast_buffer(t, step_saved(&t->step, &saved[i])));
    BASE_TRY(parallel_broadcast(t->parallel, &progress, sizeof progress));
    if (trainer_leads(t))
        return VKN_OK;
    t->steps_done = progress.steps_done;
    t->seconds = progress.seconds;
    t->seconds_before = progress.seconds_before;
    t->rate_cuts = progress.rate_cuts;
    monitor_begin(&t->monitor, &t->step.setup.constants, progress.skipped_steps,
                  progress.constant_error);
    t->images_current = false;
    BASE_TRY(step_round_parameters(&t->step));
    return step_pack_occupancy(&t->step);
}
