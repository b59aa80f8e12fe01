/* Tests the file of the page of a refinement of cameras: its numbers, marks, drawings and pictures,
 * whatever the refinement's numbers and names are. Run with a folder it writes pages into it, for
 * tests/test_report_refinement_page.py, which tests what their script makes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "html.h"
#include "report/report.h"
#include "scenes.h"

#define NONE ((double)NAN)

/* A camera at (x, y, z) of training space that looks down -z. */
static struct scene_camera camera_at(float x, float y, float z, const char *image)
{
    return (struct scene_camera){
        .width = 40,
        .height = 20,
        .focal_x = 40,
        .focal_y = 40,
        .center_x = 20,
        .center_y = 10,
        .pose = {1, 0, 0, x, 0, 1, 0, y, 0, 0, 1, z},
        .image_path = (char *)image,
    };
}

enum { VIEWS = 6 };

/* A refinement of three training views and three test views with two seeds, in a folder with the
 * pictures of the first seed. Tests change it before the page is made. */
struct sample {
    struct scene_camera before[VIEWS], after[VIEWS];
    struct report_refined_view views[VIEWS];
    struct report_refined_seed seeds[2];
    struct report_refinement refinement;
};

static void make_sample(struct temporary *folder, struct sample *sample)
{
    static const char *const images[VIEWS] = {
        "/data/lego/train/r_0.png", "/data/lego/train/r_1.png", "/data/lego/train/r_2.png",
        "/data/lego/test/r_0.png",  "/data/lego/test/r_1.png",  "/data/lego/test/r_2.png"};
    static const char *const tests[3] = {"test_000", "test_001", "test_002"};
    static const double pixels[VIEWS] = {0.25, 32, 1.5, 0.5, 0, 2};
    memset(sample, 0, sizeof(*sample));
    for (int i = 0; i < VIEWS; i++) {
        sample->before[i] = camera_at(0.25f * (float)i, 0.5f, 2, images[i]);
        sample->after[i] = sample->before[i];
        bool rolled_back = i == 1 || i == 2;
        sample->after[i].pose[7] += rolled_back ? 0 : 0.001f;
        sample->views[i] = (struct report_refined_view){
            .before = &sample->before[i],
            .after = &sample->after[i],
            .split = i < 3 ? "train" : "test",
            .pixels = pixels[i],
            .degrees = 0.125 * i,
            .distance = 0.0125,
            .at_limit = i == 1,
            .rolled_back = rolled_back,
            .misfits = i == 2,
            .fit = i == 2 ? 11.5 : 25,
            .test_view = i < 3 ? NULL : tests[i - 3],
            .psnr = {i < 3 ? NONE : 25, i < 3 ? NONE : 23 + i * 0.5},
        };
    }
    sample->seeds[0] = (struct report_refined_seed){1, {30, 30.5}, {0.9, 0.91}, {NULL, NULL}};
    sample->seeds[1] = (struct report_refined_seed){7, {29, 29.75}, {0.89, 0.92}, {NULL, NULL}};
    sample->seeds[0].runs[0] = temporary_path(folder, "before-1");
    sample->seeds[0].runs[1] = temporary_path(folder, "after-1");
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof(name), "before-1/views/%s.png", tests[i]);
        temporary_picture(folder, name, 4, 2, 1);
        snprintf(name, sizeof(name), "after-1/views/%s.png", tests[i]);
        temporary_picture(folder, name, 4, 2, 2);
        snprintf(name, sizeof(name), "before-1/views/%s_target.png", tests[i]);
        temporary_picture(folder, name, 4, 2, 3);
    }
    sample->refinement = (struct report_refinement){
        .scene = "/data/lego/",
        .refined = "refined",
        .device = "Card",
        .driver = "Driver 1",
        .verdict = "Use the refined cameras.",
        .difference = 0.625,
        .noise = 0.125,
        .steps = 5000,
        .seconds = 723,
        .limit = 0.32,
        .scale = 0.33,
        .views = sample->views,
        .view_count = VIEWS,
        .seeds = sample->seeds,
        .seed_count = 2,
    };
}

