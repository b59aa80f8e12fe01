/* Reads safetensors files, which may be hostile: nothing is used before it has been checked. */
#include "safetensors/types.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* Largest header and file, bytes. The reference implementation allows headers of 100 MB; a
 * checkpoint's header has a configuration and some dozens of names. */
#define HEADER_LIMIT ((uint64_t)16 << 20)
#define FILE_LIMIT   (sizeof(size_t) > 4 ? (size_t)((uint64_t)64 << 30) : (size_t)1 << 30)
#define NUMBER_LIMIT 9007199254740992.0 /* cJSON has doubles, exact up to 2^53 */
#define ALIGNMENT    8u                 /* bytes */

struct safetensors_file {
    char *name; /* for messages */
    char *bytes;
    cJSON *header;
    const cJSON *metadata;              /* inside header; NULL when absent */
    struct safetensors_tensor *tensors; /* [count], by position in the file */
    size_t count;
};

/* Returns whether a tensor's name fits into one-line messages: it has no control characters. */
static bool is_printable(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    }
    return true;
}

static vkn_status fail_tensor(const struct safetensors_file *file, const char *tensor,
                              const char *what)
{
    return base_fail(VKN_BAD_INPUT, "%s: tensor %.200s: %s", file->name, tensor, what);
}

static bool read_count(const cJSON *item, uint64_t *value)
{
    double number = cJSON_IsNumber(item) ? item->valuedouble : -1.0;
    if (!(number >= 0.0 && number <= NUMBER_LIMIT))
        return false;
    *value = (uint64_t)number;
    return (double)*value == number;
}

static vkn_status parse_type(const struct safetensors_file *file, const cJSON *item,
                             const char *name, enum safetensors_type *type)
{
    if (!cJSON_IsString(item))
        return fail_tensor(file, name, "dtype is not a string");
    for (size_t i = 0; i < SAFETENSORS_TYPES; i++) {
        if (strcmp(item->valuestring, safetensors_types[i].name) == 0) {
            *type = (enum safetensors_type)i;
            return VKN_OK;
        }
    }
    return fail_tensor(file, name, "dtype is not one of F32, F16, I32, U32, U8, U64");
}

static vkn_status parse_shape(const struct safetensors_file *file, const cJSON *item,
                              struct safetensors_tensor *tensor)
{
    if (!cJSON_IsArray(item))
        return fail_tensor(file, tensor->name, "shape is not an array");
    const cJSON *dimension;
    cJSON_ArrayForEach (dimension, item) {
        if (tensor->rank == BASE_COUNT(tensor->shape))
            return fail_tensor(file, tensor->name, "shape has more than 4 dimensions");
        if (!read_count(dimension, &tensor->shape[tensor->rank]))
            return fail_tensor(file, tensor->name, "shape is not made of whole numbers");
        tensor->rank++;
    }
    if (!safetensors_byte_size(tensor, &tensor->size))
        return fail_tensor(file, tensor->name, "shape is too large");
    return VKN_OK;
}

/* Parses an entry of the header. Sets *offset to the offset of the tensor's first byte; the caller
 * sets tensor->data from it. */
static vkn_status parse_tensor(const struct safetensors_file *file, const cJSON *item,
                               struct safetensors_tensor *tensor, uint64_t *offset)
{
    tensor->name = item->string;
    if (!is_printable(tensor->name))
        return base_fail(VKN_BAD_INPUT, "%s: header: a tensor's name has control characters",
                         file->name);
    if (!cJSON_IsObject(item))
        return fail_tensor(file, tensor->name, "not an object");
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(item, "dtype");
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(item, "shape");
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(item, "data_offsets");
    /* Exactly three fields, so none is given twice. */
    if (!dtype || !shape || !offsets || cJSON_GetArraySize(item) != 3)
        return fail_tensor(file, tensor->name, "needs dtype, shape and data_offsets, each once");
    BASE_TRY(parse_type(file, dtype, tensor->name, &tensor->type));
    BASE_TRY(parse_shape(file, shape, tensor));
    uint64_t end;
    if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 ||
        !read_count(offsets->child, offset) || !read_count(offsets->child->next, &end))
        return fail_tensor(file, tensor->name, "data_offsets is not a pair of whole numbers");
    if (end < *offset || end - *offset != tensor->size)
        return fail_tensor(file, tensor->name, "data_offsets do not match dtype and shape");
    return VKN_OK;
}

/* ---- the whole header ----------------------------------------------------------------------- */

/* A tensor and the offset of its first byte in the data section. */
struct placed {
    struct safetensors_tensor tensor;
    uint64_t offset;
};

static int compare_names(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    return strcmp(a->tensor.name, b->tensor.name);
}

static int compare_offsets(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    if (a->tensor.size != b->tensor.size) /* an empty tensor precedes another at its offset */
        return a->tensor.size < b->tensor.size ? -1 : 1;
    return strcmp(a->tensor.name, b->tensor.name);
}

