/* Tests reduce_gradients, check_gradients with the loss scale, and finish_step. */
#include "certify/optim.h"

/* ---- reduce_gradients ---------------------------------------------------------------------- */

static void check_sums(const struct fixture *fixture, const float *partials, const float *device)
{
    for (uint32_t i = 0; i < fixture->model.mlp_params; i++) {
        double sum = 0;
        for (uint32_t group = 0; group < fixture->config.backward_groups; group++)
            sum += partials[group * fixture->model.mlp_params + i];
        check_close(device[i], sum, 1e-6, 7, "sum of weight", i);
    }
}

static void test_reduce_float(struct gpu_device *device)
{
    struct fixture fixture = optim_fixture(device, 2);
    struct random random = {800};
    uint32_t mlp = fixture.model.mlp_params;
    float *partials = random_floats(&random, 7ull * mlp, -1, 1);
    fixture_put(&fixture, BIND_PARTIALS, partials, 28ull * mlp);
    fixture_run(&fixture, "reduce_gradients", (struct Push){.b = fixture.local_size}, 3);
    float *result = fixture_read(&fixture, BIND_GRADIENTS);
    check_sums(&fixture, partials, result);
    check_poisoned(result, mlp, fixture.model.param_count); /* not the grid's */
    free(result);
    free(partials);
    fixture_destroy(&fixture);
}

/* A sum that is not finite, or too large for sums of sums, raises nonfinite, of whichever
 * parameter. */
static void test_reduce_overflow(struct gpu_device *device)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, -0x1p96f, 0x1p94f};
    struct fixture fixture = optim_fixture(device, 2);
    uint32_t mlp = fixture.model.mlp_params;
    float *partials = base_alloc(7ull * mlp, sizeof *partials);
    for (uint32_t n = 0; n < BASE_COUNT(bad); n++) {
        uint32_t at = n % 2 ? 7 * mlp - 1 : n * 77;
        partials[at] = bad[n];
        fixture_put(&fixture, BIND_PARTIALS, partials, 28ull * mlp);
        optim_put_state(&fixture, (struct State){.loss_scale = 128, .ray_count = 960});
        fixture_run(&fixture, "reduce_gradients", (struct Push){.b = fixture.local_size}, 3);
        struct State state;
        fixture_get(&fixture, BIND_STATE, &state, sizeof state);
        check_equal(state.nonfinite, bad[n] != 0x1p94f);
        partials[at] = 0;
    }
    free(partials);
    fixture_destroy(&fixture);
}

/* Rounded to f16 after each workgroup, a sum of 2048 does not change by the others' 0.9. */
static void test_reduce_rounded(struct gpu_device *device)
{
    struct fixture fixture = optim_fixture(device, 2);
    struct random random = {802};
    uint32_t mlp = fixture.model.mlp_params;
    fixture_set_constant(&fixture, SPEC_ROUNDED, ROUND_WEIGHT_SUMS);
    float *partials = random_floats(&random, 7ull * mlp, -1, 1);
    for (uint32_t group = 0; group < 7; group++)
        partials[group * mlp] = group ? 0.9f : 2048;
    fixture_put(&fixture, BIND_PARTIALS, partials, 28ull * mlp);
    fixture_run(&fixture, "reduce_gradients", (struct Push){.b = fixture.local_size}, 3);
    float *result = fixture_read(&fixture, BIND_GRADIENTS);
    check_that(result[0] == 2048);
    for (uint32_t i = 1; i < mlp; i++) {
        double sum = 0;
        for (uint32_t group = 0; group < 7; group++)
            sum = reference_round_to_f16(sum + partials[group * mlp + i]);
        check_that((double)result[i] == reference_round_to_f16(result[i]));
        check_close(result[i], sum, 2e-2, 1, "sum of weight", i);
    }
    free(result);
    free(partials);
    fixture_destroy(&fixture);
}

/* Fixed-point sums of any size and sign, many of them zero, some with a word of only ones or zeros;
 * the pass sets all to zero. */
