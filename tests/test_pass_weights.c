/* Tests update_weights of every optimiser, update_average, and the f16 copies that these passes and
 * round_parameters make. */
#include "pass_fixture.h"

static struct bench bench_decaying(struct gpu_device *device, enum vkn_optimizer kind,
                                   uint32_t features, enum vkn_gradient_sums sums, float grid_decay)
{
    struct vkn_config settings = {
        .gradient_sums = sums,
        .grid = {.levels = 3, .features = features, .decay = grid_decay},
        .optimizer = {.kind = kind, .weight_decay = 0.3f /* large enough to notice */},
    };
    struct bench bench = bench_configure(device, settings);
    bench_allocate(&bench, 1, 1);
    return bench;
}

static struct bench bench_of(struct gpu_device *device, enum vkn_optimizer kind, uint32_t features,
                             enum vkn_gradient_sums sums)
{
    return bench_decaying(device, kind, features, sums, 0);
}

/* Makes parameter groups that differ in all properties. */
static struct bench bench_of_groups(struct gpu_device *device, enum vkn_optimizer kind)
{
    struct vkn_config settings = {.grid.levels = 3,
                                  .optimizer = {.kind = kind, .weight_decay = 0.3f}};
    struct bench bench = bench_configure(device, settings);
    const struct parameter_group groups[] = {
        {.count = 3000, .entry = 4, .sparse = true, .rate = 1},
        {.count = 77, .entry = 1, .rate = 0.125f, .decay = 2},
        {.count = 1200, .entry = 3, .sparse = true, .rate = 3, .decay = 0.5f},
        {.count = 600, .entry = 2, .rate = 0, .decay = 1},
        {.count = bench.model.param_count - 4877, .entry = 1, .sparse = true, .rate = 1},
    };
    optim_configure_groups(&bench.settings, groups, BASE_COUNT(groups), &bench.config,
                           &bench.constants);
    bench_allocate(&bench, 1, 1);
    return bench;
}

static const struct ParameterGroup *group_of(const struct bench *bench, uint32_t i)
{
    const struct ParameterGroup *group = bench->config.groups;
    while (i >= group->first + group->count)
        group++;
    return group;
}

/* Returns the first parameter of a parameter's entry; *number: the entry's index. */
static uint32_t entry_of(const struct bench *bench, uint32_t i, uint32_t *number)
{
    const struct ParameterGroup *group = group_of(bench, i);
    uint32_t entry = (i - group->first) / group->entry;
    *number = group->first_entry + entry;
    return group->first + entry * group->entry;
}

/* Returns the number of parameters in the parameter's level of the hash grid; 0 outside the grid.
 */
static uint32_t level_size(const struct bench *bench, uint32_t i)
{
    const struct field_model *model = &bench->model;
    uint32_t end = model->mlp_params, size = 0;
    for (uint32_t level = 0; level < model->levels && i >= end; level++) {
        size = model->level[level].entries * model->features;
        end += size;
    }
    return i < model->mlp_params ? 0 : size;
}

/* Returns the gradient of the decay of the hash grid, 0.5 * grid.decay * mean square by level. */
static double decay_gradient(const struct bench *bench, uint32_t i, double weight)
{
    uint32_t size = level_size(bench, i);
    return size > 0 ? (double)bench->settings.grid.decay * weight / size : 0;
}

/* ---- update_weights ------------------------------------------------------------------------ */

struct weights {
    float *params, *gradients, *moment1, *moment2;
    uint32_t *counts;
    uint16_t *f16_copy; /* results only */
};

