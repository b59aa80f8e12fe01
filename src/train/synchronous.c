/* Runs the training loop of synchronous data parallelism: in each step all ranks all-reduce their
 * gradients, and every rank updates the same weights. Rank 0 decides how long a run lasts. */
#include <stdlib.h>
#include <string.h>

#include "parallel/parallel.h"
#include "train/loop.h"

bool train_device_is_lost(const vkn_trainer *trainer)
{
    return trainer->device_lost;
}

/* The member `bytes` counts a step's gradients or, with parameter averaging, a step's share of the
 * parameters and occupancy cells that are all-reduced once an interval. */
struct vkn_communication train_communication(const vkn_trainer *trainer)
{
    const struct step *step = &trainer->step;
    uint64_t params = sizeof(float) * step->setup.model.param_count;
    uint32_t fields = step->coarse.arena ? 2 : 1;
    struct vkn_communication communication = trainer->communication;
    communication.ranks_per_device = step->ranks ? step_virtual_ranks(step) : 1;
    communication.ranks = communication.ranks_per_device * trainer->ranks;
    if (communication.ranks < 2)
        return communication;
    if (step->ranks)
        communication.bytes = step_bucket_bytes(step);
    else
        communication.bytes = (fields * (4 * params + step->buffers.at[BIND_STEP_COUNTS].size) +
                               step->buffers.at[BIND_OCCUPANCY].size) /
                              UPDATE_INTERVAL;
    return communication;
}

vkn_status vkn_trainer_communication(const vkn_trainer *trainer,
                                     struct vkn_communication *communication)
{
    BASE_NEED(trainer);
    BASE_NEED(communication);
    const struct vkn_communication found = train_communication(trainer), *filled = &found;
    return BASE_FILL(vkn_communication, filled, communication, step_seconds);
}

/* ---- all-reduce ------------------------------------------------------------------------------ */

