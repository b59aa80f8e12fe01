/* The vendor's own library of matrix products, for comparison: cuBLASLt, found at run time. */
#ifndef BENCH_VENDOR_H
#define BENCH_VENDOR_H

#include "base/base.h"

enum vendor_kind { VENDOR_F16_F32, VENDOR_F16_F16, VENDOR_TF32, VENDOR_F32, VENDOR_KINDS };
/* "cublaslt f16 f32": multiplicands, then sums. */
extern const char *const vendor_names[VENDOR_KINDS];

/* C = A * B, row-major, `sets` of each behind one another. Multiplicands are f16 or f32 as the kind
 * has it, C is of the sums' type. */
struct vendor_product {
    enum vendor_kind kind;
    uint32_t m, n, k, sets;
    const void *a, *b; /* patterns: repeated until A and B are full */
    uint64_t pattern;  /* bytes of each */
};

struct vendor;
/* On the CUDA device of that name. NULL: `why` says in a line what is missing. VKNERF_CUBLASLT
 * names the library where it is not among the system's. */
struct vendor *vendor_open(const char *device, char *why, size_t size);
void vendor_close(struct vendor **vendor);
/* "cuBLASLt 12.8.4" */
const char *vendor_version(const struct vendor *vendor);
/* Allocates, fills in and plans; ends with vendor_end, also after a failure. */
vkn_status vendor_begin(struct vendor *vendor, const struct vendor_product *product);
void vendor_end(struct vendor *vendor);
/* Runs the product `turns` times, on set after set. */
vkn_status vendor_run(struct vendor *vendor, uint32_t turns, double *seconds);
/* Bytes of C of the first set. */
vkn_status vendor_download(struct vendor *vendor, void *c, uint64_t offset, uint64_t size);

#endif
