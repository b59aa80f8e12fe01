/* Tests which image strips are resident at each step: budgets, ranks, stages. Needs no device. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/layout.h"
#include "images/images.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

#define MOST_VIEWS   600u
#define MOST_BUCKETS (16u * MOST_VIEWS)

/* A scene of `count` cameras of one size, the last camera wider. */
struct views {
    struct scene_camera cameras[MOST_VIEWS];
    struct vkn_scene scene;
};

static struct views *views_create(uint32_t count, uint32_t width, uint32_t height,
                                  uint32_t last_width)
{
    static struct views views;
    views = (struct views){.scene = {.path = "a scene", .downscale = 1, .load_downscale = 1}};
    struct scene_split *train = &views.scene.splits[SCENE_TRAIN];
    *train = (struct scene_split){.cameras = views.cameras, .camera_count = count};
    for (uint32_t i = 0; i < count; i++) {
        views.cameras[i] = (struct scene_camera){.width = i + 1 == count ? last_width : width,
                                                 .height = height,
                                                 .first_pixel = train->pixel_count,
                                                 .image_path = i + 1 == count ? "last.png" : "x"};
        train->pixel_count += (uint64_t)views.cameras[i].width * height;
    }
    return &views;
}

static struct images_plan plan_of(const struct views *views, const struct vkn_config *config,
                                  uint64_t most, uint64_t range)
{
    struct images_plan plan;
    assert_int_equal(images_make_plan(&views->scene, config, most, range, &plan), VKN_OK);
    return plan;
}

/* ---- plans --------------------------------------------------------------------------------- */

/* Bytes of an image strip in the staging buffer. */
static uint64_t strip_bytes(const struct images_plan *plan)
{
    return 4 * plan->slot_pixels + sizeof(struct Camera);
}

static void assert_within(const struct images_plan *plan, uint64_t budget, uint64_t range)
{
    assert_int_equal(plan->image_strips, plan->views * plan->strips);
    assert_int_equal(plan->exchange_bytes, plan->exchanged * strip_bytes(plan));
    assert_int_equal(plan->bytes, 4 * plan->pixels);
    assert_true(plan->bytes <= budget && plan->bytes <= range && plan->exchange_bytes <= range);
    if (plan->resident == plan->image_strips)
        return;
    assert_true(plan->exchanged > 0 && plan->resident >= plan->exchanged);
    assert_int_equal(plan->resident % plan->exchanged, 0);
    assert_int_equal(plan->pixels, plan->resident * plan->slot_pixels);
}

/* All images are resident if they fit; else strips are streamed, and use most of the budget. */
static void test_budgets(void **state)
{
    (void)state;
    const struct views *views = views_create(100, 800, 800, 800);
    const uint64_t all = 100ull * 800 * 800 * 4;
    struct vkn_config config = {0};
    struct images_plan plan = plan_of(views, &config, GIB, GIB);
    assert_true(plan.resident == 100 && plan.strips == 1);
    assert_int_equal(plan.exchanged, 0);
    assert_int_equal(plan.bytes, all);
    /* lavapipe: 128 MiB per buffer: 838 strips, or 832, a multiple of the 104 exchanged. */
    plan = plan_of(views, &config, GIB, 128 * MIB);
    assert_within(&plan, GIB, 128 * MIB);
    assert_true(plan.strips == 16 && plan.slot_pixels == 800 * 50);
    assert_int_equal(plan.exchanged, 104); /* 16 MiB */
    assert_int_equal(plan.resident, 832);
    for (int files = 0; files < 2; files++) {
        config.scene.host_budget = files ? 1 : GIB;
        for (uint64_t budget = 10 * MIB; budget < 256 * MIB; budget += 3 * MIB) {
            config.scene.image_budget = budget;
            plan = plan_of(views, &config, 0, GIB);
            assert_within(&plan, budget, GIB);
            assert_true((plan.resident == plan.image_strips) == (budget >= all));
            assert_int_equal(plan.strips, files || budget >= all ? 1 : 16);
            assert_true(budget >= all || plan.bytes > budget / 2);
        }
    }
    assert_int_equal(plan.exchanged, 0);
    config.scene.image_budget = 30 * MIB;
    assert_int_equal(plan_of(views, &config, 0, GIB).exchanged, 3); /* images to decode */
}