static void test_reduce_fixed(struct gpu_device *device)
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
        INT64_MAX - (INT64_C(1) << 31), /* the largest sum */
        INT64_MIN,
    };
    struct fixture fixture = optim_fixture(device, 4);
    struct random random = {801};
    uint32_t mlp = fixture.model.mlp_params, count = fixture.model.param_count;
    float *partials = random_floats(&random, 7ull * mlp, -1, 1);
    int64_t *sums = base_alloc(count, sizeof *sums);
    for (uint32_t i = mlp; i < count; i++)
        if (random_below(&random, 3) > 0) {
            uint64_t bits = (uint64_t)random_word(&random) << 32 | random_word(&random);
            sums[i] = (int64_t)bits >> random_below(&random, 60);
        }
    memcpy(sums + mlp, edges, sizeof edges);
    optim_put_state(&fixture, (struct State){.loss_scale = 128, .ray_count = 960});
    fixture_put(&fixture, BIND_PARTIALS, partials, 28ull * mlp);
    int32_t(*words)[2] = base_alloc(count, sizeof *words);
    for (uint32_t i = 0; i < count; i++) {
        words[i][0] = (int32_t)(uint32_t)(uint64_t)sums[i];
        words[i][1] = (int32_t)((sums[i] - words[i][0]) / (INT64_C(1) << 32));
    }
    fixture_put(&fixture, BIND_ACCUMULATORS, words, 8ull * count);
    free(words);
    fixture_run(&fixture, "reduce_gradients_fixed", (struct Push){.b = fixture.local_size}, 5);
    float *result = fixture_read(&fixture, BIND_GRADIENTS);
    int64_t *after = fixture_read(&fixture, BIND_ACCUMULATORS);
    check_sums(&fixture, partials, result);
    for (uint32_t i = mlp; i < count; i++) {
        double expected = ldexp((double)sums[i], -42) * 128 / 960;
        check_close(result[i], expected, 3e-7, fabs(expected) + 0x1p-40, "fixed-point sum", i);
        check_equal(after[i], 0);
    }
    free(result);
    free(after);
    free(sums);
    free(partials);
    fixture_destroy(&fixture);
}

/* ---- check_gradients ----------------------------------------------------------------------- */

static double norm_of(const float *gradients, uint32_t count, double scale)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += gradients[i] / scale * (gradients[i] / scale);
    return sqrt(sum);
}

/* Without clipping the norm is computed in every 16th step and in the last one; a step without it
 * keeps the state's norm, and relies on the passes before it to find gradients that are not
 * finite. */
static void test_norm_interval(struct gpu_device *device)
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
    struct fixture fixture = optim_fixture(device, 2);
    uint32_t count = fixture.model.param_count;
    float *gradients = random_floats(&random, count, -1, 1);
    fixture.config.norm_interval = UPDATE_INTERVAL;
    for (size_t n = 0; n < BASE_COUNT(cases); n++) {
        const struct Control control = {.step_limit = cases[n].limit};
        fixture.config.total_steps = cases[n].total;
        fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
        fixture_put(&fixture, BIND_CONTROL, &control, sizeof control);
        struct State before = optim_usual;
        before.step = cases[n].step;
        before.grad_norm = 7;
        gradients[3] = cases[n].has_norm ? 0.5f : NAN; /* is not read without the norm */
        struct State after = optim_run_checks(&fixture, gradients, before, 5);
        struct Stats *ring = fixture_read(&fixture, BIND_STATS);
        double norm = norm_of(gradients, count, before.loss_scale);
        check_equal(after.nonfinite, 0);
        check_close(after.grad_norm, cases[n].has_norm ? norm : 7, 1e-5, 7, "norm of case", n);
        check_close(ring[before.step % STATS_RING].grad_norm, cases[n].has_norm ? norm : -1, 1e-5,
                    1, "reported norm of case", n);
        free(ring);
    }
    free(gradients);
    fixture_destroy(&fixture);
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

