/* Renders views of a split, measures PSNR, SSIM and floaters, and writes pictures. */
#include "render/internal.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "volume/volume.h"

/* Limits of a batch: views that are rendered one by one, then measured and written in parallel. */
#define BATCH_VIEWS  8u
#define BATCH_PIXELS ((uint64_t)8 << 20)

/* Most views that are aligned by default: an aligned view takes as long as about six others. */
#define ALIGNED_VIEWS 16u

struct batch {
    const struct render_evaluation *request;
    struct scene_camera *cameras; /* of the split */
    struct vkn_picture pictures[BATCH_VIEWS];
    size_t first, count; /* range of evaluated views */
    struct vkn_evaluation *evaluation;
};

/* ---- one view ------------------------------------------------------------------------------ */

static const struct scene_camera *view_camera(const struct batch *batch, size_t view)
{
    return &batch->cameras[view * batch->request->stride];
}

static char *picture_path(const char *folder, const char *prefix, const char *view,
                          const char *kind)
{
    char *name = base_format("%s%s%s.png", prefix, view, kind);
    char *path = name ? base_path_join(folder, name) : NULL;
    free(name);
    return path;
}

float render_background_grey(const struct render_evaluation *request)
{
    return request->background == VKN_BACKGROUND_BLACK ? 0.0F : 1.0F;
}

/* Replaces the unused pixels of the target by `color`, so that the error picture is black there, or
 * by grey where `color` is NULL. */
static void fill_unused(const struct vkn_picture *target, size_t count, const float *color)
{
    for (size_t i = 0; i < count; i++)
        for (size_t c = 3 * i; c < 3 * i + 3 && !target->used[i]; c++)
            target->color[c] = color ? color[c] : 0.5F;
}

static vkn_status write_picture(const char *path, unsigned kind, const struct vkn_picture *picture,
                                const struct vkn_picture *target)
{
    uint32_t width = picture->width, height = picture->height;
    switch (kind) {
    case RENDER_ERROR:
        fill_unused(target, (size_t)width * height, picture->color);
        return render_write_error(path, picture->color, target->color, width, height);
    case RENDER_TARGET:
        fill_unused(target, (size_t)width * height, NULL);
        return render_write_color(path, target->color, width, height);
    case RENDER_DEPTH:
        return render_write_depth(path, picture);
    case RENDER_OPACITY:
        return render_write_grey(path, picture->opacity, width, height);
    default:
        return render_write_color(path, picture->color, width, height);
    }
}

static vkn_status write_pictures(const struct render_evaluation *request, const char *view,
                                 const struct vkn_picture *picture,
                                 const struct vkn_picture *target)
{
    static const struct {
        unsigned kind;
        const char *suffix;
    } kinds[] = {{RENDER_COLOR, ""},
                 {RENDER_TARGET, "_target"},
                 {RENDER_ERROR, "_error"},
                 {RENDER_DEPTH, "_depth"},
                 {RENDER_OPACITY, "_opacity"}};
    vkn_status status = VKN_OK;
    for (size_t i = 0; i < BASE_COUNT(kinds) && status == VKN_OK; i++) {
        if (!(request->pictures & kinds[i].kind))
            continue;
        const char *prefix = kinds[i].kind == RENDER_COLOR ? request->prefix : "";
        char *path = picture_path(request->folder, prefix, view, kinds[i].suffix);
        status = path ? write_picture(path, kinds[i].kind, picture, target) : VKN_ERROR;
        free(path);
    }
    return status;
}

/* Returns whether any used pixel of the target is not opaque. */
static bool has_transparency(const struct vkn_picture *target, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (target->used[i] && target->opacity[i] < 1.0F)
            return true;
    return false;
}

/* Measures the PSNR of a picture that shows only the background, for dynamic scenes. NaN for other
 * scenes, and for targets without transparency, whose background is unknown. */
