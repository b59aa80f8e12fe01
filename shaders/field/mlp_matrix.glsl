// The MLPs in cooperative matrices of MATRIX_M x MATRIX_N x MATRIX_K: rows of a tile in shared memory
// (or with TILE_IN_MEMORY in the workgroup's scratch memory), 16-bit, products added in ACCUMULATE.
//
// KHR_cooperative_matrix hides which lane holds which element and does not turn an accumulator into a
// multiplicand, so layers meet in the tile. Rows belong to subgroups: between layers only these wait
// for each other. Literal shapes, because some drivers compile specialised ones badly.
//   STAGED        the device has no f16 accumulators: sums are rounded lane by lane in shared memory
//   CONVERSIONS   NV_cooperative_matrix2: activations of hidden layers stay in matrices

layout(constant_id = SPEC_ROW) const uint ROW = 72;
layout(constant_id = SPEC_ROLL_LOOPS) const uint ROLL_LOOPS = 0;

// GPUs need these loops unrolled, to keep matrices in registers; a CPU device's compiler would unroll
// them too, and take minutes, if it knew that nothing is added here.
uint times(uint count)
{
    return ROLL_LOOPS != 0u ? count + gl_NumWorkGroups.z - 1u : count;
}

const uint SUBGROUPS = LOCAL_SIZE / SUBGROUP_SIZE;
// Rows that belong together, and the subgroups that share them: one, unless a matrix has more rows
// than the subgroup lanes. More rows mean that a matrix of weights, once loaded, serves more of them.
layout(constant_id = SPEC_OWNED_ROWS) const uint OWNED = 32;
const uint SHARERS = OWNED / SUBGROUP_SIZE;
const uint M_TILES = OWNED / MATRIX_M;

const uint WIDEST_1 = ENCODED > DENSITY_WIDTH ? ENCODED : DENSITY_WIDTH;
const uint WIDEST_2 = COLOR_INPUTS > COLOR_WIDTH ? COLOR_INPUTS : COLOR_WIDTH;
const uint WIDEST = WIDEST_1 > WIDEST_2 ? WIDEST_1 : WIDEST_2;
const uint A_TILES = WIDEST / MATRIX_K * M_TILES;

#define MATRIX_A coopmat<float16_t, gl_ScopeSubgroup, MATRIX_M, MATRIX_K, gl_MatrixUseA>
#define MATRIX_B coopmat<float16_t, gl_ScopeSubgroup, MATRIX_K, MATRIX_N, gl_MatrixUseB>
#define MATRIX_SUM(type) coopmat<type, gl_ScopeSubgroup, MATRIX_M, MATRIX_N, gl_MatrixUseAccumulator>
#define ROW_MAJOR gl_CooperativeMatrixLayoutRowMajor
#define COLUMN_MAJOR gl_CooperativeMatrixLayoutColumnMajor

#ifdef TILE_IN_MEMORY
layout(std430, BINDING(SCRATCH)) workgroupcoherent buffer TileBuffer { float16_t tile[]; };
#define TILE_FIRST (gl_WorkGroupID.x * LOCAL_SIZE * ROW)
#define TILE_SEMANTICS (gl_StorageSemanticsBuffer | gl_StorageSemanticsShared)
#else
shared float16_t tile[LOCAL_SIZE * ROW];
#define TILE_FIRST 0u
#define TILE_SEMANTICS gl_StorageSemanticsShared
#endif

uint my_row()
{
    return TILE_FIRST + (gl_SubgroupID * SUBGROUP_SIZE + gl_SubgroupInvocationID) * ROW;
}

// First of the rows that this subgroup's matrices hold.
uint owned_rows()
{
    return TILE_FIRST + gl_SubgroupID / SHARERS * OWNED * ROW;
}

// What the owners of these rows wrote is there for all of them.
void rows_barrier()
{
    if (SHARERS > 1u)
        controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, TILE_SEMANTICS, gl_SemanticsAcquireRelease);
    else
        controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, TILE_SEMANTICS, gl_SemanticsAcquireRelease);
}

void set_value(uint i, float x)
{
    tile[my_row() + i] = float16_t(x);
}

