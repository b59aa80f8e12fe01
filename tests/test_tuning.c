/* Tests the tuning of backends: legal values, the tuning file and its use, and the tuner of vknerf
 * bench --tune. test_pass_field checks the results of tuned kernels. */
#include "gpu_fixture.h"

#include <cjson/cJSON.h>
#include <vknerf/bench.h>

#include "tuner/tuner.h"
#include "skips.h"
#include "step/step.h"

/* ---- legal values ---------------------------------------------------------------------------- */

static struct gpu_capabilities feigned(enum gpu_device_type type, uint32_t subgroup,
                                       uint32_t shared)
{
    return (struct gpu_capabilities){
        .name = "feigned",
        .type = type,
        .subgroup_size = subgroup,
        .float_atomic_add = true,
        .cas_sums = true,
        .float16 = true,
        .storage16 = true,
        .cooperative_matrix = true,
        .max_shared_memory = shared,
        .max_workgroup_size = 1024,
        .max_buffer_range = 1u << 30,
    };
}

static void add_shape(struct gpu_capabilities *device, uint32_t m, uint32_t n, uint32_t k)
{
    device->shapes[device->shape_count++] = (struct gpu_matrix_shape){m, n, k, "f16", "f16", false};
    device->shapes[device->shape_count++] = (struct gpu_matrix_shape){m, n, k, "f16", "f32", false};
}

struct resolved {
    struct vkn_config config;
    struct field_model model;
    struct field_backend backend;
};

static struct resolved resolve(struct vkn_config config, const struct gpu_capabilities *device)
{
    struct resolved resolved = {.config = config};
    const struct vkn_scene scene = {.downscale = 1, .scale = 1, .aabb_scale = 1};
    ok(setup_resolve_config(&resolved.config, &scene, device));
    resolved.config.precision = config.precision;
    ok(field_model_create(&resolved.config, &resolved.model));
    ok(field_backend_create(&resolved.config, &resolved.model, device, &resolved.backend));
    return resolved;
}

static bool tunes(const struct resolved *resolved, const struct gpu_capabilities *device,
                  enum field_tunable tunable, uint32_t value)
{
    struct field_backend backend = resolved->backend;
    struct field_tuning tuning = field_backend_tuning(&backend);
    tuning.values[tunable] = value;
    bool legal = field_backend_tune(&tuning, &resolved->model, device, &backend);
    if (!legal)
        assert_memory_equal(&backend, &resolved->backend, sizeof backend);
    assert_int_equal(backend.tuned, legal);
    return legal;
}

/* The rules of Vulkan and of the shaders, implemented a second time. */
static void check_rules(const struct resolved *resolved, const struct gpu_capabilities *device,
                        enum field_tunable tunable, uint32_t value)
{
    struct field_backend backend = resolved->backend;
    struct field_tuning tuning = field_backend_tuning(&backend);
    tuning.values[tunable] = value;
    assert_true(field_backend_tune(&tuning, &resolved->model, device, &backend));
    uint32_t subgroup = backend.subgroup_size, number = backend.f16 ? 2 : 4;
    assert_int_equal(backend.forward_size % subgroup + backend.backward_size % subgroup, 0);
    assert_int_equal(backend.forward_size % backend.forward_rows, 0);
    assert_int_equal(backend.backward_size % backend.backward_rows, 0);
    assert_true(backend.forward_size <= device->max_workgroup_size);
    assert_true(backend.backward_size <= device->max_workgroup_size);
    assert_true(backend.backward_groups * backend.scratch_bytes <= device->max_buffer_range);
    bool matrices = backend.precision == VKN_PRECISION_COOPMAT;
    if (!matrices && backend.cpu_kernels)
        return;
    assert_true(backend.forward_rows * backend.forward_stride * number <=
                device->max_shared_memory);
    assert_true(backend.rows_in_memory ||
                backend.backward_rows * backend.backward_stride * number <=
                    device->max_shared_memory);
    if (matrices)
        assert_int_equal(backend.backward_rows % backend.shape.k, 0);
    if (!backend.cpu_kernels) {
        assert_int_equal(backend.owned_rows, 0);
        assert_int_equal(64 % backend.forward_rows, 0);
        return;
    }
    assert_int_equal(backend.backward_rows % backend.owned_rows, 0);
    assert_int_equal(backend.forward_rows % backend.owned_rows, 0);
    assert_int_equal(64 % backend.owned_rows, 0);
    assert_int_equal(backend.owned_rows % device->subgroup_size, 0);
    assert_int_equal(backend.owned_rows % backend.shape.m, 0);
}

