#include "run/training.h"

#define MOST_TESTED 64u /* views, for what the cube holds */
/* Of training views over test views in PSNR: captures that are sound have 1 to 4 dB. */
#define SOUND_GAP   6.0

/* Rays that miss the cube teach the field nothing, and nothing fails. */
static void check_space(const struct vkn_scene *scene, const struct vkn_config *config)
{
    size_t stride = scene->splits[SCENE_TRAIN].camera_count / MOST_TESTED + 1;
    double inside = inspect_inside(scene, stride);
    if (config->scene.contraction == VKN_CONTRACTION_CUBE || inside >= INSPECT_MIN_INSIDE)
        return;
    base_log(BASE_LOG_WARNING,
             "%s: only %.0f %% of what the training views see is within the cube that is "
             "reconstructed: check scale, offset and aabb_scale (vknerf info)",
             scene->path, 100.0 * inside);
}

/* To a field that does not know of time, what moves becomes a blur of all moments. */
static void check_times(const struct vkn_scene *scene, const struct vkn_config *config)
{
    if (scene->dynamic && config->model != VKN_MODEL_DYNAMIC)
        base_log(BASE_LOG_WARNING,
                 "%s: its frames have different times, and the model that is trained does not "
                 "move: what moves will be blurred, unless --model dynamic is trained",
                 scene->path);
}

void sanity_check_scene(const struct vkn_scene *scene, const struct vkn_config *config)
{
    check_space(scene, config);
    check_times(scene, config);
}

void sanity_check_poses(const struct vkn_scene *scene)
{
    double began = base_seconds();
    scene_warn_consistency(scene);
    base_log(BASE_LOG_DEBUG, "%s: whether poses fit their pictures took %.3f s to see", scene->path,
             base_seconds() - began);
}

/* A field can learn every picture by heart and have no idea of the place. */
void sanity_check_quality(const struct vkn_scene *scene, double train_psnr,
                          enum scene_split_name split, double psnr)
{
    double gap = train_psnr - psnr;
    if (split == SCENE_TRAIN || !(train_psnr > 0.0) || !(gap > SOUND_GAP))
        return;
    base_log(BASE_LOG_WARNING,
             "%s: the %s views are %.1f dB worse than what was trained on (%.1f dB): too few "
             "images, or poses that do not fit them",
             scene->path, scene_split_names[split], gap, train_psnr);
}
