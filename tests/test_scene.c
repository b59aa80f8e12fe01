/* Tests scenes in every dialect of transforms.json: cameras, splits, training space, refused files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include <vknerf/context.h>

#include "scenes.h"

/* Poses as JSON: at the origin looking down -z, and the same 4 units up the z axis. */
#define HERE              "[[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]]"
#define ABOVE             "[[1,0,0,0],[0,1,0,0],[0,0,1,4],[0,0,0,1]]"
#define FRAME(path, more) "{\"file_path\":\"" path "\"," more "\"transform_matrix\":" ABOVE "}"

static void assert_close(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-5 * fmax(1, fabs(wanted))))
        fail_msg("%.9g is not %.9g", value, wanted);
}

static struct vkn_scene *open_scene(const char *path, uint32_t downscale)
{
    struct vkn_scene *scene = NULL;
    struct scene_options options = {.path = path, .downscale = downscale};
    assert_ok(scene_open(&options, &scene));
    return scene;
}

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

/* ---- Blender ------------------------------------------------------------------------------- */

static void make_blender(struct temporary *folder)
{
    temporary_text(folder, "transforms_train.json",
                   "{\"camera_angle_x\": 0.8, \"frames\": [" FRAME(
                       "./train/r_0", "\"rotation\": 0.1,") "," FRAME("./train/r_1", "") "]}");
    temporary_text(folder, "transforms_test.json",
                   "{\"camera_angle_x\": 0.4, \"frames\": [" FRAME("./test/r_0", "") "]}");
    temporary_picture(folder, "train/r_0.png", 10, 8, 1);
    temporary_picture(folder, "train/r_1.png", 10, 8, 2);
    temporary_picture(folder, "test/r_0.png", 10, 8, 3);
}

static void test_blender(void **state)
{
    struct temporary *folder = *state;
    make_blender(folder);
    /* Files beside the images and other JSON files are ignored. */
    temporary_picture(folder, "test/r_0_depth_0001.png", 3, 3, 9);
    temporary_picture(folder, "test/r_0_normal_0001.png", 3, 3, 9);
    temporary_text(folder, "transforms_all.json", "not JSON");
    temporary_text(folder, "transforms.json", "not JSON");

    struct vkn_scene *scene = open_scene(folder->path, 0);
    assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, 2);
    assert_int_equal(scene->splits[SCENE_VAL].camera_count, 0);
    assert_int_equal(scene->splits[SCENE_TEST].camera_count, 1);
    assert_close(scene->scale, 0.33);
    assert_close(scene->offset[1], 0.5);
    assert_int_equal(scene->aabb_scale, 1);
    assert_int_equal(scene->downscale, 1);
    assert_false(scene->dynamic);
    assert_string_equal(scene->path, folder->path);

    const struct scene_camera *camera = &scene->splits[SCENE_TRAIN].cameras[1];
    assert_true(ends_with(camera->image_path, "/train/r_1.png"));
    assert_int_equal(camera->first_pixel, 80);
    assert_int_equal(scene->splits[SCENE_TRAIN].pixel_count, 160);
    assert_close(camera->focal_x, 5 / tan(0.4));
    assert_close(camera->focal_y, 5 / tan(0.4));
    assert_close(camera->center_x, 5);
    assert_close(camera->center_y, 4);
    assert_close(camera->pose[11], 4 * 0.33 + 0.5);
    assert_close(camera->pose[3], 0.5);
    assert_close(camera->pose[0], 1);
    assert_close(scene->splits[SCENE_TEST].cameras[0].focal_x, 5 / tan(0.2));
    scene_close(&scene);
    assert_null(scene);
    scene_close(&scene);
}

/* The training file's path opens the whole folder. */
static void test_blender_by_file(void **state)
{
    struct temporary *folder = *state;
    make_blender(folder);
    char *path = base_path_join(folder->path, "transforms_train.json");
    struct vkn_scene *scene = open_scene(path, 2);
    assert_int_equal(scene->splits[SCENE_TEST].camera_count, 1);
    assert_close(scene->splits[SCENE_TRAIN].cameras[0].focal_x, 2.5 / tan(0.4));
    assert_int_equal(scene->splits[SCENE_TRAIN].pixel_count, 40);
    scene_close(&scene);
    free(path);
}

/* Times make a scene dynamic; intrinsics of a frame override the file's, as in D-NeRF captures. */
static void test_times_and_frame_intrinsics(void **state)
{
    struct temporary *folder = *state;
    temporary_text(folder, "transforms_train.json",
                   "{\"camera_angle_x\": 0.8, \"frames\": [" FRAME("a", "\"time\": 0.0,") "," FRAME(
                       "b", "\"time\": 0.25, \"fl_x\": 30, \"fl_y\": 31, \"cx\": 9, \"cy\": 7,"
                            "\"w\": 20, \"h\": 16,") "]}");
    temporary_picture(folder, "a.png", 10, 8, 0);
    temporary_picture(folder, "b.png", 10, 8, 0);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    const struct scene_camera *cameras = scene->splits[SCENE_TRAIN].cameras;
    assert_true(scene->dynamic);
    assert_close(cameras[1].time, 0.25);
    assert_close(cameras[0].focal_x, 5 / tan(0.4));
    assert_close(cameras[1].focal_x, 15); /* given for an image of twice the size */
    assert_close(cameras[1].focal_y, 15.5);
    assert_close(cameras[1].center_x, 4.5);
    assert_close(cameras[1].center_y, 3.5);
    scene_close(&scene);
}

/* ---- instant-ngp --------------------------------------------------------------------------- */

static void test_ngp(void **state)
{
    struct temporary *folder = *state;
    temporary_text(
        folder, "transforms.json",
        "{\"camera_angle_x\": 0.8, \"camera_angle_y\": 0.7, \"fl_x\": 50.5, \"fl_y\": 49.5,"
        "\"cx\": 10.5, \"cy\": 7.5, \"w\": 20.0, \"h\": 16.0, \"k1\": 0.1, \"k2\": -0.2,"
        "\"p1\": 0.01, \"p2\": -0.02, \"aabb_scale\": 4, \"scale\": 0.25,"
        "\"offset\": [0.1, 0.2, 0.3], \"frames\": [" FRAME("images/b.jpg", "") "," FRAME(
            "images/a.png", "\"sharpness\": 20.5,") "]}");
    temporary_picture(folder, "images/a.png", 20, 16, 0);
    /* The format of an image comes from its content, not its name. */
    temporary_picture(folder, "images/b.jpg", 20, 16, 0);
    struct vkn_scene *scene = open_scene(folder->path, 4);
    assert_close(scene->scale, 0.25);
    assert_close(scene->offset[0], 0.1);
    assert_close(scene->offset[2], 0.3);
    assert_int_equal(scene->aabb_scale, 4);
    assert_int_equal(scene->splits[SCENE_TEST].camera_count, 1);
    assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, 1);
    assert_true(ends_with(scene->splits[SCENE_TEST].cameras[0].image_path, "a.png"));
    const struct scene_camera *camera = &scene->splits[SCENE_TRAIN].cameras[0];
    assert_int_equal(camera->width, 5);
    assert_int_equal(camera->height, 4);
    assert_close(camera->focal_x, 50.5 / 4);
    assert_close(camera->focal_y, 49.5 / 4);
    assert_close(camera->center_x, 10.5 / 4);
    assert_close(camera->center_y, 7.5 / 4);
    assert_close(camera->k1, 0.1);
    assert_close(camera->k2, -0.2);
    assert_close(camera->p1, 0.01);
    assert_close(camera->p2, -0.02);
    assert_close(camera->pose[11], 4 * 0.25 + 0.3);
    scene_close(&scene);
}

static void test_one_focal_length(void **state)
{
    struct temporary *folder = *state;
    static const char *const lenses[] = {"\"camera_angle_y\": 0.5,", "\"fl_y\": 33,",
                                         "\"fl_x\": 33, \"offset\": 0.25,"};
    const double wanted[] = {8 / tan(0.25), 33, 33}, offsets[] = {0.5, 0.5, 0.25};
    temporary_picture(folder, "a.png", 20, 16, 0);
    for (size_t i = 0; i < BASE_COUNT(lenses); i++) {
        char *text = base_format("{%s \"frames\": [" FRAME("a.png", "") "]}", lenses[i]);
        temporary_text(folder, "transforms.json", text);
        struct vkn_scene *scene = open_scene(folder->path, 1);
        assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, 1);
        assert_close(scene->splits[SCENE_TRAIN].cameras[0].focal_x, wanted[i]);
        assert_close(scene->splits[SCENE_TRAIN].cameras[0].focal_y, wanted[i]);
        assert_close(scene->offset[2], offsets[i]);
        assert_close(scene->scale, 0.33);
        assert_int_equal(scene->aabb_scale, 1);
        scene_close(&scene);
        free(text);
    }
}

