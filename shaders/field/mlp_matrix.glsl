// Computes the matrix products of the MLPs by cooperative matrices of MATRIX_M x MATRIX_N x MATRIX_K,
// accumulated in ACCUM_T, and weight gradients accumulated in FP32.
//
// KHR_cooperative_matrix hides which lane holds which element and cannot convert an accumulator to a
// multiplicand, so layers exchange values through the tile in shared memory. Shapes are literals,
// because some drivers compile shapes from specialisation constants badly.
//   STAGED        the device has no f16 accumulators: sums are rounded lane by lane in shared memory
//   CONVERSIONS   NV_cooperative_matrix2: activations of hidden layers stay in matrices
// Used by the passes that field/mlp.glsl lists, with COOPMAT. Reads F16_PARAMS [parameter] f16.

layout(std430, BINDING(F16_PARAMS)) readonly buffer F16Buffer { f16vec2 param_pairs[]; };

const uint M_TILES = OWNED / MATRIX_M;
const uint A_TILES = WIDEST / MATRIX_K * M_TILES;

#include "field/matrix.glsl"

// Always 0, which compilers cannot know: otherwise they would load all weights before the loop over
// tiles and spill them. Compilers do know that opaque_zero is below 2, so constants remain part of
// load instructions.
uint opaque_zero = 0u;

void begin_tile(uint counter)
{
    if (CPU_KERNELS == 0u)
        opaque_zero = counter >> 31;
}

// Returns how many of the `units` each sharer gets: a power of two or a multiple of four, so that the
// compiler knows which units of a share are neighbours in a column or a row.
#define SHARE(units, sharers) SHARE_UP(((units) + (sharers) - 1u) / (sharers))
#define SHARE_UP(share) ((share) <= 2u ? (share) : ((share) + 3u) / 4u * 4u)

// Returns whether a unit exists. `all`: number of units in all shares, including those that do not
// exist; the result is a constant if no share is partly empty. With short subgroups (Intel) the test
// stays at run time, because Intel's compiler moves the loads of straight-line code to its start and
// spills.
#define HAS_UNIT(unit, units, all) \
    (SUBGROUP_SIZE < 32u ? (unit) < (units) + opaque_zero : (all) <= (units) || (unit) < (units))

// Returns the index of the first row that this subgroup's matrices hold.
uint owned_rows()
{
    return TILE_FIRST + gl_SubgroupID / SHARERS * OWNED * ROW_STRIDE;
}

// ---- sums to f16 values -----------------------------------------------------------------------------

#ifdef STAGED
shared float staging[SUBGROUPS * MATRIX_M * MATRIX_N];

void staging_barrier()
{
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared,
                   gl_SemanticsAcquireRelease);
}

// All subgroups call this function, with a sum or without one, because a driver may treat a subgroup's
// barriers as the workgroup's.
void store_sum(MATRIX_SUM(ACCUM_T) sum, uint m, uint n, uint first_value, uint kind, bool has_sum)
{
    uint at = owned_rows() + m * MATRIX_M * ROW_STRIDE + first_value + n * MATRIX_N;
    uint first = gl_SubgroupID * MATRIX_M * MATRIX_N;
    if (has_sum)
        coopMatStore(sum, staging, first, MATRIX_N, ROW_MAJOR);
    staging_barrier();
    for (uint i = gl_SubgroupInvocationID; has_sum && i < MATRIX_M * MATRIX_N; i += SUBGROUP_SIZE) {
        float x = staging[first + i];
        uint to = at + i / MATRIX_N * ROW_STRIDE + i % MATRIX_N;
        if (kind == RECTIFY)
            x = max(x, 0.0);
        if (kind == MASK)
            x = tile[to] > float16_t(0.0) ? x : 0.0;
#ifdef BACKWARD
        tile[to] = kind >= INPUT ? round_gradient(x) : float16_t(x);
#else
        tile[to] = float16_t(x);
#endif
    }
    staging_barrier(); // the next sum uses the same memory
}

#else
// Returns whether sums are also stored by row, for the next product. No product follows the gradients
// of the features or, with BACKWARD, the last hidden activations, which only weight gradients read.
bool by_row(uint first_value, uint kind)
{
    return !BY_COLUMN || first_value != 0u && (kind != RECTIFY || !COLORED || first_value != AT_RGB - COLOR_WIDTH);
}

