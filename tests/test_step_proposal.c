/* Tests the gradient by a proposal's parameters of a whole training step, against finite
 * differences of the proposal's loss with fixed samples.
 *
 * After the first step Adam's first moments are (1 - beta1) times the unscaled gradient of the mean
 * loss over the rays. Rays, sample positions and the main field's values are the device's; the
 * proposal and the loss are the reference's. */
#include "step_probe.h"

#include "step/internal.h"

#define PROBES 48u

struct step_outcome {
    uint32_t ray_count;
    struct Ray *rays;
    struct RayResult *results, *fine_results;
    struct Sample *samples, *fine_samples;
    float (*field)[4], (*fine_field)[4];
    double *gradients;
};

/* Makes grid entries of both fields large enough to matter; returns the proposal's. Its average has
 * another density, so that confusing weights and average is noticed. */
static float *put_params(struct tiny *tiny, uint32_t seed)
{
    struct step *step = &tiny->trainer->step;
    struct random random = {seed};
    float *params = NULL;
    for (uint32_t n = 0; n < 2; n++) {
        const struct field_model *model = &step_field_setup(step, n)->model;
        const struct gpu_buffer *buffers = step_field_buffers(step, n)->at;
        free(params);
        params = tiny_read(tiny, &buffers[BIND_PARAMS]);
        for (uint32_t i = model->mlp_params; i < model->param_count; i++)
            params[i] = (float)random_between(&random, -1.5, 1.5);
        tiny_put(tiny, &buffers[BIND_PARAMS], params);
        float *average = base_alloc(model->param_count, sizeof *average);
        tiny_put(tiny, &buffers[BIND_AVERAGE], average);
        free(average);
    }
    return params;
}

static struct step_outcome run_step(struct tiny *tiny)
{
    const struct step *step = &tiny->trainer->step;
    const struct gpu_buffer *fine = step->buffers.at, *on_ray = step->sets[SET_COARSE].own.at;
    struct step_outcome outcome = {0};
    tiny_run(tiny, 1);
    struct State *state = tiny_read(tiny, &fine[BIND_STATE]);
    assert_int_equal(state->updates, 1);
    outcome.ray_count = state->ray_count;
    outcome.rays = tiny_read(tiny, &fine[BIND_RAYS]);
    outcome.results = tiny_read(tiny, &on_ray[BIND_RESULTS]);
    outcome.samples = tiny_read(tiny, &on_ray[BIND_SAMPLES]);
    outcome.field = tiny_read(tiny, &on_ray[BIND_FIELD]);
    outcome.fine_results = tiny_read(tiny, &fine[BIND_RESULTS]);
    outcome.fine_samples = tiny_read(tiny, &fine[BIND_SAMPLES]);
    outcome.fine_field = tiny_read(tiny, &fine[BIND_FIELD]);
    float *moments = tiny_read(tiny, &step->coarse.at[BIND_MOMENT1]);
    uint32_t count = step->coarse_setup.model.param_count;
    outcome.gradients = base_alloc(count, sizeof *outcome.gradients);
    for (uint32_t i = 0; i < count; i++)
        outcome.gradients[i] = moments[i] / (1 - (double)step->setup.constants.beta1);
    free(moments);
    free(state);
    return outcome;
}

static void outcome_destroy(struct step_outcome *outcome)
{
    void *all[] = {outcome->rays,       outcome->results,      outcome->fine_results,
                   outcome->samples,    outcome->fine_samples, outcome->field,
                   outcome->fine_field, outcome->gradients};
    for (size_t i = 0; i < BASE_COUNT(all); i++)
        free(all[i]);
}

static void position_of(const struct Ray *ray, const struct Sample *sample, double position[3])
{
    for (int i = 0; i < 3; i++)
        position[i] = ray->origin[i] + (double)sample->t * ray->direction[i];
}

