/* Tests update_weights of every optimiser and storage type of moments, update_average, and the f16
 * copies that these passes and round_parameters make. */
#include "certify/weights.h"

/* ---- update_weights ------------------------------------------------------------------------ */

static void check_updates(struct gpu_device *device, enum vkn_optimizer kind, bool packed)
{
    for (uint32_t n = 0; n < 8; n++) {
        uint32_t features = 2 + n % 2 * 2;
        struct fixture fixture =
            weights_fixture(device, kind, features, n < 4 ? VKN_SUMS_DEFAULT : VKN_SUMS_F16);
        weights_check_model(&fixture, features);
        if (packed)
            weights_pack_moments(&fixture);
        weights_check_update(&fixture, n / 2 % 2, n % 2 ? 0.01f : 1e-15f, 820 + features);
        fixture_destroy(&fixture);
    }
}

static void test_update_weights(struct gpu_device *device)
{
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind))
        check_updates(device, kind, false);
    check_updates(device, VKN_OPTIMIZER_ADAM, true);
}

static double mean_of(const float *values, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += (double)values[i];
    return sum / count;
}

/* Makes random weights whose gradients and moments all have one value, without a decay of the MLPs.
 */
static struct weights weights_of_gradient(struct fixture *fixture, uint32_t seed, float value)
{
    fixture->config.groups[0].decay = 0; /* of the MLPs */
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    struct weights weights = weights_create(fixture, seed);
    for (uint32_t i = 0; i < fixture->model.param_count; i++)
        weights.gradients[i] = weights.moment1[i] = weights.moment2[i] = value;
    return weights;
}

/* Packed moments that decay by a few units in the last place: the mean of many is right, though
 * each is rounded to one of two numbers. Rounding to nearest would give 0.8984 and 0.9902. In
 * another step about half of the moments are rounded to the other number. */
static void test_packed_means(struct gpu_device *device)
{
    const struct State running = {.update_rate = 0.02f, .gradient_factor = 1e-30f};
    struct fixture fixture = weights_fixture(device, VKN_OPTIMIZER_ADAM, 2, VKN_SUMS_DEFAULT);
    weights_pack_moments(&fixture);
    struct weights before = weights_of_gradient(&fixture, 880, 1);
    uint32_t count = fixture.model.param_count;
    struct weights after = weights_update(&fixture, &before, running);
    check_close((float)mean_of(after.moment1, count), 0.9, 1, 2e-4, "mean of first moments", 0);
    check_close((float)mean_of(after.moment2, count), 0.99, 1, 1e-4, "mean of second moments", 0);
    for (uint32_t i = 0; i < fixture.config.entry_count; i++)
        before.counts[i]++;
    struct weights later = weights_update(&fixture, &before, running);
    uint32_t same = 0;
    for (uint32_t i = 0; i < count; i++)
        same += later.moment1[i] == after.moment1[i];
    check_that(same > 0.4 * count && same < 0.6 * count);
    weights_destroy(&before);
    weights_destroy(&after);
    weights_destroy(&later);
    fixture_destroy(&fixture);
}

/* Every entry of the hash grid decays, also without a gradient of its own. With Lion the decay is
 * as much part of the gradient as with Adam. */
static void test_grid_decay(struct gpu_device *device)
{
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind))
        for (uint32_t features = 2; features <= 4; features += 2) {
            struct fixture fixture = weights_fixture_decaying(
                device, kind, features, features == 4 ? VKN_SUMS_F16 : VKN_SUMS_DEFAULT, 500);
            weights_check_model(&fixture, features);
            weights_check_update(&fixture, features == 4, 0.01f, 860 + features);
            fixture_destroy(&fixture);
        }
}

/* The loss that the decay adds, in double precision. */
static double decay_loss(const struct fixture *fixture, const float *params)
{
    const struct field_model *model = &fixture->model;
    double loss = 0;
    for (uint32_t level = 0, i = model->mlp_params; level < model->levels; level++) {
        double squares = 0;
        uint32_t count = model->level[level].entries * model->features, end = i + count;
        for (; i < end; i++)
            squares += (double)params[i] * (double)params[i];
        loss += 0.5 * (double)fixture->settings.grid.decay * squares / count;
    }
    return loss;
}

/* By finite differences: without other gradients the first moment is the loss's gradient times
 * (1 - beta1), whatever loss scale and clipping are. */