float get_value(uint i)
{
    return float(tile[my_row() + i]);
}

bool any_row(bool needed)
{
    return SHARERS > 1u || subgroupAny(needed);
}

// ---- sums to 16-bit values --------------------------------------------------------------------------

// What becomes of a layer's sums.
const uint KEEP = 0u;    // the outputs as they are
const uint RECTIFY = 1u; // ReLU
const uint INPUT = 2u;   // gradients
const uint MASK = 3u;    // gradients behind a ReLU: zero where the activation, which they replace, is

#ifdef STAGED
shared float staging[SUBGROUPS * MATRIX_M * MATRIX_N];

void store_sum(MATRIX_SUM(ACCUMULATE) sum, uint at, uint kind)
{
    uint first = gl_SubgroupID * MATRIX_M * MATRIX_N;
    coopMatStore(sum, staging, first, MATRIX_N, ROW_MAJOR);
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared,
                   gl_SemanticsAcquireRelease);
    for (uint i = gl_SubgroupInvocationID; i < MATRIX_M * MATRIX_N; i += SUBGROUP_SIZE) {
        float x = staging[first + i];
        uint to = at + i / MATRIX_N * ROW + i % MATRIX_N;
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
    // The next sum comes to the same place.
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared,
                   gl_SemanticsAcquireRelease);
}
#else
// Elements of two matrices correspond only where their types are the same, so 16-bit ones are
// widened to be compared.
void store_sum(MATRIX_SUM(ACCUMULATE) sum, uint at, uint kind)
{
    if (kind == RECTIFY)
        for (int i = 0; i < sum.length(); i++)
            sum[i] = max(sum[i], ACCUMULATE(0.0));
#ifdef BACKWARD
    if (kind == MASK) {
        MATRIX_SUM(float16_t) activation;
        coopMatLoad(activation, tile, at, ROW, ROW_MAJOR);
        MATRIX_SUM(ACCUMULATE) widened = MATRIX_SUM(ACCUMULATE)(activation);
        for (int i = 0; i < sum.length(); i++)
            sum[i] = widened[i] > ACCUMULATE(0.0) ? sum[i] : ACCUMULATE(0.0);
    }
#endif
    MATRIX_SUM(float16_t) rounded = MATRIX_SUM(float16_t)(sum);
#ifdef BACKWARD
    if (kind >= INPUT) {
        MATRIX_SUM(ACCUMULATE) widened = MATRIX_SUM(ACCUMULATE)(rounded);
        for (int i = 0; i < sum.length(); i++)
            if (sum[i] != ACCUMULATE(0.0))
                flushed += uvec2(widened[i] == ACCUMULATE(0.0) ? 1u : 0u, 1u);
    }
#endif
    coopMatStore(rounded, tile, at, ROW, ROW_MAJOR);
}
#endif

// ---- layers -----------------------------------------------------------------------------------------

MATRIX_A operand[A_TILES]; // the owned rows of a layer's input

void load_operand(uint from, uint inputs)
{
    [[unroll]] for (uint k = 0; k < times(inputs / MATRIX_K); k++)
        [[unroll]] for (uint m = 0; m < times(M_TILES); m++)
            coopMatLoad(operand[k * M_TILES + m], tile,
                        owned_rows() + m * MATRIX_M * ROW + from + k * MATRIX_K, ROW, ROW_MAJOR);
}

// sums = operand * the weights' columns n * MATRIX_N ...; transposed: its rows.
void multiply(uint inputs, uint n, uint weight, uint stride, bool transposed,
              out MATRIX_SUM(ACCUMULATE) sums[M_TILES])
{
    [[unroll]] for (uint m = 0; m < times(M_TILES); m++)
        sums[m] = MATRIX_SUM(ACCUMULATE)(0.0);
    [[unroll]] for (uint k = 0; k < times(inputs / MATRIX_K); k++) {
        MATRIX_B weights;
        if (transposed)
            coopMatLoad(weights, param_pairs, (weight + n * MATRIX_N * stride + k * MATRIX_K) / 2u,
                        stride / 2u, COLUMN_MAJOR);
        else
            coopMatLoad(weights, param_pairs, (weight + k * MATRIX_K * stride + n * MATRIX_N) / 2u,
                        stride / 2u, ROW_MAJOR);
        [[unroll]] for (uint m = 0; m < times(M_TILES); m++)
            sums[m] = coopMatMulAdd(operand[k * M_TILES + m], weights, sums[m]);
    }
}

