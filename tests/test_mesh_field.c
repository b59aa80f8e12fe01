/* A mesh of a field whose density and colour are known, because its parameters are set by hand: a
 * dense level of the grid holds the raw density at its points, the MLPs hand through what they get.
 */
#include "step_fixture.h"

#include "field/field.h"
#include "render/mesh.h"

#define POINTS 24u /* of the dense level along an edge */
#define RADIUS 0.3
#define SLOPE  60.0 /* of the raw density */

static const double center[3] = {0.47, 0.52, 0.55};

/* Levels with tables that hold all their points. */
static struct vkn_config known_config(void)
{
    struct vkn_config config = tiny_config(false);
    config.grid.log2_entries = 14;
    config.grid.coarsest = config.grid.finest = POINTS;
    return config;
}

/* weights[input][output] of a layer. */
static void set_weight(float *params, const struct field_layer *layer, uint32_t input,
                       uint32_t output, double weight)
{
    params[layer->first + input * layer->outputs + output] = (float)weight;
}

/* An MLP of `count` layers that gives `factor` times `input` as `output`: what ReLU lets through of
 * it and of its negative. */
static void hand_through(float *params, const struct field_layer *layers, uint32_t count,
                         uint32_t input, uint32_t output, double factor)
{
    for (uint32_t sign = 0; sign < 2; sign++) {
        uint32_t value = 2 * output + sign;
        set_weight(params, &layers[0], input, value, sign ? -1.0 : 1.0);
        for (uint32_t i = 1; i + 1 < count; i++)
            set_weight(params, &layers[i], value, value, 1.0);
        set_weight(params, &layers[count - 1], value, output, sign ? -factor : factor);
    }
}

static double raw_density(const double p[3])
{
    double squares = 0;
    for (int i = 0; i < 3; i++)
        squares += (p[i] - center[i]) * (p[i] - center[i]);
    return SLOPE * (RADIUS - sqrt(squares));
}

/* The raw colours are 3 times y, z and x of the direction: spherical harmonics 1, 2 and 3. */
static void set_field(const struct tiny *tiny, const struct vkn_config *config)
{
    const struct step *step = &tiny->trainer->step;
    const struct field_model *model = &step->model;
    float *params = calloc(model->param_count, sizeof *params);
    struct field_layer layers[FIELD_MAX_LAYERS];
    assert_non_null(params);
    assert_int_equal(field_layers(config, model, layers), 5);
    hand_through(params, layers, 2, 0, 0, 1.0);
    const double band = 0.48860251190291987;
    const double factors[3] = {-3 / band, 3 / band, -3 / band};
    for (uint32_t i = 0; i < 3; i++)
        hand_through(params, layers + 2, 3, config->mlp.geometry + 1 + i, i, factors[i]);
    const struct Level *level = &model->level[0];
    assert_int_equal(level->dense, 1);
    for (uint32_t i = 0; i < POINTS * POINTS * POINTS; i++) {
        const uint32_t at[3] = {i % POINTS, i / POINTS % POINTS, i / POINTS / POINTS};
        double p[3];
        for (int k = 0; k < 3; k++)
            p[k] = (at[k] - 0.5) / level->scale;
        params[level->first + i * model->features] = (float)raw_density(p);
    }
    tiny_put(tiny, &step->buffers.average, params);
    free(params);
}

/* Cells below `height` (training space) are occupied. */
static void set_occupancy(const struct tiny *tiny, double height)
{
    struct step *step = &tiny->trainer->step;
    float *values = calloc(step->buffers.occupancy.size, 1);
    struct State *state = tiny_take(tiny, &step->buffers.state);
    assert_non_null(values);
    for (uint32_t i = 0; i < 16 * 16 * 16; i++) {
        uint32_t z = 0;
        for (uint32_t bit = 0; bit < 4; bit++)
            z |= (i >> (3 * bit + 2) & 1u) << bit; /* Morton order */
        values[i] = z < 16 * height ? 1.0f : 0.0f;
    }
    state->threshold = 0.5f;
    tiny_put(tiny, &step->buffers.state, state);
    tiny_put(tiny, &step->buffers.occupancy, values);
    ok(step_pack_occupancy(step));
    free(values);
    free(state);
}

