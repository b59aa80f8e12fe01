/* Tests LLFF captures: NumPy files of every kind, cameras against known projections, folders of
 * images, and refused files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "captures.h"
#include "scene/npy.h"
#include "scene/space.h"
#include "step/step.h"

/* ---- .npy ------------------------------------------------------------------------------------ */

/* Appends an .npy header. */
static void add_header(struct base_text *text, unsigned version, const char *dictionary)
{
    size_t size = strlen(dictionary) + 1;
    const uint8_t start[8] = {0x93, 'N', 'U', 'M', 'P', 'Y', (uint8_t)version, 0};
    const uint8_t length[4] = {(uint8_t)size, (uint8_t)(size >> 8), 0, 0};
    base_text_add_bytes(text, start, sizeof(start));
    base_text_add_bytes(text, length, version == 1 ? 2 : 4);
    base_text_add(text, "%s\n", dictionary);
}

static vkn_status parse(const struct base_text *text, struct npy *array)
{
    return npy_parse("a.npy", (const uint8_t *)text->data, text->size, array);
}

/* Checks an array of 2 x 3 numbers, 10 * row + column + 0.5. */
static void check_npy(unsigned version, const char *type, bool fortran, const char *shape)
{
    struct base_text text = {0};
    struct npy array;
    char *dictionary = base_format("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", type,
                                   fortran ? "True" : "False", shape);
    add_header(&text, version, dictionary);
    free(dictionary);
    for (unsigned i = 0; i < 6; i++) {
        unsigned row = fortran ? i % 2 : i / 3, column = fortran ? i / 2 : i % 3;
        double number = 10.0 * row + column + 0.5;
        float single = (float)number;
        uint8_t bytes[8];
        unsigned size = type[2] == '8' ? 8 : 4;
        memcpy(bytes, size == 8 ? (void *)&number : (void *)&single, size);
        for (unsigned k = 0; k < size; k++)
            base_text_add_bytes(&text, &bytes[type[0] == '>' ? size - 1 - k : k], 1);
    }
    assert_ok(parse(&text, &array));
    assert_int_equal(array.rows, 2);
    assert_int_equal(array.columns, 3);
    for (unsigned i = 0; i < 6; i++) {
        unsigned row = i / 3, column = i % 3;
        assert_true(array.values[i] == 10.0 * row + column + 0.5);
    }
    npy_free(&array);
    free(text.data);
}

static void test_npy_kinds(void **state)
{
    (void)state;
    static const char *const types[] = {"<f8", "<f4", ">f8", ">f4"};
    for (size_t i = 0; i < BASE_COUNT(types); i++)
        for (unsigned version = 1; version <= 3; version++)
            for (int fortran = 0; fortran < 2; fortran++)
                check_npy(version, types[i], fortran != 0, "(2, 3)");
    check_npy(1, "<f8", false, "( 2 ,3,  )");
}

static void refuse(unsigned version, const char *dictionary, const char *message)
{
    struct base_text text = {0};
    struct npy array;
    add_header(&text, version, dictionary);
    add_doubles(&text, (const double[4]){1, 2, 3, 4}, 4);
    assert_int_equal(parse(&text, &array), VKN_BAD_INPUT);
    assert_null(array.values);
    assert_error(message);
    assert_error("a.npy: ");
    free(text.data);
}

