/* Reads the raw data that Polycam exports. The README of PolyCam/polyform describes it: images of a
 * capture have a camera file, a depth picture and so on of the same name. Corrected cameras belong
 * to corrected images, which have no distortion. Poses are ARKit's: cameras have x right, y up and
 * z backwards, and the world's y axis points up. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prepare/import.h"

#define CORRECTED "corrected_cameras"

static const char known_keys[] =
    "width height fx fy cx cy t_00 t_01 t_02 t_03 t_10 t_11 t_12 t_13 t_20 t_21 t_22 t_23 "
    "timestamp blur_score neighbors angular_velocity center_depth manual_keyframe";

static vkn_status read_lens(const cJSON *json, const char *path, struct import_lens *lens)
{
    const struct {
        const char *name;
        double least, *value;
    } fields[] = {{"width", 1, &lens->size[0]},   {"height", 1, &lens->size[1]},
                  {"fx", 1e-3, &lens->focal[0]},  {"fy", 1e-3, &lens->focal[1]},
                  {"cx", -1e7, &lens->center[0]}, {"cy", -1e7, &lens->center[1]}};
    for (size_t i = 0; i < BASE_COUNT(fields); i++)
        BASE_TRY(base_json_number(json, fields[i].name, path, true, fields[i].least,
                                  IMPORT_MAX_PIXELS, fields[i].value));
    return VKN_OK;
}

static vkn_status read_pose(const cJSON *json, const char *path, struct import_frame *frame)
{
    double rotation[3][3], position[3];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) {
            char name[8];
            snprintf(name, sizeof(name), "t_%d%d", i, j);
            BASE_TRY(base_json_number(json, name, path, true, -IMPORT_MAX_COORDINATE,
                                      IMPORT_MAX_COORDINATE,
                                      j < 3 ? &rotation[i][j] : &position[i]));
        }
    return import_set_pose(frame, path, "t_00", (const double(*)[3])rotation, position, true);
}

static vkn_status read_camera(struct import *import, const cJSON *json, const char *path,
                              const char *name)
{
    BASE_TRY(import_check_keys(import, json, known_keys, ""));
    struct import_lens *lens = import_add_lens(import, name);
    struct import_frame *frame = lens != NULL ? import_add_frame(import, name) : NULL;
    if (frame == NULL)
        return VKN_ERROR;
    frame->lens = import->lens_count - 1;
    BASE_TRY(read_lens(json, path, lens));
    BASE_TRY(read_pose(json, path, frame));
    BASE_TRY(import_find_picture(import, frame, "keyframes/depth", "png", &frame->depth));
    return import_find_picture(import, frame, "keyframes/confidence", "png", &frame->confidence);
}

static vkn_status read_file(struct import *import, const char *file)
{
    cJSON *json = NULL;
    char *path = base_path_join(import->file, file);
    char *name = base_format("%.*s", (int)(strrchr(file, '.') - file), file);
    vkn_status status =
        path != NULL && name != NULL ? import_read_json(import, path, &json) : VKN_ERROR;
    if (status == VKN_OK)
        status = read_camera(import, json, path, name);
    cJSON_Delete(json);
    free(path);
    free(name);
    return status;
}

vkn_status import_polycam(struct import *import)
{
    import->unit_length = 1; /* ARKit's units are metres */
    import->depth_unit = 1e-3;
    bool is_corrected = strcmp(base_path_name(import->file), CORRECTED) == 0;
    struct dirent **entries = NULL;
    int count = scandir(import->file, &entries, NULL, alphasort);
    vkn_status status =
        count >= 0 ? import_set_pictures(import, is_corrected ? "keyframes/corrected_images"
                                                              : "keyframes/images")
                   : base_fail(VKN_BAD_INPUT, "%s: %s", import->file, strerror(errno));
    if (!is_corrected)
        base_log(BASE_LOG_WARNING,
                 "%s: there are no " CORRECTED ": poses are those of the recording, and the "
                 "pictures' distortion is not known",
                 import->file);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (status == VKN_OK && name[0] != '.' && files_ends_with(name, "json"))
            status = read_file(import, name);
        free(entries[i]);
    }
    free(entries);
    return status;
}
