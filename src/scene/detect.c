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
    "cameras.bin or cameras.txt here or in sparse/0, sparse/1, ..., sparse, colmap/sparse/0, ...",
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

/* folder/name in fresh memory; NULL when it is not there (or no memory, which sets *status). */
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

/* What is in a folder. */
struct found {
    enum scene_format format;
    char *file;   /* to read; NULL: nothing */
    char *others; /* of colmap_find */
};

static vkn_status find_format(const char *folder, enum scene_format format, struct found *found)
{
    vkn_status status = VKN_OK;
    found->format = format;
    if (format == SCENE_FORMAT_COLMAP)
        return colmap_find(folder, &found->file, &found->others);
    found->file =
        find_one(folder, format == SCENE_FORMAT_LLFF ? "poses_bounds.npy" : "transforms_train.json",
                 &status);
    if (found->file == NULL && format == SCENE_FORMAT_TRANSFORMS && status == VKN_OK)
        found->file = find_one(folder, "transforms.json", &status);
    return status;
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

static vkn_status detect(const char *folder, enum scene_format asked, struct found *found)
{
    for (unsigned i = SCENE_FORMAT_AUTO + 1; i < SCENE_FORMATS && found->file == NULL; i++)
        if (asked == SCENE_FORMAT_AUTO || asked == i)
            BASE_TRY(find_format(folder, (enum scene_format)i, found));
    return found->file != NULL ? VKN_OK : nothing_found(folder, asked);
}

/* The format of a file that was named itself. */
static vkn_status detect_file(const char *path, enum scene_format asked, struct found *found)
{
    found->format = ends_with(path, ".npy") ? SCENE_FORMAT_LLFF : SCENE_FORMAT_TRANSFORMS;
    if (asked != SCENE_FORMAT_AUTO && asked != found->format)
        return base_fail(VKN_BAD_INPUT, "%s: this file is not that of a scene in the format %s",
                         path, scene_format_names[asked]);
    found->file = base_format("%s", path);
    return found->file != NULL ? VKN_OK : VKN_ERROR;
}

/* For those who look the scene over, else a warning. */
static void tell_others(const char *path, struct found *found, struct scene_findings *findings)
{
    if (found->others == NULL)
        return;
    if (findings == NULL) {
        base_log(BASE_LOG_WARNING, "%s: several sparse models: %s", path, found->others);
        return;
    }
    free(findings->others);
    findings->others = found->others;
    found->others = NULL;
}

static vkn_status read_found(const struct found *found, const struct scene_options *options,
                             struct transforms files[SCENE_SPLITS], bool *single)
{
    struct transforms *train = &files[SCENE_TRAIN];
    if (found->format == SCENE_FORMAT_LLFF)
        BASE_TRY(llff_read(found->file, options->downscale, options->findings, train));
    else if (found->format == SCENE_FORMAT_COLMAP)
        BASE_TRY(
            colmap_read(found->file, options->path, options->downscale, options->findings, train));
    else
        BASE_TRY(read_transforms(found->file, options->findings, files, single));
    return cloud_read(train);
}

vkn_status detect_and_read(struct scene *scene, const struct scene_options *options,
                           struct transforms files[SCENE_SPLITS], bool *single)
{
    struct found found = {0};
    *single = true;
    vkn_status status = (base_is_folder(options->path) ? detect : detect_file)(
        options->path, options->format, &found);
    scene->format = found.format;
    if (status == VKN_OK) {
        tell_others(options->path, &found, options->findings);
        status = read_found(&found, options, files, single);
    }
    free(found.file);
    free(found.others);
    return status;
}
