/* Tests vknerf bench: FLOPs and bytes against counts by hand, coverage of what the device offers,
 * and that wrong results are not timed. tests/fake_cublaslt.c replaces the vendor's library. About
 * 25 s: lavapipe compiles the bench's own kernels. */
#include "gpu_fixture.h"
#include "scenes.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "bench/internal.h"
#include "own_program.h"
#include "report/report.h"
#include "shared/layout.h"

#define PER_MILLION 1e-6

/* ---- reading --------------------------------------------------------------------------------- */

static double number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsNumber(item))
        fail_msg("no number \"%s\" in %s", name, cJSON_PrintUnformatted(object));
    return item->valuedouble;
}

static const char *text(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static bool has(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name) != NULL;
}

static const cJSON *results(const cJSON *bench)
{
    return cJSON_GetObjectItemCaseSensitive(bench, "results");
}

static const cJSON *sizes(const cJSON *result)
{
    return cJSON_GetObjectItemCaseSensitive(result, "sizes");
}

static bool is_suite(const cJSON *result, const char *suite)
{
    return strcmp(text(result, "suite"), suite) == 0;
}

/* Returns the result of a suite and backend, and of the case `name` unless that is NULL. */
static const cJSON *find(const cJSON *bench, const char *suite, const char *backend,
                         const char *name)
{
    const cJSON *result;
    cJSON_ArrayForEach (result, results(bench)) {
        if (is_suite(result, suite) && strcmp(text(result, "path"), backend) == 0 &&
            (!name || strcmp(text(result, "case"), name) == 0))
            return result;
    }
    return NULL;
}

static void assert_close(double a, double b)
{
    if (!(fabs(a - b) <= PER_MILLION * fmax(fabs(a), fabs(b))))
        fail_msg("%.9g is not %.9g", a, b);
}

static cJSON *run_with(const struct vkn_bench_params *params, vkn_status wanted)
{
    char *json = NULL;
    vkn_status status = vkn_bench(params, &json);
    if (status != wanted)
        fail_msg("status %d instead of %d: %s", status, wanted, vkn_last_error());
    cJSON *bench = cJSON_Parse(json);
    assert_non_null(bench);
    assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(bench, "complete")), wanted == VKN_OK);
    free(json);
    return bench;
}

static const struct vkn_job quiet_job = {.quiet = true};

