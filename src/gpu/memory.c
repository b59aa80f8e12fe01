/* Allocates buffers in arenas, and accounts for their memory. */
#include "gpu/internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct gpu_arena {
    struct gpu_device *device;
    VkBuffer *buffers;
    uint32_t buffer_count;
    VkDeviceMemory *blocks;
    uint64_t *block_sizes;
    uint32_t block_count;
    struct gpu_memory_use *uses; /* one per buffer */
    size_t use_count;
    struct base_text displaced; /* device buffers in host memory, while the arena is created */
    uint64_t displaced_bytes;
    struct gpu_arena *next, **link; /* in the device's list; link: the pointer to this arena */
};

static uint64_t round_up(uint64_t value, uint64_t granule)
{
    return (value + granule - 1) / granule * granule;
}

/* ---- memory types ---------------------------------------------------------------------------- */

/* Returns the score of a memory type for a kind of buffer; the highest is best, 0 is unusable. */
static int type_score(VkMemoryPropertyFlags flags, enum gpu_memory_kind kind)
{
    const VkMemoryPropertyFlags usable =
        VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
        VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    if (flags & ~usable) /* protected, lazily allocated, vendors' uncached kinds */
        return 0;
    if (kind == GPU_DEVICE)
        return 1 + (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT ? 2 : 0) +
               (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT ? 0 : 1);
    const VkMemoryPropertyFlags needed =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    if ((flags & needed) != needed)
        return 0;
    return 1 + (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT ? 2 : 0) +
           (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT ? 0 : 1);
}

/* Returns the best memory type in the bit mask `allowed`; -1: none. */
static int pick_type(const struct gpu_device *device, uint32_t allowed, enum gpu_memory_kind kind)
{
    int best = -1, best_score = 0;
    for (uint32_t i = 0; i < device->memory.memoryTypeCount; i++) {
        int score = type_score(device->memory.memoryTypes[i].propertyFlags, kind);
        if ((allowed & 1u << i) && score > best_score) {
            best = (int)i;
            best_score = score;
        }
    }
    return best;
}

/* ---- placement ------------------------------------------------------------------------------- */

/* A buffer, and its offset in the block, in bytes. */
struct placed {
    const struct gpu_buffer_request *request;
    VkBuffer buffer;
    VkMemoryRequirements needs;
    uint64_t offset;
};

/* Consecutive buffers of one kind that share an allocation. */
struct block {
    struct placed *placed;
    size_t count;
    uint64_t size;
    uint32_t allowed_types;
};

static vkn_status create_buffer(struct gpu_arena *arena, struct placed *placed)
{
    struct gpu_device *device = arena->device;
    const struct gpu_buffer_request *request = placed->request;
    uint64_t size = gpu_padded_size(request->size);
    VkBufferUsageFlags address = device->support.capabilities.buffer_addresses
                                     ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT
                                     : 0;
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = size,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | address,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    GPU_CALL(request->name, device->vk.vkCreateBuffer, device->handle, &info, NULL,
             &placed->buffer);
    arena->buffers[arena->buffer_count++] = placed->buffer;
    gpu_name(device, VK_OBJECT_TYPE_BUFFER, (uint64_t)placed->buffer, request->name);
    device->vk.vkGetBufferMemoryRequirements(device->handle, placed->buffer, &placed->needs);
    return VKN_OK;
}

/* Adds buffers to the block up to the allocation limit of the device. */
static void fill_block(const struct gpu_device *device, struct placed *placed, size_t count,
                       struct block *block)
{
    const VkPhysicalDeviceLimits *limits = &device->support.limits;
    *block = (struct block){.placed = placed, .allowed_types = UINT32_MAX};
    for (; block->count < count; block->count++) {
        struct placed *next = &placed[block->count];
        uint64_t alignment = next->needs.alignment;
        if (alignment < limits->nonCoherentAtomSize)
            alignment = limits->nonCoherentAtomSize;
        if (alignment < limits->minStorageBufferOffsetAlignment)
            alignment = limits->minStorageBufferOffsetAlignment;
        uint64_t offset = round_up(block->size, alignment);
        if (block->count && offset + next->needs.size > device->support.max_allocation)
            return;
        next->offset = offset;
        block->size = offset + next->needs.size;
        block->allowed_types &= next->needs.memoryTypeBits;
    }
}

static const struct gpu_buffer_request *largest_of(const struct block *block)
{
    const struct gpu_buffer_request *largest = block->placed[0].request;
    for (size_t i = 1; i < block->count; i++)
        if (block->placed[i].request->size > largest->size)
            largest = block->placed[i].request;
    return largest;
}

