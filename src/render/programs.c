/* The programs that pictures are made with. */
#include <string.h>

#include "optim/optim.h"
#include "rays/rays.h"
#include "render/internal.h"
#include "volume/volume.h"

size_t render_list_views(struct vkn_renderer *r,
                         struct field_pass_request passes[RENDER_MAX_PROGRAMS])
{
    const struct recipe *forward = &r->setup.model.kind->forward;
    const struct field_pass_request fixed[] = {
        {rays_viewing.passes[RAYS_GENERATE_VIEW].name, &r->generate_view_rays, FIELD_SAME},
        {rays_view_samples(&r->setup.config)->name, &r->sample_view_rays, FIELD_SAME},
        {volume_viewing.passes[VOLUME_VIEW].name, &r->composite_view, FIELD_SAME},
        {"finish_pixels", &r->finish_pixels, FIELD_SAME},
    };
    size_t count = BASE_COUNT(fixed);
    memcpy(passes, fixed, sizeof fixed);
    for (size_t i = 0; i < forward->count && i < RENDER_MAX_FORWARD; i++)
        passes[count++] = (struct field_pass_request){forward->passes[i].name, &r->forward[i],
                                                      forward->passes[i].variant};
    if (rays_view_coarse(&r->setup.config))
        passes[count++] = (struct field_pass_request){rays_view_coarse(&r->setup.config)->name,
                                                      &r->sample_coarse_rays, FIELD_SAME};
    if (rays_use_grid(&r->setup.config))
        passes[count++] = (struct field_pass_request){rays_occupancy.passes[RAYS_PACK].name,
                                                      &r->pack_occupancy, FIELD_SAME};
    if (r->setup.backend.copies)
        passes[count++] =
            (struct field_pass_request){optim_round_pass, &r->round_parameters, FIELD_SAME};
    return count;
}

size_t render_list_normals(struct vkn_renderer *r,
                           struct field_pass_request passes[RENDER_NORMAL_PROGRAMS])
{
    const struct recipe *normals = &r->setup.model.kind->normals;
    if (normals->count == 0)
        return 0;
    const struct field_pass_request all[RENDER_NORMAL_PROGRAMS] = {
        {normals->passes[0].name, &r->sample_normals, normals->passes[0].variant},
        {volume_viewing.passes[VOLUME_NORMALS].name, &r->composite_normals, FIELD_SAME},
        {"finish_normals", &r->finish_normals, FIELD_SAME},
    };
    memcpy(passes, all, sizeof all);
    return BASE_COUNT(all);
}

size_t render_list_programs(const struct setup *setup, struct field_pass_request *programs)
{
    struct vkn_renderer r = {.setup = *setup};
    size_t count = render_list_views(&r, programs);
    count += render_list_normals(&r, programs + count);
    for (size_t i = 0; i < count; i++)
        programs[i].program = NULL;
    return count;
}