// Columns `to` of the owned rows = operand * weights. They may be the columns that the operand was
// loaded from.
void store_product(uint inputs, uint to, uint outputs, uint weight, uint stride, bool transposed,
                   uint kind)
{
    rows_barrier();
    [[unroll]] for (uint n = gl_SubgroupID % SHARERS; n < times(outputs / MATRIX_N); n += SHARERS) {
        MATRIX_SUM(ACCUMULATE) sums[M_TILES];
        multiply(inputs, n, weight, stride, transposed, sums);
        [[unroll]] for (uint m = 0; m < times(M_TILES); m++)
            store_sum(sums[m], owned_rows() + m * MATRIX_M * ROW + to + n * MATRIX_N, kind);
    }
    rows_barrier();
}

#ifdef CONVERSIONS
// A hidden layer without the tile: its rectified outputs become the next operand. Wants one subgroup
// to a row, and MATRIX_N == MATRIX_K.
void convert_product(uint inputs, uint outputs, uint weight)
{
    MATRIX_A next[A_TILES];
    [[unroll]] for (uint n = 0; n < times(outputs / MATRIX_N); n++) {
        MATRIX_SUM(ACCUMULATE) sums[M_TILES];
        multiply(inputs, n, weight, outputs, false, sums);
        [[unroll]] for (uint m = 0; m < times(M_TILES); m++) {
            for (int i = 0; i < sums[m].length(); i++)
                sums[m][i] = max(sums[m][i], ACCUMULATE(0.0));
            next[n * M_TILES + m] = MATRIX_A(sums[m]);
        }
    }
    [[unroll]] for (uint i = 0; i < times(outputs / MATRIX_K * M_TILES); i++)
        operand[i] = next[i];
}
#endif

void mlp_forward(uint begin, uint end)
{
    rows_barrier(); // the inputs are there
    [[unroll]] for (uint i = begin; i < times(end); i++) {
        Layer layer = layer_at(i);
#ifdef CONVERSIONS
        if (layer.first)
            load_operand(layer.from, layer.inputs);
        if (!layer.last)
            convert_product(layer.inputs, layer.outputs, layer.weight);
        else
            store_product(layer.inputs, layer.to, layer.outputs, layer.weight, layer.outputs, false,
                          KEEP);
#else
        load_operand(layer.from, layer.inputs);
        store_product(layer.inputs, layer.to, layer.outputs, layer.weight, layer.outputs, false,
                      layer.last ? KEEP : RECTIFY);
#endif
    }
}

#ifdef BACKWARD
// ---- backward ---------------------------------------------------------------------------------------
// A layer's gradient takes the place of its activations once the weights' gradients behind it are
// formed, so a tile needs no more memory than its activations. Weight gradients are sums over all rows
// of the tile: every subgroup keeps its share of their matrices in FP32 accumulators over all tiles of
// the workgroup (SPEC_HOLD_SUMS), or where those would be too many adds to BIND_PARTIALS.

layout(constant_id = SPEC_HOLD_SUMS) const uint HOLD_SUMS = 1;

// Matrices that a subgroup has of a layer's weights.
#define SLOTS(inputs, outputs)                                                                     \
    (((inputs) / MATRIX_M * ((outputs) / MATRIX_N) + SUBGROUPS - 1u) / SUBGROUPS)
const uint DENSITY_SLOTS = SLOTS(ENCODED, DENSITY_WIDTH) +
                           (DENSITY_LAYERS - 1u) * SLOTS(DENSITY_WIDTH, DENSITY_WIDTH) +
                           SLOTS(DENSITY_WIDTH, GEOMETRY);
const uint COLOR_SLOTS = SLOTS(COLOR_INPUTS, COLOR_WIDTH) +
                         (COLOR_LAYERS - 1u) * SLOTS(COLOR_WIDTH, COLOR_WIDTH) +
                         SLOTS(COLOR_WIDTH, COLOR_OUTPUTS);