/* To training space; the scene is in Blender's dialect. */
static void to_training(const float position[3], double p[3])
{
    for (int i = 0; i < 3; i++)
        p[i] = (double)position[i] * 0.33 + 0.5;
}

static void check_vertex(const struct MeshVertex *vertex, double level, double voxel)
{
    double p[3], length = 0;
    to_training(vertex->position, p);
    /* Both the field and the mesh are straight between points: off by edge^2 / (8 radius). */
    double off = (raw_density(p) - level) / SLOPE;
    assert_true(fabs(off) < 0.25 * voxel);
    for (int i = 0; i < 3; i++)
        length += (p[i] - center[i]) * (p[i] - center[i]);
    double along = 0;
    for (int i = 0; i < 3; i++)
        along += vertex->normal[i] * (p[i] - center[i]) / sqrt(length);
    assert_true(along > 0.98);
    for (int i = 0; i < 3; i++) {
        double seen = -vertex->normal[(i + 1) % 3]; /* y, z, x of the way to look */
        double byte = 255 / (1 + exp(-3 * seen));
        assert_true(fabs((vertex->color >> 8 * i & 255u) - byte) < 0.6);
    }
}

static struct known {
    void *tests;
    struct vkn_config config;
    struct tiny tiny;
    vkn_renderer *renderer;
} known;

static int create_known(void **state)
{
    if (step_tests_setup(&known.tests) != 0)
        return -1;
    struct step_tests *tests = known.tests;
    known.config = known_config();
    known.tiny = tiny_create(tests->context, tests->folder, &known.config);
    set_field(&known.tiny, vkn_trainer_config(known.tiny.trainer));
    ok(vkn_renderer_of_trainer(known.tiny.trainer, &known.renderer));
    *state = &known;
    return 0;
}

static int destroy_known(void **state)
{
    (void)state;
    vkn_renderer_destroy(&known.renderer);
    tiny_destroy(&known.tiny);
    return step_tests_teardown(&known.tests);
}

/* The whole unit cube in 40 voxels. The caller frees. */
static struct render_mesh make_mesh(void)
{
    struct render_mesh_params params = {.resolution = 40};
    struct MeshGrid grid;
    struct render_mesh mesh;
    ok(render_mesh_grid(known.tiny.scene, &known.config, &params, &grid));
    ok(render_mesh(known.renderer, known.tiny.scene, &grid, VKN_UNSEEN_KEEP, NULL, NULL, &mesh));
    return mesh;
}

static void test_surface(void **state)
{
    (void)state;
    set_occupancy(&known.tiny, 1.0);
    struct render_mesh mesh = make_mesh();
    assert_true(mesh.vertex_count > 1000);
    assert_int_equal(mesh.triangle_count, 2 * (mesh.vertex_count - 2)); /* a sphere: Euler */
    for (size_t v = 0; v < mesh.vertex_count; v++)
        check_vertex(&mesh.vertices[v], log(log(2.0) * 128), 1.0 / 40);
    render_mesh_free(&mesh);
}

/* Nothing is above the cells that are empty, but the mesh is closed there too. */
static void test_empty_cells(void **state)
{
    (void)state;
    set_occupancy(&known.tiny, 0.5);
    struct render_mesh mesh = make_mesh();
    assert_int_equal(mesh.triangle_count, 2 * (mesh.vertex_count - 2));
    double highest = 0;
    for (size_t v = 0; v < mesh.vertex_count; v++) {
        double p[3];
        to_training(mesh.vertices[v].position, p);
        highest = fmax(highest, p[2]);
    }
    assert_true(highest > 0.475 && highest < 0.5);
    render_mesh_free(&mesh);
    set_occupancy(&known.tiny, 0.0);
    mesh = make_mesh();
    assert_int_equal(mesh.vertex_count + mesh.triangle_count, 0);
    render_mesh_free(&mesh);
}

