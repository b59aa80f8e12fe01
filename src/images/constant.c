/* Computes the least error of a constant colour on the training views. A training that has learnt
 * anything has a lower error. */
#include <stdlib.h>

#include "images/images.h"

#define MOST_VIEWS  64u   /* views that are used */
#define FEW_VIEWS   4u    /* views that are used if they have to be decoded */
#define MOST_PIXELS 4096u /* of each view */
#define SMALL_EDGE  256u  /* pixels: shorter side of a view that is decoded */

/* Sums over pixels, of premultiplied colours and of the background's share (1 - alpha). */
struct sums {
    double count, share, share_square;
    double color[3], color_square[3], color_share[3];
};

static void add_pixel(struct sums *sums, uint32_t pixel)
{
    double share = 1.0 - (double)(pixel >> 24) / 255.0;
    if (pixel == SCENE_IGNORED)
        return;
    sums->count++;
    sums->share += share;
    sums->share_square += share * share;
    for (unsigned c = 0; c < 3; c++) {
        double color = (double)(pixel >> 8 * c & 255) / 255.0;
        sums->color[c] += color;
        sums->color_square[c] += color * color;
        sums->color_share[c] += color * share;
    }
}

static void add_pixels(struct sums *sums, const uint32_t *pixels, uint64_t count)
{
    uint64_t stride = count / MOST_PIXELS | 1; /* odd, so that the columns vary */
    for (uint64_t i = 0; i < count; i += stride)
        add_pixel(sums, pixels[i]);
}

/* Adds a view's pixels; a view that has to be decoded is downscaled. */
static vkn_status add_view(const struct vkn_scene *scene, size_t view, struct sums *sums)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    const struct scene_camera *camera = &train->cameras[view];
    uint64_t width = camera->width, height = camera->height;
    if (train->pixels) {
        add_pixels(sums, train->pixels + camera->first_pixel, width * height);
        return VKN_OK;
    }
    uint32_t shrink = (uint32_t)(width < height ? width : height) / SMALL_EDGE;
    shrink = shrink > 0 ? shrink : 1;
    uint64_t count = (width / shrink) * (height / shrink);
    uint32_t *pixels = base_alloc(count, sizeof *pixels);
    vkn_status status =
        pixels ? scene_read_view(scene, SCENE_TRAIN, view, shrink, pixels) : VKN_ERROR;
    if (status == VKN_OK)
        add_pixels(sums, pixels, count);
    free(pixels);
    return status;
}

/* Returns the least mean squared error of a constant colour + share * background, for backgrounds
 * with this mean and mean square. */
static double least_error(const struct sums *sums, double mean, double mean_square)
{
    double n = sums->count, error = 0.0, share = sums->share / n;
    double share_variance = sums->share_square / n - share * share;
    for (unsigned c = 0; c < 3; c++) {
        double color = sums->color[c] / n;
        error += sums->color_square[c] / n - color * color;
        error += 2.0 * mean * (sums->color_share[c] / n - color * share);
    }
    return error / 3.0 + mean_square * share_variance;
}

double images_constant_error(const struct vkn_scene *scene, enum vkn_background background)
{
    BASE_KEEP_ERROR;
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    size_t views = scene_share_count(train->share, train->camera_count);
    size_t most = train->pixels ? MOST_VIEWS : FEW_VIEWS, stride = views / most + 1;
    struct sums sums = {0};
    for (size_t i = 0; i < views; i += stride)
        if (add_view(scene, scene_share_view(train->share, i), &sums) != VKN_OK)
            return 0.0; /* training will read the image again and report the error */
    if (!(sums.count > 0.0))
        return 0.0;
    return background == VKN_BACKGROUND_BLACK   ? least_error(&sums, 0.0, 0.0)
           : background == VKN_BACKGROUND_WHITE ? least_error(&sums, 1.0, 1.0)
                                                : least_error(&sums, 0.5, 1.0 / 3.0);
}