static void test_loss_scale(struct gpu_device *device)
{
    struct random random = {810};
    struct fixture fixture = optim_fixture(device, 2);
    uint32_t count = fixture.model.param_count;
    fixture.config.scale_growth = 2;
    fixture.config.scale_backoff = 0.5f;
    for (size_t n = 0; n < BASE_COUNT(scalings); n++) {
        const struct scaling *scaling = &scalings[n];
        float *gradients =
            random_floats(&random, count, -3.0 * scaling->scale, 3.0 * scaling->scale);
        uint32_t losses = n % 2 ? 1 : 131, bad_index = n % 3 == 0 ? count - 1 : n % 3 * 1234;
        if (scaling->bad != 0 || isnan(scaling->bad))
            gradients[bad_index] = scaling->bad;
        fixture.config.scale_kind = scaling->kind;
        fixture.config.scale_interval = scaling->interval;
        fixture.config.clip_norm = scaling->clip;
        fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
        struct State before = optim_usual;
        before.good_steps = scaling->good_steps;
        before.loss_scale = scaling->scale;
        before.nonfinite = scaling->nonfinite;
        before.step += (uint32_t)n;
        before.rounded = (uint32_t)(n % 4 << 2 * n); /* none, few, very many */
        before.underflowed = n % 4 == 1 ? before.rounded : before.rounded / 3;
        /* A square beyond FLT_MAX makes the norm infinite too. */
        double norm = norm_of(gradients, count, scaling->scale);
        norm = norm * norm > FLT_MAX ? INFINITY : norm;
        struct State after = optim_run_checks(&fixture, gradients, before, losses);
        optim_check_state(&fixture, &before, &after, norm);
        optim_check_stats(&fixture, &before, &after, losses);
        free(gradients);
    }
    fixture_destroy(&fixture);
}

/* The norm of gradients whose grid part is packed f16 sums, with and without inf and nan among
 * them. Words where f32 gradients would be are not read. */
static void test_f16_sums(struct gpu_device *device)
{
    struct fixture fixture = optim_fixture_of_sums(device, 4, VKN_SUMS_F16);
    struct random random = {811};
    uint32_t count = fixture.model.param_count, mlp = fixture.model.mlp_params;
    const uint32_t bad[] = {count, mlp, mlp + 1, count - 1};
    for (size_t n = 0; n < BASE_COUNT(bad); n++) {
        float *gradients = random_floats(&random, count, -1000, 1000);
        uint16_t *sums = base_alloc(count, sizeof *sums);
        for (uint32_t i = mlp; i < count; i++) {
            sums[i] = (uint16_t)(random_word(&random) & 0xbfff); /* below 2 */
            sums[i] = i != bad[n] ? sums[i] : n == 2 ? 0x7e00 : 0xfc00;
            gradients[i] = (float)reference_f16(sums[i]);
        }
        double norm = norm_of(gradients, count, optim_usual.loss_scale);
        check_that(isfinite(norm) == (n == 0));
        for (uint32_t i = mlp; i < count; i++)
            gradients[i] = NAN;
        fixture_put(&fixture, BIND_ACCUMULATORS, sums, 2ull * count);
        struct State after = optim_run_checks(&fixture, gradients, optim_usual, 1);
        check_equal(after.nonfinite, n > 0);
        if (n == 0)
            check_close(after.grad_norm, norm, 1e-5, norm, "gradient norm", 0);
        free(sums);
        free(gradients);
    }
    fixture_destroy(&fixture);
}

