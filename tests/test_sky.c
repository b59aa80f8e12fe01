/* Tests trainings with a sky: they repeat bit for bit across stops and resumes; pictures of
 * trainers and of their checkpoints show it; other settings take it over or refuse to.
 * tests/test_outdoors.sh trains one. */
#include "step_fixture.h"

#include <vknerf/renderer.h>

static struct vkn_config with_sky(void)
{
    struct vkn_config config = tiny_config(true);
    config.steps = 48;
    config.scene.sky = VKN_SWITCH_ON;
    return config;
}

static struct ErrorCell *read_sky(const struct tiny *tiny)
{
    struct ErrorCell *cells = base_alloc(SKY_CELLS, sizeof *cells);
    assert_non_null(cells);
    ok(gpu_download(tiny->trainer->device, &tiny->trainer->step.buffers.at[BIND_STATE],
                    sizeof(struct State), cells, SKY_CELLS * sizeof *cells));
    return cells;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static void test_resume(void **state)
{
    struct vkn_config config = with_sky();
    config.batch.by_error = 0.5F;
    config.parallel.ranks_per_device = 2;
    config.scene.refine = VKN_REFINEMENT_ALL;
    config.scene.appearance = VKN_APPEARANCE_FULL;
    tiny_check_resume(*state, &config, "refined, appearance, by error, virtual ranks");
    config = with_sky();
    config.scene.image_budget = 1000;
    tiny_check_resume(*state, &config, "streamed");
    config = with_sky();
    config.march.sampling = VKN_SAMPLING_HIERARCHICAL;
    config.march.coarse_samples = 16;
    config.march.fine_samples = 16;
    tiny_check_resume(*state, &config, "hierarchical");
}

/* Returns whether two trainings have the same sky, which rays have seen. */
static bool same_sky(const struct ErrorCell *a, const struct tiny *tiny)
{
    struct ErrorCell *b = read_sky(tiny);
    bool same = memcmp((const void *)a, (const void *)b, SKY_CELLS * sizeof *b) == 0;
    double weights = 0;
    for (size_t t = 0; t < SKY_TEXELS; t++)
        weights += (double)a[4 * t + 3].error;
    free(b);
    return same && weights > 0;
}

/* Returns whether the error map, behind the sky, has errors of rays. */
static bool has_errors(const struct tiny *tiny)
{
    struct ErrorCell cell;
    ok(gpu_download(tiny->trainer->device, &tiny->trainer->step.buffers.at[BIND_STATE],
                    step_error_map_offset(&tiny->trainer->step), &cell, sizeof cell));
    return cell.error > 0 && cell.error < 1;
}

/* Uploads a saved state that does not fit the step, which must not change the sky. */
static void check_misfit(const struct tiny *tiny, const struct ErrorCell *sky,
                         const struct saved_state *saved, const char *message)
{
    assert_int_equal(step_upload_views(&tiny->trainer->step, "misfit", saved, 0, false),
                     VKN_BAD_INPUT);
    assert_error(message);
    assert_true(same_sky(sky, tiny));
}

/* A training goes on with a sky if it had one, and only then. The sky stays where it is when an
 * error map and sums of appearances follow it. */
static void test_other_settings(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config plain = tiny_config(true), sky = with_sky(), more = with_sky();
    plain.steps = more.steps = sky.steps = 200;
    more.batch.by_error = 0.5F;
    more.scene.appearance = VKN_APPEARANCE_EXPOSURE;
    char *begun = tiny_train(tests, &plain, NULL, 20, "begun");
    struct tiny tiny = tiny_create(tests->context, tests->folder, &sky);
    assert_int_equal(vkn_trainer_resume(tiny.trainer, begun), VKN_BAD_INPUT);
    assert_error("scene.sky: trained with off: resume with off too");
    tiny_run(&tiny, 48);
    char *saved = tiny_save(tests, &tiny, "saved");
    struct ErrorCell *expected = read_sky(&tiny);
    struct saved_state misfit = {.data = base_alloc(SKY_CELLS, 2 * sizeof *expected),
                                 .size = sizeof(struct State),
                                 .has_sky = true};
    check_misfit(&tiny, expected, &misfit, "misfit: state: the sky is incomplete");
    misfit.size += SKY_CELLS * sizeof *expected;
    misfit.has_views = true;
    check_misfit(&tiny, expected, &misfit, "misfit: state: refined cameras of other views");
    free((void *)misfit.data);
    tiny_destroy(&tiny);
    tiny = tiny_create(tests->context, tests->folder, &more);
    ok(vkn_trainer_resume(tiny.trainer, saved));
    assert_true(same_sky(expected, &tiny));
    tiny_run(&tiny, 96);
    assert_true(has_errors(&tiny));
    tiny_destroy(&tiny);
    tiny = tiny_create(tests->context, tests->folder, &sky);
    ok(vkn_trainer_init(tiny.trainer, saved));
    assert_true(same_sky(expected, &tiny));
    tiny_destroy(&tiny);
    plain.scene.sky = VKN_SWITCH_OFF;
    tiny = tiny_create(tests->context, tests->folder, &plain);
    assert_int_equal(vkn_trainer_resume(tiny.trainer, saved), VKN_BAD_INPUT);
    assert_error("scene.sky: trained with on: resume with on too");
    ok(vkn_trainer_init(tiny.trainer, saved)); /* takes over the field alone */
    tiny_destroy(&tiny);
    free(expected);
    free(begun);
    free(saved);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static struct vkn_picture *render(vkn_renderer *renderer, const struct tiny *tiny,
                                  enum vkn_background background, bool transparent)
{
    struct vkn_camera camera = {.size = sizeof camera};
    const struct vkn_picture_params params = {
        .size = sizeof params, .background = background, .transparent = transparent};
    struct vkn_picture *picture;
    ok(vkn_scene_camera(tiny->scene, VKN_SPLIT_TRAIN, 1, &camera));
    ok(vkn_render(renderer, &camera, &params, &picture));
    return picture;
}

static bool same_colors(const struct vkn_picture *a, const struct vkn_picture *b)
{
    return memcmp(a->color, b->color, (size_t)12 * a->width * a->height) == 0;
}

/* By default pictures show the sky, with a background they do not. Those of a checkpoint equal the
 * trainer's, those of a trainer follow its training. */
static void test_pictures(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = with_sky();
    config.steps = 200;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    vkn_renderer *renderer, *opened;
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderer));
    struct vkn_picture *first = render(renderer, &tiny, VKN_BACKGROUND_DEFAULT, false);
    tiny_run(&tiny, 80);
    struct vkn_picture *sky = render(renderer, &tiny, VKN_BACKGROUND_DEFAULT, false);
    struct vkn_picture *white = render(renderer, &tiny, VKN_BACKGROUND_WHITE, false);
    struct vkn_picture *clear = render(renderer, &tiny, VKN_BACKGROUND_DEFAULT, true);
    assert_false(same_colors(first, sky));
    char *path = tiny_save(tests, &tiny, "pictured");
    ok(vkn_renderer_open(tests->context, path, VKN_PRECISION_AUTO, &opened));
    struct vkn_picture *again = render(opened, &tiny, VKN_BACKGROUND_DEFAULT, false);
    assert_true(same_colors(sky, again));
    size_t different = 0;
    for (size_t i = 0; i < 3 * (size_t)sky->width * sky->height; i++) {
        double behind = 1 - (double)sky->opacity[i / 3];
        double straight = (1 - behind) * (double)clear->color[i];
        check_close(white->color[i], straight + behind, 2e-3, 1, "colour on white", i);
        assert_true((double)sky->color[i] >= straight - 2e-3);
        different += behind > 0.5 && sky->color[i] < white->color[i] - 0.1F;
    }
    assert_true(different > 0);
    vkn_picture_free(&first);
    vkn_picture_free(&sky);
    vkn_picture_free(&white);
    vkn_picture_free(&clear);
    vkn_picture_free(&again);
    vkn_renderer_destroy(&renderer);
    vkn_renderer_destroy(&opened);
    tiny_destroy(&tiny);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_other_settings),
        cmocka_unit_test(test_pictures),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
