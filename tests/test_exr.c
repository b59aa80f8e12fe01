/* Tests the reader of EXR files: values, rows and windows of all kinds of files that are read, and
 * files that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "captures.h"
#include "exr.h"
#include "scene/exr.h"

#define WIDTH  61u
#define HEIGHT 37u /* two chunks of ZIP of 16 rows and one of 5 */

/* Values that f16 has too, in rows that compress and rows that do not. */
static void make_values(float *values)
{
    static const float special[] = {0, -1.5F, NAN, INFINITY, -INFINITY, 0x1p-24F, 65504};
    uint32_t random = 1;
    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++) {
        const uint32_t row = i / WIDTH;
        random = random * 1664525u + 1013904223u;
        values[i] = i < BASE_COUNT(special)  ? special[i]
                    : i < WIDTH * HEIGHT / 2 ? (float)row + 0.25F * (float)(i % WIDTH)
                                             : base_from_f16(random >> 16 & 0x7bffu);
    }
}

/* Parses a copy of exactly `size` bytes, so that sanitizers notice reads behind it. */
static vkn_status parse(const char *data, size_t size, float **values, uint32_t *width,
                        uint32_t *height)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    vkn_status status = exr_parse("x.exr", copy, size, values, width, height);
    free(copy);
    return status;
}

static void assert_refused(const struct base_text *file, const char *part)
{
    float *values = NULL;
    uint32_t width, height;
    assert_int_equal(parse(file->data, file->size, &values, &width, &height), VKN_BAD_INPUT);
    assert_null(values);
    assert_error(part);
}

static void test_kinds(void **state)
{
    static const uint8_t compressions[] = {EXR_UNCOMPRESSED, EXR_ZIPS, EXR_ZIP};
    float given[WIDTH * HEIGHT];
    (void)state;
    make_values(given);
    for (unsigned i = 0; i < 12; i++) {
        const struct exr_kind kind = {.is_half = i % 2 == 1,
                                      .compression = compressions[i / 2 % 3],
                                      .column = i < 6 ? 0 : -5,
                                      .row = i < 6 ? 0 : -20,
                                      .is_upwards = i >= 6};
        struct base_text file = exr_file(&kind, WIDTH, HEIGHT, given);
        float *values = NULL;
        uint32_t width = 0, height = 0;
        assert_ok(parse(file.data, file.size, &values, &width, &height));
        assert_int_equal(width, WIDTH);
        assert_int_equal(height, HEIGHT);
        for (uint32_t n = 0; n < WIDTH * HEIGHT; n++)
            assert_true(values[n] == given[n] || (isnan(values[n]) && isnan(given[n])));
        if (kind.compression != EXR_UNCOMPRESSED)
            assert_true(file.size < WIDTH * HEIGHT * (kind.is_half ? 2 : 4));
        free(values);
        free(file.data);
    }
}

/* ---- refused files --------------------------------------------------------------------------- */

/* Returns the name of an attribute in the file. */
static char *find(const struct base_text *file, const char *attribute)
{
    char *at = file->data;
    while (memcmp(at, attribute, strlen(attribute) + 1) != 0)
        at++;
    return at;
}

/* Returns the size of an attribute, 4 bytes before its value. */
static char *size_of(char *attribute)
{
    char *type = attribute + strlen(attribute) + 1;
    return type + strlen(type) + 1;
}

/* Replaces bytes at `offset` in the value of an attribute. */
static void replace(struct base_text *file, const char *attribute, size_t offset, uint64_t value,
                    size_t bytes)
{
    char *at = size_of(find(file, attribute)) + 4 + offset;
    for (size_t i = 0; i < bytes; i++)
        at[i] = (char)(value >> 8 * i);
}

