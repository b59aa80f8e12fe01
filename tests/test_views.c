/* Tests the cameras of rendered views, and the picture files of their maps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "render/render.h"
#include "render/write_view.h"
#include "scene/npy.h"
#include "scene/transforms.h"

#define NEAR(a, b, tolerance) assert_true(fabs((double)(a) - (double)(b)) < (tolerance))

static char folder[] = "/tmp/vknerf-views-XXXXXX";
static char png[64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return 1;
    snprintf(png, sizeof(png), "%s/picture.png", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(png);
    return rmdir(folder);
}

/* ---- cameras ------------------------------------------------------------------------------- */

/* Rotated, so that axes of camera and world differ: right is +y, up is +z, forward is -x. */
static struct scene_camera camera_like(uint32_t width, uint32_t height)
{
    return (struct scene_camera){
        .width = width,
        .height = height,
        .focal_x = 50.0f,
        .focal_y = 60.0f,
        .center_x = 0.5f * (float)width,
        .center_y = 0.4f * (float)height,
        .pose = {0, 0, 1, 2.5f, 1, 0, 0, 0.5f, 0, 1, 0, 0.5f},
    };
}

static void views_of_a_split(void **state)
{
    (void)state;
    struct scene_camera train[3], test[2];
    for (uint32_t i = 0; i < 3; i++)
        train[i] = camera_like(30 + i, 20);
    for (uint32_t i = 0; i < 2; i++)
        test[i] = camera_like(40 + i, 20);
    struct vkn_scene scene = {.path = "somewhere", .scale = 1.0f, .aabb_scale = 1};
    scene.splits[SCENE_TRAIN] = (struct scene_split){.cameras = train, .camera_count = 3};
    enum scene_split_name name;
    assert_int_equal(scene_find_split(&scene, VKN_SPLIT_DEFAULT, &name), VKN_OK);
    assert_int_equal(name, SCENE_TRAIN);
    assert_int_equal(scene_find_split(&scene, VKN_SPLIT_TEST, &name), VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "somewhere: there are no test views");

    scene.splits[SCENE_TEST] = (struct scene_split){.cameras = test, .camera_count = 2};
    struct vkn_render_params params = {0};
    struct scene_camera_path views;
    assert_int_equal(render_views(NULL, &scene, &params, &views), VKN_OK);
    assert_int_equal(views.count, 2);
    assert_int_equal(views.cameras[1].width, 41);
    free(views.cameras);
    params.split = VKN_SPLIT_TRAIN;
    assert_int_equal(render_views(NULL, &scene, &params, &views), VKN_OK);
    assert_int_equal(views.count, 3);
    free(views.cameras);
    params.orbit = 5;
    assert_int_equal(render_views(NULL, &scene, &params, &views), VKN_OK);
    assert_int_equal(views.count, 5);
    free(views.cameras);
    params.orbit = UINT32_MAX;
    assert_int_equal(render_views(NULL, &scene, &params, &views), VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "4294967295 views are more than 100000");
}

/* Twice the height doubles image positions; a wider picture only adds to the sides. */
static void views_of_another_size(void **state)
{
    (void)state;
    struct scene_camera test = camera_like(40, 20);
    struct vkn_scene scene = {.path = "somewhere", .scale = 1.0f, .aabb_scale = 1};
    scene.splits[SCENE_TEST] = (struct scene_split){.cameras = &test, .camera_count = 1};
    struct vkn_render_params params = {.height = 40};
    struct scene_camera_path views;
    assert_int_equal(render_views(NULL, &scene, &params, &views), VKN_OK);
    assert_int_equal(views.cameras[0].width, 80);
    assert_int_equal(views.cameras[0].height, 40);
    const double point[3] = {0.4, 0.6, 0.7};
    double x, y, x2, y2;
    assert_true(scene_camera_project(&test, point, &x, &y));
    assert_true(scene_camera_project(&views.cameras[0], point, &x2, &y2));
    NEAR(x2, 2 * x, 1e-5);
    NEAR(y2, 2 * y, 1e-5);
    free(views.cameras);

    params = (struct vkn_render_params){.width = 100, .height = 20};
    assert_int_equal(render_views(NULL, &scene, &params, &views), VKN_OK);
    assert_true(scene_camera_project(&views.cameras[0], point, &x2, &y2));
    NEAR(x2 - 50.0, x - 20.0, 1e-5);
    NEAR(y2, y, 1e-5);
    free(views.cameras);

    params = (struct vkn_render_params){.width = SCENE_MAX_IMAGE_SIZE + 1};
    assert_int_equal(render_views(NULL, &scene, &params, &views), VKN_BAD_INPUT);
    assert_null(views.cameras);
}

/* Panoramas, twice as wide as high, at the views' positions: level on an orbit, tilted like the
 * camera in a split. */
