/* Tests passes of the hash grid without MLPs: encode_samples in f32 and f16;
 * scatter_gradients_fixed with gradients that nearly cancel or overflow; rounding of f16 features
 * and of scatter_gradients with f16 sums. */
#include "certify/fixture.h"

#define RAYS   250u
#define LEVELS 9u

struct grid_case {
    uint32_t features, aabb_scale;
    bool contracted, half;
};

struct inputs {
    struct Ray rays[RAYS];
    struct Sample samples[RAYS]; /* one per ray */
    double positions[RAYS][3];
    float *params;
};

static struct fixture fixture_of(struct gpu_device *device, const struct grid_case *grid)
{
    struct vkn_config settings = {
        .precision = grid->half ? VKN_PRECISION_FP16 : VKN_PRECISION_FP32,
        .gradient_sums = VKN_SUMS_FIXED,
        .deterministic = true,
        .scene = {.aabb_scale = grid->aabb_scale,
                  .contraction = grid->contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE},
        .grid = {.levels = LEVELS, .features = grid->features},
    };
    struct fixture fixture = fixture_configure(device, settings);
    check_equal(fixture.backend.f16, grid->half);
    check_that(fixture.model.level[0].dense && !fixture.model.level[LEVELS - 1].dense);
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

/* Samples in the cube and a little outside, far outside in contracted space, and on the cube's
 * corners and faces. */
static void random_samples(struct inputs *inputs, double side, bool contracted,
                           struct random *random)
{
    for (uint32_t r = 0; r < RAYS; r++) {
        struct Ray *ray = &inputs->rays[r];
        double direction[3];
        random_direction(random, direction);
        memset(ray, 0xff, sizeof *ray); /* NaN in fields that must not be read */
        float t = (float)random_between(random, 0, (contracted ? 8 : 0.1) * side);
        for (int i = 0; i < 3; i++) {
            ray->origin[i] = (float)(0.5 + side * random_between(random, -0.52, 0.52));
            if (r < 50 && random_below(random, 2))
                ray->origin[i] = (float)(0.5 + side * (random_below(random, 2) - 0.5));
            ray->direction[i] = (float)direction[i];
            t = r < 50 ? 0 : t;
            inputs->positions[r][i] = ray->origin[i] + (double)t * ray->direction[i];
        }
        inputs->samples[r] = (struct Sample){.t = t, .ray = r};
    }
}

static struct inputs *inputs_create(struct fixture *fixture, uint32_t seed)
{
    struct random random = {seed};
    struct inputs *inputs = base_alloc(1, sizeof *inputs);
    uint32_t count = fixture->model.param_count;
    const struct State state = {.sample_count = RAYS, .ray_count = 64, .loss_scale = 8};
    inputs->params = random_floats(&random, count, -1, 1);
    random_samples(inputs, fixture->config.aabb_scale, fixture_contracts(fixture), &random);
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_put(fixture, BIND_RAYS, inputs->rays, sizeof inputs->rays);
    fixture_put(fixture, BIND_SAMPLES, inputs->samples, sizeof inputs->samples);
    fixture_put(fixture, BIND_PARAMS, inputs->params, 4ull * count);
    fixture_run(fixture, "round_parameters", (struct Push){0}, 3);
    return inputs;
}

static void inputs_destroy(struct inputs *inputs)
{
    free(inputs->params);
    free(inputs);
}

/* ---- features ------------------------------------------------------------------------------ */

static void check_features(struct fixture *fixture, const struct inputs *inputs)
{
    struct reference_field field =
        reference_field(&fixture->settings, &fixture->model, inputs->params);
    uint32_t features = fixture->model.features, capacity = fixture->config.sample_capacity;
    bool half = fixture->backend.f16;
    for (uint32_t i = 0; i < fixture->model.param_count && half; i++)
        field.params[i] = reference_round_to_f16(field.params[i]);
    float *values = fixture_read(fixture, BIND_FEATURES);
    const uint16_t *halves = (const uint16_t *)values;
    for (uint32_t s = 0; s < RAYS; s++) {
        double expected[LEVELS * 4];
        reference_encode(&field, inputs->positions[s], expected);
        for (uint32_t i = 0; i < LEVELS * features; i++) {
            size_t at = ((size_t)(i / features) * capacity + s) * features + i % features;
            double device = half ? reference_f16(halves[at]) : (double)values[at];
            /* Positions are f32, which is coarse for the finest cells. */
            double rounding = half ? fabs(expected[i]) * 0x1p-11 : 0;
            check_close(device, expected[i], 1, 3e-5 + rounding, "feature of sample", s);
        }
    }
    for (uint32_t level = 0; level < LEVELS; level++) {
        size_t words = half ? features / 2 : features, first = (size_t)level * capacity * words;
        check_poisoned(values, first + RAYS * words, first + capacity * words);
    }
    free(values);
    reference_field_destroy(&field);
}

static void test_features(struct gpu_device *device)
{
    static const struct grid_case grids[] = {
        {2, 1, false, false}, {4, 4, false, false}, {2, 2, true, false},
        {4, 1, false, true},  {2, 4, true, true},
    };
    for (uint32_t n = 0; n < BASE_COUNT(grids); n++) {
        if (grids[n].half && !fixture_has_f16(device))
            continue;
        struct fixture fixture = fixture_of(device, &grids[n]);
        struct inputs *inputs = inputs_create(&fixture, 20 + n);
        /* Fewer workgroups than tiles of samples and groups of levels. */
        fixture_run_variant(&fixture, "encode_samples", FIELD_F16_PARAMS, (struct Push){0}, 5);
        check_features(&fixture, inputs);
        inputs_destroy(inputs);
        fixture_destroy(&fixture);
    }
}

/* ---- gradients in fixed point -------------------------------------------------------------- */

/* Sets the capacity below the requested number of samples; later samples must be ignored. */
static void limit_capacity(struct fixture *fixture)
{
    fixture->config.sample_capacity = RAYS;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
}

/* Scatters gradients[s][l * features + f] of feature f of level l at sample s; returns whether none
 * overflowed. */
static bool run_scatter(struct fixture *fixture, const double (*gradients)[LEVELS * 2])
{
    uint32_t capacity = fixture->config.sample_capacity, count = fixture->model.param_count;
    float *values = fixture_read(fixture, BIND_FEATURES);
    uint64_t *zeros = base_alloc(count, sizeof *zeros);
    struct State state = {.sample_count = RAYS + 300, .ray_count = 64, .loss_scale = 8};
    for (uint32_t s = 0; s < RAYS; s++)
        for (uint32_t i = 0; i < LEVELS * 2; i++)
            values[((size_t)(i / 2) * capacity + s) * 2 + i % 2] = (float)gradients[s][i];
    fixture_put(fixture, BIND_FEATURES, values, fixture->buffers[BIND_FEATURES].size);
    fixture_put(fixture, BIND_ACCUMULATORS, zeros, 8ull * count);
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_run_variant(fixture, "scatter_gradients", FIELD_SCATTER, (struct Push){0}, 7);
    fixture_get(fixture, BIND_STATE, &state, sizeof state);
    free(zeros);
    free(values);
    return !state.nonfinite;
}

/* Compares the grid's gradient sums, level by level. */
static void check_sums(struct fixture *fixture, const struct inputs *inputs,
                       const double (*gradients)[LEVELS * 2])
{
    struct reference_field field =
        reference_field(&fixture->settings, &fixture->model, inputs->params);
    double *expected = base_alloc(fixture->model.param_count, sizeof *expected);
    for (uint32_t s = 0; s < RAYS; s++)
        reference_encode_backward(&field, inputs->positions[s], gradients[s], expected);
    fixture_run_variant(fixture, "reduce_gradients", FIELD_REDUCE, (struct Push){0}, 3);
    float *device = fixture_read(fixture, BIND_GRADIENTS);
    for (uint32_t i = 0; i < LEVELS; i++) {
        const struct Level *level = &fixture->model.level[i];
        double error = relative_error(device + level->first, expected + level->first,
                                      2 * (size_t)level->entries);
        if (!(error < 1e-3))
            check_fail("gradient of level %u: relative error %.3g", i, error);
    }
    free(device);
    free(expected);
    reference_field_destroy(&field);
}

static const struct grid_case plain = {2, 1, false, false};

/* Three samples at each position: gradients of size `least` to `most` and their opposites, in
 * either order, cancel and leave a small remainder of either sign. */
static void cancelling_gradients(double least, double most, double (*all)[LEVELS * 2],
                                 double (*left)[LEVELS * 2])
{
    struct random random = {31};
    for (uint32_t s = 0; s + 2 < RAYS; s += 3)
        for (uint32_t i = 0; i < LEVELS * 2; i++) {
            double large = (float)exp(random_between(&random, log(least), log(most)));
            double small = (float)random_between(&random, -1e-6, 1e-6);
            uint32_t plus = random_below(&random, 3), minus = (plus + 1 + i % 2) % 3;
            left[s][i] = all[s + 3 - plus - minus][i] = small;
            all[s + plus][i] = large;
            all[s + minus][i] = -large;
        }
}

static struct inputs *inputs_of_threes(struct fixture *fixture, uint32_t seed)
{
    struct inputs *inputs = inputs_create(fixture, seed);
    for (uint32_t s = 0; s < RAYS; s++) {
        inputs->samples[s] = inputs->samples[s / 3 * 3];
        memcpy(inputs->positions[s], inputs->positions[s / 3 * 3], sizeof inputs->positions[s]);
    }
    fixture_put(fixture, BIND_SAMPLES, inputs->samples, sizeof inputs->samples);
    return inputs;
}

static void test_cancelling(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device, &plain);
    limit_capacity(&fixture);
    struct inputs *inputs = inputs_of_threes(&fixture, 30);
    static const double most[] = {3000, 131000};
    for (size_t n = 0; n < BASE_COUNT(most); n++) {
        double all[RAYS][LEVELS * 2] = {{0}}, left[RAYS][LEVELS * 2] = {{0}};
        cancelling_gradients(n ? most[n] : 0.01, most[n], all, left);
        check_that(run_scatter(&fixture, (const double(*)[LEVELS * 2]) all));
        check_sums(&fixture, inputs, (const double(*)[LEVELS * 2]) left);
    }
    inputs_destroy(inputs);
    fixture_destroy(&fixture);
}

