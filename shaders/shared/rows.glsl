// Rows of a workgroup's tile: the TILE_ROWS samples, cells or points that go through the MLPs
// together. On GPUs a workgroup has INVOCATIONS_PER_ROW invocations per row, so that enough of them
// share the products and the weight gradients; work that is done row by row is shared among them.
// Passes: those of field/mlp.glsl.
#ifndef SHARED_ROWS_GLSL
#define SHARED_ROWS_GLSL

layout(constant_id = SPEC_TILE_ROWS) const uint TILE_ROWS = 64;
const uint INVOCATIONS_PER_ROW = LOCAL_SIZE / TILE_ROWS;

uint invocation()
{
    return gl_SubgroupID * SUBGROUP_SIZE + gl_SubgroupInvocationID;
}

// Return this invocation's row, and which of the row's invocations it is.
uint tile_row()
{
    return INVOCATIONS_PER_ROW == 1u ? invocation() : invocation() % TILE_ROWS;
}

uint invocation_in_row()
{
    return INVOCATIONS_PER_ROW == 1u ? 0u : invocation() / TILE_ROWS;
}

#endif
