/* Reads the frames of a transforms.json. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "scene/keys.h"

static bool has(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name) != NULL;
}

static vkn_status read_mask(const cJSON *json, const char *where, struct transforms_frame *frame)
{
    const char *mask = NULL;
    BASE_TRY(base_json_string(json, "mask_path", where, false, &mask));
    if (mask == NULL || mask[0] == '\0')
        return VKN_OK;
    frame->mask_name = base_format("%s", mask);
    return frame->mask_name != NULL ? VKN_OK : VKN_ERROR;
}

/* How a depth picture is named: by nerfstudio, with a default of millimetres, or by instant-ngp. */
static const struct depth_key {
    const char *name, *unit;
    double standard_unit; /* 0: the file must give the unit */
} depth_keys[] = {{"depth_file_path", "depth_unit_scale_factor", 1e-3},
                  {"depth_path", "integer_depth_scale", 0}};

/* Reads the units of depth pictures, by depth_keys; 0: pictures of this key are not read. */
static vkn_status read_units(const cJSON *json, const struct transforms *transforms,
                             double units[BASE_COUNT(depth_keys)])
{
    bool is_enabled = true;
    BASE_TRY(base_json_bool(json, "enable_depth_loading", transforms->file, false, &is_enabled));
    for (size_t i = 0; i < BASE_COUNT(depth_keys); i++) {
        units[i] = depth_keys[i].standard_unit;
        BASE_TRY(
            base_json_number(json, depth_keys[i].unit, transforms->file, false, 0, 1e9, &units[i]));
        units[i] = is_enabled ? units[i] : 0;
    }
    return VKN_OK;
}

static vkn_status read_depth(const cJSON *json, const char *where, const double *units,
                             const struct transforms *transforms, struct transforms_frame *frame)
{
    for (size_t i = 0; i < BASE_COUNT(depth_keys) && frame->depth_path == NULL; i++) {
        const char *name = NULL;
        BASE_TRY(base_json_string(json, depth_keys[i].name, where, false, &name));
        if (name == NULL || name[0] == '\0' || units[i] == 0)
            continue;
        char *folder = base_path_folder(transforms->file);
        frame->depth_path = folder != NULL ? base_path_join(folder, name) : NULL;
        frame->depth_unit = units[i];
        free(folder);
        if (frame->depth_path == NULL)
            return VKN_ERROR;
    }
    return VKN_OK;
}

/* Checks instant-ngp's poses at the start and the end of an exposure. Without a rolling shutter,
 * given at the top level or in the frame, the start pose holds for the whole image. */
static vkn_status check_shutter(const cJSON *shared, const cJSON *json, const char *where,
                                const cJSON *start)
{
    const cJSON *end = cJSON_GetObjectItemCaseSensitive(json, "transform_matrix_end");
    const cJSON *own = cJSON_GetObjectItemCaseSensitive(json, "rolling_shutter");
    const cJSON *shutter = own != NULL ? own : shared;
    if (end == NULL || shutter == NULL || keys_is_empty_value(shutter) ||
        cJSON_Compare(start, end, true))
        return VKN_OK;
    return base_json_fail(where, "transform_matrix_end",
                          "differs from the pose at the start: rolling shutters are not supported");
}

void pose_convert_mitsuba(double pose[12])
{
    for (int i = 0; i < 12; i += 4) {
        pose[i] = -pose[i];
        pose[i + 2] = -pose[i + 2];
    }
}

static vkn_status read_pose(const cJSON *shutter, const cJSON *json, const char *where,
                            const struct transforms *transforms, double pose[12])
{
    const char *name =
        has(json, "transform_matrix_start") ? "transform_matrix_start" : "transform_matrix";
    const cJSON *matrix = cJSON_GetObjectItemCaseSensitive(json, name);
    if (matrix == NULL)
        return keys_missing(where, name, transforms);
    BASE_TRY(pose_read(matrix, name, where, pose));
    BASE_TRY(check_shutter(shutter, json, where, matrix));
    if (transforms->mitsuba)
        pose_convert_mitsuba(pose);
    return VKN_OK;
}

/* Reports intrinsics that a frame overrides as unread keys. As in instant-ngp, the frame's values
 * are used, whereas nerfstudio ignores them. */
