/* Compares the times of two backends for a pass, by running them alternately. */
#include "tuner/internal.h"

#include <math.h>
#include <stdlib.h>

#define MOST_ITERATIONS 101u

struct field_benchmark {
    struct workload_attempt attempt;
    struct gpu_recording *recording;
};

/* ---- passes ready to be timed ------------------------------------------------------------ */

static vkn_status check(struct field_benchmark *benchmark, enum field_trial_pass pass,
                        struct field_trial *trial)
{
    struct workload_attempt *attempt = &benchmark->attempt;
    struct workload_results results = {0};
    vkn_status status = workload_results_create(attempt->work, &results);
    if (status == VKN_OK)
        status = workload_compute(attempt, pass, &results, &trial->milliseconds);
    if (status == VKN_OK)
        workload_check(attempt->work, &attempt->backend, pass, &results, trial);
    workload_results_destroy(&results);
    return status;
}

vkn_status field_benchmark_create(struct field_workload *work, const struct field_backend *backend,
                                  enum field_trial_pass pass, struct field_benchmark **created,
                                  struct field_trial *trial)
{
    const bool wanted[FIELD_PASSES] = {[FIELD_PASS_FORWARD] = pass == FIELD_PASS_FORWARD,
                                       [FIELD_PASS_BACKWARD] = pass == FIELD_PASS_BACKWARD,
                                       [FIELD_PASS_GRID] = pass == FIELD_PASS_GRID};
    struct field_benchmark *benchmark = base_alloc(1, sizeof *benchmark);
    bool compiled = true;
    *created = NULL;
    *trial = (struct field_trial){0};
    if (!benchmark)
        return VKN_ERROR;
    vkn_status status = workload_open(&benchmark->attempt, work, backend, wanted, &compiled);
    if (!compiled)
        snprintf(trial->fault, sizeof trial->fault, "%s", vkn_last_error());
    else if (status == VKN_OK && pass != FIELD_PASS_GRID)
        status = check(benchmark, pass, trial);
    if (compiled && status == VKN_OK && !trial->fault[0])
        status = workload_record(&benchmark->attempt, pass, &benchmark->recording);
    if (!compiled || status != VKN_OK || trial->fault[0])
        field_benchmark_destroy(&benchmark);
    *created = benchmark;
    return compiled ? status : VKN_OK;
}

void field_benchmark_destroy(struct field_benchmark **destroyed)
{
    struct field_benchmark *benchmark = *destroyed;
    if (!benchmark)
        return;
    *destroyed = NULL;
    gpu_recording_destroy(&benchmark->recording);
    workload_close(&benchmark->attempt);
    free(benchmark);
}

/* ---- comparison -------------------------------------------------------------------------- */

vkn_status field_benchmark_compare(struct field_benchmark *const pair[2], double seconds,
                                   uint32_t least, double milliseconds[2])
{
    double times[2][MOST_ITERATIONS] = {{0}}, ignored, began;
    uint32_t count = 0;
    for (int i = 0; i < 2; i++)
        BASE_TRY(workload_time(pair[i]->recording, &ignored));
    for (began = base_seconds(); count < MOST_ITERATIONS; count++) {
        if (count >= least && base_seconds() - began >= seconds)
            break;
        /* The backends swap their order in every iteration, so that neither always runs second. */
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t which = (count + i) % 2;
            BASE_TRY(workload_time(pair[which]->recording, &times[which][count]));
        }
    }
    for (int i = 0; i < 2; i++)
        milliseconds[i] = base_median(times[i], count);
    return VKN_OK;
}
