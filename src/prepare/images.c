/* Makes SCENE/images, images_N and masks in a temporary folder, and moves the complete folders. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prepare/internal.h"

#define MOST_FACTORS  3
#define SMALLEST_COPY 200u /* pixels of the longer side */

static const uint32_t all_factors[MOST_FACTORS] = {2, 4, 8};

/* The folders that are being made, and results for each image. */
struct making {
    struct preparation *preparation;
    char *folder, *images, *masks; /* masks: NULL if there are none */
    char *smaller[MOST_FACTORS];   /* folders images_N */
    size_t factor_count;
    char **problems; /* [image] error message; NULL: none */
    bool *has_mask;  /* [image] */
};

/* ---- existing images ------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(struct preparation *preparation)
{
    for (size_t i = 0; i < preparation->count; i++)
        free(preparation->names[i]);
    free(preparation->names);
    preparation->names = NULL;
    preparation->count = 0;
}

static vkn_status list_names(struct preparation *preparation, const char *folder)
{
    struct dirent **entries = NULL;
    free_names(preparation);
    int count = scandir(folder, &entries, NULL, NULL);
    if (count < 0)
        return base_fail(VKN_ERROR, "%s: %s", folder, strerror(errno));
    preparation->names = base_alloc((size_t)count + 1, sizeof(char *));
    vkn_status status = preparation->names != NULL ? VKN_OK : VKN_ERROR;
    for (int i = 0; i < count; i++) {
        char *name = status == VKN_OK && entries[i]->d_name[0] != '.'
                         ? base_format("%s", entries[i]->d_name)
                         : NULL;
        if (name != NULL)
            preparation->names[preparation->count++] = name;
        free(entries[i]);
    }
    free(entries);
    if (preparation->count > 1)
        qsort(preparation->names, preparation->count, sizeof(char *), by_name);
    return status;
}

/* Sets the longer side of the smallest readable image; unreadable images are reported later. */
static vkn_status measure(struct preparation *preparation, const char *folder)
{
    preparation->longest = 0;
    for (size_t i = 0; i < preparation->count; i++) {
        uint32_t width = 0, height = 0;
        char *path = base_path_join(folder, preparation->names[i]);
        if (path == NULL)
            return VKN_ERROR;
        vkn_status status = scene_image_size(path, &width, &height);
        free(path);
        uint32_t longer = width > height ? width : height;
        if (status == VKN_OK && (preparation->longest == 0 || longer < preparation->longest))
            preparation->longest = longer;
    }
    return VKN_OK;
}

static vkn_status read_existing(struct preparation *preparation)
{
    char *masks = base_path_join(preparation->out, "masks");
    preparation->has_masks = masks != NULL && base_is_folder(masks);
    free(masks);
    BASE_TRY(list_names(preparation, preparation->images));
    return measure(preparation, preparation->images);
}

/* ---- one image ------------------------------------------------------------------------------- */

/* Returns the photograph of an image; NULL for frames of videos and views of panoramas. */
static const struct source_picture *source_of(const struct preparation *preparation,
                                              const char *name)
{
    for (size_t i = 0; i < preparation->source.count; i++)
        if (preparation->source.pictures[i].problem == NULL &&
            strcmp(preparation->source.pictures[i].name, name) == 0)
            return &preparation->source.pictures[i];
    return NULL;
}

/* Copies the mask that has the photograph's original name. */
static vkn_status add_mask(struct making *making, size_t index, const char *image, const char *mask)
{
    const struct source *source = &making->preparation->source;
    const struct source_picture *picture =
        source_of(making->preparation, making->preparation->names[index]);
    if (picture == NULL)
        return VKN_OK;
    return scene_copy_mask(source->masks, picture->file, image, picture->orientation, mask,
                           &making->has_mask[index]);
}

static vkn_status make_copies(struct making *making, size_t index, const char *image,
                              const char *mask)
{
    const char *name = making->preparation->names[index];
    char *paths[MOST_FACTORS] = {0};
    vkn_status status = VKN_OK;
    for (size_t i = 0; i < making->factor_count; i++) {
        paths[i] =
            base_format("%s/%.*s.png", making->smaller[i], (int)(strrchr(name, '.') - name), name);
        status = paths[i] != NULL ? status : VKN_ERROR;
    }
    if (mask != NULL)
        status = status == VKN_OK ? add_mask(making, index, image, mask) : status;
    if (status == VKN_OK)
        status = scene_copy_smaller(image, mask != NULL && making->has_mask[index] ? mask : NULL,
                                    all_factors, paths, making->factor_count);
    for (size_t i = 0; i < making->factor_count; i++)
        free(paths[i]);
    return status;
}

