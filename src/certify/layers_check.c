/* Compares encodings, single layers and values of samples with double precision. */
#include "certify/layers.h"

/* ---- backends ------------------------------------------------------------------------------ */

/* Errors of a sum relative to the sum of its terms' sizes: fp16 adds eight consecutive products in
 * f16, matrices may add all in f16. */
static double sum_tolerance(const struct fixture *fixture)
{
    if (!fixture->backend.f16 || (fixture->backend.rounded & F32_PRODUCTS) != 0)
        return 1e-6;
    return fixture->backend.f16_accumulate ? 8e-3 : 2e-3;
}

/* ---- encode_inputs -------------------------------------------------------------------------- */

/* Checks one encoding of a vector, and its padding: frequencies belong to the number that the
 * device has stored. */
static void check_encoding(const struct fixture *fixture, const double *device,
                           const double expected[3], uint32_t octaves, double off)
{
    double waves[128], x[3];
    for (int i = 0; i < 3; i++) {
        check_close(device[i], expected[i], off + layers_stored_tolerance(fixture), 1, "number",
                    (size_t)i);
        x[i] = fixture->backend.f16 || layers_is_bf16(fixture) ? expected[i] : device[i];
    }
    uint32_t count = reference_frequencies(octaves, x, waves);
    for (uint32_t i = 3; i < count; i++) {
        if (i >= 3 + 6 * octaves) {
            check_that(device[i] == 0);
            continue;
        }
        double turn = fixture->backend.f16 || layers_is_bf16(fixture)
                          ? ldexp(M_PI, (int)(i - 3) / 6) * off
                          : 0;
        check_close(device[i], waves[i], layers_stored_tolerance(fixture) + 1e-6 + turn, 1, "wave",
                    i);
    }
}

void layers_check_encoded(const struct fixture *fixture, const struct inputs *inputs,
                          const struct rows *rows, uint32_t row, uint32_t sample)
{
    const struct reference_space space = reference_space(&fixture->settings);
    const double *device = layers_row_of(fixture, rows, row);
    uint32_t directions = (3 + 6 * fixture->settings.mlp.position_octaves + 31) / 32 * 32;
    double stretched[3];
    reference_stretched(&space, inputs->positions[sample], stretched);
    check_encoding(fixture, device, stretched, fixture->settings.mlp.position_octaves, 1e-6);
    check_encoding(fixture, device + directions, inputs->directions[sample],
                   fixture->settings.mlp.direction_octaves, 0);
}

/* ---- layers --------------------------------------------------------------------------------- */

/* Checks a sum of `terms` terms whose sizes add up to `size`. */
static void check_sum(const struct fixture *fixture, double device, double sum, double size,
                      uint32_t terms, const char *what, uint32_t layer, uint32_t row)
{
    double steps = fixture->backend.f16 ? 1 + terms / 4.0 : 0; /* each rounded to a step */
    double tolerance = sum_tolerance(fixture) * size +
                       layers_stored_tolerance(fixture) * fabs(sum) + LEAST_STEP * steps;
    if (!(fabs(device - sum) <= tolerance))
        check_fail("%s of layer %u, row %u: %.9g on the device, %.9g expected (tolerance %.3g)",
                   what, layer, row, device, sum, tolerance);
}

void layers_check_forward(const struct fixture *fixture, const struct inputs *inputs,
                          const struct rows *rows, uint32_t n)
{
    const struct field_layer *layer = &fixture->model.layers[n];
    const struct LayerColumns *io = &fixture->model.layer_columns[n];
    for (uint32_t row = 0; row < rows->padded; row++) {
        const double *values = layers_row_of(fixture, rows, row);
        for (uint32_t o = 0; o < layer->outputs; o++) {
            double sum = layers_weight_of(fixture, inputs, n, layer->inputs, o), size = fabs(sum);
            for (uint32_t k = 0; k < layer->inputs; k++) {
                double term =
                    layers_weight_of(fixture, inputs, n, k, o) * values[layers_source_of(io, k)];
                sum += term;
                size += fabs(term);
            }
            check_sum(fixture, values[io->output_column + o], layer->last ? sum : fmax(sum, 0),
                      size, layer->inputs, "output", n, row);
        }
    }
}

void layers_check_backward(const struct fixture *fixture, const struct inputs *inputs,
                           const struct rows *values, const struct rows *rows, uint32_t n)
{
    const struct field_layer *layer = &fixture->model.layers[n];
    const struct LayerColumns *io = &fixture->model.layer_columns[n];
    bool activated = n > 0 && layer->mlp == fixture->model.layers[n - 1].mlp;
    uint32_t outputs = layers_consumer_count(fixture, n);
    for (uint32_t row = 0; row < rows->padded; row++) {
        const double *gradients = layers_row_of(fixture, rows, row);
        for (uint32_t k = 0; k < io->gradient_count; k++) {
            double sum = 0, size = 0;
            bool off =
                activated && layers_row_of(fixture, values, row)[layers_source_of(io, k)] <= 0;
            for (uint32_t o = 0; o < outputs && !off; o++) {
                double term = layers_consumer_weight(fixture, inputs, n, k, o) *
                              gradients[layers_consumer_column(fixture, n, o)];
                sum += term;
                size += fabs(term);
            }
            check_sum(fixture, gradients[layers_source_of(io, k)], sum, size, outputs, "gradient",
                      n, row);
        }
    }
}

