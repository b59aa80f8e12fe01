/* Loads libraries of others when they are needed: programs start, and build, without them. */
#ifndef LOADING_LOADING_H
#define LOADING_LOADING_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Opens the first of these files that is there, up to NULL; NULL: none is. */
static inline void *loading_open(const char *const *files)
{
    void *library = NULL;
    for (; *files && !library; files++)
        library = dlopen(*files, RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* Sets the pointer to a function that `pointer` points to, and returns whether the library has the
 * function; NULL has none. C has no cast from objects to functions. */
static inline bool loading_find(void *library, const char *name, void *pointer)
{
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(pointer, &symbol, sizeof symbol);
    return symbol != NULL;
}

#endif
