/* Tests the passes of layer-by-layer MLPs in every precision, matrix shape and kernel:
 * encode_inputs, pack_weights, layer_forward, field_values, field_output_gradients, layer_backward,
 * layer_weights.
 *
 * Each layer is compared with double precision on the inputs that the device has, relative to the
 * sum of the products' sizes; then everything with the reference: values by sample, gradients by
 * layer in the Euclidean norm. Memory is NaN before every chunk. */
#include "backend_cases.h"
#include "field/layers.h"

struct model_case {
    uint32_t width, layers, geometry, color_width, color_layers, skip_layer;
    uint32_t position_octaves, direction_octaves, aabb_scale, chunk, samples;
    bool contracted, refined;
    enum vkn_density_activation activation;
    bool no_subnormals; /* as on a device that flushes subnormal f16 numbers */
};

/* Narrow and wide models, with a skip at the first, a middle or the last layer, or none; chunks
 * that the samples fill or do not fill; gradients by the encoded position and direction. */
static const struct model_case models[] = {
    {64, 3, 96, 32, 2, 2, 5, 2, 2, 64, 180, true, true, VKN_DENSITY_SOFTPLUS, false},
    {32, 1, 32, 32, 1, 1, 4, 3, 1, 64, 128, false, false, VKN_DENSITY_RELU, false},
    {96, 4, 32, 64, 1, 4, 6, 1, 1, 128, 250, false, false, VKN_DENSITY_SOFTPLUS, false},
    {256, 1, 64, 128, 1, 16, 10, 4, 4, 64, 75, false, false, VKN_DENSITY_EXP, false},
};

/* ---- backends ------------------------------------------------------------------------------ */

/* lavapipe compiles a matrix shape in 2 s with CPU kernels, in 10 to 30 s with GPU kernels, and f16
 * weights through bindings in 10 s. */
static bool is_cheap(const struct gpu_capabilities *device, const struct backend_case *backend)
{
    bool cpu = gpu_cpu_kernels(device), f16_sums = backend->accumulate == VKN_ACCUMULATE_F16;
    if (device->type != GPU_CPU || tries_all())
        return true;
    if (backend->precision != VKN_PRECISION_COOPMAT)
        return !backend->bound || backend->precision == VKN_PRECISION_FP32;
    if (backend->shape == VKN_SHAPE_8X8X8)
        return cpu || !f16_sums;
    bool other = backend->shape == VKN_SHAPE_8X8X16 || backend->shape == VKN_SHAPE_16X16X16;
    return cpu && !f16_sums && other;
}

/* Lists the device's backends whose products differ. */
static size_t list_products(struct gpu_device *device, struct backend_case cases[MAX_CASES])
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    struct backend_case all[2 * 2 + 2 * 5];
    size_t count = 0, created = 0, cheap = 0;
    for (int bound = 0; bound <= gpu_cpu_kernels(capabilities); bound++)
        for (int precision = VKN_PRECISION_FP32; precision <= VKN_PRECISION_FP16; precision++)
            all[count++] =
                (struct backend_case){.precision = (enum vkn_precision)precision, .bound = bound};
    for (int shape = VKN_SHAPE_8X8X8; shape <= VKN_SHAPE_16X16X16; shape++)
        for (int sums = VKN_ACCUMULATE_F32; sums <= VKN_ACCUMULATE_F16; sums++)
            all[count++] = (struct backend_case){.precision = VKN_PRECISION_COOPMAT,
                                                 .shape = (enum vkn_matrix_shape)shape,
                                                 .accumulate = (enum vkn_accumulate)sums};
    for (size_t i = 0; i < count; i++) {
        const struct vkn_config config = {
            .precision = all[i].precision,
            .matrix = {.shape = all[i].shape, .accumulate = all[i].accumulate}};
        const struct field_model layers = {.columns = 32};
        struct field_backend backend;
        if (field_backend_create(&config, &layers, capabilities, &backend) != VKN_OK)
            continue;
        created++;
        if (is_cheap(capabilities, &all[i]))
            cases[cheap++] = all[i];
    }
    /* lavapipe supports all but f16 sums of 8x8x16, and no matrices with 512-bit vectors. */
    if (capabilities->type == GPU_CPU)
        assert_int_equal(created, count - (capabilities->subgroup_size == 8 ? 1 : 10));
    return cheap;
}

/* Errors of a sum relative to the sum of its terms' sizes: fp16 adds eight consecutive products in
 * f16, matrices may add all in f16. */
static double sum_tolerance(const struct bench *bench)
{
    if (!bench->backend.f16 || (bench->backend.rounded & F32_PRODUCTS) != 0)
        return 1e-6;
    return bench->backend.f16_accumulate ? 8e-3 : 2e-3;
}

/* Returns whether activations and their gradients are rounded to bf16. */
static bool is_bf16(const struct bench *bench)
{
    return bench->backend.rounded & ROUND_ACTIVATIONS * ROUND_BF16;
}

/* Relative rounding error of a stored number; LEAST_STEP is the spacing of f16 subnormals. */
static double stored_tolerance(const struct bench *bench)
{
    return bench->backend.f16 ? 0x1p-11 : is_bf16(bench) ? 0x1p-8 : 0x1p-24;
}
#define LEAST_STEP 0x1p-24

/* Returns the smallest f16 number that the device keeps. */
static double least_kept(const struct bench *bench)
{
    return bench->constants.values[SPEC_ROUNDED] & F16_NO_SUBNORMALS ? 0x1p-14 : LEAST_STEP;
}

/* Whether activations of all samples are recomputed or kept. With DENSITIES_FIRST the colour pass
 * leaves live samples' activations; with several chunks they are recomputed. */
enum kept { RECOMPUTED, KEPT, DENSITIES_FIRST };