/* Half of the entries have no gradient, some others only in part of their parameters. */
static struct weights weights_create(const struct bench *bench, uint32_t seed)
{
    struct random random = {seed};
    uint32_t count = bench->model.param_count, untouched = 0;
    struct weights w = {
        .params = random_floats(&random, count, -1, 1),
        .gradients = random_floats(&random, count, -100, 100),
        .moment1 = random_floats(&random, count, -0.1, 0.1),
        .moment2 = random_floats(&random, count, 0, 0.01),
        .counts = base_alloc(bench->config.entry_count, sizeof *w.counts),
    };
    for (uint32_t i = 0; i < count; i++) {
        uint32_t entry, first = entry_of(bench, i, &entry);
        if (i == first) {
            w.counts[entry] = random_below(&random, 3) == 0 ? 0 : random_below(&random, 3000);
            untouched = random_below(&random, 4);
        }
        if (w.counts[entry] == 0)
            w.moment1[i] = w.moment2[i] = 0;
        if (untouched > 1 || (untouched == 1 && i > first))
            w.gradients[i] = 0;
    }
    return w;
}

static void weights_destroy(struct weights *w)
{
    void *all[] = {w->params, w->gradients, w->moment1, w->moment2, w->counts, w->f16_copy};
    for (size_t i = 0; i < BASE_COUNT(all); i++)
        free(all[i]);
}

/* Stores gradients; with f16 sums the grid's are rounded and stored as f16. */
static void put_gradients(struct bench *bench, const struct weights *w)
{
    uint32_t mlp = bench->model.mlp_params, count = bench->model.param_count;
    bench_put(bench, BIND_GRADIENTS, w->gradients, 4ull * count);
    if (bench->backend.sums != VKN_SUMS_F16)
        return;
    uint16_t *sums = base_alloc(count, sizeof *sums);
    for (uint32_t i = mlp; i < count; i++) {
        sums[i] = reference_f16_bits(w->gradients[i]);
        w->gradients[i] = (float)reference_f16(sums[i]);
    }
    bench_put(bench, BIND_ACCUMULATORS, sums, 2ull * count);
    bench_poison(bench, BIND_GRADIENTS);
    bench_put(bench, BIND_GRADIENTS, w->gradients, 4ull * mlp);
    free(sums);
}

/* Dispatches rows of so many workgroups, as begin_step does beyond the device's limit; GPU kernels,
 * which accept any number of workgroups, get two rows. */
static void run_rows(struct bench *bench, uint32_t row)
{
    const struct gpu_pipeline *pipeline = bench_pipeline(bench, "update_weights", FIELD_F16_PARAMS);
    const struct Push push = {.b = bench->local_size};
    const size_t offset = offsetof(struct State, dispatches[DISPATCH_ENTRIES]);
    struct State state;
    bench_get(bench, BIND_STATE, &state, sizeof state);
    bool cpu_kernels = bench->constants.values[SPEC_CPU_KERNELS];
    uint32_t groups = cpu_kernels ? bench_groups(bench, bench->config.entry_count) : 2 * row;
    state.dispatches[DISPATCH_ENTRIES] = (Dispatch){row, (groups + row - 1) / row, 1, 0};
    bench_put(bench, BIND_STATE, &state, sizeof state);
    struct gpu_recording *recording;
    ok(gpu_record_begin(bench->device, "update_weights", 0, &recording));
    gpu_record_dispatch_indirect(recording, pipeline, bench->bindings, &push, sizeof push,
                                 &bench->buffers[BIND_STATE], offset);
    ok(gpu_run_once(&recording));
}

static bool has_moment2(const struct bench *bench)
{
    return optim_kind(&bench->settings)->moments == 2;
}

static float *copy_floats(const float *from, uint64_t bytes)
{
    float *copy = base_alloc(bytes, 1);
    memcpy(copy, from, bytes);
    return copy;
}

