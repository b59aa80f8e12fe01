/* Tests the stepper with a field on the device: the test's own Vulkan work, recorded through the
 * handles of vkn_context_vulkan, gives the same results as the same field in host memory. */
#include "step_fixture.h"

#include <vknerf/stepper.h>
#include <vknerf/vulkan.h>

#include <vulkan/vulkan.h>

#include "gpu/shaders.h"

extern struct gpu_shader test_stepper_device_shaders[];
extern const size_t test_stepper_device_shader_count;

/* ---- Vulkan ---------------------------------------------------------------------------------- */

/* clang-format off */
#define DEVICE_FUNCTIONS(X)                                                                        \
    X(AllocateCommandBuffers) X(AllocateDescriptorSets) X(AllocateMemory) X(BeginCommandBuffer)    \
    X(BindBufferMemory) X(CmdBindDescriptorSets) X(CmdBindPipeline) X(CmdCopyBuffer)               \
    X(CmdDispatch) X(CmdPipelineBarrier) X(CmdPushConstants) X(CmdUpdateBuffer) X(CreateBuffer)    \
    X(CreateCommandPool) X(CreateComputePipelines) X(CreateDescriptorPool)                         \
    X(CreateDescriptorSetLayout) X(CreateFence) X(CreatePipelineLayout) X(CreateShaderModule)      \
    X(DestroyBuffer) X(DestroyCommandPool) X(DestroyDescriptorPool) X(DestroyDescriptorSetLayout)  \
    X(DestroyFence) X(DestroyPipeline) X(DestroyPipelineLayout) X(DestroyShaderModule)             \
    X(EndCommandBuffer) X(FreeMemory) X(GetBufferMemoryRequirements) X(MapMemory) X(QueueSubmit)   \
    X(ResetFences) X(UpdateDescriptorSets) X(WaitForFences)
/* clang-format on */

#define STAGING_BYTES ((VkDeviceSize)1 << 20)
#define PIPELINES     2u
enum { VALUES, DENSITIES };

struct vulkan {
    struct vkn_vulkan handles;
#define MEMBER(name) PFN_vk##name name;
    DEVICE_FUNCTIONS(MEMBER)
#undef MEMBER
    VkBuffer staging;
    VkDeviceMemory memory;
    void *mapped;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipelines[PIPELINES];
    VkDescriptorPool descriptors;
    VkDescriptorSet set;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence fence;
};

static void done(VkResult result)
{
    assert_int_equal(result, VK_SUCCESS);
}

static void load_functions(struct vulkan *vk)
{
    PFN_vkGetInstanceProcAddr of_instance =
        (PFN_vkGetInstanceProcAddr)vk->handles.get_instance_proc_addr;
    PFN_vkGetDeviceProcAddr of_device =
        (PFN_vkGetDeviceProcAddr)of_instance(vk->handles.instance, "vkGetDeviceProcAddr");
    assert_non_null(of_device);
#define LOAD(name)                                                      \
    vk->name = (PFN_vk##name)of_device(vk->handles.device, "vk" #name); \
    assert_non_null(vk->name);
    DEVICE_FUNCTIONS(LOAD)
#undef LOAD
}

static void create_staging(struct vulkan *vk)
{
    VkDevice device = vk->handles.device;
    PFN_vkGetInstanceProcAddr of_instance =
        (PFN_vkGetInstanceProcAddr)vk->handles.get_instance_proc_addr;
    PFN_vkGetPhysicalDeviceMemoryProperties get_properties =
        (PFN_vkGetPhysicalDeviceMemoryProperties)of_instance(vk->handles.instance,
                                                             "vkGetPhysicalDeviceMemoryProperties");
    const VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = STAGING_BYTES,
                                     .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    done(vk->CreateBuffer(device, &info, NULL, &vk->staging));
    VkMemoryRequirements needs;
    VkPhysicalDeviceMemoryProperties memory;
    vk->GetBufferMemoryRequirements(device, vk->staging, &needs);
    get_properties(vk->handles.physical_device, &memory);
    uint32_t type = 0;
    while (!(needs.memoryTypeBits >> type & 1) ||
           (memory.memoryTypes[type].propertyFlags & wanted) != wanted)
        type++;
    const VkMemoryAllocateInfo allocation = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                             .allocationSize = needs.size,
                                             .memoryTypeIndex = type};
    done(vk->AllocateMemory(device, &allocation, NULL, &vk->memory));
    done(vk->BindBufferMemory(device, vk->staging, vk->memory, 0));
    done(vk->MapMemory(device, vk->memory, 0, VK_WHOLE_SIZE, 0, &vk->mapped));
}

