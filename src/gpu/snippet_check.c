/* Checks on SPIR-V that a user's snippet only computes. */
#include "gpu/snippet_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

struct check {
    const char *name;
    const struct spirv *reference, *user;
    struct spirv_match match;
    struct snippet_types types;
};

/* ---- header of the module -------------------------------------------------------------------- */

static const char *name_of_capability(uint32_t capability)
{
    static const struct {
        uint32_t capability;
        const char *name;
    } names[] = {
        {9, "16-bit floats"},           {10, "64-bit floats"},  {11, "64-bit integers"},
        {22, "16-bit integers"},        {39, "8-bit integers"}, {4472, "rays"},
        {5347, "addresses of buffers"},
    };
    for (size_t i = 0; i < BASE_COUNT(names); i++)
        if (names[i].capability == capability)
            return names[i].name;
    return capability >= 61 && capability <= 68
               ? "operations of subgroups"
               : "a feature that devices may lack or that does more than compute";
}

static bool has_instruction(const struct spirv *module, const uint32_t *wanted)
{
    for (size_t at = SPIRV_HEADER; at < module->count; at += spirv_length(module, at))
        if (module->words[at] == *wanted &&
            memcmp(module->words + at, wanted, (*wanted >> 16) * sizeof *wanted) == 0)
            return true;
    return false;
}

static vkn_status check_entry(const struct check *check, size_t at)
{
    const struct spirv *user = check->user;
    uint32_t length = spirv_length(user, at), k = 3;
    while (k < length && user->words[at + k] >> 24 != 0)
        k++;
    for (k++; k < length; k++) {
        uint32_t id = user->words[at + k];
        if (id >= user->bound || spirv_code_of(user, id) != OP_VARIABLE)
            return base_fail(VKN_BAD_INPUT, "%s: its SPIR-V names no variable at word %zu",
                             check->name, at + k);
    }
    if (user->words[at + 1] != 5 || user->words[at + 3] != 0x6e69616du ||
        spirv_length(user, at) < 5 || user->words[at + 4] != 0)
        return base_fail(VKN_BAD_INPUT, "%s: its entry point is not a compute shader's main",
                         check->name);
    return VKN_OK;
}

static bool has_mode(const struct check *check, size_t at)
{
    const struct spirv *reference = check->reference;
    const uint32_t *user = check->user->words + at;
    if (user[1] != check->match.main)
        return false;
    for (size_t i = SPIRV_HEADER; i < reference->count; i += spirv_length(reference, i))
        if (reference->words[i] == *user &&
            memcmp(reference->words + i + 2, user + 2, ((*user >> 16) - 2) * sizeof *user) == 0)
            return true;
    return false;
}

static vkn_status check_header(const struct check *check, size_t at)
{
    const struct spirv *user = check->user;
    const uint32_t *word = user->words + at;
    uint32_t code = spirv_code(user, at);
    if (code == OP_ENTRY_POINT)
        return check_entry(check, at);
    if (code == OP_EXECUTION_MODE && !has_mode(check, at))
        return base_fail(VKN_BAD_INPUT, "%s: it changes the size of vknerf's workgroups",
                         check->name);
    if (code == OP_EXT_INST_IMPORT &&
        (spirv_length(user, at) != 6 || memcmp(word + 2, "GLSL.std.450\0\0\0", 16) != 0))
        return base_fail(VKN_BAD_INPUT, "%s: it imports instructions other than GLSL.std.450",
                         check->name);
    if ((code != OP_CAPABILITY && code != OP_EXTENSION && code != OP_MEMORY_MODEL) ||
        has_instruction(check->reference, word))
        return VKN_OK;
    if (code == OP_CAPABILITY)
        return base_fail(VKN_BAD_INPUT,
                         "%s: a field only computes: it may not use %s (SPIR-V capability %u)",
                         check->name, name_of_capability(word[1]), word[1]);
    return base_fail(VKN_BAD_INPUT, "%s: a field only computes: it may not use extensions",
                     check->name);
}

/* ---- types, constants and variables ---------------------------------------------------------- */

static uint32_t add(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint64_t product = (uint64_t)a * b;
    return product > UINT32_MAX ? UINT32_MAX : (uint32_t)product;
}

