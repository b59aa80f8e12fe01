/* Deterministic training repeats bit for bit, also across stops and resumes; a step with a gradient
 * that is not finite changes no weight. */
#include "step_fixture.h"

#include "train/safetensors.h"

/* ---- checkpoints --------------------------------------------------------------------------- */

static char *save(const struct step_tests *tests, struct tiny *tiny, const char *name)
{
    char *path = base_path_join(tests->folder->path, name);
    ok(vkn_trainer_save(tiny->trainer, path));
    return path;
}

/* Byte for byte, whatever they hold. */
static bool same_checkpoints(const char *first, const char *second)
{
    char *a = NULL, *b = NULL;
    size_t a_size = 0, b_size = 0;
    ok(base_file_read(first, SIZE_MAX, &a, &a_size));
    ok(base_file_read(second, SIZE_MAX, &b, &b_size));
    bool same = a_size > 0 && a_size == b_size && memcmp(a, b, a_size) == 0;
    free(a);
    free(b);
    return same;
}

/* A new trainer, run to a step and saved; `name` is the checkpoint's. */
static char *train(const struct step_tests *tests, const struct vkn_config *config,
                   const char *from, uint32_t until_step, const char *name)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    if (from)
        ok(vkn_trainer_resume(tiny.trainer, from));
    tiny_run(&tiny, until_step);
    char *path = save(tests, &tiny, name);
    tiny_destroy(&tiny);
    return path;
}

/* ---- repeating ----------------------------------------------------------------------------- */

static void test_repeats(void **state)
{
    const struct vkn_config config = tiny_config(true);
    struct vkn_config other = config;
    other.seed++;
    char *first = train(*state, &config, NULL, 60, "first");
    char *second = train(*state, &config, NULL, 60, "second");
    char *seeded = train(*state, &other, NULL, 60, "seeded");
    char *shorter = train(*state, &config, NULL, 59, "shorter");
    assert_true(same_checkpoints(first, second));
    assert_false(same_checkpoints(first, seeded));
    assert_false(same_checkpoints(first, shorter));
    free(first);
    free(second);
    free(seeded);
    free(shorter);
}

/* Training does train: the loss falls, and rays, occupancy and schedules have moved on, so that
 * what resumes has something to restore. */
static void test_moves_on(void **state)
{
    const struct vkn_config config = tiny_config(true);
    struct step_tests *tests = *state;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    struct State before, after;
    struct gpu_buffer *buffer = &tiny.trainer->step.buffers.state;
    ok(gpu_download(tiny.trainer->device, buffer, 0, &before, sizeof before));
    tiny_run(&tiny, 60);
    ok(gpu_download(tiny.trainer->device, buffer, 0, &after, sizeof after));
    const struct Stats *stats = tiny.trainer->step.buffers.stats.mapped;
    assert_int_equal(after.updates, 60);
    assert_int_equal(after.average_step, 60);
    assert_int_not_equal(after.ray_count, before.ray_count);
    assert_true(after.threshold > 0);
    for (uint32_t step = 1; step <= 60; step++)
        assert_int_equal(stats[step].step, step);
    assert_true(stats[60].loss < 0.9f * stats[1].loss);
    tiny_destroy(&tiny);
}

/* Stopped in the middle of a period, at its end, right after its beginning; saved and loaded each
 * time. */
static void test_resume(void **state)
{
    static const uint32_t stops[] = {7, 16, 17, 32, 45, 60};
    const struct vkn_config config = tiny_config(true);
    char *whole = train(*state, &config, NULL, 60, "whole");
    char *part = NULL;
    for (size_t i = 0; i < BASE_COUNT(stops); i++) {
        char name[16];
        snprintf(name, sizeof name, "part-%u", stops[i]);
        char *next = train(*state, &config, part, stops[i], name);
        char *fresh = train(*state, &config, NULL, stops[i], "fresh");
        if (!same_checkpoints(next, fresh))
            fail_msg("resumed training differs at step %u", stops[i]);
        free(fresh);
        free(part);
        part = next;
    }
    assert_true(same_checkpoints(whole, part));
    free(whole);
    free(part);
}

/* The same stops in one trainer, without checkpoints. */
static void test_stops(void **state)
{
    const struct vkn_config config = tiny_config(true);
    struct step_tests *tests = *state;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const uint32_t stops[] = {3, 20, 48, 49, 60};
    for (size_t i = 0; i < BASE_COUNT(stops); i++)
        tiny_run(&tiny, stops[i]);
    assert_true(vkn_trainer_finished(tiny.trainer));
    char *whole = train(tests, &config, NULL, 60, "whole"),
         *stopped = save(tests, &tiny, "stopped");
    assert_true(same_checkpoints(whole, stopped));
    tiny_destroy(&tiny);
    free(whole);
    free(stopped);
}

/* ---- steps that are skipped ---------------------------------------------------------------- */

struct copies {
    void *params, *moment1, *moment2, *counts, *average;
    struct State state;
};

static struct copies copies_take(const struct tiny *tiny)
{
    const struct step_buffers *b = &tiny->trainer->step.buffers;
    struct copies copies = {.params = tiny_take(tiny, &b->params),
                            .moment1 = tiny_take(tiny, &b->moment1),
                            .moment2 = tiny_take(tiny, &b->moment2),
                            .counts = tiny_take(tiny, &b->counts),
                            .average = tiny_take(tiny, &b->average)};
    ok(gpu_download(tiny->trainer->device, &b->state, 0, &copies.state, sizeof copies.state));
    return copies;
}

static void copies_free(struct copies *copies)
{
    void *all[] = {copies->params, copies->moment1, copies->moment2, copies->counts,
                   copies->average};
    for (size_t i = 0; i < BASE_COUNT(all); i++)
        free(all[i]);
}

