/* Which format a scene is written in, and reading it.
 *
 * When a folder holds several, the first of scene_format_names that is there is taken:
 * transforms.json is what its owner made for training, with splits and a space of its own; a COLMAP
 * model has lenses and points; poses_bounds.npy, mostly made from such a model, has neither.
 */
#include "scene/detect.h"

#include <stdlib.h>
#include <string.h>

#include "scene/capture.h"
#include "scene/colmap.h"

const char *const scene_format_names[SCENE_FORMATS] = {"auto", "transforms", "colmap", "llff"};

static const char *const looked_for[SCENE_FORMATS] = {
    "", "transforms_train.json, transforms.json",
    "cameras.bin or cameras.txt here or in sparse/0, sparse, colmap/sparse/0, ...",
    "poses_bounds.npy"};

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* ---- transforms.json ------------------------------------------------------------------------- */

static vkn_status read_file(const char *path, struct scene_findings *findings,
                            struct transforms *transforms)
{
    BASE_TRY(transforms_read(path, true, transforms));
    return transforms_find_images(transforms, findings);
}

/* The file of one split in `folder`; absent ones stay empty, except for training. Nothing but the
 * three names is ever looked at: a folder may hold other json files, with the test set in them. */
static vkn_status read_split_file(const char *folder, unsigned split,
                                  struct scene_findings *findings, struct transforms *transforms)
{
    char *name = base_format("transforms_%s.json", scene_split_names[split]);
    char *path = name != NULL ? base_path_join(folder, name) : NULL;
    vkn_status status = path != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && (split == SCENE_TRAIN || base_file_exists(path)))
        status = read_file(path, findings, transforms);
    free(path);
    free(name);
    return status;
}

/* All three files when `path` is the first of them. */
static vkn_status read_transforms(const char *path, struct scene_findings *findings,
                                  struct transforms files[SCENE_SPLITS], bool *single)
{
    *single = !ends_with(path, "transforms_train.json");
    if (*single)
        return read_file(path, findings, &files[SCENE_TRAIN]);
    char *folder = base_path_folder(path);
    vkn_status status = folder != NULL ? VKN_OK : VKN_ERROR;
    for (unsigned split = 0; split < SCENE_SPLITS && status == VKN_OK; split++)
        status = read_split_file(folder, split, findings, &files[split]);
    free(folder);
    return status;
}

/* ---- detection ------------------------------------------------------------------------------- */

/* What `folder` holds of a format, in fresh memory: the file to read; NULL when it is not there (or
 * no memory, which sets *status). */
static char *find_one(const char *folder, const char *name, vkn_status *status)
{
    char *path = base_path_join(folder, name);
    if (path == NULL)
        *status = VKN_ERROR;
    if (path != NULL && base_file_exists(path))
        return path;
    free(path);
    return NULL;
}

/* Where capture tools and users leave sparse models. */
static const char *const model_folders[] = {
    "", "sparse/0", "sparse", "colmap/sparse/0", "colmap/sparse", "colmap", "colmap_text"};

static char *find_model(const char *folder, vkn_status *status)
{
    static const char *const names[] = {"cameras.bin", "cameras.txt"};
    for (size_t i = 0; i < 2 * BASE_COUNT(model_folders); i++) {
        char *model = base_path_join(folder, model_folders[i / 2]);
        if (model == NULL)
            *status = VKN_ERROR;
        char *found = model != NULL ? find_one(model, names[i % 2], status) : NULL;
        free(model);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static char *find_format(const char *folder, enum scene_format format, vkn_status *status)
{
    if (format == SCENE_FORMAT_COLMAP)
        return find_model(folder, status);
    if (format == SCENE_FORMAT_LLFF)
        return find_one(folder, "poses_bounds.npy", status);
    char *found = find_one(folder, "transforms_train.json", status);
    return found != NULL ? found : find_one(folder, "transforms.json", status);
}

static vkn_status nothing_found(const char *folder, enum scene_format asked)
{
    if (asked != SCENE_FORMAT_AUTO)
        return base_fail(VKN_BAD_INPUT, "%s: no scene of the format %s in this folder (%s)", folder,
                         scene_format_names[asked], looked_for[asked]);
    return base_fail(VKN_BAD_INPUT, "%s: no scene in this folder (none of %s; %s; %s)", folder,
                     looked_for[SCENE_FORMAT_TRANSFORMS], looked_for[SCENE_FORMAT_COLMAP],
                     looked_for[SCENE_FORMAT_LLFF]);
}

/* In a folder: the file to read, in fresh memory, and its format; NULL and *status on failure. */
static char *detect(const char *folder, enum scene_format asked, enum scene_format *format,
                    vkn_status *status)
{
    for (unsigned i = SCENE_FORMAT_AUTO + 1; i < SCENE_FORMATS; i++) {
        if (asked != SCENE_FORMAT_AUTO && asked != i)
            continue;
        *format = (enum scene_format)i;
        char *file = find_format(folder, *format, status);
        if (file != NULL)
            return file;
    }
    if (*status == VKN_OK)
        *status = nothing_found(folder, asked);
    return NULL;
}

/* The same for a file that was named itself. */
static char *detect_file(const char *path, enum scene_format asked, enum scene_format *format,
                         vkn_status *status)
{
    *format = ends_with(path, ".npy") ? SCENE_FORMAT_LLFF : SCENE_FORMAT_TRANSFORMS;
    bool fits = asked == SCENE_FORMAT_AUTO || asked == *format;
    char *file = fits ? base_format("%s", path) : NULL;
    if (!fits)
        *status = base_fail(VKN_BAD_INPUT, "%s: this file is not that of a scene in the format %s",
                            path, scene_format_names[asked]);
    else if (file == NULL)
        *status = VKN_ERROR;
    return file;
}

vkn_status detect_and_read(struct scene *scene, const struct scene_options *options,
                           struct transforms files[SCENE_SPLITS], bool *single)
{
    vkn_status status = VKN_OK;
    bool in_folder = base_is_folder(options->path);
    char *file =
        (in_folder ? detect : detect_file)(options->path, options->format, &scene->format, &status);
    *single = true;
    if (file == NULL)
        return status;
    if (scene->format == SCENE_FORMAT_LLFF)
        status = llff_read(file, options->downscale, options->findings, &files[SCENE_TRAIN]);
    else if (scene->format == SCENE_FORMAT_COLMAP)
        status = colmap_read(file, options->path, options->downscale, options->findings,
                             &files[SCENE_TRAIN]);
    else
        status = read_transforms(file, options->findings, files, single);
    if (status == VKN_OK)
        status = cloud_read(&files[SCENE_TRAIN]);
    free(file);
    return status;
}
