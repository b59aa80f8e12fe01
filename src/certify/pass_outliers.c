/* Tests the passes of loss.robust: the marking of outlier cells against a reference, the running
 * quantile of errors, and that rays through outlier cells have no weight. */
#include "certify/rays.h"

#define VIEWS 3u
#define CELLS 64u /* of the error map in a view */
#define EDGE  4u
#define RAYS  512u

static const uint32_t sizes[VIEWS][2] = {{37, 23}, {31, 31}, {16, 40}};

struct map {
    struct State state;
    struct ErrorCell cells[VIEWS * CELLS + 1];
};

/* Cameras are in another order than the views of the map, as with a curriculum. */
static uint32_t first_cell(uint32_t camera)
{
    return (camera + 1) % VIEWS * CELLS;
}

static struct fixture fixture_of(struct gpu_device *device, struct vkn_config settings)
{
    settings.scene.aabb_scale = 1;
    settings.batch.max_rays = RAYS;
    settings.loss.robust = VKN_SWITCH_ON;
    settings.seed = 4;
    struct fixture fixture = fixture_configure(device, settings);
    fixture.config.camera_count = VIEWS;
    fixture.config.cell_edge = EDGE;
    fixture.config.error_cells = VIEWS * CELLS;
    fixture_allocate(&fixture, VIEWS, 37u * 23 + 31 * 31 + 16 * 40);
    struct random random = {3};
    struct Camera cameras[VIEWS];
    for (uint32_t v = 0, first = 0; v < VIEWS; v++) {
        struct scene_camera camera = random_camera(&random, sizes[v][0], sizes[v][1], 1.6, false);
        cameras[v] = setup_camera(&camera);
        cameras[v].first_pixel = first;
        cameras[v].view = v;
        cameras[v].first_cell = first_cell(v);
        cameras[v].cell_columns = (sizes[v][0] + EDGE - 1) / EDGE;
        first += sizes[v][0] * sizes[v][1];
    }
    fixture_put(&fixture, BIND_CAMERAS, cameras, sizeof cameras);
    return fixture;
}

/* Fills a map with patches of large errors, cells without a ray, and marks. */
static void fill(struct map *map, uint64_t seed)
{
    struct random random = {seed};
    *map = (struct map){.state = {.ray_count = RAYS}};
    for (uint32_t i = 0; i < VIEWS * CELLS; i++) {
        double large = i / 3 % 8 < 3 ? 0.03 : 0.002;
        float error = (float)random_between(&random, 0.2 * large, 2 * large);
        bool seen = random_below(&random, 10) > 0, marked = random_below(&random, 4) == 0;
        map->cells[i].error = !seen ? 0 : marked ? -error : error;
    }
    map->cells[VIEWS * CELLS].error = 0.0055f;
}

/* Huber loss of a difference, with the default delta. */
static double huber(double difference)
{
    return difference <= 0.1 ? difference * difference / 2 : 0.1 * (difference - 0.05);
}

/* Marks the cells of one turn as the head of shaders/rays/mark_outliers.comp says. Returns the
 * numbers of cells above the quantile, with rays, and of outlier cells. */
