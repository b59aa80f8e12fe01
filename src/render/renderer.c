/* Creates and destroys renderers, their buffers and pipelines. */
#include "render/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rays/rays.h"
#include "render/difference_normals.h"
#include "tuner/tuner.h"
#include "volume/volume.h"

/* Buffers of pictures. The field's buffers belong to the step; without one, to the renderer. */
#define OF_PICTURES                                                                           \
    (BUFFERS(CONFIG) | BUFFERS(STATE) | BUFFERS(CAMERAS) | BUFFERS(RAYS) | BUFFERS(RESULTS) | \
     BUFFERS(SAMPLES) | BUFFERS(FEATURES) | BUFFERS(FIELD) | BUFFERS(OUTPUT))

static vkn_status allocate(struct vkn_renderer *r)
{
    struct buffer_counts counts = setup_counts(&r->setup);
    counts.cameras = 1;
    counts.sky_cells = volume_sky_cells(&r->setup.config);
    return buffers_create(r->device, BUFFERS_OF_VIEW,
                          OF_PICTURES | (r->step ? 0 : BUFFERS_OF_FIELD), &counts, &r->buffers);
}

/* Buffers that the coarse field does not share with the fine field. */
#define OF_COARSE_FIELD (BUFFERS(PARAMS) | BUFFERS(F16_PARAMS))
#define OF_COARSE       (BUFFERS(RESULTS) | BUFFERS(SAMPLES) | BUFFERS(FIELD))

/* Further buffers whose size depends on the shape of a proposal. */
#define OF_PROPOSAL (BUFFERS(CONFIG) | BUFFERS(FEATURES))

static vkn_status allocate_coarse(struct vkn_renderer *r)
{
    const struct buffer_counts counts = setup_counts(&r->coarse_setup);
    uint32_t proposal = rays_have_proposal(&r->setup.config) ? OF_PROPOSAL : 0;
    if (!rays_have_coarse(&r->setup.config))
        return VKN_OK;
    return buffers_create(r->device, BUFFERS_OF_COARSE,
                          OF_COARSE | proposal | (r->step ? 0 : OF_COARSE_FIELD), &counts,
                          &r->coarse);
}

vkn_status render_create_passes(struct vkn_renderer *r, const struct field_pass_request *passes,
                                size_t count)
{
    return field_backend_create_pipelines(r->device, &r->setup.backend, passes, count,
                                          PASS_LOCAL_SIZE, &r->setup.specialization);
}

static vkn_status create_pipelines(struct vkn_renderer *r)
{
    struct field_pass_request passes[RENDER_MAX_PIPELINES];
    size_t count = render_list_views(r, passes);
    BASE_TRY(render_create_passes(r, passes, count));
    count = render_list_proposal(r, passes);
    if (count == 0)
        return VKN_OK;
    return field_backend_create_pipelines(r->device, &r->coarse_setup.backend, passes, count,
                                          PASS_LOCAL_SIZE, &r->coarse_setup.specialization);
}

/* Configures the renderer for `config` without fallbacks. The backend of a step needs no self-test:
 * it passed one when the step was created. */
static vkn_status configure_as_is(struct vkn_renderer *r, struct vkn_config *config)
{
    struct field_choice choice;
    if (!r->step)
        BASE_TRY(field_choose(r->device, config, &choice));
    return setup_create_tuned(config, r->device, &r->setup);
}

/* Configures the renderer, with fallbacks where the device does not support the backend of the
 * training: first other matrix shapes, then fp32 unless the caller requested a precision. */
static vkn_status configure(struct vkn_renderer *r, struct vkn_config *config, bool is_requested)
{
    vkn_status status = configure_as_is(r, config);
    if (status != VKN_BAD_INPUT)
        return status;
    memset(&config->matrix, 0, sizeof config->matrix);
    field_policy_reset(config);
    status = configure_as_is(r, config);
    if (status != VKN_BAD_INPUT || is_requested || config->precision == VKN_PRECISION_FP32)
        return status;
    base_log(BASE_LOG_WARNING, "rendering in fp32: %s", vkn_last_error());
    config->precision = VKN_PRECISION_FP32;
    return configure_as_is(r, config);
}

/* Binds the averaged parameters and the occupancy grid of the step, else of the renderer. */
static void bind_field(const struct vkn_renderer *r, const struct gpu_buffer *bound[GPU_BINDINGS])
{
    buffers_bind(r->step ? &r->step->buffers : &r->buffers, BUFFERS_OF_FIELD, bound);
    if (r->step) {
        bound[BIND_PARAMS] = &r->step->buffers.at[BIND_AVERAGE];
        bound[BIND_F16_PARAMS] = &r->step->buffers.at[BIND_F16_AVERAGE];
    }
}

struct render_field render_field_of(const vkn_renderer *renderer)
{
    struct render_field field = {.device = renderer->device, .setup = &renderer->setup};
    bind_field(renderer, field.buffers);
    return field;
}

