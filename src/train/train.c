/* Loads the training images, and gives other modules access to a trainer's internals. */
#include "train/train.h"

#include "train/internal.h"

/* Distributes the views over all ranks, virtual ones included, round robin, so that a rank's views
 * do not depend on its device. A device's share are the views of its virtual ranks. */
static vkn_status choose_share(const struct vkn_scene *scene, const struct vkn_config *config,
                               const struct parallel *parallel, struct scene_share *share)
{
    size_t views = scene->splits[SCENE_TRAIN].camera_count;
    uint32_t virtual_ranks =
        config->parallel.ranks_per_device > 0 ? config->parallel.ranks_per_device : 1;
    uint32_t ranks = virtual_ranks * (parallel ? parallel_size(parallel) : 1);
    *share = (struct scene_share){0};
    if (config->parallel.images != VKN_PART_SHARE)
        return VKN_OK;
    if (ranks > views)
        return base_fail(VKN_BAD_INPUT,
                         "config: parallel.images: share: %u ranks have only %zu training images "
                         "to share",
                         ranks, views);
    *share = (struct scene_share){.first = virtual_ranks * (parallel ? parallel_rank(parallel) : 0),
                                  .count = virtual_ranks,
                                  .of = ranks};
    return VKN_OK;
}

vkn_status train_load_images(struct vkn_scene *scene, const struct vkn_config *config,
                             const struct parallel *parallel,
                             void (*progress)(void *context, size_t done, size_t total),
                             void *context)
{
    struct scene_share share;
    BASE_TRY(choose_share(scene, config, parallel, &share));
    scene_set_share(scene, SCENE_TRAIN, share);
    return stream_load(scene, config, progress, context);
}

struct train_internals train_internals(const vkn_trainer *trainer)
{
    return (struct train_internals){
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
    const struct monitor *monitor = &trainer->monitor;
    struct train_gradients gradients = {
        .steps = monitor->steps,
        .underflowed = monitor->counts[MONITOR_UNDERFLOW],
        .jumps = monitor->counts[MONITOR_JUMP],
        .zeros = monitor->counts[MONITOR_ZERO],
        .skipped = monitor->skips.skipped,
        .nonfinite_losses = monitor->nonfinite_losses,
        .skipped_steps = monitor->skips.state_skipped,
    };
    _Static_assert(sizeof gradients.warning == MONITOR_LINE, "a line of the monitor");
    if (!monitor_summary(monitor, gradients.warning))
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
