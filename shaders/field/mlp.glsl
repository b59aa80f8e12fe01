// The density and colour MLPs of a workgroup's samples, one row of values per invocation.
//
// Weights are stored [input][output]. Layers:
//   density: ENCODED -> DENSITY_LAYERS x DENSITY_WIDTH (ReLU) -> GEOMETRY (the first is raw density)
//   colour:  GEOMETRY + SH_SIZE -> COLOR_LAYERS x COLOR_WIDTH (ReLU) -> COLOR_OUTPUTS (rgb, padded)
//
// Whatever the precision, an included file gives
//   set_value(i, x), get_value(i)   value i of this invocation's row
//   any_row(bool)                   may the MLPs be left out where no row needs them?
//   mlp_forward(MLP, bool outputs)  all layers, or all but the last; whole workgroups
// and with BACKWARD
//   begin_sums(), end_sums()        of the weight gradients, around all tiles of a workgroup
//   tile_backward(gradient)         from the gradient of raw rgb and raw density: adds the tile's
//                                   weight gradients, leaves those of the inputs
//   get_gradient(i)                 of input i of this invocation's row
//   flushed                         gradients that became zero when rounded, so far

layout(constant_id = SPEC_DENSITY_WIDTH) const uint DENSITY_WIDTH = 64;
layout(constant_id = SPEC_DENSITY_LAYERS) const uint DENSITY_LAYERS = 1;
layout(constant_id = SPEC_GEOMETRY) const uint GEOMETRY = 16;
layout(constant_id = SPEC_COLOR_WIDTH) const uint COLOR_WIDTH = 64;
layout(constant_id = SPEC_COLOR_LAYERS) const uint COLOR_LAYERS = 2;

const uint COLOR_INPUTS = GEOMETRY + SH_SIZE;
const uint COLOR_WEIGHTS = (ENCODED + (DENSITY_LAYERS - 1u) * DENSITY_WIDTH + GEOMETRY) * DENSITY_WIDTH;

// Where each layer's values lie in a row. The colour MLP's input is the density MLP's output with
// the direction behind it.
#if defined(COOPMAT) && !defined(BACKWARD)
// Every layer replaces its input.
const uint AT_DENSITY = 0, DENSITY_HOP = 0;
const uint AT_GEOMETRY = 0;
const uint AT_COLOR = 0, COLOR_HOP = 0;
const uint AT_RGB = 0;
#else
const uint AT_DENSITY = ENCODED, DENSITY_HOP = DENSITY_WIDTH;
const uint AT_GEOMETRY = AT_DENSITY + DENSITY_LAYERS * DENSITY_WIDTH;
const uint AT_COLOR = AT_GEOMETRY + COLOR_INPUTS, COLOR_HOP = COLOR_WIDTH;
const uint AT_RGB = AT_COLOR + COLOR_LAYERS * COLOR_WIDTH;
#endif
const uint AT_DIRECTION = AT_GEOMETRY + GEOMETRY;

// Where an MLP's values and weights lie: its inputs, its hidden layers, its outputs, its first weight.
#define DENSITY_MLP                                                                                \
    0u, ENCODED, AT_DENSITY, DENSITY_HOP, DENSITY_WIDTH, DENSITY_LAYERS, AT_GEOMETRY, GEOMETRY, 0u
#define COLOR_MLP                                                                                  \
    AT_GEOMETRY, COLOR_INPUTS, AT_COLOR, COLOR_HOP, COLOR_WIDTH, COLOR_LAYERS, AT_RGB,             \
        COLOR_OUTPUTS, COLOR_WEIGHTS
// The parameters that take these.
#define MLP_PARAMETERS                                                                             \
    uint first, uint inputs, uint hidden_at, uint hop, uint width, uint hidden, uint result_at,    \
        uint outputs, uint first_weight

// Applies layer(from, inputs, to, outputs, weight, is_hidden) to an MLP's layers.
#define MLP_LAYERS_FORWARD(layer, last)                                                            \
    uint layer_from = first, layer_inputs = inputs, layer_weight = first_weight;                   \
    for (uint layer_index = 0; layer_index < times(hidden); layer_index++) {                       \
        uint layer_to = hidden_at + layer_index * hop;                                             \
        layer(layer_from, layer_inputs, layer_to, width, layer_weight, true);                      \
        layer_weight += layer_inputs * width;                                                      \
        layer_from = layer_to;                                                                     \
        layer_inputs = width;                                                                      \
    }                                                                                              \
    if (last)                                                                                      \
        layer(layer_from, layer_inputs, result_at, outputs, layer_weight, false);

// The same from the last to the first; is_hidden tells of the layer's inputs.
#define MLP_LAYERS_BACKWARD(layer)                                                                 \
    uint layer_to = result_at, layer_outputs = outputs;                                            \
    uint layer_weight = first_weight + (inputs + (hidden - 1u) * width) * width;                   \
    for (uint layer_index = times(hidden); layer_index > 0u; layer_index--) {                             \
        uint layer_from = hidden_at + (layer_index - 1u) * hop;                                    \
        layer(layer_from, width, layer_to, layer_outputs, layer_weight, true);                     \
        layer_to = layer_from;                                                                     \
        layer_outputs = width;                                                                     \
        layer_weight -= (layer_index > 1u ? width : inputs) * width;                               \
    }                                                                                              \
    layer(first, inputs, layer_to, layer_outputs, layer_weight, false);

#if defined(FP16) || defined(COOPMAT)
#define REAL float16_t
layout(std430, set = 0, binding = BIND_HALVES) readonly buffer HalfBuffer { float16_t params[]; };
#else
#define REAL float
layout(std430, set = 0, binding = BIND_PARAMS) readonly buffer ParamBuffer { float params[]; };
#endif

#ifdef BACKWARD
layout(std430, set = 0, binding = BIND_PARTIALS) workgroupcoherent buffer PartialBuffer { float partials[]; };

#if defined(FP16) || defined(COOPMAT)
uint flushed = 0;

float16_t round_gradient(float x)
{
    float16_t rounded = float16_t(x);
    flushed += rounded == float16_t(0.0) && x != 0.0 ? 1u : 0u;
    return rounded;
}
#endif
#endif

#ifdef COOPMAT
#include "field/mlp_matrix.glsl"
#else
#include "field/mlp_scalar.glsl"
#endif
