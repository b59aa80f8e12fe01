/* Tests the parameters of poses and lenses in which views are equally stiff, and the gauges of all
 * views.
 *
 * The stiffness is measured with the reference's projection and with rotations that are matrix
 * exponentials. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "certify/lenses.h"
#include "reference/reference.h"

#define EDGE         8 /* points along an edge of the image */
#define MOST         32
/* Parts of each parameter's own stiffness that are added to it. */
#define POSE_DAMPING 1.0
#define LENS_DAMPING 0.1
#define DIFFERENCE   1e-5 /* radians, or parts of the distance */

/* Cameras and what scene_whiten computes from them; the damped stiffness is the test's. */
struct views {
    struct scene_camera cameras[MOST];
    struct scene_split split;
    double distance; /* mean, from the cube's centre, at least 0.5 */
    struct scene_whitening whitening[MOST];
    double damped[MOST][SCENE_POSE][SCENE_POSE];
};

static uint64_t random_state = 1;

/* Returns a number between -1 and 1 (xorshift64*, Vigna 2016). */
static double random_number(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (double)(random_state * 0x2545f4914f6cdd1du >> 11) * 0x1p-52 - 1;
}

/* ---- movements ----------------------------------------------------------------------------- */

/* Computes the matrix exponential of the cross product with w, by its power series. */
static void rotation_of(const double w[3], double rotation[3][3])
{
    const double cross[3][3] = {{0, -w[2], w[1]}, {w[2], 0, -w[0]}, {-w[1], w[0], 0}};
    double term[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    memcpy(rotation, term, sizeof term);
    for (int n = 1; n < 30; n++) {
        double next[3][3] = {0};
        for (int i = 0; i < 9; i++)
            for (int k = 0; k < 3; k++)
                next[i / 3][i % 3] += term[i / 3][k] * cross[k][i % 3] / n;
        memcpy(term, next, sizeof term);
        for (int i = 0; i < 9; i++)
            rotation[i / 3][i % 3] += term[i / 3][i % 3];
    }
}

/* Projects a point after the camera has turned about its position and moved. The camera sees the
 * point where it saw, before, the point that has moved the other way. */
static void project(const struct scene_camera *camera, const double pose[SCENE_POSE],
                    const double point[3], double pixel[2])
{
    double rotation[3][3], moved[3];
    rotation_of(pose, rotation);
    for (int i = 0; i < 3; i++) {
        moved[i] = camera->pose[4 * i + 3];
        for (int k = 0; k < 3; k++)
            moved[i] += rotation[k][i] * (point[k] - camera->pose[4 * k + 3] - pose[3 + k]);
    }
    reference_project(camera, moved, pixel);
}

/* ---- points -------------------------------------------------------------------------------- */

/* Computes the points on the ray through the centre of a cell of the image: in steps of equal
 * inverse distance. Returns false where there is no ray. */
static bool points_of(const struct views *views, size_t view, int cell, double points[4][3])
{
    static const double distances[] = {0.75, 0.9, 1.125, 1.5};
    const struct scene_camera *camera = &views->cameras[view];
    const int row = cell / EDGE, column = cell % EDGE;
    double origin[3], direction[3];
    if (!scene_camera_ray(camera, (column + 0.5) / EDGE * camera->width,
                          (row + 0.5) / EDGE * camera->height, origin, direction))
        return false;
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 3; i++)
            points[n][i] = origin[i] + distances[n] * views->distance * direction[i];
    return true;
}

/* Computes the derivatives of the point's pixel by the parameters of the pose. */
static void differentiate(const struct views *views, size_t view, const double point[3],
                          double jacobian[2][SCENE_POSE])
{
    for (int p = 0; p < SCENE_POSE; p++) {
        double low[2], high[2], pose[SCENE_POSE] = {0};
        double step = p < 3 ? DIFFERENCE : DIFFERENCE * views->distance;
        pose[p] = -step;
        project(&views->cameras[view], pose, point, low);
        pose[p] = step;
        project(&views->cameras[view], pose, point, high);
        for (int i = 0; i < 2; i++)
            jacobian[i][p] = (high[i] - low[i]) / (2 * step);
    }
}