static void test_npy_refused(void **state)
{
    (void)state;
#define DICTIONARY(type, order, shape) \
    "{'descr': " type ", 'fortran_order': " order ", 'shape': " shape "}"
    refuse(1, DICTIONARY("'<i8'", "False", "(2, 2)"), "descr: '<i8'");
    refuse(1, DICTIONARY("'<f2'", "False", "(2, 2)"), "is not float32 or float64");
    refuse(1, DICTIONARY("[('x', '<f8')]", "False", "(2, 2)"), "descr: [('x', '<f8'");
    refuse(1, DICTIONARY("'<f8'", "No", "(2, 2)"), "fortran_order: No");
    refuse(1, DICTIONARY("'<f8'", "False", "(4,)"), "shape: not that of a matrix");
    refuse(1, DICTIONARY("'<f8'", "False", "(2, 2, 1)"), "shape: not that of a matrix");
    refuse(1, DICTIONARY("'<f8'", "False", "(2, -2)"), "shape: not that of a matrix");
    refuse(1, DICTIONARY("'<f8'", "False", "(2, 3)"), "shape: (2, 3) does not match the 4");
    refuse(1, DICTIONARY("'<f8'", "False", "(99999999999999999999, 17)"), "does not match");
    refuse(1, DICTIONARY("'<f8'", "False", "(4294967296, 4294967296)"), "does not match");
    refuse(1, DICTIONARY("'<f8'", "False", "(99999999999999999999, 0)"), "does not match");
    refuse(1, "{'fortran_order': False, 'shape': (2, 2)}", "descr: missing");
    refuse(1, "{'descr': '<f8', 'shape': (2, 2)}", "fortran_order: missing");
    refuse(1, "{'descr': '<f8', 'fortran_order': False}", "shape: missing");
    refuse(1, "", "descr: missing");
    refuse(4, DICTIONARY("'<f8'", "False", "(2, 2)"), "version 4.0 is not supported");
#undef DICTIONARY

    /* A truncated file is refused. */
    struct base_text text = {0};
    add_header(&text, 2, "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2)}");
    add_doubles(&text, (const double[2]){1, 2}, 2);
    for (size_t size = 0; size < text.size; size++) {
        const struct base_text part = {.data = text.data, .size = size};
        struct npy array;
        assert_int_equal(parse(&part, &array), VKN_BAD_INPUT);
        assert_error("a.npy: ");
    }
    free(text.data);
}

/* ---- captures -------------------------------------------------------------------------------- */

#define IMAGES 9u

/* Makes the row of a known camera of 400 x 300 pixels with a focal length of 350. */
static void make_row(unsigned index, double near, double far, double row[17])
{
    double axes[3][3], position[3];
    known_camera(index, IMAGES, axes, position);
    const double size[3] = {300, 400, 350};
    for (int i = 0; i < 3; i++) {
        const double values[5] = {axes[1][i], axes[0][i], -axes[2][i], position[i], size[i]};
        memcpy(row + (ptrdiff_t)5 * i, values, sizeof(values));
    }
    row[15] = near;
    row[16] = far;
}

static void write_poses(struct temporary *folder, double (*rows)[17], size_t count)
{
    struct base_text text = {0};
    char *dictionary =
        base_format("{'descr': '<f8', 'fortran_order': False, 'shape': (%zu, 17), }", count);
    add_header(&text, 1, dictionary);
    free(dictionary);
    add_doubles(&text, rows[0], 17 * count);
    temporary_file(folder, "poses_bounds.npy", text.data, text.size);
    free(text.data);
}

static void make_capture(struct temporary *folder, const char *images, uint32_t width,
                         uint32_t height)
{
    double rows[IMAGES][17];
    for (unsigned i = 0; i < IMAGES; i++) {
        char name[64];
        make_row(i, 3 + 0.01 * i, 9, rows[i]);
        snprintf(name, sizeof(name), "%s/%02u.png", images, i);
        temporary_picture(folder, name, width, height, (uint8_t)i);
    }
    write_poses(folder, rows, IMAGES);
}

static struct vkn_scene *open_scene(const char *path, uint32_t downscale)
{
    struct vkn_scene *scene = NULL;
    struct scene_options options = {.path = path, .downscale = downscale};
    assert_ok(scene_open(&options, &scene));
    return scene;
}

/* Every camera projects a known point to its expected pixel, in images downscaled by k. */
static void check_cameras(const struct vkn_scene *scene, double k)
{
    const double focal[2] = {350 / k, 350 / k}, center[2] = {200 / k, 150 / k};
    for (unsigned i = 0; i < IMAGES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "/%02u.png", i);
        assert_known_view(scene, name, i, IMAGES, focal, center);
    }
}

