/* gpu: wraps Vulkan: devices, memory, pipelines, command buffers, timestamps and the self-test of a
 * device. No other module calls Vulkan. */
#ifndef GPU_GPU_H
#define GPU_GPU_H

#include <signal.h>

#include "base/base.h"

struct gpu_device;
struct cJSON;

/* ---- devices --------------------------------------------------------------------------------- */
/* Values of gpu_capabilities.vendor_id. */
enum gpu_vendor {
    GPU_VENDOR_AMD = 0x1002,
    GPU_VENDOR_INTEL = 0x8086,
    GPU_VENDOR_NVIDIA = 0x10de,
    GPU_VENDOR_QUALCOMM = 0x5143
};

enum gpu_device_type { GPU_OTHER, GPU_INTEGRATED, GPU_DISCRETE, GPU_VIRTUAL, GPU_CPU };
extern const char *const gpu_device_type_names[];

#define GPU_MAX_MATRIX_SHAPES 64
/* Shape and types of cooperative matrices: C (m x n) += A (m x k) * B (k x n). */
struct gpu_matrix_shape {
    uint32_t m, n, k;
    const char *a_type, *c_type; /* component types: of A and B, and of C; "f16", "f32", ... */
    bool flexible; /* offered only as flexible dimensions of VK_NV_cooperative_matrix2 */
};

/* Features and limits of a device. 0 or false: not supported. */
struct gpu_capabilities {
    char name[256];
    char driver[256];     /* driver name and version */
    const char *unusable; /* why vknerf cannot use the device; NULL: usable */
    enum gpu_device_type type;
    uint32_t vendor_id, device_id, driver_version, api_version, driver_id; /* VkDriverId */
    bool has_nvidia_driver; /* NVIDIA's own driver, not NVK */
    uint8_t pipeline_cache_uuid[16];
    uint32_t subgroup_size;              /* used by pipelines that request no size */
    uint32_t subgroup_min, subgroup_max; /* sizes that a pipeline may request: powers of two */
    bool subgroup_pinnable;              /* the size requested is exact, and subgroups are full */
    bool float_atomic_add;               /* f32 atomic add on storage buffers */
    bool float16, storage16;             /* f16 arithmetic; f16 in storage buffers */
    /* Results of the self-test of an open device, else false; see struct gpu_self_test. */
    bool cas_sums, f16_subnormals, f16_rounding;
    bool cooperative_matrix, cooperative_matrix2, packed_f16_atomics;
    bool buffer_addresses; /* shaders can read storage buffers by 64-bit address */
    struct gpu_matrix_shape shapes[GPU_MAX_MATRIX_SHAPES];
    uint32_t shape_count;
    uint32_t max_workgroup_size, max_subgroups; /* per workgroup: invocations, subgroups (0: any) */
    uint32_t max_shared_memory, max_groups;     /* bytes per workgroup; workgroups per dispatch */
    uint64_t max_buffer_range, device_memory;   /* bytes: of a binding; of the largest local heap */
    double timestamp_period;                    /* nanoseconds per tick; 0: no timestamps */
};

/* Options of gpu_open.
 *
 * A device and all objects made from it may be used by one thread at a time. Exception: several
 * threads may call gpu_pipeline_create and gpu_pipeline_destroy at once, because compilation
 * dominates the start. */
struct gpu_options {
    const char *device;     /* index in gpu_list, or part of a name; NULL: the first that passes its
                               self-test, discrete before integrated before CPU */
    const char *shader_dir; /* folder of GLSL to compile at run time; NULL: embedded SPIR-V */
    const char *cache_dir;  /* folder of the pipeline cache; NULL: the user's cache folder */
    bool statistics;        /* collect gpu_pipeline_statistics; disables the pipeline cache */
    bool low_priority;      /* other programs' work comes first; a warning if the device cannot */
    struct base_progress progress; /* of compilations, and see gpu_report_progress */
};

/* Lists the devices: fills up to `capacity` entries, by index, and sets *count to the number of
 * devices. VKN_NO_DEVICE: there is no device. */