/* Measures the mean of J^T J, and raises its diagonal. Returns the number of points. */
static int measure(struct views *views, size_t view)
{
    double(*damped)[SCENE_POSE] = views->damped[view];
    int count = 0;
    memset(damped, 0, sizeof views->damped[view]);
    for (int cell = 0; cell < EDGE * EDGE; cell++) {
        double points[4][3], jacobian[2][SCENE_POSE];
        for (int n = 0; n < 4 && points_of(views, view, cell, points); n++, count++) {
            differentiate(views, view, points[n], jacobian);
            for (int i = 0; i < SCENE_POSE * SCENE_POSE; i++)
                for (int row = 0; row < 2; row++)
                    damped[i / SCENE_POSE][i % SCENE_POSE] +=
                        jacobian[row][i / SCENE_POSE] * jacobian[row][i % SCENE_POSE];
        }
    }
    for (int i = 0; i < SCENE_POSE * SCENE_POSE && count > 0; i++)
        damped[i / SCENE_POSE][i % SCENE_POSE] *=
            (i / SCENE_POSE == i % SCENE_POSE ? 1 + POSE_DAMPING : 1) / count;
    return count;
}

/* ---- views --------------------------------------------------------------------------------- */

static void place(struct views *views, size_t view, double x, double y, double z)
{
    const double turn[3] = {3 * random_number(), 3 * random_number(), 3 * random_number()};
    const double position[3] = {x, y, z};
    double rotation[3][3];
    rotation_of(turn, rotation);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            views->cameras[view].pose[4 * i + k] = (float)rotation[i][k];
        views->cameras[view].pose[4 * i + 3] = (float)position[i];
    }
}

static void whiten(struct views *views, size_t count)
{
    views->split = (struct scene_split){.cameras = views->cameras, .camera_count = count};
    views->distance = 0;
    for (size_t v = 0; v < count; v++) {
        double squared = 0;
        for (int i = 0; i < 3; i++)
            squared += pow(views->cameras[v].pose[4 * i + 3] - 0.5, 2);
        views->distance += sqrt(squared) / (double)count;
    }
    views->distance = fmax(views->distance, 0.5);
    memset(views->whitening, 0xff, sizeof views->whitening); /* NaN */
    scene_whiten(&views->split, views->whitening);
}

/* Views of every lens. */
static struct views *all_lenses(void)
{
    static struct views views;
    size_t count = 0;
    for (size_t i = 0; i < BASE_COUNT(certify_lenses); i++)
        views.cameras[count++] = certify_lenses[i].camera;
    for (size_t i = 0; i < BASE_COUNT(certify_short_lenses); i++)
        views.cameras[count++] = certify_short_lenses[i];
    for (size_t v = 0; v < count; v++)
        place(&views, v, 3 * random_number(), 1 + random_number(), 2 * random_number());
    whiten(&views, count);
    for (size_t v = 0; v < count; v++)
        assert_true(measure(&views, v) > EDGE * EDGE);
    return &views;
}

/* Makes pinhole cameras in one place. */
static struct views *in_one_place(size_t count, double x, double y, double z)
{
    static struct views views;
    for (size_t v = 0; v < count; v++) {
        views.cameras[v] = certify_lenses[0].camera;
        place(&views, v, x, y, z);
    }
    whiten(&views, count);
    for (size_t v = 0; v < count; v++)
        assert_int_equal(measure(&views, v), 4 * EDGE * EDGE);
    return &views;
}

/* ---- the whitening ------------------------------------------------------------------------- */

/* Returns a^T M b, where a and b are poses. */
static double product(const double m[SCENE_POSE][SCENE_POSE], const double a[SCENE_POSE],
                      const double b[SCENE_POSE])
{
    double sum = 0;
    for (int i = 0; i < SCENE_POSE; i++)
        for (int k = 0; k < SCENE_POSE; k++)
            sum += a[i] * m[i][k] * b[k];
    return sum;
}

static void column_of(const struct scene_whitening *view, int column, double pose[SCENE_POSE])
{
    for (int i = 0; i < SCENE_POSE; i++)
        pose[i] = view->whitening[i][column];
}

