/* Tests the passes of layer-by-layer MLPs in every precision, matrix shape and kernel:
 * encode_inputs, pack_weights, layer_forward, field_values, field_output_gradients, layer_backward,
 * layer_weights.
 *
 * Each layer is compared with double precision on the inputs that the device has, relative to the
 * sum of the products' sizes; then everything with the reference: values by sample, gradients by
 * layer in the Euclidean norm. Memory is NaN before every chunk. */
#include "certify/layers.h"

/* Narrow and wide models, with a skip at the first, a middle or the last layer, or none; chunks
 * that the samples fill or do not fill; gradients by the encoded position and direction. */
static const struct model_case models[] = {
    {64, 3, 96, 32, 2, 2, 5, 2, 2, 64, 180, true, true, VKN_DENSITY_SOFTPLUS, false},
    {32, 1, 32, 32, 1, 1, 4, 3, 1, 64, 128, false, false, VKN_DENSITY_RELU, false},
    {96, 4, 32, 64, 1, 4, 6, 1, 1, 128, 250, false, false, VKN_DENSITY_SOFTPLUS, false},
    {256, 1, 64, 128, 1, 16, 10, 4, 4, 64, 75, false, false, VKN_DENSITY_EXP, false},
};

/* Returns the smallest f16 number that the device keeps. */
static double least_kept(const struct fixture *fixture)
{
    return fixture->constants.values[SPEC_ROUNDED] & F16_NO_SUBNORMALS ? 0x1p-14 : LEAST_STEP;
}

/* ---- samples -------------------------------------------------------------------------------- */

/* Spoils values of samples without a gradient: no pass may read them. */
static void spoil_values(struct fixture *fixture, const struct inputs *inputs, const bool *colored)
{
    float(*values)[4] = fixture_read(fixture, BIND_FIELD);
    layers_check_values(fixture, inputs, colored, (const float(*)[4])values);
    for (uint32_t s = 0; s < inputs->count; s++)
        for (int i = 0; i < 4 && inputs->gradients[s][3] == 0; i++)
            values[s][i] = NAN;
    fixture_put(fixture, BIND_FIELD, values, inputs->count * sizeof *values);
    free(values);
}

static void check_samples(struct fixture *fixture, const struct inputs *inputs, uint32_t groups)
{
    const struct pass_list *forward = &fixture->model.kind->forward;
    uint32_t chunks = (inputs->count + fixture->config.chunk_rows - 1) / fixture->config.chunk_rows;
    layers_put_inputs(fixture, inputs);
    fixture_poison(fixture, BIND_F16_PARAMS);
    fixture_poison(fixture, BIND_FIELD);
    fixture_poison(fixture, BIND_FEATURES);
    layers_run(fixture, forward, "pack_weights", 0, groups);
    layers_check_packed(fixture, inputs);
    for (uint32_t chunk = 0; chunk < chunks + !fixture->config.kept_rows; chunk++) {
        layers_poison_chunk(fixture, BIND_FEATURES);
        layers_run(fixture, forward, "encode_inputs", chunk, groups);
        layers_run(fixture, forward, "layer_forward", chunk, groups);
        layers_run(fixture, forward, "field_values", chunk, groups);
        layers_check_sample_chunk(fixture, inputs, chunk);
    }
    spoil_values(fixture, inputs, NULL);
}

static const char *const layer_passes[] = {"encode_inputs", "layer_forward", "field_values"};

static void run_chunk(struct fixture *fixture, const struct pass_list *pass_list, size_t passes,
                      uint32_t chunk, uint32_t groups)
{
    layers_poison_chunk(fixture, BIND_FEATURES);
    for (size_t i = 0; i < passes; i++)
        layers_run(fixture, pass_list, layer_passes[i], chunk, groups);
}

