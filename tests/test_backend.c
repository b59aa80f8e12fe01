/* Tests the choice of a precision (backend): candidates of devices of all vendors, the benchmark,
 * the self-test of kernels with its fallbacks, and the cached results. */
#include "gpu_fixture.h"

#include "tuner/tuner.h"
#include "tuner/internal.h"
#include "skips.h"
#include "step/step.h"

/* ---- fake devices ----------------------------------------------------------------------- */

static struct gpu_capabilities fake(enum gpu_device_type type, uint32_t subgroup)
{
    return (struct gpu_capabilities){
        .name = "fake",
        .type = type,
        .subgroup_size = subgroup,
        .subgroup_min = subgroup,
        .subgroup_max = subgroup,
        .subgroup_pinnable = true,
        .float_atomic_add = true,
        .cas_sums = true,
        .float16 = true,
        .storage16 = true,
        .max_shared_memory = 49152,
        .max_workgroup_size = 1024,
    };
}

static void add_shape(struct gpu_capabilities *device, uint32_t m, uint32_t n, uint32_t k,
                      const char *c_type, bool flexible)
{
    device->cooperative_matrix = true;
    device->shapes[device->shape_count++] =
        (struct gpu_matrix_shape){m, n, k, "f16", c_type, flexible};
}

static struct gpu_capabilities nvidia(void)
{
    struct gpu_capabilities device = fake(GPU_DISCRETE, 32);
    static const uint32_t shapes[][3] = {{16, 8, 8}, {16, 8, 16}, {16, 16, 16}};
    for (size_t i = 0; i < BASE_COUNT(shapes); i++) {
        add_shape(&device, shapes[i][0], shapes[i][1], shapes[i][2], "f16", false);
        add_shape(&device, shapes[i][0], shapes[i][1], shapes[i][2], "f32", false);
    }
    device.cooperative_matrix2 = device.packed_f16_atomics = true;
    return device;
}

/* Intel's DG2 has no f16 accumulators. */
static struct gpu_capabilities intel_dg2(void)
{
    struct gpu_capabilities device = fake(GPU_DISCRETE, 8);
    device.max_shared_memory = 32768;
    add_shape(&device, 8, 8, 16, "f32", false);
    return device;
}

static struct vkn_config effective(struct vkn_config config, const struct gpu_capabilities *device)
{
    struct vkn_scene scene = {.downscale = 1, .scale = 1, .aabb_scale = 1};
    enum vkn_precision precision = config.precision;
    ok(setup_resolve_config(&config, &scene, device));
    config.precision = precision;
    return config;
}

static vkn_status create(struct vkn_config config, const struct gpu_capabilities *device,
                         struct field_backend *backend)
{
    struct field_model model;
    config = effective(config, device);
    ok(field_model_create(&config, &model));
    return field_backend_create(&config, &model, device, backend);
}

static void assert_path(struct vkn_config config, const struct gpu_capabilities *device,
                        const char *name)
{
    struct field_backend backend;
    char text[FIELD_SHADER_NAME];
    ok(create(config, device, &backend));
    assert_string_equal(field_backend_describe(&backend, text), name);
}

static void assert_refused(struct vkn_config config, const struct gpu_capabilities *device,
                           const char *message)
{
    struct field_backend backend;
    assert_int_equal(create(config, device, &backend), VKN_BAD_INPUT);
    assert_message(message);
}

/* NVIDIA's driver reads the weights by input; others have a second copy by output. */
static void test_weights_by_output(void **state)
{
    (void)state;
    for (int own_driver = 0; own_driver < 2; own_driver++) {
        struct gpu_capabilities device = nvidia();
        struct field_backend backend;
        device.has_nvidia_driver = own_driver;
        ok(create((struct vkn_config){.precision = VKN_PRECISION_COOPMAT}, &device, &backend));
        assert_true((backend.transposed == 0) == own_driver);
    }
}

/* Compares the prediction that is used before anything is measured. */
static void assert_predicted(const struct gpu_capabilities *device, const char *name)
{
    struct field_model model;
    struct field_backend backend;
    char text[FIELD_SHADER_NAME];
    struct vkn_config config = effective((struct vkn_config){0}, device);
    ok(field_model_create(&config, &model));
    ok(field_predict_fastest(&config, &model, device, &backend));
    assert_string_equal(field_backend_describe(&backend, text), name);
}

static void test_prediction(void **state)
{
    (void)state;
    struct gpu_capabilities device = nvidia();
    assert_predicted(&device, "coopmat 16x16x16 (f32 accumulation)");
    device.type = GPU_CPU;
    assert_predicted(&device, "fp32");
    device = intel_dg2();
    assert_predicted(&device, "coopmat 8x8x16 (f32 accumulation)");
    device.cooperative_matrix = false;
    assert_predicted(&device, "fp16");
    device.float16 = false;
    assert_predicted(&device, "fp32");
}

/* Checks a tile of field_backward: `rows` samples, a stride of `row` values between them. */
static void assert_tile(uint32_t width, const struct gpu_capabilities *device, uint32_t rows,
                        uint32_t row)
{
    struct field_backend backend;
    ok(create((struct vkn_config){.precision = VKN_PRECISION_COOPMAT,
                                  .mlp = {.density_width = width, .color_width = width}},
              device, &backend));
    assert_int_equal(backend.backward_rows, rows);
    assert_int_equal(backend.backward_stride, row);
    assert_false(backend.rows_in_memory);
}

/* GPUs store values by column, with rows of one layer only, unless a tile of rows of all values has
 * as many samples. */
