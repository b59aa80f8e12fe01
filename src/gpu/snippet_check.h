/* Verifies the SPIR-V of a shader with a user's snippet: the library's part is unchanged, and the
 * snippet only computes. */
#ifndef GPU_SNIPPET_CHECK_H
#define GPU_SNIPPET_CHECK_H

#include "gpu/spirv.h"

/* ---- matching (spirv_match.c) ---------------------------------------------------------------- */

/* Corresponding ids of two modules. */
struct spirv_match {
    const struct spirv *reference, *user; /* reference module, with the library's snippet; user's */
    uint32_t *user_of;      /* [reference id]: the user module's id; 0: not found yet */
    uint32_t *reference_of; /* [user id]: the reference's id; 0: defined by the user */
    uint32_t *found; /* matched reference ids in order of discovery, without types and constants */
    size_t found_count;
    uint32_t snippet[2];           /* reference ids of the snippet's functions */
    uint32_t main, reference_main; /* ids of the entry points */
    uint32_t last_call;            /* position of main's call that starts the library's code */
    bool *is_public;               /* [user id]: a library function that snippets may call */
};

/* Matches all of the library's code, constants, variables and decorations in the user's module.
 * VKN_BAD_INPUT: part of it differs from the reference; the message begins with `name`. The caller
 * calls spirv_match_close in either case. */
vkn_status spirv_match_open(const char *name, const struct spirv *reference,
                            const struct spirv *user, struct spirv_match *match);
void spirv_match_close(struct spirv_match *match);

/* ---- checks ---------------------------------------------------------------------------------- */

/* Limits of one invocation, with every call inlined. */
#define SNIPPET_MOST_BYTES   16384u /* size of its variables */
#define SNIPPET_MOST_SCALARS 16384u /* scalars that it computes */
#define SNIPPET_MOST_DEPTH   32u    /* nesting of calls, of blocks, of structures */

/* Compares `words`, a module that contains a user's snippet, to the reference, which contains the
 * library's snippet. On VKN_OK, *safe holds *safe_count words, which the caller frees: the user's
 * module with all indices clamped to their arrays and without requests to unroll loops.
 * VKN_BAD_INPUT, with a message that begins with `name`: the library's part differs; the snippet
 * uses more than its own variables and the five functions of shaders/field/snippet.glsl; or the
 * snippet exceeds the limits above. `words` may be arbitrary data. */
vkn_status gpu_snippet_check(const char *name, const uint32_t *reference, size_t reference_count,
                             const uint32_t *words, size_t count, uint32_t **safe,
                             size_t *safe_count);

/* ---- shared by snippet_*.c ------------------------------------------------------------------- */

/* Sizes of types, [user id]: number of 4-byte scalars, and nesting depth. */
struct snippet_types {
    uint32_t *scalars, *depth;
};
/* Returns VKN_BAD_INPUT if the snippet exceeds a limit SNIPPET_MOST_*. */
vkn_status snippet_check_size(const char *name, const struct spirv_match *match,
                              const struct snippet_types *types);
/* Writes the module with clamped indices to *safe. */
vkn_status snippet_make_safe(const char *name, const struct spirv_match *match, uint32_t **safe,
                             size_t *safe_count);
/* Returns whether the OpFunction at `function` is the snippet's. */
static inline bool snippet_has(const struct spirv_match *match, size_t function)
{
    return !match->reference_of[match->user->words[function + 2]];
}

#endif
