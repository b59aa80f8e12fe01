/* Tests steps of the vanilla model, whose layers are passes that run chunk by chunk. */
#include "step_fixture.h"

#include "gpu/internal.h"
#include "step/internal.h"

/* Chunks of 832 samples: a step has a capacity of five, and two are live. */
static struct vkn_config vanilla_config(enum vkn_checkpointing checkpoint)
{
    struct vkn_config config = tiny_config(true);
    config.model = VKN_MODEL_VANILLA;
    config.optimizer.learning_rate = 5e-3f;
    config.batch.samples = 1024;
    config.batch.chunk = 832;
    config.mlp.density_width = 32;
    config.mlp.density_layers = 2;
    config.mlp.geometry = 32;
    config.mlp.color_width = 32;
    config.mlp.color_layers = 1;
    config.mlp.skip_layer = 2;
    config.mlp.position_octaves = 4;
    config.mlp.direction_octaves = 1;
    config.mlp.activation_checkpointing = checkpoint;
    return config;
}

struct trained {
    float *params;
    uint64_t size, activations; /* bytes; of BIND_FEATURES */
    size_t passes;
};

static struct trained train(const struct step_tests *tests, const struct vkn_config *config,
                            bool measures)
{
    struct gpu_capabilities *capabilities = &tests->context->device->support.capabilities;
    enum gpu_device_type type = capabilities->type;
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    const struct step *step = &tiny.trainer->step;
    assert_int_equal(step->setup.constants.chunk_rows,
                     config->batch.chunk == 832 ? 832 : step->setup.constants.sample_capacity);
    if (measures)
        capabilities->type = GPU_INTEGRATED;
    tiny_run(&tiny, 17); /* includes an update of the occupancy grid */
    assert_int_equal(step->measured, measures);
    capabilities->type = type;
    const struct gpu_buffer *params = &step->buffers.at[BIND_PARAMS];
    struct trained trained = {.params = tiny_read(&tiny, params),
                              .size = params->size,
                              .activations = step->buffers.at[BIND_FEATURES].size,
                              .passes = step->pass_count};
    tiny_destroy(&tiny);
    return trained;
}

/* Training changed the parameters, so that equal bits mean equal training. */
static void assert_learnt(const struct trained *trained, const struct vkn_config *config)
{
    struct field_model model;
    float *initial = base_alloc(1, trained->size);
    uint64_t same = 0, count = trained->size / 4;
    ok(field_model_create(config, &model));
    field_initialize(config, &model, initial);
    for (uint64_t i = 0; i < count; i++)
        same += trained->params[i] == initial[i];
    assert_true(same < count / 2);
    free(initial);
}

/* Kept and recomputed activations give the same numbers, with more memory or more work. */
static void test_checkpointing(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config on = vanilla_config(VKN_CHECKPOINTING_ON),
                            off = vanilla_config(VKN_CHECKPOINTING_OFF);
    struct trained recomputed = train(tests, &on, false), kept = train(tests, &off, false);
    assert_learnt(&recomputed, &on);
    assert_memory_equal(recomputed.params, kept.params, recomputed.size);
    /* Rows of a chunk have two layouts; kept activations need one more for all 4096 samples. */
    assert_int_equal(recomputed.activations % (2 * 832 * 4), 0);
    assert_int_equal(kept.activations / (2 * 832 + 4096), recomputed.activations / (2 * 832));
    assert_int_equal(recomputed.passes, kept.passes + 1); /* encoding and layers, or gathering */
    free(recomputed.params);
    free(kept.params);
}

/* Densities before colours give the same numbers with several chunks of live samples, and with one,
 * whose activations are kept for the backward pass. */
static void test_visibility(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = vanilla_config(VKN_CHECKPOINTING_ON);
    for (int n = 0; n < 2; n++) {
        if (n == 1)
            config.batch.chunk = 16384;
        config.march.visibility = VKN_SWITCH_DEFAULT;
        struct trained whole = train(tests, &config, false);
        config.march.visibility = VKN_SWITCH_ON;
        struct trained seen = train(tests, &config, false);
        assert_learnt(&seen, &config);
        assert_memory_equal(whole.params, seen.params, whole.size);
        assert_true(seen.passes > whole.passes);
        free(whole.params);
        free(seen.params);
    }
}

/* Measuring a GPU's first step pass by pass, in all chunks, changes nothing. */
static void test_measured(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config config = vanilla_config(VKN_CHECKPOINTING_ON);
    struct trained whole = train(tests, &config, false), measured = train(tests, &config, true);
    assert_memory_equal(whole.params, measured.params, whole.size);
    free(whole.params);
    free(measured.params);
}

/* A profile has a timestamp before and after each pass, or after all chunks of passes with one
 * label, so that nothing else counts as their time; and one after each of an interval's three
 * slots, of which the last begins no interval. */
static void test_profiled(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config config = vanilla_config(VKN_CHECKPOINTING_ON);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const char *labels[2 * STEP_MAX_TIMINGS];
    double milliseconds[BASE_COUNT(labels)];
    uint32_t timed = 0, cell_updates = 0;
    ok(vkn_trainer_start_profile(tiny.trainer));
    tiny_run(&tiny, UPDATE_INTERVAL); /* on a GPU a single interval */
    uint32_t count = gpu_recording_times(tiny.trainer->step.intervals[0], labels, milliseconds,
                                         BASE_COUNT(labels));
    for (uint32_t i = 0; i < count; i++) {
        if (!labels[i])
            continue;
        assert_true(i + 1 < count && !labels[i + 1]);
        timed++;
        cell_updates += strcmp(labels[i], "update_cells") == 0;
    }
    bool timestamps = gpu_device_capabilities(tiny.trainer->device)->timestamp_period > 0;
    assert_int_equal(cell_updates, timestamps);
    assert_int_equal(count, timestamps ? 2 * timed + 2 : 0);
    tiny_destroy(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpointing), cmocka_unit_test(test_visibility),
        cmocka_unit_test(test_measured),      cmocka_unit_test(test_profiled),
        cmocka_unit_test(test_no_messages),
    };
    setenv("VKNERF_VALIDATION", "1", 1);
    tiny_groups = TINY_GROUPS;
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
