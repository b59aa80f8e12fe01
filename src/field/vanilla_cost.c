/* What the passes of the vanilla model cost. */
#include "field/vanilla.h"

#include <math.h>

/* Operations of one wave pair of the frequencies, and of the outputs' activations and their slopes;
 * exponentials and divisions are one each. */
#define WAVES  40
#define VALUES 12
#define SLOPES 14

#define DISPLACEMENT 3 /* columns that a deformation leaves for the position */

struct layer_sums vanilla_sum_layers(const struct cost_model *m, uint32_t from, uint32_t end)
{
    struct layer_sums sums = {0};
    for (uint32_t i = from; i < end; i++) {
        const struct field_layer *layer = &m->model->layers[i];
        sums.flops += 2.0 * (layer->inputs + 1) * layer->outputs;
        sums.read += layer->inputs;
        sums.written += layer->outputs;
        sums.weights += (double)(layer->inputs + 1) * layer->outputs;
    }
    return sums;
}

static double all_panels(const struct cost_model *m)
{
    return field_panel_bytes(m, 0, m->model->layer_count);
}

/* Of the layers without those of a deformation. */
static double panels(const struct cost_model *m)
{
    return field_panel_bytes(m, 0, field_first_warp(m->model));
}

struct cost vanilla_cost_pack(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    return cost_streaming(0, 2 * 4.0 * (double)m->counts.params + all_panels(m));
}

static struct cost encode(const struct cost_model *m, double rows, double copies)
{
    double columns = m->model->flows[0].to;
    double moved = m->model->warp_layers > 0 ? DISPLACEMENT : 0;
    return cost_streaming(WAVES * columns / 2 * rows,
                          rows * (sizeof(struct Sample) + FIELD_PLACE +
                                  (moved + copies * columns) * field_value_bytes(m)));
}

struct cost vanilla_cost_encode(const struct cost_model *m, const struct cost_counts *n)
{
    return encode(m, n->marched, 1);
}

struct cost vanilla_cost_encode_live(const struct cost_model *m, const struct cost_counts *n)
{
    return encode(m, n->live, 2);
}

struct cost vanilla_cost_gather(const struct cost_model *m, const struct cost_counts *n)
{
    return cost_streaming(0, n->live * (4 + 3 * m->model->columns * field_value_bytes(m)));
}

static struct cost forward(const struct cost_model *m, double rows, double copies)
{
    struct layer_sums sums = vanilla_sum_layers(m, 0, field_first_warp(m->model));
    double columns = sums.read + copies * sums.written;
    return cost_streaming(sums.flops * rows, rows * columns * field_value_bytes(m) + panels(m));
}

struct cost vanilla_cost_forward(const struct cost_model *m, const struct cost_counts *n)
{
    return forward(m, n->marched, 1);
}

struct cost vanilla_cost_forward_live(const struct cost_model *m, const struct cost_counts *n)
{
    return forward(m, n->live, 2);
}

double vanilla_rows_again(const struct cost_model *m, const struct cost_counts *n)
{
    bool there = m->config->march.visibility == VKN_SWITCH_ON && n->live <= m->model->chunk_rows;
    return there ? 0 : n->live;
}

struct cost vanilla_cost_encode_again(const struct cost_model *m, const struct cost_counts *n)
{
    return encode(m, vanilla_rows_again(m, n), 2);
}

struct cost vanilla_cost_forward_again(const struct cost_model *m, const struct cost_counts *n)
{
    return forward(m, vanilla_rows_again(m, n), 2);
}

static struct cost values(const struct cost_model *m, double rows)
{
    return cost_streaming(VALUES * rows, rows * (16 + 4 * field_value_bytes(m)));
}

struct cost vanilla_cost_values(const struct cost_model *m, const struct cost_counts *n)
{
    return values(m, n->marched);
}

struct cost vanilla_cost_colors(const struct cost_model *m, const struct cost_counts *n)
{
    return values(m, n->live);
}

struct cost vanilla_cost_seeds(const struct cost_model *m, const struct cost_counts *n)
{
    return cost_streaming(SLOPES * n->live, n->live * (32 + 2 * 64 * field_value_bytes(m)));
}

/* Gradients of the outputs in, those of the inputs out, in blocks and panels, behind masks; down to
 * the first layer's inputs where a deformation or a hash grid comes before them. */
struct cost vanilla_cost_backward(const struct cost_model *m, const struct cost_counts *n)
{
    double flops = 0, columns = 0;
    bool down = m->model->warp_layers > 0 || m->model->levels > 0;
    for (uint32_t i = down ? 0 : 1; i < field_first_warp(m->model); i++) {
        const struct LayerFlow *flow = &m->model->flows[i];
        double own = flow->own, outputs = field_outputs_behind(m->model, i);
        flops += 2 * own * outputs;
        columns += outputs + (flow->masked ? 3 : 2) * own;
    }
    return cost_streaming(flops * n->live,
                          n->live * columns * field_value_bytes(m) + panels(m) / 2);
}

struct cost vanilla_cost_weights(const struct cost_model *m, const struct cost_counts *n)
{
    struct layer_sums sums = vanilla_sum_layers(m, 0, m->model->layer_count);
    double columns = sums.read + 2 * sums.written; /* outputs again for the biases */
    return cost_streaming(sums.flops * n->live,
                          n->live * columns * field_value_bytes(m) +
                              4.0 * m->constants->backward_groups * (double)m->counts.summed);
}

struct cost vanilla_cost_reduce(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    double sums = (double)m->counts.summed, groups = m->constants->backward_groups;
    return cost_streaming(groups * sums, 4 * (groups + 1) * sums);
}

/* ---- the occupancy update -------------------------------------------------------------------- */

struct cost vanilla_cost_none(const struct cost_model *m, const struct cost_counts *n)
{
    (void)m, (void)n;
    return cost_streaming(0, 4);
}

/* Decays all cells; a sample, its ray and its cell for those that are looked at. */
struct cost vanilla_cost_pick(const struct cost_model *m, const struct cost_counts *n)
{
    double cells = (double)m->counts.cells;
    return cost_streaming(cells,
                          8 * cells + n->evaluated * (FIELD_PLACE + sizeof(struct Sample) + 4));
}

struct cost vanilla_cost_encode_cells(const struct cost_model *m, const struct cost_counts *n)
{
    return encode(m, n->evaluated, 1);
}

static struct cost density(const struct cost_model *m, double rows)
{
    double flops = 0, columns = 0;
    for (uint32_t i = 0; i < m->model->layer_count && m->model->layers[i].mlp == 0; i++) {
        const struct field_layer *layer = &m->model->layers[i];
        flops += 2.0 * (layer->inputs + 1) * layer->outputs;
        columns += layer->inputs + layer->outputs;
    }
    return cost_streaming(flops * rows, rows * columns * field_value_bytes(m) + panels(m) / 2);
}

struct cost vanilla_cost_density(const struct cost_model *m, const struct cost_counts *n)
{
    return density(m, n->evaluated);
}

struct cost vanilla_cost_densities(const struct cost_model *m, const struct cost_counts *n)
{
    return density(m, n->marched);
}

struct cost vanilla_cost_cell_values(const struct cost_model *m, const struct cost_counts *n)
{
    return values(m, n->evaluated);
}

struct cost vanilla_cost_store(const struct cost_model *m, const struct cost_counts *n)
{
    (void)m;
    return cost_streaming(2 * n->evaluated, n->evaluated * (4 + 16 + 8));
}
