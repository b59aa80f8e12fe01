/* Tests src/base: cleaned messages, line ends, JSON numbers, other locales, f16, checksums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

#include "config/config.h"
#include "comma_locale.h"

/* ---- messages ------------------------------------------------------------------------------ */

static void test_clean_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"a\nforged: line\r\x1b[31m\x7f\t", "a forged: line  [31m  "},
        {"\xc2\x9b"
         "31m",
         "  31m"}, /* CSI as one C1 character */
        {"\x9b"
         "31m\xff",
         "?31m?"}, /* CSI as one byte, which is not UTF-8 */
        /* Line separator, right-to-left override and its end. */
        {"\xe2\x80\xa8|\xe2\x80\xae|\xe2\x80\xac", "   |   |   "},
        {"\xc0\x8a|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82", "??|???|????|??"},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s", cases[i].text);
        vkn_clean_line(text);
        assert_string_equal(text, cases[i].wanted);
        base_fail(VKN_ERROR, "%s", cases[i].text);
        assert_string_equal(vkn_last_error(), cases[i].wanted);
    }
}

static void test_log_is_clean(void **state)
{
    struct temporary *folder = *state;
    char *path = base_path_join(folder->path, "log"), *data = NULL;
    size_t size = 0;
    fflush(stderr);
    int saved = dup(2);
    assert_non_null(freopen(path, "w", stderr));
    base_log(BASE_LOG_WARNING, "%s: two", "file\nwarning: forged\x1b[2J");
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    assert_ok(base_file_read(path, 1000, &data, &size));
    assert_string_equal(data, "warning: file warning: forged [2J: two\n");
    free(data);
    free(path);
}

static void clean_up(void)
{
    BASE_KEEP_ERROR;
    base_fail(VKN_ERROR, "what cleaning up met");
    errno = EBUSY;
}

static void test_kept_error(void **state)
{
    (void)state;
    base_fail(VKN_ERROR, "the failure");
    errno = ENOSPC;
    clean_up();
    assert_int_equal(errno, ENOSPC);
    assert_string_equal(vkn_last_error(), "the failure");
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void test_json_syntax(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"steps\":10,}", "line 1, column 12: not valid JSON: a comma after the last item"},
        {"{\"steps\":10,}\n", "line 1, column 12: not valid JSON: a comma after the last item"},
        {"[1,\n 2,\n]", "line 2, column 3: not valid JSON: a comma after the last item"},
        {"{\"a\":[1}", "line 1, column 7: not valid JSON near 1}"},
        {"{\"a\":}", "line 1, column 6: not valid JSON near }"},
        {"{\"a\"", "line 1, column 5: not valid JSON: the file ends too early"},
        {"{\"a\":tr", "line 1, column 6: not valid JSON near tr"},
        {"[1 2]", "line 1, column 4: not valid JSON near 2]"},
        {"[,1]", "line 1, column 2: not valid JSON near ,1]"},
        {"[1.5e]", "line 1, column 2: not valid JSON near 1.5e]"},
        {"[+1]", "line 1, column 2: not valid JSON near +1]"},
        {"[\"a\\x\"]", "line 1, column 3: not valid JSON near a\\x\"]"},
        {"[\"\\u12g4\"]", "line 1, column 3: not valid JSON: \\u needs four hexadecimal digits"},
        {"[\"\\ud800\"]", "line 1, column 3: not valid JSON near \\ud800\"]"},
        {"{a: 1}", "line 1, column 2: not valid JSON near a:"},
        {"{'a': 1}", "line 1, column 2: not valid JSON near 'a':"},
        {"{\"a\": \"b, c", "line 1, column 12: not valid JSON: the file ends too early"},
        {"[NaN, Infinity,\n NaN, Infinity 1]", "line 2, column 16: not valid JSON near 1]"},
        {"[NaN] -", "line 1, column 7: not valid JSON: text after the end"},
        {"[\v]", "line 1, column 2: not valid JSON"},
        {"   ", "line 1, column 4: not valid JSON: the file ends too early"},
    };
    static const char *const good[] = {
        "0",
        " [ ] ",
        "{}",
        "[{},[]]",
        "\xef\xbb\xbf{\"a\":[1.,-0.5e+3,01,true,false,null]}",
        "[\"\\ud83d\\ude00\\\"\\\\\"]",
    };
    cJSON *json = NULL;
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        const char *text = cases[i].text;
        assert_int_equal(base_json_parse("x", text, strlen(text), &json), VKN_BAD_INPUT);
        assert_error(cases[i].message);
    }
    for (size_t i = 0; i < BASE_COUNT(good); i++) {
        assert_ok(base_json_parse("x", good[i], strlen(good[i]), &json));
        cJSON_Delete(json);
    }
}

