/* Tests meshes, points, splats and pictures of a field with known density and colour: its
 * parameters are set such that a dense grid level holds the raw density and the MLPs pass their
 * inputs on. */
#include "step_fixture.h"

#include <vknerf/export.h>

#include "field/field.h"
#include "meshes.h"
#include "render/internal.h"

#define POINTS 24u /* of the dense level along an edge */
#define VOXELS 40u
#define LEVEL  4.485367 /* raw density of a mesh's surface: log(128 log 2) */
#define RADIUS 0.3
#define SLOPE  60.0 /* of the raw density */
/* A hollow ball: radius of its wall's middle; half of the thickness with positive raw density. */
#define HOLLOW 0.15
#define SHELL  0.12

static const double center[3] = {0.47, 0.52, 0.55};

/* Every level's table holds all of its points. */
static struct vkn_config known_config(void)
{
    struct vkn_config config = tiny_config(false);
    config.grid.log2_entries = 14;
    config.grid.coarsest = config.grid.finest = POINTS;
    return config;
}

/* Few samples of the field on rays of 256 bins; the proposal has one dense level. */
#define PROPOSED_STEPS 30u
static void propose(struct vkn_config *config)
{
    tiny_propose(config);
    config->march.coarse_samples = 256;
    config->march.fine_samples = 12;
    config->proposal.levels = 1;
    config->proposal.log2_entries = 12;
    config->proposal.finest = 16;
    config->proposal.anneal_steps = PROPOSED_STEPS;
}

static void set_weight(float *params, const struct field_layer *layer, uint32_t input,
                       uint32_t output, double weight)
{
    params[layer->first + input * layer->outputs + output] = (float)weight;
}

/* Makes an MLP of `count` layers compute output = factor * input: the ReLUs pass the input and its
 * negative separately. */
