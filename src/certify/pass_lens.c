/* Tests the shaders' camera models: rays of every lens project back to their pixels by the
 * reference's formulas, and pixels out of a lens's reach get no ray. */
#include "certify/lenses.h"
#include "certify/rays.h"

#define RAYS 3000u

/* Gives the camera a random pose that looks at the cube. */
static void place_camera(struct random *random, struct scene_camera *camera)
{
    struct scene_camera placed = random_camera(random, 8, 8, 1.5, false);
    memcpy(camera->pose, placed.pose, sizeof placed.pose);
}

/* Makes rays `first` to `first + RAYS` of the camera, one per pixel; the caller frees them. */
static struct Ray *run_view(struct fixture *fixture, const struct scene_camera *camera,
                            uint32_t first)
{
    const struct Camera device_camera = setup_camera(camera);
    struct Push push = {.b = first, .c = RAYS};
    fixture_put(fixture, BIND_CAMERAS, &device_camera, sizeof device_camera);
    fixture_poison(fixture, BIND_RAYS);
    fixture_run(fixture, "generate_view_rays", push, fixture_groups(fixture, RAYS));
    return fixture_read(fixture, BIND_RAYS);
}

static struct fixture fixture_of(struct gpu_device *device)
{
    struct vkn_config settings = {.scene.aabb_scale = 4, .batch.max_rays = RAYS};
    struct fixture fixture = fixture_configure(device, settings);
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

static void check_ray(const struct scene_camera *camera, const struct Ray *ray, uint32_t pixel,
                      double distance)
{
    uint32_t column = pixel % camera->width, row = pixel / camera->width;
    double point[3], image[2], squared = 0;
    for (int i = 0; i < 3; i++) {
        check_that(ray->origin[i] == camera->pose[4 * i + 3]);
        point[i] = ray->origin[i] + distance * ray->direction[i];
        squared += (double)ray->direction[i] * ray->direction[i];
    }
    check_close(squared, 1, 1e-6, 1, "length of ray", pixel);
    reference_project(camera, point, image);
    /* Near a panorama's poles a column is hardly wider than a direction's rounding error. */
    double wide = camera->lens == VKN_LENS_EQUIRECTANGULAR
                      ? cos((row + 0.5 - (double)camera->center_y) / (double)camera->focal_y)
                      : 1;
    check_close(image[0], column + 0.5, 1e-3, 1 / wide, "column of ray", pixel);
    check_close(image[1], row + 0.5, 1e-3, 1, "row of ray", pixel);
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
static void check_lens(struct fixture *fixture, struct scene_camera camera, struct random *random)
{
    uint32_t pixels = camera.width * camera.height;
    const uint32_t begins[] = {0, pixels / 2, pixels - RAYS};
    for (size_t n = 0; n < BASE_COUNT(begins); n++) {
        place_camera(random, &camera);
        struct Ray *rays = run_view(fixture, &camera, begins[n]);
        for (uint32_t r = 0; r < RAYS; r++)
            check_ray(&camera, &rays[r], begins[n] + r, random_between(random, 0.1, 5));
        free(rays);
    }
}

static void test_rays_lead_back(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device);
    struct random random = {12};
    for (size_t i = 0; i < BASE_COUNT(certify_lenses); i++)
        check_lens(&fixture, certify_lenses[i].camera, &random);
    for (size_t i = 0; i < BASE_COUNT(strong_lenses); i++)
        check_lens(&fixture, strong_lenses[i], &random);
    fixture_destroy(&fixture);
}

/* By hand: an equidistant fisheye has single precision in all directions, backwards included. */
static void test_all_around(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device);
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
    struct Ray *rays = run_view(&fixture, &camera, 0);
    double widest = 0;
    for (uint32_t r = 0; r < RAYS; r++) {
        uint32_t column = r % 1000, row = r / 1000;
        double x = (column + 0.5 - 500) / 158, y = (row + 0.5 - 1.25) / 158;
        double angle = hypot(x, y);
        const double expected[3] = {sin(angle) * x / angle, -sin(angle) * y / angle, -cos(angle)};
        for (int i = 0; i < 3 && angle < M_PI; i++)
            check_close(rays[r].direction[i], expected[i], 6e-7, 1, "direction of ray", r);
        check_that(angle < M_PI || rays[r].last == -1.0f);
        widest = angle < M_PI ? fmax(widest, angle) : widest;
    }
    check_that(widest > 3.13);
    free(rays);
    fixture_destroy(&fixture);
}

/* A panorama has single precision on the whole sphere, at poles and on both sides of the seam. */
static void test_panorama(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device);
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
    struct Ray *rays = run_view(&fixture, &camera, 0);
    for (uint32_t r = 0; r < RAYS; r++) {
        uint32_t column = r % 60, row = r / 60;
        double longitude = (column + 0.5 - 30) / 60 * 2 * M_PI;
        double latitude = -(row + 0.5 - 25) / 50 * M_PI;
        const double expected[3] = {sin(longitude) * cos(latitude), sin(latitude),
                                    -cos(longitude) * cos(latitude)};
        for (int i = 0; i < 3; i++)
            check_close(rays[r].direction[i], expected[i], 6e-7, 1, "direction of ray", r);
        check_that(rays[r].last >= 0 && rays[r].distance_scale == 1);
    }
    free(rays);
    fixture_destroy(&fixture);
}

/* Depths of fisheyes and panoramas are along rays, those of other lenses along the axis. */
static void test_depth_scale(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device);
    struct random random = {13};
    for (size_t i = 0; i < BASE_COUNT(certify_lenses); i++) {
        struct scene_camera camera = certify_lenses[i].camera;
        place_camera(&random, &camera);
        struct Ray *rays = run_view(&fixture, &camera, 0);
        for (uint32_t r = 0; r < RAYS; r++) {
            const double direction[3] = {rays[r].direction[0], rays[r].direction[1],
                                         rays[r].direction[2]};
            check_close(rays[r].distance_scale, scene_camera_depth_scale(&camera, direction), 1e-6,
                        1, "depth scale of ray", r);
        }
        free(rays);
    }
    fixture_destroy(&fixture);
}

static void test_out_of_reach(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device);
    struct random random = {14};
    for (size_t i = 0; i < BASE_COUNT(certify_short_lenses); i++) {
        struct scene_camera camera = certify_short_lenses[i];
        uint32_t first = camera.width * camera.height / 2, counts[2] = {0};
        place_camera(&random, &camera);
        struct Ray *rays = run_view(&fixture, &camera, first);
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
                check_that(rays[r].last == -1.0f);
            counts[reached]++;
        }
        check_that(counts[0] > RAYS / 8 && counts[1] > RAYS / 8);
        free(rays);
    }
    fixture_destroy(&fixture);
}

static const struct certify_test tests[] = {
    TEST(test_rays_lead_back), TEST(test_all_around),   TEST(test_panorama),
    TEST(test_depth_scale),    TEST(test_out_of_reach),
};
const struct certify_part certify_lens = {"lens", tests, BASE_COUNT(tests)};
