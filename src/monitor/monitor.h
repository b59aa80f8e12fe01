/* Watches the figures of a training for what nobody would notice: 16 bits that turn gradients into
 * zero, a norm that jumps, gradients that are zero, steps that are skipped, and a training that has
 * diverged or learns nothing. Host only; takes a step's figures after the step. */
#ifndef MONITOR_MONITOR_H
#define MONITOR_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/layout.h"

#define MONITOR_NORMS 64  /* whose median is the usual norm; steps that errors are means of */
#define MONITOR_LINE  512 /* bytes of a warning, without newline */
#define MONITOR_END_STEPS \
    64 /* steps in a row without a finite loss, or skipped at the lowest scale */

enum monitor_condition { MONITOR_UNDERFLOW, MONITOR_JUMP, MONITOR_ZERO, MONITOR_CONDITIONS };

/* Why a training is over before its limit. */
enum monitor_end {
    MONITOR_GOES_ON,
    MONITOR_NO_LOSS, /* the losses of the last MONITOR_END_STEPS steps were not finite */
    MONITOR_NO_STEP, /* they were skipped, and no lower loss scale is to come */
    MONITOR_DIVERGED /* what was learnt is lost: the error is that of a picture of one colour */
};

/* How losses are scaled, as struct Config has it. */
struct monitor_scale {
    uint32_t kind; /* SCALE_* */
    float growth, backoff, lowest;
    uint32_t interval, points;
    SchedulePoint schedule[MAX_SCHEDULE_POINTS];
};

/* Steps that are skipped (skips.c). */
struct monitor_skips {
    uint32_t before;   /* State.skipped_steps after the step before */
    uint64_t steps;    /* watched, whether skipped or not */
    uint64_t skipped;  /* of these */
    uint64_t searched; /* of these before the first good one, while a dynamic scale comes down */
    bool settled;      /* no such search, or it is over */
    uint64_t recent;   /* a bit for each of the last 64 steps behind the search */
    uint32_t in_row;
    bool told_row, told_share;
};

/* Whether the training still learns (convergence.c). Errors are mean squared ones of training rays.
 */
struct monitor_convergence {
    float scale;           /* loss scale of the last step */
    double constant_error; /* error of the best picture of one colour; 0: not known */
    enum monitor_end end;
    uint32_t end_step, since; /* of the end; of what led to it */
    uint32_t nonfinite_in_row,
        lowest_in_row;           /* steps without a loss; skipped at the lowest scale */
    uint32_t count;              /* errors taken, the last MONITOR_NORMS of which */
    float errors[MONITOR_NORMS]; /* are kept, in a ring */
    double error, best;          /* mean of the ring; the lowest there was */
    uint32_t best_step, worse_in_row, constant_in_row;
    bool told_worse, told_constant;
};

/* Zero: nothing watched yet; losses are not scaled, and the error of one colour is not known. */
struct monitor {
    uint64_t steps;                      /* watched, whose gradient was finite */
    uint64_t counts[MONITOR_CONDITIONS]; /* steps in which each held */
    bool told[MONITOR_CONDITIONS];       /* once for each, as long as the struct lives */
    double underflowed;         /* share of about the last MONITOR_NORMS steps that flushed much */
    uint64_t lost;              /* steps whose loss was not finite; told at the first */
    uint32_t zeros;             /* in a row */
    uint32_t norm_count;        /* taken, the last MONITOR_NORMS of which are kept */
    float norms[MONITOR_NORMS]; /* above zero */
    struct monitor_scale scale;
    struct monitor_skips skips;
    struct monitor_convergence convergence;
};

/* A training that begins or goes on, `skipped_steps` having been skipped before. `plain`: see
 * struct monitor_convergence. */
void monitor_begin(struct monitor *monitor, const struct Config *constants, uint32_t skipped_steps,
                   double constant_error);
/* Whether there is something to tell that has not been told: `line` then holds it. */
bool monitor_step(struct monitor *monitor, const struct Stats *stats, char line[MONITOR_LINE]);
/* Whether anything has been told, or many steps were skipped: `line` then says how often it held.
 */
bool monitor_summary(const struct monitor *monitor, char line[MONITOR_LINE]);
/* Whether the training is over, since the step monitor->course.end_step: `line` then says why. */
bool monitor_ended(const struct monitor *monitor, char line[MONITOR_LINE]);
struct base_text;
struct vkn_config;
/* Adds what to change after monitor_ended. `policy`: settings of the precision policy that depart
 * from the default, or ""; `skipped`: the loss scale is why, else the loss is not finite, or large.
 */
void monitor_advise(const struct monitor *monitor, const struct vkn_config *config,
                    const char *policy, bool skipped, struct base_text *text);
/* Why a training that has come to its limit, the step, has failed: no loss in the end was finite,
 * or no step was taken. */
void monitor_describe_failure(const struct monitor *monitor, uint32_t step,
                              char line[MONITOR_LINE]);
/* Whether the last steps give no reason to doubt the weights: else they take no checkpoint's place.
 */
bool monitor_is_sound(const struct monitor *monitor);

#endif
