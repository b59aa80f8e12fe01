#version 460
#extension GL_GOOGLE_include_directive : require
// A layer's weights into panels, as they are and transposed, biases behind each panel as often as it has
// columns, so that a matrix of sums can begin with them. Behind what is transposed of a panel comes that of the
// layer that reads the same again.
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/layers.glsl"

layout(std430, BINDING(PARAMS)) readonly buffer ParamBuffer { float params[]; };

void main()
{
    LayerColumns flow = config.flows[push.c];
    LayerWeights layer = config.layers[push.c];
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    uint rows = layer.inputs + CHUNK_DEPTH, bias = layer.first + layer.inputs * layer.outputs;
    for (uint i = gl_GlobalInvocationID.x; i < rows * layer.outputs; i += stride) {
        uint panel = i / (rows * BLOCK_ROWS), k = i / BLOCK_ROWS % rows, n = panel * BLOCK_ROWS + i % BLOCK_ROWS;
        float w = params[k < layer.inputs ? layer.first + k * layer.outputs + n : bias + n];
        weights[flow.panels * CHUNK + i] = STORAGE_T(w);
    }
    LayerWeights other = config.layers[flow.also_read_by];
    uint outputs = layer.outputs + (flow.also_read_by > 0u ? other.outputs : 0u);
    uint others = config.flows[flow.also_read_by].own; // rows of its weights before those
    for (uint i = gl_GlobalInvocationID.x; i < flow.own * outputs; i += stride) {
        uint panel = i / (outputs * BLOCK_ROWS), n = i / BLOCK_ROWS % outputs;
        uint k = panel * BLOCK_ROWS + i % BLOCK_ROWS;
        float w = params[n < layer.outputs ? layer.first + k * layer.outputs + n
                                           : other.first + (others + k) * other.outputs + n - layer.outputs];
        weights[flow.transposed * CHUNK + i] = STORAGE_T(w);
    }
}
