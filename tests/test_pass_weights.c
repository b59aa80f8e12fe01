/* From gradients to weights: update_weights (Adam), update_average, and the 16-bit copies that
 * these and round_parameters make. */
#include "pass_fixture.h"

static struct bench bench_of(struct gpu_device *device, uint32_t features)
{
    struct vkn_config settings = {.grid = {.levels = 3, .features = features}};
    struct bench bench = bench_configure(device, settings);
    bench_allocate(&bench, 1, 1);
    return bench;
}

/* ---- update_weights ------------------------------------------------------------------------ */

struct weights {
    float *params, *gradients, *moment1, *moment2;
    uint32_t *counts;
    uint16_t *halves; /* left behind only */
};

/* Half of the grid entries have no gradient, some in a part of their features; MLP weights may have
 * a gradient of zero as well. */
static struct weights weights_create(const struct bench *bench, uint32_t seed)
{
    struct random random = {seed};
    uint32_t count = bench->model.param_count, features = bench->model.features;
    struct weights w = {
        .params = random_floats(&random, count, -1, 1),
        .gradients = random_floats(&random, count, -100, 100),
        .moment1 = random_floats(&random, count, -0.1, 0.1),
        .moment2 = random_floats(&random, count, 0, 0.01),
        .counts = base_alloc(count / features, sizeof *w.counts),
    };
    for (uint32_t entry = 0; entry < count / features; entry++) {
        w.counts[entry] = random_below(&random, 3) == 0 ? 0 : random_below(&random, 3000);
        if (w.counts[entry] == 0)
            for (uint32_t f = 0; f < features; f++)
                w.moment1[entry * features + f] = w.moment2[entry * features + f] = 0;
        uint32_t untouched = random_below(&random, 4);
        for (uint32_t f = 0; f < features; f++)
            if (untouched > 1 || (untouched == 1 && f > 0))
                w.gradients[entry * features + f] = 0;
    }
    return w;
}

static void weights_destroy(struct weights *w)
{
    void *all[] = {w->params, w->gradients, w->moment1, w->moment2, w->counts, w->halves};
    for (size_t i = 0; i < BASE_COUNT(all); i++)
        free(all[i]);
}

static struct weights run_update(struct bench *bench, const struct weights *w, struct State state)
{
    uint64_t size = 4ull * bench->model.param_count;
    bench_put(bench, BIND_STATE, &state, sizeof state);
    bench_put(bench, BIND_PARAMS, w->params, size);
    bench_put(bench, BIND_GRADIENTS, w->gradients, size);
    bench_put(bench, BIND_MOMENT1, w->moment1, size);
    bench_put(bench, BIND_MOMENT2, w->moment2, size);
    bench_put(bench, BIND_COUNTS, w->counts, size / bench->model.features);
    bench_poison(bench, BIND_HALVES);
    bench_run_variant(bench, "update_weights", FIELD_COPIES, (struct Push){.b = bench->local_size},
                      13);
    return (struct weights){
        .params = bench_take(bench, BIND_PARAMS),
        .gradients = bench_take(bench, BIND_GRADIENTS),
        .moment1 = bench_take(bench, BIND_MOMENT1),
        .moment2 = bench_take(bench, BIND_MOMENT2),
        .counts = bench_take(bench, BIND_COUNTS),
        .halves = bench_take(bench, BIND_HALVES),
    };
}

static bool is_touched(const struct bench *bench, const struct weights *w, uint32_t entry)
{
    uint32_t features = bench->model.features;
    bool touched = entry * features < bench->model.mlp_params;
    for (uint32_t f = 0; f < features; f++)
        touched = touched || w->gradients[entry * features + f] != 0;
    return touched;
}

static void check_weight(const struct bench *bench, const struct weights *before,
                         const struct weights *after, const struct State *state, uint32_t i)
{
    const struct Config *c = &bench->config;
    struct reference_adam adam = {state->learning_rate, c->beta1, c->beta2, c->epsilon,
                                  i < c->mlp_params ? c->weight_decay : 0};
    uint32_t entry = i / bench->model.features;
    double weight = before->params[i], m = before->moment1[i], v = before->moment2[i];
    if (is_touched(bench, before, entry))
        reference_adam_update(&adam, before->counts[entry] + 1,
                              before->gradients[i] * (double)state->gradient_factor, &weight, &m,
                              &v);
    else
        assert_true(after->params[i] == before->params[i] &&
                    after->moment1[i] == before->moment1[i] &&
                    after->moment2[i] == before->moment2[i]);
    assert_int_equal(after->counts[entry],
                     before->counts[entry] + is_touched(bench, before, entry));
    assert_close(after->moment1[i], m, 1e-6, 0.1 + fabs(m), "first moment", i);
    assert_close(after->moment2[i], v, 1e-6, 0.01 + v, "second moment", i);
    /* pow(beta, count) in float leaves a young entry's rate a few units in the last place. */
    double change = fabs(weight - before->params[i]);
    assert_close(after->params[i], weight, 1, 3e-7 + 2e-5 * change, "weight", i);
    assert_true(after->gradients[i] == 0);
}

static void assert_no_copy(uint16_t bits, uint32_t i)
{
    assert_int_equal(bits, i % 2 ? POISON >> 16 : POISON & 0xffff);
}

