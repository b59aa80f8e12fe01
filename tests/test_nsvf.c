/* Tests the reader of NSVF captures: known cameras, the same scene as transforms.json, and refused
 * files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "captures.h"

#define IMAGES 8u
#define WIDTH  40u
#define HEIGHT 30u

static const char *const prefixes[IMAGES] = {"0", "0", "0", "0", "0", "1", "2", "2"};

/* ---- writing --------------------------------------------------------------------------------- */

/* Computes a camera-to-world matrix by rows; y and z axes are multiplied by `turn`. */
static void camera_rows(unsigned index, double turn, double rows[16])
{
    double axes[3][3], position[3];
    known_camera(index, IMAGES, axes, position);
    for (ptrdiff_t i = 0; i < 3; i++) {
        const double row[4] = {axes[0][i], turn * axes[1][i], turn * axes[2][i], position[i]};
        memcpy(rows + 4 * i, row, sizeof(row));
    }
    memcpy(rows + 12, (const double[4]){0, 0, 0, 1}, 4 * sizeof(double));
}

static void write_pose(struct temporary *folder, const char *name, const double rows[16],
                       bool in_line)
{
    struct base_text text = {0};
    for (int i = 0; i < 16; i++)
        base_text_add(&text, "%.17g%s", rows[i], i % 4 == 3 && !in_line ? "\n" : " ");
    temporary_file(folder, name, text.data, text.size);
    free(text.data);
}

/* Writes image and pose of a camera. */
static void write_view(struct temporary *folder, unsigned index, const char *prefix)
{
    double rows[16];
    char name[64];
    camera_rows(index, 1, rows);
    snprintf(name, sizeof(name), "rgb/%s%02u.png", prefix, index);
    temporary_picture(folder, name, WIDTH, HEIGHT, (uint8_t)index);
    snprintf(name, sizeof(name), "pose/%s%02u.txt", prefix, index);
    write_pose(folder, name, rows, index == 1);
}

static void make_capture(struct temporary *folder)
{
    for (unsigned i = 0; i < IMAGES; i++) {
        char prefix[8];
        snprintf(prefix, sizeof(prefix), "%s_", prefixes[i]);
        write_view(folder, i, prefix);
    }
    temporary_text(folder, "intrinsics.txt", "35 0 19 0\n0 36 16 0\n0 0 1 0\n0 0 0 1\n");
}

/* Writes a transforms.json with the same cameras and images. */
static char *make_transforms(struct temporary *folder)
{
    static const char *const lists[SCENE_SPLITS] = {"train", "val", "test"};
    struct base_text text = {0};
    base_text_add(&text, "{\"fl_x\": 35, \"fl_y\": 36, \"cx\": 19, \"cy\": 16, \"frames\": [");
    for (unsigned i = 0; i < IMAGES; i++) {
        double m[16];
        camera_rows(i, -1, m);
        base_text_add(&text, "%s{\"file_path\": \"rgb/%s_%02u.png\", \"transform_matrix\": [",
                      i > 0 ? ", " : "", prefixes[i], i);
        for (int row = 0; row < 4; row++)
            base_text_add(&text, "%s[%.17g, %.17g, %.17g, %.17g]", row > 0 ? ", " : "", m[4 * row],
                          m[4 * row + 1], m[4 * row + 2], m[4 * row + 3]);
        base_text_add(&text, "]}");
    }
    base_text_add(&text, "]");
    for (unsigned split = 0; split < SCENE_SPLITS; split++) {
        base_text_add(&text, ", \"%s_filenames\": [", lists[split]);
        for (unsigned i = 0, listed = 0; i < IMAGES; i++)
            if (prefixes[i][0] == (char)('0' + split))
                base_text_add(&text, "%s\"rgb/%s_%02u.png\"", listed++ > 0 ? ", " : "", prefixes[i],
                              i);
        base_text_add(&text, "]");
    }
    base_text_add(&text, "}");
    char *path = temporary_file(folder, "cameras.json", text.data, text.size);
    free(text.data);
    return path;
}

static struct vkn_scene *open_scene(const char *path)
{
    struct vkn_scene *scene = NULL;
    struct scene_options options = {.path = path};
    assert_ok(scene_open(&options, &scene));
    return scene;
}

