#version 460
#extension GL_GOOGLE_include_directive : require
// Pass pack_weights (layer-by-layer models): copies a layer's weights and biases to panels, and the
// weights also to transposed panels. After each panel its biases are repeated CHUNK_DEPTH times, so
// that a matrix of biases can be loaded. A transposed panel continues with the weights of the second
// layer that reads the same inputs (LayerColumns.also_read_by). push.c: layer.
//
//   buffer      shape                                                                                  access
//   PARAMS      [input][output] f32, then [output]                                                     read
//   F16_PARAMS  panels [output / 16][input][output % 16]; transposed [input / 16][output][input % 16]  write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/layers.glsl"

layout(std430, BINDING(PARAMS)) readonly buffer ParamBuffer { float params[]; };

void main()
{
    LayerColumns io = config.layer_columns[push.c];
    LayerWeights layer = config.layers[push.c];
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    uint rows = layer.inputs + CHUNK_DEPTH, bias = layer.first + layer.inputs * layer.outputs;
    for (uint i = gl_GlobalInvocationID.x; i < rows * layer.outputs; i += stride) {
        uint panel = i / (rows * BLOCK_ROWS), k = i / BLOCK_ROWS % rows, n = panel * BLOCK_ROWS + i % BLOCK_ROWS;
        float w = params[k < layer.inputs ? layer.first + k * layer.outputs + n : bias + n];
        weights[io.panels * CHUNK + i] = STORAGE_T(w);
    }
    LayerWeights other = config.layers[io.also_read_by];
    uint outputs = layer.outputs + (io.also_read_by > 0u ? other.outputs : 0u);
    uint before = config.layer_columns[io.also_read_by].input_count; // the other layer's inputs before the shared ones
    for (uint i = gl_GlobalInvocationID.x; i < io.gradient_count * outputs; i += stride) {
        uint panel = i / (outputs * BLOCK_ROWS), n = i / BLOCK_ROWS % outputs;
        uint k = panel * BLOCK_ROWS + i % BLOCK_ROWS;
        float w = params[n < layer.outputs ? layer.first + k * layer.outputs + n
                                           : other.first + (before + k) * other.outputs + n - layer.outputs];
        weights[io.transposed * CHUNK + i] = STORAGE_T(w);
    }
}
