/* Tests the occupancy grid of a dynamic scene, a ball that crosses the cube: every cell that is
 * occupied at some training view's time must be found, and must not be lost. */
#include "certify/fixture.h"

#include "rays/rays.h"

#define RESOLUTION    16u
#define CELLS         (RESOLUTION * RESOLUTION * RESOLUTION)
#define VIEWS         40u
#define RADIUS        0.2
#define PATH_LENGTH   0.6 /* of the ball, along x, in sides of the cube */
/* Updates until all cells that stay occupied for a while must be found, and later updates, in which
 * none of them may be lost. */
#define FIRST_UPDATES 56u
#define LATER_UPDATES 48u

/* The ball's progress along its path: max(rate * time + bias, 0). */
struct motion {
    float rate, bias;
};
/* A steady motion, and a jump: only the last view sees the ball at the end. */
static const struct motion rolls = {1, 0}, jumps = {VIEWS, 1.0f - VIEWS};

static struct fixture fixture_of(struct gpu_device *device, uint32_t time_bins, float curriculum)
{
    const struct vkn_config settings = {
        .model = VKN_MODEL_DYNAMIC,
        .precision = VKN_PRECISION_FP32,
        .scene.aabb_scale = 1,
        .batch = {.samples = 4096, .max_rays = 4096, .chunk = 4096},
        .grid = {.levels = 1, .features = 2, .coarsest = 16, .log2_entries = 12},
        .mlp = {.density_width = 16, .density_layers = 1, .geometry = 16, .color_width = 16},
        .dynamic = {.width = 32,
                    .layers = 1,
                    .position_octaves = 1,
                    .time_octaves = 1,
                    .curriculum = curriculum,
                    .time_bins = time_bins},
        .march.resolution = RESOLUTION,
        .seed = 79,
    };
    struct fixture fixture = fixture_configure(device, settings);
    fixture_allocate(&fixture, VIEWS, 1);
    return fixture;
}

static double stored_time(uint32_t view)
{
    return (double)view / (VIEWS - 1);
}

/* Sets density exp(6) in the ball, exp(-6) outside. */
static float *put_ball(struct fixture *fixture, struct motion motion)
{
    const struct field_model *model = &fixture->model;
    const struct Level *level = &model->level[0];
    const struct field_layer *layers = model->layers, *deformation = &layers[model->fused];
    float *params = calloc(model->param_count, sizeof *params);
    for (uint32_t i = 0; i < level->resolution * level->resolution * level->resolution; i++) {
        uint32_t at[3] = {i % level->resolution, i / level->resolution % level->resolution,
                          i / level->resolution / level->resolution};
        double squared = 0;
        for (int axis = 0; axis < 3; axis++) {
            double off = (at[axis] - 0.5) / (double)level->scale - (axis == 0 ? 0.2 : 0.5);
            squared += off * off;
        }
        params[level->first + 2 * i] = squared < RADIUS * RADIUS ? 1 : 0;
        params[level->first + 2 * i + 1] = 1;
    }
    for (uint32_t input = 0; input < 2; input++) {
        params[reference_weight(&layers[0], input, input)] = 1;
        params[reference_weight(&layers[1], input, 0)] = input == 0 ? 12 : -6;
    }
    uint32_t time = 3 + 6 * fixture->settings.dynamic.position_octaves;
    params[reference_weight(&deformation[0], time, 0)] = motion.rate;
    params[reference_weight(&deformation[0], deformation[0].inputs, 0)] = motion.bias;
    params[reference_weight(&deformation[1], 0, 0)] = (float)-PATH_LENGTH;
    fixture_put(fixture, BIND_PARAMS, params, 4ull * model->param_count);
    return params;
}

static void put_views(struct fixture *fixture)
{
    struct Camera cameras[VIEWS] = {{0}};
    for (uint32_t i = 0; i < VIEWS; i++)
        cameras[(7 * i) % VIEWS].time = (float)stored_time(i); /* not in order of time */
    fixture_put(fixture, BIND_CAMERAS, cameras, sizeof cameras);
}

/* Whether the smallest optical thickness of a smallest step at the cell's corners and centre is
 * above the limit: [view][cell]. */