static struct weights run_update(struct bench *bench, const struct weights *w, struct State state)
{
    uint64_t size = 4ull * bench->model.param_count;
    bench_put(bench, BIND_STATE, &state, sizeof state);
    bench_put(bench, BIND_PARAMS, w->params, size);
    put_gradients(bench, w);
    bench_put(bench, BIND_MOMENT1, w->moment1, size);
    if (has_moment2(bench))
        bench_put(bench, BIND_MOMENT2, w->moment2, size);
    bench_put(bench, BIND_STEP_COUNTS, w->counts, 4ull * bench->config.entry_count);
    bench_poison(bench, BIND_F16_PARAMS);
    run_rows(bench, 7);
    return (struct weights){
        .params = bench_read(bench, BIND_PARAMS),
        .gradients = bench_read_gradients(bench),
        .moment1 = bench_read(bench, BIND_MOMENT1),
        .moment2 =
            has_moment2(bench) ? bench_read(bench, BIND_MOMENT2) : copy_floats(w->moment2, size),
        .counts = bench_read(bench, BIND_STEP_COUNTS),
        .f16_copy = bench_read(bench, BIND_F16_PARAMS),
    };
}

/* Whether the parameter changes: its group is trained, and a sparse entry has a gradient. */
static bool is_moved(const struct bench *bench, const struct weights *w, uint32_t i)
{
    const struct ParameterGroup *group = group_of(bench, i);
    uint32_t entry, first = entry_of(bench, i, &entry);
    bool touched = !group->sparse;
    for (uint32_t k = first; k < first + group->entry; k++)
        touched = touched || w->gradients[k] != 0;
    return touched && group->rate > 0;
}

static bool is_half(float x)
{
    return (double)x == reference_round_to_f16((double)x);
}

static void check_weight(const struct bench *bench, const struct weights *before,
                         const struct weights *after, const struct State *state, uint32_t i)
{
    const struct Config *c = &bench->config;
    const struct ParameterGroup *group = group_of(bench, i);
    uint32_t rounded = bench->constants.values[SPEC_ROUNDED];
    struct reference_optimizer optimizer = {state->learning_rate * (double)group->rate,
                                            c->beta1,
                                            c->beta2,
                                            c->epsilon,
                                            group->decay,
                                            (rounded & ROUND_MOMENTS) != 0,
                                            (rounded & ROUND_MASTERS) != 0};
    bool moved = is_moved(bench, before, i);
    uint32_t entry;
    entry_of(bench, i, &entry);
    double weight = before->params[i], m = before->moment1[i], v = before->moment2[i];
    if (moved)
        reference_updates[bench->settings.optimizer.kind](&optimizer, before->counts[entry] + 1,
                                                          before->gradients[i] *
                                                                  (double)state->gradient_factor +
                                                              decay_gradient(bench, i, weight),
                                                          &weight, &m, &v);
    else
        assert_true(after->params[i] == before->params[i] &&
                    after->moment1[i] == before->moment1[i] &&
                    after->moment2[i] == before->moment2[i]);
    assert_int_equal(after->counts[entry], before->counts[entry] + moved);
    /* Rounding to f16 may go either way for values near the middle between two numbers. */
    double moment_unit = optimizer.f16_moments ? 1e-3 : 1e-6,
           unit = optimizer.f16_weights ? 1e-3 : 0;
    assert_close(after->moment1[i], m, moment_unit, 0.1 + fabs(m), "first moment", i);
    assert_close(after->moment2[i], v, moment_unit, 0.01 + v, "second moment", i);
    assert_true(
        !moved || !optimizer.f16_moments ||
        (is_half(after->moment1[i]) && (!has_moment2(bench) || is_half(after->moment2[i]))));
    assert_true(!moved || !optimizer.f16_weights || is_half(after->params[i]));
    /* pow(beta, count) in float leaves errors of a few units in the last place at small counts. */
    double change = fabs(weight - before->params[i]) * (optimizer.f16_moments ? 50 : 1);
    assert_close(after->params[i], weight, 1, 3e-7 + unit * fabs(weight) + 2e-5 * change, "weight",
                 i);
    assert_true(after->gradients[i] == 0);
}

static void assert_no_copy(uint16_t bits, uint32_t i)
{
    assert_int_equal(bits, i % 2 ? POISON >> 16 : POISON & 0xffff);
}

/* f16 pipelines copy the weights that they have changed. */
static void check_copy(const struct bench *bench, const struct weights *before,
                       const struct weights *after, uint32_t i)
{
    if (bench->backend.f16 && is_moved(bench, before, i))
        assert_f16(after->f16_copy[i], after->params[i], "copy of weight", i);
    else
        assert_no_copy(after->f16_copy[i], i);
}