/* W^T (A + D) W is the identity. */
static void check_inverse(const struct views *views, size_t view)
{
    for (int i = 0; i < SCENE_POSE; i++)
        for (int k = 0; k < SCENE_POSE; k++) {
            double a[SCENE_POSE], b[SCENE_POSE];
            column_of(&views->whitening[view], i, a);
            column_of(&views->whitening[view], k, b);
            double value = product((const double(*)[SCENE_POSE])views->damped[view], a, b);
            if (!(fabs(value - (i == k)) < 1e-5))
                fail_msg("view %zu: %.9g in row %d, column %d", view, value, i, k);
        }
}

static void test_whitening(void **state)
{
    (void)state;
    const struct views *views = all_lenses();
    for (size_t v = 0; v < views->split.camera_count; v++)
        check_inverse(views, v);
    check_inverse(in_one_place(1, 0.2, 3, 1), 0);
    check_inverse(in_one_place(2, 0.5, 0.5, 0.5), 1);
}

/* Returns the mean squared movement, in pixels, of the view's points. */
static double squared_movement(const struct views *views, size_t view, const double latent[])
{
    double pose[SCENE_POSE] = {0}, sum = 0;
    int count = 0;
    for (int i = 0; i < SCENE_POSE; i++)
        for (int k = 0; k < SCENE_POSE; k++)
            pose[i] += views->whitening[view].whitening[i][k] * latent[k];
    for (int cell = 0; cell < EDGE * EDGE; cell++) {
        double points[4][3], before[2], after[2];
        for (int n = 0; n < 4 && points_of(views, view, cell, points); n++, count++) {
            reference_project(&views->cameras[view], points[n], before);
            project(&views->cameras[view], pose, points[n], after);
            sum += pow(after[0] - before[0], 2) + pow(after[1] - before[1], 2);
        }
    }
    return sum / count;
}

/* A latent vector of length 1 moves points by about one pixel, but no more. */
static void test_pixels(void **state)
{
    (void)state;
    const struct views *views = all_lenses();
    for (size_t v = 0; v < views->split.camera_count; v++) {
        double mean = 0;
        for (int k = 0; k < SCENE_POSE; k++) {
            double latent[SCENE_POSE] = {0};
            latent[k] = 1;
            mean += squared_movement(views, v, latent) / SCENE_POSE;
        }
        for (int round = 0; round < 5; round++) {
            double latent[SCENE_POSE], squared = 0;
            for (int k = 0; k < SCENE_POSE; k++) {
                latent[k] = random_number();
                squared += latent[k] * latent[k];
            }
            for (int k = 0; k < SCENE_POSE; k++)
                latent[k] /= sqrt(squared);
            double moved = sqrt(squared_movement(views, v, latent));
            if (!(moved < 1.01))
                fail_msg("view %zu moves by %.3f pixels", v, moved);
        }
        assert_true(mean > 0.2);
    }
}

/* The reported movement is that of the points, also across the edge of a panorama. */
static void test_movement(void **state)
{
    (void)state;
    struct views *views = all_lenses();
    for (size_t v = 0; v < views->split.camera_count; v++) {
        const double latent[SCENE_POSE] = {0.5, -1, 2, 1, -0.5, 3};
        double pose[SCENE_POSE] = {0}, rotation[3][3];
        struct scene_camera moved = views->cameras[v];
        for (int i = 0; i < SCENE_POSE; i++)
            for (int k = 0; k < SCENE_POSE; k++)
                pose[i] += views->whitening[v].whitening[i][k] * latent[k];
        rotation_of(pose, rotation);
        for (int i = 0; i < 3; i++) {
            for (int column = 0; column < 3; column++) {
                double sum = 0;
                for (int k = 0; k < 3; k++)
                    sum += rotation[i][k] * views->cameras[v].pose[4 * k + column];
                moved.pose[4 * i + column] = (float)sum;
            }
            moved.pose[4 * i + 3] += (float)pose[3 + i];
        }
        double expected = sqrt(squared_movement(views, v, latent));
        double movement = scene_pixel_movement(&views->split, v, &moved);
        if (!(fabs(movement - expected) < 0.01 * expected))
            fail_msg("view %zu: %.4f pixels instead of %.4f", v, movement, expected);
        assert_true(scene_pixel_movement(&views->split, v, &views->cameras[v]) < 1e-3);
    }
}

/* ---- lenses -------------------------------------------------------------------------------- */

#define CHANGE 0.01 /* of the central differences */

