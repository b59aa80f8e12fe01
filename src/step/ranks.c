/* Records and runs the two halves of a synchronous step: gradients of each rank's rays, then the
 * update from all-reduced gradients. A device may compute several virtual ranks in turn. */
#include <stdlib.h>
#include <string.h>

#include "step/ranks.h"

static const char second_half[] = "import_step_stats"; /* the first pass of the second half */

/* Returns the first pass in [from, cut) that runs by bucket, or `cut`. */
static size_t find_bucket(const struct step *step, size_t from, size_t cut)
{
    while (from < cut && !step->passes[from].pass->by_bucket)
        from++;
    return from;
}

/* Returns the end of the passes with coarse samples in the first half. */
static size_t coarse_end(const struct step *step, size_t cut)
{
    while (cut > 0 && step->passes[cut - 1].set != SET_COARSE)
        cut--;
    return cut;
}

/* Returns the first pass of the second half. */
static size_t cut_of(const struct step *step)
{
    size_t cut = 0;
    while (strcmp(step->passes[cut].pass->name, second_half) != 0)
        cut++;
    return cut;
}

/* Splits the first half into segments that each complete one gradient bucket, so that a bucket can
 * be all-reduced while the next is computed. The coarse field's bucket is first; then follow groups
 * of hash grid levels. */
static void split_first_half(const struct step *step, struct step_ranks *ranks)
{
    size_t cut = cut_of(step), begin = 0;
    uint32_t buckets = step->setup.buckets, count = 0;
    if (step->setup.overlaps && ranks->fields > 1) {
        begin = coarse_end(step, cut);
        ranks->segments[count++] = (struct segment){0, begin, 0, step->coarse_setup.buckets, 1, 1};
    }
    size_t first = find_bucket(step, begin, cut);
    size_t end = first < cut ? step_chunk_end(step, first) : cut;
    uint32_t fields = count > 0 ? 1 : ranks->fields;
    for (uint32_t bucket = 0; bucket < buckets; bucket++)
        ranks->segments[count++] = (struct segment){bucket == 0 ? begin : first,
                                                    bucket + 1 == buckets ? cut : end,
                                                    bucket,
                                                    bucket + 1,
                                                    0,
                                                    fields};
    ranks->buckets = count;
}

vkn_status step_ranks_create(struct step *step)
{
    if (step->setup.backend.sums == VKN_SUMS_F16 &&
        step->setup.config.parallel.communication_type != VKN_COMMUNICATION_F16)
        return base_fail(VKN_BAD_INPUT,
                         "config: parallel.communication_type: gradient_sums=f16 needs f16");
    struct step_ranks *ranks = base_alloc(1, sizeof *ranks);
    if (!ranks)
        return VKN_ERROR;
    step->ranks = ranks;
    ranks->turns = setup_virtual_ranks(&step->setup.config);
    ranks->fields = step_field_count(step);
    ranks->first_ray = step->setup.constants.first_ray;
    ranks->direct = ranks->turns == 1 && step->buffers.at[BIND_GRADIENTS].mapped;
    split_first_half(step, ranks);
    return ranks_allocate(step, ranks);
}

static void forget_recordings(struct step_ranks *ranks)
{
    gpu_recording_destroy(&ranks->begin);
    gpu_recording_destroy(&ranks->grid);
    for (uint32_t bucket = 0; bucket < MAX_SEGMENTS; bucket++) {
        for (uint32_t turn = 0; turn < ranks->turns; turn++)
            gpu_recording_destroy(&ranks->first_half[turn][bucket]);
        gpu_recording_destroy(&ranks->imports[bucket]);
    }
    gpu_recording_destroy(&ranks->second_half);
}

void step_ranks_destroy(struct step_ranks **destroyed)
{
    struct step_ranks *ranks = *destroyed;
    if (!ranks)
        return;
    *destroyed = NULL;
    forget_recordings(ranks);
    gpu_arena_destroy(&ranks->arena);
    free(ranks);
}

uint32_t step_virtual_ranks(const struct step *step)
{
    return step->ranks->turns;
}

/* ---- recording ----------------------------------------------------------------------------- */

