/* Tests report.html, whose static content and data are complete and well-formed whatever the run
 * directory holds, or an error names the file; and the ticks of drawings. tests/test_report_page.py
 * tests what the page's script makes of the data. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "html.h"
#include "report/chart.h"
#include "report/page.h"
#include "scene/scene.h"

static char folder[] = "/tmp/vknerf-html-XXXXXX";
static const char *const file_names[] = {"config.json",   "metrics.jsonl", "summary.json",
                                         "report.html",   "views/a.png",   "views/b.png",
                                         "views/text.png"};

static char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void write_bytes(const char *name, const void *bytes, size_t size)
{
    assert_int_equal(base_file_replace(path_of(name), bytes, size), VKN_OK);
}

static void write_text(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

/* Creates a small good run for each test. */
static int set_up(void **state)
{
    (void)state;
    static const unsigned char png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 1, 2};
    memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
    if (!mkdtemp(folder))
        return 1;
    if (base_make_folder(path_of("views")) != VKN_OK)
        return 1;
    write_bytes("views/a.png", png, sizeof(png));
    write_bytes("views/b.png", png, sizeof(png) - 1);
    write_text("views/text.png", "no picture");
    write_text("config.json",
               "{\"scene\": \"data/lego/\", \"optimizer\": {\"rate\": {\"start\": 0.01}, "
               "\"at\": [1, 2]}, \"command\": [\"vknerf\", \"train\", \"it's\"]}");
    write_text("metrics.jsonl", "{\"step\": 10, \"seconds\": 1, \"loss\": 0.1, \"psnr\": 10}\n"
                                "{\"step\": 20, \"seconds\": 2, \"loss\": null, \"psnr\": 20}\n");
    write_text(
        "summary.json",
        "{\"psnr\": 31.2345, \"ssim\": 0.95, \"views\": 2, \"background\": \"white\","
        "\"color_space\": \"srgb\", \"step\": 20, \"seconds\": 2, \"precision\": \"fp16\","
        "\"path\": \"packed halves\", \"gradient_sums\": \"f32, added atomically\","
        "\"policy\": \"policy.master_parameters=f16\","
        "\"device\": \"Card\", \"driver\": \"Driver 1\", \"status\": \"finished\","
        "\"evaluations\": [{\"step\": 20, \"psnr\": 31.25}],"
        "\"sampling\": {\"kind\": \"occupancy\", \"rays_per_second\": 29700,"
        "\"evaluated_per_ray\": 13.04, \"live_per_ray\": 8.1, \"empty_share\": 0.931},"
        "\"per_view\": [{\"name\": \"test 0\", \"psnr\": 28.25, \"ssim\": 0.875}],"
        "\"passes\": [{\"name\": \"field_forward\", \"share\": 0.31, \"milliseconds\": 4.2}],"
        "\"pictures\": [{\"name\": \"test 0\", \"psnr\": 30.5, \"ssim\": 0.9,"
        "\"render\": \"views/a.png\", \"target\": \"views/b.png\"}]}");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(file_names); i++)
        unlink(path_of(file_names[i]));
    rmdir(path_of("views"));
    return rmdir(folder);
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* Returns the page; the caller frees it. */
static char *make_page(void)
{
    if (report_write_html(folder, NULL) != VKN_OK)
        fail_msg("%s", vkn_last_error());
    return html_read(path_of("report.html"));
}

static void assert_page_has(const char *part)
{
    char *page = make_page();
    assert_has(page, part);
    free(page);
}

static void assert_refused(const char *file, const char *part)
{
    unlink(path_of("report.html"));
    assert_int_equal(report_write_html(folder, NULL), VKN_BAD_INPUT);
    if (!strstr(vkn_last_error(), path_of(file)) || !strstr(vkn_last_error(), part))
        fail_msg("%s / %s: %s", file, part, vkn_last_error());
    assert_false(base_file_exists(path_of("report.html")));
}

