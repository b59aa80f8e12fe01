/* The training loop: submits periods, two in flight, and reads their figures late. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "train/loop.h"

const struct vkn_backend *vkn_trainer_backend(const vkn_trainer *trainer)
{
    return trainer ? &trainer->backend : NULL;
}

const struct vkn_config *vkn_trainer_config(const vkn_trainer *trainer)
{
    return trainer ? &trainer->config : NULL;
}

uint64_t vkn_trainer_step(const vkn_trainer *trainer)
{
    return trainer ? trainer->steps_done : 0;
}

double vkn_trainer_seconds(const vkn_trainer *trainer)
{
    return trainer ? trainer->seconds : 0.0;
}

struct vkn_images train_images(const vkn_trainer *trainer)
{
    const struct images_plan *plan = &trainer->images;
    struct stream_state state = {.shrink = 1};
    if (trainer->stream)
        state = stream_state(trainer->stream);
    return (struct vkn_images){
        .count = plan->views,
        .strips = plan->strips,
        .resident = plan->resident,
        .by_period = plan->resident < plan->pieces ? plan->exchanged : 0,
        .bytes = plan->bytes,
        .host_bytes = trainer->scene->splits[SCENE_TRAIN].pixels ? plan->all_bytes : 0,
        .exchange_bytes = IMAGES_EXCHANGES * plan->exchange,
        .downscale = trainer->config.scene.downscale * state.shrink,
        .exchanged = state.exchanged,
        .late = state.late,
    };
}

vkn_status vkn_trainer_images(const vkn_trainer *trainer, struct vkn_images *images)
{
    BASE_NEED(trainer);
    BASE_NEED(images);
    const struct vkn_images found = train_images(trainer), *own = &found;
    return BASE_FILL(vkn_images, own, images, late);
}

bool vkn_trainer_finished(const vkn_trainer *trainer)
{
    if (!trainer)
        return false;
    return (trainer->config.steps > 0 && trainer->steps_done >= trainer->config.steps) ||
           (trainer->config.seconds > 0 && trainer->seconds >= trainer->config.seconds);
}

vkn_status vkn_trainer_start_profile(vkn_trainer *trainer)
{
    BASE_NEED(trainer);
    BASE_USE(gpu_guard(trainer->device), trainer);
    trainer->profile.detailed = true;
    return step_profile(&trainer->step);
}

size_t vkn_trainer_pass_times(const vkn_trainer *trainer, struct vkn_pass_time *times,
                              size_t capacity)
{
    if (!trainer || !times)
        return 0;
    const struct profile *profile = &trainer->profile;
    size_t count = profile->pass_count < capacity ? profile->pass_count : capacity;
    for (size_t i = 0; i < count; i++) {
        const struct profile_pass *pass = &profile->passes[i];
        times[i] = (struct vkn_pass_time){pass->name,
                                          pass->steps > 0 ? 1e3 * pass->seconds / pass->steps : 0};
    }
    return count;
}

size_t vkn_trainer_memory(const vkn_trainer *trainer, struct vkn_buffer_memory *buffers,
                          size_t capacity)
{
    struct gpu_memory_use uses[VKN_MAX_BUFFERS];
    if (!trainer || !buffers || capacity == 0)
        return 0;
    size_t most = capacity < VKN_MAX_BUFFERS ? capacity : VKN_MAX_BUFFERS;
    size_t count = gpu_memory_uses(trainer->device, uses, most);
    for (size_t i = 0; i < count; i++)
        buffers[i] = (struct vkn_buffer_memory){uses[i].name, uses[i].bytes, uses[i].host};
    return count;
}

/* ---- the loop -----------------------------------------------------------------------------------
 */

static void add_times(struct loop *loop, uint32_t recording, uint64_t reach)
{
    struct vkn_trainer *t = loop->trainer;
    struct step_timing timings[STEP_MAX_TIMINGS];
    struct gpu_clocks clocks;
    const struct profile_period period = {
        .waited = base_seconds(),
        .timings = timings,
        .count = step_timings(&t->step, recording, timings),
        .from = t->steps_done,
        .to = reach,
        .queued = loop->queued[recording],
        .clocks = t->profile.detailed && gpu_read_clocks(t->device, &clocks) ? &clocks : NULL,
    };
    loop_add_idle(loop, &period);
    profile_add_period(&t->profile, &period);
    bool whole = period.queued && loop->waited > 0 && period.to - period.from == PERIOD_STEPS;
    if (reach % PERIOD_STEPS == 0) /* else the place that is timed stayed idle */
        step_learn(&t->step, timings, period.count, whole ? period.waited - loop->waited : 0);
    loop->waited = period.waited;
}

