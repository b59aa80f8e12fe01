/* Tests camera models by hand, their inverses, focus points, camera paths, orbits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "config/config.h"
#include "certify/lenses.h"
#include "reference/reference.h"
#include "scene/transforms.h"
#include "scenes.h"

static void assert_near(double value, double wanted, double tolerance)
{
    if (!(fabs(value - wanted) <= tolerance))
        fail_msg("%.9g is not %.9g", value, wanted);
}

static void assert_projects(const struct scene_camera *camera, double px, double py, double pz,
                            double x, double y)
{
    const double point[3] = {px, py, pz};
    double got_x = NAN, got_y = NAN;
    assert_true(scene_camera_project(camera, point, &got_x, &got_y));
    assert_near(got_x, x, 1e-3);
    assert_near(got_y, y, 1e-3);
}

static const struct scene_camera pinhole = {.width = 100,
                                            .height = 80,
                                            .focal_x = 100,
                                            .focal_y = 110,
                                            .center_x = 50,
                                            .center_y = 40,
                                            .pose = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}};

/* ---- projection ---------------------------------------------------------------------------- */

static void test_pinhole(void **state)
{
    (void)state;
    assert_projects(&pinhole, 0, 0, -1, 50, 40);
    assert_projects(&pinhole, 1, 2, -4, 75, -15); /* up in space is up in the image, smaller y */
    double x = 0, y = 0;
    assert_false(scene_camera_project(&pinhole, (const double[3]){0, 0, 1}, &x, &y));
    assert_false(scene_camera_project(&pinhole, (const double[3]){1, 0, 0}, &x, &y));
}

/* At (4, 0, 0), looking at the origin, z up: the world's y is the image's right. */
static void test_posed(void **state)
{
    (void)state;
    struct scene_camera camera = pinhole;
    const float pose[12] = {0, 0, 1, 4, 1, 0, 0, 0, 0, 1, 0, 0};
    memcpy(camera.pose, pose, sizeof(pose));
    assert_projects(&camera, 0, 0, 0, 50, 40);
    assert_projects(&camera, 0, 1, 0.5, 75, 40 - 110 * 0.125);
    assert_projects(&camera, 2, -1, 0, 0, 40);

    double origin[3], direction[3];
    scene_camera_ray(&camera, 75, 40 - 110 * 0.125, origin, direction);
    double length = sqrt(16 + 1 + 0.25);
    assert_near(origin[0], 4, 0);
    assert_near(direction[0], -4 / length, 1e-7);
    assert_near(direction[1], 1 / length, 1e-7);
    assert_near(direction[2], 0.5 / length, 1e-7);
}

/* Points keep their positions relative to the picture's sides. */
static void test_fit(void **state)
{
    (void)state;
    struct scene_camera camera = pinhole;
    camera.k1 = 0.05f;
    camera.center_x = 47;
    struct scene_camera small = scene_fit_camera(&camera, 500);
    assert_int_equal(small.width, 25);
    assert_int_equal(small.height, 20);
    small = scene_fit_camera(&camera, 900); /* 33.5 x 26.8 */
    assert_int_equal(small.width, 34);
    assert_int_equal(small.height, 27);
    const double point[3] = {0.3, -0.2, -1};
    double x, y, small_x, small_y;
    assert_true(scene_camera_project(&camera, point, &x, &y));
    assert_true(scene_camera_project(&small, point, &small_x, &small_y));
    assert_near(small_x / 34, x / 100, 1e-6);
    assert_near(small_y / 27, y / 80, 1e-6);
    small = scene_fit_camera(&camera, 8000);
    assert_true(small.width == 100 && small.height == 80);
    assert_true(small.focal_x == 100 && small.center_x == 47);
    camera.height = 2;
    small = scene_fit_camera(&camera, 10);
    assert_int_equal(small.height, 1);
}

/* OpenCV's model with y down. (u, v) = (0.3, -0.2): r2 = 0.13,
 * radial = 1 + 0.1 * 0.13 - 0.05 * 0.0169 = 1.012155,
 * u' = 0.3036465 + 2 * 0.01 * 0.3 * -0.2 - 0.02 * (0.13 + 2 * 0.09) = 0.2962465,
 * v' = -0.202431 + 0.01 * (0.13 + 2 * 0.04) + 2 * -0.02 * 0.3 * -0.2 = -0.197931. */
static void test_distorted(void **state)
{
    (void)state;
    struct scene_camera camera = pinhole;
    camera.k1 = 0.1F;
    camera.k2 = -0.05F;
    camera.p1 = 0.01F;
    camera.p2 = -0.02F;
    assert_projects(&camera, 0.6, 0.4, -2, 50 + 29.62465, 40 - 110 * 0.197931);
    double origin[3], d[3];
    scene_camera_ray(&camera, 50 + 29.62465, 40 - 110 * 0.197931, origin, d);
    assert_near(d[0] / -d[2], 0.3, 1e-7);
    assert_near(d[1] / -d[2], 0.2, 1e-7);

    camera.k2 = camera.p1 = camera.p2 = 0; /* radial only: 1 + 0.1 * 0.25 at (0.4, 0.3) */
    assert_projects(&camera, 0.4, -0.3, -1, 50 + 41, 40 + 110 * 0.3075);
}

/* One point through every named camera model, computed by hand. The camera is at (1, 2, 3) with z
 * up and looks along (-0.6, -0.8, 0), so that (-0.6, 0.7, 3.25) is 0.5 to its right, 0.25 up and 2
 * ahead: u = 0.25, v = -0.125, r2 = 0.078125. */
