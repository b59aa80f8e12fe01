/* Copies gradient buckets, step statistics, occupancy cells and the error map, which synchronous
 * ranks all-reduce on the host, between device and host. */
#include <stdlib.h>

#include "step/ranks.h"
#include "rays/rays.h"

/* ---- all-reduced values ---------------------------------------------------------------------- */

static const struct gpu_buffer *buffer_of(const struct step *step, uint32_t field, uint32_t format)
{
    return &step_field_buffers(step, field)
                ->at[format == PACKED_F16 ? BIND_ACCUMULATORS : BIND_GRADIENTS];
}

/* Returns the byte offset of a format's gradients in their device buffer. */
static uint64_t gradient_offset(const struct step *step, uint32_t field, uint32_t format)
{
    const struct gpu_constants *constants = &step_field_setup(step, field)->specialization;
    return format == PACKED_F16 ? 8ull * constants->values[SPEC_F16_SUM_OFFSET] : 0;
}

/* A contiguous range of a field's gradients in one format. */
struct gradient_range {
    uint32_t field, format;
    uint64_t first, size; /* bytes */
};

static size_t list_ranges(const struct step *step, uint32_t bucket,
                          struct gradient_range ranges[GRADIENT_FORMATS * STEP_FIELDS])
{
    const struct segment *segment = &step->ranks->segments[bucket];
    bool is_f16 = step->setup.backend.f16_sums;
    size_t count = 0;
    for (uint32_t i = 0; i < segment->fields; i++) {
        uint32_t field = segment->field + i;
        const struct GradientBucket *buckets = step_field_setup(step, field)->constants.buckets;
        uint64_t begin = buckets[segment->bucket].parameter;
        uint64_t end = buckets[segment->bucket_end].parameter;
        uint64_t first = segment->bucket > 0 ? begin : 0; /* the first bucket includes the MLPs */
        uint64_t f32_end = is_f16 ? begin : end;
        if (f32_end > first)
            ranges[count++] =
                (struct gradient_range){field, FLOATS, 4 * first, 4 * (f32_end - first)};
        if (is_f16 && end > begin)
            ranges[count++] =
                (struct gradient_range){field, PACKED_F16, 2 * begin, 2 * (end - begin)};
    }
    return count;
}

uint32_t step_buckets(const struct step *step)
{
    return step->ranks->buckets;
}

struct step_bucket step_bucket(const struct step *step, uint32_t turn, uint32_t bucket)
{
    const struct step_ranks *ranks = step->ranks;
    struct gradient_range ranges[GRADIENT_FORMATS * STEP_FIELDS];
    struct step_bucket found = {.count = (uint32_t)list_ranges(step, bucket, ranges)};
    for (uint32_t i = 0; i < found.count; i++) {
        const struct gradient_range *range = &ranges[i];
        char *begin = ranks->direct ? (char *)buffer_of(step, range->field, range->format)->mapped +
                                          gradient_offset(step, range->field, range->format)
                                    : ranks->gradients[turn][range->field][range->format].mapped;
        found.spans[i] =
            (struct step_span){(float *)(begin + range->first), range->size / sizeof(float),
                               range->format == PACKED_F16};
    }
    return found;
}

uint64_t step_bucket_bytes(const struct step *step)
{
    struct gradient_range ranges[GRADIENT_FORMATS * STEP_FIELDS];
    uint64_t bytes =
        sizeof(float) * (ranks_cells(step).count + ranks_errors(step).count) / UPDATE_INTERVAL;
    for (uint32_t bucket = 0; bucket < step->ranks->buckets; bucket++)
        for (size_t i = list_ranges(step, bucket, ranges); i > 0; i--)
            bytes += ranges[i - 1].size;
    return bytes;
}

struct step_span ranks_cells(const struct step *step)
{
    const struct gpu_buffer *cells = &step->buffers.at[BIND_OCCUPANCY];
    if (step->setup.constants.cell_shares < 2 || !rays_use_grid(&step->setup.config))
        return (struct step_span){0};
    void *values = cells->mapped ? cells->mapped : step->ranks->cells.mapped;
    return (struct step_span){values, cells->size / sizeof(float), false};
}

/* Returns the bytes of the sums of sky, error map, cameras and exposures that devices exchange; 0
 * for a single device, whose virtual ranks add to the same sums. */
static uint64_t exchanged_sums(const struct setup *setup, uint64_t summed_cells)
{
    bool has_devices = setup->constants.ranks > setup_virtual_ranks(&setup->config);
    return has_devices ? summed_cells * sizeof(struct ErrorCell) : 0;
}

