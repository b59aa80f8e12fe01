/* Tests reduce_gradients, and check_gradients with the loss scale. */
#include "pass_fixture.h"

static struct bench bench_of_sums(struct gpu_device *device, uint32_t features,
                                  enum vkn_gradient_sums sums)
{
    struct vkn_config settings = {
        .gradient_sums = sums, .grid = {.levels = 3, .features = features}, .loss.distortion = -1};
    struct bench bench = bench_configure(device, settings);
    bench.config.backward_groups = 7;
    bench.config.norm_interval = 1;
    bench_allocate(&bench, 1, 1);
    return bench;
}

static struct bench bench_of(struct gpu_device *device, uint32_t features)
{
    return bench_of_sums(device, features, VKN_SUMS_DEFAULT);
}

static void put_state(struct bench *bench, struct State state)
{
    bench_put(bench, BIND_STATE, &state, sizeof state);
}

static struct State get_state(struct bench *bench)
{
    struct State state;
    bench_get(bench, BIND_STATE, &state, sizeof state);
    return state;
}

/* ---- reduce_gradients ---------------------------------------------------------------------- */

static void check_sums(const struct bench *bench, const float *partials, const float *device)
{
    for (uint32_t i = 0; i < bench->model.mlp_params; i++) {
        double sum = 0;
        for (uint32_t group = 0; group < bench->config.backward_groups; group++)
            sum += partials[group * bench->model.mlp_params + i];
        assert_close(device[i], sum, 1e-6, 7, "sum of weight", i);
    }
}

static void test_reduce_float(void **state)
{
    struct bench bench = bench_of(*state, 2);
    struct random random = {800};
    uint32_t mlp = bench.model.mlp_params;
    float *partials = random_floats(&random, 7ull * mlp, -1, 1);
    bench_put(&bench, BIND_PARTIALS, partials, 28ull * mlp);
    bench_run(&bench, "reduce_gradients", (struct Push){.b = bench.local_size}, 3);
    float *device = bench_read(&bench, BIND_GRADIENTS);
    check_sums(&bench, partials, device);
    assert_poisoned(device, mlp, bench.model.param_count); /* not the grid's */
    free(device);
    free(partials);
    bench_destroy(&bench);
}

/* A sum that is not finite, or too large for sums of sums, raises nonfinite, of whichever
 * parameter. */
static void test_reduce_overflow(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, -0x1p96f, 0x1p94f};
    struct bench bench = bench_of(*state, 2);
    uint32_t mlp = bench.model.mlp_params;
    float *partials = base_alloc(7ull * mlp, sizeof *partials);
    for (uint32_t n = 0; n < BASE_COUNT(bad); n++) {
        uint32_t at = n % 2 ? 7 * mlp - 1 : n * 77;
        partials[at] = bad[n];
        bench_put(&bench, BIND_PARTIALS, partials, 28ull * mlp);
        put_state(&bench, (struct State){.loss_scale = 128, .ray_count = 960});
        bench_run(&bench, "reduce_gradients", (struct Push){.b = bench.local_size}, 3);
        assert_int_equal(get_state(&bench).nonfinite, bad[n] != 0x1p94f);
        partials[at] = 0;
    }
    free(partials);
    bench_destroy(&bench);
}

/* Rounded to f16 after each workgroup, a sum of 2048 does not change by the others' 0.9. */
static void test_reduce_rounded(void **state)
{
    struct bench bench = bench_of(*state, 2);
    struct random random = {802};
    uint32_t mlp = bench.model.mlp_params;
    bench_set_constant(&bench, SPEC_ROUNDED, ROUND_WEIGHT_SUMS);
    float *partials = random_floats(&random, 7ull * mlp, -1, 1);
    for (uint32_t group = 0; group < 7; group++)
        partials[group * mlp] = group ? 0.9f : 2048;
    bench_put(&bench, BIND_PARTIALS, partials, 28ull * mlp);
    bench_run(&bench, "reduce_gradients", (struct Push){.b = bench.local_size}, 3);
    float *device = bench_read(&bench, BIND_GRADIENTS);
    assert_true(device[0] == 2048);
    for (uint32_t i = 1; i < mlp; i++) {
        double sum = 0;
        for (uint32_t group = 0; group < 7; group++)
            sum = reference_round_to_f16(sum + partials[group * mlp + i]);
        assert_true((double)device[i] == reference_round_to_f16(device[i]));
        assert_close(device[i], sum, 2e-2, 1, "sum of weight", i);
    }
    free(device);
    free(partials);
    bench_destroy(&bench);
}

