/* Writes and reads config.json and summary.json of a run. */
#include "config/config.h"
#include "run/internal.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <math.h>

#include "render/render.h"
#include "run/training.h"

/* ---- helpers ------------------------------------------------------------------------------- */

void run_add_measure(cJSON *object, const char *name, double value, double factor)
{
    cJSON_AddNumberToObject(object, name, isfinite(value) ? round(value * factor) / factor : value);
}

static vkn_status write_json(const char *folder, const char *name, cJSON *json)
{
    char *path = base_path_join(folder, name), *text = base_json_print(json);
    cJSON_Delete(json);
    vkn_status status = VKN_ERROR;
    if (path && text)
        status = base_file_replace(path, text, strlen(text));
    free(path);
    free(text);
    return status;
}

cJSON *run_read_json(const char *folder, const char *name)
{
    cJSON *json = NULL;
    char *path = base_path_join(folder, name);
    if (path && base_file_exists(path))
        base_json_read(path, RUN_JSON_LIMIT, &json);
    free(path);
    return json;
}

/* ---- config.json --------------------------------------------------------------------------- */

/* Returns the command of the existing config.json; NULL when there is none. */
static cJSON *first_command(const char *folder)
{
    cJSON *json = run_read_json(folder, RUN_CONFIG);
    cJSON *command = cJSON_DetachItemFromObjectCaseSensitive(json, "command");
    cJSON_Delete(json);
    return command;
}

/* Adds "command", which began the run, and "resumed_with", which resumed it last. */
static void add_command(cJSON *json, const char *folder, const struct vkn_train_params *params)
{
    cJSON *command = cJSON_CreateArray();
    for (size_t i = 0; i < params->command_count; i++)
        cJSON_AddItemToArray(command, cJSON_CreateString(params->command[i]));
    cJSON *first = params->resume ? first_command(folder) : NULL;
    if (first)
        cJSON_AddItemToObject(json, "command", first);
    cJSON_AddItemToObject(json, first ? "resumed_with" : "command", command);
}

vkn_status run_write_config(const char *folder, const struct run_record *record,
                            const struct vkn_train_params *params)
{
    char *text = vkn_config_write_json(record->config);
    cJSON *json = NULL;
    if (!text || base_json_parse(RUN_CONFIG, text, strlen(text), &json) != VKN_OK) {
        free(text);
        return VKN_ERROR;
    }
    free(text);
    cJSON *scene = cJSON_GetObjectItemCaseSensitive(json, "scene");
    cJSON_AddStringToObject(scene, "path", record->scene);
    cJSON_AddStringToObject(json, "version", VKNERF_VERSION);
    cJSON_AddStringToObject(json, "commit", base_commit());
    cJSON_AddStringToObject(json, "device", record->device);
    cJSON_AddStringToObject(json, "driver", record->driver);
    cJSON_AddStringToObject(json, "path", record->backend->name);
    if (params->command)
        add_command(json, folder, params);
    return write_json(folder, RUN_CONFIG, json);
}

char *run_old_why(const char *folder, enum vkn_precision precision)
{
    cJSON *old = run_read_json(folder, RUN_SUMMARY);
    char *why = NULL;
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(old, "precision"));
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(old, "path_why"));
    if (name && text && strcmp(name, config_precision_names[precision]) == 0)
        why = base_format("%s", text);
    cJSON_Delete(old);
    return why;
}

/* ---- summary.json -------------------------------------------------------------------------- */

static void add_work(cJSON *item, const struct vkn_pass_profile *pass)
{
    cJSON_AddNumberToObject(item, "flops", round(pass->flops));
    cJSON_AddNumberToObject(item, "bytes", round(pass->bytes));
    cJSON_AddNumberToObject(item, "memory_bytes", round(pass->memory_bytes));
    cJSON_AddNumberToObject(item, "atomics", round(pass->atomics));
    if (pass->floor_milliseconds > 0.0) {
        run_add_measure(item, "floor_milliseconds", pass->floor_milliseconds, 1e6);
        cJSON_AddStringToObject(item, "bound", pass->bound);
    }
}

static void add_peaks(cJSON *json, const struct vkn_profile *profile)
{
    const struct {
        const char *name;
        double value;
    } peaks[] = {
        {"peak_flops_per_second", profile->peak_flops},
        {"peak_bytes_per_second", profile->peak_bytes},
        {"peak_atomics_per_second", profile->peak_atomics},
    };
    for (size_t i = 0; i < BASE_COUNT(peaks); i++)
        if (peaks[i].value > 0.0)
            cJSON_AddNumberToObject(json, peaks[i].name, round(peaks[i].value));
}

