/* Implements vkn_context, the device of the public API. */
#include <vknerf/field.h>
#include <vknerf/trainer.h>
#include <vknerf/vulkan.h>

#include <stdlib.h>

#include "step/step.h"

/* Warns of known faults of the driver that affect every run. */
static void warn_of_driver(const struct gpu_capabilities *device)
{
    struct gpu_driver_issue issues[GPU_MAX_DRIVER_ISSUES];
    size_t count = gpu_driver_issues(device, issues);
    for (size_t i = 0; i < count; i++)
        if (issues[i].warn)
            base_log(BASE_LOG_WARNING, "\"%s\": its driver (%s) %s; %s", device->name,
                     device->driver, issues[i].problem, issues[i].advice);
}

vkn_status vkn_context_create(const struct vkn_context_params *params, vkn_context **context)
{
    BASE_C_LOCALE;
    BASE_NEED(context);
    *context = NULL;
    struct gpu_options options;
    BASE_TRY(context_options(params, &options));
    struct vkn_context *c = base_alloc(1, sizeof *c);
    if (!c)
        return VKN_ERROR;
    vkn_status status = gpu_open(&options, &c->device);
    if (status != VKN_OK) {
        free(c);
        return status;
    }
    warn_of_driver(gpu_device_capabilities(c->device));
    *context = c;
    return VKN_OK;
}

vkn_status context_options(const struct vkn_context_params *params, struct gpu_options *options)
{
    struct vkn_context_params read;
    BASE_TRY(BASE_READ("vkn_context_params", vkn_context_params, params, &read, statistics));
    *options = (struct gpu_options){
        .device = read.device,
        .shader_dir = read.shader_dir,
        .statistics = read.statistics,
        .low_priority = read.low_priority,
        .progress = {read.progress, read.progress_context},
    };
    return VKN_OK;
}

vkn_status context_of_job(const struct vkn_job *job, vkn_context **context)
{
    const struct vkn_context_params params = {.size = sizeof params,
                                              .device = job->device,
                                              .shader_dir = job->shader_dir,
                                              .low_priority = job->low_priority,
                                              .progress = job->progress,
                                              .progress_context = job->progress_context};
    return vkn_context_create(&params, context);
}

vkn_context *context_hold(vkn_context *context)
{
    atomic_fetch_add(&context->holders, 1);
    return context;
}

void vkn_context_destroy(vkn_context **context)
{
    if (!context || !*context)
        return;
    struct base_guard *guard = gpu_guard((*context)->device);
    if (base_guard_is_foreign(guard)) { /* another process created the device */
        *context = NULL;
        return;
    }
    if (atomic_load(&(*context)->holders) == 0 &&
        base_guard_refuses_destroy(guard, __func__, *context))
        return;
    if (atomic_fetch_sub(&(*context)->holders, 1) == 0) {
        gpu_close(&(*context)->device);
        free(*context);
    }
    *context = NULL;
}

const char *vkn_context_device_name(const vkn_context *context)
{
    return context ? gpu_device_capabilities(context->device)->name : "";
}

const char *vkn_context_driver(const vkn_context *context)
{
    return context ? gpu_device_capabilities(context->device)->driver : "";
}

vkn_status vkn_context_vulkan(const vkn_context *context, struct vkn_vulkan *vulkan)
{
    BASE_NEED(context);
    BASE_NEED(vulkan);
    BASE_TRY(base_check_process(gpu_guard(context->device), __func__));
    struct vkn_vulkan handles;
    gpu_device_handles(context->device, &handles);
    return BASE_FILL(vkn_vulkan, &handles, vulkan, get_instance_proc_addr);
}

vkn_status vkn_field_check(vkn_context *context, const vkn_config *config)
{
    BASE_C_LOCALE;
    BASE_NEED(context);
    BASE_USE(gpu_guard(context->device), NULL);
    return field_check_glsl(context->device, config_or_default(config), true);
}

void vkn_prefer_wide_vectors(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        setenv("LP_NATIVE_VECTOR_WIDTH", "512", 0);
#endif
}

void vkn_share_processors(uint32_t processes)
{
    char threads[16];
    uint32_t processors = base_processors();
    snprintf(threads, sizeof threads, "%u", processors > processes ? processors / processes : 1);
    if (processes > 1)
        setenv("LP_NUM_THREADS", threads, 0);
}