/* Fixed-point sums of any size and sign, many of them zero, some with a word of only ones or zeros;
 * the pass sets all to zero. */
static void test_reduce_fixed(void **state)
{
    static const int64_t edges[] = {
        1,
        -1,
        INT64_C(1) << 32,
        -(INT64_C(1) << 32),
        (INT64_C(1) << 32) - 1,
        1 - (INT64_C(1) << 32),
        -(INT64_C(1) << 32) - 1,
        -(INT64_C(7) << 40),
        INT64_MAX,
        INT64_MIN,
    };
    struct bench bench = bench_of(*state, 4);
    struct random random = {801};
    uint32_t mlp = bench.model.mlp_params, count = bench.model.param_count;
    float *partials = random_floats(&random, 7ull * mlp, -1, 1);
    int64_t *sums = base_alloc(count, sizeof *sums);
    for (uint32_t i = mlp; i < count; i++)
        if (random_below(&random, 3) > 0) {
            uint64_t bits = (uint64_t)random_word(&random) << 32 | random_word(&random);
            sums[i] = (int64_t)bits >> random_below(&random, 60);
        }
    memcpy(sums + mlp, edges, sizeof edges);
    put_state(&bench, (struct State){.loss_scale = 128, .ray_count = 960});
    bench_put(&bench, BIND_PARTIALS, partials, 28ull * mlp);
    bench_put(&bench, BIND_ACCUMULATORS, sums, 8ull * count);
    bench_run(&bench, "reduce_gradients_fixed", (struct Push){.b = bench.local_size}, 5);
    float *device = bench_read(&bench, BIND_GRADIENTS);
    int64_t *after = bench_read(&bench, BIND_ACCUMULATORS);
    check_sums(&bench, partials, device);
    for (uint32_t i = mlp; i < count; i++) {
        double expected = ldexp((double)sums[i], -42) * 128 / 960;
        assert_close(device[i], expected, 3e-7, fabs(expected) + 0x1p-40, "fixed-point sum", i);
        assert_int_equal(after[i], 0);
    }
    free(device);
    free(after);
    free(sums);
    free(partials);
    bench_destroy(&bench);
}

/* ---- check_gradients ----------------------------------------------------------------------- */

#define GROUPS 11u

/* Sets the number of workgroups that wrote loss sums, as composite does. */
static void put_losses(const struct bench *bench, struct State *state, uint32_t losses)
{
    bool per_invocation = bench->constants.values[SPEC_CPU_KERNELS];
    state->dispatches[per_invocation ? DISPATCH_RAYS : DISPATCH_FORWARD].x = losses;
}

/* Reads the state after the last workgroup, which resets the count of finished ones. */
static struct State get_finished(struct bench *bench)
{
    struct State state = get_state(bench);
    assert_int_equal(state.dispatches[DISPATCH_PARAMS].finished, 0);
    return state;
}

/* Runs the pass on these gradients, with `losses` partial sums of loss (1) and squared error (2);
 * returns the state. */
static struct State run_checks(struct bench *bench, const float *gradients, struct State before,
                               uint32_t losses)
{
    float pairs[2 * 300];
    for (uint32_t i = 0; i < losses; i++) {
        pairs[2 * i] = 1;
        pairs[2 * i + 1] = 2;
    }
    put_losses(bench, &before, losses);
    put_state(bench, before);
    bench_poison(bench, BIND_REDUCE);
    bench_poison(bench, BIND_STATS);
    bench_put(bench, BIND_REDUCE, pairs, 8ull * losses);
    bench_put(bench, BIND_GRADIENTS, gradients, 4ull * bench->model.param_count);
    bench_run(bench, "check_gradients", (struct Push){.b = bench->local_size}, GROUPS);
    return get_finished(bench);
}

static double norm_of(const float *gradients, uint32_t count, double scale)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += gradients[i] / scale * (gradients[i] / scale);
    return sqrt(sum);
}

