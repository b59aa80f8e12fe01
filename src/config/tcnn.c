/* Converts the JSON of tiny-cuda-nn and of instant-ngp's configs/nerf, objects with an "otype", to
 * settings. */
#include "config/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cjson/cJSON.h>

#define PATH_SIZE 128

/* A number that corresponds to a setting. It is ignored in objects of a type other than `otype`
 * (NULL: any). */
struct number_row {
    const char *object, *otype, *key, *setting;
};
static const struct number_row numbers[] = {
    {"encoding", "grid", "n_levels", "grid.levels"},
    {"encoding", "grid", "n_features_per_level", "grid.features"},
    {"encoding", "grid", "log2_hashmap_size", "grid.log2_entries"},
    {"encoding", "grid", "base_resolution", "grid.coarsest"},
    {"encoding", "Frequency", "n_frequencies", "mlp.position_octaves"},
    {"dir_encoding", "SphericalHarmonics", "degree", "mlp.sh_degree"},
    {"dir_encoding", "Frequency", "n_frequencies", "mlp.direction_octaves"},
    {"network", NULL, "n_neurons", "mlp.density_width"},
    {"network", NULL, "n_hidden_layers", "mlp.density_layers"},
    {"rgb_network", NULL, "n_neurons", "mlp.color_width"},
    {"rgb_network", NULL, "n_hidden_layers", "mlp.color_layers"},
    {"optimizer", "Ema", "decay", "optimizer.ema_decay"},
    {"optimizer", "ExponentialDecay", "decay_start", "optimizer.decay_start"},
    {"optimizer", "ExponentialDecay", "decay_interval", "optimizer.decay_interval"},
    {"optimizer", "ExponentialDecay", "decay_base", "optimizer.decay_factor"},
    {"optimizer", "Adam", "learning_rate", "optimizer.learning_rate"},
    {"optimizer", "Adam", "beta1", "optimizer.beta1"},
    {"optimizer", "Adam", "beta2", "optimizer.beta2"},
    {"optimizer", "Adam", "epsilon", "optimizer.epsilon"},
    {"optimizer", "Adam", "l2_reg", "optimizer.weight_decay"},
};

/* A name, with the corresponding setting and value; setting NULL: vknerf always behaves so. */
struct name_row {
    const char *object, *key, *name, *setting, *value;
};
static const struct name_row names[] = {
    {"encoding", "otype", "HashGrid", "field.position", "hash"},
    {"encoding", "otype", "Grid", "field.position", "hash"},
    {"encoding", "otype", "Frequency", "field.position", "frequencies"},
    {"encoding", "otype", "Identity", "field.position", "identity"},
    {"encoding", "type", "Hash", NULL, NULL},
    {"encoding", "interpolation", "Linear", NULL, NULL},
    {"dir_encoding", "otype", "SphericalHarmonics", "field.direction", "harmonics"},
    {"dir_encoding", "otype", "Frequency", "field.direction", "frequencies"},
    {"dir_encoding", "otype", "Identity", "field.direction", "identity"},
    {"dir_encoding", "otype", "Empty", "field.direction", "none"},
    {"dir_encoding", "otype", "Composite", NULL, NULL},
    {"network", "otype", "FullyFusedMLP", NULL, NULL},
    {"network", "otype", "CutlassMLP", "model", "layered"},
    {"network", "output_activation", "None", NULL, NULL},
    {"rgb_network", "output_activation", "None", NULL, NULL},
    {"rgb_network", "output_activation", "Sigmoid", NULL, NULL}, /* colours always have a sigmoid */
    {"network", "activation", "ReLU", "field.activation", "relu"},
    {"network", "activation", "LeakyReLU", "field.activation", "leaky_relu"},
    {"network", "activation", "Softplus", "field.activation", "softplus"},
    {"network", "activation", "Squareplus", "field.activation", "squareplus"},
    {"network", "activation", "Sigmoid", "field.activation", "sigmoid"},
    {"network", "activation", "Tanh", "field.activation", "tanh"},
    {"network", "activation", "None", "field.activation", "none"},
    {"loss", "otype", "Huber", "loss.kind", "huber"},
    {"loss", "otype", "L2", "loss.kind", "l2"},
    {"loss", "otype", "L1", "loss.kind", "l1"},
    {"optimizer", "otype", "Ema", NULL, NULL},
    {"optimizer", "otype", "ExponentialDecay", NULL, NULL},
    {"optimizer", "otype", "Adam", "optimizer.kind", "adam"},
};

/* Members that are accepted only with a value that has no effect. */
static const struct {
    const char *object, *key;
    double value;
} ignored[] = {
    {"encoding", "stochastic_interpolation", 0},
    {"encoding", "scale", 1},
    {"encoding", "offset", 0},
    {"dir_encoding", "scale", 1},
    {"dir_encoding", "offset", 0},
    {"dir_encoding", "n_dims_to_encode", 3},
    {"network", "feedback_alignment", 0},
    {"rgb_network", "feedback_alignment", 0},
    {"optimizer", "relative_decay", 0},
    {"optimizer", "absolute_decay", 0},
    {"optimizer", "adabound", 0},
};