/* An addend has 62 bits: gradients times rays below 2^20 at a loss scale of 1; with 64 rays and a
 * scale of 8 gradients below 2^17. Larger ones are reported; smaller than a unit only lose
 * themselves. */
static void test_range(struct gpu_device *device)
{
    static const double sizes[] = {262000, -262000, 1e-12, -1e-12};
    struct fixture fixture = fixture_of(device, &plain);
    limit_capacity(&fixture);
    struct inputs *inputs = inputs_create(&fixture, 40);
    for (size_t n = 0; n < BASE_COUNT(sizes); n++) {
        double gradients[RAYS][LEVELS * 2];
        for (uint32_t s = 0; s < RAYS; s++)
            for (uint32_t i = 0; i < LEVELS * 2; i++)
                gradients[s][i] = sizes[n];
        bool held = run_scatter(&fixture, (const double(*)[LEVELS * 2]) gradients);
        check_equal(held, fabs(sizes[n]) < 1);
        if (!held)
            continue;
        fixture_run_variant(&fixture, "reduce_gradients", FIELD_REDUCE, (struct Push){0}, 3);
        float *device = fixture_read(&fixture, BIND_GRADIENTS);
        for (uint32_t i = fixture.model.mlp_params; i < fixture.model.param_count; i++)
            check_close(device[i], 0, 1e-8, 1, "sum of next to nothing", i);
        free(device);
    }
    inputs_destroy(inputs);
    fixture_destroy(&fixture);
}

