/* Inside of the render room: PNG files written while the next pictures are rendered. */
#ifndef RENDER_WRITER_H
#define RENDER_WRITER_H

#include "base/base.h"

#define RENDER_MOST_FILES 16u /* that are being written at once */

/* A file to be: whoever writes it owns and frees path and pixels. */
struct render_file {
    char *path;
    void *pixels;
    uint32_t width, height;
    uint32_t channels; /* 1, 3 or 4 of 8 bits; of 16 bits 1 */
    uint32_t bits;     /* 8 or 16 */
};

/* Zero-initialise it. */
struct render_writer {
    struct render_write_slot {
        struct render_file file;
        struct base_task *task;
    } places[RENDER_MOST_FILES];
    size_t count; /* of files so far */
};

/* Writes the file beside what the caller does next; waits while as many files as there are
 * processors are being written. Takes over what is in *file, also after a failure. The status, and
 * the message, of an earlier file or of this one. */
vkn_status render_writer_add(struct render_writer *writer, const struct render_file *file);
/* Waits for all files. The first failure that add has not told. */
vkn_status render_writer_finish(struct render_writer *writer);

#endif
