/* Clamps the indices of a snippet to its arrays, since drivers need not do so. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "gpu/snippet_check.h"

/* A constant added to the module: the last index of an array, with the type of the index. */
struct limit {
    uint32_t type, last, id;
};

struct rewriting {
    const char *name;
    const struct spirv_match *match;
    const struct spirv *user;
    struct base_text globals, functions; /* SPIR-V words */
    struct limit *limits;
    size_t limit_count, limit_capacity;
    uint32_t bound, import;
    bool failed; /* out of memory */
};

static void append(struct base_text *text, const uint32_t *words, size_t count)
{
    base_text_add_bytes(text, words, count * sizeof *words);
}

/* ---- constants ------------------------------------------------------------------------------- */

/* Returns the id of the constant, after adding it to the module if needed; 0: out of memory. */
static uint32_t limit_of(struct rewriting *rewriting, uint32_t type, uint32_t last)
{
    for (size_t i = 0; i < rewriting->limit_count; i++)
        if (rewriting->limits[i].type == type && rewriting->limits[i].last == last)
            return rewriting->limits[i].id;
    if (rewriting->limit_count == rewriting->limit_capacity) {
        size_t capacity = 2 * rewriting->limit_capacity + 16;
        struct limit *grown = base_realloc(rewriting->limits, capacity * sizeof *grown);
        if (!grown)
            return 0;
        rewriting->limits = grown;
        rewriting->limit_capacity = capacity;
    }
    uint32_t id = rewriting->bound++;
    rewriting->limits[rewriting->limit_count++] = (struct limit){type, last, id};
    const uint32_t constant[] = {4u << 16 | OP_CONSTANT, type, id, last};
    append(&rewriting->globals, constant, BASE_COUNT(constant));
    return id;
}

/* ---- indices --------------------------------------------------------------------------------- */

static uint32_t type_of(const struct spirv *user, uint32_t id)
{
    size_t at = user->definition[id];
    bool user_allowed = false;
    const char *operands = spirv_operands(spirv_code(user, at), &user_allowed);
    return operands && operands[0] == 't' ? user->words[at + 1] : 0;
}

static bool is_constant(const struct spirv *user, uint32_t id, uint32_t *value)
{
    size_t at = user->definition[id];
    if (spirv_code(user, at) != OP_CONSTANT && spirv_code(user, at) != OP_CONSTANT_NULL)
        return false;
    *value = spirv_code(user, at) == OP_CONSTANT ? user->words[at + 3] : 0;
    return true;
}

/* Returns the number of members of a composite type and sets *member to the type of member `index`.
 * 0: not a composite. */
static uint32_t members_of(const struct spirv *user, uint32_t type, uint32_t index,
                           uint32_t *member)
{
    size_t at = user->definition[type];
    const uint32_t *word = user->words + at;
    uint32_t code = spirv_code(user, at), count = 0;
    if (code == OP_TYPE_VECTOR || code == OP_TYPE_MATRIX)
        count = word[3];
    if (code == OP_TYPE_ARRAY && !is_constant(user, word[3], &count))
        count = 0;
    if (code == OP_TYPE_STRUCT)
        count = spirv_length(user, at) - 2;
    if (count > 0)
        *member = word[code == OP_TYPE_STRUCT ? 2 + (index < count ? index : 0) : 2];
    return count;
}

/* Replaces *index by the id of min(*index, count - 1). */
static vkn_status limit_index(struct rewriting *rewriting, uint32_t *index, uint32_t count)
{
    const struct spirv *user = rewriting->user;
    uint32_t value = 0, type = type_of(user, *index);
    if (is_constant(user, *index, &value))
        return value < count ? VKN_OK
                             : base_fail(VKN_BAD_INPUT, "%s: index %d of an array of %u",
                                         rewriting->name, (int)value, count);
    if (type == 0 || spirv_code_of(user, type) != OP_TYPE_INT ||
        user->words[user->definition[type] + 2] != 32)
        return base_fail(VKN_BAD_INPUT, "%s: an index is not a 32-bit integer", rewriting->name);
    /* As an unsigned number, a negative index is larger than any limit. */
    uint32_t last = limit_of(rewriting, type, count - 1), id = rewriting->bound++;
    const uint32_t smaller[] = {
        7u << 16 | OP_EXT_INST, type, id, rewriting->import, GLSL_U_MIN, *index, last};
    rewriting->failed = rewriting->failed || last == 0;
    append(&rewriting->functions, smaller, BASE_COUNT(smaller));
    *index = id;
    return VKN_OK;
}