static struct ErrorCell reference_mark(const struct map *before, uint32_t turn, bool marks,
                                       struct map *after)
{
    double quantile = (double)before->cells[VIEWS * CELLS].error;
    double far_above = fmax(huber(0.15) / huber(0.1) * quantile, huber(0.14));
    double above = fmax(huber(0.12) / huber(0.1) * quantile, huber(0.14));
    struct ErrorCell summary = {.error = (float)quantile};
    for (uint32_t v = 0; v < VIEWS; v++) {
        int columns = (int)((sizes[v][0] + EDGE - 1) / EDGE);
        int rows = (int)((sizes[v][1] + EDGE - 1) / EDGE);
        for (int i = 0; i < columns * rows; i++) {
            int column = i % columns, row = i / columns;
            double sums[2] = {0};
            uint32_t counts[2] = {0}, beside = 0;
            float own = fabsf(before->cells[first_cell(v) + (uint32_t)i].error);
            if (column % 2 != (int)(turn % 2) || row % 2 != (int)(turn / 2) || own == 0)
                continue;
            for (int y = row - 2; y <= row + 2; y++)
                for (int x = column - 2; x <= column + 2; x++) {
                    bool near = abs(y - row) < 2 && abs(x - column) < 2;
                    if (x < 0 || y < 0 || x >= columns || y >= rows)
                        continue;
                    float error = before->cells[first_cell(v) + (uint32_t)(y * columns + x)].error;
                    for (int k = 0; k < (near ? 2 : 1) && error != 0; k++) {
                        sums[k] += (double)fabsf(error);
                        counts[k]++;
                    }
                    beside += near && error < 0 && (x != column || y != row);
                }
            double near_error = sums[1] / counts[1];
            bool outlier =
                marks && (sums[0] / counts[0] > far_above || (near_error > above && beside >= 2));
            after->cells[first_cell(v) + (uint32_t)i].error = outlier ? -own : own;
            summary.low += near_error > quantile;
            summary.high++;
            summary.rays += outlier;
        }
    }
    return summary;
}

static void check_marks(struct fixture *fixture, uint32_t step, bool marks)
{
    struct map before, expected, map;
    fill(&before, 7 + step);
    before.state.step = step;
    expected = before;
    const struct ErrorCell summary = reference_mark(&before, step / 16 % 4, marks, &expected);
    fixture_put(fixture, BIND_STATE, &before, sizeof before);
    fixture_run(fixture, "mark_outliers", (struct Push){0}, 2); /* one workgroup takes two views */
    fixture_get(fixture, BIND_STATE, &map, sizeof map);
    for (uint32_t i = 0; i < VIEWS * CELLS; i++)
        if (map.cells[i].error != expected.cells[i].error)
            check_fail("step %u, cell %u: %g instead of %g", step, i, (double)map.cells[i].error,
                       (double)expected.cells[i].error);
    check_memory(&map.cells[VIEWS * CELLS], &summary, sizeof summary);
    check_equal(summary.high > 0, 1);
    check_equal(summary.rays > 0 && summary.rays < summary.high, marks);
}

/* Cells are marked from step 1000 on, or after 35 % of a shorter training; never before. */
static void test_marks(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device, (struct vkn_config){0});
    for (uint32_t turn = 0; turn < 4; turn++) {
        check_marks(&fixture, 16 * (400 + turn), true);
        check_marks(&fixture, 16 * (56 + turn), false);
    }
    fixture_destroy(&fixture);
    fixture = fixture_of(device, (struct vkn_config){.steps = 400});
    check_marks(&fixture, 128, false);
    check_marks(&fixture, 144, true);
    fixture_destroy(&fixture);
}

/* Views whose cells have no ray, and a damaged map, are left alone. */
static void test_damaged(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device, (struct vkn_config){0});
    struct map map;
    fill(&map, 1);
    map.state.step = 6400;
    for (uint32_t i = 0; i < VIEWS * CELLS; i++)
        map.cells[i].error = i < CELLS ? 0 : i < 2 * CELLS ? NAN : INFINITY;
    fixture_put(&fixture, BIND_STATE, &map, sizeof map);
    fixture_run(&fixture, "mark_outliers", (struct Push){0}, 2);
    fixture_get(&fixture, BIND_STATE, &map, sizeof map);
    for (uint32_t i = 0; i < VIEWS * CELLS; i++)
        check_that(!(map.cells[i].error < 0));
    check_equal(map.cells[VIEWS * CELLS].rays, 0);
    fixture_destroy(&fixture);
}

/* The quantile moves so that a fifth of the cells is above it; marks survive the update of errors,
 * which forgets sooner than that of larger cells. */
