/* What the passes of the vanilla model cost. */
#include "field/vanilla.h"
#include "field/internal.h"

#include <math.h>

/* Operations of one wave pair of the frequencies, and of the outputs' activations and their slopes;
 * exponentials and divisions are one each. */
#define WAVES  40
#define VALUES 12
#define SLOPES 14

#define PLACE 24.0 /* bytes of a ray's origin and direction */

static double layer_flops(const struct cost_model *m)
{
    double flops = 0;
    for (uint32_t i = 0; i < m->model->layer_count; i++)
        flops += 2.0 * (m->model->layers[i].inputs + 1) * m->model->layers[i].outputs;
    return flops;
}

/* Columns that layers read, and that they write. */
static double read_columns(const struct cost_model *m)
{
    double columns = 0;
    for (uint32_t i = 0; i < m->model->layer_count; i++)
        columns += m->model->layers[i].inputs;
    return columns;
}

static double written_columns(const struct cost_model *m)
{
    return m->model->columns - m->model->flows[0].to;
}

struct cost vanilla_cost_pack(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    return cost_streaming(0, 2 * 4.0 * (double)m->counts.params + field_panel_bytes(m));
}

static struct cost encode(const struct cost_model *m, double rows, double copies)
{
    double columns = m->model->flows[0].to;
    return cost_streaming(
        WAVES * columns / 2 * rows,
        rows * (sizeof(struct Sample) + PLACE + copies * columns * field_value_bytes(m)));
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
    double columns = read_columns(m) + copies * written_columns(m);
    return cost_streaming(layer_flops(m) * rows,
                          rows * columns * field_value_bytes(m) + field_panel_bytes(m));
}

struct cost vanilla_cost_forward(const struct cost_model *m, const struct cost_counts *n)
{
    return forward(m, n->marched, 1);
}

struct cost vanilla_cost_forward_live(const struct cost_model *m, const struct cost_counts *n)
{
    return forward(m, n->live, 2);
}

/* Live rows that go through the layers once more, see ROWS_AGAIN. */
static double rows_again(const struct cost_model *m, const struct cost_counts *n)
{
    bool there = m->config->march.visibility == VKN_SWITCH_ON && n->live <= m->model->chunk_rows;
    return there ? 0 : n->live;
}

struct cost vanilla_cost_encode_again(const struct cost_model *m, const struct cost_counts *n)
{
    return encode(m, rows_again(m, n), 2);
}

struct cost vanilla_cost_forward_again(const struct cost_model *m, const struct cost_counts *n)
{
    return forward(m, rows_again(m, n), 2);
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

/* Gradients of the outputs in, those of the inputs out, in blocks and panels, behind masks. */
struct cost vanilla_cost_backward(const struct cost_model *m, const struct cost_counts *n)
{
    double flops = 0, columns = 0;
    for (uint32_t i = 1; i < m->model->layer_count; i++) {
        double own = m->model->flows[i].own, outputs = m->model->layers[i].outputs;
        flops += 2 * own * outputs;
        columns += outputs + (m->model->flows[i].masked ? 3 : 2) * own;
    }
    return cost_streaming(flops * n->live,
                          n->live * columns * field_value_bytes(m) + field_panel_bytes(m) / 2);
}

struct cost vanilla_cost_weights(const struct cost_model *m, const struct cost_counts *n)
{
    double columns = read_columns(m) + 2 * written_columns(m); /* outputs again for the biases */
    return cost_streaming(layer_flops(m) * n->live,
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
    return cost_streaming(cells, 8 * cells + n->evaluated * (PLACE + sizeof(struct Sample) + 4));
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
    return cost_streaming(flops * rows,
                          rows * columns * field_value_bytes(m) + field_panel_bytes(m) / 2);
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
