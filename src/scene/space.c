/* Measures a training space from cameras, points and depths. */
#include "scene/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DISTANCE      1.32 /* mean distance of the cameras from the focus point, training units */
#define SPREAD        0.33 /* distance of the farthest camera if focus and depths are unknown */
#define PARALLEL      0.9  /* length of the mean direction above which cameras look one way */
#define CONTENT_SHARE 0.98 /* fraction of the content that the cube contains */
#define UNKNOWN_SIDE  16u  /* side of the cube when no content is known */
#define LARGEST_SIDE  128u
#define HIDDEN        0.9 /* share of a distance within which a neighbour hides a point */

/* ---- helpers --------------------------------------------------------------------------------- */

bool space_is_hidden(const double *distances, uint32_t columns, uint32_t rows, uint32_t at)
{
    uint32_t column = at % columns, row = at / columns;
    for (uint32_t y = row > 0 ? row - 1 : 0; y <= row + 1 && y < rows; y++)
        for (uint32_t x = column > 0 ? column - 1 : 0; x <= column + 1 && x < columns; x++) {
            double other = distances[y * columns + x];
            if (other > 0 && other < HIDDEN * distances[at])
                return true;
        }
    return false;
}

double space_quantile(double *values, size_t count, double share)
{
    base_sort(values, count);
    return values[(size_t)(share * (double)(count - 1) + 0.5)];
}

static double position(const struct transforms_frame *frame, int axis)
{
    return frame->pose[4 * axis + 3];
}

/* Returns a component of the viewing direction, the camera's -z. */
static double direction(const struct transforms_frame *frame, int axis)
{
    return -frame->pose[4 * axis + 2];
}

static double distance_to(const struct transforms_frame *frame, const double point[3])
{
    double squared = 0;
    for (int i = 0; i < 3; i++)
        squared += (position(frame, i) - point[i]) * (position(frame, i) - point[i]);
    return sqrt(squared);
}

/* Computes a quantile of the known near (0) or far (1) bounds; 0 when there are none. */
static vkn_status bound_quantile(const struct transforms_frame *const *frames, size_t count,
                                 int bound, double share, double *depth)
{
    double *depths = base_alloc(count, sizeof(*depths));
    if (depths == NULL)
        return VKN_ERROR;
    size_t known = 0;
    for (size_t n = 0; n < count; n++)
        if (frames[n]->bounds[1] > 0)
            depths[known++] = frames[n]->bounds[bound];
    *depth = known > 0 ? space_quantile(depths, known, share) : 0;
    free(depths);
    return VKN_OK;
}

/* ---- centre and scale ------------------------------------------------------------------------ */

/* Properties of the cameras that the rule of space_measure depends on. */
struct view_summary {
    double position[3], direction[3]; /* mean position, mean of the unit directions */
    double focus[3];
    bool has_focus;
    double depth; /* harmonic mean of the median bounds; 0: unknown */
};

static vkn_status summarize_views(const struct transforms_frame *const *frames, size_t count,
                                  struct view_summary *view_summary)
{
    *view_summary = (struct view_summary){0};
    double(*views)[6] = base_alloc(count, sizeof(*views));
    if (views == NULL)
        return VKN_ERROR;
    size_t view_count = 0;
    for (size_t n = 0; n < count; n++) {
        bool has_direction =
            !lens_kinds[frames[n]->lens.kind].panoramic; /* a panorama has no viewing direction */
        for (int i = 0; i < 3; i++) {
            view_summary->position[i] +=
                (position(frames[n], i) - position(frames[0], i)) / (double)count;
            if (!has_direction)
                continue;
            views[view_count][i] = position(frames[n], i);
            views[view_count][3 + i] = direction(frames[n], i);
            view_summary->direction[i] += views[view_count][3 + i] / (double)count;
        }
        view_count += has_direction ? 1 : 0;
    }
    for (int i = 0; i < 3; i++)
        view_summary->position[i] += position(frames[0], i);
    view_summary->has_focus =
        scene_focus_point((const double(*)[6])views, view_count, view_summary->focus);
    free(views);
    double near = 0, far = 0;
    BASE_TRY(bound_quantile(frames, count, 0, 0.5, &near));
    BASE_TRY(bound_quantile(frames, count, 1, 0.5, &far));
    if (near > 0 && far > 0)
        view_summary->depth = 2 / (1 / near + 1 / far);
    return VKN_OK;
}

