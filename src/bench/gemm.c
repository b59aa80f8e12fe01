/* Measures matrix products in every backend: square ones, and tall ones as in MLPs. */
#include "bench/suites.h"
#include "field/field.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_ROWS  16u /* rows of a block, columns of a panel: shaders/field/product.glsl */
#define MOST_GROUPS 32768u
#define MOST_CASES  32u

/* Layouts: row-major, or the layouts of shaders/field/product.glsl. */
enum gemm_layout { GEMM_ROWS, GEMM_BLOCKS, GEMM_PANELS };

struct gemm {
    struct bench *bench;
    struct gemm_case sizes;
    const struct bench_backend *backend;
    const char *suffix; /* of the shader's name */
    uint32_t size;      /* bytes of an element */
    uint32_t sets, groups, local_size;
    struct gpu_constants constants;
    struct gpu_arena *arena;
    struct gpu_buffer a, b, c;
    struct gpu_pipeline *pipeline;
    struct gpu_bindings *bindings;
};

/* ---- sizes and checks ------------------------------------------------------------------------ */

double gemm_flops(const struct gemm_case *c)
{
    return 2.0 * c->m * c->n * c->k;
}

uint64_t gemm_bytes(const struct gemm_case *c, uint32_t input, uint32_t output)
{
    return ((uint64_t)c->m * c->k + (uint64_t)c->k * c->n) * input + (uint64_t)c->m * c->n * output;
}

void gemm_describe(const struct gemm_case *c, struct bench_result *result)
{
    result->suite = "gemm";
    result->unit = "FLOP/s";
    snprintf(result->name, sizeof result->name, "%ux%ux%u", c->m, c->n, c->k);
    bench_add_size(result, "m", c->m);
    bench_add_size(result, "n", c->n);
    bench_add_size(result, "k", c->k);
    result->flops = gemm_flops(c);
}

/* Chooses the i-th output to check: the first four are corners of C, the others are spread over C.
 * Odd ones are in the last of the `sets` operand sets, even ones in the first. */
uint64_t gemm_output(const struct gemm_case *c, uint32_t sets, uint32_t i, uint32_t *set)
{
    uint64_t count = (uint64_t)c->m * c->n;
    *set = i % 2 ? sets - 1 : 0;
    return i < 2 ? 0 : i < 4 ? count - 1 : (i * 0x9e3779b97f4a7c15u >> 16) % count;
}

/* Returns the index of an element in a matrix of rows x columns. */
static uint64_t index_of(enum gemm_layout layout, uint64_t rows, uint64_t columns, uint64_t row,
                         uint64_t column)
{
    switch (layout) {
    case GEMM_BLOCKS:
        return (row / BLOCK_ROWS * columns + column) * BLOCK_ROWS + row % BLOCK_ROWS;
    case GEMM_PANELS:
        return (column / BLOCK_ROWS * rows + row) * BLOCK_ROWS + column % BLOCK_ROWS;
    default:
        return row * columns + column;
    }
}

void gemm_compare(const struct gemm_case *c, const struct gemm_patterns *patterns,
                  bool shader_layout, uint32_t set, uint64_t output, float got,
                  struct bench_check *check)
{
    enum gemm_layout a_layout = shader_layout ? GEMM_BLOCKS : GEMM_ROWS;
    enum gemm_layout b_layout = shader_layout ? GEMM_PANELS : GEMM_ROWS;
    uint64_t row = shader_layout ? output / BLOCK_ROWS / c->n * BLOCK_ROWS + output % BLOCK_ROWS
                                 : output / c->n;
    uint64_t column = shader_layout ? output / BLOCK_ROWS % c->n : output % c->n;
    uint64_t a = (uint64_t)set * c->m * c->k, b = (uint64_t)set * c->k * c->n;
    double want = 0;
    for (uint64_t k = 0; k < c->k; k++)
        want += (double)patterns->a[(a + index_of(a_layout, c->m, c->k, row, k)) % GEMM_PATTERN] *
                (double)patterns->b[(b + index_of(b_layout, c->k, c->n, k, column)) % GEMM_PATTERN];
    bench_compare(check, (double)got, want, sqrt(c->k) / 3);
}

