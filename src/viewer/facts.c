/* Creates the answer of /api/scene: the run, its cameras, and a first view. */
#include "viewer/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

/* ---- the configuration ----------------------------------------------------------------------- */

bool facts_config_is(const vkn_config *config, const char *key, const char *expected)
{
    char *text = NULL;
    bool equal = vkn_config_get(config, key, &text) == VKN_OK && strcmp(text, expected) == 0;
    vkn_free(text);
    return equal;
}

/* Reads comma-separated numbers; keeps `numbers` where the value is "default". */
static void config_numbers(const vkn_config *config, const char *key, double *numbers, size_t count)
{
    char *text = NULL;
    if (vkn_config_get(config, key, &text) == VKN_OK && strcmp(text, "default") != 0) {
        char *at = text;
        for (size_t i = 0; i < count && *at; i++) {
            numbers[i] = strtod(at, &at);
            at += *at == ',';
        }
    }
    vkn_free(text);
}

/* Returns a view of the training space, for runs whose scene is missing. */
static struct vkn_scene_look look_of_config(const vkn_config *config)
{
    struct vkn_scene_look look = {.size = sizeof look, .up = {0, 0, 1}};
    double offset[3] = {0.5, 0.5, 0.5}, side = 1, scale = 1;
    config_numbers(config, "scene.scale", &scale, 1);
    config_numbers(config, "scene.offset", offset, 3);
    config_numbers(config, "scene.aabb_scale", &side, 1);
    config_numbers(config, "scene.unit_length", &look.unit_length, 1);
    for (int i = 0; i < 6; i++)
        look.cube[i] = (0.5 + (i < 3 ? -0.5 : 0.5) * side - offset[i % 3]) / scale;
    for (int i = 0; i < 3; i++)
        look.point[i] = 0.5 * (look.cube[i] + look.cube[i + 3]);
    look.distance = 1.32 / scale;
    return look;
}

/* ---- the cameras ----------------------------------------------------------------------------- */

/* First view: focus point and distance, field of view, size. */
struct look {
    struct vkn_scene_look from;
    double fov;
    uint32_t width, height;
};

/* Computes the first view from the training cameras; keeps *look when there are none. */
static void find_view(const vkn_scene *scene, struct look *look)
{
    size_t count = vkn_scene_view_count(scene, VKN_SPLIT_TRAIN);
    double fov = 0;
    for (size_t i = 0; i < count; i++) {
        struct vkn_camera camera = {.size = sizeof camera};
        if (vkn_scene_camera(scene, VKN_SPLIT_TRAIN, i, &camera) != VKN_OK)
            return;
        double focal = camera.focal_y > 0 ? camera.focal_y : camera.focal_x;
        fov += 2.0 * atan(0.5 * camera.height / focal) * 180.0 / 3.14159265358979323846;
        if (i == 0) {
            look->width = camera.width;
            look->height = camera.height;
        }
    }
    double least = 1e-6 * look->from.distance;
    if (count == 0 || vkn_scene_find_look(scene, &look->from) != VKN_OK)
        return;
    look->fov = fmin(fmax(fov / (double)count, 20), 90);
    look->from.distance = fmax(look->from.distance, least);
}

#define PALETTE_COLORS 17 /* in the answer */

/* ---- JSON ------------------------------------------------------------------------------------ */

static bool add_numbers(cJSON *object, const char *name, const double *numbers, int count)
{
    return cJSON_AddItemToObject(object, name, cJSON_CreateDoubleArray(numbers, count));
}

static bool add_view(cJSON *views, const vkn_scene *scene, enum vkn_split split, const char *name,
                     size_t index)
{
    struct vkn_camera camera = {.size = sizeof camera};
    const char *file = vkn_scene_image_file(scene, split, index),
               *slash = file ? strrchr(file, '/') : NULL;
    cJSON *view = cJSON_CreateObject();
    if (!view || !cJSON_AddItemToArray(views, view) ||
        vkn_scene_camera(scene, split, index, &camera) != VKN_OK)
        return false;
    bool centred = camera.center_x == 0 && camera.center_y == 0;
    return cJSON_AddStringToObject(view, "split", name) &&
           cJSON_AddNumberToObject(view, "index", (double)index) &&
           answer_add_text(view, "name",
                           slash  ? slash + 1
                           : file ? file
                                  : "") &&
           cJSON_AddNumberToObject(view, "width", camera.width) &&
           cJSON_AddNumberToObject(view, "height", camera.height) &&
           cJSON_AddNumberToObject(view, "focal_x", camera.focal_x) &&
           cJSON_AddNumberToObject(view, "focal_y",
                                   camera.focal_y > 0 ? camera.focal_y : camera.focal_x) &&
           cJSON_AddNumberToObject(view, "center_x",
                                   centred ? 0.5 * camera.width : camera.center_x) &&
           cJSON_AddNumberToObject(view, "center_y",
                                   centred ? 0.5 * camera.height : camera.center_y) &&
           cJSON_AddNumberToObject(view, "time", camera.time) &&
           add_numbers(view, "pose", camera.pose, 12);
}

