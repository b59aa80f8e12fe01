/* Making a trainer: its configuration, its images, its step. */
#include <stdlib.h>

#include "train/internal.h"

static void loading_progress(void *context, size_t done, size_t total)
{
    (void)context;
    if (done == total)
        base_log(BASE_LOG_INFO, "decoded %zu training images", total);
}

static vkn_status check_images(const struct scene *scene)
{
    for (size_t i = 0; i < scene->splits[SCENE_TRAIN].camera_count; i++)
        if (scene->splits[SCENE_TRAIN].cameras[i].width == 0)
            return base_fail(VKN_BAD_INPUT, "%s: training image %zu is empty", scene->path, i);
    if (scene->splits[SCENE_TRAIN].camera_count == 0)
        return base_fail(VKN_BAD_INPUT, "%s: no training frames", scene->path);
    return VKN_OK;
}

static vkn_status resolve_config(struct vkn_trainer *t)
{
    struct field_choice choice;
    BASE_TRY(pipeline_choose_precision(t->device, t->scene, &t->config, &choice));
    const struct field_backend *backend = &choice.candidates[choice.chosen].backend;
    field_backend_describe(backend, t->backend_name);
    snprintf(t->backend_why, sizeof t->backend_why, "%s", choice.why);
    field_tuning_describe(backend, t->backend_tuning);
    t->backend = (struct vkn_backend){t->backend_name, t->backend_why,
                                      field_policy_of(FIELD_GRID_SUMS, backend), t->backend_tuning,
                                      field_policy_describe(backend, t->backend_policy)};
    return pipeline_resolve_config(&t->config, t->scene, gpu_device_capabilities(t->device));
}

/* Images get three quarters of what the other buffers leave: some of it is for evaluation, and for
 * others. A run that shall repeat does not ask what others have left. */
vkn_status train_plan_images(const struct gpu_device *device, const struct scene *scene,
                             const struct setup *setup, struct images_plan *plan)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    const struct step_images none = {0};
    uint64_t memory =
        setup->config.deterministic ? capabilities->device_memory : gpu_memory_available(device);
    uint64_t others = step_memory(setup, &none);
    uint64_t most = memory > others ? (memory - others) / 4 * 3 : 0;
    return images_make_plan(scene, &setup->config, most, capabilities->max_buffer_range, plan);
}

struct step_images train_step_images(const struct images_plan *plan)
{
    return (struct step_images){
        .views = plan->cameras,
        .slots = plan->exchanged > 0 ? plan->resident : 0,
        .resident = plan->resident,
        .pixels = plan->pixels,
        .moments = {plan->moments[0], plan->moments[1]},
        .share = plan->share,
    };
}

vkn_status train_memory(const struct gpu_device *device, const struct scene *scene,
                        const struct vkn_config *config, uint64_t *bytes)
{
    struct setup setup;
    struct images_plan plan;
    BASE_TRY(setup_create_tuned(config, device, &setup));
    BASE_TRY(train_plan_images(device, scene, &setup, &plan));
    const struct step_images images = train_step_images(&plan);
    *bytes = step_memory(&setup, &images) + IMAGES_EXCHANGES * plan.exchange;
    return VKN_OK;
}

static vkn_status create_step(struct vkn_trainer *t)
{
    struct setup setup;
    BASE_TRY(setup_create_tuned(&t->config, t->device, &setup));
    if (t->parallel)
        setup_join(&setup, parallel_size(t->parallel), parallel_rank(t->parallel));
    BASE_TRY(train_plan_images(t->device, t->scene, &setup, &t->images));
    const struct step_images images = train_step_images(&t->images);
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
    static const struct vkn_config defaults;
    *trainer = NULL;
    config = config ? config : &defaults;
    BASE_TRY(check_images(scene));
    BASE_TRY(field_check_glsl(context->device, config, false));
    BASE_TRY(train_load_images(scene, config, parallel, loading_progress, NULL));
    struct vkn_trainer *t = base_alloc(1, sizeof *t);
    if (!t)
        return VKN_ERROR;
    t->device = context->device;
    t->scene = scene;
    t->config = *config;
    t->parallel = parallel;
    t->ranks = parallel ? parallel_size(parallel) : 1;
    t->open_batch = config->batch.samples == 0;
    if (t->ranks == 1 && config->parallel.virtual < 2)
        t->config.parallel.wire = VKN_WIRE_F32; /* nothing is exchanged */
    vkn_status status = resolve_config(t);
    if (status == VKN_OK)
        status = create_step(t);
    if (status != VKN_OK)
        vkn_trainer_destroy(&t);
    *trainer = t;
    return status;
}

vkn_status vkn_trainer_create(vkn_context *context, vkn_scene *scene,
                              const struct vkn_config *config, vkn_trainer **trainer)
{
    BASE_C_LOCALE;
    return train_create(context, scene, config, NULL, trainer);
}

void vkn_trainer_destroy(vkn_trainer **trainer)
{
    BASE_KEEP_ERROR;
    if (!*trainer)
        return;
    stream_destroy(&(*trainer)->stream); /* uses the step */
    step_destroy(&(*trainer)->step);
    profile_free(&(*trainer)->profile);
    free(*trainer);
    *trainer = NULL;
}
