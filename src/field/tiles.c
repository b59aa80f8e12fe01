/* Chooses the tile and workgroup sizes of a backend and where weight gradients are added up, and
 * checks tuned values against the limits of the device. */
#include "field/internal.h"

/* Default samples (rows) of a tile: the workgroup size of the other passes. */
#define TILE_ROWS 64u

/* ---- memory and registers of a tile --------------------------------------------------------- */

static uint32_t widest(const struct field_model *model)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < model->fused; i++) {
        most = model->layers[i].inputs > most ? model->layers[i].inputs : most;
        most = model->layers[i].outputs > most ? model->layers[i].outputs : most;
    }
    return most;
}

static bool uses_matrices(const struct field_backend *backend)
{
    return backend->precision == VKN_PRECISION_COOPMAT;
}

/* Returns whether MLPs are computed in tiles; otherwise invocations hold rows themselves. */
static bool is_tiled(const struct field_backend *backend)
{
    return uses_matrices(backend) || !backend->cpu_kernels;
}

/* Returns the stride of rows in values. Padding makes neighbouring rows begin in different banks of
 * shared memory: 16 bytes for loads of f16 matrices, otherwise four values. */
static uint32_t padded_stride(const struct field_backend *backend, uint32_t values)
{
    return values + (uses_matrices(backend) ? 8 : 4);
}

/* Returns whether accumulators are converted to f16 through a staging area in shared memory. */
static bool is_staged(const struct field_backend *backend)
{
    return field_backend_shape(backend) == VKN_SHAPE_8X8X16;
}

/* Returns whether a tile of field_backward has rows for one layer, then columns for the values of
 * all layers. */
static bool has_columns(const struct field_model *model, const struct field_backend *backend)
{
    return backend->backward_stride < model->activations;
}

static uint32_t tile_bytes(const struct field_model *model, const struct field_backend *backend,
                           bool backward, uint32_t rows)
{
    uint32_t values = rows * (backward ? backend->backward_stride : backend->forward_stride);
    if (backward && has_columns(model, backend))
        values += model->activations * padded_stride(backend, rows);
    return values * (backend->f16 ? 2 : 4);
}

/* Returns whether a tile and the staging area fit into shared memory. */
static bool fits(const struct field_model *model, const struct gpu_capabilities *device,
                 const struct field_backend *backend, bool backward, uint32_t rows,
                 uint32_t invocations)
{
    uint32_t matrix = backend->shape.m * backend->shape.n * 4, /* bytes of an accumulator */
        staging = is_staged(backend) ? invocations / backend->subgroup_size * matrix : 0;
    return tile_bytes(model, backend, backward, rows) + staging <= device->max_shared_memory;
}

/* Returns the bytes of device memory that a workgroup of field_backward needs: for a tile that does
 * not fit into shared memory, or without tiles (CPU devices) for padded values and gradients of its
 * rows. */
static uint64_t scratch_bytes(const struct field_model *model, const struct field_backend *backend)
{
    if (is_tiled(backend))
        return backend->rows_in_memory ? tile_bytes(model, backend, true, backend->backward_rows)
                                       : 0;
    return 2ull * model->activations * (backend->tiles_at_once * backend->backward_rows + 16) *
           (backend->f16 ? 2 : 4);
}

/* Returns how many of the matrices each subgroup computes, as in shaders/field/mlp_matrix.glsl: 1,
 * 2 or a multiple of four. */
static uint32_t matrices_per_subgroup(uint32_t matrices, uint32_t subgroups)
{
    uint32_t each = (matrices + subgroups - 1) / subgroups;
    return each <= 2 ? each : (each + 3) / 4 * 4;
}

/* Returns how many of the blocks each invocation computes, a power of two. */
static uint32_t blocks_per_invocation(uint32_t blocks, uint32_t invocations)
{
    uint32_t each = 1;
    while (each * invocations < blocks)
        each *= 2;
    return each;
}
#define MOST_BLOCK 16u /* limit of shaders/field/mlp_blocks.glsl */

