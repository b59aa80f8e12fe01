/* Judges which cameras are better, and writes verdict.json and report.html. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "refine/internal.h"

#define LEAST_NOISE 0.01 /* dB: smaller noise is chance */
#define CERTAIN     2    /* standard errors that a difference must exceed */
#define FEW_VIEWS   3    /* test views with fewer of which only the seeds tell the noise */

/* Smaller deficits of a view's PSNR and SSIM may come from its content. */
#define LEAST_PSNR_MISFIT 5   /* dB below the median */
#define LEAST_SSIM_MISFIT 0.1 /* below the median */
#define NAMED_VIEWS       5   /* most views that warnings name */

static const char *const verdicts[] = {
    [VKN_REFINE_EQUAL] = "equal",
    [VKN_REFINE_REFINED] = "refined",
    [VKN_REFINE_ORIGINAL] = "original",
};

/* ---- the verdict ----------------------------------------------------------------------------- */

/* Sums from which the standard error of a mean is computed. */
struct spread {
    double sum, squares;
    size_t count;
};

static void spread_add(struct spread *spread, double value)
{
    if (!isfinite(value))
        return;
    spread->sum += value;
    spread->squares += value * value;
    spread->count++;
}

static double spread_error(const struct spread *spread)
{
    double n = (double)spread->count;
    if (spread->count < 2)
        return 0;
    return sqrt(fmax(spread->squares - spread->sum * spread->sum / n, 0) / (n * (n - 1)));
}

/* Returns the PSNR of a test view, mean over the seeds. */
static double psnr_of_view(struct refine_run *const runs[REFINE_SETS], uint32_t seeds,
                           enum refine_cameras set, size_t view)
{
    double sum = 0;
    for (uint32_t i = 0; i < seeds; i++)
        sum += runs[set][i].views[view];
    return sum / seeds;
}

/* Returns how many standard errors a mean of `seeds` values must exceed to be certain by 95 %
 * (Student's t). */
static double student(uint32_t seeds)
{
    static const double factors[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26};
    return seeds - 2 < BASE_COUNT(factors) ? factors[seeds - 2] : 2.2;
}

/* The differences of two trainings with one seed vary less than the trainings: both begin with the
 * same weights and draw the same pixels. With two seeds their spread is small by chance at times,
 * therefore the differences of the views' PSNR count as well. */
void refine_judge(struct refine_run *const runs[REFINE_SETS], uint32_t seeds, size_t views,
                  struct vkn_refine_result *result)
{
    struct spread by_seed = {0}, by_view = {0};
    for (int set = 0; set < REFINE_SETS; set++) {
        result->psnr[set] = result->ssim[set] = 0;
        for (uint32_t i = 0; i < seeds; i++) {
            result->psnr[set] += runs[set][i].psnr / seeds;
            result->ssim[set] += runs[set][i].ssim / seeds;
        }
    }
    for (uint32_t i = 0; i < seeds; i++)
        spread_add(&by_seed, runs[REFINE_OTHER][i].psnr - runs[REFINE_ORIGINAL][i].psnr);
    for (size_t i = 0; i < views; i++)
        spread_add(&by_view, psnr_of_view(runs, seeds, REFINE_OTHER, i) -
                                 psnr_of_view(runs, seeds, REFINE_ORIGINAL, i));
    result->difference = result->psnr[REFINE_OTHER] - result->psnr[REFINE_ORIGINAL];
    result->noise = fmax(fmax(spread_error(&by_seed), spread_error(&by_view)), LEAST_NOISE);
    result->threshold = (by_view.count < FEW_VIEWS ? student(seeds) : CERTAIN) * result->noise;
    result->verdict = result->difference > result->threshold    ? VKN_REFINE_REFINED
                      : result->difference < -result->threshold ? VKN_REFINE_ORIGINAL
                                                                : VKN_REFINE_EQUAL;
}

/* ---- views that do not fit ------------------------------------------------------------------- */

/* Returns the limit that few of `count` values that are normally distributed are below: three
 * standard deviations, or 1.4826 median deviations each, and at least `least`, below the median.
 * Overwrites the values. */
