/* Implements vkn_adam: runs the optimiser's passes on parameters and gradients of the caller. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "optim/optim.h"
#include "stepper/internal.h"

#define MOST_ENTRY   32u
#define MOST_PARAMS  (1u << 30)
#define PADDING      16u /* counts are padded to multiples of 16: passes read several vec4 at once */
#define FIRST_GROUPS 512u /* workgroups of the passes on GPUs */

#define ADAM_BUFFERS                                                                              \
    (BUFFERS(CONFIG) | BUFFERS(CONTROL) | BUFFERS(DISPATCHES) | BUFFERS(STATS) | BUFFERS(STATE) | \
     BUFFERS(REDUCE) | BUFFERS(MOMENT1) | BUFFERS(MOMENT2) | BUFFERS(STEP_COUNTS))

/* Pipelines: begin_step, then the two passes of optim_update. */
enum { BEGIN, CHECK, UPDATE, PIPELINES };

struct vkn_adam {
    vkn_context *context;
    struct gpu_device *device;
    struct vkn_adam_params params;
    struct Config constants;
    struct gpu_constants specialization;
    struct buffers buffers;
    struct gpu_arena *arena;
    struct gpu_buffer values, gradients;
    struct vkn_array public_values, public_gradients;
    struct gpu_bindings *bindings;
    struct gpu_pipeline *pipelines[PIPELINES];
    struct gpu_recording *recording;
    uint64_t taken, skipped; /* number of steps, skipped ones included; number of skipped steps */
};

/* Fails unless `good`; `range` describes the accepted values in the message. */
static vkn_status check_range(const char *member, double value, bool good, const char *range)
{
    return good ? VKN_OK
                : base_fail(VKN_BAD_INPUT,
                            "vkn_adam_create: params: %s is out of range: %g, must be %s", member,
                            value, range);
}

/* Fails unless the value is positive and finite. */
static vkn_status check_positive(const char *member, float value)
{
    return check_range(member, (double)value, value > 0.0F && value < 1e30F,
                       "above 0 and below 1e30");
}

static vkn_status check_share(const char *member, float value)
{
    return check_range(member, (double)value, value > 0.0F && value < 1.0F, "above 0 and below 1");
}

static vkn_status check_amount(const char *member, float value)
{
    return check_range(member, (double)value, value >= 0.0F && value < 1e30F,
                       "at least 0 and below 1e30");
}

static float float_or(float value, float standard)
{
    return value == 0.0F ? standard : value;
}

static vkn_status resolve(struct vkn_adam_params *params)
{
    params->entry = params->entry ? params->entry : 1;
    params->learning_rate = float_or(params->learning_rate, 1e-2F);
    params->beta1 = float_or(params->beta1, 0.9F);
    params->beta2 = float_or(params->beta2, 0.99F);
    params->epsilon = float_or(params->epsilon, 1e-15F);
    char range[64];
    snprintf(range, sizeof range, "1 to %u", MOST_ENTRY);
    BASE_TRY(check_range("entry", params->entry, params->entry <= MOST_ENTRY, range));
    snprintf(range, sizeof range, "a multiple of entry, %u, from %u to %u", params->entry,
             params->entry, MOST_PARAMS);
    BASE_TRY(check_range("count", params->count,
                         params->count > 0 && params->count <= MOST_PARAMS &&
                             params->count % params->entry == 0,
                         range));
    BASE_TRY(check_positive("learning_rate", params->learning_rate));
    BASE_TRY(check_share("beta1", params->beta1));
    BASE_TRY(check_share("beta2", params->beta2));
    BASE_TRY(check_positive("epsilon", params->epsilon));
    BASE_TRY(check_amount("weight_decay", params->weight_decay));
    return check_amount("clip_norm", params->clip_norm);
}

