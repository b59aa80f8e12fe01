/* Renders views in batches of rays; a ray takes up to ROUND_SAMPLES samples a round until it ends.
 */
#include "render/internal.h"

#include <stdlib.h>
#include <string.h>

#include "field/choose.h"
#include "rays/rays.h"
#include "render/field.h"
#include "pipeline/checkpoint.h"
#include "train/internal.h"

static vkn_status allocate(struct vkn_renderer *r, bool own_field)
{
    uint64_t rays = r->constants.ray_capacity, samples = r->constants.sample_capacity;
    uint64_t features = samples * r->model.levels * r->model.features * (r->path.half ? 2 : 4);
    struct gpu_buffer_request requests[] = {
        {&r->constants_buffer, "render config", sizeof(struct Config), GPU_DEVICE},
        {&r->state, "render state", sizeof(struct State), GPU_DEVICE},
        {&r->camera, "render camera", sizeof(struct Camera), GPU_DEVICE},
        {&r->rays, "view rays", rays * sizeof(struct Ray), GPU_DEVICE},
        {&r->results, "view ray results", rays * sizeof(struct RayResult), GPU_DEVICE},
        {&r->samples, "view samples", samples * sizeof(struct Sample), GPU_DEVICE},
        {&r->features, "view features", features, GPU_DEVICE},
        {&r->field, "view field values", samples * 16, GPU_DEVICE},
        {&r->output, "pixels", rays * sizeof(struct Output), GPU_HOST},
        {&r->weights, "field parameters", 4ull * r->model.param_count, GPU_DEVICE},
        {&r->halves, "f16 field parameters", r->path.half ? 2ull * r->model.param_count : 0,
         GPU_DEVICE},
        {&r->occupancy, "field occupancy", 4 * rays_occupancy_cells(&r->config), GPU_DEVICE},
        {&r->bits, "field occupancy bits", 4 * rays_occupancy_words(&r->config), GPU_DEVICE},
    };
    size_t count = BASE_COUNT(requests) - (own_field ? 0 : 4);
    return gpu_arena_create(r->device, requests, count, &r->arena);
}

vkn_status render_create_passes(struct vkn_renderer *r, const struct field_pass_request *passes,
                                size_t count)
{
    return field_path_create_programs(r->device, &r->path, passes, count, LOCAL_SIZE_VIEW,
                                      &r->specialization);
}

static vkn_status create_programs(struct vkn_renderer *r)
{
    const struct field_pass_request passes[] = {
        {"generate_view_rays", &r->generate_view_rays, FIELD_SAME},
        {"march_view_rays", &r->march_view_rays, FIELD_SAME},
        {"encode_samples", &r->encode_samples, FIELD_COPIES},
        {"field_forward", &r->field_forward, FIELD_FORWARD},
        {"composite_view", &r->composite_view, FIELD_SAME},
        {"finish_pixels", &r->finish_pixels, FIELD_SAME},
        {"pack_occupancy", &r->pack_occupancy, FIELD_SAME},
        {"round_parameters", &r->round_parameters, FIELD_SAME},
    };
    return render_create_passes(r, passes, BASE_COUNT(passes) - (r->path.half ? 0 : 1));
}

/* What a trainer computes with has been tested by it. */
static vkn_status configure_as_is(struct vkn_renderer *r)
{
    struct field_choice choice;
    if (!r->trainer)
        BASE_TRY(field_choose(r->device, &r->config, &choice));
    return step_configure_tuned(&r->config, r->device, &r->model, &r->path, &r->constants,
                                &r->specialization);
}

/* A field may be shown on a device that cannot do what it was trained with: other matrices will do,
 * and where no precision is asked for, fp32. */
static vkn_status configure(struct vkn_renderer *r, bool asked)
{
    vkn_status status = configure_as_is(r);
    if (status != VKN_BAD_INPUT)
        return status;
    memset(&r->config.matrix, 0, sizeof r->config.matrix);
    status = configure_as_is(r);
    if (status != VKN_BAD_INPUT || asked || r->config.precision == VKN_PRECISION_FP32)
        return status;
    base_log(BASE_LOG_WARNING, "rendering in fp32: %s", vkn_last_error());
    r->config.precision = VKN_PRECISION_FP32;
    return configure_as_is(r);
}

