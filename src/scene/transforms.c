/* Reads transforms.json files: their top level, their file name lists and their images. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "scene/keys.h"
#include "scene/pictures.h"
#include "scene/reader.h"

static bool has(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name) != NULL;
}

static void free_frame(struct transforms_frame *frame)
{
    free(frame->file_path);
    free(frame->image_path);
    free(frame->mask_name);
    free(frame->mask_path);
    free(frame->depth_path);
    free(frame->tracked);
}

/* ---- filename lists (nerfstudio) ------------------------------------------------------------- */

static const char *without_dot(const char *path)
{
    return strncmp(path, "./", 2) == 0 ? path + 2 : path;
}

static int by_file_path(const void *a, const void *b)
{
    const struct transforms_frame *const *x = a, *const *y = b;
    int order = strcmp(without_dot((*x)->file_path), without_dot((*y)->file_path));
    return order != 0 ? order : ((*x)->index > (*y)->index) - ((*x)->index < (*y)->index);
}

/* Adds the split to every frame with the path `name`; returns whether there is such a frame.
 * `sorted` is ordered by by_file_path. */
static bool mark_frames(struct transforms_frame **sorted, size_t count, const char *name,
                        unsigned split)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(without_dot(sorted[middle]->file_path), without_dot(name)) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = false;
    for (; low < count && strcmp(without_dot(sorted[low]->file_path), without_dot(name)) == 0;
         low++) {
        sorted[low]->splits |= 1u << split;
        found = true;
    }
    return found;
}

static vkn_status read_list(const cJSON *list, const char *name, struct transforms *transforms,
                            struct transforms_frame **sorted, unsigned split)
{
    if (!cJSON_IsArray(list))
        return base_json_fail(transforms->file, name, "not an array");
    size_t index = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, list) {
        if (!cJSON_IsString(item))
            return base_fail(VKN_BAD_INPUT, "%s: %s[%zu]: not a string", transforms->file, name,
                             index);
        if (!mark_frames(sorted, transforms->count, item->valuestring, split))
            return base_fail(VKN_BAD_INPUT, "%s: %s[%zu]: no frame has the file_path %s",
                             transforms->file, name, index, item->valuestring);
        index++;
    }
    transforms->has_lists = true;
    return VKN_OK;
}

/* Completes the splits: frames in no list are for training or, with train_filenames, dropped. */
static void complete_lists(struct transforms *transforms, bool has_train)
{
    size_t kept = 0, shared = 0, count = transforms->count;
    const unsigned both = 1u << SCENE_TRAIN | 1u << SCENE_TEST;
    for (size_t i = 0; i < count; i++) {
        struct transforms_frame *frame = &transforms->frames[i];
        if (!has_train && frame->splits == 0)
            frame->splits = 1u << SCENE_TRAIN;
        shared += (frame->splits & both) == both ? 1 : 0;
        if (frame->splits != 0)
            transforms->frames[kept++] = *frame;
        else
            free_frame(frame);
    }
    transforms->count = kept;
    if (shared > 0)
        base_log(BASE_LOG_WARNING, "%s: %zu frames are in train_filenames and in test_filenames",
                 transforms->file, shared);
}

static vkn_status read_lists(const cJSON *json, struct transforms *transforms)
{
    static const char *const names[SCENE_SPLITS] = {"train_filenames", "val_filenames",
                                                    "test_filenames"};
    if (!has(json, names[0]) && !has(json, names[1]) && !has(json, names[2]))
        return VKN_OK;
    struct transforms_frame **sorted =
        base_alloc(transforms->count, sizeof(struct transforms_frame *));
    if (sorted == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < transforms->count; i++)
        sorted[i] = &transforms->frames[i];
    qsort(sorted, transforms->count, sizeof(struct transforms_frame *), by_file_path);

    vkn_status status = VKN_OK;
    for (unsigned split = 0; split < SCENE_SPLITS && status == VKN_OK; split++) {
        const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, names[split]);
        if (list != NULL)
            status = read_list(list, names[split], transforms, sorted, split);
    }
    free(sorted);
    if (status == VKN_OK)
        complete_lists(transforms, has(json, names[SCENE_TRAIN]));
    return status;
}

/* ---- the top level of the file --------------------------------------------------------------- */

static vkn_status read_cloud_name(const cJSON *json, struct transforms *transforms)
{
    const char *name = NULL;
    BASE_TRY(base_json_string(json, "ply_file_path", transforms->file, false, &name));
    if (name != NULL)
        transforms->cloud_name = base_format("%s", without_dot(name));
    return name == NULL || transforms->cloud_name != NULL ? VKN_OK : VKN_ERROR;
}

