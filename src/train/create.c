/* Creates and destroys trainers: resolves the configuration, loads the images, creates the step. */
#include <stdlib.h>

#include "train/internal.h"

static void loading_progress(void *context, size_t done, size_t total)
{
    gpu_report_progress(context, "decoding images", done, total);
    if (done == total)
        base_log(BASE_LOG_INFO, "decoded %zu training images", total);
}

static vkn_status resolve_config(struct vkn_trainer *t)
{
    struct field_choice choice;
    BASE_TRY(setup_choose_precision(t->device, t->scene, &t->config, &choice));
    const struct field_backend *backend = &choice.candidates[choice.chosen].backend;
    field_backend_describe(backend, t->backend_name);
    snprintf(t->backend_why, sizeof t->backend_why, "%s", choice.why);
    field_tuning_describe(backend, t->backend_tuning);
    t->backend = (struct vkn_backend){t->backend_name, t->backend_why,
                                      field_policy_of(FIELD_GRID_SUMS, backend), t->backend_tuning,
                                      field_policy_describe(backend, t->backend_policy)};
    return setup_resolve_config(&t->config, t->scene, gpu_device_capabilities(t->device));
}

vkn_status train_memory(const struct gpu_device *device, const struct vkn_scene *scene,
                        const struct vkn_config *config, uint64_t *bytes)
{
    struct setup setup;
    struct images_plan plan;
    const struct step_images none = {0};
    BASE_TRY(setup_create_tuned(config, device, &setup));
    BASE_TRY(step_check_memory(device, &setup, &none, 0, 1));
    BASE_TRY(images_plan_step(device, scene, &setup, &plan));
    const struct step_images images = images_of_step(&plan);
    *bytes = step_memory(&setup, &images) + IMAGES_EXCHANGES * plan.exchange_bytes;
    return VKN_OK;
}

/* Returns how many ranks' buffers this rank checks against the available memory. CPU devices of one
 * machine share the host's memory, so the machine's first rank checks for all of them. */
static uint64_t memory_shares(const struct vkn_trainer *t)
{
    if (!t->parallel || gpu_device_capabilities(t->device)->type != GPU_CPU)
        return 1;
    bool has_processes = parallel_launched();
    if ((has_processes ? parallel_local_rank(t->parallel) : parallel_rank(t->parallel)) > 0)
        return 1;
    return has_processes ? parallel_local_size(t->parallel) : parallel_size(t->parallel);
}

static vkn_status create_step(struct vkn_trainer *t)
{
    const struct step_images none = {0};
    const uint64_t shares = memory_shares(t);
    struct setup setup;
    BASE_TRY(setup_create_tuned(&t->config, t->device, &setup));
    if (t->parallel)
        setup_set_rank(&setup, parallel_size(t->parallel), parallel_rank(t->parallel));
    /* The first check is without images: an error about other buffers must not blame images. */
    BASE_TRY(step_check_memory(t->device, &setup, &none, 0, shares));
    BASE_TRY(images_plan_step(t->device, t->scene, &setup, &t->images));
    const struct step_images images = images_of_step(&t->images);
    BASE_TRY(step_check_memory(t->device, &setup, &images,
                               IMAGES_EXCHANGES * t->images.exchange_bytes, shares));
    BASE_TRY(step_create(t->device, &setup, &images, &t->step));
    BASE_TRY(stream_upload_all(&t->step, &t->images, t->scene));
    BASE_TRY(step_begin(&t->step));
    return t->images.exchanged > 0
               ? stream_create(&t->step, &t->images, t->scene, &t->config, &t->stream)
               : VKN_OK;
}

vkn_status train_create(vkn_context *context, vkn_scene *scene, const struct vkn_config *config,
                        struct parallel *parallel, vkn_trainer **trainer)
{
    *trainer = NULL;
    config = config_or_default(config);
    BASE_TRY(images_check(scene));
    BASE_TRY(field_check_glsl(context->device, config, false));
    BASE_TRY(train_load_images(scene, config, parallel, loading_progress, context->device));
    struct vkn_trainer *t = base_alloc(1, sizeof *t);
    if (!t)
        return VKN_ERROR;
    t->context = context_hold(context);
    t->device = context->device;
    t->scene = scene_retain(scene);
    t->config = *config;
    t->parallel = parallel;
    t->ranks = parallel ? parallel_size(parallel) : 1;
    t->may_lower_batch = config->batch.samples == 0;
    if (t->ranks == 1 && config->parallel.ranks_per_device < 2)
        t->config.parallel.communication_type =
            VKN_COMMUNICATION_F32; /* one rank communicates nothing */
    vkn_status status = resolve_config(t);
    if (status == VKN_OK)
        status = create_step(t);
    if (status == VKN_OK)
        monitor_begin(&t->monitor, &t->step.setup.constants, 0,
                      images_constant_error(t->scene, t->config.background));
    if (status != VKN_OK)
        vkn_trainer_destroy(&t);
    *trainer = t;
    return status;
}

vkn_status vkn_trainer_create(vkn_context *context, vkn_scene *scene,
                              const struct vkn_config *config, vkn_trainer **trainer)
{
    BASE_C_LOCALE;
    BASE_NEED(trainer);
    *trainer = NULL;
    BASE_NEED(context);
    BASE_NEED(scene);
    BASE_USE(gpu_guard(context->device), NULL);
    return train_create(context, scene, config, NULL, trainer);
}

struct base_guard *train_guard(vkn_trainer *trainer)
{
    return gpu_guard(trainer->device);
}

vkn_trainer *train_hold(vkn_trainer *trainer)
{
    atomic_fetch_add(&trainer->holders, 1);
    return trainer;
}

void vkn_trainer_destroy(vkn_trainer **trainer)
{
    vkn_trainer *t = trainer ? *trainer : NULL;
    if (!t)
        return;
    bool foreign = base_guard_is_foreign(train_guard(t));
    if (!foreign && atomic_load(&t->holders) == 0 &&
        base_guard_refuses_destroy(train_guard(t), __func__, t))
        return;
    *trainer = NULL;
    BASE_KEEP_ERROR;
    /* A forked process cannot release the parent's Vulkan objects. */
    if (foreign || atomic_fetch_sub(&t->holders, 1) > 0)
        return;
    stream_destroy(&t->stream); /* uses the step */
    step_destroy(&t->step);
    profile_free(&t->profile);
    scene_close(&t->scene);
    vkn_context_destroy(&t->context);
    free(t);
}
