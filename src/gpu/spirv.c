/* Parses SPIR-V modules and defines which instructions are allowed, with which operands. */
#include "gpu/spirv.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* ---- instructions ---------------------------------------------------------------------------- */

struct instructions {
    uint16_t first, last;
    const char *operands; /* see spirv_operands */
    bool user_allowed;
};

/* clang-format off */
static const struct instructions known[] = {
    {61, 61, "tril*", true},     /* OpLoad */
    {62, 62, "iil*", true},      /* OpStore */
    {65, 66, "trii*", true},     /* OpAccessChain, OpInBoundsAccessChain */
    {59, 59, "trli*", true},     /* OpVariable */
    {43, 43, "trll*", false},    /* OpConstant */
    {248, 248, "r", true},       /* OpLabel */
    {249, 249, "i", true},       /* OpBranch */
    {250, 250, "iiil*", true},   /* OpBranchConditional */
    {126, 152, "tri*", true},    /* negation to OpSMulExtended */
    {154, 157, "tri*", true},    /* OpAny to OpIsInf */
    {164, 191, "tri*", true},    /* OpLogicalEqual to OpFUnordGreaterThanEqual */
    {194, 205, "tri*", true},    /* shifts and bits */
    {109, 116, "tri*", true},    /* conversions */
    {124, 124, "tri*", true},    /* OpBitcast */
    {12, 12, "trili*", true},    /* OpExtInst */
    {57, 57, "trii*", true},     /* OpFunctionCall */
    {77, 77, "trii", true},      /* OpVectorExtractDynamic */
    {78, 78, "triii", true},     /* OpVectorInsertDynamic */
    {79, 79, "triil*", true},    /* OpVectorShuffle */
    {80, 80, "tri*", true},      /* OpCompositeConstruct */
    {81, 81, "trill*", true},    /* OpCompositeExtract */
    {82, 82, "triill*", true},   /* OpCompositeInsert */
    {83, 84, "tri*", true},      /* OpCopyObject, OpTranspose */
    {245, 245, "tri*", true},    /* OpPhi */
    {246, 246, "iil*", true},    /* OpLoopMerge */
    {247, 247, "il", true},      /* OpSelectionMerge */
    {251, 251, "iix", true},     /* OpSwitch */
    {253, 253, "", true},        /* OpReturn */
    {254, 254, "i", true},       /* OpReturnValue */
    {255, 255, "", true},        /* OpUnreachable */
    {54, 54, "trli", true},      /* OpFunction */
    {55, 55, "tr", true},        /* OpFunctionParameter */
    {56, 56, "", true},          /* OpFunctionEnd */
    {400, 400, "tri*", true},    /* OpCopyLogical */
    {1, 1, "tr", true},          /* OpUndef */
    {8, 8, "ill", true},         /* OpLine */
    {317, 317, "", true},        /* OpNoLine */
    /* Outside of functions. */
    {3, 3, "l*", false},         /* OpSource */
    {4, 4, "s", false},          /* OpSourceExtension */
    {5, 5, "is", false},         /* OpName */
    {6, 6, "ils", false},        /* OpMemberName */
    {7, 7, "rs", false},         /* OpString */
    {330, 330, "s", false},      /* OpModuleProcessed */
    {10, 10, "s", false},        /* OpExtension */
    {11, 11, "rs", false},       /* OpExtInstImport */
    {14, 14, "ll", false},       /* OpMemoryModel */
    {15, 15, "lis", false},      /* OpEntryPoint; ids follow the name */
    {16, 16, "ill*", false},     /* OpExecutionMode */
    {17, 17, "l", false},        /* OpCapability */
    {19, 20, "r", false},        /* OpTypeVoid, OpTypeBool */
    {21, 21, "rll", false},      /* OpTypeInt */
    {22, 22, "rll*", false},     /* OpTypeFloat */
    {23, 24, "ril", false},      /* OpTypeVector, OpTypeMatrix */
    {28, 28, "rii", false},      /* OpTypeArray */
    {29, 29, "ri", false},       /* OpTypeRuntimeArray */
    {30, 30, "ri*", false},      /* OpTypeStruct */
    {32, 32, "rli", false},      /* OpTypePointer */
    {33, 33, "rii*", false},     /* OpTypeFunction */
    {41, 42, "tr", false},       /* OpConstantTrue, OpConstantFalse */
    {44, 44, "tri*", false},     /* OpConstantComposite */
    {46, 46, "tr", false},       /* OpConstantNull */
    {48, 49, "tr", false},       /* OpSpecConstantTrue, OpSpecConstantFalse */
    {50, 50, "trl*", false},     /* OpSpecConstant */
    {51, 51, "tri*", false},     /* OpSpecConstantComposite */
    {52, 52, "trlii*", false},   /* OpSpecConstantOp */
    {71, 71, "ill*", false},     /* OpDecorate */
    {72, 72, "illl*", false},    /* OpMemberDecorate */
    /* In the library's functions only. */
    {68, 68, "tril", false},     /* OpArrayLength */
    {227, 227, "tri*", false},   /* OpAtomicLoad */
    {228, 228, "iiii", false},   /* OpAtomicStore */
    {229, 242, "tri*", false},   /* OpAtomicExchange to OpAtomicXor */
    {6035, 6035, "tri*", false}, /* OpAtomicFAddEXT */
};

