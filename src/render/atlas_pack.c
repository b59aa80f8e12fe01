/* Packs charts into a square texture, in rows. */
#include <math.h>
#include <stdlib.h>

#include "render/atlas.h"

#define ATLAS_LEAST   256u  /* least size chosen automatically, pixels along an edge */
#define ATLAS_LARGE   8192u /* every graphics card supports this size */
#define ATLAS_DENSITY 4.0   /* pixels along a cell's edge, chosen automatically */
#define LEAST_DENSITY 1.0   /* with fewer pixels, a texture shows no more than vertex colours */
#define MOST_DENSITY  64.0  /* with more pixels, a texture shows no further detail */
#define STEPS         24    /* iterations of the bisection of the density */

/* Returns the chart's extent along an axis in pixels, gutters included. */
static uint32_t pixels(const struct atlas_chart *chart, int axis, double density)
{
    return (uint32_t)ceil((chart->high[axis] - chart->low[axis]) * density) + 2 * ATLAS_GUTTER;
}

/* Compares heights, higher charts first; charts of equal height keep the order of atlas_cut. */
static int compare_heights(const void *a, const void *b)
{
    const struct atlas_chart *one = *(struct atlas_chart *const *)a;
    const struct atlas_chart *other = *(struct atlas_chart *const *)b;
    double one_height = one->high[1] - one->low[1], other_height = other->high[1] - other->low[1];
    if (one_height != other_height)
        return one_height < other_height ? 1 : -1;
    return one->first < other->first ? -1 : one->first > other->first;
}

/* Places the charts in rows, each as high as its highest chart. Returns whether they fit. */
static bool place(struct atlas_chart *const *sorted, uint32_t count, uint32_t size, double density)
{
    uint32_t x = 0, y = 0, row_height = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t width = pixels(sorted[i], 0, density), height = pixels(sorted[i], 1, density);
        if (x + width > size) {
            x = 0;
            y += row_height;
            row_height = 0;
        }
        if (width > size || y + height > size)
            return false;
        row_height = row_height > height ? row_height : height;
        sorted[i]->x = x;
        sorted[i]->y = y;
        x += width;
    }
    return true;
}

/* Returns the smallest power of two that fits the charts, see render_mesh_unwrap. */
static uint32_t choose_size(struct atlas_chart *const *sorted, uint32_t count)
{
    uint32_t size = ATLAS_LEAST;
    while (size < ATLAS_LARGE && !place(sorted, count, size, ATLAS_DENSITY))
        size *= 2;
    return size == ATLAS_LARGE && !place(sorted, count, size, LEAST_DENSITY) ? RENDER_MOST_TEXTURE
                                                                             : size;
}

/* Finds the highest density that fits and places the charts with it. */
static vkn_status fit(struct atlas *atlas, struct atlas_chart *const *sorted)
{
    double low = LEAST_DENSITY, high = MOST_DENSITY;
    uint32_t triangles = 0;
    for (uint32_t i = 0; i < atlas->count; i++)
        triangles += sorted[i]->count;
    if (!place(sorted, atlas->count, atlas->size, low))
        return base_fail(VKN_BAD_INPUT,
                         "texture: %u x %u pixels are too few for %u triangles; a larger --texture "
                         "(at most %u), a lower --resolution, a smaller --crop or --largest help",
                         atlas->size, atlas->size, triangles, RENDER_MOST_TEXTURE);
    for (int i = 0; i < STEPS; i++) {
        double middle = 0.5 * (low + high);
        if (place(sorted, atlas->count, atlas->size, middle))
            low = middle;
        else
            high = middle;
    }
    atlas->density = low;
    place(sorted, atlas->count, atlas->size, low);
    return VKN_OK;
}

vkn_status atlas_pack(struct atlas *atlas, uint32_t size)
{
    struct atlas_chart **sorted = base_alloc(atlas->count + 1, sizeof *sorted);
    if (!sorted)
        return VKN_ERROR;
    for (uint32_t i = 0; i < atlas->count; i++)
        sorted[i] = &atlas->charts[i];
    qsort(sorted, atlas->count, sizeof *sorted, compare_heights);
    atlas->size = size ? size : choose_size(sorted, atlas->count);
    vkn_status status = fit(atlas, sorted);
    free(sorted);
    return status;
}

void atlas_texel(const struct atlas *atlas, const struct atlas_chart *chart,
                 const float position[3], float texel[2])
{
    const uint32_t corner[2] = {chart->x, chart->y};
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t axis = (chart->axis + 1 + i) % 3;
        double cells = ((double)position[axis] - atlas->origin[axis]) / atlas->cell;
        texel[i] = (float)(corner[i] + ATLAS_GUTTER + (cells - chart->low[i]) * atlas->density);
    }
}