static vkn_status limit_chain(struct rewriting *rewriting, uint32_t *word, uint32_t length)
{
    const struct spirv *user = rewriting->user;
    uint32_t pointer = type_of(user, word[3]), type = 0;
    if (pointer && spirv_code_of(user, pointer) == OP_TYPE_POINTER)
        type = user->words[user->definition[pointer] + 3];
    for (uint32_t k = 4; k < length; k++) {
        uint32_t value = 0, count = 0;
        bool is_fixed = is_constant(user, word[k], &value),
             is_struct = type && spirv_code_of(user, type) == OP_TYPE_STRUCT;
        count = type ? members_of(user, type, value, &type) : 0;
        if (count == 0 || (is_struct && !is_fixed))
            return base_fail(VKN_BAD_INPUT, "%s: an index into a value without components",
                             rewriting->name);
        BASE_TRY(limit_index(rewriting, &word[k], count));
    }
    return VKN_OK;
}

static vkn_status limit_component(struct rewriting *rewriting, uint32_t vector, uint32_t *index)
{
    uint32_t type = type_of(rewriting->user, vector), member = 0;
    uint32_t count = type ? members_of(rewriting->user, type, 0, &member) : 0;
    if (count == 0 || spirv_code_of(rewriting->user, type) != OP_TYPE_VECTOR)
        return base_fail(VKN_BAD_INPUT, "%s: an index into a value without components",
                         rewriting->name);
    return limit_index(rewriting, index, count);
}

/* ---- module ---------------------------------------------------------------------------------- */

static vkn_status rewrite(struct rewriting *rewriting, size_t at)
{
    const struct spirv *user = rewriting->user;
    uint32_t code = spirv_code(user, at), length = spirv_length(user, at);
    uint32_t *word = base_alloc(length, sizeof *word);
    vkn_status status = VKN_OK;
    if (!word)
        return VKN_ERROR;
    memcpy(word, user->words + at, length * sizeof *word);
    if (code == OP_ACCESS_CHAIN || code == OP_IN_BOUNDS_ACCESS_CHAIN)
        status = limit_chain(rewriting, word, length);
    else if (code == OP_VECTOR_EXTRACT_DYNAMIC)
        status = limit_component(rewriting, word[3], &word[4]);
    else if (code == OP_VECTOR_INSERT_DYNAMIC)
        status = limit_component(rewriting, word[3], &word[5]);
    else if (code == OP_LOOP_MERGE) {
        /* A driver's compiler would take hours for a loop of a million iterations with an unroll
         * request. */
        length = 4;
        word[0] = length << 16 | OP_LOOP_MERGE;
        word[3] = 0;
    }
    append(&rewriting->functions, word, length);
    free(word);
    return status;
}

static vkn_status rewrite_all(struct rewriting *rewriting)
{
    const struct spirv *user = rewriting->user;
    size_t function = 0, at = SPIRV_HEADER;
    for (; at < user->count && spirv_code(user, at) != OP_FUNCTION; at += spirv_length(user, at))
        if (spirv_code(user, at) == OP_EXT_INST_IMPORT)
            rewriting->import = user->words[at + 1];
    if (rewriting->import == 0)
        return base_fail(VKN_BAD_INPUT, "%s: its SPIR-V does not import GLSL.std.450",
                         rewriting->name);
    append(&rewriting->globals, user->words, at);
    for (; at < user->count; at += spirv_length(user, at)) {
        function = spirv_code(user, at) == OP_FUNCTION ? at : function;
        if (snippet_has(rewriting->match, function))
            BASE_TRY(rewrite(rewriting, at));
        else
            append(&rewriting->functions, user->words + at, spirv_length(user, at));
    }
    return VKN_OK;
}

vkn_status snippet_make_safe(const char *name, const struct spirv_match *match, uint32_t **safe,
                             size_t *safe_count)
{
    struct rewriting rewriting = {
        .name = name, .match = match, .user = match->user, .bound = match->user->bound};
    vkn_status status = rewrite_all(&rewriting);
    size_t globals = rewriting.globals.size / sizeof **safe,
           functions = rewriting.functions.size / sizeof **safe;
    if (status == VKN_OK &&
        (rewriting.failed || rewriting.globals.failed || rewriting.functions.failed))
        status = VKN_ERROR;
    if (status == VKN_OK)
        *safe = base_alloc(globals + functions, sizeof **safe);
    if (status == VKN_OK && *safe) {
        memcpy(*safe, rewriting.globals.data, globals * sizeof **safe);
        memcpy(*safe + globals, rewriting.functions.data, functions * sizeof **safe);
        (*safe)[3] = rewriting.bound;
        *safe_count = globals + functions;
    }
    free(rewriting.limits);
    free(rewriting.globals.data);
    free(rewriting.functions.data);
    return status != VKN_OK ? status : *safe ? VKN_OK : VKN_ERROR;
}
