/* Writes PNG files on other threads while the next pictures are rendered. Private to render. */
#ifndef RENDER_WRITER_H
#define RENDER_WRITER_H

#include "base/base.h"

#define RENDER_MOST_FILES 16u /* most files that are written at the same time */

/* A file to write. The writer owns and frees `path` and `pixels`. */
struct render_file {
    char *path;
    void *pixels;
    uint32_t width, height;
    uint32_t channels; /* 1, 3 or 4 with 8 bits; 1 with 16 bits */
    uint32_t bits;     /* 8 or 16 */
};

/* Zero-initialise it. */
struct render_writer {
    struct render_write_slot {
        struct render_file file;
        struct base_task *task;
    } slots[RENDER_MOST_FILES];
    size_t count; /* files added so far */
};

/* Starts to write the file and returns. Waits first when as many files as there are processors are
 * being written. Takes ownership of file->path and file->pixels, also after a failure. Returns the
 * status, with its message, of an earlier file or of this one. */
vkn_status render_writer_add(struct render_writer *writer, const struct render_file *file);
/* Waits for all files. Returns the first failure that render_writer_add has not returned. */
vkn_status render_writer_finish(struct render_writer *writer);

#endif
