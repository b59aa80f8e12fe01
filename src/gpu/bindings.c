/* Creates descriptor sets with all buffers. */
#include "gpu/internal.h"

#include <stdlib.h>

struct gpu_bindings {
    struct gpu_device *device;
    VkDescriptorPool pool;
    VkDescriptorSet sets[GPU_SETS];
    struct gpu_arena *arena;
    struct gpu_buffer addresses;
};

static vkn_status create_sets(struct gpu_device *device, struct gpu_bindings *bindings)
{
    VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, GPU_BINDINGS};
    VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = GPU_SETS,
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    GPU_CALL("bindings", device->vk.vkCreateDescriptorPool, device->handle, &pool, NULL,
             &bindings->pool);
    const VkDescriptorSetLayout layouts[GPU_SETS] = {device->set_layout, device->set_layout};
    VkDescriptorSetAllocateInfo sets = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = bindings->pool,
        .descriptorSetCount = GPU_SETS,
        .pSetLayouts = layouts,
    };
    GPU_CALL("bindings", device->vk.vkAllocateDescriptorSets, device->handle, &sets,
             bindings->sets);
    return VKN_OK;
}

static vkn_status list_addresses(const struct gpu_buffer *const buffers[GPU_BINDINGS],
                                 struct gpu_bindings *bindings)
{
    struct gpu_device *device = bindings->device;
    struct gpu_buffer_request request = {&bindings->addresses, "buffer addresses",
                                         GPU_BINDINGS * sizeof(uint64_t), GPU_HOST};
    BASE_TRY(gpu_arena_create(device, &request, 1, &bindings->arena));
    uint64_t *addresses = bindings->addresses.mapped;
    for (uint32_t i = 0; i < GPU_BINDINGS && device->support.capabilities.buffer_addresses; i++) {
        VkBufferDeviceAddressInfo info = {
            .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
            .buffer = buffers[i] ? buffers[i]->handle : device->dummy.handle,
        };
        addresses[i] = device->vk.vkGetBufferDeviceAddress(device->handle, &info);
    }
    return VKN_OK;
}

static void write_sets(const struct gpu_buffer *const buffers[GPU_BINDINGS],
                       const struct gpu_bindings *bindings)
{
    const struct gpu_device *device = bindings->device;
    VkDescriptorBufferInfo infos[GPU_BINDINGS];
    VkWriteDescriptorSet writes[GPU_BINDINGS];
    for (uint32_t i = 0; i < GPU_BINDINGS; i++) {
        const struct gpu_buffer *buffer = i == GPU_ADDRESSES ? &bindings->addresses
                                          : buffers[i]       ? buffers[i]
                                                             : &device->dummy;
        infos[i] = (VkDescriptorBufferInfo){buffer->handle, 0, VK_WHOLE_SIZE};
        writes[i] = (VkWriteDescriptorSet){
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = bindings->sets[i / GPU_SET_BINDINGS],
            .dstBinding = i % GPU_SET_BINDINGS,
            .descriptorCount = 1,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .pBufferInfo = &infos[i],
        };
    }
    device->vk.vkUpdateDescriptorSets(device->handle, GPU_BINDINGS, writes, 0, NULL);
}

vkn_status gpu_bindings_create(struct gpu_device *device,
                               const struct gpu_buffer *const buffers[GPU_BINDINGS],
                               struct gpu_bindings **created)
{
    *created = NULL;
    BASE_TRY(gpu_check_hung(device, "bindings"));
    struct gpu_bindings *bindings = base_alloc(1, sizeof *bindings);
    if (!bindings)
        return VKN_ERROR;
    bindings->device = device;
    vkn_status status = create_sets(device, bindings);
    if (status == VKN_OK)
        status = list_addresses(buffers, bindings);
    if (status != VKN_OK) {
        gpu_bindings_destroy(&bindings);
        return status;
    }
    write_sets(buffers, bindings);
    *created = bindings;
    return VKN_OK;
}

void gpu_bindings_destroy(struct gpu_bindings **destroyed)
{
    struct gpu_bindings *bindings = *destroyed;
    if (!bindings)
        return;
    *destroyed = NULL;
    bindings->device->vk.vkDestroyDescriptorPool(bindings->device->handle, bindings->pool, NULL);
    gpu_arena_destroy(&bindings->arena);
    free(bindings);
}

const VkDescriptorSet *gpu_bindings_sets(const struct gpu_bindings *bindings)
{
    return bindings->sets;
}
