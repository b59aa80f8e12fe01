/* Tests loss scaling in whole training steps: a step with a non-finite gradient changes nothing,
 * the scale falls until gradients fit, consecutive overflows lower the learning rate, and gradients
 * that would underflow in f16 are kept. About 20 s: lavapipe compiles the step for every precision
 * and kind of accumulator. */
#include "step_fixture.h"

#include "step/internal.h"

#include <vknerf/run.h>

/* ---- what a skipped step must not change --------------------------------------------------- */

struct copies {
    void *params, *moment1, *moment2, *counts, *average;
    void *f16_params; /* f16 copy; NULL in fp32 */
    struct State state;
};

static struct State read_state(const struct tiny *tiny)
{
    struct State state;
    ok(gpu_download(tiny->trainer->device, &tiny->trainer->step.buffers.at[BIND_STATE], 0, &state,
                    sizeof state));
    return state;
}

static struct copies copies_read(const struct tiny *tiny)
{
    const struct gpu_buffer *b = tiny->trainer->step.buffers.at;
    return (struct copies){
        .params = tiny_read(tiny, &b[BIND_PARAMS]),
        .moment1 = tiny_read(tiny, &b[BIND_MOMENT1]),
        .moment2 = tiny_read(tiny, &b[BIND_MOMENT2]),
        .counts = tiny_read(tiny, &b[BIND_STEP_COUNTS]),
        .average = tiny_read(tiny, &b[BIND_AVERAGE]),
        .f16_params = b[BIND_F16_PARAMS].size > 0 ? tiny_read(tiny, &b[BIND_F16_PARAMS]) : NULL,
        .state = read_state(tiny)};
}

static void copies_free(struct copies *copies)
{
    void *all[] = {copies->params, copies->moment1, copies->moment2,
                   copies->counts, copies->average, copies->f16_params};
    for (size_t i = 0; i < BASE_COUNT(all); i++)
        free(all[i]);
}

static bool same_weights(const struct tiny *tiny, const struct copies *a, const struct copies *b)
{
    const struct gpu_buffer *buffers = tiny->trainer->step.buffers.at;
    return memcmp(a->params, b->params, buffers[BIND_PARAMS].size) == 0 &&
           memcmp(a->moment1, b->moment1, buffers[BIND_MOMENT1].size) == 0 &&
           memcmp(a->moment2, b->moment2, buffers[BIND_MOMENT2].size) == 0 &&
           memcmp(a->counts, b->counts, buffers[BIND_STEP_COUNTS].size) == 0 &&
           memcmp(a->average, b->average, buffers[BIND_AVERAGE].size) == 0 &&
           (!a->f16_params || !b->f16_params ||
            memcmp(a->f16_params, b->f16_params, buffers[BIND_F16_PARAMS].size) == 0);
}

static void assert_finite(const struct tiny *tiny, const struct copies *copies)
{
    const float *all[] = {copies->params, copies->moment1, copies->moment2, copies->average};
    for (size_t n = 0; n < BASE_COUNT(all); n++)
        for (uint32_t i = 0; i < tiny->trainer->step.setup.model.param_count; i++)
            assert_true(isfinite(all[n][i]));
}

/* Every step between two copies was skipped. */
static void assert_skipped(const struct tiny *tiny, const struct copies *before,
                           const struct copies *after, uint32_t steps, double scale_factor)
{
    assert_true(same_weights(tiny, before, after));
    assert_int_equal(after->state.skipped_steps, before->state.skipped_steps + steps);
    assert_int_equal(after->state.updates, before->state.updates);
    assert_int_equal(after->state.good_steps, 0);
    assert_true(after->state.loss_scale == (float)(before->state.loss_scale * scale_factor));
}

/* Runs to `until_step` and expects that these steps are skipped. */
static void assert_skips(struct tiny *tiny, uint32_t until_step, uint32_t steps,
                         double scale_factor)
{
    struct copies before = copies_read(tiny);
    tiny_run(tiny, until_step);
    struct copies after = copies_read(tiny);
    assert_skipped(tiny, &before, &after, steps, scale_factor);
    copies_free(&before);
    copies_free(&after);
}

