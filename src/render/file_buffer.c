/* Buffers elements in front of a file. */
#include "render/file_buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct file_buffer *file_buffer_open(struct base_file_writer *writer)
{
    struct file_buffer *file_buffer = base_alloc(1, sizeof *file_buffer);
    if (file_buffer)
        file_buffer->writer = writer;
    return file_buffer;
}

static void put(struct file_buffer *file_buffer, const void *bytes, size_t size)
{
    errno = 0;
    if (file_buffer->error == 0 && size > 0 &&
        fwrite(bytes, 1, size, file_buffer->writer->stream) != size)
        file_buffer->error = errno != 0 ? errno : EIO;
}

static void flush(struct file_buffer *file_buffer)
{
    put(file_buffer, file_buffer->bytes, file_buffer->used);
    file_buffer->used = 0;
}

char *file_buffer_reserve(struct file_buffer *file_buffer)
{
    if (file_buffer->used + FILE_BUFFER_MAX_ELEMENT > FILE_BUFFER_SIZE)
        flush(file_buffer);
    return file_buffer->bytes + file_buffer->used;
}

void file_buffer_u32(struct file_buffer *file_buffer, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        file_buffer->bytes[file_buffer->used++] = (char)(word >> 8 * i & 255u);
}

void file_buffer_f32(struct file_buffer *file_buffer, float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    file_buffer_u32(file_buffer, word);
}

void file_buffer_f64(struct file_buffer *file_buffer, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    file_buffer_u32(file_buffer, (uint32_t)bits);
    file_buffer_u32(file_buffer, (uint32_t)(bits >> 32));
}

void file_buffer_u8(struct file_buffer *file_buffer, uint32_t byte)
{
    file_buffer->bytes[file_buffer->used++] = (char)(byte & 255u);
}

void file_buffer_bytes(struct file_buffer *file_buffer, const void *bytes, size_t size)
{
    flush(file_buffer);
    put(file_buffer, bytes, size);
}

vkn_status file_buffer_close(struct file_buffer *file_buffer)
{
    flush(file_buffer);
    int error = file_buffer->error;
    const char *path = file_buffer->writer->path;
    free(file_buffer);
    return error == 0 ? VKN_OK
                      : base_fail(VKN_ERROR, "%s: cannot be written: %s", path, strerror(error));
}
