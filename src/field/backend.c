
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "field/field.h"

/* Largest first: fewer, larger products. The order of enum vkn_matrix_shape, backwards. */
static const struct {
    enum vkn_matrix_shape name;
    uint32_t m, n, k;
    /* Compiled without f16 accumulators, which Intel's first generation lacks. */
    bool staged;
} shapes[] = {
    {VKN_SHAPE_16X16X16, 16, 16, 16, false}, {VKN_SHAPE_16X8X16, 16, 8, 16, false},
    {VKN_SHAPE_8X16X16, 8, 16, 16, false},   {VKN_SHAPE_8X8X16, 8, 8, 16, true},
    {VKN_SHAPE_8X8X8, 8, 8, 8, false},
};

/* ---- cooperative matrices ------------------------------------------------------------------- */

static const struct gpu_matrix_shape *find_shape(const struct gpu_capabilities *device, uint32_t m,
                                                 uint32_t n, uint32_t k, const char *accumulator)
{
    for (uint32_t i = 0; i < device->shape_count; i++) {
        const struct gpu_matrix_shape *shape = &device->shapes[i];
        if (shape->m == m && shape->n == n && shape->k == k && strcmp(shape->a_type, "f16") == 0 &&
            strcmp(shape->c_type, accumulator) == 0)
            return shape;
    }
    return NULL;
}

/* NULL when the device does not offer all that the shape's programs use. Weight gradients are
 * always added up in f32. */
static const struct gpu_matrix_shape *usable_shape(const struct gpu_capabilities *device,
                                                   size_t index, bool half_accumulate)
{
    uint32_t m = shapes[index].m, n = shapes[index].n, k = shapes[index].k;
    bool needs_half = !shapes[index].staged;
    if (half_accumulate && shapes[index].staged)
        return NULL;
    if (needs_half && !find_shape(device, m, n, k, "f16"))
        return NULL;
    return find_shape(device, m, n, k, "f32");
}

static void list_shapes(const struct gpu_capabilities *device, bool half_accumulate, char *text,
                        size_t size)
{
    text[0] = 0;
    for (size_t i = 0; i < BASE_COUNT(shapes); i++)
        if (usable_shape(device, i, half_accumulate))
            snprintf(text + strlen(text), size - strlen(text), "%s%ux%ux%u", text[0] ? ", " : "",
                     shapes[i].m, shapes[i].n, shapes[i].k);
}

/* A shape that only flexible dimensions offer is used when it is asked for: it is not the
 * hardware's. */
static vkn_status choose_shape(const struct vkn_config *config,
                               const struct gpu_capabilities *device, struct field_backend *backend)
{
    for (size_t i = 0; i < BASE_COUNT(shapes); i++) {
        const struct gpu_matrix_shape *shape = usable_shape(device, i, backend->half_accumulate);
        bool wanted = shape && (config->matrix.shape == shapes[i].name ||
                                (config->matrix.shape == VKN_SHAPE_DEFAULT && !shape->flexible));
        if (!wanted)
            continue;
        backend->shape = *shape;
        return VKN_OK;
    }
    char offered[96];
    list_shapes(device, backend->half_accumulate, offered, sizeof offered);
    return base_fail(VKN_BAD_INPUT, "config: matrix.shape: \"%s\" offers %s with %s accumulation",
                     device->name, offered[0] ? offered : "no usable shape",
                     backend->half_accumulate ? "f16" : "f32");
}

static uint32_t widest(const struct field_model *model)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        most = model->layers[i].inputs > most ? model->layers[i].inputs : most;
        most = model->layers[i].outputs > most ? model->layers[i].outputs : most;
    }
    return most;
}

/* Floats that an invocation holds when its subgroup keeps its share of all weight gradients. */
static uint32_t held_floats(const struct field_model *model, const struct gpu_capabilities *device,
                            const struct field_backend *backend)
{
    uint32_t subgroups = backend->backward_rows / device->subgroup_size, slots = 0;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct field_layer *layer = &model->layers[i];
        uint32_t matrices = layer->inputs / backend->shape.m * (layer->outputs / backend->shape.n);
        slots += (matrices + subgroups - 1) / subgroups;
    }
    return slots * backend->shape.m * backend->shape.n / device->subgroup_size;
}

/* Registers of an invocation that weight gradients may take; a CPU device has none to run out of.
 */
