/* Declares what the files of this module share: storing settings, from numbers, text and JSON. */
#ifndef CONFIG_INTERNAL_H
#define CONFIG_INTERNAL_H

#include "config/config.h"

/* ---- numbers (config.c) ---------------------------------------------------------------------- */

/* Returns the present name of an enumeration's value; `name` is the present name or the name in an
 * earlier version. */
const char *config_value_name(const struct config_setting *setting, const char *name);

/* Fails with "<source>: <key>: unknown key; did you mean ...?". */
vkn_status config_unknown(const char *source, const char *key);

/* A parsed number. `whole` is exact for whole numbers below 2^64; `value` is the number as a
 * double. */
struct config_number {
    double value;
    uint64_t whole;
    bool is_whole;
};
/* Returns whether the setting accepts 0, which in files and on the command line means zero, never
 * "the default" (written as default or null). */
bool config_takes_zero(const struct config_setting *setting);
/* Returns whether the struct holds -1 for 0. */
bool config_negative_is_off(const struct config_setting *setting);
/* Returns an element as a double, which rounds whole numbers above 2^53. */
double config_get(const struct config_setting *setting, size_t index,
                  const struct vkn_config *config);
/* Stores an element without checking it. */
void config_put(const struct config_setting *setting, size_t index, double value,
                struct vkn_config *config);
/* Unsets `count` elements from `index`. */
void config_store_default(const struct config_setting *setting, size_t index, size_t count,
                          struct vkn_config *config);
/* Checks and stores an element from a number. Errors name source and key. */
vkn_status config_store_number(const struct config_setting *setting, const char *source,
                               size_t index, const struct config_number *number,
                               struct vkn_config *config);
/* Checks and stores a whole setting from text. Errors name source and key. */
vkn_status config_store_text(const struct config_setting *setting, const char *source,
                             const char *text, struct vkn_config *config);
/* Parses a number of `size` characters, without a unit. Whole numbers may be written as 2e4. */
bool config_parse_number(const char *text, size_t size, struct config_number *number);
/* Parses a number that may end in k, M or G (10^3, 10^6, 10^9). */
bool config_parse_count(const char *text, size_t size, struct config_number *number);
/* Stores a boolean. */
void config_store_bool(const struct config_setting *setting, bool value, struct vkn_config *config);

/* Returns a setting as JSON, which the caller deletes; NULL if memory runs out. */
struct cJSON *config_setting_json(const struct config_setting *setting,
                                  const struct vkn_config *config);

/* ---- steps (steps.c) ------------------------------------------------------------------------- */

/* Stores steps from text: "500", "100,500,2000" or "100x2". */
vkn_status config_store_steps(const struct config_setting *setting, const char *source,
                              const char *text, struct vkn_config *config);
/* Stores an interval of steps. */
vkn_status config_store_every(const struct config_setting *setting, const char *source,
                              const struct config_number *number, struct vkn_config *config);
/* Stores element `index` of a list of steps; the first one replaces the previous value. */
vkn_status config_store_step(const struct config_setting *setting, const char *source, size_t index,
                             const struct config_number *number, struct vkn_config *config);
/* Returns steps as a number, list or text of JSON, which the caller deletes; NULL if memory runs
 * out. */
struct cJSON *config_steps_json(const struct config_setting *setting,
                                const struct vkn_config *config);

/* ---- points (points.c) ----------------------------------------------------------------------- */

/* Reads points from a text file with lines "step value", or a JSON file [[step, value], ...].
 * Errors name file and line or element. */
vkn_status config_read_points(const struct config_setting *setting, const char *file,
                              struct vkn_config *config);
/* Reads points from a JSON list. Errors name `source` and the setting's key. */
vkn_status config_parse_points(const struct config_setting *setting, const char *source,
                               const struct cJSON *list, struct vkn_config *config);
/* Returns points as a JSON list, which the caller deletes; NULL if memory runs out. */
struct cJSON *config_points_json(const struct config_setting *setting,
                                 const struct vkn_config *config);

/* ---- files (tree.c, tcnn.c) ------------------------------------------------------------------ */

/* Fails with "source: key: path ..." unless `path` is a regular file: reading a pipe or a device
 * might never end. */
vkn_status config_check_file(const char *source, const char *key, const char *path);

/* Reads a JSON object from a file, merged over the file that its "parent" names. Comments are
 * allowed. The caller deletes *tree. */
vkn_status config_read_tree(const char *file, struct cJSON **tree);
/* Converts tiny-cuda-nn's objects of the tree to settings and removes them from the tree. Errors
 * name members without a counterpart. */
vkn_status config_import_tcnn(const char *source, struct cJSON *root, struct vkn_config *config);

/* ---- rules (defaults.c) ---------------------------------------------------------------------- */

/* Declares the rules that rows name: config_rule_finest and so on. */
/* clang-format off */
#define CONFIG_RULE_OPEN(words)
#define CONFIG_RULE_OPEN_VALUE(before, value, words)
#define CONFIG_RULE_SCENE(fact, words)
#define CONFIG_RULE_VALUE(value)
#define CONFIG_RULE_VALUES(a, b, c)
#define CONFIG_RULE_DEVICE(gpu, cpu)
#define CONFIG_RULE_RULE(name, words)                           config_rule config_rule_##name;
#define CONFIG_RULE_VALUE_RULE(name, value, words)              config_rule config_rule_##name;
#define CONFIG_RULE_VALUES_RULE(name, a, b, c, words)           config_rule config_rule_##name;
#define CONFIG_RULE_DEVICE_RULE(name, gpu, between, cpu, words) config_rule config_rule_##name;
#define CONFIG_RULE(group, name, type, range, fallback, help)   CONFIG_RULE_##fallback
#define CONFIG_RULES(group, settings)                           settings(CONFIG_RULE, group)
VKN_SETTINGS_RUN(CONFIG_RULE, )
VKN_SETTING_GROUPS(CONFIG_RULES)
/* clang-format on */

#endif
