/* The programs of a backend: their names, constants and creation. */
#include <stdio.h>
#include <stdlib.h>

#include "field/internal.h"

#define PRODUCT_SIZE 256u /* invocations: shaders/field/product_tile.glsl */

static void write_suffix(const struct field_backend *backend, bool backward,
                         char name[FIELD_PROGRAM_NAME])
{
    const struct gpu_matrix_shape *shape = &backend->shape;
    /* Device memory takes longer than what f16 accumulation saves: that has no program of its own.
     */
    bool memory = backend->rows_in_memory && backward;
    if (backend->precision != VKN_PRECISION_COOPMAT)
        snprintf(name, FIELD_PROGRAM_NAME, "%s%s%s", backend->f16 ? "fp16" : "fp32",
                 backend->cpu_shaped ? "" : "_tiled", memory ? "_memory" : "");
    else
        snprintf(name, FIELD_PROGRAM_NAME, "%ux%ux%u%s%s%s", shape->m, shape->n, shape->k,
                 backend->f16_accumulate && !memory ? "_f16" : "",
                 backend->conversions && !backward ? "_conversions" : "", memory ? "_memory" : "");
}

/* Of products of layers. */
static void write_product(const struct field_backend *backend, bool float_sums,
                          char name[FIELD_PROGRAM_NAME])
{
    const struct gpu_matrix_shape *shape = &backend->shape;
    if (backend->precision == VKN_PRECISION_COOPMAT)
        snprintf(name, FIELD_PROGRAM_NAME, "%ux%ux%u%s", shape->m, shape->n, shape->k,
                 backend->f16_accumulate && !float_sums ? "_f16" : "");
    else
        snprintf(name, FIELD_PROGRAM_NAME, "%s%s", backend->f16 ? "fp16" : "fp32",
                 backend->cpu_shaped ? "" : "_tiled");
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
    else if (variant == FIELD_PRODUCT || variant == FIELD_PRODUCT_SUMS)
        write_product(backend, variant == FIELD_PRODUCT_SUMS, suffix);
    else if ((variant == FIELD_COPIES && backend->copies) || (variant == FIELD_F16 && backend->f16))
        snprintf(suffix, sizeof suffix, "fp16");
    else if (variant == FIELD_DEPTH && !backend->cpu_shaped)
        snprintf(suffix, sizeof suffix, "tiled");
    snprintf(name, FIELD_PROGRAM_NAME, "%.31s%s%.31s", pass, suffix[0] ? "_" : "", suffix);
}

void field_backend_configure(const struct field_backend *backend,
                             struct gpu_constants *specialization)
{
    specialization->values[SPEC_F16] = backend->f16;
    specialization->values[SPEC_F16_SUMS] = backend->f16_sums;
    specialization->values[SPEC_ROW] = backend->forward_row;
    specialization->values[SPEC_HOLD_SUMS] = backend->hold_sums;
    specialization->values[SPEC_CPU_SHAPED] = backend->cpu_shaped;
    specialization->values[SPEC_TRANSPOSED] = backend->transposed;
    specialization->values[SPEC_OWNED_ROWS] = backend->owned_rows;
    specialization->values[SPEC_ROUNDS] = backend->rounds;
    specialization->values[SPEC_PRODUCT_BLOCKS] = backend->product.blocks;
    specialization->values[SPEC_PRODUCT_PANELS] = backend->product.panels;
}

void field_backend_specialize(const struct field_backend *backend, enum field_variant variant,
                              struct gpu_constants *specialization)
{
    specialization->values[SPEC_ROW] =
        variant == FIELD_BACKWARD ? backend->backward_row : backend->forward_row;
    uint32_t rows = field_tile_rows(backend, variant);
    specialization->values[SPEC_TILE_ROWS] = rows;
    /* On GPUs all subgroups share all rows, so that each has few of the sums; but where activations
     * stay in matrices, those are of the subgroup's own rows. */
    if (!backend->cpu_shaped)
        specialization->values[SPEC_OWNED_ROWS] =
            backend->conversions && variant != FIELD_BACKWARD ? backend->subgroup_size : rows;
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
    bool tiled = !backend->cpu_shaped && (variant == FIELD_VALUES || variant == FIELD_DEPTH);
    if (variant == FIELD_FORWARD || variant == FIELD_BACKWARD || tiled) {
        options.local_size = field_tile_size(backend, variant);
        options.subgroup_size = backend->subgroup_size;
    }
    if (variant == FIELD_SCATTER && backend->sums_size)
        options.local_size = backend->sums_size;
    if (variant == FIELD_PRODUCT || variant == FIELD_PRODUCT_SUMS) {
        bool matrices = backend->precision == VKN_PRECISION_COOPMAT;
        options.subgroup_size = backend->subgroup_size;
        options.local_size = matrices              ? 4 * backend->subgroup_size
                             : backend->cpu_shaped ? backend->subgroup_size
                                                   : PRODUCT_SIZE;
    }
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
