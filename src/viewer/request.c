/* Parses and checks the parameters of requests. */
#include "viewer/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *parameter(struct MHD_Connection *connection, const char *name)
{
    return mhd.lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

/* Reads `count` finite, comma-separated numbers. */
static bool read_numbers(const char *text, double *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *end = NULL;
        numbers[i] = strtod(text, &end);
        if (end == text || !isfinite(numbers[i]) || fabs(numbers[i]) > 1e12 ||
            *end != (i + 1 < count ? ',' : 0))
            return false;
        text = end + 1;
    }
    return true;
}

static bool fail(char problem[128], const char *name, const char *wanted)
{
    snprintf(problem, 128, "%s: %s", name, wanted);
    return false;
}

/* Reads a number in [low, high]; keeps *number when the parameter is missing and not `needed`. */
static bool read_number(struct MHD_Connection *connection, const char *name, double low,
                        double high, bool needed, double *number, char problem[128])
{
    const char *text = parameter(connection, name);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "is not a number from %g to %g", low, high);
    if (!text)
        return !needed || fail(problem, name, "is missing");
    return (read_numbers(text, number, 1) && *number >= low && *number <= high) ||
           fail(problem, name, wanted);
}

/* Finds a parameter in a list that ends with NULL. *number: index; kept when it is missing. */
static bool read_choice(struct MHD_Connection *connection, const char *name,
                        const char *const *words, uint32_t *number, char problem[128])
{
    const char *text = parameter(connection, name);
    if (!text)
        return true;
    for (uint32_t i = 0; words[i]; i++)
        if (text[0] && strcmp(words[i], text) == 0) {
            *number = i;
            return true;
        }
    return fail(problem, name, "is not one of its values");
}

/* Sets the picture's size, scaled down to at most VIEWER_PIXELS. */
static void limit_size(double width, double height, struct frame_request *request)
{
    double factor = fmin(1.0, sqrt(VIEWER_PIXELS / (width * height)));
    request->width = (uint32_t)fmax(1.0, floor(width * factor));
    request->height = (uint32_t)fmax(1.0, floor(height * factor));
}

static bool read_crop(struct MHD_Connection *connection, struct frame_request *request,
                      char problem[128])
{
    const char *crop = parameter(connection, "crop");
    request->cropped = crop != NULL;
    if (!crop)
        return true;
    if (!read_numbers(crop, request->crop, 6) && !read_numbers(crop, request->crop, 9))
        return fail(problem, "crop", "is not 6 or 9 numbers");
    for (int i = 0; i < 3; i++) {
        if (!(request->crop[i] < request->crop[i + 3]))
            return fail(problem, "crop", "its first corner is not less than its second");
        if (!(fabs(request->crop[i + 6]) <= 360))
            return fail(problem, "crop", "its rotation is not from -360 to 360 degrees");
    }
    return true;
}

/* Returns whether the camera's axes have unit length and are perpendicular. */
static bool is_rigid(const double pose[12])
{
    for (int a = 0; a < 3; a++)
        for (int b = a; b < 3; b++) {
            double dot = 0;
            for (int row = 0; row < 3; row++)
                dot += pose[4 * row + a] * pose[4 * row + b];
            if (!(fabs(dot - (a == b)) < 1e-2))
                return false;
        }
    return true;
}

static bool read_center(struct MHD_Connection *connection, struct frame_request *request,
                        char problem[128])
{
    const char *center = parameter(connection, "center");
    request->center[0] = request->center[1] = 0.5;
    return !center ||
           (read_numbers(center, request->center, 2) && fabs(request->center[0]) <= 10 &&
            fabs(request->center[1]) <= 10) ||
           fail(problem, "center", "is not 2 shares of the picture's width and height");
}

/* Reads the depths of the palette's ends. */
static bool read_range(struct MHD_Connection *connection, struct frame_request *request,
                       char problem[128])
{
    const char *range = parameter(connection, "range");
    return !range ||
           (read_numbers(range, request->range, 2) && 0 <= request->range[0] &&
            request->range[0] < request->range[1]) ||
           fail(problem, "range", "is not 2 increasing depths");
}

