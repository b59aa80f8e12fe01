
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

/* ---- cooperative matrices ----------------------------------------------------------------------
 */

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
                               const struct gpu_capabilities *device, struct field_path *path)
{
    for (size_t i = 0; i < BASE_COUNT(shapes); i++) {
        const struct gpu_matrix_shape *shape = usable_shape(device, i, path->half_accumulate);
        bool wanted = shape && (config->matrix.shape == shapes[i].name ||
                                (config->matrix.shape == VKN_SHAPE_DEFAULT && !shape->flexible));
        if (!wanted)
            continue;
        path->shape = *shape;
        return VKN_OK;
    }
    char offered[96];
    list_shapes(device, path->half_accumulate, offered, sizeof offered);
    return base_fail(VKN_BAD_INPUT, "config: matrix.shape: \"%s\" offers %s with %s accumulation",
                     device->name, offered[0] ? offered : "no usable shape",
                     path->half_accumulate ? "f16" : "f32");
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
                            const struct field_path *path)
{
    uint32_t subgroups = path->backward_rows / device->subgroup_size, slots = 0;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct field_layer *layer = &model->layers[i];
        uint32_t matrices = layer->inputs / path->shape.m * (layer->outputs / path->shape.n);
        slots += (matrices + subgroups - 1) / subgroups;
    }
    return slots * path->shape.m * path->shape.n / device->subgroup_size;
}

/* Registers of an invocation that weight gradients may take; a CPU device has none to run out of.
 */
#define HELD_FLOATS 160u
/* Rows are padded by 16 bytes, so that neighbours begin in different banks of shared memory. */
#define ROW_PADDING 8u
/* Most samples of a tile: the workgroup size of the other passes. */
#define TILE_ROWS   64u

/* Whether a tile fits into shared memory, the staging area for sums included. */
static bool fits(const struct gpu_capabilities *device, const struct field_path *path,
                 uint32_t rows, uint32_t row)
{
    uint32_t staging = rows / device->subgroup_size * path->shape.m * path->shape.n * 4;
    return rows * row * 2 + staging <= device->max_shared_memory;
}

/* As many rows as fit. */
static void place_rows(const struct gpu_capabilities *device, struct field_path *path)
{
    uint32_t owned = path->owned_rows;
    uint32_t least = owned > path->shape.k ? owned : path->shape.k;
    for (uint32_t rows = TILE_ROWS; rows >= least; rows /= 2) {
        path->backward_rows = rows;
        if (rows % owned == 0 && fits(device, path, rows, path->backward_row))
            return;
    }
    path->backward_rows = TILE_ROWS;
    path->rows_in_memory = true;
}

/* Matrices: the tile, where it lies in memory. Else values and gradients of the rows, padded. */
static uint64_t scratch_bytes(const struct field_model *model, const struct field_path *path)
{
    if (path->precision == VKN_PRECISION_COOPMAT)
        return path->rows_in_memory ? 2ull * path->backward_rows * path->backward_row : 0;
    return 2ull * model->activations * (path->rounds * path->backward_rows + 16) *
           (path->half ? 2 : 4);
}

static vkn_status choose_matrices(const struct vkn_config *config, const struct field_model *model,
                                  const struct gpu_capabilities *device, struct field_path *path)
{
    if (!device->cooperative_matrix)
        return base_fail(VKN_BAD_INPUT, "config: precision: \"%s\" has no cooperative matrices",
                         device->name);
    path->half_accumulate = config->matrix.accumulate == VKN_ACCUMULATE_F16;
    path->conversions = config->matrix.conversions;
    BASE_TRY(choose_shape(config, device, path));
    if (path->conversions && (!device->cooperative_matrix2 || path->shape.n != path->shape.k ||
                              path->half_accumulate || path->shape.m > device->subgroup_size))
        return base_fail(VKN_BAD_INPUT,
                         "config: matrix.conversions: needs VK_NV_cooperative_matrix2, f32 "
                         "accumulation and a shape with N = K and M up to the subgroup size %u",
                         device->subgroup_size);
    path->owned_rows =
        path->shape.m > device->subgroup_size ? path->shape.m : device->subgroup_size;
    path->forward_row = widest(model) + ROW_PADDING;
    path->backward_row = model->activations + ROW_PADDING;
    place_rows(device, path);
    path->scratch_bytes = scratch_bytes(model, path);
    path->roll_loops = device->type == GPU_CPU;
    path->hold_sums = device->type == GPU_CPU || held_floats(model, device, path) <= HELD_FLOATS;
    return VKN_OK;
}

