/* Tests report pages that compare several runs, and the strip of a run's evaluations: complete,
 * self-contained and equal to the files, whatever these contain. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

/* Returns the figure `id` of the page, without its end tag; the caller frees it. */
static char *figure_of(const char *page, const char *id)
{
    char *start = base_format("<figure class=\"chart\" id=\"%s\">", id);
    assert_has(page, start);
    const char *begin = strstr(page, start), *end = begin ? strstr(begin, "</figure>") : NULL;
    free(start);
    return end ? base_format("%.*s", (int)(end - begin), begin) : NULL;
}

static void assert_figure_has(const char *page, const char *id, const char *part)
{
    char *figure = figure_of(page, id);
    if (!strstr(figure, part))
        fail_msg("figure %s lacks %s:\n%s", id, part, figure);
    free(figure);
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
        "<td class=\"number\"><b>31.25</b></td><td class=\"number\">0.9500</td>",
        "<td class=\"number\">29.50</td><td class=\"number\"><b>0.9700</b></td>",
        "<td class=\"number\">100</td><td class=\"number\">0:20</td>",
        "<td class=\"number\">0:20</td><td class=\"number\"><b>5.00</b></td>",
        "<td class=\"number\">2.00 k</td><td class=\"number\">3</td><td class=\"text\">Card</td>",
        "<td class=\"text\">Driver 1</td><td class=\"text\">finished</td>",
        "<td>fp32</td>",
        "<td>fp16</td>",
        /* exactly the settings that differ */
        "<th scope=\"row\">optimizer.rate</th><td class=\"text\">0.01</td><td class=\"text\">0.02",
        "<th scope=\"row\">extra</th><td class=\"text\">–</td><td class=\"text\">x</td>",
        "Settings that differ",
    };
    for (size_t i = 0; i < BASE_COUNT(parts); i++)
        assert_has(page, parts[i]);
    assert_null(strstr(page, "optimizer.beta"));
    assert_null(strstr(page, "seed"));
    assert_null(strstr(page, "<th scope=\"row\">command"));
    free(page);
    const char *const twice[] = {runs[0], runs[0]};
    page = compare(folder, twice, 2);
    assert_has(page, "The runs have the same settings.");
    assert_has(page, "<dt>Device</dt><dd>Card</dd></div><div><dt>Driver</dt><dd>Driver 1</dd>");
    assert_null(strstr(page, "<th scope=\"col\">Device</th>"));
    assert_null(strstr(page, "id=\"loss-scale-steps\"")); /* 1 in both runs */
    free(page);
}

/* Values after 20 seconds, which both runs reached: interpolated between evaluations and between
 * lines of the log; means of the log replace what the summary lacks. */
static void equal_time(void **state)
{
    struct temporary *folder = *state;
    const char *const runs[] = {
        make_run(folder, "grid", "{\"march\": {\"sampling\": \"uniform\"}}",
                 "{\"step\": 5, \"seconds\": 10, \"psnr\": 15}\n"
                 "{\"step\": 9, \"seconds\": 18.5, \"psnr\": 20}\n"
                 "{\"step\": 10, \"seconds\": 20, \"psnr\": 22}\n"
                 "{\"step\": 20, \"seconds\": 40, \"psnr\": 30}\n",
                 "{\"seconds\": 40, \"sampling\": {\"kind\": \"occupancy\", "
                 "\"rays_per_second\": 5000, \"evaluated_per_ray\": 12.5, \"live_per_ray\": 8, "
                 "\"empty_share\": 0.9, \"behind_share\": 0.36}, \"evaluations\": ["
                 "{\"step\": 5, \"seconds\": 10, \"psnr\": 24}, {\"step\": 6, \"psnr\": 1},"
                 "{\"step\": 20, \"seconds\": 30, \"psnr\": 26}]}"),
        make_run(folder, "even", "{\"march\": {\"sampling\": \"uniform\"}}",
                 "{\"step\": 1, \"seconds\": 1, \"rays_per_second\": 100, "
                 "\"marched_per_second\": 19200, \"samples_per_second\": 9600}\n",
                 "{\"seconds\": 20, \"evaluations\": [{\"step\": 1, \"seconds\": 19.99, "
                 "\"psnr\": 23}]}"),
    };
    char *page = compare(folder, runs, 2);
    assert_has(page, "<td>occupancy</td><td class=\"number\">12.5</td><td class=\"number\">8.0</td>"
                     "<td class=\"number\">90.0</td><td class=\"number\">36.0</td>"
                     "<td class=\"number\"><b>5.00 k</b></td><td class=\"number\"><b>25.00</b></td>"
                     "<td class=\"number\">21.00</td>");
    assert_has(page, "<td>uniform</td><td class=\"number\">192.0</td><td class=\"number\">96.0</td>"
                     "<td class=\"number\">–</td><td class=\"number\">–</td>"
                     "<td class=\"number\">100</td><td class=\"number\">23.00</td>"
                     "<td class=\"number\">–</td>");
    assert_has(page, "after 0:20 of training");
    assert_has(page, "<td class=\"number\"><b>2.00 k</b></td>"); /* milliseconds per step */
    free(page);
}

