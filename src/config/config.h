/* config: holds the settings of a run, their table and their defaults. Knows the scene and the
 * device only through struct config_facts. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <vknerf/config.h>

#include "base/base.h"
#include "config/settings.h"

/* ---- the structure --------------------------------------------------------------------------- */

#define VKN_SCHEDULE_POINTS 32
/* A point of a schedule: the loss scale after `step` finished steps, up to the next point; or the
 * learning rate after `step` finished steps, interpolated linearly to the next point. */
struct vkn_schedule_point {
    uint32_t step;
    float value;
};

#define VKN_STEPS    32
#define VKN_NO_STEPS UINT32_MAX
/* Steps at which something happens, besides the end of training; all zero: unset. */
struct vkn_steps {
    uint32_t every;         /* interval, VKN_NO_STEPS: no step at all; with `factor` the first step
                               of a geometric series */
    float factor;           /* ratio of the series; 0: no series */
    uint32_t at[VKN_STEPS]; /* if `every` is 0: a list of increasing steps, ends with 0 */
};

/* A configuration, with a member for each row of settings.h: steps, grid.levels and so on. Zero
 * means "unset", the default. Settings for which 0 is a useful value other than the default
 * (march.cone_angle, optimizer.weight_decay) hold -1 instead: vkn_config_set and the readers of
 * JSON store -1 for 0. */
struct vkn_config {
    VKN_SETTINGS_RUN(VKN_MEMBER, )
    VKN_SETTING_GROUPS(VKN_GROUP)
};
/* Returns `config`, or for NULL a configuration without any setting. */
const struct vkn_config *config_or_default(const vkn_config *config);

/* ---- the table ------------------------------------------------------------------------------- */

/* Types of settings. */
enum config_type {
    CONFIG_U32,   /* text may end in k, M, G: 10^3, 10^6, 10^9 */
    CONFIG_U64,   /* as U32 */
    CONFIG_BYTES, /* uint64_t; text may end in K, M, G: 2^10, 2^20, 2^30 */
    CONFIG_FLOAT,
    CONFIG_DOUBLE,
    CONFIG_SECONDS, /* double; text may end in s, m, h */
    CONFIG_BOOL,
    CONFIG_ENUM,
    CONFIG_STEPS, /* struct vkn_steps; text "500", "100,500,2000" or "100x2" */
    CONFIG_POINTS /* struct vkn_schedule_point[count], ends with a value of 0 */
};

/* Origin of a default. */
enum config_origin {
    CONFIG_OPEN,  /* none: the setting stays zero, and the module that reads it chooses */
    CONFIG_VALUE, /* a constant or a rule */
    CONFIG_SCENE  /* the opened scene, whose value also replaces a value that was set */
};

struct config_facts;
struct config_setting;

/* Returns a default that depends on other settings and the facts. `value` is the constant of the
 * row for the type of the device, or 0. Settings in earlier rows are already resolved. */
typedef double config_rule(const struct vkn_config *config, const struct config_facts *facts,
                           double value);

/* The default of a setting. */
struct config_default {
    enum config_origin origin;
    /* Constants [count] by type of the device; gpu NULL: none; cpu NULL: the same as gpu. */
    const double *gpu, *cpu;
    config_rule *rule; /* NULL: the constants are the default */
    size_t fact;       /* of CONFIG_SCENE: offset in struct config_facts */
    const char *words; /* text for --help, except for names and booleans */
};

/* A setting: a row of the table. */
struct config_setting {
    const char *key; /* "optimizer.learning_rate" */
    enum config_type type;
    size_t offset;           /* in struct vkn_config */
    size_t count;            /* number of elements; 1 except for lists, steps and points */
    double minimum, maximum; /* range of numbers, or of the values of points */
    /* true: 0 is accepted outside the range and turns something off; if the range has negative
     * numbers, the struct holds -1 for 0. false: a 0 outside the range is refused. */
    bool zero_is_off;
    uint32_t multiple;        /* whole numbers must be multiples of this; 0: any */
    const char *const *names; /* of an enumeration, by value; ends with NULL */
    struct config_default fallback;
    const char *help;
    const char *point_value; /* name of the values of points in messages: "scale" */
};

/* All settings, in the order of config.json. */
extern const struct config_setting config_settings[];
extern const size_t config_setting_count;
/* Returns the setting of a key, or of the name that the key had in an earlier version; NULL: there
 * is none. */
