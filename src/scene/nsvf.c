/* Reads NSVF's captures: Synthetic-NSVF and NSVF's copies of Tanks and Temples and of BlendedMVS
 * (Liu et al., "Neural Sparse Voxel Fields", 2020; its repository's README, "Prepare
 * your own dataset"):
 *
 *   intrinsics.txt  or intrinsic.txt, for all images, in pixels: a 3x3 or 4x4 matrix or, as in
 *                   Scene Representation Networks, a first line f cx cy 0, after which all lines
 *                   are ignored
 *   rgb/NAME.png    or .jpg, or in a folder color; NAME begins with 0_ for training, 1_ for
 *                   validation, 2_ for testing
 *   pose/NAME.txt   a 4x4 or 3x4 matrix, camera to world, of a camera with x right, y down and z
 *                   forwards; or extrinsic/NAME.txt, world to camera
 *   bbox.txt        xmin ymin zmin xmax ymax zmax voxelsize; optional
 *
 * A line of two numbers in a matrix's file is a size and is skipped, as in NSVF
 * (fairnr/data/data_utils.py). */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/capture.h"
#include "scene/find.h"
#include "scene/nsvf.h"
#include "scene/reader.h"

#define LARGEST 1e9 /* largest coordinate */

/* ---- intrinsics.txt -------------------------------------------------------------------------- */

/* Checks that the optical centre is inside of the image. It is outside when images were downscaled
 * without adapting the intrinsics, which do not tell the images' size. */
static vkn_status check_center(const char *file, const struct transforms_frame *frame)
{
    const double *center = frame->lens.center;
    if (center[0] > 0 && center[0] < frame->width && center[1] > 0 && center[1] < frame->height)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: cx cy: (%g, %g) is not within %s, which has %ux%u pixels",
                     file, center[0], center[1], frame->image_path, frame->width, frame->height);
}

/* ---- bbox.txt -------------------------------------------------------------------------------- */

/* Sets a training space in which the unit cube contains the whole box. NSVF puts voxel centres at
 * the box's corners, so the content extends half a voxel beyond the box. */
static vkn_status set_box_space(const char *file, const struct numbers *box, double wanted_scale,
                                struct transforms *transforms)
{
    static const char axes[] = "xyz";
    const double *low = box->values, *high = low + 3;
    bool has_voxel = box->count == 7 && isfinite(box->values[6]);
    double voxel = has_voxel ? box->values[6] : 0, side = 0;
    BASE_TRY(numbers_check_finite(file, box, 6));
    if (box->bad_line > 0)
        base_log(BASE_LOG_WARNING, "%s: line %zu: voxelsize is not finite; 0 is used", file,
                 box->bad_line);
    if (box->count != 6 && box->count != 7)
        return base_fail(VKN_BAD_INPUT,
                         "%s: %zu numbers are not xmin ymin zmin xmax ymax zmax voxelsize", file,
                         box->count);
    if (!(voxel >= 0 && voxel <= LARGEST))
        return base_fail(VKN_BAD_INPUT, "%s: voxelsize: %g is out of range (0 to %g)", file, voxel,
                         LARGEST);
    for (int i = 0; i < 3; i++) {
        if (!(low[i] >= -LARGEST && high[i] <= LARGEST && high[i] - low[i] >= 1 / LARGEST))
            return base_fail(VKN_BAD_INPUT,
                             "%s: %cmin %g and %cmax %g are not the side of a box (%g to %g)", file,
                             axes[i], low[i], axes[i], high[i], -LARGEST, LARGEST);
        side = fmax(side, high[i] - low[i] + voxel);
    }
    transforms->has_scale = transforms->has_offset = true;
    transforms->scale = 1 / side;
    transforms->aabb_scale = 1;
    /* The box's middle is the cube's middle at any scale. */
    double scale = wanted_scale > 0 ? wanted_scale : transforms->scale;
    for (int i = 0; i < 3; i++)
        transforms->offset[i] = 0.5 - 0.5 * (low[i] + high[i]) * scale;
    return VKN_OK;
}