vkn_status gpu_list(struct gpu_capabilities *capabilities, size_t capacity, size_t *count);
/* Opens a device; `options` may be NULL. A device that fails is skipped with a warning, unless
 * options->device names it or no other is left. The caller owns *device. */
vkn_status gpu_open(const struct gpu_options *options, struct gpu_device **device);
/* Saves the pipeline cache, closes the device and sets *device to NULL. */
void gpu_close(struct gpu_device **device);
/* Sets the stop flag of a device and returns the previous flag; NULL: none. Once *stop is not zero,
 * a wait that takes 20 seconds more returns VKN_NO_DEVICE; the device counts as hung then, and its
 * objects are not destroyed before the process ends. The device keeps the pointer. */
const volatile sig_atomic_t *gpu_set_stop_flag(struct gpu_device *device,
                                               const volatile sig_atomic_t *stop);
/* Sets the number of seconds after which a wait fails and the device counts as hung; 0: no limit.
 * Creating a pipeline with a user's snippet sets a limit if there is none. Returns the previous
 * limit. */
double gpu_set_wait_limit(struct gpu_device *device, double seconds);
struct base_guard *gpu_guard(struct gpu_device *device); /* for BASE_USE */
/* Reports progress of work for the device to the receiver in its options. */
void gpu_report_progress(const struct gpu_device *device, const char *what, size_t done,
                         size_t total);
const struct gpu_capabilities *gpu_device_capabilities(const struct gpu_device *device);
uint32_t gpu_largest_workgroup(const struct gpu_capabilities *device,
                               uint32_t subgroup_size);     /* invocations */
uint32_t gpu_device_index(const struct gpu_device *device); /* index in gpu_list */
struct vkn_vulkan;
/* Fills in the Vulkan handles, for callers that record command buffers of their own. */
void gpu_device_handles(const struct gpu_device *device, struct vkn_vulkan *handles);
/* A known fault of a driver, and how to avoid it; both texts are literals. */
struct gpu_driver_issue {
    const char *problem, *advice;
    bool warn; /* any run may meet the fault; false: rare settings only, or only speed suffers */
    bool shape_list_crashes; /* the fault: cooperative matrices are switched off */
};
#define GPU_MAX_DRIVER_ISSUES 4
/* Lists the known faults of a device's driver, by driver, version, device type and device id.
 * Returns their number. */
size_t gpu_driver_issues(const struct gpu_capabilities *device,
                         struct gpu_driver_issue issues[GPU_MAX_DRIVER_ISSUES]);
/* Returns whether VKNERF_DISABLE lists the feature. */
bool gpu_disabled(const char *feature);
/* Returns whether pipelines use the kernels for CPU devices: on CPU devices, unless VKNERF_DISABLE
 * lists cpu_kernels. */
bool gpu_cpu_kernels(const struct gpu_capabilities *device);
/* Returns "FOLDER/KIND-PIPELINE_CACHE_UUID-DRIVER_VERSION.EXTENSION" in fresh memory: a file in the
 * cache folder for results that depend on device and driver. NULL: caching is off or memory
 * is short. */
char *gpu_cache_path(const struct gpu_device *device, const char *kind, const char *extension);
#define GPU_CERTIFICATE "certificate" /* kind of the file of vknerf certify */
/* Returns what vknerf certify has found on this device and driver, without single tests; the caller
 * deletes it. NULL: nothing. */
struct cJSON *gpu_certificate(const struct gpu_device *device);
/* Returns the bytes that this process has allocated on the device. */
uint64_t gpu_memory_allocated(const struct gpu_device *device);
/* Lists the allocated bytes by buffer name, largest first, each including the padding after the
 * buffer. Fills up to `most` entries (at least 1); the last one sums up the rest as "others".
 * Returns the number of entries. */
struct gpu_memory_use {
    const char *name; /* literal */
    uint64_t bytes;
    bool host; /* requested as GPU_HOST */
};
size_t gpu_memory_uses(const struct gpu_device *device, struct gpu_memory_use *uses, size_t most);
/* Returns the bytes that can still be allocated: from the driver's memory budget if it has one,
 * else from the heap's size; on CPU devices at most the memory left to the process. */
