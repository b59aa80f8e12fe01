/* Tests image files: all formats, damaged files, downscaling, EXIF, misspelt names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <sys/stat.h>

#include <cmocka.h>

#include <stdio.h>
#include <jpeglib.h>

#include <cjson/cJSON.h>

#include <vknerf/context.h>

#include "scene/capture.h"
#include "scene/find.h"
#include "scene/image.h"
#include "memory_limit.h"
#include "photographs.h"
#include "scenes.h"

/* Reads a file of the fuzzer's corpus, below the environment's source folder or the current one. */
static void read_seed(const char *name, uint8_t **data, size_t *size)
{
    const char *source = getenv("VKNERF_SOURCE_DIR");
    char *path = base_format("%s/tests/fuzz/corpus/scene/%s", source != NULL ? source : ".", name);
    char *bytes = NULL;
    assert_ok(base_file_read(path, 1 << 20, &bytes, size));
    *data = (uint8_t *)bytes;
    free(path);
}

static void put_32(uint8_t *data, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        data[i] = (uint8_t)(value >> (24 - 8 * i));
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
    uint32_t crc = (uint32_t)crc32(0, body, size + 4);
    const uint8_t length[4] = {0, 0, (uint8_t)(size >> 8), (uint8_t)size};
    const uint8_t check[4] = {(uint8_t)(crc >> 24), (uint8_t)(crc >> 16), (uint8_t)(crc >> 8),
                              (uint8_t)crc};
    base_text_add_bytes(png, length, 4);
    base_text_add_bytes(png, body, size + 4);
    base_text_add_bytes(png, check, 4);
}

/* Makes a PNG of 16-bit samples, one pixel high, with a single stored deflate block. */
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

/* 65535 / 255 = 257: samples round to the nearest multiple of 257; ties (128.5) do not exist. */
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
        for (size_t size = 0; size < png.size; size++) { /* truncated anywhere */
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

/* Corner pixels as libjpeg's djpeg decodes them. */
static void test_jpeg_kinds(void **state)
{
    (void)state;
    check_jpeg("baseline.jpg", (const uint8_t[3]){0, 78, 165}, (const uint8_t[3]){68, 144, 193});
    check_jpeg("progressive.jpg", (const uint8_t[3]){0, 72, 179}, (const uint8_t[3]){75, 142, 194});
    check_jpeg("grey.jpg", (const uint8_t[3]){65, 65, 65}, (const uint8_t[3]){123, 123, 123});
}

/* CMYK as libjpeg writes it with Adobe's marker, inverted: each channel is multiplied by black. */
static void test_jpeg_inks(void **state)
{
    (void)state;
    enum { SIDE = 16 };
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long size = 0;
    uint8_t row[4 * SIDE], *rgba = NULL;
    uint32_t width = 0, height = 0;
    for (size_t i = 0; i < sizeof(row); i++)
        row[i] = (uint8_t[]){204, 102, 255, 128}[i % 4];
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &data, &size);
    info.image_width = info.image_height = SIDE;
    info.input_components = 4;
    info.in_color_space = JCS_CMYK;
    jpeg_set_defaults(&info);
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < SIDE)
        jpeg_write_scanlines(&info, &(JSAMPROW){row}, 1);
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    assert_ok(image_decode("inks", data, size, &rgba, &width, &height));
    assert_int_equal(width * height, SIDE * SIDE);
    for (uint32_t i = 0; i < width * height; i++) {
        const uint8_t wanted[4] = {102, 51, 128, 255};
        for (size_t c = 0; c < 4; c++)
            assert_true(abs(rgba[4 * i + c] - wanted[c]) <= 2);
    }
    free(rgba);
    free(data);
}

/* A header after a long comment is found. */
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

static void test_png_long_prelude(void **state)
{
    struct temporary *folder = *state;
    uint8_t *data = NULL;
    size_t size = 0, padding = 70000, header = 33;
    uint32_t width = 0, height = 0;
    read_seed("rgba.png", &data, &size);
    uint8_t *longer = base_alloc(size + 12 + padding, 1), *chunk = longer + header;
    memcpy(longer, data, header);
    put_32(chunk, (uint32_t)padding);
    memcpy(chunk + 4, "teXt", 4);
    put_32(chunk + 8 + padding, (uint32_t)crc32(0, chunk + 4, (uInt)padding + 4));
    memcpy(chunk + 12 + padding, data + header, size - header);
    char *path = temporary_file(folder, "a.png", longer, size + 12 + padding);
    assert_ok(scene_image_size(path, &width, &height));
    assert_int_equal(width, 4);
    path = temporary_file(folder, "a.png", longer, padding);
    assert_int_equal(scene_image_size(path, &width, &height), VKN_BAD_INPUT);
    assert_error("a.png: truncated PNG");
    free(longer);
    free(data);
}

/* ---- other formats --------------------------------------------------------------------------- */

