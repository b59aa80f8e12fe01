/* Tests misuse of the public API (NULL, wrong structure sizes, destruction twice or in any order,
 * two threads), and its cameras, pictures, scenes in memory, messages and configurations. */
#include "step_fixture.h"

#include <pthread.h>

#include <vknerf/vknerf.h>

/* ---- NULL ------------------------------------------------------------------------------------ */

/* The call is refused, and the message contains `part`. */
#define refuses(call, part)                              \
    do {                                                 \
        base_fail(VKN_OK, "%s", "");                     \
        assert_int_equal((int)(call), VKN_BAD_INPUT);    \
        if (!strstr(vkn_last_error(), part))             \
            fail_msg("%s: %s", #call, vkn_last_error()); \
    } while (0)
#define needs(call, name) refuses(call, ": `" name "` is NULL")

static vkn_status nothing_to_do(void *context, vkn_trainer *trainer, bool *save)
{
    (void)context, (void)trainer;
    *save = false;
    return VKN_OK;
}

static void test_null(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(true);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    vkn_trainer *trainer = tiny.trainer, *no_trainer = NULL;
    vkn_renderer *renderer = NULL, *no_renderer = NULL;
    vkn_scene *no_scene = NULL;
    struct vkn_picture *picture = NULL;
    struct vkn_camera camera = {0};
    const double zero[3] = {0};
    double number = 0;
    char *text = NULL;
    ok(vkn_renderer_of_trainer(trainer, &renderer));
    ok(vkn_scene_camera(tiny.scene, VKN_SPLIT_TRAIN, 0, &camera));

    needs(vkn_context_create(NULL, NULL), "context");
    needs(vkn_info_json(NULL, NULL), "json");
    needs(vkn_config_create(NULL), "config");
    needs(vkn_config_copy(NULL, NULL), "config");
    needs(vkn_config_set(NULL, NULL, "steps", "1"), "config");
    needs(vkn_config_set(&config, NULL, NULL, "1"), "key");
    needs(vkn_config_set(&config, NULL, "steps", NULL), "value");
    needs(vkn_config_set_number(NULL, "steps", 1), "config");
    needs(vkn_config_get(NULL, NULL, &text), "key");
    needs(vkn_config_get(NULL, "steps", NULL), "value");
    needs(vkn_config_read_json(&config, NULL), "file");
    needs(vkn_config_read_json(NULL, "file"), "config");
    needs(vkn_config_setting(0, NULL), "given");
    needs(vkn_config_parse_json(&config, NULL, NULL, false), "json");
    needs(vkn_config_parse_json(NULL, NULL, "{}", false), "config");
    needs(vkn_scene_open(NULL, NULL, &no_scene), "path");
    needs(vkn_scene_open("scene", NULL, NULL), "scene");
    needs(vkn_scene_camera(NULL, VKN_SPLIT_TEST, 0, &camera), "scene");
    needs(vkn_scene_camera(tiny.scene, VKN_SPLIT_TRAIN, 0, NULL), "camera");
    needs(vkn_scene_image(NULL, VKN_SPLIT_TEST, 0, VKN_BACKGROUND_WHITE, &picture), "scene");
    needs(vkn_scene_image(tiny.scene, VKN_SPLIT_TRAIN, 0, VKN_BACKGROUND_WHITE, NULL), "picture");
    needs(vkn_scene_check_path(NULL, "file"), "scene");
    needs(vkn_scene_check_path(tiny.scene, NULL), "file");
    needs(vkn_scene_read_path(NULL, "file", NULL, &(struct vkn_camera_path){0}), "scene");
    needs(vkn_scene_read_path(tiny.scene, NULL, NULL, &(struct vkn_camera_path){0}), "file");
    needs(vkn_scene_read_path(tiny.scene, "file", NULL, NULL), "path");
    needs(vkn_scene_info_json(NULL, NULL), "json");
    refuses(vkn_scene_info_json(NULL, &text), "no scene is given");
    struct vkn_prepare_result prepared = {0};
    needs(vkn_prepare(NULL, NULL), "result");
    refuses(vkn_prepare(NULL, &prepared), "no photographs are given");
    needs(vkn_camera_look_at(NULL, zero, zero, zero), "camera");
    needs(vkn_camera_look_at(&camera, NULL, zero, zero), "eye");
    needs(vkn_picture_write(NULL, VKN_MAP_COLOR, "file"), "picture");
    needs(vkn_trainer_create(NULL, tiny.scene, NULL, &no_trainer), "context");
    needs(vkn_trainer_create(tests->context, NULL, NULL, &no_trainer), "scene");
    needs(vkn_trainer_create(tests->context, tiny.scene, NULL, NULL), "trainer");
    needs(vkn_trainer_run(NULL, NULL), "trainer");
    needs(vkn_trainer_save(trainer, NULL), "checkpoint");
    needs(vkn_trainer_save(NULL, "file"), "trainer");
    needs(vkn_trainer_resume(NULL, "file"), "trainer");
    needs(vkn_trainer_resume(trainer, NULL), "checkpoint");
    needs(vkn_trainer_init(NULL, "file"), "trainer");
    needs(vkn_trainer_images(trainer, NULL), "images");
    needs(vkn_trainer_images(NULL, NULL), "trainer");
    needs(vkn_trainer_communication(NULL, NULL), "trainer");
    needs(vkn_trainer_communication(trainer, NULL), "communication");
    needs(vkn_trainer_start_profile(NULL), "trainer");
    needs(vkn_trainer_profile(NULL, NULL), "trainer");
    needs(vkn_trainer_profile(trainer, NULL), "profile");
    needs(vkn_renderer_of_trainer(NULL, &no_renderer), "trainer");
    needs(vkn_renderer_of_trainer(trainer, NULL), "renderer");
    needs(vkn_renderer_open(NULL, "file", VKN_PRECISION_AUTO, &no_renderer), "context");
    needs(vkn_renderer_open(tests->context, NULL, VKN_PRECISION_AUTO, &no_renderer), "checkpoint");
    needs(vkn_renderer_open(tests->context, "file", VKN_PRECISION_AUTO, NULL), "renderer");
    needs(vkn_renderer_enable_normals(NULL), "renderer");
    needs(vkn_renderer_set_time(NULL, 0.5), "renderer");
    needs(vkn_renderer_camera(NULL, tiny.scene, VKN_SPLIT_TRAIN, 0, &camera), "renderer");
    needs(vkn_renderer_camera(renderer, NULL, VKN_SPLIT_TRAIN, 0, &camera), "scene");
    needs(vkn_renderer_camera(renderer, tiny.scene, VKN_SPLIT_TRAIN, 0, NULL), "camera");
    needs(vkn_render(NULL, &camera, NULL, &picture), "renderer");
    needs(vkn_render(renderer, NULL, NULL, &picture), "camera");
    needs(vkn_render(renderer, &camera, NULL, NULL), "picture");
    float value = 0;
    needs(vkn_trainer_tensor(NULL, 0, &(struct vkn_tensor){0}), "trainer");
    needs(vkn_trainer_tensor(trainer, 0, NULL), "tensor");
    needs(vkn_trainer_read_tensor(NULL, "params", &value, 1), "trainer");
    needs(vkn_trainer_read_tensor(trainer, NULL, &value, 1), "name");
    needs(vkn_trainer_read_tensor(trainer, "params", NULL, 1), "values");
    needs(vkn_trainer_write_tensor(NULL, "params", &value, 1), "trainer");
    needs(vkn_trainer_write_tensor(trainer, NULL, &value, 1), "name");
    needs(vkn_trainer_write_tensor(trainer, "params", NULL, 1), "values");
    needs(vkn_trainer_occupancy(NULL, &(struct vkn_occupancy){0}), "trainer");
    needs(vkn_trainer_occupancy(trainer, NULL), "grid");
    needs(vkn_trainer_set_occupancy(NULL, &(struct vkn_occupancy){0}), "trainer");
    needs(vkn_trainer_set_occupancy(trainer, NULL), "grid");
    assert_int_equal(vkn_trainer_tensor_count(NULL), 0);
    needs(vkn_scene_orbit_camera(NULL, 0, 1, &camera), "scene");
    needs(vkn_scene_orbit_camera(tiny.scene, 0, 1, NULL), "camera");
    struct vkn_export_result written = {0};
    needs(vkn_renderer_export(NULL, tiny.scene, NULL, &written), "renderer");
    needs(vkn_renderer_export(renderer, NULL, NULL, &written), "scene");
    needs(vkn_renderer_export(renderer, tiny.scene, NULL, NULL), "result");
    needs(vkn_renderer_query(NULL, &(struct vkn_points){0}), "renderer");
    needs(vkn_renderer_query(renderer, NULL), "points");
    needs(vkn_render_rays(NULL, &(struct vkn_rays){0}, NULL), "renderer");
    needs(vkn_render_rays(renderer, NULL, NULL), "rays");
    needs(vkn_ssim(NULL, NULL, NULL, 12, 12, &number), "a");
    needs(vkn_run_train(NULL, NULL), "result");
    needs(vkn_run_config(NULL, &config), "run");
    needs(vkn_run_config("run", NULL), "config");
    needs(vkn_run_eval(NULL, NULL), "evaluation");
    needs(vkn_run_render(NULL, NULL), "result");
    needs(vkn_run_export(NULL, NULL), "result");
    needs(vkn_run_report(NULL, NULL), "file");
    refuses(vkn_run_report(NULL, &text), "no run is given");
    needs(vkn_run_inspect(NULL, NULL), "folder");
    needs(vkn_find_batch(NULL, NULL), "result");
    needs(vkn_bench(NULL, NULL), "json");

    struct vkn_evaluation *evaluation = NULL;
    struct vkn_train_result *result = NULL;
    struct vkn_batch_search *search = NULL;
    struct vkn_export_result exported = {0};
    const struct vkn_export_params mesh = {.mesh = "mesh.ply"};
    refuses(vkn_run_eval(NULL, &evaluation), "no run is given");
    refuses(vkn_run_export(&mesh, &exported), "no run is given");
    refuses(vkn_run_train(NULL, &result), "no scene is given");
    vkn_train_result_free(&result);
    struct vkn_train_callbacks half = {.size = sizeof half, .between_steps = nothing_to_do};
    const struct vkn_train_params params = {.size = sizeof params, .callbacks = &half};
    needs(vkn_run_train(&params, &result), "callbacks->due");
    vkn_train_result_free(&result);
    refuses(vkn_find_batch(NULL, &search), "no scene is given");
    vkn_batch_search_free(&search);

    /* Getters return zero, NULL or an empty text for NULL objects. */
    assert_int_equal(vkn_scene_view_count(NULL, VKN_SPLIT_TRAIN), 0);
    assert_null(vkn_scene_image_file(NULL, VKN_SPLIT_TRAIN, 0));
    assert_string_equal(vkn_context_device_name(NULL), "");
    assert_string_equal(vkn_context_driver(NULL), "");
    assert_null(vkn_trainer_config(NULL));
    assert_null(vkn_trainer_backend(NULL));
    assert_false(vkn_trainer_finished(NULL));
    assert_true(vkn_trainer_step(NULL) == 0 && vkn_trainer_seconds(NULL) == 0);
    assert_int_equal(vkn_trainer_memory(NULL, NULL, 4) + vkn_trainer_pass_times(NULL, NULL, 4), 0);
    assert_null(vkn_renderer_config(NULL));
    assert_null(vkn_renderer_scene_path(NULL));
    assert_int_equal(vkn_renderer_step(NULL), 0);
    assert_true(isnan(vkn_psnr(NULL, NULL, NULL, 4, 4)));
    assert_null(vkn_evaluation_json(NULL));
    assert_null(vkn_train_result_json(NULL));
    assert_null(vkn_batch_search_json(NULL));
    assert_null(vkn_nearest_name(NULL, NULL, 0));
    assert_false(vkn_parse_count(NULL, NULL));
    vkn_clean_line(NULL);
    vkn_free(NULL);
    text = vkn_to_utf8(NULL);
    assert_string_equal(text, "");
    vkn_free(text);
    text = vkn_shell_word(NULL);
    assert_string_equal(text, "''");
    vkn_free(text);
    text = vkn_config_write_json(NULL);
    assert_non_null(text);
    vkn_free(text);
    text = vkn_export_json(NULL, NULL);
    assert_non_null(text);
    vkn_free(text);
    vkn_renderer_destroy(&renderer);
    tiny_destroy(&tiny);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* A structure of a later version of the API, which has one member more. */
struct later_picture_params {
    struct vkn_picture_params known;
    uint64_t later;
};

static void test_sizes(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(true);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    vkn_renderer *renderer = NULL;
    struct vkn_picture *picture = NULL;
    struct vkn_camera camera = {0};
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderer));
    ok(vkn_scene_camera(tiny.scene, VKN_SPLIT_TRAIN, 0, &camera));
    struct later_picture_params params = {.known.size = sizeof params};
    ok(vkn_render(renderer, &camera, &params.known, &picture));
    vkn_picture_free(&picture);
    params.later = 1;
    refuses(vkn_render(renderer, &camera, &params.known, &picture), "does not know");
    assert_null(picture);
    params.known.size = sizeof params.known.size;
    refuses(vkn_render(renderer, &camera, &params.known, &picture), "must be 0 or its sizeof");

    /* A result is filled up to its size; members that the library does not know become 0. */
    struct {
        struct vkn_images known;
        uint64_t later[2];
    } images = {.known.size = sizeof images.known + sizeof images.later[0], .later = {7, 7}};
    ok(vkn_trainer_images(tiny.trainer, &images.known));
    assert_true(images.known.count == 3 && images.later[0] == 0 && images.later[1] == 7);
    memset(&images, 0xcd, sizeof images); /* an uninitialised structure */
    refuses(vkn_trainer_images(tiny.trainer, &images.known), "must be 0 or its sizeof");
    vkn_renderer_destroy(&renderer);
    tiny_destroy(&tiny);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Counts of progress that a context reported. */
struct counted {
    pthread_t thread;
    size_t images, pipelines;
    size_t calls, refused; /* calls of the callback, and by the callback */
    bool wrong;
};

static void count_progress(void *context, const char *what, size_t done, size_t total)
{
    struct counted *counted = context;
    counted->calls++;
    if (!pthread_equal(counted->thread, pthread_self()) || done > total || total == 0)
        counted->wrong = true;
    if (strcmp(what, "decoding images") == 0 && done == total)
        counted->images = total;
    else if (strcmp(what, "compiling pipelines") == 0 && done == total)
        counted->pipelines += total;
    if (vkn_config_create(NULL) == VKN_BAD_INPUT &&
        strstr(vkn_last_error(), "called by the callback of progress"))
        counted->refused++;
}

/* Objects may be destroyed in any order, and twice: the last user of a shared object frees it. The
 * context reports the progress of all calls that use it. */
static void test_order(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(true);
    vkn_context *context = NULL;
    vkn_scene *scene = NULL;
    vkn_trainer *trainer = NULL;
    vkn_renderer *renderer = NULL, *opened = NULL;
    struct vkn_picture *trained = NULL, *read = NULL;
    struct vkn_camera camera = {0};
    char *checkpoint = base_path_join(tests->folder->path, "order.safetensors");
    struct counted counted = {.thread = pthread_self()};
    const struct vkn_context_params params = {
        .size = sizeof params, .progress = count_progress, .progress_context = &counted};
    ok(vkn_context_create(&params, &context));
    counted.pipelines = 0; /* of the self-test */
    ok(vkn_scene_open(tests->folder->path, &config, &scene));
    ok(vkn_scene_camera(scene, VKN_SPLIT_TRAIN, 1, &camera));
    ok(vkn_trainer_create(context, scene, &config, &trainer));
    assert_int_equal(counted.images, vkn_scene_view_count(scene, VKN_SPLIT_TRAIN));
    assert_true(counted.pipelines > 8);
    assert_int_equal(counted.refused, counted.calls);
    assert_false(counted.wrong);
    vkn_scene_close(&scene);
    vkn_scene_close(&scene);
    const struct vkn_train_run run = {.until_step = 8};
    ok(vkn_trainer_run(trainer, &run));
    ok(vkn_trainer_save(trainer, checkpoint));
    ok(vkn_renderer_of_trainer(trainer, &renderer));
    ok(vkn_renderer_open(context, checkpoint, VKN_PRECISION_AUTO, &opened));
    vkn_context_destroy(&context);
    vkn_context_destroy(&context);
    vkn_trainer_destroy(&trainer);
    vkn_trainer_destroy(&trainer);
    assert_true(!context && !scene && !trainer);
    ok(vkn_render(renderer, &camera, NULL, &trained));
    vkn_renderer_destroy(&renderer);
    vkn_renderer_destroy(&renderer);
    ok(vkn_render(opened, &camera, NULL, &read));
    vkn_renderer_destroy(&opened);
    size_t count = (size_t)3 * read->width * read->height;
    assert_memory_equal(trained->color, read->color, count * sizeof *read->color);
    vkn_picture_free(&trained);
    vkn_picture_free(&trained);
    vkn_picture_free(&read);
    /* Destroying NULL does nothing. */
    vkn_context_destroy(NULL);
    vkn_scene_close(NULL);
    vkn_trainer_destroy(NULL);
    vkn_renderer_destroy(NULL);
    vkn_picture_free(NULL);
    vkn_config_destroy(NULL);
    vkn_evaluation_free(NULL);
    vkn_train_result_free(NULL);
    vkn_batch_search_free(NULL);
    vkn_profile_free(NULL);
    free(checkpoint);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

#define CALL_SECONDS 0.02

/* Counts calls of `between_steps`, which fails at call number `last` (0: never). */
struct callbacks {
    vkn_trainer *trainer;
    uint64_t last_step, calls, last; /* 0: no call fails */
};

static double due_at_once(void *context)
{
    (void)context;
    return 0;
}

static vkn_status count_call(void *context)
{
    struct callbacks *callbacks = context;
    uint64_t step = vkn_trainer_step(callbacks->trainer);
    assert_int_equal(step, callbacks->calls++ > 0 ? callbacks->last_step + 1 : 0);
    callbacks->last_step = step;
    double seconds = vkn_trainer_seconds(callbacks->trainer), end = base_seconds() + CALL_SECONDS;
    while (base_seconds() < end) {
    }
    assert_true(vkn_trainer_seconds(callbacks->trainer) <= seconds &&
                vkn_trainer_seconds(callbacks->trainer) >= seconds);
    return callbacks->calls == callbacks->last ? base_fail(VKN_ERROR, "enough") : VKN_OK;
}

/* `between_steps` is called between all steps, its duration is not training time, and the trained
 * parameters do not depend on it; its failure ends the run. */
static void between_steps(const struct step_tests *tests, uint32_t ranks)
{
    struct vkn_config config = tiny_config(true);
    config.parallel.ranks_per_device = ranks;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    vkn_trainer *other = NULL;
    struct callbacks callbacks = {.last = 22};
    struct vkn_train_run run = {.size = sizeof run, .until_step = 20}, plain = run;
    char *content[2] = {0};
    size_t sizes[2] = {0};
    run.context = &callbacks;
    run.due = due_at_once;
    run.between_steps = count_call;
    ok(vkn_trainer_create(tests->context, tiny.scene, &config, &other));
    callbacks.trainer = tiny.trainer;
    double began = base_seconds();
    ok(vkn_trainer_run(tiny.trainer, &run));
    assert_int_equal(callbacks.calls, 20);
    assert_true(vkn_trainer_seconds(tiny.trainer) <= base_seconds() - began - 20 * CALL_SECONDS);
    ok(vkn_trainer_run(other, &plain));
    for (int i = 0; i < 2; i++) {
        char *checkpoint = base_path_join(tests->folder->path, "visited.safetensors");
        ok(vkn_trainer_save(i == 0 ? tiny.trainer : other, checkpoint));
        ok(base_file_read(checkpoint, (size_t)64 << 20, &content[i], &sizes[i]));
        free(checkpoint);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(content[0], content[1], sizes[0]);
    run.until_step = 40;
    assert_int_equal(vkn_trainer_run(tiny.trainer, &run), VKN_ERROR);
    assert_string_equal(vkn_last_error(), "enough");
    assert_int_equal(vkn_trainer_step(tiny.trainer), callbacks.last_step);
    free(content[0]);
    free(content[1]);
    vkn_trainer_destroy(&other);
    tiny_destroy(&tiny);
}

/* Tests one rank, and two ranks in synchronous data parallelism. */
static void test_between_steps(void **state)
{
    between_steps(*state, 1);
    between_steps(*state, 2);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
    pthread_t thread;
    const char *scene;
    vkn_status status;
    struct vkn_picture *picture;
    char error[256];
};

static vkn_status work(struct worker *worker)
{
    struct vkn_config config = tiny_config(true);
    const struct vkn_train_run run = {.until_step = 24};
    vkn_context *context = NULL;
    vkn_scene *scene = NULL;
    vkn_trainer *trainer = NULL;
    vkn_renderer *renderer = NULL;
    struct vkn_camera camera = {0};
    vkn_status status = vkn_context_create(NULL, &context);
    if (status == VKN_OK)
        status = vkn_scene_open(worker->scene, &config, &scene);
    if (status == VKN_OK)
        status = vkn_trainer_create(context, scene, &config, &trainer);
    if (status == VKN_OK)
        status = vkn_trainer_run(trainer, &run);
    if (status == VKN_OK)
        status = vkn_scene_camera(scene, VKN_SPLIT_DEFAULT, 0, &camera);
    if (status == VKN_OK)
        status = vkn_renderer_of_trainer(trainer, &renderer);
    if (status == VKN_OK)
        status = vkn_render(renderer, &camera, NULL, &worker->picture);
    vkn_renderer_destroy(&renderer);
    vkn_trainer_destroy(&trainer);
    vkn_scene_close(&scene);
    vkn_context_destroy(&context);
    return status;
}

static void *work_in_thread(void *context)
{
    struct worker *worker = context;
    worker->status = work(worker);
    snprintf(worker->error, sizeof worker->error, "%s", vkn_last_error());
    return NULL;
}

/* Two threads with contexts of their own render the same picture; errors are stored per thread. */
static void test_threads(void **state)
{
    const struct step_tests *tests = *state;
    struct worker workers[3] = {
        {.scene = tests->folder->path}, {.scene = tests->folder->path}, {.scene = "not/there"}};
    base_fail(VKN_OK, "%s", "mine");
    for (size_t i = 0; i < BASE_COUNT(workers); i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work_in_thread, &workers[i]), 0);
    for (size_t i = 0; i < BASE_COUNT(workers); i++)
        pthread_join(workers[i].thread, NULL);
    assert_string_equal(vkn_last_error(), "mine");
    assert_int_equal(workers[2].status, VKN_BAD_INPUT);
    assert_non_null(strstr(workers[2].error, "not/there"));
    for (size_t i = 0; i < 2; i++)
        if (workers[i].status != VKN_OK)
            fail_msg("thread %zu: %s", i, workers[i].error);
    const struct vkn_picture *one = workers[0].picture, *other = workers[1].picture;
    size_t count = (size_t)3 * one->width * one->height;
    assert_memory_equal(one->color, other->color, count * sizeof *one->color);
    vkn_picture_free(&workers[0].picture);
    vkn_picture_free(&workers[1].picture);
}

/* ---- cameras and pictures -------------------------------------------------------------------- */

static void test_cameras(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(true);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    vkn_renderer *renderer = NULL;
    struct vkn_picture *picture = NULL;
    struct vkn_camera camera = {0};
    assert_int_equal(vkn_scene_view_count(tiny.scene, VKN_SPLIT_DEFAULT), 3);
    assert_int_equal(vkn_scene_view_count(tiny.scene, VKN_SPLIT_TEST), 0);
    refuses(vkn_scene_camera(tiny.scene, VKN_SPLIT_TEST, 0, &camera), "there are no test views");
    refuses(vkn_scene_camera(tiny.scene, VKN_SPLIT_TRAIN, 3, &camera),
            "view 3: there are 3 train views, 0 to 2");
    refuses(vkn_scene_camera(tiny.scene, (enum vkn_split)9, 0, &camera), "split: 9 is none");
    const char *file = vkn_scene_image_file(tiny.scene, VKN_SPLIT_TRAIN, 1);
    assert_non_null(strstr(file, "train/x.png"));

    /* The second camera looks from (4, 0, 0), in units of the dataset, at the origin. */
    struct vkn_camera looking = {0};
    const double eye[3] = {4, 0, 0}, target[3] = {0}, up[3] = {0, 1, 0};
    ok(vkn_scene_camera(tiny.scene, VKN_SPLIT_TRAIN, 1, &camera));
    ok(vkn_camera_look_at(&looking, eye, target, up));
    for (size_t i = 0; i < 12; i++)
        check_close(looking.pose[i], camera.pose[i], 1e-6, 1, "pose", i);
    assert_true(camera.width == 12 && camera.height == 10 && camera.time == 0.5);
    refuses(vkn_camera_look_at(&looking, eye, eye, up), "the target equals the eye");

    /* Conversion to the dataset's units and back is exact. */
    const struct scene_camera *expected = &tiny.scene->splits[SCENE_TRAIN].cameras[1];
    struct scene_camera again;
    ok(scene_camera_from_public(&camera, tiny.scene->scale, tiny.scene->offset, &again));
    assert_memory_equal(again.pose, expected->pose, sizeof expected->pose);
    assert_true(again.focal_x == expected->focal_x && again.center_y == expected->center_y);

    /* Members left at 0 have defaults: the centre of the image, square pixels. */
    looking.width = 12;
    looking.height = 10;
    looking.focal_x = camera.focal_x;
    looking.time = camera.time;
    struct vkn_picture *same = NULL;
    const struct vkn_picture_params black = {.background = VKN_BACKGROUND_BLACK, .supersample = 2};
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderer));
    refuses(vkn_renderer_camera(renderer, tiny.scene, VKN_SPLIT_TRAIN, 3, &camera),
            "view 3: there are 3 train views, 0 to 2");
    struct vkn_camera kept = {0}; /* a training without scene.refine keeps the scene's poses */
    ok(vkn_renderer_camera(renderer, tiny.scene, VKN_SPLIT_TRAIN, 1, &kept));
    assert_memory_equal(&kept, &camera, sizeof camera);
    ok(vkn_renderer_enable_normals(renderer));
    ok(vkn_render(renderer, &camera, &black, &picture));
    ok(vkn_render(renderer, &looking, &black, &same));
    for (size_t i = 0; i < 3 * 120; i++)
        check_close((double)same->color[i], (double)picture->color[i], 1e-3, 1, "color", i);

    static const struct {
        const char *part;
        struct vkn_camera camera;
    } bad[] = {
        {"width and height", {.focal_x = 9}},
        {"focal_x 0", {.width = 4, .height = 4}},
        {"focal_x nan", {.width = 4, .height = 4, .focal_x = NAN}},
        {"lens: 5", {.width = 4, .height = 4, .focal_x = 4, .lens = (enum vkn_lens)5}},
        {"time: 2", {.width = 4, .height = 4, .focal_x = 4, .time = 2}},
        {"pose: ", {.width = 4, .height = 4, .focal_x = 4}},
        {"pose: ",
         {.width = 4,
          .height = 4,
          .focal_x = 4,
          .pose = {1, 0, 0, INFINITY, 0, 1, 0, 0, 0, 0, 1, 0}}},
    };
    struct vkn_picture *none = NULL;
    for (size_t i = 0; i < BASE_COUNT(bad); i++)
        refuses(vkn_render(renderer, &bad[i].camera, NULL, &none), bad[i].part);
    const struct vkn_picture_params odd = {.supersample = 3};
    refuses(vkn_render(renderer, &camera, &odd, &none), "supersample: 3");
    assert_null(none);

    /* Every map of the picture can be written to a file. */
    static const enum vkn_map maps[] = {VKN_MAP_COLOR, VKN_MAP_OPACITY, VKN_MAP_DEPTH,
                                        VKN_MAP_NORMAL};
    for (size_t i = 0; i < BASE_COUNT(maps); i++) {
        uint32_t width, height;
        char *path = temporary_path(tests->folder, "map.png");
        ok(vkn_picture_write(picture, maps[i], path));
        ok(scene_image_size(path, &width, &height));
        assert_true(width == 12 && height == 10);
    }
    vkn_picture_free(&picture);
    vkn_picture_free(&same);

    /* The scene's image is premultiplied and composited on white. */
    ok(vkn_scene_image(tiny.scene, VKN_SPLIT_TRAIN, 1, VKN_BACKGROUND_WHITE, &picture));
    check_close((double)picture->opacity[0], 60.0 / 255, 1e-6, 1, "opacity", 0);
    check_close((double)picture->color[3 * 5], 100.0 / 255, 1e-6, 1, "red", 5);
    check_close((double)picture->color[3 * 0], 1 - 60.0 / 255, 1e-2, 1, "white behind", 0);
    assert_true(picture->used[7] == 1 && !picture->depth && !picture->normal);
    refuses(vkn_picture_write(picture, VKN_MAP_DEPTH, "d.png"),
            "d.png: the picture has no such map");
    vkn_picture_free(&picture);
    refuses(vkn_scene_image(tiny.scene, VKN_SPLIT_VAL, 0, VKN_BACKGROUND_WHITE, &picture),
            "no val views");
    vkn_renderer_destroy(&renderer);
    tiny_destroy(&tiny);
}

