/* Computes the cost of the passes of the ngp model. */
#include "field/ngp.h"

#include <math.h>
#include <string.h>

/* Operations for one sample, counted in the pass's shader; an exponential and a division count as
 * one operation each. */
#define POSITION           6 /* origin + t * direction */
#define UNIT_CUBE          15
#define LEVEL_CELL         12 /* scale, floor, fraction */
#define CORNER_WEIGHTS     19 /* 1 - fraction, then two products for each of eight corners */
#define CORNER_DERIVATIVES 9  /* three products of two weights, times the corner's value, added */
#define LEVEL_DERIVATIVE   9  /* 1 - fraction; times the level's scale, added */
#define FROM_UNIT_CUBE     3
#define SIGMOIDS           12
#define DENSITY            1  /* exp; softplus takes 20, which is negligible beside the MLPs */
#define DERIVATIVES        13 /* derivatives of sigmoids 9, of the clamped exp 4 */
#define CELL               1  /* decay */
#define CELL_DENSITY       9  /* random point 6, exp, scale, max */

#define RAY_BYTES             24 /* bytes of a ray's origin and direction */
#define RAY_DIRECTION         12
#define CORNERS               8
#define LEVELS_PER_INVOCATION 4 /* of field/encode_samples.comp */

/* The facts of a run that the formulas use. */
struct facts {
    const struct field_layer *layers;
    uint32_t layer_count, density_count; /* fused layers; layers of the density MLP */
    double levels, features;
    const struct Level *level;
    double params, mlp_params, used_weights; /* with padding; weights without padding */
    double fused_params;                     /* parameters that field_backward sums up */
    double activations;                      /* values of a row */
    double sh_flops;                         /* operations of the direction's encoding */
    double parameter_bytes, feature_bytes;   /* of one value as the field reads it */
    bool deterministic, f16;
    bool has_color_mlp;           /* the model has a colour MLP */
    bool has_direction_gradients; /* field_backward writes gradients of directions */
    bool uses_scratch;            /* rows go through device memory for the weight gradients */
    bool has_owned_levels; /* one subgroup owns each level of the grid and adds without atomics */
    bool adds_per_entry;   /* f16: an atomic adds all gradients of an entry, not only two */
    enum vkn_gradient_sums sums;
    double backward_groups, layer_splits, local_size, cells;
};

/* Without a colour MLP only the density of the last layer is used. */
static double layer_outputs(const struct facts *m, uint32_t i)
{
    return !m->has_color_mlp && i + 1 == m->layer_count ? 1 : m->layers[i].used_outputs;
}

static double layer_weights(const struct facts *m, uint32_t i)
{
    return m->layers[i].used_inputs * layer_outputs(m, i);
}

static struct facts facts_of(const struct cost_model *m)
{
    static const double sh[] = {0, 0, 3, 16, 42}; /* by degree */
    const struct field_model *model = m->model;
    struct facts facts = {
        .layers = model->layers,
        .layer_count = model->fused,
        .density_count = m->config->mlp.density_layers + 1,
        /* A field in GLSL counts as levels of two features. */
        .levels = model->levels > 0 ? model->levels : model->inputs / 2.0,
        .features = model->features,
        .level = model->level,
        .params = model->param_count,
        .mlp_params = model->mlp_params,
        .fused_params = field_first_unfused(model),
        .activations = model->activations,
        .sh_flops = sh[m->config->mlp.sh_degree],
        .parameter_bytes = m->backend->f16 ? 2 : 4,
        .feature_bytes = m->backend->f16 ? 2 : 4,
        .deterministic = m->config->deterministic,
        .f16 = m->backend->f16,
        .has_direction_gradients = model->refined,
        .uses_scratch = m->backend->scratch_bytes > 0,
        .has_owned_levels = m->backend->sums_size > 0,
        .adds_per_entry = strcmp(m->backend->scatter_suffix, "f16") == 0,
        .sums = m->backend->sums,
        .backward_groups = m->constants->backward_groups,
        .layer_splits = field_layer_splits(m),
        .local_size = m->local_size,
        .cells = (double)m->counts.cells,
    };
    facts.has_color_mlp = m->config->mlp.color_layers > 0;
    for (uint32_t i = 0; i < model->fused; i++)
        facts.used_weights += layer_weights(&facts, i);
    return facts;
}

/* ---- building blocks ------------------------------------------------------------------------- */

/* Returns the operations of one row in layers [begin, end), including ReLUs. */
static double layers_flops(const struct facts *m, uint32_t begin, uint32_t end)
{
    double flops = 0;
    for (uint32_t i = begin; i < end; i++) {
        flops += 2.0 * layer_weights(m, i);
        flops += m->layers[i].last ? 0 : layer_outputs(m, i);
    }
    return flops;
}

