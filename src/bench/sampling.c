/* Compares the ways of sampling: trains with each alternately, in time slices of a few seconds so
 * that disturbances affect all alike, and evaluates test views at equal training times.
 * docs/bench.md describes the results. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "bench/internal.h"
#include "config/config.h"
#include "step/step.h"
#include "render/render.h"
#include "report/report.h"
#include "train/train.h"

/* SAMPLINGS: number of ways of sampling. */
#define NUMBERED(enumerator, name) NUMBER_OF_##enumerator,
enum { VKN_SAMPLINGS(NUMBERED) SAMPLINGS };

/* Seconds of training per way of sampling. */
#define USUAL_SECONDS 30.0
#define QUICK_SECONDS 1.0
#define QUICK_SAMPLES 4096u /* samples per step on CPU devices */
#define LONGEST_SLICE 4.0   /* seconds */
#define USUAL_VIEWS   4u    /* evaluated at every mark */
/* Marks: evaluations at the end of training, at half of its time, at a quarter, ... */
#define MOST_MARKS    5u
#define QUICK_MARKS   3u

struct mark {
    double seconds; /* actual training time */
    uint64_t step;
    double psnr, ssim; /* means over the views */
};

/* A training run with one way of sampling. */
struct run {
    enum vkn_sampling sampling;
    vkn_trainer *trainer;
    vkn_renderer *renderer;
    double step_seconds; /* mean over the last slice; 0: no steps yet */
    struct mark marks[MOST_MARKS];
    uint32_t mark_count;
    char fault[256]; /* why the run failed; empty: it did not */
};

struct comparison {
    struct bench *bench;
    struct vkn_config config; /* except for the sampling */
    struct report_progress *quiet;
    enum scene_split_name split;
    size_t stride; /* every stride-th view of the split is evaluated */
    uint32_t mark_count, slices;
    bool is_warm; /* a previous seed has compiled the shaders */
    struct run runs[SAMPLINGS];
};

/* ---- a run ----------------------------------------------------------------------------------- */

/* Turns VKN_ERROR, such as missing memory, into a fault of the run; passes on other errors. */
static vkn_status record_fault(struct run *run, vkn_status status)
{
    if (status != VKN_ERROR)
        return status;
    snprintf(run->fault, sizeof run->fault, "%s", vkn_last_error());
    return VKN_OK;
}

static void ignore(void *context, const char *line)
{
    (void)context;
    (void)line;
}

static vkn_status train_steps(const struct comparison *c, struct run *run, uint64_t steps)
{
    vkn_trainer *trainer = run->trainer;
    double began = vkn_trainer_seconds(trainer);
    uint64_t from = vkn_trainer_step(trainer);
    const struct vkn_train_run run_params = {
        .until_step = (uint32_t)(from + steps),
        .stop = c->bench->params->job->stop,
        .report_seconds = 1e9,
        .warn = ignore,
    };
    BASE_TRY(vkn_trainer_run(trainer, &run_params));
    uint64_t done = vkn_trainer_step(trainer) - from;
    if (done > 0)
        run->step_seconds = (vkn_trainer_seconds(trainer) - began) / (double)done;
    return VKN_OK;
}

static vkn_status create(struct comparison *c, struct run *run)
{
    c->config.march.sampling = run->sampling;
    BASE_TRY(vkn_trainer_create(c->bench->context, c->bench->scene, &c->config, &run->trainer));
    /* All runs use the precision chosen for the first. */
    c->config.precision = vkn_trainer_config(run->trainer)->precision;
    c->config.matrix = vkn_trainer_config(run->trainer)->matrix;
    c->bench->backend_count = 1;
    snprintf(c->bench->backends[0].name, sizeof c->bench->backends[0].name, "%s",
             vkn_trainer_backend(run->trainer)->name);
    const struct train_internals internals = train_internals(run->trainer);
    return render_of_step(internals.step, internals.steps_done, internals.scene_path,
                          &run->renderer);
}

static void destroy(struct run *run)
{
    vkn_renderer_destroy(&run->renderer);
    vkn_trainer_destroy(&run->trainer);
}

/* A driver may compile shaders at their first use. So the first seed trains one step with a
 * separate trainer; the device keeps its pipelines. */
static vkn_status begin_run(struct comparison *c, struct run *run)
{
    if (c->is_warm)
        return create(c, run);
    vkn_status status = create(c, run);
    if (status == VKN_OK)
        status = train_steps(c, run, 1);
    destroy(run);
    run->step_seconds = 0;
    return status == VKN_OK ? create(c, run) : status;
}

/* Trains up to about `target` seconds of training time, in whole update intervals: the average of
 * the weights, which evaluation uses, is updated only at an interval's end. */
static vkn_status advance(const struct comparison *c, struct run *run, double target)
{
    for (;;) {
        double left = target - vkn_trainer_seconds(run->trainer);
        double interval_seconds = UPDATE_INTERVAL * run->step_seconds;
        double intervals = interval_seconds > 0 ? round(left / interval_seconds) : 1;
        if (!(intervals >= 1) || vkn_trainer_finished(run->trainer))
            return VKN_OK;
        BASE_TRY(train_steps(c, run, UPDATE_INTERVAL * (uint64_t)fmin(intervals, 1e6)));
    }
}

