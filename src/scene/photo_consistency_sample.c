/* Reads the sample of views for photo-consistency: small images, and projected sparse points. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/image.h"
#include "scene/inspect.h"
#include "scene/photo_consistency.h"
#include "scene/space.h"
#include "scene/transforms.h"

#define MOST_VIEWS      128u /* limits of the sample's size */
#define LEAST_VIEWS     6u
#define PIXELS          96e6   /* pixels that a processor decodes in 2 to 3 s */
#define MOST_PROCESSORS 8u     /* with more, reading files is the bottleneck */
#define LARGEST         48e6   /* pixels of an image; larger ones are skipped to save memory */
#define PICTURE_SIZE    320u   /* smallest longer side of a small image, pixels */
#define MOST_TRACKED    512u   /* tracked points of a view: enough to judge its pose */
#define MOST_POINTS     65536u /* sparse points that are projected into a view */
#define CELLS           24u    /* cells along each side of an image; each holds its nearest point */

/* ---- views ----------------------------------------------------------------------------------- */

static bool is_loaded(const struct vkn_scene *scene, enum scene_split_name split, size_t index)
{
    const struct scene_split *from = &scene->splits[split];
    return from->pixels != NULL && scene_share_has(from->share, index);
}

static double file_pixels(const struct vkn_scene *scene, const struct scene_camera *camera)
{
    return (double)camera->width * camera->height * scene->load_downscale * scene->load_downscale;
}

/* Finds a copy of the view's image in a folder images_N that still has the size of a small image;
 * NULL: none, or not needed. Masks fit the image itself, so views with masks use the image. */
static char *find_copy(const struct vkn_scene *scene, const struct scene_camera *camera)
{
    uint32_t longer = camera->width > camera->height ? camera->width : camera->height;
    char *copy = NULL;
    /* Copies are read without applying EXIF orientations. */
    if (camera->mask_path == NULL && camera->applied_orientation <= EXIF_UPRIGHT)
        for (uint32_t factor = 16; factor >= 2 && copy == NULL; factor /= 2)
            if (longer * scene->load_downscale / factor >= PICTURE_SIZE)
                copy = consistency_find_copy(camera->image_path, factor);
    return copy;
}

/* Estimates, from a few views, the fraction of views whose image has no copy. */
static double share_without_copy(const struct vkn_scene *scene, size_t views)
{
    size_t tried = views < LEAST_VIEWS ? views : LEAST_VIEWS, without_copy = 0;
    for (size_t i = 0; i < tried; i++) {
        char *copy = find_copy(scene, inspect_view(scene, i * views / tried, NULL));
        without_copy += copy == NULL ? 1 : 0;
        free(copy);
    }
    return (double)without_copy / (double)tried;
}

/* Returns the mean number of pixels to decode for a view; the cost of copies is neglected. */
static double mean_cost(const struct vkn_scene *scene, size_t views)
{
    double cost = 0;
    for (size_t n = 0; n < views; n++) {
        enum scene_split_name split;
        const struct scene_camera *camera = inspect_view(scene, n, &split);
        size_t index = (size_t)(camera - scene->splits[split].cameras);
        cost += is_loaded(scene, split, index) ? 0 : file_pixels(scene, camera);
    }
    return cost > 0 ? cost / (double)views * share_without_copy(scene, views) : 0;
}

static size_t count_sample(const struct vkn_scene *scene, size_t views)
{
    uint32_t processors = base_processors();
    double budget = PIXELS * (processors < MOST_PROCESSORS ? processors : MOST_PROCESSORS);
    double cost = mean_cost(scene, views);
    double affordable = fmax(LEAST_VIEWS, cost > 0 ? fmin(budget / cost, MOST_VIEWS) : MOST_VIEWS);
    return views < (size_t)affordable ? views : (size_t)affordable;
}

/* ---- pictures -------------------------------------------------------------------------------- */

static uint32_t shrink_of(uint32_t width, uint32_t height)
{
    uint32_t longer = width > height ? width : height, shorter = width + height - longer;
    uint32_t shrink = longer / PICTURE_SIZE;
    return shrink == 0 ? 1 : shrink > shorter ? shorter : shrink;
}