/* If frames have a sharpness, missing images are skipped, unless all are missing. */
static void test_ngp_deleted_images(void **state)
{
    struct temporary *folder = *state;
    temporary_text(folder, "transforms.json",
                   "{\"fl_x\": 30, \"frames\": [" FRAME("a.png", "\"sharpness\": 1,") "," FRAME(
                       "b.png", "\"sharpness\": 1,") "," FRAME("c.png", "\"sharpness\": 1,") "]}");
    struct scene_options options = {.path = folder->path};
    assert_open_fails(&options, "transforms.json: frames: not one of the 3 images exists");
    temporary_picture(folder, "a.png", 4, 4, 0);
    temporary_picture(folder, "c.png", 4, 4, 0);
    base_log_threshold(BASE_LOG_NOTHING);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    base_log_threshold(BASE_LOG_INFO);
    assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, 1);
    assert_true(ends_with(scene->splits[SCENE_TRAIN].cameras[0].image_path, "c.png"));
    scene_close(&scene);
}

/* Every 8th view is held out, in the order of paths, not of the file. */
static void test_hold_out(void **state)
{
    struct temporary *folder = *state;
    struct base_text text = {0};
    base_text_add(&text, "{\"fl_x\": 30, \"frames\": [");
    for (int i = 19; i >= 0; i--) {
        char name[32];
        snprintf(name, sizeof(name), "i/%02d.png", i);
        temporary_picture(folder, name, 4, 4, (uint8_t)i);
        base_text_add(&text, "{\"file_path\":\"%s\",\"transform_matrix\":" HERE "}%s", name,
                      i > 0 ? "," : "]}");
    }
    temporary_text(folder, "transforms.json", text.data);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    assert_int_equal(scene->splits[SCENE_TEST].camera_count, 3);
    assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, 17);
    assert_true(ends_with(scene->splits[SCENE_TEST].cameras[0].image_path, "/00.png"));
    assert_true(ends_with(scene->splits[SCENE_TEST].cameras[1].image_path, "/08.png"));
    assert_true(ends_with(scene->splits[SCENE_TEST].cameras[2].image_path, "/16.png"));
    assert_true(ends_with(scene->splits[SCENE_TRAIN].cameras[0].image_path, "/01.png"));
    assert_true(ends_with(scene->splits[SCENE_TRAIN].cameras[16].image_path, "/19.png"));

    assert_ok(scene_load(scene, SCENE_TEST, NULL, NULL));
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(scene->splits[SCENE_TEST].pixels[16 * i], 255u << 24 | 8 * i << 16);
    scene_close(&scene);
    free(text.data);
}

/* ---- nerfstudio ---------------------------------------------------------------------------- */

#define STUDIO                                                                                \
    "\"camera_model\": \"OPENCV\", \"w\": 4, \"h\": 4, \"fl_x\": 4, \"fl_y\": 4, \"cx\": 2, " \
    "\"cy\": 2, \"k1\": 0.1, \"k2\": 0, \"p1\": 0, \"p2\": 0, \"k3\": 0, "

static void test_nerfstudio_lists(void **state)
{
    struct temporary *folder = *state;
    temporary_text(folder, "transforms.json",
                   "{" STUDIO "\"applied_transform\": [[1,0,0,0],[0,0,1,0],[0,-1,0,0]],"
                   "\"train_filenames\": [\"images/d.png\", \"images/a.png\"],"
                   "\"val_filenames\": [\"images/b.png\"], \"test_filenames\": [\"images/b.png\"],"
                   "\"frames\": [" FRAME("./images/a.png", "\"colmap_im_id\": 4,") "," FRAME(
                       "images/b.png",
                       "\"mask_path\": \"m.png\", \"fl_x\": 8, \"k1\": "
                       "-0.1,") "," FRAME("images/c.png", "") "," FRAME("images/d.png", "") "]}");
    temporary_picture(folder, "images/a.png", 4, 4, 0); /* no list names c, so it may be missing */
    temporary_picture(folder, "images/b.png", 4, 4, 0);
    temporary_picture(folder, "images/d.png", 4, 4, 0);
    temporary_picture(folder, "m.png", 4, 4, 0);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    assert_true(ends_with(scene->splits[SCENE_TEST].cameras[0].mask_path, "/m.png"));
    assert_null(scene->splits[SCENE_TRAIN].cameras[0].mask_path);
    assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, 2);
    assert_int_equal(scene->splits[SCENE_VAL].camera_count, 1);
    assert_int_equal(scene->splits[SCENE_TEST].camera_count, 1);
    assert_true(ends_with(scene->splits[SCENE_TRAIN].cameras[1].image_path, "d.png"));
    assert_close(scene->splits[SCENE_TRAIN].cameras[0].k1, 0.1);
    assert_close(scene->splits[SCENE_TEST].cameras[0].k1, -0.1);
    assert_close(scene->splits[SCENE_TEST].cameras[0].focal_x, 8);
    assert_close(scene->splits[SCENE_TEST].cameras[0].focal_y, 4);
    scene_close(&scene);
}

/* Opens a scene and checks how many views each split has. */
static struct vkn_scene *open_with(const char *path, enum vkn_test_views test_views, size_t train,
                                   size_t val, size_t test)
{
    const struct scene_options options = {.path = path, .test_views = test_views};
    struct vkn_scene *scene = NULL;
    assert_ok(scene_open(&options, &scene));
    assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, train);
    assert_int_equal(scene->splits[SCENE_VAL].camera_count, val);
    assert_int_equal(scene->splits[SCENE_TEST].camera_count, test);
    return scene;
}

/* All frames of several files or of a file with lists become training views, or are split anew, in
 * the order of their paths. Cameras know their frame. */
static void test_test_views(void **state)
{
    struct temporary *folder = *state;
    static const char *const paths[] = {"a.png", "b.png", "c.png", "d.png", "e.png"};
    for (size_t i = 0; i < BASE_COUNT(paths); i++)
        temporary_picture(folder, paths[i], 4, 4, 0);
    temporary_text(
        folder, "transforms.json",
        "{" STUDIO "\"train_filenames\": [\"d.png\", \"b.png\"],"
        "\"test_filenames\": [\"a.png\", \"c.png\"], \"frames\": [" FRAME("d.png", "") "," FRAME(
            "c.png", "") "," FRAME("b.png", "") "," FRAME("a.png", "") "]}");
    struct vkn_scene *scene = open_with(folder->path, VKN_TEST_VIEWS_FILES, 2, 0, 2);
    scene_close(&scene);
    scene = open_with(folder->path, VKN_TEST_VIEWS_NONE, 4, 0, 0);
    for (size_t i = 0; i < 4; i++) {
        assert_true(ends_with(scene->splits[SCENE_TRAIN].cameras[i].image_path, paths[i]));
        assert_int_equal(scene->splits[SCENE_TRAIN].cameras[i].frame, 3 - i);
        assert_int_equal(scene->splits[SCENE_TRAIN].cameras[i].file, SCENE_TRAIN);
    }
    scene_close(&scene);
    scene = open_with(folder->path, VKN_TEST_VIEWS_EIGHTH, 3, 0, 1);
    assert_true(ends_with(scene->splits[SCENE_TEST].cameras[0].image_path, "a.png"));
    scene_close(&scene);

#define FILE_OF(frames) "{\"camera_angle_x\": 0.7, \"frames\": [" frames "]}"
    temporary_text(folder, "transforms_train.json", FILE_OF(FRAME("e", "") "," FRAME("b", "")));
    temporary_text(folder, "transforms_val.json", FILE_OF(FRAME("c", "")));
    temporary_text(folder, "transforms_test.json", FILE_OF(FRAME("d", "") "," FRAME("a", "")));
    scene = open_with(folder->path, VKN_TEST_VIEWS_DEFAULT, 2, 1, 2);
    assert_int_equal(scene->splits[SCENE_TEST].cameras[1].file, SCENE_TEST);
    assert_int_equal(scene->splits[SCENE_TEST].cameras[1].frame, 1);
    scene_close(&scene);
    scene = open_with(folder->path, VKN_TEST_VIEWS_NONE, 5, 0, 0);
    static const struct {
        uint32_t file, frame;
    } origins[] = {{SCENE_TEST, 1}, {SCENE_TRAIN, 1}, {SCENE_VAL, 0}, {SCENE_TEST, 0}, {0, 0}};
    for (size_t i = 0; i < 5; i++) {
        assert_true(ends_with(scene->splits[SCENE_TRAIN].cameras[i].image_path, paths[i]));
        assert_int_equal(scene->splits[SCENE_TRAIN].cameras[i].file, origins[i].file);
        assert_int_equal(scene->splits[SCENE_TRAIN].cameras[i].frame, origins[i].frame);
    }
    scene_close(&scene);
    scene = open_with(folder->path, VKN_TEST_VIEWS_EIGHTH, 4, 0, 1);
    scene_close(&scene);
}

