/* Tests what programs read and replace of a trainer: its parameters and its occupancy grid; exports
 * of a renderer against exports of a checkpoint; cameras of an orbit. */
#include "step_fixture.h"

#include <math.h>

#include <vknerf/vknerf.h>

#include "render/render.h"

static struct vkn_config config_of(uint64_t seed)
{
    struct vkn_config config = tiny_config(true);
    config.precision = VKN_PRECISION_FP32;
    config.seed = seed;
    return config;
}

#define refuses(call, part)                    \
    do {                                       \
        assert_int_equal(call, VKN_BAD_INPUT); \
        assert_error(part);                    \
    } while (0)

/* ---- parameters ------------------------------------------------------------------------------ */

static float *read_tensor(vkn_trainer *trainer, size_t index, struct vkn_tensor *tensor)
{
    *tensor = (struct vkn_tensor){.size = sizeof *tensor};
    ok(vkn_trainer_tensor(trainer, index, tensor));
    float *values = base_alloc(tensor->count, sizeof *values);
    assert_non_null(values);
    ok(vkn_trainer_read_tensor(trainer, tensor->name, values, tensor->count));
    return values;
}

static struct vkn_picture *picture_of(const struct tiny *tiny)
{
    vkn_renderer *renderer = NULL;
    struct vkn_picture *picture = NULL;
    struct vkn_camera camera = {.size = sizeof camera};
    ok(vkn_scene_camera(tiny->scene, VKN_SPLIT_TRAIN, 2, &camera));
    ok(vkn_renderer_of_trainer(tiny->trainer, &renderer));
    ok(vkn_render(renderer, &camera, NULL, &picture));
    vkn_renderer_destroy(&renderer);
    return picture;
}

/* Moves the whole field of a trainer, with a proposal, to another one: both render the same. The
 * names, sizes and values are those of checkpoints. */
static void test_tensors(void **state)
{
    static const char *const names[] = {"params", "average", "coarse.params", "coarse.average"};
    const struct step_tests *tests = *state;
    struct vkn_config configs[2] = {config_of(3), config_of(4)};
    struct tiny tiny[2];
    for (int i = 0; i < 2; i++) {
        tiny_propose(&configs[i]);
        configs[i].precision = VKN_PRECISION_FP16; /* with copies that are rounded to f16 */
        configs[i].batch.samples = 0;
        tiny[i] = tiny_create(tests->context, tests->folder, &configs[i]);
        tiny_run(&tiny[i], 17); /* the annealing of the proposal follows the step */
    }
    char *path = tiny_save(tests, &tiny[0], "tensors.safetensors");
    struct safetensors_file *file = NULL;
    ok(safetensors_open(path, &file));
    assert_int_equal(vkn_trainer_tensor_count(tiny[0].trainer), BASE_COUNT(names));
    for (size_t i = 0; i < BASE_COUNT(names); i++) {
        struct vkn_tensor tensor, again;
        float *values = read_tensor(tiny[0].trainer, i, &tensor);
        const struct safetensors_tensor *saved = safetensors_at(file, 0);
        for (size_t k = 0; strcmp(saved->name, names[i]) != 0; k++)
            saved = safetensors_at(file, k);
        assert_string_equal(tensor.name, names[i]);
        assert_int_equal(saved->size, 4 * tensor.count);
        assert_memory_equal(saved->data, values, saved->size);
        ok(vkn_trainer_write_tensor(tiny[1].trainer, tensor.name, values, tensor.count));
        float *written = read_tensor(tiny[1].trainer, i, &again);
        assert_memory_equal(written, values, saved->size);
        free(written);
        free(values);
    }
    struct vkn_picture *pictures[2] = {picture_of(&tiny[0]), picture_of(&tiny[1])};
    size_t bytes = 12 * (size_t)pictures[0]->width * pictures[0]->height;
    assert_memory_equal(pictures[0]->color, pictures[1]->color, bytes);
    tiny_run(&tiny[1], 19); /* trains on */
    safetensors_close(&file);
    for (int i = 0; i < 2; i++) {
        vkn_picture_free(&pictures[i]);
        tiny_destroy(&tiny[i]);
    }
    free(path);
}

static void test_tensors_refused(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = config_of(3);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    struct vkn_tensor tensor, again;
    float *values = read_tensor(tiny.trainer, 0, &tensor);
    char expected[128];
    refuses(vkn_trainer_tensor(tiny.trainer, 2, &again), "index: 2 is not from 0 to 1");
    refuses(vkn_trainer_read_tensor(tiny.trainer, "weights", values, tensor.count),
            "vkn_trainer_read_tensor: name: \"weights\" is none of params, average");
    snprintf(expected, sizeof expected,
             "vkn_trainer_write_tensor: count: 7: params has %llu elements",
             (unsigned long long)tensor.count);
    refuses(vkn_trainer_write_tensor(tiny.trainer, "params", values, 7), expected);
    float kept = values[5];
    values[5] = INFINITY;
    refuses(vkn_trainer_write_tensor(tiny.trainer, "params", values, tensor.count),
            "values: element 5 is inf: must be finite");
    float *unchanged = read_tensor(tiny.trainer, 0, &again);
    values[5] = kept;
    assert_memory_equal(values, unchanged, 4 * tensor.count);
    free(values);
    free(unchanged);
    tiny_destroy(&tiny);
}