static struct vkn_bench_params quick(enum vkn_bench_suite suite, enum vkn_precision precision)
{
    return (struct vkn_bench_params){
        .job = &quiet_job, .suite = suite, .precision = precision, .quick = true, .batch = 512};
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* Counts the FLOPs of a case from its sizes. */
static double count_flops(const cJSON *result)
{
    const cJSON *s = sizes(result);
    if (is_suite(result, "gemm"))
        return 2 * number(s, "m") * number(s, "n") * number(s, "k");
    /* Density: 32 inputs, hidden layers, 16 outputs. Colour: 16 outputs of density and 16 of the
     * direction, a hidden layer of 16, rgb. There are no gradients by the direction. */
    double width = number(s, "width");
    double density = 32 * width + (number(s, "depth") - 1) * width * width + width * 16;
    double color = 32 * 16 + 16 * 3, training = 3 * (density + color) - 16 * 3 - 16 * 16;
    return number(s, "batch") * 2 * (number(s, "training") != 0 ? training : density + color);
}

static double count_bytes(const cJSON *result)
{
    const cJSON *s = sizes(result);
    const char *backend = text(result, "path");
    bool f32 =
        strcmp(backend, "fp32") == 0 || strstr(backend, "tf32") || strstr(backend, "f32 f32");
    bool f16_sums =
        strstr(backend, " f16") && !strstr(backend, "f16 f32") && !strstr(backend, "6 f32");
    bool library = strstr(backend, "cublaslt");
    double input = f32 ? 4 : 2, output = f32 || (library && !f16_sums) ? 4 : 2;
    if (is_suite(result, "gemm"))
        return input * number(s, "k") * (number(s, "m") + number(s, "n")) +
               output * number(s, "m") * number(s, "n");
    /* Forward: sample, features, rgb and density. Backward: sample index, gradients of both. */
    double forward = 12 + 32 * input + 16, backward = 4 + 32 * input + 16;
    return number(s, "batch") * (forward + number(s, "training") * backward);
}

static void check_times(const cJSON *result)
{
    const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(result, "seconds");
    static const char *const order[] = {"least", "lower_quartile", "median", "upper_quartile",
                                        "most"};
    assert_true(number(seconds, "least") > 0);
    for (int i = 0; i < 4; i++)
        assert_true(number(seconds, order[i]) <= number(seconds, order[i + 1]));
    const char *unit = text(result, "unit");
    const char *amount = unit[0] == 'F' ? "flops" : unit[0] == 'B' ? "bytes" : "samples";
    assert_close(number(result, "rate"), number(result, amount) / number(seconds, "median"));
    assert_true(number(result, "repetitions") >= 1 && number(result, "turns") >= 1);
}

/* The share is relative to the peak of the same backend in the same run. */
static void check_share(const cJSON *bench, const cJSON *result)
{
    char backend[96];
    snprintf(backend, sizeof(backend), "%s",
             is_suite(result, "grid") ? "copy" : text(result, "path"));
    char *conversions = strstr(backend, " conversions");
    if (conversions)
        *conversions = 0;
    const cJSON *peak = find(bench, "peak", backend, NULL);
    assert_non_null(peak);
    assert_close(number(result, "peak"), number(peak, "rate"));
    assert_close(number(result, "share"), number(result, "rate") / number(peak, "rate"));
}

static void check_result(const cJSON *bench, const cJSON *result)
{
    if (has(result, "fault"))
        fail_msg("%s %s: %s", text(result, "case"), text(result, "path"), text(result, "fault"));
    check_times(result);
    if (is_suite(result, "gemm") || is_suite(result, "mlp")) {
        assert_close(number(result, "flops"), count_flops(result));
        assert_close(number(result, "bytes"), count_bytes(result));
    }
    if (!is_suite(result, "peak") && !strstr(text(result, "path"), "cublaslt"))
        check_share(bench, result);
    const cJSON *check = cJSON_GetObjectItemCaseSensitive(result, "check");
    assert_true(number(check, "outputs") >= 1);
    assert_true(number(check, "error") <= number(check, "tolerance"));
}

static void check_all(const cJSON *bench)
{
    const cJSON *result;
    assert_true(cJSON_GetArraySize(results(bench)) > 1);
    cJSON_ArrayForEach (result, results(bench))
        check_result(bench, result);
}

/* ---- what the device offers ------------------------------------------------------------------ */

/* Expects a result for each precision and matrix shape that the device offers. */
static void check_paths(const cJSON *bench, const char *suite, bool conversions_too)
{
    struct gpu_device *device = open_device();
    const struct gpu_capabilities *offered = gpu_device_capabilities(device);
    uint32_t matrices = 0;
    assert_non_null(find(bench, suite, "fp32", NULL));
    if (offered->float16 && offered->storage16)
        assert_non_null(find(bench, suite, "fp16", NULL));
    for (uint32_t i = 0; i < offered->shape_count; i++) {
        const struct gpu_matrix_shape *shape = &offered->shapes[i];
        char name[96], conversions[128];
        snprintf(name, sizeof(name), "coopmat %ux%ux%u %s", shape->m, shape->n, shape->k,
                 shape->c_type);
        snprintf(conversions, sizeof(conversions), "%s conversions", name);
        if (strcmp(shape->a_type, "f16") != 0 || shape->flexible)
            continue;
        matrices++;
        assert_non_null(find(bench, suite, name, NULL));
        if (conversions_too && offered->cooperative_matrix2 && strcmp(shape->c_type, "f32") == 0)
            assert_non_null(find(bench, suite, conversions, NULL));
    }
    /* lavapipe's cooperative matrices have one shape, with f32 and with f16 accumulation. */
    if (offered->cooperative_matrix && offered->type == GPU_CPU)
        assert_int_equal(matrices, 2);
    gpu_close(&device);
}

/* Ratios are relative to cuBLASLt's product with the same input and accumulator types. */
static void check_ratios(const cJSON *bench)
{
    static const char *const pairs[][2] = {{"fp32", "cublaslt f32 f32"},
                                           {"fp16", "cublaslt f16 f32"},
                                           {"coopmat 8x8x8 f32", "cublaslt f16 f32"},
                                           {"coopmat 8x8x8 f16", "cublaslt f16 f16"}};
    for (size_t i = 0; i < BASE_COUNT(pairs); i++) {
        const cJSON *ours = find(bench, "gemm", pairs[i][0], NULL);
        const cJSON *theirs = find(bench, "gemm", pairs[i][1], NULL);
        assert_non_null(theirs);
        if (!ours)
            continue;
        assert_string_equal(text(ours, "vendor"), pairs[i][1]);
        assert_close(number(ours, "vendor_ratio"), number(ours, "rate") / number(theirs, "rate"));
    }
    assert_non_null(find(bench, "gemm", "cublaslt tf32 f32", NULL));
    assert_string_equal(text(bench, "vendor_library"), "cuBLASLt 12.8.4");
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_gemm(void **state)
{
    (void)state;
    struct vkn_bench_params params = quick(VKN_BENCH_GEMM, VKN_PRECISION_AUTO);
    setenv("VKNERF_CUBLASLT", FAKE_CUBLASLT, 1);
    cJSON *bench = run_with(&params, VKN_OK);
    check_all(bench);
    check_paths(bench, "gemm", false);
    check_paths(bench, "peak", false);
    check_ratios(bench);
    cJSON_Delete(bench);
}

/* Runs the GPU variants of the kernels on lavapipe, matrices only with VKNERF_TEST_ALL: they
 * compile slowly, and test_pass_layers covers them. */
static void test_gemm_gpu_shaped(void **state)
{
    (void)state;
    const bool all = check_everything();
    struct vkn_bench_params params =
        quick(VKN_BENCH_GEMM, all ? VKN_PRECISION_AUTO : VKN_PRECISION_FP32);
    setenv("VKNERF_DISABLE", "cpu_kernels", 1);
    cJSON *bench = run_with(&params, VKN_OK);
    unsetenv("VKNERF_DISABLE");
    check_all(bench);
    if (all)
        check_paths(bench, "gemm", false);
    cJSON_Delete(bench);
}

/* Returns whether to compile all kernels: always on a GPU, whose driver compiles quickly. */
static bool compiles_all(void)
{
    struct gpu_device *device = open_device();
    bool gpu = gpu_device_capabilities(device)->type != GPU_CPU;
    gpu_close(&device);
    return gpu || check_everything();
}

/* A CPU device runs only fp16, unless VKNERF_TEST_ALL is set: test_gemm and test_flexible cover the
 * measurement, test_bench_options covers fp32, test_pass_field the MLP's shaders. */
static void test_mlp(void **state)
{
    (void)state;
    const bool all = compiles_all();
    struct vkn_bench_params params =
        quick(VKN_BENCH_MLP, all ? VKN_PRECISION_AUTO : VKN_PRECISION_FP16);
    params.width = 16; /* compiles in a third of the time of the default */
    cJSON *bench = run_with(&params, VKN_OK);
    check_all(bench);
    if (all)
        check_paths(bench, "mlp", true);
    assert_non_null(find(bench, "mlp", all ? "fp32" : "fp16", "16 wide, 1 deep, 512 training"));
    cJSON_Delete(bench);
}

static void test_grid(void **state)
{
    (void)state;
    struct vkn_bench_params params = quick(VKN_BENCH_GRID, VKN_PRECISION_AUTO);
    cJSON *bench = run_with(&params, VKN_OK);
    check_all(bench);
    /* 16 levels of 2 features: reads a sample of 12 bytes and 8 corners, writes the features. */
    const cJSON *gather = find(bench, "grid", "fp32 gather", NULL);
    assert_close(number(gather, "bytes"), 512.0 * (12 + 32 * (8 * 4 + 4)));
    gather = find(bench, "grid", "fp16 gather", NULL);
    assert_close(number(gather, "bytes"), 512.0 * (12 + 32 * (8 * 2 + 2)));
    /* Each level: sample, sample index, gradients; 8 sums per feature are read and written. */
    const cJSON *scatter = find(bench, "grid", "fp32 scatter fixed", NULL);
    assert_close(number(scatter, "bytes"), 512.0 * 16 * (16 + 2 * (4 + 8 * 2 * 8)));
    assert_non_null(find(bench, "grid", "fp16 scatter f16 cas", NULL));
    assert_non_null(find(bench, "grid", "fp32 scatter owned", NULL));
    const cJSON *result;
    cJSON_ArrayForEach (result, results(bench)) {
        assert_close(number(result, "repetitions"), 3);
        if (is_suite(result, "grid"))
            assert_close(number(sizes(result), "entries"), 1 << 14);
    }
    cJSON_Delete(bench);
}

static void test_step(void **state)
{
    (void)state;
    struct vkn_bench_params params = quick(VKN_BENCH_STEP, VKN_PRECISION_FP32);
    params.batch = 1024;
    params.repetitions = 2;
    cJSON *bench = run_with(&params, VKN_OK);
    const cJSON *step = find(bench, "step", "fp32", "1024 samples");
    assert_non_null(step);
    assert_false(has(step, "fault"));
    check_times(step);
    assert_close(number(step, "repetitions"), 2);
    /* The number of rays adapts until a step has about 1024 samples. */
    assert_in_range((uintmax_t)number(step, "samples"), 256, 4096);
    assert_int_equal(cJSON_GetArraySize(results(bench)), 1);
    assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(step, "pass_milliseconds")) > 5);
    assert_non_null(strstr(text(step, "tuning"), "forward_rows "));
    cJSON_Delete(bench);
}

