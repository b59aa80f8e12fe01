// Evaluates the MLPs with one row of values per invocation, in f32 or packed f16 arithmetic.
//
// A row is in registers (on a CPU device, on the stack), so every index into it must be a constant:
// loops that are not unrolled rotate a window of the row past constant indices. All invocations read
// the same weights, by uniform loads of four. CPU devices load by address (ADDRESSES), because with a
// driver that checks each load against the buffer's end the loads take five times as long.
// Used by the passes that field/mlp.glsl lists, on CPU devices. Reads F16_PARAMS or PARAMS
// [parameter]; with BACKWARD reads and writes SCRATCH [workgroup][value][row].

#ifdef ADDRESSES
#ifdef FP16
#define BIND_WEIGHTS BIND_F16_PARAMS
#else
#define BIND_WEIGHTS BIND_PARAMS
#endif
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Weights { STORAGE_T4 at[]; };
layout(std430, BINDING(ADDRESSES)) readonly buffer AddressBuffer { uvec2 addresses[]; };
Weights weights = Weights(addresses[BIND_WEIGHTS]); // before any loop: see bounded_counter
#define WEIGHTS4(i) weights.at[i]
#elif defined(FP16)
layout(std430, BINDING(F16_PARAMS)) readonly buffer F16FourBuffer { f16vec4 params4[]; };
#define WEIGHTS4(i) params4[i]
#else
layout(std430, BINDING(PARAMS)) readonly buffer FourBuffer { vec4 params4[]; };
#define WEIGHTS4(i) params4[i]
#endif

const uint ACTIVATIONS = AT_RGB + COLOR_OUTPUTS;

const uint ROW_DIRECTION = AT_DIRECTION;

STORAGE_T values[ACTIVATIONS];

void set_value(uint i, float x)
{
    values[i] = to_storage(ROUND_ACTIVATIONS, x);
}

float get_value(uint i)
{
    return float(values[i]);
}

// Empty: a row belongs to one invocation.
void begin_tile(uint counter)
{
}

void end_tile()
{
}

bool any_row(bool needed)
{
    return subgroupAny(needed);
}

const uint BLOCK = 8;         // sums at a time: 16 would double the compile time and not speed up training
const uint UNROLL_LIMIT = 64; // most values for which code is unrolled: more take long to compile
const uint TILE = 16;         // divides the widths of all layers

uint unrolled_count(uint count)
{
    return count <= UNROLL_LIMIT ? count : count % UNROLL_LIMIT == 0u ? UNROLL_LIMIT : TILE;
}

// Rotates the `count` values of the row from `from` on by `by` values. A whole loop leaves the row
// unchanged.
#define ROTATE(row, from, count, by)                 \
    {                                                \
        STORAGE_T first[UNROLL_LIMIT];               \
        [[unroll]] for (uint t = 0; t < by; t++)     \
            first[t] = row[from + t];                \
        [[unroll]] for (uint t = by; t < count; t++) \
            row[from + t - by] = row[from + t];      \
        [[unroll]] for (uint t = 0; t < by; t++)     \
            row[from + count - by + t] = first[t];   \
    }

// Returns the counter of a loop over weights, uniform for all lanes and clamped below `end`, because
// some drivers run a loop's body once with all lanes off and the counter unset, and loads by address
// are not checked. Addresses are loaded before the loops, because such a driver may load 0 with all
// lanes off (lavapipe from Mesa 26.2 on).
uint bounded_counter(uint counter, uint end, uint by)
{
    return min(uniform_value(counter), end - by);
}

float sum[BLOCK];

void clear_sums()
{
    [[unroll]] for (uint j = 0; j < BLOCK; j++)
        sum[j] = 0.0;
}

// Computes sum[j] += values[from + k] * params[weight + k * outputs + j] for k < count and j < block.
// Packed products are added in f16 over eight k, then in FP32.
void add_forward(Layer layer, uint count, uint weight, uint block)
{
    [[unroll]] for (uint k = 0; k < count; k += 8u) {
        COMPUTE_T4 packed_sum[BLOCK / 4u];
        [[unroll]] for (uint j = 0; j < block / 4u; j++)
            packed_sum[j] = COMPUTE_T4(0.0);
        [[unroll]] for (uint c = 0; c < 8u; c++) {
            STORAGE_T x = values[layer.from + k + c];
            [[unroll]] for (uint j = 0; j < block / 4u; j++) {
                STORAGE_T4 w = WEIGHTS4((weight + (k + c) * layer.outputs) / 4u + j);
                if (PACKED_PRODUCTS)
                    packed_sum[j] += x * w;
                else
                    [[unroll]] for (uint e = 0; e < 4u; e++)
                        sum[4u * j + e] += float(x) * float(w[e]);
            }
        }
        [[unroll]] for (uint j = 0; j < block; j++)
            sum[j] = round_to(ROUND_SUMS, PACKED_PRODUCTS ? sum[j] + float(packed_sum[j / 4u][j & 3u]) : sum[j]);
    }
}