static void check_other(const char *name, uint32_t size_wanted, const uint8_t *wanted,
                        const char *cut_off)
{
    uint8_t *data = NULL, *rgba = NULL;
    size_t size = 0;
    uint32_t width = 0, height = 0;
    read_seed(name, &data, &size);
    assert_ok(image_decode(name, data, size, &rgba, &width, &height));
    assert_int_equal(100 * width + height, size_wanted);
    for (uint32_t x = 0; x < 5; x++) /* of the second row */
        assert_memory_equal(rgba + (size_t)4 * (width + x), wanted + (size_t)4 * x, 4);
    free(rgba);
    for (size_t cut = 0; cut + 2 < size; cut++) { /* a GIF's trailer is not part of its picture */
        assert_int_equal(image_decode("x", data, cut, &rgba, &width, &height), VKN_BAD_INPUT);
        assert_error("x: ");
    }
    assert_error(cut_off);
    free(data);
}

static void test_other_formats(void **state)
{
    (void)state;
    uint8_t *data = NULL;
    size_t size = 0;
    struct image_header header;
    read_seed("turned.tif", &data, &size);
    assert_ok(image_read_header("x", data, size, true, &header));
    assert_int_equal(header.exif.orientation, 6);
    free(data);
    uint8_t colors[5 * 4], light[5 * 4];
    for (uint32_t x = 0; x < 5; x++) {
        const uint8_t color[4] = {(uint8_t)(40 * x), 110, (uint8_t)(200 - 30 * x), 255};
        /* x / 15, truncated to 8 bits, converted by stb's sRGB, a power function */
        uint8_t grey = (uint8_t)lround(255 * pow(floor(256.0 * x / 15) / 256, 1 / 2.2));
        memcpy(colors + (size_t)4 * x, color, 4);
        memcpy(light + (size_t)4 * x, (uint8_t[]){grey, grey, 0, 255}, 4);
    }
    check_other("rgb.bmp", 502, colors, "x: truncated");
    check_other("colors.gif", 502, colors, "x: truncated");
    check_other("turned.tif", 502, colors, "x: cannot be decoded (Read error");
    for (uint32_t x = 0; x < 5; x++)
        colors[4 * x + 3] = (uint8_t)(255 - 50 * x);
    check_other("rgba.tga", 502, colors, "x: truncated");
    check_other("rgba.webp", 502, colors, "x: cannot be decoded (a truncated, damaged");
    check_other("light.hdr", 1602, light, "x: truncated");
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

/* A file truncated anywhere is refused, never partially decoded. */
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

/* Any changed byte of a PNG is noticed, except in the last four, the checksum of the end, about
 * which libpng 1.6.48 only warns. */
static void test_every_changed_byte(void **state)
{
    (void)state;
    uint8_t *data = NULL;
    size_t size = 0;
    read_seed("rgba.png", &data, &size);
    for (size_t i = 0; i < (size - 4) * 8; i++) {
        data[i / 8] ^= (uint8_t)(1u << i % 8);
        check_refused(data, size, "x: ");
        data[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    free(data);
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
    put_32(data + 29, (uint32_t)crc32(0, data + 12, 17));
    check_refused(data, size, "x: truncated (too little data)");
    put_32(data + 16, 16385);
    put_32(data + 29, (uint32_t)crc32(0, data + 12, 17));
    check_refused(data, size, "x: 16385x16384 pixels are more than the limit of 16384x16384");
    char *path = temporary_file(folder, "huge.png", data, size);
    assert_int_equal(scene_image_size(path, &width, &height), VKN_BAD_INPUT);
    assert_error("huge.png: 16385x16384 pixels are more than the limit");
    put_32(data + 16, 0);
    check_refused(data, size, "x: cannot be decoded (");
    put_32(data + 8, 0xffffffffu);
    check_refused(data, size, "x: cannot be decoded (");
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
    data[table + 5] = 255; /* more one-bit codes than possible */
    check_refused(data, size, "x: cannot be decoded (Bogus Huffman table definition)");
    static const uint8_t bare[] = {0xff, 0xd8, 0xff, 0xd9, 0, 0};
    check_refused(bare, sizeof(bare), "x: cannot be decoded (JPEG datastream contains no image)");
    static const uint8_t short_segment[] = {0xff, 0xd8, 0xff, 0xc4, 0, 1, 0, 0};
    check_refused(short_segment, sizeof(short_segment),
                  "x: cannot be decoded (Bogus marker length)");
    free(data);
}

/* Data that end too early, more scans than any picture needs, and a picture whose coefficients do
 * not fit into memory. */
static void test_hostile_jpeg(void **state)
{
    (void)state;
    uint8_t *data = NULL;
    size_t size = 0, scan = 0;
    read_seed("bits_past_end.jpg", &data, &size);
    check_refused(data, size, "premature end of data segment)");
    free(data);
    read_seed("progressive.jpg", &data, &size);
    while (data[scan] != 0xff || data[scan + 1] != 0xda)
        scan++;
    size_t end = scan + 2;
    while (data[end] != 0xff || data[end + 1] == 0)
        end++;
    struct base_text text = {0};
    base_text_add_bytes(&text, data, scan);
    for (int i = 0; i < 200; i++)
        base_text_add_bytes(&text, data + scan, end - scan);
    base_text_add_bytes(&text, data + end, size - end);
    check_refused((const uint8_t *)text.data, text.size,
                  "x: cannot be decoded (more than 100 scans)");
    free(text.data);
    size_t frame = 0;
    while (data[frame] != 0xff || data[frame + 1] != 0xc2)
        frame++;
    memcpy(data + frame + 5, (uint8_t[]){16, 0, 16, 0}, 4);
    const struct rlimit before = limit_memory(RLIMIT_DATA, (64 + 24) << 20);
    uint8_t *rgba = NULL;
    uint32_t width = 0, height = 0;
    vkn_status status = image_decode("x", data, size, &rgba, &width, &height);
    assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
    assert_int_equal(status, VKN_ERROR);
    assert_error("x: out of memory for its pixels");
    free(data);
}

static void test_not_images(void **state)
{
    struct temporary *folder = *state;
    uint8_t *rgba = NULL;
    uint32_t width = 0, height = 0;
    assert_int_equal(scene_image_read(folder->path, &rgba, &width, &height), VKN_BAD_INPUT);
    assert_error(": Is a directory");
    assert_int_equal(scene_image_read("none.png", &rgba, &width, &height), VKN_BAD_INPUT);
    assert_error("none.png: No such file or directory");
    char *text = temporary_text(folder, "text.png", "GIF89a and so on");
    assert_int_equal(scene_image_read(text, &rgba, &width, &height), VKN_BAD_INPUT);
    assert_error("text.png: not a PNG, JPEG, WebP, TIFF, BMP, TGA, GIF or HDR file");
}

/* ---- downscaling --------------------------------------------------------------------------- */

/* Red is (255 * 255 + 100 * 51) / (4 * 255) = 68.75, green (255 * 128 + 5100) / 1020 = 37, blue
 * 5100 / 1020 = 5, alpha 434 / 4 = 108.5. */
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

/* Premultiplied: no colour exceeds alpha, even after rounding. */
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

/* The middle one of three views belongs to another rank: its file is not read until requested. All
 * ways of reading give the same pixels. */
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

/* A single view is the same from its file and from the loaded split; smaller ones are averages. */
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

/* ---- EXIF ---------------------------------------------------------------------------------- */

#define STORED_WIDTH  6u
#define STORED_HEIGHT 4u

/* Computes the stored position of pixel (x, y) of the upright picture, as in Exif's figure. */
static void where_stored(unsigned orientation, uint32_t x, uint32_t y, uint32_t at[2])
{
    const uint32_t w = STORED_WIDTH - 1, h = STORED_HEIGHT - 1;
    const uint32_t positions[8][2] = {{x, y}, {w - x, y}, {w - x, h - y}, {x, h - y},
                                      {y, x}, {y, h - x}, {w - y, h - x}, {w - y, x}};
    memcpy(at, positions[orientation - 1], sizeof(positions[0]));
}

static uint32_t upright_pixel(unsigned orientation, uint32_t x, uint32_t y)
{
    uint32_t at[2];
    where_stored(orientation, x, y, at);
    return at[0] | at[1] << 8 | 7u << 16 | 255u << 24;
}

/* Two frames, a.png and b.png, of a camera that `top` describes. */
static void write_tagged_scene(struct temporary *folder, const char *top)
{
    char *text =
        base_format("{%s, \"frames\": [{\"file_path\": \"a.png\", \"transform_matrix\": " POSE "},"
                    "{\"file_path\": \"b.png\", \"transform_matrix\": " POSE "}]}",
                    top);
    temporary_text(folder, "transforms_train.json", text);
    free(text);
}

static struct vkn_scene *open_tagged(struct temporary *folder, uint32_t downscale,
                                     struct scene_findings *findings)
{
    struct vkn_scene *scene = NULL;
    const struct scene_options options = {
        .path = folder->path, .downscale = downscale, .findings = findings};
    assert_ok(scene_open(&options, &scene));
    return scene;
}

/* All ways of reading pixels give the upright picture. */
static void assert_upright(struct temporary *folder, unsigned orientation)
{
    struct vkn_scene *scene = open_tagged(folder, 1, NULL);
    const struct scene_camera *camera = &scene->splits[SCENE_TRAIN].cameras[0];
    uint32_t width = camera->width, height = camera->height, view[24], rows[12], small[6];
    assert_int_equal(width, orientation < 5 ? STORED_WIDTH : STORED_HEIGHT);
    assert_int_equal(height, orientation < 5 ? STORED_HEIGHT : STORED_WIDTH);
    assert_int_equal(scene->splits[SCENE_TRAIN].pixel_count, 48);
    assert_ok(scene_read_view(scene, SCENE_TRAIN, 0, 1, view));
    for (uint32_t i = 0; i < 24; i++)
        assert_int_equal(view[i],
                         upright_pixel(orientation < 5 ? 1 : orientation, i % width, i / width));
    assert_ok(scene_read_rows(scene, SCENE_TRAIN, 0, 1, 2, 1, rows));
    assert_memory_equal(rows, view + width, 2 * width * sizeof(*rows));
    assert_ok(scene_load(scene, SCENE_TRAIN, NULL, NULL));
    assert_memory_equal(scene->splits[SCENE_TRAIN].pixels, view, sizeof(view));
    assert_ok(scene_read_view(scene, SCENE_TRAIN, 0, 2, small));
    scene_close(&scene);
    scene = open_tagged(folder, 2, NULL);
    assert_ok(scene_load(scene, SCENE_TRAIN, NULL, NULL));
    assert_memory_equal(scene->splits[SCENE_TRAIN].pixels, small, sizeof(small));
    scene_close(&scene);
}

/* If only the rotated picture fits w and h, it is rotated exactly. Flips and half turns keep the
 * size, so that nothing confirms them. */
static void test_exif_turned(void **state)
{
    struct temporary *folder = *state;
    base_log_threshold(BASE_LOG_NOTHING);
    for (unsigned orientation = 1; orientation <= 8; orientation++) {
        bool aside = orientation >= 5;
        tagged_picture(folder, "a.png", STORED_WIDTH, STORED_HEIGHT, orientation);
        tagged_picture(folder, "b.png", STORED_WIDTH, STORED_HEIGHT, orientation);
        write_tagged_scene(folder, aside ? "\"fl_x\": 4, \"w\": 8, \"h\": 12"
                                         : "\"fl_x\": 4, \"w\": 6, \"h\": 4");
        assert_upright(folder, orientation);
        struct scene_findings findings = {0};
        struct vkn_scene *scene = open_tagged(folder, 1, &findings);
        assert_int_equal(findings.rotated != NULL, aside);
        assert_int_equal(findings.orientation_unknown != NULL, orientation > 1 && !aside);
        if (aside)
            assert_non_null(strstr(findings.rotated, "2 of 2 images have an EXIF orientation ("));
        scene_close(&scene);
        scene_findings_free(&findings);
    }
    base_log_threshold(BASE_LOG_INFO);
}

enum exif_way { EXIF_TURNED, EXIF_STORED, EXIF_UNKNOWN };

static void assert_exif(struct temporary *folder, const char *top, enum exif_way way)
{
    bool turned = way == EXIF_TURNED;
    struct scene_findings findings = {0};
    write_tagged_scene(folder, top);
    struct vkn_scene *scene = open_tagged(folder, 1, &findings);
    assert_int_equal(scene->splits[SCENE_TRAIN].cameras[0].applied_orientation, turned ? 6 : 1);
    assert_int_equal(findings.rotated != NULL, turned);
    assert_int_equal(findings.as_stored != NULL, way == EXIF_STORED);
    assert_int_equal(findings.orientation_unknown != NULL, way == EXIF_UNKNOWN);
    struct inspection *inspection = NULL;
    assert_ok(inspect_scene(scene, &findings, 0.05, &inspection));
    cJSON *object = inspect_json(inspection);
    char *json = base_json_print(object);
    cJSON_Delete(object);
    assert_int_equal(strstr(json, "(6 in a.png) that their cameras'") != NULL, way == EXIF_UNKNOWN);
    assert_int_equal(strstr(json, "\"turned\":") != NULL, turned);
    assert_int_equal(strstr(json, "\"as_stored\":") != NULL, way == EXIF_STORED);
    free(json);
    inspect_free(&inspection);
    scene_close(&scene);
    scene_findings_free(&findings);
}

static void count_warnings(void *user, enum vkn_log_level level, const char *line)
{
    int *counts = user;
    counts[level == VKN_LOG_WARNING && strstr(line, "EXIF") != NULL]++;
}

/* Training logs once: a line about rotated pictures, a warning about unconfirmed ones. */
static void test_exif_messages(void **state)
{
    struct temporary *folder = *state;
    int counts[2] = {0};
    tagged_picture(folder, "a.png", STORED_WIDTH, STORED_HEIGHT, 6);
    tagged_picture(folder, "b.png", STORED_WIDTH, STORED_HEIGHT, 3);
    write_tagged_scene(folder, "\"fl_x\": 4, \"w\": 6, \"h\": 4");
    vkn_log_to(count_warnings, counts);
    struct vkn_scene *scene = open_tagged(folder, 1, NULL);
    scene_close(&scene);
    assert_true(counts[0] == 0 && counts[1] == 1);
    tagged_picture(folder, "b.png", STORED_WIDTH, STORED_HEIGHT, 8);
    write_tagged_scene(folder, "\"fl_x\": 4, \"w\": 4, \"h\": 6");
    scene = open_tagged(folder, 1, NULL);
    scene_close(&scene);
    vkn_log_to(NULL, NULL);
    assert_true(counts[0] == 1 && counts[1] == 1);
}

/* Other evidence: the optical centre, and other pictures of the same lens. Without evidence
 * pictures stay as stored; if neither fits, the message names EXIF. */
static void test_exif_evidence(void **state)
{
    struct temporary *folder = *state;
    const struct scene_options options = {.path = folder->path};
    tagged_picture(folder, "a.png", STORED_WIDTH, STORED_HEIGHT, 6);
    tagged_picture(folder, "b.png", STORED_WIDTH, STORED_HEIGHT, 6);
    assert_exif(folder, "\"fl_x\": 4, \"w\": 4, \"h\": 6", EXIF_TURNED);
    assert_exif(folder, "\"fl_x\": 4, \"w\": 6, \"h\": 4", EXIF_STORED);
    assert_exif(folder, "\"fl_x\": 4, \"cx\": 2.1, \"cy\": 2.9", EXIF_TURNED);
    assert_exif(folder, "\"fl_x\": 4, \"cx\": 2.9, \"cy\": 2.1", EXIF_STORED);
    assert_exif(folder, "\"camera_angle_x\": 0.8", EXIF_UNKNOWN);
    write_tagged_scene(folder, "\"fl_x\": 4, \"w\": 5, \"h\": 6");
    assert_open_fails(
        &options,
        "a.png has 6x4 pixels, wrong size: w and h say 5x6, and its EXIF orientation, 6, does not");
    temporary_picture(folder, "b.png", STORED_HEIGHT, STORED_WIDTH, 0);
    assert_exif(folder, "\"camera_angle_x\": 0.8", EXIF_TURNED);
    tagged_picture(folder, "a.png", 5, 5, 6);
    temporary_picture(folder, "b.png", 5, 5, 0);
    assert_exif(folder, "\"fl_x\": 4, \"w\": 5, \"h\": 5", EXIF_UNKNOWN);
}

/* A mask of the rotated size is used as it is, one of the stored size is rotated with its image,
 * even if larger. */
static void test_exif_masks(void **state)
{
    struct temporary *folder = *state;
    struct vkn_scene *scene = NULL;
    const struct scene_options options = {.path = folder->path};
    base_log_threshold(BASE_LOG_NOTHING);
    tagged_picture(folder, "a.png", STORED_WIDTH, STORED_HEIGHT, 6);
    temporary_text(folder, "transforms_train.json",
                   "{\"fl_x\": 4, \"w\": 4, \"h\": 6, \"frames\": [{\"file_path\": \"a.png\", "
                   "\"mask_path\": \"m.png\","
                   "\"transform_matrix\": " POSE "}]}");
    for (unsigned n = 0; n < 3; n++) {
        static const uint32_t sizes[][2] = {{4, 6}, {6, 4}, {12, 8}};
        uint8_t mask[12 * 8] = {0};
        for (uint32_t i = 0; i < sizes[n][0] * sizes[n][1]; i++) {
            uint32_t at[2] = {i % sizes[n][0] * 6 / sizes[n][0], i / sizes[n][0] * 4 / sizes[n][1]};
            if (n == 0)
                where_stored(6, i % 4, i / 4, at);
            mask[i] = at[0] == 5 && at[1] < 3 ? 255 : 0;
        }
        assert_ok(scene_image_write_png(temporary_path(folder, "m.png"), mask, sizes[n][0],
                                        sizes[n][1], 1));
        uint32_t view[24];
        assert_ok(scene_open(&options, &scene));
        assert_ok(scene_read_view(scene, SCENE_TRAIN, 0, 1, view));
        for (uint32_t i = 0; i < 24; i++) {
            uint32_t at[2];
            where_stored(6, i % 4, i / 4, at);
            assert_int_equal(view[i] != SCENE_IGNORED, at[0] == 5 && at[1] < 3);
        }
        scene_close(&scene);
    }
    const uint8_t wrong[25] = {0};
    assert_ok(scene_image_write_png(temporary_path(folder, "m.png"), wrong, 5, 5, 1));
    assert_open_fails(&options, "m.png: this mask of 5x5 pixels does not fit its image of 4x6");
    base_log_threshold(BASE_LOG_INFO);
}

/* EXIF in JPEG: truncated anywhere, or with any byte changed, nothing is read beyond the end, which
 * sanitizers would notice. */
static void test_exif_hostile(void **state)
{
    struct temporary *folder = *state;
    uint8_t exif[128];
    char *stored = temporary_picture(folder, "stored.png", 6, 4, 1), *data = NULL;
    size_t size = make_exif(exif, 8, true);
    struct image_header header;
    assert_ok(scene_copy_upright(stored, 1, exif + 2, size - 2, temporary_path(folder, "a.jpg")));
    assert_ok(image_measure(temporary_path(folder, "a.jpg"), &header));
    assert_int_equal(header.exif.orientation, 8);
    assert_ok(base_file_read(tagged_picture(folder, "a.png", 6, 4, 5), 1 << 20, &data, &size));
    assert_int_equal(exif_of_image((uint8_t *)data, size).orientation, 5);
    for (size_t length = 0; length < size; length++) {
        uint8_t *part = base_alloc(length + 1, 1);
        memcpy(part, data, length);
        exif_of_image(part, length);
        free(part);
        for (int k = 0; k < 3; k++) {
            static const uint8_t broken[3] = {0xff, 0x7f, 0};
            part = base_alloc(size, 1);
            memcpy(part, data, size);
            part[length] = broken[k];
            unsigned orientation = exif_of_image(part, size).orientation;
            assert_true(orientation >= 1 && orientation <= 8);
            free(part);
        }
    }
    free(data);
}

/* ---- misspelt names ------------------------------------------------------------------------ */

/* Writes a frame for each of these names, one per line. */
static void write_frames(struct temporary *folder, const char *at, const char *names)
{
    cJSON *json = cJSON_CreateObject(), *frames = cJSON_AddArrayToObject(json, "frames");
    cJSON_AddNumberToObject(json, "camera_angle_x", 0.8);
    cJSON_AddArrayToObject(json, "train_filenames"); /* so that no view is held out */
    for (const char *name = names; *name != '\0'; name += strspn(name, "\n")) {
        size_t length = strcspn(name, "\n");
        char *one = base_format("%.*s", (int)length, name);
        cJSON *frame = cJSON_CreateObject();
        cJSON_AddStringToObject(frame, "file_path", one);
        cJSON_AddItemToObject(frame, "transform_matrix", cJSON_Parse(POSE));
        cJSON_AddItemToArray(frames, frame);
        cJSON_AddItemToArray(cJSON_GetObjectItem(json, "train_filenames"), cJSON_CreateString(one));
        free(one);
        name += length;
    }
    char *text = base_json_print(json), *path = base_format("%s/transforms.json", at);
    temporary_text(folder, path, text);
    free(path);
    free(text);
    cJSON_Delete(json);
}

/* Writes pictures of these names, one per line, into an otherwise empty folder. */
static char *write_pictures(struct temporary *folder, const char *at, const char *files)
{
    remove_tree(temporary_path(folder, at));
    for (const char *name = files; *name != '\0'; name += strspn(name, "\n")) {
        size_t length = strcspn(name, "\n");
        char *one = base_format("%s/%.*s", at, (int)length, name);
        temporary_picture(folder, one, 4, 4, 0);
        folder->text_count--; /* do not keep the many paths */
        free(folder->texts[folder->text_count]);
        free(one);
        name += length;
    }
    return temporary_path(folder, at);
}

/* Names, existing files, and the file that is found, or "!" and a part of the error's message. */
struct search {
    const char *names, *files, *wanted, *message;
};

static const struct search searches[] = {
    {"images/f.jpg", "images/f.jpg\nimages/F.JPG\nimages/f.png\nf.jpg", "images/f.jpg", NULL},
    {"r_0", "r_0.png\nr_0.jpg", "r_0.png", NULL},
    {"r_0.5", "r_0.5.jpg\nr_0.png", "r_0.5.jpg", NULL},
    {"images/f.jpg", "images/f.png", "images/f.png", "another extension: f.png for f.jpg"},
    {"images/f.heic", "images/F.JPEG", "images/F.JPEG",
     "another case or extension: F.JPEG for f.heic"},
    {"images/f.jpg", "images/f.jpg.png", "images/f.jpg.png", "another extension"},
    {"images/f.tif", "images/f.png\nimages/f.jpg", "!/images/f.jpg match it", NULL},
    {"images/f.jpg", "images/f.webp\nimages/F.png", "images/F.png", "another case or extension"},
    {"images/f.jpg", "images/f.tiff", "images/f.tiff", "another extension: f.tiff for f.jpg"},
    {"./images/f.jpg", "rgb/f.jpg", "rgb/f.jpg", "another folder: "},
    {"f.jpg", "input/f.jpg", "input/f.jpg", "another folder"},
    {"images/f.jpg", "f.png", "f.png", "another extension or folder"},
    {"C:\\Users\\me\\scene\\images\\f.jpg", "images/f.jpg", "images/f.jpg", "another folder"},
    {"/home/nobody/here/images/cam1/f.jpg", "images/cam1/f.jpg\nf.jpg", "images/cam1/f.jpg",
     "another folder"},
    {"file:///home/nobody/here/images/a%20b.jpg", "images/a b.jpg", "images/a b.jpg",
     "writing of %20 or folder"},
    {"../../images/f.jpg", "images/f.jpg", "images/f.jpg", "another folder"},
    {"images/f.jpg", "images_4/f.png\nimages_2/f.png", "images_2/f.png",
     "another extension or folder"},
    {"train/f.jpg", "images/f.jpg\ninput/f.jpg", "!/input/f.jpg match it", NULL},
    {"images/a%20b.jpg", "images/a b.jpg", "images/a b.jpg", "another writing of %20"},
    {"images/a%2fb%00.jpg", "images/a/b.jpg", "!no image ", NULL},
    /* A file missing from a folder that exists is not searched elsewhere. */
    {"images/a.jpg\nimages/b.jpg", "images/a.jpg\nimages_2/b.jpg\ninput/b.jpg\nb.jpg",
     "!no image images/b.jpg in ", NULL},
    {"cam1/f.jpg\ncam2/f.jpg", "images/f.jpg", "!both cam1/f.jpg and cam2/f.jpg match ", NULL},
    {"f.jpg\nf.png", "f.png", "!both f.jpg and f.png match ", NULL},
    {"cam1/f.jpg\ncam2/f.jpg", "images/cam1/f.jpg\nimages/cam2/f.jpg", "images/cam1/f.jpg",
     "2 of 2 images"},
    /* composed for decomposed, and the other way round: Latin, with two marks, Greek, Cyrillic,
       kana, Hangul, Arabic */
    {"\u00e9t\u00e9.jpg", "e\u0301te\u0301.jpg", "e\u0301te\u0301.jpg",
     "another Unicode form (NFC, NFD): "},
    {"e\u0301te\u0301.jpg", "\u00e9t\u00e9.jpg", "\u00e9t\u00e9.jpg", "another Unicode form"},
    {"Vi\u1ec7t.jpg", "Vie\u0323\u0302t.jpg", "Vie\u0323\u0302t.jpg", "another Unicode form"},
    {"\u1f82.jpg", "\u03b1\u0313\u0300\u0345.jpg", "\u03b1\u0313\u0300\u0345.jpg",
     "another Unicode form"},
    {"\u0439.jpg", "\u0438\u0306.jpg", "\u0438\u0306.jpg", "another Unicode form"},
    {"\u304c.jpg", "\u304b\u3099.jpg", "\u304b\u3099.jpg", "another Unicode form"},
    {"\uac01\uac00.jpg", "\u1100\u1161\u11a8\u1100\u1161.jpg", "\u1100\u1161\u11a8\u1100\u1161.jpg",
     "Unicode form"},
    {"\u0623.jpg", "\u0627\u0654.jpg", "\u0627\u0654.jpg", "another Unicode form"},
    {"\u0219.jpg", "s\u0326.jpg", "s\u0326.jpg", "another Unicode form"},
    {"\u00fc.jpg", "U\u0308.JPG\nu.jpg", "U\u0308.JPG", "another case"},
};

/* On Windows backslashes separate folders, and names that differ only in case are the same. */
static const struct search searches_of_unix[] = {
    {"images\\f.jpg", "images/f.jpg", "images/f.jpg", NULL},
    {"images/f.jpg", "images/f.JPG", "images/f.JPG", "another case: f.JPG for f.jpg"},
    {"Images/f.jpg", "images/f.jpg", "images/f.jpg", "/images/f.jpg for Images/f.jpg"},
    {"images/f.jpg", "images/F.jpg\nimages/f.JPG", "!images/f.jpg does not exist, and both ", NULL},
    {"IMAGES/f.jpg", "images/f.jpg\nImages/f.jpg", "!both ", NULL},
    {"\u00d8\u0416\u03a9\u0141\u0460.jpg", "\u00f8\u0436\u03c9\u0142\u0461.jpg",
     "\u00f8\u0436\u03c9\u0142\u0461.jpg", "another case"},
    {"\u00fc.jpg", "u\u0308.jpg\n\u00dc.jpg", "u\u0308.jpg", "Unicode form"},
};

static void check_search(struct temporary *folder, const struct search *search)
{
    struct scene_findings findings = {0};
    struct vkn_scene *scene = NULL;
    struct scene_options options = {.path = write_pictures(folder, "scene", search->files)};
    write_frames(folder, "scene", search->names);
    base_log_threshold(BASE_LOG_NOTHING);
    if (search->wanted[0] == '!') {
        assert_open_fails(&options, search->wanted + 1);
    } else {
        options.findings = &findings;
        assert_ok(scene_open(&options, &scene));
        const char *path =
            scene->splits[SCENE_TRAIN].cameras[0].image_path + strlen(options.path) + 1;
        if (strcmp(path, search->wanted) != 0)
            fail_msg("%s: %s is not %s", search->names, path, search->wanted);
        const char *message = findings.other_names;
        if ((message == NULL) != (search->message == NULL) ||
            (message != NULL && !strstr(message, search->message)))
            fail_msg("%s: \"%s\"", search->names, message != NULL ? message : "nothing");
    }
    base_log_threshold(BASE_LOG_INFO);
    scene_close(&scene);
    scene_findings_free(&findings);
    for (; folder->text_count > 0; folder->text_count--)
        free(folder->texts[folder->text_count - 1]);
}

static void test_names(void **state)
{
    for (size_t i = 0; i < BASE_COUNT(searches); i++)
        check_search(*state, &searches[i]);
}

static void test_names_of_unix(void **state)
{
    for (size_t i = 0; i < BASE_COUNT(searches_of_unix); i++)
        check_search(*state, &searches_of_unix[i]);
}

/* Focal lengths in pixels without an image size do not fit smaller copies. */
static void test_names_unsized(void **state)
{
    struct temporary *folder = *state;
    struct scene_options options = {.path = write_pictures(folder, "scene", "images_2/f.png")};
    static const char *const sizes[] = {"", "\"w\": 8, \"h\": 8, "};
    for (size_t i = 0; i < BASE_COUNT(sizes); i++) {
        struct vkn_scene *scene = NULL;
        char *text = base_format("{\"fl_x\": 8, %s\"frames\": [{\"file_path\": \"images/f.png\", "
                                 "\"transform_matrix\": " POSE "}]}",
                                 sizes[i]);
        temporary_text(folder, "scene/transforms_train.json", text);
        free(text);
        base_log_threshold(BASE_LOG_NOTHING);
        if (i == 0) {
            assert_open_fails(&options, "no image images/f.png in ");
        } else {
            assert_ok(scene_open(&options, &scene));
            assert_true(scene->splits[SCENE_TRAIN].cameras[0].focal_x == 4);
        }
        base_log_threshold(BASE_LOG_INFO);
        scene_close(&scene);
    }
}

/* Bytes that are not UTF-8 stay as they are, and so do characters outside the tables. */
static void test_name_keys(void **state)
{
    static const char *const keys[][2] = {{"\xff\xc3\u00c9\xe2\x82", "\xff\xc3"
                                                                     "e\u0301\xe2\x82"},
                                          {"\U0001f600\u4e00A", "\U0001f600\u4e00a"}};
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(keys); i++) {
        char *key = scene_name_key(keys[i][0], true);
        assert_string_equal(key, keys[i][1]);
        free(key);
    }
}

/* Pipes are no images: neither read nor listed. */
static void test_pipes(void **state)
{
    struct temporary *folder = *state;
    char *pipe = temporary_path(folder, "list/pipe.png"), *path, **names = NULL;
    uint8_t *rgba = NULL;
    uint32_t width = 0, height = 0;
    size_t count = 0;
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(scene_image_size(pipe, &width, &height), VKN_BAD_INPUT);
    assert_error("pipe.png: not a regular file");
    assert_int_equal(scene_image_read(pipe, &rgba, &width, &height), VKN_BAD_INPUT);
    unlink(pipe);
    path = write_pictures(folder, "list", "b.png");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_ok(capture_list(path, &names, &count));
    assert_int_equal(count, 1);
    assert_string_equal(names[0], "b.png");
    capture_free_names(names, count);
}

/* Pipes are never opened to find an image; cyclic links fail. */
static void test_names_odd_entries(void **state)
{
    struct temporary *folder = *state;
    struct scene_options options = {.path = write_pictures(folder, "scene", "images/x.png")};
    char *pipe = temporary_path(folder, "scene/images/f.png"),
         *loop = temporary_path(folder, "scene/images/loop");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(symlink(".", loop), 0);
    assert_int_equal(symlink("round", temporary_path(folder, "scene/images/round")), 0);
    base_log_threshold(BASE_LOG_NOTHING);
    write_frames(folder, "scene", "images/f.jpg");
    assert_open_fails(&options, "no image images/f.jpg");
    write_frames(folder, "scene", "images/loop/loop/LOOP/loop/f.jpg");
    assert_open_fails(&options, "no image ");
    write_frames(folder, "scene", "images/Round.jpg");
    assert_open_fails(&options, "no image ");
    base_log_threshold(BASE_LOG_INFO);
}

/* Overlong names fail. */
static void test_names_hostile(void **state)
{
    struct temporary *folder = *state;
    struct scene_options options = {.path = write_pictures(folder, "scene", "images/x.png")};
    base_log_threshold(BASE_LOG_NOTHING);
    char *names[2] = {base_alloc(1 << 20, 1), base_alloc(3 * 4096, 1)};
    memset(names[0], 'x', (1 << 20) - 1);
    for (size_t i = 0; i + 4 < 3 * 1300; i += 3)
        memcpy(names[1] + i, "a/\xc3", 3);
    for (size_t i = 0; i < BASE_COUNT(names); i++) {
        write_frames(folder, "scene", names[i]);
        assert_open_fails(&options, "no image ");
        free(names[i]);
    }
    base_log_threshold(BASE_LOG_INFO);
}

/* Only files are listed, and formats other than PNG and JPEG only if there is neither. */
static void test_list(void **state)
{
    struct temporary *folder = *state;
    char *path = write_pictures(folder, "list", "b.png\na.JPG\nfolder.png/c.png\n.hidden.png"),
         **names = NULL;
    size_t count = 0;
    assert_ok(capture_list(path, &names, &count));
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "a.JPG");
    assert_string_equal(names[1], "b.png");
    capture_free_names(names, count);
    path = write_pictures(folder, "list", "b.TIFF\nc.webp\n.hidden.bmp\nd.txt");
    assert_ok(capture_list(path, &names, &count));
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "b.TIFF");
    assert_string_equal(names[1], "c.webp");
    capture_free_names(names, count);
}