static void check_state(const struct bench *bench, const struct State *before,
                        const struct State *after, double norm)
{
    struct State expected = *before;
    bool finite = isfinite(norm) && !before->nonfinite;
    double clip = bench->config.clip_norm;
    reference_loss_scale(&bench->config, finite, &expected);
    assert_int_equal(after->nonfinite, !finite);
    assert_int_equal(after->updates, expected.updates);
    assert_int_equal(after->good_steps, expected.good_steps);
    assert_int_equal(after->skipped_steps, expected.skipped_steps);
    assert_true(after->loss_scale == expected.loss_scale);
    assert_int_equal(after->settled, expected.settled);
    assert_int_equal(after->backoffs, expected.backoffs);
    assert_int_equal(after->rate_cuts, expected.rate_cuts);
    if (!finite)
        return;
    assert_close(after->grad_norm, norm, 1e-5, norm, "gradient norm", 0);
    double factor = (clip > 0 && norm > clip ? clip / norm : 1) / before->loss_scale;
    assert_close(after->gradient_factor, factor, 1e-5, factor, "gradient factor", 0);
}

/* Checks that only the step's entry of the ring is written. */
static void check_stats(struct bench *bench, const struct State *before, const struct State *after,
                        uint32_t losses)
{
    struct Stats *ring = bench_read(bench, BIND_STATS), *stats = &ring[before->step % STATS_RING];
    size_t words = sizeof *ring / 4, at = (size_t)(stats - ring) * words;
    assert_int_equal(stats->step, before->step);
    assert_int_equal(stats->rays, before->ray_count);
    assert_int_equal(stats->samples, before->sample_count);
    assert_int_equal(stats->live, before->live_count);
    assert_int_equal(stats->skipped_steps, after->skipped_steps);
    assert_close(stats->loss, 1.0 * losses / before->live_rays, 1e-6, 1, "loss", 0);
    assert_close(stats->square, 2.0 * losses / before->live_rays, 1e-6, 1, "square", 0);
    assert_true(stats->learning_rate == before->learning_rate);
    assert_true(stats->loss_scale == before->loss_scale); /* the scale that the step used */
    assert_int_equal(stats->rate_cuts, after->rate_cuts);
    assert_true(stats->kept_share == 0 && stats->keep_weight == 0); /* no ray is dropped */
    assert_true(after->keep_gain == 0 && after->mean_loss == 0);
    double underflowed = before->rounded > 0 ? (double)before->underflowed / before->rounded : 0;
    assert_close(stats->underflowed, underflowed, 1e-6, underflowed, "underflowed share of step",
                 before->step);
    if (!after->nonfinite)
        assert_true(stats->grad_norm == after->grad_norm);
    assert_poisoned(ring, 0, at);
    assert_poisoned(ring, at + words, STATS_RING * words);
    free(ring);
}

static const struct State usual = {
    .step = 1000,
    .ray_count = 640,
    .sample_count = 9000,
    .live_count = 7000,
    .live_rays = 600,
    .learning_rate = 0.01f,
    .loss_scale = 1024,
    .good_steps = 3,
    .skipped_steps = 5,
    .updates = 42,
};

/* Without clipping the norm is computed in every 16th step and in the last one; a step without it
 * keeps the state's norm, and relies on the passes before it to find gradients that are not
 * finite. */
static void test_norm_interval(void **state)
{
    static const struct {
        uint32_t step, limit, total;
        bool has_norm;
    } cases[] = {{1008, 2000, 3000, true},
                 {1007, 2000, 3000, false},
                 {1007, 1007, 3000, true},
                 {1007, 2000, 1007, true},
                 {1009, 2000, UINT32_MAX, false}};
    struct random random = {811};
    struct bench bench = bench_of(*state, 2);
    uint32_t count = bench.model.param_count;
    float *gradients = random_floats(&random, count, -1, 1);
    bench.config.norm_interval = UPDATE_INTERVAL;
    for (size_t n = 0; n < BASE_COUNT(cases); n++) {
        const struct Control control = {.step_limit = cases[n].limit};
        bench.config.total_steps = cases[n].total;
        bench_put(&bench, BIND_CONFIG, &bench.config, sizeof bench.config);
        bench_put(&bench, BIND_CONTROL, &control, sizeof control);
        struct State before = usual;
        before.step = cases[n].step;
        before.grad_norm = 7;
        gradients[3] = cases[n].has_norm ? 0.5f : NAN; /* is not read without the norm */
        struct State after = run_checks(&bench, gradients, before, 5);
        struct Stats *ring = bench_read(&bench, BIND_STATS);
        double norm = norm_of(gradients, count, before.loss_scale);
        assert_int_equal(after.nonfinite, 0);
        assert_close(after.grad_norm, cases[n].has_norm ? norm : 7, 1e-5, 7, "norm of case", n);
        assert_close(ring[before.step % STATS_RING].grad_norm, cases[n].has_norm ? norm : -1, 1e-5,
                     1, "reported norm of case", n);
        free(ring);
    }
    free(gradients);
    bench_destroy(&bench);
}

