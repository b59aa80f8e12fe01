/* Computes the cost of the passes of unfused layers. */
#include "field/layers.h"

#include "field/ngp.h"

/* Operations per row; an exponential and a division count as one operation each. */
#define HARMONICS   64 /* spherical harmonics */
#define VALUES      12 /* output activations */
#define DERIVATIVES 14 /* derivatives of the output activations */
#define MOVE        6  /* displacement of a position */

#define DISPLACEMENT 3 /* columns of the displacement */

/* ---- rows and layers ------------------------------------------------------------------------- */

double layers_rows(const struct cost_model *m, const struct cost_counts *n)
{
    uint32_t rows = n->pass->rows;
    bool kept = m->config->march.visibility == VKN_SWITCH_ON && n->live <= m->model->chunk_rows;
    if (rows == ROWS_RECOMPUTED && kept)
        return 0;
    return rows == ROWS_LIVE || rows == ROWS_RECOMPUTED ? n->live : n->marched;
}

double layers_copies(const struct cost_counts *n)
{
    return n->pass->rows == ROWS_LIVE || n->pass->rows == ROWS_RECOMPUTED ? 2 : 1;
}

/* The layers [begin, end) of a forward or backward pass. */
struct range {
    uint32_t begin, end;
};

static struct range range_of(const struct cost_model *m, const struct cost_counts *n)
{
    struct repeats repeats = {0};
    field_repeats(m->model, &repeats);
    uint32_t last_round = pass_loop_count(n->pass, &repeats) - 1;
    uint32_t first = pass_loop_index(n->pass, &repeats, 0);
    uint32_t last = pass_loop_index(n->pass, &repeats, last_round);
    return first < last ? (struct range){first, last + 1} : (struct range){last, first + 1};
}

/* Sums over a range of layers: operations, columns read and written per row; weights and biases. */
struct sums {
    double flops, read, written, weights;
};

static struct sums sum_layers(const struct cost_model *m, struct range range)
{
    struct sums sums = {0};
    for (uint32_t i = range.begin; i < range.end; i++) {
        const struct field_layer *layer = &m->model->layers[i];
        double weights = (layer->inputs + 1.0) * layer->outputs;
        sums.flops += 2 * weights;
        sums.read += layer->inputs;
        sums.written += layer->outputs;
        sums.weights += weights;
    }
    return sums;
}

/* Returns the bytes of the range's panels: weights and transposed weights. */
static double panel_bytes(const struct cost_model *m, struct range range)
{
    return field_panel_bytes(m, range.begin, range.end);
}

/* ---- a step ---------------------------------------------------------------------------------- */

struct cost layers_cost_pack(const struct cost_model *m, const struct cost_counts *n)
{
    struct range range = range_of(m, n);
    return cost_streaming(0, 2 * 4 * sum_layers(m, range).weights + panel_bytes(m, range));
}

/* Returns the operations of the encodings of a row. */
static double encoding_flops(const struct cost_model *m)
{
    const struct vkn_config *config = m->config;
    double octaves = 3.0 * field_direction_octaves(config);
    if (m->model->levels == 0)
        octaves += 3.0 * field_position_octaves(config);
    if (field_time_inputs(config) > 0)
        octaves += config->dynamic.time_octaves;
    bool harmonics = field_direction(config) == VKN_DIRECTION_HARMONICS;
    return LAYERS_SIN_COS * octaves + (harmonics ? HARMONICS : 0);
}

/* Reads hash grid features or displacements, writes columns. */
struct cost layers_cost_encode(const struct cost_model *m, const struct cost_counts *n)
{
    double moved = m->model->deformation_layers > 0 && m->model->levels == 0 ? DISPLACEMENT : 0;
    double values =
        m->model->inputs + moved + layers_copies(n) * m->model->layer_columns[0].output_column;
    double rows = layers_rows(m, n);
    return cost_streaming(
        encoding_flops(m) * rows,
        rows * (sizeof(struct Sample) + FIELD_RAY_BYTES + values * field_value_bytes(m)));
}

struct cost layers_cost_gather(const struct cost_model *m, const struct cost_counts *n)
{
    return cost_streaming(0, n->live * (4 + 3 * m->model->columns * field_value_bytes(m)));
}

struct cost layers_cost_forward(const struct cost_model *m, const struct cost_counts *n)
{
    struct range range = range_of(m, n);
    struct sums sums = sum_layers(m, range);
    double columns = sums.read + layers_copies(n) * sums.written, rows = layers_rows(m, n);
    return cost_streaming(sums.flops * rows,
                          rows * columns * field_value_bytes(m) + panel_bytes(m, range) / 2);
}

