/* Counts the outlier cells of an error map, and writes them as masks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "images/images.h"

/* Returns the cells of a training view, row by row, and their number. */
static const struct ErrorCell *cells_of(const struct images_plan *plan,
                                        const struct scene_split *train,
                                        const struct ErrorCell *map, size_t view, uint32_t *count)
{
    const struct scene_camera *camera = &train->cameras[view];
    *count = images_error_cells(plan, camera->width) * images_error_cells(plan, camera->height);
    return map + view * plan->view_cells;
}

struct step_outliers images_count_outliers(const struct images_plan *plan,
                                           const struct scene_split *train,
                                           const struct ErrorCell *map)
{
    uint64_t seen = 0, marked = 0;
    struct step_outliers found = {0};
    for (size_t view = 0; view < train->camera_count; view++) {
        uint32_t count;
        uint64_t before = marked;
        const struct ErrorCell *cells = cells_of(plan, train, map, view, &count);
        for (uint32_t i = 0; i < count; i++) {
            seen += fabsf(cells[i].error) > 0;
            marked += cells[i].error < 0;
        }
        found.views += marked > before;
    }
    found.share = seen > 0 ? (double)marked / (double)seen : 0;
    return found.share >= (double)OUTLIER_LEAST ? found : (struct step_outliers){0};
}

/* Returns the length of the folder, with its slash, that contains all training images. */
static size_t common_folder(const struct scene_split *train)
{
    const char *first = train->cameras[0].image_path, *slash = strrchr(first, '/');
    size_t length = slash ? (size_t)(slash - first) + 1 : 0;
    for (size_t i = 1; i < train->camera_count; i++)
        while (length > 0 && strncmp(first, train->cameras[i].image_path, length) != 0) {
            length--;
            while (length > 0 && first[length - 1] != '/')
                length--;
        }
    return length;
}

/* Returns a fresh path of the mask of an image, below `folder` also if the image's name, below the
 * folder that contains all images, leads out of that. */
static char *mask_path(const char *folder, const char *name)
{
    struct base_text path = {0};
    base_text_add(&path, "%s", folder);
    while (*name != '\0') {
        size_t length = strcspn(name, "/");
        bool is_parent = length == 2 && strncmp(name, "..", 2) == 0;
        if (length > 0 && !is_parent)
            base_text_add(&path, "/%.*s", (int)length, name);
        name += length + (name[length] == '/');
    }
    base_text_add(&path, ".png");
    if (!path.failed)
        return path.data;
    free(path.data);
    return NULL;
}

/* Writes a mask: bright at the pixels that the scene uses and that are in no outlier cell. */
static vkn_status write_mask(const struct vkn_scene *scene, const struct images_plan *plan,
                             const struct ErrorCell *map, size_t view, const char *path)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    const struct scene_camera *camera = &train->cameras[view];
    uint32_t count, columns = images_error_cells(plan, camera->width);
    const struct ErrorCell *cells = map ? cells_of(plan, train, map, view, &count) : NULL;
    size_t pixels = (size_t)camera->width * camera->height;
    uint32_t *colors = base_alloc(pixels, sizeof *colors);
    uint8_t *mask = base_alloc(pixels, 1);
    vkn_status status = colors && mask ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && camera->mask_path)
        status = scene_read_view(scene, SCENE_TRAIN, view, 1, colors);
    for (size_t i = 0; i < pixels && status == VKN_OK; i++) {
        uint32_t x = (uint32_t)(i % camera->width), y = (uint32_t)(i / camera->width);
        bool is_used = !camera->mask_path || colors[i] != SCENE_IGNORED;
        bool is_outlier =
            cells && cells[y / plan->cell_edge * columns + x / plan->cell_edge].error < 0;
        mask[i] = is_used && !is_outlier ? 255 : 0;
    }
    if (status == VKN_OK)
        status = scene_image_write_png(path, mask, camera->width, camera->height, 1);
    free(mask);
    free(colors);
    return status;
}

vkn_status images_write_masks(const struct vkn_scene *scene, const struct images_plan *plan,
                              const struct ErrorCell *map, const char *folder,
                              const volatile sig_atomic_t *stop)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    size_t skipped = common_folder(train);
    vkn_status status = VKN_OK;
    for (size_t view = 0; view < train->camera_count && status == VKN_OK; view++) {
        char *path = mask_path(folder, train->cameras[view].image_path + skipped);
        char *parent = path ? base_path_folder(path) : NULL;
        status = stop && *stop ? base_fail(VKN_INTERRUPTED, "%s: interrupted", folder)
                 : parent      ? base_make_folder(parent)
                               : VKN_ERROR;
        if (status == VKN_OK)
            status = write_mask(scene, plan, map, view, path);
        free(parent);
        free(path);
    }
    return status;
}