/* A loss that is not finite skips the step; a squared error that is not finite only spoils PSNR. */
static void test_nan_loss(struct gpu_device *device)
{
    static const float losses[][3] = {{NAN, 1},  {INFINITY, 1}, {1e38f, 1},       {1, INFINITY},
                                      {1, 1, 3}, {1, 1, NAN},   {1, 1, INFINITY}, {NAN, 1, 1}};
    struct fixture plain = optim_fixture(device, 2), drawn = optim_fixture(device, 2);
    fixture_set_constant(&drawn, SPEC_DISTORTION, DISTORTION_LINEAR);
    for (size_t i = 0; i < BASE_COUNT(losses); i++) {
        bool is_finite = isfinite(losses[i][0] + losses[i][2]);
        struct fixture *fixture = i < 4 ? &plain : &drawn;
        struct State after = optim_run_losses(fixture, optim_usual, losses[i]);
        struct Stats *ring = fixture_read(fixture, BIND_STATS);
        const struct Stats *stats = &ring[optim_usual.step % STATS_RING];
        check_equal(after.nonfinite, !is_finite);
        check_equal(after.skipped_steps, optim_usual.skipped_steps + !is_finite);
        check_that(stats->coarse_loss < 0); /* there is no coarse field */
        if (is_finite) {
            check_close(stats->loss, losses[i][0] / optim_usual.live_rays, 1e-6, stats->loss,
                        "loss", i);
            check_close(stats->distortion_loss, losses[i][2] / optim_usual.live_rays, 1e-6,
                        stats->distortion_loss, "distortion loss", i);
        }
        free(ring);
    }
    fixture_destroy(&plain);
    fixture_destroy(&drawn);
}

/* The mean over no rays is 0, and does not skip the step. */
static void test_no_rays(struct gpu_device *device)
{
    struct fixture fixture = optim_fixture(device, 2);
    struct State before = optim_usual;
    before.live_rays = 0;
    struct State after = optim_run_losses(&fixture, before, (const float[3]){0, 0, 0});
    struct Stats *ring = fixture_read(&fixture, BIND_STATS),
                 *stats = &ring[optim_usual.step % STATS_RING];
    check_that(stats->loss == 0 && stats->square == 0 && after.nonfinite == 0);
    free(ring);
    fixture_destroy(&fixture);
}

/* ---- dropped rays -------------------------------------------------------------------------- */

/* The gain of probabilities follows the share of kept samples, and mean loss and statistics those
 * of the step, except in skipped steps. */
static void test_keep_gain(struct gpu_device *device)
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
    struct fixture fixture = optim_fixture(device, 2);
    fixture_set_constant(&fixture, SPEC_KEEP, 1);
    fixture_set_constant(&fixture, SPEC_DISTORTION, DISTORTION_LINEAR);
    fixture.config.keep_share = 0.25f;
    fixture.config.keep_least = 0.0625f;
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    for (size_t n = 0; n < 2 * BASE_COUNT(cases); n++) {
        bool good = n % 2 == 0;
        struct State before = optim_usual;
        before.live_count = cases[n / 2].live;
        before.reached_count = cases[n / 2].reached;
        before.kept_rays = 150;
        before.keep_gain = cases[n / 2].gain;
        before.mean_loss = cases[n / 2].mean_loss;
        struct State after =
            optim_run_losses(&fixture, before, (const float[3]){good ? 24 : NAN, 1, 6});
        double gain = good ? reference_keep_gain(&fixture.config, &before) : before.keep_gain;
        check_close(after.keep_gain, gain, 1e-6, fmax(gain, 1e-3), "gain", n);
        check_close(after.mean_loss, good ? 30.0 / 600 : before.mean_loss, 1e-6, 1, "loss", n);
        struct Stats *ring = fixture_read(&fixture, BIND_STATS);
        const struct Stats *stats = &ring[before.step % STATS_RING];
        double share = before.live_count / fmax(before.reached_count, 1);
        check_close(stats->kept_share, share, 1e-6, 1, "kept share", n);
        check_close(stats->keep_weight, 600.0 / 150, 1e-6, 1, "mean weight", n);
        free(ring);
    }
    fixture_destroy(&fixture);
}

/* ---- back-offs ----------------------------------------------------------------------------- */