/* Returns the floats of weight gradients that each invocation would keep in registers. */
static uint32_t held_floats(const struct field_model *model, const struct field_backend *backend)
{
    const struct gpu_matrix_shape *shape = &backend->shape;
    uint32_t floats = 0;
    for (uint32_t i = 0; i < model->fused; i++) {
        const struct field_layer *layer = &model->layers[i];
        if (uses_matrices(backend))
            floats += matrices_per_subgroup(layer->inputs / shape->m * (layer->outputs / shape->n),
                                            backend->backward_size / backend->subgroup_size) *
                      shape->m * shape->n / backend->subgroup_size;
        else
            floats += 4 * blocks_per_invocation(layer->inputs * (layer->outputs / 4),
                                                backend->backward_size);
    }
    return floats;
}

/* ---- sizes for CPU devices ------------------------------------------------------------------- */

/* Chooses one invocation per row, and as many rows as fit. */
static void choose_cpu_rows(const struct field_model *model, const struct gpu_capabilities *device,
                            struct field_backend *backend)
{
    uint32_t owned = backend->owned_rows;
    uint32_t least = owned > backend->shape.k ? owned : backend->shape.k;
    for (uint32_t rows = TILE_ROWS; rows >= least; rows /= 2) {
        backend->backward_rows = backend->backward_size = rows;
        if (rows % owned == 0 && fits(model, device, backend, true, rows, rows))
            return;
    }
    backend->backward_rows = backend->backward_size = TILE_ROWS;
    backend->rows_in_memory = true;
}

/* ---- sizes for GPUs -------------------------------------------------------------------------- */
/* Within the limits below the compilers of AMD, NVIDIA and Intel spill no register
 * (BENCHMARKS.md). */

/* Returns false for subgroups below 32 (Intel), whose invocations have few registers. */
static bool has_many_registers(const struct field_backend *backend)
{
    return backend->subgroup_size >= 32;
}

/* Returns the most floats of weight gradients that an invocation may hold; none with matrices in
 * subgroups of 8 (Intel's first generation). */
static uint32_t most_held(const struct field_backend *backend)
{
    if (has_many_registers(backend))
        return 48;
    return !uses_matrices(backend) ? 24 : backend->subgroup_size >= 16 ? 40 : 0;
}

/* Returns the most accumulators of a layer's product that an invocation may hold. */
static uint32_t most_sums(const struct field_backend *backend)
{
    return has_many_registers(backend) ? 32 : 16;
}

/* Returns the most invocations of a workgroup; beyond 512 each would have too few registers. */
static uint32_t most_invocations(const struct gpu_capabilities *device,
                                 const struct field_backend *backend)
{
    uint32_t most = gpu_largest_workgroup(device, backend->subgroup_size);
    return has_many_registers(backend) && most > 512 ? 512 : most;
}

/* Returns the accumulators of each invocation for the widest layer. */
static uint32_t sum_floats(const struct field_model *model, const struct field_backend *backend,
                           uint32_t rows, uint32_t invocations)
{
    const struct gpu_matrix_shape *shape = &backend->shape;
    uint32_t width = widest(model);
    return uses_matrices(backend) ? matrices_per_subgroup(rows / shape->m * (width / shape->n),
                                                          invocations / backend->subgroup_size) *
                                        shape->m * shape->n / backend->subgroup_size
                                  : 4 * blocks_per_invocation(rows * (width / 4), invocations);
}

/* Returns the smallest tile: rows of a matrix, or of a block. */
static uint32_t least_rows(const struct field_backend *backend)
{
    const struct gpu_matrix_shape *shape = &backend->shape;
    return !uses_matrices(backend) ? 8 : shape->m > shape->k ? shape->m : shape->k;
}

/* Returns the most rows up to `most` that fit into shared memory and registers; 0 if fewer than
 * least_rows fit. */
static uint32_t fitting_rows(const struct field_model *model, const struct gpu_capabilities *device,
                             const struct field_backend *backend, bool backward, uint32_t most)
{
    uint32_t least = least_rows(backend), rows = most,
             invocations = backward ? backend->backward_size : backend->forward_size;
    while (rows > least && sum_floats(model, backend, rows, invocations) > most_sums(backend))
        rows /= 2;
    while (rows >= least && !fits(model, device, backend, backward, rows, invocations))
        rows /= 2;
    return rows >= least ? rows : 0;
}