struct scaling {
    uint32_t kind, interval, good_steps;
    float scale, clip, bad; /* bad: put among the gradients when not 0 */
    uint32_t nonfinite;
};
static const struct scaling scalings[] = {
    {SCALE_STATIC, 4, 3, 1024, 0, 0, 0},
    {SCALE_STATIC, 4, 3, 1, 0, INFINITY, 0},
    {SCALE_DYNAMIC, 4, 2, 1024, 0, 0, 0},     /* no growth yet */
    {SCALE_DYNAMIC, 4, 3, 1024, 0, 0, 0},     /* grows */
    {SCALE_DYNAMIC, 4, 3, 0x1p126f, 0, 0, 0}, /* at the maximum */
    {SCALE_DYNAMIC, 4, 3, 1024, 0, NAN, 0},
    {SCALE_DYNAMIC, 4, 3, 1024, 0, INFINITY, 0},
    {SCALE_DYNAMIC, 4, 3, 1024, 0, -INFINITY, 0},
    {SCALE_DYNAMIC, 4, 3, 0x1p-126f, 0, NAN, 0}, /* at the minimum */
    {SCALE_DYNAMIC, 4, 3, 1024, 0, 0, 1},        /* another pass has seen an overflow */
    {SCALE_DYNAMIC, 4, 1, 1024, 0.5f, 0, 0},     /* clipped */
    {SCALE_STATIC, 4, 1, 1024, 1e9f, 0, 0},      /* not clipped */
    {SCALE_STATIC, 4, 1, 1024, 0, 3e38f, 0},     /* large but finite */
    {SCALE_SCHEDULE, 4, 3, 1024, 0, 0, 0},       /* as begin_step set it */
    {SCALE_SCHEDULE, 4, 3, 1024, 0, NAN, 0},
    {SCALE_DYNAMIC, 100, 15, 1024, 0, 0, 0}, /* grows early: a third underflowed */
};

static void test_loss_scale(void **state)
{
    struct random random = {810};
    struct bench bench = bench_of(*state, 2);
    uint32_t count = bench.model.param_count;
    bench.config.scale_growth = 2;
    bench.config.scale_backoff = 0.5f;
    for (size_t n = 0; n < BASE_COUNT(scalings); n++) {
        const struct scaling *scaling = &scalings[n];
        float *gradients =
            random_floats(&random, count, -3.0 * scaling->scale, 3.0 * scaling->scale);
        uint32_t losses = n % 2 ? 1 : 131, bad_index = n % 3 == 0 ? count - 1 : n % 3 * 1234;
        if (scaling->bad != 0 || isnan(scaling->bad))
            gradients[bad_index] = scaling->bad;
        bench.config.scale_kind = scaling->kind;
        bench.config.scale_interval = scaling->interval;
        bench.config.clip_norm = scaling->clip;
        bench_put(&bench, BIND_CONFIG, &bench.config, sizeof bench.config);
        struct State before = usual;
        before.good_steps = scaling->good_steps;
        before.loss_scale = scaling->scale;
        before.nonfinite = scaling->nonfinite;
        before.step += (uint32_t)n;
        before.rounded = (uint32_t)(n % 4 << 2 * n); /* none, few, very many */
        before.underflowed = n % 4 == 1 ? before.rounded : before.rounded / 3;
        /* A square beyond FLT_MAX makes the norm infinite too. */
        double norm = norm_of(gradients, count, scaling->scale);
        norm = norm * norm > FLT_MAX ? INFINITY : norm;
        struct State after = run_checks(&bench, gradients, before, losses);
        check_state(&bench, &before, &after, norm);
        check_stats(&bench, &before, &after, losses);
        free(gradients);
    }
    bench_destroy(&bench);
}

/* The norm of gradients whose grid part is packed f16 sums, with and without inf and nan among
 * them. Words where f32 gradients would be are not read. */
