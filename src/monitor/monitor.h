/* Watches the gradients of a training for what nobody would notice: 16 bits that turn them into
 * zero, a norm that jumps, gradients that are zero, and a loss that is not finite. Host only; takes
 * a step's figures after the step. */
#ifndef MONITOR_MONITOR_H
#define MONITOR_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/layout.h"

#define MONITOR_NORMS 64  /* whose median is the usual norm */
#define MONITOR_LINE  256 /* bytes of a warning, without newline */

enum monitor_condition { MONITOR_FLUSHED, MONITOR_JUMP, MONITOR_ZERO, MONITOR_CONDITIONS };

/* Zero: nothing watched yet. */
struct monitor {
    uint64_t steps;                      /* watched, whose gradient was finite */
    uint64_t counts[MONITOR_CONDITIONS]; /* steps in which each held */
    bool told[MONITOR_CONDITIONS];       /* once for each, as long as the struct lives */
    double flushed;             /* share of about the last MONITOR_NORMS steps that flushed much */
    uint64_t lost;              /* steps whose loss was not finite; told at the first */
    uint32_t zeros;             /* in a row */
    uint32_t norm_count;        /* taken, the last MONITOR_NORMS of which are kept */
    float norms[MONITOR_NORMS]; /* above zero */
};

/* Whether there is something to tell that has not been told: `line` then holds it. */
bool monitor_step(struct monitor *monitor, const struct Stats *stats, char line[MONITOR_LINE]);
/* Whether anything has been told: `line` then says how often it held. */
bool monitor_summary(const struct monitor *monitor, char line[MONITOR_LINE]);

#endif
