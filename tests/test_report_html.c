/* Tests report.html, which is complete and well-formed whatever the run directory holds, or an
 * error names the file; and the arithmetic of its curves. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
        "31.23",
        "0.9500",
        "mean of 2 test views",
        "<dt>Samples per ray</dt><dd class=\"value\">13.0</dd>",
        "<dd class=\"more\">occupancy: 93.1% of steps skipped, 8.1 live, 29.7 k rays/s</dd>",
        "white background, srgb",
        ">finished<",
        "Card",
        "Driver 1",
        "packed halves",
        "f32, added atomically",
        "<dt>Changed defaults</dt><dd>policy.master_parameters=f16</dd>",
        "fp16",
        "id=\"loss\"",
        "id=\"psnr\"",
        "id=\"learning-rate\"",
        "id=\"throughput\"",
        "field_forward",
        "31.0 %",
        "4.200 ms",
        "alt=\"test 0: target\"",
        "src=\"data:image/png;base64,iVBORw0KGgoAAQI=\"",
        "base64,iVBORw0KGgoAAQ==\"",
        "not recorded",
        "optimizer.rate.start",
        ">0.01<",
        "optimizer.at",
        "[1,2]",
        "vknerf train &#39;it&#39;\\&#39;&#39;s&#39;",
    };
    for (size_t i = 0; i < BASE_COUNT(parts); i++)
        assert_has(page, parts[i]);
    assert_sliders(page, 1);
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

/* SSIM has a curve of its own, over the evaluations that have SSIM. */
static void quality_curves(void **state)
{
    (void)state;
    char *page = make_page();
    assert_null(strstr(page, "id=\"ssim\""));
    free(page);
    write_text("summary.json",
               "{\"evaluations\": [{\"step\": 5, \"seconds\": 1, \"psnr\": 20, \"ssim\": 0.5},"
               "{\"step\": 10, \"psnr\": 24, \"ssim\": null}, {\"step\": 20, \"seconds\": 3,"
               "\"psnr\": 25, \"ssim\": 0.875}]}");
    page = make_page();
    assert_has(page, "<figure class=\"chart\" id=\"ssim\">");
    assert_has(page, "test views <b>0.8750</b>");
    assert_has(page, "test views: lowest 0.5, highest 0.875, last 0.875.");
    assert_has(page, "test views: lowest 20, highest 25, last 25.");
    assert_true(strstr(page, "id=\"ssim\"") < strstr(page, "id=\"loss\""));
    free(page);
}

/* Dynamic scenes: views in order of time, next to the PSNR of the background alone. */
static void quality_by_time(void **state)
{
    (void)state;
    char *page = make_page();
    assert_null(strstr(page, "id=\"psnr-by-time\""));
    free(page);
    write_text(
        "summary.json",
        "{\"psnr\": 24.5, \"blank_psnr\": 15.25, \"per_view\": [{\"time\": 0.75, \"psnr\": 26,"
        "\"blank_psnr\": 15}, {\"psnr\": 1}, {\"time\": 0.25, \"psnr\": 23, \"blank_psnr\": "
        "15.5}]}");
    char *former = make_page();
    write_text(
        "summary.json",
        "{\"psnr\": 24.5, \"background_psnr\": 15.25, \"per_view\": [{\"time\": 0.75, \"psnr\": 26,"
        "\"background_psnr\": 15}, {\"psnr\": 1}, {\"time\": 0.25, \"psnr\": 23, "
        "\"background_psnr\": "
        "15.5}]}");
    page = make_page();
    assert_string_equal(page, former); /* earlier versions called it blank_psnr */
    free(former);
    assert_has(page, "mean of the test views; background alone: 15.25 dB");
    assert_has(page, "<figure class=\"chart\" id=\"psnr-by-time\">");
    assert_has(page, "PSNR by the view's time against time");
    assert_has(page,
               "test views: lowest 23, highest 26, last 26. background alone: lowest 15, highest "
               "15.5, last 15.");
    assert_has(page, "<title>time 0.25: 23</title>");
    assert_has(page, "test views</span>");
    free(page);
    /* Without transparent pixels the background's PSNR is unknown. */
    write_text("summary.json", "{\"psnr\": 24.5, \"per_view\": [{\"time\": 0.75, \"psnr\": 26}]}");
    page = make_page();
    assert_has(page, "id=\"psnr-by-time\"");
    assert_null(strstr(page, "background alone"));
    free(page);
    write_text("summary.json", "{\"psnr\": 24.5, \"psnr_aligned\": 25.75, \"views\": 12}");
    page = make_page();
    assert_has(page, "mean of the test views; at aligned poses: 25.75 dB");
    free(page);
}

