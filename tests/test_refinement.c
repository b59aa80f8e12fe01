/* Tests trainings that refine cameras: a turned camera and a wrong lens come back; pictures of
 * training views show them; trainings repeat bit for bit across stops and resumes; checkpoints
 * carry the cameras; cameras.json describes them. Takes about 35 s, most of it for the two
 * recoveries: a field that has learned less moves cameras anywhere. */
#include "evaluation.h"
#include "step_fixture.h"

#include <cjson/cJSON.h>

#include <vknerf/renderer.h>

#include "render/internal.h"
#include "render/mesh.h"
#include "render/visibility_maps.h"
#include "run/training.h"

/* ---- recovery ------------------------------------------------------------------------------- */

#define STEPS  800u
#define DEGREE (M_PI / 180)
#define TURNED 7u /* the view whose camera is turned */
#define OTHER  5u /* the test view whose lens is another one */

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

/* Evaluates every stride-th view, and aligns views of other splits than the training views. The
 * caller frees the evaluation. */
static struct vkn_evaluation *evaluate(vkn_renderer *renderer, vkn_scene *scene,
                                       enum scene_split_name split, size_t stride)
{
    struct vkn_evaluation *evaluation;
    struct report_progress *progress = NULL;
    ok(report_progress_begin(NULL, 0, 0, &progress));
    const struct render_evaluation request = {.renderer = renderer,
                                              .scene = scene,
                                              .split = split,
                                              .background = VKN_BACKGROUND_WHITE,
                                              .stride = stride,
                                              .aligned = split != SCENE_TRAIN ? 16 : 0,
                                              .progress = progress};
    ok(render_evaluate(&request, &evaluation));
    report_progress_end(&progress);
    return evaluation;
}

/* Returns the PSNR of the turned view, rendered at its pose in the scene. */
static double psnr_at_scene_pose(vkn_renderer *renderer, vkn_scene *scene)
{
    struct vkn_camera camera = {.size = sizeof camera};
    struct vkn_picture_params params = {.size = sizeof params, .background = VKN_BACKGROUND_WHITE};
    struct vkn_picture *picture, *photograph;
    ok(vkn_scene_camera(scene, VKN_SPLIT_TRAIN, TURNED, &camera));
    ok(vkn_render(renderer, &camera, &params, &picture));
    ok(vkn_scene_image(scene, VKN_SPLIT_TRAIN, TURNED, VKN_BACKGROUND_WHITE, &photograph));
    double psnr = vkn_psnr(picture->color, photograph->color, photograph->used, picture->width,
                           picture->height);
    vkn_picture_free(&picture);
    vkn_picture_free(&photograph);
    return psnr;
}

/* The picture of the turned view fits its photograph at the refined pose, in evaluations of the
 * training and of its checkpoint alike. */
static void check_pictures(const struct step_tests *tests, vkn_trainer *trainer, vkn_scene *scene)
{
    char *checkpoint = temporary_path(tests->folder, "recovered");
    vkn_renderer *training, *stored;
    ok(vkn_trainer_save(trainer, checkpoint));
    ok(vkn_renderer_of_trainer(trainer, &training));
    ok(vkn_renderer_open(tests->context, checkpoint, VKN_PRECISION_AUTO, &stored));
    struct vkn_evaluation *a = evaluate(training, scene, SCENE_TRAIN, TURNED);
    struct vkn_evaluation *b = evaluate(stored, scene, SCENE_TRAIN, TURNED);
    double before = psnr_at_scene_pose(training, scene), refined = a->views[1]->psnr;
    print_message("PSNR of the turned view: %.2f dB, at the scene's pose %.2f dB\n", refined,
                  before);
    assert_true(refined > before + 2);
    for (size_t i = 0; i < a->view_count; i++)
        assert_true(a->views[i]->psnr == b->views[i]->psnr);
    vkn_evaluation_free(&a);
    vkn_evaluation_free(&b);
    vkn_renderer_destroy(&training);
    vkn_renderer_destroy(&stored);
}

static void assert_same_camera(const struct scene_camera *a, const struct scene_camera *b)
{
    assert_true(scene_same_lens(a, b));
    for (size_t i = 0; i < 12; i++)
        assert_true(a->pose[i] == b->pose[i]);
}

/* Test views have the refined lens of the training views, at their poses; test view OTHER, which
 * had another lens than the training views, has its own. */