/* Returns the operations from a sample's position to its features. */
static double encode_flops(const struct facts *m)
{
    double corners = CORNERS * 2 * m->features;
    return UNIT_CUBE + m->levels * (LEVEL_CELL + CORNER_WEIGHTS + corners);
}

static double gather_bytes(const struct facts *m)
{
    return m->levels * CORNERS * m->features * m->parameter_bytes;
}

/* Returns the bytes of hash grid entries, each counted once. */
static double entry_bytes(const struct facts *m, double entries)
{
    return entries * m->features * m->parameter_bytes;
}

static double weight_bytes(const struct facts *m)
{
    return m->used_weights * m->parameter_bytes;
}

/* Returns the bytes of the density MLP's weights. */
static double density_bytes(const struct facts *m)
{
    double weights = 0;
    for (uint32_t i = 0; i < m->density_count; i++)
        weights += layer_weights(m, i);
    return weights * m->parameter_bytes;
}

/* Returns the samples of the backward pass; deterministic runs do not list live samples. */
static double backward_samples(const struct facts *m, const struct cost_counts *n)
{
    return m->deterministic ? n->marched : n->live;
}

/* Returns the bytes of a sample's features, or of their gradients. */
static double feature_bytes(const struct facts *m)
{
    return m->levels * m->features * m->feature_bytes;
}

static struct cost encode(const struct facts *m, const struct cost_counts *n)
{
    double invocations = ceil(m->levels / LEVELS_PER_INVOCATION);
    return (struct cost){
        .flops =
            n->marched * (POSITION * invocations + UNIT_CUBE * (invocations - 1) + encode_flops(m)),
        .bytes = n->marched * (invocations * (sizeof(struct Sample) + RAY_BYTES) + gather_bytes(m) +
                               feature_bytes(m)),
        .memory = n->marched * (sizeof(struct Sample) + feature_bytes(m)) + n->rays * RAY_BYTES +
                  entry_bytes(m, n->touched),
    };
}

/* Returns the cost of rows with density and colour; `written` bytes of each row are stored. */
static struct cost whole_rows(const struct facts *m, const struct cost_counts *n, double rows,
                              double written)
{
    double sample = sizeof(struct Sample) + feature_bytes(m) + written, weights = weight_bytes(m);
    return (struct cost){
        .flops = rows * (m->sh_flops + layers_flops(m, 0, m->layer_count) + SIGMOIDS + DENSITY),
        .bytes = rows * (sample + RAY_DIRECTION) + weights,
        .memory = rows * sample + n->rays * RAY_DIRECTION + weights,
    };
}

static struct cost forward(const struct facts *m, const struct cost_counts *n)
{
    return whole_rows(m, n, n->marched, 16);
}

static struct cost densities(const struct facts *m, const struct cost_counts *n)
{
    return cost_streaming(n->marched * (layers_flops(m, 0, m->density_count) + DENSITY),
                          n->marched * (feature_bytes(m) + 16) + density_bytes(m));
}

/* Writes three of four values of each sample, and reads its index. */
static struct cost colors(const struct facts *m, const struct cost_counts *n)
{
    return whole_rows(m, n, backward_samples(m, n), 12 + (m->deterministic ? 0 : 4));
}

/* Recomputes all activations but the last layer's; then computes for each layer the gradients of
 * its inputs and weights, each of which takes as many multiply-adds as the forward pass. */
static struct cost backward(const struct facts *m, const struct cost_counts *n)
{
    double samples = backward_samples(m, n);
    double recomputed = m->sh_flops + layers_flops(m, 0, m->layer_count - 1) + DERIVATIVES;
    double hidden = layers_flops(m, 0, m->layer_count) - 2 * m->used_weights;
    double index = m->deterministic ? 0 : 4;
    double derivatives = m->has_direction_gradients ? NGP_SH_DERIVATIVES : 0;
    double sample = index + sizeof(struct Sample) + 2 * 16 + 2 * feature_bytes(m);
    sample += m->has_direction_gradients ? 16 : 0;
    /* Bytes of a row's values and their gradients, stored and loaded. */
    double row = m->uses_scratch ? 2 * 2 * m->activations * (m->f16 ? 2 : 4) : 0;
    double groups = fmin(m->backward_groups, ceil(samples / m->local_size));
    double sums = 4 * groups * m->fused_params, weights = weight_bytes(m);
    return (struct cost){
        .flops = samples * (recomputed + hidden + 2 * 2 * m->used_weights + derivatives),
        .bytes = samples * (sample + RAY_DIRECTION + row) + sums + weights,
        .memory = samples * sample + fmin(n->rays, samples) * RAY_DIRECTION + sums + weights,
    };
}