/* Configures the passes for one parameter group with a constant learning rate. */
static struct buffer_counts configure(struct vkn_adam *a)
{
    const struct vkn_adam_params *params = &a->params;
    const struct gpu_capabilities *device = gpu_device_capabilities(a->device);
    const struct vkn_config config = {
        .optimizer = {.kind = VKN_OPTIMIZER_ADAM,
                      .learning_rate = params->learning_rate,
                      .beta1 = params->beta1,
                      .beta2 = params->beta2,
                      .epsilon = params->epsilon,
                      .clip_norm = params->clip_norm,
                      .weight_decay = params->weight_decay,
                      .schedule = VKN_RATE_STEP,
                      .decay_factor = 1,
                      .decay_start = UINT32_MAX,
                      .decay_interval = 1},
        .loss_scale = {.kind = VKN_LOSS_SCALE_STATIC},
    };
    const struct parameter_group group = {.count = params->count,
                                          .entry = params->entry,
                                          .sparse = params->sparse,
                                          .rate = 1,
                                          .decay = 1};
    struct Config *constants = &a->constants;
    optim_configure(&config, constants);
    constants->norm_interval = 1; /* tells whether the caller's gradients are finite */
    optim_configure_groups(&config, &group, 1, constants, &a->specialization);
    constants->param_count = (params->count + PADDING - 1) / PADDING * PADDING;
    constants->ranks = 1;
    constants->group_limit = device->max_groups;
    constants->sample_capacity = constants->param_count; /* sets the number of workgroups */
    constants->forward_groups =
        FIRST_GROUPS < device->max_groups ? FIRST_GROUPS : device->max_groups;
    a->specialization.count = SPEC_COUNT;
    a->specialization.values[SPEC_CPU_KERNELS] = gpu_cpu_kernels(device);
    struct buffer_counts counts = {.params = constants->param_count,
                                   .entries = constants->entry_count};
    optim_size_buffers(&config, &counts);
    return counts;
}

static vkn_status allocate(struct vkn_adam *a, const struct buffer_counts *counts)
{
    enum gpu_memory_kind kind = a->params.host ? GPU_HOST : GPU_DEVICE;
    const struct gpu_buffer_request requests[] = {
        {&a->values, "adam parameters", 4ull * counts->params, kind},
        {&a->gradients, "adam gradients", 4ull * counts->params, kind},
    };
    BASE_TRY(buffers_create(a->device, BUFFERS_OF_STEP, ADAM_BUFFERS, counts, &a->buffers));
    BASE_TRY(gpu_arena_create(a->device, requests, BASE_COUNT(requests), &a->arena));
    a->public_values = listing_array(&a->values, a->params.host);
    a->public_gradients = listing_array(&a->gradients, a->params.host);
    a->public_values.size = a->public_gradients.size = 4ull * a->params.count;
    const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
    buffers_bind(&a->buffers, ADAM_BUFFERS, bound);
    bound[BIND_PARAMS] = &a->values;
    bound[BIND_GRADIENTS] = &a->gradients;
    return gpu_bindings_create(a->device, bound, &a->bindings);
}

static vkn_status create_pipelines(struct vkn_adam *a)
{
    const char *const names[PIPELINES] = {"begin_step", optim_update.passes[0].name,
                                          optim_update.passes[1].name};
    for (size_t i = 0; i < PIPELINES; i++) {
        const struct gpu_pipeline_options options = {
            .name = names[i], .local_size = PASS_LOCAL_SIZE, .constants = &a->specialization};
        BASE_TRY(gpu_pipeline_create(a->device, &options, &a->pipelines[i]));
    }
    return VKN_OK;
}

static vkn_status upload(struct vkn_adam *a)
{
    const struct State state = {.loss_scale = 1};
    struct Control *control = a->buffers.at[BIND_CONTROL].mapped;
    control->step_limit = UINT32_MAX;
    BASE_TRY(gpu_upload(a->device, &a->buffers.at[BIND_STATE], 0, &state, sizeof state));
    return gpu_upload(a->device, &a->buffers.at[BIND_CONFIG], 0, &a->constants,
                      sizeof a->constants);
}

static vkn_status record(struct vkn_adam *a)
{
    const struct Push push = {.a = ANY_STEP, .b = PASS_LOCAL_SIZE};
    BASE_TRY(gpu_record_begin(a->device, "adam", 0, &a->recording));
    gpu_record_barrier(a->recording);
    gpu_record_dispatch(a->recording, a->pipelines[BEGIN], a->bindings, &push, sizeof push, 1);
    for (size_t i = CHECK; i < PIPELINES; i++) {
        const struct pass *pass = &optim_update.passes[i - CHECK];
        bool is_cpu = a->specialization.values[SPEC_CPU_KERNELS];
        uint32_t slot =
            (uint32_t)(is_cpu || !pass->gpu_dispatch ? pass->dispatch : pass->gpu_dispatch);
        gpu_record_barrier(a->recording);
        gpu_record_dispatch_indirect(a->recording, a->pipelines[i], a->bindings, &push, sizeof push,
                                     &a->buffers.at[BIND_DISPATCHES],
                                     slot * sizeof(struct Dispatch));
    }
    return gpu_record_end(a->recording);
}

