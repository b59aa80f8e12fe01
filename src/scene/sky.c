/* Finds out whether photographs show a sky: whether colours above the horizon depend on the
 * direction alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "scene/scene.h"

#define MOST_VIEWS  32u  /* evenly spaced training views that are compared */
#define LEAST_VIEWS 8u   /* fewer images do not tell a sky from contents */
#define SMALL_IMAGE 64u  /* smallest longer side of a reduced image, pixels */
#define EDGE        32u  /* bins along an edge of the octahedral map of directions */
#define BIN_VIEWS   3    /* fewest views of a bin that counts */
#define LEVELS      64u  /* of a channel in histograms */
#define LOWEST      0.02 /* sine of the height of a pixel that counts */
#define TOLERANCE   26   /* of a channel, of 255: what a training lets pass as sky */
/* A made-up outdoor capture has 0.93 of 0.62; four indoor captures have 0.69 of 0.23 at most. */
#define SAME        0.8  /* least share that is a sky */
#define COMPARED    0.05 /* least share of the pixels that tells */

/* A pixel above the horizon. */
struct pixel {
    uint16_t bin;
    uint8_t color[3];
};

struct seen {
    struct pixel *pixels;
    size_t count, all; /* pixels above the horizon; pixels of the image */
};

struct sample {
    const struct vkn_scene *scene;
    double up[3];
    struct seen views[MOST_VIEWS];
    size_t count;
};

/* Colours in a range of directions. */
struct bin {
    uint32_t histograms[3][LEVELS], count, views; /* views: bits */
    int median[3];
};

static uint16_t bin_of(const double d[3])
{
    double sum = fabs(d[0]) + fabs(d[1]) + fabs(d[2]), x = d[0] / sum, y = d[1] / sum;
    if (d[2] < 0) {
        double outer = copysign(1 - fabs(y), x);
        y = copysign(1 - fabs(x), y);
        x = outer;
    }
    double column = fmin((x + 1) / 2 * EDGE, EDGE - 1), row = fmin((y + 1) / 2 * EDGE, EDGE - 1);
    return (uint16_t)((unsigned)row * EDGE + (unsigned)column);
}

/* Keeps the opaque pixels of a reduced image that are above the horizon. */
static void keep_pixels(const struct sample *sample, const struct scene_camera *camera,
                        const uint32_t *pixels, struct seen *seen)
{
    seen->all = (size_t)camera->width * camera->height;
    for (size_t i = 0; i < seen->all; i++) {
        double origin[3], direction[3], height = 0;
        const size_t row = i / camera->width;
        if (pixels[i] == SCENE_IGNORED || pixels[i] >> 24 < 255 ||
            !scene_camera_ray(camera, (double)(i % camera->width) + 0.5, (double)row + 0.5, origin,
                              direction))
            continue;
        for (int k = 0; k < 3; k++)
            height += sample->up[k] * direction[k];
        if (height < LOWEST)
            continue;
        struct pixel *pixel = &seen->pixels[seen->count++];
        pixel->bin = bin_of(direction);
        for (int c = 0; c < 3; c++)
            pixel->color[c] = (uint8_t)(pixels[i] >> (8 * c));
    }
}

/* Reads a view. Ignores errors, since loading reports broken images. */
static vkn_status read_view(void *context, size_t number)
{
    BASE_KEEP_ERROR;
    struct sample *sample = context;
    struct seen *seen = &sample->views[number];
    size_t view = number * sample->scene->splits[SCENE_TRAIN].camera_count / sample->count;
    struct scene_camera camera;
    uint32_t *pixels = scene_read_small(sample->scene, view, SMALL_IMAGE, &camera);
    seen->pixels = base_alloc((size_t)camera.width * camera.height, sizeof *seen->pixels);
    if (pixels && seen->pixels)
        keep_pixels(sample, &camera, pixels, seen);
    free(pixels);
    return VKN_OK;
}

static void fill_bins(const struct sample *sample, struct bin *bins)
{
    for (size_t v = 0; v < sample->count; v++)
        for (size_t i = 0; i < sample->views[v].count; i++) {
            const struct pixel *pixel = &sample->views[v].pixels[i];
            struct bin *bin = &bins[pixel->bin];
            bin->count++;
            bin->views |= 1u << v;
            for (int c = 0; c < 3; c++)
                bin->histograms[c][pixel->color[c] * LEVELS / 256]++;
        }
    for (size_t b = 0; b < (size_t)EDGE * EDGE; b++)
        for (int c = 0; c < 3; c++) {
            uint32_t below = 0, level = 0;
            while (level + 1 < LEVELS &&
                   2 * (below + bins[b].histograms[c][level]) <= bins[b].count)
                below += bins[b].histograms[c][level++];
            bins[b].median[c] = (int)(256 / LEVELS * level + 128 / LEVELS);
        }
}

/* Sets the share of the pixels in bins of several views that have their bin's median colour, and
 * the share of these pixels of the bins in all pixels. */
static void judge(const struct sample *sample, const struct bin *bins, struct scene_sky *sky)
{
    size_t same = 0, compared = 0, all = 0;
    for (size_t v = 0; v < sample->count; v++) {
        all += sample->views[v].all;
        for (size_t i = 0; i < sample->views[v].count; i++) {
            const struct pixel *pixel = &sample->views[v].pixels[i];
            const struct bin *bin = &bins[pixel->bin];
            bool is_same = true;
            if (__builtin_popcount(bin->views) < BIN_VIEWS)
                continue;
            for (int c = 0; c < 3; c++)
                is_same = is_same && abs(pixel->color[c] - bin->median[c]) <= TOLERANCE;
            compared++;
            same += is_same;
        }
    }
    if (compared > 0) {
        sky->same = (double)same / (double)compared;
        sky->compared = (double)compared / (double)all;
    }
}

void scene_find_sky(struct vkn_scene *scene)
{
    struct sample sample = {.scene = scene, .count = scene->splits[SCENE_TRAIN].camera_count};
    if (scene->sky.is_known || sample.count < LEAST_VIEWS)
        return;
    scene->sky.is_known = true;
    sample.count = sample.count < MOST_VIEWS ? sample.count : MOST_VIEWS;
    scene_up(&scene->splits[SCENE_TRAIN], sample.up);
    struct bin *bins = base_alloc((size_t)EDGE * EDGE, sizeof *bins);
    if (bins) {
        (void)base_parallel(sample.count, read_view, &sample, NULL);
        fill_bins(&sample, bins);
        judge(&sample, bins, &scene->sky);
    }
    for (size_t v = 0; v < sample.count; v++)
        free(sample.views[v].pixels);
    free(bins);
}

bool scene_shows_sky(const struct vkn_scene *scene)
{
    return scene->sky.same > SAME && scene->sky.compared > COMPARED && !scene->background.has_alpha;
}

bool scene_describe_sky(const struct vkn_scene *scene, char text[128])
{
    snprintf(
        text, 128,
        "images show a sky: %.0f %% of what is above the horizon depends on the direction alone",
        100 * scene->sky.same);
    return scene_shows_sky(scene);
}
