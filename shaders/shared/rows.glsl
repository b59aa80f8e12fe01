// Assigns invocations to the rows of a workgroup's tile, the TILE_ROWS samples, cells or points that
// go through the MLPs at once. On GPUs INVOCATIONS_PER_ROW invocations share a row, so that
// enough invocations share the products and the weight gradients.
// Used by the passes that field/mlp.glsl lists.
#ifndef SHARED_ROWS_GLSL
#define SHARED_ROWS_GLSL

layout(constant_id = SPEC_TILE_ROWS) const uint TILE_ROWS = 64;
const uint INVOCATIONS_PER_ROW = LOCAL_SIZE / TILE_ROWS;

uint invocation()
{
    return gl_SubgroupID * SUBGROUP_SIZE + gl_SubgroupInvocationID;
}

// Return this invocation's row, and its index among the row's invocations.
uint tile_row()
{
    return INVOCATIONS_PER_ROW == 1u ? invocation() : invocation() % TILE_ROWS;
}

uint invocation_in_row()
{
    return INVOCATIONS_PER_ROW == 1u ? 0u : invocation() / TILE_ROWS;
}

#endif