/* Returns the page; the caller frees it. */
static char *make_page(struct temporary *folder, const struct report_refinement *refinement)
{
    char *out = temporary_path(folder, "report.html");
    assert_ok(report_write_refinement(refinement, out));
    char *page = html_read(out);
    assert_null(strstr(page, "nan"));
    const char *infinite = strstr(page, "inf\"");
    if (infinite)
        fail_msg("the page has: %.80s", infinite - 70);
    assert_null(strstr(page, "inf "));
    return page;
}

static void assert_page_has(struct temporary *folder, const struct report_refinement *refinement,
                            const char *part)
{
    char *page = make_page(folder, refinement);
    assert_has(page, part);
    free(page);
}

/* Checks that the parts are on the page in this order. */
static void assert_order(const char *page, const char *const *parts, size_t count)
{
    const char *at = page;
    for (size_t i = 0; i < count; i++) {
        at = strstr(at, parts[i]);
        if (!at)
            fail_msg("the page lacks, or has too early: %s", parts[i]);
    }
}

/* ---- the whole page -------------------------------------------------------------------------- */

static void complete_page(void **state)
{
    struct sample sample;
    make_sample(*state, &sample);
    char *page = make_page(*state, &sample.refinement);
    static const char *const parts[] = {
        "<title>lego · refined cameras – vknerf</title>",
        "<h1>lego</h1>",
        "<p class=\"verdict\">Use the refined cameras.</p>",
        "{\"name\":\"seed 1\",\"psnr\":[30,30.5]},{\"name\":\"seed 7\",\"psnr\":[29,29.75]}",
        "\"difference\":0.625,\"noise\":0.125",
        "<dd class=\"value\">+0.62 ± 0.12 <small>dB</small></dd>"
        "<dd class=\"more\">mean of 2 seeds, and its noise</dd>",
        "<dd class=\"value\">0.50 <small>pixels</small></dd>"
        "<dd class=\"more\">largest 32.00 pixels</dd>",
        "<dt>Views that keep their cameras</dt><dd class=\"value\">2</dd>"
        "<dd class=\"more\">of 6 views</dd>",
        "<dd class=\"more\">of each training; 12:03 in all</dd>",
        "<dt>Scene</dt><dd>/data/lego/</dd>",
        "<dt>Refined scene</dt><dd>refined</dd>",
        "<dt>Device</dt><dd>Card</dd>",
        "<dt>Driver</dt><dd>Driver 1</dd>",
        "Movements are drawn ",
        "<b>1</b> of 6 views is at the limit (<code>refine.limit</code>: 0.32 of the image's "
        "longer side) and would "
        "move further. Their images may not belong to the scene: take them out, or raise the "
        "limit.",
        "<tr><th scope=\"row\">7</th><td class=\"number\">29.00</td><td class=\"number\">29.75</td>"
        "<td class=\"number\">+0.75</td><td class=\"number\">0.8900</td>"
        "<td class=\"number\">0.9200</td><td class=\"number\">+0.0300</td></tr>",
        "<tr class=\"strong\"><th scope=\"row\">mean</th><td class=\"number\">29.50</td>",
        "{\"image\":\"train/r_1.png\",\"split\":\"train\",\"pixels\":32,\"degrees\":0.125,"
        "\"distance\":0.0125,\"fit\":25,\"why\":\"at the limit\",\"limited\":true,\"keeps\":true}",
        "\"fit\":11.5,\"why\":\"does not fit\",\"limited\":false,\"keeps\":true}",
        "\"fit\":25,\"limited\":false,\"keeps\":false,\"psnr\":[25,24.5]}",
        "<b>1</b> of 6 views does not fit the field that has refined it",
        "<p>Such views keep their original poses in the refined scene.",
    };
    for (size_t i = 0; i < BASE_COUNT(parts); i++)
        assert_has(page, parts[i]);
    static const char *const rows[] = {"\"train/r_2.png", "\"train/r_1.png", "\"test/r_2.png",
                                       "\"test/r_0.png",  "\"train/r_0.png", "\"test/r_1.png"};
    assert_order(page, rows, BASE_COUNT(rows)); /* the misfit, then by movement */
    assert_int_equal(html_count(page, "\"keeps\":true"), 2);
    free(page);
}

