/* Writes COLMAP's sparse models with other cameras: replaces the lenses in the cameras file, the
 * poses in the images file, and the positions and errors of the points that the images show. */
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
    struct transforms transforms;   /* its frames, with the new cameras; one per image */
    struct triangulate_view *views; /* [image] */
    double (**points2d)[2];         /* [image][2D point] */
    bool *has_pose;                 /* [image]: its pose is new */
    bool *changed;                  /* [image]: its pose or its lens is new */
    struct colmap_id *ids;
    double *errors; /* [point]; negative: the point stays as it is */
};

static void free_rewrite(struct rewrite *rewrite)
{
    for (size_t i = 0; rewrite->points2d != NULL && i < rewrite->model.image_count; i++)
        free(rewrite->points2d[i]);
    free(rewrite->points2d);
    free(rewrite->views);
    free(rewrite->has_pose);
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

/* Sets the lens of an image's camera. */
static vkn_status set_lens(const struct write_view *view, const struct rewrite *rewrite)
{
    const struct colmap_image *image = &rewrite->model.images[view->frame];
    struct colmap_camera *camera = colmap_find_camera(&rewrite->model, image->camera_id);
    struct transforms_lens lens = view->lens;
    const char *problem = NULL;
    lens_resize(&lens, camera->lens.size);
    if (camera->is_new)
        problem = lens_difference(&lens, &camera->lens, LENS_ALL);
    if (problem != NULL)
        return base_fail(VKN_BAD_INPUT, "%s: camera %u: %s: its images have different new lenses",
                         rewrite->files.cameras, camera->id, problem);
    if (camera->is_new)
        return VKN_OK;
    camera->lens = lens;
    camera->is_new = true;
    camera->model = lens_model_for(camera->model, &lens, &problem);
    if (camera->model != NULL)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: camera %u: %s: none of COLMAP's models can hold it",
                     rewrite->files.cameras, camera->id, problem);
}

/* Gives all images the new lenses of their cameras. */
static void spread_lenses(const struct rewrite *rewrite)
{
    for (size_t i = 0; i < rewrite->model.image_count; i++) {
        uint32_t id = rewrite->model.images[i].camera_id;
        const struct colmap_camera *camera = colmap_find_camera(&rewrite->model, id);
        rewrite->transforms.frames[i].lens = camera->lens;
        rewrite->changed[i] = rewrite->changed[i] || camera->is_new;
    }
}

static vkn_status set_views(const struct write_view *views, size_t count, struct rewrite *rewrite)
{
    size_t images = rewrite->model.image_count;
    rewrite->has_pose = base_alloc(images, sizeof(*rewrite->has_pose));
    rewrite->changed = base_alloc(images, sizeof(*rewrite->changed));
    if (rewrite->has_pose == NULL || rewrite->changed == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < count; i++) {
        uint32_t frame = views[i].frame;
        BASE_TRY(write_check_frame(rewrite->files.images, "images", frame, images));
        memcpy(rewrite->transforms.frames[frame].pose, views[i].pose, sizeof(views[i].pose));
        rewrite->has_pose[frame] = rewrite->changed[frame] = true;
        if (views[i].has_lens)
            BASE_TRY(set_lens(&views[i], rewrite));
    }
    spread_lenses(rewrite);
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
 * camera, or an image or a 2D point does not exist. */
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
    char text[LENS_MAX_PARAMETERS * 40], *end = text;
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

/* Replaces a camera's model and parameters. */
static void replace_lens(const struct rewrite *rewrite, struct write_patch *patch,
                         const struct colmap_camera *camera)
{
    const struct lens_model *model = camera->model;
    double parameters[LENS_MAX_PARAMETERS];
    const char number[4] = {(char)model->id}; /* little-endian; ids are small */
    bool binary = rewrite->files.binary;
    write_replace(patch, camera->name.begin, camera->name.end, binary ? number : model->name,
                  binary ? sizeof(number) : strlen(model->name));
    lens_parameters(model, &camera->lens, parameters);
    replace_numbers(rewrite, patch, camera->parameters, parameters, model->count);
}

static int by_position(const void *a, const void *b)
{
    const struct colmap_camera *x = a, *y = b;
    return (x->name.begin > y->name.begin) - (x->name.begin < y->name.begin);
}

/* Sorts the cameras as in the file, in which parts are replaced from the beginning on. */
static vkn_status add_cameras(const struct rewrite *rewrite, struct write_files *copies)
{
    const struct colmap *model = &rewrite->model;
    struct write_patch patch = {.data = rewrite->cameras};
    if (model->camera_count > 1)
        qsort(model->cameras, model->camera_count, sizeof(*model->cameras), by_position);
    for (size_t i = 0; i < model->camera_count; i++)
        if (model->cameras[i].is_new)
            replace_lens(rewrite, &patch, &model->cameras[i]);
    return write_add(copies, base_path_name(rewrite->files.cameras), &patch, rewrite->cameras_size);
}

static vkn_status add_images(const struct rewrite *rewrite, struct write_files *copies)
{
    struct write_patch patch = {.data = rewrite->images};
    for (size_t i = 0; i < rewrite->model.image_count; i++)
        if (rewrite->has_pose[i])
            replace_pose(rewrite, &patch, i);
    return write_add(copies, base_path_name(rewrite->files.images), &patch, rewrite->images_size);
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
    return write_add(copies, base_path_name(rewrite->files.points), &patch, rewrite->points_size);
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
    BASE_TRY(add_cameras(rewrite, copies));
    BASE_TRY(add_images(rewrite, copies));
    if (rewrite->points != NULL)
        BASE_TRY(add_points(rewrite, copies));
    return leave_out(copies);
}

vkn_status colmap_write(const char *cameras, const struct write_view *views, size_t count,
                        struct write_files *copies)
{
    struct rewrite rewrite = {.cameras = NULL};
    vkn_status status = read_model(cameras, &rewrite);
    if (status == VKN_OK)
        status = set_views(views, count, &rewrite);
    if (status == VKN_OK && rewrite.points != NULL)
        status = move_points(&rewrite);
    if (status == VKN_OK)
        status = add_files(&rewrite, copies);
    free_rewrite(&rewrite);
    return status;
}