static void test_models_by_hand(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        struct scene_camera lens;
        double x, y;
    } cases[] = {
        {"SIMPLE_PINHOLE", {.focal_y = 600}, 470, 165},
        {"PINHOLE", {.focal_y = 610}, 470, 163.75},
        /* 1 + 0.1 r2 = 1.0078125 */
        {"SIMPLE_RADIAL", {.focal_y = 600, .k1 = 0.1F}, 471.171875, 164.4140625},
        /* 1 + 0.1 r2 - 0.05 r2^2 = 1.00750732421875 */
        {"RADIAL", {.focal_y = 600, .k1 = 0.1F, .k2 = -0.05F}, 471.1260986, 164.4369507},
        /* u' = 0.25 * 1.00750732 + 2 * 0.01 * 0.25 * -0.125 - 0.02 * (r2 + 2 * 0.0625),
         * v' = -0.125 * 1.00750732 + 0.01 * (r2 + 2 * 0.015625) + 2 * -0.02 * 0.25 * -0.125 */
        {"OPENCV",
         {.focal_y = 610, .k1 = 0.1F, .k2 = -0.05F, .p1 = 0.01F, .p2 = -0.02F},
         468.3135986,
         164.6072540},
        /* as above with a radial factor larger by 0.3 r2^3 */
        {"OPENCV with k3",
         {.focal_y = 610, .k1 = 0.1F, .k2 = -0.05F, .p1 = 0.01F, .p2 = -0.02F, .k3 = 0.3F},
         468.3350563,
         164.5963463},
        /* theta = atan(sqrt(r2)) = 0.27255287, theta_d = 0.27353557; 320 + 600 * theta_d * 2 /
         * sqrt(5), 240 - 610 * theta_d / sqrt(5) */
        {"OPENCV_FISHEYE",
         {.lens = VKN_LENS_FISHEYE,
          .focal_y = 610,
          .k1 = 0.05F,
          .k2 = -0.02F,
          .k3 = 0.004F,
          .k4 = -0.0005F},
         466.7945895,
         165.3794170},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        struct scene_camera camera = cases[i].lens;
        const float pose[12] = {-0.8F, 0, 0.6F, 1, 0.6F, 0, 0.8F, 2, 0, 1, 0, 3};
        memcpy(camera.pose, pose, sizeof(pose));
        camera.focal_x = 600;
        camera.center_x = 320;
        camera.center_y = 240;
        assert_projects(&camera, -0.6, 0.7, 3.25, cases[i].x, cases[i].y);
        double origin[3], d[3], length = sqrt(0.25 + 0.0625 + 4);
        assert_true(scene_camera_ray(&camera, cases[i].x, cases[i].y, origin, d));
        for (int axis = 0; axis < 3; axis++)
            assert_near(d[axis], ((const double[3]){-1.6, -1.3, 0.25})[axis] / length, 2e-6);
    }
}

/* A fisheye sees behind itself: (1.5, 0.5, -0.8) in OpenCV's axes is 116.8 degrees off the axis.
 * theta = 2.0392041, theta_d = 2.0396079. */
static void test_behind_the_image_plane(void **state)
{
    (void)state;
    struct scene_camera camera = {.lens = VKN_LENS_FISHEYE,
                                  .width = 800,
                                  .height = 600,
                                  .focal_x = 200,
                                  .focal_y = 205,
                                  .center_x = 320,
                                  .center_y = 240,
                                  .k1 = 0.05F,
                                  .k2 = -0.02F,
                                  .k3 = 0.004F,
                                  .k4 = -0.0005F,
                                  .pose = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}};
    assert_projects(&camera, 1.5, -0.5, 0.8, 706.9883933, 372.2210344);
    double origin[3], d[3], x = 0, y = 0, length = sqrt(1.5 * 1.5 + 0.25 + 0.64);
    assert_true(scene_camera_ray(&camera, 706.9883933, 372.2210344, origin, d));
    assert_near(d[0], 1.5 / length, 1e-7);
    assert_near(d[1], -0.5 / length, 1e-7);
    assert_near(d[2], 0.8 / length, 1e-7);
    assert_near(scene_camera_depth_scale(&camera, d), 1, 0);
    assert_true(scene_camera_ray(&camera, 320, 240, origin, d)); /* the axis itself */
    assert_near(d[2], -1, 0);
    assert_projects(&camera, 0, 0, -3, 320, 240);
    /* A point directly behind has no direction in the picture. */
    assert_false(scene_camera_project(&camera, (const double[3]){0, 0, 1}, &x, &y));
    camera.lens = VKN_LENS_PERSPECTIVE;
    assert_false(scene_camera_project(&camera, (const double[3]){1.5, -0.5, 0.8}, &x, &y));
    assert_near(scene_camera_depth_scale(&camera, (const double[3]){0.6, 0, -0.8}), 0.8, 1e-7);
}

/* ---- the inverse --------------------------------------------------------------------------- */

static double random_unit(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

/* Makes a random rotation, from a unit quaternion, as floats. */
static void random_pose(float pose[12])
{
    double q[4], squared = 0;
    for (int i = 0; i < 4; i++) {
        q[i] = 2 * random_unit() - 1;
        squared += q[i] * q[i];
    }
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            int k = 3 - i - j;
            double cross = i == j ? 0 : ((j - i + 3) % 3 == 1 ? -q[3] * q[k] : q[3] * q[k]);
            double value = i == j ? 1 - 2 * (squared - q[i] * q[i] - q[3] * q[3]) / squared
                                  : 2 * (q[i] * q[j] + cross) / squared;
            pose[4 * i + j] = (float)value;
        }
        pose[4 * i + 3] = (float)(4 * random_unit() - 2);
    }
}

/* Projects a random point of the pixel's ray; the result is the pixel. */
static void check_model(const struct scene_camera *camera, double x, double y)
{
    double origin[3], direction[3], point[3], squared = 0, pixel[2], got_x = 0, got_y = 0;
    assert_true(scene_camera_ray(camera, x, y, origin, direction));
    double t = 0.1 + 5 * random_unit();
    for (int i = 0; i < 3; i++) {
        point[i] = origin[i] + t * direction[i];
        squared += direction[i] * direction[i];
    }
    assert_near(squared, 1, 1e-12);
    reference_project(camera, point, pixel);
    assert_true(scene_camera_project(camera, point, &got_x, &got_y));
    assert_near(got_x, pixel[0], 1e-6);
    assert_near(got_y, pixel[1], 1e-6);
    assert_near(pixel[0], x, 1e-3);
    assert_near(pixel[1], y, 1e-3);
}

