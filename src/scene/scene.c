/* Opens, loads and closes scenes. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "scene/detect.h"
#include "scene/keys.h"
#include "scene/pictures.h"

/* ---- opening --------------------------------------------------------------------------------- */

static vkn_status open_into(struct vkn_scene *scene, const struct scene_options *options)
{
    scene->path = base_format("%s", options->path);
    if (scene->path == NULL)
        return VKN_ERROR;
    struct transforms files[SCENE_SPLITS] = {{0}};
    bool single = false;
    vkn_status status = detect_and_read(scene, options, files, &single);
    if (status == VKN_OK)
        status = scene_assemble(scene, files, single, options);
    if (status == VKN_OK)
        status = keys_report(files, options->findings);
    if (status == VKN_OK)
        status = findings_add_files(options->findings, scene, files);
    if (status == VKN_OK)
        status = pictures_report(scene->path, files, options->findings);
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        transforms_free(&files[split]);
    return status;
}

vkn_status scene_open(const struct scene_options *options, struct vkn_scene **scene)
{
    *scene = NULL;
    if (options->path == NULL || options->path[0] == '\0')
        return base_fail(VKN_BAD_INPUT, "the name of the scene is missing");
    struct vkn_scene *opened = base_alloc(1, sizeof(*opened));
    if (opened == NULL)
        return VKN_ERROR;
    vkn_status status = open_into(opened, options);
    if (status != VKN_OK)
        scene_close(&opened);
    *scene = opened;
    return status;
}

static void free_camera(struct scene_camera *camera)
{
    free(camera->image_path);
    free(camera->mask_path);
    free(camera->depth_path);
    free(camera->tracked);
}

struct vkn_scene *scene_retain(struct vkn_scene *scene)
{
    atomic_fetch_add(&scene->references, 1);
    return scene;
}

void scene_close(struct vkn_scene **scene)
{
    if (*scene == NULL)
        return;
    if (atomic_fetch_sub(&(*scene)->references, 1) > 0) {
        *scene = NULL;
        return;
    }
    for (unsigned i = 0; i < SCENE_SPLITS; i++) {
        struct scene_split *split = &(*scene)->splits[i];
        for (size_t j = 0; j < split->camera_count; j++)
            free_camera(&split->cameras[j]);
        free(split->cameras);
        free(split->depths);
        free(split->pixels);
    }
    free((*scene)->points);
    free((*scene)->path);
    free((*scene)->file);
    free(*scene);
    *scene = NULL;
}

/* ---- shares of a split ----------------------------------------------------------------------- */

static bool is_whole(struct scene_share share)
{
    return share.count == share.of;
}

size_t scene_share_count(struct scene_share share, size_t views)
{
    if (is_whole(share))
        return views;
    size_t rest = views % share.of, more = rest > share.first ? rest - share.first : 0;
    return views / share.of * share.count + (more < share.count ? more : share.count);
}

size_t scene_share_view(struct scene_share share, size_t index)
{
    if (is_whole(share))
        return index;
    return index / share.count * share.of + share.first + index % share.count;
}

bool scene_share_has(struct scene_share share, size_t view)
{
    return is_whole(share) ||
           (view % share.of >= share.first && view % share.of - share.first < share.count);
}

void scene_set_share(struct vkn_scene *scene, enum scene_split_name split, struct scene_share share)
{
    struct scene_split *target = &scene->splits[split];
    const struct scene_share previous = target->share;
    target->share = share;
    if ((is_whole(previous) && is_whole(share)) || memcmp(&previous, &share, sizeof share) == 0)
        return;
    free(target->pixels);
    target->pixels = NULL;
    target->pixel_count = 0;
    for (size_t i = 0; i < target->camera_count; i++) {
        struct scene_camera *camera = &target->cameras[i];
        bool has = scene_share_has(share, i);
        camera->first_pixel = has ? target->pixel_count : 0;
        target->pixel_count += has ? (uint64_t)camera->width * camera->height : 0;
    }
}

/* ---- loading --------------------------------------------------------------------------------- */

struct loading {
    const struct vkn_scene *scene;
    const struct scene_split *split;
    uint32_t *pixels;
    atomic_bool has_alpha, has_used; /* any pixel has alpha < 255; any pixel is used */
    void (*progress)(void *context, size_t done, size_t total);
    void *progress_context;
};

static vkn_status shrink_image(const struct vkn_scene *scene, const struct scene_camera *camera,
                               const uint8_t *rgba, uint32_t width, uint32_t height,
                               uint32_t *pixels, bool *has_alpha)
{
    uint32_t k = scene->load_downscale;
    uint8_t *used = NULL;
    if (width / k != camera->width || height / k != camera->height)
        return base_fail(VKN_BAD_INPUT, "%s: changed its size since the scene was opened",
                         camera->image_path);
    if (camera->mask_path != NULL)
        BASE_TRY(mask_read(camera->mask_path, camera->mask_inverted, camera->applied_orientation,
                           width, height, &used));
    *has_alpha = image_downscale(rgba, used, width, height, k, pixels);
    free(used);
    mask_mark_outside_lens(camera, pixels);
    return VKN_OK;
}

/* Reads a view's image file and downscales the image by load_downscale. */
static vkn_status read_image(const struct vkn_scene *scene, const struct scene_camera *camera,
                             uint32_t *pixels, bool *has_alpha)
{
    uint32_t width = 0, height = 0;
    uint8_t *rgba = NULL;
    BASE_TRY(scene_image_read(camera->image_path, &rgba, &width, &height));
    if (camera->applied_orientation > EXIF_UPRIGHT) {
        uint8_t *stored = rgba;
        rgba = image_apply_orientation(stored, 4, camera->applied_orientation, &width, &height);
        free(stored);
    }
    vkn_status status = rgba != NULL
                            ? shrink_image(scene, camera, rgba, width, height, pixels, has_alpha)
                            : VKN_ERROR;
    free(rgba);
    return status;
}