vkn_status transforms_parse(const char *file, const struct cJSON *json, bool needs_images,
                            struct transforms *transforms)
{
    *transforms = (struct transforms){.file = base_format("%s", file),
                                      .list = "frames",
                                      .lens = lens_none,
                                      .image_factor = 1,
                                      .reads_ray_files = true};
    if (transforms->file == NULL)
        return VKN_ERROR;
    if (!cJSON_IsObject(json))
        return base_fail(VKN_BAD_INPUT, "%s: not an object at the top", file);
    BASE_TRY(keys_check(json, true, file, transforms));
    BASE_TRY(read_cloud_name(json, transforms));
    BASE_TRY(lens_read(json, file, &transforms->lens));
    BASE_TRY(transforms_read_space(json, transforms));
    BASE_TRY(base_json_bool(json, "enable_ray_loading", file, false, &transforms->reads_ray_files));
    BASE_TRY(transforms_read_frames(json, needs_images, transforms));
    return needs_images ? read_lists(json, transforms) : VKN_OK;
}

vkn_status transforms_read(const char *file, bool needs_images, struct transforms *transforms)
{
    *transforms = (struct transforms){0};
    cJSON *json = NULL;
    BASE_TRY(base_json_read(file, TRANSFORMS_MAX_SIZE, &json));
    vkn_status status = transforms_parse(file, json, needs_images, transforms);
    cJSON_Delete(json);
    return status;
}

void transforms_free(struct transforms *transforms)
{
    for (size_t i = 0; i < transforms->count; i++)
        free_frame(&transforms->frames[i]);
    free(transforms->frames);
    free(transforms->points);
    free(transforms->left_out.first);
    cJSON_Delete(transforms->unread);
    free(transforms->cloud_name);
    free(transforms->file);
    *transforms = (struct transforms){0};
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Refuses files of rays or alpha beside an image, since instant-ngp would read them unasked. */
static vkn_status refuse_companions(const struct transforms *transforms, const char *folder,
                                    const struct transforms_frame *frame)
{
    const char *slash = strrchr(frame->image_path, '/'), *dot = strrchr(frame->image_path, '.');
    if (slash == NULL || dot == NULL || dot < slash)
        return VKN_OK;
    char *rays = base_format("%.*s/rays_%.*s.dat", (int)(slash - frame->image_path),
                             frame->image_path, (int)(dot - slash - 1), slash + 1);
    char *alpha = base_format("%s/%s.alpha%s", folder, without_dot(frame->file_path), dot);
    vkn_status status = rays != NULL && alpha != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && transforms->reads_ray_files && base_file_exists(rays))
        status = base_fail(VKN_BAD_INPUT,
                           "%s: rays of single pixels are not supported; if the cameras are right "
                           "without them, set enable_ray_loading: false in %s",
                           rays, transforms->file);
    if (status == VKN_OK && base_file_exists(alpha))
        status = base_fail(VKN_BAD_INPUT,
                           "%s: alpha beside an image is not supported; give %s an alpha channel",
                           alpha, frame->image_path);
    free(alpha);
    free(rays);
    return status;
}

static vkn_status measure_frame(struct transforms *transforms, const char *folder,
                                struct transforms_frame *frame)
{
    if (frame->image_path != NULL) {
        BASE_TRY(refuse_companions(transforms, folder, frame));
        return pictures_measure(frame);
    }
    if (frame->has_sharpness || frame->skipped)
        return VKN_OK;
    return base_fail(
        VKN_BAD_INPUT,
        "%s: frames[%zu].file_path: no image %s in %s (nor with .png, .jpg or another extension, "
        "in another case or folder)",
        transforms->file, frame->index, frame->file_path, folder);
}

static vkn_status find_masks(struct transforms *transforms, const char *folder,
                             struct scene_findings *findings)
{
    struct finder *finder = NULL;
    BASE_TRY(pictures_find_masks(folder, findings, transforms));
    BASE_TRY(finder_open(folder, NULL, &finder));
    vkn_status status = VKN_OK;
    for (size_t i = 0; i < transforms->count && status == VKN_OK; i++) {
        struct transforms_frame *frame = &transforms->frames[i];
        if (frame->image_path != NULL)
            status = findings_skip_frame(findings, frame,
                                         transforms_find_mask(transforms, finder, folder, frame));
    }
    finder_close(&finder);
    return status;
}

vkn_status transforms_drop_missing(struct transforms *transforms, const char *folder,
                                   const struct scene_findings *findings)
{
    size_t kept = 0, count = transforms->count;
    for (size_t i = 0; i < count; i++) {
        if (transforms->frames[i].image_path != NULL)
            transforms->frames[kept++] = transforms->frames[i];
        else
            free_frame(&transforms->frames[i]);
    }
    transforms->count = kept;
    transforms->missing = count - kept;
    if (kept == 0 && findings != NULL && findings->first_broken != NULL)
        return base_fail(VKN_BAD_INPUT, "%s: %s: not one of the %zu can be used; the first: %s",
                         transforms->file, transforms->list, count, findings->first_broken);
    if (kept == 0 && count > 0)
        return base_fail(VKN_BAD_INPUT, "%s: %s: not one of the %zu images exists in %s",
                         transforms->file, transforms->list, count, folder);
    if (kept < count && findings == NULL)
        base_log(BASE_LOG_WARNING, "%s: %zu of %zu %s have no file in %s and are left out",
                 transforms->file, count - kept, count, transforms->list, folder);
    return VKN_OK;
}