/* max_backoffs back-offs without growth of the scale between cut the learning rate. */
static void test_backoffs(struct gpu_device *device)
{
    struct fixture fixture = optim_fixture(device, 2);
    fixture.config.scale_kind = SCALE_DYNAMIC;
    fixture.config.scale_growth = 2;
    fixture.config.scale_backoff = 0.5f;
    fixture.config.scale_interval = 3;
    fixture.config.max_backoffs = 3;
    fixture.config.rate_cut_factor = 0.5f;
    optim_check_backoffs(&fixture, "bbbbbbbb", 0, 0, 4); /* started too high: no step yet */
    optim_check_backoffs(&fixture, "bbbbg", 0, 0, 64);
    optim_check_backoffs(&fixture, "gbb", 2, 0, 256);
    optim_check_backoffs(&fixture, "gbbb", 0, 1, 128);     /* consecutive */
    optim_check_backoffs(&fixture, "gbgbggb", 0, 1, 128);  /* with good steps between */
    optim_check_backoffs(&fixture, "gbgbgggb", 1, 0, 256); /* the scale grew between */
    optim_check_backoffs(&fixture, "bbgbgb", 2, 0, 64);
    optim_check_backoffs(&fixture, "gbbbbbb", 0, 1, 16); /* no second cut before a good step */
    optim_check_backoffs(&fixture, "gbbbbgbbb", 0, 2, 8);
    optim_check_backoffs(&fixture, "gbbbggggggggg", 0, 1,
                         1024); /* stays cut when the scale recovers */
    fixture.config.rate_cut_factor = 1;
    optim_check_backoffs(&fixture, "gbbbgbbb", 0, 0, 16);
    fixture.config.rate_cut_factor = 0.5f;
    struct State last = {.live_rays = 1, .loss_scale = 1, .rate_cuts = MAX_RATE_CUTS};
    last = optim_run_steps(&fixture, last, "gbbb");
    check_equal(last.rate_cuts, MAX_RATE_CUTS);
    fixture.config.scale_kind = SCALE_STATIC;
    optim_check_backoffs(&fixture, "gbbbgbbb", 0, 0, 1024);
    fixture.config.scale_kind = SCALE_SCHEDULE;
    optim_check_backoffs(&fixture, "gbbbgbbb", 0, 0, 1024);
    fixture_destroy(&fixture);
}

/* The scale is lowered after `scale_hysteresis` overflows, and by each one after them. Good steps
 * do not reset that count; growth of the scale does. */
static void test_hysteresis(struct gpu_device *device)
{
    struct fixture fixture = optim_fixture(device, 2);
    fixture.config.scale_kind = SCALE_DYNAMIC;
    fixture.config.scale_growth = 2;
    fixture.config.scale_backoff = 0.5f;
    fixture.config.scale_interval = 3;
    fixture.config.max_backoffs = 3;
    fixture.config.rate_cut_factor = 0.5f;
    optim_check_scale(&fixture, "b", 512, 0); /* default: at once */
    fixture.config.scale_hysteresis = 3;
    optim_check_scale(&fixture, "bb", 1024, 2);
    optim_check_scale(&fixture, "bbbb", 256, 2);
    optim_check_scale(&fixture, "bgbggb", 512, 2); /* not consecutive */
    optim_check_scale(&fixture, "bbbgggbb", 1024, 2);
    optim_check_scale(&fixture, "bbgggbb", 2048, 2);
    optim_check_backoffs(&fixture, "gbbbb", 2, 0, 256); /* no back-off, no cut */
    optim_check_backoffs(&fixture, "gbbbbb", 0, 1, 128);
    fixture.config.scale_kind = SCALE_STATIC;
    optim_check_scale(&fixture, "bbbbgggg", 1024, 0);
    fixture_destroy(&fixture);
}

/* While gradients underflow the scale grows every 16 good steps, until the first overflow; after an
 * overflow only the growth at the end of an interval starts that again. */
