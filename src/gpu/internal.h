/* What the files of the gpu room share; besides them only tests/gpu_fixture.h, to feign failures,
 * includes it. */
#ifndef GPU_INTERNAL_H
#define GPU_INTERNAL_H

#include <pthread.h>
#include <volk.h>

#include "gpu/gpu.h"

/* ---- errors ---------------------------------------------------------------------------------- */

/* Records "`subject`: vkX gave VK_ERROR_Y" and returns the status that it means. */
vkn_status gpu_vulkan_fail(VkResult result, const char *call, const char *subject);

/* Calls a Vulkan function and returns from the calling function when it fails. */
#define GPU_CALL(subject, function, ...)                                   \
    do {                                                                   \
        VkResult gpu_call_result = (function)(__VA_ARGS__);                \
        if (gpu_call_result < 0)                                           \
            return gpu_vulkan_fail(gpu_call_result, #function, (subject)); \
    } while (0)

/* ---- the device ------------------------------------------------------------------------------ */

/* What one device offers, as far as this room alone needs it. */
struct gpu_support {
    struct gpu_capabilities capabilities;
    bool memory_model;  /* cooperative matrices need it */
    bool maintenance4;  /* programs for cooperative matrices 2 need it */
    bool memory_budget; /* VK_EXT_memory_budget */
    bool calibrated_timestamps;
    bool maximal_reconvergence, subgroup_uniform_control_flow; /* see gpu_reconverge */
    bool non_semantic_info;   /* debug builds name their sources in SPIR-V */
    bool subgroup_required;   /* pipelines can say their subgroup size */
    bool pipeline_statistics; /* VK_KHR_pipeline_executable_properties, where they are asked for */
    bool shader_objects;      /* programs are shader objects, see shader_objects.c */
    uint32_t queue_family, timestamp_bits;
    VkPhysicalDeviceLimits limits;
    uint64_t max_allocation; /* bytes of one vkAllocateMemory */
};

/* What the room uses of extensions that the headers may be too old for. */
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

/* Everything that vkCreateDevice is told about optional features. */
#define GPU_MAX_EXTENSIONS 16
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
    const char *extensions[GPU_MAX_EXTENSIONS];
    uint32_t extension_count;
};

struct gpu_transfer {
    struct gpu_arena *arena; /* the staging buffer, made at first use */
    struct gpu_buffer staging;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence fence;
};

/* Most programs that are kept without a holder: what a training run and its evaluation use is some
 * thirty, what a tuner tries has no end. */
#define GPU_IDLE_PIPELINES 64u

struct gpu_programs {
    pthread_mutex_t lock;
    struct gpu_pipeline *first;
    uint32_t idle; /* of them, without a holder */
    uint64_t releases;
};

struct gpu_device {
    struct base_guard guard;
    struct gpu_support support;
    struct gpu_features features; /* enabled */
    uint32_t index;               /* as gpu_list counts */
    VkPhysicalDevice physical;
    VkDevice handle;
    struct VolkDeviceTable vk;
    VkQueue queue;
    const volatile sig_atomic_t *stop; /* see gpu_set_stop_flag */
    bool hung;                         /* given up: nothing of it is waited for or destroyed */
    double limit;                      /* see gpu_set_wait_limit */
    VkInstance instance;               /* that it is of */
    VkPhysicalDeviceMemoryProperties memory;
    uint64_t held;                    /* bytes allocated */
    struct gpu_arena *arenas;         /* all that are open */
    uint64_t last_ticks;              /* of the device's clock, see gpu_extend_ticks */
    VkDescriptorSetLayout set_layout; /* of each set */
    VkPipelineLayout pipeline_layout;
    VkPipelineCache cache;
    char *cache_folder, *cache_path, *shader_dir;
    bool statistics;     /* see gpu_options */
    uint64_t cache_hash; /* of the cache file's content when it was read */
    struct gpu_transfer transfer;
    struct gpu_programs pipelines;
    struct gpu_arena *dummy_arena;
    struct gpu_buffer dummy; /* bound where a program has no buffer */
    struct gpu_self_test self_test;
    bool matrices_tested[GPU_MAX_MATRIX_SHAPES]; /* as capabilities.shapes */
};

/* ---- choose.c -------------------------------------------------------------------------------- */

/* The process's instance; every successful acquire needs one release, but that of a device that was
 * given up. Once abandoned, it stays for its users, and the next acquire makes another: lavapipe's
 * devices of one instance share their threads. */
vkn_status gpu_instance_acquire(VkInstance *instance);
void gpu_instance_release(VkInstance instance);
void gpu_instance_abandon(VkInstance instance);
bool gpu_instance_is_abandoned(VkInstance instance);
/* The Vulkan version that the room uses of it. */
uint32_t gpu_instance_version(void);

