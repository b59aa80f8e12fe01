/* Renders views in batches of rays; a ray takes up to ROUND_SAMPLES samples a round until it ends.
 */
#include "render/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rays/rays.h"
#include "render/field.h"
#include "tuner/tuner.h"
#include "volume/volume.h"

/* What pictures need besides the field, which is a step's or the renderer's own. */
#define OF_PICTURES                                                                           \
    (BUFFERS(CONFIG) | BUFFERS(STATE) | BUFFERS(CAMERAS) | BUFFERS(RAYS) | BUFFERS(RESULTS) | \
     BUFFERS(SAMPLES) | BUFFERS(FEATURES) | BUFFERS(FIELD) | BUFFERS(OUTPUT))

static vkn_status allocate(struct vkn_renderer *r)
{
    struct buffer_counts counts = setup_counts(&r->setup);
    counts.cameras = 1;
    return buffers_create(r->device, BUFFERS_OF_VIEW,
                          OF_PICTURES | (r->step ? 0 : BUFFERS_OF_FIELD), &counts, &r->buffers);
}

vkn_status render_create_passes(struct vkn_renderer *r, const struct field_pass_request *passes,
                                size_t count)
{
    return field_backend_create_programs(r->device, &r->setup.backend, passes, count,
                                         PASS_LOCAL_SIZE, &r->setup.specialization);
}

static vkn_status create_programs(struct vkn_renderer *r)
{
    struct field_pass_request passes[RENDER_MAX_PROGRAMS];
    size_t count = render_list_views(r, passes);
    return render_create_passes(r, passes, count);
}

/* What a step computes with was tested when it was made. */
static vkn_status configure_as_is(struct vkn_renderer *r, struct vkn_config *config)
{
    struct field_choice choice;
    if (!r->step)
        BASE_TRY(field_choose(r->device, config, &choice));
    return setup_create_tuned(config, r->device, &r->setup);
}

/* A field may be shown on a device that cannot do what it was trained with: other matrices will do,
 * and where no precision is asked for, fp32. */
static vkn_status configure(struct vkn_renderer *r, struct vkn_config *config, bool asked)
{
    vkn_status status = configure_as_is(r, config);
    if (status != VKN_BAD_INPUT)
        return status;
    memset(&config->matrix, 0, sizeof config->matrix);
    field_policy_release(config);
    status = configure_as_is(r, config);
    if (status != VKN_BAD_INPUT || asked || config->precision == VKN_PRECISION_FP32)
        return status;
    base_log(BASE_LOG_WARNING, "rendering in fp32: %s", vkn_last_error());
    config->precision = VKN_PRECISION_FP32;
    return configure_as_is(r, config);
}