/* NaN and infinities as Python writes them are read anywhere in a file. */
static void test_json_not_finite(void **state)
{
    (void)state;
    static const char text[] =
        "\xef\xbb\xbf{\"NaN, \\\"Infinity\": NaN, \"b\": [-Infinity,Infinity], \"c\": 7}";
    cJSON *json = NULL;
    double value = 0;
    assert_ok(base_json_parse("x", text, sizeof text - 1, &json));
    assert_int_equal(base_json_number(json, "NaN, \"Infinity", "x", false, 0, 1, &value),
                     VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "x: NaN, \"Infinity: not a finite number");
    const cJSON *list = cJSON_GetObjectItem(json, "b");
    assert_true(list->child->valuedouble == (double)-INFINITY &&
                list->child->next->valuedouble == (double)INFINITY);
    assert_ok(base_json_number(json, "c", "x", true, 0, 9, &value));
    assert_true(value == 7);
    cJSON_Delete(json);
    static const char *const bad[] = {"[-NaN]", "[Inf]", "[nan]", "[-]",
                                      "[NaN",   "[N",    "NaN1",  "[3Infinity]"};
    for (size_t i = 0; i < BASE_COUNT(bad); i++)
        assert_int_equal(base_json_parse("x", bad[i], strlen(bad[i]), &json), VKN_BAD_INPUT);
}

static void check_text(struct temporary *folder, const char *bytes, size_t size, const char *wanted)
{
    char *path = temporary_file(folder, "text", bytes, size), *text = NULL;
    assert_ok(base_text_read(path, 100, &text, &size));
    assert_string_equal(text, wanted);
    assert_int_equal(size, strlen(wanted));
    free(text);
}

static void check_not_utf8(struct temporary *folder, const char *bytes, size_t size,
                           const char *message)
{
    char *path = temporary_file(folder, "text", bytes, size), *text = NULL;
    cJSON *json = NULL;
    assert_int_equal(base_text_read_any(path, 100, &text, &size), VKN_BAD_INPUT);
    assert_null(text);
    assert_error("/text: ");
    assert_error(message);
    assert_int_equal(base_json_read(path, 100, &json), VKN_BAD_INPUT);
    assert_error(message);
}

static void test_encodings(void **state)
{
    struct temporary *folder = *state;
    check_text(folder, "", 0, "");
    check_text(folder, "\xef\xbb", 2, "\xef\xbb");
    check_text(folder, "\xef\xbb\xbf", 3, "");
    check_text(folder, "\xef\xbb\xbf# a\r\nb\r", 10, "# a\r\nb\r"); /* line ends of Windows */
    check_text(folder, "a\rb\r\rc", 6, "a\nb\n\nc"); /* line ends of old Macintoshes */
    check_text(folder, "a b", 3, "a b");
#define UTF16 "text in UTF-16; save it as UTF-8"
    check_not_utf8(folder, "\xff\xfe[\0]\0", 6, UTF16);
    check_not_utf8(folder, "\xfe\xff\0[\0]", 6, UTF16);
    check_not_utf8(folder, "[\0001\0]\0", 6, UTF16);
    check_not_utf8(folder, "\0[\0001\0]", 6, UTF16);
    check_not_utf8(folder, "\xff\xfe\0\0[\0\0\0", 8, "text in UTF-32; save it as UTF-8");
}

/* Files with too many values are refused: 8 MB of them would take 400 MB of memory. */
static void test_json_values(void **state)
{
    (void)state;
    size_t size = 2 * BASE_JSON_VALUES + 3;
    char *text = base_alloc(size + 1, 1);
    for (size_t i = 0; i < size; i++)
        text[i] = i % 2 ? '0' : ',';
    text[0] = '[';
    text[size - 1] = ']';
    text[size - 2] = '0';
    cJSON *json = NULL;
    assert_int_equal(base_json_parse("x", text, size, &json), VKN_BAD_INPUT);
    assert_string_equal(vkn_last_error(), "x: more than the limit of 4000000 values");
    free(text);
}

static void test_json_is_utf8(void **state)
{
    (void)state;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "caf\xe9", "\xc3\xa9\xff\x80/");
    char *text = base_json_print_unformatted(json);
    assert_string_equal(text, "{\"caf\xef\xbf\xbd\":\"\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd/\"}");
    assert_true(base_is_utf8(text));
    assert_false(base_is_utf8("caf\xe9"));
    free(text);
    cJSON_Delete(json);
}

/* Numbers are written exactly; cJSON itself prints the first two alike. */
static void test_json_numbers(void **state)
{
    (void)state;
    static const double numbers[] = {-156541.15420521898, -156541.154205219, 0.1, 1e300, 500000,
                                     0.30000000000000004};
    cJSON *json = cJSON_CreateObject(), *read = NULL;
    cJSON_AddItemToObject(json, "a", cJSON_CreateDoubleArray(numbers, BASE_COUNT(numbers)));
    char *text = base_json_print_unformatted(json);
    assert_string_equal(text, "{\"a\":[-156541.15420521898,-156541.154205219,0.1,1e+300,500000,"
                              "0.30000000000000004]}");
    free(text);
    text = base_json_print(json);
    assert_ok(base_json_parse("x", text, strlen(text), &read));
    for (int i = 0; i < (int)BASE_COUNT(numbers); i++) {
        const cJSON *list = cJSON_GetObjectItem(read, "a");
        assert_true(cJSON_GetArrayItem(list, i)->valuedouble == numbers[i]);
        assert_true(cJSON_IsNumber(cJSON_GetArrayItem(json->child, i)));
    }
    free(text);
    cJSON_Delete(read);
    cJSON_Delete(json);
}