/* The plot's inner area is x 55 to 536, y 10 to 208; PSNR goes from 10 to 20 dB. */
static void curves(void **state)
{
    struct temporary *folder = *state;
    const char *const runs[] = {first_run(folder), second_run(folder)};
    char *page = compare(folder, runs, 2);
    assert_figure_has(page, "psnr-steps",
                      "<path class=\"curve r1\" d=\"M55.0 208.0L536.0 10.0\"/>");
    assert_figure_has(page, "psnr-steps",
                      "<path class=\"curve r2\" d=\"M55.0 208.0L295.5 109.0\"/>");
    assert_figure_has(page, "psnr-time", "<path class=\"curve r1\" d=\"M55.0 208.0L375.7 10.0\"/>");
    assert_figure_has(page, "psnr-time",
                      "<path class=\"curve r2\" d=\"M215.3 208.0L536.0 109.0\"/>");
    assert_figure_has(page, "psnr-time", ">sec</text>");
    assert_figure_has(page, "psnr-time", "two <b>15.00 dB</b>");
    assert_figure_has(page, "test-psnr-steps", "<circle class=\"dot r1\" cx=\"536.0\"");
    assert_figure_has(page, "test-ssim-steps", "<circle class=\"dot r1\" cx=\"536.0\"");
    assert_figure_has(page, "test-ssim-time", "one <b>0.9500</b>");
    assert_figure_has(page, "loss-scale-steps", "two: lowest 256, highest 6.554e+04, last 256.");
    assert_figure_has(page, "loss-steps", "one: lowest 0.01, highest 0.1, last 0.01.");
    assert_figure_has(page, "distortion-loss-steps", "two: lowest 0.5, highest 0.5, last 0.5.");
    assert_null(strstr(page, "id=\"interlevel-loss-steps\"")); /* in neither run */
    /* stairs: first along, then down */
    char *figure = figure_of(page, "loss-scale-steps");
    const char *scale = strstr(figure, "<path class=\"curve r2\" d=\"M55.0 ");
    assert_non_null(scale);
    assert_non_null(strstr(scale, "H295.5V"));
    free(figure);
    assert_figure_has(page, "throughput-steps", "one <b>3.00 k/s</b>");
    assert_figure_has(page, "throughput-steps", "two <b>–</b>"); /* not recorded */
    free(page);
}

/* Figures that compare precisions: skipped steps, from summary or log, whichever has more; means of
 * the log for underflow, gradient norm and idle share. */
static void gradients(void **state)
{
    struct temporary *folder = *state;
    static const char *const ids[] = {"grad-norm-steps", "skipped-steps-steps", "underflowed-steps",
                                      "idle-share-steps"};
    const char *const runs[] = {
        make_run(folder, "wide", "{}",
                 "{\"step\": 10, \"grad_norm\": 0.002, \"skipped_steps\": 0, \"underflowed\": 0, "
                 "\"idle_share\": 0.25}\n"
                 "{\"step\": 20, \"grad_norm\": 0.004, \"skipped_steps\": 0, \"underflowed\": 0, "
                 "\"idle_share\": 0.75}\n",
                 "{\"path\": \"fp32\", \"skipped_steps\": 0}"),
        make_run(folder, "scaled", "{}",
                 "{\"step\": 10, \"grad_norm\": 0.5, \"skipped_steps\": 3, \"flushed\": 0.02, "
                 "\"idle_share\": null}\n"
                 "{\"step\": 16, \"grad_norm\": null, \"skipped_steps\": 8, \"flushed\": 0.04}\n",
                 "{\"path\": \"fp16\", \"skipped_steps\": 6, \"step\": 14}"),
        make_run(folder, "old", "{}", "{\"step\": 10}\n", NULL),
    };
    char *page = compare(folder, runs, 3);
    assert_has(page, "<td>fp32</td><td class=\"number\"><b>0</b></td>"
                     "<td class=\"number\"><b>0.0</b></td><td class=\"number\"><b>0.00</b></td>"
                     "<td class=\"number\">0.003</td><td class=\"number\">50.0</td>");
    assert_has(page, "<td>fp16</td><td class=\"number\">8</td><td class=\"number\">50.0</td>"
                     "<td class=\"number\">3.00</td><td class=\"number\">0.50</td>"
                     "<td class=\"number\">–</td>");
    for (size_t i = 0; i < BASE_COUNT(ids); i++)
        free(figure_of(page, ids[i]));
    assert_figure_has(page, "skipped-steps-steps", "scaled: lowest 3, highest 8, last 8.");
    free(page);
    const char *const olds[] = {runs[2], runs[2]};
    page = compare(folder, olds, 2);
    for (size_t i = 0; i < BASE_COUNT(ids); i++)
        assert_null(strstr(page, ids[i]));
    free(page);
}

