#include "pipeline/step.h"

#include <stdlib.h>
#include <string.h>

#include "field/tuning.h"
#include "optim/optim.h"
#include "rays/rays.h"
#include "train/stream.h"
#include "volume/volume.h"

/* When a pass belongs to the recording. */
enum pass_use { ALWAYS, DETERMINISTIC, NOT_DETERMINISTIC };
enum pass_place { PERIOD_BEGIN, EVERY_STEP, PERIOD_END };

/* The training step, in order. `dispatch` is the slot of State.dispatches that holds the group
 * counts, so that begin_step on the device decides what runs; a pass is a program of the same name,
 * or of its variant for the run's path. */
static const struct pass {
    const char *program;
    enum pass_place place;
    enum pass_use use;
    int dispatch; /* DISPATCH_*; negative: one invocation always */
    bool average; /* reads the moving average instead of the masters */
    enum field_variant variant;
} passes[] = {
    {"begin_step", PERIOD_BEGIN, ALWAYS, -1, false, FIELD_SAME},
    {"update_occupancy", PERIOD_BEGIN, ALWAYS, DISPATCH_OCCUPANCY, true, FIELD_VALUES},
    {"threshold_occupancy", PERIOD_BEGIN, ALWAYS, DISPATCH_THRESHOLD, false, FIELD_SAME},
    {"pack_occupancy", PERIOD_BEGIN, ALWAYS, DISPATCH_PACK, false, FIELD_SAME},
    {"begin_step", EVERY_STEP, ALWAYS, -1, false, FIELD_SAME},
    {"generate_rays", EVERY_STEP, ALWAYS, DISPATCH_RAYS, false, FIELD_SAME},
    {"march_rays", EVERY_STEP, NOT_DETERMINISTIC, DISPATCH_MARCH, false, FIELD_SAME},
    {"march_rays_count", EVERY_STEP, DETERMINISTIC, DISPATCH_MARCH, false, FIELD_SAME},
    {"scan_rays", EVERY_STEP, DETERMINISTIC, DISPATCH_SCAN, false, FIELD_SAME},
    {"march_rays_write", EVERY_STEP, DETERMINISTIC, DISPATCH_MARCH, false, FIELD_SAME},
    {"encode_samples", EVERY_STEP, ALWAYS, DISPATCH_FORWARD, false, FIELD_COPIES},
    {"field_forward", EVERY_STEP, ALWAYS, DISPATCH_FORWARD, false, FIELD_FORWARD},
    {"composite", EVERY_STEP, ALWAYS, DISPATCH_RAYS, false, FIELD_SAME},
    {"field_backward", EVERY_STEP, ALWAYS, DISPATCH_BACKWARD, false, FIELD_BACKWARD},
    {"scatter_gradients", EVERY_STEP, ALWAYS, DISPATCH_FORWARD, false, FIELD_SCATTER},
    {"reduce_gradients", EVERY_STEP, ALWAYS, DISPATCH_SUMMED, false, FIELD_REDUCE},
    {"check_gradients", EVERY_STEP, ALWAYS, DISPATCH_PARAMS, false, FIELD_SAME},
    {"update_loss_scale", EVERY_STEP, ALWAYS, DISPATCH_ONE, false, FIELD_SAME},
    {"update_weights", EVERY_STEP, ALWAYS, DISPATCH_ENTRIES, false, FIELD_COPIES},
    {"update_average", PERIOD_END, ALWAYS, DISPATCH_AVERAGE, false, FIELD_COPIES},
};
_Static_assert(BASE_COUNT(passes) <= STEP_MAX_PASSES, "room for every pass");

static bool in_use(const struct step *step, const struct pass *pass)
{
    bool deterministic = step->specialization.values[SPEC_DETERMINISTIC - 2] != 0;
    return pass->use == ALWAYS || (pass->use == DETERMINISTIC) == deterministic;
}

/* The path's part of the constants. */
static void configure_path(const struct field_path *path, struct Config *constants,
                           struct gpu_constants *specialization)
{
    field_path_configure(path, specialization);
    constants->forward_groups = path->forward_groups;
    constants->backward_groups = path->backward_groups;
}

