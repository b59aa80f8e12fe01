/* Tunes a backend: tries other tile sizes and numbers of workgroups for the field's passes, one
 * tunable at a time, against the best so far, and saves the fastest. */
#include "bench/internal.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "tuner/tuner.h"
#include "step/step.h"

/* A value must save 3% of the time; repeated medians on one machine differ by less. */
#define WORTHWHILE 0.97
#define SWEEPS     2

struct tuner {
    struct bench *bench;
    struct vkn_config config; /* effective; has the backend's precision */
    struct field_model model;
    struct field_backend start, best;
    struct field_workload *work;
    struct field_benchmark *untuned[FIELD_PASSES], *fastest[FIELD_PASSES]; /* of start; of best */
    double began, deadline; /* base_seconds(); the search ends soon after the deadline */
    bool changed;           /* the current sweep has found a faster value */
    cJSON *candidates;
};

static const char *const pass_names[FIELD_PASSES] = {
    [FIELD_PASS_FORWARD] = "field_forward",
    [FIELD_PASS_BACKWARD] = "field_backward",
    [FIELD_PASS_GRID] = "encode, scatter",
};

static bool is_over(const struct tuner *tuner)
{
    return bench_stopped(tuner->bench) || base_seconds() > tuner->deadline;
}

/* ---- comparing times ----------------------------------------------------------------------- */

/* Returns the seconds for comparing two backends, in at least least_iterations iterations each. */
static double comparison_seconds(const struct tuner *tuner)
{
    return tuner->bench->params->quick ? 0.05 : tuner->bench->is_cpu ? 0.8 : 0.2;
}

static uint32_t least_iterations(const struct tuner *tuner)
{
    return tuner->bench->params->quick ? 3 : tuner->bench->is_cpu ? 5 : 9;
}

static bool affects(enum field_tunable tunable, int pass)
{
    switch (tunable) {
    case FIELD_OWNED_ROWS:
        return pass != FIELD_PASS_GRID;
    case FIELD_SAMPLE_LANES:
        return pass == FIELD_PASS_GRID;
    case FIELD_FORWARD_ROWS:
    case FIELD_FORWARD_SIZE:
        return pass == FIELD_PASS_FORWARD;
    case FIELD_FORWARD_GROUPS:
        return pass != FIELD_PASS_BACKWARD;
    default:
        return pass == FIELD_PASS_BACKWARD;
    }
}

/* Destroys the benchmark unless it is the untuned or the fastest one. */
static void release(struct tuner *tuner, int pass, struct field_benchmark **benchmark)
{
    if (*benchmark != tuner->untuned[pass] && *benchmark != tuner->fastest[pass])
        field_benchmark_destroy(benchmark);
    *benchmark = NULL;
}

/* Sums the times of the passes that have contenders, for the best and for the new backend. */
static vkn_status compare_passes(struct tuner *tuner,
                                 struct field_benchmark *contenders[FIELD_PASSES],
                                 double milliseconds[2])
{
    for (int pass = 0; pass < FIELD_PASSES; pass++) {
        double both[2];
        struct field_benchmark *const pair[2] = {tuner->fastest[pass], contenders[pass]};
        if (!contenders[pass])
            continue;
        BASE_TRY(field_benchmark_compare(pair, comparison_seconds(tuner), least_iterations(tuner),
                                         both));
        milliseconds[0] += both[0];
        milliseconds[1] += both[1];
    }
    return VKN_OK;
}

static void report_candidate(struct tuner *tuner, enum field_tunable tunable, uint32_t value,
                             const double milliseconds[2], const char *fault, bool taken)
{
    char name[FIELD_SHADER_NAME];
    uint32_t current = field_backend_tuning(&tuner->best).values[tunable];
    field_backend_describe(&tuner->start, name);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "tunable", field_tunable_name(tunable));
    cJSON_AddNumberToObject(json, "from", current);
    cJSON_AddNumberToObject(json, "to", value);
    if (fault[0]) {
        cJSON_AddStringToObject(json, "fault", fault);
        base_log(BASE_LOG_INFO, "%s: %s %u -> %u: wrong: %s", name, field_tunable_name(tunable),
                 current, value, fault);
    } else {
        cJSON_AddNumberToObject(json, "milliseconds_before", milliseconds[0]);
        cJSON_AddNumberToObject(json, "milliseconds", milliseconds[1]);
        base_log(BASE_LOG_INFO, "%s: %s %u -> %u: %.3g -> %.3g ms, %.2f times as fast%s", name,
                 field_tunable_name(tunable), current, value, milliseconds[0], milliseconds[1],
                 milliseconds[0] / milliseconds[1], taken ? ": taken" : "");
    }
    cJSON_AddBoolToObject(json, "taken", taken);
    cJSON_AddItemToArray(tuner->candidates, json);
}

