/* Reads summary.json. Every field is optional, but a field that is present must be valid, also one
 * that only the page's script reads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/run.h"

/* An optional number or text of an object, and where to store it; NULL: only checked. */
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
    for (size_t i = 0; i < count; i++) {
        double ignored, *value = fields[i].value ? fields[i].value : &ignored;
        *value = (double)NAN;
        BASE_TRY(base_json_number(object, fields[i].name, file, false, fields[i].minimum,
                                  fields[i].maximum, value));
    }
    return VKN_OK;
}

static vkn_status read_texts(const cJSON *object, const char *file, const struct text_field *fields,
                             size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *ignored, **value = fields[i].value ? fields[i].value : &ignored;
        *value = NULL;
        BASE_TRY(base_json_string(object, fields[i].name, file, false, value));
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
        {"psnr", -HUGE_VAL, HUGE_VAL, &view->psnr},
        {"ssim", -1.0, 1.0, &view->ssim},
        {"time", 0.0, 1.0, NULL},
        {"blank_psnr", -HUGE_VAL, HUGE_VAL, NULL}, /* former name */
        {"background_psnr", -HUGE_VAL, HUGE_VAL, NULL},
    };
    const struct text_field texts[] = {{"name", &view->name}};
    BASE_TRY(read_numbers(item, file, numbers, BASE_COUNT(numbers)));
    return read_texts(item, file, texts, BASE_COUNT(texts));
}

static vkn_status check_pass(const cJSON *item, const char *file, void *out)
{
    (void)out;
    static const struct number_field numbers[] = {
        {"share", 0.0, 1.0 + 1e-6, NULL}, {"milliseconds", 0.0, HUGE_VAL, NULL},
        {"flops", 0.0, HUGE_VAL, NULL},   {"bytes", 0.0, HUGE_VAL, NULL},
        {"atomics", 0.0, HUGE_VAL, NULL}, {"floor_milliseconds", 0.0, HUGE_VAL, NULL},
    };
    static const struct text_field texts[] = {{"name", NULL}, {"bound", NULL}};
    BASE_TRY(read_numbers(item, file, numbers, BASE_COUNT(numbers)));
    return read_texts(item, file, texts, BASE_COUNT(texts));
}

static vkn_status check_buffer(const cJSON *item, const char *file, void *out)
{
    (void)out;
    static const struct number_field numbers[] = {{"bytes", 0.0, HUGE_VAL, NULL}};
    static const struct text_field texts[] = {{"name", NULL}};
    BASE_TRY(read_numbers(item, file, numbers, BASE_COUNT(numbers)));
    return read_texts(item, file, texts, BASE_COUNT(texts));
}

static vkn_status check_level(const cJSON *item, const char *file, void *out)
{
    (void)out;
    static const struct number_field numbers[] = {{"psnr", -HUGE_VAL, HUGE_VAL, NULL},
                                                  {"step", 0.0, HUGE_VAL, NULL},
                                                  {"seconds", 0.0, HUGE_VAL, NULL}};
    return read_numbers(item, file, numbers, BASE_COUNT(numbers));
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
        BASE_TRY(read(item, where, items ? items + index * item_size : NULL));
        index++;
    }
    return VKN_OK;
}

/* Reads a list, if there is one, into *items. The caller frees *items, also after a failure. Only
 * checks the list if `items` is NULL. */
static vkn_status read_list(const cJSON *object, const char *file, const char *name, void **items,
                            size_t item_size, size_t *count,
                            vkn_status (*read)(const cJSON *, const char *, void *))
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, name);
    if (list == NULL || cJSON_IsNull(list))
        return VKN_OK;
    if (!cJSON_IsArray(list))
        return base_json_fail(file, name, "not an array");
    if (!items)
        return read_items(list, file, name, NULL, 0, read);
    size_t size = (size_t)cJSON_GetArraySize(list);
    *items = base_alloc(size, item_size);
    if (*items == NULL)
        return VKN_ERROR;
    *count = size; /* also after a failure: items that were not read are zero */
    return read_items(list, file, name, *items, item_size, read);
}

