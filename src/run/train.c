/* Implements vkn_run_train: trains a run from its scene to its report. */
#include "run/internal.h"

#include <vknerf/field.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "run/training.h"
#include "config/config.h"
#include "step/step.h"
#include "render/render.h"
#include "report/report.h"
#include "scene/scene.h"
#include "train/train.h"

/* State of vkn_run_train. */
struct training {
    const struct vkn_train_params *params;
    double began; /* base_seconds() */
    struct vkn_train_result *result;
    struct run_beginning begin;
    struct run_lock lock;
    struct run_saver saver;
    struct run_ranks *ranks; /* NULL: a single rank */
    bool made_folder;        /* this run made its directory */
    vkn_context *context;
    vkn_scene *scene;
    vkn_trainer *trainer;
    enum scene_split_name split; /* to evaluate on */
    struct report_progress *progress;
    struct run_log *run_log;
    cJSON *evaluations;
    struct validation validation;
    struct eta eta;
    struct run_callbacks callbacks;
    double train_psnr; /* of the training rays, moving average over reports; 0: none yet */
};

/* ---- opening ------------------------------------------------------------------------------- */

/* Chooses the split to evaluate on: test views, else validation views, else training views. */
static vkn_status choose_views(struct training *t)
{
    BASE_TRY(scene_find_split(t->scene, VKN_SPLIT_DEFAULT, &t->split));
    if (t->split != SCENE_TEST && t->begin.config.scene.test_views != VKN_TEST_VIEWS_NONE)
        base_log(BASE_LOG_WARNING, "%s: there are no test views; quality is measured on %s views",
                 t->begin.scene_path, scene_split_names[t->split]);
    return VKN_OK;
}

static void log_beginning(const struct training *t)
{
    const struct scene_split *train = &t->scene->splits[SCENE_TRAIN];
    base_log(BASE_LOG_INFO, "%s: %zu training and %zu %s views, the first of %ux%u pixels",
             t->begin.scene_path, train->camera_count, t->scene->splits[t->split].camera_count,
             scene_split_names[t->split], train->cameras[0].width, train->cameras[0].height);
    base_log(BASE_LOG_INFO, "%s: trains on %s (%s)", t->result->folder,
             vkn_context_device_name(t->context), vkn_context_driver(t->context));
}

static vkn_status open_trainer(struct training *t)
{
    BASE_TRY(report_progress_begin(t->params->job, t->begin.config.steps, t->begin.config.seconds,
                                   &t->progress));
    log_beginning(t);
    BASE_TRY(vkn_field_check(t->context, &t->begin.config));
    BASE_TRY(run_load_images(t->scene, &t->begin.config, run_ranks_comm(t->ranks), t->progress));
    report_progress_pause(t->progress);
    sanity_check_poses(t->scene);
    run_begin_fit(&t->begin, t->scene, gpu_device_capabilities(t->context->device));
    BASE_TRY(train_create(t->context, t->scene, &t->begin.config, run_ranks_comm(t->ranks),
                          &t->trainer));
    if (t->params->resume)
        BASE_TRY(vkn_trainer_resume(t->trainer, t->begin.checkpoint));
    else if (t->params->init)
        BASE_TRY(vkn_trainer_init(t->trainer, t->begin.checkpoint));
    run_begin_explain(&t->begin, t->trainer);
    BASE_TRY(run_ranks_start(t->ranks, t->scene, t->trainer));
    const struct vkn_config *config = vkn_trainer_config(t->trainer);
    if (t->params->profile)
        BASE_TRY(vkn_trainer_start_profile(t->trainer));
    train_add_event(t->trainer, "set up", t->began);
    report_progress_end(&t->progress);
    const struct vkn_backend *backend = vkn_trainer_backend(t->trainer);
    base_log(BASE_LOG_INFO, "computes in %s: %s", backend->name, backend->why);
    if (config->march.sampling != VKN_SAMPLING_OCCUPANCY)
        base_log(BASE_LOG_INFO, "samples by march.sampling=%s",
                 config_sampling_names[config->march.sampling]);
    sanity_log_images(t->scene, config);
    if (backend->policy[0])
        base_log(BASE_LOG_INFO, "precision policy, other than default: %s", backend->policy);
    return report_progress_begin(t->params->job, config->steps, config->seconds, &t->progress);
}

