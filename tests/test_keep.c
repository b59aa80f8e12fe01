/* Tests whole steps in which rays are dropped before the backward pass (batch.keep): the share of
 * kept samples, the number of rays, and checkpoints. */
#include "step_fixture.h"

#define STEPS 96u
#define BEGIN 32u /* steps in which the share has not converged yet */
#define KEEP  0.3f

static struct vkn_config config_of(enum vkn_sampling sampling)
{
    struct vkn_config config = tiny_config(false);
    config.steps = STEPS;
    config.batch.max_rays = 2048;
    config.march.early_stop = 0.5f; /* so that most marched samples are not live */
    if (sampling == VKN_SAMPLING_PROPOSAL)
        tiny_propose(&config);
    config.march.sampling = sampling;
    config.march.ray_samples = 20;
    if (sampling == VKN_SAMPLING_HIERARCHICAL) {
        config.march.coarse_samples = 10;
        config.march.fine_samples = 14;
    }
    return config;
}

/* Means over the steps after BEGIN. */
struct figures {
    double share, weight, rays, live, samples;
};

static struct vkn_train_stats reported; /* of the last report */

static void store_report(void *context, const struct vkn_train_stats *stats)
{
    (void)context;
    reported = *stats;
}

static struct figures train(struct step_tests *tests, const struct vkn_config *config)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    struct figures sums = {0};
    const struct vkn_train_run run = {.until_step = STEPS, .report = store_report};
    ok(vkn_trainer_run(tiny.trainer, &run));
    const struct Stats *stats = tiny.trainer->step.buffers.at[BIND_STATS].mapped;
    struct State *state = tiny_read(&tiny, &tiny.trainer->step.buffers.at[BIND_STATE]);
    for (uint32_t step = BEGIN + 1; step <= STEPS; step++) {
        double steps = STEPS - BEGIN;
        assert_true(stats[step].samples <= tiny.trainer->step.setup.constants.sample_capacity);
        sums.share += (double)stats[step].kept_share / steps;
        sums.weight += (double)stats[step].keep_weight / steps;
        sums.rays += stats[step].rays / steps;
        sums.live += stats[step].live / steps;
        sums.samples += stats[step].samples / steps;
    }
    assert_true(reported.kept_share == (double)stats[STEPS].kept_share);
    assert_true(reported.keep_weight == (double)stats[STEPS].keep_weight);
    assert_true(stats[STEPS].loss < 0.7f * stats[1].loss);
    if (config->batch.keep < 1 && config->batch.keep > 0) {
        check_close(stats[STEPS].kept_share, (double)state->live_count / state->reached_count, 1e-6,
                    1, "share", STEPS);
        assert_true(state->live_count < state->reached_count);
        assert_true(state->reached_count <= state->sample_count);
        assert_true(stats[1].kept_share == 1); /* no loss is known yet */
    } else {
        assert_int_equal(state->reached_count | state->kept_rays, 0);
        assert_true(sums.share == 0 && sums.weight == 0);
    }
    free(state);
    tiny_destroy(&tiny);
    return sums;
}

/* The share of kept samples converges to batch.keep. The number of rays grows until as many samples
 * get gradients as without dropped rays, or until no more rays fit. */
static void check_share(struct step_tests *tests, struct vkn_config config)
{
    struct figures all = train(tests, &config);
    config.batch.keep = KEEP;
    struct figures kept = train(tests, &config);
    check_close(kept.share, (double)KEEP, 0.1, (double)KEEP, "share", 0);
    /* With a proposal all rays have equally many samples, and no more rays fit. */
    assert_true(config.march.sampling == VKN_SAMPLING_PROPOSAL ? kept.rays >= all.rays
                                                               : kept.rays > all.rays);
    assert_true(kept.weight > 1 && kept.weight < 4 / (double)KEEP);
}

static void test_share(void **state)
{
    static const enum vkn_sampling samplings[] = {VKN_SAMPLING_OCCUPANCY, VKN_SAMPLING_UNIFORM,
                                                  VKN_SAMPLING_HIERARCHICAL, VKN_SAMPLING_PROPOSAL};
    for (size_t i = 0; i < BASE_COUNT(samplings); i++)
        check_share(*state, config_of(samplings[i]));
}

/* Gain and mean loss are in checkpoints, so that a resumed training has the same bits. */
static void test_resume(void **state)
{
    struct vkn_config config = config_of(VKN_SAMPLING_OCCUPANCY);
    config.deterministic = true;
    config.batch.keep = KEEP;
    char *whole = tiny_train(*state, &config, NULL, 40, "whole");
    char *part = tiny_train(*state, &config, NULL, 21, "part");
    char *resumed = tiny_train(*state, &config, part, 40, "resumed");
    config.batch.keep = 1;
    char *all = tiny_train(*state, &config, NULL, 40, "all");
    assert_true(same_checkpoints(whole, resumed));
    assert_false(same_checkpoints(whole, all));
    free(whole);
    free(part);
    free(resumed);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_resume),
    };
    if (!prepare_tests())
        return 1;
    int failed = cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
    clean_up_tests();
    return failed;
}
