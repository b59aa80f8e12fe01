#include "report/append.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

vkn_status report_append(int descriptor, const char *path, const void *data, size_t size)
{
    off_t before = lseek(descriptor, 0, SEEK_END);
    for (size_t done = 0; done < size;) {
        ssize_t written = write(descriptor, (const char *)data + done, size - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            int error = written < 0 ? errno : ENOSPC;
            if (before < 0 || ftruncate(descriptor, before) != 0)
                base_log(BASE_LOG_WARNING, "%s: its last record may be torn", path);
            return base_fail(VKN_ERROR, "%s: cannot write: %s", path, strerror(error));
        }
        done += (size_t)written;
    }
    return VKN_OK;
}