static void record_constant(const struct step *step, struct gpu_recording *recording, size_t offset,
                            uint32_t value)
{
    const struct gpu_buffer *proposal = &step->coarse.at[BIND_CONFIG];
    gpu_record_fill(recording, &step->buffers.at[BIND_CONFIG], offset, sizeof value, value);
    if (proposal->handle)
        gpu_record_fill(recording, proposal, offset, sizeof value, value);
}

/* Records the constants that determine the rays and views of a turn. */
static void record_turn_constants(const struct step *step, struct gpu_recording *recording,
                                  uint32_t turn)
{
    const struct Config *constants = &step->setup.constants;
    uint32_t first_view = constants->first_view + turn;
    record_constant(step, recording, offsetof(struct Config, first_ray),
                    step->ranks->first_ray + turn * constants->ray_capacity);
    if (constants->view_stride == 1)
        return; /* all turns draw from the same views */
    record_constant(step, recording, offsetof(struct Config, first_view), first_view);
    record_constant(step, recording, offsetof(struct Config, view_count),
                    step_view_count(constants, first_view));
}

static void record_state(const struct step *step, struct gpu_recording *recording, bool back)
{
    const struct copy state = {.in_step = &step->buffers.at[BIND_STATE],
                               .in_ranks = &step->ranks->saved_state,
                               .size = sizeof(struct State)};
    gpu_record_barrier(recording);
    ranks_record_copy(recording, state, back);
}

/* Records the start of a turn: every turn begins with the same state and zero gradients. */
static void record_turn(const struct step *step, struct gpu_recording *recording, uint32_t turn)
{
    const struct step_ranks *ranks = step->ranks;
    record_state(step, recording, turn > 0);
    if (turn > 0)
        step_record_clear_gradients(step, recording);
    if (ranks->turns > 1)
        record_turn_constants(step, recording, turn);
    gpu_record_barrier(recording);
}

static vkn_status begin_recording(const struct step *step, const char *name,
                                  struct gpu_recording **recording)
{
    return gpu_record_begin(step->device, name, 2 * STEP_MAX_TIMED + 2, recording);
}

static vkn_status record_begin(struct step *step, struct gpu_recording **recording)
{
    BASE_TRY(begin_recording(step, "start of an update interval", recording));
    record_state(step, *recording, false);
    gpu_record_barrier(*recording);
    step_record_interval_passes(step, *recording, STEP_INTERVAL_BEGIN);
    ranks_record_interval(step, *recording, false);
    return gpu_record_end(*recording);
}

static vkn_status record_grid(struct step *step, struct gpu_recording **recording)
{
    BASE_TRY(begin_recording(step, "occupancy grid update", recording));
    ranks_record_interval(step, *recording, true);
    step_record_interval_passes(step, *recording, STEP_INTERVAL_GRID);
    return gpu_record_end(*recording);
}

static vkn_status record_first(struct step *step, uint32_t turn, uint32_t bucket)
{
    struct step_ranks *ranks = step->ranks;
    struct gpu_recording **recording = &ranks->first_half[turn][bucket];
    BASE_TRY(begin_recording(step, "step up to its gradients", recording));
    if (bucket == 0)
        record_turn(step, *recording, turn);
    step_record_segment(step, *recording, &ranks->segments[bucket]);
    gpu_record_timestamp(*recording, NULL);
    ranks_record_bucket(step, *recording, turn, bucket, false);
    if (bucket + 1 == ranks->buckets)
        ranks_record_stats(step, *recording, turn, false);
    return gpu_record_end(*recording);
}

static vkn_status record_import(struct step *step, uint32_t bucket)
{
    struct gpu_recording **recording = &step->ranks->imports[bucket];
    BASE_TRY(gpu_record_begin(step->device, "import of gradients", 0, recording));
    ranks_record_bucket(step, *recording, 0, bucket, true);
    return gpu_record_end(*recording);
}

static vkn_status record_second(struct step *step, struct gpu_recording **recording)
{
    BASE_TRY(begin_recording(step, "step from its gradients", recording));
    ranks_record_stats(step, *recording, 0, true);
    step_record_part(step, *recording, ANY_STEP, second_half, NULL);
    step_record_interval_passes(step, *recording, STEP_INTERVAL_END);
    return gpu_record_end(*recording);
}

/* ---- measuring the first step, pass by pass -------------------------------------------------- */

static void record_save_state(const struct step *step, struct gpu_recording *recording)
{
    record_state(step, recording, false);
}