/* Returns the length of an array; 0: it is not constant. */
static uint32_t array_length(const struct spirv *user, uint32_t constant)
{
    size_t at = user->definition[constant];
    return at && spirv_code(user, at) == OP_CONSTANT && spirv_length(user, at) == 4
               ? user->words[at + 3]
               : 0;
}

/* Measures a type; the types of its members come before it in a module. */
static void measure_type(const struct check *check, size_t at)
{
    const struct spirv *user = check->user;
    const uint32_t *word = user->words + at;
    const struct snippet_types *types = &check->types;
    uint32_t code = spirv_code(user, at), scalars = 1, depth = 0, last = 0;
    if (code < OP_TYPE_VOID || code > OP_TYPE_FUNCTION)
        return;
    if (code == OP_TYPE_VECTOR || code == OP_TYPE_MATRIX)
        scalars = multiply(types->scalars[word[2]], word[3]);
    if (code == OP_TYPE_ARRAY)
        scalars = multiply(types->scalars[word[2]], array_length(user, word[3]));
    if (code == OP_TYPE_STRUCT)
        scalars = 0;
    for (uint32_t k = 2; code == OP_TYPE_STRUCT && k < spirv_length(user, at); k++)
        scalars = add(scalars, types->scalars[word[k]]);
    last = code == OP_TYPE_STRUCT ? spirv_length(user, at) : code == OP_TYPE_ARRAY ? 3 : 2;
    for (uint32_t k = 2; k < last; k++)
        depth = types->depth[word[k]] > depth ? types->depth[word[k]] : depth;
    types->scalars[word[1]] = scalars;
    types->depth[word[1]] = depth + (code == OP_TYPE_STRUCT || code == OP_TYPE_ARRAY);
}

static bool is_value_type(const struct spirv *user, uint32_t id)
{
    uint32_t code = spirv_code_of(user, id);
    return user->definition[id] && code >= OP_TYPE_BOOL && code <= OP_TYPE_STRUCT &&
           code != OP_TYPE_RUNTIME_ARRAY;
}

static vkn_status check_type(const struct check *check, size_t at)
{
    const struct spirv *user = check->user;
    const uint32_t *word = user->words + at;
    uint32_t code = spirv_code(user, at), first = 2, last = 2;
    bool allowed = true;
    if (code == OP_TYPE_INT || code == OP_TYPE_FLOAT)
        allowed = word[2] == 32;
    else if (code == OP_TYPE_VECTOR || code == OP_TYPE_MATRIX)
        allowed = word[3] >= 2 && word[3] <= 4, last = 3;
    else if (code == OP_TYPE_ARRAY)
        allowed = array_length(user, word[3]) > 0, last = 3;
    else if (code == OP_TYPE_STRUCT)
        last = spirv_length(user, at);
    else if (code == OP_TYPE_POINTER)
        allowed = word[2] == SPIRV_PRIVATE || word[2] == SPIRV_FUNCTION, first = 3, last = 4;
    else if (code == OP_TYPE_RUNTIME_ARRAY)
        allowed = false;
    for (uint32_t k = first; k < last; k++)
        allowed = allowed && is_value_type(user, word[k]);
    if (!allowed)
        return base_fail(
            VKN_BAD_INPUT,
            "%s: a field only computes: it may not declare buffers, images, shared variables or "
            "types of another size than 32 bits",
            check->name);
    return check->types.depth[word[1]] <= SNIPPET_MOST_DEPTH
               ? VKN_OK
               : base_fail(VKN_BAD_INPUT, "%s: structures and arrays are nested more than %u deep",
                           check->name, SNIPPET_MOST_DEPTH);
}

static vkn_status check_variable(const struct check *check, size_t at)
{
    static const char *const classes[] = {"an image or a texture",
                                          "an input",
                                          "a uniform block or buffer",
                                          "an output",
                                          "a shared variable",
                                          "a variable of a cluster",
                                          "",
                                          "a variable",
                                          "",
                                          "a push constant",
                                          "a counter",
                                          "an image",
                                          "a buffer"};
    char variable[64];
    uint32_t class = check->user->words[at + 3];
    if (class == SPIRV_PRIVATE)
        return VKN_OK;
    spirv_name(check->user, check->user->words[at + 2], variable);
    return base_fail(VKN_BAD_INPUT, "%s: a field only computes: %s is %s, which it may not have",
                     check->name, variable[0] ? variable : "one of its variables",
                     class < BASE_COUNT(classes) ? classes[class] : "outside of the computation");
}

