/* Tests trainings that draw rays by error: they repeat bit for bit across stops and resumes, with
 * all, streamed and downscaled images and several virtual ranks, and resume with or without a map.
 */
#include "step_fixture.h"

#include <vknerf/renderer.h>

#define WIDTH  80u
#define HEIGHT 64u
#define CELLS  (5u * 4) /* of a view */

/* Makes pictures with one detailed corner. */
static void make_larger(struct temporary *folder)
{
    static const char *const names[] = {"train/z.png", "train/x.png", "train/y.png"};
    struct random random = {1};
    temporary_text(folder, "transforms_train.json", transforms);
    for (size_t n = 0; n < BASE_COUNT(names); n++) {
        static uint8_t pixels[WIDTH * HEIGHT * 4];
        for (size_t i = 0; i < (size_t)WIDTH * HEIGHT; i++) {
            bool detailed = i % WIDTH < 20 && i / WIDTH < 20;
            const uint8_t pixel[4] = {(uint8_t)(detailed ? random_below(&random, 256) : 90),
                                      (uint8_t)(3 * (i / WIDTH)), (uint8_t)(100 * n), 255};
            memcpy(&pixels[4 * i], pixel, 4);
        }
        ok(scene_image_write_png(temporary_path(folder, names[n]), pixels, WIDTH, HEIGHT, 4));
    }
}

static int larger_setup(void **state)
{
    tiny_groups = TINY_GROUPS;
    return step_tests_open(state, make_larger);
}

static struct vkn_config config_by_error(void)
{
    struct vkn_config config = tiny_config(true);
    config.batch.by_error = 0.5f;
    config.batch.unbiased = true;
    return config;
}

static void test_resume(void **state)
{
    struct vkn_config config = config_by_error();
    tiny_check_resume(*state, &config, "all images");
    config.progressive.enabled = true;
    config.progressive.start_downscale = 4;
    tiny_check_resume(*state, &config, "progressive");
    config.scene.image_budget = 4 * WIDTH * HEIGHT * 2;
    tiny_check_resume(*state, &config, "streamed, progressive");
    config.progressive.enabled = false;
    config.march.sampling = VKN_SAMPLING_UNIFORM;
    config.march.ray_samples = 16;
    tiny_check_resume(*state, &config, "streamed");
}

static void test_virtual_ranks(void **state)
{
    struct vkn_config config = config_by_error();
    config.parallel.ranks_per_device = 2;
    tiny_check_resume(*state, &config, "virtual ranks");
}

static void test_samplings(void **state)
{
    struct vkn_config config = config_by_error();
    tiny_propose(&config);
    tiny_check_resume(*state, &config, "proposal");
    config = config_by_error();
    config.march.sampling = VKN_SAMPLING_HIERARCHICAL;
    config.march.coarse_samples = 8;
    config.march.fine_samples = 8;
    tiny_check_resume(*state, &config, "hierarchical");
}

/* The map knows every cell after some intervals; a cell with detail has more error than others. */
static void check_map(const struct step_tests *tests, const struct vkn_config *config)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    tiny_run(&tiny, 60);
    char *state = tiny_read(&tiny, &tiny.trainer->step.buffers.at[BIND_STATE]);
    const struct ErrorCell *cells = (const struct ErrorCell *)(state + sizeof(struct State));
    assert_int_equal(tiny.trainer->step.buffers.at[BIND_STATE].size,
                     sizeof(struct State) + 3 * CELLS * sizeof *cells);
    for (uint32_t v = 0; v < 3; v++) {
        float least = 1, detailed = cells[v * CELLS].error;
        for (uint32_t i = 0; i < CELLS; i++) {
            assert_true(cells[v * CELLS + i].error > 0);
            least = fminf(least, cells[v * CELLS + i].error);
        }
        assert_true(detailed > least);
    }
    free(state);
    tiny_destroy(&tiny);
}

static void test_map(void **state)
{
    struct vkn_config config = config_by_error();
    check_map(*state, &config);
    config.progressive.enabled = true;
    config.progressive.start_downscale = 8;
    check_map(*state, &config);
    config.scene.image_budget = 4 * WIDTH * HEIGHT * 2;
    check_map(*state, &config);
}

/* Without drawing by error a checkpoint has no map, and its bits do not depend on `unbiased`.
 * Renderers read checkpoints with a map, too. */
static void test_without_map(void **state)
{
    const struct step_tests *tests = *state;
    vkn_renderer *renderer = NULL;
    struct vkn_config config = tiny_config(true), by_error = config_by_error();
    char *plain = tiny_train(*state, &config, NULL, 20, "plain");
    char *mapped = tiny_train(*state, &by_error, NULL, 20, "mapped");
    char *begun = tiny_train(*state, &by_error, plain, 40, "begun");
    char *ended = tiny_train(*state, &config, mapped, 40, "ended");
    assert_false(same_tensors(plain, mapped));
    ok(vkn_renderer_open(tests->context, mapped, VKN_PRECISION_AUTO, &renderer));
    vkn_renderer_destroy(&renderer);
    free(plain);
    free(mapped);
    free(begun);
    free(ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume),      cmocka_unit_test(test_virtual_ranks),
        cmocka_unit_test(test_samplings),   cmocka_unit_test(test_map),
        cmocka_unit_test(test_without_map),
    };
    return cmocka_run_group_tests(tests, larger_setup, step_tests_teardown);
}
