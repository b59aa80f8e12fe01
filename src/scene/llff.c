/* Reads LLFF captures: poses_bounds.npy and a folder of images beside it (Mildenhall et al., "Local
 * Light Field Fusion", 2019; the README of the paper's repository describes the layout).
 *
 * The array has a row of 17 numbers per image, in the order of the images' names: a 3x5 matrix by
 * rows, whose columns are the camera's axes down, right and backwards in the world, its position,
 * and (height, width, focal length in pixels) of the image at full size; then the depths of the
 * nearest and the farthest visible content. */
#include "scene/llff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/capture.h"
#include "scene/reader.h"

#define COLUMNS 17

static vkn_status read_row(const char *file, const double row[COLUMNS],
                           struct transforms_frame *frame)
{
    /* The columns right, up and backwards are the file's second, negated first and third. */
    double rows[3][4];
    for (int i = 0; i < 3; i++) {
        const double *from = row + (ptrdiff_t)5 * i;
        const double to[4] = {from[1], -from[0], from[2], from[3]};
        memcpy(rows[i], to, sizeof(to));
    }
    const char *problem = scene_pose_from_rows((const double(*)[4])rows, frame->pose);
    if (problem != NULL)
        return base_fail(VKN_BAD_INPUT, "%s: poses[%zu]: %s", file, frame->index, problem);

    double height = row[4], width = row[9], focal = row[14];
    bool possible = height >= 1 && height <= LENS_MAX_PIXELS && width >= 1 &&
                    width <= LENS_MAX_PIXELS && focal >= 1e-3 && focal <= LENS_MAX_PIXELS;
    if (!possible)
        return base_fail(VKN_BAD_INPUT,
                         "%s: poses[%zu]: height %g, width %g and focal length %g are out of range",
                         file, frame->index, height, width, focal);
    frame->lens.size[0] = width;
    frame->lens.size[1] = height;
    frame->lens.focal[0] = frame->lens.focal[1] = focal;
    bool is_finite = isfinite(row[15]) && isfinite(row[16]);
    frame->bounds[0] = is_finite ? row[15] : (double)NAN; /* replaced by check_bounds */
    frame->bounds[1] = is_finite ? row[16] : (double)NAN;
    return VKN_OK;
}

/* Sets bounds that are not measured to 0. Measured near and far bounds differ between images, with
 * far beyond near; placeholders (0.1 and 500, say) are equal for all images. */
static void check_bounds(struct transforms *transforms)
{
    const double *first = NULL;
    bool differ = false, increase = true;
    size_t unknown = 0;
    for (size_t i = 0; i < transforms->count; i++) {
        const double *bounds = transforms->frames[i].bounds;
        if (isnan(bounds[0])) {
            unknown++;
            continue;
        }
        first = first != NULL ? first : bounds;
        differ = differ || bounds[0] != first[0] || bounds[1] != first[1];
        increase = increase && bounds[0] > 0 && bounds[1] > bounds[0];
    }
    for (size_t i = 0; i < transforms->count; i++) {
        double *bounds = transforms->frames[i].bounds;
        if (!(differ && increase) || isnan(bounds[0]))
            bounds[0] = bounds[1] = 0;
    }
    if (unknown > 0)
        base_log(BASE_LOG_WARNING,
                 "%s: the depth bounds of %zu of %zu poses are not finite and are ignored",
                 transforms->file, unknown, transforms->count);
}

static vkn_status check_shape(const char *file, const struct npy *array)
{
    if (array->columns == COLUMNS && array->rows > 0)
        return VKN_OK;
    return base_json_fail(file, "shape", "(%zu, %zu) is not (images, 17)", array->rows,
                          array->columns);
}

vkn_status llff_frames(const char *file, const struct npy *array, struct transforms *transforms)
{
    *transforms = (struct transforms){.file = base_format("%s", file),
                                      .list = "poses",
                                      .lens = lens_none,
                                      .measures_space = true,
                                      .image_factor = 1};
    if (transforms->file == NULL)
        return VKN_ERROR;
    BASE_TRY(check_shape(file, array));
    transforms->frames = base_alloc(array->rows, sizeof(*transforms->frames));
    if (transforms->frames == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < array->rows; i++) {
        struct transforms_frame *frame = &transforms->frames[transforms->count++];
        frame->index = i;
        frame->lens = lens_none;
        BASE_TRY(read_row(file, array->values + i * COLUMNS, frame));
    }
    check_bounds(transforms);
    return VKN_OK;
}

