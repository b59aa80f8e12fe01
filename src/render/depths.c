/* Stores depth maps and scales them by their common range. */
#include "render/depths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "render/render.h"
#include "render/write_view.h"

vkn_status render_depths_open(const char *folder, bool keep, struct render_depths *depths)
{
    *depths = (struct render_depths){.folder = folder};
    if (!keep)
        return VKN_OK;
    char *path = base_format("%s/.depth.%ld", folder, (long)getpid());
    if (!path)
        return VKN_ERROR;
    depths->maps = fopen(path, "w+b");
    if (depths->maps)
        unlink(path);
    vkn_status status =
        depths->maps ? VKN_OK : base_fail(VKN_BAD_INPUT, "%s: cannot be written", path);
    free(path);
    return status;
}

static vkn_status reserve(struct render_depths *depths, size_t pixels)
{
    if (pixels <= depths->capacity)
        return VKN_OK;
    free(depths->values);
    depths->values = base_alloc(pixels, sizeof(*depths->values));
    depths->capacity = depths->values ? pixels : 0;
    return depths->values ? VKN_OK : VKN_ERROR;
}

static void widen_range(struct render_depths *depths, double depth)
{
    bool first = depths->farthest == 0.0;
    if (first || depth < depths->nearest)
        depths->nearest = depth;
    if (first || depth > depths->farthest)
        depths->farthest = depth;
}

vkn_status render_depths_add(struct render_depths *depths, const struct vkn_picture *picture)
{
    size_t pixels = (size_t)picture->width * picture->height;
    BASE_TRY(reserve(depths, pixels));
    for (size_t i = 0; i < pixels; i++) {
        bool solid = picture->opacity[i] >= RENDER_SOLID_OPACITY && picture->depth[i] > 0.0F;
        depths->values[i] = solid ? picture->depth[i] : 0.0F;
        if (solid)
            widen_range(depths, (double)picture->depth[i]);
    }
    if (depths->maps &&
        fwrite(depths->values, sizeof(*depths->values), pixels, depths->maps) != pixels)
        return base_fail(VKN_ERROR, "%s: cannot write the temporary depth maps; is the disk full?",
                         depths->folder);
    return VKN_OK;
}

/* Writes depth_scale.json even without a surface, to replace the file of an earlier rendering. */
static vkn_status write_scale(const struct render_depths *depths)
{
    char text[240];
    if (depths->farthest > 0.0)
        snprintf(text, sizeof(text),
                 "{\"255\": %.9g, \"1\": %.9g, \"0\": null, \"unit\": \"of the dataset\", "
                 "\"depth_unit_scale_factor\": %.9g}\n",
                 depths->nearest, depths->farthest, render_depths_unit(depths));
    else
        snprintf(text, sizeof(text), "{\"0\": null}\n");
    char *path = base_path_join(depths->folder, "depth_scale.json");
    vkn_status status = path ? base_file_replace(path, text, strlen(text)) : VKN_ERROR;
    free(path);
    return status;
}

vkn_status render_depths_rewind(struct render_depths *depths)
{
    rewind(depths->maps);
    return write_scale(depths);
}

/* Returns the grey of a depth: 1 nearest, 1/255 farthest, 0 no surface. */
static float shade(float depth, float nearest, float farthest)
{
    if (!(depth > 0.0F))
        return 0.0F;
    float range = farthest - nearest;
    float share = range > 0.0F ? (depth - nearest) / range : 0.0F;
    float clamped = share < 0.0F ? 0.0F : share < 1.0F ? share : 1.0F;
    return (255.0F - 254.0F * clamped) / 255.0F;
}

void render_depths_shade(struct render_depths *depths, size_t pixels)
{
    for (size_t i = 0; i < pixels; i++)
        depths->values[i] =
            shade(depths->values[i], (float)depths->nearest, (float)depths->farthest);
}

vkn_status render_depths_next(struct render_depths *depths, size_t pixels)
{
    BASE_TRY(reserve(depths, pixels));
    if (fread(depths->values, sizeof(*depths->values), pixels, depths->maps) != pixels)
        return base_fail(VKN_ERROR, "%s: the depth maps cannot be read again", depths->folder);
    return VKN_OK;
}

/* ---- 16-bit depths --------------------------------------------------------------------------- */

#define MOST_STEPS 65535.0

double render_depths_unit(const struct render_depths *depths)
{
    static const double factors[] = {1, 2, 5, 10};
    if (!(depths->farthest > 0.0))
        return 0.0;
    double least = depths->farthest / MOST_STEPS, power = pow(10.0, floor(log10(least)));
    for (size_t i = 0; i < BASE_COUNT(factors); i++)
        if (factors[i] * power >= least)
            return factors[i] * power;
    return 20.0 * power; /* the logarithm was rounded down */
}

void render_depths_quantize(const struct render_depths *depths, size_t pixels, uint16_t *steps)
{
    double unit = render_depths_unit(depths);
    for (size_t i = 0; i < pixels; i++) {
        double depth = (double)depths->values[i];
        double count = depth > 0.0 ? fmin(fmax(round(depth / unit), 1.0), MOST_STEPS) : 0.0;
        steps[i] = (uint16_t)count;
    }
}

vkn_status render_write_depth(const char *path, const struct vkn_picture *picture)
{
    struct render_depths depths = {.folder = path};
    vkn_status status = render_depths_add(&depths, picture);
    if (status == VKN_OK) {
        render_depths_shade(&depths, (size_t)picture->width * picture->height);
        status = render_write_grey(path, depths.values, picture->width, picture->height);
    }
    render_depths_close(&depths);
    return status;
}

void render_depths_close(struct render_depths *depths)
{
    if (depths->maps)
        fclose(depths->maps);
    free(depths->values);
    *depths = (struct render_depths){0};
}