/* ---- scenes in memory ------------------------------------------------------------------------ */

/* A scene made from the images of a scene in files equals that scene. */
static void test_memory_scene(void **state)
{
    const struct step_tests *tests = *state;
    static const char *const names[] = {"train/z.png", "train/x.png", "train/y.png"};
    vkn_scene *files = NULL, *scene = NULL;
    struct vkn_camera cameras[3] = {{0}};
    struct vkn_view views[4] = {{0}};
    const struct vkn_view *pointers[4];
    uint8_t *pixels[3], mask[120];
    ok(vkn_scene_open(tests->folder->path, NULL, &files));
    for (size_t i = 0; i < 3; i++) {
        uint32_t width, height;
        ok(vkn_scene_camera(files, VKN_SPLIT_TRAIN, i, &cameras[i]));
        ok(scene_image_read(temporary_path(tests->folder, names[i]), &pixels[i], &width, &height));
        views[i] = (struct vkn_view){.camera = &cameras[i], .pixels = pixels[i]};
        pointers[i] = &views[i];
    }
    memset(mask, 1, sizeof mask);
    mask[5] = 0;
    views[3] = views[0];
    views[3].split = VKN_SPLIT_TEST;
    views[3].mask = mask;
    pointers[3] = &views[3];
    struct vkn_config config = tiny_config(true);
    config.scene.scale = files->scale;
    memcpy(config.scene.offset, files->offset, sizeof config.scene.offset);
    config.scene.aabb_scale = files->aabb_scale;
    config.scene.fixed_transform = true;
    ok(vkn_scene_create("memory", pointers, 4, &config, &scene));
    ok(scene_load(files, SCENE_TRAIN, NULL, NULL));
    const struct scene_split *a = &scene->splits[SCENE_TRAIN], *b = &files->splits[SCENE_TRAIN];
    assert_int_equal(a->camera_count, 3);
    assert_int_equal(vkn_scene_view_count(scene, VKN_SPLIT_TEST), 1);
    assert_memory_equal(a->pixels, b->pixels, 3 * 120 * sizeof *a->pixels);
    assert_true(a->has_alpha && b->has_alpha && scene->dynamic);
    for (size_t i = 0; i < 3; i++) {
        assert_memory_equal(a->cameras[i].pose, b->cameras[i].pose, sizeof a->cameras[i].pose);
        assert_true(a->cameras[i].focal_x == b->cameras[i].focal_x);
    }
    for (size_t i = 0; i < 3; i++)
        free(pixels[i]); /* the scene has copied them */

    /* The scene trains, and its masked pixel is not used. */
    vkn_trainer *trainer = NULL;
    struct vkn_picture *picture = NULL;
    const struct vkn_train_run run = {.until_step = 8};
    ok(vkn_scene_image(scene, VKN_SPLIT_TEST, 0, VKN_BACKGROUND_BLACK, &picture));
    assert_true(picture->used[4] == 1 && picture->used[5] == 0);
    vkn_picture_free(&picture);
    ok(vkn_trainer_create(tests->context, scene, &config, &trainer));
    ok(vkn_trainer_run(trainer, &run));
    vkn_trainer_destroy(&trainer);
    vkn_scene_close(&scene);

    /* Without a given transform the scene computes one; images are downscaled. */
    uint8_t grey[4 * 120];
    memset(grey, 128, sizeof grey);
    for (size_t i = 0; i < 4; i++)
        views[i].pixels = grey;
    const struct vkn_config half = {.scene.downscale = 2};
    ok(vkn_scene_create("memory", pointers, 4, &half, &scene));
    ok(vkn_scene_camera(scene, VKN_SPLIT_TRAIN, 2, &cameras[0]));
    assert_true(cameras[0].width == 6 && cameras[0].height == 5 && scene->scale > 0);
    vkn_scene_close(&scene);
    ok(vkn_scene_camera(files, VKN_SPLIT_TRAIN, 0, &cameras[0]));

    needs(vkn_scene_create(NULL, pointers, 4, NULL, &scene), "name");
    needs(vkn_scene_create("memory", NULL, 4, NULL, &scene), "views");
    needs(vkn_scene_create("memory", pointers, 4, NULL, NULL), "scene");
    refuses(vkn_scene_create("memory", pointers, 0, NULL, &scene), "no views to train on");
    pointers[2] = NULL;
    refuses(vkn_scene_create("memory", pointers, 4, NULL, &scene), "memory: view 2: it is NULL");
    pointers[2] = &views[2];
    views[1].pixels = NULL;
    refuses(vkn_scene_create("memory", pointers, 4, NULL, &scene), "view 1: pixels: missing");
    views[1].camera = NULL;
    refuses(vkn_scene_create("memory", pointers, 4, NULL, &scene), "view 1: camera: missing");
    views[1] = views[0];
    views[1].split = (enum vkn_split)7;
    refuses(vkn_scene_create("memory", pointers, 4, NULL, &scene), "view 1: split: 7");
    views[1].split = VKN_SPLIT_TRAIN;
    cameras[0].width = 20000;
    refuses(vkn_scene_create("memory", pointers, 4, NULL, &scene),
            "view 0: camera: width and height");
    cameras[0].focal_x = 0;
    refuses(vkn_scene_create("memory", pointers, 4, NULL, &scene), "view 0: camera: focal_x 0");
    assert_null(scene);
    vkn_scene_close(&files);
}

