/* Explains why a path is no scene: for example, it holds photographs or a video without poses. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scene/capture.h"
#include "scene/detect.h"

#define PREPARED      "prepare.json" /* file of vknerf prepare, see src/prepare/record.c */
#define CONVERTED     "heic heif webp tif tiff bmp avif" /* images that vknerf prepare converts */
#define VIDEOS        "mp4 mov m4v avi mkv webm mpg mts 3gp"
#define DEEPEST       3u    /* depth of subfolders that vknerf prepare searches */
#define MOST_SEARCHED 2000u /* most folders that are searched for a scene */

#define UNPOSED       "without poses; find them"
#define UNPOSED_VIDEO "a video " UNPOSED

/* Returns a name for the scene: the path without trailing slashes or a file's extension, plus
 * "-scene"; "scene" for nameless folders. */
static char *name_scene(const char *path, bool is_file)
{
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        length--;
    const char *end = path + length, *name = end;
    while (name > path && name[-1] != '/')
        name--;
    const char *dot = is_file ? strrchr(name, '.') : NULL;
    length = dot != NULL && dot > name ? (size_t)(dot - path) : length;
    bool nameless = name == end || strncmp(name, ".", (size_t)(end - name)) == 0 ||
                    strncmp(name, "..", (size_t)(end - name)) == 0;
    return nameless ? base_format("scene") : base_format("%.*s-scene", (int)length, path);
}

/* Quotes a path for a shell, with ./ before a leading dash so that it is not read as an option. */
static char *quote_path(const char *path)
{
    char *unambiguous = base_format("%s%s", path[0] == '-' ? "./" : "", path);
    char *word = unambiguous != NULL ? vkn_shell_word(unambiguous) : NULL;
    free(unambiguous);
    return word;
}

/* Fails with the command that makes a scene. `is_file`: the scene's name is the file's, without its
 * extension. */
static vkn_status fail_unprepared(const char *path, bool is_file, const char *what)
{
    char *scene = name_scene(path, is_file);
    char *from = quote_path(path), *to = scene != NULL ? quote_path(scene) : NULL;
    vkn_status status = VKN_ERROR;
    if (from != NULL && to != NULL)
        status = base_fail(VKN_BAD_INPUT, "%s: %s with: vknerf prepare %s --out %s", path, what,
                           from, to);
    free(scene);
    free(from);
    free(to);
    return status;
}

/* Returns whether a path has one of the extensions in a list ("mp4 mov"), in any case. */
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

/* Counts the folder's files with one of the extensions. Unless `first` is NULL, sets *first to the
 * path of the first file, in fresh memory. */
static size_t count_endings(const char *folder, const char *endings, char **first)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    size_t found = 0;
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.' && has_ending(entries[i]->d_name, endings) &&
            found++ == 0 && first != NULL)
            *first = base_path_join(folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return found;
}

/* Counts the images that vknerf reads or vknerf prepare converts. */
static vkn_status count_pictures(const char *folder, size_t *count)
{
    char **names = NULL;
    size_t listed = 0;
    *count = 0;
    if (!base_is_folder(folder))
        return VKN_OK;
    vkn_status status = capture_list(folder, &names, &listed);
    for (size_t i = 0; i < listed; i++)
        *count += !has_ending(names[i], CONVERTED);
    capture_free_names(names, listed);
    *count += status == VKN_OK ? count_endings(folder, CONVERTED, NULL) : 0;
    return status;
}

static bool has_file(const char *folder, const char *name)
{
    char *path = base_path_join(folder, name);
    bool exists = path != NULL && access(path, F_OK) == 0; /* inaccessible files count as absent */
    free(path);
    return exists;
}

static bool is_scene(const char *folder)
{
    static const char *const files[] = {"transforms.json", "transforms_train.json",
                                        "poses_bounds.npy", "sparse/0/cameras.bin",
                                        "sparse/0/cameras.txt"};
    bool scene = false;
    for (size_t i = 0; i < BASE_COUNT(files) && !scene; i++)
        scene = has_file(folder, files[i]);
    return scene;
}

/* The first subfolder that is a scene or has photographs. */
struct below {
    const char *what; /* what the subfolder holds, for the message */
    char *path;       /* NULL: there is none */
    size_t left;      /* remaining number of folders to search */
};

static bool is_link(const char *path)
{
    struct stat entry;
    return lstat(path, &entry) == 0 && S_ISLNK(entry.st_mode);
}

