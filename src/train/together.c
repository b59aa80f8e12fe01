/* Training loop of several ranks: each takes a step from rays to gradients, what they found is
 * added up, and all go on to the same weights. Rank 0 alone decides how long a run lasts. */
#include <stdlib.h>
#include <string.h>

#include "parallel/parallel.h"
#include "train/loop.h"

bool train_is_lost(const vkn_trainer *trainer)
{
    return trainer->lost;
}

/* Of weights and the like once in a period, or gradients in every step. */
struct vkn_exchange train_exchange(const vkn_trainer *trainer)
{
    const struct step *step = &trainer->step;
    uint64_t params = sizeof(float) * step->setup.model.param_count;
    uint32_t fields = step->coarse.arena ? 2 : 1;
    struct vkn_exchange exchange = trainer->exchange;
    exchange.turns = step->ranks ? step_turns(step) : 1;
    exchange.ranks = exchange.turns * trainer->ranks;
    if (exchange.ranks < 2)
        return exchange;
    if (step->ranks)
        exchange.bytes = step_exchanged(step);
    else
        exchange.bytes = (fields * (4 * params + step->buffers.at[BIND_COUNTS].size) +
                          step->buffers.at[BIND_OCCUPANCY].size) /
                         PERIOD_STEPS;
    return exchange;
}

