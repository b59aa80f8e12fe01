/* Folders of images. */
#include "scene/capture.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_FACTOR 64u /* of images_N */

/* ---- which folder ---------------------------------------------------------------------------- */

/* folder/images, or folder/images_N; NULL when there is none (or no memory, which sets *failed). */
static char *find_factor(const char *folder, uint32_t factor, bool *failed)
{
    char *path = factor == 1 ? base_format("%s/images", folder)
                             : base_format("%s/images_%u", folder, factor);
    *failed = *failed || path == NULL;
    if (path != NULL && base_is_folder(path))
        return path;
    free(path);
    return NULL;
}

/* The first of folder/images, folder/images_2, ..., and its number. */
static char *find_first(const char *folder, uint32_t *factor, bool *failed)
{
    char *images = NULL;
    for (*factor = 0; images == NULL && *factor < MAX_FACTOR && !*failed;)
        images = find_factor(folder, ++*factor, failed);
    return images;
}

bool capture_has_images(const char *folder, bool *failed)
{
    uint32_t factor = 0;
    char *images = find_first(folder, &factor, failed);
    free(images);
    return images != NULL;
}

vkn_status capture_images(const char *folder, const char *file, uint32_t downscale, char **images,
                          uint32_t *prescaled)
{
    bool failed = false;
    uint32_t first = 0;
    *prescaled = 1;
    *images = find_first(folder, &first, &failed);
    if (*images != NULL && downscale > 1 && downscale <= MAX_FACTOR / first) {
        char *smaller = find_factor(folder, first * downscale, &failed);
        if (smaller != NULL) {
            free(*images);
            *images = smaller;
            *prescaled = downscale;
        }
    }
    if (failed) {
        free(*images);
        *images = NULL;
        return VKN_ERROR;
    }
    if (*images == NULL)
        return base_fail(VKN_BAD_INPUT, "%s: its images: neither images nor images_N is in %s",
                         file, folder);
    return VKN_OK;
}

/* ---- images by name -------------------------------------------------------------------------- */

/* folder/name, or with another extension; *found is NULL when there is none. */
static vkn_status find_image(const char *folder, const char *name, char **found)
{
    static const char *const extensions[] = {".png", ".jpg", ".jpeg", ".PNG", ".JPG", ".JPEG"};
    *found = base_path_join(folder, name);
    if (*found == NULL)
        return VKN_ERROR;
    if (base_file_exists(*found))
        return VKN_OK;
    const char *slash = strrchr(*found, '/'), *dot = strrchr(*found, '.');
    int stem = (int)(dot != NULL && dot > slash ? dot - *found : (ptrdiff_t)strlen(*found));
    char *given = *found;
    *found = NULL;
    vkn_status status = VKN_OK;
    for (size_t i = 0; i < BASE_COUNT(extensions) && *found == NULL && status == VKN_OK; i++) {
        char *path = base_format("%.*s%s", stem, given, extensions[i]);
        if (path == NULL)
            status = VKN_ERROR;
        else if (base_file_exists(path))
            *found = path;
        else
            free(path);
    }
    free(given);
    return status;
}

vkn_status capture_find_mask(const char *folder, struct transforms_frame *frame)
{
    char *masks = base_path_join(folder, "masks");
    vkn_status status = masks != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && base_is_folder(masks))
        status = mask_find(masks, frame->file_path, &frame->mask_path);
    free(masks);
    BASE_TRY(status);
    return frame->mask_path != NULL ? mask_check(frame->mask_path, frame->width, frame->height)
                                    : VKN_OK;
}

/* `folder` is the scene's, `images` that of the images. */
static vkn_status find_frame(const char *folder, const char *images, struct transforms_frame *frame)
{
    BASE_TRY(find_image(images, frame->file_path, &frame->image_path));
    if (frame->image_path == NULL)
        return VKN_OK;
    BASE_TRY(scene_image_size(frame->image_path, &frame->width, &frame->height));
    return capture_find_mask(folder, frame);
}

vkn_status capture_find_images(const char *folder, uint32_t downscale,
                               struct scene_findings *findings, struct transforms *transforms)
{
    char *images = NULL;
    BASE_TRY(capture_images(folder, transforms->file, downscale, &images, &transforms->prescaled));
    vkn_status status = VKN_OK;
    for (size_t i = 0; i < transforms->count && status == VKN_OK; i++)
        status = findings_pass_over(findings, &transforms->frames[i],
                                    find_frame(folder, images, &transforms->frames[i]));
    if (status == VKN_OK)
        status = transforms_drop_missing(transforms, images, findings);
    free(images);
    return status;
}

/* ---- what is in it --------------------------------------------------------------------------- */

static bool is_image(const char *name)
{
    static const char *const extensions[] = {".png", ".jpg", ".jpeg"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot != NULL && i < BASE_COUNT(extensions); i++)
        if (name[0] != '.' && strcasecmp(dot, extensions[i]) == 0)
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static vkn_status add_name(char ***names, size_t *count, size_t *capacity, const char *name)
{
    if (*count == *capacity) {
        size_t more = *capacity > 0 ? 2 * *capacity : 64;
        char **grown = realloc(*names, more * sizeof(char *));
        if (grown == NULL)
            return base_fail(VKN_ERROR, "out of memory (%zu names)", more);
        *names = grown;
        *capacity = more;
    }
    (*names)[*count] = base_format("%s", name);
    return (*names)[*count] != NULL ? (++*count, VKN_OK) : VKN_ERROR;
}

vkn_status capture_list(const char *folder, char ***names, size_t *count)
{
    *names = NULL;
    *count = 0;
    DIR *stream = opendir(folder);
    if (stream == NULL)
        return base_fail(VKN_BAD_INPUT, "%s: %s", folder, strerror(errno));
    size_t capacity = 0;
    vkn_status status = VKN_OK;
    for (struct dirent *entry; status == VKN_OK && (entry = readdir(stream)) != NULL;)
        if (is_image(entry->d_name))
            status = add_name(names, count, &capacity, entry->d_name);
    closedir(stream);
    if (status != VKN_OK) {
        capture_free_names(*names, *count);
        *names = NULL;
        *count = 0;
        return status;
    }
    if (*count > 1)
        qsort(*names, *count, sizeof(char *), by_name);
    return VKN_OK;
}

void capture_free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}