/* Makes the copies of one image. Decoding also detects damaged images. */
static vkn_status make_image(void *context, size_t index)
{
    struct making *making = context;
    const char *name = making->preparation->names[index];
    BASE_TRY(prepare_check_stop(making->preparation));
    char *image = base_path_join(making->images, name), *mask = NULL;
    if (making->masks != NULL)
        mask = base_format("%s/%s.png", making->masks, name);
    vkn_status status = image != NULL && (making->masks == NULL || mask != NULL)
                            ? make_copies(making, index, image, mask)
                            : VKN_ERROR;
    free(image);
    free(mask);
    if (status != VKN_BAD_INPUT)
        return status;
    making->problems[index] = base_format("%s", vkn_last_error());
    return making->problems[index] != NULL ? VKN_OK : VKN_ERROR;
}

static void show_progress(void *context, size_t finished)
{
    const struct making *making = context;
    report_progress_count(making->preparation->progress, "making smaller copies", finished,
                          making->preparation->count);
}

/* ---- unusable images ------------------------------------------------------------------------- */

/* Removes an image and its mask when one of them is broken. Smaller copies do not exist yet. */
static vkn_status remove_broken(struct making *making, size_t index)
{
    const char *name = making->preparation->names[index];
    char *path = base_path_join(making->images, name);
    vkn_status status = path != NULL ? files_remove(path) : VKN_ERROR;
    free(path);
    if (status != VKN_OK || making->masks == NULL)
        return status;
    path = base_format("%s/%s.png", making->masks, name);
    status = path != NULL ? files_remove(path) : VKN_ERROR;
    free(path);
    making->has_mask[index] = false;
    return status;
}

static vkn_status report_broken(struct making *making, size_t index)
{
    struct preparation *preparation = making->preparation;
    char *path = base_path_join(making->images, preparation->names[index]);
    vkn_status status = path != NULL
                            ? source_reject_named(&preparation->source, preparation->names[index],
                                                  path, making->problems[index])
                            : VKN_ERROR;
    free(path);
    return status;
}

static vkn_status fail_too_few(const struct preparation *preparation, size_t usable)
{
    const struct source *source = &preparation->source;
    size_t given = source->count > 0 && !preparation->params->equirectangular ? source->count
                                                                              : preparation->count;
    const char *advice = source_advice(source);
    if (usable < given)
        return base_fail(VKN_BAD_INPUT,
                         "%s: only %zu of %zu pictures can be used, at least %u are needed%s%s",
                         preparation->params->pictures, usable, given, MIN_PICTURES,
                         advice != NULL ? "; " : "", advice != NULL ? advice : "");
    return base_fail(VKN_BAD_INPUT,
                     "%s: %zu picture%s, at least %u from different places are needed (50 to 200 "
                     "are usual)",
                     preparation->params->pictures, given, given == 1 ? "" : "s", MIN_PICTURES);
}

static vkn_status drop_broken(struct making *making)
{
    struct preparation *preparation = making->preparation;
    size_t usable = preparation->count;
    report_progress_pause(preparation->progress);
    for (size_t i = 0; i < preparation->count; i++) {
        if (making->problems[i] == NULL)
            continue;
        BASE_TRY(report_broken(making, i));
        BASE_TRY(remove_broken(making, i));
        usable--;
    }
    source_warn_problems(&preparation->source);
    return usable >= MIN_PICTURES ? VKN_OK : fail_too_few(preparation, usable);
}

/* Makes a white mask, because COLMAP fails if only some images have masks. */
static vkn_status add_white_mask(struct making *making, size_t index)
{
    const char *name = making->preparation->names[index];
    char *image = base_path_join(making->images, name);
    char *mask = base_format("%s/%s.png", making->masks, name);
    uint32_t width = 0, height = 0;
    vkn_status status = image != NULL && mask != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK)
        status = scene_image_size(image, &width, &height);
    uint8_t *white = status == VKN_OK ? base_alloc(width, height) : NULL;
    if (white != NULL) {
        memset(white, 255, (size_t)width * height);
        status = scene_image_write_png(mask, white, width, height, 1);
    } else if (status == VKN_OK) {
        status = VKN_ERROR;
    }
    free(white);
    free(image);
    free(mask);
    return status;
}

static vkn_status complete_masks(struct making *making)
{
    struct preparation *preparation = making->preparation;
    size_t masked = 0;
    for (size_t i = 0; i < preparation->count; i++)
        masked += making->has_mask[i] ? 1 : 0;
    if (masked == 0) {
        if (preparation->params->masks != NULL)
            return base_fail(VKN_BAD_INPUT, "%s: no mask in this folder has the name of a picture",
                             preparation->params->masks);
        vkn_status status = files_remove(making->masks);
        free(making->masks);
        making->masks = NULL;
        return status;
    }
    if (masked < preparation->count)
        base_log(BASE_LOG_WARNING, "%s: %zu of %zu pictures have no mask and are used completely",
                 preparation->source.masks, preparation->count - masked, preparation->count);
    for (size_t i = 0; i < preparation->count; i++)
        if (!making->has_mask[i] && making->problems[i] == NULL)
            BASE_TRY(add_white_mask(making, i));
    return VKN_OK;
}

