/* Implements the trainer's public functions that need module render or bench. */
#include "base/base.h"
#include "bench/bench.h"
#include "render/render.h"
#include "train/train.h"

vkn_status vkn_renderer_of_trainer(vkn_trainer *trainer, vkn_renderer **renderer)
{
    BASE_C_LOCALE;
    BASE_NEED(trainer);
    BASE_NEED(renderer);
    *renderer = NULL;
    BASE_USE(train_guard(trainer), NULL);
    const struct train_internals internals = train_internals(trainer);
    BASE_TRY(render_of_step(internals.step, internals.steps_done, internals.scene_path, renderer));
    render_hold_trainer(*renderer, train_hold(trainer));
    return VKN_OK;
}

vkn_status vkn_trainer_profile(vkn_trainer *trainer, struct vkn_profile **profile)
{
    BASE_C_LOCALE;
    BASE_NEED(trainer);
    BASE_NEED(profile);
    return train_profile(trainer, bench_measure_peaks, profile);
}