/* ---- numbers ------------------------------------------------------------------------------- */

static vkn_status check_point(void *context, size_t index)
{
    char text[8];
    snprintf(text, sizeof(text), "%g", 0.5);
    (void)context;
    return strcmp(text, "0.5") == 0 ? VKN_OK : base_fail(VKN_ERROR, "%zu: %s", index, text);
}

static void test_comma_locale(void **state)
{
    struct vkn_config config = {0}, read = {0};
    comma_locale_set(*state);
    assert_ok(vkn_config_set(&config, "x", "optimizer.learning_rate", "0.5"));
    assert_true(config.optimizer.learning_rate == 0.5f);
    char *text = vkn_config_write_json(&config);
    assert_non_null(strstr(text, "\"learning_rate\":\t0.5,"));
    assert_ok(vkn_config_parse_json(&read, "x", text, false));
    assert_true(read.optimizer.learning_rate == 0.5f);
    free(text);
    assert_ok(base_parallel(3, check_point, NULL, NULL));
    char after[8];
    snprintf(after, sizeof(after), "%g", 0.5);
    assert_string_equal(after, "0,5"); /* the application's locale does not change */
    setlocale(LC_ALL, "C");
}

/* Every f16 survives conversion to float; floats between two f16 round to nearest, ties to even. */
static void test_f16(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x7c00; half++) {
        float value = base_from_f16((uint16_t)half), next = base_from_f16((uint16_t)(half + 1));
        assert_int_equal(base_to_f16(value), half);
        assert_int_equal(base_to_f16(-value), half | 0x8000);
        if (half == 0x7bff)
            continue;
        assert_int_equal(base_to_f16(value + 0.25f * (next - value)), half);
        assert_int_equal(base_to_f16(value + 0.5f * (next - value)), half + (half & 1));
        assert_int_equal(base_to_f16(value + 0.75f * (next - value)), half + 1);
    }
    assert_int_equal(base_to_f16(1e6f), 0x7c00);
}

/* ---- checksums ----------------------------------------------------------------------------- */

/* CRC-32C bit by bit, as RFC 3720 defines it. */
static uint32_t slow_crc32c(const uint8_t *data, size_t size)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1u ? 0x82f63b78u : 0u);
    }
    return ~crc;
}

static void test_crc32c(void **state)
{
    (void)state;
    uint8_t data[100];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * i + 3);
    assert_int_equal(base_crc32c(0, "123456789", 9), 0xe3069283u);
    for (size_t size = 0; size <= sizeof(data); size++)
        for (size_t first = 0; first <= size; first += 7) {
            uint32_t crc = base_crc32c(base_crc32c(0, data, first), data + first, size - first);
            assert_int_equal(crc, slow_crc32c(data, size));
        }
}

/* Examples of FIPS 180-4 (NIST's SHA256.pdf and additional messages), and a SHA-256 over the hashes
 * of all lengths around block ends, computed with Python's hashlib. */
static void test_sha256(void **state)
{
    static const struct {
        const char *text, *sum;
    } examples[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrl"
         "mn"
         "opqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char text[BASE_SHA256_TEXT], *sums = base_alloc(130, 64), *million = base_alloc(1000000, 1);
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(examples); i++) {
        base_sha256(examples[i].text, strlen(examples[i].text), text);
        assert_string_equal(text, examples[i].sum);
    }
    memset(million, 'a', 1000000);
    base_sha256(million, 1000000, text);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    for (size_t length = 0; length < 130; length++) {
        base_sha256(million, length, text);
        memcpy(sums + 64 * length, text, 64);
    }
    base_sha256(sums, (size_t)130 * 64, text);
    assert_string_equal(text, "c665ed20ef30f158e90c7e921d8182bc0943c4b087a82f64a18d417bcdfadce7");
    free(sums);
    free(million);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_clean_line),
        cmocka_unit_test_setup_teardown(test_log_is_clean, temporary_setup, temporary_teardown),
        cmocka_unit_test(test_kept_error),
        cmocka_unit_test(test_json_syntax),
        cmocka_unit_test(test_json_values),
        cmocka_unit_test(test_json_not_finite),
        cmocka_unit_test_setup_teardown(test_encodings, temporary_setup, temporary_teardown),
        cmocka_unit_test(test_json_is_utf8),
        cmocka_unit_test(test_json_numbers),
        cmocka_unit_test_setup_teardown(test_comma_locale, temporary_setup, temporary_teardown),
        cmocka_unit_test(test_f16),
        cmocka_unit_test(test_crc32c),
    };
    return cmocka_run_group_tests_name("base text", tests, NULL, NULL);
}
