/* gpu: the only room that sees Vulkan. Devices, memory, programs, recordings, timing, self-test. */
#ifndef GPU_GPU_H
#define GPU_GPU_H

#include <signal.h>

#include "base/base.h"

struct gpu_device;
struct cJSON;

/* ---- devices --------------------------------------------------------------------------------- */
enum gpu_device_type { GPU_OTHER, GPU_INTEGRATED, GPU_DISCRETE, GPU_VIRTUAL, GPU_CPU };
extern const char *const gpu_device_type_names[];

#define GPU_MAX_MATRIX_SHAPES 64
struct gpu_matrix_shape {
    uint32_t m, n, k;
    const char *a_type, *c_type; /* "f16", "f32", ... of the multiplicands and of the accumulator */
    bool flexible; /* only through the flexible dimensions of VK_NV_cooperative_matrix2 */
};

/* What a device offers. 0 / false means unsupported. */
struct gpu_capabilities {
    char name[256];
    char driver[256];     /* driver name and version */
    const char *unusable; /* why vknerf cannot run on it; NULL: it can */
    enum gpu_device_type type;
    uint32_t vendor_id, device_id, driver_version, api_version, driver_id; /* VkDriverId */
    uint8_t pipeline_cache_uuid[16];
    uint32_t subgroup_size;              /* that programs have which ask for none */
    uint32_t subgroup_min, subgroup_max; /* powers of two that a program may ask for */
    bool subgroup_pinnable;              /* programs get just that size, and full subgroups */
    bool float_atomic_add;               /* f32 atomic add on storage buffers */
    bool float16, storage16;             /* f16 arithmetic; 16-bit storage buffers */
    bool cooperative_matrix, cooperative_matrix2, packed_f16_atomics;
    bool buffer_addresses; /* shaders may read storage buffers through 64-bit addresses */
    struct gpu_matrix_shape shapes[GPU_MAX_MATRIX_SHAPES];
    uint32_t shape_count;
    uint32_t max_workgroup_size, max_subgroups; /* of a workgroup: invocations; 0: any number */
    uint32_t max_shared_memory, max_groups;     /* its bytes; workgroups of one dispatch */
    uint64_t max_buffer_range, device_memory; /* bytes: of one binding; of the largest local heap */
    double timestamp_period;                  /* nanoseconds per tick, 0: no timestamps */
};

struct gpu_options {
    const char *device;     /* index as listed by gpu_list, or part of a name; NULL: discrete before
                               integrated before CPU, the next one where it fails its self-test */
    const char *shader_dir; /* compile shaders from this folder at run time; NULL: embedded */
    const char *cache_dir;  /* folder of the pipeline cache; NULL: the user's cache folder */
    bool statistics;        /* see gpu_pipeline_statistics; the pipeline cache is left out */
};
/* A device and all that was made from it are for one thread at a time, but several threads may call
 * gpu_pipeline_create and gpu_pipeline_destroy at once: compiling is what takes long at the start.
 */

/* Fills up to `capacity` entries by index; *count: how many devices there are. VKN_NO_DEVICE: none.
 */
vkn_status gpu_list(struct gpu_capabilities *capabilities, size_t capacity, size_t *count);
/* Opens a device; `options` may be NULL. What does not work is passed over with a warning, unless
 * asked for or the last. The caller owns *device; gpu_close saves the cache and nulls it. */
vkn_status gpu_open(const struct gpu_options *options, struct gpu_device **device);
void gpu_close(struct gpu_device **device);
/* Once *stop is not zero, a device that does not end its work within 20 seconds is given up: waits
 * for it give VKN_NO_DEVICE, and what belongs to it stays until the process ends. NULL: waits have
 * no end. Returns what was watched before; *stop must live as long as it is watched. */
const volatile sig_atomic_t *gpu_set_stop_flag(struct gpu_device *device,
                                               const volatile sig_atomic_t *stop);
/* Gives up where a wait takes so many seconds, 0: never; snippets set a limit. Returns the one
 * before. */
double gpu_set_wait_limit(struct gpu_device *device, double seconds);
struct base_guard *gpu_guard(struct gpu_device *device); /* see BASE_USE */
const struct gpu_capabilities *gpu_device_capabilities(const struct gpu_device *device);
uint32_t gpu_largest_workgroup(const struct gpu_capabilities *device,
                               uint32_t subgroup_size);     /* invocations */
