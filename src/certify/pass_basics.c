/* Tests what all passes rely on: sums by atomics under contention, subgroups of every size, shared
 * memory and barriers, large buffers, indirect dispatches, f16 numbers. Results are integers or
 * exact, and are compared with the host's. */
#include "certify/fixture.h"

#define ROUNDS 3u

static struct fixture basic_fixture(struct gpu_device *device)
{
    struct fixture fixture =
        fixture_configure(device, (struct vkn_config){.precision = VKN_PRECISION_FP32});
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Adds up what certify/sums.comp adds to each pair. */
static void expect_sums(uint32_t pairs, uint32_t additions, double *sums)
{
    for (uint32_t i = 0; i < additions; i++) {
        sums[2 * (i % pairs)] += 0.25 * (i % 3 ? (int)(i % 3) : -1);
        sums[2 * (i % pairs) + 1] += 0.25 * (i % 2);
    }
}

static double read_sum(enum vkn_gradient_sums kind, const void *data, uint32_t i)
{
    const uint32_t *words = data;
    if (kind == VKN_SUMS_F16)
        return reference_f16(((const uint16_t *)data)[i]);
    if (kind == VKN_SUMS_FIXED)
        return ((int32_t)words[2 * i + 1] * 0x1p32 + (int32_t)words[2 * i]) / FIXED_SCALE;
    return (double)((const float *)data)[i];
}

struct contention {
    uint32_t pairs, invocations, each; /* each: additions of an invocation */
};

/* loss_scale: by which sums in fixed point are divided. */
static void check_contention(struct fixture *fixture, const char *shader,
                             enum vkn_gradient_sums kind, const char *feature, float loss_scale,
                             const struct contention *c)
{
    char text[64];
    snprintf(text, sizeof text, "%s sums", config_gradient_sums_names[kind]);
    const struct State state = {.ray_count = 1, .loss_scale = loss_scale};
    uint32_t binding =
        kind == VKN_SUMS_FIXED || kind == VKN_SUMS_F16 ? BIND_ACCUMULATORS : BIND_GRADIENTS;
    uint64_t size = fixture->buffers[binding].size;
    void *zeros = base_alloc(size, 1);
    double *expected = base_alloc(2ull * c->pairs, sizeof *expected);
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_put(fixture, binding, zeros, size);
    fixture_run(fixture, shader, (struct Push){.a = c->pairs, .b = c->each},
                fixture_groups(fixture, c->invocations));
    check_backend(text, feature);
    uint32_t invocations = fixture_groups(fixture, c->invocations) * fixture->local_size;
    void *sums = fixture_read(fixture, binding);
    expect_sums(c->pairs, invocations * c->each, expected);
    double unit = kind == VKN_SUMS_FIXED ? loss_scale : 1;
    for (uint32_t i = 0; i < 2 * c->pairs; i++)
        check_close(unit * read_sum(kind, sums, i), expected[i], 0, 1, "sum", i);
    free(sums);
    free(expected);
    free(zeros);
}

/* Many invocations on one address, many addresses, and long chains of dependent additions. */
static void check_sums_of(struct gpu_device *device, const char *shader,
                          enum vkn_gradient_sums kind, const char *feature)
{
    /* f16 counts by quarters up to 512 only. */
    static const struct contention cases[] = {{1, 4096, 1}, {500, 65536, 1}, {2, 64, 500}},
                                   small[] = {{1, 1024, 1}, {500, 65536, 1}, {2, 64, 16}};
    struct fixture fixture = basic_fixture(device);
    for (size_t i = 0; i < BASE_COUNT(cases); i++)
        for (uint32_t round = 0; round < ROUNDS; round++) {
            /* In fixed point 1/4 is 2^31 units, just beyond the low word, then 2^29 and 2^27, whose
             * sums overflow it. */
            float loss_scale = 512.0f * (float)(1u << 2 * round);
            check_contention(&fixture, shader, kind, feature, loss_scale,
                             kind == VKN_SUMS_F16 ? &small[i] : &cases[i]);
        }
    fixture_destroy(&fixture);
}

static void test_fixed_sums(struct gpu_device *device)
{
    check_sums_of(device, "certify_sums_fixed", VKN_SUMS_FIXED, "");
}

static void test_float_sums(struct gpu_device *device)
{
    if (gpu_device_capabilities(device)->float_atomic_add)
        check_sums_of(device, "certify_sums_float", VKN_SUMS_F32, "float_atomics");
    else
        check_note("the device adds no f32 by atomics");
}

static void test_cas_sums(struct gpu_device *device)
{
    check_sums_of(device, "certify_sums_cas", VKN_SUMS_CAS, "cas_sums");
}

static void test_f16_sums(struct gpu_device *device)
{
    if (gpu_device_capabilities(device)->packed_f16_atomics)
        check_sums_of(device, "certify_sums_f16", VKN_SUMS_F16, "packed_f16_atomics");
    check_sums_of(device, "certify_sums_f16_cas", VKN_SUMS_F16, "cas_sums");
}

/* ---- subgroups ------------------------------------------------------------------------------- */

#define RESULTS 8u /* of each invocation in certify/subgroups.comp */
#define SEED    5u

/* What certify/subgroups.comp computes by pcg3d. */
static uint32_t value_of(uint32_t invocation)
{
    uint32_t bits[3];
    reference_random_bits(0, SEED, invocation, 0, bits);
    return bits[0] & 0xffff;
}

static void check_subgroup(const uint32_t *results, uint32_t first, uint32_t size)
{
    uint32_t sum = 0, largest = 0, odd = 0;
    for (uint32_t lane = 0; lane < size; lane++)
        largest = value_of(first + lane) > largest ? value_of(first + lane) : largest;
    for (uint32_t lane = 0; lane < size; lane++) {
        sum += value_of(first + lane);
        const uint32_t expected[RESULTS] = {size,
                                            lane,
                                            sum,
                                            largest,
                                            odd,
                                            value_of(first + size - 1 - lane),
                                            value_of(first + (lane ^ 1u)),
                                            value_of(first + 3)};
        for (uint32_t i = 0; i < RESULTS; i++)
            if (results[RESULTS * (first + lane) + i] != expected[i])
                check_fail("subgroups of %u: result %u of lane %u is %u, not %u", size, i, lane,
                           results[RESULTS * (first + lane) + i], expected[i]);
        odd += value_of(first + lane) & 1u;
    }
}

static void check_subgroup_size(struct fixture *fixture, uint32_t size)
{
    const uint32_t invocations = 4 * size;
    const struct gpu_pipeline_options options = {.name = "certify_subgroups",
                                                 .local_size = 2 * size,
                                                 .constants = &fixture->constants,
                                                 .subgroup_size = size};
    struct gpu_pipeline *pipeline = NULL;
    struct gpu_recording *recording;
    const struct Push push = {.a = SEED};
    check_pass(options.name, false);
    check_ok(gpu_pipeline_create(fixture->device, &options, &pipeline));
    check_ok(gpu_record_begin(fixture->device, options.name, 0, &recording));
    gpu_record_dispatch(recording, pipeline, fixture->bindings, &push, sizeof push, 2);
    check_ok(gpu_run_once(&recording));
    uint32_t *results = fixture_read(fixture, BIND_GRADIENTS);
    for (uint32_t first = 0; first < invocations; first += size)
        check_subgroup(results, first, size);
    free(results);
    gpu_pipeline_destroy(&pipeline);
}

static void test_subgroups(struct gpu_device *device)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    struct fixture fixture = basic_fixture(device);
    for (uint32_t size = capabilities->subgroup_min; size <= capabilities->subgroup_max; size *= 2)
        if (size >= 4)
            check_subgroup_size(&fixture, size);
    fixture_destroy(&fixture);
}