/* Computes densities of all samples, then colours of the listed ones, whose densities stay. */
static void check_densities_first(struct fixture *fixture, const struct inputs *inputs,
                                  uint32_t groups)
{
    const struct field_kind *kind = fixture->model.kind;
    uint32_t rows = fixture->config.chunk_rows;
    bool *colored = base_alloc(inputs->count, sizeof *colored);
    layers_put_inputs(fixture, inputs);
    fixture_poison(fixture, BIND_F16_PARAMS);
    fixture_poison(fixture, BIND_FIELD);
    fixture_poison(fixture, BIND_FEATURES);
    layers_run(fixture, &kind->densities, "pack_weights", 0, groups);
    layers_check_packed(fixture, inputs);
    for (uint32_t chunk = 0; chunk <= inputs->count / rows + 1; chunk++)
        run_chunk(fixture, &kind->densities, 3, chunk, groups);
    float(*before)[4] = fixture_read(fixture, BIND_FIELD);
    layers_check_values(fixture, inputs, colored, (const float(*)[4])before);
    for (uint32_t chunk = 0; chunk <= inputs->live_count / rows + 1; chunk++)
        run_chunk(fixture, &kind->colors, 3, chunk, groups);
    float(*after)[4] = fixture_read(fixture, BIND_FIELD);
    for (uint32_t s = 0; s < inputs->count; s++)
        check_memory(&before[s][3], &after[s][3], sizeof(float));
    check_poisoned(after, 4ull * inputs->count, 4ull * fixture->config.sample_capacity);
    for (uint32_t i = 0; i < inputs->live_count; i++)
        colored[inputs->live[i]] = true;
    spoil_values(fixture, inputs, colored);
    free(before);
    free(after);
    free(colored);
}

/* With one chunk the colour pass leaves the activations, so the backward pass recomputes none. */
static void check_nothing_recomputed(struct fixture *fixture, uint32_t chunk, uint32_t groups)
{
    const struct field_kind *kind = fixture->model.kind;
    size_t words = fixture->buffers[BIND_FEATURES].size / 4;
    run_chunk(fixture, &kind->backward, 2, chunk, groups);
    void *untouched = fixture_read(fixture, BIND_FEATURES);
    check_poisoned(untouched, 0, words);
    free(untouched);
    run_chunk(fixture, &kind->colors, 2, chunk, groups);
}

/* ---- live samples --------------------------------------------------------------------------- */

static uint32_t live_sample(const struct fixture *fixture, const struct inputs *inputs, uint32_t i)
{
    return fixture->settings.deterministic ? i : inputs->live[i];
}

static void check_output_gradients(const struct fixture *fixture, const struct inputs *inputs,
                                   const struct rows *values, const struct rows *rows, uint32_t row,
                                   uint32_t sample)
{
    const double *raw = layers_row_of(fixture, values, row),
                 *output_gradients = layers_row_of(fixture, rows, row);
    double expected[4] = {0};
    for (uint32_t c = 0; c < 3 && row < rows->count; c++) {
        double color = 1 / (1 + exp(-raw[fixture->config.color_output + c]));
        expected[c] = inputs->gradients[sample][c] * color * (1 - color);
    }
    double density = raw[fixture->config.first_output];
    if (row < rows->count)
        expected[3] = inputs->gradients[sample][3] *
                      reference_density_slope(fixture->settings.mlp.density_activation, density);
    for (uint32_t c = 0; c < 32; c++) {
        double color = c < 3 ? expected[c] : 0, other = c == 0 ? expected[3] : 0;
        double step = LEAST_STEP * fixture->backend.f16,
               unit = layers_stored_tolerance(fixture) + 2e-6;
        check_close(output_gradients[fixture->config.color_output + c], color, 1,
                    unit * fabs(color) + step, "seed of row", row);
        check_close(output_gradients[fixture->config.first_output + c], other, 1,
                    unit * fabs(other) + step, "seed of density, row", row);
        check_that(c < 3 || (output_gradients[fixture->config.color_output + c] == 0 &&
                             output_gradients[fixture->config.first_output + c] == 0));
    }
}

