/* vknerf/context.h: one Vulkan device, opened. */
#ifndef VKNERF_CONTEXT_H
#define VKNERF_CONTEXT_H

#include <vknerf/error.h>

VKN_BEGIN_DECLARATIONS

/* A device, opened. */
typedef struct vkn_context vkn_context;

/* Which device, and how. */
struct vkn_context_params {
    size_t size;        /* see <vknerf/api.h> */
    const char *device; /* index or part of a name; NULL: discrete before integrated before CPU, the
                           next one, with a warning, where it fails its self-test */
    const char *shader_dir; /* compile shaders from this folder at run time; NULL: embedded */
    bool statistics; /* ask the driver's compiler about programs, for vkn_bench; they are compiled
                        past the pipeline cache */
};

/* `params` may be NULL: all defaults. The caller owns *context; destroy nulls it, and takes NULL.
 * What was made from a context is destroyed before it. One thread at a time may use a context and
 * what was made from it, others are refused; several contexts, of one device too, know nothing of
 * each other. In a forked process it cannot be used, and destroying it only nulls the pointer. */
VKN_API vkn_status vkn_context_create(const struct vkn_context_params *params,
                                      vkn_context **context);
VKN_API void vkn_context_destroy(vkn_context **context);
/* Texts are the context's; "" of NULL. */
VKN_API const char *vkn_context_device_name(const vkn_context *context);
VKN_API const char *vkn_context_driver(const vkn_context *context);

/* Before the first context or call of vkn_info_json: lets Mesa's CPU device (lavapipe) use 512-bit
 * vectors where the processor has them, unless LP_NATIVE_VECTOR_WIDTH says otherwise. fp32 is
 * faster then, fp16 slower, and cooperative matrices it has at 256 bits only. */
VKN_API void vkn_prefer_wide_vectors(void);

/* Before the first context: Mesa's CPU device takes its share of the processors, where so many
 * processes work at the same time, unless LP_NUM_THREADS says otherwise. (Contexts of one process
 * share one set of threads.) */
VKN_API void vkn_share_processors(uint32_t processes);

/* Devices, capabilities, self-test, chosen paths and why, as one JSON object in fresh memory that
 * the caller frees: {"version", "devices": [{"index", "chosen", "name", "type", "driver", "error"?,
 * ..., "known_problems"?: [{"problem", "advice"}]}]}. "error" says why a device cannot be used; all
 * are tested. `params` may be NULL. Whatever the status (VKN_NO_DEVICE: what was asked for, or all
 * that there are, cannot be used), *json lists them, unless there is none. */
VKN_API vkn_status vkn_info_json(const struct vkn_context_params *params, char **json);

/* ---- messages -------------------------------------------------------------------------------- */

/* Where messages go, of all contexts: lines without a line break, one after the other, from any
 * thread. The callback returns soon and calls nothing of the library that has a status, which is
 * refused, but may call vkn_log_to and vkn_log_quiet. */
enum vkn_log_level {
    VKN_LOG_INFO,   /* what goes on */
    VKN_LOG_WARNING /* what someone should know */
};
typedef void vkn_log_callback(void *user, enum vkn_log_level level, const char *line);
/* NULL: standard error again, where lines begin with "warning: " if they are. Once it has returned,
 * the callback before is not called any more. */
VKN_API void vkn_log_to(vkn_log_callback *callback, void *user);
/* Messages: all, or warnings only (--quiet). */
VKN_API void vkn_log_quiet(bool quiet);

VKN_END_DECLARATIONS

#endif