static struct bench bench_of(struct gpu_device *device, const struct backend_case *backend,
                             const struct model_case *model, enum kept kept, bool deterministic)
{
    struct vkn_config settings = {
        .model = VKN_MODEL_VANILLA,
        .precision = backend->precision,
        .deterministic = deterministic,
        .scene = {.aabb_scale = model->aabb_scale,
                  .contraction = model->contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE,
                  .refine = model->refined ? VKN_REFINEMENT_POSES : VKN_REFINEMENT_OFF},
        .mlp = {.density_width = model->width,
                .density_layers = model->layers,
                .geometry = model->geometry,
                .color_width = model->color_width,
                .color_layers = model->color_layers,
                .skip_layer = model->skip_layer,
                .position_octaves = model->position_octaves,
                .direction_octaves = model->direction_octaves,
                .density_activation = model->activation},
        .matrix = {.shape = backend->shape, .accumulate = backend->accumulate},
        .policy = {.matmul = backend->matmul,
                   .activations = backend->stored,
                   .activation_gradients = backend->stored},
    };
    struct bench bench = bench_configure(device, settings);
    bench.bound = backend->bound;
    bench.config.chunk_rows = bench.model.chunk_rows = model->chunk;
    bench.config.kept_rows = bench.model.kept_rows =
        kept == KEPT ? (model->samples + 63) / 64 * 64 : 0;
    bench_set_constant(&bench, SPEC_VISIBILITY, kept == DENSITIES_FIRST);
    if (model->no_subnormals)
        bench_set_constant(&bench, SPEC_ROUNDED, bench.backend.rounded | F16_NO_SUBNORMALS);
    bench_allocate(&bench, 1, 1);
    return bench;
}

static const struct pass *pass_of(const struct field_model *model,
                                  const struct pass_list *pass_list, const char *name)
{
    const struct pass *passes[FIELD_MAX_PASSES];
    size_t count = field_list_passes(model, pass_list, passes);
    for (size_t i = 0; i < count; i++)
        if (strcmp(passes[i]->name, name) == 0)
            return passes[i];
    fail_msg("no pass %s", name);
    return NULL;
}

static void run(struct bench *bench, const struct pass_list *pass_list, const char *name,
                uint32_t chunk, uint32_t groups)
{
    bench_choose_product(bench, name);
    bench_run_pass(bench, pass_of(&bench->model, pass_list, name), chunk, groups);
}

/* ---- inputs -------------------------------------------------------------------------------- */

struct inputs {
    struct Ray rays[40];
    struct Sample *samples;
    float *params;
    uint32_t count;
    double (*positions)[3], (*directions)[3];
    float (*gradients)[4]; /* by rgb and density; zero for samples without a gradient */
    uint32_t *live;        /* samples with a gradient, in random order */
    uint32_t live_count;
};

/* Places a sample in the cube, a little outside, or far outside in contracted space, where no ReLU
 * is so near its kink that rounding switches it. */
static void place_sample(struct inputs *inputs, const struct reference_field *field, uint32_t s,
                         double margin, struct random *random)
{
    const struct Ray *ray = &inputs->rays[s % BASE_COUNT(inputs->rays)];
    double farthest = (field->space.contracted ? 8 : 0.4) * field->space.side;
    int tries = 0;
    do {
        assert_true(++tries < 10000);
        inputs->samples[s] = (struct Sample){.t = (float)random_between(random, 0, farthest),
                                             .ray = s % BASE_COUNT(inputs->rays)};
        for (int i = 0; i < 3; i++) {
            inputs->directions[s][i] = ray->direction[i];
            inputs->positions[s][i] =
                ray->origin[i] + (double)inputs->samples[s].t * ray->direction[i];
        }
    } while (reference_field_kink(field, inputs->positions[s], inputs->directions[s]) < margin);
}

static void create_rays(struct inputs *inputs, double side, struct random *random)
{
    memset(inputs->rays, 0xff, sizeof inputs->rays); /* NaN where nothing is read */
    for (size_t r = 0; r < BASE_COUNT(inputs->rays); r++) {
        double direction[3];
        random_direction(random, direction);
        for (int i = 0; i < 3; i++) {
            inputs->rays[r].origin[i] = (float)(0.5 + side * random_between(random, -0.52, 0.52));
            inputs->rays[r].direction[i] = (float)direction[i];
        }
    }
}

/* A quarter of the samples has no gradient; some of the others have one that underflows in f16. */
static void create_gradients(struct inputs *inputs, struct random *random)
{
    for (uint32_t s = 0; s < inputs->count; s++) {
        if (s > 0 && random_below(random, 4) == 0)
            continue;
        double size = random_below(random, 8) == 0 ? 1e-6 : 0.2;
        for (int i = 0; i < 4; i++)
            inputs->gradients[s][i] = (float)random_between(random, -size, size);
        uint32_t at = random_below(random, ++inputs->live_count);
        inputs->live[inputs->live_count - 1] = inputs->live[at];
        inputs->live[at] = s;
    }
}

static struct inputs inputs_create(const struct bench *bench, uint32_t count, uint32_t seed)
{
    struct random random = {seed};
    struct inputs inputs = {.count = count};
    inputs.samples = base_alloc(count, sizeof *inputs.samples);
    inputs.positions = base_alloc(count, sizeof *inputs.positions);
    inputs.directions = base_alloc(count, sizeof *inputs.directions);
    inputs.gradients = base_alloc(count, sizeof *inputs.gradients);
    inputs.live = base_alloc(count, sizeof *inputs.live);
    inputs.params = base_alloc(bench->model.param_count, sizeof *inputs.params);
    field_initialize(&bench->settings, &bench->model, inputs.params);
    for (uint32_t n = 0; n < bench->model.layer_count; n++) {
        const struct field_layer *layer = &bench->model.layers[n];
        for (uint32_t o = 0; o < layer->outputs; o++)
            inputs.params[reference_weight(layer, layer->inputs, o)] =
                (float)random_between(&random, -0.3, 0.3);
    }
    struct reference_field field = reference_field(&bench->settings, &bench->model, inputs.params);
    create_rays(&inputs, field.space.side, &random);
    for (uint32_t s = 0; s < count; s++)
        place_sample(&inputs, &field, s, bench->backend.f16 ? 2e-3 : 1e-5, &random);
    create_gradients(&inputs, &random);
    reference_field_destroy(&field);
    return inputs;
}