static double misfit_limit(double *values, size_t count, double least)
{
    double middle = base_median(values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - middle);
    return middle - fmax(least, 3 * 1.4826 * base_median(values, count));
}

/* A view with fine detail has a low PSNR, but the field has its structure: a high SSIM. */
vkn_status refine_find_misfits(struct refine_view *views, size_t count, size_t *misfits)
{
    double *psnr = base_alloc(count, sizeof *psnr), *ssim = base_alloc(count, sizeof *ssim);
    vkn_status status = psnr && ssim ? VKN_OK : VKN_ERROR;
    size_t known = 0;
    *misfits = 0;
    for (size_t i = 0; status == VKN_OK && i < count; i++)
        if (isfinite(views[i].psnr) && isfinite(views[i].ssim)) {
            psnr[known] = views[i].psnr;
            ssim[known++] = views[i].ssim;
        }
    if (status == VKN_OK) {
        double least_psnr = misfit_limit(psnr, known, LEAST_PSNR_MISFIT);
        double least_ssim = misfit_limit(ssim, known, LEAST_SSIM_MISFIT);
        for (size_t i = 0; i < count; i++) {
            views[i].misfits = views[i].psnr < least_psnr && views[i].ssim < least_ssim;
            *misfits += views[i].misfits ? 1 : 0;
        }
    }
    free(psnr);
    free(ssim);
    return status;
}

/* Names the first views that keep their cameras. */
static void warn_of_rolled_back(const struct refinement *r)
{
    size_t named = 0;
    for (size_t i = 0; i < r->result.views && named < NAMED_VIEWS; i++) {
        const struct refine_view *view = &r->views[i];
        if (!refine_rolls_back(view))
            continue;
        base_log(
            BASE_LOG_WARNING, "view %zu (%s) moved %.1f pixels%s: keeps its camera; take it out?",
            i, r->scenes[REFINE_ORIGINAL]->splits[SCENE_TRAIN].cameras[i].image_path, view->pixels,
            view->misfits ? " and still does not fit" : " and is at refine.limit");
        named++;
    }
    if (r->result.rolled_back > NAMED_VIEWS)
        base_log(BASE_LOG_WARNING, "%zu more views keep their cameras: see %s/report.html",
                 r->result.rolled_back - NAMED_VIEWS, r->out);
}

/* ---- verdict.json ---------------------------------------------------------------------------- */

/* Adds a number, rounded because meaningless digits hide differences; not finite: null. */
static bool add_number(cJSON *json, const char *name, double value, double factor)
{
    return isfinite(value) ? cJSON_AddNumberToObject(json, name, round(value * factor) / factor)
                           : cJSON_AddNullToObject(json, name);
}

static bool add_set(cJSON *json, const char *name, double psnr, double ssim, const char *run)
{
    cJSON *item = cJSON_AddObjectToObject(json, name);
    return item && add_number(item, "psnr", psnr, 1e6) && add_number(item, "ssim", ssim, 1e8) &&
           (!run || cJSON_AddStringToObject(item, "run", run));
}

static bool add_seeds(cJSON *json, const struct refinement *r)
{
    cJSON *list = cJSON_AddArrayToObject(json, "seeds");
    bool added = list != NULL;
    for (uint32_t i = 0; i < r->seeds && added; i++) {
        cJSON *item = cJSON_CreateObject();
        added = cJSON_AddItemToArray(list, item) &&
                cJSON_AddNumberToObject(item, "seed", (double)(r->config.seed + i));
        for (int set = 0; set < REFINE_SETS && added; set++) {
            const struct refine_run *run = &r->runs[set][i];
            added = add_set(item, refine_set_names[set], run->psnr, run->ssim, run->folder);
        }
    }
    return added;
}

