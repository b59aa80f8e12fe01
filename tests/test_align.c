/* Tests views whose pose is aligned with the field on one half of the image, and whose PSNR is
 * measured on the other half: disturbed poses come back, exact poses stay, the measured half does
 * not align, and the field does not change. Takes about 12 s, a third of it for the training. */
#include "evaluation.h"

#include "render/internal.h"

#define STEPS  400u
#define DEGREE (M_PI / 180)

/* A field of the bundled scene, trained on exact cameras, and its test views. */
static struct {
    vkn_scene *scene;
    vkn_trainer *trainer;
    vkn_renderer *renderer;
    struct report_progress *progress;
    struct scene_split *test;
    struct scene_camera *exact; /* the test views' cameras as they were */
    uint32_t *photographs;      /* the test views' pixels as they were */
} field;

static struct vkn_config bundled_config(void)
{
    return (struct vkn_config){
        .deterministic = true,
        .seed = 1,
        .steps = STEPS,
        .scene.downscale = 2,
        .grid = {.levels = 6, .features = 2, .log2_entries = 14, .coarsest = 8, .finest = 64},
        .mlp = tiny_config(true).mlp,
        .march = {.resolution = 32, .steps_per_unit = 128},
        .batch = {.samples = 4096, .max_rays = 2048},
    };
}

static int train_field(void **state)
{
    const struct vkn_config config = bundled_config();
    const struct vkn_train_run run = {.until_step = STEPS};
    if (step_tests_setup(state) != 0)
        return -1;
    char *path = base_format("%s/assets/demo", getenv("VKNERF_SOURCE_DIR"));
    ok(vkn_scene_open(path, &config, &field.scene));
    free(path);
    ok(vkn_trainer_create(((struct step_tests *)*state)->context, field.scene, &config,
                          &field.trainer));
    ok(vkn_trainer_run(field.trainer, &run));
    ok(vkn_renderer_of_trainer(field.trainer, &field.renderer));
    ok(report_progress_begin(NULL, 0, 0, &field.progress));
    ok(scene_load(field.scene, SCENE_TEST, NULL, NULL));
    field.test = &field.scene->splits[SCENE_TEST];
    field.exact = base_alloc(field.test->camera_count, sizeof *field.exact);
    field.photographs = base_alloc(field.test->pixel_count, sizeof *field.photographs);
    memcpy(field.exact, field.test->cameras, field.test->camera_count * sizeof *field.exact);
    memcpy(field.photographs, field.test->pixels,
           field.test->pixel_count * sizeof *field.photographs);
    return 0;
}

static int free_field(void **state)
{
    free(field.exact);
    free(field.photographs);
    report_progress_end(&field.progress);
    vkn_renderer_destroy(&field.renderer);
    vkn_trainer_destroy(&field.trainer);
    vkn_scene_close(&field.scene);
    return step_tests_teardown(state);
}

static int restore_views(void **state)
{
    (void)state;
    memcpy(field.test->cameras, field.exact, field.test->camera_count * sizeof *field.exact);
    memcpy(field.test->pixels, field.photographs,
           field.test->pixel_count * sizeof *field.photographs);
    return 0;
}

static struct render_evaluation request_of(uint32_t aligned)
{
    return (struct render_evaluation){.renderer = field.renderer,
                                      .scene = field.scene,
                                      .split = SCENE_TEST,
                                      .background = VKN_BACKGROUND_WHITE,
                                      .stride = 1,
                                      .progress = field.progress,
                                      .aligned = aligned};
}

static vkn_status try_align(size_t view, const volatile sig_atomic_t *stop,
                            struct render_aligned *aligned)
{
    struct render_evaluation request = request_of(0);
    struct scene_whitening *whitenings = base_alloc(field.test->camera_count, sizeof *whitenings);
    request.stop = stop;
    scene_whiten(field.test, whitenings);
    vkn_status status =
        render_align_view(&request, view, &field.test->cameras[view], &whitenings[view], aligned);
    free(whitenings);
    return status;
}

static struct render_aligned align(size_t view)
{
    struct render_aligned aligned;
    ok(try_align(view, NULL, &aligned));
    return aligned;
}

/* Turns the camera by an angle about its position, and moves it by as many hundredths of its
 * distance from the scene. */
static void disturb(size_t view, double degrees)
{
    const double sign = view % 2 ? 1 : -1, angle = sign * degrees * DEGREE / sqrt(3);
    const float turn[3] = {(float)angle, (float)-angle, (float)angle};
    const float shift = (float)(sign * 0.01 * degrees * 1.3 / sqrt(3)),
                by[3] = {shift, shift, shift};
    scene_move_camera(&field.test->cameras[view], turn, by);
}

