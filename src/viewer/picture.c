/* Converts maps of pictures to colours, and scales pictures up. */
#include "viewer/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint8_t to_byte(double value)
{
    return (uint8_t)lround(255.0 * fmin(fmax(value, 0.0), 1.0));
}

/* Maps 0..1 from black to white through blue and green with perceptually uniform brightness: D. A.
 * Green, "A colour scheme for the display of astronomical intensity images", 2011 (cubehelix),
 * start 0.5, -1.5 rotations, hue 1. */
static void cubehelix(double brightness, double rgb[3])
{
    const double pi = 3.14159265358979323846;
    double angle = 2.0 * pi * (0.5 / 3.0 + 1.0 - 1.5 * brightness);
    double amplitude = 0.5 * brightness * (1.0 - brightness);
    rgb[0] = brightness + amplitude * (-0.14861 * cos(angle) + 1.78277 * sin(angle));
    rgb[1] = brightness + amplitude * (-0.29227 * cos(angle) - 0.90649 * sin(angle));
    rgb[2] = brightness + amplitude * 1.97294 * cos(angle);
}

/* Maps depth to brightness 1 at the camera, 1/2 at `focus_distance`, 0 at infinity. The scale does
 * not depend on the picture, so that all tiles match. */
static void depth_color(double depth, double focus_distance, double rgb[3])
{
    cubehelix(depth > 0 ? focus_distance / (focus_distance + depth) : 0.0, rgb);
}

static void pixel_color(const struct vkn_picture *picture, size_t pixel, enum viewer_map map,
                        double focus_distance, double background, double rgb[3])
{
    double opacity = (double)picture->opacity[pixel];
    if (map == MAP_RGB || map == MAP_OPACITY) {
        for (size_t c = 0; c < 3; c++)
            rgb[c] = map == MAP_RGB ? (double)picture->color[3 * pixel + c] : opacity;
        return;
    }
    if (map == MAP_DEPTH)
        depth_color((double)picture->depth[pixel], focus_distance, rgb);
    for (size_t c = 0; c < 3; c++) {
        if (map == MAP_NORMAL)
            rgb[c] = 0.5 * ((double)picture->normal[3 * pixel + c] + 1.0);
        rgb[c] = opacity * rgb[c] + (1.0 - opacity) * background;
    }
}

void picture_colors(const struct vkn_picture *picture, const struct frame_request *request,
                    double focus_distance, uint8_t *rgb, size_t pitch)
{
    double background = request->background == VKN_BACKGROUND_WHITE ? 1.0 : 0.0;
    for (uint32_t y = 0; y < picture->height; y++)
        for (uint32_t x = 0; x < picture->width; x++) {
            double color[3] = {0};
            pixel_color(picture, (size_t)y * picture->width + x, (enum viewer_map)request->map,
                        focus_distance, background, color);
            for (size_t c = 0; c < 3; c++)
                rgb[y * pitch + 3 * x + c] = to_byte(color[c]);
        }
}