static bool same_weights(const struct tiny *tiny, const struct copies *a, const struct copies *b)
{
    const struct step_buffers *buffers = &tiny->trainer->step.buffers;
    return memcmp(a->params, b->params, buffers->params.size) == 0 &&
           memcmp(a->moment1, b->moment1, buffers->moment1.size) == 0 &&
           memcmp(a->moment2, b->moment2, buffers->moment2.size) == 0 &&
           memcmp(a->counts, b->counts, buffers->counts.size) == 0 &&
           memcmp(a->average, b->average, buffers->average.size) == 0;
}

/* Runs to `until_step` with something wrong: every step is skipped. */
static void assert_skips(struct tiny *tiny, uint32_t until_step, uint32_t steps,
                         double scale_factor)
{
    struct copies before = copies_take(tiny);
    tiny_run(tiny, until_step);
    struct copies after = copies_take(tiny);
    assert_true(same_weights(tiny, &before, &after));
    assert_int_equal(after.state.skipped_steps, before.state.skipped_steps + steps);
    assert_int_equal(after.state.updates, before.state.updates);
    assert_int_equal(after.state.good_steps, 0);
    assert_true(after.state.loss_scale == (float)(before.state.loss_scale * scale_factor));
    copies_free(&before);
    copies_free(&after);
}

static void assert_updates(struct tiny *tiny, uint32_t until_step)
{
    struct copies before = copies_take(tiny);
    tiny_run(tiny, until_step);
    struct copies after = copies_take(tiny);
    assert_false(same_weights(tiny, &before, &after));
    assert_int_equal(after.state.skipped_steps, before.state.skipped_steps);
    assert_int_equal(after.state.updates, before.state.updates + 1);
    for (uint32_t i = 0; i < tiny->trainer->step.model.param_count; i++)
        assert_true(isfinite(((float *)after.params)[i]));
    copies_free(&before);
    copies_free(&after);
}

static void set_param(struct tiny *tiny, uint64_t index, float value)
{
    ok(gpu_upload(tiny->trainer->device, &tiny->trainer->step.buffers.params, 4 * index, &value,
                  sizeof value));
}

static float get_param(struct tiny *tiny, uint64_t index)
{
    float value;
    ok(gpu_download(tiny->trainer->device, &tiny->trainer->step.buffers.params, 4 * index, &value,
                    sizeof value));
    return value;
}

/* A weight of the last layer that is NaN makes every colour and gradient NaN. */
static void check_nan(const struct step_tests *tests, bool deterministic, enum vkn_loss_scale kind)
{
    struct vkn_config config = tiny_config(deterministic);
    config.loss_scale.kind = kind;
    config.loss_scale.initial = 1024;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    struct field_layer layers[FIELD_MAX_LAYERS];
    uint32_t count =
        field_layers(vkn_trainer_config(tiny.trainer), &tiny.trainer->step.model, layers);
    size_t index = reference_weight(&layers[count - 1], 0, 0);
    assert_updates(&tiny, 1);
    float kept = get_param(&tiny, index);
    set_param(&tiny, index, NAN);
    assert_skips(&tiny, 2, 1, kind == VKN_LOSS_SCALE_DYNAMIC ? 0.5 : 1);
    assert_skips(&tiny, 4, 2, kind == VKN_LOSS_SCALE_DYNAMIC ? 0.25 : 1);
    set_param(&tiny, index, kept);
    assert_updates(&tiny, 5);
    tiny_destroy(&tiny);
}

static void test_nan(void **state)
{
    for (int deterministic = 0; deterministic < 2; deterministic++) {
        check_nan(*state, deterministic, VKN_LOSS_SCALE_STATIC);
        check_nan(*state, deterministic, VKN_LOSS_SCALE_DYNAMIC);
    }
}

/* A loss scale at which gradients overflow comes down step by step until they do not. */
static void check_overflow(const struct step_tests *tests, bool deterministic)
{
    struct vkn_config config = tiny_config(deterministic);
    config.loss.kind = VKN_LOSS_L2;
    config.loss_scale.kind = VKN_LOSS_SCALE_DYNAMIC;
    config.loss_scale.initial = 0x1p126f;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    struct field_layer layers[FIELD_MAX_LAYERS];
    uint32_t last = field_layers(&config, &tiny.trainer->step.model, layers) - 1;
    float *params = tiny_take(&tiny, &tiny.trainer->step.buffers.params);
    /* Large activations in front of the last layer give its weights large gradients. */
    for (uint32_t i = layers[last - 1].first; i < tiny.trainer->step.model.mlp_params; i++)
        params[i] *= i < layers[last].first ? 1e6f : 1e-6f;
    tiny_put(&tiny, &tiny.trainer->step.buffers.params, params);
    free(params);
    assert_skips(&tiny, 1, 1, 0.5);
    uint32_t step = 1;
    struct State now;
    do {
        tiny_run(&tiny, ++step);
        ok(gpu_download(tiny.trainer->device, &tiny.trainer->step.buffers.state, 0, &now,
                        sizeof now));
    } while (now.updates == 0 && step < 40);
    assert_true(now.updates == 1 && now.skipped_steps == step - 1);
    assert_true(now.loss_scale == ldexpf(1, 126 - (int)now.skipped_steps));
    tiny_destroy(&tiny);
}

static void test_overflow(void **state)
{
    check_overflow(*state, false);
    check_overflow(*state, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeats), cmocka_unit_test(test_moves_on),
        cmocka_unit_test(test_resume),  cmocka_unit_test(test_stops),
        cmocka_unit_test(test_nan),     cmocka_unit_test(test_overflow),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