static void check_update(struct bench *bench, bool half, float epsilon, uint32_t seed)
{
    const struct State running = {.learning_rate = 0.02f, .gradient_factor = 1.0f / 512};
    struct weights before = weights_create(bench, seed);
    bench->backend.f16 = bench->backend.copies = half;
    bench->config.epsilon = epsilon;
    bench_put(bench, BIND_CONFIG, &bench->config, sizeof bench->config);
    struct weights after = run_update(bench, &before, running);
    for (uint32_t i = 0; i < bench->model.param_count; i++)
        check_weight(bench, &before, &after, &running, i);
    for (uint32_t i = 0; i < bench->model.param_count; i++)
        check_copy(bench, &before, &after, i);
    weights_destroy(&before);
    weights_destroy(&after);
}

/* Groups of a model: the MLPs, not sparse and with weight decay, and the grid, which is sparse
 * unless it decays. */
static void check_model(const struct bench *bench, uint32_t features)
{
    const struct Config *c = &bench->config;
    uint32_t mlp = bench->model.mlp_params, grid = bench->model.param_count - mlp;
    const struct ParameterGroup groups[] = {
        {0, mlp, features, 0, 0, 1, 0.3f},
        {mlp, grid, features, mlp / features, bench->settings.grid.decay <= 0, 1, 0}};
    assert_int_equal(c->entry_count, bench->model.param_count / features);
    assert_memory_equal(c->groups, groups, sizeof groups);
}

static void check_updates(struct gpu_device *device, enum vkn_optimizer kind)
{
    for (uint32_t n = 0; n < 8; n++) {
        uint32_t features = 2 + n % 2 * 2;
        struct bench bench =
            bench_of(device, kind, features, n < 4 ? VKN_SUMS_DEFAULT : VKN_SUMS_F16);
        check_model(&bench, features);
        check_update(&bench, n / 2 % 2, n % 2 ? 0.01f : 1e-15f, 820 + features);
        bench_destroy(&bench);
    }
}

static void test_update_weights(void **state)
{
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind))
        check_updates(*state, kind);
}

/* Every entry of the hash grid decays, also without a gradient of its own. With Lion the decay is
 * as much part of the gradient as with Adam. */
static void test_grid_decay(void **state)
{
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind))
        for (uint32_t features = 2; features <= 4; features += 2) {
            struct bench bench = bench_decaying(
                *state, kind, features, features == 4 ? VKN_SUMS_F16 : VKN_SUMS_DEFAULT, 500);
            check_model(&bench, features);
            check_update(&bench, features == 4, 0.01f, 860 + features);
            bench_destroy(&bench);
        }
}

/* The loss that the decay adds, in double precision. */
static double decay_loss(const struct bench *bench, const float *params)
{
    const struct field_model *model = &bench->model;
    double loss = 0;
    for (uint32_t level = 0, i = model->mlp_params; level < model->levels; level++) {
        double squares = 0;
        uint32_t count = model->level[level].entries * model->features, end = i + count;
        for (; i < end; i++)
            squares += (double)params[i] * (double)params[i];
        loss += 0.5 * (double)bench->settings.grid.decay * squares / count;
    }
    return loss;
}

/* By finite differences: without other gradients the first moment is the loss's gradient times
 * (1 - beta1), whatever loss scale and clipping are. */
