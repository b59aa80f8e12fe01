/* Creates the setup of a configuration: model, backend, and the constants of all modules. */
#include <math.h>
#include <string.h>

#include "optim/optim.h"
#include "step/internal.h"
#include "rays/rays.h"
#include "tuner/tuner.h"
#include "volume/volume.h"

_Static_assert(SPEC_COUNT <= GPU_MAX_CONSTANTS, "pipelines have all constants");

static uint32_t at_most(uint32_t limit, uint32_t count)
{
    return count < limit ? count : limit;
}

static void configure_backend(struct setup *setup)
{
    uint32_t limit = setup->constants.group_limit;
    bool both_sums = setup->backend.f16_sums && setup->backend.sums == VKN_SUMS_FIXED;
    field_backend_configure(&setup->backend, &setup->specialization);
    setup->specialization.values[SPEC_F16_SUM_OFFSET] = both_sums ? setup->model.param_count : 0;
    setup->constants.forward_groups = at_most(limit, setup->backend.forward_groups);
    setup->constants.backward_groups = at_most(limit, setup->backend.backward_groups);
    field_backend_place_panels(&setup->backend, &setup->model, &setup->constants);
}

/* Limits the rays of a step: passes with one invocation per ray write a partial sum per workgroup,
 * REDUCE_GROUPS at most. */
static void limit_rays(struct Config *constants)
{
    uint32_t groups = at_most(REDUCE_GROUPS, constants->group_limit);
    constants->ray_capacity = at_most(groups * PASS_LOCAL_SIZE, constants->ray_capacity);
}

/* Returns all / divisor, rounded up to a multiple of 64. */
static uint32_t padded_rows(uint64_t all, uint32_t divisor)
{
    return (uint32_t)((all + divisor - 1) / divisor + 63) / 64 * 64;
}

/* Sets the rows of a chunk: no more than samples, but enough for at most STEP_MAX_CHUNKS chunks,
 * because each chunk costs dispatches. */
static vkn_status choose_chunk_rows(struct setup *setup, const struct gpu_capabilities *device,
                                    uint64_t row_bytes)
{
    const struct Config *constants = &setup->constants;
    uint32_t least = padded_rows(constants->sample_capacity, STEP_MAX_CHUNKS);
    uint64_t most = padded_rows(constants->sample_capacity, 1);
    if (most > device->max_buffer_range / row_bytes / 64 * 64)
        most = device->max_buffer_range / row_bytes / 64 * 64;
    if (least > most)
        return base_fail(
            VKN_BAD_INPUT,
            "config: batch.chunk: a chunk needs at least %u samples of %u activations, "
            "and a buffer of \"%s\" holds at most %u",
            least, setup->model.columns, device->name, (uint32_t)most);
    uint32_t rows = setup->model.chunk_rows > least ? setup->model.chunk_rows : least;
    setup->model.chunk_rows = at_most((uint32_t)most, rows);
    return VKN_OK;
}

static vkn_status check_visibility(const struct setup *setup)
{
    if (volume_finds_visible(&setup->config) && volume_drops_rays(&setup->config))
        return base_fail(VKN_BAD_INPUT,
                         "config: batch.keep: %g, but march.visibility=on lists live samples "
                         "before the rays' losses are known",
                         (double)setup->config.batch.keep);
    if (!volume_finds_visible(&setup->config) || setup->model.kind->densities.count > 0)
        return VKN_OK;
    return base_fail(
        VKN_BAD_INPUT,
        "config: march.visibility: the model cannot compute densities without colours");
}

static vkn_status check_refinement(const struct setup *setup)
{
    if (!setup->model.refined || setup->model.kind->input_gradients.count > 0)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "config: scene.refine: model %s does not compute gradients with respect to "
                     "cameras; use another model",
                     config_model_names[setup->config.model]);
}

/* Kept activations may take 1 / KEPT_SHARE of the device's memory. */
#define KEPT_SHARE 4u

/* Decides whether activations are kept for the backward pass or computed again. */
static vkn_status choose_kept_rows(struct setup *setup, const struct gpu_capabilities *device,
                                   uint64_t row_bytes)
{
    enum vkn_checkpointing wanted = setup->config.mlp.activation_checkpointing;
    if (setup->model.fused > 0)
        return VKN_OK;
    if (volume_finds_visible(&setup->config)) {
        if (wanted == VKN_CHECKPOINTING_OFF)
            return base_fail(VKN_BAD_INPUT,
                             "config: mlp.activation_checkpointing: off needs the activations of "
                             "all samples, march.visibility computes only some");
        return VKN_OK;
    }
    uint32_t rows = padded_rows(setup->constants.sample_capacity, 1);
    uint64_t bytes = row_bytes * (setup->model.chunk_rows + rows / 2);
    bool fits = bytes <= device->max_buffer_range;
    bool keeps = wanted == VKN_CHECKPOINTING_OFF || (wanted == VKN_CHECKPOINTING_AUTO && fits &&
                                                     bytes <= device->device_memory / KEPT_SHARE);
    if (keeps && !fits)
        return base_fail(VKN_BAD_INPUT,
                         "config: mlp.activation_checkpointing: off keeps %.0f MiB of activations, "
                         "but a buffer of "
                         "\"%s\" has at most %.0f MiB; on keeps the activations of one chunk",
                         base_mib(bytes), device->name, base_mib(device->max_buffer_range));
    setup->model.kept_rows = keeps ? rows : 0;
    return VKN_OK;
}

