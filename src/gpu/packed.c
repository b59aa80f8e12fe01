/* Unpacks embedded SPIR-V. */
#include <pthread.h>
#include <stdlib.h>
#include <zlib.h>

#include "gpu/shaders.h"
#include "gpu/spirv.h"

/* Format of cmake/compile_shaders.c: number of words and CRC-32 of their bytes, both
 * little-endian; then a zlib stream of the bytes, sorted by significance: the lowest bytes of all
 * words come first. Zlib's own checksum, Adler-32, misses some swaps of bytes. */
enum {
    WORD_BYTES = 4,
    HEADER_BYTES = 2 * WORD_BYTES,
    MOST_WORDS_OF_A_BYTE = 258, /* deflate expands a byte to at most 1032 bytes */
};

static uint32_t read_word(const unsigned char *bytes, size_t stride)
{
    return bytes[0] | (uint32_t)bytes[stride] << 8 | (uint32_t)bytes[2 * stride] << 16 |
           (uint32_t)bytes[3 * stride] << 24;
}

size_t gpu_shader_word_count(const struct gpu_shader *source)
{
    if (source->snippet)
        return source->count;
    return source->end - source->packed >= HEADER_BYTES ? read_word(source->packed, 1) : 0;
}

static vkn_status refuse(const struct gpu_shader *source)
{
    return base_fail(VKN_ERROR, "shader %s: its embedded SPIR-V is damaged; reinstall vknerf",
                     source->name);
}

static uint32_t *inflate_words(const struct gpu_shader *source, size_t count)
{
    const unsigned char *stream = source->packed + HEADER_BYTES;
    uLongf length = (uLongf)(WORD_BYTES * count);
    Bytef *bytes = base_alloc(count, WORD_BYTES);
    uint32_t *words = bytes ? base_alloc(count, sizeof *words) : NULL;
    if (words && (uncompress(bytes, &length, stream, (uLong)(source->end - stream)) != Z_OK ||
                  length != WORD_BYTES * count ||
                  crc32(0, bytes, (uInt)length) != read_word(source->packed + WORD_BYTES, 1))) {
        refuse(source);
        free(words);
        words = NULL;
    }
    for (size_t i = 0; words && i < count; i++)
        words[i] = read_word(bytes + i, count);
    free(bytes);
    return words;
}

/* The lock is held. */
static vkn_status unpack(struct gpu_shader *source)
{
    size_t count = gpu_shader_word_count(source);
    if (source->words)
        return VKN_OK;
    if (count < SPIRV_HEADER ||
        count / MOST_WORDS_OF_A_BYTE > (size_t)(source->end - source->packed))
        return refuse(source);
    source->words = inflate_words(source, count);
    source->count = count;
    return source->words ? VKN_OK : VKN_ERROR;
}

vkn_status gpu_shader_unpack(const struct gpu_shader *source)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (source->snippet)
        return VKN_OK;
    pthread_mutex_lock(&lock);
    vkn_status status = unpack((struct gpu_shader *)(uintptr_t)source);
    pthread_mutex_unlock(&lock);
    return status;
}
