/* What is given instead of a scene: photographs or a video, whose poses nobody has found yet. */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "scene/capture.h"
#include "scene/detect.h"

#define PREPARED "prepare.json" /* of vknerf prepare, see src/prepare/record.c */

/* Without what stands behind the name: slashes, or a video's ending. "scene" for folders without a name. */
static char *scene_beside(const char *path, bool video)
{
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        length--;
    const char *end = path + length, *name = end;
    while (name > path && name[-1] != '/')
        name--;
    const char *dot = video ? strrchr(name, '.') : NULL;
    length = dot != NULL && dot > name ? (size_t)(dot - path) : length;
    bool nameless = name == end || strncmp(name, ".", (size_t)(end - name)) == 0 ||
                    strncmp(name, "..", (size_t)(end - name)) == 0;
    return nameless ? base_format("scene") : base_format("%.*s-scene", (int)length, path);
}

/* A word for a shell, which no command takes for an option. */
static char *word_of(const char *path)
{
    char *apart = base_format("%s%s", path[0] == '-' ? "./" : "", path);
    char *word = apart != NULL ? vkn_shell_word(apart) : NULL;
    free(apart);
    return word;
}

static vkn_status say(const char *path, bool video, const char *what)
{
    char *scene = scene_beside(path, video);
    char *from = word_of(path), *to = scene != NULL ? word_of(scene) : NULL;
    vkn_status status = VKN_ERROR;
    if (from != NULL && to != NULL)
        status = base_fail(VKN_BAD_INPUT, "%s: %s without poses; find them with: vknerf prepare %s --out %s",
                           path, what, from, to);
    free(scene);
    free(from);
    free(to);
    return status;
}

static vkn_status count_pictures(const char *folder, size_t *count)
{
    char **names = NULL;
    *count = 0;
    if (!base_is_folder(folder))
        return VKN_OK;
    vkn_status status = capture_list(folder, &names, count);
    capture_free_names(names, *count);
    return status;
}

vkn_status photographs_refuse(const char *folder)
{
    char *record = base_path_join(folder, PREPARED), *images = base_path_join(folder, "images");
    size_t count = 0;
    vkn_status status = record != NULL && images != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && base_file_exists(record))
        status = base_fail(VKN_BAD_INPUT,
                           "%s: this scene was prepared in part; the same vknerf prepare goes on", folder);
    if (status == VKN_OK)
        status = count_pictures(folder, &count);
    if (status == VKN_OK && count == 0)
        status = count_pictures(images, &count);
    free(record);
    free(images);
    if (status != VKN_OK || count == 0)
        return status;
    char what[64];
    snprintf(what, sizeof(what), "%zu photograph%s", count, count == 1 ? "" : "s");
    return say(folder, false, what);
}

vkn_status photographs_refuse_video(const char *path)
{
    static const char *const endings[] = {".mp4", ".mov",  ".m4v", ".avi", ".mkv",
                                          ".webm", ".mpg", ".mts", ".3gp"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; i < BASE_COUNT(endings); i++)
        if (dot != NULL && strcasecmp(dot, endings[i]) == 0 && base_file_exists(path))
            return say(path, true, "a video");
    return VKN_OK;
}
