/* Finds and reads masks: images that select the used pixels of a view. */
#include <stdlib.h>
#include <string.h>

#include "scene/find.h"
#include "scene/image.h"
#include "scene/transforms.h"

/* ---- finding masks --------------------------------------------------------------------------- */

static size_t stem_length(const char *name)
{
    const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');
    return dot != NULL && (slash == NULL || dot > slash) ? (size_t)(dot - name) : strlen(name);
}

/* Sets *path to the found mask. Two masks for one image are an error. */
static vkn_status use_found_mask(const char *image_name, const struct found *found, char **path)
{
    *path = found->path;
    if (found->other == NULL)
        return VKN_OK;
    base_fail(VKN_BAD_INPUT, "%s: both %s and %s may be its mask", image_name, found->path,
              found->other);
    free(found->path);
    free(found->other);
    *path = NULL;
    return VKN_BAD_INPUT;
}

vkn_status mask_find(struct finder *masks, const char *image_name, char **path)
{
    struct found found = {0};
    *path = NULL;
    char *png = base_format("%s.png", image_name);
    vkn_status status = png != NULL ? finder_find_exact(masks, png, &found) : VKN_ERROR;
    free(png);
    if (status == VKN_OK && found.path == NULL)
        status = finder_find_exact(masks, image_name, &found);
    char *other = base_format("%.*s.png", (int)stem_length(image_name), image_name);
    if (status == VKN_OK && found.path == NULL)
        status = other != NULL ? finder_find_exact(masks, other, &found) : VKN_ERROR;
    free(other);
    if (status == VKN_OK && found.path == NULL)
        status = finder_find_as_written(masks, image_name, &found);
    return status == VKN_OK ? use_found_mask(image_name, &found, path) : status;
}

/* Finds instant-ngp's mask, white where objects move, in the folder of the image NAME.jpg. */
static vkn_status find_dynamic_mask(struct finder *finder, struct transforms_frame *frame)
{
    const char *slash = strrchr(frame->image_path, '/');
    const char *image = slash != NULL ? slash + 1 : frame->image_path;
    char *name = base_format("dynamic_mask_%.*s.png", (int)stem_length(image), image);
    char *folder = base_path_folder(frame->image_path);
    struct found found = {0};
    vkn_status status = VKN_ERROR;
    if (folder != NULL && name != NULL)
        status = finder_find_in_folder(finder, folder, name, &found);
    free(folder);
    free(name);
    if (status == VKN_OK)
        status = use_found_mask(frame->image_path, &found, &frame->mask_path);
    frame->mask_inverted = frame->mask_path != NULL;
    return status;
}

vkn_status transforms_find_mask(const struct transforms *transforms, struct finder *finder,
                                const char *folder, struct transforms_frame *frame)
{
    if (frame->mask_name == NULL)
        BASE_TRY(find_dynamic_mask(finder, frame));
    else if (frame->mask_path == NULL)
        return base_fail(VKN_BAD_INPUT, "%s: frames[%zu].mask_path: no file %s in %s",
                         transforms->file, frame->index, frame->mask_name, folder);
    return frame->mask_path != NULL ? mask_check(frame) : VKN_OK;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Integer factors by which a mask is larger and smaller than its image. At least one factor is 1;
 * both are 0 when the sizes are not integer multiples. */
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
                     "%s: this mask of %ux%u pixels does not fit its image of %ux%u: its size must "
                     "be an integer multiple or fraction of the image's",
                     path, mask[0], mask[1], width, height);
}

vkn_status mask_check(const struct transforms_frame *frame)
{
    uint32_t size[2], width = frame->width, height = frame->height;
    BASE_TRY(scene_image_size(frame->mask_path, &size[0], &size[1]));
    bool fits = factor_of(size, width, height).larger > 0 ||
                (frame->rotated && factor_of(size, height, width).larger > 0);
    return fits ? VKN_OK : wrong_size(frame->mask_path, size, width, height);
}

/* ---- used pixels ----------------------------------------------------------------------------- */

#define GREY_DIVISOR 8u /* a drawn mask has at most 1 / GREY_DIVISOR of grey pixels */

/* Thresholds and rules for a mask's pixels. */
struct rules {
    uint32_t brightest, most_opaque; /* largest value and largest alpha */
    bool by_alpha; /* alpha selects the used pixels; colours matter only if `drawn` */
    bool drawn;    /* visible colours are black and white: used pixels must also be bright */
};

static bool is_visible(const struct image_mask *pixel, const struct rules *rules)
{
    return 2u * pixel->alpha > rules->most_opaque;
}

static uint32_t brightest_of(const struct image_mask *pixels, size_t count)
{
    uint32_t brightest = 0;
    for (size_t i = 0; i < count; i++)
        brightest = pixels[i].value > brightest ? pixels[i].value : brightest;
    return brightest;
}

static bool is_one_color(const struct image_mask *pixels, size_t count)
{
    size_t same = 1;
    while (same < count && pixels[same].value == pixels[0].value)
        same++;
    return same >= count;
}

