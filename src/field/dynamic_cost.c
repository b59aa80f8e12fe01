/* What the passes of a deformation cost. */
#include "field/dynamic.h"

#include "field/ngp.h"
#include "field/vanilla.h"

/* Operations of a pair of waves, of a place, of its gradient. */
#define WAVES 40
#define MOVE  12
#define SEEDS 3
/* Of the slopes of a pair of waves, and what is made of these. */
#define PAIR  5
#define SLOPE 24

#define MAPPED 3 /* columns that matter of the last layer's */

static struct layer_sums layers_of(const struct cost_model *m)
{
    return vanilla_sum_layers(m, field_first_warp(m->model), m->model->layer_count);
}

static double panels(const struct cost_model *m)
{
    return field_panel_bytes(m, field_first_warp(m->model), m->model->layer_count);
}

struct cost dynamic_cost_pack(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    return cost_streaming(0, 2 * 4 * layers_of(m).weights + panels(m));
}

static struct cost encode(const struct cost_model *m, double rows, double copies)
{
    double columns = m->model->layers[field_first_warp(m->model)].inputs;
    return cost_streaming(
        WAVES * columns / 2 * rows,
        rows * (sizeof(struct Sample) + FIELD_PLACE + 4 + copies * columns * field_value_bytes(m)));
}

struct cost dynamic_cost_encode(const struct cost_model *m, const struct cost_counts *n)
{
    return encode(m, n->marched, 1);
}

struct cost dynamic_cost_encode_live(const struct cost_model *m, const struct cost_counts *n)
{
    return encode(m, n->live, 2);
}

struct cost dynamic_cost_encode_again(const struct cost_model *m, const struct cost_counts *n)
{
    return encode(m, vanilla_rows_again(m, n), 2);
}

struct cost dynamic_cost_encode_cells(const struct cost_model *m, const struct cost_counts *n)
{
    return encode(m, n->evaluated, 1);
}

static struct cost forward(const struct cost_model *m, double rows, double copies)
{
    struct layer_sums sums = layers_of(m);
    double columns = sums.read + copies * sums.written;
    return cost_streaming(sums.flops * rows, rows * columns * field_value_bytes(m) + panels(m) / 2);
}

struct cost dynamic_cost_forward(const struct cost_model *m, const struct cost_counts *n)
{
    return forward(m, n->marched, 1);
}

struct cost dynamic_cost_forward_live(const struct cost_model *m, const struct cost_counts *n)
{
    return forward(m, n->live, 2);
}

struct cost dynamic_cost_forward_again(const struct cost_model *m, const struct cost_counts *n)
{
    return forward(m, vanilla_rows_again(m, n), 2);
}

struct cost dynamic_cost_forward_cells(const struct cost_model *m, const struct cost_counts *n)
{
    return forward(m, n->evaluated, 1);
}

static struct cost place(const struct cost_model *m, double rows)
{
    return cost_streaming(MOVE * rows, rows * (sizeof(struct Sample) + FIELD_PLACE +
                                               MAPPED * (field_value_bytes(m) + 4)));
}

struct cost dynamic_cost_place(const struct cost_model *m, const struct cost_counts *n)
{
    return place(m, n->marched);
}

struct cost dynamic_cost_place_live(const struct cost_model *m, const struct cost_counts *n)
{
    return place(m, n->live);
}

struct cost dynamic_cost_place_cells(const struct cost_model *m, const struct cost_counts *n)
{
    return place(m, n->evaluated);
}

/* Gradients and activations of the position's columns in, the place's gradient out. */
struct cost dynamic_cost_frequencies(const struct cost_model *m, const struct cost_counts *n)
{
    double pairs = 3.0 * m->config->mlp.position_octaves;
    return cost_streaming((PAIR * pairs + SLOPE) * n->live,
                          n->live * (sizeof(struct Sample) + FIELD_PLACE + 16 +
                                     (2 * MAPPED + 4 * pairs) * field_value_bytes(m)));
}

struct cost dynamic_cost_seeds(const struct cost_model *m, const struct cost_counts *n)
{
    return cost_streaming(SEEDS * n->live, n->live * (12 + 2 * 32 * field_value_bytes(m)));
}

/* Gradients of the outputs in, those of the inputs out, in blocks and panels, behind masks. */
struct cost dynamic_cost_backward(const struct cost_model *m, const struct cost_counts *n)
{
    uint32_t second = field_first_warp(m->model) + 1;
    struct layer_sums sums = vanilla_sum_layers(m, second, m->model->layer_count);
    return cost_streaming(sums.flops * n->live,
                          n->live * (sums.written + 3 * sums.read) * field_value_bytes(m) +
                              panels(m) / 2);
}

struct cost dynamic_cost_weights(const struct cost_model *m, const struct cost_counts *n)
{
    struct layer_sums sums = layers_of(m);
    double columns = sums.read + 2 * sums.written; /* outputs again for the biases */
    return cost_streaming(sums.flops * n->live,
                          n->live * columns * field_value_bytes(m) +
                              4.0 * m->constants->layer_slices * sums.weights);
}

/* The fused layers' sums are those of more workgroups. */
struct cost dynamic_cost_reduce(const struct cost_model *m, const struct cost_counts *n)
{
    double weights = layers_of(m).weights, spared = m->constants->backward_groups;
    struct cost cost = ngp_cost_reduce(m, n);
    spared = weights * (spared - m->constants->layer_slices);
    cost.flops -= spared;
    cost.bytes -= 4 * spared;
    cost.memory -= 4 * spared;
    return cost;
}

/* An update looks at one slice of time, and decays its neighbours as well. */
struct cost dynamic_cost_pick(const struct cost_model *m, const struct cost_counts *n)
{
    struct cost_model slice = *m;
    uint64_t slices = m->config->dynamic.time_slices;
    if (slices > 3)
        slice.counts.cells = 3 * m->counts.cells / slices;
    return vanilla_cost_pick(&slice, n);
}

/* As of samples. */
static struct cost_counts cells_as_samples(const struct cost_counts *n)
{
    struct cost_counts counts = *n;
    counts.marched = counts.rays = n->evaluated;
    return counts;
}

struct cost dynamic_cost_features_cells(const struct cost_model *m, const struct cost_counts *n)
{
    const struct cost_counts cells = cells_as_samples(n);
    return ngp_cost_encode(m, &cells);
}

struct cost dynamic_cost_density_cells(const struct cost_model *m, const struct cost_counts *n)
{
    const struct cost_counts cells = cells_as_samples(n);
    return ngp_cost_densities(m, &cells);
}