/* ---- memory and dispatches ------------------------------------------------------------------- */

/* All shared memory, in workgroups of the largest usual size, with barriers between rounds. */
static void test_shared_memory(struct gpu_device *device)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    struct fixture fixture = basic_fixture(device);
    const uint32_t groups = 40, zeros[40] = {0};
    fixture.local_size = gpu_largest_workgroup(capabilities, capabilities->subgroup_size);
    fixture.local_size = fixture.local_size < 256 ? fixture.local_size : 256;
    fixture_set_constant(&fixture, SPEC_RESOLUTION,
                         capabilities->max_shared_memory / 4 / fixture.local_size);
    fixture_put(&fixture, BIND_GRADIENTS, zeros, sizeof zeros);
    fixture_run(&fixture, "certify_shared", (struct Push){.a = 20}, groups);
    uint32_t *wrong = fixture_read(&fixture, BIND_GRADIENTS);
    for (uint32_t group = 0; group < groups; group++)
        check_close(wrong[group], 0, 0, 1, "wrong words of workgroup", group);
    free(wrong);
    fixture_destroy(&fixture);
}

#define LARGEST_BUFFER (2ull << 30)
#define BLOCKS         4096u /* of a large buffer, of which each has a word written */

static void check_large_buffer(struct fixture *fixture, const struct gpu_buffer *buffer)
{
    const uint32_t stride = (uint32_t)(buffer->size / 4 / BLOCKS);
    const struct gpu_buffer *buffers[GPU_BINDINGS];
    struct gpu_bindings *bindings = NULL;
    struct gpu_recording *recording;
    for (uint32_t i = 0; i < GPU_BINDINGS; i++)
        buffers[i] = i == BIND_GRADIENTS ? buffer : &fixture->buffers[i];
    check_ok(gpu_bindings_create(fixture->device, buffers, &bindings));
    const struct Push push = {.a = stride, .b = BLOCKS};
    const struct gpu_pipeline *pipeline =
        fixture_pipeline(fixture, "certify_words", FIELD_NO_VARIANT);
    check_pass("certify_words", false);
    check_ok(gpu_record_begin(fixture->device, "certify_words", 0, &recording));
    gpu_record_dispatch(recording, pipeline, bindings, &push, sizeof push,
                        fixture_groups(fixture, BLOCKS));
    check_ok(gpu_run_once(&recording));
    for (uint32_t i = 0; i < BLOCKS; i += i + 64 < BLOCKS ? 63 : 1) {
        uint32_t word;
        check_ok(gpu_download(fixture->device, buffer, 4ull * i * stride, &word, sizeof word));
        if (word != i * 2654435761u + 1)
            check_fail("word %llu of a buffer of %llu bytes: 0x%08x, not 0x%08x",
                       (unsigned long long)i * stride, (unsigned long long)buffer->size, word,
                       i * 2654435761u + 1);
    }
    gpu_bindings_destroy(&bindings);
}

