/* Fuzzes the checkpoint reader: whatever the bytes, it refuses or gives tensors that can be read.
 */
#include <string.h>

#include "train/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The reader promises names and strings that end, and data that is there and aligned. */
static uint64_t read_everything(const struct safetensors_file *file)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(file, i), *found;
        const uint8_t *bytes = tensor->data;
        for (uint64_t byte = 0; byte < tensor->size; byte++)
            sum += bytes[byte];
        if (tensor->type == SAFETENSORS_U64 && tensor->size)
            sum += *(const uint64_t *)tensor->data;
        sum += strlen(tensor->name);
        if (safetensors_find(file, tensor->name, tensor->type, UINT64_MAX, &found) == VKN_OK)
            sum++;
    }
    const char *value = safetensors_metadata_value(file, "config");
    return sum + (value ? strlen(value) : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors_file *file;
    if (safetensors_open_bytes("fuzz", data, size, &file) != VKN_OK)
        return 0;
    volatile uint64_t sum = read_everything(file);
    (void)sum;
    safetensors_close(&file);
    return 0;
}