uint32_t gpu_device_index(const struct gpu_device *device); /* as gpu_list counts */
struct vkn_vulkan; /* handles, for those who record work of their own */
void gpu_device_handles(const struct gpu_device *device, struct vkn_vulkan *handles);
/* What is known to go wrong with a device's driver, in words (literals), and what to do about it.
 */
struct gpu_driver_issue {
    const char *problem, *advice;
    bool warn;     /* every run may meet it; else only what is asked for on purpose, or speed */
    bool matrices; /* not even the list of matrix shapes can be read: they are switched off */
};
#define GPU_MAX_DRIVER_ISSUES 4
/* By driver, its version, kind and number of the device; returns how many. */
size_t gpu_driver_issues(const struct gpu_capabilities *of,
                         struct gpu_driver_issue hazards[GPU_MAX_DRIVER_ISSUES]);
bool gpu_disabled(const char *feature); /* whether VKNERF_DISABLE names it */
/* Whether programs take the shape that suits a CPU; cpu_kernels in VKNERF_DISABLE: none does. */
bool gpu_cpu_kernels(const struct gpu_capabilities *device);
/* "FOLDER/KIND-PIPELINE_CACHE_UUID-DRIVER_VERSION.EXTENSION", beside the pipeline cache, in fresh
 * memory: a file for what was found out about this device and driver. NULL: nothing is kept here.
 */
char *gpu_cache_path(const struct gpu_device *device, const char *kind, const char *extension);
/* Bytes of device memory that this process holds through the device. */
uint64_t gpu_memory_allocated(const struct gpu_device *device);
/* The same by name of buffer, the largest first, each with the gap after it. Fills up to `most`
 * entries (at least 1), the last with all that is left over, as "others"; returns how many. */
struct gpu_memory_use {
    const char *name;
    uint64_t bytes;
    bool host;
}; /* literal; asked for as GPU_HOST */
size_t gpu_memory_uses(const struct gpu_device *device, struct gpu_memory_use *uses, size_t most);
/* Bytes that can still be allocated: of the driver's budget or the heap, on CPU devices of the
 * process's as well. */
uint64_t gpu_memory_available(const struct gpu_device *device);

/* ---- memory ---------------------------------------------------------------------------------- */
/* A buffer lives in an arena and goes with it. */
struct gpu_buffer {
    void *handle;     /* VkBuffer */
    uint64_t size;    /* bytes */
    void *mapped;     /* host address for GPU_HOST buffers, and all of CPU devices; else NULL */
    const char *name; /* literal */
};

enum gpu_memory_kind { GPU_DEVICE, GPU_HOST };
/* `buffer` is filled in; `name`, a literal, is for messages; no bytes are rounded up so that they
 * can be bound. */
struct gpu_buffer_request {
    struct gpu_buffer *buffer;
    const char *name;
    uint64_t size;
    enum gpu_memory_kind kind;
};

/* What a buffer needs, before it is taken; `settings` (literals) are those whose reduction makes it
 * smaller, or NULL. */
struct gpu_need {
    const char *name;
    uint64_t size;
    const char *settings;
};
/* VKN_BAD_INPUT where one is more than the device binds or allocates at once; where all are more
 * than can be had, the host's memory included where device memory falls back to it: "`what`: ..."
 * with the settings that most follows from. */
vkn_status gpu_check_range(const struct gpu_device *device, const struct gpu_need *need);
vkn_status gpu_memory_check(const struct gpu_device *device, const struct gpu_need *needs,
                            size_t count, const char *what);

/* One allocation for each kind of memory (more where the device limits its size), all buffers
 * placed in it, as zeros. VKN_BAD_INPUT as gpu_check_range and gpu_memory_check. Device memory that
 * is full falls back to the host's with a warning. */
struct gpu_arena;
vkn_status gpu_arena_create(struct gpu_device *device, const struct gpu_buffer_request *requests,
                            size_t count, struct gpu_arena **arena);
void gpu_arena_destroy(struct gpu_arena **arena);

