/* Training loop of ranks that go their own way for a period of 16 steps and then average what they
 * have come to (local SGD: Stich, Local SGD Converges Fast and Communicates Little, 2019): weights,
 * their moving average and the moments of Adam, each weighted by the steps that a rank has taken
 * with it, so that what one rank alone has touched becomes its; the occupancy grid by the larger
 * value. Rank 0 decides how long a run lasts.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parallel/parallel.h"
#include "train/loop.h"
#include "train/notes.h"

/* Of a field, in host memory. */
struct blend {
    struct vkn_trainer *t;
    const struct buffers *buffers;
    const struct field_model *model;
    uint32_t *before;        /* [entries]: steps of each when ranks last were the same */
    uint32_t *counts;        /* now */
    float *own, *mean;       /* [entries]: steps since then, of this rank and on average */
    uint32_t updates, least; /* of weights, on this rank and on the one that has had fewest */
    size_t entries, params;
    float *values, *kept; /* [params] */
};

/* ---- steps since the last time -----------------------------------------------------------------
 */

/* Adam steps of groups that are not sparse have one count for all. */
static vkn_status updates_of(const struct vkn_trainer *t, uint32_t *updates)
{
    return gpu_download(t->device, &t->step.buffers.at[BIND_STATE], offsetof(struct State, updates),
                        updates, sizeof *updates);
}

/* Of the rank that has had fewest. */
static vkn_status find_least(const struct vkn_trainer *t, uint32_t updates, uint32_t *least)
{
    uint32_t all[PARALLEL_MOST_RANKS];
    BASE_TRY(parallel_gather(t->parallel, &updates, sizeof updates, all));
    *least = updates;
    for (uint32_t rank = 0; rank < t->ranks; rank++)
        *least = all[rank] < *least ? all[rank] : *least;
    return VKN_OK;
}

static vkn_status count_steps(struct blend *b)
{
    struct vkn_trainer *t = b->t;
    const struct gpu_buffer *buffer = &b->buffers->at[BIND_COUNTS];
    BASE_TRY(gpu_download(t->device, buffer, 0, b->counts, buffer->size));
    for (uint32_t g = 0; g < b->model->group_count; g++) {
        const struct Group *group = &b->t->step.setup.constants.groups[g];
        size_t first = group->first_entry;
        for (size_t e = first; e < first + group->count / group->entry; e++)
            b->own[e] = group->sparse ? (float)(b->counts[e] - b->before[e])
                                      : (float)(b->updates - t->updates_before);
    }
    memcpy(b->mean, b->own, b->entries * sizeof *b->mean);
    return parallel_mean(t->parallel, b->mean, b->entries);
}

/* No rank has taken more steps with an entry than with all. */
static vkn_status put_counts(struct blend *b)
{
    const struct gpu_buffer *buffer = &b->buffers->at[BIND_COUNTS];
    for (size_t e = 0; e < b->entries; e++) {
        uint32_t count = b->before[e] + (uint32_t)ceilf(b->mean[e]);
        b->counts[e] = count < b->least ? count : b->least;
    }
    memcpy(b->before, b->counts, buffer->size);
    return gpu_upload(b->t->device, buffer, 0, b->counts, buffer->size);
}

/* ---- weighted means ---------------------------------------------------------------------------
 */

/* For each parameter that any rank has changed; what none has is the same on all, to the bit. */
static void weigh(struct blend *b, bool back)
{
    size_t i = 0;
    for (uint32_t g = 0; g < b->model->group_count; g++) {
        const struct Group *group = &b->t->step.setup.constants.groups[g];
        size_t first = group->first_entry;
        for (size_t e = first; e < first + group->count / group->entry; e++)
            for (uint32_t k = 0; k < group->entry; k++, i++)
                b->values[i] = !(b->mean[e] > 0) ? b->kept[i]
                               : back            ? b->values[i] / b->mean[e]
                                                 : b->values[i] * b->own[e];
    }
}

static vkn_status blend_buffer(struct blend *b, uint32_t number)
{
    const struct gpu_buffer *buffer = &b->buffers->at[number];
    BASE_TRY(gpu_download(b->t->device, buffer, 0, b->kept, buffer->size));
    memcpy(b->values, b->kept, buffer->size);
    weigh(b, false);
    BASE_TRY(parallel_mean(b->t->parallel, b->values, b->params));
    weigh(b, true);
    return gpu_upload(b->t->device, buffer, 0, b->values, buffer->size);
}

static vkn_status allocate(struct blend *b)
{
    b->counts = base_alloc(b->entries, sizeof *b->counts);
    b->own = base_alloc(b->entries, sizeof *b->own);
    b->mean = base_alloc(b->entries, sizeof *b->mean);
    b->values = base_alloc(b->params, sizeof *b->values);
    b->kept = base_alloc(b->params, sizeof *b->kept);
    return b->counts && b->own && b->mean && b->values && b->kept ? VKN_OK : VKN_ERROR;
}

