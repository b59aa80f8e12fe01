/* Implements vknerf bench: opens the device, runs the suites and writes the results. */
#include "bench/internal.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "bench/suites.h"
#include "config/config.h"
#include "report/report.h"
#include "step/step.h"

/* ---- suites ---------------------------------------------------------------------------------- */

static vkn_status run_suites(struct bench *bench)
{
    static const struct {
        enum vkn_bench_suite suite;
        vkn_status (*run)(struct bench *bench);
    } suites[] = {
        {VKN_BENCH_GEMM, bench_gemm},          {VKN_BENCH_MLP, bench_mlp},
        {VKN_BENCH_GRID, bench_grid},          {VKN_BENCH_STEP, bench_step},
        {VKN_BENCH_PROGRAMS, bench_pipelines}, {VKN_BENCH_SAMPLING, bench_sampling},
    };
    enum vkn_bench_suite wanted = bench->params->suite;
    if (wanted != VKN_BENCH_STEP && wanted < VKN_BENCH_PROGRAMS)
        BASE_TRY(bench_peaks(bench));
    for (size_t i = 0; i < BASE_COUNT(suites); i++)
        if (wanted == suites[i].suite ||
            (wanted == VKN_BENCH_ALL && suites[i].suite < VKN_BENCH_PROGRAMS))
            BASE_TRY(suites[i].run(bench));
    return bench_stopped(bench) ? base_fail(VKN_INTERRUPTED, "interrupted") : VKN_OK;
}

static vkn_status count_and_run(struct bench *bench)
{
    bench->counting = true;
    BASE_TRY(run_suites(bench));
    bench->counting = false;
    BASE_TRY(report_progress_begin(bench->params->job, 0, 0, &bench->progress));
    vkn_status status = run_suites(bench);
    if (status == VKN_OK)
        report_progress_count(bench->progress, "measuring", bench->total, bench->total);
    report_progress_end(&bench->progress);
    return status;
}

/* ---- results --------------------------------------------------------------------------------- */

static cJSON *device_json(const struct bench *bench)
{
    const struct gpu_capabilities *device = bench->capabilities;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", device->name);
    cJSON_AddStringToObject(json, "type", gpu_device_type_names[device->type]);
    cJSON_AddStringToObject(json, "driver", device->driver);
    cJSON_AddNumberToObject(json, "subgroup_size", device->subgroup_size);
    return json;
}

static char *print_results(struct bench *bench, bool complete)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "format", 1);
    cJSON_AddStringToObject(json, "version", VKNERF_VERSION);
    cJSON_AddStringToObject(json, "commit", base_commit());
    cJSON_AddItemToObject(json, "device", device_json(bench));
    cJSON_AddStringToObject(json, "vendor_library", bench->vendor_text);
    cJSON_AddBoolToObject(json, "complete", complete);
    cJSON *backends = cJSON_AddArrayToObject(json, "paths");
    for (uint32_t i = 0; i < bench->backend_count; i++)
        cJSON_AddItemToArray(backends, cJSON_CreateString(bench->backends[i].name));
    cJSON_AddItemToObject(json, "results", bench->results);
    bench->results = NULL;
    if (bench->tuning)
        cJSON_AddItemToObject(json, "tuning", bench->tuning);
    bench->tuning = NULL;
    if (bench->pipelines)
        cJSON_AddItemToObject(json, "programs", bench->pipelines);
    bench->pipelines = NULL;
    if (bench->sampling)
        cJSON_AddItemToObject(json, "sampling", bench->sampling);
    bench->sampling = NULL;
    char *text = base_json_print(json);
    cJSON_Delete(json);
    return text;
}

static vkn_status write_file(const char *folder, const char *name, const char *text)
{
    char *path = base_path_join(folder, name);
    vkn_status status = path ? base_file_replace(path, text, strlen(text)) : VKN_ERROR;
    free(path);
    return status;
}

static vkn_status write_files(const char *folder, const char *json)
{
    char *chart = report_bench_chart(json);
    vkn_status status = chart ? write_file(folder, "bench.json", json) : VKN_ERROR;
    if (status == VKN_OK)
        status = write_file(folder, "bench.svg", chart);
    free(chart);
    return status;
}

/* ---- public function ------------------------------------------------------------------------- */

#define NVIDIA 0x10de

static void open_vendor(struct bench *bench)
{
    enum vkn_bench_suite suite = bench->params->suite;
    if (suite != VKN_BENCH_ALL && suite != VKN_BENCH_GEMM)
        return;
    if (bench->capabilities->vendor_id != NVIDIA && !getenv("VKNERF_CUBLASLT")) {
        snprintf(bench->vendor_text, sizeof bench->vendor_text,
                 "none to compare with: cuBLASLt is for NVIDIA's devices");
        return;
    }
    char why[200] = "";
    bench->vendor = vendor_open(bench->capabilities->name, why, sizeof why);
    snprintf(bench->vendor_text, sizeof bench->vendor_text, "%s",
             bench->vendor ? vendor_version(bench->vendor) : why);
}

