/* Puts values in the place of a module's specialisation constants and removes the blocks and functions that these
 * values rule out. Drivers do so as well, but behind their inlining: code that never runs costs them most of the time
 * that they need to compile a program. Control flow stays structured (SPIR-V specification, 2.11). */
#include <stdlib.h>
#include <string.h>

#include "gpu/program_sources.h"
#include "gpu/spirv.h"

/* SPIR-V specification, 3.20 and 3.52, beside what gpu/spirv.h has. */
enum {
    SPEC_ID = 1,

    OP_MEMBER_NAME = 6,
    OP_DECORATION_GROUP = 73,
    OP_GROUP_DECORATE = 74,
    OP_CONSTANT_FALSE = 42,
    OP_SPEC_CONSTANT_FALSE = 49,
    OP_SPEC_CONSTANT = 50,
    OP_I_ADD = 128,
    OP_I_SUB = 130,
    OP_I_MUL = 132,
    OP_U_DIV = 134,
    OP_U_MOD = 137,
    OP_LOGICAL_EQUAL = 164,
    OP_LOGICAL_NOT_EQUAL = 165,
    OP_LOGICAL_OR = 166,
    OP_LOGICAL_AND = 167,
    OP_LOGICAL_NOT = 168,
    OP_SELECT = 169,
    OP_I_EQUAL = 170,
    OP_I_NOT_EQUAL = 171,
    OP_U_GREATER = 172,
    OP_U_GREATER_EQUAL = 174,
    OP_U_LESS = 176,
    OP_U_LESS_EQUAL = 178,
    OP_BITWISE_OR = 197,
    OP_BITWISE_AND = 199,
    OP_CONTROL_BARRIER = 224,
    OP_MEMORY_BARRIER = 225,
    OP_ATOMIC_STORE = 228,
    OP_PHI = 245,
    OP_BRANCH = 249,
    OP_BRANCH_CONDITIONAL = 250,
    OP_SWITCH = 251,
    OP_UNREACHABLE = 255,
    OP_MATRIX_STORE = 4458, /* OpCooperativeMatrixStoreKHR */
};

/* What is known of an id. */
enum {
    SCALAR = 1,       /* a type: bool or an integer of 32 bits */
    KNOWN = 2,        /* a constant, of a SCALAR type */
    REACHED = 4,      /* a block that may run; a function that is called from one */
    SCANNED = 8,      /* a block or function that has been read */
    MERGE = 16,       /* a block that a header which stays names as its merge block */
    CONTINUE = 32,    /* ... as its continue target */
    REMOVED = 64,     /* defined in a block or function that goes */
    NUMBERED = 128    /* a constant with a number */
};

struct specializer {
    const uint32_t *words;
    size_t count;
    uint32_t bound;
    const uint32_t *given; /* [number of the constant], given_count of them */
    uint32_t given_count;
    uint8_t *facts;      /* [id] */
    uint32_t *value;     /* [id]: of a KNOWN one; of a NUMBERED one before, its number; of a SCALAR type, 1: bool */
    uint32_t *end_of;    /* [id]: where a block's merge instruction is, or its branch if it has none */
    uint32_t *loop;      /* [id]: the CONTINUE block of a loop header, and the other way round */
    bool failed;         /* the module is unlike what compilers of GLSL write: it stays as it is */
};

static uint32_t code_at(const struct specializer *s, size_t at)
{
    return s->words[at] & 0xffffu;
}

static uint32_t length_at(const struct specializer *s, size_t at)
{
    return s->words[at] >> 16;
}

/* Word k of an instruction as an id; 0, whose facts nothing reads, where there is none. */
static uint32_t id_at(const struct specializer *s, size_t at, uint32_t k)
{
    return k < length_at(s, at) && s->words[at + k] < s->bound ? s->words[at + k] : 0;
}

