/* Tests drawing by error: the error map's update and sums, the density of drawn pixels, and the
 * weights and losses of their rays. */
#include "pass_rays.h"

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
static void put_map(struct bench *bench, const struct drawn_views *views, uint32_t step,
                    uint32_t rays)
{
    struct {
        struct State state;
        struct ErrorCell cells[VIEWS * CELLS];
    } map = {.state = {.step = step, .ray_count = rays}};
    for (uint32_t i = 0; i < VIEWS * CELLS; i++)
        map.cells[i].error = views->errors[i] == 0 && i % 2 ? -0.05F : views->errors[i];
    bench_put(bench, BIND_STATE, &map, sizeof map);
}

static struct bench bench_of(struct gpu_device *device, const struct drawn_views *views)
{
    struct vkn_config settings = {.scene.aabb_scale = 1,
                                  .batch = {.max_rays = RAYS + 96, .by_error = (float)SHARE},
                                  .seed = 4};
    struct bench bench = bench_configure(device, settings);
    bench.config.cell_edge = views->cell_edge;
    bench.config.error_cells = VIEWS * CELLS;
    bench.config.slot_cells = CELLS;
    bench.config.slot_count = VIEWS;
    bench.config.slot_turns = 1;
    bench.config.slot_view = 0;
    bench_allocate(&bench, VIEWS, PIXELS);
    bench_put(&bench, BIND_CAMERAS, views->cameras, sizeof views->cameras);
    bench_put(&bench, BIND_PIXELS, views->pixels, sizeof views->pixels);
    put_map(&bench, views, 1, RAYS);
    return bench;
}

static void sum_errors(struct bench *bench)
{
    bench_run(bench, "sum_errors", (struct Push){0}, 2); /* one workgroup takes two slots */
    bench_run(bench, "scan_errors", (struct Push){0}, 1);
}

/* Pearson's chi-square test at 5 standard deviations. */
static void assert_density(const uint32_t *hits, const double *expected, size_t count, double total)
{
    double sum = 0, freedom = -1;
    for (size_t i = 0; i < count; i++) {
        double mean = expected[i] * total;
        if (mean == 0)
            assert_int_equal(hits[i], 0);
        else
            sum += (hits[i] - mean) * (hits[i] - mean) / mean;
        freedom += mean > 0;
    }
    if (!(fabs(sum - freedom) < 5 * sqrt(2 * freedom) + 5))
        fail_msg("chi-square %.1f for %.0f degrees of freedom", sum, freedom);
}

/* Draws pixels of `count` views from the first on, and compares their frequency, the rays' weights,
 * cells, and a weighted mean with the reference. */
static void check_drawing(struct bench *bench, const struct drawn_views *views, uint32_t count,
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
    bench->config.view_count = count;
    bench->config.error_share = (float)share;
    bench_put(bench, BIND_CONFIG, &bench->config, sizeof bench->config);
    for (uint32_t step = 1; step <= STEPS; step++) {
        put_map(bench, views, step, RAYS);
        bench_run(bench, "generate_rays", (struct Push){.b = bench->local_size},
                  bench_groups(bench, RAYS));
        struct Ray *rays = bench_read(bench, BIND_RAYS);
        for (uint32_t r = 0; r < RAYS; r++) {
            if (rays[r].last == -3.0f)
                continue;
            uint32_t i = (uint32_t)round((double)rays[r].target[0] * 255) |
                         (uint32_t)round((double)rays[r].target[1] * 255) << 8;
            assert_true(i < pixels && views->used[i]);
            const struct reference_drawn *view = &views->references[rays[r].view];
            uint32_t own = i - (uint32_t)(view->used - views->used);
            assert_int_equal(rays[r].cell,
                             reference_error_cell(view, own % view->width, own / view->width));
            assert_close(rays[r].weight, weights[i], 1e-4, weights[i], "weight of pixel", i);
            hits[i]++;
            total++;
            mean += (double)rays[r].weight * value[i];
            square += pow((double)rays[r].weight * value[i], 2);
        }
        free(rays);
    }
    assert_true(total > 0.999 * STEPS * RAYS);
    assert_density(hits, drawn, pixels, total);
    double deviation = sqrt((square - mean * mean / total) / total / total);
    assert_close(mean / total, expected, 5 * deviation, 1, "mean of even drawing", 0);
}

