// Evaluates the density and colour MLPs for a workgroup's samples, one row of values per sample.
//
// Weights are stored [input][output]. Layers:
//   density: ENCODED -> DENSITY_LAYERS x DENSITY_WIDTH (ReLU) -> GEOMETRY (the first is raw density)
//   colour:  GEOMETRY + SH_SIZE -> COLOR_LAYERS x COLOR_WIDTH (ReLU) -> COLOR_OUTPUTS (rgb, padded)
// With COLOR_LAYERS 0 there is no colour MLP: only the density is trained, and GEOMETRY is
// COLOR_OUTPUTS.
//
// Included files define, for any precision
//   set_value(i, x), get_value(i)   value i of this invocation's row; i is a constant unless rows have several
//                                   invocations. The caller sets the features and, after density_forward,
//                                   the encoded direction from ROW_DIRECTION on
//   begin_tile(counter), end_tile() called by whole workgroups before and after the work on a tile's rows;
//                                   counter: of the caller's loop over tiles, below 2^31
//   any_row(bool)                   false if the MLPs may be skipped because no row needs them
//   density_forward()               layers of the density MLP; called by whole workgroups
//   color_forward()                 layers of the colour MLP; with BACKWARD not the last layer, whose outputs
//                                   are in FIELD
// and with BACKWARD
//   begin_sums(), end_sums()        called before and after all tiles of a workgroup, for the weight gradients
//   tile_backward(gradient, at_end) propagates the gradient of raw rgb and raw density: adds the tile's weight
//                                   gradients, now or at_end (in the workgroup's last tile), and stores the
//                                   gradients of the inputs
//   get_gradient(i)                 gradient of input i of this invocation's row; with INPUT_GRADIENTS also
//                                   from AT_DIRECTION on
//   rounded_gradients               counts of gradients that are not 0 after, and before, rounding
// Passes: field_forward, field_backward, update_occupancy, sample_normals. With BACKWARD reads and
// writes PARTIALS [workgroup][summed parameter] f32.

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

// Offsets of the layers' values in a row. The colour MLP's inputs are the density MLP's outputs,
// followed by the encoded direction.
#if defined(TILED) && !defined(BACKWARD)
// Every layer overwrites its input.
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
    uint from, inputs; // first value in the row, number of values
    uint to, outputs;
    uint weight;       // first weight
    bool is_color;     // belongs to the colour MLP
    bool is_first, is_last; // first or last layer of its MLP; a ReLU is between two layers
};

const uint DENSITY_END = DENSITY_LAYERS + 1u;
const uint LAYERS = COLORED ? DENSITY_END + COLOR_LAYERS + 1u : DENSITY_END;
#ifdef BACKWARD
const uint COLOR_END = LAYERS - 1u; // the backward pass does not need the last layer's outputs
#else
const uint COLOR_END = LAYERS;
#endif

// Returns a layer by its index: density MLP first, then colour MLP.
Layer layer_at(uint index)
{
    bool is_color = index >= DENSITY_END;
    uint i = is_color ? index - DENSITY_END : index;
    uint inputs = is_color ? COLOR_INPUTS : ENCODED;
    uint width = is_color ? COLOR_WIDTH : DENSITY_WIDTH;
    uint hidden_at = is_color ? AT_COLOR : AT_DENSITY, stride = is_color ? COLOR_STRIDE : DENSITY_STRIDE;
    Layer layer;
    layer.is_color = is_color;
    layer.is_first = i == 0u;
    layer.is_last = i == (is_color ? COLOR_LAYERS : DENSITY_LAYERS);
    layer.inputs = layer.is_first ? inputs : width;
    layer.outputs = !layer.is_last ? width : is_color ? COLOR_OUTPUTS : GEOMETRY;
    layer.from = !layer.is_first ? hidden_at + (i - 1u) * stride : is_color ? AT_GEOMETRY : 0u;
    layer.to = !layer.is_last ? hidden_at + i * stride : is_color ? AT_RGB : AT_GEOMETRY;
    layer.weight = (is_color ? COLOR_WEIGHTS : 0u) +
                   (layer.is_first ? 0u : (inputs + (i - 1u) * width) * width);
    return layer;
}

// Number of computed outputs of the last layer: rgb and one output of padding.
const uint RGB = 4;

uint used_outputs(Layer layer)
{
    return layer.is_last && layer.is_color == COLORED ? RGB : layer.outputs;
}

// Runs DO(layer) for each layer of [begin, end). The macros unroll the loop, because some compilers
// do not unroll loops that contain loops. Both ends are specialisation constants, so
// src/gpu/specialize.c removes layers that do not exist.
#define LAYER(DO, i, begin, end)       \
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

// Returns the number of a layer's inputs whose gradients are needed: these exclude the encoded
// direction, which depends on no parameters, unless INPUT_GRADIENTS is set.
uint inputs_with_gradients(Layer layer)
{
    return layer.is_color && layer.is_first && INPUT_GRADIENTS == 0u ? GEOMETRY : layer.inputs;
}

// Returns the gradient with respect to the last layer's output k. `gradient`: of raw rgb and density.
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
