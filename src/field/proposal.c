/* Defines the proposal (Mip-NeRF 360, section 3; NerfAcc has the same kind): hash grid -> density
 * MLP, both small, because a proposal only decides where samples are placed. Parameters: [density
 * layers][grid levels]. */
#include "field/internal.h"
#include "field/ngp.h"

struct vkn_config field_proposal_config(const struct vkn_config *config)
{
    struct vkn_config small = *config;
    small.model = FIELD_MODEL_PROPOSAL;
    small.grid.levels = config->proposal.levels;
    small.grid.features = 2;
    small.grid.log2_entries = config->proposal.log2_entries;
    small.grid.coarsest = 16;
    small.grid.finest = config->proposal.finest;
    small.mlp.density_width = config->proposal.width;
    small.mlp.density_layers = 1;
    small.mlp.geometry = COLOR_OUTPUTS; /* as shaders/field/mlp.glsl assumes without a colour MLP */
    small.mlp.color_layers = 0;
    small.mlp.density_activation = VKN_DENSITY_EXP;
    small.mlp.sh_degree = 1;
    small.scene.refine = VKN_REFINEMENT_OFF; /* a proposal's loss moves no cameras */
    return small;
}

static vkn_status create(const struct vkn_config *config, struct field_model *model)
{
    BASE_TRY(ngp_create_density(config, model));
    ngp_end_mlps(model);
    return VKN_OK;
}

static void configure(const struct vkn_config *config, const struct field_model *model,
                      struct Config *constants, struct gpu_constants *specialization)
{
    ngp_configure(config, model, constants, specialization);
    specialization->values[SPEC_DENSITY_ONLY] = 1;
}

/* ---- passes ---------------------------------------------------------------------------------- */

static const struct pass forward[] = {
    {"encode_samples", .label = "encode_proposal", .variant = FIELD_F16_PARAMS,
     .dispatch = DISPATCH_FORWARD, .cost = ngp_cost_encode},
    {"field_forward", .label = "proposal_forward", .variant = FIELD_FORWARD,
     .dispatch = DISPATCH_FORWARD, .rows = ROWS_DENSITIES, .cost = ngp_cost_densities},
};

static const struct pass backward[] = {
    {"field_backward", .label = "proposal_backward", .variant = FIELD_BACKWARD,
     .dispatch = DISPATCH_BACKWARD, .cost = ngp_cost_backward},
    {"scatter_gradients", .label = "scatter_proposal", .variant = FIELD_SCATTER,
     .dispatch = DISPATCH_FORWARD, .by_bucket = true, .cost = ngp_cost_scatter},
    {"reduce_gradients", .label = "reduce_proposal", .variant = FIELD_REDUCE,
     .dispatch = DISPATCH_SUMMED, .gpu_dispatch = DISPATCH_FORWARD, .by_bucket = true,
     .cost = ngp_cost_reduce},
};

/* Keys of the run's configuration, not of field_proposal_config's. */
static const char *const shape[] = {"proposal.levels", "proposal.log2_entries", "proposal.finest",
                                    "proposal.width", NULL};

const struct field_kind field_proposal = {
    .name = FIELD_MODEL_PROPOSAL,
    .precisions = true,
    .shape = shape,
    .create = create,
    .configure = configure,
    .forward = PASS_LIST(forward),
    .backward = PASS_LIST(backward),
};
