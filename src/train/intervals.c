/* Runs the training loop of one rank: keeps two update intervals in flight, and reads the
 * statistics of each after it has finished. */
#include "train/loop.h"

static void add_times(struct loop *loop, uint32_t index, uint64_t end_step)
{
    struct vkn_trainer *t = loop->trainer;
    struct step_timing timings[STEP_MAX_TIMINGS];
    struct gpu_clocks clocks;
    const struct profile_interval interval = {
        .wait_end = base_seconds(),
        .timings = timings,
        .count = step_timings(&t->step, index, timings),
        .from = t->steps_done,
        .to = end_step,
        .queued = loop->queued[index],
        .clocks = t->profile.detailed && gpu_read_clocks(t->device, &clocks) ? &clocks : NULL,
    };
    loop_add_idle(loop, &interval);
    profile_add_interval(&t->profile, &interval);
    bool is_whole =
        interval.queued && loop->wait_end > 0 && interval.to - interval.from == UPDATE_INTERVAL;
    if (end_step % UPDATE_INTERVAL == 0) /* else the timed step, the last one, did not run */
        step_update_times(&t->step, timings, interval.count,
                          is_whole ? interval.wait_end - loop->wait_end : 0);
    loop->wait_end = interval.wait_end;
}

/* Logs a slow first wait: lavapipe compiles most pipelines when they first run. */
static void log_first_wait(const struct vkn_trainer *t, uint32_t index)
{
    if (t->profile.steps == 0 && !step_wait_a_while(&t->step, index, 1))
        loop_log_slow_start(t);
}

static vkn_status wait_interval(struct loop *loop, uint32_t index)
{
    struct vkn_trainer *t = loop->trainer;
    uint64_t end_step = loop->end_steps[index];
    if (end_step == 0)
        return VKN_OK;
    double began = base_seconds();
    log_first_wait(t, index);
    BASE_TRY(step_wait(&t->step, index)); /* after a failure, drain waits once more */
    loop->step_seconds = (base_seconds() - loop->submit_time) / (double)(end_step - t->steps_done);
    loop->end_steps[index] = 0;
    profile_add_host(&t->profile, "wait", began, end_step);
    add_times(loop, index, end_step);
    loop_read_stats(loop, t->steps_done, end_step);
    t->steps_done = end_step;
    double seconds = loop->run->report_seconds > 0 ? loop->run->report_seconds : 0.5;
    if (base_seconds() - loop->window.began >= seconds)
        loop_report(loop);
    return VKN_OK;
}

static vkn_status submit_interval(struct loop *loop, uint32_t index)
{
    double began = base_seconds();
    loop->queued[index] = false;
    for (uint32_t i = 0; i < STEP_RECORDINGS; i++)
        loop->queued[index] = loop->queued[index] || loop->end_steps[i] > 0;
    BASE_TRY(step_submit(&loop->trainer->step, index));
    loop->submit_time = base_seconds();
    loop->end_steps[index] = loop->submitted;
    profile_add_host(&loop->trainer->profile, "submit", began, loop->submitted);
    return VKN_OK;
}

#define SLOW_STEP     0.1    /* seconds: delays the screen and the reaction to a stop too much */
#define USUAL_STEP    0.05   /* seconds of a step that adapt_batch aims at */
#define LEAST_SAMPLES 16384u /* the default on CPU devices */

/* Halves the samples of a step until the step is fast enough, unless the user has set batch.samples
 * or the run is deterministic. */
static vkn_status adapt_batch(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    uint32_t before = t->config.batch.samples, samples = before;
    double seconds = step_seconds(&t->step);
    if (!t->may_lower_batch || t->config.deterministic || seconds <= SLOW_STEP)
        return VKN_OK;
    while (samples >= 2 * LEAST_SAMPLES && samples * seconds > before * USUAL_STEP)
        samples /= 2;
    if (samples == before)
        return VKN_OK;
    base_log(BASE_LOG_INFO,
             "%s: a step of %u samples takes %.2g s: %u from here on (batch.samples)",
             gpu_device_capabilities(t->device)->name, before, seconds, samples);
    t->config.batch.samples = samples;
    return step_set_samples(&t->step, samples);
}

/* Runs the first step on this device pass by pass, because its duration is not known yet. */
static vkn_status measure_step(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    if (t->step.measured || !step_splits_submissions(&t->step) || loop->submitted >= loop->limit)
        return VKN_OK;
    BASE_TRY(loop_advance(loop));
    BASE_TRY(step_measure(&t->step, loop->submitted % UPDATE_INTERVAL));
    loop->submitted++;
    loop_read_stats(loop, t->steps_done, loop->submitted);
    t->steps_done = loop->submitted;
    return VKN_OK;
}

/* Waits for all command buffers in flight, in the order of their submission. */
static vkn_status drain(struct loop *loop)
{
    vkn_status status = VKN_OK;
    for (uint32_t n = 0; n < STEP_RECORDINGS && status == VKN_OK; n++) {
        uint32_t first = STEP_RECORDINGS;
        for (uint32_t i = 0; i < STEP_RECORDINGS; i++)
            if (loop->end_steps[i] > 0 &&
                (first == STEP_RECORDINGS || loop->end_steps[i] < loop->end_steps[first]))
                first = i;
        if (first < STEP_RECORDINGS)
            status = wait_interval(loop, first);
    }
    return status;
}

/* Calls the caller's between_steps if it is due. Waits for the device first: only with nothing in
 * flight may the callback run and the step limit change. */
static vkn_status call_if_due(struct loop *loop)
{
    bool was_expected = loop->callback_expected;
    loop_update_due(loop);
    if (loop->callback_expected || was_expected)
        BASE_TRY(drain(loop));
    return loop_call_between_steps(loop);
}

static vkn_status submit_intervals(struct loop *loop)
{
    struct Control *control = loop->trainer->step.buffers.at[BIND_CONTROL].mapped;
    if (loop->has_fixed_limit || !loop_stopped(loop))
        BASE_TRY(measure_step(loop));
    for (uint32_t index = 0; loop->submitted < loop->limit; index = (index + 1) % STEP_RECORDINGS) {
        BASE_TRY(wait_interval(loop, index));
        if (!loop->has_fixed_limit)
            BASE_TRY(call_if_due(loop));
        /* With parameter averaging (has_fixed_limit) ranks agree on the end after an interval. */
        if (!loop->has_fixed_limit &&
            (loop_stopped(loop) || loop_out_of_time(loop) || loop_ended_early(loop)))
            break;
        BASE_TRY(loop_advance(loop));
        BASE_TRY(adapt_batch(loop));
        BASE_TRY(step_prepare(&loop->trainer->step, index, loop_next_stop(loop) - loop->submitted));
        loop->submitted = loop_next_stop(loop);
        control->step_limit = (uint32_t)(loop->callback_expected ? loop->submitted : loop->limit);
        BASE_TRY(submit_interval(loop, index));
        if (loop->callback_expected)
            BASE_TRY(drain(loop));
    }
    return VKN_OK;
}

vkn_status loop_run_intervals(struct loop *loop)
{
    vkn_status status = submit_intervals(loop);
    if (status != VKN_NO_DEVICE) { /* finished steps count even if an image cannot be read */
        vkn_status drained = drain(loop);
        status = status == VKN_OK ? drained : status;
    }
    loop->trainer->device_lost = loop->trainer->device_lost || status == VKN_NO_DEVICE;
    return status;
}
