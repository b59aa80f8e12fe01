#version 460
#extension GL_GOOGLE_include_directive : require
// Pass layer_weights (layer-by-layer models): adds inputs^T * output gradients of a chunk of rows to
// a layer's weight gradients, in FP32. field/product.glsl computes the product from panels, with
// inputs as rows. Small layers split the chunk's rows (split-K) into separate sums in PARTIALS, to
// keep the device busy. push.c: layer; push.d: chunk of rows.
//
//   buffer    shape                                               access
//   FEATURES  [row] columns: inputs, in panels                    read
//   SCRATCH   [row] columns: gradients of the outputs, in panels  read
//   PARTIALS  [split][summed parameter] f32                       read, write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/layers.glsl"

layout(std430, BINDING(PARTIALS)) buffer PartialBuffer { float partials[]; };

#define SOURCE BIND_FEATURES
#define PANEL  BIND_SCRATCH
#define ROUND_PRODUCTS ROUND_WEIGHT_SUMS
#include "field/layer_product.glsl"

LayerColumns io = config.layer_columns[push.c];
LayerWeights layer = config.layers[push.c];
uint split, first_depth; // this workgroup's split, and the split's first chunk in a block or panel

uint source_chunk(uint block, uint depth)
{
    uint column = block * BLOCK_ROWS;
    column = column < io.input_count ? io.input_column + column : io.second_column + column - io.input_count;
    return (first_activation() + in_panel((first_depth + depth) * CHUNK_DEPTH, column)) / CHUNK;
}

uint panel_chunk(uint panel, uint depth)
{
    return in_panel((first_depth + depth) * CHUNK_DEPTH, io.output_column + panel * BLOCK_ROWS) / CHUNK;
}

uint sum_at(uint row, uint column)
{
    return split * config.summed_params + layer.first + row * layer.outputs + column;
}

void finish(uint row, uint column, float sum)
{
    uint at = sum_at(row, column);
    partials[at] = round_sum(push.d > 0u ? partials[at] + sum : sum);
}

#ifdef COOPMAT
void finish_matrix(inout MATRIX_SUM(ACCUM_T) sum, uint row, uint column)
{
    uint at = sum_at(row, column);
    if (push.d > 0u) {
        MATRIX_SUM(ACCUM_T) previous;
        coopMatLoad(previous, partials, at, layer.outputs, gl_CooperativeMatrixLayoutRowMajor);
        sum += previous;
        round_sums(sum);
    }
    coopMatStore(sum, partials, at, layer.outputs, gl_CooperativeMatrixLayoutRowMajor);
}
#endif

// Adds the biases' gradients, which are the sums of output gradients over rows. One subgroup processes
// an output.
void add_biases(uint depth, uint group, uint groups)
{
    const uint subgroups = LOCAL_SIZE / SUBGROUP_SIZE;
    for (uint column = group * subgroups + gl_SubgroupID; column < layer.outputs;
         column += groups * subgroups) {
        float sum = 0.0;
        for (uint row = gl_SubgroupInvocationID; row < depth * CHUNK_DEPTH; row += SUBGROUP_SIZE)
            sum += float(gradients[in_block(first_depth * CHUNK_DEPTH + row, io.output_column + column)]);
        sum = subgroupAdd(sum);
        if (subgroupElect())
            finish(layer.inputs, column, sum);
    }
}

void main()
{
    uint splits = config.layer_splits > 0u ? config.layer_splits : config.backward_groups;
    uint groups = max(gl_NumWorkGroups.x / splits, 1u);
    uint group = gl_WorkGroupID.x % groups, chunks = padded_rows() / CHUNK_DEPTH;
    split = gl_WorkGroupID.x / groups;
    if (split >= splits)
        return;
    first_depth = chunks * split / splits;
    uint depth = chunks * (split + 1u) / splits - first_depth;
    begin_products();
    multiply_all(layer.inputs / BLOCK_ROWS, layer.outputs / BLOCK_ROWS, depth, group, groups);
    add_biases(depth, group, groups);
}
