/* Names and reads the files of a COLMAP sparse model, checks its ids, and makes frames from its
 * images. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/colmap.h"
#include "scene/reader.h"

#define MAX_FILE_SIZE ((size_t)16 << 30)

void colmap_free(struct colmap *model)
{
    for (size_t i = 0; i < model->image_count; i++)
        free(model->images[i].name);
    free(model->images);
    free(model->cameras);
    free(model->points);
    free(model->point_spans);
    free(model->track_ends);
    free(model->track);
    free(model->left_out.first);
    *model = (struct colmap){0};
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_binary(const char *file)
{
    return reader_ends_with(file, ".bin");
}

vkn_status colmap_read_file(const char *file, char **data, size_t *size)
{
    return (is_binary(file) ? base_file_read : base_text_read)(file, MAX_FILE_SIZE, data, size);
}

vkn_status colmap_name_files(const char *cameras, struct colmap_files *files)
{
    char *folder = base_path_folder(cameras);
    *files =
        (struct colmap_files){.binary = is_binary(cameras), .cameras = base_format("%s", cameras)};
    if (folder != NULL) {
        files->images = base_path_join(folder, files->binary ? "images.bin" : "images.txt");
        files->points = base_path_join(folder, files->binary ? "points3D.bin" : "points3D.txt");
    }
    free(folder);
    bool named = files->cameras != NULL && files->images != NULL && files->points != NULL;
    return named ? VKN_OK : VKN_ERROR;
}

void colmap_free_files(struct colmap_files *files)
{
    free(files->cameras);
    free(files->images);
    free(files->points);
}

/* ---- ids, in binary and text models ---------------------------------------------------------- */

struct numbered {
    uint32_t id;
    size_t line;
};

