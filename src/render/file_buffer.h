/* Inside of the render room: bytes of many small elements on their way into a file. */
#ifndef RENDER_FILE_BUFFER_H
#define RENDER_FILE_BUFFER_H

#include "base/base.h"

#define FILE_BUFFER_SIZE        ((size_t)1 << 16)
#define FILE_BUFFER_MAX_ELEMENT 256u /* that one element takes at most */

struct file_buffer {
    struct base_file_writer *writer;
    size_t used;
    int error; /* errno of the first failed write; nothing is written after it */
    char bytes[FILE_BUFFER_SIZE];
};

/* Into a writer that the caller has begun. NULL without memory. */
struct file_buffer *file_buffer_open(struct base_file_writer *writer);
/* Room for one more element. */
char *file_buffer_reserve(struct file_buffer *file_buffer);
/* Parts of an element, little-endian. */
void file_buffer_u32(struct file_buffer *file_buffer, uint32_t word);
void file_buffer_f32(struct file_buffer *file_buffer, float value);
void file_buffer_f64(struct file_buffer *file_buffer, double value);
void file_buffer_u8(struct file_buffer *file_buffer, uint32_t byte);
/* As many as there are, behind all before. */
void file_buffer_bytes(struct file_buffer *file_buffer, const void *bytes, size_t size);
/* Writes what is left, and frees. Errors name the file. */
vkn_status file_buffer_close(struct file_buffer *file_buffer);

#endif
