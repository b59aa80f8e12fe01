/* Tests pipelines of src/gpu: shared by requests, kept for a while, created in parallel. */
#include "gpu_fixture.h"

#include "gpu/internal.h"
#include "gpu/shaders.h"
#include "skips.h"

static struct gpu_pipeline *create(struct gpu_device *device, const char *name, uint32_t local_size,
                                   uint32_t factor, uint32_t unused)
{
    /* gpu_test reads the first two constants and not the third. */
    struct gpu_constants constants = {.values = {[2] = factor, [4] = unused}, .count = 5};
    struct gpu_pipeline_options options = {
        .name = name, .local_size = local_size, .constants = &constants};
    struct gpu_pipeline *pipeline;
    ok(gpu_pipeline_create(device, &options, &pipeline));
    return pipeline;
}

static uint32_t subgroup(const struct gpu_device *device)
{
    return gpu_device_capabilities(device)->subgroup_size;
}

static void test_errors(void **state)
{
    struct gpu_device *device = *state;
    uint32_t size = subgroup(device);
    struct gpu_pipeline *pipeline;
    struct gpu_pipeline_options options = {.name = "no_such_program", .local_size = size};
    assert_int_equal(gpu_pipeline_create(device, &options, &pipeline), VKN_ERROR);
    assert_message("no_such_program");
    options.name = "gpu_test";
    const uint32_t bad_sizes[] = {0, size + 1, size << 16};
    for (size_t i = 0; i < BASE_COUNT(bad_sizes); i++) {
        options.local_size = bad_sizes[i];
        assert_int_equal(gpu_pipeline_create(device, &options, &pipeline), VKN_ERROR);
        assert_message("gpu_test");
        assert_null(pipeline);
    }
}

/* Equal requests share a pipeline; other constants (if read) or another size do not. */
static void test_shared(void **state)
{
    struct gpu_device *device = *state;
    uint32_t size = subgroup(device), before = gpu_pipelines_kept(device);
    struct gpu_pipeline *first = create(device, "gpu_test", size, 5, 0);
    struct gpu_pipeline *pipelines[] = {
        first,
        create(device, "gpu_test", size, 5, 0),
        create(device, "gpu_test", size, 5, 9),
        create(device, "gpu_test", size, 6, 0),
        create(device, "gpu_test", 2 * size, 5, 0),
        create(device, "gpu_atomics", size, 5, 0),
    };
    assert_ptr_equal(pipelines[1], first);
    assert_ptr_equal(pipelines[2], first);
    for (size_t i = 3; i < BASE_COUNT(pipelines); i++)
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(pipelines[i], pipelines[k]);
    assert_int_equal(gpu_pipelines_kept(device), before + 4);
    assert_int_equal(gpu_pipeline_local_size(pipelines[4]), 2 * size);
    assert_string_equal(gpu_pipeline_name(pipelines[5]), "gpu_atomics");

    /* A released pipeline is kept and found again. */
    for (size_t i = 0; i < BASE_COUNT(pipelines); i++) {
        gpu_pipeline_destroy(&pipelines[i]);
        assert_null(pipelines[i]);
    }
    gpu_pipeline_destroy(&pipelines[0]);
    assert_int_equal(gpu_pipelines_kept(device), before + 4);
    struct gpu_pipeline *again = create(device, "gpu_test", size, 6, 1);
    assert_int_equal(gpu_pipelines_kept(device), before + 4);
    gpu_pipeline_destroy(&again);
}