static void create_layout(struct vulkan *vk)
{
    VkDescriptorSetLayoutBinding bindings[3];
    for (uint32_t i = 0; i < 3; i++)
        bindings[i] =
            (VkDescriptorSetLayoutBinding){.binding = i,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .descriptorCount = 1,
                                           .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 3,
        .pBindings = bindings};
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, 4};
    done(vk->CreateDescriptorSetLayout(vk->handles.device, &set, NULL, &vk->set_layout));
    const VkPipelineLayoutCreateInfo layout = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = 1,
                                               .pSetLayouts = &vk->set_layout,
                                               .pushConstantRangeCount = 1,
                                               .pPushConstantRanges = &push};
    done(vk->CreatePipelineLayout(vk->handles.device, &layout, NULL, &vk->layout));
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 3};
    const VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = 1,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    done(vk->CreateDescriptorPool(vk->handles.device, &pool, NULL, &vk->descriptors));
    const VkDescriptorSetAllocateInfo sets = {.sType =
                                                  VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = vk->descriptors,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &vk->set_layout};
    done(vk->AllocateDescriptorSets(vk->handles.device, &sets, &vk->set));
}

static void create_pipelines(struct vulkan *vk)
{
    static const char *const names[PIPELINES] = {"ball_values", "ball_densities"};
    for (size_t i = 0; i < PIPELINES; i++) {
        const struct gpu_shader *source = test_stepper_device_shaders;
        while (strcmp(source->name, names[i]) != 0)
            source++;
        assert_int_equal(gpu_shader_unpack(source), VKN_OK);
        const VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                               .codeSize = 4 * source->count,
                                               .pCode = source->words};
        VkShaderModule module;
        done(vk->CreateShaderModule(vk->handles.device, &code, NULL, &module));
        const VkComputePipelineCreateInfo info = {
            .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                      .module = module,
                      .pName = "main"},
            .layout = vk->layout,
        };
        done(vk->CreateComputePipelines(vk->handles.device, VK_NULL_HANDLE, 1, &info, NULL,
                                        &vk->pipelines[i]));
        vk->DestroyShaderModule(vk->handles.device, module, NULL);
    }
}

static void vulkan_create(vkn_context *context, struct vulkan *vk)
{
    *vk = (struct vulkan){.handles.size = sizeof vk->handles};
    ok(vkn_context_vulkan(context, &vk->handles));
    load_functions(vk);
    create_staging(vk);
    create_layout(vk);
    create_pipelines(vk);
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex = vk->handles.queue_family};
    done(vk->CreateCommandPool(vk->handles.device, &pool, NULL, &vk->pool));
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = vk->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};
    done(vk->AllocateCommandBuffers(vk->handles.device, &commands, &vk->commands));
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    done(vk->CreateFence(vk->handles.device, &fence, NULL, &vk->fence));
}

static void vulkan_destroy(struct vulkan *vk)
{
    VkDevice device = vk->handles.device;
    vk->DestroyFence(device, vk->fence, NULL);
    vk->DestroyCommandPool(device, vk->pool, NULL);
    vk->DestroyDescriptorPool(device, vk->descriptors, NULL);
    for (size_t i = 0; i < PIPELINES; i++)
        vk->DestroyPipeline(device, vk->pipelines[i], NULL);
    vk->DestroyPipelineLayout(device, vk->layout, NULL);
    vk->DestroyDescriptorSetLayout(device, vk->set_layout, NULL);
    vk->DestroyBuffer(device, vk->staging, NULL);
    vk->FreeMemory(device, vk->memory, NULL);
}