/* The ray through every position, corners included, projects back to it. */
static void test_inverse(void **state)
{
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(certify_lenses); i++) {
        struct scene_camera camera = certify_lenses[i].camera;
        assert_true(scene_camera_invertible(&camera));
        for (unsigned corner = 0; corner < 4; corner++) {
            random_pose(camera.pose);
            if (camera.lens == VKN_LENS_EQUIRECTANGULAR)
                continue; /* a pole, which is in every column */
            check_model(&camera, (corner & 1) * camera.width, (corner >> 1) * camera.height);
        }
        for (int round = 0; round < 500; round++) {
            random_pose(camera.pose);
            /* Columns meet at a pole. */
            double inside = camera.lens == VKN_LENS_EQUIRECTANGULAR ? 0.9 : 1;
            double row = 0.5 + inside * (random_unit() - 0.5);
            check_model(&camera, random_unit() * camera.width, row * camera.height);
        }
    }
}

/* Slopes 1 - 0.6 theta^2 and 1 - 0.9 r^2 vanish at the limit, which distortion shrinks to 2/3. */
static void test_range(void **state)
{
    (void)state;
    struct scene_camera camera = pinhole;
    double origin[3], d[3], x = 0, y = 0;
    assert_true(scene_camera_limit(&camera) >= SCENE_NO_LIMIT);
    camera.k1 = -0.3F;
    assert_near(scene_camera_limit(&camera), sqrt(1 / 0.9), 1e-6);
    assert_true(scene_camera_ray(&camera, 50 + 100 * 0.702, 40, origin, d));
    assert_false(scene_camera_ray(&camera, 50 + 100 * 0.704, 40, origin, d));
    assert_true(scene_camera_project(&camera, (const double[3]){0, 1.05, -1}, &x, &y));
    assert_false(scene_camera_project(&camera, (const double[3]){0, 1.06, -1}, &x, &y));
    camera.lens = VKN_LENS_FISHEYE;
    camera.k1 = -0.2F;
    double limit = sqrt(1 / 0.6);
    assert_near(scene_camera_limit(&camera), limit, 1e-6);
    assert_true(scene_camera_ray(&camera, 50 - 100 * (limit / 1.5 - 1e-3), 40, origin, d));
    assert_false(scene_camera_ray(&camera, 50 - 100 * (limit / 1.5 + 1e-3), 40, origin, d));
    assert_near(d[0], -sin(limit), 1e-6); /* the last ray */
    assert_near(d[2], -cos(limit), 1e-6);
    assert_false(scene_camera_project(
        &camera, (const double[3]){sin(limit + 1e-3), 0, -cos(limit + 1e-3)}, &x, &y));
    camera.k1 = 0;
    assert_near(scene_camera_limit(&camera), acos(-1), 1e-12);
}

/* The limit of r (1 - k r^n) for every n: the slope vanishes where (n + 1) k r^n is 1. */
static void test_range_of_every_coefficient(void **state)
{
    (void)state;
    for (int n = 2; n <= 8; n += 2) {
        struct scene_camera camera = pinhole;
        *(n == 2 ? &camera.k1 : n == 4 ? &camera.k2 : n == 6 ? &camera.k3 : &camera.k4) = -0.05F;
        for (int lens = n == 8 ? 1 : 0; lens < 2; lens++) { /* only fisheyes have k4 */
            camera.lens = lens == 0 ? VKN_LENS_PERSPECTIVE : VKN_LENS_FISHEYE;
            assert_near(scene_camera_limit(&camera), pow((n + 1) * 0.05, -1.0 / n), 1e-6);
        }
    }
}

/* ---- focus point --------------------------------------------------------------------------- */

/* Views from a bowl around (1, -2, 3), the last `away` of which look away. */
static bool find_focus(size_t away, double point[3])
{
    enum { COUNT = 20 };
    double views[COUNT][6];
    for (size_t n = 0; n < COUNT; n++) {
        double a = 2 * acos(-1) * (double)n / COUNT, flat = 0.8, up = n % 2 == 0 ? 0.6 : -0.6;
        const double out[3] = {flat * cos(a), flat * sin(a), up};
        for (int i = 0; i < 3; i++) {
            views[n][i] = ((const double[3]){1, -2, 3})[i] + (2 + 0.1 * (double)n) * out[i];
            views[n][3 + i] = n >= COUNT - away ? out[i] : -out[i];
        }
    }
    return scene_focus_point((const double(*)[6])views, COUNT, point);
}

/* At least four of five cameras must look at the focus point (transforms.h). */
static void test_focus(void **state)
{
    (void)state;
    double point[3];
    for (size_t away = 0; away <= 20; away++) {
        assert_int_equal(find_focus(away, point), away <= 4);
        assert_near(point[0], 1, 1e-12);
        assert_near(point[1], -2, 1e-12);
        assert_near(point[2], 3, 1e-12);
    }
    /* Two axes that do not meet: the middle between them. */
    const double skew[2][6] = {{0, 0, 1, 1, 0, 0}, {3, -5, 2, 0, 1, 0}};
    assert_true(scene_focus_point(skew, 2, point));
    assert_near(point[0], 3, 1e-12);
    assert_near(point[1], 0, 1e-12);
    assert_near(point[2], 1.5, 1e-12);
    assert_false(scene_focus_point(skew, 1, point));
    /* For axes at an angle a twice the eigenvalues are 1 - cos a, 1 + cos a and 2: their product
     * over 8 exceeds 1e-3 beyond 3.6 degrees. */
    for (int degrees = 1; degrees <= 8; degrees++) {
        double a = degrees * acos(-1) / 180;
        const double pair[2][6] = {{0, 0, 0, 1, 0, 0},
                                   {4 - 4 * cos(a), -4 * sin(a), 0, cos(a), sin(a), 0}};
        assert_int_equal(scene_focus_point(pair, 2, point), sin(a) * sin(a) > 4e-3);
    }
    assert_near(point[0], 4, 1e-9);
    assert_near(point[1], 0, 1e-9);
}