static void test_interrupt(void **state)
{
    (void)state;
    struct render_mesh_params params = {.resolution = 40};
    struct MeshGrid grid;
    struct render_mesh mesh;
    volatile sig_atomic_t stop = 1;
    ok(render_mesh_grid(known.tiny.scene, &known.config, &params, &grid));
    assert_int_equal(render_mesh(known.renderer, NULL, &grid, VKN_UNSEEN_KEEP, NULL, &stop, &mesh), VKN_INTERRUPTED);
    render_mesh_free(&mesh);
}

/* ---- points -------------------------------------------------------------------------------- */

static struct render_mesh make_points(uint32_t count, uint32_t seed, double highest)
{
    struct render_points_params params = {
        .count = count, .seed = seed, .low = {-9, -9, -9}, .high = {9, 9, highest}};
    struct render_mesh cloud;
    ok(render_points(known.renderer, known.tiny.scene, &params, NULL, NULL, &cloud));
    return cloud;
}

/* Whether the point has the colour that is seen from a camera at 4 dataset units along `axis`. */
static bool seen_along(const struct MeshVertex *point, int axis)
{
    double way[3], length = 0;
    for (int i = 0; i < 3; i++) {
        way[i] = point->position[i] - (i == axis ? 4 : 0);
        length += way[i] * way[i];
    }
    bool same = true;
    for (int i = 0; i < 3; i++) {
        double byte = 255 / (1 + exp(-3 * way[(i + 1) % 3] / sqrt(length)));
        same = same && fabs((point->color >> 8 * i & 255u) - byte) < 1;
    }
    return same;
}

/* Where a ray straight to the middle has lost half of its light: the density grows by e every 1 /
 * SLOPE, so that what is above a place absorbs its density / SLOPE. Other rays end further out, but
 * where nothing is dense they do not end. */
static void check_point(const struct MeshVertex *point, uint32_t views[3])
{
    double p[3], length = 0, along = 0, innermost = RADIUS - log(log(2.0) * SLOPE) / SLOPE;
    to_training(point->position, p);
    for (int i = 0; i < 3; i++)
        length += (p[i] - center[i]) * (p[i] - center[i]);
    for (int i = 0; i < 3; i++)
        along += point->normal[i] * (p[i] - center[i]) / sqrt(length);
    assert_true(sqrt(length) > innermost - 0.02 && sqrt(length) < RADIUS + 0.06);
    assert_true(along > 0.75); /* the mean of the ray's last steps */
    bool seen = false;
    for (int axis = 0; axis < 3; axis++) {
        views[axis] += seen_along(point, axis);
        seen = seen || seen_along(point, axis);
    }
    assert_true(seen);
}

static void test_points(void **state)
{
    (void)state;
    uint32_t views[3] = {0};
    set_occupancy(&known.tiny, 1.0);
    struct render_mesh cloud = make_points(1500, 7, 9), again = make_points(1500, 7, 9);
    struct render_mesh other = make_points(1500, 8, 9);
    assert_int_equal(cloud.vertex_count, 1500);
    assert_int_equal(cloud.triangle_count, 0);
    for (size_t i = 0; i < cloud.vertex_count; i++)
        check_point(&cloud.vertices[i], views);
    for (int axis = 0; axis < 3; axis++)
        assert_true(views[axis] > 300);
    assert_memory_equal(cloud.vertices, again.vertices, 1500 * sizeof *cloud.vertices);
    assert_memory_not_equal(cloud.vertices, other.vertices, 1500 * sizeof *cloud.vertices);
    render_mesh_free(&cloud);
    render_mesh_free(&again);
    render_mesh_free(&other);
}