/* A trainer's buffers, or the renderer's own. */
static void bind_field(const struct vkn_renderer *r, const struct gpu_buffer *buffers[GPU_BINDINGS])
{
    const struct step_buffers *shared = r->trainer ? &r->trainer->step.buffers : NULL;
    buffers[BIND_PARAMS] = shared ? &shared->average : &r->weights;
    buffers[BIND_HALVES] = shared ? &shared->half_average : &r->halves;
    buffers[BIND_OCCUPANCY] = shared ? &shared->occupancy : &r->occupancy;
    buffers[BIND_BITS] = shared ? &shared->bits : &r->bits;
}

struct render_field render_field_of(const vkn_renderer *renderer)
{
    struct render_field field = {
        .device = renderer->device,
        .model = &renderer->model,
        .path = &renderer->path,
        .constants = renderer->constants,
        .specialization = renderer->specialization,
    };
    bind_field(renderer, field.buffers);
    return field;
}

static vkn_status bind_buffers(struct vkn_renderer *r)
{
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {
        [BIND_CONFIG] = &r->constants_buffer,
        [BIND_STATE] = &r->state,
        [BIND_CAMERAS] = &r->camera,
        [BIND_RAYS] = &r->rays,
        [BIND_RESULTS] = &r->results,
        [BIND_SAMPLES] = &r->samples,
        [BIND_FEATURES] = &r->features,
        [BIND_FIELD] = &r->field,
        [BIND_OUTPUT] = &r->output,
        [BIND_NORMALS] = r->normal_arena ? &r->normals : NULL,
    };
    bind_field(r, buffers);
    return gpu_bindings_create(r->device, buffers, &r->bindings);
}

static vkn_status prepare(struct vkn_renderer *r, const vkn_trainer *trainer, bool asked)
{
    const struct gpu_capabilities *device = gpu_device_capabilities(r->device);
    BASE_TRY(configure(r, asked));
    r->constants.ray_capacity = device->type == GPU_CPU ? 1u << 10 : 1u << 14;
    r->constants.sample_capacity = r->constants.ray_capacity * ROUND_SAMPLES;
    r->constants.camera_count = 1;
    BASE_TRY(allocate(r, !trainer));
    BASE_TRY(bind_buffers(r));
    return create_programs(r);
}

/* `precision`: AUTO for the configuration's. */
static vkn_status create(struct gpu_device *device, const struct vkn_config *config,
                         enum vkn_precision precision, const char *scene_path,
                         const vkn_trainer *trainer, vkn_renderer **renderer)
{
    *renderer = NULL;
    struct vkn_renderer *r = base_alloc(1, sizeof *r);
    if (!r)
        return VKN_ERROR;
    r->device = device;
    r->config = *config;
    if (precision != VKN_PRECISION_AUTO)
        r->config.precision = precision;
    r->config.gradient_sums =
        VKN_SUMS_DEFAULT; /* nothing is summed, whatever the device trained with */
    r->trainer = trainer;
    r->scene_path = base_format("%s", scene_path);
    vkn_status status =
        r->scene_path ? prepare(r, trainer, precision != VKN_PRECISION_AUTO) : VKN_ERROR;
    if (status != VKN_OK)
        vkn_renderer_destroy(&r);
    *renderer = r;
    return status;
}

vkn_status vkn_renderer_of_trainer(vkn_trainer *trainer, vkn_renderer **renderer)
{
    BASE_C_LOCALE;
    return create(trainer->device, &trainer->config, VKN_PRECISION_AUTO, trainer->scene->path,
                  trainer, renderer);
}

/* ---- from a checkpoint
 * ---------------------------------------------------------------------------- */

static vkn_status upload_tensor(struct vkn_renderer *r, const struct safetensors_file *file,
                                const char *name, enum safetensors_type type,
                                const struct gpu_buffer *buffer, uint64_t size)
{
    const struct safetensors_tensor *tensor = NULL;
    BASE_TRY(safetensors_find(file, name, type, size / 4, &tensor));
    return gpu_upload(r->device, buffer, 0, tensor->data, size);
}

