/* Parses SPIR-V modules as GLSL compilers write them: instructions, ids and their definitions. A
 * position is the index of an instruction's first word. */
#ifndef GPU_SPIRV_H
#define GPU_SPIRV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vknerf/error.h>

/* SPIR-V specification: 2.3, 3.7 storage classes, 3.20 decorations, 3.52 instructions. */
enum {
    SPIRV_MAGIC = 0x07230203,
    SPIRV_HEADER = 5, /* number of words; word 3 is the bound of ids */
    SPIRV_MOST_WORDS = 1 << 20,

    SPIRV_INPUT = 1,
    SPIRV_PRIVATE = 6,
    SPIRV_FUNCTION = 7,

    SPIRV_RELAXED_PRECISION = 0,
    SPIRV_SPEC_ID = 1,       /* decoration with a specialisation constant's number */
    SPIRV_NON_WRITABLE = 24, /* allowed on constant arrays */
    SPIRV_NO_CONTRACTION = 42,

    OP_UNDEF = 1,
    OP_NAME = 5,
    OP_LINE = 8,
    OP_EXTENSION = 10,
    OP_EXT_INST_IMPORT = 11,
    OP_EXT_INST = 12,
    OP_MEMORY_MODEL = 14,
    OP_ENTRY_POINT = 15,
    OP_EXECUTION_MODE = 16,
    OP_CAPABILITY = 17,
    OP_TYPE_VOID = 19,
    OP_TYPE_BOOL = 20,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_VECTOR = 23,
    OP_TYPE_MATRIX = 24,
    OP_TYPE_ARRAY = 28,
    OP_TYPE_RUNTIME_ARRAY = 29,
    OP_TYPE_STRUCT = 30,
    OP_TYPE_POINTER = 32,
    OP_TYPE_FUNCTION = 33,
    OP_CONSTANT_TRUE = 41,
    OP_CONSTANT = 43,
    OP_CONSTANT_NULL = 46,
    OP_SPEC_CONSTANT_TRUE = 48,
    OP_SPEC_CONSTANT_OP = 52,
    OP_FUNCTION = 54,
    OP_FUNCTION_PARAMETER = 55,
    OP_FUNCTION_END = 56,
    OP_FUNCTION_CALL = 57,
    OP_VARIABLE = 59,
    OP_LOAD = 61,
    OP_STORE = 62,
    OP_ACCESS_CHAIN = 65,
    OP_IN_BOUNDS_ACCESS_CHAIN = 66,
    OP_DECORATE = 71,
    OP_MEMBER_DECORATE = 72,
    OP_VECTOR_EXTRACT_DYNAMIC = 77,
    OP_VECTOR_INSERT_DYNAMIC = 78,
    OP_LOOP_MERGE = 246,
    OP_SELECTION_MERGE = 247,
    OP_LABEL = 248,
    OP_RETURN = 253,
    OP_NO_LINE = 317,

    GLSL_MODF = 35, /* in GLSL.std.450 */
    GLSL_U_MIN = 38,
    GLSL_FREXP = 51,
    GLSL_INTERPOLATE = 76,
    GLSL_LAST = 81,
};

/* A parsed module. */
struct spirv {
    const uint32_t *words;
    size_t count;
    uint32_t bound;
    uint32_t *definition; /* [id]: position of the instruction that defines the id; 0: none */
    uint32_t *function; /* [id]: position of the OpFunction that contains the definition; 0: none */
    uint32_t *annotation; /* [id]: position of the first decoration of the id; 0: none */
    uint32_t *next; /* [position of a decoration]: position of the same id's next one; 0: none */
};

/* Returns the operand types of an opcode as letters: t type of the result, r result id, i other id,
 * l literal, s string; "i*", "l*": any number; x: alternating literals and ids. NULL: opcode not
 * allowed. *user_allowed: whether user code may contain the instruction. */
const char *spirv_operands(uint32_t code, bool *user_allowed);
/* Records that a field may not use the instruction, with its name; returns VKN_BAD_INPUT. */
vkn_status spirv_refuse(const char *name, uint32_t code);
/* Returns the letter of the operand in word `k` >= 1 of an instruction; '\0': past the end. */
char spirv_operand(const char *operands, uint32_t k);
/* Return opcode and length in words of the instruction at a position. */
static inline uint32_t spirv_code(const struct spirv *module, size_t at)
{
    return module->words[at] & 0xffffu;
}
static inline uint32_t spirv_length(const struct spirv *module, size_t at)
{
    return module->words[at] >> 16;
}
/* Returns the opcode of the instruction that defines an id. */
static inline uint32_t spirv_code_of(const struct spirv *module, uint32_t id)
{
    return spirv_code(module, module->definition[id]);
}

/* Parses `words`, which must outlive the module. VKN_BAD_INPUT: damaged, or contains an instruction
 * that neither the library's shaders nor fields may have; the message begins with `name`. The
 * caller calls spirv_close in either case. */
vkn_status spirv_open(const char *name, const uint32_t *words, size_t count, struct spirv *module);
void spirv_close(struct spirv *module);
/* Copies the OpName of an id, up to the parenthesis before GLSL's parameter types; "": none. */
void spirv_name(const struct spirv *module, uint32_t id, char name[64]);

#endif