/* 16-bit programs copy the weights that they have moved. */
static void check_copy(const struct bench *bench, const struct weights *before,
                       const struct weights *after, uint32_t i)
{
    if (bench->path.half && is_touched(bench, before, i / bench->model.features))
        assert_half(after->halves[i], after->params[i], "copy of weight", i);
    else
        assert_no_copy(after->halves[i], i);
}

static void test_update_weights(void **state)
{
    for (uint32_t n = 0; n < 4; n++) {
        uint32_t features = 2 + n % 2 * 2;
        struct bench bench = bench_of(*state, features);
        bench.path.half = n / 2;
        const struct State running = {.learning_rate = 0.02f, .gradient_factor = 1.0f / 512};
        struct weights before = weights_create(&bench, 820 + features);
        bench.config.weight_decay = 0.3f; /* enough to see it */
        bench.config.epsilon = n % 2 ? 0.01f : 1e-15f;
        bench_put(&bench, BIND_CONFIG, &bench.config, sizeof bench.config);
        struct weights after = run_update(&bench, &before, running);
        for (uint32_t i = 0; i < bench.model.param_count; i++)
            check_weight(&bench, &before, &after, &running, i);
        for (uint32_t i = 0; i < bench.model.param_count; i++)
            check_copy(&bench, &before, &after, i);
        weights_destroy(&before);
        weights_destroy(&after);
        bench_destroy(&bench);
    }
}

/* Gradients that are not finite are thrown away; everything else keeps its bits. */
static void test_skip(void **state)
{
    struct bench bench = bench_of(*state, 2);
    bench.path.half = true;
    const struct State skipping = {.learning_rate = 0.02f, .gradient_factor = NAN, .nonfinite = 1};
    struct weights before = weights_create(&bench, 830);
    uint32_t count = bench.model.param_count;
    before.gradients[0] = before.gradients[count - 1] = NAN;
    before.gradients[1000] = INFINITY;
    struct weights after = run_update(&bench, &before, skipping);
    assert_memory_equal(after.params, before.params, 4ull * count);
    assert_memory_equal(after.moment1, before.moment1, 4ull * count);
    assert_memory_equal(after.moment2, before.moment2, 4ull * count);
    assert_memory_equal(after.counts, before.counts, 2ull * count);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(after.gradients[i] == 0);
        assert_no_copy(after.halves[i], i);
    }
    weights_destroy(&before);
    weights_destroy(&after);
    bench_destroy(&bench);
}

/* ---- update_average ------------------------------------------------------------------------ */

/* The copies of an average are no weights' copies. */
static void check_average(struct bench *bench, const float *params, const float *average,
                          float weight)
{
    const struct State weighted = {.average_weight = weight};
    uint32_t count = bench->model.param_count;
    bench_put(bench, BIND_STATE, &weighted, sizeof weighted);
    bench_put(bench, BIND_PARAMS, params, 4ull * count);
    bench_put(bench, BIND_AVERAGE, average, 4ull * count);
    bench_poison(bench, BIND_HALVES);
    bench_poison(bench, BIND_HALF_AVERAGE);
    bench_run_variant(bench, "update_average", FIELD_COPIES, (struct Push){.b = bench->local_size},
                      9);
    float *device = bench_take(bench, BIND_AVERAGE);
    uint16_t *copies = bench_take(bench, BIND_HALF_AVERAGE),
             *halves = bench_take(bench, BIND_HALVES);
    for (uint32_t i = 0; i < count; i++) {
        double expected = (1 - (double)weight) * average[i] + (double)weight * params[i];
        assert_close(device[i], expected, 1e-7, 2, "average", i);
        if (bench->path.half)
            assert_half(copies[i], device[i], "copy of average", i);
        else
            assert_no_copy(copies[i], i);
        assert_no_copy(halves[i], i);
    }
    free(device);
    free(copies);
    free(halves);
}

static void test_average(void **state)
{
    struct bench bench = bench_of(*state, 2);
    struct random random = {840};
    uint32_t count = bench.model.param_count;
    float *params = random_floats(&random, count, -1, 1),
          *average = random_floats(&random, count, -1, 1);
    for (int n = 0; n < 4; n++) {
        bench.path.half = n >= 2;
        check_average(&bench, params, average, n % 2 ? 1.0f : 0.375f);
    }
    free(params);
    free(average);
    bench_destroy(&bench);
}

/* ---- round_parameters ---------------------------------------------------------------------- */

/* Of all sizes, and what lies right in the middle between two 16-bit numbers or beyond them. */
static void test_round_parameters(void **state)
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
    struct bench bench = bench_of(*state, 2);
    struct random random = {850};
    uint32_t count = bench.model.param_count;
    float *params = random_floats(&random, count, -2, 2);
    for (uint32_t i = 0; i < count; i++)
        params[i] = i < BASE_COUNT(edges) ? edges[i]
                                          : ldexpf(params[i], (int)random_below(&random, 48) - 30);
    bench_put(&bench, BIND_PARAMS, params, 4ull * count);
    bench_run(&bench, "round_parameters", (struct Push){.b = bench.local_size}, 7);
    uint16_t *copies = bench_take(&bench, BIND_HALVES);
    for (uint32_t i = 0; i < count; i++)
        assert_half(copies[i], params[i], "copy of parameter", i);
    free(copies);
    free(params);
    bench_destroy(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_update_weights), cmocka_unit_test(test_skip),
        cmocka_unit_test(test_average),        cmocka_unit_test(test_round_parameters),
        cmocka_unit_test(test_no_messages),
    };
    return RUN_PASS_TESTS(tests);
}