/* ---- the page ------------------------------------------------------------------------------- */

static void complete_run(void **state)
{
    (void)state;
    char *page = make_page();
    static const char *const parts[] = {
        "<h1>lego <small>vknerf-html-",
        "<title>lego · vknerf-html-",
        ">finished<",
        "<tr><th scope=\"row\">Test PSNR, dB</th><td class=\"number\">31.23</td></tr>",
        "<tr><th scope=\"row\">Test SSIM</th><td class=\"number\">0.9500</td></tr>",
        "<tr><th scope=\"row\">Steps</th><td class=\"number\">20</td></tr>",
        "<tr><th scope=\"row\">Training time, s</th><td class=\"number\">2.0</td></tr>",
        "<tr><th scope=\"row\">Device</th><td class=\"number\">Card</td></tr>",
        "<th scope=\"row\">test 0</th><td class=\"number\">28.25</td>"
        "<td class=\"number\">0.8750</td>",
        "<h3>test 0</h3><span>PSNR 30.50 dB</span><span>SSIM 0.9000</span>",
        "alt=\"test 0: target\"",
        "src=\"data:image/png;base64,iVBORw0KGgoAAQI=\"",
        "base64,iVBORw0KGgoAAQ==\"",
        "not recorded",
    };
    for (size_t i = 0; i < BASE_COUNT(parts); i++)
        assert_has(page, parts[i]);
    /* The data are the files. */
    cJSON *data = html_data(page);
    const cJSON *run = cJSON_GetArrayItem(cJSON_GetObjectItem(data, "runs"), 0);
    static const char *const files[] = {"config", "summary"};
    for (size_t i = 0; i < BASE_COUNT(files); i++) {
        char name[32];
        cJSON *file = NULL;
        snprintf(name, sizeof(name), "%s.json", files[i]);
        assert_int_equal(base_json_read(path_of(name), 1 << 20, &file), VKN_OK);
        assert_true(cJSON_Compare(cJSON_GetObjectItem(run, files[i]), file, true));
        cJSON_Delete(file);
    }
    assert_string_equal(base_json_text(run, "scene"), "lego");
    assert_has(page, "\"metrics\":{\"step\":[10,20],\"seconds\":[1,2],\"loss\":[0.1,null],"
                     "\"psnr\":[10,20]}");
    cJSON_Delete(data);
    free(page);
}

/* Title and heading contain the run's name, even if the path ends in "..". */
static void names_of_runs(void **state)
{
    (void)state;
    char *dotted = base_format("%s/views/..", folder),
         *out = base_format("%s", path_of("report.html"));
    char *title = base_format("<title>lego · %s – vknerf</title>", strrchr(folder, '/') + 1);
    assert_int_equal(report_write_html(dotted, out), VKN_OK);
    char *page = html_read(out);
    assert_has(page, title);
    free(page);
    write_text("config.json", "{}");
    page = make_page();
    assert_null(strstr(page, "<h1><small>"));
    free(title);
    title = base_format("<title>%s – vknerf</title>", strrchr(folder, '/') + 1);
    assert_has(page, title);
    char *texts[] = {dotted, out, title, page};
    for (size_t i = 0; i < BASE_COUNT(texts); i++)
        free(texts[i]);
}

/* appearance.json is part of the data. Pictures of all kinds have their cells. */
static void optional_parts(void **state)
{
    (void)state;
    write_text("appearance.json", "{\"views\": [{\"exposure\": 0.5}]}");
    assert_page_has("\"appearance\":{\"views\":[{\"exposure\":0.5}]}");
    write_text("appearance.json", "{\"views\": [");
    assert_refused("appearance.json", "line 1");
    unlink(path_of("appearance.json"));
    write_text("summary.json",
               "{\"pictures\": [{\"name\": \"a\", \"psnr\": 31.25, \"ssim\": 0.5, \"render\":"
               "\"views/a.png\", \"depth\": \"views/b.png\", \"opacity\": \"views/b.png\"},"
               "{\"name\": \"b\", \"psnr\": 28.5, \"ssim\": -1}]}");
    char *page = make_page();
    assert_has(page, "alt=\"a: depth\"");
    assert_has(page, "alt=\"a: opacity\"");
    assert_null(strstr(page, "alt=\"b: depth\"")); /* a run of an earlier version has none */
    assert_int_equal(html_count(page, "<div class=\"cell depth\">"), 1);
    free(page);
}

