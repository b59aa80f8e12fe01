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

/* Images are whole where they are cut into one strip each. */
void run_log_streaming(const struct vkn_images *images)
{
    char held[96], of[48] = "";
    const char *unit = images->strips > 1 ? "strips" : "images";
    snprintf(held, sizeof held, "%zu of %zu %s on the device", images->resident,
             images->count * images->strips, unit);
    if (images->strips > 1)
        snprintf(of, sizeof of, " (%zu images of %zu strips)", images->count, images->strips);
    base_log(BASE_LOG_INFO,
             "streaming: %s%s, %llu bytes (%.1f MiB); every 16 steps %u %s are exchanged, from %s",
             held, of, (unsigned long long)images->bytes, base_mib(images->bytes),
             images->by_period, unit, images->host_bytes > 0 ? "host memory" : "their files");
}
