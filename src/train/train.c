/* What the neighbours need of a trainer beside its public face. */
#include "train/train.h"

#include "train/internal.h"

vkn_status train_load_images(struct scene *scene, const struct vkn_config *config,
                             void (*progress)(void *context, size_t done, size_t total),
                             void *context)
{
    return stream_load(scene, config, progress, context);
}

struct train_shown train_shown(const vkn_trainer *trainer)
{
    return (struct train_shown){
        .step = &trainer->step,
        .steps_done = &trainer->steps_done,
        .scene_path = trainer->scene->path,
    };
}

void train_explain_backend(vkn_trainer *trainer, const char *why)
{
    snprintf(trainer->backend_why, sizeof trainer->backend_why, "%s", why);
}

struct train_gradients train_gradients(const vkn_trainer *trainer)
{
    const struct watch *watch = &trainer->watch;
    struct train_gradients gradients = {
        .steps = watch->steps,
        .flushed = watch->counts[WATCH_FLUSHED],
        .jumps = watch->counts[WATCH_JUMP],
        .zeros = watch->counts[WATCH_ZERO],
    };
    _Static_assert(sizeof gradients.warning == WATCH_LINE, "a line of the watch");
    if (!watch_summary(watch, gradients.warning))
        gradients.warning[0] = '\0';
    return gradients;
}

void train_add_event(vkn_trainer *trainer, const char *name, double began)
{
    profile_add_host(&trainer->profile, name, began, trainer->steps_done);
}

vkn_status train_write_trace(vkn_trainer *trainer, const char *path, double origin,
                             const char *device, const char *driver)
{
    return profile_write_trace(&trainer->profile, path, origin, device, driver);
}
