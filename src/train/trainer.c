/* Implements the public functions that return a trainer's statistics and that run it to a limit. */
#include <float.h>

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

/* ---- running --------------------------------------------------------------------------------- */

/* Loads the images of the current step, when a run begins or was resumed. */
static vkn_status seek_images(struct vkn_trainer *t)
{
    if (!t->stream || t->images_current)
        return VKN_OK;
    BASE_TRY(stream_seek(t->stream, t->steps_done, trainer_time_progress(t, t->seconds)));
    t->images_current = true;
    return VKN_OK;
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
        .window = {.began = base_seconds(), .last.grad_norm = -1},
    };
    vkn_status status = trainer->step.ranks ? synchronous_run(&loop)
                        : trainer->parallel ? local_sgd_run(&loop)
                                            : loop_run_intervals(&loop);
    loop_report(&loop);
    trainer->seconds = loop_elapsed(&loop);
    bool has_ranks = trainer->step.ranks || trainer->parallel;
    if (status == VKN_OK && loop_ended_early(&loop))
        return train_end_early(trainer);
    if (status == VKN_OK && (has_ranks ? trainer->stop_requested : loop_stopped(&loop)))
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
    const volatile sig_atomic_t *before = gpu_set_stop_flag(trainer->device, run->stop);
    if (!run->stop)
        gpu_set_stop_flag(trainer->device, before); /* keeps the job's stop flag */
    vkn_status status = run_to_limit(trainer, run);
    gpu_set_stop_flag(trainer->device, before);
    return status;
}

vkn_status train_write_errors(const vkn_trainer *trainer, const char *path,
                              struct step_outliers *found)
{
    *found = (struct step_outliers){0};
    if (trainer->step.setup.constants.first_sum > trainer->step.setup.constants.sky_cells)
        return images_write_errors(&trainer->step, &trainer->images,
                                   &trainer->scene->splits[SCENE_TRAIN], path, found);
    (void)remove(path); /* of an earlier training; mostly there is none */
    return VKN_OK;
}