/* Refuses training settings without the sampling suite, and settings that the suite itself sets. */
static vkn_status check_training(const struct vkn_bench_params *params, bool is_sampling)
{
    static const char *const chosen[] = {"march.sampling", "steps", "precision", "scene.format"};
    bool is_unset = params->seeds == 0;
    for (size_t i = 0; i < config_setting_count; i++)
        is_unset = is_unset && config_is_unset(params->config, config_settings[i].key);
    if (!is_sampling && !is_unset)
        return base_fail(VKN_BAD_INPUT, "settings of training: only of use with --suite sampling");
    if (is_sampling && !params->scene)
        return base_fail(VKN_BAD_INPUT, "--suite sampling: no scene is given");
    for (size_t i = 0; i < BASE_COUNT(chosen); i++)
        if (!config_is_unset(params->config, chosen[i]))
            return base_fail(VKN_BAD_INPUT, "%s: --suite sampling chooses it itself", chosen[i]);
    return VKN_OK;
}

static vkn_status check_params(const struct vkn_bench_params *params)
{
    if (params->batch % 512 != 0)
        return base_fail(VKN_BAD_INPUT, "--batch: %u is not a multiple of 512", params->batch);
    if (params->width % 16 != 0 || params->width > 128)
        return base_fail(VKN_BAD_INPUT, "--width: %u is not a multiple of 16 up to 128",
                         params->width);
    if (params->depth > 8)
        return base_fail(VKN_BAD_INPUT, "--depth: %u is more than 8", params->depth);
    if (params->log2_entries && (params->log2_entries < 14 || params->log2_entries > 22))
        return base_fail(VKN_BAD_INPUT, "--entries: %u is not from 14 to 22", params->log2_entries);
    bool is_sampling = !params->tune && params->suite == VKN_BENCH_SAMPLING;
    bool trains = !params->tune && (params->suite == VKN_BENCH_ALL ||
                                    params->suite == VKN_BENCH_STEP || is_sampling);
    if (params->scene && !trains)
        return base_fail(VKN_BAD_INPUT, "--scene: only of use where training steps are measured");
    if (params->format != VKN_SCENE_AUTO && !params->scene)
        return base_fail(VKN_BAD_INPUT, "--format: only of use with --scene");
    return check_training(params, is_sampling);
}

#define QUICK_DOWNSCALE 4 /* downscale of the images in quick runs of the sampling suite */

/* Checks the arguments and opens scene, output folder and device. */
static vkn_status begin(struct bench *bench)
{
    const struct vkn_bench_params *params = bench->params;
    struct vkn_config config = *params->config;
    config.scene.format = params->format;
    if (params->quick && params->suite == VKN_BENCH_SAMPLING && config.scene.downscale == 0)
        config.scene.downscale = QUICK_DOWNSCALE;
    BASE_TRY(check_params(params));
    if (params->scene)
        BASE_TRY(vkn_scene_open(params->scene, &config, &bench->scene));
    if (params->out)
        BASE_TRY(base_make_last_folder(params->out));
    const struct vkn_context_params context = {
        .size = sizeof context,
        .device = params->job->device,
        .shader_dir = params->job->shader_dir,
        .low_priority = params->job->low_priority,
        .statistics = !params->tune && params->suite == VKN_BENCH_PROGRAMS,
    };
    BASE_TRY(vkn_context_create(&context, &bench->context));
    gpu_set_stop_flag(bench->context->device, params->job->stop);
    return VKN_OK;
}

static vkn_status run(struct bench *bench)
{
    const struct vkn_bench_params *params = bench->params;
    bench->device = bench->context->device;
    bench->capabilities = gpu_device_capabilities(bench->device);
    bench->is_cpu = bench->capabilities->type == GPU_CPU;
    bench->small = bench->is_cpu && !params->full;
    bench->backend_count = bench_list_backends(bench->capabilities, params, bench->backends);
    if (!bench->backend_count)
        return base_fail(VKN_BAD_INPUT, "--precision: \"%s\" does not offer %s",
                         bench->capabilities->name, config_precision_names[params->precision]);
    bench->results = cJSON_CreateArray();
    if (params->tune)
        return bench_tune(bench);
    open_vendor(bench);
    return count_and_run(bench);
}

/* Runs the command and writes its results, also of an interrupted run. */
static vkn_status run_and_write(struct bench *bench, char **json)
{
    vkn_status status = run(bench);
    if (status != VKN_OK && status != VKN_INTERRUPTED)
        return status;
    *json = print_results(bench, status == VKN_OK);
    if (!*json)
        return VKN_ERROR;
    if (bench->params->out)
        BASE_TRY(write_files(bench->params->out, *json));
    return status;
}

vkn_status vkn_bench(const struct vkn_bench_params *given, char **json)
{
    BASE_C_LOCALE;
    BASE_NEED(json);
    *json = NULL;
    struct vkn_bench_params params, *own = &params;
    struct vkn_job job;
    BASE_TRY(BASE_READ(__func__, vkn_bench_params, given, own, out));
    BASE_CHOICE(own, suite, VKN_BENCH_SAMPLING);
    BASE_CHOICE(own, precision, VKN_PRECISION_COOPMAT);
    BASE_CHOICE(own, format, VKN_SCENE_NSVF);
    BASE_TRY(BASE_READ("vkn_job", vkn_job, params.job, &job, stop));
    params.job = &job;
    params.config = config_or_default(params.config);
    struct bench bench = {.params = &params};
    vkn_status status = begin(&bench);
    if (status == VKN_OK)
        status = run_and_write(&bench, json);
    cJSON_Delete(bench.results);
    cJSON_Delete(bench.tuning);
    cJSON_Delete(bench.pipelines);
    cJSON_Delete(bench.sampling);
    vendor_close(&bench.vendor);
    vkn_context_destroy(&bench.context);
    vkn_scene_close(&bench.scene);
    return status;
}