/* A driver may compile programs, or most of them, when they run for the first time (lavapipe). */
static void tell_first_wait(const struct vkn_trainer *t, uint32_t recording)
{
    if (t->profile.steps == 0 && !step_wait_a_while(&t->step, recording, 1))
        loop_tell_slow_start(t);
}

static vkn_status wait_recording(struct loop *loop, uint32_t recording)
{
    struct vkn_trainer *t = loop->trainer;
    uint64_t reach = loop->reach[recording];
    if (reach == 0)
        return VKN_OK;
    double began = base_seconds();
    tell_first_wait(t, recording);
    BASE_TRY(step_wait(&t->step, recording)); /* if not, drain tries it once more */
    loop->step_seconds = (base_seconds() - loop->handed) / (double)(reach - t->steps_done);
    loop->reach[recording] = 0;
    profile_add_host(&t->profile, "wait", began, reach);
    add_times(loop, recording, reach);
    loop_read_stats(loop, t->steps_done, reach);
    t->steps_done = reach;
    double interval = loop->run->report_seconds > 0 ? loop->run->report_seconds : 0.5;
    if (base_seconds() - loop->window.began >= interval)
        loop_report(loop);
    return VKN_OK;
}

static vkn_status submit_recording(struct loop *loop, uint32_t recording)
{
    double began = base_seconds();
    loop->queued[recording] = false;
    for (uint32_t i = 0; i < STEP_RECORDINGS; i++)
        loop->queued[recording] = loop->queued[recording] || loop->reach[i] > 0;
    BASE_TRY(step_submit(&loop->trainer->step, recording));
    loop->handed = base_seconds();
    loop->reach[recording] = loop->submitted;
    profile_add_host(&loop->trainer->profile, "submit", began, loop->submitted);
    return VKN_OK;
}

#define SLOW_STEP     0.1 /* seconds: too long for a screen, and for whoever waits for a stop */
#define USUAL_STEP    0.05
#define LEAST_SAMPLES 16384u /* as on CPU devices */

/* Takes fewer samples where a step of them takes too long, unless they were asked for. Not where
 * the same bits are to come out again. */