static void test_backward_tiles(void **state)
{
    (void)state;
    struct gpu_capabilities device = nvidia();
    assert_tile(64, &device, 64, 64 + 8);
    assert_tile(128, &device, 32, 128 + 8);
    device.max_shared_memory = 65536;
    assert_tile(64, &device, 64, 64 + 8);
    assert_tile(128, &device, 64, 464 + 8);
    device = intel_dg2();
    assert_tile(64, &device, 32, 272 + 8);
    device = nvidia();
    device.type = GPU_CPU;
    assert_tile(64, &device, 64, 272 + 8);
}

/* Rows owned by a subgroup: its own samples forward, the whole tile backward. */
static void assert_owned_rows(struct vkn_config config, const struct gpu_capabilities *device)
{
    struct field_backend backend;
    struct gpu_constants constants = {0};
    ok(create(config, device, &backend));
    field_backend_specialize(&backend, FIELD_FORWARD, &constants);
    assert_int_equal(constants.values[SPEC_OWNED_ROWS], backend.subgroup_size);
    field_backend_specialize(&backend, FIELD_BACKWARD, &constants);
    assert_int_equal(constants.values[SPEC_OWNED_ROWS], backend.backward_rows);
}

static void test_fake_devices(void **state)
{
    (void)state;
    const struct vkn_config fp16 = {.precision = VKN_PRECISION_FP16};
    struct vkn_config coopmat = {.precision = VKN_PRECISION_COOPMAT};
    struct gpu_capabilities device = fake(GPU_INTEGRATED, 32);
    assert_path((struct vkn_config){.precision = VKN_PRECISION_FP32}, &device, "fp32");
    assert_path(fp16, &device, "fp16");
    assert_refused(coopmat, &device, "config: precision: \"fake\" has no cooperative matrices");
    device.storage16 = false;
    assert_refused(fp16, &device, "has no 16-bit arithmetic and storage");
    assert_refused(coopmat, &device, "has no 16-bit arithmetic and storage");

    device = nvidia();
    assert_path(coopmat, &device, "coopmat 16x16x16 (f32 accumulation)");
    coopmat.matrix.accumulate = VKN_ACCUMULATE_F16;
    assert_path(coopmat, &device, "coopmat 16x16x16 (f16 accumulation)");
    coopmat.matrix.shape = VKN_SHAPE_16X8X16;
    assert_path(coopmat, &device, "coopmat 16x8x16 (f16 accumulation)");
    coopmat.matrix.accumulate = VKN_ACCUMULATE_F32;
    coopmat.matrix.shape = VKN_SHAPE_8X8X8;
    assert_refused(coopmat, &device,
                   "matrix.shape: \"fake\" offers 16x16x16, 16x8x16 with f32 accumulation");
    coopmat.matrix.conversions = true;
    coopmat.matrix.shape = VKN_SHAPE_16X8X16;
    assert_refused(coopmat, &device, "matrix.conversions: needs");
    coopmat.matrix.shape = VKN_SHAPE_DEFAULT;
    assert_path(coopmat, &device, "coopmat 16x16x16 (f32 accumulation, conversions)");
    assert_owned_rows(coopmat, &device);
    device.cooperative_matrix2 = false;
    assert_refused(coopmat, &device,
                   "matrix.conversions: needs conversions and flexible dimensions of "
                   "VK_NV_cooperative_matrix2");

    device = intel_dg2();
    coopmat = (struct vkn_config){.precision = VKN_PRECISION_COOPMAT};
    assert_path(coopmat, &device, "coopmat 8x8x16 (f32 accumulation)");
    coopmat.matrix.accumulate = VKN_ACCUMULATE_F16;
    assert_refused(coopmat, &device, "offers no usable shape with f16 accumulation");

    /* A shape that only flexible dimensions provide is used only when the setting asks for it. */
    device = fake(GPU_CPU, 8);
    add_shape(&device, 16, 16, 16, "f16", true);
    add_shape(&device, 16, 16, 16, "f32", true);
    coopmat.matrix.accumulate = VKN_ACCUMULATE_F32;
    assert_refused(coopmat, &device, "offers 16x16x16 with f32");
    coopmat.matrix.shape = VKN_SHAPE_16X16X16;
    assert_path(coopmat, &device, "coopmat 16x16x16 (f32 accumulation)");
}

static enum vkn_gradient_sums sums_of(struct vkn_config config, struct gpu_capabilities device)
{
    struct field_backend backend;
    config.precision = VKN_PRECISION_FP32;
    ok(create(config, &device, &backend));
    return backend.sums;
}

