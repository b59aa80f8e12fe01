#include "train/loop.h"

#include <stdlib.h>

#include "train/train.h"

static vkn_status check_status(struct parallel *parallel, const struct note *notes)
{
    for (uint32_t rank = 0; rank < parallel_size(parallel); rank++) {
        if (notes[rank].status == VKN_OK)
            continue;
        parallel_end(parallel);
        return base_fail((vkn_status)notes[rank].status, "rank %u: %s", rank, notes[rank].reason);
    }
    return VKN_OK;
}

static vkn_status check_steps(const struct parallel *parallel, const struct note *notes)
{
    for (uint32_t rank = 1; rank < parallel_size(parallel); rank++)
        if (notes[rank].step != notes[0].step)
            return base_fail(VKN_ERROR, "rank %u is at step %llu, rank 0 at step %llu", rank,
                             (unsigned long long)notes[rank].step,
                             (unsigned long long)notes[0].step);
    return VKN_OK;
}

vkn_status notes_exchange(struct parallel *parallel, const struct note *mine, struct note *notes)
{
    notes[0] = *mine;
    if (!parallel)
        return VKN_OK;
    BASE_TRY(parallel_gather(parallel, mine, sizeof *mine, notes));
    BASE_TRY(check_status(parallel, notes));
    return check_steps(parallel, notes);
}

void notes_take_reason(struct note *note)
{
    if (note->status != VKN_OK)
        snprintf(note->reason, sizeof note->reason, "%s", vkn_last_error());
}

vkn_status train_meet(struct parallel *parallel, vkn_status status)
{
    struct note mine = {.status = status};
    notes_take_reason(&mine);
    struct note *notes = base_alloc(parallel_size(parallel), sizeof *notes);
    status = notes ? notes_exchange(parallel, &mine, notes) : VKN_ERROR;
    free(notes);
    return status;
}

/* All others come to an exchange of notes, whatever they do. */
void train_tell(struct parallel *parallel, vkn_status status)
{
    BASE_KEEP_ERROR;
    struct note *notes = NULL, mine = {.status = status};
    notes_take_reason(&mine);
    if (status != VKN_OK && !parallel_is_over(parallel))
        notes = base_alloc(parallel_size(parallel), sizeof *notes);
    if (notes)
        (void)parallel_gather(parallel, &mine, sizeof mine, notes);
    parallel_end(parallel);
    free(notes);
}

void train_leave(struct parallel *parallel, vkn_status status)
{
    BASE_KEEP_ERROR;
    train_tell(parallel, status);
    parallel_leave(parallel);
}