#define HELD_FLOATS 160u
/* Rows are padded by 16 bytes, so that neighbours begin in different banks of shared memory. */
#define ROW_PADDING 8u
/* Most samples of a tile: the workgroup size of the other passes. */
#define TILE_ROWS   64u

/* Whether a tile fits into shared memory, the staging area for sums included. */
static bool fits(const struct gpu_capabilities *device, const struct field_backend *backend,
                 uint32_t rows, uint32_t row)
{
    uint32_t staging = rows / device->subgroup_size * backend->shape.m * backend->shape.n * 4;
    return rows * row * 2 + staging <= device->max_shared_memory;
}

/* As many rows as fit. */
static void place_rows(const struct gpu_capabilities *device, struct field_backend *backend)
{
    uint32_t owned = backend->owned_rows;
    uint32_t least = owned > backend->shape.k ? owned : backend->shape.k;
    for (uint32_t rows = TILE_ROWS; rows >= least; rows /= 2) {
        backend->backward_rows = rows;
        if (rows % owned == 0 && fits(device, backend, rows, backend->backward_row))
            return;
    }
    backend->backward_rows = TILE_ROWS;
    backend->rows_in_memory = true;
}

/* Matrices: the tile, where it lies in memory. Else values and gradients of the rows, padded. */
static uint64_t scratch_bytes(const struct field_model *model, const struct field_backend *backend)
{
    if (backend->precision == VKN_PRECISION_COOPMAT)
        return backend->rows_in_memory ? 2ull * backend->backward_rows * backend->backward_row : 0;
    return 2ull * model->activations * (backend->rounds * backend->backward_rows + 16) *
           (backend->half ? 2 : 4);
}

static vkn_status choose_matrices(const struct vkn_config *config, const struct field_model *model,
                                  const struct gpu_capabilities *device,
                                  struct field_backend *backend)
{
    if (!device->cooperative_matrix)
        return base_fail(VKN_BAD_INPUT, "config: precision: \"%s\" has no cooperative matrices",
                         device->name);
    backend->half_accumulate = config->matrix.accumulate == VKN_ACCUMULATE_F16;
    backend->conversions = config->matrix.conversions;
    BASE_TRY(choose_shape(config, device, backend));
    if (backend->conversions &&
        (!device->cooperative_matrix2 || backend->shape.n != backend->shape.k ||
         backend->half_accumulate || backend->shape.m > device->subgroup_size))
        return base_fail(VKN_BAD_INPUT,
                         "config: matrix.conversions: needs VK_NV_cooperative_matrix2, f32 "
                         "accumulation and a shape with N = K and M up to the subgroup size %u",
                         device->subgroup_size);
    backend->owned_rows =
        backend->shape.m > device->subgroup_size ? backend->shape.m : device->subgroup_size;
    backend->forward_row = widest(model) + ROW_PADDING;
    backend->backward_row = model->activations + ROW_PADDING;
    place_rows(device, backend);
    backend->scratch_bytes = scratch_bytes(model, backend);
    backend->roll_loops = device->type == GPU_CPU;
    backend->hold_sums =
        device->type == GPU_CPU || held_floats(model, device, backend) <= HELD_FLOATS;
    return VKN_OK;
}

/* ---- sums ----------------------------------------------------------------------------------- */

static vkn_status choose_sums(const struct vkn_config *config,
                              const struct gpu_capabilities *device, struct field_backend *backend)
{
    static const char *const names[] = {NULL, "float", "fixed", "swap", "half"};
    /* With so few subgroups at work, each may have a level for itself. */
    bool owned = device->type == GPU_CPU && !gpu_disabled("owned_sums") &&
                 (device->subgroup_size == 8 || device->subgroup_size == 16);
    bool floats = device->float_atomic_add || owned;
    backend->sums = config->gradient_sums;
    if (backend->sums == VKN_SUMS_DEFAULT)
        backend->sums = floats && !config->deterministic ? VKN_SUMS_FLOAT : VKN_SUMS_FIXED;
    if (config->deterministic && backend->sums != VKN_SUMS_FIXED)
        return base_fail(VKN_BAD_INPUT,
                         "config: gradient_sums: %s sums depend on their order; "
                         "deterministic needs fixed",
                         names[backend->sums]);
    if (backend->sums == VKN_SUMS_FLOAT && !floats)
        return base_fail(VKN_BAD_INPUT,
                         "config: gradient_sums: \"%s\" has no atomic f32 addition; fixed and swap "
                         "work everywhere",
                         device->name);
    backend->sums_program = names[backend->sums];
    if (backend->sums == VKN_SUMS_HALF && !device->packed_half_atomics)
        backend->sums_program = "half_swap";
    if (backend->sums == VKN_SUMS_FLOAT && owned) {
        backend->sums_program = "owned";
        backend->sums_size = device->subgroup_size;
    }
    return VKN_OK;
}

