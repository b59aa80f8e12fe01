// What a workgroup takes through the MLPs at a time: TILE_ROWS samples, cells or points. On GPUs it has
// more invocations than that, so that enough of them share the products and the weights' gradients:
// what is done row by row is then shared out among the PARTS invocations that a row has.
#ifndef SHARED_ROWS_GLSL
#define SHARED_ROWS_GLSL

layout(constant_id = SPEC_TILE_ROWS) const uint TILE_ROWS = 64;
const uint INVOCATIONS_PER_ROW = LOCAL_SIZE / TILE_ROWS;

uint invocation()
{
    return gl_SubgroupID * SUBGROUP_SIZE + gl_SubgroupInvocationID;
}

// This invocation's row, and which of the row's invocations it is.
uint tile_row()
{
    return INVOCATIONS_PER_ROW == 1u ? invocation() : invocation() % TILE_ROWS;
}

uint invocation_in_row()
{
    return INVOCATIONS_PER_ROW == 1u ? 0u : invocation() / TILE_ROWS;
}

#endif