static void check_live_chunk(struct fixture *fixture, const struct inputs *inputs, uint32_t all,
                             uint32_t chunk, struct sums *sums, uint64_t *counted)
{
    uint32_t count = layers_rows_of(fixture, all, chunk), columns = fixture->config.columns;
    uint32_t hidden = fixture->model.layer_columns[0].output_column,
             first = chunk * fixture->config.chunk_rows;
    struct rows values = {.binding = BIND_FEATURES, .count = count, .end = columns, .panels = true};
    struct rows rows = values;
    rows.binding = BIND_SCRATCH;
    bool refined = fixture->model.refined;
    rows.first = refined ? 0 : hidden;
    values = layers_read_rows(fixture, values);
    rows = layers_read_rows(fixture, rows);
    for (uint32_t row = 0; row < rows.padded; row++) {
        uint32_t sample = live_sample(fixture, inputs, first + (row < count ? row : count - 1));
        layers_check_encoded(fixture, inputs, &values, row, sample);
        check_output_gradients(fixture, inputs, &values, &rows, row, sample);
    }
    for (uint32_t n = 0; n < fixture->model.layer_count; n++)
        layers_check_forward(fixture, inputs, &values, n);
    for (uint32_t n = refined ? 0 : 1; n < fixture->model.layer_count; n++)
        layers_check_backward(fixture, inputs, &values, &rows, n);
    layers_add_weights(fixture, &values, &rows, sums);
    for (size_t i = 0; i < (size_t)rows.padded * columns; i++) {
        *counted += fabs(rows.values[i]) >= least_kept(fixture);
        check_that(i < (size_t)count * columns || rows.values[i] == 0);
    }
    free(values.values);
    free(rows.values);
}

/* Checks that `left` f16 gradients are not zero: all that were rounded minus those that
 * underflowed. */
static void check_underflow(struct fixture *fixture, uint64_t left)
{
    struct State state;
    fixture_get(fixture, BIND_STATE, &state, sizeof state);
    if (fixture->backend.f16) {
        check_equal(state.rounded - state.underflowed, left);
        /* With f16 accumulation small gradients underflow in sums, before they are counted. */
        check_that(fixture->backend.f16_accumulate || state.underflowed > 0);
        check_that(least_kept(fixture) > LEAST_STEP || state.underflowed < state.rounded / 2);
    } else {
        check_equal(state.rounded, 0);
    }
}

/* Runs the backward passes over all chunks. `slices` partial sums of weight gradients are shared
 * among `groups` workgroups, whose number need not divide `slices`. */
static void check_live(struct fixture *fixture, const struct inputs *inputs, uint32_t slices,
                       uint32_t groups)
{
    const struct pass_list *backward = &fixture->model.kind->backward;
    static const char *const passes[] = {"encode_inputs",  "layer_forward",
                                         "gather_rows",    "field_output_gradients",
                                         "layer_backward", "layer_weights"};
    bool kept = fixture->config.kept_rows > 0;
    uint32_t all = fixture->settings.deterministic ? inputs->count : inputs->live_count;
    bool recorded = fixture->constants.values[SPEC_VISIBILITY] && all <= fixture->config.chunk_rows;
    uint32_t params = fixture->model.param_count;
    uint64_t counted = 0;
    struct sums sums = {base_alloc(params, sizeof(double)), base_alloc(params, sizeof(double))};
    fixture->config.backward_groups = slices;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    fixture_put(fixture, BIND_FIELD_GRADIENTS, inputs->gradients,
                inputs->count * sizeof *inputs->gradients);
    fixture_poison(fixture, BIND_PARTIALS);
    for (uint32_t chunk = 0; chunk < all / fixture->config.chunk_rows + 2; chunk++) {
        layers_poison_chunk(fixture, BIND_FEATURES);
        layers_poison_chunk(fixture, BIND_SCRATCH);
        if (recorded)
            check_nothing_recomputed(fixture, chunk, groups);
        for (size_t i = recorded ? 3 : 0; i < BASE_COUNT(passes); i++)
            if (i > 2 || (i == 2) == kept)
                layers_run(fixture, backward, passes[i], chunk, groups);
        check_live_chunk(fixture, inputs, all, chunk, &sums, &counted);
    }
    check_underflow(fixture, counted);
    layers_run(fixture, backward, "reduce_gradients", 0, groups);
    float *gradients = fixture_read_gradients(fixture);
    layers_check_weights(fixture, gradients, &sums, all);
    if (all > 0)
        layers_check_all_gradients(fixture, inputs, gradients);
    free(gradients);
    free(sums.values);
    free(sums.sizes);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void check_model(struct gpu_device *device, const struct backend_case *backend,
                        const struct model_case *model, enum kept kept, bool deterministic,
                        uint32_t seed)
{
    struct fixture fixture = layers_fixture(device, backend, model, kept, deterministic);
    struct inputs inputs = layers_inputs_create(&fixture, model->samples, seed);
    if (kept == DENSITIES_FIRST)
        check_densities_first(&fixture, &inputs, seed % 2 ? 3 : 70);
    else
        check_samples(&fixture, &inputs, seed % 2 ? 3 : 70);
    if (seed % 2)
        check_live(&fixture, &inputs, 1, 3);
    else
        check_live(&fixture, &inputs, 5, 13);
    layers_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

static void test_layers(struct gpu_device *device)
{
    struct backend_case backends[MAX_CASES];
    size_t count = layers_list_products(device, backends);
    for (uint32_t n = 0; n < BASE_COUNT(models); n++)
        check_model(device, &backends[0], &models[n], RECOMPUTED, false, 900 + n);
    for (uint32_t p = 1; p < count; p++)
        check_model(device, &backends[p], &models[p % 2], RECOMPUTED, false, 910 + p / 2);
}

/* f32 products of f16 numbers are as exact as those of f32. */
static void test_f32_products(struct gpu_device *device)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP16, .matmul = VKN_POLICY_F32};
    if (gpu_device_capabilities(device)->float16)
        check_model(device, &backend, &models[1], KEPT, false, 920);
}