struct import {
    const char *source;
    struct vkn_config *config;
    double growth;          /* encoding.per_level_scale; 0: none */
    const char *activation; /* of the first network */
};

/* An object of the tree. */
struct node {
    const char *object; /* name in the tables above */
    char path[PATH_SIZE];
    const char *otype;
};

static vkn_status fail(const struct import *import, const struct node *node, const char *key,
                       const char *problem)
{
    char path[2 * PATH_SIZE];
    snprintf(path, sizeof path, "%s.%s", node->path, key);
    return base_json_fail(import->source, path, "%s", problem);
}

/* Returns a copy of the setting, with its path in the file as the key, for messages. */
static struct config_setting with_path(const struct node *node, const char *key,
                                       const char *setting, char path[2 * PATH_SIZE])
{
    struct config_setting found = *config_find(setting);
    snprintf(path, (size_t)2 * PATH_SIZE, "%s.%s", node->path, key);
    found.key = path;
    return found;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static bool is_grid(const char *otype)
{
    return strcasecmp(otype, "HashGrid") == 0 || strcasecmp(otype, "Grid") == 0;
}

/* Returns whether an object of the type uses the number. A file that changes the type of its
 * parent's object also has numbers of the parent's type. */
static bool applies(const struct number_row *row, const char *otype)
{
    return !row->otype || strcasecmp(row->otype, otype) == 0 ||
           (strcmp(row->otype, "grid") == 0 && is_grid(otype));
}

static vkn_status import_number(const struct import *import, const struct node *node,
                                const struct number_row *row, const cJSON *item)
{
    char path[2 * PATH_SIZE];
    const struct config_setting setting = with_path(node, row->key, row->setting, path);
    if (!applies(row, node->otype))
        return VKN_OK;
    if (!cJSON_IsNumber(item))
        return fail(import, node, row->key, "not a number");
    struct config_number number = {.value = item->valuedouble};
    number.is_whole = number.value >= 0 && number.value <= (double)UINT32_MAX &&
                      floor(number.value) == number.value;
    number.whole = number.is_whole ? (uint64_t)number.value : 0;
    return config_store_number(&setting, import->source, 0, &number, import->config);
}

static vkn_status import_growth(struct import *import, const struct node *node, const cJSON *item)
{
    if (!is_grid(node->otype))
        return VKN_OK;
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 1 && item->valuedouble <= 16))
        return fail(import, node, item->string, "not a number from 1 to 16");
    import->growth = item->valuedouble;
    return VKN_OK;
}

static uint32_t grid_number(const struct import *import, const char *key)
{
    const struct config_setting *setting = config_find(key);
    double value = config_get(setting, 0, import->config);
    return (uint32_t)(value > 0 ? value : setting->fallback.gpu[0]);
}