/* In each way of adding up, one gradient that is not finite raises nonfinite. */
static void test_overflow(struct gpu_device *device)
{
    static const char *const ways[] = {"float", "owned", "cas", "fixed"};
    static const double bad[] = {NAN, INFINITY, -0x1p100, 8};
    for (size_t n = 0; n < BASE_COUNT(ways) * BASE_COUNT(bad); n++) {
        struct fixture fixture = fixture_of(device, &plain);
        limit_capacity(&fixture);
        if (n < BASE_COUNT(bad) && !gpu_device_capabilities(device)->float_atomic_add)
            continue; /* the first way */
        fixture.backend.scatter_suffix = ways[n / BASE_COUNT(bad)];
        struct inputs *inputs = inputs_create(&fixture, 50);
        double gradients[RAYS][LEVELS * 2] = {{0}};
        gradients[RAYS - 1 - n][n] = bad[n % BASE_COUNT(bad)];
        bool held = run_scatter(&fixture, (const double(*)[LEVELS * 2]) gradients);
        check_equal(held, bad[n % BASE_COUNT(bad)] == 8);
        inputs_destroy(inputs);
        fixture_destroy(&fixture);
    }
}

/* ---- rounding to 16 bits ------------------------------------------------------------------- */

/* Makes one level whose points lie at odd multiples of 1/32, so that positions and weights are
 * exact. */