static vkn_status load_field(struct vkn_renderer *r, const struct safetensors_file *file)
{
    uint64_t cells = rays_occupancy_cells(&r->config);
    BASE_TRY(upload_tensor(r, file, "average", SAFETENSORS_F32, &r->weights,
                           4ull * r->model.param_count));
    BASE_TRY(upload_tensor(r, file, "occupancy", SAFETENSORS_F32, &r->occupancy, 4 * cells));
    BASE_TRY(upload_tensor(r, file, "state", SAFETENSORS_U32, &r->state, sizeof(struct State)));
    BASE_TRY(gpu_upload(r->device, &r->constants_buffer, 0, &r->constants, sizeof r->constants));
    struct gpu_recording *recording = NULL;
    vkn_status status = gpu_record_begin(r->device, "field of a checkpoint", 0, &recording);
    if (status == VKN_OK) {
        struct Push none = {0};
        if (r->path.half)
            gpu_record_dispatch(recording, r->round_parameters, r->bindings, &none, sizeof none,
                                1024);
        uint32_t cascades = rays_cascades(&r->config);
        uint64_t blocks = cells / cascades / (OCCUPANCY_BLOCK * OCCUPANCY_BLOCK * OCCUPANCY_BLOCK);
        for (struct Push push = {0}; push.c < cascades; push.c++) {
            gpu_record_dispatch(recording, r->pack_occupancy, r->bindings, &push, sizeof push,
                                (uint32_t)(blocks / LOCAL_SIZE_VIEW + 1));
            gpu_record_barrier(recording);
        }
        status = gpu_run_once(recording);
    }
    gpu_recording_destroy(&recording);
    return status;
}

static vkn_status open_file(struct vkn_context *context, const char *path,
                            const struct safetensors_file *file, enum vkn_precision precision,
                            vkn_renderer **renderer)
{
    const char *json = safetensors_metadata_value(file, CHECKPOINT_CONFIG);
    const char *step = safetensors_metadata_value(file, CHECKPOINT_STEP);
    if (!safetensors_metadata_value(file, CHECKPOINT_SCENE))
        return base_fail(VKN_BAD_INPUT, "%s: the checkpoint's %s is missing", path,
                         CHECKPOINT_SCENE);
    struct vkn_config config = {0};
    BASE_TRY(vkn_config_parse_json(&config, path, json, true));
    char *scene = checkpoint_scene(file);
    vkn_status created = scene ? create(context->device, &config, precision, scene, NULL, renderer)
                               : VKN_ERROR;
    free(scene);
    BASE_TRY(created);
    (*renderer)->step = strtoull(step, NULL, 10);
    vkn_status status = load_field(*renderer, file);
    if (status != VKN_OK)
        vkn_renderer_destroy(renderer);
    return status;
}

vkn_status vkn_renderer_open(vkn_context *context, const char *checkpoint,
                             enum vkn_precision precision, vkn_renderer **renderer)
{
    BASE_C_LOCALE;
    *renderer = NULL;
    struct safetensors_file *file = NULL;
    BASE_TRY(checkpoint_open(checkpoint, &file));
    vkn_status status = open_file(context, checkpoint, file, precision, renderer);
    safetensors_close(&file);
    return status;
}

void vkn_renderer_destroy(vkn_renderer **renderer)
{
    BASE_KEEP_ERROR;
    struct vkn_renderer *r = *renderer;
    if (!r)
        return;
    gpu_program_destroy(&r->generate_view_rays);
    gpu_program_destroy(&r->march_view_rays);
    gpu_program_destroy(&r->encode_samples);
    gpu_program_destroy(&r->field_forward);
    gpu_program_destroy(&r->composite_view);
    gpu_program_destroy(&r->finish_pixels);
    gpu_program_destroy(&r->pack_occupancy);
    gpu_program_destroy(&r->round_parameters);
    gpu_program_destroy(&r->sample_normals);
    gpu_program_destroy(&r->composite_normals);
    gpu_program_destroy(&r->finish_normals);
    gpu_bindings_destroy(&r->bindings);
    gpu_arena_destroy(&r->normal_arena);
    gpu_arena_destroy(&r->arena);
    free(r->scene_path);
    free(r);
    *renderer = NULL;
}

const struct vkn_config *vkn_renderer_config(const vkn_renderer *renderer)
{
    return &renderer->config;
}