static void set_identity(float *params, const struct field_layer *layers, uint32_t count,
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

static double distance_from_center(const double p[3])
{
    double squares = 0;
    for (int i = 0; i < 3; i++)
        squares += (p[i] - center[i]) * (p[i] - center[i]);
    return sqrt(squares);
}

/* Raw density of a ball or a hollow ball. */
static double raw_density(const double p[3], bool hollow)
{
    double distance = distance_from_center(p);
    return SLOPE * (hollow ? SHELL - fabs(HOLLOW - distance) : RADIUS - distance);
}

/* Stores the raw densities at the points of the first level. */
static void set_level(const struct field_model *model, float *params, bool hollow)
{
    const struct Level *level = &model->level[0];
    const uint32_t points = level->resolution;
    assert_int_equal(level->dense, 1);
    for (uint32_t i = 0; i < points * points * points; i++) {
        const uint32_t at[3] = {i % points, i / points % points, i / points / points};
        double p[3];
        for (int k = 0; k < 3; k++)
            p[k] = (at[k] - 0.5) / level->scale;
        params[level->first + i * model->features] = (float)raw_density(p, hollow);
    }
}

/* The raw colours are 3 times y, z and x of the direction: spherical harmonics 1, 2 and 3. */
static void set_field(const struct tiny *tiny, const struct vkn_config *config, bool hollow)
{
    const struct step *step = &tiny->trainer->step;
    const struct field_model *model = &step->setup.model;
    float *params = calloc(model->param_count, sizeof *params);
    const struct field_layer *layers = model->layers;
    assert_non_null(params);
    assert_int_equal(model->layer_count, 4);
    set_identity(params, layers, 2, 0, 0, 1.0);
    const double band = 0.48860251190291987;
    const double factors[3] = {-3 / band, 3 / band, -3 / band};
    for (uint32_t i = 0; i < 3; i++)
        set_identity(params, layers + 2, 2, config->mlp.geometry + 1 + i, i, factors[i]);
    set_level(model, params, hollow);
    tiny_put(tiny, &step->buffers.at[BIND_AVERAGE], params);
    free(params);
}

/* Occupies the cells below `height`, in training space. */
static void set_occupancy(const struct tiny *tiny, double height)
{
    struct step *step = &tiny->trainer->step;
    float *values = calloc(step->buffers.at[BIND_OCCUPANCY].size, 1);
    struct State *state = tiny_read(tiny, &step->buffers.at[BIND_STATE]);
    assert_non_null(values);
    for (uint32_t i = 0; i < 16 * 16 * 16; i++) {
        uint32_t z = 0;
        for (uint32_t bit = 0; bit < 4; bit++)
            z |= (i >> (3 * bit + 2) & 1u) << bit; /* Morton order */
        values[i] = z < 16 * height ? 1.0f : 0.0f;
    }
    state->threshold = 0.5f;
    tiny_put(tiny, &step->buffers.at[BIND_STATE], state);
    tiny_put(tiny, &step->buffers.at[BIND_OCCUPANCY], values);
    ok(step_pack_occupancy(step));
    free(values);
    free(state);
}

/* Converts to training space; the scene has Blender's default scale and offset. */
static void to_training(const float position[3], double p[3])
{
    for (int i = 0; i < 3; i++)
        p[i] = (double)position[i] * 0.33 + 0.5;
}

static void check_vertex(const struct MeshVertex *vertex, double level, double voxel)
{
    double p[3];
    to_training(vertex->position, p);
    /* Field and mesh are linear between points: off by edge^2 / (8 radius). */
    double off = (raw_density(p, false) - level) / SLOPE;
    assert_true(fabs(off) < 0.25 * voxel);
    double along = 0;
    for (int i = 0; i < 3; i++)
        along += vertex->normal[i] * (p[i] - center[i]) / distance_from_center(p);
    assert_true(along > 0.98);
    for (int i = 0; i < 3; i++) {
        double seen = -vertex->normal[(i + 1) % 3]; /* y, z, x of the view direction */
        double byte = 255 / (1 + exp(-3 * seen));
        assert_true(fabs((vertex->color >> 8 * i & 255u) - byte) < 0.6);
    }
}

static struct known {
    void *tests;
    struct vkn_config config;
    struct tiny tiny;
    vkn_renderer *renderer;
    struct scene_box box; /* of meshes and points */
} known;

static void create_sampled(enum vkn_sampling sampling, uint32_t aabb_scale)
{
    struct step_tests *tests = known.tests;
    known.config = known_config();
    if (sampling == VKN_SAMPLING_PROPOSAL)
        propose(&known.config);
    known.config.march.sampling = sampling;
    known.config.scene.aabb_scale = aabb_scale;
    known.config.march.ray_samples = 512; /* the ball is beyond the first iteration's samples */
    known.tiny = tiny_create(tests->context, tests->folder, &known.config);
    set_field(&known.tiny, vkn_trainer_config(known.tiny.trainer), false);
    ok(vkn_renderer_of_trainer(known.tiny.trainer, &known.renderer));
}

static void destroy_sampled(void)
{
    vkn_renderer_destroy(&known.renderer);
    tiny_destroy(&known.tiny);
}

/* Gives the proposal the ball, and the state a step at which its annealing has ended. */
static void set_proposal(const struct tiny *tiny)
{
    const struct step *step = &tiny->trainer->step;
    const struct field_model *model = &step->coarse_setup.model;
    struct State *state = tiny_read(tiny, &step->buffers.at[BIND_STATE]);
    float *params = calloc(model->param_count, sizeof *params);
    assert_non_null(params);
    set_identity(params, model->layers, 2, 0, 0, 1.0);
    set_level(model, params, false);
    state->step = PROPOSED_STEPS;
    tiny_put(tiny, &step->buffers.at[BIND_STATE], state);
    tiny_put(tiny, &step->coarse.at[BIND_AVERAGE], params);
    free(params);
    free(state);
}

static int create_known(void **state)
{
    if (step_tests_setup(&known.tests) != 0)
        return -1;
    create_sampled(VKN_SAMPLING_OCCUPANCY, 1);
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

/* Makes a mesh of the unit cube with VOXELS voxels a side. The caller frees it. */
static struct render_mesh make_mesh(enum vkn_unseen unseen)
{
    struct render_mesh_params params = {.resolution = VOXELS, .box = known.box};
    struct MeshGrid grid;
    struct render_mesh mesh;
    struct visibility_maps visibility_maps = {0};
    ok(render_mesh_grid(known.tiny.scene, &known.config, &params, &grid));
    if (unseen != VKN_UNSEEN_KEEP)
        ok(visibility_maps_create(known.renderer, known.tiny.scene, NULL, NULL, &visibility_maps));
    ok(render_mesh(known.renderer, &grid, unseen, &visibility_maps, NULL, NULL, &mesh));
    visibility_maps_destroy(&visibility_maps);
    return mesh;
}

static void check_surface(void)
{
    struct render_mesh mesh = make_mesh(VKN_UNSEEN_KEEP);
    assert_true(mesh.vertex_count > 1000);
    assert_int_equal(mesh.triangle_count, 2 * (mesh.vertex_count - 2)); /* a sphere: Euler */
    for (size_t v = 0; v < mesh.vertex_count; v++)
        check_vertex(&mesh.vertices[v], LEVEL, 1.0 / VOXELS);
    render_mesh_free(&mesh);
}

static void test_surface(void **state)
{
    (void)state;
    set_occupancy(&known.tiny, 1.0);
    check_surface();
}

/* The box contains the ball because it is rotated: without the rotation a face cuts the ball. */
static void test_rotated_surface(void **state)
{
    (void)state;
    const double low[3] = {-1.5, -0.35, -0.85}, high[3] = {1.3, 1.55, 1.15},
                 rotation[3] = {20, -10, 80};
    set_occupancy(&known.tiny, 1.0);
    known.box = scene_box_of(low, high, rotation);
    check_surface();
    known.box = (struct scene_box){0};
}

static struct scene_box enlarged(struct scene_box box, double by)
{
    for (int i = 0; i < 3; i++) {
        box.low[i] -= by;
        box.high[i] += by;
    }
    return box;
}

static bool is_in(const struct scene_box *box, const struct MeshVertex *vertex)
{
    const double p[3] = {vertex->position[0], vertex->position[1], vertex->position[2]};
    const struct scene_box_limits limits = scene_box_limits(box);
    return scene_box_contains(&limits, p);
}

/* Half of the rotated box is in the ball: the mesh consists of the ball's surface and the box's
 * faces, closed and at the places that the printed box gives again. */
static void test_rotated_cut(void **state)
{
    (void)state;
    struct step_tests *tests = known.tests;
    const struct vkn_job quiet = {.quiet = true};
    char *run = tiny_save(tests, &known.tiny, "rotated");
    struct vkn_export_result result = {.size = sizeof result}, again = result;
    struct vkn_export_params params = {.size = sizeof params,
                                       .job = &quiet,
                                       .run = run,
                                       .mesh = temporary_path(tests->folder, "rotated.ply"),
                                       .crop_low = {-0.8, -0.5, 0.3},
                                       .crop_high = {0.7, 0.6, 1.9},
                                       .crop_rotation = {30, 15, -50},
                                       .resolution = 30,
                                       .unseen = VKN_UNSEEN_KEEP};
    set_occupancy(&known.tiny, 1.0);
    known.box = scene_box_of(params.crop_low, params.crop_high, params.crop_rotation);
    struct render_mesh mesh = make_mesh(VKN_UNSEEN_KEEP), cloud;
    const double voxel = 1.6 / VOXELS;
    const struct scene_box around = enlarged(known.box, voxel),
                           core = enlarged(known.box, -3 * voxel);
    size_t inside = 0;
    assert_closed(&mesh);
    for (size_t v = 0; v < mesh.vertex_count; v++) {
        assert_true(is_in(&around, &mesh.vertices[v]));
        if (!is_in(&core, &mesh.vertices[v]))
            continue;
        check_vertex(&mesh.vertices[v], LEVEL, 1.0 / VOXELS);
        inside++;
    }
    assert_true(inside > 200 && inside + 200 < mesh.vertex_count);
    render_mesh_free(&mesh);
    const struct render_points_params points = {.count = 300, .seed = 3, .box = known.box};
    ok(render_points(known.renderer, known.tiny.scene, &points, NULL, NULL, &cloud));
    assert_int_equal(cloud.vertex_count, 300);
    for (size_t i = 0; i < cloud.vertex_count; i++)
        assert_true(is_in(&known.box, &cloud.vertices[i]));
    render_mesh_free(&cloud);
    const struct render_points_params lower = {
        .count = 300, .seed = 3, .box = {{-9, -9, -1e30}, {9, 9, 0.1}, {0}}};
    ok(render_points(known.renderer, known.tiny.scene, &lower, NULL, NULL, &cloud));
    assert_int_equal(cloud.vertex_count, 300);
    for (size_t i = 0; i < cloud.vertex_count; i++)
        assert_true(cloud.vertices[i].position[2] <= 0.1F);
    render_mesh_free(&cloud);
    known.box = (struct scene_box){0};
    ok(vkn_run_export(&params, &result));
    memcpy(params.crop_low, result.crop_low, sizeof params.crop_low);
    memcpy(params.crop_high, result.crop_high, sizeof params.crop_high);
    ok(vkn_run_export(&params, &again));
    char *json = vkn_export_json(&params, &again);
    assert_non_null(json);
    assert_non_null(strstr(json, "\"crop_rotation\":\t[30, 15, -50]"));
    vkn_free(json);
    assert_memory_equal(again.crop_low, result.crop_low, sizeof result.crop_low);
    assert_memory_equal(again.crop_high, result.crop_high, sizeof result.crop_high);
    assert_true(again.vertices == result.vertices && result.vertices > 500);
    free(run);
}

/* The mesh is closed at unoccupied cells, and has nothing inside them. */
static void test_empty_cells(void **state)
{
    (void)state;
    set_occupancy(&known.tiny, 0.5);
    struct render_mesh mesh = make_mesh(VKN_UNSEEN_KEEP);
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
    mesh = make_mesh(VKN_UNSEEN_KEEP);
    assert_int_equal(mesh.vertex_count + mesh.triangle_count, 0);
    render_mesh_free(&mesh);
}

/* ---- what views see ------------------------------------------------------------------------ */

/* Radius of the hollow ball's outer surface. */
#define OUTER (HOLLOW + SHELL - LEVEL / SLOPE)

/* Enlarges the cameras; their image files are not read here. */
static void scale_cameras(float factor)
{
    for (size_t i = 0; i < 3; i++) {
        struct scene_camera *camera = &known.tiny.scene->splits[SCENE_TRAIN].cameras[i];
        camera->width = (uint32_t)((float)camera->width * factor);
        camera->height = (uint32_t)((float)camera->height * factor);
        camera->focal_x *= factor;
        camera->focal_y *= factor;
        camera->center_x *= factor;
        camera->center_y *= factor;
    }
}

static int make_hollow(void **state)
{
    (void)state;
    scale_cameras(8);
    set_occupancy(&known.tiny, 1.0);
    set_field(&known.tiny, vkn_trainer_config(known.tiny.trainer), true);
    return 0;
}

static int make_full(void **state)
{
    (void)state;
    scale_cameras(0.125f);
    set_field(&known.tiny, vkn_trainer_config(known.tiny.trainer), false);
    return 0;
}

static void test_keep(void **state)
{
    (void)state;
    struct render_mesh mesh = make_mesh(VKN_UNSEEN_KEEP);
    assert_int_equal(assert_closed(&mesh), 4); /* two spheres */
    render_mesh_free(&mesh);
}

static bool is_on_ball(const struct MeshVertex *vertex)
{
    double p[3];
    to_training(vertex->position, p);
    return fabs(distance_from_center(p) - OUTER) < 2.0 / VOXELS;
}

/* Cameras look along the three axes: solid are the ball and what is behind it for all cameras, or
 * for two if the third does not see it. The shadows are wider than the ball by the haze around it,
 * which absorbs half of the light. */
static void test_fill(void **state)
{
    (void)state;
    const double haze = 0.08;
    size_t on_ball = 0;
    struct render_mesh mesh = make_mesh(VKN_UNSEEN_FILL);
    assert_closed(&mesh);
    for (size_t v = 0; v < mesh.vertex_count; v++) {
        double p[3];
        to_training(mesh.vertices[v].position, p);
        assert_true(distance_from_center(p) > OUTER - 0.6 / VOXELS); /* no longer hollow */
        on_ball += is_on_ball(&mesh.vertices[v]);
        uint32_t shadows = 0;
        for (int axis = 0; axis < 3; axis++) {
            int a = (axis + 1) % 3, b = (axis + 2) % 3;
            double away = (4 * 0.33 - p[axis] + 0.5) / (4 * 0.33 - center[axis] + 0.5);
            shadows += hypot(p[a] - center[a], p[b] - center[b]) < (OUTER + haze) * away;
        }
        assert_true(shadows >= 2);
    }
    assert_true((double)on_ball > 0.6 * (double)mesh.vertex_count);
    assert_true(on_ball < mesh.vertex_count);
    render_mesh_free(&mesh);
}

/* All cameras see the ball's front; no camera sees its back or the walls of the shadows. */
static void test_drop(void **state)
{
    (void)state;
    size_t removed, on_ball = 0;
    struct render_mesh all = make_mesh(VKN_UNSEEN_FILL), mesh = make_mesh(VKN_UNSEEN_DROP);
    assert_int_equal(mesh.vertex_count, all.vertex_count);
    ok(render_mesh_drop_unseen(&mesh, &removed));
    assert_int_equal(mesh.vertex_count, all.vertex_count - removed);
    for (size_t v = 0; v < mesh.vertex_count; v++)
        on_ball += is_on_ball(&mesh.vertices[v]);
    assert_true((double)on_ball > 0.75 * (double)mesh.vertex_count);
    assert_true(on_ball > 500);
    for (size_t t = 0; t < mesh.triangle_count; t++)
        for (int corner = 0; corner < 3; corner++)
            assert_true(mesh.triangles[t][corner] < mesh.vertex_count);
    assert_true(mesh.triangle_count < 2 * (mesh.vertex_count - 2)); /* open */
    /* A second call removes nothing. */
    ok(render_mesh_drop_unseen(&mesh, &removed));
    assert_int_equal(removed, 0);
    render_mesh_free(&all);
    render_mesh_free(&mesh);
}

/* The box contains the ball, and its haze, which is seen a little further out. */
static void test_box(void **state)
{
    (void)state;
    struct visibility_maps visibility_maps;
    double low[3], high[3], less_low[3], less_high[3];
    ok(visibility_maps_create(known.renderer, known.tiny.scene, NULL, NULL, &visibility_maps));
    ok(visibility_maps_box(&visibility_maps, known.tiny.scene, 0, low, high));
    ok(visibility_maps_box(&visibility_maps, known.tiny.scene, 0.2, less_low, less_high));
    visibility_maps_destroy(&visibility_maps);
    for (int i = 0; i < 3; i++) {
        /* No camera sees backs, but two see each sideways edge. */
        assert_true(fabs(low[i] - (center[i] - OUTER - 0.5) / 0.33) < 0.35);
        assert_true(fabs(high[i] - (center[i] + OUTER - 0.5) / 0.33) < 0.35);
        assert_true(less_low[i] > low[i] + 0.1 && less_high[i] < high[i] - 0.05);
    }
    set_occupancy(&known.tiny, 0.0); /* nothing is seen: the unit cube and its margin */
    ok(visibility_maps_create(known.renderer, known.tiny.scene, NULL, NULL, &visibility_maps));
    ok(visibility_maps_box(&visibility_maps, known.tiny.scene, 0, low, high));
    visibility_maps_destroy(&visibility_maps);
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(low[i] + (0.5 + 1.0 / 64) / 0.33) < 1e-5);
        assert_true(fabs(high[i] - (0.5 + 1.0 / 64) / 0.33) < 1e-5);
    }
}

