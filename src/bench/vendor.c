/* Calls cuBLASLt, which is loaded at run time. cuBLASLt's matrices are column-major: the row-major
 * product C = A * B is the column-major product C' = B' * A', so B is passed first and no matrix is
 * transposed. */
#include "bench/suites.h"

#include <stdlib.h>
#include <string.h>

#include "bench/vendor_symbols.h"
#include "loading/loading.h"

#define WORKSPACE (32u << 20)

#define MEMBER(result, name, parameters) \
    result(*name) parameters; // NOLINT(bugprone-macro-parentheses)
struct vendor_symbols {
    VENDOR_SYMBOLS(MEMBER)
};

const char *const vendor_names[VENDOR_KINDS] = {
    [VENDOR_F16_F32] = "cublaslt f16 f32",
    [VENDOR_F16_F16] = "cublaslt f16 f16",
    [VENDOR_TF32] = "cublaslt tf32 f32",
    [VENDOR_F32] = "cublaslt f32 f32",
};

static const struct {
    int input, sum, compute;
} kinds[VENDOR_KINDS] = {
    [VENDOR_F16_F32] = {VENDOR_R_16F, VENDOR_R_32F, VENDOR_COMPUTE_32F},
    [VENDOR_F16_F16] = {VENDOR_R_16F, VENDOR_R_16F, VENDOR_COMPUTE_16F},
    [VENDOR_TF32] = {VENDOR_R_32F, VENDOR_R_32F, VENDOR_COMPUTE_32F_FAST_TF32},
    [VENDOR_F32] = {VENDOR_R_32F, VENDOR_R_32F, VENDOR_COMPUTE_32F},
};

struct vendor {
    struct vendor_symbols call;
    void *libraries[2]; /* cuBLASLt, the CUDA driver */
    int device;
    bool retained; /* the device's primary context */
    void *handle, *events[2];
    char version[48];
    /* State of the current product. */
    struct vendor_product product;
    uint64_t a, b, c, workspace;     /* device addresses */
    uint64_t a_size, b_size, c_size; /* bytes per set */
    void *description, *left, *right, *result, *preference;
    struct vendor_heuristic plan;
};

/* ---- libraries ------------------------------------------------------------------------------- */

static bool open_libraries(struct vendor *vendor, char *why, size_t size)
{
    const char *given = getenv("VKNERF_CUBLASLT");
    const char *const given_names[] = {given, NULL};
    const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11",
                                 "libcublasLt.so", NULL};
    const char *const driver[] = {"libcuda.so.1", NULL};
    vendor->libraries[0] = loading_open(given ? given_names : names);
    vendor->libraries[1] = loading_open(driver);
    if (vendor->libraries[0])
        return true;
    snprintf(why, size, "cuBLASLt: no %s", given ? given : "libcublasLt.so on this machine");
    return false;
}

