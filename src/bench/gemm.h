/* What the files of the products share. */
#ifndef BENCH_GEMM_H
#define BENCH_GEMM_H

#include "bench/internal.h"
#include "bench/vendor.h"

/* C = A * B: m x k times k x n. */
struct gemm_case {
    uint32_t m, n, k;
};

#define GEMM_PATTERN (1u << 18) /* numbers; A and B repeat them */

/* The numbers in A and B, exact in f16. */
struct gemm_patterns {
    float *a, *b;
    uint16_t *half_a, *half_b;
};

/* Vendor's rates of the case at hand, in FLOP/s; 0: not measured. */
struct gemm_vendor {
    struct vendor *library; /* NULL: there is none */
    double rates[VENDOR_KINDS];
};

double gemm_flops(const struct gemm_case *c);
/* Bytes of A, B and C. */
uint64_t gemm_bytes(const struct gemm_case *c, uint32_t input, uint32_t output);
void gemm_describe(const struct gemm_case *c, struct bench_result *result);
/* The outputs that are compared: number `i` of GEMM_OUTPUTS is at that index of C in that set. */
#define GEMM_OUTPUTS 64u
uint64_t gemm_output(const struct gemm_case *c, uint32_t sets, uint32_t i, uint32_t *set);
/* Compares it with the exact product: of matrices row by row, or in our own programs' layout. */
void gemm_compare(const struct gemm_case *c, const struct gemm_patterns *patterns, bool ours,
                  uint32_t set, uint64_t output, float got, struct bench_check *check);
double gemm_tolerance(const struct gemm_case *c, bool f16_sums, bool half_outputs);

/* Measures the library's products of a case. */
vkn_status gemm_measure_vendor(struct bench *bench, const struct gemm_case *c,
                               const struct gemm_patterns *patterns, struct gemm_vendor *vendor);

#endif