/* ---- occupancy grid -------------------------------------------------------------------------- */

/* Reads the grid of a dynamic, contracted scene, whose cells have Morton order on the device. */
static void test_grid(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = config_of(3);
    config.model = VKN_MODEL_DYNAMIC;
    config.dynamic.time_bins = 2;
    config.scene.contraction = VKN_CONTRACTION_CUBE;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    struct vkn_occupancy grid = {.size = sizeof grid};
    tiny_run(&tiny, 20);
    ok(vkn_trainer_occupancy(tiny.trainer, &grid));
    const uint32_t n = grid.resolution, parts = grid.cascades * grid.time_bins;
    assert_true(n == 16 && grid.cascades >= 2 && grid.time_bins == 2 && isfinite(grid.threshold));
    const struct vkn_config *effective = vkn_trainer_config(tiny.trainer);
    assert_float_equal(grid.side * effective->scene.scale, 1, 1e-6);
    assert_float_equal(grid.center[0] * effective->scene.scale + effective->scene.offset[0], 0.5,
                       1e-6);
    size_t cells = (size_t)n * n * n, count = cells * parts;
    grid.values = base_alloc(count, sizeof *grid.values);
    grid.occupied = base_alloc(count, 1);
    ok(vkn_trainer_occupancy(tiny.trainer, &grid));
    float *values = tiny_read(&tiny, &tiny.trainer->step.buffers.at[BIND_OCCUPANCY]);
    size_t occupied = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t cell[3];
        reference_morton_cell((uint32_t)(i % cells), cell);
        size_t at = (i / cells * n + cell[2]) * n * n + cell[1] * n + cell[0];
        assert_true(values[i] == grid.values[at]);
        assert_true(grid.occupied[at] || !(values[i] > grid.threshold));
        occupied += grid.occupied[at];
    }
    assert_true(occupied > 0 && occupied < count);

    /* Writing what was read changes nothing. */
    uint8_t *before = base_alloc(count, 1);
    memcpy(before, grid.occupied, count);
    ok(vkn_trainer_set_occupancy(tiny.trainer, &grid));
    float *again = tiny_read(&tiny, &tiny.trainer->step.buffers.at[BIND_OCCUPANCY]);
    assert_memory_equal(values, again, count * sizeof *values);
    ok(vkn_trainer_occupancy(tiny.trainer, &grid));
    assert_memory_equal(before, grid.occupied, count);

    /* An empty grid shows the background. */
    memset(grid.values, 0, count * sizeof *grid.values);
    grid.threshold = 0.5F;
    ok(vkn_trainer_set_occupancy(tiny.trainer, &grid));
    struct vkn_picture *picture = picture_of(&tiny);
    for (size_t i = 0; i < (size_t)picture->width * picture->height; i++)
        assert_true(picture->opacity[i] == 0);
    tiny_run(&tiny, 40); /* the next update finds the field's cells again */
    ok(vkn_trainer_occupancy(tiny.trainer, &grid));
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += grid.occupied[i];
    assert_true(found > occupied / 4);
    vkn_picture_free(&picture);
    free(values);
    free(again);
    free(before);
    free(grid.values);
    free(grid.occupied);
    tiny_destroy(&tiny);
}

static void test_grid_refused(void **state)
{
    enum { CELLS = 16 * 16 * 16 };
    const struct step_tests *tests = *state;
    struct vkn_config config = config_of(3);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    static float values[CELLS];
    struct vkn_occupancy grid = {.size = sizeof grid};
    ok(vkn_trainer_occupancy(tiny.trainer, &grid));
    refuses(vkn_trainer_set_occupancy(tiny.trainer, &grid), "grid: `values` is NULL");
    grid.values = values;
    grid.resolution = 8;
    refuses(vkn_trainer_set_occupancy(tiny.trainer, &grid),
            "vkn_trainer_set_occupancy: grid: resolution: 8: must be 16");
    grid.resolution = 16;
    grid.time_bins = 4;
    refuses(vkn_trainer_set_occupancy(tiny.trainer, &grid), "grid: time_bins: 4: must be 1");
    grid.time_bins = 1;
    values[77] = NAN;
    refuses(vkn_trainer_set_occupancy(tiny.trainer, &grid), "grid: values: element 77 is ");
    grid.threshold = INFINITY;
    refuses(vkn_trainer_set_occupancy(tiny.trainer, &grid), "grid: threshold: inf: must be finite");
    tiny_destroy(&tiny);

    config.march.sampling = VKN_SAMPLING_UNIFORM;
    config.march.ray_samples = 24;
    tiny = tiny_create(tests->context, tests->folder, &config);
    refuses(vkn_trainer_occupancy(tiny.trainer, &grid),
            "march.sampling: only occupancy has a grid");
    tiny_destroy(&tiny);
}