/* ---- messages -------------------------------------------------------------------------------- */

struct lines {
    unsigned warnings, all;
    char last[256];
};

static void store_line(void *user, enum vkn_log_level level, const char *line)
{
    struct lines *lines = user;
    lines->warnings += level == VKN_LOG_WARNING;
    lines->all++;
    snprintf(lines->last, sizeof lines->last, "%s", line);
}

static void test_messages(void **state)
{
    (void)state;
    struct lines lines = {0};
    vkn_log_to(store_line, &lines);
    vkn_log_quiet(false);
    base_log(BASE_LOG_INFO, "trains %d", 1);
    assert_string_equal(lines.last, "trains 1");
    base_log(BASE_LOG_WARNING, "%s", "no\nline break");
    assert_string_equal(lines.last, "no line break");
    vkn_log_quiet(true);
    base_log(BASE_LOG_INFO, "not told");
    assert_true(lines.all == 2 && lines.warnings == 1);
    vkn_log_to(NULL, NULL);
    base_log(BASE_LOG_WARNING, "to standard error");
    assert_int_equal(lines.all, 2);
}

/* ---- configurations -------------------------------------------------------------------------- */

static void assert_value(const vkn_config *config, const char *key, const char *expected)
{
    char *value = NULL;
    ok(vkn_config_get(config, key, &value));
    assert_string_equal(value, expected);
    vkn_free(value);
}

