/* Tests trainings with known depths: loss.depth is chosen where a scene has depth pictures, moves
 * the rendered depths to them, repeats bit for bit across stops and resumes; errors of depths are
 * measured as documented. The scene is a ball of radius 1 that three cameras look at. */
#include "evaluation.h"

#include <math.h>

#include "render/internal.h"

#define WIDTH  12
#define HEIGHT 10
#define KNOWN  80 /* pixels of a picture that show the ball */

static const char capture[] =
    "{\"camera_angle_x\": 0.6, \"depth_unit_scale_factor\": 0.0001, \"frames\": ["
    "{\"file_path\": \"train/z\", \"depth_file_path\": \"depth.png\", \"transform_matrix\": "
    "[[1,0,0,0], [0,1,0,0], [0,0,1,4], [0,0,0,1]]}, "
    "{\"file_path\": \"train/x\", \"depth_file_path\": \"depth.png\", \"transform_matrix\": "
    "[[0,0,1,4], [0,1,0,0], [-1,0,0,0], [0,0,0,1]]}, "
    "{\"file_path\": \"train/y\", \"depth_file_path\": \"depth.png\", \"transform_matrix\": "
    "[[1,0,0,0], [0,0,1,4], [0,-1,0,0], [0,0,0,1]]}]}";

/* Writes the depths of the ball along the axis of a camera 4 units from its centre. */
static void make_capture(struct temporary *folder)
{
    uint16_t depths[WIDTH * HEIGHT];
    make_scene(folder);
    temporary_text(folder, "transforms_train.json", capture);
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        int column = i % WIDTH, row = i / WIDTH;
        double x = (column - 5.5) / 6 * tan(0.3), y = (row - 4.5) / 6 * tan(0.3);
        double squared = 1 + x * x + y * y, inside = 16 - 15 * squared;
        depths[i] = inside < 0 ? 0 : (uint16_t)lround(1e4 * (4 - sqrt(inside)) / squared);
    }
    ok(scene_image_write_png16(temporary_path(folder, "depth.png"), depths, WIDTH, HEIGHT));
}

static int setup(void **state)
{
    return step_tests_open(state, make_capture);
}

static struct vkn_config ball_config(float weight)
{
    struct vkn_config config = tiny_config(true);
    config.steps = 120;
    config.loss.depth = weight;
    return config;
}

/* Trains and measures the depths of the training views, which have depth pictures. */
static void train_ball(const struct step_tests *tests, float weight,
                       struct vkn_evaluation **evaluation)
{
    const struct vkn_config config = ball_config(weight);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, config.steps);
    evaluate_split(tiny.trainer, tiny.scene, SCENE_TRAIN, evaluation);
    print_message("loss.depth %g: depth error %.4f, %.3f within 5 %%, %.2f dB\n",
                  (double)vkn_trainer_config(tiny.trainer)->loss.depth, (*evaluation)->depth_error,
                  (*evaluation)->depth_inliers, (*evaluation)->psnr);
    tiny_destroy(&tiny);
}

static void test_training(void **state)
{
    struct vkn_evaluation *without, *with;
    train_ball(*state, -1, &without);
    train_ball(*state, 0.03F, &with);
    assert_int_equal(with->depths, 3 * KNOWN);
    assert_true(with->depth_error < 0.5 * without->depth_error);
    assert_true(with->depth_inliers > without->depth_inliers);
    vkn_evaluation_free(&without);
    vkn_evaluation_free(&with);
}

/* Depth pictures of training views choose the loss; a negative weight leaves it out. */
static void test_default(void **state)
{
    struct step_tests *tests = *state;
    const float weights[] = {0, -1};
    for (size_t i = 0; i < BASE_COUNT(weights); i++) {
        struct vkn_config config = ball_config(weights[i]);
        struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
        const struct setup *made = &tiny.trainer->step.setup;
        assert_true(made->constants.loss_depth == (i == 0 ? 3e-3F : 0));
        assert_int_equal(made->specialization.values[SPEC_DEPTH], i == 0);
        tiny_destroy(&tiny);
    }
}

static void test_resume(void **state)
{
    struct vkn_config config = ball_config(0.03F);
    config.steps = 60;
    config.scene.image_budget = 1000;
    config.parallel.ranks_per_device = 2;
    tiny_check_resume(*state, &config, "known depths, streamed, virtual ranks");
}

/* Opens the scene with its known depths. */
static vkn_scene *open_ball(const struct step_tests *tests)
{
    const struct vkn_config config = ball_config(-1);
    vkn_scene *scene;
    ok(vkn_scene_open(tests->folder->path, &config, &scene));
    ok(scene_find_depths(scene, SCENE_TRAIN));
    return scene;
}

/* Of the known depths of a view, a quarter is rendered 1 % too far, a quarter 3 % too near, the
 * rest 10 % too far or not at all. */
static void test_errors(void **state)
{
    vkn_scene *scene = open_ball(*state);
    const struct scene_split *split = &scene->splits[SCENE_TRAIN];
    const struct scene_camera *camera = &split->cameras[1];
    float rendered[WIDTH * HEIGHT] = {0};
    const float factors[] = {1.01F, 0.97F, 1.1F, 0};
    assert_int_equal(camera->depth_count, KNOWN);
    for (size_t i = 0; i < KNOWN; i++) {
        const struct scene_depth *known = &split->depths[camera->first_depth + i];
        rendered[(int)known->y * WIDTH + (int)known->x] =
            factors[i % 4] * (float)((double)known->depth / scene->scale);
    }
    const struct vkn_picture picture = {.width = WIDTH, .height = HEIGHT, .depth = rendered};
    const struct render_evaluation request = {.scene = scene, .split = SCENE_TRAIN};
    struct vkn_evaluated_view view;
    ok(render_depth_error(&request, 1, &picture, &view));
    assert_int_equal(view.depths, KNOWN);
    check_close(view.depth_inliers, 0.5, 1e-9, 1, "inliers", 0);
    check_close(view.depth_error, 0.1, 1e-5, 1, "error", 0); /* the upper of the two middle ones */
    vkn_scene_close(&scene);
}

/* A strip of an image has the depths of its rows. */
static void test_strips(void **state)
{
    vkn_scene *scene = open_ball(*state);
    const struct scene_split *split = &scene->splits[SCENE_TRAIN];
    const struct images_plan plan = {.cell_edge = 1, .depths = split->depth_count};
    for (uint32_t row = 0; row < HEIGHT; row += 2) {
        const struct images_strip strip = {
            .view = 1, .first_row = row, .rows = 2, .shrink = 1, .camera = split->cameras[1]};
        const struct Camera camera = images_camera(&plan, split, &strip);
        size_t first = split->cameras[1].first_depth, count = 0;
        for (size_t i = first; i < first + split->cameras[1].depth_count; i++) {
            bool is_inside = (uint32_t)split->depths[i].y / 2 == row / 2;
            assert_int_equal(i >= camera.first_depth && i < camera.first_depth + camera.depth_count,
                             is_inside);
            count += is_inside;
        }
        assert_int_equal(camera.depth_count, count);
    }
    vkn_scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_training),
                                       cmocka_unit_test(test_default),
                                       cmocka_unit_test(test_resume), cmocka_unit_test(test_errors),
                                       cmocka_unit_test(test_strips)};
    if (!prepare_tests())
        return 1;
    int failed = cmocka_run_group_tests(tests, setup, step_tests_teardown);
    clean_up_tests();
    return failed;
}
