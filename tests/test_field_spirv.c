/* Tests, without a device, what GLSL fields may contain: each hostile field is refused with one
 * line, and accepted fields have their indices clamped to their arrays. tests/test_field_glsl.c
 * runs fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <vknerf/field.h>

#include "field/glsl.h"
#include "gpu/shaders.h"
#include "gpu/snippet_check.h"
#include "skips.h"

#define HEAD "#pragma field parameters 64\n#pragma field features 2\n"
/* Line 4 is the first line of `globals`. */
#define FIELD(globals, statements)                                                                \
    HEAD "// of the test\n" globals "\nvoid encode(vec3 position, uint first)\n{\n"               \
         "    float a = parameter(first), x = position.x;\n    uint k = uint(x * 1e9);\n    int " \
         "j = -int(k);\n"                                                                         \
         "    " statements "\n    put_feature(0u, a);\n    put_feature(1u, x);\n}\n"              \
         "void encode_backward(vec3 position, uint first)\n{\n    add_gradient(first, "           \
         "feature_gradient(0u));\n}\n"

static bool have_shaderc;

#define NEEDS_SHADERC()                               \
    do {                                              \
        if (!have_shaderc)                            \
            skip_because("shaderc is not installed"); \
    } while (0)

/* Compiles the shaders of a field that training on a CPU uses. */
static vkn_status compile(const char *text, const struct gpu_shader **check)
{
    struct vkn_config config = {0};
    if (vkn_field_register(&(struct vkn_field){.text = text, .file = "bad.glsl"}, &config) !=
        VKN_OK)
        return VKN_BAD_INPUT;
    const struct glsl_field *field = glsl_find(&config);
    char scatter[64];
    snprintf(scatter, sizeof scatter, "%s_fixed", field->scatter);
    const char *const names[] = {field->check, field->encode, scatter};
    for (size_t i = 0; i < BASE_COUNT(names); i++) {
        const struct gpu_shader *source = gpu_snippet_find(names[i]);
        assert_non_null(source);
        if (i == 0)
            *check = source;
        vkn_status status = gpu_snippet_compile(source);
        if (status != VKN_OK)
            return status;
    }
    return VKN_OK;
}

struct fault {
    const char *text, *message;
};

static void refuse(const struct fault *faults, size_t count)
{
    unsigned wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const struct gpu_shader *check = NULL;
        vkn_status status = compile(faults[i].text, &check);
        const char *message = status == VKN_OK ? "taken" : vkn_last_error();
        if (status != VKN_BAD_INPUT || strncmp(message, "bad.glsl", 8) != 0 ||
            strchr(message, '\n') || !strstr(message, faults[i].message))
            print_error("%u. field %u (%.200s): %s instead of %s\n", ++wrong, (unsigned)i,
                        faults[i].text + strlen(HEAD), message, faults[i].message);
    }
    assert_int_equal(wrong, 0);
}

/* ---- forbidden GLSL -------------------------------------------------------------------------- */

static void test_text(void **state)
{
    static const struct fault faults[] = {
        {FIELD("#include \"snippet\"", ""),
         "bad.glsl:4: error: '#include' : a field has no #include"},
        {FIELD("#include <shared/common.glsl>", ""), "bad.glsl:4: error: '#include' : "},
        {FIELD("#extension GL_EXT_buffer_reference : require", ""),
         "bad.glsl:4: a field has no #extension GL_EXT_buffer_reference"},
        {FIELD("#ext\\\nension all : warn", ""), "a field has no #extension all"},
        {FIELD("#/**/extension /**/ GL_EXT_debug_printf : enable", ""),
         "no #extension GL_EXT_debug_printf"},
        {FIELD("#define H #\nH extension GL_EXT_ray_query : require", ""),
         "bad.glsl:5: error: '#' : "},
        {FIELD("#define H #\nH define min(a, b) (a)", ""), "bad.glsl:5: error: '#' : "},
        {FIELD("\n\\\n\\define a b", ""), "bad.glsl:"},
        {FIELD("#version 450", ""), "'#version' : must occur first in shader"},
        {FIELD("#line 7 \"other.glsl\"\nnonsense;", ""), "bad.glsl:7: error: "},
        {FIELD("void main() {}", ""), "it conflicts with vknerf's GLSL"},
        {FIELD("float state;", ""), "it conflicts with vknerf's GLSL"},
        {FIELD("const float x = config.aabb_scale;", ""),
         "bad.glsl:4: error: 'config' : undeclared identifier"},
        {FIELD("float r(float x);\nfloat q(float x) { return r(x); }\nfloat r(float x) { return "
               "q(x); }",
               "a += r(x);"),
         "ecursi"},
        {FIELD("", "a += no_such(x);"),
         "bad.glsl:10: error: 'no_such' : no matching overloaded function"},
    };
    (void)state;
    NEEDS_SHADERC();
    refuse(faults, BASE_COUNT(faults));
}