static vkn_status blend_field(struct vkn_trainer *t, const struct buffers *buffers,
                              uint32_t *before, uint32_t updates, uint32_t least)
{
    static const uint32_t numbers[] = {BIND_PARAMS, BIND_AVERAGE, BIND_MOMENT1, BIND_MOMENT2};
    struct blend b = {.t = t,
                      .buffers = buffers,
                      .model = &t->step.setup.model,
                      .before = before,
                      .updates = updates,
                      .least = least,
                      .entries = buffers->at[BIND_COUNTS].size / sizeof(uint32_t),
                      .params = t->step.setup.model.param_count};
    vkn_status status = allocate(&b);
    if (status == VKN_OK)
        status = count_steps(&b);
    for (size_t i = 0; i < BASE_COUNT(numbers) && status == VKN_OK; i++)
        status = blend_buffer(&b, numbers[i]);
    if (status == VKN_OK)
        status = put_counts(&b);
    free(b.counts);
    free(b.own);
    free(b.mean);
    free(b.values);
    free(b.kept);
    return status;
}

/* Cells that follow from the same weights are the same already, but for devices that round
 * differently. */
static vkn_status blend_occupancy(struct vkn_trainer *t)
{
    const struct gpu_buffer *buffer = &t->step.buffers.at[BIND_OCCUPANCY];
    float *cells = base_alloc(buffer->size, 1);
    vkn_status status = cells ? gpu_download(t->device, buffer, 0, cells, buffer->size) : VKN_ERROR;
    if (status == VKN_OK)
        status = parallel_max(t->parallel, cells, buffer->size / sizeof *cells);
    if (status == VKN_OK)
        status = gpu_upload(t->device, buffer, 0, cells, buffer->size);
    free(cells);
    return status == VKN_OK ? step_pack_occupancy(&t->step) : status;
}

static vkn_status blend_all(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    double began = base_seconds();
    uint32_t updates = 0, least = 0;
    BASE_TRY(updates_of(t, &updates));
    BASE_TRY(find_least(t, updates, &least));
    BASE_TRY(blend_field(t, &t->step.buffers, t->counts_before[0], updates, least));
    if (t->step.coarse.arena)
        BASE_TRY(blend_field(t, &t->step.coarse, t->counts_before[1], updates, least));
    BASE_TRY(blend_occupancy(t));
    BASE_TRY(step_round_parameters(&t->step));
    t->updates_before = updates;
    t->exchange.seconds += base_seconds() - began;
    loop->window.exchange += base_seconds() - began;
    profile_add_host(&t->profile, "exchange", began, t->steps_done);
    return VKN_OK;
}

/* What a rank begins with: the counts of steps. */
static vkn_status remember(struct vkn_trainer *t)
{
    const struct buffers *fields[] = {&t->step.buffers, &t->step.coarse};
    for (size_t i = 0; i < (t->step.coarse.arena ? 2 : 1); i++) {
        const struct gpu_buffer *buffer = &fields[i]->at[BIND_COUNTS];
        if (!t->counts_before[i])
            t->counts_before[i] = base_alloc(buffer->size, 1);
        if (!t->counts_before[i])
            return VKN_ERROR;
        BASE_TRY(gpu_download(t->device, buffer, 0, t->counts_before[i], buffer->size));
    }
    return updates_of(t, &t->updates_before);
}

/* ---- a run ------------------------------------------------------------------------------------
 */

/* Where the next period ends, as rank 0 says; *last: nowhere, the run is over. */
static vkn_status agree(struct loop *loop, struct note *notes, uint64_t limit, uint64_t *target,
                        bool *last)
{
    struct vkn_trainer *t = loop->trainer;
    uint64_t next = (t->steps_done / PERIOD_STEPS + 1) * PERIOD_STEPS;
    bool over = t->steps_done >= limit || loop_out_of_time(loop);
    const struct note mine = {
        .stop = loop_stopped(loop),
        .pause = !loop->follows && over,
        .step = t->steps_done,
        .target = next < limit ? next : limit,
        .seconds = loop_elapsed(loop),
    };
    double began = base_seconds();
    BASE_TRY(notes_exchange(t->parallel, &mine, notes));
    double waited = base_seconds() - began;
    t->exchange.waiting_seconds += waited;
    t->exchange.seconds += waited;
    loop->window.exchange += waited;
    together_hear(t, notes);
    *target = notes[0].target;
    *last = notes[0].pause || t->told_stop;
    return VKN_OK;
}

static vkn_status run_periods(struct loop *loop, struct note *notes)
{
    struct vkn_trainer *t = loop->trainer;
    struct Control *control = t->step.buffers.at[BIND_CONTROL].mapped;
    uint64_t limit = loop->limit, target = 0;
    bool last = false;
    t->told_seconds = t->seconds;
    t->told_stop = false;
    loop->bound = true;
    for (;;) {
        parallel_be_patient(t->parallel, t->steps_done == loop->from);
        BASE_TRY(agree(loop, notes, limit, &target, &last));
        if (last)
            return VKN_OK;
        double began = base_seconds();
        control->step_limit = (uint32_t)target;
        loop->limit = target;
        BASE_TRY(loop_run_periods(loop));
        BASE_TRY(blend_all(loop));
        t->exchange.step_seconds += base_seconds() - began;
    }
}

vkn_status average_run(struct loop *loop)
{
    struct note *notes = base_alloc(parallel_size(loop->trainer->parallel), sizeof *notes);
    vkn_status status = notes ? remember(loop->trainer) : VKN_ERROR;
    if (status == VKN_OK)
        status = run_periods(loop, notes);
    if (status == VKN_OK)
        status = together_check(loop->trainer, notes);
    free(notes);
    return status;
}
