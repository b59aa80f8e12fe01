/* Replaces a module's specialisation constants by values and removes blocks and functions that
 * become unreachable. Drivers do so, too, but only after inlining: unreachable code takes most of
 * their compile time. Control flow stays structured (SPIR-V specification, 2.11). */
#include "gpu/specialize.h"

#include <stdlib.h>

#include "gpu/shaders.h"

static void set_known(struct specializer *s, uint32_t id, uint32_t value)
{
    s->facts[id] |= KNOWN;
    s->value[id] = value;
}

/* ---- constants ------------------------------------------------------------------------------- */

/* Computes an operation on unsigned 32-bit integers or bools; false: not supported. */
static bool compute(uint32_t code, uint32_t a, uint32_t b, uint32_t *result)
{
    if ((code == OP_U_DIV || code == OP_U_MOD) && b == 0)
        return false;
    switch (code) {
    case OP_I_ADD:
        *result = a + b;
        return true;
    case OP_I_SUB:
        *result = a - b;
        return true;
    case OP_I_MUL:
        *result = a * b;
        return true;
    case OP_U_DIV:
        *result = a / b;
        return true;
    case OP_U_MOD:
        *result = a % b;
        return true;
    case OP_LOGICAL_OR:
    case OP_BITWISE_OR:
        *result = a | b;
        return true;
    case OP_LOGICAL_AND:
    case OP_BITWISE_AND:
        *result = a & b;
        return true;
    case OP_LOGICAL_EQUAL:
    case OP_I_EQUAL:
        *result = a == b;
        return true;
    case OP_LOGICAL_NOT_EQUAL:
    case OP_I_NOT_EQUAL:
        *result = a != b;
        return true;
    case OP_U_GREATER:
        *result = a > b;
        return true;
    case OP_U_GREATER_EQUAL:
        *result = a >= b;
        return true;
    case OP_U_LESS:
        *result = a < b;
        return true;
    case OP_U_LESS_EQUAL:
        *result = a <= b;
        return true;
    default:
        return false;
    }
}

/* Evaluates the operation `code`, whose operands start at word k, and stores the value of `id` if
 * it is known. */
static void fold(struct specializer *s, size_t at, uint32_t code, uint32_t k, uint32_t id)
{
    uint32_t a = id_at(s, at, k), b = id_at(s, at, k + 1), result;
    bool is_unary = length_at(s, at) == k + 1, is_binary = length_at(s, at) == k + 2;
    if (!has(s, id_at(s, at, 1), SCALAR))
        return;
    if (code == OP_SELECT && has(s, a, KNOWN)) {
        uint32_t taken = s->value[a] ? b : id_at(s, at, k + 2);
        if (has(s, taken, KNOWN))
            set_known(s, id, s->value[taken]);
    } else if (code == OP_LOGICAL_NOT && is_unary && has(s, a, KNOWN)) {
        set_known(s, id, !s->value[a]);
    } else if (is_binary && has(s, a, KNOWN) && has(s, b, KNOWN)) {
        if (compute(code, s->value[a], s->value[b], &result))
            set_known(s, id, result);
    } else if (is_binary && (code == OP_LOGICAL_AND || code == OP_LOGICAL_OR)) {
        uint32_t known = has(s, a, KNOWN) ? a : b;
        bool absorbing = code == OP_LOGICAL_OR; /* an operand with this value decides */
        if (has(s, known, KNOWN) && (s->value[known] != 0) == absorbing)
            set_known(s, id, absorbing);
    }
}

static void read_constant(struct specializer *s, size_t at)
{
    uint32_t code = code_at(s, at), id = id_at(s, at, 2);
    bool is_scalar = has(s, id_at(s, at, 1), SCALAR), is_numbered = has(s, id, NUMBERED);
    uint32_t number = is_numbered ? s->value[id] : 0,
             value = length_at(s, at) > 3 ? s->words[at + 3] : 0;
    if (code == OP_CONSTANT_TRUE || code == OP_SPEC_CONSTANT_TRUE)
        value = 1;
    if (is_numbered && number < s->given_count)
        value = code == OP_SPEC_CONSTANT ? s->given[number] : s->given[number] != 0;
    if (is_numbered && length_at(s, at) > 4)
        s->failed = true; /* 64 bits */
    if (is_scalar)
        set_known(s, id, value);
    else if (is_numbered)
        s->value[id] = value;
}

