/* Tests trainings with every optimiser: their memory, their checkpoints, resuming, and starting
 * from another optimiser's checkpoint. */
#include "step_fixture.h"

static struct vkn_config config_of(enum vkn_optimizer kind)
{
    struct vkn_config config = tiny_config(true);
    config.optimizer.kind = kind;
    return config;
}

/* Memory and checkpoint have as many moments for each field as the optimiser's kind needs. With
 * optimizer.moments=bf16 both take the memory of one; the checkpoint has both as f32. */
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
            bool packed = i > 0 && optim_packs_moments(&step->setup.config);
            uint64_t size = used ? buffers->at[BIND_PARAMS].size : 0, found = 0;
            assert_int_equal(buffers->at[BIND_MOMENT1 + i].size,
                             used && !packed ? size : 16 /* the smallest size of a buffer */);
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
    char text[STEP_NONFINITE_TEXT];
    assert_false(step_nonfinite_weights(&tiny.trainer->step, text));
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

/* Every word that a device stores is the same after unpacking to f32 and packing, except that a NaN
 * may become another. f32 moments are rounded to nearest. */
static void test_packing(void **state)
{
    (void)state;
    const float rounded[] = {1 + 0x0.ffp-8f, 1 + 0x1.01p-8f, -3}, kept[] = {3, 3, 3};
    uint32_t words[3] = {0};
    for (uint32_t half = 0; half < 1u << 16; half++) {
        uint32_t word = half << 16 | (half ^ 0x5a5a), again = 0;
        float moments[2];
        for (uint32_t i = 0; i < 2; i++) {
            optim_unpack_moments(&word, 1, i, &moments[i]);
            optim_pack_moments(&moments[i], 1, i, &again);
        }
        assert_true(again == word || isnan(moments[0]) || isnan(moments[1]));
        assert_true(!(moments[1] < 0));
    }
    optim_pack_moments(kept, 3, 1, words);
    optim_pack_moments(rounded, 3, 0, words);
    assert_int_equal(words[0] >> 16, 0x3f80);
    assert_int_equal(words[1] >> 16, 0x3f81);
    assert_int_equal(words[2] >> 16, 0xc040);
    for (uint32_t i = 0; i < 3; i++) {
        float second;
        optim_unpack_moments(&words[i], 1, 1, &second);
        assert_true(second == 3);
    }
}

/* Puts the second moment of parameter 7 to infinity in packed words. */
static void spoil_moment(const struct tiny *tiny)
{
    const struct gpu_buffer *buffer = &tiny->trainer->step.buffers.at[BIND_MOMENT1];
    uint32_t *words = tiny_read(tiny, buffer);
    words[7] |= 0x7f800000 >> 15;
    tiny_put(tiny, buffer, words);
    free(words);
}

/* Packed moments: the same bits after a resume; a run may change the type; values that are not
 * finite are found. */