static void check_counts(const char *path, size_t train, size_t val, size_t test)
{
    struct vkn_scene *scene = open_scene(path);
    assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, train);
    assert_int_equal(scene->splits[SCENE_VAL].camera_count, val);
    assert_int_equal(scene->splits[SCENE_TEST].camera_count, test);
    scene_close(&scene);
}

/* ---- cameras --------------------------------------------------------------------------------- */

static void assert_same_camera(const struct scene_camera *a, const struct scene_camera *b)
{
    assert_string_equal(strrchr(a->image_path, '/'), strrchr(b->image_path, '/'));
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->height, b->height);
    assert_true(a->focal_x == b->focal_x && a->focal_y == b->focal_y);
    assert_true(a->center_x == b->center_x && a->center_y == b->center_y);
    assert_int_equal(a->lens, b->lens);
    for (int i = 0; i < 12; i++)
        assert_true(fabsf(a->pose[i] - b->pose[i]) < 1e-6F);
}

/* Cameras, splits and training space equal those of a transforms.json of the same views. */
static void test_same_as_transforms(void **state)
{
    struct temporary *folder = *state;
    make_capture(folder);
    struct vkn_scene *scene = open_scene(folder->path),
                     *other = open_scene(make_transforms(folder));
    assert_int_equal(scene->format, VKN_SCENE_NSVF);
    assert_int_equal(other->format, VKN_SCENE_TRANSFORMS);
    assert_true(scene->scale == other->scale);
    assert_memory_equal(scene->offset, other->offset, sizeof(scene->offset));
    assert_int_equal(scene->aabb_scale, other->aabb_scale);
    for (unsigned split = 0; split < SCENE_SPLITS; split++) {
        const struct scene_split *ours = &scene->splits[split], *theirs = &other->splits[split];
        assert_int_equal(ours->camera_count, split == SCENE_TRAIN ? 5 : split);
        assert_int_equal(ours->camera_count, theirs->camera_count);
        for (size_t i = 0; i < ours->camera_count; i++)
            assert_same_camera(&ours->cameras[i], &theirs->cameras[i]);
    }
    scene_close(&other);

    static const double focal[2] = {35, 36}, center[2] = {19, 16};
    for (unsigned i = 0; i < IMAGES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "_%02u.png", i);
        assert_known_view(scene, name, i, IMAGES, focal, center);
    }
    assert_ok(scene_load(scene, SCENE_VAL, NULL, NULL));
    assert_int_equal(scene->splits[SCENE_VAL].pixels[0], 0xff050000u);
    scene_close(&scene);
}

/* Accepted layouts of intrinsics.txt. Those with one focal length set focal_y = focal_x. */
static void test_intrinsics(void **state)
{
    struct temporary *folder = *state;
    static const struct {
        const char *text;
        float focal_y;
    } spellings[] = {
        {"35 0 19\n0 36 16\n0 0 1\n", 36},
        {"35.0 0.0 19.0 0.0 \n0.0 36.0 16.0 0.0 \n0.0 0.0 1.0 0.0 \n0.0 0.0 0.0 1.0", 36},
        {"35 0 19 0 0 36 16 0 0 0 1 0 0 0 0 1\n", 36},
        {"\n# pixels\r\n3.5e1\t0 19 # a row\r\n0 36 16\r\n0 1e-9 1\r\n\n", 36},
        {"35. 19. 16. 0.\n0. 0. 0.\n0.\n1.\n30. 40.\n", 35},
        {"30 40\n35 0 19\n0 36 16\n0 0 1\n", 36}, /* the size in front is ignored */
        {"35 0 19 0\n0 36 16 0\n0 0 1 0\n0 0 0 1\n30 40\n", 36},
        {"35 19 16 0\n", 35},
        {"35 19 16", 35},
        {"35 0 19 0 36 16 0 0 1", 36},
        {"35 19 16 0\n0 0 0\nnan\n", 35},
        {"\xef\xbb\xbf"
         "35 0 19\r0 36 16\r\f0 0 1\v\r",
         36},
    };
    make_capture(folder);
    for (size_t i = 0; i < BASE_COUNT(spellings); i++) {
        temporary_text(folder, "intrinsics.txt", spellings[i].text);
        struct vkn_scene *scene = open_scene(folder->path);
        const struct scene_camera *camera = scene->splits[SCENE_TRAIN].cameras;
        assert_true(camera->focal_x == 35 && camera->focal_y == spellings[i].focal_y);
        assert_true(camera->center_x == 19 && camera->center_y == 16);
        scene_close(&scene);
    }
}

