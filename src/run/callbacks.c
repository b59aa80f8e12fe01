/* Calls the callbacks of vkn_train_callbacks. */
#include "run/training.h"

#include "run/internal.h"

vkn_status run_callbacks_read(const struct vkn_train_callbacks *given, struct run_callbacks *read)
{
    *read = (struct run_callbacks){0};
    if (!given)
        return VKN_OK;
    struct vkn_train_callbacks *callbacks = &read->user;
    BASE_TRY(BASE_READ("vkn_train_callbacks", vkn_train_callbacks, given, callbacks, closed));
    if (callbacks->due || callbacks->between_steps) {
        BASE_NEED(callbacks->due);
        BASE_NEED(callbacks->between_steps);
    }
    return VKN_OK;
}

void run_callbacks_open(struct run_callbacks *callbacks, struct run_saver *saver, const char *scene)
{
    const struct vkn_train_callbacks *user = &callbacks->user;
    callbacks->saver = saver;
    if (!user->opened)
        return;
    BASE_CALLBACK(train_guard(saver->trainer), "vkn_run_train", "opened", saver->trainer, true);
    user->opened(user->context, saver->trainer, saver->folder, scene);
}

vkn_status run_callbacks_close(struct run_callbacks *callbacks, vkn_status status)
{
    BASE_KEEP_ERROR;
    const struct vkn_train_callbacks *user = &callbacks->user;
    if (!user->closed)
        return status;
    vkn_trainer *trainer = callbacks->saver->trainer;
    BASE_CALLBACK(train_guard(trainer), "vkn_run_train", "closed", trainer, true);
    user->closed(user->context, trainer, status);
    return status;
}

void run_callbacks_report(const struct run_callbacks *callbacks,
                          const struct vkn_train_stats *stats)
{
    if (callbacks->user.report)
        callbacks->user.report(callbacks->user.context, stats);
}

double run_callbacks_due(const struct run_callbacks *callbacks)
{
    return callbacks->user.due(callbacks->user.context);
}

vkn_status run_callbacks_between_steps(struct run_callbacks *callbacks)
{
    bool save = true;
    while (save) { /* calls again after a checkpoint that the callback requested */
        save = false;
        BASE_TRY(callbacks->user.between_steps(callbacks->user.context, callbacks->saver->trainer,
                                               &save));
        if (save)
            BASE_TRY(run_saver_save(callbacks->saver));
    }
    return VKN_OK;
}