const uint HELD = HOLD_SUMS != 0u ? DENSITY_SLOTS + COLOR_SLOTS : 1u;
MATRIX_SUM(float) held[HELD];
uint next_slot;

void workgroup_barrier()
{
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, TILE_SEMANTICS | gl_StorageSemanticsBuffer,
                   gl_SemanticsAcquireRelease);
}

// One matrix of weight gradients += inputs^T * gradient of the outputs, over the tile's rows.
void add_products(inout MATRIX_SUM(float) sum, uint input_at, uint gradient_at)
{
    [[unroll]] for (uint row = 0; row < times(LOCAL_SIZE); row += MATRIX_K) {
        MATRIX_A input_rows;
        MATRIX_B gradient_rows;
        coopMatLoad(input_rows, tile, TILE_FIRST + row * ROW + input_at, ROW, COLUMN_MAJOR);
        coopMatLoad(gradient_rows, tile, TILE_FIRST + row * ROW + gradient_at, ROW, ROW_MAJOR);
        sum = coopMatMulAdd(input_rows, gradient_rows, sum);
    }
}

// This subgroup's share of a layer: adds the tile's products or, at the end, hands the held sums over.
void weight_gradient(Layer layer, bool end)
{
    uint columns = layer.outputs / MATRIX_N, units = layer.inputs / MATRIX_M * columns;
    uint slots = SLOTS(layer.inputs, layer.outputs);
    [[unroll]] for (uint s = 0; s < times(slots); s++, next_slot++) {
        uint unit = s * SUBGROUPS + gl_SubgroupID;
        if (unit >= units)
            continue;
        uint i = unit / columns * MATRIX_M, o = unit % columns * MATRIX_N;
        uint at = gl_WorkGroupID.x * config.summed_params + layer.weight + i * layer.outputs + o;
        if (end) {
            coopMatStore(held[next_slot], partials, at, layer.outputs, ROW_MAJOR);
        } else if (HOLD_SUMS != 0u) {
            add_products(held[next_slot], layer.from + i, layer.to + o);
        } else {
            MATRIX_SUM(float) sum;
            coopMatLoad(sum, partials, at, layer.outputs, ROW_MAJOR);
            add_products(sum, layer.from + i, layer.to + o);
            coopMatStore(sum, partials, at, layer.outputs, ROW_MAJOR);
        }
    }
}

void mlp_backward(uint begin, uint end)
{
    [[unroll]] for (uint i = times(end); i > begin; i--) {
        Layer layer = layer_at(i - 1u);
        workgroup_barrier(); // all rows have their gradients
        weight_gradient(layer, false);
        workgroup_barrier(); // the activations are done with
        load_operand(layer.to, layer.outputs);
        store_product(layer.outputs, layer.from, layer.inputs, layer.weight, layer.outputs, true,
                      layer.first ? INPUT : MASK);
    }
}

void begin_sums()
{
    if (HOLD_SUMS != 0u) {
        [[unroll]] for (uint i = 0; i < times(HELD); i++)
            held[i] = MATRIX_SUM(float)(0.0);
        return;
    }
    for (uint k = gl_LocalInvocationIndex; k < config.summed_params; k += LOCAL_SIZE)
        partials[gl_WorkGroupID.x * config.summed_params + k] = 0.0;
    workgroup_barrier();
}

void end_sums()
{
    next_slot = 0u;
    if (HOLD_SUMS != 0u)
        [[unroll]] for (uint i = times(LAYERS); i > 0u; i--)
            weight_gradient(layer_at(i - 1u), true);
}

float get_gradient(uint i)
{
    return get_value(i);
}

void tile_backward(vec4 gradient, bool last)
{
    next_slot = 0u;
    for (uint k = 0; k < COLOR_OUTPUTS; k++)
        tile[my_row() + AT_RGB + k] = round_gradient(k < 3u ? gradient[k] : 0.0);
    mlp_backward(COLOR_MLP);
    tile[my_row() + AT_GEOMETRY] = round_gradient(get_gradient(AT_GEOMETRY) + gradient.w);
    mlp_backward(DENSITY_MLP);
}
#endif