static void test_decay_gradient(struct gpu_device *device)
{
    const struct State running = {.update_rate = 0.02f, .gradient_factor = 1.0f / 512};
    struct fixture fixture =
        weights_fixture_decaying(device, VKN_OPTIMIZER_ADAM, 2, VKN_SUMS_DEFAULT, 10);
    struct weights before = weights_of_gradient(&fixture, 870, 0);
    uint32_t count = fixture.model.param_count;
    struct weights after = weights_update(&fixture, &before, running);
    struct random random = {871};
    for (uint32_t n = 0; n < 100; n++) {
        uint32_t mlp = fixture.model.mlp_params;
        uint32_t i = n < 10 ? random_below(&random, mlp) : mlp + random_below(&random, count - mlp);
        float value = before.params[i];
        before.params[i] = value + 0.25f;
        double high = decay_loss(&fixture, before.params), step = (double)before.params[i];
        before.params[i] = value - 0.25f;
        double slope = (high - decay_loss(&fixture, before.params)) / (step - before.params[i]);
        before.params[i] = value;
        double gradient = after.moment1[i] / (1 - (double)fixture.config.beta1);
        check_close((float)gradient, slope, 1e-5, fabs(slope) + 1e-7, "gradient of the decay", i);
    }
    weights_destroy(&before);
    weights_destroy(&after);
    fixture_destroy(&fixture);
}

/* Master parameters and moments that the policy rounds to f16. */
static void test_rounded(struct gpu_device *device)
{
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind))
        for (uint32_t n = 0; n < 2; n++) {
            struct fixture fixture = weights_fixture(device, kind, 2, VKN_SUMS_DEFAULT);
            fixture_set_constant(&fixture, SPEC_ROUNDED, n ? ROUND_MOMENTS : ROUND_MASTERS);
            weights_check_update(&fixture, n == 0, 0.01f, 827 + n);
            fixture_destroy(&fixture);
        }
}

/* By hand: an update below half of f16's spacing below 1 leaves a weight of 1 as it is. */
static void test_lost_updates(struct gpu_device *device)
{
    const struct State running = {.update_rate = 2e-4f, .gradient_factor = 1};
    struct fixture fixture = weights_fixture(device, VKN_OPTIMIZER_ADAM, 2, VKN_SUMS_DEFAULT);
    fixture_set_constant(&fixture, SPEC_ROUNDED, ROUND_MASTERS);
    struct weights before = weights_create(&fixture, 829);
    before.params[0] = before.params[1] = 1;
    before.gradients[0] = before.gradients[1] = 1;
    before.moment1[0] = before.moment1[1] = 1;
    before.moment2[0] = before.moment2[1] = 1;
    before.counts[0] = 100000; /* no bias correction: the step is the rate */
    struct weights after = weights_update(&fixture, &before, running);
    check_that(after.params[0] == 1 && after.params[1] == 1);
    check_that(after.moment1[0] > 0.99f);
    weights_destroy(&before);
    weights_destroy(&after);
    fixture_destroy(&fixture);
}

/* Groups with their own rate, decay and entry size, one of them frozen. */
static void test_groups(struct gpu_device *device)
{
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind)) {
        struct fixture fixture = weights_fixture_of_groups(device, kind);
        weights_check_update(&fixture, false, 1e-8f, 825);
        weights_check_update(&fixture, true, 1e-15f, 826);
        fixture_destroy(&fixture);
    }
    struct fixture packed = weights_fixture_of_groups(device, VKN_OPTIMIZER_ADAM);
    weights_pack_moments(&packed);
    weights_check_update(&packed, true, 1e-15f, 828);
    fixture_destroy(&packed);
}

/* Gradients that are not finite are discarded; everything else keeps its bits. */
static void check_skip(struct gpu_device *device, enum vkn_optimizer kind,
                       enum vkn_gradient_sums sums, bool packed)
{
    struct fixture fixture = weights_fixture(device, kind, 2, sums);
    if (packed)
        weights_pack_moments(&fixture);
    fixture.backend.f16 = fixture.backend.copies = true;
    const struct State skipping = {
        .update_rate = 0.02f, .gradient_factor = NAN, .update_skipped = 1};
    struct weights before = weights_create(&fixture, 830);
    uint32_t count = fixture.model.param_count;
    before.gradients[0] = before.gradients[count - 1] = NAN;
    before.gradients[1000] = INFINITY;
    struct weights after = weights_update(&fixture, &before, skipping);
    check_memory(after.params, before.params, 4ull * count);
    check_memory(after.moment1, before.moment1, 4ull * count);
    check_memory(after.moment2, before.moment2, 4ull * count);
    check_memory(after.counts, before.counts, 4ull * fixture.config.entry_count);
    for (uint32_t i = 0; i < count; i++) {
        check_that(after.gradients[i] == 0);
        weights_check_no_copy(after.f16_copy[i], i);
    }
    weights_destroy(&before);
    weights_destroy(&after);
    fixture_destroy(&fixture);
}

