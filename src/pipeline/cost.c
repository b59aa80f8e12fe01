#include "pipeline/cost.h"

#include <math.h>
#include <string.h>

#include "rays/rays.h"

/* Operations for one ray, sample or parameter, counted in the shader that the pass is named after;
 * square roots, exponentials and divisions are one each. */
#define GENERATE_RAY     77 /* random numbers 9, pixel 9, ray 29, cube 25, steps 5 */
#define PROBE            37 /* rays/march_rays.comp, probe() in the innermost cascade */
#define WIDTH            3  /* of a sample: clamp(t * cone_angle, step_min, step_max) */
#define PLACE            6  /* origin + t * direction */
#define UNIT_CUBE        15
#define LEVEL_CELL       12 /* scale, floor, fraction */
#define CORNER_WEIGHTS   19 /* 1 - inside, then two products for each of eight corners */
#define SIGMOIDS         12
#define COMPOSITE_RAY    47
#define COMPOSITE_SAMPLE 17 /* colour and depth */
#define COMPOSITE_LIVE   45 /* gradients */
#define CHECK            3
#define ADAM             13
#define ADAM_DECAY       2 /* of an MLP's weight */
#define ADAM_ENTRY       7 /* bias correction */
#define AVERAGE          3
#define CELL             1 /* decay */
#define CELL_DENSITY     9 /* random point 6, exp, scale, max */

#define RAY_PLACE       24 /* bytes of a ray's origin and direction */
#define RAY_DIRECTION   12
#define CORNERS         8
#define LEVELS_TOGETHER 4 /* of field/encode_samples.comp */
#define BLOCK           ((double)OCCUPANCY_BLOCK * OCCUPANCY_BLOCK * OCCUPANCY_BLOCK)

/* ---- the model ----------------------------------------------------------------------------- */

void cost_model_create(const struct vkn_config *config, const struct field_model *model,
                       const struct field_path *path, const struct Config *constants,
                       uint32_t subgroup_size, struct cost_model *cost)
{
    static const double sh[] = {0, 0, 3, 16, 42}; /* by degree */
    *cost = (struct cost_model){
        .density_count = config->mlp.density_layers + 1,
        .levels = model->levels,
        .features = model->features,
        .params = model->param_count,
        .mlp_params = model->mlp_params,
        .activations = model->activations,
        .sh = sh[config->mlp.sh_degree],
        .parameter_bytes = path->half ? 2 : 4,
        .feature_bytes = path->half ? 2 : 4,
        .deterministic = config->deterministic,
        .half = path->half,
        .scratch = path->scratch_bytes > 0,
        .owned = path->sums_size > 0,
        .sums = path->sums,
        .backward_groups = constants->backward_groups,
        .local_size = 64,
        .subgroup_size = subgroup_size,
        .cells = (double)rays_occupancy_cells(config),
        .cameras = constants->view_count,
        .param_groups = fmin(ceil(model->param_count / 64.0), 512),
    };
    cost->resolution_cells = cost->cells / rays_cascades(config);
    cost->layer_count = field_layers(config, model, cost->layers);
    for (uint32_t i = 0; i < cost->layer_count; i++)
        cost->used_weights += (double)cost->layers[i].used_inputs * cost->layers[i].used_outputs;
    for (uint32_t i = 0; i < model->levels; i++)
        cost->table[i] = model->level[i].entries;
}

/* ---- parts --------------------------------------------------------------------------------- */

/* Multiply-adds of one row through layers [begin, end), and the ReLUs behind hidden ones. */
static double layers_flops(const struct cost_model *m, uint32_t begin, uint32_t end)
{
    double flops = 0;
    for (uint32_t i = begin; i < end; i++) {
        bool last = i + 1 == m->density_count || i + 1 == m->layer_count;
        flops += 2.0 * m->layers[i].used_inputs * m->layers[i].used_outputs;
        flops += last ? 0 : m->layers[i].used_outputs;
    }
    return flops;
}

/* A sample's position into features. */
static double encode_flops(const struct cost_model *m)
{
    double corners = CORNERS * 2 * m->features;
    return UNIT_CUBE + m->levels * (LEVEL_CELL + CORNER_WEIGHTS + corners);
}

static double gather_bytes(const struct cost_model *m)
{
    return m->levels * CORNERS * m->features * m->parameter_bytes;
}