/* ---- sampling methods ------------------------------------------------------------------------ */

#define SAMPLING_SECONDS 0.05

static const cJSON *array(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const cJSON *run_of(const cJSON *bench, double seed, const char *kind)
{
    const cJSON *run;
    cJSON_ArrayForEach (run, array(array(bench, "sampling"), "runs")) {
        if (number(run, "seed") == seed && strcmp(text(run, "kind"), kind) == 0)
            return run;
    }
    fail_msg("no run with %s", kind);
    return NULL;
}

/* bench.json has six decimals. */
static void assert_share(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-3 * fabs(wanted) + 1e-3))
        fail_msg("%.9g is not %.9g", value, wanted);
}

/* There are marks at 1/4, 1/2 and the end of the time; the time to reach the uniform sampling's
 * PSNR is interpolated between two marks. */
static void check_marks(const cJSON *run, double uniform_psnr)
{
    double before = 0, psnr_before = 0, wanted = -1;
    const cJSON *mark, *marks = array(run, "marks");
    assert_int_equal(cJSON_GetArraySize(marks), 3);
    cJSON_ArrayForEach (mark, marks) {
        double seconds = number(mark, "seconds"), psnr = number(mark, "psnr");
        assert_true(seconds > 0 && seconds >= before);
        assert_true((uint64_t)number(mark, "step") % UPDATE_INTERVAL == 0);
        if (wanted < 0 && psnr >= uniform_psnr)
            wanted = before > 0 ? before * pow(seconds / before,
                                               (uniform_psnr - psnr_before) / (psnr - psnr_before))
                                : seconds;
        before = seconds;
        psnr_before = psnr;
    }
    assert_share(before, number(run, "seconds"));
    assert_true(number(cJSON_GetArrayItem(marks, 2), "step") == number(run, "steps"));
    assert_close(number(run, "uniform_psnr"), uniform_psnr);
    if (wanted >= 0)
        assert_share(number(run, "seconds_to_uniform"), wanted);
    else
        assert_true(cJSON_IsNull(array(run, "seconds_to_uniform")));
}

