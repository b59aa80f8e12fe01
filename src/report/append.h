/* Files that grow by whole records. */
#ifndef REPORT_APPEND_H
#define REPORT_APPEND_H

#include "base/base.h"

/* Appends to the file behind `descriptor`, all or nothing: what a full disk left of a record is cut
 * off again, so that a later one does not continue it. `path` is for messages. */
vkn_status report_append(int descriptor, const char *path, const void *data, size_t size);

#endif