static void assert_updates(struct tiny *tiny, uint32_t until_step)
{
    struct copies before = copies_read(tiny);
    tiny_run(tiny, until_step);
    struct copies after = copies_read(tiny);
    assert_false(same_weights(tiny, &before, &after));
    assert_int_equal(after.state.skipped_steps, before.state.skipped_steps);
    assert_int_equal(after.state.updates, before.state.updates + 1);
    assert_finite(tiny, &after);
    copies_free(&before);
    copies_free(&after);
}

/* ---- precisions and accumulators ----------------------------------------------------------- */

struct mode {
    enum vkn_precision precision;
    bool deterministic;
    enum vkn_gradient_sums sums;
};
static const struct mode modes[] = {
    {VKN_PRECISION_FP32, false, VKN_SUMS_DEFAULT},    {VKN_PRECISION_FP32, true, VKN_SUMS_DEFAULT},
    {VKN_PRECISION_FP16, false, VKN_SUMS_DEFAULT},    {VKN_PRECISION_FP16, false, VKN_SUMS_CAS},
    {VKN_PRECISION_COOPMAT, false, VKN_SUMS_DEFAULT}, {VKN_PRECISION_FP16, false, VKN_SUMS_F16},
    {VKN_PRECISION_FP16, true, VKN_SUMS_DEFAULT},
};

/* The last mode only with VKNERF_TEST_ALL: overflow of fixed-point sums is detected in the same way
 * in every precision, and fp32 covers it. */
static size_t mode_count(void)
{
    return BASE_COUNT(modes) - (check_everything() ? 0 : 1);
}

static struct vkn_config config_of(const struct mode *mode, enum vkn_loss loss)
{
    struct vkn_config config = tiny_config(mode->deterministic);
    config.precision = mode->precision;
    config.gradient_sums = mode->sums;
    config.loss.kind = loss;
    config.steps = 200;
    return config;
}

/* Losses and kinds of scaling do not concern the MLPs: only fp32 runs all of them, as lavapipe
 * compiles f16 shaders slowly. */
static bool is_varied(const struct mode *mode)
{
    return mode->precision == VKN_PRECISION_FP32 || check_everything();
}

/* Whether the device supports the mode; lavapipe supports all. */
static bool offers(const struct step_tests *tests, const struct mode *mode)
{
    const struct gpu_capabilities *device = gpu_device_capabilities(tests->context->device);
    struct vkn_config config = config_of(mode, VKN_LOSS_HUBER);
    struct field_model model;
    struct field_backend path;
    ok(field_model_create(&config, &model));
    bool offered = field_backend_create(&config, &model, device, &path) == VKN_OK;
    assert_true(offered || device->type != GPU_CPU);
    return offered;
}

static void set_param(struct tiny *tiny, size_t index, float value)
{
    ok(gpu_upload(tiny->trainer->device, &tiny->trainer->step.buffers.at[BIND_PARAMS], 4 * index,
                  &value, sizeof value));
    ok(step_round_parameters(&tiny->trainer->step));
}

/* Sets a weight of the last layer to NaN, which makes every colour and gradient NaN; returns the
 * old value. */
static float set_nan_weight(struct tiny *tiny, size_t *index)
{
    const struct field_model *model = &tiny->trainer->step.setup.model;
    *index = reference_weight(&model->layers[model->layer_count - 1], 0, 0);
    float value;
    ok(gpu_download(tiny->trainer->device, &tiny->trainer->step.buffers.at[BIND_PARAMS], 4 * *index,
                    &value, sizeof value));
    set_param(tiny, *index, NAN);
    return value;
}

static const struct Stats *stats_of(const struct tiny *tiny, uint32_t step)
{
    const struct Stats *ring = tiny->trainer->step.buffers.at[BIND_STATS].mapped;
    assert_int_equal(ring[step % STATS_RING].step, step);
    return &ring[step % STATS_RING];
}

