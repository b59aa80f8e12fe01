/* Masks: pictures that say which pixels of a view count. */
#include <stdlib.h>
#include <string.h>

#include "scene/image.h"
#include "scene/transforms.h"

/* ---- finding them ------------------------------------------------------------------------------
 */

/* The length of `name` without its extension. */
static size_t stem_length(const char *name)
{
    const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');
    return dot != NULL && (slash == NULL || dot > slash) ? (size_t)(dot - name) : strlen(name);
}

/* folder/PREFIXname[..length]SUFFIX, when there is such a file and nothing has been found before.
 */
static vkn_status try_name(const char *folder, const char *prefix, const char *name, size_t length,
                           const char *suffix, char **found)
{
    if (*found != NULL)
        return VKN_OK;
    char *file = base_format("%s%.*s%s", prefix, (int)length, name, suffix);
    char *path = file != NULL ? base_path_join(folder, file) : NULL;
    free(file);
    if (path == NULL)
        return VKN_ERROR;
    if (base_file_exists(path))
        *found = path;
    else
        free(path);
    return VKN_OK;
}

vkn_status mask_find(const char *folder, const char *image_name, char **path)
{
    size_t length = strlen(image_name), stem = stem_length(image_name);
    *path = NULL;
    vkn_status status = try_name(folder, "", image_name, length, ".png", path);
    if (status == VKN_OK)
        status = try_name(folder, "", image_name, length, "", path);
    if (status == VKN_OK && stem < length)
        status = try_name(folder, "", image_name, stem, ".png", path);
    return status;
}

/* instant-ngp: beside NAME.jpg, white where something moved. */
static vkn_status find_dynamic_mask(struct transforms_frame *frame)
{
    const char *slash = strrchr(frame->image_path, '/');
    const char *name = slash != NULL ? slash + 1 : frame->image_path;
    char *folder = base_path_folder(frame->image_path);
    if (folder == NULL)
        return VKN_ERROR;
    vkn_status status =
        try_name(folder, "dynamic_mask_", name, stem_length(name), ".png", &frame->mask_path);
    free(folder);
    frame->mask_hides = frame->mask_path != NULL;
    return status;
}

vkn_status transforms_find_mask(const struct transforms *transforms, const char *folder,
                                struct transforms_frame *frame)
{
    if (frame->mask_name == NULL) {
        BASE_TRY(find_dynamic_mask(frame));
        return frame->mask_path != NULL ? mask_check(frame->mask_path, frame->width, frame->height)
                                        : VKN_OK;
    }
    frame->mask_path = base_path_join(folder, frame->mask_name);
    if (frame->mask_path == NULL)
        return VKN_ERROR;
    if (!base_file_exists(frame->mask_path))
        return base_fail(VKN_BAD_INPUT, "%s: frames[%zu].mask_path: no file %s in %s",
                         transforms->file, frame->index, frame->mask_name, folder);
    return mask_check(frame->mask_path, frame->width, frame->height);
}

/* ---- reading them ------------------------------------------------------------------------------
 */

/* How many times a mask is larger or smaller than its image; one of the two is 1, both are 0 where
 * no whole factor fits. */
struct factor {
    uint32_t larger, smaller;
};

static struct factor factor_of(const uint32_t mask[2], uint32_t width, uint32_t height)
{
    uint32_t larger = mask[0] / width, smaller = width / mask[0];
    if (larger > 0 && mask[0] == width * larger && mask[1] == height * larger)
        return (struct factor){larger, 1};
    if (smaller > 0 && width == mask[0] * smaller && height == mask[1] * smaller)
        return (struct factor){1, smaller};
    return (struct factor){0, 0};
}

static vkn_status wrong_size(const char *path, const uint32_t mask[2], uint32_t width,
                             uint32_t height)
{
    return base_fail(VKN_BAD_INPUT,
                     "%s: this mask of %ux%u pixels does not fit its image of %ux%u, of which it "
                     "has to be a whole multiple or a whole fraction",
                     path, mask[0], mask[1], width, height);
}

vkn_status mask_check(const char *path, uint32_t width, uint32_t height)
{
    uint32_t size[2];
    BASE_TRY(scene_image_size(path, &size[0], &size[1]));
    return factor_of(size, width, height).larger > 0 ? VKN_OK
                                                     : wrong_size(path, size, width, height);
}

static uint32_t brightness(const uint8_t *pixel)
{
    uint32_t most = pixel[0] > pixel[1] ? pixel[0] : pixel[1];
    return most > pixel[2] ? most : pixel[2];
}

/* Masks are written as 0 and 1 as well as 0 and 255: bright is more than half of the brightest. */
static bool is_bright(const uint8_t *rgba, size_t row_size, struct factor factor, uint32_t x,
                      uint32_t y, uint32_t brightest)
{
    uint32_t n = factor.larger, bright = 0;
    const uint8_t *block =
        rgba + (size_t)4 * (y / factor.smaller * n * row_size + (size_t)(x / factor.smaller) * n);
    for (uint32_t row = 0; row < n; row++)
        for (uint32_t column = 0; column < n; column++)
            bright += 2 * brightness(block + 4 * (row * row_size + column)) > brightest;
    return 2 * (uint64_t)bright >= (uint64_t)n * n;
}

vkn_status mask_read(const char *path, bool hides, uint32_t width, uint32_t height, uint8_t **used)
{
    uint8_t *rgba = NULL;
    uint32_t size[2], brightest = 0;
    *used = NULL;
    BASE_TRY(scene_image_read(path, &rgba, &size[0], &size[1]));
    struct factor factor = factor_of(size, width, height);
    if (factor.larger == 0) {
        free(rgba);
        return wrong_size(path, size, width, height);
    }
    uint8_t *made = base_alloc((size_t)width * height, 1);
    if (made == NULL) {
        free(rgba);
        return VKN_ERROR;
    }
    for (size_t i = 0; i < (size_t)size[0] * size[1]; i++) {
        uint32_t value = brightness(rgba + 4 * i);
        brightest = value > brightest ? value : brightest;
    }
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            made[(size_t)y * width + x] =
                is_bright(rgba, size[0], factor, x, y, brightest) != hides;
    free(rgba);
    *used = made;
    return VKN_OK;
}

void mask_mark_unreached(const struct scene_camera *camera, uint32_t *pixels)
{
    if (scene_camera_invertible(camera))
        return;
    double origin[3], direction[3];
    for (uint32_t y = 0; y < camera->height; y++)
        for (uint32_t x = 0; x < camera->width; x++, pixels++)
            if (!scene_camera_ray(camera, x + 0.5, y + 0.5, origin, direction))
                *pixels = SCENE_IGNORED;
}
