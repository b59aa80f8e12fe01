/* Adds the table of samples per ray, and of PSNR after the same training time. */
#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "report/compare.h"
#include "report/progress_text.h"

/* Training PSNR is a mean over this last share of the time: single lines of the log are noisy. */
#define WINDOW    0.1
/* Tolerance of times, which are rounded in the files. */
#define SAME_TIME 1.001

/* Falls back to the log for runs of versions that did not record "sampling". */
static double recorded_or_logged(double recorded, double logged)
{
    return isfinite(recorded) ? recorded : logged;
}

static double evaluated_of(const struct run *run, double seconds)
{
    (void)seconds;
    return recorded_or_logged(run->summary.sampling.evaluated_per_ray,
                              compare_mean(run, RUN_MARCHED) / compare_mean(run, RUN_RAYS));
}

static double live_of(const struct run *run, double seconds)
{
    (void)seconds;
    return recorded_or_logged(run->summary.sampling.live_per_ray,
                              compare_mean(run, RUN_SAMPLES) / compare_mean(run, RUN_RAYS));
}

static double empty_of(const struct run *run, double seconds)
{
    (void)seconds;
    return 100.0 * run->summary.sampling.empty_share;
}

static double not_live_of(const struct run *run, double seconds)
{
    (void)seconds;
    return 100.0 * run->summary.sampling.not_live_share;
}

static double ray_rate_of(const struct run *run, double seconds)
{
    (void)seconds;
    return recorded_or_logged(run->summary.sampling.rays_per_second, compare_mean(run, RUN_RAYS));
}

/* Interpolates between the evaluations before and after `seconds`; NaN where one is missing. */
static double test_psnr_at(const struct run *run, double seconds)
{
    const struct run_evaluation *previous = NULL;
    for (size_t i = 0; i < run->summary.evaluation_count; i++) {
        const struct run_evaluation *at = &run->summary.evaluations[i];
        if (!isfinite(at->seconds) || !isfinite(at->psnr))
            continue;
        if (at->seconds >= seconds && previous && at->seconds > previous->seconds) {
            double fraction = (seconds - previous->seconds) / (at->seconds - previous->seconds);
            return previous->psnr + fraction * (at->psnr - previous->psnr);
        }
        if (at->seconds >= seconds)
            return at->seconds <= SAME_TIME * seconds ? at->psnr : (double)NAN;
        previous = at;
    }
    return previous && SAME_TIME * previous->seconds >= seconds ? previous->psnr : (double)NAN;
}

static double train_psnr_at(const struct run *run, double seconds)
{
    const struct run_metrics *metrics = &run->metrics;
    double sum = 0.0;
    size_t count = 0;
    for (size_t i = 0; i < metrics->count; i++) {
        double at = metrics->values[RUN_SECONDS][i], psnr = metrics->values[RUN_PSNR][i];
        if (at > (1.0 - WINDOW) * seconds && at <= SAME_TIME * seconds && isfinite(psnr)) {
            sum += psnr;
            count++;
        }
    }
    return count > 0 ? sum / (double)count : (double)NAN;
}

static const struct measure samples[] = {
    {"Samples per ray", evaluated_of, BETTER_NONE, FORMAT_NUMBER, 1},
    {"Live", live_of, BETTER_NONE, FORMAT_NUMBER, 1},
    {"Empty, %", empty_of, BETTER_NONE, FORMAT_NUMBER, 1},
    {"Not live, %", not_live_of, BETTER_NONE, FORMAT_NUMBER, 1},
    {"Rays/s", ray_rate_of, BETTER_HIGH, FORMAT_QUANTITY, 0},
    {"Test PSNR, dB", test_psnr_at, BETTER_HIGH, FORMAT_NUMBER, 2},
    {"Training PSNR, dB", train_psnr_at, BETTER_HIGH, FORMAT_NUMBER, 2},
};

/* Returns the kind of sampling from the summary, else from the configuration. */
static const char *kind_of(const struct run *run)
{
    const cJSON *march = cJSON_GetObjectItemCaseSensitive(run->config, "march");
    const cJSON *kind = cJSON_GetObjectItemCaseSensitive(march, "sampling");
    return run->summary.sampling.kind ? run->summary.sampling.kind : cJSON_GetStringValue(kind);
}

void compare_samples(struct base_text *page, const struct comparison *comparison)
{
    double seconds = compare_seconds(comparison);
    char time[32];
    page_section(page, "samples", "Samples and equal time");
    compare_table(page, comparison, "Samples", "Sampling", kind_of, samples, BASE_COUNT(samples));
    base_text_add(page,
                  "<p>Samples per ray: samples that the field is evaluated at. Live: samples with "
                  "a gradient. Empty: share of a ray's steps that the occupancy grid skips.");
    if (isfinite(seconds)) {
        report_duration(time, seconds);
        base_text_add(page,
                      " PSNR: after %s of training, which all runs have reached; of test views "
                      "only between two evaluations.",
                      time);
    }
    base_text_add(page, "</p>\n");
    base_text_add(page, "</section>\n");
}
