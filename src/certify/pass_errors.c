/* Tests drawing by error: the error map's update and sums, the density of drawn pixels, and the
 * weights and losses of their rays. */
#include "certify/rays.h"

#define VIEWS 3u
#define RAYS  4000u
#define STEPS 40u
#define SHARE 0.5
#define CELLS 64u /* of the error map in a view */

static const uint32_t sizes[VIEWS][2] = {{37, 23}, {64, 40}, {48, 40}};
#define PIXELS (37u * 23 + 64 * 40 + 48 * 40)

struct drawn_views {
    uint32_t cell_edge;
    struct Camera cameras[VIEWS];
    struct reference_drawn references[VIEWS];
    bool used[PIXELS];
    uint32_t pixels[PIXELS];
    float errors[VIEWS * CELLS];
};

/* The first view is whole; the second is a strip of a view of 129 pixels width, downscaled by 2, of
 * which draws are kept with a chance of 0.6; the third is a panorama. */
static void make_views(struct drawn_views *views, uint32_t cell_edge)
{
    struct random random = {11};
    *views = (struct drawn_views){.cell_edge = cell_edge};
    for (uint32_t v = 0, first = 0; v < VIEWS; v++) {
        struct scene_camera camera = random_camera(&random, sizes[v][0], sizes[v][1], 1.6, false);
        if (v == 2) {
            camera.lens = VKN_LENS_EQUIRECTANGULAR;
            camera.focal_x = 48 / 6.2831853f;
            camera.focal_y = 40 / 3.1415927f;
            camera.center_x = 24;
            camera.center_y = 20;
        }
        struct Camera *device = &views->cameras[v];
        *device = setup_camera(&camera);
        device->first_pixel = first;
        device->first_cell = v * CELLS;
        device->cell_columns = (sizes[v][0] + cell_edge - 1) / cell_edge;
        if (v == 1) {
            device->first_row = 24;
            device->shrink = 2;
            device->cell_columns = 129 / cell_edge + 1;
            device->strip_share = 0.6f;
        }
        views->references[v] = (struct reference_drawn){sizes[v][0],
                                                        sizes[v][1],
                                                        device->first_row,
                                                        device->shrink,
                                                        device->first_cell,
                                                        device->cell_columns,
                                                        cell_edge,
                                                        v == 2,
                                                        (double)camera.center_y,
                                                        (double)camera.focal_y,
                                                        (double)device->strip_share,
                                                        &views->used[first]};
        first += sizes[v][0] * sizes[v][1];
    }
    for (uint32_t i = 0; i < PIXELS; i++) {
        views->used[i] = random_below(&random, 100) >= 20;
        views->pixels[i] = views->used[i] ? i | 0xff000000u : PIXEL_IGNORED;
    }
    for (uint32_t y = 0; y < 16; y++) /* a cell without used pixels */
        for (uint32_t x = 0; x < 16; x++) {
            views->used[y * 37 + x] = false;
            views->pixels[y * 37 + x] = PIXEL_IGNORED;
        }
    for (uint32_t i = 0; i < VIEWS * CELLS; i++) /* some without rays so far */
        views->errors[i] =
            random_below(&random, 5) ? (float)random_between(&random, 0.001, 0.1) : 0;
}

/* Uploads the map. Half of the cells without an error are outlier cells, which are not drawn. */
static void put_map(struct fixture *fixture, const struct drawn_views *views, uint32_t step,
                    uint32_t rays)
{
    struct {
        struct State state;
        struct ErrorCell cells[VIEWS * CELLS];
    } map = {.state = {.step = step, .ray_count = rays}};
    for (uint32_t i = 0; i < VIEWS * CELLS; i++)
        map.cells[i].error = views->errors[i] == 0 && i % 2 ? -0.05F : views->errors[i];
    fixture_put(fixture, BIND_STATE, &map, sizeof map);
}

static struct fixture fixture_of(struct gpu_device *device, const struct drawn_views *views)
{
    struct vkn_config settings = {.scene.aabb_scale = 1,
                                  .batch = {.max_rays = RAYS + 96, .by_error = (float)SHARE},
                                  .seed = 4};
    struct fixture fixture = fixture_configure(device, settings);
    fixture.config.cell_edge = views->cell_edge;
    fixture.config.error_cells = VIEWS * CELLS;
    fixture.config.slot_cells = CELLS;
    fixture.config.slot_count = VIEWS;
    fixture.config.slot_turns = 1;
    fixture.config.slot_view = 0;
    fixture_allocate(&fixture, VIEWS, PIXELS);
    fixture_put(&fixture, BIND_CAMERAS, views->cameras, sizeof views->cameras);
    fixture_put(&fixture, BIND_PIXELS, views->pixels, sizeof views->pixels);
    put_map(&fixture, views, 1, RAYS);
    return fixture;
}

