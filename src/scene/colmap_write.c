/* Writes COLMAP's sparse models with other poses: replaces the poses in the images file, and the
 * positions and errors of the points that the images show. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/colmap.h"
#include "scene/triangulate.h"

#define CHUNK 1024u /* points that a thread moves at a time */

/* A model, the bytes of its files, and what the points are triangulated from. */
struct rewrite {
    struct colmap_files files;
    struct colmap model;
    char *cameras, *images, *points; /* bytes; points: NULL without the file */
    size_t cameras_size, images_size, points_size;
    struct transforms transforms;   /* its frames, with the new poses; one for each image */
    struct triangulate_view *views; /* [image] */
    double (**points2d)[2];         /* [image][2D point] */
    bool *changed;                  /* [image]: the image has a new pose */
    struct colmap_id *ids;
    double *errors; /* [point]; negative: the point stays as it is */
};

static void free_rewrite(struct rewrite *rewrite)
{
    for (size_t i = 0; rewrite->points2d != NULL && i < rewrite->model.image_count; i++)
        free(rewrite->points2d[i]);
    free(rewrite->points2d);
    free(rewrite->views);
    free(rewrite->changed);
    free(rewrite->ids);
    free(rewrite->errors);
    transforms_free(&rewrite->transforms);
    colmap_free(&rewrite->model);
    free(rewrite->cameras);
    free(rewrite->images);
    free(rewrite->points);
    colmap_free_files(&rewrite->files);
}

/* ---- reading --------------------------------------------------------------------------------- */

static vkn_status read_model(const char *cameras, struct rewrite *rewrite)
{
    struct colmap_files *files = &rewrite->files;
    struct colmap *model = &rewrite->model;
    BASE_TRY(colmap_name_files(cameras, files));
    BASE_TRY(colmap_read_file(files->cameras, &rewrite->cameras, &rewrite->cameras_size));
    BASE_TRY((files->binary ? colmap_binary_cameras : colmap_text_cameras)(
        files->cameras, rewrite->cameras, rewrite->cameras_size, model));
    BASE_TRY(colmap_read_file(files->images, &rewrite->images, &rewrite->images_size));
    BASE_TRY((files->binary ? colmap_binary_images : colmap_text_images)(
        files->images, rewrite->images, rewrite->images_size, model));
    BASE_TRY(colmap_frames(files->images, model, &rewrite->transforms));
    if (!base_file_exists(files->points))
        return VKN_OK;
    BASE_TRY(colmap_read_file(files->points, &rewrite->points, &rewrite->points_size));
    return (files->binary ? colmap_binary_points : colmap_text_points)(
        files->points, rewrite->points, rewrite->points_size, model);
}

static vkn_status set_poses(const struct scene_new_pose *poses, size_t count,
                            struct rewrite *rewrite)
{
    size_t images = rewrite->model.image_count;
    rewrite->changed = base_alloc(images, sizeof(*rewrite->changed));
    if (rewrite->changed == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < count; i++) {
        uint32_t frame = poses[i].frame;
        BASE_TRY(write_check_frame(rewrite->files.images, "images", frame, images));
        memcpy(rewrite->transforms.frames[frame].pose, poses[i].pose, sizeof(poses[i].pose));
        rewrite->changed[frame] = true;
    }
    return VKN_OK;
}

static vkn_status make_view(struct rewrite *rewrite, size_t index)
{
    const struct colmap_image *image = &rewrite->model.images[index];
    rewrite->views[index] = triangulate_view(&rewrite->transforms.frames[index]);
    rewrite->points2d[index] = base_alloc(image->point2d_count, sizeof(**rewrite->points2d));
    if (rewrite->points2d[index] == NULL)
        return VKN_ERROR;
    (rewrite->files.binary ? colmap_binary_points2d : colmap_text_points2d)(
        rewrite->images, image, rewrite->points2d[index]);
    return VKN_OK;
}

static vkn_status make_views(struct rewrite *rewrite)
{
    size_t images = rewrite->model.image_count;
    rewrite->views = base_alloc(images, sizeof(*rewrite->views));
    rewrite->points2d = base_alloc(images, sizeof(*rewrite->points2d));
    rewrite->ids = colmap_list_ids(&rewrite->model, &rewrite->transforms);
    if (rewrite->views == NULL || rewrite->points2d == NULL || rewrite->ids == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < images; i++)
        BASE_TRY(make_view(rewrite, i));
    return VKN_OK;
}

/* ---- points ---------------------------------------------------------------------------------- */

static size_t track_begin(const struct colmap *model, size_t point)
{
    return point > 0 ? (size_t)model->track_ends[point - 1] : 0;
}

/* Collects the observations of a point's track. Returns false when no image of the track has a new
 * pose, or an image or a 2D point does not exist. */
static bool collect(const struct rewrite *rewrite, size_t point,
                    struct triangulate_observation *observations)
{
    const struct colmap *model = &rewrite->model;
    bool changed = false;
    for (size_t k = track_begin(model, point); k < model->track_ends[point]; k++) {
        const struct colmap_observation *element = &model->track[k];
        const struct transforms_frame *frame =
            colmap_find_frame(rewrite->ids, &rewrite->transforms, element->image);
        if (frame == NULL || element->point2d >= model->images[frame->index].point2d_count)
            return false;
        changed = changed || rewrite->changed[frame->index];
        observations->view = &rewrite->views[frame->index];
        memcpy(observations->pixel, rewrite->points2d[frame->index][element->point2d],
               sizeof(observations->pixel));
        observations++;
    }
    return changed;
}