/* Panoramas: in nerfstudio's format, where whole ones have half the width and all the height as
 * focal lengths; without a focal length; in instant-ngp's format, with any focal length; of single
 * frames. */
static void test_panoramas(void **state)
{
    struct temporary *folder = *state;
#define PANORAMA "\"camera_model\": \"EQUIRECTANGULAR\", "
    static const char *const tops[] = {
        PANORAMA
        "\"fl_x\": 8, \"fl_y\": 8, \"cx\": 8, \"cy\": 4, \"k1\": 0, \"is_fisheye\": false, ",
        PANORAMA,
        PANORAMA "\"camera_angle_x\": 1.5707963, ",
        "\"latlong\": true, \"fl_x\": 3, \"cx\": 5, ",
    };
    temporary_picture(folder, "a.png", 16, 8, 0);
    temporary_picture(folder, "b.png", 16, 8, 0);
    for (size_t i = 0; i < BASE_COUNT(tops); i++) {
        char *text = base_format("{%s\"aabb_scale\": 4, \"train_filenames\": [\"a\", \"b\"], "
                                 "\"frames\": [" FRAME("a", "") "," FRAME(
                                     "b", "\"camera_model\": \"PINHOLE\", \"fl_x\": 5, ") "]}",
                                 tops[i]);
        temporary_text(folder, "transforms.json", text);
        free(text);
        for (uint32_t downscale = 1; downscale <= 2; downscale++) {
            struct vkn_scene *scene = open_scene(folder->path, downscale);
            const struct scene_camera *cameras = scene->splits[SCENE_TRAIN].cameras;
            assert_int_equal(cameras[0].lens, VKN_LENS_EQUIRECTANGULAR);
            assert_close(cameras[0].focal_x * downscale, 16 / (2 * M_PI));
            assert_close(cameras[0].focal_y * downscale, 8 / M_PI);
            assert_close(cameras[0].center_x * downscale, 8);
            assert_close(cameras[0].center_y * downscale, 4);
            if (i < 3)
                assert_int_equal(cameras[1].lens, VKN_LENS_PERSPECTIVE);
            scene_close(&scene);
        }
    }
    /* A partial panorama, whose extent follows from the focal length: nerfstudio's 20 means 20 / pi
     * pixels per radian. */
    temporary_text(
        folder, "transforms.json",
        "{\"camera_model\": \"EQUIRECTANGULAR\", \"fl_x\": 20, \"cx\": 3, \"aabb_scale\": 4, "
        "\"frames\": [" FRAME("a", "") "," FRAME("b", "") "]}");
    struct vkn_scene *scene = open_scene(folder->path, 1);
    const struct scene_camera *camera = &scene->splits[SCENE_TRAIN].cameras[0];
    assert_close(camera->focal_x, 20 / M_PI);
    assert_close(camera->focal_y, 20 / M_PI);
    assert_close(camera->center_x, 3);
    scene_close(&scene);
}

/* The lens type at the top of the file and in single frames, in both spellings. */
static void test_fisheye(void **state)
{
    struct temporary *folder = *state;
    temporary_text(
        folder, "transforms.json",
        "{\"camera_model\": \"OPENCV_FISHEYE\", \"w\": 4, \"h\": 4, \"fl_x\": 2, "
        "\"k1\": 0.1, \"k2\": 0.02, \"k3\": 0.003, \"k4\": 0.0004, \"p1\": 0, "
        "\"train_filenames\": [\"a\", \"b\", \"c\", \"d\"], \"frames\": [" FRAME("a", "") "," FRAME(
            "b", "\"k1\": -0.1, \"k4\": 0,") "," FRAME("c",
                                                       "\"camera_model\": \"OPENCV\", \"k4\": 0, "
                                                       "\"p2\": 0.01,") "," FRAME("d",
                                                                                  "\"is_fisheye\": "
                                                                                  "false, \"k4\": "
                                                                                  "0,") "]}");
    for (size_t i = 0; i < 4; i++)
        temporary_picture(folder, ((const char *[]){"a.png", "b.png", "c.png", "d.png"})[i], 4, 4,
                          0);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    const struct scene_camera *cameras = scene->splits[SCENE_TRAIN].cameras;
    assert_int_equal(cameras[0].lens, VKN_LENS_FISHEYE);
    assert_close(cameras[0].k2, 0.02);
    assert_close(cameras[0].k3, 0.003);
    assert_close(cameras[0].k4, 0.0004);
    assert_int_equal(cameras[1].lens, VKN_LENS_FISHEYE);
    assert_close(cameras[1].k1, -0.1);
    assert_close(cameras[1].k4, 0);
    assert_int_equal(cameras[2].lens, VKN_LENS_PERSPECTIVE);
    assert_close(cameras[2].k3, 0.003);
    assert_close(cameras[2].p2, 0.01);
    assert_int_equal(cameras[3].lens, VKN_LENS_PERSPECTIVE);
    scene_close(&scene);
    temporary_text(folder, "transforms.json",
                   "{\"is_fisheye\": true, \"fl_x\": 2, \"k1\": 0.1, \"k4\": 0.01, "
                   "\"aabb_scale\": 2, \"frames\": [" FRAME("a", "") "," FRAME("b", "") "]}");
    scene = open_scene(folder->path, 1);
    assert_int_equal(scene->splits[SCENE_TRAIN].cameras[0].lens, VKN_LENS_FISHEYE);
    assert_close(scene->splits[SCENE_TRAIN].cameras[0].k4, 0.01);
    scene_close(&scene);
}

static void test_nerfstudio_without_train_list(void **state)
{
    struct temporary *folder = *state;
    temporary_text(folder, "transforms.json",
                   "{" STUDIO "\"test_filenames\": [\"b.png\"], \"frames\": [" FRAME(
                       "a.png", "") "," FRAME("b.png", "") "," FRAME("c.png", "") "]}");
    for (char name[] = "a.png"; name[0] <= 'c'; name[0]++)
        temporary_picture(folder, name, 4, 4, 0);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, 2);
    assert_int_equal(scene->splits[SCENE_TEST].camera_count, 1);
    scene_close(&scene);
}

/* Four cameras on a ring of radius 10 around (5, 6, 7) that look at it; the space is automatic. */
static void make_ring(struct temporary *folder, const char *more)
{
    struct base_text text = {0};
    base_text_add(&text, "{" STUDIO "%s \"frames\": [", more);
    for (int i = 0; i < 4; i++) {
        double c = (i % 2 == 0) ? 1 - i : 0, s = (i % 2 == 1) ? 2 - i : 0;
        char name[32];
        snprintf(name, sizeof(name), "%d.png", i);
        temporary_picture(folder, name, 4, 4, 0);
        base_text_add(&text,
                      "{\"file_path\":\"%s\",\"transform_matrix\":[[%g,0,%g,%g],[%g,0,%g,%g],"
                      "[0,1,0,7],[0,0,0,1]]}%s",
                      name, -s, c, 5 + 10 * c, c, s, 6 + 10 * s, i < 3 ? "," : "]}");
    }
    temporary_text(folder, "transforms.json", text.data);
    free(text.data);
}