// Elements of two matrices correspond only if their types are equal: f16 activations are widened
// before they are compared, and underflow is detected before rounding, because drivers may elide a
// rounding that is followed by widening.
void store_sum(MATRIX_SUM(ACCUM_T) sum, uint m, uint n, uint first_value, uint kind, bool has_sum)
{
    if (!has_sum)
        return;
    uint at = owned_rows() + m * MATRIX_M * ROW_STRIDE + IN_ROW(first_value) + n * MATRIX_N;
    uint column = column_at(first_value + n * MATRIX_N) + m * MATRIX_M;
    if (kind == RECTIFY)
        for (int i = 0; i < sum.length(); i++)
            sum[i] = max(sum[i], ACCUM_T(0.0));
#ifdef BACKWARD
    if (kind == MASK) {
        MATRIX_SUM(float16_t) activation;
        if (BY_COLUMN)
            coopMatLoad(activation, tile, column, COLUMN_STRIDE, COLUMN_MAJOR);
        else
            coopMatLoad(activation, tile, at, ROW_STRIDE, ROW_MAJOR);
        MATRIX_SUM(ACCUM_T) widened = MATRIX_SUM(ACCUM_T)(activation);
        for (int i = 0; i < sum.length(); i++)
            sum[i] = widened[i] > ACCUM_T(0.0) ? sum[i] : ACCUM_T(0.0);
    }
#endif
    MATRIX_SUM(float16_t) rounded = MATRIX_SUM(float16_t)(sum);
#ifdef BACKWARD
    if (kind >= INPUT)
        count_elements(sum);
#endif
    if (by_row(first_value, kind))
        coopMatStore(rounded, tile, at, ROW_STRIDE, ROW_MAJOR);
    if (BY_COLUMN && (kind != KEEP || !COLORED)) // store_input_columns stores inputs; no layer reads raw density
        coopMatStore(rounded, tile, column, COLUMN_STRIDE, COLUMN_MAJOR);
}
#endif

// ---- products -------------------------------------------------------------------------------------
//
// CPU devices keep the owned rows in `operand` and loop over the outputs. On GPUs all loops are
// unrolled; a subgroup keeps its share of the sums and iterates over the inputs, so that registers
// hold the sums, one matrix of weights and one of rows.

layout(constant_id = SPEC_TRANSPOSED) const uint TRANSPOSED_WEIGHTS = 0;

// Loads weights of the rows from k * MATRIX_K on and the columns from n * MATRIX_N on. `transposed`:
// the weights are stored by column.
MATRIX_B load_weights(uint k, uint n, uint weight, uint stride, bool transposed)
{
    MATRIX_B weights;
    uint pair = opaque_zero + weight / 2u;
    if (transposed)
        coopMatLoad(weights, param_pairs, pair + n * (MATRIX_N / 2u * stride) + k * (MATRIX_K / 2u),
                    stride / 2u, COLUMN_MAJOR);
    else
        coopMatLoad(weights, param_pairs, pair + k * (MATRIX_K / 2u * stride) + n * (MATRIX_N / 2u),
                    stride / 2u, ROW_MAJOR);
    return weights;
}

MATRIX_A load_rows(uint m, uint k, uint from)
{
    MATRIX_A rows;
    coopMatLoad(rows, tile, owned_rows() + m * MATRIX_M * ROW_STRIDE + from + k * MATRIX_K, ROW_STRIDE, ROW_MAJOR);
    return rows;
}

MATRIX_A operand[A_TILES]; // the owned rows of a layer's inputs

void load_operand(uint from, uint inputs)
{
    [[unroll]] for (uint k = 0; k < loop_bound(inputs / MATRIX_K); k++)
        [[unroll]] for (uint m = 0; m < loop_bound(M_TILES); m++)
            operand[k * M_TILES + m] = load_rows(m, k, from);
}

// Computes sums = operand * the weights' columns from n * MATRIX_N on.
void multiply(uint inputs, uint n, uint weight, uint stride, bool transposed,
              out MATRIX_SUM(ACCUM_T) sums[M_TILES])
{
    [[unroll]] for (uint m = 0; m < loop_bound(M_TILES); m++)
        sums[m] = MATRIX_SUM(ACCUM_T)(0.0);
    [[unroll]] for (uint k = 0; k < loop_bound(inputs / MATRIX_K); k++) {
        MATRIX_B weights = load_weights(k, n, weight, stride, transposed);
        [[unroll]] for (uint m = 0; m < loop_bound(M_TILES); m++)
            sums[m] = coopMatMulAdd(operand[k * M_TILES + m], weights, sums[m]);
    }
}

