/* Makes photographs for tests of vknerf prepare: views of a room's corner, and rotated pictures.
 * Include after cmocka.h. */
#ifndef TESTS_PHOTOGRAPHS_H
#define TESTS_PHOTOGRAPHS_H

#include <math.h>

#include <zlib.h>

#include "scene/image.h"
#include "scenes.h"

/* ---- a corner of a room ---------------------------------------------------------------------- */

#define ROOM_VIEWS  7
#define VIEW_WIDTH  320
#define VIEW_HEIGHT 240
#define VIEW_FOCAL  300.0

static inline double hash(int plane, int octave, int u, int v)
{
    uint32_t x = (uint32_t)plane * 0x9e3779b9u + (uint32_t)octave * 0x85ebca6bu;
    x = (x ^ (uint32_t)u) * 0xc2b2ae35u;
    x = (x ^ x >> 15 ^ (uint32_t)v) * 0x27d4eb2fu;
    return (double)((x ^ x >> 13) * 0x165667b1u >> 8) / (1 << 24);
}

/* Returns noise of four sizes, the smallest of a few pixels. */
static inline double texture(int plane, double u, double v)
{
    double sum = 0, cell = 0.4;
    for (int octave = 0; octave < 4; octave++) {
        double x = u / cell, y = v / cell, fx = x - floor(x), fy = y - floor(y);
        int i = (int)floor(x), k = (int)floor(y);
        double low = hash(plane, octave, i, k) * (1 - fx) + hash(plane, octave, i + 1, k) * fx;
        double high =
            hash(plane, octave, i, k + 1) * (1 - fx) + hash(plane, octave, i + 1, k + 1) * fx;
        sum += (low * (1 - fy) + high * fy) * 0.25;
        cell *= 0.5;
    }
    return sum;
}

/* Returns position and axes (rows right, down, forwards) of a camera that looks into the corner. */
static inline void view_of(int index, double axes[3][3], double position[3])
{
    double angle = (22 + 40.0 * index / (ROOM_VIEWS - 1)) * 3.14159265358979 / 180;
    const double target[3] = {0.5, 0.5, 0.4};
    position[0] = 2.6 * cos(angle);
    position[1] = 2.6 * sin(angle);
    position[2] = 1.0 + 0.25 * (index % 3);
    double length = 0;
    for (int i = 0; i < 3; i++)
        length += (target[i] - position[i]) * (target[i] - position[i]);
    for (int i = 0; i < 3; i++)
        axes[2][i] = (target[i] - position[i]) / sqrt(length);
    double flat = hypot(axes[2][0], axes[2][1]);
    const double right[3] = {axes[2][1] / flat, -axes[2][0] / flat, 0};
    memcpy(axes[0], right, sizeof(right));
    for (int i = 0; i < 3; i++)
        axes[1][i] =
            axes[2][(i + 1) % 3] * right[(i + 2) % 3] - axes[2][(i + 2) % 3] * right[(i + 1) % 3];
}

/* Returns the grey of the nearest of the planes x = 0, y = 0 and z = 0. */
static inline double shade(double axes[3][3], const double position[3], double x, double y)
{
    double direction[3], nearest = 1e9, value = 0;
    for (int i = 0; i < 3; i++)
        direction[i] = axes[0][i] * x + axes[1][i] * y + axes[2][i];
    for (int plane = 0; plane < 3; plane++) {
        double t = -position[plane] / direction[plane];
        if (direction[plane] >= 0 || t >= nearest)
            continue;
        int u = (plane + 1) % 3, v = (plane + 2) % 3;
        nearest = t;
        value = texture(plane, position[u] + t * direction[u], position[v] + t * direction[v]);
    }
    return value;
}

static inline void write_view(const char *path, int index)
{
    static uint8_t pixels[VIEW_WIDTH * VIEW_HEIGHT];
    double axes[3][3], position[3];
    view_of(index, axes, position);
    for (int i = 0; i < VIEW_WIDTH * VIEW_HEIGHT; i++) {
        double sum = 0;
        for (int part = 0; part < 4; part++) {
            int column = 4 * (i % VIEW_WIDTH) + 1 + 2 * (part % 2) - 2 * VIEW_WIDTH; /* quarters */
            int row = 4 * (i / VIEW_WIDTH) + 1 + 2 * (part / 2) - 2 * VIEW_HEIGHT;
            sum += shade(axes, position, column / (4 * VIEW_FOCAL), row / (4 * VIEW_FOCAL));
        }
        pixels[i] = (uint8_t)(255 * sum / 4);
    }
    assert_ok(scene_image_write_png(path, pixels, VIEW_WIDTH, VIEW_HEIGHT, 1));
}

