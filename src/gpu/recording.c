/* Records reusable command buffers, submits them and reads their timestamps. */
#include "gpu/internal.h"

#include <stdlib.h>
#include <string.h>

struct gpu_recording {
    struct gpu_device *device;
    const char *name;
    VkCommandPool pool;
    VkCommandBuffer commands; /* the last command buffer */
    VkCommandBuffer *earlier; /* command buffers before `commands`, see gpu_record_split */
    uint32_t earlier_count;
    VkFence fence;
    bool ended, submitted, in_flight;
    VkQueryPool queries;
    uint32_t max_timestamps, timestamp_count;
    const char **labels;
    /* The command buffer copies its timestamps to this buffer: reading the query pool while another
     * submission is in flight can wait for that submission (lavapipe). */
    struct gpu_arena *arena;
    struct gpu_buffer ticks;
    vkn_status status; /* first error during recording, and its message */
    char message[512];
};

/* ---- commands -------------------------------------------------------------------------------- */

static vkn_status allocate_commands(const struct gpu_device *device, const char *name,
                                    VkCommandPool pool, VkCommandBuffer *commands)
{
    VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    GPU_CALL(name, device->vk.vkAllocateCommandBuffers, device->handle, &info, commands);
    gpu_name(device, VK_OBJECT_TYPE_COMMAND_BUFFER, (uint64_t)(uintptr_t)*commands, name);
    return VKN_OK;
}

vkn_status gpu_command_create(struct gpu_device *device, const char *name, VkCommandPool *pool,
                              VkCommandBuffer *commands, VkFence *fence)
{
    VkCommandPoolCreateInfo pool_info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = device->support.queue_family,
    };
    GPU_CALL(name, device->vk.vkCreateCommandPool, device->handle, &pool_info, NULL, pool);
    gpu_name(device, VK_OBJECT_TYPE_COMMAND_POOL, (uint64_t)*pool, name);
    BASE_TRY(allocate_commands(device, name, *pool, commands));
    VkFenceCreateInfo fence_info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    GPU_CALL(name, device->vk.vkCreateFence, device->handle, &fence_info, NULL, fence);
    gpu_name(device, VK_OBJECT_TYPE_FENCE, (uint64_t)*fence, name);
    return VKN_OK;
}

/* Barriers name as few stages as possible, since drivers wait for each. source_stages needs no
 * stages that only read: a wait for a command's last stage includes its earlier stages. */
static void barrier(const struct gpu_device *device, VkCommandBuffer commands,
                    VkPipelineStageFlags source_stages, VkAccessFlags source_access,
                    VkPipelineStageFlags target_stages, VkAccessFlags target_access)
{
    VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = source_access,
        .dstAccessMask = target_access,
    };
    device->vk.vkCmdPipelineBarrier(commands, source_stages, target_stages, 0, 1, &memory, 0, NULL,
                                    0, NULL);
}

#define COMPUTE_STAGE   VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
#define TRANSFER_STAGE  VK_PIPELINE_STAGE_TRANSFER_BIT
#define INDIRECT_STAGE  VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT
#define SHADER_ACCESS   (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT)
#define TRANSFER_ACCESS (VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT)
#define WRITE_ACCESS    (VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT)

void gpu_device_barrier(const struct gpu_device *device, VkCommandBuffer commands)
{
    barrier(device, commands, COMPUTE_STAGE | TRANSFER_STAGE, WRITE_ACCESS,
            COMPUTE_STAGE | TRANSFER_STAGE | INDIRECT_STAGE,
            SHADER_ACCESS | TRANSFER_ACCESS | VK_ACCESS_INDIRECT_COMMAND_READ_BIT);
}

