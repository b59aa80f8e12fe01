/* Exchanges messages between ranks, so that the failure of one rank ends the runs of all. */
#include "train/loop.h"

#include <stdlib.h>

#include "train/train.h"

static vkn_status check_status(struct parallel *parallel, const struct message *messages)
{
    for (uint32_t rank = 0; rank < parallel_size(parallel); rank++) {
        if (messages[rank].status == VKN_OK)
            continue;
        parallel_mark_over(parallel);
        return base_fail((vkn_status)messages[rank].status, "rank %u: %s", rank,
                         messages[rank].reason);
    }
    return VKN_OK;
}

static vkn_status check_steps(const struct parallel *parallel, const struct message *messages)
{
    for (uint32_t rank = 1; rank < parallel_size(parallel); rank++)
        if (messages[rank].step != messages[0].step)
            return base_fail(VKN_ERROR, "rank %u is at step %llu, rank 0 at step %llu", rank,
                             (unsigned long long)messages[rank].step,
                             (unsigned long long)messages[0].step);
    return VKN_OK;
}

vkn_status messages_exchange(struct parallel *parallel, const struct message *mine,
                             struct message *messages)
{
    messages[0] = *mine;
    if (!parallel)
        return VKN_OK;
    BASE_TRY(parallel_gather(parallel, mine, sizeof *mine, messages));
    BASE_TRY(check_status(parallel, messages));
    return check_steps(parallel, messages);
}

void messages_set_reason(struct message *message)
{
    if (message->status != VKN_OK)
        snprintf(message->reason, sizeof message->reason, "%s", vkn_last_error());
}

vkn_status train_sync_status(struct parallel *parallel, vkn_status status)
{
    struct message mine = {.status = status};
    messages_set_reason(&mine);
    struct message *messages = base_alloc(parallel_size(parallel), sizeof *messages);
    status = messages ? messages_exchange(parallel, &mine, messages) : VKN_ERROR;
    free(messages);
    return status;
}

/* The gather does not hang, because every other rank calls messages_exchange in any case. */
void train_announce_end(struct parallel *parallel, vkn_status status)
{
    BASE_KEEP_ERROR;
    struct message *messages = NULL, mine = {.status = status};
    messages_set_reason(&mine);
    if (status != VKN_OK && !parallel_is_over(parallel))
        messages = base_alloc(parallel_size(parallel), sizeof *messages);
    if (messages)
        (void)parallel_gather(parallel, &mine, sizeof mine, messages);
    parallel_mark_over(parallel);
    free(messages);
}

void train_leave(struct parallel *parallel, vkn_status status)
{
    BASE_KEEP_ERROR;
    train_announce_end(parallel, status);
    parallel_leave(parallel);
}
