/* Builds the table of settings from the rows of settings.h, and finds settings by key. */
#include "config/internal.h"

#include <string.h>

/* ---- names ---------------------------------------------------------------------------------- */

#define NAMES(name, zero, zero_name, others) \
    const char *const config_##name##_names[] = {#zero_name, others(VKN_NAME) NULL};
VKN_ENUMERATIONS(NAMES)

/* ---- rows ----------------------------------------------------------------------------------- */

/* clang-format off */
// NOLINTBEGIN(bugprone-macro-parentheses): names and parts of strings
#define TYPE_U32          .type = CONFIG_U32, .count = 1
#define TYPE_U64          .type = CONFIG_U64, .count = 1
#define TYPE_BYTES        .type = CONFIG_BYTES, .count = 1
#define TYPE_FLOAT        .type = CONFIG_FLOAT, .count = 1
#define TYPE_FLOATS(n)    .type = CONFIG_FLOAT, .count = (n)
#define TYPE_DOUBLE       .type = CONFIG_DOUBLE, .count = 1
#define TYPE_DOUBLES(n)   .type = CONFIG_DOUBLE, .count = (n)
#define TYPE_SECONDS      .type = CONFIG_SECONDS, .count = 1
#define TYPE_BOOL         .type = CONFIG_BOOL, .count = 1
#define TYPE_ENUM(name)   .type = CONFIG_ENUM, .count = 1, .names = config_##name##_names
#define TYPE_STEPS        .type = CONFIG_STEPS, .count = sizeof(struct vkn_steps) / sizeof(uint32_t)
#define TYPE_POINTS(word) .type = CONFIG_POINTS, .count = VKN_SCHEDULE_POINTS, .point_value = #word

#define RANGE_ANY                       .maximum = 0
#define RANGE_RANGE(least, most)        .minimum = (double)(least), .maximum = (double)(most)
#define RANGE_RANGE_OR_OFF(least, most) RANGE_RANGE(least, most), .zero_is_off = true
#define RANGE_MULTIPLE(least, most, of) RANGE_RANGE(least, most), .multiple = (of)

/* The factor 1.0 makes a quotient such as 1/256 a floating-point number. */
#define NUMBER(...)                         (const double[]){1.0 * __VA_ARGS__}
#define DEFAULT_OPEN(text)                  {.origin = CONFIG_OPEN, .words = (text)}
#define DEFAULT_OPEN_VALUE(before, v, text) {.origin = CONFIG_OPEN, .gpu = NUMBER(v), .words = before #v text}
#define DEFAULT_SCENE(member, text) \
    {.origin = CONFIG_SCENE, .fact = offsetof(struct config_facts, member), .words = (text)}
