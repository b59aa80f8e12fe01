/* Begins a run: reads its configuration, inherits settings from another run, loads its images. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "step/step.h"
#include "run/training.h"
#include "run/internal.h"

/* ---- weights of another run ---------------------------------------------------------------- */

/* Inherits the training space of the same scene, so that weights stay valid if images are added. */
static void inherit_space(struct vkn_config *config, const struct vkn_config *from)
{
    if (config->scene.unit_length == 0)
        config->scene.unit_length = from->scene.unit_length;
    bool is_open =
        config->scene.scale == 0 && config->scene.aabb_scale == 0 && !config->scene.fixed_transform;
    if (!is_open || !from->scene.fixed_transform)
        return;
    config->scene.scale = from->scene.scale;
    memcpy(config->scene.offset, from->scene.offset, sizeof config->scene.offset);
    config->scene.aabb_scale = from->scene.aabb_scale;
    config->scene.fixed_transform = true;
}

/* Inherits the model's settings that the user does not give: weights fit only the shape in which
 * they were trained. */
static vkn_status inherit_model(struct run_beginning *b)
{
    struct vkn_config from, *config = &b->config;
    char *recorded = NULL;
    BASE_TRY(run_read_checkpoint(b->checkpoint, &from, &recorded, NULL));
    if (strcmp(b->scene_path, recorded) == 0)
        inherit_space(config, &from);
    free(recorded);
    setup_inherit_model(config, &from);
    return VKN_OK;
}

/* ---- limits of a resumed run --------------------------------------------------------------- */

static vkn_status refuse_limit(const char *limit, const char *run, const char *past)
{
    return base_fail(VKN_BAD_INPUT,
                     "%s: %s is past %s: nothing would be trained; raise the limit, or evaluate "
                     "the run with vknerf eval",
                     run, past, limit);
}

/* Refuses a new limit that the run has already passed, because nothing would be trained. Warns when
 * the run is at its old limit. */
static vkn_status check_limits(const struct run_beginning *b, const struct run_reached *reached)
{
    const struct vkn_config *now = &b->config, *then = &b->recorded;
    bool at_steps = now->steps > 0 && reached->step >= now->steps;
    bool at_seconds = now->seconds > 0 && reached->seconds >= now->seconds;
    char past[64], limit[64];
    snprintf(past, sizeof past, "step %llu", (unsigned long long)reached->step);
    snprintf(limit, sizeof limit, "--steps %u", now->steps);
    if (at_steps && reached->step > now->steps && now->steps != then->steps)
        return refuse_limit(limit, b->checkpoint, past);
    snprintf(past, sizeof past, "second %.1f", reached->seconds);
    snprintf(limit, sizeof limit, "--seconds %.9g", now->seconds);
    if (at_seconds && !at_steps && now->seconds != then->seconds)
        return refuse_limit(limit, b->checkpoint, past);
    if (at_steps || at_seconds)
        base_log(BASE_LOG_WARNING,
                 "%s: already finished at step %llu: nothing is trained, only evaluated",
                 b->checkpoint, (unsigned long long)reached->step);
    return VKN_OK;
}

/* ---- settings of a resumed run ------------------------------------------------------------- */

