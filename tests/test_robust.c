/* Tests loss.robust: a training finds the cards that cover a tenth of its images, learns what is
 * behind them, and exports the cards as masks; it finds nothing in images without cards; trainings
 * repeat bit for bit across stops and resumes. Takes about 25 s, for three trainings that must be
 * good enough to tell cards from details. */
#include "evaluation.h"
#include "step_fixture.h"

#include <vknerf/renderer.h>

#include "report/report.h"

#define STEPS 600u

/* A small model of the bundled scene. */
static struct vkn_config bundled_config(enum vkn_switch robust)
{
    return (struct vkn_config){
        .deterministic = true,
        .seed = 1,
        .steps = STEPS,
        .scene = {.downscale = 2},
        .loss = {.robust = robust},
        .grid = {.levels = 6, .features = 2, .log2_entries = 14, .coarsest = 8, .finest = 64},
        .mlp = tiny_config(true).mlp,
        .march = {.resolution = 32, .steps_per_unit = 128},
        .batch = {.samples = 4096, .max_rays = 2048},
    };
}

/* Returns whether pixel (x, y) of training image n is covered by a card: a fifth of the width, half
 * of the height. */
static bool is_covered(size_t n, uint32_t x, uint32_t y, uint32_t width, uint32_t height)
{
    uint32_t left = (uint32_t)(n * 37 % 80) * width / 100;
    uint32_t top = (uint32_t)(n * 53 % 50) * height / 100;
    return x >= left && x < left + width / 5 && y >= top && y < top + height / 2;
}

static vkn_scene *open_bundled(bool cards)
{
    const struct vkn_config config = bundled_config(VKN_SWITCH_OFF);
    char *path = base_format("%s/assets/demo", getenv("VKNERF_SOURCE_DIR"));
    vkn_scene *scene;
    ok(vkn_scene_open(path, &config, &scene));
    ok(scene_load(scene, SCENE_TRAIN, NULL, NULL));
    struct scene_split *train = &scene->splits[SCENE_TRAIN];
    for (size_t n = 0; n < train->camera_count && cards; n++) {
        const struct scene_camera *camera = &train->cameras[n];
        uint32_t color = 0xff000000u | (uint32_t)(n * 0x9e3779b9u) >> 8;
        for (uint32_t i = 0; i < camera->width * camera->height; i++)
            if (is_covered(n, i % camera->width, i / camera->width, camera->width, camera->height))
                train->pixels[camera->first_pixel + i] = color;
    }
    free(path);
    return scene;
}

static struct tiny trained(const struct step_tests *tests, bool cards, enum vkn_switch robust)
{
    const struct vkn_config config = bundled_config(robust);
    struct tiny tiny = {.context = tests->context, .scene = open_bundled(cards)};
    ok(vkn_trainer_create(tiny.context, tiny.scene, &config, &tiny.trainer));
    tiny_run(&tiny, STEPS);
    return tiny;
}

static double psnr_of(const struct tiny *tiny)
{
    struct vkn_evaluation *evaluation;
    struct report_progress *progress = NULL;
    vkn_renderer *renderer;
    ok(report_progress_begin(NULL, 0, 0, &progress));
    ok(vkn_renderer_of_trainer(tiny->trainer, &renderer));
    const struct render_evaluation request = {.renderer = renderer,
                                              .scene = tiny->scene,
                                              .split = SCENE_TEST,
                                              .background = VKN_BACKGROUND_WHITE,
                                              .stride = 1,
                                              .progress = progress};
    ok(render_evaluate(&request, &evaluation));
    double psnr = evaluation->psnr;
    report_progress_end(&progress);
    vkn_evaluation_free(&evaluation);
    vkn_renderer_destroy(&renderer);
    return psnr;
}