static void test_packed(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = config_of(VKN_OPTIMIZER_ADAM);
    char *f32 = tiny_train(tests, &config, NULL, 7, "f32"), text[STEP_NONFINITE_TEXT];
    config.optimizer.moments = VKN_MOMENTS_BF16;
    check_resume(tests, &config);
    struct vkn_config proposed = config;
    tiny_propose(&proposed);
    check_resume(tests, &proposed);
    char *packed = tiny_train(tests, &config, f32, 14, "packed");
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    ok(vkn_trainer_resume(tiny.trainer, packed));
    spoil_moment(&tiny);
    assert_true(step_nonfinite_weights(&tiny.trainer->step, text));
    assert_non_null(strstr(text, "Adam's second moments of layer"));
    tiny_destroy(&tiny);
    config.optimizer.moments = VKN_MOMENTS_F32;
    free(tiny_train(tests, &config, packed, 16, "unpacked"));
    free(f32);
    free(packed);
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

/* Returns whether the hash grid parameter belongs to an entry without a step. */
static bool is_unmet(const struct tiny *tiny, const uint32_t *counts, uint32_t i)
{
    const struct setup *setup = &tiny->trainer->step.setup;
    uint32_t entry = (i - setup->model.mlp_params) / setup->model.features;
    return counts[setup->constants.groups[1].first_entry + entry] == 0;
}

/* Returns the sum of squares of the features of entries whose count is zero. */
static double sum_squares(const struct tiny *tiny, const uint32_t *counts)
{
    const struct step *step = &tiny->trainer->step;
    float *params = tiny_read(tiny, &step->buffers.at[BIND_PARAMS]);
    double sum = 0;
    for (uint32_t i = step->setup.model.mlp_params; i < step->setup.model.param_count; i++)
        if (is_unmet(tiny, counts, i))
            sum += (double)params[i] * (double)params[i];
    free(params);
    return sum;
}

/* Two ranks do not double the decay: entries that no ray meets in either training have the moments
 * of a training on one rank. */
static void check_ranks(const struct tiny *one, const struct tiny *two, const uint32_t *counts)
{
    float *alone = tiny_read(one, &one->trainer->step.buffers.at[BIND_MOMENT1]),
          *ranks = tiny_read(two, &two->trainer->step.buffers.at[BIND_MOMENT1]);
    const struct field_model *model = &one->trainer->step.setup.model;
    uint32_t unmet = 0, same = 0;
    for (uint32_t i = model->mlp_params; i < model->param_count; i++)
        if (is_unmet(one, counts, i)) {
            unmet++;
            same += alone[i] == ranks[i];
        }
    if (unmet < 1000 || same < unmet / 2)
        fail_msg("%u of %u moments are the same on two ranks", same, unmet);
    free(alone);
    free(ranks);
}

static struct tiny run_tiny(const struct step_tests *tests, const struct vkn_config *config)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    tiny_run(&tiny, 40);
    return tiny;
}

/* Entries that no ray meets keep their initial features; with grid.decay these features go to about
 * zero. A proposal's grid decays too. */
static void check_decay(const struct step_tests *tests, struct vkn_config config)
{
    config.grid.log2_entries = 16; /* more entries than the rays of these views meet */
    config.grid.finest = 40;
    config.grid.initial = 0.05f;
    struct tiny kept = run_tiny(tests, &config);
    uint32_t *counts = tiny_read(&kept, &kept.trainer->step.buffers.at[BIND_STEP_COUNTS]);
    double initial = sum_squares(&kept, counts);
    tiny_destroy(&kept);
    config.grid.decay = 0.1f;
    struct tiny decayed = run_tiny(tests, &config);
    double left = sum_squares(&decayed, counts);
    if (initial < 0.1 || left > 0.25 * initial)
        fail_msg("squares of entries without rays: %g, with decay %g", initial, left);
    config.parallel.ranks_per_device = 2;
    struct tiny ranks = run_tiny(tests, &config);
    check_ranks(&decayed, &ranks, counts);
    tiny_destroy(&decayed);
    tiny_destroy(&ranks);
    free(counts);
}

static void test_grid_decay(void **state)
{
    const struct step_tests *tests = *state;
    for (enum vkn_optimizer kind = next_optimizer(0); kind; kind = next_optimizer(kind))
        check_decay(tests, config_of(kind));
    struct vkn_config config = config_of(VKN_OPTIMIZER_ADAM);
    config.grid.decay = 0.1f;
    tiny_propose(&config);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct setup *proposal = &tiny.trainer->step.coarse_setup;
    assert_int_equal(proposal->specialization.values[SPEC_GRID_DECAY], config.proposal.levels);
    assert_true(proposal->constants.levels[0].decay > 0);
    tiny_destroy(&tiny);
    check_resume(tests, &config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume), cmocka_unit_test(test_packing),
        cmocka_unit_test(test_packed), cmocka_unit_test(test_other_kind),
        cmocka_unit_test(test_skip),   cmocka_unit_test(test_grid_decay),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