void gpu_host_barrier(const struct gpu_device *device, VkCommandBuffer commands)
{
    barrier(device, commands, COMPUTE_STAGE | TRANSFER_STAGE, WRITE_ACCESS,
            VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
}

vkn_status gpu_queue_submit(struct gpu_device *device, VkCommandBuffer commands, VkFence fence,
                            const char *name)
{
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands,
    };
    BASE_TRY(gpu_check_hung(device, name));
    VkResult result = device->vk.vkQueueSubmit(device->queue, 1, &info, fence);
    return result < 0 ? gpu_device_fail(device, result, "vkQueueSubmit", name) : VKN_OK;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static vkn_status create_queries(struct gpu_recording *recording)
{
    struct gpu_device *device = recording->device;
    VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = recording->max_timestamps,
    };
    recording->labels = base_alloc(recording->max_timestamps, sizeof *recording->labels);
    if (!recording->labels)
        return VKN_ERROR;
    GPU_CALL(recording->name, device->vk.vkCreateQueryPool, device->handle, &info, NULL,
             &recording->queries);
    gpu_name(device, VK_OBJECT_TYPE_QUERY_POOL, (uint64_t)recording->queries, recording->name);
    uint64_t size = recording->max_timestamps * sizeof(uint64_t);
    const struct gpu_buffer_request ticks = {&recording->ticks, "timestamps", size, GPU_HOST};
    return gpu_arena_create(device, &ticks, 1, &recording->arena);
}

static vkn_status begin_commands(struct gpu_recording *recording)
{
    VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    GPU_CALL(recording->name, recording->device->vk.vkBeginCommandBuffer, recording->commands,
             &info);
    gpu_label_begin(recording->commands, recording->name);
    return VKN_OK;
}

static vkn_status end_commands(struct gpu_recording *recording)
{
    gpu_mark_end(recording->device, recording->commands);
    gpu_label_end(recording->commands);
    GPU_CALL(recording->name, recording->device->vk.vkEndCommandBuffer, recording->commands);
    return VKN_OK;
}

static vkn_status begin(struct gpu_recording *recording)
{
    struct gpu_device *device = recording->device;
    BASE_TRY(gpu_command_create(device, recording->name, &recording->pool, &recording->commands,
                                &recording->fence));
    if (recording->max_timestamps)
        BASE_TRY(create_queries(recording));
    BASE_TRY(begin_commands(recording));
    if (recording->queries)
        device->vk.vkCmdResetQueryPool(recording->commands, recording->queries, 0,
                                       recording->max_timestamps);
    /* Submission order alone does not make writes of earlier submissions visible. */
    gpu_device_barrier(device, recording->commands);
    return VKN_OK;
}

vkn_status gpu_record_begin(struct gpu_device *device, const char *name, uint32_t max_timestamps,
                            struct gpu_recording **created)
{
    *created = NULL;
    BASE_TRY(gpu_check_hung(device, name));
    struct gpu_recording *recording = base_alloc(1, sizeof *recording);
    if (!recording)
        return VKN_ERROR;
    recording->device = device;
    recording->name = name;
    if (device->support.capabilities.timestamp_period > 0)
        recording->max_timestamps = max_timestamps;
    vkn_status status = begin(recording);
    if (status == VKN_OK)
        *created = recording;
    else
        gpu_recording_destroy(&recording);
    return status;
}

/* Stores the first error for gpu_record_end. */
static void keep_error(struct gpu_recording *recording, vkn_status status)
{
    if (recording->status != VKN_OK)
        return;
    recording->status = status;
    snprintf(recording->message, sizeof recording->message, "%s", vkn_last_error());
}

static vkn_status split(struct gpu_recording *recording)
{
    struct gpu_device *device = recording->device;
    VkCommandBuffer *earlier = base_alloc(recording->earlier_count + 1, sizeof *earlier), next;
    if (!earlier)
        return VKN_ERROR;
    if (recording->earlier_count)
        memcpy(earlier, recording->earlier, recording->earlier_count * sizeof *earlier);
    free(recording->earlier);
    recording->earlier = earlier;
    BASE_TRY(allocate_commands(device, recording->name, recording->pool, &next));
    BASE_TRY(end_commands(recording));
    earlier[recording->earlier_count++] = recording->commands;
    recording->commands = next;
    return begin_commands(recording);
}

