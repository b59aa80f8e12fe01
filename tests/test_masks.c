/* Tests masks, which select the pixels of a view that are used: files, search, downscaling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene/capture.h"
#include "scene/find.h"
#include "scene/image.h"
#include "scene/transforms.h"
#include "scenes.h"

#define POSE "[[1,0,0,0],[0,1,0,0],[0,0,1,0]]"

/* Writes a grey image of these values. */
static char *write_mask(struct temporary *folder, const char *name, const uint8_t *values,
                        uint32_t width, uint32_t height)
{
    char *path = temporary_path(folder, name);
    assert_ok(scene_image_write_png(path, values, width, height, 1));
    return path;
}

static void assert_used(const char *path, bool hides, uint32_t width, uint32_t height,
                        const char *wanted)
{
    uint8_t *used = NULL;
    const struct transforms_frame frame = {
        .mask_path = (char *)path, .width = width, .height = height};
    assert_ok(mask_check(&frame));
    assert_ok(mask_read(path, hides, EXIF_UPRIGHT, width, height, &used));
    for (uint32_t i = 0; i < width * height; i++)
        if (used[i] != (wanted[i] == '#'))
            fail_msg("pixel %u: %d", i, used[i]);
    free(used);
}

/* ---- reading ------------------------------------------------------------------------------- */

static void test_read(void **state)
{
    struct temporary *folder = *state;
    const uint8_t values[] = {0, 255, 128, 127, 200, 1}, labels[] = {0, 1, 1, 0, 0, 1};
    const uint8_t dark[6] = {0};
    char *path = write_mask(folder, "m.png", values, 3, 2);
    assert_used(path, false, 3, 2, ".##.#.");
    assert_used(path, true, 3, 2, "#..#.#");
    assert_used(write_mask(folder, "labels.png", labels, 3, 2), false, 3, 2, ".##..#");
    char *nothing = write_mask(folder, "dark.png", dark, 3, 2);
    assert_used(nothing, false, 3, 2, "......");
    assert_used(nothing, true, 3, 2, "######");
    const uint8_t colors[] = {255, 0, 0, 0, 90, 0, 0, 0, 255}; /* the brightest channel decides */
    char *colored = temporary_path(folder, "colors.png");
    assert_ok(scene_image_write_png(colored, colors, 3, 1, 3));
    assert_used(colored, false, 3, 1, "#.#");
}

/* Checks a mask with alpha, of grey or, if `channels` is 4, colour pixels. */
static void assert_alpha(struct temporary *folder, uint32_t channels, const uint8_t *pixels,
                         uint32_t count, const char *wanted)
{
    const struct image_png image = {pixels, count, 1, channels, 8};
    struct base_text text = {0};
    assert_true(image_png_encode(&image, &text));
    char *path = temporary_file(folder, "alpha.png", text.data, text.size);
    free(text.data);
    assert_used(path, false, count, 1, wanted);
}

/* If alpha varies, it decides in masks of one colour and in cut-out pictures, whose colours have no
 * meaning; in drawn masks a used pixel is bright and visible. Otherwise the colours decide. */
static void test_alpha(void **state)
{
    struct temporary *folder = *state;
    const uint8_t white[] = {255, 255, 255, 0, 255, 128, 255, 127},
                  black[] = {0, 255, 0, 0, 0, 200, 0, 100};
    assert_alpha(folder, 2, white, 4, "#.#.");
    assert_alpha(folder, 2, black, 4, "#.#.");
    const uint8_t opaque[] = {255, 255, 0, 255, 90, 255, 200, 255},
                  faint[] = {255, 100, 0, 100, 90, 100, 200, 100};
    assert_alpha(folder, 2, opaque, 4, "#..#");
    assert_alpha(folder, 2, faint, 4, "#..#");
    const uint8_t nearly[] = {255, 255, 0, 250, 90, 200, 200, 255},
                  none[] = {255, 0, 0, 0, 90, 0, 200, 0};
    assert_alpha(folder, 2, nearly, 4, "#..#"); /* alpha hides no pixel */
    assert_alpha(folder, 2, none, 4, "#..#");
    const uint8_t nothing[] = {255, 0, 255, 0, 255, 0};
    assert_alpha(folder, 2, nothing, 3, "...");
    const uint8_t hidden_colors[] = {255, 255, 9,   0,
                                     200, 0,   255, 255}; /* arbitrary colours where alpha is 0 */
    assert_alpha(folder, 2, hidden_colors, 4, "#..#");
    const uint8_t photograph[] = {20,  30,  10, 255, 120, 90,  80, 255,
                                  200, 100, 90, 255, 60,  120, 30, 0};
    assert_alpha(folder, 4, photograph, 4, "###.");
    const uint8_t drawn[] = {255, 255, 0, 255, 255, 0, 0, 0, 255, 255, 0, 255, 255, 200};
    assert_alpha(folder, 2, drawn, 7, "#...#.#");
    const uint8_t ones[] = {1, 1, 1, 0, 1, 1, 1, 0}; /* alpha of 0 and 1 */
    assert_alpha(folder, 2, ones, 4, "#.#.");
}