vkn_status space_measure(const struct transforms_frame *const *frames, size_t count,
                         struct space *space)
{
    struct view_summary view_summary;
    BASE_TRY(summarize_views(frames, count, &view_summary));
    const double *d = view_summary.direction;
    double length = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    bool forward = length > PARALLEL && view_summary.depth > 0;
    for (int i = 0; i < 3; i++)
        space->center[i] = forward ? view_summary.position[i] + d[i] / length * view_summary.depth
                           : view_summary.has_focus ? view_summary.focus[i]
                                                    : view_summary.position[i];
    double mean = 0, farthest = 0;
    for (size_t n = 0; n < count; n++) {
        double distance = distance_to(frames[n], space->center);
        mean += distance / (double)count;
        farthest = fmax(farthest, distance);
    }
    bool looks_at = forward || view_summary.has_focus, known = looks_at || view_summary.depth > 0;
    double wanted = known ? DISTANCE : SPREAD;
    double measured = looks_at ? mean : known ? view_summary.depth : farthest;
    space->scale = measured > 1e-9 ? wanted / measured : 1;
    return VKN_OK;
}

/* ---- extent ---------------------------------------------------------------------------------- */

/* Returns half the side, in training units, of the cube around the centre through the point. */
static double half_side(const struct space *space, const double point[3])
{
    double largest = 0;
    for (int i = 0; i < 3; i++)
        largest = fmax(largest, fabs(point[i] - space->center[i]));
    return largest * space->scale;
}

/* Computes a corner of the image at a depth, along the axis or, for a fisheye, along the ray. Where
 * the lens does not reach the corner, uses the end of its range. */
static void corner_at(const struct transforms_frame *frame, unsigned corner, double depth,
                      double point[3])
{
    const struct vkn_scene dataset = {.scale = 1};
    struct scene_camera camera = {0};
    double origin[3], direction[3];
    lens_apply(&frame->lens, frame->width, frame->height, 1, &camera);
    camera_set_frame(&dataset, frame, &camera);
    scene_camera_ray(&camera, (corner & 1) * (double)camera.width,
                     (corner >> 1) * (double)camera.height, origin, direction);
    double distance = depth / scene_camera_depth_scale(&camera, direction);
    for (int i = 0; i < 3; i++)
        point[i] = position(frame, i) + distance * direction[i];
}

/* Computes half the side of the cube around CONTENT_SHARE of the content; 0: unknown. */
static vkn_status content_half_side(const struct transforms *file,
                                    const struct transforms_frame *const *frames, size_t count,
                                    const struct space *space, double *result)
{
    size_t capacity = file->point_count > 4 * count ? file->point_count : 4 * count, known = 0;
    double *half_sides = base_alloc(capacity, sizeof(*half_sides));
    if (half_sides == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < file->point_count; i++)
        half_sides[known++] = half_side(space, file->points[i].position);
    for (size_t n = 0; n < count && file->point_count == 0; n++) {
        for (unsigned corner = 0; corner < 4 && frames[n]->bounds[1] > 0; corner++) {
            double point[3];
            corner_at(frames[n], corner, frames[n]->bounds[1], point);
            half_sides[known++] = half_side(space, point);
        }
    }
    *result = known > 0 ? space_quantile(half_sides, known, CONTENT_SHARE) : 0;
    free(half_sides);
    return VKN_OK;
}

vkn_status space_cube_side(const struct transforms *file,
                           const struct transforms_frame *const *frames, size_t count,
                           const struct space *space, uint32_t *aabb_scale)
{
    double half = 0;
    BASE_TRY(content_half_side(file, frames, count, space, &half));
    *aabb_scale = half > 0 ? 1 : UNKNOWN_SIDE;
    for (size_t n = 0; n < count; n++) {
        const double at[3] = {position(frames[n], 0), position(frames[n], 1),
                              position(frames[n], 2)};
        half = fmax(half, half_side(space, at));
    }
    while (*aabb_scale < LARGEST_SIDE && 0.5 * *aabb_scale < half)
        *aabb_scale *= 2;
    return VKN_OK;
}

void space_set_bounds(struct transforms_frame *frame, double *distances, size_t count)
{
    double near = count > 0 ? space_quantile(distances, count, 0.01) : 0;
    double far = count > 0 ? space_quantile(distances, count, 0.99) : 0;
    if (near > 0 && far > near) {
        frame->bounds[0] = near;
        frame->bounds[1] = far;
    }
}

vkn_status space_nearest_depth(const struct transforms_frame *const *frames, size_t count,
                               double *near)
{
    return bound_quantile(frames, count, 0, 1 - CONTENT_SHARE, near);
}