static void check_test_views(vkn_trainer *trainer, const vkn_scene *scene,
                             const struct scene_camera *refined)
{
    const struct scene_split *given = &scene->splits[SCENE_TEST];
    struct scene_camera *cameras;
    vkn_renderer *renderer;
    ok(vkn_renderer_of_trainer(trainer, &renderer));
    ok(render_split_cameras(renderer, scene, SCENE_TEST, &cameras));
    assert_int_equal(given->camera_count, 12);
    for (size_t i = 0; i < given->camera_count; i++) {
        struct scene_camera expected = i == OTHER ? given->cameras[i] : *refined;
        memcpy(expected.pose, given->cameras[i].pose, sizeof expected.pose);
        assert_same_camera(&cameras[i], &expected);
    }
    free(cameras);
    vkn_renderer_destroy(&renderer);
}

static void refine(const struct step_tests *tests, vkn_scene *scene, enum vkn_refinement what,
                   struct step_camera *cameras)
{
    struct vkn_config config = bundled_config();
    vkn_trainer *trainer;
    config.scene.refine = what;
    if (what == VKN_REFINEMENT_LENSES) { /* a lens has the rays of all views */
        config.steps = STEPS / 2;
        config.refine.initial_rate = 0.03F;
        config.refine.start = 0.25F;
    }
    const struct vkn_train_run run = {.until_step = config.steps};
    ok(vkn_trainer_create(tests->context, scene, &config, &trainer));
    ok(vkn_trainer_run(trainer, &run));
    ok(step_read_cameras(&trainer->step, &scene->splits[SCENE_TRAIN], cameras));
    if (what == VKN_REFINEMENT_POSES)
        check_pictures(tests, trainer, scene);
    else
        check_test_views(trainer, scene, &cameras[0].camera);
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
    refine(*state, scene, VKN_REFINEMENT_POSES, cameras);
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

/* The principal point of all cameras comes back across the image, where cameras on a circle see the
 * same object. Nothing in this scene fixes it along the circle's axis. */
static void test_lens_recovery(void **state)
{
    const double change[SCENE_LENS] = {[2] = 0.015};
    vkn_scene *exact = open_bundled(), *scene = open_bundled();
    const struct scene_split *views = &exact->splits[SCENE_TRAIN];
    struct step_camera *cameras = base_alloc(views->camera_count, sizeof *cameras);
    for (size_t i = 0; i < views->camera_count; i++)
        scene_change_lens(change, &scene->splits[SCENE_TRAIN].cameras[i]);
    for (size_t i = 0; i < scene->splits[SCENE_TEST].camera_count; i++)
        if (i != OTHER)
            scene_change_lens(change, &scene->splits[SCENE_TEST].cameras[i]);
    double before = scene->splits[SCENE_TRAIN].cameras[0].center_x - views->cameras[0].center_x;
    refine(*state, scene, VKN_REFINEMENT_LENSES, cameras);
    const struct scene_camera *refined = &cameras[0].camera;
    double after = refined->center_x - views->cameras[0].center_x;
    print_message("%.3f of %.3f pixels, focal length %.4f\n", after, before,
                  refined->focal_x / views->cameras[0].focal_x);
    assert_true(before > 1.2 && fabs(after) < 0.25);
    assert_true(refined->focal_x == refined->focal_y);
    for (size_t i = 0; i < views->camera_count; i++) {
        assert_true(cameras[i].degrees == 0 && cameras[i].distance == 0);
        assert_true(cameras[i].camera.center_x == refined->center_x);
        assert_true(cameras[i].camera.k1 == refined->k1);
    }
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
    config.scene.refine = VKN_REFINEMENT_ALL;
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
    tiny.trainer->step.setup.constants.camera_count--; /* as if the scene had a view less */
    assert_int_equal(vkn_trainer_resume(tiny.trainer, with_map), VKN_BAD_INPUT);
    assert_error("with_map: state: refined cameras of other views than the scene's");
    tiny_destroy(&tiny);
    tiny = tiny_create(tests->context, tests->folder, &plain);
    assert_int_equal(vkn_trainer_resume(tiny.trainer, refined), VKN_BAD_INPUT);
    assert_error("scene.refine: trained with all: resume with all too");
    ok(vkn_trainer_init(tiny.trainer, refined)); /* takes over the field alone */
    tiny_destroy(&tiny);
    free(begun);
    free(refined);
    free(with_map);
}

/* ---- pictures of training views -------------------------------------------------------------- */

/* Turns and moves the views of a training far. */
static void move_views(const struct tiny *tiny)
{
    const struct step *step = &tiny->trainer->step;
    uint64_t first = 4ull * step->setup.constants.first_view_word;
    for (uint32_t v = 0; v < 3; v++) {
        const float pose[6] = {0.1F, -0.2F, 0.05F * (float)v, 0.02F, 0.03F * (float)v, -0.04F};
        ok(gpu_upload(step->device, &step->buffers.at[BIND_STATE],
                      first + v * sizeof(struct View) + offsetof(struct View, turn), pose,
                      sizeof pose));
    }
}

/* What depends on the cameras of training views. */
struct products {
    struct scene_camera_path views, orbit, between;
    struct scene_camera *maps;
    struct vkn_camera camera;
    struct vkn_evaluation *evaluation;
    struct render_mesh cloud;
};

static struct products make_products(vkn_renderer *renderer, vkn_scene *scene)
{
    const struct vkn_render_params split = {.split = VKN_SPLIT_TRAIN}, orbit = {.orbit = 4},
                                   between = {.interpolate = 4};
    const struct render_points_params points = {.count = 50, .seed = 1};
    struct products made = {.camera.size = sizeof made.camera};
    struct visibility_maps maps;
    ok(render_views(renderer, scene, &split, &made.views));
    ok(render_views(renderer, scene, &orbit, &made.orbit));
    ok(render_views(renderer, scene, &between, &made.between));
    ok(visibility_maps_create(renderer, scene, NULL, NULL, &maps));
    made.maps = maps.map_cameras;
    maps.map_cameras = NULL;
    visibility_maps_destroy(&maps);
    ok(vkn_renderer_camera(renderer, scene, VKN_SPLIT_TRAIN, 1, &made.camera));
    made.evaluation = evaluate(renderer, scene, SCENE_TRAIN, 1);
    ok(render_points(renderer, scene, &points, NULL, NULL, &made.cloud));
    return made;
}

static void free_products(struct products *made)
{
    free(made->views.cameras);
    free(made->orbit.cameras);
    free(made->between.cameras);
    free(made->maps);
    vkn_evaluation_free(&made->evaluation);
    render_mesh_free(&made->cloud);
}

static void check_products(const struct products *made, const struct products *expected)
{
    const struct render_mesh *cloud = &made->cloud;
    for (size_t v = 0; v < 3; v++) {
        const size_t size = sizeof made->maps->pose;
        assert_memory_equal(made->views.cameras[v].pose, expected->views.cameras[v].pose, size);
        assert_memory_equal(made->maps[v].pose, expected->views.cameras[v].pose, size);
        assert_true(made->evaluation->views[v]->psnr == expected->evaluation->views[v]->psnr);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_same_camera(&made->orbit.cameras[i], &expected->orbit.cameras[i]);
        assert_same_camera(&made->between.cameras[i], &expected->between.cameras[i]);
    }
    assert_memory_equal(made->camera.pose, expected->camera.pose, sizeof made->camera.pose);
    assert_int_equal(cloud->vertex_count, 50);
    assert_memory_equal(cloud->vertices, expected->cloud.vertices, 50 * sizeof *cloud->vertices);
}

static vkn_renderer *open_renderer(const struct step_tests *tests, const char *checkpoint)
{
    vkn_renderer *renderer;
    ok(vkn_renderer_open(tests->context, checkpoint, VKN_PRECISION_AUTO, &renderer));
    return renderer;
}

/* A scene whose training views were at the refined poses, and a field whose training did not
 * refine, show the same. The scene itself stays as it is. */
static void check_shown(const struct step_tests *tests, const struct vkn_config *config)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    struct step_camera cameras[3];
    vkn_scene *moved;
    vkn_renderer *renderers[3];
    tiny_run(&tiny, 64);
    move_views(&tiny);
    char *checkpoint = tiny_save(tests, &tiny, "moved");
    ok(vkn_scene_open(tests->folder->path, config, &moved));
    struct scene_camera *views = moved->splits[SCENE_TRAIN].cameras;
    ok(step_read_cameras(&tiny.trainer->step, &moved->splits[SCENE_TRAIN], cameras));
    for (size_t v = 0; v < 3; v++) {
        assert_memory_equal(views[v].pose, tiny.scene->splits[SCENE_TRAIN].cameras[v].pose, 48);
        assert_true(cameras[v].degrees > 10);
        views[v] = cameras[v].camera;
    }
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderers[0]));
    renderers[1] = open_renderer(tests, checkpoint);
    renderers[2] = open_renderer(tests, checkpoint);
    renderers[2]->setup.config.scene.refine = VKN_REFINEMENT_OFF;
    struct products expected = make_products(renderers[2], moved);
    for (size_t i = 0; i < 2; i++) {
        struct products made = make_products(renderers[i], tiny.scene);
        check_products(&made, &expected);
        free_products(&made);
    }
    free_products(&expected);
    for (size_t i = 0; i < 3; i++)
        vkn_renderer_destroy(&renderers[i]);
    vkn_scene_close(&moved);
    free(checkpoint);
    tiny_destroy(&tiny);
}

