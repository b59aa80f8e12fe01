/* Tests the occupancy grid's passes: update, threshold, packing, and cells that no camera sees. */
#include "certify/lenses.h"
#include "certify/occupancy.h"

/* ---- update and threshold ------------------------------------------------------------------ */

/* Returns the optical thickness of a smallest step at the cell's random point. */
static double thickness(const struct fixture *fixture, const struct reference_field *field,
                        uint32_t step, uint32_t index)
{
    const struct reference_space space = reference_space(&fixture->settings);
    uint32_t resolution = fixture->constants.values[SPEC_RESOLUTION], cell[3];
    double inside[3], position[3];
    reference_random_unit(fixture->config.seed, step, index / 4, 3u + 1u + index % 4, inside);
    reference_morton_cell(index % occupancy_cells_of(fixture), cell);
    reference_cell_position(&space, resolution, index / occupancy_cells_of(fixture), cell, inside,
                            position);
    return reference_density(field, position) * fixture->config.step_min;
}

/* Computes four cells from `first` on: all decay; during warm-up all seen ones are then raised to
 * the field's densities, later a random one and the first occupied one. */
static void expect_group(const struct fixture *fixture, const struct reference_field *field,
                         const struct State *state, const float *before, uint32_t first,
                         double after[4])
{
    uint32_t bits[3], occupied = 4;
    reference_random_bits(fixture->config.seed, state->step, first / 4, 3u, bits);
    for (uint32_t k = 0; k < 4; k++) {
        double value = before[first + k];
        after[k] = value > 0 ? (float)value * (double)fixture->config.occupancy_decay : value;
    }
    for (uint32_t k = 4; k > 0; k--) {
        uint32_t cell = (k - 1 + bits[0] / 4) % 4;
        if (cell != bits[0] % 4 && after[cell] > state->threshold)
            occupied = cell;
    }
    for (uint32_t k = 0; k < 4; k++)
        if (after[k] >= 0 && (state->step < OCCUPANCY_WARMUP || k == bits[0] % 4 || k == occupied))
            after[k] = fmax(after[k], thickness(fixture, field, state->step, first + k));
}

/* Checks all cells; returns the mean of the innermost cascade. */
static double check_update(const struct fixture *fixture, const struct reference_field *field,
                           const struct State *state, const float *before, const float *device)
{
    uint32_t cells = occupancy_cells_of(fixture);
    /* A ReLU's output near its kink is a rounding error. */
    double least = field->activation == VKN_DENSITY_RELU ? (double)fixture->config.step_min : 0;
    double sum = 0;
    for (uint32_t first = 0; first < cells * occupancy_cascades_of(fixture); first += 4) {
        double after[4];
        expect_group(fixture, field, state, before, first, after);
        for (uint32_t k = 0; k < 4; k++) {
            check_close(device[first + k], after[k], fixture->backend.f16 ? 2e-2 : 1e-4,
                        fabs(after[k]) + least, "cell", first + k);
            check_that(before[first + k] >= 0 || device[first + k] == before[first + k]);
            sum += first < cells ? fmax(after[k], 0) : 0;
        }
    }
    return sum / cells;
}

static void check_threshold(struct fixture *fixture, double mean, float configured)
{
    struct State state;
    fixture->config.occupancy_threshold = configured;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    fixture_run(fixture, "threshold_occupancy", (struct Push){0}, 1);
    fixture_get(fixture, BIND_STATE, &state, sizeof state);
    check_close(state.threshold, fmin(configured, mean), 1e-4, mean, "threshold", 0);
}

#define VARIANTS 12u

/* Variants: cubes with one and three cascades and contracted space, each with its own activation of
 * the density; during warm-up and later. */
