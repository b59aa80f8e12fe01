/* Tests that a run that is resumed, opened for pictures or used as a start keeps its training space
 * even if its capture has changed. */
#include "step_fixture.h"

#include <vknerf/run.h>

#include "run/training.h"
#include "run/open.h"

/* Three cameras that look at the origin, and points at distance `far`. */
static void make_capture(struct temporary *folder, const char *name, double far)
{
    char *path = base_format("%s/%s/points3D.txt", folder->path, name);
    char *text = base_format("1 0 0 0 9 9 9 1 1 0 2 0 3 0\n2 %g 0 0 9 9 9 1 1 1 2 1\n"
                             "3 0 0 %g 9 9 9 1 2 2 3 1\n",
                             far, -far);
    ok(base_file_replace(path, text, strlen(text)));
    free(text);
    free(path);
}

static void make_files(struct temporary *folder, const char *name, unsigned images)
{
    struct base_text text = {0};
    char path[64];
    snprintf(path, sizeof path, "%s/cameras.txt", name);
    temporary_text(folder, path, "1 PINHOLE 12 10 14 14 6 5\n");
    for (unsigned i = 0; i < images; i++) {
        snprintf(path, sizeof path, "%s/images/%u.png", name, i);
        temporary_picture(folder, path, 12, 10, (uint8_t)(40 * i));
        base_text_add(&text, "%u 1 0 %g 0 0 0 %u 1 %u.png\n\n", i + 1, 0.1 * i, 4 + i, i);
    }
    snprintf(path, sizeof path, "%s/images.txt", name);
    temporary_text(folder, path, text.data);
    free(text.data);
}

struct space {
    double scale, offset[3];
    uint32_t aabb_scale;
};

static struct space space_of(const struct vkn_scene *scene)
{
    struct space space = {.scale = scene->scale, .aabb_scale = scene->aabb_scale};
    memcpy(space.offset, scene->offset, sizeof space.offset);
    return space;
}

static const struct vkn_job quietly = {.quiet = true};

/* Returns the space of the capture with this configuration. */
static struct space open_space(const char *scene_path, const struct vkn_config *config)
{
    struct vkn_scene *scene = NULL;
    ok(vkn_scene_open(scene_path, config, &scene));
    struct space space = space_of(scene);
    scene_close(&scene);
    return space;
}

/* Returns the space in which `train` with these parameters begins. */
static struct space begin_space(struct vkn_train_params params)
{
    static const struct vkn_config open;
    struct vkn_config recorded;
    struct run_beginning beginning;
    params.given = &open;
    if (!params.config)
        params.config = &open;
    if (params.resume) {
        ok(vkn_run_config(params.resume, &recorded));
        params.config = &recorded;
    }
    ok(run_begin(&params, &beginning));
    struct space space = open_space(beginning.scene_path, &beginning.config);
    run_begin_close(&beginning);
    return space;
}

static void assert_space(const struct space *space, const struct space *expected)
{
    assert_memory_equal(space->offset, expected->offset, sizeof space->offset);
    assert_true(space->scale == expected->scale && space->aabb_scale == expected->aabb_scale);
}

/* The run opened for pictures has the trained space. */
static void check_opened(const char *run, const struct space *trained)
{
    const struct vkn_job job = {.quiet = true};
    struct run_opened opened;
    ok(run_open(&job, run, NULL, VKN_SCENE_AUTO, VKN_PRECISION_AUTO, &opened));
    struct space space = space_of(opened.scene);
    assert_space(&space, trained);
    run_close(&opened);
}

/* Two more steps do not move the run's space. */
static void check_resumed(const char *run, const struct space *trained)
{
    struct vkn_config config;
    const struct vkn_train_params params = {
        .job = &quietly, .resume = run, .out = run, .config = &config};
    struct vkn_train_result *result;
    ok(vkn_run_config(run, &config));
    config.steps = 4;
    ok(vkn_run_train(&params, &result));
    assert_int_equal(result->step, 4);
    vkn_train_result_free(&result);
    ok(vkn_run_config(run, &config));
    assert_true(config.scene.fixed_transform);
    assert_true(config.scene.scale == trained->scale);
    assert_memory_equal(config.scene.offset, trained->offset, sizeof trained->offset);
}

static void test_changed_points(void **state)
{
    struct step_tests *tests = *state;
    const struct vkn_config plain = {0};
    char *scene = base_path_join(tests->folder->path, "capture");
    char *run = base_path_join(tests->folder->path, "run");
    make_files(tests->folder, "capture", 3);
    make_files(tests->folder, "other", 3);
    make_capture(tests->folder, "capture", 0.5);
    make_capture(tests->folder, "other", 30);
    struct vkn_config config = tiny_config(true);
    const struct vkn_train_params params = {
        .job = &quietly, .scene = scene, .out = run, .config = &config};
    config.steps = 2;
    struct vkn_train_result *result;
    struct space trained = open_space(scene, &config);
    ok(vkn_run_train(&params, &result));
    vkn_train_result_free(&result);
    check_opened(run, &trained);

    /* Changed points and pictures, which would be measured as another space in all respects. */
    make_files(tests->folder, "capture", 5);
    make_capture(tests->folder, "capture", 30);
    struct space anew = open_space(scene, &plain);
    assert_true(anew.scale != trained.scale && anew.aabb_scale != trained.aabb_scale &&
                anew.offset[0] != trained.offset[0]);
    check_opened(run, &trained);
    struct space space = begin_space((struct vkn_train_params){.resume = run});
    assert_space(&space, &trained);
    space = begin_space((struct vkn_train_params){.init = run, .scene = scene});
    assert_space(&space, &trained);
    check_resumed(run, &trained);

    /* Another capture gets its own space, and this one does if the user asks for it. */
    char *other = base_path_join(tests->folder->path, "other");
    struct space elsewhere = open_space(other, &plain);
    space = begin_space((struct vkn_train_params){.init = run, .scene = other});
    assert_space(&space, &elsewhere);
    const struct vkn_config other_cube = {.scene.aabb_scale = anew.aabb_scale};
    space =
        begin_space((struct vkn_train_params){.init = run, .scene = scene, .config = &other_cube});
    assert_space(&space, &anew);
    free(other);
    free(run);
    free(scene);
}

/* A given offset of 0 counts as given; without scale and side no space is fixed. */
static void test_given(void **state)
{
    struct step_tests *tests = *state;
    char *path = tests->folder->path;
    struct vkn_config config = {
        .scene = {
            .scale = 0.25f, .aabb_scale = 2, .fixed_transform = true, .offset = {0, 0, -0.0f}}};
    struct space space = open_space(path, &config);
    const struct space expected = {.scale = 0.25f, .offset = {0, 0, -0.0f}, .aabb_scale = 2};
    assert_space(&space, &expected);
    config.scene.offset[1] = 7;
    config.scene.fixed_transform = false;
    space = open_space(path, &config);
    assert_true(space.offset[1] == 0.5f);

    struct vkn_scene *scene = NULL;
    config.scene.fixed_transform = true;
    config.scene.aabb_scale = 0;
    assert_int_equal(vkn_scene_open(path, &config, &scene), VKN_BAD_INPUT);
    assert_error("scene.fixed_transform: scene.scale and scene.aabb_scale are missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changed_points),
        cmocka_unit_test(test_given),
    };
    return cmocka_run_group_tests_name("placed", tests, step_tests_setup, step_tests_teardown);
}
