/* Tests memory of src/gpu: arenas, transfers, limits. */
#include "gpu_fixture.h"

#include "gpu/internal.h"
#include "memory_limit.h"
#include "passes/passes.h"

static void test_transfers(void **state)
{
    struct gpu_device *device = *state;
    uint64_t held = gpu_memory_allocated(device);
    /* Odd, empty, and larger than the staging buffer. */
    const uint64_t sizes[] = {1, 0, 1000003, ((uint64_t)33 << 20) + 5, 4096};
    struct gpu_buffer buffers[5];
    struct gpu_buffer_request requests[5];
    for (size_t i = 0; i < 5; i++)
        requests[i] = (struct gpu_buffer_request){&buffers[i], "odd", sizes[i],
                                                  i == 4 ? GPU_HOST : GPU_DEVICE};
    struct gpu_arena *arena;
    ok(gpu_arena_create(device, requests, 5, &arena));
    assert_true(gpu_memory_allocated(device) >= held + sizes[2] + sizes[3] + sizes[4]);
    for (size_t i = 0; i < 5; i++) {
        bool cpu = gpu_device_capabilities(device)->type == GPU_CPU;
        assert_true((buffers[i].mapped != NULL) == (i == 4 || cpu));
        uint64_t size = buffers[i].size;
        assert_true(size >= sizes[i] && size > 0);
        unsigned char *data = base_alloc(size, 1), *back = base_alloc(size, 1);
        memset(back, 255, size);
        ok(gpu_download(device, &buffers[i], 0, back, size));
        assert_memory_equal(data, back, size); /* new memory is zero */
        for (uint64_t k = 0; k < size; k++)
            data[k] = (unsigned char)(k * 7 + k / 251 + i);
        uint64_t at = size / 3;
        ok(gpu_upload(device, &buffers[i], 0, data, at));
        ok(gpu_upload(device, &buffers[i], at, data + at, size - at));
        ok(gpu_download(device, &buffers[i], 0, back, size));
        assert_memory_equal(data, back, size);
        memset(back, 0, size);
        ok(gpu_download(device, &buffers[i], at, back, size - at));
        assert_memory_equal(data + at, back, size - at);
        free(data);
        free(back);
    }
    char byte = 0;
    assert_int_equal(gpu_upload(device, &buffers[2], sizes[2], &byte, 1), VKN_ERROR);
    assert_message("odd");
    assert_int_equal(gpu_download(device, &buffers[2], UINT64_MAX, &byte, 1), VKN_ERROR);
    ok(gpu_upload(device, &buffers[2], sizes[2], &byte, 0));
    gpu_arena_destroy(&arena);
    assert_null(arena);
    gpu_arena_destroy(&arena);
}

