/* Lists known depths of views: of sparse points and of depth pictures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/space.h"
#include "scene/transforms.h"

#define HOLD_OUT       8u   /* one of so many points is held out from training */
#define LEAST_VIEWS    2u   /* training views in the track of a usable point */
#define MOST_SIGMA     0.25 /* largest relative standard deviation of a usable depth */
/* Clouds without tracks: a view sees the nearest point of each cell, unless it is hidden. */
#define CELLS          48u  /* along the longer side of an image */
#define CLOUD_SIGMA    0.03 /* relative standard deviation: the point may be hidden */
/* A depth picture is compared with points of its view. */
#define COMPARED       32u
#define LEAST_COMPARED 8u
#define NEAR           0.01 /* of width + height: between a point and a pixel with a known depth */
#define OTHER_UNIT     2.0  /* ratio of depths from which on units differ */
#define AGREE          1.3 /* ratios of depths of one unit differ by less from their median, mostly */
#define MOST_COMPARED  65536u /* points of a cloud that are projected for it */

const char *const scene_depth_kinds[SCENE_DEPTH_KINDS] = {"tracked_points", "cloud_points",
                                                          "picture_pixels"};

/* Directions to a point from the training views of its track. */
struct track {
    uint32_t views, last;     /* number of views; the last one counted, plus 1 */
    float first[3], other[3]; /* from the first view; from the view that sees it most differently */
    float cosine;             /* least cosine between `first` or `other` and a view's direction */
};

struct finding {
    const struct vkn_scene *scene;
    struct track *tracks; /* [point]; NULL: points have no tracks */
    enum scene_split_name split;
    struct base_text *lists;      /* [view] struct scene_depth */
    enum scene_depth_kind *kinds; /* [view] */
    char **failures;              /* [view] why the depth picture is not read; NULL: it is */
};

/* ---- tracks ---------------------------------------------------------------------------------- */

/* Sets the unit direction from a camera to a point, and returns the distance. */
static double towards(const struct scene_camera *camera, const struct scene_point *point,
                      double direction[3])
{
    double squared = 0;
    for (int i = 0; i < 3; i++) {
        direction[i] = (double)point->position[i] - (double)camera->pose[4 * i + 3];
        squared += direction[i] * direction[i];
    }
    double distance = sqrt(squared);
    for (int i = 0; i < 3; i++)
        direction[i] /= distance;
    return distance;
}

/* Adds a view to a track. Round 0 counts the views; round 1 finds the view whose direction differs
 * most from the first view's, round 2 the largest angle between that view's direction and others.
 */
static void widen(struct track *track, int round, const double direction[3])
{
    float at[3], cosine = 0;
    for (int i = 0; i < 3; i++) {
        at[i] = (float)direction[i];
        cosine += at[i] * (round == 1 ? track->first[i] : track->other[i]);
    }
    if (round == 0 && track->views++ == 0)
        memcpy(track->first, at, sizeof at);
    if (round == 0 || !(cosine < track->cosine)) /* NaN at a camera's centre */
        return;
    track->cosine = cosine;
    if (round == 1)
        memcpy(track->other, at, sizeof at);
}

/* Measures the tracks, in fresh memory. *has_tracks: there are any. */
static struct track *measure_tracks(const struct vkn_scene *scene, bool *has_tracks)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    struct track *tracks = base_alloc(scene->point_count + 1, sizeof *tracks);
    for (size_t i = 0; i < scene->point_count && tracks; i++)
        tracks[i].cosine = 1;
    for (int round = 0; round < 3 && tracks; round++)
        for (size_t v = 0; v < train->camera_count; v++) {
            const struct scene_camera *camera = &train->cameras[v];
            for (size_t i = 0; i < camera->tracked_count; i++) {
                struct track *track = &tracks[camera->tracked[i]];
                const uint32_t turn = (uint32_t)(round * train->camera_count + v + 1);
                double direction[3];
                towards(camera, &scene->points[camera->tracked[i]], direction);
                if (track->last != turn) /* a view may have a point twice */
                    widen(track, round, direction);
                track->last = turn;
                *has_tracks = true;
            }
        }
    return tracks;
}

