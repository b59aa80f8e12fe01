/* Tests real captures beside the project (VKNERF_SHARED_DATA names another folder); skipped if
 * absent. Every rule that these captures exercise also has a test with synthetic data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "scene/transforms.h"
#include "scenes.h"
#include "skips.h"

static const char not_here[] = "its capture is not beside the project";

/* Returns the path of a capture; the caller frees it. */
static char *capture_path(const char *name)
{
    const char *data = getenv("VKNERF_SHARED_DATA"), *source = getenv("VKNERF_SOURCE_DIR");
    return data != NULL ? base_format("%s/%s", data, name)
                        : base_format("%s/../shared/data/%s", source != NULL ? source : ".", name);
}

/* Returns NULL if the capture is absent. */
static struct vkn_scene *open_capture(const char *name, uint32_t downscale)
{
    char *path = capture_path(name);
    struct vkn_scene *scene = NULL;
    if (base_is_folder(path)) {
        struct scene_options options = {.path = path, .downscale = downscale};
        base_log_threshold(BASE_LOG_NOTHING);
        assert_ok(scene_open(&options, &scene));
        base_log_threshold(BASE_LOG_INFO);
    }
    free(path);
    return scene;
}

static void check_counts(const struct vkn_scene *scene, size_t train, size_t val, size_t test)
{
    assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, train);
    assert_int_equal(scene->splits[SCENE_VAL].camera_count, val);
    assert_int_equal(scene->splits[SCENE_TEST].camera_count, test);
}

static void test_lego(void **state)
{
    (void)state;
    struct vkn_scene *scene = open_capture("lego", 8);
    if (scene == NULL)
        skip_because(not_here);
    check_counts(scene, 100, 0, 25);
    const struct scene_camera *camera = &scene->splits[SCENE_TRAIN].cameras[0];
    assert_int_equal(camera->width, 100);
    assert_true(fabs(camera->focal_x - 0.5 * 100 / tan(0.5 * 0.6911112070083618)) < 1e-4);
    assert_false(scene->dynamic);
    assert_ok(scene_load(scene, SCENE_TEST, NULL, NULL));
    const struct scene_split *test = &scene->splits[SCENE_TEST];
    assert_true(test->has_alpha);
    assert_int_equal(test->pixels[0], 0);                  /* the corner is background */
    assert_true(test->pixels[50 * 100 + 50] >> 24 == 255); /* the middle is the bulldozer */
    scene_close(&scene);
}

static void test_fox(void **state)
{
    (void)state;
    struct vkn_scene *scene = open_capture("fox", 8);
    if (scene == NULL)
        skip_because(not_here);
    check_counts(scene, 43, 0, 7);
    assert_int_equal(scene->aabb_scale, 4);
    const struct scene_camera *camera = &scene->splits[SCENE_TRAIN].cameras[0];
    assert_int_equal(camera->width, 135);
    assert_int_equal(camera->height, 240);
    assert_true(fabs(camera->focal_x - 1375.52 / 8) < 1e-4);
    assert_true(camera->k1 == 0.0578421F && camera->p2 == 0.00015575F);
    for (int corner = 0; corner < 4; corner++) {
        double origin[3], d[3], x = 0, y = 0, point[3];
        double wanted_x = (corner & 1) != 0 ? 135 : 0, wanted_y = (corner & 2) != 0 ? 240 : 0;
        scene_camera_ray(camera, wanted_x, wanted_y, origin, d);
        for (int i = 0; i < 3; i++)
            point[i] = origin[i] + 2 * d[i];
        assert_true(scene_camera_project(camera, point, &x, &y));
        assert_true(fabs(x - wanted_x) < 1e-3 && fabs(y - wanted_y) < 1e-3);
    }
    assert_ok(scene_load(scene, SCENE_TEST, NULL, NULL));
    assert_false(scene->splits[SCENE_TEST].has_alpha);
    scene_close(&scene);
}

static void test_dynamic_texture(void **state)
{
    (void)state;
    struct vkn_scene *scene = open_capture("dynamic_texture", 16);
    if (scene == NULL)
        skip_because(not_here);
    check_counts(scene, 108, 21, 21);
    assert_true(scene->dynamic);
    const struct scene_camera *cameras = scene->splits[SCENE_TRAIN].cameras;
    assert_true(fabs(cameras[1].time - 0.006711409395973154) < 1e-6);
    assert_true(fabs(cameras[0].focal_x - 857.8027682038233 / 16) < 1e-4);
    assert_ok(scene_load(scene, SCENE_VAL, NULL, NULL));
    scene_close(&scene);
}

