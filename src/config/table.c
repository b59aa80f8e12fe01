/* Every setting: what it is called, accepts and means. */
#include "config/table.h"

#include <string.h>

#include "scene/scene.h"

static const char *const models[] = {"default", "ngp", NULL};
static const char *const precisions[] = {"auto", "fp32", "fp16", "coopmat", NULL};
static const char *const gradient_sums[] = {"default", "float", "fixed", "swap", "half", NULL};
static const char *const matrix_shapes[] = {"default", "8x8x8",    "8x8x16", "8x16x16",
                                            "16x8x16", "16x16x16", NULL};
static const char *const accumulates[] = {"default", "f32", "f16", NULL};
static const char *const backgrounds[] = {"default", "random", "white", "black", NULL};
static const char *const formats[] = {"auto", "transforms", "colmap", "llff", NULL};
static const char *const contractions[] = {"default", "none", "cube", NULL};
static const char *const losses[] = {"default", "huber", "l2", "l1", NULL};
static const char *const switches[] = {"default", "on", "off", NULL};
static const char *const rate_schedules[] = {"default", "step", "exponential",
                                             "cosine",  "file", NULL};
static const char *const loss_scales[] = {"default", "static", "dynamic", "schedule", NULL};

#define AT(field) offsetof(struct vkn_config, field)
#define WHOLE(field, least, most, of, standard, text)                                           \
    {                                                                                           \
        .key = #field, .type = CONFIG_U32, .offset = AT(field), .count = 1, .minimum = (least), \
        .maximum = (most), .multiple = (of), .fallback = (standard), .help = (text)             \
    }
#define FLOATS(field, size, least, most, standard, text)                              \
    {                                                                                 \
        .key = #field, .type = CONFIG_FLOAT, .offset = AT(field), .count = (size),    \
        .minimum = (least), .maximum = (most), .fallback = (standard), .help = (text) \
    }
#define CHOICE(field, choices, standard, text)                                                   \
    {                                                                                            \
        .key = #field, .type = CONFIG_ENUM, .offset = AT(field), .count = 1, .names = (choices), \
        .fallback = (standard), .help = (text)                                                   \
    }
#define OTHER(field, kind, most, standard, text)                                           \
    {                                                                                      \
        .key = #field, .type = (kind), .offset = AT(field), .count = 1, .maximum = (most), \
        .fallback = (standard), .help = (text)                                             \
    }
#define BYTES(field, standard, text)                                                        \
    {                                                                                       \
        .key = #field, .type = CONFIG_BYTES, .offset = AT(field), .count = 1, .minimum = 1, \
        .maximum = 1125899906842624.0, .fallback = (standard), .help = (text)               \
    }
/* What a 0 turns off. */
#define FLOAT_OR_OFF(field, least, most, standard, text)                                          \
    {                                                                                             \
        .key = #field, .type = CONFIG_FLOAT, .offset = AT(field), .count = 1, .minimum = (least), \
        .maximum = (most), .zero_is_off = true, .fallback = (standard), .help = (text)            \
    }
#define POINTS(field, least, most, word, text)                                                   \
    {                                                                                            \
        .key = #field, .type = CONFIG_POINTS, .offset = AT(field), .count = VKN_SCHEDULE_POINTS, \
        .minimum = (least), .maximum = (most), .fallback = "none", .help = (text),               \
        .point_value = (word)                                                                    \
    }
#define FLOAT(field, least, most, standard, text) FLOATS(field, 1, least, most, standard, text)

#define MOST_STEPS 4294967295.0
#define MOST_SCALE 8.5e37 /* the reciprocal must be a normal number */