/* Blocking copies through a staging buffer, for set-up, checkpoints and results. */
vkn_status gpu_upload(struct gpu_device *device, const struct gpu_buffer *buffer, uint64_t offset,
                      const void *data, uint64_t size);
vkn_status gpu_download(struct gpu_device *device, const struct gpu_buffer *buffer, uint64_t offset,
                        void *data, uint64_t size);

/* ---- programs -------------------------------------------------------------------------------- */
/* All programs' storage buffers: n is binding n % GPU_SET_BINDINGS of set n / GPU_SET_BINDINGS. */
#define GPU_SETS          2u
#define GPU_SET_BINDINGS  15u
#define GPU_BINDINGS      (GPU_SETS * GPU_SET_BINDINGS)
/* The first set's last one is this room's: 64-bit addresses of all, where the device has them. */
#define GPU_ADDRESSES     (GPU_SET_BINDINGS - 1u)
#define GPU_PUSH_BYTES    32u /* of push constants, available to every program */
#define GPU_MAX_CONSTANTS 48u

/* Specialisation constants by id. */
#define GPU_FIRST_CONSTANT 2u /* before it: the sizes of subgroup and workgroup */
struct gpu_constants {
    uint32_t values[GPU_MAX_CONSTANTS];
    uint32_t count; /* ids */
};

struct gpu_pipeline_options {
    const char *name;    /* as listed in shaders/shaders.txt */
    uint32_t local_size; /* invocations per workgroup; a multiple of the subgroup size */
    const struct gpu_constants *constants; /* may be NULL */
    uint32_t subgroup_size;                /* see gpu_capabilities; 0: the device's own choice */
};

/* A program is shared by all who ask a device for the same one, and stays with the device for a
 * while when nobody holds it any more; what is compiled at run time is neither. */
struct gpu_pipeline;
/* On CPU devices with buffer_addresses "NAME_addresses", where there is one, stands in for NAME. */
vkn_status gpu_pipeline_create(struct gpu_device *device,
                               const struct gpu_pipeline_options *options,
                               struct gpu_pipeline **pipeline);
/* Several at once on all processors; says on the log what takes longer than a second. What was
 * created before a failure is the caller's to destroy; the rest is NULL. */
struct gpu_pipeline_request {
    struct gpu_pipeline_options options;
    struct gpu_pipeline **pipeline;
};
vkn_status gpu_pipelines_create(struct gpu_device *device,
                                const struct gpu_pipeline_request *requests, size_t count);
void gpu_pipeline_destroy(struct gpu_pipeline **pipeline); /* gives it back and nulls it */
/* Whether the build has it: compilers of GLSL that are too old leave some out. */
bool gpu_shader_exists(const char *name);
/* Another number when the program's code is another; 0 when it is compiled at run time. */
uint64_t gpu_shader_hash(const struct gpu_device *device, const char *name);
/* A program from `template`, a file of shaders/ that includes "snippet"; compiled when it is first
 * asked for, which gives VKN_BAD_INPUT with file and line where it is wrong. VKN_ERROR: no memory.
 */
struct gpu_snippet {
    const char *file, *text;
}; /* as messages call it; live as long as the process */
vkn_status gpu_add_snippet(const char *name, const char *template, const char *defines,
                           const struct gpu_snippet *snippet);
/* What the driver's compiler says of a program, as docs/bench.md lists it, in a fresh object that
 * the caller deletes; NULL unless gpu_options.statistics asked for it. */
struct cJSON *gpu_pipeline_statistics(const struct gpu_pipeline *pipeline);

/* Buffers for the common layout. NULL: bound to a small dummy; that of GPU_ADDRESSES is ignored. */
struct gpu_bindings;
vkn_status gpu_bindings_create(struct gpu_device *device,
                               const struct gpu_buffer *const buffers[GPU_BINDINGS],
                               struct gpu_bindings **bindings);
void gpu_bindings_destroy(struct gpu_bindings **bindings);

/* ---- recordings ------------------------------------------------------------------------------ */
/* Reusable commands. Errors during recording are kept and returned by gpu_record_end. */
struct gpu_recording;
vkn_status gpu_record_begin(struct gpu_device *device, const char *name, uint32_t max_timestamps,
                            struct gpu_recording **recording);