static vkn_status read_copy(const char *path, struct consistency_sampled_view *sampled)
{
    uint8_t *rgba = NULL;
    uint32_t width = 0, height = 0;
    BASE_TRY(scene_image_read(path, &rgba, &width, &height));
    uint32_t shrink = shrink_of(width, height);
    bool same_shape = (width < height) == (sampled->camera->width < sampled->camera->height);
    sampled->width = width / shrink;
    sampled->height = height / shrink;
    sampled->pixels =
        same_shape ? base_alloc((size_t)sampled->width * sampled->height, sizeof *sampled->pixels)
                   : NULL;
    if (sampled->pixels != NULL)
        (void)image_downscale(rgba, NULL, width, height, shrink, sampled->pixels);
    free(rgba);
    return sampled->pixels != NULL ? VKN_OK : VKN_ERROR;
}

/* Decodes the view's image file. The camera has no distortion here: finding the pixels that a lens
 * does not reach is slow, and no point is projected there. */
static vkn_status decode_view(const struct vkn_scene *scene,
                              const struct consistency_sampled_view *sampled, uint32_t shrink)
{
    struct scene_camera camera = *sampled->camera;
    struct vkn_scene plain = {
        .path = scene->path, .format = scene->format, .load_downscale = scene->load_downscale};
    camera.lens = VKN_LENS_PERSPECTIVE;
    memset(camera.distortion, 0, sizeof camera.distortion);
    plain.splits[sampled->split] = (struct scene_split){.cameras = &camera, .camera_count = 1};
    return scene_read_view(&plain, sampled->split, 0, shrink, sampled->pixels);
}

static vkn_status read_view(const struct vkn_scene *scene, struct consistency_sampled_view *sampled)
{
    uint32_t shrink = shrink_of(sampled->camera->width, sampled->camera->height);
    sampled->width = sampled->camera->width / shrink;
    sampled->height = sampled->camera->height / shrink;
    sampled->pixels = base_alloc((size_t)sampled->width * sampled->height, sizeof *sampled->pixels);
    if (sampled->pixels == NULL)
        return VKN_ERROR;
    vkn_status status =
        is_loaded(scene, sampled->split, sampled->index)
            ? scene_read_view(scene, sampled->split, sampled->index, shrink, sampled->pixels)
            : decode_view(scene, sampled, shrink);
    if (status != VKN_OK) {
        free(sampled->pixels);
        sampled->pixels = NULL;
    }
    return status;
}

/* Reads a view's image. Ignores errors, since other code reports broken images. */
static void read_picture(const struct vkn_scene *scene, struct consistency_sampled_view *sampled)
{
    BASE_KEEP_ERROR;
    char *copy =
        is_loaded(scene, sampled->split, sampled->index) ? NULL : find_copy(scene, sampled->camera);
    bool fits = is_loaded(scene, sampled->split, sampled->index) ||
                file_pixels(scene, sampled->camera) <= LARGEST;
    if ((copy == NULL || read_copy(copy, sampled) != VKN_OK) && fits)
        (void)read_view(scene, sampled);
    free(copy);
}

/* ---- points ---------------------------------------------------------------------------------- */

/* Projects a point to an image position (0..1); returns false outside of the image. */
static bool project(const struct consistency_sampled_view *sampled, const struct scene_point *from,
                    struct consistency_point *point)
{
    double x = 0, y = 0;
    for (int i = 0; i < 3; i++) {
        point->position[i] = (double)from->position[i];
        point->color[i] = (float)from->color[i];
    }
    if (!scene_camera_project_within(sampled->camera, sampled->limit, point->position, &x, &y))
        return false;
    point->x = (float)(x / sampled->camera->width);
    point->y = (float)(y / sampled->camera->height);
    return x >= 0 && y >= 0 && x < sampled->camera->width && y < sampled->camera->height;
}

