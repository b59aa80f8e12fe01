/* Lists the columns of metrics.jsonl and of event files, and appends records to both. */
#ifndef REPORT_METRICS_H
#define REPORT_METRICS_H

#include "base/base.h"
#include "report/report.h"

enum run_column {
    RUN_STEP,
    RUN_SECONDS,
    RUN_LOSS,
    RUN_DISTORTION_LOSS,
    RUN_INTERLEVEL_LOSS,
    RUN_COARSE_LOSS,
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
    RUN_EXCHANGED,        /* image strips */
    RUN_ALL_REDUCE_SHARE, /* share of the time in all-reduces */
    RUN_KEPT_SHARE,
    RUN_KEEP_WEIGHT,
    RUN_COLUMNS
};

struct column {
    const char *name;     /* of the field in metrics.jsonl */
    const char *tag;      /* of the scalar in event files; NULL: not written there */
    bool is_integer;      /* uint64_t in struct report_metrics, else double */
    size_t offset;        /* in struct report_metrics */
    const char *old_name; /* name in metrics.jsonl of earlier versions; NULL: the same */
};

extern const struct column columns[RUN_COLUMNS];

/* Returns the value of a column whose `is_integer` is true. */
uint64_t column_count(const struct report_metrics *metrics, enum run_column column);
/* Returns the value of any column; NaN when not measured. */
double column_value(const struct report_metrics *metrics, enum run_column column);

/* Appends a record to the file of `descriptor`, completely or not at all: after a failure it
 * truncates the file to its previous size. `path` is for messages. */
vkn_status report_append(int descriptor, const char *path, const void *data, size_t size);

#endif
