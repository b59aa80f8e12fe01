/* vknerf/context.h: opens Vulkan devices, describes them, and redirects messages. */
#ifndef VKNERF_CONTEXT_H
#define VKNERF_CONTEXT_H

#include <vknerf/error.h>

VKN_BEGIN_DECLARATIONS

/* An open device. */
typedef struct vkn_context vkn_context;

/* Receives the progress of a call: `done` of `total` items of the work `what` ("evaluating",
 * "decoding images", "compiling pipelines"); `total` 0: unknown. `what` is valid during the call.
 * While pipelines are being compiled, their names follow: "compiling pipelines: rays, adam".
 * The thread that made the call runs the callback, which must return soon; functions of the library
 * that return a status refuse to be called by it, with VKN_BAD_INPUT. Counts of several kinds of
 * work may alternate, and a count need not reach its total. */
typedef void vkn_progress_callback(void *context, const char *what, size_t done, size_t total);

/* Parameters of vkn_context_create. */
struct vkn_context_params {
    size_t size; /* see <vknerf/api.h> */
    /* Index or part of a name. NULL: a discrete GPU before an integrated one before a CPU; if the
     * device fails its self-test, the next one, with a warning. */
    const char *device;
    const char *shader_dir; /* folder of shaders to compile at run time; NULL: embedded shaders */
    bool statistics; /* collect the driver's compiler statistics, for vkn_bench; pipelines are then
                        compiled without the pipeline cache */
    bool low_priority; /* lets other programs use the device first, such as the desktop; a warning
                          if the device has no such priority. Needs `size` */
    /* Receives the progress of all calls that use the context: of compilations, and of decoding
     * images for a trainer. NULL: none. Both need `size`. */
    vkn_progress_callback *progress;
    void *progress_context; /* first argument of `progress` */
};

/* Opens a device. `params` may be NULL: all defaults. The caller owns *context. Objects that are
 * created from a context (trainers, renderers, steppers, Adam) keep its device open: the context
 * and these objects may be destroyed in any order. Only one thread at a time may use a context and
 * its objects; a call from another thread meanwhile is refused. Several contexts, also of one
 * device, are independent. A context cannot be used in a forked process. */
VKN_API vkn_status vkn_context_create(const struct vkn_context_params *params,
                                      vkn_context **context);
/* Destroys a context and sets *context to NULL; accepts NULL. The device is closed with the last
 * object that uses it. In a forked process only the pointer is set to NULL. */
VKN_API void vkn_context_destroy(vkn_context **context);
/* Returns the name of the device, owned by the context; "" for NULL. */
VKN_API const char *vkn_context_device_name(const vkn_context *context);
/* Returns the name and version of the driver, owned by the context; "" for NULL. */
VKN_API const char *vkn_context_driver(const vkn_context *context);

/* Lets Mesa's CPU device (lavapipe) use 512-bit vectors if the processor has them, unless
 * LP_NATIVE_VECTOR_WIDTH is set. fp32 becomes faster, fp16 slower; lavapipe offers cooperative
 * matrices at 256 bits only. To be called before the first context and before vkn_info_json. */
VKN_API void vkn_prefer_wide_vectors(void);

/* Limits Mesa's CPU device to 1 / `processes` of the processors, for that many processes at the
 * same time, unless LP_NUM_THREADS is set. Contexts of one process share one set of threads. To be
 * called before the first context. */
VKN_API void vkn_share_processors(uint32_t processes);

/* Tests all devices and describes them in one JSON object, in memory that the caller frees, with
 * capabilities, self-test, the chosen backends and the reasons:
 *
 * {"version", "commit", "devices": [{"index", "chosen", "name", "type", "driver", "error"?, ...,
 *     "known_problems"?: [{"problem", "advice"}]}]}
 *
 * "error" says why a device cannot be used. `params` may be NULL. VKN_NO_DEVICE if the requested
 * device, or every device, cannot be used; *json is set even then if there is any device. */
VKN_API vkn_status vkn_info_json(const struct vkn_context_params *params, char **json);

/* ---- messages -------------------------------------------------------------------------------- */

/* Levels of messages. */
enum vkn_log_level {
    VKN_LOG_INFO,   /* progress of the work */
    VKN_LOG_WARNING /* a problem that did not stop the work */
};
/* Receives a message: one line without a line break. Calls come from any thread, one at a time. The
 * callback must return soon. It may call vkn_log_to and vkn_log_quiet; functions of the library
 * that return a status are refused in it. */
typedef void vkn_log_callback(void *user, enum vkn_log_level level, const char *line);
/* Sends the messages of all contexts to a callback. NULL: to standard error again, where warnings
 * begin with "warning: ". The previous callback is not called any more once this function has
 * returned. */
VKN_API void vkn_log_to(vkn_log_callback *callback, void *user);
/* Chooses between all messages and only warnings (--quiet). */
VKN_API void vkn_log_quiet(bool quiet);

VKN_END_DECLARATIONS

#endif
