/* Fuzzes the checkpoint reader: all bytes are refused or give tensors that can be read. */
#define _GNU_SOURCE
#include "fuzz.h"
#include "safetensors/types.h"

/* Reads every byte, for the address sanitizer. */
static uint64_t sum_bytes(const void *bytes, uint64_t size)
{
    const uint8_t *octets = bytes;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < size; i++)
        sum += octets[i];
    return sum;
}

static uint64_t check_tensor(const struct safetensors_file *file, size_t index)
{
    const struct safetensors_tensor *tensor = safetensors_at(file, index), *found;
    uint64_t size = 0, element = safetensors_types[tensor->type].size;
    require(safetensors_byte_size(tensor, &size) && size == tensor->size,
            "size is not that of the shape");
    require((uintptr_t)tensor->data % element == 0, "data is not aligned");
    require(safetensors_find(file, tensor->name, tensor->type, size / element, &found) == VKN_OK &&
                found == tensor,
            "a tensor is not found under its name");
    require(safetensors_find(file, tensor->name, tensor->type, UINT64_MAX, &found) == VKN_BAD_INPUT,
            "a tensor has any number of elements");
    return sum_bytes(tensor->data, size) + strlen(tensor->name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors_file *file;
    vkn_status status = safetensors_open_bytes("fuzz", data, size, &file);
    require(status == VKN_OK ? file != NULL : status == VKN_BAD_INPUT && !file, "odd status");
    if (status != VKN_OK)
        return 0;
    volatile uint64_t sum = 0;
    for (size_t i = 0; i < safetensors_count(file); i++)
        sum += check_tensor(file, i);
    const char *value = safetensors_metadata_value(file, "config");
    sum += value ? strlen(value) : 0;
    (void)sum; /* only to read every byte */
    safetensors_close(&file);
    return 0;
}