static vkn_status fail_memory(const struct gpu_device *device, const struct block *block)
{
    const struct gpu_buffer_request *largest = largest_of(block);
    return base_fail(VKN_ERROR,
                     "out of memory on \"%s\": no %.1f MiB for %zu buffers (%.1f MiB available), "
                     "the largest is %s with %llu bytes",
                     device->support.capabilities.name, base_mib(block->size), block->count,
                     base_mib(gpu_memory_available(device)), largest->name,
                     (unsigned long long)largest->size);
}

static bool is_local(const struct gpu_device *device, int type)
{
    return device->memory.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
}

/* Returns whether the heap of a memory type has room. Without the check, drivers that move memory
 * to the host themselves would choose the buffers to move. */
static bool has_room(const struct gpu_device *device, int type, uint64_t size)
{
    uint32_t heap = device->memory.memoryTypes[type].heapIndex;
    bool discrete = device->support.capabilities.type == GPU_DISCRETE;
    return size <= device->memory.memoryHeaps[heap].size &&
           !(discrete && is_local(device, type) && device->support.memory_budget &&
             size > gpu_memory_available(device));
}

/* Allocates from the best memory type with enough memory left. A block of several buffers does not
 * fall back from device memory to host memory: *memory stays VK_NULL_HANDLE then, and the caller
 * divides the block. *local: whether the memory is the device's. */
static vkn_status allocate_memory(struct gpu_device *device, const struct block *block,
                                  VkDeviceMemory *memory, bool *local)
{
    const struct gpu_buffer_request *first = block->placed[0].request;
    uint32_t allowed = block->allowed_types;
    bool local_is_full = false;
    for (;;) {
        int type = pick_type(device, allowed, first->kind);
        if (type < 0)
            return fail_memory(device, block);
        *local = is_local(device, type);
        if (first->kind == GPU_DEVICE && !*local && local_is_full && block->count > 1)
            return VKN_OK;
        allowed &= ~(1u << type);
        local_is_full = local_is_full || *local;
        if (!has_room(device, type, block->size))
            continue;
        VkMemoryAllocateFlagsInfo flags = {
            .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
            .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
        };
        VkMemoryAllocateInfo info = {
            .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
            .pNext = device->support.capabilities.buffer_addresses ? &flags : NULL,
            .allocationSize = block->size,
            .memoryTypeIndex = (uint32_t)type,
        };
        VkResult result = device->vk.vkAllocateMemory(device->handle, &info, NULL, memory);
        if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY)
            continue;
        return result < 0 ? gpu_vulkan_fail(result, "vkAllocateMemory", first->name) : VKN_OK;
    }
}

/* Adds the buffers of a block to the list of those that lie in host memory. */
static void note_displaced(struct gpu_arena *arena, const struct block *block)
{
    for (size_t i = 0; i < block->count; i++)
        base_text_add(&arena->displaced, "%s%s %.1f MiB", arena->displaced.size ? ", " : "",
                      block->placed[i].request->name, base_mib(block->placed[i].request->size));
    arena->displaced_bytes += block->size;
}

static void warn_of_displaced(struct gpu_arena *arena, vkn_status status)
{
    if (status == VKN_OK && arena->displaced_bytes)
        base_log(
            BASE_LOG_WARNING,
            "device memory of \"%s\" is full: %.1f MiB lie in host memory, which is slower: %s",
            arena->device->support.capabilities.name, base_mib(arena->displaced_bytes),
            arena->displaced.data && !arena->displaced.failed ? arena->displaced.data : "...");
    free(arena->displaced.data);
    arena->displaced = (struct base_text){0};
}

/* Stores the size of each buffer of the block, including the gap after the buffer. */
static void note_uses(struct gpu_arena *arena, const struct block *block)
{
    for (size_t i = 0; i < block->count; i++) {
        const struct placed *placed = &block->placed[i];
        uint64_t end = i + 1 < block->count ? placed[1].offset : block->size;
        arena->uses[arena->use_count++] = (struct gpu_memory_use){
            .name = placed->request->name,
            .bytes = end - placed->offset,
            .host = placed->request->kind == GPU_HOST,
        };
    }
}

/* Allocates and binds the memory of a block. *refused: device memory is full, nothing was done, and
 * the block has to be divided. */
