/* What the files of bench.svg share. */
#ifndef REPORT_BENCH_CHART_H
#define REPORT_BENCH_CHART_H

#include "base/base.h"

struct cJSON;

/* User units, about one pixel each. */
#define CHART_WIDTH 1000.0
#define CHART_LEFT  70.0

#define CHART_COLORS 10u
extern const char *const chart_colors[CHART_COLORS];

/* A text of a class of the style: "middle", "end", "start", "title", "faint". */
void chart_text(struct base_text *svg, double x, double y, const char *kind, const char *text);
/* Return the text or the number of a member; "" or NaN where there is none. */
const char *chart_text_of(const struct cJSON *object, const char *name);
double chart_number_of(const struct cJSON *object, const char *name);

/* PSNR over seconds of training, of "sampling" of the results; NULL: nothing. Returns where what
 * comes next begins. */
double chart_sampling(struct base_text *svg, const struct cJSON *sampling, double y);

#endif
