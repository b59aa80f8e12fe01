/* COLMAP's sparse models as text: lines of words; those that begin with # are comments. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/colmap.h"

/* ---- lines and words ------------------------------------------------------------------------- */

struct lines {
    const char *file;
    const char *next;     /* NULL: no more */
    const char *at, *end; /* what is left of the line */
    size_t number;
};

static vkn_status begin(const char *file, const char *data, size_t size, struct lines *lines)
{
    *lines = (struct lines){.file = file, .next = data};
    const char *zero = memchr(data, 0, size);
    if (zero != NULL)
        return base_fail(VKN_BAD_INPUT, "%s: not a text (byte %zu is zero)", file,
                         (size_t)(zero - data));
    return VKN_OK;
}

static bool next_line(struct lines *lines)
{
    if (lines->next == NULL || *lines->next == '\0')
        return false;
    lines->at = lines->next;
    lines->end = lines->at + strcspn(lines->at, "\n");
    lines->next = *lines->end == '\n' ? lines->end + 1 : NULL;
    while (lines->end > lines->at && (lines->end[-1] == '\r' || lines->end[-1] == ' '))
        lines->end--;
    lines->number++;
    return true;
}

/* The next line that says something. */
static bool next_record(struct lines *lines)
{
    while (next_line(lines)) {
        while (lines->at < lines->end && (*lines->at == ' ' || *lines->at == '\t'))
            lines->at++;
        if (lines->at < lines->end && *lines->at != '#')
            return true;
    }
    return false;
}

/* The next word's length, from lines->at; 0 at the end of the line. */
static size_t find_word(struct lines *lines)
{
    while (lines->at < lines->end && (*lines->at == ' ' || *lines->at == '\t'))
        lines->at++;
    size_t length = 0;
    while (lines->at + length < lines->end && lines->at[length] != ' ' && lines->at[length] != '\t')
        length++;
    return length;
}

static vkn_status bad_word(const struct lines *lines, const char *what, const char *problem)
{
    return base_fail(VKN_BAD_INPUT, "%s: line %zu: %s: %s", lines->file, lines->number, what,
                     problem);
}

/* The number has to end where the word does. */
static vkn_status take_number(struct lines *lines, const char *what, double *value)
{
    size_t length = find_word(lines);
    if (length == 0)
        return bad_word(lines, what, "missing");
    char *end = NULL;
    *value = strtod(lines->at, &end);
    if (end != lines->at + length)
        return bad_word(lines, what, "not a number");
    if (!isfinite(*value))
        return bad_word(lines, what, "not a finite number");
    lines->at += length;
    return VKN_OK;
}

static vkn_status take_numbers(struct lines *lines, const char *const *names, size_t count,
                               double *values)
{
    for (size_t i = 0; i < count; i++)
        BASE_TRY(take_number(lines, names[i], &values[i]));
    return VKN_OK;
}

static vkn_status take_id(struct lines *lines, const char *what, uint32_t *id)
{
    double value = 0;
    BASE_TRY(take_number(lines, what, &value));
    if (!(value >= 0 && value <= UINT32_MAX && value == floor(value)))
        return bad_word(lines, what, "not a whole number from 0 to 4294967295");
    *id = (uint32_t)value;
    return VKN_OK;
}

/* ---- cameras.txt ----------------------------------------------------------------------------- */

/* CAMERA_ID MODEL WIDTH HEIGHT PARAMETERS */
static vkn_status read_camera(struct lines *lines, struct colmap_camera *camera)
{
    static const char *const size_names[2] = {"WIDTH", "HEIGHT"};
    double size[2], parameters[COLMAP_MAX_PARAMETERS] = {0};
    char where[512], name[64];
    BASE_TRY(take_id(lines, "CAMERA_ID", &camera->id));
    snprintf(where, sizeof(where), "%s: line %zu: camera %u", lines->file, lines->number,
             camera->id);
    size_t length = find_word(lines);
    if (length == 0)
        return bad_word(lines, "MODEL", "missing");
    const struct colmap_model *model = colmap_model_by_name(lines->at, length);
    snprintf(name, sizeof(name), "%.*s", (int)(length < 63 ? length : 63), lines->at);
    if (model == NULL)
        return colmap_unsupported(where, name);
    lines->at += length;
    BASE_TRY(take_numbers(lines, size_names, 2, size));
    for (unsigned i = 0; i < model->count; i++)
        BASE_TRY(take_number(lines, "PARAMS", &parameters[i]));
    if (find_word(lines) > 0)
        return bad_word(lines, "PARAMS", "more than the model has");
    return colmap_lens(model, where, size, parameters, &camera->lens);
}