/* The centre of the visible content is in front of the cameras, and all content is in the cube. */
static void test_fern(void **state)
{
    (void)state;
    struct vkn_scene *scene = open_capture("fern", 4);
    if (scene == NULL)
        skip_because(not_here);
    check_counts(scene, 17, 0, 3);
    assert_int_equal(scene->format, VKN_SCENE_LLFF);
    assert_int_equal(scene->aabb_scale, 8);
    const struct scene_camera *camera = &scene->splits[SCENE_TRAIN].cameras[0];
    assert_int_equal(camera->width, 126);
    assert_int_equal(camera->height, 94);
    assert_true(fabs(camera->focal_x - 3260.526 / 32) < 1e-3);
    const double middle[3] = {0.5, 0.5, 0.5};
    double x = 0, y = 0;
    assert_true(scene_camera_project(camera, middle, &x, &y));
    assert_true(x > 31 && x < 95 && y > 23 && y < 71);
    assert_true(scene->near > 0.5 && scene->near < 1);
    assert_ok(scene_load(scene, SCENE_TEST, NULL, NULL));
    scene_close(&scene);
}

/* Its depth bounds are artificial; the cameras surround the tree. */
static void test_bonsai(void **state)
{
    (void)state;
    struct vkn_scene *scene = open_capture("bonsai", 8);
    if (scene == NULL)
        skip_because(not_here);
    check_counts(scene, 255, 0, 37);
    assert_int_equal(scene->aabb_scale, 16);
    assert_true(scene->near == 0);
    const struct scene_camera *camera = &scene->splits[SCENE_TRAIN].cameras[0];
    assert_int_equal(camera->width, 100);
    assert_true(fabs(camera->focal_x - 3222.701 * 800 / 3118 / 8) < 1e-3);
    scene_close(&scene);
}

/* Most points are in the pictures, as they should be around a can, and in the cube. */
static void test_beer(void **state)
{
    (void)state;
    struct vkn_scene *scene = open_capture("beer", 8);
    if (scene == NULL)
        skip_because(not_here);
    check_counts(scene, 62, 0, 9);
    assert_int_equal(scene->format, VKN_SCENE_COLMAP);
    assert_int_equal(scene->point_count, 4414);
    assert_int_equal(scene->aabb_scale, 8);
    const struct scene_camera *cameras = scene->splits[SCENE_TRAIN].cameras;
    assert_int_equal(cameras[0].width, 90);
    assert_true(fabs(cameras[0].focal_x / (1105.133 / 8) - 1) < 0.05); /* each camera has its own */
    size_t seen = 0, inside = 0;
    for (size_t i = 0; i < scene->point_count; i++) {
        const float *at = scene->points[i].position;
        const double point[3] = {at[0], at[1], at[2]};
        for (int k = 0; k < 62; k += 20) {
            double x = -1, y = -1;
            bool front = scene_camera_project(&cameras[k], point, &x, &y);
            seen += front && x > 0 && x < 90 && y > 0 && y < 160 ? 1 : 0;
        }
        inside += fabsf(at[0] - 0.5F) < 4 && fabsf(at[1] - 0.5F) < 4 && fabsf(at[2] - 0.5F) < 4;
    }
    assert_true(seen > 2 * scene->point_count); /* of the 4 cameras tested */
    assert_true(inside * 100 > scene->point_count * 97);
    scene_close(&scene);
}

/* The files were truncated during the upload. */
static void test_truncated_colmap(void **state)
{
    (void)state;
    char *path = capture_path("truncated_colmap");
    if (base_is_folder(path)) {
        struct scene_options options = {.path = path};
        assert_open_fails(&options, "/sparse/0/images.bin: image ");
        assert_error(": cut off");
    }
    bool exists = base_is_folder(path);
    free(path);
    if (!exists)
        skip_because(not_here);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lego),
        cmocka_unit_test(test_fox),
        cmocka_unit_test(test_dynamic_texture),
        cmocka_unit_test(test_fern),
        cmocka_unit_test(test_bonsai),
        cmocka_unit_test(test_beer),
        cmocka_unit_test(test_truncated_colmap),
    };
    int failed = cmocka_run_group_tests_name("scene data", tests, NULL, NULL);
    return skips_status(failed, BASE_COUNT(tests));
}