/* ---- candidates ---------------------------------------------------------------------------- */

static void adopt(struct tuner *tuner, const struct field_backend *backend,
                  struct field_benchmark *contenders[FIELD_PASSES])
{
    for (int pass = 0; pass < FIELD_PASSES; pass++) {
        struct field_benchmark *old = tuner->fastest[pass];
        if (!contenders[pass])
            continue;
        tuner->fastest[pass] = contenders[pass];
        release(tuner, pass, &old);
    }
    tuner->best = *backend;
    tuner->changed = true;
}

static vkn_status create_benchmarks(struct tuner *tuner, enum field_tunable tunable,
                                    const struct field_backend *backend,
                                    struct field_benchmark *contenders[FIELD_PASSES],
                                    struct field_trial *trial)
{
    for (int pass = 0; pass < FIELD_PASSES && !trial->fault[0]; pass++)
        if (affects(tunable, pass))
            BASE_TRY(field_benchmark_create(tuner->work, backend, (enum field_trial_pass)pass,
                                            &contenders[pass], trial));
    return VKN_OK;
}

static vkn_status try_value(struct tuner *tuner, enum field_tunable tunable, uint32_t value,
                            bool *taken)
{
    struct field_benchmark *contenders[FIELD_PASSES] = {NULL};
    struct field_trial trial = {0};
    struct field_backend backend = tuner->start;
    struct field_tuning tuning = field_backend_tuning(&tuner->best);
    double milliseconds[2] = {0};
    tuning.values[tunable] = value;
    *taken = false;
    if (!field_backend_tune(&tuning, &tuner->model, tuner->bench->capabilities, &backend))
        return VKN_OK;
    vkn_status status = create_benchmarks(tuner, tunable, &backend, contenders, &trial);
    /* A backend may need too much memory; this counts as its fault. */
    if (status != VKN_OK && status != VKN_NO_DEVICE) {
        snprintf(trial.fault, sizeof trial.fault, "%s", vkn_last_error());
        status = VKN_OK;
    }
    if (status == VKN_OK && !trial.fault[0])
        status = compare_passes(tuner, contenders, milliseconds);
    if (status == VKN_OK) {
        *taken = !trial.fault[0] && milliseconds[1] <= WORTHWHILE * milliseconds[0];
        report_candidate(tuner, tunable, value, milliseconds, trial.fault, *taken);
    }
    if (*taken)
        adopt(tuner, &backend, contenders);
    for (int pass = 0; pass < FIELD_PASSES; pass++)
        release(tuner, pass, &contenders[pass]);
    return status;
}

/* ---- search -------------------------------------------------------------------------------- */

/* Tries values in one direction as long as the time decreases. */
static vkn_status climb(struct tuner *tuner, enum field_tunable tunable, const uint32_t *values,
                        uint32_t count, uint32_t from, int direction, bool *any_taken)
{
    bool taken = true;
    for (uint32_t i = from + (uint32_t)direction; i < count && taken && !is_over(tuner);
         i += (uint32_t)direction) {
        BASE_TRY(try_value(tuner, tunable, values[i], &taken));
        *any_taken = *any_taken || taken;
    }
    return VKN_OK;
}

static vkn_status tune_one(struct tuner *tuner, enum field_tunable tunable)
{
    uint32_t values[FIELD_MAX_OPTIONS], at = 0;
    uint32_t count = field_tuning_options(tunable, &tuner->model, tuner->bench->capabilities,
                                          &tuner->best, values);
    uint32_t current = field_backend_tuning(&tuner->best).values[tunable];
    bool any_taken = false;
    while (at < count && values[at] < current)
        at++;
    BASE_TRY(climb(tuner, tunable, values, count, at, 1, &any_taken));
    return any_taken ? VKN_OK : climb(tuner, tunable, values, count, at, -1, &any_taken);
}

