/* Evaluates a run during and after its training, and records the results. */
#include "run/training.h"

#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "config/config.h"
#include "render/render.h"
#include "train/train.h"

#define TRAIN_VIEWS 12u               /* most evaluated views of a scene with training views only */
#define PNG_LIMIT   ((size_t)1 << 30) /* bytes */

/* Limits of the default schedule. */
#define FIRST_STEP 256u /* before this step pictures are blurred, and short trainings are over */
#define RAY_SHARE  0.25 /* of the rays trained so far that an evaluation may render */

static size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

/* Returns n: the final evaluation takes every n-th view of the split. */
static size_t final_stride(const struct validation *v)
{
    size_t count = v->scene->splits[v->split].camera_count;
    return v->split == SCENE_TRAIN ? divide_up(count, TRAIN_VIEWS) : 1;
}

/* Returns the number of views in the final evaluation. */
static size_t final_count(const struct validation *v)
{
    return divide_up(v->scene->splits[v->split].camera_count, final_stride(v));
}

/* Returns n: a quick evaluation takes every n-th view of the final one. */
static size_t quick_every(const struct validation *v)
{
    size_t views = v->quick_views > 0 ? v->quick_views : vkn_trainer_config(v->trainer)->eval_views;
    return divide_up(final_count(v), views);
}

static struct run_pictures pictures_of(const struct validation *v, size_t view_count, size_t every)
{
    struct run_pictures pictures = {
        .every = every,
        .end = view_count < RENDER_MAX_PICTURES ? view_count : RENDER_MAX_PICTURES,
    };
    snprintf(pictures.prefix, sizeof(pictures.prefix), "step_%06llu_",
             (unsigned long long)vkn_trainer_step(v->trainer));
    return pictures;
}

static vkn_status measure(struct validation *v, struct render_evaluation *request,
                          struct vkn_evaluation **evaluation)
{
    char *folder = base_path_join(v->folder, RUN_VIEWS);
    if (!folder)
        return VKN_ERROR;
    double began = base_seconds();
    request->scene = v->scene;
    request->split = v->split;
    request->background = render_background(VKN_BACKGROUND_DEFAULT, vkn_trainer_config(v->trainer));
    request->folder = folder;
    request->stop = v->stop;
    vkn_status status = vkn_renderer_of_trainer(v->trainer, &request->renderer);
    if (status == VKN_OK)
        status = render_evaluate(request, evaluation);
    vkn_renderer_destroy(&request->renderer); /* the rest of the training needs the memory */
    train_add_event(v->trainer, "evaluation", began);
    free(folder);
    return status;
}

/* Sets the means over the views that quick evaluations measured. NaN does not count. */
static void set_means(struct run_pictures *pictures, const struct vkn_evaluation *evaluation)
{
    double psnr = 0.0, ssim = 0.0;
    size_t psnrs = 0, ssims = 0;
    for (size_t i = 0; i < evaluation->view_count; i += pictures->every) {
        const struct vkn_evaluated_view *view = evaluation->views[i];
        psnr += isnan(view->psnr) ? 0.0 : view->psnr;
        ssim += isnan(view->ssim) ? 0.0 : view->ssim;
        psnrs += !isnan(view->psnr);
        ssims += !isnan(view->ssim);
        pictures->quick_views++;
    }
    pictures->psnr = psnr / (double)psnrs;
    pictures->ssim = ssim / (double)ssims;
}

static vkn_status record(struct validation *v, const struct vkn_evaluation *evaluation,
                         struct run_pictures *pictures)
{
    pictures->psnr = evaluation->psnr;
    pictures->ssim = evaluation->ssim;
    if (v->quick_views > 0 && pictures->every > 1)
        set_means(pictures, evaluation);
    run_log_add_evaluation(v->run_log, evaluation, pictures, !v->targets_logged);
    v->targets_logged = true;
    return run_add_evaluation(v->evaluations, evaluation, vkn_trainer_seconds(v->trainer),
                              pictures);
}

/* ---- when, and how many views -------------------------------------------------------------- */

static double number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : 0.0;
}

void validate_open(struct validation *v)
{
    int count = cJSON_GetArraySize(v->evaluations);
    v->step = vkn_trainer_step(v->trainer);
    v->seconds = vkn_trainer_seconds(v->trainer);
    v->quick_views = run_quick_views(v->evaluations, final_count(v));
    if (v->step == 0)
        return;
    /* An evaluation of this step that Ctrl-C interrupted is due again. */
    if (number_of(cJSON_GetArrayItem(v->evaluations, count - 1), "step") < (double)v->step)
        v->step--;
    cJSON *summary = run_read_json(v->folder, RUN_SUMMARY);
    const cJSON *sampling = cJSON_GetObjectItemCaseSensitive(summary, "sampling");
    v->rays_per_step = number_of(sampling, "rays") / fmax(1.0, number_of(sampling, "steps"));
    cJSON_Delete(summary);
}

