/* Implements on the host the functions of CUDA's driver and cuBLASLt that vknerf bench calls: a
 * library for VKNERF_CUBLASLT, so that tests need neither. Device memory is host memory. Matrices
 * are column-major, as in cuBLASLt. With VKNERF_FAKE_CUBLASLT=wrong products are wrong. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/internal.h"
#include "bench/vendor_symbols.h"

#define DECLARE(result, name, parameters) \
    __attribute__((visibility("default"))) result name parameters;
VENDOR_SYMBOLS(DECLARE)

struct layout {
    int type;
    uint64_t rows, columns;
    int64_t stride;
};

struct description {
    int compute, scale_type;
};

static int objects; /* created and not freed yet */

static int create(void **object, size_t size)
{
    *object = calloc(1, size);
    objects += *object != NULL;
    return *object ? 0 : 2;
}

static int destroy(void *object)
{
    objects--;
    free(object);
    return 0;
}

/* ---- the driver ------------------------------------------------------------------------------ */

int cuInit(unsigned flags)
{
    return (int)flags;
}

int cuDeviceGetCount(int *count)
{
    *count = 2;
    return 0;
}

int cuDeviceGet(int *device, int index)
{
    *device = index;
    return 0;
}

/* Device 0 is not the one that Vulkan uses. */
int cuDeviceGetName(char *name, int size, int device)
{
    strncpy(name, device == 1 ? "llvmpipe" : "a device of CUDA's alone", (size_t)size);
    return 0;
}

static void *primary_context; /* context */

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    int code = device == 1 ? create(&primary_context, 1) : 1;
    *context = primary_context;
    return code;
}

/* Aborts if other objects are left: the context must be released last. */
int cuDevicePrimaryCtxRelease_v2(int device)
{
    if (device != 1 || objects != 1)
        abort();
    return destroy(primary_context);
}

int cuCtxSetCurrent(void *context)
{
    return context ? 0 : 1;
}

int cuMemAlloc_v2(uint64_t *address, size_t size)
{
    void *memory = NULL;
    int code = create(&memory, size);
    *address = (uintptr_t)memory;
    return code;
}

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

int cuMemFree_v2(uint64_t address)
{
    return destroy(pointer(address));
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
    memcpy(pointer(to), from, size);
    return 0;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size)
{
    memcpy(to, pointer(from), size);
    return 0;
}

int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t size)
{
    memcpy(pointer(to), pointer(from), size);
    return 0;
}

int cuEventCreate(void **event, unsigned flags)
{
    return flags ? 1 : create(event, sizeof(struct timespec));
}

int cuEventRecord(void *event, void *stream)
{
    return stream ? 1 : clock_gettime(CLOCK_MONOTONIC, event);
}

int cuEventSynchronize(void *event)
{
    return event ? 0 : 1;
}

int cuEventElapsedTime(float *milliseconds, void *from, void *to)
{
    const struct timespec *a = from, *b = to;
    *milliseconds =
        (float)(1e3 * (double)(b->tv_sec - a->tv_sec) + 1e-6 * (double)(b->tv_nsec - a->tv_nsec));
    return 0;
}

int cuEventDestroy_v2(void *event)
{
    return destroy(event);
}

/* ---- cuBLASLt -------------------------------------------------------------------------------- */

size_t cublasLtGetVersion(void)
{
    return 120804;
}

int cublasLtCreate(void **handle)
{
    return create(handle, 1);
}

int cublasLtDestroy(void *handle)
{
    return destroy(handle);
}

int cublasLtMatmulDescCreate(void **description, int compute, int scale_type)
{
    int code = create(description, sizeof(struct description));
    if (code == 0)
        *(struct description *)*description = (struct description){compute, scale_type};
    return code;
}

int cublasLtMatmulDescDestroy(void *description)
{
    return destroy(description);
}

int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns,
                               int64_t stride)
{
    int code = create(layout, sizeof(struct layout));
    if (code == 0)
        *(struct layout *)*layout = (struct layout){type, rows, columns, stride};
    return code;
}

