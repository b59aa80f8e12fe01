#version 460
#extension GL_GOOGLE_include_directive : require
// Per live sample: inputs and activations are computed again (nothing of the forward pass was
// stored but rgb and raw density), then gradients flow back. A tile of LOCAL_SIZE samples leaves
// its values in the workgroup's own scratch memory, from which the weight gradients are formed and
// added to the workgroup's partial sums; reduce_gradients adds those up. The grid's gradients are
// scattered by atomics.
//
// Without GRADIENT_FLOAT: 64-bit fixed-point sums in two words, the same whatever the order of
// additions.
#ifdef GRADIENT_FLOAT
#extension GL_EXT_shader_atomic_float : require
#endif
#include "shared/common.glsl"
#define BACKWARD
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
layout(std430, set = 0, binding = BIND_SCRATCH) buffer ScratchBuffer { float scratch[]; };

#include "field/scatter.glsl"

const uint ROW = 2u * ACTIVATIONS; // floats of a sample in the scratch memory
const uint SUBGROUPS = LOCAL_SIZE / SUBGROUP_SIZE;

// Gradient of a layer's inputs from that of its outputs. Behind a ReLU it passes where the input
// was positive.
void layer_backward(uint from, uint inputs, uint to, uint outputs, uint weight, bool relu)
{
    product(ACTIVATIONS + to, outputs, ACTIVATIONS + from, inputs, weight, 1u, outputs);
    if (relu)
        for (uint i = from; i < from + inputs; i++)
            values[ACTIVATIONS + i] = values[i] > 0.0 ? values[ACTIVATIONS + i] : 0.0;
}

// partials += inputs^T * gradient of the outputs, over the tile's samples. Lanes are outputs;
// subgroups share the blocks of 16 inputs.
void weight_gradient(uint from, uint inputs, uint to, uint outputs, uint weight)
{
    uint tile = gl_WorkGroupID.x * LOCAL_SIZE * ROW;
    uint partial = gl_WorkGroupID.x * config.mlp_params + weight;
    uint columns = (outputs + SUBGROUP_SIZE - 1u) / SUBGROUP_SIZE;
    uint units = inputs / 16u * columns;
    for (uint unit = gl_SubgroupID; unit < units; unit += SUBGROUPS) {
        uint i = unit / columns * 16u;
        uint o = unit % columns * SUBGROUP_SIZE + gl_SubgroupInvocationID;
        bool inside = o < outputs;
        uint input_at = tile + from + i + (gl_SubgroupInvocationID & 7u);
        uint gradient_at = tile + ACTIVATIONS + to + min(o, outputs - 1u);
        float sum[16];
        [[unroll]] for (uint j = 0; j < 16u; j++)
            sum[j] = 0.0;
        for (uint row = 0; row < LOCAL_SIZE * ROW; row += 4u * ROW) {
            [[unroll]] for (uint c = 0; c < 4u; c++) {
                float g = scratch[gradient_at + row + c * ROW];
                float low = scratch[input_at + row + c * ROW];
                float high = scratch[input_at + row + c * ROW + 8u];
                [[unroll]] for (uint j = 0; j < 8u; j++) {
                    sum[j] += subgroupBroadcast(low, j) * g;
                    sum[8u + j] += subgroupBroadcast(high, j) * g;
                }
            }
        }
        if (inside)
            [[unroll]] for (uint j = 0; j < 16u; j++)
                partials[partial + (i + j) * outputs + o] += sum[j];
    }
}

// Applies `backward` to the layers, last first.
void mlp_backward(uint first, uint inputs, uint hidden_at, uint width, uint hidden, uint result_at,
                  uint outputs, uint first_weight)
{
    uint to = result_at, count = outputs;
    uint weight = first_weight + (inputs + (hidden - 1u) * width) * width;
    for (uint layer = hidden; layer > 0u; layer--) {
        uint from = hidden_at + (layer - 1u) * width;
        layer_backward(from, width, to, count, weight, true);
        to = from;
        count = width;
        weight -= (layer > 1u ? width : inputs) * width;
    }
    layer_backward(first, inputs, to, count, weight, false);
}

void mlp_weight_gradients(uint first, uint inputs, uint hidden_at, uint width, uint hidden,
                          uint result_at, uint outputs, uint first_weight)
{
    uint from = first, count = inputs, weight = first_weight;
    for (uint layer = 0; layer < hidden; layer++) {
        uint to = hidden_at + layer * width;
        weight_gradient(from, count, to, width, weight);
        weight += count * width;
        from = to;
        count = width;
    }
    weight_gradient(from, count, result_at, outputs, weight);
}

// Everything of one sample: forward again, then the gradients of all values.
void sample_backward(vec3 position, vec3 direction, vec4 gradient)
{
    encode_position(position);
    mlp_forward(DENSITY_MLP);
    encode_direction(direction);
    mlp_forward(COLOR_MLP);
    for (uint k = 0; k < COLOR_OUTPUTS; k++)
        values[ACTIVATIONS + AT_RGB + k] = k < 3u ? gradient[k] : 0.0;
    mlp_backward(COLOR_MLP);
    values[ACTIVATIONS + AT_GEOMETRY] += gradient.w;
    mlp_backward(DENSITY_MLP);
}

void main()
{
    uint mine = gl_LocalInvocationIndex;
    for (uint k = mine; k < config.mlp_params; k += LOCAL_SIZE)
        partials[gl_WorkGroupID.x * config.mlp_params + k] = 0.0;

    // Without compaction the order of the samples is the rays', whatever the timing.
    uint count = DETERMINISTIC != 0u ? min(state.sample_count, config.sample_capacity)
                                     : state.live_count;
    uint tiles = (count + LOCAL_SIZE - 1u) / LOCAL_SIZE;
    uint tile = gl_WorkGroupID.x;
    if (tile >= tiles)
        return;
    do {
        uint i = tile * LOCAL_SIZE + mine;
        bool inside = i < count;
        uint index = inside ? (DETERMINISTIC != 0u ? i : live[i]) : 0u;
        vec4 gradient = inside ? field[index] : vec4(0.0);
        Ray ray = rays[samples[index].ray];
        vec3 direction = vec3(ray.direction[0], ray.direction[1], ray.direction[2]);
        vec3 position = vec3(ray.origin[0], ray.origin[1], ray.origin[2]) + samples[index].t * direction;
        sample_backward(position, direction, gradient);

        uint row = (gl_WorkGroupID.x * LOCAL_SIZE + mine) * ROW;
        for (uint k = 0; k < AT_RGB; k++)
            scratch[row + k] = values[k];
        for (uint k = ACTIVATIONS + AT_DENSITY; k < 2u * ACTIVATIONS; k++)
            scratch[row + k] = values[k];
        if (inside)
            scatter_position_gradient(position);
        memoryBarrierBuffer();
        barrier();
        mlp_weight_gradients(DENSITY_MLP);
        mlp_weight_gradients(COLOR_MLP);
        barrier(); // the next tile overwrites the scratch memory
        tile += gl_NumWorkGroups.x;
    } while (tile < tiles);
}