/* Returns the value after `name` in the first occurrence of `element` after `from`. */
static double value_in(const char *from, const char *element, const char *name)
{
    const char *at = strstr(from, element);
    assert_non_null(at);
    at = strstr(at, name);
    assert_non_null(at);
    return strtod(at + strlen(name), NULL);
}

/* ---- cameras --------------------------------------------------------------------------------- */

/* Returns the x and y at which the first path of a class begins in the panel from the front. */
static void begin_of(const char *page, const char *css_class, double at[2])
{
    const char *panel = strstr(page, "cameras before and after, from the front");
    assert_non_null(panel);
    char *element = base_format("<path class=\"%s\" d=\"M", css_class);
    const char *path = strstr(panel, element);
    assert_non_null(path);
    char *end;
    at[0] = strtod(path + strlen(element), &end);
    at[1] = strtod(end, NULL);
    free(element);
}

static void cameras_before_and_after(void **state)
{
    struct sample sample;
    make_sample(*state, &sample);
    char *page = make_page(*state, &sample.refinement);
    assert_int_equal(html_count(page, "class=\"camera before\""), 3);
    assert_int_equal(html_count(page, "class=\"camera limited\""), 3);
    assert_int_equal(html_count(page, "m-1.6 0h3.2"), 3 * 2 * VIEWS); /* a cross for each camera */
    const char *text = strstr(page, "Movements are drawn <b>");
    assert_non_null(text);
    double times = strtod(text + strlen("Movements are drawn <b>"), NULL);
    assert_true(times == 100); /* 0.001 units are to be seen */
    assert_has(page, "<b>100 times</b> as large as they are.</p>");
    /* The unit cube's edge gives the scale: all cameras move up by 0.001. */
    double before[2], after[2], kept[2];
    begin_of(page, "camera before", before);
    begin_of(page, "camera after", after);
    begin_of(page, "camera limited", kept); /* views that keep their cameras have a colour */
    assert_has(page, "keeps its camera</span>");
    const char *cube = strstr(strstr(page, "from the front"), "<path class=\"unit\" d=\"M");
    assert_non_null(cube);
    double left = value_in(cube, "<path", "d=\"M"), right = value_in(cube, "<path", "L");
    assert_true(fabs(before[0] - after[0]) < 0.11);
    assert_true(fabs(before[1] - after[1] - 0.1 * fabs(right - left)) < 0.25);
    free(page);
}

/* Movements of one view that are much larger than the others' do not hide these. */
static void large_movements(void **state)
{
    struct sample sample;
    make_sample(*state, &sample);
    sample.after[1].pose[7] += 0.05f;
    assert_page_has(*state, &sample.refinement,
                    "<b>100 times</b> as large as they are, but at most as long as a camera is "
                    "drawn.</p>");
    for (int i = 0; i < VIEWS; i++)
        sample.after[i].pose[7] += 0.5f;
    assert_page_has(*state, &sample.refinement, "Movements are drawn as large as they are.");
    for (int i = 0; i < VIEWS; i++)
        sample.after[i] = sample.before[i];
    assert_page_has(*state, &sample.refinement, "Movements are drawn as large as they are.");
}

/* ---- pictures -------------------------------------------------------------------------------- */