/* ---- the backend ---------------------------------------------------------------------------- */

/* Enough workgroups to fill the device. How many samples there are is known on the device alone,
 * and workgroups that find none are not free on CPU devices; those of field_backward leave partial
 * sums (and on a CPU have scratch memory, which shall stay in cache). */
static void choose_groups(const struct gpu_capabilities *device, struct field_backend *backend)
{
    backend->forward_groups = device->type == GPU_CPU ? 64 : 4096;
    backend->backward_groups = device->type == GPU_CPU ? 4 * base_processors() : 512;
}

vkn_status field_backend_create(const struct vkn_config *config, const struct field_model *model,
                                const struct gpu_capabilities *device,
                                struct field_backend *backend)
{
    *backend = (struct field_backend){
        .precision = config->precision, .forward_rows = TILE_ROWS, .backward_rows = TILE_ROWS};
    backend->deep = model->layer_count > SHORT_LAYERS;
    choose_groups(device, backend);
    BASE_TRY(choose_sums(config, device, backend));
    backend->half = field_is_half(FIELD_PARAMETERS, config->precision);
    if (backend->half && !(device->float16 && device->storage16))
        return base_fail(VKN_BAD_INPUT,
                         "config: precision: \"%s\" has no 16-bit arithmetic and storage",
                         device->name);
    if (config->precision == VKN_PRECISION_COOPMAT)
        return choose_matrices(config, model, device, backend);
    /* The workgroup's partial sums are read and written once in so many tiles; there, scratch
     * memory stays in the second level of cache. */
    backend->rounds = device->type == GPU_CPU ? 4 : 1;
    backend->scratch_bytes = scratch_bytes(model, backend);
    return VKN_OK;
}

/* ---- tuning --------------------------------------------------------------------------------- */

#define MOST_ROUNDS  16u
#define MOST_ROWS    256u
#define MOST_GROUPS  16384u
_Static_assert(MOST_GROUPS <= REDUCE_GROUPS, "each of them may leave a sum");
/* Floats that an invocation may hold: with more of them, compilers take minutes and spill. */
#define MOST_HELD    (4 * HELD_FLOATS)
/* Bytes that the workgroups of field_backward may have together. */
#define MOST_SCRATCH (512ull << 20)

static bool is_tile(const struct gpu_capabilities *device, uint32_t rows)
{
    return rows > 0 && rows <= MOST_ROWS && rows <= device->max_workgroup_size &&
           rows % device->subgroup_size == 0;
}

static bool legal_matrices(const struct field_model *model, const struct gpu_capabilities *device,
                           const struct field_backend *backend)
{
    uint32_t owned = backend->owned_rows, subgroup = device->subgroup_size;
    /* Where activations stay in matrices a row has one subgroup; and the staged shape's barriers
     * of a subgroup stand where others may not come by. */
    bool alone = backend->conversions || field_backend_shape(backend) == VKN_SHAPE_8X8X16;
    if (backend->rounds || !owned || owned % subgroup || owned % backend->shape.m ||
        (alone && owned != subgroup))
        return false;
    /* Passes with workgroups of the usual size own rows too. */
    if (TILE_ROWS % owned || backend->forward_rows % owned || backend->backward_rows % owned ||
        backend->backward_rows % backend->shape.k)
        return false;
    if (!fits(device, backend, backend->forward_rows, backend->forward_row) ||
        (!backend->rows_in_memory &&
         !fits(device, backend, backend->backward_rows, backend->backward_row)))
        return false;
    return !backend->hold_sums || device->type == GPU_CPU ||
           held_floats(model, device, backend) <= MOST_HELD;
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
    if (!is_tile(device, backend->forward_rows) || !is_tile(device, backend->backward_rows))
        return false;
    if (!groups || groups > MOST_GROUPS || scratch > most || partials > most)
        return false;
    if (!backend->forward_groups || backend->forward_groups > MOST_GROUPS)
        return false;
    if (backend->precision == VKN_PRECISION_COOPMAT)
        return legal_matrices(model, device, backend);
    /* Weight gradients take eight rows at a time. */
    return backend->rounds > 0 && backend->rounds <= MOST_ROUNDS &&
           backend->backward_rows % 8 == 0 && !backend->owned_rows && !backend->hold_sums;
}