static void record_cells_export(const struct step *step, struct gpu_recording *recording)
{
    ranks_record_interval(step, recording, false);
}

static void record_cells_import(const struct step *step, struct gpu_recording *recording)
{
    ranks_record_interval(step, recording, true);
}

static vkn_status measure_begin(struct step *step)
{
    BASE_TRY(step_record_and_run(step, "first step", record_save_state));
    BASE_TRY(step_measure_passes(step, STEP_INTERVAL_BEGIN, UPDATE_INTERVAL, 0, step->pass_count));
    return step_record_and_run(step, "first step", record_cells_export);
}

static vkn_status measure_grid(struct step *step)
{
    BASE_TRY(step_record_and_run(step, "first step", record_cells_import));
    return step_measure_passes(step, STEP_INTERVAL_GRID, UPDATE_INTERVAL, 0, step->pass_count);
}

static void record_first_turn(const struct step *step, struct gpu_recording *recording)
{
    record_turn(step, recording, 0);
}

static void record_exports(const struct step *step, struct gpu_recording *recording)
{
    for (uint32_t bucket = 0; bucket < step->ranks->buckets; bucket++)
        ranks_record_bucket(step, recording, 0, bucket, false);
    ranks_record_stats(step, recording, 0, false);
}

static void record_statistics_import(const struct step *step, struct gpu_recording *recording)
{
    ranks_record_stats(step, recording, 0, true);
}

static vkn_status measure_first(struct step *step)
{
    BASE_TRY(step_record_and_run(step, "first step", record_first_turn));
    step->ranks->state_saved = true;
    BASE_TRY(step_measure_passes(step, STEP_EVERY, ANY_STEP, 0, cut_of(step)));
    return step_record_and_run(step, "first step", record_exports);
}

static vkn_status measure_second(struct step *step)
{
    BASE_TRY(step_record_and_run(step, "first step", record_statistics_import));
    BASE_TRY(step_measure_passes(step, STEP_EVERY, ANY_STEP, cut_of(step), step->pass_count));
    BASE_TRY(step_measure_passes(step, STEP_INTERVAL_END, UPDATE_INTERVAL, 0, step->pass_count));
    step->measured = true;
    forget_recordings(step->ranks);
    return VKN_OK;
}

/* ---- running ------------------------------------------------------------------------------- */

/* Once per update interval, drops the recordings if the passes' times have changed too much. */
static void choose_submissions(struct step *step)
{
    struct step_ranks *ranks = step->ranks;
    if (step_submissions_differ(step, ranks->planned_seconds))
        forget_recordings(ranks);
    if (!ranks->first_half[0][0])
        ranks->planned_seconds = step_interval_seconds(step);
}

static vkn_status submit_begin(struct step *step)
{
    struct step_ranks *ranks = step->ranks;
    if (ranks->measuring)
        return measure_begin(step);
    choose_submissions(step);
    step->submission_seconds = 0;
    if (!ranks->begin)
        BASE_TRY(record_begin(step, &ranks->begin));
    return gpu_submit(ranks->begin);
}

static vkn_status submit_grid(struct step *step)
{
    struct step_ranks *ranks = step->ranks;
    if (ranks->measuring)
        return measure_grid(step);
    if (!ranks->grid)
        BASE_TRY(record_grid(step, &ranks->grid));
    return gpu_submit(ranks->grid);
}

vkn_status step_begin_interval(struct step *step, uint64_t number, step_all_reduce *combine,
                               void *context)
{
    struct step_ranks *ranks = step->ranks;
    const struct {
        struct step_span span;
        enum step_reduction reduction;
    } exchanged[] = {{ranks_cells(step), STEP_MAXIMUM}, {ranks_errors(step), STEP_ERRORS}};
    bool exchanges = exchanged[0].span.values || exchanged[1].span.values;
    /* A training that is resumed within an update interval computes the sums of the error map
     * again; begin_step then disables the other passes of the occupancy update. */
    bool resumes = step->setup.constants.error_share > 0 && number != ranks->next;
    ranks->begins_interval = number % UPDATE_INTERVAL == 0 || resumes;
    ranks->next = number + 1;
    ranks->measuring = step_splits_submissions(step) && !step->measured;
    if (ranks->measuring)
        step_reset_times(step, ranks->begins_interval);
    if (!ranks->begins_interval)
        return VKN_OK;
    BASE_TRY(submit_begin(step));
    ranks->state_saved = true;
    if (exchanges && !ranks->measuring)
        BASE_TRY(gpu_wait(ranks->begin));
    for (size_t i = 0; number % UPDATE_INTERVAL == 0 && i < BASE_COUNT(exchanged); i++)
        if (exchanged[i].span.values)
            BASE_TRY(combine(context, exchanged[i].span.values, exchanged[i].span.count,
                             exchanged[i].reduction));
    return submit_grid(step);
}

