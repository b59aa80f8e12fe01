/* What is given instead of a scene: photographs or a video, whose poses nobody has found yet. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* alphasort, DIR */
#endif
#include <dirent.h>
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

/* As one of "mp4 mov", in whatever case. */
static bool has_ending(const char *path, const char *endings)
{
    const char *dot = strrchr(path, '.');
    size_t length = dot != NULL && strchr(dot, '/') == NULL ? strlen(dot + 1) : 0;
    for (const char *at = endings; length > 0 && *at != '\0'; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        if (size == length && strncasecmp(at, dot + 1, size) == 0)
            return true;
        at += size;
    }
    return false;
}

static bool holds(const char *folder, const char *name)
{
    char *path = base_path_join(folder, name);
    bool there = path != NULL && base_file_exists(path);
    free(path);
    return there;
}

/* Which of the folders in it is a scene or has photographs; NULL: none. Names the first. */
static vkn_status look_below(const char *folder, const char **what, char **below)
{
    static const char *const scenes[] = {"transforms.json", "transforms_train.json", "poses_bounds.npy",
                                         "sparse/0/cameras.bin", "sparse/0/cameras.txt"};
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    vkn_status status = VKN_OK;
    for (int i = 0; i < count; i++) {
        char *path = entries[i]->d_name[0] != '.' ? base_path_join(folder, entries[i]->d_name) : NULL;
        bool scene = false;
        size_t pictures = 0;
        for (size_t n = 0; path != NULL && *below == NULL && n < BASE_COUNT(scenes); n++)
            scene |= holds(path, scenes[n]);
        if (path != NULL && *below == NULL && !scene && status == VKN_OK)
            status = count_pictures(path, &pictures);
        if (scene || pictures > 0) {
            *what = scene ? "a scene" : "photographs without poses";
            *below = path;
            path = NULL;
        }
        free(path);
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* Why a folder without photographs or a scene is none. */
static vkn_status refuse_other(const char *folder)
{
    char *word = word_of(folder), *below = NULL;
    const char *what = "";
    vkn_status status = word != NULL ? look_below(folder, &what, &below) : VKN_ERROR;
    DIR *stream = opendir(folder);
    bool empty = stream != NULL;
    for (struct dirent *entry; empty && (entry = readdir(stream)) != NULL;)
        empty = entry->d_name[0] == '.';
    if (stream != NULL)
        closedir(stream);
    if (status == VKN_OK && holds(folder, "metrics.jsonl"))
        status = base_fail(VKN_BAD_INPUT,
                           "%s: a run, not a scene; go on with: vknerf train --resume %s, or see it: vknerf view %s", folder,
                           word, word);
    else if (status == VKN_OK && empty)
        status = base_fail(VKN_BAD_INPUT, "%s: no scene in this folder: it is empty", folder);
    else if (status == VKN_OK && below != NULL)
        status = base_fail(VKN_BAD_INPUT, "%s: no scene in this folder, but %s in %s", folder, what, below);
    free(word);
    free(below);
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
        return status == VKN_OK ? refuse_other(folder) : status;
    char what[64];
    snprintf(what, sizeof(what), "%zu photograph%s", count, count == 1 ? "" : "s");
    return say(folder, false, what);
}

/* What a file is that its ending shows to be no scene, and what to do. */
vkn_status photographs_refuse_file(const char *path)
{
    static const struct {
        const char *endings, *what;
    } kinds[] = {
        {"jpg jpeg png heic heif webp tif tiff bmp gif avif dng cr2 nef arw",
         "one picture; a scene is a folder: find the poses of all its pictures with vknerf prepare PICTURES --out SCENE"},
        {"zip tar gz tgz bz2 xz zst 7z rar", "an archive; unpack it, and name the folder"},
        {"ply splat ksplat spz sog obj glb gltf stl usdz las laz",
         "points, splats or a mesh; a scene is a folder of photographs with their poses"},
        {"safetensors", "a checkpoint; go on with it by --resume, or begin with its weights by --init"},
        {"pt pth ckpt msgpack ingp", "another program's model; a scene is a folder of photographs with their poses"},
        {"db", "COLMAP's database; name the folder of its model, with cameras.bin or cameras.txt"},
    };
    if (!base_file_exists(path))
        return VKN_OK;
    if (has_ending(path, "mp4 mov m4v avi mkv webm mpg mts 3gp"))
        return say(path, true, "a video");
    for (size_t i = 0; i < BASE_COUNT(kinds); i++)
        if (has_ending(path, kinds[i].endings))
            return base_fail(VKN_BAD_INPUT, "%s: %s", path, kinds[i].what);
    return VKN_OK;
}
