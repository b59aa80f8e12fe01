/* Warns of problems of a capture: a wrong scale, poses that do not fit, overfitting. */
#include <math.h>

#include "run/training.h"

#define MOST_TESTED 64u /* views that check_space tests */
#define SOUND_GAP   6.0 /* dB of training over test views; sound captures have 1 to 4 */

/* Warns if few rays of the views hit the cube: the others train nothing, without any error. */
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

/* Warns if a dynamic scene is trained with a static model, which blurs moving objects. */
static void check_times(const struct vkn_scene *scene, const struct vkn_config *config)
{
    if (scene->dynamic && config->model != VKN_MODEL_DYNAMIC)
        base_log(BASE_LOG_WARNING,
                 "%s: its frames have different times, but the model is static: what moves will be "
                 "blurred; use --model dynamic",
                 scene->path);
}

static void log_exposures(const struct vkn_scene *scene, const struct vkn_config *config)
{
    char text[128];
    if (scene_describe_exposures(scene, text))
        base_log(BASE_LOG_INFO, "%s: scene.appearance=%s", text,
                 config_appearance_names[config->scene.appearance]);
}

void sanity_log_images(const struct vkn_scene *scene, const struct vkn_config *config)
{
    char text[128];
    if (scene_describe_background(scene, text))
        base_log(BASE_LOG_INFO, "images without alpha, %s: background=%s, loss.distortion=%.4g",
                 text, config_background_names[config->background],
                 fmax((double)config->loss.distortion, 0.0));
    log_exposures(scene, config);
    if (scene_describe_sky(scene, text))
        base_log(BASE_LOG_INFO, "%s: scene.sky=%s", text, config_switch_names[config->scene.sky]);
}

void sanity_log_outliers(const struct vkn_scene *scene, const struct vkn_config *config,
                         const char *folder, const struct step_outliers *found)
{
    size_t all = scene->splits[SCENE_TRAIN].camera_count;
    if (config->loss.robust != VKN_SWITCH_ON)
        return;
    if (found->views > 0)
        base_log(BASE_LOG_INFO,
                 "%s: loss.robust left out %.1f %% of the training images' area, in %u of %zu "
                 "images; see %s, or write masks by vknerf export --masks",
                 folder, 100 * found->share, found->views, all, REPORT_ERROR_MAP);
    else
        base_log(
            BASE_LOG_INFO,
            "%s: loss.robust leaves nothing out: less than 1 %% of the images' area are outliers",
            folder);
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
    base_log(BASE_LOG_DEBUG, "%s: checking the poses against the images took %.3f s", scene->path,
             base_seconds() - began);
}

/* Warns of a field that has overfitted the training images. */
void sanity_check_quality(const struct vkn_scene *scene, double train_psnr,
                          enum scene_split_name split, double psnr)
{
    double gap = train_psnr - psnr;
    if (split == SCENE_TRAIN || !(train_psnr > 0.0) || !(gap > SOUND_GAP))
        return;
    base_log(BASE_LOG_WARNING,
             "%s: the %s views are %.1f dB worse than the training rays (%.1f dB): too few images, "
             "or poses that do not fit them",
             scene->path, scene_split_names[split], gap, train_psnr);
}
