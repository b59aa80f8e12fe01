/* Functions of POSIX that only tests use. Included in front of every test for Windows. */
#ifndef TESTS_WINDOWS_H
#define TESTS_WINDOWS_H

#include "windows/posix.h"

#define program_invocation_short_name "test"

/* Makes a folder whose name is `path` with other characters in place of the six last. */
static inline char *test_mkdtemp(char *path)
{
    static unsigned count;
    char *end = path + strlen(path) - 6;
    for (int i = 0; i < 1000; i++) {
        snprintf(end, 7, "%06x", ((unsigned)_getpid() * 131 + count++) & 0xffffffu);
        if (mkdir(path, 0777) == 0)
            return path;
    }
    return NULL;
}
#define mkdtemp test_mkdtemp

#endif