static double mean_loss(const struct tiny *tiny, uint32_t first, uint32_t last)
{
    double sum = 0;
    for (uint32_t step = first; step <= last; step++)
        sum += stats_of(tiny, step)->loss;
    return sum / (last - first + 1);
}

/* ---- NaN ----------------------------------------------------------------------------------- */

static void check_nan_weight(const struct step_tests *tests, const struct mode *mode,
                             enum vkn_loss_scale kind)
{
    struct vkn_config config = config_of(mode, VKN_LOSS_HUBER);
    config.loss_scale.kind = kind;
    config.loss_scale.initial = 1024;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    size_t index;
    assert_updates(&tiny, 1);
    float kept = set_nan_weight(&tiny, &index);
    assert_skips(&tiny, 2, 1, kind == VKN_LOSS_SCALE_DYNAMIC ? 0.5 : 1);
    assert_skips(&tiny, 4, 2, kind == VKN_LOSS_SCALE_DYNAMIC ? 0.25 : 1);
    set_param(&tiny, index, kept);
    assert_updates(&tiny, 5);
    tiny_destroy(&tiny);
}

static void test_nan_weight(void **state)
{
    for (size_t i = 0; i < mode_count(); i++) {
        if (!offers(*state, &modes[i]))
            continue;
        check_nan_weight(*state, &modes[i], VKN_LOSS_SCALE_DYNAMIC);
        if (is_varied(&modes[i]))
            check_nan_weight(*state, &modes[i], VKN_LOSS_SCALE_STATIC);
    }
}

static void run_part(struct tiny *tiny, uint32_t slot, const char *from, const char *until)
{
    struct gpu_recording *recording;
    ok(gpu_record_begin(tiny->trainer->device, "part of a step", 0, &recording));
    step_record_part(&tiny->trainer->step, recording, slot, from, until);
    ok(gpu_run_once(&recording));
}

/* One channel of one ray's pixel is NaN, in the first step of an update interval. */
static void check_nan_pixel(const struct step_tests *tests, const struct mode *mode,
                            enum vkn_loss loss)
{
    struct vkn_config config = config_of(mode, loss);
    config.loss_scale.kind = VKN_LOSS_SCALE_DYNAMIC;
    config.loss_scale.initial = 64;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct gpu_buffer *buffers = tiny.trainer->step.buffers.at;
    struct Control *control = buffers[BIND_CONTROL].mapped;
    tiny_run(&tiny, 16);
    control->step_limit = 17;
    struct copies before = copies_read(&tiny);
    run_part(&tiny, 0, NULL, "composite");
    struct State middle = read_state(&tiny);
    assert_true(middle.running && middle.step == 17 && middle.ray_count > 9);
    const float nan = NAN;
    ok(gpu_upload(tiny.trainer->device, &buffers[BIND_RAYS],
                  9 * sizeof(struct Ray) + offsetof(struct Ray, target) + 4, &nan, sizeof nan));
    run_part(&tiny, 0, "composite", NULL);
    struct copies after = copies_read(&tiny);
    assert_skipped(&tiny, &before, &after, 1, 0.5);
    assert_true(isnan(stats_of(&tiny, 17)->loss)); /* the NaN was used */
    tiny.trainer->steps_done = 17;
    assert_updates(&tiny, 18);
    copies_free(&before);
    copies_free(&after);
    tiny_destroy(&tiny);
}

static void test_nan_pixel(void **state)
{
    for (size_t i = 0; i < mode_count(); i++)
        for (enum vkn_loss loss = VKN_LOSS_HUBER;
             loss <= VKN_LOSS_CHARBONNIER && offers(*state, &modes[i]); loss++)
            if (loss == VKN_LOSS_HUBER || is_varied(&modes[i]))
                check_nan_pixel(*state, &modes[i], loss);
}

/* ---- overflow ------------------------------------------------------------------------------ */

#define STRETCH        1e6f
#define OVERFLOW_STEPS 96u

