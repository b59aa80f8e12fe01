/* Tests the safetensors module: files are written byte for byte as the format demands and read
 * back, and every malformed file is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "safetensors/safetensors.h"

static char folder[] = "/tmp/vknerf-safetensors-XXXXXX";
static char path[sizeof(folder) + 32];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof(path), "%s/test.safetensors", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void assert_error_names(const char *part)
{
    if (!strstr(vkn_last_error(), part))
        fail_msg("\"%s\" is not in the message: %s", part, vkn_last_error());
    assert_null(strchr(vkn_last_error(), '\n'));
}

/* ---- files made by hand --------------------------------------------------------------------- */

/* Writes header length, header and data; returns the size. */
static size_t make_file(char *bytes, const char *header, const void *data, size_t data_size)
{
    uint64_t length = strlen(header);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    if (data_size)
        memcpy(bytes + 8 + length, data, data_size);
    return 8 + length + data_size;
}

static vkn_status open_header(const char *header, size_t data_size, struct safetensors_file **file)
{
    char bytes[4096], data[256] = {0};
    size_t size = make_file(bytes, header, data, data_size);
    return safetensors_open_bytes("hand.safetensors", bytes, size, file);
}

static void assert_refused(const char *header, size_t data_size, const char *part)
{
    struct safetensors_file *file;
    if (open_header(header, data_size, &file) != VKN_BAD_INPUT)
        fail_msg("accepted: %s", header);
    assert_null(file);
    assert_error_names("hand.safetensors");
    assert_error_names(part);
}

static void assert_accepted(const char *header, size_t data_size, size_t count)
{
    struct safetensors_file *file;
    if (open_header(header, data_size, &file) != VKN_OK)
        fail_msg("%s: %s", header, vkn_last_error());
    assert_int_equal(safetensors_count(file), count);
    safetensors_close(&file);
    assert_null(file);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void exact_bytes(void **state)
{
    (void)state;
    static const char expected_header[] =
        "{\"__metadata__\":{\"a\":\"q\\\"\\n\\u0001\"},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"c\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]}}";
    static const unsigned char data[] = {0, 0, 128, 63, 0, 0, 0, 192, 7, 8, 9};
    const float floats[] = {1.0f, -2.0f};
    const uint8_t octets[] = {7, 8, 9};
    const struct safetensors_tensor tensors[] = {
        {"c", SAFETENSORS_U8, 1, {3}, octets, 3}, /* stored after the larger elements */
        {"b", SAFETENSORS_F32, 2, {1, 2}, floats, 8},
    };
    const struct safetensors_metadata metadata[] = {{"a", "q\"\n\x01"}};
    assert_int_equal(safetensors_write(path, tensors, 2, metadata, 1), VKN_OK);

    char expected[512], *bytes;
    char padded[256];
    snprintf(padded, sizeof(padded), "%-*s", (int)((strlen(expected_header) + 7) / 8 * 8),
             expected_header);
    size_t expected_size = make_file(expected, padded, data, sizeof(data)), size;
    assert_int_equal(base_file_read(path, 4096, &bytes, &size), VKN_OK);
    assert_int_equal(size, expected_size);
    assert_memory_equal(bytes, expected, size);
    free(bytes);
}