static inline void write_views(const char *folder)
{
    for (int i = 0; i < ROOM_VIEWS; i++) {
        char path[512];
        snprintf(path, sizeof(path), "%s/view_%d.png", folder, i);
        write_view(path, i);
    }
}

/* ---- EXIF ------------------------------------------------------------------------------------ */

static inline void put(uint8_t *at, uint32_t value, size_t bytes, bool little)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * (little ? i : bytes - 1 - i));
}

/* Makes the beginning of a JPEG with this orientation in its EXIF. */
static inline size_t make_exif(uint8_t data[128], unsigned orientation, bool little)
{
    static const uint8_t start[] = {0xff, 0xd8, 0xff, 0xe1, 0, 0, 'E', 'x', 'i', 'f', 0, 0};
    uint8_t *tiff = data + sizeof(start);
    size_t size = 8 + 2 + 24 + 4 + 2 + 48 + 4 + 24;
    memset(data, 0, 128);
    memcpy(data, start, sizeof(start));
    put(data + 4, (uint32_t)(size + 8), 2, false);
    memcpy(tiff, little ? "II" : "MM", 2);
    put(tiff + 2, 42, 2, little);
    put(tiff + 4, 8, 4, little);
    put(tiff + 8, 2, 2, little);
    put(tiff + 10, 0x112, 2, little);
    put(tiff + 12, 3, 2, little);
    put(tiff + 14, 1, 4, little);
    put(tiff + 18, orientation, 2, little);
    put(tiff + 22, 0x8769, 2, little);
    put(tiff + 24, 4, 2, little);
    put(tiff + 26, 1, 4, little);
    put(tiff + 30, 38, 4, little);
    /* Exposure time 1/50 s, f-number 2.8, ISO speed 400, focal length 4.25 mm. */
    static const uint32_t tags[4][4] = {
        {0x829a, 5, 1, 50}, {0x829d, 5, 28, 10}, {0x8827, 3, 400, 0}, {0x920a, 5, 425, 100}};
    uint8_t *value = tiff + 38 + 2 + 48 + 4;
    put(tiff + 38, 4, 2, little);
    for (int i = 0; i < 4; i++) {
        uint8_t *entry = tiff + 40 + (ptrdiff_t)12 * i;
        bool is_rational = tags[i][1] == 5;
        put(entry, tags[i][0], 2, little);
        put(entry + 2, tags[i][1], 2, little);
        put(entry + 4, 1, 4, little);
        put(entry + 8, is_rational ? (uint32_t)(value - tiff) : tags[i][2], is_rational ? 4 : 2,
            little);
        if (is_rational) {
            put(value, tags[i][2], 4, little);
            put(value + 4, tags[i][3], 4, little);
            value += 8;
        }
    }
    return sizeof(start) + size;
}

/* Writes the picture of temporary_picture() with a chunk eXIf after its header. */
static inline char *tagged_picture(struct temporary *folder, const char *name, uint32_t width,
                                   uint32_t height, unsigned orientation)
{
    uint8_t exif[128], chunk[128];
    size_t size = make_exif(exif, orientation, orientation % 2 == 0) - 12, whole = 0;
    char *path = temporary_picture(folder, name, width, height, 7), *data = NULL;
    struct base_text text = {0};
    put(chunk, (uint32_t)size, 4, false);
    memcpy(chunk + 4, "eXIf", 4);
    memcpy(chunk + 8, exif + 12, size);
    put(chunk + 8 + size, (uint32_t)crc32(0, chunk + 4, (uInt)size + 4), 4, false);
    assert_ok(base_file_read(path, 1 << 20, &data, &whole));
    base_text_add_bytes(&text, data, 33);
    base_text_add_bytes(&text, chunk, size + 12);
    base_text_add_bytes(&text, data + 33, whole - 33);
    temporary_file(folder, name, text.data, text.size);
    free(text.data);
    free(data);
    return path;
}

/* Writes a picture of four greys, 0 1 above 2 3. */
#define GREY(corner) (uint8_t)(40 + 60 * (corner))

static inline void write_corners(const char *path)
{
    uint8_t pixels[32 * 16];
    for (int i = 0; i < 32 * 16; i++)
        pixels[i] = GREY(i % 32 / 16 + 2 * (i / 32 / 8));
    assert_ok(scene_image_write_png(path, pixels, 32, 16, 1));
}

#endif