/* The scale halves with every skipped step until gradients fit; then training goes on. */
static void check_overflow(const struct step_tests *tests, const struct mode *mode)
{
    bool wide = mode->precision == VKN_PRECISION_FP32;
    struct vkn_config config = config_of(mode, VKN_LOSS_L2);
    config.loss_scale.kind = VKN_LOSS_SCALE_DYNAMIC;
    config.loss_scale.initial = wide ? 0x1p126f : 0x1p40f;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    struct copies begun = copies_read(&tiny);
    if (wide)
        tiny_stretch_last_layer(&tiny, STRETCH); /* needed to overflow f32 */
    assert_skips(&tiny, 1, 1, 0.5);
    assert_skips(&tiny, 3, 2, 0.25);
    uint32_t step = 3;
    while (read_state(&tiny).updates == 0 && step < OVERFLOW_STEPS)
        tiny_run(&tiny, ++step);
    for (uint32_t i = 1; i <= step; i++) {
        assert_true(stats_of(&tiny, i)->loss_scale ==
                    ldexpf(config.loss_scale.initial, 1 - (int)i));
        assert_int_equal(stats_of(&tiny, i)->skipped_steps, i < step ? i : step - 1);
    }
    struct State found = read_state(&tiny);
    assert_true(found.updates == 1 && found.rate_cuts == 0);
    if (wide)
        tiny_put(&tiny, &tiny.trainer->step.buffers.at[BIND_PARAMS], begun.params);
    tiny_run(&tiny, OVERFLOW_STEPS);
    struct State last = read_state(&tiny);
    print_message("%s: %u skipped, then %u of %u; loss %g to %g\n", __func__, step - 1,
                  last.skipped_steps - (step - 1), OVERFLOW_STEPS - step, mean_loss(&tiny, 1, step),
                  mean_loss(&tiny, OVERFLOW_STEPS - 19, OVERFLOW_STEPS));
    assert_true(last.skipped_steps - found.skipped_steps <= 8);
    assert_true(mean_loss(&tiny, OVERFLOW_STEPS - 19, OVERFLOW_STEPS) <
                0.7 * mean_loss(&tiny, 1, step));
    struct copies copies = copies_read(&tiny);
    assert_finite(&tiny, &copies);
    copies_free(&copies);
    copies_free(&begun);
    tiny_destroy(&tiny);
}

static void test_overflow(void **state)
{
    for (size_t i = 0; i < mode_count(); i++)
        if (offers(*state, &modes[i]))
            check_overflow(*state, &modes[i]);
}

/* ---- underflow ----------------------------------------------------------------------------- */

#define UNDERFLOW_STEPS 60u

struct outcome {
    double underflowed; /* mean of Stats.underflowed */
    double first_loss, last_loss, largest_norm;
    struct warnings warnings;
};

static struct outcome train_scaled(const struct step_tests *tests, const struct mode *mode,
                                   enum vkn_loss_scale kind, float initial)
{
    struct vkn_config config = config_of(mode, VKN_LOSS_HUBER);
    config.loss_scale.kind = kind;
    config.loss_scale.initial = initial;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    struct outcome outcome = {0};
    tiny_run_watched(&tiny, UNDERFLOW_STEPS, &outcome.warnings);
    outcome.first_loss = mean_loss(&tiny, 1, 4);
    outcome.last_loss = mean_loss(&tiny, UNDERFLOW_STEPS - 9, UNDERFLOW_STEPS);
    for (uint32_t step = 1; step <= UNDERFLOW_STEPS; step++) {
        outcome.underflowed += stats_of(&tiny, step)->underflowed / UNDERFLOW_STEPS;
        outcome.largest_norm = fmax(outcome.largest_norm, stats_of(&tiny, step)->grad_norm);
    }
    tiny_destroy(&tiny);
    return outcome;
}

/* Gradients are divided by the number of rays: a scale of 2^-8 acts like no scaling with 2^8 times
 * as many rays. In f16 more than 95 % of the rounded gradients underflow then, nothing is learnt,
 * and one warning is given. Dynamic scaling loses almost nothing. */