struct field_tuning field_backend_tuning(const struct field_backend *backend)
{
    return (struct field_tuning){.values = {
                                     [FIELD_ROUNDS] = backend->rounds,
                                     [FIELD_HOLD_SUMS] = backend->hold_sums,
                                     [FIELD_OWNED_ROWS] = backend->owned_rows,
                                     [FIELD_BACKWARD_ROWS] = backend->backward_rows,
                                     [FIELD_BACKWARD_GROUPS] = backend->backward_groups,
                                     [FIELD_FORWARD_ROWS] = backend->forward_rows,
                                     [FIELD_FORWARD_GROUPS] = backend->forward_groups,
                                 }};
}

bool field_backend_tune(const struct field_tuning *tuning, const struct field_model *model,
                        const struct gpu_capabilities *device, struct field_backend *backend)
{
    struct field_backend tuned = *backend;
    const uint32_t *values = tuning->values;
    tuned.rounds = values[FIELD_ROUNDS];
    tuned.hold_sums = values[FIELD_HOLD_SUMS] == 1;
    tuned.owned_rows = values[FIELD_OWNED_ROWS];
    tuned.backward_rows = values[FIELD_BACKWARD_ROWS];
    tuned.backward_groups = values[FIELD_BACKWARD_GROUPS];
    tuned.forward_rows = values[FIELD_FORWARD_ROWS];
    tuned.forward_groups = values[FIELD_FORWARD_GROUPS];
    tuned.scratch_bytes = scratch_bytes(model, &tuned);
    tuned.tuned = true;
    if (values[FIELD_HOLD_SUMS] > 1 || !is_legal(model, device, &tuned))
        return false;
    *backend = tuned;
    return true;
}

void field_backend_count(const struct field_backend *backend, const struct field_model *model,
                         struct buffer_counts *counts)
{
    counts->half_params = backend->half ? model->param_count : 0;
    counts->feature_bytes = model->inputs * (backend->half ? 2u : 4u);
    counts->sum_bytes = backend->sums == VKN_SUMS_FIXED  ? 8
                        : backend->sums == VKN_SUMS_HALF ? 2
                                                         : 0;
    counts->scratch_bytes = backend->scratch_bytes;
}

/* ---- programs ------------------------------------------------------------------------------- */

static void write_suffix(const struct field_backend *backend, bool backward,
                         char name[FIELD_PROGRAM_NAME])
{
    const struct gpu_matrix_shape *shape = &backend->shape;
    /* Device memory takes longer than what f16 accumulation saves: that has no program of its own.
     */
    bool memory = backend->rows_in_memory && backward;
    if (backend->precision != VKN_PRECISION_COOPMAT)
        snprintf(name, FIELD_PROGRAM_NAME, "%s%s", backend->half ? "fp16" : "fp32",
                 backend->deep ? "_deep" : "");
    else
        snprintf(name, FIELD_PROGRAM_NAME, "%ux%ux%u%s%s%s", shape->m, shape->n, shape->k,
                 backend->half_accumulate && !memory ? "_f16" : "",
                 backend->conversions && !backward ? "_conversions" : "", memory ? "_memory" : "");
}

void field_backend_program(const struct field_backend *backend, const char *pass,
                           enum field_variant variant, char name[FIELD_PROGRAM_NAME])
{
    char suffix[FIELD_PROGRAM_NAME] = "";
    if (variant == FIELD_FORWARD || variant == FIELD_VALUES || variant == FIELD_BACKWARD)
        write_suffix(backend, variant == FIELD_BACKWARD, suffix);
    else if (variant == FIELD_SCATTER)
        snprintf(suffix, sizeof suffix, "%s", backend->sums_program);
    else if (variant == FIELD_REDUCE && backend->sums == VKN_SUMS_FIXED)
        snprintf(suffix, sizeof suffix, "fixed");
    else if (variant == FIELD_COPIES && backend->half)
        snprintf(suffix, sizeof suffix, "half");
    else if (variant == FIELD_DEPTH && backend->deep)
        snprintf(suffix, sizeof suffix, "deep");
    snprintf(name, FIELD_PROGRAM_NAME, "%.31s%s%.31s", pass, suffix[0] ? "_" : "", suffix);
}

