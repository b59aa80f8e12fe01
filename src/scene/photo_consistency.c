/* Measures photo-consistency: how well the colours of the sparse points agree with the images under
 * the views' own poses, compared with the poses of other views. */
#include "scene/photo_consistency.h"

#include <math.h>
#include <stdlib.h>

#include "scene/space.h"
#include "scene/transforms.h"

#define LEAST_POINTS 24u  /* fewest points for a correlation */
#define LEAST_SPREAD 5.0  /* smallest standard deviation of colours (0..255) for a correlation */
#define OPAQUE       128u /* smallest alpha of compared pixels */
#define MOST_GREY    4.0  /* largest difference between the channels (0..255) of a grey colour */
#define LEAST_OTHERS 3u   /* fewest other poses that are compared with a view's own */
#define SHIFTS       8    /* an image without other poses is shifted by multiples of 1/SHIFTS */
/* A pose counts as different when it moves half of the visible points by this fraction of the
 * image, or out of it. */
#define MOVED        0.05
#define MOVED_TESTED 32u  /* rough number of points that are tested for a move */
#define BLIND_SHARE  0.01 /* fraction of the sparse points; a view that sees fewer is blind */
/* Smallest correlation between the colours of nearest neighbours. It is near 0 in a random cloud,
 * as used to initialise splats. */
#define COHERENT     0.1

/* ---- correlation ----------------------------------------------------------------------------- */

/* Sums over pairs of colours, by channel. */
struct sums {
    double count, a[3], b[3], aa[3], bb[3], ab[3];
};

static void add_pair(struct sums *sums, const double a[3], const double b[3])
{
    sums->count++;
    for (int i = 0; i < 3; i++) {
        sums->a[i] += a[i];
        sums->b[i] += b[i];
        sums->aa[i] += a[i] * a[i];
        sums->bb[i] += b[i] * b[i];
        sums->ab[i] += a[i] * b[i];
    }
}

/* Returns Pearson's correlation, each channel about its mean; sets *variance to that of `a`. */
static double correlation_of(const struct sums *s, double *variance)
{
    double aa = 0, bb = 0, ab = 0, n = fmax(s->count, 1);
    for (int i = 0; i < 3; i++) {
        aa += (s->aa[i] - s->a[i] * s->a[i] / n) / n;
        bb += (s->bb[i] - s->b[i] * s->b[i] / n) / n;
        ab += (s->ab[i] - s->a[i] * s->b[i] / n) / n;
    }
    *variance = aa;
    return aa > 1e-6 && bb > 1e-6 ? ab / sqrt(aa * bb) : 0;
}

/* Returns the pixel at a position (0..1) along an edge of `size` pixels. */
static uint32_t pixel_at(double position, uint32_t size)
{
    double at = floor(position * size);
    return at < 0 ? 0 : at < size ? (uint32_t)at : size - 1;
}

/* Returns whether the three channels are equal, up to JPEG's errors. */
static bool is_grey(const double color[3])
{
    double least = fmin(color[0], fmin(color[1], color[2]));
    double most = fmax(color[0], fmax(color[1], color[2]));
    return most - least <= MOST_GREY;
}

static double mean_of(const double color[3])
{
    return (color[0] + color[1] + color[2]) / 3;
}

/* Sums over colours, and over their means for comparisons with black and white images. */
struct pairs {
    struct sums colors, means;
    size_t grey_a, grey_b;
};

static void add_colors(struct pairs *pairs, const double a[3], const double b[3])
{
    const double mean_a[3] = {mean_of(a)}, mean_b[3] = {mean_of(b)};
    add_pair(&pairs->colors, a, b);
    add_pair(&pairs->means, mean_a, mean_b);
    pairs->grey_a += is_grey(a) ? 1 : 0;
    pairs->grey_b += is_grey(b) ? 1 : 0;
}

/* Returns the sums to compare: of means when all points or all pixels are grey, else of colours. */
static const struct sums *comparable(const struct pairs *pairs, size_t count)
{
    return pairs->grey_a == count || pairs->grey_b == count ? &pairs->means : &pairs->colors;
}