// Stores operand * weights to columns from `to` on. First waits until all subgroups have loaded their
// rows, because the products may overwrite the rows.
void store_products(uint inputs, uint to, uint outputs, uint weight, uint stride, bool transposed,
                    uint kind)
{
    rows_barrier();
    [[unroll]] for (uint n = gl_SubgroupID % SHARERS; n < loop_bound(outputs / MATRIX_N); n += SHARERS) {
        MATRIX_SUM(ACCUM_T) sums[M_TILES];
        multiply(inputs, n, weight, stride, transposed, sums);
        [[unroll]] for (uint m = 0; m < loop_bound(M_TILES); m++)
            store_sum(sums[m], m, n, to, kind, true);
    }
    rows_barrier();
}

const uint MOST_SUMS = SHARE(M_TILES * (WIDEST / MATRIX_N), SHARERS);

void unrolled_product(uint from, uint inputs, uint to, uint outputs, uint weight, uint stride,
                     bool transposed, uint kind)
{
    uint units = M_TILES * (outputs / MATRIX_N), share = SHARE(units, SHARERS);
    uint first = gl_SubgroupID % SHARERS * share;
    bool some_idle = SHARERS * share > units;
    MATRIX_SUM(ACCUM_T) sums[MOST_SUMS];
    [[unroll]] for (uint i = 0; i < share; i++)
        sums[i] = MATRIX_SUM(ACCUM_T)(0.0);
    if (!some_idle || first < units)
        [[unroll]] for (uint k = 0; k < inputs / MATRIX_K; k++) {
            MATRIX_B weights;
            [[unroll]] for (uint i = 0; i < share; i++) {
                uint unit = some_idle ? min(first + i, units - 1u) : first + i;
                if (i % M_TILES == 0u || share % M_TILES != 0u && M_TILES % share != 0u)
                    weights = load_weights(k, unit / M_TILES, weight, stride, transposed);
                sums[i] = coopMatMulAdd(load_rows(unit % M_TILES, k, IN_ROW(from)), weights, sums[i]);
            }
        }
    rows_barrier();
    [[unroll]] for (uint i = 0; i < share; i++) {
        uint unit = first + i;
        bool has_sum = HAS_UNIT(unit, units, SHARERS * share);
        store_sum(sums[i], unit % M_TILES, unit / M_TILES, to, kind, has_sum);
    }
    rows_barrier();
}

void product(uint from, uint inputs, uint to, uint outputs, uint weight, uint stride, bool transposed,
             uint kind)
{
    if (CPU_KERNELS != 0u) {
        load_operand(from, inputs);
        store_products(inputs, to, outputs, weight, stride, transposed, kind);
    } else
        unrolled_product(from, inputs, to, outputs, weight, stride, transposed, kind);
}

#ifdef CONVERSIONS
// Computes a hidden layer without the tile: the rectified outputs become the next operand. Requires
// one subgroup per row and MATRIX_N == MATRIX_K.
void convert_product(uint inputs, uint outputs, uint weight, uint stride, bool transposed)
{
    MATRIX_A next[A_TILES];
    [[unroll]] for (uint n = 0; n < loop_bound(outputs / MATRIX_N); n++) {
        MATRIX_SUM(ACCUM_T) sums[M_TILES];
        multiply(inputs, n, weight, stride, transposed, sums);
        [[unroll]] for (uint m = 0; m < loop_bound(M_TILES); m++) {
            for (int i = 0; i < sums[m].length(); i++)
                sums[m][i] = max(sums[m][i], ACCUM_T(0.0));
            next[n * M_TILES + m] = MATRIX_A(sums[m]);
        }
    }
    [[unroll]] for (uint i = 0; i < loop_bound(outputs / MATRIX_K * M_TILES); i++)
        operand[i] = next[i];
}
#endif

#if defined(BACKWARD) && !defined(STAGED)
// Copies a layer's inputs from rows to columns, for layers whose inputs are only in rows.
void store_input_columns(Layer layer)
{
    uint units = M_TILES * (layer.inputs / MATRIX_N);
    [[unroll]] for (uint first = 0; first < units; first += SUBGROUPS) {
        uint unit = first + gl_SubgroupID, m = unit % M_TILES, n = unit / M_TILES;
        if (first + SUBGROUPS <= units || unit < units) {
            MATRIX_SUM(float16_t) inputs;
            coopMatLoad(inputs, tile, owned_rows() + m * MATRIX_M * ROW_STRIDE + n * MATRIX_N, ROW_STRIDE, ROW_MAJOR);
            coopMatStore(inputs, tile, column_at(layer.from + n * MATRIX_N) + m * MATRIX_M, COLUMN_STRIDE,
                         COLUMN_MAJOR);
        }
    }
}
#endif