void gpu_record_dispatch(struct gpu_recording *recording, const struct gpu_pipeline *pipeline,
                         const struct gpu_bindings *bindings, const void *push, uint32_t push_size,
                         uint32_t groups);
/* Takes the three group counts from `buffer` at `offset`. */
void gpu_record_dispatch_indirect(struct gpu_recording *recording,
                                  const struct gpu_pipeline *pipeline,
                                  const struct gpu_bindings *bindings, const void *push,
                                  uint32_t push_size, const struct gpu_buffer *buffer,
                                  uint64_t offset);
/* All before is finished and visible to all after; to the host only where the recording ends. The
 * second: between programs alone, neither copies nor group counts. */
void gpu_record_barrier(struct gpu_recording *recording);
void gpu_record_compute_barrier(struct gpu_recording *recording);
/* Multiples of 4 bytes; size UINT64_MAX fills to the end. */
void gpu_record_fill(struct gpu_recording *recording, const struct gpu_buffer *buffer,
                     uint64_t offset, uint64_t size, uint32_t value);
void gpu_record_copy(struct gpu_recording *recording, const struct gpu_buffer *from,
                     uint64_t from_offset, const struct gpu_buffer *to, uint64_t to_offset,
                     uint64_t size);
/* When all that was recorded before has finished; `label` (literal) names the work that starts
 * here. Does nothing with max_timestamps 0 or on a device without timestamps. */
void gpu_record_timestamp(struct gpu_recording *recording, const char *label);
/* What follows is handed to the device by itself: no watchdog counts it with what came before. */
void gpu_record_split(struct gpu_recording *recording);
vkn_status gpu_record_end(struct gpu_recording *recording);
/* Recordings run in the order submitted. Submitting one that is in flight waits for it first. */
vkn_status gpu_submit(struct gpu_recording *recording);
vkn_status gpu_wait(struct gpu_recording *recording);
/* False: it still runs after so many seconds; true: gpu_wait is needed all the same. */
bool gpu_wait_timeout(const struct gpu_recording *recording, double seconds);
/* What runs once: GPU_ONCE declares `recording` and begins it, or returns from the calling function
 * with what failed; gpu_run_once ends it, runs it and destroys it, whatever comes of it. */
#define GPU_ONCE(device, name)              \
    struct gpu_recording *recording = NULL; \
    BASE_TRY(gpu_record_begin(device, name, 0, &recording))
vkn_status gpu_run_once(struct gpu_recording **recording);
/* Milliseconds from each timestamp to the next, after gpu_wait. Returns the number of intervals. */
uint32_t gpu_recording_times(struct gpu_recording *recording, const char **labels,
                             double *milliseconds, uint32_t capacity);
/* Seconds on the device's clock at its first timestamp, after gpu_wait; negative without any. */
double gpu_recording_start(struct gpu_recording *recording);
void gpu_recording_destroy(struct gpu_recording **recording);

/* Both clocks at one moment, give or take `deviation` seconds; false: the driver cannot tell. */
struct gpu_clocks {
    double device, host, deviation;
}; /* as gpu_recording_start, base_seconds() */
bool gpu_read_clocks(struct gpu_device *device, struct gpu_clocks *clocks);

/* Number of messages of the validation layer so far, with VKNERF_VALIDATION=1. */
uint64_t gpu_validation_messages(void);

/* ---- self-test ------------------------------------------------------------------------------- */
/* Small known problems against the scalar result, run once by gpu_open. What fails is switched off
 * in the capabilities with a warning; failing what nothing works without gives VKN_NO_DEVICE. */
struct gpu_self_test {
    bool subgroups, integer_atomics, float_atomics;
};
const struct gpu_self_test *gpu_self_test_result(const struct gpu_device *device);
/* Multiplies f16 matrices of that shape once, before its first use, with every accumulator that the
 * device offers. What is not exact is taken out of the capabilities' shapes with a warning. */
vkn_status gpu_self_test_matrices(struct gpu_device *device, uint32_t m, uint32_t n, uint32_t k);
/* Whether VKNERF_SELF_TEST_BREAK (docs/precision.md) lists it; NULL: whether it lists anything. */
bool gpu_fault_injected(const char *name);

#endif