static vkn_status add_mark(const struct comparison *c, struct run *run)
{
    struct mark *mark = &run->marks[run->mark_count];
    if (run->mark_count > 0 && mark[-1].step == vkn_trainer_step(run->trainer)) {
        *mark = mark[-1]; /* an update interval is longer than the time between marks */
        run->mark_count++;
        return VKN_OK;
    }
    const struct vkn_config *config = vkn_trainer_config(run->trainer);
    const struct render_evaluation request = {
        .renderer = run->renderer,
        .scene = c->bench->scene,
        .split = c->split,
        .background = render_background(VKN_BACKGROUND_DEFAULT, config),
        .stride = c->stride,
        .progress = c->quiet,
        .stop = c->bench->params->job->stop,
    };
    struct vkn_evaluation *evaluation;
    BASE_TRY(render_evaluate(&request, &evaluation));
    run->mark_count++;
    *mark = (struct mark){vkn_trainer_seconds(run->trainer), vkn_trainer_step(run->trainer),
                          evaluation->psnr, evaluation->ssim};
    vkn_evaluation_free(&evaluation);
    return VKN_OK;
}

/* Returns whether slice number `slice`, from 1, ends at a mark. */
static bool is_mark(const struct comparison *c, uint32_t slice)
{
    for (uint32_t i = 0; i < c->mark_count; i++)
        if (slice == c->slices >> i)
            return true;
    return false;
}

static vkn_status train_slice(struct comparison *c, struct run *run, uint32_t slice)
{
    if (!run->trainer)
        BASE_TRY(begin_run(c, run));
    BASE_TRY(advance(c, run, c->config.seconds * slice / c->slices));
    return is_mark(c, slice) ? add_mark(c, run) : VKN_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Returns the training time at which the PSNR was first reached: interpolated linearly over
 * log(time) between marks, or the first mark's time. NaN: never. */
static double seconds_to(const struct run *run, double psnr)
{
    for (uint32_t i = 0; i < run->mark_count; i++) {
        const struct mark *mark = &run->marks[i], *previous = mark - 1;
        if (!(mark->psnr >= psnr))
            continue;
        if (i == 0)
            return mark->seconds;
        double fraction = (psnr - previous->psnr) / (mark->psnr - previous->psnr);
        return previous->seconds * pow(mark->seconds / previous->seconds, fraction);
    }
    return (double)NAN;
}

/* Returns the PSNR at a training time, interpolated as in seconds_to; before the first mark or
 * after the last one, the PSNR of that mark. */
static double psnr_at(const struct run *run, double seconds)
{
    for (uint32_t i = 0; i < run->mark_count; i++) {
        const struct mark *mark = &run->marks[i], *previous = mark - 1;
        if (mark->seconds < seconds)
            continue;
        if (i == 0)
            return mark->psnr;
        double fraction = log(seconds / previous->seconds) / log(mark->seconds / previous->seconds);
        return previous->psnr + fraction * (mark->psnr - previous->psnr);
    }
    return run->marks[run->mark_count - 1].psnr;
}

static void add_number(cJSON *json, const char *name, double value)
{
    if (isfinite(value))
        cJSON_AddNumberToObject(json, name, value);
    else
        cJSON_AddNullToObject(json, name);
}

/* Adds the time to reach the final PSNR of the run with uniform sampling, if that run finished. */
static void add_equal(const struct comparison *c, const struct run *run, cJSON *json)
{
    for (size_t i = 0; i < SAMPLINGS; i++) {
        const struct run *uniform = &c->runs[i];
        if (uniform->sampling != VKN_SAMPLING_UNIFORM || uniform->mark_count < c->mark_count)
            continue;
        double psnr = uniform->marks[c->mark_count - 1].psnr;
        add_number(json, "uniform_psnr", psnr);
        add_number(json, "seconds_to_uniform", seconds_to(run, psnr));
    }
}

static cJSON *marks_json(const struct run *run)
{
    cJSON *marks = cJSON_CreateArray();
    for (uint32_t i = 0; i < run->mark_count; i++) {
        const struct mark *mark = &run->marks[i];
        cJSON *json = cJSON_CreateObject();
        cJSON_AddNumberToObject(json, "seconds", mark->seconds);
        cJSON_AddNumberToObject(json, "step", (double)mark->step);
        add_number(json, "psnr", mark->psnr);
        add_number(json, "ssim", mark->ssim);
        cJSON_AddItemToArray(marks, json);
    }
    return marks;
}

static cJSON *equal_json(const struct comparison *c, const struct run *run)
{
    cJSON *times = cJSON_CreateArray();
    for (uint32_t i = 0; i < run->mark_count; i++) {
        double seconds = c->config.seconds / (1u << (c->mark_count - 1 - i));
        cJSON *json = cJSON_CreateObject();
        cJSON_AddNumberToObject(json, "seconds", seconds);
        add_number(json, "psnr", psnr_at(run, seconds));
        cJSON_AddItemToArray(times, json);
    }
    return times;
}

static void add_run(const struct comparison *c, const struct run *run)
{
    cJSON *json = cJSON_CreateObject();
    if (run->trainer && !run->fault[0]) {
        const struct train_sampling sampling = train_sampling(run->trainer);
        cJSON_Delete(json);
        json = train_sampling_json(&sampling);
        cJSON_AddStringToObject(json, "path", vkn_trainer_backend(run->trainer)->name);
    } else {
        cJSON_AddStringToObject(json, "kind", config_sampling_names[run->sampling]);
        cJSON_AddStringToObject(json, "fault", run->fault);
    }
    cJSON_AddNumberToObject(json, "seed", (double)c->config.seed);
    cJSON_AddItemToObject(json, "marks", marks_json(run));
    cJSON_AddItemToObject(json, "equal_times", equal_json(c, run));
    add_equal(c, run, json);
    cJSON_AddItemToArray(cJSON_GetObjectItem(c->bench->sampling, "runs"), json);
}

static void describe(const struct comparison *c)
{
    const struct vkn_scene *scene = c->bench->scene;
    size_t views = (scene->splits[c->split].camera_count + c->stride - 1) / c->stride;
    cJSON *json = c->bench->sampling = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "scene", scene->path);
    cJSON_AddNumberToObject(json, "downscale", scene->downscale);
    cJSON_AddStringToObject(json, "split", scene_split_names[c->split]);
    cJSON_AddNumberToObject(json, "views", (double)views);
    cJSON_AddNumberToObject(json, "seconds", c->config.seconds);
    cJSON_AddArrayToObject(json, "runs");
}