static void inputs_destroy(struct inputs *inputs)
{
    void *all[] = {inputs->samples,   inputs->params,     inputs->positions,
                   inputs->gradients, inputs->directions, inputs->live};
    for (size_t i = 0; i < BASE_COUNT(all); i++)
        free(all[i]);
}

static void put_inputs(struct bench *bench, const struct inputs *inputs)
{
    struct State state = {
        .sample_count = inputs->count,
        .live_count = inputs->live_count,
        .ray_count = 64,
        .loss_scale = 8,
    };
    bench_put(bench, BIND_STATE, &state, sizeof state);
    bench_put(bench, BIND_RAYS, inputs->rays, sizeof inputs->rays);
    bench_put(bench, BIND_SAMPLES, inputs->samples, inputs->count * sizeof *inputs->samples);
    bench_put(bench, BIND_PARAMS, inputs->params, 4ull * bench->model.param_count);
    bench_poison(bench, BIND_LIVE);
    if (!bench->settings.deterministic)
        bench_put(bench, BIND_LIVE, inputs->live, 4ull * inputs->live_count);
}

/* ---- device memory ------------------------------------------------------------------------- */

static double number_at(const struct bench *bench, const void *data, size_t index)
{
    const uint16_t *halves = data;
    const float *floats = data;
    return bench->backend.f16 ? reference_f16(halves[index]) : floats[index];
}

static bool is_poisoned(const struct bench *bench, const void *data, size_t index)
{
    const uint16_t *halves = data;
    const uint32_t *words = data;
    return bench->backend.f16 ? halves[index] == (index % 2 ? POISON >> 16 : POISON & 0xffffu)
                              : words[index] == POISON;
}

/* Rows of a chunk, [row][column], of activations or gradients. */
struct rows {
    uint32_t binding, count, padded; /* count, padded: numbers of rows */
    uint32_t block;                  /* first block of 16 rows */
    uint32_t first, end;             /* columns [first, end) must have numbers */
    bool panels;                     /* also packed in panels */
    double *values;
};

static size_t in_block(const struct bench *bench, uint32_t row, uint32_t column)
{
    return ((size_t)row / 16 * bench->config.columns + column) * 16 + row % 16;
}

static uint32_t kept_block(const struct bench *bench, uint32_t chunk)
{
    return bench->config.kept_rows ? (2 + chunk) * bench->config.chunk_rows / 16 : 0;
}

static void poison_chunk(struct bench *bench, uint32_t binding)
{
    size_t count = (size_t)bench->config.columns * bench->config.chunk_rows * 2;
    uint32_t words = (uint32_t)(bench->backend.f16 ? count / 2 : count);
    uint32_t *poison = base_alloc(words, sizeof *poison);
    for (uint32_t i = 0; i < words; i++)
        poison[i] = POISON;
    bench_put(bench, binding, poison, 4ull * words);
    free(poison);
}

static size_t in_panel(const struct bench *bench, uint32_t row, uint32_t column)
{
    size_t chunk = bench->config.chunk_rows;
    return bench->config.columns * chunk + (column / 16 * chunk + row) * 16 + column % 16;
}

static void check_number(const struct bench *bench, const struct rows *rows, const void *data,
                         uint32_t row, uint32_t column)
{
    size_t block = in_block(bench, 16 * rows->block + row, column);
    size_t panel = in_panel(bench, row, column);
    bool expected = row < rows->padded && column >= rows->first && column < rows->end;
    double value = number_at(bench, data, block);
    if (expected && !isfinite(value))
        fail_msg("row %u of %u, column %u: %g", row, rows->count, column, value);
    if (expected && rows->panels && !(number_at(bench, data, panel) == value))
        fail_msg("row %u, column %u: %g, in its panel %g", row, column, value,
                 number_at(bench, data, panel));
    if (!expected && !is_poisoned(bench, data, block))
        fail_msg("row %u of %u, column %u was written", row, rows->count, column);
    if (!(expected && rows->panels) && !is_poisoned(bench, data, panel))
        fail_msg("row %u of %u, column %u was written to a panel", row, rows->count, column);
    if (expected && is_bf16(bench) && value != reference_round_to_bf16(value))
        fail_msg("row %u, column %u: %.9g is no bf16", row, column, value);
    if (expected)
        rows->values[(size_t)row * bench->config.columns + column] = value;
}

/* Reads rows from a buffer that was poisoned: rows up to a multiple of 32 have numbers in the valid
 * columns, all else stays poisoned. */
static struct rows read_rows(struct bench *bench, struct rows rows)
{
    void *data = bench_read(bench, rows.binding);
    rows.padded = (rows.count + 31) / 32 * 32;
    rows.values = base_alloc((size_t)rows.padded * bench->config.columns + 1, sizeof(double));
    for (uint32_t row = 0; row < bench->config.chunk_rows; row++)
        for (uint32_t column = 0; column < bench->config.columns; column++)
            check_number(bench, &rows, data, row, column);
    free(data);
    return rows;
}

static const double *row_of(const struct bench *bench, const struct rows *rows, uint32_t row)
{
    return rows->values + (size_t)row * bench->config.columns;
}

/* Returns the column of a layer's input. */
static uint32_t source_of(const struct LayerColumns *io, uint32_t input)
{
    return input < io->input_count ? io->input_column + input
                                   : io->second_column + input - io->input_count;
}