static void incomplete_runs(void **state)
{
    (void)state;
    write_text("summary.json",
               "{\"evaluations\": [{\"psnr\": 18.5, \"pictures\": [{\"name\": \"a\", "
               "\"render\": \"views/a.png\"}]}]}");
    const uint8_t pixel[3] = {1, 2, 3};
    assert_int_equal(scene_image_write_png(path_of("views/a.png"), pixel, 1, 1, 3), VKN_OK);
    assert_page_has("<img alt=\"a, an unknown step\"");
    write_text("summary.json", "{\"status\": \"running\", \"step\": 10, \"seconds\": 1}");
    assert_page_has("Steps</th><td class=\"number\">20<"); /* the log's */
    write_text("summary.json", "{\"psnr\": null, \"pictures\": [{}], \"passes\": [{}], "
                               "\"evaluations\": [{}], \"status\": \"interrupted\"}");
    assert_page_has(">interrupted<");
    assert_page_has("Test PSNR, dB</th><td class=\"number\">–<");
    write_text("summary.json",
               "{\"gradients\": {\"steps\": 9, \"warning\": \"in 8 of 9 <steps>\"}}");
    assert_page_has("<p class=\"note\">Gradients: in 8 of 9 &lt;steps&gt;</p>");
    write_text("summary.json", "{\"status\": \"failed\", \"failure\": \"step 40: <gone>\"}");
    assert_page_has("<p class=\"note\">Failed: step 40: &lt;gone&gt;</p>");
    unlink(path_of("summary.json"));
    assert_page_has("There is no summary.json");
    assert_page_has("Status</th><td class=\"number\">unfinished<");
    write_text("metrics.jsonl", "{\"step\": 5, \"loss\": 0.1, \"seconds\": 1}\n{\"step\": 6, \"lo");
    assert_page_has("\"metrics\":{\"step\":[5],\"seconds\":[1],\"loss\":[0.1]}");
    write_text("metrics.jsonl", "");
    assert_page_has("\"metrics\":{}");
}

/* Returns an array of the data's log. */
static const cJSON *logged(const cJSON *data, const char *part, const char *column)
{
    const cJSON *run = cJSON_GetArrayItem(cJSON_GetObjectItem(data, "runs"), 0);
    const cJSON *metrics = cJSON_GetObjectItem(run, "metrics");
    return cJSON_GetObjectItem(part ? cJSON_GetObjectItem(metrics, part) : metrics, column);
}

