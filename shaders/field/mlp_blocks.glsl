// Computes the matrix products of the MLPs in blocks of registers, in f32 or packed f16 arithmetic,
// for GPUs without cooperative matrices. An invocation computes the sums of some rows by four columns
// or, for weight gradients, of some inputs by four outputs. Each load reads four weights, mostly
// the same four as neighbouring lanes.
// Used by the passes that field/mlp.glsl lists, PATH_tiled. Reads F16_PARAMS or PARAMS [parameter].

#ifdef FP16
layout(std430, BINDING(F16_PARAMS)) readonly buffer FourBuffer { f16vec4 params4[]; };
#else
layout(std430, BINDING(PARAMS)) readonly buffer FourBuffer { vec4 params4[]; };
#endif
#define WEIGHTS4(i) params4[(i) / 4u]

// Returns the number of units (four outputs of a row or of an input) that an invocation computes, all
// in one column: a power of two, so that all shares are equal, and at most the number of the tile's
// rows.
#define BLOCK(units) BLOCK_UP(((units) + LOCAL_SIZE - 1u) / LOCAL_SIZE)
#define BLOCK_UP(b) ((b) <= 2u ? (b) : (b) <= 4u ? 4u : (b) <= 8u ? 8u : 16u)

// Empty, because the loops are not unrolled and so compilers do not move the loads of weights.
void begin_tile(uint counter)
{
}

vec4 block_sums[BLOCK(TILE_ROWS * (WIDEST / 4u))];

STORAGE_T4 tile_four(uint at)
{
    return tile4[at / 4u];
}

// Adds values[k] * weights[k][column ...] for eight k to block_sums[r]. Packed products are added in
// f16 over the eight k, then in FP32. `spread`: rows from one row of the block to the next.
void add_by_input(uint block, uint spread, uint row, uint at, uint weight, uint stride)
{
    STORAGE_T4 w[8];
    [[unroll]] for (uint k = 0; k < 8u; k++)
        w[k] = WEIGHTS4(weight + k * stride);
    [[unroll]] for (uint r = 0; r < block; r++) {
        uint offset = TILE_FIRST + (row + r * spread) * ROW_STRIDE + at;
        STORAGE_T4 x[2] = {tile_four(offset), tile_four(offset + 4u)};
        COMPUTE_T4 packed_sum = COMPUTE_T4(0.0);
        [[unroll]] for (uint k = 0; k < 8u; k++)
            if (PACKED_PRODUCTS)
                packed_sum += x[k / 4u][k % 4u] * w[k];
            else
                block_sums[r] += float(x[k / 4u][k % 4u]) * vec4(w[k]);
        block_sums[r] = round_to(ROUND_SUMS, PACKED_PRODUCTS ? block_sums[r] + vec4(packed_sum) : block_sums[r]);
    }
}

// As add_by_input, but for weights stored by column, weights[column][k ...], and for four k.
void add_by_output(uint block, uint spread, uint row, uint at, uint weight, uint stride)
{
    STORAGE_T4 w[4];
    [[unroll]] for (uint j = 0; j < 4u; j++)
        w[j] = WEIGHTS4(weight + j * stride);
    [[unroll]] for (uint r = 0; r < block; r++) {
        STORAGE_T4 x = tile_four(TILE_FIRST + (row + r * spread) * ROW_STRIDE + at);
        [[unroll]] for (uint j = 0; j < 4u; j++) {
            COMPUTE_T2 packed_sum = PACKED_PRODUCTS ? x.xy * w[j].xy + x.zw * w[j].zw : COMPUTE_T2(0.0);
            float products4 = PACKED_PRODUCTS ? float(packed_sum.x) + float(packed_sum.y) : dot(vec4(x), vec4(w[j]));
            block_sums[r][j] = round_to(ROUND_SUMS, block_sums[r][j] + products4);
        }
    }
}

// `weight`: of each value among the counts of gradients.
void store_sums(vec4 x, uint at, uint kind, uint weight)
{
    if (kind == RECTIFY)
        x = max(x, 0.0);
    if (kind == MASK)
        x = mix(vec4(0.0), x, greaterThan(tile_four(at), STORAGE_T4(0.0)));
#ifdef BACKWARD
    if (kind >= INPUT) {
        tile4[at / 4u] = STORAGE_T4(round_gradient(x.x, weight), round_gradient(x.y, weight),
                                    round_gradient(x.z, weight), round_gradient(x.w, weight));
        return;
    }
#endif
    tile4[at / 4u] = to_storage(ROUND_ACTIVATIONS, x);
}

