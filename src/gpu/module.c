/* The SPIR-V of a program in the form that its device takes, and the values of its specialisation
 * constants. */
#include "gpu/internal.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/program_sources.h"

uint32_t gpu_program_constants(const struct gpu_program_options *options, uint32_t subgroup_size,
                               uint32_t values[GPU_MAX_CONSTANTS])
{
    uint32_t count = options->constants ? options->constants->count : 0;
    if (options->constants)
        memcpy(values, options->constants->values, GPU_MAX_CONSTANTS * sizeof values[0]);
    values[GPU_SUBGROUP_SIZE] = subgroup_size;
    values[GPU_LOCAL_SIZE] = options->local_size;
    return count > GPU_FIRST_CONSTANT ? count : GPU_FIRST_CONSTANT;
}

uint32_t *gpu_fit_module(const struct gpu_support *support, bool snippet, const uint32_t *values,
                         uint32_t value_count, const uint32_t *words, size_t *count)
{
    uint32_t *specialized = gpu_specialize(words, count, values, value_count), *fitting = NULL;
    words = specialized ? specialized : words;
    /* The lanes of a CPU device are those of a vector, which never part. */
    if (support->capabilities.type != GPU_CPU)
        fitting = gpu_reconverge(support, words, count);
    else if (snippet)
        fitting = gpu_keep_loops(words, *count);
    if (!fitting)
        return specialized;
    free(specialized);
    return fitting;
}
