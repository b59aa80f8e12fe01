/* Writes the JSON of evaluations, and reads it back when a training is resumed. */
#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "config/config.h"
#include "render/render.h"
#include "run/internal.h"

#define REPORT_PICTURES 12u /* views of an evaluation in report.html */

static const char *const split_names[] = {
    [VKN_SPLIT_DEFAULT] = "default",
    [VKN_SPLIT_TRAIN] = "train",
    [VKN_SPLIT_VAL] = "val",
    [VKN_SPLIT_TEST] = "test",
};

/* ---- quality of a view or of several --------------------------------------------------------- */

static void add_quality(cJSON *object, double psnr, double ssim)
{
    run_add_measure(object, "psnr", psnr, 1e6);
    run_add_measure(object, "ssim", ssim, 1e8);
}

/* Adds a PSNR that not every evaluation has. */
static void add_psnr(cJSON *object, const char *name, double psnr)
{
    if (isfinite(psnr))
        run_add_measure(object, name, psnr, 1e6);
}

/* Adds a share that not every evaluation has. */
static void add_share(cJSON *object, const char *name, double share)
{
    if (isfinite(share))
        run_add_measure(object, name, share, 1e8);
}

/* Adds floaters and depth errors, which only scenes with a sparse model or depth pictures have. */
static void add_shape(cJSON *object, double floaters, double depth_error, double depth_inliers,
                      size_t depths)
{
    add_share(object, "floaters", floaters);
    add_share(object, "depth_error", depth_error);
    add_share(object, "depth_inliers", depth_inliers);
    if (depths > 0)
        cJSON_AddNumberToObject(object, "depths", (double)depths);
}

static void add_view(cJSON *object, const struct vkn_evaluated_view *view)
{
    add_quality(object, view->psnr, view->ssim);
    if (isfinite(view->time))
        run_add_measure(object, "time", view->time, 1e6);
    add_psnr(object, "psnr_aligned", view->psnr_aligned);
    add_psnr(object, "psnr_affine", view->psnr_affine);
    add_psnr(object, "psnr_quadratic", view->psnr_quadratic);
    add_psnr(object, "background_psnr", view->background_psnr);
    add_shape(object, view->floaters, view->depth_error, view->depth_inliers, view->depths);
}

/* ---- one evaluation ------------------------------------------------------------------------- */

void run_evaluation_json(cJSON *json, const struct vkn_evaluation *evaluation)
{
    add_quality(json, evaluation->psnr, evaluation->ssim);
    add_psnr(json, "psnr_aligned", evaluation->psnr_aligned);
    add_psnr(json, "psnr_affine", evaluation->psnr_affine);
    add_psnr(json, "psnr_quadratic", evaluation->psnr_quadratic);
    add_psnr(json, "background_psnr", evaluation->background_psnr);
    add_shape(json, evaluation->floaters, evaluation->depth_error, evaluation->depth_inliers,
              evaluation->depths);
    cJSON_AddNumberToObject(json, "views", (double)evaluation->view_count);
    cJSON_AddStringToObject(json, "split", split_names[evaluation->split]);
    cJSON_AddStringToObject(json, "background",
                            evaluation->background ? config_background_names[evaluation->background]
                                                   : "sky");
    cJSON_AddStringToObject(json, "color_space", "sRGB");
    cJSON_AddNumberToObject(json, "step", (double)evaluation->step);
}

void run_views_json(cJSON *json, const struct vkn_evaluation *evaluation)
{
    cJSON *views = cJSON_AddArrayToObject(json, "per_view");
    for (size_t i = 0; i < evaluation->view_count; i++) {
        const struct vkn_evaluated_view *view = evaluation->views[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", view->name);
        cJSON_AddStringToObject(item, "image", base_path_name(view->image));
        add_view(item, view);
        cJSON_AddItemToArray(views, item);
    }
}

char *vkn_evaluation_json(const struct vkn_evaluation *evaluation)
{
    BASE_C_LOCALE;
    if (!evaluation)
        return NULL;
    cJSON *json = cJSON_CreateObject();
    run_evaluation_json(json, evaluation);
    cJSON_AddStringToObject(json, "precision", config_precision_names[evaluation->precision]);
    run_views_json(json, evaluation);
    char *text = base_json_print(json);
    cJSON_Delete(json);
    return text;
}

char *run_picture_file(const char *prefix, const char *view, const char *kind)
{
    return base_format(RUN_VIEWS "/%s%s%s.png", prefix, view, kind);
}

static void add_picture_file(cJSON *item, const char *field, const char *prefix, const char *view,
                             const char *kind)
{
    char *file = run_picture_file(prefix, view, kind);
    if (file)
        cJSON_AddStringToObject(item, field, file);
    free(file);
}

/* Returns the members that all lists of pictures share, as a new JSON object. */
static cJSON *picture_json(const struct vkn_evaluated_view *view, const char *prefix)
{
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "name", view->name);
    add_picture_file(item, "render", prefix, view->name, "");
    add_picture_file(item, "target", "", view->name, "_target");
    return item;
}

