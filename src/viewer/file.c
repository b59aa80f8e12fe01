/* Answers /api/file: lists and sends results of tasks. */
#define _GNU_SOURCE
#include "viewer/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#define MOST_FILES 1000 /* in a list */

static const char *const folders[] = {"videos", "exports"};

/* Returns the content type that a browser may open; other files are saved. */
static const char *type_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (dot && strcmp(dot, ".mp4") == 0)
        return "video/mp4";
    if (dot && strcmp(dot, ".gif") == 0)
        return "image/gif";
    return "application/octet-stream";
}

/* Returns the name in the folder if the path is a valid name in a folder of results; else NULL. */
static const char *name_in_folder(const char *path)
{
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        size_t length = strlen(folders[i]);
        if (strncmp(path, folders[i], length) == 0 && path[length] == '/' &&
            !name_problem(path + length + 1))
            return path + length + 1;
    }
    return NULL;
}

/* Opens a regular file of the run's folder; -1: there is none. No link is followed. */
static int open_file(const struct viewer *viewer, const char *path, struct stat *found)
{
    char *file = name_path(viewer, path, "", "");
    int descriptor = file ? open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    free(file);
    if (descriptor < 0 || (fstat(descriptor, found) == 0 && S_ISREG(found->st_mode)))
        return descriptor;
    close(descriptor);
    return -1;
}

/* Appends the name and the size of a file that a page may have. */
static void add_file(const struct viewer *viewer, cJSON *files, const char *folder,
                     const char *name)
{
    struct stat found = {0};
    char path[512];
    bool fits = (size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path;
    int descriptor = fits && !name_problem(name) ? open_file(viewer, path, &found) : -1;
    if (descriptor < 0)
        return;
    close(descriptor);
    cJSON *file = cJSON_CreateObject();
    cJSON_AddStringToObject(file, "name", path);
    cJSON_AddNumberToObject(file, "size", (double)found.st_size);
    if (!cJSON_AddItemToArray(files, file))
        cJSON_Delete(file);
}

static struct answer list_files(const struct viewer *viewer)
{
    cJSON *json = cJSON_CreateObject(), *files = cJSON_AddArrayToObject(json, "files");
    for (size_t i = 0; viewer->folder && i < sizeof folders / sizeof folders[0]; i++) {
        char *path = name_path(viewer, folders[i], "", "");
        DIR *folder = path ? opendir(path) : NULL;
        const struct dirent *entry = NULL;
        while (folder && (entry = readdir(folder)) && cJSON_GetArraySize(files) < MOST_FILES)
            add_file(viewer, files, folders[i], entry->d_name);
        if (folder)
            closedir(folder);
        free(path);
    }
    return answer_json(200, json);
}

struct answer file_answer(const struct viewer *viewer, const char *path)
{
    if (!path)
        return list_files(viewer);
    const char *name = viewer->folder ? name_in_folder(path) : NULL;
    struct stat found = {0};
    int descriptor = name ? open_file(viewer, path, &found) : -1;
    if (descriptor < 0)
        return answer_error(404, "there is no such file");
    struct answer answer = {.code = 200,
                            .type = type_of(name),
                            .size = (size_t)found.st_size,
                            .file = descriptor,
                            .file_name = strdup(name)};
    if (answer.file_name)
        return answer;
    close(descriptor);
    return answer_error(500, "out of memory");
}
