/* Declarations shared by the files of the gpu module. Outside of the module, only
 * tests/gpu_fixture.h includes this file, to inject failures. */
#ifndef GPU_INTERNAL_H
#define GPU_INTERNAL_H

#include <pthread.h>
#include <volk.h>

#include "gpu/gpu.h"

/* ---- errors ---------------------------------------------------------------------------------- */

/* Records "SUBJECT: vkX gave VK_ERROR_Y" and returns the matching status. */
vkn_status gpu_vulkan_fail(VkResult result, const char *call, const char *subject);

/* Calls a Vulkan function and returns from the calling function when it fails. */
#define GPU_CALL(subject, function, ...)                                   \
    do {                                                                   \
        VkResult gpu_call_result = (function)(__VA_ARGS__);                \
        if (gpu_call_result < 0)                                           \
            return gpu_vulkan_fail(gpu_call_result, #function, (subject)); \
    } while (0)

/* ---- the device ------------------------------------------------------------------------------ */

/* Capabilities of a device, and features that only this module needs. */
struct gpu_support {
    struct gpu_capabilities capabilities;
    bool memory_model;  /* needed by cooperative matrices */
    bool maintenance4;  /* needed by shaders that use VK_NV_cooperative_matrix2 */
    bool memory_budget; /* VK_EXT_memory_budget */
    bool calibrated_timestamps;
    bool device_fault, buffer_markers, checkpoints; /* see fault.c */
    bool global_priority_khr, global_priority_ext;  /* queues have a priority among programs */
    bool maximal_reconvergence, subgroup_uniform_control_flow; /* see execution_modes.c */
    /* Widths of floats (16, or 16 | 32) for which modules that use f16 ask to keep subnormal
     * numbers, and to round to nearest, ties to even; 0: none. */
    uint32_t denorm_preserve, round_to_even;
    bool non_semantic_info;   /* debug builds name their source files in SPIR-V */
    bool subgroup_required;   /* pipelines can require a subgroup size */
    bool pipeline_statistics; /* VK_KHR_pipeline_executable_properties, if requested */
    bool shader_objects;      /* shader objects replace pipelines, see shader_objects.c */
    uint32_t queue_family, timestamp_bits;
    VkPhysicalDeviceLimits limits;
    uint64_t max_allocation; /* bytes of one vkAllocateMemory */
};

/* Declarations of extensions that older Vulkan headers lack. */
#ifndef VK_NV_cooperative_matrix2
#define VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME "VK_NV_cooperative_matrix2"
#define VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV \
    ((VkStructureType)1000593000)
typedef struct VkPhysicalDeviceCooperativeMatrix2FeaturesNV {
    VkStructureType sType;
    void *pNext;
    VkBool32 cooperativeMatrixWorkgroupScope;
    VkBool32 cooperativeMatrixFlexibleDimensions;
    VkBool32 cooperativeMatrixReductions;
    VkBool32 cooperativeMatrixConversions;
    VkBool32 cooperativeMatrixPerElementOperations;
    VkBool32 cooperativeMatrixTensorAddressing;
    VkBool32 cooperativeMatrixBlockLoads;
} VkPhysicalDeviceCooperativeMatrix2FeaturesNV;
#endif
#ifndef VK_NV_shader_atomic_float16_vector
#define VK_NV_SHADER_ATOMIC_FLOAT16_VECTOR_EXTENSION_NAME "VK_NV_shader_atomic_float16_vector"
#define VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT16_VECTOR_FEATURES_NV \
    ((VkStructureType)1000563000)
typedef struct VkPhysicalDeviceShaderAtomicFloat16VectorFeaturesNV {
    VkStructureType sType;
    void *pNext;
    VkBool32 shaderFloat16VectorAtomics;
} VkPhysicalDeviceShaderAtomicFloat16VectorFeaturesNV;
#endif

#ifndef VK_KHR_shader_maximal_reconvergence
#define VK_KHR_SHADER_MAXIMAL_RECONVERGENCE_EXTENSION_NAME "VK_KHR_shader_maximal_reconvergence"
#define VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_MAXIMAL_RECONVERGENCE_FEATURES_KHR \
    ((VkStructureType)1000434000)
typedef struct VkPhysicalDeviceShaderMaximalReconvergenceFeaturesKHR {
    VkStructureType sType;
    void *pNext;
    VkBool32 shaderMaximalReconvergence;
} VkPhysicalDeviceShaderMaximalReconvergenceFeaturesKHR;
#endif

/* Feature structures and extensions passed to vkCreateDevice. */
#define GPU_MAX_EXTENSIONS 24
struct gpu_features {
    VkPhysicalDeviceFeatures2 base;
    VkPhysicalDeviceVulkan11Features vulkan11;
    VkPhysicalDeviceVulkan12Features vulkan12;
    VkPhysicalDeviceSubgroupSizeControlFeaturesEXT subgroup_size;
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT float_atomics;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix;
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV matrix2;
    VkPhysicalDeviceShaderAtomicFloat16VectorFeaturesNV f16_atomics;
    VkPhysicalDeviceMaintenance4Features maintenance4;
    VkPhysicalDeviceShaderMaximalReconvergenceFeaturesKHR reconvergence;
    VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR uniform_control_flow;
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables;
    VkPhysicalDeviceShaderObjectFeaturesEXT shader_object;
    VkPhysicalDeviceFaultFeaturesEXT fault;
    const char *extensions[GPU_MAX_EXTENSIONS];
    uint32_t extension_count;
};

/* Staging buffer and command buffer of gpu_upload and gpu_download. */
struct gpu_transfer {
    struct gpu_arena *arena; /* of the staging buffer; created at first use */
    struct gpu_buffer staging;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence fence;
};

/* Markers of a device's command buffers, see fault.c. */
struct gpu_markers {
    struct gpu_arena *arena;    /* of `reached`; NULL: the device writes no markers to a buffer */
    struct gpu_buffer reached;  /* number of the last marker; 0: no command is running */
    struct gpu_marker *entries; /* by number - 1 */
    uint32_t count;
};

/* Number of unused pipelines that a device keeps. A training run with its evaluation needs about
 * 30; a tuner creates any number. */
#define GPU_IDLE_PIPELINES 64u

/* Pipelines of a device, used and unused. */
struct gpu_pipeline_list {
    pthread_mutex_t lock;
    struct gpu_pipeline *first;
    uint32_t idle;     /* pipelines in the list without a user */
    uint64_t releases; /* counts gpu_pipeline_destroy calls that left a pipeline without a user */
};

struct gpu_device {
    struct base_guard guard;
    struct gpu_support support;
    struct gpu_features features; /* the enabled features */
    uint32_t index;               /* in gpu_list */
    VkPhysicalDevice physical;
    VkDevice handle;
    struct VolkDeviceTable vk;
    VkQueue queue;
    const volatile sig_atomic_t *stop; /* see gpu_set_stop_flag */
    bool hung;                         /* the device hung: waits fail, and nothing is destroyed */
    double wait_limit;                 /* seconds, see gpu_set_wait_limit */
    VkInstance instance;               /* the instance that `physical` belongs to */
    VkPhysicalDeviceMemoryProperties memory;
    uint64_t allocated;               /* bytes, see gpu_memory_allocated */
    struct gpu_arena *arenas;         /* list of the open arenas */
    uint64_t last_ticks;              /* last reading of the device clock, see gpu_extend_ticks */
    VkDescriptorSetLayout set_layout; /* layout of each set */
    VkPipelineLayout pipeline_layout;
    VkPipelineCache cache;
    char *cache_folder, *cache_path, *shader_dir;
    bool statistics; /* see gpu_options */
    struct base_progress progress;
    uint64_t cache_hash; /* hash of the cache file's data when it was read */
    struct gpu_transfer transfer;
    struct gpu_markers markers;
    struct gpu_pipeline_list pipelines;
    struct gpu_arena *dummy_arena;
    struct gpu_buffer dummy; /* bound where a pipeline has no buffer */
    struct gpu_self_test self_test;
    bool matrices_tested[GPU_MAX_MATRIX_SHAPES]; /* by index in capabilities.shapes */
};

/* ---- choose.c -------------------------------------------------------------------------------- */

/* Acquire and release the process's instance. Every successful acquire needs one release, except
 * for a hung device's. gpu_instance_abandon detaches the instance of a hung device: its users keep
 * it, and the next acquire creates another instance, because lavapipe's devices of one instance
 * share their threads. */
vkn_status gpu_instance_acquire(VkInstance *instance);
void gpu_instance_release(VkInstance instance);
void gpu_instance_abandon(VkInstance instance);
bool gpu_instance_is_abandoned(VkInstance instance);
/* Returns the instance's Vulkan version, at most the newest that this module uses. */
uint32_t gpu_instance_version(void);

/* A device with a higher index can be selected, but not skipped. */
#define GPU_MAX_CHOICES 64u
/* Selects the device that `wanted` (gpu_options.device) names; NULL: the best one that is not in
 * the bit mask of skipped indices. Reads device->statistics; fills in index, physical, support and
 * features. *another: whether a further usable device could be selected. */
vkn_status gpu_choose(VkInstance instance, const char *wanted, uint64_t skipped,
                      struct gpu_device *device, bool *another);

/* ---- validation.c ---------------------------------------------------------------------------- */

/* If VKNERF_VALIDATION=1 and the validation layer is installed, adds the layer and its message
 * callback to `info` and returns true. */
bool gpu_validation_request(VkInstanceCreateInfo *info);
/* Returns whether an instance of the process, even an abandoned one, uses the layer. */
bool gpu_validating(void);
/* Creates the messenger that logs the messages of the layer. */
VkDebugUtilsMessengerEXT gpu_validation_listen(VkInstance instance);

/* ---- capabilities.c -------------------------------------------------------------------------- */

/* Reads the features and limits of `physical`. `features` (may be NULL) receives the features to
 * enable; statistics of pipelines only if `statistics` is set. */
vkn_status gpu_support_read(VkPhysicalDevice physical, bool statistics, struct gpu_support *support,
                            struct gpu_features *features);

/* ---- features.c ------------------------------------------------------------------------------ */

struct gpu_extensions {
    VkExtensionProperties *entries; /* owned by the caller */
    uint32_t count;
};
vkn_status gpu_extensions_read(VkPhysicalDevice physical, const char *name,
                               struct gpu_extensions *extensions);
/* Sets the flags of the optional features that the device has and VKNERF_DISABLE does not list. */
void gpu_features_read(VkPhysicalDevice physical, const struct gpu_extensions *extensions,
                       struct gpu_support *support);
/* Fills in the feature chain and the extensions for vkCreateDevice from the flags in `support`. */
void gpu_features_enable(struct gpu_support *support, const struct gpu_extensions *extensions,
                         struct gpu_features *enabled);
/* Returns whether the comma-separated list in the environment variable holds `name`. */
bool gpu_environment_lists(const char *variable, const char *name);
/* Warns of unknown names in VKNERF_DISABLE. */
void gpu_check_disabled_names(void);

/* ---- matrix_shapes.c ------------------------------------------------------------------------- */

/* Lists the shapes of cooperative matrices; clears the capability if there are none. */
void gpu_read_matrix_shapes(VkPhysicalDevice physical, struct gpu_support *support);

/* ---- budget.c -------------------------------------------------------------------------------- */

/* Buffer sizes are rounded up to multiples of this, so that shaders can read whole vectors at the
 * end and fills reach every byte. */
#define GPU_BUFFER_GRANULE 16u /* bytes */
/* Returns the padded size of a buffer, without gaps to its neighbours; UINT64_MAX: overflow. */
uint64_t gpu_padded_size(uint64_t asked);

/* ---- memory.c -------------------------------------------------------------------------------- */

void gpu_transfer_destroy(struct gpu_device *device);

/* ---- cache.c --------------------------------------------------------------------------------- */

/* Returns the FNV-1a hash. */
uint64_t gpu_hash(const void *data, size_t size);
/* Load and save the pipeline cache; cache_dir: see gpu_options. */
vkn_status gpu_cache_open(struct gpu_device *device, const char *cache_dir);
void gpu_cache_close(struct gpu_device *device);
/* Header of a file with driver data, which drivers do not check themselves. It has 32 bytes, so
 * that the data after it has the alignment that shader binaries need. */
struct gpu_cache_header {
    char magic[16];     /* kind of the file and version of its layout */
    uint64_t key, hash; /* key: hash of the data's source (0: several sources); hash: of the data */
};
/* Fills in the header of a file of `size` bytes, header included. */
void gpu_cache_fill_header(void *file, size_t size, const char magic[16], uint64_t key);
/* Returns whether the file is complete and undamaged and has this magic and key. */
bool gpu_cache_valid(const void *file, size_t size, const char magic[16], uint64_t key);
/* Returns whether `path` is a regular file or does not exist: opening a pipe would block until it
 * has a reader. */
bool gpu_cache_may_replace(const char *path);

/* ---- recording.c ----------------------------------------------------------------------------- */

/* Record barriers: between any two uses of buffers on the queue; before the host reads. */
void gpu_device_barrier(const struct gpu_device *device, VkCommandBuffer commands);
void gpu_host_barrier(const struct gpu_device *device, VkCommandBuffer commands);
/* Submits a command buffer; `fence` (may be VK_NULL_HANDLE) signals its end. */
vkn_status gpu_queue_submit(struct gpu_device *device, VkCommandBuffer commands, VkFence fence,
                            const char *name);
/* Creates a pool, a command buffer and a fence; `name` is for messages. */
vkn_status gpu_command_create(struct gpu_device *device, const char *name, VkCommandPool *pool,
                              VkCommandBuffer *commands, VkFence *fence);

/* ---- wait.c ---------------------------------------------------------------------------------- */

/* Waits until a submission has finished and resets its fence. Fails as gpu_set_stop_flag says. */
vkn_status gpu_wait_for(struct gpu_device *device, VkFence fence, const char *name);
/* Returns VKN_NO_DEVICE if the device hung: further Vulkan calls could block. */
vkn_status gpu_check_hung(const struct gpu_device *device, const char *subject);
/* Seconds that a submission may take to finish after a stop request. Tests set it lower. */
extern double gpu_stop_timeout;
/* Returns the limit of waits, in seconds, on a device that runs a user's snippet:
 * VKNERF_FIELD_SECONDS, or 600. */
double gpu_snippet_seconds(void);

/* ---- fault.c --------------------------------------------------------------------------------- */

/* Records a marker, on devices that have them: `recording` begins `command` ("pass") `object`. The
 * texts live as long as the device. */
void gpu_mark(struct gpu_device *device, VkCommandBuffer commands, const char *recording,
              const char *command, const char *object);
/* Records that all commands have finished. */
void gpu_mark_end(struct gpu_device *device, VkCommandBuffer commands);
/* Like gpu_vulkan_fail; if the device was lost, the message names the command that was running and
 * has the driver's description, where the device offers them. */
vkn_status gpu_device_fail(const struct gpu_device *device, VkResult result, const char *call,
                           const char *subject);
/* Adds the command that is running on a hung device to the last error. Returns VKN_NO_DEVICE. */
vkn_status gpu_hang_fail(const struct gpu_device *device);

/* ---- clock.c --------------------------------------------------------------------------------- */

/* Extends a reading of the device clock, which may have wrapped, to a count that never wraps. */
uint64_t gpu_extend_ticks(struct gpu_device *device, uint64_t ticks);
/* Converts ticks of the device clock to seconds. */
double gpu_tick_seconds(const struct gpu_device *device, uint64_t ticks);

/* ---- execution_modes.c ----------------------------------------------------------------------- */

/* Returns a copy of the module (*count words of SPIR-V) with execution modes that the device
 * offers: maximal reconvergence of subgroups, else subgroup uniform control flow, except on CPU
 * devices; and float controls if the module uses f16. Sets *count to the copy's length. NULL:
 * unchanged. The caller frees the copy. */
uint32_t *gpu_add_execution_modes(const struct gpu_support *support, const uint32_t *words,
                                  size_t *count);

/* ---- executable.c ---------------------------------------------------------------------------- */

/* The Vulkan object that runs a shader: a pipeline or a shader object. */
struct gpu_executable {
    VkPipeline pipeline;
    VkShaderEXT shader; /* on devices with support.shader_objects */
};

/* Creates the object from SPIR-V, with the constants and the name of `options`. */
vkn_status gpu_executable_create(struct gpu_device *device,
                                 const struct gpu_pipeline_options *options, uint32_t subgroup_size,
                                 bool has_snippet, const uint32_t *words, size_t word_count,
                                 struct gpu_executable *executable);
void gpu_executable_destroy(struct gpu_device *device, const struct gpu_executable *executable);
/* Fills in the values of a pipeline's specialisation constants by id. Returns their number. */
uint32_t gpu_pipeline_constants(const struct gpu_pipeline_options *options, uint32_t subgroup_size,
                                uint32_t values[GPU_MAX_CONSTANTS]);
/* Returns the module (*count words), specialised and adapted to the device, in fresh memory, and
 * sets *count to the new length. NULL: unchanged. */
uint32_t *gpu_fit_module(const struct gpu_support *support, bool has_snippet,
                         const uint32_t *values, uint32_t value_count, const uint32_t *words,
                         size_t *count);

/* ---- pipeline.c ------------------------------------------------------------------------------ */

/* Create the empty list of pipelines, and destroy the list with its pipelines. */
void gpu_pipelines_open(struct gpu_device *device);
void gpu_pipelines_close(struct gpu_device *device);
/* Returns the number of the device's pipelines, unused ones included. */
uint32_t gpu_pipelines_kept(struct gpu_device *device);
struct gpu_executable gpu_pipeline_executable(const struct gpu_pipeline *pipeline);
const char *gpu_pipeline_name(const struct gpu_pipeline *pipeline);

/* ---- shader_objects.c ------------------------------------------------------------------------ */

/* Creates a shader object from the binary that an earlier process saved, else from SPIR-V; then
 * saves its binary. `stage`: the stage of the corresponding pipeline, without a module. */
vkn_status gpu_shader_create(struct gpu_device *device, const char *name,
                             const VkPipelineShaderStageCreateInfo *stage, const uint32_t *words,
                             size_t word_count, VkShaderEXT *created);

/* ---- statistics.c ---------------------------------------------------------------------------- */

/* Returns the processor time of the process, in seconds, including threads of the compiler. */
double gpu_processor_seconds(void);
/* Implements gpu_pipeline_statistics. */
struct cJSON *gpu_read_statistics(const struct gpu_device *device, VkPipeline pipeline,
                                  double compile_seconds);

/* ---- sizes of pipelines (executable.c, pipeline.c) ------------------------------------------- */

/* Ids of the specialisation constants that this module sets. */
#define GPU_SUBGROUP_SIZE 0u
#define GPU_LOCAL_SIZE    1u

uint32_t gpu_pipeline_local_size(const struct gpu_pipeline *pipeline);
uint32_t gpu_pipeline_subgroup_size(const struct gpu_pipeline *pipeline);

/* ---- bindings.c ------------------------------------------------------------------------------ */

/* Returns the GPU_SETS descriptor sets. */
const VkDescriptorSet *gpu_bindings_sets(const struct gpu_bindings *bindings);

/* ---- self_test.c ----------------------------------------------------------------------------- */

/* Tests the device and adjusts its capabilities; see struct gpu_self_test. */
vkn_status gpu_self_test_run(struct gpu_device *device);
void gpu_remove_matrix_shape(struct gpu_device *device, uint32_t index);
/* Switches off features whose tests have failed in the device's certificate, with warnings. */
void gpu_apply_certificate(struct gpu_device *device);
/* Test f32 sums (self_test_sums.c) and f16 numbers (self_test_f16.c), as parts of
 * gpu_self_test_run. */
vkn_status gpu_self_test_sums(struct gpu_device *device);
vkn_status gpu_self_test_f16(struct gpu_device *device);

/* ---- object names (in choose.c) -------------------------------------------------------------- */

/* Names a Vulkan object for validation layers and tools (Nsight, RGP, RenderDoc). Like
 * gpu_label_begin and gpu_label_end, does nothing without VK_EXT_debug_utils. */
void gpu_name(const struct gpu_device *device, VkObjectType type, uint64_t handle,
              const char *name);
/* Label the commands recorded between begin and end. Every begin needs an end in the same command
 * buffer. */
void gpu_label_begin(VkCommandBuffer commands, const char *name);
void gpu_label_end(VkCommandBuffer commands);

#endif
