/* Creates and destroys a training step: buffers, bindings, pipelines, initial values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "optim/optim.h"
#include "step/internal.h"
#include "rays/rays.h"
#include "volume/volume.h"

static struct buffer_counts count_all(const struct setup *setup, const struct step_images *images)
{
    struct buffer_counts counts = setup_counts(setup);
    counts.cameras = images->views + images->slots;
    counts.pixels = images->pixels;
    counts.depths = images->depths;
    counts.sky_cells = volume_sky_cells(&setup->config);
    counts.error_cells =
        rays_error_cells(&setup->config, (uint64_t)images->views * images->view_cells);
    if (setup->constants.error_share > 0)
        counts.error_sums = images->resident * (3 + 2 * (uint64_t)images->slot_cells);
    if (rays_refine(&setup->config))
        counts.refined_views = images->views;
    if (volume_appearance_kind(&setup->config))
        counts.appearances = images->views;
    return counts;
}

/* Returns the number of struct ErrorCell after struct State. */
static uint64_t summed_cells(const struct buffer_counts *counts)
{
    return counts->sky_cells + counts->error_cells + VIEW_SUMS * counts->refined_views +
           APPEARANCE_PARAMETERS * counts->appearances;
}

/* Returns the mask of the buffers of coarse samples that the main field's passes must not
 * overwrite: for a proposal all of them, because it learns after the main field is evaluated. */
static uint32_t coarse_samples_mask(const struct setup *setup)
{
    return rays_have_proposal(&setup->config)
               ? BUFFERS_OF_SET
               : BUFFERS(STATE) | BUFFERS(RESULTS) | BUFFERS(SAMPLES) | BUFFERS(FIELD);
}

/* Returns the mask of the coarse field's buffers. A proposal also has its own copy of the buffers
 * that depend on the model's layout. */
static uint32_t coarse_field_mask(const struct setup *setup)
{
    return BUFFERS_OF_PARAMETERS | (rays_have_proposal(&setup->config)
                                        ? BUFFERS(CONFIG) | BUFFERS(PARTIALS) | BUFFERS(SCRATCH)
                                        : 0);
}

size_t step_list_memory(const struct setup *setup, const struct step_images *images,
                        struct gpu_need needs[STEP_MAX_NEEDS])
{
    const struct setup coarse = setup_of_coarse(setup);
    const struct buffer_counts counts = count_all(setup, images),
                               coarse_counts = setup_counts(&coarse);
    size_t count = buffers_list(BUFFERS_OF_STEP, BUFFERS_ALL, &counts, needs);
    if (rays_have_coarse(&setup->config))
        count +=
            buffers_list(BUFFERS_OF_COARSE, coarse_field_mask(setup) | coarse_samples_mask(setup),
                         &coarse_counts, needs + count);
    needs[count++] = (struct gpu_need){.name = "exchanged gradients",
                                       .size = step_ranks_memory(setup, summed_cells(&counts)),
                                       .settings = "parallel.ranks_per_device"};
    needs[count++] = (struct gpu_need){.name = "averaged parameters",
                                       .size = step_average_memory(setup),
                                       .settings = "grid.log2_entries"};
    return count;
}

uint64_t step_memory(const struct setup *setup, const struct step_images *images)
{
    struct gpu_need needs[STEP_MAX_NEEDS];
    size_t count = step_list_memory(setup, images, needs);
    uint64_t memory = 0;
    for (size_t i = 0; i < count; i++)
        memory += needs[i].size;
    return memory;
}

/* Returns the host memory that writing a checkpoint takes for copies of its tensors. */
static uint64_t copied_bytes(const struct setup *setup, const struct step_images *images)
{
    struct buffer_counts counts = count_all(setup, images);
    struct saved_buffer saved[MAX_SAVED_BUFFERS];
    size_t count = buffers_list_saved(optim_buffer_mask(&setup->config), false, saved);
    uint64_t bytes = 0;
    optim_size_tensors(&setup->config, &counts);
    for (size_t i = 0; i < count; i++)
        bytes += buffers_bytes(BUFFERS_OF_STEP, saved[i].number, &counts);
    return bytes;
}

