/* Unpacks the SPIR-V of programs that the build has embedded. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "gpu/internal.h"
#include "gpu/program_sources.h"
#include "gpu/spirv.h"

/* A file (cmake/compile_programs.c) begins with the number of words and the CRC-32 of their bytes, lowest byte first.
 * Zlib's stream of the bytes follows: the lowest bytes of all words, then the next ones. Its own checksum, Adler-32,
 * does not notice when bytes change places in pairs. */
enum {
    WORD_BYTES = 4,
    HEADER_BYTES = 2 * WORD_BYTES,
    MOST_WORDS_OF_A_BYTE = 258, /* deflate makes 1032 bytes of one at most */
};

static uint32_t read_word(const unsigned char *bytes, size_t stride)
{
    return bytes[0] | (uint32_t)bytes[stride] << 8 | (uint32_t)bytes[2 * stride] << 16 |
           (uint32_t)bytes[3 * stride] << 24;
}

size_t gpu_program_word_count(const struct gpu_program_source *source)
{
    if (source->snippet)
        return source->count;
    return source->end - source->packed >= HEADER_BYTES ? read_word(source->packed, 1) : 0;
}

static vkn_status refuse(const struct gpu_program_source *source)
{
    return base_fail(VKN_ERROR, "program %s: its code in this file is damaged", source->name);
}

/* Fills `words` from the file. */
static vkn_status inflate_words(const struct gpu_program_source *source, uint32_t *words,
                                size_t count)
{
    const unsigned char *stream = source->packed + HEADER_BYTES;
    uLongf length = (uLongf)(WORD_BYTES * count);
    Bytef *bytes = base_alloc(count, WORD_BYTES);
    if (!bytes)
        return VKN_ERROR;
    bool whole = uncompress(bytes, &length, stream, (uLong)(source->end - stream)) == Z_OK &&
                 length == WORD_BYTES * count &&
                 crc32(0, bytes, (uInt)length) == read_word(source->packed + WORD_BYTES, 1);
    for (size_t i = 0; whole && i < count; i++)
        words[i] = read_word(bytes + i, count);
    free(bytes);
    return whole ? VKN_OK : refuse(source);
}

vkn_status gpu_program_unpack(const struct gpu_program_source *source, uint32_t **words,
                              size_t *count)
{
    *words = NULL;
    *count = gpu_program_word_count(source);
    if (!source->snippet &&
        (*count < SPIRV_HEADER ||
         *count / MOST_WORDS_OF_A_BYTE > (size_t)(source->end - source->packed)))
        return refuse(source);
    *words = base_alloc(*count, sizeof **words);
    if (!*words)
        return VKN_ERROR;
    if (source->snippet) {
        memcpy(*words, source->words, *count * sizeof **words);
        return VKN_OK;
    }
    vkn_status status = inflate_words(source, *words, *count);
    if (status != VKN_OK) {
        free(*words);
        *words = NULL;
    }
    return status;
}