static void test_update(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device, (struct vkn_config){0});
    struct map map, after;
    fill(&map, 5);
    map.cells[VIEWS * CELLS] = (struct ErrorCell){0.004f, 30, 100, 7};
    for (uint32_t i = 0; i < VIEWS * CELLS; i++) {
        map.cells[i].rays = i % 3 * 10;
        map.cells[i].low = map.cells[i].rays * 16777; /* a mean loss of 0.001 */
    }
    fixture_put(&fixture, BIND_STATE, &map, sizeof map);
    fixture_run(&fixture, "update_errors", (struct Push){0}, 2);
    fixture_get(&fixture, BIND_STATE, &after, sizeof after);
    for (uint32_t i = 0; i < VIEWS * CELLS; i++) {
        double own = (double)fabsf(map.cells[i].error), rays = map.cells[i].rays;
        double expected = own > 0 ? (8 * own + rays * 0.001) / (8 + rays) : rays > 0 ? 0.001 : 0;
        check_close(fabsf(after.cells[i].error), expected, 1e-4, expected + 1e-9, "error", i);
        check_equal(after.cells[i].error < 0, map.cells[i].error < 0);
    }
    const struct ErrorCell *summary = &after.cells[VIEWS * CELLS];
    check_close(summary->error, 0.004 * exp2(4 * (0.3 - 0.2)), 1e-5, 0.004, "quantile", 0);
    check_equal(summary->low + summary->high + summary->rays, 0);
    fixture_put(&fixture, BIND_STATE, &after, sizeof after); /* no cell was looked at */
    fixture_run(&fixture, "update_errors", (struct Push){0}, 2);
    fixture_get(&fixture, BIND_STATE, &map, sizeof map);
    check_that(map.cells[VIEWS * CELLS].error == summary->error);
    memset(&map, 0, sizeof map); /* a training begins */
    fixture_put(&fixture, BIND_STATE, &map, sizeof map);
    fixture_run(&fixture, "update_errors", (struct Push){0}, 2);
    fixture_get(&fixture, BIND_STATE, &map, sizeof map);
    check_that(map.cells[VIEWS * CELLS].error == 1);
    fixture_destroy(&fixture);
}

/* Rays through outlier cells have weight 0 if there are enough of these cells, and never with
 * batch.by_error drawn by error. */
static void check_weights(struct gpu_device *device, float by_error, bool enough)
{
    struct fixture fixture = fixture_of(device, (struct vkn_config){.batch.by_error = by_error});
    uint32_t pixels = 0, hits[2] = {0};
    struct map map;
    fixture.config.view_count = VIEWS;
    fixture.config.slot_cells = CELLS;
    fixture.config.slot_count = VIEWS;
    fixture.config.slot_turns = 1;
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    for (uint32_t v = 0; v < VIEWS; v++)
        pixels += sizes[v][0] * sizes[v][1];
    uint32_t *colors = base_alloc(pixels, sizeof *colors);
    memset(colors, 255, pixels * sizeof *colors);
    fixture_put(&fixture, BIND_PIXELS, colors, pixels * sizeof *colors);
    free(colors);
    fill(&map, 2);
    map.cells[VIEWS * CELLS].high = 1000;
    map.cells[VIEWS * CELLS].rays = enough ? 10 : 9;
    fixture_put(&fixture, BIND_STATE, &map, sizeof map);
    fixture_run(&fixture, "generate_rays", (struct Push){.b = fixture.local_size},
                fixture_groups(&fixture, RAYS));
    struct Ray *rays = fixture_read(&fixture, BIND_RAYS);
    for (uint32_t r = 0; r < RAYS; r++) {
        bool outlier = map.cells[rays[r].cell].error < 0;
        check_equal(rays[r].weight == 0, enough && outlier);
        hits[outlier]++;
    }
    check_that(hits[0] > RAYS / 2 && hits[1] > RAYS / 20);
    free(rays);
    fixture_destroy(&fixture);
}

static void test_weights(struct gpu_device *device)
{
    check_weights(device, 0, true);
    check_weights(device, 0, false);
    check_weights(device, 0.5f, true);
}