/* The largest buffer that a shader can read, up to 2 GiB and a quarter of what is free. */
static void test_large_buffer(struct gpu_device *device)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    struct fixture fixture = basic_fixture(device);
    struct gpu_buffer buffer = {0};
    struct gpu_arena *arena = NULL;
    uint64_t size = capabilities->max_buffer_range, quarter = gpu_memory_available(device) / 4;
    size = size < LARGEST_BUFFER ? size : LARGEST_BUFFER;
    size = (size < quarter ? size : quarter) / (4 * BLOCKS) * (4 * BLOCKS);
    const struct gpu_buffer_request request = {&buffer, "large buffer", size, GPU_DEVICE};
    check_ok(gpu_arena_create(device, &request, 1, &arena));
    check_large_buffer(&fixture, &buffer);
    check_note("largest buffer tested: %llu bytes", (unsigned long long)size);
    gpu_arena_destroy(&arena);
    fixture_destroy(&fixture);
}

/* Group counts that the device reads from a buffer: none, one, many. */
static void test_indirect_dispatch(struct gpu_device *device)
{
    static const uint32_t counts[][3] = {
        {0, 1, 1}, {1, 1, 1}, {300, 1, 1}, {5, 7, 1}, {65535, 1, 1}};
    struct fixture fixture = basic_fixture(device);
    const struct Push push = {.a = 1};
    const struct gpu_pipeline *pipeline =
        fixture_pipeline(&fixture, "certify_words", FIELD_NO_VARIANT);
    check_pass("certify_words", false);
    for (size_t i = 0; i < BASE_COUNT(counts); i++) {
        struct State state = {0};
        struct gpu_recording *recording;
        fixture_put(&fixture, BIND_STATE, &state, sizeof state);
        fixture_put(&fixture, BIND_DISPATCHES, counts[i], sizeof counts[i]);
        check_ok(gpu_record_begin(device, "certify_words", 0, &recording));
        gpu_record_dispatch_indirect(recording, pipeline, fixture.bindings, &push, sizeof push,
                                     &fixture.buffers[BIND_DISPATCHES], 0);
        check_ok(gpu_run_once(&recording));
        fixture_get(&fixture, BIND_STATE, &state, sizeof state);
        check_equal(state.good_steps, counts[i][0] * counts[i][1] * fixture.local_size);
    }
    fixture_destroy(&fixture);
}

