/* libmicrohttpd and libturbojpeg through dlopen. */
#include "viewer/libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct mhd mhd;
struct jpeg jpeg;

static bool find_function(void *library, const char *name, void *pointer)
{
    void *symbol = dlsym(library, name);
    memcpy(pointer, &symbol, sizeof symbol); /* C has no cast from objects to functions */
    return symbol != NULL;
}

static void *open_library(const char *file, const char *packages, char *message, size_t size)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        snprintf(message, size, "%s is not there, which the viewer needs: install %s", file,
                 packages);
    return library;
}

static bool lacks_functions(const char *file, char *message, size_t size)
{
    snprintf(message, size,
             "%s: lacks functions that the viewer needs: another version of it is needed", file);
    return false;
}

#define MHD_FILE  "libmicrohttpd.so.12"
#define JPEG_FILE "libturbojpeg.so.0"

bool libraries_load(char *message, size_t size)
{
    void *library = open_library(MHD_FILE, "libmicrohttpd12 (since Debian 13 libmicrohttpd12t64)",
                                 message, size);
    bool complete = library != NULL;
    if (!library)
        return false;
#define FIND(name, result, parameters) \
    complete = complete && find_function(library, "MHD_" #name, &mhd.name);
    MHD_FUNCTIONS(FIND)
#undef FIND
    if (!complete)
        return lacks_functions(MHD_FILE, message, size);
    library = open_library(JPEG_FILE, "libturbojpeg0 (on Ubuntu libturbojpeg)", message, size);
    complete = library != NULL;
    if (!library)
        return false;
#define FIND(name, result, parameters) \
    complete = complete && find_function(library, "tj" #name, &jpeg.name);
    JPEG_FUNCTIONS(FIND)
#undef FIND
    return complete || lacks_functions(JPEG_FILE, message, size);
}
