/* Defines the kind of field that the caller evaluates between passes. It uses no parameters, and
 * has passes for the occupancy update only. */
#include <string.h>

#include "field/layers.h"

/* Smallest number of parameters that the optimiser's passes support. */
#define LEAST_PARAMS 16u

static vkn_status create(const struct vkn_config *config, struct field_model *model)
{
    (void)config;
    model->param_count = LEAST_PARAMS;
    model->groups[model->group_count++] =
        (struct parameter_group){.count = LEAST_PARAMS, .entry = 2};
    return VKN_OK;
}

static void configure(const struct vkn_config *config, const struct field_model *model,
                      struct Config *constants, struct gpu_constants *specialization)
{
    (void)config, (void)model, (void)constants, (void)specialization;
}

static void initialize(const struct vkn_config *config, const struct field_model *model,
                       float *params)
{
    (void)config;
    memset(params, 0, model->param_count * sizeof *params);
}

/* clang-format off */
/* Between pick_cells and store_cells the caller evaluates the densities of the cells' samples. */
static const struct pass occupancy[] = {
    {"begin_cells", CELLS, .cost = layers_cost_begin},
    {"pick_cells", CELLS, .cost = layers_cost_pick},
    {"store_cells", CELLS, .cost = layers_cost_store},
};
/* clang-format on */

const struct field_kind field_external = {
    .name = FIELD_MODEL_EXTERNAL,
    .create = create,
    .configure = configure,
    .initialize = initialize,
    .occupancy = PASS_LIST(occupancy),
};

struct vkn_config field_external_config(const struct vkn_config *config)
{
    struct vkn_config external = *config;
    external.model = FIELD_MODEL_EXTERNAL;
    external.precision = VKN_PRECISION_FP32;
    memset(&external.matrix, 0, sizeof external.matrix);
    field_policy_reset(&external);
    external.gradient_sums = VKN_SUMS_DEFAULT;
    return external;
}