/* The chart of exposures has a curve for each kind of number that the views have. */
static void exposures(void **state)
{
    (void)state;
    char *page = make_page();
    assert_null(strstr(page, "id=\"exposures\""));
    free(page);
    write_text("appearance.json", "{\"views\": [{\"exposure\": 0.5, \"exposure_in_file\": 0.25},"
                                  "7, {\"exposure\": 1e300}, {\"exposure\": -0.5}]}");
    page = make_page();
    assert_has(page, "id=\"exposures\"");
    assert_has(page, "Exposures of training images, in stops about the mean");
    assert_has(page, "in the image file</span>");
    assert_null(strstr(page, "gain of red"));
    free(page);
    write_text("appearance.json",
               "{\"views\": [{\"exposure\": 0, \"white_balance\": [0.5, -0.5]}]}");
    page = make_page();
    assert_has(page, "gain of red</span>");
    assert_null(strstr(page, "in the image file"));
    free(page);
    write_text("appearance.json", "{\"views\": []}");
    page = make_page();
    assert_null(strstr(page, "id=\"exposures\""));
    free(page);
    write_text("appearance.json", "{\"views\": [");
    assert_refused("appearance.json", "line 1");
    unlink(path_of("appearance.json"));
    write_text("summary.json", "{\"psnr\": 24.5, \"psnr_quadratic\": 26.25, \"views\": 12}");
    page = make_page();
    assert_has(page, "mean of the test views; colours corrected: 26.25 dB");
    free(page);
}

/* The order of views when the worst comes first. */
static void views_by_error(void **state)
{
    (void)state;
    char *page = make_page();
    assert_null(strstr(page, "type=\"radio\"")); /* a single view has no order */
    free(page);
    write_text("summary.json",
               "{\"pictures\": [{\"name\": \"a\", \"psnr\": 31.25, \"ssim\": 0.5, \"render\":"
               "\"views/a.png\", \"depth\": \"views/b.png\", \"opacity\": \"views/b.png\"},"
               "{\"name\": \"b\", \"psnr\": 28.5, \"ssim\": -1},"
               "{\"name\": \"c\", \"psnr\": 1e300}, {\"name\": \"d\"}]}");
    page = make_page();
    static const char *const parts[] = {
        "<input type=\"radio\" name=\"order\" id=\"given\" checked=\"checked\"/>",
        "id=\"by-psnr\"/><label for=\"by-psnr\">lowest PSNR first</label>",
        "#by-psnr:checked~.views .view{order:var(--psnr)}",
        "#by-ssim:checked~.views .view{order:var(--ssim)}",
        "style=\"--psnr:31250;--ssim:500000\">\n<figcaption><h3>a</h3>",
        "style=\"--psnr:28500;--ssim:-1000000\">\n<figcaption><h3>b</h3>",
        "style=\"--psnr:1000000000;--ssim:2000000000\">\n<figcaption><h3>c</h3>",
        "style=\"--psnr:2000000000;--ssim:2000000000\">\n<figcaption><h3>d</h3>",
        "<span>PSNR 31.25 dB</span><span>SSIM 0.5000</span>",
        "alt=\"a: depth\"",
        "alt=\"a: opacity\"",
        "<option value=\"1\" selected=\"selected\">depth</option>",
    };
    for (size_t i = 0; i < BASE_COUNT(parts); i++)
        assert_has(page, parts[i]);
    assert_null(strstr(page, "alt=\"b: depth\"")); /* a run of an earlier version has none */
    assert_int_equal(html_count(page, "<div class=\"cell depth\">"), 1);
    free(page);
}