/* The PSNR at a time is interpolated between the marks before and after it. */
static void check_equal_times(const cJSON *run)
{
    const cJSON *marks = array(run, "marks"), *times = array(run, "equal_times");
    assert_int_equal(cJSON_GetArraySize(times), 3);
    for (int i = 0; i < 3; i++) {
        const cJSON *time = cJSON_GetArrayItem(times, i), *mark, *before = NULL, *after = NULL;
        double seconds = number(time, "seconds");
        assert_close(seconds, SAMPLING_SECONDS / (4 >> i));
        cJSON_ArrayForEach (mark, marks) {
            if (!after && number(mark, "seconds") >= seconds)
                after = mark;
            else if (!after)
                before = mark;
        }
        double psnr = number(after ? after : before, "psnr");
        if (before && after)
            psnr = number(before, "psnr") +
                   (psnr - number(before, "psnr")) * log(seconds / number(before, "seconds")) /
                       log(number(after, "seconds") / number(before, "seconds"));
        assert_close(number(time, "psnr"), psnr);
    }
}

static void check_run(const cJSON *run, double uniform_psnr, double coarse_share)
{
    double evaluated = number(run, "evaluated_per_ray"), coarse = number(run, "coarse_per_ray");
    double live = number(run, "live_per_ray");
    bool occupancy = strcmp(text(run, "kind"), "occupancy") == 0;
    assert_share(coarse, coarse_share * evaluated);
    assert_true(evaluated > 0.5 && live > 0 && live <= evaluated - coarse + 1e-3);
    assert_share(number(run, "behind_share"), 1 - live / (evaluated - coarse));
    /* The clock begins after 16 steps. */
    double timed = number(run, "rays_per_second") * number(run, "seconds") / number(run, "rays");
    assert_true(timed < 1 && timed > 0.9 * (1 - 16 / number(run, "steps")));
    assert_int_equal(has(run, "empty_share"), occupancy);
    if (occupancy)
        assert_share(number(run, "empty_share"),
                     fmax(0, 1 - evaluated / number(run, "march_steps_per_ray")));
    assert_string_equal(text(run, "path"), "fp32");
    check_marks(run, uniform_psnr);
    check_equal_times(run);
}

/* Checks four sampling methods for each of two seeds, with the given settings. */
static void check_samplings(const cJSON *bench)
{
    for (int seed = 7; seed <= 8; seed++) {
        const cJSON *uniform = run_of(bench, seed, "uniform");
        double psnr = number(cJSON_GetArrayItem(array(uniform, "marks"), 2), "psnr");
        double steps = number(uniform, "march_steps_per_ray");
        check_run(uniform, psnr, 0);
        check_run(run_of(bench, seed, "occupancy"), psnr, 0);
        check_run(run_of(bench, seed, "hierarchical"), psnr, 4.0 / (4 + 4 + 12));
        check_run(run_of(bench, seed, "proposal"), psnr, 4.0 / (4 + 12));
        assert_true(number(uniform, "evaluated_per_ray") <= 16 && steps > 0);
        assert_true(number(run_of(bench, seed, "occupancy"), "march_steps_per_ray") == steps);
    }
    assert_int_equal(cJSON_GetArraySize(array(array(bench, "sampling"), "runs")), 8);
    assert_int_equal(cJSON_GetArraySize(array(bench, "paths")), 1);
    assert_true(number(array(bench, "sampling"), "seconds") == SAMPLING_SECONDS);
    assert_true(number(array(bench, "sampling"), "views") == 1);
}

/* ---- effect of options ----------------------------------------------------------------------- */

/* Counts the cases of a suite in fp32 without running them. */
static uint32_t count_cases(enum vkn_bench_suite suite, const struct vkn_bench_params *params,
                            bool cpu)
{
    static vkn_status (*const suites[])(struct bench *) = {[VKN_BENCH_GEMM] = bench_gemm,
                                                           [VKN_BENCH_MLP] = bench_mlp,
                                                           [VKN_BENCH_GRID] = bench_grid,
                                                           [VKN_BENCH_STEP] = bench_step};
    const struct gpu_capabilities device = {
        .type = cpu ? GPU_CPU : GPU_DISCRETE, .float_atomic_add = true, .cas_sums = true};
    struct bench bench = {.params = params,
                          .capabilities = &device,
                          .is_cpu = cpu,
                          .small = cpu && !params->full,
                          .backend_count = 1,
                          .counting = true};
    bench.backends[0] = (struct bench_backend){.precision = VKN_PRECISION_FP32, .name = "fp32"};
    ok(suites[suite](&bench));
    return bench.total;
}

