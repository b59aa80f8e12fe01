/* Limits the size of a snippet: its operations, which determine the compile time of drivers, and
 * its variables, which must fit on a stack. */
#include <stdlib.h>

#include "base/base.h"
#include "gpu/snippet_check.h"

/* Costs in scalars, for instructions that take longer to compile than the scalars they compute: a
 * call of a library function; the factor for functions of GLSL.std.450; a loop and a condition,
 * which compilers of CPU devices turn into masks. */
#define LIBRARY_CALL_COST    32u
#define BUILT_IN_COST_FACTOR 8u
#define LOOP_COST            64u
#define BRANCH_COST          16u

enum { UNSEEN, MEASURING, MEASURED };

struct function {
    uint32_t scalars, bytes, depth; /* of the function and all callees; depth: nesting of calls */
    uint32_t state;
};

struct size {
    const char *name;
    const struct spirv_match *match;
    const struct snippet_types *types;
    struct function *functions; /* [user id] */
};

static uint32_t add(uint32_t a, uint64_t b)
{
    return a + b > UINT32_MAX ? UINT32_MAX : (uint32_t)(a + b);
}

static vkn_status measure(struct size *size, uint32_t id, uint32_t depth);

static vkn_status measure_call(struct size *size, struct function *caller, uint32_t callee,
                               uint32_t depth)
{
    struct function *called = &size->functions[callee];
    if (size->match->reference_of[callee]) {
        caller->scalars = add(caller->scalars, LIBRARY_CALL_COST);
        return VKN_OK;
    }
    if (called->state == UNSEEN)
        BASE_TRY(measure(size, callee, depth + 1));
    if (called->state == MEASURING)
        return base_fail(VKN_BAD_INPUT, "%s: a function calls itself", size->name);
    caller->scalars = add(caller->scalars, called->scalars);
    caller->bytes = add(caller->bytes, called->bytes);
    caller->depth = caller->depth > called->depth ? caller->depth : called->depth;
    return VKN_OK;
}

static uint64_t scalars_of(const struct size *size, size_t at)
{
    const struct spirv *user = size->match->user;
    bool user_allowed = false;
    uint32_t code = spirv_code(user, at);
    const char *operands = spirv_operands(code, &user_allowed);
    if (code == OP_LOOP_MERGE || code == OP_SELECTION_MERGE)
        return code == OP_LOOP_MERGE ? LOOP_COST : BRANCH_COST;
    if (operands[0] != 't')
        return 1;
    uint64_t scalars = size->types->scalars[user->words[at + 1]];
    return scalars * (code == OP_EXT_INST ? BUILT_IN_COST_FACTOR : 1);
}

static uint32_t bytes_of(const struct size *size, size_t variable)
{
    const struct spirv *user = size->match->user;
    uint32_t type = user->words[variable + 1];
    if (spirv_code_of(user, type) != OP_TYPE_POINTER)
        return 0;
    return add(0, 4 * (uint64_t)size->types->scalars[user->words[user->definition[type] + 3]]);
}

/* Stack of the open blocks: for each, the label of its merge block. */
struct nesting {
    uint32_t ends[SNIPPET_MOST_DEPTH], depth;
};

static bool follow(struct nesting *nesting, const uint32_t *word)
{
    uint32_t code = word[0] & 0xffffu;
    while (code == OP_LABEL && nesting->depth > 0 && nesting->ends[nesting->depth - 1] == word[1])
        nesting->depth--;
    if (code != OP_SELECTION_MERGE && code != OP_LOOP_MERGE)
        return true;
    if (nesting->depth == SNIPPET_MOST_DEPTH)
        return false;
    nesting->ends[nesting->depth++] = word[1];
    return true;
}

static vkn_status measure(struct size *size, uint32_t id, uint32_t depth)
{
    const struct spirv *user = size->match->user;
    struct function *function = &size->functions[id];
    struct nesting nesting = {.depth = 0};
    if (depth > SNIPPET_MOST_DEPTH)
        return base_fail(VKN_BAD_INPUT, "%s: functions call each other more than %u deep",
                         size->name, SNIPPET_MOST_DEPTH);
    function->state = MEASURING;
    for (size_t at = user->definition[id]; spirv_code(user, at) != OP_FUNCTION_END;
         at += spirv_length(user, at)) {
        uint32_t code = spirv_code(user, at);
        if (code == OP_FUNCTION_CALL)
            BASE_TRY(measure_call(size, function, user->words[at + 3], depth));
        if (code == OP_VARIABLE)
            function->bytes = add(function->bytes, bytes_of(size, at));
        else if (code != OP_FUNCTION)
            function->scalars = add(function->scalars, scalars_of(size, at));
        if (!follow(&nesting, user->words + at))
            return base_fail(VKN_BAD_INPUT, "%s: loops and conditions are nested more than %u deep",
                             size->name, SNIPPET_MOST_DEPTH);
    }
    function->state = MEASURED;
    function->depth++;
    return function->depth <= SNIPPET_MOST_DEPTH
               ? VKN_OK
               : base_fail(VKN_BAD_INPUT, "%s: functions call each other more than %u deep",
                           size->name, SNIPPET_MOST_DEPTH);
}

static uint32_t bytes_of_globals(const struct size *size)
{
    const struct spirv *user = size->match->user;
    uint32_t bytes = 0;
    for (size_t at = SPIRV_HEADER; at < user->count && spirv_code(user, at) != OP_FUNCTION;
         at += spirv_length(user, at))
        if (spirv_code(user, at) == OP_VARIABLE && !size->match->reference_of[user->words[at + 2]])
            bytes = add(bytes, bytes_of(size, at));
    return bytes;
}

static vkn_status measure_all(struct size *size)
{
    const struct spirv_match *match = size->match;
    const uint32_t roots[] = {match->main, match->user_of[match->snippet[0]],
                              match->user_of[match->snippet[1]]};
    uint32_t scalars = 0, bytes = bytes_of_globals(size);
    for (size_t i = 0; i < BASE_COUNT(roots); i++) {
        struct function *root = &size->functions[roots[i]];
        if (roots[i] == 0 || root->state == MEASURED)
            continue;
        BASE_TRY(measure(size, roots[i], 1));
        scalars = add(scalars, root->scalars);
        bytes = add(bytes, root->bytes);
    }
    if (bytes > SNIPPET_MOST_BYTES)
        return base_fail(VKN_BAD_INPUT,
                         "%s: its variables take %u bytes for each sample, at most %u are possible",
                         size->name, bytes, SNIPPET_MOST_BYTES);
    if (scalars > SNIPPET_MOST_SCALARS)
        return base_fail(
            VKN_BAD_INPUT,
            "%s: it is too long for drivers' compilers: %u operations with all calls inlined, at "
            "most %u are possible",
            size->name, scalars, SNIPPET_MOST_SCALARS);
    return VKN_OK;
}

vkn_status snippet_check_size(const char *name, const struct spirv_match *match,
                              const struct snippet_types *types)
{
    struct size size = {.name = name,
                        .match = match,
                        .types = types,
                        .functions = base_alloc(match->user->bound + 1, sizeof *size.functions)};
    vkn_status status = size.functions ? measure_all(&size) : VKN_ERROR;
    free(size.functions);
    return status;
}
