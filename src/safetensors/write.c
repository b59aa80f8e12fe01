/* Writes safetensors files like the reference implementation, except for the metadata's order. */
#include "safetensors/types.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors are written as they lie in memory: a little-endian machine is needed"
#endif

const struct safetensors_type_info safetensors_types[SAFETENSORS_TYPES] = {
    [SAFETENSORS_F32] = {"F32", 4}, [SAFETENSORS_F16] = {"F16", 2}, [SAFETENSORS_I32] = {"I32", 4},
    [SAFETENSORS_U32] = {"U32", 4}, [SAFETENSORS_U8] = {"U8", 1},   [SAFETENSORS_U64] = {"U64", 8},
};

bool safetensors_byte_size(const struct safetensors_tensor *tensor, uint64_t *size)
{
    *size = safetensors_types[tensor->type].size;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (__builtin_mul_overflow(*size, tensor->shape[i], size))
            return false;
    }
    return true;
}

/* Searches for the key with its quotes and colon: quotes within a string would have backslashes. */
char *safetensors_checksum_digits(char *header, size_t size)
{
    static const char key[] = "\"" SAFETENSORS_CHECKSUM "\":\"";
    const size_t length = sizeof(key) - 1, digits = sizeof(SAFETENSORS_CHECKSUM_UNSET) - 1;
    for (char *at = header, *end = header + size; at && (size_t)(end - at) >= length + digits;) {
        if (memcmp(at, key, length) == 0)
            return at + length;
        at = memchr(at + 1, '"', (size_t)(end - at) - 1);
    }
    return NULL;
}

/* Adds a JSON string in its shortest form, as serde_json does. */
static void add_string(struct base_text *text, const char *string)
{
    cJSON *json = cJSON_CreateString(string);
    char *printed = base_json_print_unformatted(json);
    base_text_add(text, "%s", printed != NULL ? printed : "");
    text->failed |= printed == NULL;
    free(printed);
    cJSON_Delete(json);
}

/* Orders tensors by element size, largest first: all are aligned if the data section is aligned. */
static int compare_sizes(const void *left, const void *right)
{
    const struct safetensors_tensor *a = *(const struct safetensors_tensor *const *)left;
    const struct safetensors_tensor *b = *(const struct safetensors_tensor *const *)right;
    size_t a_size = safetensors_types[a->type].size, b_size = safetensors_types[b->type].size;
    if (a_size != b_size)
        return a_size > b_size ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Refuses a tensor with which the reader would refuse the file. */
static vkn_status check_tensor(const char *path, const struct safetensors_tensor *tensors,
                               size_t index)
{
    const struct safetensors_tensor *tensor = &tensors[index];
    for (size_t i = 0; i < index; i++) {
        if (strcmp(tensors[i].name, tensor->name) == 0)
            return base_fail(VKN_ERROR, "%s: tensor %s is given twice", path, tensor->name);
    }
    uint64_t size;
    if ((unsigned)tensor->type >= SAFETENSORS_TYPES || tensor->rank > BASE_COUNT(tensor->shape) ||
        !safetensors_byte_size(tensor, &size) || size != tensor->size)
        return base_fail(VKN_ERROR, "%s: tensor %s: size does not match type and shape", path,
                         tensor->name);
    return VKN_OK;
}

static void add_tensor(struct base_text *header, const struct safetensors_tensor *tensor,
                       uint64_t offset)
{
    add_string(header, tensor->name);
    base_text_add(header, ":{\"dtype\":\"%s\",\"shape\":[", safetensors_types[tensor->type].name);
    for (uint32_t i = 0; i < tensor->rank; i++)
        base_text_add(header, "%s%llu", i ? "," : "", (unsigned long long)tensor->shape[i]);
    base_text_add(header, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)offset,
                  (unsigned long long)(offset + tensor->size));
}

static void add_header(struct base_text *header, const struct safetensors_tensor *const *sorted,
                       size_t count, const struct safetensors_metadata *metadata,
                       size_t metadata_count)
{
    base_text_add(header, "{");
    if (metadata_count) {
        base_text_add(header, "\"__metadata__\":{");
        for (size_t i = 0; i < metadata_count; i++) {
            base_text_add(header, "%s", i ? "," : "");
            add_string(header, metadata[i].key);
            base_text_add(header, ":");
            add_string(header, metadata[i].value);
        }
        base_text_add(header, "}");
    }
    uint64_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        base_text_add(header, "%s", i || metadata_count ? "," : "");
        add_tensor(header, sorted[i], offset);
        offset += sorted[i]->size;
    }
    base_text_add(header, "}");
    /* The data section starts at a multiple of 8 bytes. */
    while (header->size % 8 && !header->failed)
        base_text_add(header, " ");
}

static void fill_checksum(struct base_text *header, const struct safetensors_tensor *const *sorted,
                          size_t count)
{
    char *digits = safetensors_checksum_digits(header->data, header->size), text[9];
    if (!digits)
        return;
    uint64_t size = header->size;
    uint32_t crc = base_crc32c(base_crc32c(0, &size, 8), header->data, header->size);
    for (size_t i = 0; i < count; i++)
        crc = base_crc32c(crc, sorted[i]->data, (size_t)sorted[i]->size);
    snprintf(text, sizeof(text), "%08x", crc);
    memcpy(digits, text, 8);
}

static vkn_status write_file(const char *path, const struct base_text *header,
                             const struct safetensors_tensor *const *sorted, size_t count)
{
    struct base_file_writer writer;
    BASE_TRY(base_file_begin(&writer, path));
    uint64_t size = header->size;
    bool written = fwrite(&size, 1, 8, writer.stream) == 8 &&
                   fwrite(header->data, 1, header->size, writer.stream) == header->size;
    for (size_t i = 0; i < count && written; i++) {
        size_t bytes = (size_t)sorted[i]->size;
        written = bytes == 0 || fwrite(sorted[i]->data, 1, bytes, writer.stream) == bytes;
    }
    if (written)
        return base_file_commit(&writer);
    int error = errno;
    base_file_abort(&writer);
    return base_fail(VKN_ERROR, "%s: cannot write: %s", path, strerror(error));
}

vkn_status safetensors_write(const char *path, const struct safetensors_tensor *tensors,
                             size_t count, const struct safetensors_metadata *metadata,
                             size_t metadata_count)
{
    for (size_t i = 0; i < count; i++)
        BASE_TRY(check_tensor(path, tensors, i));
    const struct safetensors_tensor **sorted = base_alloc(count ? count : 1, sizeof(*sorted));
    if (!sorted)
        return VKN_ERROR;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &tensors[i];
    qsort(sorted, count, sizeof(*sorted), compare_sizes);
    struct base_text header = {0};
    add_header(&header, sorted, count, metadata, metadata_count);
    if (!header.failed)
        fill_checksum(&header, sorted, count);
    vkn_status status = header.failed
                            ? base_fail(VKN_ERROR, "%s: out of memory for the header", path)
                            : write_file(path, &header, sorted, count);
    free(header.data);
    free(sorted);
    return status;
}
