/* Implements vkn_find_batch: searches for the largest batch that fits a device and is stable. */
#include <vknerf/run.h>

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "tuner/tuner.h"
#include "config/config.h"
#include "run/training.h"
#include "step/step.h"
#include "train/train.h"
#include "run/internal.h"

#define LEAST_SAMPLES     1024u
#define MOST_SAMPLES      (1u << 24)
#define MOST_RAYS         (1u << 22)
#define SEARCH_SECONDS    120.0
/* Steps of a trial. The warmup is long enough for the ray count, which at most doubles from step to
 * step, and for a loss scale that halves from 65536 to 1 in 16 steps. */
#define WARMUP_STEPS      4u
#define MOST_WARMUP_STEPS 20u
#define MEASURED_STEPS    4u
#define MOST_MEASURED     64u
#define MEASURED_SECONDS  1.5
#define MOST_TRIALS       24u

/* State of vkn_find_batch. */
struct search {
    const struct vkn_batch_params *params;
    struct vkn_batch_search *result;
    struct run_beginning begin;
    struct vkn_config config; /* effective, apart from the batch */
    double rays_per_sample;
    vkn_context *context;
    vkn_scene *scene;
    struct report_progress *progress;
    double deadline;           /* base_seconds() */
    double seconds_per_sample; /* of the last trial; 0: none yet */
    vkn_status failed;         /* of the first trial that failed; VKN_OK: none */
    char *failure;
};

__attribute__((format(__printf__, 3, 4))) static void
judge(struct vkn_batch_trial *trial, enum vkn_batch_verdict verdict, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(trial->reason, sizeof trial->reason, format, arguments);
    va_end(arguments);
    trial->verdict = verdict;
}

/* ---- training ------------------------------------------------------------------------------ */

/* A trial whose training runs. */
struct running {
    struct search *search;
    struct vkn_trainer *trainer;
    const struct vkn_batch_trial *trial;
    struct vkn_train_stats stats; /* of the last run */
};

static void keep_stats(void *context, const struct vkn_train_stats *stats)
{
    ((struct running *)context)->stats = *stats;
}

/* Drops the trainer's warnings, which the trial's verdict replaces. */
static void ignore_warning(void *context, const char *line)
{
    (void)context;
    (void)line;
}

static vkn_status run_steps(struct running *running, uint32_t steps, uint32_t total)
{
    uint32_t done = (uint32_t)vkn_trainer_step(running->trainer);
    char what[48];
    snprintf(what, sizeof what, "trying %u samples", running->trial->samples);
    report_progress_count(running->search->progress, what, done, total > done ? total : done);
    const struct vkn_train_run run = {
        .until_step = done + steps,
        .stop = running->search->params->train->job->stop,
        .report_seconds = 1e9, /* one report, at the end */
        .report = keep_stats,
        .warn = ignore_warning,
        .context = running,
    };
    return vkn_trainer_run(running->trainer, &run);
}

/* Trains until no step is skipped, at most as many steps as the loss scale may need. */
static vkn_status warm_up(struct running *running)
{
    uint64_t skipped;
    do {
        skipped = running->stats.skipped_steps;
        BASE_TRY(run_steps(running, WARMUP_STEPS, WARMUP_STEPS + MEASURED_STEPS));
    } while (running->stats.skipped_steps > skipped && running->stats.step < MOST_WARMUP_STEPS);
    return VKN_OK;
}

static vkn_status run_and_judge(struct running *running, struct vkn_batch_trial *trial)
{
    BASE_TRY(warm_up(running));
    uint64_t skipped = running->stats.skipped_steps;
    double steps = fmin(MEASURED_SECONDS * running->stats.steps_per_second, MOST_MEASURED);
    uint32_t count = steps > MEASURED_STEPS ? (uint32_t)steps : MEASURED_STEPS;
    BASE_TRY(run_steps(running, count, (uint32_t)running->stats.step + count));
    trial->steps_per_second = running->stats.steps_per_second;
    trial->samples_per_second = running->stats.samples_per_second;
    running->search->seconds_per_sample = 1.0 / trial->steps_per_second / trial->samples;
    skipped = running->stats.skipped_steps - skipped;
    if (!isfinite(running->stats.loss))
        judge(trial, VKN_BATCH_UNSTABLE, "the loss is not finite");
    else if (skipped > 0)
        judge(trial, VKN_BATCH_UNSTABLE, "%llu of %u steps were skipped",
              (unsigned long long)skipped, count);
    return VKN_OK;
}