/* Double precision up to the corners, except a panorama's: a pole is in every column, the seam on
 * two sides. */
static void test_undistortion_converges(void **state)
{
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(certify_lenses); i++) {
        struct scene_camera camera = certify_lenses[i].camera;
        memcpy(camera.pose, pinhole.pose, sizeof camera.pose);
        const int margin = camera.lens == VKN_LENS_EQUIRECTANGULAR ? 1 : 0;
        for (int row = margin; row <= 21 - margin; row++)
            for (int column = margin; column <= 21 - margin; column++) {
                const double x = column / 21.0 * camera.width, y = row / 21.0 * camera.height;
                double origin[3], direction[3], pixel[2];
                assert_true(scene_camera_ray(&camera, x, y, origin, direction));
                reference_project(&camera, direction, pixel);
                assert_near(pixel[0], x, 1e-4);
                assert_near(pixel[1], y, 1e-4);
                assert_true(scene_camera_project(&camera, direction, &pixel[0], &pixel[1]));
                assert_near(pixel[0], x, 1e-4);
                assert_near(pixel[1], y, 1e-4);
            }
    }
}

/* Any coefficients give a ray, in a short time. */
static void test_hostile_coefficients(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < SCENE_LENSES; kind++)
        for (int round = 0; round < 500; round++) {
            struct scene_camera camera = pinhole;
            double origin[3], d[3], x = 0, y = 0;
            camera.lens = (enum vkn_lens)kind;
            for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
                camera.distortion[i] =
                    (float)((random_unit() - 0.5) * pow(10, 8 * random_unit() - 5));
            assert_true(scene_camera_limit(&camera) >= 0);
            for (int n = 0; n < 9; n++) {
                const int column = n % 3, row = n / 3;
                bool has_ray = scene_camera_ray(&camera, 50.0 * column, 40.0 * row, origin, d);
                assert_near(d[0] * d[0] + d[1] * d[1] + d[2] * d[2], 1, 1e-12);
                assert_true(!has_ray || scene_camera_depth_scale(&camera, d) > 0);
                (void)scene_camera_project(&camera, d, &x, &y);
            }
        }
}

/* Cameras of the public interface, through a scene in memory and back. */
static void test_lenses_in_memory(void **state)
{
    (void)state;
    static const uint8_t pixels[8 * 6 * 4];
    const double origin[3] = {0};
    for (size_t i = 0; i < BASE_COUNT(certify_lenses); i++) {
        struct scene_camera camera = certify_lenses[i].camera, again;
        camera.width = 8;
        camera.height = 6;
        memcpy(camera.pose, pinhole.pose, sizeof camera.pose);
        struct vkn_camera given = scene_camera_to_public(&camera, 1, origin), read;
        given.size = read.size = sizeof read;
        const struct vkn_view view = {.size = sizeof view, .camera = &given, .pixels = pixels};
        const struct vkn_view *const views[] = {&view, &view};
        vkn_scene *scene = NULL;
        assert_ok(vkn_scene_create("lens", views, 2, NULL, &scene));
        assert_ok(vkn_scene_camera(scene, VKN_SPLIT_TRAIN, 1, &read));
        assert_ok(scene_camera_from_public(&read, 1, origin, &again));
        assert_int_equal(again.lens, camera.lens);
        assert_memory_equal(again.distortion, camera.distortion, sizeof camera.distortion);
        assert_near(again.focal_x, camera.focal_x, 1e-4);
        scene_close(&scene);
    }
}

/* Returns how the reference's distortion stretches areas at `u`, by central differences. */
static double stretch(const struct scene_camera *camera, const double u[2])
{
    const double step = 1e-5;
    double change[2][2];
    for (int i = 0; i < 2; i++) {
        double ends[2][2];
        for (int end = 0; end < 2; end++) {
            double at[2] = {u[0], u[1]};
            at[i] += end == 0 ? -step : step;
            reference_project(camera, (const double[3]){at[0], -at[1], -1}, ends[end]);
        }
        for (int k = 0; k < 2; k++)
            change[i][k] = (ends[1][k] - ends[0][k]) / (2 * step);
    }
    return change[0][0] * change[1][1] - change[0][1] * change[1][0];
}

/* Whether the distortion is far from folding over between the centre and `u`. */
static bool is_flat(const struct scene_camera *camera, const double u[2])
{
    for (int i = 0; i <= 8; i++)
        if (!(stretch(camera, (const double[2]){u[0] * i / 8, u[1] * i / 8}) > 0.1))
            return false;
    return true;
}

/* The ray through the pixel of direction (u, v) by the reference has that direction. Returns 1. */
static size_t check_undistorted(const struct scene_camera *camera, const double u[2])
{
    double pixel[2], origin[3], d[3];
    reference_project(camera, (const double[3]){u[0], -u[1], -1}, pixel);
    bool reached = scene_camera_ray(camera, pixel[0], pixel[1], origin, d);
    if (!reached || !(hypot(d[0] / -d[2] - u[0], -d[1] / -d[2] - u[1]) < 1e-9))
        fail_msg("k %g %g %g p %g %g: (%g, %g) comes back as (%.12g, %.12g)", camera->k1,
                 camera->k2, camera->k3, camera->p1, camera->p2, u[0], u[1], d[0] / -d[2],
                 -d[1] / -d[2]);
    return 1;
}

/* Checks each coefficient by itself, up to where the lens folds over: with a wrong derivative of
 * its term Newton's method would converge slowly or not at all. */