/* Long logs are averaged in groups. Extremes stay, and so do the last line and counts. */
static void long_run(void **state)
{
    (void)state;
    enum { LINES = 20000 };
    struct base_text text = {0};
    for (unsigned i = 1; i <= LINES; i++)
        base_text_add(&text,
                      "{\"step\": %u, \"seconds\": %u, \"loss\": %s, \"psnr\": %u, "
                      "\"skipped_steps\": %u}\n",
                      i * 5, i,
                      i == 7777   ? "1000"
                      : i == 7778 ? "null"
                                  : "1",
                      i, i / 1000);
    write_bytes("metrics.jsonl", text.data, text.size);
    free(text.data);
    char *page = make_page();
    assert_true(strlen(page) < 120000);
    cJSON *data = html_data(page);
    const cJSON *steps = logged(data, NULL, "step"), *psnr = logged(data, NULL, "psnr");
    assert_int_equal(cJSON_GetArraySize(steps), 1000);
    double before = 0.0, highest = 0.0;
    const cJSON *item, *mean = psnr->child;
    cJSON_ArrayForEach (item, steps) {
        /* The mean of lines up to this step, which are one line more than the step before. */
        double first = before / 5.0 + 1.0, last = item->valuedouble / 5.0;
        assert_true(fabs(mean->valuedouble - 0.5 * (first + last)) < 1e-3);
        before = item->valuedouble;
        mean = mean->next;
    }
    assert_true(before == 5.0 * LINES);
    assert_true(cJSON_GetArrayItem(psnr, 999)->valuedouble == LINES);
    cJSON_ArrayForEach (item, logged(data, "high", "loss"))
        highest = fmax(highest, item->valuedouble);
    assert_true(highest == 1000.0);
    cJSON_ArrayForEach (item, logged(data, "low", "loss"))
        assert_true(item->valuedouble == 1.0);
    cJSON_ArrayForEach (item, logged(data, NULL, "skipped_steps"))
        assert_true(item->valuedouble == floor(item->valuedouble));
    cJSON_Delete(data);
    free(page);
}

static void extreme_numbers(void **state)
{
    (void)state;
    write_text("metrics.jsonl",
               "{\"step\": 0, \"seconds\": -1e308, \"loss\": 1e308, \"psnr\": -1e308}\n"
               "{\"step\": 1e300, \"seconds\": 1e308, \"loss\": 5e-324, \"psnr\": 1e308,"
               "\"learning_rate\": 1e-300, \"loss_scale\": 1e-320, \"gpu_memory_bytes\": -1e300}\n"
               "{\"step\": 1e308, \"rays_per_second\": -1e308, \"samples_per_second\": 1e308}\n");
    write_text("summary.json",
               "{\"psnr\": 1e308, \"step\": 1e308, \"seconds\": 1e308, \"views\": 1e308,"
               "\"evaluations\": [{\"step\": 1e308, \"psnr\": -1e308}]}");
    free(make_page());
}