static void check_underflow(const struct step_tests *tests, const struct mode *mode)
{
    struct outcome without = train_scaled(tests, mode, VKN_LOSS_SCALE_STATIC, 0x1p-8f);
    print_message("precision %d without scaling: %.4f underflowed, loss %.5f to %.5f\n",
                  mode->precision, without.underflowed, without.first_loss, without.last_loss);
    assert_true(without.underflowed > 0.95);
    assert_true(without.last_loss > 0.8 * without.first_loss); /* the rays differ by step */
    assert_int_equal(without.warnings.count, 1);
    assert_true(strncmp(without.warnings.last, "step ", 5) == 0);
    assert_non_null(strstr(without.warnings.last,
                           " % of the gradients underflow in f16 at a loss scale of "
                           "0.003906: little is learnt; use --loss-scale "));
    struct outcome dynamic = train_scaled(tests, mode, VKN_LOSS_SCALE_DEFAULT, 0);
    print_message("precision %d with dynamic scaling: %.7f underflowed, loss %.5f to %.5f\n",
                  mode->precision, dynamic.underflowed, dynamic.first_loss, dynamic.last_loss);
    assert_true(dynamic.underflowed < 1e-3);
    assert_int_equal(dynamic.warnings.count, 0);
    assert_true(dynamic.last_loss < 0.2 * dynamic.first_loss);
    assert_true(dynamic.largest_norm > 100 * without.largest_norm);
}

static void test_underflow(void **state)
{
    for (size_t i = 0; i < mode_count(); i++)
        if (modes[i].precision != VKN_PRECISION_FP32 && !modes[i].deterministic &&
            modes[i].sums == VKN_SUMS_DEFAULT && offers(*state, &modes[i]))
            check_underflow(*state, &modes[i]);
}

/* Returns the state after one step at a loss scale at which some gradients underflow. */
static struct State count_rounded(const struct step_tests *tests, const struct mode *mode)
{
    struct vkn_config config = config_of(mode, VKN_LOSS_HUBER);
    config.loss_scale.kind = VKN_LOSS_SCALE_STATIC;
    config.loss_scale.initial = 4;
    if (mode->precision == VKN_PRECISION_FP16)
        config.policy.matmul = VKN_POLICY_F32; /* so that it counts the gradients of all layers */
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 1);
    struct State state = read_state(&tiny);
    tiny_destroy(&tiny);
    return state;
}

/* Matrices count two gradients instead of four or eight. fp16 on CPUs counts each, also those
 * of the directions, which coopmat does not compute. */
static void test_rounded_counts(void **state)
{
    const struct mode fp16 = {.precision = VKN_PRECISION_FP16},
                      coopmat = {.precision = VKN_PRECISION_COOPMAT};
    if (!offers(*state, &fp16) || !offers(*state, &coopmat))
        skip();
    struct State all = count_rounded(*state, &fp16), some = count_rounded(*state, &coopmat);
    print_message("rounded %u and %u, underflowed %u and %u\n", all.rounded, some.rounded,
                  all.underflowed, some.underflowed);
    assert_true(some.rounded > 0.5 * all.rounded && some.rounded < 1.1 * all.rounded);
    assert_true(some.underflowed > 0.5 * all.underflowed &&
                some.underflowed < 1.1 * all.underflowed);
}

/* f32 does not underflow and needs no scale. */
static void test_f32(void **state)
{
    struct outcome small = train_scaled(*state, &modes[0], VKN_LOSS_SCALE_STATIC, 0x1p-8f);
    struct outcome plain = train_scaled(*state, &modes[0], VKN_LOSS_SCALE_DEFAULT, 0);
    assert_true(small.underflowed == 0 && plain.underflowed == 0);
    assert_true(small.warnings.count == 0 && plain.warnings.count == 0);
    assert_true(small.last_loss < 0.2 * small.first_loss);
    assert_true(plain.last_loss < 0.2 * plain.first_loss);
}

/* ---- a falling scale ----------------------------------------------------------------------- */

static void assert_rate(const struct tiny *tiny, uint32_t step, double factor)
{
    double rate =
        reference_learning_rate(&tiny->trainer->step.setup.constants, step - 1, 0) * factor;
    check_close(stats_of(tiny, step)->learning_rate, rate, 1e-5, rate, "learning rate of step",
                step);
}