/* Begins commands with a barrier after the library's writes. */
static void vulkan_begin(struct vulkan *vk)
{
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    const VkPipelineStageFlags both =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
    done(vk->BeginCommandBuffer(vk->commands, &info));
    vk->CmdPipelineBarrier(vk->commands, both, both, 0, 1, &barrier, 0, NULL, 0, NULL);
}

/* Submits, and waits so that the host can read, or reuse commands and descriptors. */
static void vulkan_submit(struct vulkan *vk)
{
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &vk->commands};
    done(vk->EndCommandBuffer(vk->commands));
    done(vk->QueueSubmit(vk->handles.queue, 1, &info, vk->fence));
    done(vk->WaitForFences(vk->handles.device, 1, &vk->fence, VK_TRUE, UINT64_MAX));
    done(vk->ResetFences(vk->handles.device, 1, &vk->fence));
}

static VkBuffer buffer_of(const struct vkn_array *array)
{
    assert_null(array->data);
    assert_true(array->buffer != 0 && array->size > 0);
    return (VkBuffer)(uintptr_t)array->buffer;
}

static void vulkan_read(struct vulkan *vk, const struct vkn_array *array, void *data, size_t size)
{
    const VkBufferCopy region = {.srcOffset = array->offset, .size = size};
    const VkMemoryBarrier to_host = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    assert_true(size <= STAGING_BYTES && size <= array->size);
    vulkan_begin(vk);
    vk->CmdCopyBuffer(vk->commands, buffer_of(array), vk->staging, 1, &region);
    vk->CmdPipelineBarrier(vk->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                           0, 1, &to_host, 0, NULL, 0, NULL);
    vulkan_submit(vk);
    memcpy(data, vk->mapped, size);
}

/* At most 65536 bytes. */
static void vulkan_write(struct vulkan *vk, const struct vkn_array *array, const void *data,
                         size_t size)
{
    vulkan_begin(vk);
    vk->CmdUpdateBuffer(vk->commands, buffer_of(array), array->offset, size, data);
    vulkan_submit(vk);
}

static void run_pipeline(struct vulkan *vk, uint32_t pipeline, const struct vkn_samples *samples,
                         const struct vkn_array *result)
{
    const struct vkn_array *arrays[3] = {&samples->positions, &samples->directions, result};
    VkDescriptorBufferInfo buffers[3];
    VkWriteDescriptorSet writes[3];
    for (uint32_t i = 0; i < 3; i++) {
        buffers[i] =
            (VkDescriptorBufferInfo){buffer_of(arrays[i]), arrays[i]->offset, arrays[i]->size};
        writes[i] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                           .dstSet = vk->set,
                                           .dstBinding = i,
                                           .descriptorCount = 1,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .pBufferInfo = &buffers[i]};
    }
    vk->UpdateDescriptorSets(vk->handles.device, 3, writes, 0, NULL);
    vulkan_begin(vk);
    vk->CmdBindPipeline(vk->commands, VK_PIPELINE_BIND_POINT_COMPUTE, vk->pipelines[pipeline]);
    vk->CmdBindDescriptorSets(vk->commands, VK_PIPELINE_BIND_POINT_COMPUTE, vk->layout, 0, 1,
                              &vk->set, 0, NULL);
    vk->CmdPushConstants(vk->commands, vk->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4,
                         &samples->count);
    vk->CmdDispatch(vk->commands, (samples->count + 63) / 64, 1, 1);
    vulkan_submit(vk);
}

/* ---- the field on device and host ---------------------------------------------------------- */

static float density_at(const float position[3])
{
    static const float middle[3] = {0.6F, 0.5F, 0.5F};
    float squared = 0;
    for (int i = 0; i < 3; i++)
        squared += (position[i] - middle[i]) * (position[i] - middle[i]);
    return 0.25F + 60 * fmaxf(0, 1 - 20 * squared);
}

