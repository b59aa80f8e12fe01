/* Computes how often passes are repeated, records lists of passes, and counts optimiser entries. */
#include "passes/passes.h"

uint32_t pass_loop_count(const struct pass *pass, const struct repeats *repeats)
{
    switch (pass->loop) {
    case LOOP_CASCADES:
        return repeats->cascades;
    case LOOP_LAYERS:
        return repeats->layers;
    case LOOP_DENSITY_LAYERS:
        return repeats->density_layers;
    case LOOP_LAYERS_BACK:
        return repeats->layers - repeats->first_back;
    case LOOP_DEFORMATION:
        return repeats->deformation_layers;
    case LOOP_DEFORMATION_BACK:
        return repeats->deformation_layers - repeats->first_deformation_back;
    case LOOP_UNFUSED_LAYERS:
        return repeats->first_deformation + repeats->deformation_layers - repeats->first_unfused;
    default:
        return 1;
    }
}

uint32_t pass_loop_index(const struct pass *pass, const struct repeats *repeats, uint32_t round)
{
    uint32_t first = repeats->first_deformation;
    switch (pass->loop) {
    case LOOP_LAYERS_BACK:
        return repeats->layers - 1 - round;
    case LOOP_DEFORMATION:
        return first + round;
    case LOOP_DEFORMATION_BACK:
        return first + repeats->deformation_layers - 1 - round;
    case LOOP_UNFUSED_LAYERS:
        return repeats->first_unfused + round;
    default:
        return round;
    }
}

uint32_t pass_chunks(const struct pass *pass, const struct repeats *repeats)
{
    bool over_cells = pass->rows == ROWS_CELLS;
    uint64_t all = over_cells ? repeats->cells : repeats->samples;
    uint32_t rows = over_cells ? repeats->cells_per_chunk : repeats->chunk_rows;
    return pass->by_chunk    ? (uint32_t)((all + rows - 1) / rows)
           : pass->by_bucket ? repeats->buckets
                             : 1;
}

bool pass_shares_chunks(const struct pass *previous, const struct pass *pass)
{
    return (previous->by_chunk && pass->by_chunk) || (previous->by_bucket && pass->by_bucket);
}

static void record_pass(const struct repeats *repeats, struct gpu_recording *recording,
                        const struct pass_dispatch *dispatch, const struct gpu_bindings *bindings,
                        uint32_t chunk)
{
    uint32_t rounds = pass_loop_count(dispatch->pass, repeats);
    for (uint32_t round = 0; round < rounds; round++) {
        const struct Push push = {.c = pass_loop_index(dispatch->pass, repeats, round),
                                  .d = chunk,
                                  .e = dispatch->pass->rows};
        gpu_record_dispatch(recording, dispatch->pipeline, bindings, &push, sizeof push,
                            dispatch->groups);
        gpu_record_compute_barrier(recording);
    }
}

void passes_record(const struct repeats *repeats, struct gpu_recording *recording,
                   const struct pass_dispatch *dispatches, size_t count,
                   const struct gpu_bindings *bindings)
{
    for (size_t first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && pass_shares_chunks(dispatches[first].pass, dispatches[end].pass))
            end++;
        uint32_t chunks = pass_chunks(dispatches[first].pass, repeats);
        for (uint32_t chunk = 0; chunk < chunks; chunk++)
            for (size_t i = first; i < end; i++)
                record_pass(repeats, recording, &dispatches[i], bindings, chunk);
    }
}

/* ---- parameter groups ------------------------------------------------------------------------ */

uint32_t groups_entry_count(const struct parameter_group *groups, uint32_t count)
{
    uint32_t entries = 0;
    for (uint32_t i = 0; i < count; i++) {
        entries = (entries + ENTRY_ALIGN - 1) / ENTRY_ALIGN * ENTRY_ALIGN;
        entries += groups[i].count / groups[i].entry;
    }
    return entries;
}