static vkn_status measure_blank(const struct render_evaluation *request,
                                const struct vkn_picture *target, uint32_t width, uint32_t height,
                                double *psnr)
{
    size_t pixels = (size_t)width * height, count = 3 * pixels;
    *psnr = (double)NAN;
    if (!request->scene->dynamic || !has_transparency(target, pixels))
        return VKN_OK;
    float *blank = base_alloc(count, sizeof *blank);
    if (!blank)
        return VKN_ERROR;
    for (size_t i = 0; i < count; i++)
        blank[i] = render_background_grey(request);
    *psnr = vkn_psnr(blank, target->color, target->used, width, height);
    free(blank);
    return VKN_OK;
}

/* Returns whether an evaluation corrects colours: exposures of the images differ. */
static bool has_corrected_psnr(const struct render_evaluation *request)
{
    return vkn_renderer_config(request->renderer)->scene.appearance > VKN_APPEARANCE_OFF;
}

/* Measures a view of the batch and writes its pictures; called by base_parallel. */
static vkn_status measure(void *context, size_t index)
{
    struct batch *batch = context;
    const struct vkn_picture *picture = &batch->pictures[index];
    uint32_t width = picture->width, height = picture->height;
    const struct render_evaluation *request = batch->request;
    size_t view = batch->first + index;
    struct vkn_evaluated_view *result = batch->evaluation->views[view];
    struct vkn_picture target;
    /* Images are read one by one here, since a split may not fit into memory. */
    vkn_status status =
        render_read_photograph(request->scene, request->split, view * request->stride,
                               render_background_grey(request), &target);
    if (status == VKN_OK) {
        result->psnr = vkn_psnr(picture->color, target.color, target.used, width, height);
        status = vkn_ssim(picture->color, target.color, target.used, width, height, &result->ssim);
    }
    result->psnr_affine = result->psnr_quadratic = (double)NAN;
    if (status == VKN_OK && has_corrected_psnr(request)) {
        status = render_corrected_psnr(picture, &target, false, &result->psnr_affine);
        if (status == VKN_OK)
            status = render_corrected_psnr(picture, &target, true, &result->psnr_quadratic);
    }
    if (status == VKN_OK)
        status = render_depth_error(request, view * request->stride, picture, result);
    if (status == VKN_OK)
        status = measure_blank(request, &target, width, height, &result->background_psnr);
    if (status == VKN_OK && request->folder && view < RENDER_MAX_PICTURES)
        status = write_pictures(request, result->name, picture, &target);
    render_picture_free(&target);
    return status;
}

/* ---- all views ----------------------------------------------------------------------------- */

static vkn_status render_batch(struct batch *batch)
{
    uint64_t pixels = 0;
    const struct render_evaluation *request = batch->request;
    size_t left = batch->evaluation->view_count - batch->first;
    for (batch->count = 0; batch->count < left && batch->count < BATCH_VIEWS; batch->count++) {
        size_t view = batch->first + batch->count;
        const struct scene_camera *camera = view_camera(batch, view);
        pixels += (uint64_t)camera->width * camera->height;
        if (batch->count > 0 && pixels > BATCH_PIXELS)
            break;
        report_progress_count(request->progress, "evaluating", view, batch->evaluation->view_count);
        if (base_stop_asked(request->stop))
            return base_fail(VKN_INTERRUPTED, "interrupted after %zu of %zu views", view,
                             batch->evaluation->view_count);
        BASE_TRY(render_set_view_appearance(request->renderer, request->scene, request->split,
                                            view * request->stride));
        BASE_TRY(render_picture(request->renderer, camera, request->background, 1,
                                &batch->pictures[batch->count]));
        BASE_TRY(render_floaters(request->renderer, request->scene, camera,
                                 &batch->evaluation->views[view]->floaters));
    }
    return VKN_OK;
}

static vkn_status evaluate_batches(struct batch *batch)
{
    vkn_status status = VKN_OK;
    while (batch->first < batch->evaluation->view_count && status == VKN_OK) {
        status = render_batch(batch);
        if (status == VKN_OK)
            status = base_parallel(batch->count, measure, batch, NULL);
        for (size_t i = 0; i < BATCH_VIEWS; i++)
            render_picture_free(&batch->pictures[i]);
        batch->first += batch->count;
    }
    return status;
}