static void test_shown(void **state)
{
    struct vkn_config config = tiny_refining();
    check_shown(*state, &config);
    config.batch.by_error = 0.5F;
    check_shown(*state, &config);
}

/* Moves the views, and changes their lens, which all share. */
static void change_lenses(const struct tiny *tiny, const float change[SCENE_LENS])
{
    const struct step *step = &tiny->trainer->step;
    uint64_t first = 4ull * step->setup.constants.first_view_word + offsetof(struct View, lens);
    move_views(tiny);
    for (uint32_t v = 0; v < 3; v++)
        ok(gpu_upload(step->device, &step->buffers.at[BIND_STATE], first + v * sizeof(struct View),
                      change, SCENE_LENS * sizeof *change));
}

/* What depends on the cameras of test views: two as given by `expected`. */
static void check_tests_shown(vkn_renderer *renderer, vkn_scene *scene,
                              const struct scene_camera *expected,
                              const struct vkn_evaluation *evaluation)
{
    const struct vkn_render_params params = {.split = VKN_SPLIT_TEST};
    struct scene_camera_path path;
    ok(render_views(renderer, scene, &params, &path));
    assert_int_equal(path.count, 2);
    struct vkn_evaluation *made = evaluate(renderer, scene, SCENE_TEST, 1);
    for (size_t i = 0; i < 2; i++) {
        struct vkn_camera camera = {.size = sizeof camera};
        ok(vkn_renderer_camera(renderer, scene, VKN_SPLIT_TEST, i, &camera));
        assert_true(camera.center_x == expected[i].center_x && camera.k1 == expected[i].k1);
        assert_same_camera(&path.cameras[i], &expected[i]);
        assert_true(made->views[i]->psnr == evaluation->views[i]->psnr);
        assert_true(made->views[i]->psnr_aligned == evaluation->views[i]->psnr_aligned);
    }
    vkn_evaluation_free(&made);
    free(path.cameras);
}

