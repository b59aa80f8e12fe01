/* Answers /api/path: saves, lists, reads, converts and deletes camera paths, files for `vknerf
 * render --path` in the folder `paths` of the run. */
#define _GNU_SOURCE
#include "viewer/internal.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#define FOLDER     "paths"
#define EXTENSION  ".json"
#define MOST_FILES 1000              /* in the list */
#define MOST_BYTES (64u << 20)       /* of a path that is read */
#define UPLOAD     FOLDER "/.upload" /* a path that is converted; no name begins with a dot */

/* ---- files ----------------------------------------------------------------------------------- */

static struct answer cannot(const char *file)
{
    char message[VIEWER_MESSAGE];
    snprintf(message, sizeof message, "%s: %s", file, strerror(errno));
    return answer_error(errno == ENOENT ? 404 : 500, message);
}

static bool write_file(const char *file, const char *text)
{
    FILE *stream = fopen(file, "wxe");
    if (!stream)
        return false;
    bool written = fputs(text, stream) >= 0 && fputc('\n', stream) != EOF;
    written = fflush(stream) == 0 && fsync(fileno(stream)) == 0 && written;
    return fclose(stream) == 0 && written;
}

/* Reads a JSON file; NULL: `answer` says why not. */
static cJSON *read_json(const char *file, struct answer *answer)
{
    FILE *stream = fopen(file, "re");
    struct stat found;
    if (!stream || fstat(fileno(stream), &found) != 0) {
        *answer = cannot(file);
        if (stream)
            fclose(stream);
        return NULL;
    }
    size_t size = found.st_size < (off_t)MOST_BYTES ? (size_t)found.st_size : 0;
    char *text = malloc(size + 1);
    cJSON *json = NULL;
    if (text) {
        size = fread(text, 1, size, stream);
        text[size] = 0;
        json = cJSON_Parse(text);
    }
    free(text);
    fclose(stream);
    if (!json)
        *answer = answer_error(400, "the file is no camera path: it is not JSON");
    return json;
}

/* Returns the parser's error, with the path's name instead of the temporary file's. */
static struct answer refusal(const char *temporary, const char *name)
{
    char message[VIEWER_MESSAGE];
    const char *error = vkn_last_error(), *found = strstr(error, temporary);
    if (found)
        snprintf(message, sizeof message, "%s%s", name, found + strlen(temporary));
    else
        snprintf(message, sizeof message, "%s", error);
    return answer_error(400, message);
}

/* ---- saving and deleting --------------------------------------------------------------------- */

static struct answer saved_answer(const struct viewer *viewer, const char *file, const char *name)
{
    char *command = NULL, *run_word = vkn_shell_word(viewer->run),
         *file_word = vkn_shell_word(file), *name_word = vkn_shell_word(name);
    cJSON *json = cJSON_CreateObject();
    bool made = run_word && file_word && name_word &&
                asprintf(&command, "vknerf render %s --path %s --out %s", run_word, file_word,
                         name_word) >= 0;
    if (!made || !answer_add_text(json, "file", file) ||
        !answer_add_text(json, "command", command)) {
        cJSON_Delete(json);
        json = NULL;
    }
    if (made)
        free(command);
    vkn_free(run_word);
    vkn_free(file_word);
    vkn_free(name_word);
    return answer_json(200, json);
}

/* Writes `temporary` and renames it to `file` if `vknerf render --path` would accept it. */
static struct answer replace(const struct viewer *viewer, const char *name, const char *temporary,
                             const char *file, const char *text)
{
    struct answer answer;
    unlink(temporary);
    if (!write_file(temporary, text))
        answer = cannot(temporary);
    else if (vkn_scene_check_path(viewer->scene, temporary) != VKN_OK)
        answer = refusal(temporary, name);
    else if (rename(temporary, file) != 0)
        answer = cannot(file);
    else
        return saved_answer(viewer, file, name);
    unlink(temporary);
    return answer;
}

/* Saves a path; status 409 if there is one with the name and `overwrites` is not set. */
static struct answer save(const struct viewer *viewer, const char *name, bool overwrites,
                          const char *text)
{
    char *temporary = name_path(viewer, FOLDER "/.", "", ""), *part = NULL,
         *file = name_path(viewer, FOLDER, name, EXTENSION);
    struct answer answer = {.code = 500};
    if (temporary && file && asprintf(&part, "%s%s.json.part", temporary, name) >= 0) {
        answer = !overwrites && access(file, F_OK) == 0
                     ? answer_error(409, "a path with this name exists")
                     : replace(viewer, name, part, file, text);
        free(part);
    }
    free(temporary);
    free(file);
    return answer;
}