/* Curves of loss scaling appear only if the loss was scaled. */
static void loss_scaling_curves(void **state)
{
    (void)state;
    static const char *const curves[] = {"id=\"loss-scale\"", "id=\"skipped-steps\"",
                                         "id=\"underflowed\""};
    write_text("metrics.jsonl",
               "{\"step\": 5, \"loss_scale\": 1, \"skipped_steps\": 0, \"underflowed\": 0}\n");
    char *plain = make_page();
    write_text("metrics.jsonl",
               "{\"step\": 5, \"loss_scale\": 65536, \"skipped_steps\": 0, \"underflowed\": 0.25}\n"
               "{\"step\": 9, \"loss_scale\": 1, \"skipped_steps\": 3, \"underflowed\": 0}\n");
    char *scaled = make_page();
    for (size_t i = 0; i < BASE_COUNT(curves); i++) {
        assert_null(strstr(plain, curves[i]));
        assert_has(scaled, curves[i]);
    }
    assert_has(scaled, "loss scale: lowest 1, highest 6.554e+04, last 1.");
    free(plain);
    free(scaled);
}

/* Each part of the loss has its own curve beside that of the rays' colours, if the run has it. */
static void loss_parts(void **state)
{
    (void)state;
    write_text("metrics.jsonl", "{\"step\": 5, \"loss\": 0.25, \"distortion_loss\": null}\n"
                                "{\"step\": 9, \"loss\": 0.125, \"distortion_loss\": null}\n");
    char *plain = make_page();
    write_text("metrics.jsonl",
               "{\"step\": 5, \"loss\": 0.25, \"distortion_loss\": 0.5, \"coarse_loss\": null}\n"
               "{\"step\": 9, \"loss\": 0.125, \"distortion_loss\": 2, \"interlevel_loss\": 1}\n");
    char *parts = make_page();
    assert_has(plain, "training rays: lowest 0.125, highest 0.25, last 0.125.");
    assert_null(strstr(plain, "distortion: lowest"));
    assert_has(parts, "training rays: lowest 0.125, highest 0.25, last 0.125.");
    assert_has(parts, "distortion: lowest 0.5, highest 2, last 2.");
    assert_has(parts, "interlevel: lowest 1, highest 1, last 1.");
    assert_null(strstr(parts, "coarse field: lowest"));
    free(plain);
    free(parts);
}

static void profiled_runs(void **state)
{
    (void)state;
    char *plain = make_page();
    assert_null(strstr(plain, "GFLOP/s"));
    free(plain);
    write_text("summary.json",
               "{\"passes\": [{\"name\": \"field_forward\", \"share\": 0.5, \"milliseconds\": 4,"
               "\"flops\": 2e9, \"bytes\": 8e7, \"atomics\": 0, \"floor_milliseconds\": 2.5,"
               "\"bound\": \"flops\"}, {\"name\": \"begin_step\", \"share\": 0.5,"
               "\"milliseconds\": 4}], \"profile\": {\"steps\": 1024, \"idle_milliseconds\": 1.5,"
               "\"period_idle_milliseconds\": 0.5, \"peak_flops_per_second\": 8e11}}");
    char *page = make_page();
    assert_has(page, "<td class=\"number\">500.0</td>");
    assert_has(page, "<td class=\"number\">20.0</td>");
    assert_has(page,
               "<td class=\"number\">2.500 ms</td><td class=\"number\">1.6</td><td>flops</td>");
    assert_has(page,
               "aria-label=\"Passes\">\n<table class=\"passes work\">"); /* scrolls on its own */
    assert_has(page, "<rect class=\"floor\" width=\"62.50\"");
    assert_has(page, "<dd>15.00 %</dd>");
    assert_has(page, "<dd>5.00 %</dd>");
    assert_has(page, "<dd>800.0 GFLOP/s</dd>");
    free(page);
}