static vkn_status adapt_batch(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    uint32_t before = t->config.batch.samples, samples = before;
    double seconds = step_seconds(&t->step);
    if (!t->open_batch || t->config.deterministic || seconds <= SLOW_STEP)
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

/* The first step on this device, pass by pass, because nobody knows how long it takes. */
static vkn_status measure_step(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    if (t->step.measured || !step_adapts(&t->step) || loop->submitted >= loop->limit)
        return VKN_OK;
    struct Control *control = t->step.buffers.at[BIND_CONTROL].mapped;
    control->time_progress = (float)loop_time_progress(loop);
    BASE_TRY(loop_exchange_images(loop));
    BASE_TRY(step_measure(&t->step, loop->submitted % PERIOD_STEPS));
    loop->submitted++;
    loop_read_stats(loop, t->steps_done, loop->submitted);
    t->steps_done = loop->submitted;
    return VKN_OK;
}

/* In the order of their submission. */
static vkn_status drain(struct loop *loop)
{
    vkn_status status = VKN_OK;
    for (uint32_t n = 0; n < STEP_RECORDINGS && status == VKN_OK; n++) {
        uint32_t first = STEP_RECORDINGS;
        for (uint32_t i = 0; i < STEP_RECORDINGS; i++)
            if (loop->reach[i] > 0 &&
                (first == STEP_RECORDINGS || loop->reach[i] < loop->reach[first]))
                first = i;
        if (first < STEP_RECORDINGS)
            status = wait_recording(loop, first);
    }
    return status;
}

/* Whoever looks comes between two steps, with nothing in flight: how far the device goes by itself
 * may only then become another. */
static vkn_status receive(struct loop *loop)
{
    bool before = loop->watched;
    loop_ask(loop);
    if (loop->watched || before)
        BASE_TRY(drain(loop));
    return loop_receive(loop);
}

static vkn_status submit_periods(struct loop *loop)
{
    struct Control *control = loop->trainer->step.buffers.at[BIND_CONTROL].mapped;
    double seconds = loop->trainer->config.seconds;
    if (loop->bound || !loop_stopped(loop))
        BASE_TRY(measure_step(loop));
    for (uint32_t recording = 0; loop->submitted < loop->limit;
         recording = (recording + 1) % STEP_RECORDINGS) {
        BASE_TRY(wait_recording(loop, recording));
        if (!loop->bound)
            BASE_TRY(receive(loop));
        if (!loop->bound && (loop_stopped(loop) || loop_out_of_time(loop)))
            break;
        if (!loop->bound && loop_ended(loop)) /* ranks that are averaged agree on it behind the
                                                 period */
            break;
        if (seconds > 0)
            control->time_progress = (float)(loop_elapsed(loop) / seconds);
        BASE_TRY(loop_exchange_images(loop));
        BASE_TRY(adapt_batch(loop));
        BASE_TRY(step_choose_parts(&loop->trainer->step, recording));
        loop->submitted = loop_next_stop(loop);
        control->step_limit = (uint32_t)(loop->watched ? loop->submitted : loop->limit);
        BASE_TRY(submit_recording(loop, recording));
        if (loop->watched)
            BASE_TRY(drain(loop));
    }
    return VKN_OK;
}

/* The images of a run that begins or was resumed. */
static vkn_status seek_images(struct vkn_trainer *t)
{
    const struct vkn_config *config = &t->config;
    bool timed = config->seconds > 0 && !config->deterministic;
    if (!t->stream || t->sought)
        return VKN_OK;
    BASE_TRY(stream_seek(t->stream, t->steps_done, timed ? t->seconds / config->seconds : 0.0));
    t->sought = true;
    return VKN_OK;
}

vkn_status loop_run_periods(struct loop *loop)
{
    vkn_status status = submit_periods(loop);
    if (status != VKN_NO_DEVICE) { /* an image that cannot be read costs no finished step */
        vkn_status drained = drain(loop);
        status = status == VKN_OK ? drained : status;
    }
    loop->trainer->lost = loop->trainer->lost || status == VKN_NO_DEVICE;
    return status;
}

static vkn_status run_to_limit(struct vkn_trainer *trainer, const struct vkn_train_run *run)
{
    BASE_TRY(seek_images(trainer));
    bool follows = !trainer_leads(trainer);
    uint64_t limit = trainer->config.steps > 0 ? trainer->config.steps : UINT32_MAX;
    if (!follows && run->until_step > 0 && run->until_step < limit)
        limit = run->until_step;
    struct Control *control = trainer->step.buffers.at[BIND_CONTROL].mapped;
    control->step_limit = (uint32_t)limit;
    struct loop loop = {
        .trainer = trainer,
        .run = run,
        .began = base_seconds(),
        .submitted = trainer->steps_done,
        .from = trainer->steps_done,
        .limit = limit,
        .follows = follows,
        .window.began = base_seconds(),
    };
    vkn_status status = trainer->step.ranks ? together_run(&loop)
                        : trainer->parallel ? average_run(&loop)
                                            : loop_run_periods(&loop);
    loop_report(&loop);
    trainer->seconds = loop_elapsed(&loop);
    bool together = trainer->step.ranks || trainer->parallel;
    if (status == VKN_OK && loop_ended(&loop))
        return train_end_early(trainer);
    if (status == VKN_OK && (together ? trainer->told_stop : loop_stopped(&loop)))
        return base_fail(VKN_INTERRUPTED, "interrupted at step %llu",
                         (unsigned long long)trainer->steps_done);
    return status;
}

vkn_status vkn_trainer_run(vkn_trainer *trainer, const struct vkn_train_run *given)
{
    BASE_C_LOCALE;
    BASE_NEED(trainer);
    struct vkn_train_run own, *run = &own;
    BASE_TRY(BASE_READ(__func__, vkn_train_run, given, run, context));
    BASE_RANGE(run, seconds, 0, DBL_MAX);
    BASE_RANGE(run, report_seconds, 0, DBL_MAX);
    BASE_USE(gpu_guard(trainer->device), trainer);
    const volatile sig_atomic_t *before = gpu_watch_stop(trainer->device, run->stop);
    if (!run->stop)
        gpu_watch_stop(trainer->device, before); /* a job's own */
    vkn_status status = run_to_limit(trainer, run);
    gpu_watch_stop(trainer->device, before);
    return status;
}
