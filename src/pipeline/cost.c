/* What the passes of a training step have to do, as formulas of the configuration and of how many
 * rays and samples a step has: each pass's formula stands in the room of the pass.
 * docs/cost_model.md is the same for people; tests/test_cost.c counts by hand. */
#include <string.h>

#include "pipeline/internal.h"

bool setup_cost(const struct setup *setup, uint32_t subgroup_size, const struct cost_counts *counts,
                const char *name, struct cost *cost)
{
    const struct cost_model model = {
        .config = &setup->config,
        .model = &setup->model,
        .backend = &setup->backend,
        .constants = &setup->constants,
        .groups = setup->model.groups,
        .group_count = setup->model.group_count,
        .counts = setup_counts(setup),
        .local_size = PASS_LOCAL_SIZE,
        .subgroup_size = subgroup_size,
        .cpu_shaped = setup->specialization.values[SPEC_CPU_SHAPED],
    };
    struct step_pass passes[STEP_MAX_PASSES];
    size_t count = pipeline_list_passes(setup, passes), i = 0;
    *cost = (struct cost){0};
    while (i < count && strcmp(pipeline_label(&passes[i]), name) != 0)
        i++;
    if (i == count)
        return false;
    *cost = passes[i].pass->cost(&model, counts);
    double share = passes[i].place == STEP_EVERY ? 1.0 : 1.0 / PERIOD_STEPS;
    cost->flops *= share;
    cost->bytes *= share;
    cost->memory *= share;
    cost->atomics *= share;
    return true;
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