/* A missing mask is not searched for among the images. */
static void assert_no_mask(struct temporary *folder, const char *name)
{
    const struct scene_options options = {.path = folder->path};
    char *text =
        base_format("{\"fl_x\": 4, \"frames\": [{\"file_path\": \"a.png\", \"mask_path\": \"%s\","
                    "\"transform_matrix\": " POSE "}]}",
                    name);
    temporary_picture(folder, "a.png", 4, 2, 1);
    temporary_text(folder, "transforms_train.json", text);
    free(text);
    assert_open_fails(&options, "transforms_train.json: frames[0].mask_path: no file ");
}

static void test_no_mask(void **state)
{
    assert_no_mask(*state, "masks/a.png");
    assert_no_mask(*state, "a.jpg");
}

static void test_no_mask_other_case(void **state)
{
    assert_no_mask(*state, "A.PNG");
}

/* 16-bit masks may use 0 and 1, too. */
static void test_wide(void **state)
{
    struct temporary *folder = *state;
    const uint16_t labels[] = {0, 1, 1, 0}, values[] = {32767, 32768, 65535, 0};
    char *path = temporary_path(folder, "wide.png");
    assert_ok(scene_image_write_png16(path, labels, 4, 1));
    assert_used(path, false, 4, 1, ".##.");
    assert_ok(scene_image_write_png16(path, values, 4, 1));
    assert_used(path, false, 4, 1, ".##.");
}

/* A smaller mask is repeated; of a larger mask at least half of a pixel must be bright. */
static void test_whole_factors(void **state)
{
    struct temporary *folder = *state;
    const uint8_t two[] = {0, 255};
    assert_used(write_mask(folder, "small.png", two, 2, 1), false, 6, 3, "...###...###...###");
    const uint8_t eight[] = {255, 0, 0, 0, 0,   255, 0, 0, /* second row: */
                             255, 0, 0, 0, 255, 255, 0, 9};
    assert_used(write_mask(folder, "large.png", eight, 8, 2), false, 4, 1, "#.#.");
    assert_used(write_mask(folder, "larger.png", eight, 8, 2), true, 4, 1, ".#.#");
}

static void test_wrong_sizes(void **state)
{
    struct temporary *folder = *state;
    static const uint32_t wrong[][2] = {{3, 3}, {5, 2}, {6, 1}, {2, 2}, {1, 3}, {9, 8}};
    const uint8_t values[6] = {0};
    char *path = write_mask(folder, "m.png", values, 3, 2);
    uint8_t *used = NULL;
    for (size_t i = 0; i < BASE_COUNT(wrong); i++) {
        const struct transforms_frame frame = {
            .mask_path = path, .width = wrong[i][0], .height = wrong[i][1]};
        assert_int_equal(mask_check(&frame), VKN_BAD_INPUT);
        assert_error("/m.png: this mask of 3x2 pixels does not fit its image of ");
        assert_int_equal(mask_read(path, false, EXIF_UPRIGHT, wrong[i][0], wrong[i][1], &used),
                         VKN_BAD_INPUT);
        assert_null(used);
    }
    path = temporary_text(folder, "broken.png", "\x89PNG\r\n");
    assert_int_equal(
        mask_check(&(struct transforms_frame){.mask_path = path, .width = 3, .height = 2}),
        VKN_BAD_INPUT);
    assert_error("/broken.png: ");
    assert_int_equal(mask_read(path, false, EXIF_UPRIGHT, 3, 2, &used), VKN_BAD_INPUT);
}

