/* Finds tensors of checkpoints, also of those that older programs wrote. */
#include <stddef.h>
#include <string.h>

#include "checkpoint/checkpoint.h"

/* Words of the shortest struct State that was ever written. */
#define FIRST_STATE (offsetof(struct State, tolerated) / 4)

/* Elements of the state in the file where it is an older program's, else `count`. */
static uint64_t state_elements(const struct safetensors_file *file, const char *name,
                               uint64_t count)
{
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(file, i);
        uint64_t elements = tensor->size / 4;
        if (strcmp(tensor->name, name) == 0 && elements >= FIRST_STATE && elements < count)
            return elements;
    }
    return count;
}

bool checkpoint_skipped(const struct safetensors_file *file, uint32_t *skipped)
{
    BASE_KEEP_ERROR;
    const struct kept_buffer kept = {.number = BIND_STATE, .tensor = "state"};
    const struct safetensors_tensor *state = NULL;
    if (checkpoint_find(file, &kept, sizeof(struct State) / 4, &state) != VKN_OK)
        return false;
    memcpy(skipped, (const char *)state->data + offsetof(struct State, skipped_steps),
           sizeof *skipped);
    return true;
}

vkn_status checkpoint_find(const struct safetensors_file *file, const struct kept_buffer *kept,
                           uint64_t count, const struct safetensors_tensor **tensor)
{
    if (kept->number == BIND_STATE)
        count = state_elements(file, kept->tensor, count);
    return safetensors_find(file, kept->tensor, kept->real ? SAFETENSORS_F32 : SAFETENSORS_U32,
                            count, tensor);
}
