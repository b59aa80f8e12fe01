/* Finds the image folder of a capture and lists its images. */
#include "scene/capture.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "scene/pictures.h"

/* ---- the image folder ------------------------------------------------------------------------ */

/* Returns folder/images (factor 1) or images_N; NULL: none, or out of memory (sets *failed). */
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

/* Returns the first existing one of folder/images, folder/images_2, ...; sets *factor to its N. */
static char *find_first(const char *folder, uint32_t *factor, bool *failed)
{
    char *images = NULL;
    for (*factor = 0; images == NULL && *factor < CAPTURE_MAX_FACTOR && !*failed;)
        images = find_factor(folder, ++*factor, failed);
    return images;
}

bool capture_has_images(const char *folder, bool *failed)
{
    uint32_t factor = 0;
    char *images = find_first(folder, &factor, failed);
    bool found = images != NULL;
    free(images);
    for (size_t i = 0; image_folders[i] != NULL && !found && !*failed; i++) {
        char *subfolder = base_path_join(folder, image_folders[i]);
        *failed = subfolder == NULL;
        found = subfolder != NULL && base_is_folder(subfolder);
        free(subfolder);
    }
    return found;
}

vkn_status capture_images(const char *folder, const char *file, uint32_t downscale, char **images,
                          uint32_t *image_factor)
{
    bool failed = false;
    uint32_t first_factor = 0;
    *image_factor = 1;
    *images = find_first(folder, &first_factor, &failed);
    if (*images != NULL && downscale > 1 && downscale <= CAPTURE_MAX_FACTOR / first_factor) {
        char *smaller = find_factor(folder, first_factor * downscale, &failed);
        if (smaller != NULL) {
            free(*images);
            *images = smaller;
            *image_factor = downscale;
        }
    }
    if (failed) {
        free(*images);
        *images = NULL;
        return VKN_ERROR;
    }
    if (*images == NULL)
        BASE_TRY(capture_folder(folder, file, images));
    if (*images == NULL)
        return base_fail(VKN_BAD_INPUT, "%s: its images: neither images nor images_N is in %s",
                         file, folder);
    return VKN_OK;
}

/* Finds the folders of image_folders; a second one becomes found->other. */
static vkn_status find_image_folders(struct finder *finder, struct found *found)
{
    for (size_t i = 0; image_folders[i] != NULL && found->other == NULL; i++) {
        struct found next = {0};
        BASE_TRY(finder_find_folder(finder, image_folders[i], &next));
        if (found->path == NULL) {
            *found = next;
            continue;
        }
        found->other = next.path;
        free(next.other);
    }
    return VKN_OK;
}

static vkn_status has_images(const char *folder, bool *in_folder)
{
    char **names = NULL;
    size_t count = 0;
    BASE_TRY(capture_list(folder, &names, &count));
    capture_free_names(names, count);
    *in_folder = count > 0;
    return VKN_OK;
}

vkn_status capture_folder(const char *folder, const char *file, char **images)
{
    struct finder *finder = NULL;
    struct found found = {0};
    bool in_folder = false;
    *images = NULL;
    BASE_TRY(finder_open(folder, NULL, &finder));
    vkn_status status = find_image_folders(finder, &found);
    finder_close(&finder);
    if (status == VKN_OK && found.other != NULL)
        status = base_fail(VKN_BAD_INPUT, "%s: its images: both %s and %s may hold them", file,
                           found.path, found.other);
    if (status == VKN_OK && found.path == NULL)
        status = has_images(folder, &in_folder);
    if (status == VKN_OK)
        *images = in_folder ? base_format("%s", folder) : found.path;
    if (status == VKN_OK && in_folder && *images == NULL)
        status = VKN_ERROR;
    if (*images != found.path)
        free(found.path);
    free(found.other);
    return status;
}

/* ---- images by name -------------------------------------------------------------------------- */

static vkn_status measure(struct finder *masks, struct transforms_frame *frame)
{
    BASE_TRY(pictures_measure(frame));
    if (masks == NULL)
        return VKN_OK;
    BASE_TRY(mask_find(masks, frame->file_path, &frame->mask_path));
    return frame->mask_path != NULL ? mask_check(frame) : VKN_OK;
}

static vkn_status measure_all(struct finder *masks, struct scene_findings *findings,
                              struct transforms *transforms)
{
    for (size_t i = 0; i < transforms->count; i++) {
        struct transforms_frame *frame = &transforms->frames[i];
        if (frame->image_path != NULL)
            BASE_TRY(findings_skip_frame(findings, frame, measure(masks, frame)));
    }
    return VKN_OK;
}

vkn_status capture_measure(const char *folder, struct scene_findings *findings,
                           struct transforms *transforms)
{
    struct finder *finder = NULL, *masks = NULL;
    struct found found = {0};
    BASE_TRY(finder_open(folder, NULL, &finder));
    vkn_status status = finder_find_folder(finder, "masks", &found);
    finder_close(&finder);
    if (status == VKN_OK && found.other != NULL)
        status = base_fail(VKN_BAD_INPUT, "%s: its masks: both %s and %s may hold them",
                           transforms->file, found.path, found.other);
    if (status == VKN_OK && found.path != NULL)
        status = finder_open(found.path, NULL, &masks);
    if (status == VKN_OK)
        status = measure_all(masks, findings, transforms);
    finder_close(&masks);
    free(found.path);
    free(found.other);
    return status;
}

vkn_status capture_find_images(const char *folder, uint32_t downscale,
                               struct scene_findings *findings, struct transforms *transforms)
{
    char *images = NULL;
    BASE_TRY(
        capture_images(folder, transforms->file, downscale, &images, &transforms->image_factor));
    vkn_status status = pictures_find(images, false, findings, transforms);
    if (status == VKN_OK)
        status = capture_measure(folder, findings, transforms);
    if (status == VKN_OK)
        status = transforms_drop_missing(transforms, images, findings);
    free(images);
    return status;
}

/* ---- listing a folder ------------------------------------------------------------------------ */

static bool is_image(const char *name, const char *const *endings)
{
    const char *dot = strrchr(name, '.');
    while (dot != NULL && *endings != NULL && strcasecmp(dot + 1, *endings) != 0)
        endings++;
    return dot != NULL && name[0] != '.' && *endings != NULL;
}

/* Returns whether an entry is a regular file. An entry whose type cannot be read counts as one;
 * opening it reports the error. */
static bool is_regular(const char *folder, const char *name)
{
    struct stat status;
    char *path = base_path_join(folder, name);
    bool regular = path == NULL || stat(path, &status) != 0 || S_ISREG(status.st_mode);
    free(path);
    return regular;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static vkn_status add_name(char ***names, size_t *count, size_t *capacity, const char *name)
{
    if (*count == *capacity) {
        size_t new_capacity = *capacity > 0 ? 2 * *capacity : 64;
        char **grown = realloc(*names, new_capacity * sizeof(char *));
        if (grown == NULL)
            return base_fail(VKN_ERROR, "out of memory (%zu names)", new_capacity);
        *names = grown;
        *capacity = new_capacity;
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
    for (size_t i = 0; i < IMAGE_ENDINGS && *count == 0; i++, rewinddir(stream))
        for (struct dirent *entry; status == VKN_OK && (entry = readdir(stream)) != NULL;)
            if (is_image(entry->d_name, image_endings[i]) && is_regular(folder, entry->d_name))
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