/* Refused instructions, in terms of GLSL. */
static const struct {
    uint16_t first, last;
    const char *name;
} others[] = {
    {67, 67, "pointers"},
    {69, 69, "pointers"},
    {68, 68, "buffers"},
    {39, 39, "addresses of buffers"},
    {86, 107, "images"},
    {117, 123, "addresses of buffers"},
    {207, 215, "derivatives across the screen"},
    {224, 225, "barriers"},
    {227, 242, "atomic operations"},
    {252, 252, "discard"},
    {261, 366, "operations of subgroups"},
    {4416, 4416, "discard"},
    {4421, 4432, "operations of subgroups"},
    {4445, 4479, "rays"},
    {4456, 4459, "cooperative matrices"},
    {5056, 5056, "the clock"},
    {5380, 5381, "discard"},
    {6035, 6035, "atomic operations"},
};
/* clang-format on */

const char *spirv_operands(uint32_t code, bool *user_allowed)
{
    for (size_t i = 0; i < BASE_COUNT(known); i++)
        if (code >= known[i].first && code <= known[i].last) {
            *user_allowed = known[i].user_allowed;
            return known[i].operands;
        }
    *user_allowed = false;
    return NULL;
}

char spirv_operand(const char *operands, uint32_t k)
{
    for (uint32_t i = 1; *operands; i++, operands++)
        if (*operands == 'x')
            return (k - i) % 2 == 0 ? 'l' : 'i';
        else if (i == k || operands[1] == '*' || *operands == 's')
            return *operands;
    return '\0';
}

static const char *name_of_other(uint32_t code)
{
    for (size_t i = 0; i < BASE_COUNT(others); i++)
        if (code >= others[i].first && code <= others[i].last)
            return others[i].name;
    return "an instruction that no computation needs";
}

vkn_status spirv_refuse(const char *name, uint32_t code)
{
    return base_fail(VKN_BAD_INPUT,
                     "%s: a field only computes: it may not use %s (SPIR-V instruction %u)", name,
                     name_of_other(code), code);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
    struct spirv *module;
    size_t at;
    uint32_t length;
    uint32_t function; /* position of the OpFunction; 0: outside of functions */
    bool after_globals;
};

static bool has_right_length(const char *operands, uint32_t length)
{
    uint32_t least = 1;
    bool unlimited = false;
    for (; *operands; operands++) {
        bool variadic = operands[1] == '*' || *operands == 'x' || *operands == 's';
        unlimited = unlimited || variadic;
        least += !variadic || *operands == 's';
        operands += operands[1] == '*';
    }
    return length == least || (unlimited && length > least);
}

/* Registers the instruction's result. Returns false if an id is invalid. */
static bool read_operands(struct reader *reader, const char *operands)
{
    struct spirv *module = reader->module;
    const uint32_t *word = module->words + reader->at;
    for (uint32_t k = 1; k < reader->length; k++) {
        char letter = spirv_operand(operands, k);
        if (letter == 's')
            return true;
        if (letter == 'l')
            continue;
        if (word[k] == 0 || word[k] >= module->bound)
            return false;
        if (letter != 'r')
            continue;
        if (module->definition[word[k]])
            return false;
        module->definition[word[k]] = (uint32_t)reader->at;
        module->function[word[k]] = reader->function;
    }
    return true;
}