/* Devices of higher indices can be asked for, but not passed over. */
#define GPU_MAX_CHOICES 64u
/* Picks the device that `wanted` (see gpu_options) means, but none of `passed` (bits by index) when
 * that is NULL, and fills index, physical, support and features, by its `statistics`. *another:
 * there is a usable one left that could be taken instead. */
vkn_status gpu_choose(VkInstance instance, const char *wanted, uint64_t skipped,
                      struct gpu_device *device, bool *another);

/* ---- validation.c ---------------------------------------------------------------------------- */

/* With VKNERF_VALIDATION=1 and the layer installed: adds both to `info` and returns true. */
bool gpu_validation_request(VkInstanceCreateInfo *info);
/* True while an instance of the process, an abandoned one included, runs under the layer. */
bool gpu_validating(void);
/* Sends what the layer says to the log. */
VkDebugUtilsMessengerEXT gpu_validation_listen(VkInstance instance);

/* ---- capabilities.c -------------------------------------------------------------------------- */

/* Reads what `physical` offers; `features` (may be NULL) receives what to enable, programs'
 * statistics only with `statistics`. */
vkn_status gpu_support_read(VkPhysicalDevice physical, bool statistics, struct gpu_support *support,
                            struct gpu_features *features);

/* ---- features.c ------------------------------------------------------------------------------ */

struct gpu_extensions {
    VkExtensionProperties *entries; /* the caller frees */
    uint32_t count;
};
vkn_status gpu_extensions_read(VkPhysicalDevice physical, const char *name,
                               struct gpu_extensions *extensions);
/* Sets the flags of the optional features that the device has and that are not switched off. */
void gpu_features_read(VkPhysicalDevice physical, const struct gpu_extensions *extensions,
                       struct gpu_support *support);
/* Fills the chain and the extension list for vkCreateDevice with what is still flagged. */
void gpu_features_enable(struct gpu_support *support, const struct gpu_extensions *extensions,
                         struct gpu_features *enabled);
/* True when the comma-separated list in that variable holds `name`. */
bool gpu_environment_lists(const char *variable, const char *name);
/* Warns of entries of VKNERF_DISABLE that nothing knows. */
void gpu_check_disabled_names(void);

/* ---- matrix_shapes.c ------------------------------------------------------------------------- */

/* Lists the cooperative-matrix shapes; clears the capability when there are none. */
void gpu_read_matrix_shapes(VkPhysicalDevice physical, struct gpu_support *support);

/* ---- budget.c -------------------------------------------------------------------------------- */

/* Buffers are padded to this, so that vectors can be read at the end and fills reach every byte. */
#define GPU_BUFFER_GRANULE 16u
/* What a buffer takes, gaps between neighbours aside; UINT64_MAX where the number does not hold it.
 */
uint64_t gpu_padded_size(uint64_t asked);

/* ---- memory.c -------------------------------------------------------------------------------- */

void gpu_transfer_destroy(struct gpu_device *device);

/* ---- cache.c --------------------------------------------------------------------------------- */

/* FNV-1a */
uint64_t gpu_hash(const void *data, size_t size);
vkn_status gpu_cache_open(struct gpu_device *device, const char *cache_dir);
void gpu_cache_close(struct gpu_device *device);
/* In front of a driver's data on disk, which drivers do not check themselves: 32 bytes, so that the
 * data is aligned as shader binaries have to be. */
struct gpu_cache_header {
    char magic[16];     /* what the file is, and the number of its layout */
    uint64_t key, hash; /* of what the data was made from (0: of many things); of the data */
};
/* Fills in the header of a file of `size` bytes. */
void gpu_cache_fill_header(void *file, size_t size, const char magic[16], uint64_t key);
/* Whether a file's data is whole and of that key. */
bool gpu_cache_valid(const void *file, size_t size, const char magic[16], uint64_t key);
/* Whether there is a file or nothing: opening a pipe would wait for its reader. */
bool gpu_cache_may_replace(const char *path);

/* ---- recording.c ----------------------------------------------------------------------------- */

/* Between all that this room does on a queue; before the host reads what was written there. */
void gpu_device_barrier(const struct gpu_device *device, VkCommandBuffer commands);
void gpu_host_barrier(const struct gpu_device *device, VkCommandBuffer commands);
/* Submits one command buffer; `name` is for messages. */
vkn_status gpu_queue_submit(struct gpu_device *device, VkCommandBuffer commands, VkFence fence,
                            const char *name);
vkn_status gpu_command_create(struct gpu_device *device, const char *name, VkCommandPool *pool,
                              VkCommandBuffer *commands, VkFence *fence);

/* ---- wait.c ---------------------------------------------------------------------------------- */