/* In the order of the JSON that vkn_config_write_json writes; groups stay together. */
const struct config_setting config_settings[] = {
    CHOICE(model, models, "ngp", "the field: hash grid and MLPs"),
    CHOICE(precision, precisions, "auto, the fastest here",
           "of the field; coopmat is fp16 in cooperative matrices"),
    CHOICE(gradient_sums, gradient_sums, "float; fixed if deterministic or without f32 atomics",
           "of the grid: f32 atomics, fixed point, compare-and-swap, pairs of f16"),
    CHOICE(background, backgrounds, "random", "behind transparent training pixels"),
    OTHER(seed, CONFIG_U64, 18446744073709551615.0, "0", "of all random numbers"),
    OTHER(deterministic, CONFIG_BOOL, 1, "false", "same seed and device, same bits (slower)"),
    WHOLE(steps, 1, MOST_STEPS, 0, "20000, none with seconds", "training ends after these"),
    OTHER(seconds, CONFIG_DOUBLE, 1e9, "no limit", "training ends after these; 0: no limit"),
    {.key = "eval_every",
     .type = CONFIG_STEPS,
     .offset = AT(eval_every),
     .count = sizeof(struct vkn_steps) / sizeof(uint32_t),
     .minimum = 1,
     .maximum = MOST_STEPS,
     .zero_is_off = true,
     .fallback = "at the end",
     .help = "steps between quick evaluations, or those after which there is one; 0: none"},
    WHOLE(save_every, 0, MOST_STEPS, 0, "by time", "steps between checkpoints; 0: by time"),
    {.key = "save_seconds",
     .type = CONFIG_DOUBLE,
     .offset = AT(save_seconds),
     .count = 1,
     .minimum = -1,
     .maximum = 1e6,
     .zero_is_off = true,
     .fallback = "every 60, none with save_every",
     .help = "between checkpoints; 0 or negative: only at the end"},
    WHOLE(keep, 1, 10000, 0, "the last alone", "newest checkpoints stay as checkpoint_STEP"),
    WHOLE(eval_views, 1, 64, 0, "4", "test views of a quick evaluation, whose pictures are kept"),

    CHOICE(log.tensorboard, switches, "on", "event files beside metrics.jsonl"),

    CHOICE(scene.format, formats, "what its files show", "that the scene is written in"),
    WHOLE(scene.downscale, 1, 64, 0, "1", "images are this much smaller"),
    FLOAT(scene.scale, SCENE_LEAST_SCALE, SCENE_MOST_SCALE, "the file's or measured",
          "dataset units to training space"),
    FLOATS(scene.offset, 3, -SCENE_MOST_OFFSET, SCENE_MOST_OFFSET, "the file's or measured",
           "added to those; only with scene.placed"),
    WHOLE(scene.aabb_scale, 1, 128, 0, "the file's or measured",
          "side of the reconstructed cube, a power of two"),
    OTHER(scene.placed, CONFIG_BOOL, 1, "false",
          "take scale, offset and aabb_scale as they are: a run keeps those that it began with"),
    CHOICE(scene.contraction, contractions, "none",
           "cube: space beyond that cube is drawn in, to infinity"),
    BYTES(scene.image_budget, "what the device has room for",
          "of training images on the device; others are exchanged as training goes on"),
    BYTES(scene.host_budget, "a quarter of the machine's memory",
          "of decoded images in host memory; beyond it files are decoded again and again"),

    OTHER(progressive.enabled, CONFIG_BOOL, 1, "false", "begin with small images"),
    WHOLE(progressive.start_downscale, 2, 8, 2, "4", "2, 4 or 8 times smaller at first"),
    FLOATS(progressive.milestones, 3, 1e-6, 2, "0.1,0.25,0.5",
           "shares of the training at which that halves, until it is 1"),

    WHOLE(grid.levels, 1, 32, 0, "16", "resolutions of the hash grid"),
    WHOLE(grid.features, 2, 4, 2, "2", "per level"),
    WHOLE(grid.log2_entries, 8, 24, 0, "19, CPU 15", "of a level's table"),
    WHOLE(grid.coarsest, 2, 1024, 0, "16", "grid points along the coarsest level"),
    WHOLE(grid.finest, 2, 1048576, 0, "2048 x aabb_scale, CPU 512 x, twice when contracted",
          "grid points along the finest level"),

    WHOLE(mlp.density_width, 16, 128, 16, "64", "of hidden layers"),
    WHOLE(mlp.density_layers, 1, 8, 0, "1", "hidden layers"),
    WHOLE(mlp.geometry, 16, 64, 16, "16", "outputs of the density MLP"),
    WHOLE(mlp.color_width, 16, 128, 16, "64", "of hidden layers"),
    WHOLE(mlp.color_layers, 1, 8, 0, "2", "hidden layers"),
    WHOLE(mlp.sh_degree, 1, 4, 0, "4", "of the direction's spherical harmonics"),

    CHOICE(matrix.shape, matrix_shapes, "the device's largest",
           "M x N x K of coopmat's products, see vknerf info"),
    CHOICE(matrix.accumulate, accumulates, "f32", "in coopmat; f16 is less exact"),
    OTHER(matrix.conversions, CONFIG_BOOL, 1, "false",
          "coopmat keeps activations in registers (VK_NV_cooperative_matrix2)"),

    WHOLE(batch.samples, 1024, 16777216, 0, "262144, CPU 16384", "live samples per step"),
    WHOLE(batch.max_rays, 64, 4194304, 0, "131072, CPU 16384", "per step"),

    WHOLE(march.resolution, 16, 512, 8, "128, CPU 64", "of the occupancy grid, a power of two"),
    FLOAT(march.decay, 1e-3, 1, "0.95", "of occupancy per update"),
    FLOAT(march.threshold, 1e-9, 1e3, "0.01", "optical thickness of an occupied smallest step"),
    FLOAT_OR_OFF(march.cone_angle, -1, 1,
                 "1/256, CPU 1/64, 0 when aabb_scale is 1 and not contracted",
                 "growth of steps with distance; 0 or negative: none"),
    WHOLE(march.steps_per_unit, 16, 65536, 0, "1024, CPU 256", "smallest step is sqrt(3) / this"),
    FLOAT(march.early_stop, 1e-9, 1, "1e-4", "transmittance that ends a ray"),
    FLOAT(march.near_distance, 1e-6, 1e3, "0.1, less for nearer content",
          "first sample in front of the camera, training units"),

    CHOICE(loss.kind, losses, "huber", "of the pixel's error"),
    FLOAT(loss.delta, 1e-6, 10, "0.1", "Huber's"),

    FLOAT(optimizer.learning_rate, 1e-9, 10, "1e-2", "of Adam"),
    FLOAT(optimizer.beta1, 1e-6, 0.999999, "0.9", "first moment"),
    FLOAT(optimizer.beta2, 1e-6, 0.999999, "0.99", "second moment"),
    FLOAT(optimizer.epsilon, 1e-30, 1, "1e-15", "of Adam"),
    FLOAT_OR_OFF(optimizer.weight_decay, -1, 1, "1e-6", "L2 on MLP weights; 0 or negative: none"),
    WHOLE(optimizer.warmup_steps, 1, MOST_STEPS, 0, "100, fewer in short runs, none with rates",
          "linear rise of the learning rate"),
    CHOICE(optimizer.schedule, rate_schedules, "step, file with optimizer.rates",
           "of the learning rate: at milestones, or to the final rate at the end"),
    FLOAT(optimizer.final_rate, 1e-12, 10, "a hundredth of learning_rate",
          "that exponential and cosine reach"),
    POINTS(optimizer.rates, 1e-12, 10, "rate",
           "learning rate after a step, straight between; in files [[step, rate], ...]"),
    FLOAT(optimizer.decay_factor, 1e-6, 1, "0.33", "of the learning rate at each milestone"),
    FLOATS(optimizer.milestones, 3, 1e-6, 2, "0.5,0.75,0.9", "shares of the training"),
    WHOLE(optimizer.decay_start, 1, MOST_STEPS, 0, "20000", "first decay of a run without limits"),
    WHOLE(optimizer.decay_interval, 1, MOST_STEPS, 0, "10000", "steps between the next ones"),
    FLOAT(optimizer.average_decay, 1e-6, 0.999999, "0.95",
          "of the weights' moving average, per step"),
    FLOAT_OR_OFF(optimizer.clip_norm, 1e-9, 1e9, "0, no clipping", "largest gradient norm"),

    CHOICE(loss_scale.kind, loss_scales, "static in fp32, else dynamic; schedule with one",
           "of the gradients"),
    FLOAT(loss_scale.initial, 1e-6, MOST_SCALE, "65536 when dynamic, a schedule's first, else 1",
          "loss scale at the start"),
    FLOAT(loss_scale.growth, 1, 1024, "2", "after an interval of good steps"),
    FLOAT(loss_scale.backoff, 1e-3, 1, "0.5", "after an overflow"),
    WHOLE(loss_scale.interval, 1, MOST_STEPS, 0, "2000", "good steps before growth"),
    WHOLE(loss_scale.falls, 1, MOST_STEPS, 0, "12",
          "back-offs without an interval between that lower the learning rate for good"),
    FLOAT(loss_scale.fall_factor, 1e-3, 1, "0.5", "by this factor; 1: never"),
    POINTS(loss_scale.schedule, 1e-6, MOST_SCALE, "scale",
           "loss scale from a step on; in files [[step, scale], ...]"),
};
const size_t config_setting_count = BASE_COUNT(config_settings);

