/* A step that several ranks take together, in two halves: each from rays to gradients by itself,
 * all from the sums of these to the same weights. One device may play several ranks, turn by turn.
 */
#include <stdlib.h>
#include <string.h>

#include "pipeline/internal.h"

struct step_ranks {
    uint32_t turns, fields;
    uint32_t first_ray; /* of the first turn */
    bool direct;        /* the host works on the gradients where they are */
    struct gpu_arena *arena;
    struct gpu_buffer before; /* the state that all turns begin with */
    struct gpu_buffer gradients[STEP_MAX_TURNS][STEP_FIELDS]; /* host memory, by turn */
    struct gpu_buffer found[STEP_MAX_TURNS];
    /* Recorded when they are first used; NULL: not yet, or anew for other parts. */
    struct gpu_recording *begin; /* of a period */
    struct gpu_recording *first[STEP_MAX_TURNS], *second;
    double planned; /* seconds of a period when the parts were chosen */
    bool began, measured_first, measured_second; /* in this step */
};

static const char second_half[] = "take_sums"; /* the pass that it begins with */

/* ---- memory -------------------------------------------------------------------------------- */

uint64_t pipeline_ranks_memory(const struct setup *setup, bool coarse)
{
    uint64_t gradients = 4ull * setup->model.param_count * (coarse ? 2 : 1);
    if (setup->constants.ranks < 2)
        return 0;
    return sizeof(struct State) +
           pipeline_turns(&setup->config) * (gradients + STEP_FIELDS * sizeof(struct Found));
}

static vkn_status allocate(const struct step *step, struct step_ranks *ranks)
{
    struct gpu_buffer_request requests[1 + STEP_MAX_TURNS * (STEP_FIELDS + 1)];
    uint64_t size = step->buffers.at[BIND_GRADIENTS].size;
    size_t count = 0;
    requests[count++] = (struct gpu_buffer_request){&ranks->before, "state before a turn",
                                                    sizeof(struct State), GPU_DEVICE};
    for (uint32_t turn = 0; turn < ranks->turns; turn++) {
        for (uint32_t i = 0; i < ranks->fields && !ranks->direct; i++)
            requests[count++] = (struct gpu_buffer_request){&ranks->gradients[turn][i],
                                                            "exchanged gradients", size, GPU_HOST};
        requests[count++] = (struct gpu_buffer_request){
            &ranks->found[turn], "exchanged figures", STEP_FIELDS * sizeof(struct Found), GPU_HOST};
    }
    return gpu_arena_create(step->device, requests, count, &ranks->arena);
}

vkn_status pipeline_ranks_create(struct step *step)
{
    if (step->setup.backend.sums == VKN_SUMS_HALF)
        return base_fail(VKN_BAD_INPUT,
                         "config: gradient_sums: half: ranks that train together add up in f32");
    struct step_ranks *ranks = base_alloc(1, sizeof *ranks);
    if (!ranks)
        return VKN_ERROR;
    step->ranks = ranks;
    ranks->turns = pipeline_turns(&step->setup.config);
    ranks->fields = step->coarse.arena ? 2 : 1;
    ranks->first_ray = step->setup.constants.first_ray;
    ranks->direct = ranks->turns == 1 && step->buffers.at[BIND_GRADIENTS].mapped;
    return allocate(step, ranks);
}

static void forget_recordings(struct step_ranks *ranks)
{
    gpu_recording_destroy(&ranks->begin);
    for (uint32_t turn = 0; turn < ranks->turns; turn++)
        gpu_recording_destroy(&ranks->first[turn]);
    gpu_recording_destroy(&ranks->second);
}

void pipeline_ranks_destroy(struct step_ranks **destroyed)
{
    struct step_ranks *ranks = *destroyed;
    if (!ranks)
        return;
    *destroyed = NULL;
    forget_recordings(ranks);
    gpu_arena_destroy(&ranks->arena);
    free(ranks);
}

uint32_t step_turns(const struct step *step)
{
    return step->ranks->turns;
}

static const struct gpu_buffer *gradients_of(const struct step *step, uint32_t field)
{
    return &(field > 0 ? &step->coarse : &step->buffers)->at[BIND_GRADIENTS];
}

struct step_found step_found(const struct step *step, uint32_t turn)
{
    const struct step_ranks *ranks = step->ranks;
    struct step_found found = {.fields = ranks->fields,
                               .count = step->setup.model.param_count,
                               .sums = ranks->found[turn].mapped};
    for (uint32_t i = 0; i < ranks->fields; i++)
        found.gradients[i] =
            ranks->direct ? gradients_of(step, i)->mapped : ranks->gradients[turn][i].mapped;
    return found;
}

