/* Downloads and uploads the buffers of a step that a checkpoint stores. */
#include <stdlib.h>
#include <string.h>

#include "optim/optim.h"
#include "step/internal.h"

size_t step_list_saved(const struct step *step, struct saved_buffer saved[MAX_SAVED_BUFFERS])
{
    return buffers_list_saved(optim_buffer_mask(&step->setup.config), step->coarse.arena, saved);
}

const struct gpu_buffer *step_saved(const struct step *step, const struct saved_buffer *saved)
{
    return saved->coarse ? &step->coarse.at[saved->number] : &step->buffers.at[saved->number];
}

/* Returns the buffer whose words hold a moment of each parameter; NULL: the tensor's buffer holds
 * the tensor's values. */
static const struct gpu_buffer *packed_words(const struct step *step,
                                             const struct saved_buffer *saved)
{
    const struct buffers *buffers = saved->coarse ? &step->coarse : &step->buffers;
    bool packed = optim_packs_moments(&step->setup.config) &&
                  (saved->number == BIND_MOMENT1 || saved->number == BIND_MOMENT2);
    return packed ? &buffers->at[BIND_MOMENT1] : NULL;
}

uint64_t step_saved_size(const struct step *step, const struct saved_buffer *saved)
{
    const struct gpu_buffer *words = packed_words(step, saved);
    return words ? words->size : step_saved(step, saved)->size;
}

vkn_status step_download_saved(const struct step *step, const struct saved_buffer *saved,
                               void *data)
{
    const struct gpu_buffer *words = packed_words(step, saved),
                            *buffer = words ? words : step_saved(step, saved);
    BASE_TRY(gpu_download(step->device, buffer, 0, data, buffer->size));
    if (words)
        optim_unpack_moments(data, words->size / 4, saved->number - BIND_MOMENT1, data);
    return VKN_OK;
}

/* Replaces one moment of each parameter. */
static vkn_status upload_moment(const struct step *step, const struct gpu_buffer *buffer,
                                const float *values, uint32_t moment)
{
    uint32_t *words = base_alloc(buffer->size, 1);
    vkn_status status =
        words ? gpu_download(step->device, buffer, 0, words, buffer->size) : VKN_ERROR;
    if (status == VKN_OK) {
        optim_pack_moments(values, buffer->size / 4, moment, words);
        status = gpu_upload(step->device, buffer, 0, words, buffer->size);
    }
    free(words);
    return status;
}

/* Uploads the state of a checkpoint that has another error map, or none. */
static vkn_status upload_state(const struct step *step, const struct gpu_buffer *buffer,
                               const void *data, uint64_t size)
{
    uint64_t map = step_error_map_offset(step), before = step_view_sums_offset(step) - map;
    struct State state = {0};
    memcpy(&state, data, size < sizeof state ? size : sizeof state);
    BASE_TRY(gpu_upload(step->device, buffer, 0, &state, sizeof state));
    if (before == 0)
        return VKN_OK;
    void *zeros = base_alloc(before, 1);
    vkn_status status = zeros ? gpu_upload(step->device, buffer, map, zeros, before) : VKN_ERROR;
    free(zeros);
    return status;
}

vkn_status step_upload_saved(const struct step *step, const struct saved_buffer *saved,
                             const void *data, uint64_t size)
{
    const struct gpu_buffer *words = packed_words(step, saved), *buffer = step_saved(step, saved);
    if (words)
        return upload_moment(step, words, data, saved->number - BIND_MOMENT1);
    if (size == buffer->size)
        return gpu_upload(step->device, buffer, 0, data, size);
    return upload_state(step, buffer, data, size);
}