static vkn_status check_annotations(const struct check *check, uint32_t id)
{
    const struct spirv *user = check->user;
    for (uint32_t at = user->annotation[id]; at; at = user->next[at]) {
        uint32_t decoration = user->words[at + 2];
        if (spirv_code(user, at) != OP_DECORATE ||
            (decoration != SPIRV_RELAXED_PRECISION && decoration != SPIRV_NON_WRITABLE &&
             decoration != SPIRV_NO_CONTRACTION))
            return base_fail(VKN_BAD_INPUT,
                             "%s: a field only computes: it may have no layout of its own (SPIR-V "
                             "decoration %u)",
                             check->name, decoration);
    }
    return VKN_OK;
}

/* Checks a declaration outside of functions, unless it is the library's. */
static vkn_status check_global(const struct check *check, size_t at)
{
    const struct spirv *user = check->user;
    uint32_t code = spirv_code(user, at);
    bool is_type = code >= OP_TYPE_VOID && code <= OP_TYPE_FUNCTION;
    if (check->match.reference_of[user->words[at + (is_type ? 1 : 2)]])
        return VKN_OK;
    if (is_type)
        return check_type(check, at);
    if (code == OP_VARIABLE)
        return check_variable(check, at);
    if (code >= OP_SPEC_CONSTANT_TRUE && code <= OP_SPEC_CONSTANT_OP)
        return base_fail(VKN_BAD_INPUT, "%s: a field only computes: it may have no constant_id",
                         check->name);
    return VKN_OK;
}

static vkn_status check_globals(const struct check *check)
{
    const struct spirv *user = check->user;
    for (size_t at = SPIRV_HEADER; at < user->count && spirv_code(user, at) != OP_FUNCTION;
         at += spirv_length(user, at)) {
        uint32_t code = spirv_code(user, at);
        BASE_TRY(check_header(check, at));
        measure_type(check, at);
        if ((code >= OP_TYPE_VOID && code < OP_FUNCTION) || code == OP_VARIABLE)
            BASE_TRY(check_global(check, at));
    }
    for (uint32_t id = 1; id < user->bound; id++)
        if (!check->match.reference_of[id])
            BASE_TRY(check_annotations(check, id));
    return VKN_OK;
}

/* ---- functions ------------------------------------------------------------------------------- */

static bool is_pointer(const struct spirv *user, uint32_t id)
{
    size_t at = user->definition[id];
    bool user_allowed = false;
    const char *operands = at ? spirv_operands(spirv_code(user, at), &user_allowed) : NULL;
    return operands && operands[0] == 't' &&
           spirv_code_of(user, user->words[at + 1]) == OP_TYPE_POINTER;
}

/* Returns whether an instruction in one of the snippet's functions may refer to the id. */
static bool may_name(const struct check *check, size_t function, size_t at, uint32_t id)
{
    const struct spirv *user = check->user;
    uint32_t code = spirv_code(user, at), kind = spirv_code_of(user, id);
    bool is_library = check->match.reference_of[id];
    if (!user->definition[id])
        return false;
    if (is_pointer(user, id) && code != OP_LOAD && code != OP_STORE && code != OP_ACCESS_CHAIN &&
        code != OP_IN_BOUNDS_ACCESS_CHAIN && code != OP_FUNCTION_CALL && code != OP_EXT_INST)
        return false;
    if (user->function[id])
        return user->function[id] == function;
    if (kind == OP_FUNCTION)
        return code == OP_FUNCTION_CALL &&
               (!is_library || check->match.is_public[id] || at == check->match.last_call);
    if (kind == OP_VARIABLE)
        return !is_library && user->words[user->definition[id] + 3] == SPIRV_PRIVATE;
    return (kind >= OP_TYPE_VOID && kind <= OP_CONSTANT_NULL) || kind == OP_UNDEF ||
           kind == OP_EXT_INST_IMPORT;
}

