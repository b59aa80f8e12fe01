/* Copies between host memory and buffers, and waits for the copies. */
#include "gpu/internal.h"

#include <string.h>

#define STAGING_BYTES ((uint64_t)16 << 20)

static vkn_status prepare(struct gpu_device *device)
{
    struct gpu_transfer *transfer = &device->transfer;
    if (!transfer->arena) {
        struct gpu_buffer_request request = {&transfer->staging, "staging", STAGING_BYTES,
                                             GPU_HOST};
        BASE_TRY(gpu_arena_create(device, &request, 1, &transfer->arena));
    }
    if (!transfer->fence)
        BASE_TRY(gpu_command_create(device, "transfer", &transfer->pool, &transfer->commands,
                                    &transfer->fence));
    return VKN_OK;
}

void gpu_transfer_destroy(struct gpu_device *device)
{
    struct gpu_transfer *transfer = &device->transfer;
    device->vk.vkDestroyFence(device->handle, transfer->fence, NULL);
    device->vk.vkDestroyCommandPool(device->handle, transfer->pool, NULL);
    gpu_arena_destroy(&transfer->arena);
}

/* Copies one chunk and waits for it; if `from` is NULL, only waits for all earlier submissions. */
static vkn_status run(struct gpu_device *device, const struct gpu_buffer *from,
                      uint64_t from_offset, const struct gpu_buffer *to, uint64_t to_offset,
                      uint64_t size)
{
    struct gpu_transfer *transfer = &device->transfer;
    BASE_TRY(gpu_check_hung(device, to->name));
    VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    GPU_CALL(to->name, device->vk.vkBeginCommandBuffer, transfer->commands, &begin);
    gpu_device_barrier(device, transfer->commands);
    if (from) {
        VkBufferCopy region = {.srcOffset = from_offset, .dstOffset = to_offset, .size = size};
        device->vk.vkCmdCopyBuffer(transfer->commands, from->handle, to->handle, 1, &region);
        gpu_host_barrier(device, transfer->commands);
    }
    GPU_CALL(to->name, device->vk.vkEndCommandBuffer, transfer->commands);
    BASE_TRY(gpu_queue_submit(device, transfer->commands, transfer->fence, to->name));
    return gpu_wait_for(device, transfer->fence, to->name);
}

static vkn_status check_range(const struct gpu_buffer *buffer, uint64_t offset, uint64_t size)
{
    if (offset > buffer->size || size > buffer->size - offset)
        return base_fail(VKN_ERROR, "%s: bytes %llu + %llu are outside of its %llu", buffer->name,
                         (unsigned long long)offset, (unsigned long long)size,
                         (unsigned long long)buffer->size);
    return VKN_OK;
}

vkn_status gpu_upload(struct gpu_device *device, const struct gpu_buffer *buffer, uint64_t offset,
                      const void *data, uint64_t size)
{
    BASE_TRY(check_range(buffer, offset, size));
    BASE_TRY(prepare(device));
    if (buffer->mapped) {
        BASE_TRY(run(device, NULL, 0, buffer, 0, 0));
        memcpy((char *)buffer->mapped + offset, data, size);
        return VKN_OK;
    }
    const struct gpu_buffer *staging = &device->transfer.staging;
    for (uint64_t done = 0; done < size;) {
        uint64_t chunk = size - done < STAGING_BYTES ? size - done : STAGING_BYTES;
        memcpy(staging->mapped, (const char *)data + done, chunk);
        BASE_TRY(run(device, staging, 0, buffer, offset + done, chunk));
        done += chunk;
    }
    return VKN_OK;
}

vkn_status gpu_download(struct gpu_device *device, const struct gpu_buffer *buffer, uint64_t offset,
                        void *data, uint64_t size)
{
    BASE_TRY(check_range(buffer, offset, size));
    BASE_TRY(prepare(device));
    if (buffer->mapped) {
        BASE_TRY(run(device, NULL, 0, buffer, 0, 0));
        memcpy(data, (const char *)buffer->mapped + offset, size);
        return VKN_OK;
    }
    const struct gpu_buffer *staging = &device->transfer.staging;
    for (uint64_t done = 0; done < size;) {
        uint64_t chunk = size - done < STAGING_BYTES ? size - done : STAGING_BYTES;
        BASE_TRY(run(device, buffer, offset + done, staging, 0, chunk));
        memcpy((char *)data + done, staging->mapped, chunk);
        done += chunk;
    }
    return VKN_OK;
}
