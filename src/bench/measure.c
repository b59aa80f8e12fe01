/* Measures the time of a case: warm-up, repeated runs, median and quartiles. */
#include <math.h>
#include <stdlib.h>

#include "bench/internal.h"
#include "report/report.h"

#define MAX_ITERATIONS  4096u
#define MAX_REPETITIONS 1000u

bool bench_stopped(const struct bench *bench)
{
    const volatile sig_atomic_t *stop = bench->params->job->stop;
    return base_stop_asked(stop);
}

bool bench_next(struct bench *bench)
{
    if (bench->counting) {
        bench->total++;
        return false;
    }
    if (bench_stopped(bench))
        return false;
    report_progress_count(bench->progress, "measuring", bench->done++, bench->total);
    return true;
}

/* Returns the least length of a run: in a shorter one, submission dominates. */
static double least_seconds(const struct bench *bench)
{
    return bench->is_cpu ? 4e-3 : 2e-3;
}

/* Returns the length of the warm-up, which lets clocks rise. */
static double warm_up_seconds(const struct bench *bench)
{
    return bench->is_cpu ? 0.02 : bench->params->quick ? 0.05 : 0.2;
}

/* Returns the time after which a case is not repeated any more. */
static double most_seconds(const struct bench *bench)
{
    return bench->params->quick ? 1 : bench->is_cpu ? 1.5 : 4;
}

uint32_t bench_repetitions(const struct bench *bench)
{
    uint32_t given = bench->params->repetitions;
    if (given)
        return given < MAX_REPETITIONS ? given : MAX_REPETITIONS;
    return bench->params->quick ? 3 : bench->is_cpu ? 5 : 20;
}

static vkn_status record_iterations(struct bench *bench, bench_record record, void *context,
                                    uint32_t iterations, struct gpu_recording **recording)
{
    BASE_TRY(gpu_record_begin(bench->device, "bench", 2, recording));
    gpu_record_timestamp(*recording, "iterations");
    for (uint32_t iteration = 0; iteration < iterations; iteration++) {
        record(context, *recording, iteration);
        gpu_record_barrier(*recording);
    }
    gpu_record_timestamp(*recording, NULL);
    return gpu_record_end(*recording);
}

/* Measures the time by the device clock, or by the host clock if the device has no timestamps. */
static vkn_status run_recording(struct bench *bench, struct gpu_recording *recording,
                                double *seconds)
{
    if (bench_stopped(bench))
        return base_fail(VKN_INTERRUPTED, "interrupted");
    double began = base_seconds(), milliseconds = 0;
    BASE_TRY(gpu_submit(recording));
    BASE_TRY(gpu_wait(recording));
    *seconds = base_seconds() - began;
    const char *label = NULL;
    if (gpu_recording_times(recording, &label, &milliseconds, 1))
        *seconds = milliseconds * 1e-3;
    return VKN_OK;
}

vkn_status bench_run(struct bench *bench, bench_record record, void *context, uint32_t iterations,
                     double *seconds)
{
    struct gpu_recording *recording = NULL;
    vkn_status status = record_iterations(bench, record, context, iterations, &recording);
    if (status == VKN_OK)
        status = run_recording(bench, recording, seconds);
    gpu_recording_destroy(&recording);
    return status;
}

static int compare_seconds(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Interpolates linearly between neighbours. */
static double quantile(const double *sorted, uint32_t count, double share)
{
    double at = share * (count - 1);
    uint32_t below = (uint32_t)at, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

void bench_summarize(double *seconds, uint32_t count, struct bench_times *times)
{
    qsort(seconds, count, sizeof *seconds, compare_seconds);
    times->median = quantile(seconds, count, 0.5);
    times->lower = quantile(seconds, count, 0.25);
    times->upper = quantile(seconds, count, 0.75);
    times->least = seconds[0];
    times->most = seconds[count - 1];
    times->repetitions = count;
}

static vkn_status repeat(struct bench *bench, struct gpu_recording *recording,
                         struct bench_times *times)
{
    double seconds[MAX_REPETITIONS] = {0}, ignored, began = base_seconds();
    uint32_t count = 0, wanted = bench_repetitions(bench);
    do {
        BASE_TRY(run_recording(bench, recording, &ignored));
    } while (base_seconds() - began < warm_up_seconds(bench));
    for (began = base_seconds(); count < wanted; count++) {
        if (count >= 3 && base_seconds() - began > most_seconds(bench))
            break;
        BASE_TRY(run_recording(bench, recording, &seconds[count]));
        seconds[count] /= times->iterations;
    }
    bench_summarize(seconds, count, times);
    return VKN_OK;
}

vkn_status bench_measure(struct bench *bench, bench_record record, void *context,
                         struct bench_times *times)
{
    double once = 0;
    BASE_TRY(bench_run(bench, record, context, 1, &once));
    BASE_TRY(bench_run(bench, record, context, 1, &once)); /* the first run may compile or page */
    double iterations = ceil(least_seconds(bench) / fmax(once, 1e-7));
    times->iterations = iterations < 1                ? 1
                        : iterations > MAX_ITERATIONS ? MAX_ITERATIONS
                                                      : (uint32_t)iterations;
    times->by_device_clock = bench->capabilities->timestamp_period > 0;
    struct gpu_recording *recording = NULL;
    vkn_status status = record_iterations(bench, record, context, times->iterations, &recording);
    if (status == VKN_OK)
        status = repeat(bench, recording, times);
    gpu_recording_destroy(&recording);
    return status;
}