static void panoramas_of_views(void **state)
{
    (void)state;
    struct scene_camera test[8];
    for (int i = 0; i < 8; i++) { /* around z, looking down by 45 degrees */
        double c = cos(i * M_PI / 4), s = sin(i * M_PI / 4), h = sqrt(0.5);
        const double pose[12] = {-s,    -h * c,  h * c, 0.5 + c, c, -h * s,
                                 h * s, 0.5 + s, 0,     h,       h, 1.5};
        test[i] = camera_like(40, 20);
        for (int k = 0; k < 12; k++)
            test[i].pose[k] = (float)pose[k];
    }
    struct vkn_scene scene = {.path = "somewhere", .scale = 1.0f, .aabb_scale = 1};
    scene.splits[SCENE_TRAIN] = (struct scene_split){.cameras = test, .camera_count = 8};
    struct vkn_render_params params = {.lens = VKN_LENS_EQUIRECTANGULAR, .orbit = 3};
    struct scene_camera_path views;
    for (int split = 0; split < 2; split++) {
        params.orbit = split ? 0 : 3;
        params.width = split ? 200 : 0;
        assert_int_equal(render_views(NULL, &scene, &params, &views), VKN_OK);
        for (size_t i = 0; i < views.count; i++) {
            const struct scene_camera *view = &views.cameras[i];
            assert_int_equal(view->lens, VKN_LENS_EQUIRECTANGULAR);
            assert_true(view->width == 2 * view->height && view->width == (split ? 200 : 40));
            NEAR(view->focal_x * 2 * M_PI, view->width, 1e-4);
            NEAR(view->focal_y * M_PI, view->height, 1e-4);
            /* On an orbit the middle row is the horizon, and its middle points to the axis. */
            double origin[3], ahead[3];
            assert_true(scene_camera_ray(view, view->center_x, view->center_y, origin, ahead));
            NEAR(ahead[2], split ? -sqrt(0.5) : 0, 1e-6);
            assert_true(ahead[0] * (0.5 - origin[0]) + ahead[1] * (0.5 - origin[1]) > 0.7);
        }
        free(views.cameras);
    }
    /* A panorama of another size still sees in all directions. */
    struct scene_camera whole = scene_panorama(&test[0], 40, 20, NULL);
    scene.splits[SCENE_TRAIN] = (struct scene_split){.cameras = &whole, .camera_count = 1};
    params = (struct vkn_render_params){.width = 64, .height = 50};
    assert_int_equal(render_views(NULL, &scene, &params, &views), VKN_OK);
    NEAR(views.cameras[0].focal_x, 64 / (2 * M_PI), 1e-5);
    NEAR(views.cameras[0].focal_y, 50 / M_PI, 1e-5);
    free(views.cameras);
    params = (struct vkn_render_params){.width = SCENE_MAX_IMAGE_SIZE + 1,
                                        .lens = VKN_LENS_EQUIRECTANGULAR};
    assert_int_equal(render_views(NULL, &scene, &params, &views), VKN_BAD_INPUT);
    params = (struct vkn_render_params){.lens = VKN_LENS_FISHEYE};
    assert_int_equal(render_views(NULL, &scene, &params, &views), VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "lens: 1 is not supported; only equirectangular is");
    assert_null(views.cameras);
}

/* ---- files --------------------------------------------------------------------------------- */

/* Returns the written file's pixels, RGBA; the caller frees them. */
static uint8_t *read_back(uint32_t width, uint32_t height)
{
    uint8_t *rgba;
    uint32_t got_width, got_height;
    assert_int_equal(scene_image_read(png, &rgba, &got_width, &got_height), VKN_OK);
    assert_int_equal(got_width, width);
    assert_int_equal(got_height, height);
    return rgba;
}

static void writes_rounded_and_clamped(void **state)
{
    (void)state;
    const float rgb[6] = {0.0f, 0.5f, 1.0f, -1.0f, 2.0f, NAN};
    assert_int_equal(render_write_color(png, rgb, 2, 1), VKN_OK);
    uint8_t *color = read_back(2, 1);
    assert_memory_equal(color, ((uint8_t[]){0, 128, 255, 255, 0, 255, 0, 255}), 8);
    free(color);
    uint8_t bytes[2];
    render_to_bytes((const float[2]){0.2f, 1.5f}, 2, bytes);
    assert_true(bytes[0] == 51 && bytes[1] == 255);
}

