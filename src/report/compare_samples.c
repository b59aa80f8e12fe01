/* What each run looks at along a ray, and how good it is after the same time. */
#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "report/compare.h"
#include "report/progress_text.h"

/* Training rays of so much of the time before count: single lines are noise. */
#define WINDOW    0.1
/* Times are rounded where they are written. */
#define SAME_TIME 1.001

/* Runs from before "sampling" was recorded have it in their logs. */
static double either(double recorded, double logged)
{
    return isfinite(recorded) ? recorded : logged;
}

static double evaluated_of(const struct run *run, double seconds)
{
    (void)seconds;
    return either(run->summary.sampling.evaluated,
                  compare_mean(run, RUN_MARCHED) / compare_mean(run, RUN_RAYS));
}

static double live_of(const struct run *run, double seconds)
{
    (void)seconds;
    return either(run->summary.sampling.live,
                  compare_mean(run, RUN_SAMPLES) / compare_mean(run, RUN_RAYS));
}

static double empty_of(const struct run *run, double seconds)
{
    (void)seconds;
    return 100.0 * run->summary.sampling.empty_share;
}

static double behind_of(const struct run *run, double seconds)
{
    (void)seconds;
    return 100.0 * run->summary.sampling.behind_share;
}

static double ray_rate_of(const struct run *run, double seconds)
{
    (void)seconds;
    return either(run->summary.sampling.rays_per_second, compare_mean(run, RUN_RAYS));
}

/* Straight between the evaluations before and after; NaN where there is none on one side. */
static double test_psnr_at(const struct run *run, double seconds)
{
    const struct run_evaluation *before = NULL;
    for (size_t i = 0; i < run->summary.evaluation_count; i++) {
        const struct run_evaluation *at = &run->summary.evaluations[i];
        if (!isfinite(at->seconds) || !isfinite(at->psnr))
            continue;
        if (at->seconds >= seconds && before && at->seconds > before->seconds) {
            double part = (seconds - before->seconds) / (at->seconds - before->seconds);
            return before->psnr + part * (at->psnr - before->psnr);
        }
        if (at->seconds >= seconds)
            return at->seconds <= SAME_TIME * seconds ? at->psnr : (double)NAN;
        before = at;
    }
    return before && SAME_TIME * before->seconds >= seconds ? before->psnr : (double)NAN;
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
    {"Samples a ray", evaluated_of, BETTER_NONE, FORMAT_NUMBER, 1},
    {"Live", live_of, BETTER_NONE, FORMAT_NUMBER, 1},
    {"Empty, %", empty_of, BETTER_NONE, FORMAT_NUMBER, 1},
    {"Behind, %", behind_of, BETTER_NONE, FORMAT_NUMBER, 1},
    {"Rays/s", ray_rate_of, BETTER_HIGH, FORMAT_QUANTITY, 0},
    {"Test PSNR, dB", test_psnr_at, BETTER_HIGH, FORMAT_NUMBER, 2},
    {"Training PSNR, dB", train_psnr_at, BETTER_HIGH, FORMAT_NUMBER, 2},
};

/* As the configuration has it where the summary does not say. */
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
                  "<p>Live: samples that count. Empty: steps of a ray that the occupancy grid "
                  "leaves out. Behind: samples that do not count.");
    if (isfinite(seconds)) {
        report_duration(time, seconds);
        base_text_add(page,
                      " PSNR: after %s of training, as long as every run has; of test views where "
                      "they were rendered before and after.",
                      time);
    }
    base_text_add(page, "</p>\n");
    base_text_add(page, "</section>\n");
}