static int by_number(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    int order = (x->id > y->id) - (x->id < y->id);
    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

/* Checks that the ids of a list are unique. Sorts the list. */
static vkn_status check_ids(const char *file, const char *what, struct numbered *list, size_t count)
{
    if (count > 1)
        qsort(list, count, sizeof(*list), by_number);
    for (size_t i = 1; i < count; i++) {
        const struct numbered *first = &list[i - 1], *second = &list[i];
        if (first->id != second->id)
            continue;
        if (second->line == 0)
            return base_fail(VKN_BAD_INPUT, "%s: %s %u: comes twice", file, what, second->id);
        return base_fail(VKN_BAD_INPUT, "%s: line %zu: %s %u: also in line %zu", file, second->line,
                         what, second->id, first->line);
    }
    return VKN_OK;
}

vkn_status colmap_check_cameras(const char *file, const struct colmap *model)
{
    struct numbered *list = base_alloc(model->camera_count, sizeof(*list));
    if (list == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < model->camera_count; i++)
        list[i] = (struct numbered){model->cameras[i].id, model->cameras[i].line};
    vkn_status status = check_ids(file, "camera", list, model->camera_count);
    free(list);
    return status;
}

vkn_status colmap_check_images(const char *file, const struct colmap *model)
{
    struct numbered *list = base_alloc(model->image_count, sizeof(*list));
    if (list == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < model->image_count; i++)
        list[i] = (struct numbered){model->images[i].id, model->images[i].line};
    vkn_status status = check_ids(file, "image", list, model->image_count);
    free(list);
    return status;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static int by_camera_id(const void *a, const void *b)
{
    uint32_t x = ((const struct colmap_camera *)a)->id, y = ((const struct colmap_camera *)b)->id;
    return (x > y) - (x < y);
}

struct colmap_camera *colmap_find_camera(const struct colmap *model, uint32_t id)
{
    const struct colmap_camera wanted = {.id = id};
    struct colmap_camera *found = NULL;
    if (model->camera_count > 0)
        found = bsearch(&wanted, model->cameras, model->camera_count, sizeof(wanted), by_camera_id);
    return found;
}

/* Inverts COLMAP's pose, world to a camera with y down and z forward, and reverses y and z. The
 * columns are right, up, backwards and the position -R^T t. Returns NULL or the problem. */
static const char *make_pose(const struct colmap_image *image, double pose[12])
{
    double w = image->rotation[0], x = image->rotation[1], y = image->rotation[2],
           z = image->rotation[3];
    double norm = sqrt(w * w + x * x + y * y + z * z);
    if (!(norm > 1e-6 && norm < 1e6))
        return "its quaternion is no rotation";
    w /= norm, x /= norm, y /= norm, z /= norm;
    const double r[3][3] = {
        {1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
        {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
        {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)},
    };
    const double *t = image->translation;
    double rows[3][4];
    for (int i = 0; i < 3; i++) {
        rows[i][0] = r[0][i];
        rows[i][1] = -r[1][i];
        rows[i][2] = -r[2][i];
        rows[i][3] = -(r[0][i] * t[0] + r[1][i] * t[1] + r[2][i] * t[2]);
    }
    return scene_pose_from_rows((const double(*)[4])rows, pose);
}

/* Formats the beginning of messages about an image. */
static void name_image(const char *file, const struct colmap_image *image, char where[512])
{
    char line[48] = "";
    if (image->line > 0)
        snprintf(line, sizeof(line), "line %zu: ", image->line);
    snprintf(where, 512, "%s: %simage %u", file, line, image->id);
}

static vkn_status make_frame(const char *file, const struct colmap *model, size_t index,
                             struct transforms_frame *frame)
{
    struct colmap_image *image = &model->images[index];
    const struct colmap_camera *camera = colmap_find_camera(model, image->camera_id);
    char where[512];
    name_image(file, image, where);
    if (camera == NULL)
        return base_fail(VKN_BAD_INPUT, "%s: there is no camera %u", where, image->camera_id);
    frame->index = index;
    frame->lens = camera->lens;
    frame->file_path = base_format("%s", image->name);
    if (frame->file_path == NULL)
        return VKN_ERROR;
    const char *problem =
        image->name[0] != '\0' ? make_pose(image, frame->pose) : "its name is empty";
    return problem == NULL ? VKN_OK : base_fail(VKN_BAD_INPUT, "%s: %s", where, problem);
}

vkn_status colmap_frames(const char *file, struct colmap *model, struct transforms *transforms)
{
    *transforms = (struct transforms){.file = base_format("%s", file),
                                      .list = "images",
                                      .lens = lens_none,
                                      .measures_space = true,
                                      .image_factor = 1};
    if (transforms->file == NULL)
        return VKN_ERROR;
    transforms->frames = base_alloc(model->image_count, sizeof(*transforms->frames));
    if (transforms->frames == NULL)
        return VKN_ERROR;
    if (model->camera_count > 1)
        qsort(model->cameras, model->camera_count, sizeof(*model->cameras), by_camera_id);
    for (size_t i = 0; i < model->image_count; i++)
        BASE_TRY(make_frame(file, model, i, &transforms->frames[transforms->count++]));
    return VKN_OK;
}

/* ---- frames by ids --------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    uint32_t x = ((const struct colmap_id *)a)->id, y = ((const struct colmap_id *)b)->id;
    return (x > y) - (x < y);
}

struct colmap_id *colmap_list_ids(const struct colmap *model, const struct transforms *transforms)
{
    struct colmap_id *ids = base_alloc(transforms->count, sizeof(*ids));
    for (size_t i = 0; ids != NULL && i < transforms->count; i++)
        ids[i] = (struct colmap_id){model->images[transforms->frames[i].index].id, i};
    if (ids != NULL && transforms->count > 1)
        qsort(ids, transforms->count, sizeof(*ids), by_id);
    return ids;
}

struct transforms_frame *colmap_find_frame(const struct colmap_id *ids,
                                           const struct transforms *transforms, uint32_t id)
{
    const struct colmap_id wanted = {.id = id};
    const struct colmap_id *found = NULL;
    if (transforms->count > 0)
        found = bsearch(&wanted, ids, transforms->count, sizeof(*ids), by_id);
    return found != NULL ? &transforms->frames[found->frame] : NULL;
}