static void check_options(struct vkn_config config, const struct gpu_capabilities *device)
{
    struct resolved resolved = resolve(config, device);
    struct field_tuning defaults = field_backend_tuning(&resolved.backend);
    for (int i = 0; i < FIELD_TUNABLES; i++) {
        enum field_tunable tunable = (enum field_tunable)i;
        uint32_t values[FIELD_MAX_OPTIONS], count;
        bool found = false;
        count = field_tuning_options(tunable, &resolved.model, device, &resolved.backend, values);
        for (uint32_t v = 0; v < count; v++) {
            assert_true(v == 0 || values[v] > values[v - 1]);
            check_rules(&resolved, device, tunable, values[v]);
            found = found || values[v] == defaults.values[i];
        }
        assert_int_equal(found, count > 0);
        assert_false(tunes(&resolved, device, tunable, 1u << 20));
    }
    assert_false(tunes(&resolved, device, FIELD_BACKWARD_ROWS, resolved.backend.backward_rows + 1));
    assert_false(tunes(&resolved, device, FIELD_FORWARD_ROWS, 0));
    assert_false(tunes(&resolved, device, FIELD_BACKWARD_GROUPS, 0));
    bool matrices = config.precision == VKN_PRECISION_COOPMAT;
    bool cpu = device->type == GPU_CPU;
    assert_int_equal(tunes(&resolved, device, FIELD_TILES_AT_ONCE, 2), cpu && !matrices);
    assert_false(tunes(&resolved, device, FIELD_HOLD_SUMS, 2));
    assert_false(tunes(&resolved, device, FIELD_OWNED_ROWS, matrices ? 48 : 32));
    assert_false(tunes(&resolved, device, FIELD_BACKWARD_SIZE,
                       cpu ? resolved.backend.backward_size : resolved.backend.backward_rows / 2));
}

static void test_legal(void **state)
{
    (void)state;
    struct gpu_capabilities devices[] = {
        feigned(GPU_DISCRETE, 32, 49152),  feigned(GPU_DISCRETE, 64, 65536),
        feigned(GPU_INTEGRATED, 8, 32768), feigned(GPU_CPU, 8, 32768),
        feigned(GPU_CPU, 8, 65536),        feigned(GPU_CPU, 8, 65536),
    };
    add_shape(&devices[0], 16, 16, 16);
    add_shape(&devices[1], 16, 16, 16);
    add_shape(&devices[2], 8, 8, 16);
    add_shape(&devices[3], 8, 8, 8);
    for (size_t i = 0; i < 4; i++)
        for (int precision = VKN_PRECISION_FP32; precision <= VKN_PRECISION_COOPMAT; precision++)
            for (uint32_t width = 16; width <= 128; width *= 2)
                check_options(
                    (struct vkn_config){.precision = (enum vkn_precision)precision,
                                        .mlp = {.density_width = width, .color_width = width}},
                    &devices[i]);

    /* A tile too large for shared memory; a row shared by two subgroups. */
    struct vkn_config config = {.precision = VKN_PRECISION_COOPMAT};
    struct resolved resolved = resolve(config, &devices[0]);
    assert_true(tunes(&resolved, &devices[0], FIELD_BACKWARD_ROWS, 32));
    assert_false(tunes(&resolved, &devices[0], FIELD_BACKWARD_ROWS, 256));
    add_shape(&devices[4], 8, 8, 8);
    resolved = resolve(config, &devices[4]);
    assert_true(tunes(&resolved, &devices[4], FIELD_OWNED_ROWS, 64));
    add_shape(&devices[5], 8, 8, 16);
    resolved = resolve(config, &devices[5]);
    assert_false(tunes(&resolved, &devices[5], FIELD_OWNED_ROWS, 16));
}

