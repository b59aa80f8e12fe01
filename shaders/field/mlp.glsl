// The density and colour MLPs of a workgroup's samples, one row of values per invocation.
//
// Weights are stored [input][output]. Layers:
//   density: ENCODED -> DENSITY_LAYERS x DENSITY_WIDTH (ReLU) -> GEOMETRY (the first is raw density)
//   colour:  GEOMETRY + SH_SIZE -> COLOR_LAYERS x COLOR_WIDTH (ReLU) -> COLOR_OUTPUTS (rgb, padded)
// Without a colour MLP, COLOR_LAYERS 0, nothing but the density learns, and GEOMETRY is COLOR_OUTPUTS.
//
// Whatever the precision, an included file gives
//   set_value(i, x), get_value(i)   value i of this invocation's row; i known to the compiler, but where
//                                   rows have several invocations. Set are features and, once they
//                                   have gone through the density MLP, from ROW_DIRECTION on the direction
//   begin_tile(counter), end_tile() around what is done with a tile's rows; whole workgroups; counter: of
//                                   the loop over tiles, below 2^31
//   any_row(bool)                   may the MLPs be left out where no row needs them?
//   density_forward()               the density MLP's layers; whole workgroups
//   color_forward()                 those of the colour MLP, but going backward the last: its outputs are in `field`
// and with BACKWARD
//   begin_sums(), end_sums()        of the weight gradients, around all tiles of a workgroup
//   tile_backward(gradient, last)   from the gradient of raw rgb and raw density: adds the tile's
//                                   weight gradients (at the latest with the workgroup's last tile),
//                                   leaves those of the inputs
//   get_gradient(i)                 of input i of this invocation's row; with INPUT_GRADIENTS also
//                                   of AT_DIRECTION and behind
//   rounded_gradients               so far: those that rounding leaves, of how many that are not 0

#include "shared/rows.glsl"
#include "shared/rounding.glsl"

layout(constant_id = SPEC_DENSITY_WIDTH) const uint DENSITY_WIDTH = 64;
layout(constant_id = SPEC_DENSITY_LAYERS) const uint DENSITY_LAYERS = 1;
layout(constant_id = SPEC_GEOMETRY) const uint GEOMETRY = 16;
layout(constant_id = SPEC_COLOR_WIDTH) const uint COLOR_WIDTH = 64;
layout(constant_id = SPEC_COLOR_LAYERS) const uint COLOR_LAYERS = 2;

const bool COLORED = COLOR_LAYERS > 0u;
const uint COLOR_INPUTS = COLORED ? GEOMETRY + SH_SIZE : GEOMETRY;
const uint COLOR_WEIGHTS = (ENCODED + (DENSITY_LAYERS - 1u) * DENSITY_WIDTH + GEOMETRY) * DENSITY_WIDTH;

// Where each layer's values lie in a row. The colour MLP's input is the density MLP's output with
// the direction behind it.
#if defined(TILED) && !defined(BACKWARD)
// Every layer replaces its input.
const uint AT_DENSITY = 0, DENSITY_STRIDE = 0;
const uint AT_GEOMETRY = 0;
const uint AT_COLOR = 0, COLOR_STRIDE = 0;
const uint AT_RGB = 0;
#else
const uint AT_DENSITY = ENCODED, DENSITY_STRIDE = DENSITY_WIDTH;
const uint AT_GEOMETRY = AT_DENSITY + DENSITY_LAYERS * DENSITY_WIDTH;
const uint AT_COLOR = AT_GEOMETRY + COLOR_INPUTS, COLOR_STRIDE = COLOR_WIDTH;
const uint AT_RGB = COLORED ? AT_COLOR + COLOR_LAYERS * COLOR_WIDTH : AT_GEOMETRY; // the last layer's outputs
#endif
const uint AT_DIRECTION = AT_GEOMETRY + GEOMETRY;

struct Layer {
    uint from, inputs; // values of a row
    uint to, outputs;
    uint weight;       // its first
    bool color;        // of the colour MLP
    bool first, last;  // of its MLP: the others' inputs and outputs are behind a ReLU
};

