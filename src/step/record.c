/* Records the passes of the training step into command buffers, and reads their timings. */
#include <string.h>

#include "step/internal.h"
#include "rays/rays.h"

const char *step_pass_label(const struct step_pass *pass)
{
    bool begins = pass->phase == STEP_INTERVAL_BEGIN && pass->first;
    return begins              ? "begin_update_interval"
           : pass->pass->label ? pass->pass->label
                               : pass->pass->name;
}

static const struct setup *setup_of(const struct step *step, const struct step_pass *pass)
{
    return pass->proposal ? &step->coarse_setup : &step->setup;
}

/* Returns the pass's entry of BIND_DISPATCHES. With fixed-point accumulators reduce_gradients also
 * converts the hash grid's gradients, so that it runs over all parameters. */
static int dispatch_of(const struct step *step, const struct step_pass *placed)
{
    const struct pass *pass = placed->pass;
    int offset = placed->learns ? DISPATCH_PROPOSAL : 0;
    if (pass->gpu_dispatch && !step->setup.specialization.values[SPEC_CPU_KERNELS])
        return offset + pass->gpu_dispatch;
    bool converts = step->setup.backend.sums == VKN_SUMS_FIXED;
    return offset + (pass->variant == FIELD_REDUCE && converts ? DISPATCH_PARAMS : pass->dispatch);
}

static void dispatch(struct step *step, struct gpu_recording *recording,
                     const struct step_pass *pass, const struct Push *push)
{
    const struct sample_set *set = &step->sets[pass->set];
    const struct gpu_bindings *bindings = pass->pass->average ? set->inference : set->training;
    if (pass->pass->dispatch == PASS_ONE_WORKGROUP)
        gpu_record_dispatch(recording, pass->pipeline, bindings, push, sizeof *push, 1);
    else
        gpu_record_dispatch_indirect(recording, pass->pipeline, bindings, push, sizeof *push,
                                     &step->buffers.at[BIND_DISPATCHES],
                                     (size_t)dispatch_of(step, pass) * sizeof(struct Dispatch));
}

/* Copies the step's state to a further set of samples and clears the set's counts. Only the step's
 * own state decides which workgroups run. */
static void begin_set(const struct step *step, struct gpu_recording *recording, uint32_t number)
{
    const struct gpu_buffer *state = &step->sets[number].own.at[BIND_STATE];
    const size_t counts[] = {offsetof(struct State, sample_count),
                             offsetof(struct State, live_count), offsetof(struct State, live_rays)};
    if (!state->handle)
        return;
    gpu_record_barrier(recording);
    gpu_record_copy(recording, &step->buffers.at[BIND_STATE], 0, state, 0, sizeof(struct State));
    gpu_record_barrier(recording);
    for (size_t i = 0; i < BASE_COUNT(counts); i++)
        gpu_record_fill(recording, state, counts[i], sizeof(uint32_t), 0);
    gpu_record_barrier(recording);
}

static void begin_timing(const struct step *step, struct gpu_recording *recording,
                         const struct step_pass *pass, uint32_t slot)
{
    if (step->profile || slot >= UPDATE_INTERVAL - 1)
        gpu_record_timestamp(recording, step_pass_label(pass));
}

static void end_timing(const struct step *step, struct gpu_recording *recording)
{
    if (step->profile)
        gpu_record_timestamp(recording, NULL);
}

void step_record_pass(struct step *step, struct gpu_recording *recording,
                      const struct step_pass *pass, uint32_t slot, uint32_t chunk, bool timed)
{
    struct Push push = {.a = slot, .b = step->local_size, .d = chunk, .e = pass->pass->rows};
    if (pass->begins_set)
        begin_set(step, recording, pass->set);
    if (timed)
        begin_timing(step, recording, pass, slot);
    const struct repeats repeats = setup_repeats(setup_of(step, pass));
    uint32_t rounds = pass_loop_count(pass->pass, &repeats);
    for (uint32_t round = 0; round < rounds; round++) {
        push.c = pass_loop_index(pass->pass, &repeats, round);
        if (round > 0)
            gpu_record_compute_barrier(recording);
        dispatch(step, recording, pass, &push);
    }
    if (timed)
        end_timing(step, recording);
    if (pass->pass->writes_dispatches)
        gpu_record_barrier(recording);
    else if (pass->pass->place != PASS_JOINS_BEFORE)
        gpu_record_compute_barrier(recording);
}

uint32_t step_pass_chunks(const struct step *step, size_t pass)
{
    const struct repeats repeats = setup_repeats(setup_of(step, &step->passes[pass]));
    return pass_chunks(step->passes[pass].pass, &repeats);
}