/* The largest view of all ranks has at most 4096 cells, also when views are cut into strips or
 * smaller at first. */
static void test_error_cells(void **state)
{
    static const struct {
        uint32_t width, height, edge, cells;
    } cases[] = {
        {800, 800, 16, 2500},   {1024, 1024, 16, 4096}, {1025, 1024, 32, 1056},
        {3200, 1300, 64, 1050}, {4000, 3000, 64, 2961}, {65536, 4, 16, 4096},
    };
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        struct views *views = views_create(3, 20, cases[i].height, cases[i].width);
        struct vkn_config config = {0};
        views->scene.splits[SCENE_TRAIN].share = (struct scene_share){0, 1, 3};
        struct images_plan plan = plan_of(views, &config, GIB, GIB);
        assert_int_equal(plan.cell_edge, cases[i].edge);
        assert_int_equal(plan.view_cells, cases[i].cells);
        assert_int_equal(images_of_step(&plan).cell_edge, cases[i].edge);
        views = views_create(3, cases[i].width, cases[i].height, cases[i].width);
        config.progressive.enabled = true;
        config.progressive.start_downscale = 4;
        config.scene.image_budget = 8ull * cases[i].width * cases[i].height;
        plan = plan_of(views, &config, 0, GIB);
        assert_true(plan.resident < plan.image_strips);
        assert_int_equal(plan.cell_edge, cases[i].edge);
        assert_int_equal(plan.view_cells, cases[i].cells);
    }
}

/* All images become resident within 256 update intervals; no more are exchanged at a time than that
 * needs, or than decoding as much as three images of 800x800 allows. */
static void test_cycle(void **state)
{
    (void)state;
    static const uint32_t counts[][2] = {{3, 1},   {255, 1}, {256, 1}, {257, 2},
                                         {512, 2}, {513, 3}, {600, 3}};
    struct vkn_config config = {.scene.host_budget = 1};
    for (size_t i = 0; i < BASE_COUNT(counts); i++) {
        const struct views *views = views_create(counts[i][0], 2048, 1024, 2048); /* 8 MiB each */
        config.scene.image_budget = 8 * MIB * (counts[i][0] - 1);
        struct images_plan plan = plan_of(views, &config, 0, 8 * GIB);
        assert_within(&plan, config.scene.image_budget, 8 * GIB);
        assert_int_equal(plan.exchanged, counts[i][1]);
    }
    /* Images downscaled while loading are decoded whole: 13 of 400x400, 3 of twice the side. */
    struct views *small = views_create(100, 400, 400, 400);
    config.scene.image_budget = 32 * MIB;
    assert_int_equal(plan_of(small, &config, 0, GIB).exchanged, 13);
    small->scene.load_downscale = 2;
    assert_int_equal(plan_of(small, &config, 0, GIB).exchanged, 3);
    /* All are resident, but their size changes by stage: a quarter of them at a time. */
    config = (struct vkn_config){.progressive = {true, 4, {0.1f, 0.2f, 0.3f}}};
    struct images_plan plan = plan_of(views_create(100, 64, 64, 64), &config, GIB, GIB);
    assert_true(plan.resident == 100 && plan.exchanged == 25);
}

/* The strips of a view cover its rows once, and their cameras have the view's rays. */
static void check_buckets(const struct views *views, const struct images_plan *plan,
                          uint32_t shrink)
{
    const struct scene_split *train = &views->scene.splits[SCENE_TRAIN];
    for (uint32_t view = 0, image_strip = 0; view < plan->views; view++) {
        const uint32_t number = (uint32_t)scene_share_view(plan->share, view);
        const struct scene_camera *camera = &train->cameras[number];
        uint32_t row = 0;
        for (uint32_t strip = 0; strip < plan->strips; strip++, image_strip++) {
            struct images_strip p = images_strip(plan, train, image_strip, strip, shrink);
            assert_true(p.view == number && p.first_row == row && p.rows >= shrink);
            assert_true(row % shrink == 0 && (uint64_t)p.rows * camera->width <= plan->slot_pixels);
            assert_int_equal(p.camera.width, camera->width / shrink);
            assert_int_equal(p.camera.height, p.rows / shrink);
            assert_int_equal(p.camera.first_pixel, plan->resident == plan->image_strips
                                                       ? camera->first_pixel
                                                       : strip * plan->slot_pixels);
            double y = (camera->center_y - row) / shrink; /* rounded to float */
            assert_true(p.camera.center_x == camera->center_x / (float)shrink);
            assert_true(y - p.camera.center_y < 1e-4 && p.camera.center_y - y < 1e-4);
            row += p.rows;
        }
        assert_int_equal(row, camera->height);
    }
}