/* Words that an addition in fixed point changes: the low word, and the high word in 2 to 4 of 100
 * additions (docs/history/kernels.md). */
#define FIXED_ADDED 1.03

struct sum_words {
    double stored, added, atomics; /* 32-bit words of a sum; words and atomics of an addition */
};

static struct sum_words sum_words(const struct facts *m)
{
    struct sum_words words = {1, 1, 1};
    if (m->sums == VKN_SUMS_FIXED)
        words = (struct sum_words){2, FIXED_ADDED, FIXED_ADDED};
    if (m->sums == VKN_SUMS_F16)
        words = (struct sum_words){0.5, 0.5, 0.5};
    if (m->adds_per_entry)
        words.atomics = 1 / m->features;
    if (m->has_owned_levels)
        words.atomics = 0;
    return words;
}

static struct cost scatter(const struct facts *m, const struct cost_counts *n)
{
    double samples = backward_samples(m, n);
    struct sum_words words = sum_words(m);
    double corners = m->levels * CORNERS * m->features; /* gradients added by a sample */
    double level = POSITION + UNIT_CUBE + LEVEL_CELL + CORNER_WEIGHTS + CORNERS * m->features;
    double gradients = feature_bytes(m);
    double index = m->deterministic ? 0 : 4;
    return (struct cost){
        .flops = samples * m->levels * level,
        .bytes = samples * (gradients + corners * 8 * words.added +
                            m->levels * (index + sizeof(struct Sample) + RAY_BYTES)),
        .memory = samples * (gradients + index + sizeof(struct Sample)) +
                  fmin(n->rays, samples) * RAY_BYTES + n->touched * m->features * 8 * words.stored,
        .atomics = samples * corners * words.atomics,
    };
}

/* Differentiates each level's interpolation; the value of a corner is the dot product of its
 * features and their gradients. */
static struct cost input_gradients(const struct facts *m, const struct cost_counts *n)
{
    double samples = backward_samples(m, n), index = m->deterministic ? 0 : 4;
    double level = LEVEL_CELL + LEVEL_DERIVATIVE + CORNERS * (2 * m->features + CORNER_DERIVATIVES);
    double sample = index + sizeof(struct Sample) + feature_bytes(m) + 16;
    return (struct cost){
        .flops = samples * (POSITION + UNIT_CUBE + m->levels * level + FROM_UNIT_CUBE),
        .bytes = samples * (sample + RAY_BYTES + gather_bytes(m)),
        .memory =
            samples * sample + fmin(n->rays, samples) * RAY_BYTES + entry_bytes(m, n->touched),
    };
}

static struct cost reduce(const struct facts *m, const struct cost_counts *n)
{
    double sums = m->backward_groups * m->fused_params;
    sums += m->layer_splits * (m->mlp_params - m->fused_params);
    struct cost cost = cost_streaming(sums, 4 * (sums + m->mlp_params));
    double grid = m->params - m->mlp_params, touched = n->touched * m->features;
    double converted = m->sums == VKN_SUMS_FIXED ? 12 * grid + 8 * touched : 0;
    cost.bytes += converted; /* from fixed point to f32 */
    cost.memory += converted;
    return cost;
}

static struct cost occupancy(const struct facts *m, const struct cost_counts *n)
{
    double weights = density_bytes(m), entries = 0;
    for (uint32_t i = 0; i < (uint32_t)m->levels; i++)
        entries += fmin(m->level[i].entries, n->evaluated);
    return (struct cost){
        .flops = CELL * m->cells + n->evaluated * (encode_flops(m) + CELL_DENSITY +
                                                   layers_flops(m, 0, m->density_count)),
        .bytes = 8 * m->cells + n->evaluated * gather_bytes(m) + weights,
        .memory = 8 * m->cells + entry_bytes(m, entries) + weights,
    };
}

/* ---- exported formulas --------------------------------------------------------------------- */

#define COST(pass)                                                                                \
    struct cost ngp_cost_##pass(const struct cost_model *model, const struct cost_counts *counts) \
    {                                                                                             \
        const struct facts facts = facts_of(model);                                               \
        return pass(&facts, counts);                                                              \
    }
COST(encode)
COST(forward)
COST(densities)
COST(colors)
COST(backward)
COST(scatter)
COST(reduce)
COST(occupancy)
COST(input_gradients)