uint64_t gpu_memory_available(const struct gpu_device *device);

/* ---- memory ---------------------------------------------------------------------------------- */
/* A buffer in an arena, which owns its memory. */
struct gpu_buffer {
    void *handle;     /* VkBuffer */
    uint64_t size;    /* bytes */
    void *mapped;     /* host address of GPU_HOST buffers and of all on CPU devices; else NULL */
    const char *name; /* literal */
};

/* GPU_DEVICE: device-local memory; GPU_HOST: host-visible memory, which is mapped. */
enum gpu_memory_kind { GPU_DEVICE, GPU_HOST };
/* A buffer to allocate. gpu_arena_create fills in `buffer`; `name`, a literal, is for messages; a
 * size of 0 is rounded up so that the buffer can be bound. */
struct gpu_buffer_request {
    struct gpu_buffer *buffer;
    const char *name;
    uint64_t size;
    enum gpu_memory_kind kind;
};

/* Size of a buffer before it is allocated. `settings` (a literal) lists the settings that reduce
 * the size; NULL: none. */
struct gpu_need {
    const char *name;
    uint64_t size;
    const char *settings;
};
/* Check sizes before allocation: gpu_check_range checks one buffer against the largest binding and
 * allocation, gpu_memory_check the sum of `needs` against the available memory, including host
 * memory that device memory can fall back to. VKN_BAD_INPUT: too large; the message names the
 * settings to reduce and begins with `what`. */
vkn_status gpu_check_range(const struct gpu_device *device, const struct gpu_need *need);
vkn_status gpu_memory_check(const struct gpu_device *device, const struct gpu_need *needs,
                            size_t count, const char *what);

/* Allocates one block for each kind of memory (several where the device limits a block's size) and
 * places all buffers in the blocks, filled with zeros. Errors as gpu_check_range and
 * gpu_memory_check. If device memory is full, the last device buffers of the array are placed in
 * host memory, with a warning that lists them. */
struct gpu_arena;
vkn_status gpu_arena_create(struct gpu_device *device, const struct gpu_buffer_request *requests,
                            size_t count, struct gpu_arena **arena);
void gpu_arena_destroy(struct gpu_arena **arena);

/* Copy between host memory and a buffer through a staging buffer, and wait for the copy: for
 * set-up, checkpoints and results. Offsets and sizes in bytes. */
vkn_status gpu_upload(struct gpu_device *device, const struct gpu_buffer *buffer, uint64_t offset,
                      const void *data, uint64_t size);
vkn_status gpu_download(struct gpu_device *device, const struct gpu_buffer *buffer, uint64_t offset,
                        void *data, uint64_t size);

/* ---- pipelines ------------------------------------------------------------------------------- */
/* Storage buffers of all pipelines: buffer n is binding n % GPU_SET_BINDINGS of set n /
 * GPU_SET_BINDINGS. */
#define GPU_SETS          2u
#define GPU_SET_BINDINGS  15u
#define GPU_BINDINGS      (GPU_SETS * GPU_SET_BINDINGS)
/* Last binding of set 0, filled in by this module: the buffers' 64-bit addresses, if the device
 * supports them. */
#define GPU_ADDRESSES     (GPU_SET_BINDINGS - 1u)
#define GPU_PUSH_BYTES    32u /* bytes of push constants, available to every pipeline */
#define GPU_MAX_CONSTANTS 64u

/* Specialisation constants by constant_id. The ids below GPU_FIRST_CONSTANT are the sizes of
 * subgroup and workgroup. */
#define GPU_FIRST_CONSTANT 2u
struct gpu_constants {
    uint32_t values[GPU_MAX_CONSTANTS];
    uint32_t count; /* number of ids */
};

struct gpu_pipeline_options {
    const char *name;    /* in shaders/shaders.txt */
    uint32_t local_size; /* invocations per workgroup; a multiple of the subgroup size */
    const struct gpu_constants *constants; /* may be NULL */
    uint32_t subgroup_size;                /* 0: gpu_capabilities.subgroup_size */
};