/* Buffers; the largest has the longest bar. */
static void memory(void **state)
{
    (void)state;
    write_text("summary.json",
               "{\"buffers\": [{\"name\": \"a < b\", \"bytes\": 3145728, \"on_host\": false},"
               "{\"name\": \"control\", \"bytes\": 1048576}]}");
    char *page = make_page();
    assert_has(page, "Device memory by buffer");
    assert_has(page, "<th scope=\"row\">a &lt; b</th><td class=\"bar\">");
    assert_has(page, "<td class=\"number\">75.0 %</td><td class=\"number\">3.000 MiB</td>");
    assert_has(page, "<rect width=\"33.33\"");
    free(page);
    write_text("summary.json", "{\"buffers\": []}");
    page = make_page();
    assert_null(strstr(page, "device memory"));
    free(page);
}

static void incomplete_runs(void **state)
{
    (void)state;
    write_text("summary.json", "{}");
    assert_page_has("not measured");
    write_text("summary.json", "{\"status\": \"interrupted\", \"evaluations\": [{\"step\": 50, "
                               "\"psnr\": 18.5, \"ssim\": 0.75}, {\"step\": 60}]}");
    assert_page_has(">18.50 <small>dB</small></dd><dd class=\"more\">a few test views at step 50<");
    assert_page_has(">0.7500</dd><dd class=\"more\">a few test views at step 50<");
    write_text("summary.json",
               "{\"evaluations\": [{\"psnr\": 18.5, \"pictures\": [{\"name\": \"a\", "
               "\"render\": \"views/a.png\"}]}]}");
    const uint8_t pixel[3] = {1, 2, 3};
    assert_int_equal(scene_image_write_png(path_of("views/a.png"), pixel, 1, 1, 3), VKN_OK);
    assert_page_has("a few test views at an unknown step<");
    assert_page_has("<img alt=\"a, an unknown step\"");
    write_text("summary.json", "{\"status\": \"running\", \"step\": 10, \"seconds\": 1}");
    assert_page_has("<dt>Steps</dt><dd class=\"value\">20<"); /* the log's */
    write_text("summary.json", "{\"psnr\": null, \"pictures\": [{}], \"passes\": [{}], "
                               "\"evaluations\": [{}], \"status\": \"interrupted\"}");
    assert_page_has(">interrupted<");
    write_text("summary.json",
               "{\"gradients\": {\"steps\": 9, \"warning\": \"in 8 of 9 <steps>\"}}");
    assert_page_has("<p class=\"note\">Gradients: in 8 of 9 &lt;steps&gt;</p>");
    write_text("summary.json", "{\"passes\": [{\"flops\": 1}], \"profile\": {\"steps\": 0}}");
    assert_page_has("<dt>steps timed</dt><dd>0</dd>");
    write_text("summary.json", "{\"status\": \"failed\", \"step\": 40, \"skipped_steps\": 30, "
                               "\"failure\": \"step 40: <gone>\"}");
    assert_page_has("<p class=\"note\">Failed: step 40: &lt;gone&gt;</p>");
    assert_page_has("30 skipped (overflow), 75.0%");
    unlink(path_of("summary.json"));
    assert_page_has("There is no summary.json");
    write_text("config.json",
               "{\"device\": \"Card 2\", \"driver\": \"Driver 2\", \"path\": \"fp32\"}");
    assert_page_has("<dt>Precision</dt><dd class=\"value\">fp32</dd><dd class=\"more\">Card 2<");
    assert_page_has("<dt>Driver</dt><dd>Driver 2<");
    write_text("config.json", "{}");
    assert_page_has("config.json does not hold the command");
    write_text("metrics.jsonl", "{\"step\": 0}");
    assert_page_has("Not recorded in this run");
    write_text("metrics.jsonl", "{\"step\": 5, \"loss\": 0.1, \"seconds\": 1}\n{\"step\": 6, \"lo");
    assert_page_has("<circle class=\"dot c1\"");
    write_text("metrics.jsonl", "");
    assert_page_has("holds no line yet");
}