/* Of the released pipelines the last GPU_IDLE_PIPELINES are kept; pipelines in use always are. */
static void test_limit(void **state)
{
    struct gpu_device *device = *state;
    uint32_t size = subgroup(device);
    struct gpu_pipeline *held = create(device, "gpu_test", size, 100, 0), *found;
    const struct gpu_executable executable = gpu_pipeline_executable(held);
    for (uint32_t i = 0; i < GPU_IDLE_PIPELINES + 10; i++) {
        struct gpu_pipeline *pipeline = create(device, "gpu_test", size, 1000 + i, 0);
        gpu_pipeline_destroy(&pipeline);
    }
    assert_int_equal(gpu_pipelines_kept(device), GPU_IDLE_PIPELINES + 1);
    found = create(device, "gpu_test", size, 100, 0);
    assert_ptr_equal(found, held);
    const struct gpu_executable same = gpu_pipeline_executable(found);
    assert_memory_equal(&same, &executable, sizeof same);
    gpu_pipeline_destroy(&found);

    /* The last of them is kept, the first is not. */
    found = create(device, "gpu_test", size, 1000 + GPU_IDLE_PIPELINES + 9, 0);
    assert_int_equal(gpu_pipelines_kept(device), GPU_IDLE_PIPELINES + 1);
    gpu_pipeline_destroy(&found);
    found = create(device, "gpu_test", size, 1000, 0);
    assert_int_equal(gpu_pipelines_kept(device), GPU_IDLE_PIPELINES + 2);
    gpu_pipeline_destroy(&found);
    gpu_pipeline_destroy(&held);
    assert_int_equal(gpu_pipelines_kept(device), GPU_IDLE_PIPELINES);
}

/* Two devices of one process have pipelines of their own. */
static void test_two_devices(void **state)
{
    struct gpu_device *device = *state, *other = open_device();
    struct gpu_pipeline *pipeline = create(device, "gpu_test", subgroup(device), 70, 0);
    struct gpu_pipeline *others = create(other, "gpu_test", subgroup(other), 70, 0);
    assert_ptr_not_equal(pipeline, others);
    gpu_pipeline_destroy(&others);
    gpu_close(&other);
    struct gpu_pipeline *found = create(device, "gpu_test", subgroup(device), 70, 0);
    assert_ptr_equal(found, pipeline);
    gpu_pipeline_destroy(&found);
    gpu_pipeline_destroy(&pipeline);
}

static vkn_status create_one(void *context, size_t index)
{
    struct gpu_device *device = context;
    struct gpu_pipeline *pipeline =
        create(device, "gpu_test", subgroup(device), 200 + index % 4, 0);
    gpu_pipeline_destroy(&pipeline);
    return VKN_OK;
}

/* Several threads create and release the same pipelines at once. */
static void test_threads(void **state)
{
    struct gpu_device *device = *state;
    uint32_t before = gpu_pipelines_kept(device);
    ok(base_parallel(64, create_one, device, NULL));
    uint32_t after = gpu_pipelines_kept(device);
    assert_true(after <= before + 4 && after <= GPU_IDLE_PIPELINES);
    for (size_t i = 0; i < 4; i++)
        ok(create_one(device, i));
    assert_int_equal(gpu_pipelines_kept(device), after);
}

static void test_several(void **state)
{
    struct gpu_device *device = *state;
    uint32_t size = subgroup(device);
    struct gpu_constants constants[3] = {{{[2] = 301}, 3}, {{[2] = 302}, 3}, {{[2] = 301}, 3}};
    struct gpu_pipeline *pipelines[3];
    memset(pipelines, 0xff, sizeof pipelines);
    struct gpu_pipeline_request requests[3];
    for (size_t i = 0; i < 3; i++)
        requests[i] = (struct gpu_pipeline_request){
            {.name = "gpu_test", .local_size = size, .constants = &constants[i]}, &pipelines[i]};
    ok(gpu_pipelines_create(device, requests, 3));
    assert_non_null(pipelines[0]);
    assert_non_null(pipelines[1]);
    assert_ptr_equal(pipelines[2], pipelines[0]);
    assert_ptr_not_equal(pipelines[1], pipelines[0]);
    for (size_t i = 0; i < 3; i++)
        gpu_pipeline_destroy(&pipelines[i]);
    ok(gpu_pipelines_create(device, requests, 0));

    /* Failed pipelines are NULL; the message is about one of them. */
    memset(pipelines, 0xff, sizeof pipelines);
    requests[1].options.name = "no_such_program";
    assert_int_equal(gpu_pipelines_create(device, requests, 3), VKN_ERROR);
    assert_message("no_such_program");
    assert_null(pipelines[1]);
    for (size_t i = 0; i < 3; i++)
        gpu_pipeline_destroy(&pipelines[i]);
}

static PFN_vkCreateComputePipelines driver_create;
static PFN_vkCreateShadersEXT driver_create_shaders;

