/* Image files: every kind that is read and written, every way of being broken, and downscaling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "scene/image.h"
#include "scenes.h"

/* A file of the fuzzer's corpus; tests run in the source folder unless the environment names it. */
static void read_seed(const char *name, uint8_t **data, size_t *size)
{
    const char *source = getenv("VKNERF_SOURCE_DIR");
    char *path = base_format("%s/tests/fuzz/corpus/scene/%s", source != NULL ? source : ".", name);
    char *bytes = NULL;
    assert_ok(base_file_read(path, 1 << 20, &bytes, size));
    *data = (uint8_t *)bytes;
    free(path);
}

/* ---- PNG ----------------------------------------------------------------------------------- */

static void test_png_round_trip(void **state)
{
    struct temporary *folder = *state;
    const uint8_t pixels[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0};
    for (uint32_t channels = 1; channels <= 4; channels++) {
        uint32_t width = channels == 3 ? 1 : 4 / channels * 2, height = channels == 3 ? 5 : 2;
        char *path = temporary_path(folder, "a.png");
        uint32_t w = 0, h = 0;
        uint8_t *rgba = NULL;
        assert_ok(scene_image_write_png(path, pixels, width, height, channels));
        assert_ok(scene_image_size(path, &w, &h));
        assert_int_equal(w, width);
        assert_int_equal(h, height);
        assert_ok(scene_image_read(path, &rgba, &w, &h));
        for (uint32_t i = 0; i < width * height; i++) {
            const uint8_t *p = pixels + (size_t)i * channels;
            bool grey = channels < 3;
            const uint8_t wanted[4] = {p[0], grey ? p[0] : p[1], grey ? p[0] : p[2],
                                       channels % 2 == 0 ? p[channels - 1] : 255};
            assert_memory_equal(rgba + (size_t)4 * i, wanted, 4);
        }
        free(rgba);
    }
}

static void test_png_kinds(void **state)
{
    (void)state;
    uint8_t *data = NULL, *rgba = NULL;
    size_t size = 0;
    uint32_t width = 0, height = 0;
    read_seed("palette.png", &data, &size); /* 5x2, 4 bits, entry 0 transparent, 1 half so */
    assert_ok(image_decode("palette", data, size, &rgba, &width, &height));
    assert_int_equal(width * 10 + height, 52);
    assert_memory_equal(rgba,
                        "\0\1\2\0"
                        "\3\4\5\x80"
                        "\6\7\10\xff"
                        "\11\12\13\xff",
                        16);
    free(rgba);
    free(data);
    read_seed("grey16.png", &data, &size); /* 16 bits */
    assert_ok(image_decode("grey16", data, size, &rgba, &width, &height));
    assert_memory_equal(rgba,
                        "\1\1\1\xff"
                        "\3\3\3\xff"
                        "\5\5\5\xff"
                        "\7\7\7\xff",
                        16);
    free(rgba);
    free(data);
}

static void add_chunk(struct base_text *png, const char *type, const uint8_t *data, uint32_t size)
{
    uint8_t body[256];
    memcpy(body, type, 4);
    memcpy(body + 4, data, size);
    uint32_t crc = image_crc32(body, size + 4);
    const uint8_t length[4] = {0, 0, (uint8_t)(size >> 8), (uint8_t)size};
    const uint8_t check[4] = {(uint8_t)(crc >> 24), (uint8_t)(crc >> 16), (uint8_t)(crc >> 8),
                              (uint8_t)crc};
    base_text_add_bytes(png, length, 4);
    base_text_add_bytes(png, body, size + 4);
    base_text_add_bytes(png, check, 4);
}