static void test_every_coefficient_is_undone(void **state)
{
    (void)state;
    static const double strongest[5] = {2, 2, 2, 0.6, 0.6}; /* k1 k2 k3 p1 p2 */
    size_t checked = 0;
    for (int step = 0; step < 5 * 40; step++) {
        struct scene_camera camera = {
            .focal_x = 1, .focal_y = 1, .pose = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}};
        float *const coefficients[5] = {&camera.k1, &camera.k2, &camera.k3, &camera.p1, &camera.p2};
        const int which = step % 5, strength = step / 5 - 20;
        *coefficients[which] = (float)(strongest[which] * (strength + 0.5) / 19.5);
        for (int v = -4; v <= 4; v++)
            for (int u = -4; u <= 4; u++)
                if (is_flat(&camera, (const double[2]){0.25 * u, 0.25 * v}))
                    checked += check_undistorted(&camera, (const double[2]){0.25 * u, 0.25 * v});
    }
    assert_true(checked > 100 * 81); /* most of them */
}

/* A lens that does not reach the corners is detected; its rays are finite and of unit length
 * everywhere, and project back to their pixels where the lens reaches. */
static void test_short_of_the_corners(void **state)
{
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(certify_short_lenses); i++) {
        struct scene_camera camera = certify_short_lenses[i];
        size_t reached = 0, unreached = 0;
        memcpy(camera.pose, pinhole.pose, sizeof camera.pose);
        assert_false(scene_camera_invertible(&camera));
        for (int n = 0; n < 40 * 40; n++) {
            const int column = n % 40, row = n / 40;
            double x = (column + 0.5) / 40 * camera.width, y = (row + 0.5) / 40 * camera.height;
            double origin[3], d[3];
            bool has_ray = scene_camera_ray(&camera, x, y, origin, d);
            assert_near(d[0] * d[0] + d[1] * d[1] + d[2] * d[2], 1, 1e-12);
            if (has_ray)
                check_model(&camera, x, y);
            *(has_ray ? &reached : &unreached) += 1;
        }
        assert_true(reached > 100 && unreached > 100);
    }
}

/* ---- scenes for paths and orbits ----------------------------------------------------------- */

#define POSE(x) "[[1,0,0," #x "],[0,1,0,0],[0,0,1,0]]"

/* Six cameras around (1, 2, 3), at two heights, looking at it; z is up. */
static struct vkn_scene *open_circle(struct temporary *folder, bool with_time)
{
    struct base_text text = {0};
    base_text_add(&text, "{\"fl_x\": 10, \"cx\": 4, \"cy\": 3, \"w\": 8, \"h\": 6, \"k1\": 0.1,"
                         "\"scale\": 1, \"offset\": 0, \"frames\": [");
    for (int i = 0; i < 6; i++) {
        double a = i * acos(-1) / 3, tilt = i % 2 == 0 ? 0.3 : 0.5, distance = 4;
        double c = cos(a), s = sin(a), ct = cos(tilt), st = sin(tilt);
        char name[32];
        snprintf(name, sizeof(name), "%d.png", i);
        temporary_picture(folder, name, 8, 6, 0);
        base_text_add(
            &text,
            "{\"file_path\": \"%s\", \"time\": %d, \"transform_matrix\": [[%.9g,%.9g,%.9g,"
            "%.9g],[%.9g,%.9g,%.9g,%.9g],[0,%.9g,%.9g,%.9g]]}%s",
            name, with_time && i == 3 ? 1 : 0, -s, -st * c, ct * c, 1 + distance * ct * c, c,
            -st * s, ct * s, 2 + distance * ct * s, ct, st, 3 + distance * st, i < 5 ? "," : "]}");
    }
    temporary_text(folder, "transforms_train.json", text.data);
    free(text.data);
    struct vkn_scene *scene = NULL;
    struct scene_options options = {.path = folder->path};
    assert_ok(scene_open(&options, &scene));
    return scene;
}

static void test_orbit(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene *scene = open_circle(folder, false);
    struct scene_camera *cameras = NULL;
    double height = 2 * (sin(0.3) + sin(0.5));
    assert_ok(scene_orbit(scene, 12, &cameras));
    for (int i = 0; i < 12; i++) {
        const struct scene_camera *camera = &cameras[i];
        const float *pose = camera->pose;
        assert_projects(camera, 1, 2, 3, 4, 3);
        assert_near(pose[11], 3 + height, 1e-4);
        assert_near(hypot(pose[3] - 1.0, pose[7] - 2.0), sqrt(16 - height * height), 1e-4);
        assert_true(pose[9] > 0.5F);   /* up is up */
        assert_near(pose[8], 0, 1e-6); /* no roll */
        assert_near(camera->focal_x, 10, 0);
        assert_near(camera->k1, 0, 0);
        assert_int_equal(camera->width, 8);
        assert_null(camera->image_path);
        /* The axes are right-handed. */
        assert_near(pose[0] * (pose[5] * pose[10] - pose[6] * pose[9]) -
                        pose[1] * (pose[4] * pose[10] - pose[6] * pose[8]) +
                        pose[2] * (pose[4] * pose[9] - pose[5] * pose[8]),
                    1, 1e-5);
    }
    assert_near(cameras[0].pose[7], 2, 1e-4); /* starts in the direction of the first camera */
    assert_near(cameras[3].pose[3], 1, 1e-4); /* a quarter further, counter-clockwise from above */
    assert_true(cameras[3].pose[7] > 5);
    free(cameras);
    assert_int_equal(scene_orbit(scene, 0, &cameras), VKN_BAD_INPUT);
    assert_null(cameras);
    scene_close(&scene);
}

/* A circular fisheye of 190 degrees is replaced by a pinhole of 90, a narrower one by a pinhole of
 * the same resolution in the centre. */
