#include "render/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sink *sink_open(struct base_file_writer *writer)
{
    struct sink *sink = base_alloc(1, sizeof *sink);
    if (sink)
        sink->writer = writer;
    return sink;
}

static void put(struct sink *sink, const void *bytes, size_t size)
{
    errno = 0;
    if (sink->error == 0 && size > 0 && fwrite(bytes, 1, size, sink->writer->stream) != size)
        sink->error = errno != 0 ? errno : EIO;
}

static void flush(struct sink *sink)
{
    put(sink, sink->bytes, sink->used);
    sink->used = 0;
}

char *sink_next(struct sink *sink)
{
    if (sink->used + SINK_SPACE > SINK_SIZE)
        flush(sink);
    return sink->bytes + sink->used;
}

void sink_word(struct sink *sink, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        sink->bytes[sink->used++] = (char)(word >> 8 * i & 255u);
}

void sink_float(struct sink *sink, float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    sink_word(sink, word);
}

void sink_double(struct sink *sink, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    sink_word(sink, (uint32_t)bits);
    sink_word(sink, (uint32_t)(bits >> 32));
}

void sink_byte(struct sink *sink, uint32_t byte)
{
    sink->bytes[sink->used++] = (char)(byte & 255u);
}

void sink_bytes(struct sink *sink, const void *bytes, size_t size)
{
    flush(sink);
    put(sink, bytes, size);
}

vkn_status sink_close(struct sink *sink)
{
    flush(sink);
    int error = sink->error;
    const char *path = sink->writer->path;
    free(sink);
    return error == 0 ? VKN_OK
                      : base_fail(VKN_ERROR, "%s: cannot be written: %s", path, strerror(error));
}