size_t step_chunk_end(const struct step *step, size_t first)
{
    size_t end = first + 1;
    while (end < step->pass_count &&
           pass_shares_chunks(step->passes[first].pass, step->passes[end].pass))
        end++;
    return end;
}

/* The part of a step that is being recorded. */
struct range {
    struct gpu_recording *recording;
    uint32_t slot;
    uint32_t bucket, bucket_end;   /* buckets of the passes that run by bucket */
    bool begun[STEP_MAX_SETS];     /* sets of samples that have begun */
    bool joins_before, joins_next; /* the step is joined to its neighbours */
};

static struct range range_of_step(struct gpu_recording *recording, uint32_t slot)
{
    return (struct range){
        .recording = recording, .slot = slot, .bucket_end = UINT32_MAX, .begun = {true}};
}

static void record_in_range(struct step *step, struct range *range, size_t number, uint32_t chunk,
                            bool timed)
{
    struct step_pass pass = step->passes[number];
    if (!step_pass_runs(&pass, range->joins_before, range->joins_next))
        return;
    pass.begins_set = !range->begun[pass.set];
    range->begun[pass.set] = true;
    if (step_begins_submission(step, number))
        gpu_record_split(range->recording);
    step_record_pass(step, range->recording, &pass, range->slot, chunk, timed);
}

/* Records passes for each chunk. If all have one label, their chunks are timed as a whole, because
 * there may be more chunks than timestamps. */
static void record_chunks(struct step *step, struct range *range, size_t first, size_t end)
{
    uint32_t chunks = step_pass_chunks(step, first);
    const struct step_pass *begin = &step->passes[first];
    bool as_one_range =
        begin->pass->by_chunk &&
        strcmp(step_pass_label(begin), step_pass_label(&step->passes[end - 1])) == 0;
    if (as_one_range)
        begin_timing(step, range->recording, begin, range->slot);
    uint32_t chunk = begin->pass->by_bucket ? range->bucket : 0;
    if (begin->pass->by_bucket && range->bucket_end < chunks)
        chunks = range->bucket_end;
    for (; chunk < chunks; chunk++)
        for (size_t i = first; i < end; i++)
            record_in_range(step, range, i, chunk, !as_one_range);
    if (as_one_range)
        end_timing(step, range->recording);
}

bool step_pass_runs(const struct step_pass *pass, bool joins_before, bool joins_next)
{
    switch (pass->pass->place) {
    case PASS_AT_BEGIN:
        return !joins_before;
    case PASS_AT_END:
        return !joins_next;
    case PASS_JOINS_NEXT:
        return joins_next;
    case PASS_JOINS_BEFORE:
        return joins_before;
    default:
        return true;
    }
}

static void record_part(struct step *step, struct range range, const char *from, const char *until)
{
    bool started = from == NULL;
    for (size_t i = 0, end; i < step->pass_count; i = end) {
        const struct pass *pass = step->passes[i].pass;
        end = i + 1;
        if (step->passes[i].phase != STEP_EVERY ||
            !step_pass_runs(&step->passes[i], range.joins_before, range.joins_next))
            continue;
        if (until && strcmp(pass->name, until) == 0)
            return;
        started = started || strcmp(pass->name, from) == 0;
        if (!started)
            continue;
        end = step_chunk_end(step, i);
        record_chunks(step, &range, i, end);
    }
}

void step_record_part(struct step *step, struct gpu_recording *recording, uint32_t slot,
                      const char *from, const char *until)
{
    record_part(step, range_of_step(recording, slot), from, until);
}

void step_record_segment(struct step *step, struct gpu_recording *recording,
                         const struct segment *segment)
{
    struct range range = range_of_step(recording, ANY_STEP);
    range.bucket = segment->bucket;
    range.bucket_end = segment->bucket_end;
    for (size_t i = segment->from, end; i < segment->end; i = end) {
        end = step_chunk_end(step, i);
        if (step->passes[i].phase == STEP_EVERY)
            record_chunks(step, &range, i, end);
    }
}

void step_record_interval_passes(struct step *step, struct gpu_recording *recording,
                                 enum step_phase phase)
{
    struct range range = range_of_step(recording, UPDATE_INTERVAL);
    for (size_t i = 0, end; i < step->pass_count; i = end) {
        end = i + 1;
        if (step->passes[i].phase != phase)
            continue;
        end = step_chunk_end(step, i);
        record_chunks(step, &range, i, end);
    }
    gpu_record_timestamp(recording, NULL);
}

vkn_status step_record_and_run(const struct step *step, const char *name, step_recorder *record)
{
    GPU_ONCE(step->device, name);
    record(step, recording);
    return gpu_run_once(&recording);
}

