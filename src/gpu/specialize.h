/* Declares the state of a module during specialisation, shared by src/gpu/specialize.c and
 * src/gpu/specialize_write.c. */
#ifndef GPU_SPECIALIZE_H
#define GPU_SPECIALIZE_H

#include "gpu/spirv.h"

/* Further opcodes (SPIR-V specification, 3.20 and 3.52). */
enum {
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

/* Facts about an id, as a bit mask. */
enum {
    SCALAR = 1,    /* a type: bool or 32-bit integer */
    KNOWN = 2,     /* a SCALAR constant, whose value is known */
    REACHED = 4,   /* a block that can run, or a function that such a block calls */
    SCANNED = 8,   /* a block or function that has been read */
    MERGE = 16,    /* merge block of a header that is kept */
    CONTINUE = 32, /* continue target of a header that is kept */
    REMOVED = 64,  /* defined in a block or function that is removed */
    NUMBERED = 128 /* a constant with a SpecId */
};

/* A module during specialisation. */
struct specializer {
    const uint32_t *words;
    size_t count;
    uint32_t bound;
    const uint32_t *given; /* [SpecId]: values, given_count of them */
    uint32_t given_count;
    uint8_t *facts;   /* [id]: mask of the facts above */
    uint32_t *value;  /* [id]: value if KNOWN; SpecId if only NUMBERED; of a SCALAR type 1: bool */
    uint32_t *end_of; /* [block]: position of its merge instruction, if none, of its branch */
    uint32_t *loop;   /* [block]: of a loop header its continue target, and vice versa */
    bool failed;      /* unexpected construct: the module is not specialised */
};

static inline uint32_t code_at(const struct specializer *s, size_t at)
{
    return s->words[at] & 0xffffu;
}

static inline uint32_t length_at(const struct specializer *s, size_t at)
{
    return s->words[at] >> 16;
}

/* Returns word k of an instruction as an id; 0 (an id without facts) if there is no such word or
 * id. */
static inline uint32_t id_at(const struct specializer *s, size_t at, uint32_t k)
{
    return k < length_at(s, at) && s->words[at + k] < s->bound ? s->words[at + k] : 0;
}

static inline bool has(const struct specializer *s, uint32_t id, uint8_t facts)
{
    return id && (s->facts[id] & facts) == facts;
}

static inline bool is_merge(uint32_t code)
{
    return code == OP_SELECTION_MERGE || code == OP_LOOP_MERGE;
}

static inline bool ends_block(uint32_t code)
{
    return code >= OP_BRANCH && code <= OP_UNREACHABLE;
}

/* Returns the block that the OpBranchConditional or OpSwitch at `at` goes to, if its condition is
 * known and an OpSelectionMerge is at `merge` (0: no merge instruction). 0: unknown. */
uint32_t specializer_target(const struct specializer *s, size_t at, size_t merge);
/* Returns whether control can pass from the end of block `from` to block `to`. */
bool specializer_goes_to(const struct specializer *s, uint32_t from, uint32_t to);

/* The specialised module. */
struct writer {
    uint32_t *words;
    size_t count;
};

/* Writes the specialised module, after the whole input has been read; `first` is the position of
 * the input's first function. Output is at most twice as long as the input. */
void specializer_write(struct specializer *s, size_t first, struct writer *w);

#endif