static bool *find_occupied(const struct fixture *fixture, const float *params, double limit)
{
    struct reference_field field = reference_field(&fixture->settings, &fixture->model, params);
    const struct reference_space space = reference_space(&fixture->settings);
    bool *occupied = base_alloc((size_t)VIEWS * CELLS, sizeof *occupied);
    for (uint32_t view = 0; view < VIEWS; view++)
        for (uint32_t i = 0; i < CELLS; i++) {
            uint32_t cell[3];
            double least = INFINITY;
            field.time = stored_time(view);
            reference_morton_cell(i, cell);
            for (uint32_t point = 0; point < 9 && least > limit; point++) {
                const double middle[3] = {0.5, 0.5, 0.5},
                             corner[3] = {point & 1, point >> 1 & 1, point >> 2 & 1};
                double position[3];
                reference_cell_position(&space, RESOLUTION, 0, cell, point == 8 ? middle : corner,
                                        position);
                least = fmin(least, reference_density(&field, position) *
                                        (double)fixture->config.step_min);
            }
            occupied[view * CELLS + i] = least > limit;
        }
    reference_field_destroy(&field);
    return occupied;
}

/* Runs one update, as at the beginning of step `16 n`. */
static void update(struct fixture *fixture, uint32_t n, uint32_t groups)
{
    const struct pass *passes[FIELD_MAX_PASSES];
    size_t count = field_list_passes(&fixture->model, &fixture->model.kind->occupancy, passes);
    const struct setup setup = fixture_setup(fixture);
    const struct repeats repeats = setup_repeats(&setup);
    struct State state;
    fixture_get(fixture, BIND_STATE, &state, sizeof state);
    state.step = UPDATE_INTERVAL * n;
    state.dispatches[DISPATCH_OCCUPANCY].x = groups;
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    for (size_t first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && pass_shares_chunks(passes[first], passes[end]))
            end++;
        uint32_t chunks = pass_chunks(passes[first], &repeats);
        for (uint32_t chunk = 0; chunk < chunks; chunk++)
            for (size_t i = first; i < end; i++)
                fixture_run_pass(fixture, passes[i], chunk, groups);
    }
    fixture_run_pass(fixture, &rays_sums.passes[0], 0, groups);
    fixture_run(fixture, "threshold_occupancy", (struct Push){0}, 1);
    for (uint32_t c = 0; c < repeats.cascades; c++)
        fixture_run(fixture, "pack_occupancy", (struct Push){.b = fixture->local_size, .c = c}, 1);
}

static uint32_t time_bin_of(uint32_t view, uint32_t time_bins)
{
    return (uint32_t)fmin(stored_time(view) * time_bins, time_bins - 1);
}

/* Counts occupied cells of all time bins; fails if a cell is missing that is occupied in a training
 * view of its bin, or of one up to `around` bins before or after. */
static uint32_t check_bits(struct fixture *fixture, const bool *occupied, uint32_t time_bins,
                           uint32_t around, uint32_t n)
{
    uint32_t *bits = fixture_read(fixture, BIND_OCCUPANCY_BITS), count = 0;
    for (uint32_t i = 0; i < time_bins * CELLS; i++)
        count += reference_grid_bit(bits, i);
    for (uint32_t view = 0; view < VIEWS; view++) {
        uint32_t time_bin = time_bin_of(view, time_bins),
                 first = time_bin > around ? time_bin - around : 0;
        for (uint32_t i = 0; i < CELLS; i++)
            for (uint32_t at = first; at <= time_bin + around && at < time_bins; at++)
                if (occupied[view * CELLS + i] && !reference_grid_bit(bits, at * CELLS + i))
                    check_fail("update %u: cell %u of time bin %u is lost, of the view at %g", n, i,
                               at, stored_time(view));
    }
    free(bits);
    return count;
}

/* Fills a grid in which the cells of all views have been found: thick, with the time of the view in
 * the last 8 bits. */
static void put_found_cells(struct fixture *fixture, const bool *occupied, uint32_t time_bins)
{
    float *cells = calloc(time_bins * CELLS, sizeof *cells);
    for (uint32_t view = 0; view < VIEWS; view++)
        for (uint32_t i = 0; i < CELLS; i++) {
            union {
                float value;
                uint32_t bits;
            } found = {.value = 0.5f};
            found.bits |= (uint32_t)(stored_time(view) * 255 + 0.5);
            if (occupied[view * CELLS + i])
                cells[time_bin_of(view, time_bins) * CELLS + i] = found.value;
        }
    fixture_put(fixture, BIND_OCCUPANCY, cells, 4ull * time_bins * CELLS);
    free(cells);
}

/* The threshold follows the mean of all time bins. */
static void check_threshold(struct fixture *fixture, uint32_t time_bins, uint32_t groups)
{
    struct State state;
    float *cells = fixture_read(fixture, BIND_OCCUPANCY);
    double sum = 0;
    for (uint32_t i = 0; i < time_bins * CELLS; i++)
        sum += (double)cells[i];
    fixture->config.occupancy_threshold = 1e9f;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    fixture_run_pass(fixture, &rays_sums.passes[0], 0, groups);
    fixture_run(fixture, "threshold_occupancy", (struct Push){0}, 1);
    fixture_get(fixture, BIND_STATE, &state, sizeof state);
    check_close(state.threshold, sum / time_bins / CELLS, 1e-4, sum / time_bins / CELLS,
                "threshold", 0);
    free(cells);
}