static void test_configurations(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *reads;
    } settings[] = {
        {"steps", "20k", "20000"},
        {"optimizer.learning_rate", "0.005", "0.005"},
        {"precision", "fp16", "fp16"},
        {"deterministic", "true", "true"},
        {"scene.offset", "1,2,3", "1,2,3"},
        {"eval_every", "100,500", "100,500"},
        {"eval_every", "100x2", "100x2"},
        {"march.cone_angle", "0", "0"},
        {"seed", "18446744073709551615", "18446744073709551615"},
    };
    vkn_config *config = NULL, *copy = NULL;
    char *none = NULL;
    ok(vkn_config_create(&config));
    assert_value(config, "steps", "default");
    assert_value(config, "march.cone_angle", "default");
    assert_value(config, "scene.offset", "default");
    assert_value(NULL, "precision", "auto");
    for (size_t i = 0; i < BASE_COUNT(settings); i++) {
        ok(vkn_config_set(config, NULL, settings[i].key, settings[i].value));
        assert_value(config, settings[i].key, settings[i].reads);
        ok(vkn_config_set(config, NULL, settings[i].key,
                          settings[i].reads)); /* what was read is accepted as a value */
        assert_value(config, settings[i].key, settings[i].reads);
    }
    ok(vkn_config_set_number(config, "optimizer.learning_rate", 0.25));
    ok(vkn_config_copy(config, &copy));
    ok(vkn_config_set(config, NULL, "optimizer.learning_rate", "default"));
    assert_value(copy, "optimizer.learning_rate", "0.25");
    assert_value(config, "optimizer.learning_rate", "default");
    refuses(vkn_config_set(config, NULL, "stepz", "1"), "steps");
    refuses(vkn_config_set(config, NULL, "steps", "many"), "vkn_config_set: steps: many");
    refuses(vkn_config_set_number(config, "steps", 1.5), "steps");
    refuses(vkn_config_get(config, "stepz", &none), "steps");
    refuses(vkn_config_get(config, "loss_scale.schedule", &none), "cannot be returned as text");
    refuses(vkn_config_parse_json(config, NULL, "{\"steps\": true}", false),
            "vkn_config_parse_json: steps");
    vkn_config_destroy(&config);
    vkn_config_destroy(&config);
    vkn_config_destroy(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null),         cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_order),        cmocka_unit_test(test_between_steps),
        cmocka_unit_test(test_threads),      cmocka_unit_test(test_cameras),
        cmocka_unit_test(test_messages),     cmocka_unit_test(test_configurations),
        cmocka_unit_test(test_memory_scene),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
