/* Fills struct vkn_profile with measured pass times and with work and bounds of the cost model. */
#include <stdlib.h>

#include "train/internal.h"

/* Computes the mean number of hash grid entries per update, from the entries' step counts. */
static vkn_status count_touched(const struct vkn_trainer *t, const struct State *state,
                                double *touched)
{
    const struct gpu_buffer *buffer = &t->step.buffers.at[BIND_STEP_COUNTS];
    const struct Config *constants = &t->step.setup.constants;
    uint32_t *counts = base_alloc(constants->entry_count, sizeof(*counts));
    if (!counts)
        return VKN_ERROR;
    vkn_status status = gpu_download(t->device, buffer, 0, counts,
                                     (uint64_t)constants->entry_count * sizeof(*counts));
    double sum = 0.0;
    for (uint32_t g = 0; g < t->step.setup.model.group_count; g++) {
        const struct ParameterGroup *group = &constants->groups[g];
        for (uint32_t i = 0;
             group->first >= constants->summed_params && i < group->count / group->entry; i++)
            sum += counts[group->first_entry + i];
    }
    free(counts);
    *touched = state->updates > 0 ? sum / state->updates : 0.0;
    return status;
}

/* Returns for how many of four neighbouring cells an occupancy update is expected to evaluate the
 * field: a quarter of the cells that a camera sees, and one more if any is occupied; during the
 * warm-up (`all`) all cells that a camera sees. See rays/update_occupancy.glsl. */
static double evaluated_of_four(const float *cells, float threshold, bool all)
{
    int seen = 0, occupied = 0;
    for (int k = 0; k < 4; k++) {
        seen += cells[k] >= 0.0f;
        occupied += cells[k] > threshold;
    }
    if (all)
        return seen;
    return seen / 4.0 + (occupied == 1 ? 0.75 : occupied > 1);
}

/* Estimates the cells per occupancy update from the current grid and the share of warm-up steps. */
static vkn_status count_evaluated(const struct vkn_trainer *t, const struct State *state,
                                  double *evaluated)
{
    const struct gpu_buffer *buffer = &t->step.buffers.at[BIND_OCCUPANCY];
    uint64_t first = t->steps_done - t->profile.steps;
    double early = first < OCCUPANCY_WARMUP ? (double)(OCCUPANCY_WARMUP - first) : 0.0;
    double share = early < (double)t->profile.steps ? early / (double)t->profile.steps : 1.0;
    float *cells = base_alloc(buffer->size, 1);
    if (!cells)
        return VKN_ERROR;
    vkn_status status = gpu_download(t->device, buffer, 0, cells, buffer->size);
    *evaluated = 0.0;
    for (uint64_t i = 0; i + 4 <= buffer->size / sizeof(*cells); i += 4)
        *evaluated += share * evaluated_of_four(&cells[i], state->threshold, true) +
                      (1.0 - share) * evaluated_of_four(&cells[i], state->threshold, false);
    *evaluated /=
        t->step.setup.specialization.values[SPEC_TIME_BINS]; /* updates visit one time bin */
    free(cells);
    return status;
}

static vkn_status fill_counts(const struct vkn_trainer *t, struct cost_counts *counts)
{
    bool has_grid = t->step.setup.specialization.values[SPEC_SAMPLING] == SAMPLING_OCCUPANCY;
    struct State state;
    BASE_TRY(gpu_download(t->device, &t->step.buffers.at[BIND_STATE], 0, &state, sizeof(state)));
    double devices = t->step.ranks ? t->ranks : 1; /* whose rays and samples the profile sums */
    double steps = devices * (double)t->profile.steps;
    counts->rays = t->profile.rays / steps;
    counts->marched = t->profile.marched / steps;
    counts->live = t->profile.live / steps;
    BASE_TRY(count_touched(t, &state, &counts->touched));
    if (has_grid)
        BASE_TRY(count_evaluated(t, &state, &counts->evaluated));
    counts->evaluated /= t->step.setup.constants.cell_shares;
    return VKN_OK;
}

static void fill_passes(const struct vkn_trainer *t, const struct cost_counts *counts,
                        const struct cost_peaks *peaks, struct vkn_profile *profile)
{
    struct vkn_pass_time times[TRAIN_MAX_PASSES];
    uint32_t subgroup_size = gpu_device_capabilities(t->device)->subgroup_size;
    profile->pass_count = vkn_trainer_pass_times(t, times, TRAIN_MAX_PASSES);
    for (size_t i = 0; i < profile->pass_count; i++) {
        struct vkn_pass_profile *pass = profile->passes[i];
        struct cost cost;
        setup_cost(&t->step.setup, subgroup_size, counts, times[i].name, &cost);
        *pass = (struct vkn_pass_profile){
            .name = times[i].name,
            .milliseconds = times[i].milliseconds,
            .flops = cost.flops,
            .bytes = cost.bytes,
            .atomics = cost.atomics,
            .memory_bytes = cost.memory,
        };
        pass->floor_milliseconds = 1e3 * cost_floor(&cost, peaks, &pass->bound);
    }
}

void vkn_profile_free(struct vkn_profile **profile)
{
    if (!profile || !*profile)
        return;
    free((*profile)->passes);
    free(*profile);
    *profile = NULL;
}

static vkn_status fill_profile(vkn_trainer *trainer, train_peaks *measure,
                               struct vkn_profile *profile)
{
    const struct profile *sums = &trainer->profile;
    struct cost_counts counts = {0};
    struct cost_peaks peaks = {0};
    profile->steps = sums->steps;
    profile->intervals = sums->intervals;
    if (sums->steps == 0 || sums->pass_count == 0)
        return VKN_OK;
    BASE_TRY(fill_counts(trainer, &counts));
    BASE_TRY(measure(trainer->device, &trainer->step.setup.backend, &peaks));
    fill_passes(trainer, &counts, &peaks, profile);
    double steps = (double)sums->steps;
    profile->idle_milliseconds = 1e3 * sums->idle / steps;
    if (sums->interval_gaps > 0)
        profile->interval_idle_milliseconds =
            1e3 * sums->interval_idle / (double)sums->interval_gaps / UPDATE_INTERVAL;
    profile->rays = counts.rays;
    profile->marched_samples = counts.marched;
    profile->live_samples = counts.live;
    profile->touched_entries = counts.touched;
    profile->evaluated_cells = counts.evaluated;
    profile->peak_flops = peaks.flops;
    profile->peak_bytes = peaks.bytes;
    profile->peak_atomics = peaks.atomics;
    return VKN_OK;
}

vkn_status train_profile(vkn_trainer *trainer, train_peaks *measure, struct vkn_profile **profile)
{
    *profile = base_alloc(1, sizeof **profile);
    if (!*profile)
        return VKN_ERROR;
    (*profile)->passes = base_alloc_pointers(TRAIN_MAX_PASSES, sizeof(struct vkn_pass_profile));
    vkn_status status = (*profile)->passes ? fill_profile(trainer, measure, *profile) : VKN_ERROR;
    if (status != VKN_OK)
        vkn_profile_free(profile);
    return status;
}