/* Returns whether the lens has a parameter of its own; a single focal length has one. */
static bool has(const struct scene_camera *camera, int parameter)
{
    bool is_panorama = camera->lens == VKN_LENS_EQUIRECTANGULAR;
    bool is_same = parameter == 1 && camera->focal_x == camera->focal_y;
    return !is_panorama && !is_same && (parameter < 6 || camera->lens != VKN_LENS_FISHEYE);
}

static void project_changed(const struct scene_camera *camera, int parameter, double by,
                            const double point[3], double pixel[2])
{
    struct scene_camera changed = *camera;
    double change[SCENE_LENS] = {0};
    change[parameter] = by;
    if (parameter == 0 && !has(camera, 1))
        change[1] = by;
    scene_change_lens(change, &changed);
    reference_project(&changed, point, pixel);
}

/* Measures the damped mean of J^T J by the parameters of the lens. */
static void measure_lens(struct views *views, size_t view, double damped[SCENE_LENS][SCENE_LENS])
{
    const struct scene_camera *camera = &views->cameras[view];
    int count = 0;
    memset(damped, 0, sizeof(double[SCENE_LENS][SCENE_LENS]));
    for (int cell = 0; cell < EDGE * EDGE; cell++) {
        double points[4][3], jacobian[2][SCENE_LENS] = {{0}};
        if (!points_of(views, view, cell, points))
            continue;
        for (int p = 0; p < SCENE_LENS; p++) {
            double low[2], high[2];
            project_changed(camera, p, -CHANGE, points[0], low);
            project_changed(camera, p, CHANGE, points[0], high);
            for (int i = 0; i < 2 && has(camera, p); i++)
                jacobian[i][p] = (high[i] - low[i]) / (2 * CHANGE);
        }
        for (int i = 0; i < SCENE_LENS * SCENE_LENS; i++)
            for (int row = 0; row < 2; row++)
                damped[i / SCENE_LENS][i % SCENE_LENS] +=
                    jacobian[row][i / SCENE_LENS] * jacobian[row][i % SCENE_LENS];
        count++;
    }
    for (int i = 0; i < SCENE_LENS * SCENE_LENS; i++)
        damped[i / SCENE_LENS][i % SCENE_LENS] *=
            (i / SCENE_LENS == i % SCENE_LENS ? 1 + LENS_DAMPING : 1) / count;
}

/* W^T (A + D) W is the identity for the parameters that the lens has. Others do not change. */
static void check_lens(struct views *views, size_t view)
{
    const struct scene_camera *camera = &views->cameras[view];
    double(*w)[SCENE_LENS] = views->whitening[view].lens, damped[SCENE_LENS][SCENE_LENS];
    measure_lens(views, view, damped);
    for (int i = 0; i < SCENE_LENS; i++)
        for (int k = 0; k < SCENE_LENS; k++) {
            double value = 0;
            for (int p = 0; p < SCENE_LENS; p++)
                for (int q = 0; q < SCENE_LENS; q++)
                    value += w[p][i] * damped[p][q] * w[q][k];
            if (!(fabs(value - (i == k && has(camera, i))) < 1e-3))
                fail_msg("lens of view %zu: %.9g in row %d, column %d", view, value, i, k);
            if (i == 1 && camera->focal_x == camera->focal_y)
                assert_true(w[i][k] == w[0][k]);
            else if (!has(camera, i))
                assert_true(w[i][k] == 0 && w[k][i] == 0);
        }
}

static void test_lens(void **state)
{
    (void)state;
    struct views *views = all_lenses();
    for (size_t v = 0; v < views->split.camera_count; v++) {
        assert_int_equal(views->whitening[v].group, v);
        if (v < BASE_COUNT(certify_lenses)) /* others do not reach all points after a change */
            check_lens(views, v);
    }
}