/* A slow driver. */
static VKAPI_ATTR VkResult VKAPI_CALL create_slowly(VkDevice device, VkPipelineCache cache,
                                                    uint32_t count,
                                                    const VkComputePipelineCreateInfo *infos,
                                                    const VkAllocationCallbacks *allocator,
                                                    VkPipeline *pipelines)
{
    usleep(1300 * 1000);
    return driver_create(device, cache, count, infos, allocator, pipelines);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_shaders_slowly(VkDevice device, uint32_t count,
                                                            const VkShaderCreateInfoEXT *infos,
                                                            const VkAllocationCallbacks *allocator,
                                                            VkShaderEXT *shaders)
{
    usleep(1300 * 1000);
    return driver_create_shaders(device, count, infos, allocator, shaders);
}

/* Counts reports that name the pipeline which is being compiled. */
static void count_named(void *context, const char *what, size_t done, size_t total)
{
    if (strcmp(what, "compiling pipelines: gpu_test") == 0 && done == 0 && total == 1)
        (*(size_t *)context)++;
}

/* A wait of more than a second for the compiler is reported. */
static void test_report(void **state)
{
    struct gpu_device *device = *state;
    size_t named = 0;
    const struct base_progress progress = device->progress;
    struct gpu_constants constants = {{[2] = 401}, 3};
    struct gpu_pipeline *pipeline = NULL;
    struct gpu_pipeline_request request = {
        {.name = "gpu_test", .local_size = subgroup(device), .constants = &constants}, &pipeline};
    driver_create = device->vk.vkCreateComputePipelines;
    device->vk.vkCreateComputePipelines = create_slowly;
    driver_create_shaders = device->vk.vkCreateShadersEXT;
    device->vk.vkCreateShadersEXT = create_shaders_slowly;
    device->progress = (struct base_progress){count_named, &named};
    struct capture capture = capture_begin();
    vkn_status status = gpu_pipelines_create(device, &request, 1);
    char *text = capture_end(&capture);
    device->progress = progress;
    device->vk.vkCreateComputePipelines = driver_create;
    device->vk.vkCreateShadersEXT = driver_create_shaders;
    ok(status);
    assert_true(named > 0);
    if (!strstr(text, ": compiling gpu_test (0 of 1 pipelines are ready)\n"))
        fail_msg("no message about the compilation: %s", text);
    free(text);
    gpu_pipeline_destroy(&pipeline);

    capture = capture_begin();
    status = gpu_pipelines_create(device, &request, 1);
    text = capture_end(&capture);
    ok(status);
    assert_string_equal(text, "");
    free(text);
    gpu_pipeline_destroy(&pipeline);
}

/* ---- damaged code ---------------------------------------------------------------------------- */

/* Copies the first `size` bytes of an embedded shader, with one byte changed by XOR. */
static struct gpu_shader damage(const struct gpu_shader *source, size_t at, unsigned char change,
                                size_t size)
{
    struct gpu_shader damaged = *source;
    damaged.words = NULL;
    unsigned char *copy = malloc(size + 1); /* exactly as large, for AddressSanitizer */
    assert_non_null(copy);
    memcpy(copy, source->packed, size);
    if (at < size)
        copy[at] ^= change;
    damaged.name = "damaged";
    damaged.packed = copy;
    damaged.end = copy + size;
    return damaged;
}

/* Returns true if unpacking fails. Otherwise the result must equal the shader: some bits of a
 * compressed stream have no effect. */
static bool is_refused(const struct gpu_shader *source, size_t at, unsigned char change,
                       size_t size)
{
    struct gpu_shader damaged = damage(source, at, change, size);
    bool refused = gpu_shader_unpack(&damaged) != VKN_OK;
    if (refused) {
        assert_message("shader damaged: its embedded SPIR-V is damaged");
        assert_null(damaged.words);
    } else {
        ok(gpu_shader_unpack(source));
        assert_int_equal(damaged.count, source->count);
        assert_memory_equal(damaged.words, source->words, 4 * source->count);
    }
    free((void *)(uintptr_t)damaged.words);
    free((void *)(uintptr_t)damaged.packed);
    return refused;
}

static void test_damaged(void **state)
{
    struct gpu_device *device = *state;
    const struct gpu_shader *source = gpu_shaders;
    while (strcmp(source->name, "gpu_test") != 0)
        source++;
    size_t size = (size_t)(source->end - source->packed), refused = 0;
    for (size_t i = 0; i < size; i++) {
        refused += is_refused(source, i, 0x10, size);
        assert_true(is_refused(source, 0, 0, i)); /* truncated */
    }
    assert_in_range(refused, size * 99 / 100, size);
    for (unsigned bit = 0; bit < 8; bit++) /* another word count */
        assert_true(is_refused(source, 0, (unsigned char)(1u << bit), size));
    assert_true(is_refused(source, 3, 0x80, size));

    struct gpu_shader damaged = damage(source, size - 1, 1, size);
    struct gpu_pipeline_options options = {.name = "damaged", .local_size = subgroup(device)};
    struct gpu_pipeline *pipeline;
    gpu_add_shaders(&damaged, 1);
    assert_int_equal(gpu_pipeline_create(device, &options, &pipeline), VKN_ERROR);
    assert_message("shader damaged: its embedded SPIR-V is damaged");
    assert_null(pipeline);
    gpu_add_shaders(NULL, 0);
    free((void *)(uintptr_t)damaged.packed);
}

/* Embedded shaders are compressed, and have no debug names in release builds. */
static void test_size(void **state)
{
    (void)state;
    enum { OP_NAME = 5, MOST_BYTES = 4500000 };
    size_t bytes = 0;
    for (size_t i = 0; i < gpu_shader_count; i++) {
        const struct gpu_shader *source = &gpu_shaders[i];
        bytes += (size_t)(source->end - source->packed);
        ok(gpu_shader_unpack(source));
        const uint32_t *words = source->words;
        ok(gpu_shader_unpack(source)); /* unpacked once */
        assert_ptr_equal(source->words, words);
        assert_int_equal(source->count, gpu_shader_word_count(source));
        assert_int_equal(source->words[0], 0x07230203); /* SPIR-V's magic number */
#ifdef NDEBUG
        for (size_t at = 5; at < source->count; at += source->words[at] >> 16)
            assert_int_not_equal(source->words[at] & 0xffffu, OP_NAME);
#endif
    }
    assert_in_range(bytes, 1, MOST_BYTES);
}

/* ---- execution modes ------------------------------------------------------------------------- */

/* vkCreateShaderModule runs the validation layer on the module. */
static void validate_module(struct gpu_device *device, const uint32_t *words, size_t count)
{
    const VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = count * sizeof *words,
        .pCode = words,
    };
    VkShaderModule module;
    assert_int_equal(device->vk.vkCreateShaderModule(device->handle, &info, NULL, &module), 0);
    device->vk.vkDestroyShaderModule(device->handle, module, NULL);
}