/* A compute pipeline: a shader with its specialisation constants. A device shares one pipeline
 * between all requests for the same shader, constants and sizes, and keeps it for a while after its
 * last user has destroyed it. Pipelines from gpu_options.shader_dir are neither shared nor kept. */
struct gpu_pipeline;
/* Creates a pipeline. On CPU devices with buffer_addresses, the shader "NAME_addresses" replaces
 * NAME if it exists. */
vkn_status gpu_pipeline_create(struct gpu_device *device,
                               const struct gpu_pipeline_options *options,
                               struct gpu_pipeline **pipeline);
/* Creates several pipelines in parallel on all processors; logs progress if compilation takes
 * longer than a second. After a failure, the caller destroys the pipelines that were created; the
 * others are NULL. */
struct gpu_pipeline_request {
    struct gpu_pipeline_options options;
    struct gpu_pipeline **pipeline;
};
vkn_status gpu_pipelines_create(struct gpu_device *device,
                                const struct gpu_pipeline_request *requests, size_t count);
/* Releases the pipeline and sets *pipeline to NULL. */
void gpu_pipeline_destroy(struct gpu_pipeline **pipeline);
/* Returns whether the build has the shader: old GLSL compilers cannot compile all of them. */
bool gpu_shader_exists(const char *name);
/* Returns a hash of the shader's embedded SPIR-V; 0: the shader is compiled at run time. */
uint64_t gpu_shader_hash(const struct gpu_device *device, const char *name);
/* A user's GLSL: its file name in messages, and its text. Both must live until the process ends. */
struct gpu_snippet {
    const char *file, *text;
};
/* Adds the shader `name`: `template`, a file of shaders/, which includes the user's GLSL as
 * "snippet". The first pipeline of the shader compiles it, and fails with VKN_BAD_INPUT and
 * "FILE:LINE: ..." if the GLSL is wrong. VKN_ERROR: out of memory. */
vkn_status gpu_add_snippet(const char *name, const char *template, const char *defines,
                           const struct gpu_snippet *snippet);
/* Returns the statistics of the driver's compiler (docs/bench.md lists them) as a fresh object that
 * the caller deletes; NULL unless gpu_options.statistics is set. */
struct cJSON *gpu_pipeline_statistics(const struct gpu_pipeline *pipeline);

/* Creates descriptor sets with buffers for the common layout. NULL entries are bound to a small
 * dummy buffer; the entry GPU_ADDRESSES is ignored. */
struct gpu_bindings;
vkn_status gpu_bindings_create(struct gpu_device *device,
                               const struct gpu_buffer *const buffers[GPU_BINDINGS],
                               struct gpu_bindings **bindings);
void gpu_bindings_destroy(struct gpu_bindings **bindings);

/* ---- command buffers ------------------------------------------------------------------------- */
/* A command buffer that can be submitted repeatedly. gpu_record_end returns the first error that
 * occurred during recording. */
struct gpu_recording;
/* Begins a recording with up to max_timestamps timestamps; `name` is for messages. */
vkn_status gpu_record_begin(struct gpu_device *device, const char *name, uint32_t max_timestamps,
                            struct gpu_recording **recording);
/* Records a dispatch of `groups` workgroups with `push_size` bytes of push constants. */
void gpu_record_dispatch(struct gpu_recording *recording, const struct gpu_pipeline *pipeline,
                         const struct gpu_bindings *bindings, const void *push, uint32_t push_size,
                         uint32_t groups);
/* Records a dispatch whose three group counts are read from `buffer` at `offset` (bytes). */
void gpu_record_dispatch_indirect(struct gpu_recording *recording,
                                  const struct gpu_pipeline *pipeline,
                                  const struct gpu_bindings *bindings, const void *push,
                                  uint32_t push_size, const struct gpu_buffer *buffer,
                                  uint64_t offset);
/* Record barriers. gpu_record_barrier makes all preceding writes visible to all following commands
 * on the device (to the host only at the end of the command buffer); gpu_record_compute_barrier
 * makes writes of shaders visible to shaders only, not to copies and indirect group counts. */