/* Long times are in minutes and hours; a point whose time runs backwards is dropped. */
static void clocks(void **state)
{
    struct temporary *folder = *state;
    static const char *const names[] = {"minutes", "hours"};
    static const char *const metrics[] = {
        "{\"step\": 0, \"seconds\": 0, \"psnr\": 10}\n{\"step\": 5, \"seconds\": -3, \"psnr\": "
        "12}\n"
        "{\"step\": 6, \"psnr\": 12}\n{\"step\": 8, \"seconds\": 600, \"psnr\": 20}\n",
        "{\"step\": 0, \"seconds\": 7200, \"psnr\": 10}\n"
        "{\"step\": 8, \"seconds\": 36000, \"psnr\": 20}\n",
    };
    const char *runs[2];
    for (size_t i = 0; i < 2; i++)
        runs[i] = make_run(folder, names[i], "{}", metrics[i], NULL);
    char *page = compare(folder, (const char *const[]){runs[0], runs[0]}, 2);
    assert_figure_has(page, "psnr-time", ">min</text>");
    assert_figure_has(page, "psnr-time", "d=\"M55.0 208.0L536.0 10.0\"");
    assert_figure_has(page, "psnr-time", ">10</text>");
    free(page);
    page = compare(folder, runs, 2);
    assert_figure_has(page, "psnr-time", ">hours</text>");
    assert_figure_has(page, "psnr-time",
                      "<path class=\"curve r2\" d=\"M151.2 208.0L536.0 10.0\"/>");
    free(page);
}

static void sliders(void **state)
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
    assert_sliders(page, 1); /* there is only one picture of fern */
    assert_has(page, "<h3>lego test_000</h3>");
    assert_has(page, "<option value=\"0\" selected=\"selected\">target</option>"
                     "<option value=\"1\">one</option><option value=\"2\">two</option></select>");
    assert_has(page, "alt=\"lego test_000: two\"");
    assert_has(page, "one <b>30.50 dB</b>");
    assert_has(page, "two <b>28.25 dB</b>");
    assert_has(page, "<h3>fern test_000</h3>");
    assert_has(page, "views/target.png: cannot be read");
    /* Among runs of one scene the best is bold; runs of other scenes do not compete. */
    assert_has(page, "<td class=\"number\"><b>31.25</b></td>");
    assert_has(page, "<td class=\"number\">29.50</td>");
    assert_has(page, "<td class=\"number\">40.00</td>");
    free(page);
    page = compare(folder, (const char *const[]){runs[3], runs[3]}, 2);
    assert_has(page, "None of the runs has pictures");
    assert_sliders(page, 0);
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
    assert_has(page, "<td class=\"text\">unfinished</td>");
    assert_has(page, "<td class=\"number\">31.25</td>"); /* the only one is not the best */
    free(page);
}

/* Time grows linearly with the number of settings: a second here, minutes if it were quadratic. */
static void many_settings(void **state)
{
    enum { SETTINGS = 60000 };
    struct temporary *folder = *state;
    struct base_text config[2] = {{0}, {0}};
    for (unsigned run = 0; run < 2; run++) {
        for (unsigned i = 0; i < SETTINGS; i++)
            base_text_add(&config[run], "%s\"key%u\": %u", i ? ", " : "{", i, i % 1000 ? 1 : run);
        base_text_add(&config[run], "}");
    }
    const char *const runs[] = {make_run(folder, "one", config[0].data, "", NULL),
                                make_run(folder, "two", config[1].data, "", NULL)};
    double began = base_seconds();
    char *page = compare(folder, runs, 2);
    assert_true(base_seconds() - began < 10.0);
    assert_int_equal(html_count(page, "<td class=\"text\">0</td><td class=\"text\">1</td>"),
                     SETTINGS / 1000);
    for (unsigned run = 0; run < 2; run++)
        free(config[run].data);
    free(page);
}

/* A time near the largest float is at the right end. */
static void longest_times(void **state)
{
    struct temporary *folder = *state;
    static const char metrics[] = "{\"step\": 0, \"seconds\": 1e308, \"psnr\": 10}\n"
                                  "{\"step\": 1, \"seconds\": 2, \"psnr\": 10}\n";
    const char *const runs[] = {make_run(folder, "long", "{}", metrics, NULL), first_run(folder)};
    char *page = compare(folder, runs, 2);
    assert_null(strstr(page, "Minf"));
    assert_null(strstr(page, "\"inf\""));
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
    assert_sliders(page, 2);
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

/* The maximum number of runs: each curve has its own style. */
static void many_runs(void **state)
{
    struct temporary *folder = *state;
    const char *runs[12];
    for (size_t i = 0; i < 12; i++)
        runs[i] = i % 2 ? second_run(folder) : first_run(folder);
    char *page = compare(folder, runs, 12);
    assert_figure_has(page, "psnr-steps",
                      "<path class=\"curve r12\" d=\"M55.0 208.0L295.5 109.0\"/>");
    assert_int_equal(html_count(page, "<td class=\"number\"><b>31.25</b></td>"), 6);
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
        CASE(results),
        CASE(equal_time),
        CASE(gradients),
        CASE(curves),
        CASE(clocks),
        CASE(sliders),
        CASE(sparse_runs),
        CASE(many_settings),
        CASE(longest_times),
        CASE(hostile_runs),
        CASE(names_of_unix),
        CASE(damaged_runs),
        CASE(many_runs),
        CASE(strip_of_pictures),
        CASE(long_and_short_strips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