static vkn_status prepare(struct vkn_adam *a)
{
    const struct buffer_counts counts = configure(a);
    BASE_TRY(allocate(a, &counts));
    BASE_TRY(create_pipelines(a));
    BASE_TRY(upload(a));
    return record(a);
}

vkn_status vkn_adam_create(vkn_context *context, const struct vkn_adam_params *params,
                           vkn_adam **adam)
{
    BASE_C_LOCALE;
    BASE_NEED(adam);
    *adam = NULL;
    BASE_NEED(context);
    BASE_NEED(params);
    BASE_USE(gpu_guard(context->device), NULL);
    struct vkn_adam_params resolved;
    BASE_TRY(BASE_READ("vkn_adam_create: params", vkn_adam_params, params, &resolved, clip_norm));
    BASE_TRY(resolve(&resolved));
    struct vkn_adam *a = base_alloc(1, sizeof *a);
    if (!a)
        return VKN_ERROR;
    a->context = context_hold(context);
    a->device = context->device;
    a->params = resolved;
    vkn_status status = prepare(a);
    if (status != VKN_OK)
        vkn_adam_destroy(&a);
    *adam = a;
    return status;
}

void vkn_adam_destroy(vkn_adam **adam)
{
    struct vkn_adam *a = adam ? *adam : NULL;
    if (!a)
        return;
    struct base_guard *guard = gpu_guard(a->device);
    bool foreign = base_guard_is_foreign(guard);
    if (!foreign && base_guard_refuses_destroy(guard, __func__, a))
        return;
    *adam = NULL;
    if (foreign) /* a forked process cannot release the parent's Vulkan objects */
        return;
    BASE_KEEP_ERROR;
    gpu_recording_destroy(&a->recording);
    for (size_t i = 0; i < PIPELINES; i++)
        gpu_pipeline_destroy(&a->pipelines[i]);
    gpu_bindings_destroy(&a->bindings);
    gpu_arena_destroy(&a->arena);
    buffers_destroy(&a->buffers);
    vkn_context_destroy(&a->context);
    free(a);
}

const struct vkn_array *vkn_adam_parameters(const vkn_adam *adam)
{
    return adam ? &adam->public_values : NULL;
}

const struct vkn_array *vkn_adam_gradients(const vkn_adam *adam)
{
    return adam ? &adam->public_gradients : NULL;
}

static vkn_status set_rate(struct vkn_adam *a, float learning_rate)
{
    float rate = learning_rate == 0.0F ? a->params.learning_rate : learning_rate;
    if (!(rate > 0.0F && rate < 1e30F))
        return base_fail(
            VKN_BAD_INPUT,
            "vkn_adam_step: learning_rate: %g is out of range (above 0 and below 1e30)",
            (double)rate);
    if (rate == a->constants.learning_rate)
        return VKN_OK;
    a->constants.learning_rate = rate;
    return gpu_upload(a->device, &a->buffers.at[BIND_CONFIG],
                      offsetof(struct Config, learning_rate), &rate, sizeof rate);
}

vkn_status vkn_adam_step(vkn_adam *adam, float learning_rate, struct vkn_adam_result *result)
{
    BASE_C_LOCALE;
    BASE_NEED(adam);
    struct vkn_adam *a = adam;
    BASE_USE(gpu_guard(a->device), a);
    BASE_TRY(set_rate(a, learning_rate));
    BASE_TRY(gpu_submit(a->recording));
    BASE_TRY(gpu_wait(a->recording));
    const struct Stats *ring = a->buffers.at[BIND_STATS].mapped,
                       *stats = &ring[++a->taken % STATS_RING];
    const struct vkn_adam_result filled = {
        .finite = stats->skipped_steps == a->skipped,
        .norm = stats->grad_norm,
        .steps = a->taken - stats->skipped_steps,
        .skipped = stats->skipped_steps,
    };
    a->skipped = stats->skipped_steps;
    return result ? BASE_FILL(vkn_adam_result, &filled, result, skipped) : VKN_OK;
}
