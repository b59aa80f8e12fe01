/* The renderers of what is shown. */
#include "viewer/internal.h"

static vkn_status open_renderer(struct stage *stage, vkn_renderer **renderer)
{
    return stage->trainer
               ? vkn_renderer_of_trainer(stage->trainer, renderer)
               : vkn_renderer_open(stage->context, stage->checkpoint, stage->precision, renderer);
}

/* Pictures take three times as long once a renderer has normals: those have one of their own. */
vkn_status stage_renderer(struct stage *stage, const struct frame_request *request,
                          vkn_renderer **renderer)
{
    bool normals = request->map == MAP_NORMAL;
    vkn_renderer **own = normals ? &stage->normal : &stage->color;
    vkn_status status = *own ? VKN_OK : open_renderer(stage, own);
    if (status == VKN_OK && normals)
        status = vkn_renderer_want_normals(*own);
    if (status != VKN_OK)
        vkn_renderer_destroy(own);
    *renderer = *own;
    return status;
}

void stage_close(struct stage *stage)
{
    vkn_renderer_destroy(&stage->color);
    vkn_renderer_destroy(&stage->normal);
}