const struct config_setting *config_find(const char *key);
/* A heading of the settings' list in --help. */
struct config_heading {
    const char *title;
    const char *groups[8]; /* "scene" for scene.*, "seed" for a setting without a group; ends with
                              NULL */
};
/* Headings in the order of --help. Each setting is under exactly one heading. */
extern const struct config_heading config_headings[];
extern const size_t config_heading_count;
/* Returns whether the list shows the setting under the heading. */
bool config_is_under(const struct config_setting *setting, const struct config_heading *heading);
/* A word of other programs, and the key, option, command or argument of the same meaning. */
struct config_synonym {
    const char *word, *name;
};
extern const struct config_synonym config_synonyms[];
extern const size_t config_synonym_count;
/* Returns the one of `names` that an unknown word probably means: by the synonyms of other
 * programs, or else the closest in spelling; NULL: neither. */
const char *config_nearest(const char *word, const char *const *names, size_t count);
/* Returns the size of a setting in struct vkn_config, in bytes. */
size_t config_setting_size(const struct config_setting *setting);
/* Returns whether a setting is unset, that is zero. The key must exist. */
bool config_is_unset(const struct vkn_config *config, const char *key);
/* Copies a setting from `from` if it is unset in `config`. */
void config_inherit(struct vkn_config *config, const struct vkn_config *from, const char *key);

/* Names of the values of each enumeration, ending with NULL: config_loss_names and so on. */
#define CONFIG_NAMES(name, zero, zero_name, others) \
    extern const char *const config_##name##_names[];
VKN_ENUMERATIONS(CONFIG_NAMES)
#undef CONFIG_NAMES

/* Returns a loss scale clamped to loss_scale.minimum and loss_scale.maximum. */
float config_limit_scale(const struct vkn_config *config, float scale);
/* Writes the shortest decimal that reads back as the same double, or the same float if `single`. */
void config_print_number(char text[40], double value, bool single);
/* Writes the setting's minimum and maximum exactly, separated by `between`. Returns `text`. */
const char *config_print_range(char text[96], const struct config_setting *setting,
                               const char *between);

/* ---- defaults -------------------------------------------------------------------------------- */

/* Facts about device and scene that defaults depend on. */
struct config_facts {
    bool is_cpu;
    /* Settings scene.* of the opened scene. A run keeps them even if the scene is changed later. */
    enum vkn_scene_format format;
    uint32_t downscale;
    double scale, offset[3];
    uint32_t aabb_scale;
    bool fixed_transform;
    double unit_length;     /* 0: unknown */
    float near;             /* distance of the nearest content, training units; 0: unknown */
    double camera_distance; /* mean distance of the training cameras from the cube's centre; 0:
                               unknown */
    /* Mean over the training views of how many pixels show one training unit at the cube's centre;
     * 0: unknown. */
    double pixels_per_unit;
    enum vkn_background background; /* plain background of the images; default: none or unknown */
    uint64_t views;                 /* training views; 0: unknown */
    uint64_t depths; /* known depths of tracked points and depth pictures in the training views */
    bool sky;        /* the images show a sky; default: unknown */
    enum vkn_appearance appearance; /* that differs from image to image; default: unknown */
};

/* Replaces all unset settings by their defaults, in the order of the table. VKN_BAD_INPUT if
 * settings contradict each other, or are out of range without having passed vkn_config_set. */
vkn_status config_resolve(struct vkn_config *config, const struct config_facts *facts);
/* Returns the default of an element, whatever its present value; 0 unless the origin is
 * CONFIG_VALUE. */
double config_default(const struct config_setting *setting, size_t index,
                      const struct vkn_config *config, const struct config_facts *facts);
/* Returns the model; if it is unset, the one that the settings field.* require. */
enum vkn_model config_model(const struct vkn_config *config);
/* Returns whether the settings field.* choose the encodings: in layered models, deformed or not. */
bool config_is_layered(const struct vkn_config *config);
/* Returns the constant of a row OPEN_VALUE, from which the module that reads the setting starts; 0
 * for other rows. */
double config_default_number(const char *key);
/* Returns the default in words: "16", "19, CPU 15", "huber", "a quarter of the memory". */
const char *config_default_text(const struct config_setting *setting);

/* ---- use ------------------------------------------------------------------------------------- */

/* Returns whether steps are given, VKN_NO_STEPS included. */
bool config_has_steps(const struct vkn_steps *steps);
/* Returns the first of the steps that is greater than `after`; UINT32_MAX: none. */
uint64_t config_next_step(const struct vkn_steps *steps, uint64_t after);

#endif