/* Checks the folder of images, or the error ("!PART"), of a capture with these files. */
static void check_capture(struct temporary *folder, const char *files, const char *expected)
{
    char *path = write_pictures(folder, "capture", files), *images = NULL;
    uint32_t prescaled = 0;
    vkn_status status = capture_images(path, "model", 1, &images, &prescaled);
    if (expected[0] == '!') {
        assert_int_equal(status, VKN_BAD_INPUT);
        assert_error(expected + 1);
    } else {
        assert_ok(status);
        char *wanted = base_format("%s%s%s", path, expected[0] != '\0' ? "/" : "", expected);
        assert_string_equal(images, wanted);
        free(wanted);
    }
    free(images);
}

/* The image folder of captures whose files name none. */
static void test_capture_folders(void **state)
{
    static const char *const captures[][2] = {
        {"images/a.png\nimages_2/a.png\ninput/a.png", "images"},
        {"images_2/a.png\ninput/a.png", "images_2"},
        {"input/a.png", "input"},
        {"rgb/a.png\nb.png", "rgb"},
        {"a.png", ""},
        {"input/a.png\nRGB/a.png", "!both "},
        {"sparse/a.png", "!neither images nor images_N is in "},
    };
    for (size_t i = 0; i < BASE_COUNT(captures); i++)
        check_capture(*state, captures[i][0], captures[i][1]);
}