/* A changed lens has the ray of the reference through the same pixel. */
static void test_change(void **state)
{
    (void)state;
    struct views *views = all_lenses();
    for (size_t v = 0; v < BASE_COUNT(certify_lenses) && has(&views->cameras[v], 0); v++) {
        const struct scene_camera *camera = &views->cameras[v];
        struct scene_camera changed = *camera;
        const double change[SCENE_LENS] = {0.05,
                                           -0.03,
                                           0.02,
                                           -0.01,
                                           0.01,
                                           -0.005,
                                           has(camera, 6) ? 0.002 : 0,
                                           has(camera, 7) ? 0.001 : 0};
        scene_change_lens(change, &changed);
        for (int n = 1; n < 16; n++) {
            int column = n % 4, row = n / 4;
            double x = 0.25 * column * camera->width, y = 0.25 * row * camera->height;
            double origin[3], before[3], after[3], expected[3];
            if (x == 0 || y == 0)
                continue;
            assert_true(scene_camera_ray(camera, x, y, origin, before));
            assert_true(scene_camera_ray(&changed, x, y, origin, after));
            reference_change_lens(camera, change, before, expected);
            for (int i = 0; i < 3; i++)
                if (!(fabs(after[i] - expected[i]) < 1e-5))
                    fail_msg("view %zu: %.7f instead of %.7f", v, after[i], expected[i]);
        }
    }
}

/* Views with the same lens are a camera group, whose first view has the whitening. */
static void test_groups(void **state)
{
    (void)state;
    static const size_t expected[] = {0, 1, 0, 3, 1, 5, 6, 7, 8, 0};
    struct views *views = in_one_place(10, 1, 2, 3);
    views->cameras[1].k1 = views->cameras[4].k1 = 0.01F;
    views->cameras[3].focal_x *= 1.0000002F;
    views->cameras[5].center_y += 1;
    views->cameras[6].lens = VKN_LENS_FISHEYE;
    views->cameras[7].height--;
    views->cameras[8].sy1 = 1e-3F;
    whiten(views, 10);
    for (size_t v = 0; v < 10; v++) {
        assert_int_equal(views->whitening[v].group, expected[v]);
        assert_true((views->whitening[v].lens[0][0] == 0) == (expected[v] != v));
    }
}

/* ---- the gauges ---------------------------------------------------------------------------- */

/* Returns the number of gauges that are not zero; all others are orthonormal. */
static int count_gauges(const struct views *views)
{
    int count = 0;
    for (int g = 0; g < SCENE_GAUGES; g++) {
        double products[SCENE_GAUGES] = {0};
        for (int h = 0; h < SCENE_GAUGES; h++)
            for (size_t v = 0; v < views->split.camera_count; v++)
                for (int k = 0; k < SCENE_POSE; k++)
                    products[h] +=
                        views->whitening[v].gauge[g][k] * views->whitening[v].gauge[h][k];
        bool is_zero = products[g] == 0;
        for (int h = 0; h < SCENE_GAUGES; h++)
            if (!(fabs(products[h] - (g == h && !is_zero)) < 1e-9))
                fail_msg("product of gauges %d and %d: %.9g", g, h, products[h]);
        count += !is_zero;
    }
    return count;
}

/* A small rotation about a point, translation and change of scale of all cameras together. */
struct similarity {
    double turn[3], about[3], shift[3], growth;
};

/* Computes the latent parameters of the view's new pose: W^-1 = W^T (A + D). */
static void move(const struct views *views, size_t view, const struct similarity *s,
                 double latent[SCENE_POSE])
{
    double rotation[3][3], pose[SCENE_POSE], axis[SCENE_POSE];
    rotation_of(s->turn, rotation);
    for (int i = 0; i < 3; i++) {
        double position = views->cameras[view].pose[4 * i + 3], moved = s->about[i] + s->shift[i];
        for (int k = 0; k < 3; k++)
            moved += exp(s->growth) * rotation[i][k] *
                     (views->cameras[view].pose[4 * k + 3] - s->about[k]);
        pose[i] = s->turn[i];
        pose[3 + i] = moved - position;
    }
    for (int k = 0; k < SCENE_POSE; k++) {
        column_of(&views->whitening[view], k, axis);
        latent[k] = product((const double(*)[SCENE_POSE])views->damped[view], axis, pose);
    }
}

/* Moves all cameras together; returns the part of the movement's squared length that remains after
 * the gauges are taken out. */