vkn_status step_configure(const struct vkn_config *config, const struct gpu_capabilities *device,
                          struct field_model *model, struct field_path *path,
                          struct Config *constants, struct gpu_constants *specialization)
{
    struct optim_group groups[MAX_GROUPS];
    *constants = (struct Config){0};
    *specialization = (struct gpu_constants){.count = SPEC_COUNT - 2};
    BASE_TRY(field_model_create(config, model));
    BASE_TRY(field_path_create(config, model, device, path));
    field_configure(config, model, constants, specialization);
    configure_path(path, constants, specialization);
    rays_configure(config, constants, specialization);
    volume_configure(config, constants, specialization);
    optim_configure(config, constants);
    optim_configure_groups(config, groups, field_groups(model, groups), constants, specialization);
    constants->seed = (uint32_t)(config->seed ^ (config->seed >> 32));
    specialization->values[SPEC_DETERMINISTIC - 2] = config->deterministic;
    return VKN_OK;
}

vkn_status step_configure_tuned(const struct vkn_config *config, const struct gpu_device *device,
                                struct field_model *model, struct field_path *path,
                                struct Config *constants, struct gpu_constants *specialization)
{
    BASE_TRY(step_configure(config, gpu_device_capabilities(device), model, path, constants,
                            specialization));
    if (field_tune(device, config, model, path))
        configure_path(path, constants, specialization);
    return VKN_OK;
}

struct Camera step_camera(const struct scene_camera *camera)
{
    struct Camera result = {
        .width = camera->width,
        .height = camera->height,
        .first_pixel = (uint32_t)camera->first_pixel,
        .focal_x = camera->focal_x,
        .focal_y = camera->focal_y,
        .center_x = camera->center_x,
        .center_y = camera->center_y,
        .lens = camera->lens == SCENE_FISHEYE ? LENS_FISHEYE : LENS_PERSPECTIVE,
        .k1 = camera->k1,
        .k2 = camera->k2,
        .p1 = camera->p1,
        .p2 = camera->p2,
        .k3 = camera->k3,
        .k4 = camera->k4,
        .limit = (float)scene_camera_limit(camera),
        .time = camera->time,
    };
    memcpy(result.pose, camera->pose, sizeof result.pose);
    return result;
}

_Static_assert(PIXEL_IGNORED == SCENE_IGNORED, "both rooms mean the same");

#define STEP_BUFFERS 28u

/* Those of images as the plan has them. */
static void list_buffers(struct step *step, const struct vkn_config *config,
                         struct gpu_buffer_request requests[STEP_BUFFERS])
{
    struct step_buffers *b = &step->buffers;
    const struct Config *c = &step->constants;
    uint64_t params = 4ull * c->param_count;
    uint64_t rays = c->ray_capacity, samples = c->sample_capacity;
    uint64_t sums = step->path.sums == VKN_SUMS_FIXED  ? 2 * params
                    : step->path.sums == VKN_SUMS_HALF ? params / 2
                                                       : 0;
    uint64_t halves = step->path.half ? params / 2 : 0;
    uint64_t features = samples * step->model.levels * step->model.features;
    const struct images_plan *images = &step->images;
    uint64_t cameras = images->views + (images->exchanged > 0 ? images->resident : 0);
    const struct gpu_buffer_request all[] = {
        {&b->config, "config", sizeof(struct Config), GPU_DEVICE},
        {&b->state, "state", sizeof(struct State), GPU_DEVICE},
        {&b->control, "control", sizeof(struct Control), GPU_HOST},
        {&b->stats, "stats", STATS_RING * sizeof(struct Stats), GPU_HOST},
        {&b->cameras, "cameras", cameras * sizeof(struct Camera), GPU_DEVICE},
        {&b->pixels, "training images", 4 * images->pixels, GPU_DEVICE},
        {&b->rays, "rays", rays * sizeof(struct Ray), GPU_DEVICE},
        {&b->results, "ray results", rays * sizeof(struct RayResult), GPU_DEVICE},
        {&b->samples, "samples", samples * sizeof(struct Sample), GPU_DEVICE},
        {&b->field, "field values", samples * 16, GPU_DEVICE},
        {&b->live, "live samples", samples * 4, GPU_DEVICE},
        {&b->params, "parameters", params, GPU_DEVICE},
        {&b->gradients, "gradients", params, GPU_DEVICE},
        {&b->fixed, "gradient sums", sums, GPU_DEVICE},
        {&b->moment1, "first moments", params, GPU_DEVICE},
        {&b->moment2, "second moments", params, GPU_DEVICE},
        {&b->counts, "step counts", 4ull * c->entry_count, GPU_DEVICE},
        {&b->average, "average parameters", params, GPU_DEVICE},
        {&b->partials, "partial gradients", 4ull * c->backward_groups * c->summed_params,
         GPU_DEVICE},
        {&b->scratch, "backward scratch", c->backward_groups * step->path.scratch_bytes,
         GPU_DEVICE},
        {&b->halves, "f16 parameters", halves, GPU_DEVICE},
        {&b->half_average, "f16 average parameters", halves, GPU_DEVICE},
        {&b->features, "features", features * (step->path.half ? 2 : 4), GPU_DEVICE},
        {&b->reduce, "partial sums", 4ull * REDUCE_SIZE, GPU_DEVICE},
        {&b->occupancy, "occupancy", 4 * rays_occupancy_cells(config), GPU_DEVICE},
        {&b->bits, "occupancy bits", 4 * rays_occupancy_words(config), GPU_DEVICE},
        {&b->exchanges[0], "exchange of images", images->exchange, GPU_HOST},
        {&b->exchanges[1], "exchange of images", images->exchange, GPU_HOST},
    };
    _Static_assert(BASE_COUNT(all) == STEP_BUFFERS, "every buffer");
    memcpy(requests, all, sizeof all);
}