static void check_path(struct gpu_device *device, const struct backend_case *path, bool layers,
                       uint32_t n)
{
    static const struct space_case spaces[] = {
        {1, false, VKN_DENSITY_EXP}, {4, false, VKN_DENSITY_SOFTPLUS}, {2, true, VKN_DENSITY_RELU}};
    static const uint32_t steps[] = {0, 240, 256, 1008};
    struct fixture fixture = layers ? occupancy_fixture_of_layers(device, path, spaces[n / 4])
                                    : occupancy_fixture_on(device, path, spaces[n / 4], 16);
    uint32_t count = occupancy_cells_of(&fixture) * occupancy_cascades_of(&fixture);
    /* Odd variants have fewer workgroups than groups of cells: each takes several groups. */
    uint32_t groups = n % 2 ? 3 : fixture_groups(&fixture, count / 4);
    /* With a threshold of 0, as before training, empty cells must not count as occupied. */
    struct State counts = {.step = steps[n % 4], .threshold = n % 4 == 3 ? 0 : 0.01f};
    counts.dispatches[DISPATCH_OCCUPANCY].x = groups;
    float *before = occupancy_random_values(count, 600 + n),
          *params = occupancy_random_params(&fixture);
    fixture_put(&fixture, BIND_STATE, &counts, sizeof counts);
    fixture_put(&fixture, BIND_OCCUPANCY, before, 4ull * count);
    occupancy_put_params(&fixture, params);
    occupancy_run_update(&fixture, groups);
    float *values = fixture_read(&fixture, BIND_OCCUPANCY);
    struct reference_field field = reference_field(&fixture.settings, &fixture.model, params);
    double mean = check_update(&fixture, &field, &counts, before, values);
    check_threshold(&fixture, mean, 1e9f);
    check_threshold(&fixture, mean, (float)mean / 3);
    reference_field_destroy(&field);
    free(values);
    free(before);
    free(params);
    fixture_destroy(&fixture);
}

static void test_update(struct gpu_device *device)
{
    struct backend_case paths[MAX_CASES];
    size_t count = list_backends(device, paths);
    for (uint32_t n = 0; n < VARIANTS; n++)
        check_path(device, &paths[0], false, n);
    for (size_t p = 1; p < count; p++)
        if (differs_forward(&paths[p]))
            check_path(device, &paths[p], false, p % VARIANTS);
}

/* Variants of each kind: activations, cascades, warm-up and later, few workgroups and many. */
static void test_layers(struct gpu_device *device)
{
    static const uint32_t variants[] = {0, 3, 6, 9};
    struct backend_case paths[MAX_CASES];
    size_t count = list_backends(device, paths);
    for (size_t i = 0; i < BASE_COUNT(variants); i++)
        check_path(device, &paths[0], true, variants[i]);
    for (uint32_t p = 1; p < count && p < 3; p++)
        check_path(device, &paths[p], true, 8 - 3 * p);
}

/* ---- shares -------------------------------------------------------------------------------- */

#define SHARES 3u

static float *update_share(struct fixture *fixture, const float *before, uint32_t share,
                           uint32_t shares)
{
    uint32_t count = occupancy_cells_of(fixture) * occupancy_cascades_of(fixture);
    const struct State counts = {.step = 0, .threshold = 0.01f};
    fixture->config.cell_share = share;
    fixture->config.cell_shares = shares;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    fixture_put(fixture, BIND_STATE, &counts, sizeof counts);
    fixture_put(fixture, BIND_OCCUPANCY, before, 4ull * count);
    occupancy_run_update(fixture, fixture_groups(fixture, count / 4));
    return fixture_read(fixture, BIND_OCCUPANCY);
}

/* Each cell is raised in one share and only decayed in the others; shares are of similar size. */
static void check_shares(struct fixture fixture)
{
    uint32_t count = occupancy_cells_of(&fixture) * occupancy_cascades_of(&fixture),
             raised[SHARES] = {0}, all = 0;
    float *before = occupancy_random_values(count, 700),
          *params = occupancy_random_params(&fixture);
    occupancy_put_params(&fixture, params);
    float *whole = update_share(&fixture, before, 0, 1), *shares[SHARES];
    for (uint32_t i = 0; i < SHARES; i++)
        shares[i] = update_share(&fixture, before, i, SHARES);
    for (uint32_t cell = 0; cell < count; cell++) {
        float factor = before[cell] > 0 ? fixture.config.occupancy_decay : 1;
        float decayed = before[cell] * factor;
        uint32_t by = 0;
        for (uint32_t i = 0; i < SHARES; i++) {
            bool is_raised = shares[i][cell] != decayed;
            check_that(shares[i][cell] == (is_raised ? whole[cell] : decayed));
            raised[i] += is_raised;
            by += is_raised;
        }
        check_equal(by, whole[cell] != decayed);
        all += by;
    }
    for (uint32_t i = 0; i < SHARES; i++) {
        check_that(raised[i] > all / SHARES / 2);
        free(shares[i]);
    }
    free(whole);
    free(before);
    free(params);
    fixture_destroy(&fixture);
}