static void test_sums(void **state)
{
    (void)state;
    struct gpu_capabilities device = nvidia(), without = nvidia();
    without.float_atomic_add = false;
    assert_int_equal(sums_of((struct vkn_config){0}, device), VKN_SUMS_F32);
    assert_int_equal(sums_of((struct vkn_config){0}, without), VKN_SUMS_FIXED);
    assert_int_equal(sums_of((struct vkn_config){.deterministic = true}, device), VKN_SUMS_FIXED);
    for (int sums = VKN_SUMS_FIXED; sums <= VKN_SUMS_F16; sums++)
        assert_int_equal(
            sums_of((struct vkn_config){.gradient_sums = (enum vkn_gradient_sums)sums}, without),
            sums);
    struct vkn_config config = {.precision = VKN_PRECISION_FP32, .gradient_sums = VKN_SUMS_F16};
    struct field_backend backend;
    char name[FIELD_SHADER_NAME];
    for (int packed = 0; packed < 2; packed++) {
        without.packed_f16_atomics = packed;
        ok(create(config, &without, &backend));
        field_backend_shader_name(&backend, "scatter_gradients", FIELD_SCATTER, name);
        assert_string_equal(name, packed ? "scatter_gradients_f16" : "scatter_gradients_f16_cas");
    }
    /* Without compare-and-swap, f16 sums need the instruction. */
    without.cas_sums = false;
    ok(create(config, &without, &backend));
    without.packed_f16_atomics = false;
    assert_refused(config, &without,
                   "gradient_sums: f16: \"fake\" adds wrongly by compare-and-swap");
    config.gradient_sums = VKN_SUMS_CAS;
    assert_refused(config, &without,
                   "gradient_sums: cas: \"fake\" adds wrongly by compare-and-swap");
    config.gradient_sums = VKN_SUMS_F32;
    assert_refused(config, &without, "gradient_sums: \"fake\" has no atomic f32 addition");
    config.deterministic = true;
    assert_refused(config, &device, "deterministic needs fixed");
}

static void test_candidates(void **state)
{
    (void)state;
    struct field_candidate list[FIELD_MAX_CANDIDATES];
    struct vkn_config config = {0};
    assert_int_equal(field_list_candidates(&config, list), 5);
    assert_int_equal(list[0].precision, VKN_PRECISION_FP32);
    assert_int_equal(list[2].precision, VKN_PRECISION_COOPMAT);
    assert_false(list[2].conversions);
    assert_true(list[3].conversions);
    assert_true(list[4].shape == VKN_SHAPE_16X8X16 && !list[4].conversions && list[4].timed);
    config.matrix.accumulate = VKN_ACCUMULATE_F16;
    assert_int_equal(field_list_candidates(&config, list), 4);
    assert_int_equal(list[3].shape, VKN_SHAPE_16X8X16);
    config.matrix.conversions = true;
    config.matrix.accumulate = VKN_ACCUMULATE_F32;
    assert_int_equal(field_list_candidates(&config, list), 3);
    assert_true(list[2].conversions);
    config.matrix.conversions = false;
    config.matrix.shape = VKN_SHAPE_16X16X16;
    assert_int_equal(field_list_candidates(&config, list), 4);
    assert_int_equal(list[3].shape, VKN_SHAPE_16X16X16);

    /* An open shape of coopmat: the same three are timed, then come the replacements, each once. */
    config = (struct vkn_config){.precision = VKN_PRECISION_COOPMAT};
    assert_int_equal(field_list_candidates(&config, list), 3 + 4 + 2);
    assert_true(!list[0].conversions && list[1].conversions);
    assert_int_equal(list[2].shape, VKN_SHAPE_16X8X16);
    for (uint32_t i = 0; i < 9; i++)
        assert_int_equal(list[i].timed, i < 3);

    /* The list has all fallbacks, each once, fp32 last. */
    config = (struct vkn_config){.precision = VKN_PRECISION_COOPMAT,
                                 .matrix = {.shape = VKN_SHAPE_8X8X8, .conversions = true}};
    uint32_t count = field_list_candidates(&config, list);
    assert_int_equal(count, 1 + 5 + 2);
    assert_false(list[0].timed);
    assert_true(list[0].shape == VKN_SHAPE_8X8X8 && list[0].conversions);
    assert_true(list[1].shape == VKN_SHAPE_8X8X8 && !list[1].conversions);
    assert_int_equal(list[2].shape, VKN_SHAPE_16X16X16);
    assert_int_equal(list[count - 2].precision, VKN_PRECISION_FP16);
    assert_int_equal(list[count - 1].precision, VKN_PRECISION_FP32);
    config.precision = VKN_PRECISION_FP32;
    assert_int_equal(field_list_candidates(&config, list), 1);

    struct field_candidate timed[] = {{.verdict = FIELD_CORRECT, .milliseconds = 3},
                                      {.verdict = FIELD_WRONG, .milliseconds = 1},
                                      {.verdict = FIELD_CORRECT, .milliseconds = 2},
                                      {.verdict = FIELD_UNSUPPORTED}};
    assert_int_equal(field_fastest(timed, BASE_COUNT(timed)), 2);
    /* A lower precision must be more than 5 % faster: measurements vary by that much. */
    timed[2].milliseconds = 2.87;
    assert_int_equal(field_fastest(timed, BASE_COUNT(timed)), 0);
    timed[2].milliseconds = 2.83;
    assert_int_equal(field_fastest(timed, BASE_COUNT(timed)), 2);
    timed[3] = (struct field_candidate){.verdict = FIELD_CORRECT, .milliseconds = 2.7};
    assert_int_equal(field_fastest(timed, BASE_COUNT(timed)), 2); /* 5 % of the best so far */
    timed[3].milliseconds = 2.68;
    assert_int_equal(field_fastest(timed, BASE_COUNT(timed)), 3);
    timed[3].verdict = FIELD_UNSUPPORTED;
    timed[2] = (struct field_candidate){.verdict = FIELD_WRONG, .milliseconds = 2};
    assert_int_equal(field_fastest(timed, BASE_COUNT(timed)), 0);
    timed[0].verdict = timed[2].verdict = FIELD_WRONG;
    assert_int_equal(field_fastest(timed, BASE_COUNT(timed)), 3);
    timed[2] = (struct field_candidate){.verdict = FIELD_CORRECT, .milliseconds = 2};
    assert_int_equal(field_fastest(timed, BASE_COUNT(timed)), 2);
}