static void test_like_a_fisheye(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene *scene = open_circle(folder, false);
    struct scene_camera *first = &scene->splits[SCENE_TRAIN].cameras[0], *cameras = NULL;
    struct scene_camera_path camera_path;
    char *keys = temporary_text(folder, "keys.json",
                                "{\"frames\": 2, \"keyframes\": [{\"position\": [4,2,3], "
                                "\"look_at\": [1,2,3]}]}");
    char *frames = temporary_text(folder, "frames.json",
                                  "{\"frames\": [{\"transform_matrix\": " POSE(0) "}]}");
    const double angles[] = {190, 60};
    for (int i = 0; i < 2; i++) {
        first->lens = VKN_LENS_FISHEYE;
        first->width = first->height = 100;
        first->focal_x = first->focal_y = (float)(100 / (angles[i] * acos(-1) / 180));
        first->center_x = 48;
        double focal = i == 0 ? 50 : (double)first->focal_x;
        assert_ok(scene_orbit(scene, 3, &cameras));
        for (int j = 0; j < 3; j++) {
            assert_int_equal(cameras[j].lens, VKN_LENS_PERSPECTIVE);
            assert_near(cameras[j].focal_x, focal, 1e-4);
            assert_projects(&cameras[j], 1, 2, 3, 50, 50);
        }
        free(cameras);
        assert_ok(scene_interpolate(scene, 3, &cameras));
        assert_near(cameras[2].focal_y, focal, 1e-4);
        free(cameras);
        assert_ok(scene_read_camera_path(scene, keys, NULL, NULL, &camera_path));
        assert_near(camera_path.cameras[1].focal_y, focal, 1e-3);
        free(camera_path.cameras);
        assert_ok(scene_read_camera_path(scene, frames, NULL, NULL, &camera_path));
        assert_near(camera_path.cameras[0].focal_y, focal, 1e-4);
        assert_int_equal(camera_path.cameras[0].lens, VKN_LENS_PERSPECTIVE);
        free(camera_path.cameras);
    }
    scene_close(&scene);
}

static void test_orbit_in_time(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene *scene = open_circle(folder, true);
    struct scene_camera *cameras = NULL;
    assert_true(scene->dynamic);
    assert_ok(scene_orbit(scene, 5, &cameras));
    for (int i = 0; i < 5; i++)
        assert_near(cameras[i].time, 0.25 * i, 1e-6);
    free(cameras);
    scene_close(&scene);
}

/* ---- paths --------------------------------------------------------------------------------- */

static void test_path_like_training(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene *scene = open_circle(folder, false);
    struct scene_camera_path camera_path;
    char *file =
        temporary_text(folder, "path.json",
                       "{\"frames\": [{\"transform_matrix\": " POSE(
                           0) "},"
                              "{\"transform_matrix\": " POSE(
                                  7) ", \"time\": 0.5,"
                                     "\"w\": 32, \"h\": 12, \"file_path\": \"ignored\"}]}");
    assert_ok(scene_read_camera_path(scene, file, NULL, NULL, &camera_path));
    assert_int_equal(camera_path.count, 2);
    assert_int_equal(camera_path.cameras[0].width, 8);
    assert_near(camera_path.cameras[0].focal_x, 10, 0);
    assert_near(camera_path.cameras[0].k1, 0, 0);
    assert_null(camera_path.cameras[0].image_path);
    /* Twice as high, four times as wide: the vertical field of view stays, pixels stay square. */
    assert_int_equal(camera_path.cameras[1].width, 32);
    assert_near(camera_path.cameras[1].focal_x, 20, 1e-5);
    assert_near(camera_path.cameras[1].focal_y, 20, 1e-5);
    assert_near(camera_path.cameras[1].center_x, 16, 1e-5);
    assert_near(camera_path.cameras[1].center_y, 6, 1e-5);
    assert_near(camera_path.cameras[1].pose[3], 7, 1e-6);
    assert_near(camera_path.cameras[1].time, 0.5, 0);
    free(camera_path.cameras);
    scene_close(&scene);
}

static void test_path_with_lens(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene *scene = open_circle(folder, false);
    scene->scale = 0.5F; /* paths are in the dataset's units */
    scene->offset[0] = 1;
    struct scene_camera_path camera_path;
    struct scene_camera like = scene->splits[SCENE_TRAIN].cameras[0];
    like.width = 100;
    like.height = 50;
    char *file = temporary_text(folder, "path.json",
                                "{\"camera_angle_x\": 1.5707963267948966, \"frames\": ["
                                "{\"transform_matrix\": " POSE(8) "}]}");
    assert_ok(scene_read_camera_path(scene, file, NULL, &like, &camera_path));
    assert_int_equal(camera_path.count, 1);
    assert_int_equal(camera_path.cameras[0].width * 1000 + camera_path.cameras[0].height, 100050);
    assert_near(camera_path.cameras[0].focal_x, 50, 1e-4);
    assert_near(camera_path.cameras[0].center_y, 25, 1e-4);
    assert_near(camera_path.cameras[0].pose[3], 5, 1e-6);
    free(camera_path.cameras);
    scene_close(&scene);
}

static void test_bad_paths(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene *scene = open_circle(folder, false);
    struct scene_camera_path camera_path;
    static const char *const cases[][2] = {
        {"{\"frames\": []}", "path.json: frames: no frames"},
        {"{}", "path.json: no camera path: it has none of the keys camera_path, keyframes, path "
               "and frames"},
        {"{\"frames\": [{}]}", "path.json: frames[0].transform_matrix: missing"},
        {"{\"w\": 20000, \"h\": 9, \"frames\": [{\"transform_matrix\": " POSE(0) "}]}",
         "path.json: frames[0]: w and h: 20000x9 is more than 16384x16384"},
        {"{\"frames\": [}", "path.json: line 1, column 13: not valid JSON near }"},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        char *file = temporary_text(folder, "path.json", cases[i][0]);
        assert_int_equal(scene_read_camera_path(scene, file, NULL, NULL, &camera_path),
                         VKN_BAD_INPUT);
        assert_error(cases[i][1]);
        assert_null(camera_path.cameras);
        assert_int_equal(camera_path.count, 0);
    }
    assert_int_equal(scene_read_camera_path(scene, "none.json", NULL, NULL, &camera_path),
                     VKN_BAD_INPUT);
    assert_error("none.json: No such file or directory");
    scene_close(&scene);
}