static void test_f16_sums(void **state)
{
    struct bench bench = bench_of_sums(*state, 4, VKN_SUMS_F16);
    struct random random = {811};
    uint32_t count = bench.model.param_count, mlp = bench.model.mlp_params;
    const uint32_t bad[] = {count, mlp, mlp + 1, count - 1};
    for (size_t n = 0; n < BASE_COUNT(bad); n++) {
        float *gradients = random_floats(&random, count, -1000, 1000);
        uint16_t *sums = base_alloc(count, sizeof *sums);
        for (uint32_t i = mlp; i < count; i++) {
            sums[i] = (uint16_t)(random_word(&random) & 0xbfff); /* below 2 */
            sums[i] = i != bad[n] ? sums[i] : n == 2 ? 0x7e00 : 0xfc00;
            gradients[i] = (float)reference_f16(sums[i]);
        }
        double norm = norm_of(gradients, count, usual.loss_scale);
        assert_true(isfinite(norm) == (n == 0));
        for (uint32_t i = mlp; i < count; i++)
            gradients[i] = NAN;
        bench_put(&bench, BIND_ACCUMULATORS, sums, 2ull * count);
        struct State after = run_checks(&bench, gradients, usual, 1);
        assert_int_equal(after.nonfinite, n > 0);
        if (n == 0)
            assert_close(after.grad_norm, norm, 1e-5, norm, "gradient norm", 0);
        free(sums);
        free(gradients);
    }
    bench_destroy(&bench);
}

/* Runs the pass on partial sums of loss, squared error and distortion loss. */
static struct State run_losses(struct bench *bench, struct State before, const float sums[3])
{
    float *reduce = base_alloc(REDUCE_SIZE, sizeof *reduce);
    for (uint32_t i = 0; i < REDUCE_SIZE; i++)
        reduce[i] = NAN; /* not read */
    reduce[REDUCE_LOSS] = sums[0];
    reduce[REDUCE_LOSS + 1] = sums[1];
    reduce[REDUCE_DISTORTION] = sums[2];
    float *gradients = base_alloc(bench->model.param_count, sizeof *gradients);
    gradients[5] = 1;
    put_losses(bench, &before, 1);
    put_state(bench, before);
    bench_put(bench, BIND_REDUCE, reduce, REDUCE_SIZE * sizeof *reduce);
    bench_put(bench, BIND_GRADIENTS, gradients, 4ull * bench->model.param_count);
    bench_run(bench, "check_gradients", (struct Push){.b = bench->local_size}, GROUPS);
    free(gradients);
    free(reduce);
    return get_finished(bench);
}

/* A loss that is not finite skips the step; a squared error that is not finite only spoils PSNR. */
static void test_nan_loss(void **state)
{
    static const float losses[][3] = {{NAN, 1},  {INFINITY, 1}, {1e38f, 1},       {1, INFINITY},
                                      {1, 1, 3}, {1, 1, NAN},   {1, 1, INFINITY}, {NAN, 1, 1}};
    struct bench plain = bench_of(*state, 2), drawn = bench_of(*state, 2);
    bench_set_constant(&drawn, SPEC_DISTORTION, DISTORTION_LINEAR);
    for (size_t i = 0; i < BASE_COUNT(losses); i++) {
        bool is_finite = isfinite(losses[i][0] + losses[i][2]);
        struct bench *bench = i < 4 ? &plain : &drawn;
        struct State after = run_losses(bench, usual, losses[i]);
        struct Stats *ring = bench_read(bench, BIND_STATS);
        const struct Stats *stats = &ring[usual.step % STATS_RING];
        assert_int_equal(after.nonfinite, !is_finite);
        assert_int_equal(after.skipped_steps, usual.skipped_steps + !is_finite);
        assert_true(stats->coarse_loss < 0); /* there is no coarse field */
        if (is_finite) {
            assert_close(stats->loss, losses[i][0] / usual.live_rays, 1e-6, stats->loss, "loss", i);
            assert_close(stats->distortion_loss, losses[i][2] / usual.live_rays, 1e-6,
                         stats->distortion_loss, "distortion loss", i);
        }
        free(ring);
    }
    bench_destroy(&plain);
    bench_destroy(&drawn);
}

