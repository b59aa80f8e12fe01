/* Tests mesh_points, mesh_samples, mesh_values and mesh_color_samples: at which grid points a mesh
 * evaluates the field, and the values there, in bounded and contracted space. */
#include "certify/fixture.h"

#define NEW_LAYER  6u /* index of the slab's first new layer */
#define LAYERS     4u
#define RESOLUTION 16u

static const uint32_t points[3] = {13, 11, 9};
static const size_t layer = (size_t)13 * 11;

struct slab {
    struct fixture fixture;
    struct reference_space space;
    struct MeshGrid grid;
    uint32_t *bits;
};

static struct slab create_slab(struct gpu_device *device, bool contracted)
{
    struct vkn_config settings = {
        .scene.aabb_scale = 2,
        .scene.contraction = contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE,
        .batch.max_rays = 1024,
    };
    struct slab slab = {.fixture = fixture_configure(device, settings)};
    struct random random = {contracted ? 91 : 92};
    slab.space = (struct reference_space){.side = 2, .contracted = contracted};
    slab.grid = (struct MeshGrid){.points = {points[0], points[1], points[2]},
                                  .layers = LAYERS,
                                  .origin = {-1.15f, -0.43f, -2.05f},
                                  .axes = {0.8f, 0.6f, 0, -0.48f, 0.64f, 0.6f, 0.36f, -0.48f, 0.8f},
                                  .spacing = 0.3137f,
                                  .threshold = 1.5f,
                                  .time = 0.375f};
    fixture_allocate(&slab.fixture, 1, 1);
    struct State state = {.live_count = 0};
    fixture_put(&slab.fixture, BIND_STATE, &state, sizeof state);
    fixture_put(&slab.fixture, BIND_MESH, &slab.grid, sizeof slab.grid);
    uint64_t size = slab.fixture.buffers[BIND_OCCUPANCY_BITS].size;
    slab.bits = base_alloc(size, 1);
    for (uint64_t i = 0; i < size / 4; i++)
        slab.bits[i] = random_word(&random);
    fixture_put(&slab.fixture, BIND_OCCUPANCY_BITS, slab.bits, size);
    return slab;
}

static void destroy_slab(struct slab *slab)
{
    free(slab->bits);
    fixture_destroy(&slab->fixture);
}

/* Computes the position of value i; the first MESH_OVERLAP layers belong to the previous slab. */
static void position_of(const struct slab *slab, size_t i, uint32_t at[3], double position[3])
{
    at[0] = (uint32_t)(i % points[0]);
    at[1] = (uint32_t)(i / points[0] % points[1]);
    at[2] = (uint32_t)(i / layer) + NEW_LAYER - MESH_OVERLAP;
    for (int k = 0; k < 3; k++) {
        position[k] = slab->grid.origin[k];
        for (int axis = 0; axis < 3; axis++)
            position[k] += (double)slab->grid.axes[3 * axis + k] * slab->grid.spacing * at[axis];
    }
}

static double reach_of(const double position[3])
{
    double reach = 0;
    for (int k = 0; k < 3; k++)
        reach = fmax(reach, 2 * fabs(position[k] - 0.5));
    return reach;
}

/* The cubes have sides 1 and 2; a third cascade is all of contracted space. */
static bool occupied(const struct slab *slab, const double position[3])
{
    double reach = reach_of(position), unit[3];
    uint32_t cascade = reach <= 1 ? 0 : reach <= 2 ? 1 : 2, cell[3];
    const struct reference_space cube = {.side = cascade == 0 ? 1 : 2};
    if (cascade == 2 && !slab->space.contracted)
        return false;
    reference_to_unit(cascade == 2 ? &slab->space : &cube, position, unit);
    for (int k = 0; k < 3; k++)
        cell[k] = (uint32_t)(unit[k] * RESOLUTION);
    uint64_t cells = (uint64_t)RESOLUTION * RESOLUTION * RESOLUTION;
    return reference_grid_bit(slab->bits, cascade * cells + reference_morton(cell));
}

static bool wanted(const struct slab *slab, size_t i)
{
    uint32_t at[3];
    double position[3];
    bool within = true;
    position_of(slab, i, at, position);
    for (int k = 0; k < 3; k++)
        within = within && at[k] > 0 && at[k] + 1 < points[k];
    return within && occupied(slab, position);
}

/* Exactly the points in occupied cells are listed, once each; others get the value of empty space.
 * Returns how many; the caller frees *list. */
