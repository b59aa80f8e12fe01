/* Declares the tests of a certificate: what a test is, and the checks that it is made of.
 *
 * A check that fails ends its test. Outside of a test it calls the function of check_on_failure(),
 * so that test programs can use these checks too. */
#ifndef CERTIFY_CHECK_H
#define CERTIFY_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <vknerf/error.h>

struct gpu_device;

/* With which kernels a test runs on a CPU device; on a GPU every test runs once. */
enum certify_kernels {
    CERTIFY_CPU_KERNELS = 1, /* kernels for CPU devices */
    CERTIFY_GPU_KERNELS = 2, /* kernels for GPUs */
};
/* A test on a device. */
struct certify_test {
    const char *name;
    void (*run)(struct gpu_device *device);
    unsigned kernels; /* CERTIFY_..._KERNELS */
};
#define TEST(function)           {#function, function, CERTIFY_CPU_KERNELS}
#define TEST_GPU(function)       {#function, function, CERTIFY_GPU_KERNELS}
#define TEST_BOTH(function)      {#function, function, CERTIFY_CPU_KERNELS | CERTIFY_GPU_KERNELS}
/* Tests in another file of the part, whose functions are named PART_TEST. */
#define TEST_OF(part, test)      {#test, part##_##test, CERTIFY_CPU_KERNELS}
#define TEST_BOTH_OF(part, test) {#test, part##_##test, CERTIFY_CPU_KERNELS | CERTIFY_GPU_KERNELS}

/* Tests of one group of passes. */
struct certify_part {
    const char *name;
    const struct certify_test *tests;
    size_t count;
};

/* ---- checks ---------------------------------------------------------------------------------- */

/* Ends the test with a message. */
_Noreturn __attribute__((format(__printf__, 1, 2))) void check_fail(const char *format, ...);
_Noreturn void check_fail_at(const char *file, int line, const char *condition);
#define check_that(condition) \
    ((condition) ? (void)0 : check_fail_at(__FILE__, __LINE__, #condition))
/* Checks that two integers are equal. */
#define check_equal(a, b) check_integers((uint64_t)(a), (uint64_t)(b), #a, __FILE__, __LINE__)
void check_integers(uint64_t a, uint64_t b, const char *what, const char *file, int line);
/* Checks that `size` bytes are equal. */
#define check_memory(a, b, size) check_bytes(a, b, size, #a " differs from " #b, __FILE__, __LINE__)
void check_bytes(const void *a, const void *b, size_t size, const char *what, const char *file,
                 int line);
void check_ok(vkn_status status);
/* Check that |device - expected| <= tolerance * scale; NaN fails. The largest error of each `what`
 * is a figure of the certificate.
 *
 * Tolerances of check_close for f32 hold for lavapipe, and are CHECK_GPU_SLACK times as large on
 * other devices: Vulkan permits larger errors of divisions (2.5 units in the last place), exp (3 +
 * 2 |x|), log, pow, sin (2^-11) and atan (4096). Eight times is what an NVIDIA H200 needed at most
 * (4.2), and a good deal less than f16 would need. check_statistic compares what is no rounding
 * error. */
#define CHECK_GPU_SLACK 8.0
void check_close(double device, double expected, double tolerance, double scale, const char *what,
                 size_t index);
void check_statistic(double device, double expected, double tolerance, double scale,
                     const char *what, size_t index);
/* Checks that the f16 number is the one nearest to `source`. */
void check_f16(uint16_t bits, float source, const char *what, size_t index);
/* Checks that words [from, to) of a poisoned buffer were not written. */
void check_poisoned(const void *data, size_t from, size_t to);
/* Adds a line to the certificate. */
__attribute__((format(__printf__, 1, 2))) void check_note(const char *format, ...);

/* NaN as a float, far out of range as an integer. */
#define POISON 0xffc0deadu

/* Tells the certificate which pass runs next, and whether it computes in f16; `pass` is copied. */
void check_pass(const char *pass, bool f16);
/* Tells the certificate which backend computes, and the feature without which the backend cannot
 * be used, as gpu_switched_off names it ("": none); both are copied. */
void check_backend(const char *backend, const char *feature);

/* Returns whether slow tests run too, such as tests whose shaders lavapipe compiles for minutes. */
bool check_everything(void);

/* Sets the function that failed checks outside of a test call, which must not return. */
void check_on_failure(void (*failed)(const char *message));

#endif