static struct fixture fixture_of_lattice(struct gpu_device *device, uint32_t features, bool half,
                                         enum vkn_gradient_sums sums)
{
    struct vkn_config settings = {
        .precision = half ? VKN_PRECISION_FP16 : VKN_PRECISION_FP32,
        .gradient_sums = sums,
        .grid = {.levels = 1, .features = features, .coarsest = 17, .log2_entries = 13},
    };
    struct fixture fixture = fixture_configure(device, settings);
    check_that(fixture.model.level[0].scale == 16 && fixture.model.level[0].dense);
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

/* Puts a sample into one of RAYS cells, at `inside` on each axis; returns the first entry. */
static uint32_t random_cell_position(struct inputs *inputs, uint32_t s, double inside)
{
    const uint32_t cell[3] = {1 + s % 7 * 2, 1 + s / 7 % 6 * 2, 1 + s / 42 * 2};
    inputs->rays[s] = (struct Ray){.direction = {1}};
    inputs->samples[s] = (struct Sample){.ray = s};
    for (int i = 0; i < 3; i++)
        inputs->rays[s].origin[i] = (float)((cell[i] + inside - 0.5) / 16);
    return cell[0] + 17 * (cell[1] + 17 * cell[2]);
}

static void put_samples(struct fixture *fixture, struct inputs *inputs, double inside)
{
    const struct State state = {.sample_count = RAYS, .live_count = RAYS, .loss_scale = 1};
    uint32_t live[RAYS];
    for (uint32_t s = 0; s < RAYS; s++) {
        random_cell_position(inputs, s, inside);
        live[s] = s;
    }
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_put(fixture, BIND_RAYS, inputs->rays, sizeof inputs->rays);
    fixture_put(fixture, BIND_SAMPLES, inputs->samples, sizeof inputs->samples);
    fixture_put(fixture, BIND_LIVE, live, sizeof live);
}

/* Returns the mean of eight entries, often exactly half-way between two f16 numbers. */
static double mean_of_corners(const struct fixture *fixture, const float *params, uint32_t entry,
                              uint32_t feature)
{
    double sum = 0;
    for (uint32_t corner = 0; corner < 8; corner++) {
        uint32_t at = entry + (corner & 1) + 17 * (corner >> 1 & 1) + 289 * (corner >> 2);
        sum += params[fixture->model.level[0].first + at * fixture->model.features + feature];
    }
    return sum / 8;
}

static void test_rounded_features(struct gpu_device *device)
{
    if (!fixture_has_f16(device))
        return;
    for (uint32_t features = 2; features <= 4; features += 2) {
        struct fixture fixture = fixture_of_lattice(device, features, true, VKN_SUMS_DEFAULT);
        struct random random = {50 + features};
        struct inputs inputs;
        uint32_t count = fixture.model.param_count, middle = 0;
        float *params = random_floats(&random, count, -1, 1);
        for (uint32_t i = 0; i < count; i++)
            params[i] = ldexpf(roundf(1024 * params[i]), -10);
        fixture_put(&fixture, BIND_PARAMS, params, 4ull * count);
        fixture_run(&fixture, "round_parameters", (struct Push){0}, 3);
        put_samples(&fixture, &inputs, 0.5);
        fixture_run_variant(&fixture, "encode_samples", FIELD_F16_PARAMS, (struct Push){0}, 5);
        uint16_t *halves = fixture_read(&fixture, BIND_FEATURES);
        for (uint32_t i = 0; i < RAYS * features; i++) {
            uint32_t entry = random_cell_position(&inputs, i / features, 0.5);
            double mean = mean_of_corners(&fixture, params, entry, i % features);
            check_f16(halves[i], (float)mean, "feature of sample", i / features);
            double steps = ldexp(mean, 11 - ilogb(mean)); /* in half units in the last place */
            middle += fmod(fabs(steps), 2) == 1;
        }
        check_that(middle > RAYS / 8);
        free(halves);
        free(params);
        fixture_destroy(&fixture);
    }
}

/* Chooses a sum and an addend of any size, with edge cases: ties, the smallest and the largest
 * numbers. */
static void sum_and_addend(uint32_t i, struct random *random, uint16_t *sum, float *addend)
{
    static const struct {
        uint16_t sum;
        float addend;
    } edges[] = {
        {0x3c00, 0x1p-11f},  {0x3c01, 0x1p-11f},  {0x3c00, 0x1.004p-11f},
        {0xbc00, -0x1p-11f}, {0xbc01, -0x1p-11f}, {0x3bff, 0x1p-12f},
        {0, 0x1p-24f},       {0, 0x1p-25f},       {0, 0x1.004p-25f},
        {0, -0x1.8p-24f},    {1, 0x1p-25f},       {0x03ff, 0x1p-25f},
        {0x03ff, 0x1p-24f},  {0, 0x1p-14f},       {0, 0x1.ffcp-15f},
        {0, 0x1.ffep-15f},   {0x7bff, 15.99f},    {0x7bff, 16},
        {0xfbff, -16},       {0, 1e30f},          {0, -1e30f},
        {0, INFINITY},       {0, -INFINITY},      {0, NAN},
        {0x7c00, 1},         {0x7c00, -65504},    {0xfc00, 1},
        {0x3c00, -1},        {0x3c00, -0x1p-12f}, {0x3c00, -0x1.004p-12f},
        {0x4000, -0x1p-11f}, {0, 1e-30f},
    };
    if (i < BASE_COUNT(edges)) {
        *sum = edges[i].sum;
        *addend = edges[i].addend;
        return;
    }
    *sum = (uint16_t)(random_word(random) & 0xbbff);
    *addend = ldexpf((float)random_between(random, -1, 1), (int)random_below(random, 30) - 24);
}

/* f16 sums to which each sample adds at one corner with weight 1. Native packed atomics round the
 * addend to f16 first. */
static void check_rounded_sums(struct gpu_device *device, uint32_t features, bool half)
{
    struct fixture fixture = fixture_of_lattice(device, features, half, VKN_SUMS_F16);
    bool packed = gpu_device_capabilities(device)->packed_f16_atomics;
    struct random random = {60 + features};
    struct inputs inputs;
    uint32_t first = fixture.model.level[0].first, count = fixture.model.param_count;
    uint16_t *sums = base_alloc(count, sizeof *sums), *before = base_alloc(count, sizeof *sums);
    float *values = fixture_read(&fixture, BIND_FEATURES), addends[RAYS * 4];
    for (uint32_t i = 0; i < RAYS * features; i++) {
        uint32_t entry = random_cell_position(&inputs, i / features, 0);
        sum_and_addend(i, &random, &sums[first + entry * features + i % features], &addends[i]);
        uint16_t bits = reference_f16_bits(addends[i]);
        values[i] = addends[i];
        if (half) {
            memcpy((uint16_t *)values + i, &bits, sizeof bits);
            addends[i] = (float)reference_f16(bits);
        } else if (packed) {
            addends[i] = (float)reference_f16(bits);
        }
    }
    memcpy(before, sums, 2ull * count);
    fixture_put(&fixture, BIND_FEATURES, values, fixture.buffers[BIND_FEATURES].size);
    fixture_put(&fixture, BIND_ACCUMULATORS, sums, 2ull * count);
    put_samples(&fixture, &inputs, 0);
    fixture_run_variant(&fixture, "scatter_gradients", FIELD_SCATTER, (struct Push){0}, 7);
    fixture_get(&fixture, BIND_ACCUMULATORS, sums, 2ull * count);
    for (uint32_t i = 0; i < RAYS * features; i++) {
        uint32_t at =
            first + random_cell_position(&inputs, i / features, 0) * features + i % features;
        float sum = (float)reference_f16(before[at]) + addends[i];
        if (isnan(sum))
            check_that(isnan(reference_f16(sums[at])));
        else
            check_f16(sums[at], sum, "sum", i);
    }
    free(values);
    free(before);
    free(sums);
    fixture_destroy(&fixture);
}

static void test_rounded_sums(struct gpu_device *device)
{
    for (uint32_t n = 0; n < (fixture_has_f16(device) ? 4 : 2); n++)
        check_rounded_sums(device, n % 2 ? 4 : 2, n >= 2);
}

static const struct certify_test tests[] = {
    TEST_BOTH(test_features),         TEST_BOTH(test_cancelling),   TEST_BOTH(test_range),
    TEST_BOTH(test_rounded_features), TEST_BOTH(test_rounded_sums), TEST_BOTH(test_overflow),
};
const struct certify_part certify_grid = {"grid", tests, BASE_COUNT(tests)};