static void pictures(void **state)
{
    struct sample sample;
    make_sample(*state, &sample);
    char *page = make_page(*state, &sample.refinement);
    assert_int_equal(html_count(page, "<img "), 9);
    assert_has(page, "<p>Pictures of seed 1; PSNR is the mean over the seeds.</p>");
    assert_has(page, "<h3>test_002</h3><span>test/r_2.png</span><span>+0.50 dB</span>");
    assert_has(page, "<span>original cameras <b>25.00 dB</b></span>");
    assert_has(page, "<span>refined cameras <b>25.50 dB</b></span>");
    free(page);
    char *path = temporary_path(*state, "after-1/views/test_002.png");
    assert_int_equal(unlink(path), 0);
    page = make_page(*state, &sample.refinement);
    assert_has(page, "<div class=\"cell after\"><span class=\"absent\">views/test_002.png: cannot "
                     "be read</span>");
    free(page);
    sample.views[5].test_view = "../../secret";
    assert_page_has(*state, &sample.refinement, "not inside the run directory");
    sample.seeds[0].runs[0] = NULL;
    assert_page_has(*state, &sample.refinement, "not recorded");
}

/* Of many test views, two with the largest gain and two with the largest loss have pictures. */
static void pictures_of_extremes(void **state)
{
    enum { COUNT = 9 };
    struct sample sample;
    make_sample(*state, &sample);
    static const double gains[COUNT] = {0.1, -0.5, 3, (double)NAN, -2, 0.2, 0.3, 1, INFINITY};
    struct report_refined_view views[COUNT];
    char names[COUNT][16];
    for (int i = 0; i < COUNT; i++) {
        views[i] = sample.views[3];
        snprintf(names[i], sizeof(names[i]), "test_%03d", i);
        views[i].test_view = names[i];
        views[i].psnr[1] = views[i].psnr[0] + gains[i];
    }
    sample.refinement.views = views;
    sample.refinement.view_count = COUNT - 1;
    char *page = make_page(*state, &sample.refinement);
    static const char *const order[] = {"<h3>test_002</h3>", "<h3>test_007</h3>",
                                        "<h3>test_001</h3>", "<h3>test_004</h3>"};
    assert_order(page, order, BASE_COUNT(order));
    assert_int_equal(html_count(page, "<figure class=\"view\">"), 4);
    assert_has(page, "lost most or gained least");
    free(page);
    sample.refinement.view_count = COUNT; /* an infinite PSNR */
    free(make_page(*state, &sample.refinement));
    for (int i = 0; i < COUNT; i++)
        views[i].psnr[1] = NONE;
    page = make_page(*state, &sample.refinement);
    assert_int_equal(html_count(page, "<figure class=\"view\">"), 4);
    free(page);
}

/* ---- missing and hostile values -------------------------------------------------------------- */

static void nothing_known(void **state)
{
    struct report_refinement refinement = {
        .difference = NONE, .noise = NONE, .seconds = NONE, .limit = NONE, .scale = NONE};
    char *page = make_page(*state, &refinement);
    assert_has(page, "There is no verdict.");
    assert_has(page, "There are no cameras to draw.");
    assert_has(page, "No test view has been measured.");
    assert_has(page, "There are no test views that could tell which cameras are better.");
    free(page);
    /* Views without cameras, seeds without results. */
    struct report_refined_view views[2] = {{.pixels = NONE}, {.pixels = NONE, .at_limit = true}};
    for (int i = 0; i < 2; i++)
        views[i].degrees = views[i].distance = views[i].psnr[0] = views[i].psnr[1] = NONE;
    struct report_refined_seed seed = {3, {NONE, NONE}, {NONE, NONE}, {NULL, NULL}};
    refinement.views = views;
    refinement.view_count = 2;
    refinement.seeds = &seed;
    refinement.seed_count = 1;
    page = make_page(*state, &refinement);
    assert_has(page, "{\"image\":\"–\",\"pixels\":null,");
    assert_has(page, "<b>1</b> of 2 views is at the limit and would move further.");
    free(page);
}