/* Bytes of grid entries and of weights, each once. */
static double entry_bytes(const struct cost_model *m, double entries)
{
    return entries * m->features * m->parameter_bytes;
}

static double weight_bytes(const struct cost_model *m)
{
    return m->used_weights * m->parameter_bytes;
}

/* Samples that backward goes through. */
static double gradients_of(const struct cost_model *m, const struct cost_counts *n)
{
    return m->deterministic ? n->marched : n->live;
}

static double grid_params(const struct cost_model *m)
{
    return m->params - m->mlp_params;
}

/* The same bytes whether counted as written or as memory traffic. */
static struct cost streaming(double flops, double bytes)
{
    return (struct cost){.flops = flops, .bytes = bytes, .memory = bytes};
}

/* ---- rays ---------------------------------------------------------------------------------- */

static struct cost cost_begin_step(const struct cost_model *m, const struct cost_counts *n)
{
    (void)m, (void)n;
    return streaming(0, 2 * sizeof(struct State));
}

static struct cost cost_generate_rays(const struct cost_model *m, const struct cost_counts *n)
{
    double ray = 4 + sizeof(struct Ray) + sizeof(struct RayResult); /* 4: the pixel */
    return (struct cost){
        .flops = GENERATE_RAY * n->rays,
        .bytes = (ray + sizeof(struct Camera)) * n->rays,
        .memory = ray * n->rays + sizeof(struct Camera) * fmin(m->cameras, n->rays),
    };
}

/* At the least, for every sample is found by a probe: those that find nothing are not counted. */
static struct cost probes(const struct cost_model *m, const struct cost_counts *n)
{
    double ray = RAY_PLACE + 8 + 8; /* begin and end; its samples' place and number */
    double bits = m->cells / 8 + 4 * m->cells / BLOCK;
    return (struct cost){
        .flops = PROBE * n->marched,
        .bytes = ray * n->rays + 4 * n->marched,
        .memory = ray * n->rays + fmin(bits, 4 * n->marched),
    };
}

static struct cost cost_march_rays_write(const struct cost_model *m, const struct cost_counts *n)
{
    struct cost cost = probes(m, n);
    cost.flops += WIDTH * n->marched;
    cost.bytes += sizeof(struct Sample) * n->marched;
    cost.memory += sizeof(struct Sample) * n->marched;
    return cost;
}

static struct cost cost_march_rays(const struct cost_model *m, const struct cost_counts *n)
{
    struct cost cost = cost_march_rays_write(m, n);
    cost.atomics = n->rays;
    return cost;
}

static struct cost cost_scan_rays(const struct cost_model *m, const struct cost_counts *n)
{
    (void)m;
    return (struct cost){.bytes = 12 * n->rays, .memory = 8 * n->rays};
}

/* ---- the field ----------------------------------------------------------------------------- */

/* Bytes of a sample's features, and of their gradients. */
static double feature_bytes(const struct cost_model *m)
{
    return m->levels * m->features * m->feature_bytes;
}

static struct cost cost_encode_samples(const struct cost_model *m, const struct cost_counts *n)
{
    double places = ceil(m->levels / LEVELS_TOGETHER);
    return (struct cost){
        .flops = n->marched * (PLACE * places + UNIT_CUBE * (places - 1) + encode_flops(m)),
        .bytes = n->marched * (places * (sizeof(struct Sample) + RAY_PLACE) + gather_bytes(m) +
                               feature_bytes(m)),
        .memory = n->marched * (sizeof(struct Sample) + feature_bytes(m)) + n->rays * RAY_PLACE +
                  entry_bytes(m, n->touched),
    };
}

static struct cost cost_field_forward(const struct cost_model *m, const struct cost_counts *n)
{
    double sample = sizeof(struct Sample) + feature_bytes(m) + 16, weights = weight_bytes(m);
    return (struct cost){
        .flops = n->marched * (m->sh + layers_flops(m, 0, m->layer_count) + SIGMOIDS),
        .bytes = n->marched * (sample + RAY_DIRECTION) + weights,
        .memory = n->marched * sample + n->rays * RAY_DIRECTION + weights,
    };
}

