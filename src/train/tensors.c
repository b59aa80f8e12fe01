/* Reads and writes a trainer's parameters and occupancy grid for programs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/internal.h"

/* Lists the tensors that programs may read and write: the parameters in f32. */
static size_t list(const vkn_trainer *trainer, struct saved_buffer tensors[MAX_SAVED_BUFFERS])
{
    struct saved_buffer saved[MAX_SAVED_BUFFERS];
    size_t all = step_list_saved(&trainer->step, saved), count = 0;
    for (size_t i = 0; i < all; i++)
        if (saved[i].number == BIND_PARAMS || saved[i].number == BIND_AVERAGE)
            tensors[count++] = saved[i];
    return count;
}

static uint64_t count_of(const vkn_trainer *trainer, const struct saved_buffer *tensor)
{
    return step_saved_size(&trainer->step, tensor) / sizeof(float);
}

size_t vkn_trainer_tensor_count(const vkn_trainer *trainer)
{
    struct saved_buffer tensors[MAX_SAVED_BUFFERS];
    return trainer ? list(trainer, tensors) : 0;
}

vkn_status vkn_trainer_tensor(const vkn_trainer *trainer, size_t index, struct vkn_tensor *tensor)
{
    BASE_NEED(trainer);
    BASE_NEED(tensor);
    struct saved_buffer tensors[MAX_SAVED_BUFFERS];
    size_t count = list(trainer, tensors);
    if (index >= count)
        return base_fail(VKN_BAD_INPUT, "%s: index: %zu is not from 0 to %zu", __func__, index,
                         count - 1);
    const struct vkn_tensor found = {.name = tensors[index].tensor,
                                     .count = count_of(trainer, &tensors[index])},
                            *own = &found;
    return BASE_FILL(vkn_tensor, own, tensor, count);
}

/* Finds the tensor and checks the caller's number of elements. */
static vkn_status find(const vkn_trainer *trainer, const char *what, const char *name,
                       uint64_t count, struct saved_buffer *found)
{
    struct saved_buffer tensors[MAX_SAVED_BUFFERS];
    char names[128] = "";
    size_t all = list(trainer, tensors);
    for (size_t i = 0; i < all; i++) {
        const char *tensor = tensors[i].tensor;
        *found = tensors[i];
        if (strcmp(tensor, name) != 0) {
            size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", tensor);
        } else if (count != count_of(trainer, found)) {
            return base_fail(VKN_BAD_INPUT, "%s: count: %llu: %s has %llu elements", what,
                             (unsigned long long)count, name,
                             (unsigned long long)count_of(trainer, found));
        } else {
            return VKN_OK;
        }
    }
    return base_fail(VKN_BAD_INPUT, "%s: name: \"%s\" is none of %s", what, name, names);
}

vkn_status vkn_trainer_read_tensor(vkn_trainer *trainer, const char *name, float *values,
                                   uint64_t count)
{
    BASE_C_LOCALE;
    BASE_NEED(trainer);
    BASE_NEED(name);
    BASE_NEED(values);
    BASE_USE(gpu_guard(trainer->device), NULL);
    struct saved_buffer tensor;
    BASE_TRY(find(trainer, __func__, name, count, &tensor));
    return step_download_saved(&trainer->step, &tensor, values);
}

vkn_status vkn_trainer_write_tensor(vkn_trainer *trainer, const char *name, const float *values,
                                    uint64_t count)
{
    BASE_C_LOCALE;
    BASE_NEED(trainer);
    BASE_NEED(name);
    BASE_NEED(values);
    BASE_USE(gpu_guard(trainer->device), trainer);
    struct saved_buffer tensor;
    BASE_TRY(find(trainer, __func__, name, count, &tensor));
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return base_fail(VKN_BAD_INPUT, "%s: values: element %llu is %g: must be finite",
                             __func__, (unsigned long long)i, (double)values[i]);
    BASE_TRY(step_upload_saved(&trainer->step, &tensor, values, count * sizeof *values));
    train_restart_monitor(trainer, trainer->monitor.skips.state_skipped);
    return step_round_parameters(&trainer->step);
}

vkn_status vkn_trainer_occupancy(vkn_trainer *trainer, struct vkn_occupancy *grid)
{
    BASE_C_LOCALE;
    BASE_NEED(trainer);
    BASE_NEED(grid);
    BASE_USE(gpu_guard(trainer->device), NULL);
    return step_read_occupancy(&trainer->step, __func__, grid);
}

vkn_status vkn_trainer_set_occupancy(vkn_trainer *trainer, const struct vkn_occupancy *grid)
{
    BASE_C_LOCALE;
    BASE_NEED(trainer);
    BASE_NEED(grid);
    BASE_USE(gpu_guard(trainer->device), trainer);
    return step_write_occupancy(&trainer->step, __func__, grid);
}
