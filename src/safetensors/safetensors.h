/* safetensors: reads and writes named tensors and string metadata in one file
 * (https://github.com/huggingface/safetensors, format description). */
#ifndef SAFETENSORS_SAFETENSORS_H
#define SAFETENSORS_SAFETENSORS_H

#include "base/base.h"

/* Element types. */
enum safetensors_type {
    SAFETENSORS_F32,
    SAFETENSORS_F16,
    SAFETENSORS_I32,
    SAFETENSORS_U32,
    SAFETENSORS_U8,
    SAFETENSORS_U64
};

struct safetensors_tensor {
    const char *name;
    enum safetensors_type type;
    uint32_t rank;
    uint64_t shape[4];
    const void *data; /* little-endian, row-major */
    uint64_t size;    /* bytes */
};

struct safetensors_metadata {
    const char *key, *value;
};

/* Metadata key of the CRC-32C of all bytes of the file, computed with UNSET instead of the
 * checksum. A file with another checksum is refused; a program that changes a file must
 * remove the key. */
#define SAFETENSORS_CHECKSUM       "vknerf.crc32c"
#define SAFETENSORS_CHECKSUM_UNSET "00000000"

/* Writes a file and replaces `path` atomically (base_file_begin / commit). If the metadata has
 * SAFETENSORS_CHECKSUM with the value UNSET, replaces the value by the checksum. In strings, bytes
 * that are not UTF-8 become U+FFFD. */
vkn_status safetensors_write(const char *path, const struct safetensors_tensor *tensors,
                             size_t count, const struct safetensors_metadata *metadata,
                             size_t metadata_count);

/* A whole file in memory. Its tensors and strings are valid until safetensors_close. */
struct safetensors_file;
/* Reads a file and checks it completely: header length and JSON, types, shapes against offsets, no
 * overlap, no hole, nothing past the end, the checksum if any. VKN_BAD_INPUT names the tensor. */
vkn_status safetensors_open(const char *path, struct safetensors_file **file);
/* Reads and checks a copy of bytes in memory; `name` replaces the path in messages. */
vkn_status safetensors_open_bytes(const char *name, const void *bytes, size_t size,
                                  struct safetensors_file **file);
/* Return the number of tensors, and a tensor by its index in the file; NULL beyond the last. */
size_t safetensors_count(const struct safetensors_file *file);
const struct safetensors_tensor *safetensors_at(const struct safetensors_file *file, size_t index);
/* Finds a tensor by its name, type and number of elements. VKN_BAD_INPUT names file and tensor. */
vkn_status safetensors_find(const struct safetensors_file *file, const char *name,
                            enum safetensors_type type, uint64_t elements,
                            const struct safetensors_tensor **tensor);
/* Returns the value of a metadata key; NULL when it is missing. */
const char *safetensors_metadata_value(const struct safetensors_file *file, const char *key);
/* Frees the file and sets the pointer to NULL. */
void safetensors_close(struct safetensors_file **file);

#endif