static vkn_status values_on_host(void *user, const struct vkn_samples *samples)
{
    const float(*positions)[3] = samples->positions.data,
          (*directions)[3] = samples->directions.data;
    float(*values)[4] = samples->values.data;
    (void)user;
    for (uint32_t i = 0; i < samples->count; i++) {
        for (int c = 0; c < 3; c++)
            values[i][c] = 0.5F + 0.25F * (positions[i][c] - 0.5F) + 0.125F * directions[i][c];
        values[i][3] = density_at(positions[i]);
    }
    return VKN_OK;
}

static vkn_status densities_on_host(void *user, const struct vkn_samples *samples)
{
    const float(*positions)[3] = samples->positions.data;
    float *densities = samples->densities.data;
    (void)user;
    for (uint32_t i = 0; i < samples->count; i++)
        densities[i] = positions[i][0] < 0.25F ? 0 : density_at(positions[i]);
    return VKN_OK;
}

static vkn_status values_on_device(void *user, const struct vkn_samples *samples)
{
    run_pipeline(user, VALUES, samples, &samples->values);
    return VKN_OK;
}

static vkn_status densities_on_device(void *user, const struct vkn_samples *samples)
{
    run_pipeline(user, DENSITIES, samples, &samples->densities);
    return VKN_OK;
}

/* ---- comparison ---------------------------------------------------------------------------- */

struct pair {
    const struct vkn_samples *samples;
    const struct vkn_composited *composited;
};

static struct pair take_step(vkn_stepper *stepper, vkn_field_fn *values, void *user)
{
    struct pair pair;
    ok(vkn_stepper_sample(stepper, &pair.samples));
    ok(values(user, pair.samples));
    ok(vkn_stepper_composite(stepper, &pair.composited));
    assert_true(pair.composited->finite);
    return pair;
}

static void compare_steps(struct vulkan *vk, struct pair device, struct pair host)
{
    uint32_t count = host.samples->count;
    float(*gradients)[4] = base_alloc(count, sizeof *gradients),
    *distances = base_alloc(count, sizeof *distances);
    const float(*expected)[4] = host.composited->gradients.data;
    assert_true(count > 100);
    assert_int_equal(device.samples->count, count);
    assert_int_equal(device.samples->rays, host.samples->rays);
    vulkan_read(vk, &device.samples->distances, distances, 4 * count);
    assert_memory_equal(distances, host.samples->distances.data, 4 * count);
    assert_float_equal(device.composited->loss, host.composited->loss, 1e-6);
    assert_float_equal(device.composited->mean_square, host.composited->mean_square, 1e-6);
    assert_int_equal(device.composited->live, host.composited->live);
    assert_true(host.composited->live < count);
    vulkan_read(vk, &device.composited->gradients, gradients, 16 * count);
    float largest = 0;
    for (uint32_t i = 0; i < count; i++)
        for (int c = 0; c < 4; c++) {
            assert_float_equal(gradients[i][c], expected[i][c], 1e-7);
            largest = fmaxf(largest, fabsf(gradients[i][c]));
        }
    assert_true(largest > 1e-5F);
    free(gradients);
    free(distances);
}

static void compare_pictures(vkn_scene *scene, vkn_stepper *device, vkn_stepper *host,
                             struct vulkan *vk)
{
    struct vkn_camera camera = {.size = sizeof camera};
    struct vkn_picture *one, *other;
    ok(vkn_scene_camera(scene, VKN_SPLIT_TRAIN, 1, &camera));
    ok(vkn_stepper_render(device, &camera, NULL, values_on_device, vk, &one));
    ok(vkn_stepper_render(host, &camera, NULL, values_on_host, NULL, &other));
    float most = 0;
    for (size_t i = 0; i < (size_t)3 * one->width * one->height; i++) {
        assert_float_equal(one->color[i], other->color[i], 1e-5);
        most = fmaxf(most, one->opacity[i / 3]);
    }
    assert_true(most > 0.9F);
    vkn_picture_free(&one);
    vkn_picture_free(&other);
}