struct step_span ranks_errors(const struct step *step)
{
    const struct gpu_buffer *state = &step->buffers.at[BIND_STATE];
    uint64_t bytes = 4ull * step->setup.constants.first_view_word - sizeof(struct State);
    uint64_t size = exchanged_sums(&step->setup, bytes / sizeof(struct ErrorCell));
    if (size == 0)
        return (struct step_span){0};
    void *values =
        state->mapped ? (char *)state->mapped + sizeof(struct State) : step->ranks->errors.mapped;
    return (struct step_span){values, size / sizeof(float), false};
}

struct RankStats *step_statistics(const struct step *step, uint32_t turn)
{
    return step->ranks->statistics[turn].mapped;
}

uint32_t step_fields(const struct step *step)
{
    return step->ranks->fields;
}

/* ---- memory -------------------------------------------------------------------------------- */

static uint64_t gradient_bytes(const struct setup *setup)
{
    uint64_t params = setup->model.param_count, summed = setup->model.mlp_params;
    return setup->backend.f16_sums ? 4 * summed + 2 * params : 4 * params;
}

uint64_t step_ranks_memory(const struct setup *setup, uint64_t summed_cells)
{
    const struct setup coarse = setup_of_coarse(setup);
    uint64_t gradients = gradient_bytes(setup);
    if (setup->constants.ranks < 2)
        return 0;
    if (rays_have_coarse(&setup->config))
        gradients += gradient_bytes(&coarse);
    uint64_t cells = setup->constants.cell_shares > 1 ? 4 * setup_counts(setup).cells : 0;
    return sizeof(struct State) + cells + exchanged_sums(setup, summed_cells) +
           setup_virtual_ranks(&setup->config) *
               (gradients + STEP_FIELDS * sizeof(struct RankStats));
}

vkn_status ranks_allocate(const struct step *step, struct step_ranks *ranks)
{
    struct gpu_buffer_request
        requests[3 + STEP_MAX_VIRTUAL_RANKS * (STEP_FIELDS * GRADIENT_FORMATS + 1)];
    const struct gpu_buffer *at = step->buffers.at, *cells = &at[BIND_OCCUPANCY];
    bool is_f16 = step->setup.backend.f16_sums;
    size_t count = 0;
    requests[count++] = (struct gpu_buffer_request){&ranks->saved_state, "state before a turn",
                                                    sizeof(struct State), GPU_DEVICE};
    for (uint32_t turn = 0; turn < ranks->turns; turn++) {
        for (uint32_t i = 0; i < ranks->fields && !ranks->direct; i++) {
            const struct field_model *model = &step_field_setup(step, i)->model;
            uint64_t floats = 4ull * model->mlp_params;
            requests[count++] = (struct gpu_buffer_request){
                &ranks->gradients[turn][i][FLOATS], "exchanged gradients",
                is_f16 ? floats : buffer_of(step, i, FLOATS)->size, GPU_HOST};
            if (is_f16)
                requests[count++] = (struct gpu_buffer_request){
                    &ranks->gradients[turn][i][PACKED_F16], "exchanged gradients",
                    2ull * model->param_count, GPU_HOST};
        }
        requests[count++] =
            (struct gpu_buffer_request){&ranks->statistics[turn], "step statistics",
                                        STEP_FIELDS * sizeof(struct RankStats), GPU_HOST};
    }
    if (ranks_cells(step).count > 0 && !cells->mapped)
        requests[count++] = (struct gpu_buffer_request){&ranks->cells, "exchanged occupancy cells",
                                                        cells->size, GPU_HOST};
    if (ranks_errors(step).count > 0 && !at[BIND_STATE].mapped)
        requests[count++] =
            (struct gpu_buffer_request){&ranks->errors, "exchanged error map",
                                        sizeof(float) * ranks_errors(step).count, GPU_HOST};
    return gpu_arena_create(step->device, requests, count, &ranks->arena);
}

/* ---- recording ----------------------------------------------------------------------------- */

void step_record_clear_gradients(const struct step *step, struct gpu_recording *recording)
{
    for (uint32_t i = 0; i < step_field_count(step); i++) {
        gpu_record_fill(recording, buffer_of(step, i, FLOATS), 0, UINT64_MAX, 0);
        if (step->setup.backend.f16_sums)
            gpu_record_fill(recording, buffer_of(step, i, PACKED_F16), 0, UINT64_MAX, 0);
    }
}