/* Moves a chunk of points, and sets their errors. */
static vkn_status move_chunk(void *context, size_t index)
{
    struct rewrite *rewrite = context;
    struct colmap *model = &rewrite->model;
    size_t begin = index * CHUNK, end = begin + CHUNK, most = 0;
    end = end < model->point_count ? end : model->point_count;
    for (size_t i = begin; i < end; i++) {
        size_t length = (size_t)model->track_ends[i] - track_begin(model, i);
        most = length > most ? length : most;
    }
    struct triangulate_observation *observations = base_alloc(most, sizeof(*observations));
    if (observations == NULL)
        return VKN_ERROR;
    for (size_t i = begin; i < end; i++) {
        size_t length = (size_t)model->track_ends[i] - track_begin(model, i);
        rewrite->errors[i] = -1;
        if (collect(rewrite, i, observations))
            triangulate(observations, length, model->points[i].position, &rewrite->errors[i]);
    }
    free(observations);
    return VKN_OK;
}

static vkn_status move_points(struct rewrite *rewrite)
{
    size_t points = rewrite->model.point_count;
    rewrite->errors = base_alloc(points, sizeof(*rewrite->errors));
    if (rewrite->errors == NULL)
        return VKN_ERROR;
    BASE_TRY(make_views(rewrite));
    return base_parallel((points + CHUNK - 1) / CHUNK, move_chunk, rewrite, NULL);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Replaces numbers, which stand one after the other. */
static void replace_numbers(const struct rewrite *rewrite, struct write_patch *patch,
                            struct colmap_span span, const double *numbers, size_t count)
{
    char text[7 * 40], *end = text;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = 0;
        memcpy(&bits, &numbers[i], sizeof(bits));
        if (rewrite->files.binary) {
            for (size_t k = 0; k < sizeof(bits); k++)
                *end++ = (char)(bits >> (8 * k));
            continue;
        }
        if (i > 0)
            *end++ = ' ';
        config_print_number(end, numbers[i], false);
        end += strlen(end);
    }
    write_replace(patch, span.begin, span.end, text, (size_t)(end - text));
}

/* Replaces an image's pose: a quaternion and a translation from the world to the camera, whose y
 * points down and z forwards. */
static void replace_pose(const struct rewrite *rewrite, struct write_patch *patch, size_t index)
{
    const double *pose = rewrite->transforms.frames[index].pose;
    double rotation[3][3], numbers[7];
    for (ptrdiff_t row = 0; row < 3; row++) {
        double sign = row == 0 ? 1 : -1;
        for (ptrdiff_t i = 0; i < 3; i++)
            rotation[row][i] = sign * pose[4 * i + row];
        numbers[4 + row] = -(rotation[row][0] * pose[3] + rotation[row][1] * pose[7] +
                             rotation[row][2] * pose[11]);
    }
    pose_quaternion((const double(*)[3])rotation, numbers);
    replace_numbers(rewrite, patch, rewrite->model.images[index].pose, numbers, 7);
}

static vkn_status add_images(const struct rewrite *rewrite, struct write_files *copies)
{
    struct write_patch patch = {.data = rewrite->images};
    for (size_t i = 0; i < rewrite->model.image_count; i++)
        if (rewrite->changed[i])
            replace_pose(rewrite, &patch, i);
    return write_add(copies, write_name(rewrite->files.images), &patch, rewrite->images_size);
}

static vkn_status add_points(const struct rewrite *rewrite, struct write_files *copies)
{
    const struct colmap *model = &rewrite->model;
    struct write_patch patch = {.data = rewrite->points};
    for (size_t i = 0; i < model->point_count; i++) {
        const struct colmap_point *spans = &model->point_spans[i];
        if (rewrite->errors[i] < 0)
            continue;
        replace_numbers(rewrite, &patch, spans->position, model->points[i].position, 3);
        replace_numbers(rewrite, &patch, spans->error, &rewrite->errors[i], 1);
    }
    return write_add(copies, write_name(rewrite->files.points), &patch, rewrite->points_size);
}

/* Leaves out all files of the model that are not written: the poses and points of the other form,
 * of rigs and frames (COLMAP 3.12 and later makes those anew), and of the copy of the points that
 * splat trainers make. */
static vkn_status leave_out(struct write_files *copies)
{
    static const char *const names[] = {
        "cameras.bin",  "cameras.txt", "images.bin", "images.txt", "points3D.bin", "points3D.txt",
        "points3D.ply", "rigs.bin",    "rigs.txt",   "frames.bin", "frames.txt"};
    for (size_t i = 0; i < BASE_COUNT(names); i++)
        BASE_TRY(write_leave_out(copies, names[i]));
    return VKN_OK;
}

static vkn_status add_files(struct rewrite *rewrite, struct write_files *copies)
{
    struct write_patch cameras = {.data = rewrite->cameras};
    BASE_TRY(
        write_add(copies, write_name(rewrite->files.cameras), &cameras, rewrite->cameras_size));
    BASE_TRY(add_images(rewrite, copies));
    if (rewrite->points != NULL)
        BASE_TRY(add_points(rewrite, copies));
    return leave_out(copies);
}

vkn_status colmap_write(const char *cameras, const struct scene_new_pose *poses, size_t count,
                        struct write_files *copies)
{
    struct rewrite rewrite = {.cameras = NULL};
    vkn_status status = read_model(cameras, &rewrite);
    if (status == VKN_OK)
        status = set_poses(poses, count, &rewrite);
    if (status == VKN_OK && rewrite.points != NULL)
        status = move_points(&rewrite);
    if (status == VKN_OK)
        status = add_files(&rewrite, copies);
    free_rewrite(&rewrite);
    return status;
}
