/* Creates and destroys steppers, which take training steps of a field that the caller evaluates. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "rays/rays.h"
#include "stepper/internal.h"
#include "volume/volume.h"

/* Resolves the caller's configuration. Settings of model, precision, loss scale and ranks, which an
 * external field does not use, get fixed values. */
static vkn_status resolve_config(const struct vkn_stepper *s, struct vkn_config *config)
{
    *config = field_external_config(config);
    config->deterministic = true;
    config->loss_scale.kind = VKN_LOSS_SCALE_STATIC;
    config->loss_scale.initial = 1;
    memset(&config->parallel, 0, sizeof config->parallel);
    if (config->scene.appearance == VKN_APPEARANCE_DEFAULT)
        config->scene.appearance = VKN_APPEARANCE_OFF;
    if (config->scene.sky == VKN_SWITCH_DEFAULT)
        config->scene.sky = VKN_SWITCH_OFF;
    if (config->march.visibility == VKN_SWITCH_DEFAULT)
        config->march.visibility = VKN_SWITCH_OFF;
    BASE_TRY(setup_resolve_config(config, s->scene, gpu_device_capabilities(s->device)));
    if (rays_have_coarse(config))
        return base_fail(VKN_BAD_INPUT,
                         "config: march.sampling: a stepper supports only occupancy and uniform");
    if (rays_error_cells(config, 1) > 0)
        return base_fail(VKN_BAD_INPUT,
                         "config: %s: a stepper does not know the losses of its rays",
                         config->batch.by_error > 0.0F ? "batch.by_error" : "loss.robust");
    if (rays_refine(config))
        return base_fail(VKN_BAD_INPUT, "config: scene.refine: a stepper does not refine cameras");
    if (volume_appearance_kind(config))
        return base_fail(VKN_BAD_INPUT,
                         "config: scene.appearance: a stepper does not estimate appearances");
    if (volume_sky_cells(config))
        return base_fail(VKN_BAD_INPUT, "config: scene.sky: a stepper does not train a sky");
    return VKN_OK;
}

static vkn_status create_setup(const struct vkn_stepper *s, const struct vkn_config *given,
                               struct setup *setup)
{
    struct vkn_config config = *given;
    BASE_TRY(resolve_config(s, &config));
    BASE_TRY(setup_create(&config, gpu_device_capabilities(s->device), setup));
    struct Config *constants = &setup->constants;
    uint32_t rows = constants->ray_capacity < constants->sample_capacity
                        ? constants->ray_capacity
                        : constants->sample_capacity;
    constants->cells_per_chunk = rows / 64 * 64;
    setup->specialization.values[SPEC_RAY_WEIGHTS] = 1;
    for (int i = 0; i < 3; i++) { /* rays of the caller's are not cropped */
        constants->crop_low[i] = -FLT_MAX;
        constants->crop_high[i] = FLT_MAX;
        constants->crop_axes[4 * i] = 1;
    }
    /* If the configuration has no `steps`, the caller's loop decides when the training ends. */
    if (given->steps == 0) {
        constants->total_steps = UINT32_MAX;
        setup->config.steps = 0;
    }
    return VKN_OK;
}

static vkn_status create_step(struct vkn_stepper *s, const struct vkn_config *config)
{
    struct setup setup;
    BASE_TRY(create_setup(s, config, &setup));
    BASE_TRY(images_plan_step(s->device, s->scene, &setup, &s->images));
    const struct step_images images = images_of_step(&s->images);
    BASE_TRY(step_create(s->device, &setup, &images, &s->step));
    BASE_TRY(stream_upload_all(&s->step, &s->images, s->scene));
    BASE_TRY(step_begin(&s->step));
    struct Control *control = s->step.buffers.at[BIND_CONTROL].mapped;
    control->step_limit = UINT32_MAX;
    if (s->images.exchanged == 0)
        return VKN_OK;
    BASE_TRY(stream_create(&s->step, &s->images, s->scene, &s->step.setup.config, &s->stream));
    return stream_seek(s->stream, 0, 0.0);
}

/* Marks as occupied all cells that any view sees. Until the first update of the grid these cells
 * hold 0, all others -1. */
static vkn_status occupy_seen(struct vkn_stepper *s)
{
    const float threshold = -0.5F;
    if (!rays_use_grid(&s->step.setup.config))
        return VKN_OK;
    BASE_TRY(gpu_upload(s->device, &s->step.buffers.at[BIND_STATE],
                        offsetof(struct State, threshold), &threshold, sizeof threshold));
    return step_pack_occupancy(&s->step);
}

static vkn_status create_listing(struct vkn_stepper *s)
{
    const struct {
        const char *name;
        struct gpu_pipeline **pipeline;
    } pipelines[] = {{"list_samples", &s->list_samples},
                     {"import_densities", &s->import_densities},
                     {"given_rays", &s->given_rays}};
    for (size_t i = 0; i < BASE_COUNT(pipelines); i++) {
        const struct gpu_pipeline_options options = {.name = pipelines[i].name,
                                                     .local_size = PASS_LOCAL_SIZE,
                                                     .constants = &s->step.setup.specialization};
        BASE_TRY(gpu_pipeline_create(s->device, &options, pipelines[i].pipeline));
    }
    const struct gpu_buffer_request request = {&s->gradients, "sample gradients",
                                               s->step.buffers.at[BIND_FIELD_GRADIENTS].size,
                                               s->host ? GPU_HOST : GPU_DEVICE};
    BASE_TRY(gpu_arena_create(s->device, &request, 1, &s->arena));
    s->composited.gradients = listing_array(&s->gradients, s->host);
    return listing_create(s->device, &s->step.buffers, s->host, &s->listing);
}

