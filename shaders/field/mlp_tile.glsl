// Evaluates the MLPs on a tile of rows in shared memory, or with TILE_IN_MEMORY in the workgroup's
// scratch memory: [row][value] f16, or f32 in fp32. A layer reads columns of the tile and writes the
// same or other columns; subgroups share the work and wait for each other between layers.
//
// Products are sums over a row's values, weight gradients are sums over rows, and matrix loads are
// wide if the summed values are adjacent. So with matrices on GPUs, BACKWARD keeps all values by
// column, [value][row], if the tile can then have as many rows as without columns. Values by row,
// which precede the columns, are then stored for one layer at a time.
//
// An included file computes products, by cooperative matrices or in blocks of registers, and defines
//   product(from, inputs, to, outputs, weight, stride, transposed, kind)
//                                   computes columns `to` = columns `from` * weights, stored [input][output] or
//                                   transposed; both may be the same columns. Returns after all subgroups that
//                                   share the rows have written the output columns
//   forward_product(layer)          computes a layer's outputs
//   begin_tile(counter)             see field/mlp.glsl
// and with BACKWARD
//   weight_gradient(layer, at_end)  computes this invocation's share of a layer's weight gradients: adds the tile's
//                                   products or, with `at_end`, writes the held sums to PARTIALS
//   clear_held()                    sets the held sums to zero, before all tiles
// Used by the passes that field/mlp.glsl lists, with TILED. With TILE_IN_MEMORY reads and writes SCRATCH
// [workgroup][row][value].

layout(constant_id = SPEC_ROW_STRIDE) const uint ROW_STRIDE = 72;

#include "field/unrolling.glsl"

const uint SUBGROUPS = LOCAL_SIZE / SUBGROUP_SIZE;

#ifdef COOPMAT
// Number of rows that the same subgroups own, and number of these subgroups. On CPU devices one
// subgroup owns the rows and need not wait for others, unless a matrix has more rows than the subgroup
// has lanes. On GPUs all subgroups share all rows, so that each subgroup has few sums.
layout(constant_id = SPEC_OWNED_ROWS) const uint OWNED = 32;
const uint SHARERS = SUBGROUPS * OWNED / TILE_ROWS;
#else
const uint SHARERS = SUBGROUPS;
#endif

// Whether the tile keeps values by column. Devices that need STAGED have few registers and would spill
// at a second store of every sum.
#if defined(COOPMAT) && defined(BACKWARD) && !defined(STAGED)
const bool BY_COLUMN = ROW_STRIDE < AT_RGB + COLOR_OUTPUTS;
#else
const bool BY_COLUMN = false;
#endif
const uint COLUMN_STRIDE = BY_COLUMN ? TILE_ROWS + 8u : 0u; // from one column to the next
const uint TILE_SIZE = TILE_ROWS * ROW_STRIDE + (AT_RGB + COLOR_OUTPUTS) * COLUMN_STRIDE;

// Offset in a row of the values that begin at `first`.
#define IN_ROW(first) (BY_COLUMN ? 0u : (first))
const uint ROW_DIRECTION = IN_ROW(AT_GEOMETRY) + GEOMETRY;

// Matrices load from arrays of single values, blocks of registers from arrays of four values.
#ifdef TILE_IN_MEMORY
layout(std430, BINDING(SCRATCH)) workgroupcoherent buffer TileBuffer { STORAGE_T tile[]; };
layout(std430, BINDING(SCRATCH)) workgroupcoherent buffer TileFourBuffer { STORAGE_T4 tile4[]; };
#define TILE(i) tile[i]
#define TILE_FIRST (gl_WorkGroupID.x * TILE_SIZE)
#define TILE_SEMANTICS (gl_StorageSemanticsBuffer | gl_StorageSemanticsShared)
#else
#ifdef COOPMAT
shared STORAGE_T tile[TILE_SIZE];
#define TILE(i) tile[i]
#else
shared STORAGE_T4 tile4[TILE_ROWS * ROW_STRIDE / 4u];
#define TILE(i) tile4[(i) / 4u][(i) % 4u]
#endif
#define TILE_FIRST 0u
#define TILE_SEMANTICS gl_StorageSemanticsShared
#endif

uint first_of_row()
{
    return TILE_FIRST + tile_row() * ROW_STRIDE;
}

// Returns the index of column i's value of the first row.
uint column_at(uint i)
{
    return TILE_FIRST + TILE_ROWS * ROW_STRIDE + i * COLUMN_STRIDE;
}

void workgroup_barrier()
{
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, TILE_SEMANTICS, gl_SemanticsAcquireRelease);
}

// Waits until all subgroups that own this subgroup's rows have written the rows.
void rows_barrier()
{
    if (SHARERS > 1u)
        workgroup_barrier();
    else
        controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, TILE_SEMANTICS, gl_SemanticsAcquireRelease);
}

// Waits until other invocations have read the rows. Called before the rows are overwritten.
void end_tile()
{
    if (INVOCATIONS_PER_ROW > 1u)
        rows_barrier();
}

void set_value(uint i, float x)
{
    TILE(first_of_row() + i) = to_storage(ROUND_ACTIVATIONS, x);
}

float get_value(uint i)
{
    return float(TILE(BY_COLUMN ? column_at(i) + tile_row() : first_of_row() + i));
}

bool any_row(bool needed)
{
    return SHARERS > 1u || subgroupAny(needed);
}

