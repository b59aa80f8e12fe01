/* Tests trainings that refine cameras: a turned camera comes back; trainings repeat bit for bit
 * across stops and resumes; checkpoints carry the poses; cameras.json describes them. Takes about
 * 20 s, half of it for test_recovery: a field that has learned less moves cameras anywhere. */
#include "evaluation.h"
#include "step_fixture.h"

#include <cjson/cJSON.h>

#include <vknerf/renderer.h>

#include "run/training.h"

/* ---- recovery ------------------------------------------------------------------------------- */

#define STEPS  800u
#define DEGREE (M_PI / 180)
#define TURNED 7u /* the view whose camera is turned */

/* A small model of the bundled scene. Cameras move once the field is sharp enough to move them in
 * the right direction. */
static struct vkn_config bundled_config(void)
{
    return (struct vkn_config){
        .deterministic = true,
        .seed = 1,
        .steps = STEPS,
        .scene = {.downscale = 2, .refine = VKN_REFINEMENT_POSES},
        .refine.start = 0.5F,
        .grid = {.levels = 6, .features = 2, .log2_entries = 14, .coarsest = 8, .finest = 64},
        .mlp = tiny_config(true).mlp,
        .march = {.resolution = 32, .steps_per_unit = 128},
        .batch = {.samples = 4096, .max_rays = 2048},
    };
}

static vkn_scene *open_bundled(void)
{
    const struct vkn_config config = bundled_config();
    char *path = base_format("%s/assets/demo", getenv("VKNERF_SOURCE_DIR"));
    vkn_scene *scene;
    ok(vkn_scene_open(path, &config, &scene));
    free(path);
    return scene;
}

/* Turns a camera about its position, around the world's axis y. */
static void turn_camera(struct scene_camera *camera, double angle)
{
    for (int column = 0; column < 3; column++) {
        double x = camera->pose[column], z = camera->pose[8 + column];
        camera->pose[column] = (float)(cos(angle) * x + sin(angle) * z);
        camera->pose[8 + column] = (float)(cos(angle) * z - sin(angle) * x);
    }
}

/* Returns the angle between two cameras, in degrees. */
static double angle_between(const struct scene_camera *a, const struct scene_camera *b)
{
    double trace = 0;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            trace += (double)a->pose[4 * i + k] * (double)b->pose[4 * i + k];
    return acos(fmin((trace - 1) / 2, 1)) / DEGREE;
}

static void refine(vkn_context *context, vkn_scene *scene, struct step_camera *cameras)
{
    const struct vkn_config config = bundled_config();
    const struct vkn_train_run run = {.until_step = STEPS};
    vkn_trainer *trainer;
    ok(vkn_trainer_create(context, scene, &config, &trainer));
    ok(vkn_trainer_run(trainer, &run));
    ok(step_read_cameras(&trainer->step, &scene->splits[SCENE_TRAIN], cameras));
    vkn_trainer_destroy(&trainer);
}

/* The turned camera comes back within the accuracy of so short a training; the others, which were
 * exact, keep within it. */
static void test_recovery(void **state)
{
    vkn_scene *exact = open_bundled(), *scene = open_bundled();
    const struct scene_split *views = &exact->splits[SCENE_TRAIN];
    struct scene_camera *turned = &scene->splits[SCENE_TRAIN].cameras[TURNED];
    struct step_camera *cameras = base_alloc(views->camera_count, sizeof *cameras);
    turn_camera(turned, DEGREE);
    double before = scene_pixel_movement(views, TURNED, turned), others = 0;
    refine(((struct step_tests *)*state)->context, scene, cameras);
    for (size_t i = 0; i < views->camera_count; i++)
        if (i != TURNED)
            others += scene_pixel_movement(views, i, &cameras[i].camera) /
                      (double)(views->camera_count - 1);
    const struct scene_camera *refined = &cameras[TURNED].camera;
    double angle = angle_between(&views->cameras[TURNED], refined);
    double pixels = scene_pixel_movement(views, TURNED, refined);
    print_message("%.3f of %.3f pixels, %.3f degrees; others %.3f pixels\n", pixels, before, angle,
                  others);
    assert_true(before > 0.8 && angle_between(&views->cameras[TURNED], turned) > 0.99);
    assert_true(pixels < 0.3 && angle < 0.6);
    assert_true(others < 0.1);
    free(cameras);
    vkn_scene_close(&exact);
    vkn_scene_close(&scene);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

/* Cameras move when the gradients of some update intervals agree. */
static struct vkn_config tiny_refining(void)
{
    struct vkn_config config = tiny_config(true);
    config.steps = 128;
    config.scene.refine = VKN_REFINEMENT_POSES;
    return config;
}

static void test_resume(void **state)
{
    struct vkn_config config = tiny_refining();
    config.batch.by_error = 0.5F;
    config.parallel.ranks_per_device = 2;
    tiny_check_resume(*state, &config, "by error, virtual ranks");
    config = tiny_refining();
    config.scene.image_budget = 1000;
    tiny_check_resume(*state, &config, "streamed");
    config = tiny_refining();
    tiny_propose(&config);
    config.precision = VKN_PRECISION_FP16;
    tiny_check_resume(*state, &config, "proposal, fp16");
}

/* Returns the sum of the views' movements in pixels. */
static double movement(const struct tiny *tiny)
{
    struct step_camera cameras[3];
    double sum = 0;
    ok(step_read_cameras(&tiny->trainer->step, &tiny->scene->splits[SCENE_TRAIN], cameras));
    for (size_t i = 0; i < 3; i++)
        sum += cameras[i].pixels;
    return sum;
}

/* Views move within the update intervals after refine.start, not before. */
static void test_start(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_refining();
    config.refine.start = 0.5F;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 64);
    assert_true(movement(&tiny) == 0);
    tiny_run(&tiny, 128);
    assert_true(movement(&tiny) > 0);
    tiny_destroy(&tiny);
}