/* Measures a trial. A training that fails is a verdict on the batch, not an error. */
static vkn_status measure(struct running *running, struct vkn_batch_trial *trial)
{
    vkn_status status = run_and_judge(running, trial);
    if (!train_ended_early(running->trainer))
        return status;
    const struct train_gradients gradients = train_gradients(running->trainer);
    if (gradients.nonfinite_losses > 0)
        judge(trial, VKN_BATCH_UNSTABLE, "the loss is not finite");
    else
        judge(trial, VKN_BATCH_UNSTABLE, "%llu of %llu steps were skipped",
              (unsigned long long)gradients.skipped,
              (unsigned long long)vkn_trainer_step(running->trainer));
    return VKN_OK;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Measures the additional memory of evaluation, which does not depend on the batch. */
static vkn_status measure_views(struct search *s, vkn_trainer *trainer)
{
    uint64_t before = gpu_memory_allocated(s->context->device);
    vkn_renderer *renderer = NULL;
    BASE_TRY(vkn_renderer_of_trainer(trainer, &renderer));
    s->result->view_bytes = gpu_memory_allocated(s->context->device) - before;
    vkn_renderer_destroy(&renderer);
    return VKN_OK;
}

static bool fits(const struct search *s, struct vkn_batch_trial *trial)
{
    const struct vkn_batch_search *result = s->result;
    if (trial->memory_bytes + result->view_bytes <= result->memory_budget)
        return true;
    judge(trial, VKN_BATCH_OVER_BUDGET, "%.1f MiB, of which %.1f for evaluation, exceed %.1f MiB",
          base_mib(trial->memory_bytes + result->view_bytes), base_mib(result->view_bytes),
          base_mib(result->memory_budget));
    return false;
}

static void choose_budget(struct search *s)
{
    struct gpu_device *device = s->context->device;
    uint64_t most = gpu_memory_allocated(device) + gpu_memory_available(device);
    uint64_t wanted = s->params->memory_budget;
    s->result->memory_budget = wanted == 0 ? most / 10 * 9 : wanted < most ? wanted : most;
}

/* ---- one trial ----------------------------------------------------------------------------- */

static struct vkn_config config_of(const struct search *s, const struct vkn_batch_trial *trial)
{
    struct vkn_config config = s->config;
    config.batch.samples = trial->samples;
    config.batch.max_rays = trial->max_rays;
    return config;
}

static vkn_status run_trial(struct search *s, struct vkn_trainer *trainer,
                            struct vkn_batch_trial *trial)
{
    struct running running = {.search = s, .trainer = trainer, .trial = trial};
    if (s->result->view_bytes == 0)
        BASE_TRY(measure_views(s, trainer));
    trial->memory_bytes = gpu_memory_allocated(s->context->device);
    return fits(s, trial) ? measure(&running, trial) : VKN_OK;
}

/* Turns a failure into a verdict. A failure that has nothing to do with the batch makes all trials
 * fail, the first included, and final_status() returns it. */
static void record_failure(struct search *s, vkn_status status, struct vkn_batch_trial *trial)
{
    if (s->failed == VKN_OK) {
        s->failed = status;
        s->failure = base_format("%s", vkn_last_error());
    }
    judge(trial, status == VKN_NO_DEVICE ? VKN_BATCH_LOST : VKN_BATCH_REFUSED, "%s",
          vkn_last_error());
}

static vkn_status try_allocating(struct search *s, struct vkn_batch_trial *trial)
{
    const struct vkn_config config = config_of(s, trial);
    vkn_trainer *trainer = NULL;
    vkn_status status = vkn_trainer_create(s->context, s->scene, &config, &trainer);
    if (status == VKN_OK) {
        s->result->precision = vkn_trainer_config(trainer)->precision;
        status = run_trial(s, trainer, trial);
    }
    vkn_trainer_destroy(&trainer);
    if (status != VKN_OK && status != VKN_INTERRUPTED) {
        record_failure(s, status, trial);
        return VKN_OK;
    }
    return status;
}

static bool in_time(const struct search *s, struct vkn_batch_trial *trial)
{
    double steps = WARMUP_STEPS + MEASURED_STEPS;
    double seconds = steps * s->seconds_per_sample * trial->samples;
    double left = fmax(s->deadline - base_seconds(), 0.0);
    if (seconds > left)
        judge(trial, VKN_BATCH_TOO_SLOW, "would take %.0f s, and %.0f s are left", seconds, left);
    return seconds <= left;
}

/* Appends a trial. Returns VKN_OK for every verdict, or VKN_INTERRUPTED. */
static vkn_status try_batch(struct search *s, uint32_t samples)
{
    struct vkn_batch_trial *trial = s->result->trials[s->result->trial_count];
    double rays = fmin(fmax(samples * s->rays_per_sample, 64.0), MOST_RAYS);
    *trial = (struct vkn_batch_trial){.samples = samples, .max_rays = (uint32_t)rays};
    const struct vkn_config config = config_of(s, trial);
    uint64_t bytes = 0;
    vkn_status status = train_memory(s->context->device, s->scene, &config, &bytes);
    trial->memory_bytes = gpu_memory_allocated(s->context->device) + bytes;
    if (status != VKN_OK)
        record_failure(s, status, trial);
    else if (fits(s, trial) && in_time(s, trial))
        BASE_TRY(try_allocating(s, trial));
    s->result->trial_count++;
    return VKN_OK;
}

/* ---- the search ---------------------------------------------------------------------------- */

static const struct vkn_batch_trial *last_trial(const struct search *s)
{
    return s->result->trials[s->result->trial_count - 1];
}

static bool ends_search(enum vkn_batch_verdict verdict)
{
    return verdict == VKN_BATCH_LOST || verdict == VKN_BATCH_TOO_SLOW;
}

static vkn_status search(struct search *s)
{
    uint32_t good = 0, bad = 0;
    for (uint32_t samples = LEAST_SAMPLES; samples <= MOST_SAMPLES && bad == 0; samples *= 2) {
        BASE_TRY(try_batch(s, samples));
        enum vkn_batch_verdict verdict = last_trial(s)->verdict;
        if (ends_search(verdict))
            return VKN_OK;
        if (verdict == VKN_BATCH_STABLE)
            good = samples;
        else
            bad = samples;
    }
    for (int round = 0; round < 2 && good > 0 && bad > 0; round++) {
        uint32_t samples = (good + bad) / 2;
        BASE_TRY(try_batch(s, samples));
        enum vkn_batch_verdict verdict = last_trial(s)->verdict;
        if (ends_search(verdict))
            return VKN_OK;
        *(verdict == VKN_BATCH_STABLE ? &good : &bad) = samples;
    }
    return VKN_OK;
}

static void choose_best(struct vkn_batch_search *result)
{
    result->largest = result->fastest = result->trial_count;
    for (size_t i = 0; i < result->trial_count; i++) {
        const struct vkn_batch_trial *trial = result->trials[i];
        if (trial->verdict != VKN_BATCH_STABLE)
            continue;
        bool first = result->largest == result->trial_count;
        if (first || trial->samples > result->trials[result->largest]->samples)
            result->largest = i;
        if (first ||
            trial->samples_per_second > result->trials[result->fastest]->samples_per_second)
            result->fastest = i;
    }
}

/* Resolves the configuration. Keeps the training's schedules, but lifts its limits, which would end
 * a trial. */
static vkn_status prepare(struct search *s)
{
    s->config = s->begin.config;
    if (s->config.steps > 0 && s->config.steps < MOST_WARMUP_STEPS + MOST_MEASURED)
        s->config.steps = MOST_WARMUP_STEPS + MOST_MEASURED;
    s->config.seconds = 0.0;
    struct field_choice choice;
    BASE_TRY(setup_choose_precision(s->context->device, s->scene, &s->config, &choice));
    BASE_TRY(
        setup_resolve_config(&s->config, s->scene, gpu_device_capabilities(s->context->device)));
    s->rays_per_sample = (double)s->config.batch.max_rays / s->config.batch.samples;
    choose_budget(s);
    s->deadline = base_seconds() + (s->params->seconds > 0 ? s->params->seconds : SEARCH_SECONDS);
    return VKN_OK;
}

static vkn_status open_all(struct search *s)
{
    const struct vkn_train_params *train = s->params->train;
    BASE_TRY(run_begin(train, &s->begin));
    BASE_TRY(run_begin_scene(&s->begin, &s->scene));
    BASE_TRY(context_of_job(train->job, &s->context));
    gpu_set_stop_flag(s->context->device, train->job->stop);
    BASE_TRY(report_progress_begin(train->job, 0, 0.0, &s->progress));
    BASE_TRY(run_load_images(s->scene, &s->begin.config, NULL, s->progress));
    run_begin_fit(&s->begin, s->scene, gpu_device_capabilities(s->context->device));
    return prepare(s);
}

static void close_all(struct search *s)
{
    BASE_KEEP_ERROR;
    report_progress_end(&s->progress);
    vkn_scene_close(&s->scene);
    vkn_context_destroy(&s->context);
    run_begin_close(&s->begin);
    free(s->failure);
}

static vkn_status final_status(struct search *s)
{
    const struct vkn_batch_search *result = s->result;
    if (result->largest < result->trial_count)
        return VKN_OK;
    if (s->failed != VKN_OK)
        return base_fail(s->failed, "%s", s->failure ? s->failure : "out of memory");
    return base_fail(VKN_BAD_INPUT, "no batch is stable: with %u samples, %s",
                     result->trials[0]->samples, result->trials[0]->reason);
}

void vkn_batch_search_free(struct vkn_batch_search **search)
{
    if (!search || !*search)
        return;
    free((*search)->trials);
    free(*search);
    *search = NULL;
}

static vkn_status create_result(struct vkn_batch_search **result)
{
    *result = base_alloc(1, sizeof **result);
    if (!*result)
        return VKN_ERROR;
    (*result)->trials = base_alloc_pointers(MOST_TRIALS, sizeof(struct vkn_batch_trial));
    if (!(*result)->trials)
        vkn_batch_search_free(result);
    return *result ? VKN_OK : VKN_ERROR;
}

vkn_status vkn_find_batch(const struct vkn_batch_params *given, struct vkn_batch_search **result)
{
    BASE_C_LOCALE;
    BASE_NEED(result);
    *result = NULL;
    struct vkn_batch_params params;
    struct vkn_train_params train;
    struct vkn_job job;
    BASE_TRY(BASE_READ(__func__, vkn_batch_params, given, &params, seconds));
    BASE_RANGE(&params, seconds, 0, DBL_MAX);
    BASE_TRY(run_read_train(params.train, &train, &job));
    params.train = &train;
    BASE_TRY(create_result(result));
    struct search s = {.params = &params, .result = *result};
    vkn_status status = open_all(&s);
    if (status == VKN_OK)
        status = search(&s);
    choose_best(s.result);
    if (status == VKN_INTERRUPTED)
        status = base_fail(status, "interrupted after %zu batches", s.result->trial_count);
    if (status == VKN_OK)
        status = final_status(&s);
    close_all(&s);
    return status;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static const char *const verdicts[] = {
    [VKN_BATCH_STABLE] = "stable",   [VKN_BATCH_UNSTABLE] = "unstable",
    [VKN_BATCH_REFUSED] = "refused", [VKN_BATCH_OVER_BUDGET] = "over budget",
    [VKN_BATCH_LOST] = "lost",       [VKN_BATCH_TOO_SLOW] = "too slow",
};

static cJSON *trial_json(const struct vkn_batch_trial *trial)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "samples", trial->samples);
    cJSON_AddNumberToObject(json, "max_rays", trial->max_rays);
    cJSON_AddStringToObject(json, "verdict", verdicts[trial->verdict]);
    if (trial->reason[0])
        cJSON_AddStringToObject(json, "reason", trial->reason);
    cJSON_AddNumberToObject(json, "gpu_memory_bytes", (double)trial->memory_bytes);
    if (trial->steps_per_second > 0) {
        cJSON_AddNumberToObject(json, "steps_per_second", trial->steps_per_second);
        cJSON_AddNumberToObject(json, "samples_per_second", trial->samples_per_second);
    }
    return json;
}

char *vkn_batch_search_json(const struct vkn_batch_search *search)
{
    BASE_C_LOCALE;
    if (!search)
        return NULL;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "precision", config_precision_names[search->precision]);
    cJSON_AddNumberToObject(json, "memory_budget_bytes", (double)search->memory_budget);
    cJSON_AddNumberToObject(json, "evaluation_bytes", (double)search->view_bytes);
    if (search->largest < search->trial_count) {
        cJSON_AddNumberToObject(json, "largest", search->trials[search->largest]->samples);
        cJSON_AddNumberToObject(json, "fastest", search->trials[search->fastest]->samples);
    }
    cJSON *trials = cJSON_AddArrayToObject(json, "trials");
    for (size_t i = 0; i < search->trial_count; i++)
        cJSON_AddItemToArray(trials, trial_json(search->trials[i]));
    char *text = base_json_print(json);
    cJSON_Delete(json);
    return text;
}