static struct run_record record_of(const struct training *t, const char *status)
{
    return (struct run_record){
        .status = status,
        .scene = t->begin.scene_path,
        .device = vkn_context_device_name(t->context),
        .driver = vkn_context_driver(t->context),
        .config = vkn_trainer_config(t->trainer),
        .backend = vkn_trainer_backend(t->trainer),
        .result = t->result,
        .evaluations = t->evaluations,
        .split = scene_split_names[t->split],
        .has_pictures = t->result->evaluation != NULL,
        .gradients = train_gradients(t->trainer),
        .sampling = train_sampling(t->trainer),
        .ranks = t->ranks,
        .communication = train_communication(t->trainer),
    };
}

/* Opens config.json, summary.json, logs and checkpoints of a run that begins or is resumed. */
static vkn_status open_records(struct training *t)
{
    const char *folder = t->result->folder;
    uint64_t step = vkn_trainer_step(t->trainer);
    t->result->step = step;
    t->result->seconds = vkn_trainer_seconds(t->trainer);
    *t->result->images = train_images(t->trainer);
    run_log_images(t->result->images, t->scene->splits[SCENE_TRAIN].camera_count,
                   vkn_trainer_config(t->trainer));
    t->evaluations = t->params->resume ? run_old_evaluations(folder, step) : cJSON_CreateArray();
    t->validation = (struct validation){
        .trainer = t->trainer,
        .scene = t->scene,
        .split = t->split,
        .folder = folder,
        .evaluations = t->evaluations,
        .stop = t->params->job->stop,
    };
    validate_open(&t->validation);
    struct run_record record = record_of(t, "running");
    if (t->params->overwrite && !t->params->resume)
        run_remove_checkpoints(folder); /* the old model does not belong to the new records */
    BASE_TRY(run_write_config(folder, &record, t->params));
    BASE_TRY(run_write_summary(folder, &record));
    BASE_TRY(run_log_open(folder, step, record.config, t->progress, &t->run_log));
    t->validation.run_log = t->run_log;
    t->saver = (struct run_saver){
        .trainer = t->trainer,
        .progress = t->progress,
        .lock = &t->lock,
        .folder = folder,
    };
    return run_saver_open(&t->saver);
}

static vkn_status open_all(struct training *t)
{
    vkn_status status = run_begin(t->params, &t->begin);
    if (status == VKN_OK)
        status = run_choose_folder(t->params, t->begin.scene_path, &t->result->folder, &t->lock);
    if (status == VKN_OK)
        status = run_begin_scene(&t->begin, &t->scene);
    if (status == VKN_OK)
        status = choose_views(t);
    if (status == VKN_OK)
        sanity_check_scene(t->scene, &t->begin.config);
    if (status == VKN_OK)
        status = run_ranks_context(t->ranks, t->params, &t->context);
    if (status == VKN_OK)
        gpu_set_stop_flag(t->context->device, t->params->job->stop);
    if (status == VKN_OK)
        status = run_prepare_folder(t->params, &t->result->folder, &t->lock, &t->made_folder);
    if (status == VKN_OK)
        status = open_trainer(t);
    if (status == VKN_OK)
        status = open_records(t);
    return status;
}

/* ---- training ------------------------------------------------------------------------------ */

static void log_downscale(const struct training *t, uint64_t step, uint32_t downscale)
{
    report_progress_pause(t->progress);
    base_log(BASE_LOG_INFO, "step %llu: progressive: the images are downscaled by %u from here on",
             (unsigned long long)step, downscale);
}

static void note_images(struct training *t, const struct vkn_train_stats *stats)
{
    if (stats->images->downscale != t->result->images->downscale)
        log_downscale(t, stats->step, stats->images->downscale);
    *t->result->images = *stats->images;
}