int cublasLtMatrixLayoutDestroy(void *layout)
{
    return destroy(layout);
}

int cublasLtMatmulPreferenceCreate(void **preference)
{
    return create(preference, sizeof(uint64_t));
}

int cublasLtMatmulPreferenceDestroy(void *preference)
{
    return destroy(preference);
}

int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value,
                                         size_t size)
{
    if (attribute != VENDOR_MAX_WORKSPACE_BYTES || size != sizeof(uint64_t))
        return 7;
    memcpy(preference, value, size);
    return 0;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *description, void *a, void *b, void *c,
                                   void *d, void *preference, int wanted,
                                   struct vendor_heuristic *results, int *count)
{
    if (!handle || !description || !a || !b || c != d || !preference || wanted < 1)
        return 7;
    results[0] = (struct vendor_heuristic){.algorithm = {42}};
    *count = 1;
    return 0;
}

static double read_at(const void *matrix, const struct layout *layout, uint64_t row,
                      uint64_t column)
{
    uint64_t at = column * (uint64_t)layout->stride + row;
    return layout->type == VENDOR_R_16F ? (double)base_from_f16(((const uint16_t *)matrix)[at])
                                        : (double)((const float *)matrix)[at];
}

/* Returns the matrix as doubles, by rows or by columns, for consecutive reads; NULL without
 * memory. */
static double *read_all(const void *matrix, const struct layout *layout, int by_rows)
{
    double *values = malloc(layout->rows * layout->columns * sizeof *values);
    for (uint64_t column = 0; values && column < layout->columns; column++)
        for (uint64_t row = 0; row < layout->rows; row++)
            values[by_rows ? row * layout->columns + column : column * layout->rows + row] =
                read_at(matrix, layout, row, column);
    return values;
}

static void write_at(void *matrix, const struct layout *layout, uint64_t row, uint64_t column,
                     double value)
{
    uint64_t at = column * (uint64_t)layout->stride + row;
    if (layout->type == VENDOR_R_16F)
        ((uint16_t *)matrix)[at] = base_to_f16((float)value);
    else
        ((float *)matrix)[at] = (float)value;
}

/* Returns whether alpha and beta, which have the sums' type, are one and zero. */
static int is_plain(const struct description *description, const void *alpha, const void *beta)
{
    if (description->scale_type == VENDOR_R_16F)
        return description->compute == VENDOR_COMPUTE_16F && *(const uint16_t *)alpha == 0x3c00 &&
               *(const uint16_t *)beta == 0;
    return description->compute != VENDOR_COMPUTE_16F && *(const float *)alpha == 1 &&
           *(const float *)beta == 0;
}

int cublasLtMatmul(void *handle, void *description, const void *alpha, const void *a,
                   void *a_layout, const void *b, void *b_layout, const void *beta, const void *c,
                   void *c_layout, void *d, void *d_layout, const void *algorithm, void *workspace,
                   size_t workspace_size, void *stream)
{
    const struct layout *left = a_layout, *right = b_layout, *result = d_layout;
    const char *mode = getenv("VKNERF_FAKE_CUBLASLT");
    double factor = mode && strcmp(mode, "wrong") == 0 ? 1.5 : 1;
    if (!handle || !is_plain(description, alpha, beta) || c != d || c_layout != d_layout ||
        *(const uint64_t *)algorithm != 42 || !workspace || !workspace_size || stream ||
        left->columns != right->rows || left->rows != result->rows ||
        right->columns != result->columns)
        return 7;
    double *rows = read_all(a, left, 1), *columns = read_all(b, right, 0);
    for (uint64_t column = 0; rows && columns && column < result->columns; column++)
        for (uint64_t row = 0; row < result->rows; row++) {
            double sum = 0;
            for (uint64_t k = 0; k < left->columns; k++)
                sum += rows[row * left->columns + k] * columns[column * right->rows + k];
            write_at(d, result, row, column, factor * sum);
        }
    int code = rows && columns ? 0 : 3;
    free(rows);
    free(columns);
    return code;
}