static void test_refused(void **state)
{
    static const struct {
        const char *attribute; /* NULL: from the start of the file */
        size_t offset;
        uint64_t value;
        size_t bytes;
        const char *message;
    } changes[] = {
        {NULL, 0, 0x77, 1, "x.exr: not an EXR file"},
        {NULL, 4, 1, 1, "tiles, several parts or deep pixels"},
        {NULL, 5, 0x02, 1, "tiles, several parts or deep pixels"}, /* tiles */
        {NULL, 5, 0x08, 1, "tiles, several parts or deep pixels"}, /* deep */
        {NULL, 5, 0x10, 1, "tiles, several parts or deep pixels"}, /* parts */
        {"channels", 2, 0, 1, "x.exr: channels: values are not floats"},
        {"channels", 2, 3, 1, "x.exr: channels: values are not floats"},
        {"channels", 10, 2, 1, "x.exr: channels: pixels are left out"},
        {"channels", 14, 2, 1, "x.exr: channels: pixels are left out"},
        {"channels", 1, 'G', 1, "x.exr: channels: not exactly one channel"},
        {"compression", 0, 1, 1, "x.exr: compression: 1 is not read"},
        {"compression", 0, 4, 1, "x.exr: compression: 4 is not read"},
        {"dataWindow", 8, 0x7fffffff, 4, "x.exr: dataWindow: 2147483648x37 pixels are more"},
        {"dataWindow", 12, 0x7fffffff, 4, "x.exr: dataWindow: 61x2147483648 pixels are more"},
        {"dataWindow", 0, 0x80000000, 4, "dataWindow: 2147483709x37 pixels are more"},
        {"dataWindow", 8, 16384, 4, "x.exr: dataWindow: 16385x37 pixels are more"},
        {"dataWindow", 8, 0xffffffff, 4, "x.exr: dataWindow: empty image"},
        {"dataWindow", 12, 0x80000000, 4, "x.exr: dataWindow: empty image"},
        {"dataWindow", 8, 16383, 4, "x.exr: damaged rows from 0 on"},
        {"dataWindow", 12, 16383, 4, "x.exr: truncated"},
        {"dataWindow", 4, 1, 4, "x.exr: damaged rows from 0 on"},
        {"comments", 1, 0, 8, "x.exr: damaged rows from 0 on"},             /* offset 0 */
        {"comments", 1, 0xffffffffffffffff, 8, "x.exr: truncated"},         /* offset */
        {"comments", 1 + 8 * 3 + 4, 0xffffffff, 4, "x.exr: truncated"},     /* size of a chunk */
        {"comments", 1 + 8 * 3, 16, 4, "x.exr: damaged rows from 0 on"},    /* row of a chunk */
        {"comments", 1 + 8 * 4 + 2, 0, 4, "x.exr: damaged rows from 0 on"}, /* zlib */
        {"comments", 1 + 8 * 3 + 4, 9, 4, "x.exr: damaged rows from 0 on"},
    };
    float given[WIDTH * HEIGHT];
    const struct exr_kind kind = {.compression = EXR_ZIP};
    (void)state;
    make_values(given);
    for (size_t i = 0; i < BASE_COUNT(changes); i++) {
        struct base_text file = exr_file(&kind, WIDTH, HEIGHT, given);
        if (changes[i].attribute != NULL)
            replace(&file, changes[i].attribute, changes[i].offset, changes[i].value,
                    changes[i].bytes);
        else
            file.data[changes[i].offset] = (char)changes[i].value;
        assert_refused(&file, changes[i].message);
        free(file.data);
    }
    struct base_text file = exr_file(&kind, WIDTH, HEIGHT, given);
    replace(&file, "comments", 1, file.size - 4, 8); /* offset */
    assert_refused(&file, "x.exr: truncated");
    free(file.data);
}

/* Required attributes must be there, with values of their sizes. */
static void test_attributes(void **state)
{
    static const char *const names[] = {"channels", "compression", "dataWindow"};
    const struct exr_kind kind = {0};
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(names); i++) {
        struct base_text file = exr_file(&kind, 1, 1, (float[]){1});
        char *at = find(&file, names[i]);
        *at = 'x';
        assert_refused(&file, "x.exr: channels, compression or dataWindow is missing");
        *at = names[i][0];
        (*size_of(at))--; /* the rest is parsed as an attribute */
        assert_refused(&file, i == 0   ? "channels: not exactly one channel"
                              : i == 1 ? "compression: 255 is not read"
                                       : "dataWindow: not four numbers");
        free(file.data);
    }
}

/* A second channel is refused, as its values would follow in each row. */
static void test_two_channels(void **state)
{
    struct base_text file = exr_file(&(struct exr_kind){0}, 1, 1, (float[]){1}), two = {0};
    const char *size = size_of(find(&file, "channels"));
    (void)state;
    base_text_add_bytes(&two, file.data, (size_t)(size - file.data));
    exr_number(&two, 2 * 18 + 1, 4);
    base_text_add_bytes(&two, size + 4, 18);
    base_text_add_bytes(&two, size + 4, (size_t)(file.data + file.size - size) - 4);
    assert_refused(&two, "x.exr: channels: not exactly one channel");
    free(two.data);
    free(file.data);
}

/* A file that ends anywhere is refused; a changed byte anywhere does no harm. */
static void test_damaged(void **state)
{
    float given[WIDTH * HEIGHT], *values = NULL;
    uint32_t width = 0, height = 0;
    (void)state;
    make_values(given);
    for (int i = 0; i < 2; i++) {
        const struct exr_kind kind = {.compression = i == 0 ? EXR_UNCOMPRESSED : EXR_ZIP,
                                      .is_half = true};
        struct base_text file = exr_file(&kind, 9, 18, given); /* two chunks of ZIP */
        for (size_t size = 0; size < file.size; size++) {
            assert_int_equal(parse(file.data, size, &values, &width, &height), VKN_BAD_INPUT);
            assert_null(values);
        }
        for (size_t bit = 0; bit < 8 * file.size; bit++) {
            file.data[bit / 8] ^= (char)(1 << bit % 8);
            vkn_status status = parse(file.data, file.size, &values, &width, &height);
            assert_true(status == VKN_OK || status == VKN_BAD_INPUT);
            free(values);
            file.data[bit / 8] ^= (char)(1 << bit % 8);
        }
        free(file.data);
    }
}

/* A small file that claims many pixels is refused before memory is allocated. */
static void test_claims(void **state)
{
    struct base_text file = exr_header(&(struct exr_kind){.compression = EXR_ZIP}, 16384, 16384);
    (void)state;
    for (size_t i = 0; i < 1024; i++)
        exr_number(&file, 0, 8);
    assert_refused(&file, "x.exr: truncated");
    free(file.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_attributes), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_claims),     cmocka_unit_test(test_two_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
