/* Makes configurations effective: collects the facts that defaults depend on. */
#include "step/step.h"

#include <math.h>
#include <string.h>

#include "config/config.h"

/* Sets the facts about the training cameras. */
static void measure_cameras(const struct scene_split *train, struct config_facts *facts)
{
    for (size_t n = 0; n < train->camera_count; n++) {
        const struct scene_camera *camera = &train->cameras[n];
        const float *pose = camera->pose;
        double x = pose[3] - 0.5, y = pose[7] - 0.5, z = pose[11] - 0.5;
        double distance = sqrt(x * x + y * y + z * z);
        facts->camera_distance += distance / (double)train->camera_count;
        facts->pixels_per_unit += camera->focal_x / distance / (double)train->camera_count;
    }
}

static struct config_facts facts_of(const struct vkn_scene *scene)
{
    struct config_facts facts = {
        .format = scene->format,
        .downscale = scene->downscale,
        .scale = scene->scale,
        .aabb_scale = scene->aabb_scale,
        .fixed_transform = true,
        .unit_length = scene->unit_length,
        .near = scene->near,
        .background = scene_plain_background(scene),
        .sky = scene_shows_sky(scene),
        .appearance = scene_default_appearance(scene),
        .views = scene->splits[SCENE_TRAIN].camera_count,
        .depths =
            scene->depths.counts[SCENE_DEPTH_TRACKS] + scene->depths.counts[SCENE_DEPTH_PICTURES],
    };
    memcpy(facts.offset, scene->offset, sizeof facts.offset);
    measure_cameras(&scene->splits[SCENE_TRAIN], &facts);
    return facts;
}

vkn_status setup_resolve_config(struct vkn_config *config, const struct vkn_scene *scene,
                                const struct gpu_capabilities *device)
{
    struct config_facts facts = facts_of(scene);
    facts.is_cpu = device->type == GPU_CPU;
    return config_resolve(config, &facts);
}

/* Checks that a choice whose last value includes the others is kept, or becomes the last one. */
static vkn_status check_kept(const char *path, const char *key, const char *const names[],
                             unsigned off, unsigned all, unsigned then, unsigned now)
{
    if (then <= off || now == then || now == all)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: %s: trained with %s: resume with %s too%s%s", path, key,
                     names[then], names[then], then == all ? "" : ", or with ",
                     then == all ? "" : names[all]);
}

vkn_status setup_check_resumed(const char *path, const struct vkn_config *then,
                               const struct vkn_config *now)
{
    BASE_TRY(check_kept(path, "scene.refine", config_refinement_names, VKN_REFINEMENT_OFF,
                        VKN_REFINEMENT_ALL, then->scene.refine, now->scene.refine));
    /* A sky is found by the first steps, before the field is opaque in front of it. */
    if (then->scene.sky > VKN_SWITCH_DEFAULT && now->scene.sky != then->scene.sky)
        return base_fail(VKN_BAD_INPUT, "%s: scene.sky: trained with %s: resume with %s too", path,
                         config_switch_names[then->scene.sky],
                         config_switch_names[then->scene.sky]);
    return check_kept(path, "scene.appearance", config_appearance_names, VKN_APPEARANCE_OFF,
                      VKN_APPEARANCE_FULL, then->scene.appearance, now->scene.appearance);
}

void setup_inherit_model(struct vkn_config *config, const struct vkn_config *from)
{
    config_inherit(config, from, "model");
    const struct vkn_config proposal = field_proposal_config(from);
    const char *keys[2 * FIELD_MAX_KEYS];
    size_t count = field_shape_keys(from, keys);
    count += field_shape_keys(&proposal, keys + count);
    for (size_t i = 0; i < count; i++)
        config_inherit(config, from, keys[i]);
    config_inherit(config, from, "march.resolution");
    config_inherit(config, from, "dynamic.time_bins");
    config_inherit(config, from, "mlp.density_activation"); /* unset in old checkpoints: exp */
}

float setup_near_distance(const struct vkn_scene *scene)
{
    static const struct vkn_config none;
    const struct config_facts facts = facts_of(scene);
    return (float)config_default(config_find("march.near_distance"), 0, &none, &facts);
}