static vkn_status list_tracked(const struct vkn_scene *scene,
                               struct consistency_sampled_view *sampled)
{
    const struct scene_camera *camera = sampled->camera;
    struct consistency_points *points = &sampled->tracked;
    const size_t stride = 1 + camera->tracked_count / MOST_TRACKED;
    points->list = base_alloc(camera->tracked_count / stride + 1, sizeof *points->list);
    if (points->list == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < camera->tracked_count; i += stride) {
        bool inside =
            project(sampled, &scene->points[camera->tracked[i]], &points->list[points->count]);
        points->count += inside ? 1 : 0;
        points->outside += inside ? 0 : 1;
    }
    return VKN_OK;
}

/* Finds the nearest point of each cell. `distances`: 0 where there is none. */
static void fill_cells(const struct vkn_scene *scene,
                       const struct consistency_sampled_view *sampled,
                       struct consistency_point *nearest, double *distances)
{
    const float *pose = sampled->camera->pose;
    for (size_t i = 0; i < scene->point_count; i += 1 + scene->point_count / MOST_POINTS) {
        struct consistency_point point;
        double squared = 0;
        if (!project(sampled, &scene->points[i], &point))
            continue;
        for (int k = 0; k < 3; k++)
            squared += (point.position[k] - (double)pose[4 * k + 3]) *
                       (point.position[k] - (double)pose[4 * k + 3]);
        uint32_t column = (uint32_t)(point.x * CELLS), row = (uint32_t)(point.y * CELLS);
        uint32_t cell =
            (row < CELLS ? row : CELLS - 1) * CELLS + (column < CELLS ? column : CELLS - 1);
        double distance = sqrt(squared);
        if (distance > 0 && (distances[cell] == 0 || distance < distances[cell])) {
            distances[cell] = distance;
            nearest[cell] = point;
        }
    }
}

static vkn_status list_nearest(const struct vkn_scene *scene,
                               struct consistency_sampled_view *sampled)
{
    double *distances = base_alloc((size_t)CELLS * CELLS, sizeof *distances);
    struct consistency_point *nearest = base_alloc((size_t)CELLS * CELLS, sizeof *nearest);
    sampled->nearest.list = nearest;
    if (distances && nearest) {
        fill_cells(scene, sampled, nearest, distances);
        for (uint32_t i = 0; i < CELLS * CELLS; i++)
            if (distances[i] > 0 && !space_is_hidden(distances, CELLS, CELLS, i))
                nearest[sampled->nearest.count++] = nearest[i];
    }
    free(distances);
    return distances && nearest ? VKN_OK : VKN_ERROR;
}

/* ---- the sample ------------------------------------------------------------------------------ */

struct reading {
    const struct vkn_scene *scene;
    struct consistency_sample *sample;
};

static vkn_status read_sampled_view(void *context, size_t number)
{
    const struct reading *reading = context;
    const struct vkn_scene *scene = reading->scene;
    struct consistency_sampled_view *sampled = &reading->sample->sampled_views[number];
    size_t view =
        (size_t)((double)number * (double)reading->sample->views / (double)reading->sample->count);
    sampled->camera = inspect_view(scene, view, &sampled->split);
    sampled->index = (size_t)(sampled->camera - scene->splits[sampled->split].cameras);
    sampled->limit = scene_camera_limit(sampled->camera);
    read_picture(scene, sampled);
    if (sampled->pixels == NULL)
        return VKN_OK;
    BASE_TRY(list_tracked(scene, sampled));
    return list_nearest(scene, sampled);
}

vkn_status consistency_sample_read(const struct vkn_scene *scene, struct consistency_sample *sample)
{
    *sample = (struct consistency_sample){0};
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        sample->views += scene->splits[split].camera_count;
    size_t count = count_sample(scene, sample->views);
    sample->sampled_views = base_alloc(count, sizeof *sample->sampled_views);
    if (sample->sampled_views == NULL)
        return VKN_ERROR;
    sample->count = count;
    struct reading reading = {scene, sample};
    return base_parallel(count, read_sampled_view, &reading, NULL);
}

void consistency_sample_free(struct consistency_sample *sample)
{
    for (size_t i = 0; i < sample->count; i++) {
        free(sample->sampled_views[i].pixels);
        free(sample->sampled_views[i].tracked.list);
        free(sample->sampled_views[i].nearest.list);
    }
    free(sample->sampled_views);
    *sample = (struct consistency_sample){0};
}