/* ---- sums --------------------------------------------------------------------------------------
 */

static vkn_status choose_sums(const struct vkn_config *config,
                              const struct gpu_capabilities *device, struct field_path *path)
{
    static const char *const names[] = {NULL, "float", "fixed", "swap", "half"};
    /* With so few subgroups at work, each may have a level for itself. */
    bool owned = device->type == GPU_CPU && !gpu_disabled("owned_sums") &&
                 (device->subgroup_size == 8 || device->subgroup_size == 16);
    bool floats = device->float_atomic_add || owned;
    path->sums = config->gradient_sums;
    if (path->sums == VKN_SUMS_DEFAULT)
        path->sums = floats && !config->deterministic ? VKN_SUMS_FLOAT : VKN_SUMS_FIXED;
    if (config->deterministic && path->sums != VKN_SUMS_FIXED)
        return base_fail(VKN_BAD_INPUT,
                         "config: gradient_sums: %s sums depend on their order; "
                         "deterministic needs fixed",
                         names[path->sums]);
    if (path->sums == VKN_SUMS_FLOAT && !floats)
        return base_fail(VKN_BAD_INPUT,
                         "config: gradient_sums: \"%s\" has no atomic f32 addition; fixed and swap "
                         "work everywhere",
                         device->name);
    path->sums_program = names[path->sums];
    if (path->sums == VKN_SUMS_HALF && !device->packed_half_atomics)
        path->sums_program = "half_swap";
    if (path->sums == VKN_SUMS_FLOAT && owned) {
        path->sums_program = "owned";
        path->sums_size = device->subgroup_size;
    }
    return VKN_OK;
}

/* ---- the path ----------------------------------------------------------------------------------
 */

/* Enough workgroups to fill the device. How many samples there are is known on the device alone,
 * and workgroups that find none are not free on CPU devices; those of field_backward leave partial
 * sums (and on a CPU have scratch memory, which shall stay in cache). */
static void choose_groups(const struct gpu_capabilities *device, struct field_path *path)
{
    path->forward_groups = device->type == GPU_CPU ? 64 : 4096;
    path->backward_groups = device->type == GPU_CPU ? 4 * base_processors() : 512;
}

vkn_status field_path_create(const struct vkn_config *config, const struct field_model *model,
                             const struct gpu_capabilities *device, struct field_path *path)
{
    *path = (struct field_path){
        .precision = config->precision, .forward_rows = TILE_ROWS, .backward_rows = TILE_ROWS};
    path->deep = model->layer_count > SHORT_LAYERS;
    choose_groups(device, path);
    BASE_TRY(choose_sums(config, device, path));
    path->half = field_is_half(FIELD_PARAMETERS, config->precision);
    if (path->half && !(device->float16 && device->storage16))
        return base_fail(VKN_BAD_INPUT,
                         "config: precision: \"%s\" has no 16-bit arithmetic and storage",
                         device->name);
    if (config->precision == VKN_PRECISION_COOPMAT)
        return choose_matrices(config, model, device, path);
    /* The workgroup's partial sums are read and written once in so many tiles; there, scratch
     * memory stays in the second level of cache. */
    path->rounds = device->type == GPU_CPU ? 4 : 1;
    path->scratch_bytes = scratch_bytes(model, path);
    return VKN_OK;
}

/* ---- tuning ------------------------------------------------------------------------------------
 */

#define MOST_ROUNDS  16u
#define MOST_ROWS    256u
#define MOST_GROUPS  16384u
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
                           const struct field_path *path)
{
    uint32_t owned = path->owned_rows, subgroup = device->subgroup_size;
    /* Where activations stay in matrices a row has one subgroup; and the staged shape's barriers
     * of a subgroup stand where others may not come by. */
    bool alone = path->conversions || field_path_shape(path) == VKN_SHAPE_8X8X16;
    if (path->rounds || !owned || owned % subgroup || owned % path->shape.m ||
        (alone && owned != subgroup))
        return false;
    /* Passes with workgroups of the usual size own rows too. */
    if (TILE_ROWS % owned || path->forward_rows % owned || path->backward_rows % owned ||
        path->backward_rows % path->shape.k)
        return false;
    if (!fits(device, path, path->forward_rows, path->forward_row) ||
        (!path->rows_in_memory && !fits(device, path, path->backward_rows, path->backward_row)))
        return false;
    return !path->hold_sums || device->type == GPU_CPU ||
           held_floats(model, device, path) <= MOST_HELD;
}

