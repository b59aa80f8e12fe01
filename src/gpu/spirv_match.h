/* The library's part of a program, found in the same program with a user's snippet. */
#ifndef GPU_SPIRV_MATCH_H
#define GPU_SPIRV_MATCH_H

#include "gpu/spirv.h"

struct spirv_match {
    const struct spirv *plain, *own; /* the program with the library's snippet, with the user's */
    uint32_t *own_of;                /* [id of plain]: the same in own; 0: not found yet */
    uint32_t *plain_of;              /* [id of own]: the same in plain; 0: it is the user's */
    uint32_t *found; /* ids of plain that have been found, in order, but types and constants */
    size_t found_count;
    uint32_t snippet[2];       /* the functions of plain that are the snippet's */
    uint32_t main, plain_main; /* OpFunction ids */
    uint32_t last_call;        /* of own's main, by which the library's code begins: its position */
    bool *is_public; /* [id of own]: a function of the library that the snippet may call */
};

/* Finds all of the library's code, constants, variables and decorations in `own`. VKN_BAD_INPUT
 * when something of it is not as in `plain`; the message begins with `name`. spirv_match_close
 * frees it in either case. */
vkn_status spirv_match_open(const char *name, const struct spirv *plain, const struct spirv *own,
                            struct spirv_match *match);
void spirv_match_close(struct spirv_match *match);

#endif