/* Returns the relative standard deviation of a point's distance. */
static double track_sigma(const struct track *track, const struct scene_point *point)
{
    double cosine = fmax((double)track->cosine, 0);
    return (double)point->error / sqrt(fmax(1 - cosine * cosine, 0));
}

/* ---- depths of a view ------------------------------------------------------------------------ */

static bool is_held_out(size_t point)
{
    return point % HOLD_OUT == 0;
}

bool depth_is_usable(const struct scene_camera *camera, const struct scene_depth *depth)
{
    return depth->x >= 0 && depth->y >= 0 && depth->x < (float)camera->width &&
           depth->y < (float)camera->height && depth->sigma > 0 &&
           isfinite(depth->depth * depth->depth) && isfinite(depth->sigma * depth->sigma);
}

/* Makes the depth of a point; returns false if the image does not show it. `sigma`: relative. */
static bool see(const struct scene_camera *camera, double limit, const struct scene_point *point,
                double sigma, struct scene_depth *depth)
{
    double position[3], direction[3], x, y;
    for (int i = 0; i < 3; i++)
        position[i] = (double)point->position[i];
    if (!scene_camera_project_within(camera, limit, position, &x, &y))
        return false;
    double distance = towards(camera, point, direction);
    distance *= scene_camera_depth_scale(camera, direction);
    *depth = (struct scene_depth){
        .x = (float)x, .y = (float)y, .depth = (float)distance, .sigma = (float)(distance * sigma)};
    return depth_is_usable(camera, depth);
}

static void list_tracked(const struct finding *finding, const struct scene_camera *camera,
                         struct base_text *list)
{
    const double limit = scene_camera_limit(camera);
    for (size_t i = 0; i < camera->tracked_count; i++) {
        const uint32_t index = camera->tracked[i];
        const struct track *track = &finding->tracks[index];
        const double sigma = track_sigma(track, &finding->scene->points[index]);
        struct scene_depth depth;
        if (is_held_out(index) != (finding->split == SCENE_TRAIN) && track->views >= LEAST_VIEWS &&
            sigma < MOST_SIGMA && see(camera, limit, &finding->scene->points[index], sigma, &depth))
            base_text_add_bytes(list, &depth, sizeof depth);
    }
}

static vkn_status list_cloud(const struct finding *finding, const struct scene_camera *camera,
                             size_t stride, struct base_text *list)
{
    const struct vkn_scene *scene = finding->scene;
    const double limit = scene_camera_limit(camera);
    uint32_t longer = camera->width > camera->height ? camera->width : camera->height;
    uint32_t edge = longer / CELLS + 1;
    uint32_t columns = camera->width / edge + 1, rows = camera->height / edge + 1;
    struct scene_depth *nearest = base_alloc((size_t)columns * rows, sizeof *nearest);
    size_t *points = base_alloc((size_t)columns * rows, sizeof *points);
    double *distances = base_alloc((size_t)columns * rows, sizeof *distances);
    bool allocated = nearest && points && distances;
    for (size_t i = 0; i < scene->point_count && allocated; i += stride) {
        struct scene_depth depth;
        if (!see(camera, limit, &scene->points[i], CLOUD_SIGMA, &depth))
            continue;
        uint32_t cell = (uint32_t)depth.y / edge * columns + (uint32_t)depth.x / edge;
        if (distances[cell] > 0 && (double)depth.depth >= distances[cell])
            continue;
        nearest[cell] = depth;
        points[cell] = i;
        distances[cell] = (double)depth.depth;
    }
    for (uint32_t i = 0; i < columns * rows && allocated; i++)
        if (distances[i] > 0 && is_held_out(points[i]) != (finding->split == SCENE_TRAIN) &&
            !space_is_hidden(distances, columns, rows, i))
            base_text_add_bytes(list, &nearest[i], sizeof nearest[i]);
    free(nearest);
    free(points);
    free(distances);
    return allocated ? VKN_OK : VKN_ERROR;
}

static int by_row(const void *a, const void *b)
{
    const struct scene_depth *x = a, *y = b;
    return x->y != y->y ? (x->y > y->y) - (x->y < y->y) : (x->x > y->x) - (x->x < y->x);
}