static struct vkn_config falling_config(void)
{
    struct vkn_config config = config_of(&modes[0], VKN_LOSS_HUBER);
    config.loss_scale.kind = VKN_LOSS_SCALE_DYNAMIC;
    config.loss_scale.initial = 1024;
    config.loss_scale.max_backoffs = 3;
    config.loss_scale.rate_cut_factor = 0.25f;
    return config;
}

/* The third back-off since the last growth lowers the learning rate, is reported once, and persists
 * when training recovers or is resumed. */
static void test_falling_scale(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config config = falling_config();
    struct warnings warnings = {0};
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run_watched(&tiny, 5, &warnings);
    assert_rate(&tiny, 5, 1);
    size_t index;
    float kept = set_nan_weight(&tiny, &index);
    tiny_run_watched(&tiny, 7, &warnings);
    assert_int_equal(warnings.count, 1);
    assert_non_null(strstr(warnings.last, "step 6: the loss is not finite"));
    tiny_run_watched(&tiny, 20, &warnings);
    assert_int_equal(warnings.count, 2);
    assert_string_equal(warnings.last,
                        "step 8: the loss scale keeps falling (256, then x0.5): the learning rate "
                        "is multiplied by 0.25 from here on");
    assert_rate(&tiny, 8, 1);
    assert_rate(&tiny, 9, 0.25);
    set_param(&tiny, index, kept);
    /* The NaN has reached the average in step 16, and would prevent saving. */
    ok(gpu_upload(tests->context->device, &tiny.trainer->step.buffers.at[BIND_AVERAGE], 4 * index,
                  &kept, sizeof kept));
    tiny_run_watched(&tiny, 21, &warnings);
    assert_int_equal(read_state(&tiny).updates, 6);
    assert_rate(&tiny, 21, 0.25);
    char *path = base_path_join(tests->folder->path, "falling");
    ok(vkn_trainer_save(tiny.trainer, path));
    tiny_destroy(&tiny);

    tiny = tiny_create(tests->context, tests->folder, &config);
    ok(vkn_trainer_resume(tiny.trainer, path));
    tiny_run_watched(&tiny, 23, &warnings);
    assert_int_equal(warnings.count, 2);
    assert_rate(&tiny, 23, 0.25);
    tiny_destroy(&tiny);
    free(path);
}

static struct tiny resume(const struct step_tests *tests, const struct vkn_config *config,
                          const char *path)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    ok(vkn_trainer_resume(tiny.trainer, path));
    return tiny;
}

/* Tolerated overflows still count after a resume, and the current scale is clamped to new limits;
 * another initial scale restarts it. */
static void test_resumed_scale(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = falling_config();
    config.loss_scale.hysteresis = 3;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 1);
    size_t index;
    float kept = set_nan_weight(&tiny, &index);
    assert_skips(&tiny, 3, 2, 1);
    assert_int_equal(read_state(&tiny).tolerated, 2);
    set_param(&tiny, index, kept);
    char *path = base_path_join(tests->folder->path, "tolerated");
    ok(vkn_trainer_save(tiny.trainer, path));
    tiny_destroy(&tiny);

    tiny = resume(tests, &config, path);
    set_nan_weight(&tiny, &index);
    assert_skips(&tiny, 4, 1, 0.5); /* the third overflow */
    assert_skips(&tiny, 5, 1, 0.5);
    tiny_destroy(&tiny);

    struct vkn_config limited = config;
    limited.loss_scale.maximum = 300;
    limited.loss_scale.initial = 300; /* as a run clamps its initial scale */
    tiny = resume(tests, &limited, path);
    struct State found = read_state(&tiny);
    assert_true(found.loss_scale == 300 && found.tolerated == 2 && found.good_steps == 0);
    tiny_destroy(&tiny);
    limited.loss_scale = config.loss_scale;
    limited.loss_scale.minimum = limited.loss_scale.initial = 5000;
    tiny = resume(tests, &limited, path);
    found = read_state(&tiny);
    assert_true(found.loss_scale == 5000 && found.tolerated == 2);
    tiny_destroy(&tiny);

    /* Another initial scale starts anew. */
    limited.loss_scale = config.loss_scale;
    limited.loss_scale.initial = 64;
    tiny = resume(tests, &limited, path);
    found = read_state(&tiny);
    assert_true(found.loss_scale == 64 && found.tolerated == 0);
    tiny_destroy(&tiny);
    free(path);
}