/* Writes the pose of a view in `rows` lines, multiplied by w, after a line with a size. `inverse`:
 * as world to camera. */
static void write_other_pose(struct temporary *folder, unsigned index, int rows, double w,
                             bool inverse)
{
    double m[16], v[16] = {0};
    struct base_text text = {0};
    char name[64];
    camera_rows(index, 1, m);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            v[4 * i + j] = inverse ? m[4 * j + i] : m[4 * i + j];
            v[4 * i + 3] -= inverse ? m[4 * j + i] * m[4 * j + 3] : 0;
        }
        v[4 * i + 3] += inverse ? 0 : m[4 * i + 3];
    }
    v[15] = 1;
    base_text_add(&text, "30 40\n");
    for (int i = 0; i < 4 * rows; i++)
        base_text_add(&text, "%.17g%s", v[i] * w, i % 4 == 3 ? "\n" : " ");
    snprintf(name, sizeof(name), "%s/%s_%02u.txt", inverse ? "extrinsic" : "pose", prefixes[index],
             index);
    temporary_file(folder, name, text.data, text.size);
    free(text.data);
}

static void check_known_views(struct temporary *folder)
{
    static const double focal[2] = {35, 36}, center[2] = {19, 16};
    struct vkn_scene *scene = open_scene(folder->path);
    assert_int_equal(scene->format, VKN_SCENE_NSVF);
    for (unsigned i = 0; i < IMAGES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "_%02u.png", i);
        assert_known_view(scene, name, i, IMAGES, focal, center);
    }
    scene_close(&scene);
}

/* Layouts that NSVF's own loader accepts besides the usual one: poses of three rows, with a size
 * above them, and in homogeneous coordinates; world-to-camera matrices in a folder extrinsic, which
 * takes precedence; color instead of rgb; intrinsic.txt. */
static void test_other_layouts(void **state)
{
    struct temporary *folder = *state;
    make_capture(folder);
    for (unsigned i = 0; i < IMAGES; i++)
        write_other_pose(folder, i, i % 2 == 0 ? 3 : 4, i % 2 == 0 ? 1 : 0.5 - i, false);
    check_known_views(folder);

    for (unsigned i = 0; i < IMAGES; i++)
        write_other_pose(folder, i, i % 2 == 0 ? 3 : 4, i % 2 == 0 ? 1 : 0.5 - i, true);
    temporary_text(folder, "pose/0_00.txt", "not looked at");
    check_known_views(folder);
    temporary_text(folder, "extrinsic/0_00.txt", "0 0 0 0\n0 0 0 0\n0 0 0 0\n");
    const struct scene_options options = {.path = folder->path};
    assert_open_fails(&options, "/extrinsic/0_00.txt: a number is not finite or beyond 1e9");
    write_other_pose(folder, 0, 3, 1, true);

    char *images = temporary_path(folder, "rgb"), *color = temporary_path(folder, "color");
    char *file = temporary_path(folder, "intrinsics.txt");
    assert_int_equal(rename(images, color), 0);
    assert_int_equal(rename(file, temporary_path(folder, "intrinsic.txt")), 0);
    check_known_views(folder);
}