/* Returns a weight as products use it. */
static double weight_of(const struct bench *bench, const struct inputs *inputs, uint32_t layer,
                        uint32_t input, uint32_t output)
{
    double weight = inputs->params[reference_weight(&bench->model.layers[layer], input, output)];
    return bench->backend.f16 ? reference_round_to_f16(weight) : weight;
}

/* Returns the number of outputs that read a layer's own columns, those of a skip layer included. */
static uint32_t consumer_count(const struct bench *bench, uint32_t n)
{
    uint32_t also_read_by = bench->model.layer_columns[n].also_read_by;
    return bench->model.layers[n].outputs +
           (also_read_by ? bench->model.layers[also_read_by].outputs : 0);
}

/* Returns the weight to an output of consumer_count(); outputs of the skip layer come last. */
static double consumer_weight(const struct bench *bench, const struct inputs *inputs, uint32_t n,
                              uint32_t input, uint32_t output)
{
    uint32_t also_read_by = bench->model.layer_columns[n].also_read_by,
             outputs = bench->model.layers[n].outputs;
    return output < outputs
               ? weight_of(bench, inputs, n, input, output)
               : weight_of(bench, inputs, also_read_by,
                           bench->model.layer_columns[also_read_by].input_count + input,
                           output - outputs);
}

/* Returns the column of the gradient of an output of consumer_count(). */
static uint32_t consumer_column(const struct bench *bench, uint32_t n, uint32_t output)
{
    const struct LayerColumns *ios = bench->model.layer_columns;
    uint32_t outputs = bench->model.layers[n].outputs;
    return output < outputs ? ios[n].output_column + output
                            : ios[ios[n].also_read_by].output_column + output - outputs;
}

/* ---- pack_weights --------------------------------------------------------------------------- */

static void check_packed(struct bench *bench, const struct inputs *inputs)
{
    void *data = bench_read(bench, BIND_F16_PARAMS);
    uint8_t *written = base_alloc(512ull * bench->model.panel_chunks, 1);
    for (uint32_t n = 0; n < bench->model.layer_count; n++) {
        const struct field_layer *layer = &bench->model.layers[n];
        const struct LayerColumns *io = &bench->model.layer_columns[n];
        for (uint32_t o = 0; o < layer->outputs; o++) {
            uint32_t panel = o / 16 * (layer->inputs + 32);
            for (uint32_t k = 0; k < layer->inputs + 32; k++) {
                size_t at = io->panels * 512ull + (panel + k) * 16ull + o % 16;
                uint32_t input = k < layer->inputs ? k : layer->inputs; /* row of biases */
                assert_true(number_at(bench, data, at) == weight_of(bench, inputs, n, input, o));
                assert_true(written[at]++ == 0);
            }
        }
        for (uint32_t o = 0; o < consumer_count(bench, n); o++)
            for (uint32_t k = 0; k < io->gradient_count; k++) {
                size_t at = io->transposed * 512ull +
                            (k / 16 * consumer_count(bench, n) + o) * 16ull + k % 16;
                assert_true(number_at(bench, data, at) == consumer_weight(bench, inputs, n, k, o));
                assert_true(written[at]++ == 0);
            }
    }
    for (size_t i = 0; i < 512ull * bench->model.panel_chunks; i++)
        assert_true(written[i] == 1);
    free(written);
    free(data);
}

/* ---- encode_inputs -------------------------------------------------------------------------- */

/* Checks one encoding of a vector, and its padding: frequencies belong to the number that the
 * device has stored. */
static void check_encoding(const struct bench *bench, const double *device,
                           const double expected[3], uint32_t octaves, double off)
{
    double waves[128], x[3];
    for (int i = 0; i < 3; i++) {
        assert_close(device[i], expected[i], off + stored_tolerance(bench), 1, "number", (size_t)i);
        x[i] = bench->backend.f16 || is_bf16(bench) ? expected[i] : device[i];
    }
    uint32_t count = reference_frequencies(octaves, x, waves);
    for (uint32_t i = 3; i < count; i++) {
        if (i >= 3 + 6 * octaves) {
            assert_true(device[i] == 0);
            continue;
        }
        double turn =
            bench->backend.f16 || is_bf16(bench) ? ldexp(M_PI, (int)(i - 3) / 6) * off : 0;
        assert_close(device[i], waves[i], stored_tolerance(bench) + 1e-6 + turn, 1, "wave", i);
    }
}

static void check_encoded(const struct bench *bench, const struct inputs *inputs,
                          const struct rows *rows, uint32_t row, uint32_t sample)
{
    const struct reference_space space = reference_space(&bench->settings);
    const double *device = row_of(bench, rows, row);
    uint32_t directions = (3 + 6 * bench->settings.mlp.position_octaves + 31) / 32 * 32;
    double stretched[3];
    reference_stretched(&space, inputs->positions[sample], stretched);
    check_encoding(bench, device, stretched, bench->settings.mlp.position_octaves, 1e-6);
    check_encoding(bench, device + directions, inputs->directions[sample],
                   bench->settings.mlp.direction_octaves, 0);
}

/* ---- layers --------------------------------------------------------------------------------- */

/* Checks a sum of `terms` terms whose sizes add up to `size`. */
static void assert_sum(const struct bench *bench, double device, double sum, double size,
                       uint32_t terms, const char *what, uint32_t layer, uint32_t row)
{
    double steps = bench->backend.f16 ? 1 + terms / 4.0 : 0; /* each rounded to a step */
    double tolerance =
        sum_tolerance(bench) * size + stored_tolerance(bench) * fabs(sum) + LEAST_STEP * steps;
    if (!(fabs(device - sum) <= tolerance))
        fail_msg("%s of layer %u, row %u: %.9g on the device, %.9g expected (tolerance %.3g)", what,
                 layer, row, device, sum, tolerance);
}