vkn_status step_check_memory(const struct gpu_device *device, const struct setup *setup,
                             const struct step_images *images, uint64_t exchange_bytes,
                             uint64_t ranks)
{
    struct gpu_need needs[STEP_MAX_NEEDS + 2];
    bool on_host = gpu_device_capabilities(device)->type == GPU_CPU;
    size_t count = step_list_memory(setup, images, needs);
    needs[count++] = (struct gpu_need){"streaming of images", exchange_bytes,
                                       "scene.image_budget (--image-memory)"};
    needs[count++] =
        (struct gpu_need){"copies for checkpoints", on_host ? copied_bytes(setup, images) : 0,
                          "grid.log2_entries (grid.levels, proposal.log2_entries)"};
    for (size_t i = 0; i < count; i++)
        needs[i].size = needs[i].size > UINT64_MAX / ranks ? UINT64_MAX : needs[i].size * ranks;
    return gpu_memory_check(device, needs, count, ranks > 1 ? "training on all ranks" : "training");
}

static vkn_status allocate(struct step *step, const struct step_images *images)
{
    const struct buffer_counts counts = count_all(&step->setup, images);
    return buffers_create(step->device, BUFFERS_OF_STEP, BUFFERS_ALL, &counts, &step->buffers);
}

static vkn_status bind(struct step *step, struct sample_set *set)
{
    const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
    buffers_bind(&step->buffers, BUFFERS_ALL, bound);
    buffers_bind(&set->own, BUFFERS_OF_SET, bound);
    if (set->coarse)
        buffers_bind(&step->coarse, BUFFERS_ALL, bound);
    if (set->learns) {
        bound[BIND_FINE_RESULTS] = &step->buffers.at[BIND_RESULTS];
        bound[BIND_FINE_SAMPLES] = &step->buffers.at[BIND_SAMPLES];
        bound[BIND_FINE_FIELD] = &step->buffers.at[BIND_FIELD];
    }
    if (set->coarse_set) {
        bound[BIND_COARSE_RESULTS] = &set->coarse_set->own.at[BIND_RESULTS];
        bound[BIND_COARSE_SAMPLES] = &set->coarse_set->own.at[BIND_SAMPLES];
        bound[BIND_COARSE_FIELD] = &set->coarse_set->own.at[BIND_FIELD];
    }
    BASE_TRY(gpu_bindings_create(step->device, bound, &set->training));
    bound[BIND_PARAMS] = bound[BIND_AVERAGE];
    bound[BIND_F16_PARAMS] = bound[BIND_F16_AVERAGE];
    return gpu_bindings_create(step->device, bound, &set->inference);
}

/* Creates the coarse field or proposal, if there is one, and its sets of samples. */
static vkn_status add_coarse(struct step *step)
{
    const struct setup *setup = &step->setup;
    const struct buffer_counts counts = setup_counts(&step->coarse_setup);
    struct sample_set *sets = step->sets;
    if (!rays_have_coarse(&setup->config))
        return VKN_OK;
    BASE_TRY(buffers_create(step->device, BUFFERS_OF_COARSE, coarse_field_mask(setup), &counts,
                            &step->coarse));
    BASE_TRY(buffers_create(step->device, BUFFERS_OF_COARSE, coarse_samples_mask(setup), &counts,
                            &sets[SET_COARSE].own));
    sets[SET_COARSE].coarse = sets[SET_COARSE_FIELD].coarse = true;
    sets[SET_FINE].coarse_set = &sets[SET_COARSE];
    sets[SET_COARSE].learns = rays_have_proposal(&setup->config);
    for (; step->set_count < COARSE_SETS; step->set_count++)
        BASE_TRY(bind(step, &sets[step->set_count]));
    return VKN_OK;
}

/* Returns the first pass with the same pipeline. */
static size_t first_with_pipeline(const struct step *step, size_t number)
{
    const struct step_pass *passes = step->passes, *pass = &passes[number];
    size_t i = 0;
    while (passes[i].proposal != pass->proposal ||
           strcmp(passes[i].pass->name, pass->pass->name) != 0)
        i++;
    return i;
}

static size_t list_passes(struct step *step, bool proposal,
                          struct field_pass_request pipelines[STEP_MAX_PIPELINES])
{
    size_t count = 0;
    for (size_t i = 0; i < step->pass_count; i++) {
        struct step_pass *pass = &step->passes[i];
        if (pass->proposal == proposal && first_with_pipeline(step, i) == i)
            pipelines[count++] =
                (struct field_pass_request){pass->pass->name, &pass->pipeline, pass->pass->variant};
    }
    return count;
}