// Computes values[to + n] = sum over k of values[from + k] * params[weight + k * outputs + n].
void layer_forward(Layer layer)
{
    uint used = used_outputs(layer), block = min(used, BLOCK), unrolled = unrolled_count(layer.inputs);
    [[dont_unroll]] for (uint next = 0; next < used; next += block) {
        uint weight = layer.weight + bounded_counter(next, used, block);
        clear_sums();
        if (unrolled == layer.inputs)
            add_forward(layer, unrolled, weight, block);
        else
            [[dont_unroll]] for (uint k = 0; k < layer.inputs; k += unrolled) {
                uint at = bounded_counter(k, layer.inputs, unrolled);
                add_forward(layer, unrolled, weight + at * layer.outputs, block);
                ROTATE(values, layer.from, layer.inputs, unrolled)
            }
        [[unroll]] for (uint j = block; j < used; j++)
            values[layer.to + j - block] = values[layer.to + j];
        [[unroll]] for (uint j = 0; j < block; j++)
            values[layer.to + used - block + j] =
                to_storage(ROUND_ACTIVATIONS, layer.is_last ? sum[j] : max(sum[j], 0.0));
    }
}

void density_forward()
{
    FROM_FIRST_LAYER(layer_forward, 0u, DENSITY_END)
}

void color_forward()
{
    FROM_FIRST_LAYER(layer_forward, DENSITY_END, COLOR_END)
}

#ifdef BACKWARD
STORAGE_T gradients[ACTIVATIONS];

void set_gradient(uint i, float x)
{
    gradients[i] = round_gradient(x);
}

float get_gradient(uint i)
{
    return float(gradients[i]);
}

// Computes sum[j] += gradients[to + n] * params[weight + j * outputs + n] for n < count.
void add_backward(Layer layer, uint count, uint weight)
{
    [[unroll]] for (uint n = 0; n < count; n += 4u) {
        [[unroll]] for (uint j = 0; j < BLOCK; j++) {
            STORAGE_T4 w = WEIGHTS4((weight + j * layer.outputs + n) / 4u);
            if (PACKED_PRODUCTS) {
                COMPUTE_T2 packed_sum = COMPUTE_T2(gradients[layer.to + n], gradients[layer.to + n + 1u]) * w.xy +
                                  COMPUTE_T2(gradients[layer.to + n + 2u], gradients[layer.to + n + 3u]) * w.zw;
                sum[j] += float(packed_sum.x) + float(packed_sum.y);
            } else {
                [[unroll]] for (uint e = 0; e < 4u; e++)
                    sum[j] += float(gradients[layer.to + n + e]) * float(w[e]);
            }
            sum[j] = round_to(ROUND_SUMS, sum[j]);
        }
    }
}

// Computes gradients[from + k] = sum over n of gradients[to + n] * params[weight + k * outputs + n],
// and zero where the ReLU was off.
void layer_backward(Layer layer)
{
    uint inputs = inputs_with_gradients(layer), used = used_outputs(layer), unrolled = unrolled_count(used);
    [[dont_unroll]] for (uint next = 0; next < inputs; next += BLOCK) {
        uint weight = layer.weight + bounded_counter(next, inputs, BLOCK) * layer.outputs;
        clear_sums();
        if (unrolled == used)
            add_backward(layer, unrolled, weight);
        else
            [[dont_unroll]] for (uint n = 0; n < used; n += unrolled) {
                add_backward(layer, unrolled, weight + bounded_counter(n, used, unrolled));
                ROTATE(gradients, layer.to, used, unrolled)
            }
        [[unroll]] for (uint j = BLOCK; j < inputs; j++)
            gradients[layer.from + j - BLOCK] = gradients[layer.from + j];
        [[unroll]] for (uint j = 0; j < BLOCK; j++)
            set_gradient(layer.from + inputs - BLOCK + j, sum[j]);
    }
    if (!layer.is_first)
        [[unroll]] for (uint k = 0; k < inputs; k++)
            gradients[layer.from + k] =
                values[layer.from + k] > STORAGE_T(0.0) ? gradients[layer.from + k] : STORAGE_T(0.0);
}

// ---- weight gradients: sums over rows, of which each invocation has one ---------------------------
// The workgroup's scratch memory stores the rows, [value][row]. After GRADIENT_TILES tiles each lane
// sums the weight gradients of one output, and all lanes read the same rows.

layout(constant_id = SPEC_GRADIENT_TILES) const uint GRADIENT_TILES = 1;

const uint SUBGROUPS = LOCAL_SIZE / SUBGROUP_SIZE;
const uint SLOTS = GRADIENT_TILES * LOCAL_SIZE;
// Rows per value in the scratch memory, padded so that neighbouring values do not share a cache set.
const uint ROWS = SLOTS + 16u;

layout(std430, BINDING(SCRATCH)) workgroupcoherent buffer ScratchBuffer { STORAGE_T scratch[]; };
layout(std430, BINDING(SCRATCH)) workgroupcoherent buffer ScratchFourBuffer { STORAGE_T4 scratch4[]; };
#ifdef ADDRESSES
layout(buffer_reference, std430, buffer_reference_align = 8) workgroupcoherent buffer Scratch { STORAGE_T4 at[]; };
Scratch scratch_rows = Scratch(addresses[BIND_SCRATCH]);
#define SCRATCH4(i) scratch_rows.at[i]
#else
#define SCRATCH4(i) scratch4[i]
#endif

