/* Tests that a call whose allocation fails returns an error, or the complete result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

#include <vknerf/renderer.h>
#include <vknerf/run.h>

#include "config/config.h"
#include "report/report.h"
#include "scene/image.h"
#include "scenes.h"

/* cJSON leaks an item that it cannot add to a tree for lack of memory. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) // NOLINT: the sanitizer's name
{
    return "leak:libcjson\nleak:cJSON\n";
}

/* A function that allocates; returns its result in new memory, or NULL. */
struct attempt {
    const char *name;
    char *(*make)(const void *context, size_t *size);
    const void *context;
    size_t every; /* allocations between failures */
};

/* Fails each allocation of the function in turn; returns the number of failures. */
static size_t fail_each_allocation(const struct attempt *attempt)
{
    size_t whole_size = 0, size = 0, fails = 0;
    char *whole = attempt->make(attempt->context, &whole_size), *result = NULL;
    assert_non_null(whole);
    for (size_t n = 1;; n += attempt->every) {
        base_fail(VKN_OK, "%s", "");
        base_memory_fail_at((long)n);
        result = attempt->make(attempt->context, &size);
        bool over = base_memory_until_failure() > 0;
        base_memory_fail_at(0);
        if (!result) {
            fails++;
            assert_error("out of memory");
        } else if (size != whole_size || memcmp(result, whole, size) != 0) {
            fail_msg("%s: allocation %zu fails, the result differs", attempt->name, n);
        }
        free(result);
        if (over)
            break;
    }
    free(whole);
    return fails;
}