static void test_drawing(void **state)
{
    struct drawn_views views;
    make_views(&views, 16);
    struct bench bench = bench_of(*state, &views);
    sum_errors(&bench);
    check_drawing(&bench, &views, VIEWS, SHARE, 1);
    check_drawing(&bench, &views, VIEWS, 0, 3); /* even, with the solid angle of the panorama */
    check_drawing(&bench, &views, 2, SHARE, 4); /* a curriculum draws the first views */
    bench_destroy(&bench);
}

static void test_larger_cells(void **state)
{
    struct drawn_views views;
    make_views(&views, 32);
    struct bench bench = bench_of(*state, &views);
    sum_errors(&bench);
    check_drawing(&bench, &views, VIEWS, 0.9, 2);
    bench_destroy(&bench);
}

/* Counts of used pixels remain while the images stay. */
static void test_sums(void **state)
{
    static double drawn[PIXELS], weights[PIXELS];
    struct drawn_views views;
    make_views(&views, 16);
    struct bench bench = bench_of(*state, &views);
    for (int again = 0; again < 2; again++) {
        sum_errors(&bench);
        const float *sums = bench_read(&bench, BIND_REDUCE);
        for (uint32_t v = 0; v < VIEWS; v++) {
            const float *slot = sums + REDUCE_SLOTS + 3 * v;
            double mean =
                reference_draw(views.references, v + 1, views.errors, SHARE, drawn, weights);
            assert_close(slot[1] / slot[2], mean, 1e-5, mean, "mean error up to slot", v);
            assert_true(v == 0 || slot[0] > slot[-3]);
        }
        const struct Camera *cameras = bench_read(&bench, BIND_CAMERAS);
        for (uint32_t v = 0; v < VIEWS; v++)
            assert_int_equal(cameras[v].counted, 1);
        free((void *)cameras);
        free((void *)sums);
        bench_poison(&bench, BIND_PIXELS); /* none of them is read again */
    }
    bench_destroy(&bench);
}

/* Without any error all rays are drawn evenly, with weight 1. */
static void test_no_errors(void **state)
{
    struct drawn_views views;
    make_views(&views, 16);
    memset(views.errors, 0, sizeof views.errors);
    struct bench bench = bench_of(*state, &views);
    sum_errors(&bench);
    put_map(&bench, &views, 7, RAYS);
    bench_run(&bench, "generate_rays", (struct Push){.b = bench.local_size},
              bench_groups(&bench, RAYS));
    struct Ray *rays = bench_read(&bench, BIND_RAYS);
    for (uint32_t r = 0; r < RAYS; r++)
        assert_true(rays[r].weight == 1);
    free(rays);
    bench_destroy(&bench);
}

/* Two virtual ranks of a device draw from every other view. */
static void test_turns(void **state)
{
    struct drawn_views views;
    make_views(&views, 16);
    struct bench bench = bench_of(*state, &views);
    bench.config.slot_turns = 2;
    bench.config.view_stride = 2;
    bench_put(&bench, BIND_CONFIG, &bench.config, sizeof bench.config);
    sum_errors(&bench);
    for (uint32_t turn = 0; turn < 2; turn++) {
        bench.config.first_view = turn;
        bench.config.view_count = turn == 0 ? 2 : 1;
        bench_put(&bench, BIND_CONFIG, &bench.config, sizeof bench.config);
        put_map(&bench, &views, 3, RAYS);
        bench_run(&bench, "generate_rays", (struct Push){.b = bench.local_size},
                  bench_groups(&bench, RAYS));
        struct Ray *rays = bench_read(&bench, BIND_RAYS);
        double weight = 0;
        for (uint32_t r = 0; r < RAYS; r++) {
            assert_int_equal(rays[r].view % 2, turn);
            weight += (double)rays[r].weight / RAYS;
        }
        assert_close(weight, 1, 0.05, 1, "mean weight of turn", turn);
        free(rays);
    }
    bench_destroy(&bench);
}