static vkn_status check_unique(const struct safetensors_file *file, struct placed *placed,
                               size_t count)
{
    qsort(placed, count, sizeof(*placed), compare_names);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(placed[i - 1].tensor.name, placed[i].tensor.name) == 0)
            return fail_tensor(file, placed[i].tensor.name, "appears twice");
    }
    return VKN_OK;
}

/* Checks that the tensors fill the data section exactly: no overlap, no hole, nothing left over. */
static vkn_status check_layout(const struct safetensors_file *file, struct placed *placed,
                               size_t count, uint64_t data_size)
{
    qsort(placed, count, sizeof(*placed), compare_offsets);
    uint64_t position = 0;
    for (size_t i = 0; i < count; i++) {
        if (placed[i].offset != position)
            return fail_tensor(file, placed[i].tensor.name,
                               placed[i].offset < position ? "overlaps the tensor before it"
                                                           : "leaves a hole before it");
        if (placed[i].tensor.size > data_size - position)
            return fail_tensor(file, placed[i].tensor.name,
                               "reaches past the end of the file (truncated?)");
        position += placed[i].tensor.size;
    }
    if (position != data_size)
        return base_fail(VKN_BAD_INPUT, "%s: %llu bytes follow the last tensor", file->name,
                         (unsigned long long)(data_size - position));
    return VKN_OK;
}

static vkn_status parse_metadata(struct safetensors_file *file, const cJSON *item)
{
    if (file->metadata)
        return base_fail(VKN_BAD_INPUT, "%s: header: __metadata__ appears twice", file->name);
    if (!cJSON_IsObject(item))
        return base_fail(VKN_BAD_INPUT, "%s: header: __metadata__ is not an object", file->name);
    const cJSON *value;
    cJSON_ArrayForEach (value, item) {
        if (!cJSON_IsString(value))
            return base_fail(VKN_BAD_INPUT,
                             "%s: header: __metadata__ has a value that is not a string",
                             file->name);
    }
    file->metadata = item;
    return VKN_OK;
}

static vkn_status parse_items(struct safetensors_file *file, struct placed *placed,
                              const char *data, uint64_t data_size)
{
    size_t count = 0;
    const cJSON *item;
    cJSON_ArrayForEach (item, file->header) {
        if (strcmp(item->string, "__metadata__") == 0) {
            BASE_TRY(parse_metadata(file, item));
            continue;
        }
        BASE_TRY(parse_tensor(file, item, &placed[count].tensor, &placed[count].offset));
        count++;
    }
    BASE_TRY(check_unique(file, placed, count));
    BASE_TRY(check_layout(file, placed, count, data_size));
    file->tensors = base_alloc(count ? count : 1, sizeof(*file->tensors));
    if (!file->tensors)
        return VKN_ERROR;
    file->count = count;
    for (size_t i = 0; i < count; i++) {
        file->tensors[i] = placed[i].tensor;
        file->tensors[i].data = data + placed[i].offset;
    }
    return VKN_OK;
}

static vkn_status parse_header(struct safetensors_file *file, const char *text, size_t size,
                               const char *data, uint64_t data_size)
{
    if (size == 0 || text[0] != '{' || memchr(text, 0, size))
        return base_fail(VKN_BAD_INPUT, "%s: header is not a JSON object (not a safetensors file?)",
                         file->name);
    char *name = base_format("%s: header", file->name);
    vkn_status parsed = name ? base_json_parse(name, text, size, &file->header) : VKN_ERROR;
    free(name);
    BASE_TRY(parsed);
    struct placed *placed =
        base_alloc((size_t)cJSON_GetArraySize(file->header) + 1, sizeof(*placed));
    if (!placed)
        return VKN_ERROR;
    vkn_status status = parse_items(file, placed, data, data_size);
    free(placed);
    return status;
}

/* Verifies the checksum, if any. Sets its digits to zeros, as when the writer computed it. */
static vkn_status check_checksum(struct safetensors_file *file, char *text, size_t header_size,
                                 size_t size)
{
    const char *value = safetensors_metadata_value(file, SAFETENSORS_CHECKSUM);
    char *digits = safetensors_checksum_digits(text, header_size), sum[9] = "";
    if (!value)
        return VKN_OK;
    if (digits) {
        memcpy(digits, SAFETENSORS_CHECKSUM_UNSET, 8);
        snprintf(sum, sizeof(sum), "%08x", base_crc32c(0, file->bytes, size));
    }
    if (strcmp(value, sum) != 0)
        return base_fail(VKN_BAD_INPUT,
                         "%s: its checksum (" SAFETENSORS_CHECKSUM ") does not match: the file is "
                         "damaged, or was changed",
                         file->name);
    return VKN_OK;
}

/* Moves all tensors to aligned positions in a new buffer if any tensor is not aligned: other
 * writers than write.c may place F32 or U64 data at any offset. */