/* ---- far from the origin --------------------------------------------------------------------- */

#define RING 9

/* Coordinates of a UTM zone, of geocentric coordinates, and of a scene far below the origin. */
static const double far_middles[][3] = {
    {512345.25, 5412345.75, 312.5}, {4177000.5, 855000.25, 4727000.125}, {0, 0, -1e7}};

/* Cameras about `size` from `middle`, looking at it or outwards; the space is measured. */
static struct vkn_scene *make_ring(const double middle[3], double size, bool outwards,
                                   const vkn_config *config)
{
    static const uint8_t pixels[8 * 6 * 4];
    struct vkn_camera cameras[RING];
    struct vkn_view views[RING];
    const struct vkn_view *pointers[RING];
    struct vkn_scene *scene = NULL;
    for (int n = 0; n < RING; n++) {
        double a = 0.7 * n, eye[3], target[3];
        const double out[3] = {size * cos(a), size * sin(a), size * (0.3 + 0.1 * (n % 3))};
        for (int i = 0; i < 3; i++) {
            eye[i] = middle[i] + out[i];
            target[i] = outwards ? eye[i] + out[i] : middle[i];
        }
        cameras[n] =
            (struct vkn_camera){.size = sizeof *cameras, .width = 8, .height = 6, .focal_x = 10};
        assert_ok(vkn_camera_look_at(&cameras[n], eye, target, (const double[3]){0, 0, 1}));
        views[n] =
            (struct vkn_view){.size = sizeof *views, .camera = &cameras[n], .pixels = pixels};
        pointers[n] = &views[n];
    }
    assert_ok(vkn_scene_create("ring", pointers, RING, config, &scene));
    return scene;
}

/* Cameras agree up to the rounding of single precision and of the dataset's coordinates. */
static void assert_same_cameras(const struct scene_camera *a, const struct scene_camera *b,
                                size_t count)
{
    for (size_t n = 0; n < count; n++)
        for (int i = 0; i < 12; i++)
            assert_near(a[n].pose[i], b[n].pose[i], 3e-7);
}

static void test_far(void **state)
{
    (void)state;
    const double sizes[] = {0.2, 1, 300}, origin[3] = {0, 0, 0};
    for (size_t m = 0; m < 3 * BASE_COUNT(sizes); m++) {
        const double *middle = far_middles[m / 3], size = sizes[m % 3];
        double point[3], up[3];
        struct vkn_scene *near = make_ring(origin, size, false, NULL),
                         *far = make_ring(middle, size, false, NULL);
        assert_true(scene_needs_double(far->offset) && !scene_needs_double(near->offset));
        assert_true(scene_round_number(near->scale, near->offset) == (double)(float)near->scale &&
                    scene_round_number(far->scale, far->offset) == far->scale);
        assert_near(far->scale / near->scale, 1, 1e-6);
        assert_int_equal(far->aabb_scale, near->aabb_scale);
        assert_same_cameras(far->splits[SCENE_TRAIN].cameras, near->splits[SCENE_TRAIN].cameras,
                            RING);
        /* Converts the focus point to the dataset's coordinates and back. */
        struct vkn_scene_look look = {.size = sizeof look};
        far->unit_length = 0.25;
        assert_ok(vkn_scene_look_at(far, point, up));
        assert_ok(vkn_scene_find_look(far, &look));
        assert_true(look.unit_length >= 0.25 && look.unit_length <= 0.25);
        double away = 0;
        for (int n = 0; n < RING; n++)
            away += size * hypot(1, 0.3 + 0.1 * (n % 3)) / RING;
        assert_near(look.distance, away, 1e-5 * size);
        assert_memory_equal(look.point, point, sizeof point);
        assert_memory_equal(look.up, up, sizeof up);
        for (int i = 0; i < 6; i++)
            assert_near(look.cube[i],
                        (0.5 + (i < 3 ? -0.5 : 0.5) * far->aabb_scale - far->offset[i % 3]) /
                            far->scale,
                        0);
        for (int i = 0; i < 3; i++) {
            assert_near(point[i], middle[i], 1e-6 * size);
            assert_near(up[i], i == 2, 0);
        }
        for (size_t n = 0; n < RING; n++) {
            struct vkn_camera far_camera = {.size = sizeof far_camera}, near_camera = far_camera;
            struct scene_camera again;
            assert_ok(vkn_scene_camera(far, VKN_SPLIT_TRAIN, n, &far_camera));
            assert_ok(vkn_scene_camera(near, VKN_SPLIT_TRAIN, n, &near_camera));
            for (int i = 0; i < 3; i++)
                assert_near(far_camera.pose[4 * i + 3] - middle[i], near_camera.pose[4 * i + 3],
                            1e-6 * size);
            assert_ok(scene_camera_from_public(&far_camera, far->scale, far->offset, &again));
            assert_same_cameras(&again, &far->splits[SCENE_TRAIN].cameras[n], 1);
        }
        scene_close(&near);
        scene_close(&far);
    }
}

/* A run's configuration, written as text, restores the space to the last bit. */
static void test_far_and_placed(void **state)
{
    (void)state;
    char *text = NULL;
    struct vkn_config asked = {0}, read = {0};
    struct vkn_scene *scene = make_ring(far_middles[0], 0.2, false, NULL), *again = NULL;
    asked.scene.scale = scene->scale;
    memcpy(asked.scene.offset, scene->offset, sizeof asked.scene.offset);
    asked.scene.aabb_scale = scene->aabb_scale;
    asked.scene.fixed_transform = true;
    text = vkn_config_write_json(&asked);
    assert_ok(vkn_config_parse_json(&read, "run", text, false));
    again = make_ring(far_middles[0], 0.2, false, &read);
    assert_memory_equal(again->offset, scene->offset, sizeof scene->offset);
    for (size_t n = 0; n < RING; n++)
        assert_memory_equal(again->splits[SCENE_TRAIN].cameras[n].pose,
                            scene->splits[SCENE_TRAIN].cameras[n].pose, 12 * sizeof(float));
    scene_close(&scene);
    scene_close(&again);
    free(text);
}