/* The mean over no rays is 0, and does not skip the step. */
static void test_no_rays(void **state)
{
    struct bench bench = bench_of(*state, 2);
    struct State before = usual;
    before.live_rays = 0;
    struct State after = run_losses(&bench, before, (const float[3]){0, 0, 0});
    struct Stats *ring = bench_read(&bench, BIND_STATS), *stats = &ring[usual.step % STATS_RING];
    assert_true(stats->loss == 0 && stats->square == 0 && after.nonfinite == 0);
    free(ring);
    bench_destroy(&bench);
}

/* ---- dropped rays -------------------------------------------------------------------------- */

/* The gain of probabilities follows the share of kept samples, and mean loss and statistics those
 * of the step, except in skipped steps. */
static void test_keep_gain(void **state)
{
    static const struct {
        uint32_t live, reached;
        float gain, mean_loss;
    } cases[] = {
        {7000, 7000, 0, 0},        /* the first step: gain 0 means unknown */
        {3000, 7000, 0.3f, 0.1f},  /* too many */
        {1000, 7000, 0.3f, 0.1f},  /* too few */
        {0, 7000, 0.3f, 0.1f},     /* by chance none */
        {0, 0, 0.3f, 0.1f},        /* no samples: nothing is known */
        {7000, 7000, 0.3f, 0},     /* all were kept, whatever the gain */
        {0, 7000, 1000, 0.1f},     /* the largest gain */
        {7000, 7000, 1e-3f, 0.1f}, /* the smallest */
    };
    struct bench bench = bench_of(*state, 2);
    bench_set_constant(&bench, SPEC_KEEP, 1);
    bench_set_constant(&bench, SPEC_DISTORTION, DISTORTION_LINEAR);
    bench.config.keep_share = 0.25f;
    bench.config.keep_least = 0.0625f;
    bench_put(&bench, BIND_CONFIG, &bench.config, sizeof bench.config);
    for (size_t n = 0; n < 2 * BASE_COUNT(cases); n++) {
        bool good = n % 2 == 0;
        struct State before = usual;
        before.live_count = cases[n / 2].live;
        before.reached_count = cases[n / 2].reached;
        before.kept_rays = 150;
        before.keep_gain = cases[n / 2].gain;
        before.mean_loss = cases[n / 2].mean_loss;
        struct State after = run_losses(&bench, before, (const float[3]){good ? 24 : NAN, 1, 6});
        double gain = good ? reference_keep_gain(&bench.config, &before) : before.keep_gain;
        assert_close(after.keep_gain, gain, 1e-6, fmax(gain, 1e-3), "gain", n);
        assert_close(after.mean_loss, good ? 30.0 / 600 : before.mean_loss, 1e-6, 1, "loss", n);
        struct Stats *ring = bench_read(&bench, BIND_STATS);
        const struct Stats *stats = &ring[before.step % STATS_RING];
        double share = before.live_count / fmax(before.reached_count, 1);
        assert_close(stats->kept_share, share, 1e-6, 1, "kept share", n);
        assert_close(stats->keep_weight, 600.0 / 150, 1e-6, 1, "mean weight", n);
        free(ring);
    }
    bench_destroy(&bench);
}

/* ---- back-offs ----------------------------------------------------------------------------- */

/* Copies the parts of the state that reference and device must agree on. */
static void copy_scale(const struct State *from, struct State *to)
{
    to->loss_scale = from->loss_scale;
    to->good_steps = from->good_steps;
    to->skipped_steps = from->skipped_steps;
    to->updates = from->updates;
    to->settled = from->settled;
    to->backoffs = from->backoffs;
    to->tolerated = from->tolerated;
    to->rate_cuts = from->rate_cuts;
}

/* Runs good (g) and bad (b) steps, and good ones in which more than 1 % of the gradients underflow
 * (u), from `start`; returns the state, in which both sides agree. */
static struct State run_steps(struct bench *bench, struct State start, const char *steps)
{
    float *gradients = base_alloc(bench->model.param_count, sizeof *gradients);
    struct State expected = start, device = start;
    bench_put(bench, BIND_CONFIG, &bench->config, sizeof bench->config);
    for (; *steps; steps++) {
        bool finite = *steps != 'b';
        device.rounded = expected.rounded = 1000;
        device.underflowed = expected.underflowed = *steps == 'u' ? 11 : 9;
        gradients[77] = finite ? 1 : INFINITY;
        struct State after = run_checks(bench, gradients, device, 1);
        reference_loss_scale(&bench->config, finite, &expected);
        copy_scale(&after, &device);
        assert_int_equal(after.nonfinite, !finite);
    }
    free(gradients);
    struct State both = start;
    copy_scale(&expected, &both);
    device.rounded = start.rounded;
    device.underflowed = start.underflowed;
    assert_memory_equal(&device, &both, sizeof both);
    return device;
}