static void check_forward(const struct bench *bench, const struct inputs *inputs,
                          const struct rows *rows, uint32_t n)
{
    const struct field_layer *layer = &bench->model.layers[n];
    const struct LayerColumns *io = &bench->model.layer_columns[n];
    for (uint32_t row = 0; row < rows->padded; row++) {
        const double *values = row_of(bench, rows, row);
        for (uint32_t o = 0; o < layer->outputs; o++) {
            double sum = weight_of(bench, inputs, n, layer->inputs, o), size = fabs(sum);
            for (uint32_t k = 0; k < layer->inputs; k++) {
                double term = weight_of(bench, inputs, n, k, o) * values[source_of(io, k)];
                sum += term;
                size += fabs(term);
            }
            assert_sum(bench, values[io->output_column + o], layer->last ? sum : fmax(sum, 0), size,
                       layer->inputs, "output", n, row);
        }
    }
}

/* Checks gradients of the layer's own inputs and, with refined cameras, of the direction's. */
static void check_backward(const struct bench *bench, const struct inputs *inputs,
                           const struct rows *values, const struct rows *rows, uint32_t n)
{
    const struct field_layer *layer = &bench->model.layers[n];
    const struct LayerColumns *io = &bench->model.layer_columns[n];
    bool activated = n > 0 && layer->mlp == bench->model.layers[n - 1].mlp;
    uint32_t outputs = consumer_count(bench, n);
    for (uint32_t row = 0; row < rows->padded; row++) {
        const double *gradients = row_of(bench, rows, row);
        for (uint32_t k = 0; k < io->gradient_count; k++) {
            double sum = 0, size = 0;
            bool off = activated && row_of(bench, values, row)[source_of(io, k)] <= 0;
            for (uint32_t o = 0; o < outputs && !off; o++) {
                double term = consumer_weight(bench, inputs, n, k, o) *
                              gradients[consumer_column(bench, n, o)];
                sum += term;
                size += fabs(term);
            }
            assert_sum(bench, gradients[source_of(io, k)], sum, size, outputs, "gradient", n, row);
        }
    }
}

/* Sums over all chunks of weight gradients, and of their terms' sizes. */
struct sums {
    double *values, *sizes; /* as in params */
};

static void add_weights(const struct bench *bench, const struct rows *values,
                        const struct rows *gradients, struct sums *sums)
{
    for (uint32_t n = 0; n < bench->model.layer_count; n++) {
        const struct field_layer *layer = &bench->model.layers[n];
        const struct LayerColumns *io = &bench->model.layer_columns[n];
        for (uint32_t row = 0; row < values->count; row++)
            for (uint32_t k = 0; k <= layer->inputs; k++) {
                double x = k < layer->inputs ? row_of(bench, values, row)[source_of(io, k)] : 1;
                for (uint32_t o = 0; o < layer->outputs; o++) {
                    double term = x * row_of(bench, gradients, row)[io->output_column + o];
                    sums->values[reference_weight(layer, k, o)] += term;
                    sums->sizes[reference_weight(layer, k, o)] += fabs(term);
                }
            }
    }
}

/* Weight gradients are f32 sums in all precisions, but for eight consecutive products of f16
 * rows. */
static void check_weights(const struct bench *bench, const float *device, const struct sums *sums,
                          uint32_t rows)
{
    bool half = bench->backend.precision == VKN_PRECISION_FP16;
    double tolerance = half ? 4e-3 : 2e-6, least = half ? LEAST_STEP * rows / 4 : 1e-15;
    for (uint32_t i = 0; i < bench->model.param_count; i++)
        assert_close(device[i], sums->values[i], 1, tolerance * sums->sizes[i] + least,
                     "gradient of parameter", i);
}

/* ---- samples -------------------------------------------------------------------------------- */

/* Checks values of samples. Only samples in `colored` have a colour; NULL: all samples. */
static void check_values(const struct bench *bench, const struct inputs *inputs,
                         const bool *colored, const float (*device)[4])
{
    struct reference_field field = reference_field(&bench->settings, &bench->model, inputs->params);
    bool logarithms = field.activation == VKN_DENSITY_EXP;
    double tolerance = fmax(bench->backend.f16 ? 4e-3 : 1e-5, 8 * stored_tolerance(bench)) +
                       ldexp(1e-7, (int)bench->settings.mlp.position_octaves);
    for (uint32_t s = 0; s < inputs->count; s++) {
        double expected[4];
        reference_field_forward(&field, inputs->positions[s], inputs->directions[s], expected);
        for (int i = 0; i < 3; i++)
            assert_close(device[s][i], !colored || colored[s] ? expected[i] : 0, tolerance, 1,
                         "colour of sample", s);
        assert_close(logarithms ? log((double)device[s][3]) : device[s][3],
                     logarithms ? log(expected[3]) : expected[3], tolerance, 1, "density of sample",
                     s);
    }
    reference_field_destroy(&field);
}

/* Checks values of one chunk's samples against the stored outputs. */
static void check_outputs(const struct bench *bench, const struct rows *rows, uint32_t first,
                          const float (*device)[4])
{
    enum vkn_density_activation activation = bench->settings.mlp.density_activation;
    for (uint32_t row = 0; row < rows->count; row++) {
        const double *outputs = row_of(bench, rows, row);
        for (uint32_t c = 0; c < 3; c++)
            assert_close(device[first + row][c],
                         1 / (1 + exp(-outputs[bench->config.color_output + c])), 1e-6, 1,
                         "colour of row", row);
        double density = reference_density_of(activation, outputs[bench->config.first_output]);
        assert_close(device[first + row][3], density, 1e-6, density + 0.1, "density of row", row);
    }
}

static uint32_t rows_of(const struct bench *bench, uint32_t all, uint32_t chunk)
{
    uint32_t first = chunk * bench->config.chunk_rows;
    uint32_t left = all > first ? all - first : 0;
    return left < bench->config.chunk_rows ? left : bench->config.chunk_rows;
}