static void test_steps(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config config = {.seed = 3,
                                      .march = {.resolution = 16, .steps_per_unit = 64},
                                      .batch = {.samples = 2112, .max_rays = 256}};
    const struct vkn_stepper_params on_host = {.size = sizeof on_host, .host = true};
    struct vulkan vk;
    vkn_scene *scene;
    vkn_stepper *device, *host;
    vulkan_create(tests->context, &vk);
    ok(vkn_scene_open(tests->folder->path, &config, &scene));
    ok(vkn_stepper_create(tests->context, scene, &config, NULL, &device));
    ok(vkn_stepper_create(tests->context, scene, &config, &on_host, &host));
    for (int step = 0; step < 4; step++) {
        if (step % 2 == 1) {
            ok(vkn_stepper_update_grid(device, densities_on_device, &vk));
            ok(vkn_stepper_update_grid(host, densities_on_host, NULL));
        }
        struct pair ours = take_step(device, values_on_device, &vk);
        compare_steps(&vk, ours, take_step(host, values_on_host, NULL));
    }
    compare_pictures(scene, device, host, &vk);
    vkn_stepper_destroy(&host);
    vkn_stepper_destroy(&device);
    vkn_scene_close(&scene);
    vulkan_destroy(&vk);
}

static void test_adam(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_adam_params params = {
        .size = sizeof params, .count = 1000, .learning_rate = 0.1F};
    const struct reference_optimizer reference = {0.1F, 0.9F, 0.99F, 1e-15F, 0, false, false};
    double weights[1000], moments1[1000] = {0}, moments2[1000] = {0};
    float values[1000], gradients[1000];
    struct vulkan vk;
    struct random random = {7};
    vkn_adam *adam;
    vulkan_create(tests->context, &vk);
    ok(vkn_adam_create(tests->context, &params, &adam));
    for (size_t i = 0; i < 1000; i++)
        weights[i] = values[i] = (float)random_between(&random, -1, 1);
    vulkan_write(&vk, vkn_adam_parameters(adam), values, sizeof values);
    for (uint32_t step = 1; step <= 5; step++) {
        for (size_t i = 0; i < 1000; i++) {
            gradients[i] = (float)random_between(&random, -1, 1);
            reference_updates[VKN_OPTIMIZER_ADAM](&reference, step, gradients[i], &weights[i],
                                                  &moments1[i], &moments2[i]);
        }
        vulkan_write(&vk, vkn_adam_gradients(adam), gradients, sizeof gradients);
        ok(vkn_adam_step(adam, 0, NULL));
    }
    vulkan_read(&vk, vkn_adam_parameters(adam), values, sizeof values);
    vulkan_read(&vk, vkn_adam_gradients(adam), gradients, sizeof gradients);
    for (size_t i = 0; i < 1000; i++) {
        assert_float_equal(values[i], weights[i], 1e-5);
        assert_float_equal(gradients[i], 0, 0);
    }
    vkn_adam_destroy(&adam);
    vulkan_destroy(&vk);
}

/* Callers of other versions of the structure get the members that they know. */
static void test_handles(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_vulkan none = {0}, wrong = {.size = 8};
    ok(vkn_context_vulkan(tests->context, &none));
    assert_int_equal(none.size, 0);
    assert_true(none.instance && none.physical_device && none.device && none.queue &&
                none.get_instance_proc_addr);
    assert_true(none.api_version >= VK_API_VERSION_1_2);
    assert_int_equal(vkn_context_vulkan(tests->context, &wrong), VKN_BAD_INPUT);
    assert_int_equal(vkn_context_vulkan(tests->context, NULL), VKN_BAD_INPUT);
    assert_int_equal(vkn_context_vulkan(NULL, &none), VKN_BAD_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_adam),
        cmocka_unit_test(test_handles),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