/* GPU, CPU device: GEMM 4 square and 5 x 4 tall, 1 and 4; MLPs, forward and with backward, of 4
 * widths and depths at one batch and one of them at 10 more, 4; grids of 6 sizes, 2 sizes, gather
 * and 3 kinds of sums (CPU 4); steps of 3 batches, 1. */
static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        struct vkn_bench_params params;
        uint32_t gpu[5], cpu[5]; /* by suite */
    } cases[] = {
        {.gpu = {0, 24, 52, 24, 3}, .cpu = {0, 5, 8, 10, 1}},
        {{.quick = true}, {0, 2, 2, 4, 1}, {0, 2, 2, 5, 1}},
        {{.full = true}, {0, 24, 352, 24, 3}, {0, 24, 352, 30, 3}}, /* all cases on both */
        {{.batch = 1024}, {0, 4, 32, 24, 1}, {0, 4, 8, 10, 1}},
        {{.width = 80}, {0, 24, 36, 24, 3}, {0, 5, 2, 10, 1}},
        {{.depth = 3}, {0, 24, 36, 24, 3}, {0, 5, 16, 10, 1}},
        {{.width = 80, .depth = 3}, {0, 24, 22, 24, 3}, {0, 5, 2, 10, 1}},
        {{.width = 80, .depth = 3, .batch = 512}, {0, 4, 2, 24, 1}, {0, 4, 2, 10, 1}},
        {{.log2_entries = 17}, {0, 24, 52, 4, 3}, {0, 5, 8, 5, 1}},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++)
        for (int suite = VKN_BENCH_GEMM; suite <= VKN_BENCH_STEP; suite++)
            for (int cpu = 0; cpu < 2; cpu++) {
                uint32_t wanted = cpu ? cases[i].cpu[suite] : cases[i].gpu[suite];
                uint32_t found =
                    count_cases((enum vkn_bench_suite)suite, &cases[i].params, cpu == 1);
                if (found != wanted)
                    fail_msg("%zu: %u cases instead of %u of suite %d on a %s", i, found, wanted,
                             suite, cpu ? "CPU" : "GPU");
            }
}

