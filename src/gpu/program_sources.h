/* The shader programs of shaders/programs.txt: embedded by the build, or compiled at run time. */
#ifndef GPU_PROGRAM_SOURCES_H
#define GPU_PROGRAM_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu_program_source {
    const char *name;
    const char *source;    /* file relative to shaders/ */
    const char *defines;   /* "NAME=VALUE NAME ..."; may be empty */
    const uint32_t *words; /* SPIR-V */
    const uint32_t *end;   /* behind its last word */
    const char *environment; /* target environment, "vulkan1.2" */
};

static inline size_t gpu_program_word_count(const struct gpu_program_source *program)
{
    return (size_t)(program->end - program->words);
}

/* In the order of the manifest; programs that the GLSL compiler of the build cannot compile are
 * absent. */
extern const struct gpu_program_source gpu_program_sources[];
extern const size_t gpu_program_source_count;

/* Makes further programs known to this process, which live as long: those of a field that is not the
 * project's, or of a test. */
void gpu_add_programs(const struct gpu_program_source *sources, size_t count);

/* Compiles the program from the GLSL in `shader_dir`, for those who tune kernels. On success *words
 * holds *word_count words of SPIR-V that the caller frees. On failure returns false with a message
 * in `message` (at most message_size bytes, zero included): the compiler's, or that vknerf was
 * built without VKNERF_RUNTIME_SHADERS. May be called from several threads. */
bool gpu_runtime_compile(const char *shader_dir, const struct gpu_program_source *program,
                         uint32_t **words, size_t *word_count, char *message, size_t message_size);

#endif
