/* Watches the gradients of a training for what nobody would notice: 16 bits that turn them into
 * zero, a norm that jumps, gradients that are zero, and a loss that is not finite. Host only; takes
 * a step's figures after the step. */
#ifndef TRAIN_WATCH_H
#define TRAIN_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/layout.h"

#define WATCH_NORMS 64  /* whose median is the usual norm */
#define WATCH_LINE  256 /* bytes of a warning, without newline */

enum watch_condition { WATCH_FLUSHED, WATCH_JUMP, WATCH_ZERO, WATCH_CONDITIONS };

/* Zero: nothing watched yet. */
struct watch {
    uint64_t steps;                    /* watched, whose gradient was finite */
    uint64_t counts[WATCH_CONDITIONS]; /* steps in which each held */
    bool told[WATCH_CONDITIONS];       /* once for each, as long as the struct lives */
    double flushed;           /* share of about the last WATCH_NORMS steps that flushed much */
    uint64_t lost;            /* steps whose loss was not finite; told at the first */
    uint32_t zeros;           /* in a row */
    uint32_t norm_count;      /* taken, the last WATCH_NORMS of which are kept */
    float norms[WATCH_NORMS]; /* above zero */
};

/* Whether there is something to tell that has not been told: `line` then holds it. */
bool watch_step(struct watch *watch, const struct Stats *stats, char line[WATCH_LINE]);
/* Whether anything has been told: `line` then says how often it held. */
bool watch_summary(const struct watch *watch, char line[WATCH_LINE]);

#endif
