/* What a snippet's program is refused for, on its SPIR-V. */
#ifndef GPU_SNIPPET_CHECK_H
#define GPU_SNIPPET_CHECK_H

#include "gpu/spirv_match.h"

/* Of one invocation, with each function as often as it is called in the text. */
#define SNIPPET_MOST_BYTES   16384u /* of variables */
#define SNIPPET_MOST_NUMBERS 16384u /* that are computed */
#define SNIPPET_MOST_CALLS   32u    /* one within another; also blocks, and structures */

/* Compares a program with a user's snippet, `words`, with the same program with the library's own,
 * `plain`. On VKN_OK *safe are *safe_count words that the caller frees: the program, in which no
 * index leaves the arrays of the snippet and no loop of it asks to be unrolled. VKN_BAD_INPUT, with
 * a message that begins with `name`: the library's part is another, or the snippet does more than
 * compute with variables of its own and the five functions of shaders/field/snippet.glsl, or more
 * of that than a driver's compiler can be given. Reads any words. */
vkn_status gpu_snippet_check(const char *name, const uint32_t *plain, size_t plain_count,
                             const uint32_t *words, size_t count, uint32_t **safe,
                             size_t *safe_count);

/* ---- between its files ----------------------------------------------------------------------- */

/* [id of own]: of types the numbers (of 4 bytes) that they hold and how deep they are nested. */
struct snippet_types {
    uint32_t *numbers, *depth;
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
    return !match->plain_of[match->own->words[function + 2]];
}

#endif