static void test_automatic_space(void **state)
{
    struct temporary *folder = *state;
    make_ring(folder, "");
    struct vkn_scene *scene = open_scene(folder->path, 1);
    assert_close(scene->scale, 0.132);
    assert_int_equal(scene->aabb_scale, 16);
    /* The focus point is in the centre. */
    assert_close(5 * scene->scale + scene->offset[0], 0.5);
    assert_close(6 * scene->scale + scene->offset[1], 0.5);
    assert_close(7 * scene->scale + scene->offset[2], 0.5);
    assert_close(scene->splits[SCENE_TEST].cameras[0].pose[3], 0.5 + 1.32);
    scene_close(&scene);

    /* A scale from the user keeps it there. */
    struct scene_options options = {.path = folder->path, .scale = 0.5F, .aabb_scale = 2};
    assert_ok(scene_open(&options, &scene));
    assert_close(scene->scale, 0.5);
    assert_close(5 * 0.5 + scene->offset[0], 0.5);
    assert_int_equal(scene->aabb_scale, 2);
    scene_close(&scene);

    /* With a scale in the file the space is instant-ngp's. */
    make_ring(folder, "\"aabb_scale\": 8,");
    scene = open_scene(folder->path, 1);
    assert_close(scene->scale, 0.33);
    assert_close(scene->offset[0], 0.5);
    assert_int_equal(scene->aabb_scale, 8);
    scene_close(&scene);
}

/* Parallel views have no focus point: the cameras themselves are centred. */
static void test_automatic_space_forward(void **state)
{
    struct temporary *folder = *state;
    temporary_text(folder, "transforms.json",
                   "{" STUDIO "\"train_filenames\": [\"a.png\", \"b.png\"], \"frames\": ["
                   "{\"file_path\": \"a.png\", \"transform_matrix\": " HERE "},"
                   "{\"file_path\": \"b.png\", \"transform_matrix\": "
                   "[[1,0,0,8],[0,1,0,0],[0,0,1,0]]}]}");
    temporary_picture(folder, "a.png", 4, 4, 0);
    temporary_picture(folder, "b.png", 4, 4, 0);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    assert_close(scene->scale, 0.33 / 4);
    assert_close(scene->splits[SCENE_TRAIN].cameras[0].pose[3], 0.5 - 0.33);
    assert_close(scene->splits[SCENE_TRAIN].cameras[1].pose[3], 0.5 + 0.33);
    scene_close(&scene);
}

/* ---- poses --------------------------------------------------------------------------------- */

/* A rotation with a uniform scale and small errors becomes a rotation; the position stays. */
static void test_pose_is_orthonormal(void **state)
{
    struct temporary *folder = *state;
    temporary_text(
        folder, "transforms.json",
        "{\"fl_x\": 4, \"scale\": 1, \"offset\": 0, \"frames\": [{\"file_path\": \"a\","
        "\"transform_matrix\": [[0, -2.001, 0.002, 3], [2, 0.003, 0, 4], [0, 0, 2, 5]]}]}");
    temporary_picture(folder, "a.png", 4, 4, 0);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    const float *pose = scene->splits[SCENE_TRAIN].cameras[0].pose;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            double dot = 0;
            for (int k = 0; k < 3; k++)
                dot += (double)pose[4 * k + i] * pose[4 * k + j];
            assert_true(fabs(dot - (i == j)) < 1e-6);
        }
        assert_close(pose[4 * i + 3], 3.0 + i);
    }
    assert_true(fabsf(pose[1] + 1) < 1e-3F && fabsf(pose[4] - 1) < 1e-3F);
    scene_close(&scene);
}

/* Checks a pose with `shear` and with a first row longer by `longer`. If it is accepted, the result
 * is turned back by half of the shear. */
static void check_skew(struct temporary *folder, double shear, double longer, bool accepted)
{
    struct scene_options options = {.path = folder->path};
    char *text =
        base_format("{\"fl_x\": 4, \"scale\": 1, \"offset\": 0, \"frames\": [{\"file_path\": "
                    "\"a\", \"transform_matrix\": [[%g,%g,0,3],[0,1,0,4],[0,0,1,5]]}]}",
                    1 + longer, shear);
    char *path = base_path_join(folder->path, "transforms.json");
    assert_ok(base_file_replace(path, text, strlen(text)));
    free(path);
    free(text);
    if (!accepted) {
        assert_open_fails(&options,
                          "transform_matrix: the rotation part is not a rotation (axes skewed");
        return;
    }
    struct vkn_scene *scene = open_scene(folder->path, 1);
    const float *pose = scene->splits[SCENE_TRAIN].cameras[0].pose;
    const double angle = atan(0.5 * shear);
    assert_close(pose[0], cos(angle));
    assert_close(pose[1], sin(angle));
    assert_close(pose[4], -sin(angle));
    assert_close(pose[10], 1);
    scene_close(&scene);
}

/* Products of axes, scaled to volume 1, may be off by 0.02: 1.1 degrees between two axes, or four
 * thirds of an axis's excess length. The nearest rotation is used. */
static void test_pose_tolerance(void **state)
{
    struct temporary *folder = *state;
    temporary_picture(folder, "a.png", 4, 4, 0);
    check_skew(folder, 0.0195, 0, true);
    check_skew(folder, -0.0195, 0, true);
    check_skew(folder, 0.0205, 0, false);
    check_skew(folder, -0.0205, 0, false);
    check_skew(folder, 0, 0.0145, true);
    check_skew(folder, 0, 0.0155, false);
    check_skew(folder, 0, -0.0145, true);
    check_skew(folder, 0, -0.0155, false);
}

/* ---- refused files ------------------------------------------------------------------------- */

static void check_refused(struct temporary *folder, const char *text, const char *message)
{
    char *path = base_path_join(folder->path, "transforms.json");
    assert_ok(base_file_replace(path, text, strlen(text)));
    free(path);
    struct scene_options options = {.path = folder->path};
    assert_open_fails(&options, message);
    /* The message begins with the file. */
    assert_int_equal(strncmp(vkn_last_error(), folder->path, strlen(folder->path)), 0);
}

#define WITH(top, frame) "{" top "\"frames\": [" frame "]}"
#define MATRIX(rows)     "{\"file_path\":\"a\",\"transform_matrix\":" rows "}"

/* ---- keys of every dialect ----------------------------------------------------------------- */

/* Returns the first camera of a file with these keys at the top and in its frame; the image has
 * 20x16 pixels. */
static struct scene_camera first_camera(struct temporary *folder, const char *top,
                                        const char *frame)
{
    char *text = base_format("{%s \"frames\": [{\"file_path\": \"a.png\", %s}]}", top, frame);
    char *path = base_path_join(folder->path, "transforms.json");
    assert_ok(base_file_replace(path, text, strlen(text)));
    struct vkn_scene *scene = open_scene(folder->path, 1);
    struct scene_camera camera = scene->splits[SCENE_TRAIN].cameras[0];
    scene_close(&scene);
    free(path);
    free(text);
    return camera;
}

static void check_focal(struct temporary *folder, const char *top, const char *frame, double x,
                        double y)
{
    struct scene_camera camera = first_camera(folder, top, frame);
    assert_close(camera.focal_x, x);
    assert_close(camera.focal_y, y);
}

/* x_fov is in degrees and overrides fl_x and camera_angle_x, as in instant-ngp; a frame's keys
 * override the file's. */
static void test_fields_of_view(void **state)
{
    struct temporary *folder = *state;
    const double degree = acos(-1) / 180;
    const double x = 10 / tan(20 * degree), y = 8 / tan(15 * degree), wide = 10 / tan(40 * degree);
    temporary_picture(folder, "a.png", 20, 16, 0);
#define POSE "\"transform_matrix\":" ABOVE
    check_focal(folder, "\"x_fov\": 40,", POSE, x, x);
    check_focal(folder, "\"y_fov\": 30,", POSE, y, y);
    check_focal(folder, "\"x_fov\": 40, \"y_fov\": 30,", POSE, x, y);
    check_focal(folder, "\"x_fov\": 40, \"fl_x\": 99, \"camera_angle_x\": 1,", POSE, x, x);
    check_focal(folder, "\"fl_x\": 99, \"fl_y\": 98,", "\"x_fov\": 40, " POSE, x, x);
    check_focal(folder, "\"x_fov\": 40, \"fl_y\": 50,", POSE, x, 50);
    check_focal(folder, "\"x_fov\": 40,", "\"x_fov\": 80, " POSE, wide, wide);
    check_focal(folder, "\"x_fov\": 40, \"y_fov\": 30,", "\"x_fov\": 80, " POSE, wide, wide);
    check_focal(folder, "\"x_fov\": 40,", "\"fl_x\": 30, \"fl_y\": 31, " POSE, 30, 31);
    /* If w and h differ from the image's size, the angle still spans the whole width. */
    check_focal(folder, "\"x_fov\": 40, \"w\": 40, \"h\": 32,", POSE, x, x);
    check_refused(folder, WITH("\"x_fov\": 180,", FRAME("a", "")),
                  "x_fov: 180 is out of range (0.01 ");
    check_refused(folder, WITH("", FRAME("a", "\"y_fov\": \"40\",")),
                  "frames[0].y_fov: not a number");
}