/* ---- finding ------------------------------------------------------------------------------- */

static void assert_found(const struct temporary *folder, const char *image, const char *wanted)
{
    char *path = NULL;
    struct finder *finder = NULL;
    assert_ok(finder_open(folder->path, NULL, &finder));
    assert_ok(mask_find(finder, image, &path));
    finder_close(&finder);
    if (wanted == NULL)
        assert_null(path);
    else
        assert_string_equal(path + strlen(folder->path) + 1, wanted);
    free(path);
}

static void test_find(void **state)
{
    struct temporary *folder = *state;
    assert_found(folder, "a.jpg", NULL);
    temporary_text(folder, "a.png", "");
    assert_found(folder, "a.jpg", "a.png");
    temporary_text(folder, "a.jpg", "");
    assert_found(folder, "a.jpg", "a.jpg");
    temporary_text(folder, "a.jpg.png", "");
    assert_found(folder, "a.jpg", "a.jpg.png");
    temporary_text(folder, "in.one/b.png", "");
    assert_found(folder, "in.one/b", "in.one/b.png");
    assert_found(folder, "in.one/c", NULL);
    assert_found(folder, "b.jpg", NULL);
    temporary_text(folder, "d.jpeg", "");
    assert_found(folder, "d.png", "d.jpeg");
}

static void test_find_any_case(void **state)
{
    struct temporary *folder = *state;
    temporary_text(folder, "c.JPG.PNG", "");
    assert_found(folder, "c.jpg", "c.JPG.PNG");
    temporary_text(folder, "e.JPG", "");
    temporary_text(folder, "E.jpg", "");
    struct finder *finder = NULL;
    char *path = NULL;
    assert_ok(finder_open(folder->path, NULL, &finder));
    assert_int_equal(mask_find(finder, "e.jpg", &path), VKN_BAD_INPUT);
    assert_error("/e.JPG may be its mask");
    assert_null(path);
    finder_close(&finder);
}

/* COLMAP's masks are in a folder beside the images. */
static void check_captures(struct temporary *folder, const char *masks)
{
    const uint8_t values[6] = {0};
    char name[] = "left/a.jpg";
    struct transforms_frame frame = {.file_path = name};
    struct transforms transforms = {.file = name, .frames = &frame, .count = 1};
    frame.image_path = temporary_picture(folder, "images/left/a.png", 6, 4, 0);
    assert_ok(capture_measure(folder->path, NULL, &transforms));
    assert_null(frame.mask_path);
    char *mask = write_mask(folder, masks, values, 3, 2);
    assert_ok(capture_measure(folder->path, NULL, &transforms));
    assert_string_equal(frame.mask_path, mask);
    assert_false(frame.mask_inverted);
    free(frame.mask_path);
    write_mask(folder, masks, values, 2, 3);
    assert_int_equal(capture_measure(folder->path, NULL, &transforms), VKN_BAD_INPUT);
    assert_error("a.jpg.png: this mask of 2x3 pixels does not fit its image of 6x4");
    free(frame.mask_path);
}

static void test_find_for_captures(void **state)
{
    check_captures(*state, "masks/left/a.jpg.png");
}

static void test_captures_any_case(void **state)
{
    check_captures(*state, "Masks/left/a.jpg.png");
}

/* ---- downscaling ----------------------------------------------------------------------------- */