/* Searches by coordinate descent, within a time limit that excludes the preparation, which mainly
 * compiles. */
static vkn_status search(struct tuner *tuner)
{
    const struct bench *bench = tuner->bench;
    tuner->deadline = base_seconds() + (bench->params->quick ? 20 : bench->is_cpu ? 100 : 60);
    for (int sweep = 0; sweep < SWEEPS && (sweep == 0 || tuner->changed); sweep++) {
        tuner->changed = false;
        for (int i = 0; i < FIELD_TUNABLES && !is_over(tuner); i++)
            BASE_TRY(tune_one(tuner, (enum field_tunable)i));
    }
    return VKN_OK;
}

/* Compares the best backend once more with the untuned one, since it may be best by chance: it must
 * be faster by the margin in at least one pass, not slower in any other, and faster in the sum. */
static vkn_status confirm(struct tuner *tuner, double milliseconds[FIELD_PASSES][2])
{
    bool faster = false, slower = false;
    double sums[2] = {0};
    for (int pass = 0; pass < FIELD_PASSES; pass++) {
        struct field_benchmark *const pair[2] = {tuner->untuned[pass], tuner->fastest[pass]};
        BASE_TRY(field_benchmark_compare(pair, 2 * comparison_seconds(tuner),
                                         2 * least_iterations(tuner), milliseconds[pass]));
        bool same = pair[0] == pair[1];
        faster = faster || (!same && milliseconds[pass][1] <= WORTHWHILE * milliseconds[pass][0]);
        slower = slower || (!same && WORTHWHILE * milliseconds[pass][1] > milliseconds[pass][0]);
        for (int i = 0; i < 2 && !same; i++)
            sums[i] += milliseconds[pass][i];
    }
    if (faster && !slower && sums[1] < sums[0])
        return VKN_OK;
    tuner->best = tuner->start;
    for (int pass = 0; pass < FIELD_PASSES; pass++)
        milliseconds[pass][1] = milliseconds[pass][0];
    return VKN_OK;
}

/* ---- result -------------------------------------------------------------------------------- */

static cJSON *tunables_json(const struct tuner *tuner)
{
    struct field_tuning before = field_backend_tuning(&tuner->start);
    struct field_tuning after = field_backend_tuning(&tuner->best);
    cJSON *json = cJSON_CreateArray();
    for (int i = 0; i < FIELD_TUNABLES; i++) {
        uint32_t values[FIELD_MAX_OPTIONS];
        if (!field_tuning_options((enum field_tunable)i, &tuner->model, tuner->bench->capabilities,
                                  &tuner->start, values))
            continue;
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", field_tunable_name((enum field_tunable)i));
        cJSON_AddNumberToObject(row, "default", before.values[i]);
        cJSON_AddNumberToObject(row, "chosen", after.values[i]);
        cJSON_AddItemToArray(json, row);
    }
    return json;
}

static cJSON *result_json(struct tuner *tuner, double milliseconds[FIELD_PASSES][2], bool saved)
{
    char text[FIELD_TUNING_TEXT];
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "path", field_backend_describe(&tuner->start, text));
    cJSON_AddStringToObject(json, "result", field_tuning_describe(&tuner->best, text));
    cJSON_AddBoolToObject(json, "remembered", saved && tuner->best.tuned);
    cJSON_AddNumberToObject(json, "seconds", base_seconds() - tuner->began);
    cJSON_AddItemToObject(json, "tunables", tunables_json(tuner));
    cJSON *passes = cJSON_AddArrayToObject(json, "passes");
    for (int pass = 0; pass < FIELD_PASSES; pass++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", pass_names[pass]);
        cJSON_AddNumberToObject(row, "default_milliseconds", milliseconds[pass][0]);
        cJSON_AddNumberToObject(row, "chosen_milliseconds", milliseconds[pass][1]);
        cJSON_AddNumberToObject(row, "speedup", milliseconds[pass][0] / milliseconds[pass][1]);
        cJSON_AddItemToArray(passes, row);
    }
    cJSON_AddItemToObject(json, "candidates", tuner->candidates);
    tuner->candidates = NULL;
    return json;
}

