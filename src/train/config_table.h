/* The settings of vkn_config as a table: path, type, place, range. */
#ifndef TRAIN_CONFIG_TABLE_H
#define TRAIN_CONFIG_TABLE_H

#include <vknerf/config.h>

#include "base/base.h"

enum config_type {
    CONFIG_U32,
    CONFIG_U64,
    CONFIG_BYTES, /* uint64_t; as text also 512K, 64M, 2G */
    CONFIG_FLOAT,
    CONFIG_DOUBLE,
    CONFIG_BOOL,
    CONFIG_ENUM,
    CONFIG_POINTS /* struct vkn_scale_point[count], ending early with a scale of 0 */
};

struct config_setting {
    const char *key; /* "optimizer.learning_rate" */
    enum config_type type;
    size_t offset; /* in struct vkn_config */
    size_t count;  /* elements; 1 but for lists */
    double minimum,
        maximum; /* of numbers (of points: their scale); 0, the default, is accepted as well */
    uint32_t multiple;        /* whole numbers are multiples of this; 0: any */
    const char *const *names; /* of an enum's values, from 0 */
    const char *fallback;     /* what 0 or the first name stands for */
    const char *help;
};

extern const struct config_setting config_settings[];
extern const size_t config_setting_count;

/* NULL when there is none of that path. */
const struct config_setting *config_find(const char *key);
/* Bytes that it takes in struct vkn_config. */
size_t config_setting_size(const struct config_setting *setting);
/* "<source>: <key>: unknown key; did you mean ...?" */
vkn_status config_unknown(const char *source, const char *key);

/* One element. Whole numbers up to 2^64 are exact in `whole`; `value` is the same as a double. */
struct config_number {
    double value;
    uint64_t whole;
    bool is_whole;
};
/* The setting's element from a number, a name or a truth value; errors name source and key. */
vkn_status config_store_number(const struct config_setting *setting, const char *source,
                               size_t index, const struct config_number *number,
                               struct vkn_config *config);
vkn_status config_store_text(const struct config_setting *setting, const char *source,
                             const char *text, struct vkn_config *config);
void config_store_bool(const struct config_setting *setting, bool value, struct vkn_config *config);

/* The shortest decimal that reads back as the same value, of a float when `single`. */
void config_print_number(char text[40], double value, bool single);

/* ---- points (config_points.c) --------------------------------------------------------------- */

/* From a text file, a line "step scale" each, or a JSON file of [[step, scale], ...]; errors name
 * file and line or element. */
vkn_status config_read_points(const struct config_setting *setting, const char *file,
                              struct vkn_config *config);
/* From a JSON list, which `source` and the setting's key name in messages. */
vkn_status config_take_points(const struct config_setting *setting, const char *source,
                              const struct cJSON *list, struct vkn_config *config);
/* As such a list, which the caller deletes; NULL on no memory. */
struct cJSON *config_points_json(const struct config_setting *setting,
                                 const struct vkn_config *config);

#endif
