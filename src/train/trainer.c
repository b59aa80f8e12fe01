/* The training loop: submits periods, two in flight, and reads their figures late. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "report/report.h"
#include "train/internal.h"

const struct vkn_backend *vkn_trainer_backend(const vkn_trainer *trainer)
{
    return &trainer->backend;
}

const struct vkn_config *vkn_trainer_config(const vkn_trainer *trainer)
{
    return &trainer->config;
}

uint64_t vkn_trainer_step(const vkn_trainer *trainer)
{
    return trainer->steps_done;
}

double vkn_trainer_seconds(const vkn_trainer *trainer)
{
    return trainer->seconds;
}

void vkn_trainer_images(const vkn_trainer *trainer, struct vkn_images *images)
{
    const struct images_plan *plan = &trainer->images;
    struct stream_state state = {.shrink = 1};
    if (trainer->stream)
        state = stream_state(trainer->stream);
    *images = (struct vkn_images){
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

bool vkn_trainer_finished(const vkn_trainer *trainer)
{
    return (trainer->config.steps > 0 && trainer->steps_done >= trainer->config.steps) ||
           (trainer->config.seconds > 0 && trainer->seconds >= trainer->config.seconds);
}

vkn_status vkn_trainer_start_profile(vkn_trainer *trainer)
{
    trainer->profile.detailed = true;
    return step_profile(&trainer->step);
}

size_t vkn_trainer_pass_times(const vkn_trainer *trainer, struct vkn_pass_time *times,
                              size_t capacity)
{
    const struct profile *profile = &trainer->profile;
    size_t count = profile->pass_count < capacity ? profile->pass_count : capacity;
    for (size_t i = 0; i < count; i++) {
        const struct profile_pass *pass = &profile->passes[i];
        times[i] = (struct vkn_pass_time){pass->name,
                                          pass->steps > 0 ? 1e3 * pass->seconds / pass->steps : 0};
    }
    return count;
}

/* ---- the loop -----------------------------------------------------------------------------------
 */

/* Figures since the last report. */
struct window {
    double began; /* base_seconds() */
    uint64_t steps;
    double rays, samples, live, loss, square, flushed;
    double span, idle; /* seconds on the device's clock */
    struct Stats last;
};

struct loop {
    struct vkn_trainer *trainer;
    const struct vkn_train_run *run;
    double began;                    /* base_seconds() */
    uint64_t submitted;              /* steps that the submitted recordings reach */
    uint64_t from, limit;            /* steps */
    uint64_t reach[STEP_RECORDINGS]; /* steps reached by each recording in flight; 0: none */
    bool queued[STEP_RECORDINGS];    /* another one was in flight when it was submitted */
    double waited;                   /* base_seconds() when the last period had come in; 0: none */
    double device_end;               /* of the last period, on the device's clock; 0: none yet */
    struct window window;
    struct vkn_train_stats reported; /* last */
};

static double elapsed(const struct loop *loop)
{
    return loop->trainer->seconds + base_seconds() - loop->began;
}

/* ---- warnings ------------------------------------------------------------------------------- */

/* Skipped in a row, for a warning: a scale of 65536 comes down to 1 in 16 steps. */
#define MANY_SKIPPED 64

