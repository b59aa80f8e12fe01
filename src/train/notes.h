/* What every rank tells all others in each step. A rank that cannot go on tells why in its place.
 */
#ifndef TRAIN_NOTES_H
#define TRAIN_NOTES_H

#include "parallel/parallel.h"
#include "pipeline/pipeline.h"

#define NOTE_REASON 720u

struct note {
    int32_t status; /* vkn_status; with any but VKN_OK these alone follow: */
    char reason[NOTE_REASON];
    uint32_t ended;  /* with such a status: it has seen that the training is over */
    uint32_t stop;   /* it was told to */
    uint32_t pause;  /* of rank 0: its run ends with this step */
    uint64_t step;   /* that is being taken */
    uint64_t hash;   /* of everything that a checkpoint holds, at a pause */
    uint64_t target; /* of rank 0: step up to which each goes by itself */
    double seconds;  /* of rank 0: training so far */
    struct Found sums[STEP_FIELDS];
};

/* Of a note whose status is not VKN_OK: the last error. */
void notes_take_reason(struct note *note);
/* Fills notes[parallel_size] with those of all; `parallel` NULL: alone. The status of one that
 * cannot go on is everybody's. */
vkn_status notes_exchange(struct parallel *parallel, const struct note *mine, struct note *notes);

#endif