static vkn_status allocate_block(struct gpu_arena *arena, const struct block *block, bool *refused)
{
    struct gpu_device *device = arena->device;
    const struct gpu_buffer_request *first = block->placed[0].request;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    bool local = true;
    BASE_TRY(allocate_memory(device, block, &memory, &local));
    *refused = memory == VK_NULL_HANDLE;
    if (*refused)
        return VKN_OK;
    if (first->kind == GPU_DEVICE && !local)
        note_displaced(arena, block);
    arena->blocks[arena->block_count] = memory;
    arena->block_sizes[arena->block_count++] = block->size;
    device->allocated += block->size;
    note_uses(arena, block);
    gpu_name(device, VK_OBJECT_TYPE_DEVICE_MEMORY, (uint64_t)memory, first->name);

    char *mapped = NULL;
    bool is_host = first->kind == GPU_HOST;
    bool unified = device->support.capabilities.type == GPU_CPU; /* device memory is host memory */
    if (is_host || (unified && !gpu_disabled("mapped_memory")))
        GPU_CALL(first->name, device->vk.vkMapMemory, device->handle, memory, 0, VK_WHOLE_SIZE, 0,
                 (void **)&mapped);
    if (is_host)
        memset(mapped, 0, block->size);
    for (size_t i = 0; i < block->count; i++) {
        const struct placed *placed = &block->placed[i];
        GPU_CALL(placed->request->name, device->vk.vkBindBufferMemory, device->handle,
                 placed->buffer, memory, placed->offset);
        *placed->request->buffer = (struct gpu_buffer){
            .handle = placed->buffer,
            .size = placed->request->size ? placed->request->size : GPU_BUFFER_GRANULE,
            .mapped = mapped ? mapped + placed->offset : NULL,
            .name = placed->request->name,
        };
    }
    return VKN_OK;
}

/* Allocates the memory of buffers of one kind. If device memory is full, halves blocks, so that the
 * first buffers still get device memory, and the last ones get host memory. */
static vkn_status allocate_blocks(struct gpu_arena *arena, struct placed *placed, size_t count)
{
    size_t most = count;
    for (size_t done = 0; done < count;) {
        struct block block;
        bool refused;
        size_t left = count - done;
        fill_block(arena->device, placed + done, left < most ? left : most, &block);
        BASE_TRY(allocate_block(arena, &block, &refused));
        if (refused)
            most = block.count / 2;
        else
            done += block.count;
    }
    return VKN_OK;
}

/* Creates the buffers of one kind and their memory. `placed` is an array of `count` entries. */
static vkn_status create_kind(struct gpu_arena *arena, const struct gpu_buffer_request *requests,
                              size_t count, enum gpu_memory_kind kind, struct placed *placed)
{
    size_t placed_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (requests[i].kind != kind)
            continue;
        placed[placed_count].request = &requests[i];
        BASE_TRY(create_buffer(arena, &placed[placed_count]));
        placed_count++;
    }
    return allocate_blocks(arena, placed, placed_count);
}

static vkn_status zero_buffers(struct gpu_arena *arena, const struct gpu_buffer_request *requests,
                               size_t count)
{
    bool any_device = false;
    for (size_t i = 0; i < count; i++)
        any_device = any_device || requests[i].kind == GPU_DEVICE;
    if (!any_device)
        return VKN_OK;
    GPU_ONCE(arena->device, "zero an arena");
    for (size_t i = 0; i < count; i++)
        if (requests[i].kind == GPU_DEVICE)
            gpu_record_fill(recording, requests[i].buffer, 0, VK_WHOLE_SIZE, 0);
    return gpu_run_once(&recording);
}

/* ---- arenas ---------------------------------------------------------------------------------- */

static struct gpu_need need_of(const struct gpu_buffer_request *request)
{
    return (struct gpu_need){.name = request->name, .size = request->size};
}

static vkn_status check_ranges(const struct gpu_device *device,
                               const struct gpu_buffer_request *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct gpu_need need = need_of(&requests[i]);
        BASE_TRY(gpu_check_range(device, &need));
    }
    return VKN_OK;
}

/* Checks the sum of all requests, under the name of the largest. */
static vkn_status check_available(const struct gpu_device *device,
                                  const struct gpu_buffer_request *requests, size_t count)
{
    struct gpu_need all = {0};
    uint64_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        all.size += gpu_padded_size(requests[i].size);
        if (requests[i].size >= largest) {
            largest = requests[i].size;
            all.name = requests[i].name;
        }
    }
    return gpu_memory_check(device, &all, 1, all.name);
}