/* ---- the precision policy -------------------------------------------------------------------- */

static void test_policy(void **state)
{
    (void)state;
    for (int i = 0; i < FIELD_OPERATIONS; i++) {
        enum field_operation operation = (enum field_operation)i;
        assert_true(field_operation_name(operation)[0]);
        assert_false(field_is_f16(operation, VKN_PRECISION_FP32));
    }
    assert_true(field_is_f16(FIELD_PARAMETERS, VKN_PRECISION_FP16));
    assert_true(field_is_f16(FIELD_ACTIVATION_GRADIENTS, VKN_PRECISION_COOPMAT));
    static const enum field_operation never[] = {FIELD_INTERPOLATION, FIELD_WEIGHT_SUMS,
                                                 FIELD_COMPOSITING,   FIELD_LOSS,
                                                 FIELD_MASTERS,       FIELD_UPDATE};
    for (size_t i = 0; i < BASE_COUNT(never); i++)
        assert_string_equal(field_policy(never[i], VKN_PRECISION_COOPMAT), "f32");
    struct field_backend backend = {.precision = VKN_PRECISION_COOPMAT, .sums = VKN_SUMS_FIXED};
    assert_string_equal(field_policy_of(FIELD_SUMS, &backend), "f32");
    backend.f16_accumulate = true;
    assert_string_equal(field_policy_of(FIELD_SUMS, &backend), "f16");
    assert_non_null(strstr(field_policy_of(FIELD_GRID_SUMS, &backend), "fixed point"));
    char text[FIELD_POLICY_TEXT];
    assert_string_equal(field_policy_describe(&backend, text), "policy.accumulators=f16");
    backend.sums = VKN_SUMS_F16;
    backend.rounded = ROUND_MASTERS | ROUND_COMPOSITING | ROUND_WEIGHT_SUMS | ROUND_MOMENTS;
    assert_string_equal(field_policy_of(FIELD_MASTERS, &backend), "f16, by rounding f32");
    assert_string_equal(field_policy_of(FIELD_LOSS, &backend), "f32");
    assert_string_equal(
        field_policy_describe(&backend, text),
        "policy.accumulators=f16, policy.weight_gradients=f16, policy.grid_gradients=f16, "
        "policy.compositing=f16, policy.master_parameters=f16, policy.moments=f16");
    struct field_backend raised = {.precision = VKN_PRECISION_FP16, .rounded = F32_PRODUCTS};
    assert_string_equal(field_policy_of(FIELD_PRODUCTS, &raised), "f32");
    assert_string_equal(field_policy_of(FIELD_SUMS, &raised), "f32");
    assert_string_equal(field_policy_describe(&raised, text), "policy.matmul=f32");
    raised.rounded |= ROUND_SUMS;
    assert_string_equal(field_policy_of(FIELD_SUMS, &raised), "f16, by rounding f32");

    /* A run rendered in another precision drops its settings of the matmul; other settings stay. */
    struct vkn_config asked = {.policy = {.matmul = VKN_POLICY_F16,
                                          .accumulators = VKN_POLICY_F16,
                                          .compositing = VKN_POLICY_F16}};
    field_policy_reset(&asked);
    assert_true(asked.policy.matmul == VKN_POLICY_DEFAULT &&
                asked.policy.accumulators == VKN_POLICY_DEFAULT &&
                asked.policy.compositing == VKN_POLICY_F16);

    /* Loss scaling follows from the precision policy. */
    struct gpu_capabilities device = nvidia();
    for (int precision = VKN_PRECISION_FP32; precision <= VKN_PRECISION_COOPMAT; precision++) {
        struct vkn_config config =
            effective((struct vkn_config){.precision = (enum vkn_precision)precision}, &device);
        assert_int_equal(config.loss_scale.kind, precision == VKN_PRECISION_FP32
                                                     ? VKN_LOSS_SCALE_STATIC
                                                     : VKN_LOSS_SCALE_DYNAMIC);
    }
}

/* ---- the choice on a device ------------------------------------------------------------------ */

/* Narrow MLPs of tests/step_fixture.h, which compile quickly and once for several tests. */
static struct vkn_config small(enum vkn_precision precision, const struct gpu_device *device)
{
    struct vkn_config config = {
        .precision = precision,
        .grid = {.levels = 4, .features = 2, .log2_entries = 10, .coarsest = 4, .finest = 32},
        .mlp = {.density_width = 16, .color_width = 16, .color_layers = 1, .sh_degree = 3},
    };
    return effective(config, gpu_device_capabilities(device));
}

struct outcome {
    struct vkn_config config;
    struct field_choice choice;
    char *log; /* freed by assert_chosen */
    const struct field_candidate *chosen;
};

static struct outcome choose(struct gpu_device *device, struct vkn_config config)
{
    struct outcome outcome = {.config = config};
    struct capture capture = capture_begin();
    vkn_status status = field_choose(device, &outcome.config, &outcome.choice);
    outcome.log = capture_end(&capture);
    ok(status);
    return outcome;
}

static void assert_chosen(struct outcome *outcome, enum vkn_precision precision, const char *why)
{
    const struct field_choice *choice = &outcome->choice;
    assert_int_equal(outcome->config.precision, precision);
    assert_int_equal(choice->candidates[choice->chosen].precision, precision);
    assert_int_equal(choice->candidates[choice->chosen].verdict, FIELD_CORRECT);
    if (!strstr(choice->why, why))
        fail_msg("\"%s\" is not in: %s", why, choice->why);
    free(outcome->log);
    outcome->log = NULL;
}