#define STATE_WORD(member) offsetof(struct State, member), sizeof(uint32_t)

void stepper_record_listing(struct vkn_stepper *s, struct gpu_recording *recording)
{
    const struct gpu_buffer *state = &s->step.buffers.at[BIND_STATE], *listed = &s->listing.listed;
    listing_record(&s->listing, recording, s->list_samples, LIST_STEP, 0,
                   s->step.setup.constants.forward_groups);
    gpu_record_barrier(recording);
    gpu_record_copy(recording, listed, offsetof(struct ListSummary, samples), state,
                    STATE_WORD(live_count));
    gpu_record_copy(recording, listed, offsetof(struct ListSummary, rays_in_loss), state,
                    STATE_WORD(live_rays));
}

/* Records the passes from rays to listed samples. */
static vkn_status record_sampling(struct vkn_stepper *s)
{
    BASE_TRY(gpu_record_begin(s->device, "sampling", 0, &s->sampling));
    gpu_record_barrier(s->sampling);
    step_record_part(&s->step, s->sampling, ANY_STEP, NULL, "composite");
    stepper_record_listing(s, s->sampling);
    return gpu_record_end(s->sampling);
}

/* Records the passes from the caller's values to the gradients and statistics of the step.
 * Gradients of samples that are not live are zero, because the stepper is deterministic. */
static vkn_status record_compositing(struct vkn_stepper *s)
{
    const struct gpu_buffer *at = s->step.buffers.at;
    const struct gpu_buffer *values = listing_buffer(&s->listing, &s->listing.samples.values);
    BASE_TRY(gpu_record_begin(s->device, "compositing", 0, &s->compositing));
    gpu_record_barrier(s->compositing);
    gpu_record_copy(s->compositing, values, 0, &at[BIND_FIELD], 0, values->size);
    gpu_record_fill(s->compositing, &at[BIND_STATE], STATE_WORD(live_count), 0);
    gpu_record_fill(s->compositing, &at[BIND_STATE], STATE_WORD(live_rays), 0);
    gpu_record_barrier(s->compositing);
    step_record_part(&s->step, s->compositing, ANY_STEP, "composite", "update_weights");
    gpu_record_barrier(s->compositing);
    gpu_record_copy(s->compositing, &at[BIND_FIELD_GRADIENTS], 0, &s->gradients, 0,
                    s->gradients.size);
    return gpu_record_end(s->compositing);
}

static vkn_status prepare(struct vkn_stepper *s, const struct vkn_config *config)
{
    config = config_or_default(config);
    BASE_TRY(images_check(s->scene));
    BASE_TRY(stream_load(s->scene, config, NULL, NULL));
    BASE_TRY(create_step(s, config));
    BASE_TRY(occupy_seen(s));
    BASE_TRY(create_listing(s));
    BASE_TRY(record_sampling(s));
    return record_compositing(s);
}

vkn_status vkn_stepper_create(vkn_context *context, vkn_scene *scene,
                              const struct vkn_config *config,
                              const struct vkn_stepper_params *params, vkn_stepper **stepper)
{
    BASE_C_LOCALE;
    BASE_NEED(stepper);
    *stepper = NULL;
    BASE_NEED(context);
    BASE_NEED(scene);
    BASE_USE(gpu_guard(context->device), NULL);
    struct vkn_stepper_params copy;
    BASE_TRY(BASE_READ("vkn_stepper_create: params", vkn_stepper_params, params, &copy, host));
    struct vkn_stepper *s = base_alloc(1, sizeof *s);
    if (!s)
        return VKN_ERROR;
    s->context = context_hold(context);
    s->device = context->device;
    s->scene = scene_retain(scene);
    s->host = copy.host;
    vkn_status status = prepare(s, config);
    if (status != VKN_OK)
        vkn_stepper_destroy(&s);
    *stepper = s;
    return status;
}

void vkn_stepper_destroy(vkn_stepper **stepper)
{
    struct vkn_stepper *s = stepper ? *stepper : NULL;
    if (!s)
        return;
    struct base_guard *guard = gpu_guard(s->device);
    bool foreign = base_guard_is_foreign(guard);
    if (!foreign && base_guard_refuses_destroy(guard, __func__, s))
        return;
    *stepper = NULL;
    if (foreign) /* a forked process cannot release the parent's Vulkan objects */
        return;
    BASE_KEEP_ERROR;
    vkn_renderer_destroy(&s->renderer);
    gpu_recording_destroy(&s->sampling);
    gpu_recording_destroy(&s->compositing);
    listing_destroy(&s->viewed);
    listing_destroy(&s->listing);
    gpu_arena_destroy(&s->arena);
    gpu_pipeline_destroy(&s->list_samples);
    gpu_pipeline_destroy(&s->import_densities);
    gpu_pipeline_destroy(&s->given_rays);
    stream_destroy(&s->stream);
    step_destroy(&s->step);
    scene_close(&s->scene);
    vkn_context_destroy(&s->context);
    free(s);
}

const struct vkn_config *vkn_stepper_config(const vkn_stepper *stepper)
{
    return stepper ? &stepper->step.setup.config : NULL;
}