/* Stores values by column if as many rows still fit: columns are faster but take more memory. */
static void try_columns(const struct field_model *model, const struct gpu_capabilities *device,
                        struct field_backend *backend, uint32_t most)
{
    struct field_backend tried = *backend;
    tried.backward_stride = tried.forward_stride;
    tried.backward_rows = fitting_rows(model, device, &tried, true, most);
    if (tried.backward_rows >= backend->backward_rows)
        *backend = tried;
}

/* Returns whether one subgroup whose invocations use 256 registers fills a SIMD's register file:
 * AMD's GPUs before RDNA. With twice as many invocations, which need half as many registers each, a
 * SIMD runs two subgroups at a time, and field_backward takes a fifth less time. */
static bool has_one_subgroup(const struct gpu_capabilities *device,
                             const struct field_backend *backend)
{
    return device->vendor_id == GPU_VENDOR_AMD && backend->subgroup_size == 64;
}

/* Chooses enough invocations to hold the weight gradients in registers; if there are not enough,
 * the gradients go through memory. */
static void choose_backward(const struct field_model *model, const struct gpu_capabilities *device,
                            struct field_backend *backend)
{
    uint32_t most = most_invocations(device, backend);
    bool prefers_few =
        (has_many_registers(backend) && !has_one_subgroup(device, backend)) || !most_held(backend);
    uint32_t preferred = prefers_few ? 256 : 512;
    preferred = preferred < most ? preferred : most;
    backend->backward_size = preferred;
    while (backend->backward_size < most && held_floats(model, backend) > most_held(backend))
        backend->backward_size *= 2;
    backend->hold_sums = held_floats(model, backend) <= most_held(backend);
    if (!backend->hold_sums)
        backend->backward_size = preferred;
    bool is_narrow = backend->subgroup_size < (uses_matrices(backend) ? 16 : 32);
    uint32_t rows = is_narrow ? TILE_ROWS / 2 : TILE_ROWS;
    backend->backward_rows = fitting_rows(model, device, backend, true, rows);
    if (uses_matrices(backend) && !is_staged(backend))
        try_columns(model, device, backend, rows);
    backend->rows_in_memory = !backend->backward_rows;
    if (backend->rows_in_memory)
        backend->backward_rows = rows;
}

static void choose_forward(const struct field_model *model, const struct gpu_capabilities *device,
                           struct field_backend *backend)
{
    uint32_t most = most_invocations(device, backend);
    backend->forward_size = has_many_registers(backend) ? 128 : 256;
    if (backend->forward_size > most)
        backend->forward_size = most;
    while (backend->forward_size < most &&
           sum_floats(model, backend, TILE_ROWS, backend->forward_size) > most_sums(backend))
        backend->forward_size *= 2;
    backend->forward_rows = fitting_rows(model, device, backend, false, TILE_ROWS);
    /* With conversions each subgroup owns its rows. */
    if (backend->conversions)
        backend->forward_size = backend->forward_rows;
}

/* ---- all devices ----------------------------------------------------------------------------- */

void field_choose_tiles(const struct field_model *model, const struct gpu_capabilities *device,
                        struct field_backend *backend)
{
    backend->forward_rows = backend->backward_rows = TILE_ROWS;
    backend->forward_size = backend->backward_size = TILE_ROWS;
    if (is_tiled(backend)) {
        backend->forward_stride = padded_stride(backend, widest(model));
        backend->backward_stride = padded_stride(backend, model->activations);
    }
    if (!backend->cpu_kernels) {
        choose_backward(model, device, backend);
        choose_forward(model, device, backend);
    } else if (uses_matrices(backend)) {
        backend->owned_rows =
            backend->shape.m > backend->subgroup_size ? backend->shape.m : backend->subgroup_size;
        backend->hold_sums = true;
        choose_cpu_rows(model, device, backend);
    } else {
        /* Partial sums are loaded and stored once per 4 tiles, whose scratch memory still fits into
         * the L2 cache. */
        backend->tiles_at_once = 4;
    }
    backend->scratch_bytes = scratch_bytes(model, backend);
}