/* Runs until the training ends early, with these parts in the message. */
static void assert_ends(struct tiny *tiny, uint32_t until_step, const char *const *parts,
                        size_t count)
{
    struct warnings warnings = {0};
    const struct vkn_train_run run = {
        .until_step = until_step, .warn = store_warning, .context = &warnings};
    assert_int_equal(vkn_trainer_run(tiny->trainer, &run), VKN_ERROR);
    for (size_t i = 0; i < count; i++)
        if (!strstr(vkn_last_error(), parts[i]))
            fail_msg("\"%s\" is not in: %s", parts[i], vkn_last_error());
    assert_true(train_ended_early(tiny->trainer) && !train_is_sound(tiny->trainer));
    assert_true(vkn_trainer_step(tiny->trainer) < until_step);
}

/* 64 steps in a row with a non-finite loss end the training with a message that names the layer;
 * weights and state are kept. */
static void test_divergence_ends(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = falling_config();
    config.loss_scale.kind = VKN_LOSS_SCALE_STATIC;
    static const char *const parts[] = {
        "step 69: the training has diverged: since step 6 no loss was finite; not finite first: "
        "the "
        "weights of layer 2 of 2 of the colour MLP (1 of 256); lower optimizer.learning_rate (0.01 "
        "now), or clip large gradients (optimizer.clip_norm)"};
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run(&tiny, 5);
    char *good = tiny_save(tests, &tiny, "good");
    size_t index;
    set_nan_weight(&tiny, &index);
    assert_ends(&tiny, 150, parts, BASE_COUNT(parts));
    assert_int_equal(read_state(&tiny).updates, 5);
    ok(vkn_trainer_resume(tiny.trainer, good)); /* and trains again */
    assert_true(!train_ended_early(tiny.trainer) && train_is_sound(tiny.trainer));
    tiny_run(&tiny, 7);
    assert_int_equal(read_state(&tiny).updates, 7);
    tiny_destroy(&tiny);
    free(good);
}

/* A static scale that overflows f32 also ends the training; the gradients of one more step show
 * where. */
static void test_skipping_ends(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = config_of(&modes[0], VKN_LOSS_L2);
    config.loss_scale.kind = VKN_LOSS_SCALE_STATIC;
    config.loss_scale.initial = 0x1p126f;
    static const char *const parts[] = {
        "step 64: no step is taken any more: every step since step 1 was skipped",
        "; not finite first: the gradients of layer 2 of 2 of the colour MLP (",
        "; use a smaller loss scale than 8.507e+37, such as --loss-scale dynamic"};
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_stretch_last_layer(&tiny, STRETCH);
    struct copies before = copies_read(&tiny);
    assert_ends(&tiny, 150, parts, BASE_COUNT(parts));
    struct copies after = copies_read(&tiny);
    assert_memory_equal(before.params, after.params,
                        tiny.trainer->step.buffers.at[BIND_PARAMS].size);
    assert_int_equal(after.state.updates, 0);
    assert_int_equal(after.state.step, vkn_trainer_step(tiny.trainer));
    assert_int_equal(after.state.skipped_steps, after.state.step);
    copies_free(&before);
    copies_free(&after);
    tiny_destroy(&tiny);
}

/* A dynamic scale that never stops falling: the advice is to change the initial scale or the
 * minimum. */
static void check_search(const struct step_tests *tests, float minimum, const char *advice)
{
    struct vkn_config config = config_of(&modes[0], VKN_LOSS_L2);
    config.loss_scale.kind = VKN_LOSS_SCALE_DYNAMIC;
    config.loss_scale.initial = 0x1p126f;
    config.loss_scale.minimum = minimum;
    config.loss_scale.backoff = 0.999f;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_stretch_last_layer(&tiny, STRETCH);
    tiny_run(&tiny, 3);
    assert_int_equal(train_check_end(tiny.trainer), VKN_ERROR);
    if (!strstr(vkn_last_error(), advice))
        fail_msg("\"%s\" is not in: %s", advice, vkn_last_error());
    tiny_destroy(&tiny);
}