void forward_product(Layer layer)
{
#if defined(BACKWARD) && !defined(STAGED)
    if (BY_COLUMN && layer.is_first)
        store_input_columns(layer);
#endif
    bool transposed = TRANSPOSED_WEIGHTS != 0u;
    uint weight = layer.weight + TRANSPOSED_WEIGHTS;
    uint stride = transposed ? layer.inputs : layer.outputs;
#ifdef CONVERSIONS
    if (layer.is_first)
        load_operand(layer.from, layer.inputs);
    if (layer.is_last)
        store_products(layer.inputs, layer.to, layer.outputs, weight, stride, transposed, KEEP);
    else
        convert_product(layer.inputs, layer.outputs, weight, stride, transposed);
#else
    product(layer.from, layer.inputs, layer.to, layer.outputs, weight, stride, transposed,
            layer.is_last ? KEEP : RECTIFY);
#endif
}

#ifdef BACKWARD
// ---- weight gradients -------------------------------------------------------------------------------

// Number of a layer's matrices of weights per subgroup.
#define SLOTS(inputs, outputs) SHARE((inputs) / MATRIX_M * ((outputs) / MATRIX_N), SUBGROUPS)
const uint HELD = HOLD_SUMS != 0u ? HELD_SLOTS : 1u;
MATRIX_SUM(float) held[HELD];
const bool ALL_HELD = true; // registers hold the sums of all outputs

// Outputs of a layer that have gradients.
#define GRADIENT_OUTPUTS(layer) (layer).outputs

// Adds inputs^T * gradient of the outputs over the tile's rows to one matrix of weight gradients, and
// rounds the matrix by the policy after each MATRIX_K rows.
void add_products(inout MATRIX_SUM(float) sum, uint input_at, uint gradient_at)
{
    [[unroll]] for (uint row = 0; row < loop_bound(TILE_ROWS); row += MATRIX_K) {
        MATRIX_A input_rows;
        MATRIX_B gradient_rows;
        if (BY_COLUMN) {
            coopMatLoad(input_rows, tile, column_at(input_at) + row, COLUMN_STRIDE, ROW_MAJOR);
            coopMatLoad(gradient_rows, tile, column_at(gradient_at) + row, COLUMN_STRIDE, COLUMN_MAJOR);
        } else {
            coopMatLoad(input_rows, tile, TILE_FIRST + row * ROW_STRIDE + input_at, ROW_STRIDE, COLUMN_MAJOR);
            coopMatLoad(gradient_rows, tile, TILE_FIRST + row * ROW_STRIDE + gradient_at, ROW_STRIDE, ROW_MAJOR);
        }
        sum = coopMatMulAdd(input_rows, gradient_rows, sum);
        if ((ROUNDED & ROUND_WEIGHT_SUMS) != 0u)
            for (int i = 0; i < sum.length(); i++)
                sum[i] = round_to(ROUND_WEIGHT_SUMS, sum[i]);
    }
}

// Adds the tile's products to one matrix of sums in PARTIALS.
void add_in_memory(uint at, uint stride, uint input_at, uint gradient_at)
{
    MATRIX_SUM(float) sum;
    coopMatLoad(sum, partials, at, stride, ROW_MAJOR);
    add_products(sum, input_at, gradient_at);
    coopMatStore(sum, partials, at, stride, ROW_MAJOR);
}

void weight_gradient(Layer layer, bool at_end)
{
    uint columns = layer.outputs / MATRIX_N, units = layer.inputs / MATRIX_M * columns;
    uint slots = SLOTS(layer.inputs, layer.outputs), first = gl_SubgroupID * slots;
    uint begin = gl_WorkGroupID.x * config.summed_params + layer.weight, stride = layer.outputs;
    if (HOLD_SUMS == 0u) {
        [[dont_unroll]] for (uint unit = gl_SubgroupID; unit < units; unit += SUBGROUPS) {
            uint i = unit / columns * MATRIX_M, o = unit % columns * MATRIX_N;
            add_in_memory(begin + i * stride + o, stride, layer.from + i, layer.to + o);
        }
        return;
    }
    [[unroll]] for (uint s = 0; s < loop_bound(slots); s++, next_slot++) {
        uint unit = first + s;
        if (!HAS_UNIT(unit, units, SUBGROUPS * slots))
            continue;
        uint i = unit / columns * MATRIX_M, o = unit % columns * MATRIX_N;
        if (at_end)
            coopMatStore(held[next_slot], partials, begin + i * stride + o, stride, ROW_MAJOR);
        else
            add_products(held[next_slot], layer.from + i, layer.to + o);
    }
}

void clear_held()
{
    if (HOLD_SUMS != 0u)
        [[unroll]] for (uint i = 0; i < loop_bound(HELD); i++)
            held[i] = MATRIX_SUM(float)(0.0);
}
#endif