static void test_decay_gradient(void **state)
{
    const struct State running = {.learning_rate = 0.02f, .gradient_factor = 1.0f / 512};
    struct bench bench = bench_decaying(*state, VKN_OPTIMIZER_ADAM, 2, VKN_SUMS_DEFAULT, 10);
    bench.config.groups[0].decay = 0; /* of the MLPs */
    bench_put(&bench, BIND_CONFIG, &bench.config, sizeof bench.config);
    struct weights before = weights_create(&bench, 870);
    uint32_t count = bench.model.param_count;
    for (uint32_t i = 0; i < count; i++)
        before.gradients[i] = before.moment1[i] = before.moment2[i] = 0;
    struct weights after = run_update(&bench, &before, running);
    struct random random = {871};
    for (uint32_t n = 0; n < 100; n++) {
        uint32_t mlp = bench.model.mlp_params;
        uint32_t i = n < 10 ? random_below(&random, mlp) : mlp + random_below(&random, count - mlp);
        float value = before.params[i];
        before.params[i] = value + 0.25f;
        double high = decay_loss(&bench, before.params), step = (double)before.params[i];
        before.params[i] = value - 0.25f;
        double slope = (high - decay_loss(&bench, before.params)) / (step - before.params[i]);
        before.params[i] = value;
        double gradient = after.moment1[i] / (1 - (double)bench.config.beta1);
        assert_close((float)gradient, slope, 1e-5, fabs(slope) + 1e-7, "gradient of the decay", i);
    }
    weights_destroy(&before);
    weights_destroy(&after);
    bench_destroy(&bench);
}

/* Master parameters and moments that the policy rounds to f16. */
static void test_rounded(void **state)
{
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind))
        for (uint32_t n = 0; n < 2; n++) {
            struct bench bench = bench_of(*state, kind, 2, VKN_SUMS_DEFAULT);
            bench_set_constant(&bench, SPEC_ROUNDED, n ? ROUND_MOMENTS : ROUND_MASTERS);
            check_update(&bench, n == 0, 0.01f, 827 + n);
            bench_destroy(&bench);
        }
}

/* By hand: an update below half of f16's spacing below 1 leaves a weight of 1 as it is. */
static void test_lost_updates(void **state)
{
    const struct State running = {.learning_rate = 2e-4f, .gradient_factor = 1};
    struct bench bench = bench_of(*state, VKN_OPTIMIZER_ADAM, 2, VKN_SUMS_DEFAULT);
    bench_set_constant(&bench, SPEC_ROUNDED, ROUND_MASTERS);
    struct weights before = weights_create(&bench, 829);
    before.params[0] = before.params[1] = 1;
    before.gradients[0] = before.gradients[1] = 1;
    before.moment1[0] = before.moment1[1] = 1;
    before.moment2[0] = before.moment2[1] = 1;
    before.counts[0] = 100000; /* no bias correction: the step is the rate */
    struct weights after = run_update(&bench, &before, running);
    assert_true(after.params[0] == 1 && after.params[1] == 1);
    assert_true(after.moment1[0] > 0.99f);
    weights_destroy(&before);
    weights_destroy(&after);
    bench_destroy(&bench);
}

/* Groups with their own rate, decay and entry size, one of them frozen. */
static void test_groups(void **state)
{
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind)) {
        struct bench bench = bench_of_groups(*state, kind);
        check_update(&bench, false, 1e-8f, 825);
        check_update(&bench, true, 1e-15f, 826);
        bench_destroy(&bench);
    }
}

/* Gradients that are not finite are discarded; everything else keeps its bits. */
static void check_skip(struct gpu_device *device, enum vkn_optimizer kind,
                       enum vkn_gradient_sums sums)
{
    struct bench bench = bench_of(device, kind, 2, sums);
    bench.backend.f16 = bench.backend.copies = true;
    const struct State skipping = {.learning_rate = 0.02f, .gradient_factor = NAN, .nonfinite = 1};
    struct weights before = weights_create(&bench, 830);
    uint32_t count = bench.model.param_count;
    before.gradients[0] = before.gradients[count - 1] = NAN;
    before.gradients[1000] = INFINITY;
    struct weights after = run_update(&bench, &before, skipping);
    assert_memory_equal(after.params, before.params, 4ull * count);
    assert_memory_equal(after.moment1, before.moment1, 4ull * count);
    assert_memory_equal(after.moment2, before.moment2, 4ull * count);
    assert_memory_equal(after.counts, before.counts, 4ull * bench.config.entry_count);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(after.gradients[i] == 0);
        assert_no_copy(after.f16_copy[i], i);
    }
    weights_destroy(&before);
    weights_destroy(&after);
    bench_destroy(&bench);
}