static void test_cameras(void **state)
{
    struct temporary *folder = *state;
    make_capture(folder, "images", 40, 30);
    temporary_text(folder, "images/notes.txt", "no image");
    struct vkn_scene *scene = open_scene(folder->path, 1);
    assert_int_equal(scene->format, VKN_SCENE_LLFF);
    assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, 7);
    assert_int_equal(scene->splits[SCENE_VAL].camera_count, 0);
    assert_int_equal(scene->splits[SCENE_TEST].camera_count, 2);
    assert_non_null(strstr(scene->splits[SCENE_TEST].cameras[0].image_path, "/00.png"));
    assert_non_null(strstr(scene->splits[SCENE_TEST].cameras[1].image_path, "/08.png"));
    check_cameras(scene, 10);
    /* The nearest bound of the training frames is 3.01. */
    assert_true(fabs((double)scene->near - 3.01 * scene->scale) < 1e-5);
    scene_close(&scene);

    scene = open_scene(folder->path, 2);
    check_cameras(scene, 20);
    assert_int_equal(scene->load_downscale, 2);
    assert_ok(scene_load(scene, SCENE_TEST, NULL, NULL));
    scene_close(&scene);

    char *file = temporary_path(folder, "poses_bounds.npy");
    scene = open_scene(file, 1);
    check_cameras(scene, 10);
    scene_close(&scene);
}

/* The downscale counts from `images`, or else from the largest folder; a folder of exactly the
 * requested size is used directly. */
static void test_folders(void **state)
{
    struct temporary *folder = *state;
    make_capture(folder, "images_8", 50, 38);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    assert_int_equal(scene->splits[SCENE_TEST].cameras[0].width, 50);
    scene_close(&scene);
    scene = open_scene(folder->path, 8);
    assert_int_equal(scene->splits[SCENE_TEST].cameras[0].width, 6);
    scene_close(&scene);

    make_capture(folder, "images_4", 100, 75);
    scene = open_scene(folder->path, 2);
    assert_int_equal(scene->downscale, 2);
    assert_int_equal(scene->load_downscale, 1);
    assert_non_null(strstr(scene->splits[SCENE_TEST].cameras[0].image_path, "/images_8/00.png"));
    assert_int_equal(scene->splits[SCENE_TEST].cameras[0].height, 38);
    assert_ok(scene_load(scene, SCENE_TEST, NULL, NULL));
    scene_close(&scene);
    scene = open_scene(folder->path, 5);
    assert_non_null(strstr(scene->splits[SCENE_TEST].cameras[0].image_path, "/images_4/00.png"));
    assert_int_equal(scene->splits[SCENE_TEST].cameras[0].height, 15);
    scene_close(&scene);
}

/* A forward-facing capture: the middle of the disparities is in the cube's centre, the cameras 1.32
 * in front, and the cube contains all that is in view. */
static void test_forward_facing(void **state)
{
    struct temporary *folder = *state;
    double rows[3][17] = {{0}};
    for (unsigned i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof(name), "images/%u.png", i);
        temporary_picture(folder, name, 40, 30, 0);
        /* down, right and backwards are -y, x and z */
        const double row[17] = {0, 1, 0, i - 1.0, 30, -1, 0, 0, 0, 40, 0, 0, 1, 10, 20, 2, 6};
        memcpy(rows[i], row, sizeof(row));
        rows[i][16] += 0.001 * i;
    }
    write_poses(folder, rows, 3);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    /* Frame 0 is held out: cameras at x = 0 and 1, depths 2 to 6, 3 in the middle of disparity. */
    double distance = hypot(0.5, 2 / (1.0 / 2 + 1 / 6.0015));
    double scale = 1.32 / distance;
    assert_true(fabs(scene->scale - scale) < 1e-3);
    assert_true(fabs(0.5 * scene->scale + scene->offset[0] - 0.5) < 1e-4);
    assert_true(fabs(7 * scene->scale + scene->offset[2] - 0.5) < 1e-3);
    /* At depth 6 the view ends 6 units left and right of the camera: 6.5 from the centre, 2.8 in
     * training space. */
    assert_int_equal(scene->aabb_scale, 8);
    assert_true(fabs(scene->near - 2 * scale) < 1e-3);
    scene_close(&scene);

    /* Bounds equal in all images are ignored; parallel cameras are then scaled by their spread. */
    for (unsigned i = 0; i < 3; i++)
        rows[i][16] = 500;
    write_poses(folder, rows, 3);
    scene = open_scene(folder->path, 1);
    assert_true(fabs(scene->scale - 0.33 / 0.5) < 1e-4);
    assert_int_equal(scene->aabb_scale, 16);
    assert_true(scene->near == 0);
    scene_close(&scene);
}