static VkResult no_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                          const VkAllocationCallbacks *callbacks, VkDeviceMemory *memory)
{
    (void)device, (void)info, (void)callbacks, (void)memory;
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static void test_memory_limits(void **state)
{
    struct gpu_device *device = *state;
    uint64_t held = gpu_memory_allocated(device);
    struct gpu_buffer small, large;
    struct gpu_buffer_request requests[] = {
        {&small, "small", 16, GPU_DEVICE},
        {&large, "photographs", gpu_device_capabilities(device)->max_buffer_range + 1, GPU_DEVICE},
    };
    struct gpu_arena *arena;
    assert_int_equal(gpu_arena_create(device, requests, 2, &arena), VKN_BAD_INPUT);
    assert_null(arena);
    assert_message("photographs");
    assert_message("MiB");

    requests[1].size = 12345;
    PFN_vkAllocateMemory allocate = device->vk.vkAllocateMemory;
    device->vk.vkAllocateMemory = no_memory;
    assert_int_equal(gpu_arena_create(device, requests, 2, &arena), VKN_ERROR);
    device->vk.vkAllocateMemory = allocate;
    assert_message("out of memory");
    assert_message("photographs");
    assert_message("123"); /* bytes, with padding */
    assert_int_equal(gpu_memory_allocated(device), held);
}

static uint32_t allocations;

static VkResult count_allocation(VkDevice device, const VkMemoryAllocateInfo *info,
                                 const VkAllocationCallbacks *callbacks, VkDeviceMemory *memory)
{
    allocations++;
    return no_memory(device, info, callbacks, memory);
}

/* A request beyond the host's memory, which CPU devices share, fails before any allocation, with
 * the settings that contribute most. */
static void test_memory_check(void **state)
{
    struct gpu_device *device = *state;
    struct gpu_buffer buffers[4];
    struct gpu_buffer_request requests[4];
    struct gpu_arena *arena;
    const uint64_t part = (uint64_t)32 << 20;
    const struct gpu_need needs[] = {
        {"rays", part, "batch.max_rays"}, {"samples", 2 * part, "batch.samples"},
        {"camera", 100, "cameras"},       {"features", 2 * part, "batch.samples"},
        {"state", 2 * part, NULL},
    };
    for (size_t i = 0; i < BASE_COUNT(requests); i++)
        requests[i] = (struct gpu_buffer_request){&buffers[i], "photographs", part,
                                                  i % 2 ? GPU_HOST : GPU_DEVICE};
    ok(gpu_memory_check(device, needs, BASE_COUNT(needs), "training"));
    const struct gpu_need huge[] = {{"a", (uint64_t)1 << 63, "grid.levels"},
                                    {"b", (uint64_t)1 << 63, "batch.chunk"}};
    assert_int_equal(gpu_memory_check(device, huge, 2, "training"), VKN_BAD_INPUT);
    assert_message("grid.levels, batch.chunk");
    const struct gpu_need wide = {"rays", UINT64_MAX, "batch.max_rays"};
    assert_int_equal(gpu_check_range(device, &wide), VKN_BAD_INPUT);
    assert_message("takes at most");
    assert_message("reduce batch.max_rays");
    if (gpu_device_capabilities(device)->type != GPU_CPU)
        return;

    PFN_vkAllocateMemory allocate = device->vk.vkAllocateMemory;
    device->vk.vkAllocateMemory = count_allocation;
    struct rlimit before = limit_memory(RLIMIT_AS, 3 * part);
    vkn_status checked = gpu_memory_check(device, needs, BASE_COUNT(needs), "training");
    char *message = base_format("%s", vkn_last_error());
    vkn_status created = gpu_arena_create(device, requests, BASE_COUNT(requests), &arena);
    setrlimit(RLIMIT_AS, &before);
    device->vk.vkAllocateMemory = allocate;
    assert_int_equal(checked, VKN_BAD_INPUT);
    assert_non_null(strstr(message, "training: 224.0 MiB of memory are needed, and \""));
    assert_non_null(strstr(message, "reduce batch.samples, batch.max_rays"));
    assert_null(strstr(message, "cameras"));
    free(message);
    assert_int_equal(created, VKN_BAD_INPUT);
    assert_message("photographs: 128.0 MiB of memory are needed");
    assert_int_equal(allocations, 0);
    ok(gpu_arena_create(device, requests, BASE_COUNT(requests), &arena));
    gpu_arena_destroy(&arena);
}

/* An arena larger than the device's largest allocation is split. */
static void test_split_arena(void **state)
{
    struct gpu_device *device = *state;
    uint64_t limit = device->support.max_allocation, held = gpu_memory_allocated(device);
    struct gpu_buffer buffers[9];
    struct gpu_buffer_request requests[9];
    for (uint32_t i = 0; i < 9; i++)
        requests[i] = (struct gpu_buffer_request){&buffers[i], "part", 30000 + i,
                                                  i % 3 ? GPU_DEVICE : GPU_HOST};
    struct gpu_arena *arena;
    device->support.max_allocation = 70000;
    ok(gpu_arena_create(device, requests, 9, &arena));
    device->support.max_allocation = limit;
    for (uint32_t i = 0; i < 9; i++)
        ok(gpu_upload(device, &buffers[i], 100 * i, &i, sizeof i));
    for (uint32_t i = 0; i < 9; i++) {
        uint32_t back[2] = {77, 77};
        ok(gpu_download(device, &buffers[i], 100 * i, back, sizeof back));
        assert_int_equal(back[0], i);
        assert_int_equal(back[1], 0);
    }
    assert_true(gpu_memory_allocated(device) > held + 9 * 30000);
    gpu_arena_destroy(&arena);
    assert_int_equal(gpu_memory_allocated(device), held);
}

static uint64_t sum_uses(const struct gpu_memory_use *uses, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || uses[i].bytes <= uses[i - 1].bytes);
        sum += uses[i].bytes;
    }
    return sum;
}

static const struct gpu_memory_use *find_use(const struct gpu_memory_use *uses, size_t count,
                                             const char *name, bool host)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(uses[i].name, name) == 0 && uses[i].host == host)
            return &uses[i];
    fail_msg("no %s", name);
    return NULL;
}