/* Checks a chunk, or that nothing is written for one beyond the last. */
static void check_sample_chunk(struct bench *bench, const struct inputs *inputs, uint32_t chunk)
{
    uint32_t first = chunk * bench->config.chunk_rows;
    struct rows rows = read_rows(bench, (struct rows){
                                            .binding = BIND_FEATURES,
                                            .count = rows_of(bench, inputs->count, chunk),
                                            .block = kept_block(bench, chunk),
                                            .end = bench->config.columns,
                                        });
    float(*values)[4] = bench_read(bench, BIND_FIELD);
    for (uint32_t row = 0; row < rows.padded; row++)
        check_encoded(bench, inputs, &rows, row, first + (row < rows.count ? row : rows.count - 1));
    for (uint32_t n = 0; n < bench->model.layer_count; n++)
        check_forward(bench, inputs, &rows, n);
    check_outputs(bench, &rows, first, (const float(*)[4])values);
    assert_poisoned(values, 4ull * (first + rows.count), 4ull * bench->config.sample_capacity);
    free(values);
    free(rows.values);
}

/* Spoils values of samples without a gradient: no pass may read them. */
static void spoil_values(struct bench *bench, const struct inputs *inputs, const bool *colored)
{
    float(*values)[4] = bench_read(bench, BIND_FIELD);
    check_values(bench, inputs, colored, (const float(*)[4])values);
    for (uint32_t s = 0; s < inputs->count; s++)
        for (int i = 0; i < 4 && inputs->gradients[s][3] == 0; i++)
            values[s][i] = NAN;
    bench_put(bench, BIND_FIELD, values, inputs->count * sizeof *values);
    free(values);
}

static void check_samples(struct bench *bench, const struct inputs *inputs, uint32_t groups)
{
    const struct pass_list *forward = &bench->model.kind->forward;
    uint32_t chunks = (inputs->count + bench->config.chunk_rows - 1) / bench->config.chunk_rows;
    put_inputs(bench, inputs);
    bench_poison(bench, BIND_F16_PARAMS);
    bench_poison(bench, BIND_FIELD);
    bench_poison(bench, BIND_FEATURES);
    run(bench, forward, "pack_weights", 0, groups);
    check_packed(bench, inputs);
    for (uint32_t chunk = 0; chunk < chunks + !bench->config.kept_rows; chunk++) {
        poison_chunk(bench, BIND_FEATURES);
        run(bench, forward, "encode_inputs", chunk, groups);
        run(bench, forward, "layer_forward", chunk, groups);
        run(bench, forward, "field_values", chunk, groups);
        check_sample_chunk(bench, inputs, chunk);
    }
    spoil_values(bench, inputs, NULL);
}

static const char *const layer_passes[] = {"encode_inputs", "layer_forward", "field_values"};

static void run_chunk(struct bench *bench, const struct pass_list *pass_list, size_t passes,
                      uint32_t chunk, uint32_t groups)
{
    poison_chunk(bench, BIND_FEATURES);
    for (size_t i = 0; i < passes; i++)
        run(bench, pass_list, layer_passes[i], chunk, groups);
}

/* Computes densities of all samples, then colours of the listed ones, whose densities stay. */
static void check_densities_first(struct bench *bench, const struct inputs *inputs, uint32_t groups)
{
    const struct field_kind *kind = bench->model.kind;
    uint32_t rows = bench->config.chunk_rows;
    bool *colored = base_alloc(inputs->count, sizeof *colored);
    put_inputs(bench, inputs);
    bench_poison(bench, BIND_F16_PARAMS);
    bench_poison(bench, BIND_FIELD);
    bench_poison(bench, BIND_FEATURES);
    run(bench, &kind->densities, "pack_weights", 0, groups);
    check_packed(bench, inputs);
    for (uint32_t chunk = 0; chunk <= inputs->count / rows + 1; chunk++)
        run_chunk(bench, &kind->densities, 3, chunk, groups);
    float(*before)[4] = bench_read(bench, BIND_FIELD);
    check_values(bench, inputs, colored, (const float(*)[4])before);
    for (uint32_t chunk = 0; chunk <= inputs->live_count / rows + 1; chunk++)
        run_chunk(bench, &kind->colors, 3, chunk, groups);
    float(*after)[4] = bench_read(bench, BIND_FIELD);
    for (uint32_t s = 0; s < inputs->count; s++)
        assert_memory_equal(&before[s][3], &after[s][3], sizeof(float));
    assert_poisoned(after, 4ull * inputs->count, 4ull * bench->config.sample_capacity);
    for (uint32_t i = 0; i < inputs->live_count; i++)
        colored[inputs->live[i]] = true;
    spoil_values(bench, inputs, colored);
    free(before);
    free(after);
    free(colored);
}

/* With one chunk the colour pass leaves the activations, so the backward pass recomputes none. */
static void check_nothing_recomputed(struct bench *bench, uint32_t chunk, uint32_t groups)
{
    const struct field_kind *kind = bench->model.kind;
    size_t words = bench->buffers[BIND_FEATURES].size / 4;
    run_chunk(bench, &kind->backward, 2, chunk, groups);
    void *untouched = bench_read(bench, BIND_FEATURES);
    assert_poisoned(untouched, 0, words);
    free(untouched);
    run_chunk(bench, &kind->colors, 2, chunk, groups);
}

/* ---- live samples --------------------------------------------------------------------------- */

static uint32_t live_sample(const struct bench *bench, const struct inputs *inputs, uint32_t i)
{
    return bench->settings.deterministic ? i : inputs->live[i];
}

