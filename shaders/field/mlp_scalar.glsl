// The MLPs with one row of private values per invocation, in FP32 or packed 16-bit arithmetic.

const uint ACTIVATIONS = AT_RGB + COLOR_OUTPUTS;

// The activations; in the backward pass the gradient of each follows ACTIVATIONS further on.
#ifdef BACKWARD
REAL values[2u * ACTIVATIONS];
#else
REAL values[ACTIVATIONS];
#endif

void set_value(uint i, float x)
{
    values[i] = REAL(x);
}

float get_value(uint i)
{
    return float(values[i]);
}

bool any_row(bool needed)
{
    return subgroupAny(needed);
}

// What becomes of a layer's sums.
const uint KEEP = 0u;    // the outputs as they are
const uint RECTIFY = 1u; // ReLU
const uint INPUT = 2u;   // gradients
const uint MASK = 3u;    // gradients behind a ReLU: zero where the activation is

void put_sum(uint at, float sum, uint kind)
{
    if (kind == RECTIFY)
        sum = max(sum, 0.0);
#ifdef BACKWARD
    if (kind == MASK)
        sum = values[at - ACTIVATIONS] > REAL(0.0) ? sum : 0.0;
#ifdef FP16
    if (kind == INPUT || kind == MASK) {
        values[at] = round_gradient(sum);
        return;
    }
#endif
#endif
    values[at] = REAL(sum);
}

// values[to + n] = sum over k of values[from + k] * params[weight + k * stride_k + n * stride_n],
// for n < outputs: a layer forward (stride_n = 1) or its transpose (stride_k = 1).
//
// Eight neighbouring lanes fetch sixteen weights and broadcast them, which costs a CPU device a third
// of uniform loads with their range checks. The unrolled eight inputs keep the sums in registers.
void product(uint from, uint inputs, uint to, uint outputs, uint weight, uint stride_k,
             uint stride_n, uint kind)
{
    uint mine = (gl_SubgroupInvocationID & 7u) * stride_n;
    for (uint n = 0; n < outputs; n += 16u) {
        float sum[16];
        [[unroll]] for (uint j = 0; j < 16u; j++)
            sum[j] = 0.0;
        for (uint k = 0; k < inputs; k += 8u) {
#ifdef FP16
            // Pairs of outputs 8 apart; sums of eight products, then added in FP32.
            f16vec2 pair[8];
            [[unroll]] for (uint j = 0; j < 8u; j++)
                pair[j] = f16vec2(0.0);
#endif
            [[unroll]] for (uint c = 0; c < 8u; c++) {
                REAL x = values[from + k + c];
                uint at = weight + (k + c) * stride_k + n * stride_n + mine;
                REAL low = params[at], high = params[at + 8u * stride_n];
#ifdef FP16
                uint both = packFloat2x16(f16vec2(low, high));
                [[unroll]] for (uint j = 0; j < 8u; j++)
                    pair[j] += f16vec2(x) * unpackFloat2x16(subgroupBroadcast(both, j));
#else
                [[unroll]] for (uint j = 0; j < 8u; j++) {
                    sum[j] += x * subgroupBroadcast(low, j);
                    sum[8u + j] += x * subgroupBroadcast(high, j);
                }
#endif
            }
#ifdef FP16
            [[unroll]] for (uint j = 0; j < 8u; j++) {
                sum[j] += float(pair[j].x);
                sum[8u + j] += float(pair[j].y);
            }
#endif
        }
        [[unroll]] for (uint j = 0; j < 16u; j++)
            put_sum(to + n + j, sum[j], kind);
    }
}

void mlp_forward(uint begin, uint end)
{
    [[unroll]] for (uint i = begin; i < end; i++) {
        Layer layer = layer_at(i);
        product(layer.from, layer.inputs, layer.to, layer.outputs, layer.weight, layer.outputs, 1u,
                layer.last ? KEEP : RECTIFY);
    }
}

#ifdef BACKWARD
// A tile of LOCAL_SIZE rows leaves its values in the workgroup's own scratch memory, from which the
// weight gradients are formed.
layout(std430, set = 0, binding = BIND_SCRATCH) workgroupcoherent buffer ScratchBuffer { REAL scratch[]; };

const uint ROW = 2u * ACTIVATIONS; // of a sample in the scratch memory
const uint SUBGROUPS = LOCAL_SIZE / SUBGROUP_SIZE;

void set_gradient(uint i, float x)
{
#ifdef FP16
    values[ACTIVATIONS + i] = round_gradient(x);
#else
    values[ACTIVATIONS + i] = x;
#endif
}

float get_gradient(uint i)
{
    return float(values[ACTIVATIONS + i]);
}

// Gradient of the layers' inputs from that of the last one's outputs.
void mlp_backward(uint begin, uint end)
{
    [[unroll]] for (uint i = end; i > begin; i--) {
        Layer layer = layer_at(i - 1u);
        product(ACTIVATIONS + layer.to, layer.outputs, ACTIVATIONS + layer.from, layer.inputs,
                layer.weight, 1u, layer.outputs, layer.first ? INPUT : MASK);
    }
}

// partials += inputs^T * gradient of the outputs, over the tile's rows, in FP32. Lanes are outputs;
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
                float g = float(scratch[gradient_at + row + c * ROW]);
                float low = float(scratch[input_at + row + c * ROW]);
                float high = float(scratch[input_at + row + c * ROW + 8u]);
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

void tile_barrier()
{
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer,
                   gl_SemanticsAcquireRelease);
}

void begin_sums()
{
    for (uint k = gl_LocalInvocationIndex; k < config.mlp_params; k += LOCAL_SIZE)
        partials[gl_WorkGroupID.x * config.mlp_params + k] = 0.0;
    // The lanes that add to a weight are not the one that cleared it.
    tile_barrier();
}

void end_sums()
{
}

void tile_backward(vec4 gradient)
{
    for (uint k = 0; k < COLOR_OUTPUTS; k++)
        set_gradient(AT_RGB + k, k < 3u ? gradient[k] : 0.0);
    mlp_backward(COLOR_MLP);
    set_gradient(AT_GEOMETRY, get_gradient(AT_GEOMETRY) + gradient.w);
    mlp_backward(DENSITY_MLP);

    uint row = (gl_WorkGroupID.x * LOCAL_SIZE + gl_LocalInvocationIndex) * ROW;
    for (uint k = 0; k < AT_RGB; k++)
        scratch[row + k] = values[k];
    for (uint k = ACTIVATIONS + AT_DENSITY; k < 2u * ACTIVATIONS; k++)
        scratch[row + k] = values[k];
    tile_barrier();
    [[unroll]] for (uint i = 0; i < LAYERS; i++) {
        Layer layer = layer_at(i);
        weight_gradient(layer.from, layer.inputs, layer.to, layer.outputs, layer.weight);
    }
    tile_barrier(); // the next tile overwrites the scratch memory
}
#endif