static vkn_status name_views(const struct render_evaluation *request,
                             struct vkn_evaluation *evaluation)
{
    for (size_t i = 0; i < evaluation->view_count; i++) {
        struct vkn_evaluated_view *view = evaluation->views[i];
        size_t index = i * request->stride;
        snprintf(view->name, sizeof(view->name), "%s_%03zu", scene_split_names[request->split],
                 index);
        const struct scene_camera *camera = &request->scene->splits[request->split].cameras[index];
        view->psnr_aligned = (double)NAN;
        view->time = request->scene->dynamic ? (double)camera->time : (double)NAN;
        view->image = base_format("%s", camera->image_path);
        if (!view->image)
            return VKN_ERROR;
    }
    return VKN_OK;
}

/* Adds a value unless it is NaN: the view has no used pixels or is smaller than SSIM's window. */
static void add_to_mean(double value, double *sum, size_t *count)
{
    if (isnan(value))
        return;
    *sum += value;
    *count += 1;
}

/* Returns the mean of a quality over the views where it is not NaN; NaN if there are none. */
static double mean_over_views(const struct vkn_evaluation *evaluation, size_t offset)
{
    double sum = 0, value;
    size_t count = 0;
    for (size_t i = 0; i < evaluation->view_count; i++) {
        memcpy(&value, (const char *)evaluation->views[i] + offset, sizeof value);
        add_to_mean(value, &sum, &count);
    }
    return count ? sum / (double)count : (double)NAN;
}

static void add_means(struct vkn_evaluation *evaluation)
{
#define MEAN(member) \
    evaluation->member = mean_over_views(evaluation, offsetof(struct vkn_evaluated_view, member))
    MEAN(psnr);
    MEAN(ssim);
    MEAN(background_psnr);
    MEAN(floaters);
    MEAN(psnr_affine);
    MEAN(psnr_quadratic);
    MEAN(depth_error);
    MEAN(depth_inliers);
#undef MEAN
    for (size_t i = 0; i < evaluation->view_count; i++)
        evaluation->depths += evaluation->views[i]->depths;
}

/* Aligns a view. Adds its movement in pixels, and what its PSNR gains, to the sums. */
static vkn_status align_view(const struct render_evaluation *request,
                             const struct scene_split *split, size_t index,
                             const struct scene_whitening *whitening,
                             struct vkn_evaluated_view *view, double sums[2], size_t *count)
{
    struct render_aligned aligned;
    BASE_TRY(render_set_view_appearance(request->renderer, request->scene, request->split, index));
    BASE_TRY(render_align_view(request, index, &split->cameras[index], whitening, &aligned));
    view->psnr_aligned = aligned.psnr;
    add_to_mean(aligned.psnr - view->psnr, &sums[1], count);
    for (int half = 0; half < 2 && !isnan(aligned.psnr); half++)
        sums[0] += 0.5 * scene_pixel_movement(split, index, &aligned.cameras[half]);
    return VKN_OK;
}

/* Aligns evenly spaced views, at most request->aligned of them. `cameras`: of the split. */
static vkn_status align_views(const struct render_evaluation *request, struct scene_camera *cameras,
                              struct vkn_evaluation *evaluation)
{
    const struct scene_split split = {
        .cameras = cameras, .camera_count = request->scene->splits[request->split].camera_count};
    size_t views = evaluation->view_count, every = (views - 1) / request->aligned + 1;
    size_t total = (views - 1) / every + 1, count = 0;
    struct scene_whitening *whitenings = base_alloc(split.camera_count, sizeof *whitenings);
    vkn_status status = whitenings ? VKN_OK : VKN_ERROR;
    double sums[2] = {0};
    if (status == VKN_OK)
        scene_whiten(&split, whitenings);
    for (size_t i = 0; i < total && status == VKN_OK; i++) {
        size_t index = i * every * request->stride;
        report_progress_count(request->progress, "aligning views", i, total);
        status = align_view(request, &split, index, &whitenings[index],
                            evaluation->views[i * every], sums, &count);
    }
    free(whitenings);
    BASE_TRY(status);
    report_progress_count(request->progress, "aligning views", total, total);
    if (count == 0)
        return VKN_OK;
    report_progress_pause(request->progress);
    evaluation->psnr_aligned = evaluation->psnr + sums[1] / (double)count;
    base_log(BASE_LOG_INFO,
             "%zu of %zu views aligned: moved by %.2f pixels in the mean, PSNR %+.2f dB", count,
             views, sums[0] / (double)count, sums[1] / (double)count);
    return VKN_OK;
}