static bool add_views(cJSON *json, const vkn_scene *scene)
{
    static const struct {
        enum vkn_split split;
        const char *name;
    } splits[] = {{VKN_SPLIT_TRAIN, "train"}, {VKN_SPLIT_VAL, "val"}, {VKN_SPLIT_TEST, "test"}};
    cJSON *views = cJSON_AddArrayToObject(json, "views");
    bool added = views != NULL;
    for (size_t s = 0; s < sizeof splits / sizeof splits[0]; s++)
        for (size_t i = 0; added && i < vkn_scene_view_count(scene, splits[s].split); i++)
            added = add_view(views, scene, splits[s].split, splits[s].name, i);
    return added;
}

static bool add_maps(cJSON *json, const char *model)
{
    const char *const maps[] = {"rgb", "depth", "normal", "opacity"};
    int count = 0;
    const char *available[4];
    for (int i = 0; i < 4; i++)
        if (i != MAP_NORMAL || strcmp(model, "glsl") != 0)
            available[count++] = maps[i];
    return cJSON_AddItemToObject(json, "maps", cJSON_CreateStringArray(available, count));
}

/* Adds colours of the palettes, as CSS writes them, from the far to the near end. */
static bool add_palettes(cJSON *json)
{
    cJSON *palettes = cJSON_AddObjectToObject(json, "palettes");
    bool added = palettes != NULL;
    for (int i = 0; i < PALETTES && added; i++) {
        cJSON *colors = cJSON_AddArrayToObject(palettes, picture_palettes[i]);
        for (int k = 0; k < PALETTE_COLORS && added; k++) {
            double rgb[3];
            char text[8];
            picture_palette((enum viewer_palette)i, (double)k / (PALETTE_COLORS - 1), rgb);
            snprintf(text, sizeof text, "#%02lx%02lx%02lx", lround(255 * rgb[0]) & 255,
                     lround(255 * rgb[1]) & 255, lround(255 * rgb[2]) & 255);
            added = cJSON_AddItemToArray(colors, cJSON_CreateString(text));
        }
    }
    return added;
}

static char *write_facts(const struct viewer *viewer, const char *model, const struct look *look)
{
    cJSON *json = cJSON_CreateObject();
    char *run_word = vkn_shell_word(viewer->run);
    static const char *const backgrounds[] = {"default", "", "white", "black"};
    bool complete =
        json && run_word && answer_add_text(json, "run", viewer->run) &&
        answer_add_text(json, "run_word", run_word) &&
        cJSON_AddStringToObject(json, "mode", viewer->renderers.trainer ? "train" : "view") &&
        answer_add_text(json, "model", model) &&
        cJSON_AddBoolToObject(json, "dynamic", strcmp(model, "dynamic") == 0) &&
        add_maps(json, model) && add_palettes(json) &&
        cJSON_AddNumberToObject(json, "unit_length", look->from.unit_length) &&
        add_numbers(json, "up", look->from.up, 3) &&
        add_numbers(json, "look_at", look->from.point, 3) &&
        cJSON_AddNumberToObject(json, "distance", look->from.distance) &&
        add_numbers(json, "box", look->from.cube, 6) &&
        cJSON_AddNumberToObject(json, "fov", look->fov) &&
        cJSON_AddNumberToObject(json, "width", look->width) &&
        cJSON_AddNumberToObject(json, "height", look->height) &&
        cJSON_AddStringToObject(json, "background", backgrounds[viewer->background]) &&
        add_views(json, viewer->scene);
    char *text = complete ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_Delete(json);
    free(run_word);
    return text;
}

/* ---- the scene ------------------------------------------------------------------------------- */

/* Opens the scene. A run whose scene cannot be opened is shown with a message. */
static void open_scene(struct viewer *viewer, const char *path, enum vkn_scene_format format,
                       const vkn_config *config)
{
    static const char *const formats[] = {"auto", VKN_SCENE_FORMATS(VKN_NAME)};
    vkn_config *scene_config = NULL;
    vkn_status status = vkn_config_copy(config, &scene_config);
    if (status == VKN_OK && format != VKN_SCENE_AUTO)
        status = vkn_config_set(scene_config, NULL, "scene.format", formats[format]);
    if (status == VKN_OK)
        status = vkn_scene_open(path, scene_config, &viewer->scene);
    if (status != VKN_OK)
        viewer_set_message(
            viewer,
            "no cameras and photographs: %s; if the scene has moved, pass its folder "
            "by --scene",
            vkn_last_error());
    vkn_config_destroy(&scene_config);
}

vkn_status facts_find(struct viewer *viewer, const char *run, const char *scene,
                      enum vkn_scene_format format, const vkn_config *config)
{
    char *model = NULL;
    struct look look = {.from = look_of_config(config), .fov = 45, .width = 800, .height = 800};
    open_scene(viewer, scene, format, config);
    find_view(viewer->scene, &look);
    viewer->focus_distance = look.from.distance;
    viewer->background = facts_config_is(config, "scene.sky", "on")       ? VKN_BACKGROUND_DEFAULT
                         : facts_config_is(config, "background", "black") ? VKN_BACKGROUND_BLACK
                                                                          : VKN_BACKGROUND_WHITE;
    viewer->run = strdup(run);
    vkn_status status = viewer->run ? vkn_config_get(config, "model", &model) : VKN_ERROR;
    char *facts = status == VKN_OK ? write_facts(viewer, model, &look) : NULL;
    vkn_free(model);
    pthread_mutex_lock(&viewer->lock);
    viewer->facts = facts;
    pthread_mutex_unlock(&viewer->lock);
    return facts ? VKN_OK : VKN_ERROR;
}
