/* Tests report pages that compare several runs, and the strip of a run's evaluations: static
 * content and data are complete whatever the files contain. tests/test_report_page.py tests what
 * the page's script makes of the data. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include <vknerf/run.h>

#include "html.h"
#include "report/report.h"
#include "scenes.h"

/* ---- runs ----------------------------------------------------------------------------------- */

static void add_file(struct temporary *folder, const char *run, const char *name, const char *text)
{
    char *path = base_format("%s/%s", run, name);
    temporary_text(folder, path, text);
    free(path);
}

/* Writes a run directory of that name; returns its path. */
static char *make_run(struct temporary *folder, const char *name, const char *config,
                      const char *metrics, const char *summary)
{
    add_file(folder, name, "config.json", config);
    add_file(folder, name, "metrics.jsonl", metrics);
    if (summary)
        add_file(folder, name, "summary.json", summary);
    return temporary_path(folder, name);
}

static void add_picture(struct temporary *folder, const char *run, const char *name, uint32_t width,
                        uint32_t height)
{
    char *path = base_format("%s/views/%s", run, name);
    temporary_picture(folder, path, width, height, (uint8_t)strlen(run));
    free(path);
}

#define PICTURES                                                         \
    "\"pictures\": [{\"name\": \"test_000\", \"psnr\": %s, \"render\": " \
    "\"views/render.png\", \"target\": \"views/target.png\", \"error\": \"views/e\"}]"

static char *first_run(struct temporary *folder)
{
    add_picture(folder, "one", "render.png", 20, 10);
    add_picture(folder, "one", "target.png", 20, 10);
    char *summary = base_format(
        "{\"psnr\": 31.25, \"ssim\": 0.95, \"step\": 100, \"seconds\": 20, \"precision\":"
        "\"fp32\", \"path\": \"fp32\", \"device\": \"Card\", \"driver\": \"Driver 1\","
        "\"status\": \"finished\", \"scene\": \"/data/lego\", \"evaluations\":"
        "[{\"step\": 100, \"seconds\": 20, \"psnr\": 31.25, \"ssim\": 0.95}]," PICTURES "}",
        "30.5");
    char *run = make_run(
        folder, "one",
        "{\"seed\": 1, \"optimizer\": {\"rate\": 0.01, \"beta\": 0.9}, \"command\": [\"a\"]}",
        "{\"step\": 0, \"seconds\": 0, \"loss\": 0.1, \"psnr\": 10, \"loss_scale\": 1,"
        "\"samples_per_second\": 1000, \"gpu_memory_bytes\": 1048576}\n"
        "{\"step\": 100, \"seconds\": 20, \"loss\": 0.01, \"psnr\": 20, \"loss_scale\": 1,"
        "\"samples_per_second\": 3000, \"gpu_memory_bytes\": 3145728}\n",
        summary);
    free(summary);
    return run;
}

static char *second_run(struct temporary *folder)
{
    add_picture(folder, "two", "render.png", 20, 10);
    char *summary =
        base_format("{\"psnr\": 29.5, \"ssim\": 0.97, \"step\": 50, \"seconds\": 30, \"precision\":"
                    "\"fp16\", \"scene\": \"elsewhere/lego/\", " PICTURES "}",
                    "28.25");
    char *run =
        make_run(folder, "two",
                 "{\"seed\": 1, \"optimizer\": {\"rate\": 0.02, \"beta\": 0.9}, \"extra\": \"x\"}",
                 "{\"step\": 0, \"seconds\": 10, \"psnr\": 10, \"loss_scale\": 65536,"
                 "\"distortion_loss\": 0.5}\n"
                 "{\"step\": 50, \"seconds\": 30, \"psnr\": 15, \"loss_scale\": 256}\n",
                 summary);
    free(summary);
    return run;
}

/* Returns the page that compares the runs; the caller frees it. */
static char *compare(struct temporary *folder, const char *const *runs, size_t count)
{
    char *out = temporary_path(folder, "compared.html"), *file = NULL;
    const struct vkn_report_params params = {.runs = runs, .run_count = count, .out = out};
    assert_ok(vkn_run_report(&params, &file));
    assert_string_equal(file, out);
    free(file);
    return html_read(out);
}

/* ---- comparisons ---------------------------------------------------------------------------- */

