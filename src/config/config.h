/* config: the settings of a run as a table, and what they are when nobody said. Knows nothing of
 * the scene and the device but the facts that it is told. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <vknerf/config.h>

#include "base/base.h"
#include "config/settings.h"

/* ---- the structure --------------------------------------------------------------------------- */

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
    uint32_t every; /* multiples of this; with `factor` the first of a series */
    float factor;   /* each step of the series is so many times the one before; 0: no series */
    uint32_t at[VKN_STEPS]; /* without `every`: these, increasing; ends with 0 */
};

/* steps, grid.levels, ...: a member for each row of settings.h, which says what it means. Zero
 * means "the default"; where zero itself would be of use and is not the default, a negative number
 * stands for it (march.cone_angle, optimizer.weight_decay): what vkn_config_set and the readers of
 * JSON store for a written 0. */
struct vkn_config {
    VKN_SETTINGS_RUN(VKN_MEMBER, )
    VKN_SETTING_GROUPS(VKN_GROUP)
};
/* What a caller gives; NULL: all open. */
const struct vkn_config *config_or_default(const vkn_config *config);

/* ---- the table ------------------------------------------------------------------------------- */

enum config_type {
    CONFIG_U32,   /* as text also 20k, 1.5M, 2G: thousands, millions, billions */
    CONFIG_U64,   /* the same */
    CONFIG_BYTES, /* uint64_t; as text also 512K, 64M, 2G: of 1024 */
    CONFIG_FLOAT,
    CONFIG_DOUBLE,
    CONFIG_SECONDS, /* a double; as text also 90s, 5m, 2h */
    CONFIG_BOOL,
    CONFIG_ENUM,
    CONFIG_STEPS, /* struct vkn_steps; as text "500", "100,500,2000" or "100x2" */
    CONFIG_POINTS /* struct vkn_schedule_point[count], ending early with a value of 0 */
};

/* What the default of a setting comes from, as settings.h has it. */
enum config_origin {
    CONFIG_OPEN,  /* it stays open: zero, which what works with the setting makes something of */
    CONFIG_VALUE, /* a constant, or what a rule makes of it */
    CONFIG_SCENE  /* the scene, which overrules what was asked for */
};

struct config_facts;
struct config_setting;

/* A default that follows from other settings and the facts; `value` is the row's for the device, or
 * 0. Settings before this one are resolved. */
typedef double config_rule(const struct vkn_config *config, const struct config_facts *facts,
                           double value);

struct config_default {
    enum config_origin origin;
    const double *gpu, *cpu; /* values, as many as the setting has elements; cpu NULL: the same;
                                gpu NULL: there is none */
    config_rule *rule;       /* NULL: they are it */
    size_t fact;             /* place in struct config_facts of what the scene says */
    const char *words;       /* for people; config_default_text has names and truth values too */
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
    const char *const *names; /* of an enum's values, from 0; ends with NULL */
    struct config_default fallback;
    const char *help;
    const char *point_value; /* what points call their values: "scale" */
};

/* In the order of the JSON that vkn_config_write_json writes; groups stay together. */
extern const struct config_setting config_settings[];
extern const size_t config_setting_count;
/* Returns the setting of a key, or of the name that the key had in an earlier version; NULL: there
 * is none. */
const struct config_setting *config_find(const char *key);
/* What other programs call a setting's key, an option "--name", a command or an argument. */
struct config_synonym {
    const char *word, *name;
};
extern const struct config_synonym config_synonyms[];
extern const size_t config_synonym_count;
/* The name that is meant by a word that is none: what other programs' word for it is, else the
 * closest in spelling; NULL: neither. */
const char *config_nearest(const char *word, const char *const *names, size_t count);
/* Bytes in the struct. */
size_t config_setting_size(const struct config_setting *setting);
/* Whether nobody has said what it shall be: it is zero. Of a key that there is. */
bool config_is_unset(const struct vkn_config *config, const char *key);
/* What is open becomes as it is in `from`. */
void config_inherit(struct vkn_config *config, const struct vkn_config *from, const char *key);

/* Names of an enumeration's values, from 0, ending with NULL: config_loss_names, ... */
#define CONFIG_NAMES(name, zero, zero_name, others) \
    extern const char *const config_##name##_names[];
VKN_ENUMERATIONS(CONFIG_NAMES)
#undef CONFIG_NAMES

/* A loss scale brought within loss_scale.minimum and maximum. */
float config_limit_scale(const struct vkn_config *config, float scale);
/* The shortest decimal that reads back as the same value, of a float when `single`. */
void config_print_number(char text[40], double value, bool single);

/* ---- defaults -------------------------------------------------------------------------------- */

/* What defaults depend on beside other settings. */
struct config_facts {
    bool cpu; /* the device is a processor */
    /* As the scene came to be; whatever becomes of its capture, what is trained stays there. */
    enum vkn_scene_format format;
    uint32_t downscale;
    double scale, offset[3];
    uint32_t aabb_scale;
    bool placed;
    float near; /* distance of the nearest content, training units; 0: not known */
};

/* Everything that is zero becomes its default, in the order of the table. VKN_BAD_INPUT where
 * settings do not go together, or are out of range without having gone through vkn_config_set. */
vkn_status config_resolve(struct vkn_config *config, const struct config_facts *facts);
/* What that makes of an element, whatever it is now; 0 where it stays open, or is the scene's. */
double config_default(const struct config_setting *setting, size_t index,
                      const struct vkn_config *config, const struct config_facts *facts);
/* The model that is trained, which what is asked of the field decides where nobody said. */
enum vkn_model config_model(const struct vkn_config *config);
/* Returns whether the settings field.* choose its encodings: the layered model, deformed or not. */
bool config_is_layered(const struct vkn_config *config);
/* The number that the row of an open default tells, whose meaning is the caller's. */
double config_default_number(const char *key);
/* The default in words: "16", "19, CPU 15", "huber", "a quarter of the machine's memory". */
const char *config_default_text(const struct config_setting *setting);

/* ---- use ------------------------------------------------------------------------------------- */

/* The first that comes after `after` finished steps; UINT32_MAX: none. */
uint64_t config_next_step(const struct vkn_steps *steps, uint64_t after);

#endif