static void test_shares(struct gpu_device *device)
{
    const struct backend_case path = {.precision = VKN_PRECISION_FP32};
    check_shares(occupancy_fixture(device, (struct space_case){1, false, 0}, 32));
    check_shares(occupancy_fixture_of_layers(device, &path, (struct space_case){4, false, 0}));
}

/* After the warm-up every seen cell is raised at some time. */
static void test_every_cell(struct gpu_device *device)
{
    struct fixture fixture = occupancy_fixture(device, (struct space_case){1, false, 0}, 16);
    uint32_t cells = occupancy_cells_of(&fixture);
    float *values = base_alloc(cells, sizeof *values), *params = occupancy_random_params(&fixture);
    fixture_put(&fixture, BIND_PARAMS, params, 4ull * fixture.model.param_count);
    fixture_put(&fixture, BIND_OCCUPANCY, values, 4ull * cells);
    for (uint32_t step = 256; step < 256 + 80 * 16; step += 16) {
        struct State counts = {.step = step, .threshold = 1e9f};
        fixture_put(&fixture, BIND_STATE, &counts, sizeof counts);
        fixture_run_variant(&fixture, "update_occupancy", FIELD_VALUES,
                            (struct Push){.b = fixture.local_size},
                            fixture_groups(&fixture, cells / 4));
    }
    fixture_get(&fixture, BIND_OCCUPANCY, values, 4ull * cells);
    for (uint32_t i = 0; i < cells; i++)
        check_that(values[i] > 0);
    free(values);
    free(params);
    fixture_destroy(&fixture);
}

/* ---- pack ---------------------------------------------------------------------------------- */

/* Few cells are above the threshold, so that most blocks and outer cells depend on a single one;
 * more are exactly at it, which is not occupied. */
static void check_pack(struct fixture *fixture, uint32_t seed)
{
    struct random random = {seed};
    uint32_t count = occupancy_cells_of(fixture) * occupancy_cascades_of(fixture);
    const struct State state = {.threshold = 0.25f};
    float *values = base_alloc(count, sizeof *values);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t kind = random_below(&random, 300);
        values[i] = kind == 0   ? 0.2500001f
                    : kind < 50 ? state.threshold
                                : (float)random_between(&random, -1, 0.25);
    }
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_put(fixture, BIND_OCCUPANCY, values, 4ull * count);
    fixture_poison(fixture, BIND_OCCUPANCY_BITS);
    for (uint32_t cascade = 0; cascade < occupancy_cascades_of(fixture); cascade++)
        fixture_run(fixture, "pack_occupancy",
                    (struct Push){.b = fixture->local_size, .c = cascade},
                    fixture_groups(fixture, count / 512) + 1);
    uint32_t *device = fixture_read(fixture, BIND_OCCUPANCY_BITS);
    const struct reference_space space = reference_space(&fixture->settings);
    struct reference_grid grid =
        reference_grid(&space, fixture->constants.values[SPEC_RESOLUTION],
                       occupancy_cascades_of(fixture), values, state.threshold);
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        if (grid.occupied[i] != reference_grid_bit(device, i))
            check_fail("cell %u of cascade %u: bit %d", i % occupancy_cells_of(fixture),
                       i / occupancy_cells_of(fixture), reference_grid_bit(device, i));
        any = (i % 512 && any) || grid.occupied[i];
        if (i % 512 == 511)
            check_equal(device[count / 32 + i / 512] != 0, any);
    }
    free(device);
    free(grid.occupied);
    free(values);
}

static void test_pack(struct gpu_device *device)
{
    static const struct space_case spaces[] = {
        {1, false, 0}, {2, false, 0}, {8, false, 0}, {2, true, 0}};
    static const uint32_t resolutions[] = {16, 32};
    for (uint32_t n = 0; n < 8; n++) {
        struct fixture fixture = occupancy_fixture(device, spaces[n / 2], resolutions[n % 2]);
        check_pack(&fixture, 700 + n);
        fixture_destroy(&fixture);
    }
}

/* ---- unseen cells -------------------------------------------------------------------------- */