/* Means are of the used pixels; a block is used if at least half of it is. */
static void test_downscale(void **state)
{
    (void)state;
    uint8_t rgba[4 * 2 * 4];
    for (size_t i = 0; i < BASE_COUNT(rgba); i++)
        rgba[i] = i % 4 == 3 ? 255 : (uint8_t)(i / 4 * 10);
    const uint8_t used[] = {1, 0, 1, 0, /* second row: */ 0, 1, 0, 0}, none[8] = {0};
    uint32_t pixels[8];
    assert_false(image_downscale(rgba, used, 4, 2, 2, pixels));
    assert_int_equal(pixels[0], 25u | 25u << 8 | 25u << 16 | 255u << 24); /* (0 + 50) / 2 */
    assert_int_equal(pixels[1], SCENE_IGNORED);
    assert_false(image_downscale(rgba, used, 4, 2, 1, pixels));
    assert_int_equal(pixels[2], 20u | 20u << 8 | 20u << 16 | 255u << 24);
    assert_int_equal(pixels[3], SCENE_IGNORED);
    uint32_t small[2];
    image_shrink(pixels, 4, 2, 2, small);
    assert_int_equal(small[0], 25u | 25u << 8 | 25u << 16 | 255u << 24);
    assert_int_equal(small[1], SCENE_IGNORED);
    assert_false(image_downscale(rgba, none, 4, 2, 2, pixels));
    assert_int_equal(pixels[0], SCENE_IGNORED);
    rgba[3] = 0; /* the only transparent pixel in use */
    assert_true(image_downscale(rgba, used, 4, 2, 1, pixels));
    assert_int_equal(pixels[0], 0);
}

/* ---- scenes -------------------------------------------------------------------------------- */

static struct vkn_scene *open_masked(struct temporary *folder, const char *top, uint32_t downscale)
{
    char *text = base_format("{%s\"fl_x\": 4, \"w\": 4, \"h\": 2, \"frames\": ["
                             "{\"file_path\": \"a.png\", \"mask_path\": \"./masks/a.png\","
                             "\"transform_matrix\": " POSE "},"
                             "{\"file_path\": \"b.png\", \"transform_matrix\": " POSE "}]}",
                             top);
    temporary_text(folder, "transforms_train.json", text);
    free(text);
    temporary_picture(folder, "a.png", 4, 2, 1);
    temporary_picture(folder, "b.png", 4, 2, 2);
    struct vkn_scene *scene = NULL;
    struct scene_options options = {.path = folder->path, .downscale = downscale};
    assert_ok(scene_open(&options, &scene));
    assert_ok(scene_load(scene, SCENE_TRAIN, NULL, NULL));
    return scene;
}

static void assert_counts(const uint32_t *pixels, size_t count, const char *wanted)
{
    for (size_t i = 0; i < count; i++)
        if ((pixels[i] != SCENE_IGNORED) != (wanted[i] == '#'))
            fail_msg("pixel %zu: %08x", i, pixels[i]);
}

static void test_scene(void **state)
{
    struct temporary *folder = *state;
    const uint8_t keep[] = {255, 255, 0, 0, 255, 0, 0, 255}, hide[] = {9, 0};
    write_mask(folder, "masks/a.png", keep, 4, 2);
    write_mask(folder, "dynamic_mask_b.png", hide, 2, 1);
    struct vkn_scene *scene = open_masked(folder, "", 1);
    struct scene_split *train = &scene->splits[SCENE_TRAIN];
    assert_counts(train->pixels, 16, "##..#..#..##..##");
    assert_int_equal(train->pixels[1], 1u | 1u << 16 | 255u << 24);
    assert_false(train->has_alpha);
    uint32_t view[8];
    assert_ok(scene_read_view(scene, SCENE_TRAIN, 1, 1, view));
    assert_memory_equal(view, train->pixels + 8, sizeof(view));
    scene_close(&scene);
    scene = open_masked(folder, "", 2);
    assert_counts(scene->splits[SCENE_TRAIN].pixels, 4, "#..#");
    scene_close(&scene);
}

/* Perspective: r (1 - 0.3 r^2) grows up to 0.703, 2.8 of the 4 pixels right of the centre; fisheye:
 * theta (1 - theta^2 / 3) grows up to 1 radian. */
