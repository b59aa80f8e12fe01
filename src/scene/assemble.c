/* Assembles a scene from parsed files: splits, training space and cameras. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

#include "scene/transforms.h"
#include "scene/keys.h"
#include "scene/space.h"

#define HOLD_OUT 8u /* without split files or lists every 8th frame, by path, is for testing */

/* instant-ngp's transform of Blender scenes: cameras move from a distance of 4 to 1.32. */
#define DEFAULT_SCALE  0.33
#define DEFAULT_OFFSET 0.5

const char *const scene_split_names[SCENE_SPLITS] = {"train", "val", "test"};

/* Frames of one split, in the order in which they become cameras. */
struct selection {
    const struct transforms *file;
    const struct transforms_frame **frames;
    size_t count;
};

/* ---- splits ---------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
    const struct transforms_frame *const *x = a, *const *y = b;
    int order = strcmp((*x)->file_path, (*y)->file_path);
    return order != 0 ? order : ((*x)->index > (*y)->index) - ((*x)->index < (*y)->index);
}

/* Returns whether a frame belongs to a split; `position` of `count` frames in order of paths. */
static bool belongs(const struct transforms *file, const struct transforms_frame *frame,
                    size_t position, size_t count, enum vkn_test_views test_views, unsigned split)
{
    if (test_views == VKN_TEST_VIEWS_NONE)
        return split == SCENE_TRAIN;
    if (file->has_lists && test_views != VKN_TEST_VIEWS_EIGHTH)
        return (frame->splits >> split & 1u) != 0;
    bool held_out = position % HOLD_OUT == 0 && count > 1;
    return split == (held_out ? SCENE_TEST : SCENE_TRAIN);
}

/* Reduces the frames of all files to those of a split, in order of paths. */
static void pick_frames(const struct transforms files[SCENE_SPLITS], enum vkn_test_views test_views,
                        unsigned split, struct selection *selection)
{
    size_t count = selection->count;
    qsort(selection->frames, count, sizeof(const struct transforms_frame *), by_path);
    selection->count = 0;
    for (size_t i = 0; i < count; i++)
        if (belongs(&files[SCENE_TRAIN], selection->frames[i], i, count, test_views, split))
            selection->frames[selection->count++] = selection->frames[i];
}

