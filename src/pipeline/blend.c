/* Ranks that take periods alone, and average what they have come to: weights, their moving average
 * and the optimiser's moments, each weighted by the steps that a rank has taken with it, so that
 * what one rank alone has touched becomes its; and the larger value of each occupancy cell. The
 * device weighs its numbers where gradients are in a step, and takes the means over from there.
 */
#include <stdlib.h>
#include <string.h>

#include "optim/optim.h"
#include "pipeline/internal.h"
#include "rays/rays.h"

/* What is averaged of a field: the first of these, as many moments as its optimiser has. */
static const uint32_t numbers[] = {BIND_PARAMS, BIND_AVERAGE, BIND_MOMENT1, BIND_MOMENT2};

#define MOST_NUMBERS (2 + MOST_MOMENTS)
#define MOST_PARTS   (STEP_FIELDS * (1 + MOST_NUMBERS) + 1)
#define ROOMS        2u /* one for the host to work on, one for the device */

/* What is exchanged at once. */
struct part {
    const struct gpu_buffer *values; /* on the device */
    uint32_t field;
    /* NULL: the buffer's values are exchanged as they are. */
    const struct gpu_program *before, *after;
    const struct gpu_bindings *bindings;
    bool largest;
    struct gpu_recording *leave, *take;
};

struct step_blend {
    uint32_t fields, numbers, count;
    bool direct; /* the host works on values where they are */
    struct gpu_arena *arena;
    struct gpu_buffer before[STEP_FIELDS], steps[STEP_FIELDS]; /* BIND_COUNTS_BEFORE, BIND_STEPS */
    struct gpu_buffer rooms[ROOMS];                            /* host memory */
    struct gpu_bindings *bindings[STEP_FIELDS][MOST_NUMBERS];
    struct part parts[MOST_PARTS];
};

/* ---- what is exchanged ----------------------------------------------------------------------- */

static const struct gpu_program *program_of(const struct step *step, const char *name,
                                            uint32_t field)
{
    uint32_t set = field > 0 ? SET_COARSE_FIELD : SET_STEP;
    size_t i = 0;
    while (step->passes[i].set != set || strcmp(step->passes[i].pass->name, name) != 0)
        i++;
    return step->passes[i].program;
}

static void add_part(struct step_blend *blend, struct part part)
{
    blend->parts[blend->count++] = part;
}

/* Shares come of the steps: between those and what is weighed by them is another part, so that the
 * device can weigh one while the host works on the one before. */
