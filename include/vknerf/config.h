/* vknerf/config.h: every setting of a training run.
 *
 * In this struct zero means "the default", which may depend on the device, the scene and other
 * settings; the trainer resolves them, and vkn_trainer_config gives the effective values that
 * config.json records. Where zero itself would be of use and is not the default, a negative number
 * stands for it (march.cone_angle, optimizer.weight_decay).
 * In texts and files 0 means zero, never the default: vkn_config_set and the readers of JSON store
 * what the struct has for it (0 where that means zero, as for seed, seconds and clip_norm, else
 * -1), and refuse it as out of range where there is no such thing. The default is written
 * "default", in JSON also null, and vkn_config_write_json writes null for it. Each field is a key
 * of --config FILE.json and of --set key=value by the path in vkn_config_write_json's output, for
 * example "optimizer.learning_rate". */
#ifndef VKNERF_CONFIG_H
#define VKNERF_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vknerf/api.h>
#include <vknerf/error.h>
#include <vknerf/settings.h>

/* enum vkn_model, vkn_precision, vkn_gradient_sums, vkn_background, vkn_switch, vkn_scene_format,
 * vkn_contraction, vkn_matrix_shape, vkn_accumulate, vkn_loss, vkn_rate_schedule and
 * vkn_loss_scale. */
VKN_ENUMERATIONS(VKN_ENUM)

#define VKN_SCHEDULE_POINTS 32
/* The loss scale once `step` steps are finished, until the next point; the learning rate then, from
 * which it goes straight to the next point's. */
struct vkn_schedule_point {
    uint32_t step;
    float value;
};

#define VKN_STEPS 32
/* Which steps something happens at, beside the end; all zero: none. */
struct vkn_steps {
    uint32_t every;         /* multiples of this; with `factor` the first of a series */
    float factor;           /* each step of the series is so many times the one before; 0: no series */
    uint32_t at[VKN_STEPS]; /* without `every`: these, increasing; ends with 0 */
};

/* steps, grid.levels, ...: a member for each row of <vknerf/settings.h>, which says what it means.
 * parallel.virtual is virtual_ranks in C++, where virtual is no name. */
#ifdef __cplusplus
#define virtual virtual_ranks
#endif
struct vkn_config {
    VKN_SETTINGS_RUN(VKN_MEMBER, )
    VKN_SETTING_GROUPS(VKN_GROUP)
};
#ifdef __cplusplus
#undef virtual
#endif

typedef struct vkn_config vkn_config;

/* One setting by its path, from text ("optimizer.learning_rate", "5e-3"). VKN_BAD_INPUT names the key and
 * what it accepts, and suggests the nearest key for an unknown one. `source` (a file name or "--set")
 * begins the message. "default" is the default; whole numbers may end in k, M or G (1000, ...), bytes in
 * K, M or G (1024, ...), seconds in s, m or h. */
vkn_status vkn_config_set(struct vkn_config *config, const char *source, const char *key, const char *value);
/* A whole number that may end in k, M or G: "20k", "1.5M". False when it is none below 2^64. */
bool vkn_parse_count(const char *text, uint64_t *count);
/* All keys that a JSON file holds: nested objects, or paths as keys. */
vkn_status vkn_config_read_json(struct vkn_config *config, const char *file);
/* The same from a JSON text; `source` names it in messages. Keys that are not settings are an error
 * unless `ignore_unknown`, which is for what a run recorded (config.json also holds the command and the
 * device; a 0 out of range there is the default, as earlier versions wrote it). */
vkn_status vkn_config_parse_json(struct vkn_config *config, const char *source, const char *json,
                                 bool ignore_unknown);
/* The configuration as a nested JSON object in fresh memory that the caller frees; NULL on no memory. */
char *vkn_config_write_json(const struct vkn_config *config);

#endif