/* nerfstudio's list holds the single keys in another order, and overrides them. */
static void test_distortion_params(void **state)
{
    struct temporary *folder = *state;
    temporary_picture(folder, "a.png", 20, 16, 0);
    static const char list[] =
        "\"fl_x\": 50, \"k1\": 0.5, \"distortion_params\": [0.01, 0.02, 0.03, 0,"
        "0.001, 0.002],";
    struct scene_camera camera = first_camera(folder, list, POSE);
    assert_close(camera.k1, 0.01);
    assert_close(camera.k2, 0.02);
    assert_close(camera.k3, 0.03);
    assert_close(camera.p1, 0.001);
    assert_close(camera.p2, 0.002);
    camera = first_camera(folder, "\"fl_x\": 50, \"camera_model\": \"OPENCV_FISHEYE\",",
                          "\"distortion_params\": [0.01, 0.02, 0.03, 0.04, 0, 0], " POSE);
    assert_int_equal(camera.lens, VKN_LENS_FISHEYE);
    assert_close(camera.k4, 0.04);
#define REFUSED(list, message)                                                                    \
    check_refused(folder, WITH("\"fl_x\": 50, \"distortion_params\": " list ",", FRAME("a", "")), \
                  message)
    REFUSED("[0, 0, 0, 0.1, 0, 0]", "transforms.json: k4: not supported unless 0 (k1, k2, k3,");
    REFUSED("[0, 0, 0, 0]", "distortion_params: not the 6 numbers k1 k2 k3 k4 p1 p2");
    REFUSED("[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]", "distortion_params: not the 6 numbers");
    REFUSED("[0, 0, \"0\", 0, 0, 0]", "transforms.json: distortion_params[2]: not a number");
#undef REFUSED
}

/* Mitsuba's cameras have x left and z forwards; instant-ngp uses another offset for its scenes. */
static void test_from_mitsuba(void **state)
{
    struct temporary *folder = *state;
    static const char *const tops[] = {"\"fl_x\": 30, \"from_mitsuba\": true,",
                                       "\"fl_x\": 30, \"normal_mts_args\": [],"};
    static const char pose[] = "\"transform_matrix\": [[0,0,1,1],[1,0,0,2],[0,1,0,3],[0,0,0,1]]";
    const double wanted[12] = {0, 0, -1, 1 * 0.66 + 0.165, -1, 0, 0, 2 * 0.66 + 0.165,
                               0, 1, 0,  3 * 0.66 + 0.165};
    temporary_picture(folder, "a.png", 20, 16, 0);
    for (size_t i = 0; i < BASE_COUNT(tops); i++) {
        struct scene_camera camera = first_camera(folder, tops[i], pose);
        for (int k = 0; k < 12; k++)
            assert_close(camera.pose[k], wanted[k]);
    }
    struct scene_camera camera = first_camera(
        folder, "\"fl_x\": 30, \"from_mitsuba\": true, \"scale\": 0.5, \"offset\": [0, 0, 1],",
        pose);
    assert_close(camera.pose[2], -1);
    assert_close(camera.pose[11], 3 * 0.5 + 1);
    camera = first_camera(folder, "\"fl_x\": 30, \"from_mitsuba\": false, \"normal_mts_args\": [],",
                          pose);
    assert_close(camera.pose[2], 1);
    assert_close(camera.pose[11], 3 * 0.33 + 0.5);
    check_refused(folder, WITH("\"fl_x\": 3, \"from_mitsuba\": 1,", FRAME("a", "")),
                  "transforms.json: from_mitsuba: not true or false");
    temporary_text(folder, "transforms_train.json",
                   WITH("\"fl_x\": 30, \"from_mitsuba\": true,", FRAME("a", "")));
    temporary_text(folder, "transforms_test.json", WITH("\"fl_x\": 30,", FRAME("a", "")));
    struct scene_options options = {.path = folder->path};
    assert_open_fails(&options,
                      "transforms_test.json: from_mitsuba: differs from the training file");
}

/* The unit is the option's, else the file's, else unknown; it changes nothing of the training. */
static void test_unit_length(void **state)
{
    static const struct {
        const char *key;
        double option, expected;
    } cases[] = {{"", 0, 0},
                 {"\"unit_length\": 0.3048,", 0, 0.3048},
                 {"\"unit_length\": 0.3048,", 2, 2},
                 {"", 1e-9, 1e-9}};
    struct temporary *folder = *state;
    struct scene_options options = {.path = folder->path};
    float poses[BASE_COUNT(cases)][12];
    temporary_picture(folder, "a.png", 20, 16, 0);
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        char *text = base_format("{\"camera_angle_x\": 0.8, %s\"frames\": [" FRAME("a", "") "]}",
                                 cases[i].key);
        struct vkn_scene *scene = NULL;
        temporary_text(folder, "transforms.json", text);
        options.unit_length = cases[i].option;
        assert_ok(scene_open(&options, &scene));
        assert_true(scene->unit_length == cases[i].expected);
        memcpy(poses[i], scene->splits[SCENE_TRAIN].cameras[0].pose, sizeof poses[i]);
        assert_memory_equal(poses[i], poses[0], sizeof poses[i]);
        scene_close(&scene);
        free(text);
    }
}

/* instant-ngp maps this box to the unit cube, ignoring scale and offset. */
static void test_box(void **state)
{
    struct temporary *folder = *state;
    temporary_picture(folder, "a.png", 20, 16, 0);
    struct scene_camera camera = first_camera(
        folder, "\"fl_x\": 30, \"scale\": 9, \"offset\": 9, \"aabb\": [[-2, 0, 3], [2, 2, 4]],",
        "\"transform_matrix\": [[1,0,0,2],[0,1,0,0],[0,0,1,4]]");
    assert_close(camera.pose[3], 1);
    assert_close(camera.pose[7], 0.25);
    assert_close(camera.pose[11], 0.625);
    check_refused(folder, WITH("\"fl_x\": 3, \"aabb\": [1, 2],", FRAME("a", "")),
                  "transforms.json: aabb[0]: not 3 numbers");
    check_refused(folder, WITH("\"fl_x\": 3, \"aabb\": [[1, 2, 3], [1, 2, 3]],", FRAME("a", "")),
                  "transforms.json: aabb: a box without extent");
    check_refused(folder, WITH("\"fl_x\": 3, \"aabb\": 4,", FRAME("a", "")),
                  "transforms.json: aabb: not two corners of 3 numbers");
}

/* Without a rolling shutter the whole image shows the beginning of the exposure. */
static void test_exposure(void **state)
{
    struct temporary *folder = *state;
    static const char both[] = "\"transform_matrix\": " HERE ", \"transform_matrix_start\": " ABOVE
                               ", \"transform_matrix_end\": " HERE;
    static const char same[] =
        "\"transform_matrix_start\": " ABOVE ", \"transform_matrix_end\": " ABOVE;
    temporary_picture(folder, "a.png", 20, 16, 0);
    assert_close(first_camera(folder, "\"fl_x\": 30,", both).pose[11], 4 * 0.33 + 0.5);
    assert_close(
        first_camera(folder, "\"fl_x\": 30, \"rolling_shutter\": [0, 0, 0, 0],", both).pose[11],
        4 * 0.33 + 0.5);
    assert_close(
        first_camera(folder, "\"fl_x\": 30, \"rolling_shutter\": [0, 0, 1],", same).pose[11],
        4 * 0.33 + 0.5);
    static const char moves[] = "transforms.json: frames[0].transform_matrix_end: differs from the "
                                "pose at the start: rolling shutters are not supported";
    char *text = base_format("{\"fl_x\": 30, \"rolling_shutter\": [0, 0, 1, 0], \"frames\": [{"
                             "\"file_path\": \"a\", %s}]}",
                             both);
    check_refused(folder, text, moves);
    free(text);
    text = base_format(
        "{\"fl_x\": 30, \"frames\": [{\"rolling_shutter\": [0, 0, 0, 1], \"file_path\": "
        "\"a\", %s}]}",
        both);
    check_refused(folder, text, moves);
    free(text);
}