static bool is_zero(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

/* Returns whether the user does not give the setting. */
static bool is_not_given(const struct run_beginning *b, const struct config_setting *setting)
{
    const char *given = (const char *)b->params->given + setting->offset;
    return is_zero(given, config_setting_size(setting));
}

/* Returns whether the setting's value is that of the resumed run and not given by the user. */
static bool is_inherited(const struct run_beginning *b, const struct config_setting *setting)
{
    size_t at = setting->offset, size = config_setting_size(setting);
    return memcmp((const char *)&b->config + at, (const char *)&b->recorded + at, size) == 0 &&
           is_not_given(b, setting);
}

/* Clamps an inherited initial scale to the new limits. A resumed run does not use the initial
 * scale, but must not be refused for it. */
static void limit_initial_scale(struct run_beginning *b)
{
    float *initial = &b->config.loss_scale.initial;
    if (*initial != 0.0f && is_not_given(b, config_find("loss_scale.initial")))
        *initial = config_limit_scale(&b->config, *initial);
}

/* Resets the settings of loss scaling to their defaults when precision or kind of scaling change: a
 * scale of 1, right in fp32, would make f16 gradients underflow. */
static void renew_loss_scale(struct run_beginning *b)
{
    static const char group[] = "loss_scale.";
    if (b->config.precision == b->recorded.precision &&
        b->config.loss_scale.kind == b->recorded.loss_scale.kind) {
        limit_initial_scale(b);
        return;
    }
    for (size_t i = 0; i < config_setting_count; i++) {
        const struct config_setting *setting = &config_settings[i];
        bool limited = strcmp(setting->key, "loss_scale.initial") == 0 && is_not_given(b, setting);
        if (strncmp(setting->key, group, sizeof group - 1) == 0 &&
            (limited || is_inherited(b, setting)))
            memset((char *)&b->config + setting->offset, 0, config_setting_size(setting));
    }
}

static vkn_status choose_beginning(struct run_beginning *b)
{
    const struct vkn_train_params *params = b->params;
    if (params->resume && params->init)
        return base_fail(VKN_BAD_INPUT, "a run is either resumed or initialised, not both");
    char *recorded = NULL;
    struct run_reached reached = {0};
    if (params->resume) {
        BASE_TRY(run_find_checkpoint(params->resume, &b->checkpoint));
        BASE_TRY(run_read_checkpoint(b->checkpoint, &b->recorded, &recorded, &reached));
        renew_loss_scale(b);
    }
    const char *scene = params->scene ? params->scene : recorded;
    if (scene)
        b->scene_path = run_absolute_path(scene);
    free(recorded);
    if (!b->scene_path)
        return base_fail(VKN_BAD_INPUT, "no scene is given");
    if (params->resume)
        return check_limits(b, &reached);
    if (params->init) {
        BASE_TRY(run_find_checkpoint(params->init, &b->checkpoint));
        BASE_TRY(inherit_model(b));
    }
    return VKN_OK;
}

vkn_status run_begin(const struct vkn_train_params *params, struct run_beginning *beginning)
{
    *beginning = (struct run_beginning){.params = params, .config = *params->config};
    return choose_beginning(beginning);
}

vkn_status run_begin_scene(const struct run_beginning *b, vkn_scene **scene)
{
    return run_open_scene(b->params->scene ? b->scene_path : NULL, b->scene_path, &b->config,
                          scene);
}

void run_begin_close(struct run_beginning *beginning)
{
    BASE_KEEP_ERROR;
    free(beginning->scene_path);
    free(beginning->checkpoint);
    *beginning = (struct run_beginning){0};
}

/* ---- the reason for a resumed run's precision ----------------------------------------------- */

/* The checkpoint records the effective precision, not whether the user has set it: the run's
 * summary has the reason. */
void run_begin_explain(const struct run_beginning *b, vkn_trainer *trainer)
{
    static const char asked[] = "asked for", chosen[] = "chosen when the run began";
    char why[TRAIN_WHY];
    if (!b->params->resume || b->params->given->precision ||
        strcmp(vkn_trainer_backend(trainer)->why, asked) != 0)
        return;
    char *folder = base_path_folder(b->checkpoint);
    char *old = folder ? run_old_why(folder, b->config.precision) : NULL;
    if (b->config.precision != b->recorded.precision)
        snprintf(why, sizeof why, "the run's first precision is not supported by this device");
    else if (!old)
        snprintf(why, sizeof why, "as when the run began");
    else if (strcmp(old, asked) == 0)
        snprintf(why, sizeof why, "asked for when the run began");
    else if (strstr(old, "when the run began"))
        snprintf(why, sizeof why, "%s", old);
    else
        snprintf(why, sizeof why, "%s: %s", chosen, old);
    train_explain_backend(trainer, why);
    free(folder);
    free(old);
}

/* ---- another device ------------------------------------------------------------------------ */

/* Settings that not every device supports, each with a value that every device supports. */
static const struct {
    const char *key;
    uint32_t supported;
} device_settings[] = {
    {"precision", VKN_PRECISION_FP32},
    {"gradient_sums", VKN_SUMS_DEFAULT},
    {"matrix.shape", VKN_SHAPE_DEFAULT},
    {"matrix.accumulate", VKN_ACCUMULATE_DEFAULT},
    {"matrix.conversions", false},
    {"policy.parameters", VKN_POLICY_DEFAULT},
    {"policy.activations", VKN_POLICY_DEFAULT},
    {"policy.matmul", VKN_POLICY_DEFAULT},
    {"policy.activation_gradients", VKN_POLICY_DEFAULT},
    {"policy.accumulators", VKN_POLICY_DEFAULT},
    {"policy.grid_gradients", VKN_POLICY_DEFAULT},
};

static vkn_status check_device(const struct vkn_config *config, const vkn_scene *scene,
                               const struct gpu_capabilities *device)
{
    struct vkn_config effective = *config;
    struct setup setup;
    BASE_TRY(setup_resolve_config(&effective, scene, device));
    return setup_create(&effective, device, &setup);
}

/* Returns the configuration with every inherited device setting replaced by its supported value. */
static struct vkn_config without_inherited(const struct run_beginning *b)
{
    struct vkn_config config = b->config;
    for (size_t i = 0; i < BASE_COUNT(device_settings); i++) {
        const struct config_setting *setting = config_find(device_settings[i].key);
        if (is_inherited(b, setting))
            memcpy((char *)&config + setting->offset, &device_settings[i].supported,
                   config_setting_size(setting));
    }
    return config;
}

void run_begin_fit(struct run_beginning *b, const vkn_scene *scene,
                   const struct gpu_capabilities *device)
{
    if (!b->params->resume || check_device(&b->config, scene, device) == VKN_OK)
        return;
    struct vkn_config fitted = without_inherited(b);
    if (check_device(&fitted, scene, device) != VKN_OK)
        return;
    /* Restores the inherited settings one by one, as far as the device supports them. */
    for (size_t i = 0; i < BASE_COUNT(device_settings); i++) {
        const struct config_setting *setting = config_find(device_settings[i].key);
        struct vkn_config candidate = fitted;
        memcpy((char *)&candidate + setting->offset, (char *)&b->config + setting->offset,
               config_setting_size(setting));
        if (check_device(&candidate, scene, device) == VKN_OK)
            fitted = candidate;
        else
            base_log(BASE_LOG_WARNING, "%s; the run's %s becomes %s", vkn_last_error(),
                     setting->key, i == 0 ? "fp32" : "this device's default");
    }
    b->config = fitted;
    renew_loss_scale(b);
}

/* ---- images ---------------------------------------------------------------------------------- */

static void show_loading(void *context, size_t done, size_t total)
{
    report_progress_count(context, "decoding images", done, total);
}

vkn_status run_load_images(struct vkn_scene *scene, const struct vkn_config *config,
                           const struct parallel *parallel, struct report_progress *progress)
{
    return train_load_images(scene, config, parallel, show_loading, progress);
}

/* With one strip per image, the strips are whole images. */
static void log_streaming(const struct vkn_images *images)
{
    char held[96], of[48] = "";
    const char *unit = images->strips > 1 ? "strips" : "images";
    snprintf(held, sizeof held, "%zu of %zu %s on the device", images->resident,
             images->count * images->strips, unit);
    if (images->strips > 1)
        snprintf(of, sizeof of, " (%zu images of %zu strips)", images->count, images->strips);
    base_log(BASE_LOG_INFO,
             "streaming: %s%s, %llu bytes (%.1f MiB); every 16 steps %u %s are replaced, from %s",
             held, of, (unsigned long long)images->bytes, base_mib(images->bytes),
             images->streamed_per_interval, unit,
             images->host_bytes > 0 ? "host memory" : "their files");
}

void run_log_images(const struct vkn_images *images, size_t views, const struct vkn_config *config)
{
    if (images->count < views)
        base_log(BASE_LOG_INFO, "rank 0 holds %zu of the %zu training images, other ranks the rest",
                 images->count, views);
    if (images->streamed_per_interval > 0)
        log_streaming(images);
    if (config->progressive.enabled)
        base_log(BASE_LOG_INFO, "progressive: the images are downscaled by %u at first",
                 images->downscale);
}