static double remaining(const struct views *views, const struct similarity *s)
{
    static double latents[MOST][SCENE_POSE];
    const size_t count = views->split.camera_count;
    double before = 0, after = 0;
    for (size_t v = 0; v < count; v++) {
        move(views, v, s, latents[v]);
        for (int k = 0; k < SCENE_POSE; k++)
            before += latents[v][k] * latents[v][k];
    }
    for (int g = 0; g < SCENE_GAUGES; g++) {
        double along = 0;
        for (size_t v = 0; v < count; v++)
            for (int k = 0; k < SCENE_POSE; k++)
                along += views->whitening[v].gauge[g][k] * latents[v][k];
        for (size_t v = 0; v < count; v++)
            for (int k = 0; k < SCENE_POSE; k++)
                latents[v][k] -= along * views->whitening[v].gauge[g][k];
    }
    for (size_t v = 0; v < count; v++)
        for (int k = 0; k < SCENE_POSE; k++)
            after += latents[v][k] * latents[v][k];
    return after / before;
}

static void check_similarities(const struct views *views)
{
    const double small = 1e-5;
    for (int round = 0; round < 20; round++) {
        struct similarity s = {.growth = small * random_number()};
        for (int i = 0; i < 3; i++) {
            s.turn[i] = small * random_number();
            s.shift[i] = small * random_number();
            s.about[i] = 2 * random_number();
        }
        double rest = sqrt(remaining(views, &s));
        if (!(rest < 1e-4))
            fail_msg("%.3g of a common movement remains", rest);
    }
}

static void test_gauges(void **state)
{
    (void)state;
    const struct views *views = all_lenses();
    assert_int_equal(count_gauges(views), SCENE_GAUGES);
    check_similarities(views);
}

/* Nothing is known about the pose of a single view: it does not move. */
static void test_one_view(void **state)
{
    (void)state;
    const struct views *views = in_one_place(1, 0.1, 2, -1.7);
    assert_int_equal(count_gauges(views), SCENE_POSE);
    for (int i = 0; i < SCENE_POSE; i++)
        for (int k = 0; k < SCENE_POSE; k++) {
            double sum = 0;
            for (int g = 0; g < SCENE_GAUGES; g++)
                sum += views->whitening[0].gauge[g][i] * views->whitening[0].gauge[g][k];
            assert_true(fabs(sum - (i == k)) < 1e-9);
        }
}

/* Cameras in one place do not move when the scene grows about it. */
static void test_one_place(void **state)
{
    (void)state;
    static const double positions[][3] = {{0.1, 2, -1.7}, {0.5, 0.5, 0.5}};
    for (size_t i = 0; i < BASE_COUNT(positions); i++) {
        const double *at = positions[i];
        const struct views *views = in_one_place(7, at[0], at[1], at[2]);
        assert_int_equal(count_gauges(views), SCENE_GAUGES - 1);
        for (size_t v = 0; v < views->split.camera_count; v++)
            for (int k = 0; k < SCENE_POSE; k++)
                assert_true(views->whitening[v].gauge[SCENE_GAUGES - 1][k] == 0);
        check_similarities(views);
    }
}

/* A view whose lens reaches no point cannot move, also together with the others. */
static void test_blind_view(void **state)
{
    (void)state;
    const struct scene_whitening zero = {.group = 2};
    struct views *views = in_one_place(4, 0, 0, 0);
    views->cameras[2].lens = VKN_LENS_FISHEYE;
    views->cameras[2].k1 = -1e4F;
    for (size_t v = 0; v < 4; v++)
        place(views, v, random_number(), random_number(), random_number());
    whiten(views, 4);
    for (size_t v = 0; v < 4; v++)
        assert_int_equal(measure(views, v), v == 2 ? 0 : 4 * EDGE * EDGE);
    assert_memory_equal(&views->whitening[2], &zero, sizeof zero);
    assert_int_equal(count_gauges(views), SCENE_GAUGES);
    check_similarities(views);
}

static void test_no_views(void **state)
{
    (void)state;
    const struct scene_split split = {0};
    scene_whiten(&split, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whitening), cmocka_unit_test(test_pixels),
        cmocka_unit_test(test_movement),  cmocka_unit_test(test_lens),
        cmocka_unit_test(test_change),    cmocka_unit_test(test_groups),
        cmocka_unit_test(test_gauges),    cmocka_unit_test(test_one_view),
        cmocka_unit_test(test_one_place), cmocka_unit_test(test_blind_view),
        cmocka_unit_test(test_no_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
