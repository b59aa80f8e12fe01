/* What the passes of the layered model cost that vanilla has not. */
#include "field/layered.h"

#include "field/vanilla.h"

/* Operations of a pair of waves, of the harmonics. */
#define WAVES     40
#define HARMONICS 64

/* Sines and cosines of octaves. */
static double encoding_flops(const struct vkn_config *config)
{
    double flops = 0;
    if (config->field.position == VKN_POSITION_FREQUENCIES)
        flops += WAVES * 3.0 * config->mlp.position_octaves;
    if (config->field.direction == VKN_DIRECTION_FREQUENCIES)
        flops += WAVES * 3.0 * config->mlp.direction_octaves;
    return flops + (config->field.direction == VKN_DIRECTION_HARMONICS ? HARMONICS : 0);
}

/* Features in, columns out. */
static struct cost encode(const struct cost_model *m, double rows, double copies)
{
    double values = m->model->inputs + copies * m->model->flows[0].to;
    return cost_streaming(
        encoding_flops(m->config) * rows,
        rows * (sizeof(struct Sample) + FIELD_PLACE + values * field_value_bytes(m)));
}

struct cost layered_cost_encode(const struct cost_model *m, const struct cost_counts *n)
{
    return encode(m, n->marched, 1);
}

struct cost layered_cost_encode_live(const struct cost_model *m, const struct cost_counts *n)
{
    return encode(m, n->live, 2);
}

struct cost layered_cost_encode_again(const struct cost_model *m, const struct cost_counts *n)
{
    return encode(m, vanilla_rows_again(m, n), 2);
}

struct cost layered_cost_encode_cells(const struct cost_model *m, const struct cost_counts *n)
{
    return encode(m, n->evaluated, 1);
}

/* Gradients of features from one place to another. */
struct cost layered_cost_features(const struct cost_model *m, const struct cost_counts *n)
{
    return cost_streaming(0, n->live * (4 + 2.0 * m->model->inputs * field_value_bytes(m)));
}