static void test_unseen(struct gpu_device *device)
{
    const struct space_case cube = {4, false, 0}, contracted = {2, true, 0};
    struct random random = {90};
    struct scene_camera views[3] = {random_camera(&random, 40, 30, 1.5, false),
                                    random_camera(&random, 30, 50, 1.2, true),
                                    random_camera(&random, 20, 20, 0.3, true)};
    views[0].focal_x *= 20; /* so narrow that it sees a cell's centre but no corner */
    views[0].focal_y *= 20;
    occupancy_check_unseen(device, cube, views, 1, 5, 0);
    occupancy_check_unseen(device, cube, views, 3, 1024,
                           0); /* far more than cells, as in training */
    occupancy_check_unseen(device, contracted, views, 1, 5, 0);
    occupancy_check_unseen(device, contracted, views, 3, 1024, 0);
    occupancy_check_unseen(device, cube, views, 3, 1024, 1.3f);
    occupancy_check_unseen(device, contracted, views, 3, 1024, 5);
}

/* A fisheye inside the cube also sees cells behind it, except beyond its range. */
static void test_unseen_by_fisheye(struct gpu_device *device)
{
    struct random random = {91};
    struct scene_camera view = random_camera(&random, 60, 14, 0.3, false);
    view.lens = VKN_LENS_FISHEYE;
    view.k2 = -0.004F; /* reaches 1 / (0.02)^(1/4) = 2.66 = 152 degrees */
    view.focal_x = view.focal_y = 12;
    check_that(scene_camera_limit(&view) > 2.5 && scene_camera_limit(&view) < 2.7);
    occupancy_check_unseen(device, (struct space_case){4, false, 0}, &view, 1, 50, 0);
}

/* A whole panorama sees everything, also directly behind and above it; a partial one does not. */
static void test_unseen_by_panorama(struct gpu_device *device)
{
    struct random random = {92};
    struct scene_camera view = random_camera(&random, 64, 32, 0.3, false);
    view.lens = VKN_LENS_EQUIRECTANGULAR;
    view.focal_x = view.focal_y = (float)(32 / M_PI);
    view.center_x = 32;
    view.center_y = 16;
    occupancy_check_unseen(device, (struct space_case){4, false, 0}, &view, 1, 50, 0);
    occupancy_check_unseen(device, (struct space_case){4, true, 0}, &view, 1, 50, 5);
    view.focal_x = view.focal_y = 14;
    occupancy_check_unseen(device, (struct space_case){4, false, 0}, &view, 1, 50, 0);
    /* In the grid's centre, along its axes: cells' corners are in the seam and at the poles. */
    view.focal_x = view.focal_y = (float)(32 / M_PI);
    const float straight[12] = {1, 0, 0, 0.5F, 0, 1, 0, 0.5F, 0, 0, 1, 0.5F};
    memcpy(view.pose, straight, sizeof straight);
    occupancy_check_unseen(device, (struct space_case){4, false, 0}, &view, 1, 50, 0);
}

/* Every lens in the grid's centre, along its axes, with cells' corners directly behind it, and in
 * random poses. */
static void test_unseen_by_every_lens(struct gpu_device *device)
{
    struct random random = {93};
    const float straight[12] = {1, 0, 0, 0.5F, 0, 1, 0, 0.5F, 0, 0, 1, 0.5F};
    for (size_t i = 0; i < BASE_COUNT(certify_lenses); i++) {
        struct scene_camera view = certify_lenses[i].camera;
        memcpy(view.pose, straight, sizeof straight);
        occupancy_check_unseen(device, (struct space_case){4, false, 0}, &view, 1, 50, 0);
        const struct scene_camera placed = random_camera(&random, 8, 8, 0.3, false);
        memcpy(view.pose, placed.pose, sizeof view.pose);
        occupancy_check_unseen(device, (struct space_case){4, false, 0}, &view, 1, 50, 0);
    }
}

static const struct certify_test tests[] = {
    TEST_BOTH(test_update),
    TEST_BOTH(test_layers),
    TEST_BOTH(test_shares),
    TEST_BOTH(test_every_cell),
    TEST_BOTH(test_pack),
    TEST_BOTH(test_unseen),
    TEST_BOTH(test_unseen_by_fisheye),
    TEST_BOTH(test_unseen_by_panorama),
    TEST_BOTH(test_unseen_by_every_lens),
};
const struct certify_part certify_occupancy = {"occupancy", tests, BASE_COUNT(tests)};