uint kept_tiles = 0u; // tiles that the scratch memory holds

uint scratch_begin()
{
    return gl_WorkGroupID.x * 2u * ACTIVATIONS * ROWS;
}

// Computes partials += inputs^T * gradient of the outputs, in FP32 or rounded by the policy after
// each eight rows. Subgroups share the weights.
void weight_gradient(Layer layer, uint rows)
{
    uint used = used_outputs(layer);
    // Half of UNROLL_LIMIT: the full limit would take a quarter of the shader's compile time and be no
    // faster.
    uint block = layer.inputs % (UNROLL_LIMIT / 2u) == 0u ? UNROLL_LIMIT / 2u : TILE;
    uint columns = (used + SUBGROUP_SIZE - 1u) / SUBGROUP_SIZE;
    uint units = layer.inputs / block * columns;
    uint partial = gl_WorkGroupID.x * config.summed_params + layer.weight;
    [[dont_unroll]] for (uint next = gl_SubgroupID; next < units; next += SUBGROUPS) {
        uint unit = bounded_counter(next, units, 1u);
        uint i = unit / columns * block;
        uint o = unit % columns * SUBGROUP_SIZE + gl_SubgroupInvocationID;
        uint input_at = (scratch_begin() + (layer.from + i) * ROWS) / 4u;
        uint gradient_at =
            (scratch_begin() + (ACTIVATIONS + layer.to + min(o, used - 1u)) * ROWS) / 4u;
        float sums[UNROLL_LIMIT / 2u];
        [[unroll]] for (uint k = 0; k < block; k++)
            sums[k] = 0.0;
        [[dont_unroll]] for (uint next_row = 0; next_row < rows / 4u; next_row += 2u) {
            uint row = bounded_counter(next_row, SLOTS / 4u, 2u);
            vec4 g0 = vec4(SCRATCH4(gradient_at + row)), g1 = vec4(SCRATCH4(gradient_at + row + 1u));
            [[unroll]] for (uint k = 0; k < block; k++) {
                vec4 x0 = vec4(SCRATCH4(input_at + k * (ROWS / 4u) + row));
                vec4 x1 = vec4(SCRATCH4(input_at + k * (ROWS / 4u) + row + 1u));
                [[unroll]] for (uint e = 0; e < 4u; e++)
                    sums[k] += x0[e] * g0[e];
                [[unroll]] for (uint e = 0; e < 4u; e++)
                    sums[k] += x1[e] * g1[e];
                sums[k] = round_to(ROUND_WEIGHT_SUMS, sums[k]);
            }
        }
        if (o < used)
            [[unroll]] for (uint k = 0; k < block; k++) {
                uint at = partial + (i + k) * layer.outputs + o;
                partials[at] = round_to(ROUND_WEIGHT_SUMS, partials[at] + sums[k]);
            }
    }
}

void tile_barrier()
{
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer,
                   gl_SemanticsAcquireRelease);
}

void begin_sums()
{
    for (uint k = gl_LocalInvocationID.x; k < config.first_layered; k += LOCAL_SIZE)
        partials[gl_WorkGroupID.x * config.summed_params + k] = 0.0;
    // Waits, because the lane that clears a sum is not the lane that adds to the sum.
    tile_barrier();
}

void end_sums()
{
}

void store_row()
{
    uint row = scratch_begin() + kept_tiles * LOCAL_SIZE + gl_LocalInvocationID.x;
    [[unroll]] for (uint k = 0; k < AT_RGB; k++)
        scratch[row + k * ROWS] = values[k];
    [[unroll]] for (uint k = AT_DENSITY; k < AT_RGB + RGB; k++)
        if (k < AT_DIRECTION || k >= AT_COLOR)
            scratch[row + (ACTIVATIONS + k) * ROWS] = gradients[k];
}

void tile_backward(vec4 gradient, bool at_end)
{
    [[unroll]] for (uint k = 0; k < RGB; k++)
        set_gradient(AT_RGB + k, output_gradient(gradient, k));
    if (COLORED) {
        FROM_LAST_LAYER(layer_backward, DENSITY_END, LAYERS)
        set_gradient(AT_GEOMETRY, get_gradient(AT_GEOMETRY) + gradient.w);
    }
    FROM_LAST_LAYER(layer_backward, 0u, DENSITY_END)

    store_row();
    kept_tiles++;
    if (kept_tiles < GRADIENT_TILES && !at_end)
        return;
    tile_barrier();
#define WEIGHT_GRADIENT(layer) weight_gradient(layer, kept_tiles * LOCAL_SIZE)
    FROM_FIRST_LAYER(WEIGHT_GRADIENT, 0u, LAYERS)
    tile_barrier(); // the next tile overwrites the scratch memory
    kept_tiles = 0u;
}
#endif