static bool has(const struct specializer *s, uint32_t id, uint8_t facts)
{
    return id && (s->facts[id] & facts) == facts;
}

static void set_known(struct specializer *s, uint32_t id, uint32_t value)
{
    s->facts[id] |= KNOWN;
    s->value[id] = value;
}

/* ---- constants ------------------------------------------------------------------------------- */

/* Of 32 bits without a sign, or of bools. False: not known. */
static bool compute(uint32_t code, uint32_t a, uint32_t b, uint32_t *result)
{
    if ((code == OP_U_DIV || code == OP_U_MOD) && b == 0)
        return false;
    switch (code) {
    case OP_I_ADD: *result = a + b; return true;
    case OP_I_SUB: *result = a - b; return true;
    case OP_I_MUL: *result = a * b; return true;
    case OP_U_DIV: *result = a / b; return true;
    case OP_U_MOD: *result = a % b; return true;
    case OP_LOGICAL_OR:
    case OP_BITWISE_OR: *result = a | b; return true;
    case OP_LOGICAL_AND:
    case OP_BITWISE_AND: *result = a & b; return true;
    case OP_LOGICAL_EQUAL:
    case OP_I_EQUAL: *result = a == b; return true;
    case OP_LOGICAL_NOT_EQUAL:
    case OP_I_NOT_EQUAL: *result = a != b; return true;
    case OP_U_GREATER: *result = a > b; return true;
    case OP_U_GREATER_EQUAL: *result = a >= b; return true;
    case OP_U_LESS: *result = a < b; return true;
    case OP_U_LESS_EQUAL: *result = a <= b; return true;
    default: return false;
    }
}

/* The operation `code`, whose operands begin at word k, as a value of `id`, if it is known. */
static void fold(struct specializer *s, size_t at, uint32_t code, uint32_t k, uint32_t id)
{
    uint32_t a = id_at(s, at, k), b = id_at(s, at, k + 1), result;
    bool one = length_at(s, at) == k + 1, two = length_at(s, at) == k + 2;
    if (!has(s, id_at(s, at, 1), SCALAR))
        return;
    if (code == OP_SELECT && has(s, a, KNOWN)) {
        uint32_t taken = s->value[a] ? b : id_at(s, at, k + 2);
        if (has(s, taken, KNOWN))
            set_known(s, id, s->value[taken]);
    } else if (code == OP_LOGICAL_NOT && one && has(s, a, KNOWN)) {
        set_known(s, id, !s->value[a]);
    } else if (two && has(s, a, KNOWN) && has(s, b, KNOWN)) {
        if (compute(code, s->value[a], s->value[b], &result))
            set_known(s, id, result);
    } else if (two && (code == OP_LOGICAL_AND || code == OP_LOGICAL_OR)) {
        uint32_t known = has(s, a, KNOWN) ? a : b;
        bool decides = code == OP_LOGICAL_OR;
        if (has(s, known, KNOWN) && (s->value[known] != 0) == decides)
            set_known(s, id, decides);
    }
}

static void read_constant(struct specializer *s, size_t at)
{
    uint32_t code = code_at(s, at), id = id_at(s, at, 2);
    bool scalar = has(s, id_at(s, at, 1), SCALAR), any = has(s, id, NUMBERED);
    uint32_t number = any ? s->value[id] : 0, value = length_at(s, at) > 3 ? s->words[at + 3] : 0;
    if (code == OP_CONSTANT_TRUE || code == OP_SPEC_CONSTANT_TRUE)
        value = 1;
    if (any && number < s->given_count)
        value = code == OP_SPEC_CONSTANT ? s->given[number] : s->given[number] != 0;
    if (any && length_at(s, at) > 4)
        s->failed = true; /* 64 bits */
    if (scalar)
        set_known(s, id, value);
    else if (any)
        s->value[id] = value;
}