static vkn_status evaluate_split(const struct render_evaluation *request,
                                 struct vkn_evaluation *evaluation)
{
    const struct scene_split *split = &request->scene->splits[request->split];
    if (request->folder)
        BASE_TRY(base_make_folder(request->folder));
    size_t count = (split->camera_count + request->stride - 1) / request->stride;
    evaluation->views = base_alloc_pointers(count, sizeof(struct vkn_evaluated_view));
    if (!evaluation->views)
        return VKN_ERROR;
    evaluation->view_count = count;
    BASE_TRY(scene_find_depths(request->scene, request->split));
    BASE_TRY(name_views(request, evaluation));
    struct batch batch = {.request = request, .evaluation = evaluation};
    BASE_TRY(
        render_split_cameras(request->renderer, request->scene, request->split, &batch.cameras));
    evaluation->psnr_aligned = (double)NAN;
    vkn_status status = evaluate_batches(&batch);
    if (status == VKN_OK) {
        report_progress_count(request->progress, "evaluating", count, count);
        add_means(evaluation);
    }
    if (status == VKN_OK && request->aligned > 0)
        status = align_views(request, batch.cameras, evaluation);
    render_set_exposure(request->renderer, 0);
    free(batch.cameras);
    return status;
}

vkn_status render_evaluate(const struct render_evaluation *request,
                           struct vkn_evaluation **evaluation)
{
    static const enum vkn_split splits[SCENE_SPLITS] = {[SCENE_TRAIN] = VKN_SPLIT_TRAIN,
                                                        [SCENE_VAL] = VKN_SPLIT_VAL,
                                                        [SCENE_TEST] = VKN_SPLIT_TEST};
    struct vkn_evaluation *made = *evaluation = base_alloc(1, sizeof *made);
    if (!made)
        return VKN_ERROR;
    *made = (struct vkn_evaluation){
        .split = splits[request->split],
        .background = request->background,
        .precision = vkn_renderer_config(request->renderer)->precision,
        .step = vkn_renderer_step(request->renderer),
    };
    vkn_status status = evaluate_split(request, made);
    if (status != VKN_OK)
        vkn_evaluation_free(evaluation);
    return status;
}

void vkn_evaluation_free(struct vkn_evaluation **evaluation)
{
    if (!evaluation || !*evaluation)
        return;
    for (size_t i = 0; i < (*evaluation)->view_count; i++)
        free((*evaluation)->views[i]->image);
    free((*evaluation)->views);
    free(*evaluation);
    *evaluation = NULL;
}

uint32_t render_default_aligned(const struct vkn_config *config, enum scene_split_name split)
{
    return config->scene.refine > VKN_REFINEMENT_OFF && split != SCENE_TRAIN ? ALIGNED_VIEWS : 0;
}

enum vkn_background render_background(enum vkn_background request, const struct vkn_config *config)
{
    if (request == VKN_BACKGROUND_WHITE || request == VKN_BACKGROUND_BLACK)
        return request;
    if (volume_sky_cells(config) > 0)
        return VKN_BACKGROUND_DEFAULT;
    return config->background == VKN_BACKGROUND_BLACK ? VKN_BACKGROUND_BLACK : VKN_BACKGROUND_WHITE;
}