/* Compares the exported masks with the cards. */
static void check_masks(const struct step_tests *tests, const struct tiny *tiny)
{
    char *checkpoint = temporary_path(tests->folder, "cards");
    char *folder = temporary_path(tests->folder, "masks");
    const struct scene_split *train = &tiny->scene->splits[SCENE_TRAIN];
    vkn_renderer *renderer;
    double covered = 0, found = 0, others = 0, wrong = 0;
    struct step_outliers listed;
    ok(vkn_trainer_save(tiny->trainer, checkpoint));
    ok(vkn_renderer_open(tests->context, checkpoint, VKN_PRECISION_AUTO, &renderer));
    ok(render_write_masks(renderer, tiny->scene, folder, NULL, &listed));
    for (size_t n = 0; n < train->camera_count; n++) {
        const struct scene_camera *camera = &train->cameras[n];
        char *path = base_format("%s%s.png", folder, strrchr(camera->image_path, '/'));
        uint32_t width, height;
        uint8_t *rgba;
        ok(scene_image_read(path, &rgba, &width, &height));
        assert_int_equal(width, camera->width);
        assert_int_equal(height, camera->height);
        for (uint32_t i = 0; i < width * height; i++) {
            bool is_card = is_covered(n, i % width, i / width, width, height);
            assert_true(rgba[4 * i] == 0 || rgba[4 * i] == 255);
            covered += is_card;
            found += is_card && rgba[4 * i] == 0;
            others += !is_card;
            wrong += !is_card && rgba[4 * i] == 0;
        }
        free(rgba);
        free(path);
    }
    print_message("masks cover %.3f of the cards, %.3f of the rest; %.3f in %u views\n",
                  found / covered, wrong / others, listed.share, listed.views);
    assert_true(found / covered > 0.85);
    assert_true(wrong / others < 0.06);
    assert_int_equal(listed.views, train->camera_count);
    check_close(listed.share, (found + wrong) / (covered + others), 0.01, 1, "share", 0);
    vkn_renderer_destroy(&renderer);
}

static void test_cards(void **state)
{
    struct tiny plain = trained(*state, true, VKN_SWITCH_OFF);
    struct tiny robust = trained(*state, true, VKN_SWITCH_ON);
    double psnr[2] = {psnr_of(&plain), psnr_of(&robust)};
    print_message("with cards: %.2f dB, robust %.2f dB\n", psnr[0], psnr[1]);
    assert_true(psnr[1] > psnr[0] + 0.3);
    check_masks(*state, &robust);
    tiny_destroy(&plain);
    tiny_destroy(&robust);
}

/* Writes masks without outliers: they are white. That of an image outside of the folder of the
 * others stays in the folder of the masks. */
static void check_white(const struct step_tests *tests, const struct tiny *tiny)
{
    struct scene_camera *cameras = tiny->scene->splits[SCENE_TRAIN].cameras;
    char *folder = temporary_path(tests->folder, "white"),
         *images = base_path_folder(cameras[1].image_path);
    char *given = cameras[0].image_path;
    cameras[0].image_path = base_format("%s/../../others/a.png", images);
    ok(images_write_masks(tiny->scene, &tiny->trainer->images, NULL, folder, NULL));
    char *path = base_format("%s/others/a.png.png", folder);
    uint32_t width, height;
    uint8_t *rgba;
    ok(scene_image_read(path, &rgba, &width, &height));
    for (uint32_t i = 0; i < width * height; i++)
        assert_int_equal(rgba[4 * i], 255);
    free(rgba);
    free(path);
    free(images);
    free(cameras[0].image_path);
    cameras[0].image_path = given;
}

/* Without cards all rays have a weight, and the masks are white. */
static void test_nothing(void **state)
{
    const struct step_tests *tests = *state;
    struct tiny tiny = trained(tests, false, VKN_SWITCH_ON);
    char *picture = temporary_path(tests->folder, "error_map.png");
    struct step_outliers found;
    ok(train_write_errors(tiny.trainer, picture, &found));
    assert_true(found.share == 0);
    assert_int_equal(found.views, 0);
    check_white(tests, &tiny);
    tiny_destroy(&tiny);
}

static void test_resume(void **state)
{
    struct vkn_config config = tiny_config(true);
    config.steps = 96;
    config.loss.robust = VKN_SWITCH_ON;
    config.scene.refine = VKN_REFINEMENT_ALL;
    config.scene.appearance = VKN_APPEARANCE_EXPOSURE;
    config.batch.by_error = 0.5F;
    config.parallel.ranks_per_device = 2;
    tiny_check_resume(*state, &config, "refined, by error, virtual ranks");
    config = tiny_config(true);
    config.steps = 96;
    config.loss.robust = VKN_SWITCH_ON;
    config.batch.keep = 0.5F;
    config.scene.image_budget = 1000;
    tiny_propose(&config);
    tiny_check_resume(*state, &config, "streamed, keep, proposal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cards),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_resume),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
