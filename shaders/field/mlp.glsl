// The density and colour MLPs of one sample, in FP32: one sample per invocation, activations private.
//
// Weights are stored [input][output]; outputs come in tiles of 16, so that one uniform read of 16
// weights serves 16 multiply-adds. Layers:
//   density: ENCODED -> DENSITY_LAYERS x DENSITY_WIDTH (ReLU) -> GEOMETRY (the first is raw density)
//   colour:  GEOMETRY + SH_SIZE -> COLOR_LAYERS x COLOR_WIDTH (ReLU) -> COLOR_OUTPUTS (rgb, padded)

layout(constant_id = SPEC_DENSITY_WIDTH) const uint DENSITY_WIDTH = 64;
layout(constant_id = SPEC_DENSITY_LAYERS) const uint DENSITY_LAYERS = 1;
layout(constant_id = SPEC_GEOMETRY) const uint GEOMETRY = 16;
layout(constant_id = SPEC_COLOR_WIDTH) const uint COLOR_WIDTH = 64;
layout(constant_id = SPEC_COLOR_LAYERS) const uint COLOR_LAYERS = 2;

// Where each layer's values lie among the sample's activations. The colour MLP's input is the density
// MLP's output with the direction behind it.
const uint AT_DENSITY = ENCODED;
const uint AT_GEOMETRY = AT_DENSITY + DENSITY_LAYERS * DENSITY_WIDTH;
const uint AT_DIRECTION = AT_GEOMETRY + GEOMETRY;
const uint AT_COLOR = AT_DIRECTION + SH_SIZE;
const uint AT_RGB = AT_COLOR + COLOR_LAYERS * COLOR_WIDTH;
const uint ACTIVATIONS = AT_RGB + COLOR_OUTPUTS;

const uint COLOR_INPUTS = GEOMETRY + SH_SIZE;
const uint COLOR_WEIGHTS = (ENCODED + (DENSITY_LAYERS - 1u) * DENSITY_WIDTH + GEOMETRY) * DENSITY_WIDTH;

layout(std430, set = 0, binding = BIND_PARAMS) readonly buffer WeightBuffer { vec4 weights[]; };

float act[ACTIVATIONS];

void layer_forward(uint from, uint inputs, uint to, uint outputs, uint weight, bool relu)
{
    for (uint o = 0; o < outputs; o += 16u) {
        vec4 a = vec4(0.0), b = vec4(0.0), c = vec4(0.0), d = vec4(0.0);
        uint at = (weight + o) / 4u;
        for (uint i = 0; i < inputs; i++) {
            float x = act[from + i];
            a += x * weights[at];
            b += x * weights[at + 1u];
            c += x * weights[at + 2u];
            d += x * weights[at + 3u];
            at += outputs / 4u;
        }
        if (relu) {
            a = max(a, 0.0);
            b = max(b, 0.0);
            c = max(c, 0.0);
            d = max(d, 0.0);
        }
        for (uint k = 0; k < 4u; k++) {
            act[to + o + k] = a[k];
            act[to + o + 4u + k] = b[k];
            act[to + o + 8u + k] = c[k];
            act[to + o + 12u + k] = d[k];
        }
    }
}

// Expects act[0 .. ENCODED); raw density is act[AT_GEOMETRY] afterwards.
void density_forward()
{
    uint from = 0u, inputs = ENCODED, weight = 0u;
    for (uint layer = 0; layer < DENSITY_LAYERS; layer++) {
        uint to = AT_DENSITY + layer * DENSITY_WIDTH;
        layer_forward(from, inputs, to, DENSITY_WIDTH, weight, true);
        weight += inputs * DENSITY_WIDTH;
        from = to;
        inputs = DENSITY_WIDTH;
    }
    layer_forward(from, inputs, AT_GEOMETRY, GEOMETRY, weight, false);
}

// Expects act[AT_GEOMETRY .. AT_COLOR); raw rgb is act[AT_RGB ..] afterwards.
void color_forward()
{
    uint from = AT_GEOMETRY, inputs = COLOR_INPUTS, weight = COLOR_WEIGHTS;
    for (uint layer = 0; layer < COLOR_LAYERS; layer++) {
        uint to = AT_COLOR + layer * COLOR_WIDTH;
        layer_forward(from, inputs, to, COLOR_WIDTH, weight, true);
        weight += inputs * COLOR_WIDTH;
        from = to;
        inputs = COLOR_WIDTH;
    }
    layer_forward(from, inputs, AT_RGB, COLOR_OUTPUTS, weight, false);
}
