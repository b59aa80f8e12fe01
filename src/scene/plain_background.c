/* Finds the plain background of images without alpha: one colour along most images' borders. */
#include <stdio.h>
#include <stdlib.h>

#include "scene/scene.h"

#define MOST_VIEWS   16u  /* evenly spaced training views that are read */
#define LEAST_VIEWS  3u   /* fewer images do not tell a background from an object */
#define SMALL_IMAGE  256u /* smallest longer side of a reduced image, pixels */
#define TOLERANCE    6    /* largest difference of a channel, of 255: for the noise of JPEG */
#define BORDER_SHARE 0.8  /* least share of a border's used pixels that have the colour */
#define VIEW_SHARE   0.75 /* least share of images whose borders have the colour */
#define NEAR_LIMIT   3    /* largest difference from white or black of a channel, of 255 */

/* The used pixels along the border of a reduced image; none if the image cannot be read. */
struct border {
    uint32_t *pixels;
    size_t count;
    bool has_alpha; /* any pixel of the image has alpha < 255 */
};

struct sample {
    const struct vkn_scene *scene;
    struct border borders[MOST_VIEWS];
    size_t count;
};

static void copy_border(const uint32_t *pixels, uint32_t width, uint32_t height,
                        struct border *border)
{
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            uint32_t pixel = pixels[(size_t)y * width + x];
            bool is_outer = x == 0 || y == 0 || x + 1 == width || y + 1 == height;
            if (pixel == SCENE_IGNORED)
                continue;
            border->has_alpha = border->has_alpha || pixel >> 24 < 255;
            if (is_outer)
                border->pixels[border->count++] = pixel;
        }
}

uint32_t *scene_read_small(const struct vkn_scene *scene, size_t view, uint32_t longest,
                           struct scene_camera *camera)
{
    const struct scene_camera *given = &scene->splits[SCENE_TRAIN].cameras[view];
    uint32_t width = given->width, height = given->height;
    uint32_t longer = width > height ? width : height, shorter = width + height - longer;
    uint32_t factor = longer / longest > 1 ? longer / longest : 1;
    factor = factor < shorter ? factor : shorter;
    *camera = scene_shrink_camera(given, factor);
    uint32_t *pixels = base_alloc((size_t)camera->width * camera->height, sizeof *pixels);
    if (pixels && scene_read_view(scene, SCENE_TRAIN, view, factor, pixels) == VKN_OK)
        return pixels;
    free(pixels);
    return NULL;
}

/* Reads a view's border. Ignores errors, since loading reports broken images. */
static vkn_status read_border(void *context, size_t number)
{
    BASE_KEEP_ERROR;
    struct sample *sample = context;
    struct border *border = &sample->borders[number];
    size_t view = number * sample->scene->splits[SCENE_TRAIN].camera_count / sample->count;
    struct scene_camera camera;
    uint32_t *pixels = scene_read_small(sample->scene, view, SMALL_IMAGE, &camera);
    border->pixels = base_alloc(2 * ((size_t)camera.width + camera.height), sizeof *border->pixels);
    if (pixels && border->pixels)
        copy_border(pixels, camera.width, camera.height, border);
    free(pixels);
    return VKN_OK;
}

static int channel_of(uint32_t pixel, unsigned channel)
{
    return (int)(pixel >> (8 * channel) & 255);
}

/* Returns the median of a channel over all borders. */
static uint8_t median_of(const struct sample *sample, unsigned channel)
{
    size_t histogram[256] = {0}, total = 0, below = 0;
    for (size_t i = 0; i < sample->count; i++)
        for (size_t p = 0; p < sample->borders[i].count; p++, total++)
            histogram[channel_of(sample->borders[i].pixels[p], channel)]++;
    unsigned value = 0;
    while (value < 255 && 2 * (below + histogram[value]) <= total)
        below += histogram[value++];
    return (uint8_t)value;
}

static bool has_color(const struct border *border, const uint8_t color[3])
{
    size_t equal = 0;
    for (size_t p = 0; p < border->count; p++) {
        bool is_equal = true;
        for (unsigned c = 0; c < 3; c++)
            is_equal =
                is_equal && abs(channel_of(border->pixels[p], c) - (int)color[c]) <= TOLERANCE;
        equal += is_equal ? 1 : 0;
    }
    return (double)equal >= BORDER_SHARE * (double)border->count;
}

static void judge(const struct sample *sample, struct scene_background *background)
{
    for (unsigned c = 0; c < 3; c++)
        background->color[c] = median_of(sample, c);
    for (size_t i = 0; i < sample->count; i++) {
        const struct border *border = &sample->borders[i];
        background->has_alpha = background->has_alpha || border->has_alpha;
        if (background->has_alpha)
            return;
        background->views += border->count > 0 ? 1 : 0;
        background->plain_views +=
            border->count > 0 && has_color(border, background->color) ? 1 : 0;
    }
    background->is_plain =
        background->views >= LEAST_VIEWS &&
        (double)background->plain_views >= VIEW_SHARE * (double)background->views;
}

void scene_find_background(struct vkn_scene *scene)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    struct sample sample = {.scene = scene, .count = train->camera_count};
    scene->background = (struct scene_background){0};
    if (sample.count < LEAST_VIEWS || (train->pixels && train->has_alpha))
        return;
    sample.count = sample.count < MOST_VIEWS ? sample.count : MOST_VIEWS;
    (void)base_parallel(sample.count, read_border, &sample, NULL);
    judge(&sample, &scene->background);
    for (size_t i = 0; i < sample.count; i++)
        free(sample.borders[i].pixels);
}

enum vkn_background scene_plain_background(const struct vkn_scene *scene)
{
    unsigned white = 0, black = 0;
    for (unsigned c = 0; c < 3; c++) {
        white += scene->background.color[c] >= 255 - NEAR_LIMIT ? 1 : 0;
        black += scene->background.color[c] <= NEAR_LIMIT ? 1 : 0;
    }
    return !scene->background.is_plain ? VKN_BACKGROUND_DEFAULT
           : white == 3                ? VKN_BACKGROUND_WHITE
           : black == 3                ? VKN_BACKGROUND_BLACK
                                       : VKN_BACKGROUND_DEFAULT;
}

bool scene_describe_background(const struct vkn_scene *scene, char text[128])
{
    const struct scene_background *background = &scene->background;
    enum vkn_background named = scene_plain_background(scene);
    snprintf(
        text, 128, "plain %s%sbackground, #%02x%02x%02x along the borders of %zu of %zu images",
        named ? config_background_names[named] : "", named ? " " : "", background->color[0],
        background->color[1], background->color[2], background->plain_views, background->views);
    return background->is_plain;
}