static void sum_errors(struct fixture *fixture)
{
    fixture_run(fixture, "sum_errors", (struct Push){0}, 2); /* one workgroup takes two slots */
    fixture_run(fixture, "scan_errors", (struct Push){0}, 1);
}

/* Pearson's chi-square test at 5 standard deviations. */
static void check_density(const uint32_t *hits, const double *expected, size_t count, double total)
{
    double sum = 0, freedom = -1;
    for (size_t i = 0; i < count; i++) {
        double mean = expected[i] * total;
        if (mean == 0)
            check_equal(hits[i], 0);
        else
            sum += (hits[i] - mean) * (hits[i] - mean) / mean;
        freedom += mean > 0;
    }
    if (!(fabs(sum - freedom) < 5 * sqrt(2 * freedom) + 5))
        check_fail("chi-square %.1f for %.0f degrees of freedom", sum, freedom);
}

/* Draws pixels of `count` views from the first on, and compares their frequency, the rays' weights,
 * cells, and a weighted mean with the reference. */
static void check_drawing(struct fixture *fixture, const struct drawn_views *views, uint32_t count,
                          double share, uint64_t seed)
{
    static double drawn[PIXELS], weights[PIXELS], value[PIXELS];
    static uint32_t hits[PIXELS];
    struct random random = {seed};
    double expected = 0, mean = 0, square = 0, total = 0;
    uint32_t pixels = 0;
    for (uint32_t v = 0; v < count; v++)
        pixels += sizes[v][0] * sizes[v][1];
    reference_draw(views->references, count, views->errors, share, drawn, weights);
    memset(hits, 0, sizeof hits);
    for (uint32_t i = 0; i < pixels; i++) {
        value[i] = random_between(&random, 0, 1) * (i % 50);
        expected += drawn[i] * weights[i] * value[i];
    }
    fixture->config.view_count = count;
    fixture->config.error_share = (float)share;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    for (uint32_t step = 1; step <= STEPS; step++) {
        put_map(fixture, views, step, RAYS);
        fixture_run(fixture, "generate_rays", (struct Push){.b = fixture->local_size},
                    fixture_groups(fixture, RAYS));
        struct Ray *rays = fixture_read(fixture, BIND_RAYS);
        for (uint32_t r = 0; r < RAYS; r++) {
            if (rays[r].last == -3.0f)
                continue;
            uint32_t i = (uint32_t)round((double)rays[r].target[0] * 255) |
                         (uint32_t)round((double)rays[r].target[1] * 255) << 8;
            check_that(i < pixels && views->used[i]);
            const struct reference_drawn *view = &views->references[rays[r].view];
            uint32_t own = i - (uint32_t)(view->used - views->used);
            check_equal(rays[r].cell,
                        reference_error_cell(view, own % view->width, own / view->width));
            check_close(rays[r].weight, weights[i], 1e-4, weights[i], "weight of pixel", i);
            hits[i]++;
            total++;
            mean += (double)rays[r].weight * value[i];
            square += pow((double)rays[r].weight * value[i], 2);
        }
        free(rays);
    }
    check_that(total > 0.999 * STEPS * RAYS);
    check_density(hits, drawn, pixels, total);
    double deviation = sqrt((square - mean * mean / total) / total / total);
    check_statistic(mean / total, expected, 5 * deviation, 1, "mean of even drawing", 0);
}

static void test_drawing(struct gpu_device *device)
{
    struct drawn_views views;
    make_views(&views, 16);
    struct fixture fixture = fixture_of(device, &views);
    sum_errors(&fixture);
    check_drawing(&fixture, &views, VIEWS, SHARE, 1);
    check_drawing(&fixture, &views, VIEWS, 0, 3); /* even, with the solid angle of the panorama */
    check_drawing(&fixture, &views, 2, SHARE, 4); /* a curriculum draws the first views */
    fixture_destroy(&fixture);
}

static void test_larger_cells(struct gpu_device *device)
{
    struct drawn_views views;
    make_views(&views, 32);
    struct fixture fixture = fixture_of(device, &views);
    sum_errors(&fixture);
    check_drawing(&fixture, &views, VIEWS, 0.9, 2);
    fixture_destroy(&fixture);
}