/* lavapipe must offer all, so that nothing goes untested; but it has matrices only with subgroups
 * of 8. */
static bool offers_all(const struct gpu_device *device)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    bool all = capabilities->type == GPU_CPU && capabilities->subgroup_size == 8;
    if (all)
        assert_true(capabilities->float16 && capabilities->cooperative_matrix2);
    return all;
}

static bool has_matrices(const struct gpu_device *device)
{
    return offers_all(device) || gpu_device_capabilities(device)->cooperative_matrix;
}

/* Breaks the kernels named by `broken` and expects the fallback to `expected`. */
static void check_broken(struct gpu_device *device, enum vkn_precision asked, const char *broken,
                         const char *second, enum vkn_precision expected)
{
    if (gpu_device_capabilities(device)->float16 &&
        (asked != VKN_PRECISION_COOPMAT || has_matrices(device))) {
        setenv("VKNERF_SELF_TEST_BREAK", broken, 1);
        struct outcome outcome = choose(device, small(asked, device));
        unsetenv("VKNERF_SELF_TEST_BREAK");
        const struct field_candidate *first = &outcome.choice.candidates[0];
        char shader[64];
        snprintf(shader, sizeof shader, "%.*s", (int)strcspn(broken, ","), broken);
        assert_int_equal(first->verdict, FIELD_WRONG);
        assert_non_null(strstr(first->why, shader));
        assert_non_null(strstr(outcome.log, "is switched off: the self-test found"));
        assert_non_null(strstr(outcome.log, shader));
        assert_non_null(strstr(outcome.log, gpu_device_capabilities(device)->name));
        if (second)
            assert_non_null(strstr(outcome.log, second));
        assert_chosen(&outcome, expected, "failed the self-test");
    }
}

static void name_matrix_backward(struct gpu_device *device, char text[FIELD_SHADER_NAME])
{
    struct field_backend backend;
    if (has_matrices(device)) {
        ok(create(small(VKN_PRECISION_COOPMAT, device), gpu_device_capabilities(device), &backend));
        field_backend_shader_name(&backend, "field_backward", FIELD_VALUES, text);
    }
}

static void test_broken_kernels(void **state)
{
    struct gpu_device *device = *state;
    char backward[FIELD_SHADER_NAME] = "", both[160];
    check_broken(device, VKN_PRECISION_FP16, "field_forward_fp16", NULL, VKN_PRECISION_FP32);
    check_broken(device, VKN_PRECISION_FP16, "field_backward_fp16", NULL, VKN_PRECISION_FP32);
    name_matrix_backward(device, backward);
    if (!offers_all(device))
        return; /* other devices have more shapes to fall back to, or no matrices */
    snprintf(both, sizeof both, "%s,field_forward_fp16", backward);
    check_broken(device, VKN_PRECISION_COOPMAT, both, "field_forward_fp16", VKN_PRECISION_FP32);
}

static struct vkn_config small_layers(enum vkn_precision precision, const struct gpu_device *device)
{
    struct vkn_config config = {
        .model = VKN_MODEL_VANILLA,
        .precision = precision,
        .mlp = {.density_width = 32,
                .density_layers = 2,
                .geometry = 32,
                .color_width = 32,
                .skip_layer = 2,
                .position_octaves = 4,
                .direction_octaves = 1},
    };
    return effective(config, gpu_device_capabilities(device));
}

/* All passes of layer-by-layer MLPs are tested together: with a policy that fp32, their reference,
 * does not have, and with broken shaders. */
static void test_layers(void **state)
{
    static const char *const broken[] = {NULL, "layer_forward_fp16", "layer_weights_fp16"};
    struct gpu_device *device = *state;
    for (size_t i = 0; gpu_device_capabilities(device)->float16 && i < BASE_COUNT(broken); i++) {
        if (broken[i])
            setenv("VKNERF_SELF_TEST_BREAK", broken[i], 1);
        struct vkn_config config = small_layers(VKN_PRECISION_FP16, device);
        if (!broken[i])
            config.policy.accumulators = VKN_POLICY_F16;
        struct outcome outcome = choose(device, config);
        unsetenv("VKNERF_SELF_TEST_BREAK");
        if (broken[i])
            assert_non_null(strstr(outcome.choice.candidates[0].why, broken[i]));
        assert_chosen(&outcome, broken[i] ? VKN_PRECISION_FP32 : VKN_PRECISION_FP16,
                      broken[i] ? "failed the self-test" : "asked for");
    }
}

/* Layers behind a hash grid: gradients of grid features are compared too, in fp16 and coopmat. */
static void test_layers_of_grid(void **state)
{
    struct gpu_device *device = *state;
    for (int precision = VKN_PRECISION_FP16; precision <= VKN_PRECISION_COOPMAT; precision++) {
        if (precision == VKN_PRECISION_COOPMAT ? !has_matrices(device)
                                               : !gpu_device_capabilities(device)->float16)
            continue;
        struct vkn_config config = small_layers((enum vkn_precision)precision, device);
        config.model = VKN_MODEL_LAYERED;
        config.field.position = VKN_POSITION_HASH;
        config.field.direction = VKN_DIRECTION_HARMONICS;
        config.field.activation = VKN_ACTIVATION_TANH;
        struct outcome outcome = choose(device, config);
        assert_chosen(&outcome, (enum vkn_precision)precision, "asked for");
    }
}

