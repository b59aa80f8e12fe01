/* Tests how ranks compare program, settings, device and scene: every rank reports the first rank
 * that differs and in what. Ranks that do not answer are named in warnings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scenes.h"

#include <vknerf/vknerf.h>

#include "config/config.h"
#include "parallel/internal.h"
#include "run/compare.h"
#include "train/train.h"

#define RANKS 3u

/* ---- three ranks ----------------------------------------------------------------------------- */

struct rank {
    struct parallel *end;
    vkn_status (*call)(struct rank *rank);
    const void *given; /* argument of `call` */
    vkn_status status;
    char message[1024];
};

static vkn_status run_rank(void *context)
{
    struct rank *rank = context;
    rank->status = rank->call(rank);
    snprintf(rank->message, sizeof rank->message, "%s",
             rank->status == VKN_OK ? "" : vkn_last_error());
    train_leave(rank->end, rank->status);
    return VKN_OK;
}

/* Runs `call` on every rank with given[rank]; all must return `status` and `expected`, or none. */
static void check(vkn_status (*call)(struct rank *rank), const void *const given[RANKS],
                  vkn_status status, const char *expected)
{
    struct parallel_group *group;
    struct base_task *tasks[RANKS];
    struct rank ranks[RANKS];
    assert_ok(parallel_group_create(RANKS, &group));
    for (uint32_t i = 0; i < RANKS; i++) {
        ranks[i] =
            (struct rank){.end = parallel_group_rank(group, i), .call = call, .given = given[i]};
        assert_ok(base_task_start_thread(run_rank, &ranks[i], &tasks[i]));
    }
    for (uint32_t i = 0; i < RANKS; i++)
        assert_ok(base_task_wait(&tasks[i]));
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_string_equal(ranks[i].message, expected ? expected : "");
        assert_int_equal(ranks[i].status, status);
    }
    parallel_group_destroy(&group);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Compares lists of "item=value item=#hash ..."; "!" makes the list fail. */
static vkn_status compare_words(struct rank *rank)
{
    struct base_text list = {0};
    char words[256], item[64], value[64];
    snprintf(words, sizeof words, "%s", (const char *)rank->given);
    vkn_status status = words[0] == '!' ? base_fail(VKN_ERROR, "no list") : VKN_OK;
    for (char *at = words, *next = NULL; status == VKN_OK && (at = strtok_r(at, " ", &next));
         at = NULL) {
        assert_int_equal(sscanf(at, "%63[^=]=%63s", item, value), 2);
        if (value[0] == '#')
            compare_add_hash(&list, item, strtoull(value + 1, NULL, 16));
        else
            compare_add_value(&list, item, value);
    }
    status = compare_lists(rank->end, "it differs", status, &list);
    free(list.data);
    return status;
}

static void check_words(const char *a, const char *b, const char *c, vkn_status status,
                        const char *expected)
{
    const void *const given[RANKS] = {a, b, c};
    check(compare_words, given, status, expected);
}

static void test_lists(void **state)
{
    (void)state;
    check_words("a=1 b=#2 c=3", "a=1 b=#2 c=3", "a=1 b=#2 c=3", VKN_OK, NULL);
    check_words("", "", "", VKN_OK, NULL);
    /* An item that a rank does not list counts as equal. */
    check_words("a=1 b=#2 c=3", "c=3", "", VKN_OK, NULL);
    check_words("a=1 b=2", "a=1 b=2", "a=1 b=3", VKN_BAD_INPUT,
                "rank 2: it differs from rank 0's: b: 3 instead of 2");
    check_words("a=1 b=2", "a=4 b=2", "a=1 b=3", VKN_BAD_INPUT,
                "rank 1: it differs from rank 0's: a: 4 instead of 1");
    check_words("a=1", "a=1 b=3", "a=1", VKN_BAD_INPUT,
                "rank 1: it differs from rank 0's: b: 3 instead of none given");
    check_words("a=1 b=#2", "a=1 b=#2", "a=1 b=#20000000000", VKN_BAD_INPUT,
                "rank 2: it differs from rank 0's: b");
    check_words("a=1", "a=1", "!", VKN_ERROR, "rank 2: no list");
    check_words("!", "a=1", "a=2", VKN_ERROR, "rank 0: no list");
}

/* ---- the program's version ------------------------------------------------------------------- */