/* On a device that flushes subnormal f16 numbers, they count as underflowed too. */
static void test_no_subnormals(struct gpu_device *device)
{
    struct backend_case backends[MAX_CASES];
    size_t count = layers_list_products(device, backends);
    struct model_case model = models[1];
    model.no_subnormals = true;
    for (uint32_t p = 0; p < count; p++)
        if (backends[p].precision == VKN_PRECISION_FP16 ||
            (backends[p].shape == VKN_SHAPE_8X8X8 && backends[p].accumulate == VKN_ACCUMULATE_F32 &&
             !has_slow_gpu_kernels(device)))
            check_model(device, &backends[p], &model, RECOMPUTED, false, 922 + p);
}

/* Activations and their gradients are f32 numbers that are rounded to bf16. */
static void test_bf16(struct gpu_device *device)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32,
                                         .stored = VKN_POLICY_BF16};
    check_model(device, &backend, &models[1], RECOMPUTED, false, 921);
}

/* Deterministic mode: all samples in order, some without a gradient. */
static void test_deterministic(struct gpu_device *device)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32};
    check_model(device, &backend, &models[0], KEPT, true, 930);
}

static void test_kept(struct gpu_device *device)
{
    struct backend_case backends[MAX_CASES];
    size_t count = layers_list_products(device, backends);
    for (uint32_t p = 0; p < count && p < 2; p++)
        check_model(device, &backends[p], &models[1 - p], KEPT, false, 941 + p);
}

/* Visibility with one chunk of live samples and with several; GPU kernels in fp32 only. */
static void test_visibility(struct gpu_device *device)
{
    struct backend_case backends[MAX_CASES];
    size_t count = layers_list_products(device, backends);
    struct model_case one = models[1];
    one.chunk = 192;
    for (uint32_t p = 0; p < count && p < (has_slow_gpu_kernels(device) ? 1 : 2); p++)
        check_model(device, &backends[p], p == 0 ? &models[0] : &one, DENSITIES_FIRST, false,
                    950 + p);
    check_model(device, &backends[0], &one, DENSITIES_FIRST, false, 952);
}

#define MANY_GROUPS 5000u

/* A step without live samples, with so many workgroups that some would read beyond their rows. */
static void test_nothing_live(struct gpu_device *device)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32};
    struct fixture fixture = layers_fixture(device, &backend, &models[0], RECOMPUTED, false);
    struct inputs inputs = layers_inputs_create(&fixture, 20, 7);
    inputs.live_count = 0;
    uint32_t groups = fixture.backend.cpu_kernels ? MANY_GROUPS : 70; /* many workgroups are slow */
    check_samples(&fixture, &inputs, groups);
    check_live(&fixture, &inputs, 2, groups);
    layers_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

static const struct certify_test tests[] = {
    TEST_BOTH(test_layers),       TEST_BOTH(test_kept),          TEST_BOTH(test_deterministic),
    TEST_BOTH(test_nothing_live), TEST_BOTH(test_visibility),    TEST_BOTH(test_f32_products),
    TEST_BOTH(test_bf16),         TEST_BOTH(test_no_subnormals),
};
const struct certify_part certify_layers = {"layers", tests, BASE_COUNT(tests)};
