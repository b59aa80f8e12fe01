// The density and colour MLPs of one sample, in FP32: one sample per invocation, values private.
//
// Weights are stored [input][output]. Layers:
//   density: ENCODED -> DENSITY_LAYERS x DENSITY_WIDTH (ReLU) -> GEOMETRY (the first is raw density)
//   colour:  GEOMETRY + SH_SIZE -> COLOR_LAYERS x COLOR_WIDTH (ReLU) -> COLOR_OUTPUTS (rgb, padded)

layout(constant_id = SPEC_DENSITY_WIDTH) const uint DENSITY_WIDTH = 64;
layout(constant_id = SPEC_DENSITY_LAYERS) const uint DENSITY_LAYERS = 1;
layout(constant_id = SPEC_GEOMETRY) const uint GEOMETRY = 16;
layout(constant_id = SPEC_COLOR_WIDTH) const uint COLOR_WIDTH = 64;
layout(constant_id = SPEC_COLOR_LAYERS) const uint COLOR_LAYERS = 2;

// Where each layer's values lie among the sample's activations. The colour MLP's input is the
// density MLP's output with the direction behind it.
const uint AT_DENSITY = ENCODED;
const uint AT_GEOMETRY = AT_DENSITY + DENSITY_LAYERS * DENSITY_WIDTH;
const uint AT_DIRECTION = AT_GEOMETRY + GEOMETRY;
const uint AT_COLOR = AT_DIRECTION + SH_SIZE;
const uint AT_RGB = AT_COLOR + COLOR_LAYERS * COLOR_WIDTH;
const uint ACTIVATIONS = AT_RGB + COLOR_OUTPUTS;

const uint COLOR_INPUTS = GEOMETRY + SH_SIZE;
const uint COLOR_WEIGHTS = (ENCODED + (DENSITY_LAYERS - 1u) * DENSITY_WIDTH + GEOMETRY) * DENSITY_WIDTH;

layout(std430, set = 0, binding = BIND_PARAMS) readonly buffer ParamBuffer { float params[]; };

// The activations; in the backward pass the gradient of each follows ACTIVATIONS further on.
#ifdef BACKWARD
float values[2u * ACTIVATIONS];
#else
float values[ACTIVATIONS];
#endif

// values[to + n] = sum over k of values[from + k] * params[weight + k * stride_k + n * stride_n],
// for n < outputs: a layer forward (stride_n = 1) or its transpose (stride_k = 1).
//
// Eight neighbouring lanes fetch eight weights and broadcast them, which costs a CPU device a third
// of eight uniform loads with their range checks. The unrolled eight inputs keep the sums in
// registers.
void product(uint from, uint inputs, uint to, uint outputs, uint weight, uint stride_k, uint stride_n)
{
    uint mine = (gl_SubgroupInvocationID & 7u) * stride_n;
    for (uint n = 0; n < outputs; n += 16u) {
        float sum[16];
        [[unroll]] for (uint j = 0; j < 16u; j++)
            sum[j] = 0.0;
        for (uint k = 0; k < inputs; k += 8u) {
            [[unroll]] for (uint c = 0; c < 8u; c++) {
                float x = values[from + k + c];
                uint at = weight + (k + c) * stride_k + n * stride_n + mine;
                float low = params[at], high = params[at + 8u * stride_n];
                [[unroll]] for (uint j = 0; j < 8u; j++) {
                    sum[j] += x * subgroupBroadcast(low, j);
                    sum[8u + j] += x * subgroupBroadcast(high, j);
                }
            }
        }
        [[unroll]] for (uint j = 0; j < 16u; j++)
            values[to + n + j] = sum[j];
    }
}

void rectify(uint first, uint count)
{
    for (uint i = first; i < first + count; i++)
        values[i] = max(values[i], 0.0);
}

// Where an MLP's values and weights lie: its inputs, its hidden layers, its outputs, its first weight.
#define DENSITY_MLP                                                                                \
    0u, ENCODED, AT_DENSITY, DENSITY_WIDTH, DENSITY_LAYERS, AT_GEOMETRY, GEOMETRY, 0u
#define COLOR_MLP                                                                                  \
    AT_GEOMETRY, COLOR_INPUTS, AT_COLOR, COLOR_WIDTH, COLOR_LAYERS, AT_RGB, COLOR_OUTPUTS,         \
        COLOR_WEIGHTS

// DENSITY_MLP leaves raw density in values[AT_GEOMETRY], COLOR_MLP raw rgb in values[AT_RGB ..].
void mlp_forward(uint first, uint inputs, uint hidden_at, uint width, uint hidden, uint result_at,
                 uint outputs, uint weight)
{
    uint from = first, count = inputs;
    for (uint layer = 0; layer < hidden; layer++) {
        uint to = hidden_at + layer * width;
        product(from, count, to, width, weight, width, 1u);
        rectify(to, width);
        weight += count * width;
        from = to;
        count = width;
    }
    product(from, count, result_at, outputs, weight, outputs, 1u);
}
