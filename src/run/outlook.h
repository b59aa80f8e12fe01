/* How long a run is going to take, said once where that is longer than most would wait. */
#ifndef RUN_OUTLOOK_H
#define RUN_OUTLOOK_H

#include <vknerf/trainer.h>

#include "base/base.h"

struct outlook {
    unsigned reports;     /* so far */
    uint64_t first_step;  /* of the first report, which the compilation of programs delays */
    double first_seconds; /* of training, at the first report */
};

/* Takes a report of training into account. True once, when the rates so far let a run that is
 * limited by its steps alone take more than ten minutes from here on: `line` then says so and what
 * ends sooner. `longest_side`: of the training images, in pixels; large ones are worth downscaling.
 */
bool outlook_tell(struct outlook *outlook, const struct vkn_config *config,
                  const struct vkn_train_stats *stats, uint32_t longest_side, char line[256]);

#endif
