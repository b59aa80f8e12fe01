/* Computes the cost of the passes of a training step from the configuration and the step's rays and
 * samples. Each pass's formula is in the module of the pass; docs/cost_model.md explains the
 * formulas, and tests/test_cost.c checks them against counts by hand. */
#include <string.h>

#include "step/internal.h"
#include "rays/rays.h"
#include "volume/volume.h"

/* Scales the counts to coarse samples, assuming the same share of live samples as in total; no ray
 * of the coarse field is dropped. All samples of a proposal are live. */
static struct cost_counts counts_of_set(const struct cost_model *model, uint32_t set,
                                        struct cost_counts counts)
{
    const struct Config *constants = model->constants;
    if (set == SET_COARSE && rays_have_proposal(model->config)) {
        counts.live = counts.marched = counts.rays * constants->ray_samples;
    } else if (set == SET_COARSE) {
        double all = constants->ray_samples + constants->fine_samples;
        counts.live = volume_reached_samples(model->config, counts.live, counts.marched);
        counts.live *= constants->ray_samples / all;
        counts.marched *= constants->ray_samples / all;
    }
    return counts;
}

static void add_cost(const struct cost_model *model, const struct step_pass *pass,
                     const struct cost_counts *counts, struct cost *sum)
{
    struct cost_counts scaled = counts_of_set(model, pass->set, *counts);
    scaled.pass = pass->pass;
    if (pass->pass->rows == ROWS_CELLS)
        scaled.marched = scaled.rays = scaled.evaluated;
    struct cost cost = pass->pass->cost(model, &scaled);
    double share = pass->phase == STEP_EVERY ? 1.0 : 1.0 / UPDATE_INTERVAL;
    if (pass->learns) /* the training interval after annealing */
        share /= model->config->proposal.interval;
    cost_add(sum, &cost, share);
}

static struct cost_model model_of(const struct setup *setup, uint32_t subgroup_size)
{
    return (struct cost_model){
        .config = &setup->config,
        .model = &setup->model,
        .backend = &setup->backend,
        .constants = &setup->constants,
        .groups = setup->model.groups,
        .group_count = setup->model.group_count,
        .counts = setup_counts(setup),
        .local_size = PASS_LOCAL_SIZE,
        .subgroup_size = subgroup_size,
        .cpu_kernels = setup->specialization.values[SPEC_CPU_KERNELS],
    };
}

bool setup_cost(const struct setup *setup, uint32_t subgroup_size, const struct cost_counts *counts,
                const char *name, struct cost *cost)
{
    const struct setup coarse = setup_of_coarse(setup);
    const struct cost_model fine_model = model_of(setup, subgroup_size);
    const struct cost_model coarse_model = model_of(&coarse, subgroup_size);
    struct step_pass passes[STEP_MAX_PASSES];
    size_t count = step_list_passes(setup, passes);
    bool found = false;
    *cost = (struct cost){0};
    for (size_t i = 0; i < count; i++)
        if (passes[i].pass->place != PASS_JOINS_BEFORE &&
            strcmp(step_pass_label(&passes[i]), name) == 0) {
            add_cost(passes[i].proposal ? &coarse_model : &fine_model, &passes[i], counts, cost);
            found = true;
        }
    return found;
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