static void test_forbidden(void **state)
{
    static const struct fault faults[] = {
        {FIELD("layout(set = 0, binding = 7, std430) buffer B { float b[]; };", "b[k] = a;"),
         "a field only computes"},
        {FIELD("layout(set = 0, binding = 7, std430) buffer B { float b[]; };", ""),
         "a field only computes"},
        {FIELD("layout(set = 0, binding = 7) uniform B { float b; };", "a += b;"),
         "a field only computes"},
        {FIELD("layout(push_constant) uniform B { float b; };", "a += b;"), ""},
        {FIELD("layout(constant_id = 5) const float b = 1.0;", "a += b;"),
         "it may have no constant_id"},
        {FIELD("layout(set = 0, binding = 7, rgba8) uniform image2D b;",
               "a += imageLoad(b, ivec2(0)).x;"),
         "a field only computes"},
        {FIELD("layout(set = 0, binding = 7) uniform sampler2D b;",
               "a += textureLod(b, position.xy, 0.0).x;"),
         "a field only computes"},
        {FIELD("shared float b[64];", "b[k % 64u] = a;"), "a field only computes"},
        {FIELD("", "barrier();"), "barriers"},
        {FIELD("", "memoryBarrier();"), "barriers"},
        {FIELD("shared uint b;", "atomicAdd(b, 1u);"), "a field only computes"},
        {FIELD("", "a += float(gl_GlobalInvocationID.x);"),
         "it may not name gl_GlobalInvocationID"},
        {FIELD("", "a += float(gl_NumWorkGroups.x);"), "a field only computes"},
        {FIELD("layout(local_size_x = 2) in;", ""), ""},
        {FIELD("layout(local_size_x_id = 9) in;", ""), ""},
        {FIELD("", "double b = double(x); a += float(b);"), "64-bit floats"},
        {FIELD("uint min(uint a, uint b) { return a; }", ""), "overloaded functions"},
        {FIELD("uint floatBitsToUint(float a) { return 0u; }", ""),
         "it changes vknerf's own function compare"},
        {FIELD("struct Config { uint param_count; };", ""), "it conflicts with vknerf's GLSL"},
        {FIELD("uvec3 pcg3d(uvec3 v);", "a += float(pcg3d(uvec3(k)).x);"), "it may not name pcg3d"},
        {FIELD("float random_gradient(uint i);", "a += random_gradient(k);"),
         "it may not name random_gradient"},
        {FIELD("void check_position();", "if (x > 2.0) check_position();"), ""},
        {FIELD("uint point;", ""), "it conflicts with vknerf's GLSL"},
        {FIELD("#pragma use_vulkan_memory_model\n#pragma use_storage_buffer\nbuffer B { uint b; };",
               ""),
         ""},
        {FIELD("coherent layout(row_major) buffer;\nlayout(std430, column_major) "
               "uniform;\nlayout(binding = 3) buffer C { mat4 m; };",
               ""),
         ""},
    };
    (void)state;
    NEEDS_SHADERC();
    refuse(faults, BASE_COUNT(faults));
}

/* ---- size limits ----------------------------------------------------------------------------- */

/* Returns a field: `first`, then `format` with 1, 0, 0 to count, count - 1, count - 1, then
 * `globals` and functions. */
static char *repeat(const char *first, const char *format, unsigned count, const char *globals,
                    const char *statements)
{
    struct base_text text = {0};
    base_text_add(&text, HEAD "%s\n", first);
    for (unsigned i = 0; i < count; i++)
        /* The format is this test's: NOLINTNEXTLINE(clang-diagnostic-format-nonliteral) */
        base_text_add(&text, format, i + 1, i, i);
    base_text_add(&text,
                  "%s\nvoid encode(vec3 position, uint first)\n{\n    float a = parameter(first), "
                  "x = position.x;\n"
                  "    %s\n    put_feature(0u, a);\n    put_feature(1u, x);\n}\n"
                  "void encode_backward(vec3 position, uint first)\n{\n}\n",
                  globals, statements);
    assert_false(text.failed);
    return text.data;
}

