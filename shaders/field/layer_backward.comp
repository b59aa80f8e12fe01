#version 460
#extension GL_GOOGLE_include_directive : require
// A layer backward: gradients of its outputs times transposed weights are those of what it reads, and zero
// behind a ReLU that was off. What two layers read has the sum of both.
#define BACKWARD
#include "field/precision.glsl"
#include "shared/common.glsl"
#include "field/layers.glsl"
#define SOURCE BIND_SCRATCH
#define PANEL  BIND_HALVES
#include "field/layer_product.glsl"

LayerFlow flow = config.flows[push.c];
uint outputs = config.layers[push.c].outputs;

uint source_chunk(uint block, uint depth)
{
    return (block * config.columns + flow.to) / CHUNK_DEPTH + depth;
}

uint panel_chunk(uint panel, uint depth)
{
    return flow.transposed + panel * (outputs / CHUNK_DEPTH) + depth;
}

bool is_masked(uint column)
{
    return flow.masked != 0u && column < flow.own;
}

uint column_read(uint column)
{
    return column < flow.own ? flow.from + column : flow.behind + column - flow.own;
}

void finish(uint row, uint column, float sum)
{
    bool masked = is_masked(column);
    column = column_read(column);
    if (masked && get_activation(row, column) <= 0.0)
        sum = 0.0;
    if (flow.adds != 0u)
        sum += get_gradient(row, column);
    put_gradient(row, column, round_gradient(sum));
}

#if defined(COOPMAT) && !defined(STAGED)
// Elements of two matrices correspond only where their types are the same: 16-bit activations are widened
// to be compared; what rounding leaves of a sum is known before. (Drivers may leave a matrix as it was that
// is rounded and widened again.)
void finish_matrix(inout MATRIX_SUM(ACCUMULATE) sum, uint row, uint column)
{
    bool masked = is_masked(column);
    column = column_read(column);
    uint block_at = in_block(row, column);
    if (masked) {
        MATRIX_SUM(float16_t) activation;
        coopMatLoad(activation, activations, first_activation() + block_at, BLOCK_ROWS,
                    gl_CooperativeMatrixLayoutColumnMajor);
        MATRIX_SUM(ACCUMULATE) widened = MATRIX_SUM(ACCUMULATE)(activation);
        for (int i = 0; i < sum.length(); i++)
            sum[i] = widened[i] > ACCUMULATE(0.0) ? sum[i] : ACCUMULATE(0.0);
    }
    if (flow.adds != 0u) {
        MATRIX_SUM(float16_t) before;
        coopMatLoad(before, gradients, block_at, BLOCK_ROWS, gl_CooperativeMatrixLayoutColumnMajor);
        sum += MATRIX_SUM(ACCUMULATE)(before);
    }
    MATRIX_SUM(float16_t) rounded = MATRIX_SUM(float16_t)(sum);
    for (int i = 0; i < sum.length(); i++)
        rounded_gradients += uvec2(abs(sum[i]) > ACCUMULATE(HALF_OF_LEAST), sum[i] != ACCUMULATE(0.0));
    coopMatStore(rounded, gradients, block_at, BLOCK_ROWS, gl_CooperativeMatrixLayoutColumnMajor);
    coopMatStore(rounded, gradients, in_panel(row, column), BLOCK_ROWS, gl_CooperativeMatrixLayoutRowMajor);
}
#endif

void main()
{
    begin_products();
    multiply_all(padded_rows() / BLOCK_ROWS, flow.back / BLOCK_ROWS, outputs / CHUNK_DEPTH,
                 gl_WorkGroupID.x, gl_NumWorkGroups.x);
    count_flushed();
}
