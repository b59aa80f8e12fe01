/* Tests field passes whose sums and activations are rounded, and f32 products of f16 numbers. */
#include "certify/field.h"

/* Results of both shaders with SPEC_ROUNDED: values of samples, partial sums of three workgroups.
 */
struct rounded_results {
    float (*values)[4];
    float *partials;
    uint32_t partial_count;
};

/* Gradients that mostly survive f16 at the outputs and mostly underflow before the last layer. */
static void check_underflow(struct fixture *fixture, struct inputs *inputs)
{
    struct State state;
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        for (int i = 0; i < 4; i++)
            inputs->field[s][i] *= 0x1p-18f; /* of 0.02 raw: half a step of 2^-24 */
    field_run_backward(fixture, inputs, 3);
    fixture_get(fixture, BIND_STATE, &state, sizeof state);
    check_that(state.underflowed > state.rounded / 8 && state.underflowed < state.rounded);
}

static struct rounded_results run_rounded(struct gpu_device *device,
                                          const struct backend_case *backend, uint32_t rounded)
{
    struct fixture fixture = field_fixture(device, backend, &field_narrow, VKN_SUMS_DEFAULT);
    struct inputs inputs = field_inputs_create(&fixture, field_narrow.samples, false, 15);
    fixture_set_constant(&fixture, SPEC_ROUNDED, rounded);
    if (field_is_covered_elsewhere(device, backend) && !(rounded & ROUND_SUMS) &&
        rounded < ROUND_BF16)
        field_check_forwards(&fixture, &inputs);
    field_run_backward(&fixture, &inputs, 3);
    fixture_run_variant(&fixture, "reduce_gradients", FIELD_REDUCE, (struct Push){0}, 3);
    double *expected = field_expected_gradients(&fixture, &inputs);
    float *gradients = fixture_read_gradients(&fixture);
    for (uint32_t i = 0; i < fixture.model.layer_count; i++) {
        const struct field_layer *layer = &fixture.model.layers[i];
        field_check_part("layer", i, gradients, expected, layer->first,
                         layer->inputs * layer->outputs, rounded < ROUND_BF16 ? 2e-2 : 0.1);
    }
    struct rounded_results rounded_results = {fixture_read(&fixture, BIND_FIELD),
                                              fixture_read(&fixture, BIND_PARTIALS),
                                              3 * fixture.model.mlp_params};
    field_run_forward(&fixture, 3); /* overwrites what spoil_values wrote */
    fixture_get(&fixture, BIND_FIELD, rounded_results.values,
                inputs.sample_count * sizeof *rounded_results.values);
    if (fixture.backend.f16)
        check_underflow(&fixture, &inputs);
    free(expected);
    free(gradients);
    field_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
    return rounded_results;
}

static uint32_t count_unrounded(const struct rounded_results *rounded_results)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rounded_results->partial_count; i++)
        count += (double)rounded_results->partials[i] !=
                 reference_round_to_f16((double)rounded_results->partials[i]);
    return count;
}

/* Returns the largest difference of the values from values with unrounded sums. */
static double rounded_by(struct gpu_device *device, const struct backend_case *backend,
                         const struct rounded_results *rounded)
{
    struct fixture fixture = field_fixture(device, backend, &field_narrow, VKN_SUMS_DEFAULT);
    struct inputs inputs = field_inputs_create(&fixture, field_narrow.samples, false, 15);
    double difference = 0;
    field_put_samples(&fixture, &inputs);
    field_run_forward(&fixture, 3);
    float(*values)[4] = fixture_read(&fixture, BIND_FIELD);
    for (uint32_t s = 0; s < field_narrow.samples; s++)
        difference = fmax(difference, fabs((double)rounded->values[s][0] - (double)values[s][0]));
    free(values);
    field_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
    return difference;
}

/* Sums rounded to f16: weight gradients in every precision, products in fp16. Unless all cases run,
 * matrices use CPU kernels only, which round in the same place, and unrounded fp32 only the kernels
 * that test_sums compiles anyway. */
void field_test_rounded(struct gpu_device *device)
{
    struct backend_case backends[MAX_CASES];
    size_t count = list_backends(device, backends);
    bool done[VKN_PRECISION_COOPMAT + 1] = {false};
    const bool elsewhere = has_slow_gpu_kernels(device);
    done[VKN_PRECISION_COOPMAT] = elsewhere;
    for (uint32_t p = 0; p < count; p++) {
        enum vkn_precision precision = backends[p].precision;
        if (done[precision])
            continue;
        done[precision] = true;
        bool sums = precision == VKN_PRECISION_FP16;
        backends[p].through_partials |= precision == VKN_PRECISION_COOPMAT;
        struct rounded_results rounded =
            run_rounded(device, &backends[p], ROUND_WEIGHT_SUMS | (sums ? ROUND_SUMS : 0));
        check_equal(count_unrounded(&rounded), 0);
        if (precision == VKN_PRECISION_FP32 && !elsewhere) {
            struct rounded_results plain = run_rounded(device, &backends[p], 0);
            check_that(count_unrounded(&plain) > plain.partial_count / 2);
            free(plain.values);
            free(plain.partials);
        }
        if (sums) {
            double difference = rounded_by(device, &backends[p], &rounded);
            check_that(difference > 1e-6 && difference < 1e-2);
        }
        free(rounded.values);
        free(rounded.partials);
    }
}

