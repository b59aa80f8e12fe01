/* A 64-bit hash that tells texts and numbers apart which differ by mistake; it does not withstand
 * forgery. */
#include <string.h>

#include "parallel/parallel.h"

/* Carries the highest bits back to the lowest, which a product alone never reaches. */
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