/* Lists the frames of each split. Each array has the capacity of all frames. */
static vkn_status select_frames(struct transforms files[SCENE_SPLITS], bool single,
                                enum vkn_test_views test_views,
                                struct selection selections[SCENE_SPLITS])
{
    bool pooled =
        single || test_views == VKN_TEST_VIEWS_NONE || test_views == VKN_TEST_VIEWS_EIGHTH;
    size_t all = files[SCENE_TRAIN].count + files[SCENE_VAL].count + files[SCENE_TEST].count;
    for (unsigned split = 0; split < SCENE_SPLITS; split++) {
        struct selection *selection = &selections[split];
        selection->file = &files[pooled ? SCENE_TRAIN : split];
        selection->frames = base_alloc(all, sizeof(const struct transforms_frame *));
        if (selection->frames == NULL)
            return VKN_ERROR;
        for (unsigned file = 0; file < SCENE_SPLITS; file++)
            for (size_t i = 0; i < files[file].count && (pooled || file == split); i++)
                selection->frames[selection->count++] = &files[file].frames[i];
        if (pooled)
            pick_frames(files, test_views, split, selection);
    }
    if (selections[SCENE_TRAIN].count == 0)
        return base_fail(VKN_BAD_INPUT, "%s: %s: no %s to train on", files[SCENE_TRAIN].file,
                         files[SCENE_TRAIN].list, files[SCENE_TRAIN].list);
    return VKN_OK;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static vkn_status fail_wrong_size(const struct transforms *file,
                                  const struct transforms_frame *frame, const char *reason,
                                  double width, double height)
{
    char exif[80] = "";
    if (frame->orientation > EXIF_UPRIGHT)
        snprintf(exif, sizeof(exif), ", and its EXIF orientation, %u, does not make them fit",
                 frame->orientation);
    return base_fail(VKN_BAD_INPUT, "%s: %s[%zu]: %s has %ux%u pixels, wrong size: %s %gx%g%s",
                     file->file, file->list, frame->index, frame->image_path, frame->width,
                     frame->height, reason, width, height, exif);
}

/* Checks the image size of a frame without w and h. Intrinsics at the top level of the file are
 * valid for one aspect ratio (a field of view) or one size (focal lengths in pixels): that of the
 * first image that uses them. */
static vkn_status check_shared_size(const struct transforms *file,
                                    const struct transforms_frame *frame,
                                    const struct transforms_frame **first)
{
    const struct transforms_lens *lens = &frame->lens, *shared = &file->lens;
    bool has_own = lens->focal[0] != shared->focal[0] || lens->focal[1] != shared->focal[1] ||
                   lens->angle[0] != shared->angle[0] || lens->angle[1] != shared->angle[1];
    if (has_own)
        return VKN_OK;
    if (*first == NULL)
        *first = frame;
    double width = (*first)->width, height = (*first)->height;
    bool in_pixels = lens->focal[0] > 0 || lens->focal[1] > 0;
    struct transforms_lens sized = {.size = {width, height}};
    bool fits = in_pixels ? frame->width == width && frame->height == height
                          : lens_fits_size(&sized, frame->width, frame->height);
    return fits ? VKN_OK : fail_wrong_size(file, frame, "the first image has", width, height);
}

static vkn_status fail_no_focal(const struct transforms *file, const struct transforms_frame *frame)
{
    char *hint = keys_hint(file);
    if (hint == NULL)
        return VKN_ERROR;
    base_fail(VKN_BAD_INPUT, "%s: %s[%zu]: no focal length (camera_angle_x, x_fov or fl_x)%s",
              file->file, file->list, frame->index, hint);
    free(hint);
    return VKN_BAD_INPUT;
}

static vkn_status check_frame(const struct transforms *file, const struct transforms_frame *frame,
                              uint32_t downscale, const struct transforms_frame **first)
{
    if (!lens_has_focal(&frame->lens))
        return fail_no_focal(file, frame);
    if (frame->lens.size[0] > 0) {
        if (!lens_fits_size(&frame->lens, frame->width, frame->height))
            return fail_wrong_size(file, frame, "w and h say", frame->lens.size[0],
                                   frame->lens.size[1]);
    } else {
        BASE_TRY(check_shared_size(file, frame, first));
    }
    if (frame->width < downscale || frame->height < downscale)
        return base_fail(VKN_BAD_INPUT,
                         "%s: %ux%u pixels cannot be downscaled by %u (scene.downscale)",
                         frame->image_path, frame->width, frame->height, downscale);
    return VKN_OK;
}

static vkn_status check_frames(const struct transforms *file, uint32_t downscale)
{
    const struct transforms_frame *first = NULL;
    for (size_t i = 0; i < file->count; i++)
        BASE_TRY(check_frame(file, &file->frames[i], downscale, &first));
    return VKN_OK;
}

/* ---- training space -------------------------------------------------------------------------- */

static bool is_aabb_scale(uint32_t value)
{
    return value >= 1 && value <= 128 && (value & (value - 1)) == 0;
}

static vkn_status check_space(const struct scene_options *options)
{
    if (!isfinite(options->scale) || options->scale < 0 || options->scale > VKN_MOST_SCENE_SCALE)
        return base_fail(VKN_BAD_INPUT, "scale: %g is not a positive number", options->scale);
    if (options->aabb_scale != 0 && !is_aabb_scale(options->aabb_scale))
        return base_fail(VKN_BAD_INPUT, "aabb_scale: %u is not a power of two from 1 to 128",
                         options->aabb_scale);
    if (options->is_fixed && (options->scale == 0 || options->aabb_scale == 0))
        return base_fail(VKN_BAD_INPUT,
                         "scene.fixed_transform: scene.scale and scene.aabb_scale are missing");
    const double *offset = options->offset;
    if (!options->is_fixed && (offset[0] != 0 || offset[1] != 0 || offset[2] != 0))
        base_log(BASE_LOG_WARNING, "scene.offset: it is only used with scene.fixed_transform");
    return VKN_OK;
}

/* Returns the shortest decimal of the nearest single-precision number. */
static double shorten(double number)
{
    char text[40];
    config_print_number(text, (double)(float)number, true);
    return strtod(text, NULL);
}

/* Sets scale and offset; `offset` NULL maps the space's centre to the middle of the cube. Near the
 * dataset's origin both are rounded to single precision, which moves a scene by less than 1e-6. Far
 * from the origin rounding could move the scene by more than its size. */
static void set_space(struct vkn_scene *scene, const struct space *space, const double *offset)
{
    scene->scale = space->scale;
    for (int i = 0; i < 3; i++)
        scene->offset[i] = offset != NULL ? offset[i] : 0.5 - space->center[i] * scene->scale;
    if (scene_needs_double(scene->offset))
        return;
    double scale = (double)(float)space->scale;
    for (int i = 0; i < 3; i++)
        scene->offset[i] = shorten(offset != NULL ? offset[i] : 0.5 - space->center[i] * scale);
    scene->scale = shorten(space->scale);
}

/* Sets the training space of the options if it is fixed, else that of the file, else a measured one
 * if file->measures_space, else the default. The options' scale and aabb_scale take precedence. */
static vkn_status choose_space(struct vkn_scene *scene, const struct selection *train,
                               const struct scene_options *options)
{
    const struct transforms *file = train->file;
    bool is_measured = !options->is_fixed && file->measures_space && file->aabb_scale == 0 &&
                       !file->has_scale && !file->has_offset;
    struct space space = {.scale = file->has_scale ? file->scale : DEFAULT_SCALE};
    double near = 0;
    if (is_measured)
        BASE_TRY(space_measure(train->frames, train->count, &space));
    if (options->scale > 0)
        space.scale = options->scale;
    scene->aabb_scale = file->aabb_scale > 0 ? file->aabb_scale : 1;
    if (is_measured)
        BASE_TRY(space_cube_side(file, train->frames, train->count, &space, &scene->aabb_scale));
    if (options->aabb_scale > 0)
        scene->aabb_scale = options->aabb_scale;
    BASE_TRY(space_nearest_depth(train->frames, train->count, &near));
    scene->near = (float)(near * space.scale);
    const double middle[3] = {DEFAULT_OFFSET, DEFAULT_OFFSET, DEFAULT_OFFSET};
    set_space(scene, &space,
              options->is_fixed  ? options->offset
              : is_measured      ? NULL
              : file->has_offset ? file->offset
                                 : middle);
    return VKN_OK;
}

/* Checks that a run's configuration can hold the space. */
static vkn_status check_chosen_space(const struct vkn_scene *scene, const struct transforms *file)
{
    double scale = scene->scale;
    if (!(scale >= VKN_LEAST_SCENE_SCALE && scale <= VKN_MOST_SCENE_SCALE))
        return base_fail(VKN_BAD_INPUT,
                         "%s: %s: the training space measured on their positions and depths has a "
                         "scale of %.3g, out of range (%g to %g)",
                         file->file, file->list, scale, VKN_LEAST_SCENE_SCALE,
                         VKN_MOST_SCENE_SCALE);
    for (int i = 0; i < 3; i++)
        if (!(fabs(scene->offset[i]) <= VKN_MOST_SCENE_OFFSET))
            return base_fail(VKN_BAD_INPUT,
                             "%s: %s: the training space measured on their positions and depths "
                             "has an offset of %.3g, out of range (%g to %g)",
                             file->file, file->list, scene->offset[i], -VKN_MOST_SCENE_OFFSET,
                             VKN_MOST_SCENE_OFFSET);
    if (!isfinite(scene->near))
        return base_fail(VKN_BAD_INPUT,
                         "%s: %s: their nearest depths are too large for single precision",
                         file->file, file->list);
    return VKN_OK;
}

/* Converts points to training space, in fresh memory; NULL: no points, or out of memory. */
static struct scene_point *convert_points(const struct vkn_scene *scene,
                                          const struct transforms_point *points, size_t count)
{
    struct scene_point *converted = count > 0 ? base_alloc(count, sizeof(*converted)) : NULL;
    for (size_t n = 0; n < count && converted != NULL; n++) {
        double position[3];
        scene_to_training(scene, points[n].position, position);
        for (int i = 0; i < 3; i++)
            converted[n].position[i] = (float)position[i];
        memcpy(converted[n].color, points[n].color, sizeof(converted[n].color));
        converted[n].error = points[n].error;
    }
    return converted;
}

static vkn_status set_points(struct vkn_scene *scene, const struct transforms *file)
{
    scene->points = convert_points(scene, file->points, file->point_count);
    scene->point_count = scene->points != NULL ? file->point_count : 0;
    return scene->point_count == file->point_count ? VKN_OK : VKN_ERROR;
}

static vkn_status set_tracked(const struct transforms_frame *frame, struct scene_camera *camera)
{
    const size_t size = frame->tracked_count * sizeof(*camera->tracked);
    camera->tracked = size > 0 ? base_alloc(size, 1) : NULL;
    if (camera->tracked != NULL)
        memcpy(camera->tracked, frame->tracked, size);
    camera->tracked_count = camera->tracked != NULL ? frame->tracked_count : 0;
    return camera->tracked_count == frame->tracked_count ? VKN_OK : VKN_ERROR;
}

/* ---- cameras --------------------------------------------------------------------------------- */

static vkn_status make_camera(const struct vkn_scene *scene, const struct transforms_frame *frame,
                              struct scene_camera *camera)
{
    lens_apply(&frame->lens, frame->width, frame->height, scene->load_downscale, camera);
    camera_set_frame(scene, frame, camera);
    camera->file = frame->file;
    camera->frame = (uint32_t)frame->index;
    camera->image_path = base_format("%s", frame->image_path);
    if (frame->mask_path != NULL)
        camera->mask_path = base_format("%s", frame->mask_path);
    if (frame->depth_path != NULL)
        camera->depth_path = base_format("%s", frame->depth_path);
    camera->depth_unit = frame->depth_unit;
    camera->mask_inverted = frame->mask_inverted;
    camera->has_exposure = frame->has_exposure;
    camera->exposure = frame->exposure;
    camera->applied_orientation = frame->rotated ? frame->orientation : EXIF_UPRIGHT;
    bool complete = camera->image_path != NULL &&
                    (camera->mask_path != NULL) == (frame->mask_path != NULL) &&
                    (camera->depth_path != NULL) == (frame->depth_path != NULL);
    return complete ? set_tracked(frame, camera) : VKN_ERROR;
}

static vkn_status make_split(struct vkn_scene *scene, const struct selection *selection,
                             struct scene_split *split)
{
    split->cameras = base_alloc(selection->count, sizeof(*split->cameras));
    if (split->cameras == NULL)
        return VKN_ERROR;
    size_t short_lenses = 0;
    for (size_t i = 0; i < selection->count; i++) {
        const struct transforms_frame *frame = selection->frames[i];
        struct scene_camera *camera = &split->cameras[i];
        split->camera_count = i + 1; /* scene_close frees the cameras made so far */
        BASE_TRY(make_camera(scene, frame, camera));
        camera->first_pixel = split->pixel_count;
        split->pixel_count += (uint64_t)camera->width * camera->height;
        scene->dynamic =
            scene->dynamic || camera->time != scene->splits[SCENE_TRAIN].cameras[0].time;
        short_lenses += scene_camera_invertible(camera) ? 0 : 1;
    }
    if (short_lenses > 0)
        base_log(BASE_LOG_WARNING,
                 "%s: the lens (k1 k2 ...) does not reach the corners of %zu of %zu %s images; the "
                 "pixels beyond are ignored",
                 selection->file->file, short_lenses, split->camera_count,
                 scene_split_names[split - scene->splits]);
    return VKN_OK;
}

static vkn_status assemble(struct vkn_scene *scene, const struct transforms files[SCENE_SPLITS],
                           bool single, const struct selection selections[SCENE_SPLITS],
                           const struct scene_options *options)
{
    for (unsigned split = 0; split < (single ? 1 : SCENE_SPLITS); split++)
        BASE_TRY(check_frames(&files[split], scene->load_downscale));
    BASE_TRY(choose_space(scene, &selections[SCENE_TRAIN], options));
    BASE_TRY(check_chosen_space(scene, selections[SCENE_TRAIN].file));
    BASE_TRY(set_points(scene, selections[SCENE_TRAIN].file));
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        BASE_TRY(make_split(scene, &selections[split], &scene->splits[split]));
    return VKN_OK;
}

vkn_status scene_assemble(struct vkn_scene *scene, struct transforms files[SCENE_SPLITS],
                          bool single, const struct scene_options *options)
{
    BASE_TRY(check_space(options));
    scene->unit_length =
        options->unit_length > 0 ? options->unit_length : files[SCENE_TRAIN].unit_length;
    scene->downscale = options->downscale > 0 ? options->downscale : 1;
    scene->load_downscale = scene->downscale / files[SCENE_TRAIN].image_factor;
    struct selection selections[SCENE_SPLITS] = {{0}};
    vkn_status status = select_frames(files, single, options->test_views, selections);
    if (status == VKN_OK)
        status = assemble(scene, files, single, selections, options);
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        free(selections[split].frames);
    return status;
}
