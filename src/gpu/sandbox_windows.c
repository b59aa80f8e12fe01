/* Runs work on untrusted input on Windows: in this process, because Windows cannot fork one, and a
 * program that uses the library cannot be started again. */
#include "gpu/shaders.h"

struct gpu_sandbox gpu_sandbox = {.seconds = 20, .memory = (uint64_t)2 << 30, .stall = 2};

vkn_status gpu_run_sandboxed(const char *name,
                             vkn_status (*work)(const void *context, struct base_text *result),
                             const void *context, struct base_text *result)
{
    BASE_TRY(work(context, result));
    if (result->failed)
        return base_fail(VKN_ERROR, "%s: out of memory", name);
    return result->size <= GPU_SANDBOX_RESULT
               ? VKN_OK
               : base_fail(VKN_BAD_INPUT, "%s: compiling produces more than %zu MiB", name,
                           GPU_SANDBOX_RESULT >> 20);
}