static void read_global(struct specializer *s, size_t at)
{
    uint32_t code = code_at(s, at), length = length_at(s, at);
    if (code == OP_DECORATE && length == 4 && s->words[at + 2] == SPIRV_SPEC_ID) {
        s->facts[id_at(s, at, 1)] |= NUMBERED;
        s->value[id_at(s, at, 1)] = s->words[at + 3];
    } else if (code == OP_ENTRY_POINT) {
        s->facts[id_at(s, at, 2)] |= REACHED;
    } else if (code == OP_TYPE_BOOL ||
               (code == OP_TYPE_INT && length > 2 && s->words[at + 2] == 32)) {
        s->facts[id_at(s, at, 1)] |= SCALAR;
        s->value[id_at(s, at, 1)] = code == OP_TYPE_BOOL;
    } else if ((code >= OP_CONSTANT_TRUE && code <= OP_CONSTANT) || code == OP_CONSTANT_NULL ||
               (code >= OP_SPEC_CONSTANT_TRUE && code <= OP_SPEC_CONSTANT)) {
        read_constant(s, at);
    } else if (code == OP_SPEC_CONSTANT_OP && length > 4) {
        fold(s, at, s->words[at + 3], 4, id_at(s, at, 2));
    } else if (code == OP_DECORATION_GROUP || code == OP_GROUP_DECORATE) {
        s->failed = true;
    }
}

/* ---- control flow ---------------------------------------------------------------------------- */

uint32_t specializer_target(const struct specializer *s, size_t at, size_t merge)
{
    uint32_t condition = id_at(s, at, 1);
    if (!has(s, condition, KNOWN) || !merge || code_at(s, merge) != OP_SELECTION_MERGE)
        return 0;
    if (code_at(s, at) == OP_BRANCH_CONDITIONAL)
        return id_at(s, at, s->value[condition] ? 2 : 3);
    for (uint32_t k = 3; k + 1 < length_at(s, at); k += 2)
        if (s->words[at + k] == s->value[condition])
            return id_at(s, at, k + 1);
    return id_at(s, at, 2);
}

static void reach(struct specializer *s, uint32_t block)
{
    if (!block) /* the word is half of a 64-bit case literal of an OpSwitch */
        s->failed = true;
    if (!has(s, block, REACHED) && has(s, block, SCANNED))
        s->failed = true; /* a backward branch outside of a loop */
    s->facts[block] |= REACHED;
}

static void note_loop(struct specializer *s, uint32_t header, uint32_t target)
{
    if (!header || !target || s->loop[header] || s->loop[target])
        s->failed = true; /* nested loops that share a block */
    s->loop[header] = target;
    s->loop[target] = header;
    s->facts[target] |= CONTINUE;
}

/* Reads the end of a reachable block; `merge`: position of its merge instruction, or 0. */
static void leave_block(struct specializer *s, size_t at, size_t merge, uint32_t block)
{
    uint32_t code = code_at(s, at), target = specializer_target(s, at, merge);
    s->end_of[block] = (uint32_t)(merge ? merge : at);
    if (merge && (!target || code == OP_SWITCH))
        s->facts[id_at(s, merge, 1)] |= MERGE;
    if (merge && code_at(s, merge) == OP_LOOP_MERGE)
        note_loop(s, block, id_at(s, merge, 2));
    if (code == OP_BRANCH) {
        reach(s, id_at(s, at, 1));
    } else if (target) {
        reach(s, target);
    } else if (code == OP_BRANCH_CONDITIONAL) {
        reach(s, id_at(s, at, 2));
        reach(s, id_at(s, at, 3));
    } else if (code == OP_SWITCH) {
        reach(s, id_at(s, at, 2));
        for (uint32_t k = 4; k < length_at(s, at); k += 2)
            reach(s, id_at(s, at, k));
    }
}

bool specializer_goes_to(const struct specializer *s, uint32_t from, uint32_t to)
{
    size_t at = s->end_of[from], merge = 0;
    if (!at)
        return false; /* unreachable */
    if (is_merge(code_at(s, at))) {
        merge = at;
        at += length_at(s, at);
    }
    uint32_t code = code_at(s, at), target = specializer_target(s, at, merge);
    if (target || code == OP_BRANCH)
        return (target ? target : id_at(s, at, 1)) == to;
    for (uint32_t k = 2; k < length_at(s, at); k++)
        if ((code == OP_BRANCH_CONDITIONAL || code == OP_SWITCH) && id_at(s, at, k) == to)
            return true;
    return false;
}

/* An OpPhi is known if its value is the same from all reachable predecessors. */
static void fold_phi(struct specializer *s, size_t at, uint32_t block)
{
    uint32_t known = 0;
    for (uint32_t k = 3; k + 1 < length_at(s, at); k += 2) {
        uint32_t value = id_at(s, at, k), from = id_at(s, at, k + 1);
        if (from == block || !has(s, from, SCANNED))
            return; /* a loop */
        if (!specializer_goes_to(s, from, block))
            continue;
        if (!has(s, value, KNOWN) || (known && s->value[value] != s->value[known]))
            return;
        known = value;
    }
    if (known && has(s, id_at(s, at, 1), SCALAR))
        set_known(s, id_at(s, at, 2), s->value[known]);
}