/* ---- images ---------------------------------------------------------------------------------- */

static vkn_status name_images(const char *scene, const char *folder, char *const *names,
                              size_t count, struct scene_findings *findings,
                              struct transforms *transforms)
{
    if (count != transforms->count)
        return base_fail(VKN_BAD_INPUT, "%s: %zu poses, but %zu images are in %s", transforms->file,
                         transforms->count, count, folder);
    for (size_t i = 0; i < count; i++) {
        struct transforms_frame *frame = &transforms->frames[i];
        frame->file_path = base_format("%s", names[i]);
        frame->image_path = base_path_join(folder, names[i]);
        if (frame->file_path == NULL || frame->image_path == NULL)
            return VKN_ERROR;
    }
    BASE_TRY(capture_measure(scene, findings, transforms));
    return transforms_drop_missing(transforms, folder, findings);
}

static vkn_status find_images(uint32_t downscale, struct scene_findings *findings,
                              struct transforms *transforms)
{
    char *folder = base_path_folder(transforms->file), *images = NULL, **names = NULL;
    size_t count = 0;
    vkn_status status = folder != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK)
        status =
            capture_images(folder, transforms->file, downscale, &images, &transforms->image_factor);
    if (status == VKN_OK)
        status = capture_list(images, &names, &count);
    if (status == VKN_OK)
        status = name_images(folder, images, names, count, findings, transforms);
    capture_free_names(names, count);
    free(images);
    free(folder);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Sets the focal length of a row. */
static vkn_status set_focal(const char *file, const struct write_view *view, struct npy *array)
{
    const double *row = array->values + (size_t)view->frame * COLUMNS;
    const double size[2] = {row[9], row[4]};
    struct transforms_lens lens = view->lens, held = lens_none;
    if (!view->has_lens)
        return VKN_OK;
    lens_resize(&lens, size);
    held.focal[0] = held.focal[1] = lens.focal[0];
    memcpy(held.size, size, sizeof(held.size));
    const char *excess = lens_difference(&lens, &held, LENS_ALL);
    npy_set(array, view->frame, 14, lens.focal[0]);
    return excess == NULL
               ? VKN_OK
               : base_fail(VKN_BAD_INPUT,
                           "%s: poses[%u]: %s: the format has one focal length, no distortion and "
                           "the image's middle as optical centre: refine the poses only",
                           file, view->frame, excess);
}

static vkn_status set_rows(const char *file, const struct write_view *views, size_t count,
                           struct npy *array)
{
    for (size_t i = 0; i < count; i++) {
        const double *pose = views[i].pose;
        BASE_TRY(write_check_frame(file, "poses", views[i].frame, array->rows));
        for (size_t row = 0; row < 3; row++, pose += 4) {
            const double columns[4] = {-pose[1], pose[0], pose[2], pose[3]};
            for (size_t column = 0; column < 4; column++)
                npy_set(array, views[i].frame, 5 * row + column, columns[column]);
        }
        BASE_TRY(set_focal(file, &views[i], array));
    }
    return VKN_OK;
}

static vkn_status write_capture(const char *file, const struct write_view *views, size_t count,
                                struct write_files *copies)
{
    struct npy array;
    vkn_status status = npy_read(file, &array);
    if (status == VKN_OK)
        status = check_shape(file, &array);
    if (status == VKN_OK)
        status = set_rows(file, views, count, &array);
    struct write_patch patch = {.data = array.data};
    if (status == VKN_OK)
        status = write_add(copies, base_path_name(file), &patch, array.size);
    npy_free(&array);
    return status;
}

/* ---- the format ------------------------------------------------------------------------------ */

static vkn_status find(const char *folder, char **file, char **others)
{
    (void)others;
    return reader_find(folder, "poses_bounds.npy", file);
}

static vkn_status read_capture(const char *file, const struct scene_options *options,
                               struct transforms files[SCENE_SPLITS], bool *single)
{
    *single = true;
    struct transforms *transforms = &files[SCENE_TRAIN];
    struct npy array;
    vkn_status status = npy_read(file, &array);
    if (status == VKN_OK)
        status = llff_frames(file, &array, transforms);
    npy_free(&array);
    return status == VKN_OK ? find_images(options->downscale, options->findings, transforms)
                            : status;
}

const struct scene_reader scene_reader_llff = {
    .looked_for = "poses_bounds.npy",
    .ending = ".npy",
    .hold_out = "add pictures, or eval with --split train", /* of two images one is held out */
    .find = find,
    .read = read_capture,
    .write = write_capture,
};