/* A scene that opens, at any depth, has a space that a run's config can record and read back. */
static bool space_reads_back(const char *path)
{
    struct vkn_scene *scene = NULL;
    struct scene_options options = {.path = path};
    if (scene_open(&options, &scene) != VKN_OK) {
        assert_error("/poses_bounds.npy: poses: ");
        return false;
    }
    struct vkn_config config = {.scene = {.scale = scene->scale, .aabb_scale = scene->aabb_scale}};
    struct vkn_config again = {0};
    memcpy(config.scene.offset, scene->offset, sizeof(scene->offset));
    char *json = vkn_config_write_json(&config);
    assert_ok(vkn_config_parse_json(&again, "again", json, false));
    assert_true(again.scene.scale == scene->scale && again.scene.scale > 0);
    assert_memory_equal(again.scene.offset, scene->offset, sizeof(scene->offset));
    assert_int_equal(again.scene.aabb_scale, scene->aabb_scale);
    assert_true(isfinite(scene->near));
    free(json);
    scene_close(&scene);
    return true;
}

static void test_far_content(void **state)
{
    struct temporary *folder = *state;
    double forward[3][17], around[IMAGES][17];
    for (unsigned i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof(name), "images/%02u.png", i);
        temporary_picture(folder, name, 40, 30, 0);
    }
    for (int exponent = 0; exponent < 308; exponent += exponent < 12 ? 1 : 15) {
        double depth = pow(10, exponent);
        for (unsigned i = 0; i < 3; i++) {
            const double row[17] = {0,
                                    1,
                                    0,
                                    i - 1.0,
                                    30,
                                    -1,
                                    0,
                                    0,
                                    0,
                                    40,
                                    0,
                                    0,
                                    1,
                                    10,
                                    20,
                                    depth,
                                    depth * (1.5 + 0.01 * i)};
            memcpy(forward[i], row, sizeof(row));
        }
        write_poses(folder, forward, 3);
        assert_true(space_reads_back(folder->path) == (exponent <= 10));
    }
    assert_error("the training space measured on their positions and depths has a scale of 0, out "
                 "of range (1e-10 to 1e+10)");
    /* Cameras that look at one point are scaled by that point, whatever the depths. */
    make_capture(folder, "images", 40, 30);
    for (int exponent = 0; exponent < 300; exponent += 30) {
        double depth = pow(10, exponent);
        for (unsigned i = 0; i < IMAGES; i++)
            make_row(i, depth, depth * (1.5 + 0.01 * i), around[i]);
        write_poses(folder, around, IMAGES);
        assert_true(space_reads_back(folder->path) == (exponent < 40));
    }
    assert_error("their nearest depths are too large for single precision");
}

/* Cameras that look around from nearly one place, which is the cube's centre; mean depth 1.32. */
static void test_looking_around(void **state)
{
    struct temporary *folder = *state;
    double rows[5][17] = {{0}};
    for (unsigned i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof(name), "images/%u.png", i);
        temporary_picture(folder, name, 40, 30, 0);
        /* Backwards is towards the centre, (0.1, 0.2, 0.3); down is -z. */
        double c = cos(1.5707963267948966 * i), s = sin(1.5707963267948966 * i);
        const double row[17] = {0,  s, -c, 0.1 + 0.1 * c, 30, 0, -c,          -s, 0.2 + 0.1 * s, 40,
                                -1, 0, 0,  0.3,           20, 2, 6 + 0.01 * i};
        memcpy(rows[i], row, sizeof(row));
    }
    write_poses(folder, rows, 5);
    struct vkn_scene *scene = open_scene(folder->path, 1);
    double scale = 1.32 / (2 / (1.0 / 2 + 1 / 6.03)); /* the third of frames 1 to 4 */
    assert_true(fabs(scene->scale - scale) < 1e-4);
    assert_true(fabs(0.1 * scene->scale + scene->offset[0] - 0.5) < 1e-4);
    assert_true(fabs(0.2 * scene->scale + scene->offset[1] - 0.5) < 1e-4);
    assert_true(fabs(0.3 * scene->scale + scene->offset[2] - 0.5) < 1e-4);
    scene_close(&scene);
    /* Far from the origin with tiny depths: the offset would be out of range. */
    for (unsigned i = 0; i < 5; i++) {
        rows[i][3] += 9.9e8;
        rows[i][15] = 1.02e-9;
        rows[i][16] = 1.03e-9 + 1e-12 * i;
    }
    write_poses(folder, rows, 5);
    assert_false(space_reads_back(folder->path));
    assert_error("the training space measured on their positions and depths has an offset of "
                 "-1.27e+18, out of range (-1e+18 to 1e+18)");
}

