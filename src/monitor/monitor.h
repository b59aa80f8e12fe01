/* monitor: warns, from the statistics of steps, of gradients that underflow in f16, jump or are
 * zero, of skipped steps, and of a training that has diverged or learns nothing. */
#ifndef MONITOR_MONITOR_H
#define MONITOR_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/layout.h"

#define MONITOR_NORMS     64  /* steps in the median of norms and in the mean of errors */
#define MONITOR_LINE      512 /* bytes of a warning, which has no newline */
/* Steps in a row, without a finite loss or skipped at the lowest scale, that end a training. */
#define MONITOR_END_STEPS 64

/* Conditions of gradients that are warned of. */
enum monitor_condition { MONITOR_UNDERFLOW, MONITOR_JUMP, MONITOR_ZERO, MONITOR_CONDITIONS };

/* Reasons for the failure of a training. */
enum monitor_end {
    MONITOR_GOES_ON, /* no failure */
    MONITOR_NO_LOSS, /* the losses of the last MONITOR_END_STEPS steps were not finite */
    MONITOR_NO_STEP, /* the last MONITOR_END_STEPS steps were skipped at the lowest loss scale */
    MONITOR_DIVERGED /* the error has risen from a good one to the error of one colour */
};

/* Settings of the loss scale, from struct Config. */
struct monitor_scale {
    uint32_t kind;                 /* SCALE_* */
    float growth, backoff, lowest; /* factors at growth and at an overflow; smallest scale */
    float highest, underflow;      /* largest scale; share of gradients that may underflow */
    bool overflowed;               /* since the scale last grew */
    uint32_t interval, points;     /* good steps before growth; number of points in `schedule` */
    SchedulePoint schedule[MAX_SCHEDULE_POINTS];
};

/* Counts of skipped steps (skips.c). */
struct monitor_skips {
    uint32_t state_skipped; /* State.skipped_steps after the previous step */
    uint64_t steps;         /* all steps, skipped or not */
    uint64_t skipped;       /* all skipped steps */
    uint64_t searched; /* skipped before the first good step, while a dynamic scale decreases */
    bool settled;      /* the search for a dynamic scale is over, or there is none */
    uint64_t recent;   /* bits of the last 64 steps after the search: 1 if skipped */
    uint32_t in_row;   /* number of skipped steps up to the last step */
    bool warned_row, warned_share;
};

/* Convergence of the training (convergence.c). Errors are mean squared errors of training rays. */
struct monitor_convergence {
    float loss_scale;      /* of the last step */
    double constant_error; /* error of the best image of one colour; 0: unknown */
    enum monitor_end end;
    uint32_t end_step, since_step; /* step of the failure; first of the steps that led to it */
    uint32_t nonfinite_in_row, lowest_in_row; /* without finite loss; skipped at the lowest scale */
    uint32_t error_count;                     /* errors so far */
    float errors[MONITOR_NORMS];              /* ring of the last errors */
    double error, best;                       /* mean of the ring; lowest mean so far */
    uint32_t best_step, worse_in_row,
        constant_in_row; /* step of `best`; see WORSE_, DIVERGED_STEPS */
    bool warned_worse, warned_constant;
};

/* State of the monitor. Zero: no step yet, unscaled losses, unknown error of one colour. */
struct monitor {
    uint64_t steps;                      /* steps with a finite gradient */
    uint64_t counts[MONITOR_CONDITIONS]; /* steps in which each condition held */
    bool warned[MONITOR_CONDITIONS];     /* whether a warning was given, at most one each */
    double underflowed;                  /* moving average: share of steps with much underflow */
    double lost;                         /* the same, of steps whose scale cannot grow soon */
    uint64_t nonfinite_losses;           /* steps whose loss was not finite */
    uint32_t steps_of_norm;              /* good steps since the last norm, which counts for all */
    uint32_t zeros_in_row;               /* steps in a row with a zero gradient */
    uint32_t norm_count, norm_steps;     /* norms above zero so far; steps that they count for */
    float norms[MONITOR_NORMS];          /* ring of the last norms above zero */
    struct monitor_scale scale;
    struct monitor_skips skips;
    struct monitor_convergence convergence;
};

/* Starts to monitor a training that begins or is resumed. `skipped_steps`: State.skipped_steps so
 * far; `constant_error`: see struct monitor_convergence. */
void monitor_begin(struct monitor *monitor, const struct Config *constants, uint32_t skipped_steps,
                   double constant_error);
/* Adds a step's statistics. Returns whether `line` has a new warning. */
bool monitor_step(struct monitor *monitor, const struct Stats *stats, char line[MONITOR_LINE]);
/* Returns whether `line` has a summary: there was a warning, or many steps were skipped. */
bool monitor_summary(const struct monitor *monitor, char line[MONITOR_LINE]);
/* Returns whether the training has failed; `line` then says why. */
bool monitor_ended(const struct monitor *monitor, char line[MONITOR_LINE]);
struct base_text;
struct vkn_config;
/* Adds to `text` which settings to change after a failure. `policy`: non-default settings of the
 * precision policy, or ""; `skipped`: steps were skipped, else the loss was large or not finite. */
void monitor_advise(const struct monitor *monitor, const struct vkn_config *config,
                    const char *policy, bool skipped, struct base_text *text);
/* Writes to `line` why a training that has reached its limit at `step` has failed: the last losses
 * were not finite, or all steps were skipped. */
void monitor_describe_failure(const struct monitor *monitor, uint32_t step,
                              char line[MONITOR_LINE]);
/* Returns whether the last steps were neither skipped nor much worse than before. */
bool monitor_is_sound(const struct monitor *monitor);

#endif