static bool has_word(const uint32_t *words, size_t count, uint32_t word)
{
    while (count > 0 && words[count - 1] != word)
        count--;
    return count > 0;
}

/* Each shader gets an execution mode for the device's kind of reconvergence, is valid SPIR-V, and
 * stays unchanged on devices with neither. */
static void test_reconvergence(void **state)
{
    struct gpu_device *device = *state;
    const struct gpu_support maximal = {.maximal_reconvergence = true,
                                        .subgroup_uniform_control_flow = true};
    const struct gpu_support uniform = {.subgroup_uniform_control_flow = true};
    const struct gpu_support neither = {.memory_model = true};
    const uint32_t broken[] = {0x07230203, 0x10300, 0, 9, 0, 0x00020011, 1, 0x00ff000f, 4};
    for (size_t i = 0; i < gpu_shader_count; i++) {
        const struct gpu_shader *source = &gpu_shaders[i];
        ok(gpu_shader_unpack(source));
        for (int k = 0; k < 3; k++) {
            size_t count = source->count;
            uint32_t *rewritten = gpu_add_execution_modes(k == 0   ? &maximal
                                                          : k == 1 ? &uniform
                                                                   : &neither,
                                                          source->words, &count);
            assert_true((rewritten != NULL) == (k < 2));
            if (!rewritten)
                continue;
            assert_true(has_word(rewritten, count, k == 0 ? 6023 : 4421));
            assert_int_equal(count, source->count + (k == 0 ? 12 : 14));
            bool offered = k == 0 ? device->support.maximal_reconvergence
                                  : device->support.subgroup_uniform_control_flow;
            if (offered && strcmp(source->name, "march_rays") == 0)
                validate_module(device, rewritten, count);
            free(rewritten);
        }
    }
    size_t count = BASE_COUNT(broken);
    assert_null(gpu_add_execution_modes(&maximal, broken, &count));
}