size_t step_list_pipelines(struct step *step, bool proposal, struct field_pass_request *pipelines)
{
    if (!proposal)
        step->pass_count = step_list_passes(&step->setup, step->passes);
    size_t count = list_passes(step, proposal, pipelines);
    if (count > 0 && step->setup.backend.copies)
        pipelines[count++] = (struct field_pass_request){
            optim_round_pass, &step->round_parameters[proposal], FIELD_NO_VARIANT};
    if (proposal)
        return count;
    pipelines[count++] =
        (struct field_pass_request){rays_unseen_pass, &step->mark_unseen_cells, FIELD_NO_VARIANT};
    return count;
}

static vkn_status create_pipelines(struct step *step)
{
    for (int proposal = 0; proposal < 2; proposal++) {
        struct field_pass_request pipelines[STEP_MAX_PIPELINES];
        const struct setup *setup = step_field_setup(step, (uint32_t)proposal);
        size_t count = step_list_pipelines(step, proposal, pipelines);
        if (count > 0)
            BASE_TRY(field_backend_create_pipelines(step->device, &setup->backend, pipelines, count,
                                                    step->local_size, &setup->specialization));
    }
    for (size_t i = 0; i < step->pass_count; i++)
        step->passes[i].pipeline = step->passes[first_with_pipeline(step, i)].pipeline;
    return VKN_OK;
}

static vkn_status upload_state(struct step *step)
{
    const struct Config *constants = &step->setup.constants;
    struct State state = {.loss_scale = step->setup.config.loss_scale.initial};
    /* At first every cell is occupied, so that most rays have the most samples. */
    uint32_t rays = constants->sample_capacity / rays_max_steps(&step->setup.config, constants);
    state.ray_count = rays < constants->ray_capacity ? rays : constants->ray_capacity;
    state.ray_count = state.ray_count < MIN_STEP_RAYS
                          ? MIN_STEP_RAYS
                          : state.ray_count / MIN_STEP_RAYS * MIN_STEP_RAYS;
    return gpu_upload(step->device, &step->buffers.at[BIND_STATE], 0, &state, sizeof state);
}

/* Uploads initial parameters; the seed of each field differs. */
static vkn_status upload_parameters(struct step *step, uint32_t field)
{
    const struct setup *setup = step_field_setup(step, field);
    const struct buffers *buffers = step_field_buffers(step, field);
    uint64_t size = 4ull * setup->model.param_count;
    struct vkn_config config = setup->config;
    float *params = base_alloc(setup->model.param_count, sizeof *params);
    if (!params)
        return VKN_ERROR;
    config.seed += (uint64_t)field << 32;
    field_initialize(&config, &setup->model, params);
    vkn_status status = gpu_upload(step->device, &buffers->at[BIND_PARAMS], 0, params, size);
    if (status == VKN_OK)
        status = gpu_upload(step->device, &buffers->at[BIND_AVERAGE], 0, params, size);
    free(params);
    return status;
}

static vkn_status prepare(struct step *step, const struct step_images *images)
{
    BASE_TRY(allocate(step, images));
    step->set_count = 1;
    BASE_TRY(bind(step, &step->sets[0]));
    BASE_TRY(add_coarse(step));
    BASE_TRY(create_pipelines(step));
    if (step->setup.constants.ranks > 1)
        BASE_TRY(step_ranks_create(step));
    if (step->setup.averaged)
        BASE_TRY(step_average_create(step));
    BASE_TRY(upload_state(step));
    for (uint32_t field = 0; field < step_field_count(step); field++)
        BASE_TRY(upload_parameters(step, field));
    BASE_TRY(step_upload_constants(step));
    return step_round_parameters(step);
}

/* Sets the views that the device, or its first virtual rank, draws rays from. */
static void choose_views(const struct step_images *images, struct Config *constants)
{
    const struct scene_share share = images->share;
    constants->camera_count = images->views;
    constants->first_depth_word =
        (uint32_t)((images->views + images->slots) * sizeof(struct Camera) / 4);
    constants->first_time = images->times[0];
    constants->last_time = images->times[1];
    constants->first_view = images->slots > 0 ? images->views : share.first;
    constants->view_stride = images->slots > 0 || share.of == 0 ? 1 : share.of;
    constants->view_count =
        constants->view_stride > 1 ? step_view_count(constants, share.first) : images->resident;
    constants->cell_edge = images->cell_edge;
    constants->error_cells = images->views * images->view_cells;
    constants->slot_cells = images->slot_cells;
    constants->slot_count = images->resident;
    constants->slot_view = constants->first_view;
    constants->refine_rate *= images->view_size;
    constants->refine_final_rate *= images->view_size;
    constants->refine_limit *= images->view_size;
    memcpy(constants->sky_up, images->up, sizeof constants->sky_up);
    constants->slot_turns = constants->view_stride > 1 && share.count > 0 ? share.count : 1;
}