/* Waits for a submission's end and readies its fence for the next; see gpu_set_stop_flag. */
vkn_status gpu_wait_for(struct gpu_device *device, VkFence fence, const char *name);
/* VKN_NO_DEVICE when the device was given up: drivers' calls would wait for what hangs. */
vkn_status gpu_check_hung(const struct gpu_device *device, const char *subject);
/* Seconds that a device may take to come to an end after a stop; tests have less. */
extern double gpu_stop_timeout;
/* Limit of waits on a device that runs a user's snippet: VKNERF_FIELD_SECONDS, else ten minutes. */
double gpu_snippet_seconds(void);

/* ---- clock.c --------------------------------------------------------------------------------- */

/* A timestamp that does not wrap, from one that may. */
uint64_t gpu_extend_ticks(struct gpu_device *device, uint64_t ticks);
double gpu_tick_seconds(const struct gpu_device *device, uint64_t ticks);

/* ---- reconverge.c ---------------------------------------------------------------------------- */

/* The module, *count words of SPIR-V, with the best of those extensions that the device has, in
 * fresh memory; *count becomes its words. NULL: as it is. */
uint32_t *gpu_reconverge(const struct gpu_support *support, const uint32_t *words, size_t *count);

/* ---- executable.c ---------------------------------------------------------------------------- */

/* What a program is to the driver: one of the two. */
struct gpu_executable {
    VkPipeline pipeline;
    VkShaderEXT shader; /* on devices with support.shader_objects */
};

/* Creates it from SPIR-V, with the constants and the name of `options`. `snippet`: it has a user's.
 */
vkn_status gpu_executable_create(struct gpu_device *device,
                                 const struct gpu_pipeline_options *options, uint32_t subgroup_size,
                                 bool snippet, const uint32_t *words, size_t word_count,
                                 struct gpu_executable *executable);
void gpu_executable_destroy(struct gpu_device *device, const struct gpu_executable *executable);
/* Fills the values of a program's specialisation constants by id, and returns how many there are.
 */
uint32_t gpu_pipeline_constants(const struct gpu_pipeline_options *options, uint32_t subgroup_size,
                                uint32_t values[GPU_MAX_CONSTANTS]);
/* Returns the module, *count words, specialised and in the form that the device takes, in fresh
 * memory; *count becomes its words. NULL: as it is. `snippet`: it has a user's. */
uint32_t *gpu_fit_module(const struct gpu_support *support, bool snippet, const uint32_t *values,
                         uint32_t value_count, const uint32_t *words, size_t *count);

/* ---- pipeline.c -------------------------------------------------------------------------------
 */

void gpu_pipelines_open(struct gpu_device *device);
void gpu_pipelines_close(struct gpu_device *device);
/* Programs of the device, those without a holder included. */
uint32_t gpu_pipelines_kept(struct gpu_device *device);
struct gpu_executable gpu_pipeline_executable(const struct gpu_pipeline *pipeline);
const char *gpu_pipeline_name(const struct gpu_pipeline *pipeline);

/* ---- shader_objects.c ------------------------------------------------------------------------ */

/* Creates the shader object of a program, from the binary that an earlier process has kept, else
 * from SPIR-V, and keeps its binary. `stage` is that of the program's pipeline, without a module.
 */
vkn_status gpu_shader_create(struct gpu_device *device, const char *name,
                             const VkPipelineShaderStageCreateInfo *stage, const uint32_t *words,
                             size_t word_count, VkShaderEXT *created);

/* ---- statistics.c ---------------------------------------------------------------------------- */

/* Processor time of the whole process: some compilers have threads of their own. */
double gpu_processor_seconds(void);
/* See gpu_pipeline_statistics. */
struct cJSON *gpu_read_statistics(const struct gpu_device *device, VkPipeline pipeline,
                                  double compile_seconds);

/* ---- bindings.c ------------------------------------------------------------------------------ */

/* Ids of the specialisation constants that this room sets. */
#define GPU_SUBGROUP_SIZE 0u
#define GPU_LOCAL_SIZE    1u

uint32_t gpu_pipeline_local_size(const struct gpu_pipeline *pipeline);
uint32_t gpu_pipeline_subgroup_size(const struct gpu_pipeline *pipeline);

/* GPU_SETS of them. */
const VkDescriptorSet *gpu_bindings_sets(const struct gpu_bindings *bindings);

/* ---- self_test.c ----------------------------------------------------------------------------- */

vkn_status gpu_self_test_run(struct gpu_device *device);

/* ---- names, in choose.c ---------------------------------------------------------------------- */

/* Names a Vulkan object for layers and tools (Nsight, RGP, RenderDoc). Does nothing, as the next
 * two, without VK_EXT_debug_utils. */
void gpu_name(const struct gpu_device *device, VkObjectType type, uint64_t handle,
              const char *name);
/* What is recorded between has that name there; every begin needs its end in the same commands. */
void gpu_label_begin(VkCommandBuffer commands, const char *name);
void gpu_label_end(VkCommandBuffer commands);

#endif
