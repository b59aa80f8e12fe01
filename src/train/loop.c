/* Implements what all training loops share: the statistics of steps, reports and warnings. */
#include "train/loop.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "report/report.h"

double loop_elapsed(const struct loop *loop)
{
    const struct vkn_trainer *t = loop->trainer;
    if (loop->follows)
        return t->rank0_seconds;
    return t->seconds + (t->profile.steps < UPDATE_INTERVAL ? 0.0 : base_seconds() - loop->began);
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
        .streamed_per_interval = plan->resident < plan->image_strips ? plan->exchanged : 0,
        .bytes = plan->bytes,
        .host_bytes = trainer->scene->splits[SCENE_TRAIN].pixels ? plan->all_bytes : 0,
        .exchange_bytes = IMAGES_EXCHANGES * plan->exchange_bytes,
        .downscale = trainer->config.scene.downscale * state.shrink,
        .exchanged = state.exchanged,
        .late = state.late,
    };
}

/* ---- warnings ------------------------------------------------------------------------------- */

__attribute__((format(__printf__, 2, 3))) static void warn(const struct loop *loop,
                                                           const char *format, ...)
{
    char line[MONITOR_LINE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    BASE_CALLBACK(gpu_guard(loop->trainer->device), "vkn_trainer_run", "warn", loop->trainer,
                  false);
    if (loop->run->warn)
        loop->run->warn(loop->run->context, line);
    else
        base_log(BASE_LOG_WARNING, "%s", line);
}

/* Warns when the device has lowered the learning rate because the loss scale keeps falling. */
static void warn_of_rate_cuts(const struct loop *loop, const struct Stats *stats)
{
    struct vkn_trainer *t = loop->trainer;
    if (stats->rate_cuts > t->rate_cuts)
        warn(loop,
             "step %u: the loss scale keeps falling (%.4g, then x%.4g): the learning rate is "
             "multiplied by %.4g from here on",
             stats->step, (double)stats->loss_scale, (double)t->config.loss_scale.backoff,
             pow((double)t->config.loss_scale.rate_cut_factor, stats->rate_cuts));
    t->rate_cuts = stats->rate_cuts;
}

/* ---- statistics ------------------------------------------------------------------------------ */

void loop_read_stats(struct loop *loop, uint64_t from, uint64_t to)
{
    struct vkn_trainer *t = loop->trainer;
    const struct Stats *ring = t->step.buffers.at[BIND_STATS].mapped;
    char line[MONITOR_LINE];
    for (uint64_t step = from + 1; step <= to; step++) {
        struct Stats stats = ring[step % STATS_RING], *last = &loop->window.last;
        float norm = stats.grad_norm < 0 ? last->grad_norm : stats.grad_norm;
        step_add_stats(&loop->window.sums, &stats);
        *last = stats, last->grad_norm = norm; /* the last that was computed */
        t->profile.rays += stats.rays;
        if (++t->profile.steps == UPDATE_INTERVAL) { /* see loop_elapsed */
            loop->began = base_seconds();
            t->untimed_rays = t->profile.rays;
        }
        t->profile.marched += stats.samples;
        t->profile.live += stats.live;
        warn_of_rate_cuts(loop, &stats);
        if (monitor_step(&t->monitor, &stats, line))
            warn(loop, "%s", line);
    }
}

void loop_log_slow_start(const struct vkn_trainer *t)
{
    base_log(BASE_LOG_INFO,
             "%s: the first steps are running; the driver compiles pipelines at their first use",
             gpu_device_capabilities(t->device)->name);
}

static void report(const struct loop *loop, const struct vkn_train_stats *stats)
{
    BASE_CALLBACK(gpu_guard(loop->trainer->device), "vkn_trainer_run", "report", loop->trainer,
                  false);
    loop->run->report(loop->run->context, stats);
}

void loop_report(struct loop *loop)
{
    struct window *window = &loop->window;
    const struct step_sums *sums = &window->sums;
    double now = base_seconds(), seconds = now - window->began;
    if (loop->run->report && sums->steps > 0) {
        const struct step_losses losses = step_mean_losses(&loop->trainer->step, sums);
        double steps = (double)sums->steps, square = sums->square / steps;
        bool has_ranks = loop->trainer->step.ranks || loop->trainer->ranks > 1;
        /* With parameter averaging, every rank is assumed to be as fast as this one. */
        double ranks = loop->trainer->step.ranks ? 1.0 : loop->trainer->ranks;
        const struct vkn_images images = train_images(loop->trainer);
        struct vkn_train_stats stats = {
            .step = loop->trainer->steps_done,
            .seconds = loop_elapsed(loop),
            .loss = losses.color,
            .psnr = report_psnr(square),
            .learning_rate = window->last.learning_rate,
            .loss_scale = window->last.loss_scale,
            .grad_norm = window->last.grad_norm,
            .skipped_steps = window->last.skipped_steps,
            .underflowed = sums->underflowed / steps,
            .steps_per_second = steps / seconds,
            .rays_per_second = ranks * sums->rays / seconds,
            .samples_per_second = ranks * sums->live / seconds,
            .marched_per_second = ranks * sums->samples / seconds,
            .gpu_memory_bytes = gpu_memory_allocated(loop->trainer->device),
            .idle_share = window->span > 0 ? window->idle / window->span : (double)NAN,
            .exchange_share = has_ranks ? window->communication / seconds : (double)NAN,
            .kept_share = window->last.kept_share,
            .keep_weight = window->last.keep_weight,
            .images = &images,
            .distortion_loss = losses.distortion,
            .interlevel_loss = losses.interlevel,
            .coarse_loss = losses.coarse,
        };
        /* The last update intervals finish almost at once: the time is too short for a rate. */
        if (seconds < 0.1 && loop->reported.step > 0) {
            stats.steps_per_second = loop->reported.steps_per_second;
            stats.rays_per_second = loop->reported.rays_per_second;
            stats.samples_per_second = loop->reported.samples_per_second;
            stats.marched_per_second = loop->reported.marched_per_second;
        }
        loop->reported = stats;
        loop->reported.images = NULL; /* points to a local of this call */
        report(loop, &stats);
        profile_add_host(&loop->trainer->profile, "report", now, stats.step);
    }
    *window = (struct window){.began = now, .last.grad_norm = window->last.grad_norm};
}

bool loop_ended_early(const struct loop *loop)
{
    return loop->trainer->monitor.convergence.end != MONITOR_GOES_ON;
}

bool loop_stopped(const struct loop *loop)
{
    return base_stop_asked(loop->run->stop);
}

bool loop_out_of_time(const struct loop *loop)
{
    double seconds = loop->trainer->config.seconds, pause = loop->run->seconds;
    bool paused =
        pause > 0 && loop->submitted > loop->from && base_seconds() - loop->began >= pause;
    return paused || (seconds > 0 && loop_elapsed(loop) >= seconds);
}

void loop_add_idle(struct loop *loop, const struct profile_interval *interval)
{
    if (interval->count == 0)
        return;
    double begin = interval->timings->begin, end = interval->timings[interval->count - 1].end;
    double from = loop->device_end > 0 ? fmin(loop->device_end, begin) : begin;
    loop->window.idle += begin - from;
    loop->window.span += end - from;
    loop->device_end = end;
}

vkn_status loop_advance(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    struct Control *control = t->step.buffers.at[BIND_CONTROL].mapped;
    bool has_ranks = t->step.ranks || t->parallel;
    double began = base_seconds();
    /* All ranks use the seconds of rank 0's last message: their learning rates are then equal. */
    double progress = trainer_time_progress(t, has_ranks ? t->rank0_seconds : loop_elapsed(loop));
    control->time_progress = (float)progress;
    if (!t->stream)
        return VKN_OK;
    BASE_TRY(stream_advance(t->stream, loop->submitted, progress));
    profile_add_host(&t->profile, "images", began, loop->submitted);
    return VKN_OK;
}
