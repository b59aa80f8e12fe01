/* Tests src/gpu/specialize.c, which replaces specialisation constants and removes dead code, on
 * modules made by the test and on all shaders of the library. Needs no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/shaders.h"
#include "gpu/spirv.h"
#include "shared/layout.h"

/* ---- modules --------------------------------------------------------------------------------- */

struct module {
    uint32_t words[512];
    size_t count;
};

#define MODULE_IDS 48u

/* Appends an instruction: its opcode and operands. */
#define OP(module, code, ...)                                  \
    append(module, code, (const uint32_t[]){0, ##__VA_ARGS__}, \
           sizeof((const uint32_t[]){0, ##__VA_ARGS__}) / sizeof(uint32_t))

static void append(struct module *m, uint32_t code, const uint32_t *operands, size_t length)
{
    assert_true(m->count + length <= sizeof m->words / sizeof *m->words);
    m->words[m->count] = (uint32_t)length << 16 | code;
    memcpy(&m->words[m->count + 1], operands + 1, (length - 1) * sizeof *operands);
    m->count += length;
}

/* Ids of every module of the test. */
enum {
    VOID = 1,
    BOOL,
    UINT,
    FLOAT,
    MAIN_TYPE,
    MAIN,
    A, /* specialisation constants 2, 3 and 4 */
    B,
    C,
    FIRST, /* first id of the module's own */
};

enum {
    CODE_SPEC_CONSTANT_FALSE = 49,
    CODE_SPEC_CONSTANT = 50,
    CODE_COMPOSITE = 51,
    CODE_PHI = 245,
    CODE_BRANCH = 249,
    CODE_BRANCH_CONDITIONAL = 250,
    CODE_SWITCH = 251,
    CODE_UNREACHABLE = 255,
    CODE_ATOMIC_ADD = 6035, /* OpAtomicFAddEXT */
};

/* Begins a module, up to its constants: A (uint) 7, B (uint) 3, C (bool) true by default.
 * `annotated` is an id with a name and a decoration, or 0. */
static struct module begin(uint32_t annotated)
{
    struct module m = {.words = {SPIRV_MAGIC, 0x10500, 0, MODULE_IDS, 0}, .count = SPIRV_HEADER};
    OP(&m, OP_CAPABILITY, 1);
    OP(&m, OP_MEMORY_MODEL, 0, 1);
    OP(&m, OP_ENTRY_POINT, 5, MAIN, 0x6e69616d, 0);
    if (annotated) {
        OP(&m, OP_NAME, annotated, 0x78);
        OP(&m, OP_DECORATE, annotated, SPIRV_RELAXED_PRECISION);
    }
    OP(&m, OP_NAME, MAIN, 0x6e69616d, 0);
    OP(&m, OP_DECORATE, A, 1, 2);
    OP(&m, OP_DECORATE, B, 1, 3);
    OP(&m, OP_DECORATE, C, 1, 4);
    OP(&m, OP_TYPE_VOID, VOID);
    OP(&m, OP_TYPE_BOOL, BOOL);
    OP(&m, OP_TYPE_INT, UINT, 32, 0);
    OP(&m, OP_TYPE_FLOAT, FLOAT, 32);
    OP(&m, OP_TYPE_FUNCTION, MAIN_TYPE, VOID);
    OP(&m, CODE_SPEC_CONSTANT, UINT, A, 7);
    OP(&m, CODE_SPEC_CONSTANT, UINT, B, 3);
    OP(&m, OP_SPEC_CONSTANT_TRUE, BOOL, C);
    return m;
}

static void begin_function(struct module *m, uint32_t id, uint32_t label)
{
    OP(m, OP_FUNCTION, VOID, id, 0, MAIN_TYPE);
    OP(m, OP_LABEL, label);
}

static void end_function(struct module *m)
{
    OP(m, OP_RETURN);
    OP(m, OP_FUNCTION_END);
}

/* Specialises with A, B and C, and asserts success. */
static struct module specialize(const struct module *m, uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t given[] = {0, 0, a, b, c};
    struct module result = {.count = m->count};
    uint32_t *words = gpu_specialize(m->words, &result.count, given, 5);
    assert_non_null(words);
    assert_true(result.count <= sizeof result.words / sizeof *result.words);
    memcpy(result.words, words, result.count * sizeof *words);
    free(words);
    return result;
}

static void refuse(const struct module *m)
{
    size_t count = m->count;
    assert_null(gpu_specialize(m->words, &count, NULL, 0));
    assert_int_equal(count, m->count);
}

/* Whether the module has this very instruction. */
#define HAS(module, code, ...)                                   \
    contains(module, code, (const uint32_t[]){0, ##__VA_ARGS__}, \
             sizeof((const uint32_t[]){0, ##__VA_ARGS__}) / sizeof(uint32_t))

static bool contains(const struct module *m, uint32_t code, const uint32_t *operands, size_t length)
{
    for (size_t at = SPIRV_HEADER; at < m->count; at += m->words[at] >> 16)
        if (m->words[at] == ((uint32_t)length << 16 | code) &&
            memcmp(&m->words[at + 1], operands + 1, (length - 1) * sizeof *operands) == 0)
            return true;
    return false;
}

static size_t count_of(const struct module *m, uint32_t code)
{
    size_t count = 0;
    for (size_t at = SPIRV_HEADER; at < m->count; at += m->words[at] >> 16)
        count += (m->words[at] & 0xffffu) == code;
    return count;
}

/* ---- constants ------------------------------------------------------------------------------- */

static void test_constants(void **state)
{
    (void)state;
    struct module m = begin(0);
    OP(&m, OP_DECORATE, FIRST, 1, 9); /* no value is given */
    OP(&m, CODE_SPEC_CONSTANT, UINT, FIRST, 11);
    OP(&m, OP_DECORATE, FIRST + 1, 1, 2);
    OP(&m, CODE_SPEC_CONSTANT, FLOAT, FIRST + 1, 0x3f800000);
    OP(&m, OP_DECORATE, FIRST + 2, 1, 4);
    OP(&m, CODE_SPEC_CONSTANT_FALSE, BOOL, FIRST + 2);
    OP(&m, OP_DECORATE, FIRST + 3, 1, 9);
    OP(&m, CODE_SPEC_CONSTANT_FALSE, BOOL, FIRST + 3);
    OP(&m, CODE_COMPOSITE, UINT, FIRST + 4, A, B);
    OP(&m, OP_CONSTANT_TRUE, BOOL, FIRST + 6);
    OP(&m, OP_SPEC_CONSTANT_OP, BOOL, FIRST + 7, 167, C, FIRST + 6); /* OpLogicalAnd */
    begin_function(&m, MAIN, FIRST + 5);
    end_function(&m);
    struct module result = specialize(&m, 5, 0, 0);
    assert_true(HAS(&result, OP_CONSTANT, UINT, A, 5));
    assert_true(HAS(&result, OP_CONSTANT, UINT, B, 0));
    assert_true(HAS(&result, OP_CONSTANT_TRUE + 1, BOOL, C));
    assert_true(HAS(&result, OP_CONSTANT, UINT, FIRST, 11));
    assert_true(HAS(&result, OP_CONSTANT, FLOAT, FIRST + 1, 5));
    assert_true(HAS(&result, OP_CONSTANT_TRUE + 1, BOOL, FIRST + 2));
    assert_true(HAS(&result, OP_CONSTANT_TRUE + 1, BOOL, FIRST + 3));
    assert_true(HAS(&result, CODE_COMPOSITE, UINT, FIRST + 4, A, B));
    assert_int_equal(count_of(&result, OP_DECORATE), 0);
    result = specialize(&m, 5, 0, 8);
    assert_true(HAS(&result, OP_CONSTANT_TRUE, BOOL, C));
    assert_true(HAS(&result, OP_CONSTANT_TRUE, BOOL, FIRST + 2));
    assert_true(HAS(&result, OP_CONSTANT_TRUE, BOOL, FIRST + 7));

    size_t count = m.count;
    uint32_t *words = gpu_specialize(m.words, &count, NULL, 0);
    assert_non_null(words);
    result.count = count;
    memcpy(result.words, words, count * sizeof *words);
    free(words);
    assert_true(HAS(&result, OP_CONSTANT, UINT, A, 7));
    assert_true(HAS(&result, OP_CONSTANT_TRUE, BOOL, C));
}

/* The operations of shaders/, on A and B or on the bools A != 0 and B != 0. */
static const struct operation {
    uint32_t code, a, b, expected;
    bool of_bools, to_bool;
} operations[] = {
    {128, 0xffffffff, 3, 2, false, false},          /* OpIAdd */
    {130, 3, 5, 0xfffffffe, false, false},          /* OpISub */
    {132, 0x80000001, 6, 6, false, false},          /* OpIMul */
    {134, 0xffffffff, 2, 0x7fffffff, false, false}, /* OpUDiv */
    {137, 0xffffffff, 4, 3, false, false},          /* OpUMod */
    {197, 12, 10, 14, false, false},                /* OpBitwiseOr */
    {199, 12, 10, 8, false, false},                 /* OpBitwiseAnd */
    {170, 4, 4, 1, false, true},                    /* OpIEqual */
    {170, 4, 5, 0, false, true},
    {171, 4, 4, 0, false, true}, /* OpINotEqual */
    {171, 4, 5, 1, false, true},
    {172, 0xffffffff, 1, 1, false, true}, /* OpUGreaterThan */
    {172, 1, 1, 0, false, true},
    {174, 1, 1, 1, false, true}, /* OpUGreaterThanEqual */
    {174, 1, 0xffffffff, 0, false, true},
    {176, 1, 0xffffffff, 1, false, true}, /* OpULessThan */
    {176, 1, 1, 0, false, true},
    {178, 1, 1, 1, false, true}, /* OpULessThanEqual */
    {178, 0xffffffff, 1, 0, false, true},
    {164, 0, 0, 1, true, true}, /* OpLogicalEqual */
    {164, 1, 0, 0, true, true},
    {165, 1, 0, 1, true, true}, /* OpLogicalNotEqual */
    {165, 1, 1, 0, true, true},
    {166, 1, 0, 1, true, true}, /* OpLogicalOr */
    {166, 0, 0, 0, true, true},
    {167, 1, 0, 0, true, true}, /* OpLogicalAnd */
    {167, 1, 1, 1, true, true},
};

static void test_operations(void **state)
{
    (void)state;
    for (size_t i = 0; i < BASE_COUNT(operations); i++) {
        const struct operation *o = &operations[i];
        uint32_t type = o->to_bool ? BOOL : UINT, zero = FIRST, a = A, b = B, id = FIRST + 5;
        struct module m = begin(0);
        OP(&m, OP_CONSTANT_NULL, UINT, zero);
        OP(&m, OP_SPEC_CONSTANT_OP, BOOL, FIRST + 1, 171, A, zero);
        OP(&m, OP_SPEC_CONSTANT_OP, BOOL, FIRST + 2, 171, B, zero);
        if (o->of_bools) {
            a = FIRST + 1;
            b = FIRST + 2;
        }
        OP(&m, OP_SPEC_CONSTANT_OP, type, id, o->code, a, b);
        OP(&m, OP_SPEC_CONSTANT_OP, BOOL, FIRST + 3, 168, FIRST + 1);          /* OpLogicalNot */
        OP(&m, OP_SPEC_CONSTANT_OP, UINT, FIRST + 4, 169, FIRST + 1, A, zero); /* OpSelect */
        OP(&m, OP_SPEC_CONSTANT_OP, UINT, FIRST + 6, 169, FIRST + 1, zero, B);
        begin_function(&m, MAIN, FIRST + 7);
        end_function(&m);
        struct module result = specialize(&m, o->a, o->b, 0);
        if (o->to_bool)
            assert_true(HAS(&result, OP_CONSTANT_TRUE + !o->expected, BOOL, id));
        else
            assert_true(HAS(&result, OP_CONSTANT, UINT, id, o->expected));
        assert_true(HAS(&result, OP_CONSTANT_TRUE + (o->a != 0), BOOL, FIRST + 3));
        assert_true(HAS(&result, OP_CONSTANT, UINT, FIRST + 4, o->a ? o->a : 0));
        assert_true(HAS(&result, OP_CONSTANT, UINT, FIRST + 6, o->a ? 0 : o->b));
        assert_int_equal(count_of(&result, OP_SPEC_CONSTANT_OP), 0);
    }
}

/* Operations that are unknown or undefined are left to the driver. */
static void test_unknown(void **state)
{
    (void)state;
    struct module m = begin(0);
    OP(&m, OP_SPEC_CONSTANT_OP, UINT, FIRST, 134, A, B); /* division by 0 */
    OP(&m, OP_SPEC_CONSTANT_OP, UINT, FIRST + 1, 137, A, B);
    OP(&m, OP_SPEC_CONSTANT_OP, UINT, FIRST + 2, 195, A, A); /* an opcode that no shader uses */
    OP(&m, OP_SPEC_CONSTANT_OP, UINT, FIRST + 3, 128, A, FIRST + 2);
    OP(&m, OP_SPEC_CONSTANT_OP, FLOAT, FIRST + 4, 128, A, A);
    begin_function(&m, MAIN, FIRST + 5);
    end_function(&m);
    struct module result = specialize(&m, 9, 0, 0);
    assert_int_equal(count_of(&result, OP_SPEC_CONSTANT_OP), 5);
    assert_true(HAS(&result, OP_SPEC_CONSTANT_OP, UINT, FIRST, 134, A, B));
}

/* ---- control flow ---------------------------------------------------------------------------- */

enum { TRUE_CALLS = FIRST + 20, FALSE_CALLS, BOTH_CALL, NEVER_CALLED };

/* main: if (condition) TRUE_CALLS else FALSE_CALLS, and a phi of both branches. The condition is A
 * < B, as a constant, or in the function, where it is and-ed with an unknown value. */
static struct module make_selection(bool in_function)
{
    const uint32_t less = FIRST, yes = FIRST + 2, no = FIRST + 3, merge = FIRST + 4,
                   unknown = FIRST + 8;
    struct module m = begin(no);
    OP(&m, OP_NAME, FALSE_CALLS, 0x79);
    OP(&m, OP_UNDEF, BOOL, unknown);
    if (!in_function)
        OP(&m, OP_SPEC_CONSTANT_OP, BOOL, less, 176, A, B);
    begin_function(&m, MAIN, FIRST + 1);
    uint32_t condition = less;
    if (in_function) {
        OP(&m, 176, BOOL, less, A, B);
        OP(&m, 167, BOOL, FIRST + 9, less, unknown); /* OpLogicalAnd */
        condition = FIRST + 9;
    }
    OP(&m, OP_SELECTION_MERGE, merge, 0);
    OP(&m, CODE_BRANCH_CONDITIONAL, condition, yes, no);
    OP(&m, OP_LABEL, yes);
    OP(&m, OP_FUNCTION_CALL, VOID, FIRST + 5, TRUE_CALLS);
    OP(&m, CODE_BRANCH, merge);
    OP(&m, OP_LABEL, no);
    OP(&m, OP_FUNCTION_CALL, VOID, FIRST + 6, FALSE_CALLS);
    OP(&m, CODE_BRANCH, merge);
    OP(&m, OP_LABEL, merge);
    OP(&m, CODE_PHI, UINT, FIRST + 7, A, yes, B, no);
    end_function(&m);
    for (uint32_t f = NEVER_CALLED; f >= TRUE_CALLS;
         f--) { /* defined before and after their callers */
        begin_function(&m, f, f + 4);
        if (f != BOTH_CALL && f != NEVER_CALLED)
            OP(&m, OP_FUNCTION_CALL, VOID, f + 8, BOTH_CALL);
        end_function(&m);
    }
    return m;
}

static bool has_function(const struct module *m, uint32_t id)
{
    return HAS(m, OP_FUNCTION, VOID, id, 0, MAIN_TYPE);
}

static void test_selection(void **state)
{
    (void)state;
    const uint32_t yes = FIRST + 2, no = FIRST + 3, merge = FIRST + 4;
    struct module m = make_selection(false), result = specialize(&m, 1, 2, 0);
    assert_true(HAS(&result, CODE_BRANCH, yes));
    assert_int_equal(count_of(&result, OP_SELECTION_MERGE), 0);
    assert_int_equal(count_of(&result, CODE_BRANCH_CONDITIONAL), 0);
    assert_true(HAS(&result, OP_LABEL, merge));
    assert_true(HAS(&result, CODE_PHI, UINT, FIRST + 7, A, yes));
    assert_false(HAS(&result, OP_LABEL, no));
    assert_false(HAS(&result, OP_NAME, no, 0x78));
    assert_int_equal(count_of(&result, OP_DECORATE), 0);
    assert_true(has_function(&result, TRUE_CALLS));
    assert_false(has_function(&result, FALSE_CALLS));
    assert_false(HAS(&result, OP_NAME, FALSE_CALLS, 0x79));
    assert_true(has_function(&result, BOTH_CALL));
    assert_true(HAS(&result, OP_LABEL, BOTH_CALL + 4));
    assert_false(has_function(&result, NEVER_CALLED));
    assert_int_equal(count_of(&result, OP_FUNCTION_END), 3);

    result = specialize(&m, 2, 2, 0);
    assert_true(HAS(&result, CODE_BRANCH, no));
    assert_true(HAS(&result, CODE_PHI, UINT, FIRST + 7, B, no));
    assert_true(HAS(&result, OP_NAME, no, 0x78));
    assert_true(HAS(&result, OP_DECORATE, no, SPIRV_RELAXED_PRECISION));
    assert_true(has_function(&result, FALSE_CALLS));
    assert_false(has_function(&result, TRUE_CALLS));

    /* In the function: false && unknown is false, true && unknown is unknown. */
    m = make_selection(true);
    result = specialize(&m, 2, 2, 0);
    assert_true(HAS(&result, CODE_BRANCH, no));
    assert_false(has_function(&result, TRUE_CALLS));
    result = specialize(&m, 1, 2, 0);
    assert_int_equal(count_of(&result, CODE_BRANCH_CONDITIONAL), 1);
    assert_int_equal(count_of(&result, OP_SELECTION_MERGE), 1);
    assert_true(HAS(&result, CODE_PHI, UINT, FIRST + 7, A, yes, B, no));
    assert_int_equal(count_of(&result, OP_FUNCTION_END), 4);
}

/* `C || x` as compilers emit it: the phi is true if C is, so the second selection is constant. */
static void test_phi(void **state)
{
    (void)state;
    const uint32_t not = FIRST, other = FIRST + 2, merge = FIRST + 3, inside = FIRST + 4,
                   end = FIRST + 5;
    struct module m = begin(0);
    OP(&m, OP_UNDEF, BOOL, FIRST + 6);
    OP(&m, OP_SPEC_CONSTANT_OP, BOOL, not, 168, C);
    begin_function(&m, MAIN, FIRST + 1);
    OP(&m, OP_SELECTION_MERGE, merge, 0);
    OP(&m, CODE_BRANCH_CONDITIONAL, not, other, merge);
    OP(&m, OP_LABEL, other);
    OP(&m, CODE_BRANCH, merge);
    OP(&m, OP_LABEL, merge);
    OP(&m, CODE_PHI, BOOL, FIRST + 7, C, FIRST + 1, FIRST + 6, other);
    OP(&m, OP_SELECTION_MERGE, end, 0);
    OP(&m, CODE_BRANCH_CONDITIONAL, FIRST + 7, end, inside);
    OP(&m, OP_LABEL, inside);
    OP(&m, CODE_BRANCH, end);
    OP(&m, OP_LABEL, end);
    end_function(&m);
    struct module result = specialize(&m, 0, 0, 1);
    assert_true(HAS(&result, CODE_PHI, BOOL, FIRST + 7, C, FIRST + 1));
    assert_false(HAS(&result, OP_LABEL, inside));
    result = specialize(&m, 0, 0, 0);
    assert_true(HAS(&result, CODE_PHI, BOOL, FIRST + 7, FIRST + 6, other));
    assert_true(HAS(&result, OP_LABEL, inside));
    assert_true(HAS(&result, CODE_BRANCH_CONDITIONAL, FIRST + 7, end, inside));
}

/* A switch keeps its merge block, the target of `break`. */
static void test_switch(void **state)
{
    (void)state;
    const uint32_t other = FIRST + 2, two = FIRST + 3, three = FIRST + 4, merge = FIRST + 5;
    struct module m = begin(0);
    begin_function(&m, MAIN, FIRST + 1);
    OP(&m, OP_SELECTION_MERGE, merge, 0);
    OP(&m, CODE_SWITCH, A, other, 2, two, 3, three);
    OP(&m, OP_LABEL, other);
    OP(&m, OP_RETURN);
    OP(&m, OP_LABEL, two);
    OP(&m, CODE_BRANCH, merge);
    OP(&m, OP_LABEL, three);
    OP(&m, CODE_BRANCH, merge);
    OP(&m, OP_LABEL, merge);
    end_function(&m);
    const uint32_t targets[] = {other, other, two, three, other};
    for (uint32_t a = 0; a < BASE_COUNT(targets); a++) {
        struct module result = specialize(&m, a, 0, 0);
        assert_true(HAS(&result, OP_SELECTION_MERGE, merge, 0));
        assert_true(HAS(&result, CODE_SWITCH, A, targets[a]));
        for (uint32_t label = other; label <= three; label++)
            assert_int_equal(HAS(&result, OP_LABEL, label), label == targets[a]);
        /* A merge block that is unreachable must still exist. */
        assert_true(HAS(&result, OP_LABEL, merge));
        assert_int_equal(count_of(&result, CODE_UNREACHABLE), targets[a] == other);
    }
}

/* A loop that always breaks keeps its continue target; an endless loop keeps its merge block. */
static struct module make_loop(bool with_phi, uint32_t condition)
{
    const uint32_t header = FIRST + 1, body = FIRST + 2, leave = FIRST + 3, stay = FIRST + 4,
                   next = FIRST + 5, end = FIRST + 6;
    struct module m = begin(next);
    begin_function(&m, MAIN, FIRST);
    OP(&m, CODE_BRANCH, header);
    OP(&m, OP_LABEL, header);
    if (with_phi)
        OP(&m, CODE_PHI, UINT, FIRST + 7, A, FIRST, FIRST + 8, next);
    OP(&m, OP_LOOP_MERGE, end, next, 0);
    OP(&m, CODE_BRANCH, body);
    OP(&m, OP_LABEL, body);
    OP(&m, 176, BOOL, FIRST + 9, with_phi ? FIRST + 7 : A, B); /* OpULessThan */
    OP(&m, OP_SELECTION_MERGE, stay, 0);
    OP(&m, CODE_BRANCH_CONDITIONAL, condition, leave, stay);
    OP(&m, OP_LABEL, leave);
    OP(&m, CODE_BRANCH, end);
    OP(&m, OP_LABEL, stay);
    OP(&m, CODE_BRANCH, next);
    OP(&m, OP_LABEL, next);
    if (with_phi)
        OP(&m, 128, UINT, FIRST + 8, FIRST + 7, A);
    OP(&m, CODE_BRANCH, header);
    OP(&m, OP_LABEL, end);
    end_function(&m);
    return m;
}

static void test_loop(void **state)
{
    (void)state;
    const uint32_t header = FIRST + 1, stay = FIRST + 4, next = FIRST + 5, end = FIRST + 6;
    struct module m = make_loop(false, C), result = specialize(&m, 0, 0, 1);
    assert_true(HAS(&result, OP_LOOP_MERGE, end, next, 0));
    assert_false(HAS(&result, OP_LABEL, stay));
    assert_true(HAS(&result, OP_LABEL, next));
    assert_true(HAS(&result, OP_NAME, next, 0x78));
    const uint32_t stub[] = {2u << 16 | OP_LABEL, next, 2u << 16 | CODE_BRANCH, header};
    size_t found = 0;
    for (size_t at = SPIRV_HEADER; at + 4 <= result.count; at += result.words[at] >> 16)
        found += memcmp(&result.words[at], stub, sizeof stub) == 0;
    assert_int_equal(found, 1);
    assert_true(HAS(&result, OP_RETURN));

    result = specialize(&m, 0, 0, 0);
    assert_true(HAS(&result, OP_LABEL, stay));
    assert_true(HAS(&result, OP_LABEL, end));
    assert_int_equal(count_of(&result, CODE_UNREACHABLE), 1);
    assert_false(HAS(&result, OP_RETURN));

    /* A loop variable's phi is kept if the loop repeats; otherwise specialisation is refused. */
    m = make_loop(true, C);
    result = specialize(&m, 0, 0, 0);
    assert_true(HAS(&result, CODE_PHI, UINT, FIRST + 7, A, FIRST, FIRST + 8, next));
    refuse(&m); /* C is true */
    /* The condition holds in the first iteration, but may change later. */
    m = make_loop(true, FIRST + 9);
    result = specialize(&m, 0, 1, 0);
    assert_int_equal(count_of(&result, CODE_BRANCH_CONDITIONAL), 1);
    m = make_loop(false, FIRST + 9);
    result = specialize(&m, 0, 1, 0);
    assert_int_equal(count_of(&result, CODE_BRANCH_CONDITIONAL), 0);
}

/* A loop of one block: its phi has the initial value in the first iteration only. */
static void test_loop_of_one_block(void **state)
{
    (void)state;
    const uint32_t header = FIRST + 1, end = FIRST + 2, value = FIRST + 3, sum = FIRST + 4,
                   yes = FIRST + 5, last = FIRST + 6;
    struct module m = begin(0);
    begin_function(&m, MAIN, FIRST);
    OP(&m, CODE_BRANCH, header);
    OP(&m, OP_LABEL, header);
    OP(&m, CODE_PHI, UINT, value, A, FIRST, sum, header);
    OP(&m, 128, UINT, sum, value, A);       /* OpIAdd */
    OP(&m, 176, BOOL, FIRST + 7, value, B); /* OpULessThan */
    OP(&m, OP_LOOP_MERGE, end, header, 0);
    OP(&m, CODE_BRANCH_CONDITIONAL, FIRST + 7, header, end);
    OP(&m, OP_LABEL, end);
    OP(&m, OP_SELECTION_MERGE, last, 0);
    OP(&m, CODE_BRANCH_CONDITIONAL, FIRST + 7, yes, last);
    OP(&m, OP_LABEL, yes);
    OP(&m, CODE_BRANCH, last);
    OP(&m, OP_LABEL, last);
    end_function(&m);
    struct module result = specialize(&m, 1, 5, 0);
    assert_true(HAS(&result, CODE_PHI, UINT, value, A, FIRST, sum, header));
    assert_int_equal(count_of(&result, CODE_BRANCH_CONDITIONAL), 2);
}

/* Operands of removed instructions keep their names and decorations. */
static void test_operands_of_removed(void **state)
{
    (void)state;
    const uint32_t constant = FIRST, no = FIRST + 2, end = FIRST + 3, local = FIRST + 4;
    for (int i = 0; i < 2; i++) {
        struct module m = begin(i ? local : constant);
        OP(&m, OP_CONSTANT, UINT, constant, 2);
        begin_function(&m, MAIN, FIRST + 1);
        OP(&m, 128, UINT, local, A, B);
        OP(&m, OP_SELECTION_MERGE, end, 0);
        OP(&m, CODE_BRANCH_CONDITIONAL, C, end, no);
        OP(&m, OP_LABEL, no);
        OP(&m, 99, A, i ? local : constant, B); /* OpImageWrite, which has no result */
        OP(&m, CODE_BRANCH, end);
        OP(&m, OP_LABEL, end);
        end_function(&m);
        struct module result = specialize(&m, 0, 0, 1);
        assert_false(HAS(&result, OP_LABEL, no));
        assert_int_equal(count_of(&result, OP_DECORATE), 1);
    }
}

/* ---- refused modules ----------------------------------------------------------------------- */

static void test_damaged(void **state)
{
    (void)state;
    const struct module good = make_selection(false);
    struct module m = good;
    m.words[0]++;
    refuse(&m);
    m = good;
    m.words[3] = 10000; /* bound of ids */
    refuse(&m);
    m = good;
    m.count = SPIRV_HEADER;
    refuse(&m);
    m = good;
    m.words[m.count - 1] = OP_FUNCTION_END; /* an instruction of length 0 */
    refuse(&m);
    m = good;
    m.words[m.count - 1] += 1u << 16; /* an instruction beyond the end */
    refuse(&m);
    m = begin(0);
    OP(&m, 73, FIRST); /* OpDecorationGroup */
    begin_function(&m, MAIN, FIRST + 1);
    end_function(&m);
    refuse(&m);
    m = begin(0);
    OP(&m, OP_DECORATE, FIRST, 1, 9);
    OP(&m, CODE_SPEC_CONSTANT, FLOAT, FIRST, 1, 2); /* 64 bits */
    begin_function(&m, MAIN, FIRST + 1);
    end_function(&m);
    refuse(&m);
    m = begin(0); /* a jump back without a loop */
    begin_function(&m, MAIN, FIRST);
    OP(&m, CODE_BRANCH, FIRST + 2);
    OP(&m, OP_LABEL, FIRST + 1);
    OP(&m, OP_RETURN);
    OP(&m, OP_LABEL, FIRST + 2);
    OP(&m, CODE_BRANCH, FIRST + 1);
    OP(&m, OP_FUNCTION_END);
    refuse(&m);
    m = begin(0); /* a switch over 64 bits, whose literals have two words */
    begin_function(&m, MAIN, FIRST);
    OP(&m, OP_UNDEF, UINT, FIRST + 1);
    OP(&m, OP_SELECTION_MERGE, FIRST + 2, 0);
    OP(&m, CODE_SWITCH, FIRST + 1, FIRST + 2, 5, 0, FIRST + 3);
    OP(&m, OP_LABEL, FIRST + 3);
    OP(&m, CODE_BRANCH, FIRST + 2);
    OP(&m, OP_LABEL, FIRST + 2);
    end_function(&m);
    refuse(&m);
    m = begin(0); /* no function */
    refuse(&m);
}

/* ---- the library's shaders ------------------------------------------------------------------- */

#define MOST_IDS 65536u

/* Marks defined ids: bit 0 for labels and functions, bit 1 for everything else. */
static void find_definitions(const uint32_t *words, size_t count, uint8_t *defined)
{
    for (size_t at = SPIRV_HEADER; at < count; at += words[at] >> 16) {
        uint32_t code = words[at] & 0xffffu, length = words[at] >> 16;
        if (code == OP_LABEL)
            defined[words[at + 1]] |= 1;
        else if (code == OP_FUNCTION)
            defined[words[at + 2]] |= 1;
        else if ((code >= OP_TYPE_VOID && code <= OP_TYPE_FUNCTION) && length > 1)
            defined[words[at + 1]] |= 2;
        else if (length > 2 && words[at + 2] < words[3])
            defined[words[at + 2]] |= 2;
    }
}

/* Checks that branch targets and named ids exist, and that no specialisation constant remains. */
static void check_module(const char *name, const uint32_t *words, size_t count)
{
    static uint8_t defined[MOST_IDS];
    memset(defined, 0, sizeof defined);
    assert_true(words[3] <= MOST_IDS);
    find_definitions(words, count, defined);
    bool open = false;
    for (size_t at = SPIRV_HEADER; at < count; at += words[at] >> 16) {
        const uint32_t *word = words + at;
        uint32_t code = word[0] & 0xffffu;
        bool ends = code == OP_RETURN || code == OP_RETURN + 1 ||
                    (code >= CODE_BRANCH && code <= CODE_SWITCH) || code == CODE_UNREACHABLE;
        bool fine = true;
        if (code == OP_LABEL || code == OP_FUNCTION_END)
            fine = !open;
        else if (code == OP_NAME || code == OP_DECORATE || code == OP_MEMBER_DECORATE)
            fine = defined[word[1]] && (code != OP_DECORATE || word[2] != 1);
        else if (code == OP_FUNCTION_CALL)
            fine = (defined[word[3]] & 1);
        else if (code == OP_SELECTION_MERGE || code == CODE_BRANCH)
            fine = (defined[word[1]] & 1);
        else if (code == OP_LOOP_MERGE || code == CODE_SWITCH)
            fine = (defined[word[2]] & 1) && (code == CODE_SWITCH || (defined[word[1]] & 1));
        else if (code == CODE_BRANCH_CONDITIONAL)
            fine = (defined[word[2]] & 1) && (defined[word[3]] & 1);
        else if (code == CODE_PHI)
            fine = word[0] >> 16 >= 5 && (defined[word[4]] & 1);
        open = code == OP_LABEL || (open && !ends);
        if (!fine)
            fail_msg("%s: instruction %u at word %zu of %zu", name, code, at, count);
    }
}

static void test_all_shaders(void **state)
{
    (void)state;
    /* Constants of the default model on a CPU, and of another on a GPU with every feature. */
    static const uint32_t given[][44] = {
        {8, 8, 16, 2, 64, 1, 16, 4, 64, 2, 128, 1, 0, 0, 0, 1, 72, 1, 64, 32, 1, 0,
         0, 2, 0,  1, 0,  0, 0,  0, 0,  0, 0,   1, 1, 0, 0, 0, 0,  0, 1,  0,  0, 0},
        {32, 256, 16, 2, 64, 2, 16, 4, 64, 4, 128, 4, 1, 1, 1, 1, 72, 0, 64, 64, 2, 1,
         1,  2,   1,  0, 1,  1, 64, 3, 2,  2, 1,   2, 2, 1, 0, 1, 1,  1, 2,  1,  1, 1},
    };
    size_t before = 0, after = 0;
    for (size_t i = 0; i < gpu_shader_count; i++)
        for (size_t k = 0; k < BASE_COUNT(given); k++) {
            const struct gpu_shader *source = &gpu_shaders[i];
            assert_int_equal(gpu_shader_unpack(source), VKN_OK);
            size_t count = gpu_shader_word_count(source);
            before += count;
            uint32_t *words = gpu_specialize(source->words, &count, given[k], BASE_COUNT(given[k]));
            if (!words)
                fail_msg("%s: not specialised", source->name);
            check_module(source->name, words, count);
            after += count;
            /* Specialising again removes nothing. */
            size_t again = count;
            uint32_t *twice = gpu_specialize(words, &again, NULL, 0);
            assert_non_null(twice);
            assert_int_equal(again, count);
            assert_memory_equal(twice, words, count * sizeof *words);
            free(words);
            free(twice);
        }
    assert_true(after < before / 50 * 43); /* 0.851, 2026-11-27 */
}

static uint32_t find_function(const uint32_t *words, size_t count, const char *name)
{
    for (size_t at = SPIRV_HEADER; at < count; at += words[at] >> 16)
        if ((words[at] & 0xffffu) == OP_NAME &&
            strncmp((const char *)&words[at + 2], name, strlen(name)) == 0)
            return words[at + 1];
    fail_msg("no function %s", name);
    return 0;
}

/* Compiles a shader with function names, which embedded shaders lack; NULL if the build's compiler
 * lacks its matrices. The caller frees it. */
static uint32_t *compile_shader(const char *shader, size_t *count)
{
    const struct gpu_shader *source = gpu_shaders;
    while (source->name && strcmp(source->name, shader) != 0)
        source++;
    if (!source->name)
        return NULL;
    char *folder = base_path_join(getenv("VKNERF_SOURCE_DIR"), "shaders"), message[1024];
    uint32_t *words;
    assert_non_null(folder);
    if (!gpu_runtime_compile(folder, source, &words, count, message, sizeof message))
        fail_msg("%s: %s", shader, message);
    free(folder);
    return words;
}

/* Counts the calls of layer_at() per layer of the MLPs after specialisation. */
static void count_layers(const uint32_t *shader, size_t count, uint32_t density_layers,
                         uint32_t color_layers, uint32_t times[MAX_LAYERS])
{
    static uint32_t constant[MOST_IDS], stored[MOST_IDS];
    uint32_t given[44] = {[0] = 32,  [1] = 128,
                          [2] = 16,  [3] = 2,
                          [4] = 16,  [5] = density_layers,
                          [6] = 16,  [7] = 4,
                          [8] = 16,  [9] = color_layers,
                          [16] = 72, [17] = 1,
                          [18] = 64, [19] = 64,
                          [20] = 1};
    memset(times, 0, MAX_LAYERS * sizeof *times);
    uint32_t *words = gpu_specialize(shader, &count, given, BASE_COUNT(given));
    assert_non_null(words);
    uint32_t layer_at = find_function(words, count, "layer_at(");
    for (size_t at = SPIRV_HEADER; at < count; at += words[at] >> 16) {
        const uint32_t *word = words + at;
        uint32_t code = word[0] & 0xffffu;
        if (code == OP_CONSTANT)
            constant[word[2]] = word[3];
        else if (code == OP_STORE)
            stored[word[1]] = word[2];
        else if (code == OP_FUNCTION_CALL && word[3] == layer_at) {
            assert_in_range(constant[stored[word[4]]], 0, MAX_LAYERS - 1);
            times[constant[stored[word[4]]]]++;
        }
    }
    free(words);
}

/* Forward, each layer of the model is called once. Backward, all but the last are recomputed, all
 * have gradients, and again a call where a workgroup sums gradients at its end. */
static void test_layers(void **state)
{
    (void)state;
    static const struct {
        const char *shader;
        uint32_t times, last; /* per layer; of the last layer */
    } shaders[] = {
        {"field_forward_fp16", 1, 1},        {"field_forward_fp32_tiled", 1, 1},
        {"field_forward_16x16x16", 1, 1},    {"field_backward_fp16", 3, 2},
        {"field_backward_fp32_tiled", 3, 2}, {"field_backward_16x16x16", 3, 2},
    };
    static const uint32_t hidden[][2] = {{1, 2}, {1, 1}, {7, 7}, {3, 1}, {1, 13}};
    for (size_t i = 0; i < BASE_COUNT(shaders); i++) {
        const char *name = shaders[i].shader;
        size_t count;
        uint32_t *shader = compile_shader(name, &count);
        for (size_t k = 0; shader && k < BASE_COUNT(hidden); k++) {
            uint32_t times[MAX_LAYERS], layers = hidden[k][0] + hidden[k][1] + 2;
            count_layers(shader, count, hidden[k][0], hidden[k][1], times);
            for (uint32_t n = 0; n < MAX_LAYERS; n++) {
                uint32_t expected = n >= layers       ? 0
                                    : n == layers - 1 ? shaders[i].last
                                                      : shaders[i].times;
                if (times[n] != expected)
                    fail_msg("%s of %u layers: layer %u %u times", name, layers, n, times[n]);
            }
        }
        free(shader);
    }
}

/* Packed f16 atomics, which no CPU device has, are as wide as a grid entry's features. */
static void test_packed_sums(void **state)
{
    (void)state;
    static uint32_t width[MOST_IDS]; /* per vector type */
    size_t length;
    uint32_t *shader = compile_shader("scatter_gradients_f16", &length);
    for (uint32_t features = 2; shader && features <= 4; features += 2) {
        const uint32_t given[] = {32, 64, 4, features};
        size_t count = length, atomics = 0;
        uint32_t *words = gpu_specialize(shader, &count, given, BASE_COUNT(given));
        assert_non_null(words);
        for (size_t at = SPIRV_HEADER; at < count; at += words[at] >> 16) {
            if ((words[at] & 0xffffu) == OP_TYPE_VECTOR) {
                width[words[at + 1]] = words[at + 3];
            } else if ((words[at] & 0xffffu) == CODE_ATOMIC_ADD) {
                assert_int_equal(width[words[at + 1]], features);
                atomics++;
            }
        }
        assert_true(atomics > 0);
        free(words);
    }
    free(shader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_selection),
        cmocka_unit_test(test_phi),
        cmocka_unit_test(test_switch),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_loop_of_one_block),
        cmocka_unit_test(test_operands_of_removed),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_all_shaders),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_packed_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
