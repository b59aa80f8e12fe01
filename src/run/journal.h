/* What a run says while it trains: metrics.jsonl and event files. */
#ifndef RUN_JOURNAL_H
#define RUN_JOURNAL_H

#include <vknerf/run.h>

#include "run/internal.h"

struct journal;

/* Goes on at `step` in the run directory; event files only when the configuration has them.
 * `folder` and `progress`, which pauses for warnings, must outlive *journal, which the caller
 * closes.
 */
vkn_status journal_open(const char *folder, uint64_t step, const struct vkn_config *config,
                        struct report_progress *progress, struct journal **journal);
/* A line and its scalars. A failure is a warning and ends the log that failed, not the training. */
void journal_add(struct journal *journal, const struct report_metrics *metrics);
/* An evaluation's means and its pictures on event files, in the same way. `targets`: the images
 * that the views should look like as well. */
void journal_add_evaluation(struct journal *journal, const struct vkn_evaluation *evaluation,
                            const struct run_pictures *pictures, bool targets);
/* VKN_OK, or VKN_ERROR with the message of the first failure. */
vkn_status journal_status(const struct journal *journal);
void journal_close(struct journal **journal);

#endif