static void one_seed_and_one_view(void **state)
{
    struct sample sample;
    make_sample(*state, &sample);
    sample.refinement.seed_count = 1;
    sample.refinement.noise = NONE;
    sample.refinement.views = &sample.views[3];
    sample.refinement.view_count = 1;
    char *page = make_page(*state, &sample.refinement);
    assert_has(page, "<dd class=\"more\">noise unknown</dd>");
    assert_has(page, "{\"image\":\"r_0.png\"");
    assert_has(page, "of 1 view<");
    assert_null(strstr(page, ">mean<"));
    assert_null(strstr(page, "class=\"strong\""));
    free(page);
}

static void extreme_numbers(void **state)
{
    struct sample sample;
    make_sample(*state, &sample);
    static const double extremes[] = {1e308,     -1e308, 5e-324,           1e-300,
                                      -INFINITY, -1,     (double)INFINITY, 1e18};
    for (size_t n = 0; n < BASE_COUNT(extremes); n++) {
        for (int i = 0; i < VIEWS; i++) {
            double value = extremes[(n + (size_t)i) % BASE_COUNT(extremes)];
            struct report_refined_view *view = &sample.views[i];
            view->pixels = view->degrees = view->distance = view->psnr[i % 2] = value;
            sample.before[i].pose[(n + 3) % 12] = (float)value;
            sample.after[i].focal_x = (float)value;
            sample.after[i].pose[3] = i == 0 ? 1e30f : (float)i;
        }
        sample.refinement.difference = extremes[n];
        sample.refinement.noise = extremes[BASE_COUNT(extremes) - 1 - n];
        sample.refinement.seconds = sample.refinement.limit = extremes[n];
        sample.refinement.scale = sample.seeds[0].psnr[1] = extremes[n];
        sample.seeds[0].seed = UINT64_MAX;
        free(make_page(*state, &sample.refinement));
    }
}

/* The difference -0.001 is printed as +0.00, not as -0.00. */
static void no_negative_zero(void **state)
{
    struct sample sample;
    make_sample(*state, &sample);
    sample.refinement.difference = -0.001;
    char *page = make_page(*state, &sample.refinement);
    assert_has(page, "+0.00 ± 0.12");
    assert_null(strstr(page, ">-0.00"));
    free(page);
}

static void escapes_everything(void **state)
{
    static const char hostile[] =
        "<script>alert('x')</script>&\"\x01\xff\xed\xa0\x80<svg onload=\"f()\">";
    struct sample sample;
    make_sample(*state, &sample);
    struct report_refinement *refinement = &sample.refinement;
    refinement->scene = refinement->refined = refinement->device = refinement->driver =
        refinement->verdict = hostile;
    for (int i = 0; i < VIEWS; i++) {
        sample.before[i].image_path = (char *)hostile;
        sample.views[i].split = hostile;
        sample.views[i].test_view = hostile;
    }
    sample.seeds[0].runs[1] = (char *)hostile;
    char *page = make_page(*state, refinement);
    assert_null(strstr(page, "<script>alert"));
    assert_null(strstr(page, "onload=\""));
    assert_null(strchr(page, 1));
    assert_null(strstr(page, "\xff"));
    assert_has(page, "&lt;script&gt;alert(&#39;x&#39;)");
    free(page);
}

enum { MANY = 10000 };

/* Ten thousand views of a video. */
struct many {
    struct report_refined_view views[MANY];
    char names[MANY][48];
    struct scene_camera cameras[MANY];
};

static struct many *make_many(struct sample *sample)
{
    struct many *many = base_alloc(1, sizeof(*many));
    assert_non_null(many);
    for (int i = 0; i < MANY; i++) {
        snprintf(many->names[i], sizeof(many->names[i]), "/data/video/images/frame_%05d.jpg", i);
        many->cameras[i] = camera_at((float)(i % 100) / 100, (float)i / MANY, 2, many->names[i]);
        many->views[i] = sample->views[0];
        many->views[i].before = &many->cameras[i];
        many->views[i].pixels = i == 7777 ? NONE : 0.01 * i;
    }
    sample->refinement.views = many->views;
    sample->refinement.view_count = MANY;
    return many;
}

