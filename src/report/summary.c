/* Reads summary.json. Every field is optional, but a field that is present must be valid. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/run.h"

/* An optional number or text of an object, and where to store it. */
struct number_field {
    const char *name;
    double minimum, maximum, *value;
};
struct text_field {
    const char *name;
    const char **value;
};

static vkn_status read_numbers(const cJSON *object, const char *file,
                               const struct number_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *fields[i].value = (double)NAN;
    for (size_t i = 0; i < count; i++)
        BASE_TRY(base_json_number(object, fields[i].name, file, false, fields[i].minimum,
                                  fields[i].maximum, fields[i].value));
    return VKN_OK;
}

static vkn_status read_texts(const cJSON *object, const char *file, const struct text_field *fields,
                             size_t count)
{
    for (size_t i = 0; i < count; i++) {
        *fields[i].value = NULL;
        BASE_TRY(base_json_string(object, fields[i].name, file, false, fields[i].value));
    }
    return VKN_OK;
}

/* ---- lists ------------------------------------------------------------------------ */

static vkn_status read_picture(const cJSON *item, const char *file, void *out)
{
    struct run_picture *picture = out;
    const struct number_field numbers[] = {
        {"psnr", -HUGE_VAL, HUGE_VAL, &picture->psnr},
        {"ssim", -1.0, 1.0, &picture->ssim},
    };
    const struct text_field texts[] = {
        {"name", &picture->name},   {"render", &picture->render}, {"target", &picture->target},
        {"error", &picture->error}, {"depth", &picture->depth},   {"opacity", &picture->opacity},
    };
    BASE_TRY(read_numbers(item, file, numbers, BASE_COUNT(numbers)));
    return read_texts(item, file, texts, BASE_COUNT(texts));
}

static vkn_status read_view(const cJSON *item, const char *file, void *out)
{
    struct run_view *view = out;
    const struct number_field numbers[] = {
        {"time", 0.0, 1.0, &view->time},
        {"psnr", -HUGE_VAL, HUGE_VAL, &view->psnr},
        {"blank_psnr", -HUGE_VAL, HUGE_VAL, &view->background_psnr}, /* former name */
        {"background_psnr", -HUGE_VAL, HUGE_VAL, &view->background_psnr},
    };
    return read_numbers(item, file, numbers, BASE_COUNT(numbers));
}

static int compare_times(const void *a, const void *b)
{
    double x = ((const struct run_view *)a)->time, y = ((const struct run_view *)b)->time;
    return isnan(x) || isnan(y) ? (isnan(x) != 0) - (isnan(y) != 0) : (x > y) - (x < y);
}

static vkn_status read_pass(const cJSON *item, const char *file, void *out)
{
    struct run_pass *pass = out;
    const struct number_field numbers[] = {
        {"share", 0.0, 1.0 + 1e-6, &pass->share},
        {"milliseconds", 0.0, HUGE_VAL, &pass->milliseconds},
        {"flops", 0.0, HUGE_VAL, &pass->flops},
        {"bytes", 0.0, HUGE_VAL, &pass->bytes},
        {"atomics", 0.0, HUGE_VAL, &pass->atomics},
        {"floor_milliseconds", 0.0, HUGE_VAL, &pass->floor_milliseconds},
    };
    const struct text_field texts[] = {{"name", &pass->name}, {"bound", &pass->bound}};
    BASE_TRY(read_numbers(item, file, numbers, BASE_COUNT(numbers)));
    return read_texts(item, file, texts, BASE_COUNT(texts));
}

static vkn_status read_buffer(const cJSON *item, const char *file, void *out)
{
    struct run_buffer *buffer = out;
    const struct number_field numbers[] = {{"bytes", 0.0, HUGE_VAL, &buffer->bytes}};
    const struct text_field texts[] = {{"name", &buffer->name}};
    BASE_TRY(read_numbers(item, file, numbers, BASE_COUNT(numbers)));
    return read_texts(item, file, texts, BASE_COUNT(texts));
}

static vkn_status read_items(const cJSON *list, const char *file, const char *name, char *items,
                             size_t item_size,
                             vkn_status (*read)(const cJSON *, const char *, void *))
{
    size_t index = 0, size = strlen(file);
    const char *separator =
        size > 0 && file[size - 1] == '.' ? "" : ": "; /* see base_json_number */
    const cJSON *item;
    cJSON_ArrayForEach (item, list) {
        char where[512];
        snprintf(where, sizeof(where), "%s%s%s[%zu].", file, separator, name, index);
        if (!cJSON_IsObject(item))
            return base_fail(VKN_BAD_INPUT, "%.*s: not an object", (int)strlen(where) - 1, where);
        BASE_TRY(read(item, where, items + index * item_size));
        index++;
    }
    return VKN_OK;
}

