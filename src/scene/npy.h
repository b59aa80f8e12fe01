/* Inside of the scene room: matrices in NumPy's .npy files. */
#ifndef SCENE_NPY_H
#define SCENE_NPY_H

#include "base/base.h"

struct npy {
    double *values; /* rows x columns, row-major */
    size_t rows, columns;
};

/* A two-dimensional array of float32 or float64 in either byte order, C or Fortran order, from
 * bytes of format version 1, 2 or 3 (NumPy Enhancement Proposal 1). `name` stands for the file in
 * messages. The caller calls npy_free, after a failure too. */
vkn_status npy_parse(const char *name, const uint8_t *data, size_t size, struct npy *array);
vkn_status npy_read(const char *file, struct npy *array);
void npy_free(struct npy *array);

#endif