static vkn_status search_below(const char *folder, uint32_t depth, struct below *below)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    vkn_status status = VKN_OK;
    for (int i = 0; i < count; i++) {
        char *path =
            entries[i]->d_name[0] != '.' ? base_path_join(folder, entries[i]->d_name) : NULL;
        size_t pictures = 0;
        /* Links may lead anywhere, also in circles. */
        bool searched = path != NULL && below->path == NULL && below->left > 0 &&
                        status == VKN_OK && base_is_folder(path) && !(depth > 1 && is_link(path));
        bool holds_scene = searched && is_scene(path);
        below->left -= searched;
        /* Unreadable folders count as empty. */
        if (searched && !holds_scene && count_pictures(path, &pictures) == VKN_ERROR)
            status = VKN_ERROR;
        if (holds_scene || pictures > 0) {
            below->what = holds_scene ? "a scene" : "photographs without poses";
            below->path = path;
            path = NULL;
        } else if (searched && depth < DEEPEST && status == VKN_OK) {
            status = search_below(path, depth + 1, below);
        }
        free(path);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static vkn_status refuse_run(const char *folder, const char *word)
{
    if (has_file(folder, "checkpoint.safetensors"))
        return base_fail(VKN_BAD_INPUT,
                         "%s: a run, not a scene; go on with: vknerf train --resume %s, or see it: "
                         "vknerf view %s",
                         folder, word, word);
    return base_fail(VKN_BAD_INPUT,
                     "%s: a run that saved nothing, not a scene; how it ended: vknerf info %s",
                     folder, word);
}

static bool is_empty(const char *folder)
{
    DIR *stream = opendir(folder);
    bool empty = stream != NULL;
    for (struct dirent *entry; empty && (entry = readdir(stream)) != NULL;)
        empty = entry->d_name[0] == '.';
    if (stream != NULL)
        closedir(stream);
    return empty;
}

/* Fails with the reason why a folder without photographs is no scene. */
static vkn_status refuse_other(const char *folder)
{
    char *word = quote_path(folder), *video = NULL;
    struct below below = {.left = MOST_SEARCHED};
    vkn_status status = word != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && has_file(folder, "metrics.jsonl"))
        status = refuse_run(folder, word);
    else if (status == VKN_OK && is_empty(folder))
        status = base_fail(VKN_BAD_INPUT, "%s: no scene in this folder: it is empty", folder);
    else if (status == VKN_OK && count_endings(folder, VIDEOS, &video) > 0 && video != NULL)
        status = fail_unprepared(video, true, UNPOSED_VIDEO);
    else if (status == VKN_OK)
        status = search_below(folder, 1, &below);
    if (status == VKN_OK && below.path != NULL)
        status = base_fail(VKN_BAD_INPUT, "%s: no scene in this folder, but %s in %s", folder,
                           below.what, below.path);
    free(word);
    free(video);
    free(below.path);
    return status;
}

/* Fails if the folder is the image folder of a scene. */
static vkn_status refuse_part(const char *folder)
{
    char *parent = base_path_join(folder, ".."),
         *scene = parent != NULL ? realpath(parent, NULL) : NULL;
    vkn_status status = VKN_OK;
    if (scene != NULL && is_scene(scene))
        status = base_fail(VKN_BAD_INPUT, "%s: the photographs of a scene, not the scene: name %s",
                           folder, scene);
    free(parent);
    free(scene);
    return status;
}

/* Fails if the path is a capture of another program, or a folder with one. */
static vkn_status refuse_foreign(const char *path)
{
    enum scene_program program = SCENE_NO_PROGRAM;
    char *file = NULL, what[300];
    BASE_TRY(scene_find_program(path, &program, &file));
    if (file == NULL)
        return VKN_OK;
    snprintf(what, sizeof(what), "a capture of %s (%s), not a scene; convert it",
             scene_program_names[program], base_path_name(file));
    free(file);
    return fail_unprepared(path, !base_is_folder(path), what);
}

vkn_status refuse_folder(const char *folder)
{
    char *record = base_path_join(folder, PREPARED), *images = base_path_join(folder, "images");
    size_t count = 0;
    vkn_status status = record != NULL && images != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && base_file_exists(record))
        status = base_fail(
            VKN_BAD_INPUT,
            "%s: this scene is only partly prepared; run the same vknerf prepare again to continue",
            folder);
    if (status == VKN_OK)
        status = refuse_foreign(folder);
    if (status == VKN_OK)
        status = count_pictures(folder, &count);
    if (status == VKN_OK && count == 0)
        status = count_pictures(images, &count);
    free(record);
    free(images);
    if (status != VKN_OK || count == 0)
        return status == VKN_OK ? refuse_other(folder) : status;
    BASE_TRY(refuse_part(folder));
    char what[64];
    snprintf(what, sizeof(what), "%zu photograph%s " UNPOSED, count, count == 1 ? "" : "s");
    return fail_unprepared(folder, false, what);
}

/* Fails, with advice, if the extension shows that a file is no scene. */
vkn_status refuse_file(const char *path)
{
    static const struct {
        const char *endings, *what;
    } kinds[] = {
        {"jpg jpeg png gif dng cr2 cr3 nef arw orf raf rw2 " CONVERTED,
         "one picture; a scene is a folder: find the poses of all its pictures with vknerf prepare "
         "PICTURES --out SCENE"},
        {"zip tar gz tgz bz2 xz zst 7z rar", "an archive; unpack it, and name the folder"},
        {"ply splat ksplat spz sog obj glb gltf stl usdz las laz",
         "points, splats or a mesh; a scene is a folder of photographs with their poses"},
        {"safetensors",
         "a checkpoint; go on with it by --resume, or begin with its weights by --init"},
        {"yml yaml toml",
         "another program's configuration; a scene is a folder of photographs with their poses"},
        {"pt pth ckpt msgpack ingp",
         "another program's model; a scene is a folder of photographs with their poses"},
        {"db", "COLMAP's database; name the folder of its model, with cameras.bin or cameras.txt"},
    };
    if (!base_file_exists(path))
        return VKN_OK;
    BASE_TRY(refuse_foreign(path));
    if (has_ending(path, VIDEOS))
        return fail_unprepared(path, true, UNPOSED_VIDEO);
    for (size_t i = 0; i < BASE_COUNT(kinds); i++)
        if (has_ending(path, kinds[i].endings))
            return base_fail(VKN_BAD_INPUT, "%s: %s", path, kinds[i].what);
    return VKN_OK;
}