static uint64_t total_bytes(const struct gpu_buffer_request requests[STEP_BUFFERS])
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < STEP_BUFFERS; i++)
        bytes += requests[i].size;
    return bytes;
}

/* Images get three quarters of what the other buffers leave: some of it is for evaluation, and for
 * others. A run that shall repeat does not ask what others have left. */
static vkn_status plan_images(struct step *step, const struct gpu_device *device,
                              const struct scene *scene, const struct vkn_config *config)
{
    struct gpu_buffer_request requests[STEP_BUFFERS];
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    uint64_t memory =
        config->deterministic ? capabilities->device_memory : gpu_memory_available(device);
    step->images = (struct images_plan){0};
    list_buffers(step, config, requests);
    uint64_t others = total_bytes(requests);
    uint64_t most = memory > others ? (memory - others) / 4 * 3 : 0;
    return images_make_plan(scene, config, most, capabilities->max_buffer_range, &step->images);
}

static vkn_status allocate(struct step *step, const struct vkn_config *config)
{
    struct gpu_buffer_request requests[STEP_BUFFERS];
    list_buffers(step, config, requests);
    return gpu_arena_create(step->device, requests, STEP_BUFFERS, &step->arena);
}

vkn_status step_memory(const struct gpu_device *device, const struct scene *scene,
                       const struct vkn_config *config, uint64_t *bytes)
{
    struct step step = {0};
    struct gpu_buffer_request requests[STEP_BUFFERS];
    BASE_TRY(step_configure_tuned(config, device, &step.model, &step.path, &step.constants,
                                  &step.specialization));
    BASE_TRY(plan_images(&step, device, scene, config));
    list_buffers(&step, config, requests);
    *bytes = total_bytes(requests);
    return VKN_OK;
}

