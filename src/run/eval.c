/* Implements vkn_run_eval; opens a run's renderer and scene to evaluate, render or export it. */
#include "run/open.h"

#include <stdlib.h>

#include "render/render.h"
#include "step/step.h"
#include "run/internal.h"

static vkn_status open_scene(const char *path, enum vkn_scene_format format,
                             struct run_opened *opened)
{
    struct vkn_config config = *vkn_renderer_config(opened->renderer);
    if (format != VKN_SCENE_AUTO)
        config.scene.format = format;
    return run_open_scene(path, vkn_renderer_scene_path(opened->renderer), &config, &opened->scene);
}

vkn_status run_open(const struct vkn_job *job, const char *run, const char *scene_path,
                    enum vkn_scene_format format, enum vkn_precision precision,
                    struct run_opened *opened)
{
    *opened = (struct run_opened){0};
    char *checkpoint = NULL;
    if (!run)
        return base_fail(VKN_BAD_INPUT, "no run is given");
    BASE_TRY(run_find_checkpoint(run, &checkpoint));
    vkn_status status = report_progress_begin(job, 0, 0.0, &opened->progress);
    if (status == VKN_OK)
        status = context_of_job(job, &opened->context);
    if (status == VKN_OK)
        gpu_set_stop_flag(opened->context->device, job->stop);
    if (status == VKN_OK)
        status = vkn_renderer_open(opened->context, checkpoint, precision, &opened->renderer);
    free(checkpoint);
    if (status == VKN_OK)
        status = open_scene(scene_path, format, opened);
    if (status != VKN_OK)
        run_close(opened);
    return status;
}

vkn_status run_set_time(struct run_opened *opened, double time)
{
    BASE_TRY(vkn_renderer_set_time(opened->renderer, time));
    if (!opened->scene->dynamic)
        base_log(BASE_LOG_WARNING, "%s: its frames have no times: time %g has no effect",
                 opened->scene->path, time);
    return VKN_OK;
}

void run_close(struct run_opened *opened)
{
    BASE_KEEP_ERROR;
    report_progress_end(&opened->progress);
    vkn_renderer_destroy(&opened->renderer);
    vkn_scene_close(&opened->scene);
    vkn_context_destroy(&opened->context);
}

vkn_status vkn_run_eval(const struct vkn_eval_params *given, struct vkn_evaluation **evaluation)
{
    BASE_C_LOCALE;
    BASE_NEED(evaluation);
    *evaluation = NULL;
    struct vkn_eval_params own, *params = &own;
    struct vkn_job job;
    BASE_TRY(BASE_READ(__func__, vkn_eval_params, given, params, stride));
    BASE_CHOICE(params, format, VKN_SCENE_NSVF);
    BASE_CHOICE(params, split, VKN_SPLIT_TEST);
    BASE_CHOICE(params, background, VKN_BACKGROUND_BLACK);
    BASE_CHOICE(params, precision, VKN_PRECISION_COOPMAT);
    BASE_TRY(run_read_job(&params->job, &job));
    struct run_opened opened;
    BASE_TRY(
        run_open(&job, params->run, params->scene, params->format, params->precision, &opened));
    struct render_evaluation request = {
        .renderer = opened.renderer,
        .scene = opened.scene,
        .background = render_background(params->background, vkn_renderer_config(opened.renderer)),
        .stride = params->stride > 0 ? params->stride : 1,
        .progress = opened.progress,
        .stop = job.stop,
    };
    vkn_status status = scene_find_split(opened.scene, params->split, &request.split);
    request.aligned = params->aligned ? UINT32_MAX
                                      : render_default_aligned(vkn_renderer_config(opened.renderer),
                                                               request.split);
    if (status == VKN_OK)
        status = render_evaluate(&request, evaluation);
    run_close(&opened);
    return status;
}