void ranks_record_copy(struct gpu_recording *recording, struct copy copy, bool back)
{
    if (back)
        gpu_record_copy(recording, copy.in_ranks, copy.ranks_offset, copy.in_step, copy.step_offset,
                        copy.size);
    else
        gpu_record_copy(recording, copy.in_step, copy.step_offset, copy.in_ranks, copy.ranks_offset,
                        copy.size);
}

void ranks_record_bucket(const struct step *step, struct gpu_recording *recording, uint32_t turn,
                         uint32_t bucket, bool back)
{
    const struct step_ranks *ranks = step->ranks;
    struct gradient_range ranges[GRADIENT_FORMATS * STEP_FIELDS];
    size_t count = ranks->direct ? 0 : list_ranges(step, bucket, ranges);
    gpu_record_barrier(recording);
    for (size_t i = 0; i < count; i++) {
        const struct gradient_range *range = &ranges[i];
        const struct copy gradients = {
            .in_step = buffer_of(step, range->field, range->format),
            .step_offset = gradient_offset(step, range->field, range->format) + range->first,
            .in_ranks = &ranks->gradients[turn][range->field][range->format],
            .ranks_offset = range->first,
            .size = range->size};
        ranks_record_copy(recording, gradients, back);
    }
    gpu_record_barrier(recording);
}

void ranks_record_interval(const struct step *step, struct gpu_recording *recording, bool back)
{
    const struct step_ranks *ranks = step->ranks;
    const struct copy copies[] = {{.in_step = &step->buffers.at[BIND_OCCUPANCY],
                                   .in_ranks = &ranks->cells,
                                   .size = ranks->cells.size},
                                  {.in_step = &step->buffers.at[BIND_STATE],
                                   .step_offset = sizeof(struct State),
                                   .in_ranks = &ranks->errors,
                                   .size = ranks->errors.size}};
    gpu_record_barrier(recording);
    for (size_t i = 0; i < BASE_COUNT(copies); i++)
        if (copies[i].in_ranks->handle)
            ranks_record_copy(recording, copies[i], back);
    gpu_record_barrier(recording);
}

void ranks_record_stats(const struct step *step, struct gpu_recording *recording, uint32_t turn,
                        bool back)
{
    const struct gpu_buffer *in_ranks = &step->ranks->statistics[turn];
    const struct copy statistics = {.in_step = &step->buffers.at[BIND_REDUCE],
                                    .step_offset = sizeof(float) * REDUCE_RANK_STATS,
                                    .in_ranks = in_ranks,
                                    .size = in_ranks->size};
    gpu_record_barrier(recording);
    ranks_record_copy(recording, statistics, back);
    gpu_record_barrier(recording);
}

/* ---- the error map --------------------------------------------------------------------------- */

void step_add_errors(float *const cells[], uint32_t ranks, uint32_t kept, size_t first, size_t end)
{
    const size_t words = sizeof(struct ErrorCell) / sizeof(float);
    for (size_t i = first / words; i < end / words; i++) {
        struct ErrorCell sum = ((const struct ErrorCell *)cells[0])[i];
        uint64_t losses = 0;
        sum.rays = 0;
        for (uint32_t rank = 0; rank < ranks; rank++) {
            const struct ErrorCell *cell = &((const struct ErrorCell *)cells[rank])[i];
            losses += (uint64_t)cell->high << 32 | cell->low;
            sum.rays += cell->rays;
        }
        sum.low = (uint32_t)losses;
        sum.high = (uint32_t)(losses >> 32);
        for (uint32_t rank = 0; rank < kept; rank++)
            ((struct ErrorCell *)cells[rank])[i] = sum;
    }
}

vkn_status step_exchange_errors(struct step *step, step_all_reduce *combine, void *context)
{
    const struct gpu_buffer *state = &step->buffers.at[BIND_STATE];
    size_t count = step->ranks ? ranks_errors(step).count : 0, size = count * sizeof(float);
    if (count == 0)
        return VKN_OK;
    struct ErrorCell *cells = base_alloc(size, 1);
    vkn_status status =
        cells ? gpu_download(step->device, state, sizeof(struct State), cells, size) : VKN_ERROR;
    if (status == VKN_OK && combine)
        status = combine(context, (float *)cells, count, STEP_ERRORS);
    for (size_t i = 0; cells && !combine && i < size / sizeof *cells; i++)
        cells[i].low = cells[i].high = cells[i].rays = 0;
    if (status == VKN_OK)
        status = gpu_upload(step->device, state, sizeof(struct State), cells, size);
    free(cells);
    return status;
}