#define OTHER "vknerf 9.9.9 (abcdef0)"
static char this_version[128]; /* version text of this program */

/* Compares versions; a rank with `given` sends the message of another version of the program. */
static vkn_status compare_versions(struct rank *rank)
{
    char all[RANKS][128], message[128] = "";
    bool newer = rank->given && strncmp(rank->given, "vknerf rank", 11) == 0;
    if (!rank->given)
        return compare_programs(rank->end);
    memcpy(message, rank->given, strlen(rank->given));
    strcpy(message + 16, OTHER);
    BASE_TRY(parallel_gather(rank->end, message, sizeof message, all));
    parallel_mark_over(rank->end);
    return base_fail(VKN_BAD_INPUT, "rank 1: the program differs from rank 0's: %s instead of %s",
                     newer ? OTHER : "an earlier version of vknerf", this_version);
}

static void test_programs(void **state)
{
    static const void *const same[RANKS] = {NULL}, *const newer[RANKS] = {NULL, "vknerf rank\n"},
                             *const older[RANKS] = {NULL, "numbers"};
    char expected[512];
    (void)state;
    snprintf(this_version, sizeof this_version, "vknerf %s (%s)", vkn_version(), vkn_commit());
    check(compare_versions, same, VKN_OK, NULL);
    snprintf(expected, sizeof expected,
             "rank 1: the program differs from rank 0's: %s instead of %s", OTHER, this_version);
    check(compare_versions, newer, VKN_BAD_INPUT, expected);
    snprintf(
        expected, sizeof expected,
        "rank 1: the program differs from rank 0's: an earlier version of vknerf instead of %s",
        this_version);
    check(compare_versions, older, VKN_BAD_INPUT, expected);
}

/* ---- settings -------------------------------------------------------------------------------- */

static vkn_status compare_asked(struct rank *rank)
{
    const struct vkn_train_params params = {.config = rank->given};
    return compare_requests(rank->end, &params);
}

static vkn_status compare_effective(struct rank *rank)
{
    return compare_configs(rank->end, rank->given);
}

static void test_settings(void **state)
{
    struct vkn_config first = {.steps = 500, .grid = {.levels = 8}}, other = first, open = {0};
    const void *given[RANKS] = {&first, &first, &other};
    (void)state;
    check(compare_asked, given, VKN_OK, NULL);
    other.steps = 600;
    check(compare_asked, given, VKN_BAD_INPUT,
          "rank 2: the requested training differs from rank 0's: steps: 600 instead of 500");
    check(compare_effective, given, VKN_BAD_INPUT,
          "rank 2: the effective configuration differs from rank 0's: steps: 600 instead of 500");
    other = first;
    other.seed = 7;
    check(compare_asked, given, VKN_BAD_INPUT,
          "rank 2: the requested training differs from rank 0's: seed: 7 instead of none given");
    other = first;
    other.loss_scale.schedule[1] = (struct vkn_schedule_point){100, 128.0f};
    first.loss_scale.schedule[1] = (struct vkn_schedule_point){100, 64.0f};
    check(compare_asked, given, VKN_BAD_INPUT,
          "rank 2: the requested training differs from rank 0's: loss_scale.schedule");
    given[2] = &open; /* a rank without settings takes rank 0's */
    check(compare_asked, given, VKN_OK, NULL);
}

/* ---- devices --------------------------------------------------------------------------------- */

struct rank_device {
    struct compare_device device;
    struct vkn_config config;
};

static vkn_status compare_rank_devices(struct rank *rank)
{
    const struct rank_device *rank_device = rank->given;
    struct compare_device all[RANKS];
    BASE_TRY(compare_devices(rank->end, &rank_device->device, &rank_device->config, all));
    return strcmp(all[0].name, "GPU") == 0 ? VKN_OK
                                           : base_fail(VKN_ERROR, "rank 0 has %s", all[0].name);
}

static void append_line(void *user, enum vkn_log_level level, const char *line)
{
    char *lines = user;
    (void)level;
    snprintf(lines + strlen(lines), 1024 - strlen(lines), "%s\n", line);
}

