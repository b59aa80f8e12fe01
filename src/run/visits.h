/* Somebody who looks at a run while it trains: vkn_train_visitor, as a training meets it. */
#ifndef RUN_VISITS_H
#define RUN_VISITS_H

#include <vknerf/run.h>

#include "run/save.h"

struct run_visits {
    struct vkn_train_visitor visitor; /* complete; due is NULL: there is none */
    struct run_saver *saver;          /* of the trainer that is looked at */
};

/* `given` may be NULL. VKN_BAD_INPUT for one that cannot be asked. */
vkn_status run_visits_read(const struct vkn_train_visitor *given, struct run_visits *visits);
/* From here on, until the end, which takes over the status and its error. */
void run_visits_begin(struct run_visits *visits, struct run_saver *saver, const char *scene);
vkn_status run_visits_end(struct run_visits *visits, vkn_status status);
/* As vkn_train_run has them. */
double run_visits_due(const struct run_visits *visits);
vkn_status run_visits_receive(struct run_visits *visits);

#endif