const char *vkn_renderer_scene_path(const vkn_renderer *renderer)
{
    return renderer->scene_path;
}

uint64_t vkn_renderer_step(const vkn_renderer *renderer)
{
    return renderer->trainer ? renderer->trainer->steps_done : renderer->step;
}

/* ---- normals
 * ---------------------------------------------------------------------------------------- */

vkn_status vkn_renderer_want_normals(vkn_renderer *renderer)
{
    struct vkn_renderer *r = renderer;
    const struct field_pass_request passes[] = {
        {"sample_normals", &r->sample_normals, FIELD_DEPTH},
        {"composite_normals", &r->composite_normals, FIELD_SAME},
        {"finish_normals", &r->finish_normals, FIELD_SAME},
    };
    uint64_t size = 16ull * (r->constants.sample_capacity + r->constants.ray_capacity);
    struct gpu_buffer_request request = {&r->normals, "view normals", size, GPU_DEVICE};
    if (r->finish_normals)
        return VKN_OK;
    BASE_TRY(gpu_arena_create(r->device, &request, 1, &r->normal_arena));
    gpu_bindings_destroy(&r->bindings);
    BASE_TRY(bind_buffers(r));
    return render_create_passes(r, passes, BASE_COUNT(passes));
}

/* ---- views
 * ------------------------------------------------------------------------------------------ */

/* The next samples of all rays: marched, evaluated, composited. */
static void record_round(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                         const struct gpu_program *forward, const struct gpu_program *composite)
{
    uint32_t groups = (rays + LOCAL_SIZE_VIEW - 1) / LOCAL_SIZE_VIEW;
    uint32_t subgroups = LOCAL_SIZE_VIEW / gpu_device_capabilities(r->device)->subgroup_size;
    uint32_t most = rays * ROUND_SAMPLES / LOCAL_SIZE_VIEW;
    uint32_t sharing = most < r->constants.forward_groups ? most : r->constants.forward_groups;
    const struct {
        const struct gpu_program *program;
        uint32_t groups;
    } passes[] = {
        {r->march_view_rays, (rays + subgroups - 1) / subgroups},
        {r->encode_samples, sharing},
        {forward, sharing},
        {r->sample_normals, sharing},
        {composite, groups},
    };
    const struct Push push = {.a = ROUND_SAMPLES, .b = rays};
    gpu_record_barrier(recording);
    gpu_record_fill(recording, &r->state, offsetof(struct State, sample_count), 4, 0);
    for (size_t i = 0; i < BASE_COUNT(passes); i++) {
        if (!passes[i].program)
            continue;
        gpu_record_barrier(recording);
        gpu_record_dispatch(recording, passes[i].program, r->bindings, &push, sizeof push,
                            passes[i].groups);
    }
}

void render_record_rounds(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                          const struct gpu_program *forward, const struct gpu_program *composite)
{
    if (r->finish_normals)
        gpu_record_fill(recording, &r->normals, 16ull * r->constants.sample_capacity, UINT64_MAX,
                        0);
    uint32_t rounds = rays_most_steps(&r->config, &r->constants) / ROUND_SAMPLES + 1;
    for (uint32_t round = 0; round < rounds; round++)
        record_round(r, recording, rays, forward, composite);
    gpu_record_barrier(recording);
}

/* Rays [first, first + rays) of the view, counting sub-pixel rays; `pixels` of them to finish. */
static void record_batch(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t first,
                         uint32_t rays, uint32_t log2_edge)
{
    uint32_t groups = (rays + LOCAL_SIZE_VIEW - 1) / LOCAL_SIZE_VIEW;
    struct Push view = {.b = first, .c = rays, .d = log2_edge};
    gpu_record_dispatch(recording, r->generate_view_rays, r->bindings, &view, sizeof view, groups);
    render_record_rounds(r, recording, rays, r->field_forward,
                         r->finish_normals ? r->composite_normals : r->composite_view);
    uint32_t per_pixel = 1u << (2 * log2_edge);
    struct Push finish = {.a = rays / per_pixel, .b = per_pixel};
    gpu_record_dispatch(recording, r->finish_normals ? r->finish_normals : r->finish_pixels,
                        r->bindings, &finish, sizeof finish, groups);
}

