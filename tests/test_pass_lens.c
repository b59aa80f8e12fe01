/* Tests the shaders' camera models: rays of every lens project back to their pixels by the
 * reference's formulas, and pixels out of a lens's reach get no ray. */
#include "lenses.h"
#include "pass_rays.h"
#include "scene/transforms.h"

#define RAYS 3000u

/* Gives the camera a random pose that looks at the cube. */
static void place_camera(struct random *random, struct scene_camera *camera)
{
    struct scene_camera placed = random_camera(random, 8, 8, 1.5, false);
    memcpy(camera->pose, placed.pose, sizeof placed.pose);
}

/* Makes rays `first` to `first + RAYS` of the camera, one per pixel; the caller frees them. */
static struct Ray *run_view(struct bench *bench, const struct scene_camera *camera, uint32_t first)
{
    const struct Camera device_camera = setup_camera(camera);
    struct Push push = {.b = first, .c = RAYS};
    bench_put(bench, BIND_CAMERAS, &device_camera, sizeof device_camera);
    bench_poison(bench, BIND_RAYS);
    bench_run(bench, "generate_view_rays", push, bench_groups(bench, RAYS));
    return bench_read(bench, BIND_RAYS);
}

static struct bench bench_of(struct gpu_device *device)
{
    struct vkn_config settings = {.scene.aabb_scale = 4, .batch.max_rays = RAYS};
    struct bench bench = bench_configure(device, settings);
    bench_allocate(&bench, 1, 1);
    return bench;
}

static void check_ray(const struct scene_camera *camera, const struct Ray *ray, uint32_t pixel,
                      double distance)
{
    uint32_t column = pixel % camera->width, row = pixel / camera->width;
    double point[3], image[2], squared = 0;
    for (int i = 0; i < 3; i++) {
        assert_true(ray->origin[i] == camera->pose[4 * i + 3]);
        point[i] = ray->origin[i] + distance * ray->direction[i];
        squared += (double)ray->direction[i] * ray->direction[i];
    }
    assert_close(squared, 1, 1e-6, 1, "length of ray", pixel);
    reference_project(camera, point, image);
    /* Near a panorama's poles a column is hardly wider than a direction's rounding error. */
    double wide = camera->lens == VKN_LENS_EQUIRECTANGULAR
                      ? cos((row + 0.5 - (double)camera->center_y) / (double)camera->focal_y)
                      : 1;
    assert_close(image[0], column + 0.5, 1e-3, 1 / wide, "column of ray", pixel);
    assert_close(image[1], row + 0.5, 1e-3, 1, "row of ray", pixel);
}

/* Stronger distortions than real lenses have, one for each coefficient, none folded over: the
 * inverse must use every coefficient. */
static const struct scene_camera strong_lenses[] = {
    {TEST_SENSOR, .k1 = 1.2F},
    {TEST_SENSOR, .k2 = 2.5F},
    {TEST_SENSOR, .k3 = 6},
    {TEST_SENSOR, .k1 = 0.3F, .p1 = -0.25F},
    {TEST_SENSOR, .k1 = 0.3F, .p2 = -0.2F},
    {TEST_SENSOR, .k1 = 0.2F, .p1 = 0.15F, .p2 = 0.12F},
    /* Its distorted angles exceed the angle at which it folds over. */
    {.lens = VKN_LENS_FISHEYE,
     .width = 1080,
     .height = 720,
     .focal_x = 500,
     .focal_y = 495,
     .center_x = 545,
     .center_y = 358,
     .k1 = 2,
     .k2 = -1.5F},
};

/* Checks the first rows, the middle ones and the last ones, which include all corners. */
static void check_lens(struct bench *bench, struct scene_camera camera, struct random *random)
{
    uint32_t pixels = camera.width * camera.height;
    const uint32_t begins[] = {0, pixels / 2, pixels - RAYS};
    for (size_t n = 0; n < BASE_COUNT(begins); n++) {
        place_camera(random, &camera);
        struct Ray *rays = run_view(bench, &camera, begins[n]);
        for (uint32_t r = 0; r < RAYS; r++)
            check_ray(&camera, &rays[r], begins[n] + r, random_between(random, 0.1, 5));
        free(rays);
    }
}

static void test_rays_lead_back(void **state)
{
    struct bench bench = bench_of(*state);
    struct random random = {12};
    for (size_t i = 0; i < BASE_COUNT(test_lenses); i++)
        check_lens(&bench, test_lenses[i].camera, &random);
    for (size_t i = 0; i < BASE_COUNT(strong_lenses); i++)
        check_lens(&bench, strong_lenses[i], &random);
    bench_destroy(&bench);
}

