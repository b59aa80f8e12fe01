/* Reads rows of chunks and packed weights from device memory. */
#include "certify/layers.h"

/* ---- device memory ------------------------------------------------------------------------- */

static double number_at(const struct fixture *fixture, const void *data, size_t index)
{
    const uint16_t *halves = data;
    const float *floats = data;
    return fixture->backend.f16 ? reference_f16(halves[index]) : floats[index];
}

static bool is_poisoned(const struct fixture *fixture, const void *data, size_t index)
{
    const uint16_t *halves = data;
    const uint32_t *words = data;
    return fixture->backend.f16 ? halves[index] == (index % 2 ? POISON >> 16 : POISON & 0xffffu)
                                : words[index] == POISON;
}

static size_t in_block(const struct fixture *fixture, uint32_t row, uint32_t column)
{
    return ((size_t)row / 16 * fixture->config.columns + column) * 16 + row % 16;
}

uint32_t layers_kept_block(const struct fixture *fixture, uint32_t chunk)
{
    return fixture->config.kept_rows ? (2 + chunk) * fixture->config.chunk_rows / 16 : 0;
}

void layers_poison_chunk(struct fixture *fixture, uint32_t binding)
{
    size_t count = (size_t)fixture->config.columns * fixture->config.chunk_rows * 2;
    uint32_t words = (uint32_t)(fixture->backend.f16 ? count / 2 : count);
    uint32_t *poison = base_alloc(words, sizeof *poison);
    for (uint32_t i = 0; i < words; i++)
        poison[i] = POISON;
    fixture_put(fixture, binding, poison, 4ull * words);
    free(poison);
}

static size_t in_panel(const struct fixture *fixture, uint32_t row, uint32_t column)
{
    size_t chunk = fixture->config.chunk_rows;
    return fixture->config.columns * chunk + (column / 16 * chunk + row) * 16 + column % 16;
}

static void check_number(const struct fixture *fixture, const struct rows *rows, const void *data,
                         uint32_t row, uint32_t column)
{
    size_t block = in_block(fixture, 16 * rows->block + row, column);
    size_t panel = in_panel(fixture, row, column);
    bool expected = row < rows->padded && column >= rows->first && column < rows->end;
    double value = number_at(fixture, data, block);
    if (expected && !isfinite(value))
        check_fail("row %u of %u, column %u: %g", row, rows->count, column, value);
    if (expected && rows->panels && !(number_at(fixture, data, panel) == value))
        check_fail("row %u, column %u: %g, in its panel %g", row, column, value,
                   number_at(fixture, data, panel));
    if (!expected && !is_poisoned(fixture, data, block))
        check_fail("row %u of %u, column %u was written", row, rows->count, column);
    if (!(expected && rows->panels) && !is_poisoned(fixture, data, panel))
        check_fail("row %u of %u, column %u was written to a panel", row, rows->count, column);
    if (expected && layers_is_bf16(fixture) && value != reference_round_to_bf16(value))
        check_fail("row %u, column %u: %.9g is no bf16", row, column, value);
    if (expected)
        rows->values[(size_t)row * fixture->config.columns + column] = value;
}

struct rows layers_read_rows(struct fixture *fixture, struct rows rows)
{
    void *data = fixture_read(fixture, rows.binding);
    rows.padded = (rows.count + 31) / 32 * 32;
    rows.values = base_alloc((size_t)rows.padded * fixture->config.columns + 1, sizeof(double));
    for (uint32_t row = 0; row < fixture->config.chunk_rows; row++)
        for (uint32_t column = 0; column < fixture->config.columns; column++)
            check_number(fixture, &rows, data, row, column);
    free(data);
    return rows;
}

const double *layers_row_of(const struct fixture *fixture, const struct rows *rows, uint32_t row)
{
    return rows->values + (size_t)row * fixture->config.columns;
}

uint32_t layers_source_of(const struct LayerColumns *io, uint32_t input)
{
    return input < io->input_count ? io->input_column + input
                                   : io->second_column + input - io->input_count;
}

double layers_weight_of(const struct fixture *fixture, const struct inputs *inputs, uint32_t layer,
                        uint32_t input, uint32_t output)
{
    double weight = inputs->params[reference_weight(&fixture->model.layers[layer], input, output)];
    return fixture->backend.f16 ? reference_round_to_f16(weight) : weight;
}

uint32_t layers_consumer_count(const struct fixture *fixture, uint32_t n)
{
    uint32_t also_read_by = fixture->model.layer_columns[n].also_read_by;
    return fixture->model.layers[n].outputs +
           (also_read_by ? fixture->model.layers[also_read_by].outputs : 0);
}

double layers_consumer_weight(const struct fixture *fixture, const struct inputs *inputs,
                              uint32_t n, uint32_t input, uint32_t output)
{
    uint32_t also_read_by = fixture->model.layer_columns[n].also_read_by,
             outputs = fixture->model.layers[n].outputs;
    return output < outputs
               ? layers_weight_of(fixture, inputs, n, input, output)
               : layers_weight_of(fixture, inputs, also_read_by,
                                  fixture->model.layer_columns[also_read_by].input_count + input,
                                  output - outputs);
}

uint32_t layers_consumer_column(const struct fixture *fixture, uint32_t n, uint32_t output)
{
    const struct LayerColumns *ios = fixture->model.layer_columns;
    uint32_t outputs = fixture->model.layers[n].outputs;
    return output < outputs ? ios[n].output_column + output
                            : ios[ios[n].also_read_by].output_column + output - outputs;
}

/* ---- pack_weights --------------------------------------------------------------------------- */

void layers_check_packed(struct fixture *fixture, const struct inputs *inputs)
{
    void *data = fixture_read(fixture, BIND_F16_PARAMS);
    uint8_t *written = base_alloc(512ull * fixture->model.panel_chunks, 1);
    for (uint32_t n = 0; n < fixture->model.layer_count; n++) {
        const struct field_layer *layer = &fixture->model.layers[n];
        const struct LayerColumns *io = &fixture->model.layer_columns[n];
        for (uint32_t o = 0; o < layer->outputs; o++) {
            uint32_t panel = o / 16 * (layer->inputs + 32);
            for (uint32_t k = 0; k < layer->inputs + 32; k++) {
                size_t at = io->panels * 512ull + (panel + k) * 16ull + o % 16;
                uint32_t input = k < layer->inputs ? k : layer->inputs; /* row of biases */
                check_that(number_at(fixture, data, at) ==
                           layers_weight_of(fixture, inputs, n, input, o));
                check_that(written[at]++ == 0);
            }
        }
        for (uint32_t o = 0; o < layers_consumer_count(fixture, n); o++)
            for (uint32_t k = 0; k < io->gradient_count; k++) {
                size_t at = io->transposed * 512ull +
                            (k / 16 * layers_consumer_count(fixture, n) + o) * 16ull + k % 16;
                check_that(number_at(fixture, data, at) ==
                           layers_consumer_weight(fixture, inputs, n, k, o));
                check_that(written[at]++ == 0);
            }
    }
    for (size_t i = 0; i < 512ull * fixture->model.panel_chunks; i++)
        check_that(written[i] == 1);
    free(written);
    free(data);
}

/* ---- samples -------------------------------------------------------------------------------- */

uint32_t layers_rows_of(const struct fixture *fixture, uint32_t all, uint32_t chunk)
{
    uint32_t first = chunk * fixture->config.chunk_rows;
    uint32_t left = all > first ? all - first : 0;
    return left < fixture->config.chunk_rows ? left : fixture->config.chunk_rows;
}
