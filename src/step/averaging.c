/* Averages master parameters, moving averages and moments over ranks after each update interval,
 * weighting each rank's entry by the number of steps that have updated it. Occupancy cells become
 * the maximum over ranks. BIND_GRADIENTS, unused between steps, holds the weighted values. */
#include <stdlib.h>
#include <string.h>

#include "optim/optim.h"
#include "step/internal.h"
#include "rays/rays.h"

/* The averaged buffers of a field; the moments only if the optimiser has them. */
static const uint32_t averaged_buffers[] = {BIND_PARAMS, BIND_AVERAGE, BIND_MOMENT1, BIND_MOMENT2};

#define MAX_AVERAGED    (2 + MAX_MOMENTS)
#define MAX_TRANSFERS   (STEP_FIELDS * (1 + MAX_AVERAGED) + 1)
#define STAGING_BUFFERS 2u /* one for the host, one for the device */

/* A buffer that is all-reduced: device to host, all-reduce, host to device. */
struct transfer {
    const struct gpu_buffer *values; /* on the device */
    uint32_t field;
    /* NULL: the values are all-reduced as they are. */
    const struct gpu_pipeline *export_pipeline, *import_pipeline;
    const struct gpu_bindings *bindings;
    uint32_t half; /* push.f of the passes of packed moments */
    enum step_reduction reduction;
    struct gpu_recording *exporting, *importing; /* to the host; from the host */
};

struct step_average {
    uint32_t fields, buffers, count; /* fields; averaged buffers of a field; transfers */
    bool direct;                     /* the host all-reduces values in the mapped device buffers */
    struct gpu_arena *arena;
    /* BIND_SYNCED_COUNTS, [entry] u32; BIND_STEPS, [entry] f32 */
    struct gpu_buffer synced_counts[STEP_FIELDS], steps[STEP_FIELDS];
    struct gpu_buffer staging[STAGING_BUFFERS]; /* host memory */
    struct gpu_bindings *bindings[STEP_FIELDS][MAX_AVERAGED];
    struct transfer transfers[MAX_TRANSFERS];
};

/* ---- all-reduced buffers --------------------------------------------------------------------- */

static const struct gpu_pipeline *pipeline_of(const struct step *step, const char *name,
                                              uint32_t field)
{
    uint32_t set = field > 0 ? SET_COARSE_FIELD : SET_STEP;
    size_t i = 0;
    while (step->passes[i].set != set || strcmp(step->passes[i].pass->name, name) != 0)
        i++;
    return step->passes[i].pipeline;
}

/* Returns which half of a word of BIND_MOMENT1 holds the moment; 0: moments are f32. */
static uint32_t packed_half(const struct step *step, uint32_t number)
{
    if (!optim_packs_moments(&step->setup.config))
        return 0;
    return number == BIND_MOMENT1 ? PACKED_MOMENT1 : number == BIND_MOMENT2 ? PACKED_MOMENT2 : 0;
}

static void add_transfer(struct step_average *averaging, struct transfer transfer)
{
    averaging->transfers[averaging->count++] = transfer;
}

/* Lists the step counts first, because they determine the weights of averaging; then the occupancy
 * cells, because the device exports one transfer ahead and parameters need the reduced counts. */