/* Cameras without a common focus point: orbits and the viewer look at the cube's centre. */
static void test_looking_around(void **state)
{
    (void)state;
    double point[3], sum[3] = {0};
    struct vkn_scene *scene = make_ring(far_middles[0], 2, true, NULL);
    struct scene_camera *cameras = NULL;
    assert_ok(vkn_scene_look_at(scene, point, NULL));
    for (int i = 0; i < 3; i++)
        assert_near(point[i], (0.5 - scene->offset[i]) / scene->scale, 1e-9);
    assert_ok(scene_orbit(scene, 4, &cameras));
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 2; i++)
            sum[i] += (double)cameras[n].pose[4 * i + 3] / 4;
    assert_near(sum[0], 0.5, 1e-6);
    assert_near(sum[1], 0.5, 1e-6);
    free(cameras);
    assert_int_equal(vkn_scene_look_at(NULL, point, NULL), VKN_BAD_INPUT);
    assert_int_equal(vkn_scene_look_at(scene, NULL, NULL), VKN_BAD_INPUT);
    assert_int_equal(vkn_scene_find_look(scene, NULL), VKN_BAD_INPUT);
    scene_close(&scene);
}

/* Reads a path with keyframes or frames around `middle`. */
static void read_far_path(struct temporary *folder, const double middle[3], bool frames,
                          struct scene_camera_path *path)
{
    struct vkn_scene *scene = make_ring(middle, 0.2, false, NULL);
    char *text = base_format(
        frames ? "{\"fl_x\": 10, \"w\": 8, \"h\": 6, \"frames\": [{\"transform_matrix\": "
                 "[[1,0,0,%.17g],[0,1,0,%.17g],[0,0,1,%.17g]]}, {\"transform_matrix\": "
                 "[[0,0,1,%.17g],[1,0,0,%.17g],[0,1,0,%.17g]]}]}"
               : "{\"seconds\": 1, \"fps\": 5, \"keyframes\": [{\"position\": [%.17g, %.17g, "
                 "%.17g], \"look_at\": [%.17g, "
                 "%.17g, %.17g], \"up\": [0, 0, 1]}, {\"position\": [%.17g, %.17g, "
                 "%.17g], \"look_at\": [%.17g, %.17g, %.17g]}]}",
        middle[0] + 0.25, middle[1], middle[2], middle[0], middle[1] + 0.125, middle[2], middle[0],
        middle[1] - 0.25, middle[2] + 0.125, middle[0], middle[1], middle[2]);
    const char *file = temporary_text(folder, "path.json", text);
    assert_ok(scene_read_camera_path(scene, file, NULL, NULL, path));
    free(text);
    scene_close(&scene);
}

static void test_far_path(void **state)
{
    const double origin[3] = {0, 0, 0};
    for (int frames = 0; frames < 2; frames++) {
        struct scene_camera_path near, far;
        read_far_path(*state, origin, frames, &near);
        read_far_path(*state, far_middles[0], frames, &far);
        assert_int_equal(near.count, far.count);
        assert_same_cameras(far.cameras, near.cameras, near.count);
        free(near.cameras);
        free(far.cameras);
    }
}

/* Depth bounds of visible points do not depend on the distance from the origin. */
static void test_far_points(void **state)
{
    (void)state;
    double bounds[2][2];
    for (int far = 0; far < 2; far++) {
        static struct transforms_point points[8 * 8 * 8];
        const double origin[3] = {0, 0, 0}, *middle = far ? far_middles[0] : origin;
        struct transforms_frame frame = {.width = 8, .height = 6, .lens = lens_none};
        frame.lens.focal[0] = frame.lens.focal[1] = 100;
        const double pose[12] = {1, 0, 0, middle[0], 0, 1, 0, middle[1], 0, 0, 1, middle[2] + 1};
        memcpy(frame.pose, pose, sizeof pose);
        for (int n = 0; n < 512; n++)
            for (int i = 0; i < 3; i++)
                points[n].position[i] = middle[i] + ((n >> 3 * i & 7) - 3.5) / 80;
        struct transforms transforms = {
            .frames = &frame, .count = 1, .points = points, .point_count = 512};
        assert_ok(cloud_set_bounds(&transforms));
        memcpy(bounds[far], frame.bounds, sizeof frame.bounds);
    }
    assert_true(bounds[0][0] > 0.9 && bounds[0][1] < 1.1);
    assert_near(bounds[1][0], bounds[0][0], 1e-8);
    assert_near(bounds[1][1], bounds[0][1], 1e-8);
}

int main(void)
{
#define TEST(function) \
    cmocka_unit_test_setup_teardown(function, temporary_setup, temporary_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_pinhole),
        TEST(test_posed),
        TEST(test_fit),
        TEST(test_distorted),
        TEST(test_models_by_hand),
        TEST(test_behind_the_image_plane),
        TEST(test_inverse),
        TEST(test_range),
        TEST(test_range_of_every_coefficient),
        TEST(test_focus),
        TEST(test_undistortion_converges),
        TEST(test_hostile_coefficients),
        TEST(test_lenses_in_memory),
        TEST(test_every_coefficient_is_undone),
        TEST(test_short_of_the_corners),
        TEST(test_orbit),
        TEST(test_orbit_in_time),
        TEST(test_like_a_fisheye),
        TEST(test_path_like_training),
        TEST(test_path_with_lens),
        TEST(test_bad_paths),
        TEST(test_far),
        TEST(test_far_and_placed),
        TEST(test_looking_around),
        TEST(test_far_path),
        TEST(test_far_points),
    };
    return cmocka_run_group_tests_name("scene cameras", tests, NULL, NULL);
}