static void test_mixed_sizes(void **state)
{
    (void)state;
    const struct views *views = views_create(20, 100, 101, 400);
    struct vkn_config config = {.scene.image_budget = 929200};
    struct images_plan plan = plan_of(views, &config, 0, GIB);
    assert_true(plan.resident == 20 && plan.strips == 1); /* 232300 pixels */
    check_buckets(views, &plan, 1);
    config.scene.image_budget--;
    plan = plan_of(views, &config, 0, GIB);
    assert_within(&plan, 929199, GIB);
    assert_int_equal(plan.strips, 16);
    assert_int_equal(plan.slot_pixels, 7 * 400);
    check_buckets(views, &plan, 1);
    config = (struct vkn_config){.scene.image_budget = 900000,
                                 .progressive = {true, 8, {0.5f, 0.6f, 0.7f}}};
    plan = plan_of(views, &config, 0, GIB);
    assert_true(plan.strips == 3 && plan.rows == 8); /* of 101 rows: 32, 32 and 37 */
    for (uint32_t shrink = 1; shrink <= 8; shrink *= 2)
        check_buckets(views, &plan, shrink);
    config.scene.host_budget = 1;
    plan = plan_of(views, &config, 0, GIB);
    assert_true(plan.strips == 1 && plan.slot_pixels == 40400);
    check_buckets(views, &plan, 8);
}

static void refuse(const struct views *views, const struct vkn_config *config, uint64_t range,
                   const char *part)
{
    struct images_plan plan;
    assert_int_equal(images_make_plan(&views->scene, config, GIB, range, &plan), VKN_BAD_INPUT);
    if (!strstr(vkn_last_error(), part))
        fail_msg("\"%s\" is not in \"%s\"", part, vkn_last_error());
}

static void test_too_large(void **state)
{
    (void)state;
    const struct views *views = views_create(20, 100, 100, 400);
    struct vkn_config config = {.scene = {.image_budget = 300000, .host_budget = 1}};
    refuse(views, &config, GIB, "last.png: 400x100 pixels in 1 strips of 0.15 MiB: at least 2");
    refuse(views, &config, GIB, "images have only 0.29 MiB of device memory");
    config.scene.image_budget = 0;
    refuse(views, &config, 100000, "last.png: ");
    config.scene.host_budget = 0; /* strips in host memory may exceed the budget */
    struct images_plan plan = plan_of(views, &config, GIB, 100000);
    assert_within(&plan, GIB, 100000);
    config = (struct vkn_config){.progressive = {true, 8, {0.1f, 0.2f, 0.3f}}};
    views = views_create(3, 100, 7, 100);
    refuse(views, &config, GIB, "x: 100x7 pixels are too few for a progressive.start");
}

/* A single image decoded from its file cannot be exchanged; cut into strips, it can. */
static void test_few_images(void **state)
{
    (void)state;
    for (uint32_t count = 1; count < 6; count++) {
        const struct views *views = views_create(count, 64, 64, 64);
        for (uint64_t budget = 16384 / 16; budget < 100000; budget += 777) {
            for (int files = 0; files < 2; files++) {
                const struct vkn_config config = {
                    .scene = {.image_budget = budget, .host_budget = (uint64_t)files},
                    .progressive = {true, 4, {0.1f, 0.2f, 0.3f}}};
                struct images_plan plan;
                vkn_status status = images_make_plan(&views->scene, &config, 0, GIB, &plan);
                bool all = budget >= count * 16384ull;
                uint64_t image_strip = files ? 16384 : 16384 / 4; /* 16 rows, 4 in strips */
                assert_true((status == VKN_OK) == (all || budget >= 2 * image_strip));
                if (status == VKN_OK)
                    assert_within(&plan, budget, GIB);
            }
        }
    }
}