/* Places what follows struct State in BIND_STATE: sums that steps add to, then the views. */
static void place_sums(const struct step_images *images, struct setup *setup)
{
    const struct buffer_counts counts = count_all(setup, images);
    struct Config *constants = &setup->constants;
    uint64_t sums = summed_cells(&counts) * sizeof(struct ErrorCell);
    constants->first_sum = (uint32_t)(counts.sky_cells + counts.error_cells);
    constants->first_appearance_sum =
        constants->first_sum + (uint32_t)(VIEW_SUMS * counts.refined_views);
    constants->first_view_word = (uint32_t)((sizeof(struct State) + sums) / 4);
    constants->first_appearance_word =
        constants->first_view_word + (uint32_t)(VIEW_WORDS * counts.refined_views);
}

vkn_status step_create(struct gpu_device *device, const struct setup *setup,
                       const struct step_images *images, struct step *step)
{
    *step = (struct step){.device = device, .setup = *setup, .local_size = PASS_LOCAL_SIZE};
    choose_views(images, &step->setup.constants);
    place_sums(images, &step->setup);
    step->coarse_setup = setup_of_coarse(&step->setup);
    vkn_status status = prepare(step, images);
    if (status != VKN_OK)
        step_destroy(step);
    return status;
}

vkn_status step_begin(struct step *step)
{
    BASE_TRY(step_mark_unseen(step));
    for (uint32_t i = 0; i < STEP_RECORDINGS && !step->ranks; i++)
        BASE_TRY(step_record_interval(step, i));
    return VKN_OK;
}

void step_destroy(struct step *step)
{
    for (uint32_t i = 0; i < STEP_RECORDINGS; i++)
        gpu_recording_destroy(&step->intervals[i]);
    step_ranks_destroy(&step->ranks);
    step_average_destroy(&step->averaging);
    for (size_t i = 0; i < step->pass_count; i++)
        if (first_with_pipeline(step, i) == i)
            gpu_pipeline_destroy(&step->passes[i].pipeline);
    gpu_pipeline_destroy(&step->mark_unseen_cells);
    for (uint32_t i = 0; i < STEP_FIELDS; i++)
        gpu_pipeline_destroy(&step->round_parameters[i]);
    for (uint32_t i = 0; i < STEP_MAX_SETS; i++) {
        gpu_bindings_destroy(&step->sets[i].training);
        gpu_bindings_destroy(&step->sets[i].inference);
        buffers_destroy(&step->sets[i].own);
    }
    buffers_destroy(&step->coarse);
    buffers_destroy(&step->buffers);
}

/* ---- statistics ------------------------------------------------------------------------------ */

void step_add_stats(struct step_sums *sums, const struct Stats *stats)
{
    bool is_coarse_trained = !(stats->coarse_loss < 0); /* NaN: trained, and not finite */
    sums->steps++;
    sums->coarse_steps += is_coarse_trained;
    sums->rays += stats->rays;
    sums->samples += stats->samples;
    sums->live += stats->live;
    sums->loss += stats->loss;
    sums->distortion_loss += stats->distortion_loss;
    sums->coarse_loss += is_coarse_trained ? stats->coarse_loss : 0.0F;
    sums->square += stats->square;
    sums->underflowed += stats->underflowed;
}

struct step_losses step_mean_losses(const struct step *step, const struct step_sums *sums)
{
    const struct vkn_config *config = &step->setup.config;
    double steps = (double)sums->steps, none = (double)NAN;
    double coarse = sums->coarse_steps > 0 ? sums->coarse_loss / (double)sums->coarse_steps : none;
    return (struct step_losses){
        .color = sums->loss / steps,
        .distortion = config->loss.distortion > 0.0F ? sums->distortion_loss / steps : none,
        .interlevel = config->march.sampling == VKN_SAMPLING_PROPOSAL ? coarse : none,
        .coarse = config->march.sampling == VKN_SAMPLING_HIERARCHICAL ? coarse : none,
    };
}
