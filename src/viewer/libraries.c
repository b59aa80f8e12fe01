/* Loads libmicrohttpd through dlopen. */
#include "viewer/libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct mhd mhd;

#define MHD_FILE "libmicrohttpd.so.12"

static bool find_function(void *library, const char *name, void *pointer)
{
    void *symbol = dlsym(library, name);
    memcpy(pointer, &symbol, sizeof symbol); /* C has no cast from objects to functions */
    return symbol != NULL;
}

bool libraries_load(char *message, size_t size)
{
    void *library = dlopen(MHD_FILE, RTLD_NOW | RTLD_LOCAL);
    bool complete = library != NULL;
    if (!library)
        snprintf(message, size,
                 MHD_FILE " is not there, which the viewer needs: install libmicrohttpd12 (since "
                          "Debian 13 libmicrohttpd12t64)");
#define FIND(name, result, parameters) \
    complete = complete && find_function(library, "MHD_" #name, &mhd.name);
    MHD_FUNCTIONS(FIND)
#undef FIND
    if (library && !complete)
        snprintf(message, size,
                 MHD_FILE
                 ": lacks functions that the viewer needs: another version of it is needed");
    return complete;
}