/* Test views are shown, evaluated and aligned with the refined lens of the training views that have
 * the same lens in the scene, by a training and by its checkpoint; a test view with another lens
 * keeps it. Trainings that refine poses alone change no test view. */
static void test_test_views(void **state)
{
    const struct step_tests *tests = *state;
    const float change[SCENE_LENS] = {0.1F, 0.1F, 0.02F, -0.05F, 0.03F};
    double by[SCENE_LENS];
    struct vkn_config config = tiny_refining();
    vkn_renderer *renderers[3];
    vkn_scene *changed;
    char *file = temporary_text(
        tests->folder, "transforms_test.json",
        "{\"camera_angle_x\": 0.6, \"frames\": [" FRAME(
            "train/x", "0.25", "1,0,0,0.5", "0,1,0,0",
            "0,0,1,4") ", {\"fl_x\": 20, \"fl_y\": 20, \"file_path\": \"train/y\", \"time\": 0.5, "
                       "\"transform_matrix\": [[1,0,0,0.25], [0,1,0,0], [0,0,1,4], [0,0,0,1]]}]}");
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 64);
    change_lenses(&tiny, change);
    char *checkpoint = tiny_save(tests, &tiny, "changed");
    ok(vkn_scene_open(tests->folder->path, &config, &changed));
    struct scene_camera *views = changed->splits[SCENE_TEST].cameras;
    struct scene_camera *given = tiny.scene->splits[SCENE_TEST].cameras;
    for (int p = 0; p < SCENE_LENS; p++)
        by[p] = (double)change[p];
    scene_change_lens(by, &views[0]);
    assert_true(views[0].center_x > given[0].center_x + 0.3F && views[1].k1 == 0);
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderers[0]));
    renderers[1] = open_renderer(tests, checkpoint);
    renderers[2] = open_renderer(tests, checkpoint);
    renderers[2]->setup.config.scene.refine = VKN_REFINEMENT_OFF;
    struct vkn_evaluation *evaluation = evaluate(renderers[2], changed, SCENE_TEST, 1);
    for (size_t i = 0; i < 2; i++)
        check_tests_shown(renderers[i], tiny.scene, views, evaluation);
    vkn_evaluation_free(&evaluation);
    renderers[1]->setup.config.scene.refine = VKN_REFINEMENT_POSES;
    evaluation = evaluate(renderers[2], tiny.scene, SCENE_TEST, 1);
    check_tests_shown(renderers[1], tiny.scene, given, evaluation);
    vkn_evaluation_free(&evaluation);
    for (size_t i = 0; i < 3; i++)
        vkn_renderer_destroy(&renderers[i]);
    vkn_scene_close(&changed);
    free(checkpoint);
    tiny_destroy(&tiny);
    assert_int_equal(unlink(file), 0);
}