static bool find_symbols(struct vendor *vendor, char *why, size_t size)
{
    bool found;
#define FIND(result, name, parameters)                                                 \
    found = loading_find(vendor->libraries[0], #name, &vendor->call.name) ||           \
            loading_find(vendor->libraries[1], #name, &vendor->call.name);             \
    if (!found) {                                                                      \
        snprintf(why, size, "cuBLASLt: neither it nor the CUDA driver has %s", #name); \
        return false;                                                                  \
    }
    VENDOR_SYMBOLS(FIND)
    return true;
}

/* ---- the device ------------------------------------------------------------------------------ */

static vkn_status check(int code, const char *what)
{
    return code == 0 ? VKN_OK : base_fail(VKN_ERROR, "%s: error %d", what, code);
}

#define CALL(vendor, name, ...) BASE_TRY(check((vendor)->call.name(__VA_ARGS__), #name))

static vkn_status find_device(struct vendor *vendor, const char *wanted)
{
    int count = 0;
    CALL(vendor, cuInit, 0);
    CALL(vendor, cuDeviceGetCount, &count);
    for (int i = 0; i < count; i++) {
        char name[256] = "";
        CALL(vendor, cuDeviceGet, &vendor->device, i);
        CALL(vendor, cuDeviceGetName, name, (int)sizeof name, vendor->device);
        if (name[0] && strstr(wanted, name))
            return VKN_OK;
    }
    return base_fail(VKN_ERROR, "cuBLASLt: CUDA has no device \"%s\"", wanted);
}

static vkn_status start(struct vendor *vendor, const char *device)
{
    void *context = NULL;
    BASE_TRY(find_device(vendor, device));
    CALL(vendor, cuDevicePrimaryCtxRetain, &context, vendor->device);
    vendor->retained = true;
    CALL(vendor, cuCtxSetCurrent, context);
    CALL(vendor, cublasLtCreate, &vendor->handle);
    for (int i = 0; i < 2; i++)
        CALL(vendor, cuEventCreate, &vendor->events[i], 0);
    return VKN_OK;
}

/* The version is 120804 or, before version 12, 110300: both major * 10000 + minor * 100 + patch. */
static void name_version(struct vendor *vendor)
{
    unsigned version = (unsigned)vendor->call.cublasLtGetVersion();
    snprintf(vendor->version, sizeof vendor->version, "cuBLASLt %u.%u.%u", version / 10000,
             version / 100 % 100, version % 100);
}

struct vendor *vendor_open(const char *device, char *why, size_t size)
{
    struct vendor *vendor = base_alloc(1, sizeof *vendor);
    if (!vendor) {
        snprintf(why, size, "%s", vkn_last_error());
        return NULL;
    }
    bool opened = open_libraries(vendor, why, size) && find_symbols(vendor, why, size);
    if (opened && start(vendor, device) != VKN_OK) {
        snprintf(why, size, "%s", vkn_last_error());
        opened = false;
    }
    if (opened)
        name_version(vendor);
    else
        vendor_close(&vendor);
    return vendor;
}

void vendor_close(struct vendor **closed)
{
    struct vendor *vendor = *closed;
    *closed = NULL;
    if (!vendor)
        return;
    for (int i = 0; i < 2; i++)
        if (vendor->events[i])
            vendor->call.cuEventDestroy_v2(vendor->events[i]);
    if (vendor->handle)
        vendor->call.cublasLtDestroy(vendor->handle);
    if (vendor->retained)
        vendor->call.cuDevicePrimaryCtxRelease_v2(vendor->device);
    for (int i = 0; i < 2; i++)
        if (vendor->libraries[i])
            dlclose(vendor->libraries[i]);
    free(vendor);
}

const char *vendor_version(const struct vendor *vendor)
{
    return vendor->version;
}

/* ---- a product ------------------------------------------------------------------------------- */

static uint64_t size_of(int type)
{
    return type == VENDOR_R_16F ? 2 : 4;
}

/* Doubles the filled part with every copy. */
static vkn_status fill(struct vendor *vendor, uint64_t to, uint64_t size, const void *pattern)
{
    uint64_t done = vendor->product.pattern < size ? vendor->product.pattern : size;
    CALL(vendor, cuMemcpyHtoD_v2, to, pattern, done);
    for (; done < size; done *= 2)
        CALL(vendor, cuMemcpyDtoD_v2, to + done, to, size - done < done ? size - done : done);
    return VKN_OK;
}

static vkn_status plan(struct vendor *vendor)
{
    const struct vendor_product *p = &vendor->product;
    int input = kinds[p->kind].input, sum = kinds[p->kind].sum, count = 0;
    size_t most = WORKSPACE;
    CALL(vendor, cublasLtMatmulDescCreate, &vendor->description, kinds[p->kind].compute, sum);
    CALL(vendor, cublasLtMatrixLayoutCreate, &vendor->left, input, p->n, p->k, p->n);
    CALL(vendor, cublasLtMatrixLayoutCreate, &vendor->right, input, p->k, p->m, p->k);
    CALL(vendor, cublasLtMatrixLayoutCreate, &vendor->result, sum, p->n, p->m, p->n);
    CALL(vendor, cublasLtMatmulPreferenceCreate, &vendor->preference);
    CALL(vendor, cublasLtMatmulPreferenceSetAttribute, vendor->preference,
         VENDOR_MAX_WORKSPACE_BYTES, &most, sizeof most);
    CALL(vendor, cublasLtMatmulAlgoGetHeuristic, vendor->handle, vendor->description, vendor->left,
         vendor->right, vendor->result, vendor->result, vendor->preference, 1, &vendor->plan,
         &count);
    return count > 0 ? VKN_OK : base_fail(VKN_ERROR, "cuBLASLt has no algorithm for the product");
}

vkn_status vendor_begin(struct vendor *vendor, const struct vendor_product *product)
{
    uint64_t input = size_of(kinds[product->kind].input), sets = product->sets;
    vendor->product = *product;
    vendor->a_size = (uint64_t)product->m * product->k * input;
    vendor->b_size = (uint64_t)product->k * product->n * input;
    vendor->c_size = (uint64_t)product->m * product->n * size_of(kinds[product->kind].sum);
    CALL(vendor, cuMemAlloc_v2, &vendor->a, vendor->a_size * sets);
    CALL(vendor, cuMemAlloc_v2, &vendor->b, vendor->b_size * sets);
    CALL(vendor, cuMemAlloc_v2, &vendor->c, vendor->c_size * sets);
    CALL(vendor, cuMemAlloc_v2, &vendor->workspace, WORKSPACE);
    BASE_TRY(fill(vendor, vendor->a, vendor->a_size * sets, product->a));
    BASE_TRY(fill(vendor, vendor->b, vendor->b_size * sets, product->b));
    return plan(vendor);
}

void vendor_end(struct vendor *vendor)
{
    uint64_t *const memory[] = {&vendor->a, &vendor->b, &vendor->c, &vendor->workspace};
    void **const layouts[] = {&vendor->left, &vendor->right, &vendor->result};
    for (size_t i = 0; i < BASE_COUNT(memory); i++) {
        if (*memory[i])
            vendor->call.cuMemFree_v2(*memory[i]);
        *memory[i] = 0;
    }
    for (size_t i = 0; i < BASE_COUNT(layouts); i++) {
        if (*layouts[i])
            vendor->call.cublasLtMatrixLayoutDestroy(*layouts[i]);
        *layouts[i] = NULL;
    }
    if (vendor->description)
        vendor->call.cublasLtMatmulDescDestroy(vendor->description);
    if (vendor->preference)
        vendor->call.cublasLtMatmulPreferenceDestroy(vendor->preference);
    vendor->description = vendor->preference = NULL;
}

static void *address(uint64_t base, uint64_t size, uint32_t set)
{
    return (void *)(uintptr_t)(base + size * set);
}

static vkn_status multiply(struct vendor *vendor, uint32_t set)
{
    /* alpha and beta in the accumulator's type. */
    static const float one = 1, zero = 0;
    static const uint16_t f16_one = 0x3c00, f16_zero = 0;
    bool f16 = kinds[vendor->product.kind].sum == VENDOR_R_16F;
    void *c = address(vendor->c, vendor->c_size, set);
    CALL(vendor, cublasLtMatmul, vendor->handle, vendor->description,
         f16 ? (const void *)&f16_one : &one, address(vendor->b, vendor->b_size, set), vendor->left,
         address(vendor->a, vendor->a_size, set), vendor->right,
         f16 ? (const void *)&f16_zero : &zero, c, vendor->result, c, vendor->result,
         vendor->plan.algorithm, address(vendor->workspace, 0, 0), WORKSPACE, NULL);
    return VKN_OK;
}

vkn_status vendor_run(struct vendor *vendor, uint32_t iterations, double *seconds)
{
    float milliseconds = 0;
    CALL(vendor, cuEventRecord, vendor->events[0], NULL);
    for (uint32_t iteration = 0; iteration < iterations; iteration++)
        BASE_TRY(multiply(vendor, iteration % vendor->product.sets));
    CALL(vendor, cuEventRecord, vendor->events[1], NULL);
    CALL(vendor, cuEventSynchronize, vendor->events[1]);
    CALL(vendor, cuEventElapsedTime, &milliseconds, vendor->events[0], vendor->events[1]);
    *seconds = 1e-3 * (double)milliseconds;
    return VKN_OK;
}

vkn_status vendor_download(struct vendor *vendor, void *c, uint64_t offset, uint64_t size)
{
    CALL(vendor, cuMemcpyDtoH_v2, c, vendor->c + offset, size);
    return VKN_OK;
}
