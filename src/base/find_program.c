/* Finds programs in PATH. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

char *base_program_find(const char *name)
{
    const char *folders = getenv("PATH");
    for (const char *at = folders; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, ":");
        /* An empty entry means the current folder. */
        char *path =
            base_format("%.*s/%s", length > 0 ? (int)length : 1, length > 0 ? at : ".", name);
        if (path == NULL || (base_file_exists(path) && access(path, X_OK) == 0))
            return path;
        free(path);
        at += length + (at[length] == ':' ? 1 : 0);
    }
    return NULL;
}
