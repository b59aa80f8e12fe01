/* Writes the transforms.json of a converted capture, with its points and depth pictures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prepare/import.h"

#define POINTS     "points.ply"
#define DEPTH      "depth"
#define MOST_BYTES ((size_t)512 << 20) /* of transforms.json */

/* ---- lenses ---------------------------------------------------------------------------------- */

/* Sets the size of the pictures, and lengths in pixels. */
static vkn_status resolve_lens(const struct preparation *preparation, const char *name,
                               struct import_lens *lens)
{
    uint32_t width = 0, height = 0;
    if (!lens->is_relative && lens->size[0] > 0)
        return VKN_OK;
    char *path = base_path_join(preparation->images, name);
    vkn_status status = path != NULL ? scene_image_size(path, &width, &height) : VKN_ERROR;
    free(path);
    lens->size[0] = width;
    lens->size[1] = height;
    double larger = width > height ? width : height;
    for (int axis = 0; axis < 2 && lens->is_relative; axis++) {
        lens->focal[axis] *= larger;
        lens->center[axis] = 0.5 * lens->size[axis] + larger * lens->center[axis];
    }
    lens->is_relative = false;
    return status;
}

static void add_lens(cJSON *object, const struct import_lens *lens)
{
    const struct {
        const char *name;
        double value;
    } coefficients[] = {{"k1", lens->k1}, {"k2", lens->k2}, {"k3", lens->k3},
                        {"k4", lens->k4}, {"p1", lens->p1}, {"p2", lens->p2}};
    cJSON_AddStringToObject(object, "camera_model", lens->model);
    cJSON_AddNumberToObject(object, "w", lens->size[0]);
    cJSON_AddNumberToObject(object, "h", lens->size[1]);
    if (lens->focal[0] > 0) { /* else a full panorama */
        cJSON_AddNumberToObject(object, "fl_x", lens->focal[0]);
        cJSON_AddNumberToObject(object, "fl_y", lens->focal[1]);
        cJSON_AddNumberToObject(object, "cx", lens->center[0]);
        cJSON_AddNumberToObject(object, "cy", lens->center[1]);
    }
    for (size_t i = 0; i < BASE_COUNT(coefficients); i++)
        if (coefficients[i].value != 0)
            cJSON_AddNumberToObject(object, coefficients[i].name, coefficients[i].value);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void add_pose(cJSON *json, const double pose[12])
{
    static const double last[4] = {0, 0, 0, 1};
    cJSON *matrix = cJSON_AddArrayToObject(json, "transform_matrix");
    for (int row = 0; row < 4; row++)
        cJSON_AddItemToArray(
            matrix, cJSON_CreateDoubleArray(row < 3 ? pose + (ptrdiff_t)4 * row : last, 4));
}

/* Links a depth picture or, if there is a confidence picture, copies its reliable depths. */
static vkn_status copy_depth(const struct import *import, const struct import_frame *frame,
                             const char *from, const char *to)
{
    if (frame->confidence == NULL)
        return files_link(from, to);
    char *confidence = base_path_join(import->folder, frame->confidence);
    vkn_status status = confidence != NULL ? scene_filter_depth(from, confidence, to) : VKN_ERROR;
    free(confidence);
    if (status != VKN_BAD_INPUT)
        return status;
    base_log(BASE_LOG_WARNING, "%s; %s keeps its unreliable depths", vkn_last_error(), to);
    return files_link(from, to);
}

/* Adds the depth picture of a frame to the scene, named like the frame's picture. */
static vkn_status add_depth(const struct preparation *preparation, const struct import_frame *frame,
                            const char *picture, cJSON *json)
{
    const struct import *import = preparation->import;
    char *from = base_path_join(import->folder, frame->depth);
    char *name = base_format(DEPTH "/%.*s%s", (int)(strrchr(picture, '.') - picture), picture,
                             strrchr(frame->depth, '.'));
    char *to = name != NULL ? base_path_join(preparation->out, name) : NULL;
    vkn_status status =
        from != NULL && to != NULL ? copy_depth(import, frame, from, to) : VKN_ERROR;
    if (status == VKN_OK)
        cJSON_AddStringToObject(json, "depth_file_path", name);
    free(from);
    free(name);
    free(to);
    return status;
}

static void add_path(cJSON *json, const char *key, const char *folder, const char *name,
                     const char *ending)
{
    char *path = base_format("%s/%s%s", folder, name, ending);
    if (path != NULL)
        cJSON_AddStringToObject(json, key, path);
    free(path);
}

static vkn_status add_frame(struct preparation *preparation, const struct source_picture *picture,
                            cJSON *frames)
{
    struct import *import = preparation->import;
    const struct import_frame *frame = &import->frames[picture->frame - 1];
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToArray(frames, json);
    add_path(json, "file_path", "images", picture->name, "");
    if (preparation->has_masks)
        add_path(json, "mask_path", "masks", picture->name, ".png");
    BASE_TRY(resolve_lens(preparation, picture->name, &import->lenses[frame->lens]));
    if (import->lens_count > 1)
        add_lens(json, &import->lenses[frame->lens]);
    add_pose(json, frame->pose);
    return frame->depth != NULL ? add_depth(preparation, frame, picture->name, json) : VKN_OK;
}

/* ---- points ---------------------------------------------------------------------------------- */

/* Counts the points of a PLY file by its header, for the result. */
static size_t count_points(const char *path)
{
    char head[2048] = "";
    size_t size = 0, count = 0;
    if (base_file_read_beginning(path, head, sizeof(head) - 1, &size, NULL) == VKN_OK) {
        const char *vertex = strstr(head, "element vertex ");
        count = vertex != NULL ? strtoull(vertex + strlen("element vertex "), NULL, 10) : 0;
    }
    return count;
}

static vkn_status write_points(const struct import *import, const char *path)
{
    struct base_text text = {0};
    base_text_add(&text,
                  "ply\nformat ascii 1.0\nelement vertex %zu\nproperty double x\nproperty double "
                  "y\nproperty double z\nproperty uchar red\nproperty uchar green\nproperty uchar "
                  "blue\nend_header\n",
                  import->point_count);
    base_text_add_bytes(&text, import->points.data, import->points.size);
    vkn_status status = text.failed ? VKN_ERROR : files_write(path, text.data, text.size);
    free(text.data);
    return status;
}

static vkn_status add_points(struct preparation *preparation, cJSON *json)
{
    const struct import *import = preparation->import;
    char *path = base_path_join(preparation->out, POINTS);
    vkn_status status = path != NULL ? files_remove(path) : VKN_ERROR;
    if (status == VKN_OK && import->cloud != NULL)
        status = files_link(import->cloud, path);
    else if (status == VKN_OK && import->point_count > 0)
        status = write_points(import, path);
    if (status == VKN_OK && (import->cloud != NULL || import->point_count > 0)) {
        preparation->result.points = count_points(path);
        cJSON_AddStringToObject(json, "ply_file_path", POINTS);
    }
    free(path);
    return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

static vkn_status write_json(const struct preparation *preparation, const cJSON *json)
{
    char *text = base_json_print(json), *path = base_path_join(preparation->out, "transforms.json");
    vkn_status status =
        text != NULL && path != NULL ? files_write(path, text, strlen(text)) : VKN_ERROR;
    free(text);
    free(path);
    return status;
}

/* Makes an empty folder for depth pictures if there are any. */
static vkn_status make_depth(const struct preparation *preparation)
{
    const struct import *import = preparation->import;
    char *folder = base_path_join(preparation->out, DEPTH);
    bool is_needed = false;
    for (size_t i = 0; i < import->frame_count; i++)
        is_needed = is_needed || import->frames[i].depth != NULL;
    vkn_status status = folder != NULL ? files_remove(folder) : VKN_ERROR;
    if (status == VKN_OK && is_needed)
        status = base_make_folder(folder);
    free(folder);
    return status;
}

/* Returns the length of a unit in the scene that is written again; 0: none. */
static double kept_unit(const struct preparation *preparation)
{
    BASE_KEEP_ERROR;
    double unit_length = 0;
    cJSON *json = NULL;
    char *path = base_path_join(preparation->out, "transforms.json");
    if (path && base_file_exists(path) && base_json_read(path, MOST_BYTES, &json) == VKN_OK &&
        base_json_number(json, "unit_length", path, false, 1e-9, 1e9, &unit_length) != VKN_OK)
        unit_length = 0;
    cJSON_Delete(json);
    free(path);
    return unit_length;
}

static vkn_status write_all(struct preparation *preparation, cJSON *json)
{
    struct import *import = preparation->import;
    const struct source *source = &preparation->source;
    cJSON *frames = cJSON_CreateArray();
    vkn_status status = make_depth(preparation);
    for (size_t i = 0; i < source->count && status == VKN_OK; i++) {
        if (source->pictures[i].problem != NULL)
            continue;
        status = prepare_check_stop(preparation);
        if (status == VKN_OK)
            status = add_frame(preparation, &source->pictures[i], frames);
        preparation->result.registered++;
    }
    double unit_length = preparation->params->unit_length;
    unit_length = unit_length > 0 ? unit_length : kept_unit(preparation);
    unit_length = unit_length > 0 ? unit_length : import->unit_length;
    if (unit_length > 0)
        cJSON_AddNumberToObject(json, "unit_length", unit_length);
    if (import->depth_unit > 0)
        cJSON_AddNumberToObject(json, "depth_unit_scale_factor", import->depth_unit);
    if (import->lens_count == 1)
        add_lens(json, &import->lenses[0]);
    if (status == VKN_OK)
        status = add_points(preparation, json);
    cJSON_AddItemToObject(json, "frames", frames);
    return status == VKN_OK ? write_json(preparation, json) : status;
}

vkn_status import_write(struct preparation *preparation)
{
    cJSON *json = cJSON_CreateObject();
    vkn_status status = write_all(preparation, json);
    preparation->result.models = 1;
    cJSON_Delete(json);
    return status;
}