/* ---- all ------------------------------------------------------------------------------------- */

static vkn_status write_source_pictures(struct making *making)
{
    struct preparation *preparation = making->preparation;
    BASE_TRY(preparation->source.is_video ? video_extract_frames(preparation, making->images)
                                          : photographs_write(preparation, making->images));
    return preparation->params->equirectangular ? panoramas_split(preparation, making->images)
                                                : VKN_OK;
}

static vkn_status make_folders(struct making *making)
{
    struct preparation *preparation = making->preparation;
    for (size_t i = 0; i < MOST_FACTORS; i++) {
        if (preparation->longest / all_factors[i] < SMALLEST_COPY)
            break;
        making->smaller[i] = base_format("%s/images_%u", making->folder, all_factors[i]);
        if (making->smaller[i] == NULL)
            return VKN_ERROR;
        BASE_TRY(base_make_folder(making->smaller[i]));
        making->factor_count = i + 1;
    }
    if (preparation->source.masks == NULL)
        return VKN_OK;
    if (preparation->params->equirectangular)
        return base_fail(VKN_BAD_INPUT, "%s: masks of equirectangular pictures are not supported",
                         preparation->source.masks);
    making->masks = base_path_join(making->folder, "masks");
    return making->masks != NULL ? base_make_folder(making->masks) : VKN_ERROR;
}

static vkn_status make_all(struct making *making)
{
    struct preparation *preparation = making->preparation;
    BASE_TRY(base_make_folder(making->images));
    BASE_TRY(write_source_pictures(making));
    BASE_TRY(list_names(preparation, making->images));
    BASE_TRY(measure(preparation, making->images));
    BASE_TRY(make_folders(making));
    making->problems = base_alloc(preparation->count + 1, sizeof(char *));
    making->has_mask = base_alloc(preparation->count + 1, sizeof(bool));
    if (making->problems == NULL || making->has_mask == NULL)
        return VKN_ERROR;
    BASE_TRY(base_parallel(preparation->count, make_image, making, show_progress));
    BASE_TRY(drop_broken(making));
    return making->masks != NULL ? complete_masks(making) : VKN_OK;
}

static void free_making(struct making *making)
{
    for (size_t i = 0; i < making->preparation->count && making->problems != NULL; i++)
        free(making->problems[i]);
    for (size_t i = 0; i < MOST_FACTORS; i++)
        free(making->smaller[i]);
    free(making->problems);
    free(making->has_mask);
    free(making->folder);
    free(making->images);
    free(making->masks);
}

/* Removes the output of an earlier call, which is incomplete or of other images; also the poses. */
static vkn_status remove_old(const struct preparation *preparation)
{
    static const char *const made[] = {"images", "images_2",   "images_4",       "images_8",
                                       "masks",  "sparse",     "prepare/1",      "prepare/2",
                                       "depth",  "points.ply", "transforms.json"};
    for (size_t i = 0; i < BASE_COUNT(made); i++) {
        char *path = base_path_join(preparation->out, made[i]);
        vkn_status status = path != NULL ? files_remove(path) : VKN_ERROR;
        free(path);
        BASE_TRY(status);
    }
    return VKN_OK;
}

static vkn_status move_all(const struct making *making)
{
    const struct preparation *preparation = making->preparation;
    const char *const folders[] = {making->images, making->masks, making->smaller[0],
                                   making->smaller[1], making->smaller[2]};
    for (size_t i = 0; i < BASE_COUNT(folders); i++) {
        if (folders[i] == NULL)
            continue;
        char *to = base_path_join(preparation->out, strrchr(folders[i], '/') + 1);
        vkn_status status = to != NULL ? files_move(folders[i], to) : VKN_ERROR;
        free(to);
        BASE_TRY(status);
    }
    return files_remove(making->folder);
}

static vkn_status make(struct preparation *preparation)
{
    struct making making = {.preparation = preparation,
                            .folder = base_path_join(preparation->work, "new")};
    making.images = making.folder != NULL ? base_path_join(making.folder, "images") : NULL;
    vkn_status status = making.images != NULL ? files_remove(making.folder) : VKN_ERROR;
    if (status == VKN_OK)
        status = make_all(&making);
    if (status == VKN_OK)
        status = move_all(&making);
    free_making(&making);
    return status;
}

vkn_status images_make(struct preparation *preparation)
{
    struct record *record = &preparation->record;
    if (record->stages[0][STAGE_IMAGES] != preparation->source.checksum) {
        memset(record->stages, 0, sizeof(record->stages));
        memset(record->database, 0, sizeof(record->database));
        memset(record->extracted, 0, sizeof(record->extracted));
        BASE_TRY(record_write(preparation));
        BASE_TRY(remove_old(preparation));
        BASE_TRY(make(preparation));
        record->stages[0][STAGE_IMAGES] = preparation->source.checksum;
        BASE_TRY(record_write(preparation));
    }
    return read_existing(preparation);
}