static void check_backoffs(struct bench *bench, const char *steps, uint32_t backoffs, uint32_t cuts,
                           double scale)
{
    const struct State start = {.step = 7, .live_rays = 1, .loss_scale = 1024};
    struct State state = run_steps(bench, start, steps);
    if (state.backoffs != backoffs || state.rate_cuts != cuts || state.loss_scale != scale)
        fail_msg("after %s: %u back-offs, %u rate cuts, scale %g", steps, state.backoffs,
                 state.rate_cuts, state.loss_scale);
}

/* max_backoffs back-offs without growth of the scale between cut the learning rate. */
static void test_backoffs(void **state)
{
    struct bench bench = bench_of(*state, 2);
    bench.config.scale_kind = SCALE_DYNAMIC;
    bench.config.scale_growth = 2;
    bench.config.scale_backoff = 0.5f;
    bench.config.scale_interval = 3;
    bench.config.max_backoffs = 3;
    bench.config.rate_cut_factor = 0.5f;
    check_backoffs(&bench, "bbbbbbbb", 0, 0, 4); /* started too high: no step yet */
    check_backoffs(&bench, "bbbbg", 0, 0, 64);
    check_backoffs(&bench, "gbb", 2, 0, 256);
    check_backoffs(&bench, "gbbb", 0, 1, 128);     /* consecutive */
    check_backoffs(&bench, "gbgbggb", 0, 1, 128);  /* with good steps between */
    check_backoffs(&bench, "gbgbgggb", 1, 0, 256); /* the scale grew between */
    check_backoffs(&bench, "bbgbgb", 2, 0, 64);
    check_backoffs(&bench, "gbbbbbb", 0, 1, 16); /* no second cut before a good step */
    check_backoffs(&bench, "gbbbbgbbb", 0, 2, 8);
    check_backoffs(&bench, "gbbbggggggggg", 0, 1, 1024); /* stays cut when the scale recovers */
    bench.config.rate_cut_factor = 1;
    check_backoffs(&bench, "gbbbgbbb", 0, 0, 16);
    bench.config.rate_cut_factor = 0.5f;
    struct State last = {.live_rays = 1, .loss_scale = 1, .rate_cuts = MAX_RATE_CUTS};
    last = run_steps(&bench, last, "gbbb");
    assert_int_equal(last.rate_cuts, MAX_RATE_CUTS);
    bench.config.scale_kind = SCALE_STATIC;
    check_backoffs(&bench, "gbbbgbbb", 0, 0, 1024);
    bench.config.scale_kind = SCALE_SCHEDULE;
    check_backoffs(&bench, "gbbbgbbb", 0, 0, 1024);
    bench_destroy(&bench);
}

/* Checks a scale that starts at 1024 and doubles after three good steps, and the number of
 * tolerated overflows. */
static void check_scale(struct bench *bench, const char *steps, double scale, uint32_t tolerated)
{
    const struct State start = {.step = 7, .live_rays = 1, .loss_scale = 1024};
    struct State state = run_steps(bench, start, steps);
    if (state.loss_scale != scale || state.tolerated != tolerated)
        fail_msg("after %s: scale %g, %u tolerated", steps, state.loss_scale, state.tolerated);
}

/* The scale is lowered after `scale_hysteresis` overflows, and by each one after them. Good steps
 * do not reset that count; growth of the scale does. */
static void test_hysteresis(void **state)
{
    struct bench bench = bench_of(*state, 2);
    bench.config.scale_kind = SCALE_DYNAMIC;
    bench.config.scale_growth = 2;
    bench.config.scale_backoff = 0.5f;
    bench.config.scale_interval = 3;
    bench.config.max_backoffs = 3;
    bench.config.rate_cut_factor = 0.5f;
    check_scale(&bench, "b", 512, 0); /* default: at once */
    bench.config.scale_hysteresis = 3;
    check_scale(&bench, "bb", 1024, 2);
    check_scale(&bench, "bbbb", 256, 2);
    check_scale(&bench, "bgbggb", 512, 2); /* not consecutive */
    check_scale(&bench, "bbbgggbb", 1024, 2);
    check_scale(&bench, "bbgggbb", 2048, 2);
    check_backoffs(&bench, "gbbbb", 2, 0, 256); /* no back-off, no cut */
    check_backoffs(&bench, "gbbbbb", 0, 1, 128);
    bench.config.scale_kind = SCALE_STATIC;
    check_scale(&bench, "bbbbgggg", 1024, 0);
    bench_destroy(&bench);
}

