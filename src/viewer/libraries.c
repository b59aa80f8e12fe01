/* Loads libmicrohttpd. */
#include "viewer/libraries.h"

#include <stdio.h>

#include "loading/loading.h"

struct mhd mhd;

#define MHD_FILE "libmicrohttpd.so.12"

bool libraries_load(char *message, size_t size)
{
    static const char *const files[] = {MHD_FILE, NULL};
    void *library = loading_open(files);
    bool complete = library != NULL;
    if (!library)
        snprintf(message, size,
                 MHD_FILE " is missing, which the viewer needs: install libmicrohttpd12 (since "
                          "Debian 13 libmicrohttpd12t64)");
#define FIND(name, result, parameters) \
    complete = loading_find(library, "MHD_" #name, &mhd.name) && complete;
    MHD_FUNCTIONS(FIND)
#undef FIND
    if (library && !complete)
        snprintf(message, size,
                 MHD_FILE
                 ": lacks functions that the viewer needs: another version of it is needed");
    return complete;
}