void layers_add_weights(const struct fixture *fixture, const struct rows *values,
                        const struct rows *gradients, struct sums *sums)
{
    for (uint32_t n = 0; n < fixture->model.layer_count; n++) {
        const struct field_layer *layer = &fixture->model.layers[n];
        const struct LayerColumns *io = &fixture->model.layer_columns[n];
        for (uint32_t row = 0; row < values->count; row++)
            for (uint32_t k = 0; k <= layer->inputs; k++) {
                double x = k < layer->inputs
                               ? layers_row_of(fixture, values, row)[layers_source_of(io, k)]
                               : 1;
                for (uint32_t o = 0; o < layer->outputs; o++) {
                    double term = x * layers_row_of(fixture, gradients, row)[io->output_column + o];
                    sums->values[reference_weight(layer, k, o)] += term;
                    sums->sizes[reference_weight(layer, k, o)] += fabs(term);
                }
            }
    }
}

void layers_check_weights(const struct fixture *fixture, const float *device,
                          const struct sums *sums, uint32_t rows)
{
    bool half = fixture->backend.precision == VKN_PRECISION_FP16;
    double tolerance = half ? 4e-3 : 2e-6, least = half ? LEAST_STEP * rows / 4 : 1e-15;
    for (uint32_t i = 0; i < fixture->model.param_count; i++)
        check_close(device[i], sums->values[i], 1, tolerance * sums->sizes[i] + least,
                    "gradient of parameter", i);
}

/* ---- samples -------------------------------------------------------------------------------- */

void layers_check_values(const struct fixture *fixture, const struct inputs *inputs,
                         const bool *colored, const float (*device)[4])
{
    struct reference_field field =
        reference_field(&fixture->settings, &fixture->model, inputs->params);
    bool logarithms = field.activation == VKN_DENSITY_EXP;
    double tolerance =
        fmax(fixture->backend.f16 ? 4e-3 : 1e-5, 8 * layers_stored_tolerance(fixture)) +
        ldexp(1e-7, (int)fixture->settings.mlp.position_octaves);
    for (uint32_t s = 0; s < inputs->count; s++) {
        double expected[4];
        reference_field_forward(&field, inputs->positions[s], inputs->directions[s], expected);
        for (int i = 0; i < 3; i++)
            check_close(device[s][i], !colored || colored[s] ? expected[i] : 0, tolerance, 1,
                        "colour of sample", s);
        check_close(logarithms ? log((double)device[s][3]) : device[s][3],
                    logarithms ? log(expected[3]) : expected[3], tolerance, 1, "density of sample",
                    s);
    }
    reference_field_destroy(&field);
}

/* Checks values of one chunk's samples against the stored outputs. */
static void check_outputs(const struct fixture *fixture, const struct rows *rows, uint32_t first,
                          const float (*device)[4])
{
    enum vkn_density_activation activation = fixture->settings.mlp.density_activation;
    for (uint32_t row = 0; row < rows->count; row++) {
        const double *outputs = layers_row_of(fixture, rows, row);
        for (uint32_t c = 0; c < 3; c++)
            check_close(device[first + row][c],
                        1 / (1 + exp(-outputs[fixture->config.color_output + c])), 1e-6, 1,
                        "colour of row", row);
        double density = reference_density_of(activation, outputs[fixture->config.first_output]);
        check_close(device[first + row][3], density, 1e-6, density + 0.1, "density of row", row);
    }
}

void layers_check_sample_chunk(struct fixture *fixture, const struct inputs *inputs, uint32_t chunk)
{
    uint32_t first = chunk * fixture->config.chunk_rows;
    struct rows rows =
        layers_read_rows(fixture, (struct rows){
                                      .binding = BIND_FEATURES,
                                      .count = layers_rows_of(fixture, inputs->count, chunk),
                                      .block = layers_kept_block(fixture, chunk),
                                      .end = fixture->config.columns,
                                  });
    float(*values)[4] = fixture_read(fixture, BIND_FIELD);
    for (uint32_t row = 0; row < rows.padded; row++)
        layers_check_encoded(fixture, inputs, &rows, row,
                             first + (row < rows.count ? row : rows.count - 1));
    for (uint32_t n = 0; n < fixture->model.layer_count; n++)
        layers_check_forward(fixture, inputs, &rows, n);
    check_outputs(fixture, &rows, first, (const float(*)[4])values);
    check_poisoned(values, 4ull * (first + rows.count), 4ull * fixture->config.sample_capacity);
    free(values);
    free(rows.values);
}

/* ---- live samples --------------------------------------------------------------------------- */

void layers_check_all_gradients(const struct fixture *fixture, const struct inputs *inputs,
                                const float *device)
{
    struct reference_field field =
        reference_field(&fixture->settings, &fixture->model, inputs->params);
    double *expected = base_alloc(fixture->model.param_count, sizeof *expected);
    double tolerance =
        fmax(fixture->backend.f16 ? 2e-2 : 1e-4, 16 * layers_stored_tolerance(fixture)) +
        ldexp(1e-6, (int)fixture->settings.mlp.position_octaves);
    for (uint32_t s = 0; s < inputs->count; s++) {
        const double gradient[4] = {inputs->gradients[s][0], inputs->gradients[s][1],
                                    inputs->gradients[s][2], inputs->gradients[s][3]};
        reference_field_backward(&field, inputs->positions[s], inputs->directions[s], gradient,
                                 expected);
    }
    for (uint32_t n = 0; n < fixture->model.layer_count; n++) {
        const struct field_layer *layer = &fixture->model.layers[n];
        size_t biases = reference_weight(layer, layer->inputs, 0);
        double error = relative_error(device + layer->first, expected + layer->first,
                                      (size_t)layer->inputs * layer->outputs);
        double of_biases = relative_error(device + biases, expected + biases, layer->outputs);
        if (!(error < tolerance && of_biases < tolerance))
            check_fail("gradients of layer %u: relative error %.3g, of biases %.3g", n, error,
                       of_biases);
    }
    free(expected);
    reference_field_destroy(&field);
}