/* Counts of used pixels remain while the images stay. */
static void test_sums(struct gpu_device *device)
{
    static double drawn[PIXELS], weights[PIXELS];
    struct drawn_views views;
    make_views(&views, 16);
    struct fixture fixture = fixture_of(device, &views);
    for (int again = 0; again < 2; again++) {
        sum_errors(&fixture);
        const float *sums = fixture_read(&fixture, BIND_REDUCE);
        for (uint32_t v = 0; v < VIEWS; v++) {
            const float *slot = sums + REDUCE_SLOTS + 3 * v;
            double mean =
                reference_draw(views.references, v + 1, views.errors, SHARE, drawn, weights);
            check_close(slot[1] / slot[2], mean, 1e-5, mean, "mean error up to slot", v);
            check_that(v == 0 || slot[0] > slot[-3]);
        }
        const struct Camera *cameras = fixture_read(&fixture, BIND_CAMERAS);
        for (uint32_t v = 0; v < VIEWS; v++)
            check_equal(cameras[v].counted, 1);
        free((void *)cameras);
        free((void *)sums);
        fixture_poison(&fixture, BIND_PIXELS); /* none of them is read again */
    }
    fixture_destroy(&fixture);
}

/* Without any error all rays are drawn evenly, with weight 1. */
static void test_no_errors(struct gpu_device *device)
{
    struct drawn_views views;
    make_views(&views, 16);
    memset(views.errors, 0, sizeof views.errors);
    struct fixture fixture = fixture_of(device, &views);
    sum_errors(&fixture);
    put_map(&fixture, &views, 7, RAYS);
    fixture_run(&fixture, "generate_rays", (struct Push){.b = fixture.local_size},
                fixture_groups(&fixture, RAYS));
    struct Ray *rays = fixture_read(&fixture, BIND_RAYS);
    for (uint32_t r = 0; r < RAYS; r++)
        check_that(rays[r].weight == 1);
    free(rays);
    fixture_destroy(&fixture);
}

/* Two virtual ranks of a device draw from every other view. */
static void test_turns(struct gpu_device *device)
{
    struct drawn_views views;
    make_views(&views, 16);
    struct fixture fixture = fixture_of(device, &views);
    fixture.config.slot_turns = 2;
    fixture.config.view_stride = 2;
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    sum_errors(&fixture);
    for (uint32_t turn = 0; turn < 2; turn++) {
        fixture.config.first_view = turn;
        fixture.config.view_count = turn == 0 ? 2 : 1;
        fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
        put_map(&fixture, &views, 3, RAYS);
        fixture_run(&fixture, "generate_rays", (struct Push){.b = fixture.local_size},
                    fixture_groups(&fixture, RAYS));
        struct Ray *rays = fixture_read(&fixture, BIND_RAYS);
        double weight = 0;
        for (uint32_t r = 0; r < RAYS; r++) {
            check_equal(rays[r].view % 2, turn);
            weight += (double)rays[r].weight / RAYS;
        }
        check_statistic(weight, 1, 0.05, 1, "mean weight of turn", turn);
        free(rays);
    }
    fixture_destroy(&fixture);
}

static void test_update(struct gpu_device *device)
{
    struct drawn_views views;
    struct random random = {3};
    make_views(&views, 16);
    struct fixture fixture = fixture_of(device, &views);
    struct {
        struct State state;
        struct ErrorCell cells[VIEWS * CELLS];
    } map = {.state = {.step = 16}}, after;
    for (uint32_t i = 0; i < VIEWS * CELLS; i++)
        map.cells[i] =
            (struct ErrorCell){views.errors[i], random_word(&random), random_below(&random, 9),
                               random_below(&random, 3) ? 1 + random_below(&random, 500) : 0};
    fixture_put(&fixture, BIND_STATE, &map, sizeof map);
    fixture_run(&fixture, "update_errors", (struct Push){0}, 2);
    fixture_get(&fixture, BIND_STATE, &after, sizeof after);
    check_memory(&after.state, &map.state, sizeof map.state);
    for (uint32_t i = 0; i < VIEWS * CELLS; i++) {
        const struct ErrorCell *cell = &map.cells[i];
        if (cell->rays == 0) {
            check_memory(&after.cells[i], cell, sizeof *cell);
            continue;
        }
        double losses = (ldexp(cell->high, 32) + cell->low) / 16777216.0;
        float expected = reference_error(cell->error, losses, cell->rays);
        check_close(after.cells[i].error, (double)expected, 1e-6, (double)expected, "error", i);
        check_equal(after.cells[i].rays, 0);
        check_equal(after.cells[i].low, 0);
        check_equal(after.cells[i].high, 0);
    }
    fixture_destroy(&fixture);
}