/* The box, enlarged by half a voxel on each side, fills the cube along its longest side, y. */
static void test_box(void **state)
{
    struct temporary *folder = *state;
    make_capture(folder);
    temporary_text(folder, "bbox.txt", "0 0 2.5 2 4 3.5 1\n");
    struct vkn_scene *scene = open_scene(folder->path);
    assert_true(fabs(scene->scale - 0.2) < 1e-7);
    assert_true(fabs(scene->offset[0] - 0.3) < 1e-6);
    assert_true(fabs(scene->offset[1] - 0.1) < 1e-6);
    assert_true(fabs(scene->offset[2] + 0.1) < 1e-6);
    assert_int_equal(scene->aabb_scale, 1);
    scene_close(&scene);

    /* With another scale or cube the box stays centred. */
    struct scene_options options = {.path = folder->path, .scale = 0.1F, .aabb_scale = 4};
    assert_ok(scene_open(&options, &scene));
    assert_true(fabs(scene->scale - 0.1) < 1e-7);
    assert_true(fabs(scene->offset[1] - 0.3) < 1e-6);
    assert_int_equal(scene->aabb_scale, 4);
    scene_close(&scene);

    base_log_threshold(BASE_LOG_NOTHING);
    temporary_text(folder, "bbox.txt",
                   "\xef\xbb\xbf"
                   "0 0 2.5 2 4 3.5 nan\n"); /* a box that is not finite is ignored */
    scene = open_scene(folder->path);
    base_log_threshold(BASE_LOG_WARNING);
    assert_true(fabs(scene->scale - 0.25F) < 1e-7F);
    scene_close(&scene);

    temporary_text(folder, "bbox.txt", "0 0 2.5\n2 4 3.5\n");
    scene = open_scene(folder->path);
    assert_true(fabs(scene->scale - 0.25) < 1e-7);
    scene_close(&scene);
}

static void test_splits(void **state)
{
    struct temporary *folder = *state;
    make_capture(folder);
    check_counts(folder->path, 5, 1, 2);
    /* Tanks and Temples has no prefix 2_; its test images have 1_. */
    for (unsigned i = 6; i < IMAGES; i++) {
        char name[32];
        snprintf(name, sizeof(name), "rgb/2_%02u.png", i);
        assert_int_equal(unlink(temporary_path(folder, name)), 0);
    }
    check_counts(folder->path, 5, 0, 1);
    remove_tree(temporary_path(folder, "rgb"));
    remove_tree(temporary_path(folder, "pose"));
    /* Without prefixes every eighth image is for testing. */
    for (unsigned i = 0; i < IMAGES; i++)
        write_view(folder, i, "");
    check_counts(folder->path, 7, 0, 1);
    write_view(folder, 0, "0_");
    struct scene_options options = {.path = folder->path};
    assert_open_fails(&options,
                      "/rgb/00.png: its name does not begin with 0_, 1_ or 2_, as others do");
    /* No image is for training. */
    remove_tree(temporary_path(folder, "rgb"));
    write_view(folder, 0, "1_");
    assert_open_fails(&options, "/intrinsics.txt: images: no images to train on");
}

static void test_masks(void **state)
{
    struct temporary *folder = *state;
    make_capture(folder);
    temporary_picture(folder, "masks/0_01.png", WIDTH, HEIGHT, 0);
    struct vkn_scene *scene = open_scene(folder->path);
    assert_null(camera_of(scene, "/0_00.png")->mask_path);
    const char *mask = camera_of(scene, "/0_01.png")->mask_path;
    assert_true(mask != NULL && strstr(mask, "/masks/0_01.png") != NULL);
    scene_close(&scene);
}

/* ---- missing and other files --------------------------------------------------------------- */

static void test_detection(void **state)
{
    struct temporary *folder = *state;
    make_capture(folder);
    char *file = temporary_path(folder, "intrinsics.txt");
    struct vkn_scene *scene = open_scene(file);
    assert_int_equal(scene->format, VKN_SCENE_NSVF);
    scene_close(&scene);
    struct scene_options options = {.path = file, .format = VKN_SCENE_COLMAP};
    assert_open_fails(&options, "intrinsics.txt: this file is not a scene in the format ");

    /* Other formats in the same folder take precedence, unless this format is asked for. */
    char *copy = make_transforms(folder), *json = temporary_path(folder, "transforms.json");
    assert_int_equal(rename(copy, json), 0);
    scene = open_scene(folder->path);
    assert_int_equal(scene->format, VKN_SCENE_TRANSFORMS);
    scene_close(&scene);
    options = (struct scene_options){.path = folder->path, .format = VKN_SCENE_NSVF};
    assert_ok(scene_open(&options, &scene));
    assert_int_equal(scene->format, VKN_SCENE_NSVF);
    scene_close(&scene);

    assert_int_equal(unlink(file), 0);
    assert_open_fails(&options, ": no scene of the format nsvf in this folder (intrinsics.txt, ");
    assert_int_equal(unlink(json), 0);
    options.format = VKN_SCENE_AUTO;
    assert_open_fails(&options, ": no scene in this folder, but photographs without poses in ");
}

