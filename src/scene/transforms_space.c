/* Reads the training space that a transforms.json names or that its dialect implies. */
#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "scene/reader.h"

/* instant-ngp's space for scenes from Mitsuba. */
#define MITSUBA_SCALE  0.66
#define MITSUBA_OFFSET (0.25 * MITSUBA_SCALE)

static bool has(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name) != NULL;
}

/* ---- dialects -------------------------------------------------------------------------------- */

/* Returns whether the file has keys that only nerfstudio's converters write. */
static bool is_nerfstudio(const cJSON *json, const cJSON *frame)
{
    static const char *const keys[] = {
        "camera_model",       "applied_transform",    "applied_scale",
        "ply_file_path",      "train_filenames",      "val_filenames",
        "test_filenames",     "orientation_override", "auto_scale_poses_override",
        "fisheye_crop_radius"};
    static const char *const frame_keys[] = {"camera_model", "colmap_im_id", "depth_file_path",
                                             "distortion_params"};
    for (size_t i = 0; i < BASE_COUNT(keys); i++)
        if (has(json, keys[i]))
            return true;
    for (size_t i = 0; i < BASE_COUNT(frame_keys); i++)
        if (has(frame, frame_keys[i]))
            return true;
    return false;
}

/* Returns whether the file has the intrinsics that nerfstudio's loader requires, at the top level
 * or in its first frame. Blender's files have camera_angle_x; instant-ngp's have aabb_scale too. */
static bool has_all_intrinsics(const cJSON *json, const cJSON *frame)
{
    static const char *const keys[] = {"fl_x", "fl_y", "cx", "cy", "w", "h"};
    for (size_t i = 0; i < BASE_COUNT(keys); i++)
        if (!has(json, keys[i]) && !has(frame, keys[i]))
            return false;
    return true;
}

/* Returns whether the file has Blender's and D-NeRF's layout: a file for each split with one field
 * of view. The frames may contain anything. */
static bool is_blender(const cJSON *json, const char *file)
{
    bool is_split_file = reader_ends_with(file, "_train.json") ||
                         reader_ends_with(file, "_val.json") ||
                         reader_ends_with(file, "_test.json");
    return is_split_file && has(json, "camera_angle_x");
}

static bool measures_space(const cJSON *json, const char *file)
{
    const cJSON *frames = cJSON_GetObjectItemCaseSensitive(json, "frames");
    const cJSON *frame = cJSON_IsArray(frames) ? frames->child : NULL;
    return is_nerfstudio(json, frame) ||
           (has_all_intrinsics(json, frame) && !is_blender(json, file));
}

/* ---- the space ------------------------------------------------------------------------------- */

static vkn_status read_offset(const cJSON *json, struct transforms *transforms)
{
    const cJSON *offset = cJSON_GetObjectItemCaseSensitive(json, "offset");
    if (offset == NULL)
        return VKN_OK;
    transforms->has_offset = true;
    if (cJSON_IsArray(offset))
        return pose_read_numbers(offset, "offset", transforms->file, 3, transforms->offset);
    /* instant-ngp uses one number for all three axes */
    BASE_TRY(base_json_value(offset, "offset", transforms->file, -1e9, 1e9, transforms->offset));
    transforms->offset[1] = transforms->offset[2] = transforms->offset[0];
    return VKN_OK;
}

/* Reads the box [[xmin, ymin, zmin], [xmax, ymax, zmax]], which instant-ngp maps to the unit cube,
 * overriding scale and offset. */
static vkn_status read_box(const cJSON *json, struct transforms *transforms)
{
    const cJSON *box = cJSON_GetObjectItemCaseSensitive(json, "aabb");
    double low[3] = {0}, high[3] = {0}, side = 0;
    if (box == NULL)
        return VKN_OK;
    if (!cJSON_IsArray(box) || cJSON_GetArraySize(box) != 2)
        return base_json_fail(transforms->file, "aabb", "not two corners of 3 numbers");
    BASE_TRY(pose_read_numbers(box->child, "aabb[0]", transforms->file, 3, low));
    BASE_TRY(pose_read_numbers(box->child->next, "aabb[1]", transforms->file, 3, high));
    for (int i = 0; i < 3; i++)
        side = fmax(side, fabs(high[i] - low[i]));
    if (!(side >= 1e-9))
        return base_json_fail(transforms->file, "aabb", "a box without extent");
    transforms->has_scale = transforms->has_offset = true;
    transforms->scale = 1 / side;
    for (int i = 0; i < 3; i++)
        transforms->offset[i] = 0.5 - 0.5 * (low[i] + high[i]) * transforms->scale;
    return VKN_OK;
}

static vkn_status read_mitsuba(const cJSON *json, struct transforms *transforms)
{
    transforms->mitsuba = has(json, "normal_mts_args");
    BASE_TRY(base_json_bool(json, "from_mitsuba", transforms->file, false, &transforms->mitsuba));
    if (!transforms->mitsuba)
        return VKN_OK;
    transforms->has_scale = transforms->has_offset = true;
    transforms->scale = MITSUBA_SCALE;
    for (int i = 0; i < 3; i++)
        transforms->offset[i] = MITSUBA_OFFSET;
    return VKN_OK;
}

static vkn_status read_aabb_scale(const cJSON *json, struct transforms *transforms)
{
    double aabb_scale = 0;
    BASE_TRY(base_json_number(json, "aabb_scale", transforms->file, false, 1, 128, &aabb_scale));
    transforms->aabb_scale = (uint32_t)aabb_scale;
    if (transforms->aabb_scale != aabb_scale ||
        (transforms->aabb_scale & (transforms->aabb_scale - 1)) != 0)
        return base_json_fail(transforms->file, "aabb_scale",
                              "%g is not a power of two from 1 to 128", aabb_scale);
    return VKN_OK;
}

vkn_status transforms_read_space(const struct cJSON *json, struct transforms *transforms)
{
    transforms->measures_space = measures_space(json, transforms->file);
    BASE_TRY(read_aabb_scale(json, transforms));
    BASE_TRY(read_mitsuba(json, transforms));
    BASE_TRY(
        base_json_number(json, "scale", transforms->file, false, 1e-9, 1e9, &transforms->scale));
    transforms->has_scale = transforms->scale > 0;
    BASE_TRY(base_json_number(json, "unit_length", transforms->file, false, 1e-9, 1e9,
                              &transforms->unit_length));
    BASE_TRY(read_offset(json, transforms));
    return read_box(json, transforms);
}