vkn_status step_submit_gradients(struct step *step, uint32_t turn)
{
    struct step_ranks *ranks = step->ranks;
    if (ranks->measuring && turn == 0)
        return measure_first(step);
    step->submission_seconds = 0;
    for (uint32_t bucket = 0; bucket < ranks->buckets; bucket++) {
        if (!ranks->first_half[turn][bucket])
            BASE_TRY(record_first(step, turn, bucket));
        BASE_TRY(gpu_submit(ranks->first_half[turn][bucket]));
        ranks->state_saved = true;
    }
    return VKN_OK;
}

vkn_status step_wait_bucket(struct step *step, uint32_t turn, uint32_t bucket)
{
    const struct step_ranks *ranks = step->ranks;
    if (turn == 0 && ranks->measuring)
        return VKN_OK;
    if (turn == 0 && bucket == 0 && ranks->begins_interval) {
        BASE_TRY(gpu_wait(ranks->begin));
        BASE_TRY(gpu_wait(ranks->grid));
    }
    return gpu_wait(ranks->first_half[turn][bucket]);
}

bool step_wait_bucket_a_while(const struct step *step, uint32_t turn, uint32_t bucket,
                              double seconds)
{
    const struct gpu_recording *recording = step->ranks->first_half[turn][bucket];
    return !recording || gpu_wait_timeout(recording, seconds);
}

vkn_status step_submit_bucket(struct step *step, uint32_t bucket)
{
    struct step_ranks *ranks = step->ranks;
    if (ranks->direct)
        return VKN_OK;
    if (!ranks->imports[bucket])
        BASE_TRY(record_import(step, bucket));
    return gpu_submit(ranks->imports[bucket]);
}

vkn_status step_submit_weights(struct step *step)
{
    struct step_ranks *ranks = step->ranks;
    ranks->state_saved = false;
    if (ranks->measuring)
        return measure_second(step);
    if (!ranks->second_half) {
        step->submission_seconds = 0;
        BASE_TRY(record_second(step, &ranks->second_half));
    }
    return gpu_submit(ranks->second_half);
}

vkn_status step_wait_weights(struct step *step)
{
    return step->ranks->measuring ? VKN_OK : gpu_wait(step->ranks->second_half);
}

static void record_abandon(const struct step *step, struct gpu_recording *recording)
{
    record_state(step, recording, true);
    step_record_clear_gradients(step, recording);
}

vkn_status step_abandon(struct step *step)
{
    return step->ranks->state_saved ? step_record_and_run(step, "step not taken", record_abandon)
                                    : VKN_OK;
}

/* ---- times ----------------------------------------------------------------------------------- */

uint32_t step_half_timings(struct step *step, bool begin, uint64_t number,
                           struct step_timing timings[STEP_MAX_TIMINGS])
{
    const struct step_ranks *ranks = step->ranks;
    uint32_t count = 0, slot = number % UPDATE_INTERVAL;
    if (ranks->measuring || (begin && !ranks->begins_interval))
        return 0;
    if (begin) {
        count = step_append_timings(step, ranks->begin, UPDATE_INTERVAL, timings, 0);
        return step_append_timings(step, ranks->grid, UPDATE_INTERVAL, timings, count);
    }
    for (uint32_t turn = 0; turn < ranks->turns; turn++)
        for (uint32_t bucket = 0; bucket < ranks->buckets; bucket++)
            if (count + 2 * STEP_MAX_TIMED <= STEP_MAX_TIMINGS)
                count = step_append_timings(step, ranks->first_half[turn][bucket], slot, timings,
                                            count);
    return step_append_timings(step, ranks->second_half, slot, timings, count);
}