static void test_missing(void **state)
{
    struct temporary *folder = *state;
    struct scene_options options = {.path = folder->path};
    make_capture(folder);
    assert_int_equal(unlink(temporary_path(folder, "pose/0_02.txt")), 0);
    assert_open_fails(&options, "/pose/0_02.txt: No such file or directory");
    write_view(folder, 2, "0_");
    /* Poses without an image are skipped; a broken image is found when images are inspected. */
    assert_int_equal(unlink(temporary_path(folder, "rgb/0_03.png")), 0);
    check_counts(folder->path, 4, 1, 2);
    temporary_text(folder, "rgb/0_01.png", "no picture");
    assert_open_fails(&options, "/rgb/0_01.png: ");
    struct scene_findings findings = {0};
    struct vkn_scene *scene = inspect_capture(&options, &findings);
    assert_int_equal(scene->splits[SCENE_TRAIN].camera_count, 3);
    assert_int_equal(findings.broken, 1);
    assert_int_equal(findings.missing, 1);
    scene_close(&scene);
    scene_findings_free(&findings);

    options.findings = NULL;
    remove_tree(temporary_path(folder, "pose"));
    assert_open_fails(&options, "/pose/0_00.txt: No such file or directory");
    remove_tree(temporary_path(folder, "rgb"));
    assert_open_fails(&options, "/rgb: No such file or directory");
    temporary_text(folder, "rgb/notes.txt", "no image");
    assert_open_fails(&options, "/rgb: no images in this folder");
}

/* ---- refused files ------------------------------------------------------------------------- */

static void refuse(struct temporary *folder, const char *name, const char *text,
                   const char *message)
{
    const struct scene_options options = {.path = folder->path};
    temporary_text(folder, name, text);
    assert_open_fails(&options, message);
    assert_error(name);
    assert_error(folder->path);
}

static void refuse_each(struct temporary *folder, const char *name, const char *const (*cases)[2],
                        size_t count)
{
    make_capture(folder);
    for (size_t i = 0; i < count; i++)
        refuse(folder, name, cases[i][0], cases[i][1]);
}

static void test_refused_intrinsics(void **state)
{
    static const char *const cases[][2] = {
        {"", ": neither a matrix of 3x3 or 4x4 numbers nor a first line f cx cy 0"},
        {"35\n", ": neither a matrix"},
        {"1 2 3 4 5\n1\n", ": neither a matrix"},
        {"35 0 19 0\n0 36 16 0\n0 0 1 0\n", ": neither a matrix"},
        {"35 0 19\n0 36 16\n0 0 1\n0 0 0\n", ": neither a matrix"},
        {"35 0 19\n0 36 16 0\n0 0 1\n", ": line 2: 4 numbers, where the first line has 3"},
        {"\xff\xfe"
         "3",
         ": text in UTF-16; save it as UTF-8"},
        {"35 0 19\n0 x 16\n", ": line 2: not a number"},
        {"35 0 19\n0 3,6 16\n", ": line 2: not a number"},
        {"\n35 nan 19\n", ": line 2: not a finite number"},
        {"1e999 19 16 0\n", ": line 1: not a finite number"},
        {"35 0.5 19\n0 36 16\n0 0 1\n", ": row 1, column 2: 0.5, where a pinhole camera has 0"},
        {"35 0 19\n0 36 16\n0 0 2\n", ": row 3, column 3: 2, where a pinhole camera has 1"},
        {"35 0 19 1\n0 36 16 0\n0 0 1 0\n0 0 0 1\n", ": row 1, column 4: 1, where"},
        {"35 0 19\n0 -36 16\n0 0 1\n", ": focal length -36: out of range (0.001 to 1e+07)"},
        {"0 19 16 0\n", ": focal length 0: out of range"},
        {"2e7 19 16 0\n", ": focal length 2e+07: out of range"},
        {"35 40 16 0\n", ": cx cy: (40, 16) is not within "},
        {"35 19 -1e300 0\n", ": cx cy: (19, -1e+300) is not within "},
    };
    struct temporary *folder = *state;
    refuse_each(folder, "intrinsics.txt", cases, BASE_COUNT(cases));
    assert_error("/rgb/0_00.png, which has 40x30 pixels");
    const struct scene_options options = {.path = folder->path};
    temporary_file(folder, "intrinsics.txt", "35 19\0 16 0", 11);
    assert_open_fails(&options, "/intrinsics.txt: not a text (byte 5 is zero)");
    char *long_text = base_format("35 19 16 0\n%70000s", "");
    refuse(folder, "intrinsics.txt", long_text, ": larger than the limit of 65536 bytes");
    free(long_text);
}

