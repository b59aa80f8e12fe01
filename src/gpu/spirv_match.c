/* Verifies that a module with a user's snippet contains the library's code unchanged, except for
 * ids. */
#include "gpu/snippet_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* ---- instructions ---------------------------------------------------------------------------- */

static bool match_id(struct spirv_match *match, uint32_t reference, uint32_t user);

static void skip_lines(const struct spirv *module, size_t *at)
{
    while (*at < module->count &&
           (spirv_code(module, *at) == OP_LINE || spirv_code(module, *at) == OP_NO_LINE))
        *at += spirv_length(module, *at);
}

static bool match_instruction(struct spirv_match *match, size_t reference, size_t user)
{
    const uint32_t *a = match->reference->words + reference, *b = match->user->words + user;
    bool user_allowed = false;
    const char *operands = spirv_operands(*a & 0xffffu, &user_allowed);
    if (*a != *b)
        return false;
    for (uint32_t k = 1; k < *a >> 16; k++) {
        char letter = spirv_operand(operands, k);
        bool is_id = letter != 'l' && letter != 's';
        if (is_id ? !match_id(match, a[k], b[k]) : a[k] != b[k])
            return false;
    }
    return true;
}

static bool is_snippet(const struct spirv_match *match, uint32_t reference)
{
    return reference == match->snippet[0] || reference == match->snippet[1];
}

/* Returns whether ids of the opcode, types and constants, are compared by content. Compilers may
 * merge or duplicate equal types: depending on the order, a variable shares the array type of a
 * buffer or has its own. */
static bool is_by_content(uint32_t code)
{
    return code == OP_EXT_INST_IMPORT || (code >= OP_TYPE_VOID && code <= OP_CONSTANT_NULL) ||
           code == OP_UNDEF;
}

/* Returns whether two ids match. Ids that are not compared by content are paired at the first
 * comparison; the bodies of functions are compared later. */
static bool match_id(struct spirv_match *match, uint32_t reference, uint32_t user)
{
    const struct spirv *a = match->reference, *b = match->user;
    if (match->user_of[reference] == user)
        return true;
    size_t from = a->definition[reference], to = b->definition[user];
    if (from == 0 || to == 0 || spirv_code(a, from) != spirv_code(b, to) ||
        (a->function[reference] == 0) != (b->function[user] == 0))
        return false;
    bool by_content = is_by_content(spirv_code(a, from));
    if (by_content) {
        /* Paired before the comparison, which meets the id again as the instruction's result. */
        uint32_t previous = match->user_of[reference];
        match->user_of[reference] = user;
        bool same = match_instruction(match, from, to);
        match->user_of[reference] = same ? user : previous;
        match->reference_of[user] = same ? reference : match->reference_of[user];
        return same;
    }
    if (match->user_of[reference] || match->reference_of[user])
        return false;
    match->user_of[reference] = user;
    match->reference_of[user] = reference;
    match->found[match->found_count++] = reference;
    if (a->function[reference] || spirv_code(a, from) == OP_FUNCTION)
        return true;
    return match_instruction(match, from, to);
}

/* Removes all pairs but the first `count`. */
static void undo_pairs(struct spirv_match *match, size_t count)
{
    while (match->found_count > count) {
        uint32_t reference = match->found[--match->found_count];
        match->reference_of[match->user_of[reference]] = 0;
        match->user_of[reference] = 0;
    }
}

/* ---- functions ------------------------------------------------------------------------------- */

static bool match_function(struct spirv_match *match, uint32_t reference)
{
    const struct spirv *a = match->reference, *b = match->user;
    size_t from = a->definition[reference], to = b->definition[match->user_of[reference]];
    /* Only the types of the snippet's functions must match. */
    if (is_snippet(match, reference))
        return match_instruction(match, from, to);
    for (bool more = true; more;) {
        if (!match_instruction(match, from, to))
            return false;
        more = spirv_code(a, from) != OP_FUNCTION_END;
        from += spirv_length(a, from);
        to += spirv_length(b, to);
        skip_lines(a, &from);
        skip_lines(b, &to);
        if (more && (from >= a->count || to >= b->count))
            return false;
    }
    return true;
}

/* Compares the functions paired from number `first` on, and functions that a comparison pairs. */
static vkn_status match_functions(const char *name, struct spirv_match *match, size_t first)
{
    for (size_t i = first; i < match->found_count; i++) {
        uint32_t reference = match->found[i];
        char function[64];
        if (spirv_code_of(match->reference, reference) != OP_FUNCTION ||
            match_function(match, reference))
            continue;
        spirv_name(match->reference, reference, function);
        return base_fail(VKN_BAD_INPUT,
                         "%s: it changes vknerf's own function %s: does it define a function with "
                         "the name of a GLSL function?",
                         name, function);
    }
    return VKN_OK;
}