/* Flexible matrix shapes are measured only if asked for, conversions where available. */
static void test_flexible(void **state)
{
    (void)state;
    struct gpu_capabilities device = {
        .type = GPU_DISCRETE,
        .subgroup_size = 32,
        .float16 = true,
        .storage16 = true,
        .cooperative_matrix = true,
        .shape_count = 4,
        .shapes = {{8, 8, 8, "f16", "f32", false},
                   {16, 16, 16, "f16", "f32", true},
                   {16, 16, 16, "f16", "f16", true},
                   {16, 16, 16, "bf16", "f32", true}},
    };
    static const char *const names[] = {"coopmat 16x16x16 f32", "coopmat 16x16x16 f16",
                                        "coopmat 8x8x8 f32"};
    struct vkn_bench_params params = {.precision = VKN_PRECISION_COOPMAT};
    struct bench_backend backends[BENCH_MAX_BACKENDS];
    assert_int_equal(bench_list_backends(&device, &params, backends), 1);
    assert_string_equal(backends[0].name, names[2]);
    params.flexible = true;
    assert_int_equal(bench_list_backends(&device, &params, backends), 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(backends[i].name, names[i]);
    params.flexible = false;
    device.cooperative_matrix2 = true;
    assert_int_equal(bench_list_backends(&device, &params, backends), 2);
    assert_string_equal(backends[0].name, names[2]);
    assert_string_equal(backends[1].name, "coopmat 8x8x8 f32 conversions");
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void assert_wrong(const cJSON *result)
{
    assert_non_null(result);
    assert_int_equal(strncmp(text(result, "fault"), "wrong: ", 7), 0);
    assert_false(has(result, "seconds") || has(result, "rate") || has(result, "share"));
}

/* Breaks one or two shaders and expects a fault in their results, but not in the copy's. */
static void assert_broken(enum vkn_bench_suite suite, const char *programs,
                          const char *const kinds[2], const char *const backends[2],
                          const char *const names[2])
{
    struct vkn_bench_params params = quick(suite, VKN_PRECISION_FP32);
    setenv("VKNERF_SELF_TEST_BREAK", programs, 1);
    cJSON *bench = run_with(&params, VKN_OK);
    unsetenv("VKNERF_SELF_TEST_BREAK");
    for (int i = 0; i < 2 && kinds[i]; i++)
        assert_wrong(find(bench, kinds[i], backends[i], names[i]));
    assert_false(has(find(bench, "peak", "copy", NULL), "fault"));
    cJSON_Delete(bench);
}

static void test_wrong_results(void **state)
{
    (void)state;
    unsetenv("VKNERF_CUBLASLT");
    assert_broken(VKN_BENCH_GEMM, "bench_gemm_fp32,bench_peak", (const char *[]){"gemm", "peak"},
                  (const char *[]){"fp32", "fp32"}, (const char *[2]){NULL});
    assert_broken(VKN_BENCH_GRID, "encode_samples,scatter_gradients_float",
                  (const char *[]){"grid", "grid"},
                  (const char *[]){"fp32 gather", "fp32 scatter float"}, (const char *[2]){NULL});
    /* The MLP is 32 wide and 1 deep unless the caller says otherwise. */
    assert_broken(VKN_BENCH_MLP, "bench_mlp", (const char *[]){"mlp", "mlp"},
                  (const char *[]){"fp32", "fp32"},
                  (const char *[]){"32 wide, 1 deep, 512", "32 wide, 1 deep, 512 training"});
}

static void test_wrong_library(void **state)
{
    (void)state;
    struct vkn_bench_params params = quick(VKN_BENCH_GEMM, VKN_PRECISION_FP32);
    setenv("VKNERF_CUBLASLT", FAKE_CUBLASLT, 1);
    setenv("VKNERF_FAKE_CUBLASLT", "wrong", 1);
    cJSON *bench = run_with(&params, VKN_OK);
    unsetenv("VKNERF_FAKE_CUBLASLT");
    assert_wrong(find(bench, "gemm", "cublaslt f16 f32", NULL));
    assert_wrong(find(bench, "gemm", "cublaslt f32 f32", NULL));
    assert_false(has(find(bench, "gemm", "fp32", NULL), "vendor_ratio"));
    cJSON_Delete(bench);
}

static void test_interrupted(void **state)
{
    (void)state;
    volatile sig_atomic_t stop = 1;
    struct vkn_bench_params params = quick(VKN_BENCH_ALL, VKN_PRECISION_FP32);
    const struct vkn_job stopped = {.quiet = true, .stop = &stop};
    params.job = &stopped;
    cJSON *bench = run_with(&params, VKN_INTERRUPTED);
    assert_int_equal(cJSON_GetArraySize(results(bench)), 0);
    cJSON_Delete(bench);
}

static void test_bad_input(void **state)
{
    (void)state;
    char *json = NULL;
    struct vkn_bench_params params = quick(VKN_BENCH_ALL, VKN_PRECISION_FP32);
    params.batch = 500;
    assert_int_equal(vkn_bench(&params, &json), VKN_BAD_INPUT);
    assert_message("--batch: 500");
    params = quick(VKN_BENCH_ALL, VKN_PRECISION_FP32);
    params.width = 144;
    assert_int_equal(vkn_bench(&params, &json), VKN_BAD_INPUT);
    assert_message("--width: 144");
    params = quick(VKN_BENCH_ALL, VKN_PRECISION_FP32);
    params.depth = 9;
    assert_int_equal(vkn_bench(&params, &json), VKN_BAD_INPUT);
    assert_message("--depth: 9 is more than 8");
    params = quick(VKN_BENCH_ALL, VKN_PRECISION_FP32);
    for (params.log2_entries = 13; params.log2_entries <= 23; params.log2_entries += 10) {
        assert_int_equal(vkn_bench(&params, &json), VKN_BAD_INPUT);
        assert_message(params.log2_entries == 13 ? "--entries: 13"
                                                 : "--entries: 23 is not from 14");
    }
    params = quick(VKN_BENCH_ALL, VKN_PRECISION_FP32);
    params.format = VKN_SCENE_COLMAP;
    assert_int_equal(vkn_bench(&params, &json), VKN_BAD_INPUT);
    assert_message("--format: only of use with --scene");
    params.scene = "/nowhere";
    params.suite = VKN_BENCH_GRID;
    assert_int_equal(vkn_bench(&params, &json), VKN_BAD_INPUT);
    assert_message("--scene: only of use where training steps are measured");
    params = quick(VKN_BENCH_STEP, VKN_PRECISION_FP32);
    const struct vkn_config seeded = {.seed = 3},
                            uniform = {.march.sampling = VKN_SAMPLING_UNIFORM};
    params.config = &seeded;
    assert_int_equal(vkn_bench(&params, &json), VKN_BAD_INPUT);
    assert_message("settings of training: only of use with --suite sampling");
    params = quick(VKN_BENCH_SAMPLING, VKN_PRECISION_FP32);
    assert_int_equal(vkn_bench(&params, &json), VKN_BAD_INPUT);
    assert_message("--suite sampling: no scene is given");
    params.scene = "/nowhere";
    params.config = &uniform;
    assert_int_equal(vkn_bench(&params, &json), VKN_BAD_INPUT);
    assert_message("march.sampling: --suite sampling chooses it itself");
    assert_null(json);
}

/* A scene with two formats, one of them damaged: the error comes before any measurement. */
static void test_scene(void **state)
{
    struct temporary *folder = *state;
    char *json = NULL;
    temporary_picture(folder, "images/a.png", 16, 16, 4);
    temporary_picture(folder, "images/b.png", 16, 16, 4);
    temporary_text(folder, "cameras.txt", "1 SIMPLE_PINHOLE 16 16 20 8 8\n");
    temporary_text(folder, "images.txt", "1 1 0 0 0 0 0 4 1 a.png\n\n2 1 0 0 0 1 0 4 1 b.png\n\n");
    temporary_text(folder, "transforms_train.json", "{");
    struct vkn_bench_params params = quick(VKN_BENCH_ALL, VKN_PRECISION_FP32);
    params.scene = folder->path;
    assert_int_equal(vkn_bench(&params, &json), VKN_BAD_INPUT);
    assert_message("transforms_train.json: ");
    assert_null(json);
    params.format = VKN_SCENE_COLMAP;
    params.suite = VKN_BENCH_STEP;
    params.repetitions = 2;
    cJSON *bench = run_with(&params, VKN_OK);
    assert_non_null(find(bench, "step", "fp32", "512 samples"));
    cJSON_Delete(bench);
    params.batch = 1024;
    params.suite = VKN_BENCH_SAMPLING;
    params.seeds = 2;
    params.config = &(const struct vkn_config){
        .seed = 7,
        .seconds = SAMPLING_SECONDS,
        .scene.downscale = 1,
        .grid = {.levels = 2, .log2_entries = 14},
        .mlp = {.density_width = 16, .color_width = 16, .color_layers = 1},
        .march = {.resolution = 16, .ray_samples = 16, .coarse_samples = 4, .fine_samples = 12},
    };
    bench = run_with(&params, VKN_OK);
    check_samplings(bench);
    cJSON_Delete(bench);
}

/* ---- output ---------------------------------------------------------------------------------- */

/* A missing vendor library is reported in one line; the folder has the same JSON as the output. */
static void test_files(void **state)
{
    struct temporary *folder = *state;
    struct vkn_bench_params params = quick(VKN_BENCH_GEMM, VKN_PRECISION_FP32);
    char *out = base_path_join(folder->path, "bench"), *json = NULL, *file = NULL, *chart = NULL;
    params.out = out;
    setenv("VKNERF_CUBLASLT", "/nowhere/libcublasLt.so", 1);
    ok(vkn_bench(&params, &json));
    cJSON *bench = cJSON_Parse(json);
    unsetenv("VKNERF_CUBLASLT");
    assert_non_null(strstr(text(bench, "vendor_library"), "/nowhere/libcublasLt.so"));
    assert_null(strchr(text(bench, "vendor_library"), '\n'));
    assert_null(find(bench, "gemm", "cublaslt f32 f32", NULL));
    assert_false(has(find(bench, "gemm", "fp32", NULL), "vendor_ratio"));
    char *json_path = base_path_join(out, "bench.json"), *svg = base_path_join(out, "bench.svg");
    size_t size = 0;
    ok(base_file_read(json_path, 1 << 20, &file, &size));
    ok(base_file_read(svg, 1 << 20, &chart, &size));
    assert_string_equal(file, json);
    assert_int_equal(strncmp(chart, "<svg ", 5), 0);
    assert_string_equal(chart + strlen(chart) - 7, "</svg>\n");
    assert_non_null(strstr(chart, "512x64x64"));
    assert_null(strstr(chart, "nan"));
    cJSON_Delete(bench);
    char *texts[] = {out, json, file, chart, json_path, svg};
    for (size_t i = 0; i < BASE_COUNT(texts); i++)
        free(texts[i]);
}

/* Returns an MLP's result in the format of bench.json. */
static char *mlp_result(const char *backend, const char *name, int training, double rate)
{
    return base_format("{\"suite\": \"mlp\", \"case\": \"%s\", \"path\": \"%s\", \"unit\": "
                       "\"FLOP/s\", \"rate\": %g, \"sizes\": {\"training\": %d}}",
                       name, backend, rate, training);
}

/* Returns the part of the chart from one title to the next. */
static char *between(const char *chart, const char *from, const char *to)
{
    const char *begin = strstr(chart, from), *end = to ? strstr(chart, to) : strchr(chart, 0);
    assert_non_null(begin);
    assert_non_null(end);
    return base_format("%.*s", (int)(end - begin), begin);
}

/* Bars side by side show one operation on the one case that most backends were timed on. */
static void test_chart(void **state)
{
    (void)state;
    char *results[] = {
        mlp_result("fp32", "small", 0, 5e9),          mlp_result("fp32", "small training", 1, 2e9),
        mlp_result("fp16", "small", 0, 1e9),          mlp_result("fp16", "small training", 1, 4e9),
        mlp_result("fp32", "large", 0, 9e9),          mlp_result("fp32", "large training", 1, 8e9),
        mlp_result("fp16", "large training", 1, 7e9),
    };
    char *json =
        base_format("{\"device\": {}, \"results\": [%s, %s, %s, %s, %s, %s, %s]}", results[0],
                    results[1], results[2], results[3], results[4], results[5], results[6]);
    char *chart = report_bench_chart(json);
    assert_non_null(chart);
    char *forward = between(chart, "Fused MLPs forward: small<", "Fused MLPs forward and");
    char *training = between(chart, "Fused MLPs forward and backward: large training<", NULL);
    assert_non_null(strstr(forward, ">5 GFLOP/s<"));
    assert_non_null(strstr(forward, ">1 GFLOP/s<"));
    assert_null(strstr(forward, ">4 GFLOP/s<"));
    assert_non_null(strstr(training, ">8 GFLOP/s<"));
    assert_non_null(strstr(training, ">7 GFLOP/s<"));
    assert_null(strstr(chart, ">9 GFLOP/s<"));
    /* A section's title is above its bars. */
    const char *name = strstr(strrchr(forward, '<'), " y=\"");
    const char *bar = strstr(strstr(training, "<rect"), " y=\"");
    assert_true(name != NULL && bar != NULL && strtod(name + 4, NULL) < strtod(bar + 4, NULL));
    char *texts[] = {json, chart, forward, training};
    for (size_t i = 0; i < BASE_COUNT(texts); i++)
        free(texts[i]);
    for (size_t i = 0; i < BASE_COUNT(results); i++)
        free(results[i]);
}

/* The roofline's legend names compute backends, and not the copy, which computes nothing. */
static void test_legend(void **state)
{
    (void)state;
    static const char json[] =
        "{\"device\": {}, \"results\": ["
        "{\"suite\": \"gemm\", \"path\": \"fp32\", \"unit\": \"FLOP/s\", \"rate\": 5e9,"
        "\"flops\": 4e6, \"bytes\": 1e6},"
        "{\"suite\": \"peak\", \"path\": \"copy\", \"unit\": \"B/s\", \"rate\": 1e9}]}";
    char *chart = report_bench_chart(json);
    assert_non_null(chart);
    char *legend = between(chart, "<circle", "lines: measured peaks");
    assert_non_null(strstr(legend, ">fp32<"));
    assert_null(strstr(legend, ">copy<"));
    free(legend);
    free(chart);
}

/* The chart has a curve per run, a point per mark, and the time to uniform sampling's PSNR. */
static void test_sampling_chart(void **state)
{
    (void)state;
    static const char json[] =
        "{\"device\": {}, \"results\": [], \"sampling\": {\"runs\": ["
        "{\"kind\": \"occupancy\", \"seed\": 3, \"uniform_psnr\": 20, \"seconds_to_uniform\": 4.5,"
        "\"marks\": [{\"seconds\": 2, \"psnr\": 15}, {\"seconds\": 20, \"psnr\": 25}]},"
        "{\"kind\": \"uniform\", \"seed\": 3, \"uniform_psnr\": 20, \"seconds_to_uniform\": 20,"
        "\"marks\": [{\"seconds\": 2, \"psnr\": null}, {\"seconds\": 20, \"psnr\": 20}]},"
        "{\"kind\": \"<b>\", \"seed\": 4, \"uniform_psnr\": 20, \"seconds_to_uniform\": null,"
        "\"marks\": []}, {\"kind\": \"uniform\", \"seed\": 4, \"fault\": \"no memory\"}]}}";
    char *chart = report_bench_chart(json);
    assert_non_null(chart);
    assert_non_null(strstr(chart, "occupancy, seed 3: 25.00 dB; equals uniform in 4.5 s<"));
    assert_non_null(strstr(chart, ">uniform, seed 3: 20.00 dB<"));
    assert_non_null(strstr(chart, "<title>20 s: 25.00 dB</title>"));
    assert_non_null(strstr(chart, "&lt;b&gt;, seed 4<"));
    int points = 0;
    for (const char *at = chart; (at = strstr(at, "<circle")); at++)
        points++;
    assert_int_equal(points, 3);
    assert_null(strstr(chart, "nan"));
    free(chart);
}

/* Standard output is one JSON object and nothing else. */
static void test_command(void **state)
{
    (void)state;
    const char *end = NULL;
    char how[BASE_HOW_SIZE],
        *output = own_program_run("bench --suite grid --quick --precision fp32 --batch 512 --json",
                                  STDERR_FILENO, how);
    assert_string_equal(how, "");
    cJSON *bench = cJSON_ParseWithOpts(output, &end, false);
    assert_non_null(bench);
    assert_string_equal(end, "\n");
    assert_int_equal(output[0], '{');
    check_all(bench);
    cJSON_Delete(bench);
    free(output);
}

static void test_quartiles(void **state)
{
    (void)state;
    double seconds[] = {5, 1, 4, 2, 3};
    struct bench_times times = {0};
    bench_summarize(seconds, 5, &times);
    assert_true(times.least == 1 && times.lower == 2 && times.median == 3 && times.upper == 4 &&
                times.most == 5 && times.repetitions == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quartiles),
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_gemm_gpu_shaped),
        cmocka_unit_test(test_mlp),
        cmocka_unit_test(test_grid),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_chart),
        cmocka_unit_test(test_legend),
        cmocka_unit_test(test_sampling_chart),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_flexible),
        cmocka_unit_test(test_wrong_results),
        cmocka_unit_test(test_wrong_library),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test_setup_teardown(test_scene, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_files, temporary_setup, temporary_teardown),
        cmocka_unit_test(test_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