static char *text_result(char *text, size_t *size)
{
    *size = text ? strlen(text) : 0;
    return text;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static char *write_config(const void *context, size_t *size)
{
    return text_result(vkn_config_write_json(context), size);
}

static char *write_evaluation(const void *context, size_t *size)
{
    return text_result(vkn_evaluation_json(context), size);
}

/* Prints the JSON that was read. */
static char *read_json(const void *context, size_t *size)
{
    cJSON *json = NULL;
    vkn_status status = base_json_parse("x.json", context, strlen(context), &json);
    assert_true(status == VKN_OK || status == VKN_ERROR);
    char *text = status == VKN_OK ? base_json_print(json) : NULL;
    if (status != VKN_OK)
        free(base_json_print(NULL)); /* clears the failure */
    cJSON_Delete(json);
    return text_result(text, size);
}

static void test_json(void **state)
{
    (void)state;
    static const char text[] = "{\"a\": [1, \"two\", {\"b\": null}], \"c\": true}";
    const struct vkn_config config = {.steps = 7, .loss_scale.schedule[0] = {3, 8}};
    struct vkn_evaluated_view view = {.name = "test_000", .image = "a/b.png"}, *views = &view;
    const struct vkn_evaluation evaluation = {.psnr = 20, .views = &views, .view_count = 1};
    const struct attempt attempts[] = {
        {"config", write_config, &config, 1},
        {"evaluation", write_evaluation, &evaluation, 1},
        {"JSON", read_json, text, 1},
    };
    for (size_t i = 0; i < BASE_COUNT(attempts); i++)
        assert_true(fail_each_allocation(&attempts[i]) > 10);
}

/* ---- scenes -------------------------------------------------------------------------------- */

/* Returns the report of images that were found under other names. */
static char *find_images(const void *context, size_t *size)
{
    struct scene_findings findings = {0};
    struct scene_options options = {.path = context, .findings = &findings};
    struct vkn_scene *scene = NULL;
    vkn_status status = scene_open(&options, &scene);
    assert_true(status == VKN_OK || status == VKN_ERROR);
    char *text = status == VKN_OK ? strdup(findings.other_names) : NULL;
    if (status != VKN_OK)
        free(base_json_print(NULL)); /* clears the failure */
    scene_close(&scene);
    scene_findings_free(&findings);
    return text_result(text, size);
}

static void test_names(void **state)
{
    struct temporary *folder = *state;
    static const char pose[] = "\"transform_matrix\": [[1,0,0,0],[0,1,0,0],[0,0,1,0]]";
    char *text = base_format(
        "{\"camera_angle_x\": 0.8, \"frames\": ["
        "{\"file_path\": \"../images/\u00e9%%201.jpg\", \"mask_path\": \"m/A.png\", %s},"
        "{\"file_path\": \"../images/b.jpg\", %s}]}",
        pose, pose);
    temporary_text(folder, "transforms_train.json", text);
    free(text);
    temporary_picture(folder, "rgb/E\u0301 1.png", 4, 4, 0);
    temporary_picture(folder, "rgb/b.png", 4, 4, 0);
    temporary_picture(folder, "mask/a.png", 4, 4, 0);
    const struct attempt attempt = {"names", find_images, folder->path, 1};
    assert_true(fail_each_allocation(&attempt) > 100);
}

static char *find_folder(const void *context, size_t *size)
{
    char *folder = NULL;
    vkn_status status = scene_capture_folder(context, &folder);
    assert_true(status == VKN_OK || status == VKN_ERROR);
    if (status != VKN_OK) {
        free(folder);
        folder = NULL;
    }
    return text_result(folder, size);
}

/* Images beside a model, in a folder that is no capture itself. */
static void test_capture_folder(void **state)
{
    struct temporary *folder = *state;
    temporary_picture(folder, "colmap/images/a.png", 4, 4, 0);
    temporary_text(folder, "colmap/0/cameras.txt", "");
    const struct attempt attempt = {"folder", find_folder, temporary_path(folder, "colmap/0"), 1};
    assert_true(fail_each_allocation(&attempt) > 10);
}

/* ---- pictures ------------------------------------------------------------------------------ */

#define EDGE 24u

static char *write_png(const void *context, size_t *size)
{
    uint8_t *png = NULL;
    if (scene_image_encode_png(context, EDGE, EDGE, 3, &png, size) != VKN_OK)
        return NULL;
    return (char *)png;
}

struct file {
    uint8_t *data;
    size_t size;
};

static char *read_png(const void *context, size_t *size)
{
    const struct file *file = context;
    uint8_t *rgba = NULL;
    uint32_t width = 0, height = 0;
    vkn_status status = image_decode("x.png", file->data, file->size, &rgba, &width, &height);
    assert_true(status == VKN_OK || status == VKN_ERROR);
    *size = 4 * (size_t)width * height;
    return (char *)rgba;
}

static void test_png(void **state)
{
    (void)state;
    uint8_t pixels[EDGE * EDGE * 3];
    struct file file = {0};
    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = (uint8_t)(i * i >> 3);
    assert_ok(scene_image_encode_png(pixels, EDGE, EDGE, 3, &file.data, &file.size));
    const struct attempt write = {"writing", write_png, pixels, 1};
    const struct attempt read = {"reading", read_png, &file, 1};
    assert_true(fail_each_allocation(&write) >= 10);
    assert_true(fail_each_allocation(&read) >= 3);
    free(file.data);
}

static char *measure(const void *context, size_t *size)
{
    double ssim = 0.0;
    vkn_status status = vkn_ssim(context, context, NULL, EDGE, EDGE, &ssim);
    assert_true(status == VKN_OK || status == VKN_ERROR);
    return text_result(status == VKN_OK ? base_format("%.12g", ssim) : NULL, size);
}

static void test_quality(void **state)
{
    (void)state;
    float picture[EDGE * EDGE * 3];
    for (size_t i = 0; i < BASE_COUNT(picture); i++)
        picture[i] = (float)(i % 7) / 7;
    assert_true(fail_each_allocation(&(struct attempt){"SSIM", measure, picture, 1}) >= 4);
}

/* ---- reports ------------------------------------------------------------------------------- */

/* A report of a run, or a comparison of the run with itself. */
struct report {
    const char *folder, *page;
    size_t runs;
};

static char *write_report(const void *context, size_t *size)
{
    const struct report *report = context;
    const char *const runs[] = {report->folder, report->folder};
    char *page = NULL;
    vkn_status status = report->runs > 1 ? report_write_comparison(runs, report->runs, report->page)
                                         : report_write_html(report->folder, report->page);
    if (status == VKN_BAD_INPUT)
        fail_msg("%s", vkn_last_error());
    if (status != VKN_OK || base_file_read(report->page, 1 << 20, &page, size) != VKN_OK)
        return NULL;
    assert_int_equal(unlink(report->page), 0);
    return page;
}

/* The page has thumbnails, for which a picture is decoded, downscaled and encoded. */
static void test_reports(void **state)
{
    temporary_picture(*state, "views/a.png", 200, 3, 7);
    temporary_text(*state, "config.json",
                   "{\"scene\": \"a/b\", \"batch\": {\"samples\": 9}, \"command\": [\"vknerf\"]}");
    temporary_text(
        *state, "metrics.jsonl",
        "{\"step\": 10, \"loss\": 0.1, \"seconds\": 1}\n{\"step\": 20, \"loss\": 0.05}\n");
    temporary_text(
        *state, "summary.json",
        "{\"evaluations\": [{\"step\": 9, \"psnr\": 20, \"pictures\": [{\"name\": \"a\", "
        "\"render\": \"views/a.png\"}]}, {\"step\": 20, \"psnr\": 30}],"
        "\"pictures\": [{\"name\": \"a\", \"render\": \"views/a.png\"}],"
        "\"passes\": [{\"name\": \"begin_step\", \"share\": 0.5, \"milliseconds\": 4}],"
        "\"buffers\": [{\"name\": \"params\", \"bytes\": 9}]}");
    const struct temporary *folder = *state;
    const char *path = temporary_path(*state, "page.html");
    const struct report reports[] = {{folder->path, path, 1}, {folder->path, path, 2}};
    for (size_t i = 0; i < BASE_COUNT(reports); i++)
        assert_true(
            fail_each_allocation(&(struct attempt){"report", write_report, &reports[i], 1}) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_capture_folder, temporary_setup, temporary_teardown),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_png),
        cmocka_unit_test(test_quality),
        cmocka_unit_test_setup_teardown(test_reports, temporary_setup, temporary_teardown),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
