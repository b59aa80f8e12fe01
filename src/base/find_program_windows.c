/* Finds programs in PATH on Windows. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static char *find_in(const char *folder, size_t length, const char *name)
{
    static const char *const endings[] = {".exe", ".bat", ".cmd"};
    for (size_t i = 0; i < BASE_COUNT(endings); i++) {
        char *path = base_format("%.*s/%s%s", (int)length, folder, name, endings[i]);
        if (path == NULL || base_file_exists(path))
            return path;
        free(path);
    }
    return NULL;
}

char *base_program_find(const char *name)
{
    const char *folders = getenv("PATH");
    char *path = NULL;
    for (const char *at = folders; path == NULL && at != NULL && *at != '\0';) {
        size_t length = strcspn(at, ";");
        if (length > 0)
            path = find_in(at, length, name);
        at += length + (at[length] == ';' ? 1 : 0);
    }
    return path;
}