vkn_status vkn_trainer_exchange(const vkn_trainer *trainer, struct vkn_exchange *exchange)
{
    BASE_NEED(trainer);
    BASE_NEED(exchange);
    const struct vkn_exchange found = train_exchange(trainer), *own = &found;
    return BASE_FILL(vkn_exchange, own, exchange, step_seconds);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Of more samples than are counted there are at least so many. */
static uint32_t add_counts(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static void add_found(struct Found *sum, const struct Found *found)
{
    sum->samples = add_counts(sum->samples, found->samples);
    sum->live = add_counts(sum->live, found->live);
    sum->live_rays = add_counts(sum->live_rays, found->live_rays);
    sum->nonfinite |= found->nonfinite;
    sum->flushed = add_counts(sum->flushed, found->flushed);
    sum->rounded = add_counts(sum->rounded, found->rounded);
    sum->loss += found->loss;
    sum->square += found->square;
}

/* Of the device's turns, into the first. */
static void add_turns(const struct step *step, uint32_t piece)
{
    struct step_piece first = step_piece(step, 0, piece);
    uint32_t turns = step_turns(step);
    float *values[STEP_MAX_TURNS];
    for (uint32_t i = 0; turns > 1 && i < first.count; i++) {
        const struct step_span *span = &first.spans[i];
        for (uint32_t turn = 0; turn < turns; turn++)
            values[turn] = step_piece(step, turn, piece).spans[i].values;
        (span->halves ? parallel_mean_halves_of : parallel_mean_of)(values, turns, 1, 0,
                                                                    span->count);
    }
}

static void add_turns_found(const struct step *step)
{
    for (uint32_t turn = 1; turn < step_turns(step); turn++)
        for (uint32_t field = 0; field < step_fields(step); field++)
            add_found(&step_found(step, 0)[field], &step_found(step, turn)[field]);
}

static void add_ranks_found(const struct vkn_trainer *t, const struct note *notes)
{
    struct Found *sums = step_found(&t->step, 0);
    for (uint32_t field = 0; field < step_fields(&t->step); field++) {
        sums[field] = notes[0].sums[field];
        for (uint32_t rank = 1; rank < t->ranks; rank++)
            add_found(&sums[field], &notes[rank].sums[field]);
    }
}

static vkn_status add_ranks(struct vkn_trainer *t, uint32_t piece)
{
    const struct step_piece found = step_piece(&t->step, 0, piece);
    for (uint32_t i = 0; t->parallel && i < found.count; i++) {
        const struct step_span *span = &found.spans[i];
        BASE_TRY((span->halves ? parallel_mean_halves : parallel_mean)(t->parallel, span->values,
                                                                       span->count));
    }
    return VKN_OK;
}

vkn_status together_combine(void *context, float *values, size_t count, bool largest)
{
    struct company *company = context;
    company->status = (largest ? parallel_max : parallel_mean)(company->parallel, values, count);
    return company->status;
}

void together_hear(struct vkn_trainer *t, const struct note *notes)
{
    t->told_seconds = notes[0].seconds;
    for (uint32_t rank = 0; rank < t->ranks; rank++)
        t->told_stop = t->told_stop || notes[rank].stop;
}

/* ---- one step -------------------------------------------------------------------------------- */

void together_count_time(struct loop *loop, double began, bool hidden)
{
    struct vkn_exchange *exchange = &loop->trainer->exchange;
    double seconds = base_seconds() - began;
    exchange->seconds += seconds;
    if (hidden)
        exchange->hidden_seconds += seconds;
    else
        loop->window.exchange += seconds;
}

static vkn_status meet(struct loop *loop, const struct note *mine, struct note *notes)
{
    struct vkn_trainer *t = loop->trainer;
    double began = base_seconds();
    BASE_TRY(notes_exchange(t->parallel, mine, notes));
    t->exchange.waiting_seconds += base_seconds() - began;
    return VKN_OK;
}

static void tell_first_wait(const struct vkn_trainer *t, uint32_t turn)
{
    if (turn == 0 && t->profile.steps == 0 && trainer_leads(t) &&
        !step_wait_piece_a_while(&t->step, 0, step_pieces(&t->step) - 1, 1))
        loop_tell_slow_start(t);
}

/* What the device fails in is lost with it. */
static vkn_status on_device(struct vkn_trainer *t, vkn_status status)
{
    t->lost = t->lost || status == VKN_NO_DEVICE;
    return status;
}

/* A company that tell each other first how they are. */
struct meeting {
    struct company company;
    struct loop *loop;
    struct note *notes;
};

static vkn_status meet_and_combine(void *context, float *values, size_t count, bool largest)
{
    struct meeting *meeting = context;
    const struct note mine = {.step = meeting->loop->trainer->steps_done + 1};
    double began = base_seconds();
    meeting->company.status = meet(meeting->loop, &mine, meeting->notes);
    if (meeting->company.status == VKN_OK)
        (void)together_combine(&meeting->company, values, count, largest);
    together_count_time(meeting->loop, began, false);
    return meeting->company.status;
}

static vkn_status begin_period(struct loop *loop, struct note *notes)
{
    struct vkn_trainer *t = loop->trainer;
    struct meeting meeting = {{t->parallel, VKN_OK}, loop, notes};
    vkn_status status = step_begin_period(&t->step, t->steps_done, meet_and_combine, &meeting);
    return meeting.company.status == VKN_OK ? on_device(t, status) : status;
}

/* Until the last turn's first piece is there. */
static vkn_status compute_gradients(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    uint32_t last = step_turns(&t->step) - 1;
    for (uint32_t turn = 0; turn <= last; turn++) {
        BASE_TRY(step_submit_gradients(&t->step, turn));
        tell_first_wait(t, turn);
        for (uint32_t piece = 0; turn < last && piece < step_pieces(&t->step); piece++)
            BASE_TRY(step_wait_piece(&t->step, turn, piece));
    }
    return step_wait_piece(&t->step, last, 0);
}

/* All pieces but the last one, each while the next are still computed. Whoever fails goes on with
 * the others, to a note. */
static vkn_status exchange_pieces(struct loop *loop, struct note *notes)
{
    struct vkn_trainer *t = loop->trainer;
    uint32_t pieces = step_pieces(&t->step), last_turn = step_turns(&t->step) - 1;
    const struct note mine = {.step = t->steps_done + 1};
    vkn_status status = VKN_OK;
    for (uint32_t piece = 0; piece + 1 < pieces; piece++) {
        double began = base_seconds();
        add_turns(&t->step, piece);
        if (piece == 0)
            BASE_TRY(meet(loop, &mine, notes));
        BASE_TRY(add_ranks(t, piece));
        if (status != VKN_OK)
            continue;
        bool hidden = !step_wait_piece_a_while(&t->step, last_turn, pieces - 1, 0);
        together_count_time(loop, began, hidden);
        status = on_device(t, step_submit_piece(&t->step, piece));
        if (status == VKN_OK)
            status = on_device(t, step_wait_piece(&t->step, last_turn, piece + 1));
    }
    return status;
}

static vkn_status find_gradients(struct loop *loop, struct note *notes)
{
    BASE_TRY(on_device(loop->trainer, loop_exchange_images(loop)));
    BASE_TRY(begin_period(loop, notes));
    BASE_TRY(on_device(loop->trainer, compute_gradients(loop)));
    return exchange_pieces(loop, notes);
}

/* Whether rank 0 ends its run with the step that is being taken. */
static bool is_last(const struct loop *loop)
{
    return loop->submitted + 1 >= loop->limit || loop_out_of_time(loop);
}

/* The last piece and what else ranks have found; *last: the run ends with this step. */
static vkn_status exchange(struct loop *loop, struct note *notes, bool *last)
{
    struct vkn_trainer *t = loop->trainer;
    uint32_t piece = step_pieces(&t->step) - 1;
    struct note mine = {
        .stop = loop_stopped(loop),
        .pause = trainer_leads(t) && is_last(loop),
        .step = t->steps_done + 1,
        .seconds = loop_elapsed(loop),
    };
    double began = base_seconds();
    add_turns(&t->step, piece);
    add_turns_found(&t->step);
    memcpy(mine.sums, step_found(&t->step, 0), step_fields(&t->step) * sizeof *mine.sums);
    BASE_TRY(meet(loop, &mine, notes));
    BASE_TRY(add_ranks(t, piece));
    add_ranks_found(t, notes);
    together_count_time(loop, began, false);
    together_hear(t, notes);
    *last = notes[0].pause;
    profile_add_host(&t->profile, "exchange", began, mine.step);
    return VKN_OK;
}

static void add_times(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    struct step_timing timings[STEP_MAX_TIMINGS];
    struct gpu_clocks clocks;
    uint64_t done = t->steps_done;
    struct profile_period period = {
        .waited = base_seconds(),
        .timings = timings,
        .count = step_half_timings(&t->step, true, done, timings),
        .from = done,
        .to = done + PERIOD_STEPS,
        .clocks = t->profile.detailed && gpu_read_clocks(t->device, &clocks) ? &clocks : NULL,
    };
    profile_add_period(&t->profile, &period);
    step_learn(&t->step, timings, period.count, 0);
    period.count = step_half_timings(&t->step, false, done, timings);
    period.to = done + 1;
    loop_add_idle(loop, &period);
    profile_add_period(&t->profile, &period);
    step_learn(&t->step, timings, period.count, 0);
}

static vkn_status find_weights(struct vkn_trainer *t)
{
    BASE_TRY(step_submit_piece(&t->step, step_pieces(&t->step) - 1));
    BASE_TRY(step_submit_weights(&t->step));
    return step_wait_weights(&t->step);
}

static vkn_status take_step(struct loop *loop, struct note *notes, bool *last)
{
    struct vkn_trainer *t = loop->trainer;
    struct Control *control = t->step.buffers.at[BIND_CONTROL].mapped;
    control->time_progress =
        t->config.seconds > 0 ? (float)(t->told_seconds / t->config.seconds) : 0.0f;
    double began = base_seconds();
    if (t->parallel) {
        parallel_be_patient(t->parallel, loop->submitted == loop->from);
        parallel_at_step(t->parallel, t->steps_done + 1);
    }
    vkn_status status = find_gradients(loop, notes);
    if (status == VKN_OK)
        status = exchange(loop, notes, last);
    if (status != VKN_OK) {
        BASE_KEEP_ERROR;
        if (!t->lost)
            (void)step_abandon(&t->step);
    } else {
        status = on_device(t, find_weights(t));
    }
    t->exchange.step_seconds +=
        base_seconds() - began; /* of a step that fails, too: so are seconds */
    BASE_TRY(status);
    add_times(loop);
    loop_read_stats(loop, t->steps_done, t->steps_done + 1);
    loop->submitted = ++t->steps_done;
    return VKN_OK;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static vkn_status take_steps(struct loop *loop, struct note *notes)
{
    struct vkn_trainer *t = loop->trainer;
    double interval = loop->run->report_seconds > 0 ? loop->run->report_seconds : 0.5;
    bool last = trainer_leads(t) && loop->submitted >= loop->limit;
    t->told_seconds = t->seconds;
    t->told_stop = false;
    while (!last && !t->told_stop && !loop_ended(loop)) {
        loop_ask(loop);
        BASE_TRY(loop_receive(loop));
        BASE_TRY(take_step(loop, notes, &last));
        if (base_seconds() - loop->window.began >= interval)
            loop_report(loop);
    }
    return loop_ended(loop) ? VKN_OK
                            : together_check(t, notes); /* all have seen the same figures */
}

vkn_status together_run(struct loop *loop)
{
    struct note *notes = base_alloc(loop->trainer->ranks, sizeof *notes);
    vkn_status status = notes ? take_steps(loop, notes) : VKN_ERROR;
    free(notes);
    return status;
}