static vkn_status list_points(const struct finding *finding, const struct scene_camera *camera,
                              size_t stride, struct base_text *list)
{
    if (!finding->tracks)
        return list_cloud(finding, camera, stride, list);
    list_tracked(finding, camera, list);
    return VKN_OK;
}

/* Returns the depth of a picture / that of a point that the view sees, of the picture's depth
 * nearest to the point; 0 if none is near. */
static double ratio_at(const struct scene_camera *camera, const struct scene_depth *pixels,
                       size_t count, const struct scene_depth *point)
{
    double least = NEAR * (camera->width + camera->height), ratio = 0;
    for (size_t i = 0; i < count; i++) {
        double distance =
            hypot((double)pixels[i].x - (double)point->x, (double)pixels[i].y - (double)point->y);
        if (distance < least) {
            least = distance;
            ratio = (double)pixels[i].depth / (double)point->depth;
        }
    }
    return ratio;
}

/* Checks that depths of a picture have the unit of a view's points, if there are enough that tell:
 * hidden or made-up points have all kinds of ratios. */
static vkn_status check_unit(const struct scene_camera *camera, const struct base_text *pixels,
                             const struct base_text *points)
{
    const struct scene_depth *listed = (const void *)points->data,
                             *first = (const void *)pixels->data;
    const size_t all = points->size / sizeof *listed, size = pixels->size / sizeof *first;
    double ratios[COMPARED];
    size_t count = 0;
    for (size_t i = 0; i < COMPARED && i < all; i++) {
        double ratio =
            ratio_at(camera, first, size, &listed[all < COMPARED ? i : i * all / COMPARED]);
        if (ratio > 0)
            ratios[count++] = ratio;
    }
    double ratio = base_median(ratios, count);
    size_t agree = 0;
    for (size_t i = 0; i < count; i++)
        agree += ratios[i] < AGREE * ratio && ratios[i] > ratio / AGREE ? 1 : 0;
    bool is_one_unit = count >= LEAST_COMPARED && 4 * agree >= 3 * count;
    if (!is_one_unit || (ratio > 1 / OTHER_UNIT && ratio < OTHER_UNIT))
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "%s: its depths are %.3g times the depths of the sparse points; "
                     "depth_unit_scale_factor or integer_depth_scale may be wrong",
                     camera->depth_path, ratio);
}

/* Lists the depths of a view's depth picture. *has_picture: there is one that can be read and does
 * not contradict the points. */
static vkn_status list_picture(const struct finding *finding, size_t view, bool *has_picture)
{
    const struct scene_camera *camera = &finding->scene->splits[finding->split].cameras[view];
    struct base_text *list = &finding->lists[view], points = {0};
    struct base_kept_error kept;
    *has_picture = false;
    if (!camera->depth_path)
        return VKN_OK;
    base_error_keep(&kept);
    vkn_status status = depth_picture_read(finding->scene, camera, list);
    if (status == VKN_OK)
        status =
            list_points(finding, camera, 1 + finding->scene->point_count / MOST_COMPARED, &points);
    if (status == VKN_OK && !list->failed && !points.failed)
        status = check_unit(camera, list, &points);
    if (points.failed)
        status = VKN_ERROR;
    free(points.data);
    *has_picture = status == VKN_OK;
    if (status != VKN_BAD_INPUT)
        return status;
    list->size = 0;
    finding->failures[view] = base_format("%s", vkn_last_error());
    base_error_restore(&kept);
    return finding->failures[view] ? VKN_OK : VKN_ERROR;
}

/* Lists the depths of a view; called by base_parallel. */
static vkn_status list_view(void *context, size_t view)
{
    const struct finding *finding = context;
    const struct scene_camera *camera = &finding->scene->splits[finding->split].cameras[view];
    struct base_text *list = &finding->lists[view];
    bool has_picture;
    BASE_TRY(list_picture(finding, view, &has_picture));
    if (!has_picture)
        BASE_TRY(list_points(finding, camera, 1, list));
    if (list->failed)
        return VKN_ERROR;
    finding->kinds[view] = has_picture       ? SCENE_DEPTH_PICTURES
                           : finding->tracks ? SCENE_DEPTH_TRACKS
                                             : SCENE_DEPTH_CLOUD;
    if (list->size > 0)
        qsort(list->data, list->size / sizeof(struct scene_depth), sizeof(struct scene_depth),
              by_row);
    return VKN_OK;
}