/* Uses are summed by name and memory type over all arenas; their sum is the memory held. */
static void test_memory_uses(void **state)
{
    struct gpu_device *device = *state;
    struct gpu_buffer buffers[5];
    const struct gpu_buffer_request requests[] = {
        {&buffers[0], "photographs", 90001, GPU_DEVICE},
        {&buffers[1], "weights", 5, GPU_DEVICE},
        {&buffers[2], "weights", 1000, GPU_HOST},
        {&buffers[3], "weights", 70000, GPU_DEVICE},
        {&buffers[4], "photographs", 80000, GPU_DEVICE},
    };
    struct gpu_memory_use before[64], uses[64];
    size_t before_count = gpu_memory_uses(device, before, BASE_COUNT(before));
    assert_int_equal(sum_uses(before, before_count), gpu_memory_allocated(device));
    uint64_t limit = device->support.max_allocation;
    struct gpu_arena *first, *second;
    device->support.max_allocation = 100000;
    ok(gpu_arena_create(device, requests, 4, &first));
    ok(gpu_arena_create(device, requests + 4, 1, &second));
    device->support.max_allocation = limit;
    size_t count = gpu_memory_uses(device, uses, BASE_COUNT(uses));
    assert_int_equal(count, before_count + 3);
    assert_int_equal(sum_uses(uses, count), gpu_memory_allocated(device));
    assert_in_range(find_use(uses, count, "photographs", false)->bytes, 170001, 171000);
    assert_in_range(find_use(uses, count, "weights", false)->bytes, 70005, 71000);
    assert_in_range(find_use(uses, count, "weights", true)->bytes, 1000, 2000);
    /* Names beyond the capacity are summed as "others". */
    assert_int_equal(gpu_memory_uses(device, uses, 2), 2);
    assert_int_equal(sum_uses(uses, 2), gpu_memory_allocated(device));
    assert_true(strcmp(uses[0].name, "others") == 0 || strcmp(uses[1].name, "others") == 0);
    gpu_arena_destroy(&first);
    count = gpu_memory_uses(device, uses, BASE_COUNT(uses));
    assert_int_equal(count, before_count + 1);
    gpu_arena_destroy(&second);
    count = gpu_memory_uses(device, uses, BASE_COUNT(uses));
    assert_int_equal(count, before_count);
    assert_int_equal(sum_uses(uses, count), gpu_memory_allocated(device));
}

/* If device-local memory is full, host memory is used, with a warning. */
static void test_fallback(void **state)
{
    struct gpu_device *device = *state;
    struct gpu_buffer buffer;
    struct gpu_buffer_request request = {&buffer, "photographs", 5000, GPU_DEVICE};
    struct gpu_arena *arena;
    VkPhysicalDeviceMemoryProperties memory = device->memory;
    for (uint32_t i = 0; i < memory.memoryTypeCount; i++)
        device->memory.memoryTypes[i].propertyFlags &=
            ~(VkMemoryPropertyFlags)VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    struct capture capture = capture_begin();
    vkn_status status = gpu_arena_create(device, &request, 1, &arena);
    char *log = capture_end(&capture);
    device->memory = memory;
    ok(status);
    assert_non_null(strstr(log, "photographs"));
    assert_non_null(strstr(log, "slower"));
    free(log);
    gpu_arena_destroy(&arena);
}

static PFN_vkAllocateMemory driver_allocate;
static uint64_t local_room; /* bytes that memory type 0 has left */

/* Allocates from a device with two memory types, of which the local one is small. */
static VkResult allocate_limited(VkDevice device, const VkMemoryAllocateInfo *info,
                                 const VkAllocationCallbacks *callbacks, VkDeviceMemory *memory)
{
    VkMemoryAllocateInfo changed = *info;
    changed.memoryTypeIndex = 0;
    if (info->memoryTypeIndex == 0) {
        if (info->allocationSize > local_room)
            return VK_ERROR_OUT_OF_DEVICE_MEMORY;
        local_room -= info->allocationSize;
    }
    return driver_allocate(device, &changed, callbacks, memory);
}

static PFN_vkGetBufferMemoryRequirements driver_needs;

static void need_100_kb(VkDevice device, VkBuffer buffer, VkMemoryRequirements *needs)
{
    (void)device, (void)buffer;
    *needs = (VkMemoryRequirements){.size = 100000, .alignment = 64, .memoryTypeBits = 3};
}

