/* What a workload runs of a model's recipes. */
#include "tuner/internal.h"

const struct pass *workload_pass(const struct field_model *model, enum field_pass pass)
{
    static const enum field_variant variants[2][FIELD_PASSES] = {
        {[FIELD_PASS_FORWARD] = FIELD_FORWARD,
         [FIELD_PASS_BACKWARD] = FIELD_BACKWARD,
         [FIELD_PASS_GRID] = FIELD_SCATTER},
        {[FIELD_PASS_FORWARD] = FIELD_PRODUCT, [FIELD_PASS_BACKWARD] = FIELD_PRODUCT_SUMS},
    };
    if (model->fused == 0 && pass == FIELD_PASS_GRID)
        return NULL;
    return recipe_pass(pass == FIELD_PASS_FORWARD ? &model->kind->forward : &model->kind->backward,
                       variants[model->fused == 0][pass]);
}

/* The passes of layers: all of a recipe but the last sums, which are optimisation's and the grid's.
 */
static size_t list_layers(const struct field_kind *kind, enum field_pass pass,
                          const struct pass *passes[WORKLOAD_PASSES], size_t *timed)
{
    const struct recipe *recipe = pass == FIELD_PASS_FORWARD ? &kind->forward : &kind->backward;
    size_t count = 0;
    *timed = 0;
    if (pass == FIELD_PASS_GRID)
        return 0;
    if (pass == FIELD_PASS_BACKWARD) { /* packed weights, and features of a grid */
        const struct pass *features = recipe_pass(&kind->forward, FIELD_COPIES);
        passes[count++] = &kind->forward.passes[0];
        if (features)
            passes[count++] = features;
        *timed = count;
    }
    for (size_t i = 0; i < recipe->count && count < WORKLOAD_PASSES; i++) {
        enum field_variant variant = recipe->passes[i].variant;
        if (variant != FIELD_REDUCE && variant != FIELD_SCATTER &&
            !(recipe->passes[i].use & PASS_KEEPS))
            passes[count++] = &recipe->passes[i];
    }
    return count;
}

size_t workload_list(const struct field_model *model, enum field_pass pass,
                     const struct pass *passes[WORKLOAD_PASSES], size_t *timed)
{
    if (model->fused == 0)
        return list_layers(model->kind, pass, passes, timed);
    passes[0] = recipe_pass(&model->kind->forward, FIELD_COPIES);
    passes[1] = workload_pass(model, pass);
    *timed = pass == FIELD_PASS_GRID ? 0 : 1;
    return 2;
}

uint64_t workload_hash(const struct gpu_device *device, const struct field_model *model,
                       const struct field_backend *backend, enum field_pass pass,
                       char name[FIELD_PROGRAM_NAME])
{
    const struct pass *passes[WORKLOAD_PASSES], *named = workload_pass(model, pass);
    uint64_t hash = 0;
    if (!named)
        return 0;
    size_t timed, count = workload_list(model, pass, passes, &timed);
    for (size_t i = timed; i < count; i++) {
        field_backend_program(backend, passes[i]->name, passes[i]->variant, name);
        uint64_t own = gpu_program_hash(device, name);
        if (own == 0)
            return 0;
        hash = hash * 0x9e3779b97f4a7c15u + own;
    }
    field_backend_program(backend, named->name, named->variant, name);
    return hash;
}
