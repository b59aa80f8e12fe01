/* Steps of the layered model: an encoding in front of layers that are passes. test_step_gradient
 * checks what they compute. */
#include "step_fixture.h"

/* Chunks of 832 samples: two are live. */
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
    struct trained trained = {.params = tiny_take(&tiny, params),
                              .size = params->size,
                              .first_loss = loss_of(&tiny, 1),
                              .last_loss = loss_of(&tiny, steps)};
    assert_true(isfinite(trained.last_loss));
    tiny_destroy(&tiny);
    return trained;
}

/* All `count` come to the same. */
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

/* Vanilla is what it is with its encodings. */
static void test_vanilla(void **state)
{
    struct vkn_config layered = layered_config(VKN_POSITION_FREQUENCIES), vanilla = layered;
    vanilla.model = VKN_MODEL_VANILLA;
    vanilla.field.position = VKN_POSITION_DEFAULT;
    assert_same(*state, (const struct vkn_config[]){layered, vanilla}, 2);
}

/* Activations that are computed again or kept, all of a step's densities before its colours: the
 * same numbers, in front of which lie the grid's features. */
static void test_ways(void **state)
{
    const struct vkn_config again = layered_config(VKN_POSITION_HASH);
    struct vkn_config kept = again, seen = again;
    kept.mlp.activation_checkpointing = VKN_CHECKPOINTING_OFF;
    seen.march.visibility = VKN_SWITCH_ON;
    assert_same(*state, (const struct vkn_config[]){again, kept, seen}, 3);
}

/* Nothing else of the position, and nothing of the direction. */
static void test_identity(void **state)
{
    struct vkn_config config = layered_config(VKN_POSITION_IDENTITY), twice = config;
    config.field.direction = twice.field.direction = VKN_DIRECTION_NONE;
    twice.batch.chunk = 16384;
    struct trained trained = train(*state, &config, 12), whole = train(*state, &twice, 12);
    /* Weights of inputs that pad the position's three are nothing, and stay it. */
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
        cmocka_unit_test(test_vanilla),     cmocka_unit_test(test_ways),
        cmocka_unit_test(test_identity),    cmocka_unit_test(test_example),
        cmocka_unit_test(test_no_messages),
    };
    setenv("VKNERF_VALIDATION", "1", 1);
    tiny_groups = TINY_GROUPS;
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