static void check_output_gradients(const struct bench *bench, const struct inputs *inputs,
                                   const struct rows *values, const struct rows *rows, uint32_t row,
                                   uint32_t sample)
{
    const double *raw = row_of(bench, values, row), *output_gradients = row_of(bench, rows, row);
    double expected[4] = {0};
    for (uint32_t c = 0; c < 3 && row < rows->count; c++) {
        double color = 1 / (1 + exp(-raw[bench->config.color_output + c]));
        expected[c] = inputs->gradients[sample][c] * color * (1 - color);
    }
    double density = raw[bench->config.first_output];
    if (row < rows->count)
        expected[3] = inputs->gradients[sample][3] *
                      reference_density_slope(bench->settings.mlp.density_activation, density);
    for (uint32_t c = 0; c < 32; c++) {
        double color = c < 3 ? expected[c] : 0, other = c == 0 ? expected[3] : 0;
        double step = LEAST_STEP * bench->backend.f16, unit = stored_tolerance(bench) + 2e-6;
        assert_close(output_gradients[bench->config.color_output + c], color, 1,
                     unit * fabs(color) + step, "seed of row", row);
        assert_close(output_gradients[bench->config.first_output + c], other, 1,
                     unit * fabs(other) + step, "seed of density, row", row);
        assert_true(c < 3 || (output_gradients[bench->config.color_output + c] == 0 &&
                              output_gradients[bench->config.first_output + c] == 0));
    }
}

static void check_live_chunk(struct bench *bench, const struct inputs *inputs, uint32_t all,
                             uint32_t chunk, struct sums *sums, uint64_t *counted)
{
    uint32_t count = rows_of(bench, all, chunk), columns = bench->config.columns;
    uint32_t hidden = bench->model.layer_columns[0].output_column,
             first = chunk * bench->config.chunk_rows;
    struct rows values = {.binding = BIND_FEATURES, .count = count, .end = columns, .panels = true};
    struct rows rows = values;
    rows.binding = BIND_SCRATCH;
    bool refined = bench->model.refined;
    rows.first = refined ? 0 : hidden;
    values = read_rows(bench, values);
    rows = read_rows(bench, rows);
    for (uint32_t row = 0; row < rows.padded; row++) {
        uint32_t sample = live_sample(bench, inputs, first + (row < count ? row : count - 1));
        check_encoded(bench, inputs, &values, row, sample);
        check_output_gradients(bench, inputs, &values, &rows, row, sample);
    }
    for (uint32_t n = 0; n < bench->model.layer_count; n++)
        check_forward(bench, inputs, &values, n);
    for (uint32_t n = refined ? 0 : 1; n < bench->model.layer_count; n++)
        check_backward(bench, inputs, &values, &rows, n);
    add_weights(bench, &values, &rows, sums);
    for (size_t i = 0; i < (size_t)rows.padded * columns; i++) {
        *counted += fabs(rows.values[i]) >= least_kept(bench);
        assert_true(i < (size_t)count * columns || rows.values[i] == 0);
    }
    free(values.values);
    free(rows.values);
}

/* Checks that `left` f16 gradients are not zero: all that were rounded minus those that
 * underflowed. */
static void check_underflow(struct bench *bench, uint64_t left)
{
    struct State state;
    bench_get(bench, BIND_STATE, &state, sizeof state);
    if (bench->backend.f16) {
        assert_int_equal(state.rounded - state.underflowed, left);
        /* With f16 accumulation small gradients underflow in sums, before they are counted. */
        assert_true(bench->backend.f16_accumulate || state.underflowed > 0);
        assert_true(least_kept(bench) > LEAST_STEP || state.underflowed < state.rounded / 2);
    } else {
        assert_int_equal(state.rounded, 0);
    }
}

/* Compares gradients of all layers with the reference. Weights of padding columns have none. */
static void check_all_gradients(const struct bench *bench, const struct inputs *inputs,
                                const float *device)
{
    struct reference_field field = reference_field(&bench->settings, &bench->model, inputs->params);
    double *expected = base_alloc(bench->model.param_count, sizeof *expected);
    double tolerance = fmax(bench->backend.f16 ? 2e-2 : 1e-4, 16 * stored_tolerance(bench)) +
                       ldexp(1e-6, (int)bench->settings.mlp.position_octaves);
    for (uint32_t s = 0; s < inputs->count; s++) {
        const double gradient[4] = {inputs->gradients[s][0], inputs->gradients[s][1],
                                    inputs->gradients[s][2], inputs->gradients[s][3]};
        reference_field_backward(&field, inputs->positions[s], inputs->directions[s], gradient,
                                 expected);
    }
    for (uint32_t n = 0; n < bench->model.layer_count; n++) {
        const struct field_layer *layer = &bench->model.layers[n];
        size_t biases = reference_weight(layer, layer->inputs, 0);
        double error = relative_error(device + layer->first, expected + layer->first,
                                      (size_t)layer->inputs * layer->outputs);
        double of_biases = relative_error(device + biases, expected + biases, layer->outputs);
        if (!(error < tolerance && of_biases < tolerance))
            fail_msg("gradients of layer %u: relative error %.3g, of biases %.3g", n, error,
                     of_biases);
    }
    free(expected);
    reference_field_destroy(&field);
}

/* Runs the backward passes over all chunks. `slices` partial sums of weight gradients are shared
 * among `groups` workgroups, whose number need not divide `slices`. */
