/* Reads metadata.json of Record3D's export "EXR + RGB": frame N is rgb/N.jpg and depth/N.exr, whose
 * values are metres. Poses are quaternions x y z w and positions of ARKit's cameras: x right, y up,
 * z backwards. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prepare/import.h"

/* Sets focal lengths and centre from K, which Record3D writes column by column, and programs that
 * process its files row by row. (nerfstudio replaces the centre by the picture's middle.) */
static vkn_status read_matrix(const cJSON *json, const char *file, struct import_lens *lens)
{
    double k[9];
    BASE_TRY(import_read_array(json, "K", file, 9, k));
    bool by_column = k[2] == 0 && k[5] == 0, by_row = k[6] == 0 && k[7] == 0;
    if (!by_column && !by_row)
        return base_json_fail(file, "K", "not a matrix of a camera");
    lens->focal[0] = k[0];
    lens->focal[1] = k[4];
    lens->center[0] = by_column ? k[6] : k[2];
    lens->center[1] = by_column ? k[7] : k[5];
    return VKN_OK;
}

static vkn_status read_lens(const cJSON *json, const char *file, const cJSON *own,
                            struct import_lens *lens)
{
    double c[4];
    BASE_TRY(base_json_number(json, "w", file, true, 1, IMPORT_MAX_PIXELS, &lens->size[0]));
    BASE_TRY(base_json_number(json, "h", file, true, 1, IMPORT_MAX_PIXELS, &lens->size[1]));
    if (own == NULL) {
        BASE_TRY(read_matrix(json, file, lens));
    } else {
        BASE_TRY(import_read_numbers(own, "perFrameIntrinsicCoeffs", file, 4, c));
        memcpy(lens->focal, c, sizeof(lens->focal));
        memcpy(lens->center, c + 2, sizeof(lens->center));
    }
    bool is_positive = lens->focal[0] >= 1e-3 && lens->focal[1] >= 1e-3;
    return is_positive ? VKN_OK
                       : base_json_fail(file, own != NULL ? "perFrameIntrinsicCoeffs" : "K",
                                        "a focal length is not positive");
}

static vkn_status read_pose(const cJSON *item, const char *file, const char *field,
                            struct import_frame *frame)
{
    double v[7];
    BASE_TRY(import_read_numbers(item, field, file, 7, v));
    double length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + v[3] * v[3]);
    if (!(length > 1e-6))
        return base_json_fail(file, field, "the quaternion is zero");
    double x = v[0] / length, y = v[1] / length, z = v[2] / length, w = v[3] / length;
    const double rotation[3][3] = {
        {1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)},
        {2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)},
        {2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)},
    };
    return import_set_pose(frame, file, field, rotation, v + 4, true);
}

static vkn_status read_frame(struct import *import, const cJSON *json, size_t index,
                             const cJSON *pose, const cJSON *own)
{
    char name[24], field[32];
    snprintf(name, sizeof(name), "%zu", index);
    snprintf(field, sizeof(field), "poses[%zu]", index);
    if (own != NULL || import->lens_count == 0) {
        struct import_lens *lens = import_add_lens(import, name);
        if (lens == NULL)
            return VKN_ERROR;
        BASE_TRY(read_lens(json, import->file, own, lens));
    }
    struct import_frame *frame = import_add_frame(import, name);
    if (frame == NULL)
        return VKN_ERROR;
    frame->lens = import->lens_count - 1;
    BASE_TRY(read_pose(pose, import->file, field, frame));
    return import_find_picture(import, frame, "depth", "exr", &frame->depth);
}

static vkn_status read_frames(struct import *import, const cJSON *json)
{
    const cJSON *poses = cJSON_GetObjectItemCaseSensitive(json, "poses"), *pose = NULL;
    const cJSON *lenses = cJSON_GetObjectItemCaseSensitive(json, "perFrameIntrinsicCoeffs");
    const cJSON *own = cJSON_IsArray(lenses) ? lenses->child : NULL;
    size_t index = 0;
    BASE_TRY(import_check_keys(import, json,
                               "w h dw dh fps K poses initPose perFrameIntrinsicCoeffs "
                               "frameTimestamps cameraType",
                               ""));
    if (!cJSON_IsArray(poses))
        return base_json_fail(import->file, "poses", "missing, or not an array");
    if (own != NULL && cJSON_GetArraySize(lenses) != cJSON_GetArraySize(poses))
        return base_json_fail(import->file, "perFrameIntrinsicCoeffs", "%d lenses for %d poses",
                              cJSON_GetArraySize(lenses), cJSON_GetArraySize(poses));
    cJSON_ArrayForEach (pose, poses) {
        BASE_TRY(read_frame(import, json, index++, pose, own));
        own = own != NULL ? own->next : NULL;
    }
    return VKN_OK;
}

vkn_status import_record3d(struct import *import)
{
    cJSON *json = NULL;
    char *folder = base_path_folder(import->file);
    if (folder == NULL)
        return VKN_ERROR;
    free(import->folder);
    import->unit_length = import->depth_unit = 1; /* ARKit's units are metres */
    import->folder = folder;                      /* may be the subfolder EXR_RGBD */
    BASE_TRY(import_set_pictures(import, "rgb"));
    BASE_TRY(import_read_json(import, import->file, &json));
    vkn_status status = read_frames(import, json);
    cJSON_Delete(json);
    return status;
}