/* Composites rays of one sample each, of which every fourth has no weight: those have neither loss
 * nor gradient, and no sample in the list, but their cell gets their loss. */
static void check_composite(struct gpu_device *device, bool deterministic)
{
    struct fixture fixture =
        fixture_of(device, (struct vkn_config){.deterministic = deterministic});
    struct random random = {21};
    struct map map = {.state = {.step = 1000, .ray_count = RAYS, .loss_scale = 4}};
    static struct Ray rays[RAYS];
    static struct RayResult results[RAYS];
    static struct Sample samples[RAYS];
    static float field[RAYS][4], gradients[RAYS][4], listed[RAYS];
    double expected = 0, loss = 0, recorded = 0;
    for (uint32_t r = 0; r < RAYS; r++) {
        rays[r] = (struct Ray){
            .direction = {0, 0, 1}, .last = 500, .weight = r % 4 != 0, .cell = r % 4 == 0};
        rays[r].target[3] = 1;
        field[r][3] = 400;
        double error = 0;
        for (int c = 0; c < 3; c++) {
            rays[r].target[c] = (float)random_between(&random, 0, 1);
            field[r][c] = (float)random_between(&random, 0, 1);
            error += huber(fabs((double)(field[r][c] - rays[r].target[c]))) / 3;
        }
        expected += r % 4 ? error : 0;
        recorded += r % 4 ? 0 : error;
        samples[r] = (struct Sample){1, 0.5f, r};
        results[r] = (struct RayResult){.transmittance = 1, .first = r, .count = 1};
    }
    map.state.dispatches[DISPATCH_RAYS].x = fixture_groups(&fixture, RAYS);
    fixture_put(&fixture, BIND_STATE, &map, sizeof map);
    fixture_put(&fixture, BIND_RAYS, rays, sizeof rays);
    fixture_put(&fixture, BIND_RESULTS, results, sizeof results);
    fixture_put(&fixture, BIND_SAMPLES, samples, sizeof samples);
    fixture_put(&fixture, BIND_FIELD, field, sizeof field);
    fixture_run(&fixture, "composite", (struct Push){.b = fixture.local_size},
                fixture_groups(&fixture, RAYS));
    fixture_get(&fixture, BIND_STATE, &map, sizeof map);
    fixture_get(&fixture, BIND_FIELD_GRADIENTS, gradients, sizeof gradients);
    fixture_get(&fixture, BIND_LIVE, listed, sizeof listed);
    float *reduce = fixture_read(&fixture, BIND_REDUCE);
    for (uint32_t g = 0; g < fixture_groups(&fixture, RAYS); g++)
        loss += (double)reduce[REDUCE_LOSS + 2 * g];
    check_close(loss, expected, 1e-4, expected, "loss", 0);
    check_equal(map.cells[1].rays, RAYS / 4);
    check_close((ldexp(map.cells[1].high, 32) + map.cells[1].low) / 16777216, recorded, 1e-4,
                recorded, "recorded", 0);
    check_equal(map.state.live_rays, RAYS);
    check_equal(map.state.live_count, deterministic ? map.state.live_count : RAYS / 4 * 3);
    for (uint32_t r = 0; r < RAYS && deterministic; r++)
        check_equal(gradients[r][0] != 0, r % 4 != 0);
    for (uint32_t i = 0; i < RAYS / 4 * 3 && !deterministic; i++)
        check_that(((const uint32_t *)listed)[i] % 4 != 0);
    free(reduce);
    fixture_destroy(&fixture);
}

static void test_composite(struct gpu_device *device)
{
    check_composite(device, false);
    check_composite(device, true);
}

static const struct certify_test tests[] = {
    TEST(test_marks),   TEST(test_damaged),   TEST(test_update),
    TEST(test_weights), TEST(test_composite),
};
const struct certify_part certify_outliers = {"outliers", tests, BASE_COUNT(tests)};
