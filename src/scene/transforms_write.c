/* Writes transforms.json files with other poses. The rest of the text stays byte for byte. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "scene/reader.h"

/* ---- the text of a tree ---------------------------------------------------------------------- */

/* These functions walk over a text that has been parsed, so it is valid JSON. */

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static const char *skip_string(const char *at)
{
    for (at++; *at != '"'; at++)
        at += *at == '\\' ? 1 : 0;
    return at + 1;
}

static const char *skip_value(const char *at)
{
    size_t depth = 0;
    do {
        depth += *at == '[' || *at == '{' ? 1 : 0;
        depth -= *at == ']' || *at == '}' ? 1 : 0;
        if (*at == '"')
            at = skip_string(at);
        else if (strchr("[]{},: \t\r\n", *at) != NULL)
            at++;
        else
            at += strcspn(at, "[]{},: \t\r\n");
    } while (depth > 0);
    return at;
}

/* Replaces the values in the text at `at` that are raw in the tree. Returns the value's end. */
static const char *replace_raw(struct write_patch *patch, const cJSON *item, const char *at)
{
    if (cJSON_IsRaw(item)) {
        const char *end = skip_value(at), *value = item->valuestring;
        write_replace(patch, (size_t)(at - patch->data), (size_t)(end - patch->data), value,
                      strlen(value));
        return end;
    }
    if (item->child == NULL)
        return skip_value(at);
    const cJSON *child = NULL;
    cJSON_ArrayForEach (child, item) {
        at = skip_blanks(at + 1);
        if (cJSON_IsObject(item))
            at = skip_blanks(skip_blanks(skip_string(at)) + 1);
        at = skip_blanks(replace_raw(patch, child, at));
    }
    return at + 1;
}

/* Makes an item raw. Takes the text; NULL: out of memory. */
static vkn_status set_raw(cJSON *item, char *text)
{
    if (text == NULL)
        return VKN_ERROR;
    cJSON_Delete(item->child);
    cJSON_free(item->valuestring);
    item->child = NULL;
    item->valuestring = text;
    item->type = (item->type & ~0xff) | cJSON_Raw;
    return VKN_OK;
}

/* ---- poses ----------------------------------------------------------------------------------- */

/* Replaces a matrix of 3 or 4 rows. */
static vkn_status set_matrix(cJSON *matrix, const double pose[12])
{
    static const double last[4] = {0, 0, 0, 1};
    struct base_text text = {0};
    int rows = cJSON_GetArraySize(matrix) == 3 ? 3 : 4;
    for (int row = 0; row < rows; row++) {
        const double *values = row < 3 ? pose + (ptrdiff_t)4 * row : last;
        for (int column = 0; column < 4; column++) {
            char number[40];
            config_print_number(number, values[column], false);
            base_text_add(&text, "%s%s", column > 0 ? ", " : row > 0 ? "], [" : "[[", number);
        }
    }
    base_text_add(&text, "]]");
    if (text.failed) {
        free(text.data);
        return VKN_ERROR;
    }
    return set_raw(matrix, text.data);
}

/* Sets all matrices of a frame: readers differ in which of several they read. */
static vkn_status set_pose(cJSON *frame, const struct transforms *transforms,
                           const double new_pose[12])
{
    static const char *const names[] = {"transform_matrix", "transform_matrix_start",
                                        "transform_matrix_end"};
    double pose[12];
    memcpy(pose, new_pose, sizeof(pose));
    if (transforms->mitsuba)
        pose_convert_mitsuba(pose);
    cJSON *item = NULL;
    cJSON_ArrayForEach (item, frame)
        for (size_t i = 0; i < BASE_COUNT(names); i++)
            if (cJSON_IsArray(item) && strcmp(item->string, names[i]) == 0)
                BASE_TRY(set_matrix(item, pose));
    return VKN_OK;
}

static vkn_status set_poses(cJSON *json, const struct transforms *transforms, uint32_t file,
                            const struct scene_new_pose *poses, size_t count)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "frames"), *item = NULL;
    size_t frames = (size_t)cJSON_GetArraySize(list), next = 0;
    cJSON **items = base_alloc(frames, sizeof(cJSON *));
    vkn_status status = items != NULL ? VKN_OK : VKN_ERROR;
    if (items != NULL)
        cJSON_ArrayForEach (item, list)
            items[next++] = item;
    for (size_t i = 0; i < count && status == VKN_OK; i++) {
        if (poses[i].file != file)
            continue;
        status = write_check_frame(transforms->file, "frames", poses[i].frame, frames);
        if (status == VKN_OK)
            status = set_pose(items[poses[i].frame], transforms, poses[i].pose);
    }
    free(items);
    return status;
}