/* ---- the tuning file ----------------------------------------------------------------------- */

/* Narrow MLPs compile quickly; AUTO and fp32 compile nothing in these tests. */
static struct vkn_config small(enum vkn_precision precision)
{
    return (struct vkn_config){
        .precision = precision,
        .grid = {.levels = 4, .log2_entries = 10, .coarsest = 4, .finest = 32},
        .mlp = {.density_width = 16, .color_width = 16, .color_layers = 1},
    };
}

static char *tuning_file(const struct gpu_device *device)
{
    char *file = gpu_cache_path(device, "tuning", "json");
    assert_non_null(file);
    return file;
}

/* Stores a tuning with one more backward workgroup and twice the forward rows per tile. */
static struct resolved remember(const struct gpu_device *device, struct vkn_config config)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    struct resolved resolved = resolve(config, capabilities);
    struct field_tuning tuning = field_backend_tuning(&resolved.backend);
    const struct field_speedups speedups = {1.5, 2};
    tuning.values[FIELD_BACKWARD_GROUPS]++;
    tuning.values[FIELD_FORWARD_ROWS] = 128;
    assert_true(field_backend_tune(&tuning, &resolved.model, capabilities, &resolved.backend));
    ok(field_tuning_save(device, &resolved.model, &resolved.backend, &speedups));
    return resolved;
}

static bool tuned(const struct gpu_device *device, struct vkn_config config)
{
    struct resolved resolved = resolve(config, gpu_device_capabilities(device));
    struct field_backend untuned = resolved.backend;
    bool found = field_apply_tuning(device, &resolved.config, &resolved.model, &resolved.backend);
    if (!found)
        assert_memory_equal(&resolved.backend, &untuned, sizeof untuned);
    assert_int_equal(found, resolved.backend.tuned);
    return found;
}

/* The file holds the measured speedups. */
static void check_speedups(const char *file)
{
    char *text = NULL;
    size_t size = 0;
    ok(base_file_read(file, 1 << 20, &text, &size));
    assert_non_null(strstr(text, "\"forward_speedup\":\t1.5"));
    assert_non_null(strstr(text, "\"backward_speedup\":\t2"));
    free(text);
}

static void test_remembered(void **state)
{
    struct gpu_device *device = *state;
    struct vkn_config config = small(VKN_PRECISION_FP32), wide = config, deterministic = config;
    char *file = tuning_file(device);
    unlink(file);
    assert_false(tuned(device, config));
    struct resolved resolved = remember(device, config),
                    now = resolve(config, gpu_device_capabilities(device));
    check_speedups(file);
    assert_true(field_apply_tuning(device, &now.config, &now.model, &now.backend));
    assert_memory_equal(&now.backend, &resolved.backend, sizeof resolved.backend);

    /* Not used for another model or precision, nor in deterministic runs. */
    wide.mlp.color_width = 32;
    deterministic.deterministic = true;
    assert_false(tuned(device, wide));
    assert_false(tuned(device, deterministic));
    if (gpu_device_capabilities(device)->float16)
        assert_false(tuned(device, small(VKN_PRECISION_FP16)));
    static const char *const switches[][2] = {{"VKNERF_DISABLE", "tuning"},
                                              {"VKNERF_MEASURE", "1"},
                                              {"VKNERF_SELF_TEST_BREAK", "nothing"}};
    for (size_t i = 0; i < BASE_COUNT(switches); i++) {
        setenv(switches[i][0], switches[i][1], 1);
        assert_false(tuned(device, config));
        unsetenv(switches[i][0]);
        assert_true(tuned(device, config));
    }

    /* Each backend has an entry of its own; storing an untuned backend removes the entry. */
    remember(device, wide);
    assert_true(tuned(device, config) && tuned(device, wide));
    now = resolve(config, gpu_device_capabilities(device));
    ok(field_tuning_save(device, &now.model, &now.backend, NULL));
    assert_false(tuned(device, config));
    assert_true(tuned(device, wide));
    unlink(file);
    free(file);
}