static void test_lens_limits(void **state)
{
    struct temporary *folder = *state;
    const uint8_t all[8] = {255, 255, 255, 255, 255, 255, 255, 255};
    write_mask(folder, "masks/a.png", all, 4, 2);
    base_log_threshold(BASE_LOG_NOTHING);
    struct vkn_scene *scene = open_masked(folder, "\"k1\": -0.3, \"cx\": 0, \"cy\": 0.5,", 1);
    assert_counts(scene->splits[SCENE_TRAIN].pixels, 16, "###.###.###.###.");
    scene_close(&scene);
    scene = open_masked(folder,
                        "\"is_fisheye\": true, \"k1\": -0.333333333, \"cx\": 0, \"cy\": 0.5,", 1);
    assert_counts(scene->splits[SCENE_TRAIN].pixels, 16, "###.##..###.##..");
    scene_close(&scene);
    base_log_threshold(BASE_LOG_INFO);
}

static void test_bad_masks(void **state)
{
    struct temporary *folder = *state;
    struct scene_options options = {.path = folder->path};
    const uint8_t values[6] = {0};
    write_mask(folder, "masks/a.png", values, 2, 1);
    struct vkn_scene *scene = open_masked(folder, "", 1);
    write_mask(folder, "masks/a.png", values, 3, 2); /* after opening */
    uint32_t pixels[8];
    scene_close(&scene);
    write_mask(folder, "masks/a.png", values, 2, 1);
    assert_ok(scene_open(&options, &scene));
    write_mask(folder, "masks/a.png", values, 3, 2);
    assert_int_equal(scene_read_view(scene, SCENE_TRAIN, 0, 1, pixels), VKN_BAD_INPUT);
    assert_error("/masks/a.png: this mask of 3x2 pixels does not fit its image of 4x2");
    scene_close(&scene);
    assert_open_fails(&options, "/masks/a.png: this mask of 3x2 pixels does not fit");
    temporary_text(folder, "masks/a.png", "P5 no mask");
    assert_open_fails(&options,
                      "/masks/a.png: not a PNG, JPEG, WebP, TIFF, BMP, TGA, GIF or HDR file");
    unlink(temporary_path(folder, "masks/a.png"));
    assert_open_fails(&options,
                      "transforms_train.json: frames[0].mask_path: no file ./masks/a.png");
    temporary_text(folder, "transforms_train.json",
                   "{\"fl_x\": 4, \"frames\": [{\"file_path\": \"a.png\", \"mask_path\": 7,"
                   "\"transform_matrix\": " POSE "}]}");
    assert_open_fails(&options, "transforms_train.json: frames[0].mask_path: not a string");
}

/* Masks that hide every pixel are an error of loading. */
static void test_all_hidden(void **state)
{
    struct temporary *folder = *state;
    struct scene_options options = {.path = folder->path};
    const uint8_t values[2] = {0};
    write_mask(folder, "masks/a.png", values, 2, 1);
    struct vkn_scene *scene = open_masked(folder, "", 1); /* the other view has no mask */
    scene_close(&scene);
    temporary_text(folder, "transforms_train.json",
                   "{\"fl_x\": 4, \"frames\": [{\"file_path\": \"a.png\", \"mask_path\": "
                   "\"masks/a.png\", \"transform_matrix\": " POSE "}]}");
    assert_ok(scene_open(&options, &scene));
    assert_int_equal(scene_load(scene, SCENE_TRAIN, NULL, NULL), VKN_BAD_INPUT);
    assert_error("masks: they hide every pixel of the training images");
    assert_null(scene->splits[SCENE_TRAIN].pixels);
    scene_close(&scene);
}

int main(void)
{
#define TEST(function) \
    cmocka_unit_test_setup_teardown(function, temporary_setup, temporary_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_read),
        TEST(test_whole_factors),
        TEST(test_wrong_sizes),
        TEST(test_find),
        TEST(test_find_any_case),
        TEST(test_find_for_captures),
        TEST(test_captures_any_case),
        TEST(test_downscale),
        TEST(test_scene),
        TEST(test_lens_limits),
        TEST(test_bad_masks),
        TEST(test_all_hidden),
        TEST(test_alpha),
        TEST(test_wide),
        TEST(test_no_mask),
        TEST(test_no_mask_other_case),
    };
    return cmocka_run_group_tests_name("masks", tests, NULL, NULL);
}