__attribute__((format(printf, 2, 3))) static void warn(const struct loop *loop, const char *format,
                                                       ...)
{
    char line[WATCH_LINE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (loop->run->warn)
        loop->run->warn(loop->run->context, line);
    else
        base_log(BASE_LOG_WARNING, "%s", line);
}

/* Warns when the device skipped steps or lowered the learning rate because gradients were not
 * finite. */
static void watch_loss_scale(const struct loop *loop, const struct Stats *stats)
{
    struct vkn_trainer *t = loop->trainer;
    double scale = (double)stats->loss_scale;
    if (stats->rate_cuts > t->rate_cuts)
        warn(loop,
             "step %u: the loss scale keeps falling (%.4g, then x%.4g): the learning rate is "
             "multiplied by %.4g from here on",
             stats->step, scale, (double)t->config.loss_scale.backoff,
             pow((double)t->config.loss_scale.fall_factor, stats->rate_cuts));
    t->rate_cuts = stats->rate_cuts;
    bool skipped = stats->skipped_steps != t->skipped_steps;
    t->skipped_steps = stats->skipped_steps;
    t->skipped_in_row = skipped ? t->skipped_in_row + 1 : 0;
    if (t->skipped_in_row == MANY_SKIPPED)
        warn(loop,
             "step %u: the last %d steps were skipped: at a loss scale of %.4g their gradients are "
             "not finite",
             stats->step, MANY_SKIPPED, scale);
}

size_t vkn_trainer_memory(const vkn_trainer *trainer, struct vkn_buffer_memory *buffers,
                          size_t capacity)
{
    struct gpu_memory_use uses[VKN_MAX_BUFFERS];
    size_t most = capacity < VKN_MAX_BUFFERS ? capacity : VKN_MAX_BUFFERS;
    size_t count = gpu_memory_uses(trainer->device, uses, most);
    for (size_t i = 0; i < count; i++)
        buffers[i] = (struct vkn_buffer_memory){uses[i].name, uses[i].bytes, uses[i].host};
    return count;
}

/* ---- figures -------------------------------------------------------------------------------- */

/* Adds the ring's entries of steps (from, to]. */
static void read_stats(struct loop *loop, uint64_t from, uint64_t to)
{
    const struct Stats *ring = loop->trainer->step.buffers.at[BIND_STATS].mapped;
    char line[WATCH_LINE];
    for (uint64_t step = from + 1; step <= to; step++) {
        struct Stats stats = ring[step % STATS_RING];
        loop->window.steps++;
        loop->window.rays += stats.rays;
        loop->window.samples += stats.samples;
        loop->window.live += stats.live;
        loop->window.loss += stats.loss;
        loop->window.square += stats.square;
        loop->window.flushed += stats.flushed;
        loop->window.last = stats;
        loop->trainer->profile.steps++;
        loop->trainer->profile.rays += stats.rays;
        loop->trainer->profile.marched += stats.samples;
        loop->trainer->profile.live += stats.live;
        watch_loss_scale(loop, &stats);
        if (watch_step(&loop->trainer->watch, &stats, line))
            warn(loop, "%s", line);
    }
}

static void report(struct loop *loop)
{
    struct window *window = &loop->window;
    double now = base_seconds(), seconds = now - window->began;
    if (loop->run->report && window->steps > 0) {
        double steps = (double)window->steps, square = window->square / steps;
        struct vkn_images images;
        vkn_trainer_images(loop->trainer, &images);
        struct vkn_train_stats stats = {
            .step = loop->trainer->steps_done,
            .seconds = elapsed(loop),
            .loss = window->loss / steps,
            .psnr = report_psnr(square),
            .learning_rate = window->last.learning_rate,
            .loss_scale = window->last.loss_scale,
            .grad_norm = window->last.grad_norm,
            .skipped_steps = window->last.skipped_steps,
            .flushed = window->flushed / steps,
            .steps_per_second = steps / seconds,
            .rays_per_second = window->rays / seconds,
            .samples_per_second = window->live / seconds,
            .marched_per_second = window->samples / seconds,
            .gpu_memory_bytes = gpu_memory_held(loop->trainer->device),
            .idle_share = window->span > 0 ? window->idle / window->span : (double)NAN,
            .images = images,
        };
        /* The last periods come in together: too short a time to tell a rate from. */
        if (seconds < 0.1 && loop->reported.step > 0) {
            stats.steps_per_second = loop->reported.steps_per_second;
            stats.rays_per_second = loop->reported.rays_per_second;
            stats.samples_per_second = loop->reported.samples_per_second;
            stats.marched_per_second = loop->reported.marched_per_second;
        }
        loop->reported = stats;
        loop->run->report(loop->run->context, &stats);
        profile_add_host(&loop->trainer->profile, "report", now, stats.step);
    }
    *window = (struct window){.began = now};
}

static bool stopped(const struct loop *loop)
{
    return loop->run->stop && *loop->run->stop;
}

static bool out_of_time(const struct loop *loop)
{
    double seconds = loop->trainer->config.seconds, pause = loop->run->seconds;
    bool paused =
        pause > 0 && loop->submitted > loop->from && base_seconds() - loop->began >= pause;
    return paused || (seconds > 0 && elapsed(loop) >= seconds);
}

/* From the end of the period before, by the device's clock. */
static void add_idle(struct loop *loop, const struct profile_period *period)
{
    if (period->count == 0)
        return;
    double begin = period->timings->begin, end = period->timings[period->count - 1].end;
    double from = loop->device_end > 0 ? fmin(loop->device_end, begin) : begin;
    loop->window.idle += begin - from;
    loop->window.span += end - from;
    loop->device_end = end;
}

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
    add_idle(loop, &period);
    profile_add_period(&t->profile, &period);
    bool whole = period.queued && loop->waited > 0 && period.to - period.from == PERIOD_STEPS;
    step_learn(&t->step, timings, period.count, whole ? period.waited - loop->waited : 0);
    loop->waited = period.waited;
}