/* Replaces the first occurrence of `part` in the file. */
static void edit(const char *file, const char *part, const char *with)
{
    char *text = NULL;
    size_t size = 0;
    ok(base_file_read(file, 1 << 20, &text, &size));
    char *at = strstr(text, part);
    assert_non_null(at);
    char *edited = base_format("%.*s%s%s", (int)(at - text), text, with, at + strlen(part));
    ok(base_file_replace(file, edited, strlen(edited)));
    free(text);
    free(edited);
}

static void test_damaged(void **state)
{
    struct gpu_device *device = *state;
    struct vkn_config config = small(VKN_PRECISION_FP32);
    char *file = tuning_file(device);
    static const char *const damaged[] = {
        "", "{\"tunings\": {\"", "[]", "null", "{\"tunings\": 3}", "{\"tunings\": {\"a\": 1}}",
    };
    for (size_t i = 0; i < BASE_COUNT(damaged); i++) {
        remember(device, config);
        assert_true(tuned(device, config));
        ok(base_file_replace(file, damaged[i], strlen(damaged[i])));
        assert_false(tuned(device, config));
    }
    static const char *const values[][2] = {
        {"\"forward_rows\":\t128", "\"forward_rows\":\t3000"},
        {"\"forward_rows\":\t128", "\"forward_rows\":\t-128"},
        {"\"forward_rows\":\t128", "\"forward_rows\":\t128.5"},
        {"\"forward_rows\":\t128", "\"forward_rows\":\t1e300"},
        {"\"forward_rows\":\t128", "\"forward_rows\":\t\"128\""},
        {"\"forward_rows\"", "\"rows\""},
        {"subgroup ", "subgroups "}, /* of another device, driver or code */
    };
    for (size_t i = 0; i < BASE_COUNT(values); i++) {
        unlink(file);
        remember(device, config);
        assert_true(tuned(device, config));
        edit(file, values[i][0], values[i][1]);
        assert_false(tuned(device, config));
    }
    unlink(file);
    /* Edited by hand to other legal values. */
    remember(device, config);
    edit(file, "\"forward_rows\":\t128", "\"forward_rows\":\t64");
    assert_true(tuned(device, config));
    unlink(file);
    free(file);
}

/* ---- its use ------------------------------------------------------------------------------- */

static struct setup configure(const struct gpu_device *device, const struct vkn_config *config)
{
    struct setup setup;
    memset(&setup, 0, sizeof setup);
    ok(setup_create_tuned(config, device, &setup));
    return setup;
}

/* Training and rendering use tuned constants, except in deterministic mode. */
static void test_step(void **state)
{
    struct gpu_device *device = *state;
    char *file = tuning_file(device);
    unlink(file);
    struct resolved resolved = resolve(small(VKN_PRECISION_FP32), gpu_device_capabilities(device));
    struct vkn_config deterministic = resolved.config;
    deterministic.deterministic = true;
    struct setup before = configure(device, &resolved.config);
    struct setup fixed = configure(device, &deterministic);
    remember(device, small(VKN_PRECISION_FP32));
    edit(file, "\"rounds\":\t", "\"rounds\":\t1");
    struct setup after = configure(device, &resolved.config);
    struct setup fixed_after = configure(device, &deterministic);
    assert_false(before.backend.tuned);
    assert_true(after.backend.tuned);
    assert_int_equal(after.backend.tiles_at_once, 10 + before.backend.tiles_at_once);
    assert_int_equal(after.specialization.values[SPEC_GRADIENT_TILES], after.backend.tiles_at_once);
    assert_int_equal(after.constants.backward_groups, before.constants.backward_groups + 1);
    assert_true(after.backend.scratch_bytes > before.backend.scratch_bytes);
    assert_false(fixed_after.backend.tuned);
    assert_memory_equal(&fixed, &fixed_after, sizeof fixed);
    unlink(file);
    free(file);
}

/* Choosing a backend self-tests the tuned one; if that fails the tuning is deleted and the untuned
 * backend used. */