bool request_frame(struct MHD_Connection *connection, struct frame_request *request,
                   char problem[128])
{
    static const char *const maps[] = {"rgb", "depth", "normal", "opacity", NULL};
    static const char *const second_maps[] = {"rgb", "depth", "normal", "opacity", "none", NULL};
    static const char *const backgrounds[] = {"default", "", "white", "black", NULL};
    static const char *const lenses[] = {"perspective", NULL};
    static const char *const stills[] = {"0", "1", NULL};
    const char *pose = parameter(connection, "pose");
    double width = 0, height = 0;
    uint32_t lens = 0;
    *request = (struct frame_request){.second_map = MAP_NONE};
    if (!pose || !read_numbers(pose, request->pose, 12))
        return fail(problem, "pose", "is not 12 numbers");
    if (!is_rigid(request->pose))
        return fail(problem, "pose", "is not a rotation and a position");
    if (!read_number(connection, "fov", 1, 170, true, &request->fov, problem) ||
        !read_number(connection, "width", 1, VIEWER_MOST_SIDE, true, &width, problem) ||
        !read_number(connection, "height", 1, VIEWER_MOST_SIDE, true, &height, problem) ||
        !read_number(connection, "time", 0, 1, false, &request->time, problem) ||
        !read_number(connection, "exposure", -16, 16, false, &request->exposure, problem) ||
        !read_choice(connection, "map", maps, &request->map, problem) ||
        !read_choice(connection, "second", second_maps, &request->second_map, problem) ||
        !read_choice(connection, "palette", picture_palettes, &request->palette, problem) ||
        !read_range(connection, request, problem) ||
        !read_choice(connection, "background", backgrounds, &request->background, problem) ||
        !read_choice(connection, "still", stills, &request->still, problem) ||
        !read_choice(connection, "lens", lenses, &lens, problem) ||
        !read_crop(connection, request, problem) || !read_center(connection, request, problem))
        return false;
    limit_size(width, height, request);
    return true;
}

bool request_probe(struct MHD_Connection *connection, struct exchange *exchange, char problem[128])
{
    const char *pixel = parameter(connection, "pixel");
    exchange->has_pixel = pixel != NULL;
    if (pixel && !(read_numbers(pixel, exchange->pixel, 2) && exchange->pixel[0] >= 0 &&
                   exchange->pixel[0] <= 1 && exchange->pixel[1] >= 0 && exchange->pixel[1] <= 1))
        return fail(problem, "pixel", "is not 2 shares of the picture's width and height");
    return request_frame(connection, &exchange->frame, problem);
}

bool request_photo(struct MHD_Connection *connection, struct photo_request *request,
                   char problem[128])
{
    static const char *const splits[] = {"", "train", "val", "test", NULL};
    double view = 0, width = 320;
    uint32_t split = VKN_SPLIT_TRAIN;
    if (!read_choice(connection, "split", splits, &split, problem) ||
        !read_number(connection, "view", 0, 1e7, true, &view, problem) ||
        !read_number(connection, "width", 16, VIEWER_MOST_SIDE, false, &width, problem))
        return false;
    *request = (struct photo_request){(enum vkn_split)split, (size_t)view, (uint32_t)width};
    return true;
}

static bool same_numbers(const double *a, const double *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (a[i] < b[i] || a[i] > b[i])
            return false;
    return true;
}

bool frame_same(const struct frame_request *a, const struct frame_request *b)
{
    return same_numbers(a->pose, b->pose, 12) && same_numbers(&a->fov, &b->fov, 1) &&
           same_numbers(&a->time, &b->time, 1) && same_numbers(a->crop, b->crop, 9) &&
           same_numbers(a->center, b->center, 2) && same_numbers(a->range, b->range, 2) &&
           same_numbers(&a->exposure, &b->exposure, 1) && a->width == b->width &&
           a->height == b->height && a->map == b->map && a->second_map == b->second_map &&
           a->palette == b->palette && a->background == b->background && a->cropped == b->cropped;
}

uint32_t frame_maps(const struct frame_request *request)
{
    return request->second_map == MAP_NONE ? 1 : 2;
}

bool frame_has_normals(const struct frame_request *request)
{
    return request->map == MAP_NORMAL || request->second_map == MAP_NORMAL;
}
