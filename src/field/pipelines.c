/* Names, specialises and creates the pipelines of a backend. */
#include <stdio.h>
#include <stdlib.h>

#include "field/internal.h"

#define PRODUCT_SIZE 256u /* invocations: shaders/field/product_tile.glsl */

static void write_suffix(const struct field_backend *backend, bool backward,
                         char name[FIELD_SHADER_NAME])
{
    const struct gpu_matrix_shape *shape = &backend->shape;
    /* No shader has both f16 accumulation and tiles in device memory: memory accesses cost more
     * than f16 accumulation saves. */
    bool in_memory = backend->rows_in_memory && backward;
    if (backend->precision != VKN_PRECISION_COOPMAT)
        snprintf(name, FIELD_SHADER_NAME, "%s%s%s", backend->f16 ? "fp16" : "fp32",
                 backend->cpu_kernels ? "" : "_tiled", in_memory ? "_memory" : "");
    else
        snprintf(name, FIELD_SHADER_NAME, "%ux%ux%u%s%s%s", shape->m, shape->n, shape->k,
                 backend->f16_accumulate && !in_memory ? "_f16" : "",
                 backend->conversions && !backward ? "_conversions" : "",
                 in_memory ? "_memory" : "");
}

/* Writes the suffix of the matrix products of unfused layers. */
static void write_product_suffix(const struct field_backend *backend, bool f32_sums,
                                 char name[FIELD_SHADER_NAME])
{
    const struct gpu_matrix_shape *shape = &backend->shape;
    if (backend->precision == VKN_PRECISION_COOPMAT)
        snprintf(name, FIELD_SHADER_NAME, "%ux%ux%u%s", shape->m, shape->n, shape->k,
                 backend->f16_accumulate && !f32_sums ? "_f16" : "");
    else
        snprintf(name, FIELD_SHADER_NAME, "%s%s", backend->f16 ? "fp16" : "fp32",
                 backend->cpu_kernels ? "" : "_tiled");
}

void field_backend_shader_name(const struct field_backend *backend, const char *pass,
                               enum field_variant variant, char name[FIELD_SHADER_NAME])
{
    char suffix[FIELD_SHADER_NAME] = "";
    if (variant == FIELD_FORWARD || variant == FIELD_VALUES || variant == FIELD_BACKWARD)
        write_suffix(backend, variant == FIELD_BACKWARD, suffix);
    else if (variant == FIELD_SCATTER)
        snprintf(suffix, sizeof suffix, "%s", backend->scatter_suffix);
    else if (variant == FIELD_REDUCE && backend->sums == VKN_SUMS_FIXED)
        snprintf(suffix, sizeof suffix, "fixed");
    else if (variant == FIELD_LAYER_PRODUCT || variant == FIELD_LAYER_PRODUCT_F32)
        write_product_suffix(backend, variant == FIELD_LAYER_PRODUCT_F32, suffix);
    else if ((variant == FIELD_F16_PARAMS && backend->copies) ||
             (variant == FIELD_F16_ACTIVATIONS && backend->f16))
        snprintf(suffix, sizeof suffix, "fp16");
    else if (variant == FIELD_FP32 && !backend->cpu_kernels)
        snprintf(suffix, sizeof suffix, "tiled");
    snprintf(name, FIELD_SHADER_NAME, "%.31s%s%.31s", pass, suffix[0] ? "_" : "", suffix);
}

void field_backend_configure(const struct field_backend *backend,
                             struct gpu_constants *specialization)
{
    specialization->values[SPEC_F16] = backend->f16;
    specialization->values[SPEC_F16_SUMS] = backend->f16_sums;
    specialization->values[SPEC_ROW_STRIDE] = backend->forward_stride;
    specialization->values[SPEC_HOLD_SUMS] = backend->hold_sums;
    specialization->values[SPEC_SAMPLE_LANES] = backend->sample_lanes;
    specialization->values[SPEC_CPU_KERNELS] = backend->cpu_kernels;
    specialization->values[SPEC_TRANSPOSED] = backend->transposed;
    specialization->values[SPEC_OWNED_ROWS] = backend->owned_rows;
    specialization->values[SPEC_GRADIENT_TILES] = backend->tiles_at_once;
    specialization->values[SPEC_PRODUCT_BLOCKS] = backend->product.blocks;
    specialization->values[SPEC_PRODUCT_PANELS] = backend->product.panels;
}

