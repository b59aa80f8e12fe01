/* Selects the passes of a model's pass lists that a trial runs. */
#include "tuner/internal.h"

static const struct pass_list *pass_list_of(const struct field_model *model,
                                            enum field_trial_pass pass)
{
    return pass == FIELD_PASS_FORWARD ? &model->kind->forward : &model->kind->backward;
}

const struct pass *workload_pass(const struct field_model *model, enum field_trial_pass pass)
{
    static const enum field_variant variants[2][FIELD_PASSES] = {
        {[FIELD_PASS_FORWARD] = FIELD_FORWARD,
         [FIELD_PASS_BACKWARD] = FIELD_BACKWARD,
         [FIELD_PASS_GRID] = FIELD_SCATTER},
        {[FIELD_PASS_FORWARD] = FIELD_LAYER_PRODUCT,
         [FIELD_PASS_BACKWARD] = FIELD_LAYER_PRODUCT_F32},
    };
    if (model->fused == 0 && pass == FIELD_PASS_GRID)
        return NULL;
    return field_find_pass(model, pass_list_of(model, pass), variants[model->fused == 0][pass]);
}

/* Lists the passes of a model with unfused layers: its pass list without the passes that sum weight
 * gradients over workgroups, scatter gradients to the grid, or keep activations. */
static size_t list_layers(const struct field_model *model, enum field_trial_pass pass,
                          const struct pass *passes[WORKLOAD_PASSES], size_t *timed)
{
    const struct pass *listed[FIELD_MAX_PASSES];
    size_t count = 0, most = field_list_passes(model, &model->kind->forward, listed);
    *timed = 0;
    if (pass == FIELD_PASS_GRID)
        return 0;
    if (pass == FIELD_PASS_BACKWARD) { /* packed weights, and encoded features of a grid */
        passes[count++] = listed[0];
        if (model->levels > 0)
            passes[count++] = field_find_pass(model, &model->kind->forward, FIELD_F16_PARAMS);
        *timed = count;
        most = field_list_passes(model, &model->kind->backward, listed);
    }
    for (size_t i = 0; i < most && count < WORKLOAD_PASSES; i++) {
        enum field_variant variant = listed[i]->variant;
        if (variant != FIELD_REDUCE && variant != FIELD_SCATTER &&
            !(listed[i]->use & PASS_KEEPS_ACTIVATIONS))
            passes[count++] = listed[i];
    }
    return count;
}

size_t workload_list(const struct field_model *model, enum field_trial_pass pass,
                     const struct pass *passes[WORKLOAD_PASSES], size_t *timed)
{
    if (model->fused == 0)
        return list_layers(model, pass, passes, timed);
    passes[0] = field_find_pass(model, &model->kind->forward, FIELD_F16_PARAMS);
    passes[1] = workload_pass(model, pass);
    *timed = pass == FIELD_PASS_GRID ? 0 : 1;
    return 2;
}

uint64_t workload_hash(const struct gpu_device *device, const struct field_model *model,
                       const struct field_backend *backend, enum field_trial_pass pass,
                       char name[FIELD_SHADER_NAME])
{
    const struct pass *passes[WORKLOAD_PASSES], *named = workload_pass(model, pass);
    uint64_t hash = 0;
    if (!named)
        return 0;
    size_t timed, count = workload_list(model, pass, passes, &timed);
    for (size_t i = timed; i < count; i++) {
        field_backend_shader_name(backend, passes[i]->name, passes[i]->variant, name);
        uint64_t shader_hash = gpu_shader_hash(device, name);
        if (shader_hash == 0)
            return 0;
        hash = hash * 0x9e3779b97f4a7c15u + shader_hash;
    }
    field_backend_shader_name(backend, named->name, named->variant, name);
    return hash;
}