static vkn_status bind(struct step *step)
{
    struct step_buffers *b = &step->buffers;
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {
        [BIND_CONFIG] = &b->config,
        [BIND_STATE] = &b->state,
        [BIND_CONTROL] = &b->control,
        [BIND_STATS] = &b->stats,
        [BIND_CAMERAS] = &b->cameras,
        [BIND_PIXELS] = &b->pixels,
        [BIND_RAYS] = &b->rays,
        [BIND_RESULTS] = &b->results,
        [BIND_SAMPLES] = &b->samples,
        [BIND_FIELD] = &b->field,
        [BIND_LIVE] = &b->live,
        [BIND_PARAMS] = &b->params,
        [BIND_GRADIENTS] = &b->gradients,
        [BIND_FIXED] = &b->fixed,
        [BIND_MOMENT1] = &b->moment1,
        [BIND_MOMENT2] = &b->moment2,
        [BIND_COUNTS] = &b->counts,
        [BIND_AVERAGE] = &b->average,
        [BIND_PARTIALS] = &b->partials,
        [BIND_REDUCE] = &b->reduce,
        [BIND_OCCUPANCY] = &b->occupancy,
        [BIND_BITS] = &b->bits,
        [BIND_SCRATCH] = &b->scratch,
        [BIND_HALVES] = &b->halves,
        [BIND_HALF_AVERAGE] = &b->half_average,
        [BIND_FEATURES] = &b->features,
    };
    BASE_TRY(gpu_bindings_create(step->device, buffers, &step->training));
    buffers[BIND_PARAMS] = &b->average;
    buffers[BIND_HALVES] = &b->half_average;
    return gpu_bindings_create(step->device, buffers, &step->inference);
}

static vkn_status create_programs(struct step *step)
{
    struct field_pass_request requests[BASE_COUNT(passes) + 2];
    size_t count = 0;
    for (size_t i = 0; i < BASE_COUNT(passes); i++)
        if (in_use(step, &passes[i]))
            requests[count++] = (struct field_pass_request){
                passes[i].program, &step->programs[i], passes[i].variant};
    if (step->path.half)
        requests[count++] = (struct field_pass_request){"round_parameters",
                                                        &step->round_parameters, FIELD_SAME};
    requests[count++] = (struct field_pass_request){"mark_unseen_cells", &step->mark_unseen_cells,
                                                    FIELD_SAME};
    return field_path_create_programs(step->device, &step->path, requests, count, step->local_size,
                                      &step->specialization);
}

/* Sums that are not floats yet are turned into floats for all parameters, not for the MLPs' alone.
 */
static int dispatch_of(const struct step *step, const struct pass *pass)
{
    bool sums = step->path.sums == VKN_SUMS_FIXED || step->path.sums == VKN_SUMS_HALF;
    return pass->variant == FIELD_REDUCE && sums ? DISPATCH_PARAMS : pass->dispatch;
}

/* The one pass that also begins a period has another name there. */
static const char *label_of(const struct pass *pass, uint32_t slot)
{
    return slot == PERIOD_STEPS && pass->dispatch < 0 ? "begin_period" : pass->program;
}

static void record_pass(struct step *step, struct gpu_recording *recording, size_t index,
                        uint32_t slot)
{
    const struct pass *pass = &passes[index];
    struct Push push = {.a = slot, .b = step->local_size};
    const struct gpu_bindings *bindings = pass->average ? step->inference : step->training;
    if (step->profile || slot >= PERIOD_STEPS - 1)
        gpu_record_timestamp(recording, label_of(pass, slot));
    /* An outer cascade is packed from the bits of the one inside it. */
    uint32_t cascades = step->specialization.values[SPEC_CASCADES - 2];
    uint32_t rounds = pass->dispatch == DISPATCH_PACK ? cascades : 1;
    for (push.c = 0; push.c < rounds; push.c++) {
        if (push.c > 0)
            gpu_record_barrier(recording);
        if (pass->dispatch < 0)
            gpu_record_dispatch(recording, step->programs[index], bindings, &push, sizeof push, 1);
        else
            gpu_record_dispatch_indirect(recording, step->programs[index], bindings, &push,
                                         sizeof push, &step->buffers.state,
                                         offsetof(struct State, dispatches) +
                                             (size_t)dispatch_of(step, pass) *
                                                 sizeof(struct Dispatch));
    }
    if (step->profile)
        gpu_record_timestamp(recording, NULL);
    gpu_record_barrier(recording);
}

void step_record_part(struct step *step, struct gpu_recording *recording, uint32_t slot,
                      const char *from, const char *until)
{
    bool on = from == NULL;
    for (size_t i = 0; i < BASE_COUNT(passes); i++) {
        if (passes[i].place != EVERY_STEP)
            continue;
        if (until && strcmp(passes[i].program, until) == 0)
            return;
        on = on || strcmp(passes[i].program, from) == 0;
        if (on && in_use(step, &passes[i]))
            record_pass(step, recording, i, slot);
    }
}