const uint DENSITY_END = DENSITY_LAYERS + 1u;
const uint LAYERS = COLORED ? DENSITY_END + COLOR_LAYERS + 1u : DENSITY_END;
#ifdef BACKWARD
const uint COLOR_END = LAYERS - 1u; // nothing goes back through the last layer's outputs
#else
const uint COLOR_END = LAYERS;
#endif

// The density MLP's layers, then the colour MLP's.
Layer layer_at(uint index)
{
    bool color = index >= DENSITY_END;
    uint i = color ? index - DENSITY_END : index;
    uint inputs = color ? COLOR_INPUTS : ENCODED;
    uint width = color ? COLOR_WIDTH : DENSITY_WIDTH;
    uint hidden_at = color ? AT_COLOR : AT_DENSITY, stride = color ? COLOR_STRIDE : DENSITY_STRIDE;
    Layer layer;
    layer.color = color;
    layer.first = i == 0u;
    layer.last = i == (color ? COLOR_LAYERS : DENSITY_LAYERS);
    layer.inputs = layer.first ? inputs : width;
    layer.outputs = !layer.last ? width : color ? COLOR_OUTPUTS : GEOMETRY;
    layer.from = !layer.first ? hidden_at + (i - 1u) * stride : color ? AT_GEOMETRY : 0u;
    layer.to = !layer.last ? hidden_at + i * stride : color ? AT_RGB : AT_GEOMETRY;
    layer.weight = (color ? COLOR_WEIGHTS : 0u) +
                   (layer.first ? 0u : (inputs + (i - 1u) * width) * width);
    return layer;
}

// Outputs and inputs that anything comes from or goes to.
const uint RGB = 4; // outputs computed of the last layer

uint used_outputs(Layer layer)
{
    return layer.last && layer.color == COLORED ? RGB : layer.outputs;
}

// DO(layer) for each layer of [begin, end), written out, because some compilers do not unroll a loop that has others
// inside. Both ends are specialisation constants: no driver sees the layers that are not there (src/gpu/specialize.c).
#define LAYER(DO, i, begin, end)    \
    if ((begin) <= (i) && (i) < (end)) \
        DO(layer_at(i));
#define LAYERS_UP(DO, i, begin, end)                                     \
    LAYER(DO, i, begin, end) LAYER(DO, (i) + 1u, begin, end)             \
    LAYER(DO, (i) + 2u, begin, end) LAYER(DO, (i) + 3u, begin, end)
#define LAYERS_DOWN(DO, i, begin, end)                                   \
    LAYER(DO, (i) + 3u, begin, end) LAYER(DO, (i) + 2u, begin, end)      \
    LAYER(DO, (i) + 1u, begin, end) LAYER(DO, i, begin, end)
#define FROM_FIRST_LAYER(DO, begin, end)                                 \
    LAYERS_UP(DO, 0u, begin, end) LAYERS_UP(DO, 4u, begin, end)          \
    LAYERS_UP(DO, 8u, begin, end) LAYERS_UP(DO, 12u, begin, end)
#define FROM_LAST_LAYER(DO, begin, end)                                  \
    LAYERS_DOWN(DO, 12u, begin, end) LAYERS_DOWN(DO, 8u, begin, end)     \
    LAYERS_DOWN(DO, 4u, begin, end) LAYERS_DOWN(DO, 0u, begin, end)

#ifdef BACKWARD
layout(constant_id = SPEC_INPUT_GRADIENTS) const uint INPUT_GRADIENTS = 0;

// Nothing that learns lies behind the direction: its gradient is computed when asked for.
uint learned_inputs(Layer layer)
{
    return layer.color && layer.first && INPUT_GRADIENTS == 0u ? GEOMETRY : layer.inputs;
}

// Of the last layer's output k, from those of raw rgb and raw density.
float output_gradient(vec4 gradient, uint k)
{
    return COLORED ? (k < 3u ? gradient[k] : 0.0) : k == 0u ? gradient.w : 0.0;
}

layout(std430, BINDING(PARTIALS)) workgroupcoherent buffer PartialBuffer { float partials[]; };

#include "field/round_gradient.glsl"
#endif

#ifdef TILED
#include "field/mlp_tile.glsl"
#else
#include "field/mlp_scalar.glsl"
#endif
