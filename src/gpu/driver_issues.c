/* Lists reported faults of drivers that the self-test does not find. */
#include "gpu/internal.h"

#define ANY_TYPE (-1)

struct row {
    VkDriverId driver;
    int type;        /* enum gpu_device_type, or ANY_TYPE */
    uint32_t device; /* device id; 0: any */
    /* First driver version without the fault, as the driver encodes versions; 0: none is known. */
    uint32_t fixed;
    struct gpu_driver_issue issue;
};

#define RX_6800_XT     0x73bfu
/* The version after the newest one that is known to crash. */
#define AMD_IGPU_FIXED VK_MAKE_VERSION(2, 0, 389)

static const struct row rows[] = {
    /* GPUOpen-Drivers/AMDVLK issue 422. */
    {VK_DRIVER_ID_AMD_PROPRIETARY,
     GPU_INTEGRATED,
     0,
     AMD_IGPU_FIXED,
     {"crashes when an integrated GPU's matrix shapes are listed; matrices are not used",
      "take Mesa's RADV, or a newer driver", false, true}},
    {VK_DRIVER_ID_AMD_OPEN_SOURCE,
     GPU_INTEGRATED,
     0,
     AMD_IGPU_FIXED,
     {"crashes when an integrated GPU's matrix shapes are listed; matrices are not used",
      "take Mesa's RADV, or a newer driver", false, true}},
    /* ggml-org/llama.cpp pull request 11074. */
    {VK_DRIVER_ID_AMD_PROPRIETARY,
     GPU_DISCRETE,
     0,
     0,
     {"offers matrices on GPUs without matrix units, where they are slow",
      "leave --precision at auto, which measures", false, false}},
    {VK_DRIVER_ID_AMD_OPEN_SOURCE,
     GPU_DISCRETE,
     0,
     0,
     {"offers matrices on GPUs without matrix units, where they are slow",
      "leave --precision at auto, which measures", false, false}},
    /* ggml-org/llama.cpp pull requests 10597 and 10721. */
    {VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA,
     ANY_TYPE,
     0,
     VK_MAKE_VERSION(24, 3, 1),
     {"computes matrices without matrix units, slowly, before Mesa 24.3.1",
      "update Mesa, or leave --precision at auto, which measures", false, false}},
    /* Mesa 24.1 is the first release that does not call NVK experimental. */
    {VK_DRIVER_ID_MESA_NVK,
     ANY_TYPE,
     0,
     VK_MAKE_VERSION(24, 1, 0),
     {"is experimental before Mesa 24.1: wrong results and hangs",
      "update Mesa, or use NVIDIA's own driver", true, false}},
    /* The driver prints this itself when it starts. */
    {VK_DRIVER_ID_MESA_DOZEN,
     ANY_TYPE,
     0,
     0,
     {"is not a conformant Vulkan driver: results may be wrong",
      "use the GPU's own driver, or the CPU with --device llvmpipe", true, false}},
    /* Seen on one card, in f32 sums by compare-and-swap, with an unknown driver. The self-test sums
     * so under contention, but need not meet the fault. */
    {VK_DRIVER_ID_AMD_PROPRIETARY,
     GPU_DISCRETE,
     RX_6800_XT,
     0,
     {"has added wrongly by compare-and-swap", "no --set gradient_sums=cas", false, false}},
    {VK_DRIVER_ID_MESA_RADV,
     GPU_DISCRETE,
     RX_6800_XT,
     0,
     {"has added wrongly by compare-and-swap", "no --set gradient_sums=cas", false, false}},
};

static bool concerns(const struct row *row, const struct gpu_capabilities *device)
{
    return (uint32_t)row->driver == device->driver_id &&
           (row->type == ANY_TYPE || row->type == (int)device->type) &&
           (row->device == 0 || row->device == device->device_id) &&
           (row->fixed == 0 || device->driver_version < row->fixed);
}

size_t gpu_driver_issues(const struct gpu_capabilities *device,
                         struct gpu_driver_issue issues[GPU_MAX_DRIVER_ISSUES])
{
    size_t count = 0;
    for (size_t i = 0; i < BASE_COUNT(rows) && count < GPU_MAX_DRIVER_ISSUES; i++)
        if (concerns(&rows[i], device))
            issues[count++] = rows[i].issue;
    return count;
}