/* A driver may compile programs, or most of them, when they run for the first time (lavapipe). */
static void tell_first_wait(const struct vkn_trainer *t, uint32_t recording)
{
    if (t->profile.steps == 0 && !step_wait_a_while(&t->step, recording, 1))
        base_log(BASE_LOG_INFO,
                 "%s: the first steps are running; the driver compiles programs at their first use",
                 gpu_device_capabilities(t->device)->name);
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
    loop->reach[recording] = 0;
    profile_add_host(&t->profile, "wait", began, reach);
    add_times(loop, recording, reach);
    read_stats(loop, t->steps_done, reach);
    t->steps_done = reach;
    double interval = loop->run->report_seconds > 0 ? loop->run->report_seconds : 0.5;
    if (base_seconds() - loop->window.began >= interval)
        report(loop);
    return VKN_OK;
}

static vkn_status submit_recording(struct loop *loop, uint32_t recording)
{
    double began = base_seconds();
    loop->queued[recording] = false;
    for (uint32_t i = 0; i < STEP_RECORDINGS; i++)
        loop->queued[recording] = loop->queued[recording] || loop->reach[i] > 0;
    BASE_TRY(step_submit(&loop->trainer->step, recording));
    loop->reach[recording] = loop->submitted;
    profile_add_host(&loop->trainer->profile, "submit", began, loop->submitted);
    return VKN_OK;
}

/* Share of the training by the clock, which a run that shall repeat does not look at. */
static double time_progress(const struct loop *loop)
{
    const struct vkn_config *config = &loop->trainer->config;
    return config->seconds > 0 && !config->deterministic ? elapsed(loop) / config->seconds : 0.0;
}

static vkn_status exchange_images(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    if (!t->stream)
        return VKN_OK;
    double began = base_seconds();
    BASE_TRY(stream_advance(t->stream, loop->submitted, time_progress(loop)));
    profile_add_host(&t->profile, "images", began, loop->submitted);
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
    control->time_progress = (float)time_progress(loop);
    BASE_TRY(exchange_images(loop));
    BASE_TRY(step_measure(&t->step, loop->submitted % PERIOD_STEPS));
    loop->submitted++;
    read_stats(loop, t->steps_done, loop->submitted);
    t->steps_done = loop->submitted;
    return VKN_OK;
}

static vkn_status submit_periods(struct loop *loop)
{
    struct Control *control = loop->trainer->step.buffers.at[BIND_CONTROL].mapped;
    double seconds = loop->trainer->config.seconds;
    if (!stopped(loop))
        BASE_TRY(measure_step(loop));
    for (uint32_t recording = 0; loop->submitted < loop->limit;
         recording = (recording + 1) % STEP_RECORDINGS) {
        BASE_TRY(wait_recording(loop, recording));
        if (stopped(loop) || out_of_time(loop))
            break;
        if (seconds > 0)
            control->time_progress = (float)(elapsed(loop) / seconds);
        BASE_TRY(exchange_images(loop));
        BASE_TRY(adapt_batch(loop));
        BASE_TRY(step_choose_parts(&loop->trainer->step, recording));
        uint64_t next = (loop->submitted / PERIOD_STEPS + 1) * PERIOD_STEPS;
        loop->submitted = next < loop->limit ? next : loop->limit;
        BASE_TRY(submit_recording(loop, recording));
    }
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

static vkn_status run_to_limit(struct vkn_trainer *trainer, const struct vkn_train_run *run)
{
    BASE_TRY(seek_images(trainer));
    uint64_t limit = trainer->config.steps > 0 ? trainer->config.steps : UINT32_MAX;
    if (run->until_step > 0 && run->until_step < limit)
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
        .window.began = base_seconds(),
    };
    vkn_status status = submit_periods(&loop);
    if (status != VKN_NO_DEVICE) { /* an image that cannot be read costs no finished step */
        vkn_status drained = drain(&loop);
        status = status == VKN_OK ? drained : status;
    }
    report(&loop);
    trainer->seconds = elapsed(&loop);
    if (status == VKN_OK && stopped(&loop))
        return base_fail(VKN_INTERRUPTED, "interrupted at step %llu",
                         (unsigned long long)trainer->steps_done);
    return status;
}

vkn_status vkn_trainer_run(vkn_trainer *trainer, const struct vkn_train_run *run)
{
    BASE_C_LOCALE;
    static const struct vkn_train_run quietly;
    run = run ? run : &quietly;
    const volatile sig_atomic_t *before = gpu_watch_stop(trainer->device, run->stop);
    if (!run->stop)
        gpu_watch_stop(trainer->device, before); /* a job's own */
    vkn_status status = run_to_limit(trainer, run);
    gpu_watch_stop(trainer->device, before);
    return status;
}