/* Returns the cube's side for an image of 200 x 2 pixels with a far bound of 7. */
static uint32_t side_of(const struct transforms_lens *lens)
{
    const struct transforms_frame frame = {.lens = *lens,
                                           .width = 200,
                                           .height = 2,
                                           .pose = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0},
                                           .bounds = {1, 7}};
    const struct transforms_frame *frames[1] = {&frame};
    const struct transforms none = {0};
    const struct space space = {.scale = 1};
    uint32_t side = 0;
    assert_ok(space_cube_side(&none, frames, 1, &space, &side));
    return side;
}

/* The lens determines where the image's corners are. */
static void test_corners(void **state)
{
    (void)state;
    struct transforms_lens lens = lens_none;
    lens.focal[0] = lens.focal[1] = 100;
    assert_int_equal(side_of(&lens), 16); /* 45 degrees: 7 to the side */
    lens.focal[0] = 80;
    assert_int_equal(side_of(&lens), 32); /* 8.75 */
    lens.focal[0] = 100;
    lens.distortion[0] = -0.1;
    assert_int_equal(side_of(&lens), 32); /* 1.155 - 0.1 * 1.155^3 = 1: 8.08 */
    lens.distortion[0] = 0;
    lens.kind = VKN_LENS_FISHEYE;
    lens.focal[0] = lens.focal[1] = 100 / 1.5707963267948966;
    assert_int_equal(side_of(&lens), 16); /* 90 degrees: 7; a perspective lens would give 11 */
}

/* Rays begin 0.1 before the camera, or nearer if the scene's bounds are nearer. */
static void test_near_distance(void **state)
{
    (void)state;
    const float nears[] = {0, 5, 0.3F, 0.1F, 1e-6F}, wanted[] = {0.1F, 0.1F, 0.1F, 0.05F, 1e-3F};
    const struct gpu_capabilities device = {.type = GPU_CPU};
    for (size_t i = 0; i < BASE_COUNT(nears); i++) {
        const struct vkn_scene scene = {
            .scale = 1, .aabb_scale = 1, .downscale = 1, .near = nears[i]};
        struct vkn_config config = {0};
        assert_ok(setup_resolve_config(&config, &scene, &device));
        assert_true(config.march.near_distance == wanted[i]);
    }
}

/* Invalid bounds of a view are ignored, and the bounds of the other views are used. */
static void test_unknown_bounds(void **state)
{
    struct temporary *folder = *state;
    double rows[IMAGES][17];
    float near[3], scale[3];
    make_capture(folder, "images", 40, 30);
    for (unsigned i = 0; i < IMAGES; i++)
        make_row(i, 3 + 0.01 * i, 9 + i, rows[i]);
    for (int which = 0; which < 3; which++) {
        if (which > 0)
            rows[2][14 + which] = which == 1 ? NAN : INFINITY; /* 15 first, then 16 too */
        write_poses(folder, rows, IMAGES);
        base_log_threshold(BASE_LOG_NOTHING);
        struct vkn_scene *scene = open_scene(folder->path, 1);
        base_log_threshold(BASE_LOG_WARNING);
        near[which] = scene->near;
        scale[which] = scene->scale;
        scene_close(&scene);
    }
    assert_true(near[0] > 0 && near[1] > 0 &&
                fabsf(near[1] / scale[1] - near[0] / scale[0]) < 0.05F);
    assert_true(near[2] == near[1] && scale[2] == scale[1]);
}