void product(uint from, uint inputs, uint to, uint outputs, uint weight, uint stride, bool transposed,
             uint kind)
{
    uint fours = outputs / 4u, block = BLOCK(TILE_ROWS * fours), spread = TILE_ROWS / block;
    uint column = invocation() % fours * 4u, row = invocation() / fours;
    [[unroll]] for (uint r = 0; r < block; r++)
        block_sums[r] = vec4(0.0);
    uint clamped_row = min(row, spread - 1u); // no branch, because few invocations have no block
    if (transposed)
        [[dont_unroll]] for (uint k = 0; k < inputs; k += 4u)
            add_by_output(block, spread, clamped_row, from + k, weight + column * stride + k, stride);
    else
        [[dont_unroll]] for (uint k = 0; k < inputs; k += 8u)
            add_by_input(block, spread, clamped_row, from + k, weight + k * stride + column, stride);
    rows_barrier();
    if (row < spread)
        [[unroll]] for (uint r = 0; r < block; r++)
            store_sums(block_sums[r], TILE_FIRST + (row + r * spread) * ROW_STRIDE + to + column, kind,
                       r == 0u ? block : 0u);
    rows_barrier();
}

void forward_product(Layer layer)
{
    product(layer.from, layer.inputs, layer.to, used_outputs(layer), layer.weight, layer.outputs, false,
            layer.is_last ? KEEP : RECTIFY);
}

#ifdef BACKWARD
// ---- weight gradients -------------------------------------------------------------------------------

// Number of a layer's inputs, each with four outputs, whose weight gradients an invocation sums at a
// time: the invocation's whole share if the sums stay in registers, otherwise 4.
#define SLOTS(inputs, outputs) (HOLD_SUMS != 0u ? BLOCK((inputs) * ((outputs) / 4u)) : 4u)
const uint HELD = HOLD_SUMS != 0u ? HELD_SLOTS : 1u;
vec4 held[HELD];
const bool ALL_HELD = false; // registers hold no sums for outputs that are not computed

#define GRADIENT_OUTPUTS(layer) used_outputs(layer)

const uint MOST_SLOTS = SLOTS(WIDEST, WIDEST);
vec4 products[MOST_SLOTS];

// Adds inputs^T * gradient of the outputs over the tile's rows, two rows at a time, to products[i],
// and rounds products[i] by the policy after each row. The counter is clamped below its end, because
// some drivers run the body once with all lanes off and the counter unset.
void add_products(uint slots, uint input_at, uint gradient_at)
{
    [[dont_unroll]] for (uint next = 0; next < TILE_ROWS; next += 2u)
        [[unroll]] for (uint r = 0; r < 2u; r++) {
            uint offset = TILE_FIRST + (min(next, TILE_ROWS - 2u) + r) * ROW_STRIDE;
            vec4 g = vec4(tile_four(offset + gradient_at));
            if (slots >= 4u)
                [[unroll]] for (uint i = 0; i < slots; i += 4u) {
                    vec4 x = vec4(tile_four(offset + input_at + i));
                    [[unroll]] for (uint e = 0; e < 4u; e++)
                        products[i + e] = round_to(ROUND_WEIGHT_SUMS, products[i + e] + x[e] * g);
                }
            else
                [[unroll]] for (uint i = 0; i < slots; i++)
                    products[i] =
                        round_to(ROUND_WEIGHT_SUMS, products[i] + float(TILE(offset + input_at + i)) * g);
        }
}

// Adds to the weight gradients of `slots` inputs from i on by four outputs from o on or, at the end,
// stores these weight gradients.
void add_block(Layer layer, uint i, uint o, uint slots, bool at_end)
{
    uint at = gl_WorkGroupID.x * config.summed_params + layer.weight + i * layer.outputs + o;
    [[unroll]] for (uint s = 0; s < slots; s++)
        products[s] = HOLD_SUMS != 0u ? held[next_slot + s] : vec4(0.0);
    if (!at_end)
        add_products(slots, layer.from + i, layer.to + o);
    [[unroll]] for (uint s = 0; s < slots; s++) {
        if (HOLD_SUMS != 0u)
            held[next_slot + s] = products[s];
        if (at_end || HOLD_SUMS == 0u)
            [[unroll]] for (uint e = 0; e < 4u; e++)
                partials[at + s * layer.outputs + e] =
                    round_to(ROUND_WEIGHT_SUMS, partials[at + s * layer.outputs + e] + products[s][e]);
    }
}

void weight_gradient(Layer layer, bool at_end)
{
    uint outputs = used_outputs(layer), fours = outputs / 4u, slots = SLOTS(layer.inputs, outputs);
    uint units = layer.inputs / slots * fours;
    if (HOLD_SUMS != 0u) {
        if (invocation() < units)
            add_block(layer, invocation() / fours * slots, invocation() % fours * 4u, slots, at_end);
        next_slot += slots;
    } else {
        [[dont_unroll]] for (uint first = 0; first < units; first += LOCAL_SIZE) { // all lanes stay in the loop
            uint unit = first + invocation();
            if (unit < units)
                add_block(layer, unit / fours * slots, unit % fours * 4u, slots, at_end);
        }
    }
}

void clear_held()
{
    if (HOLD_SUMS != 0u)
        [[unroll]] for (uint i = 0; i < HELD; i++)
            held[i] = vec4(0.0);
}
#endif
