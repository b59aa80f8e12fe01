/* Creates pseudo-random values and patterns, and fills buffers with them. */
#include <math.h>
#include <stdlib.h>

#include "bench/internal.h"

/* Knuth's 64-bit linear congruential generator; its top ten bits are exact in f16. */
float bench_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 54) * (1.0f / 512.0f) - 1.0f;
}

void bench_random_direction(uint64_t *state, float direction[3])
{
    float square = 1e-6f;
    for (int i = 0; i < 3; i++) {
        direction[i] = bench_random(state);
        square += direction[i] * direction[i];
    }
    for (int i = 0; i < 3; i++)
        direction[i] /= sqrtf(square);
}

double bench_read_value(const void *numbers, uint64_t index, bool f16)
{
    return (double)(f16 ? base_from_f16(((const uint16_t *)numbers)[index])
                        : ((const float *)numbers)[index]);
}

uint32_t bench_sets(const struct bench *bench, uint64_t bytes)
{
    /* Larger than the last level of any cache; lavapipe allows buffers of up to 128 MiB. */
    uint64_t total = bench->params->quick && bench->is_cpu ? 8u << 20
                     : bench->is_cpu                       ? 64u << 20
                                                           : 512u << 20;
    uint64_t sets = (total + bytes - 1) / bytes;
    return sets < 1 ? 1 : sets > 64 ? 64 : (uint32_t)sets;
}

vkn_status bench_fill(struct bench *bench, const struct gpu_buffer *buffer, uint32_t value)
{
    GPU_ONCE(bench->device, "bench fill");
    gpu_record_fill(recording, buffer, 0, UINT64_MAX, value);
    return gpu_run_once(&recording);
}

/* Doubles the filled part with every copy. */
vkn_status bench_upload_pattern(struct bench *bench, const struct gpu_buffer *buffer,
                                const void *pattern, uint64_t size)
{
    if (size > buffer->size)
        size = buffer->size;
    BASE_TRY(gpu_upload(bench->device, buffer, 0, pattern, size));
    GPU_ONCE(bench->device, "bench pattern");
    for (uint64_t filled = size; filled < buffer->size; filled *= 2) {
        uint64_t left = buffer->size - filled;
        gpu_record_barrier(recording);
        gpu_record_copy(recording, buffer, 0, buffer, filled, left < filled ? left : filled);
    }
    return gpu_run_once(&recording);
}

vkn_status bench_upload_values(struct bench *bench, const struct gpu_buffer *buffer,
                               const float *numbers, uint64_t count, bool f16)
{
    if (!f16)
        return gpu_upload(bench->device, buffer, 0, numbers, 4 * count);
    uint16_t *values = base_alloc(count, sizeof *values);
    if (!values)
        return VKN_ERROR;
    for (uint64_t i = 0; i < count; i++)
        values[i] = base_to_f16(numbers[i]);
    vkn_status status = gpu_upload(bench->device, buffer, 0, values, 2 * count);
    free(values);
    return status;
}

vkn_status bench_upload_indices(struct bench *bench, const struct gpu_buffer *buffer)
{
    uint64_t count = buffer->size / sizeof(uint32_t);
    uint32_t *indices = base_alloc(count, sizeof *indices);
    for (uint64_t i = 0; indices && i < count; i++)
        indices[i] = (uint32_t)i;
    vkn_status status =
        indices ? gpu_upload(bench->device, buffer, 0, indices, 4 * count) : VKN_ERROR;
    free(indices);
    return status;
}
