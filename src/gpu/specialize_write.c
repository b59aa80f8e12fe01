/* Writes a specialised module: constants, and the reachable functions, blocks and branches. */
#include "gpu/specialize.h"

#include <string.h>

/* Position in the module, its function and block, and whether that code is reachable. */
struct position {
    size_t at;
    uint32_t function, block; /* 0: outside */
    bool is_reachable;
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
    p->is_reachable = has(s, p->function, REACHED) && (!p->block || has(s, p->block, REACHED));
}

/* Returns the id that an instruction in a function defines; 0: none. */
static uint32_t result_of(const struct specializer *s, size_t at)
{
    uint32_t code = code_at(s, at);
    bool no_result = code == OP_LINE || code == OP_NO_LINE || code == OP_STORE || is_merge(code) ||
                     ends_block(code) || code == OP_CONTROL_BARRIER || code == OP_MEMORY_BARRIER ||
                     code == OP_ATOMIC_STORE || code == OP_MATRIX_STORE;
    return no_result ? 0 : id_at(s, at, code == OP_LABEL ? 1 : 2);
}

/* Returns whether the block is unreachable but named by a kept header, so that its label and a
 * terminator must stay. */
static bool is_stub(const struct specializer *s, const struct position *p)
{
    return has(s, p->function, REACHED) && !p->is_reachable &&
           (has(s, p->block, MERGE) || has(s, p->block, CONTINUE));
}

/* Returns whether an instruction outside of functions defines its second operand. */
static bool defines_value(uint32_t code)
{
    return (code >= OP_CONSTANT_TRUE && code <= OP_SPEC_CONSTANT_OP) || code == OP_VARIABLE;
}

/* Marks the ids that only removed instructions define. result_of can mistake an operand for a
 * result, so the second pass removes the mark from every id that a kept instruction defines. */
static void mark_removed(struct specializer *s, size_t first)
{
    struct position p = {.at = first};
    for (; p.at < s->count; p.at += length_at(s, p.at)) {
        enter(s, &p);
        if (!p.is_reachable && !(code_at(s, p.at) == OP_LABEL && is_stub(s, &p)))
            s->facts[result_of(s, p.at)] |= REMOVED;
    }
    for (p = (struct position){.at = SPIRV_HEADER}; p.at < s->count; p.at += length_at(s, p.at)) {
        enter(s, &p);
        if (p.at >= first ? p.is_reachable : defines_value(code_at(s, p.at)))
            s->facts[result_of(s, p.at)] &= (uint8_t)~REMOVED;
    }
}

static void write_words(struct writer *w, uint32_t code, uint32_t length, const uint32_t *operands)
{
    w->words[w->count] = length << 16 | code;
    for (uint32_t k = 1; k < length; k++)
        w->words[w->count + k] = operands[k - 1];
    w->count += length;
}

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
    uint32_t code = code_at(s, at), length = length_at(s, at), first = id_at(s, at, 1),
             id = id_at(s, at, 2);
    bool annotates = code == OP_NAME || code == OP_MEMBER_NAME || code == OP_DECORATE ||
                     code == OP_MEMBER_DECORATE;
    if (annotates && has(s, first, REMOVED))
        return;
    if (code == OP_DECORATE && length == 4 && s->words[at + 2] == SPIRV_SPEC_ID)
        return;
    bool is_numbered =
        code >= OP_SPEC_CONSTANT_TRUE && code <= OP_SPEC_CONSTANT && has(s, id, NUMBERED);
    if (is_numbered || (code == OP_SPEC_CONSTANT_OP && has(s, id, KNOWN)))
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

/* Keeps only the reachable predecessors of an OpPhi. */
static void write_phi(struct specializer *s, struct writer *w, const struct position *p)
{
    const uint32_t *word = s->words + p->at;
    uint32_t *phi = w->words + w->count, length = 3, loop = s->loop[p->block];
    if (loop && !has(s, loop, REACHED))
        s->failed = true; /* a stub would be a predecessor */
    write_words(w, OP_PHI, 3, word + 1);
    for (uint32_t k = 3; k + 1 < length_at(s, p->at); k += 2)
        if (specializer_goes_to(s, id_at(s, p->at, k + 1), p->block)) {
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
    if (code == OP_SELECTION_MERGE && next < s->count &&
        code_at(s, next) == OP_BRANCH_CONDITIONAL && specializer_target(s, next, at))
        return;
    if ((code == OP_BRANCH_CONDITIONAL || code == OP_SWITCH) && merge < at)
        target = specializer_target(s, at, merge);
    if (code == OP_PHI)
        write_phi(s, w, p);
    else if (target && code == OP_SWITCH) /* breaks in its cases need the merge block */
        write_words(w, OP_SWITCH, 3, (uint32_t[]){id_at(s, at, 1), target});
    else if (target)
        write_words(w, OP_BRANCH, 2, &target);
    else
        write_words(w, code, length_at(s, at), s->words + at + 1);
}

void specializer_write(struct specializer *s, size_t first, struct writer *w)
{
    mark_removed(s, first);
    memcpy(w->words, s->words, SPIRV_HEADER * sizeof *w->words);
    w->count = SPIRV_HEADER;
    struct position p = {.at = SPIRV_HEADER};
    for (; p.at < s->count; p.at += length_at(s, p.at)) {
        enter(s, &p);
        if (!p.function)
            write_global(s, w, p.at);
        else if (p.is_reachable)
            write_instruction(s, w, &p);
        else if (code_at(s, p.at) == OP_LABEL && is_stub(s, &p))
            write_stub(s, w, p.block);
    }
}
