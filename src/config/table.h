/* The settings of vkn_config as a table: path, type, place, range. */
#ifndef CONFIG_TABLE_H
#define CONFIG_TABLE_H

#include <vknerf/config.h>

#include "base/base.h"

enum config_type {
    CONFIG_U32,   /* as text also 20k, 1.5M, 2G: thousands, millions, billions */
    CONFIG_U64,   /* the same */
    CONFIG_BYTES, /* uint64_t; as text also 512K, 64M, 2G: of 1024 */
    CONFIG_FLOAT,
    CONFIG_DOUBLE, /* seconds; as text also 90s, 5m, 2h */
    CONFIG_BOOL,
    CONFIG_ENUM,
    CONFIG_STEPS, /* struct vkn_steps; as text "500", "100,500,2000" or "100x2" */
    CONFIG_POINTS /* struct vkn_schedule_point[count], ending early with a value of 0 */
};

struct config_setting {
    const char *key; /* "optimizer.learning_rate" */
    enum config_type type;
    size_t offset;           /* in struct vkn_config */
    size_t count;            /* elements; 1 but for lists and steps */
    double minimum, maximum; /* of numbers (of points: their values) */
    /* A written 0 is accepted whatever the range and turns something off; where the range has
     * negative numbers, the struct holds it as -1, since its 0 is the default. Without this a 0
     * outside of the range is refused. */
    bool zero_is_off;
    uint32_t multiple;        /* whole numbers are multiples of this; 0: any */
    const char *const *names; /* of an enum's values, from 0 */
    const char *fallback;     /* what 0 or the first name stands for */
    const char *help;
    const char *point_value; /* what points call their values: "scale" */
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
/* Whether a number 0 may be written: in a file or on the command line it means zero, never "the
 * default", which is called "default" or null. */
bool config_takes_zero(const struct config_setting *setting);
/* Whether the struct's negative numbers are what is written as 0. */
bool config_negative_is_off(const struct config_setting *setting);
/* The default for `count` elements from `index`. */
void config_store_default(const struct config_setting *setting, size_t index, size_t count,
                          struct vkn_config *config);
/* The setting's element from a number, a name or a truth value; errors name source and key. */
vkn_status config_store_number(const struct config_setting *setting, const char *source,
                               size_t index, const struct config_number *number,
                               struct vkn_config *config);
vkn_status config_store_text(const struct config_setting *setting, const char *source,
                             const char *text, struct vkn_config *config);
/* A number and nothing else. Whole numbers may be written like 2e4. */
bool config_parse_number(const char *text, size_t size, struct config_number *number);
/* The same, also 20k, 1.5M or 2G: thousands, millions, billions. */
bool config_parse_count(const char *text, size_t size, struct config_number *number);
void config_store_bool(const struct config_setting *setting, bool value, struct vkn_config *config);

/* The shortest decimal that reads back as the same value, of a float when `single`. */
void config_print_number(char text[40], double value, bool single);

/* ---- steps (config_steps.c) ----------------------------------------------------------------- */

vkn_status config_store_steps(const struct config_setting *setting, const char *source,
                              const char *text, struct vkn_config *config);
/* "Every so many". */
vkn_status config_store_every(const struct config_setting *setting, const char *source,
                              const struct config_number *number, struct vkn_config *config);
/* One of a list, whose first one replaces what was there. */
vkn_status config_store_step(const struct config_setting *setting, const char *source, size_t index,
                             const struct config_number *number, struct vkn_config *config);
/* A number, a list or a text, which the caller deletes; NULL on no memory. */
struct cJSON *config_steps_json(const struct config_setting *setting,
                                const struct vkn_config *config);
/* The first that comes after `after` finished steps; UINT32_MAX: none. */
uint64_t config_next_step(const struct vkn_steps *steps, uint64_t after);

/* ---- points (config_points.c) --------------------------------------------------------------- */

/* From a text file, a line "step value" each, or a JSON file of [[step, value], ...]; errors name
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
