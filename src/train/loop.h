/* Declares the training loops of one and of several ranks, and what they share. */
#ifndef TRAIN_LOOP_H
#define TRAIN_LOOP_H

#include "parallel/parallel.h"
#include "step/step.h"
#include "train/internal.h"

/* Sums of the steps' statistics since the last report. */
struct window {
    double began; /* base_seconds() */
    struct step_sums sums;
    double span, idle;    /* seconds by the device's clock: in total; idle between intervals */
    double communication; /* seconds of communication that the device waited for */
    struct Stats last;    /* of the last step; grad_norm of the last step that has one, or -1 */
};

/* State of a vkn_trainer_run. */
struct loop {
    struct vkn_trainer *trainer;
    const struct vkn_train_run *run;
    double began;         /* base_seconds(); moved when the training time begins */
    uint64_t submitted;   /* step at which the last submitted command buffer ends */
    uint64_t from, limit; /* steps finished when the run began; step at which it ends */
    bool follows;         /* the rank is not rank 0, and rank 0's clock counts */
    bool has_fixed_limit; /* runs up to the limit, whatever the clock or a stop says */
    uint64_t end_steps[STEP_RECORDINGS]; /* last step of each command buffer; 0: not in flight */
    bool queued[STEP_RECORDINGS]; /* the command buffer was submitted while another was in flight */
    double wait_end;   /* base_seconds() when the last wait for an interval ended; 0: none yet */
    double device_end; /* end of the last update interval by the device's clock; 0: none yet */
    double submit_time, step_seconds; /* base_seconds() of the last submission; duration of a step
                                    as last measured, 0: not known */
    double due;                       /* seconds until the caller's between_steps is due */
    bool callback_expected;           /* `due` is finite */
    struct window window;
    struct vkn_train_stats reported; /* the last report */
};

/* Returns the seconds of training, earlier runs of a resumed training included. They count from
 * the trainer's UPDATE_INTERVAL-th finished step on: every pass has then run, and is compiled. */
double loop_elapsed(const struct loop *loop);
/* Returns whether the monitor has found that the training has failed. */
bool loop_ended_early(const struct loop *loop);
/* Returns whether the user has asked this rank to stop. */
bool loop_stopped(const struct loop *loop);
/* Returns whether the configuration's or the call's time limit has passed. */
bool loop_out_of_time(const struct loop *loop);
/* Adds the statistics of steps (from, to] from the device's ring, and sends warnings. */
void loop_read_stats(struct loop *loop, uint64_t from, uint64_t to);
/* Adds the device's idle time since the end of the previous interval. */
void loop_add_idle(struct loop *loop, const struct profile_interval *interval);
/* Reports the statistics since the last report, and resets them. */
void loop_report(struct loop *loop);
/* Logs that the first steps are waiting for the driver's compiler. */
void loop_log_slow_start(const struct vkn_trainer *trainer);
/* Sets the device's progress of time, and streams in the images of the next update interval. */
vkn_status loop_advance(struct loop *loop);

/* ---- the caller's function between two steps (callbacks.c) ---------------------------------- */

/* Calls vkn_train_run.due and stores when between_steps is due next. */
void loop_update_due(struct loop *loop);
/* Calls vkn_train_run.between_steps if it is due. Nothing may be in flight on the device. */
vkn_status loop_call_between_steps(struct loop *loop);
/* Returns the step at which the next command buffer ends: the end of the update interval, or the
 * step that is nearest to the caller's next call. */
uint64_t loop_next_stop(const struct loop *loop);

/* ---- several ranks --------------------------------------------------------------------------- */

/* Runs synchronous data parallelism (synchronous.c); the caller makes the last report. */
vkn_status synchronous_run(struct loop *loop);

struct message;
/* Context of ranks_all_reduce. */
struct reduction {
    struct parallel *parallel;
    vkn_status status; /* of the last all-reduce; if VKN_OK when a step fails, the device failed */
};
step_all_reduce ranks_all_reduce; /* context: struct reduction */
/* Adds the communication time since `began`. `hidden`: the device was computing meanwhile. */
void ranks_add_time(struct loop *loop, double began, bool hidden);
/* Stores rank 0's training time, and whether the user has asked any rank to stop. */
void ranks_read_messages(struct vkn_trainer *trainer, const struct message *messages);
/* Completes the error map, then returns VKN_ERROR if a rank's state differs from rank 0's. */
vkn_status ranks_check_hashes(struct vkn_trainer *trainer, struct message *messages);
/* Runs local SGD with parameter averaging (local_sgd.c); the caller makes the last report. */
vkn_status local_sgd_run(struct loop *loop);
/* Runs update intervals up to loop->limit (intervals.c); see `has_fixed_limit` for earlier ends. */
vkn_status loop_run_intervals(struct loop *loop);

/* ---- messages between ranks (messages.c) --------------------------------------------------- */

#define MESSAGE_REASON 720u

/* The message of each rank to all others, once a step. A rank that has failed sends its error. */
struct message {
    int32_t status; /* vkn_status; unless VKN_OK, only `reason` and `ended` count */
    char reason[MESSAGE_REASON];
    uint32_t ended;  /* the training has failed, as this rank's monitor has found */
    uint32_t stop;   /* the user has asked this rank to stop */
    uint32_t pause;  /* of rank 0: its run ends with this step */
    uint64_t step;   /* number of the step that the ranks are taking */
    uint64_t hash;   /* of everything that a checkpoint holds, at a pause */
    uint64_t target; /* of rank 0: step at which the next update interval ends */
    double seconds;  /* of rank 0: training time so far */
    struct RankStats sums[STEP_FIELDS]; /* the step's statistics, of each field */
};

/* Copies the last error into a message whose status is not VKN_OK. */
void messages_set_reason(struct message *message);
/* Gathers the messages of all ranks into messages[parallel_size]; `parallel` NULL: a single rank.
 * If any message has a failure, all ranks return that failure. */
vkn_status messages_exchange(struct parallel *parallel, const struct message *mine,
                             struct message *messages);

#endif