/* Composites rays of one sample each, which fill two cells; returns their field gradients, which
 * the caller frees, and the reported loss. */
static float *composite(struct fixture *fixture, uint32_t rays, bool unbiased, float weight,
                        struct ErrorCell cells[2], double *loss)
{
    struct random random = {21};
    struct {
        struct State state;
        struct ErrorCell cells[VIEWS * CELLS];
    } map = {.state = {.step = 1000, .ray_count = rays, .loss_scale = 4}};
    struct Ray *all = base_alloc(rays, sizeof *all);
    struct RayResult *results = base_alloc(rays, sizeof *results);
    struct Sample *samples = base_alloc(rays, sizeof *samples);
    float(*field)[4] = base_alloc(rays, sizeof *field);
    for (uint32_t r = 0; r < rays; r++) {
        all[r] = (struct Ray){.direction = {0, 0, 1}, .last = 500, .weight = weight, .cell = r % 2};
        all[r].target[3] = 1;
        for (int c = 0; c < 3; c++) {
            all[r].target[c] = (float)random_between(&random, 0, 1);
            field[r][c] = (float)random_between(&random, 0, 1);
        }
        field[r][3] = 40;
        samples[r] = (struct Sample){1, 0.02f, r};
        results[r] = (struct RayResult){.transmittance = 1, .first = r, .count = 1};
    }
    map.cells[0].low = UINT32_MAX; /* the first loss carries */
    map.state.dispatches[DISPATCH_RAYS].x = fixture_groups(fixture, rays);
    fixture->config.error_unbiased = unbiased;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    fixture_put(fixture, BIND_STATE, &map, sizeof map);
    fixture_put(fixture, BIND_RAYS, all, rays * sizeof *all);
    fixture_put(fixture, BIND_RESULTS, results, rays * sizeof *results);
    fixture_put(fixture, BIND_SAMPLES, samples, rays * sizeof *samples);
    fixture_put(fixture, BIND_FIELD, field, rays * sizeof *field);
    fixture_run(fixture, "composite", (struct Push){.b = fixture->local_size},
                fixture_groups(fixture, rays));
    fixture_get(fixture, BIND_STATE, &map, sizeof map);
    memcpy(cells, map.cells, 2 * sizeof *cells);
    const float *reduce = fixture_read(fixture, BIND_REDUCE);
    *loss = 0;
    for (uint32_t g = 0; g < fixture_groups(fixture, rays); g++)
        *loss += (double)reduce[REDUCE_LOSS + 2 * g] / rays;
    free((void *)reduce);
    free(all);
    free(results);
    free(samples);
    free(field);
    return fixture_read(fixture, BIND_FIELD_GRADIENTS);
}

static void test_losses(struct gpu_device *device)
{
    enum { COUNT = 500 };
    struct drawn_views views;
    make_views(&views, 16);
    struct fixture fixture = fixture_of(device, &views);
    struct ErrorCell cells[3][2];
    double loss[3];
    float *plain = composite(&fixture, COUNT, true, 1, cells[0], &loss[0]);
    float *biased = composite(&fixture, COUNT, false, 0.5f, cells[1], &loss[1]);
    float *unbiased = composite(&fixture, COUNT, true, 0.5f, cells[2], &loss[2]);
    for (uint32_t i = 0; i < 4 * COUNT; i++) {
        check_that(biased[i] == plain[i]);
        check_that(unbiased[i] == 0.5f * plain[i]);
    }
    check_that(loss[0] > 0);
    check_close(loss[1], 0.5 * loss[0], 1e-6, loss[0], "loss", 1);
    check_close(loss[2], 0.5 * loss[0], 1e-6, loss[0], "loss", 2);
    check_memory(cells[0], cells[1], sizeof cells[0]);
    check_memory(cells[0], cells[2], sizeof cells[0]);
    check_equal(cells[0][0].rays, COUNT / 2);
    check_equal(cells[0][1].rays, COUNT / 2);
    double sum = ldexp(cells[0][0].high, 32) + cells[0][0].low - UINT32_MAX;
    sum += ldexp(cells[0][1].high, 32) + cells[0][1].low;
    check_close(sum / 16777216 / COUNT, loss[0], 1e-5, loss[0], "losses of the map", 0);
    free(plain);
    free(biased);
    free(unbiased);
    fixture_destroy(&fixture);
}

static const struct certify_test tests[] = {
    TEST(test_drawing), TEST(test_larger_cells), TEST(test_sums),   TEST(test_no_errors),
    TEST(test_turns),   TEST(test_update),       TEST(test_losses),
};
const struct certify_part certify_errors = {"errors", tests, BASE_COUNT(tests)};