/* Returns whether the visible pixels are black and white, as in drawn masks. */
static bool is_drawn(const struct image_mask *pixels, size_t count, const struct rules *rules)
{
    size_t visible = 0, dark = 0, grey = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_visible(&pixels[i], rules))
            continue;
        uint32_t four = 4u * pixels[i].value;
        visible++;
        dark += four <= rules->brightest ? 1 : 0;
        grey += four > rules->brightest && four < 3 * rules->brightest ? 1 : 0;
    }
    return rules->brightest > 0 && dark > 0 && grey <= visible / GREY_DIVISOR;
}

/* Chooses the rules. Alpha selects the used pixels if only some pixels exceed half of the largest
 * alpha, or if a mask of one colour is fully transparent. If the colours vary as well, black and
 * white visible pixels mean a drawn mask (GIMP), other colours a cut-out photograph (rembg). */
static struct rules choose_rules(const struct image_mask *pixels, size_t count)
{
    struct rules rules = {0};
    size_t visible = 0;
    for (size_t i = 0; i < count; i++)
        rules.most_opaque =
            pixels[i].alpha > rules.most_opaque ? pixels[i].alpha : rules.most_opaque;
    for (size_t i = 0; i < count; i++) {
        bool seen = is_visible(&pixels[i], &rules);
        visible += seen ? 1 : 0;
        rules.brightest =
            seen && pixels[i].value > rules.brightest ? pixels[i].value : rules.brightest;
    }
    rules.by_alpha = visible > 0 ? visible < count : is_one_color(pixels, count);
    if (rules.by_alpha)
        rules.drawn = is_drawn(pixels, count, &rules);
    else
        rules.brightest = brightest_of(pixels, count);
    return rules;
}

/* Returns whether a mask pixel is set. Masks have values 0 and 1, or 0 and 255: bright means more
 * than half of the brightest value. */
static bool is_set(const struct image_mask *pixel, const struct rules *rules)
{
    bool bright = 2u * pixel->value > rules->brightest;
    if (!rules->by_alpha)
        return bright;
    return is_visible(pixel, rules) && (bright || !rules->drawn);
}

/* Returns whether the mask, which may have another size, is set at the image's pixel (x, y). */
static bool is_set_at(const struct image_mask *pixels, size_t row_size, struct factor factor,
                      uint32_t x, uint32_t y, const struct rules *rules)
{
    uint32_t n = factor.larger, set = 0;
    const struct image_mask *block =
        pixels + (y / factor.smaller * n * row_size + (size_t)(x / factor.smaller) * n);
    for (uint32_t row = 0; row < n; row++)
        for (uint32_t column = 0; column < n; column++)
            set += is_set(block + (row * row_size + column), rules);
    return 2 * (uint64_t)set >= (uint64_t)n * n;
}

/* Returns one byte per pixel of the image: 1 if used. */
static uint8_t *expand_mask(const struct image_mask *pixels, const uint32_t size[2], bool inverted,
                            uint32_t width, uint32_t height)
{
    const struct factor factor = factor_of(size, width, height);
    const struct rules rules = choose_rules(pixels, (size_t)size[0] * size[1]);
    uint8_t *used = base_alloc((size_t)width * height, 1);
    for (uint32_t y = 0; y < height && used != NULL; y++)
        for (uint32_t x = 0; x < width; x++)
            used[(size_t)y * width + x] =
                is_set_at(pixels, size[0], factor, x, y, &rules) != inverted;
    return used;
}

vkn_status mask_read(const char *path, bool inverted, unsigned applied_orientation, uint32_t width,
                     uint32_t height, uint8_t **used)
{
    struct image_mask *pixels = NULL;
    uint32_t size[2];
    *used = NULL;
    BASE_TRY(image_read_mask(path, &pixels, &size[0], &size[1]));
    bool fits = factor_of(size, width, height).larger > 0;
    bool is_rotated = !fits && applied_orientation >= IMAGE_FIRST_TRANSPOSED &&
                      factor_of(size, height, width).larger > 0;
    if (!fits && !is_rotated) {
        free(pixels);
        return wrong_size(path, size, width, height);
    }
    uint8_t *made = is_rotated ? expand_mask(pixels, size, inverted, height, width)
                               : expand_mask(pixels, size, inverted, width, height);
    free(pixels);
    *used = made;
    if (made != NULL && is_rotated) {
        *used = image_apply_orientation(made, 1, applied_orientation, &height, &width);
        free(made);
    }
    return *used != NULL ? VKN_OK : VKN_ERROR;
}

void mask_mark_outside_lens(const struct scene_camera *camera, uint32_t *pixels)
{
    if (scene_camera_invertible(camera))
        return;
    double origin[3], direction[3];
    for (uint32_t y = 0; y < camera->height; y++)
        for (uint32_t x = 0; x < camera->width; x++, pixels++)
            if (!scene_camera_ray(camera, x + 0.5, y + 0.5, origin, direction))
                *pixels = SCENE_IGNORED;
}
