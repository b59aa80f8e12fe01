/* Lists the passes of the optimiser, with a cost formula for each. */
#include <math.h>

#include "optim/optim.h"

/* Operations for one parameter, counted in the pass's shader; a square root, an exponential and a
 * division count as one operation each. */
#define CHECK   3
#define AVERAGE 3

/* Returns the workgroups of check_gradients. */
static double check_groups(const struct cost_model *m)
{
    return m->cpu_kernels
               ? fmin(ceil((double)m->counts.params / m->local_size), MAX_PARAM_WORKGROUPS)
               : m->constants->forward_groups;
}

/* Returns the workgroups of composite, each of which writes partial sums. */
static double loss_groups(const struct cost_model *m, const struct cost_counts *n)
{
    return m->cpu_kernels ? ceil(n->rays / m->local_size) : m->constants->forward_groups;
}

/* Returns the partial sums of a workgroup of composite: loss, squared error, distortion loss. */
static double loss_sums(const struct cost_model *m)
{
    return m->config->loss.distortion > 0.0F ? 3 : 2;
}

static double f16_bytes(const struct cost_model *m)
{
    return m->counts.f16_params ? 2 : 0;
}

/* Returns the bytes of a gradient as check_gradients and update_weights read it; `first` is the
 * first parameter of the parameter group. */
static double sum_bytes(const struct cost_model *m, double first)
{
    return m->counts.f16_sums && first >= (double)m->counts.summed ? 2 : 4;
}

static double all_sum_bytes(const struct cost_model *m)
{
    double params = (double)m->counts.params, summed = (double)m->counts.summed;
    return 4 * summed + sum_bytes(m, summed) * (params - summed);
}

/* One step in norm_interval reads all gradients. The last workgroup adds up all partial sums,
 * including composite's, and writes struct Stats. */
static struct cost cost_check(const struct cost_model *m, const struct cost_counts *n)
{
    double params = (double)m->counts.params, sums = check_groups(m);
    double losses = loss_sums(m) * loss_groups(m, n), interval = m->constants->norm_interval;
    return cost_streaming(CHECK * params / interval + sums + losses, all_sum_bytes(m) / interval +
                                                                         8 * sums + 4 * losses +
                                                                         sizeof(struct Stats));
}

static struct cost cost_weights(const struct cost_model *m, const struct cost_counts *n)
{
    const struct optim_kind *kind = optim_kind(m->config);
    double entries = 0, params = 0, decaying = 0, first = 0, cleared = 0;
    for (uint32_t i = 0; i < m->group_count; i++) {
        const struct parameter_group *group = &m->groups[i];
        double updated = group->sparse ? n->touched : (double)group->count / group->entry;
        entries += updated;
        params += updated * group->entry;
        cleared += updated * group->entry * sum_bytes(m, first);
        decaying += group->decay > 0 ? group->count : 0;
        /* Of the groups after the MLPs, only a hash grid with grid.decay is not sparse. */
        decaying += !group->sparse && first >= (double)m->counts.summed ? group->count : 0;
        first += group->count;
    }
    /* Weight and moments are read and written, and the entry's step count. */
    uint32_t words = optim_packs_moments(m->config) ? 1 : kind->moments;
    double param_bytes = (1 + words) * 8 + f16_bytes(m);
    return cost_streaming(kind->parameter_flops * params + kind->decay_flops * decaying +
                              kind->entry_flops * entries,
                          all_sum_bytes(m) + cleared + param_bytes * params + 8 * entries);
}

static struct cost cost_average(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    double params = (double)m->counts.params;
    return cost_streaming(AVERAGE * params, (12 + f16_bytes(m)) * params);
}

static const struct pass update[] = {
    {"check_gradients", .dispatch = DISPATCH_PARAMS, .gpu_dispatch = DISPATCH_FORWARD,
     .place = PASS_AT_END, .cost = cost_check},
    {"update_weights", .variant = FIELD_F16_PARAMS, .dispatch = DISPATCH_ENTRIES,
     .gpu_dispatch = DISPATCH_FORWARD, .place = PASS_AT_END, .cost = cost_weights},
};
const struct pass_list optim_update = PASS_LIST(update);

static const struct pass update_before[] = {
    {"update_weights", .variant = FIELD_F16_PARAMS, .dispatch = DISPATCH_ENTRIES,
     .gpu_dispatch = DISPATCH_FORWARD, .place = PASS_JOINS_BEFORE, .cost = cost_weights},
};
const struct pass_list optim_update_before = PASS_LIST(update_before);
const struct pass_list optim_update_coarse = {update + 1, 1};

