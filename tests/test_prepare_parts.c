/* Tests parts of prepare: order of names, EXIF, rotation and downscaling of photographs, and the
 * advice to users who train on a folder of photographs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "photographs.h"
#include "prepare/internal.h"
#include "scene/image.h"

/* ---- names, numbers, EXIF -------------------------------------------------------------------- */

static void test_order(void **state)
{
    static const char *const sorted[] = {
        "",           "1.jpg",      "01.jpg",       "9.jpg", "10.jpg", "IMG_2.jpg",
        "IMG_2a.jpg", "IMG_10.jpg", "IMG_10_1.jpg", "a",     "b2",     "b10"};
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(sorted); i++)
        for (size_t k = 0; k < BASE_COUNT(sorted); k++) {
            int order = files_natural_order(sorted[i], sorted[k]);
            bool same_number =
                strcmp(sorted[i] + (sorted[i][0] == '0'), sorted[k] + (sorted[k][0] == '0')) == 0;
            if (!same_number)
                assert_true((order < 0) == (i < k) && (order > 0) == (i > k));
            else
                assert_true((order == 0) == (i == k));
        }
    assert_true(files_ends_with("a.JPG", "png jpg") && !files_ends_with("a.jpgx", "png jpg"));
    assert_true(!files_ends_with("jpg", "jpg") && !files_ends_with("a.", "jpg"));
}

static void test_counts(void **state)
{
    size_t done = 0, total = 0;
    (void)state;
    assert_true(colmap_read_count("Processed file [3/50]", &done, &total));
    assert_true(done == 3 && total == 50);
    assert_true(
        colmap_read_count("I1125 10:00:00 1 a.cc:2] Processing image [4/6]", &done, &total));
    assert_true(done == 4 && total == 6);
    assert_true(colmap_read_count("Matching block [2/3, 1/4] in 1s", &done, &total));
    assert_true(done == 5 && total == 12);
    assert_false(colmap_read_count("[7/3] [0/2] [x/2] [1/99999999999999999999] [", &done, &total));
}

/* The exposure of the file of make_exif, and without some of its numbers. */
static void check_exposure(struct exif exif)
{
    float exposure;
    assert_true(exif_exposure(&exif, &exposure));
    assert_true(fabs((double)exposure - log2(400 / 50.0 / (2.8 * 2.8))) < 1e-6);
    exif.aperture = 0; /* counts as 1 */
    assert_true(exif_exposure(&exif, &exposure));
    assert_true(exposure == 3);
    exif.iso = 0;
    assert_false(exif_exposure(&exif, &exposure));
}

