/* The training step as recordings: what is dispatched when, and how long it took. */
#include <string.h>

#include "pipeline/internal.h"
#include "rays/rays.h"

const char *pipeline_label(const struct step_pass *pass)
{
    bool begins = pass->place == STEP_PERIOD_BEGIN && pass->first;
    return begins ? "begin_period" : pass->pass->name;
}

/* Sums in fixed point are turned into floats for all parameters, not for those alone that
 * workgroups have summed up. */
static int dispatch_of(const struct step *step, const struct pass *pass)
{
    if (pass->shared_out && !step->setup.specialization.values[SPEC_CPU_SHAPED])
        return pass->shared_out;
    bool turned = step->setup.backend.sums == VKN_SUMS_FIXED;
    return pass->variant == FIELD_REDUCE && turned ? DISPATCH_PARAMS : pass->dispatch;
}

static void dispatch(struct step *step, struct gpu_recording *recording,
                     const struct step_pass *pass, const struct Push *push)
{
    const struct sample_set *set = &step->sets[pass->set];
    const struct gpu_bindings *bindings = pass->pass->average ? set->inference : set->training;
    if (pass->pass->dispatch == PASS_ONE_GROUP)
        gpu_record_dispatch(recording, pass->program, bindings, push, sizeof *push, 1);
    else
        gpu_record_dispatch_indirect(recording, pass->program, bindings, push, sizeof *push,
                                     &step->buffers.at[BIND_DISPATCHES],
                                     (size_t)dispatch_of(step, pass->pass) *
                                         sizeof(struct Dispatch));
}

/* Which groups run is the step's decision: only what they count is the set's own. */
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

void pipeline_record_pass(struct step *step, struct gpu_recording *recording,
                          const struct step_pass *pass, uint32_t slot)
{
    struct Push push = {.a = slot, .b = step->local_size};
    if (pass->begins_set)
        begin_set(step, recording, pass->set);
    if (step->profile || slot >= PERIOD_STEPS - 1)
        gpu_record_timestamp(recording, pipeline_label(pass));
    uint32_t rounds = pass->pass->by_cascade ? rays_cascades(&step->setup.config) : 1;
    for (push.c = 0; push.c < rounds; push.c++) {
        if (push.c > 0)
            gpu_record_program_barrier(recording);
        dispatch(step, recording, pass, &push);
    }
    if (step->profile)
        gpu_record_timestamp(recording, NULL);
    if (pass->pass->decides)
        gpu_record_barrier(recording);
    else
        gpu_record_program_barrier(recording);
}

#define AS_LISTED UINT32_MAX

/* The passes of one step from one name to another; on the set of samples that each is listed with,
 * or all on one. */
static void record_range(struct step *step, struct gpu_recording *recording, uint32_t slot,
                         uint32_t set, const char *from, const char *until)
{
    bool on = from == NULL, begun[STEP_MAX_SETS] = {true};
    for (size_t i = 0; i < step->pass_count; i++) {
        struct step_pass pass = step->passes[i];
        if (pass.place != STEP_EVERY)
            continue;
        if (until && strcmp(pass.pass->name, until) == 0)
            return;
        on = on || strcmp(pass.pass->name, from) == 0;
        if (!on)
            continue;
        pass.set = set == AS_LISTED ? pass.set : set;
        pass.begins_set = !begun[pass.set];
        begun[pass.set] = true;
        if (pipeline_begins_part(step, i))
            gpu_record_cut(recording);
        pipeline_record_pass(step, recording, &pass, slot);
    }
}

void step_record_part(struct step *step, struct gpu_recording *recording, uint32_t slot,
                      const char *from, const char *until)
{
    record_range(step, recording, slot, AS_LISTED, from, until);
}

void step_record_set(struct step *step, struct gpu_recording *recording, uint32_t slot,
                     uint32_t set, const char *from, const char *until)
{
    record_range(step, recording, slot, set, from, until);
}

static void record_once(struct step *step, struct gpu_recording *recording, enum step_place place)
{
    for (size_t i = 0; i < step->pass_count; i++) {
        if (step->passes[i].place != place)
            continue;
        if (pipeline_begins_part(step, i))
            gpu_record_cut(recording);
        pipeline_record_pass(step, recording, &step->passes[i], PERIOD_STEPS);
    }
    gpu_record_timestamp(recording, NULL);
}

/* One occupancy update and PERIOD_STEPS steps. */
vkn_status pipeline_record_period(struct step *step, uint32_t number)
{
    struct gpu_recording **recording = &step->period[number];
    step->part_seconds = 0;
    step->planned[number] = pipeline_period_seconds(step);
    uint32_t timestamps = step->profile ? 2 * STEP_MAX_TIMINGS + 2 : STEP_MAX_PASSES + 2;
    BASE_TRY(gpu_record_begin(step->device, "training period", timestamps, recording));
    record_once(step, *recording, STEP_PERIOD_BEGIN);
    for (uint32_t slot = 0; slot < PERIOD_STEPS; slot++)
        step_record_part(step, *recording, slot, NULL, NULL);
    record_once(step, *recording, STEP_PERIOD_END);
    return gpu_record_end(*recording);
}

vkn_status step_submit(struct step *step, uint32_t recording)
{
    return gpu_submit(step->period[recording]);
}

vkn_status step_wait(struct step *step, uint32_t recording)
{
    return gpu_wait(step->period[recording]);
}

bool step_wait_a_while(const struct step *step, uint32_t recording, double seconds)
{
    return gpu_wait_a_while(step->period[recording], seconds);
}

/* ---- times -------------------------------------------------------------------------------------
 */

vkn_status step_profile(struct step *step)
{
    step->profile = true;
    for (uint32_t i = 0; i < STEP_RECORDINGS; i++) {
        gpu_recording_destroy(&step->period[i]);
        BASE_TRY(pipeline_record_period(step, i));
    }
    return VKN_OK;
}

static const struct step_pass *pass_of_label(const struct step *step, const char *label)
{
    for (size_t i = 0; i < step->pass_count; i++)
        if (strcmp(pipeline_label(&step->passes[i]), label) == 0)
            return &step->passes[i];
    return NULL;
}

uint32_t step_timings(struct step *step, uint32_t recording,
                      struct step_timing timings[STEP_MAX_TIMINGS])
{
    const char *labels[2 * STEP_MAX_TIMINGS + 2];
    double milliseconds[2 * STEP_MAX_TIMINGS + 2],
        now = gpu_recording_start(step->period[recording]);
    uint32_t intervals =
        gpu_recording_times(step->period[recording], labels, milliseconds, BASE_COUNT(labels));
    uint32_t count = 0, begun = step->profile ? 0 : PERIOD_STEPS - 1; /* steps of the period */
    for (uint32_t i = 0; i < intervals; i++) {
        double end = now + 1e-3 * milliseconds[i];
        const struct step_pass *pass = labels[i] ? pass_of_label(step, labels[i]) : NULL;
        bool every_step = pass && pass->place == STEP_EVERY;
        if (every_step && pass->first)
            begun++;
        if (labels[i] && count < STEP_MAX_TIMINGS)
            timings[count++] = (struct step_timing){
                .name = labels[i],
                .slot = every_step ? begun - 1 : PERIOD_STEPS,
                .begin = now,
                .end = end,
            };
        now = end;
    }
    return count;
}