/* A picture one pixel high of 16-bit samples; its deflate stream is one stored block. */
static struct base_text png_of_samples(const uint16_t *samples, uint32_t width, uint32_t channels)
{
    static const uint8_t colors[5] = {0, 0, 4, 2, 6};
    uint8_t header[13] = {[3] = (uint8_t)width, [7] = 1, [8] = 16, [9] = colors[channels]};
    uint8_t row[128] = {0x78, 1, 1};
    uint32_t size = 1 + 2 * width * channels, sums[2] = {1, 0};
    row[3] = (uint8_t)size;
    row[5] = (uint8_t)~size;
    row[6] = 0xff;
    row[7] = 0; /* no filter */
    for (uint32_t i = 0; i < width * channels; i++) {
        row[8 + 2 * i] = (uint8_t)(samples[i] >> 8);
        row[9 + 2 * i] = (uint8_t)samples[i];
    }
    for (uint32_t i = 0; i < size; i++) { /* Adler's checksum */
        sums[0] = (sums[0] + row[7 + i]) % 65521;
        sums[1] = (sums[1] + sums[0]) % 65521;
    }
    for (uint32_t i = 0; i < 4; i++)
        row[7 + size + i] = (uint8_t)(sums[1 - i / 2] >> (i % 2 ? 0 : 8));
    struct base_text png = {0};
    base_text_add_bytes(&png, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(&png, "IHDR", header, sizeof(header));
    add_chunk(&png, "IDAT", row, 11 + size);
    add_chunk(&png, "IEND", row, 0);
    return png;
}

/* 65535 / 255 = 257: a sample becomes the nearest multiple of 257, halves (128.5) there are none.
 */
static void test_png_16_bits(void **state)
{
    (void)state;
    static const uint16_t samples[] = {0,         128,         129,         257 + 128,
                                       257 + 129, 65535 - 129, 65535 - 128, 65535,
                                       0x7fff,    0x8000,      0x01ff,      0xfe00};
    static const uint8_t wanted[] = {0, 0, 1, 1, 2, 254, 255, 255, 127, 128, 2, 253};
    for (uint32_t channels = 1; channels <= 4; channels++) {
        uint32_t count = (uint32_t)BASE_COUNT(samples) / channels, width = 0, height = 0;
        struct base_text png = png_of_samples(samples, count, channels);
        uint8_t *rgba = NULL;
        assert_ok(
            image_decode("wide", (const uint8_t *)png.data, png.size, &rgba, &width, &height));
        assert_int_equal(width, count);
        assert_int_equal(height, 1);
        for (uint32_t i = 0; i < count; i++) {
            const uint8_t *p = wanted + (size_t)i * channels;
            bool grey = channels < 3;
            const uint8_t pixel[4] = {p[0], grey ? p[0] : p[1], grey ? p[0] : p[2],
                                      channels % 2 == 0 ? p[channels - 1] : 255};
            assert_memory_equal(rgba + (size_t)4 * i, pixel, 4);
        }
        free(rgba);
        for (size_t size = 0; size < png.size; size++) { /* cut off anywhere */
            assert_int_equal(
                image_decode("wide", (const uint8_t *)png.data, size, &rgba, &width, &height),
                VKN_BAD_INPUT);
            assert_error("wide: ");
            assert_null(rgba);
        }
        free(png.data);
    }
}

static void test_png_in_memory(void **state)
{
    struct temporary *folder = *state;
    char *path = temporary_picture(folder, "a.png", 7, 5, 9), *file = NULL;
    uint8_t *rgba = NULL, *png = NULL;
    uint32_t width = 0, height = 0;
    size_t size = 0, file_size = 0;
    assert_ok(scene_image_read(path, &rgba, &width, &height));
    assert_ok(scene_image_encode_png(rgba, width, height, 4, &png, &size));
    assert_ok(base_file_read(path, 1 << 20, &file, &file_size));
    assert_int_equal(size, file_size);
    assert_memory_equal(png, file, size);
    free(file);
    free(png);
    assert_int_equal(scene_image_encode_png(rgba, 0, 5, 4, &png, &size), VKN_ERROR);
    assert_null(png);
    assert_int_equal(scene_image_encode_png(rgba, 7, 5, 5, &png, &size), VKN_ERROR);
    char *impossible = temporary_impossible(folder, "a.png");
    assert_int_equal(scene_image_write_png(impossible, rgba, 7, 5, 4), VKN_BAD_INPUT);
    assert_error("/a.png: cannot be written: Not a directory");
    free(rgba);
}

/* ---- JPEG ---------------------------------------------------------------------------------- */

static void check_jpeg(const char *name, const uint8_t first[3], const uint8_t last[3])
{
    uint8_t *data = NULL, *rgba = NULL;
    size_t size = 0;
    uint32_t width = 0, height = 0;
    read_seed(name, &data, &size);
    assert_ok(image_decode(name, data, size, &rgba, &width, &height));
    assert_int_equal(width, 19);
    assert_int_equal(height, 13);
    for (size_t i = 0; i < 3; i++) { /* decoders differ a little in rounding and chroma filters */
        assert_true(abs(rgba[i] - first[i]) <= 12);
        assert_true(abs(rgba[4 * (19 * 13 - 1) + i] - last[i]) <= 12);
    }
    assert_int_equal(rgba[3], 255);
    free(rgba);
    free(data);
}

/* Corner pixels as libjpeg's djpeg gives them. */
static void test_jpeg_kinds(void **state)
{
    (void)state;
    check_jpeg("baseline.jpg", (const uint8_t[3]){0, 78, 165}, (const uint8_t[3]){68, 144, 193});
    check_jpeg("progressive.jpg", (const uint8_t[3]){0, 72, 179}, (const uint8_t[3]){75, 142, 194});
    check_jpeg("grey.jpg", (const uint8_t[3]){65, 65, 65}, (const uint8_t[3]){123, 123, 123});
}

/* A header behind a long comment is found, too. */
static void test_jpeg_long_prelude(void **state)
{
    struct temporary *folder = *state;
    uint8_t *data = NULL;
    size_t size = 0, padding = 65535 + 2;
    uint32_t width = 0, height = 0;
    read_seed("baseline.jpg", &data, &size);
    uint8_t *longer = base_alloc(size + padding, 1);
    memcpy(longer, data, 2);
    memcpy(longer + 2, "\xff\xfe\xff\xff", 4);
    memcpy(longer + 2 + padding, data + 2, size - 2);
    char *path = temporary_file(folder, "a.jpg", longer, size + padding);
    assert_ok(scene_image_size(path, &width, &height));
    assert_int_equal(width, 19);
    path = temporary_file(folder, "a.jpg", longer, padding);
    assert_int_equal(scene_image_size(path, &width, &height), VKN_BAD_INPUT);
    assert_error("a.jpg: truncated JPEG");
    free(longer);
    free(data);
}

/* ---- broken files -------------------------------------------------------------------------- */

static void check_refused(const uint8_t *data, size_t size, const char *message)
{
    uint8_t *rgba = NULL;
    uint32_t width = 0, height = 0;
    assert_int_equal(image_decode("x", data, size, &rgba, &width, &height), VKN_BAD_INPUT);
    assert_null(rgba);
    assert_error(message);
}

/* Cut anywhere, a file is refused; nothing half-decoded gets through. */
static void test_every_truncation(void **state)
{
    (void)state;
    static const char *const names[] = {"rgba.png", "palette.png", "baseline.jpg",
                                        "progressive.jpg", "grey.jpg"};
    for (size_t i = 0; i < BASE_COUNT(names); i++) {
        uint8_t *data = NULL;
        size_t size = 0;
        read_seed(names[i], &data, &size);
        check_refused(data, 0, "x: empty file");
        for (size_t cut = 8; cut < size; cut++)
            check_refused(data, cut, i < 2 ? "x: truncated PNG" : "x: truncated JPEG");
        free(data);
    }
}

/* Every byte of a PNG counts: signature, lengths, checksums. */
static void test_every_changed_byte(void **state)
{
    (void)state;
    uint8_t *data = NULL;
    size_t size = 0;
    read_seed("rgba.png", &data, &size);
    for (size_t i = 0; i < size * 8; i++) {
        data[i / 8] ^= (uint8_t)(1u << i % 8);
        check_refused(data, size, "x: ");
        data[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    free(data);
}

static void put_32(uint8_t *data, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        data[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void test_hostile_sizes(void **state)
{
    struct temporary *folder = *state;
    uint8_t *data = NULL;
    size_t size = 0;
    uint32_t width = 0, height = 0;
    read_seed("rgba.png", &data, &size);
    put_32(data + 16, 16384);
    put_32(data + 20, 16384);
    put_32(data + 29, image_crc32(data + 12, 17));
    check_refused(data, size, "x: truncated PNG (too little data)");
    data[24] = 16; /* bits: 2 GiB of samples and a byte a row */
    put_32(data + 29, image_crc32(data + 12, 17));
    check_refused(data, size, "x: 16384x16384 pixels of 16 bits are too many");
    data[24] = 8;
    put_32(data + 16, 16385);
    put_32(data + 29, image_crc32(data + 12, 17));
    check_refused(data, size, "x: 16385x16384 pixels are more than the limit of 16384x16384");
    char *path = temporary_file(folder, "huge.png", data, size);
    assert_int_equal(scene_image_size(path, &width, &height), VKN_BAD_INPUT);
    assert_error("huge.png: 16385x16384 pixels are more than the limit");
    put_32(data + 16, 0);
    check_refused(data, size, "x: corrupt PNG (empty image)");
    put_32(data + 8, 0xffffffffu);
    check_refused(data, size, "x: corrupt PNG (no header)");
    free(data);
}

static void test_corrupt_jpeg(void **state)
{
    (void)state;
    uint8_t *data = NULL;
    size_t size = 0, table = 0;
    read_seed("baseline.jpg", &data, &size);
    while (data[table] != 0xff || data[table + 1] != 0xc4)
        table++;
    data[table + 5] = 255; /* more codes of one bit than there can be */
    check_refused(data, size, "x: corrupt JPEG (Huffman table)");
    static const uint8_t bare[] = {0xff, 0xd8, 0xff, 0xd9, 0, 0};
    check_refused(bare, sizeof(bare), "x: corrupt JPEG (no picture)");
    static const uint8_t short_segment[] = {0xff, 0xd8, 0xff, 0xe0, 0, 1, 0, 0};
    check_refused(short_segment, sizeof(short_segment), "x: corrupt JPEG (segment length)");
    free(data);
}

static void test_not_images(void **state)
{
    struct temporary *folder = *state;
    uint8_t *rgba = NULL;
    uint32_t width = 0, height = 0;
    char *pipe = temporary_path(folder, "pipe.png");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(scene_image_size(pipe, &width, &height), VKN_BAD_INPUT);
    assert_error("pipe.png: not a regular file");
    assert_int_equal(scene_image_read(pipe, &rgba, &width, &height), VKN_BAD_INPUT);
    assert_int_equal(scene_image_read(folder->path, &rgba, &width, &height), VKN_BAD_INPUT);
    assert_error(": Is a directory");
    assert_int_equal(scene_image_read("none.png", &rgba, &width, &height), VKN_BAD_INPUT);
    assert_error("none.png: No such file or directory");
    char *text = temporary_text(folder, "text.png", "GIF89a and so on");
    assert_int_equal(scene_image_read(text, &rgba, &width, &height), VKN_BAD_INPUT);
    assert_error("text.png: neither a PNG nor a JPEG file");
}

/* ---- downscaling --------------------------------------------------------------------------- */

/* The block's red is 255 * 255 + 100 * 51 = 70125 over 4 * 255, 68.75; green (255 * 128 + 5100) /
 * 1020 = 37; blue 5100 / 1020 = 5; alpha 434 / 4 = 108.5. */
static void test_downscale_by_hand(void **state)
{
    (void)state;
    const uint8_t block[] = {255, 0, 0,   255, 0,   255, 0,   128, /* second row: */
                             0,   0, 255, 0,   100, 100, 100, 51};
    uint32_t pixel = 0;
    assert_true(image_downscale(block, NULL, 2, 2, 2, &pixel));
    assert_int_equal(pixel, 69u | 37u << 8 | 5u << 16 | 109u << 24);

    uint32_t four[4];
    assert_true(image_downscale(block, NULL, 2, 2, 1, four));
    assert_int_equal(four[0], 255u | 255u << 24);
    assert_int_equal(four[1], 128u << 8 | 128u << 24);
    assert_int_equal(four[2], 0);
    assert_int_equal(four[3], 20u | 20u << 8 | 20u << 16 | 51u << 24);
}

static void test_downscale_drops_edges(void **state)
{
    (void)state;
    uint8_t rgba[7 * 5 * 4];
    for (size_t i = 0; i < BASE_COUNT(rgba); i++)
        rgba[i] = i % 4 == 3 ? 255 : (uint8_t)(i / 4);
    uint32_t pixels[7] = {0};
    assert_false(image_downscale(rgba, NULL, 7, 5, 3, pixels)); /* 2 x 1 blocks of 3 x 3 */
    assert_int_equal(pixels[0] & 255, 8);
    assert_int_equal(pixels[1] & 255, 11);
    assert_int_equal(pixels[1] >> 24, 255);
    assert_int_equal(pixels[2], 0);
}

/* Premultiplied: no colour exceeds its alpha, also after rounding. */
static void test_downscale_stays_premultiplied(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int round = 0; round < 2000; round++) {
        uint8_t rgba[3 * 3 * 4];
        for (size_t i = 0; i < BASE_COUNT(rgba); i++) {
            random = random * 1664525u + 1013904223u;
            rgba[i] = (uint8_t)(random >> 24 > 200 ? 255 : random >> 24);
        }
        uint32_t pixel = 0;
        image_downscale(rgba, NULL, 3, 3, 3, &pixel);
        for (unsigned channel = 0; channel < 3; channel++)
            assert_true((pixel >> 8 * channel & 255) <= pixel >> 24);
    }
}

/* ---- loading ------------------------------------------------------------------------------- */

#define POSE "[[1,0,0,0],[0,1,0,0],[0,0,1,0]]"

static struct vkn_scene *open_three(struct temporary *folder)
{
    temporary_text(folder, "transforms_train.json",
                   "{\"camera_angle_x\": 0.8, \"frames\": ["
                   "{\"file_path\": \"a\", \"transform_matrix\": " POSE "},"
                   "{\"file_path\": \"b\", \"transform_matrix\": " POSE "},"
                   "{\"file_path\": \"c\", \"transform_matrix\": " POSE "}]}");
    temporary_picture(folder, "a.png", 6, 4, 10);
    temporary_picture(folder, "b.png", 6, 4, 20);
    temporary_picture(folder, "c.png", 6, 4, 30);
    struct vkn_scene *scene = NULL;
    struct scene_options options = {.path = folder->path, .downscale = 2};
    assert_ok(scene_open(&options, &scene));
    return scene;
}

static void note_progress(void *context, size_t done, size_t total)
{
    size_t *last = context;
    assert_true(done > *last && done <= total && total == 3);
    *last = done;
}

static void test_load(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene *scene = open_three(folder);
    struct scene_split *train = &scene->splits[SCENE_TRAIN];
    size_t done = 0;
    assert_null(train->pixels);
    assert_int_equal(train->pixel_count, 18);
    assert_ok(scene_load(scene, SCENE_TRAIN, note_progress, &done));
    assert_int_equal(done, 3);
    assert_false(train->has_alpha);
    /* Pixel (1, 1) of the second image: the mean of columns 2 and 3 is 2.5, rounded up. */
    assert_int_equal(train->pixels[6 + 4], 3u | 3u << 8 | 20u << 16 | 255u << 24);
    const uint32_t *pixels = train->pixels;
    assert_ok(scene_load(scene, SCENE_TRAIN, NULL, NULL));
    assert_ptr_equal(train->pixels, pixels);
    assert_ok(scene_load(scene, SCENE_TEST, NULL, NULL));
    scene_close(&scene);
}

static void take_progress(void *context, size_t done, size_t total)
{
    size_t *counts = context;
    counts[0] = done;
    counts[1] = total;
}

/* Of three views the middle one is another's, whose file is not even read until it is asked for;
 * all are the same from wherever they come. */
static void test_share(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene *scene = open_three(folder);
    struct scene_split *train = &scene->splits[SCENE_TRAIN];
    uint32_t whole[18], shared[6];
    size_t counts[2];
    assert_ok(scene_load(scene, SCENE_TRAIN, NULL, NULL));
    memcpy(whole, train->pixels, sizeof whole);
    scene_set_share(scene, SCENE_TRAIN, (struct scene_share){0, 4, 4}); /* all */
    assert_non_null(train->pixels);
    scene_set_share(scene, SCENE_TRAIN, (struct scene_share){0, 1, 2});
    assert_null(train->pixels);
    assert_int_equal(train->pixel_count, 12);
    assert_int_equal(train->cameras[2].first_pixel, 6);
    rename(train->cameras[1].image_path, temporary_path(folder, "kept"));
    assert_ok(scene_load(scene, SCENE_TRAIN, take_progress, counts));
    assert_true(counts[0] == 2 && counts[1] == 2);
    assert_memory_equal(train->pixels, whole, 24);
    assert_memory_equal(train->pixels + 6, whole + 12, 24);
    assert_int_equal(scene_read_view(scene, SCENE_TRAIN, 1, 1, shared), VKN_BAD_INPUT);
    rename(temporary_path(folder, "kept"), train->cameras[1].image_path);
    for (size_t view = 0; view < 3; view++) {
        assert_ok(scene_read_view(scene, SCENE_TRAIN, view, 1, shared));
        assert_memory_equal(shared, whole + 6 * view, sizeof shared);
    }
    scene_set_share(scene, SCENE_TRAIN, (struct scene_share){0});
    assert_true(!train->pixels && train->pixel_count == 18);
    assert_ok(scene_load(scene, SCENE_TRAIN, NULL, NULL));
    assert_memory_equal(train->pixels, whole, sizeof whole);
    scene_close(&scene);
}

static void test_load_alpha(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene *scene = open_three(folder);
    uint8_t rgba[6 * 4 * 4];
    memset(rgba, 255, sizeof(rgba));
    rgba[3] = 0;
    assert_ok(
        scene_image_write_png(scene->splits[SCENE_TRAIN].cameras[2].image_path, rgba, 6, 4, 4));
    assert_ok(scene_load(scene, SCENE_TRAIN, NULL, NULL));
    assert_true(scene->splits[SCENE_TRAIN].has_alpha);
    assert_int_equal(scene->splits[SCENE_TRAIN].pixels[12], 0xbfbfbfbfu); /* 191.25 */
    scene_close(&scene);
}

static void test_load_errors(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene *scene = open_three(folder);
    const char *path = scene->splits[SCENE_TRAIN].cameras[1].image_path;
    struct stat information;
    assert_int_equal(stat(path, &information), 0);
    assert_int_equal(truncate(path, information.st_size - 20), 0);
    assert_int_equal(scene_load(scene, SCENE_TRAIN, NULL, NULL), VKN_BAD_INPUT);
    assert_error("/b.png: truncated PNG");
    assert_null(scene->splits[SCENE_TRAIN].pixels);
    temporary_picture(folder, "b.png", 6, 6, 0);
    assert_int_equal(scene_load(scene, SCENE_TRAIN, NULL, NULL), VKN_BAD_INPUT);
    assert_error("/b.png: changed its size since the scene was opened");
    unlink(path);
    assert_int_equal(scene_load(scene, SCENE_TRAIN, NULL, NULL), VKN_BAD_INPUT);
    assert_error("/b.png: No such file or directory");
    temporary_picture(folder, "b.png", 6, 4, 0);
    assert_ok(scene_load(scene, SCENE_TRAIN, NULL, NULL));
    scene_close(&scene);
}

/* A view alone is the same from its file and from the loaded split, and smaller ones are averages.
 */
static void test_views(void **state)
{
    struct temporary *folder = *state;
    temporary_picture(folder, "a.png", 7, 9, 40);
    temporary_picture(folder, "b.png", 7, 9, 80);
    temporary_text(folder, "transforms.json",
                   "{\"camera_angle_x\": 0.5, \"frames\": ["
                   "{\"file_path\": \"b.png\", \"transform_matrix\": "
                   "[[1,0,0,0],[0,1,0,0],[0,0,1,4],[0,0,0,1]]}, "
                   "{\"file_path\": \"a.png\", \"transform_matrix\": "
                   "[[1,0,0,0],[0,1,0,0],[0,0,1,4],[0,0,0,1]]}]}");
    struct vkn_scene *scene = NULL;
    struct scene_options options = {.path = folder->path};
    assert_ok(scene_open(&options, &scene));
    struct scene_split *train = &scene->splits[SCENE_TRAIN];
    for (uint32_t shrink = 1; shrink <= 4; shrink++) {
        struct scene_camera small = scene_shrink_camera(&train->cameras[0], shrink);
        uint32_t size = small.width * small.height, filed[63], loaded[63];
        assert_int_equal(small.width, 7 / shrink);
        assert_int_equal(small.height, 9 / shrink);
        assert_true(small.focal_x == train->cameras[0].focal_x / (float)shrink);
        assert_true(small.center_y == 4.5F / (float)shrink);
        free(train->pixels);
        train->pixels = NULL;
        assert_ok(scene_read_view(scene, SCENE_TRAIN, 0, shrink, filed));
        assert_ok(scene_load(scene, SCENE_TRAIN, NULL, NULL));
        assert_ok(scene_read_view(scene, SCENE_TRAIN, 0, shrink, loaded));
        assert_memory_equal(filed, loaded, size * sizeof *filed);
        for (uint32_t i = 0; i < size; i++) { /* means of columns and rows, halves up */
            uint32_t x = i % small.width * shrink + shrink / 2;
            uint32_t y = i / small.width * shrink + shrink / 2;
            assert_int_equal(filed[i], x | y << 8 | 80u << 16 | 255u << 24);
        }
    }
    scene_close(&scene);
}

int main(void)
{
#define TEST(function) \
    cmocka_unit_test_setup_teardown(function, temporary_setup, temporary_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_png_round_trip),
        TEST(test_png_kinds),
        TEST(test_png_16_bits),
        TEST(test_png_in_memory),
        TEST(test_jpeg_kinds),
        TEST(test_jpeg_long_prelude),
        TEST(test_every_truncation),
        TEST(test_every_changed_byte),
        TEST(test_hostile_sizes),
        TEST(test_corrupt_jpeg),
        TEST(test_not_images),
        TEST(test_downscale_by_hand),
        TEST(test_downscale_drops_edges),
        TEST(test_downscale_stays_premultiplied),
        TEST(test_load),
        TEST(test_share),
        TEST(test_load_alpha),
        TEST(test_load_errors),
        TEST(test_views),
    };
    return cmocka_run_group_tests_name("scene images", tests, NULL, NULL);
}