/* ---- refused files --------------------------------------------------------------------------- */

static void check_row_refused(struct temporary *folder, unsigned row, unsigned column, double value,
                              const char *message)
{
    double rows[IMAGES][17];
    for (unsigned i = 0; i < IMAGES; i++)
        make_row(i, 3, 9 + i, rows[i]);
    rows[row][column] = value;
    write_poses(folder, rows, IMAGES);
    struct scene_options options = {.path = folder->path};
    assert_open_fails(&options, message);
    assert_error("/poses_bounds.npy: poses[");
}

static void test_refused(void **state)
{
    struct temporary *folder = *state;
    struct scene_options options = {.path = folder->path};
    make_capture(folder, "images", 40, 30);
    check_row_refused(folder, 3, 0, NAN, "poses[3]: a number is not finite");
    check_row_refused(folder, 3, 3, 1e10, "poses[3]: a number is not finite or beyond 1e9");
    check_row_refused(folder, 8, 1, 7, "poses[8]: the rotation part is not a rotation");
    check_row_refused(folder, 2, 4, 0, "poses[2]: height 0, width 400 and focal length 350");
    check_row_refused(folder, 2, 14, -1, "poses[2]: height 300, width 400 and focal length -1");
    check_row_refused(folder, 2, 14, INFINITY, "poses[2]: height 300");
    check_row_refused(folder, 2, 9, 500, "poses[2]: ");
    assert_error("wrong size: w and h say 500x300");

    temporary_picture(folder, "images/more.png", 40, 30, 0);
    make_capture(folder, "images", 40, 30);
    assert_open_fails(&options, "poses_bounds.npy: 9 poses, but 10 images are in ");
    temporary_text(folder, "poses_bounds.npy", "no NumPy file");
    assert_open_fails(&options, "poses_bounds.npy: not an .npy file");
    struct base_text text = {0};
    add_header(&text, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 15), }");
    add_doubles(&text, (const double[30]){0}, 30);
    temporary_file(folder, "poses_bounds.npy", text.data, text.size);
    assert_open_fails(&options, "shape: (2, 15) is not (images, 17)");
    free(text.data);
}

/* `vknerf info` reports broken images and masks; training refuses them. */
static void test_broken_images(void **state)
{
    struct temporary *folder = *state;
    struct scene_findings findings = {0};
    struct scene_options options = {.path = folder->path};
    make_capture(folder, "images", 40, 30);
    temporary_text(folder, "images/02.png", "no picture");
    temporary_picture(folder, "masks/05.png", 7, 7, 0);
    assert_open_fails(&options, "/images/02.png: not a PNG, JPEG, ");
    struct vkn_scene *scene = inspect_capture(&options, &findings);
    assert_int_equal(findings.broken, 2);
    assert_int_equal(findings.missing, 0);
    assert_non_null(strstr(findings.first_broken, "/images/02.png: "));
    size_t views = 0;
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        views += scene->splits[split].camera_count;
    assert_int_equal(views, IMAGES - 2);
    scene_close(&scene);
    scene_findings_free(&findings);
}

static void test_no_images(void **state)
{
    struct temporary *folder = *state;
    double rows[1][17];
    make_row(0, 3, 9, rows[0]);
    write_poses(folder, rows, 1);
    struct scene_options options = {.path = folder->path};
    assert_open_fails(&options, "poses_bounds.npy: its images: neither images nor images_N is in");
}

#define TEST(function) \
    cmocka_unit_test_setup_teardown(function, temporary_setup, temporary_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npy_kinds),
        cmocka_unit_test(test_npy_refused),
        TEST(test_cameras),
        TEST(test_folders),
        TEST(test_forward_facing),
        TEST(test_far_content),
        TEST(test_looking_around),
        cmocka_unit_test(test_corners),
        TEST(test_unknown_bounds),
        cmocka_unit_test(test_near_distance),
        TEST(test_refused),
        TEST(test_broken_images),
        TEST(test_no_images),
    };
    return cmocka_run_group_tests_name("llff", tests, NULL, NULL);
}