static void round_trip(void **state)
{
    (void)state;
    const float f32[] = {1.5f, -0.0f, 3e38f, 1e-40f, 0.0f, -7.0f};
    const uint16_t f16[] = {0x3c00, 0x7bff, 1};
    const int32_t i32[] = {INT32_MIN, -1, INT32_MAX};
    const uint32_t u32[] = {0, UINT32_MAX};
    const uint8_t u8[] = {1, 2, 3, 4, 255};
    const uint64_t u64[] = {UINT64_MAX};
    const struct safetensors_tensor tensors[] = {
        {"bits", SAFETENSORS_U8, 1, {5}, u8, sizeof(u8)},
        {"weights", SAFETENSORS_F32, 4, {1, 2, 1, 3}, f32, sizeof(f32)},
        {"half \xc3\xa9 \"x\"\\", SAFETENSORS_F16, 1, {3}, f16, sizeof(f16)},
        {"signed", SAFETENSORS_I32, 1, {3}, i32, sizeof(i32)},
        {"words", SAFETENSORS_U32, 2, {2, 1}, u32, sizeof(u32)},
        {"key", SAFETENSORS_U64, 0, {0}, u64, sizeof(u64)},
        {"empty", SAFETENSORS_F32, 2, {0, 4}, NULL, 0},
    };
    const struct safetensors_metadata metadata[] = {
        {"config", "{\"model\": \"ngp\",\n\t\"steps\": 5}"},
        {"", "\x1f\x7f\b\f\r"},
        {"\xe2\x82\xac", ""}};
    assert_int_equal(safetensors_write(path, tensors, BASE_COUNT(tensors), metadata, 3), VKN_OK);

    struct safetensors_file *file;
    assert_int_equal(safetensors_open(path, &file), VKN_OK);
    assert_int_equal(safetensors_count(file), BASE_COUNT(tensors));
    for (size_t i = 0; i < BASE_COUNT(tensors); i++) {
        const struct safetensors_tensor *want = &tensors[i], *found;
        uint64_t elements = 1;
        for (uint32_t d = 0; d < want->rank; d++)
            elements *= want->shape[d];
        assert_int_equal(safetensors_find(file, want->name, want->type, elements, &found), VKN_OK);
        assert_int_equal(found->rank, want->rank);
        assert_memory_equal(found->shape, want->shape, want->rank * sizeof(want->shape[0]));
        assert_int_equal(found->size, want->size);
        if (want->size)
            assert_memory_equal(found->data, want->data, want->size);
    }
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(safetensors_metadata_value(file, metadata[i].key), metadata[i].value);
    assert_null(safetensors_metadata_value(file, "absent"));
    for (size_t i = 0; i < safetensors_count(file); i++)
        assert_int_equal((uintptr_t)safetensors_at(file, i)->data % (i == 0 ? 8 : 1), 0);
    assert_null(safetensors_at(file, safetensors_count(file)));
    safetensors_close(&file);
    safetensors_close(&file);
}

static void find_says_what_differs(void **state)
{
    (void)state;
    const float value = 1.0f;
    const struct safetensors_tensor tensor = {"w", SAFETENSORS_F32, 1, {1}, &value, 4};
    assert_int_equal(safetensors_write(path, &tensor, 1, NULL, 0), VKN_OK);
    struct safetensors_file *file;
    const struct safetensors_tensor *found;
    assert_int_equal(safetensors_open(path, &file), VKN_OK);
    assert_null(safetensors_metadata_value(file, "config"));
    assert_int_equal(safetensors_find(file, "v", SAFETENSORS_F32, 1, &found), VKN_BAD_INPUT);
    assert_error_names("tensor v is missing");
    assert_int_equal(safetensors_find(file, "w", SAFETENSORS_F16, 1, &found), VKN_BAD_INPUT);
    assert_error_names("tensor w is F32, expected F16");
    assert_int_equal(safetensors_find(file, "w", SAFETENSORS_F32, 2, &found), VKN_BAD_INPUT);
    assert_error_names("tensor w has 1 elements, expected 2");
    assert_error_names(path);
    assert_null(found);
    safetensors_close(&file);
}

#define TENSOR(name, type, shape, begin, end)                                                     \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end \
    "]}"

static void accepts_what_the_format_allows(void **state)
{
    (void)state;
    assert_accepted("{}", 0, 0);
    assert_accepted("{}   ", 0, 0);
    assert_accepted("{\"__metadata__\":{}}", 0, 0);
    assert_accepted("{ " TENSOR("a", "F32", "[]", 0, 4) " }", 4, 1);
    /* any order in the header; empty tensors between others */
    assert_accepted("{" TENSOR("b", "U8", "[4]", 4, 8) "," TENSOR(
                        "a", "U8", "[4]", 0, 4) "," TENSOR("n", "F32", "[0]", 4, 4) "}",
                    8, 3);
}