static void test_refused_poses(void **state)
{
    static const char *const cases[][2] = {
        {"", ": 0 numbers in 0 lines are not a matrix of 4x4"},
        {"1 0 0 0\n0 1 0 0\n", ": 8 numbers in 2 lines are not a matrix of 4x4"},
        {"1 0 0 0 0 1\n0 0 0 0 1 0\n", ": 12 numbers in 2 lines are not a matrix of 4x4"},
        {"1 0 0 0 0 1 0 0\n0 0 1 0 0 0 0 1\n", ": 16 numbers in 2 lines are not"},
        {"1 0 0 0 0\n1 0 0\n0 0 1 0\n0 0 0 1\n", ": line 2: 3 numbers, where the first line has 5"},
        {"1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n1\n",
         ": line 5: 1 numbers, where the first line has 4"},
        {"1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 0\n", ": the last row is not 0 0 0 1"},
        {"1 0 0 0\n0 1 0 0\n0 0 1 0\n0 1 0 1\n", ": the last row is not 0 0 0 1"},
        {"1 0 0 0\n0 1 0 0\n0 0 -1 0\n0 0 0 1\n", ": the rotation part is a mirror image"},
        {"1 0 0 0\n0 1 0 0\n0 0 0 0\n0 0 0 1\n", ": the rotation part is degenerate"},
        {"1 1 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n", ": the rotation part is not a rotation"},
        {"1 0 0 2e9\n0 1 0 0\n0 0 1 0\n0 0 0 1\n", ": a number is not finite or beyond 1e9"},
        {"1 0 0 0\n0 1 0 inf\n0 0 1 0\n0 0 0 1\n", ": line 2: not a finite number"},
        {"1 0 0 0\n0 1 0 a\n", ": line 2: not a number"},
    };
    struct temporary *folder = *state;
    refuse_each(folder, "pose/0_01.txt", cases, BASE_COUNT(cases));
}

static void test_refused_boxes(void **state)
{
    static const char *const cases[][2] = {
        {"", ": 0 numbers are not xmin ymin zmin xmax ymax zmax voxelsize"},
        {"0 0 0 1 1\n", ": 5 numbers are not xmin"},
        {"0 0 0 1 1 1 1 1\n", ": 8 numbers are not xmin"},
        {"0 0 0 1 0 1 1\n", ": ymin 0 and ymax 0 are not the side of a box (-1e+09 to 1e+09)"},
        {"-2e9 0 0 1 1 1 1\n", ": xmin -2e+09 and xmax 1 are not the side"},
        {"0 0 0 1 1 2e9 1\n", ": zmin 0 and zmax 2e+09 are not the side"},
        {"0 0 0 1 1 1e-10 1\n", ": zmin 0 and zmax 1e-10 are not the side"},
        {"0 0 0 1 1 1 -1\n", ": voxelsize: -1 is out of range (0 to 1e+09)"},
        {"0 0 0\n1 1 nan 1\n", ": line 2: not a finite number"},
    };
    struct temporary *folder = *state;
    refuse_each(folder, "bbox.txt", cases, BASE_COUNT(cases));
}

/* Images of different sizes cannot share intrinsics in pixels. */
static void test_sizes(void **state)
{
    struct temporary *folder = *state;
    const struct scene_options options = {.path = folder->path};
    make_capture(folder);
    temporary_picture(folder, "rgb/1_05.png", 2 * WIDTH, 2 * HEIGHT, 0);
    assert_open_fails(&options, "/rgb/1_05.png has 80x60 pixels, wrong size: the first image has ");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, temporary_setup, temporary_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_same_as_transforms),
        TEST(test_intrinsics),
        TEST(test_other_layouts),
        TEST(test_box),
        TEST(test_splits),
        TEST(test_masks),
        TEST(test_detection),
        TEST(test_missing),
        TEST(test_refused_intrinsics),
        TEST(test_refused_poses),
        TEST(test_refused_boxes),
        TEST(test_sizes),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