/* ---- exports --------------------------------------------------------------------------------- */

static void compare_files(const char *first, const char *second)
{
    if (!same_checkpoints(first, second))
        fail_msg("%s and %s differ", first, second);
}

static void count_meshing(void *context, const char *what, size_t done, size_t total)
{
    size_t *calls = context;
    *calls += strcmp(what, "meshing") == 0 && done <= total;
}

/* Files of a trainer's renderer are equal to those of its checkpoint. */
static void test_export(void **state)
{
    const struct step_tests *tests = *state;
    struct temporary *folder = tests->folder;
    struct vkn_config config = config_of(3);
    struct tiny tiny = tiny_create(tests->context, folder, &config);
    size_t calls = 0;
    const struct vkn_job job = {
        .size = sizeof job, .quiet = true, .progress = count_meshing, .progress_context = &calls};
    struct vkn_export_params params = {.size = sizeof params,
                                       .job = &job,
                                       .resolution = 24,
                                       .threshold = 0.5,
                                       .unseen = VKN_UNSEEN_KEEP,
                                       .has_time = true,
                                       .point_count = 200};
    struct vkn_export_result made = {.size = sizeof made}, saved = {.size = sizeof saved};
    vkn_renderer *renderer = NULL;
    tiny_run(&tiny, 32);
    char *path = tiny_save(tests, &tiny, "export.safetensors");
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderer));
    params.mesh = temporary_path(folder, "own.ply");
    params.points = temporary_path(folder, "own_points.ply");
    params.splats = temporary_path(folder, "own_splats.ply");
    ok(vkn_renderer_export(renderer, tiny.scene, &params, &made));
    assert_true(calls > 0);
    params.mesh = temporary_path(folder, "saved.ply");
    params.points = temporary_path(folder, "saved_points.ply");
    params.splats = temporary_path(folder, "saved_splats.ply");
    params.run = path;
    ok(vkn_run_export(&params, &saved));
    compare_files(temporary_path(folder, "own.ply"), params.mesh);
    compare_files(temporary_path(folder, "own_points.ply"), params.points);
    compare_files(temporary_path(folder, "own_splats.ply"), params.splats);
    assert_true(made.vertices > 50 && made.vertices == saved.vertices && made.points == 200 &&
                made.splats == saved.splats);
    refuses(vkn_renderer_export(renderer, tiny.scene, &params, &made),
            "vkn_renderer_export: run: only of use with vkn_run_export");
    params.run = NULL;
    params.masks = "masks";
    refuses(vkn_renderer_export(renderer, tiny.scene, &params, &made), "masks: only of use with");
    vkn_renderer_destroy(&renderer);
    tiny_destroy(&tiny);
    free(path);
}

/* ---- orbit ----------------------------------------------------------------------------------- */

static void test_orbit(void **state)
{
    const struct step_tests *tests = *state;
    vkn_scene *scene = NULL;
    ok(vkn_scene_open(tests->folder->path, NULL, &scene));
    struct scene_camera_path views;
    const struct vkn_render_params params = {.orbit = 5};
    struct vkn_scene_look look = {.size = sizeof look};
    ok(render_views(NULL, scene, &params, &views));
    ok(vkn_scene_find_look(scene, &look));
    for (uint32_t view = 0; view < 5; view++) {
        struct vkn_camera camera = {.size = sizeof camera};
        struct scene_camera back;
        double along = 0, length = 0;
        ok(vkn_scene_orbit_camera(scene, view, 5, &camera));
        ok(scene_camera_from_public(&camera, scene->scale, scene->offset, &back));
        assert_int_equal(camera.width, views.cameras[view].width);
        assert_true(camera.time == (double)views.cameras[view].time && camera.time == view / 4.0);
        for (int i = 0; i < 12; i++)
            assert_float_equal(back.pose[i], views.cameras[view].pose[i], 1e-5);
        for (int i = 0; i < 3; i++) { /* it looks at the focus point */
            double to_point = look.point[i] - camera.pose[4 * i + 3];
            along -= to_point * camera.pose[4 * i + 2];
            length += to_point * to_point;
        }
        assert_float_equal(along, sqrt(length), 1e-4);
    }
    struct vkn_camera camera = {.size = sizeof camera};
    refuses(vkn_scene_orbit_camera(scene, 5, 5, &camera), "view: 5 is not from 0 to 4");
    refuses(vkn_scene_orbit_camera(scene, 0, 0, &camera), "count: 0 is not from 1 to 100000");
    free(views.cameras);
    vkn_scene_close(&scene);
}

int main(void)
{
    tiny_groups = TINY_GROUPS;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors), cmocka_unit_test(test_tensors_refused),
        cmocka_unit_test(test_grid),    cmocka_unit_test(test_grid_refused),
        cmocka_unit_test(test_export),  cmocka_unit_test(test_orbit),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
