/* Lists the parts of a certificate, and runs one of them in this process (vkn_certify_part). */
#include <stdlib.h>

#include <cjson/cJSON.h>
#include <vknerf/certify.h>
#include <vknerf/context.h>

#include "certify/internal.h"
#include "step/step.h"

/* What all passes rely on, then passes in the order of the training step, then those of rendering.
 */
extern const struct certify_part certify_basics, certify_rays, certify_lens, certify_errors,
    certify_outliers, certify_march, certify_times, certify_proposal, certify_grid, certify_inputs,
    certify_field, certify_layers, certify_composite, certify_appearance, certify_sky,
    certify_interlevel, certify_optim, certify_weights, certify_begin_step, certify_occupancy,
    certify_views, certify_view, certify_visibility_maps, certify_mesh, certify_texture;

const struct certify_part *const certify_parts[] = {
    &certify_basics,
    &certify_rays,
    &certify_lens,
    &certify_errors,
    &certify_outliers,
    &certify_march,
    &certify_times,
    &certify_proposal,
    &certify_grid,
    &certify_inputs,
    &certify_field,
    &certify_layers,
    &certify_composite,
    &certify_appearance,
    &certify_sky,
    &certify_interlevel,
    &certify_optim,
    &certify_weights,
    &certify_begin_step,
    &certify_occupancy,
    &certify_views,
    &certify_view,
    &certify_visibility_maps,
    &certify_mesh,
    &certify_texture,
};
const size_t certify_part_count = BASE_COUNT(certify_parts);

size_t certify_count_tests(const struct certify_part *part, unsigned kernels)
{
    size_t count = 0;
    for (size_t i = 0; i < part->count; i++)
        count += (part->tests[i].kernels & kernels) != 0;
    return count;
}

const struct certify_part *certify_find_part(const char *name, unsigned *kernels)
{
    size_t size = strcspn(name, "/");
    *kernels = name[size] ? CERTIFY_GPU_KERNELS : CERTIFY_CPU_KERNELS;
    if (name[size] && strcmp(name + size, CERTIFY_GPU_SUFFIX) != 0)
        return NULL;
    for (size_t i = 0; i < certify_part_count; i++)
        if (strlen(certify_parts[i]->name) == size &&
            strncmp(certify_parts[i]->name, name, size) == 0)
            return certify_parts[i];
    return NULL;
}

/* ---- one part -------------------------------------------------------------------------------- */

/* Adds a name to the features that VKNERF_DISABLE lists. */
static void disable(const char *feature)
{
    static const char variable[] = "VKNERF_DISABLE";
    const char *before = getenv(variable);
    char *list =
        base_format("%s%s%s", before ? before : "", before && before[0] ? "," : "", feature);
    if (list)
        setenv(variable, list, 1);
    free(list);
}

/* Chooses kernels, and for lavapipe unoptimised code, which compiles in half of the time. With
 * `full` lavapipe optimises what its users run, but not the GPU kernels, some of which take half an
 * hour. */
static void set_environment(unsigned kernels, bool full)
{
    if (kernels == CERTIFY_GPU_KERNELS) {
        disable("cpu_kernels");
        disable("shader_objects");
    }
    /* Features that an earlier certificate or the self-test would switch off are tested, too. */
    disable("certificate");
    disable("self_test");
    if (!full || kernels == CERTIFY_GPU_KERNELS)
        setenv("GALLIVM_PERF", "nopt", 0);
    check_include_everything(full);
}

static void run_tests(const struct certify_part *part, unsigned kernels, const char *after,
                      struct gpu_device *device)
{
    bool is_cpu = gpu_device_capabilities(device)->type == GPU_CPU, begun = after == NULL;
    for (size_t i = 0; i < part->count; i++) {
        const struct certify_test *test = &part->tests[i];
        if (begun && (!is_cpu || (test->kernels & kernels)))
            check_run(test, device, stdout);
        begun = begun || strcmp(test->name, after) == 0;
    }
}

/* Returns what vknerf info says about a device; the caller deletes it. NULL: unknown. */
static cJSON *device_json(const struct vkn_job *job, uint32_t index)
{
    const struct vkn_context_params params = {.device = job->device, .shader_dir = job->shader_dir};
    char *text = NULL;
    cJSON *info = NULL, *device = NULL;
    if (vkn_info_json(&params, &text) == VKN_OK)
        info = cJSON_Parse(text);
    cJSON *devices = cJSON_GetObjectItemCaseSensitive(info, "devices");
    device = cJSON_DetachItemFromArray(devices, (int)index);
    cJSON_Delete(info);
    vkn_free(text);
    return device;
}

/* Writes which device it is, and where its certificate is kept. */
static void describe_device(struct gpu_device *device, const struct vkn_job *job)
{
    cJSON *event = cJSON_CreateObject();
    cJSON *json = device_json(job, gpu_device_index(device));
    char *cache = gpu_cache_path(device, GPU_CERTIFICATE, "json");
    if (json)
        cJSON_AddItemToObject(event, "device", json);
    if (cache)
        cJSON_AddStringToObject(event, "cache", cache);
    check_event(stdout, event);
    free(cache);
}

static vkn_status run_part(const struct vkn_job *job, const char *name, const char *after,
                           bool full)
{
    unsigned kernels = CERTIFY_CPU_KERNELS;
    const bool is_device = strcmp(name, CERTIFY_DEVICE) == 0;
    const struct certify_part *part = is_device ? NULL : certify_find_part(name, &kernels);
    if (!is_device && !part)
        return base_fail(VKN_BAD_INPUT, "--part: %s is no part of a certificate", name);
    set_environment(kernels, full);
    vkn_context *context = NULL;
    BASE_TRY(context_of_job(job, &context));
    gpu_set_stop_flag(context->device, job->stop);
    if (is_device)
        describe_device(context->device, job);
    else
        run_tests(part, kernels, after, context->device);
    vkn_context_destroy(&context);
    return VKN_OK;
}

vkn_status vkn_certify_part(const struct vkn_job *given, const char *part, const char *after,
                            bool full)
{
    BASE_C_LOCALE;
    BASE_NEED(part);
    struct vkn_job job;
    BASE_TRY(BASE_READ("vkn_job", vkn_job, given, &job, stop));
    vkn_status status = run_part(&job, part, after, full);
    if (status != VKN_OK)
        check_text_event(stdout, "error", vkn_last_error());
    return status;
}
