/* Draws the error map of the training views. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "images/images.h"

#define MOST_DRAWN   24u /* views in the picture */
#define DRAWN_ACROSS 6u  /* views in a row of it */
#define CELL_PIXELS  4u  /* edge of a cell */
#define GAP          4u  /* pixels between views */

/* A picture of views. Each view has a box that holds the largest drawn view. */
struct sheet {
    const struct images_plan *plan;
    const struct scene_split *train;
    const struct ErrorCell *cells;
    uint32_t views, across;   /* drawn views, in all and in a row */
    uint32_t box[2], size[2]; /* pixels of a box with its gap, and of the picture */
    float largest;
    bool has_outliers; /* enough to be left out: they are red */
    uint8_t *rgb;
};

/* Returns the index among the training views of drawn view n. Drawn views are evenly spaced. */
static size_t view_of(const struct sheet *sheet, uint32_t n)
{
    return (size_t)n * sheet->train->camera_count / sheet->views;
}

static void measure(struct sheet *sheet)
{
    for (uint32_t n = 0; n < sheet->views; n++) {
        const struct scene_camera *camera = &sheet->train->cameras[view_of(sheet, n)];
        const uint32_t edges[2] = {camera->width, camera->height};
        for (int i = 0; i < 2; i++) {
            uint32_t pixels = CELL_PIXELS * images_error_cells(sheet->plan, edges[i]) + GAP;
            sheet->box[i] = pixels > sheet->box[i] ? pixels : sheet->box[i];
        }
        const struct ErrorCell *cells = &sheet->cells[view_of(sheet, n) * sheet->plan->view_cells];
        uint32_t count = images_error_cells(sheet->plan, edges[0]);
        count *= images_error_cells(sheet->plan, edges[1]);
        for (uint32_t i = 0; i < count; i++)
            sheet->largest = fmaxf(sheet->largest, fabsf(cells[i].error));
    }
    sheet->size[0] = sheet->across * sheet->box[0] - GAP;
    sheet->size[1] = (sheet->views + sheet->across - 1) / sheet->across * sheet->box[1] - GAP;
}

/* Draws the square roots of errors, because few cells have most of the error. */
static void draw_view(const struct sheet *sheet, uint32_t n)
{
    const struct scene_camera *camera = &sheet->train->cameras[view_of(sheet, n)];
    const struct ErrorCell *cells = &sheet->cells[view_of(sheet, n) * sheet->plan->view_cells];
    uint32_t left = n % sheet->across * sheet->box[0], top = n / sheet->across * sheet->box[1];
    uint32_t columns = images_error_cells(sheet->plan, camera->width);
    uint32_t rows = images_error_cells(sheet->plan, camera->height);
    for (uint32_t y = 0; y < CELL_PIXELS * rows; y++)
        for (uint32_t x = 0; x < CELL_PIXELS * columns; x++) {
            float error = cells[y / CELL_PIXELS * columns + x / CELL_PIXELS].error;
            float share = sheet->largest > 0 ? fabsf(error) / sheet->largest : 0;
            uint8_t grey = (uint8_t)(255 * sqrtf(fminf(share, 1)) + 0.5F);
            uint8_t *rgb = sheet->rgb + 3 * ((size_t)(top + y) * sheet->size[0] + left + x);
            bool is_outlier = sheet->has_outliers && error < 0;
            memset(rgb, is_outlier ? grey / 3 : grey, 3);
            if (is_outlier)
                rgb[0] = 255;
        }
}

static vkn_status write_sheet(struct sheet *sheet, const char *path)
{
    measure(sheet);
    sheet->rgb = base_alloc((size_t)sheet->size[0] * sheet->size[1], 3);
    if (!sheet->rgb)
        return VKN_ERROR;
    for (uint32_t n = 0; n < sheet->views; n++)
        draw_view(sheet, n);
    vkn_status status = scene_image_write_png(path, sheet->rgb, sheet->size[0], sheet->size[1], 3);
    free(sheet->rgb);
    return status;
}

vkn_status images_write_errors(const struct step *step, const struct images_plan *plan,
                               const struct scene_split *train, const char *path,
                               struct step_outliers *found)
{
    size_t count = train->camera_count, cells = count * plan->view_cells;
    struct ErrorCell *map = base_alloc(cells, sizeof *map);
    uint32_t drawn = count < MOST_DRAWN ? (uint32_t)count : MOST_DRAWN;
    struct sheet sheet = {.plan = plan,
                          .train = train,
                          .cells = map,
                          .views = drawn,
                          .across = drawn < DRAWN_ACROSS ? drawn : DRAWN_ACROSS};
    vkn_status status = map ? gpu_download(step->device, &step->buffers.at[BIND_STATE],
                                           step_error_map_offset(step), map, cells * sizeof *map)
                            : VKN_ERROR;
    if (status == VKN_OK) {
        *found = images_count_outliers(plan, train, map);
        sheet.has_outliers = found->views > 0;
        status = write_sheet(&sheet, path);
    }
    free(map);
    return status;
}
