/* Tests the pass interlevel, which computes the loss of a proposal, against the reference. */
#include "certify/interlevel.h"

/* ---- the pass ------------------------------------------------------------------------------ */

struct space {
    bool contracted;
    enum vkn_spacing spacing;
    uint32_t side;
};

/* The fine samples are in buffers of their own, as the proposal's sample set binds them. */
struct fine_buffers {
    struct gpu_arena *arena;
    struct gpu_buffer results, samples, field;
};

static struct fixture fixture_of(struct gpu_device *device, uint32_t bins, uint32_t fine,
                                 bool deterministic, struct space space)
{
    struct vkn_config settings = {
        .scene = {.aabb_scale = space.side,
                  .contraction = space.contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE},
        .march = {.sampling = VKN_SAMPLING_PROPOSAL,
                  .spacing = space.spacing,
                  .coarse_samples = bins,
                  .fine_samples = fine,
                  .cone_angle = space.contracted ? 1.0f / 32 : 1.0f / 256},
        .loss.interlevel = (float)WEIGHT,
        .proposal = {.levels = 2, .log2_entries = 8, .finest = 32, .width = 16},
        .batch = {.samples = 16384, .max_rays = 320},
    };
    struct fixture fixture = fixture_configure(device, settings);
    fixture_set_constant(&fixture, SPEC_DETERMINISTIC, deterministic);
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

static struct fine_buffers bind_fine(struct fixture *fixture)
{
    struct fine_buffers fine = {.arena = NULL};
    const struct gpu_buffer *bound[GPU_BINDINGS];
    struct gpu_buffer_request requests[] = {
        {&fine.results, "fine", fixture->buffers[BIND_RESULTS].size, GPU_DEVICE},
        {&fine.samples, "fine", fixture->buffers[BIND_SAMPLES].size, GPU_DEVICE},
        {&fine.field, "fine", fixture->buffers[BIND_FIELD].size, GPU_DEVICE},
    };
    check_ok(gpu_arena_create(fixture->device, requests, BASE_COUNT(requests), &fine.arena));
    for (uint32_t i = 0; i < GPU_BINDINGS; i++)
        bound[i] = &fixture->buffers[i];
    bound[BIND_FINE_RESULTS] = &fine.results;
    bound[BIND_FINE_SAMPLES] = &fine.samples;
    bound[BIND_FINE_FIELD] = &fine.field;
    gpu_bindings_destroy(&fixture->bindings);
    check_ok(gpu_bindings_create(fixture->device, bound, &fixture->bindings));
    return fine;
}

static void put_inputs(struct fixture *fixture, const struct fine_buffers *fine,
                       const struct inputs *inputs)
{
    uint32_t rays = inputs->ray_count, bins = rays * inputs->bins, samples = rays * inputs->fine;
    fixture_put(fixture, BIND_RAYS, inputs->rays, rays * sizeof *inputs->rays);
    fixture_put(fixture, BIND_RESULTS, inputs->results, rays * sizeof *inputs->results);
    fixture_put(fixture, BIND_SAMPLES, inputs->samples, bins * sizeof *inputs->samples);
    fixture_put(fixture, BIND_FIELD, inputs->field, bins * sizeof *inputs->field);
    check_ok(gpu_upload(fixture->device, &fine->results, 0, inputs->fine_results,
                        rays * sizeof *inputs->fine_results));
    check_ok(gpu_upload(fixture->device, &fine->samples, 0, inputs->fine_samples,
                        samples * sizeof *inputs->fine_samples));
    check_ok(gpu_upload(fixture->device, &fine->field, 0, inputs->fine_field,
                        samples * sizeof *inputs->fine_field));
}

/* Runs the pass in so many workgroups; returns the state. */
static struct State run(struct fixture *fixture, const struct inputs *inputs, uint32_t groups)
{
    struct State state = {.step = 1, .ray_count = inputs->ray_count, .loss_scale = LOSS_SCALE};
    struct fine_buffers fine = bind_fine(fixture);
    put_inputs(fixture, &fine, inputs);
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_poison(fixture, BIND_FIELD_GRADIENTS);
    fixture_poison(fixture, BIND_LIVE);
    fixture_poison(fixture, BIND_REDUCE);
    fixture_run(fixture, "interlevel", (struct Push){0}, groups);
    fixture_get(fixture, BIND_STATE, &state, sizeof state);
    gpu_arena_destroy(&fine.arena);
    return state;
}

static double check_losses(struct fixture *fixture, const struct outcome *outcome, uint32_t groups)
{
    float *reduce = fixture_read(fixture, BIND_REDUCE);
    double loss = 0;
    for (uint32_t g = 0; g < groups; g++) {
        loss += reduce[REDUCE_LOSS + 2 * g];
        check_that(reduce[REDUCE_LOSS + 2 * g + 1] == 0); /* PSNR counts colours only */
    }
    check_close(loss, outcome->loss, 1, 1e-5 * outcome->loss + outcome->slack, "loss", 0);
    check_poisoned(reduce, REDUCE_LOSS + 2ull * groups, REDUCE_SIZE);
    free(reduce);
    return loss;
}

static bool is_poison(const float values[4])
{
    uint32_t words[4];
    memcpy(words, values, sizeof words);
    return words[0] == POISON && words[1] == POISON && words[2] == POISON && words[3] == POISON;
}

/* What rounding may leave of a gradient that is 0; others are larger than 1e-6. */
#define NEXT_TO_NOTHING 1e-12

/* Checks gradients of every bin: all of them in deterministic mode, else those that were written.
 */
static void check_gradients(struct fixture *fixture, const struct inputs *inputs,
                            const struct outcome *outcome, bool deterministic)
{
    float(*device)[4] = fixture_read(fixture, BIND_FIELD_GRADIENTS);
    uint32_t count = inputs->ray_count * inputs->bins;
    for (uint32_t i = 0; i < count; i++) {
        bool exists = inputs->results[inputs->samples[i].ray].count > 0;
        if (!exists || (!deterministic && is_poison(device[i]))) {
            check_that(is_poison(device[i]));
            check_close(0, outcome->gradients[i], 1, outcome->tolerances[i] + NEXT_TO_NOTHING,
                        "left out", i);
            continue;
        }
        check_that(device[i][0] == 0 && device[i][1] == 0 && device[i][2] == 0);
        check_close(device[i][3], outcome->gradients[i], 1,
                    outcome->tolerances[i] + NEXT_TO_NOTHING, "gradient of bin", i);
    }
    check_poisoned(device, 4ull * count, 4ull * fixture->config.sample_capacity);
    free(device);
}

/* Checks that bins with a gradient are listed once each, in any order, and nothing after them.
 * Deterministic mode has no list. */
static void check_live_list(struct fixture *fixture, const struct inputs *inputs,
                            uint32_t live_count, bool deterministic)
{
    uint32_t *live = fixture_read(fixture, BIND_LIVE), count = inputs->ray_count * inputs->bins;
    float(*device)[4] = fixture_read(fixture, BIND_FIELD_GRADIENTS);
    bool *seen = base_alloc(count, sizeof *seen);
    for (uint32_t i = 0; i < live_count; i++) {
        check_that(live[i] < count && !seen[live[i]]);
        check_that(device[live[i]][3] != 0);
        seen[live[i]] = true;
    }
    for (uint32_t i = 0; i < count; i++)
        check_that(deterministic || seen[i] == !is_poison(device[i]));
    check_poisoned(live, live_count, fixture->config.sample_capacity);
    free(seen);
    free(device);
    free(live);
}

/* Runs and checks the pass; returns the device's loss. */
static double check(struct fixture *fixture, const struct inputs *inputs, uint32_t groups,
                    bool deterministic)
{
    struct outcome outcome = interlevel_expect(inputs);
    struct State state = run(fixture, inputs, groups);
    double loss = check_losses(fixture, &outcome, groups);
    check_gradients(fixture, inputs, &outcome, deterministic);
    check_live_list(fixture, inputs, state.live_count, deterministic);
    check_that(deterministic ? state.live_count == 0 : state.live_count > 0);
    check_equal(state.live_rays, 0); /* composite counts live rays */
    interlevel_outcome_destroy(&outcome);
    return loss;
}

/* ---- tests --------------------------------------------------------------------------------- */

/* Different counts of bins and samples in different spaces, with one workgroup and with several. */
static void test_against_reference(struct gpu_device *device)
{
    static const struct {
        uint32_t bins, fine, rays;
        bool deterministic;
        struct space space;
    } cases[] = {
        {5, 3, 67, false, {false, VKN_SPACING_DEFAULT, 1}},
        {64, 24, 100, false, {false, VKN_SPACING_DEFAULT, 1}},
        {256, 48, 77, false, {true, VKN_SPACING_DEFAULT, 1}},
        {64, 200, 61, true, {true, VKN_SPACING_DEFAULT, 1}},
        {256, 200, 63, true, {false, VKN_SPACING_DEFAULT, 4}},
        {43, 29, 64, false, {false, VKN_SPACING_LINEAR, 1}},
        {5, 200, 65, false, {true, VKN_SPACING_DEFAULT, 2}},
    };
    for (uint32_t n = 0; n < BASE_COUNT(cases); n++) {
        struct fixture fixture = fixture_of(device, cases[n].bins, cases[n].fine,
                                            cases[n].deterministic, cases[n].space);
        struct inputs inputs = interlevel_inputs_create(&fixture, cases[n].rays, 100 + n);
        uint32_t most = fixture_subgroups(&fixture, cases[n].rays);
        check_that(check(&fixture, &inputs, n % 3 == 2 ? 1 : most, cases[n].deterministic) > 0.1);
        /* With more workgroups than rays the extra ones write a loss of zero. */
        check_that(check(&fixture, &inputs, most + 2, cases[n].deterministic) > 0.1);
        interlevel_inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

static void set_density(struct inputs *inputs, uint32_t bin, double density)
{
    inputs->field[bin][3] = (float)density;
    inputs->expected[bin].density = inputs->field[bin][3];
}

/* Raises each bin's density until its weight is slightly above that of its samples. */
static void bound_samples(struct inputs *inputs, uint32_t r)
{
    for (uint32_t i = 0; i < inputs->results[r].count; i++) {
        uint32_t at = inputs->results[r].first + i;
        struct reference_interval *bin = &inputs->expected[at];
        double thickness = 0;
        for (uint32_t k = 0; k < inputs->fine_results[r].count; k++) {
            const struct reference_interval *sample =
                &inputs->fine_expected[inputs->fine_results[r].first + k];
            double share = fmin(bin->end, sample->end) - fmax(bin->begin, sample->begin);
            thickness +=
                sample->density * sample->width * fmax(share, 0) / (sample->end - sample->begin);
        }
        set_density(inputs, at, (1.0001 * thickness + 1e-5 / inputs->bins) / bin->width);
    }
}

static uint32_t count_gradients(struct fixture *fixture, const struct inputs *inputs)
{
    float(*device)[4] = fixture_read(fixture, BIND_FIELD_GRADIENTS);
    uint32_t found = 0;
    for (uint32_t i = 0; i < inputs->ray_count * inputs->bins; i++)
        found += !is_poison(device[i]) && device[i][3] != 0;
    free(device);
    return found;
}

/* Where bins have at least their samples' weights there is no loss and no live bin. */
static void test_bounded(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device, 64, 24, false, (struct space){.side = 1});
    struct inputs inputs = interlevel_inputs_create(&fixture, 60, 7);
    for (uint32_t r = 0; r < inputs.ray_count; r++) {
        for (uint32_t k = 0; k < inputs.fine; k++) { /* thin: all bins remain visible */
            uint32_t at = inputs.fine_results[r].first + k;
            inputs.fine_expected[at].density = inputs.fine_field[at][3] =
                (float)(0.02 * (1 + k % 3) / inputs.fine_expected[at].width);
        }
        bound_samples(&inputs, r);
    }
    uint32_t groups = fixture_subgroups(&fixture, inputs.ray_count);
    struct State after = run(&fixture, &inputs, groups);
    float *reduce = fixture_read(&fixture, BIND_REDUCE);
    for (uint32_t g = 0; g < groups; g++)
        check_that(reduce[REDUCE_LOSS + 2 * g] == 0);
    check_equal(after.live_count, 0);
    check_equal(count_gradients(&fixture, &inputs), 0);
    /* A few bins of one ray with too small weights are noticed. */
    for (uint32_t hit = inputs.results[0].first + 30; hit < inputs.results[0].first + 35; hit++)
        set_density(&inputs, hit, 0.2 * inputs.expected[hit].density);
    check_that(check(&fixture, &inputs, groups, false) > 0);
    check_that(count_gradients(&fixture, &inputs) > 0);
    free(reduce);
    interlevel_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

/* By hand: one sample of weight 0.5 overlaps bins 1 and 2 of five, of weight 0.0625 each. Their
 * gradients are negative: the weights should grow. That of bin 0 is positive, because it hides
 * them; those of the bins behind are zero. */
static void test_by_hand(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device, 5, 3, true, (struct space){.side = 1});
    struct inputs inputs = interlevel_inputs_create(&fixture, 1, 9);
    static const double weights[] = {0.25, 0.0625, 0.0625, 0.3, 0.1};
    double transmittance = 1, slope = -2 * (0.5 - 0.125) / (0.5 + 1e-7),
           factor = WEIGHT * LOSS_SCALE;
    float gradients[5][4], loss;
    inputs.fine_results[0].count = 1;
    interlevel_put_sample(
        &inputs, 0,
        0.5 * (interlevel_distance_at(&inputs, 0, 1.1) + interlevel_distance_at(&inputs, 0, 2.9)),
        interlevel_distance_at(&inputs, 0, 2.9) - interlevel_distance_at(&inputs, 0, 1.1), log(2),
        &inputs.fine_samples[0], inputs.fine_field[0], &inputs.fine_expected[0]);
    for (uint32_t i = 0; i < 5; i++) {
        set_density(&inputs, i, -log1p(-weights[i] / transmittance) / inputs.expected[i].width);
        transmittance -= weights[i];
    }
    run(&fixture, &inputs, 1);
    fixture_get(&fixture, BIND_REDUCE, &loss, sizeof loss);
    check_close(loss, WEIGHT * 0.375 * 0.375 / 0.5, 1e-5, loss, "loss", 0);
    fixture_get(&fixture, BIND_FIELD_GRADIENTS, gradients, sizeof gradients);
    const double by_thickness[] = {-slope * 0.125, slope * (1 - 0.3125 - 0.0625),
                                   slope * (1 - 0.375), 0, 0};
    for (uint32_t i = 0; i < 5; i++)
        check_close(gradients[i][3], factor * inputs.expected[i].width * by_thickness[i], 1e-5,
                    factor * inputs.expected[i].width, "gradient", i);
    check_that(gradients[0][3] > 0 && gradients[1][3] < 0 && gradients[2][3] < 0);
    check_that(gradients[3][3] == 0 && gradients[4][3] == 0);
    interlevel_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

static double loss_of(const struct inputs *inputs, uint32_t r)
{
    const struct reference_ray_bins ray = interlevel_bins_of(inputs, r);
    return reference_interlevel(&ray, inputs->fine_expected + inputs->fine_results[r].first,
                                inputs->fine_results[r].count, NULL, NULL);
}

/* The reference's gradient against finite differences of its loss. */
static void test_reference(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device, 43, 29, true, (struct space){.side = 1});
    struct inputs inputs = interlevel_inputs_create(&fixture, 30, 11);
    struct outcome outcome = interlevel_expect(&inputs);
    double factor = WEIGHT * LOSS_SCALE / inputs.ray_count, largest = 0;
    for (uint32_t i = 0; i < inputs.ray_count * inputs.bins; i++)
        largest = fmax(largest, fabs(outcome.gradients[i]) / inputs.expected[i].width);
    check_that(largest > 0);
    for (uint32_t i = 0; i < inputs.ray_count * inputs.bins; i++) {
        struct reference_interval *bin = &inputs.expected[i];
        double kept = bin->density, step = 1e-6 / bin->width;
        bin->density = kept + step;
        double above = loss_of(&inputs, inputs.samples[i].ray);
        bin->density = kept - step;
        double below = loss_of(&inputs, inputs.samples[i].ray);
        bin->density = kept;
        check_close(outcome.gradients[i], factor * (above - below) / (2 * step), 2e-5,
                    largest * bin->width, "reference's gradient of bin", i);
    }
    interlevel_outcome_destroy(&outcome);
    interlevel_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

static const struct certify_test tests[] = {
    TEST_BOTH(test_against_reference),
    TEST_BOTH(test_bounded),
    TEST_BOTH(test_by_hand),
    TEST_BOTH(test_reference),
};
const struct certify_part certify_interlevel = {"interlevel", tests, BASE_COUNT(tests)};