static void test_choice(void **state)
{
    struct gpu_device *device = *state;
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    char *file = tuning_file(device);
    if (!capabilities->float16) {
        free(file);
        skip_because("the device has no 16-bit arithmetic");
    }
    struct resolved resolved = remember(device, small(VKN_PRECISION_FP16));
    struct field_choice choice;
    ok(field_choose(device, &resolved.config, &choice));
    assert_true(choice.candidates[choice.chosen].backend.tuned);
    assert_int_equal(choice.candidates[choice.chosen].backend.forward_rows, 128);
    assert_int_equal(resolved.config.precision, VKN_PRECISION_FP16);

    setenv("VKNERF_SELF_TEST_BREAK", "tuning", 1);
    struct capture capture = capture_begin();
    vkn_status status = field_choose(device, &resolved.config, &choice);
    char *log = capture_end(&capture);
    unsetenv("VKNERF_SELF_TEST_BREAK");
    ok(status);
    assert_non_null(strstr(log, "is not tuned any more: the self-test found field_forward_fp16"));
    assert_int_equal(resolved.config.precision, VKN_PRECISION_FP16);
    assert_int_equal(choice.candidates[choice.chosen].verdict, FIELD_CORRECT);
    assert_false(choice.candidates[choice.chosen].backend.tuned);
    assert_false(tuned(device, small(VKN_PRECISION_FP16)));
    free(log);
    unlink(file);
    free(file);
}

static void test_describe(void **state)
{
    struct gpu_device *device = *state;
    char *file = tuning_file(device), *json = NULL, text[FIELD_TUNING_TEXT];
    const struct vkn_context_params params = {0};
    struct vkn_config config = {.precision = VKN_PRECISION_FP32};
    struct resolved resolved = remember(device, config);
    assert_non_null(strstr(field_tuning_describe(&resolved.backend, text), "tuned: rounds "));
    assert_non_null(strstr(text, "forward_rows 128"));
    if (gpu_device_capabilities(device)->type == GPU_CPU) { /* others need not choose fp32 */
        ok(vkn_info_json(&params, &json));
        assert_non_null(strstr(json, text));
        free(json);
        setenv("VKNERF_DISABLE", "tuning", 1);
        ok(vkn_info_json(&params, &json));
        unsetenv("VKNERF_DISABLE");
        assert_null(strstr(json, text));
        assert_non_null(strstr(json, "\"tuning\":\t\"defaults: rounds "));
        free(json);
    }
    unlink(file);
    free(file);
}

/* ---- the tuner ------------------------------------------------------------------------------- */

static cJSON *run_tuner(const volatile sig_atomic_t *stop, vkn_status expected)
{
    char *json = NULL;
    const struct vkn_job job = {.stop = stop, .quiet = true};
    struct vkn_bench_params params = {
        .job = &job,
        .precision = VKN_PRECISION_FP32,
        .tune = true,
        .quick = true,
        .batch = 1024,
        .width = 16,
    };
    struct capture capture = capture_begin();
    vkn_status status = vkn_bench(&params, &json);
    free(capture_end(&capture));
    if (status != expected)
        fail_msg("status %d: %s", status, vkn_last_error());
    cJSON *bench = cJSON_Parse(json), *tuning;
    assert_non_null(bench);
    free(json);
    tuning = cJSON_DetachItemFromObjectCaseSensitive(bench, "tuning");
    assert_non_null(tuning);
    cJSON_Delete(bench);
    return tuning;
}

static const cJSON *field(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_non_null(item);
    return item;
}