/* Propagates reachability and known values through the function at `at`. Blocks follow their
 * predecessors in a module, except for loops. Returns the position of the function's end. */
static size_t read_function(struct specializer *s, size_t at)
{
    uint32_t block = 0;
    size_t merge = 0;
    for (; at < s->count && code_at(s, at) != OP_FUNCTION_END; at += length_at(s, at)) {
        uint32_t code = code_at(s, at);
        if (code == OP_LABEL) {
            if (!block) /* the first block is reachable */
                s->facts[id_at(s, at, 1)] |= REACHED;
            block = id_at(s, at, 1);
            s->facts[block] |= SCANNED;
            merge = 0;
        }
        if (!has(s, block, REACHED))
            continue;
        if (is_merge(code))
            merge = at;
        else if (ends_block(code))
            leave_block(s, at, merge, block);
        else if (code == OP_FUNCTION_CALL)
            s->facts[id_at(s, at, 3)] |= REACHED;
        else if (code == OP_PHI)
            fold_phi(s, at, block);
        else
            fold(s, at, code, 3, id_at(s, at, 2));
    }
    return at;
}

/* Reads all functions that are called, starting with the entry point. */
static void read_functions(struct specializer *s, size_t first)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t at = first; at < s->count; at += length_at(s, at)) {
            uint32_t function = id_at(s, at, 2);
            if (code_at(s, at) != OP_FUNCTION || !has(s, function, REACHED) ||
                has(s, function, SCANNED))
                continue;
            s->facts[function] |= SCANNED;
            at = read_function(s, at);
            more = true;
            if (at >= s->count)
                return;
        }
    }
}

/* ---- module ---------------------------------------------------------------------------------- */

/* Returns the least length of instructions that are read or rewritten. */
static uint32_t least_length(uint32_t code)
{
    switch (code) {
    case OP_SPEC_CONSTANT_TRUE:
    case OP_SPEC_CONSTANT_FALSE:
    case OP_PHI:
    case OP_SELECTION_MERGE:
    case OP_SWITCH:
    case OP_DECORATE:
        return 3;
    case OP_SPEC_CONSTANT:
    case OP_SPEC_CONSTANT_OP:
    case OP_LOOP_MERGE:
    case OP_BRANCH_CONDITIONAL:
        return 4;
    case OP_LABEL:
    case OP_BRANCH:
        return 2;
    default:
        return 1;
    }
}

static size_t find_functions(const struct specializer *s)
{
    size_t first = 0;
    for (size_t at = SPIRV_HEADER; at < s->count; at += length_at(s, at)) {
        uint32_t code = code_at(s, at), length = length_at(s, at);
        if (length < least_length(code) || length > s->count - at)
            return 0;
        if (code == OP_FUNCTION && !first)
            first = at;
    }
    return first;
}

static bool specialize(struct specializer *s, struct writer *w)
{
    size_t first = find_functions(s);
    for (size_t at = SPIRV_HEADER; at < first; at += length_at(s, at))
        read_global(s, at);
    if (!first || s->failed)
        return false;
    read_functions(s, first);
    specializer_write(s, first, w);
    return !s->failed;
}

uint32_t *gpu_specialize(const uint32_t *words, size_t *count, const uint32_t *given,
                         uint32_t given_count)
{
    struct specializer s = {
        .words = words, .count = *count, .given = given, .given_count = given_count};
    if (s.count <= SPIRV_HEADER || s.count > SPIRV_MOST_WORDS || words[0] != SPIRV_MAGIC ||
        words[3] > s.count)
        return NULL;
    s.bound = words[3];
    /* A stub is at most two words longer than the block that it replaces. */
    struct writer w = {.words = base_alloc(2 * s.count, sizeof *w.words)};
    s.facts = base_alloc(s.bound + 1, sizeof *s.facts);
    s.value = base_alloc(s.bound + 1, sizeof *s.value);
    s.end_of = base_alloc(s.bound + 1, sizeof *s.end_of);
    s.loop = base_alloc(s.bound + 1, sizeof *s.loop);
    bool done = w.words && s.facts && s.value && s.end_of && s.loop && specialize(&s, &w);
    free(s.facts);
    free(s.value);
    free(s.end_of);
    free(s.loop);
    if (done) {
        *count = w.count;
        return w.words;
    }
    free(w.words);
    return NULL;
}
