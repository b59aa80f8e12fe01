/* Finds the library's part of a program with a user's snippet, and refuses what the snippet may not
 * do. */
#ifndef GPU_SNIPPET_CHECK_H
#define GPU_SNIPPET_CHECK_H

#include "gpu/spirv.h"

/* ---- matching (spirv_match.c) ---------------------------------------------------------------- */

struct spirv_match {
    const struct spirv *reference,
        *user;              /* the program with the library's snippet, with the user's */
    uint32_t *user_of;      /* [id of plain]: the same in own; 0: not found yet */
    uint32_t *reference_of; /* [id of own]: the same in plain; 0: it is the user's */
    uint32_t *found; /* ids of plain that have been found, in order, but types and constants */
    size_t found_count;
    uint32_t snippet[2];           /* the functions of plain that are the snippet's */
    uint32_t main, reference_main; /* OpFunction ids */
    uint32_t last_call; /* of own's main, by which the library's code begins: its position */
    bool *is_public;    /* [id of own]: a function of the library that the snippet may call */
};

/* Finds all of the library's code, constants, variables and decorations in `own`. VKN_BAD_INPUT
 * when something of it is not as in `plain`; the message begins with `name`. spirv_match_close
 * frees it in either case. */
vkn_status spirv_match_open(const char *name, const struct spirv *reference,
                            const struct spirv *user, struct spirv_match *match);
void spirv_match_close(struct spirv_match *match);

/* ---- checks ---------------------------------------------------------------------------------- */

/* Of one invocation, with each function as often as it is called in the text. */
#define SNIPPET_MOST_BYTES   16384u /* of variables */
#define SNIPPET_MOST_SCALARS 16384u /* that are computed */
#define SNIPPET_MOST_DEPTH   32u    /* one within another; also blocks, and structures */

/* Compares a program with a user's snippet, `words`, with the same program with the library's own,
 * `plain`. On VKN_OK *safe are *safe_count words that the caller frees: the program, in which no
 * index leaves the arrays of the snippet and no loop of it asks to be unrolled. VKN_BAD_INPUT, with
 * a message that begins with `name`: the library's part is another, or the snippet does more than
 * compute with variables of its own and the five functions of shaders/field/snippet.glsl, or more
 * of that than a driver's compiler can be given. Reads any words. */
vkn_status gpu_snippet_check(const char *name, const uint32_t *reference, size_t reference_count,
                             const uint32_t *words, size_t count, uint32_t **safe,
                             size_t *safe_count);

/* ---- between its files ----------------------------------------------------------------------- */

/* [id of own]: of types the numbers (of 4 bytes) that they hold and how deep they are nested. */
struct snippet_types {
    uint32_t *scalars, *depth;
};
/* Whether the snippet's functions are not too many, too large or too deep: see SNIPPET_MOST_*. */
vkn_status snippet_check_size(const char *name, const struct spirv_match *match,
                              const struct snippet_types *types);
/* Makes *safe. */
vkn_status snippet_make_safe(const char *name, const struct spirv_match *match, uint32_t **safe,
                             size_t *safe_count);
/* Whether an instruction, other than one about lines, is of a function of the snippet's: `function`
 * is where the OpFunction is that it is in. */
static inline bool snippet_has(const struct spirv_match *match, size_t function)
{
    return !match->reference_of[match->user->words[function + 2]];
}

#endif