#define DEFAULT_VALUE(v)                    {.origin = CONFIG_VALUE, .gpu = NUMBER(v), .words = #v}
#define DEFAULT_VALUES(a, b, c) \
    {.origin = CONFIG_VALUE, .gpu = (const double[]){a, b, c}, .words = #a "," #b "," #c}
#define DEFAULT_VALUES_RULE(name, a, b, c, text) \
    {.origin = CONFIG_VALUE, .gpu = (const double[]){a, b, c}, .rule = config_rule_##name, \
     .words = #a "," #b "," #c text}
#define DEFAULT_DEVICE(on_gpu, on_cpu) \
    {.origin = CONFIG_VALUE, .gpu = NUMBER(on_gpu), .cpu = NUMBER(on_cpu), .words = #on_gpu ", CPU " #on_cpu}
#define DEFAULT_RULE(name, text) \
    {.origin = CONFIG_VALUE, .rule = config_rule_##name, .words = (text)}
#define DEFAULT_VALUE_RULE(name, v, text) \
    {.origin = CONFIG_VALUE, .gpu = NUMBER(v), .rule = config_rule_##name, .words = #v text}
#define DEFAULT_DEVICE_RULE(name, on_gpu, between, on_cpu, text) \
    {.origin = CONFIG_VALUE, .gpu = NUMBER(on_gpu), .cpu = NUMBER(on_cpu), .rule = config_rule_##name, \
     .words = #on_gpu between #on_cpu text}

#define UNGROUPED(group, name, kind, range, value, text) \
    {.key = #name, .offset = offsetof(struct vkn_config, name), \
     TYPE_##kind, RANGE_##range, .fallback = DEFAULT_##value, .help = (text)},
#define GROUPED(group, name, kind, range, value, text) \
    {.key = #group "." #name, .offset = offsetof(struct vkn_config, group.name), \
     TYPE_##kind, RANGE_##range, .fallback = DEFAULT_##value, .help = (text)},
#define GROUP(group, settings) settings(GROUPED, group)
// NOLINTEND(bugprone-macro-parentheses)

const struct config_setting config_settings[] = {
    VKN_SETTINGS_RUN(UNGROUPED, )
    VKN_SETTING_GROUPS(GROUP)
};
/* clang-format on */
const size_t config_setting_count = BASE_COUNT(config_settings);

/* ---- keys ----------------------------------------------------------------------------------- */

/* Keys of earlier versions, which files and command lines may still have. */
static const struct {
    const char *old, *key;
} renamed_keys[] = {
    {"scene.placed", "scene.fixed_transform"},
    {"mlp.checkpoint", "mlp.activation_checkpointing"},
    {"dynamic.rate", "dynamic.learning_rate_factor"},
    {"dynamic.time_slices", "dynamic.time_bins"},
    {"policy.products", "policy.matmul"},
    {"policy.sums", "policy.accumulators"},
    {"policy.grid_sums", "policy.grid_gradients"},
    {"policy.weight_sums", "policy.weight_gradients"},
    {"policy.masters", "policy.master_parameters"},
    {"march.decay", "march.occupancy_decay"},
    {"march.threshold", "march.occupancy_threshold"},
    {"optimizer.average_decay", "optimizer.ema_decay"},
    {"loss_scale.falls", "loss_scale.max_backoffs"},
    {"loss_scale.fall_factor", "loss_scale.rate_cut_factor"},
    {"parallel.virtual", "parallel.ranks_per_device"},
    {"parallel.wire", "parallel.communication_type"},
    {"parallel.pieces", "parallel.buckets"},
};

const struct config_setting *config_find(const char *key)
{
    for (size_t i = 0; i < BASE_COUNT(renamed_keys); i++)
        if (strcmp(renamed_keys[i].old, key) == 0)
            key = renamed_keys[i].key;
    for (size_t i = 0; i < config_setting_count; i++)
        if (strcmp(config_settings[i].key, key) == 0)
            return &config_settings[i];
    return NULL;
}

const char *config_value_name(const struct config_setting *setting, const char *name)
{
    /* Names of values in earlier versions. */
    static const struct {
        const char *key, *old, *name;
    } renamed[] = {
        {"gradient_sums", "float", "f32"},
        {"gradient_sums", "swap", "cas"},
        {"gradient_sums", "half", "f16"},
        {"parallel.mode", "exact", "synchronous"},
    };
    for (size_t i = 0; i < BASE_COUNT(renamed); i++)
        if (strcmp(renamed[i].key, setting->key) == 0 && strcmp(renamed[i].old, name) == 0)
            return renamed[i].name;
    return name;
}

/* ---- headings ------------------------------------------------------------------------------- */

const struct config_heading config_headings[] = {
    {"Length and repeatability", {"steps", "seconds", "seed", "deterministic"}},
    {"Data", {"scene", "refine", "appearance", "progressive", "background"}},
    {"Model", {"model", "field", "grid", "mlp", "dynamic", "glsl"}},
    {"Sampling", {"batch", "march", "proposal"}},
    {"Loss and optimiser", {"loss", "optimizer"}},
    {"Loss scaling", {"loss_scale"}},
    {"Precision", {"precision", "gradient_sums", "matrix", "policy"}},
    {"Several devices", {"parallel"}},
    {"Output", {"eval_every", "eval_views", "save_every", "save_seconds", "keep", "log"}},
};
const size_t config_heading_count = BASE_COUNT(config_headings);

bool config_is_under(const struct config_setting *setting, const struct config_heading *heading)
{
    size_t length = strcspn(setting->key, ".");
    for (size_t i = 0; heading->groups[i]; i++)
        if (strlen(heading->groups[i]) == length &&
            strncmp(heading->groups[i], setting->key, length) == 0)
            return true;
    return false;
}

const char *config_default_text(const struct config_setting *setting)
{
    const struct config_default *fallback = &setting->fallback;
    bool is_constant = fallback->origin == CONFIG_VALUE && fallback->gpu && !fallback->rule;
    if (is_constant && setting->type == CONFIG_ENUM)
        return setting->names[(size_t)fallback->gpu[0]];
    if (is_constant && setting->type == CONFIG_BOOL)
        return "false"; /* the zero of the struct */
    return fallback->words;
}

/* ---- unknown keys ---------------------------------------------------------------------------- */

/* Returns the key nearest to an unknown one, which may lack its group ("learning_rate"). */
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
    const char *nearest = config_nearest(key, names, config_setting_count);
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