/* Computes the edges of bins, and the proposal's density at their samples. */
static void make_bins(const struct reference_field *field, const struct step *step,
                      const struct step_outcome *outcome, uint32_t r,
                      struct reference_interval *bins)
{
    const struct reference_stepping stepping =
        reference_stepping(&step->setup.constants, field->space.contracted);
    const struct Ray *ray = &outcome->rays[r];
    uint32_t count = outcome->results[r].count;
    double first = ray->step;
    for (uint32_t i = 0; i < count; i++) {
        const struct Sample *sample = &outcome->samples[outcome->results[r].first + i];
        double size = (ray->last - first) / count, position[3];
        position_of(ray, sample, position);
        bins[i] = (struct reference_interval){
            .begin = reference_distance_after(&stepping, first + size * i),
            .end = reference_distance_after(&stepping, first + size * (i + 1)),
            .width = sample->width * reference_shrinking(&field->space, position),
            .density = reference_density(field, position),
        };
    }
}

/* Computes each bin's share of the samples (Mip-NeRF 360, section 3.1 and equation 18): its weight,
 * blurred and annealed. After one of eight steps the power is 10 / 8 / (9 / 8 + 1). */
static void make_shares(const struct reference_interval *bins, uint32_t count, double *shares)
{
    double weights[MAX_COARSE_SAMPLES + 2] = {0}, transmittance = 1;
    for (uint32_t i = 0; i < count; i++) {
        weights[i + 1] = -transmittance * expm1(-bins[i].density * bins[i].width);
        transmittance -= weights[i + 1];
    }
    weights[0] = weights[1];
    weights[count + 1] = weights[count];
    for (uint32_t i = 0; i < count; i++) {
        double blurred =
            (fmax(weights[i], weights[i + 1]) + fmax(weights[i + 1], weights[i + 2])) / 2;
        shares[i] = pow(blurred + 0.05 / count, 10.0 / 17);
    }
}

/* Returns the distance at which the CDF of the shares is `cdf`; it is linear within a bin. */
static double distance_of(const struct reference_stepping *stepping,
                          const struct reference_interval *bins, uint32_t count,
                          const double *shares, double cdf)
{
    double all = 0;
    uint32_t i = 0;
    for (uint32_t k = 0; k < count; k++)
        all += shares[k];
    for (cdf *= all; i + 1 < count && cdf >= shares[i]; i++)
        cdf -= shares[i];
    double begin = reference_steps_to(stepping, bins[i].begin);
    double size = reference_steps_to(stepping, bins[i].end) - begin;
    return reference_distance_after(stepping, begin + size * cdf / shares[i]);
}

/* Samples fill the intervals between edges; one edge is drawn in each of equally large strata. */
static void check_places(const struct reference_field *field, const struct step *step,
                         const struct step_outcome *outcome, uint32_t r)
{
    const struct Config *constants = &step->setup.constants;
    const struct reference_stepping stepping =
        reference_stepping(constants, field->space.contracted);
    struct reference_interval bins[MAX_COARSE_SAMPLES];
    double shares[MAX_COARSE_SAMPLES], edges[MAX_COARSE_SAMPLES];
    uint32_t count = outcome->fine_results[r].count, edge_count = constants->fine_samples + 1;
    assert_true(count == 0 || count + 1 == edge_count);
    make_bins(field, step, outcome, r, bins);
    make_shares(bins, outcome->results[r].count, shares);
    for (uint32_t k = 0; count > 0 && k < edge_count; k++) {
        double unit[3];
        reference_random_unit(constants->seed, 1, r * edge_count + k, 33, unit);
        edges[k] = distance_of(&stepping, bins, outcome->results[r].count, shares,
                               (k + unit[0]) / edge_count);
    }
    for (uint32_t k = 0; k < count; k++) {
        const struct Sample *sample = &outcome->fine_samples[outcome->fine_results[r].first + k];
        check_close(sample->t - sample->width / 2, edges[k], 1e-4, edges[k], "begin", k);
        check_close(sample->t + sample->width / 2, edges[k + 1], 1e-4, edges[k + 1], "end", k);
    }
}

static double ray_loss(const struct reference_field *field, const struct step *step,
                       const struct step_outcome *outcome, uint32_t r)
{
    struct reference_interval bins[MAX_COARSE_SAMPLES], samples[MAX_COARSE_SAMPLES];
    const struct reference_ray_bins ray = {bins, outcome->results[r].count};
    uint32_t first = outcome->fine_results[r].first, count = outcome->fine_results[r].count;
    make_bins(field, step, outcome, r, bins);
    for (uint32_t k = 0; k < count; k++) {
        const struct Sample *sample = &outcome->fine_samples[first + k];
        double position[3];
        position_of(&outcome->rays[r], sample, position);
        samples[k] = (struct reference_interval){
            .begin = sample->t - 0.5 * sample->width,
            .end = sample->t + 0.5 * sample->width,
            .width = sample->width * reference_shrinking(&field->space, position),
            .density = outcome->fine_field[first + k][3],
        };
    }
    return reference_interlevel(&ray, samples, count, NULL, NULL);
}

