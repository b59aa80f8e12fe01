/* Updates the occupancy grid with the caller's densities, one chunk of cells at a time. */
#include <string.h>

#include "rays/rays.h"
#include "stepper/internal.h"

static const struct step_pass *find_pass(const struct vkn_stepper *s, const char *name)
{
    const struct step_pass *pass = s->step.passes;
    while (strcmp(pass->pass->name, name) != 0)
        pass++;
    return pass;
}

/* Returns the workgroups of a pass over cells: four cells an invocation, at most REDUCE_GROUPS. */
static uint32_t cell_groups(const struct vkn_stepper *s)
{
    const struct setup *setup = &s->step.setup;
    uint64_t groups = (setup_counts(setup).cells / 4 + PASS_LOCAL_SIZE - 1) / PASS_LOCAL_SIZE;
    uint32_t most =
        setup->constants.group_limit < REDUCE_GROUPS ? setup->constants.group_limit : REDUCE_GROUPS;
    return groups < most ? (uint32_t)groups : most;
}

/* Returns the number of workgroups of a pass over the cells of one chunk. */
static uint32_t chunk_groups(const struct vkn_stepper *s)
{
    uint32_t groups = s->step.setup.constants.cells_per_chunk / PASS_LOCAL_SIZE,
             most = cell_groups(s);
    return groups < most ? groups : most;
}

static void record(struct vkn_stepper *s, struct gpu_recording *recording, const char *pass,
                   uint32_t chunk, uint32_t groups)
{
    const struct Push push = {.b = PASS_LOCAL_SIZE, .d = chunk, .e = ROWS_CELLS};
    gpu_record_dispatch(recording, find_pass(s, pass)->pipeline, s->step.sets[0].training, &push,
                        sizeof push, groups);
    gpu_record_barrier(recording);
}

static void record_pick(struct vkn_stepper *s, struct gpu_recording *recording, uint32_t chunk)
{
    gpu_record_barrier(recording);
    record(s, recording, "begin_cells", chunk, 1);
    record(s, recording, "pick_cells", chunk, chunk_groups(s));
    listing_record(&s->listing, recording, s->list_samples, LIST_CELLS, 0, chunk_groups(s));
}

static void record_store(struct vkn_stepper *s, struct gpu_recording *recording, uint32_t chunk)
{
    const struct Push none = {0};
    gpu_record_barrier(recording);
    gpu_record_dispatch(recording, s->import_densities, s->listing.bindings, &none, sizeof none,
                        chunk_groups(s));
    gpu_record_compute_barrier(recording);
    record(s, recording, "store_cells", chunk, chunk_groups(s));
}

static void record_threshold(struct vkn_stepper *s, struct gpu_recording *recording,
                             uint32_t number)
{
    const struct pass *sum = &rays_sums.passes[0],
                      *threshold = &rays_occupancy.passes[RAYS_THRESHOLD];
    (void)number;
    gpu_record_barrier(recording);
    gpu_record_fill(recording, &s->step.buffers.at[BIND_STATE],
                    offsetof(struct State, dispatches) +
                        DISPATCH_OCCUPANCY * sizeof(struct Dispatch),
                    4, cell_groups(s));
    record(s, recording, sum->name, 0, cell_groups(s));
    record(s, recording, threshold->name, 0, 1);
}

static vkn_status call_density(struct vkn_stepper *s, vkn_density_fn *density, void *user)
{
    BASE_CALLBACK(gpu_guard(s->device), "vkn_stepper_update_grid", "density", s, true);
    return stepper_check_callback("vkn_stepper_update_grid", "density",
                                  density(user, &s->listing.samples));
}

static vkn_status update_chunk(struct vkn_stepper *s, uint32_t chunk, vkn_density_fn *density,
                               void *user, uint64_t *unusable)
{
    BASE_TRY(stepper_run(s, "cells to evaluate", record_pick, chunk));
    if (listing_read(&s->listing)->samples == 0)
        return VKN_OK;
    BASE_TRY(call_density(s, density, user));
    BASE_TRY(stepper_run(s, "densities of cells", record_store, chunk));
    *unusable += listing_read(&s->listing)->unusable;
    return VKN_OK;
}

vkn_status vkn_stepper_update_grid(vkn_stepper *stepper, vkn_density_fn *density, void *user)
{
    BASE_C_LOCALE;
    BASE_NEED(stepper);
    BASE_NEED(density);
    struct vkn_stepper *s = stepper;
    BASE_USE(gpu_guard(s->device), s);
    const struct repeats repeats = setup_repeats(&s->step.setup);
    uint64_t unusable = 0;
    s->sampled = false;
    if (!rays_use_grid(&s->step.setup.config))
        return base_fail(VKN_BAD_INPUT,
                         "vkn_stepper_update_grid: march.sampling: only occupancy has a grid");
    uint32_t chunks = pass_chunks(find_pass(s, "pick_cells")->pass, &repeats);
    for (uint32_t chunk = 0; chunk < chunks; chunk++)
        BASE_TRY(update_chunk(s, chunk, density, user, &unusable));
    if (unusable > 0)
        base_log(BASE_LOG_WARNING,
                 "step %llu: %llu densities for the occupancy grid are not finite and count as 0",
                 (unsigned long long)s->steps, (unsigned long long)unusable);
    BASE_TRY(stepper_run(s, "occupancy threshold", record_threshold, 0));
    return step_pack_occupancy(&s->step);
}

vkn_status vkn_stepper_occupancy(vkn_stepper *stepper, struct vkn_occupancy *grid)
{
    BASE_C_LOCALE;
    BASE_NEED(stepper);
    BASE_NEED(grid);
    BASE_USE(gpu_guard(stepper->device), NULL);
    return step_read_occupancy(&stepper->step, __func__, grid);
}

vkn_status vkn_stepper_set_occupancy(vkn_stepper *stepper, const struct vkn_occupancy *grid)
{
    BASE_C_LOCALE;
    BASE_NEED(stepper);
    BASE_NEED(grid);
    BASE_USE(gpu_guard(stepper->device), stepper);
    stepper->sampled = false;
    return step_write_occupancy(&stepper->step, __func__, grid);
}