/* A run with nothing but evaluations: missing numbers and times are not shown. */
static void evaluations_alone(void **state)
{
    (void)state;
    write_text("metrics.jsonl", "");
    char *page = make_page();
    assert_has(page, "test views <b>31.25 dB</b>");
    assert_has(page, "training rays <b>–</b>");
    assert_has(page, "live samples <b>–</b>");
    assert_null(strstr(page, ">time</text>"));
    assert_null(strstr(page, "Background</dt><dd class=\"absent\""));
    free(page);
}

static void long_run(void **state)
{
    (void)state;
    struct base_text text = {0};
    for (unsigned i = 1; i <= 20000; i++)
        base_text_add(&text, "{\"step\": %u, \"seconds\": %u, \"loss\": %g, \"psnr\": %g}\n", i * 5,
                      i, 1.0 / (i % 97 + 1), i % 50 + 0.5);
    write_bytes("metrics.jsonl", text.data, text.size);
    free(text.data);
    char *page = make_page();
    assert_has(page, ">100k<");
    assert_has(page, ">5:33:20<");
    assert_true(strlen(page) < 150000);
    /* Long curves are thinned, and still go from left to right. */
    const char *at = strstr(page, "<path class=\"curve c1 raw\" d=\"M");
    assert_non_null(at);
    double last = 0;
    size_t count = 0;
    for (at = strstr(at, "d=\"M") + 3; *at == 'M' || *at == 'L'; count++) {
        char *end;
        double x = strtod(at + 1, &end);
        assert_true(x >= last);
        last = x;
        strtod(end, &end);
        at = end;
    }
    assert_true(count > 100);
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

/* ---- ticks and curves ----------------------------------------------------------------------- */

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

static void thinning_keeps_extremes(void **state)
{
    (void)state;
    enum { COUNT = 10000, COLUMNS = 100 };
    static double x[COUNT], y[COUNT], decimated_x[2 * COLUMNS], decimated_y[2 * COLUMNS];
    uint32_t seed = 2;
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = (double)i;
        y[i] = i >= 5000 && i < 5200 ? (double)NAN : random_number(&seed);
    }
    y[1234] = 100.0;
    y[9999] = -100.0;
    size_t count = curve_decimate(x, y, COUNT, 0.0, 9999.0, COLUMNS, decimated_x, decimated_y);
    assert_true(count > COLUMNS && count <= 2 * COLUMNS);
    bool highest = false, lowest = false, gap = false;
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || decimated_x[i] >= decimated_x[i - 1]);
        highest |= decimated_x[i] == 1234.0 && decimated_y[i] == 100.0;
        lowest |= decimated_x[i] == 9999.0 && decimated_y[i] == -100.0;
        gap |= isnan(decimated_y[i]) && decimated_x[i] > 4900.0 && decimated_x[i] < 5200.0;
    }
    assert_true(highest && lowest && gap);
}

static void smoothing(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    double values[COUNT], smooth[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        values[i] = 3.0 + 0.5 * (double)i;
    curve_smooth(values, COUNT, smooth);
    for (size_t i = 0; i < COUNT; i++) /* a straight line stays the same */
        assert_true(fabs(smooth[i] - values[i]) < 1e-9);
    double rough = 0.0;
    for (size_t i = 0; i < COUNT; i++)
        values[i] = i % 2 ? 1.0 : -1.0;
    values[200] = (double)NAN;
    curve_smooth(values, COUNT, smooth);
    for (size_t i = 20; i < COUNT - 20; i++)
        rough = i == 200 ? rough : fmax(rough, fabs(smooth[i]));
    assert_true(rough < 0.2);
    assert_true(isnan(smooth[200]));
    curve_smooth(values, 1, smooth);
    assert_true(smooth[0] == values[0]);
    curve_smooth(values, 0, smooth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(complete_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_of_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(quality_curves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(quality_by_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(exposures, set_up, tear_down),
        cmocka_unit_test_setup_teardown(views_by_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(loss_scaling_curves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(loss_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(profiled_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(incomplete_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(evaluations_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(extreme_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(escapes_everything, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pictures_stay_inside, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_bad_files, set_up, tear_down),
        cmocka_unit_test(round_ticks),
        cmocka_unit_test(ticks_of_any_range),
        cmocka_unit_test(thinning_keeps_extremes),
        cmocka_unit_test(smoothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
