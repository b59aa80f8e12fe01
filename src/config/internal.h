/* What the files of this room share: settings from text and JSON into struct vkn_config. */
#ifndef CONFIG_INTERNAL_H
#define CONFIG_INTERNAL_H

#include "config/config.h"

/* ---- numbers (config.c) ---------------------------------------------------------------------- */

/* Returns the present name of a value of an enumeration that may have the name of an earlier
 * version. */
const char *config_value_name(const struct config_setting *setting, const char *name);

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
/* An element as it is; a double holds all but the largest 64-bit numbers. */
double config_get(const struct config_setting *setting, size_t index,
                  const struct vkn_config *config);
/* Without a look at what the setting accepts. */
void config_put(const struct config_setting *setting, size_t index, double value,
                struct vkn_config *config);
/* Zeros, which stand for the default, in `count` elements from `index`. */
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

/* A setting as vkn_config_write_json has it; NULL on no memory. */
struct cJSON *config_setting_json(const struct config_setting *setting,
                                  const struct vkn_config *config);

/* ---- steps (steps.c) ------------------------------------------------------------------------- */

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

/* ---- points (points.c) ----------------------------------------------------------------------- */

/* From a text file, a line "step value" each, or a JSON file of [[step, value], ...]; errors name
 * file and line or element. */
vkn_status config_read_points(const struct config_setting *setting, const char *file,
                              struct vkn_config *config);
/* From a JSON list, which `source` and the setting's key name in messages. */
vkn_status config_parse_points(const struct config_setting *setting, const char *source,
                               const struct cJSON *list, struct vkn_config *config);
/* As such a list, which the caller deletes; NULL on no memory. */
struct cJSON *config_points_json(const struct config_setting *setting,
                                 const struct vkn_config *config);

/* ---- files (tree.c, tcnn.c) ------------------------------------------------------------------ */

/* VKN_BAD_INPUT "source: key: path ..." unless the path that a file names is there and a regular
 * file: a pipe or a device may never come to an end. */
vkn_status config_check_file(const char *source, const char *key, const char *path);

/* A file's object, without its comments, in the place of what it changes of the file that "parent"
 * names. The caller deletes *tree. */
vkn_status config_read_tree(const char *file, struct cJSON **tree);
/* What tiny-cuda-nn's objects say, which leave the tree. Errors name what has no counterpart. */
vkn_status config_import_tcnn(const char *source, struct cJSON *root, struct vkn_config *config);

/* ---- rules (defaults.c) ---------------------------------------------------------------------- */

/* config_rule_finest, ...: those that rows name. */
/* clang-format off */
#define CONFIG_RULE_OPEN(words)
#define CONFIG_RULE_OPEN_VALUE(before, value, words)
#define CONFIG_RULE_SCENE(fact, words)
#define CONFIG_RULE_VALUE(value)
#define CONFIG_RULE_VALUES(a, b, c)
#define CONFIG_RULE_DEVICE(gpu, cpu)
#define CONFIG_RULE_RULE(name, words)                           config_rule config_rule_##name;
#define CONFIG_RULE_VALUE_RULE(name, value, words)              config_rule config_rule_##name;
#define CONFIG_RULE_DEVICE_RULE(name, gpu, between, cpu, words) config_rule config_rule_##name;
#define CONFIG_RULE(group, name, type, range, fallback, help)   CONFIG_RULE_##fallback
#define CONFIG_RULES(group, settings)                           settings(CONFIG_RULE, group)
VKN_SETTINGS_RUN(CONFIG_RULE, )
VKN_SETTING_GROUPS(CONFIG_RULES)
/* clang-format on */

#endif
