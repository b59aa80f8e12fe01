/* Evaluates a run during and after its training, and records the results. */
#include "run/training.h"

#include <stdlib.h>

#include "render/render.h"
#include "train/train.h"

#define TRAIN_VIEWS 12u               /* most evaluated views of a scene with training views only */
#define PNG_LIMIT   ((size_t)1 << 30) /* bytes */

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

/* Returns n: a quick evaluation takes every n-th view of the final one. */
static size_t quick_every(const struct validation *v)
{
    size_t count = divide_up(v->scene->splits[v->split].camera_count, final_stride(v));
    return divide_up(count, vkn_trainer_config(v->trainer)->eval_views);
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
    if (!v->renderer)
        BASE_TRY(vkn_renderer_of_trainer(v->trainer, &v->renderer));
    char *folder = base_path_join(v->folder, RUN_VIEWS);
    if (!folder)
        return VKN_ERROR;
    double began = base_seconds();
    request->renderer = v->renderer;
    request->scene = v->scene;
    request->split = v->split;
    request->background = render_background(VKN_BACKGROUND_DEFAULT, vkn_trainer_config(v->trainer));
    request->folder = folder;
    request->stop = v->stop;
    vkn_status status = render_evaluate(request, evaluation);
    train_add_event(v->trainer, "evaluation", began);
    free(folder);
    return status;
}

static vkn_status record(struct validation *v, const struct vkn_evaluation *evaluation,
                         const struct run_pictures *pictures)
{
    run_log_add_evaluation(v->run_log, evaluation, pictures, !v->targets_logged);
    v->targets_logged = true;
    return run_add_evaluation(v->evaluations, evaluation, vkn_trainer_seconds(v->trainer),
                              pictures);
}

/* ---- during training ----------------------------------------------------------------------- */

vkn_status validate_quickly(struct validation *v, struct report_progress *progress)
{
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

void validate_close(struct validation *v)
{
    BASE_KEEP_ERROR;
    vkn_renderer_destroy(&v->renderer);
}