static void realigns(void **state)
{
    (void)state;
    /* a header of odd length, and a U64 after three bytes */
    const char *header =
        "{" TENSOR("a", "U8", "[3]", 0, 3) "," TENSOR("b", "U64", "[2]", 3, 19) "} ";
    const uint64_t words[] = {0x0102030405060708u, 42};
    char bytes[512], data[19] = "xyz";
    memcpy(data + 3, words, 16);
    struct safetensors_file *file;
    for (int padding = 0; padding < 8; padding++) {
        char padded[256];
        snprintf(padded, sizeof(padded), "%s%*s", header, padding, "");
        size_t size = make_file(bytes, padded, data, sizeof(data));
        assert_int_equal(safetensors_open_bytes("odd", bytes, size, &file), VKN_OK);
        const struct safetensors_tensor *found;
        assert_int_equal(safetensors_find(file, "b", SAFETENSORS_U64, 2, &found), VKN_OK);
        const uint64_t *values = found->data;
        assert_int_equal((uintptr_t)values % 8, 0);
        assert_true(values[0] == words[0] && values[1] == words[1]);
        assert_int_equal(safetensors_find(file, "a", SAFETENSORS_U8, 3, &found), VKN_OK);
        assert_memory_equal(found->data, "xyz", 3);
        safetensors_close(&file);
    }
}

static void refuses_headers(void **state)
{
    (void)state;
    assert_refused("", 0, "header");
    assert_refused(" {}", 0, "header");
    assert_refused("[]", 0, "header");
    assert_refused("{", 0, "header");
    assert_refused("{\"a\":}", 0, "header");
    assert_refused("{}x", 0, "header");
    assert_refused("{}{}", 0, "header");
    assert_refused("{\"__metadata__\":[]}", 0, "__metadata__");
    assert_refused("{\"__metadata__\":{\"a\":1}}", 0, "__metadata__");
    assert_refused("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ appears twice");
    assert_refused("{}", 1, "1 bytes follow");
    assert_refused("{\"a\\nb\":1}", 0, "control characters");
}

static void refuses_tensors(void **state)
{
    (void)state;
    assert_refused("{\"w\":7}", 0, "tensor w");
    assert_refused("{\"w\":{}}", 0, "tensor w");
    assert_refused("{\"w\":{\"dtype\":\"U8\",\"shape\":[0]}}", 0, "tensor w");
    assert_refused(
        "{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0,
        "once");
    assert_refused("{\"w\":{\"dtype\":3,\"shape\":[0],\"data_offsets\":[0,0]}}", 0, "dtype");
    assert_refused("{" TENSOR("w", "BF16", "[0]", 0, 0) "}", 0, "tensor w: dtype");
    assert_refused("{" TENSOR("w", "U8", "0", 0, 0) "}", 0, "shape");
    assert_refused("{" TENSOR("w", "U8", "[-1]", 0, 0) "}", 0, "shape");
    assert_refused("{" TENSOR("w", "U8", "[0.5]", 0, 0) "}", 0, "shape");
    assert_refused("{" TENSOR("w", "U8", "[\"1\"]", 0, 1) "}", 1, "shape");
    assert_refused("{" TENSOR("w", "U8", "[1e300]", 0, 1) "}", 1, "shape");
    assert_refused("{" TENSOR("w", "U8", "[1,1,1,1,1]", 0, 1) "}", 1, "4 dimensions");
    /* 2^32 * 2^32 elements, and 2^62 elements of 4 bytes: both are 0 modulo 2^64 */
    assert_refused("{" TENSOR("w", "U8", "[4294967296,4294967296]", 0, 0) "}", 0, "too large");
    assert_refused("{" TENSOR("w", "F32", "[2147483648,2147483648]", 0, 0) "}", 0, "too large");
    assert_refused("{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1,
                   "data_offsets");
    assert_refused("{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1,
                   "data_offsets");
    assert_refused("{" TENSOR("w", "U8", "[1]", 1, 0) "}", 1, "data_offsets");
    assert_refused("{" TENSOR("w", "U8", "[1]", 0.5, 1.5) "}", 2, "data_offsets");
    assert_refused("{" TENSOR("w", "U8", "[1]", -1, 0) "}", 1, "data_offsets");
    assert_refused("{" TENSOR("w", "F32", "[2]", 0, 4) "}", 4, "do not match");
}