static void test_update(void **state)
{
    struct drawn_views views;
    struct random random = {3};
    make_views(&views, 16);
    struct bench bench = bench_of(*state, &views);
    struct {
        struct State state;
        struct ErrorCell cells[VIEWS * CELLS];
    } map = {.state = {.step = 16}}, after;
    for (uint32_t i = 0; i < VIEWS * CELLS; i++)
        map.cells[i] =
            (struct ErrorCell){views.errors[i], random_word(&random), random_below(&random, 9),
                               random_below(&random, 3) ? 1 + random_below(&random, 500) : 0};
    bench_put(&bench, BIND_STATE, &map, sizeof map);
    bench_run(&bench, "update_errors", (struct Push){0}, 2);
    bench_get(&bench, BIND_STATE, &after, sizeof after);
    assert_memory_equal(&after.state, &map.state, sizeof map.state);
    for (uint32_t i = 0; i < VIEWS * CELLS; i++) {
        const struct ErrorCell *cell = &map.cells[i];
        if (cell->rays == 0) {
            assert_memory_equal(&after.cells[i], cell, sizeof *cell);
            continue;
        }
        double losses = (ldexp(cell->high, 32) + cell->low) / 16777216.0;
        float expected = reference_error(cell->error, losses, cell->rays);
        assert_close(after.cells[i].error, (double)expected, 1e-6, (double)expected, "error", i);
        assert_int_equal(after.cells[i].rays, 0);
        assert_int_equal(after.cells[i].low, 0);
        assert_int_equal(after.cells[i].high, 0);
    }
    bench_destroy(&bench);
}

/* Composites rays of one sample each, which fill two cells; returns their field gradients, which
 * the caller frees, and the reported loss. */
static float *composite(struct bench *bench, uint32_t rays, bool unbiased, float weight,
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
    map.state.dispatches[DISPATCH_RAYS].x = bench_groups(bench, rays);
    bench->config.error_unbiased = unbiased;
    bench_put(bench, BIND_CONFIG, &bench->config, sizeof bench->config);
    bench_put(bench, BIND_STATE, &map, sizeof map);
    bench_put(bench, BIND_RAYS, all, rays * sizeof *all);
    bench_put(bench, BIND_RESULTS, results, rays * sizeof *results);
    bench_put(bench, BIND_SAMPLES, samples, rays * sizeof *samples);
    bench_put(bench, BIND_FIELD, field, rays * sizeof *field);
    bench_run(bench, "composite", (struct Push){.b = bench->local_size}, bench_groups(bench, rays));
    bench_get(bench, BIND_STATE, &map, sizeof map);
    memcpy(cells, map.cells, 2 * sizeof *cells);
    const float *reduce = bench_read(bench, BIND_REDUCE);
    *loss = 0;
    for (uint32_t g = 0; g < bench_groups(bench, rays); g++)
        *loss += (double)reduce[REDUCE_LOSS + 2 * g] / rays;
    free((void *)reduce);
    free(all);
    free(results);
    free(samples);
    free(field);
    return bench_read(bench, BIND_FIELD_GRADIENTS);
}

static void test_losses(void **state)
{
    enum { COUNT = 500 };
    struct drawn_views views;
    make_views(&views, 16);
    struct bench bench = bench_of(*state, &views);
    struct ErrorCell cells[3][2];
    double loss[3];
    float *plain = composite(&bench, COUNT, true, 1, cells[0], &loss[0]);
    float *biased = composite(&bench, COUNT, false, 0.5f, cells[1], &loss[1]);
    float *unbiased = composite(&bench, COUNT, true, 0.5f, cells[2], &loss[2]);
    for (uint32_t i = 0; i < 4 * COUNT; i++) {
        assert_true(biased[i] == plain[i]);
        assert_true(unbiased[i] == 0.5f * plain[i]);
    }
    assert_true(loss[0] > 0);
    assert_close(loss[1], 0.5 * loss[0], 1e-6, loss[0], "loss", 1);
    assert_close(loss[2], 0.5 * loss[0], 1e-6, loss[0], "loss", 2);
    assert_memory_equal(cells[0], cells[1], sizeof cells[0]);
    assert_memory_equal(cells[0], cells[2], sizeof cells[0]);
    assert_int_equal(cells[0][0].rays, COUNT / 2);
    assert_int_equal(cells[0][1].rays, COUNT / 2);
    double sum = ldexp(cells[0][0].high, 32) + cells[0][0].low - UINT32_MAX;
    sum += ldexp(cells[0][1].high, 32) + cells[0][1].low;
    assert_close(sum / 16777216 / COUNT, loss[0], 1e-5, loss[0], "losses of the map", 0);
    free(plain);
    free(biased);
    free(unbiased);
    bench_destroy(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawing), cmocka_unit_test(test_larger_cells),
        cmocka_unit_test(test_sums),    cmocka_unit_test(test_no_errors),
        cmocka_unit_test(test_turns),   cmocka_unit_test(test_update),
        cmocka_unit_test(test_losses),  cmocka_unit_test(test_no_messages),
    };
    return RUN_PASS_TESTS(tests);
}
