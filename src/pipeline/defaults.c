#include "pipeline/pipeline.h"

#include <math.h>
#include <string.h>

/* Figures of FACTS: instant-ngp's sources and nerfacc's example. A processor without a GPU gets a
 * model of about a twelfth of the work and a finest level that matches what it can train in
 * minutes. */

#define DEFAULT(field, value)  \
    do {                       \
        if ((field) == 0)      \
            (field) = (value); \
    } while (0)

static bool power_of_two(uint32_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

static void resolve_model(struct vkn_config *config, bool cpu)
{
    DEFAULT(config->grid.levels, 16);
    DEFAULT(config->grid.features, 2);
    DEFAULT(config->grid.log2_entries, cpu ? 15 : 19);
    DEFAULT(config->grid.coarsest, 16);
    /* The grid spans the cube, or twice that where space is contracted. */
    uint32_t sides = config->scene.contraction == VKN_CONTRACTION_CUBE ? 2 : 1;
    DEFAULT(config->grid.finest, (cpu ? 512 : 2048) * sides * config->scene.aabb_scale);
    DEFAULT(config->mlp.density_width, 64);
    DEFAULT(config->mlp.density_layers, 1);
    DEFAULT(config->mlp.geometry, 16);
    DEFAULT(config->mlp.color_width, 64);
    DEFAULT(config->mlp.color_layers, 2);
    DEFAULT(config->mlp.sh_degree, 4);
}

/* instant-ngp's 0.1 keeps floaters away from the lenses. Content that is known to begin nearer than
 * twice that is not cut: half its depth leaves room for what the known depths miss. */
float pipeline_near_distance(const struct scene *scene)
{
    return scene->near > 0 ? fminf(0.1f, fmaxf(0.5f * scene->near, 1e-3f)) : 0.1f;
}

static void resolve_march(struct vkn_config *config, const struct scene *scene, bool cpu)
{
    DEFAULT(config->batch.samples, cpu ? 1u << 14 : 1u << 18);
    DEFAULT(config->batch.max_rays, cpu ? 1u << 14 : 1u << 17);
    DEFAULT(config->march.resolution, cpu ? 64 : 128);
    DEFAULT(config->march.decay, 0.95f);
    DEFAULT(config->march.threshold, 0.01f);
    DEFAULT(config->march.cone_angle,
            config->scene.aabb_scale > 1 || config->scene.contraction == VKN_CONTRACTION_CUBE
                ? (cpu ? 1.0f / 64.0f : 1.0f / 256.0f)
                : -1.0f);
    DEFAULT(config->march.steps_per_unit, cpu ? 256 : 1024);
    DEFAULT(config->march.early_stop, 1e-4f);
    DEFAULT(config->march.near_distance, pipeline_near_distance(scene));
}

static void resolve_progressive(struct vkn_config *config)
{
    DEFAULT(config->progressive.start_downscale, 4);
    DEFAULT(config->progressive.milestones[0], 0.1f);
    DEFAULT(config->progressive.milestones[1], 0.25f);
    DEFAULT(config->progressive.milestones[2], 0.5f);
}

static vkn_status check_progressive(const struct vkn_config *config)
{
    if (!power_of_two(config->progressive.start_downscale))
        return base_fail(VKN_BAD_INPUT,
                         "config: progressive.start_downscale: %u is neither 2, 4 nor 8",
                         config->progressive.start_downscale);
    if (config->progressive.enabled && config->deterministic && config->steps == 0)
        return base_fail(VKN_BAD_INPUT,
                         "config: progressive.enabled: a deterministic run grows by its steps, so "
                         "it needs their number (--steps), not its time alone");
    return VKN_OK;
}

static void resolve_training(struct vkn_config *config)
{
    if (config->background == VKN_BACKGROUND_DEFAULT)
        config->background = VKN_BACKGROUND_RANDOM;
    DEFAULT(config->model, VKN_MODEL_NGP);
    DEFAULT(config->precision,
            VKN_PRECISION_FP32); /* unless pipeline_choose_precision went before */
    if (config->steps == 0 && config->seconds <= 0.0)
        config->steps = 20000;
    DEFAULT(config->eval_views, 4);
    DEFAULT(config->log.tensorboard, VKN_SWITCH_ON);
    DEFAULT(config->loss.kind, VKN_LOSS_HUBER);
    DEFAULT(config->loss.delta, 0.1f);
    DEFAULT(config->optimizer.beta1, 0.9f);
    DEFAULT(config->optimizer.beta2, 0.99f);
    DEFAULT(config->optimizer.epsilon, 1e-15f);
    DEFAULT(config->optimizer.weight_decay, 1e-6f);
    DEFAULT(config->optimizer.average_decay, 0.95f);
}

static void resolve_rate(struct vkn_config *config)
{
    float first = config->optimizer.rates[0].value; /* 0: there is no schedule from a file */
    DEFAULT(config->optimizer.schedule, first > 0.0f ? VKN_RATE_FILE : VKN_RATE_STEP);
    bool drawn = config->optimizer.schedule == VKN_RATE_FILE;
    DEFAULT(config->optimizer.learning_rate, drawn ? first : 1e-2f);
    DEFAULT(config->optimizer.final_rate, config->optimizer.learning_rate / 100);
    /* A short run must not spend itself on warming up, and a file says how the rate rises. */
    uint32_t warmup = config->steps > 0 && config->steps < 2000 ? config->steps / 20 + 1 : 100;
    DEFAULT(config->optimizer.warmup_steps, drawn ? 1 : warmup);
    DEFAULT(config->optimizer.decay_factor, 0.33f);
    DEFAULT(config->optimizer.milestones[0], 0.5f);
    DEFAULT(config->optimizer.milestones[1], 0.75f);
    DEFAULT(config->optimizer.milestones[2], 0.9f);
    DEFAULT(config->optimizer.decay_start, 20000);
    DEFAULT(config->optimizer.decay_interval, 10000);
}

/* A deterministic run that only its time ends has no end to come down to. */
static vkn_status check_rate(const struct vkn_config *config)
{
    enum vkn_rate_schedule schedule = config->optimizer.schedule;
    if (schedule == VKN_RATE_FILE && !(config->optimizer.rates[0].value > 0.0f))
        return base_fail(VKN_BAD_INPUT,
                         "config: optimizer.rates: empty, but optimizer.schedule is file");
    if ((schedule == VKN_RATE_EXPONENTIAL || schedule == VKN_RATE_COSINE) &&
        config->deterministic && config->steps == 0)
        return base_fail(VKN_BAD_INPUT,
                         "config: optimizer.schedule: a deterministic run's learning rate falls "
                         "by its steps, so it needs their number (--steps), not its time alone");
    return VKN_OK;
}

/* 16-bit gradients need scaling; what is large enough and not too large shows in training. */
static void resolve_loss_scale(struct vkn_config *config)
{
    float first = config->loss_scale.schedule[0].value; /* 0: there is no schedule */
    DEFAULT(config->loss_scale.kind, first > 0.0f ? VKN_LOSS_SCALE_SCHEDULE
                                     : field_is_half(FIELD_ACTIVATION_GRADIENTS, config->precision)
                                         ? VKN_LOSS_SCALE_DYNAMIC
                                         : VKN_LOSS_SCALE_STATIC);
    DEFAULT(config->loss_scale.initial, config->loss_scale.kind == VKN_LOSS_SCALE_SCHEDULE ? first
                                        : config->loss_scale.kind == VKN_LOSS_SCALE_DYNAMIC
                                            ? 65536.0f
                                            : 1.0f);
    DEFAULT(config->loss_scale.growth, 2.0f);
    DEFAULT(config->loss_scale.backoff, 0.5f);
    DEFAULT(config->loss_scale.interval, 2000);
    DEFAULT(config->loss_scale.falls, 12);
    DEFAULT(config->loss_scale.fall_factor, 0.5f);
}

vkn_status pipeline_resolve_config(struct vkn_config *config, const struct scene *scene,
                                   const struct gpu_capabilities *device)
{
    config->scene.format = (enum vkn_scene_format)scene->format;
    config->scene.downscale = scene->downscale;
    config->scene.scale = scene->scale;
    config->scene.aabb_scale = scene->aabb_scale;
    memcpy(config->scene.offset, scene->offset, sizeof config->scene.offset);
    config->scene.placed = true; /* whatever becomes of the capture, what is trained stays there */
    DEFAULT(config->scene.contraction, VKN_CONTRACTION_NONE);
    bool cpu = device->type == GPU_CPU;
    resolve_model(config, cpu);
    resolve_march(config, scene, cpu);
    resolve_training(config);
    resolve_rate(config);
    resolve_progressive(config);
    resolve_loss_scale(config);
    if (!power_of_two(config->march.resolution) || config->march.resolution < 16 ||
        config->march.resolution > 512)
        return base_fail(VKN_BAD_INPUT,
                         "config: march.resolution: %u is not a power of two from 16 to 512",
                         config->march.resolution);
    if (config->scene.contraction == VKN_CONTRACTION_CUBE && !(config->march.cone_angle > 1e-5F))
        return base_fail(VKN_BAD_INPUT,
                         "config: march.cone_angle: %g: steps that do not grow never end in "
                         "contracted space (scene.contraction)",
                         (double)config->march.cone_angle);
    if (config->batch.samples < 1024)
        return base_fail(VKN_BAD_INPUT, "config: batch.samples: %u is below 1024",
                         config->batch.samples);
    if (config->batch.max_rays < 64)
        return base_fail(VKN_BAD_INPUT, "config: batch.max_rays: %u is below 64",
                         config->batch.max_rays);
    if (config->loss_scale.kind == VKN_LOSS_SCALE_SCHEDULE &&
        !(config->loss_scale.schedule[0].value > 0.0f))
        return base_fail(VKN_BAD_INPUT,
                         "config: loss_scale.schedule: empty, but loss_scale.kind is schedule");
    BASE_TRY(check_rate(config));
    return check_progressive(config);
}