static void refuses_layouts(void **state)
{
    (void)state;
    assert_refused("{" TENSOR("w", "U8", "[4]", 0, 4) "," TENSOR("w", "U8", "[4]", 4, 8) "}", 8,
                   "twice");
    assert_refused("{" TENSOR("w", "U8", "[5]", 0, 5) "}", 4, "tensor w: reaches past");
    assert_refused("{" TENSOR("w", "U8", "[4]", 1, 5) "}", 5, "tensor w: leaves a hole");
    assert_refused("{" TENSOR("v", "U8", "[4]", 0, 4) "," TENSOR("w", "U8", "[4]", 2, 6) "}", 6,
                   "tensor w: overlaps");
    assert_refused("{" TENSOR("v", "U8", "[4]", 0, 4) "," TENSOR("w", "U8", "[4]", 0, 4) "}", 4,
                   "overlaps");
    assert_refused("{" TENSOR("w", "U8", "[4]", 0, 4) "}", 6, "2 bytes follow");
    assert_refused("{" TENSOR("w", "U8", "[9007199254740992]", 0, 9007199254740992) "}", 4,
                   "reaches past");
    assert_refused("{" TENSOR("w", "U8", "[0]", 9007199254740992, 9007199254740992) "}", 4, "hole");
}

static void refuses_lengths(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {3,          100,        (uint64_t)17 << 20,
                                       UINT32_MAX, UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < BASE_COUNT(lengths); i++) {
        char bytes[10];
        memcpy(bytes, &lengths[i], 8);
        memcpy(bytes + 8, "{}", 2);
        struct safetensors_file *file;
        assert_int_equal(safetensors_open_bytes("length", bytes, sizeof(bytes), &file),
                         VKN_BAD_INPUT);
        assert_error_names("length: header");
    }
}