static const struct pass check_coarse[] = {
    {"check_coarse_gradients", .dispatch = DISPATCH_PARAMS, .gpu_dispatch = DISPATCH_FORWARD,
     .cost = cost_check},
};
const struct pass_list optim_check_coarse = PASS_LIST(check_coarse);

/* Reads composite's partial losses; reads and writes step statistics. */
static struct cost cost_rank_stats(const struct cost_model *m, const struct cost_counts *n)
{
    double losses = loss_sums(m) * loss_groups(m, n);
    return cost_streaming(losses, 4 * losses + 2 * sizeof(struct RankStats));
}

static const struct pass export_stats[] = {
    {"export_step_stats", .dispatch = PASS_ONE_WORKGROUP, .rows = RANK_STATS_STEP,
     .cost = cost_rank_stats},
};
static const struct pass import_stats[] = {
    {"import_step_stats", .dispatch = PASS_ONE_WORKGROUP, .rows = RANK_STATS_STEP,
     .cost = cost_rank_stats},
};
/* Reads f32 gradients, clears them, and writes f16. */
static struct cost cost_pack(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    double sums = (double)m->counts.params - (double)m->counts.summed;
    return cost_streaming(sums, 10 * sums);
}

static const struct pass pack[] = {
    {"pack_gradients", .use = PASS_SYNCHRONOUS | PASS_PACKS_F16, .dispatch = DISPATCH_PARAMS,
     .gpu_dispatch = DISPATCH_FORWARD, .by_bucket = true, .cost = cost_pack},
};
const struct pass_list optim_pack = PASS_LIST(pack);

static const struct pass export_coarse[] = {
    {"export_step_stats", .label = "export_coarse_step_stats", .dispatch = PASS_ONE_WORKGROUP,
     .rows = RANK_STATS_COARSE, .cost = cost_rank_stats},
};
static const struct pass import_coarse[] = {
    {"import_step_stats", .label = "import_coarse_step_stats", .dispatch = PASS_ONE_WORKGROUP,
     .rows = RANK_STATS_COARSE, .cost = cost_rank_stats},
};
const struct pass_list optim_export = PASS_LIST(export_stats);
const struct pass_list optim_import = PASS_LIST(import_stats);
const struct pass_list optim_export_coarse = PASS_LIST(export_coarse);
const struct pass_list optim_import_coarse = PASS_LIST(import_coarse);

static const struct pass average[] = {
    {"update_average", .variant = FIELD_F16_PARAMS, .dispatch = DISPATCH_AVERAGE,
     .cost = cost_average},
};
const struct pass_list optim_average = PASS_LIST(average);

static double all_entries(const struct cost_model *m)
{
    return groups_entry_count(m->groups, m->group_count);
}

static struct cost cost_export_step_counts(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    return cost_streaming(0, 12 * all_entries(m));
}

static struct cost cost_import_step_counts(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    return cost_streaming(2 * all_entries(m), 24 * all_entries(m));
}

/* Returns the number of parameters that one step changes, a lower bound for an interval's steps. */
static double changed_params(const struct cost_model *m, const struct cost_counts *n)
{
    double params = 0;
    for (uint32_t i = 0; i < m->group_count; i++) {
        const struct parameter_group *group = &m->groups[i];
        params += group->sparse ? n->touched * group->entry : group->count;
    }
    return params;
}

/* Returns the averaged values per parameter: master, moving average, moments. */
static double averaged_values(const struct cost_model *m)
{
    return 2 + optim_kind(m->config)->moments;
}

static struct cost cost_export_parameters(const struct cost_model *m, const struct cost_counts *n)
{
    double params = changed_params(m, n);
    return cost_streaming(averaged_values(m) * params,
                          averaged_values(m) * (8 * params + 4 * all_entries(m)));
}

static struct cost cost_import_parameters(const struct cost_model *m, const struct cost_counts *n)
{
    double packed = optim_packs_moments(m->config) ? 8 : 0; /* reads the words that it changes */
    return cost_streaming(0, averaged_values(m) * (12 * changed_params(m, n) + 4 * all_entries(m)) +
                                 packed * changed_params(m, n));
}

static const struct pass average_ranks[] = {
    {"export_step_counts", .use = PASS_AVERAGED, .cost = cost_export_step_counts},
    {"import_step_counts", .use = PASS_AVERAGED, .cost = cost_import_step_counts},
    {"export_parameters", .use = PASS_AVERAGED, .cost = cost_export_parameters},
    {"import_parameters", .use = PASS_AVERAGED, .cost = cost_import_parameters},
};
const struct pass_list optim_averaging = PASS_LIST(average_ranks);

const char optim_round_pass[] = "round_parameters";
