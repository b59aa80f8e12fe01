/* Interpolates a smooth path through the training cameras. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/camera_path.h"

/* The order of names is used unless its path is longer than this many times the computed tour. */
#define MAX_DETOUR    1.5
#define MOST_ROUNDS   50    /* iterations of improving a tour, each over every pair of cameras */
#define MOST_IMPROVED 1000u /* largest number of cameras whose tour is improved */

/* Indices of a camera's values; the quaternion is w x y z. */
enum { POSITION = 0, ROTATION = 3, CHANNELS = 7 };

struct camera_order {
    const struct scene_split *train;
    size_t count;
    size_t *order;  /* [count] indices of cameras */
    double radian;  /* distance that equals a rotation by one radian: mean distance of the cameras
                       from their mean position */
    double *values; /* [count][CHANNELS] */
    double *times;  /* [count + 1]: path length up to each camera */
};

/* ---- order ----------------------------------------------------------------------------------- */

/* Compares names in natural order: numbers by their value. */
static int compare_names(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            a += strspn(a, "0");
            b += strspn(b, "0");
            size_t digits_a = strspn(a, "0123456789"), digits_b = strspn(b, "0123456789");
            int order = digits_a != digits_b ? (digits_a > digits_b) - (digits_a < digits_b)
                                             : strncmp(a, b, digits_a);
            if (order != 0)
                return order;
            a += digits_a;
            b += digits_b;
        } else if (*a != *b) {
            return (unsigned char)*a - (unsigned char)*b;
        } else {
            a++;
            b++;
        }
    }
    return (unsigned char)*a - (unsigned char)*b;
}

struct named {
    const char *name;
    size_t index;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = compare_names(x->name, y->name);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static vkn_status order_by_name(struct camera_order *camera_order)
{
    struct named *names = base_alloc(camera_order->count, sizeof(*names));
    if (names == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < camera_order->count; i++)
        names[i] = (struct named){camera_order->train->cameras[i].image_path, i};
    qsort(names, camera_order->count, sizeof(*names), by_name);
    for (size_t i = 0; i < camera_order->count; i++)
        camera_order->order[i] = names[i].index;
    free(names);
    return VKN_OK;
}

/* Returns the distance between cameras: translation plus weighted rotation of the viewing axis. */
static double distance(const struct camera_order *camera_order, size_t from, size_t to)
{
    const float *a = camera_order->train->cameras[from].pose,
                *b = camera_order->train->cameras[to].pose;
    double squared = 0, cosine = 0;
    for (size_t i = 0; i < 12; i += 4) {
        squared += pow((double)a[i + 3] - (double)b[i + 3], 2);
        cosine += (double)a[i + 2] * (double)b[i + 2];
    }
    return sqrt(squared) + camera_order->radian * acos(fmin(fmax(cosine, -1), 1));
}

static double length_of(const struct camera_order *camera_order, const size_t *order)
{
    double sum = 0;
    for (size_t i = 1; i < camera_order->count; i++)
        sum += distance(camera_order, order[i - 1], order[i]);
    return sum;
}

/* Returns the mean distance of the cameras from their mean position. */
static double mean_distance(const struct scene_split *train)
{
    double mean[3] = {0}, sum = 0, count = (double)train->camera_count;
    for (size_t n = 0; n < train->camera_count; n++)
        for (size_t i = 0; i < 3; i++)
            mean[i] += (double)train->cameras[n].pose[4 * i + 3] / count;
    for (size_t n = 0; n < train->camera_count; n++) {
        const float *pose = train->cameras[n].pose;
        sum += sqrt(pow((double)pose[3] - mean[0], 2) + pow((double)pose[7] - mean[1], 2) +
                    pow((double)pose[11] - mean[2], 2));
    }
    return fmax(sum / count, 1e-6);
}

/* Orders the cameras greedily: always the nearest remaining one, from order[0] on. */
static void order_greedily(const struct camera_order *camera_order, size_t *order)
{
    for (size_t i = 1; i < camera_order->count; i++) {
        size_t nearest = i;
        for (size_t k = i + 1; k < camera_order->count; k++)
            if (distance(camera_order, order[i - 1], order[k]) <
                distance(camera_order, order[i - 1], order[nearest]))
                nearest = k;
        size_t next = order[nearest];
        order[nearest] = order[i];
        order[i] = next;
    }
}

/* Reverses order[first .. last] if that shortens the path; returns whether (2-opt: Croes 1958). */
static bool shorten(const struct camera_order *camera_order, size_t *order, size_t first,
                    size_t last)
{
    bool is_path_end = last + 1 == camera_order->count;
    double old_length = distance(camera_order, order[first - 1], order[first]) +
                        (is_path_end ? 0 : distance(camera_order, order[last], order[last + 1]));
    double new_length = distance(camera_order, order[first - 1], order[last]) +
                        (is_path_end ? 0 : distance(camera_order, order[first], order[last + 1]));
    if (!(new_length < old_length - 1e-9))
        return false;
    for (; first < last; first++, last--) {
        size_t other = order[first];
        order[first] = order[last];
        order[last] = other;
    }
    return true;
}

static void improve(const struct camera_order *camera_order, size_t *order)
{
    bool improved = camera_order->count <= MOST_IMPROVED;
    for (int round = 0; round < MOST_ROUNDS && improved; round++) {
        improved = false;
        for (size_t first = 1; first < camera_order->count; first++)
            for (size_t last = first + 1; last < camera_order->count; last++)
                improved = shorten(camera_order, order, first, last) || improved;
    }
}

static vkn_status find_order(struct camera_order *camera_order)
{
    BASE_TRY(order_by_name(camera_order));
    size_t *other = base_alloc(camera_order->count, sizeof(*other));
    if (other == NULL)
        return VKN_ERROR;
    memcpy(other, camera_order->order, camera_order->count * sizeof(*other));
    order_greedily(camera_order, other);
    improve(camera_order, other);
    if (length_of(camera_order, camera_order->order) > MAX_DETOUR * length_of(camera_order, other))
        memcpy(camera_order->order, other, camera_order->count * sizeof(*other));
    free(other);
    return VKN_OK;
}

/* ---- the path -------------------------------------------------------------------------------- */

static void to_pose(const double values[CHANNELS], float pose[12])
{
    const double *v = values + ROTATION;
    double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + v[3] * v[3];
    double s = 2 / square, w = v[0], x = v[1], y = v[2], z = v[3];
    const double m[9] = {1 - s * (y * y + z * z), s * (x * y - w * z),     s * (x * z + w * y),
                         s * (x * y + w * z),     1 - s * (x * x + z * z), s * (y * z - w * x),
                         s * (x * z - w * y),     s * (y * z + w * x),     1 - s * (x * x + y * y)};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            pose[4 * i + j] = (float)m[3 * i + j];
        pose[4 * i + 3] = (float)values[POSITION + i];
    }
}

