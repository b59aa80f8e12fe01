#version 460
#extension GL_GOOGLE_include_directive : require
// Per live sample: inputs and activations are computed again (nothing of the forward pass was stored
// but rgb and raw density), then gradients flow back. The weight gradients of a tile of LOCAL_SIZE
// samples are formed from shared memory and added to the workgroup's own partial sums, which
// reduce_gradients adds up; the grid's gradients are scattered by atomics.
//
// GRADIENT_FIXED: 64-bit fixed-point sums in two words, the same whatever the order of additions.
#ifdef GRADIENT_FLOAT
#extension GL_EXT_shader_atomic_float : require
#endif
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/mlp.glsl"
#include "field/inputs.glsl"


layout(constant_id = SPEC_DETERMINISTIC) const uint DETERMINISTIC = 0;

layout(std430, set = 0, binding = BIND_STATE) buffer StateBuffer { State state; };
layout(std430, set = 0, binding = BIND_RAYS) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, set = 0, binding = BIND_SAMPLES) readonly buffer SampleBuffer { Sample samples[]; };
layout(std430, set = 0, binding = BIND_FIELD) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, set = 0, binding = BIND_LIVE) readonly buffer LiveBuffer { uint live[]; };
layout(std430, set = 0, binding = BIND_PARTIALS) buffer PartialBuffer { float partials[]; };

const uint WIDEST_LAYER = DENSITY_WIDTH > COLOR_WIDTH ? DENSITY_WIDTH : COLOR_WIDTH;
const uint WIDEST_INPUT = ENCODED > COLOR_INPUTS ? ENCODED : COLOR_INPUTS;
const uint WIDEST = WIDEST_LAYER > WIDEST_INPUT ? WIDEST_LAYER : WIDEST_INPUT;
const uint TILE_INPUTS = 16;
const uint TILE_OUTPUTS = 64;

shared float tile_inputs[LOCAL_SIZE * TILE_INPUTS];
shared float tile_outputs[LOCAL_SIZE * TILE_OUTPUTS];

float grad[WIDEST];  // of the layer's outputs
float below[WIDEST]; // of its inputs

#include "field/scatter.glsl"

// partials += inputs^T * grad, summed over the workgroup's samples.
void weight_gradient(uint from, uint inputs, uint outputs, uint weight)
{
    uint mine = gl_LocalInvocationIndex;
    uint base = gl_WorkGroupID.x * config.mlp_params + weight;
    for (uint o = 0; o < outputs; o += TILE_OUTPUTS) {
        uint columns = min(outputs - o, TILE_OUTPUTS);
        for (uint k = 0; k < columns; k++)
            tile_outputs[mine * TILE_OUTPUTS + k] = grad[o + k];
        for (uint i = 0; i < inputs; i += TILE_INPUTS) {
            [[unroll]] for (uint k = 0; k < TILE_INPUTS; k++)
                tile_inputs[mine * TILE_INPUTS + k] = act[from + i + k];
            barrier();
            for (uint column = mine; column < columns; column += LOCAL_SIZE) {
                float sum[TILE_INPUTS];
                [[unroll]] for (uint k = 0; k < TILE_INPUTS; k++)
                    sum[k] = 0.0;
                for (uint row = 0; row < LOCAL_SIZE; row++) {
                    float g = tile_outputs[row * TILE_OUTPUTS + column];
                    [[unroll]] for (uint k = 0; k < TILE_INPUTS; k++)
                        sum[k] += tile_inputs[row * TILE_INPUTS + k] * g;
                }
                [[unroll]] for (uint k = 0; k < TILE_INPUTS; k++)
                    partials[base + (i + k) * outputs + o + column] += sum[k];
            }
            barrier();
        }
    }
}