/* Keys that would change the picture are refused by name, and accepted with a neutral value. */
static void test_refused_keys(void **state)
{
    struct temporary *folder = *state;
    temporary_picture(folder, "a.png", 20, 16, 0);
    static const char *const keys[][2] = {
        {"orthographic", "true"},
        {"orthographic", "1"},
        {"equirectangular", "true"},
        {"ftheta_p3", "0.5"},
        {"sk_x", "0.1"},
        {"omega", "0.9"},
        {"sx1", "0.1"},
        {"white_transparent", "true"},
        {"black_transparent", "true"},
        {"mask_filename", "\"m.png\""},
        {"Mask", "\"m.png\""},
        {"fisheye_crop_radius", "5"},
        {"n_frames", "0"},
        {"latlong", "\"yes\""},
    };
    for (size_t i = 0; i < BASE_COUNT(keys); i++) {
        char *text =
            base_format("{\"fl_x\": 30, \"is_fisheye\": true, \"%s\": %s, \"frames\": [%s]}",
                        keys[i][0], keys[i][1], FRAME("a", ""));
        char *message = base_format("transforms.json: %s: ", keys[i][0]);
        check_refused(folder, text, message);
        free(message);
        free(text);
    }
    check_refused(folder, WITH("\"fl_x\": 30,", FRAME("a", "\"mask_filename\": \"m.png\",")),
                  "transforms.json: frames[0].mask_filename: not read: masks are given by the "
                  "mask_path of each frame, bright at used pixels");
    check_refused(
        folder, WITH("\"fl_x\": 30,", FRAME("a", "\"orthographic\": true,")),
        "transforms.json: frames[0].orthographic: orthographic cameras are not supported");
    check_focal(folder,
                "\"fl_x\": 30, \"orthographic\": false, \"ftheta_p0\": 0, \"sk_x\": 0.0, "
                "\"latlong\": false,"
                "\"mask\": null, \"masks\": \"\", \"mask_color\": \"white\", "
                "\"white_transparent\": false, \"n_frames\": 1,"
                "\"fisheye_crop_radius\": 1,",
                POSE, 30, 30);
    /* A radius that reaches the corners hides nothing. */
    check_focal(
        folder,
        "\"fl_x\": 30, \"is_fisheye\": true, \"w\": 20, \"h\": 16, \"fisheye_crop_radius\": 13,",
        POSE, 30, 30);
    check_focal(folder, "\"fl_x\": 30,", "\"mask_path\": \"\", " POSE, 30, 30);
    /* ScanNet++'s has_mask false means that masks of frames are not used. */
    check_focal(folder, "\"fl_x\": 30, \"has_mask\": false,", "\"mask_path\": \"none.png\", " POSE,
                30, 30);
}

struct lines {
    char text[1024]; /* the last line */
    size_t count;
};

static void store_line(void *user, enum vkn_log_level level, const char *text)
{
    struct lines *lines = user;
    lines->count++;
    assert_int_equal(level, VKN_LOG_WARNING);
    snprintf(lines->text, sizeof(lines->text), "%s", text);
}

/* Training warns once for all files, and names the first eight keys. */
static void test_warned_keys(void **state)
{
    struct temporary *folder = *state;
    struct lines lines = {0};
    temporary_picture(folder, "a.png", 20, 16, 0);
    temporary_text(folder, "transforms_train.json",
                   WITH("\"fl_x\": 30, \"sharpen\": 1,", FRAME("a", "\"Time\": 1, \"one\": 1,")));
    temporary_text(folder, "transforms_test.json",
                   WITH("\"fl_x\": 30, \"one\": 1, \"two\": 2, \"k10\": 3, \"a\": 4, \"b\": 5,"
                        "\"c\": 6, \"d\": 7, \"e\": 8, \"f\": 9,",
                        FRAME("a", "\"rotation\": 1,")));
    vkn_log_to(store_line, &lines);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    vkn_log_to(NULL, NULL);
    scene_close(&scene);
    assert_int_equal(lines.count, 1);
    assert_non_null(strstr(
        lines.text, "/transforms_train.json: keys that are not read: sharpen (the images "
                    "are not sharpened), Time (unknown; did you mean time?), one (unknown), "
                    "two (unknown), k10 (unknown), a (unknown), b (unknown), c (unknown) and "
                    "3 more"));
}

/* Companion files that instant-ngp would read implicitly are refused. */
static void test_companions(void **state)
{
    struct temporary *folder = *state;
    struct scene_options options = {.path = folder->path};
    temporary_picture(folder, "a.png", 20, 16, 0);
    temporary_text(folder, "transforms.json", WITH("\"fl_x\": 30,", FRAME("a", "")));
    char *rays = temporary_text(folder, "rays_a.dat", "");
    assert_open_fails(&options,
                      "/rays_a.dat: rays of single pixels are not supported; if the cameras are "
                      "right without them, set enable_ray_loading: false in ");
    temporary_text(folder, "transforms.json",
                   WITH("\"fl_x\": 30, \"enable_ray_loading\": false,", FRAME("a", "")));
    struct vkn_scene *scene = open_scene(folder->path, 1);
    scene_close(&scene);
    assert_int_equal(unlink(rays), 0);
    temporary_picture(folder, "a.alpha.png", 20, 16, 0);
    assert_open_fails(&options, "/a.alpha.png: alpha beside an image is not supported; give ");
}

/* Keys that nerfstudio's loader requires, at the top or in frames, select nerfstudio: its space is
 * measured. A field of view alone selects Blender, and so do files of splits with a field of view.
 */
static void test_dialects(void **state)
{
    static const char all[] =
        "\"fl_x\": 30, \"fl_y\": 30, \"cx\": 10, \"cy\": 8, \"w\": 20, \"h\": 16,";
    static const struct {
        const char *file, *top, *frame;
        bool measured;
    } cases[] = {
        {"transforms.json", "\"fl_x\": 30, \"fl_y\": 30, \"cx\": 10,",
         "\"cy\": 8, \"w\": 20, \"h\": 16,", true},
        {"transforms.json", all, "", true},
        {"transforms.json", "", all, true},
        {"transforms.json", "\"fl_x\": 30,", "\"colmap_im_id\": 3,", true},
        {"transforms.json", "\"fl_x\": 30, \"w\": 20, \"h\": 16,", "", false},
        {"transforms.json", "\"camera_angle_x\": 0.8,", "", false},
        {"transforms_train.json", "", all, true},
        {"transforms_train.json", "\"camera_angle_x\": 0.8,", all, false},
    };
    struct temporary *folder = *state;
    temporary_picture(folder, "a.png", 20, 16, 0);
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        static const char far_away[] = "\"transform_matrix\": [[1,0,0,500],[0,1,0,0],[0,0,1,0]]";
        char *text = base_format("{%s \"frames\": [{\"file_path\": \"a\", %s %s}]}", cases[i].top,
                                 cases[i].frame, far_away);
        char *path = temporary_text(folder, cases[i].file, text);
        struct vkn_scene *scene = open_scene(path, 1);
        assert_close(scene->splits[SCENE_TRAIN].cameras[0].pose[3],
                     cases[i].measured ? 0.5 : 500 * 0.33 + 0.5);
        assert_int_equal(scene->aabb_scale, cases[i].measured ? 16 : 1);
        scene_close(&scene);
        unlink(path);
        free(text);
    }
}

/* ---- matrices and structure ---------------------------------------------------------------- */

/* A homogeneous matrix may be multiplied by any number. */
static void test_homogeneous(void **state)
{
    struct temporary *folder = *state;
    static const double factors[] = {1, 0.25, -3, 1e-6, -1e6};
    const double pose[12] = {0, -1, 0, 3, 1, 0, 0, -4, 0, 0, 1, 5};
    temporary_picture(folder, "a.png", 20, 16, 0);
    for (size_t i = 0; i < BASE_COUNT(factors); i++) {
        double w = factors[i];
        char *frame =
            base_format("\"transform_matrix\": [[0,%g,0,%g],[%g,0,0,%g],[0,0,%g,%g],[0,0,0,%g]]",
                        -w, 3 * w, w, -4 * w, w, 5 * w, w);
        struct scene_camera camera =
            first_camera(folder, "\"fl_x\": 30, \"scale\": 1, \"offset\": 0,", frame);
        for (int k = 0; k < 12; k++)
            assert_close(camera.pose[k], pose[k]);
        free(frame);
    }
#define REFUSED(last, message)                                                              \
    check_refused(folder,                                                                   \
                  WITH("\"fl_x\": 3,", MATRIX("[[1,0,0,0],[0,1,0,0],[0,0,1,0]," last "]")), \
                  "frames[0].transform_matrix: " message)
    REFUSED("[0,0,0,0]",
            "the last row is not 0 0 0 1 (or 0 0 0 w, by which the matrix is divided)");
    REFUSED("[0,0,1e-3,1]", "the last row is not 0 0 0 1");
    REFUSED("[1e-9,0,0,1e-6]", "the last row is not 0 0 0 1");
    REFUSED("[0,0,0,-1]", "the rotation part is a mirror image");
#undef REFUSED
}