static void test_no_views(void **state)
{
    (void)state;
    struct vkn_scene scene = *known.tiny.scene;
    struct visibility_maps visibility_maps;
    volatile sig_atomic_t stop = 1;
    assert_int_equal(visibility_maps_create(known.renderer, &scene, NULL, &stop, &visibility_maps),
                     VKN_INTERRUPTED);
    visibility_maps_destroy(&visibility_maps);
    scene.splits[SCENE_TRAIN].camera_count = 0;
    assert_int_equal(visibility_maps_create(known.renderer, &scene, NULL, NULL, &visibility_maps),
                     VKN_BAD_INPUT);
    assert_message("there are no train views");
    visibility_maps_destroy(&visibility_maps);
}

static void test_interrupt(void **state)
{
    (void)state;
    struct render_mesh_params params = {.resolution = 40};
    struct MeshGrid grid;
    struct render_mesh mesh;
    volatile sig_atomic_t stop = 1;
    ok(render_mesh_grid(known.tiny.scene, &known.config, &params, &grid));
    assert_int_equal(render_mesh(known.renderer, &grid, VKN_UNSEEN_KEEP, NULL, NULL, &stop, &mesh),
                     VKN_INTERRUPTED);
    render_mesh_free(&mesh);
}

/* ---- points -------------------------------------------------------------------------------- */

static struct render_mesh make_points(uint32_t count, uint32_t seed, double highest)
{
    struct render_points_params params = {
        .count = count, .seed = seed, .box = {{-9, -9, -9}, {9, 9, highest}, {0}}};
    struct render_mesh cloud;
    ok(render_points(known.renderer, known.tiny.scene, &params, NULL, NULL, &cloud));
    return cloud;
}

/* Whether the point has the colour seen by a camera at 4 dataset units along `axis`. */
static bool has_color_along(const struct MeshVertex *point, int axis)
{
    double direction[3], length = 0;
    for (int i = 0; i < 3; i++) {
        direction[i] = point->position[i] - (i == axis ? 4 : 0);
        length += direction[i] * direction[i];
    }
    bool same = true;
    for (int i = 0; i < 3; i++) {
        double byte = 255 / (1 + exp(-3 * direction[(i + 1) % 3] / sqrt(length)));
        same = same && fabs((point->color >> 8 * i & 255u) - byte) < 1;
    }
    return same;
}

/* A point is where its ray has lost half of the light. For a ray to the centre: the density grows
 * by e every 1 / SLOPE, so the optical thickness above a position is its density / SLOPE. Other
 * rays end further out. */