// grad = weights * grad; behind a ReLU the gradient passes where the activation was positive.
void input_gradient(uint from, uint inputs, uint outputs, uint weight, bool relu)
{
    for (uint i = 0; i < inputs; i += 16u) {
        float sum[16];
        [[unroll]] for (uint k = 0; k < 16u; k++)
            sum[k] = 0.0;
        for (uint o = 0; o < outputs; o++) {
            float g = grad[o];
            [[unroll]] for (uint k = 0; k < 16u; k++)
                sum[k] += params[weight + (i + k) * outputs + o] * g;
        }
        [[unroll]] for (uint k = 0; k < 16u; k++)
            below[i + k] = relu && act[from + i + k] <= 0.0 ? 0.0 : sum[k];
    }
    for (uint i = 0; i < inputs; i++)
        grad[i] = below[i];
}

void main()
{
    for (uint k = gl_LocalInvocationIndex; k < config.mlp_params; k += LOCAL_SIZE)
        partials[gl_WorkGroupID.x * config.mlp_params + k] = 0.0;

    // Without compaction the order of the samples is the rays', whatever the timing.
    uint count = DETERMINISTIC != 0u ? min(state.sample_count, config.sample_capacity)
                                     : state.live_count;
    uint tiles = (count + LOCAL_SIZE - 1u) / LOCAL_SIZE;
    for (uint tile = gl_WorkGroupID.x; tile < tiles; tile += gl_NumWorkGroups.x) {
        uint i = tile * LOCAL_SIZE + gl_LocalInvocationIndex;
        bool inside = i < count;
        uint sample_index = inside ? (DETERMINISTIC != 0u ? i : live[i]) : 0u;
        vec4 gradient = inside ? field[sample_index] : vec4(0.0);
        Ray ray = rays[samples[sample_index].ray];
        vec3 direction = vec3(ray.direction[0], ray.direction[1], ray.direction[2]);
        vec3 position = vec3(ray.origin[0], ray.origin[1], ray.origin[2]) +
                        samples[sample_index].t * direction;
        encode_position(position);
        density_forward();
        encode_direction(direction);
        color_forward();

        for (uint k = 0; k < COLOR_OUTPUTS; k++)
            grad[k] = k < 3u ? gradient[k] : 0.0;
        uint outputs = COLOR_OUTPUTS;
        uint weight = COLOR_WEIGHTS + (COLOR_INPUTS + (COLOR_LAYERS - 1u) * COLOR_WIDTH) * COLOR_WIDTH;
        for (uint layer = COLOR_LAYERS; layer > 0u; layer--) {
            uint from = AT_COLOR + (layer - 1u) * COLOR_WIDTH;
            weight_gradient(from, COLOR_WIDTH, outputs, weight);
            input_gradient(from, COLOR_WIDTH, outputs, weight, true);
            outputs = COLOR_WIDTH;
            weight -= (layer > 1u ? COLOR_WIDTH : COLOR_INPUTS) * COLOR_WIDTH;
        }
        weight_gradient(AT_GEOMETRY, COLOR_INPUTS, COLOR_WIDTH, weight);
        input_gradient(AT_GEOMETRY, GEOMETRY, COLOR_WIDTH, weight, false);

        grad[0] += gradient.w;
        outputs = GEOMETRY;
        weight = (ENCODED + (DENSITY_LAYERS - 1u) * DENSITY_WIDTH) * DENSITY_WIDTH;
        for (uint layer = DENSITY_LAYERS; layer > 0u; layer--) {
            uint from = AT_DENSITY + (layer - 1u) * DENSITY_WIDTH;
            weight_gradient(from, DENSITY_WIDTH, outputs, weight);
            input_gradient(from, DENSITY_WIDTH, outputs, weight, true);
            outputs = DENSITY_WIDTH;
            weight -= (layer > 1u ? DENSITY_WIDTH : ENCODED) * DENSITY_WIDTH;
        }
        weight_gradient(0u, ENCODED, DENSITY_WIDTH, weight);
        input_gradient(0u, ENCODED, DENSITY_WIDTH, weight, false);
        if (inside)
            scatter_position_gradient(position);
    }
}