/* If the hardware's matrix products are wrong, no matrix kernel is tried. */
static void test_broken_matrices(void **state)
{
    (void)state;
    struct gpu_device *device = open_device();
    if (offers_all(device)) {
        setenv("VKNERF_SELF_TEST_BREAK", "matrix_8x8x8", 1);
        struct outcome outcome = choose(device, small(VKN_PRECISION_COOPMAT, device));
        unsetenv("VKNERF_SELF_TEST_BREAK");
        assert_non_null(strstr(outcome.log, "gpu_matrix_8x8x8: row"));
        assert_string_equal(outcome.choice.candidates[0].why, "matrices failed the self-test");
        assert_chosen(&outcome, VKN_PRECISION_FP16, "coopmat failed the self-test");
    }
    gpu_close(&device);
}

/* The log holds only lines about compiling, which appear on a busy machine. */
static void assert_quiet(const char *log)
{
    for (const char *line = log; *line; line += strcspn(line, "\n") + 1) {
        const char *compiling = strstr(line, ": compiling ");
        if (!compiling || compiling > line + strcspn(line, "\n"))
            fail_msg("unexpected message: %s", line);
        if (!strchr(line, '\n'))
            return;
    }
}

/* Correct kernels pass, and the device's own matrix shape is written to the configuration. */
static void test_requested(void **state)
{
    struct gpu_device *device = *state;
    for (int precision = VKN_PRECISION_FP32; precision <= VKN_PRECISION_COOPMAT; precision++) {
        const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
        if ((precision == VKN_PRECISION_FP16 && !capabilities->float16) ||
            (precision == VKN_PRECISION_COOPMAT && !has_matrices(device)))
            continue;
        struct outcome outcome = choose(device, small((enum vkn_precision)precision, device));
        assert_quiet(outcome.log);
        assert_int_equal(outcome.config.matrix.shape != VKN_SHAPE_DEFAULT,
                         precision == VKN_PRECISION_COOPMAT);
        assert_chosen(&outcome, (enum vkn_precision)precision, "asked for");
    }
    struct vkn_config config = small(VKN_PRECISION_FP32, device);
    struct field_choice choice;
    config.gradient_sums = VKN_SUMS_F32;
    config.deterministic = true;
    assert_int_equal(field_choose(device, &config, &choice), VKN_BAD_INPUT);
    assert_message("deterministic needs fixed");
}

/* Checks each switch that turns a fast backend off, and the reason that is reported. */
static void test_switches(void **state)
{
    (void)state;
    static const struct {
        const char *off, *why;
        uint32_t first; /* first candidate that is unsupported, as are all after it */
    } switches[] = {
        {"float16", "no 16-bit arithmetic and storage: VKNERF_DISABLE=float16", 1},
        {"storage16", "no 16-bit arithmetic and storage: VKNERF_DISABLE=storage16", 1},
        {"cooperative_matrix", "no cooperative matrices: VKNERF_DISABLE=cooperative_matrix", 2},
        {"memory_model", "no cooperative matrices: VKNERF_DISABLE=memory_model", 2},
        {"subgroup_size_control", "no cooperative matrices: VKNERF_DISABLE=subgroup_size_control",
         2},
        {"cooperative_matrix2",
         "no conversions of matrices by VK_NV_cooperative_matrix2: "
         "VKNERF_DISABLE=cooperative_matrix2",
         3},
    };
    for (size_t i = 0; i < BASE_COUNT(switches); i++) {
        struct gpu_device *whole = open_device();
        bool all = offers_all(whole);
        gpu_close(&whole);
        setenv("VKNERF_DISABLE", switches[i].off, 1);
        struct gpu_device *device = open_device();
        struct vkn_config config = small(VKN_PRECISION_AUTO, device);
        config.deterministic = true; /* so that nothing is measured */
        struct outcome outcome = choose(device, config);
        unsetenv("VKNERF_DISABLE");
        for (uint32_t c = 0; c < outcome.choice.count; c++) {
            const struct field_candidate *candidate = &outcome.choice.candidates[c];
            bool gone = c >= switches[i].first;
            if (gone || all)
                assert_int_equal(candidate->verdict == FIELD_UNSUPPORTED, gone);
            if (gone && (all || switches[i].first < 3))
                assert_non_null(strstr(candidate->why, switches[i].why));
        }
        assert_chosen(&outcome, VKN_PRECISION_FP32, "deterministic");
        gpu_close(&device);
    }
    setenv("VKNERF_DISABLE", "float_atomics", 1);
    struct gpu_device *device = open_device();
    struct outcome outcome = choose(device, small(VKN_PRECISION_FP32, device));
    bool owned = gpu_device_capabilities(device)->type == GPU_CPU;
    assert_int_equal(outcome.choice.candidates[0].backend.sums,
                     owned ? VKN_SUMS_F32 : VKN_SUMS_FIXED);
    if (owned)
        assert_string_equal(outcome.choice.why_sums,
                            "few subgroups at a time, so that each has a level for itself");
    free(outcome.log);
    gpu_close(&device);
    setenv("VKNERF_DISABLE", "float_atomics,owned_sums", 1);
    device = open_device();
    outcome = choose(device, small(VKN_PRECISION_FP32, device));
    unsetenv("VKNERF_DISABLE");
    assert_string_equal(outcome.choice.why_sums,
                        "no atomic f32 addition: VKNERF_DISABLE=float_atomics");
    assert_int_equal(outcome.choice.candidates[0].backend.sums, VKN_SUMS_FIXED);
    assert_chosen(&outcome, VKN_PRECISION_FP32, "asked for");
    gpu_close(&device);
}

/* ---- the cache of trials --------------------------------------------------------------------- */