uint32_t field_tile_rows(const struct field_backend *backend, enum field_variant variant)
{
    if (variant == FIELD_BACKWARD)
        return backend->backward_rows;
    /* FIELD_FP32 computes in fp32: half as many rows fit as with an f16 backend. */
    bool halved = variant == FIELD_FP32 && backend->f16;
    if (!backend->cpu_kernels)
        return backend->forward_rows / (halved ? 2 : 1);
    return variant == FIELD_FORWARD ? backend->forward_rows : TILE_ROWS;
}

uint32_t field_tile_size(const struct field_backend *backend, enum field_variant variant)
{
    return variant == FIELD_BACKWARD ? backend->backward_size : backend->forward_size;
}

/* ---- tuning --------------------------------------------------------------------------------- */

#define MAX_TILES_AT_ONCE 16u
#define MOST_ROWS         256u
#define MOST_GROUPS       16384u
_Static_assert(MOST_GROUPS <= REDUCE_GROUPS, "each workgroup writes a partial sum");
/* Tuning may hold up to this many times as many floats as most_held. With more, compilers take
 * minutes and spill registers. */
#define MORE_HELD    4u
/* Most bytes of scratch memory, and of partial sums, of all workgroups of field_backward. */
#define MOST_SCRATCH (512ull << 20)

static bool is_legal_tile(const struct gpu_capabilities *device,
                          const struct field_backend *backend, uint32_t rows, uint32_t size)
{
    return rows > 0 && rows <= MOST_ROWS && size >= rows && size % rows == 0 &&
           size <= gpu_largest_workgroup(device, backend->subgroup_size) &&
           size % backend->subgroup_size == 0;
}

/* On CPU devices each subgroup owns rows; on GPUs all subgroups share all rows. */
static bool are_legal_owners(const struct field_backend *backend)
{
    uint32_t owned = backend->owned_rows, subgroup = backend->subgroup_size;
    if (!backend->cpu_kernels)
        return !owned && (!backend->conversions || backend->forward_size == backend->forward_rows);
    /* With conversions the activations of a row stay in one subgroup's matrices. The staged shape
     * has subgroup barriers in branches that other subgroups may not take. */
    bool needs_one_subgroup = backend->conversions || is_staged(backend);
    if (!owned || owned % subgroup || owned % backend->shape.m ||
        (needs_one_subgroup && owned != subgroup))
        return false;
    /* Subgroups also own rows in passes with tiles of TILE_ROWS. */
    return TILE_ROWS % owned == 0 && backend->forward_rows % owned == 0 &&
           backend->backward_rows % owned == 0;
}

/* Returns whether each invocation's block fits into the tile's rows and into MOST_BLOCK. */
static bool has_blocks(const struct field_model *model, uint32_t rows, uint32_t invocations)
{
    uint32_t each = blocks_per_invocation(rows * (widest(model) / 4), invocations);
    return each <= rows && each <= MOST_BLOCK;
}

static bool are_legal_tiles(const struct field_model *model, const struct gpu_capabilities *device,
                            const struct field_backend *backend)
{
    if (backend->tiles_at_once ||
        (uses_matrices(backend) ? !are_legal_owners(backend) : backend->owned_rows))
        return false;
    uint32_t least = least_rows(backend);
    if (!uses_matrices(backend) &&
        !(has_blocks(model, backend->forward_rows, backend->forward_size) &&
          has_blocks(model, backend->backward_rows, backend->backward_size)))
        return false;
    if (backend->backward_rows % least ||
        (!backend->cpu_kernels &&
         (backend->forward_rows % least || TILE_ROWS % backend->forward_rows)))
        return false;
    if (!fits(model, device, backend, false, backend->forward_rows, backend->forward_size) ||
        (!backend->rows_in_memory &&
         !fits(model, device, backend, true, backend->backward_rows, backend->backward_size)))
        return false;
    return !backend->hold_sums || backend->cpu_kernels ||
           held_floats(model, backend) <= MORE_HELD * most_held(backend);
}