static struct answer delete_file(const struct viewer *viewer, const char *name)
{
    char *file = name_path(viewer, FOLDER, name, EXTENSION);
    struct answer answer = {.code = 500};
    if (file && unlink(file) == 0)
        answer = answer_text(200, "application/json", strdup("{\"ok\": true}"));
    else if (file)
        answer = cannot(file);
    free(file);
    return answer;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Describes a path of another program by its cameras: pose, vertical field of view, time. */
static struct answer describe_cameras(const struct vkn_camera_path *path)
{
    cJSON *json = cJSON_CreateObject(), *cameras = cJSON_AddArrayToObject(json, "cameras");
    cJSON_AddNumberToObject(json, "fps", path->fps);
    cJSON_AddNumberToObject(json, "width", path->cameras[0].width);
    cJSON_AddNumberToObject(json, "height", path->cameras[0].height);
    for (size_t i = 0; i < path->count && cameras; i++) {
        const struct vkn_camera *camera = &path->cameras[i];
        double values[14];
        memcpy(values, camera->pose, sizeof camera->pose);
        double focal = camera->focal_y > 0 ? camera->focal_y : camera->focal_x;
        values[12] = 2 * atan(0.5 * camera->height / focal) * 180 / 3.14159265358979323846;
        values[13] = camera->time;
        cJSON_AddItemToArray(cameras, cJSON_CreateDoubleArray(values, 14));
    }
    return answer_json(200, json);
}

/* Converts a file that `vknerf render --path` accepts. */
static struct answer convert(const struct viewer *viewer, const char *file, const char *name)
{
    struct vkn_camera_path path = {.size = sizeof path};
    if (vkn_scene_read_path(viewer->scene, file, NULL, &path) != VKN_OK)
        return refusal(file, name);
    const struct answer answer =
        path.cameras[0].lens == VKN_LENS_PERSPECTIVE
            ? describe_cameras(&path)
            : answer_error(400, "the path's lens is not perspective, which this page needs");
    vkn_free(path.cameras);
    return answer;
}

/* Converts the text of a file that a page has loaded. */
static struct answer convert_text(const struct viewer *viewer, const char *text)
{
    char *file = name_path(viewer, UPLOAD, "", "");
    struct answer answer = {.code = 500};
    if (file) {
        unlink(file);
        answer = write_file(file, text) ? convert(viewer, file, "the file") : cannot(file);
        unlink(file);
    }
    free(file);
    return answer;
}

/* Returns a path of this program as it is, and of another program by its cameras. */
static struct answer read_path(const struct viewer *viewer, const char *name)
{
    char *file = name_path(viewer, FOLDER, name, EXTENSION);
    struct answer answer = {.code = 500};
    cJSON *json = file ? read_json(file, &answer) : NULL;
    const cJSON *keys = cJSON_GetObjectItemCaseSensitive(json, "keyframes");
    if (json && cJSON_HasObjectItem(cJSON_GetArrayItem(keys, 0), "position")) {
        cJSON *whole = cJSON_CreateObject();
        cJSON_AddItemToObject(whole, "path", json);
        answer = answer_json(200, whole);
    } else if (json) {
        cJSON_Delete(json);
        answer = viewer->scene ? convert(viewer, file, name)
                               : answer_error(409, "the run's scene was not found");
    }
    free(file);
    return answer;
}

static bool is_path(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name), end = strlen(EXTENSION);
    return entry->d_name[0] != '.' && length > end &&
           strcmp(entry->d_name + length - end, EXTENSION) == 0;
}

static struct answer list_paths(const struct viewer *viewer)
{
    char *folder = name_path(viewer, FOLDER, "", "");
    DIR *files = folder ? opendir(folder) : NULL;
    cJSON *json = cJSON_CreateObject(), *names = cJSON_AddArrayToObject(json, "paths");
    const struct dirent *entry = NULL;
    while (files && names && (entry = readdir(files)) && cJSON_GetArraySize(names) < MOST_FILES) {
        char name[256];
        if (!is_path(entry))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(strlen(entry->d_name) - strlen(EXTENSION)),
                 entry->d_name);
        if (!name_problem(name))
            cJSON_AddItemToArray(names, cJSON_CreateString(name));
    }
    if (files)
        closedir(files);
    free(folder);
    return answer_json(200, json);
}

struct answer path_read_answer(struct viewer *viewer, const char *name)
{
    const char *problem = name ? name_problem(name) : NULL;
    if (!viewer->folder)
        return answer_error(409, "a checkpoint without a run folder has no folder for paths");
    if (problem)
        return answer_error(400, problem);
    return name ? read_path(viewer, name) : list_paths(viewer);
}

/* ---- requests that change something ---------------------------------------------------------- */

static bool is_set(const cJSON *json, const char *name)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, name));
}

static struct answer change(const struct viewer *viewer, const cJSON *json)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(json, "name"),
                *path = cJSON_GetObjectItemCaseSensitive(json, "path");
    const char *problem = cJSON_IsString(name) ? name_problem(name->valuestring) : NULL;
    char *folder = name_path(viewer, FOLDER, "", "");
    bool ready = folder && (mkdir(folder, 0777) == 0 || errno == EEXIST);
    struct answer failed = ready    ? (struct answer){0}
                           : folder ? cannot(folder)
                                    : answer_error(500, "out of memory");
    free(folder);
    if (!ready)
        return failed;
    if (problem)
        return answer_error(400, problem);
    if (cJSON_IsString(name) && is_set(json, "delete"))
        return delete_file(viewer, name->valuestring);
    bool converts = is_set(json, "convert");
    if (!cJSON_IsObject(path) || (!converts && !cJSON_IsString(name)))
        return answer_error(400, "the body is not {\"name\": ..., \"path\": {...}}");
    if (!viewer->scene)
        return answer_error(409, "the run's scene was not found, which camera paths need");
    char *text = cJSON_Print(path);
    const struct answer answer =
        !text      ? (struct answer){.code = 500}
        : converts ? convert_text(viewer, text)
                   : save(viewer, name->valuestring, is_set(json, "overwrite"), text);
    cJSON_free(text);
    return answer;
}

struct answer path_answer(struct viewer *viewer, const char *body)
{
    cJSON *json = body ? cJSON_Parse(body) : NULL;
    const struct answer answer =
        viewer->folder
            ? change(viewer, json)
            : answer_error(409, "a checkpoint without a run folder has no folder for paths");
    cJSON_Delete(json);
    return answer;
}