static void add_profile(cJSON *json, const struct vkn_profile *profile)
{
    if (profile->pass_count == 0)
        return;
    double busy = 0.0, idle = profile->idle_milliseconds + profile->interval_idle_milliseconds;
    for (size_t i = 0; i < profile->pass_count; i++)
        busy += profile->passes[i]->milliseconds;
    cJSON *item = cJSON_AddObjectToObject(json, "profile");
    cJSON_AddNumberToObject(item, "steps", (double)profile->steps);
    cJSON_AddNumberToObject(item, "periods", (double)profile->intervals);
    run_add_measure(item, "idle_milliseconds", profile->idle_milliseconds, 1e6);
    run_add_measure(item, "period_idle_milliseconds", profile->interval_idle_milliseconds, 1e6);
    run_add_measure(item, "idle_share", busy + idle > 0.0 ? idle / (busy + idle) : 0.0, 1e6);
    run_add_measure(item, "rays", profile->rays, 10);
    run_add_measure(item, "marched_samples", profile->marched_samples, 10);
    run_add_measure(item, "live_samples", profile->live_samples, 10);
    run_add_measure(item, "touched_entries", profile->touched_entries, 10);
    run_add_measure(item, "evaluated_cells", profile->evaluated_cells, 10);
    add_peaks(item, profile);
}

static void add_passes(cJSON *json, const struct vkn_train_result *result)
{
    double total = 0.0;
    for (size_t i = 0; i < result->pass_count; i++)
        total += result->passes[i].milliseconds;
    cJSON *passes = cJSON_AddArrayToObject(json, "passes");
    for (size_t i = 0; i < result->pass_count && total > 0.0; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", result->passes[i].name);
        run_add_measure(item, "share", result->passes[i].milliseconds / total, 1e6);
        run_add_measure(item, "milliseconds", result->passes[i].milliseconds, 1e6);
        if (result->profile && i < result->profile->pass_count)
            add_work(item, result->profile->passes[i]);
        cJSON_AddItemToArray(passes, item);
    }
}

static void add_buffers(cJSON *json, const struct vkn_train_result *result)
{
    cJSON *buffers = cJSON_AddArrayToObject(json, "buffers");
    for (size_t i = 0; i < result->buffer_count; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", result->buffers[i].name);
        cJSON_AddNumberToObject(item, "bytes", (double)result->buffers[i].bytes);
        cJSON_AddBoolToObject(item, "on_host", result->buffers[i].on_host);
        cJSON_AddItemToArray(buffers, item);
    }
}

static void add_images(cJSON *json, const struct vkn_images *images)
{
    cJSON *item = cJSON_AddObjectToObject(json, "images");
    cJSON_AddNumberToObject(item, "count", (double)images->count);
    cJSON_AddNumberToObject(item, "strips", (double)images->strips);
    cJSON_AddNumberToObject(item, "resident", (double)images->resident);
    cJSON_AddBoolToObject(item, "streaming", images->streamed_per_interval > 0);
    cJSON_AddNumberToObject(item, "exchanged_by_interval", images->streamed_per_interval);
    cJSON_AddNumberToObject(item, "bytes", (double)images->bytes);
    cJSON_AddNumberToObject(item, "exchange_bytes", (double)images->exchange_bytes);
    cJSON_AddNumberToObject(item, "host_bytes", (double)images->host_bytes);
    cJSON_AddNumberToObject(item, "downscale", images->downscale);
    cJSON_AddNumberToObject(item, "exchanged", (double)images->exchanged);
    cJSON_AddNumberToObject(item, "late", (double)images->late);
}

static void add_gradients(cJSON *json, const struct train_gradients *gradients)
{
    cJSON *item = cJSON_AddObjectToObject(json, "gradients");
    cJSON_AddNumberToObject(item, "steps", (double)gradients->steps);
    cJSON_AddNumberToObject(item, "underflowed_steps", (double)gradients->underflowed);
    cJSON_AddNumberToObject(item, "jump_steps", (double)gradients->jumps);
    cJSON_AddNumberToObject(item, "zero_steps", (double)gradients->zeros);
    cJSON_AddNumberToObject(item, "skipped_steps", (double)gradients->skipped);
    cJSON_AddNumberToObject(item, "lost_steps", (double)gradients->nonfinite_losses);
    if (gradients->warning[0] != '\0')
        cJSON_AddStringToObject(item, "warning", gradients->warning);
}

/* Adds the statistics of several ranks; a single rank has none. */
static void add_parallel(cJSON *json, const struct run_record *record)
{
    const struct vkn_communication *communication = &record->communication;
    if (communication->ranks < 2)
        return;
    cJSON *item = cJSON_AddObjectToObject(json, "parallel");
    cJSON_AddNumberToObject(item, "ranks", communication->ranks);
    cJSON_AddNumberToObject(item, "virtual", communication->ranks_per_device);
    cJSON_AddStringToObject(item, "images",
                            config_parallel_part_names[record->config->parallel.images]);
    cJSON *devices = cJSON_AddArrayToObject(item, "devices");
    for (size_t i = 0; i < run_ranks_count(record->ranks); i++)
        cJSON_AddItemToArray(devices, cJSON_CreateString(run_ranks_device(record->ranks, i)));
    cJSON_AddNumberToObject(item, "exchange_bytes", (double)communication->bytes);
    run_add_measure(item, "exchange_seconds", communication->seconds, 1e3);
    run_add_measure(item, "waiting_seconds", communication->waiting_seconds, 1e3);
    run_add_measure(item, "hidden_seconds", communication->hidden_seconds, 1e3);
    if (communication->step_seconds > 0.0)
        run_add_measure(item, "exchange_share",
                        (communication->seconds - communication->hidden_seconds) /
                            communication->step_seconds,
                        1e6);
}