/* Returns the tolerated error relative to a typical output, which is sqrt(k) / 3 for values uniform
 * in [-1, 1]. Errors of f16 sums grow with k like a random walk; an f16 output is rounded once. */
double gemm_tolerance(const struct gemm_case *c, bool f16_sums, bool f16_outputs)
{
    return f16_sums ? 0x1p-9 * sqrt(c->k) : f16_outputs ? 6e-3 : 2e-5;
}

/* ---- product on the device ------------------------------------------------------------------- */

static uint32_t div_up(uint32_t count, uint32_t by)
{
    return (count + by - 1) / by;
}

/* Chooses the part of C per workgroup as shaders/field/product_*.glsl expect. */
static void choose_sizes(struct gemm *gemm)
{
    bool cpu_kernels = gpu_cpu_kernels(gemm->bench->capabilities);
    bool is_coopmat = gemm->backend->precision == VKN_PRECISION_COOPMAT;
    uint32_t subgroup = gemm->bench->capabilities->subgroup_size;
    struct field_product tile = field_product_of(gemm->bench->capabilities, subgroup);
    uint32_t blocks = gemm->sizes.m / BLOCK_ROWS, panels = gemm->sizes.n / BLOCK_ROWS;
    gemm->size = gemm->backend->precision == VKN_PRECISION_FP32 ? 4 : 2;
    gemm->constants = (struct gpu_constants){.values = {[GPU_FIRST_CONSTANT] = cpu_kernels,
                                                        [GPU_FIRST_CONSTANT + 1] = tile.blocks,
                                                        [GPU_FIRST_CONSTANT + 2] = tile.panels},
                                             .count = 5};
    gemm->suffix = is_coopmat || cpu_kernels ? "" : "_tiled";
    gemm->local_size = is_coopmat ? 4 * subgroup : cpu_kernels ? subgroup : 256;
    gemm->groups = !is_coopmat
                       ? cpu_kernels ? blocks : div_up(blocks, 8) * div_up(panels, 4)
                       : div_up(div_up(blocks, tile.blocks) * div_up(panels, tile.panels), 4);
}

static vkn_status allocate(struct gemm *gemm)
{
    const struct gemm_case *c = &gemm->sizes;
    struct gpu_device *device = gemm->bench->device;
    uint64_t set_bytes = gemm_bytes(c, gemm->size, gemm->size);
    gemm->sets = bench_sets(gemm->bench, set_bytes);
    if (set_bytes * gemm->sets > gpu_memory_available(device) / 10 * 9)
        return base_fail(VKN_ERROR, "needs %.0f MiB of memory", base_mib(set_bytes * gemm->sets));
    uint64_t sets = gemm->sets;
    struct gpu_buffer_request requests[] = {
        {&gemm->a, "bench A", sets * c->m * c->k * gemm->size, GPU_DEVICE},
        {&gemm->b, "bench B", sets * c->k * c->n * gemm->size, GPU_DEVICE},
        {&gemm->c, "bench C", sets * c->m * c->n * gemm->size, GPU_DEVICE},
    };
    BASE_TRY(gpu_arena_create(device, requests, BASE_COUNT(requests), &gemm->arena));
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {&gemm->a, &gemm->b, &gemm->c};
    return gpu_bindings_create(device, buffers, &gemm->bindings);
}