static vkn_status choose_rows(struct setup *setup, const struct gpu_capabilities *device)
{
    if (setup->model.chunk_rows == 0)
        return VKN_OK;
    if (setup->model.columns > 0) {
        uint64_t row_bytes = setup_counts(setup).layer_bytes / setup->model.chunk_rows;
        BASE_TRY(choose_chunk_rows(setup, device, row_bytes));
        BASE_TRY(choose_kept_rows(setup, device, row_bytes));
    }
    setup->constants.chunk_rows = setup->model.chunk_rows;
    setup->constants.kept_rows = setup->model.kept_rows;
    uint32_t most = at_most(setup->constants.ray_capacity, setup->constants.sample_capacity);
    setup->constants.cells_per_chunk = at_most(most / 64 * 64, setup->model.chunk_rows);
    return VKN_OK;
}

static vkn_status check_passes(const struct setup *setup)
{
    struct step_pass passes[STEP_MAX_PASSES];
    size_t count = step_list_passes(setup, passes);
    if (count > STEP_MAX_PASSES)
        return base_fail(VKN_ERROR, "the step has %zu passes, more than %u", count,
                         STEP_MAX_PASSES);
    return VKN_OK;
}

/* Adam and Lion take steps of about the same length, however large the gradient. When gradient
 * noise dominates, the average of R ranks' steps is sqrt(R) times shorter than one step with all
 * their rays, so parameter averaging scales the learning rates by sqrt(R). */
static void scale_rates(struct Config *constants, float factor)
{
    for (size_t i = 0; i < MAX_PARAMETER_GROUPS; i++)
        constants->groups[i].rate *= factor;
}

static void split_gradients(struct setup *setup)
{
    uint32_t buckets = setup->overlaps ? setup->config.parallel.buckets : 1;
    setup->buckets = field_split_gradients(&setup->model, buckets, &setup->constants);
}

void setup_set_rank(struct setup *setup, uint32_t devices, uint32_t number)
{
    struct Config *constants = &setup->constants;
    uint32_t turns = setup_virtual_ranks(&setup->config);
    setup->averaged = devices > 1 && setup->config.parallel.mode == VKN_PARALLEL_AVERAGE;
    setup->rate = setup->averaged ? sqrtf((float)devices) : 1;
    scale_rates(constants, setup->rate);
    constants->ranks = setup->averaged ? 1 : turns * devices;
    if (constants->ranks > 1) /* whose states are equal, though only rank 0 knows its last step */
        constants->norm_interval = 1;
    constants->first_ray = turns * number * constants->ray_capacity;
    bool shares_cells = !setup->averaged && setup->config.parallel.cells == VKN_PART_SHARE;
    constants->cell_shares = shares_cells ? devices : 1;
    constants->cell_share = shares_cells ? number : 0;
    setup->overlaps = constants->ranks > 1 && setup->config.parallel.buckets > 1;
    split_gradients(setup);
}

static void configure_field(struct setup *setup)
{
    field_configure(&setup->config, &setup->model, &setup->constants, &setup->specialization);
    configure_backend(setup);
    optim_configure_groups(&setup->config, setup->model.groups, setup->model.group_count,
                           &setup->constants, &setup->specialization);
}

struct setup setup_of_coarse(const struct setup *setup)
{
    struct setup coarse = *setup;
    if (!setup->proposal_model.kind)
        return coarse;
    coarse.config = field_proposal_config(&setup->config);
    coarse.model = setup->proposal_model;
    coarse.backend = setup->proposal_backend;
    configure_field(&coarse);
    coarse.constants.kept_rows = coarse.constants.cells_per_chunk = 0;
    rays_configure_proposal(&coarse.constants);
    scale_rates(&coarse.constants, setup->rate);
    split_gradients(&coarse);
    return coarse;
}

/* Creates the proposal's model and backend, and sets the constants that determine its dispatch
 * sizes. */
