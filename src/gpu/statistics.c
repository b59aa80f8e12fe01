/* Reads the statistics of a driver's compiler for a pipeline
 * (VK_KHR_pipeline_executable_properties). */
#include "gpu/internal.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Statistics with the same meaning on all drivers, and their names on RADV, NVK, ANV and NVIDIA.
 * NULL: the driver does not report the statistic. */
#define DRIVERS 4
static const struct {
    const char *name; /* key in the JSON object */
    const char *reported[DRIVERS];
} statistics[] = {
    /* Per invocation; Intel reports only how many are live at once. */
    {"registers", {"VGPRs", "Number of GPRs", "Max live registers", "Register Count"}},
    {"spilled", {"Spilled VGPRs", "Spills to memory", "Spills", NULL}},
    /* Per subgroup on RADV and ANV, per invocation on NVK and NVIDIA. */
    {"scratch_bytes", {"Scratch size", "SLM size", "Scratch Memory Size", "Local Memory Size"}},
    {"shared_bytes", {"LDS size", NULL, "Workgroup Memory Size", "Shared Memory Size"}},
    {"code_bytes", {"Code size", "Code size", "Code size", "Binary Size"}},
    /* Resident subgroups that registers and shared memory allow, per SIMD or SM. */
    {"occupancy", {"Subgroups per SIMD", "Max warps/SM", NULL, NULL}},
    {"instructions", {"Instructions", "Instruction count", "Instructions", NULL}},
    /* Estimate for one subgroup by itself. */
    {"cycles", {"Latency", "Static cycle count", "Cycles", NULL}},
    /* Per subgroup, with many subgroups in flight. */
    {"busy_cycles", {"Inverse Throughput", NULL, NULL, NULL}},
};

/* Statistics of drivers that use other units, or one of the names above for something else. */
enum { HONEYKRISP = 26 }; /* VK_DRIVER_ID_MESA_HONEYKRISP, which older headers lack */
#define PER_SUBGROUP 0
static const struct {
    uint32_t driver; /* VkDriverId */
    const char *reported, *name;
    double unit; /* factor to the unit above; PER_SUBGROUP: invocations become subgroups */
} other_units[] = {
    {HONEYKRISP, "GPRs", "registers", 0.5}, /* of 16 bits */
    {HONEYKRISP, "Scratch", "scratch_bytes", 1},
    {HONEYKRISP, "Threads", "occupancy", PER_SUBGROUP},
    {VK_DRIVER_ID_MESA_TURNIP, "Registers used", "registers", 4}, /* of four components */
    {VK_DRIVER_ID_MESA_TURNIP, "STP Count", "spilled", 1},
    {VK_DRIVER_ID_MESA_TURNIP, "Code size", "code_bytes", 4},
    {VK_DRIVER_ID_MESA_TURNIP, "Max Waves Per Core", "occupancy", 1},
    {VK_DRIVER_ID_MESA_TURNIP, "Instruction Count", "instructions", 1},
};

double gpu_processor_seconds(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double value_of(const VkPipelineExecutableStatisticKHR *statistic)
{
    switch (statistic->format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
        return (double)statistic->value.i64;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
        return (double)statistic->value.u64;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
        return statistic->value.f64;
    default:
        return statistic->value.b32;
    }
}

/* Sets a field. If a driver creates several executables for a pipeline, the last one counts. */
static void set(cJSON *json, const char *name, double value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(json, name);
    if (isfinite(value))
        cJSON_AddNumberToObject(json, name, value);
}

/* Adds a statistic whose unit differs on the driver; returns false if there is none of this name.
 */
static bool add_converted(uint32_t driver, cJSON *json, const char *reported, double value)
{
    for (size_t i = 0; i < BASE_COUNT(other_units); i++) {
        if (driver != other_units[i].driver || strcmp(other_units[i].reported, reported) != 0)
            continue;
        const cJSON *subgroup = cJSON_GetObjectItemCaseSensitive(json, "subgroup_size");
        double unit = other_units[i].unit;
        set(json, other_units[i].name,
            unit == PER_SUBGROUP ? value / subgroup->valuedouble : value * unit);
        return true;
    }
    return false;
}

static void add(uint32_t driver_id, cJSON *json, cJSON *reported,
                const VkPipelineExecutableStatisticKHR *statistic)
{
    double value = value_of(statistic);
    set(reported, statistic->name, value);
    if (add_converted(driver_id, json, statistic->name, value))
        return;
    for (size_t i = 0; i < BASE_COUNT(statistics); i++)
        for (size_t driver = 0; driver < DRIVERS; driver++) {
            const char *name = statistics[i].reported[driver];
            if (!name || strcmp(name, statistic->name) != 0)
                continue;
            set(json, statistics[i].name, value);
            break;
        }
}

static void read_executable(const struct gpu_device *device, VkPipeline pipeline, uint32_t index,
                            cJSON *json, cJSON *reported)
{
    const VkPipelineExecutableInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR,
        .pipeline = pipeline,
        .executableIndex = index,
    };
    uint32_t count = 0;
    PFN_vkGetPipelineExecutableStatisticsKHR get = device->vk.vkGetPipelineExecutableStatisticsKHR;
    if (get(device->handle, &info, &count, NULL) < 0 || !count)
        return;
    VkPipelineExecutableStatisticKHR *list = base_alloc(count, sizeof *list);
    for (uint32_t i = 0; list && i < count; i++)
        list[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    if (list && get(device->handle, &info, &count, list) >= 0)
        for (uint32_t i = 0; i < count; i++)
            add(device->support.capabilities.driver_id, json, reported, &list[i]);
    free(list);
}

#define MAX_EXECUTABLES 8u

cJSON *gpu_read_statistics(const struct gpu_device *device, VkPipeline pipeline,
                           double compile_seconds)
{
    VkPipelineExecutablePropertiesKHR executables[MAX_EXECUTABLES];
    const VkPipelineInfoKHR info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR,
                                    .pipeline = pipeline};
    uint32_t count = BASE_COUNT(executables);
    for (uint32_t i = 0; i < count; i++)
        executables[i] = (VkPipelineExecutablePropertiesKHR){
            .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR};
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "compile_ms", 1e3 * compile_seconds);
    cJSON *reported = cJSON_AddObjectToObject(json, "told");
    if (device->support.pipeline_statistics && device->vk.vkGetPipelineExecutablePropertiesKHR(
                                                   device->handle, &info, &count, executables) >= 0)
        for (uint32_t i = 0; i < count; i++) {
            set(json, "subgroup_size", executables[i].subgroupSize);
            read_executable(device, pipeline, i, json, reported);
        }
    return json;
}