/* ---- recording ----------------------------------------------------------------------------- */

/* Another rank's rays; all begin with the same state and no gradients. */
static void record_turn(const struct step *step, struct gpu_recording *recording, uint32_t turn)
{
    const struct step_ranks *ranks = step->ranks;
    const struct gpu_buffer *state = &step->buffers.at[BIND_STATE];
    gpu_record_barrier(recording);
    gpu_record_copy(recording, turn > 0 ? &ranks->before : state, 0,
                    turn > 0 ? state : &ranks->before, 0, sizeof(struct State));
    for (uint32_t i = 0; turn > 0 && i < ranks->fields; i++)
        gpu_record_fill(recording, gradients_of(step, i), 0, UINT64_MAX, 0);
    if (ranks->turns > 1)
        gpu_record_fill(recording, &step->buffers.at[BIND_CONFIG],
                        offsetof(struct Config, first_ray), sizeof(uint32_t),
                        ranks->first_ray + turn * step->setup.constants.ray_capacity);
    gpu_record_barrier(recording);
}

/* Of what is exchanged, from the device or to it. */
static void record_exchange(const struct step *step, struct gpu_recording *recording, uint32_t turn,
                            bool back)
{
    const struct step_ranks *ranks = step->ranks;
    const struct gpu_buffer *reduce = &step->buffers.at[BIND_REDUCE], *found = &ranks->found[turn];
    const uint64_t at = sizeof(float) * REDUCE_FOUND;
    gpu_record_barrier(recording);
    for (uint32_t i = 0; i < ranks->fields && !ranks->direct; i++) {
        const struct gpu_buffer *host = &ranks->gradients[turn][i], *own = gradients_of(step, i);
        gpu_record_copy(recording, back ? host : own, 0, back ? own : host, 0, own->size);
    }
    gpu_record_copy(recording, back ? found : reduce, back ? 0 : at, back ? reduce : found,
                    back ? at : 0, found->size);
    gpu_record_barrier(recording);
}

static vkn_status begin_recording(const struct step *step, const char *name,
                                  struct gpu_recording **recording)
{
    return gpu_record_begin(step->device, name, 2 * STEP_MAX_TIMED + 2, recording);
}

static vkn_status record_begin(struct step *step, struct gpu_recording **recording)
{
    BASE_TRY(begin_recording(step, "begin of a period", recording));
    pipeline_record_once(step, *recording, STEP_PERIOD_BEGIN);
    return gpu_record_end(*recording);
}

static vkn_status record_first(struct step *step, uint32_t turn, struct gpu_recording **recording)
{
    BASE_TRY(begin_recording(step, "step up to its gradients", recording));
    record_turn(step, *recording, turn);
    step_record_part(step, *recording, ANY_SLOT, NULL, second_half);
    gpu_record_timestamp(*recording, NULL);
    record_exchange(step, *recording, turn, false);
    return gpu_record_end(*recording);
}

static vkn_status record_second(struct step *step, struct gpu_recording **recording)
{
    BASE_TRY(begin_recording(step, "step from its gradients", recording));
    record_exchange(step, *recording, 0, true);
    step_record_part(step, *recording, ANY_SLOT, second_half, NULL);
    pipeline_record_once(step, *recording, STEP_PERIOD_END);
    return gpu_record_end(*recording);
}

/* ---- the first step on a device that nobody knows, pass by pass ------------------------------ */

typedef void record_function(const struct step *step, struct gpu_recording *recording,
                             uint32_t turn);

static void record_out(const struct step *step, struct gpu_recording *recording, uint32_t turn)
{
    record_exchange(step, recording, turn, false);
}

static void record_in(const struct step *step, struct gpu_recording *recording, uint32_t turn)
{
    record_exchange(step, recording, turn, true);
}

static vkn_status run_alone(const struct step *step, record_function *record)
{
    struct gpu_recording *recording = NULL;
    vkn_status status = gpu_record_begin(step->device, "first step", 0, &recording);
    if (status == VKN_OK) {
        record(step, recording, 0);
        status = gpu_run_once(recording);
    }
    gpu_recording_destroy(&recording);
    return status;
}

static size_t cut_of(const struct step *step)
{
    size_t cut = 0;
    while (strcmp(step->passes[cut].pass->name, second_half) != 0)
        cut++;
    return cut;
}

static vkn_status measure_first(struct step *step, bool begins)
{
    pipeline_forget_times(step, begins);
    BASE_TRY(pipeline_measure(step, STEP_PERIOD_BEGIN, PERIOD_STEPS, 0, step->pass_count));
    BASE_TRY(run_alone(step, record_turn));
    BASE_TRY(pipeline_measure(step, STEP_EVERY, ANY_SLOT, 0, cut_of(step)));
    step->ranks->measured_first = true;
    return run_alone(step, record_out);
}