static void check_refused(vkn_renderer *renderer, vkn_scene *scene, const char *why)
{
    struct scene_camera *cameras;
    struct vkn_camera camera = {.size = sizeof camera};
    assert_int_equal(render_split_cameras(renderer, scene, SCENE_TRAIN, &cameras), VKN_BAD_INPUT);
    assert_null(cameras);
    assert_error(why);
    assert_int_equal(vkn_renderer_camera(renderer, scene, VKN_SPLIT_TRAIN, 0, &camera),
                     VKN_BAD_INPUT);
    assert_error(why);
}

/* Scenes with other views, and poses that are not finite, are refused, also where an error map lies
 * between the state and the views. */
static void check_other_views(const struct step_tests *tests, float by_error)
{
    struct vkn_config config = tiny_refining();
    config.batch.by_error = by_error;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct step *step = &tiny.trainer->step;
    vkn_renderer *training;
    char *sound = tiny_save(tests, &tiny, "sound");
    ok(vkn_renderer_of_trainer(tiny.trainer, &training));
    vkn_renderer *stored = open_renderer(tests, sound);
    tiny.scene->splits[SCENE_TRAIN].camera_count = 2;
    check_refused(training, tiny.scene, "has 2 training views, the training has 3");
    check_refused(stored, tiny.scene,
                  "sound: state: refined cameras of other views than the scene's");
    tiny.scene->splits[SCENE_TRAIN].camera_count = 3;
    vkn_renderer_destroy(&stored);
    const float nan = NAN;
    ok(gpu_upload(step->device, &step->buffers.at[BIND_STATE],
                  4ull * (step->setup.constants.first_view_word + VIEW_WORDS + VIEW_SHIFT), &nan,
                  sizeof nan));
    char *damaged = tiny_save(tests, &tiny, "damaged");
    stored = open_renderer(tests, damaged);
    check_refused(stored, tiny.scene, "damaged: state: view 1: its camera is not finite");
    assert_int_equal(vkn_trainer_resume(tiny.trainer, damaged), VKN_BAD_INPUT);
    assert_error("damaged: state: view 1: its camera is not finite");
    vkn_renderer_destroy(&stored);
    vkn_renderer_destroy(&training);
    free(sound);
    free(damaged);
    tiny_destroy(&tiny);
}

static void test_other_views(void **state)
{
    check_other_views(*state, 0);
    check_other_views(*state, 0.5F);
}