void field_backend_configure(const struct field_backend *backend,
                             struct gpu_constants *specialization)
{
    specialization->values[SPEC_HALF] = backend->half;
    specialization->values[SPEC_HALF_SUMS] = backend->sums == VKN_SUMS_HALF;
    specialization->values[SPEC_ROW] = backend->forward_row;
    specialization->values[SPEC_HOLD_SUMS] = backend->hold_sums;
    specialization->values[SPEC_ROLL_LOOPS] = backend->roll_loops;
    specialization->values[SPEC_OWNED_ROWS] = backend->owned_rows;
    specialization->values[SPEC_ROUNDS] = backend->rounds;
}

void field_backend_specialize(const struct field_backend *backend, enum field_variant variant,
                              struct gpu_constants *specialization)
{
    specialization->values[SPEC_ROW] =
        variant == FIELD_BACKWARD ? backend->backward_row : backend->forward_row;
}

/* What a program's options point to. */
struct named_program {
    char name[FIELD_PROGRAM_NAME];
    struct gpu_constants constants;
};

static struct gpu_program_options program_options(const struct field_backend *backend,
                                                  const char *pass, enum field_variant variant,
                                                  uint32_t local_size,
                                                  const struct gpu_constants *constants,
                                                  struct named_program *named)
{
    field_backend_program(backend, pass, variant, named->name);
    named->constants = *constants;
    field_backend_specialize(backend, variant, &named->constants);
    struct gpu_program_options options = {
        .name = named->name, .local_size = local_size, .constants = &named->constants};
    if (variant == FIELD_FORWARD)
        options.local_size = backend->forward_rows;
    if (variant == FIELD_BACKWARD)
        options.local_size = backend->backward_rows;
    if (variant == FIELD_SCATTER && backend->sums_size)
        options.local_size = backend->sums_size;
    return options;
}

vkn_status field_backend_create_program(struct gpu_device *device,
                                        const struct field_backend *backend, const char *pass,
                                        enum field_variant variant, uint32_t local_size,
                                        const struct gpu_constants *constants,
                                        struct gpu_program **program)
{
    struct named_program named;
    struct gpu_program_options options =
        program_options(backend, pass, variant, local_size, constants, &named);
    return gpu_program_create(device, &options, program);
}

vkn_status field_backend_create_programs(struct gpu_device *device,
                                         const struct field_backend *backend,
                                         const struct field_pass_request *requests, size_t count,
                                         uint32_t local_size, const struct gpu_constants *constants)
{
    struct named_program *named = base_alloc(count, sizeof *named);
    struct gpu_program_request *programs = base_alloc(count, sizeof *programs);
    vkn_status status = VKN_ERROR;
    if (named && programs) {
        for (size_t i = 0; i < count; i++)
            programs[i] = (struct gpu_program_request){
                program_options(backend, requests[i].pass, requests[i].variant, local_size,
                                constants, &named[i]),
                requests[i].program};
        status = gpu_programs_create(device, programs, count);
    }
    free(named);
    free(programs);
    return status;
}

enum vkn_matrix_shape field_backend_shape(const struct field_backend *backend)
{
    for (size_t i = 0; i < BASE_COUNT(shapes); i++)
        if (shapes[i].m == backend->shape.m && shapes[i].n == backend->shape.n &&
            shapes[i].k == backend->shape.k)
            return shapes[i].name;
    return VKN_SHAPE_DEFAULT;
}

const char *field_backend_describe(const struct field_backend *backend,
                                   char text[FIELD_PROGRAM_NAME])
{
    if (backend->precision != VKN_PRECISION_COOPMAT)
        snprintf(text, FIELD_PROGRAM_NAME, "%s", backend->half ? "fp16" : "fp32");
    else
        snprintf(text, FIELD_PROGRAM_NAME, "coopmat %ux%ux%u (%s accumulation%s)", backend->shape.m,
                 backend->shape.n, backend->shape.k, backend->half_accumulate ? "f16" : "f32",
                 backend->conversions ? ", conversions" : "");
    return text;
}