/* By hand: an equidistant fisheye has single precision in all directions, backwards included. */
static void test_all_around(void **state)
{
    struct bench bench = bench_of(*state);
    struct scene_camera camera = {
        .lens = VKN_LENS_FISHEYE,
        .width = 1000,
        .height = 3,
        .focal_x = 158,
        .focal_y = 158,
        .center_x = 500,
        .center_y = 1.25F,
        .pose = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0},
    };
    struct Ray *rays = run_view(&bench, &camera, 0);
    double widest = 0;
    for (uint32_t r = 0; r < RAYS; r++) {
        uint32_t column = r % 1000, row = r / 1000;
        double x = (column + 0.5 - 500) / 158, y = (row + 0.5 - 1.25) / 158;
        double angle = hypot(x, y);
        const double expected[3] = {sin(angle) * x / angle, -sin(angle) * y / angle, -cos(angle)};
        for (int i = 0; i < 3 && angle < M_PI; i++)
            assert_close(rays[r].direction[i], expected[i], 6e-7, 1, "direction of ray", r);
        assert_true(angle < M_PI || rays[r].last == -1.0f);
        widest = angle < M_PI ? fmax(widest, angle) : widest;
    }
    assert_true(widest > 3.13);
    free(rays);
    bench_destroy(&bench);
}

/* A panorama has single precision on the whole sphere, at poles and on both sides of the seam. */
static void test_panorama(void **state)
{
    struct bench bench = bench_of(*state);
    struct scene_camera camera = {
        .lens = VKN_LENS_EQUIRECTANGULAR,
        .width = 60,
        .height = 50,
        .focal_x = (float)(60 / (2 * M_PI)),
        .focal_y = (float)(50 / M_PI),
        .center_x = 30,
        .center_y = 25,
        .pose = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0},
    };
    struct Ray *rays = run_view(&bench, &camera, 0);
    for (uint32_t r = 0; r < RAYS; r++) {
        uint32_t column = r % 60, row = r / 60;
        double longitude = (column + 0.5 - 30) / 60 * 2 * M_PI;
        double latitude = -(row + 0.5 - 25) / 50 * M_PI;
        const double expected[3] = {sin(longitude) * cos(latitude), sin(latitude),
                                    -cos(longitude) * cos(latitude)};
        for (int i = 0; i < 3; i++)
            assert_close(rays[r].direction[i], expected[i], 6e-7, 1, "direction of ray", r);
        assert_true(rays[r].last >= 0 && rays[r].distance_scale == 1);
    }
    free(rays);
    bench_destroy(&bench);
}

/* Depths of fisheyes and panoramas are along rays, those of other lenses along the axis. */
static void test_depth_scale(void **state)
{
    struct bench bench = bench_of(*state);
    struct random random = {13};
    for (size_t i = 0; i < BASE_COUNT(test_lenses); i++) {
        struct scene_camera camera = test_lenses[i].camera;
        place_camera(&random, &camera);
        struct Ray *rays = run_view(&bench, &camera, 0);
        for (uint32_t r = 0; r < RAYS; r++) {
            const double direction[3] = {rays[r].direction[0], rays[r].direction[1],
                                         rays[r].direction[2]};
            assert_close(rays[r].distance_scale, scene_camera_depth_scale(&camera, direction), 1e-6,
                         1, "depth scale of ray", r);
        }
        free(rays);
    }
    bench_destroy(&bench);
}

static void test_out_of_reach(void **state)
{
    struct bench bench = bench_of(*state);
    struct random random = {14};
    for (size_t i = 0; i < BASE_COUNT(test_short_lenses); i++) {
        struct scene_camera camera = test_short_lenses[i];
        uint32_t first = camera.width * camera.height / 2, counts[2] = {0};
        place_camera(&random, &camera);
        struct Ray *rays = run_view(&bench, &camera, first);
        for (uint32_t r = 0; r < RAYS; r++) {
            uint32_t pixel = first + r, column = pixel % camera.width, row = pixel / camera.width;
            double x = column + 0.5, y = row + 0.5;
            double origin[3], direction[3], near[3];
            bool reached = scene_camera_ray(&camera, x, y, origin, direction);
            bool sure = reached == scene_camera_ray(&camera, x - 1, y, origin, near) &&
                        reached == scene_camera_ray(&camera, x + 1, y, origin, near);
            if (sure && reached)
                check_ray(&camera, &rays[r], pixel, 1);
            if (sure && !reached)
                assert_true(rays[r].last == -1.0f);
            counts[reached]++;
        }
        assert_true(counts[0] > RAYS / 8 && counts[1] > RAYS / 8);
        free(rays);
    }
    bench_destroy(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rays_lead_back), cmocka_unit_test(test_all_around),
        cmocka_unit_test(test_panorama),       cmocka_unit_test(test_depth_scale),
        cmocka_unit_test(test_out_of_reach),   cmocka_unit_test(test_no_messages),
    };
    return RUN_PASS_TESTS(tests);
}
