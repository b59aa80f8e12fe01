/* Reads COLMAP sparse models. */
#include "scene/colmap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/capture.h"
#include "scene/reader.h"
#include "scene/space.h"

/* ---- points ---------------------------------------------------------------------------------- */

static double distance(const struct transforms_frame *frame, const double point[3])
{
    double squared = 0;
    for (int i = 0; i < 3; i++)
        squared += pow(point[i] - frame->pose[4 * i + 3], 2);
    return sqrt(squared);
}

/* Lists the distances from each frame to the points that it sees, frame after frame. Sets ends[i]
 * to the end of frame i's distances. `depths` has the capacity of all tracks. */
static void list_depths(const struct colmap *model, const struct colmap_id *ids,
                        const struct transforms *transforms, size_t *ends, double *depths)
{
    size_t observations = model->point_count > 0 ? model->track_ends[model->point_count - 1] : 0;
    for (size_t k = 0; k < observations; k++) {
        const struct transforms_frame *frame =
            colmap_find_frame(ids, transforms, model->track[k].image);
        if (frame != NULL)
            ends[frame - transforms->frames]++;
    }
    for (size_t i = 0, begin = 0; i < transforms->count; i++) {
        size_t seen = ends[i];
        ends[i] = begin; /* the loop below advances it to the end */
        begin += seen;
    }
    for (size_t i = 0, k = 0; i < model->point_count; i++) {
        for (; k < model->track_ends[i]; k++) {
            const struct transforms_frame *frame =
                colmap_find_frame(ids, transforms, model->track[k].image);
            if (frame != NULL)
                depths[ends[frame - transforms->frames]++] =
                    distance(frame, model->points[i].position);
        }
    }
}

static void set_bounds(const struct transforms *transforms, const size_t *ends, double *depths)
{
    for (size_t i = 0, begin = 0; i < transforms->count; begin = ends[i], i++)
        space_set_bounds(&transforms->frames[i], depths + begin, ends[i] - begin);
}

/* Least reprojection error of a point, pixels: the views of a short track may agree by chance. */
#define LEAST_ERROR 0.5F

/* Returns the angle of a reprojection error in pixels at the middle of a frame. */
static float to_radians(const struct transforms_frame *frame, float error)
{
    struct scene_camera camera;
    lens_apply(&frame->lens, frame->width, frame->height, 1, &camera);
    double resized = frame->lens.size[0] > 0 ? frame->width / frame->lens.size[0] : 1;
    return (float)((double)fmaxf(error, LEAST_ERROR) * resized / (double)camera.focal_x);
}

/* Lists each frame's tracked points, and converts the points' errors to angles. `ends`: see
 * list_depths. */
static vkn_status list_tracked(const struct colmap *model, const struct colmap_id *ids,
                               struct transforms *transforms, const size_t *ends)
{
    for (size_t i = 0; i < transforms->count; i++) {
        struct transforms_frame *frame = &transforms->frames[i];
        frame->tracked =
            base_alloc(ends[i] - (i > 0 ? ends[i - 1] : 0) + 1, sizeof(*frame->tracked));
        if (frame->tracked == NULL)
            return VKN_ERROR;
    }
    for (size_t i = 0, k = 0; i < model->point_count; i++) {
        const struct transforms_frame *first = NULL;
        for (; k < model->track_ends[i]; k++) {
            struct transforms_frame *frame =
                colmap_find_frame(ids, transforms, model->track[k].image);
            if (frame == NULL)
                continue;
            frame->tracked[frame->tracked_count++] = (uint32_t)i;
            first = first != NULL ? first : frame;
        }
        transforms->points[i].error = first != NULL ? to_radians(first, model->points[i].error) : 0;
    }
    return VKN_OK;
}

static vkn_status copy_points(struct colmap *model, struct transforms *transforms)
{
    transforms->points = base_alloc(model->point_count, sizeof(*transforms->points));
    if (transforms->points == NULL)
        return VKN_ERROR;
    if (model->point_count > 0)
        memcpy(transforms->points, model->points, model->point_count * sizeof(*model->points));
    transforms->point_count = model->point_count;
    transforms->left_out = model->left_out;
    model->left_out = (struct rejected_points){0};
    return VKN_OK;
}