/* Every truncation of a good file is refused; a single changed byte never crashes the reader. */
static void survives_damage(void **state)
{
    (void)state;
    const char *header = "{\"__metadata__\":{\"k\":\"v\"}," TENSOR(
        "a", "F32", "[2]", 0, 8) "," TENSOR("b", "U8", "[2]", 8, 10) "}";
    char bytes[512], data[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    size_t size = make_file(bytes, header, data, sizeof(data));
    struct safetensors_file *file;
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(safetensors_open_bytes("cut", bytes, cut, &file), VKN_BAD_INPUT);
    for (size_t at = 0; at < size; at++) {
        char original = bytes[at];
        for (int flip = 1; flip < 256; flip++) {
            bytes[at] = (char)(original ^ flip);
            if (safetensors_open_bytes("flip", bytes, size, &file) == VKN_OK)
                safetensors_close(&file);
        }
        bytes[at] = original;
    }
}

static void write_refuses_mistakes(void **state)
{
    (void)state;
    const float value[2] = {0};
    const struct safetensors_tensor wrong_size = {"w", SAFETENSORS_F32, 1, {2}, value, 4};
    const struct safetensors_tensor twice[] = {{"w", SAFETENSORS_F32, 1, {1}, value, 4},
                                               {"w", SAFETENSORS_F32, 1, {1}, value, 4}};
    unlink(path);
    assert_int_equal(safetensors_write(path, &wrong_size, 1, NULL, 0), VKN_ERROR);
    assert_error_names("tensor w");
    assert_int_equal(safetensors_write(path, twice, 2, NULL, 0), VKN_ERROR);
    assert_error_names("tensor w");
    assert_false(base_file_exists(path));
    char *below = base_path_join(path, "x.safetensors"); /* inside a file, not a folder */
    assert_int_equal(base_file_replace(path, "", 0), VKN_OK);
    assert_int_not_equal(safetensors_write(below, twice, 1, NULL, 0), VKN_OK);
    assert_error_names(below);
    free(below);
}

static void missing_file(void **state)
{
    (void)state;
    struct safetensors_file *file;
    char *absent = base_path_join(folder, "absent.safetensors");
    assert_int_not_equal(safetensors_open(absent, &file), VKN_OK);
    assert_null(file);
    assert_error_names(absent);
    free(absent);
}

/* ---- checksum ------------------------------------------------------------------------------- */

static void write_summed(char **bytes, size_t *size)
{
    const float values[] = {1.5f, -2.0f};
    const struct safetensors_tensor tensor = {"w", SAFETENSORS_F32, 1, {2}, values, 8};
    const struct safetensors_metadata metadata[] = {
        {"a", "caf\xe9 \"" SAFETENSORS_CHECKSUM "\":\"12345678\""},
        {SAFETENSORS_CHECKSUM, SAFETENSORS_CHECKSUM_UNSET},
    };
    assert_int_equal(safetensors_write(path, &tensor, 1, metadata, 2), VKN_OK);
    assert_int_equal(base_file_read(path, 4096, bytes, size), VKN_OK);
}

/* The checksum is that of the file with zeros for its digits. Any other changed byte is noticed,
 * except in the checksum's key: a file without checksum is of an older version. */
static void checksum(void **state)
{
    (void)state;
    size_t size = 0;
    char *bytes = NULL;
    write_summed(&bytes, &size);
    struct safetensors_file *file = NULL;
    assert_int_equal(safetensors_open(path, &file), VKN_OK);
    unsigned long sum = strtoul(safetensors_metadata_value(file, SAFETENSORS_CHECKSUM), NULL, 16);
    assert_non_null(strstr(safetensors_metadata_value(file, "a"), "caf\xef\xbf\xbd \""));
    safetensors_close(&file);
    const char *key = strstr(bytes + 8, "\"" SAFETENSORS_CHECKSUM "\":\"");
    assert_non_null(key);
    const size_t name = (size_t)(key - bytes) + 1, name_end = name + strlen(SAFETENSORS_CHECKSUM);
    for (size_t at = 0; at < size; at++) {
        bytes[at] ^= 1;
        if (at < name || at >= name_end)
            assert_int_equal(safetensors_open_bytes("flip", bytes, size, &file), VKN_BAD_INPUT);
        bytes[at] ^= 1;
    }
    bytes[size - 1] ^= 1;
    assert_int_equal(safetensors_open_bytes("flip", bytes, size, &file), VKN_BAD_INPUT);
    assert_error_names("flip: its checksum (vknerf.crc32c) does not match");
    bytes[size - 1] ^= 1;
    char digits[9];
    snprintf(digits, sizeof(digits), "%08lx", sum);
    char *at = strstr(bytes + 8, digits);
    assert_non_null(at);
    memcpy(at, SAFETENSORS_CHECKSUM_UNSET, 8);
    assert_int_equal(base_crc32c(0, bytes, size), sum);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_bytes),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(checksum),
        cmocka_unit_test(find_says_what_differs),
        cmocka_unit_test(accepts_what_the_format_allows),
        cmocka_unit_test(realigns),
        cmocka_unit_test(refuses_headers),
        cmocka_unit_test(refuses_tensors),
        cmocka_unit_test(refuses_layouts),
        cmocka_unit_test(refuses_lengths),
        cmocka_unit_test(survives_damage),
        cmocka_unit_test(write_refuses_mistakes),
        cmocka_unit_test(missing_file),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