static void test_bad_structure(void **state)
{
    struct temporary *folder = *state;
    temporary_picture(folder, "a.png", 20, 16, 0);
    check_refused(folder, "[1, 2]", "transforms.json: not an object at the top");
    check_refused(folder, "\"text\"", "transforms.json: not an object at the top");
    check_refused(folder, "", "transforms.json: line 1, column 1: not valid JSON: the file ends");
    check_refused(folder, "{\"fl_x\": 3}", "transforms.json: frames: missing");
    check_refused(folder, "{\"fl_x\": 3, \"frames\": 7}", "transforms.json: frames: not an array");
    check_refused(folder, "{\"fl_x\": 3, \"frames\": []}", "transforms.json: frames: no frames");
    check_refused(folder, WITH("\"fl_x\": 3,", "5"), "transforms.json: frames[0].(frame): not an");
    check_refused(folder, WITH("\"fl_x\": 3,", "{\"transform_matrix\":" HERE "}"),
                  "transforms.json: frames[0].file_path: missing");
    check_refused(folder, WITH("\"fl_x\": 3,", FRAME("", "")),
                  "transforms.json: frames[0].file_path: empty");
    check_refused(folder, WITH("\"fl_x\": 3,", "{\"file_path\": 3}"),
                  "transforms.json: frames[0].file_path: not a string");
    check_refused(folder, WITH("\"fl_x\": 3,", "{\"file_path\": \"a\"}"),
                  "transforms.json: frames[0].transform_matrix: missing");
    check_refused(folder, WITH("\"fl_x\": 3,", "{\"file_path\": \"a\", \"transformMatrix\": 3}"),
                  "frames[0].transform_matrix: missing; keys that are not read: transformMatrix "
                  "(unknown; did you mean transform_matrix?)");
    check_refused(folder, WITH("\"fl_x\": 3,", "{\"file_Path\": \"a\"}"),
                  "frames[0].file_path: missing; keys that are not read: file_Path (unknown; did ");
    check_refused(folder, "{\"Frames\": []}",
                  "transforms.json: frames: missing; keys that are not");
    check_refused(folder, WITH("", FRAME("a", "")),
                  "transforms.json: frames[0]: no focal length (camera_angle_x, x_fov or fl_x)");
    check_refused(folder, WITH("\"Fl-X\": 50, \"fov\": 50,", FRAME("a", "\"Fl-X\": 50,")),
                  "(camera_angle_x, x_fov or fl_x); keys that are not read: Fl-X (unknown; did you "
                  "mean fl_x?), fov (unknown)");
    check_refused(folder, WITH("\"fl_x\": 3,", FRAME("a", "\"time\": 2,")),
                  "transforms.json: frames[0].time: 2 is out of range (0 to 1)");
}

static void test_bad_matrices(void **state)
{
    struct temporary *folder = *state;
    temporary_picture(folder, "a.png", 20, 16, 0);
    static const char good[] = FRAME("a", "");
    char *text = base_format(
        "{\"fl_x\":3,\"frames\":[%s,%s,%s," MATRIX("[[1,1e999,0,0],[0,1,0,0],[0,0,1,0]]") "]}",
        good, good, good);
    check_refused(folder, text,
                  "transforms.json: frames[3].transform_matrix[0][1]: not a finite number");
    free(text);
#define REFUSED(rows, message) check_refused(folder, WITH("\"fl_x\": 3,", MATRIX(rows)), message)
    REFUSED("[[1,NaN,0,0],[0,1,0,0],[0,0,1,0]]",
            "transforms.json: frames[0].transform_matrix[0][1]: not a finite number");
    REFUSED("[[1,0,0,0],[0,\"1\",0,0],[0,0,1,0]]",
            "transforms.json: frames[0].transform_matrix[1][1]: not a number");
    REFUSED("[[1,0,0,0],[0,null,0,0],[0,0,1,0]]",
            "transforms.json: frames[0].transform_matrix[1][1]: not a number");
    REFUSED("[[1,0,0,0],[0,1,0,0],[0,0,1,1e10]]",
            "frames[0].transform_matrix[2][3]: 1e+10 is out of range");
    REFUSED("[[1,0,0,0],[0,1,0,0]]", "frames[0].transform_matrix: not a matrix of 3 or 4 rows");
    REFUSED("7", "frames[0].transform_matrix: not a matrix of 3 or 4 rows");
    REFUSED("[[1,0,0,0],[0,1,0],[0,0,1,0]]", "frames[0].transform_matrix: row 1 is not 4 numbers");
    REFUSED("[[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,1,1]]",
            "frames[0].transform_matrix: the last row is not 0 0 0 1");
    REFUSED("[[0,0,0,0],[0,0,0,0],[0,0,0,0]]",
            "frames[0].transform_matrix: the rotation part is degenerate");
    REFUSED("[[1,0,0,0],[0,1,0,0],[0,1,0,0]]",
            "frames[0].transform_matrix: the rotation part is degenerate");
    REFUSED("[[-1,0,0,0],[0,1,0,0],[0,0,1,0]]",
            "frames[0].transform_matrix: the rotation part is a mirror image, not a rotation");
    REFUSED("[[1,0.5,0,0],[0,1,0,0],[0,0,1,0]]",
            "frames[0].transform_matrix: the rotation part is not a rotation (axes skewed");
    REFUSED("[[1,0,0,0],[0,2,0,0],[0,0,1,0]]",
            "frames[0].transform_matrix: the rotation part is not a rotation (axes skewed");
#undef REFUSED
}