static void list_parts(const struct step *step, struct step_blend *blend)
{
    for (uint32_t field = 0; field < blend->fields; field++)
        add_part(blend, (struct part){.values = &blend->steps[field],
                                      .field = field,
                                      .before = program_of(step, "leave_steps", field),
                                      .after = program_of(step, "take_steps", field),
                                      .bindings = blend->bindings[field][0]});
    add_part(blend, (struct part){.values = &step->buffers.at[BIND_OCCUPANCY], .largest = true});
    for (uint32_t field = 0; field < blend->fields; field++)
        for (uint32_t i = 0; i < blend->numbers; i++)
            add_part(blend,
                     (struct part){.values = &pipeline_field(step, field)->at[BIND_GRADIENTS],
                                   .field = field,
                                   .before = program_of(step, "leave_numbers", field),
                                   .after = program_of(step, "take_numbers", field),
                                   .bindings = blend->bindings[field][i]});
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t room_size(const struct buffer_counts *counts)
{
    uint64_t most = counts->params > counts->entries ? counts->params : counts->entries;
    return sizeof(float) * (counts->cells > most ? counts->cells : most);
}

uint64_t pipeline_blend_memory(const struct setup *setup)
{
    const struct setup coarse = setup_of_coarse(setup);
    const struct buffer_counts counts = setup_counts(setup), its = setup_counts(&coarse);
    uint64_t entries = counts.entries + (rays_have_coarse(&setup->config) ? its.entries : 0);
    uint64_t room = room_size(&counts) > room_size(&its) ? room_size(&counts) : room_size(&its);
    return setup->blended ? 2 * sizeof(float) * entries + ROOMS * room : 0;
}

static vkn_status allocate(const struct step *step, struct step_blend *blend)
{
    struct gpu_buffer_request requests[2 * STEP_FIELDS + ROOMS];
    uint64_t room = 0;
    size_t count = 0;
    for (uint32_t field = 0; field < blend->fields; field++) {
        const struct buffer_counts counts = setup_counts(pipeline_setup(step, field));
        room = room_size(&counts) > room ? room_size(&counts) : room;
        requests[count++] = (struct gpu_buffer_request){&blend->before[field], "step counts before",
                                                        4 * counts.entries, GPU_DEVICE};
        requests[count++] = (struct gpu_buffer_request){&blend->steps[field], "steps of ranks",
                                                        4 * counts.entries, GPU_DEVICE};
    }
    for (uint32_t i = 0; i < ROOMS && !blend->direct; i++)
        requests[count++] =
            (struct gpu_buffer_request){&blend->rooms[i], "exchanged numbers", room, GPU_HOST};
    return gpu_arena_create(step->device, requests, count, &blend->arena);
}

/* The numbers that are averaged take the place of the parameters. */
static vkn_status bind(const struct step *step, struct step_blend *blend, uint32_t field)
{
    const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
    buffers_bind(&step->buffers, BUFFERS_ALL, bound);
    if (field > 0)
        buffers_bind(&step->coarse, BUFFERS_ALL, bound);
    bound[BIND_COUNTS_BEFORE] = &blend->before[field];
    bound[BIND_STEPS] = &blend->steps[field];
    for (uint32_t i = 0; i < blend->numbers; i++) {
        bound[BIND_PARAMS] = &pipeline_field(step, field)->at[numbers[i]];
        BASE_TRY(gpu_bindings_create(step->device, bound, &blend->bindings[field][i]));
    }
    return VKN_OK;
}

/* ---- recording ------------------------------------------------------------------------------- */

/* Group by group, in as many workgroups as have something to do. */
static void record_program(const struct step *step, struct gpu_recording *recording,
                           const struct part *part, const struct gpu_program *program)
{
    const struct setup *setup = pipeline_setup(step, part->field);
    const struct Config *constants = &setup->constants;
    for (uint32_t g = 0; program && g < setup->model.group_count; g++) {
        const struct Group *group = &constants->groups[g];
        const struct Push push = {.a = group->first_entry,
                                  .c = group->count / group->entry,
                                  .d = group->first,
                                  .e = group->entry};
        uint32_t rows = (push.c + step->local_size - 1) / step->local_size;
        gpu_record_dispatch(recording, program, part->bindings, &push, sizeof push,
                            rows < constants->group_limit ? rows : constants->group_limit);
    }
    gpu_record_barrier(recording);
}

static vkn_status record_leave(const struct step *step, struct part *part,
                               const struct gpu_buffer *room)
{
    BASE_TRY(gpu_record_begin(step->device, "numbers of a rank", 0, &part->leave));
    record_program(step, part->leave, part, part->before);
    if (room->handle)
        gpu_record_copy(part->leave, part->values, 0, room, 0, part->values->size);
    return gpu_record_end(part->leave);
}

static vkn_status record_take(const struct step *step, struct part *part,
                              const struct gpu_buffer *room)
{
    BASE_TRY(gpu_record_begin(step->device, "numbers of all", 0, &part->take));
    if (room->handle)
        gpu_record_copy(part->take, room, 0, part->values, 0, part->values->size);
    gpu_record_barrier(part->take);
    record_program(step, part->take, part, part->after);
    return gpu_record_end(part->take);
}

static vkn_status create(struct step *step, struct step_blend *blend)
{
    blend->fields = pipeline_fields(step);
    blend->numbers = 2 + optim_kind(&step->setup.config)->moments;
    blend->direct = step->buffers.at[BIND_GRADIENTS].mapped != NULL;
    BASE_TRY(allocate(step, blend));
    for (uint32_t field = 0; field < blend->fields; field++)
        BASE_TRY(bind(step, blend, field));
    list_parts(step, blend);
    for (uint32_t i = 0; i < blend->count; i++) {
        BASE_TRY(record_leave(step, &blend->parts[i], &blend->rooms[i % ROOMS]));
        BASE_TRY(record_take(step, &blend->parts[i], &blend->rooms[i % ROOMS]));
    }
    return VKN_OK;
}

vkn_status pipeline_blend_create(struct step *step)
{
    step->blend = base_alloc(1, sizeof *step->blend);
    return step->blend ? create(step, step->blend) : VKN_ERROR;
}

void pipeline_blend_destroy(struct step_blend **destroyed)
{
    struct step_blend *blend = *destroyed;
    if (!blend)
        return;
    *destroyed = NULL;
    for (uint32_t i = 0; i < blend->count; i++) {
        gpu_recording_destroy(&blend->parts[i].leave);
        gpu_recording_destroy(&blend->parts[i].take);
    }
    for (uint32_t field = 0; field < STEP_FIELDS; field++)
        for (uint32_t i = 0; i < MOST_NUMBERS; i++)
            gpu_bindings_destroy(&blend->bindings[field][i]);
    gpu_arena_destroy(&blend->arena);
    free(blend);
}

/* ---- running --------------------------------------------------------------------------------- */

static void record_counts(const struct step *step, struct gpu_recording *recording)
{
    for (uint32_t field = 0; field < step->blend->fields; field++) {
        const struct gpu_buffer *counts = &pipeline_field(step, field)->at[BIND_COUNTS];
        gpu_record_copy(recording, counts, 0, &step->blend->before[field], 0, counts->size);
    }
}

vkn_status step_begin_blend(struct step *step)
{
    return step->blend ? pipeline_record_alone(step, "step counts", record_counts) : VKN_OK;
}

static vkn_status exchange(const struct step_blend *blend, uint32_t number, step_combine *combine,
                           void *context)
{
    const struct part *part = &blend->parts[number];
    BASE_TRY(gpu_wait(part->leave));
    float *values = blend->direct ? part->values->mapped : blend->rooms[number % ROOMS].mapped;
    BASE_TRY(combine(context, values, part->values->size / sizeof *values, part->largest));
    return gpu_submit(part->take);
}

/* Where there are rooms the device goes one part ahead. */
static vkn_status exchange_all(const struct step_blend *blend, step_combine *combine, void *context)
{
    uint32_t ahead = blend->direct ? 0 : 1, left = 0;
    for (uint32_t i = 0; i < blend->count; i++) {
        for (; left < blend->count && left <= i + ahead; left++)
            BASE_TRY(gpu_submit(blend->parts[left].leave));
        BASE_TRY(exchange(blend, i, combine, context));
    }
    return gpu_wait(blend->parts[blend->count - 1].take);
}

vkn_status step_blend(struct step *step, uint32_t updates, step_combine *combine, void *context)
{
    struct Control *control = step->buffers.at[BIND_CONTROL].mapped;
    if (!step->blend)
        return VKN_OK;
    control->least_updates = updates;
    vkn_status status = exchange_all(step->blend, combine, context);
    if (status != VKN_OK) {
        BASE_KEEP_ERROR;
        (void)pipeline_record_alone(step, "no gradients",
                                    pipeline_record_clear); /* as a step begins */
        return status;
    }
    BASE_TRY(step_pack_occupancy(step));
    return step_round_parameters(step);
}