double consistency_correlation(const struct consistency_sampled_view *sampled,
                               const struct consistency_points *points, double shift, size_t *count)
{
    struct pairs pairs = {0};
    double variance = 0;
    for (size_t i = 0; i < points->count; i++) {
        const struct consistency_point *point = &points->list[i];
        double x = (double)point->x - shift, a[3], b[3];
        uint32_t column = pixel_at(x - floor(x), sampled->width),
                 row = pixel_at((double)point->y, sampled->height);
        uint32_t pixel = sampled->pixels[(size_t)row * sampled->width + column],
                 alpha = pixel >> 24;
        if (pixel == SCENE_IGNORED || alpha < OPAQUE)
            continue;
        for (int c = 0; c < 3; c++) {
            a[c] = (double)point->color[c];
            b[c] = (pixel >> (8 * c) & 255) * (255.0 / alpha);
        }
        add_colors(&pairs, a, b);
    }
    size_t compared = (size_t)pairs.colors.count;
    double correlation = correlation_of(comparable(&pairs, compared), &variance);
    *count = variance < LEAST_SPREAD * LEAST_SPREAD ? 0 : compared;
    return *count > 0 ? correlation : 0;
}

/* Returns the correlation times the fraction of points inside of the image, since tracked points
 * are in the image when the pose is right. */
static double agreement(const struct consistency_sampled_view *sampled,
                        const struct consistency_points *points, double shift, size_t *count)
{
    double all = (double)(points->count + points->outside);
    double correlation = consistency_correlation(sampled, points, shift, count);
    return all > 0 ? correlation * (double)points->count / all : 0;
}

/* ---- other poses ----------------------------------------------------------------------------- */

static const struct consistency_points *points_of(const struct consistency_sampled_view *sampled,
                                                  bool tracked)
{
    return tracked ? &sampled->tracked : &sampled->nearest;
}

/* Returns whether the points of one view are elsewhere in the image of another view. */
static bool is_elsewhere(const struct consistency_points *points,
                         const struct consistency_sampled_view *other)
{
    size_t tested = 0, moved = 0, stride = 1 + points->count / MOVED_TESTED;
    for (size_t i = 0; i < points->count; i += stride, tested++) {
        const struct consistency_point *point = &points->list[i];
        double x = 0, y = 0;
        bool seen =
            scene_camera_project_within(other->camera, other->limit, point->position, &x, &y);
        x = fabs(x / other->camera->width - (double)point->x);
        y = fabs(y / other->camera->height - (double)point->y);
        moved += !seen || fmax(x, y) > MOVED ? 1 : 0;
    }
    return 2 * moved >= tested;
}

/* Computes the agreements of a view's image with points projected by other views' poses.
 * Returns the number of agreements. */
static size_t compare_others(const struct consistency_sample *sample,
                             const struct consistency_sampled_view *sampled, bool tracked,
                             double *others)
{
    size_t found = 0;
    for (size_t i = 0; i < sample->count; i++) {
        const struct consistency_sampled_view *other = &sample->sampled_views[i];
        const struct consistency_points *points = points_of(other, tracked);
        size_t count = 0;
        if (other == sampled || points->count < LEAST_POINTS ||
            !is_elsewhere(points_of(sampled, tracked), other))
            continue;
        double value = agreement(sampled, points, 0, &count);
        if (count >= LEAST_POINTS)
            others[found++] = value;
    }
    return found;
}

/* Computes the agreements with the image shifted to the side, if there are too few other poses. */
static size_t compare_shifted(const struct consistency_sampled_view *sampled, bool tracked,
                              double *others)
{
    for (int i = 1; i < SHIFTS; i++) {
        size_t count = 0;
        others[i - 1] = agreement(sampled, points_of(sampled, tracked), (double)i / SHIFTS, &count);
    }
    return SHIFTS - 1;
}

static void measure_fit(const struct consistency_sample *sample,
                        const struct consistency_sampled_view *sampled, bool tracked,
                        double *others, struct consistency_fit *fit)
{
    const struct consistency_points *points = points_of(sampled, tracked);
    size_t count = 0;
    double own = agreement(sampled, points, 0, &count);
    /* Tracked points outside of the image count as well. */
    size_t evidence = count > 0 || points->count < LEAST_POINTS ? count + points->outside : 0;
    if (evidence < LEAST_POINTS)
        return;
    size_t found = compare_others(sample, sampled, tracked, others);
    if (found < LEAST_OTHERS)
        found = compare_shifted(sampled, tracked, others);
    double median = fmax(space_quantile(others, found, 0.5), 0), range = fmax(1 - median, 0.05);
    *fit = (struct consistency_fit){
        .points = evidence,
        .agreement = own,
        .others = median,
        .fit = (own - median) / range,
        .error = (1 - own * own) / sqrt((double)evidence) / range,
    };
}