/* A page of less than two megabytes, within seconds. */
static void many_views(void **state)
{
    struct sample sample;
    make_sample(*state, &sample);
    struct many *many = make_many(&sample);
    char *page = make_page(*state, &sample.refinement);
    assert_true(strlen(page) < 2000000);
    assert_int_equal(html_count(page, "\"image\":\"frame_"), MANY);
    assert_has(page, "\"views\":[{\"image\":\"frame_09999.jpg\"");
    assert_has(page, "200 of 10000 views are drawn.");
    free(page);
    free(many);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void errors_name_the_page(void **state)
{
    struct sample sample;
    make_sample(*state, &sample);
    char *out = temporary_impossible(*state, "report.html");
    assert_int_not_equal(report_write_refinement(&sample.refinement, out), VKN_OK);
    assert_error(out);
    /* Each allocation fails once. */
    out = temporary_path(*state, "page.html");
    for (long nth = 1;; nth++) {
        base_memory_fail_at(nth);
        vkn_status status = report_write_refinement(&sample.refinement, out);
        bool has_failed = base_memory_until_failure() == 0;
        base_memory_fail_at(0);
        if (!has_failed) {
            assert_int_equal(status, VKN_OK);
            break;
        }
        if (status == VKN_OK) /* without the memory for a name a picture is read all the same */
            continue;
        assert_int_equal(status, VKN_ERROR);
        assert_error("out of memory");
        assert_false(base_file_exists(out));
    }
}

/* Writes pages for the test of their script. */
static void write_pages(const char *folder)
{
    struct temporary pages = {0};
    struct sample sample;
    snprintf(pages.path, sizeof(pages.path), "%s", folder);
    make_sample(&pages, &sample);
    assert_ok(report_write_refinement(&sample.refinement, temporary_path(&pages, "full.html")));
    sample.refinement.seed_count = 1;
    sample.refinement.noise = NONE;
    assert_ok(report_write_refinement(&sample.refinement, temporary_path(&pages, "one.html")));
    struct many *many = make_many(&sample);
    assert_ok(report_write_refinement(&sample.refinement, temporary_path(&pages, "many.html")));
    free(many);
    const struct report_refined_seed seed = {3, {NONE, NONE}, {NONE, NONE}, {NULL, NULL}};
    const struct report_refinement nothing = {.difference = NONE,
                                              .noise = NONE,
                                              .seconds = NONE,
                                              .limit = NONE,
                                              .scale = NONE,
                                              .seeds = &seed,
                                              .seed_count = 1};
    assert_ok(report_write_refinement(&nothing, temporary_path(&pages, "nothing.html")));
    cJSON *certificate = NULL;
    assert_ok(base_json_read(temporary_path(&pages, "certificate.json"), SIZE_MAX, &certificate));
    assert_ok(report_write_certificate(certificate, temporary_path(&pages, "certificate.html")));
    cJSON_Delete(certificate);
    for (size_t i = 0; i < pages.text_count; i++)
        free(pages.texts[i]);
}

int main(int argc, char **argv)
{
#define TEST(function) \
    cmocka_unit_test_setup_teardown(function, temporary_setup, temporary_teardown)
    const struct CMUnitTest tests[] = {
        TEST(complete_page),
        TEST(cameras_before_and_after),
        TEST(large_movements),
        TEST(pictures),
        TEST(pictures_of_extremes),
        TEST(nothing_known),
        TEST(one_seed_and_one_view),
        TEST(extreme_numbers),
        TEST(no_negative_zero),
        TEST(escapes_everything),
        TEST(many_views),
        TEST(errors_name_the_page),
    };
    if (argc > 1) {
        write_pages(argv[1]);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