vkn_status run_add_evaluation(struct cJSON *evaluations, const struct vkn_evaluation *evaluation,
                              double seconds, const struct run_pictures *pictures)
{
    cJSON *item = cJSON_CreateObject();
    cJSON_AddNumberToObject(item, "step", (double)evaluation->step);
    run_add_measure(item, "seconds", seconds, 1e3);
    add_quality(item, evaluation->psnr, evaluation->ssim);
    cJSON_AddNumberToObject(item, "views", (double)evaluation->view_count);
    if (pictures && pictures->quick_views > 0) {
        cJSON *quick = cJSON_AddObjectToObject(item, "quick");
        add_quality(quick, pictures->psnr, pictures->ssim);
        cJSON_AddNumberToObject(quick, "views", (double)pictures->quick_views);
    }
    cJSON *list = pictures ? cJSON_AddArrayToObject(item, "pictures") : NULL;
    for (size_t i = 0; list && i < pictures->end; i += pictures->every) {
        cJSON *picture = picture_json(evaluation->views[i], pictures->prefix);
        add_view(picture, evaluation->views[i]);
        cJSON_AddItemToArray(list, picture);
    }
    return cJSON_AddItemToArray(evaluations, item) ? VKN_OK : base_fail(VKN_ERROR, "out of memory");
}

void run_pictures_json(cJSON *json, const struct vkn_evaluation *evaluation)
{
    cJSON *pictures = cJSON_AddArrayToObject(json, "pictures");
    size_t available =
        evaluation->view_count < RENDER_MAX_PICTURES ? evaluation->view_count : RENDER_MAX_PICTURES;
    size_t count = available < REPORT_PICTURES ? available : REPORT_PICTURES;
    for (size_t i = 0; i < count; i++) {
        const struct vkn_evaluated_view *view = evaluation->views[i * available / count];
        cJSON *item = picture_json(view, "");
        add_picture_file(item, "error", "", view->name, "_error");
        add_picture_file(item, "depth", "", view->name, "_depth");
        add_picture_file(item, "opacity", "", view->name, "_opacity");
        add_view(item, view);
        cJSON_AddItemToArray(pictures, item);
    }
}

struct cJSON *run_old_evaluations(const char *folder, uint64_t step)
{
    cJSON *old = run_read_json(folder, RUN_SUMMARY), *kept = cJSON_CreateArray();
    const cJSON *item;
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(old, "evaluations")) {
        const cJSON *at = cJSON_GetObjectItemCaseSensitive(item, "step");
        if (cJSON_IsNumber(at) && at->valuedouble <= (double)step)
            cJSON_AddItemToArray(kept, cJSON_Duplicate(item, true));
    }
    cJSON_Delete(old);
    return kept;
}

/* ---- all evaluations of a run ---------------------------------------------------------------- */

/* Returns what an evaluation measured on the views of quick evaluations. */
static const cJSON *same_views(const cJSON *item)
{
    const cJSON *quick = cJSON_GetObjectItemCaseSensitive(item, "quick");
    return quick ? quick : item;
}

static void copy(cJSON *to, const cJSON *from, const char *name)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(from, name);
    if (value)
        cJSON_AddItemToObject(to, name, cJSON_Duplicate(value, true));
}

size_t run_quick_views(const struct cJSON *evaluations, size_t total)
{
    const cJSON *item;
    size_t found = 0;
    cJSON_ArrayForEach (item, evaluations) {
        const cJSON *views = cJSON_GetObjectItemCaseSensitive(same_views(item), "views");
        double count = cJSON_IsNumber(views) ? views->valuedouble : 0.0;
        if (count >= 1.0 && count < (double)total)
            found = (size_t)count;
    }
    return found;
}

/* Returns the first evaluation whose PSNR is at least `level` dB, measured on the views that all
 * evaluations have; NULL: none. */
static const cJSON *first_at(const struct cJSON *evaluations, double level)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, evaluations) {
        const cJSON *psnr = cJSON_GetObjectItemCaseSensitive(same_views(item), "psnr");
        if (cJSON_IsNumber(psnr) && psnr->valuedouble >= level)
            return item;
    }
    return NULL;
}

void run_reached_json(struct cJSON *json, const struct cJSON *evaluations, const char *split)
{
    static const double levels[] = {25.0, 30.0};
    cJSON *list = cJSON_AddArrayToObject(json, "reached");
    for (size_t i = 0; i < BASE_COUNT(levels); i++) {
        const cJSON *at = first_at(evaluations, levels[i]);
        if (!at)
            continue;
        cJSON *item = cJSON_CreateObject();
        cJSON_AddNumberToObject(item, "psnr", levels[i]);
        cJSON_AddStringToObject(item, "split", split);
        copy(item, at, "step");
        copy(item, at, "seconds");
        copy(item, same_views(at), "views");
        cJSON_AddItemToArray(list, item);
    }
}