static void record_once(struct step *step, struct gpu_recording *recording, enum pass_place place)
{
    for (size_t i = 0; i < BASE_COUNT(passes); i++)
        if (passes[i].place == place && in_use(step, &passes[i]))
            record_pass(step, recording, i, PERIOD_STEPS);
    gpu_record_timestamp(recording, NULL);
}

/* One occupancy update and PERIOD_STEPS steps. */
static vkn_status record_period(struct step *step, struct gpu_recording **recording)
{
    uint32_t timestamps = step->profile ? 2 * STEP_MAX_TIMINGS + 2 : STEP_MAX_PASSES + 2;
    BASE_TRY(gpu_record_begin(step->device, "training period", timestamps, recording));
    record_once(step, *recording, PERIOD_BEGIN);
    for (uint32_t slot = 0; slot < PERIOD_STEPS; slot++)
        step_record_part(step, *recording, slot, NULL, NULL);
    record_once(step, *recording, PERIOD_END);
    return gpu_record_end(*recording);
}

vkn_status step_upload_constants(struct step *step)
{
    return gpu_upload(step->device, &step->buffers.config, 0, &step->constants,
                      sizeof step->constants);
}

static vkn_status upload_initial(struct step *step, const struct vkn_config *config)
{
    struct State state = {.loss_scale = config->loss_scale.initial};
    /* Before the occupancy grid has learnt anything every cell counts: most rays take all the
     * steps. */
    uint32_t rays = step->constants.sample_capacity / rays_most_steps(config, &step->constants);
    state.ray_count = rays < step->constants.ray_capacity ? rays : step->constants.ray_capacity;
    state.ray_count = state.ray_count < 64 ? 64 : state.ray_count / 64 * 64;
    BASE_TRY(gpu_upload(step->device, &step->buffers.state, 0, &state, sizeof state));

    float *params = base_alloc(step->model.param_count, sizeof *params);
    if (!params)
        return VKN_ERROR;
    field_initialize(config, &step->model, params);
    uint64_t size = 4ull * step->model.param_count;
    vkn_status status = gpu_upload(step->device, &step->buffers.params, 0, params, size);
    if (status == VKN_OK)
        status = gpu_upload(step->device, &step->buffers.average, 0, params, size);
    free(params);
    return status;
}

/* Runs one program once, with `c` as its push constant of that name. */
static vkn_status run_once(struct step *step, const struct gpu_program *program,
                           const struct gpu_bindings *bindings, uint32_t c, uint32_t groups)
{
    struct gpu_recording *recording = NULL;
    vkn_status status = gpu_record_begin(step->device, "once", 0, &recording);
    if (status == VKN_OK) {
        struct Push push = {.b = step->local_size, .c = c};
        gpu_record_dispatch(recording, program, bindings, &push, sizeof push, groups);
        status = gpu_run_once(recording);
    }
    gpu_recording_destroy(&recording);
    return status;
}

vkn_status step_pack_occupancy(struct step *step)
{
    uint32_t cascades = step->specialization.values[SPEC_CASCADES - 2];
    uint64_t cells = step->buffers.occupancy.size / 4 / cascades;
    uint64_t blocks = cells / (OCCUPANCY_BLOCK * OCCUPANCY_BLOCK * OCCUPANCY_BLOCK);
    uint32_t groups = (uint32_t)(blocks / step->local_size + 1);
    for (size_t i = 0; i < BASE_COUNT(passes); i++)
        for (uint32_t c = 0; passes[i].dispatch == DISPATCH_PACK && c < cascades; c++)
            BASE_TRY(run_once(step, step->programs[i], step->training, c, groups));
    return VKN_OK;
}

vkn_status step_round_parameters(struct step *step)
{
    if (!step->path.half)
        return VKN_OK;
    BASE_TRY(run_once(step, step->round_parameters, step->training, 0, 1024));
    return run_once(step, step->round_parameters, step->inference, 0, 1024);
}