static struct cost cost_composite(const struct cost_model *m, const struct cost_counts *n)
{
    /* Of a ray: place and number of samples, pixel, background, end; its share of the losses. */
    double ray = 8 + 16 + 12 + 4 + 8 / m->local_size, sample = 16 + sizeof(struct Sample);
    double index = m->deterministic ? 0 : 4, cleared = m->deterministic ? n->marched - n->live : 0;
    return (struct cost){
        .flops = COMPOSITE_RAY * n->rays + (COMPOSITE_SAMPLE + COMPOSITE_LIVE) * n->live,
        .bytes = ray * n->rays + (2 * sample + 16 + index) * n->live + 16 * cleared,
        .memory = ray * n->rays + (sample + 16 + index) * n->live + 16 * cleared,
        .atomics = m->deterministic ? n->rays * (1 + 1 / m->subgroup_size)
                                    : n->rays * 2 / m->subgroup_size,
    };
}

/* Activations again, but for the last layer; then for each layer the gradient of its
 * inputs and of its weights, each as many multiply-adds as forward. */
static struct cost cost_field_backward(const struct cost_model *m, const struct cost_counts *n)
{
    double samples = gradients_of(m, n);
    double again = m->sh + layers_flops(m, 0, m->layer_count - 1);
    double hidden = layers_flops(m, 0, m->layer_count) - 2 * m->used_weights;
    double index = m->deterministic ? 0 : 4;
    double sample = index + sizeof(struct Sample) + 16 + 2 * feature_bytes(m);
    /* Values of a row and their gradients, out and in again. */
    double rows = m->scratch ? 2 * 2 * m->activations * (m->half ? 2 : 4) : 0;
    double groups = fmin(m->backward_groups, ceil(samples / m->local_size));
    double sums = 4 * groups * m->mlp_params, weights = weight_bytes(m);
    return (struct cost){
        .flops = samples * (again + hidden + 2 * 2 * m->used_weights),
        .bytes = samples * (sample + RAY_DIRECTION + rows) + sums + weights,
        .memory = samples * sample + fmin(n->rays, samples) * RAY_DIRECTION + sums + weights,
    };
}

/* Words and atomics that one gradient takes. */
static void sum_words(const struct cost_model *m, double *words, double *atomics)
{
    *words = *atomics = 1;
    if (m->sums == VKN_SUMS_FIXED)
        *words = *atomics = 2;
    if (m->sums == VKN_SUMS_HALF)
        *words = *atomics = 0.5;
    if (m->owned)
        *atomics = 0;
}

static struct cost cost_scatter_gradients(const struct cost_model *m, const struct cost_counts *n)
{
    double samples = gradients_of(m, n), words, atomics;
    sum_words(m, &words, &atomics);
    double corners = m->levels * CORNERS * m->features; /* gradients added by a sample */
    double place = PLACE + UNIT_CUBE + LEVEL_CELL + CORNER_WEIGHTS + CORNERS * m->features;
    double gradients = feature_bytes(m);
    double index = m->deterministic ? 0 : 4;
    return (struct cost){
        .flops = samples * m->levels * place,
        .bytes = samples * (gradients + corners * 8 * words +
                            m->levels * (index + sizeof(struct Sample) + RAY_PLACE)),
        .memory = samples * (gradients + index + sizeof(struct Sample)) +
                  fmin(n->rays, samples) * RAY_PLACE + n->touched * m->features * 8 * words,
        .atomics = samples * corners * atomics,
    };
}

static struct cost cost_reduce_gradients(const struct cost_model *m, const struct cost_counts *n)
{
    struct cost cost =
        streaming(m->backward_groups * m->mlp_params, 4 * (m->backward_groups + 1) * m->mlp_params);
    double grid = grid_params(m), touched = n->touched * m->features;
    double more = m->sums == VKN_SUMS_FIXED  ? 12 * grid + 8 * touched
                  : m->sums == VKN_SUMS_HALF ? 8 * grid
                                             : 0;
    cost.bytes += more;
    cost.memory += more;
    return cost;
}

/* ---- the optimiser ------------------------------------------------------------------------- */

static struct cost cost_check_gradients(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    return streaming(CHECK * m->params, 4 * (m->params + m->param_groups));
}

static struct cost cost_update_loss_scale(const struct cost_model *m, const struct cost_counts *n)
{
    double groups = ceil(n->rays / m->local_size);
    return streaming(2 * groups + m->param_groups,
                     8 * groups + 4 * m->param_groups + sizeof(struct Stats));
}