static char *trials_file(const struct gpu_device *device)
{
    char *file = gpu_cache_path(device, "paths", "json");
    assert_non_null(file);
    return file;
}

static void replace(char **text, const char *part, const char *with)
{
    char *at = strstr(*text, part);
    assert_non_null(at);
    char *changed = base_format("%.*s%s%s", (int)(at - *text), *text, with, at + strlen(part));
    free(*text);
    *text = changed;
}

/* Writes a fault of the fp16 kernels into the cache; the log shows whether the cache is read. */
static void write_fault(const char *file, const char *part, const char *with)
{
    char *text = NULL;
    size_t size = 0;
    ok(base_file_read(file, 1 << 20, &text, &size));
    const char *at = strstr(text, "\"milliseconds\"");
    assert_non_null(at);
    size_t before = (size_t)(at - text), length = strcspn(at, "\n");
    char *marked =
        base_format("%.*s\"fault\": \"a mark\"%s", (int)before, text, text + before + length);
    if (part)
        replace(&marked, part, with);
    ok(base_file_replace(file, marked, strlen(marked)));
    free(text);
    free(marked);
}

static void assert_cached(struct gpu_device *device, bool cached)
{
    struct outcome outcome = choose(device, small(VKN_PRECISION_FP16, device));
    assert_int_equal(strstr(outcome.log, "a mark") != NULL, cached);
    assert_chosen(&outcome, cached ? VKN_PRECISION_FP32 : VKN_PRECISION_FP16, "");
}

static void test_cache(void **state)
{
    struct gpu_device *device = *state;
    if (!gpu_device_capabilities(device)->float16)
        skip_because("the device has no 16-bit arithmetic");
    char *file = trials_file(device);
    unlink(file);
    assert_cached(device, false);
    write_fault(file, NULL, NULL);
    assert_cached(device, true);

    /* The cache is not used for another model, under VKNERF_MEASURE, or under the test's hook. */
    struct vkn_config wide = small(VKN_PRECISION_FP16, device);
    wide.mlp.geometry = 32;
    struct outcome outcome = choose(device, wide);
    assert_chosen(&outcome, VKN_PRECISION_FP16, "asked for");
    setenv("VKNERF_SELF_TEST_BREAK", "nothing", 1);
    assert_cached(device, false);
    unsetenv("VKNERF_SELF_TEST_BREAK");
    assert_cached(device, true);
    setenv("VKNERF_MEASURE", "1", 1);
    assert_cached(device, false);
    unsetenv("VKNERF_MEASURE");
    assert_cached(device, false);

    /* A cache of another driver is not used and is replaced. */
    char *driver = base_format("\"%s\"", gpu_device_capabilities(device)->driver);
    write_fault(file, driver, "\"another driver\"");
    assert_cached(device, false);
    char *text = NULL;
    size_t size = 0;
    ok(base_file_read(file, 1 << 20, &text, &size));
    assert_non_null(strstr(text, driver));
    free(text);
    free(driver);

    /* A cache of another version of the shaders is not used. */
    write_fault(file, "field_forward_fp16 ", "field_forward_fp16 0");
    assert_cached(device, false);

    static const char *const damaged[] = {
        "", "{\"device\": \"", "[]", "{\"paths\": 3}", "null",
    };
    for (size_t i = 0; i < BASE_COUNT(damaged); i++) {
        ok(base_file_replace(file, damaged[i], strlen(damaged[i])));
        assert_cached(device, false);
        write_fault(file, NULL, NULL);
        assert_cached(device, true); /* the damaged file was replaced */
    }
    unlink(file);
    assert_cached(device, false);
    write_fault(file, "\"a mark\"", "7");
    assert_cached(device, false);
    unlink(file);
    free(file);
}

/* A run under VKNERF_SELF_TEST_BREAK writes no cache. */
static void test_broken_is_not_cached(void **state)
{
    struct gpu_device *device = *state;
    char *file = trials_file(device);
    unlink(file);
    check_broken(device, VKN_PRECISION_FP16, "field_forward_fp16", NULL, VKN_PRECISION_FP32);
    assert_false(base_file_exists(file));
    free(file);
}

/* Without a cache folder everything is measured again. */
static void test_no_cache(void **state)
{
    (void)state;
    setenv("VKNERF_DISABLE", "pipeline_cache", 1);
    struct gpu_device *device = open_device();
    unsetenv("VKNERF_DISABLE");
    assert_null(gpu_cache_path(device, "paths", "json"));
    assert_null(field_trial_cache_open(device));
    if (gpu_device_capabilities(device)->float16) {
        struct outcome outcome = choose(device, small(VKN_PRECISION_FP16, device));
        assert_chosen(&outcome, VKN_PRECISION_FP16, "asked for");
    }
    gpu_close(&device);
}

/* ---- the fastest precision ------------------------------------------------------------------- */

