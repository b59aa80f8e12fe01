/* Formats progress lines; progress.c shows them. */
#ifndef REPORT_PROGRESS_TEXT_H
#define REPORT_PROGRESS_TEXT_H

#include "report/report.h"

#define REPORT_LINE_SIZE 512

/* Limits of a training; 0: unlimited. */
struct report_goal {
    uint64_t steps;
    double seconds;
};

/* Formats "step 1234/5000 (25%)  loss 0.0012  psnr 28.31 dB  41.2 steps/s  ...  ETA 1:35" in at
 * most `width` columns: the least important parts are dropped first. */
void report_train_line(char line[REPORT_LINE_SIZE], size_t width, const struct report_goal *goal,
                       const struct report_metrics *metrics, double steps_per_second);
/* Formats "evaluating 3/25 (12%)  8.1/s  ETA 0:03". `seconds`: since the count began. */
void report_count_line(char line[REPORT_LINE_SIZE], size_t width, const char *what, size_t done,
                       size_t total, double seconds);
/* Formats "0:31", "1:02:03", "2 d 3 h"; "-" when not finite or negative. */
void report_duration(char text[32], double seconds);
/* Formats "1.15 M", "41.2", "0.0012" with three digits; "-" when not finite. */
void report_quantity(char text[32], double value);

#endif