static void refuse_text(char *text, const char *message)
{
    refuse(&(struct fault){text, message}, 1);
    free(text);
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void test_size(void **state)
{
    static const struct fault faults[] = {
        {FIELD("", "float b[1000000000]; b[k] = x; a += b[j];"), "its variables take 4000000"},
        {FIELD("", "float b[1073741824]; b[k] = x; a += b[j];"), "its variables take 4294967295"},
        {FIELD("float b[5000];", "b[k] = x; a += b[j];"), "its variables take 2"},
        {FIELD("struct S { mat4 m[64]; };", "S s[8]; s[k].m[k] = mat4(x); a += s[j].m[j][k][j];"),
         "its variables take 3"},
        {FIELD("#define A(b) b b b b b b b b\n#define B(b) A(A(A(b)))", "B(A(a += sin(a);))"),
         "it is too long for drivers' compilers"},
        {FIELD("#define A(b) b b b b b b b b\n#define B(b) A(A(A(b)))",
               "B(a += parameter(first);)"), /* the library's code counts too */
         "it is too long for drivers' compilers"},
    };
    (void)state;
    NEEDS_SHADERC();
    refuse(faults, BASE_COUNT(faults));
    refuse_text(repeat("float f0(float x) { return sin(x); }",
                       "float f%u(float x) { return f%u(x) + f%u(2.0 * x); }\n", 25, "",
                       "a += f25(x);"),
                "at most 16384 are possible");
    refuse_text(repeat("float f0(float x) { return x; }",
                       "float f%u(float x) { return f%u(x); } // %u\n", 100, "", "a += f100(x);"),
                "functions call each other more than 32 deep");
    refuse_text(repeat("struct S0 { float a; };", "struct S%u { S%u a; }; // %u\n", 50, "S50 s;",
                       "a += x;"),
                "structures and arrays are nested more than 32 deep");
    refuse_text(repeat("struct S0 { float a; };", "struct S%u { S%u a, b; }; // %u\n", 14, "S14 s;",
                       "a += x;"),
                "its variables take 65");
    refuse_text(repeat("void f(inout float a) {", "if (a > %u.5) { if (a > %u.25) { // %u\n", 20,
                       "}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}} a += 1.0; }", "f(a);"),
                "");
}

/* Hangs in the first two children, as if on a lock that another thread held at fork(). */
static vkn_status hang_in_two_children(const void *context, struct base_text *result)
{
    atomic_uint *children = *(atomic_uint *const *)context;
    if (atomic_fetch_add(children, 1) < 2)
        pause();
    base_text_add(result, "done");
    return VKN_OK;
}

static void test_stalled_children(void **state)
{
    const struct gpu_sandbox limits = gpu_sandbox;
    atomic_uint *children =
        mmap(NULL, sizeof *children, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct base_text result = {0};
    (void)state;
    assert_ptr_not_equal(children, MAP_FAILED);
    gpu_sandbox.stall = 0.1;
    assert_int_equal(gpu_run_sandboxed("stalled", hang_in_two_children, &children, &result),
                     VKN_OK);
    assert_memory_equal(result.data, "done", result.size);
    assert_int_equal(atomic_load(children), 3);
    gpu_sandbox = limits;
    free(result.data);
    munmap(children, sizeof *children);
}

/* The compiler would need endless time or memory for these fields. */
static void test_limits(void **state)
{
    const struct gpu_sandbox limits = gpu_sandbox;
    (void)state;
    NEEDS_SHADERC();
    gpu_sandbox.seconds = 1;
    refuse_text(repeat("#define A0 1.0 + 1.0", "\n#define A%u A%u + A%u", 40, "", "a += A40;"),
                "bad.glsl: compiling takes more than 1 s");
    gpu_sandbox = limits;
    gpu_sandbox.memory = (uint64_t)64 << 20;
    refuse_text(repeat("struct S0 { vec4 a; }; const S0 s0 = S0(vec4(1.0));",
                       "struct S%1$u { S%2$u a, b; }; const S%1$u s%1$u = S%1$u(s%2$u, s%2$u);\n",
                       20, "", ""),
                "bad.glsl: compiling takes more than 64 MiB of memory");
    gpu_sandbox = limits;
    refuse_text(repeat("float deep(float x) { return x", " + x", 30000, "; }", "a += deep(x);"),
                "bad.glsl: the GLSL compiler crashed (");
    refuse_text(repeat("float deep(float x) { return ", "(", 30000, "x; }", "a += deep(x);"),
                "memory exhausted");
}

/* ---- accepted GLSL --------------------------------------------------------------------------- */

static uint32_t count_code(const struct gpu_shader *source, uint32_t code)
{
    uint32_t count = 0;
    for (const uint32_t *word = source->words + SPIRV_HEADER; word < source->words + source->count;
         word += *word >> 16)
        count += (*word & 0xffffu) == code;
    return count;
}

/* Counts the indices that are clamped to a constant, and adds those constants to *sum. */
static uint32_t count_limits(const struct gpu_shader *source, uint32_t *sum)
{
    struct spirv module;
    uint32_t count = 0;
    *sum = 0;
    assert_int_equal(spirv_open("test", source->words, source->count, &module), VKN_OK);
    for (const uint32_t *word = source->words + SPIRV_HEADER; word < source->words + source->count;
         word += *word >> 16) {
        if ((*word & 0xffffu) != OP_EXT_INST || word[4] != GLSL_U_MIN ||
            spirv_code_of(&module, word[6]) != OP_CONSTANT)
            continue;
        count++;
        *sum += module.words[module.definition[word[6]] + 3];
    }
    spirv_close(&module);
    return count;
}

static void test_accepted(void **state)
{
    static const char *const fields[] = {
        FIELD("", ""),
        /* Names that are macros or local in the library, and globals with initial values. */
        FIELD("#define min(a, b) (a)\n#define REAL float\n#define FEATURES 3\nconst uint N = "
              "4u;\nREAL g = 1.0;\n"
              "float t[3] = float[](1.0, 2.0, 3.0);\nfloat h(float x) { return g += x > 0.5 ? "
              "sin(x) : g; }\n"
              "float n = h(2.0);",
              "a += min(t[k % 3u], 1.0) * n + h(a);"),
        FIELD("#extension GL_EXT_control_flow_attributes : require\nstruct S { vec3 v; mat3 m; };",
              "S s = S(position, mat3(x)); [[unroll]] for (int i = 0; i < 4; i++) s.m[i % 3] *= "
              "s.v.y;\n"
              "    precise float b = s.m[1][2] * x + a; a += b + modf(x, b) + float(frexp(x, j));\n"
              "    switch (k & 3u) { case 0u: a += 1.0; break; default: a += determinant(s.m); }\n"
              "    do { a *= 0.5; if (a < 0.1) continue; } while (a > 1.0); uvec2 c; c.x = "
              "uaddCarry(k, k, c.y);"
              "    umulExtended(k, k, c.x, c.y); a += float(c.x + bitfieldReverse(c.y)) + dot(s.v, "
              "s.m * s.v);"),
    };
    (void)state;
    NEEDS_SHADERC();
    for (size_t i = 0; i < BASE_COUNT(fields); i++) {
        const struct gpu_shader *check = NULL;
        if (compile(fields[i], &check) != VKN_OK)
            fail_msg("field %zu: %s", i, vkn_last_error());
    }
}

/* Each non-constant index is clamped; loops lose their unroll hints. */
static void test_indices(void **state)
{
    const struct gpu_shader *none = NULL, *all = NULL;
    (void)state;
    NEEDS_SHADERC();
    assert_int_equal(compile(FIELD("", "// none"), &none), VKN_OK);
    assert_int_equal(
        compile(FIELD("struct S { float f[3]; vec4 v; mat3 m; };\nfloat g[5];",
                      "S s[4]; g[k] = x; s[j].f[k] = g[j]; s[2].v[k] = x; s[3].m[j][k] = x;\n"
                      "    [[unroll]] for (int i = 0; i < 9; i++) a += (s[1].v * x)[i];"),
                &all),
        VKN_OK);
    uint32_t limits = 0, before = 0, count = count_limits(none, &before);
    assert_int_equal(count_limits(all, &limits) - count, 8);
    assert_int_equal(limits - before, 4 + 3 + 2 + 4 + 3 + 2 + 2 + 3);
    assert_int_equal(count_code(all, OP_LOOP_MERGE) - count_code(none, OP_LOOP_MERGE), 1);
    for (const uint32_t *word = all->words + SPIRV_HEADER; word < all->words + all->count;
         word += *word >> 16)
        if ((*word & 0xffffu) == OP_LOOP_MERGE)
            assert_int_equal(word[3] & 1u, 0);
}

/* ---- the library's code ---------------------------------------------------------------------- */

/* Reads a corpus file: word count of the shader without snippet, that shader, the one with it. */
static uint32_t *read_shaders(const char *name, size_t *count)
{
    char *path = base_format("%s/tests/fuzz/corpus/spirv/%s", getenv("VKNERF_SOURCE_DIR"), name),
         *data = NULL;
    size_t size = 0;
    assert_int_equal(base_file_read(path, 1 << 20, &data, &size), VKN_OK);
    *count = size / sizeof(uint32_t);
    free(path);
    return (uint32_t *)(void *)data;
}

static void assert_refused(const uint32_t *plain, uint32_t count, uint32_t *user, uint32_t at)
{
    uint32_t *safe = NULL;
    size_t safe_count = 0;
    user[at] ^= 1u;
    if (gpu_snippet_check("bad", plain, count, user, count, &safe, &safe_count) == VKN_OK)
        fail_msg("a change of word %u of the library to %u is accepted", at, user[at]);
    user[at] ^= 1u;
}

/* The check notices every changed bit of the library's functions, layouts and modes. The shader is
 * small and has names of functions only. */
static void test_library(void **state)
{
    (void)state;
    size_t size = 0, safe_count = 0;
    uint32_t *data = read_shaders("plain", &size), count = *data, tried = 0;
    const uint32_t *plain = data + 1;
    uint32_t *user = malloc(count * sizeof *user), *safe = NULL;
    assert_non_null(user);
    memcpy(user, plain, count * sizeof *user);
    assert_int_equal(gpu_snippet_check("bad", plain, count, user, count, &safe, &safe_count),
                     VKN_OK);
    free(safe);
    struct spirv module;
    assert_int_equal(spirv_open("bad", plain, count, &module), VKN_OK);
    bool library = false;
    for (uint32_t at = SPIRV_HEADER; at < count; at += spirv_length(&module, at)) {
        uint32_t code = spirv_code(&module, at);
        char name[64] = "";
        if (code == OP_FUNCTION) {
            spirv_name(&module, plain[at + 2], name);
            library = name[0] && strncmp(name, "encode", 6) != 0; /* main has no name */
        }
        if (!library && code != OP_DECORATE && code != OP_MEMBER_DECORATE &&
            code != OP_EXECUTION_MODE)
            continue;
        for (uint32_t k = 0; k < spirv_length(&module, at); k++, tried++)
            assert_refused(plain, count, user, at + k);
    }
    assert_true(tried > 200);
    spirv_close(&module);
    free(user);
    free(data);
}

/* GLSL.std.450 instructions up to NClamp are accepted, an unknown number is refused. */
static void test_built_in(void **state)
{
    size_t words = 0, safe_count = 0;
    uint32_t *data = read_shaders("flow", &words), *user = data + 1 + *data, *safe = NULL;
    size_t count = words - 1 - *data, at = SPIRV_HEADER;
    (void)state;
    while ((user[at] & 0xffffu) != OP_EXT_INST)
        at += user[at] >> 16;
    user[at + 4] = 81; /* NClamp */
    assert_int_equal(gpu_snippet_check("bad", data + 1, *data, user, count, &safe, &safe_count),
                     VKN_OK);
    free(safe);
    user[at + 4] = 82;
    assert_int_equal(gpu_snippet_check("bad", data + 1, *data, user, count, &safe, &safe_count),
                     VKN_BAD_INPUT);
    free(data);
}

static int setup(void **state)
{
    const struct gpu_shader *check = NULL;
    (void)state;
    have_shaderc = compile(FIELD("", "// first"), &check) == VKN_OK ||
                   !strstr(vkn_last_error(), "shaderc, which");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_forbidden),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_indices),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_stalled_children),
        cmocka_unit_test(test_library),
        cmocka_unit_test(test_built_in),
    };
    int failed = cmocka_run_group_tests(tests, setup, NULL);
    return skips_status(failed, BASE_COUNT(tests));
}
