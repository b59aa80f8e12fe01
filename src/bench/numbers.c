/* Patterns, and memory to take turns with. */
#include "bench/internal.h"

/* Knuth's 64-bit congruential generator; ten bits are exact in f16. */
float bench_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 54) * (1.0f / 512.0f) - 1.0f;
}

uint32_t bench_sets(const struct bench *bench, uint64_t bytes)
{
    /* More than the last level of any cache; lavapipe takes buffers up to 128 MiB. */
    uint64_t total = bench->params->quick && bench->cpu ? 8u << 20
                     : bench->cpu                       ? 64u << 20
                                                        : 512u << 20;
    uint64_t sets = (total + bytes - 1) / bytes;
    return sets < 1 ? 1 : sets > 64 ? 64 : (uint32_t)sets;
}

vkn_status bench_fill(struct bench *bench, const struct gpu_buffer *buffer, uint32_t value)
{
    struct gpu_recording *recording = NULL;
    BASE_TRY(gpu_record_begin(bench->device, "bench fill", 0, &recording));
    gpu_record_fill(recording, buffer, 0, UINT64_MAX, value);
    return gpu_run_once(&recording);
}

/* Copies what is there behind itself, twice as much each time. */
vkn_status bench_upload_pattern(struct bench *bench, const struct gpu_buffer *buffer,
                                const void *pattern, uint64_t size)
{
    if (size > buffer->size)
        size = buffer->size;
    BASE_TRY(gpu_upload(bench->device, buffer, 0, pattern, size));
    struct gpu_recording *recording = NULL;
    BASE_TRY(gpu_record_begin(bench->device, "bench pattern", 0, &recording));
    for (uint64_t there = size; there < buffer->size; there *= 2) {
        uint64_t left = buffer->size - there;
        gpu_record_barrier(recording);
        gpu_record_copy(recording, buffer, 0, buffer, there, left < there ? left : there);
    }
    return gpu_run_once(&recording);
}