static void note_memory(struct training *t, const struct vkn_train_stats *stats)
{
    struct vkn_train_result *result = t->result;
    if (stats->gpu_memory_bytes <= result->gpu_memory_bytes)
        return;
    result->gpu_memory_bytes = stats->gpu_memory_bytes;
    result->buffer_count = vkn_trainer_memory(t->trainer, result->buffers, VKN_MAX_BUFFERS);
}

static void log_eta(struct training *t, const struct vkn_train_stats *stats)
{
    const struct scene_camera *camera = t->scene->splits[SCENE_TRAIN].cameras;
    char line[256];
    if (gpu_device_capabilities(t->context->device)->type != GPU_CPU ||
        !eta_update(&t->eta, vkn_trainer_config(t->trainer), stats,
                    camera->width > camera->height ? camera->width : camera->height, line))
        return;
    report_progress_pause(t->progress);
    base_log(BASE_LOG_INFO, "%s: %s", t->begin.scene_path, line);
}

static void report(void *context, const struct vkn_train_stats *stats)
{
    struct training *t = context;
    const struct report_metrics metrics = {
        .step = stats->step,
        .seconds = stats->seconds,
        .loss = stats->loss,
        .distortion_loss = stats->distortion_loss,
        .interlevel_loss = stats->interlevel_loss,
        .coarse_loss = stats->coarse_loss,
        .psnr = stats->psnr,
        .learning_rate = stats->learning_rate,
        .loss_scale = stats->loss_scale,
        .skipped_steps = stats->skipped_steps,
        .underflowed = stats->underflowed,
        .rays_per_second = stats->rays_per_second,
        .samples_per_second = stats->samples_per_second,
        .marched_per_second = stats->marched_per_second,
        .grad_norm = stats->grad_norm,
        .gpu_memory_bytes = stats->gpu_memory_bytes,
        .idle_share = stats->idle_share,
        .image_downscale = stats->images->downscale,
        .images_exchanged = stats->images->exchanged,
        .exchange_share = stats->exchange_share,
        .kept_share = stats->kept_share > 0 ? stats->kept_share : (double)NAN,
        .keep_weight = stats->keep_weight > 0 ? stats->keep_weight : (double)NAN,
    };
    note_images(t, stats);
    if (isfinite(stats->psnr))
        t->train_psnr += (stats->psnr - t->train_psnr) * (t->train_psnr > 0.0 ? 0.25 : 1.0);
    note_memory(t, stats);
    report_progress_train(t->progress, &metrics, stats->steps_per_second);
    log_eta(t, stats);
    run_log_add(t->run_log, &metrics);
    run_callbacks_report(&t->callbacks, stats);
}

static void warn(void *context, const char *line)
{
    const struct training *t = context;
    report_progress_pause(t->progress);
    base_log(BASE_LOG_WARNING, "%s", line);
}

static void update_result(struct training *t)
{
    struct vkn_train_result *result = t->result;
    result->step = vkn_trainer_step(t->trainer);
    result->seconds = vkn_trainer_seconds(t->trainer);
    result->skipped_steps = train_gradients(t->trainer).skipped_steps;
    result->pass_count = vkn_trainer_pass_times(t->trainer, result->passes, TRAIN_MAX_PASSES);
}

/* Evaluates a few views if it is time, and updates the summary for readers of a run in progress. */
static vkn_status evaluate_if_due(struct training *t)
{
    if (!validate_is_due(&t->validation))
        return VKN_OK;
    BASE_TRY(validate_quickly(&t->validation, t->progress));
    update_result(t);
    struct run_record record = record_of(t, "running");
    if (run_write_summary(t->result->folder, &record) != VKN_OK)
        base_log(BASE_LOG_WARNING, "%s; training goes on", vkn_last_error());
    return VKN_OK;
}

static double callback_due(void *context)
{
    return run_callbacks_due(&((struct training *)context)->callbacks);
}

static vkn_status call_between_steps(void *context)
{
    return run_callbacks_between_steps(&((struct training *)context)->callbacks);
}

