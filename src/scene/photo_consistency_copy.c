/* Finds smaller copies of a capture's images, in folders images_N beside the folder images. */
#include <stdlib.h>
#include <string.h>

#include "scene/capture.h"
#include "scene/find.h"
#include "scene/photo_consistency.h"

/* Returns the part of the path from its last folder called images or images_N on; NULL: none. Sets
 * *inside to the path within that folder and *factor to N (1: images). */
static const char *find_images_folder(const char *path, const char **inside, uint32_t *factor)
{
    static const char name[] = "/images";
    const char *found = NULL;
    for (const char *at = strstr(path, name); at != NULL; at = strstr(at + 1, name)) {
        char *after = NULL;
        const char *rest = at + strlen(name);
        unsigned long number = rest[0] == '_' ? strtoul(rest + 1, &after, 10) : 1;
        rest = after != NULL ? after : rest;
        if (rest[0] != '/' || number < 1 || number > CAPTURE_MAX_FACTOR)
            continue;
        found = at + 1;
        *inside = rest + 1;
        *factor = (uint32_t)number;
    }
    return found;
}

char *consistency_find_copy(const char *image_path, uint32_t factor)
{
    const char *inside = NULL;
    uint32_t number = 1;
    const char *begin = find_images_folder(image_path, &inside, &number);
    if (begin == NULL || number * factor > CAPTURE_MAX_FACTOR)
        return NULL;
    char *folder =
        base_format("%.*simages_%u", (int)(begin - image_path), image_path, number * factor);
    struct finder *finder = NULL;
    struct found found = {0};
    if (folder != NULL && base_is_folder(folder) && finder_open(folder, NULL, &finder) == VKN_OK)
        (void)finder_find_as_written(finder, inside, &found); /* a failure counts as no copy */
    finder_close(&finder);
    free(folder);
    free(found.other);
    return found.path;
}
