/* Inside of the render room: bytes of many small elements on their way into a file. */
#ifndef RENDER_SINK_H
#define RENDER_SINK_H

#include "base/base.h"

#define SINK_SIZE  ((size_t)1 << 16)
#define SINK_SPACE 256u /* that one element takes at most */

struct sink {
    struct base_file_writer *writer;
    size_t used;
    int error; /* errno of the first failed write; nothing is written after it */
    char bytes[SINK_SIZE];
};

/* Into a writer that the caller has begun. NULL without memory. */
struct sink *sink_open(struct base_file_writer *writer);
/* Room for one more element. */
char *sink_next(struct sink *sink);
/* Parts of an element, little-endian. */
void sink_word(struct sink *sink, uint32_t word);
void sink_float(struct sink *sink, float value);
void sink_double(struct sink *sink, double value);
void sink_byte(struct sink *sink, uint32_t byte);
/* As many as there are, behind all before. */
void sink_bytes(struct sink *sink, const void *bytes, size_t size);
/* Writes what is left, and frees. Errors name the file. */
vkn_status sink_close(struct sink *sink);

#endif