static vkn_status bind_buffers(struct vkn_renderer *r)
{
    const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
    buffers_bind(&r->buffers, OF_PICTURES, bound);
    buffers_bind(&r->normals, BUFFERS(NORMALS), bound);
    buffers_bind(&r->points, BUFFERS(MESH_VERTICES), bound);
    bind_field(r, bound);
    if (r->coarse.arena) {
        bound[BIND_COARSE_RESULTS] = &r->coarse.at[BIND_RESULTS];
        bound[BIND_COARSE_SAMPLES] = &r->coarse.at[BIND_SAMPLES];
        bound[BIND_COARSE_FIELD] = &r->coarse.at[BIND_FIELD];
    }
    return gpu_bindings_create(r->device, bound, &r->bindings);
}

/* Binds the coarse field and its samples, and the fine field's buffers to the other bindings. */
static vkn_status bind_coarse(struct vkn_renderer *r)
{
    const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
    if (!r->coarse.arena)
        return VKN_OK;
    buffers_bind(&r->buffers, OF_PICTURES, bound);
    bind_field(r, bound);
    buffers_bind(&r->coarse, BUFFERS_ALL, bound);
    if (r->step) {
        bound[BIND_PARAMS] = &r->step->coarse.at[BIND_AVERAGE];
        bound[BIND_F16_PARAMS] = &r->step->coarse.at[BIND_F16_AVERAGE];
    }
    return gpu_bindings_create(r->device, bound, &r->coarse_bindings);
}

/* Sets the rays of a batch and the samples of a ray in a march iteration. With a coarse field an
 * iteration takes all coarse samples at once. */
static void size_batch(struct vkn_renderer *r, bool cpu)
{
    struct Config *constants = &r->setup.constants;
    uint32_t rays = cpu ? 1u << 10 : 1u << 14;
    bool coarse = rays_have_coarse(&r->setup.config);
    r->march_samples = MARCH_SAMPLES;
    while (coarse && r->march_samples < constants->ray_samples) {
        r->march_samples *= 2;
        rays /= 2;
    }
    constants->ray_capacity = rays;
    constants->sample_capacity = rays * r->march_samples;
}

static vkn_status prepare(struct vkn_renderer *r, const struct vkn_config *config,
                          enum vkn_precision precision)
{
    const struct gpu_capabilities *device = gpu_device_capabilities(r->device);
    struct vkn_config wanted = *config;
    if (precision != VKN_PRECISION_AUTO)
        wanted.precision = precision;
    /* Nothing is trained, so settings of gradients do not matter. */
    wanted.gradient_sums = VKN_SUMS_DEFAULT;
    wanted.mlp.activation_checkpointing = VKN_CHECKPOINTING_ON;
    BASE_TRY(configure(r, &wanted, precision != VKN_PRECISION_AUTO));
    r->march_iterations_per_submit = device->type == GPU_CPU ? 0 : 1;
    size_batch(r, device->type == GPU_CPU);
    r->setup.constants.camera_count = 1;
    r->coarse_setup = setup_of_coarse(&r->setup);
    BASE_TRY(allocate(r));
    BASE_TRY(allocate_coarse(r));
    BASE_TRY(bind_buffers(r));
    BASE_TRY(bind_coarse(r));
    BASE_TRY(create_pipelines(r));
    const struct render_field field = render_field_of(r);
    return rays_are_hierarchical(&r->setup.config)
               ? field_query_create_forward(&field, true, &r->find_coarse_density)
               : VKN_OK;
}

vkn_status render_create(struct gpu_device *device, const struct vkn_config *config,
                         enum vkn_precision precision, const char *scene_path,
                         const struct step *step, const uint64_t *steps_done,
                         vkn_renderer **renderer)
{
    *renderer = NULL;
    struct vkn_renderer *r = base_alloc(1, sizeof *r);
    if (!r)
        return VKN_ERROR;
    r->device = device;
    r->step = step;
    r->steps_done = steps_done;
    r->scene_path = base_format("%s", scene_path);
    vkn_status status = r->scene_path ? prepare(r, config, precision) : VKN_ERROR;
    if (status != VKN_OK)
        vkn_renderer_destroy(&r);
    *renderer = r;
    return status;
}

vkn_status render_of_step(const struct step *step, const uint64_t *steps_done,
                          const char *scene_path, vkn_renderer **renderer)
{
    return render_create(step->device, &step->setup.config, VKN_PRECISION_AUTO, scene_path, step,
                         steps_done, renderer);
}

void render_set_evaluator(vkn_renderer *renderer, render_evaluate_samples *evaluate, void *context)
{
    renderer->evaluate = evaluate;
    renderer->evaluate_context = context;
}

void render_hold_trainer(vkn_renderer *renderer, vkn_trainer *trainer)
{
    renderer->trainer = trainer;
}

/* ---- uploads --------------------------------------------------------------------------------- */

