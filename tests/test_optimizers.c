/* Tests trainings with every optimiser: their memory, their checkpoints, resuming, and starting
 * from another optimiser's checkpoint. */
#include "step_fixture.h"

static struct vkn_config config_of(enum vkn_optimizer kind)
{
    struct vkn_config config = tiny_config(true);
    config.optimizer.kind = kind;
    return config;
}

/* Memory and checkpoint have as many moments for each field as the optimiser's kind needs. */
static void check_moments(const struct tiny *tiny, const char *path)
{
    static const char *const tensors[][2] = {{"moment1", "coarse.moment1"},
                                             {"moment2", "coarse.moment2"}};
    const struct step *step = &tiny->trainer->step;
    struct safetensors_file *file = NULL;
    ok(checkpoint_open(path, &file));
    for (uint32_t field = 0; field < step_field_count(step); field++) {
        const struct buffers *buffers = step_field_buffers(step, field);
        for (uint32_t i = 0; i < MAX_MOMENTS; i++) {
            bool used = i < optim_kind(&step->setup.config)->moments;
            uint64_t size = used ? buffers->at[BIND_PARAMS].size : 0, found = 0;
            assert_int_equal(buffers->at[BIND_MOMENT1 + i].size,
                             used ? size : 16 /* the smallest size of a buffer */);
            for (size_t n = 0; n < safetensors_count(file); n++)
                if (strcmp(safetensors_at(file, n)->name, tensors[i][field]) == 0)
                    found = safetensors_at(file, n)->size;
            assert_int_equal(found, size);
        }
    }
    safetensors_close(&file);
}

/* Stopping within an update interval and resuming gives the bits of an uninterrupted training. */
static void check_resume(const struct step_tests *tests, const struct vkn_config *config)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    tiny_run(&tiny, 7);
    char *part = tiny_save(tests, &tiny, "part");
    tiny_run(&tiny, 24);
    char *whole = tiny_save(tests, &tiny, "whole");
    char *resumed = tiny_train(tests, config, part, 24, "resumed");
    assert_true(same_checkpoints(whole, resumed));
    check_moments(&tiny, whole);
    tiny_destroy(&tiny);
    free(part);
    free(whole);
    free(resumed);
}

static void test_resume(void **state)
{
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind)) {
        struct vkn_config config = config_of(kind);
        check_resume(*state, &config);
        tiny_propose(&config);
        check_resume(*state, &config);
    }
}

/* Returns whether a buffer holds only zeros. */
static bool is_empty(const struct tiny *tiny, const struct gpu_buffer *buffer)
{
    float *values = tiny_read(tiny, buffer);
    bool empty = true;
    for (uint64_t i = 0; i < buffer->size / 4; i++)
        empty = empty && values[i] == 0;
    free(values);
    return empty;
}

/* A run of another optimiser cannot be resumed; its weights can be a start, with zero moments. */
static void check_pair(const struct step_tests *tests, const char *path, enum vkn_optimizer kind,
                       enum vkn_optimizer other)
{
    const struct vkn_config config = config_of(other);
    char message[128];
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct gpu_buffer *b = tiny.trainer->step.buffers.at;
    snprintf(message, sizeof message, "optimizer.kind: trained with %s, not %s: resume with",
             config_optimizer_names[kind], config_optimizer_names[other]);
    assert_int_equal(vkn_trainer_resume(tiny.trainer, path), VKN_BAD_INPUT);
    assert_error(path);
    assert_error(message);
    ok(vkn_trainer_init(tiny.trainer, path));
    assert_false(is_empty(&tiny, &b[BIND_PARAMS]));
    for (uint32_t i = 0; i < optim_kind(&config)->moments; i++)
        assert_true(is_empty(&tiny, &b[BIND_MOMENT1 + i]));
    tiny_run(&tiny, 4);
    assert_false(is_empty(&tiny, &b[BIND_MOMENT1]));
    tiny_destroy(&tiny);
}

static void test_other_kind(void **state)
{
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind)) {
        const struct vkn_config config = config_of(kind);
        char *path = tiny_train(*state, &config, NULL, 4, "four");
        for (enum vkn_optimizer other = next_optimizer(0); other; other = next_optimizer(other))
            if (other != kind)
                check_pair(*state, path, kind, other);
        free(path);
    }
}

/* Gradients that are not finite change neither weights nor moments; the step is skipped. */
static void test_skip(void **state)
{
    struct step_tests *tests = *state;
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind)) {
        struct vkn_config config = config_of(kind);
        config.loss_scale.kind = VKN_LOSS_SCALE_DYNAMIC;
        config.precision = VKN_PRECISION_FP16;
        config.loss_scale.initial = (float)VKN_MOST_LOSS_SCALE;
        struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
        const struct gpu_buffer *b = tiny.trainer->step.buffers.at;
        float *before = tiny_read(&tiny, &b[BIND_PARAMS]);
        tiny_run(&tiny, 1);
        float *after = tiny_read(&tiny, &b[BIND_PARAMS]);
        assert_memory_equal(before, after, b[BIND_PARAMS].size);
        assert_true(is_empty(&tiny, &b[BIND_MOMENT1]) && is_empty(&tiny, &b[BIND_STEP_COUNTS]));
        free(before);
        free(after);
        tiny_destroy(&tiny);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_other_kind),
        cmocka_unit_test(test_skip),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
