/* Uploads constants and runs single passes outside of a step's command buffers. */
#include "step/internal.h"
#include "rays/rays.h"

vkn_status step_upload_constants(struct step *step)
{
    if (step->coarse.at[BIND_CONFIG].handle)
        BASE_TRY(gpu_upload(step->device, &step->coarse.at[BIND_CONFIG], 0,
                            &step->coarse_setup.constants, sizeof step->coarse_setup.constants));
    return gpu_upload(step->device, &step->buffers.at[BIND_CONFIG], 0, &step->setup.constants,
                      sizeof step->setup.constants);
}

static vkn_status run_once(struct step *step, const struct gpu_pipeline *pipeline,
                           const struct gpu_bindings *bindings, struct Push push, uint32_t groups)
{
    GPU_ONCE(step->device, "once");
    push.b = step->local_size;
    gpu_record_dispatch(recording, pipeline, bindings, &push, sizeof push, groups);
    return gpu_run_once(&recording);
}

/* Returns the number of workgroups for pipelines that work with any number. */
static uint32_t once_groups(const struct step *step)
{
    uint32_t limit = step->setup.constants.group_limit;
    return limit < 1024 ? limit : 1024;
}

vkn_status step_run_pipeline(struct step *step, const struct gpu_pipeline *pipeline,
                             struct Push push)
{
    return run_once(step, pipeline, step->sets[0].training, push, once_groups(step));
}

vkn_status step_pack_occupancy(struct step *step)
{
    uint32_t cascades = setup_repeats(&step->setup).cascades;
    uint32_t groups = rays_pack_groups(&step->setup.config, step->local_size);
    for (size_t i = 0; i < step->pass_count; i++)
        for (uint32_t c = 0; step->passes[i].pass->loop == LOOP_CASCADES && c < cascades; c++)
            BASE_TRY(run_once(step, step->passes[i].pipeline, step->sets[0].training,
                              (struct Push){.c = c}, groups));
    return VKN_OK;
}

vkn_status step_round_parameters(struct step *step)
{
    const struct Push none = {0};
    if (!step->setup.backend.copies)
        return VKN_OK;
    for (uint32_t i = 0; i < step->set_count; i++) {
        const struct sample_set *set = &step->sets[i];
        if (i > 0 && !set->coarse)
            continue;
        bool proposal = set->coarse && rays_have_proposal(&step->setup.config);
        const struct gpu_pipeline *pipeline = step->round_parameters[proposal];
        BASE_TRY(run_once(step, pipeline, set->training, none, once_groups(step)));
        BASE_TRY(run_once(step, pipeline, set->inference, none, once_groups(step)));
    }
    return VKN_OK;
}
