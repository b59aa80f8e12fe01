/* vknerf/config.h: every setting of a training run.
 *
 * A configuration holds what was asked for; what was not is open, "the default", which may depend
 * on the device, the scene and other settings: the trainer resolves it, and vkn_trainer_config
 * gives the effective values that config.json records. Settings are called by paths,
 * "optimizer.learning_rate", the same in
 * --config FILE.json, in --set key=value and here; vkn_config_help lists all with type, range,
 * default and meaning. Values are texts: numbers; names; true and false; "default". 0 means zero,
 * never the default, and is refused as out of range where there is no such thing. Whole numbers may
 * end in k, M or G (1000, ...), bytes in K, M or G (1024, ...), seconds in s, m or h.
 *
 * Calls read a configuration and keep nothing of it: it may be changed or destroyed as soon as they
 * return. NULL stands for one in which all is open. Several threads may read one at the same time.
 */
#ifndef VKNERF_CONFIG_H
#define VKNERF_CONFIG_H

#include <vknerf/api.h>
#include <vknerf/choices.h>
#include <vknerf/error.h>

VKN_BEGIN_DECLARATIONS

/* The settings of a run, as asked for or effective. */
typedef struct vkn_config vkn_config;

/* All open, or what another one has. The caller owns *config; destroy nulls it, and takes NULL. */
VKN_API vkn_status vkn_config_create(vkn_config **config);
VKN_API vkn_status vkn_config_copy(const vkn_config *from, vkn_config **config);
VKN_API void vkn_config_destroy(vkn_config **config);

/* One setting by its path, from text ("optimizer.learning_rate", "5e-3"). VKN_BAD_INPUT names the
 * key and what it accepts, suggests the nearest key for an unknown one, and changes nothing.
 * `source` (a file name or "--set") begins the message; NULL: the function's name does. */
VKN_API vkn_status vkn_config_set(vkn_config *config, const char *source, const char *key,
                                  const char *value);
/* The same of a number. */
VKN_API vkn_status vkn_config_set_number(vkn_config *config, const char *key, double value);
/* One setting as a text that vkn_config_set takes ("default" where it is open), in fresh memory
 * that the caller frees; lists have commas. VKN_BAD_INPUT for an unknown key, and for points of a
 * schedule, which come from files. */
VKN_API vkn_status vkn_config_get(const vkn_config *config, const char *key, char **value);
/* All keys that a JSON file holds: nested objects, or paths as keys; null is the default. A file
 * with an error changes nothing. */
VKN_API vkn_status vkn_config_read_json(vkn_config *config, const char *file);
/* The same from a JSON text; `source` names it in messages, NULL: the function's name does. Keys
 * that are not settings are an error unless `ignore_unknown`, which is for what a run recorded
 * (config.json also holds the command and the device; a 0 out of range there is the default, as
 * earlier versions wrote it). */
VKN_API vkn_status vkn_config_parse_json(vkn_config *config, const char *source, const char *json,
                                         bool ignore_unknown);
/* The configuration as a nested JSON object in fresh memory that the caller frees, null for what is
 * open; NULL on no memory. */
VKN_API char *vkn_config_write_json(const vkn_config *config);
/* The keys with type, range, default and meaning, for people; fresh memory that the caller frees,
 * NULL on no memory. */
VKN_API char *vkn_config_help(void);
/* One setting as programs list it; since 0.2. Texts and names are the library's, and stay. */
typedef struct vkn_setting {
    size_t size;                /* sizeof(vkn_setting) */
    const char *key;            /* "optimizer.learning_rate" */
    const char *help;           /* what it is for */
    const char *const *choices; /* names that it takes, ending with NULL; NULL: it takes other
                                   values */
} vkn_setting;
/* How many there are, and each from 0 on, in the order of vkn_config_help. VKN_BAD_INPUT beyond the
 * last. */
VKN_API size_t vkn_config_setting_count(void);
VKN_API vkn_status vkn_config_setting(size_t index, vkn_setting *setting);

/* A whole number that may end in k, M or G: "20k", "1.5M". False when it is none below 2^64. */
VKN_API bool vkn_parse_count(const char *text, uint64_t *count);

VKN_END_DECLARATIONS

#endif