static void results(void **state)
{
    struct temporary *folder = *state;
    const char *const runs[] = {first_run(folder), second_run(folder)};
    char *page = compare(folder, runs, 2);
    static const char *const parts[] = {
        "<h1>2 runs</h1>",
        "<title>one, two – vknerf</title>",
        "<b>one</b> <span>lego</span>",
        "Test PSNR, dB</th><td class=\"number\">31.25</td><td class=\"number\">29.50</td>",
        "Device</th><td class=\"number\">Card</td><td class=\"number\">–</td>",
        "Status</th><td class=\"number\">finished</td><td class=\"number\">–</td>",
        "<caption>one</caption>",
        "<caption>two</caption>",
    };
    for (size_t i = 0; i < BASE_COUNT(parts); i++)
        assert_has(page, parts[i]);
    cJSON *data = html_data(page), *list = cJSON_GetObjectItem(data, "runs");
    assert_int_equal(cJSON_GetArraySize(list), 2);
    for (int i = 0; i < 2; i++) {
        const cJSON *run = cJSON_GetArrayItem(list, i);
        assert_string_equal(base_json_text(run, "name"), i ? "two" : "one");
        assert_string_equal(base_json_text(run, "scene"), "lego");
    }
    cJSON_Delete(data);
    free(page);
}

static void pictures(void **state)
{
    struct temporary *folder = *state;
    char *summary = base_format("{\"scene\": \"fern\", \"psnr\": 40, " PICTURES "}", "25");
    add_picture(folder, "other", "render.png", 8, 8);
    const char *const runs[] = {first_run(folder), second_run(folder),
                                make_run(folder, "other", "{}", "", summary),
                                make_run(folder, "bare", "{}", "", NULL)};
    free(summary);
    char *page = compare(folder, runs, 4);
    assert_int_equal(html_count(page, "<figure class=\"view\">"), 2);
    assert_has(page, "<h3>lego test_000</h3>");
    assert_has(page, "alt=\"lego test_000: two\"");
    assert_has(page, "one <b>30.50 dB</b>");
    assert_has(page, "two <b>28.25 dB</b>");
    assert_has(page, "<h3>fern test_000</h3>");
    assert_has(page, "views/target.png: cannot be read");
    free(page);
    page = compare(folder, (const char *const[]){runs[3], runs[3]}, 2);
    assert_has(page, "None of the runs has pictures");
    free(page);
}

/* Runs without optional files and fields, next to a complete one; same base names. */
static void sparse_runs(void **state)
{
    struct temporary *folder = *state;
    const char *const runs[] = {first_run(folder), make_run(folder, "a/same", "{}", "", "{}"),
                                make_run(folder, "b/same", "{}", "{\"step\": 3}\n", NULL)};
    char *page = compare(folder, runs, 3);
    assert_has(page, "a/same");
    assert_has(page, "b/same");
    assert_has(page, "scene not recorded");
    assert_has(page, "<td class=\"number\">unfinished</td>");
    free(page);
}

/* Checks the page of a run with hostile values in its files, whose folder is `name`. */
static void check_hostile(struct temporary *folder, const char *name, const char *escaped)
{
    static const char json[] =
        "{\"scene\": \"<b>\", \"<i>\": \"</td>\", \"device\": \"<u>&\", \"path\": \"<p>\"}";
    static const char summary[] =
        "{\"scene\": \"<b>\", \"device\": \"<u>&\", \"driver\": \"<u>\", \"precision\": \"<u>\","
        "\"status\": \"<u>\", \"psnr\": 1e308, \"ssim\": -1, \"step\": 1e308, \"seconds\": 1e308,"
        "\"pictures\": [{\"name\": \"<img src=x>\", \"render\": \"views/../../secret.png\","
        "\"target\": \"/etc/passwd\"}, {\"name\": \"<h6>\", \"render\": \"views/render.png\","
        "\"target\": \"views/render.png\"}], \"evaluations\": [{\"step\": 1e308, \"seconds\":"
        "1e308, \"psnr\": -1e308}, {\"step\": 0, \"psnr\": 1e308}]}";
    static const char metrics[] =
        "{\"step\": 0, \"seconds\": -1e308, \"loss\": 1e308, \"psnr\": -1e308}\n"
        "{\"step\": 1e300, \"seconds\": 1e308, \"loss\": 5e-324, \"psnr\": 1e308}\n";
    add_picture(folder, name, "render.png", 4, 4);
    const char *const runs[] = {make_run(folder, name, json, metrics, summary), first_run(folder)};
    char *page = compare(folder, runs, 2);
    assert_null(strstr(page, "<script>alert"));
    assert_null(strstr(page, "<img src=x"));
    assert_null(strchr(page, 1));
    assert_null(strstr(page, "\xff"));
    assert_has(page, escaped);
    assert_has(page, "not inside the run directory");
    free(page);
}