static bool add_view(cJSON *list, const struct refinement *r, size_t index)
{
    const struct refine_view *view = &r->views[index];
    const struct scene_camera *camera =
        &r->scenes[REFINE_ORIGINAL]->splits[SCENE_TRAIN].cameras[index];
    cJSON *item = cJSON_CreateObject();
    bool added = cJSON_AddItemToArray(list, item) &&
                 cJSON_AddStringToObject(item, "image", camera->image_path) &&
                 cJSON_AddBoolToObject(item, "test", view->test != SIZE_MAX) &&
                 add_number(item, "pixels", view->pixels, 1e4) &&
                 add_number(item, "degrees", view->degrees, 1e5) &&
                 add_number(item, "distance", view->distance, 1e9) &&
                 add_number(item, "focal", view->focal, 1e6) &&
                 cJSON_AddBoolToObject(item, "at_limit", view->at_limit) &&
                 add_number(item, "psnr", view->psnr, 1e6) &&
                 cJSON_AddBoolToObject(item, "misfit", view->misfits) &&
                 cJSON_AddBoolToObject(item, "rolled_back", refine_rolls_back(view));
    for (int set = 0; set < REFINE_SETS && added && view->test != SIZE_MAX; set++) {
        char name[32];
        snprintf(name, sizeof name, "psnr_%s", refine_set_names[set]);
        added = add_number(item, name, psnr_of_view(r->runs, r->seeds, set, view->test), 1e6);
    }
    return added;
}

static bool add_views(cJSON *json, const struct refinement *r)
{
    cJSON *list = cJSON_AddArrayToObject(json, "views");
    bool added = list != NULL;
    for (size_t i = 0; i < r->result.views && added; i++)
        added = add_view(list, r, i);
    return added;
}

static bool fill_json(cJSON *json, const struct refinement *r)
{
    const struct vkn_refine_result *result = &r->result;
    bool added = cJSON_AddStringToObject(json, "verdict", verdicts[result->verdict]) &&
                 add_number(json, "difference", result->difference, 1e6) &&
                 add_number(json, "noise", result->noise, 1e6) &&
                 add_number(json, "threshold", result->threshold, 1e6);
    for (int set = 0; set < REFINE_SETS && added; set++)
        added = add_set(json, refine_set_names[set], result->psnr[set], result->ssim[set], NULL);
    return added && cJSON_AddStringToObject(json, "scene", r->paths[REFINE_ORIGINAL]) &&
           cJSON_AddStringToObject(json, "refined_scene", r->paths[REFINE_OTHER]) &&
           cJSON_AddStringToObject(json, "format", config_scene_format_names[r->split->format]) &&
           cJSON_AddNumberToObject(json, "steps", (double)result->steps) &&
           add_number(json, "pixels", result->pixels, 1e4) &&
           cJSON_AddNumberToObject(json, "at_limit", (double)result->limited) &&
           cJSON_AddNumberToObject(json, "misfits", (double)result->misfits) &&
           cJSON_AddNumberToObject(json, "rolled_back", (double)result->rolled_back) &&
           cJSON_AddStringToObject(json, "device", r->device) &&
           cJSON_AddStringToObject(json, "driver", r->driver) &&
           cJSON_AddStringToObject(json, "version", VKNERF_VERSION) &&
           cJSON_AddStringToObject(json, "commit", base_commit()) && add_seeds(json, r) &&
           add_views(json, r);
}

static vkn_status write_json(const struct refinement *r)
{
    cJSON *json = cJSON_CreateObject();
    char *text = fill_json(json, r) ? base_json_print(json) : NULL;
    char *path = base_path_join(r->out, REFINE_VERDICT);
    vkn_status status = text && path ? base_file_replace(path, text, strlen(text))
                                     : base_fail(VKN_ERROR, "out of memory");
    free(path);
    free(text);
    cJSON_Delete(json);
    return status;
}

char *vkn_refine_json(const char *out)
{
    BASE_C_LOCALE;
    if (out == NULL) {
        base_fail(VKN_BAD_INPUT, "no folder is given");
        return NULL;
    }
    char *path = base_path_join(out, REFINE_VERDICT), *text = NULL;
    size_t size = 0;
    if (path)
        (void)base_file_read(path, REFINE_JSON_LIMIT, &text, &size);
    free(path);
    return text;
}