static void test_exif(void **state)
{
    (void)state;
    for (unsigned little = 0; little < 2; little++) {
        uint8_t data[128];
        size_t size = make_exif(data, 6, little);
        struct exif exif = exif_read(data, size);
        assert_int_equal(exif.orientation, 6);
        assert_int_equal(data[exif.orientation_at], 6);
        assert_true(fabs(exif.focal - 4.25) < 1e-9);
        check_exposure(exif);
        assert_int_equal(exif.segment, 2);
        assert_int_equal(exif.segment_size, size - 2);
        make_exif(data, 9, little); /* there are eight */
        assert_int_equal(exif_read(data, size).orientation, 1);
        /* Truncated anywhere, or with any byte changed: sanitizers notice reads beyond the end. */
        for (size_t length = 0; length < size; length++) {
            uint8_t *part = base_alloc(length + 1, 1);
            make_exif(data, 6, little);
            memcpy(part, data, length);
            exif_read(part, length);
            free(part);
            part = base_alloc(size, 1);
            memcpy(part, data, size);
            part[length] = 0xff;
            exif_read(part, size);
            free(part);
        }
    }
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Corners of the upright picture (top left, top right, bottom left, bottom right) for each
 * orientation of a stored picture with 0 1 above 2 3. */
static const uint8_t corners[8][4] = {{0, 1, 2, 3}, {1, 0, 3, 2}, {3, 2, 1, 0}, {2, 3, 0, 1},
                                      {0, 2, 1, 3}, {2, 0, 3, 1}, {3, 1, 2, 0}, {1, 3, 0, 2}};
static void test_upright(void **state)
{
    struct temporary *folder = *state;
    char *stored = temporary_path(folder, "stored.png"),
         *upright = temporary_path(folder, "upright.jpg");
    write_corners(stored);
    for (unsigned orientation = 1; orientation <= 8; orientation++) {
        uint8_t exif[128], *rgba = NULL;
        uint32_t width, height;
        size_t size = make_exif(exif, 1, true);
        assert_ok(scene_copy_upright(stored, orientation, exif + 2, size - 2, upright));
        assert_ok(scene_image_read(upright, &rgba, &width, &height));
        assert_int_equal(width, orientation < 5 ? 32 : 16);
        assert_int_equal(height, orientation < 5 ? 16 : 32);
        for (uint32_t corner = 0; corner < 4; corner++) {
            uint32_t x = corner % 2 ? width - 3 : 2, y = corner / 2 ? height - 3 : 2;
            assert_true(
                abs((int)rgba[4 * (y * width + x)] - GREY(corners[orientation - 1][corner])) < 4);
        }
        free(rgba);
        char *data = NULL;
        size_t data_size = 0;
        assert_ok(base_file_read(upright, 1 << 20, &data, &data_size));
        assert_true(fabs(exif_read((uint8_t *)data, size).focal - 4.25) < 1e-9);
        free(data);
    }
}

/* Training on a smaller copy equals training with downscaling, with a mask too. */
static void test_smaller(void **state)
{
    struct temporary *folder = *state;
    enum { WIDTH = 50, HEIGHT = 30, FACTOR = 4 };
    uint8_t pixels[WIDTH * HEIGHT * 4], used[WIDTH * HEIGHT], *rgba = NULL;
    uint32_t expected[(WIDTH / FACTOR) * (HEIGHT / FACTOR)], width, height;
    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = i % 4 == 3 ? 255 : (uint8_t)(i * 37 % 251);
    for (size_t i = 0; i < sizeof(used); i++)
        used[i] = i % 7 < 5 && i % WIDTH > 4 ? 255 : 0;
    char *image = temporary_path(folder, "a.png"), *mask = temporary_path(folder, "mask.png");
    char *copy = temporary_path(folder, "copy.png");
    assert_ok(scene_image_write_png(image, pixels, WIDTH, HEIGHT, 4));
    assert_ok(scene_image_write_png(mask, used, WIDTH, HEIGHT, 1));
    assert_ok(scene_copy_smaller(image, mask, &(uint32_t){FACTOR}, &copy, 1));
    for (size_t i = 0; i < sizeof(used); i++)
        used[i] = used[i] ? 1 : 0;
    image_downscale(pixels, used, WIDTH, HEIGHT, FACTOR, expected);
    assert_ok(scene_image_read(copy, &rgba, &width, &height));
    assert_true(width == WIDTH / FACTOR && height == HEIGHT / FACTOR);
    size_t ignored = 0;
    for (size_t i = 0; i < BASE_COUNT(expected); i++) {
        ignored += expected[i] == SCENE_IGNORED ? 1 : 0;
        for (size_t c = 0; c < 3 && expected[i] != SCENE_IGNORED; c++)
            assert_int_equal(rgba[4 * i + c], expected[i] >> (8 * c) & 255);
    }
    assert_true(ignored > 0 && ignored < BASE_COUNT(expected) / 2);
    free(rgba);
}

/* Training on a folder of photographs fails with advice. */
static void test_train_says(void **state)
{
    struct temporary *folder = *state;
    struct scene_options options = {.path = temporary_path(folder, "given")};
    for (uint8_t i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof(name), "given/p%u.png", i);
        temporary_picture(folder, name, 40, 30, i);
    }
    char command[512];
    snprintf(command, sizeof(command),
             "given: 5 photographs without poses; find them with: vknerf prepare %s --out %s-scene",
             options.path, options.path);
    assert_open_fails(&options, command);
    assert_int_equal(chdir(folder->path), 0);
    options.path = "given//";
    assert_open_fails(&options, "vknerf prepare given// --out given-scene");
    temporary_picture(folder, "-a b/it's.png", 20, 20, 0);
    options.path = "-a b";
    assert_open_fails(&options, "-a b: 1 photograph without poses; find them with: vknerf prepare "
                                "'./-a b' --out './-a b-scene'");
    assert_int_equal(chdir(options.path), 0);
    options.path = ".";
    assert_open_fails(&options, "vknerf prepare . --out scene");
    options.path = temporary_text(folder, "walk.MP4", "");
    assert_open_fails(&options, "walk.MP4: a video without poses; find them with: vknerf prepare ");
    assert_error("/walk-scene");
    static const struct {
        const char *file, *says;
    } files[] = {
        {"photo.PNG", "photo.PNG: one picture; a scene is a folder"},
        {"scene.zip", "scene.zip: an archive; unpack it"},
        {"points.ply", "points.ply: points, splats or a mesh"},
        {"a.safetensors", "a.safetensors: a checkpoint; go on with it by --resume"},
        {"model.ckpt", "model.ckpt: another program's model"},
        {"database.db", "database.db: COLMAP's database"},
        {"config.yml", "config.yml: another program's configuration"},
    };
    for (size_t i = 0; i < BASE_COUNT(files); i++) {
        options.path = temporary_text(folder, files[i].file, "");
        assert_open_fails(&options, files[i].says);
    }
    temporary_text(folder, "a run/metrics.jsonl", "");
    options.path = temporary_path(folder, "a run");
    assert_open_fails(&options,
                      "a run: a run that saved nothing, not a scene; how it ended: vknerf info '");
    temporary_text(folder, "a run/checkpoint.safetensors", "");
    assert_open_fails(&options, "a run: a run, not a scene; go on with: vknerf train --resume '");
    temporary_text(folder, "empty/.hidden", "");
    options.path = temporary_path(folder, "empty");
    assert_open_fails(&options, "empty: no scene in this folder: it is empty");
    temporary_text(folder, "several/notes.txt", "");
    temporary_text(folder, "several/lego/transforms_train.json", "{}");
    options.path = temporary_path(folder, "several");
    assert_open_fails(&options, "several: no scene in this folder, but a scene in ");
    assert_error("several/lego");
    temporary_picture(folder, "telephone/DCIM/a.png", 20, 20, 0);
    options.path = temporary_path(folder, "telephone");
    assert_open_fails(&options,
                      "telephone: no scene in this folder, but photographs without poses in ");
    temporary_picture(folder, "card/DCIM/100/a.png", 20, 20, 0);
    options.path = temporary_path(folder, "card");
    assert_open_fails(&options, "card: no scene in this folder, but photographs without poses in ");
    assert_error("card/DCIM/100");
    temporary_text(folder, "heic/1.HEIC", "");
    temporary_text(folder, "heic/2.tif", "");
    options.path = temporary_path(folder, "heic");
    assert_open_fails(&options,
                      "heic: 2 photographs without poses; find them with: vknerf prepare ");
    temporary_text(folder, "clips/b.mov", "");
    options.path = temporary_path(folder, "clips");
    assert_open_fails(&options,
                      "clips/b.mov: a video without poses; find them with: vknerf prepare ");
    temporary_picture(folder, "whole/images/a.png", 20, 20, 0);
    temporary_text(folder, "whole/sparse/0/cameras.txt", "");
    options.path = temporary_path(folder, "whole/images");
    char *whole = realpath(temporary_path(folder, "whole"), NULL);
    char *message =
        base_format("whole/images: the photographs of a scene, not the scene: name %s", whole);
    assert_open_fails(&options, message);
    free(message);
    free(whole);
    temporary_text(folder, "begun/prepare.json", "{}");
    options.path = temporary_path(folder, "begun");
    assert_open_fails(
        &options,
        "begun: this scene is only partly prepared; run the same vknerf prepare again to continue");
    assert_int_equal(chdir("/"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_exif),
        cmocka_unit_test_setup_teardown(test_upright, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_smaller, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_train_says, temporary_setup, temporary_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
