/* The shader programs of shaders/shaders.txt: embedded by the build, or compiled at run time; and
 * programs with a snippet of a user's, which always are. */
#ifndef GPU_SHADERS_H
#define GPU_SHADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "gpu/gpu.h"

struct gpu_shader {
    const char *name;
    const char *source;          /* file relative to shaders/ */
    const char *defines;         /* "NAME=VALUE NAME ..."; may be empty */
    const unsigned char *packed; /* SPIR-V as cmake/compile_shaders.c packs it; NULL of a snippet
                                  */
    const unsigned char *end;    /* behind its last byte */
    const char *environment;     /* target environment, "vulkan1.2" */
    const struct gpu_snippet *snippet; /* else NULL */
    const uint32_t *words; /* SPIR-V, once gpu_snippet_compile or gpu_shader_unpack has made it */
    size_t count;
};

/* Returns the program, whose creation tests note (tests/trace.c) in builds with VKNERF_TRACE. */
void gpu_trace_shader(const char *name, const char *source);
static inline const struct gpu_shader *gpu_traced(const struct gpu_shader *shader)
{
#ifdef VKNERF_TRACE
    gpu_trace_shader(shader->name, shader->source);
#endif
    return shader;
}

/* In the order of the manifest; programs that the GLSL compiler of the build cannot compile are
 * absent. */
extern struct gpu_shader gpu_shaders[];
extern const size_t gpu_shader_count;

/* Makes further programs known to this process, which live as long: those of a field that is not
 * the project's, or of a test. */
void gpu_add_shaders(const struct gpu_shader *sources, size_t count);

/* Returns how many words of SPIR-V the program has. */
size_t gpu_shader_word_count(const struct gpu_shader *source);
/* Unpacks the SPIR-V, unless it is there: `words` stay until the process ends. VKN_ERROR: it is
 * damaged, or no memory. Does nothing to snippets. Any thread may call, and has to before it reads
 * `words`. */
vkn_status gpu_shader_unpack(const struct gpu_shader *source);

/* ---- compiling at run time ------------------------------------------------------------------- */

/* What an #include stands for, both freed by who asked: its name in messages, its text. */
struct gpu_included {
    char *name, *text;
    size_t size; /* bytes of the text */
};
/* Fills *included, or records why there is none; what it has allocated is freed all the same. */
typedef vkn_status gpu_include_function(const void *context, const char *requested,
                                        const char *requesting, struct gpu_included *included);

struct gpu_glsl {
    const char *name; /* of the file, in messages */
    const char *text;
    size_t size;
    const char *defines, *environment; /* as of struct gpu_shader */
    gpu_include_function *include;
    const void *context;
};

/* Compiles a compute shader by shaderc. On success *words holds *word_count words of SPIR-V that
 * the caller frees. On failure returns false with a message in `message` (at most message_size
 * bytes, zero included): "FILE:LINE: error: ...", or that shaderc is not installed. May be called
 * from several threads. */
bool gpu_compile(const struct gpu_glsl *glsl, uint32_t **words, size_t *word_count, char *message,
                 size_t message_size);

/* The same of the preprocessor alone: *text, zero-terminated, is the caller's; its lines are
 * numbered as those of the source. */
bool gpu_preprocess(const struct gpu_glsl *glsl, char **text, char *message, size_t message_size);
/* Waits until no thread is in the compiler, and keeps all out of it until gpu_compiler_unlock. */
void gpu_compiler_lock(void);
void gpu_compiler_unlock(void);

/* The same of a program from the GLSL in `shader_dir`, for those who tune kernels. */
bool gpu_runtime_compile(const char *shader_dir, const struct gpu_shader *shader, uint32_t **words,
                         size_t *word_count, char *message, size_t message_size);

/* ---- snippets -------------------------------------------------------------------------------- */

/* The sources that templates and snippets may include, by their path in shaders/. */
struct gpu_shader_text {
    const char *name, *text, *end;
};
extern const struct gpu_shader_text gpu_shader_texts[];
extern const size_t gpu_shader_text_count;

/* The GLSL of a snippet without its comments, macros and other directives, or why there is none:
 * VKN_BAD_INPUT "FILE:LINE: ...". The caller frees *text. */
vkn_status gpu_snippet_preprocess(const struct gpu_snippet *snippet, const char *defines,
                                  char **text);

/* Records the first line of the compiler's message, which is cut there, as that of a field: with
 * the field's name in front unless it has it. Returns VKN_BAD_INPUT. */
vkn_status gpu_snippet_fail(const char *file, char *message);

/* Runs work(context, result) in a child process, so that whatever it does ends: within
 * gpu_sandbox's limits of time and memory (of tests, shorter), with a result of at most
 * GPU_SANDBOX_RESULT bytes. `result` is then the child's; the caller frees its data. VKN_BAD_INPUT
 * or what `work` returns, with its message; the messages of this function begin with `name`. Any
 * thread may call. */
struct gpu_sandbox {
    unsigned seconds;
    uint64_t memory; /* bytes, beside what this process has */
    double stall;    /* seconds without processor time, after which another child is begun */
};
extern struct gpu_sandbox gpu_sandbox;
#define GPU_SANDBOX_RESULT ((size_t)4 << 20)
vkn_status gpu_run_sandboxed(const char *name,
                             vkn_status (*work)(const void *context, struct base_text *result),
                             const void *context, struct base_text *result);

/* The program of gpu_add_snippet that has the name; NULL: there is none. */
const struct gpu_shader *gpu_snippet_find(const char *name);
/* Compiles it, unless it is. VKN_BAD_INPUT has the compiler's message, with the snippet's line. */
vkn_status gpu_snippet_compile(const struct gpu_shader *source);
/* A copy in which no loop is unrolled that does not ask for it: compilers of CPU devices take
 * minutes for what they make of nested loops. NULL on no memory. The caller frees it. */
uint32_t *gpu_disable_unrolling(const uint32_t *words, size_t word_count);

/* ---- specialize.c ---------------------------------------------------------------------------- */

/* A copy of the module with given[n] in the place of the specialisation constant of number n, or
 * with its default from given_count on, and without the code that these rule out; *count becomes
 * its words. NULL: no memory, or a module that is unlike what compilers of GLSL write, which the
 * driver specialises. The caller frees it. */
uint32_t *gpu_specialize(const uint32_t *words, size_t *count, const uint32_t *given,
                         uint32_t given_count);

#endif
