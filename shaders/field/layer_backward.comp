#version 460
#extension GL_GOOGLE_include_directive : require
// Pass layer_backward (layer-by-layer models): computes the gradients with respect to a layer's
// inputs: output gradients times transposed weights, times the derivative of the activation function
// that produced the inputs. If a second layer reads the same inputs (LayerColumns.also_read_by), one
// product covers both layers' outputs. push.c: layer; push.d: chunk.
//
//   buffer      shape                                                            access
//   SCRATCH     [row] columns: gradients of the outputs                          read
//   F16_PARAMS  panels of transposed weights, chunks                             read
//   FEATURES    [row] columns: the inputs' values                                read
//   SCRATCH     [row] columns: gradients of the inputs, in blocks and in panels  write
//   STATE       underflow counts                                                 write
#define BACKWARD
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/layers.glsl"
#define SOURCE BIND_SCRATCH
#define PANEL  BIND_F16_PARAMS
#include "field/layer_product.glsl"
#include "field/hidden_activation.glsl"

LayerColumns io = config.layer_columns[push.c];
uint outputs = config.layers[push.c].outputs;
uint second_outputs = io.also_read_by > 0u ? config.layers[io.also_read_by].outputs : 0u;

uint source_chunk(uint block, uint depth)
{
    uint column = depth * CHUNK_DEPTH;
    column += column < outputs ? io.output_column : config.layer_columns[io.also_read_by].output_column - outputs;
    return (block * config.columns + column) / CHUNK_DEPTH;
}

uint panel_chunk(uint panel, uint depth)
{
    return io.transposed + panel * ((outputs + second_outputs) / CHUNK_DEPTH) + depth;
}

// Returns the column of the activations that is the layer's input number `column`.
uint input_column(uint column)
{
    return column < io.input_count ? io.input_column + column : io.second_column + column - io.input_count;
}

void finish(uint row, uint column, float sum)
{
    column = input_column(column);
    if (RECTIFIES && io.input_activated != 0u && get_activation(row, column) <= 0.0)
        sum = 0.0;
    if (!RECTIFIES && io.input_activated != 0u)
        sum *= activation_slope(get_activation(row, column));
    put_gradient(row, column, round_gradient(sum));
}

#if defined(COOPMAT) && !defined(STAGED)
// Elements of two matrices correspond only if their types are equal: f16 activations are widened
// before they are compared, and underflow is detected before rounding, because drivers may elide a
// rounding that is followed by widening.
void finish_matrix(inout MATRIX_SUM(ACCUM_T) sum, uint row, uint column)
{
    column = input_column(column);
    uint block_at = in_block(row, column);
    if (io.input_activated != 0u) {
        MATRIX_SUM(float16_t) activation;
        coopMatLoad(activation, activations, first_activation() + block_at, BLOCK_ROWS,
                    gl_CooperativeMatrixLayoutColumnMajor);
        MATRIX_SUM(ACCUM_T) widened = MATRIX_SUM(ACCUM_T)(activation);
        for (int i = 0; i < sum.length(); i++)
            sum[i] = !RECTIFIES                   ? sum[i] * ACCUM_T(activation_slope(float(widened[i])))
                     : widened[i] > ACCUM_T(0.0) ? sum[i]
                                                 : ACCUM_T(0.0);
    }
    MATRIX_SUM(float16_t) rounded = MATRIX_SUM(float16_t)(sum);
    for (int i = 0; i < sum.length(); i++)
        count_gradient(abs(sum[i]) > ACCUM_T(F16_UNDERFLOW_LIMIT), sum[i] != ACCUM_T(0.0), 1u);
    coopMatStore(rounded, gradients, block_at, BLOCK_ROWS, gl_CooperativeMatrixLayoutColumnMajor);
    coopMatStore(rounded, gradients, in_panel(row, column), BLOCK_ROWS, gl_CooperativeMatrixLayoutRowMajor);
}
#endif

void main()
{
    begin_products();
    multiply_all(padded_rows() / BLOCK_ROWS, io.gradient_count / BLOCK_ROWS, (outputs + second_outputs) / CHUNK_DEPTH,
                 gl_WorkGroupID.x, gl_NumWorkGroups.x);
    count_underflowed();
}
