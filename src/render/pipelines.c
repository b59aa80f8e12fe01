/* Lists the pipelines that render pictures. */
#include <string.h>

#include "optim/optim.h"
#include "rays/rays.h"
#include "render/internal.h"
#include "volume/volume.h"

static size_t add_forward(const struct setup *setup, struct gpu_pipeline *pipelines[], size_t count,
                          struct field_pass_request passes[RENDER_MAX_PIPELINES])
{
    const struct pass *forward[FIELD_MAX_PASSES];
    size_t total = field_list_passes(&setup->model, &setup->model.kind->forward, forward);
    for (size_t i = 0; i < total && i < RENDER_MAX_FORWARD; i++)
        passes[count++] =
            (struct field_pass_request){forward[i]->name, &pipelines[i], forward[i]->variant};
    return count;
}

size_t render_list_views(struct vkn_renderer *r,
                         struct field_pass_request passes[RENDER_MAX_PIPELINES])
{
    const struct field_pass_request fixed[] = {
        {rays_viewing.passes[RAYS_GENERATE_VIEW].name, &r->generate_view_rays, FIELD_NO_VARIANT},
        {rays_view_samples(&r->setup.config)->name, &r->sample_view_rays, FIELD_NO_VARIANT},
        {volume_viewing.passes[VOLUME_VIEW].name, &r->composite_view, FIELD_NO_VARIANT},
        {"finish_pixels", &r->finish_pixels, FIELD_NO_VARIANT},
    };
    memcpy(passes, fixed, sizeof fixed);
    size_t count = add_forward(&r->setup, r->forward, BASE_COUNT(fixed), passes);
    if (rays_view_coarse(&r->setup.config))
        passes[count++] = (struct field_pass_request){rays_view_coarse(&r->setup.config)->name,
                                                      &r->sample_coarse_rays, FIELD_NO_VARIANT};
    if (rays_use_grid(&r->setup.config))
        passes[count++] = (struct field_pass_request){rays_occupancy.passes[RAYS_PACK].name,
                                                      &r->pack_occupancy, FIELD_NO_VARIANT};
    if (r->setup.backend.copies)
        passes[count++] =
            (struct field_pass_request){optim_round_pass, &r->round_parameters, FIELD_NO_VARIANT};
    return count;
}

size_t render_list_proposal(struct vkn_renderer *r,
                            struct field_pass_request passes[RENDER_MAX_PIPELINES])
{
    if (!rays_have_proposal(&r->setup.config))
        return 0;
    size_t count = add_forward(&r->coarse_setup, r->proposal_forward, 0, passes);
    if (r->setup.backend.copies)
        passes[count++] =
            (struct field_pass_request){optim_round_pass, &r->round_proposal, FIELD_NO_VARIANT};
    return count;
}

size_t render_list_normals(struct vkn_renderer *r,
                           struct field_pass_request passes[RENDER_NORMAL_PIPELINES])
{
    const struct pass *normals[FIELD_MAX_PASSES];
    size_t count = field_list_passes(&r->setup.model, &r->setup.model.kind->normals, normals);
    const struct field_pass_request fixed[] = {
        {volume_viewing.passes[VOLUME_NORMALS].name, &r->composite_normals, FIELD_NO_VARIANT},
        {"finish_normals", &r->finish_normals, FIELD_NO_VARIANT},
    };
    memcpy(passes, fixed, sizeof fixed);
    if (count == 0)
        return BASE_COUNT(fixed);
    passes[BASE_COUNT(fixed)] =
        (struct field_pass_request){normals[0]->name, &r->sample_normals, normals[0]->variant};
    return BASE_COUNT(fixed) + 1;
}

size_t render_list_pipelines(const struct setup *setup, struct field_pass_request *pipelines)
{
    struct vkn_renderer r = {.setup = *setup};
    size_t count = render_list_views(&r, pipelines);
    count += render_list_normals(&r, pipelines + count);
    for (size_t i = 0; i < count; i++)
        pipelines[i].pipeline = NULL;
    return count;
}