/* Returns whether the instruction obeys rules that the operand types do not express. */
static bool is_right(const struct check *check, size_t at)
{
    const struct spirv *user = check->user;
    const uint32_t *word = user->words + at;
    uint32_t code = spirv_code(user, at), length = spirv_length(user, at);
    bool has_type = code >= OP_LOAD && code != OP_STORE && code < OP_LOOP_MERGE &&
                    code != OP_ACCESS_CHAIN && code != OP_IN_BOUNDS_ACCESS_CHAIN;
    if (code == OP_VARIABLE)
        return word[3] == SPIRV_FUNCTION && spirv_code_of(user, word[1]) == OP_TYPE_POINTER &&
               user->words[user->definition[word[1]] + 2] == SPIRV_FUNCTION;
    if (code == OP_LOAD || code == OP_STORE) /* memory flags are for buffers only */
        return length == (code == OP_LOAD ? 4u : 3u) &&
               is_pointer(user, word[code == OP_LOAD ? 3 : 1]);
    if (code == OP_EXT_INST)
        return spirv_code_of(user, word[3]) == OP_EXT_INST_IMPORT && word[4] <= GLSL_LAST &&
               (word[4] < GLSL_INTERPOLATE || word[4] > GLSL_INTERPOLATE + 2);
    return !has_type || spirv_code_of(user, word[1]) != OP_TYPE_POINTER;
}

static vkn_status check_instruction(const struct check *check, size_t function, size_t at)
{
    const struct spirv *user = check->user;
    bool user_allowed = false;
    uint32_t code = spirv_code(user, at);
    const char *operands = spirv_operands(code, &user_allowed);
    if (!user_allowed)
        return spirv_refuse(check->name, code);
    if (code == OP_LINE)
        return VKN_OK;
    for (uint32_t k = 1; k < spirv_length(user, at); k++) {
        char letter = spirv_operand(operands, k);
        uint32_t id = user->words[at + k];
        if ((letter != 'i' && letter != 't') || may_name(check, function, at, id))
            continue;
        char what[64];
        spirv_name(user, id, what);
        return base_fail(VKN_BAD_INPUT,
                         "%s: a field only computes: it may not name %s, which is the library's",
                         check->name, what[0] ? what : "something");
    }
    return is_right(check, at)
               ? VKN_OK
               : base_fail(VKN_BAD_INPUT,
                           "%s: a field only computes: SPIR-V instruction %u is refused",
                           check->name, code);
}

static vkn_status check_functions(const struct check *check)
{
    const struct spirv *user = check->user;
    size_t function = 0;
    for (size_t at = SPIRV_HEADER; at < user->count; at += spirv_length(user, at)) {
        function = spirv_code(user, at) == OP_FUNCTION ? at : function;
        if (function && snippet_has(&check->match, function))
            BASE_TRY(check_instruction(check, function, at));
    }
    return VKN_OK;
}

/* ---- all checks ------------------------------------------------------------------------------ */

static vkn_status run(struct check *check, uint32_t **safe, size_t *safe_count)
{
    BASE_TRY(spirv_match_open(check->name, check->reference, check->user, &check->match));
    check->types.scalars = base_alloc(check->user->bound + 1, sizeof(uint32_t));
    check->types.depth = base_alloc(check->user->bound + 1, sizeof(uint32_t));
    if (!check->types.scalars || !check->types.depth)
        return VKN_ERROR;
    BASE_TRY(check_globals(check));
    BASE_TRY(check_functions(check));
    BASE_TRY(snippet_check_size(check->name, &check->match, &check->types));
    return snippet_make_safe(check->name, &check->match, safe, safe_count);
}

vkn_status gpu_snippet_check(const char *name, const uint32_t *reference, size_t reference_count,
                             const uint32_t *words, size_t count, uint32_t **safe,
                             size_t *safe_count)
{
    struct spirv reference_module = {0}, user = {0};
    struct check check = {.name = name, .reference = &reference_module, .user = &user};
    *safe = NULL;
    *safe_count = 0;
    vkn_status status = spirv_open(name, reference, reference_count, &reference_module);
    if (status == VKN_OK)
        status = spirv_open(name, words, count, &user);
    if (status == VKN_OK)
        status = run(&check, safe, safe_count);
    spirv_match_close(&check.match);
    free(check.types.scalars);
    free(check.types.depth);
    spirv_close(&reference_module);
    spirv_close(&user);
    return status;
}
