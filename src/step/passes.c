/* Lists the passes of all modules in the order of the training step. */
#include "field/field.h"
#include "optim/optim.h"
#include "step/internal.h"
#include "rays/rays.h"
#include "volume/volume.h"

static struct cost cost_begin(const struct cost_model *m, const struct cost_counts *n)
{
    (void)m, (void)n;
    return cost_streaming(0, 2 * sizeof(struct State) + DISPATCH_COUNT * sizeof(Dispatch));
}

/* Decides on the device which passes of the update interval or the step run. */
static const struct pass begin_passes[] = {
    {.name = "begin_step",
     .dispatch = PASS_ONE_WORKGROUP,
     .writes_dispatches = true,
     .place = PASS_AT_BEGIN,
     .cost = cost_begin},
};
static const struct pass_list begin = PASS_LIST(begin_passes);

/* The cost of the passes that finish_step replaces. */
static struct cost cost_finish(const struct cost_model *m, const struct cost_counts *n)
{
    const struct pass *reduce = field_find_pass(m->model, &m->model->kind->backward, FIELD_REDUCE);
    const struct cost parts[] = {cost_begin(m, n), reduce->cost(m, n),
                                 optim_update.passes[0].cost(m, n)};
    struct cost sum = {0};
    for (size_t i = 0; i < BASE_COUNT(parts); i++)
        cost_add(&sum, &parts[i], 1);
    return sum;
}

static const struct pass finish_passes[] = {
    {.name = "finish_step",
     .variant = FIELD_REDUCE,
     .dispatch = DISPATCH_SUMMED,
     .gpu_dispatch = DISPATCH_FORWARD,
     .writes_dispatches = true,
     .place = PASS_JOINS_NEXT,
     .cost = cost_finish},
};
static const struct pass_list finish = PASS_LIST(finish_passes);

bool setup_joins_steps(const struct setup *setup)
{
    const struct field_model *model = &setup->model;
    return setup->constants.norm_interval == UPDATE_INTERVAL && !rays_have_coarse(&setup->config) &&
           field_find_pass(model, &model->kind->backward, FIELD_REDUCE);
}

/* Returns whether the setup meets the conditions of a pass, see enum pass_use. */
static bool meets_conditions(const struct setup *setup, unsigned use)
{
    unsigned holds = setup->config.deterministic ? PASS_DETERMINISTIC : PASS_NOT_DETERMINISTIC;
    holds |= rays_use_grid(&setup->config) ? PASS_OCCUPANCY : PASS_UNIFORM;
    holds |= rays_are_hierarchical(&setup->config) ? PASS_HIERARCHICAL : 0u;
    holds |= rays_have_proposal(&setup->config) ? PASS_PROPOSAL : 0u;
    holds |= rays_have_coarse(&setup->config) ? PASS_TWO_FIELDS : PASS_ONE_FIELD;
    holds |= volume_finds_visible(&setup->config) ? PASS_VISIBILITY : PASS_NO_VISIBILITY;
    holds |= setup->constants.kept_rows > 0 ? PASS_KEEPS_ACTIVATIONS : PASS_RECOMPUTES;
    holds |= setup->constants.ranks > 1 ? PASS_SYNCHRONOUS : PASS_SINGLE_RANK;
    holds |= setup->config.batch.by_error > 0.0F ? PASS_BY_ERROR : 0u;
    holds |= setup->config.loss.robust == VKN_SWITCH_ON ? PASS_ROBUST : 0u;
    holds |= rays_error_cells(&setup->config, 1) > 0 ? PASS_MAPS_ERRORS : 0u;
    holds |= volume_appearance_kind(&setup->config) ? PASS_APPEARANCE : 0u;
    holds |= volume_sky_cells(&setup->config) ? PASS_SKY : 0u;
    holds |= setup_joins_steps(setup) ? PASS_JOINED : 0u;
    holds |= PASS_TRAINS_PROPOSAL | (setup->averaged ? PASS_AVERAGED : 0u);
    holds |= field_pass_use(&setup->model);
    const struct field_backend *backend = &setup->backend;
    holds |= backend->f16_sums && backend->sums != VKN_SUMS_F16 ? PASS_PACKS_F16 : 0u;
    return (use & ~holds) == 0;
}