/* ---- names of files -------------------------------------------------------------------------- */

/* Returns whether a relative path leads out of its folder. */
static bool leads_out(const char *path)
{
    int depth = 0;
    if (path[0] == '/')
        return false;
    while (*path != '\0' && depth >= 0) {
        size_t length = strcspn(path, "/\\");
        if (length == 2 && strncmp(path, "..", 2) == 0)
            depth--;
        else if (length > 0 && !(length == 1 && *path == '.'))
            depth++;
        path += length;
        path += strspn(path, "/\\");
    }
    return depth < 0;
}

/* Makes a name of a file that leads out of the folder absolute. */
static vkn_status set_name(cJSON *item, const char *folder)
{
    if (!cJSON_IsString(item) || !leads_out(item->valuestring))
        return VKN_OK;
    char *path = base_path_join(folder, item->valuestring);
    cJSON *absolute = path != NULL ? cJSON_CreateString(path) : NULL;
    char *text = base_json_print_unformatted(absolute);
    cJSON_Delete(absolute);
    free(path);
    return set_raw(item, text);
}

/* Makes names absolute in all keys that end with "path" and in lists of file names, since the frame
 * of an item of train_filenames is found by its file_path. */
static vkn_status set_names(const cJSON *object, const char *folder)
{
    cJSON *item = NULL, *name = NULL;
    cJSON_ArrayForEach (item, object) {
        if (reader_ends_with(item->string, "path"))
            BASE_TRY(set_name(item, folder));
        if (!reader_ends_with(item->string, "_filenames"))
            continue;
        cJSON_ArrayForEach (name, item)
            BASE_TRY(set_name(name, folder));
    }
    return VKN_OK;
}

static vkn_status set_all_names(const cJSON *json, const char *file)
{
    const cJSON *frame = NULL;
    char *folder = base_path_folder(file),
         *absolute = folder != NULL ? realpath(folder, NULL) : NULL;
    vkn_status status = absolute != NULL
                            ? set_names(json, absolute)
                            : base_fail(VKN_ERROR, "%s: its folder has no absolute path", file);
    cJSON_ArrayForEach (frame, cJSON_GetObjectItemCaseSensitive(json, "frames"))
        if (status == VKN_OK)
            status = set_names(frame, absolute);
    free(absolute);
    free(folder);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static vkn_status add_file(const char *path, uint32_t file, const char *text, size_t size,
                           const struct scene_new_pose *poses, size_t count,
                           struct write_files *copies)
{
    cJSON *json = NULL;
    struct transforms transforms = {0};
    struct write_patch patch = {.data = text};
    BASE_TRY(base_json_parse(path, text, size, &json));
    vkn_status status = transforms_parse(path, json, true, &transforms);
    if (status == VKN_OK)
        status = set_poses(json, &transforms, file, poses, count);
    if (status == VKN_OK)
        status = set_all_names(json, path);
    if (status == VKN_OK) {
        replace_raw(&patch, json, skip_blanks(text));
        status = write_add(copies, write_name(path), &patch, size);
    }
    transforms_free(&transforms);
    cJSON_Delete(json);
    return status;
}

vkn_status transforms_write(const char *path, const struct scene_new_pose *poses, size_t count,
                            struct write_files *copies)
{
    char *paths[SCENE_SPLITS];
    bool single = false;
    vkn_status status = transforms_files(path, paths, &single);
    for (size_t i = 0; i < count && status == VKN_OK; i++)
        if (poses[i].file >= SCENE_SPLITS || paths[poses[i].file] == NULL)
            status = base_fail(VKN_BAD_INPUT, "%s: it has no file %u for a new pose", path,
                               poses[i].file);
    for (unsigned i = 0; i < SCENE_SPLITS && status == VKN_OK; i++) {
        char *text = NULL;
        size_t size = 0;
        if (paths[i] != NULL)
            status = base_text_read(paths[i], TRANSFORMS_MAX_SIZE, &text, &size);
        if (status == VKN_OK && paths[i] != NULL)
            status = add_file(paths[i], i, text, size, poses, count, copies);
        free(text);
    }
    for (unsigned i = 0; i < SCENE_SPLITS; i++)
        free(paths[i]);
    return status;
}
