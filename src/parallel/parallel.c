/* Implements what threads and processes share: all-reduces and a hash. */
#include <string.h>

#include "parallel/internal.h"
#include "parallel/parallel.h"

uint32_t parallel_rank(const struct parallel *parallel)
{
    return parallel->rank;
}

uint32_t parallel_size(const struct parallel *parallel)
{
    return parallel->size;
}

vkn_status parallel_gather(struct parallel *parallel, const void *mine, size_t size, void *all)
{
    return parallel->transport->gather(parallel, mine, size, all);
}

vkn_status parallel_broadcast(struct parallel *parallel, void *data, size_t size)
{
    return parallel->transport->broadcast(parallel, data, size);
}

vkn_status parallel_combine(struct parallel *parallel, parallel_combination *combination,
                            float *values, size_t count)
{
    return parallel->transport->combine(parallel, combination, values, count);
}

void parallel_expect_delays(struct parallel *parallel, bool expects_delays)
{
    parallel->expects_delays = expects_delays;
    parallel->has_begun = parallel->has_begun || !expects_delays;
}

void parallel_set_step(struct parallel *parallel, uint64_t step)
{
    parallel->step = step;
}

void parallel_mark_over(struct parallel *parallel)
{
    parallel->is_over = true;
}

bool parallel_is_over(const struct parallel *parallel)
{
    return parallel->is_over;
}

void parallel_leave(struct parallel *parallel)
{
    parallel->transport->leave(parallel);
}

#define SHARD_ALIGN 16u /* values: shards are whole cache lines */

size_t parallel_shard_begin(size_t count, uint32_t rank, uint32_t size)
{
    size_t lines = (count + SHARD_ALIGN - 1) / SHARD_ALIGN;
    size_t begin = lines * rank / size * SHARD_ALIGN;
    return begin < count ? begin : count;
}

#define BLOCK 1024u /* values: 4 KiB, which stay in the L1 cache */

void parallel_mean_of(float *const values[], uint32_t ranks, uint32_t kept, size_t first,
                      size_t end)
{
    const float factor = 1.0f / (float)ranks;
    for (size_t at = first; at < end; at += BLOCK) {
        size_t count = end - at < BLOCK ? end - at : BLOCK;
        float sums[BLOCK];
        for (size_t i = 0; i < count; i++)
            sums[i] = values[0][at + i];
        for (uint32_t rank = 1; rank < ranks; rank++)
            for (size_t i = 0; i < count; i++)
                sums[i] += values[rank][at + i];
        for (uint32_t rank = 0; rank < kept; rank++)
            for (size_t i = 0; i < count; i++)
                values[rank][at + i] = sums[i] * factor;
    }
}

/* ---- f16 ------------------------------------------------------------------------------------- */

/* Sums of the low and of the high f16 of 32-bit words. */
struct pair_sums {
    float low[BLOCK], high[BLOCK];
};

static void add_pairs(const uint32_t pairs[BLOCK], struct pair_sums *sums)
{
    for (size_t i = 0; i < BLOCK; i++) {
        sums->low[i] += base_from_f16(pairs[i] & 0xffffu);
        sums->high[i] += base_from_f16(pairs[i] >> 16);
    }
}

static void round_pairs(const struct pair_sums *sums, float factor, uint32_t pairs[BLOCK])
{
    for (size_t i = 0; i < BLOCK; i++)
        pairs[i] = base_to_f16(sums->low[i] * factor) |
                   (uint32_t)base_to_f16(sums->high[i] * factor) << 16;
}

void parallel_mean_f16_of(float *const values[], uint32_t ranks, uint32_t kept, size_t first,
                          size_t end)
{
    for (size_t at = first; at < end; at += BLOCK) {
        size_t count = end - at < BLOCK ? end - at : BLOCK;
        uint32_t pairs[BLOCK] = {0};
        struct pair_sums sums;
        for (size_t i = 0; i < BLOCK; i++)
            sums.low[i] = sums.high[i] = -0.0f;
        for (uint32_t rank = 0; rank < ranks; rank++) {
            memcpy(pairs, values[rank] + at, count * sizeof *pairs);
            add_pairs(pairs, &sums);
        }
        round_pairs(&sums, 1.0f / (float)ranks, pairs);
        for (uint32_t rank = 0; rank < kept; rank++)
            memcpy(values[rank] + at, pairs, count * sizeof *pairs);
    }
}

void parallel_max_of(float *const values[], uint32_t ranks, uint32_t kept, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        float most = values[0][i];
        for (uint32_t rank = 1; rank < ranks; rank++)
            most = values[rank][i] > most ? values[rank][i] : most;
        for (uint32_t rank = 0; rank < kept; rank++)
            values[rank][i] = most;
    }
}

/* ---- hash ------------------------------------------------------------------------------------ */

/* The rotation moves the highest bits to the lowest: products carry bits only upwards. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash << 31 | hash >> 33;
}

uint64_t parallel_hash(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t word;
    for (size_t left = size; left > 0; left -= left < sizeof word ? left : sizeof word) {
        word = 0;
        memcpy(&word, bytes + (size - left), left < sizeof word ? left : sizeof word);
        hash = mix(hash, word);
    }
    return mix(hash, size);
}
