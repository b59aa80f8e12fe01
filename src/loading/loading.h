/* loading: opens third-party libraries at run time, so that vknerf builds and runs without them. */
#ifndef LOADING_LOADING_H
#define LOADING_LOADING_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Opens the first loadable library of a NULL-terminated list; returns NULL if there is none. */
static inline void *loading_open(const char *const *files)
{
    void *library = NULL;
    for (; *files && !library; files++)
        library = dlopen(*files, RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* Stores a function of the library in the function pointer at `pointer`; returns whether the
 * library, which may be NULL, has the function. Copies bytes, because C has no cast from object
 * pointers to function pointers. */
static inline bool loading_find(void *library, const char *name, void *pointer)
{
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(pointer, &symbol, sizeof symbol);
    return symbol != NULL;
}

#endif
