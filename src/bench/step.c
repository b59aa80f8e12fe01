/* Measures whole training steps: live samples per second, by backend and batch. */
#include "bench/suites.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "field/field.h"
#include "train/train.h"

#define MAX_RUNS      64u
#define QUICK_SECONDS 2.0 /* time of timed runs after which a quick case ends */

struct training {
    struct bench *bench;
    vkn_trainer *trainer;
    struct vkn_train_stats last; /* figures of the last run */
    uint32_t run_steps;          /* steps per run: whole update intervals */
    double first_loss, live;     /* mean loss of the first run; live samples per step */
};

static void store_stats(void *context, const struct vkn_train_stats *stats)
{
    ((struct training *)context)->last = *stats;
}

/* Ignores warnings: skipped steps while the loss scale adapts. */
static void ignore(void *context, const char *line)
{
    (void)context;
    (void)line;
}

static vkn_status run(struct training *training)
{
    const struct vkn_train_run run_params = {
        .until_step = (uint32_t)vkn_trainer_step(training->trainer) + training->run_steps,
        .stop = training->bench->params->job->stop,
        .report_seconds = 1e9,
        .report = store_stats,
        .warn = ignore,
        .context = training,
    };
    return vkn_trainer_run(training->trainer, &run_params);
}

/* Returns whether a quick case has run long enough, on a slow or busy machine. */
static bool is_enough(const struct training *training, double began)
{
    const struct vkn_bench_params *params = training->bench->params;
    return params->quick && !params->repetitions && base_seconds() - began >= QUICK_SECONDS;
}

/* Trains until the occupancy grid has adapted to the scene and the ray count to the batch. */
static vkn_status warm_up(struct training *training)
{
    const struct bench *bench = training->bench;
    uint32_t runs = !bench->small ? 8 : bench->params->quick ? 2 : 3;
    BASE_TRY(run(training));
    training->first_loss = training->last.loss;
    for (uint32_t i = 1; i < runs; i++)
        BASE_TRY(run(training));
    return VKN_OK;
}

/* Returns whether the trainer used the requested backend and the loss decreased; else sets the
 * fault. */
static bool check_training(struct training *training, const struct bench_backend *backend,
                           struct bench_result *result)
{
    struct field_backend wanted = {.precision = backend->precision,
                                   .f16 = backend->precision != VKN_PRECISION_FP32,
                                   .shape = backend->shape,
                                   .f16_accumulate = backend->f16_accumulate,
                                   .conversions = backend->conversions};
    char name[FIELD_SHADER_NAME];
    const struct vkn_backend *used = vkn_trainer_backend(training->trainer);
    field_backend_describe(&wanted, name);
    if (strcmp(name, used->name) != 0)
        snprintf(result->fault, sizeof result->fault, "wrong: the trainer fell back to %s: %s",
                 used->name, used->why);
    else if (!(training->last.loss < training->first_loss))
        snprintf(result->fault, sizeof result->fault, "wrong: the loss went from %.3g to %.3g",
                 training->first_loss, training->last.loss);
    return !result->fault[0];
}

static vkn_status repeat(struct training *training, struct bench_times *times)
{
    double seconds[MAX_RUNS], live = 0, began = base_seconds();
    uint32_t wanted = bench_repetitions(training->bench), count = 0;
    if (training->bench->small && !training->bench->params->repetitions)
        wanted = 3; /* of 16 steps each */
    for (; count < wanted && count < MAX_RUNS && !(count > 0 && is_enough(training, began));
         count++) {
        BASE_TRY(run(training));
        seconds[count] = 1 / training->last.steps_per_second;
        live += training->last.samples_per_second / training->last.steps_per_second;
    }
    training->live = live / count;
    times->iterations = training->run_steps;
    bench_summarize(seconds, count, times);
    return VKN_OK;
}

static cJSON *passes_json(const struct training *training)
{
    struct vkn_pass_time passes[TRAIN_MAX_PASSES];
    size_t count = vkn_trainer_pass_times(training->trainer, passes, TRAIN_MAX_PASSES);
    cJSON *more = cJSON_CreateObject(), *json = cJSON_AddObjectToObject(more, "pass_milliseconds");
    for (size_t i = 0; i < count; i++)
        cJSON_AddNumberToObject(json, passes[i].name, passes[i].milliseconds);
    cJSON_AddStringToObject(more, "tuning", vkn_trainer_backend(training->trainer)->tuning);
    cJSON_AddNumberToObject(more, "rays_per_second", training->last.rays_per_second);
    cJSON_AddNumberToObject(more, "loss", training->last.loss);
    return more;
}

static vkn_status train(struct training *training, vkn_scene *scene,
                        const struct bench_backend *backend, uint32_t samples,
                        struct bench_result *result)
{
    struct vkn_config config = {.seed = 1, .batch = {.samples = samples, .max_rays = samples}};
    bench_backend_settings(backend, &config);
    config.batch.max_rays = samples > 1u << 17 ? 1u << 17 : samples;
    BASE_TRY(vkn_trainer_create(training->bench->context, scene, &config, &training->trainer));
    BASE_TRY(warm_up(training));
    if (!check_training(training, backend, result))
        return VKN_OK;
    BASE_TRY(repeat(training, &result->times));
    result->samples = training->live;
    result->more = passes_json(training);
    return VKN_OK;
}

static vkn_status measure(struct bench *bench, vkn_scene *scene,
                          const struct bench_backend *backend, uint32_t samples)
{
    struct training training = {.bench = bench, .run_steps = bench->small ? 16 : 64};
    struct bench_result result = {.suite = "step", .backend = backend->name, .unit = "samples/s"};
    snprintf(result.name, sizeof result.name, "%u samples", samples);
    bench_add_size(&result, "samples", samples);
    vkn_status status = train(&training, scene, backend, samples, &result);
    vkn_trainer_destroy(&training.trainer);
    BASE_TRY(bench_record_failure(&result, status));
    bench_add_result(bench, &result);
    return VKN_OK;
}

/* Compilation and runs with matrices are slow on CPU devices: only one matrix backend is measured
 * there unless a precision is requested. */
static bool is_tried(const struct bench *bench, const struct bench_backend *backend)
{
    bool only_one = bench->small && bench->params->precision == VKN_PRECISION_AUTO;
    return !only_one || !(backend->conversions || backend->f16_accumulate);
}

static vkn_status run_cases(struct bench *bench, vkn_scene *scene)
{
    static const uint32_t large[] = {1u << 14, 1u << 16, 1u << 18};
    const uint32_t quick = bench->small ? 1u << 12 : 1u << 18, batch = bench->params->batch;
    for (size_t i = 0; i < BASE_COUNT(large); i++) {
        uint32_t samples = batch                  ? batch
                           : bench->params->quick ? quick
                           : bench->small         ? 1u << 13
                                                  : large[i];
        bool single_batch = batch || bench->params->quick || bench->small;
        if (single_batch && i > 0)
            break;
        for (uint32_t p = 0; p < bench->backend_count; p++)
            if (is_tried(bench, &bench->backends[p]) && bench_next(bench))
                BASE_TRY(measure(bench, scene, &bench->backends[p], samples));
    }
    return VKN_OK;
}

vkn_status bench_step(struct bench *bench)
{
    vkn_scene *made = NULL;
    if (bench->counting || bench->scene)
        return run_cases(bench, bench->scene);
    BASE_TRY(step_make_scene(bench->small ? 24 : 64, bench->small ? 96 : 400, &made));
    vkn_status status = run_cases(bench, made);
    vkn_scene_close(&made);
    return status;
}
