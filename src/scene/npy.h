/* Reads matrices from NumPy's .npy files (internal to the module scene). */
#ifndef SCENE_NPY_H
#define SCENE_NPY_H

#include "base/base.h"

/* A matrix, and where its file has the numbers. */
struct npy {
    double *values; /* [rows][columns] */
    size_t rows, columns;
    char *data; /* the file, of `size` bytes; NULL after npy_parse */
    size_t size;
    size_t begin;     /* bytes of the file before the numbers */
    size_t item_size; /* bytes per number: 4 or 8 */
    bool big_endian, fortran_order;
};

/* Returns whether a file that begins with these bytes is an .npy file. */
bool npy_is(const uint8_t *data, size_t size);
/* Parse or read a two-dimensional array of float32 or float64, in either byte order, C or Fortran
 * order, format version 1, 2 or 3 (NumPy Enhancement Proposal 1). `name` is the name of the file
 * for messages. The caller calls npy_free, also after a failure. */
vkn_status npy_parse(const char *name, const uint8_t *data, size_t size, struct npy *array);
vkn_status npy_read(const char *file, struct npy *array);
/* Changes a number in array->data. */
void npy_set(struct npy *array, size_t row, size_t column, double value);
/* Frees what the matrix owns and sets it to zeros. */
void npy_free(struct npy *array);

#endif
