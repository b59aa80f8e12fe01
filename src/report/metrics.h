/* What metrics.jsonl and event files share: the columns, and how a record is appended. */
#ifndef REPORT_METRICS_H
#define REPORT_METRICS_H

#include "base/base.h"
#include "report/report.h"

enum run_column {
    RUN_STEP,
    RUN_SECONDS,
    RUN_LOSS,
    RUN_PSNR,
    RUN_LEARNING_RATE,
    RUN_LOSS_SCALE,
    RUN_SKIPPED,
    RUN_UNDERFLOWED,
    RUN_RAYS,
    RUN_SAMPLES,
    RUN_MARCHED,
    RUN_GRAD_NORM,
    RUN_MEMORY,
    RUN_IDLE,
    RUN_DOWNSCALE,
    RUN_EXCHANGED,
    RUN_RANKS, /* what their exchanges take */
    RUN_COLUMNS
};

struct column {
    const char *name; /* of the field in metrics.jsonl */
    const char *tag;  /* of the scalar in event files; NULL: is none */
    bool whole;       /* uint64_t in struct report_metrics, else double */
    size_t offset;    /* there */
    const char *old;  /* name in metrics.jsonl of earlier versions; NULL: the same */
};

extern const struct column columns[RUN_COLUMNS];

/* A whole column's value. */
uint64_t column_count(const struct report_metrics *metrics, enum run_column column);
/* Any column's value; NaN for what was not measured. */
double column_value(const struct report_metrics *metrics, enum run_column column);

/* Appends to the file behind `descriptor`, all or nothing: what a full disk left of a record is cut
 * off again, so that a later one does not continue it. `path` is for messages. */
vkn_status report_append(int descriptor, const char *path, const void *data, size_t size);

#endif