void field_backend_specialize(const struct field_backend *backend, enum field_variant variant,
                              struct gpu_constants *specialization)
{
    specialization->values[SPEC_ROW_STRIDE] =
        variant == FIELD_BACKWARD ? backend->backward_stride : backend->forward_stride;
    uint32_t rows = field_tile_rows(backend, variant);
    specialization->values[SPEC_TILE_ROWS] = rows;
    /* On GPUs all subgroups share all rows of a tile, so that each has fewer accumulators. With
     * conversions the activations stay in matrices, so each subgroup owns its rows. */
    if (!backend->cpu_kernels)
        specialization->values[SPEC_OWNED_ROWS] =
            backend->conversions && variant != FIELD_BACKWARD ? backend->subgroup_size : rows;
}

/* Memory that the options of a pipeline point to. */
struct named_pipeline {
    char name[FIELD_SHADER_NAME];
    struct gpu_constants constants;
};

static struct gpu_pipeline_options pipeline_options(const struct field_backend *backend,
                                                    const char *pass, enum field_variant variant,
                                                    uint32_t local_size,
                                                    const struct gpu_constants *constants,
                                                    struct named_pipeline *named)
{
    field_backend_shader_name(backend, pass, variant, named->name);
    named->constants = *constants;
    field_backend_specialize(backend, variant, &named->constants);
    struct gpu_pipeline_options options = {
        .name = named->name, .local_size = local_size, .constants = &named->constants};
    bool is_tiled = !backend->cpu_kernels && (variant == FIELD_VALUES || variant == FIELD_FP32);
    if (variant == FIELD_FORWARD || variant == FIELD_BACKWARD || is_tiled) {
        options.local_size = field_tile_size(backend, variant);
        options.subgroup_size = backend->subgroup_size;
    }
    if (variant == FIELD_SCATTER && backend->sums_size)
        options.local_size = backend->sums_size;
    if (variant == FIELD_LAYER_PRODUCT || variant == FIELD_LAYER_PRODUCT_F32) {
        bool uses_matrices = backend->precision == VKN_PRECISION_COOPMAT;
        options.subgroup_size = backend->subgroup_size;
        options.local_size = uses_matrices          ? 4 * backend->subgroup_size
                             : backend->cpu_kernels ? backend->subgroup_size
                                                    : PRODUCT_SIZE;
    }
    return options;
}

vkn_status field_backend_create_pipeline(struct gpu_device *device,
                                         const struct field_backend *backend, const char *pass,
                                         enum field_variant variant, uint32_t local_size,
                                         const struct gpu_constants *constants,
                                         struct gpu_pipeline **pipeline)
{
    struct named_pipeline named;
    struct gpu_pipeline_options options =
        pipeline_options(backend, pass, variant, local_size, constants, &named);
    return gpu_pipeline_create(device, &options, pipeline);
}

vkn_status field_backend_create_pipelines(struct gpu_device *device,
                                          const struct field_backend *backend,
                                          const struct field_pass_request *requests, size_t count,
                                          uint32_t local_size,
                                          const struct gpu_constants *constants)
{
    struct named_pipeline *named = base_alloc(count, sizeof *named);
    struct gpu_pipeline_request *pipelines = base_alloc(count, sizeof *pipelines);
    vkn_status status = VKN_ERROR;
    if (named && pipelines) {
        for (size_t i = 0; i < count; i++)
            pipelines[i] = (struct gpu_pipeline_request){
                pipeline_options(backend, requests[i].pass, requests[i].variant, local_size,
                                 constants, &named[i]),
                requests[i].pipeline};
        status = gpu_pipelines_create(device, pipelines, count);
    }
    free(named);
    free(pipelines);
    return status;
}