static void test_auto(void **state)
{
    struct gpu_device *device = *state;
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    char *file = trials_file(device);
    unlink(file);
    struct vkn_config config = small(VKN_PRECISION_AUTO, device);
    config.deterministic = true;
    struct outcome outcome = choose(device, config);
    assert_chosen(&outcome, VKN_PRECISION_FP32, "deterministic");
    if (capabilities->type == GPU_CPU) {
        outcome = choose(device, small(VKN_PRECISION_AUTO, device));
        assert_chosen(&outcome, VKN_PRECISION_FP32, "CPU devices multiply f32 fastest");
        assert_false(base_file_exists(file));
    }

    setenv("VKNERF_MEASURE", "1", 1);
    const double patience = field_compile_limit;
    if (capabilities->type == GPU_CPU)
        field_compile_limit = 1e-9; /* a limit for GPUs, which a CPU device ignores */
    outcome = choose(device, small(VKN_PRECISION_AUTO, device));
    field_compile_limit = patience;
    struct field_choice first = outcome.choice;
    assert_non_null(strstr(outcome.log, "measures which precision is fastest"));
    for (uint32_t i = 0; i < first.count; i++) {
        const struct field_candidate *candidate = &first.candidates[i];
        if (offers_all(device))
            assert_int_equal(candidate->verdict, FIELD_CORRECT);
        assert_int_equal(candidate->verdict == FIELD_CORRECT, candidate->milliseconds > 0);
        if (candidate->verdict == FIELD_CORRECT)
            assert_true(candidate->milliseconds >=
                        0.95 * first.candidates[first.chosen].milliseconds);
    }
    if (capabilities->float16)
        assert_chosen(&outcome, first.candidates[first.chosen].precision, "times as fast as ");
    free(outcome.log);
    if (offers_all(device)) {
        outcome = choose(device, small(VKN_PRECISION_COOPMAT, device));
        assert_non_null(strstr(outcome.log, "which matrices are fastest, once: coopmat 8x8x8"));
        for (uint32_t i = 0; i < 2; i++)
            assert_int_equal(outcome.choice.candidates[i].verdict, FIELD_CORRECT);
        assert_int_equal(outcome.choice.candidates[2].verdict, FIELD_NOT_TRIED);
        assert_chosen(&outcome, VKN_PRECISION_COOPMAT, "asked for; measured ");
        struct vkn_config asked = small(VKN_PRECISION_COOPMAT, device);
        asked.matrix.shape = VKN_SHAPE_8X8X8;
        outcome = choose(device, asked);
        assert_quiet(outcome.log);
        assert_false(outcome.config.matrix.conversions);
        assert_chosen(&outcome, VKN_PRECISION_COOPMAT, "asked for");
    }
    unsetenv("VKNERF_MEASURE");
    assert_true(base_file_exists(file) || !capabilities->float16);
    unlink(file);
    free(file);
}

/* If compiling takes too long, only the most promising candidate is compared with fp32, and the
 * cache records that; a precision that is asked for is tried in any case. */
static void test_compile_limit(void **state)
{
    struct gpu_device *device = *state;
    if (!offers_all(device))
        skip_because("the device does not offer everything");
    char *file = trials_file(device), *text = NULL;
    size_t size = 0;
    const double patience = field_compile_limit;
    unlink(file);
    setenv("VKNERF_MEASURE", "1", 1);
    field_compile_limit = 0;
    struct outcome outcome = choose(device, small(VKN_PRECISION_AUTO, device));
    field_compile_limit = patience;
    unsetenv("VKNERF_MEASURE");
    const char *order = strstr(outcome.log, "fastest, once: fp32, coopmat 8x8x8");
    assert_non_null(order);
    assert_memory_equal(strstr(order, ", fp16"), ", fp16\n", 7);
    for (uint32_t i = 0; i < outcome.choice.count; i++) {
        const struct field_candidate *candidate = &outcome.choice.candidates[i];
        bool tried = candidate->precision == VKN_PRECISION_FP32 ||
                     (candidate->precision == VKN_PRECISION_COOPMAT && !candidate->conversions);
        assert_int_equal(candidate->verdict, tried ? FIELD_CORRECT : FIELD_NOT_TRIED);
        assert_int_equal(strstr(candidate->why, "took too long to compile") != NULL, !tried);
    }
    assert_chosen(&outcome, outcome.config.precision, "times as fast as ");
    ok(base_file_read(file, 1 << 20, &text, &size));
    assert_non_null(strstr(text, "\"given_up\":\ttrue"));
    free(text);
    outcome = choose(device, small(VKN_PRECISION_FP16, device));
    assert_chosen(&outcome, VKN_PRECISION_FP16, "asked for");
    unlink(file);
    free(file);
}

/* Times are measured with the host's clock on devices without timestamps. */
static void test_host_clock(void **state)
{
    (void)state;
    setenv("VKNERF_DISABLE", "timestamps", 1);
    struct gpu_device *device = open_device();
    struct vkn_config config = small(VKN_PRECISION_FP32, device);
    struct field_workload *work;
    struct field_backend backend;
    struct field_trial trial;
    ok(create(config, gpu_device_capabilities(device), &backend));
    ok(field_workload_create(device, &config, &work));
    ok(field_workload_try(work, &backend, &trial));
    unsetenv("VKNERF_DISABLE");
    assert_true(trial.milliseconds > 0 && trial.milliseconds < 60e3);
    assert_string_equal(trial.fault, "");
    field_workload_destroy(&work);
    gpu_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backward_tiles),
        cmocka_unit_test(test_fake_devices),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_weights_by_output),
        cmocka_unit_test(test_prediction),
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_policy),
        cmocka_unit_test(test_requested),
        cmocka_unit_test(test_switches),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_layers_of_grid),
        cmocka_unit_test(test_broken_kernels),
        cmocka_unit_test(test_broken_matrices),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_broken_is_not_cached),
        cmocka_unit_test(test_no_cache),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_compile_limit),
        cmocka_unit_test(test_host_clock),
        cmocka_unit_test(test_no_messages),
    };
    if (!prepare_tests())
        return 1;
    int failed = cmocka_run_group_tests(tests, open_shared, close_shared);
    clean_up_tests();
    return failed;
}