/* ---- all runs -------------------------------------------------------------------------------- */

/* Trains all runs in every slice; the run that trains first changes from slice to slice. */
static vkn_status train_interleaved(struct comparison *c)
{
    for (uint32_t slice = 1; slice <= c->slices; slice++)
        for (uint32_t i = 0; i < SAMPLINGS; i++) {
            struct run *run = &c->runs[(slice + i) % SAMPLINGS];
            if (bench_next(c->bench) && !run->fault[0])
                BASE_TRY(record_fault(run, train_slice(c, run, slice)));
        }
    return VKN_OK;
}

/* Reports the marks reached so far if interrupted. */
static vkn_status compare_with_seed(struct comparison *c)
{
    for (uint32_t i = 0; i < SAMPLINGS; i++)
        c->runs[i] = (struct run){.sampling = (enum vkn_sampling)(VKN_SAMPLING_OCCUPANCY + i)};
    vkn_status status = train_interleaved(c);
    for (uint32_t i = 0; i < SAMPLINGS && !c->bench->counting; i++) {
        struct run *run = &c->runs[i];
        if (run->fault[0] || (run->trainer && vkn_trainer_step(run->trainer) > 0))
            add_run(c, run);
    }
    for (uint32_t i = 0; i < SAMPLINGS; i++)
        destroy(&c->runs[i]);
    return status;
}

static vkn_status compare(struct comparison *c)
{
    const struct vkn_bench_params *params = c->bench->params;
    uint64_t first = c->config.seed;
    for (uint32_t i = 0; i < (params->seeds ? params->seeds : 1) && !bench_stopped(c->bench); i++) {
        c->config.seed = first + i;
        BASE_TRY(compare_with_seed(c));
        c->is_warm = true;
    }
    return VKN_OK;
}

vkn_status bench_sampling(struct bench *bench)
{
    const struct vkn_bench_params *params = bench->params;
    struct comparison c = {.bench = bench,
                           .config = *params->config,
                           .mark_count = params->quick ? QUICK_MARKS : MOST_MARKS};
    c.config.precision = params->precision;
    if (params->batch || (params->quick && bench->small && c.config.batch.samples == 0))
        c.config.batch.samples = params->batch ? params->batch : QUICK_SAMPLES;
    if (c.config.eval_views == 0)
        c.config.eval_views = params->quick ? 1 : USUAL_VIEWS;
    if (c.config.seconds <= 0)
        c.config.seconds = params->quick ? QUICK_SECONDS : USUAL_SECONDS;
    uint32_t least = 1u << (c.mark_count - 1);
    c.slices = least * (uint32_t)ceil(c.config.seconds / (LONGEST_SLICE * least));
    if (bench->counting)
        return compare(&c);
    BASE_TRY(scene_find_split(bench->scene, VKN_SPLIT_DEFAULT, &c.split));
    c.stride = (bench->scene->splits[c.split].camera_count + c.config.eval_views - 1) /
               c.config.eval_views;
    BASE_TRY(report_progress_begin(NULL, 0, 0, &c.quiet));
    describe(&c);
    vkn_status status = compare(&c);
    report_progress_end(&c.quiet);
    return status;
}
