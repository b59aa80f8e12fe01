/* What src/gpu/specialize.c and src/gpu/specialize_write.c share: what is known of a module that is
 * specialised. */
#ifndef GPU_SPECIALIZE_H
#define GPU_SPECIALIZE_H

#include "gpu/spirv.h"

/* SPIR-V specification, 3.20 and 3.52, beside what gpu/spirv.h has. */
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

/* What is known of an id. */
enum {
    SCALAR = 1,    /* a type: bool or an integer of 32 bits */
    KNOWN = 2,     /* a constant, of a SCALAR type */
    REACHED = 4,   /* a block that may run; a function that is called from one */
    SCANNED = 8,   /* a block or function that has been read */
    MERGE = 16,    /* a block that a header which stays names as its merge block */
    CONTINUE = 32, /* ... as its continue target */
    REMOVED = 64,  /* defined in a block or function that goes */
    NUMBERED = 128 /* a constant with a number */
};

struct specializer {
    const uint32_t *words;
    size_t count;
    uint32_t bound;
    const uint32_t *given; /* [number of the constant], given_count of them */
    uint32_t given_count;
    uint8_t *facts;   /* [id] */
    uint32_t *value;  /* [id]: of a KNOWN one; of a NUMBERED one before, its number; of a SCALAR
                         type, 1: bool */
    uint32_t *end_of; /* [id]: where a block's merge instruction is, or its branch if it has none */
    uint32_t *loop;   /* [id]: the CONTINUE block of a loop header, and the other way round */
    bool failed;      /* the module is unlike what compilers of GLSL write: it stays as it is */
};

static inline uint32_t code_at(const struct specializer *s, size_t at)
{
    return s->words[at] & 0xffffu;
}

static inline uint32_t length_at(const struct specializer *s, size_t at)
{
    return s->words[at] >> 16;
}

/* Word k of an instruction as an id; 0, whose facts nothing reads, where there is none. */
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

/* Where the branch at `at`, which ends a block, goes if that is known: of a selection, whose merge
 * instruction is at `merge`, and of an OpSwitch. 0: not known. */
uint32_t specializer_target(const struct specializer *s, size_t at, size_t merge);
/* Whether control comes from one block to another. */
bool specializer_goes_to(const struct specializer *s, uint32_t from, uint32_t to);

/* The module as it has become. */
struct writer {
    uint32_t *words;
    size_t count;
};

/* Writes what is left of the module, whose first function is at `first`, once all of it has been
 * read. A word becomes two at most. */
void specializer_write(struct specializer *s, size_t first, struct writer *w);

#endif