static void test_host(void **state)
{
    (void)state;
    const struct views *views = views_create(100, 800, 800, 800);
    struct vkn_config config = {.scene.host_budget = 256000000};
    assert_true(images_fit_host(&views->scene, &config));
    config.scene.host_budget--;
    assert_false(images_fit_host(&views->scene, &config));
}

/* ---- sequences ----------------------------------------------------------------------------- */

/* A window's strips are distinct, successive windows differ by `exchanged` strips, a strip keeps
 * its slot, and over a whole cycle each strip is resident in as many windows. */
static void check_sequence(const struct images_plan *plan, uint64_t seed)
{
    static uint32_t order[MOST_BUCKETS], windows[MOST_BUCKETS];
    static uint64_t before[MOST_BUCKETS];
    memset(windows, 0, sizeof windows);
    images_shuffle(plan, seed, order);
    for (uint64_t window = 0; window < plan->image_strips; window++) {
        bool resident[MOST_BUCKETS] = {false};
        uint32_t entered = 0;
        for (uint32_t slot = 0; slot < plan->resident; slot++) {
            uint64_t position = images_position(plan, window, slot);
            uint32_t image_strip = order[position % plan->image_strips];
            assert_int_equal(position % plan->resident, slot);
            assert_true(position >= window * plan->exchanged &&
                        position < window * plan->exchanged + plan->resident);
            assert_false(resident[image_strip]);
            resident[image_strip] = true;
            windows[image_strip]++;
            bool enters = window > 0 && position != before[slot];
            entered += enters;
            if (enters)
                assert_int_equal(images_entry_window(plan, position), window);
            before[slot] = position;
        }
        assert_int_equal(entered, window > 0 ? plan->exchanged : 0);
    }
    for (uint32_t image_strip = 0; image_strip < plan->image_strips;
         image_strip++) /* a whole cycle of windows */
        assert_int_equal(windows[image_strip], plan->resident);
}

static void test_shares(void **state)
{
    (void)state;
    static const struct {
        uint32_t views, width;
        uint64_t budget;
        uint64_t host;
    } cases[] = {{100, 800, 128 * MIB, 1}, {100, 800, 20 * MIB, 0}, {7, 400, 2700000, 1},
                 {5, 64, 16640 * 2, 1},    {60, 64, 400000, 0},     {599, 64, 8 * MIB, 1}};
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        const struct views *views =
            views_create(cases[i].views, cases[i].width, cases[i].width, cases[i].width);
        const struct vkn_config config = {
            .scene = {.image_budget = cases[i].budget, .host_budget = cases[i].host}};
        struct images_plan plan = plan_of(views, &config, 0, GIB);
        assert_true(plan.resident < plan.image_strips);
        check_sequence(&plan, i);
    }
}

/* Each view belongs to one device, in the order of views; a device's plan ignores other devices. */
static void check_ranks(struct views *views, uint32_t devices, uint32_t turns,
                        const struct vkn_config *config)
{
    const struct scene_split *train = &views->scene.splits[SCENE_TRAIN];
    const size_t count = train->camera_count;
    uint32_t owners[MOST_VIEWS] = {0};
    uint64_t pixels = 0, bytes = 0;
    for (uint32_t device = 0; device < devices; device++) {
        const struct scene_share share = {device * turns, turns, devices * turns};
        scene_set_share(&views->scene, SCENE_TRAIN, share);
        struct images_plan plan = plan_of(views, config, 0, GIB);
        uint32_t before = 0;
        for (uint32_t i = 0; i < plan.views; i++) {
            size_t view = scene_share_view(share, i);
            assert_true(view < count && scene_share_has(share, view) && view + 1 > before);
            assert_int_equal(view % share.of / turns, device);
            owners[view]++;
            before = (uint32_t)view + 1;
        }
        assert_int_equal(plan.views, scene_share_count(share, count));
        assert_int_equal(plan.cameras, count);
        assert_in_range(plan.views, count / share.of * turns, (count / share.of + 1) * turns);
        assert_int_equal(plan.all_bytes, 4 * train->pixel_count);
        assert_within(&plan, config->scene.image_budget, GIB);
        check_buckets(views, &plan, 1);
        if (plan.resident < plan.image_strips)
            check_sequence(&plan, device);
        pixels += train->pixel_count;
        bytes += plan.all_bytes;
    }
    for (size_t view = 0; view < count; view++)
        assert_int_equal(owners[view], 1);
    assert_int_equal(bytes, 4 * pixels);
    scene_set_share(&views->scene, SCENE_TRAIN, (struct scene_share){0});
    assert_int_equal(train->pixel_count, pixels);
    assert_int_equal(plan_of(views, config, GIB, GIB).views, count);
}

