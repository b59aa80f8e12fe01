/* The device as the public API sees it. */
#include <vknerf/field.h>
#include <vknerf/trainer.h>

#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"

/* What is known to go wrong with its driver in any run. */
static void warn_of_driver(const struct gpu_capabilities *device)
{
    struct gpu_hazard hazards[GPU_MAX_HAZARDS];
    size_t count = gpu_hazards(device, hazards);
    for (size_t i = 0; i < count; i++)
        if (hazards[i].warn)
            base_log(BASE_LOG_WARNING, "\"%s\": its driver (%s) %s; %s", device->name,
                     device->driver, hazards[i].problem, hazards[i].advice);
}

vkn_status vkn_context_create(const struct vkn_context_params *params, vkn_context **context)
{
    BASE_C_LOCALE;
    *context = NULL;
    struct vkn_context *c = base_alloc(1, sizeof *c);
    if (!c)
        return VKN_ERROR;
    struct gpu_options options = context_options(params);
    vkn_status status = gpu_open(&options, &c->device);
    if (status != VKN_OK) {
        free(c);
        return status;
    }
    warn_of_driver(gpu_device_capabilities(c->device));
    *context = c;
    return VKN_OK;
}

struct gpu_options context_options(const struct vkn_context_params *params)
{
    if (!params)
        return (struct gpu_options){0};
    return (struct gpu_options){.device = params->device,
                                .shader_dir = params->shader_dir,
                                .statistics = params->statistics};
}

void vkn_context_destroy(vkn_context **context)
{
    if (!*context)
        return;
    gpu_close(&(*context)->device);
    free(*context);
    *context = NULL;
}

const char *vkn_context_device_name(const vkn_context *context)
{
    return gpu_device_capabilities(context->device)->name;
}

const char *vkn_context_driver(const vkn_context *context)
{
    return gpu_device_capabilities(context->device)->driver;
}

vkn_status vkn_field_check(vkn_context *context, const vkn_config *config)
{
    BASE_C_LOCALE;
    BASE_NEED(context);
    BASE_NEED(config);
    return field_check_glsl(context->device, config, true);
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

void vkn_log_quiet(bool quiet)
{
    base_log_threshold(quiet ? BASE_LOG_WARNING : BASE_LOG_INFO);
}

vkn_status vkn_scene_open(const char *path, const struct vkn_config *config, vkn_scene **scene)
{
    BASE_C_LOCALE;
    static const struct vkn_config defaults;
    config = config ? config : &defaults;
    struct scene_options options = {
        .path = path,
        .format = config->scene.format,
        .downscale = config->scene.downscale,
        .scale = config->scene.scale,
        .aabb_scale = config->scene.aabb_scale,
        .placed = config->scene.placed,
    };
    memcpy(options.offset, config->scene.offset, sizeof options.offset);
    return scene_open(&options, scene);
}

void vkn_scene_close(vkn_scene **scene)
{
    scene_close(scene);
}