static vkn_status check_list(const cJSON *object, const char *file, const char *name,
                             vkn_status (*check)(const cJSON *, const char *, void *))
{
    return read_list(object, file, name, NULL, 0, NULL, check);
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
    status = read_list(json, file, "per_view", &items, sizeof(*summary->per_view),
                       &summary->per_view_count, read_view);
    summary->per_view = items;
    if (status == VKN_OK)
        status = check_list(json, file, "passes", check_pass);
    if (status == VKN_OK)
        status = check_list(json, file, "buffers", check_buffer);
    return status == VKN_OK ? check_list(json, file, "reached", check_level) : status;
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

/* Checks the numbers of an object, if there is one, and the text `text`; NULL: no text. */
static vkn_status check_object(const cJSON *json, const char *path, const char *name,
                               const struct number_field *fields, size_t count, const char *text)
{
    const cJSON *object = NULL;
    char where[512];
    BASE_TRY(find_object(json, path, name, &object, where));
    BASE_TRY(read_numbers(object, where, fields, count));
    return read_texts(object, where, &(struct text_field){text, NULL}, text ? 1 : 0);
}

static vkn_status check_objects(const cJSON *json, const char *path)
{
    static const struct number_field profile[] = {
        {"steps", 0.0, HUGE_VAL, NULL},
        {"periods", 0.0, HUGE_VAL, NULL},
        {"idle_milliseconds", 0.0, HUGE_VAL, NULL},
        {"period_idle_milliseconds", 0.0, HUGE_VAL, NULL},
        {"rays", 0.0, HUGE_VAL, NULL},
        {"marched_samples", 0.0, HUGE_VAL, NULL},
        {"live_samples", 0.0, HUGE_VAL, NULL},
        {"peak_flops_per_second", 0.0, HUGE_VAL, NULL},
        {"peak_bytes_per_second", 0.0, HUGE_VAL, NULL},
        {"peak_atomics_per_second", 0.0, HUGE_VAL, NULL},
    };
    static const struct number_field sampling[] = {
        {"rays_per_second", 0.0, HUGE_VAL, NULL}, {"evaluated_per_ray", 0.0, HUGE_VAL, NULL},
        {"live_per_ray", 0.0, HUGE_VAL, NULL},    {"empty_share", 0.0, 1.0, NULL},
        {"behind_share", 0.0, 1.0, NULL},
    };
    static const struct number_field parallel[] = {{"ranks", 2.0, HUGE_VAL, NULL},
                                                   {"exchange_share", 0.0, 1.0, NULL},
                                                   {"exchange_bytes", 0.0, HUGE_VAL, NULL}};
    BASE_TRY(check_object(json, path, "profile", profile, BASE_COUNT(profile), NULL));
    BASE_TRY(check_object(json, path, "sampling", sampling, BASE_COUNT(sampling), "kind"));
    return check_object(json, path, "parallel", parallel, BASE_COUNT(parallel), NULL);
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
        {"psnr_aligned", -HUGE_VAL, HUGE_VAL, NULL},
        {"psnr_quadratic", -HUGE_VAL, HUGE_VAL, NULL},
        {"views", 0.0, HUGE_VAL, NULL},
        {"step", 0.0, HUGE_VAL, &summary->step},
        {"blank_psnr", -HUGE_VAL, HUGE_VAL, NULL}, /* former name */
        {"background_psnr", -HUGE_VAL, HUGE_VAL, NULL},
        {"floaters", 0.0, 1.0, NULL},
        {"depth_error", 0.0, HUGE_VAL, NULL},
        {"seconds", 0.0, HUGE_VAL, &summary->seconds},
        {"skipped_steps", 0.0, HUGE_VAL, NULL},
    };
    const struct text_field texts[] = {
        {"failure", &summary->failure},
        {"background", NULL},
        {"color_space", NULL},
        {"precision", &summary->precision},
        {"device", &summary->device},
        {"driver", NULL},
        {"scene", &summary->scene},
        {"status", &summary->status},
        {"path", NULL},
        {"gradient_sums", NULL},
        {"policy", NULL},
    };
    if (json != NULL && !cJSON_IsObject(json))
        return base_fail(VKN_BAD_INPUT, "%s: not a JSON object", path);
    BASE_TRY(read_numbers(json, path, numbers, BASE_COUNT(numbers)));
    BASE_TRY(read_texts(json, path, texts, BASE_COUNT(texts)));
    BASE_TRY(read_gradients(json, path, &summary->gradient_warning));
    BASE_TRY(check_objects(json, path));
    return json != NULL ? read_lists(json, path, summary) : VKN_OK;
}

void run_free_summary(struct run_summary *summary)
{
    for (size_t i = 0; i < summary->evaluation_count; i++)
        free(summary->evaluations[i].pictures);
    free(summary->evaluations);
    free(summary->pictures);
    free(summary->per_view);
    *summary = (struct run_summary){0};
}