/* The stored values are those chosen, or nothing is stored. */
static void test_tuner(void **state)
{
    struct gpu_device *device = *state;
    char *file = tuning_file(device);
    unlink(file);
    cJSON *tuning = run_tuner(NULL, VKN_OK);
    const cJSON *row, *candidates = field(tuning, "candidates");
    bool changed = false;
    assert_string_equal(field(tuning, "path")->valuestring, "fp32");
    assert_int_equal(cJSON_GetArraySize(field(tuning, "tunables")), 5);
    assert_true(cJSON_GetArraySize(candidates) > 0);
    cJSON_ArrayForEach (row, candidates) {
        double before = field(row, "milliseconds_before")->valuedouble;
        double milliseconds = field(row, "milliseconds")->valuedouble;
        assert_true(before > 0 && milliseconds > 0);
        assert_int_equal(cJSON_IsTrue(field(row, "taken")), milliseconds <= 0.97 * before);
    }
    cJSON_ArrayForEach (row, field(tuning, "passes")) {
        assert_true(field(row, "default_milliseconds")->valuedouble > 0);
        assert_true(field(row, "chosen_milliseconds")->valuedouble > 0);
    }
    cJSON_ArrayForEach (row, field(tuning, "tunables"))
        changed =
            changed || field(row, "default")->valuedouble != field(row, "chosen")->valuedouble;
    bool remembered = cJSON_IsTrue(field(tuning, "remembered"));
    assert_int_equal(strncmp(field(tuning, "result")->valuestring, "tuned", 5) == 0, remembered);
    assert_int_equal(changed, remembered);
    const struct vkn_config config = {.precision = VKN_PRECISION_FP32,
                                      .mlp = {.density_width = 16, .color_width = 16}};
    assert_int_equal(tuned(device, config), remembered);
    cJSON_Delete(tuning);
    unlink(file);
    free(file);
}

/* A candidate with wrong results is rejected however fast it is, and not stored; after a rejected
 * larger value a smaller one is tried. */
static void test_wrong(void **state)
{
    struct gpu_device *device = *state;
    char *file = tuning_file(device);
    unlink(file);
    setenv("VKNERF_SELF_TEST_BREAK", "tuning", 1);
    cJSON *tuning = run_tuner(NULL, VKN_OK);
    unsetenv("VKNERF_SELF_TEST_BREAK");
    const cJSON *row;
    uint32_t wrong = 0, smaller = 0;
    cJSON_ArrayForEach (row, field(tuning, "candidates")) {
        const cJSON *fault = cJSON_GetObjectItemCaseSensitive(row, "fault");
        assert_non_null(fault);
        assert_non_null(strstr(fault->valuestring, "_fp32"));
        assert_false(cJSON_IsTrue(field(row, "taken")));
        wrong++;
        smaller += field(row, "to")->valuedouble < field(row, "from")->valuedouble;
    }
    assert_true(smaller > 0 && smaller < wrong);
    assert_false(cJSON_IsTrue(field(tuning, "remembered")));
    assert_int_equal(strncmp(field(tuning, "result")->valuestring, "defaults: ", 10), 0);
    assert_false(base_file_exists(file));
    cJSON_Delete(tuning);
    free(file);
}

/* An immediate Ctrl-C: no candidate, the defaults. */
static void test_interrupted(void **state)
{
    (void)state;
    volatile sig_atomic_t stop = 1;
    cJSON *tuning = run_tuner(&stop, VKN_INTERRUPTED);
    assert_int_equal(cJSON_GetArraySize(field(tuning, "candidates")), 0);
    assert_int_equal(strncmp(field(tuning, "result")->valuestring, "defaults: ", 10), 0);
    cJSON_Delete(tuning);
}

/* Uses the user's cache folder, as the commands do. */
static int open_default(void **state)
{
    struct gpu_device *device;
    setenv("XDG_CACHE_HOME", cache_dir, 1);
    ok(gpu_open(NULL, &device));
    *state = device;
    return 0;
}

/* With the argument "host", for sanitizers, the tuner's tests are skipped, which mostly wait for
 * the device. */
int main(int argc, char **argv)
{
    const struct CMUnitTest host_tests[] = {
        cmocka_unit_test(test_legal),       cmocka_unit_test(test_remembered),
        cmocka_unit_test(test_damaged),     cmocka_unit_test(test_step),
        cmocka_unit_test(test_choice),      cmocka_unit_test(test_describe),
        cmocka_unit_test(test_interrupted),
    };
    const struct CMUnitTest tuner_tests[] = {
        cmocka_unit_test(test_tuner),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_no_messages),
    };
    if (!prepare_tests())
        return 1;
    bool host = argc > 1 && strcmp(argv[1], "host") == 0;
    int failed = cmocka_run_group_tests(host_tests, open_default, close_shared);
    if (!host)
        failed += cmocka_run_group_tests(tuner_tests, open_default, close_shared);
    clean_up_tests();
    return failed;
}