struct cost layers_cost_values(const struct cost_model *m, const struct cost_counts *n)
{
    double rows = layers_rows(m, n);
    return cost_streaming(VALUES * rows, rows * (16 + 4 * field_value_bytes(m)));
}

struct cost layers_cost_output_gradients(const struct cost_model *m, const struct cost_counts *n)
{
    return cost_streaming(DERIVATIVES * n->live, n->live * (32 + 2 * 64 * field_value_bytes(m)));
}

/* Reads gradients of the outputs and masks of activated inputs, writes gradients of the inputs in
 * blocks and panels. */
struct cost layers_cost_backward(const struct cost_model *m, const struct cost_counts *n)
{
    struct range range = range_of(m, n);
    double flops = 0, columns = 0;
    for (uint32_t i = range.begin; i < range.end; i++) {
        const struct LayerColumns *io = &m->model->layer_columns[i];
        double inputs = io->gradient_count, outputs = field_gradient_outputs(m->model, i);
        flops += 2 * inputs * outputs;
        columns += outputs + (io->input_activated ? 3 : 2) * inputs;
    }
    return cost_streaming(flops * n->live,
                          n->live * columns * field_value_bytes(m) + panel_bytes(m, range) / 2);
}

/* Copies gradients of hash grid features from columns to the input of scatter_gradients. */
struct cost layers_cost_features(const struct cost_model *m, const struct cost_counts *n)
{
    return cost_streaming(0, n->live * (4 + 2.0 * m->model->inputs * field_value_bytes(m)));
}

/* Reads gradients and activations of the position's columns, and displacements if there are any;
 * writes the position's gradient. */
struct cost layers_cost_frequencies(const struct cost_model *m, const struct cost_counts *n)
{
    uint32_t octaves = field_position_octaves(m->config);
    bool moves = m->model->deformation_layers > 0;
    double values = LAYERS_SLOPE_VALUES(octaves) + (moves ? DISPLACEMENT : 0);
    return cost_streaming(
        n->live * (LAYERS_SLOPE_FLOPS(octaves) + LAYERS_POSITION_SLOPE + (moves ? MOVE : 0)),
        n->live * (sizeof(struct Sample) + FIELD_RAY_BYTES + 16 + values * field_value_bytes(m)));
}

/* Reads gradients of the direction's columns, with frequencies also the activations, with harmonics
 * also the direction; writes the direction's gradient. */
struct cost layers_cost_directions(const struct cost_model *m, const struct cost_counts *n)
{
    uint32_t octaves = field_direction_octaves(m->config);
    switch (field_direction(m->config)) {
    case VKN_DIRECTION_NONE:
        return cost_streaming(0, n->live * (4 + 16));
    case VKN_DIRECTION_HARMONICS:
        return cost_streaming(NGP_SH_DERIVATIVES * n->live,
                              n->live * (4 + sizeof(struct Sample) + FIELD_RAY_BYTES / 2 + 16 +
                                         FIELD_NGP_DIRECTION * field_value_bytes(m)));
    default:
        return cost_streaming(LAYERS_SLOPE_FLOPS(octaves) * n->live,
                              n->live *
                                  (4 + 16 + LAYERS_SLOPE_VALUES(octaves) * field_value_bytes(m)));
    }
}

struct cost layers_cost_weights(const struct cost_model *m, const struct cost_counts *n)
{
    struct sums sums = sum_layers(m, range_of(m, n));
    double columns = sums.read + 2 * sums.written; /* output gradients twice: weights, biases */
    return cost_streaming(sums.flops * n->live, n->live * columns * field_value_bytes(m) +
                                                    4 * field_layer_splits(m) * sums.weights);
}

/* ---- the occupancy update -------------------------------------------------------------------- */

struct cost layers_cost_begin(const struct cost_model *m, const struct cost_counts *n)
{
    (void)m, (void)n;
    return cost_streaming(0, 4);
}

/* Decays all cells, or the cells of one time bin and its two neighbours; writes a sample, a ray and
 * the cell's index for each cell at which the field is evaluated. */
struct cost layers_cost_pick(const struct cost_model *m, const struct cost_counts *n)
{
    double cells = (double)m->counts.cells, time_bins = m->config->dynamic.time_bins;
    if (m->model->deformation_layers > 0 && time_bins > 3)
        cells *= 3 / time_bins;
    return cost_streaming(cells,
                          8 * cells + n->evaluated * (FIELD_RAY_BYTES + sizeof(struct Sample) + 4));
}

struct cost layers_cost_store(const struct cost_model *m, const struct cost_counts *n)
{
    (void)m;
    return cost_streaming(2 * n->evaluated, n->evaluated * (4 + 16 + 8));
}