static void test_ranks(void **state)
{
    (void)state;
    static const uint32_t ranks[][2] = {{1, 1}, {2, 1}, {3, 1}, {29, 1}, {1, 3}, {2, 3}, {7, 4}};
    struct views *views = views_create(29, 40, 48, 80);
    const uint64_t one = 4ull * 40 * 48;
    for (size_t i = 0; i < BASE_COUNT(ranks); i++) {
        struct vkn_config config = {.scene.image_budget = GIB};
        check_ranks(views, ranks[i][0], ranks[i][1], &config);
        config.scene.image_budget = 2 * one + 2 * one / 12; /* the larger image, or its strips */
        check_ranks(views, ranks[i][0], ranks[i][1], &config);
    }
    /* The host budget holds the images of one of two ranks, but not all. */
    const struct vkn_config half = {.scene.host_budget = 16 * one};
    assert_false(images_fit_host(&views->scene, &half));
    for (uint32_t rank = 0; rank < 2; rank++) {
        scene_set_share(&views->scene, SCENE_TRAIN, (struct scene_share){rank, 1, 2});
        assert_true(images_fit_host(&views->scene, &half));
    }
}

/* A permutation that depends on the seed. */
static void test_shuffle(void **state)
{
    (void)state;
    const struct images_plan plan = {.image_strips = 500};
    uint32_t first[500], again[500], other[500], moved = 0;
    bool seen[500] = {false};
    images_shuffle(&plan, 3, first);
    images_shuffle(&plan, 3, again);
    images_shuffle(&plan, 4, other);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
    for (uint32_t i = 0; i < 500; i++) {
        assert_true(first[i] < 500 && !seen[first[i]]);
        seen[first[i]] = true;
        moved += first[i] != i;
    }
    assert_true(moved > 480); /* 499 on average */
}

/* ---- times --------------------------------------------------------------------------------- */

static void assert_latest(const struct Config *constants, uint64_t step, double time_progress,
                          double time)
{
    assert_true(fabs((double)images_latest_time(constants, step, time_progress) - time) < 1e-6);
}

/* The curriculum begins at a tenth of the views' times and grows by steps, by time, or not at all.
 */
static void test_latest_time(void **state)
{
    (void)state;
    struct Config constants = {.curriculum = 0.5f,
                               .total_steps = 1000,
                               .decay_start = 4000,
                               .first_time = 0.2f,
                               .last_time = 0.7f};
    assert_latest(&constants, 0, 0, 0.25);
    assert_latest(&constants, 250, 0, 0.475);
    assert_latest(&constants, 499, 0, 0.69910);
    assert_true(images_latest_time(&constants, 500, 0) >= 1);
    constants.time_schedule = 1; /* whichever is further */
    assert_latest(&constants, 250, 0.1, 0.475);
    assert_latest(&constants, 250, 0.3, 0.52);
    constants.total_steps = UINT32_MAX;
    assert_latest(&constants, 250, 0.1, 0.34);
    constants.time_schedule = 0;
    assert_latest(&constants, 1000, 0, 0.475);
    constants.curriculum = 0;
    assert_true(images_latest_time(&constants, 0, 0) >= 1);
}

static void set_times(struct views *views, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) { /* in no order, each time twice */
        uint32_t pair = i * 7 % count / 2;
        views->cameras[i].time = (float)pair / 50.0f;
    }
}

