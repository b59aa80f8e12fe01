/* Declares the parts of the monitor: skipped steps and convergence. */
#ifndef MONITOR_INTERNAL_H
#define MONITOR_INTERNAL_H

#include "monitor/monitor.h"

/* Counts a step; returns whether it was skipped. */
bool skips_count(struct monitor *monitor, const struct Stats *stats);
/* Returns whether `line` has a new warning of skipped steps. */
bool skips_warn(struct monitor *monitor, const struct Stats *stats, char line[MONITOR_LINE]);
/* Returns whether enough steps were skipped for the summary. The search of a dynamic loss scale at
 * the beginning does not count. */
bool skips_are_many(const struct monitor *monitor);

/* Returns whether all parts of the step's loss are finite. */
bool monitor_has_loss(const struct Stats *stats);
/* Adds the step's loss and error; returns whether `line` has a new warning. */
bool convergence_step(struct monitor *monitor, const struct Stats *stats, bool skipped,
                      char line[MONITOR_LINE]);
/* Returns whether the last error is no better than the error of one colour. */
bool convergence_is_constant(const struct monitor *monitor);
/* Returns the PSNR in dB of a mean squared error. */
double convergence_psnr(double error);

#endif