/* While gradients underflow the scale grows every 16 good steps, until the first overflow; after an
 * overflow only the growth at the end of an interval starts that again. */
static void test_early_growth(void **state)
{
#define U15 "uuuuuuuuuuuuuuu"
#define G15 "ggggggggggggggg"
    struct bench bench = bench_of(*state, 2);
    assert_true(bench.config.scale_underflow == 0.01f);
    bench.config.scale_kind = SCALE_DYNAMIC;
    bench.config.scale_growth = 2;
    bench.config.scale_backoff = 0.5f;
    bench.config.scale_interval = 40;
    bench.config.max_backoffs = 3;
    check_scale(&bench, U15, 1024, 0);
    check_scale(&bench, U15 "g", 1024, 0); /* the 16th step decides */
    check_scale(&bench, G15 "u", 2048, 0);
    check_scale(&bench, U15 "u" U15 "u", 4096, 0);
    check_scale(&bench, U15 "u" U15 "b", 1024, 0);
    check_scale(&bench, U15 "bu" U15, 512, 0);              /* would overflow again */
    check_scale(&bench, "b" U15 U15 "uuuuuuuuuu", 2048, 0); /* no back-off: no good step yet */
    bench.config.scale_hysteresis = 2;
    check_scale(&bench, "gb" U15 U15, 1024, 1); /* tolerated, but an overflow */
    check_scale(&bench, "gb" U15 U15 U15, 2048, 0);
    check_scale(&bench, "gb" U15 U15 "uuuuuuuuuu" U15 "u", 4096, 0);
    bench.config.scale_maximum = 1500;
    check_scale(&bench, U15 "u" U15 "u", 1500, 0);
    bench.config.scale_underflow = 1;
    check_scale(&bench, U15 "u" U15 "u", 1024, 0);
    bench_destroy(&bench);
}

/* A scale stops at its limits; overflows still count there, and growth starts a new interval. */
static void test_scale_limits(void **state)
{
    struct bench bench = bench_of(*state, 2);
    /* By default the scale and its reciprocal must be normal numbers. */
    assert_true(bench.config.scale_minimum == 0x1p-126f && bench.config.scale_maximum == 0x1p126f);
    bench.config.scale_kind = SCALE_DYNAMIC;
    bench.config.scale_growth = 3;
    bench.config.scale_backoff = 0.25f;
    bench.config.scale_interval = 2;
    bench.config.scale_minimum = 100;
    bench.config.scale_maximum = 5000;
    bench.config.scale_hysteresis = 2;
    check_scale(&bench, "bbb", 100, 1);
    check_scale(&bench, "bbbbb", 100, 1);
    check_scale(&bench, "bbbbbgg", 300, 0);
    check_scale(&bench, "gggg", 5000, 0);
    check_scale(&bench, "ggggbgg", 5000, 0);
    bench.config.max_backoffs = 4;
    bench.config.rate_cut_factor = 0.5f;
    check_backoffs(&bench, "gbbbb", 3, 0, 100);
    check_backoffs(&bench, "gbbbbb", 0, 1, 100); /* counts at the limit */
    bench_destroy(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduce_float),   cmocka_unit_test(test_reduce_fixed),
        cmocka_unit_test(test_reduce_rounded), cmocka_unit_test(test_f16_sums),
        cmocka_unit_test(test_loss_scale),     cmocka_unit_test(test_nan_loss),
        cmocka_unit_test(test_no_rays),        cmocka_unit_test(test_keep_gain),
        cmocka_unit_test(test_backoffs),       cmocka_unit_test(test_hysteresis),
        cmocka_unit_test(test_scale_limits),   cmocka_unit_test(test_early_growth),
        cmocka_unit_test(test_norm_interval),  cmocka_unit_test(test_reduce_overflow),
        cmocka_unit_test(test_no_messages),
    };
    return RUN_WITH_BOTH_KERNELS(tests);
}
