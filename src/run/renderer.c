/* vkn_renderer_of_trainer: pictures of what a trainer has learnt so far. */
#include "render/internal.h"
#include "train/internal.h"

vkn_status vkn_renderer_of_trainer(vkn_trainer *trainer, vkn_renderer **renderer)
{
    BASE_C_LOCALE;
    return render_of_step(&trainer->step, &trainer->steps_done, trainer->scene->path, renderer);
}