size_t step_list_passes(const struct setup *setup, struct step_pass passes[STEP_MAX_PASSES])
{
    static const struct field_kind none;
    const struct field_kind *kind = setup->model.kind;
    bool sums_cells = kind->sums_cells && setup->model.deformation_layers == 0;
    const struct field_kind *proposal =
        setup->proposal_model.kind ? setup->proposal_model.kind : &none;
    const struct {
        enum step_phase phase;
        const struct pass_list *pass_list;
        unsigned use; /* conditions of all passes of the list */
        uint32_t set; /* the set of samples, SET_* */
    } lists[] = {
        {STEP_INTERVAL_BEGIN, &begin, PASS_ALWAYS, SET_STEP},
        {STEP_INTERVAL_BEGIN, &kind->occupancy, PASS_OCCUPANCY, SET_STEP},
        /* Synchronous ranks combine their shares of the occupancy cells here. */
        {STEP_INTERVAL_GRID, &rays_sums, PASS_OCCUPANCY | (sums_cells ? PASS_SYNCHRONOUS : 0u),
         SET_STEP},
        {STEP_INTERVAL_GRID, &rays_occupancy, PASS_OCCUPANCY, SET_STEP},
        {STEP_INTERVAL_GRID, &rays_errors, PASS_MAPS_ERRORS, SET_STEP},
        {STEP_INTERVAL_GRID, &rays_views, PASS_REFINED, SET_STEP},
        {STEP_INTERVAL_GRID, &volume_appearance, PASS_APPEARANCE, SET_STEP},
        {STEP_INTERVAL_GRID, &volume_sky, PASS_SKY, SET_STEP},
        {STEP_EVERY, &begin, PASS_ALWAYS, SET_STEP},
        {STEP_EVERY, &optim_update_before, PASS_JOINED, SET_STEP},
        {STEP_EVERY, &rays_generating, PASS_ALWAYS, SET_STEP},
        {STEP_EVERY, &rays_sampling, PASS_ONE_FIELD, SET_STEP},
        {STEP_EVERY, &rays_sampling, PASS_TWO_FIELDS, SET_COARSE},
        {STEP_EVERY, &proposal->forward, PASS_PROPOSAL, SET_COARSE},
        /* The coarse field's forward and backward passes precede the main field's, so that both can
         * use the same intermediate buffers. */
        {STEP_EVERY, &kind->forward, PASS_HIERARCHICAL | PASS_NO_VISIBILITY, SET_COARSE},
        {STEP_EVERY, &kind->densities, PASS_HIERARCHICAL | PASS_VISIBILITY, SET_COARSE},
        {STEP_EVERY, &volume_visibility, PASS_HIERARCHICAL | PASS_VISIBILITY, SET_COARSE},
        {STEP_EVERY, &kind->colors, PASS_HIERARCHICAL | PASS_VISIBILITY, SET_COARSE},
        {STEP_EVERY, &volume_coarse, PASS_HIERARCHICAL, SET_COARSE},
        {STEP_EVERY, &kind->backward, PASS_HIERARCHICAL, SET_COARSE},
        {STEP_EVERY, &optim_pack, PASS_HIERARCHICAL, SET_COARSE},
        {STEP_EVERY, &optim_check_coarse, PASS_HIERARCHICAL | PASS_SINGLE_RANK, SET_COARSE},
        {STEP_EVERY, &optim_export_coarse, PASS_HIERARCHICAL | PASS_SYNCHRONOUS, SET_COARSE},
        {STEP_EVERY, &rays_fine, PASS_TWO_FIELDS, SET_FINE},
        {STEP_EVERY, &kind->forward, PASS_NO_VISIBILITY, SET_STEP},
        {STEP_EVERY, &kind->densities, PASS_VISIBILITY, SET_STEP},
        {STEP_EVERY, &volume_visibility, PASS_VISIBILITY, SET_STEP},
        {STEP_EVERY, &kind->colors, PASS_VISIBILITY, SET_STEP},
        /* The proposal learns from the main field's densities. Its passes precede composite,
         * because both write partial sums to BIND_REDUCE. */
        {STEP_EVERY, &volume_interlevel, PASS_PROPOSAL | PASS_TRAINS_PROPOSAL, SET_COARSE},
        {STEP_EVERY, &proposal->backward, PASS_PROPOSAL | PASS_TRAINS_PROPOSAL, SET_COARSE},
        {STEP_EVERY, &optim_pack, PASS_PROPOSAL | PASS_TRAINS_PROPOSAL, SET_COARSE},
        {STEP_EVERY, &optim_check_coarse, PASS_PROPOSAL | PASS_SINGLE_RANK | PASS_TRAINS_PROPOSAL,
         SET_COARSE},
        {STEP_EVERY, &optim_export_coarse, PASS_PROPOSAL | PASS_SYNCHRONOUS, SET_COARSE},
        {STEP_EVERY, &volume_compositing, PASS_ALWAYS, SET_STEP},
        {STEP_EVERY, &volume_appearance_gradients, PASS_APPEARANCE, SET_STEP},
        {STEP_EVERY, &volume_sum_sky, PASS_SKY, SET_STEP},
        {STEP_EVERY, &kind->backward, PASS_ALWAYS, SET_STEP},
        {STEP_EVERY, &optim_pack, PASS_ALWAYS, SET_STEP},
        {STEP_EVERY, &kind->input_gradients, PASS_REFINED, SET_STEP},
        {STEP_EVERY, &rays_view_gradients, PASS_REFINED, SET_STEP},
        {STEP_EVERY, &optim_export, PASS_SYNCHRONOUS, SET_STEP},
        /* Synchronous ranks all-reduce gradients and step statistics here (ranks.c). */
        {STEP_EVERY, &optim_import_coarse, PASS_TWO_FIELDS | PASS_SYNCHRONOUS, SET_COARSE},
        {STEP_EVERY, &optim_check_coarse, PASS_TWO_FIELDS | PASS_SYNCHRONOUS | PASS_TRAINS_PROPOSAL,
         SET_COARSE},
        {STEP_EVERY, &optim_import, PASS_SYNCHRONOUS, SET_STEP},
        {STEP_EVERY, &finish, PASS_JOINED, SET_STEP},
        {STEP_EVERY, &optim_update, PASS_ALWAYS, SET_STEP},
        {STEP_EVERY, &optim_update_coarse, PASS_TWO_FIELDS | PASS_TRAINS_PROPOSAL,
         SET_COARSE_FIELD},
        {STEP_INTERVAL_END, &optim_average, PASS_ALWAYS, SET_STEP},
        {STEP_INTERVAL_END, &optim_average, PASS_TWO_FIELDS, SET_COARSE_FIELD},
        {STEP_AVERAGE, &optim_averaging, PASS_ALWAYS, SET_STEP},
        {STEP_AVERAGE, &optim_averaging, PASS_TWO_FIELDS, SET_COARSE_FIELD},
    };
    size_t count = 0;
    bool has_coarse = false; /* a pass on SET_COARSE is listed */
    for (size_t list = 0; list < BASE_COUNT(lists); list++) {
        bool first = list == 0 || lists[list].phase != lists[list - 1].phase;
        bool of_coarse = lists[list].set == SET_COARSE || lists[list].set == SET_COARSE_FIELD;
        bool of_proposal = of_coarse && rays_have_proposal(&setup->config);
        for (size_t i = 0; i < lists[list].pass_list->count; i++) {
            const struct pass *pass = &lists[list].pass_list->passes[i];
            bool moves_cameras = pass->use & PASS_REFINED; /* only the main field's loss does */
            if (!meets_conditions(setup, lists[list].use | pass->use) ||
                (of_coarse && moves_cameras))
                continue;
            if (count < STEP_MAX_PASSES)
                passes[count] = (struct step_pass){
                    .pass = pass,
                    .phase = lists[list].phase,
                    .set = lists[list].set,
                    .begins_set = lists[list].set == SET_COARSE && !has_coarse,
                    .proposal = of_proposal,
                    .learns = of_proposal && (lists[list].use & PASS_TRAINS_PROPOSAL),
                    .first = first,
                };
            has_coarse = has_coarse || lists[list].set == SET_COARSE;
            count++;
            first = false;
        }
    }
    return count;
}

void setup_record_forward(const struct setup *setup, struct gpu_recording *recording,
                          struct gpu_pipeline *const pipelines[], const struct gpu_pipeline *last,
                          const struct gpu_bindings *bindings, uint32_t groups)
{
    const struct pass *forward[FIELD_MAX_PASSES];
    size_t count = field_list_passes(&setup->model, &setup->model.kind->forward, forward);
    struct repeats repeats = setup_repeats(setup);
    if (last) /* computes densities only */
        repeats.layers = repeats.density_layers;
    struct pass_dispatch dispatches[STEP_MAX_PASSES];
    for (size_t i = 0; i < count; i++)
        dispatches[i] = (struct pass_dispatch){
            forward[i], last && i + 1 == count ? last : pipelines[i], groups};
    passes_record(&repeats, recording, dispatches, count, bindings);
}
