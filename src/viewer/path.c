/* Answers /api/path: saves a camera path as a file for `vknerf render --path`. */
#define _GNU_SOURCE
#include "viewer/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#define LONGEST_NAME 64

static bool is_name(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && length <= LONGEST_NAME &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
               length;
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

static struct answer cannot_write(const char *file)
{
    char message[VIEWER_MESSAGE];
    snprintf(message, sizeof message, "%s: %s", file, strerror(errno));
    return answer_error(500, message);
}

/* Writes `temporary` and renames it to `file` if `vknerf render --path` would accept it. */
static struct answer save(struct viewer *viewer, const char *name, const char *temporary,
                          const char *file, const char *text)
{
    unlink(temporary);
    if (!write_file(temporary, text))
        return cannot_write(temporary);
    if (vkn_scene_check_path(viewer->scene, temporary) != VKN_OK)
        return refusal(temporary, name);
    if (rename(temporary, file) != 0)
        return cannot_write(file);
    return (struct answer){.code = 200};
}

static struct answer saved_answer(const char *run, const char *file, const char *name)
{
    char *command = NULL, *run_word = vkn_shell_word(run), *file_word = vkn_shell_word(file);
    cJSON *json = cJSON_CreateObject();
    bool made =
        run_word && file_word &&
        asprintf(&command, "vknerf render %s --path %s --out %s", run_word, file_word, name) >= 0;
    if (!made || !answer_add_text(json, "file", file) ||
        !answer_add_text(json, "command", command)) {
        cJSON_Delete(json);
        json = NULL;
    }
    if (made)
        free(command);
    vkn_free(run_word);
    vkn_free(file_word);
    return answer_json(200, json);
}

static struct answer save_in(struct viewer *viewer, const char *folder, const char *name,
                             const char *text)
{
    char *temporary = NULL, *file = NULL;
    struct answer answer = {.code = 500};
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return cannot_write(folder);
    bool named = asprintf(&temporary, "%s/.%s.json.part", folder, name) >= 0;
    temporary = named ? temporary : NULL;
    named = named && asprintf(&file, "%s/%s.json", folder, name) >= 0;
    if (named) {
        answer = save(viewer, name, temporary, file, text);
        if (answer.code == 200)
            answer = saved_answer(viewer->run, file, name);
        else
            unlink(temporary);
        free(file);
    }
    free(temporary);
    return answer;
}

struct answer path_answer(struct viewer *viewer, const char *body)
{
    cJSON *json = body ? cJSON_Parse(body) : NULL;
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(json, "name"),
                *path = cJSON_GetObjectItemCaseSensitive(json, "path");
    char *text = cJSON_IsObject(path) ? cJSON_Print(path) : NULL, *folder = NULL;
    struct answer answer = {.code = 500};
    if (!cJSON_IsString(name) || !text)
        answer = answer_error(400, "the body is not {\"name\": ..., \"path\": {...}}");
    else if (!is_name(name->valuestring))
        answer = answer_error(400, "name: is not 1 to 64 letters, digits, - and _");
    else if (!viewer->folder)
        answer = answer_error(409, "a checkpoint without a run folder has no folder for paths");
    else if (!viewer->scene)
        answer = answer_error(409, "the run's scene was not found, which camera paths need");
    else if (asprintf(&folder, "%s/paths", viewer->folder) >= 0) {
        answer = save_in(viewer, folder, name->valuestring, text);
        free(folder);
    }
    cJSON_free(text);
    cJSON_Delete(json);
    return answer;
}
