/* Declares the sources of shaders: shaders of shaders/shaders.txt, which the build embeds as SPIR-V
 * or which are compiled at run time, and templates with a user's snippet, always compiled at run
 * time. */
#ifndef GPU_SHADERS_H
#define GPU_SHADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "gpu/gpu.h"

/* A shader: a GLSL file with macro definitions. */
struct gpu_shader {
    const char *name;
    const char *source;                /* file relative to shaders/ */
    const char *defines;               /* "NAME=VALUE NAME ..."; may be empty */
    const unsigned char *packed;       /* SPIR-V by cmake/compile_shaders.c; NULL: has a snippet */
    const unsigned char *end;          /* end of `packed` */
    const char *environment;           /* "vulkan1.2" */
    const struct gpu_snippet *snippet; /* NULL: none */
    const uint32_t *words;             /* SPIR-V after gpu_snippet_compile or gpu_shader_unpack */
    size_t count;                      /* of words */
};

/* Returns the shader; in builds with VKNERF_TRACE, reports to tests/trace.c that a pipeline of the
 * shader is created. */
void gpu_trace_shader(const char *name, const char *source);
static inline const struct gpu_shader *gpu_traced(const struct gpu_shader *shader)
{
#ifdef VKNERF_TRACE
    gpu_trace_shader(shader->name, shader->source);
#endif
    return shader;
}

/* Shaders in the order of shaders/shaders.txt, without shaders that the build's GLSL compiler does
 * not support. */
extern struct gpu_shader gpu_shaders[];
extern const size_t gpu_shader_count;

/* Registers further shaders, of tests or of fields outside the library. `sources` must live until
 * the process ends. */
void gpu_add_shaders(const struct gpu_shader *sources, size_t count);

/* Returns the length of the SPIR-V in words. */
size_t gpu_shader_word_count(const struct gpu_shader *source);
/* Unpacks the SPIR-V into source->words, which live until the process ends; call before reading
 * the words. Does nothing if they are unpacked or the shader has a snippet. VKN_ERROR: damaged, or
 * out of memory. Callable from any thread. */
vkn_status gpu_shader_unpack(const struct gpu_shader *source);

/* ---- compiling at run time ------------------------------------------------------------------- */

/* An included file: its name in messages and its text; the caller of the include function frees
 * both. */
struct gpu_included {
    char *name, *text;
    size_t size; /* bytes of text */
};
/* Resolves an #include into *included, or records an error. The caller frees *included in either
 * case. */
typedef vkn_status gpu_include_function(const void *context, const char *requested,
                                        const char *requesting, struct gpu_included *included);

/* GLSL to compile. */
struct gpu_glsl {
    const char *name; /* file name in messages */
    const char *text;
    size_t size;
    const char *defines, *environment; /* as in struct gpu_shader */
    gpu_include_function *include;
    const void *context;
};

/* Compiles a compute shader by shaderc. On success *words holds *word_count words of SPIR-V, which
 * the caller frees. On failure returns false and writes "FILE:LINE: error: ..." (or that shaderc is
 * not installed) to `message`, at most message_size bytes. Callable from any thread. */
bool gpu_compile(const struct gpu_glsl *glsl, uint32_t **words, size_t *word_count, char *message,
                 size_t message_size);

/* As gpu_compile, but only preprocesses. *text is zero-terminated, keeps the source's line numbers,
 * and is freed by the caller. */
bool gpu_preprocess(const struct gpu_glsl *glsl, char **text, char *message, size_t message_size);
/* Waits until no thread is in the compiler, and keeps threads from entering it until
 * gpu_compiler_unlock. */
void gpu_compiler_lock(void);
void gpu_compiler_unlock(void);

/* Compiles the shader's file in the folder `shader_dir` as gpu_compile does, to tune kernels. */
bool gpu_runtime_compile(const char *shader_dir, const struct gpu_shader *shader, uint32_t **words,
                         size_t *word_count, char *message, size_t message_size);

/* ---- snippets -------------------------------------------------------------------------------- */

/* Sources that templates and snippets may include, by path in shaders/. */
struct gpu_shader_text {
    const char *name, *text, *end;
};
extern const struct gpu_shader_text gpu_shader_texts[];
extern const size_t gpu_shader_text_count;

/* Preprocesses a snippet: removes comments, macros and other directives. The caller frees *text.
 * VKN_BAD_INPUT: "FILE:LINE: ...". */
vkn_status gpu_snippet_preprocess(const struct gpu_snippet *snippet, const char *defines,
                                  char **text);

/* Records the first line of the compiler's message as an error of the field `file`, prefixed by the
 * file name unless the line has it. Cuts `message` after the line. Returns VKN_BAD_INPUT. */
vkn_status gpu_snippet_fail(const char *file, char *message);

/* Limits of gpu_run_sandboxed; tests set lower ones.
 *
 * gpu_run_sandboxed runs work(context, result) in a child process with limits of time, memory and
 * result size (GPU_SANDBOX_RESULT bytes), and copies the result; the caller frees result->data.
 * Returns the status and message of `work`, or VKN_BAD_INPUT if the child exceeds a limit or
 * crashes; messages of gpu_run_sandboxed itself begin with `name`. Callable from any thread. */
struct gpu_sandbox {
    unsigned seconds;
    uint64_t memory; /* bytes beyond the parent's address space */
    double stall;    /* seconds; a child that uses no processor time for so long is replaced */
};
extern struct gpu_sandbox gpu_sandbox;
#define GPU_SANDBOX_RESULT ((size_t)4 << 20)
vkn_status gpu_run_sandboxed(const char *name,
                             vkn_status (*work)(const void *context, struct base_text *result),
                             const void *context, struct base_text *result);

/* Finds the shader added by gpu_add_snippet under the name; NULL: none. */
const struct gpu_shader *gpu_snippet_find(const char *name);
/* Compiles and checks the shader at its first use. VKN_BAD_INPUT: the compiler's message, with
 * the snippet's line. */
vkn_status gpu_snippet_compile(const struct gpu_shader *source);
/* Returns a copy of the module in which loops without an unroll request are marked DontUnroll:
 * compilers of CPU devices take minutes for unrolled nested loops. The caller frees the copy. NULL:
 * out of memory. */
uint32_t *gpu_disable_unrolling(const uint32_t *words, size_t word_count);

/* ---- specialize.c ---------------------------------------------------------------------------- */

/* Returns a copy of the module with the specialisation constants replaced by their values
 * given[SpecId], or by their defaults from given_count on, and without code that the values make
 * unreachable. Sets *count to the copy's length in words. The caller frees the copy. NULL: out of
 * memory, or the module has constructs that GLSL compilers do not write; the driver specialises the
 * module then. */
uint32_t *gpu_specialize(const uint32_t *words, size_t *count, const uint32_t *given,
                         uint32_t given_count);

#endif