vkn_status render_upload_constants(struct vkn_renderer *r)
{
    if (r->coarse.at[BIND_CONFIG].handle)
        BASE_TRY(gpu_upload(r->device, &r->coarse.at[BIND_CONFIG], 0, &r->coarse_setup.constants,
                            sizeof r->coarse_setup.constants));
    return gpu_upload(r->device, &r->buffers.at[BIND_CONFIG], 0, &r->setup.constants,
                      sizeof r->setup.constants);
}

vkn_status render_upload_camera(struct vkn_renderer *r, const struct scene_camera *camera)
{
    struct Camera view = setup_camera(camera);
    if (r->has_time)
        view.time = r->time;
    return gpu_upload(r->device, &r->buffers.at[BIND_CAMERAS], 0, &view, sizeof view);
}

void vkn_renderer_destroy(vkn_renderer **renderer)
{
    struct vkn_renderer *r = renderer ? *renderer : NULL;
    if (!r)
        return;
    if (base_guard_is_foreign(gpu_guard(r->device))) { /* in a forked process: not freed */
        *renderer = NULL;
        return;
    }
    if (base_guard_refuses_destroy(gpu_guard(r->device), __func__, r))
        return;
    BASE_KEEP_ERROR;
    render_query_destroy(&r->query);
    gpu_pipeline_destroy(&r->generate_view_rays);
    gpu_pipeline_destroy(&r->given_rays);
    gpu_pipeline_destroy(&r->sample_view_rays);
    gpu_pipeline_destroy(&r->sample_coarse_rays);
    gpu_pipeline_destroy(&r->find_coarse_density);
    for (size_t i = 0; i < RENDER_MAX_FORWARD; i++) {
        gpu_pipeline_destroy(&r->forward[i]);
        gpu_pipeline_destroy(&r->proposal_forward[i]);
    }
    gpu_pipeline_destroy(&r->round_proposal);
    gpu_pipeline_destroy(&r->composite_view);
    gpu_pipeline_destroy(&r->finish_pixels);
    gpu_pipeline_destroy(&r->pack_occupancy);
    gpu_pipeline_destroy(&r->round_parameters);
    gpu_pipeline_destroy(&r->sample_normals);
    difference_normals_destroy(&r->difference_normals);
    gpu_pipeline_destroy(&r->composite_normals);
    gpu_pipeline_destroy(&r->finish_normals);
    gpu_bindings_destroy(&r->bindings);
    gpu_bindings_destroy(&r->coarse_bindings);
    buffers_destroy(&r->coarse);
    buffers_destroy(&r->normals);
    buffers_destroy(&r->points);
    buffers_destroy(&r->buffers);
    free(r->scene_path);
    free(r->checkpoint);
    free((void *)r->state.data);
    vkn_trainer_destroy(&r->trainer);
    vkn_context_destroy(&r->context);
    free(r);
    *renderer = NULL;
}

const struct vkn_config *vkn_renderer_config(const vkn_renderer *renderer)
{
    return renderer ? &renderer->setup.config : NULL;
}

struct base_guard *render_guard(vkn_renderer *renderer)
{
    return gpu_guard(renderer->device);
}

const char *vkn_renderer_scene_path(const vkn_renderer *renderer)
{
    return renderer ? renderer->scene_path : NULL;
}

vkn_status vkn_renderer_set_time(vkn_renderer *renderer, double time)
{
    BASE_NEED(renderer);
    if (!(time >= 0.0 && time <= 1.0))
        return base_fail(VKN_BAD_INPUT, "time: %g is not from 0 to 1", time);
    renderer->has_time = true;
    renderer->time = (float)time;
    return VKN_OK;
}

uint64_t vkn_renderer_step(const vkn_renderer *renderer)
{
    if (!renderer)
        return 0;
    return renderer->steps_done ? *renderer->steps_done : renderer->checkpoint_step;
}

/* ---- normals --------------------------------------------------------------------------------- */

vkn_status vkn_renderer_enable_normals(vkn_renderer *renderer)
{
    BASE_NEED(renderer);
    struct vkn_renderer *r = renderer;
    BASE_USE(gpu_guard(r->device), r);
    struct field_pass_request passes[RENDER_NORMAL_PIPELINES];
    size_t count = render_list_normals(r, passes);
    const struct buffer_counts counts = setup_counts(&r->setup);
    if (r->finish_normals)
        return VKN_OK;
    BASE_TRY(buffers_create(r->device, BUFFERS_OF_VIEW, BUFFERS(NORMALS), &counts, &r->normals));
    gpu_bindings_destroy(&r->bindings);
    BASE_TRY(bind_buffers(r));
    BASE_TRY(render_create_passes(r, passes, count));
    return r->sample_normals ? VKN_OK : difference_normals_create(r, &r->difference_normals);
}

vkn_status render_enable_points(struct vkn_renderer *r)
{
    const struct buffer_counts counts = {.vertices = r->setup.constants.ray_capacity};
    if (r->points.arena)
        return VKN_OK;
    BASE_TRY(
        buffers_create(r->device, BUFFERS_OF_VIEW, BUFFERS(MESH_VERTICES), &counts, &r->points));
    gpu_bindings_destroy(&r->bindings);
    return bind_buffers(r);
}
