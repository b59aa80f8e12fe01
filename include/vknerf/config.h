/* vknerf/config.h: reads, changes and writes the settings of a training run.
 *
 * A configuration holds the settings that the caller has set; all others are unset and mean "the
 * default", which may depend on the device, the scene and other settings. The trainer resolves
 * defaults: vkn_trainer_config returns the effective values, which config.json records. A setting
 * has a key such as "optimizer.learning_rate", the same in --config FILE.json, in --set key=value
 * and here; vkn_config_help lists all keys with type, range, default and meaning. Values are texts:
 * numbers, names, true, false, "default". 0 means zero, never the default, and is refused as out of
 * range if the setting does not accept it. Whole numbers may end in k, M or G (1000, ...), bytes in
 * K, M or G (1024, ...), seconds in s, m or h.
 *
 * Functions of other headers copy what they need of a configuration: it may be changed or destroyed
 * as soon as they return. NULL stands for a configuration without any setting. Several threads may
 * read one configuration at the same time. */
#ifndef VKNERF_CONFIG_H
#define VKNERF_CONFIG_H

#include <vknerf/api.h>
#include <vknerf/choices.h>
#include <vknerf/error.h>

VKN_BEGIN_DECLARATIONS

/* The settings of a run, as set or effective. */
typedef struct vkn_config vkn_config;

/* Creates a configuration without any setting. The caller owns *config. */
VKN_API vkn_status vkn_config_create(vkn_config **config);
/* Copies a configuration. The caller owns *config. */
VKN_API vkn_status vkn_config_copy(const vkn_config *from, vkn_config **config);
/* Destroys a configuration and sets *config to NULL; accepts NULL. */
VKN_API void vkn_config_destroy(vkn_config **config);

/* Sets one setting from text ("optimizer.learning_rate", "5e-3"). VKN_BAD_INPUT names the key and
 * the values that it accepts, or for an unknown key the nearest one; nothing changes then. `source`
 * (a file name or "--set") begins the message; NULL: the function's name. */
VKN_API vkn_status vkn_config_set(vkn_config *config, const char *source, const char *key,
                                  const char *value);
/* Sets one setting to a number. */
VKN_API vkn_status vkn_config_set_number(vkn_config *config, const char *key, double value);
/* Returns one setting as a text that vkn_config_set accepts ("default" if it is unset), in memory
 * that the caller frees; elements of lists are separated by commas. VKN_BAD_INPUT for an unknown
 * key, and for a schedule's points, which are set from files. */
VKN_API vkn_status vkn_config_get(const vkn_config *config, const char *key, char **value);
/* Sets all settings of a JSON file: nested objects, or whole keys such as "grid.levels"; null means
 * the default. A file with an error changes nothing. */
VKN_API vkn_status vkn_config_read_json(vkn_config *config, const char *file);
/* Sets all settings of a JSON text, which `source` names in messages; NULL: the function's name.
 * Keys that are not settings are an error. `ignore_unknown` is for config.json of a run: it ignores
 * such keys, and takes a 0 out of range, which earlier versions wrote for unset settings, as the
 * default. */
VKN_API vkn_status vkn_config_parse_json(vkn_config *config, const char *source, const char *json,
                                         bool ignore_unknown);
/* Returns the configuration as a nested JSON object, with null for unset settings, in memory that
 * the caller frees; NULL if memory runs out. */
VKN_API char *vkn_config_write_json(const vkn_config *config);
/* Returns the list of settings with meaning, range and default, under headings, as `vknerf train
 * --help` prints it, in memory that the caller frees; NULL if memory runs out. */
VKN_API char *vkn_config_help(void);
/* Description of a setting. Its texts are constants of the library. */
typedef struct vkn_setting {
    size_t size;                /* sizeof(vkn_setting) */
    const char *key;            /* "optimizer.learning_rate" */
    const char *help;           /* meaning, a noun phrase */
    const char *const *choices; /* names that the setting accepts, ending with NULL; NULL: its
                                   values are not names */
    const char *default_text;   /* default in words: "20000, none with seconds" */
} vkn_setting;
/* Returns the number of settings. */
VKN_API size_t vkn_config_setting_count(void);
/* Describes a setting by its index from 0, in the order of config.json. VKN_BAD_INPUT beyond the
 * last. */
VKN_API vkn_status vkn_config_setting(size_t index, vkn_setting *setting);

/* Parses a whole number that may end in k, M or G: "20k", "1.5M". Returns false if the text is no
 * whole number below 2^64. */
VKN_API bool vkn_parse_count(const char *text, uint64_t *count);

VKN_END_DECLARATIONS

#endif