/* Replaces the view's photograph by the field's own picture at the camera's pose. */
static void photograph_field(size_t view)
{
    const struct scene_camera *camera = &field.test->cameras[view];
    struct vkn_picture picture;
    ok(render_picture(field.renderer, camera, VKN_BACKGROUND_WHITE, 1, &picture));
    for (size_t i = 0; i < (size_t)camera->width * camera->height; i++) {
        uint32_t pixel = 0xff000000u;
        for (size_t c = 0; c < 3; c++)
            pixel |= (uint32_t)lrintf(255 * picture.color[3 * i + c]) << 8 * c;
        field.test->pixels[camera->first_pixel + i] = pixel;
    }
    render_picture_free(&picture);
}

/* Returns how far the aligned cameras are from a camera, the larger distance in pixels. */
static double distance_from(size_t view, const struct scene_camera *camera,
                            const struct render_aligned *aligned)
{
    struct scene_split split = *field.test;
    struct scene_camera *cameras = base_alloc(split.camera_count, sizeof *cameras);
    memcpy(cameras, split.cameras, split.camera_count * sizeof *cameras);
    split.cameras = cameras;
    cameras[view] = *camera;
    double distance = fmax(scene_pixel_movement(&split, view, &aligned->cameras[0]),
                           scene_pixel_movement(&split, view, &aligned->cameras[1]));
    free(cameras);
    return distance;
}

/* ---- poses ----------------------------------------------------------------------------------- */

/* A picture of the field itself has an exact pose. It keeps the pose, and finds it again from one
 * that is some pixels off, in every lens. */
static void check_own_picture(size_t view, double degrees, const char *what)
{
    photograph_field(view);
    const struct scene_camera exact = field.test->cameras[view];
    struct render_aligned aligned = align(view);
    double stays = distance_from(view, &exact, &aligned);
    assert_true(aligned.psnr > 50);
    disturb(view, degrees);
    double off = scene_pixel_movement(field.test, view, &exact);
    aligned = align(view);
    double left = distance_from(view, &exact, &aligned);
    print_message("%s: stays within %.4f pixels; %.2f pixels off: %.4f left, %.2f dB\n", what,
                  stays, off, left, aligned.psnr);
    assert_true(stays < 0.03 && off > 0.7 && left < 0.05 && aligned.psnr > 40);
}

static void test_own_pictures(void **state)
{
    struct scene_camera *camera = &field.test->cameras[0];
    (void)state;
    check_own_picture(1, 1, "pinhole");
    camera->lens = VKN_LENS_FISHEYE;
    camera->k1 = 0.05F;
    check_own_picture(0, 1, "fisheye");
    *camera = scene_panorama(&field.exact[0], 2 * field.exact[0].width, 0, NULL);
    for (int i = 0; i < 3; i++) /* closer to the scene */
        camera->pose[4 * i + 3] += 0.6F * (0.5F - camera->pose[4 * i + 3]);
    camera->first_pixel = field.exact[0].first_pixel;
    check_own_picture(0, 4, "panorama");
}

/* Photographs: the pose of an exact view nearly stays, and that of a disturbed view comes back to
 * the same PSNR. */
static void test_photographs(void **state)
{
    struct vkn_evaluation *evaluation[2];
    struct render_evaluation request = request_of(UINT32_MAX);
    request.stride = 3;
    (void)state;
    ok(render_evaluate(&request, &evaluation[0]));
    for (size_t view = 0; view < field.test->camera_count; view++)
        disturb(view, 1);
    ok(render_evaluate(&request, &evaluation[1]));
    print_message("%.2f dB, aligned %.2f dB; disturbed %.2f dB, aligned %.2f dB\n",
                  evaluation[0]->psnr, evaluation[0]->psnr_aligned, evaluation[1]->psnr,
                  evaluation[1]->psnr_aligned);
    check_close(evaluation[0]->psnr_aligned, evaluation[0]->psnr, 0.1, 1, "exact", 0);
    assert_true(evaluation[1]->psnr < evaluation[0]->psnr - 5);
    check_close(evaluation[1]->psnr_aligned, evaluation[0]->psnr_aligned, 0.2, 1, "disturbed", 0);
    vkn_evaluation_free(&evaluation[0]);
    vkn_evaluation_free(&evaluation[1]);
}

/* ---- what takes part ------------------------------------------------------------------------- */

static bool same_pose(const struct scene_camera *a, const struct scene_camera *b)
{
    bool same = true;
    for (int i = 0; i < 12; i++)
        same = same && a->pose[i] == b->pose[i];
    return same;
}

/* Fills one half of the photograph: the blocks of one colour of a chessboard of 8 x 8. */
static void fill_half(size_t view, unsigned half, uint32_t pixel)
{
    const struct scene_camera *camera = &field.test->cameras[view];
    for (uint32_t y = 0; y < camera->height; y++)
        for (uint32_t x = 0; x < camera->width; x++)
            if ((x * 8 / camera->width + y * 8 / camera->height) % 2 == half)
                field.test->pixels[camera->first_pixel + y * camera->width + x] = pixel;
}