/* A training may refine more than before, but must go on refining what has changed. */
static void test_more(void **state)
{
    static const struct {
        enum vkn_refinement then, now;
        const char *error; /* NULL: allowed */
    } cases[] = {
        {VKN_REFINEMENT_POSES, VKN_REFINEMENT_ALL, NULL},
        {VKN_REFINEMENT_LENSES, VKN_REFINEMENT_ALL, NULL},
        {VKN_REFINEMENT_POSES, VKN_REFINEMENT_LENSES, "trained with poses: resume with poses too"},
        {VKN_REFINEMENT_LENSES, VKN_REFINEMENT_POSES,
         "trained with lenses: resume with lenses too"},
        {VKN_REFINEMENT_ALL, VKN_REFINEMENT_LENSES, "trained with all: resume with all too"},
        {VKN_REFINEMENT_LENSES, VKN_REFINEMENT_OFF, "trained with lenses: resume with lenses too"},
    };
    const struct step_tests *tests = *state;
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        struct vkn_config config = tiny_refining();
        config.scene.refine = cases[i].then;
        char *begun = tiny_train(tests, &config, NULL, 20, "begun");
        config.scene.refine = cases[i].now;
        struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
        vkn_status status = vkn_trainer_resume(tiny.trainer, begun);
        assert_int_equal(status, cases[i].error ? VKN_BAD_INPUT : VKN_OK);
        if (cases[i].error)
            assert_error(cases[i].error);
        else
            tiny_run(&tiny, 40);
        tiny_destroy(&tiny);
        free(begun);
    }
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

/* Settings are shares of the mean of the training images' longer sides; the device has pixels. */
static void check_pixels(const struct tiny *tiny)
{
    const struct scene_split *train = &tiny->scene->splits[SCENE_TRAIN];
    const struct Config *constants = &tiny->trainer->step.setup.constants;
    const struct vkn_config *config = &tiny->trainer->config;
    double size = 0;
    for (size_t i = 0; i < train->camera_count; i++)
        size +=
            fmax(train->cameras[i].width, train->cameras[i].height) / (double)train->camera_count;
    assert_float_equal(constants->refine_limit / config->refine.limit, size, 1e-4);
    assert_float_equal(constants->refine_rate / config->refine.initial_rate, size, 1e-4);
    assert_float_equal(constants->refine_final_rate / config->refine.final_rate, size, 1e-4);
}

/* The file has the refined poses in the dataset's units, and the lenses in pixels of the files. It
 * disappears with the next training that
 * does not refine. Views at the limit are named. */
static void test_file(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_refining();
    struct step_camera cameras[3];
    char warning[512] = "";
    cJSON *json = NULL;
    config.refine.limit = 1e-4F;
    config.scene.downscale = 2;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    check_pixels(&tiny);
    tiny_run(&tiny, 128);
    ok(step_read_cameras(&tiny.trainer->step, &tiny.scene->splits[SCENE_TRAIN], cameras));
    vkn_log_to(keep_warning, warning);
    ok(run_write_views(tests->folder->path, &tiny.trainer->step, tiny.scene));
    vkn_log_to(NULL, NULL);
    assert_non_null(strstr(warning, "3 of 3 views have moved by refine.limit and may"));
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
        check_close(number_of(view, "distance"), cameras[v].distance / 0.33, 1e-6, 1, "view", v);
        const struct scene_camera *camera = &cameras[v].camera;
        assert_true(number_of(view, "fl_x") == 2 * (double)camera->focal_x);
        assert_true(number_of(view, "fl_y") == 2 * (double)camera->focal_y);
        assert_true(number_of(view, "cx") == 2 * (double)camera->center_x);
        assert_true(number_of(view, "cy") == 2 * (double)camera->center_y);
        assert_true(number_of(view, "k1") == camera->k1);
        assert_true(number_of(view, "p2") == camera->p2 && number_of(view, "sy1") == 0);
        for (int i = 0; i < 12; i++) {
            double value = cJSON_GetArrayItem(cJSON_GetArrayItem(rows, i / 4), i % 4)->valuedouble;
            double expected = cameras[v].camera.pose[i];
            if (i % 4 == 3)
                expected = (expected - 0.5) / 0.33;
            check_close(value, expected, 1e-6, 4, "element", i);
        }
    }
    cJSON_Delete(json);
    tiny_destroy(&tiny);
    config = tiny_config(true);
    tiny = tiny_create(tests->context, tests->folder, &config);
    ok(run_write_views(tests->folder->path, &tiny.trainer->step, tiny.scene));
    assert_false(base_file_exists(temporary_path(tests->folder, "cameras.json")));
    tiny_destroy(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recovery), cmocka_unit_test(test_lens_recovery),
        cmocka_unit_test(test_resume),   cmocka_unit_test(test_start),
        cmocka_unit_test(test_more),     cmocka_unit_test(test_other_settings),
        cmocka_unit_test(test_shown),    cmocka_unit_test(test_other_views),
        cmocka_unit_test(test_file),     cmocka_unit_test(test_test_views),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