/* Reads a list, if there is one, into *items. The caller frees *items, also after a failure. */
static vkn_status read_list(const cJSON *object, const char *file, const char *name, void **items,
                            size_t item_size, size_t *count,
                            vkn_status (*read)(const cJSON *, const char *, void *))
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, name);
    if (list == NULL || cJSON_IsNull(list))
        return VKN_OK;
    if (!cJSON_IsArray(list))
        return base_json_fail(file, name, "not an array");
    size_t size = (size_t)cJSON_GetArraySize(list);
    *items = base_alloc(size, item_size);
    if (*items == NULL)
        return VKN_ERROR;
    *count = size; /* also after a failure: items that were not read are zero */
    return read_items(list, file, name, *items, item_size, read);
}

static vkn_status read_evaluation(const cJSON *item, const char *file, void *out)
{
    struct run_evaluation *evaluation = out;
    /* The final evaluation measures more views than the others: a curve needs the same views. */
    const cJSON *quick = cJSON_GetObjectItemCaseSensitive(item, "quick");
    const struct number_field times[] = {
        {"step", 0.0, HUGE_VAL, &evaluation->step},
        {"seconds", 0.0, HUGE_VAL, &evaluation->seconds},
    };
    const struct number_field quality[] = {
        {"psnr", -HUGE_VAL, HUGE_VAL, &evaluation->psnr},
        {"ssim", -1.0, 1.0, &evaluation->ssim},
    };
    BASE_TRY(read_numbers(item, file, times, BASE_COUNT(times)));
    BASE_TRY(read_numbers(quick ? quick : item, file, quality, BASE_COUNT(quality)));
    void *pictures = NULL;
    vkn_status status = read_list(item, file, "pictures", &pictures, sizeof(*evaluation->pictures),
                                  &evaluation->picture_count, read_picture);
    evaluation->pictures = pictures;
    return status;
}

static vkn_status read_lists(const cJSON *json, const char *file, struct run_summary *summary)
{
    void *items = NULL;
    vkn_status status = read_list(json, file, "evaluations", &items, sizeof(*summary->evaluations),
                                  &summary->evaluation_count, read_evaluation);
    summary->evaluations = items;
    if (status != VKN_OK)
        return status;
    items = NULL;
    status = read_list(json, file, "pictures", &items, sizeof(*summary->pictures),
                       &summary->picture_count, read_picture);
    summary->pictures = items;
    if (status != VKN_OK)
        return status;
    items = NULL;
    status = read_list(json, file, "per_view", &items, sizeof(*summary->by_time),
                       &summary->by_time_count, read_view);
    summary->by_time = items;
    if (status != VKN_OK)
        return status;
    if (summary->by_time_count > 0)
        qsort(summary->by_time, summary->by_time_count, sizeof(*summary->by_time), compare_times);
    items = NULL;
    status = read_list(json, file, "passes", &items, sizeof(*summary->passes), &summary->pass_count,
                       read_pass);
    summary->passes = items;
    if (status != VKN_OK)
        return status;
    items = NULL;
    status = read_list(json, file, "buffers", &items, sizeof(*summary->buffers),
                       &summary->buffer_count, read_buffer);
    summary->buffers = items;
    return status;
}

/* ---- objects -------------------------------------------------------------------------------- */

/* Finds an object, NULL when missing. `where`: prefix of the object's fields in errors. */
static vkn_status find_object(const cJSON *json, const char *path, const char *name,
                              const cJSON **object, char where[512])
{
    *object = cJSON_GetObjectItemCaseSensitive(json, name);
    snprintf(where, 512, "%s: %s.", path, name);
    return *object == NULL || cJSON_IsObject(*object)
               ? VKN_OK
               : base_fail(VKN_BAD_INPUT, "%s: %s: not an object", path, name);
}

static vkn_status read_profile(const cJSON *json, const char *path, struct run_profile *profile)
{
    const cJSON *object = NULL;
    char where[512];
    BASE_TRY(find_object(json, path, "profile", &object, where));
    const struct number_field numbers[] = {
        {"steps", 0.0, HUGE_VAL, &profile->steps},
        {"periods", 0.0, HUGE_VAL, &profile->intervals},
        {"idle_milliseconds", 0.0, HUGE_VAL, &profile->idle_milliseconds},
        {"period_idle_milliseconds", 0.0, HUGE_VAL, &profile->interval_idle_milliseconds},
        {"rays", 0.0, HUGE_VAL, &profile->rays},
        {"marched_samples", 0.0, HUGE_VAL, &profile->marched_samples},
        {"live_samples", 0.0, HUGE_VAL, &profile->live_samples},
        {"peak_flops_per_second", 0.0, HUGE_VAL, &profile->peak_flops},
        {"peak_bytes_per_second", 0.0, HUGE_VAL, &profile->peak_bytes},
        {"peak_atomics_per_second", 0.0, HUGE_VAL, &profile->peak_atomics},
    };
    return read_numbers(object, where, numbers, BASE_COUNT(numbers));
}