/* Barriers also apply between submissions, so the split needs no further synchronisation. */
void gpu_record_split(struct gpu_recording *recording)
{
    vkn_status status = recording->status == VKN_OK ? split(recording) : VKN_OK;
    if (status != VKN_OK)
        keep_error(recording, status);
}

vkn_status gpu_record_end(struct gpu_recording *recording)
{
    const struct gpu_device *device = recording->device;
    if (recording->status != VKN_OK)
        return base_fail(recording->status, "%s", recording->message);
    if (recording->timestamp_count > 0)
        device->vk.vkCmdCopyQueryPoolResults(recording->commands, recording->queries, 0,
                                             recording->timestamp_count, recording->ticks.handle, 0,
                                             sizeof(uint64_t),
                                             VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    gpu_host_barrier(device, recording->commands);
    BASE_TRY(end_commands(recording));
    recording->ended = true;
    return VKN_OK;
}

void gpu_recording_destroy(struct gpu_recording **destroyed)
{
    BASE_KEEP_ERROR;
    struct gpu_recording *recording = *destroyed;
    if (!recording)
        return;
    struct gpu_device *device = recording->device;
    if (recording->in_flight)
        gpu_wait_for(device, recording->fence, recording->name);
    *destroyed = NULL;
    device->vk.vkDestroyQueryPool(device->handle, recording->queries, NULL);
    device->vk.vkDestroyFence(device->handle, recording->fence, NULL);
    device->vk.vkDestroyCommandPool(device->handle, recording->pool, NULL);
    gpu_arena_destroy(&recording->arena);
    free(recording->labels);
    free(recording->earlier);
    free(recording);
}

/* ---- commands that can be recorded ----------------------------------------------------------- */

static void bind(const struct gpu_recording *recording, const struct gpu_pipeline *pipeline)
{
    const struct gpu_executable executable = gpu_pipeline_executable(pipeline);
    const VkShaderStageFlagBits stage = VK_SHADER_STAGE_COMPUTE_BIT;
    const struct VolkDeviceTable *vk = &recording->device->vk;
    if (executable.shader)
        vk->vkCmdBindShadersEXT(recording->commands, 1, &stage, &executable.shader);
    else
        vk->vkCmdBindPipeline(recording->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                              executable.pipeline);
}

static void mark(const struct gpu_recording *recording, const char *command, const char *object)
{
    gpu_mark(recording->device, recording->commands, recording->name, command, object);
}

static bool prepare_dispatch(struct gpu_recording *recording, const struct gpu_pipeline *pipeline,
                             const struct gpu_bindings *bindings, const void *push,
                             uint32_t push_size)
{
    const struct gpu_device *device = recording->device;
    if (push_size > GPU_PUSH_BYTES || push_size % 4) {
        keep_error(
            recording,
            base_fail(VKN_ERROR, "%s: %s: %u bytes of push constants; multiples of 4 up to %u",
                      recording->name, gpu_pipeline_name(pipeline), push_size, GPU_PUSH_BYTES));
        return false;
    }
    bind(recording, pipeline);
    device->vk.vkCmdBindDescriptorSets(recording->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                       device->pipeline_layout, 0, GPU_SETS,
                                       gpu_bindings_sets(bindings), 0, NULL);
    /* Writes all push constants: bytes beyond push_size are zero, not left over from an earlier
     * dispatch. */
    unsigned char bytes[GPU_PUSH_BYTES] = {0};
    if (push_size)
        memcpy(bytes, push, push_size);
    device->vk.vkCmdPushConstants(recording->commands, device->pipeline_layout,
                                  VK_SHADER_STAGE_COMPUTE_BIT, 0, GPU_PUSH_BYTES, bytes);
    gpu_label_begin(recording->commands, gpu_pipeline_name(pipeline));
    mark(recording, "pass", gpu_pipeline_name(pipeline));
    return true;
}

void gpu_record_dispatch(struct gpu_recording *recording, const struct gpu_pipeline *pipeline,
                         const struct gpu_bindings *bindings, const void *push, uint32_t push_size,
                         uint32_t groups)
{
    const struct gpu_device *device = recording->device;
    uint32_t limit = device->support.capabilities.max_groups;
    if (groups > limit)
        keep_error(recording, base_fail(VKN_ERROR, "%s: %s: %u workgroups, \"%s\" takes at most %u",
                                        recording->name, gpu_pipeline_name(pipeline), groups,
                                        device->support.capabilities.name, limit));
    else if (prepare_dispatch(recording, pipeline, bindings, push, push_size)) {
        device->vk.vkCmdDispatch(recording->commands, groups, 1, 1);
        gpu_label_end(recording->commands);
    }
}

void gpu_record_dispatch_indirect(struct gpu_recording *recording,
                                  const struct gpu_pipeline *pipeline,
                                  const struct gpu_bindings *bindings, const void *push,
                                  uint32_t push_size, const struct gpu_buffer *buffer,
                                  uint64_t offset)
{
    const struct gpu_device *device = recording->device;
    if (offset % 4 || offset + sizeof(VkDispatchIndirectCommand) > buffer->size)
        keep_error(recording, base_fail(VKN_ERROR, "%s: %s: no group counts at byte %llu of %s",
                                        recording->name, gpu_pipeline_name(pipeline),
                                        (unsigned long long)offset, buffer->name));
    else if (prepare_dispatch(recording, pipeline, bindings, push, push_size)) {
        device->vk.vkCmdDispatchIndirect(recording->commands, buffer->handle, offset);
        gpu_label_end(recording->commands);
    }
}

void gpu_record_barrier(struct gpu_recording *recording)
{
    gpu_device_barrier(recording->device, recording->commands);
}

void gpu_record_compute_barrier(struct gpu_recording *recording)
{
    barrier(recording->device, recording->commands, COMPUTE_STAGE, VK_ACCESS_SHADER_WRITE_BIT,
            COMPUTE_STAGE, SHADER_ACCESS);
}

void gpu_record_fill(struct gpu_recording *recording, const struct gpu_buffer *buffer,
                     uint64_t offset, uint64_t size, uint32_t value)
{
    if (size != VK_WHOLE_SIZE &&
        (offset % 4 || size % 4 || offset > buffer->size || size > buffer->size - offset)) {
        keep_error(recording,
                   base_fail(VKN_ERROR, "%s: cannot fill bytes %llu + %llu of %s", recording->name,
                             (unsigned long long)offset, (unsigned long long)size, buffer->name));
        return;
    }
    if (!size)
        return;
    mark(recording, "fill of", buffer->name);
    recording->device->vk.vkCmdFillBuffer(recording->commands, buffer->handle, offset, size, value);
}

void gpu_record_copy(struct gpu_recording *recording, const struct gpu_buffer *from,
                     uint64_t from_offset, const struct gpu_buffer *to, uint64_t to_offset,
                     uint64_t size)
{
    if (from_offset > from->size || size > from->size - from_offset || to_offset > to->size ||
        size > to->size - to_offset) {
        keep_error(
            recording,
            base_fail(VKN_ERROR, "%s: cannot copy %llu bytes from %s (byte %llu) to %s (%llu)",
                      recording->name, (unsigned long long)size, from->name,
                      (unsigned long long)from_offset, to->name, (unsigned long long)to_offset));
        return;
    }
    VkBufferCopy region = {.srcOffset = from_offset, .dstOffset = to_offset, .size = size};
    if (!size)
        return;
    mark(recording, "copy of", from->name);
    recording->device->vk.vkCmdCopyBuffer(recording->commands, from->handle, to->handle, 1,
                                          &region);
}

void gpu_record_timestamp(struct gpu_recording *recording, const char *label)
{
    if (!recording->queries)
        return;
    if (recording->timestamp_count == recording->max_timestamps) {
        keep_error(recording, base_fail(VKN_ERROR, "%s: more than %u timestamps (at \"%s\")",
                                        recording->name, recording->max_timestamps, label));
        return;
    }
    recording->labels[recording->timestamp_count] = label;
    recording->device->vk.vkCmdWriteTimestamp(recording->commands,
                                              VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                                              recording->queries, recording->timestamp_count++);
}

/* ---- submission ------------------------------------------------------------------------------ */

bool gpu_wait_timeout(const struct gpu_recording *recording, double seconds)
{
    const struct gpu_device *device = recording->device;
    return !recording->in_flight || device->hung ||
           device->vk.vkWaitForFences(device->handle, 1, &recording->fence, VK_TRUE,
                                      (uint64_t)(1e9 * seconds)) != VK_TIMEOUT;
}

vkn_status gpu_wait(struct gpu_recording *recording)
{
    if (!recording->in_flight)
        return VKN_OK;
    BASE_TRY(gpu_wait_for(recording->device, recording->fence, recording->name));
    recording->in_flight = false;
    return VKN_OK;
}

vkn_status gpu_submit(struct gpu_recording *recording)
{
    if (!recording->ended)
        return base_fail(VKN_ERROR, "%s: submitted before gpu_record_end", recording->name);
    BASE_TRY(gpu_wait(recording));
    vkn_status status = VKN_OK;
    for (uint32_t i = 0; i <= recording->earlier_count && status == VKN_OK; i++) {
        bool is_last = i == recording->earlier_count;
        status = gpu_queue_submit(recording->device,
                                  is_last ? recording->commands : recording->earlier[i],
                                  is_last ? recording->fence : VK_NULL_HANDLE, recording->name);
    }
    if (status != VKN_OK && recording->earlier_count) /* no fence covers earlier buffers */
        recording->device->vk.vkDeviceWaitIdle(recording->device->handle);
    BASE_TRY(status);
    recording->submitted = recording->in_flight = true;
    return VKN_OK;
}

vkn_status gpu_run_once(struct gpu_recording **recording)
{
    vkn_status status = gpu_record_end(*recording);
    if (status == VKN_OK)
        status = gpu_submit(*recording);
    if (status == VKN_OK)
        status = gpu_wait(*recording);
    gpu_recording_destroy(recording);
    return status;
}

/* Returns NULL if the submission has not finished or has no timestamps. */
static const uint64_t *finished_ticks(const struct gpu_recording *recording)
{
    bool finished = recording->submitted && !recording->in_flight;
    return finished && recording->timestamp_count > 0 ? recording->ticks.mapped : NULL;
}

uint32_t gpu_recording_times(struct gpu_recording *recording, const char **labels,
                             double *milliseconds, uint32_t capacity)
{
    const struct gpu_device *device = recording->device;
    const uint64_t *ticks = finished_ticks(recording);
    uint32_t count = 0, unused_bits = 64 - device->support.timestamp_bits;
    for (; ticks && count + 1 < recording->timestamp_count && count < capacity; count++) {
        /* The counter has timestamp_bits bits; the difference is right even if it wrapped once. */
        uint64_t passed = (ticks[count + 1] - ticks[count]) << unused_bits >> unused_bits;
        labels[count] = recording->labels[count];
        milliseconds[count] = 1e3 * gpu_tick_seconds(device, passed);
    }
    return count;
}

double gpu_recording_start(struct gpu_recording *recording)
{
    struct gpu_device *device = recording->device;
    const uint64_t *ticks = finished_ticks(recording);
    return ticks ? gpu_tick_seconds(device, gpu_extend_ticks(device, ticks[0])) : -1.0;
}