/* ---- all views ------------------------------------------------------------------------------- */

/* Joins the lists of the views, and counts the training views' depths by kind. */
static vkn_status join(struct vkn_scene *scene, const struct finding *finding)
{
    struct scene_split *split = &scene->splits[finding->split];
    struct base_text all = {0};
    free(split->depths); /* a call may have failed after this */
    if (finding->split == SCENE_TRAIN)
        memset(scene->depths.counts, 0, sizeof scene->depths.counts);
    for (size_t v = 0; v < split->camera_count; v++) {
        struct scene_camera *camera = &split->cameras[v];
        const struct base_text *list = &finding->lists[v];
        camera->first_depth = all.size / sizeof(struct scene_depth);
        camera->depth_count = list->size / sizeof(struct scene_depth);
        base_text_add_bytes(&all, list->data, list->size);
        if (finding->split == SCENE_TRAIN)
            scene->depths.counts[finding->kinds[v]] += camera->depth_count;
    }
    split->depths = (struct scene_depth *)(void *)all.data;
    split->depth_count = all.size / sizeof(struct scene_depth);
    return all.failed ? VKN_ERROR : VKN_OK;
}

/* Warns once about all depth pictures that are not read. */
static void warn_of_failures(const struct finding *finding, size_t views)
{
    const char *first = NULL;
    size_t count = 0;
    for (size_t v = views; v-- > 0;)
        if (finding->failures[v]) {
            first = finding->failures[v];
            count++;
        }
    if (count > 0)
        base_log(BASE_LOG_WARNING,
                 "depth pictures of %zu of %zu %s views are not used; the first: %s", count, views,
                 scene_split_names[finding->split], first);
}

static vkn_status find_split(struct vkn_scene *scene, struct finding *finding)
{
    const size_t views = scene->splits[finding->split].camera_count;
    finding->failures = base_alloc(views + 1, sizeof *finding->failures);
    finding->lists = base_alloc(views + 1, sizeof *finding->lists);
    finding->kinds = base_alloc(views + 1, sizeof *finding->kinds);
    vkn_status status = finding->lists && finding->kinds && finding->failures ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK)
        status = base_parallel(views, list_view, finding, NULL);
    if (status == VKN_OK)
        status = join(scene, finding);
    if (status == VKN_OK)
        warn_of_failures(finding, views);
    for (size_t v = 0; v < views && finding->lists; v++)
        free(finding->lists[v].data);
    for (size_t v = 0; v < views && finding->failures; v++)
        free(finding->failures[v]);
    free(finding->lists);
    free(finding->kinds);
    free(finding->failures);
    return status;
}

/* Sets the median relative standard deviation of a split's depths; 0: there are none. */
static vkn_status set_sigma(const struct scene_split *split, double *sigma)
{
    double *values = base_alloc(split->depth_count + 1, sizeof *values);
    *sigma = 0;
    if (!values)
        return VKN_ERROR;
    for (size_t i = 0; i < split->depth_count; i++)
        values[i] = (double)split->depths[i].sigma / (double)split->depths[i].depth;
    if (split->depth_count > 0)
        *sigma = space_quantile(values, split->depth_count, 0.5);
    free(values);
    return VKN_OK;
}

vkn_status scene_find_depths(struct vkn_scene *scene, enum scene_split_name split)
{
    bool has_tracks = false;
    if (scene->depths.are_known[split])
        return VKN_OK;
    struct track *tracks = measure_tracks(scene, &has_tracks);
    struct finding finding = {.scene = scene, .tracks = has_tracks ? tracks : NULL, .split = split};
    vkn_status status = tracks ? find_split(scene, &finding) : VKN_ERROR;
    free(tracks);
    if (status == VKN_OK && split == SCENE_TRAIN)
        status = set_sigma(&scene->splits[split], &scene->depths.sigma);
    scene->depths.are_known[split] = status == VKN_OK;
    return status;
}