static void hostile_runs(void **state)
{
    check_hostile(*state, "it's & ]] &lt;", "it&#39;s &amp; ]] &amp;lt;");
}

static void names_of_unix(void **state)
{
    check_hostile(*state, "<script>alert('x')&\"\x01\xff]]>",
                  "&lt;script&gt;alert(&#39;x&#39;)&amp;&quot;\xef\xbf\xbd\xef\xbf\xbd]]&gt;");
}

static void refuse(const char *const *runs, size_t count, const char *out, const char *part)
{
    char *file = NULL;
    const struct vkn_report_params params = {.runs = runs, .run_count = count, .out = out};
    assert_int_equal(vkn_run_report(&params, &file), VKN_BAD_INPUT);
    assert_null(file);
    assert_error(part);
}

static void damaged_runs(void **state)
{
    struct temporary *folder = *state;
    char *out = temporary_path(folder, "out.html");
    char *impossible = temporary_impossible(folder, "out.html");
    const char *runs[13];
    for (size_t i = 0; i < 13; i++)
        runs[i] = first_run(folder);
    refuse(runs, 0, out, "no run");
    refuse(runs, 13, out, "at most 12 runs");
    runs[1] = temporary_path(folder, "absent");
    refuse(runs, 2, out, "/absent: not a run directory");
    runs[1] = make_run(folder, "bad", "{}", "{\"step\": 1}\n{\"step\": \"x\"}\n", NULL);
    refuse(runs, 2, out, "bad/metrics.jsonl: line 2: step: ");
    runs[1] = make_run(folder, "bad", "{}", "{\"step\": 1}\n", "{\"psnr\": \"high\"}");
    refuse(runs, 2, out, "bad/summary.json: psnr: ");
    runs[1] = make_run(folder, "bad", "[", "", NULL);
    refuse(runs, 2, out, "bad/config.json: line 1");
    assert_false(base_file_exists(out));
    runs[1] = runs[0];
    refuse(runs, 2, impossible, impossible);
    char *page = compare(folder, runs, 1); /* a single run is no comparison */
    assert_has(page, "vknerf training report");
    free(page);
}

/* The maximum number of runs. */
static void many_runs(void **state)
{
    struct temporary *folder = *state;
    const char *runs[12];
    for (size_t i = 0; i < 12; i++)
        runs[i] = i % 2 ? second_run(folder) : first_run(folder);
    char *page = compare(folder, runs, 12);
    assert_has(page, "<path class=\"curve r12\"");
    assert_int_equal(html_count(page, "<td class=\"number\">31.25</td>"), 6);
    free(page);
}

/* ---- the strip ------------------------------------------------------------------------------ */

/* Returns the bytes of the page's `index`-th picture; the caller frees them. */
static uint8_t *picture_of(const char *page, size_t index, size_t *size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char start[] = "src=\"data:image/png;base64,";
    for (size_t i = 0; i <= index; i++) {
        page = strstr(page, start);
        assert_non_null(page);
        page += sizeof(start) - 1;
    }
    size_t length = strcspn(page, "\"");
    assert_int_equal(length % 4, 0);
    uint8_t *bytes = base_alloc(length, 1);
    *size = 0;
    uint32_t bits = 0;
    for (size_t i = 0; i < length; i++) {
        const char *digit = strchr(digits, page[i]);
        bits = bits << 6 | (page[i] == '=' ? 0 : (uint32_t)(digit - digits));
        for (int shift = 16; i % 4 == 3 && shift >= 0; shift -= 8)
            bytes[(*size)++] = (uint8_t)(bits >> shift);
    }
    return bytes;
}