const uint WIDEST_1 = ENCODED > DENSITY_WIDTH ? ENCODED : DENSITY_WIDTH;
const uint WIDEST_2 = COLOR_INPUTS > COLOR_WIDTH || !COLORED ? COLOR_INPUTS : COLOR_WIDTH;
const uint WIDEST = WIDEST_1 > WIDEST_2 ? WIDEST_1 : WIDEST_2;

// Values of `kind`: what product() does with the sums.
const uint KEEP = 0u;    // store the outputs
const uint RECTIFY = 1u; // store the outputs after a ReLU
const uint INPUT = 2u;   // store gradients
const uint MASK = 3u;    // store gradients through a ReLU: 0 where the activation that is overwritten is 0

#ifdef BACKWARD
// The gradients of a layer's inputs overwrite the inputs after the layer's weight gradients are
// computed, so a tile needs no more memory than its activations. Weight gradients are sums over all
// rows: every subgroup holds its share of them in registers, in FP32, over all tiles of the workgroup
// (SPEC_HOLD_SUMS), or adds to PARTIALS if the share is too large.
layout(constant_id = SPEC_HOLD_SUMS) const uint HOLD_SUMS = 1;

uint next_slot; // index of the next layer's first held sum

// Number of held sums of all layers, SLOTS(inputs, outputs) for each layer.
#define HELD_SLOTS                                                                                   \
    (SLOTS(ENCODED, DENSITY_WIDTH) + (DENSITY_LAYERS - 1u) * SLOTS(DENSITY_WIDTH, DENSITY_WIDTH) +   \
     SLOTS(DENSITY_WIDTH, GEOMETRY) + (COLORED ? COLOR_SLOTS : 0u))
#define COLOR_SLOTS                                                                                  \
    (SLOTS(COLOR_INPUTS, COLOR_WIDTH) + (COLOR_LAYERS - 1u) * SLOTS(COLOR_WIDTH, COLOR_WIDTH) +      \
     SLOTS(COLOR_WIDTH, COLOR_OUTPUTS))
#endif

#ifdef COOPMAT
#include "field/mlp_matrix.glsl"
#else
#include "field/mlp_blocks.glsl"
#endif

// ---- layers -----------------------------------------------------------------------------------------

void loop_forward(uint begin, uint end)
{
    for (uint i = begin; i < loop_bound(end); i++)
        forward_product(layer_at(i));
}

void density_forward()
{
    rows_barrier(); // until the inputs are written
    if (CPU_KERNELS != 0u)
        loop_forward(0u, DENSITY_END);
    else {
        FROM_FIRST_LAYER(forward_product, 0u, DENSITY_END)
    }
}

void color_forward()
{
    rows_barrier();
    if (CPU_KERNELS != 0u)
        loop_forward(DENSITY_END, COLOR_END);
    else {
        FROM_FIRST_LAYER(forward_product, DENSITY_END, COLOR_END)
    }
}

#ifdef BACKWARD
void layer_backward(Layer layer)
{
    workgroup_barrier(); // until all rows have their gradients
    weight_gradient(layer, false);
    if (SHARERS < SUBGROUPS) // otherwise the product waits for all subgroups before it stores
        workgroup_barrier(); // until all subgroups have read the activations
    product(layer.to, GRADIENT_OUTPUTS(layer), layer.from, inputs_with_gradients(layer), layer.weight,
            layer.outputs, true, layer.is_first ? INPUT : MASK);
}

void loop_backward(uint begin, uint end)
{
    for (uint i = loop_bound(end); i > begin; i--)
        layer_backward(layer_at(i - 1u));
}

void density_backward()
{
    if (CPU_KERNELS != 0u)
        loop_backward(0u, DENSITY_END);
    else {
        FROM_LAST_LAYER(layer_backward, 0u, DENSITY_END)
    }
}

void color_backward()
{
    if (CPU_KERNELS != 0u)
        loop_backward(DENSITY_END, LAYERS);
    else {
        FROM_LAST_LAYER(layer_backward, DENSITY_END, LAYERS)
    }
}

void begin_sums()
{
    clear_held();
    if (HOLD_SUMS != 0u && ALL_HELD)
        return;
    for (uint k = gl_LocalInvocationID.x; k < config.first_layered; k += LOCAL_SIZE)
        partials[gl_WorkGroupID.x * config.summed_params + k] = 0.0;
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer,
                   gl_SemanticsAcquireRelease);
}

void end_sums()
{
    next_slot = 0u;
    if (HOLD_SUMS == 0u)
        return;
    if (CPU_KERNELS != 0u) {
        for (uint i = loop_bound(LAYERS); i > 0u; i--)
            weight_gradient(layer_at(i - 1u), true);
        return;
    }
#define END_SUMS(layer) weight_gradient(layer, true)
    FROM_LAST_LAYER(END_SUMS, 0u, LAYERS)
}

float get_gradient(uint i)
{
    return get_value(i);
}

// Stores the gradient of output k of the outputs that begin at value `first`.
void set_gradient(uint first, uint k, float x)
{
    STORAGE_T rounded = round_gradient(x);
    TILE(first_of_row() + IN_ROW(first) + k) = rounded;
    if (BY_COLUMN)
        TILE(column_at(first + k) + tile_row()) = rounded;
}

void tile_backward(vec4 gradient, bool at_end)
{
    next_slot = 0u;
    if (invocation_in_row() == 0u)
        for (uint k = 0; k < COLOR_OUTPUTS; k++)
            set_gradient(AT_RGB, k, output_gradient(gradient, k));
    if (COLORED) {
        color_backward();
        if (invocation_in_row() == 0u)
            set_gradient(AT_GEOMETRY, 0u, get_gradient(AT_GEOMETRY) + gradient.w);
    }
    density_backward();
}
#endif