static void normals_as_colors(void **state)
{
    (void)state;
    float normal[9] = {0, -1, 0.6f, 1, 0, 0, 0.6f, 0.8f, 0}, opacity[3] = {1, 0.4f, 0.5f};
    const struct vkn_picture picture = {
        .width = 3, .height = 1, .opacity = opacity, .normal = normal};
    uint8_t bytes[9];
    float *rgb = render_normal_colors(&picture);
    assert_non_null(rgb);
    render_to_bytes(rgb, 9, bytes);
    free(rgb);
    assert_memory_equal(bytes, ((uint8_t[]){128, 0, 204, 0, 0, 0, 204, 230, 128}), 9);
}

static void depths_as_numbers(void **state)
{
    (void)state;
    const float values[6] = {0, 0.125f, 3e5f, 1, 2, -3};
    struct npy read;
    assert_int_equal(render_write_npy(png, values, 3, 2), VKN_OK);
    assert_int_equal(npy_read(png, &read), VKN_OK);
    assert_int_equal(read.rows, 2);
    assert_int_equal(read.columns, 3);
    for (int i = 0; i < 6; i++)
        assert_true(read.values[i] == (double)values[i]);
    npy_free(&read);
    char *data;
    size_t size;
    assert_int_equal(base_file_read(png, 1000, &data, &size), VKN_OK);
    assert_int_equal(size, 128 + 24); /* values at an offset where NumPy can map them */
    free(data);
    assert_int_equal(render_write_npy("/proc/vknerf/x.npy", values, 3, 2), VKN_BAD_INPUT);
}

/* Brightness grows with the error alone. */
static void errors_are_brighter_the_larger(void **state)
{
    (void)state;
    enum { STEPS = 12 };
    float a[3 * STEPS], b[3 * STEPS];
    for (int i = 0; i < 3 * STEPS; i++) {
        int step = i / 3;
        a[i] = 0.5f;
        b[i] = 0.5f + (i % 2 ? 0.025f : -0.025f) * (float)step;
    }
    b[3 * STEPS - 1] = NAN;
    assert_int_equal(render_write_error(png, a, b, STEPS, 1), VKN_OK);
    uint8_t *rgba = read_back(STEPS, 1);
    double before = -1.0;
    for (int i = 0; i < STEPS; i++) {
        double light = 0.2126 * rgba[4 * i] + 0.7152 * rgba[4 * i + 1] + 0.0722 * rgba[4 * i + 2];
        assert_true(i == STEPS - 1 ? light >= before : light > before);
        before = light;
    }
    assert_true(rgba[0] == 0 && rgba[1] == 0);
    assert_true(before > 200.0);
    free(rgba);
}

/* Matplotlib's inferno maps the mean over channels, from zero to a quarter of white, and is clamped
 * there. */
static void errors_of_known_size(void **state)
{
    (void)state;
    static const struct {
        float difference[3];
        double inferno[3];
    } cases[] = {
        {{0, 0, 0}, {0.001, 0.000, 0.014}},
        {{0.0625f, -0.0625f, 0.0625f}, {0.342, 0.062, 0.429}},
        {{0, -0.375f, 0}, {0.736, 0.216, 0.330}},
        {{0.5f, 0, 0.0625f}, {0.978, 0.557, 0.035}},
        {{-0.25f, -0.25f, -0.25f}, {0.988, 0.998, 0.645}},
        {{0.3f, 0.3f, 0.3f}, {0.988, 0.998, 0.645}},
        {{1, 1, 1}, {0.988, 0.998, 0.645}},
    };
    enum { COUNT = sizeof(cases) / sizeof(cases[0]) };
    float a[3 * COUNT], b[3 * COUNT];
    for (int i = 0; i < 3 * COUNT; i++) {
        float difference = cases[i / 3].difference[i % 3];
        a[i] = difference > 0 ? difference : 0;
        b[i] = difference > 0 ? 0 : -difference;
    }
    assert_int_equal(render_write_error(png, a, b, COUNT, 1), VKN_OK);
    uint8_t *rgba = read_back(COUNT, 1);
    for (int i = 0; i < COUNT; i++)
        for (int c = 0; c < 3; c++)
            NEAR(rgba[4 * i + c], 255 * cases[i].inferno[c], 2.6);
    free(rgba);
}

static void names_the_file_that_fails(void **state)
{
    (void)state;
    const float rgb[3] = {0.5f};
    assert_int_equal(render_write_color("/proc/vknerf/x.png", rgb, 1, 1), VKN_BAD_INPUT);
    assert_non_null(strstr(vkn_last_error(), "/proc/vknerf/x.png"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_of_a_split),
        cmocka_unit_test(views_of_another_size),
        cmocka_unit_test(panoramas_of_views),
        cmocka_unit_test(normals_as_colors),
        cmocka_unit_test(depths_as_numbers),
        cmocka_unit_test(writes_rounded_and_clamped),
        cmocka_unit_test(errors_are_brighter_the_larger),
        cmocka_unit_test(errors_of_known_size),
        cmocka_unit_test(names_the_file_that_fails),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
