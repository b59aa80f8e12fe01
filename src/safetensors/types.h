/* Declares the element types and helpers that the safetensors reader and writer share. */
#ifndef SAFETENSORS_TYPES_H
#define SAFETENSORS_TYPES_H

#include "safetensors/safetensors.h"

#define SAFETENSORS_TYPES 6 /* number of element types */

struct safetensors_type_info {
    const char *name; /* as in the file's header */
    size_t size;      /* bytes of an element */
};
extern const struct safetensors_type_info safetensors_types[SAFETENSORS_TYPES]; /* by enum value */

/* Computes a tensor's size in bytes from type and shape; returns false if it exceeds 64 bits. */
bool safetensors_byte_size(const struct safetensors_tensor *tensor, uint64_t *size);

/* Returns the first of the checksum's 8 digits in a header; NULL without a checksum. */
char *safetensors_checksum_digits(char *header, size_t size);

#endif
