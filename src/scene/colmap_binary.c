/* Parses COLMAP's binary models: little-endian numbers without padding; counts precede lists. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/colmap.h"

/* ---- bytes ----------------------------------------------------------------------------------- */

struct bytes {
    const char *file;
    const uint8_t *begin, *at;
    size_t left;    /* bytes from `at` to the end */
    bool truncated; /* a read went beyond the end */
};

static struct bytes bytes_of(const char *file, const char *data, size_t size)
{
    const uint8_t *begin = (const uint8_t *)data;
    return (struct bytes){.file = file, .begin = begin, .at = begin, .left = size};
}

/* Returns the span from here on of `size` bytes. */
static struct colmap_span next_span(const struct bytes *bytes, size_t size)
{
    size_t begin = (size_t)(bytes->at - bytes->begin);
    return (struct colmap_span){begin, begin + size};
}

static uint64_t read_integer(struct bytes *bytes, size_t size)
{
    if (size > bytes->left) {
        bytes->truncated = true;
        bytes->left = 0;
        return 0;
    }
    uint64_t value = base_integer_of(bytes->at, size, false);
    bytes->at += size;
    bytes->left -= size;
    return value;
}

static uint32_t read_u32(struct bytes *bytes)
{
    return (uint32_t)read_integer(bytes, 4);
}

static uint64_t read_u64(struct bytes *bytes)
{
    return read_integer(bytes, 8);
}

static void read_doubles(struct bytes *bytes, double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = read_integer(bytes, 8);
        memcpy(&values[i], &bits, sizeof(bits));
    }
}

/* Skips `count` elements of `size` bytes; returns false beyond the end. */
static bool skip(struct bytes *bytes, uint64_t count, size_t size)
{
    if (count > bytes->left / size) {
        bytes->truncated = true;
        bytes->left = 0;
        return false;
    }
    bytes->at += count * size;
    bytes->left -= count * size;
    return true;
}

/* Reads the count at the beginning of the file; each element has at least `smallest` bytes. */
static vkn_status read_count(struct bytes *bytes, const char *what, size_t smallest, size_t *count)
{
    uint64_t claimed = read_u64(bytes);
    if (bytes->truncated)
        return base_fail(VKN_BAD_INPUT, "%s: number of %s: cut off", bytes->file, what);
    if (claimed > bytes->left / smallest)
        return base_fail(VKN_BAD_INPUT,
                         "%s: number of %s: %llu do not fit into the %zu bytes that follow",
                         bytes->file, what, (unsigned long long)claimed, bytes->left);
    *count = (size_t)claimed;
    return VKN_OK;
}

static vkn_status cut_off(const struct bytes *bytes, const char *what, size_t index, size_t count)
{
    return base_fail(VKN_BAD_INPUT, "%s: %s %zu of %zu: cut off", bytes->file, what, index + 1,
                     count);
}

static vkn_status check_end(const struct bytes *bytes, const char *what)
{
    if (bytes->left == 0)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: %zu bytes too many after the last %s", bytes->file,
                     bytes->left, what);
}

/* ---- cameras.bin ----------------------------------------------------------------------------- */

/* Reads id (u32), model (i32), width and height (u64), parameters (f64). */
static vkn_status read_camera(struct bytes *bytes, size_t index, size_t count,
                              struct colmap_camera *camera)
{
    double parameters[LENS_MAX_PARAMETERS] = {0};
    char where[512];
    camera->id = read_u32(bytes);
    camera->name = next_span(bytes, 4);
    int32_t model_id = (int32_t)read_u32(bytes);
    const double size[2] = {(double)read_u64(bytes), (double)read_u64(bytes)};
    if (bytes->truncated)
        return cut_off(bytes, "camera", index, count);
    snprintf(where, sizeof(where), "%s: camera %u", bytes->file, camera->id);
    const struct lens_model *model = lens_model_by_id(model_id);
    if (model == NULL) {
        char name[32];
        snprintf(name, sizeof(name), "number %d", model_id);
        return lens_model_unsupported(where, name);
    }
    camera->model = model;
    camera->parameters = next_span(bytes, 8 * (size_t)model->count);
    read_doubles(bytes, parameters, model->count);
    if (bytes->truncated)
        return cut_off(bytes, "camera", index, count);
    return lens_from_model(model, where, size, parameters, &camera->lens);
}

vkn_status colmap_binary_cameras(const char *file, const char *data, size_t size,
                                 struct colmap *model)
{
    struct bytes bytes = bytes_of(file, data, size);
    size_t count = 0;
    BASE_TRY(read_count(&bytes, "cameras", 24 + 3 * 8, &count));
    model->cameras = base_alloc(count, sizeof(*model->cameras));
    if (model->cameras == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < count; i++)
        BASE_TRY(read_camera(&bytes, i, count, &model->cameras[model->camera_count++]));
    BASE_TRY(check_end(&bytes, "camera"));
    return colmap_check_cameras(file, model);
}

/* ---- images.bin ------------------------------------------------------------------------------ */

#define POINT2D 24u /* bytes of a 2D point */

/* Reads id (u32), quaternion and translation (f64), camera (u32) and name (zero-terminated); skips
 * the list of points in the image (x and y as f64, point as u64), as tracks have the same links. */