static void list_transfers(const struct step *step, struct step_average *averaging)
{
    for (uint32_t field = 0; field < averaging->fields; field++)
        add_transfer(
            averaging,
            (struct transfer){.values = &averaging->steps[field],
                              .field = field,
                              .export_pipeline = pipeline_of(step, "export_step_counts", field),
                              .import_pipeline = pipeline_of(step, "import_step_counts", field),
                              .bindings = averaging->bindings[field][0]});
    add_transfer(averaging, (struct transfer){.values = &step->buffers.at[BIND_OCCUPANCY],
                                              .reduction = STEP_MAXIMUM});
    for (uint32_t field = 0; field < averaging->fields; field++)
        for (uint32_t i = 0; i < averaging->buffers; i++)
            add_transfer(
                averaging,
                (struct transfer){.values = &step_field_buffers(step, field)->at[BIND_GRADIENTS],
                                  .field = field,
                                  .export_pipeline = pipeline_of(step, "export_parameters", field),
                                  .import_pipeline = pipeline_of(step, "import_parameters", field),
                                  .bindings = averaging->bindings[field][i],
                                  .half = packed_half(step, averaged_buffers[i])});
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t staging_size(const struct buffer_counts *counts)
{
    uint64_t most = counts->params > counts->entries ? counts->params : counts->entries;
    return sizeof(float) * (counts->cells > most ? counts->cells : most);
}

uint64_t step_average_memory(const struct setup *setup)
{
    const struct setup coarse = setup_of_coarse(setup);
    const struct buffer_counts counts = setup_counts(setup), coarse_counts = setup_counts(&coarse);
    uint64_t entries =
        counts.entries + (rays_have_coarse(&setup->config) ? coarse_counts.entries : 0);
    uint64_t staging_buffer = staging_size(&counts) > staging_size(&coarse_counts)
                                  ? staging_size(&counts)
                                  : staging_size(&coarse_counts);
    return setup->averaged ? 2 * sizeof(float) * entries + STAGING_BUFFERS * staging_buffer : 0;
}

static vkn_status allocate(const struct step *step, struct step_average *averaging)
{
    struct gpu_buffer_request requests[2 * STEP_FIELDS + STAGING_BUFFERS];
    uint64_t staging_buffer = 0;
    size_t count = 0;
    for (uint32_t field = 0; field < averaging->fields; field++) {
        const struct buffer_counts counts = setup_counts(step_field_setup(step, field));
        staging_buffer =
            staging_size(&counts) > staging_buffer ? staging_size(&counts) : staging_buffer;
        requests[count++] =
            (struct gpu_buffer_request){&averaging->synced_counts[field],
                                        "step counts at averaging", 4 * counts.entries, GPU_DEVICE};
        requests[count++] = (struct gpu_buffer_request){
            &averaging->steps[field], "steps since averaging", 4 * counts.entries, GPU_DEVICE};
    }
    for (uint32_t i = 0; i < STAGING_BUFFERS && !averaging->direct; i++)
        requests[count++] = (struct gpu_buffer_request){
            &averaging->staging[i], "averaged parameters", staging_buffer, GPU_HOST};
    return gpu_arena_create(step->device, requests, count, &averaging->arena);
}

/* Creates bindings for each averaged buffer, bound as BIND_PARAMS. */
static vkn_status bind(const struct step *step, struct step_average *averaging, uint32_t field)
{
    const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
    buffers_bind(&step->buffers, BUFFERS_ALL, bound);
    if (field > 0)
        buffers_bind(&step->coarse, BUFFERS_ALL, bound);
    bound[BIND_SYNCED_COUNTS] = &averaging->synced_counts[field];
    bound[BIND_STEPS] = &averaging->steps[field];
    for (uint32_t i = 0; i < averaging->buffers; i++) {
        uint32_t number = averaged_buffers[i];
        bool packed = packed_half(step, number) != 0;
        bound[BIND_PARAMS] = &step_field_buffers(step, field)->at[packed ? BIND_MOMENT1 : number];
        BASE_TRY(gpu_bindings_create(step->device, bound, &averaging->bindings[field][i]));
    }
    return VKN_OK;
}

/* ---- recording ------------------------------------------------------------------------------- */

/* Records a dispatch for each parameter group, in as many workgroups as its entries need. */
static void record_pipeline(const struct step *step, struct gpu_recording *recording,
                            const struct transfer *transfer, const struct gpu_pipeline *pipeline)
{
    const struct setup *setup = step_field_setup(step, transfer->field);
    const struct Config *constants = &setup->constants;
    for (uint32_t g = 0; pipeline && g < setup->model.group_count; g++) {
        const struct ParameterGroup *group = &constants->groups[g];
        const struct Push push = {.a = group->first_entry,
                                  .c = group->count / group->entry,
                                  .d = group->first,
                                  .e = group->entry,
                                  .f = transfer->half};
        uint32_t needed = (push.c + step->local_size - 1) / step->local_size;
        gpu_record_dispatch(recording, pipeline, transfer->bindings, &push, sizeof push,
                            needed < constants->group_limit ? needed : constants->group_limit);
    }
    gpu_record_barrier(recording);
}

static vkn_status record_export(const struct step *step, struct transfer *transfer,
                                const struct gpu_buffer *staging_buffer)
{
    BASE_TRY(gpu_record_begin(step->device, "export of parameters", 0, &transfer->exporting));
    record_pipeline(step, transfer->exporting, transfer, transfer->export_pipeline);
    if (staging_buffer->handle)
        gpu_record_copy(transfer->exporting, transfer->values, 0, staging_buffer, 0,
                        transfer->values->size);
    return gpu_record_end(transfer->exporting);
}

static vkn_status record_import(const struct step *step, struct transfer *transfer,
                                const struct gpu_buffer *staging_buffer)
{
    BASE_TRY(gpu_record_begin(step->device, "import of parameters", 0, &transfer->importing));
    if (staging_buffer->handle)
        gpu_record_copy(transfer->importing, staging_buffer, 0, transfer->values, 0,
                        transfer->values->size);
    gpu_record_barrier(transfer->importing);
    record_pipeline(step, transfer->importing, transfer, transfer->import_pipeline);
    return gpu_record_end(transfer->importing);
}

static vkn_status create(struct step *step, struct step_average *averaging)
{
    averaging->fields = step_field_count(step);
    averaging->buffers = 2 + optim_kind(&step->setup.config)->moments;
    averaging->direct = step->buffers.at[BIND_GRADIENTS].mapped != NULL;
    BASE_TRY(allocate(step, averaging));
    for (uint32_t field = 0; field < averaging->fields; field++)
        BASE_TRY(bind(step, averaging, field));
    list_transfers(step, averaging);
    for (uint32_t i = 0; i < averaging->count; i++) {
        BASE_TRY(record_export(step, &averaging->transfers[i],
                               &averaging->staging[i % STAGING_BUFFERS]));
        BASE_TRY(record_import(step, &averaging->transfers[i],
                               &averaging->staging[i % STAGING_BUFFERS]));
    }
    return VKN_OK;
}

vkn_status step_average_create(struct step *step)
{
    step->averaging = base_alloc(1, sizeof *step->averaging);
    return step->averaging ? create(step, step->averaging) : VKN_ERROR;
}

void step_average_destroy(struct step_average **destroyed)
{
    struct step_average *averaging = *destroyed;
    if (!averaging)
        return;
    *destroyed = NULL;
    for (uint32_t i = 0; i < averaging->count; i++) {
        gpu_recording_destroy(&averaging->transfers[i].exporting);
        gpu_recording_destroy(&averaging->transfers[i].importing);
    }
    for (uint32_t field = 0; field < STEP_FIELDS; field++)
        for (uint32_t i = 0; i < MAX_AVERAGED; i++)
            gpu_bindings_destroy(&averaging->bindings[field][i]);
    gpu_arena_destroy(&averaging->arena);
    free(averaging);
}

/* ---- running --------------------------------------------------------------------------------- */

static void record_counts(const struct step *step, struct gpu_recording *recording)
{
    for (uint32_t field = 0; field < step->averaging->fields; field++) {
        const struct gpu_buffer *counts = &step_field_buffers(step, field)->at[BIND_STEP_COUNTS];
        gpu_record_copy(recording, counts, 0, &step->averaging->synced_counts[field], 0,
                        counts->size);
    }
}

vkn_status step_begin_average(struct step *step)
{
    return step->averaging ? step_record_and_run(step, "step counts", record_counts) : VKN_OK;
}

static vkn_status reduce_transfer(const struct step_average *averaging, uint32_t number,
                                  step_all_reduce *combine, void *context)
{
    const struct transfer *transfer = &averaging->transfers[number];
    BASE_TRY(gpu_wait(transfer->exporting));
    float *values = averaging->direct ? transfer->values->mapped
                                      : averaging->staging[number % STAGING_BUFFERS].mapped;
    BASE_TRY(
        combine(context, values, transfer->values->size / sizeof *values, transfer->reduction));
    return gpu_submit(transfer->importing);
}

/* With staging buffers the device exports one transfer ahead. */
static vkn_status reduce_all(const struct step_average *averaging, step_all_reduce *combine,
                             void *context)
{
    uint32_t ahead = averaging->direct ? 0 : 1, submitted = 0;
    for (uint32_t i = 0; i < averaging->count; i++) {
        for (; submitted < averaging->count && submitted <= i + ahead; submitted++)
            BASE_TRY(gpu_submit(averaging->transfers[submitted].exporting));
        BASE_TRY(reduce_transfer(averaging, i, combine, context));
    }
    return gpu_wait(averaging->transfers[averaging->count - 1].importing);
}

vkn_status step_average(struct step *step, uint32_t updates, step_all_reduce *combine,
                        void *context)
{
    struct Control *control = step->buffers.at[BIND_CONTROL].mapped;
    if (!step->averaging)
        return VKN_OK;
    control->min_updates = updates;
    vkn_status status = reduce_all(step->averaging, combine, context);
    if (status != VKN_OK) {
        BASE_KEEP_ERROR;
        (void)step_record_and_run(step, "no gradients",
                                  step_record_clear_gradients); /* a step expects zero gradients */
        return status;
    }
    BASE_TRY(step_pack_occupancy(step));
    return step_round_parameters(step);
}
