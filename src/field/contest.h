/* One pass of a path against the same of another: which is faster, measured by turns. */
#ifndef FIELD_CONTEST_H
#define FIELD_CONTEST_H

#include "field/workload.h"

enum field_pass {
    FIELD_PASS_FORWARD,
    FIELD_PASS_BACKWARD,
    FIELD_PASS_GRID, /* encode_samples and scatter_gradients, which run in as many workgroups as
                        field_forward does; not compared with anything */
    FIELD_PASSES,
};

struct field_contender;

/* Compiles the pass, runs it and compares with the workload's fp32, untuned. *contender is NULL
 * when it is wrong or does not compile, which trial->fault tells; the status is not VKN_OK when the
 * device is lost or memory runs out. The caller destroys *contender, before the workload. */
vkn_status field_contender_create(struct field_workload *work, const struct field_path *path,
                                  enum field_pass pass, struct field_contender **contender,
                                  struct field_trial *trial);
void field_contender_destroy(struct field_contender **contender);
/* Runs both by turns, for so many seconds but `least` times each; medians. reduce_gradients counts
 * with field_backward: the more workgroups, the more it has to add up. */
vkn_status field_contest(struct field_contender *const contenders[2], double seconds,
                         uint32_t least, double milliseconds[2]);

#endif