/* Allocated memory counts as used only when it is written. So this lock is held from the check of
 * available memory to the zero fill: other threads, such as other ranks on the same device, must
 * not check in between. */
static pthread_mutex_t allocation_lock = PTHREAD_MUTEX_INITIALIZER;

static vkn_status allocate_all(struct gpu_arena *arena, const struct gpu_buffer_request *requests,
                               size_t count, struct placed *placed)
{
    pthread_mutex_lock(&allocation_lock);
    vkn_status status = check_available(arena->device, requests, count);
    if (status == VKN_OK)
        status = create_kind(arena, requests, count, GPU_DEVICE, placed);
    if (status == VKN_OK)
        status = create_kind(arena, requests, count, GPU_HOST, placed);
    if (status == VKN_OK)
        status = zero_buffers(arena, requests, count);
    pthread_mutex_unlock(&allocation_lock);
    return status;
}

vkn_status gpu_arena_create(struct gpu_device *device, const struct gpu_buffer_request *requests,
                            size_t count, struct gpu_arena **created)
{
    *created = NULL;
    BASE_TRY(gpu_check_hung(device, "memory"));
    BASE_TRY(check_ranges(device, requests, count));
    struct gpu_arena *arena = base_alloc(1, sizeof *arena);
    if (!arena)
        return VKN_ERROR;
    *arena = (struct gpu_arena){.device = device, .next = device->arenas, .link = &device->arenas};
    if (arena->next)
        arena->next->link = &arena->next;
    device->arenas = arena;
    arena->uses = base_alloc(count + 1, sizeof *arena->uses);
    arena->buffers = base_alloc(count + 1, sizeof(VkBuffer));
    arena->blocks = base_alloc(count + 1, sizeof(VkDeviceMemory));
    arena->block_sizes = base_alloc(count + 1, sizeof(uint64_t));
    struct placed *placed = base_alloc(count + 1, sizeof *placed);
    vkn_status status = VKN_ERROR;
    if (arena->uses && arena->buffers && arena->blocks && arena->block_sizes && placed)
        status = allocate_all(arena, requests, count, placed);
    free(placed);
    warn_of_displaced(arena, status);
    if (status == VKN_OK)
        *created = arena;
    else
        gpu_arena_destroy(&arena);
    return status;
}

void gpu_arena_destroy(struct gpu_arena **destroyed)
{
    struct gpu_arena *arena = *destroyed;
    if (!arena)
        return;
    *destroyed = NULL;
    struct gpu_device *device = arena->device;
    for (uint32_t i = 0; i < arena->buffer_count; i++)
        device->vk.vkDestroyBuffer(device->handle, arena->buffers[i], NULL);
    for (uint32_t i = 0; i < arena->block_count; i++) {
        device->vk.vkFreeMemory(device->handle, arena->blocks[i], NULL);
        device->allocated -= arena->block_sizes[i];
    }
    *arena->link = arena->next;
    if (arena->next)
        arena->next->link = arena->link;
    free(arena->uses);
    free(arena->buffers);
    free(arena->blocks);
    free(arena->block_sizes);
    free(arena);
}

/* ---- accounting ------------------------------------------------------------------------------ */

uint64_t gpu_memory_allocated(const struct gpu_device *device)
{
    return device->allocated;
}

/* Adds the bytes to the entry of the same name and kind, or adds an entry; when no entry is free,
 * the last one sums up the rest. */
static size_t add_use(const struct gpu_memory_use *use, struct gpu_memory_use *uses, size_t count,
                      size_t capacity)
{
    size_t i = 0;
    while (i < count && !(uses[i].host == use->host && strcmp(uses[i].name, use->name) == 0))
        i++;
    if (i == capacity) {
        i = capacity - 1;
        uses[i].name = "others";
    }
    if (i < count) {
        uses[i].bytes += use->bytes;
        return count;
    }
    uses[i] = *use;
    return count + 1;
}

static int compare_uses(const void *a, const void *b)
{
    const struct gpu_memory_use *x = a, *y = b;
    return x->bytes != y->bytes ? x->bytes < y->bytes ? 1 : -1 : strcmp(x->name, y->name);
}

size_t gpu_memory_uses(const struct gpu_device *device, struct gpu_memory_use *uses, size_t most)
{
    size_t count = 0;
    for (const struct gpu_arena *arena = device->arenas; arena; arena = arena->next)
        for (size_t i = 0; i < arena->use_count; i++)
            count = add_use(&arena->uses[i], uses, count, most);
    qsort(uses, count, sizeof *uses, compare_uses);
    return count;
}