static void check_live(struct bench *bench, const struct inputs *inputs, uint32_t slices,
                       uint32_t groups)
{
    const struct pass_list *backward = &bench->model.kind->backward;
    static const char *const passes[] = {"encode_inputs",  "layer_forward",
                                         "gather_rows",    "field_output_gradients",
                                         "layer_backward", "layer_weights"};
    bool kept = bench->config.kept_rows > 0;
    uint32_t all = bench->settings.deterministic ? inputs->count : inputs->live_count;
    bool recorded = bench->constants.values[SPEC_VISIBILITY] && all <= bench->config.chunk_rows;
    uint32_t params = bench->model.param_count;
    uint64_t counted = 0;
    struct sums sums = {base_alloc(params, sizeof(double)), base_alloc(params, sizeof(double))};
    bench->config.backward_groups = slices;
    bench_put(bench, BIND_CONFIG, &bench->config, sizeof bench->config);
    bench_put(bench, BIND_FIELD_GRADIENTS, inputs->gradients,
              inputs->count * sizeof *inputs->gradients);
    bench_poison(bench, BIND_PARTIALS);
    for (uint32_t chunk = 0; chunk < all / bench->config.chunk_rows + 2; chunk++) {
        poison_chunk(bench, BIND_FEATURES);
        poison_chunk(bench, BIND_SCRATCH);
        if (recorded)
            check_nothing_recomputed(bench, chunk, groups);
        for (size_t i = recorded ? 3 : 0; i < BASE_COUNT(passes); i++)
            if (i > 2 || (i == 2) == kept)
                run(bench, backward, passes[i], chunk, groups);
        check_live_chunk(bench, inputs, all, chunk, &sums, &counted);
    }
    check_underflow(bench, counted);
    run(bench, backward, "reduce_gradients", 0, groups);
    float *gradients = bench_read_gradients(bench);
    check_weights(bench, gradients, &sums, all);
    if (all > 0)
        check_all_gradients(bench, inputs, gradients);
    free(gradients);
    free(sums.values);
    free(sums.sizes);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void check_model(struct gpu_device *device, const struct backend_case *backend,
                        const struct model_case *model, enum kept kept, bool deterministic,
                        uint32_t seed)
{
    struct bench bench = bench_of(device, backend, model, kept, deterministic);
    struct inputs inputs = inputs_create(&bench, model->samples, seed);
    if (kept == DENSITIES_FIRST)
        check_densities_first(&bench, &inputs, seed % 2 ? 3 : 70);
    else
        check_samples(&bench, &inputs, seed % 2 ? 3 : 70);
    if (seed % 2)
        check_live(&bench, &inputs, 1, 3);
    else
        check_live(&bench, &inputs, 5, 13);
    inputs_destroy(&inputs);
    bench_destroy(&bench);
}

static void test_layers(void **state)
{
    struct backend_case backends[MAX_CASES];
    size_t count = list_products(*state, backends);
    for (uint32_t n = 0; n < BASE_COUNT(models); n++)
        check_model(*state, &backends[0], &models[n], RECOMPUTED, false, 900 + n);
    for (uint32_t p = 1; p < count; p++)
        check_model(*state, &backends[p], &models[p % 2], RECOMPUTED, false, 910 + p / 2);
}

/* f32 products of f16 numbers are as exact as those of f32. */
static void test_f32_products(void **state)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP16, .matmul = VKN_POLICY_F32};
    if (gpu_device_capabilities(*state)->float16)
        check_model(*state, &backend, &models[1], KEPT, false, 920);
}

/* On a device that flushes subnormal f16 numbers, they count as underflowed too. */
static void test_no_subnormals(void **state)
{
    struct backend_case backends[MAX_CASES];
    size_t count = list_products(*state, backends);
    struct model_case model = models[1];
    model.no_subnormals = true;
    for (uint32_t p = 0; p < count; p++)
        if (backends[p].precision == VKN_PRECISION_FP16 ||
            (backends[p].shape == VKN_SHAPE_8X8X8 && backends[p].accumulate == VKN_ACCUMULATE_F32 &&
             !has_slow_gpu_kernels(*state)))
            check_model(*state, &backends[p], &model, RECOMPUTED, false, 922 + p);
}

/* Activations and their gradients are f32 numbers that are rounded to bf16. */
static void test_bf16(void **state)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32,
                                         .stored = VKN_POLICY_BF16};
    check_model(*state, &backend, &models[1], RECOMPUTED, false, 921);
}

/* Deterministic mode: all samples in order, some without a gradient. */
static void test_deterministic(void **state)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32};
    check_model(*state, &backend, &models[0], KEPT, true, 930);
}

static void test_kept(void **state)
{
    struct backend_case backends[MAX_CASES];
    size_t count = list_products(*state, backends);
    for (uint32_t p = 0; p < count && p < 2; p++)
        check_model(*state, &backends[p], &models[1 - p], KEPT, false, 941 + p);
}

/* Visibility with one chunk of live samples and with several; GPU kernels in fp32 only. */
static void test_visibility(void **state)
{
    struct backend_case backends[MAX_CASES];
    size_t count = list_products(*state, backends);
    struct model_case one = models[1];
    one.chunk = 192;
    for (uint32_t p = 0; p < count && p < (has_slow_gpu_kernels(*state) ? 1 : 2); p++)
        check_model(*state, &backends[p], p == 0 ? &models[0] : &one, DENSITIES_FIRST, false,
                    950 + p);
    check_model(*state, &backends[0], &one, DENSITIES_FIRST, false, 952);
}

#define MANY_GROUPS 5000u

/* A step without live samples, with so many workgroups that some would read beyond their rows. */
static void test_nothing_live(void **state)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32};
    struct bench bench = bench_of(*state, &backend, &models[0], RECOMPUTED, false);
    struct inputs inputs = inputs_create(&bench, 20, 7);
    inputs.live_count = 0;
    uint32_t groups = bench.backend.cpu_kernels ? MANY_GROUPS : 70; /* many workgroups are slow */
    check_samples(&bench, &inputs, groups);
    check_live(&bench, &inputs, 2, groups);
    inputs_destroy(&inputs);
    bench_destroy(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_deterministic), cmocka_unit_test(test_nothing_live),
        cmocka_unit_test(test_visibility),    cmocka_unit_test(test_f32_products),
        cmocka_unit_test(test_bf16),          cmocka_unit_test(test_no_subnormals),
        cmocka_unit_test(test_no_messages),
    };
    return RUN_PASS_TESTS(tests);
}