static vkn_status read_sampling(const cJSON *json, const char *path, struct run_sampling *sampling)
{
    const cJSON *object = NULL;
    char where[512];
    BASE_TRY(find_object(json, path, "sampling", &object, where));
    const struct number_field numbers[] = {
        {"rays_per_second", 0.0, HUGE_VAL, &sampling->rays_per_second},
        {"evaluated_per_ray", 0.0, HUGE_VAL, &sampling->evaluated_per_ray},
        {"live_per_ray", 0.0, HUGE_VAL, &sampling->live_per_ray},
        {"empty_share", 0.0, 1.0, &sampling->empty_share},
        {"behind_share", 0.0, 1.0, &sampling->not_live_share},
    };
    const struct text_field texts[] = {{"kind", &sampling->kind}};
    BASE_TRY(read_numbers(object, where, numbers, BASE_COUNT(numbers)));
    return read_texts(object, where, texts, BASE_COUNT(texts));
}

static vkn_status read_parallel(const cJSON *json, const char *path, struct run_parallel *parallel)
{
    const cJSON *object = NULL;
    char where[512];
    BASE_TRY(find_object(json, path, "parallel", &object, where));
    const struct number_field numbers[] = {
        {"ranks", 2.0, HUGE_VAL, &parallel->ranks},
        {"exchange_share", 0.0, 1.0, &parallel->exchange_share},
        {"exchange_bytes", 0.0, HUGE_VAL, &parallel->exchange_bytes},
    };
    return read_numbers(object, where, numbers, BASE_COUNT(numbers));
}

static vkn_status read_gradients(const cJSON *json, const char *path, const char **warning)
{
    const cJSON *object = NULL;
    char where[512];
    BASE_TRY(find_object(json, path, "gradients", &object, where));
    const struct text_field texts[] = {{"warning", warning}};
    return read_texts(object, where, texts, BASE_COUNT(texts));
}

/* ---- summary.json --------------------------------------------------------------------------- */

vkn_status run_read_summary(const char *path, const struct cJSON *json, struct run_summary *summary)
{
    *summary = (struct run_summary){.is_read = json != NULL};
    const struct number_field numbers[] = {
        {"psnr", -HUGE_VAL, HUGE_VAL, &summary->psnr},
        {"ssim", -1.0, 1.0, &summary->ssim},
        {"psnr_aligned", -HUGE_VAL, HUGE_VAL, &summary->psnr_aligned},
        {"psnr_quadratic", -HUGE_VAL, HUGE_VAL, &summary->psnr_quadratic},
        {"views", 0.0, HUGE_VAL, &summary->views},
        {"step", 0.0, HUGE_VAL, &summary->step},
        {"blank_psnr", -HUGE_VAL, HUGE_VAL, &summary->background_psnr}, /* former name */
        {"background_psnr", -HUGE_VAL, HUGE_VAL, &summary->background_psnr},
        {"floaters", 0.0, 1.0, &summary->floaters},
        {"depth_error", 0.0, HUGE_VAL, &summary->depth_error},
        {"seconds", 0.0, HUGE_VAL, &summary->seconds},
        {"skipped_steps", 0.0, HUGE_VAL, &summary->skipped_steps},
    };
    const struct text_field texts[] = {
        {"failure", &summary->failure},
        {"background", &summary->background},
        {"color_space", &summary->color_space},
        {"precision", &summary->precision},
        {"device", &summary->device},
        {"driver", &summary->driver},
        {"scene", &summary->scene},
        {"status", &summary->status},
        {"path", &summary->path},
        {"gradient_sums", &summary->gradient_sums},
        {"policy", &summary->policy},
    };
    if (json != NULL && !cJSON_IsObject(json))
        return base_fail(VKN_BAD_INPUT, "%s: not a JSON object", path);
    BASE_TRY(read_numbers(json, path, numbers, BASE_COUNT(numbers)));
    BASE_TRY(read_texts(json, path, texts, BASE_COUNT(texts)));
    BASE_TRY(read_gradients(json, path, &summary->gradient_warning));
    BASE_TRY(read_profile(json, path, &summary->profile));
    BASE_TRY(read_sampling(json, path, &summary->sampling));
    BASE_TRY(read_parallel(json, path, &summary->parallel));
    return json != NULL ? read_lists(json, path, summary) : VKN_OK;
}

void run_free_summary(struct run_summary *summary)
{
    for (size_t i = 0; i < summary->evaluation_count; i++)
        free(summary->evaluations[i].pictures);
    free(summary->evaluations);
    free(summary->pictures);
    free(summary->by_time);
    free(summary->passes);
    free(summary->buffers);
    *summary = (struct run_summary){0};
}
