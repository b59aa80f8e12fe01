/* Converts maps of pictures to colours. */
#include "viewer/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint8_t to_byte(double value)
{
    return (uint8_t)lround(255.0 * fmin(fmax(value, 0.0), 1.0));
}

/* ---- palettes -------------------------------------------------------------------------------- */

const char *const picture_palettes[PALETTES + 1] = {"viridis", "inferno", "turbo", "grey", NULL};

/* Coefficients of polynomials in 0..1, by degree, for red, green and blue. */
#define DEGREES 7
static const double palettes[PALETTES][DEGREES][3] = {
    /* Fits of degree 6 to matplotlib's viridis and inferno (S. van der Walt and N. Smith 2015): M.
     * Zucker, "matplotlib colormaps", shadertoy.com/view/WlfXRN, public domain (CC0). */
    [PALETTE_VIRIDIS] = {{0.2777273272, 0.0054073445, 0.3340998053},
                         {0.1050930431, 1.4046135299, 1.3845901626},
                         {-0.3308618287, 0.2148475595, 0.0950951630},
                         {-4.6342304990, -5.7991009734, -19.3324409563},
                         {6.2282699363, 14.1799333668, 56.6905526007},
                         {4.7763849977, -13.7451453777, -65.3530326334},
                         {-5.4354558559, 4.6458526122, 26.3124352496}},
    [PALETTE_INFERNO] = {{0.0002189404, 0.0016510046, -0.0194808984},
                         {0.1065134195, 0.5639564368, 3.9327123889},
                         {11.6024930825, -3.9728539657, -15.9423941063},
                         {-41.7039961314, 17.4363988821, 44.3541451987},
                         {77.1629356994, -33.4023589421, -81.8073092574},
                         {-71.3194282450, 32.6260642640, 73.2095198580},
                         {25.1311262248, -12.2426689524, -23.0703250029}},
    /* A. Mikhailov, "Turbo, an improved rainbow colormap for visualization", 2019, with the
     * polynomial approximation by R. Du. */
    [PALETTE_TURBO] = {{0.13572138, 0.09140261, 0.10667330},
                       {4.61539260, 2.19418839, 12.64194608},
                       {-42.66032258, 4.84296658, -60.58204836},
                       {132.13108234, -14.18503333, 110.36276771},
                       {-152.94239396, 4.27729857, -89.90310912},
                       {59.28637943, 2.82956604, 27.34824973}},
    [PALETTE_GREY] = {{0, 0, 0}, {1, 1, 1}},
};

void picture_palette(enum viewer_palette palette, double at, double rgb[3])
{
    double x = fmin(fmax(at, 0.0), 1.0);
    for (int c = 0; c < 3; c++) {
        double sum = 0;
        for (int degree = DEGREES - 1; degree >= 0; degree--)
            sum = sum * x + palettes[palette][degree][c];
        rgb[c] = fmin(fmax(sum, 0.0), 1.0);
    }
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* Near content has the palette's end. The range does not depend on the picture, so that all tiles
 * match. */
static void depth_color(double depth, const struct frame_request *request, double focus_distance,
                        double rgb[3])
{
    bool given = request->range[1] > request->range[0];
    double near = given ? request->range[0] : 0,
           far = given ? request->range[1] : 2 * focus_distance;
    picture_palette((enum viewer_palette)request->palette,
                    depth > 0 ? (far - depth) / (far - near) : 0.0, rgb);
}

static void pixel_color(const struct vkn_picture *picture, size_t pixel, enum viewer_map map,
                        const struct frame_request *request, double focus_distance, double rgb[3])
{
    double opacity = (double)picture->opacity[pixel];
    double background = request->background == VKN_BACKGROUND_WHITE ? 1.0 : 0.0;
    if (map == MAP_RGB || map == MAP_OPACITY) {
        for (size_t c = 0; c < 3; c++)
            rgb[c] = map == MAP_RGB ? (double)picture->color[3 * pixel + c] : opacity;
        return;
    }
    if (map == MAP_DEPTH)
        depth_color((double)picture->depth[pixel], request, focus_distance, rgb);
    for (size_t c = 0; c < 3; c++) {
        if (map == MAP_NORMAL)
            rgb[c] = 0.5 * ((double)picture->normal[3 * pixel + c] + 1.0);
        rgb[c] = opacity * rgb[c] + (1.0 - opacity) * background;
    }
}

void picture_colors(const struct vkn_picture *picture, const struct frame_request *request,
                    enum viewer_map map, double focus_distance, uint8_t *rgb, size_t pitch)
{
    for (uint32_t y = 0; y < picture->height; y++)
        for (uint32_t x = 0; x < picture->width; x++) {
            double color[3] = {0};
            pixel_color(picture, (size_t)y * picture->width + x, map, request, focus_distance,
                        color);
            for (size_t c = 0; c < 3; c++)
                rgb[y * pitch + 3 * x + c] = to_byte(color[c]);
        }
}