static vkn_status load_image(void *context, size_t index)
{
    struct loading *loading = context;
    const struct scene_split *split = loading->split;
    const struct scene_camera *camera = &split->cameras[scene_share_view(split->share, index)];
    bool has_alpha = false;
    BASE_TRY(read_image(loading->scene, camera, loading->pixels + camera->first_pixel, &has_alpha));
    if (has_alpha)
        atomic_store(&loading->has_alpha, true);
    const uint32_t *pixels = loading->pixels + camera->first_pixel;
    size_t count = (size_t)camera->width * camera->height, first = 0;
    while (first < count && pixels[first] == SCENE_IGNORED)
        first++;
    if (first < count)
        atomic_store(&loading->has_used, true);
    return VKN_OK;
}

static void report_progress(void *context, size_t finished)
{
    const struct loading *loading = context;
    const struct scene_split *split = loading->split;
    loading->progress(loading->progress_context, finished,
                      scene_share_count(split->share, split->camera_count));
}

vkn_status scene_load(struct vkn_scene *scene, enum scene_split_name split,
                      void (*progress)(void *context, size_t done, size_t total), void *context)
{
    struct scene_split *target = &scene->splits[split];
    if (target->pixels != NULL)
        return VKN_OK;
    if (target->pixel_count > SIZE_MAX / sizeof(uint32_t))
        return base_fail(VKN_ERROR, "%s: too many pixels", scene->path);
    struct loading loading = {
        .scene = scene, .split = target, .progress = progress, .progress_context = context};
    loading.pixels = base_alloc((size_t)target->pixel_count, sizeof(uint32_t));
    if (loading.pixels == NULL)
        return VKN_ERROR;
    vkn_status status = base_parallel(scene_share_count(target->share, target->camera_count),
                                      load_image, &loading, progress ? report_progress : NULL);
    if (status == VKN_OK && split == SCENE_TRAIN && !atomic_load(&loading.has_used))
        status =
            base_fail(VKN_BAD_INPUT, "%s: masks: they hide every pixel of the training images%s",
                      scene->path, is_whole(target->share) ? "" : " of a rank's share");
    if (status != VKN_OK) {
        free(loading.pixels);
        return status;
    }
    target->pixels = loading.pixels;
    target->has_alpha = atomic_load(&loading.has_alpha);
    return VKN_OK;
}

/* ---- single views ---------------------------------------------------------------------------- */

/* Decodes the whole image file, then shrinks some of its rows. */
static vkn_status decode_rows(const struct vkn_scene *scene, const struct scene_camera *camera,
                              uint32_t first_row, uint32_t rows, uint32_t shrink, uint32_t *pixels)
{
    bool has_alpha = false;
    if (shrink == 1 && rows == camera->height)
        return read_image(scene, camera, pixels, &has_alpha);
    uint32_t *whole = base_alloc((size_t)camera->width * camera->height, sizeof *whole);
    vkn_status status = whole ? read_image(scene, camera, whole, &has_alpha) : VKN_ERROR;
    if (status == VKN_OK)
        image_shrink(whole + (size_t)first_row * camera->width, camera->width, rows, shrink,
                     pixels);
    free(whole);
    return status;
}

vkn_status scene_read_rows(const struct vkn_scene *scene, enum scene_split_name split, size_t index,
                           uint32_t first_row, uint32_t rows, uint32_t shrink, uint32_t *pixels)
{
    const struct scene_split *from = &scene->splits[split];
    const struct scene_camera *camera = &from->cameras[index];
    if (from->pixels == NULL || !scene_share_has(from->share, index))
        return decode_rows(scene, camera, first_row, rows, shrink, pixels);
    image_shrink(from->pixels + camera->first_pixel + (size_t)first_row * camera->width,
                 camera->width, rows, shrink, pixels);
    return VKN_OK;
}

vkn_status scene_read_view(const struct vkn_scene *scene, enum scene_split_name split, size_t index,
                           uint32_t shrink, uint32_t *pixels)
{
    return scene_read_rows(scene, split, index, 0, scene->splits[split].cameras[index].height,
                           shrink, pixels);
}

struct scene_camera scene_shrink_camera(const struct scene_camera *camera, uint32_t shrink)
{
    struct scene_camera small = *camera;
    float k = (float)shrink;
    small.width /= shrink;
    small.height /= shrink;
    small.focal_x /= k;
    small.focal_y /= k;
    small.center_x /= k;
    small.center_y /= k;
    return small;
}

struct scene_camera scene_crop_camera(const struct scene_camera *camera, uint32_t first_row,
                                      uint32_t rows)
{
    struct scene_camera crop = *camera;
    crop.height = rows;
    crop.center_y -= (float)first_row;
    return crop;
}

struct scene_camera scene_fit_camera(const struct scene_camera *camera, uint64_t max_pixels)
{
    struct scene_camera small = *camera;
    double factor = sqrt((double)max_pixels / ((double)camera->width * camera->height));
    if (factor >= 1.0)
        return small;
    small.width = (uint32_t)fmax(1.0, round(camera->width * factor));
    small.height = (uint32_t)fmax(1.0, round(camera->height * factor));
    float across = (float)small.width / (float)camera->width;
    float down = (float)small.height / (float)camera->height;
    small.focal_x *= across;
    small.center_x *= across;
    small.focal_y *= down;
    small.center_y *= down;
    return small;
}