/* The resolution of the finest level is base_resolution * per_level_scale ^ (n_levels - 1). */
static vkn_status store_finest(const struct import *import)
{
    struct config_setting setting = *config_find("grid.finest");
    uint32_t levels = grid_number(import, "grid.levels");
    double finest = grid_number(import, "grid.coarsest") * pow(import->growth, levels - 1);
    struct config_number number = {.value = round(finest), .is_whole = finest < (double)UINT32_MAX};
    number.whole = number.is_whole ? (uint64_t)number.value : 0;
    setting.key = "encoding.per_level_scale";
    return import->growth > 0
               ? config_store_number(&setting, import->source, 0, &number, import->config)
               : VKN_OK;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* rgb_network accepts the names of network, except for output_activation. */
static bool has_names(const struct name_row *row, const struct node *node, const char *key)
{
    bool shares_names = strcmp(node->object, "rgb_network") == 0 &&
                        strcmp(row->object, "network") == 0 &&
                        strcmp(key, "output_activation") != 0;
    return (shares_names || strcmp(row->object, node->object) == 0) && strcmp(row->key, key) == 0;
}

static vkn_status check_activation(struct import *import, const struct node *node, const char *name)
{
    if (import->activation && strcasecmp(import->activation, name) != 0)
        return fail(import, node, "activation", "both networks have one activation function");
    import->activation = name;
    return VKN_OK;
}

/* Converts a member whose value is a name. *known: the tables have names for the key. */
static vkn_status import_name(struct import *import, const struct node *node, const cJSON *item,
                              bool *known)
{
    struct base_text list = {0};
    const struct name_row *found = NULL;
    for (size_t i = 0; i < BASE_COUNT(names); i++) {
        if (!has_names(&names[i], node, item->string))
            continue;
        base_text_add(&list, "%s%s", list.size ? ", " : "", names[i].name);
        if (cJSON_IsString(item) && strcasecmp(item->valuestring, names[i].name) == 0)
            found = &names[i];
    }
    *known = list.data != NULL;
    vkn_status status = VKN_OK;
    char path[2 * PATH_SIZE];
    snprintf(path, sizeof path, "%s.%s", node->path, item->string);
    if (*known && !found)
        status =
            base_json_fail(import->source, path, "%s is none of %s",
                           cJSON_IsString(item) ? item->valuestring : "a value that is no string",
                           list.failed ? "its names" : list.data);
    free(list.data);
    if (!found || status != VKN_OK)
        return status;
    if (strcmp(item->string, "activation") == 0)
        BASE_TRY(check_activation(import, node, found->name));
    return found->setting ? config_store_text(config_find(found->setting), import->source,
                                              found->value, import->config)
                          : VKN_OK;
}

/* ---- objects -------------------------------------------------------------------------------- */

static vkn_status import_object(struct import *import, const char *object, const char *path,
                                const cJSON *json);

/* Converts a nested object: an optimiser's, or the first element of a composite encoding, which
 * encodes the direction. The field has no other input that the further elements could encode. */
static vkn_status import_nested(struct import *import, const struct node *node, const cJSON *item)
{
    bool is_composite = strcasecmp(node->otype, "Composite") == 0;
    const cJSON *inner = is_composite ? cJSON_GetArrayItem(item, 0) : item;
    char path[PATH_SIZE];
    if (!is_composite && strcmp(node->object, "optimizer") != 0)
        return VKN_OK; /* belongs to the otype of a parent file */
    if (!cJSON_IsObject(inner))
        return fail(import, node, "nested",
                    is_composite ? "not a list of objects" : "not an object");
    if ((size_t)snprintf(path, sizeof path, "%s.nested%s", node->path, is_composite ? "[0]" : "") >=
        sizeof path)
        return fail(import, node, "nested", "too deep");
    return import_object(import, node->object, path, inner);
}

static bool is_ignored(const struct node *node, const cJSON *item, bool *known)
{
    for (size_t i = 0; i < BASE_COUNT(ignored); i++)
        if (strcmp(ignored[i].object, node->object) == 0 &&
            strcmp(ignored[i].key, item->string) == 0) {
            *known = true;
            return cJSON_IsNumber(item) ? item->valuedouble == ignored[i].value
                                        : ignored[i].value == 0 && cJSON_IsFalse(item);
        }
    return false;
}

static vkn_status import_member(struct import *import, const struct node *node, const cJSON *item)
{
    const char *key = item->string;
    bool known = false;
    BASE_TRY(import_name(import, node, item, &known));
    if (known)
        return VKN_OK;
    if (strcmp(node->object, "encoding") == 0 && strcmp(key, "per_level_scale") == 0)
        return import_growth(import, node, item);
    if (strcmp(key, "nested") == 0)
        return import_nested(import, node, item);
    for (size_t i = 0; i < BASE_COUNT(numbers); i++)
        if (strcmp(numbers[i].object, node->object) == 0 && strcmp(numbers[i].key, key) == 0)
            return import_number(import, node, &numbers[i], item);
    if (is_ignored(node, item, &known))
        return VKN_OK;
    return fail(import, node, key,
                known ? "has no counterpart; only the value without effect is accepted"
                      : "has no counterpart; docs/models.md lists the members that have one");
}

static vkn_status import_object(struct import *import, const char *object, const char *path,
                                const cJSON *json)
{
    struct node node = {.object = object};
    const cJSON *otype = cJSON_GetObjectItemCaseSensitive(json, "otype"), *item;
    snprintf(node.path, sizeof node.path, "%s", path);
    if (!cJSON_IsString(otype))
        return fail(import, &node, "otype", "missing");
    node.otype = otype->valuestring;
    cJSON_ArrayForEach (item, json)
        BASE_TRY(import_member(import, &node, item));
    return VKN_OK;
}

/* Converts an object of the file. Disables the skip connection, which tiny-cuda-nn lacks. */
static vkn_status import_root(struct import *import, const char *object, const cJSON *json)
{
    if (strcmp(object, "network") == 0)
        import->config->mlp.skip_layer = (uint32_t)config_find("mlp.skip_layer")->maximum;
    return import_object(import, object, object, json);
}

vkn_status config_import_tcnn(const char *source, cJSON *root, struct vkn_config *config)
{
    static const char *const objects[] = {"encoding",    "dir_encoding", "network",
                                          "rgb_network", "optimizer",    "loss"};
    enum { OBJECTS_OF_FIELD = 4 };
    static const char *const others[] = {"distortion_map", "envmap"};
    struct import import = {.source = source, .config = config};
    bool any_imported = false;
    for (size_t i = 0; i < BASE_COUNT(objects); i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, objects[i]);
        bool is_vknerf =
            i >= OBJECTS_OF_FIELD && !cJSON_HasObjectItem(item, "otype"); /* settings of vknerf */
        if (!cJSON_IsObject(item) || is_vknerf)
            continue;
        BASE_TRY(import_root(&import, objects[i], item));
        cJSON_DeleteItemFromObjectCaseSensitive(root, objects[i]);
        any_imported = true;
    }
    for (size_t i = 0; i < BASE_COUNT(others) && any_imported; i++)
        if (cJSON_HasObjectItem(root, others[i])) {
            base_log(BASE_LOG_WARNING, "%s: %s: has no counterpart and is ignored", source,
                     others[i]);
            cJSON_DeleteItemFromObjectCaseSensitive(root, others[i]);
        }
    return store_finest(&import);
}