static vkn_status read_box(const char *folder, double wanted_scale, struct transforms *transforms)
{
    char *file = NULL;
    struct numbers box;
    BASE_TRY(reader_find(folder, "bbox.txt", &file));
    if (file == NULL)
        return VKN_OK;
    vkn_status status = numbers_read(file, false, &box);
    if (status == VKN_OK)
        status = set_box_space(file, &box, wanted_scale, transforms);
    free(file);
    return status;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Folders of a capture. */
struct layout {
    char *folder;
    char *images, *poses; /* folders of the images and of the poses */
    bool is_inverse;      /* poses are world to camera */
};

/* Reads a matrix of 3 or 4 rows. The caller frees *text unless there is a failure. */
static vkn_status read_matrix(const char *file, char **text, struct numbers *matrix)
{
    BASE_TRY(numbers_read_text(file, true, text, matrix));
    vkn_status status = numbers_check_finite(file, matrix, SIZE_MAX);
    bool is_square = matrix->count == 16 && (matrix->rows == 4 || matrix->rows == 1);
    if (status == VKN_OK && matrix->count > 0 && !matrix->even)
        status = numbers_fail_uneven(file, matrix);
    if (status == VKN_OK && !is_square && (matrix->count != 12 || matrix->rows != 3))
        status = base_fail(VKN_BAD_INPUT, "%s: %zu numbers in %zu lines are not a matrix of 4x4",
                           file, matrix->count, matrix->rows);
    if (status != VKN_OK)
        free(*text);
    return status;
}

/* Reverses y and z of a camera: right, up and backwards are (x, -y, -z) of the files' axes. */
static void reverse_axes(double rows[4][4])
{
    for (int i = 0; i < 3; i++) {
        rows[i][1] = -rows[i][1];
        rows[i][2] = -rows[i][2];
    }
}

static vkn_status read_pose(const char *file, bool inverse, double pose[12])
{
    struct numbers matrix;
    char *text = NULL;
    BASE_TRY(read_matrix(file, &text, &matrix));
    free(text);
    double rows[4][4] = {[3] = {0, 0, 0, 1}};
    memcpy(rows, matrix.values, matrix.count * sizeof(double));
    if (inverse)
        pose_invert_matrix(rows);
    reverse_axes(rows);
    const char *problem = pose_from_matrix((const double(*)[4])rows, pose);
    return problem == NULL ? VKN_OK : base_fail(VKN_BAD_INPUT, "%s: %s", file, problem);
}

/* Finds the pose file of an image, NAME.txt; the file name may differ in case or Unicode form. A
 * path without a file is returned if there is none. */
static vkn_status find_pose(struct finder *poses, const struct layout *layout, const char *name,
                            char **path)
{
    const char *dot = strrchr(name, '.');
    char *file = base_format("%.*s.txt", (int)(dot - name), name);
    struct found found = {0};
    *path = file != NULL ? base_format("%s/%s", layout->poses, file) : NULL;
    vkn_status status =
        *path != NULL ? finder_find_in_folder(poses, layout->poses, file, &found) : VKN_ERROR;
    if (status == VKN_OK && found.other != NULL)
        status = base_fail(VKN_BAD_INPUT, "%s does not exist, and both %s and %s match it", *path,
                           found.path, found.other);
    if (found.path != NULL) {
        free(*path);
        *path = found.path;
    }
    free(found.other);
    free(file);
    return status;
}

static vkn_status read_frame(struct finder *poses, const struct layout *layout, const char *name,
                             struct transforms_frame *frame)
{
    frame->file_path = base_format("%s", name);
    frame->image_path = base_path_join(layout->images, name);
    char *file = NULL;
    vkn_status status = VKN_ERROR;
    if (frame->file_path != NULL && frame->image_path != NULL)
        status = find_pose(poses, layout, name, &file);
    if (status == VKN_OK)
        status = read_pose(file, layout->is_inverse, frame->pose);
    free(file);
    return status;
}

/* Returns the split by the prefix of the image's name; SCENE_SPLITS: no prefix. */
static unsigned split_of(const struct transforms_frame *frame)
{
    const char *name = frame->file_path;
    bool has_prefix = name[0] >= '0' && name[0] <= '2' && name[1] == '_';
    return has_prefix ? (unsigned)(name[0] - '0') : SCENE_SPLITS;
}

/* Sets the splits by the images' names. Tanks and Temples has only 0_ and 1_, and 1_ is used for
 * testing. Without such names the rule for all captures applies. */
static vkn_status set_splits(const char *images, struct transforms *transforms)
{
    size_t counts[SCENE_SPLITS + 1] = {0};
    const struct transforms_frame *unprefixed = NULL;
    for (size_t i = 0; i < transforms->count; i++) {
        unsigned split = split_of(&transforms->frames[i]);
        counts[split]++;
        if (split == SCENE_SPLITS && unprefixed == NULL)
            unprefixed = &transforms->frames[i];
    }
    if (counts[SCENE_SPLITS] == transforms->count)
        return VKN_OK;
    if (unprefixed != NULL)
        return base_fail(VKN_BAD_INPUT,
                         "%s/%s: its name does not begin with 0_, 1_ or 2_, as others do", images,
                         unprefixed->file_path);
    transforms->has_lists = true;
    for (size_t i = 0; i < transforms->count; i++) {
        unsigned split = split_of(&transforms->frames[i]);
        if (split == SCENE_VAL && counts[SCENE_TEST] == 0)
            split = SCENE_TEST;
        transforms->frames[i].splits = 1u << split;
    }
    return VKN_OK;
}

static vkn_status make_frames(const struct layout *layout, char *const *names, size_t count,
                              struct transforms *transforms)
{
    if (count == 0)
        return base_fail(VKN_BAD_INPUT, "%s: no images in this folder", layout->images);
    transforms->frames = base_alloc(count, sizeof(*transforms->frames));
    if (transforms->frames == NULL)
        return VKN_ERROR;
    struct finder *poses = NULL;
    BASE_TRY(finder_open(layout->folder, NULL, &poses));
    vkn_status status = VKN_OK;
    for (size_t i = 0; i < count && status == VKN_OK; i++) {
        struct transforms_frame *frame = &transforms->frames[transforms->count++];
        frame->index = i;
        frame->lens = transforms->lens;
        status = read_frame(poses, layout, names[i], frame);
    }
    finder_close(&poses);
    return status == VKN_OK ? set_splits(layout->images, transforms) : status;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Counts poses without an image: users delete images but leave their poses. */
static vkn_status count_poses(const char *path, size_t images, size_t *missing)
{
    DIR *stream = opendir(path);
    vkn_status status =
        stream != NULL ? VKN_OK : base_fail(VKN_BAD_INPUT, "%s: %s", path, strerror(errno));
    size_t poses = 0;
    for (struct dirent *entry; stream != NULL && (entry = readdir(stream)) != NULL;)
        poses += entry->d_name[0] != '.' && reader_ends_with(entry->d_name, ".txt") ? 1 : 0;
    if (stream != NULL)
        closedir(stream);
    *missing = poses > images ? poses - images : 0;
    return status;
}

static vkn_status read_images(const struct layout *layout, struct scene_findings *findings,
                              struct transforms *transforms)
{
    size_t missing = 0, posed = transforms->count;
    BASE_TRY(count_poses(layout->poses, posed, &missing));
    BASE_TRY(capture_measure(layout->folder, findings, transforms));
    BASE_TRY(transforms_drop_missing(transforms, layout->images, findings));
    transforms->missing += missing;
    if (missing > 0 && findings == NULL)
        base_log(BASE_LOG_WARNING, "%s: %zu of %zu poses have no image and are left out",
                 layout->images, missing, posed + missing);
    return check_center(transforms->file, &transforms->frames[0]);
}

/* ---- a capture --------------------------------------------------------------------------------
 */

static bool has_folder(const char *folder, const char *name)
{
    char *path = base_path_join(folder, name);
    bool exists = path != NULL && base_is_folder(path);
    free(path);
    return exists;
}

static const char *images_of(const char *folder)
{
    return !has_folder(folder, "rgb") && has_folder(folder, "color") ? "color" : "rgb";
}

/* Finds the intrinsics. intrinsic.txt is a common name, so the image folder must exist as well. */
static vkn_status find(const char *folder, char **file, char **others)
{
    (void)others;
    if (has_folder(folder, images_of(folder)))
        BASE_TRY(reader_find(folder, "intrinsic.txt", file));
    return *file != NULL ? VKN_OK : reader_find(folder, "intrinsics.txt", file);
}

static vkn_status read_capture(const struct layout *layout, const struct scene_options *options,
                               struct transforms *transforms)
{
    char **names = NULL;
    size_t count = 0;
    BASE_TRY(nsvf_read_lens(transforms->file, &transforms->lens));
    BASE_TRY(read_box(layout->folder, (double)options->scale, transforms));
    vkn_status status = capture_list(layout->images, &names, &count);
    if (status == VKN_OK)
        status = make_frames(layout, names, count, transforms);
    capture_free_names(names, count);
    return status == VKN_OK ? read_images(layout, options->findings, transforms) : status;
}

/* Finds the folders of a capture; without rgb and color, searches images as in other formats. */
static vkn_status find_layout(const char *file, struct layout *layout)
{
    layout->folder = base_path_folder(file);
    if (layout->folder == NULL)
        return VKN_ERROR;
    const char *images = images_of(layout->folder);
    if (!has_folder(layout->folder, images))
        BASE_TRY(capture_folder(layout->folder, file, &layout->images));
    if (layout->images == NULL)
        layout->images = base_path_join(layout->folder, images);
    layout->is_inverse = has_folder(layout->folder, "extrinsic");
    layout->poses = base_path_join(layout->folder, layout->is_inverse ? "extrinsic" : "pose");
    return layout->images != NULL && layout->poses != NULL ? VKN_OK : VKN_ERROR;
}

static void free_layout(struct layout *layout)
{
    free(layout->poses);
    free(layout->images);
    free(layout->folder);
}

static vkn_status read_scene(const char *file, const struct scene_options *options,
                             struct transforms files[SCENE_SPLITS], bool *single)
{
    *single = true;
    struct transforms *transforms = &files[SCENE_TRAIN];
    *transforms = (struct transforms){.file = base_format("%s", file),
                                      .list = "images",
                                      .measures_space = true,
                                      .image_factor = 1};
    struct layout layout = {0};
    vkn_status status = transforms->file != NULL ? find_layout(file, &layout) : VKN_ERROR;
    if (status == VKN_OK)
        status = read_capture(&layout, options, transforms);
    free_layout(&layout);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Adds a pose file with other numbers; the rest of its text stays. */
static vkn_status write_pose(const char *file, bool inverse, const double pose[12],
                             struct write_files *copies)
{
    struct numbers matrix;
    char *text = NULL;
    BASE_TRY(read_matrix(file, &text, &matrix));
    double rows[4][4] = {[3] = {0, 0, 0, 1}};
    memcpy(rows, pose, 12 * sizeof(double));
    reverse_axes(rows);
    if (inverse)
        pose_invert_matrix(rows);
    struct write_patch patch = {.data = text};
    for (size_t i = 0; i < matrix.count; i++) {
        char number[40];
        config_print_number(number, rows[i / 4][i % 4], false);
        write_replace(&patch, matrix.begins[i], matrix.ends[i], number, strlen(number));
    }
    char *name = base_format("%s/%s", inverse ? "extrinsic" : "pose", base_path_name(file));
    vkn_status status = write_add(copies, name, &patch, strlen(text));
    free(name);
    free(text);
    return status;
}

static vkn_status write_poses(const struct layout *layout, const struct write_view *views,
                              size_t count, struct write_files *copies)
{
    char **names = NULL;
    size_t name_count = 0;
    struct finder *finder = NULL;
    vkn_status status = capture_list(layout->images, &names, &name_count);
    if (status == VKN_OK)
        status = finder_open(layout->folder, NULL, &finder);
    for (size_t i = 0; i < count && status == VKN_OK; i++) {
        char *file = NULL;
        status = write_check_frame(layout->images, "images", views[i].frame, name_count);
        if (status == VKN_OK)
            status = find_pose(finder, layout, names[views[i].frame], &file);
        if (status == VKN_OK)
            status = write_pose(file, layout->is_inverse, views[i].pose, copies);
        free(file);
    }
    finder_close(&finder);
    capture_free_names(names, name_count);
    return status;
}

static vkn_status write_scene(const char *file, const struct write_view *views, size_t count,
                              struct write_files *copies)
{
    struct layout layout = {0};
    vkn_status status = find_layout(file, &layout);
    if (status == VKN_OK)
        status = write_poses(&layout, views, count, copies);
    if (status == VKN_OK)
        status = nsvf_write_lens(file, views, count, copies);
    free_layout(&layout);
    return status;
}

/* ---- the format ------------------------------------------------------------------------------ */

const struct scene_reader scene_reader_nsvf = {
    .looked_for = "intrinsics.txt, with rgb and pose",
    .ending = "intrinsics.txt",
    .hold_out =
        "begin the names of some images and their poses with 2_, or eval with --split train",
    .find = find,
    .read = read_scene,
    .write = write_scene,
};