/* Returns the function with the OpName; 0: none. */
static uint32_t find_function(const struct spirv *module, const char *wanted)
{
    for (size_t at = SPIRV_HEADER; at < module->count; at += spirv_length(module, at)) {
        const char *name = (const char *)&module->words[at + 2];
        size_t size = (spirv_length(module, at) - 2) * sizeof(uint32_t);
        if (spirv_code(module, at) != OP_NAME || strnlen(name, size) == size ||
            strcmp(name, wanted) != 0)
            continue;
        uint32_t id = module->words[at + 1];
        if (id < module->bound && module->definition[id] &&
            spirv_code_of(module, id) == OP_FUNCTION)
            return id;
    }
    return 0;
}

/* ---- entry point ----------------------------------------------------------------------------- */

/* Returns the entry point; 0: there is none, or several. */
static uint32_t find_main(const struct spirv *module)
{
    uint32_t entry = 0, count = 0;
    for (size_t at = SPIRV_HEADER; at < module->count; at += spirv_length(module, at))
        if (spirv_code(module, at) == OP_ENTRY_POINT) {
            entry = module->words[at + 2];
            count++;
        }
    return count == 1 && spirv_code_of(module, entry) == OP_FUNCTION ? entry : 0;
}

/* Returns the position of the call before main's final OpReturn and OpFunctionEnd; 0: main ends
 * otherwise. */
static size_t find_last_call(const struct spirv *module, uint32_t entry)
{
    size_t last[3] = {0}, at = module->definition[entry];
    while (at < module->count) {
        if (spirv_code(module, at) != OP_LINE && spirv_code(module, at) != OP_NO_LINE) {
            last[0] = last[1];
            last[1] = last[2];
            last[2] = at;
        }
        if (spirv_code(module, at) == OP_FUNCTION_END)
            break;
        at += spirv_length(module, at);
    }
    bool is_expected = last[0] && spirv_code(module, last[0]) == OP_FUNCTION_CALL &&
                       spirv_length(module, last[0]) == 4 &&
                       spirv_code(module, last[1]) == OP_RETURN &&
                       spirv_code(module, last[2]) == OP_FUNCTION_END;
    return is_expected ? last[0] : 0;
}

static vkn_status match_main(const char *name, struct spirv_match *match)
{
    const struct spirv *a = match->reference, *b = match->user;
    uint32_t entry = find_main(a);
    match->main = find_main(b);
    size_t from = entry ? find_last_call(a, entry) : 0,
           to = match->main ? find_last_call(b, match->main) : 0;
    const uint32_t *main_a = a->words + a->definition[entry],
                   *main_b = b->words + b->definition[match->main];
    if (!from || !to || !match_id(match, main_a[1], main_b[1]) || main_a[3] != main_b[3] ||
        !match_id(match, main_a[4], main_b[4]) ||
        !match_id(match, a->words[from + 3], b->words[to + 3]))
        return base_fail(VKN_BAD_INPUT, "%s: it changes the entry point of vknerf's shader", name);
    match->reference_main = entry;
    match->last_call = (uint32_t)to;
    return match_functions(name, match, 0);
}

/* ---- buffers, constants and other ids that functions have not paired ------------------------- */

static bool has_same_annotations(const struct spirv_match *match, uint32_t reference, uint32_t user)
{
    const struct spirv *a = match->reference, *b = match->user;
    uint32_t from = a->annotation[reference], to = b->annotation[user];
    for (; from && to; from = a->next[from], to = b->next[to]) {
        uint32_t length = spirv_length(a, from);
        if (a->words[from] != b->words[to] ||
            memcmp(a->words + from + 2, b->words + to + 2, (length - 2) * sizeof(uint32_t)) != 0)
            return false;
    }
    return from == to;
}

/* Returns whether data has the same memory layout under both types, which differ in decorations at
 * most. */
static bool has_same_layout(const struct spirv_match *match, uint32_t reference, uint32_t user)
{
    const struct spirv *a = match->reference, *b = match->user;
    size_t from = a->definition[reference], to = b->definition[user];
    uint32_t code = spirv_code(a, from), first = code == OP_TYPE_POINTER ? 3 : 2, last = 2;
    if (!has_same_annotations(match, reference, user))
        return false;
    if (code == OP_TYPE_STRUCT || code == OP_TYPE_POINTER)
        last = spirv_length(a, from);
    else if (code == OP_TYPE_ARRAY || code == OP_TYPE_RUNTIME_ARRAY || code == OP_TYPE_MATRIX)
        last = 3;
    for (uint32_t k = first; k < last; k++)
        if (!has_same_layout(match, a->words[from + k], b->words[to + k]))
            return false;
    return true;
}