static void test_early_growth(struct gpu_device *device)
{
#define U15 "uuuuuuuuuuuuuuu"
#define G15 "ggggggggggggggg"
    struct fixture fixture = optim_fixture(device, 2);
    check_that(fixture.config.scale_underflow == 0.01f);
    fixture.config.scale_kind = SCALE_DYNAMIC;
    fixture.config.scale_growth = 2;
    fixture.config.scale_backoff = 0.5f;
    fixture.config.scale_interval = 40;
    fixture.config.max_backoffs = 3;
    optim_check_scale(&fixture, U15, 1024, 0);
    optim_check_scale(&fixture, U15 "g", 1024, 0); /* the 16th step decides */
    optim_check_scale(&fixture, G15 "u", 2048, 0);
    optim_check_scale(&fixture, U15 "u" U15 "u", 4096, 0);
    optim_check_scale(&fixture, U15 "u" U15 "b", 1024, 0);
    optim_check_scale(&fixture, U15 "bu" U15, 512, 0); /* would overflow again */
    optim_check_scale(&fixture, "b" U15 U15 "uuuuuuuuuu", 2048,
                      0); /* no back-off: no good step yet */
    fixture.config.scale_hysteresis = 2;
    optim_check_scale(&fixture, "gb" U15 U15, 1024, 1); /* tolerated, but an overflow */
    optim_check_scale(&fixture, "gb" U15 U15 U15, 2048, 0);
    optim_check_scale(&fixture, "gb" U15 U15 "uuuuuuuuuu" U15 "u", 4096, 0);
    fixture.config.scale_maximum = 1500;
    optim_check_scale(&fixture, U15 "u" U15 "u", 1500, 0);
    fixture.config.scale_underflow = 1;
    optim_check_scale(&fixture, U15 "u" U15 "u", 1024, 0);
    fixture_destroy(&fixture);
}

/* A scale stops at its limits; overflows still count there, and growth starts a new interval. */
static void test_scale_limits(struct gpu_device *device)
{
    struct fixture fixture = optim_fixture(device, 2);
    /* By default the scale and its reciprocal must be normal numbers. */
    check_that(fixture.config.scale_minimum == 0x1p-126f &&
               fixture.config.scale_maximum == 0x1p126f);
    fixture.config.scale_kind = SCALE_DYNAMIC;
    fixture.config.scale_growth = 3;
    fixture.config.scale_backoff = 0.25f;
    fixture.config.scale_interval = 2;
    fixture.config.scale_minimum = 100;
    fixture.config.scale_maximum = 5000;
    fixture.config.scale_hysteresis = 2;
    optim_check_scale(&fixture, "bbb", 100, 1);
    optim_check_scale(&fixture, "bbbbb", 100, 1);
    optim_check_scale(&fixture, "bbbbbgg", 300, 0);
    optim_check_scale(&fixture, "gggg", 5000, 0);
    optim_check_scale(&fixture, "ggggbgg", 5000, 0);
    fixture.config.max_backoffs = 4;
    fixture.config.rate_cut_factor = 0.5f;
    optim_check_backoffs(&fixture, "gbbbb", 3, 0, 100);
    optim_check_backoffs(&fixture, "gbbbbb", 0, 1, 100); /* counts at the limit */
    fixture_destroy(&fixture);
}

/* ---- finish_step --------------------------------------------------------------------------- */

/* One dispatch leaves the bits that three passes leave, with both kinds of sums, whether the sums
 * are finite or the last one is not. */
static void test_finish_step(struct gpu_device *device)
{
    for (int n = 0; n < 4; n++)
        optim_check_finish(device, n < 2 ? VKN_SUMS_DEFAULT : VKN_SUMS_FIXED, n % 2 ? NAN : 1);
}

static const struct certify_test tests[] = {
    TEST_BOTH(test_reduce_float),  TEST_BOTH(test_reduce_fixed),    TEST_BOTH(test_reduce_rounded),
    TEST_BOTH(test_f16_sums),      TEST_BOTH(test_loss_scale),      TEST_BOTH(test_nan_loss),
    TEST_BOTH(test_no_rays),       TEST_BOTH(test_keep_gain),       TEST_BOTH(test_backoffs),
    TEST_BOTH(test_hysteresis),    TEST_BOTH(test_scale_limits),    TEST_BOTH(test_early_growth),
    TEST_BOTH(test_norm_interval), TEST_BOTH(test_reduce_overflow), TEST_BOTH(test_finish_step),
};
const struct certify_part certify_optim = {"optim", tests, BASE_COUNT(tests)};
