/* Chooses the backend of a field on a device: matrix shape, gradient accumulator, workgroups. */
#include <stdio.h>
#include <string.h>

#include "field/internal.h"

/* Matrix shapes in order of preference. The largest comes first: it needs the fewest products. */
static const struct {
    enum vkn_matrix_shape name;
    uint32_t m, n, k;
    /* Shaders convert f32 accumulators through shared memory, for devices without f16 accumulators
     * (Intel's first generation). */
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

/* Returns NULL when the device lacks a type that the shape's shaders use. The shaders of all shapes
 * use f32 accumulators for the weight gradients. */
static const struct gpu_matrix_shape *usable_shape(const struct gpu_capabilities *device,
                                                   size_t index, bool f16_accumulate)
{
    uint32_t m = shapes[index].m, n = shapes[index].n, k = shapes[index].k;
    bool needs_f16 = !shapes[index].staged;
    if (f16_accumulate && shapes[index].staged)
        return NULL;
    if (needs_f16 && !find_shape(device, m, n, k, "f16"))
        return NULL;
    return find_shape(device, m, n, k, "f32");
}

static void list_shapes(const struct gpu_capabilities *device, bool f16_accumulate, char *text,
                        size_t size)
{
    text[0] = 0;
    for (size_t i = 0; i < BASE_COUNT(shapes); i++)
        if (usable_shape(device, i, f16_accumulate))
            snprintf(text + strlen(text), size - strlen(text), "%s%ux%ux%u", text[0] ? ", " : "",
                     shapes[i].m, shapes[i].n, shapes[i].k);
}

/* A shape that only flexible dimensions offer is used on request only, because the hardware does
 * not have it. */
static vkn_status choose_shape(const struct vkn_config *config,
                               const struct gpu_capabilities *device, struct field_backend *backend)
{
    for (size_t i = 0; i < BASE_COUNT(shapes); i++) {
        const struct gpu_matrix_shape *shape = usable_shape(device, i, backend->f16_accumulate);
        bool wanted = shape && (config->matrix.shape == shapes[i].name ||
                                (config->matrix.shape == VKN_SHAPE_DEFAULT && !shape->flexible));
        if (!wanted)
            continue;
        backend->shape = *shape;
        return VKN_OK;
    }
    char offered[96];
    list_shapes(device, backend->f16_accumulate, offered, sizeof offered);
    return base_fail(VKN_BAD_INPUT, "config: matrix.shape: \"%s\" offers %s with %s accumulation",
                     device->name, offered[0] ? offered : "no usable shape",
                     backend->f16_accumulate ? "f16" : "f32");
}

static vkn_status choose_matrices(const struct vkn_config *config, const struct field_model *model,
                                  const struct gpu_capabilities *device,
                                  struct field_backend *backend)
{
    if (!device->cooperative_matrix)
        return base_fail(VKN_BAD_INPUT, "config: precision: \"%s\" has no cooperative matrices",
                         device->name);
    backend->f16_accumulate = config->matrix.accumulate == VKN_ACCUMULATE_F16 ||
                              (config->matrix.accumulate == VKN_ACCUMULATE_DEFAULT &&
                               config->policy.accumulators == VKN_POLICY_F16);
    backend->conversions = config->matrix.conversions;
    BASE_TRY(choose_shape(config, device, backend));
    if (backend->conversions &&
        (!device->cooperative_matrix2 || backend->shape.n != backend->shape.k ||
         backend->f16_accumulate || backend->shape.m > device->subgroup_size))
        return base_fail(VKN_BAD_INPUT,
                         "config: matrix.conversions: needs conversions and flexible dimensions of "
                         "VK_NV_cooperative_matrix2, f32 "
                         "accumulation and a shape with N = K and M up to the subgroup size %u",
                         device->subgroup_size);
    /* RDNA3 loads matrices by the widest loads if weights are stored by output. An H100 is faster
     * if they are stored by input: field_forward and field_backward took 0.44 ms instead of 0.53
     * (BENCHMARKS.md). */
    if (!backend->cpu_kernels && model->fused > 0 && !device->has_nvidia_driver)
        backend->transposed = FIELD_PAD(model->param_count);
    return VKN_OK;
}

/* ---- gradient accumulators ------------------------------------------------------------------ */

static vkn_status choose_sums(const struct vkn_config *config, const struct field_model *model,
                              const struct gpu_capabilities *device, struct field_backend *backend)
{
    static const char *const names[] = {NULL, "float", "fixed", "cas", "f16"};
    /* CPU devices have so few subgroups that each can own a level of the hash grid. */
    bool owned = (model->levels > 0 || model->inputs == 0) && device->type == GPU_CPU &&
                 !gpu_disabled("owned_sums") &&
                 (device->subgroup_size == 8 || device->subgroup_size == 16);
    bool has_f32_sums = device->float_atomic_add || owned;
    backend->sums = config->gradient_sums;
    if (backend->sums == VKN_SUMS_DEFAULT && config->policy.grid_gradients == VKN_POLICY_F16)
        backend->sums = VKN_SUMS_F16;
    if (backend->sums == VKN_SUMS_DEFAULT)
        backend->sums = has_f32_sums && !config->deterministic ? VKN_SUMS_F32 : VKN_SUMS_FIXED;
    if (config->deterministic && backend->sums != VKN_SUMS_FIXED)
        return base_fail(VKN_BAD_INPUT,
                         "config: gradient_sums: %s sums depend on their order; "
                         "deterministic needs fixed",
                         names[backend->sums]);
    if (backend->sums == VKN_SUMS_F32 && !has_f32_sums)
        return base_fail(VKN_BAD_INPUT,
                         "config: gradient_sums: \"%s\" has no atomic f32 addition; fixed works "
                         "everywhere",
                         device->name);
    bool by_cas = backend->sums == VKN_SUMS_CAS ||
                  (backend->sums == VKN_SUMS_F16 && !device->packed_f16_atomics);
    if (by_cas && !device->cas_sums)
        return base_fail(VKN_BAD_INPUT,
                         "config: gradient_sums: %s: \"%s\" adds wrongly by compare-and-swap; "
                         "fixed works everywhere",
                         names[backend->sums], device->name);
    backend->f16_sums = config->parallel.communication_type == VKN_COMMUNICATION_F16 ||
                        backend->sums == VKN_SUMS_F16;
    backend->scatter_suffix = names[backend->sums];
    /* Where subgroups are short (Intel) the lanes' exchange costs more in instructions than it
     * saves in memory requests. CPU devices exchange if they test the GPUs' kernels. */
    bool tests_gpu_kernels = device->type == GPU_CPU && !backend->cpu_kernels;
    backend->sample_lanes = device->subgroup_size >= 32 || tests_gpu_kernels ? 4 : 1;
    if (backend->sums == VKN_SUMS_F16 && by_cas)
        backend->scatter_suffix = "f16_cas";
    if (backend->sums == VKN_SUMS_F32 && owned) {
        backend->scatter_suffix = "owned";
        backend->sums_size = device->subgroup_size;
    }
    return VKN_OK;
}

struct field_product field_product_of(const struct gpu_capabilities *device, uint32_t subgroup_size)
{
    /* CPU devices with the kernels of GPUs use the largest part, so that tests cover it. */
    if (gpu_cpu_kernels(device))
        return (struct field_product){1, 1};
    if (subgroup_size >= 32 || device->type == GPU_CPU)
        return (struct field_product){2, 4};
    return (struct field_product){1, subgroup_size >= 16 ? 2 : 1};
}

/* Parts of a chunk's rows, each with its own sums of unfused layers' weight gradients, because a
 * layer of 256 x 256 keeps only eight workgroups busy. */
#define LAYER_SPLITS 16u

/* ---- the backend ---------------------------------------------------------------------------- */

/* Chooses enough workgroups to fill the device. Only the device knows the number of samples, and
 * workgroups without samples cost time on CPU devices. Each workgroup of field_backward also writes
 * partial sums and, on CPU devices, uses scratch memory that should stay in cache. */
static void choose_groups(const struct gpu_capabilities *device, struct field_backend *backend)
{
    backend->forward_groups = device->type == GPU_CPU ? 64 : 4096;
    backend->backward_groups = device->type == GPU_CPU ? 4 * base_processors() : 512;
}

/* Unfused layers read panels instead of f16 copies; fused layers and hash grids read the copies. */
static bool has_copies(const struct field_backend *backend, const struct field_model *model)
{
    return backend->f16 && (model->fused > 0 || model->levels > 0);
}

vkn_status field_backend_create(const struct vkn_config *config, const struct field_model *model,
                                const struct gpu_capabilities *device,
                                struct field_backend *backend)
{
    *backend = (struct field_backend){.precision = config->precision,
                                      .cpu_kernels = gpu_cpu_kernels(device),
                                      .subgroup_size = device->subgroup_size};
    /* In short subgroups each invocation has more registers. */
    if (!backend->cpu_kernels && device->subgroup_pinnable)
        backend->subgroup_size = device->subgroup_min;
    choose_groups(device, backend);
    BASE_TRY(choose_sums(config, model, device, backend));
    backend->f16 = field_is_f16(FIELD_PARAMETERS, config->precision);
    backend->copies = has_copies(backend, model);
    if (backend->f16 && !(device->float16 && device->storage16))
        return base_fail(VKN_BAD_INPUT,
                         "config: precision: \"%s\" has no 16-bit arithmetic and storage",
                         device->name);
    if (config->precision == VKN_PRECISION_COOPMAT)
        BASE_TRY(choose_matrices(config, model, device, backend));
    BASE_TRY(field_apply_policy(config, backend));
    backend->product = field_product_of(device, backend->subgroup_size);
    uint32_t splits = device->type == GPU_CPU ? 1 : LAYER_SPLITS;
    if (model->fused > 0)
        field_choose_tiles(model, device, backend);
    else
        backend->backward_groups = splits;
    backend->layer_splits = model->fused > 0 && model->columns > 0 ? splits : 0;
    return VKN_OK;
}

#define PANEL_CHUNK 512u /* values: shaders/field/blocks.glsl */

/* Returns how many f16 values of BIND_F16_PARAMS are copies of parameters. */
static uint64_t copied_values(const struct field_backend *backend, const struct field_model *model)
{
    return !has_copies(backend, model) ? 0
           : backend->transposed       ? backend->transposed + model->mlp_params
                                       : model->param_count;
}

/* Returns the first chunk of BIND_F16_PARAMS after the copies. */
static uint32_t first_panel(const struct field_backend *backend, const struct field_model *model)
{
    return (uint32_t)((copied_values(backend, model) + PANEL_CHUNK - 1) / PANEL_CHUNK);
}

void field_backend_place_panels(const struct field_backend *backend,
                                const struct field_model *model, struct Config *constants)
{
    uint32_t first = first_panel(backend, model), most = constants->backward_groups;
    for (uint32_t i = 0; i < MAX_LAYERS; i++) {
        constants->layer_columns[i].panels = first + model->layer_columns[i].panels;
        constants->layer_columns[i].transposed = first + model->layer_columns[i].transposed;
    }
    constants->layer_splits = backend->layer_splits < most ? backend->layer_splits : most;
}

void field_backend_size_buffers(const struct field_backend *backend,
                                const struct field_model *model, struct buffer_counts *counts)
{
    uint64_t size = backend->f16 ? 2 : 4;
    counts->f16_params = copied_values(backend, model);
    if (model->columns > 0) {
        counts->f16_params = (uint64_t)PANEL_CHUNK * first_panel(backend, model);
        counts->panels = (uint64_t)model->panel_chunks * PANEL_CHUNK * size / 2;
        counts->layer_bytes = 2ull * model->columns * model->chunk_rows * size;
        counts->kept_bytes = (uint64_t)model->columns * model->kept_rows * size;
        if (model->inputs > 0) /* activations begin at a whole chunk after the features */
            counts->kept_bytes += PANEL_CHUNK * size;
    }
    counts->feature_bytes = model->inputs * (backend->f16 ? 2u : 4u);
    counts->f16_sums = backend->f16_sums;
    counts->sum_bytes = (backend->sums == VKN_SUMS_FIXED ? 8 : 0) + (backend->f16_sums ? 2 : 0);
    counts->scratch_bytes = backend->scratch_bytes;
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
                                   char text[FIELD_SHADER_NAME])
{
    if (backend->precision != VKN_PRECISION_COOPMAT)
        snprintf(text, FIELD_SHADER_NAME, "%s", backend->f16 ? "fp16" : "fp32");
    else
        snprintf(text, FIELD_SHADER_NAME, "coopmat %ux%ux%u (%s accumulation%s)", backend->shape.m,
                 backend->shape.n, backend->shape.k, backend->f16_accumulate ? "f16" : "f32",
                 backend->conversions ? ", conversions" : "");
    return text;
}