static bool save_tuning(const struct tuner *tuner, double milliseconds[FIELD_PASSES][2])
{
    const struct field_speedups speedups = {
        .forward = milliseconds[FIELD_PASS_FORWARD][0] / milliseconds[FIELD_PASS_FORWARD][1],
        .backward = milliseconds[FIELD_PASS_BACKWARD][0] / milliseconds[FIELD_PASS_BACKWARD][1],
    };
    /* Not saved: results under injected faults or without the self-test, and an interrupted search
     * that found nothing. */
    if (gpu_fault_injected(NULL) || gpu_disabled("self_test") ||
        (bench_stopped(tuner->bench) && !tuner->best.tuned))
        return false;
    vkn_status status =
        field_tuning_save(tuner->bench->device, &tuner->model, &tuner->best, &speedups);
    if (status != VKN_OK)
        base_log(BASE_LOG_WARNING, "the tuning is not saved: %s", vkn_last_error());
    return status == VKN_OK;
}

/* ---- entry point --------------------------------------------------------------------------- */

/* Chooses the backend that a run with the default model would use, without its saved tuning. */
static vkn_status choose_backend(struct tuner *tuner)
{
    const struct vkn_bench_params *params = tuner->bench->params;
    const struct vkn_scene scene = {.downscale = 1, .scale = 1, .aabb_scale = 1};
    struct field_choice choice;
    tuner->config = (struct vkn_config){
        .precision = params->precision,
        .mlp = {.density_width = params->width, .color_width = params->width},
        .batch.samples = params->batch,
    };
    BASE_TRY(setup_choose_precision(tuner->bench->device, &scene, &tuner->config, &choice));
    BASE_TRY(setup_resolve_config(&tuner->config, &scene, tuner->bench->capabilities));
    BASE_TRY(field_model_create(&tuner->config, &tuner->model));
    BASE_TRY(field_backend_create(&tuner->config, &tuner->model, tuner->bench->capabilities,
                                  &tuner->start));
    tuner->best = tuner->start;
    return VKN_OK;
}

static vkn_status start(struct tuner *tuner)
{
    struct field_trial trial = {0};
    BASE_TRY(field_workload_create_large(tuner->bench->device, &tuner->config,
                                         tuner->config.batch.samples, &tuner->work));
    for (int pass = 0; pass < FIELD_PASSES; pass++) {
        BASE_TRY(field_benchmark_create(tuner->work, &tuner->start, (enum field_trial_pass)pass,
                                        &tuner->untuned[pass], &trial));
        if (trial.fault[0])
            return base_fail(VKN_ERROR, "cannot tune: the untuned backend fails: %s", trial.fault);
        tuner->fastest[pass] = tuner->untuned[pass];
    }
    return VKN_OK;
}

static vkn_status tune(struct tuner *tuner)
{
    double milliseconds[FIELD_PASSES][2] = {{0}};
    BASE_TRY(choose_backend(tuner));
    BASE_TRY(start(tuner));
    BASE_TRY(search(tuner));
    BASE_TRY(confirm(tuner, milliseconds));
    bool saved = save_tuning(tuner, milliseconds);
    tuner->bench->tuning = result_json(tuner, milliseconds, saved);
    return bench_stopped(tuner->bench) ? base_fail(VKN_INTERRUPTED, "interrupted") : VKN_OK;
}

vkn_status bench_tune(struct bench *bench)
{
    struct tuner tuner = {
        .bench = bench,
        .began = base_seconds(),
        .candidates = cJSON_CreateArray(),
    };
    vkn_status status = tune(&tuner);
    for (int pass = 0; pass < FIELD_PASSES; pass++) {
        if (tuner.fastest[pass] != tuner.untuned[pass])
            field_benchmark_destroy(&tuner.fastest[pass]);
        field_benchmark_destroy(&tuner.untuned[pass]);
    }
    field_workload_destroy(&tuner.work);
    cJSON_Delete(tuner.candidates);
    return status;
}
