/* Runs the forward and backward passes of fields, and compares their results with the reference. */
#include "certify/field.h"

/* ---- forward ------------------------------------------------------------------------------- */

void field_check_forward(struct fixture *fixture, const struct inputs *inputs,
                         const float (*device)[4])
{
    struct reference_field field =
        reference_field(&fixture->settings, &fixture->model, inputs->params);
    double(*expected)[4] = base_alloc(inputs->sample_count, sizeof *expected), squared = 0;
    bool logarithms = field.activation == VKN_DENSITY_EXP; /* errors grow with it */
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        double direction[3];
        for (int i = 0; i < 3; i++)
            direction[i] = inputs->rays[inputs->samples[s].ray].direction[i];
        reference_field_forward(&field, inputs->positions[s], direction, expected[s]);
        if (logarithms)
            expected[s][3] = log(expected[s][3]);
        for (int i = 0; i < 3 && !field_is_colored(fixture); i++)
            expected[s][i] = 0;
        squared += expected[s][3] * expected[s][3];
    }
    double scale = fmax(1, sqrt(squared / inputs->sample_count));
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        for (int i = 0; i < 4; i++)
            check_close(i < 3 || !logarithms ? device[s][i] : log((double)device[s][i]),
                        expected[s][i], field_forward_tolerance(fixture), scale,
                        i < 3 ? "colour of sample" : "density of sample", s);
    free(expected);
    reference_field_destroy(&field);
}

void field_run_forward(struct fixture *fixture, uint32_t groups)
{
    fixture_run_variant(fixture, "encode_samples", FIELD_F16_PARAMS, (struct Push){0}, groups);
    fixture_run_variant(fixture, "field_forward", FIELD_FORWARD, (struct Push){0}, groups);
}

static float (*run_rows(struct fixture *fixture, uint32_t rows, uint32_t groups))[4]
{
    fixture_run_variant(fixture, "field_forward", FIELD_FORWARD, (struct Push){.e = rows}, groups);
    return fixture_read(fixture, BIND_FIELD);
}

/* Computes densities of all samples, then colours of the listed ones, whose densities stay. The
 * device already holds complete values. */
static void check_densities_first(struct fixture *fixture, const struct inputs *inputs,
                                  uint32_t groups)
{
    bool all = fixture->settings.deterministic; /* without a list */
    bool *listed = base_alloc(inputs->sample_count, sizeof *listed);
    float(*values)[4] = fixture_read(fixture, BIND_FIELD);
    for (uint32_t i = 0; i < inputs->live_count; i++)
        listed[inputs->live[i]] = true;
    fixture_put(fixture, BIND_LIVE, inputs->live, 4ull * inputs->live_count);
    fixture_poison(fixture, BIND_FIELD);
    float(*before)[4] = run_rows(fixture, ROWS_DENSITIES, groups);
    check_poisoned(before, 4ull * inputs->sample_count, 4ull * fixture->config.sample_capacity);
    float(*after)[4] = run_rows(fixture, ROWS_LIVE, groups);
    check_poisoned(after, 4ull * inputs->sample_count, 4ull * fixture->config.sample_capacity);
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        values[s][3] = before[s][3];
        check_memory(&before[s][3], &after[s][3], sizeof(float));
        for (int i = 0; i < 3; i++) {
            check_that(before[s][i] == 0);
            check_that(all || listed[s] || after[s][i] == 0);
            values[s][i] = all || listed[s] ? after[s][i] : values[s][i];
        }
    }
    field_check_forward(fixture, inputs, (const float(*)[4])values);
    free(values);
    free(before);
    free(after);
    free(listed);
}

void field_check_forwards(struct fixture *fixture, const struct inputs *inputs)
{
    field_put_samples(fixture, inputs);
    /* Fewer workgroups than tiles of samples, and more. */
    const uint32_t groups[] = {2, fixture_groups(fixture, inputs->sample_count) + 3};
    for (size_t g = 0; g < BASE_COUNT(groups); g++) {
        fixture_poison(fixture, BIND_FIELD);
        fixture_poison(fixture, BIND_FEATURES);
        field_run_forward(fixture, groups[g]);
        float(*values)[4] = fixture_read(fixture, BIND_FIELD);
        field_check_forward(fixture, inputs, (const float(*)[4])values);
        check_poisoned(values, 4ull * inputs->sample_count, 4ull * fixture->config.sample_capacity);
        free(values);
    }
    check_densities_first(fixture, inputs, groups[0]);
    struct State none = {.sample_count = 0};
    fixture_put(fixture, BIND_STATE, &none, sizeof none);
    fixture_poison(fixture, BIND_FIELD);
    field_run_forward(fixture, 9);
    void *untouched = fixture_read(fixture, BIND_FIELD);
    check_poisoned(untouched, 0, 4ull * fixture->config.sample_capacity);
    free(untouched);
}

/* ---- backward ------------------------------------------------------------------------------ */