static void test_skip(struct gpu_device *device)
{
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind)) {
        check_skip(device, kind, VKN_SUMS_DEFAULT, false);
        check_skip(device, kind, VKN_SUMS_F16, false);
    }
    check_skip(device, VKN_OPTIMIZER_ADAM, VKN_SUMS_DEFAULT, true);
}

/* ---- update_average ------------------------------------------------------------------------ */

/* Copies of the average are not copies of the weights. */
static void check_average(struct fixture *fixture, const float *params, const float *average,
                          float weight)
{
    const struct State weighted = {.average_weight = weight};
    uint32_t count = fixture->model.param_count;
    fixture_put(fixture, BIND_STATE, &weighted, sizeof weighted);
    fixture_put(fixture, BIND_PARAMS, params, 4ull * count);
    fixture_put(fixture, BIND_AVERAGE, average, 4ull * count);
    fixture_poison(fixture, BIND_F16_PARAMS);
    fixture_poison(fixture, BIND_F16_AVERAGE);
    fixture_run_variant(fixture, "update_average", FIELD_F16_PARAMS,
                        (struct Push){.b = fixture->local_size}, 9);
    float *device = fixture_read(fixture, BIND_AVERAGE);
    uint16_t *copies = fixture_read(fixture, BIND_F16_AVERAGE),
             *f16_copy = fixture_read(fixture, BIND_F16_PARAMS);
    for (uint32_t i = 0; i < count; i++) {
        double expected = (1 - (double)weight) * average[i] + (double)weight * params[i];
        check_close(device[i], expected, 1e-7, 2, "average", i);
        if (fixture->backend.f16)
            check_f16(copies[i], device[i], "copy of average", i);
        else
            weights_check_no_copy(copies[i], i);
        weights_check_no_copy(f16_copy[i], i);
    }
    free(device);
    free(copies);
    free(f16_copy);
}

static void test_average(struct gpu_device *device)
{
    struct fixture fixture = weights_fixture(device, VKN_OPTIMIZER_ADAM, 2, VKN_SUMS_DEFAULT);
    struct random random = {840};
    uint32_t count = fixture.model.param_count;
    float *params = random_floats(&random, count, -1, 1),
          *average = random_floats(&random, count, -1, 1);
    for (int n = 0; n < 4; n++) {
        fixture.backend.f16 = fixture.backend.copies = n >= 2;
        check_average(&fixture, params, average, n % 2 ? 1.0f : 0.375f);
    }
    free(params);
    free(average);
    fixture_destroy(&fixture);
}

/* ---- round_parameters ---------------------------------------------------------------------- */

/* Numbers of all sizes, ties between two f16 numbers, and numbers out of range. */
static void test_round_parameters(struct gpu_device *device)
{
    static const float edges[] = {
        0,
        1 + 0x1p-11f,
        1 + 0x3p-11f,
        -1 - 0x1p-11f,
        1 + 0x1.004p-11f,
        2 - 0x1p-12f,
        0x1p-14f,
        0x1p-24f,
        0x1.8p-24f,
        0x1p-25f,
        0x1.004p-25f,
        -0x5p-25f,
        65504,
        65519.996f,
        65520,
        -65520,
        1e30f,
        -0x1p-30f,
        2047.5f,
        2048.5f,
        4099,
        -4101,
        INFINITY,
        -INFINITY,
    };
    struct fixture fixture = weights_fixture(device, VKN_OPTIMIZER_ADAM, 2, VKN_SUMS_DEFAULT);
    struct random random = {850};
    uint32_t count = fixture.model.param_count;
    float *params = random_floats(&random, count, -2, 2);
    for (uint32_t i = 0; i < count; i++)
        params[i] = i < BASE_COUNT(edges) ? edges[i]
                                          : ldexpf(params[i], (int)random_below(&random, 48) - 30);
    fixture_put(&fixture, BIND_PARAMS, params, 4ull * count);
    fixture_run(&fixture, "round_parameters", (struct Push){.b = fixture.local_size}, 7);
    uint16_t *copies = fixture_read(&fixture, BIND_F16_PARAMS);
    for (uint32_t i = 0; i < count; i++)
        check_f16(copies[i], params[i], "copy of parameter", i);
    free(copies);
    free(params);
    fixture_destroy(&fixture);
}

static const struct certify_test tests[] = {
    TEST_BOTH(test_update_weights),   TEST_BOTH(test_packed_means), TEST_BOTH(test_grid_decay),
    TEST_BOTH(test_decay_gradient),   TEST_BOTH(test_rounded),      TEST_BOTH(test_lost_updates),
    TEST_BOTH(test_groups),           TEST_BOTH(test_skip),         TEST_BOTH(test_average),
    TEST_BOTH(test_round_parameters),
};
const struct certify_part certify_weights = {"weights", tests, BASE_COUNT(tests)};
