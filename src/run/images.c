/* Images of a scene that is trained, with progress. */
#include "run/internal.h"

static void show_loading(void *context, size_t done, size_t total)
{
    report_progress_count(context, "decoding images", done, total);
}

vkn_status run_load_images(struct vkn_scene *scene, const struct vkn_config *config,
                           const struct parallel *parallel, struct report_progress *progress)
{
    return train_load_images(scene, config, parallel, show_loading, progress);
}