static double sum_losses(const struct reference_field *field, const struct step *step,
                         const struct step_outcome *outcome)
{
    double sum = 0;
    for (uint32_t r = 0; r < outcome->ray_count; r++)
        sum += ray_loss(field, step, outcome, r);
    return step->setup.config.loss.interlevel * sum;
}

static double probed_loss(const struct probed *probed, uint32_t parameter)
{
    (void)parameter;
    return sum_losses(probed->field, probed->step, probed->outcome) / probed->outcome->ray_count;
}

/* Checks the proposal's values, the samples drawn from them, and the loss sums for check_gradients.
 */
static void check_forward(const struct tiny *tiny, const struct reference_field *field,
                          const struct step_outcome *outcome)
{
    const struct step *step = &tiny->trainer->step;
    double loss = sum_losses(field, step, outcome);
    uint32_t outside = 0, found = 0;
    for (uint32_t r = 0; r < outcome->ray_count; r++) {
        check_places(field, step, outcome, r);
        found += outcome->fine_results[r].count > 0;
        for (uint32_t i = 0; i < outcome->results[r].count; i++) {
            uint32_t at = outcome->results[r].first + i;
            double position[3];
            position_of(&outcome->rays[r], &outcome->samples[at], position);
            double expected = reference_density(field, position);
            outside += reference_shrinking(&field->space, position) < 1;
            check_close(outcome->field[at][3], expected, 1e-4, expected, "density of bin", at);
            assert_true(outcome->field[at][0] == 0 && outcome->field[at][2] == 0);
        }
    }
    float *reduce = tiny_read(tiny, &step->buffers.at[BIND_REDUCE]);
    assert_true(found > outcome->ray_count / 2 && loss > 1e-3);
    assert_true(!field->space.contracted || outside > 100);
    check_close(reduce[REDUCE_COARSE], loss, 1e-4, loss, "loss", 0);
    free(reduce);
}

static void check_step(const struct step_tests *tests, struct vkn_config config, uint32_t seed)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    const struct step *step = &tiny.trainer->step;
    const struct setup *setup = &step->coarse_setup;
    float *params = put_params(&tiny, seed);
    struct step_outcome outcome = run_step(&tiny);
    struct reference_field field = reference_field(&setup->config, &setup->model, params);
    struct random random = {seed};
    const struct probed probed = {probed_loss, &field, step, &outcome, outcome.gradients};
    check_forward(&tiny, &field, &outcome);
    probe(&probed, 0, setup->model.mlp_params, PROBES, &random, "gradient of weight");
    probe(&probed, setup->model.mlp_params, setup->model.param_count, PROBES, &random,
          "gradient of grid parameter");
    reference_field_destroy(&field);
    outcome_destroy(&outcome);
    free(params);
    tiny_destroy(&tiny);
}

static struct vkn_config config_of(bool deterministic)
{
    struct vkn_config config = tiny_config(deterministic);
    config.optimizer.weight_decay = -1; /* none: the gradient is that of the loss */
    tiny_propose(&config);
    config.loss.interlevel = 0.6f;
    return config;
}

static void test_float(void **state)
{
    check_step(*state, config_of(false), 1);
}

static void test_fixed_point(void **state)
{
    check_step(*state, config_of(true), 2);
}

/* Contracted space, a wider MLP, a scaled loss, densities before colours. */
static void test_variant(void **state)
{
    struct vkn_config config = config_of(false);
    config.scene.contraction = VKN_CONTRACTION_CUBE;
    config.march.cone_angle = 1.0f / 32;
    config.march.visibility = VKN_SWITCH_ON;
    config.loss_scale.kind = VKN_LOSS_SCALE_DYNAMIC;
    config.loss_scale.initial = 4096;
    config.proposal.width = 32;
    config.proposal.levels = 3;
    check_step(*state, config, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float),
        cmocka_unit_test(test_fixed_point),
        cmocka_unit_test(test_variant),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