const struct config_setting *config_find(const char *key)
{
    for (size_t i = 0; i < config_setting_count; i++)
        if (strcmp(config_settings[i].key, key) == 0)
            return &config_settings[i];
    return NULL;
}

/* Of a key with its group, or of one that was given without ("learning_rate"). */
static const char *nearest_key(const char *key)
{
    const char *names[BASE_COUNT(config_settings)], *last[BASE_COUNT(config_settings)];
    for (size_t i = 0; i < config_setting_count; i++) {
        const char *dot = strrchr(config_settings[i].key, '.');
        names[i] = config_settings[i].key;
        last[i] = dot ? dot + 1 : names[i];
        if (strcmp(last[i], key) == 0)
            return names[i];
    }
    const char *nearest = base_nearest(key, names, config_setting_count);
    const char *nearest_last = nearest ? NULL : base_nearest(key, last, config_setting_count);
    for (size_t i = 0; i < config_setting_count && nearest_last; i++)
        if (last[i] == nearest_last)
            return names[i];
    return nearest;
}

vkn_status config_unknown(const char *source, const char *key)
{
    const char *nearest = nearest_key(key);
    if (nearest)
        return base_json_fail(source, key, "unknown key; did you mean %s?", nearest);
    return base_json_fail(source, key, "unknown key; vknerf train --help lists all keys");
}