/* Returns the PSNR of the used pixels at the view's own pose. */
static double psnr_as_given(size_t view)
{
    struct vkn_picture image, picture;
    ok(render_read_photograph(field.scene, SCENE_TEST, view, 1, &image));
    ok(render_picture(field.renderer, &field.test->cameras[view], VKN_BACKGROUND_WHITE, 1,
                      &picture));
    double psnr = vkn_psnr(picture.color, image.color, image.used, image.width, image.height);
    render_picture_free(&image);
    render_picture_free(&picture);
    return psnr;
}

/* The measured half does not align: its pixels only change the PSNR. Pixels that a mask excludes
 * neither align nor count: the other half is measured at the pose as given. */
static void test_halves(void **state)
{
    (void)state;
    disturb(2, 0.5);
    const struct render_aligned before = align(2);
    assert_false(same_pose(&before.cameras[0], &before.cameras[1]));
    assert_false(same_pose(&before.cameras[0], &field.test->cameras[2]));
    for (unsigned half = 0; half < 2; half++) {
        restore_views(NULL);
        disturb(2, 0.5);
        fill_half(2, half, 0xff000000u);
        const struct render_aligned after = align(2);
        assert_true(same_pose(&after.cameras[1 - half], &before.cameras[1 - half]));
        assert_false(same_pose(&after.cameras[half], &before.cameras[half]));
        assert_true(after.psnr < before.psnr - 3);
        fill_half(2, half, SCENE_IGNORED);
        const struct render_aligned masked = align(2);
        assert_true(same_pose(&masked.cameras[1 - half], &before.cameras[1 - half]));
        assert_true(same_pose(&masked.cameras[half], &field.test->cameras[2]));
        check_close(masked.psnr, psnr_as_given(2), 1e-6, 1, "half", (int)half);
    }
    fill_half(2, 0, SCENE_IGNORED);
    assert_true(isnan(align(2).psnr));
    fill_half(2, 0, 0xffffffffu); /* of one colour: no pose is better */
    assert_true(isfinite(align(2).psnr));
}

/* The evaluation aligns a few views, and gives the PSNR of all: the field stays as it is. */
static void test_evaluation(void **state)
{
    const struct step_tests *tests = *state;
    const size_t count = field.test->camera_count, every = (count + 2) / 3;
    const struct render_evaluation request = request_of(3);
    struct tiny tiny = {.trainer = field.trainer};
    struct vkn_evaluation *evaluation = NULL;
    double gain = 0;
    size_t aligned = 0;
    char *before = tiny_save(tests, &tiny, "before");
    for (size_t view = 0; view < count; view++)
        disturb(view, 0.3);
    ok(render_evaluate(&request, &evaluation));
    for (size_t view = 0; view < count; view++) {
        const struct vkn_evaluated_view *result = evaluation->views[view];
        assert_int_equal(!isnan(result->psnr_aligned), view % every == 0);
        if (view % every == 0) {
            assert_true(result->psnr_aligned == align(view).psnr);
            gain += result->psnr_aligned - result->psnr;
            aligned++;
        }
    }
    assert_true(aligned > 1 && aligned <= 3 && aligned < count);
    check_close(evaluation->psnr_aligned, evaluation->psnr + gain / (double)aligned, 1e-9, 1,
                "aligned views", (int)aligned);
    vkn_evaluation_free(&evaluation);
    char *after = tiny_save(tests, &tiny, "after");
    assert_true(same_checkpoints(before, after));
    free(before);
    free(after);
    const struct render_evaluation none = request_of(0);
    ok(render_evaluate(&none, &evaluation));
    assert_true(isnan(evaluation->psnr_aligned) && isnan(evaluation->views[0]->psnr_aligned));
    vkn_evaluation_free(&evaluation);
}

static void test_stop(void **state)
{
    struct render_aligned aligned;
    const volatile sig_atomic_t stop = 1;
    (void)state;
    assert_int_equal(try_align(0, &stop, &aligned), VKN_INTERRUPTED);
}

/* ---- hostile views --------------------------------------------------------------------------- */

/* Views without pixels for a gradient, and a camera that sees nothing, stay where they are. */
static void test_odd_views(void **state)
{
    struct scene_camera *camera = &field.test->cameras[0];
    (void)state;
    for (uint32_t side = 1; side < 7; side++) {
        restore_views(NULL);
        camera->width = side;
        camera->height = 8 - side;
        const struct render_aligned aligned = align(0);
        assert_true(isfinite(aligned.psnr));
        assert_true(same_pose(&aligned.cameras[0], camera));
    }
    restore_views(NULL);
    for (int i = 0; i < 3; i++)
        camera->pose[4 * i + 2] *= -1; /* looks away */
    const struct render_aligned aligned = align(0);
    assert_true(isfinite(aligned.psnr) && same_pose(&aligned.cameras[1], camera));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_own_pictures, restore_views),
        cmocka_unit_test_teardown(test_photographs, restore_views),
        cmocka_unit_test_teardown(test_halves, restore_views),
        cmocka_unit_test_teardown(test_evaluation, restore_views),
        cmocka_unit_test_teardown(test_stop, restore_views),
        cmocka_unit_test_teardown(test_odd_views, restore_views),
    };
    return cmocka_run_group_tests(tests, train_field, free_field);
}