static void take_pixels(const struct vkn_renderer *r, struct vkn_picture *picture, uint64_t first,
                        uint32_t count)
{
    const struct Output *output = r->output.mapped;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&picture->color[3 * (first + i)], output[i].color, sizeof output[i].color);
        picture->opacity[first + i] = output[i].opacity;
        picture->depth[first + i] = output[i].depth / r->config.scene.scale;
        if (picture->normal)
            memcpy(&picture->normal[3 * (first + i)], output[i].normal, sizeof output[i].normal);
    }
}

static vkn_status render_batch(struct vkn_renderer *r, struct vkn_picture *picture,
                               uint64_t first_pixel, uint32_t pixels, uint32_t log2_edge)
{
    uint32_t per_pixel = 1u << (2 * log2_edge);
    struct gpu_recording *recording = NULL;
    vkn_status status = gpu_record_begin(r->device, "view batch", 0, &recording);
    if (status == VKN_OK) {
        record_batch(r, recording, (uint32_t)first_pixel * per_pixel, pixels * per_pixel,
                     log2_edge);
        status = gpu_run_once(recording);
    }
    gpu_recording_destroy(&recording);
    if (status == VKN_OK)
        take_pixels(r, picture, first_pixel, pixels);
    return status;
}

static vkn_status allocate_picture(struct vkn_picture *picture, uint32_t width, uint32_t height,
                                   bool normals)
{
    size_t pixels = (size_t)width * height;
    *picture = (struct vkn_picture){.width = width, .height = height};
    picture->color = base_alloc(3 * pixels, sizeof *picture->color);
    picture->opacity = base_alloc(pixels, sizeof *picture->opacity);
    picture->depth = base_alloc(pixels, sizeof *picture->depth);
    if (normals)
        picture->normal = base_alloc(3 * pixels, sizeof *picture->normal);
    return picture->color && picture->opacity && picture->depth && (picture->normal || !normals)
               ? VKN_OK
               : VKN_ERROR;
}

static vkn_status render_all(struct vkn_renderer *r, struct vkn_picture *picture,
                             uint32_t log2_edge)
{
    uint64_t pixels = (uint64_t)picture->width * picture->height;
    uint32_t batch = r->constants.ray_capacity >> (2 * log2_edge);
    for (uint64_t first = 0; first < pixels; first += batch) {
        uint64_t left = pixels - first;
        BASE_TRY(render_batch(r, picture, first, left < batch ? (uint32_t)left : batch, log2_edge));
    }
    return VKN_OK;
}

vkn_status vkn_render(vkn_renderer *renderer, const struct scene_camera *camera,
                      enum vkn_background background, uint32_t supersample,
                      struct vkn_picture *picture)
{
    BASE_C_LOCALE;
    *picture = (struct vkn_picture){0};
    uint32_t edge = supersample ? supersample : 1;
    if (edge != 1 && edge != 2 && edge != 4)
        return base_fail(VKN_BAD_INPUT, "supersample: %u is not 1, 2 or 4", edge);
    if (camera->width == 0 || camera->height == 0 ||
        (uint64_t)camera->width * camera->height > UINT32_MAX / (edge * edge))
        return base_fail(VKN_BAD_INPUT, "view of %u x %u pixels: cannot be rendered", camera->width,
                         camera->height);
    float value = background == VKN_BACKGROUND_BLACK ? 0.0f : 1.0f;
    for (int c = 0; c < 3; c++)
        renderer->constants.render_background[c] = value;
    struct Camera view = step_camera(camera);
    BASE_TRY(gpu_upload(renderer->device, &renderer->camera, 0, &view, sizeof view));
    BASE_TRY(gpu_upload(renderer->device, &renderer->constants_buffer, 0, &renderer->constants,
                        sizeof renderer->constants));
    vkn_status status =
        allocate_picture(picture, camera->width, camera->height, renderer->finish_normals != NULL);
    if (status == VKN_OK)
        status = render_all(renderer, picture, edge == 4 ? 2 : edge - 1);
    if (status != VKN_OK)
        vkn_picture_free(picture);
    return status;
}

void vkn_picture_free(struct vkn_picture *picture)
{
    free(picture->color);
    free(picture->opacity);
    free(picture->depth);
    free(picture->normal);
    *picture = (struct vkn_picture){0};
}
