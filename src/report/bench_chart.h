/* The results of vknerf bench as a picture. */
#ifndef REPORT_BENCH_CHART_H
#define REPORT_BENCH_CHART_H

#include "base/base.h"

/* A self-contained SVG: rooflines with the products and MLPs under them, then bars: the rates of all paths
 * on one case of each operation, of those that most paths have the fastest. `json` is what docs/bench.md
 * describes. Fresh memory that the caller frees; NULL with an error recorded. */
char *report_bench_chart(const char *json);

#endif