static bool is_legal(const struct field_model *model, const struct gpu_capabilities *device,
                     const struct field_path *path)
{
    uint32_t groups = path->backward_groups;
    uint64_t scratch = groups * path->scratch_bytes, partials = 4ull * groups * model->mlp_params;
    uint64_t most = device->max_buffer_range && device->max_buffer_range < MOST_SCRATCH
                        ? device->max_buffer_range
                        : MOST_SCRATCH;
    if (!is_tile(device, path->forward_rows) || !is_tile(device, path->backward_rows))
        return false;
    if (!groups || groups > MOST_GROUPS || scratch > most || partials > most)
        return false;
    if (!path->forward_groups || path->forward_groups > MOST_GROUPS)
        return false;
    if (path->precision == VKN_PRECISION_COOPMAT)
        return legal_matrices(model, device, path);
    /* Weight gradients take eight rows at a time. */
    return path->rounds > 0 && path->rounds <= MOST_ROUNDS && path->backward_rows % 8 == 0 &&
           !path->owned_rows && !path->hold_sums;
}

struct field_tuning field_path_tuning(const struct field_path *path)
{
    return (struct field_tuning){.values = {
                                     [FIELD_ROUNDS] = path->rounds,
                                     [FIELD_HOLD_SUMS] = path->hold_sums,
                                     [FIELD_OWNED_ROWS] = path->owned_rows,
                                     [FIELD_BACKWARD_ROWS] = path->backward_rows,
                                     [FIELD_BACKWARD_GROUPS] = path->backward_groups,
                                     [FIELD_FORWARD_ROWS] = path->forward_rows,
                                     [FIELD_FORWARD_GROUPS] = path->forward_groups,
                                 }};
}

bool field_path_tune(const struct field_tuning *tuning, const struct field_model *model,
                     const struct gpu_capabilities *device, struct field_path *path)
{
    struct field_path tuned = *path;
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
    *path = tuned;
    return true;
}

void field_path_count(const struct field_path *path, const struct field_model *model,
                      struct buffer_counts *counts)
{
    counts->half_params = path->half ? model->param_count : 0;
    counts->feature_bytes = model->inputs * (path->half ? 2u : 4u);
    counts->sum_bytes = path->sums == VKN_SUMS_FIXED ? 8 : path->sums == VKN_SUMS_HALF ? 2 : 0;
    counts->scratch_bytes = path->scratch_bytes;
}

/* ---- programs ----------------------------------------------------------------------------------
 */

static void write_suffix(const struct field_path *path, bool backward,
                         char name[FIELD_PROGRAM_NAME])
{
    const struct gpu_matrix_shape *shape = &path->shape;
    /* Device memory takes longer than what f16 accumulation saves: that has no program of its own.
     */
    bool memory = path->rows_in_memory && backward;
    if (path->precision != VKN_PRECISION_COOPMAT)
        snprintf(name, FIELD_PROGRAM_NAME, "%s%s", path->half ? "fp16" : "fp32",
                 path->deep ? "_deep" : "");
    else
        snprintf(name, FIELD_PROGRAM_NAME, "%ux%ux%u%s%s%s", shape->m, shape->n, shape->k,
                 path->half_accumulate && !memory ? "_f16" : "",
                 path->conversions && !backward ? "_conversions" : "", memory ? "_memory" : "");
}

