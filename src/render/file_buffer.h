/* Buffers many small elements, little-endian, in front of a file. Private to render. */
#ifndef RENDER_FILE_BUFFER_H
#define RENDER_FILE_BUFFER_H

#include "base/base.h"

#define FILE_BUFFER_SIZE        ((size_t)1 << 16)
#define FILE_BUFFER_MAX_ELEMENT 256u /* largest element in bytes */

struct file_buffer {
    struct base_file_writer *writer;
    size_t used;
    int error; /* errno of the first failed write; later writes are skipped */
    char bytes[FILE_BUFFER_SIZE];
};

/* Opens a buffer in front of a writer that the caller has begun. NULL when out of memory. */
struct file_buffer *file_buffer_open(struct base_file_writer *writer);
/* Returns FILE_BUFFER_MAX_ELEMENT bytes for the next element; writes the buffer first if it is too
 * full. */
char *file_buffer_reserve(struct file_buffer *file_buffer);
/* Append one value of an element, little-endian. */
void file_buffer_u32(struct file_buffer *file_buffer, uint32_t word);
void file_buffer_f32(struct file_buffer *file_buffer, float value);
void file_buffer_f64(struct file_buffer *file_buffer, double value);
void file_buffer_u8(struct file_buffer *file_buffer, uint32_t byte);
/* Writes the buffered bytes, then `size` bytes, which may exceed FILE_BUFFER_MAX_ELEMENT. */
void file_buffer_bytes(struct file_buffer *file_buffer, const void *bytes, size_t size);
/* Writes the buffered bytes and frees the buffer. Errors name the file. */
vkn_status file_buffer_close(struct file_buffer *file_buffer);

#endif