static bool is_legal(const struct field_model *model, const struct gpu_capabilities *device,
                     const struct field_backend *backend)
{
    uint32_t groups = backend->backward_groups;
    uint64_t scratch = groups * backend->scratch_bytes,
             partials = 4ull * groups * model->mlp_params;
    uint64_t most = device->max_buffer_range && device->max_buffer_range < MOST_SCRATCH
                        ? device->max_buffer_range
                        : MOST_SCRATCH;
    if (!is_legal_tile(device, backend, backend->forward_rows, backend->forward_size) ||
        !is_legal_tile(device, backend, backend->backward_rows, backend->backward_size))
        return false;
    if (backend->sample_lanes != 1 && backend->sample_lanes != 4)
        return false;
    if (!groups || groups > MOST_GROUPS || scratch > most || partials > most)
        return false;
    if (!backend->forward_groups || backend->forward_groups > MOST_GROUPS)
        return false;
    if (is_tiled(backend))
        return are_legal_tiles(model, device, backend);
    /* Weight gradients are computed from eight rows at a time. */
    return backend->tiles_at_once > 0 && backend->tiles_at_once <= MAX_TILES_AT_ONCE &&
           backend->backward_rows % 8 == 0 && !backend->owned_rows && !backend->hold_sums;
}

struct field_tuning field_backend_tuning(const struct field_backend *backend)
{
    bool is_gpu = !backend->cpu_kernels;
    return (struct field_tuning){.values = {
                                     [FIELD_TILES_AT_ONCE] = backend->tiles_at_once,
                                     [FIELD_HOLD_SUMS] = backend->hold_sums,
                                     [FIELD_OWNED_ROWS] = backend->owned_rows,
                                     [FIELD_BACKWARD_ROWS] = backend->backward_rows,
                                     [FIELD_BACKWARD_SIZE] = is_gpu ? backend->backward_size : 0,
                                     [FIELD_BACKWARD_GROUPS] = backend->backward_groups,
                                     [FIELD_FORWARD_ROWS] = backend->forward_rows,
                                     [FIELD_FORWARD_SIZE] = is_gpu ? backend->forward_size : 0,
                                     [FIELD_FORWARD_GROUPS] = backend->forward_groups,
                                     [FIELD_SAMPLE_LANES] = backend->sample_lanes,
                                 }};
}

/* Returns false for sizes on CPU devices, where each row has one invocation. */
static bool set_tile_sizes(const uint32_t *values, struct field_backend *tuned)
{
    if (tuned->cpu_kernels) {
        tuned->forward_size = tuned->forward_rows;
        tuned->backward_size = tuned->backward_rows;
        return !values[FIELD_FORWARD_SIZE] && !values[FIELD_BACKWARD_SIZE];
    }
    tuned->forward_size = values[FIELD_FORWARD_SIZE];
    tuned->backward_size = values[FIELD_BACKWARD_SIZE];
    return true;
}

bool field_backend_tune(const struct field_tuning *tuning, const struct field_model *model,
                        const struct gpu_capabilities *device, struct field_backend *backend)
{
    struct field_backend tuned = *backend;
    const uint32_t *values = tuning->values;
    tuned.tiles_at_once = values[FIELD_TILES_AT_ONCE];
    tuned.hold_sums = values[FIELD_HOLD_SUMS] == 1;
    tuned.owned_rows = values[FIELD_OWNED_ROWS];
    tuned.backward_rows = values[FIELD_BACKWARD_ROWS];
    tuned.backward_groups = values[FIELD_BACKWARD_GROUPS];
    tuned.forward_rows = values[FIELD_FORWARD_ROWS];
    tuned.forward_groups = values[FIELD_FORWARD_GROUPS];
    tuned.sample_lanes = values[FIELD_SAMPLE_LANES];
    bool has_sizes = set_tile_sizes(values, &tuned);
    tuned.scratch_bytes = scratch_bytes(model, &tuned);
    tuned.tuned = true;
    if (!has_sizes || values[FIELD_HOLD_SUMS] > 1 || !is_legal(model, device, &tuned))
        return false;
    *backend = tuned;
    return true;
}