void field_path_program(const struct field_path *path, const char *pass, enum field_variant variant,
                        char name[FIELD_PROGRAM_NAME])
{
    char suffix[FIELD_PROGRAM_NAME] = "";
    if (variant == FIELD_FORWARD || variant == FIELD_VALUES || variant == FIELD_BACKWARD)
        write_suffix(path, variant == FIELD_BACKWARD, suffix);
    else if (variant == FIELD_SCATTER)
        snprintf(suffix, sizeof suffix, "%s", path->sums_program);
    else if (variant == FIELD_REDUCE && path->sums == VKN_SUMS_FIXED)
        snprintf(suffix, sizeof suffix, "fixed");
    else if ((variant == FIELD_REDUCE && path->sums == VKN_SUMS_HALF) ||
             (variant == FIELD_COPIES && path->half))
        snprintf(suffix, sizeof suffix, "half");
    else if (variant == FIELD_DEPTH && path->deep)
        snprintf(suffix, sizeof suffix, "deep");
    snprintf(name, FIELD_PROGRAM_NAME, "%.31s%s%.31s", pass, suffix[0] ? "_" : "", suffix);
}

void field_path_configure(const struct field_path *path, struct gpu_constants *specialization)
{
    specialization->values[SPEC_HALF] = path->half;
    specialization->values[SPEC_ROW] = path->forward_row;
    specialization->values[SPEC_HOLD_SUMS] = path->hold_sums;
    specialization->values[SPEC_ROLL_LOOPS] = path->roll_loops;
    specialization->values[SPEC_OWNED_ROWS] = path->owned_rows;
    specialization->values[SPEC_ROUNDS] = path->rounds;
}

void field_path_specialize(const struct field_path *path, enum field_variant variant,
                           struct gpu_constants *specialization)
{
    specialization->values[SPEC_ROW] =
        variant == FIELD_BACKWARD ? path->backward_row : path->forward_row;
}

/* What a program's options point to. */
struct named_program {
    char name[FIELD_PROGRAM_NAME];
    struct gpu_constants constants;
};

static struct gpu_program_options program_options(const struct field_path *path, const char *pass,
                                                  enum field_variant variant, uint32_t local_size,
                                                  const struct gpu_constants *constants,
                                                  struct named_program *named)
{
    field_path_program(path, pass, variant, named->name);
    named->constants = *constants;
    field_path_specialize(path, variant, &named->constants);
    struct gpu_program_options options = {named->name, local_size, &named->constants};
    if (variant == FIELD_FORWARD)
        options.local_size = path->forward_rows;
    if (variant == FIELD_BACKWARD)
        options.local_size = path->backward_rows;
    if (variant == FIELD_SCATTER && path->sums_size)
        options.local_size = path->sums_size;
    return options;
}

vkn_status field_path_create_program(struct gpu_device *device, const struct field_path *path,
                                     const char *pass, enum field_variant variant,
                                     uint32_t local_size, const struct gpu_constants *constants,
                                     struct gpu_program **program)
{
    struct named_program named;
    struct gpu_program_options options =
        program_options(path, pass, variant, local_size, constants, &named);
    return gpu_program_create(device, &options, program);
}

vkn_status field_path_create_programs(struct gpu_device *device, const struct field_path *path,
                                      const struct field_pass_request *requests, size_t count,
                                      uint32_t local_size, const struct gpu_constants *constants)
{
    struct named_program *named = base_alloc(count, sizeof *named);
    struct gpu_program_request *programs = base_alloc(count, sizeof *programs);
    vkn_status status = VKN_ERROR;
    if (named && programs) {
        for (size_t i = 0; i < count; i++)
            programs[i] = (struct gpu_program_request){
                program_options(path, requests[i].pass, requests[i].variant, local_size, constants,
                                &named[i]),
                requests[i].program};
        status = gpu_programs_create(device, programs, count);
    }
    free(named);
    free(programs);
    return status;
}

enum vkn_matrix_shape field_path_shape(const struct field_path *path)
{
    for (size_t i = 0; i < BASE_COUNT(shapes); i++)
        if (shapes[i].m == path->shape.m && shapes[i].n == path->shape.n &&
            shapes[i].k == path->shape.k)
            return shapes[i].name;
    return VKN_SHAPE_DEFAULT;
}

const char *field_path_describe(const struct field_path *path, char text[FIELD_PROGRAM_NAME])
{
    if (path->precision != VKN_PRECISION_COOPMAT)
        snprintf(text, FIELD_PROGRAM_NAME, "%s", path->half ? "fp16" : "fp32");
    else
        snprintf(text, FIELD_PROGRAM_NAME, "coopmat %ux%ux%u (%s accumulation%s)", path->shape.m,
                 path->shape.n, path->shape.k, path->half_accumulate ? "f16" : "f32",
                 path->conversions ? ", conversions" : "");
    return text;
}