/* Returns whether an instruction of functions may also stand outside of functions. */
static bool may_stand_outside(uint32_t code)
{
    return code == OP_VARIABLE || code == OP_UNDEF || code == OP_LINE || code == OP_NO_LINE;
}

static vkn_status read_instruction(const char *name, struct reader *reader)
{
    struct spirv *module = reader->module;
    uint32_t code = spirv_code(module, reader->at);
    bool user_allowed = false, begins = code == OP_FUNCTION, ends = code == OP_FUNCTION_END;
    const char *operands = spirv_operands(code, &user_allowed);
    if (!operands)
        return spirv_refuse(name, code);
    reader->length = spirv_length(module, reader->at);
    /* OpFunction itself counts as outside. */
    if (reader->length > module->count - reader->at ||
        !has_right_length(operands, reader->length) || !read_operands(reader, operands) ||
        (begins && reader->function) ||
        (!begins && !reader->function && (user_allowed || reader->after_globals) &&
         (reader->after_globals || !may_stand_outside(code))))
        return base_fail(VKN_BAD_INPUT, "%s: its SPIR-V is damaged at word %zu", name, reader->at);
    reader->after_globals = reader->after_globals || begins;
    reader->function = begins ? (uint32_t)reader->at : ends ? 0 : reader->function;
    return VKN_OK;
}

/* Prepends the last decoration first, so that each list is in the module's order. */
static void list_annotations(struct spirv *module, const uint32_t *at, size_t count)
{
    while (count-- > 0) {
        uint32_t id = module->words[at[count] + 1];
        module->next[at[count]] = module->annotation[id];
        module->annotation[id] = at[count];
    }
}

static vkn_status read_all(const char *name, struct spirv *module, uint32_t *annotations)
{
    struct reader reader = {.module = module};
    size_t count = 0;
    for (reader.at = SPIRV_HEADER; reader.at < module->count; reader.at += reader.length) {
        BASE_TRY(read_instruction(name, &reader));
        uint32_t code = spirv_code(module, reader.at);
        if (code == OP_DECORATE || code == OP_MEMBER_DECORATE)
            annotations[count++] = (uint32_t)reader.at;
    }
    list_annotations(module, annotations, count);
    return reader.function ? base_fail(VKN_BAD_INPUT, "%s: its SPIR-V ends early", name) : VKN_OK;
}

vkn_status spirv_open(const char *name, const uint32_t *words, size_t count, struct spirv *module)
{
    *module = (struct spirv){.words = words, .count = count};
    /* Every id needs an instruction, and positions are 32-bit. */
    if (count <= SPIRV_HEADER || count > SPIRV_MOST_WORDS || words[0] != SPIRV_MAGIC ||
        words[3] > count)
        return base_fail(VKN_BAD_INPUT, "%s: no SPIR-V of up to %u words", name, SPIRV_MOST_WORDS);
    module->bound = words[3];
    module->definition = base_alloc(module->bound + 1, sizeof *module->definition);
    module->function = base_alloc(module->bound + 1, sizeof *module->function);
    module->annotation = base_alloc(module->bound + 1, sizeof *module->annotation);
    module->next = base_alloc(count, sizeof *module->next);
    uint32_t *annotations = base_alloc(count, sizeof *annotations);
    vkn_status status = VKN_ERROR;
    if (module->definition && module->function && module->annotation && module->next && annotations)
        status = read_all(name, module, annotations);
    free(annotations);
    return status;
}

void spirv_close(struct spirv *module)
{
    free(module->definition);
    free(module->function);
    free(module->annotation);
    free(module->next);
    *module = (struct spirv){0};
}

void spirv_name(const struct spirv *module, uint32_t id, char name[64])
{
    name[0] = '\0';
    for (size_t at = SPIRV_HEADER; at < module->count; at += spirv_length(module, at)) {
        if (spirv_code(module, at) != OP_NAME || module->words[at + 1] != id)
            continue;
        size_t size = (spirv_length(module, at) - 2) * sizeof(uint32_t);
        snprintf(name, 64, "%.*s", (int)(size < 63 ? size : 63),
                 (const char *)&module->words[at + 2]);
        name[strcspn(name, "(")] = '\0';
        return;
    }
}