/* A refining training goes on from one that did not refine, and keeps poses when it begins or ends
 * to draw rays by error. Others must not lose the poses. Renderers read the checkpoint. */
static void test_other_settings(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config plain = tiny_config(true), refining = tiny_refining(), mapped = refining;
    mapped.batch.by_error = 0.5F;
    char *begun = tiny_train(tests, &plain, NULL, 20, "begun");
    char *refined = tiny_train(tests, &refining, begun, 120, "refined");
    vkn_renderer *renderer = NULL;
    ok(vkn_renderer_open(tests->context, refined, VKN_PRECISION_AUTO, &renderer));
    vkn_renderer_destroy(&renderer);

    struct tiny tiny = tiny_create(tests->context, tests->folder, &mapped);
    ok(vkn_trainer_resume(tiny.trainer, refined));
    double moved = movement(&tiny);
    assert_true(moved > 0);
    char *with_map = tiny_save(tests, &tiny, "with_map");
    tiny_destroy(&tiny);
    tiny = tiny_create(tests->context, tests->folder, &refining);
    ok(vkn_trainer_resume(tiny.trainer, with_map));
    assert_true(movement(&tiny) == moved);
    tiny_destroy(&tiny);
    tiny = tiny_create(tests->context, tests->folder, &refining);
    ok(vkn_trainer_init(tiny.trainer, refined));
    assert_true(movement(&tiny) == moved);
    ok(vkn_trainer_init(tiny.trainer, begun));
    tiny_destroy(&tiny);

    tiny = tiny_create(tests->context, tests->folder, &refining);
    tiny.trainer->step.setup.constants.first_sum += 32; /* as if the scene had a view less */
    assert_int_equal(vkn_trainer_resume(tiny.trainer, with_map), VKN_BAD_INPUT);
    assert_error("with_map: state: refined cameras of other views than the scene's");
    tiny_destroy(&tiny);
    tiny = tiny_create(tests->context, tests->folder, &plain);
    assert_int_equal(vkn_trainer_resume(tiny.trainer, refined), VKN_BAD_INPUT);
    assert_error("scene.refine: trained with poses: resume with poses too");
    ok(vkn_trainer_init(tiny.trainer, refined)); /* takes over the field alone */
    tiny_destroy(&tiny);
    free(begun);
    free(refined);
    free(with_map);
}

/* ---- cameras.json ---------------------------------------------------------------------------- */

static double number_of(const cJSON *json, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static void keep_warning(void *user, enum vkn_log_level level, const char *line)
{
    if (level == VKN_LOG_WARNING)
        snprintf(user, 512, "%s", line);
}

/* The file has the refined poses in the dataset's units, and disappears with the next training that
 * does not refine. Views at the limit are named. */
static void test_file(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_refining();
    struct step_camera cameras[3];
    char warning[512] = "";
    cJSON *json = NULL;
    config.refine.limit = 1e-3F;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 128);
    ok(step_read_cameras(&tiny.trainer->step, &tiny.scene->splits[SCENE_TRAIN], cameras));
    vkn_log_to(keep_warning, warning);
    ok(run_write_cameras(tests->folder->path, &tiny.trainer->step, tiny.scene));
    vkn_log_to(NULL, NULL);
    assert_non_null(strstr(warning, "3 of 3 views have moved by refine.limit pixels"));
    assert_non_null(strstr(warning, "view 0 ("));
    ok(base_json_read(temporary_path(tests->folder, "cameras.json"), 1 << 20, &json));
    const cJSON *views = cJSON_GetObjectItemCaseSensitive(json, "views");
    assert_int_equal(cJSON_GetArraySize(views), 3);
    for (int v = 0; v < 3; v++) {
        const cJSON *view = cJSON_GetArrayItem(views, v);
        const cJSON *rows = cJSON_GetObjectItemCaseSensitive(view, "transform_matrix");
        assert_true(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(view, "at_limit")));
        assert_true(number_of(view, "pixels") == cameras[v].pixels && cameras[v].pixels < 2e-3);
        assert_true(number_of(view, "degrees") == cameras[v].degrees);
        assert_close(number_of(view, "distance"), cameras[v].distance / 0.33, 1e-6, 1, "view", v);
        for (int i = 0; i < 12; i++) {
            double value = cJSON_GetArrayItem(cJSON_GetArrayItem(rows, i / 4), i % 4)->valuedouble;
            double expected = cameras[v].camera.pose[i];
            if (i % 4 == 3)
                expected = (expected - 0.5) / 0.33;
            assert_close(value, expected, 1e-6, 4, "element", i);
        }
    }
    cJSON_Delete(json);
    tiny_destroy(&tiny);
    config = tiny_config(true);
    tiny = tiny_create(tests->context, tests->folder, &config);
    ok(run_write_cameras(tests->folder->path, &tiny.trainer->step, tiny.scene));
    assert_false(base_file_exists(temporary_path(tests->folder, "cameras.json")));
    tiny_destroy(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recovery), cmocka_unit_test(test_resume),
        cmocka_unit_test(test_start),    cmocka_unit_test(test_other_settings),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