static void test_search_without_end(void **state)
{
    check_search(*state, 0, "; begin with a smaller loss_scale.initial than 8.507e+37, or lower ");
    check_search(*state, 0x1p126f, "; use a smaller loss_scale.minimum than 8.507e+37, or lower ");
}

/* ---- schedules ----------------------------------------------------------------------------- */

static void assert_scales(const struct tiny *tiny, uint32_t from, uint32_t to)
{
    for (uint32_t step = from; step <= to; step++) {
        float scale = step <= 5 ? 4 : step <= 20 ? 1024 : 0.5f;
        assert_true(stats_of(tiny, step)->loss_scale == scale);
    }
}

/* Points hold from their step on, also after a resume. */
static void test_schedule(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = config_of(&modes[1], VKN_LOSS_HUBER);
    const struct vkn_schedule_point points[] = {{2, 4}, {5, 1024}, {20, 0.5f}};
    memcpy(config.loss_scale.schedule, points, sizeof points);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    assert_int_equal(vkn_trainer_config(tiny.trainer)->loss_scale.kind, VKN_LOSS_SCALE_SCHEDULE);
    tiny_run(&tiny, 18);
    char *path = base_path_join(tests->folder->path, "schedule");
    ok(vkn_trainer_save(tiny.trainer, path));
    tiny_run(&tiny, 40);
    assert_scales(&tiny, 1, 40);
    assert_int_equal(read_state(&tiny).skipped_steps, 0);
    tiny_destroy(&tiny);

    struct vkn_config recorded = {0};
    ok(vkn_run_config(path, &recorded));
    assert_memory_equal(&recorded.loss_scale.schedule, &config.loss_scale.schedule,
                        sizeof config.loss_scale.schedule);
    tiny = tiny_create(tests->context, tests->folder, &recorded);
    ok(vkn_trainer_resume(tiny.trainer, path));
    tiny_run(&tiny, 40);
    assert_scales(&tiny, 19, 40);
    tiny_destroy(&tiny);

    /* Another kind starts with its own scale, not with the schedule's. */
    recorded.loss_scale.kind = VKN_LOSS_SCALE_DYNAMIC;
    recorded.loss_scale.initial = 4096;
    tiny = tiny_create(tests->context, tests->folder, &recorded);
    ok(vkn_trainer_resume(tiny.trainer, path));
    tiny_run(&tiny, 19);
    assert_true(stats_of(&tiny, 19)->loss_scale == 4096);
    tiny_destroy(&tiny);
    free(path);
}

/* A step that overflows under a schedule is skipped, and the scale stays. */
static void test_schedule_overflows(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = config_of(&modes[0], VKN_LOSS_L2);
    config.loss_scale.schedule[0] = (struct vkn_schedule_point){0, 0x1p126f};
    config.loss_scale.schedule[1] = (struct vkn_schedule_point){3, 1};
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_stretch_last_layer(&tiny, STRETCH);
    assert_skips(&tiny, 3, 3, 1);
    assert_updates(&tiny, 4);
    assert_true(stats_of(&tiny, 4)->loss_scale == 1);
    tiny_destroy(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nan_weight),    cmocka_unit_test(test_nan_pixel),
        cmocka_unit_test(test_overflow),      cmocka_unit_test(test_falling_scale),
        cmocka_unit_test(test_resumed_scale), cmocka_unit_test(test_divergence_ends),
        cmocka_unit_test(test_skipping_ends), cmocka_unit_test(test_search_without_end),
        cmocka_unit_test(test_schedule),      cmocka_unit_test(test_schedule_overflows),
        cmocka_unit_test(test_underflow),     cmocka_unit_test(test_rounded_counts),
        cmocka_unit_test(test_f32),
    };
    tiny_groups = TINY_GROUPS;
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