/* Makes a run of `count` evaluations of two views every 500 steps, and of its end if `ended`. All
 * pictures are views/render.png. */
static char *strip_run(struct temporary *folder, size_t count, bool ended)
{
    struct base_text summary = {0};
    base_text_add(&summary, "{\"evaluations\": [{\"step\": 1, \"psnr\": 5}");
    for (size_t i = 1; i <= count; i++)
        base_text_add(
            &summary,
            ", {\"step\": %zu, \"psnr\": 20, \"pictures\": ["
            "{\"name\": \"test_000\", \"render\": \"views/render.png\", \"target\": "
            "\"views/target.png\", \"psnr\": %zu.25}, {\"name\": \"test_<3>\", \"render\":"
            "\"views/render.png\", \"psnr\": null}]}",
            500 * i, 10 + i);
    base_text_add(&summary, "]");
    if (ended)
        base_text_add(&summary, ", " PICTURES, "20");
    base_text_add(&summary, "}");
    char *run = make_run(folder, "strip", "{}", "", summary.data);
    free(summary.data);
    return run;
}

static char *strip_page(struct temporary *folder, size_t count, bool ended)
{
    char *file = NULL, *run = strip_run(folder, count, ended);
    const struct vkn_report_params params = {.runs = (const char *const[]){run}, .run_count = 1};
    assert_ok(vkn_run_report(&params, &file));
    char *page = html_read(file), *expected = base_path_join(run, "report.html");
    assert_string_equal(file, expected);
    free(expected);
    free(file);
    return page;
}

static void strip_of_pictures(void **state)
{
    struct temporary *folder = *state;
    add_picture(folder, "strip", "render.png", 400, 200);
    add_picture(folder, "strip", "target.png", 30, 20);
    char *page = strip_page(folder, 3, false);
    assert_has(page, "Test views during training");
    assert_int_equal(html_count(page, "<th scope=\"col\">step "), 3);
    assert_has(page, "<th scope=\"col\">step 1\xe2\x80\xaf"
                     "500</th>");
    assert_int_equal(html_count(page, "<img "), 3 + 1 + 3); /* one view has a target */
    assert_has(page, "alt=\"test_000, step 500\"");
    assert_has(page, "<span>13.25 dB</span>");
    assert_has(page, "<span>–</span>");
    assert_has(page, "test_&lt;3&gt;");
    assert_true(strstr(page, "11.25 dB") < strstr(page, "12.25 dB"));
    /* thumbnails: the longer side is 160 pixels; smaller pictures are unchanged */
    static const uint32_t sizes[][2] = {{160, 80}, {160, 80}, {160, 80}, {30, 20}};
    for (size_t i = 0; i < BASE_COUNT(sizes); i++) {
        size_t size;
        uint8_t *bytes = picture_of(page, i, &size);
        uint32_t width, height;
        assert_ok(scene_image_size(temporary_file(folder, "thumbnail.png", bytes, size), &width,
                                   &height));
        assert_true(width == sizes[i][0] && height == sizes[i][1]);
        free(bytes);
    }
    free(page);
}

static void long_and_short_strips(void **state)
{
    struct temporary *folder = *state;
    add_picture(folder, "strip", "render.png", 40, 20);
    add_picture(folder, "strip", "target.png", 40, 20);
    char *page = strip_page(folder, 300, true);
    assert_int_equal(html_count(page, "<th scope=\"col\">step "), 12);
    assert_has(page, "<th scope=\"col\">step 500</th>");
    assert_has(page, "<th scope=\"col\">step 150\xe2\x80\xaf"
                     "000</th>");
    assert_true(strlen(page) < 200000);
    free(page);
    page = strip_page(folder, 1, false); /* an interrupted run has a single evaluation */
    assert_has(page, "Test views during training");
    free(page);
    page = strip_page(folder, 1, true); /* an evaluation at the end is no history */
    assert_null(strstr(page, "Test views during training"));
    free(page);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, temporary_setup, temporary_teardown)
    const struct CMUnitTest tests[] = {
        CASE(results),      CASE(pictures),          CASE(sparse_runs),
        CASE(hostile_runs), CASE(names_of_unix),     CASE(damaged_runs),
        CASE(many_runs),    CASE(strip_of_pictures), CASE(long_and_short_strips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