static void test_sort(void **state)
{
    (void)state;
    static const struct scene_share shares[] = {{0}, {.first = 1, .count = 2, .of = 3}};
    struct views *views = views_create(100, 64, 64, 64);
    struct scene_split *train = &views->scene.splits[SCENE_TRAIN];
    set_times(views, 100);
    for (size_t n = 0; n < BASE_COUNT(shares); n++) {
        uint32_t order[100], count = (uint32_t)scene_share_count(shares[n], 100);
        bool seen[100] = {false};
        assert_int_equal(images_sort(train, shares[n], order), VKN_OK);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(order[i] < count && !seen[order[i]]);
            seen[order[i]] = true;
            float time = train->cameras[scene_share_view(shares[n], order[i])].time;
            float before =
                i > 0 ? train->cameras[scene_share_view(shares[n], order[i - 1])].time : 0;
            assert_true(time > before || (time == before && (i == 0 || order[i] > order[i - 1])));
        }
    }
}

/* The available strips are those of views within the curriculum, in the sequence's order, and
 * always those of the earliest view. */
static void test_available(void **state)
{
    (void)state;
    static const float times[] = {-1, 0, 0.2f, 0.21f, 2};
    struct views *views = views_create(100, 64, 64, 64);
    struct scene_split *train = &views->scene.splits[SCENE_TRAIN];
    const struct vkn_config config = {.scene.image_budget = 100000};
    set_times(views, 100);
    train->share = (struct scene_share){.first = 1, .count = 1, .of = 2};
    struct images_plan plan = plan_of(views, &config, 0, GIB);
    static uint32_t order[MOST_BUCKETS], available[MOST_BUCKETS];
    float earliest = 2;
    assert_true(plan.strips > 1 && plan.image_strips == 50 * plan.strips);
    images_shuffle(&plan, 5, order);
    for (uint32_t i = 1; i < 100; i += 2)
        earliest = fminf(earliest, train->cameras[i].time);
    for (size_t n = 0; n < BASE_COUNT(times); n++) {
        uint32_t count = images_available(&plan, train, order, times[n], available), next = 0;
        for (uint32_t i = 0; i < plan.image_strips; i++)
            if (train->cameras[1 + order[i] / plan.strips * 2].time <= fmaxf(times[n], earliest))
                assert_int_equal(available[next++], order[i]);
        assert_int_equal(next, count);
        assert_true(count > 0 && (n < BASE_COUNT(times) - 1 || count == plan.image_strips));
    }
}

/* ---- stages -------------------------------------------------------------------------------- */

static void test_stages(void **state)
{
    (void)state;
    struct vkn_config config = {.steps = 1600, .progressive = {true, 8, {0.1f, 0.25f, 0.5f}}};
    static const uint32_t starts[] = {8, 4, 2};
    for (size_t i = 0; i < BASE_COUNT(starts); i++) {
        config.progressive.start_downscale = starts[i];
        assert_int_equal(images_shrink(&config, 0.0), starts[i]);
        assert_int_equal(images_shrink(&config, 0.0999), starts[i]);
        assert_int_equal(images_shrink(&config, 0.11), starts[i] / 2);
        assert_int_equal(images_shrink(&config, 0.25), starts[i] > 2 ? starts[i] / 4 : 1);
        assert_int_equal(images_shrink(&config, 0.5), 1);
        assert_int_equal(images_shrink(&config, 2.0), 1);
    }
    /* Progress counts update intervals of 16 steps. */
    assert_true(images_progress(&config, 25) == 0.25);
    assert_int_equal(images_shrink(&config, images_progress(&config, 24)), 1);
    config.progressive.start_downscale = 8;
    assert_int_equal(images_shrink(&config, images_progress(&config, 24)), 4);
    assert_int_equal(images_shrink(&config, images_progress(&config, 25)), 2);
    config.steps = 0;
    assert_true(images_progress(&config, 1000) == 0.0);
    config.progressive.enabled = false;
    assert_int_equal(images_shrink(&config, 0.0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budgets),     cmocka_unit_test(test_cycle),
        cmocka_unit_test(test_mixed_sizes), cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_few_images),  cmocka_unit_test(test_host),
        cmocka_unit_test(test_shares),      cmocka_unit_test(test_shuffle),
        cmocka_unit_test(test_stages),      cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_latest_time), cmocka_unit_test(test_sort),
        cmocka_unit_test(test_available),   cmocka_unit_test(test_error_cells),
    };
    return cmocka_run_group_tests_name("images", tests, NULL, NULL);
}