static vkn_status measure_second(struct step *step)
{
    BASE_TRY(run_alone(step, record_in));
    BASE_TRY(pipeline_measure(step, STEP_EVERY, ANY_SLOT, cut_of(step), step->pass_count));
    BASE_TRY(pipeline_measure(step, STEP_PERIOD_END, PERIOD_STEPS, 0, step->pass_count));
    step->ranks->measured_second = step->measured = true;
    forget_recordings(step->ranks);
    return VKN_OK;
}

/* ---- running ------------------------------------------------------------------------------- */

static bool is_unknown(const struct step *step)
{
    return step_adapts(step) && !step->measured;
}

/* Once a period parts are chosen anew where passes take another time than when they were. */
static void choose_parts(struct step *step)
{
    struct step_ranks *ranks = step->ranks;
    if (pipeline_parts_differ(step, ranks->planned))
        forget_recordings(ranks);
    if (!ranks->first[0])
        ranks->planned = pipeline_period_seconds(step);
}

static vkn_status submit_begin(struct step *step)
{
    struct step_ranks *ranks = step->ranks;
    choose_parts(step);
    if (!ranks->begin)
        BASE_TRY(record_begin(step, &ranks->begin));
    ranks->began = true;
    return gpu_submit(ranks->begin);
}

vkn_status step_submit_gradients(struct step *step, uint64_t number, uint32_t turn)
{
    struct step_ranks *ranks = step->ranks;
    bool begins = number % PERIOD_STEPS == 0 && turn == 0;
    if (turn == 0) {
        ranks->began = ranks->measured_first = ranks->measured_second = false;
        if (is_unknown(step))
            return measure_first(step, begins);
    }
    if (begins)
        BASE_TRY(submit_begin(step));
    if (!ranks->first[turn]) {
        step->part_seconds = 0;
        BASE_TRY(record_first(step, turn, &ranks->first[turn]));
    }
    return gpu_submit(ranks->first[turn]);
}

vkn_status step_wait_gradients(struct step *step, uint32_t turn)
{
    const struct step_ranks *ranks = step->ranks;
    if (turn == 0 && ranks->measured_first)
        return VKN_OK;
    if (turn == 0 && ranks->began)
        BASE_TRY(gpu_wait(ranks->begin));
    return gpu_wait(ranks->first[turn]);
}

bool step_wait_gradients_a_while(const struct step *step, uint32_t turn, double seconds)
{
    const struct gpu_recording *recording = step->ranks->first[turn];
    return !recording || gpu_wait_a_while(recording, seconds);
}

vkn_status step_submit_weights(struct step *step)
{
    struct step_ranks *ranks = step->ranks;
    if (is_unknown(step))
        return measure_second(step);
    if (!ranks->second) {
        step->part_seconds = 0;
        BASE_TRY(record_second(step, &ranks->second));
    }
    return gpu_submit(ranks->second);
}

vkn_status step_wait_weights(struct step *step)
{
    return step->ranks->measured_second ? VKN_OK : gpu_wait(step->ranks->second);
}

static void record_abandon(const struct step *step, struct gpu_recording *recording, uint32_t turn)
{
    (void)turn;
    gpu_record_copy(recording, &step->ranks->before, 0, &step->buffers.at[BIND_STATE], 0,
                    sizeof(struct State));
    for (uint32_t i = 0; i < step->ranks->fields; i++)
        gpu_record_fill(recording, gradients_of(step, i), 0, UINT64_MAX, 0);
}

vkn_status step_abandon(struct step *step)
{
    return run_alone(step, record_abandon);
}

/* ---- times ----------------------------------------------------------------------------------- */

uint32_t step_half_timings(struct step *step, bool begin, uint64_t number,
                           struct step_timing timings[STEP_MAX_TIMINGS])
{
    const struct step_ranks *ranks = step->ranks;
    uint32_t count = 0, slot = number % PERIOD_STEPS;
    if (begin)
        return ranks->began ? pipeline_timings(step, ranks->begin, PERIOD_STEPS, timings) : 0;
    if (ranks->measured_second)
        return 0;
    for (uint32_t turn = 0; turn < ranks->turns; turn++) {
        uint32_t first = count;
        if (count + 2 * STEP_MAX_TIMED <= STEP_MAX_TIMINGS)
            count += pipeline_timings(step, ranks->first[turn], slot, timings + count);
        for (uint32_t i = first; turn > 0 && i < count; i++)
            timings[i].again = true;
    }
    return count + pipeline_timings(step, ranks->second, slot, timings + count);
}