/* A step's average and occupancy grid, or the renderer's own. */
static void bind_field(const struct vkn_renderer *r, const struct gpu_buffer *bound[GPU_BINDINGS])
{
    buffers_bind(r->step ? &r->step->buffers : &r->buffers, BUFFERS_OF_FIELD, bound);
    if (r->step) {
        bound[BIND_PARAMS] = &r->step->buffers.at[BIND_AVERAGE];
        bound[BIND_HALVES] = &r->step->buffers.at[BIND_HALF_AVERAGE];
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
    return gpu_bindings_create(r->device, bound, &r->bindings);
}

static vkn_status prepare(struct vkn_renderer *r, const struct vkn_config *config,
                          enum vkn_precision precision)
{
    const struct gpu_capabilities *device = gpu_device_capabilities(r->device);
    struct vkn_config wanted = *config;
    if (precision != VKN_PRECISION_AUTO)
        wanted.precision = precision;
    /* Nothing is summed, whatever the device trained with. */
    wanted.gradient_sums = VKN_SUMS_DEFAULT;
    BASE_TRY(configure(r, &wanted, precision != VKN_PRECISION_AUTO));
    r->setup.constants.ray_capacity = device->type == GPU_CPU ? 1u << 10 : 1u << 14;
    r->part_rounds = device->type == GPU_CPU ? 0 : 1;
    r->setup.constants.sample_capacity = r->setup.constants.ray_capacity * ROUND_SAMPLES;
    r->setup.constants.camera_count = 1;
    BASE_TRY(allocate(r));
    BASE_TRY(bind_buffers(r));
    return create_programs(r);
}

/* `precision`: AUTO for the configuration's. */
static vkn_status create(struct gpu_device *device, const struct vkn_config *config,
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
    return create(step->device, &step->setup.config, VKN_PRECISION_AUTO, scene_path, step,
                  steps_done, renderer);
}

/* ---- from a checkpoint ----------------------------------------------------------------------- */

/* What pictures need of a checkpoint, and the buffers it goes to. */
static const struct {
    uint32_t kept, into;
} shown[] = {
    {BIND_AVERAGE, BIND_PARAMS},
    {BIND_OCCUPANCY, BIND_OCCUPANCY},
    {BIND_STATE, BIND_STATE},
};

static vkn_status upload_tensor(struct vkn_renderer *r, const struct safetensors_file *file,
                                uint32_t number, uint32_t into)
{
    struct kept_buffer kept[MAX_KEPT_BUFFERS];
    const struct gpu_buffer *buffer = &r->buffers.at[into];
    const struct safetensors_tensor *tensor = NULL;
    size_t count = buffers_kept(kept), i = 0;
    while (i + 1 < count && kept[i].number != number)
        i++;
    BASE_TRY(safetensors_find(file, kept[i].tensor,
                              kept[i].real ? SAFETENSORS_F32 : SAFETENSORS_U32, buffer->size / 4,
                              &tensor));
    return gpu_upload(r->device, buffer, 0, tensor->data, buffer->size);
}

static vkn_status load_field(struct vkn_renderer *r, const struct safetensors_file *file)
{
    for (size_t i = 0; i < BASE_COUNT(shown); i++)
        BASE_TRY(upload_tensor(r, file, shown[i].kept, shown[i].into));
    BASE_TRY(render_upload_constants(r));
    struct gpu_recording *recording = NULL;
    vkn_status status = gpu_record_begin(r->device, "field of a checkpoint", 0, &recording);
    if (status == VKN_OK) {
        struct Push none = {0};
        if (r->setup.backend.half)
            gpu_record_dispatch(recording, r->round_parameters, r->bindings, &none, sizeof none,
                                1024);
        uint32_t cascades = rays_cascades(&r->setup.config);
        uint32_t groups = rays_pack_groups(&r->setup.config, PASS_LOCAL_SIZE);
        for (struct Push push = {0}; r->pack_occupancy && push.c < cascades; push.c++) {
            gpu_record_dispatch(recording, r->pack_occupancy, r->bindings, &push, sizeof push,
                                groups);
            gpu_record_program_barrier(recording);
        }
        status = gpu_run_once(recording);
    }
    gpu_recording_destroy(&recording);
    return status;
}

vkn_status render_upload_constants(struct vkn_renderer *r)
{
    return gpu_upload(r->device, &r->buffers.at[BIND_CONFIG], 0, &r->setup.constants,
                      sizeof r->setup.constants);
}

vkn_status render_upload_camera(struct vkn_renderer *r, const struct scene_camera *camera)
{
    struct Camera view = setup_camera(camera);
    return gpu_upload(r->device, &r->buffers.at[BIND_CAMERAS], 0, &view, sizeof view);
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
    vkn_status created =
        scene ? create(context->device, &config, precision, scene, NULL, NULL, renderer)
              : VKN_ERROR;
    free(scene);
    BASE_TRY(created);
    (*renderer)->checkpoint_step = strtoull(step, NULL, 10);
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
    gpu_program_destroy(&r->sample_view_rays);
    for (size_t i = 0; i < RENDER_MAX_FORWARD; i++)
        gpu_program_destroy(&r->forward[i]);
    gpu_program_destroy(&r->composite_view);
    gpu_program_destroy(&r->finish_pixels);
    gpu_program_destroy(&r->pack_occupancy);
    gpu_program_destroy(&r->round_parameters);
    gpu_program_destroy(&r->sample_normals);
    gpu_program_destroy(&r->composite_normals);
    gpu_program_destroy(&r->finish_normals);
    gpu_bindings_destroy(&r->bindings);
    buffers_destroy(&r->normals);
    buffers_destroy(&r->points);
    buffers_destroy(&r->buffers);
    free(r->scene_path);
    free(r);
    *renderer = NULL;
}

const struct vkn_config *vkn_renderer_config(const vkn_renderer *renderer)
{
    return &renderer->setup.config;
}

const char *vkn_renderer_scene_path(const vkn_renderer *renderer)
{
    return renderer->scene_path;
}

uint64_t vkn_renderer_step(const vkn_renderer *renderer)
{
    return renderer->steps_done ? *renderer->steps_done : renderer->checkpoint_step;
}

/* ---- normals --------------------------------------------------------------------------------- */

vkn_status vkn_renderer_want_normals(vkn_renderer *renderer)
{
    struct vkn_renderer *r = renderer;
    struct field_pass_request passes[RENDER_NORMAL_PROGRAMS];
    size_t count = render_list_normals(r, passes);
    if (count == 0)
        return base_fail(VKN_BAD_INPUT, "normals: this model has none");
    const struct buffer_counts counts = setup_counts(&r->setup);
    if (r->finish_normals)
        return VKN_OK;
    BASE_TRY(buffers_create(r->device, BUFFERS_OF_VIEW, BUFFERS(NORMALS), &counts, &r->normals));
    gpu_bindings_destroy(&r->bindings);
    BASE_TRY(bind_buffers(r));
    return render_create_passes(r, passes, count);
}

vkn_status render_want_points(struct vkn_renderer *r)
{
    const struct buffer_counts counts = {.vertices = r->setup.constants.ray_capacity};
    if (r->points.arena)
        return VKN_OK;
    BASE_TRY(
        buffers_create(r->device, BUFFERS_OF_VIEW, BUFFERS(MESH_VERTICES), &counts, &r->points));
    gpu_bindings_destroy(&r->bindings);
    return bind_buffers(r);
}

/* ---- views ----------------------------------------------------------------------------------- */

/* What a round records. */
struct round {
    const struct gpu_program *program;
    uint32_t groups;
};

/* The next samples of all rays, in round number `round`: marched, evaluated, composited. */
static void record_round(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                         uint32_t round, const struct gpu_program *density,
                         const struct gpu_program *composite)
{
    uint32_t groups = (rays + PASS_LOCAL_SIZE - 1) / PASS_LOCAL_SIZE;
    uint32_t subgroups = PASS_LOCAL_SIZE / gpu_device_capabilities(r->device)->subgroup_size;
    uint32_t most = rays * ROUND_SAMPLES / PASS_LOCAL_SIZE;
    uint32_t forward_groups = r->setup.constants.forward_groups;
    uint32_t sharing = most < forward_groups ? most : forward_groups;
    size_t evaluations = r->setup.model.kind->forward.count, count = 0;
    struct round passes[RENDER_MAX_FORWARD + 3];
    passes[count++] = (struct round){r->sample_view_rays, (rays + subgroups - 1) / subgroups};
    for (size_t i = 0; i < evaluations; i++) {
        bool last = i + 1 == evaluations;
        passes[count++] = (struct round){last && density ? density : r->forward[i], sharing};
    }
    passes[count++] = (struct round){r->sample_normals, sharing};
    bool alone = r->setup.specialization.values[SPEC_CPU_SHAPED]; /* an invocation for each ray */
    passes[count++] = (struct round){composite, alone ? groups : passes[0].groups};
    const struct Push push = {.a = ROUND_SAMPLES, .b = rays, .c = round * ROUND_SAMPLES};
    gpu_record_barrier(recording);
    gpu_record_fill(recording, &r->buffers.at[BIND_STATE], offsetof(struct State, sample_count), 4,
                    0);
    for (size_t i = 0; i < count; i++) {
        if (!passes[i].program)
            continue;
        if (i == 0)
            gpu_record_barrier(recording); /* of what was filled */
        else
            gpu_record_program_barrier(recording);
        gpu_record_dispatch(recording, passes[i].program, r->bindings, &push, sizeof push,
                            passes[i].groups);
    }
}

/* Until all rays have ended. */
static uint32_t count_rounds(const struct vkn_renderer *r)
{
    uint32_t steps = rays_most_steps(&r->setup.config, &r->setup.constants);
    return (steps + ROUND_SAMPLES - 1) / ROUND_SAMPLES;
}

void render_record_rounds(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                          const struct gpu_program *density, const struct gpu_program *composite)
{
    uint32_t rounds = count_rounds(r);
    /* What a step's field leaves out depends on how far it is trained. */
    if (r->step)
        gpu_record_copy(recording, &r->step->buffers.at[BIND_STATE], 0, &r->buffers.at[BIND_STATE],
                        0, sizeof(struct State));
    if (r->finish_normals)
        gpu_record_fill(recording, &r->normals.at[BIND_NORMALS],
                        16ull * r->setup.constants.sample_capacity, UINT64_MAX, 0);
    for (uint32_t round = 0; round < rounds; round++) {
        if (round > 0 && r->part_rounds > 0 && round % r->part_rounds == 0)
            gpu_record_cut(recording);
        record_round(r, recording, rays, round, density, composite);
    }
    gpu_record_barrier(recording);
}

/* As many rounds in 50 ms as fit when each takes four times the mean, as the first do: rays end. */
static void choose_part(struct vkn_renderer *r, double seconds)
{
    uint32_t rounds = count_rounds(r);
    r->part_rounds = r->part_rounds ? 1 + (uint32_t)(rounds * fmin(0.0125 / seconds, 1)) : 0;
}

/* Rays [first, first + rays) of the view, counting sub-pixel rays; `pixels` of them to finish. */
static void record_batch(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t first,
                         uint32_t rays, uint32_t log2_edge)
{
    uint32_t groups = (rays + PASS_LOCAL_SIZE - 1) / PASS_LOCAL_SIZE;
    struct Push view = {.b = first, .c = rays, .d = log2_edge};
    gpu_record_dispatch(recording, r->generate_view_rays, r->bindings, &view, sizeof view, groups);
    render_record_rounds(r, recording, rays, NULL,
                         r->finish_normals ? r->composite_normals : r->composite_view);
    uint32_t per_pixel = 1u << (2 * log2_edge);
    struct Push finish = {.a = rays / per_pixel, .b = per_pixel};
    gpu_record_dispatch(recording, r->finish_normals ? r->finish_normals : r->finish_pixels,
                        r->bindings, &finish, sizeof finish, groups);
}

static void take_pixels(const struct vkn_renderer *r, struct vkn_picture *picture, uint64_t first,
                        uint32_t count)
{
    const struct Output *output = r->buffers.at[BIND_OUTPUT].mapped;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&picture->color[3 * (first + i)], output[i].color, sizeof output[i].color);
        picture->opacity[first + i] = output[i].opacity;
        picture->depth[first + i] = output[i].depth / r->setup.config.scene.scale;
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
        double began = base_seconds();
        status = gpu_run_once(recording);
        choose_part(r, base_seconds() - began);
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
    uint32_t batch = r->setup.constants.ray_capacity >> (2 * log2_edge);
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
        renderer->setup.constants.render_background[c] = value;
    BASE_TRY(render_upload_camera(renderer, camera));
    BASE_TRY(render_upload_constants(renderer));
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