static void test_bad_intrinsics(void **state)
{
    struct temporary *folder = *state;
    temporary_picture(folder, "a.png", 20, 16, 0);
#define REFUSED(top, message) check_refused(folder, WITH(top, FRAME("a", "")), message)
    REFUSED("\"fl_x\": 1e999,", "transforms.json: fl_x: not a finite number");
    REFUSED("\"fl_x\": -3,", "transforms.json: fl_x: -3 is out of range");
    REFUSED("\"fl_x\": true,", "transforms.json: fl_x: not a number");
    REFUSED("\"camera_angle_x\": 3.15,", "transforms.json: camera_angle_x: 3.15 is out of range");
    REFUSED("\"camera_angle_x\": 0,", "transforms.json: camera_angle_x: 0 is out of range");
    REFUSED("\"fl_x\": 3, \"w\": 20,", "transforms.json: h: missing");
    REFUSED("\"fl_x\": 3, \"k1\": [1],", "transforms.json: k1: not a number");
    REFUSED("\"fl_x\": 3, \"k4\": 0.1,",
            "transforms.json: k4: not supported unless 0 (k1, k2, k3, ");
    REFUSED("\"fl_x\": 3, \"k6\": 0.1,", "transforms.json: k6: not supported unless 0");
    REFUSED(
        "\"fl_x\": 3, \"is_fisheye\": true, \"p1\": 0.1,",
        "transforms.json: p1: not supported unless 0 (of a fisheye lens k1, k2, k3 and k4 are)");
    REFUSED("\"fl_x\": 3, \"is_fisheye\": 1,",
            "transforms.json: is_fisheye: neither true nor false");
    REFUSED("\"fl_x\": 3, \"is_fisheye\": true, \"camera_model\": \"OPENCV\",",
            "transforms.json: is_fisheye: does not agree with camera_model OPENCV");
    REFUSED(
        "\"equirectangular\": true,",
        "transforms.json: equirectangular: instant-ngp's equal-area pictures are not supported");
    REFUSED("\"camera_model\": \"EQUIRECTANGULAR\", \"k1\": 0.1,",
            "transforms.json: k1: a panorama has no distortion");
    REFUSED("\"is_fisheye\": true, \"camera_model\": \"EQUIRECTANGULAR\",",
            "transforms.json: is_fisheye: does not agree with camera_model EQUIRECTANGULAR");
    REFUSED("\"fl_x\": 3, \"camera_model\": \"FULL_OPENCV\",",
            "transforms.json: camera_model: FULL_OPENCV is not supported (PINHOLE, SIMPLE_RADIAL");
    REFUSED("\"fl_x\": 3, \"ftheta_p0\": 1,", "transforms.json: ftheta_p0: f-theta lenses are not");
    REFUSED("\"fl_x\": 3, \"aabb_scale\": 3,",
            "transforms.json: aabb_scale: 3 is not a power of two from 1 to 128");
    REFUSED("\"fl_x\": 3, \"aabb_scale\": 1.5,", "aabb_scale: 1.5 is not a power of two");
    REFUSED("\"fl_x\": 3, \"aabb_scale\": 256,", "aabb_scale: 256 is out of range (1 to 128)");
    REFUSED("\"fl_x\": 3, \"scale\": 0,", "transforms.json: scale: 0 is out of range");
    REFUSED("\"fl_x\": 3, \"unit_length\": 0,", "transforms.json: unit_length: 0 is out of range");
    REFUSED("\"fl_x\": 3, \"unit_length\": -1,",
            "transforms.json: unit_length: -1 is out of range (1e-09 to 1e+09)");
    REFUSED("\"fl_x\": 3, \"unit_length\": \"1 m\",", "transforms.json: unit_length: not a number");
    REFUSED("\"fl_x\": 3, \"unit_length\": NaN,", "unit_length: not a finite number");
    REFUSED("\"fl_x\": 3, \"offset\": [1, 2],", "transforms.json: offset: not 3 numbers");
    REFUSED("\"fl_x\": 3, \"offset\": [1, 2, \"3\"],", "transforms.json: offset[2]: not a number");
    REFUSED("\"fl_x\": 3, \"test_filenames\": [\"x\"],",
            "transforms.json: test_filenames[0]: no frame has the file_path x");
    REFUSED("\"fl_x\": 3, \"test_filenames\": [3],", "test_filenames[0]: not a string");
    REFUSED("\"fl_x\": 3, \"test_filenames\": {},", "test_filenames: not an array");
    REFUSED("\"fl_x\": 3, \"test_filenames\": [\"a\"],", "frames: no frames to train on");
#undef REFUSED
    check_refused(folder, WITH("\"fl_x\": 3,", FRAME("a", "\"fl_x\": 1e999,")),
                  "transforms.json: frames[0].fl_x: not a finite number");
    check_refused(
        folder, WITH("\"fl_x\": 3,", FRAME("a", "\"camera_model\": \"OMNIDIRECTIONALSTEREO_L\",")),
        "transforms.json: frames[0].camera_model: OMNIDIRECTIONALSTEREO_L is not supported");
}

static void test_wrong_sizes(void **state)
{
    struct temporary *folder = *state;
    temporary_picture(folder, "a.png", 20, 16, 0);
    temporary_picture(folder, "b.png", 20, 12, 0);
    temporary_picture(folder, "c.png", 10, 8, 0);
    check_refused(folder, WITH("\"fl_x\": 3, \"w\": 800, \"h\": 800,", FRAME("a.png", "")),
                  "a.png has 20x16 pixels, wrong size: w and h say 800x800");
    assert_error("transforms.json: frames[0]: ");
    check_refused(folder, WITH("\"camera_angle_x\": 0.3,", FRAME("a", "") "," FRAME("b", "")),
                  "b.png has 20x12 pixels, wrong size: the first image has 20x16");
    check_refused(folder, WITH("\"fl_x\": 3,", FRAME("a", "") "," FRAME("c", "")),
                  "c.png has 10x8 pixels, wrong size: the first image has 20x16");
    assert_error("transforms.json: frames[1]: ");
    /* A field of view fits all image sizes of one aspect ratio. */
    static const char text[] = WITH("\"camera_angle_x\": 0.3,", FRAME("a", "") "," FRAME("c", ""));
    temporary_text(folder, "transforms.json", text);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    scene_close(&scene);

    struct scene_options options = {.path = folder->path, .downscale = 9};
    assert_open_fails(&options, "c.png: 10x8 pixels cannot be downscaled by 9");
    options = (struct scene_options){.path = folder->path, .aabb_scale = 3};
    assert_open_fails(&options, "aabb_scale: 3 is not a power of two from 1 to 128");
    options = (struct scene_options){.path = folder->path, .scale = NAN};
    assert_open_fails(&options, "scale: nan is not a positive number");
}

static void test_missing_files(void **state)
{
    struct temporary *folder = *state;
    struct scene_options options = {.path = folder->path};
    assert_open_fails(&options, ": no scene in this folder: it is empty");
    temporary_text(folder, "notes.txt", "");
    assert_open_fails(&options,
                      ": no scene in this folder (none of transforms_train.json, transforms");
    options.path = "no/such/scene";
    assert_open_fails(&options, "no/such/scene: No such file or directory");
    options.path = NULL;
    assert_open_fails(&options, "the name of the scene is missing");

    make_blender(folder);
    char *image = base_path_join(folder->path, "test/r_0.png");
    assert_int_equal(unlink(image), 0);
    options.path = folder->path;
    assert_open_fails(&options,
                      "transforms_test.json: frames[0].file_path: no image ./test/r_0 in ");
    assert_ok(base_file_replace(image, "no picture......................................", 40));
    assert_open_fails(&options,
                      "test/r_0.png: not a PNG, JPEG, WebP, TIFF, BMP, TGA, GIF or HDR file");
    assert_ok(base_file_replace(image, "", 0));
    assert_open_fails(&options, "test/r_0.png: empty file");
    assert_ok(base_file_replace(image, "\x89PNG\r\n", 6));
    assert_open_fails(&options, "test/r_0.png: truncated PNG");
    assert_int_equal(unlink(image), 0);
    assert_int_equal(mkdir(image, 0777), 0);
    assert_open_fails(&options,
                      "transforms_test.json: frames[0].file_path: no image ./test/r_0 in ");
    free(image);
}

/* A file of test views that cannot be read is an error. */
static void test_unreadable_file(void **state)
{
    struct temporary *folder = *state;
    const struct scene_options options = {.path = folder->path};
    make_blender(folder);
    char *split = base_path_join(folder->path, "transforms_test.json");
    assert_int_equal(unlink(split), 0);
    assert_int_equal(symlink("transforms_test.json", split), 0);
    assert_open_fails(&options, "transforms_test.json: Too many levels of symbolic links");
    free(split);
}

static void test_huge_file(void **state)
{
    struct temporary *folder = *state;
    char *path = temporary_text(folder, "transforms.json", "{}");
    assert_int_equal(truncate(path, ((off_t)64 << 20) + 1), 0);
    struct scene_options options = {.path = path};
    assert_open_fails(&options, "transforms.json: larger than the limit of 67108864 bytes");
}

int main(void)
{
#define TEST(function) \
    cmocka_unit_test_setup_teardown(function, temporary_setup, temporary_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_blender),
        TEST(test_blender_by_file),
        TEST(test_times_and_frame_intrinsics),
        TEST(test_ngp),
        TEST(test_one_focal_length),
        TEST(test_ngp_deleted_images),
        TEST(test_hold_out),
        TEST(test_nerfstudio_lists),
        TEST(test_test_views),
        TEST(test_fisheye),
        TEST(test_panoramas),
        TEST(test_nerfstudio_without_train_list),
        TEST(test_automatic_space),
        TEST(test_automatic_space_forward),
        TEST(test_pose_is_orthonormal),
        TEST(test_pose_tolerance),
        TEST(test_fields_of_view),
        TEST(test_distortion_params),
        TEST(test_from_mitsuba),
        TEST(test_box),
        TEST(test_unit_length),
        TEST(test_exposure),
        TEST(test_refused_keys),
        TEST(test_warned_keys),
        TEST(test_companions),
        TEST(test_dialects),
        TEST(test_homogeneous),
        TEST(test_bad_structure),
        TEST(test_bad_matrices),
        TEST(test_bad_intrinsics),
        TEST(test_wrong_sizes),
        TEST(test_missing_files),
        TEST(test_unreadable_file),
        TEST(test_huge_file),
    };
    return cmocka_run_group_tests_name("scene", tests, NULL, NULL);
}