static vkn_status note_overrides(const struct transforms_lens *own, struct transforms *transforms)
{
    static const char *const names[] = {"fl_x", "fl_y", "cx", "cy", "w", "h"};
    const struct transforms_lens *shared = &transforms->lens;
    const double pairs[][2] = {
        {shared->focal[0], own->focal[0]},   {shared->focal[1], own->focal[1]},
        {shared->center[0], own->center[0]}, {shared->center[1], own->center[1]},
        {shared->size[0], own->size[0]},     {shared->size[1], own->size[1]},
    };
    for (size_t i = 0; i < BASE_COUNT(names) && transforms->measures_space; i++)
        if (pairs[i][0] > 0 && pairs[i][0] != pairs[i][1])
            BASE_TRY(keys_add_unread(names[i],
                                     "differs from the top level of the file; the frame's value is "
                                     "read (nerfstudio reads the top level's)",
                                     transforms));
    return VKN_OK;
}

/* Inputs of read_frame that are common to all frames. */
struct frames_context {
    const cJSON *shutter; /* rolling_shutter of the top level */
    bool needs_images, has_masks;
    double depth_units[BASE_COUNT(depth_keys)];
};

static vkn_status read_frame(const struct frames_context *context, const cJSON *json,
                             const char *where, struct transforms *transforms,
                             struct transforms_frame *frame)
{
    if (!cJSON_IsObject(json))
        return base_json_fail(where, "(frame)", "not an object");
    BASE_TRY(keys_check(json, false, where, transforms));
    const char *file_path = NULL;
    BASE_TRY(base_json_string(json, "file_path", where, false, &file_path));
    if (context->needs_images && file_path == NULL)
        return keys_missing(where, "file_path", transforms);
    if (context->needs_images && file_path[0] == '\0')
        return base_json_fail(where, "file_path", "empty");
    if (file_path != NULL) {
        frame->file_path = base_format("%s", file_path);
        if (frame->file_path == NULL)
            return VKN_ERROR;
    }
    BASE_TRY(lens_read(json, where, &frame->lens));
    BASE_TRY(note_overrides(&frame->lens, transforms));
    BASE_TRY(base_json_number(json, "time", where, false, 0, 1, &frame->time));
    frame->has_sharpness = has(json, "sharpness");
    if (context->has_masks)
        BASE_TRY(read_mask(json, where, frame));
    BASE_TRY(read_depth(json, where, context->depth_units, transforms, frame));
    return read_pose(context->shutter, json, where, transforms, frame->pose);
}

/* Refuses n_frames, with which instant-ngp uses only the first frames by name. */
static vkn_status check_count(const cJSON *json, const struct transforms *transforms, size_t count)
{
    double most = (double)count;
    BASE_TRY(base_json_number(json, "n_frames", transforms->file, false, 0, 1e9, &most));
    return most >= (double)count
               ? VKN_OK
               : base_json_fail(transforms->file, "n_frames",
                                "%g of %zu frames: not supported; remove the others", most, count);
}

vkn_status transforms_read_frames(const struct cJSON *json, bool needs_images,
                                  struct transforms *transforms)
{
    const cJSON *frames = cJSON_GetObjectItemCaseSensitive(json, "frames");
    if (frames == NULL)
        return keys_missing(transforms->file, "frames", transforms);
    if (!cJSON_IsArray(frames))
        return base_json_fail(transforms->file, "frames", "not an array");
    size_t count = (size_t)cJSON_GetArraySize(frames);
    struct frames_context context = {
        .shutter = cJSON_GetObjectItemCaseSensitive(json, "rolling_shutter"),
        .needs_images = needs_images,
        .has_masks = true,
    };
    BASE_TRY(read_units(json, transforms, context.depth_units));
    BASE_TRY(check_count(json, transforms, count));
    BASE_TRY(base_json_bool(json, "has_mask", transforms->file, false, &context.has_masks));
    transforms->frames = base_alloc(count, sizeof(*transforms->frames));
    if (transforms->frames == NULL)
        return VKN_ERROR;

    size_t prefix = strlen(transforms->file) + 32;
    char *where = base_alloc(prefix, 1);
    vkn_status status = where != NULL ? VKN_OK : VKN_ERROR;
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, frames) {
        if (status != VKN_OK)
            break;
        struct transforms_frame *frame = &transforms->frames[transforms->count];
        frame->index = transforms->count++;
        frame->lens = transforms->lens;
        snprintf(where, prefix, "%s: frames[%zu].", transforms->file, frame->index);
        status = read_frame(&context, item, where, transforms, frame);
    }
    free(where);
    return status;
}
