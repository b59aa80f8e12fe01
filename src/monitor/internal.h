/* What the monitor's files share. */
#ifndef MONITOR_INTERNAL_H
#define MONITOR_INTERNAL_H

#include "monitor/monitor.h"

/* Counts a step that was skipped or taken; returns whether it was skipped. */
bool skips_count(struct monitor *monitor, const struct Stats *stats);
/* Whether there is something new to tell of skipped steps. */
bool skips_warn(struct monitor *monitor, const struct Stats *stats, char line[MONITOR_LINE]);
/* Whether so many were skipped, beyond the search of a dynamic scale, that the end tells of it. */
bool skips_are_many(const struct monitor *monitor);

/* Takes the step's loss and error; returns whether there is something new to tell of them. */
bool convergence_step(struct monitor *monitor, const struct Stats *stats, bool skipped,
                      char line[MONITOR_LINE]);
/* Whether the last error is no better than that of one colour. */
bool convergence_is_constant(const struct monitor *monitor);
double convergence_psnr(double error);

#endif