/* Activations, their gradients and all sums of fp32, rounded to bf16. */
void field_test_bf16(struct gpu_device *device)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32};
    struct rounded_results rounded =
        run_rounded(device, &backend,
                    ROUND_BF16 * (ROUND_ACTIVATIONS | ROUND_ACTIVATION_GRADIENTS | ROUND_SUMS |
                                  ROUND_WEIGHT_SUMS));
    double difference = rounded_by(device, &backend, &rounded);
    check_that(difference > 1e-4 && difference < 5e-2);
    for (uint32_t i = 0; i < rounded.partial_count; i++)
        check_that((double)rounded.partials[i] ==
                   reference_round_to_bf16((double)rounded.partials[i]));
    free(rounded.values);
    free(rounded.partials);
}

/* Relative error in the Euclidean norm. The reference stores f16 and computes in double precision.
 */
static double value_error(const struct reference_field *field, const struct inputs *inputs,
                          const float (*device)[4])
{
    double squared = 0, size = 0;
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        double direction[3], expected[4];
        for (int i = 0; i < 3; i++)
            direction[i] = inputs->rays[inputs->samples[s].ray].direction[i];
        reference_field_forward(field, inputs->positions[s], direction, expected);
        for (int i = 0; i < 4; i++) {
            double given = i < 3 ? (double)device[s][i] : log((double)device[s][i]);
            double right = i < 3 ? expected[i] : log(expected[i]);
            squared += (given - right) * (given - right);
            size += right * right;
        }
    }
    return sqrt(squared / size);
}

/* Returns the largest relative error of a layer's weight gradients. */
static double layer_error(const struct fixture *fixture, const struct inputs *inputs,
                          const struct reference_field *field, const float *device)
{
    double *expected = field_sum_gradients(fixture, inputs, field), largest = 0;
    for (uint32_t i = 0; i < fixture->model.layer_count; i++) {
        const struct field_layer *layer = &fixture->model.layers[i];
        largest = fmax(largest, relative_error(device + layer->first, expected + layer->first,
                                               layer->inputs * layer->outputs));
    }
    free(expected);
    return largest;
}

/* Returns the derivative by one parameter of the sum over samples of gradients times values, by
 * central differences. */
static double difference_of(const struct reference_field *field, const struct inputs *inputs,
                            uint32_t parameter)
{
    const double reach = 1e-4, before = field->params[parameter];
    double sums[2] = {0};
    for (int side = 0; side < 2; side++) {
        field->params[parameter] = before + (side ? reach : -reach);
        for (uint32_t i = 0; i < inputs->live_count; i++) {
            uint32_t s = inputs->live[i];
            double direction[3];
            for (int k = 0; k < 3; k++)
                direction[k] = inputs->rays[inputs->samples[s].ray].direction[k];
            sums[side] += reference_field_weighted(field, inputs->positions[s], direction,
                                                   inputs->gradients[s]);
        }
    }
    field->params[parameter] = before;
    return (sums[1] - sums[0]) / (2 * reach);
}

/* Compares a few weights of each layer with finite differences of a field that rounds nothing. */
static void check_differences(const struct fixture *fixture, const struct inputs *inputs,
                              const float *device)
{
    struct reference_field field =
        reference_field(&fixture->settings, &fixture->model, inputs->params);
    for (uint32_t i = 0; i < fixture->model.layer_count; i++) {
        const struct field_layer *layer = &fixture->model.layers[i];
        uint32_t count = layer->inputs * layer->outputs;
        double largest = 0;
        for (uint32_t w = 0; w < count; w++)
            largest = fmax(largest, fabs((double)device[layer->first + w]));
        for (uint32_t n = 0; n < 4; n++) {
            uint32_t output = 5 * n % layer->used_outputs, input = 7 * n % layer->used_inputs;
            size_t weight = reference_weight(layer, input, output);
            check_close(device[weight], difference_of(&field, inputs, (uint32_t)weight), 1e-2,
                        largest, "gradient of weight", (uint32_t)weight);
        }
    }
    reference_field_destroy(&field);
}

/* Packed f16 products have five times the error in values and twice in gradients. CPU kernels use
 * fixed-point sums, whose pipelines other tests compile too; GPU kernels on a CPU device keep rows
 * in device memory. */
void field_test_f32_products(struct gpu_device *device)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    const bool cpu = gpu_cpu_kernels(capabilities), memory = capabilities->type == GPU_CPU && !cpu;
    const struct backend_case backend = {.precision = VKN_PRECISION_FP16,
                                         .matmul = VKN_POLICY_F32,
                                         .memory = memory,
                                         .through_partials = memory};
    if (!capabilities->float16)
        return;
    enum vkn_gradient_sums sums = cpu ? VKN_SUMS_FIXED : VKN_SUMS_DEFAULT;
    struct fixture fixture = field_fixture(device, &backend, &field_four_features, sums);
    struct inputs inputs = field_inputs_create(&fixture, field_four_features.samples, false, 16);
    struct reference_field field =
        reference_field(&fixture.settings, &fixture.model, inputs.params);
    reference_field_round(&field);
    field_put_samples(&fixture, &inputs);
    field_run_forward(&fixture, 3);
    float(*values)[4] = fixture_read(&fixture, BIND_FIELD);
    double error = value_error(&field, &inputs, (const float(*)[4])values);
    field_run_backward(&fixture, &inputs, 3);
    fixture_run_variant(&fixture, "reduce_gradients", FIELD_REDUCE, (struct Push){0}, 3);
    float *gradients = fixture_read_gradients(&fixture);
    double layers = layer_error(&fixture, &inputs, &field, gradients);
    check_note("f32 products: errors %.2g of values, %.2g of gradients\n", error, layers);
    check_that(error < 1e-4 && layers < 6e-4);
    check_differences(&fixture, &inputs, gradients);
    free(values);
    free(gradients);
    reference_field_destroy(&field);
    field_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}