static void check_point(const struct MeshVertex *point, uint32_t views[3])
{
    double p[3], length = 0, along = 0, innermost = RADIUS - log(log(2.0) * SLOPE) / SLOPE;
    to_training(point->position, p);
    for (int i = 0; i < 3; i++)
        length += (p[i] - center[i]) * (p[i] - center[i]);
    for (int i = 0; i < 3; i++)
        along += point->normal[i] * (p[i] - center[i]) / sqrt(length);
    assert_true(sqrt(length) > innermost - 0.02 && sqrt(length) < RADIUS + 0.06);
    assert_true(along > 0.75); /* the mean over the ray's last steps */
    bool seen = false;
    for (int axis = 0; axis < 3; axis++) {
        views[axis] += has_color_along(point, axis);
        seen = seen || has_color_along(point, axis);
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

/* Checks points, and a mesh of what views see. */
static void check_points_and_visibility(void)
{
    uint32_t views[3] = {0};
    size_t removed;
    struct render_mesh cloud = make_points(500, 7, 9), mesh = make_mesh(VKN_UNSEEN_DROP);
    assert_int_equal(cloud.vertex_count, 500);
    for (size_t i = 0; i < cloud.vertex_count; i++)
        check_point(&cloud.vertices[i], views);
    ok(render_mesh_drop_unseen(&mesh, &removed));
    assert_true(removed > 0 && mesh.vertex_count > 500);
    render_mesh_free(&cloud);
    render_mesh_free(&mesh);
}

/* Uniform sampling, with an empty occupancy grid, gives the same surface and visible parts. */
static void test_without_grid(void **state)
{
    (void)state;
    const struct known before = known;
    create_sampled(VKN_SAMPLING_UNIFORM, 1);
    check_surface();
    check_points_and_visibility();
    destroy_sampled();
    known = before;
}

/* Returns the depth at which a pixel of view 0, which looks down from 4 dataset units, has lost
 * half of its light; 0 far from the ball's centre. */
static double exact_depth(const struct scene_camera *camera, uint32_t x, uint32_t y)
{
    const double direction[3] = {
        ((double)x + 0.5 - (double)camera->center_x) / (double)camera->focal_x,
        -((double)y + 0.5 - (double)camera->center_y) / (double)camera->focal_y, -1};
    const double step = 2e-4;
    double lost = 0, length = sqrt(direction[0] * direction[0] + direction[1] * direction[1] + 1);
    for (int n = 0; n < 7000; n++) {
        double depth = 2.6 + n * step, p[3];
        for (int i = 0; i < 3; i++)
            p[i] = 0.33 * (direction[i] * depth + (i == 2 ? 4 : 0)) + 0.5;
        lost += exp(raw_density(p, false)) * step * 0.33 * length;
        if (lost > log(2.0))
            return hypot(p[0] - center[0], p[1] - center[1]) < 0.7 * RADIUS ? depth : 0;
    }
    return 0;
}

/* Returns the mean error of depths, in training units. */
static double depth_error(void)
{
    const struct scene_camera *camera = &known.tiny.scene->splits[SCENE_TRAIN].cameras[0];
    struct vkn_picture picture;
    double sum = 0;
    uint32_t count = 0;
    ok(render_picture(known.renderer, camera, VKN_BACKGROUND_WHITE, 1, &picture));
    for (uint32_t i = 0; i < 12 * 10; i++) {
        double exact = exact_depth(camera, i % 12, i / 12);
        if (exact > 0) {
            sum += 0.33 * fabs((double)picture.depth[i] - exact);
            count++;
        }
    }
    render_picture_free(&picture);
    assert_true(count > 20);
    return sum / count;
}

/* Samples of a proposal that knows the ball give the same results; an untrained proposal, whose
 * samples are evenly spaced, misses the depths. */
static void test_with_proposal(void **state)
{
    (void)state;
    const struct known before = known;
    create_sampled(VKN_SAMPLING_PROPOSAL, 1);
    double even = depth_error();
    set_proposal(&known.tiny);
    double found = depth_error();
    assert_true(even > 4e-3 && found < 1.5e-3);
    check_surface();
    check_points_and_visibility();
    destroy_sampled();
    known = before;
}

/* ---- the object's box ----------------------------------------------------------------------- */

/* Writes black views with another angle into a folder: opaque, or transparent. */
static const char *write_views(struct temporary *folder, const char *name, const char *angle,
                               bool opaque)
{
    static const char *const images[] = {"train/z.png", "train/x.png", "train/y.png"};
    static const uint8_t pixels[12 * 10 * 4];
    char text[sizeof transforms + 8], path[64];
    snprintf(text, sizeof text, "{\"camera_angle_x\": %s%s", angle, strchr(transforms, ','));
    snprintf(path, sizeof path, "%s/transforms_train.json", name);
    temporary_text(folder, path, text);
    for (size_t n = 0; n < BASE_COUNT(images); n++) {
        snprintf(path, sizeof path, "%s/%s", name, images[n]);
        ok(scene_image_write_png(temporary_path(folder, path), pixels, 12, 10, opaque ? 3 : 4));
    }
    return temporary_path(folder, name);
}

static struct vkn_export_result export_object(const char *run, const char *scene, bool object,
                                              const double *crop)
{
    const struct step_tests *tests = known.tests;
    const struct vkn_job quiet = {.quiet = true};
    struct vkn_export_result result = {.size = sizeof result};
    struct vkn_export_params params = {.size = sizeof params,
                                       .job = &quiet,
                                       .run = run,
                                       .scene = scene,
                                       .mesh = temporary_path(tests->folder, "object.ply"),
                                       .points = temporary_path(tests->folder, "points.ply"),
                                       .resolution = 24,
                                       .point_count = 400,
                                       .object = object};
    for (int i = 0; i < 3 && crop; i++) {
        params.crop_low[i] = crop[i];
        params.crop_high[i] = crop[3 + i];
    }
    ok(vkn_run_export(&params, &result));
    char *json = vkn_export_json(&params, &result);
    assert_non_null(json);
    assert_int_equal(strstr(json, "\"object_low\"") != NULL, result.has_object);
    vkn_free(json);
    return result;
}

/* Checks that the exported points are in the box. */
static void check_points_in(const struct vkn_export_result *result)
{
    const struct step_tests *tests = known.tests;
    size_t size;
    char *data = NULL;
    ok(base_file_read(temporary_path(tests->folder, "points.ply"), 1 << 20, &data, &size));
    const char *at = strstr(data, "end_header\n") + strlen("end_header\n");
    assert_true(result->points == 400);
    for (size_t p = 0; p < result->points; p++, at += 27) {
        float position[3];
        memcpy(position, at, sizeof position);
        for (int i = 0; i < 3; i++)
            assert_true((double)position[i] > result->object_low[i] &&
                        (double)position[i] < result->object_high[i]);
    }
    free(data);
}

/* The three views see the ball's three caps; wider views have parts of the other views' caps in
 * their pictures. */
static void test_object(void **state)
{
    (void)state;
    const struct known before = known;
    struct step_tests *tests = known.tests;
    const double crop[6] = {-1, -1, -1, 1, 1, 2};
    create_sampled(VKN_SAMPLING_UNIFORM, 2);
    const char *wide = write_views(tests->folder, "wide", "0.8", true),
               *narrow = write_views(tests->folder, "narrow", "0.3", true),
               *alpha = write_views(tests->folder, "alpha", "0.8", false),
               *unit = write_views(tests->folder, "part", "0.4", true);
    char *run = tiny_save(tests, &known.tiny, "object");
    struct vkn_export_result part = export_object(run, wide, true, NULL);
    assert_true(part.has_object);
    check_points_in(&part);
    const struct vkn_export_result all = export_object(run, wide, false, NULL);
    assert_false(all.has_object);
    for (int i = 0; i < 3; i++) {
        /* The mesh's grid is the box, rounded up to whole voxels. */
        assert_true(fabs(part.crop_low[i] - part.object_low[i]) <= part.voxel &&
                    fabs(part.crop_high[i] - part.object_high[i]) <= part.voxel);
        /* The views see each other's caps up to their rims: about the box of all surfaces. */
        assert_true(fabs(part.object_low[i] - all.crop_low[i]) < 0.35 &&
                    fabs(part.object_high[i] - all.crop_high[i]) < 0.35);
    }
    /* The printed box gives the same mesh. */
    const double box[6] = {part.object_low[0],  part.object_low[1],  part.object_low[2],
                           part.object_high[0], part.object_high[1], part.object_high[2]};
    const struct vkn_export_result again = export_object(run, wide, true, box);
    assert_true(!again.has_object && again.vertices == part.vertices);
    assert_memory_equal(again.crop_low, part.crop_low, sizeof part.crop_low);
    assert_false(export_object(run, narrow, true, NULL).has_object);
    assert_false(export_object(run, alpha, true, NULL).has_object);
    assert_false(export_object(run, wide, true, crop).has_object);
    free(run);
    destroy_sampled();
    known = before;
    /* A scene in the unit cube is exported whole. */
    run = tiny_save(tests, &known.tiny, "unit");
    assert_false(export_object(run, unit, true, NULL).has_object);
    free(run);
}

/* ---- pictures of a box ---------------------------------------------------------------------- */

#define CROP_WIDTH  24u
#define CROP_HEIGHT 20u

/* Camera 4 dataset units above the ball, looking down. */
static const struct vkn_camera above = {.size = sizeof above,
                                        .width = CROP_WIDTH,
                                        .height = CROP_HEIGHT,
                                        .focal_x = 34,
                                        .pose = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 4}};

/* Returns the opacity of a pixel's ray within the box, and its mean depth. */
static double exact_ray_opacity(uint32_t x, uint32_t y, const struct scene_box *box, double *depth)
{
    const double direction[3] = {(x + 0.5 - 0.5 * CROP_WIDTH) / above.focal_x,
                                 -(y + 0.5 - 0.5 * CROP_HEIGHT) / above.focal_x, -1};
    const double step = 2e-4,
                 length = sqrt(direction[0] * direction[0] + direction[1] * direction[1] + 1);
    const struct scene_box_limits limits = scene_box_limits(box);
    double lost = 0, mean = 0, all = 0, first = 2.6, last = 5;
    for (int k = 0; k < 3; k++) { /* clips the ray to the box */
        double from = 0, way = 0;
        for (int i = 0; i < 3; i++) {
            from += limits.axes[k][i] * above.pose[4 * i + 3];
            way += limits.axes[k][i] * direction[i];
        }
        double low = (limits.low[k] - from) / way, high = (limits.high[k] - from) / way;
        first = fmax(first, fmin(low, high));
        last = fmin(last, fmax(low, high));
    }
    for (int n = 0; first + n * step <= last; n++) {
        double at = first + n * step, p[3];
        for (int i = 0; i < 3; i++)
            p[i] = 0.33 * (direction[i] * at + above.pose[4 * i + 3]) + 0.5;
        double thickness = exp(raw_density(p, false)) * step * 0.33 * length;
        double weight = exp(-lost) * -expm1(-thickness);
        mean += weight * at;
        all += weight;
        lost += thickness;
    }
    *depth = all > 0 ? mean / all : 0;
    return all;
}

static struct vkn_picture *picture_in(const struct scene_box *box)
{
    struct vkn_picture_params params = {.size = sizeof params};
    struct vkn_picture *picture = NULL;
    for (int i = 0; i < 3; i++) {
        params.crop[i] = box->low[i];
        params.crop[3 + i] = box->high[i];
        params.crop_rotation[i] = box->rotation[i];
    }
    ok(vkn_render(known.renderer, &above, &params, &picture));
    return picture;
}

/* Pixels show the ball's part in the box and nothing else. `depth_slack` is the largest mean error
 * of depths, in dataset units. */
static void check_in_box(const struct scene_box *box, double depth_slack, uint32_t least,
                         uint32_t most)
{
    struct vkn_picture *picture = picture_in(box);
    uint32_t solid = 0;
    double depths = 0;
    for (uint32_t i = 0; i < CROP_WIDTH * CROP_HEIGHT; i++) {
        double depth, opacity = exact_ray_opacity(i % CROP_WIDTH, i / CROP_WIDTH, box, &depth);
        /* At the ball's edge the grid's interpolation matters. */
        if (opacity < 1e-4)
            assert_true(picture->opacity[i] < 0.05);
        if (opacity < 0.999)
            continue;
        assert_true(picture->opacity[i] > 0.98);
        depths += fabs((double)picture->depth[i] - depth);
        solid++;
    }
    assert_true(solid >= least && solid <= most);
    if (solid > 0)
        assert_true(depths / solid < depth_slack);
    vkn_picture_free(&picture);
}

/* Checks crops with the sampling of `known`. */
static void check_crop(double depth_slack)
{
    static const struct scene_box none, cube = {{-1e4, -1e4, -1e4}, {1e4, 1e4, 1e4}, {0}};
    static const struct scene_box boxes[] = {
        {{-2, -2, -2}, {2, 2, 0.3}, {0}},           /* without the upper part */
        {{0, -2, -2}, {2, 0.1, 2}, {0}},            /* a quarter of the ball */
        {{-0.5, -0.5, -0.4}, {0.5, 0.5, 0.1}, {0}}, /* a box inside the ball */
        {{-2, -2, 1.2}, {2, 2, 3}, {0}},            /* above the ball: nothing */
        {{-2, -2, -1e30}, {2, 2, 0.3}, {0}},        /* without the upper part */
        {{-3, -3, -3}, {3, 3, 0.1}, {20, -30, 70}}, /* what is below a tilted plane */
        {{0, -2, -2}, {3, 2, 2}, {0, 0, 200}},      /* a half, turned upside down */
    };
    static const uint32_t counts[][2] = {{100, 300}, {15, 120},  {30, 120}, {0, 0},
                                         {100, 300}, {100, 300}, {30, 250}};
    struct vkn_picture *whole = picture_in(&none), *all = picture_in(&cube);
    size_t pixels = (size_t)CROP_WIDTH * CROP_HEIGHT;
    assert_memory_equal(whole->color, all->color, 3 * pixels * sizeof(float));
    assert_memory_equal(whole->opacity, all->opacity, pixels * sizeof(float));
    assert_memory_equal(whole->depth, all->depth, pixels * sizeof(float));
    vkn_picture_free(&all);
    for (size_t i = 0; i < BASE_COUNT(boxes); i++)
        check_in_box(&boxes[i], depth_slack, counts[i][0], counts[i][1]);
    /* The crop is of one picture only. */
    struct vkn_picture *again = picture_in(&none);
    assert_memory_equal(whole->color, again->color, 3 * pixels * sizeof(float));
    vkn_picture_free(&whole);
    vkn_picture_free(&again);
}

static void check_sampled_crop(enum vkn_sampling sampling, double depth_slack)
{
    const struct known before = known;
    create_sampled(sampling, 1);
    if (sampling == VKN_SAMPLING_PROPOSAL)
        set_proposal(&known.tiny);
    check_crop(depth_slack);
    destroy_sampled();
    known = before;
}

/* In dataset units. */
static double step_length(void)
{
    return sqrt(3) / (0.33 * vkn_trainer_config(known.tiny.trainer)->march.steps_per_unit);
}

/* Checks crops with all sampling methods. */
static void test_crop(void **state)
{
    (void)state;
    set_occupancy(&known.tiny, 1.0);
    check_crop(0.6 * step_length()); /* the first sample is half a step behind the face */
    check_sampled_crop(VKN_SAMPLING_UNIFORM, 0.01);
    check_sampled_crop(VKN_SAMPLING_HIERARCHICAL, 0.01);
    check_sampled_crop(VKN_SAMPLING_PROPOSAL, 0.02);
}

static void test_crop_errors(void **state)
{
    (void)state;
    struct vkn_picture_params params = {.size = sizeof params, .crop = {0, 0, 0, 1, 0, 1}};
    struct vkn_picture *picture;
    assert_int_equal(vkn_render(known.renderer, &above, &params, &picture), VKN_BAD_INPUT);
    assert_message("crop: 0 to 0 along y is empty");
    params.crop[4] = (double)NAN;
    assert_int_equal(vkn_render(known.renderer, &above, &params, &picture), VKN_BAD_INPUT);
    params.crop[4] = (double)INFINITY;
    assert_int_equal(vkn_render(known.renderer, &above, &params, &picture), VKN_BAD_INPUT);
    params.crop[4] = 1;
    params.crop_rotation[1] = -361;
    assert_int_equal(vkn_render(known.renderer, &above, &params, &picture), VKN_BAD_INPUT);
    assert_message("crop_rotation: -361 degrees about y is not from -360 to 360");
    params = (struct vkn_picture_params){.size = sizeof params, .crop_rotation = {0, 0, 5}};
    assert_int_equal(vkn_render(known.renderer, &above, &params, &picture), VKN_BAD_INPUT);
    assert_message("crop_rotation: only of use with a crop box");
    const struct vkn_render_params frames = {
        .size = sizeof frames, .run = "nowhere", .out = "nowhere", .crop_rotation = {0, 0, 5}};
    struct vkn_render_result result = {.size = sizeof result};
    assert_int_equal(vkn_run_render(&frames, &result), VKN_BAD_INPUT);
    assert_message("crop_rotation: only of use with a crop box");
    assert_null(picture);
}

/* ---- transparent pictures ------------------------------------------------------------------- */

/* Returns the RGBA pixels of the written file. The caller frees them. */
static uint8_t *write_rgba(const struct vkn_picture *picture, enum vkn_map map)
{
    struct step_tests *tests = known.tests;
    char *path = temporary_path(tests->folder, "alpha.png");
    uint8_t *rgba;
    uint32_t width, height;
    ok(vkn_picture_write(picture, map, path));
    ok(scene_image_read(path, &rgba, &width, &height));
    assert_true(width == CROP_WIDTH && height == CROP_HEIGHT);
    return rgba;
}

/* Composited on a background they equal pictures rendered on it, as floats and as bytes; at least
 * `half` pixels are partly transparent. */
static void check_transparent(uint32_t supersample, uint32_t half)
{
    struct vkn_picture_params params = {.size = sizeof params,
                                        .supersample = supersample,
                                        .background = VKN_BACKGROUND_WHITE,
                                        .transparent = true};
    struct vkn_picture *transparent, *opaque;
    uint32_t between = 0;
    ok(vkn_render(known.renderer, &above, &params, &transparent));
    uint8_t *rgba = write_rgba(transparent, VKN_MAP_RGBA);
    params.transparent = false;
    for (int white = 0; white < 2; white++) {
        params.background = white ? VKN_BACKGROUND_WHITE : VKN_BACKGROUND_BLACK;
        ok(vkn_render(known.renderer, &above, &params, &opaque));
        uint8_t *bytes = write_rgba(opaque, VKN_MAP_COLOR);
        for (size_t i = 0; i < 3ul * CROP_WIDTH * CROP_HEIGHT; i++) {
            const uint8_t *pixel = &rgba[i / 3 * 4];
            double opacity = (double)transparent->opacity[i / 3], alpha = pixel[3] / 255.0;
            double on = (double)transparent->color[i] * opacity + white * (1 - opacity);
            double byte = pixel[i % 3] * alpha + 255 * white * (1 - alpha);
            check_close(on, (double)opaque->color[i], 2e-6, 1, "composited colour", i);
            assert_true(labs(lround(byte) - bytes[i / 3 * 4 + i % 3]) <= 1);
            between += i % 3 == 0 && opacity > 0.02 && opacity < 0.98;
            if (opacity == 0)
                assert_true(transparent->color[i] == 0);
        }
        assert_memory_equal(opaque->opacity, transparent->opacity,
                            CROP_WIDTH * CROP_HEIGHT * sizeof(float));
        free(bytes);
        vkn_picture_free(&opaque);
    }
    assert_true(between > 2 * half);
    /* Nearly transparent pixels have the field's colour: y of the direction down is about 0. */
    for (size_t i = 0; i < CROP_WIDTH * CROP_HEIGHT; i++)
        if (transparent->opacity[i] > 1e-3f)
            assert_true(fabs((double)transparent->color[3 * i] - 0.5) < 0.25);
    free(rgba);
    vkn_picture_free(&transparent);
}

static void test_transparent(void **state)
{
    (void)state;
    set_occupancy(&known.tiny, 1.0);
    check_transparent(1, 5);
    check_transparent(4, 20);
}

/* Points in a box, and in a box without a surface. */
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

/* Rays have the camera's time, or the time that the renderer is fixed at. */
static void test_fixed_time(void **state)
{
    (void)state;
    struct vkn_picture picture;
    struct scene_camera camera = known.tiny.scene->splits[SCENE_TRAIN].cameras[0];
    const float times[2] = {0.75f, 0.25f};
    camera.time = times[0];
    for (int fixed = 0; fixed < 2; fixed++) {
        if (fixed)
            ok(vkn_renderer_set_time(known.renderer, 0.25));
        ok(render_picture(known.renderer, &camera, VKN_BACKGROUND_WHITE, 1, &picture));
        render_picture_free(&picture);
        struct Ray *rays = tiny_read(&known.tiny, &known.renderer->buffers.at[BIND_RAYS]);
        assert_true(rays[0].time == times[fixed]);
        free(rays);
    }
    assert_int_equal(vkn_renderer_set_time(known.renderer, -0.5), VKN_BAD_INPUT);
    assert_message("time: -0.5 is not from 0 to 1");
    assert_int_equal(vkn_renderer_set_time(known.renderer, (double)NAN), VKN_BAD_INPUT);
}

/* ---- textures and splats --------------------------------------------------------------------- */

#define COARSE 14u /* voxels too large for the pattern */
#define FINE   120u

/* A ball with a steeper density, so that views see it where its mesh is, and with two colours that
 * alternate every two points of the level. */
static void set_pattern(const struct tiny *tiny, const struct vkn_config *config)
{
    const struct step *step = &tiny->trainer->step;
    const struct field_model *model = &step->setup.model;
    const struct Level *level = &model->level[0];
    const uint32_t points = level->resolution;
    float *params = calloc(model->param_count, sizeof *params);
    assert_non_null(params);
    assert_true(model->features == 2 && config->mlp.geometry > 1);
    set_identity(params, model->layers, 2, 0, 0, 1.0);
    set_identity(params, model->layers, 2, 1, 1, 1.0);
    for (uint32_t c = 0; c < 3; c++)
        set_identity(params, model->layers + 2, 2, 1, c, c == 1 ? -1.0 : 1.0);
    set_level(model, params, false);
    for (uint32_t i = 0; i < points * points * points; i++) {
        uint32_t turn = i % points / 2 + i / points % points / 2 + i / points / points / 2;
        params[level->first + i * model->features] *= 4;
        params[level->first + i * model->features + 1] = turn % 2 ? 2.0f : -2.0f;
    }
    tiny_put(tiny, &step->buffers.at[BIND_AVERAGE], params);
    free(params);
}

static struct render_mesh make_whole(uint32_t resolution, struct render_voxels *voxels)
{
    struct render_mesh_params params = {.resolution = resolution};
    struct MeshGrid grid;
    struct render_mesh mesh;
    ok(render_mesh_grid(known.tiny.scene, &known.config, &params, &grid));
    ok(render_mesh(known.renderer, &grid, VKN_UNSEEN_KEEP, NULL, NULL, NULL, &mesh));
    voxels->edge = render_mesh_voxel(&grid);
    render_mesh_box(known.tiny.scene, &grid, params.box.rotation, &voxels->box);
    return mesh;
}

/* Intersects the ray from the ball's centre with a triangle (Moeller and Trumbore 1997). */
static bool intersects(const struct render_mesh *mesh, uint32_t triangle, const double direction[3],
                       double weights[3])
{
    double p[3][3], a[3], b[3], h[3], q[3], det = 0, v = 0, w = 0, t = 0;
    for (int c = 0; c < 3; c++)
        to_training(mesh->vertices[mesh->triangles[triangle][c]].position, p[c]);
    for (int i = 0; i < 3; i++) {
        a[i] = p[1][i] - p[0][i];
        b[i] = p[2][i] - p[0][i];
        p[0][i] = center[i] - p[0][i];
    }
    for (int i = 0; i < 3; i++) {
        h[i] = direction[(i + 1) % 3] * b[(i + 2) % 3] - direction[(i + 2) % 3] * b[(i + 1) % 3];
        q[i] = p[0][(i + 1) % 3] * a[(i + 2) % 3] - p[0][(i + 2) % 3] * a[(i + 1) % 3];
    }
    for (int i = 0; i < 3; i++) {
        det += a[i] * h[i];
        v += p[0][i] * h[i];
        w += direction[i] * q[i];
        t += b[i] * q[i];
    }
    weights[1] = v / det;
    weights[2] = w / det;
    weights[0] = 1 - weights[1] - weights[2];
    return fabs(det) > 1e-12 && t / det > 0 && fmin(weights[0], fmin(weights[1], weights[2])) >= 0;
}

/* Bilinear filtering, with pixel centres at halves. */
static double filtered(const struct render_mesh *mesh, double x, double y, int channel)
{
    double left = floor(x - 0.5), top = floor(y - 0.5), sum = 0;
    for (int i = 0; i < 4; i++) {
        size_t at[2] = {(size_t)left + (i & 1), (size_t)top + (i >> 1)};
        double share =
            (i & 1 ? x - 0.5 - left : left + 1.5 - x) * (i >> 1 ? y - 0.5 - top : top + 1.5 - y);
        sum += share * mesh->texture[3 * (at[1] * mesh->texture_size + at[0]) + (size_t)channel];
    }
    return sum;
}

/* A coarse mesh with a texture shows a pattern finer than its vertices: compared with the vertices
 * of a fine mesh. The texture has more rows than one dispatch paints. */
static void test_texture(void **state)
{
    (void)state;
    struct render_voxels voxels, fine_voxels;
    size_t charts, found = 0;
    double density, by_vertices = 0, by_texture = 0;
    set_occupancy(&known.tiny, 1.0);
    set_pattern(&known.tiny, vkn_trainer_config(known.tiny.trainer));
    struct render_mesh fine = make_whole(FINE, &fine_voxels), mesh = make_whole(COARSE, &voxels);
    ok(render_mesh_unwrap(&mesh, &voxels, 550, &charts, &density));
    ok(render_mesh_paint(known.renderer, known.tiny.scene, &voxels, NULL, NULL, &mesh));
    for (size_t v = 0; v < fine.vertex_count; v += 17) {
        double p[3], direction[3], weights[3];
        uint32_t t = 0;
        to_training(fine.vertices[v].position, p);
        for (int i = 0; i < 3; i++)
            direction[i] = p[i] - center[i];
        while (t < mesh.triangle_count && !intersects(&mesh, t, direction, weights))
            t++;
        if (t == mesh.triangle_count)
            continue; /* an edge missed by rounding */
        found++;
        const uint32_t *corner = mesh.triangles[t];
        double texel[2] = {0};
        for (int i = 0; i < 6; i++)
            texel[i % 2] += weights[i / 2] * (double)mesh.texels[corner[i / 2]][i % 2];
        for (int c = 0; c < 3; c++) {
            double exact = fine.vertices[v].color >> 8 * c & 255u, mixed = 0;
            for (int i = 0; i < 3; i++)
                mixed += weights[i] * (mesh.vertices[corner[i]].color >> 8 * c & 255u);
            by_vertices += (mixed - exact) * (mixed - exact);
            by_texture += pow(filtered(&mesh, texel[0], texel[1], c) - exact, 2);
        }
    }
    by_vertices = sqrt(by_vertices / (3.0 * (double)found));
    by_texture = sqrt(by_texture / (3.0 * (double)found));
    print_message(
        "%u places, %u charts, %.1f pixels a voxel: off by %.1f with colours of vertices, "
        "%.1f with a texture\n",
        (unsigned)found, (unsigned)charts, density, by_vertices, by_texture);
    assert_true(found > 500 && by_vertices > 25 && by_texture < 0.3 * by_vertices);
    volatile sig_atomic_t stop = 1;
    free(mesh.texture);
    assert_int_equal(
        render_mesh_paint(known.renderer, known.tiny.scene, &voxels, NULL, &stop, &mesh),
        VKN_INTERRUPTED);
    render_mesh_free(&fine);
    render_mesh_free(&mesh);
    set_field(&known.tiny, vkn_trainer_config(known.tiny.trainer), false);
}

/* Mesh, points in a box and splats of the current field. */
struct exported {
    struct render_mesh mesh, cloud;
    struct render_splats splats;
};

static struct exported export_all(const double shift[3])
{
    struct exported result;
    struct render_voxels voxels;
    struct render_points_params points = {.count = 300, .seed = 5};
    for (int i = 0; i < 3; i++) {
        points.box.low[i] = shift[i] - 2;
        points.box.high[i] = shift[i] + (i == 0 ? 0 : 2);
    }
    result.mesh = make_whole(24, &voxels);
    ok(render_points(known.renderer, known.tiny.scene, &points, NULL, NULL, &result.cloud));
    ok(render_splats(known.renderer, known.tiny.scene, &points, NULL, NULL, &result.splats));
    return result;
}

/* Positions relative to the far scene's origin equal those of the near scene. */
static void assert_moved(const float position[3], const float far[3], const double origin[3],
                         const double shift[3])
{
    for (int i = 0; i < 3; i++)
        assert_true(fabs((double)far[i] + origin[i] - shift[i] - (double)position[i]) < 1e-5);
}

/* Exports the same field in a scene that is far from its origin. */
static void test_far(void **state)
{
    (void)state;
    const double no_shift[3] = {0}, shift[3] = {512345.25, 5412345.75, -312.5};
    struct vkn_scene *scene = known.tiny.scene;
    double kept[3], origin[3];
    set_occupancy(&known.tiny, 1.0);
    memcpy(kept, scene->offset, sizeof kept);
    struct exported near = export_all(no_shift);
    for (int i = 0; i < 3; i++)
        scene->offset[i] -= shift[i] * scene->scale;
    struct exported far = export_all(shift);
    render_local_origin(scene, origin);
    memcpy(scene->offset, kept, sizeof kept);
    assert_memory_equal(far.cloud.origin, origin, sizeof origin);
    assert_memory_equal(far.splats.origin, origin, sizeof origin);
    assert_true(near.mesh.vertex_count > 100 && near.cloud.vertex_count > 100 &&
                near.splats.count > 100);
    assert_int_equal(far.mesh.vertex_count, near.mesh.vertex_count);
    assert_int_equal(far.cloud.vertex_count, near.cloud.vertex_count);
    assert_int_equal(far.splats.count, near.splats.count);
    for (size_t v = 0; v < near.mesh.vertex_count; v++)
        assert_moved(near.mesh.vertices[v].position, far.mesh.vertices[v].position, origin, shift);
    for (size_t v = 0; v < near.cloud.vertex_count; v++)
        assert_moved(near.cloud.vertices[v].position, far.cloud.vertices[v].position, origin,
                     shift);
    for (size_t n = 0; n < near.splats.count; n++) {
        assert_moved(near.splats.splats[n].position, far.splats.splats[n].position, origin, shift);
        assert_true(near.splats.splats[n].position[0] <= 0);
        for (int i = 0; i < 48; i++)
            assert_true(fabsf(near.splats.splats[n].harmonics[i] -
                              far.splats.splats[n].harmonics[i]) < 1e-2F);
    }
    for (int n = 0; n < 2; n++) {
        struct exported *result = n ? &far : &near;
        render_mesh_free(&result->mesh);
        render_mesh_free(&result->cloud);
        render_splats_free(&result->splats);
    }
}

/* Spherical harmonics of degrees up to 3 in direction d: Kerbl et al. 2023. */
static void harmonics_at(const double d[3], double y[16])
{
    double x2 = d[0] * d[0], y2 = d[1] * d[1], z2 = d[2] * d[2];
    const double all[16] = {0.28209479177387814,
                            -0.4886025119029199 * d[1],
                            0.4886025119029199 * d[2],
                            -0.4886025119029199 * d[0],
                            1.0925484305920792 * d[0] * d[1],
                            -1.0925484305920792 * d[1] * d[2],
                            0.31539156525252005 * (2 * z2 - x2 - y2),
                            -1.0925484305920792 * d[0] * d[2],
                            0.5462742152960396 * (x2 - y2),
                            -0.5900435899266435 * d[1] * (3 * x2 - y2),
                            2.890611442640554 * d[0] * d[1] * d[2],
                            -0.4570457994644658 * d[1] * (4 * z2 - x2 - y2),
                            0.3731763325901154 * d[2] * (2 * z2 - 3 * x2 - 3 * y2),
                            -0.4570457994644658 * d[0] * (4 * z2 - x2 - y2),
                            1.445305721320277 * d[2] * (x2 - y2),
                            -0.5900435899266435 * d[0] * (x2 - 3 * y2)};
    memcpy(y, all, sizeof all);
}

/* Seen from the front a splat has the field's colour; without the other harmonics it is less
 * exact. */
static void check_splat_view(const struct Splat *splat, const double d[3], double errors[2])
{
    double y[16];
    harmonics_at(d, y);
    for (int c = 0; c < 3; c++) {
        double exact = 1 / (1 + exp(-3 * d[(c + 1) % 3])), sum = 0;
        for (int n = 0; n < 16; n++)
            sum += y[n] * (double)splat->harmonics[3 * n + c];
        errors[0] += fabs(sum - exact);
        errors[1] += fabs(y[0] * (double)splat->harmonics[c] - exact);
    }
}

/* Returns the opacity from one spacing above the splat to one below. */
static double exact_opacity(const struct Splat *splat)
{
    double position[3], at[3], thickness = 0, step = 0.33 * (double)splat->spacing / 4;
    to_training(splat->position, position);
    for (int k = 0; k < 8; k++) {
        for (int i = 0; i < 3; i++)
            at[i] = position[i] + (k - 3.5) * step * (double)splat->normal[i];
        thickness += step * exp(raw_density(at, false));
    }
    return 1 - exp(-thickness);
}

static void test_splats(void **state)
{
    (void)state;
    const struct render_points_params params = {.count = 700, .seed = 5};
    struct render_splats splats, again;
    double errors[2] = {0};
    size_t views = 0, on_ball = 0;
    set_occupancy(&known.tiny, 1.0);
    ok(render_splats(known.renderer, known.tiny.scene, &params, NULL, NULL, &splats));
    ok(render_splats(known.renderer, known.tiny.scene, &params, NULL, NULL, &again));
    assert_int_equal(splats.count, 700);
    assert_memory_equal(splats.splats, again.splats, 700 * sizeof *splats.splats);
    for (size_t i = 0; i < splats.count; i++) {
        const struct Splat *splat = &splats.splats[i];
        double p[3], d[3];
        /* Splats are at points, with their normals; colours depend on the direction. */
        to_training(splat->position, p);
        double along = 0, length = distance_from_center(p);
        for (int k = 0; k < 3; k++)
            along += (double)splat->normal[k] * (p[k] - center[k]) / length;
        on_ball += length > RADIUS - 0.08 && length < RADIUS + 0.06 && along > 0.75;
        assert_true(splat->spacing > 0 && splat->spacing < 0.7f);
        assert_true(fabs((double)splat->opacity - exact_opacity(splat)) < 0.06);
        for (int n = 0; n < 20; n++) {
            double facing = 0, turn = 2.4 * n;
            d[2] = (n + 0.5) / 10 - 1;
            d[0] = sqrt(1 - d[2] * d[2]) * cos(turn);
            d[1] = sqrt(1 - d[2] * d[2]) * sin(turn);
            for (int k = 0; k < 3; k++)
                facing += d[k] * (double)splat->normal[k];
            if (facing > -0.4)
                continue;
            views++;
            check_splat_view(splat, d, errors);
        }
    }
    assert_true(on_ball > 690); /* some rays graze the haze */
    errors[0] /= 3.0 * (double)views;
    errors[1] /= 3.0 * (double)views;
    print_message("%u views: off by %.3f, by %.3f with one colour\n", (unsigned)views, errors[0],
                  errors[1]);
    assert_true(errors[0] < 0.05 && errors[0] < 0.5 * errors[1]);
    render_splats_free(&splats);
    render_splats_free(&again);
    volatile sig_atomic_t stop = 1;
    assert_int_equal(render_splats(known.renderer, known.tiny.scene, &params, NULL, &stop, &splats),
                     VKN_INTERRUPTED);
    render_splats_free(&splats);
}

/* ---- the grid ------------------------------------------------------------------------------ */

static void test_grid(void **state)
{
    (void)state;
    struct vkn_scene scene = {.scale = 0.5f, .offset = {0.5f, 0.25f, 0}, .aabb_scale = 2};
    struct vkn_config config = {0};
    struct render_mesh_params params = {.resolution = 100};
    struct MeshGrid grid;
    struct scene_box box;
    const double *low = box.low, *high = box.high;
    ok(render_mesh_grid(&scene, &config, &params, &grid));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(grid.points[i], 101);
        assert_true(grid.origin[i] == 0);
    }
    assert_true(fabs(render_mesh_voxel(&grid) - 0.02) < 1e-7);
    /* Half of the light is lost in 1/128 of the unit cube, 1/64 of a dataset unit. */
    assert_true(fabs(render_mesh_threshold(&grid) / 64 - log(2)) < 1e-6);
    render_mesh_box(&scene, &grid, params.box.rotation, &box);
    assert_true(fabs(low[0] + 1) < 1e-6 && fabs(low[1] + 0.5) < 1e-6 && fabs(high[2] - 2) < 1e-6);

    /* 1 x 0.33 x 0.2 in voxels of 0.1. */
    params = (struct render_mesh_params){
        .box = {{-1, 0, 1}, {0, 0.33, 1.2}, {0}}, .resolution = 10, .threshold = 7};
    ok(render_mesh_grid(&scene, &config, &params, &grid));
    assert_int_equal(grid.points[0], 11);
    assert_int_equal(grid.points[1], 5);
    assert_int_equal(grid.points[2], 3);
    render_mesh_box(&scene, &grid, params.box.rotation, &box);
    assert_true(fabs(low[1] + 0.035) < 1e-6 && fabs(high[1] - 0.365) < 1e-6);
    assert_true(fabs(render_mesh_threshold(&grid) - 7) < 1e-5);
}