vkn_status colmap_text_cameras(const char *file, const char *data, size_t size,
                               struct colmap *model)
{
    struct lines lines;
    BASE_TRY(begin(file, data, size, &lines));
    struct base_text cameras = {0};
    vkn_status status = VKN_OK;
    while (status == VKN_OK && next_record(&lines)) {
        struct colmap_camera camera = {0};
        status = read_camera(&lines, &camera);
        base_text_add_bytes(&cameras, &camera, sizeof(camera));
    }
    model->cameras = (struct colmap_camera *)(void *)cameras.data;
    model->camera_count = cameras.size / sizeof(*model->cameras);
    return status == VKN_OK && cameras.failed ? VKN_ERROR : status;
}

/* ---- images.txt ------------------------------------------------------------------------------ */

/* IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME, where NAME goes to the end of the line. */
static vkn_status read_image(struct lines *lines, struct colmap_image *image)
{
    static const char *const names[] = {"QW", "QX", "QY", "QZ", "TX", "TY", "TZ"};
    BASE_TRY(take_id(lines, "IMAGE_ID", &image->id));
    BASE_TRY(take_numbers(lines, names, 4, image->rotation));
    BASE_TRY(take_numbers(lines, names + 4, 3, image->translation));
    BASE_TRY(take_id(lines, "CAMERA_ID", &image->camera_id));
    if (find_word(lines) == 0)
        return bad_word(lines, "NAME", "missing");
    ptrdiff_t length = lines->end - lines->at;
    if (length > 4096)
        return bad_word(lines, "NAME", "longer than 4096 bytes");
    image->name = base_format("%.*s", (int)length, lines->at);
    return image->name != NULL ? VKN_OK : VKN_ERROR;
}

vkn_status colmap_text_images(const char *file, const char *data, size_t size, struct colmap *model)
{
    struct lines lines;
    BASE_TRY(begin(file, data, size, &lines));
    struct base_text images = {0};
    vkn_status status = VKN_OK;
    while (status == VKN_OK && next_record(&lines)) {
        struct colmap_image image = {0};
        status = read_image(&lines, &image);
        base_text_add_bytes(&images, &image, sizeof(image));
        if (images.failed)
            free(image.name);
        next_line(&lines); /* the points in the image, which may be none: an empty line */
    }
    model->images = (struct colmap_image *)(void *)images.data;
    model->image_count = images.size / sizeof(*model->images);
    return status == VKN_OK && images.failed ? VKN_ERROR : status;
}

/* ---- points3D.txt ---------------------------------------------------------------------------- */

/* POINT3D_ID X Y Z R G B ERROR and the track: IMAGE_ID POINT2D_IDX, any number of times. */
static vkn_status read_point(struct lines *lines, struct transforms_point *point,
                             struct base_text *track)
{
    static const char *const names[] = {"POINT3D_ID", "X", "Y", "Z", "R", "G", "B", "ERROR"};
    double values[8];
    BASE_TRY(take_numbers(lines, names, 8, values));
    memcpy(point->position, values + 1, sizeof(point->position));
    for (int i = 0; i < 3; i++) {
        if (!(values[4 + i] >= 0 && values[4 + i] <= 255))
            return bad_word(lines, names[4 + i], "not from 0 to 255");
        point->color[i] = (uint8_t)values[4 + i];
    }
    while (find_word(lines) > 0) {
        uint32_t image = 0, place = 0;
        BASE_TRY(take_id(lines, "TRACK", &image));
        BASE_TRY(take_id(lines, "TRACK", &place));
        base_text_add_bytes(track, &image, sizeof(image));
    }
    return VKN_OK;
}

vkn_status colmap_text_points(const char *file, const char *data, size_t size, struct colmap *model)
{
    struct lines lines;
    BASE_TRY(begin(file, data, size, &lines));
    struct base_text points = {0}, ends = {0}, track = {0};
    vkn_status status = VKN_OK;
    while (status == VKN_OK && next_record(&lines)) {
        struct transforms_point point = {0};
        status = read_point(&lines, &point, &track);
        uint64_t end = track.size / sizeof(uint32_t);
        base_text_add_bytes(&points, &point, sizeof(point));
        base_text_add_bytes(&ends, &end, sizeof(end));
    }
    model->points = (struct transforms_point *)(void *)points.data;
    model->point_count = points.size / sizeof(*model->points);
    model->track_ends = (uint64_t *)(void *)ends.data;
    model->track = (uint32_t *)(void *)track.data;
    bool failed = points.failed || ends.failed || track.failed;
    return status == VKN_OK && failed ? VKN_ERROR : status;
}