/* Returns the share of occupied cells in a time bin after all updates, starting from an empty grid
 * or from one in which all are found. */
static double share_after_updates(struct gpu_device *device, struct motion motion,
                                  uint32_t time_bins, bool found)
{
    struct fixture fixture = fixture_of(device, time_bins, -1);
    float *params = put_ball(&fixture, motion),
          *nothing = calloc(time_bins * CELLS, sizeof *nothing);
    const struct State begin = {.threshold = 0.01f};
    check_equal(rays_time_bins(&fixture.settings), time_bins);
    put_views(&fixture);
    bool *occupied = find_occupied(&fixture, params, 2 * (double)begin.threshold);
    fixture_put(&fixture, BIND_OCCUPANCY, nothing, 4ull * time_bins * CELLS);
    if (found)
        put_found_cells(&fixture, occupied, time_bins);
    fixture_put(&fixture, BIND_STATE, &begin, sizeof begin);
    uint32_t pairs = 0, count = 0, groups = fixture_groups(&fixture, CELLS / 4);
    uint32_t first = found ? OCCUPANCY_WARMUP / UPDATE_INTERVAL : 0;
    for (uint32_t i = 0; i < VIEWS * CELLS; i++)
        pairs += occupied[i];
    check_that(pairs > VIEWS * 20);
    for (uint32_t n = first; n < FIRST_UPDATES + LATER_UPDATES; n++) {
        update(&fixture, n, groups);
        if (n % 4 == 0 && (found || n >= FIRST_UPDATES))
            count = check_bits(&fixture, occupied, time_bins, found ? 0 : 1, n);
    }
    check_threshold(&fixture, time_bins, groups);
    free(occupied);
    free(nothing);
    free(params);
    fixture_destroy(&fixture);
    return (double)count / time_bins / CELLS;
}

/* The ball is 0.4 wide and rolls 0.6: at most two thirds of its path are occupied in a time bin. */
static void test_rolling(struct gpu_device *device)
{
    double all = share_after_updates(device, rolls, 1, false);
    double time_bin = share_after_updates(device, rolls, 8, false);
    check_note("occupied: %.3f of all cells, %.3f of a time bin's\n", all, time_bin);
    check_that(all > 0.08 && all < 0.2);
    check_that(time_bin < 0.7 * all);
}

/* A cell that is occupied in one view of forty is not forgotten. */
static void test_jumping(struct gpu_device *device)
{
    share_after_updates(device, jumps, 1, true);
    share_after_updates(device, jumps, 8, true);
}

/* Returns the bits of all time bins after some updates; the caller frees them. */
static uint32_t *bits_after_updates(struct gpu_device *device, uint32_t time_bins)
{
    struct fixture fixture = fixture_of(device, time_bins, 1);
    float *params = put_ball(&fixture, rolls),
          *nothing = calloc(time_bins * CELLS, sizeof *nothing);
    const struct State begin = {.threshold = 0.01f};
    put_views(&fixture);
    fixture_put(&fixture, BIND_OCCUPANCY, nothing, 4ull * time_bins * CELLS);
    fixture_put(&fixture, BIND_STATE, &begin, sizeof begin);
    for (uint32_t n = 0; n < 24; n++)
        update(&fixture, n, fixture_groups(&fixture, CELLS / 4));
    uint32_t *bits = fixture_read(&fixture, BIND_OCCUPANCY_BITS);
    free(nothing);
    free(params);
    fixture_destroy(&fixture);
    return bits;
}

/* Until views of later times are drawn, all time bins equal a grid without time bins. */
static void test_curriculum(struct gpu_device *device)
{
    uint32_t *one = bits_after_updates(device, 1), *all = bits_after_updates(device, 4), count = 0;
    for (uint32_t i = 0; i < CELLS; i++) {
        count += reference_grid_bit(one, i);
        for (uint32_t time_bin = 0; time_bin < 4; time_bin++)
            check_equal(reference_grid_bit(all, time_bin * CELLS + i), reference_grid_bit(one, i));
    }
    check_that(count > 100 && count < CELLS / 4);
    free(one);
    free(all);
}

static const struct certify_test tests[] = {
    TEST(test_rolling),
    TEST(test_jumping),
    TEST(test_curriculum),
};
const struct certify_part certify_times = {"times", tests, BASE_COUNT(tests)};