/* Gives the device a local memory type with `room` bytes, and one in host memory. */
static VkPhysicalDeviceMemoryProperties crowd(struct gpu_device *device, uint64_t room)
{
    const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |
                                       VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    VkPhysicalDeviceMemoryProperties before = device->memory;
    device->memory.memoryTypeCount = 2;
    device->memory.memoryTypes[1] = (VkMemoryType){host, before.memoryTypes[0].heapIndex};
    driver_allocate = device->vk.vkAllocateMemory;
    driver_needs = device->vk.vkGetBufferMemoryRequirements;
    device->vk.vkAllocateMemory = allocate_limited;
    device->vk.vkGetBufferMemoryRequirements = need_100_kb;
    local_room = room;
    return before;
}

static void uncrowd(struct gpu_device *device, const VkPhysicalDeviceMemoryProperties *before)
{
    device->memory = *before;
    device->vk.vkAllocateMemory = driver_allocate;
    device->vk.vkGetBufferMemoryRequirements = driver_needs;
}

#define CROWD 5u

/* Creates five buffers of 100 kB when device memory has `room` bytes. Returns the log. */
static char *create_crowded(struct gpu_device *device, uint64_t room)
{
    static const char *const names[CROWD] = {"weights", "gradients", "samples", "moments",
                                             "photographs"};
    struct gpu_buffer buffers[CROWD];
    struct gpu_buffer_request requests[CROWD];
    struct gpu_arena *arena;
    for (size_t i = 0; i < CROWD; i++)
        requests[i] = (struct gpu_buffer_request){&buffers[i], names[i], 100000, GPU_DEVICE};
    VkPhysicalDeviceMemoryProperties before = crowd(device, room);
    struct capture capture = capture_begin();
    vkn_status status = gpu_arena_create(device, requests, CROWD, &arena);
    char *log = capture_end(&capture);
    uncrowd(device, &before);
    ok(status);
    for (uint32_t i = 0; i < CROWD; i++) {
        uint32_t back = 0;
        ok(gpu_upload(device, &buffers[i], 400, &i, sizeof i));
        ok(gpu_download(device, &buffers[i], 400, &back, sizeof back));
        assert_int_equal(back, i);
    }
    gpu_arena_destroy(&arena);
    return log;
}

/* If device memory holds some of an arena's buffers, the last ones are in host memory. */
static void test_crowded(void **state)
{
    static const struct {
        uint64_t room;
        const char *listed; /* NULL: all fit */
    } cases[] = {
        {1000000, NULL},
        {450000, "0.1 MiB lie in host memory, which is slower: photographs 0.1 MiB\n"},
        {290000, "slower: samples 0.1 MiB, moments 0.1 MiB, photographs 0.1 MiB\n"},
        {0, "0.5 MiB lie in host memory, which is slower: weights 0.1 MiB, gradients"},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        char *log = create_crowded(*state, cases[i].room);
        assert_true(cases[i].listed ? strstr(log, cases[i].listed) != NULL : log[0] == 0);
        assert_true(!cases[i].listed || strstr(log, "warning: device memory of"));
        free(log);
    }
}

/* Training images leave device memory before the parameters' average, and moments before
 * parameters. */
static void test_crowded_training(void **state)
{
    struct gpu_device *device = *state;
    const struct buffer_counts counts = {.params = 100, .pixels = 100, .moments = {100, 100}};
    struct buffers buffers;
    for (uint32_t kept = 2; kept < 5; kept++) {
        VkPhysicalDeviceMemoryProperties before = crowd(device, kept * 110000);
        struct capture capture = capture_begin();
        vkn_status status = buffers_create(device, BUFFERS_OF_STEP,
                                           BUFFERS(PARAMS) | BUFFERS(AVERAGE) | BUFFERS(PIXELS) |
                                               BUFFERS(MOMENT1) | BUFFERS(MOMENT2),
                                           &counts, &buffers);
        char *log = capture_end(&capture);
        uncrowd(device, &before);
        ok(status);
        buffers_destroy(&buffers);
        assert_non_null(strstr(log, "training images"));
        assert_true((strstr(log, "average parameters") != NULL) == (kept < 4));
        assert_true((strstr(log, "second moments") != NULL) == (kept < 3));
        assert_null(strstr(log, "first moments"));
        assert_null(strstr(log, ": parameters"));
        free(log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transfers),    cmocka_unit_test(test_memory_limits),
        cmocka_unit_test(test_fallback),     cmocka_unit_test(test_split_arena),
        cmocka_unit_test(test_memory_check), cmocka_unit_test(test_memory_uses),
        cmocka_unit_test(test_crowded),      cmocka_unit_test(test_crowded_training),
        cmocka_unit_test(test_no_messages),
    };
    if (!prepare_tests())
        return 1;
    int failed = cmocka_run_group_tests(tests, open_shared, close_shared);
    clean_up_tests();
    return failed;
}
