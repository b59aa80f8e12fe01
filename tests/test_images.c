/* Which images are on the device, and when: shares, budgets, stages. No device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/layout.h"
#include "train/images.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

#define MOST_VIEWS 600u

/* `views` cameras of that size, the last one larger. */
struct views {
    struct scene_camera cameras[MOST_VIEWS];
    struct scene scene;
};

static struct views *views_create(uint32_t count, uint32_t width, uint32_t height,
                                  uint32_t last_width)
{
    static struct views views;
    views = (struct views){.scene.path = "a scene"};
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

static void assert_within(const struct images_plan *plan, uint64_t budget, uint64_t range)
{
    uint64_t view = 4 * plan->slot_pixels + sizeof(struct Camera);
    assert_int_equal(plan->exchange, plan->exchanged * view);
    assert_int_equal(plan->bytes, 4 * plan->pixels + IMAGES_EXCHANGES * plan->exchange);
    assert_true(plan->bytes <= budget);
    assert_true(4 * plan->pixels <= range && plan->exchange <= range);
    if (plan->resident == plan->views)
        return;
    assert_true(plan->resident > 0 && plan->exchanged > 0);
    assert_int_equal(plan->resident % plan->exchanged, 0);
    assert_int_equal(plan->pixels, plan->resident * plan->slot_pixels);
}

/* All that fits stays; what does not is streamed within the budget and the range, which it uses. */
static void test_budgets(void **state)
{
    (void)state;
    const struct views *views = views_create(100, 800, 800, 800);
    struct vkn_config config = {0};
    struct images_plan plan = plan_of(views, &config, GIB, GIB);
    assert_int_equal(plan.resident, 100);
    assert_int_equal(plan.exchanged, 0);
    assert_int_equal(plan.bytes, 100ull * 800 * 800 * 4);
    /* lavapipe: 128 MiB in one buffer, memory enough: 52 images, a multiple of those exchanged. */
    plan = plan_of(views, &config, GIB, 128 * MIB);
    assert_within(&plan, GIB, 128 * MIB);
    assert_int_equal(plan.exchanged, 3);
    assert_int_equal(plan.resident, 51);
    for (uint64_t budget = 10 * MIB; budget < 256 * MIB; budget += 3 * MIB) {
        config.scene.image_budget = budget;
        plan = plan_of(views, &config, 0, GIB);
        assert_within(&plan, budget, GIB);
        bool all = plan.resident == 100;
        assert_true(all == (budget >= 100ull * 800 * 800 * 4));
        assert_true(all || budget < 32 * MIB || plan.bytes > budget / 10 * 8);
    }
}

static void test_mixed_sizes(void **state)
{
    (void)state;
    const struct views *views = views_create(20, 100, 100, 400);
    struct vkn_config config = {.scene.image_budget = 1300000};
    struct images_plan plan = plan_of(views, &config, 0, GIB);
    assert_int_equal(plan.resident, 20); /* 230000 pixels take less than that */
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(images_place(&plan, &views->scene.splits[SCENE_TRAIN], i, 7), 10000 * i);
    config.scene.image_budget = 900000;
    plan = plan_of(views, &config, 0, GIB);
    assert_within(&plan, 900000, GIB);
    assert_int_equal(plan.slot_pixels, 40000);
    assert_int_equal(plan.resident, 2); /* five slots of the largest, three of them to exchange */
    assert_int_equal(images_place(&plan, &views->scene.splits[SCENE_TRAIN], 3, 1), 40000);
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
    struct vkn_config config = {.scene.image_budget = 600000};
    refuse(views, &config, GIB, "last.png: the largest of the training images has 400x100 pixels");
    refuse(views, &config, GIB, "0.57 MiB of device memory are left to images");
    config.scene.image_budget = 0;
    refuse(views, &config, 100000, "last.png: ");
    config = (struct vkn_config){.progressive = {true, 8, {0.1f, 0.2f, 0.3f}}};
    views = views_create(3, 100, 7, 100);
    refuse(views, &config, GIB, "x: of 100x7 pixels nothing is left at a progressive.start");
}

/* One image cannot be exchanged for others, but for a finer one of its own. */
static void test_few(void **state)
{
    (void)state;
    struct vkn_config config = {.progressive = {true, 4, {0.1f, 0.2f, 0.3f}}};
    for (uint32_t count = 1; count < 6; count++) {
        const struct views *views = views_create(count, 64, 64, 64);
        for (uint64_t budget = 16384; budget < 200000; budget += 1000) {
            struct images_plan plan;
            config.scene.image_budget = budget;
            vkn_status status = images_make_plan(&views->scene, &config, 0, GIB, &plan);
            if (status == VKN_OK)
                assert_within(&plan, budget, GIB);
            assert_true(status == (budget >= 4 * (16384 + sizeof(struct Camera)) ? VKN_OK
                                                                                 : VKN_BAD_INPUT));
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

/* ---- shares -------------------------------------------------------------------------------- */

/* Views are different ones within a window, a window differs from the next by what is exchanged, a
 * view keeps its slot, and over whole cycles each was there for the same number of windows. */
static void check_sequence(const struct images_plan *plan, uint64_t seed)
{
    uint32_t order[MOST_VIEWS], windows[MOST_VIEWS] = {0};
    uint64_t before[MOST_VIEWS], cycles = plan->exchanged;
    images_shuffle(plan, seed, order);
    for (uint64_t window = 0; window < (uint64_t)plan->views; window++) {
        bool there[MOST_VIEWS] = {false};
        uint32_t entered = 0;
        for (uint32_t slot = 0; slot < plan->resident; slot++) {
            uint64_t position = images_position(plan, window, slot);
            uint32_t view = order[position % plan->views];
            assert_int_equal(position % plan->resident, slot);
            assert_true(position >= window * plan->exchanged &&
                        position < window * plan->exchanged + plan->resident);
            assert_false(there[view]);
            there[view] = true;
            windows[view]++;
            bool enters = window > 0 && position != before[slot];
            entered += enters;
            if (enters)
                assert_int_equal(images_entry(plan, position), window);
            before[slot] = position;
        }
        assert_int_equal(entered, window > 0 ? plan->exchanged : 0);
    }
    for (uint32_t view = 0; view < plan->views; view++)
        assert_int_equal(windows[view], cycles * (plan->resident / plan->exchanged));
}

static void test_shares(void **state)
{
    (void)state;
    static const struct {
        uint32_t views, width;
        uint64_t budget;
    } cases[] = {{100, 800, 128 * MIB}, {100, 800, 20 * MIB}, {7, 400, 2700000},
                 {5, 64, 16640 * 4},    {600, 64, 4 * MIB},   {599, 64, 8 * MIB}};
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        const struct views *views =
            views_create(cases[i].views, cases[i].width, cases[i].width, cases[i].width);
        const struct vkn_config config = {.scene.image_budget = cases[i].budget};
        struct images_plan plan = plan_of(views, &config, 0, GIB);
        assert_true(plan.resident < plan.views);
        check_sequence(&plan, i);
    }
}

/* A permutation that the seed decides. */
static void test_shuffle(void **state)
{
    (void)state;
    const struct images_plan plan = {.views = 500};
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
    assert_true(moved > 480); /* of a random one 499 on average */
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
    /* By period of 16 steps. */
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
        cmocka_unit_test(test_budgets),   cmocka_unit_test(test_mixed_sizes),
        cmocka_unit_test(test_too_large), cmocka_unit_test(test_few),
        cmocka_unit_test(test_host),      cmocka_unit_test(test_shares),
        cmocka_unit_test(test_shuffle),   cmocka_unit_test(test_stages),
    };
    return cmocka_run_group_tests_name("images", tests, NULL, NULL);
}