static void test_skip(void **state)
{
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind)) {
        check_skip(*state, kind, VKN_SUMS_DEFAULT);
        check_skip(*state, kind, VKN_SUMS_F16);
    }
}

/* ---- update_average ------------------------------------------------------------------------ */

/* Copies of the average are not copies of the weights. */
static void check_average(struct bench *bench, const float *params, const float *average,
                          float weight)
{
    const struct State weighted = {.average_weight = weight};
    uint32_t count = bench->model.param_count;
    bench_put(bench, BIND_STATE, &weighted, sizeof weighted);
    bench_put(bench, BIND_PARAMS, params, 4ull * count);
    bench_put(bench, BIND_AVERAGE, average, 4ull * count);
    bench_poison(bench, BIND_F16_PARAMS);
    bench_poison(bench, BIND_F16_AVERAGE);
    bench_run_variant(bench, "update_average", FIELD_F16_PARAMS,
                      (struct Push){.b = bench->local_size}, 9);
    float *device = bench_read(bench, BIND_AVERAGE);
    uint16_t *copies = bench_read(bench, BIND_F16_AVERAGE),
             *f16_copy = bench_read(bench, BIND_F16_PARAMS);
    for (uint32_t i = 0; i < count; i++) {
        double expected = (1 - (double)weight) * average[i] + (double)weight * params[i];
        assert_close(device[i], expected, 1e-7, 2, "average", i);
        if (bench->backend.f16)
            assert_f16(copies[i], device[i], "copy of average", i);
        else
            assert_no_copy(copies[i], i);
        assert_no_copy(f16_copy[i], i);
    }
    free(device);
    free(copies);
    free(f16_copy);
}

static void test_average(void **state)
{
    struct bench bench = bench_of(*state, VKN_OPTIMIZER_ADAM, 2, VKN_SUMS_DEFAULT);
    struct random random = {840};
    uint32_t count = bench.model.param_count;
    float *params = random_floats(&random, count, -1, 1),
          *average = random_floats(&random, count, -1, 1);
    for (int n = 0; n < 4; n++) {
        bench.backend.f16 = bench.backend.copies = n >= 2;
        check_average(&bench, params, average, n % 2 ? 1.0f : 0.375f);
    }
    free(params);
    free(average);
    bench_destroy(&bench);
}

/* ---- round_parameters ---------------------------------------------------------------------- */

/* Numbers of all sizes, ties between two f16 numbers, and numbers out of range. */
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
    struct bench bench = bench_of(*state, VKN_OPTIMIZER_ADAM, 2, VKN_SUMS_DEFAULT);
    struct random random = {850};
    uint32_t count = bench.model.param_count;
    float *params = random_floats(&random, count, -2, 2);
    for (uint32_t i = 0; i < count; i++)
        params[i] = i < BASE_COUNT(edges) ? edges[i]
                                          : ldexpf(params[i], (int)random_below(&random, 48) - 30);
    bench_put(&bench, BIND_PARAMS, params, 4ull * count);
    bench_run(&bench, "round_parameters", (struct Push){.b = bench.local_size}, 7);
    uint16_t *copies = bench_read(&bench, BIND_F16_PARAMS);
    for (uint32_t i = 0; i < count; i++)
        assert_f16(copies[i], params[i], "copy of parameter", i);
    free(copies);
    free(params);
    bench_destroy(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_update_weights),
        cmocka_unit_test(test_grid_decay),
        cmocka_unit_test(test_decay_gradient),
        cmocka_unit_test(test_rounded),
        cmocka_unit_test(test_lost_updates),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_skip),
        cmocka_unit_test(test_average),
        cmocka_unit_test(test_round_parameters),
        cmocka_unit_test(test_no_messages),
    };
    return RUN_WITH_BOTH_KERNELS(tests);
}
