/* Reads the device clock, converts its ticks to seconds, and relates it to the host's clock. */
#include "gpu/internal.h"

/* Ticks count modulo 2^timestamp_bits. Successive readings, in any order, differ by less than half
 * of that range, so the value nearest to the last reading is the right one. */
uint64_t gpu_extend_ticks(struct gpu_device *device, uint64_t ticks)
{
    uint32_t unused = 64 - device->support.timestamp_bits;
    if (device->last_ticks == 0)
        device->last_ticks = ticks;
    int64_t passed = (int64_t)((ticks - device->last_ticks) << unused) >> unused;
    device->last_ticks += (uint64_t)passed;
    return device->last_ticks;
}

double gpu_tick_seconds(const struct gpu_device *device, uint64_t ticks)
{
    return (double)ticks * device->support.capabilities.timestamp_period * 1e-9;
}

/* Returns whether the driver can read the device clock and the clock of base_seconds() at the same
 * time. */
static bool offers_domains(const struct gpu_device *device)
{
    VkTimeDomainEXT domains[16];
    uint32_t count = BASE_COUNT(domains);
    bool has_device = false, has_monotonic = false;
    if (vkGetPhysicalDeviceCalibrateableTimeDomainsEXT(device->physical, &count, domains) < 0)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        has_device = has_device || domains[i] == VK_TIME_DOMAIN_DEVICE_EXT;
        has_monotonic = has_monotonic || domains[i] == VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
    }
    return has_device && has_monotonic;
}

bool gpu_read_clocks(struct gpu_device *device, struct gpu_clocks *clocks)
{
    const VkCalibratedTimestampInfoEXT infos[] = {
        {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT,
         .timeDomain = VK_TIME_DOMAIN_DEVICE_EXT},
        {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT,
         .timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT},
    };
    uint64_t times[BASE_COUNT(infos)], deviation = 0;
    if (!device->support.calibrated_timestamps ||
        device->support.capabilities.timestamp_period <= 0 || !offers_domains(device))
        return false;
    if (device->vk.vkGetCalibratedTimestampsEXT(device->handle, BASE_COUNT(infos), infos, times,
                                                &deviation) < 0)
        return false;
    *clocks = (struct gpu_clocks){
        .device = gpu_tick_seconds(device, gpu_extend_ticks(device, times[0])),
        .host = (double)times[1] * 1e-9,
        .deviation = (double)deviation * 1e-9,
    };
    return true;
}