static void refuse(const struct render_mesh_params *params, const char *message)
{
    struct vkn_scene scene = {.scale = 0.5f, .offset = {0.5f, 0.25f, 0}, .aabb_scale = 2};
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
    params = (struct render_mesh_params){.box.high = {1, 1, 0}, .resolution = 8};
    refuse(&params, "crop: 0 to 0 along z is empty");
    params = (struct render_mesh_params){.box = {{2, 0, 0}, {3, 1, 1}, {0}}, .resolution = 8};
    refuse(&params, "crop: 2 to 3 along x is outside of what was trained, -2 to 2");
    params.box.rotation[2] = 45; /* by its corner inside */
    struct vkn_scene scene = {.scale = 0.5f, .offset = {0.5f, 0.25f, 0}, .aabb_scale = 2};
    struct vkn_config config = {0};
    struct MeshGrid grid;
    ok(render_mesh_grid(&scene, &config, &params, &grid));
    params = (struct render_mesh_params){.resolution = 8, .threshold = (double)INFINITY};
    refuse(&params, "threshold: inf is not a density");
}

#define HOLLOW_TEST(test) cmocka_unit_test_setup_teardown(test, make_hollow, make_full)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_surface),
        cmocka_unit_test(test_rotated_surface),
        cmocka_unit_test(test_rotated_cut),
        cmocka_unit_test(test_empty_cells),
        HOLLOW_TEST(test_keep),
        HOLLOW_TEST(test_fill),
        HOLLOW_TEST(test_drop),
        HOLLOW_TEST(test_box),
        cmocka_unit_test(test_no_views),
        cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_few_points),
        cmocka_unit_test(test_texture),
        cmocka_unit_test(test_far),
        cmocka_unit_test(test_splats),
        cmocka_unit_test(test_without_grid),
        cmocka_unit_test(test_with_proposal),
        cmocka_unit_test(test_object),
        cmocka_unit_test(test_crop),
        cmocka_unit_test(test_crop_errors),
        cmocka_unit_test(test_transparent),
        cmocka_unit_test(test_fixed_time), /* last: it fixes the time */
        cmocka_unit_test(test_grid),
        cmocka_unit_test(test_grid_errors),
        cmocka_unit_test(test_no_messages),
    };
    setenv("VKNERF_VALIDATION", "1", 1);
    return cmocka_run_group_tests(tests, create_known, destroy_known);
}
