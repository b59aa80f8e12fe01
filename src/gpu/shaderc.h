/* Declares the part of shaderc's interface that is used, under the names of shaderc/shaderc.h. The
 * library is loaded at run time and its headers are not needed; the interface has not changed since
 * 2016. */
#ifndef GPU_SHADERC_H
#define GPU_SHADERC_H

#include <stddef.h>
#include <stdint.h>

#include "loading/loading.h"

enum {
    shaderc_compute_shader = 2,
    shaderc_target_env_vulkan = 0,
    shaderc_env_version_vulkan_1_2 = (1 << 22) | (2 << 12),
    shaderc_env_version_vulkan_1_3 = (1 << 22) | (3 << 12),
    shaderc_optimization_level_zero = 0,
    shaderc_compilation_status_success = 0,
};
typedef struct shaderc_compiler *shaderc_compiler_t;
typedef struct shaderc_compile_options *shaderc_compile_options_t;
typedef struct shaderc_compilation_result *shaderc_compilation_result_t;
typedef struct {
    const char *source_name;
    size_t source_name_length;
    const char *content;
    size_t content_length;
    void *user_data;
} shaderc_include_result;
typedef shaderc_include_result *(*shaderc_include_resolve_fn)(void *user_data,
                                                              const char *requested, int type,
                                                              const char *requesting, size_t depth);
typedef void (*shaderc_include_result_release_fn)(void *user_data, shaderc_include_result *result);

/* X(name, return type, parameters) */
#define SHADERC_FUNCTIONS(X)                                                                       \
    X(compiler_initialize, shaderc_compiler_t, (void))                                             \
    X(compile_options_initialize, shaderc_compile_options_t, (void))                               \
    X(compile_options_release, void, (shaderc_compile_options_t options))                          \
    X(compile_options_set_optimization_level, void,                                                \
      (shaderc_compile_options_t options, int level))                                              \
    X(compile_options_set_generate_debug_info, void, (shaderc_compile_options_t options))          \
    X(compile_options_set_target_env, void,                                                        \
      (shaderc_compile_options_t options, int target, uint32_t version))                           \
    X(compile_options_set_include_callbacks, void,                                                 \
      (shaderc_compile_options_t options, shaderc_include_resolve_fn resolver,                     \
       shaderc_include_result_release_fn releaser, void *user_data))                               \
    X(compile_options_add_macro_definition, void,                                                  \
      (shaderc_compile_options_t options, const char *name, size_t name_length, const char *value, \
       size_t value_length))                                                                       \
    X(compile_into_spv, shaderc_compilation_result_t,                                              \
      (shaderc_compiler_t compiler, const char *text, size_t size, int kind, const char *file,     \
       const char *entry, shaderc_compile_options_t options))                                      \
    X(compile_into_preprocessed_text, shaderc_compilation_result_t,                                \
      (shaderc_compiler_t compiler, const char *text, size_t size, int kind, const char *file,     \
       const char *entry, shaderc_compile_options_t options))                                      \
    X(result_get_compilation_status, int, (shaderc_compilation_result_t result))                   \
    X(result_get_error_message, const char *, (shaderc_compilation_result_t result))               \
    X(result_get_length, size_t, (shaderc_compilation_result_t result))                            \
    X(result_get_bytes, const char *, (shaderc_compilation_result_t result))                       \
    X(result_release, void, (shaderc_compilation_result_t result))

// NOLINTNEXTLINE(bugprone-macro-parentheses): types and names
#define SHADERC_POINTER(name, result, parameters) result(*name) parameters;
struct shaderc {
    SHADERC_FUNCTIONS(SHADERC_POINTER)
};

/* Loads the library and fills in *shaderc. Returns the library for loading_find; NULL: not
 * installed. */
static inline void *shaderc_load(struct shaderc *shaderc)
{
    static const char *const files[] = {"libshaderc.so.1", "libshaderc_shared.so.1", NULL};
    void *library = loading_open(files);
    bool complete = library != NULL;
#define SHADERC_FIND(name, result, parameters) \
    complete = loading_find(library, "shaderc_" #name, &shaderc->name) && complete;
    SHADERC_FUNCTIONS(SHADERC_FIND)
    return complete ? library : NULL;
}

#endif
