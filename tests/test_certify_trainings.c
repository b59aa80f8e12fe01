/* Tests how vkn_certify judges trainings and vknerf bench, with a script instead of the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>
#include <vknerf/certify.h>

#include "remove_tree.h"
#include "safetensors/safetensors.h"

static char folder[] = "/tmp/vknerf-test-certify-XXXXXX";

static void write_checkpoint(const char *name, float value)
{
    const struct safetensors_tensor tensor = {.name = "params",
                                              .type = SAFETENSORS_F32,
                                              .rank = 1,
                                              .shape = {1},
                                              .data = &value,
                                              .size = sizeof value};
    char path[128];
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    assert_int_equal(safetensors_write(path, &tensor, 1, NULL, 0), VKN_OK);
}

static char *program; /* the script */

/* Copies the script into the folder, as a program that is found in PATH. */
static bool make_program(void)
{
    char *from = base_format("%s/tests/fake_vknerf.sh", getenv("VKNERF_SOURCE_DIR"));
    char *to = base_path_join(folder, "vknerf"), *script = NULL;
    size_t size = 0;
    bool made = base_file_read(from, 1 << 20, &script, &size) == VKN_OK &&
                base_file_replace(to, script, size) == VKN_OK && chmod(to, 0700) == 0;
    char *path = base_format("%s:/usr/bin:/bin", folder);
    setenv("PATH", path, 1);
    program = base_program_find("vknerf");
    free(path);
    free(script);
    free(to);
    free(from);
    return made && program != NULL;
}

/* Makes a certificate, which the caller deletes. */
static cJSON *certify(const char *only)
{
    char out[128], *text = NULL;
    static int number;
    snprintf(out, sizeof out, "%s/%d", folder, number++);
    const char *const command[] = {program};
    const struct vkn_job job = {.size = sizeof job, .quiet = true};
    const struct vkn_certify_params params = {.size = sizeof params,
                                              .job = &job,
                                              .command = command,
                                              .command_count = 1,
                                              .only = only,
                                              .scene = "scene",
                                              .out = out};
    vkn_status status = vkn_certify(&params, &text);
    if (status != VKN_OK)
        fail_msg("%s", vkn_last_error());
    cJSON *json = cJSON_Parse(text);
    vkn_free(text);
    return json;
}

/* Checks the message of a test of the first part; NULL: it has passed. */
static void check_test(const cJSON *certificate, const char *name, const char *message)
{
    const cJSON *part = cJSON_GetArrayItem(cJSON_GetObjectItem(certificate, "parts"), 0), *test;
    cJSON_ArrayForEach (test, cJSON_GetObjectItem(part, "tests")) {
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(test, "test")), name) != 0)
            continue;
        const char *found = cJSON_GetStringValue(cJSON_GetObjectItem(test, "message"));
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(test, "result")),
                            message ? "failed" : "passed");
        if (message)
            assert_string_equal(found, message);
        return;
    }
    fail_msg("no test %s", name);
}

static void check_failed(cJSON *certificate, int failed)
{
    assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(certificate, "failed")), failed);
    cJSON_Delete(certificate);
}

static void test_good(void **state)
{
    (void)state;
    setenv("FAKE_PSNR", "19.5", 1);
    cJSON *json = certify("trainings");
    check_test(json, "fp32", NULL);
    check_test(json, "fp16", NULL);
    check_test(json, "same bits", NULL);
    check_failed(json, 0);
}

static void test_low_psnr(void **state)
{
    (void)state;
    setenv("FAKE_PSNR", "17.5", 1);
    cJSON *json = certify("trainings");
    check_test(json, "fp32", "PSNR of 17.50 dB, at least 18.50 dB expected");
    check_failed(json, 2);
    setenv("FAKE_PSNR", "null", 1); /* as after NaN */
    json = certify("trainings");
    check_failed(json, 2);
}

static void test_other_bits(void **state)
{
    (void)state;
    setenv("FAKE_PSNR", "19.5", 1);
    setenv("FAKE_BITS", "1", 1);
    cJSON *json = certify("trainings");
    check_test(json, "same bits", "two trainings with the same seed differ in the tensor params");
    check_failed(json, 1);
    unsetenv("FAKE_BITS");
}

static void test_no_training(void **state)
{
    (void)state;
    unsetenv("FAKE_PSNR");
    cJSON *json = certify("trainings");
    check_test(json, "fp16", "exit status 3");
    check_test(json, "same bits", "exit status 3");
    check_failed(json, 3);
}

static void test_bench(void **state)
{
    (void)state;
    cJSON *json = certify("bench");
    check_test(json, "bench", NULL);
    check_failed(json, 0);
    setenv("FAKE_FAULT", "wrong: 1 instead of 2", 1);
    json = certify("bench");
    check_test(json, "bench", "c of p: wrong: 1 instead of 2");
    check_failed(json, 1);
    unsetenv("FAKE_FAULT");
    setenv("FAKE_STATUS", "1", 1);
    json = certify("bench");
    check_test(json, "bench", "exit status 1");
    check_failed(json, 1);
}

/* A part whose process ends without a word has failed. */
static void test_no_part(void **state)
{
    (void)state;
    cJSON *json = certify("lens");
    const cJSON *part = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "parts"), 0);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(part, "error")),
                        "0 of 5 tests have run");
    check_failed(json, 1);
}

static void check_refused(struct vkn_certify_params params, const char *message)
{
    char *text = NULL;
    params.size = sizeof params;
    assert_int_equal(vkn_certify(&params, &text), VKN_BAD_INPUT);
    assert_null(text);
    assert_string_equal(vkn_last_error(), message);
}

static void test_bad_params(void **state)
{
    (void)state;
    const char *const words[] = {"vknerf", NULL};
    const struct vkn_certify_params right = {
        .command = words, .command_count = 1, .out = folder, .scene = "scene"};
    struct vkn_certify_params params = right;
    params.command = NULL;
    check_refused(params, "vkn_certify: no command is given");
    params = right;
    params.command_count = 2;
    check_refused(params, "vkn_certify: word 1 of command is NULL");
    params = right;
    params.out = "";
    check_refused(params, "no folder is given for the certificate");
    params = right;
    params.scene = NULL;
    check_refused(params, "vkn_certify: no scene is given for the trainings");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),       cmocka_unit_test(test_low_psnr),
        cmocka_unit_test(test_other_bits), cmocka_unit_test(test_no_training),
        cmocka_unit_test(test_bench),      cmocka_unit_test(test_no_part),
        cmocka_unit_test(test_bad_params),
    };
    if (!mkdtemp(folder) || !make_program())
        return 1;
    unsetenv("LD_LIBRARY_PATH"); /* the sanitizers' library path must not reach the shell */
    setenv("FAKE_CHECKPOINTS", folder, 1);
    write_checkpoint("first", 1);
    write_checkpoint("second", 2);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_tree(folder);
    free(program);
    return failed;
}