/* What stands before the functions. */
static void read_global(struct specializer *s, size_t at)
{
    uint32_t code = code_at(s, at), length = length_at(s, at);
    if (code == OP_DECORATE && length == 4 && s->words[at + 2] == SPEC_ID) {
        s->facts[id_at(s, at, 1)] |= NUMBERED;
        s->value[id_at(s, at, 1)] = s->words[at + 3];
    } else if (code == OP_ENTRY_POINT) {
        s->facts[id_at(s, at, 2)] |= REACHED;
    } else if (code == OP_TYPE_BOOL || (code == OP_TYPE_INT && length > 2 && s->words[at + 2] == 32)) {
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

/* Where the branch that ends a block goes, if that is known: of a selection, whose merge instruction
 * is at `merge`, and of an OpSwitch. 0: not known. */
static uint32_t only_target(const struct specializer *s, size_t at, size_t merge)
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
    if (!has(s, block, REACHED) && has(s, block, SCANNED))
        s->failed = true; /* a jump back, but to no loop */
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

/* The end of a block that may run; `merge` is where its merge instruction is, or 0. */
static void leave_block(struct specializer *s, size_t at, size_t merge, uint32_t block)
{
    uint32_t code = code_at(s, at), target = only_target(s, at, merge);
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

static bool is_merge(uint32_t code)
{
    return code == OP_SELECTION_MERGE || code == OP_LOOP_MERGE;
}

/* Whether control comes from one block to another. */
static bool goes_to(const struct specializer *s, uint32_t from, uint32_t to)
{
    size_t at = s->end_of[from], merge = 0;
    if (!at)
        return false; /* it does not run */
    if (is_merge(code_at(s, at))) {
        merge = at;
        at += length_at(s, at);
    }
    uint32_t code = code_at(s, at), target = only_target(s, at, merge);
    if (target || code == OP_BRANCH)
        return (target ? target : id_at(s, at, 1)) == to;
    for (uint32_t k = 2; k < length_at(s, at); k++)
        if ((code == OP_BRANCH_CONDITIONAL || code == OP_SWITCH) && id_at(s, at, k) == to)
            return true;
    return false;
}

/* Known where it has the same value whatever block control comes from. */
static void fold_phi(struct specializer *s, size_t at, uint32_t block)
{
    uint32_t known = 0;
    for (uint32_t k = 3; k + 1 < length_at(s, at); k += 2) {
        uint32_t value = id_at(s, at, k), from = id_at(s, at, k + 1);
        if (!has(s, from, SCANNED))
            return; /* a loop */
        if (!goes_to(s, from, block))
            continue;
        if (!has(s, value, KNOWN) || (known && s->value[value] != s->value[known]))
            return;
        known = value;
    }
    if (known && has(s, id_at(s, at, 1), SCALAR))
        set_known(s, id_at(s, at, 2), s->value[known]);
}

static bool ends_block(uint32_t code)
{
    return code >= OP_BRANCH && code <= OP_UNREACHABLE;
}

/* Follows control through a function whose first instruction is at `at`; a block comes behind those that it is reached
 * from, but for loops. Returns where the function ends. */
static size_t read_function(struct specializer *s, size_t at)
{
    uint32_t block = 0;
    size_t merge = 0;
    for (; at < s->count && code_at(s, at) != OP_FUNCTION_END; at += length_at(s, at)) {
        uint32_t code = code_at(s, at);
        if (code == OP_LABEL) {
            if (!block) /* the first one runs */
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

/* Functions that are called, from the entry point on. */
static void read_functions(struct specializer *s, size_t first)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t at = first; at < s->count; at += length_at(s, at)) {
            uint32_t function = id_at(s, at, 2);
            if (code_at(s, at) != OP_FUNCTION || !has(s, function, REACHED) || has(s, function, SCANNED))
                continue;
            s->facts[function] |= SCANNED;
            at = read_function(s, at);
            more = true;
            if (at >= s->count)
                return;
        }
    }
}

/* ---- what is left ---------------------------------------------------------------------------- */

/* Where in the module: in which function and block, and whether they run. */
struct position {
    size_t at;
    uint32_t function, block; /* 0: outside of them */
    bool runs;
};

static void enter(const struct specializer *s, struct position *p)
{
    uint32_t code = code_at(s, p->at);
    if (code == OP_FUNCTION) {
        p->function = id_at(s, p->at, 2);
        p->block = 0;
    } else if (code == OP_LABEL) {
        p->block = id_at(s, p->at, 1);
    } else if (code == OP_FUNCTION_END) {
        p->block = 0;
    }
    p->runs = has(s, p->function, REACHED) && (!p->block || has(s, p->block, REACHED));
}

/* The id that an instruction of a function defines; 0: none. */
static uint32_t result_of(const struct specializer *s, size_t at)
{
    uint32_t code = code_at(s, at);
    bool none = code == OP_LINE || code == OP_NO_LINE || code == OP_STORE || is_merge(code) || ends_block(code) ||
                code == OP_CONTROL_BARRIER || code == OP_MEMORY_BARRIER || code == OP_ATOMIC_STORE ||
                code == OP_MATRIX_STORE;
    return none ? 0 : id_at(s, at, code == OP_LABEL ? 1 : 2);
}

/* A block that does not run and that a header names all the same: its label and a branch stay. */
static bool is_stub(const struct specializer *s, const struct position *p)
{
    return has(s, p->function, REACHED) && !p->runs && (has(s, p->block, MERGE) || has(s, p->block, CONTINUE));
}

static void mark_removed(struct specializer *s, size_t first)
{
    struct position p = {.at = first};
    for (; p.at < s->count; p.at += length_at(s, p.at)) {
        enter(s, &p);
        if (!p.runs && !(code_at(s, p.at) == OP_LABEL && is_stub(s, &p)))
            s->facts[result_of(s, p.at)] |= REMOVED;
    }
}

struct writer {
    uint32_t *words;
    size_t count;
};

static void write_words(struct writer *w, uint32_t code, uint32_t length, const uint32_t *operands)
{
    w->words[w->count] = length << 16 | code;
    for (uint32_t k = 1; k < length; k++)
        w->words[w->count + k] = operands[k - 1];
    w->count += length;
}

/* A constant in the place of one that is to be specialised. */
static void write_constant(const struct specializer *s, struct writer *w, size_t at)
{
    uint32_t type = id_at(s, at, 1), id = id_at(s, at, 2), value = s->value[id];
    if (has(s, type, SCALAR) && s->value[type])
        write_words(w, value ? OP_CONSTANT_TRUE : OP_CONSTANT_FALSE, 3, (uint32_t[]){type, id});
    else
        write_words(w, OP_CONSTANT, 4, (uint32_t[]){type, id, value});
}

static void write_global(const struct specializer *s, struct writer *w, size_t at)
{
    uint32_t code = code_at(s, at), length = length_at(s, at), first = id_at(s, at, 1), id = id_at(s, at, 2);
    bool annotates = code == OP_NAME || code == OP_MEMBER_NAME || code == OP_DECORATE || code == OP_MEMBER_DECORATE;
    if (annotates && has(s, first, REMOVED))
        return;
    if (code == OP_DECORATE && length == 4 && s->words[at + 2] == SPEC_ID)
        return;
    bool numbered = code >= OP_SPEC_CONSTANT_TRUE && code <= OP_SPEC_CONSTANT && has(s, id, NUMBERED);
    if (numbered || (code == OP_SPEC_CONSTANT_OP && has(s, id, KNOWN)))
        write_constant(s, w, at);
    else
        write_words(w, code, length, s->words + at + 1);
}

static void write_stub(struct specializer *s, struct writer *w, uint32_t block)
{
    write_words(w, OP_LABEL, 2, &block);
    if (has(s, block, CONTINUE))
        write_words(w, OP_BRANCH, 2, &s->loop[block]);
    else
        write_words(w, OP_UNREACHABLE, 1, NULL);
}

/* With the blocks alone that control comes from. */
static void write_phi(struct specializer *s, struct writer *w, const struct position *p)
{
    const uint32_t *word = s->words + p->at;
    uint32_t *phi = w->words + w->count, length = 3, loop = s->loop[p->block];
    if (loop && !has(s, loop, REACHED))
        s->failed = true; /* a stub would be one of them */
    write_words(w, OP_PHI, 3, word + 1);
    for (uint32_t k = 3; k + 1 < length_at(s, p->at); k += 2)
        if (goes_to(s, id_at(s, p->at, k + 1), p->block)) {
            memcpy(phi + length, word + k, 2 * sizeof *phi);
            length += 2;
        }
    phi[0] = length << 16 | OP_PHI;
    w->count += length - 3;
}

static void write_instruction(struct specializer *s, struct writer *w, const struct position *p)
{
    size_t at = p->at, next = at + length_at(s, at), merge = s->end_of[p->block];
    uint32_t code = code_at(s, at), target = 0;
    if (code == OP_SELECTION_MERGE && next < s->count && code_at(s, next) == OP_BRANCH_CONDITIONAL &&
        only_target(s, next, at))
        return;
    if ((code == OP_BRANCH_CONDITIONAL || code == OP_SWITCH) && merge < at)
        target = only_target(s, at, merge);
    if (code == OP_PHI)
        write_phi(s, w, p);
    else if (target && code == OP_SWITCH) /* breaks of its cases need the merge block */
        write_words(w, OP_SWITCH, 3, (uint32_t[]){id_at(s, at, 1), target});
    else if (target)
        write_words(w, OP_BRANCH, 2, &target);
    else
        write_words(w, code, length_at(s, at), s->words + at + 1);
}

static void write_all(struct specializer *s, struct writer *w)
{
    memcpy(w->words, s->words, SPIRV_HEADER * sizeof *w->words);
    w->count = SPIRV_HEADER;
    struct position p = {.at = SPIRV_HEADER};
    for (; p.at < s->count; p.at += length_at(s, p.at)) {
        enter(s, &p);
        if (!p.function)
            write_global(s, w, p.at);
        else if (p.runs)
            write_instruction(s, w, &p);
        else if (code_at(s, p.at) == OP_LABEL && is_stub(s, &p))
            write_stub(s, w, p.block);
    }
}

/* ---- the whole module ------------------------------------------------------------------------ */

/* The least length of what is written in another form. */
static uint32_t least_length(uint32_t code)
{
    switch (code) {
    case OP_SPEC_CONSTANT_TRUE:
    case OP_SPEC_CONSTANT_FALSE:
    case OP_PHI:
    case OP_SELECTION_MERGE:
    case OP_SWITCH: return 3;
    case OP_SPEC_CONSTANT:
    case OP_SPEC_CONSTANT_OP:
    case OP_LOOP_MERGE:
    case OP_BRANCH_CONDITIONAL:
    case OP_DECORATE: return code == OP_DECORATE ? 3 : 4;
    case OP_LABEL:
    case OP_BRANCH: return 2;
    default: return 1;
    }
}

/* Where the first function begins; 0: the module is damaged. */
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
    mark_removed(s, first);
    write_all(s, w);
    return !s->failed;
}

uint32_t *gpu_specialize(const uint32_t *words, size_t *count, const uint32_t *given, uint32_t given_count)
{
    struct specializer s = {.words = words, .count = *count, .given = given, .given_count = given_count};
    if (s.count <= SPIRV_HEADER || s.count > SPIRV_MOST_WORDS || words[0] != SPIRV_MAGIC || words[3] > s.count)
        return NULL;
    s.bound = words[3];
    /* A stub is longer than what it takes the place of by at most two words. */
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