/* ---- colours of the points ------------------------------------------------------------------- */

static size_t find_nearest(const struct vkn_scene *scene, size_t point, size_t stride)
{
    const struct scene_point *points = scene->points;
    size_t nearest = point;
    double least = INFINITY;
    for (size_t k = 0; k < scene->point_count; k += stride) {
        double squared = 0;
        for (int i = 0; i < 3; i++)
            squared += pow((double)points[k].position[i] - (double)points[point].position[i], 2);
        if (k != point && squared < least) {
            least = squared;
            nearest = k;
        }
    }
    return nearest;
}

/* Returns whether neighbouring points have similar colours, as on surfaces. */
static bool is_coherent(const struct vkn_scene *scene)
{
    enum { TESTED = 512, SEARCHED = 8192 };
    size_t stride = 1 + scene->point_count / SEARCHED,
           step = 1 + scene->point_count / stride / TESTED;
    struct sums sums = {0};
    double variance = 0;
    for (size_t i = 0; i < scene->point_count; i += stride * step) {
        double a[3], b[3];
        size_t nearest = find_nearest(scene, i, stride);
        for (int c = 0; c < 3; c++) {
            a[c] = scene->points[i].color[c];
            b[c] = scene->points[nearest].color[c];
        }
        add_pair(&sums, a, b);
    }
    return correlation_of(&sums, &variance) > COHERENT && variance >= LEAST_SPREAD * LEAST_SPREAD;
}

/* ---- the measurement ------------------------------------------------------------------------- */

struct measuring {
    const struct vkn_scene *scene;
    const struct consistency_sample *sample;
    struct consistency_view *views; /* [sample.count] */
};

static vkn_status measure_view(void *context, size_t number)
{
    const struct measuring *measuring = context;
    const struct consistency_sample *sample = measuring->sample;
    const struct consistency_sampled_view *sampled = &sample->sampled_views[number];
    struct consistency_view *view = &measuring->views[number];
    *view = (struct consistency_view){.split = sampled->split, .index = sampled->index};
    if (sampled->pixels == NULL)
        return VKN_OK;
    double *others = base_alloc(sample->count + SHIFTS, sizeof *others);
    if (others == NULL)
        return VKN_ERROR;
    measure_fit(sample, sampled, true, others, &view->tracked);
    measure_fit(sample, sampled, false, others, &view->nearest);
    size_t seen = sampled->nearest.count + sampled->tracked.count;
    view->is_blind = view->tracked.points == 0 && seen < LEAST_POINTS &&
                     (double)seen < BLIND_SHARE * (double)measuring->scene->point_count;
    free(others);
    return VKN_OK;
}

static vkn_status measure_sample(const struct vkn_scene *scene,
                                 const struct consistency_sample *sample,
                                 struct consistency *consistency)
{
    struct measuring measuring = {scene, sample,
                                  base_alloc(sample->count, sizeof *measuring.views)};
    consistency->views = measuring.views;
    consistency->sampled = sample->count;
    consistency->total = sample->views;
    if (measuring.views == NULL)
        return VKN_ERROR;
    BASE_TRY(base_parallel(sample->count, measure_view, &measuring, NULL));
    for (size_t i = 0; i < sample->count; i++)
        if (sample->sampled_views[i].pixels != NULL)
            consistency->views[consistency->count++] = measuring.views[i];
    return VKN_OK;
}

vkn_status consistency_measure(const struct vkn_scene *scene, struct consistency *consistency)
{
    struct consistency_sample sample = {0};
    *consistency = (struct consistency){.reason = "there are no sparse points"};
    if (scene->point_count == 0)
        return VKN_OK;
    consistency->reason = scene->point_count < LEAST_POINTS
                              ? "there are fewer than 24 sparse points"
                              : "the points have no colours, or random ones (neighbours differ)";
    if (!is_coherent(scene))
        return VKN_OK;
    vkn_status status = consistency_sample_read(scene, &sample);
    if (status == VKN_OK)
        status = measure_sample(scene, &sample, consistency);
    consistency_sample_free(&sample);
    return status == VKN_OK ? consistency_judge(consistency) : status;
}

void consistency_free(struct consistency *consistency)
{
    free(consistency->views);
    *consistency = (struct consistency){0};
}