static vkn_status prepare(struct step *step, const struct scene *scene,
                          const struct vkn_config *config)
{
    BASE_TRY(allocate(step, config));
    BASE_TRY(bind(step));
    BASE_TRY(create_programs(step));
    BASE_TRY(stream_upload_all(step, scene));
    BASE_TRY(upload_initial(step, config));
    BASE_TRY(step_upload_constants(step));
    BASE_TRY(step_round_parameters(step));
    BASE_TRY(run_once(step, step->mark_unseen_cells, step->training, 0, 1024));
    for (uint32_t i = 0; i < STEP_RECORDINGS; i++)
        BASE_TRY(record_period(step, &step->period[i]));
    return VKN_OK;
}

vkn_status step_create(struct gpu_device *device, const struct scene *scene,
                       const struct vkn_config *config, struct step *step)
{
    *step = (struct step){.device = device, .local_size = 64};
    BASE_TRY(step_configure_tuned(config, device, &step->model, &step->path, &step->constants,
                                  &step->specialization));
    BASE_TRY(plan_images(step, device, scene, config));
    step->constants.camera_count = step->images.views;
    step->constants.first_view = step->images.exchanged > 0 ? step->images.views : 0;
    step->constants.view_count = step->images.resident;
    vkn_status status = prepare(step, scene, config);
    if (status != VKN_OK)
        step_destroy(step);
    return status;
}

void step_destroy(struct step *step)
{
    for (uint32_t i = 0; i < STEP_RECORDINGS; i++)
        gpu_recording_destroy(&step->period[i]);
    for (size_t i = 0; i < STEP_MAX_PASSES; i++)
        gpu_program_destroy(&step->programs[i]);
    gpu_program_destroy(&step->mark_unseen_cells);
    gpu_program_destroy(&step->round_parameters);
    gpu_bindings_destroy(&step->training);
    gpu_bindings_destroy(&step->inference);
    gpu_arena_destroy(&step->arena);
}

vkn_status step_submit(struct step *step, uint32_t recording)
{
    return gpu_submit(step->period[recording]);
}

vkn_status step_wait(struct step *step, uint32_t recording)
{
    return gpu_wait(step->period[recording]);
}

bool step_wait_a_while(const struct step *step, uint32_t recording, double seconds)
{
    return gpu_wait_a_while(step->period[recording], seconds);
}

vkn_status step_profile(struct step *step)
{
    step->profile = true;
    for (uint32_t i = 0; i < STEP_RECORDINGS; i++) {
        gpu_recording_destroy(&step->period[i]);
        BASE_TRY(record_period(step, &step->period[i]));
    }
    return VKN_OK;
}

static const struct pass *pass_of_label(const char *label)
{
    for (size_t i = 0; i < BASE_COUNT(passes); i++)
        if (strcmp(passes[i].program, label) == 0 && passes[i].place != PERIOD_BEGIN)
            return &passes[i];
    return NULL;
}

uint32_t step_timings(struct step *step, uint32_t recording,
                      struct step_timing timings[STEP_MAX_TIMINGS])
{
    const char *labels[2 * STEP_MAX_TIMINGS + 2];
    double milliseconds[2 * STEP_MAX_TIMINGS + 2],
        now = gpu_recording_start(step->period[recording]);
    uint32_t intervals =
        gpu_recording_times(step->period[recording], labels, milliseconds, BASE_COUNT(labels));
    uint32_t count = 0, steps = step->profile ? 0 : PERIOD_STEPS - 1; /* slots begun */
    for (uint32_t i = 0; i < intervals; i++) {
        double end = now + 1e-3 * milliseconds[i];
        const struct pass *pass = labels[i] ? pass_of_label(labels[i]) : NULL;
        bool every_step = pass && pass->place == EVERY_STEP;
        if (every_step && pass[-1].place != EVERY_STEP)
            steps++; /* the first of a step's passes */
        if (labels[i] && count < STEP_MAX_TIMINGS)
            timings[count++] = (struct step_timing){
                .name = labels[i],
                .slot = every_step ? steps - 1 : PERIOD_STEPS,
                .begin = now,
                .end = end,
            };
        now = end;
    }
    return count;
}