void gpu_record_barrier(struct gpu_recording *recording);
void gpu_record_compute_barrier(struct gpu_recording *recording);
/* Record a fill and a copy. Offsets and sizes are in bytes, and multiples of 4 for a fill; size
 * UINT64_MAX fills to the end. */
void gpu_record_fill(struct gpu_recording *recording, const struct gpu_buffer *buffer,
                     uint64_t offset, uint64_t size, uint32_t value);
void gpu_record_copy(struct gpu_recording *recording, const struct gpu_buffer *from,
                     uint64_t from_offset, const struct gpu_buffer *to, uint64_t to_offset,
                     uint64_t size);
/* Records a timestamp, taken when all preceding commands have finished; `label` (a literal) names
 * the work that follows. Does nothing if max_timestamps is 0 or the device has no timestamps. */
void gpu_record_timestamp(struct gpu_recording *recording, const char *label);
/* Continues in a further command buffer, which is submitted separately, so that a driver's watchdog
 * does not time both as one submission. */
void gpu_record_split(struct gpu_recording *recording);
vkn_status gpu_record_end(struct gpu_recording *recording);
/* Submit a recording and wait for it. Submissions run in order. gpu_submit first waits for the
 * recording if it is in flight. */
vkn_status gpu_submit(struct gpu_recording *recording);
vkn_status gpu_wait(struct gpu_recording *recording);
/* Waits up to `seconds`. Returns false if the recording is still running; after true, the caller
 * must still call gpu_wait. */
bool gpu_wait_timeout(const struct gpu_recording *recording, double seconds);
/* Run commands once. GPU_ONCE declares `recording` and begins it, or returns the error from the
 * calling function; gpu_run_once ends, runs and destroys the recording, also after an error. */
#define GPU_ONCE(device, name)              \
    struct gpu_recording *recording = NULL; \
    BASE_TRY(gpu_record_begin(device, name, 0, &recording))
vkn_status gpu_run_once(struct gpu_recording **recording);
/* Fills in the milliseconds from each timestamp to the next; call after gpu_wait. Returns the
 * number of intervals. */
uint32_t gpu_recording_times(struct gpu_recording *recording, const char **labels,
                             double *milliseconds, uint32_t capacity);
/* Returns the device clock at the first timestamp, in seconds; call after gpu_wait. Negative: no
 * timestamps. */
double gpu_recording_start(struct gpu_recording *recording);
/* Waits for the recording if it is in flight, destroys it and sets it to NULL. */
void gpu_recording_destroy(struct gpu_recording **recording);

/* The clocks of gpu_recording_start and base_seconds, read at the same time within `deviation`; all
 * in seconds. */
struct gpu_clocks {
    double device, host, deviation;
};
/* Reads both clocks. Returns false if the driver cannot read them at the same time. */
bool gpu_read_clocks(struct gpu_device *device, struct gpu_clocks *clocks);

/* Returns the number of messages of the validation layer so far; needs VKNERF_VALIDATION=1. */
uint64_t gpu_validation_messages(void);

/* ---- self-test ------------------------------------------------------------------------------- */
/* Results of the self-test, which gpu_open runs once: small problems, checked by the host.
 * A failed optional feature is switched off in the capabilities with a warning; failed subgroup
 * operations or integer atomics give VKN_NO_DEVICE. */
struct gpu_self_test {
    bool subgroups, integer_atomics, float_atomics; /* whether the test passed */
    bool cas_sums; /* f32 sums by compare-and-swap are right: also under contention */
    /* f16: subnormal numbers are kept; conversions from f32 round to nearest, ties to even */
    bool f16_subnormals, f16_rounding;
};
const struct gpu_self_test *gpu_self_test_result(const struct gpu_device *device);
/* Tests products of f16 matrices of the shape m x n x k once, before its first use, with every
 * accumulator type that the device offers. Shapes with inexact results are removed from the
 * capabilities with a warning. */
vkn_status gpu_self_test_matrices(struct gpu_device *device, uint32_t m, uint32_t n, uint32_t k);
/* Returns whether VKNERF_SELF_TEST_BREAK (docs/precision.md) injects the fault `name`; NULL: any
 * fault. */
bool gpu_fault_injected(const char *name);

#endif
