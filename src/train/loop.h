/* What the training loops share: the figures of steps, and what people are told of them. */
#ifndef TRAIN_LOOP_H
#define TRAIN_LOOP_H

#include "parallel/parallel.h"
#include "step/step.h"
#include "train/internal.h"

/* Figures since the last report. */
struct window {
    double began; /* base_seconds() */
    uint64_t steps;
    double rays, samples, live, loss, square, underflowed;
    double span, idle; /* seconds on the device's clock */
    double exchange;   /* seconds of exchanges with other ranks */
    struct Stats last;
};

struct loop {
    struct vkn_trainer *trainer;
    const struct vkn_train_run *run;
    double began;                    /* base_seconds() */
    uint64_t submitted;              /* steps that the submitted recordings reach */
    uint64_t from, limit;            /* steps */
    bool follows;                    /* rank 0, whose clock counts */
    bool fixed_limit;                /* to the limit, whatever the clock and others say */
    uint64_t reach[STEP_RECORDINGS]; /* steps reached by each recording in flight; 0: none */
    bool queued[STEP_RECORDINGS];    /* another one was in flight when it was submitted */
    double waited;                   /* base_seconds() when the last period had come in; 0: none */
    double device_end;               /* of the last period, on the device's clock; 0: none yet */
    double submit_time,
        step_seconds;     /* when the last was submitted; that a step took, 0: not known */
    double due;           /* seconds until somebody who looks wants a visit, when last asked */
    bool visit_requested; /* somebody does */
    struct window window;
    struct vkn_train_stats reported; /* last */
};

double loop_elapsed(const struct loop *loop); /* seconds of training, all resumes together */
/* Share of the training by the clock, which a run that shall repeat does not look at. */
double loop_time_progress(const struct loop *loop);
/* The monitor has seen that the training is over before its limit. */
bool loop_ended_early(const struct loop *loop);
bool loop_stopped(const struct loop *loop);
bool loop_out_of_time(const struct loop *loop);
/* Adds the ring's entries of steps (from, to]. */
void loop_read_stats(struct loop *loop, uint64_t from, uint64_t to);
/* From the end of the period before, by the device's clock. */
void loop_add_idle(struct loop *loop, const struct profile_interval *period);
void loop_report(struct loop *loop);
void loop_log_slow_start(const struct vkn_trainer *trainer);
/* Those of the period to come. */
vkn_status loop_exchange_images(struct loop *loop);

/* Somebody who looks (callbacks.c). Asks when; then receives, with nothing in flight, if it is now.
 */
void loop_update_due(struct loop *loop);
vkn_status loop_call_visit(struct loop *loop);
/* Where the device stops by itself: a period's end, or the step that is nearest to the next visit.
 */
uint64_t loop_next_stop(const struct loop *loop);

/* Runs steps that several ranks take together (synchronous.c), as vkn_trainer_run for loop->run;
 * the caller reports the last ones. */
vkn_status synchronous_run(struct loop *loop);
struct message;
/* Ranks that exchange numbers of the step's, and what became of it: where that is VKN_OK, it was
 * the device that failed. */
struct reduction {
    struct parallel *parallel;
    vkn_status status;
};
step_all_reduce ranks_all_reduce; /* context: struct company */
/* The time of an exchange counts, but for what passes while this rank's device still computes. */
void ranks_add_time(struct loop *loop, double began, bool hidden);
/* What rank 0's clock says, and whether any rank was told to stop. */
void ranks_read_messages(struct vkn_trainer *trainer, const struct message *messages);
/* Ranks that have come apart train something that no checkpoint holds: VKN_ERROR. `notes` has room
 * for all. */
vkn_status ranks_check_hashes(struct vkn_trainer *trainer, struct message *messages);
/* The same of ranks that take periods alone, and average what they have come to (local_sgd.c). */
vkn_status local_sgd_run(struct loop *loop);
/* To loop->limit, period by period; where they are `bound`, nothing else ends them. */
vkn_status loop_run_intervals(struct loop *loop);

/* ---- what ranks tell each other (messages.c) ----------------------------------------------------
 */

#define MESSAGE_REASON 720u

/* What every rank tells all others in each step. A rank that cannot go on tells why in its place.
 */
struct message {
    int32_t status; /* vkn_status; with any but VKN_OK these alone follow: */
    char reason[MESSAGE_REASON];
    uint32_t ended;  /* with such a status: it has seen that the training is over */
    uint32_t stop;   /* it was told to */
    uint32_t pause;  /* of rank 0: its run ends with this step */
    uint64_t step;   /* that is being taken */
    uint64_t hash;   /* of everything that a checkpoint holds, at a pause */
    uint64_t target; /* of rank 0: step up to which each goes by itself */
    double seconds;  /* of rank 0: training so far */
    struct RankStats sums[STEP_FIELDS];
};

/* Of a note whose status is not VKN_OK: the last error. */
void messages_set_reason(struct message *message);
/* Fills notes[parallel_size] with those of all; `parallel` NULL: alone. The status of one that
 * cannot go on is everybody's. */
vkn_status messages_exchange(struct parallel *parallel, const struct message *mine,
                             struct message *messages);

#endif
