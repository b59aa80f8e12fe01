/* Parses COLMAP's text models: lines of words; lines that begin with # are comments. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/colmap.h"

/* ---- lines and words ------------------------------------------------------------------------- */

struct lines {
    const char *file;
    const char *data;     /* the file's beginning */
    const char *next;     /* NULL: at the end */
    const char *at, *end; /* the rest of the line */
    size_t number;        /* of the line, from 1 */
};

static vkn_status begin(const char *file, const char *data, size_t size, struct lines *lines)
{
    *lines = (struct lines){.file = file, .data = data, .next = data};
    const char *zero = memchr(data, 0, size);
    if (zero != NULL)
        return base_fail(VKN_BAD_INPUT, "%s: not a text (byte %zu is zero)", file,
                         (size_t)(zero - data));
    return VKN_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Goes to the next line and trims its blanks. */
static bool next_line(struct lines *lines)
{
    if (lines->next == NULL || *lines->next == '\0')
        return false;
    lines->at = lines->next;
    lines->end = lines->at + strcspn(lines->at, "\n");
    lines->next = *lines->end == '\n' ? lines->end + 1 : NULL;
    while (lines->end > lines->at && is_blank(lines->end[-1]))
        lines->end--;
    while (lines->at < lines->end && is_blank(*lines->at))
        lines->at++;
    lines->number++;
    return true;
}

/* Goes to the next line that is no comment. */
static bool next_uncommented(struct lines *lines)
{
    while (next_line(lines))
        if (lines->at == lines->end || *lines->at != '#')
            return true;
    return false;
}

/* Goes to the next line that is neither empty nor a comment. */
static bool next_record(struct lines *lines)
{
    while (next_uncommented(lines))
        if (lines->at < lines->end)
            return true;
    return false;
}

/* Skips blanks. Returns the length of the word at lines->at; 0 at the end of the line. */
static size_t find_word(struct lines *lines)
{
    while (lines->at < lines->end && is_blank(*lines->at))
        lines->at++;
    size_t length = 0;
    while (lines->at + length < lines->end && !is_blank(lines->at[length]))
        length++;
    return length;
}

/* Returns the span from the next word to the line's end. */
static struct colmap_span next_span(struct lines *lines)
{
    find_word(lines);
    return (struct colmap_span){(size_t)(lines->at - lines->data),
                                (size_t)(lines->end - lines->data)};
}

/* Ends a span at the last word that was read. */
static void end_span(const struct lines *lines, struct colmap_span *span)
{
    span->end = (size_t)(lines->at - lines->data);
}

static vkn_status bad_word(const struct lines *lines, const char *what, const char *problem)
{
    return base_fail(VKN_BAD_INPUT, "%s: line %zu: %s: %s", lines->file, lines->number, what,
                     problem);
}

/* Reads a decimal number, infinity or NaN that fills the word. */
static bool parse_number(const char *word, size_t length, double *value)
{
    char *end = NULL;
    *value = strtod(word, &end);
    return end == word + length && memchr(word, 'x', length) == NULL &&
           memchr(word, 'X', length) == NULL;
}

static vkn_status read_any_number(struct lines *lines, const char *what, double *value)
{
    size_t length = find_word(lines);
    if (length == 0)
        return bad_word(lines, what, "missing");
    if (!parse_number(lines->at, length, value))
        return bad_word(lines, what, "not a number");
    lines->at += length;
    return VKN_OK;
}

static vkn_status read_number(struct lines *lines, const char *what, double *value)
{
    BASE_TRY(read_any_number(lines, what, value));
    return isfinite(*value) ? VKN_OK : bad_word(lines, what, "not a finite number");
}

static vkn_status read_numbers(struct lines *lines, const char *const *names, size_t count,
                               double *values)
{
    for (size_t i = 0; i < count; i++)
        BASE_TRY(read_number(lines, names[i], &values[i]));
    return VKN_OK;
}

static vkn_status check_id(const struct lines *lines, const char *what, double value, uint32_t *id)
{
    if (!(value >= 0 && value <= UINT32_MAX && value == floor(value)))
        return bad_word(lines, what, "not a whole number from 0 to 4294967295");
    *id = (uint32_t)value;
    return VKN_OK;
}

static vkn_status read_id(struct lines *lines, const char *what, uint32_t *id)
{
    double value = 0;
    BASE_TRY(read_number(lines, what, &value));
    return check_id(lines, what, value, id);
}

/* ---- cameras.txt ----------------------------------------------------------------------------- */

/* Reads CAMERA_ID MODEL WIDTH HEIGHT PARAMETERS. */
static vkn_status read_camera(struct lines *lines, struct colmap_camera *camera)
{
    static const char *const size_names[2] = {"WIDTH", "HEIGHT"};
    double size[2], parameters[LENS_MAX_PARAMETERS] = {0};
    char where[512], name[64];
    BASE_TRY(read_id(lines, "CAMERA_ID", &camera->id));
    camera->line = lines->number;
    snprintf(where, sizeof(where), "%s: line %zu: camera %u", lines->file, lines->number,
             camera->id);
    size_t length = find_word(lines);
    if (length == 0)
        return bad_word(lines, "MODEL", "missing");
    const struct lens_model *model = lens_model_by_name(lines->at, length);
    snprintf(name, sizeof(name), "%.*s", (int)(length < 63 ? length : 63), lines->at);
    if (model == NULL)
        return lens_model_unsupported(where, name);
    camera->model = model;
    camera->name = next_span(lines);
    lines->at += length;
    end_span(lines, &camera->name);
    BASE_TRY(read_numbers(lines, size_names, 2, size));
    for (int axis = 0; axis < 2; axis++)
        if (size[axis] != floor(size[axis]))
            return bad_word(lines, size_names[axis], "not a whole number");
    camera->parameters = next_span(lines);
    for (unsigned i = 0; i < model->count; i++)
        BASE_TRY(read_number(lines, "PARAMS", &parameters[i]));
    if (find_word(lines) > 0)
        return bad_word(lines, "PARAMS", "more than the model has");
    return lens_from_model(model, where, size, parameters, &camera->lens);
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
    if (status == VKN_OK && cameras.failed)
        return VKN_ERROR;
    return status == VKN_OK ? colmap_check_cameras(file, model) : status;
}

/* ---- images.txt ------------------------------------------------------------------------------ */

/* Reads IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME; NAME extends to the end of the line. */
static vkn_status read_image(struct lines *lines, struct colmap_image *image)
{
    static const char *const names[] = {"QW", "QX", "QY", "QZ", "TX", "TY", "TZ"};
    BASE_TRY(read_id(lines, "IMAGE_ID", &image->id));
    image->line = lines->number;
    image->pose = next_span(lines);
    BASE_TRY(read_numbers(lines, names, 4, image->rotation));
    BASE_TRY(read_numbers(lines, names + 4, 3, image->translation));
    end_span(lines, &image->pose);
    BASE_TRY(read_id(lines, "CAMERA_ID", &image->camera_id));
    if (find_word(lines) == 0)
        return bad_word(lines, "NAME", "missing");
    ptrdiff_t length = lines->end - lines->at;
    if (length > 4096)
        return bad_word(lines, "NAME", "longer than 4096 bytes");
    image->name = base_format("%.*s", (int)length, lines->at);
    return image->name != NULL ? VKN_OK : VKN_ERROR;
}

/* Returns whether a word consists of an optional minus sign and digits with at most one point. */
static bool is_plain_number(const char *word, size_t length)
{
    size_t digits = 0, points = 0, sign = length > 0 && word[0] == '-' ? 1 : 0;
    for (size_t i = sign; i < length; i++) {
        digits += word[i] >= '0' && word[i] <= '9' ? 1 : 0;
        points += word[i] == '.' ? 1 : 0;
    }
    return digits > 0 && points <= 1 && sign + digits + points == length;
}

/* Skips a word; returns whether it is a number. Files have millions of plain numbers, which are
 * recognised without strtod. */
static bool skip_number(struct lines *lines, size_t length)
{
    double value = 0;
    bool is_number = is_plain_number(lines->at, length) || parse_number(lines->at, length, &value);
    lines->at += length;
    return is_number;
}

/* Counts the words of the line, up to `most`, and the numbers before the first other word. */
static void count_words(struct lines lines, size_t most, size_t *words, size_t *numbers)
{
    *words = *numbers = 0;
    for (size_t length; *words < most && (length = find_word(&lines)) > 0; ++*words)
        if (skip_number(&lines, length) && *numbers == *words)
            ++*numbers;
}

/* Returns whether a line has an image's nine numbers and name (which is rarely a number). */
static bool is_image_line(const struct lines *lines)
{
    size_t words = 0, numbers = 0;
    count_words(*lines, 10, &words, &numbers);
    return words == 10 && numbers == 9;
}

static bool has_only_images(struct lines lines)
{
    while (next_record(&lines))
        if (!is_image_line(&lines))
            return false;
    return true;
}

/* Finds and checks the POINTS2D line of an image: X Y POINT3D_ID, any number of times. */
static vkn_status find_points2d(struct lines *lines, struct colmap_image *image)
{
    size_t words = 0, numbers = 0;
    if (is_image_line(lines))
        return base_fail(VKN_BAD_INPUT,
                         "%s: line %zu: POINTS2D: the line of an image, where the points of image "
                         "%u belong (an empty line where it has none)",
                         lines->file, lines->number, image->id);
    count_words(*lines, SIZE_MAX, &words, &numbers);
    if (numbers < words)
        return bad_word(lines, "POINTS2D", "not a number");
    image->points2d = next_span(lines);
    image->point2d_count = words / 3;
    return words % 3 == 0
               ? VKN_OK
               : base_fail(VKN_BAD_INPUT,
                           "%s: line %zu: POINTS2D: %zu numbers are not X Y POINT3D_ID, three for "
                           "each point",
                           lines->file, lines->number, words);
}

/* Replaces the error about an invalid image line when the line lists points. */
static vkn_status refuse_points(const struct lines *lines, vkn_status status)
{
    size_t words = 0, numbers = 0;
    count_words(*lines, SIZE_MAX, &words, &numbers);
    bool lacks_name = words == 9;
    if (status != VKN_BAD_INPUT || numbers < words || words % 3 != 0 || lacks_name)
        return status;
    return base_fail(VKN_BAD_INPUT,
                     "%s: line %zu: a line of points (X Y POINT3D_ID), which belongs directly "
                     "below its image's line",
                     lines->file, lines->number);
}

/* Reads all images. An image has two lines; the second is empty for an image without points. Tools
 * that know no points write only the first lines, so a file whose lines all describe images is
 * valid too. */
static vkn_status read_images(struct lines *lines, struct base_text *images)
{
    bool only_images = has_only_images(*lines);
    while (next_record(lines)) {
        struct colmap_image image = {0};
        struct lines line = *lines;
        vkn_status status = read_image(lines, &image);
        if (status != VKN_OK)
            return refuse_points(&line, status);
        if (!only_images && next_uncommented(lines))
            status = find_points2d(lines, &image);
        base_text_add_bytes(images, &image, sizeof(image));
        if (images->failed) {
            free(image.name);
            return VKN_ERROR;
        }
        BASE_TRY(status);
    }
    return VKN_OK;
}

vkn_status colmap_text_images(const char *file, const char *data, size_t size, struct colmap *model)
{
    struct lines lines;
    BASE_TRY(begin(file, data, size, &lines));
    struct base_text images = {0};
    vkn_status status = read_images(&lines, &images);
    model->images = (struct colmap_image *)(void *)images.data;
    model->image_count = images.size / sizeof(*model->images);
    return status == VKN_OK ? colmap_check_images(file, model) : status;
}

void colmap_text_points2d(const char *data, const struct colmap_image *image, double (*points)[2])
{
    const char *at = data + image->points2d.begin;
    for (size_t i = 0; i < 3 * image->point2d_count; i++) {
        char *end = NULL;
        double value = strtod(at, &end);
        if (i % 3 < 2)
            points[i / 3][i % 3] = value;
        at = end;
    }
}

/* ---- points3D.txt ---------------------------------------------------------------------------- */

static const char *const point_names[] = {"POINT3D_ID", "X", "Y", "Z", "R", "G", "B", "ERROR"};

/* Returns why a value makes the point unusable, and sets *name to the value's name; NULL: none. */
static const char *find_invalid(const double values[8], const char **name)
{
    for (int i = 0; i < 8; i++) {
        *name = point_names[i];
        if (!isfinite(values[i]))
            return "not a finite number";
        if (i >= 1 && i <= 3 && fabs(values[i]) > POINTS_MAX_COORDINATE)
            return "beyond 1e9";
    }
    return NULL;
}

/* Reads IMAGE_ID POINT2D_IDX; sets *finite to false when a value is not finite. */
static vkn_status read_track(struct lines *lines, struct base_text *track, bool *finite)
{
    struct colmap_observation observation = {0};
    uint32_t *const ids[2] = {&observation.image, &observation.point2d};
    for (int i = 0; i < 2; i++) {
        double value = 0;
        BASE_TRY(read_any_number(lines, "TRACK", &value));
        if (isfinite(value))
            BASE_TRY(check_id(lines, "TRACK", value, ids[i]));
        else
            *finite = false;
    }
    base_text_add_bytes(track, &observation, sizeof(observation));
    return VKN_OK;
}

/* Reads POINT3D_ID X Y Z R G B ERROR and the track: IMAGE_ID POINT2D_IDX, any number of times.
 * Sets *usable to whether all values are finite and coordinates at most 1e9. */
static vkn_status read_point(struct lines *lines, struct transforms_point *point,
                             struct colmap_point *spans, struct base_text *track, bool *usable)
{
    double values[8];
    for (int i = 0; i < 8; i++) {
        if (i == 1)
            spans->position = next_span(lines);
        if (i == 7)
            spans->error = next_span(lines);
        BASE_TRY(read_any_number(lines, point_names[i], &values[i]));
        if (i == 3)
            end_span(lines, &spans->position);
    }
    end_span(lines, &spans->error);
    memcpy(point->position, values + 1, sizeof(point->position));
    point->error = (float)values[7];
    for (int i = 0; i < 3; i++) {
        double color = isfinite(values[4 + i]) ? values[4 + i] : 0;
        if (!(color >= 0 && color <= 255))
            return bad_word(lines, point_names[4 + i], "not from 0 to 255");
        point->color[i] = (uint8_t)color;
    }
    bool finite = true;
    while (find_word(lines) > 0)
        BASE_TRY(read_track(lines, track, &finite));
    const char *name = NULL, *problem = find_invalid(values, &name);
    if (problem == NULL && !finite) {
        name = "TRACK";
        problem = "not a finite number";
    }
    *usable = problem == NULL;
    if (problem != NULL)
        bad_word(lines, name, problem);
    return VKN_OK;
}

/* Growing arrays of a model's points. */
struct points {
    struct base_text points, spans, ends, track;
};

static vkn_status add_point(struct lines *lines, struct points *points,
                            struct rejected_points *left_out)
{
    struct transforms_point point = {0};
    struct colmap_point spans;
    size_t begin = points->track.size;
    bool usable = true;
    BASE_TRY(read_point(lines, &point, &spans, &points->track, &usable));
    if (!usable) {
        points->track.size = begin;
        return points_reject(left_out);
    }
    uint64_t end = points->track.size / sizeof(struct colmap_observation);
    base_text_add_bytes(&points->points, &point, sizeof(point));
    base_text_add_bytes(&points->spans, &spans, sizeof(spans));
    base_text_add_bytes(&points->ends, &end, sizeof(end));
    return VKN_OK;
}

vkn_status colmap_text_points(const char *file, const char *data, size_t size, struct colmap *model)
{
    struct lines lines;
    BASE_TRY(begin(file, data, size, &lines));
    struct points all = {0};
    vkn_status status = VKN_OK;
    while (status == VKN_OK && next_record(&lines))
        status = add_point(&lines, &all, &model->left_out);
    model->points = (struct transforms_point *)(void *)all.points.data;
    model->point_count = all.points.size / sizeof(*model->points);
    model->point_spans = (struct colmap_point *)(void *)all.spans.data;
    model->track_ends = (uint64_t *)(void *)all.ends.data;
    model->track = (struct colmap_observation *)(void *)all.track.data;
    bool failed = all.points.failed || all.spans.failed || all.ends.failed || all.track.failed;
    return status == VKN_OK && failed ? VKN_ERROR : status;
}