/* Returns whether the instruction declares a specialisation constant or a variable of a kind that
 * users may not have. */
static bool is_interface(const struct spirv *module, size_t at)
{
    uint32_t code = spirv_code(module, at);
    return (code >= OP_SPEC_CONSTANT_TRUE && code <= OP_SPEC_CONSTANT_OP) ||
           (code == OP_VARIABLE && module->function[module->words[at + 2]] == 0 &&
            module->words[at + 3] != SPIRV_PRIVATE);
}

static bool find_interface(struct spirv_match *match, uint32_t reference)
{
    const struct spirv *b = match->user;
    for (size_t at = SPIRV_HEADER; at < b->count && spirv_code(b, at) != OP_FUNCTION;
         at += spirv_length(b, at)) {
        size_t found_before = match->found_count;
        if (!is_interface(b, at) || match->reference_of[b->words[at + 2]] ||
            !has_same_annotations(match, reference, b->words[at + 2]))
            continue;
        if (match_id(match, reference, b->words[at + 2]))
            return true;
        undo_pairs(match, found_before);
    }
    return false;
}

static vkn_status match_interface(const char *name, struct spirv_match *match)
{
    const struct spirv *a = match->reference;
    for (size_t at = SPIRV_HEADER; at < a->count && spirv_code(a, at) != OP_FUNCTION;
         at += spirv_length(a, at))
        if (is_interface(a, at) && !match->user_of[a->words[at + 2]] &&
            !find_interface(match, a->words[at + 2]))
            return base_fail(VKN_BAD_INPUT, "%s: it changes vknerf's buffers or constants", name);
    for (size_t i = 0; i < match->found_count; i++) {
        uint32_t reference = match->found[i], user = match->user_of[reference];
        size_t from = a->definition[reference], to = match->user->definition[user];
        if (!has_same_annotations(match, reference, user) ||
            (is_interface(a, from) &&
             !has_same_layout(match, a->words[from + 1], match->user->words[to + 1])))
            return base_fail(VKN_BAD_INPUT, "%s: it changes the memory layout of vknerf's buffers",
                             name);
    }
    return VKN_OK;
}

/* Pairs the functions that the snippet may call. */
static vkn_status match_public(const char *name, struct spirv_match *match)
{
    static const char *const functions[] = {"parameter(u1;", "parameter_pair(u1;",
                                            "put_feature(u1;f1;", "feature_gradient(u1;",
                                            "add_gradient(u1;f1;"};
    size_t first = match->found_count;
    for (size_t i = 0; i < BASE_COUNT(functions); i++) {
        uint32_t reference = find_function(match->reference, functions[i]),
                 user = find_function(match->user, functions[i]);
        if (!user)
            continue;
        if (!reference || !match_id(match, reference, user))
            return base_fail(VKN_BAD_INPUT, "%s: it defines the function %s, which is vknerf's",
                             name, functions[i]);
        match->is_public[user] = true;
    }
    return match_functions(name, match, first);
}

vkn_status spirv_match_open(const char *name, const struct spirv *reference,
                            const struct spirv *user, struct spirv_match *match)
{
    *match = (struct spirv_match){
        .reference = reference,
        .user = user,
        .user_of = base_alloc(reference->bound + 1, sizeof *match->user_of),
        .reference_of = base_alloc(user->bound + 1, sizeof *match->reference_of),
        .found = base_alloc(reference->bound + 1, sizeof *match->found),
        .snippet = {find_function(reference, "encode(vf3;u1;"),
                    find_function(reference, "encode_backward(vf3;u1;")},
        .is_public = base_alloc(user->bound + 1, sizeof *match->is_public),
    };
    if (!match->user_of || !match->reference_of || !match->found || !match->is_public)
        return VKN_ERROR;
    BASE_TRY(match_main(name, match));
    BASE_TRY(match_public(name, match));
    BASE_TRY(match_interface(name, match));
    /* The library calls the snippet's functions, but their code is the user's. */
    for (size_t i = 0; i < BASE_COUNT(match->snippet); i++)
        match->reference_of[match->user_of[match->snippet[i]]] = 0;
    return VKN_OK;
}

void spirv_match_close(struct spirv_match *match)
{
    free(match->user_of);
    free(match->reference_of);
    free(match->found);
    free(match->is_public);
    *match = (struct spirv_match){0};
}