/* In a box, and where there is nothing. */
static void test_few_points(void **state)
{
    (void)state;
    set_occupancy(&known.tiny, 1.0);
    struct render_mesh cloud = make_points(200, 1, 0);
    assert_int_equal(cloud.vertex_count, 200);
    for (size_t i = 0; i < cloud.vertex_count; i++)
        assert_true(cloud.vertices[i].position[2] <= 0);
    render_mesh_free(&cloud);
    cloud = make_points(200, 1, -5);
    assert_int_equal(cloud.vertex_count, 0);
    render_mesh_free(&cloud);
    volatile sig_atomic_t stop = 1;
    struct render_points_params params = {.count = 10};
    assert_int_equal(render_points(known.renderer, known.tiny.scene, &params, NULL, &stop, &cloud),
                     VKN_INTERRUPTED);
    render_mesh_free(&cloud);
}

/* ---- the grid ------------------------------------------------------------------------------ */

static void test_grid(void **state)
{
    (void)state;
    struct scene scene = {.scale = 0.5f, .offset = {0.5f, 0.25f, 0}, .aabb_scale = 2};
    struct vkn_config config = {0};
    struct render_mesh_params params = {.resolution = 100};
    struct MeshGrid grid;
    double low[3], high[3];
    ok(render_mesh_grid(&scene, &config, &params, &grid));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(grid.points[i], 101);
        assert_true(grid.origin[i] == 0);
    }
    assert_true(fabs(render_mesh_voxel(&grid) - 0.02) < 1e-7);
    /* Half of the light in 1/128 of the unit cube, which is 1/64 of a dataset unit. */
    assert_true(fabs(render_mesh_threshold(&grid) / 64 - log(2)) < 1e-6);
    render_mesh_box(&grid, low, high);
    assert_true(fabs(low[0] + 1) < 1e-6 && fabs(low[1] + 0.5) < 1e-6 && fabs(high[2] - 2) < 1e-6);

    /* 1 x 0.33 x 0.2 in voxels of 0.1. */
    params = (struct render_mesh_params){
        .low = {-1, 0, 1}, .high = {0, 0.33, 1.2}, .resolution = 10, .threshold = 7};
    ok(render_mesh_grid(&scene, &config, &params, &grid));
    assert_int_equal(grid.points[0], 11);
    assert_int_equal(grid.points[1], 5);
    assert_int_equal(grid.points[2], 3);
    render_mesh_box(&grid, low, high);
    assert_true(fabs(low[1] + 0.035) < 1e-6 && fabs(high[1] - 0.365) < 1e-6);
    assert_true(fabs(render_mesh_threshold(&grid) - 7) < 1e-5);
}

static void refuse(const struct render_mesh_params *params, const char *message)
{
    struct scene scene = {.scale = 0.5f, .offset = {0.5f, 0.25f, 0}, .aabb_scale = 2};
    struct vkn_config config = {0};
    struct MeshGrid grid;
    assert_int_equal(render_mesh_grid(&scene, &config, params, &grid), VKN_BAD_INPUT);
    assert_message(message);
}

static void test_grid_errors(void **state)
{
    (void)state;
    struct render_mesh_params params = {.resolution = 0};
    refuse(&params, "resolution: 0 is not from 1 to 2048");
    params.resolution = 2049;
    refuse(&params, "resolution: 2049 is not");
    params = (struct render_mesh_params){.high = {1, 1, 0}, .resolution = 8};
    refuse(&params, "crop: 0 to 0 along z: nothing is between");
    params = (struct render_mesh_params){.low = {2, 0, 0}, .high = {3, 1, 1}, .resolution = 8};
    refuse(&params, "crop: 2 to 3 along x is outside of what was trained, -2 to 2");
    params = (struct render_mesh_params){.resolution = 8, .threshold = (double)INFINITY};
    refuse(&params, "threshold: inf is no density");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_surface),     cmocka_unit_test(test_empty_cells),
        cmocka_unit_test(test_interrupt),   cmocka_unit_test(test_points),
        cmocka_unit_test(test_few_points),  cmocka_unit_test(test_grid),
        cmocka_unit_test(test_grid_errors), cmocka_unit_test(test_no_messages),
    };
    setenv("VKNERF_VALIDATION", "1", 1);
    return cmocka_run_group_tests(tests, create_known, destroy_known);
}