/* Trains to the configuration's limits, with checkpoints and evaluations when they are due. */
static vkn_status train(struct training *t)
{
    while (!vkn_trainer_finished(t->trainer)) {
        BASE_TRY(evaluate_if_due(t));
        uint64_t save = run_saver_until_step(&t->saver);
        struct validation_due eval = validate_next(&t->validation);
        uint64_t until = save < eval.step ? save : eval.step;
        double seconds = fmin(run_saver_seconds(&t->saver), eval.seconds);
        const struct vkn_train_run run = {
            .size = sizeof run,
            .until_step = until < UINT32_MAX ? (uint32_t)until : 0,
            .seconds = isinf(seconds) ? 0.0 : seconds,
            .stop = t->params->job->stop,
            .report = report,
            .warn = warn,
            .context = t,
            .due = t->callbacks.user.due ? callback_due : NULL,
            .between_steps = t->callbacks.user.due ? call_between_steps : NULL,
        };
        BASE_TRY(vkn_trainer_run(t->trainer, &run));
        if (!vkn_trainer_finished(t->trainer)) /* finish() saves the last step */
            BASE_TRY(run_saver_save_if_due(&t->saver, save));
    }
    return VKN_OK;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Reads the profile. A failure is only a warning, because the trained run is worth more. */
static void read_profile(struct training *t)
{
    double began = base_seconds();
    if (!t->params->profile)
        return;
    report_progress_pause(t->progress);
    if (vkn_trainer_profile(t->trainer, &t->result->profile) != VKN_OK)
        base_log(BASE_LOG_WARNING, "%s; there is no profile", vkn_last_error());
    train_add_event(t->trainer, "profile", began);
}

static vkn_status write_trace(struct training *t)
{
    if (!t->params->profile)
        return VKN_OK;
    char *path = base_path_join(t->result->folder, RUN_TRACE);
    vkn_status status =
        path ? train_write_trace(t->trainer, path, t->began, vkn_context_device_name(t->context),
                                 vkn_context_driver(t->context))
             : VKN_ERROR;
    free(path);
    return status;
}

static vkn_status write_errors(struct training *t)
{
    char *path = base_path_join(t->result->folder, REPORT_ERROR_MAP);
    struct step_outliers found;
    vkn_status status = path ? train_write_errors(t->trainer, path, &found) : VKN_ERROR;
    if (status == VKN_OK)
        sanity_log_outliers(t->scene, vkn_trainer_config(t->trainer), t->result->folder, &found);
    free(path);
    return status;
}

/* Writes trace, error map, summary and report of a training that ended with `status`. Returns
 * `status` or, if VKN_OK, the status of writing. */
static vkn_status write_results(struct training *t, vkn_status status)
{
    char *message = status != VKN_OK ? base_format("%s", vkn_last_error()) : NULL;
    bool failed = status != VKN_OK && status != VKN_INTERRUPTED;
    struct run_record record = record_of(t, failed                      ? "failed"
                                            : status == VKN_INTERRUPTED ? "interrupted"
                                                                        : "finished");
    record.failure = failed ? message : NULL;
    vkn_status written = write_trace(t);
    if (written == VKN_OK && !failed)
        written = write_errors(t);
    if (written == VKN_OK && !failed)
        written = run_write_views(t->result->folder, train_internals(t->trainer).step, t->scene);
    if (written == VKN_OK)
        written = run_write_summary(t->result->folder, &record);
    if (written == VKN_OK)
        written = report_write_html(t->result->folder, NULL);
    if (status != VKN_OK)
        base_fail(status, "%s", message ? message : "out of memory");
    free(message);
    if (written == VKN_BAD_INPUT) /* about files of the run itself, not the user's input */
        written = VKN_ERROR;
    return status != VKN_OK ? status : written;
}

/* Repeats the gradient monitor's warnings as a summary at the end, where they are seen. */
static void check_gradients(const struct training *t)
{
    struct train_gradients gradients = train_gradients(t->trainer);
    if (gradients.warning[0] == '\0')
        return;
    report_progress_pause(t->progress);
    base_log(BASE_LOG_WARNING, "%s: %s", t->result->folder, gradients.warning);
}

static void log_few_steps(const struct training *t)
{
    char line[256];
    const struct vkn_config *config = vkn_trainer_config(t->trainer);
    if (eta_few_steps(config, t->result->step, t->result->seconds, line))
        base_log(BASE_LOG_INFO, "%s: %s", t->result->folder, line);
}

/* Ends a training. Saves the training before profile and evaluation, which can be repeated. */
static vkn_status finish(struct training *t, vkn_status status)
{
    update_result(t);
    run_ranks_announce_end(t->ranks, status);
    if (status == VKN_OK)
        status = train_check_end(t->trainer);
    if (status != VKN_OK && status != VKN_INTERRUPTED)
        return write_results(t, run_saver_fail(&t->saver, status));
    vkn_status saved = run_saver_finish(&t->saver);
    run_ranks_leave(t->ranks, saved);
    if (saved != VKN_OK)
        return write_results(t, saved);
    read_profile(t);
    if (status == VKN_OK)
        status = validate_finally(&t->validation, t->progress, &t->result->evaluation);
    report_progress_pause(t->progress);
    if (status == VKN_OK)
        sanity_check_quality(t->scene, t->train_psnr, t->split, t->result->evaluation->psnr);
    else if (status != VKN_INTERRUPTED)
        status = run_saver_fail(&t->saver, status);
    check_gradients(t);
    if (status == VKN_OK)
        log_few_steps(t);
    if (status == VKN_INTERRUPTED)
        status =
            base_fail(VKN_INTERRUPTED,
                      "interrupted at step %llu and saved; go on with: vknerf train --resume %s",
                      (unsigned long long)t->result->step, t->result->folder);
    if (status == VKN_OK)
        status = run_log_status(t->run_log);
    report_progress_end(&t->progress);
    run_log_close(&t->run_log);
    return write_results(t, status);
}

static void close_all(struct training *t, vkn_status status)
{
    BASE_KEEP_ERROR;
    report_progress_end(&t->progress);
    run_log_close(&t->run_log);
    run_ranks_leave(t->ranks, status); /* other ranks' threads use the scene */
    run_ranks_close(&t->ranks);
    vkn_trainer_destroy(&t->trainer);
    vkn_scene_close(&t->scene);
    vkn_context_destroy(&t->context);
    cJSON_Delete(t->evaluations);
    run_saver_close(&t->saver);
    run_lock_release(&t->lock);
    if (status != VKN_OK && t->made_folder && t->result->folder)
        rmdir(t->result->folder); /* succeeds only when nothing was written */
    run_begin_close(&t->begin);
}

vkn_status vkn_run_train(const struct vkn_train_params *given, struct vkn_train_result **result)
{
    BASE_C_LOCALE;
    struct vkn_train_params params;
    struct vkn_job job;
    BASE_NEED(result);
    *result = NULL;
    struct run_callbacks callbacks;
    BASE_TRY(run_read_train(given, &params, &job));
    BASE_TRY(run_callbacks_read(params.callbacks, &callbacks));
    BASE_TRY(run_create_result(result));
    struct training t = {
        .params = &params, .result = *result, .began = base_seconds(), .callbacks = callbacks};
    vkn_status status = run_ranks_open(&params, &t.ranks);
    t.result->rank = run_ranks_rank(t.ranks);
    if (status == VKN_OK)
        status = t.result->rank > 0 ? run_ranks_follow(t.ranks) : open_all(&t);
    /* Later failures are rank 0's own, whose messages also name the saved step. */
    t.result->reported_elsewhere = run_ranks_other_failed(t.ranks, status);
    if (t.result->rank > 0) {
        run_ranks_close(&t.ranks);
        return status;
    }
    if (status == VKN_OK) {
        run_callbacks_open(&t.callbacks, &t.saver, t.begin.scene_path);
        status = finish(&t, run_callbacks_close(&t.callbacks, train(&t)));
    }
    close_all(&t, status);
    return status;
}