static vkn_status prepare(struct gemm *gemm, const struct gemm_patterns *patterns)
{
    char pipeline[80];
    bool f16 = gemm->backend->precision != VKN_PRECISION_FP32;
    choose_sizes(gemm);
    gemm->groups = gemm->groups > MOST_GROUPS ? MOST_GROUPS : gemm->groups;
    snprintf(pipeline, sizeof pipeline, "bench_gemm_%s%s", gemm->backend->pipeline, gemm->suffix);
    struct gpu_pipeline_options options = {
        .name = pipeline, .local_size = gemm->local_size, .constants = &gemm->constants};
    BASE_TRY(gpu_pipeline_create(gemm->bench->device, &options, &gemm->pipeline));
    BASE_TRY(allocate(gemm));
    const void *a = f16 ? (const void *)patterns->f16_a : patterns->a;
    const void *b = f16 ? (const void *)patterns->f16_b : patterns->b;
    uint64_t size = (uint64_t)GEMM_PATTERN * gemm->size;
    BASE_TRY(bench_upload_pattern(gemm->bench, &gemm->a, a, size));
    BASE_TRY(bench_upload_pattern(gemm->bench, &gemm->b, b, size));
    if (!gpu_fault_injected(pipeline))
        return VKN_OK;
    const float thousand = 1000; /* not 0 when read as f16 */
    return gpu_upload(gemm->bench->device, &gemm->b, 0, &thousand, sizeof thousand);
}

static void destroy(struct gemm *gemm)
{
    gpu_bindings_destroy(&gemm->bindings);
    gpu_pipeline_destroy(&gemm->pipeline);
    gpu_arena_destroy(&gemm->arena);
}

static void record(void *context, struct gpu_recording *recording, uint32_t iteration)
{
    const struct gemm *gemm = context;
    const struct gemm_case *c = &gemm->sizes;
    uint32_t set = iteration % gemm->sets;
    const uint32_t push[] = {
        c->m, c->n, c->k, set * c->m * c->k, set * c->k * c->n, set * c->m * c->n};
    gpu_record_dispatch(recording, gemm->pipeline, gemm->bindings, push, sizeof push, gemm->groups);
}

/* Fills C with NaN first, so that outputs that the shader does not write are noticed. */
static vkn_status check(struct gemm *gemm, const struct gemm_patterns *patterns,
                        struct bench_check *check)
{
    double seconds;
    BASE_TRY(bench_fill(gemm->bench, &gemm->c, UINT32_MAX));
    BASE_TRY(bench_run(gemm->bench, record, gemm, gemm->sets, &seconds));
    for (uint32_t i = 0; i < GEMM_OUTPUTS; i++) {
        union {
            float f32;
            uint16_t f16[2];
        } got;
        uint32_t set;
        uint64_t at = gemm_output(&gemm->sizes, gemm->sets, i, &set);
        uint64_t index = (uint64_t)set * gemm->sizes.m * gemm->sizes.n + at;
        /* Downloads are multiples of 4 bytes. */
        BASE_TRY(gpu_download(gemm->bench->device, &gemm->c, index * gemm->size / 4 * 4, &got, 4));
        gemm_compare(&gemm->sizes, patterns, true, set, at,
                     gemm->size == 4 ? got.f32 : base_from_f16(got.f16[index % 2]), check);
    }
    return VKN_OK;
}

static void compare_vendor(const struct bench_backend *backend, const struct gemm_vendor *vendor,
                           struct bench_result *result)
{
    enum vendor_kind kind = backend->precision == VKN_PRECISION_FP32 ? VENDOR_F32
                            : backend->f16_accumulate                ? VENDOR_F16_F16
                                                                     : VENDOR_F16_F32;
    result->vendor = vendor_names[kind];
    result->vendor_rate = vendor->rates[kind];
}