static vkn_status create_proposal(struct setup *setup, const struct gpu_capabilities *device)
{
    const struct vkn_config config = field_proposal_config(&setup->config);
    if (!rays_have_proposal(&setup->config))
        return VKN_OK;
    /* The pass interlevel has shared memory for MAX_COARSE_SAMPLES bins and as many samples. */
    if (setup->config.march.fine_samples > MAX_COARSE_SAMPLES)
        return base_fail(VKN_BAD_INPUT,
                         "config: march.fine_samples: %u, but a proposal can learn from %u at most",
                         setup->config.march.fine_samples, MAX_COARSE_SAMPLES);
    BASE_TRY(field_model_create(&config, &setup->proposal_model));
    BASE_TRY(
        field_backend_create(&config, &setup->proposal_model, device, &setup->proposal_backend));
    const struct setup proposal = setup_of_coarse(setup);
    setup->constants.proposal_params = proposal.constants.param_count;
    setup->constants.proposal_summed = proposal.constants.summed_params;
    setup->constants.proposal_entries = proposal.constants.entry_count;
    setup->constants.proposal_groups = proposal.constants.backward_groups;
    return VKN_OK;
}

vkn_status setup_create(const struct vkn_config *config, const struct gpu_capabilities *device,
                        struct setup *setup)
{
    struct Config *constants = &setup->constants;
    struct gpu_constants *specialization = &setup->specialization;
    *setup = (struct setup){.config = *config, .specialization.count = SPEC_COUNT};
    BASE_TRY(field_model_create(config, &setup->model));
    BASE_TRY(field_backend_create(config, &setup->model, device, &setup->backend));
    constants->group_limit = device->max_groups;
    configure_field(setup);
    rays_configure(config, constants, specialization);
    limit_rays(constants);
    BASE_TRY(check_visibility(setup));
    BASE_TRY(check_refinement(setup));
    BASE_TRY(choose_rows(setup, device));
    volume_configure(config, constants, specialization);
    optim_configure(config, constants);
    if (setup->backend.f16_sums) /* sums overflow, which only the norm of all of them shows */
        constants->norm_interval = 1;
    setup_set_rank(setup, 1, 0);
    BASE_TRY(create_proposal(setup, device));
    constants->seed = (uint32_t)(config->seed ^ (config->seed >> 32));
    specialization->values[SPEC_DETERMINISTIC] = config->deterministic;
    specialization->values[SPEC_ROUNDED] =
        setup->backend.rounded |
        (setup->backend.f16 && !device->f16_subnormals ? F16_NO_SUBNORMALS : 0);
    return check_passes(setup);
}

vkn_status setup_create_tuned(const struct vkn_config *config, const struct gpu_device *device,
                              struct setup *setup)
{
    BASE_TRY(setup_create(config, gpu_device_capabilities(device), setup));
    if (field_apply_tuning(device, config, &setup->model, &setup->backend))
        configure_backend(setup);
    return VKN_OK;
}

struct repeats setup_repeats(const struct setup *setup)
{
    struct repeats repeats = {
        .cascades = rays_cascades(&setup->config) * rays_time_bins(&setup->config),
        .samples = setup->constants.sample_capacity,
        .cells = setup_counts(setup).cells / rays_time_bins(&setup->config),
        .cells_per_chunk = setup->constants.cells_per_chunk,
        .buckets = setup->buckets,
    };
    field_repeats(&setup->model, &repeats);
    return repeats;
}

struct buffer_counts setup_counts(const struct setup *setup)
{
    const struct Config *constants = &setup->constants;
    struct buffer_counts counts = {
        .rays = constants->ray_capacity,
        .samples = constants->sample_capacity,
        .groups = constants->backward_groups,
    };
    field_size_buffers(&setup->model, &counts);
    field_backend_size_buffers(&setup->backend, &setup->model, &counts);
    optim_size_buffers(&setup->config, &counts);
    rays_size_buffers(&setup->config, &counts);
    return counts;
}

struct Camera setup_camera(const struct scene_camera *camera)
{
    struct Camera result = {
        .width = camera->width,
        .height = camera->height,
        .first_pixel = (uint32_t)camera->first_pixel,
        .focal_x = camera->focal_x,
        .focal_y = camera->focal_y,
        .center_x = camera->center_x,
        .center_y = camera->center_y,
        .lens = (uint32_t)camera->lens, /* LENS_* and enum vkn_lens have the same numbers */
        .limit = (float)scene_camera_limit(camera),
        .time = camera->time,
        .shrink = 1,
        .strip_share = 1,
    };
#define COPY(name) result.name = camera->name;
    SCENE_COEFFICIENTS(COPY)
    memcpy(result.pose, camera->pose, sizeof result.pose);
    return result;
}

_Static_assert(PIXEL_IGNORED == SCENE_IGNORED, "scene and shaders agree");