static vkn_status find_images(struct transforms *transforms, const char *folder,
                              struct scene_findings *findings)
{
    BASE_TRY(pictures_find(folder, true, findings, transforms));
    for (size_t i = 0; i < transforms->count; i++) {
        struct transforms_frame *frame = &transforms->frames[i];
        BASE_TRY(findings_skip_frame(findings, frame, measure_frame(transforms, folder, frame)));
    }
    pictures_orient_like_first(transforms);
    BASE_TRY(find_masks(transforms, folder, findings));
    return transforms_drop_missing(transforms, folder, findings);
}

vkn_status transforms_find_images(struct transforms *transforms, struct scene_findings *findings)
{
    char *folder = base_path_folder(transforms->file);
    vkn_status status = folder != NULL ? find_images(transforms, folder, findings) : VKN_ERROR;
    free(folder);
    return status;
}

/* ---- the format ------------------------------------------------------------------------------ */

#define SPLIT_FILE  "transforms_train.json" /* one of three files */
#define SINGLE_FILE "transforms.json"

static vkn_status find(const char *folder, char **file, char **others)
{
    (void)others;
    BASE_TRY(reader_find(folder, SPLIT_FILE, file));
    return *file != NULL ? VKN_OK : reader_find(folder, SINGLE_FILE, file);
}

static vkn_status read_file(const char *path, struct scene_findings *findings,
                            struct transforms *transforms)
{
    BASE_TRY(transforms_read(path, true, transforms));
    return transforms_find_images(transforms, findings);
}

/* Names the file of one split; NULL if it is absent. Only the training file is required. No other
 * names are tried, because other JSON files of the folder may contain the test set. */
static vkn_status name_split_file(const char *folder, unsigned split, char **path)
{
    char *name = base_format("transforms_%s.json", scene_split_names[split]);
    *path = name != NULL ? base_path_join(folder, name) : NULL;
    vkn_status status = *path != NULL ? VKN_OK : VKN_ERROR;
    free(name);
    if (status == VKN_OK && split != SCENE_TRAIN && !base_file_exists(*path)) {
        free(*path);
        *path = NULL;
    }
    return status;
}

vkn_status transforms_files(const char *path, char *files[SCENE_SPLITS], bool *single)
{
    memset(files, 0, SCENE_SPLITS * sizeof(*files));
    *single = !reader_ends_with(path, SPLIT_FILE);
    char *folder = *single ? base_format("%s", path) : base_path_folder(path);
    vkn_status status = folder != NULL ? VKN_OK : VKN_ERROR;
    if (*single) {
        files[SCENE_TRAIN] = folder;
        return status;
    }
    for (unsigned split = 0; split < SCENE_SPLITS && status == VKN_OK; split++)
        status = name_split_file(folder, split, &files[split]);
    free(folder);
    return status;
}

/* Checks that all files have the same convention of poses. */
static vkn_status check_mitsuba(const struct transforms files[SCENE_SPLITS])
{
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        if (files[split].count > 0 && files[split].mitsuba != files[SCENE_TRAIN].mitsuba)
            return base_json_fail(files[split].file, "from_mitsuba",
                                  "differs from the training file");
    return VKN_OK;
}

static vkn_status read_scene(const char *path, const struct scene_options *options,
                             struct transforms files[SCENE_SPLITS], bool *single)
{
    char *paths[SCENE_SPLITS];
    vkn_status status = transforms_files(path, paths, single);
    for (unsigned i = 0; i < SCENE_SPLITS && status == VKN_OK; i++) {
        if (paths[i] != NULL)
            status = read_file(paths[i], options->findings, &files[i]);
        for (size_t k = 0; k < files[i].count; k++)
            files[i].frames[k].file = i;
    }
    for (unsigned i = 0; i < SCENE_SPLITS; i++)
        free(paths[i]);
    BASE_TRY(status);
    BASE_TRY(check_mitsuba(files));
    return cloud_read(&files[SCENE_TRAIN]);
}

const struct scene_reader scene_reader_transforms = {
    .looked_for = SPLIT_FILE ", " SINGLE_FILE,
    .ending = ".json",
    .hold_out = "add a transforms_test.json or test_filenames, or eval with --split train",
    .find = find,
    .read = read_scene,
    .write = transforms_write,
};
