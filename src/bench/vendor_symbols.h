/* Declares the functions of CUDA's driver API and of cuBLASLt that vendor.c calls, as documented,
 * so that the build needs neither. All CUDA handles are pointers; device addresses have 64 bits. */
#ifndef BENCH_VENDOR_SYMBOLS_H
#define BENCH_VENDOR_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

/* cudaDataType_t */
enum { VENDOR_R_32F = 0, VENDOR_R_16F = 2 };
/* cublasComputeType_t */
enum { VENDOR_COMPUTE_16F = 64, VENDOR_COMPUTE_32F = 68, VENDOR_COMPUTE_32F_FAST_TF32 = 77 };
/* cublasLtMatmulPreferenceAttributes_t */
enum { VENDOR_MAX_WORKSPACE_BYTES = 1 };

/* cublasLtMatmulHeuristicResult_t */
struct vendor_heuristic {
    uint64_t algorithm[8]; /* cublasLtMatmulAlgo_t */
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
};

/* X(result, name, parameters): the members of struct vendor_symbols. */
#define VENDOR_SYMBOLS(X)                                                                       \
    X(int, cuInit, (unsigned flags))                                                            \
    X(int, cuDeviceGetCount, (int *count))                                                      \
    X(int, cuDeviceGet, (int *device, int index))                                               \
    X(int, cuDeviceGetName, (char *name, int size, int device))                                 \
    X(int, cuDevicePrimaryCtxRetain, (void **context, int device))                              \
    X(int, cuDevicePrimaryCtxRelease_v2, (int device))                                          \
    X(int, cuCtxSetCurrent, (void *context))                                                    \
    X(int, cuMemAlloc_v2, (uint64_t *address, size_t size))                                     \
    X(int, cuMemFree_v2, (uint64_t address))                                                    \
    X(int, cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t size))                       \
    X(int, cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t size))                             \
    X(int, cuMemcpyDtoD_v2, (uint64_t to, uint64_t from, size_t size))                          \
    X(int, cuEventCreate, (void **event, unsigned flags))                                       \
    X(int, cuEventRecord, (void *event, void *stream))                                          \
    X(int, cuEventSynchronize, (void *event))                                                   \
    X(int, cuEventElapsedTime, (float *milliseconds, void *from, void *to))                     \
    X(int, cuEventDestroy_v2, (void *event))                                                    \
    X(size_t, cublasLtGetVersion, (void))                                                       \
    X(int, cublasLtCreate, (void **handle))                                                     \
    X(int, cublasLtDestroy, (void *handle))                                                     \
    X(int, cublasLtMatmulDescCreate, (void **description, int compute, int scale_type))         \
    X(int, cublasLtMatmulDescDestroy, (void *description))                                      \
    X(int, cublasLtMatrixLayoutCreate,                                                          \
      (void **layout, int type, uint64_t rows, uint64_t columns, int64_t stride))               \
    X(int, cublasLtMatrixLayoutDestroy, (void *layout))                                         \
    X(int, cublasLtMatmulPreferenceCreate, (void **preference))                                 \
    X(int, cublasLtMatmulPreferenceDestroy, (void *preference))                                 \
    X(int, cublasLtMatmulPreferenceSetAttribute,                                                \
      (void *preference, int attribute, const void *value, size_t size))                        \
    X(int, cublasLtMatmulAlgoGetHeuristic,                                                      \
      (void *handle, void *description, void *a, void *b, void *c, void *d, void *preference,   \
       int wanted, struct vendor_heuristic *results, int *count))                               \
    X(int, cublasLtMatmul,                                                                      \
      (void *handle, void *description, const void *alpha, const void *a, void *a_layout,       \
       const void *b, void *b_layout, const void *beta, const void *c, void *c_layout, void *d, \
       void *d_layout, const void *algorithm, void *workspace, size_t workspace_size,           \
       void *stream))

#endif