/* Returns the step and the training time of the next evaluation. */
static struct validation_due next(const struct validation *v)
{
    static const uint64_t percents[] = {10, 20, 40, 80};
    const struct vkn_config *config = vkn_trainer_config(v->trainer);
    struct validation_due due = {UINT32_MAX, HUGE_VAL};
    if (config_has_steps(&config->eval_every)) {
        due.step = config_next_step(&config->eval_every, v->step);
        return due;
    }
    for (size_t i = 0; i < BASE_COUNT(percents); i++) {
        uint64_t step = divide_up(config->steps * percents[i], 100);
        double seconds = config->seconds * (double)percents[i] / 100.0;
        bool is_passed = (config->steps > 0 && step <= v->step) ||
                         (config->seconds > 0.0 && seconds <= v->seconds);
        if (is_passed || (config->steps > 0 && step < FIRST_STEP))
            continue;
        due.step = config->steps > 0 ? step : UINT32_MAX;
        due.seconds = config->seconds > 0.0 ? seconds : HUGE_VAL;
        return due;
    }
    return due;
}

struct validation_due validate_next(const struct validation *v)
{
    struct validation_due due = next(v);
    due.seconds = fmax(due.seconds - vkn_trainer_seconds(v->trainer), 1e-3);
    return due;
}

bool validate_is_due(const struct validation *v)
{
    const struct validation_due due = next(v);
    return vkn_trainer_step(v->trainer) >= due.step ||
           vkn_trainer_seconds(v->trainer) >= due.seconds;
}

/* Returns the number of views in the next quick evaluation. A limit in rays depends on no clock:
 * repeated trainings measure the same views. A trained ray takes about three times as long as a
 * rendered one, so that four evaluations take at most about 5 % of a training. */
static size_t choose_views(const struct validation *v)
{
    const struct vkn_config *config = vkn_trainer_config(v->trainer);
    const struct train_sampling sampling = train_sampling(v->trainer);
    const struct scene_split *split = &v->scene->splits[v->split];
    double pixels = 0.0;
    if (config_has_steps(&config->eval_every))
        return config->eval_views;
    if (v->quick_views > 0)
        return v->quick_views;
    if (v->step < FIRST_STEP)
        return 0;
    for (size_t i = 0; i < split->camera_count; i++)
        pixels += (double)split->cameras[i].width * split->cameras[i].height;
    double rays_per_step =
        sampling.steps > 0 ? sampling.rays / (double)sampling.steps : v->rays_per_step;
    double rays = RAY_SHARE * rays_per_step * (double)v->step;
    double views = floor(rays * (double)split->camera_count / pixels);
    return (size_t)fmin(views, config->eval_views);
}

/* ---- during training ----------------------------------------------------------------------- */

vkn_status validate_quickly(struct validation *v, struct report_progress *progress)
{
    v->step = vkn_trainer_step(v->trainer);
    v->seconds = vkn_trainer_seconds(v->trainer);
    size_t views = choose_views(v);
    if (views == 0)
        return VKN_OK;
    v->quick_views = views;
    struct vkn_evaluation *evaluation = NULL;
    struct run_pictures pictures = pictures_of(v, SIZE_MAX, 1);
    struct render_evaluation request = {
        .stride = final_stride(v) * quick_every(v),
        .pictures = RENDER_COLOR | (v->targets_logged ? 0 : RENDER_TARGET),
        .prefix = pictures.prefix,
        .progress = progress,
    };
    vkn_status status = measure(v, &request, &evaluation);
    report_progress_pause(progress);
    if (status == VKN_ERROR || status == VKN_BAD_INPUT) {
        base_log(BASE_LOG_WARNING, "%s; training goes on without this evaluation",
                 vkn_last_error());
        return VKN_OK;
    }
    BASE_TRY(status);
    pictures.end = evaluation->view_count;
    status = record(v, evaluation, &pictures);
    base_log(BASE_LOG_INFO, "step %llu: %s PSNR %.2f dB, SSIM %.4f (%zu views)",
             (unsigned long long)evaluation->step, scene_split_names[v->split], evaluation->psnr,
             evaluation->ssim, evaluation->view_count);
    vkn_evaluation_free(&evaluation);
    return status;
}

/* ---- at the end ---------------------------------------------------------------------------- */

/* Copies views/test_003.png, which the next evaluation overwrites, to a name with the step, for the
 * report's images over time. */
static vkn_status keep_picture(const struct validation *v, const char *view,
                               const struct run_pictures *pictures)
{
    char *from_file = run_picture_file("", view, "");
    char *to_file = run_picture_file(pictures->prefix, view, "");
    char *from = from_file ? base_path_join(v->folder, from_file) : NULL;
    char *to = to_file ? base_path_join(v->folder, to_file) : NULL;
    char *data = NULL;
    size_t size = 0;
    vkn_status status = from && to ? base_file_read(from, PNG_LIMIT, &data, &size) : VKN_ERROR;
    if (status == VKN_OK)
        status = base_file_replace(to, data, size);
    free(data);
    free(from_file);
    free(to_file);
    free(from);
    free(to);
    return status;
}

vkn_status validate_finally(struct validation *v, struct report_progress *progress,
                            struct vkn_evaluation **evaluation)
{
    struct render_evaluation request = {
        .stride = final_stride(v),
        .pictures = RENDER_EVERYTHING,
        .prefix = "",
        .progress = progress,
        .aligned = render_default_aligned(vkn_trainer_config(v->trainer), v->split),
    };
    BASE_TRY(measure(v, &request, evaluation));
    struct run_pictures pictures = pictures_of(v, (*evaluation)->view_count, quick_every(v));
    for (size_t i = 0; i < pictures.end; i += pictures.every)
        BASE_TRY(keep_picture(v, (*evaluation)->views[i]->name, &pictures));
    return record(v, *evaluation, &pictures);
}