static void test_capture_any_case(void **state)
{
    check_capture(*state, "Images/a.png", "Images");
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
        TEST(test_jpeg_inks),
        TEST(test_jpeg_long_prelude),
        TEST(test_png_long_prelude),
        TEST(test_other_formats),
        TEST(test_every_truncation),
        TEST(test_every_changed_byte),
        TEST(test_hostile_sizes),
        TEST(test_corrupt_jpeg),
        TEST(test_hostile_jpeg),
        TEST(test_not_images),
        TEST(test_downscale_by_hand),
        TEST(test_downscale_drops_edges),
        TEST(test_downscale_stays_premultiplied),
        TEST(test_load),
        TEST(test_share),
        TEST(test_load_alpha),
        TEST(test_load_errors),
        TEST(test_views),
        TEST(test_exif_turned),
        TEST(test_exif_messages),
        TEST(test_exif_evidence),
        TEST(test_exif_masks),
        TEST(test_exif_hostile),
        TEST(test_names),
        TEST(test_names_of_unix),
        TEST(test_names_unsized),
        cmocka_unit_test(test_name_keys),
        TEST(test_names_hostile),
        TEST(test_names_odd_entries),
        TEST(test_pipes),
        TEST(test_list),
        TEST(test_capture_folders),
        TEST(test_capture_any_case),
    };
    return cmocka_run_group_tests_name("scene images", tests, NULL, NULL);
}
