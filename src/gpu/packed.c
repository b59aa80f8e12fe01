/* Unpacks the SPIR-V of programs that the build has embedded. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "gpu/internal.h"
#include "gpu/program_sources.h"
#include "gpu/spirv.h"

/* A file begins with its words' number, lowest byte first; zlib's stream of the words follows, which ends
 * with a checksum. */
enum { COUNT_BYTES = 4 };

/* Zlib makes no byte of less than a thousandth; so a damaged number asks for no memory that it never fills. */
enum { MOST_WORDS_OF_A_BYTE = 258 };

size_t gpu_program_word_count(const struct gpu_program_source *source)
{
    size_t count = 0;
    if (source->snippet)
        return source->count;
    for (int i = COUNT_BYTES - 1; source->end - source->packed >= COUNT_BYTES && i >= 0; i--)
        count = count << 8 | source->packed[i];
    return count;
}

vkn_status gpu_program_unpack(const struct gpu_program_source *source, uint32_t **words,
                              size_t *count)
{
    *count = gpu_program_word_count(source);
    *words = NULL;
    const size_t packed = source->snippet ? 0 : (size_t)(source->end - source->packed);
    if (!source->snippet &&
        (*count < SPIRV_HEADER || *count > MOST_WORDS_OF_A_BYTE * (packed - COUNT_BYTES)))
        return base_fail(VKN_ERROR, "program %s: its code in this file is damaged", source->name);
    *words = base_alloc(*count, sizeof **words);
    if (!*words)
        return VKN_ERROR;
    uLongf size = (uLongf)(*count * sizeof **words);
    if (source->snippet)
        memcpy(*words, source->words, size);
    else if (uncompress((Bytef *)*words, &size, source->packed + COUNT_BYTES,
                        (uLong)(packed - COUNT_BYTES)) != Z_OK ||
             size != *count * sizeof **words) {
        free(*words);
        *words = NULL;
        return base_fail(VKN_ERROR, "program %s: its code in this file is damaged", source->name);
    }
    return VKN_OK;
}