vkn_status run_write_summary(const char *folder, const struct run_record *record)
{
    const struct vkn_train_result *result = record->result;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "status", record->status);
    if (record->failure)
        cJSON_AddStringToObject(json, "failure", record->failure);
    if (result->evaluation)
        run_evaluation_json(json, result->evaluation);
    else
        cJSON_AddNumberToObject(json, "step", (double)result->step);
    run_add_measure(json, "seconds", result->seconds, 1e3);
    cJSON_AddNumberToObject(json, "skipped_steps", (double)record->gradients.skipped_steps);
    cJSON_AddStringToObject(json, "precision", config_precision_names[record->config->precision]);
    cJSON_AddStringToObject(json, "path", record->backend->name);
    cJSON_AddStringToObject(json, "path_why", record->backend->why);
    cJSON_AddStringToObject(json, "gradient_sums", record->backend->gradient_sums);
    cJSON_AddStringToObject(json, "tuning", record->backend->tuning);
    if (record->backend->policy[0])
        cJSON_AddStringToObject(json, "policy", record->backend->policy);
    if (result->gpu_memory_bytes > 0)
        cJSON_AddNumberToObject(json, "gpu_memory_bytes", (double)result->gpu_memory_bytes);
    add_gradients(json, &record->gradients);
    cJSON_AddItemToObject(json, "sampling", train_sampling_json(&record->sampling));
    add_images(json, result->images);
    add_parallel(json, record);
    cJSON_AddBoolToObject(json, "deterministic", record->config->deterministic);
    cJSON_AddStringToObject(json, "device", record->device);
    cJSON_AddStringToObject(json, "driver", record->driver);
    cJSON_AddStringToObject(json, "version", VKNERF_VERSION);
    cJSON_AddStringToObject(json, "commit", base_commit());
    cJSON_AddStringToObject(json, "scene", record->scene);
    cJSON_AddItemToObject(json, "evaluations", cJSON_Duplicate(record->evaluations, true));
    run_reached_json(json, record->evaluations, record->split);
    if (record->has_pictures)
        run_pictures_json(json, result->evaluation);
    if (result->evaluation)
        run_views_json(json, result->evaluation);
    add_passes(json, result);
    add_buffers(json, result);
    if (result->profile)
        add_profile(json, result->profile);
    return json ? write_json(folder, RUN_SUMMARY, json) : base_fail(VKN_ERROR, "out of memory");
}

/* ---- a run's state ------------------------------------------------------------------------- */

static vkn_status read_state(const char *summary, struct vkn_run_state *state)
{
    cJSON *json = NULL;
    BASE_TRY(base_json_read(summary, RUN_JSON_LIMIT, &json));
    const char *text = "";
    double step = 0.0;
    vkn_status status = base_json_string(json, "status", summary, false, &text);
    state->finished = strcmp(text, "finished") == 0;
    if (status == VKN_OK)
        status = base_json_number(json, "step", summary, false, 0.0, 1e15, &step);
    if (status == VKN_OK)
        status = base_json_number(json, "psnr", summary, false, -1e3, 1e3, &state->psnr);
    if (status == VKN_OK)
        status = base_json_number(json, "ssim", summary, false, -1.0, 1.0, &state->ssim);
    if (status == VKN_OK)
        status = base_json_number(json, "seconds", summary, false, 0.0, 1e15, &state->seconds);
    state->step = (uint64_t)step;
    cJSON_Delete(json);
    return status;
}

vkn_status vkn_run_inspect(const char *folder, struct vkn_run_state *given)
{
    BASE_C_LOCALE;
    BASE_NEED(folder);
    BASE_NEED(given);
    struct vkn_run_state own = {.psnr = (double)NAN, .ssim = (double)NAN, .seconds = (double)NAN};
    struct vkn_run_state *state = &own;
    char *checkpoint = base_path_join(folder, RUN_CHECKPOINT);
    char *summary = base_path_join(folder, RUN_SUMMARY);
    vkn_status status = checkpoint && summary ? VKN_OK : VKN_ERROR;
    state->exists = status == VKN_OK && base_file_exists(checkpoint);
    if (state->exists && base_file_exists(summary))
        status = read_state(summary, state);
    free(checkpoint);
    free(summary);
    vkn_status filled = BASE_FILL(vkn_run_state, state, given, seconds);
    return status != VKN_OK ? status : filled;
}