/* Sets the spline's points. Of the two quaternions of a rotation, uses the one nearer to the
 * previous camera's. Time is the path length, so that the camera moves evenly; a small constant
 * separates cameras at the same position. */
static vkn_status set_spline_points(struct camera_order *camera_order)
{
    camera_order->values =
        base_alloc(camera_order->count, CHANNELS * sizeof(*camera_order->values));
    camera_order->times = base_alloc(camera_order->count + 1, sizeof(*camera_order->times));
    if (camera_order->values == NULL || camera_order->times == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < camera_order->count; i++) {
        const float *pose = camera_order->train->cameras[camera_order->order[i]].pose;
        double *values = camera_order->values + i * CHANNELS, dot = 0, rotation[3][3];
        for (int axis = 0; axis < 3; axis++)
            values[POSITION + axis] = (double)pose[4 * axis + 3];
        for (ptrdiff_t n = 0; n < 9; n++)
            rotation[n / 3][n % 3] = (double)pose[n / 3 * 4 + n % 3];
        pose_quaternion((const double(*)[3])rotation, values + ROTATION);
        for (int n = ROTATION; n < CHANNELS && i > 0; n++)
            dot += values[n] * values[n - CHANNELS];
        for (int n = ROTATION; n < CHANNELS && dot < 0; n++)
            values[n] = -values[n];
        if (i > 0)
            camera_order->times[i] =
                camera_order->times[i - 1] + 1e-3 * camera_order->radian +
                distance(camera_order, camera_order->order[i - 1], camera_order->order[i]);
    }
    return VKN_OK;
}

static vkn_status order_cameras(const struct scene_split *train, struct camera_order *camera_order)
{
    *camera_order = (struct camera_order){
        .train = train, .count = train->camera_count, .radian = mean_distance(train)};
    camera_order->order = base_alloc(camera_order->count, sizeof(*camera_order->order));
    if (camera_order->order == NULL)
        return VKN_ERROR;
    BASE_TRY(find_order(camera_order));
    return set_spline_points(camera_order);
}

vkn_status scene_interpolate(const struct vkn_scene *scene, uint32_t count,
                             struct scene_camera **cameras)
{
    const struct scene_camera *first = &scene->splits[SCENE_TRAIN].cameras[0];
    struct camera_order camera_order;
    *cameras = NULL;
    if (count == 0)
        return base_fail(VKN_BAD_INPUT, "interpolate: the number of views is 0");
    vkn_status status = order_cameras(&scene->splits[SCENE_TRAIN], &camera_order);
    if (status == VKN_OK)
        *cameras = base_alloc(count, sizeof(**cameras));
    for (uint32_t i = 0; *cameras != NULL && i < count; i++) {
        const struct spline spline = {camera_order.count, CHANNELS, camera_order.values,
                                      camera_order.times, false};
        double fraction = count > 1 ? (double)i / (count - 1) : 0, values[SPLINE_CHANNELS];
        spline_at(&spline, fraction * camera_order.times[camera_order.count - 1], values);
        (*cameras)[i] = camera_path_undistorted(first);
        (*cameras)[i].time = scene->dynamic && count > 1 ? (float)fraction : first->time;
        to_pose(values, (*cameras)[i].pose);
    }
    free(camera_order.order);
    free(camera_order.values);
    free(camera_order.times);
    return status == VKN_OK && *cameras == NULL ? VKN_ERROR : status;
}
