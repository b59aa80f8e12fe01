/* Finds what a device was doing when it was lost or hung: markers in command buffers
 * (VK_AMD_buffer_marker, else VK_NV_device_diagnostic_checkpoints) name the pass, and
 * VK_EXT_device_fault has the driver's description. Without the extensions nothing is recorded. */
#include "gpu/internal.h"

#include <stdlib.h>
#include <string.h>

/* What a marker says: the command that begins. All texts are literals or live as long. */
struct gpu_marker {
    const char *recording, *command, *object; /* "training step", "pass", "field_backward" */
};

/* ---- recording ------------------------------------------------------------------------------- */

/* Returns the number of a marker, from 1; 0: out of memory. */
static uint32_t number_of(struct gpu_markers *markers, const struct gpu_marker *wanted)
{
    for (uint32_t i = 0; i < markers->count; i++)
        if (memcmp(&markers->entries[i], wanted, sizeof *wanted) == 0)
            return i + 1;
    struct gpu_marker *more = realloc(markers->entries, (markers->count + 1) * sizeof *more);
    if (!more)
        return 0;
    markers->entries = more;
    more[markers->count++] = *wanted;
    return markers->count;
}

/* Writes the number when all commands before `stage` of the queue are over: the top of the pipe
 * does not wait, and only barriers keep it behind earlier passes. */
static void write_marker(struct gpu_device *device, VkCommandBuffer commands,
                         VkPipelineStageFlagBits stage, uint32_t number)
{
    if (device->markers.arena)
        device->vk.vkCmdWriteBufferMarkerAMD(commands, stage, device->markers.reached.handle, 0,
                                             number);
    else
        device->vk.vkCmdSetCheckpointNV(commands, (const void *)(uintptr_t)number);
}

void gpu_mark(struct gpu_device *device, VkCommandBuffer commands, const char *recording,
              const char *command, const char *object)
{
    const struct gpu_marker marker = {recording, command, object};
    if (device->markers.arena || device->support.checkpoints)
        write_marker(device, commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                     number_of(&device->markers, &marker));
}

void gpu_mark_end(struct gpu_device *device, VkCommandBuffer commands)
{
    if (device->markers.arena || device->support.checkpoints)
        write_marker(device, commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0);
}

/* ---- reading --------------------------------------------------------------------------------- */

#define MOST_CHECKPOINTS 16u

/* Returns the checkpoint that the top of the pipe of a lost device reached; 0: none. */
static uint32_t read_checkpoint(const struct gpu_device *device)
{
    VkCheckpointDataNV data[MOST_CHECKPOINTS];
    uint32_t count = MOST_CHECKPOINTS;
    for (uint32_t i = 0; i < count; i++)
        data[i] = (VkCheckpointDataNV){.sType = VK_STRUCTURE_TYPE_CHECKPOINT_DATA_NV};
    device->vk.vkGetQueueCheckpointDataNV(device->queue, &count, data);
    for (uint32_t i = 0; i < count; i++)
        if (data[i].stage == VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT)
            return (uint32_t)(uintptr_t)data[i].pCheckpointMarker;
    return 0;
}

static void describe_pass(const struct gpu_device *device, bool lost, struct base_text *text)
{
    const struct gpu_markers *markers = &device->markers;
    uint32_t number = 0;
    if (markers->arena)
        number = *(const volatile uint32_t *)markers->reached.mapped;
    else if (device->support.checkpoints && lost)
        number = read_checkpoint(device);
    if (number == 0 || number > markers->count)
        return;
    const struct gpu_marker *marker = &markers->entries[number - 1];
    base_text_add(text, "; the last command that began is the %s %s of \"%s\"", marker->command,
                  marker->object, marker->recording);
}

static const char *address_kind(VkDeviceFaultAddressTypeEXT type)
{
    switch (type) {
    case VK_DEVICE_FAULT_ADDRESS_TYPE_READ_INVALID_EXT:
        return "invalid read at";
    case VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_EXT:
        return "invalid write at";
    case VK_DEVICE_FAULT_ADDRESS_TYPE_EXECUTE_INVALID_EXT:
        return "invalid execution at";
    default:
        return "instruction at";
    }
}

#define MOST_FAULTS 4u /* addresses, and texts of the vendor, in a message */

static void describe_fault(const struct gpu_device *device, struct base_text *text)
{
    VkDeviceFaultAddressInfoEXT addresses[MOST_FAULTS];
    VkDeviceFaultVendorInfoEXT vendor[MOST_FAULTS];
    VkDeviceFaultCountsEXT counts = {.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_COUNTS_EXT};
    VkDeviceFaultInfoEXT info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_EXT,
        .pAddressInfos = addresses,
        .pVendorInfos = vendor,
    };
    if (!device->support.device_fault ||
        device->vk.vkGetDeviceFaultInfoEXT(device->handle, &counts, NULL) < 0)
        return;
    counts.addressInfoCount =
        counts.addressInfoCount < MOST_FAULTS ? counts.addressInfoCount : MOST_FAULTS;
    counts.vendorInfoCount =
        counts.vendorInfoCount < MOST_FAULTS ? counts.vendorInfoCount : MOST_FAULTS;
    counts.vendorBinarySize = 0;
    if (device->vk.vkGetDeviceFaultInfoEXT(device->handle, &counts, &info) < 0)
        return;
    base_text_add(text, "; the driver reports: %.*s", (int)sizeof info.description,
                  info.description);
    for (uint32_t i = 0; i < counts.vendorInfoCount; i++)
        base_text_add(text, ", %.*s (code %#llx, data %#llx)", (int)sizeof vendor[i].description,
                      vendor[i].description, (unsigned long long)vendor[i].vendorFaultCode,
                      (unsigned long long)vendor[i].vendorFaultData);
    for (uint32_t i = 0; i < counts.addressInfoCount; i++)
        if (addresses[i].addressType != VK_DEVICE_FAULT_ADDRESS_TYPE_NONE_EXT)
            base_text_add(text, ", %s %#llx", address_kind(addresses[i].addressType),
                          (unsigned long long)addresses[i].reportedAddress);
}

vkn_status gpu_device_fail(const struct gpu_device *device, VkResult result, const char *call,
                           const char *subject)
{
    struct base_text text = {0};
    vkn_status status = gpu_vulkan_fail(result, call, subject);
    if (result != VK_ERROR_DEVICE_LOST)
        return status;
    describe_pass(device, true, &text);
    describe_fault(device, &text);
    if (text.data && !text.failed)
        base_fail(status, "%s%s", vkn_last_error(), text.data);
    free(text.data);
    return status;
}

vkn_status gpu_hang_fail(const struct gpu_device *device)
{
    struct base_text text = {0};
    describe_pass(device, false, &text);
    vkn_status status = base_fail(VKN_NO_DEVICE, "%s%s", vkn_last_error(),
                                  text.data && !text.failed ? text.data : "");
    free(text.data);
    return status;
}