double *field_sum_gradients(const struct fixture *fixture, const struct inputs *inputs,
                            const struct reference_field *field)
{
    double *gradients = base_alloc(fixture->model.param_count, sizeof *gradients);
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        double direction[3];
        for (int i = 0; i < 3; i++)
            direction[i] = inputs->rays[inputs->samples[s].ray].direction[i];
        reference_field_backward(field, inputs->positions[s], direction, inputs->gradients[s],
                                 gradients);
    }
    return gradients;
}

double *field_expected_gradients(const struct fixture *fixture, const struct inputs *inputs)
{
    struct reference_field field =
        reference_field(&fixture->settings, &fixture->model, inputs->params);
    double *gradients = field_sum_gradients(fixture, inputs, &field);
    reference_field_destroy(&field);
    return gradients;
}

void field_check_part(const char *what, uint32_t index, const float *device, const double *expected,
                      uint32_t first, uint32_t count, double tolerance)
{
    double error = relative_error(device + first, expected + first, count), size = 0;
    for (uint32_t i = first; i < first + count; i++)
        size += fabs(expected[i]);
    check_that(size > 0);
    if (!(error < tolerance))
        check_fail("gradient of %s %u: relative error %.3g", what, index, error);
}

static void check_gradients(const struct fixture *fixture, const float *device,
                            const double *expected)
{
    const struct field_layer *layers = fixture->model.layers;
    for (uint32_t i = 0; i < fixture->model.layer_count; i++)
        field_check_part("layer", i, device, expected, layers[i].first,
                         layers[i].inputs * layers[i].outputs, field_backward_tolerance(fixture));
    for (uint32_t i = 0; i < fixture->model.levels; i++)
        field_check_part("level", i, device, expected, fixture->model.level[i].first,
                         fixture->model.level[i].entries * fixture->model.features,
                         field_backward_tolerance(fixture));
}

/* Spoils values of samples without a gradient: no pass may read them. */
static void spoil_values(struct fixture *fixture, const struct inputs *inputs)
{
    float(*values)[4] = fixture_read(fixture, BIND_FIELD);
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        for (int i = 0; i < 4 && inputs->field[s][3] == 0; i++)
            values[s][i] = NAN;
    fixture_put(fixture, BIND_FIELD, values, inputs->sample_count * sizeof *values);
    free(values);
}

void field_run_backward(struct fixture *fixture, const struct inputs *inputs, uint32_t groups)
{
    bool fixed = fixture->backend.sums == VKN_SUMS_FIXED;
    uint32_t *zeros = base_alloc(2ull * fixture->model.param_count, sizeof *zeros);
    field_put_samples(fixture, inputs);
    fixture_poison(fixture, BIND_PARTIALS);
    fixture_poison(fixture, BIND_FIELD);
    fixture_poison(fixture, BIND_FIELD_GRADIENTS);
    fixture_poison(fixture, BIND_LIVE);
    fixture_poison(fixture, BIND_FEATURES);
    fixture_put(fixture, BIND_ACCUMULATORS, zeros, 8ull * fixture->model.param_count);
    fixture_put(fixture, BIND_GRADIENTS, zeros, 4ull * fixture->model.param_count);
    free(zeros);
    fixture_put(fixture, BIND_FIELD_GRADIENTS, inputs->field,
                inputs->sample_count * sizeof *inputs->field);
    if (!fixed)
        fixture_put(fixture, BIND_LIVE, inputs->live, 4ull * inputs->live_count);
    fixture->config.backward_groups = groups;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    field_run_forward(fixture, groups);
    spoil_values(fixture, inputs);
    fixture_run_variant(fixture, "field_backward", FIELD_BACKWARD, (struct Push){0}, groups);
    fixture_run_variant(fixture, "scatter_gradients", FIELD_SCATTER, (struct Push){0}, groups);
}

void field_check_summed(struct fixture *fixture, const struct inputs *inputs, uint32_t groups,
                        const double *expected)
{
    field_run_backward(fixture, inputs, groups);
    fixture_run_variant(fixture, "reduce_gradients", FIELD_REDUCE, (struct Push){0}, 3);
    float *gradients = fixture_read_gradients(fixture);
    check_gradients(fixture, gradients, expected);
    free(gradients);
}

void field_check_backwards(struct fixture *fixture, const struct inputs *inputs)
{
    double *expected = field_expected_gradients(fixture, inputs);
    const uint32_t groups[] = {5, 1};
    for (size_t g = 0; g < BASE_COUNT(groups); g++)
        field_check_summed(fixture, inputs, groups[g], expected);
    free(expected);
}

bool field_is_covered_elsewhere(struct gpu_device *device, const struct backend_case *backend)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    if (backend->precision == VKN_PRECISION_FP32 || capabilities->type != GPU_CPU ||
        check_everything())
        return false;
    return gpu_cpu_kernels(capabilities) ||
           (backend->precision == VKN_PRECISION_FP16 && backend->memory);
}