static vkn_status read_image(struct bytes *bytes, size_t index, size_t count,
                             struct colmap_image *image)
{
    image->id = read_u32(bytes);
    image->pose = next_span(bytes, 56);
    read_doubles(bytes, image->rotation, 4);
    read_doubles(bytes, image->translation, 3);
    image->camera_id = read_u32(bytes);
    const char *name = (const char *)bytes->at;
    const char *end = bytes->left > 0 ? memchr(name, 0, bytes->left) : NULL;
    if (end == NULL)
        return cut_off(bytes, "image", index, count);
    skip(bytes, (uint64_t)(end - name) + 1, 1);
    uint64_t points = read_u64(bytes);
    image->points2d = next_span(bytes, 0);
    if (bytes->truncated || !skip(bytes, points, POINT2D))
        return cut_off(bytes, "image", index, count);
    image->points2d.end = next_span(bytes, 0).begin;
    image->point2d_count = (size_t)points;
    image->name = base_format("%s", name);
    return image->name != NULL ? VKN_OK : VKN_ERROR;
}

vkn_status colmap_binary_images(const char *file, const char *data, size_t size,
                                struct colmap *model)
{
    struct bytes bytes = bytes_of(file, data, size);
    size_t count = 0;
    BASE_TRY(read_count(&bytes, "images", 4 + 7 * 8 + 4 + 1 + 8, &count));
    model->images = base_alloc(count, sizeof(*model->images));
    if (model->images == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < count; i++)
        BASE_TRY(read_image(&bytes, i, count, &model->images[model->image_count++]));
    BASE_TRY(check_end(&bytes, "image"));
    return colmap_check_images(file, model);
}

void colmap_binary_points2d(const char *data, const struct colmap_image *image, double (*points)[2])
{
    for (size_t i = 0; i < image->point2d_count; i++) {
        const char *point = data + image->points2d.begin + i * POINT2D;
        struct bytes bytes = bytes_of("", point, POINT2D);
        read_doubles(&bytes, points[i], 2);
    }
}

/* ---- points3D.bin ---------------------------------------------------------------------------- */

static bool is_valid_point(const struct transforms_point *point, double error)
{
    for (int i = 0; i < 3; i++)
        if (!(fabs(point->position[i]) <= POINTS_MAX_COORDINATE))
            return false;
    return isfinite(error);
}

/* Reads id (u64), position (f64), colour (u8), error (f64) and track: a list of image id (u32) and
 * index in that image's list (u32). Sets *usable to whether position and error are valid. */
static vkn_status read_point(struct bytes *bytes, size_t index, size_t count,
                             struct transforms_point *point, struct colmap_point *spans,
                             struct base_text *track, bool *usable)
{
    double error = 0;
    read_u64(bytes);
    spans->position = next_span(bytes, 24);
    read_doubles(bytes, point->position, 3);
    for (int i = 0; i < 3; i++)
        point->color[i] = (uint8_t)read_integer(bytes, 1);
    spans->error = next_span(bytes, 8);
    read_doubles(bytes, &error, 1);
    point->error = (float)error;
    uint64_t length = read_u64(bytes);
    if (bytes->truncated || length > bytes->left / 8)
        return cut_off(bytes, "point", index, count);
    for (uint64_t i = 0; i < length; i++) {
        struct colmap_observation observation = {.image = read_u32(bytes)};
        observation.point2d = read_u32(bytes);
        base_text_add_bytes(track, &observation, sizeof(observation));
    }
    *usable = is_valid_point(point, error);
    if (!*usable)
        base_fail(VKN_BAD_INPUT, "%s: point %zu of %zu: %s", bytes->file, index + 1, count,
                  isfinite(error) ? "its position is not finite or beyond 1e9"
                                  : "its error is not finite");
    return VKN_OK;
}

vkn_status colmap_binary_points(const char *file, const char *data, size_t size,
                                struct colmap *model)
{
    struct bytes bytes = bytes_of(file, data, size);
    size_t count = 0;
    BASE_TRY(read_count(&bytes, "points", 8 + 3 * 8 + 3 + 8 + 8, &count));
    model->points = base_alloc(count, sizeof(*model->points));
    model->point_spans = base_alloc(count, sizeof(*model->point_spans));
    model->track_ends = base_alloc(count, sizeof(*model->track_ends));
    if (model->points == NULL || model->point_spans == NULL || model->track_ends == NULL)
        return VKN_ERROR;
    struct base_text track = {0};
    vkn_status status = VKN_OK;
    for (size_t i = 0; i < count && status == VKN_OK; i++) {
        size_t kept = model->point_count, begin = track.size;
        bool usable = true;
        status = read_point(&bytes, i, count, &model->points[kept], &model->point_spans[kept],
                            &track, &usable);
        if (status == VKN_OK && !usable) {
            track.size = begin;
            status = points_reject(&model->left_out);
            continue;
        }
        model->track_ends[kept] = track.size / sizeof(struct colmap_observation);
        model->point_count++;
    }
    model->track =
        (struct colmap_observation *)(void *)track.data; /* malloc aligns it for any type */
    if (status == VKN_OK && track.failed)
        status = VKN_ERROR;
    return status == VKN_OK ? check_end(&bytes, "point") : status;
}