/* ---- f16 ------------------------------------------------------------------------------------- */

#define NUMBERS 1024u

/* Numbers of every size: subnormal ones, ties, numbers around 2^-14 and the largest. */
static void make_numbers(float numbers[NUMBERS])
{
    struct random random = {77};
    for (uint32_t i = 0; i < NUMBERS; i++) {
        int exponent = (int)(i % 42) - 26; /* 2^-26 to 2^15 */
        double mantissa = i % 5 == 0   ? 1 + (2 * random_below(&random, 512) + 1) * 0x1p-11
                          : i % 5 == 1 ? 1
                                       : random_between(&random, 1, 2);
        numbers[i] = (float)(ldexp(mantissa, exponent) * (i % 2 ? -1 : 1));
    }
}

static void check_numbers(const float *numbers, const uint16_t (*results)[4])
{
    static const char *const names[] = {"conversion", "stored", "product", "sum"};
    for (uint32_t i = 0; i < NUMBERS; i++) {
        double value = reference_round_to_f16((double)numbers[i]);
        const double expected[4] = {value, value, reference_round_to_f16(3 * value),
                                    reference_round_to_f16(value + 0x1p-20)};
        for (int k = 0; k < 4; k++)
            if (!(reference_f16(results[i][k]) == expected[k]))
                check_fail("%s of %.9g: %.9g on the device, %.9g expected%s", names[k],
                           (double)numbers[i], reference_f16(results[i][k]), expected[k],
                           fabs(expected[k]) < 0x1p-14 ? ": subnormal f16 numbers are lost" : "");
    }
}

static void test_f16_numbers(struct gpu_device *device)
{
    if (!fixture_has_f16(device)) {
        check_note("the device has no f16");
        return;
    }
    struct fixture fixture = basic_fixture(device);
    float numbers[NUMBERS];
    make_numbers(numbers);
    fixture_put(&fixture, BIND_PARAMS, numbers, sizeof numbers);
    fixture_run(&fixture, "certify_arithmetic", (struct Push){0},
                fixture_groups(&fixture, NUMBERS));
    void *results = fixture_read(&fixture, BIND_ACCUMULATORS);
    check_numbers(numbers, results);
    free(results);
    fixture_destroy(&fixture);
}

static const struct certify_test tests[] = {
    TEST(test_fixed_sums),   TEST(test_float_sums),        TEST(test_cas_sums),
    TEST(test_f16_sums),     TEST(test_subgroups),         TEST(test_shared_memory),
    TEST(test_large_buffer), TEST(test_indirect_dispatch), TEST(test_f16_numbers),
};
const struct certify_part certify_basics = {"basics", tests, BASE_COUNT(tests)};