vkn_status colmap_points(struct colmap *model, struct transforms *transforms)
{
    BASE_TRY(copy_points(model, transforms));
    size_t observations = model->point_count > 0 ? model->track_ends[model->point_count - 1] : 0;
    struct colmap_id *ids = colmap_list_ids(model, transforms);
    size_t *ends = base_alloc(transforms->count, sizeof(*ends));
    double *depths = base_alloc(observations, sizeof(*depths));
    bool allocated = ids != NULL && ends != NULL && depths != NULL;
    vkn_status status = allocated ? VKN_OK : VKN_ERROR;
    if (allocated) {
        list_depths(model, ids, transforms, ends, depths);
        set_bounds(transforms, ends, depths);
        status = list_tracked(model, ids, transforms, ends);
    }
    free(depths);
    free(ends);
    free(ids);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static vkn_status parse_file(const char *file, colmap_parser *parser, struct colmap *model)
{
    char *data = NULL;
    size_t size = 0;
    BASE_TRY(colmap_read_file(file, &data, &size));
    vkn_status status = parser(file, data, size, model);
    free(data);
    return status;
}

static vkn_status read_model(const struct colmap_files *files, const char *folder,
                             uint32_t downscale, struct scene_findings *findings,
                             struct colmap *model, struct transforms *transforms)
{
    bool binary = files->binary;
    BASE_TRY(
        parse_file(files->cameras, binary ? colmap_binary_cameras : colmap_text_cameras, model));
    BASE_TRY(parse_file(files->images, binary ? colmap_binary_images : colmap_text_images, model));
    BASE_TRY(colmap_frames(files->images, model, transforms));
    BASE_TRY(capture_find_images(folder, downscale, findings, transforms));
    if (!base_file_exists(files->points))
        return VKN_OK;
    BASE_TRY(parse_file(files->points, binary ? colmap_binary_points : colmap_text_points, model));
    return colmap_points(model, transforms);
}

vkn_status colmap_count_images(const char *cameras, size_t *count)
{
    struct colmap_files files = {0};
    struct colmap model = {0};
    vkn_status status = colmap_name_files(cameras, &files);
    if (status == VKN_OK)
        status = parse_file(files.images, files.binary ? colmap_binary_images : colmap_text_images,
                            &model);
    *count = status == VKN_OK ? model.image_count : 0;
    colmap_free(&model);
    colmap_free_files(&files);
    return status;
}

vkn_status scene_check_model(const char *folder)
{
    static const struct {
        const char *name;
        colmap_parser *parser;
    } model_files[] = {{"cameras.bin", colmap_binary_cameras},
                       {"images.bin", colmap_binary_images},
                       {"points3D.bin", colmap_binary_points}};
    struct colmap model = {0};
    vkn_status status = VKN_OK;
    for (size_t i = 0; i < BASE_COUNT(model_files) && status == VKN_OK; i++) {
        char *file = base_path_join(folder, model_files[i].name);
        status = file != NULL ? parse_file(file, model_files[i].parser, &model) : VKN_ERROR;
        free(file);
    }
    colmap_free(&model);
    return status;
}

/* ---- the format ------------------------------------------------------------------------------ */

/* Reads the model of `cameras` (.../cameras.bin or cameras.txt) and the two other files beside it,
 * with the images of the scene's folder (scene_capture_folder). */
static vkn_status read_scene(const char *cameras, const struct scene_options *options,
                             struct transforms transforms[SCENE_SPLITS], bool *single)
{
    *single = true;
    struct colmap_files files = {0};
    struct colmap model = {0};
    char *folder = NULL;
    vkn_status status = colmap_name_files(cameras, &files);
    if (status == VKN_OK)
        status = scene_capture_folder(options->path, &folder);
    if (status == VKN_OK)
        status = read_model(&files, folder, options->downscale, options->findings, &model,
                            &transforms[SCENE_TRAIN]);
    colmap_free(&model);
    free(folder);
    colmap_free_files(&files);
    return status;
}

const struct scene_reader scene_reader_colmap = {
    .looked_for = "cameras.bin or cameras.txt here or in sparse/0, sparse/1, ..., sparse, "
                  "colmap/sparse/0, ...",
    .hold_out = "add pictures, or eval with --split train", /* of two images one is held out */
    .find = colmap_find,
    .read = read_scene,
    .write = colmap_write,
};