static vkn_status realign(struct safetensors_file *file)
{
    bool is_aligned = true;
    size_t total = 1;
    for (size_t i = 0; i < file->count; i++) {
        const struct safetensors_tensor *tensor = &file->tensors[i];
        is_aligned &= (uintptr_t)tensor->data % safetensors_types[tensor->type].size == 0;
        total += (size_t)tensor->size + ALIGNMENT;
    }
    if (is_aligned)
        return VKN_OK;
    char *bytes = base_alloc(total, 1);
    if (!bytes)
        return VKN_ERROR;
    size_t position = 0;
    for (size_t i = 0; i < file->count; i++) {
        struct safetensors_tensor *tensor = &file->tensors[i];
        memcpy(bytes + position, tensor->data, (size_t)tensor->size);
        tensor->data = bytes + position;
        position = (position + (size_t)tensor->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    free(file->bytes);
    file->bytes = bytes;
    return VKN_OK;
}

static vkn_status parse_file(struct safetensors_file *file, size_t size)
{
    if (size < 8)
        return base_fail(VKN_BAD_INPUT, "%s: %zu bytes are too few for a safetensors file",
                         file->name, size);
    uint64_t header_size = 0;
    for (size_t i = 0; i < 8; i++)
        header_size |= (uint64_t)(unsigned char)file->bytes[i] << (8 * i);
    if (header_size > HEADER_LIMIT)
        return base_fail(
            VKN_BAD_INPUT,
            "%s: header of %llu bytes is over the limit of %llu (not a safetensors file?)",
            file->name, (unsigned long long)header_size, (unsigned long long)HEADER_LIMIT);
    if (header_size > size - 8)
        return base_fail(VKN_BAD_INPUT, "%s: header reaches past the end of the file (truncated?)",
                         file->name);
    char *text = file->bytes + 8, *data = text + header_size;
    BASE_TRY(parse_header(file, text, (size_t)header_size, data, size - 8 - header_size));
    BASE_TRY(check_checksum(file, text, (size_t)header_size, size));
    return realign(file);
}

/* ---- public --------------------------------------------------------------------------------- */

/* Parses a file in memory. Takes ownership of `bytes`, also after a failure. */
static vkn_status open_owned(const char *name, char *bytes, size_t size,
                             struct safetensors_file **file)
{
    struct safetensors_file *made = base_alloc(1, sizeof(*made));
    if (!made) {
        free(bytes);
        return VKN_ERROR;
    }
    made->bytes = bytes;
    made->name = base_format("%s", name);
    vkn_status status = made->name ? parse_file(made, size) : VKN_ERROR;
    if (status != VKN_OK)
        safetensors_close(&made);
    *file = made;
    return status;
}

vkn_status safetensors_open(const char *path, struct safetensors_file **file)
{
    *file = NULL;
    char *bytes;
    size_t size;
    BASE_TRY(base_file_read(path, FILE_LIMIT, &bytes, &size));
    return open_owned(path, bytes, size, file);
}

vkn_status safetensors_open_bytes(const char *name, const void *bytes, size_t size,
                                  struct safetensors_file **file)
{
    *file = NULL;
    char *copy = base_alloc(size + 1, 1);
    if (!copy)
        return VKN_ERROR;
    if (size)
        memcpy(copy, bytes, size);
    return open_owned(name, copy, size, file);
}

size_t safetensors_count(const struct safetensors_file *file)
{
    return file->count;
}

const struct safetensors_tensor *safetensors_at(const struct safetensors_file *file, size_t index)
{
    return index < file->count ? &file->tensors[index] : NULL;
}

vkn_status safetensors_find(const struct safetensors_file *file, const char *name,
                            enum safetensors_type type, uint64_t elements,
                            const struct safetensors_tensor **tensor)
{
    *tensor = NULL;
    for (size_t i = 0; i < file->count; i++) {
        const struct safetensors_tensor *found = &file->tensors[i];
        if (strcmp(found->name, name) != 0)
            continue;
        if (found->type != type)
            return base_fail(VKN_BAD_INPUT, "%s: tensor %s is %s, expected %s", file->name, name,
                             safetensors_types[found->type].name, safetensors_types[type].name);
        uint64_t have = found->size / safetensors_types[type].size;
        if (have != elements)
            return base_fail(VKN_BAD_INPUT, "%s: tensor %s has %llu elements, expected %llu",
                             file->name, name, (unsigned long long)have,
                             (unsigned long long)elements);
        *tensor = found;
        return VKN_OK;
    }
    return base_fail(VKN_BAD_INPUT, "%s: tensor %s is missing", file->name, name);
}

const char *safetensors_metadata_value(const struct safetensors_file *file, const char *key)
{
    const cJSON *item =
        file->metadata ? cJSON_GetObjectItemCaseSensitive(file->metadata, key) : NULL;
    return item ? item->valuestring : NULL;
}

void safetensors_close(struct safetensors_file **file)
{
    if (!*file)
        return;
    free((*file)->name);
    free((*file)->bytes);
    free((*file)->tensors);
    cJSON_Delete((*file)->header);
    free(*file);
    *file = NULL;
}