static void test_devices(void **state)
{
    struct rank_device first = {{"GPU", "driver 1"}, {.deterministic = true}}, other = first;
    const void *const given[RANKS] = {&first, &other, &first};
    char lines[1024] = "";
    (void)state;
    vkn_log_to(append_line, lines);
    check(compare_rank_devices, given, VKN_OK, NULL);
    strcpy(other.device.driver, "driver 2");
    check(compare_rank_devices, given, VKN_BAD_INPUT,
          "rank 1: its device or driver differs from rank 0's, and --deterministic needs "
          "bit-identical results on all ranks: "
          "GPU (driver 2) instead of GPU (driver 1)");
    assert_string_equal(lines, "");
    first.config.parallel.mode = other.config.parallel.mode = VKN_PARALLEL_AVERAGE;
    check(compare_rank_devices, given, VKN_OK, NULL);
    assert_string_equal(lines, "");
    first.config = other.config = (struct vkn_config){0};
    check(compare_rank_devices, given, VKN_OK, NULL);
    assert_non_null(strstr(
        lines, "rank 1: its device or driver differs from rank 0's and may round differently"));
    assert_ptr_equal(strchr(lines, '\n'), lines + strlen(lines) - 1); /* one line */
    vkn_log_to(NULL, NULL);
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static vkn_status compare_rank_scenes(struct rank *rank)
{
    return compare_scenes(rank->end, rank->given);
}

static struct scene_camera make_camera(char *image)
{
    return (struct scene_camera){.width = 8,
                                 .height = 6,
                                 .focal_x = 10,
                                 .focal_y = 10,
                                 .center_x = 4,
                                 .center_y = 3,
                                 .pose = {1, 0, 0, 0.25f, 0, 1, 0, 0.5f, 0, 0, 1, 0.75f},
                                 .image_path = image};
}

/* Compares a copy of the scene on rank 1 after each of several changes. */
static void test_scenes(void **state)
{
    struct temporary *folder = *state;
    char *images[2][2] = {
        {temporary_text(folder, "a/0.png", "first"), temporary_text(folder, "a/1.png", "second")},
        {temporary_text(folder, "b/0.png", "first"), temporary_text(folder, "b/1.png", "second")}};
    char *masks[2] = {temporary_text(folder, "a/m.png", "mask"),
                      temporary_text(folder, "b/m.png", "mask")};
    struct scene_camera cameras[2][2];
    struct vkn_scene scenes[2] = {{.scale = 1}, {.scale = 1}};
    for (size_t i = 0; i < 2; i++) {
        for (size_t view = 0; view < 2; view++)
            cameras[i][view] = make_camera(images[i][view]);
        cameras[i][0].mask_path = masks[i];
        scenes[i].splits[SCENE_TRAIN] =
            (struct scene_split){.cameras = cameras[i], .camera_count = 2};
    }
    struct vkn_scene *other = &scenes[1];
    struct scene_camera *camera = &cameras[1][1], was = *camera;
    const void *const given[RANKS] = {&scenes[0], other, &scenes[0]};
#define DIFFERS(change, back, message)                              \
    do {                                                            \
        change;                                                     \
        check(compare_rank_scenes, given, VKN_BAD_INPUT,            \
              "rank 1: the scene differs from rank 0's: " message); \
        back;                                                       \
    } while (0)
    check(compare_rank_scenes, given, VKN_OK, NULL);
    DIFFERS(camera->pose[7] = 0.50000006f, *camera = was, "pose of train view 1 (1.png)");
    DIFFERS(camera->k3 = 1e-9f, *camera = was, "lens of train view 1 (1.png)");
    DIFFERS(camera->lens = VKN_LENS_FISHEYE, *camera = was, "lens of train view 1 (1.png)");
    DIFFERS(camera->time = 0.5f, *camera = was, "time of train view 1 (1.png)");
    DIFFERS(camera->width = 9, *camera = was,
            "train view 1: 1.png of 9x6 pixels instead of 1.png of 8x6 pixels");
    DIFFERS(camera->mask_path = masks[1], *camera = was,
            "mask of train view 1: m.png instead of none");
    DIFFERS(cameras[1][0].mask_inverted = true, cameras[1][0].mask_inverted = false,
            "mask of train view 0: m.png, bright hides instead of m.png");
    DIFFERS(camera->image_path = images[1][0], *camera = was,
            "train view 1: 0.png of 8x6 pixels instead of 1.png of 8x6 pixels");
    DIFFERS(other->splits[SCENE_TRAIN].camera_count = 1,
            other->splits[SCENE_TRAIN].camera_count = 2, "train views: 1 instead of 2");
    DIFFERS(other->splits[SCENE_TEST].camera_count = 4, other->splits[SCENE_TEST].camera_count = 0,
            "test views: 4 instead of 0");
    DIFFERS(other->downscale = 2, other->downscale = 0, "downscale: 2 instead of 0");
    DIFFERS(other->scale = 2, other->scale = 1,
            "training space: scale 2, offset 0 0 0, aabb_scale 0 instead of scale 1, offset 0 0 0, "
            "aabb_scale 0");
    DIFFERS(temporary_text(folder, "b/1.png", "secoND"),
            temporary_text(folder, "b/1.png", "second"), "content of train view 1 (1.png)");
    DIFFERS(temporary_text(folder, "b/1.png", "second "),
            temporary_text(folder, "b/1.png", "second"), "content of train view 1 (1.png)");
    DIFFERS(temporary_text(folder, "b/m.png", "musk"), temporary_text(folder, "b/m.png", "mask"),
            "mask's content of train view 0 (0.png)");
    check(compare_rank_scenes, given, VKN_OK, NULL);
    unlink(images[1][1]);
    char *message = base_format("rank 1: %s: No such file or directory", images[1][1]);
    check(compare_rank_scenes, given, VKN_BAD_INPUT, message);
    free(message);
}

/* ---- ranks that do not answer ---------------------------------------------------------------- */

static char lines[1024];

/* Returns the seconds of waiting, polled every `interval` seconds, until missing ranks are named
 * for the nth time. */
static double seconds_until_named(const struct parallel *parallel, const bool *here, unsigned times,
                                  double interval)
{
    struct parallel_wait wait = {0};
    parallel_count_wait(&wait);
    for (unsigned polls = 1; polls < 1000; polls++) {
        lines[0] = '\0';
        wait.last_poll -= interval;
        parallel_count_wait(&wait);
        parallel_warn_missing(parallel, here, &wait);
        if (lines[0] && --times == 0)
            return polls * interval;
    }
    return 0;
}

static void test_missing(void **state)
{
    struct parallel parallel = {.rank = 0, .size = 40, .step = 1234};
    bool here[PARALLEL_MOST_RANKS] = {false};
    char names[PARALLEL_NAMES];
    (void)state;
    vkn_log_to(append_line, lines);
    for (uint32_t rank = 0; rank < parallel.size; rank++)
        here[rank] = rank != 3;
    assert_float_equal(seconds_until_named(&parallel, here, 1, 0.5), 10, 0.6);
    assert_string_equal(
        lines,
        "rank 3: no answer for 10 s (step 1234); waiting goes on until the run is stopped\n");
    assert_float_equal(seconds_until_named(&parallel, here, 2, 0.5), 20, 0.6);
    assert_float_equal(seconds_until_named(&parallel, here, 3, 0.5), 40, 1.1);
    /* The time of this process being stopped between two polls does not count as waiting. */
    assert_float_equal(seconds_until_named(&parallel, here, 1, 3600), 10 * 3600, 1);
    /* At the start any rank may take long, later only rank 0. */
    parallel_expect_delays(&parallel, true);
    assert_float_equal(seconds_until_named(&parallel, here, 1, 0.5), 60, 0.6);
    parallel_expect_delays(&parallel, false);
    parallel_expect_delays(&parallel, true);
    assert_float_equal(seconds_until_named(&parallel, here, 1, 0.5), 10, 0.6);
    parallel.rank = 1; /* only rank 0 warns about other ranks */
    assert_float_equal(seconds_until_named(&parallel, here, 1, 0.5), 0, 0);
    here[0] = false;
    assert_float_equal(seconds_until_named(&parallel, here, 1, 0.5), 60, 0.6);
    assert_non_null(
        strstr(lines, "ranks 0, 3: no answer for 60 s (step 1234), which may load, compile"));
    parallel_expect_delays(&parallel, false);
    assert_float_equal(seconds_until_named(&parallel, here, 1, 0.5), 10, 0.6);
    vkn_log_to(NULL, NULL);
    memset(here, true, sizeof here);
    parallel_name_missing(&parallel, here, names);
    assert_string_equal(names, "");
    memset(here, false, sizeof here);
    parallel_name_missing(&parallel, here, names);
    assert_string_equal(names,
                        "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 24 more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_devices),
        cmocka_unit_test_setup_teardown(test_scenes, temporary_setup, temporary_teardown),
        cmocka_unit_test(test_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
