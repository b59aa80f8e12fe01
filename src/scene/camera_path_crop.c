/* Reads the crop of a nerfstudio camera path (get_crop_from_json in nerfstudio's
 * scripts/render.py): a box outside of which nothing is rendered. */
#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "scene/camera_path.h"

#define DEGREE (3.14159265358979323846 / 180)

struct crop {
    double center[3], size[3], rotation[3]; /* roll, pitch and yaw in radians */
    double color[3];                        /* 0 to 255; color[0] < 0: not given */
};

static vkn_status read_color(const cJSON *json, const char *where, double color[3])
{
    static const char *const names[3] = {"r", "g", "b"};
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(json, "crop_bg_color");
    char *prefix = base_format("%scrop_bg_color.", where);
    vkn_status status = prefix != NULL ? VKN_OK : VKN_ERROR;
    for (int i = 0; i < 3 && object != NULL && status == VKN_OK; i++)
        status = base_json_number(object, names[i], prefix, true, 0, 255, &color[i]);
    free(prefix);
    return status;
}

static vkn_status read_values(const cJSON *json, const char *where, struct crop *crop)
{
    if (!cJSON_IsObject(json))
        return base_json_fail(where, "(crop)", "not an object");
    BASE_TRY(camera_path_numbers(json, "crop_center", where, true, 3, crop->center));
    BASE_TRY(camera_path_numbers(json, "crop_scale", where, true, 3, crop->size));
    BASE_TRY(camera_path_numbers(json, "crop_rot", where, false, 3, crop->rotation));
    for (int i = 0; i < 3; i++)
        if (!(crop->size[i] > 0))
            return base_json_fail(where, "crop_scale", "%g is not positive", crop->size[i]);
    return read_color(json, where, crop->color);
}

/* Converts the box to the dataset's space. */
static struct scene_box convert_box(const struct crop *crop, const struct camera_path_space *space)
{
    struct scene_box box = {0};
    double own[3][3], axes[3][3] = {{0}};
    for (int i = 0; i < 3; i++)
        box.rotation[i] = crop->rotation[i] / DEGREE;
    scene_box_axes(&box, own);
    for (int i = 0; i < 3; i++) {
        const double *row = space->pose + (ptrdiff_t)4 * i;
        double center = row[3], half = 0.5 * space->factor * crop->size[i];
        for (int k = 0; k < 3; k++) {
            center += row[k] * space->factor * crop->center[k];
            for (int j = 0; j < 3; j++)
                axes[k][i] += row[j] * own[k][j];
        }
        box.low[i] = center - half;
        box.high[i] = center + half;
    }
    scene_box_set_axes((const double(*)[3])axes, &box);
    return box;
}

/* Sets the background to black or white. Other colours cannot be rendered and are ignored. */
static void choose_background(const char *file, const double color[3],
                              struct scene_camera_path *camera_path)
{
    bool black = true, white = true;
    for (int i = 0; i < 3; i++) {
        black = black && color[i] <= 0;
        white = white && color[i] >= 255;
    }
    if (black || white)
        camera_path->background = white ? VKN_BACKGROUND_WHITE : VKN_BACKGROUND_BLACK;
    else
        base_log(BASE_LOG_WARNING,
                 "%s: crop.crop_bg_color: %g %g %g is neither black nor white and is ignored; "
                 "--background sets the background",
                 file, color[0], color[1], color[2]);
}

vkn_status camera_path_read_crop(const char *file, const struct cJSON *json,
                                 const struct camera_path_space *space,
                                 struct scene_camera_path *camera_path)
{
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(json, "crop");
    struct crop crop = {.color = {-1}};
    if (object == NULL || cJSON_IsNull(object))
        return VKN_OK;
    char *where = base_format("%s: crop.", file);
    if (where == NULL)
        return VKN_ERROR;
    vkn_status status = read_values(object, where, &crop);
    if (status == VKN_OK)
        camera_path->crop = convert_box(&crop, space);
    if (status == VKN_OK && crop.color[0] >= 0)
        choose_background(file, crop.color, camera_path);
    free(where);
    return status;
}

vkn_status camera_path_numbers(const struct cJSON *json, const char *name, const char *where,
                               bool required, int count, double *values)
{
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(json, name);
    if (array == NULL)
        return required ? base_json_fail(where, name, "missing") : VKN_OK;
    return pose_read_numbers(array, name, where, count, values);
}