static void escapes_everything(void **state)
{
    (void)state;
    static const char hostile[] = "<script>alert('x')</script>&\\\"\\u0001\xff\xed\xa0\x80\xc0\xaf";
    struct base_text text = {0};
    base_text_add(&text,
                  "{\"scene\": \"%s\", \"%s\": {\"%s\": \"%s\"}, \"list\": [\"%s\"],"
                  "\"deep\": [{\"%s\": 1}], \"command\": \"%s\"}",
                  hostile, hostile, hostile, hostile, hostile, hostile, hostile);
    write_bytes("config.json", text.data, text.size);
    text.size = 0;
    base_text_add(&text,
                  "{\"device\": \"%s\", \"driver\": \"%s\", \"background\": \"%s\", \"status\":"
                  "\"%s\", \"pictures\": [{\"name\": \"%s\", \"render\": \"%s\"}], \"passes\":"
                  "[{\"name\": \"%s\"}]}",
                  hostile, hostile, hostile, hostile, hostile, hostile, hostile);
    write_bytes("summary.json", text.data, text.size);
    free(text.data);
    char *page = make_page();
    assert_null(strstr(page, "<script>alert"));
    assert_null(strchr(page, 1));
    assert_null(strstr(page, "\xff"));
    assert_null(strstr(page, "\xed\xa0"));
    assert_has(page, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;\xef\xbf\xbd");
    assert_has(page, "\\u003cscript>alert('x')\\u003c/script>&\\\"\\u0001\xef\xbf\xbd");
    cJSON_Delete(html_data(page));
    free(page);
}

static void pictures_stay_inside(void **state)
{
    (void)state;
    static const struct {
        const char *path, *note;
    } cases[] = {
        {"/etc/passwd", "not inside the run directory"},
        {"../secret.png", "not inside the run directory"},
        {"views/../../secret.png", "not inside the run directory"},
        {"views/..", "not inside the run directory"},
        {"views\\\\..\\\\..\\\\secret.png", "not inside the run directory"},
        {"views/none.png", "cannot be read"},
        {"views", "cannot be read"},
        {"views/text.png", "not a PNG or JPEG"},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        char summary[256];
        snprintf(summary, sizeof(summary), "{\"pictures\": [{\"render\": \"%s\"}]}", cases[i].path);
        write_text("summary.json", summary);
        assert_page_has(cases[i].note);
    }
    struct base_text text = {0};
    size_t budget = 5;
    page_picture(&text, folder, "views/a.png", "a", 0, &budget);
    assert_has(text.data, "left out");
    free(text.data);
}

static void refuses_bad_files(void **state)
{
    (void)state;
    assert_int_equal(report_write_html(path_of("absent"), NULL), VKN_BAD_INPUT);
    assert_non_null(strstr(vkn_last_error(), path_of("absent")));
    static const struct {
        const char *file, *content, *part;
    } cases[] = {
        {"config.json", "{", "line 1"},
        {"config.json", "[]", "not a JSON object"},
        {"metrics.jsonl", "{\"step\": 1}\n{\"st\n{\"step\": 3}\n", "line 2"},
        {"metrics.jsonl", "{\"step\": 1}\n7\n", "line 2"},
        {"metrics.jsonl", "{\"loss\": 1}\n", "step"},
        {"metrics.jsonl", "{\"step\": 1, \"loss\": \"x\"}\n", "loss"},
        {"metrics.jsonl", "{\"step\": -1}\n", "step"},
        {"summary.json", "{\"psnr\": ", "line 1"},
        {"summary.json", "3", "not a JSON object"},
        {"summary.json", "{\"psnr\": \"high\"}", "psnr"},
        {"summary.json", "{\"ssim\": 7}", "ssim"},
        {"summary.json", "{\"device\": 7}", "device"},
        {"summary.json", "{\"pictures\": {}}", "pictures"},
        {"summary.json", "{\"pictures\": [{}, 3]}", "pictures[1]"},
        {"summary.json", "{\"pictures\": [{\"render\": 3}]}", "pictures[0].render"},
        {"summary.json", "{\"passes\": [{\"share\": 2}]}", "passes[0].share"},
        {"summary.json", "{\"passes\": [{\"flops\": -1}]}", "passes[0].flops"},
        {"summary.json", "{\"buffers\": [{\"bytes\": -1}]}", "buffers[0].bytes"},
        {"summary.json", "{\"per_view\": [{\"time\": 2}]}", "per_view[0].time"},
        {"summary.json", "{\"reached\": [{\"seconds\": \"\"}]}", "reached[0].seconds"},
        {"summary.json", "{\"sampling\": {\"kind\": 1}}", "sampling.kind"},
        {"summary.json", "{\"profile\": []}", "profile: not an object"},
        {"summary.json", "{\"gradients\": []}", "gradients: not an object"},
        {"summary.json", "{\"gradients\": {\"warning\": 1}}", "gradients.warning"},
        {"summary.json", "{\"profile\": {\"steps\": \"\"}}", "profile.steps"},
        {"summary.json", "{\"evaluations\": [{\"psnr\": []}]}", "evaluations[0].psnr"},
        {"summary.json", "{\"evaluations\": [{}, {\"pictures\": 3}]}",
         "summary.json: evaluations[1].pictures: not an array"},
        {"summary.json", "{\"evaluations\": [{\"pictures\": [{}, 3]}]}",
         "summary.json: evaluations[0].pictures[1]: not an object"},
        {"summary.json", "{\"evaluations\": [{\"pictures\": [{\"name\": 3}]}]}",
         "summary.json: evaluations[0].pictures[0].name"},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        char *good;
        size_t size;
        assert_int_equal(base_file_read(path_of(cases[i].file), 1 << 20, &good, &size), VKN_OK);
        write_text(cases[i].file, cases[i].content);
        assert_refused(cases[i].file, cases[i].part);
        write_bytes(cases[i].file, good, size);
        free(good);
    }
    unlink(path_of("metrics.jsonl"));
    assert_refused("metrics.jsonl", "");
    unlink(path_of("config.json"));
    assert_refused("config.json", "");
}

/* ---- ticks ---------------------------------------------------------------------------------- */

/* Random numbers that are the same on every machine. */
static double random_number(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u; /* Numerical Recipes */
    return (double)(*seed >> 8) / (1 << 24);
}

static void assert_labels(const struct ticks *ticks, const char *expected)
{
    char joined[TICKS_MAX * 17] = "";
    for (size_t i = 0; i < ticks->count; i++) {
        size_t used = strlen(joined);
        snprintf(joined + used, sizeof(joined) - used, "%s%s", i ? " " : "", ticks->label[i]);
    }
    assert_string_equal(joined, expected);
}

static void round_ticks(void **state)
{
    (void)state;
    struct ticks ticks;
    ticks_linear(0.0, 5000.0, 5, &ticks);
    assert_labels(&ticks, "0 1000 2000 3000 4000 5000");
    ticks_linear(0.0, 20000.0, 5, &ticks);
    assert_labels(&ticks, "0 5k 10k 15k 20k");
    ticks_linear(-0.1, 0.1, 4, &ticks);
    assert_labels(&ticks, "-0.10 -0.05 0 0.05 0.10");
    ticks_linear(28.1, 28.32, 3, &ticks);
    assert_labels(&ticks, "28.1 28.2 28.3");
    ticks_linear(0.0, 2.3e6, 5, &ticks);
    assert_labels(&ticks, "0 0.5M 1.0M 1.5M 2.0M");
    ticks_logarithmic(log10(0.0004), log10(0.2), 6, &ticks);
    assert_labels(&ticks, "0.001 0.01 0.1");
    ticks_logarithmic(log10(30000.0), log10(150000.0), 6, &ticks);
    assert_labels(&ticks, "50k 100k");
    ticks_logarithmic(log10(1e-12), log10(1.0), 6, &ticks);
    assert_labels(&ticks, "1e-12 1e-10 1e-8 1e-6 0.0001 0.01 1");
}

static void assert_sound(const struct ticks *ticks, double low, double high, size_t most)
{
    assert_true(ticks->count <= most);
    for (size_t i = 0; i < ticks->count; i++) {
        double slack = (high - low) * 1e-5;
        assert_true(ticks->value[i] >= low - slack && ticks->value[i] <= high + slack);
        assert_true(i == 0 || ticks->value[i] > ticks->value[i - 1]);
        assert_true(i == 0 || strcmp(ticks->label[i], ticks->label[i - 1]) != 0);
    }
}

static void ticks_of_any_range(void **state)
{
    (void)state;
    struct ticks ticks;
    uint32_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        double low = pow(10.0, random_number(&seed) * 24.0 - 12.0);
        double size = pow(10.0, random_number(&seed) * 8.0 - 3.0) * low;
        double sign = i % 3 ? 1.0 : -1.0;
        size_t wanted = 2 + (size_t)(random_number(&seed) * 9.0);
        ticks_linear(sign * low, sign * low + size, wanted, &ticks);
        assert_sound(&ticks, sign * low, sign * low + size, wanted + 1);
        ticks_logarithmic(log10(low), log10(low + size), wanted, &ticks);
        assert_sound(&ticks, low, low + size, wanted + 2);
        double wide_low = low, wide_high = low + size;
        ticks_round_out(&wide_low, &wide_high, wanted);
        assert_true(wide_low <= low * (1.0 + 1e-5) && wide_high >= (low + size) * (1.0 - 1e-5));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(complete_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_of_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(optional_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(incomplete_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(extreme_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(escapes_everything, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pictures_stay_inside, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_bad_files, set_up, tear_down),
        cmocka_unit_test(round_ticks),
        cmocka_unit_test(ticks_of_any_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