static vkn_status measure(struct bench *bench, const struct gemm_case *c,
                          const struct bench_backend *backend, const struct gemm_patterns *patterns,
                          const struct gemm_vendor *vendor)
{
    struct bench_result result = {.backend = backend->name, .peak = backend->peak};
    struct gemm gemm = {.bench = bench, .sizes = *c, .backend = backend};
    gemm_describe(c, &result);
    vkn_status status = prepare(&gemm, patterns);
    bool f16_outputs = gemm.size == 2;
    result.bytes = (double)gemm_bytes(c, gemm.size, gemm.size);
    result.check.tolerance = gemm_tolerance(c, backend->f16_accumulate, f16_outputs);
    if (status == VKN_OK)
        status = check(&gemm, patterns, &result.check);
    if (status == VKN_OK && bench_passed(&result))
        status = bench_measure(bench, record, &gemm, &result.times);
    destroy(&gemm);
    BASE_TRY(bench_record_failure(&result, status));
    compare_vendor(backend, vendor, &result);
    bench_add_result(bench, &result);
    return VKN_OK;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static uint32_t list_squares(const struct bench *bench, struct gemm_case *cases)
{
    static const uint32_t sizes[] = {512, 1024, 2048, 4096, 8192};
    uint32_t count = 0;
    for (size_t i = 0; i < BASE_COUNT(sizes) && !bench->params->batch; i++) {
        bool is_quick = sizes[i] == (bench->small ? 512 : 2048);
        if (bench->params->quick ? is_quick : bench->small ? sizes[i] <= 512 : sizes[i] >= 1024)
            cases[count++] = (struct gemm_case){sizes[i], sizes[i], sizes[i]};
    }
    return count;
}

static uint32_t list_tall(const struct bench *bench, struct gemm_case *cases)
{
    static const uint32_t wide[][2] = {{64, 64}, {256, 256}, {16, 64}, {64, 32}}; /* n, k */
    static const uint32_t large[] = {1u << 14, 1u << 16, 1u << 18, 1u << 20, 1u << 22};
    static const uint32_t medium[] = {1u << 18}, small[] = {1u << 14}, least[] = {1u << 12};
    const uint32_t *rows = bench->params->quick ? bench->small ? least : medium
                           : bench->small       ? small
                                                : large;
    size_t row_count = bench->small || bench->params->quick ? 1 : BASE_COUNT(large), count = 0;
    if (bench->params->batch) {
        rows = &bench->params->batch;
        row_count = 1;
    }
    for (size_t r = 0; r < row_count; r++)
        for (size_t w = 0; w < (bench->params->quick ? 1 : BASE_COUNT(wide)); w++)
            cases[count++] = (struct gemm_case){rows[r], wide[w][0], wide[w][1]};
    return (uint32_t)count;
}

static vkn_status create_patterns(struct gemm_patterns *patterns)
{
    uint64_t random = 1;
    patterns->a = base_alloc(GEMM_PATTERN, sizeof *patterns->a);
    patterns->b = base_alloc(GEMM_PATTERN, sizeof *patterns->b);
    patterns->f16_a = base_alloc(GEMM_PATTERN, sizeof *patterns->f16_a);
    patterns->f16_b = base_alloc(GEMM_PATTERN, sizeof *patterns->f16_b);
    if (!patterns->a || !patterns->b || !patterns->f16_a || !patterns->f16_b)
        return VKN_ERROR;
    for (uint32_t i = 0; i < GEMM_PATTERN; i++) {
        patterns->a[i] = bench_random(&random);
        patterns->b[i] = bench_random(&random);
        patterns->f16_a[i] = base_to_f16(patterns->a[i]);
        patterns->f16_b[i] = base_to_f16(patterns->b[i]);
    }
    return VKN_OK;
}

static void destroy_patterns(struct gemm_patterns *patterns)
{
    free(patterns->a);
    free(patterns->b);
    free(patterns->f16_a);
    free(patterns->f16_b);
}

static vkn_status run_cases(struct bench *bench, const struct gemm_patterns *patterns,
                            struct vendor *library)
{
    struct gemm_case cases[MOST_CASES];
    uint32_t count = list_squares(bench, cases);
    count += list_tall(bench, cases + count);
    for (uint32_t i = 0; i < count; i++) {
        struct gemm_vendor vendor = {.library = library};
        if (library)
            BASE_TRY(gemm_measure_vendor(bench, &cases[i], patterns, &vendor));
        for (uint32_t p = 0; p < bench->backend_count; p++)
            if (!bench->backends[p].conversions && bench_next(bench))
                BASE_TRY(measure(bench, &cases[i], &bench->backends[p], patterns, &vendor));
    }
    return VKN_OK;
}

vkn_status bench_gemm(struct bench *bench)
{
    struct gemm_patterns patterns = {0};
    vkn_status status = create_patterns(&patterns);
    if (status == VKN_OK)
        status = run_cases(bench, &patterns, bench->vendor);
    destroy_patterns(&patterns);
    return status;
}
