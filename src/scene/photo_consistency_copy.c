/* Smaller copies of a capture's pictures, in folders images_N beside the folder images. */
#include <stdlib.h>
#include <string.h>

#include "scene/photo_consistency.h"

#define MOST_FACTOR 64u /* N of images_N */

/* The last folder of the path that is called images, or images_N: where its name begins, where what
 * is in it begins, and its N. NULL: there is none. */
static const char *find_images_folder(const char *path, const char **inside, uint32_t *factor)
{
    static const char name[] = "/images";
    const char *found = NULL;
    for (const char *at = strstr(path, name); at != NULL; at = strstr(at + 1, name)) {
        char *after = NULL;
        const char *rest = at + strlen(name);
        unsigned long number = rest[0] == '_' ? strtoul(rest + 1, &after, 10) : 1;
        rest = after != NULL ? after : rest;
        if (rest[0] != '/' || number < 1 || number > MOST_FACTOR)
            continue;
        found = at + 1;
        *inside = rest + 1;
        *factor = (uint32_t)number;
    }
    return found;
}

char *consistency_find_copy(const char *image_path, uint32_t factor)
{
    static const char *const extensions[] = {".png", ".jpg", ".jpeg", ".PNG", ".JPG", ".JPEG"};
    const char *inside = NULL, *dot = strrchr(image_path, '.');
    uint32_t number = 1;
    const char *begin = find_images_folder(image_path, &inside, &number);
    if (begin == NULL || dot == NULL || dot < inside || number * factor > MOST_FACTOR)
        return NULL;
    int folder = (int)(begin - image_path), stem = (int)(dot - inside);
    for (size_t i = 0; i <= BASE_COUNT(extensions); i++) {
        char *path = base_format("%.*simages_%u/%.*s%s", folder, image_path, number * factor, stem,
                                 inside, i == 0 ? dot : extensions[i - 1]);
        if (path != NULL && base_file_exists(path))
            return path;
        free(path);
    }
    return NULL;
}