static uint32_t check_points(struct slab *slab, uint32_t **list)
{
    struct fixture *fixture = &slab->fixture;
    size_t first = MESH_OVERLAP * layer, end = first + LAYERS * layer;
    struct State state;
    fixture_run(fixture, "mesh_points", (struct Push){.a = NEW_LAYER},
                fixture_groups(fixture, (uint32_t)(LAYERS * layer)));
    fixture_get(fixture, BIND_STATE, &state, sizeof state);
    float *values = fixture_read(fixture, BIND_MESH_VALUES);
    uint8_t *listed = base_alloc(end, 1);
    *list = fixture_read(fixture, BIND_MESH_POINTS);
    for (uint32_t i = 0; i < state.live_count; i++) {
        check_that((*list)[i] >= first && (*list)[i] < end);
        listed[(*list)[i]]++;
    }
    check_poisoned(values, 0, first);
    for (size_t i = first; i < end; i++) {
        check_equal(listed[i], wanted(slab, i));
        if (listed[i])
            check_poisoned(values, i, i + 1);
        else
            check_that(values[i] == (float)-MESH_LIMIT);
    }
    check_poisoned(values, end, fixture->buffers[BIND_MESH_VALUES].size / 4);
    free(values);
    free(listed);
    return state.live_count;
}

static void check_samples(struct slab *slab, const uint32_t *list, struct Push push)
{
    struct fixture *fixture = &slab->fixture;
    fixture_run(fixture, "mesh_samples", push, fixture_groups(fixture, push.b));
    struct Ray *rays = fixture_read(fixture, BIND_RAYS);
    struct Sample *samples = fixture_read(fixture, BIND_SAMPLES);
    for (uint32_t i = 0; i < push.b; i++) {
        uint32_t at[3];
        double position[3];
        position_of(slab, list[push.a + i], at, position);
        check_that(samples[i].t == 0 && samples[i].width == 0 && samples[i].ray == i);
        check_that(rays[i].time == slab->grid.time);
        for (int k = 0; k < 3; k++)
            check_close(rays[i].origin[k], position[k], 1e-6, 1, "sample", i);
    }
    check_poisoned(samples, push.b * sizeof *samples / 4, fixture->buffers[BIND_SAMPLES].size / 4);
    free(rays);
    free(samples);
}

static void check_values(struct slab *slab, const uint32_t *list, struct Push push)
{
    struct fixture *fixture = &slab->fixture;
    struct random random = {4};
    float *field = random_floats(&random, 4ull * push.b, -6, 9);
    for (uint32_t i = 0; i < push.b; i++)
        field[4 * i + 3] = expf(field[4 * i + 3]);
    field[3] = (float)NAN;
    field[7] = 0;
    field[11] = INFINITY;
    fixture_put(fixture, BIND_FIELD, field, 16ull * push.b);
    fixture_run(fixture, "mesh_values", push, fixture_groups(fixture, push.b));
    float *values = fixture_read(fixture, BIND_MESH_VALUES);
    for (uint32_t i = 0; i < push.b; i++) {
        uint32_t at[3];
        double position[3];
        position_of(slab, list[push.a + i], at, position);
        double above = log((double)field[4 * i + 3]) - (double)slab->grid.threshold +
                       log(reference_shrinking(&slab->space, position));
        double expected = i == 0 ? -MESH_LIMIT : fmin(fmax(above, -MESH_LIMIT), MESH_LIMIT);
        check_close(values[list[push.a + i]], expected, 1e-5, 1, "value", i);
    }
    for (uint32_t i = 0; i < push.a; i++)
        check_poisoned(values, list[i], list[i] + 1);
    free(values);
    free(field);
}

/* mesh_color_samples makes rays towards each vertex from above, at the grid's time. */
static void check_views(struct slab *slab)
{
    struct fixture *fixture = &slab->fixture;
    const struct MeshVertex vertices[2] = {
        {.position = {0.25f, 0.5f, 0.75f}, .normal = {0, -1, 0}},
        {.position = {-1, 2, 3}, .normal = {0.6f, 0, 0.8f}},
    };
    fixture_put(fixture, BIND_MESH_VERTICES, vertices, sizeof vertices);
    fixture_run(fixture, "mesh_color_samples", (struct Push){.a = 2}, 1);
    struct Ray rays[2];
    fixture_get(fixture, BIND_RAYS, rays, sizeof rays);
    for (size_t i = 0; i < 2; i++) {
        check_that(rays[i].time == slab->grid.time);
        check_memory(rays[i].origin, vertices[i].position, sizeof rays[i].origin);
        for (int k = 0; k < 3; k++)
            check_that(rays[i].direction[k] == -vertices[i].normal[k]);
    }
}

static void check_slab(struct gpu_device *device, bool contracted, uint32_t least)
{
    struct slab slab = create_slab(device, contracted);
    uint32_t *list, count = check_points(&slab, &list);
    check_that(count > least);
    struct Push push = {.a = 9, .b = count - 9, .c = NEW_LAYER};
    check_samples(&slab, list, push);
    check_values(&slab, list, push);
    check_views(&slab);
    free(list);
    destroy_slab(&slab);
}

static void test_bounded(struct gpu_device *device)
{
    check_slab(device, false, 20);
}

static void test_contracted(struct gpu_device *device)
{
    check_slab(device, true, 60);
}

static const struct certify_test tests[] = {
    TEST(test_bounded),
    TEST(test_contracted),
};
const struct certify_part certify_mesh = {"mesh", tests, BASE_COUNT(tests)};
