#version 460
#extension GL_GOOGLE_include_directive : require
// Pass layer_forward (layer-by-layer models): computes a layer's outputs, activation(inputs *
// weights + biases), for a chunk of rows. push.c: layer; push.d: chunk.
//
//   buffer      shape                                             access
//   FEATURES    [row] columns: inputs                             read
//   F16_PARAMS  panels of weights and biases, chunks              read
//   FEATURES    [row] columns: outputs; live rows also in panels  write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/layers.glsl"
#define SOURCE BIND_FEATURES
#define PANEL  BIND_F16_PARAMS
#include "field/layer_product.glsl"
#include "field/hidden_activation.glsl"

LayerColumns io = config.layer_columns[push.c];
uint inputs = config.layers[push.c].inputs;

uint source_chunk(uint block, uint depth)
{
    uint column = depth * CHUNK_DEPTH;
    column = column < io.input_count ? io.input_column + column : io.second_column + column - io.input_count;
    return first_activation() / CHUNK + ((first_block() + block) * config.columns + column) / CHUNK_DEPTH;
}

uint panel_chunk(uint panel, uint depth)
{
    return io.panels + panel * (inputs / CHUNK_DEPTH + 1u) + depth;
}

// Returns the index of a column's bias in the chunk of biases after the column's panel. All rows of
// that chunk are equal.
uint biases_at(uint column)
{
    return panel_chunk(column / BLOCK_ROWS, inputs / CHUNK_DEPTH) * CHUNK + column % BLOCK_ROWS;
}

void finish(uint row, uint column, float sum)
{
    sum += float(weights[biases_at(column)]);
    put_activation(row, io.output_column + column, io.activated != 0u ? activate(sum) : sum);
}

#if defined(COOPMAT) && !defined(STAGED)
void finish_matrix(inout MATRIX_SUM(ACCUM_T) sum, uint row, uint column)
{
    MATRIX_SUM(float16_t) biases;
    coopMatLoad(biases, weights, biases_at(column), BLOCK_ROWS, gl_CooperativeMatrixLayoutRowMajor);
    sum += MATRIX_SUM(ACCUM_T)(biases);
    if (io.activated != 0u)
        for (int i = 0; i < sum.length(); i++)
            sum[i] = RECTIFIES ? max(sum[i], ACCUM_T(0.0)) : ACCUM_T(activate(float(sum[i])));
    MATRIX_SUM(float16_t) rounded = MATRIX_SUM(float16_t)(sum);
    coopMatStore(rounded, activations, first_activation() + in_block(row, io.output_column + column), BLOCK_ROWS,
                 gl_CooperativeMatrixLayoutColumnMajor);
    if (LIVE_ROWS)
        coopMatStore(rounded, activations, first_activation() + in_panel(row, io.output_column + column), BLOCK_ROWS,
                     gl_CooperativeMatrixLayoutRowMajor);
}
#endif

void main()
{
    begin_products();
    multiply_all(padded_rows() / BLOCK_ROWS, config.layers[push.c].outputs / BLOCK_ROWS,
                 inputs / CHUNK_DEPTH, gl_WorkGroupID.x, gl_NumWorkGroups.x);
}