/* Returns the number of instructions OP with the operand, at word `at`. */
static uint32_t count_instructions(const uint32_t *words, size_t count, uint32_t op, size_t at,
                                   uint32_t operand)
{
    uint32_t found = 0;
    for (size_t i = 5; i < count; i += words[i] >> 16)
        found += (words[i] & 0xffffu) == op && words[i] >> 16 > at && words[i + at] == operand;
    return found;
}

/* Float controls: capabilities and modes in modules that use f16 alone, for f32 too where a device
 * cannot set f16 alone, beside reconvergence and on CPU devices. */
static void test_float_controls(void **state)
{
    struct gpu_device *device = *state;
    static const struct gpu_support cases[] = {
        {.denorm_preserve = 16, .round_to_even = 16, .maximal_reconvergence = true},
        {.denorm_preserve = 48},
        {.round_to_even = 16, .maximal_reconvergence = true, .capabilities.type = GPU_CPU},
    };
    static const char *const names[] = {"field_forward_fp16", "march_rays",
                                        "scatter_gradients_f16_cas"}; /* unpacks f16 */
    for (size_t i = 0; i < BASE_COUNT(cases) * BASE_COUNT(names); i++) {
        const struct gpu_support *support = &cases[i / BASE_COUNT(names)];
        const struct gpu_shader *source = gpu_shaders;
        while (strcmp(source->name, names[i % BASE_COUNT(names)]) != 0)
            source++;
        ok(gpu_shader_unpack(source));
        size_t count = source->count;
        uint32_t *made = gpu_add_execution_modes(support, source->words, &count);
        bool f16 = strstr(source->name, "f16") || strstr(source->name, "fp16"),
             reconverges = i / BASE_COUNT(names) == 0;
        assert_true((made != NULL) == (f16 || reconverges));
        if (!made)
            continue;
        bool preserves = f16 && support->denorm_preserve, rounds = f16 && support->round_to_even;
        bool both = support->denorm_preserve == 48;
        assert_int_equal(count_instructions(made, count, 17, 1, 4464), preserves);
        assert_int_equal(count_instructions(made, count, 17, 1, 4467), rounds);
        assert_int_equal(count_instructions(made, count, 16, 2, 4459), preserves * (both ? 2 : 1));
        assert_int_equal(count_instructions(made, count, 16, 3, 32), both && f16);
        assert_int_equal(count_instructions(made, count, 16, 2, 4462), rounds);
        assert_int_equal(count_instructions(made, count, 16, 2, 6023), reconverges);
        if (device->support.round_to_even == 16 && !support->denorm_preserve)
            validate_module(device, made, count);
        free(made);
    }
}

/* The device accepts such a shader, if it has the extension. */
static void test_reconverged_device(void **state)
{
    struct gpu_device *device = *state;
    enum gpu_device_type *type = &device->support.capabilities.type, real = *type;
    if (!device->support.maximal_reconvergence && !device->support.subgroup_uniform_control_flow)
        skip_because("no VK_KHR_shader_maximal_reconvergence");
    bool objects = device->support.shader_objects;
    *type = GPU_OTHER; /* CPU devices skip the rewriting */
    device->support.shader_objects = false;
    struct gpu_pipeline *pipeline = create(device, "gpu_test", subgroup(device), 501, 0);
    *type = real;
    device->support.shader_objects = objects;
    gpu_pipeline_destroy(&pipeline);
}

int main(void)
{
    if (!prepare_tests())
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),         cmocka_unit_test(test_shared),
        cmocka_unit_test(test_limit),          cmocka_unit_test(test_two_devices),
        cmocka_unit_test(test_threads),        cmocka_unit_test(test_several),
        cmocka_unit_test(test_reconvergence),  cmocka_unit_test(test_reconverged_device),
        cmocka_unit_test(test_float_controls), cmocka_unit_test(test_report),
        cmocka_unit_test(test_no_messages),    cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_size),
    };
    int failed = cmocka_run_group_tests(tests, open_shared, close_shared);
    clean_up_tests();
    return failed;
}