/* Returns the sum, at most UINT32_MAX. */
static uint32_t add_counts(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static void add_found(struct RankStats *sum, const struct RankStats *found)
{
    sum->samples = add_counts(sum->samples, found->samples);
    sum->live = add_counts(sum->live, found->live);
    sum->live_rays = add_counts(sum->live_rays, found->live_rays);
    sum->nonfinite |= found->nonfinite;
    sum->underflowed = add_counts(sum->underflowed, found->underflowed);
    sum->rounded = add_counts(sum->rounded, found->rounded);
    sum->loss += found->loss;
    sum->square += found->square;
    sum->distortion_loss += found->distortion_loss;
    sum->reached = add_counts(sum->reached, found->reached);
    sum->kept_rays = add_counts(sum->kept_rays, found->kept_rays);
}

/* Averages a gradient bucket over the device's virtual ranks, into the first one's memory. */
static void sum_virtual_ranks(const struct step *step, uint32_t bucket)
{
    struct step_bucket first = step_bucket(step, 0, bucket);
    uint32_t ranks_per_device = step_virtual_ranks(step);
    float *values[STEP_MAX_VIRTUAL_RANKS];
    for (uint32_t i = 0; ranks_per_device > 1 && i < first.count; i++) {
        const struct step_span *span = &first.spans[i];
        for (uint32_t virtual_rank = 0; virtual_rank < ranks_per_device; virtual_rank++)
            values[virtual_rank] = step_bucket(step, virtual_rank, bucket).spans[i].values;
        (span->is_f16 ? parallel_mean_f16_of : parallel_mean_of)(values, ranks_per_device, 1, 0,
                                                                 span->count);
    }
}

static void sum_virtual_statistics(const struct step *step)
{
    for (uint32_t virtual_rank = 1; virtual_rank < step_virtual_ranks(step); virtual_rank++)
        for (uint32_t field = 0; field < step_fields(step); field++)
            add_found(&step_statistics(step, 0)[field],
                      &step_statistics(step, virtual_rank)[field]);
}

static void sum_rank_statistics(const struct vkn_trainer *t, const struct message *messages)
{
    struct RankStats *sums = step_statistics(&t->step, 0);
    for (uint32_t field = 0; field < step_fields(&t->step); field++) {
        sums[field] = messages[0].sums[field];
        for (uint32_t rank = 1; rank < t->ranks; rank++)
            add_found(&sums[field], &messages[rank].sums[field]);
    }
}

static vkn_status all_reduce_bucket(struct vkn_trainer *t, uint32_t bucket)
{
    const struct step_bucket found = step_bucket(&t->step, 0, bucket);
    for (uint32_t i = 0; t->parallel && i < found.count; i++) {
        const struct step_span *span = &found.spans[i];
        parallel_combination *mean = span->is_f16 ? parallel_mean_f16_of : parallel_mean_of;
        BASE_TRY(parallel_combine(t->parallel, mean, span->values, span->count));
    }
    return VKN_OK;
}

vkn_status ranks_all_reduce(void *context, float *values, size_t count, enum step_reduction kind)
{
    parallel_combination *const kinds[] = {parallel_mean_of, parallel_max_of, step_add_errors};
    struct reduction *reduction = context;
    reduction->status = parallel_combine(reduction->parallel, kinds[kind], values, count);
    return reduction->status;
}

void ranks_read_messages(struct vkn_trainer *t, const struct message *messages)
{
    t->rank0_seconds = messages[0].seconds;
    for (uint32_t rank = 0; rank < t->ranks; rank++)
        t->stop_requested = t->stop_requested || messages[rank].stop;
}

/* ---- one step -------------------------------------------------------------------------------- */

void ranks_add_time(struct loop *loop, double began, bool hidden)
{
    struct vkn_communication *communication = &loop->trainer->communication;
    double seconds = base_seconds() - began;
    communication->seconds += seconds;
    if (hidden)
        communication->hidden_seconds += seconds;
    else
        loop->window.communication += seconds;
}

static vkn_status exchange_messages(struct loop *loop, const struct message *mine,
                                    struct message *messages)
{
    struct vkn_trainer *t = loop->trainer;
    double began = base_seconds();
    BASE_TRY(messages_exchange(t->parallel, mine, messages));
    t->communication.waiting_seconds += base_seconds() - began;
    return VKN_OK;
}

static void log_first_wait(const struct vkn_trainer *t, uint32_t virtual_rank)
{
    if (virtual_rank == 0 && t->profile.steps == 0 && trainer_leads(t) &&
        !step_wait_bucket_a_while(&t->step, 0, step_buckets(&t->step) - 1, 1))
        loop_log_slow_start(t);
}

/* Marks the device as lost if `status`, of a call on this rank's device, is VKN_NO_DEVICE. */
static vkn_status on_device(struct vkn_trainer *t, vkn_status status)
{
    t->device_lost = t->device_lost || status == VKN_NO_DEVICE;
    return status;
}

/* Context of checked_all_reduce, an all-reduce after an exchange of messages. */
struct checked_reduction {
    struct reduction reduction;
    struct loop *loop;
    struct message *messages;
};

static vkn_status checked_all_reduce(void *context, float *values, size_t count,
                                     enum step_reduction kind)
{
    struct checked_reduction *checked = context;
    const struct message mine = {.step = checked->loop->trainer->steps_done + 1};
    double began = base_seconds();
    checked->reduction.status = exchange_messages(checked->loop, &mine, checked->messages);
    if (checked->reduction.status == VKN_OK)
        (void)ranks_all_reduce(&checked->reduction, values, count, kind);
    ranks_add_time(checked->loop, began, false);
    return checked->reduction.status;
}

static vkn_status begin_update_interval(struct loop *loop, struct message *messages)
{
    struct vkn_trainer *t = loop->trainer;
    struct checked_reduction checked_reduction = {{t->parallel, VKN_OK}, loop, messages};
    vkn_status status =
        step_begin_interval(&t->step, t->steps_done, checked_all_reduce, &checked_reduction);
    return checked_reduction.reduction.status == VKN_OK ? on_device(t, status) : status;
}

/* Computes the gradients of all virtual ranks, until the last one's first bucket is ready. */
static vkn_status compute_gradients(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    uint32_t last = step_virtual_ranks(&t->step) - 1;
    for (uint32_t virtual_rank = 0; virtual_rank <= last; virtual_rank++) {
        BASE_TRY(step_submit_gradients(&t->step, virtual_rank));
        log_first_wait(t, virtual_rank);
        for (uint32_t bucket = 0; virtual_rank < last && bucket < step_buckets(&t->step); bucket++)
            BASE_TRY(step_wait_bucket(&t->step, virtual_rank, bucket));
    }
    return step_wait_bucket(&t->step, last, 0);
}

/* All-reduces all gradient buckets but the last, each while the device computes the next ones. A
 * rank that fails still takes part in the all-reduces, up to the next exchange of messages. */
static vkn_status all_reduce_buckets(struct loop *loop, struct message *messages)
{
    struct vkn_trainer *t = loop->trainer;
    uint32_t buckets = step_buckets(&t->step), last_virtual_rank = step_virtual_ranks(&t->step) - 1;
    const struct message mine = {.step = t->steps_done + 1};
    vkn_status status = VKN_OK;
    for (uint32_t bucket = 0; bucket + 1 < buckets; bucket++) {
        double began = base_seconds();
        sum_virtual_ranks(&t->step, bucket);
        if (bucket == 0)
            BASE_TRY(exchange_messages(loop, &mine, messages));
        BASE_TRY(all_reduce_bucket(t, bucket));
        if (status != VKN_OK)
            continue;
        bool hidden = !step_wait_bucket_a_while(&t->step, last_virtual_rank, buckets - 1, 0);
        ranks_add_time(loop, began, hidden);
        status = on_device(t, step_submit_bucket(&t->step, bucket));
        if (status == VKN_OK)
            status = on_device(t, step_wait_bucket(&t->step, last_virtual_rank, bucket + 1));
    }
    return status;
}

static vkn_status prepare_gradients(struct loop *loop, struct message *messages)
{
    BASE_TRY(on_device(loop->trainer, loop_advance(loop)));
    BASE_TRY(begin_update_interval(loop, messages));
    BASE_TRY(on_device(loop->trainer, compute_gradients(loop)));
    return all_reduce_buckets(loop, messages);
}

/* All-reduces the last gradient bucket and the statistics. Sets *last if this step ends the run. */
static vkn_status all_reduce_rest(struct loop *loop, struct message *messages, bool *last)
{
    struct vkn_trainer *t = loop->trainer;
    uint32_t bucket = step_buckets(&t->step) - 1;
    bool is_last = loop->submitted + 1 >= loop->limit || loop_out_of_time(loop);
    struct message mine = {
        .stop = loop_stopped(loop),
        .pause = trainer_leads(t) && is_last,
        .step = t->steps_done + 1,
        .seconds = loop_elapsed(loop),
    };
    double began = base_seconds();
    sum_virtual_ranks(&t->step, bucket);
    sum_virtual_statistics(&t->step);
    memcpy(mine.sums, step_statistics(&t->step, 0), step_fields(&t->step) * sizeof *mine.sums);
    BASE_TRY(exchange_messages(loop, &mine, messages));
    BASE_TRY(all_reduce_bucket(t, bucket));
    sum_rank_statistics(t, messages);
    ranks_add_time(loop, began, false);
    ranks_read_messages(t, messages);
    *last = messages[0].pause;
    profile_add_host(&t->profile, "exchange", began, mine.step);
    return VKN_OK;
}

static void add_times(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    struct step_timing timings[STEP_MAX_TIMINGS];
    struct gpu_clocks clocks;
    uint64_t done = t->steps_done;
    struct profile_interval interval = {
        .wait_end = base_seconds(),
        .timings = timings,
        .count = step_half_timings(&t->step, true, done, timings),
        .from = done,
        .to = done + UPDATE_INTERVAL,
        .clocks = t->profile.detailed && gpu_read_clocks(t->device, &clocks) ? &clocks : NULL,
    };
    profile_add_interval(&t->profile, &interval);
    step_update_times(&t->step, timings, interval.count, 0);
    interval.count = step_half_timings(&t->step, false, done, timings);
    interval.to = done + 1;
    loop_add_idle(loop, &interval);
    profile_add_interval(&t->profile, &interval);
    step_update_times(&t->step, timings, interval.count, 0);
}

static vkn_status update_weights(struct vkn_trainer *t)
{
    BASE_TRY(step_submit_bucket(&t->step, step_buckets(&t->step) - 1));
    BASE_TRY(step_submit_weights(&t->step));
    return step_wait_weights(&t->step);
}

static vkn_status take_step(struct loop *loop, struct message *messages, bool *last)
{
    struct vkn_trainer *t = loop->trainer;
    double began = base_seconds();
    if (t->parallel) {
        parallel_expect_delays(t->parallel, loop->submitted == loop->from);
        parallel_set_step(t->parallel, t->steps_done + 1);
    }
    vkn_status status = prepare_gradients(loop, messages);
    if (status == VKN_OK)
        status = all_reduce_rest(loop, messages, last);
    if (status != VKN_OK) {
        BASE_KEEP_ERROR;
        if (!t->device_lost)
            (void)step_abandon(&t->step);
    } else {
        status = on_device(t, update_weights(t));
    }
    t->communication.step_seconds += base_seconds() - began; /* failed steps too, as in `seconds` */
    BASE_TRY(status);
    add_times(loop);
    loop_read_stats(loop, t->steps_done, t->steps_done + 1);
    loop->submitted = ++t->steps_done;
    return VKN_OK;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static vkn_status run_steps(struct loop *loop, struct message *messages)
{
    struct vkn_trainer *t = loop->trainer;
    double seconds = loop->run->report_seconds > 0 ? loop->run->report_seconds : 0.5;
    bool last = trainer_leads(t) && loop->submitted >= loop->limit;
    t->rank0_seconds = t->seconds;
    t->stop_requested = false;
    if (!trainer_leads(t)) /* rank 0 has the sums of all ranks */
        BASE_TRY(on_device(t, step_exchange_errors(&t->step, NULL, NULL)));
    while (!last && !t->stop_requested && !loop_ended_early(loop)) {
        loop_update_due(loop);
        BASE_TRY(loop_call_between_steps(loop));
        BASE_TRY(take_step(loop, messages, &last));
        if (base_seconds() - loop->window.began >= seconds)
            loop_report(loop);
    }
    /* All ranks have the same statistics, so that all take the same branch. */
    return t->parallel && !loop_ended_early(loop) ? ranks_check_hashes(t, messages) : VKN_OK;
}

vkn_status synchronous_run(struct loop *loop)
{
    struct message *messages = base_alloc(loop->trainer->ranks, sizeof *messages);
    vkn_status status = messages ? run_steps(loop, messages) : VKN_ERROR;
    free(messages);
    return status;
}