/* ---- report.html ----------------------------------------------------------------------------- */

/* Returns the verdict as a sentence, which the caller frees. */
static char *describe(const struct refinement *r)
{
    const char *name = r->params->cameras && r->result.verdict == VKN_REFINE_REFINED
                           ? "other"
                           : verdicts[r->result.verdict];
    return r->result.verdict == VKN_REFINE_EQUAL
               ? base_format("keep the original cameras: differences up to %.2f dB may be noise",
                             r->result.threshold)
               : base_format("keep the %s cameras: they are better by %.2f dB", name,
                             fabs(r->result.difference));
}

static struct report_refined_view page_view(const struct refinement *r, size_t index, char name[32])
{
    const struct refine_view *view = &r->views[index];
    const struct scene_camera *before =
        &r->scenes[REFINE_ORIGINAL]->splits[SCENE_TRAIN].cameras[index];
    struct report_refined_view shown = {
        .before = before,
        .after = &r->scenes[REFINE_OTHER]->splits[SCENE_TRAIN].cameras[index],
        .split = view->test != SIZE_MAX ? "test" : "train",
        .pixels = view->pixels,
        .degrees = view->degrees,
        .distance = view->distance,
        .at_limit = view->at_limit,
        .rolled_back = refine_rolls_back(view),
        .misfits = view->misfits,
        .fit = view->psnr,
        .psnr = {(double)NAN, (double)NAN},
    };
    if (view->test == SIZE_MAX)
        return shown;
    snprintf(name, 32, "test_%03zu", view->test);
    shown.test_view = name;
    for (int set = 0; set < REFINE_SETS; set++)
        shown.psnr[set] = psnr_of_view(r->runs, r->seeds, set, view->test);
    return shown;
}

/* Writes the page; the arrays have an element per view and per seed. */
static vkn_status fill_page(const struct refinement *r, struct report_refined_view *views,
                            struct report_refined_seed *seeds, char (*names)[32],
                            const char *verdict, const char *path)
{
    for (size_t i = 0; i < r->result.views; i++)
        views[i] = page_view(r, i, names[i]);
    for (uint32_t i = 0; i < r->seeds; i++) {
        seeds[i].seed = r->config.seed + i;
        for (int set = 0; set < REFINE_SETS; set++) {
            seeds[i].psnr[set] = r->runs[set][i].psnr;
            seeds[i].ssim[set] = r->runs[set][i].ssim;
            seeds[i].runs[set] = r->runs[set][i].folder;
        }
    }
    const struct report_refinement page = {
        .scene = r->paths[REFINE_ORIGINAL],
        .refined = r->paths[REFINE_OTHER],
        .device = r->device,
        .driver = r->driver,
        .verdict = verdict,
        .difference = r->result.difference,
        .noise = r->result.noise,
        .steps = r->result.steps,
        .seconds = r->result.seconds,
        .limit = r->limit,
        .scale = r->split->scale,
        .views = views,
        .view_count = r->result.views,
        .seeds = seeds,
        .seed_count = r->seeds,
    };
    return report_write_refinement(&page, path);
}

static vkn_status write_page(const struct refinement *r)
{
    struct report_refined_view *views = base_alloc(r->result.views, sizeof *views);
    struct report_refined_seed *seeds = base_alloc(r->seeds, sizeof *seeds);
    char(*names)[32] = base_alloc(r->result.views, sizeof *names);
    char *verdict = describe(r), *path = base_path_join(r->out, REFINE_REPORT);
    vkn_status status = views && seeds && names && verdict && path
                            ? fill_page(r, views, seeds, names, verdict, path)
                            : base_fail(VKN_ERROR, "out of memory");
    free(path);
    free(verdict);
    free(names);
    free(seeds);
    free(views);
    return status;
}

vkn_status refine_write_verdict(struct refinement *r)
{
    refine_judge(r->runs, r->seeds, r->split->splits[SCENE_TEST].camera_count, &r->result);
    warn_of_rolled_back(r);
    BASE_TRY(write_json(r));
    return write_page(r);
}