static struct cost cost_update_weights(const struct cost_model *m, const struct cost_counts *n)
{
    double entries = m->mlp_params / m->features + n->touched, params = entries * m->features;
    /* Gradient cleared; weight and both moments read and written; the entry's steps. */
    double param = 4 + 3 * 8 + (m->half ? 2 : 0);
    return streaming(ADAM * params + ADAM_DECAY * m->mlp_params + ADAM_ENTRY * entries,
                     4 * m->params + param * params + 8 * entries);
}

static struct cost cost_update_average(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    return streaming(AVERAGE * m->params, (12 + (m->half ? 2 : 0)) * m->params);
}

/* ---- occupancy ----------------------------------------------------------------------------- */

static struct cost cost_update_occupancy(const struct cost_model *m, const struct cost_counts *n)
{
    double weights = 0, entries = 0;
    for (uint32_t i = 0; i < m->density_count; i++)
        weights += (double)m->layers[i].used_inputs * m->layers[i].used_outputs;
    for (uint32_t i = 0; i < (uint32_t)m->levels; i++)
        entries += fmin(m->table[i], n->evaluated);
    weights *= m->parameter_bytes;
    return (struct cost){
        .flops = CELL * m->cells + n->evaluated * (encode_flops(m) + CELL_DENSITY +
                                                   layers_flops(m, 0, m->density_count)),
        .bytes = 8 * m->cells + n->evaluated * gather_bytes(m) + weights,
        .memory = 8 * m->cells + entry_bytes(m, entries) + weights,
    };
}

static struct cost cost_threshold_occupancy(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    double groups = fmin(ceil(m->cells / 4 / m->local_size), REDUCE_GROUPS);
    return streaming(groups, 4 * groups);
}

/* The bits of finer cascades, which outer ones read, are left out. */
static struct cost cost_pack_occupancy(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    return streaming(m->cells, 4 * m->cells + m->cells / 8 + 4 * m->cells / BLOCK);
}

/* ---- all ----------------------------------------------------------------------------------- */

static const struct {
    const char *pass;
    struct cost (*cost)(const struct cost_model *, const struct cost_counts *);
    bool once; /* a period */
} passes[] = {
    {"begin_period", cost_begin_step, true},
    {"update_occupancy", cost_update_occupancy, true},
    {"threshold_occupancy", cost_threshold_occupancy, true},
    {"pack_occupancy", cost_pack_occupancy, true},
    {"begin_step", cost_begin_step, false},
    {"generate_rays", cost_generate_rays, false},
    {"march_rays", cost_march_rays, false},
    {"march_rays_count", probes, false},
    {"scan_rays", cost_scan_rays, false},
    {"march_rays_write", cost_march_rays_write, false},
    {"encode_samples", cost_encode_samples, false},
    {"field_forward", cost_field_forward, false},
    {"composite", cost_composite, false},
    {"field_backward", cost_field_backward, false},
    {"scatter_gradients", cost_scatter_gradients, false},
    {"reduce_gradients", cost_reduce_gradients, false},
    {"check_gradients", cost_check_gradients, false},
    {"update_loss_scale", cost_update_loss_scale, false},
    {"update_weights", cost_update_weights, false},
    {"update_average", cost_update_average, true},
};

bool cost_of_pass(const struct cost_model *model, const struct cost_counts *counts,
                  const char *pass, struct cost *cost)
{
    for (size_t i = 0; i < BASE_COUNT(passes); i++) {
        if (strcmp(passes[i].pass, pass) != 0)
            continue;
        *cost = passes[i].cost(model, counts);
        double share = passes[i].once ? 1.0 / PERIOD_STEPS : 1.0;
        cost->flops *= share;
        cost->bytes *= share;
        cost->memory *= share;
        cost->atomics *= share;
        return true;
    }
    *cost = (struct cost){0};
    return false;
}

double cost_floor(const struct cost *cost, const struct cost_peaks *peaks, const char **bound)
{
    const struct {
        const char *name;
        double work, peak;
    } all[] = {
        {"flops", cost->flops, peaks->flops},
        {"bytes", cost->memory, peaks->bytes},
        {"atomics", cost->atomics, peaks->atomics},
    };
    double most = 0.0;
    *bound = "";
    for (size_t i = 0; i < BASE_COUNT(all); i++) {
        double seconds = all[i].peak > 0.0 ? all[i].work / all[i].peak : 0.0;
        if (seconds > most) {
            most = seconds;
            *bound = all[i].name;
        }
    }
    return most;
}