vkn_status step_record_interval(struct step *step, uint32_t number)
{
    struct gpu_recording **recording = &step->intervals[number];
    step->submission_seconds = 0;
    step->planned_seconds[number] = step_interval_seconds(step);
    uint32_t timestamps = step->profile ? 2 * STEP_MAX_TIMINGS + 2 : 2 * STEP_MAX_TIMED + 2;
    BASE_TRY(gpu_record_begin(step->device, "update interval", timestamps, recording));
    step_record_interval_passes(step, *recording, STEP_INTERVAL_BEGIN);
    step_record_interval_passes(step, *recording, STEP_INTERVAL_GRID);
    /* The last step is joined to none: it is timed, and computes the norm. */
    uint32_t joined = step->joined[number] ? UPDATE_INTERVAL - 1 : 0;
    for (uint32_t slot = 0; slot < UPDATE_INTERVAL; slot++) {
        struct range range = range_of_step(*recording, slot);
        range.joins_before = slot > 0 && slot < joined;
        range.joins_next = slot + 1 < joined;
        record_part(step, range, NULL, NULL);
    }
    step_record_interval_passes(step, *recording, STEP_INTERVAL_END);
    return gpu_record_end(*recording);
}

vkn_status step_submit(struct step *step, uint32_t recording)
{
    return gpu_submit(step->intervals[recording]);
}

vkn_status step_wait(struct step *step, uint32_t recording)
{
    return gpu_wait(step->intervals[recording]);
}

bool step_wait_a_while(const struct step *step, uint32_t recording, double seconds)
{
    return gpu_wait_timeout(step->intervals[recording], seconds);
}

/* ---- times ----------------------------------------------------------------------------------- */

vkn_status step_profile(struct step *step)
{
    step->profile = true;
    for (uint32_t i = 0; i < STEP_RECORDINGS && !step->ranks; i++) {
        gpu_recording_destroy(&step->intervals[i]);
        step->joined[i] = false;
        BASE_TRY(step_record_interval(step, i));
    }
    return VKN_OK;
}

static const struct step_pass *pass_of_label(const struct step *step, const char *label)
{
    for (size_t i = 0; i < step->pass_count; i++)
        if (strcmp(step_pass_label(&step->passes[i]), label) == 0)
            return &step->passes[i];
    return NULL;
}

/* Returns whether the pass already has a timing in the last slot. */
static bool has_run(const struct step_timing *timings, uint32_t count, const char *name,
                    uint32_t slot)
{
    while (count > 0 && timings[count - 1].slot == slot)
        if (strcmp(timings[--count].name, name) == 0)
            return true;
    return false;
}

/* Reads the timings of a recording that begins after `steps_begun` steps of the update interval. */
static uint32_t timings_from(const struct step *step, struct gpu_recording *recording,
                             uint32_t steps_begun, struct step_timing *timings)
{
    const char *labels[2 * STEP_MAX_TIMINGS + 2];
    double milliseconds[2 * STEP_MAX_TIMINGS + 2], now = gpu_recording_start(recording);
    uint32_t intervals = gpu_recording_times(recording, labels, milliseconds, BASE_COUNT(labels));
    uint32_t count = 0;
    for (uint32_t i = 0; i < intervals; i++) {
        double end = now + 1e-3 * milliseconds[i];
        const struct step_pass *pass = labels[i] ? pass_of_label(step, labels[i]) : NULL;
        bool every_step = pass && pass->phase == STEP_EVERY;
        if (every_step && pass->first)
            steps_begun++;
        if (labels[i] && count < STEP_MAX_TIMINGS) {
            uint32_t slot = every_step ? steps_begun - 1 : UPDATE_INTERVAL;
            timings[count] = (struct step_timing){
                .again = has_run(timings, count, labels[i], slot),
                .name = labels[i],
                .slot = slot,
                .begin = now,
                .end = end,
            };
            count++;
        }
        now = end;
    }
    return count;
}

uint32_t step_timings(struct step *step, uint32_t recording,
                      struct step_timing timings[STEP_MAX_TIMINGS])
{
    return timings_from(step, step->intervals[recording], step->profile ? 0 : UPDATE_INTERVAL - 1,
                        timings);
}

uint32_t step_append_timings(const struct step *step, struct gpu_recording *recording,
                             uint32_t slot, struct step_timing *timings, uint32_t before)
{
    uint32_t count = before + timings_from(step, recording, 0, timings + before);
    for (uint32_t i = before; i < count; i++) {
        if (timings[i].slot != UPDATE_INTERVAL)
            timings[i].slot = slot;
        timings[i].again = has_run(timings, i, timings[i].name, timings[i].slot);
    }
    return count;
}
