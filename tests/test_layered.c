/* Tests training of the layered model: an encoding before layers that are passes of their own.
 * test_step_gradient checks the gradients. */
#include "step_fixture.h"

/* Chunks of 832 samples: two chunks hold live samples. */
static struct vkn_config layered_config(enum vkn_position_encoding position)
{
    struct vkn_config config = tiny_config(true);
    config.model = VKN_MODEL_LAYERED;
    config.field.position = position;
    config.optimizer.learning_rate = 5e-3f;
    config.batch.samples = 1024;
    config.batch.chunk = 832;
    config.mlp = (struct vkn_config){.mlp = {.density_width = 32,
                                             .density_layers = 2,
                                             .geometry = 32,
                                             .color_width = 32,
                                             .color_layers = 1,
                                             .sh_degree = 3,
                                             .skip_layer = 2,
                                             .position_octaves = 4,
                                             .direction_octaves = 1,
                                             .activation_checkpointing = VKN_CHECKPOINTING_ON}}
                     .mlp;
    return config;
}

struct trained {
    float *params;
    uint64_t size; /* bytes */
    float first_loss, last_loss;
};

static float loss_of(const struct tiny *tiny, uint32_t step)
{
    const struct Stats *stats = tiny->trainer->step.buffers.at[BIND_STATS].mapped;
    return stats[step % STATS_RING].loss;
}

static struct trained train(const struct step_tests *tests, const struct vkn_config *config,
                            uint32_t steps)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    const struct gpu_buffer *params = &tiny.trainer->step.buffers.at[BIND_PARAMS];
    tiny_run(&tiny, steps);
    struct trained trained = {.params = tiny_read(&tiny, params),
                              .size = params->size,
                              .first_loss = loss_of(&tiny, 1),
                              .last_loss = loss_of(&tiny, steps)};
    assert_true(isfinite(trained.last_loss));
    tiny_destroy(&tiny);
    return trained;
}

/* All configurations train to the same bits. */
static void assert_same(const struct step_tests *tests, const struct vkn_config *configs,
                        size_t count)
{
    struct trained first = train(tests, configs, 12);
    assert_true(first.last_loss < 0.9f * first.first_loss);
    for (size_t i = 1; i < count; i++) {
        struct trained other = train(tests, &configs[i], 12);
        assert_int_equal(first.size, other.size);
        assert_memory_equal(first.params, other.params, first.size);
        free(other.params);
    }
    free(first.params);
}

/* The layered model with vanilla's encodings is the vanilla model. */
static void test_vanilla(void **state)
{
    struct vkn_config layered = layered_config(VKN_POSITION_FREQUENCIES), vanilla = layered;
    vanilla.model = VKN_MODEL_VANILLA;
    vanilla.field.position = VKN_POSITION_DEFAULT;
    assert_same(*state, (const struct vkn_config[]){layered, vanilla}, 2);
}

/* Activation checkpointing, stored activations, and densities first give the same bits, behind a
 * hash grid. */
static void test_schedules(void **state)
{
    const struct vkn_config recomputed = layered_config(VKN_POSITION_HASH);
    struct vkn_config stored = recomputed, visibility = recomputed;
    stored.mlp.activation_checkpointing = VKN_CHECKPOINTING_OFF;
    visibility.march.visibility = VKN_SWITCH_ON;
    assert_same(*state, (const struct vkn_config[]){recomputed, stored, visibility}, 3);
}

/* The position is used without an encoding, the direction not at all. */
static void test_identity(void **state)
{
    struct vkn_config config = layered_config(VKN_POSITION_IDENTITY), twice = config;
    config.field.direction = twice.field.direction = VKN_DIRECTION_NONE;
    twice.batch.chunk = 16384;
    struct trained trained = train(*state, &config, 12), whole = train(*state, &twice, 12);
    /* Weights of the inputs that pad the position are 0 and stay 0. */
    for (uint32_t i = 3 * 32; i < 32 * 32; i++)
        assert_true(trained.params[i] == 0 && whole.params[i] == 0);
    assert_true(trained.last_loss < trained.first_loss);
    free(trained.params);
    free(whole.params);
}

static void test_example(void **state)
{
    struct vkn_config config = {0};
    ok(vkn_config_read_json(&config, "examples/wide_hash.json"));
    assert_int_equal(config.model, VKN_MODEL_LAYERED);
    assert_int_equal(config.mlp.density_width, 128);
    assert_int_equal(config.mlp.density_layers, 3);
    assert_int_equal(config.mlp.skip_layer, 3);
    const struct vkn_config tiny = tiny_config(true);
    config.deterministic = true;
    config.steps = tiny.steps;
    config.march = tiny.march;
    config.batch = tiny.batch;
    config.grid.log2_entries = 10;
    struct trained trained = train(*state, &config, 8);
    assert_true(trained.last_loss < 0.9f * trained.first_loss);
    free(trained.params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vanilla),     cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_identity),    cmocka_unit_test(test_example),
        cmocka_unit_test(test_no_messages),
    };
    setenv("VKNERF_VALIDATION", "1", 1);
    tiny_groups = TINY_GROUPS;
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
