/* Tests the stepper (vknerf/stepper.h) with a field in host memory: sampling, compositing against
 * the reference, the occupancy grid, pictures, and the order of calls. */
#include "step_fixture.h"

#include <vknerf/stepper.h>

static const struct vkn_stepper_params on_host = {.size = sizeof on_host, .host = true};

static struct vkn_config stepper_config(void)
{
    return (struct vkn_config){
        .loss.distortion = -1,
        .seed = 3,
        .march = {.resolution = 16, .steps_per_unit = 64},
        .batch = {.samples = 2112, .max_rays = 256},
    };
}

struct stepped {
    vkn_scene *scene;
    vkn_stepper *stepper;
};

static struct stepped begin(void **state, const struct vkn_config *config)
{
    const struct step_tests *group = *state;
    struct stepped stepped;
    ok(vkn_scene_open(group->folder->path, config, &stepped.scene));
    ok(vkn_stepper_create(group->context, stepped.scene, config, &on_host, &stepped.stepper));
    return stepped;
}

static void end(struct stepped *stepped)
{
    vkn_stepper_destroy(&stepped->stepper);
    assert_null(stepped->stepper);
    vkn_scene_close(&stepped->scene);
}

static void assert_refused(vkn_status status, const char *message)
{
    assert_int_equal(status, VKN_BAD_INPUT);
    assert_message(message);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* A ball around (0.6, 0.5, 0.5) in fog, with colours by position and direction. */
static void ball(const float position[3], const float direction[3], float value[4])
{
    float squared = 0;
    for (int i = 0; i < 3; i++) {
        float from_middle = position[i] - (i == 0 ? 0.6F : 0.5F);
        squared += from_middle * from_middle;
        value[i] = 0.5F + 0.4F * sinf(9 * position[i] + direction[i]);
    }
    value[3] = 0.3F + 60 / (1 + expf(100 * (squared - 0.04F)));
}

static vkn_status ball_values(void *user, const struct vkn_samples *samples)
{
    const float(*positions)[3] = samples->positions.data,
          (*directions)[3] = samples->directions.data;
    float(*values)[4] = samples->values.data;
    if (user)
        ++*(unsigned *)user;
    for (uint32_t i = 0; i < samples->count; i++)
        ball(positions[i], directions[i], values[i]);
    return VKN_OK;
}

/* A dense half space. `user`: its upper limit of x. */
static vkn_status half_space(void *user, const struct vkn_samples *samples)
{
    const float(*positions)[3] = samples->positions.data, *limit = user;
    float *densities = samples->densities.data;
    assert_int_equal(samples->rays, 0);
    for (uint32_t i = 0; i < samples->count; i++)
        densities[i] = positions[i][0] < *limit ? 100.0F : 0.0F;
    return VKN_OK;
}

static vkn_status no_numbers(void *user, const struct vkn_samples *samples)
{
    float *densities = samples->densities.data;
    (void)user;
    for (uint32_t i = 0; i < samples->count; i++)
        densities[i] = i % 2 ? NAN : INFINITY;
    return VKN_OK;
}

static vkn_status refuse(void *user, const struct vkn_samples *samples)
{
    (void)user, (void)samples;
    return VKN_INTERRUPTED;
}

static vkn_status solid(void *user, const struct vkn_samples *samples)
{
    float(*values)[4] = samples->values.data;
    for (uint32_t i = 0; i < samples->count; i++)
        memcpy(values[i], user, sizeof values[i]);
    return VKN_OK;
}

/* ---- sampling -------------------------------------------------------------------------------- */

static void check_ray(const struct vkn_samples *samples, double width, uint32_t ray, uint32_t first,
                      uint32_t count)
{
    const float(*positions)[3] = samples->positions.data,
          (*directions)[3] = samples->directions.data;
    const float *distances = samples->distances.data, *widths = samples->widths.data;
    const uint32_t *rays = samples->ray_indices.data;
    for (uint32_t i = first; i < first + count; i++) {
        double length = 0;
        assert_int_equal(rays[i], ray);
        assert_float_equal(widths[i], width, 1e-6);
        assert_true(i == first || distances[i] > distances[i - 1]);
        for (int axis = 0; axis < 3; axis++) {
            assert_in_range((int)(1e6F * (positions[i][axis] + 1e-4F)), 0, 1000200);
            /* All samples of a ray are on one line from the camera. */
            assert_float_equal(positions[i][axis] - distances[i] * directions[i][axis],
                               positions[first][axis] - distances[first] * directions[first][axis],
                               1e-5);
            length += (double)directions[i][axis] * directions[i][axis];
        }
        assert_float_equal(length, 1, 1e-5);
    }
}

static void check_samples(const struct vkn_samples *samples, double steps_per_unit)
{
    const uint32_t(*ranges)[2] = samples->ranges.data, *views = samples->views.data;
    const float(*targets)[4] = samples->targets.data, (*backgrounds)[3] = samples->backgrounds.data;
    const uint32_t *in_loss = samples->in_loss.data;
    uint32_t next = 0, used = 0;
    assert_true(samples->count > 0 && samples->rays >= 64 && samples->rays % 64 == 0);
    assert_true(samples->rays_in_loss <= samples->rays);
    for (uint32_t ray = 0; ray < samples->rays; ray++) {
        if (ranges[ray][1] > 0)
            assert_int_equal(ranges[ray][0], next);
        check_ray(samples, sqrt(3.0) / steps_per_unit, ray, next, ranges[ray][1]);
        next += ranges[ray][1];
        used += in_loss[ray];
        assert_true(in_loss[ray] == 1 || ranges[ray][1] == 0);
        assert_in_range(views[ray], 0, 2);
        for (int c = 0; c < 3; c++) {
            assert_true(targets[ray][c] >= 0 && targets[ray][c] <= targets[ray][3] + 1e-6F);
            assert_true(backgrounds[ray][c] >= 0 && backgrounds[ray][c] < 1);
        }
    }
    assert_int_equal(next, samples->count);
    assert_int_equal(used, samples->rays_in_loss);
}

/* Sampled arrays are consistent, and equal for equal seeds. Without a number of steps the learning
 * rate does not decay. */
static void test_sample(void **state)
{
    struct vkn_config config = stepper_config();
    config.optimizer.schedule = VKN_RATE_EXPONENTIAL;
    config.optimizer.learning_rate = 0.5F;
    config.optimizer.warmup_steps = 1;
    struct stepped one = begin(state, &config), other = begin(state, &config);
    const struct vkn_samples *samples, *again;
    assert_int_equal(vkn_stepper_config(one.stepper)->march.resolution, 16);
    assert_true(vkn_stepper_config(one.stepper)->deterministic);
    for (uint64_t step = 1; step <= 3; step++) {
        ok(vkn_stepper_sample(one.stepper, &samples));
        ok(vkn_stepper_sample(other.stepper, &again));
        check_samples(samples, 64);
        assert_int_equal(samples->step, step);
        assert_float_equal(samples->learning_rate, 0.5F, 0);
        assert_int_equal(samples->count, again->count);
        assert_memory_equal(samples->positions.data, again->positions.data, 12 * samples->count);
        assert_memory_equal(samples->backgrounds.data, again->backgrounds.data, 12 * samples->rays);
    }
    /* Without compositing the number of rays follows from all samples. */
    assert_true(samples->count > 1000 && samples->count < 4000);
    end(&one);
    end(&other);
}

/* Each camera has its own time, which is also its rays' time. */
static void test_times(void **state)
{
    const struct vkn_config config = stepper_config();
    static const float times[] = {0.25F, 0.5F, 1};
    struct stepped stepped = begin(state, &config);
    const struct vkn_samples *samples;
    ok(vkn_stepper_sample(stepped.stepper, &samples));
    const float *found = samples->times.data;
    const uint32_t *rays = samples->ray_indices.data, *views = samples->views.data;
    for (uint32_t i = 0; i < samples->count; i++)
        assert_float_equal(found[i], times[views[rays[i]]], 0);
    end(&stepped);
}

static void test_uniform(void **state)
{
    struct vkn_config config = stepper_config();
    config.march.sampling = VKN_SAMPLING_UNIFORM;
    config.march.ray_samples = 24;
    struct stepped stepped = begin(state, &config);
    const struct vkn_samples *samples;
    float limit = 1;
    ok(vkn_stepper_sample(stepped.stepper, &samples));
    const uint32_t(*ranges)[2] = samples->ranges.data;
    for (uint32_t ray = 0; ray < samples->rays; ray++)
        assert_true(ranges[ray][1] == 24 || ranges[ray][1] == 0);
    assert_refused(vkn_stepper_update_grid(stepped.stepper, half_space, &limit), "march.sampling");
    end(&stepped);
}

/* Returns the row of a ray's pixel, from the colours of make_scene; views have 10 rows each. */
static uint32_t row_of(const float target[4])
{
    float scale = 255 / target[3];
    return (uint32_t)(10 * lroundf(target[2] * scale / 100) + lroundf(target[1] * scale / 25));
}

/* If the images exceed the device's budget they are streamed, a few rows at a time. */
static void test_streamed_images(void **state)
{
    struct vkn_config config = stepper_config();
    config.scene.image_budget = 1100;
    struct stepped stepped = begin(state, &config);
    const struct vkn_samples *samples;
    uint32_t seen = 0, first = 0;
    for (int step = 0; step < 320; step++) {
        ok(vkn_stepper_sample(stepped.stepper, &samples));
        const float(*targets)[4] = samples->targets.data;
        for (uint32_t ray = 0; ray < samples->rays; ray++)
            seen |= 1u << row_of(targets[ray]);
        first = step < 16 ? seen : first;
    }
    assert_int_equal(seen, (1u << 30) - 1);
    assert_int_not_equal(first, seen);
    end(&stepped);
}

/* ---- compositing ----------------------------------------------------------------------------- */

/* Weights of the rays and the loss scale; zero: 1 each. */
struct scaling {
    const float *weights;
    double scale;
};

/* Computes a ray's part of the loss, of the squared error, and of the gradients. */
static double reference_of_ray(const struct vkn_config *config, const struct vkn_samples *samples,
                               uint32_t ray, double weight, double (*gradients)[4], double *square,
                               size_t *live)
{
    const uint32_t(*ranges)[2] = samples->ranges.data;
    const float *distances = samples->distances.data, *widths = samples->widths.data;
    const float(*positions)[3] = samples->positions.data;
    const struct reference_space space = reference_space(config);
    const float(*values)[4] = samples->values.data,
          *target = (const float *)samples->targets.data + 4 * (size_t)ray;
    const float *background = (const float *)samples->backgrounds.data + 3 * (size_t)ray;
    struct reference_sample of_ray[MAX_RAY_SAMPLES] = {0};
    struct reference_ray result = reference_ray_start;
    uint32_t first = ranges[ray][0], count = ranges[ray][1];
    for (uint32_t i = 0; i < count; i++) {
        of_ray[i].t = distances[first + i];
        const double position[3] = {positions[first + i][0], positions[first + i][1],
                                    positions[first + i][2]};
        of_ray[i].width = widths[first + i] * reference_shrinking(&space, position);
        of_ray[i].density = values[first + i][3];
        for (int c = 0; c < 3; c++)
            of_ray[i].color[c] = values[first + i][c];
    }
    reference_composite(&result, of_ray, count, config->march.early_stop);
    double loss = 0, by_color[3], behind[3];
    *square = 0;
    for (int c = 0; c < 3; c++) {
        behind[c] = background[c];
        double difference = result.color[c] + result.transmittance * behind[c] - target[c] -
                            (1 - target[3]) * behind[c];
        loss += reference_loss(config->loss.kind, config->loss.delta, difference, &by_color[c]) / 3;
        by_color[c] *= weight / (3 * samples->rays);
        *square += difference * difference / 3;
    }
    reference_composite_backward(&result, of_ray, behind, by_color, gradients);
    if (config->march.near_start > config->march.near_distance)
        reference_near_density(&result, of_ray, config->march.near_start,
                               weight * (double)config->loss.near_density / samples->rays,
                               gradients);
    *live = result.live;
    *square *= weight;
    return weight * loss / samples->rays;
}

static void compare_scaled(const struct vkn_config *config, const struct vkn_samples *samples,
                           const struct scaling *scaling, const struct vkn_composited *composited)
{
    double scale = scaling->scale > 0 ? scaling->scale : 1;
    const uint32_t(*ranges)[2] = samples->ranges.data;
    const uint32_t *in_loss = samples->in_loss.data;
    const float(*gradients)[4] = composited->gradients.data;
    double loss = 0, square = 0;
    size_t live = 0;
    for (uint32_t ray = 0; ray < samples->rays; ray++) {
        double expected[MAX_RAY_SAMPLES][4] = {0}, ray_square;
        size_t ray_live;
        if (!in_loss[ray])
            continue;
        double weight = scaling->weights ? (double)scaling->weights[ray] : 1;
        loss += reference_of_ray(config, samples, ray, weight, expected, &ray_square, &ray_live);
        square += ray_square / samples->rays_in_loss;
        live += ray_live;
        for (uint32_t i = 0; i < ranges[ray][1]; i++)
            for (int c = 0; c < 4; c++)
                assert_float_equal(gradients[ranges[ray][0] + i][c] / scale, expected[i][c], 1e-8);
    }
    assert_float_equal(composited->loss, loss, 1e-6);
    assert_true(composited->distortion_loss == 0);
    assert_float_equal(composited->mean_square, square, 1e-6);
    assert_int_equal(composited->live, live);
    assert_true(live > samples->count / 4);
}

static void compare_composited(const struct vkn_config *config, const struct vkn_samples *samples,
                               const struct vkn_composited *composited)
{
    compare_scaled(config, samples, &(const struct scaling){0}, composited);
}

static void test_composite(void **state)
{
    for (int contracted = 0; contracted < 2; contracted++) {
        struct vkn_config config = stepper_config();
        config.loss.kind = contracted ? VKN_LOSS_L2 : VKN_LOSS_HUBER;
        config.scene.contraction = contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE;
        struct stepped stepped = begin(state, &config);
        const struct vkn_samples *samples;
        const struct vkn_composited *composited;
        for (int step = 0; step < 3; step++) {
            ok(vkn_stepper_sample(stepped.stepper, &samples));
            ok(ball_values(NULL, samples));
            ok(vkn_stepper_composite(stepped.stepper, &composited));
            assert_true(composited->finite);
            assert_int_equal(composited->skipped, 0);
            assert_int_equal(samples->rays_in_loss, samples->rays);
            assert_true(composited->live < samples->count);
            compare_composited(vkn_stepper_config(stepped.stepper), samples, composited);
        }
        end(&stepped);
    }
}

/* Rays whose samples did not all fit have no samples and no loss. */
static void test_too_many_samples(void **state)
{
    struct vkn_config config = stepper_config();
    config.batch.samples = 1024;
    config.march.steps_per_unit = 256;
    struct stepped stepped = begin(state, &config);
    const struct vkn_samples *samples;
    const struct vkn_composited *composited;
    ok(vkn_stepper_sample(stepped.stepper, &samples));
    check_samples(samples, 256);
    assert_in_range(samples->rays_in_loss, 5, samples->rays - 5);
    assert_in_range(samples->count, 3500, 4 * 1024);
    ok(ball_values(NULL, samples));
    ok(vkn_stepper_composite(stepped.stepper, &composited));
    compare_composited(vkn_stepper_config(stepped.stepper), samples, composited);
    end(&stepped);
}

/* Values that are not finite are reported, get no gradients, and do not affect later steps. */
static void test_not_finite(void **state)
{
    const struct vkn_config config = stepper_config();
    struct stepped stepped = begin(state, &config);
    const struct vkn_samples *samples;
    const struct vkn_composited *composited;
    for (uint64_t step = 1; step <= 4; step++) {
        bool bad = step == 2 || step == 3;
        ok(vkn_stepper_sample(stepped.stepper, &samples));
        ok(ball_values(NULL, samples));
        float(*values)[4] = samples->values.data;
        if (bad)
            values[0][step == 2 ? 3 : 1] = NAN;
        ok(vkn_stepper_composite(stepped.stepper, &composited));
        assert_int_equal(composited->finite, !bad);
        assert_int_equal(composited->skipped, step == 1 ? 0 : step == 2 ? 1 : 2);
        const float *gradients = composited->gradients.data;
        for (uint32_t i = 0; i < 4 * samples->count && bad; i++)
            assert_float_equal(gradients[i], 0, 0);
        if (!bad)
            compare_composited(vkn_stepper_config(stepped.stepper), samples, composited);
    }
    end(&stepped);
}

/* ---- rays of the caller's ----------------------------------------------------------------------
 */

#define OWN_RAYS    101u /* no multiple of 64 */
#define OWN_SAMPLES 12u  /* of every ray but each fifth, which has none */

struct own {
    float origins[OWN_RAYS][3], directions[OWN_RAYS][3], nearest[OWN_RAYS], farthest[OWN_RAYS],
        times[OWN_RAYS], targets[OWN_RAYS][4], backgrounds[OWN_RAYS][3], weights[OWN_RAYS];
    float t_starts[OWN_RAYS * OWN_SAMPLES], t_ends[OWN_RAYS * OWN_SAMPLES];
    uint32_t ranges[OWN_RAYS][2], count;
};
static struct own own;

static float uniform(struct random *random, double low, double high)
{
    return (float)random_between(random, low, high);
}

static void make_own(void)
{
    struct random random = {9};
    own.count = 0;
    for (uint32_t r = 0; r < OWN_RAYS; r++) {
        for (int i = 0; i < 3; i++) {
            own.origins[r][i] = i == 2 ? 2 : uniform(&random, 0.2, 0.8);
            own.directions[r][i] = i == 2 ? -3 : uniform(&random, -0.6, 0.6);
            own.targets[r][i] = uniform(&random, 0, 0.5);
            own.backgrounds[r][i] = uniform(&random, 0, 1);
        }
        own.targets[r][3] = 0.75F;
        own.nearest[r] = r % 2 ? 0 : uniform(&random, 1, 1.5);
        own.farthest[r] = own.nearest[r] + uniform(&random, 0.3, 1.5);
        own.times[r] = (float)r / OWN_RAYS;
        own.weights[r] = r % 7 ? uniform(&random, 0, 3) : 0;
        own.ranges[r][0] = own.count;
        own.ranges[r][1] = r % 5 ? OWN_SAMPLES : 0;
        float t = 1.1F;
        for (uint32_t i = 0; i < own.ranges[r][1]; i++) {
            own.t_starts[own.count] = t += uniform(&random, 0, 0.03);
            own.t_ends[own.count++] = t += uniform(&random, 0, 0.07);
        }
    }
}

static struct vkn_stepper_rays given_rays(bool samples)
{
    make_own();
    struct vkn_stepper_rays rays = {
        .size = sizeof rays,
        .count = OWN_RAYS,
        .origins = own.origins[0],
        .directions = own.directions[0],
        .times = own.times,
        .targets = own.targets[0],
        .backgrounds = own.backgrounds[0],
        .weights = own.weights,
    };
    if (samples) {
        rays.sample_count = own.count;
        rays.t_starts = own.t_starts;
        rays.t_ends = own.t_ends;
        rays.ranges = own.ranges[0];
    } else {
        rays.nearest = own.nearest;
        rays.farthest = own.farthest;
    }
    return rays;
}

/* Checks what the arrays have of the rays. */
static void check_own(const struct vkn_samples *samples)
{
    const uint32_t(*ranges)[2] = samples->ranges.data, *rays = samples->ray_indices.data;
    const float(*directions)[3] = samples->directions.data, *times = samples->times.data;
    assert_int_equal(samples->rays, OWN_RAYS);
    assert_int_equal(samples->rays_in_loss, OWN_RAYS);
    assert_memory_equal(samples->targets.data, own.targets, sizeof own.targets);
    assert_memory_equal(samples->backgrounds.data, own.backgrounds, sizeof own.backgrounds);
    for (uint32_t r = 0, next = 0; r < OWN_RAYS; next += ranges[r++][1])
        for (uint32_t i = next; i < next + ranges[r][1]; i++) {
            double length = 0;
            for (int axis = 0; axis < 3; axis++)
                length += (double)own.directions[r][axis] * own.directions[r][axis];
            assert_int_equal(rays[i], r);
            assert_true(times[i] == own.times[r]);
            for (int axis = 0; axis < 3; axis++)
                assert_float_equal(directions[i][axis] * sqrt(length), own.directions[r][axis],
                                   1e-6);
        }
}

/* Makes all cells of a grid of 16^3 cells occupied, also those that no view sees. */
static void occupy_all(vkn_stepper *stepper)
{
    static float values[16 * 16 * 16];
    struct vkn_occupancy grid = {.size = sizeof grid};
    ok(vkn_stepper_occupancy(stepper, &grid));
    grid.values = values;
    grid.threshold = -0.5F;
    ok(vkn_stepper_set_occupancy(stepper, &grid));
}

/* Samples on the caller's rays are between the rays' distances, and all steps between them. */
static void test_own_rays(void **state)
{
    const struct vkn_config config = stepper_config();
    struct stepped stepped = begin(state, &config);
    const struct vkn_stepper_rays rays = given_rays(false);
    const struct scaling scaling = {own.weights, 4096};
    const struct vkn_samples *samples;
    const struct vkn_composited *composited;
    double step_size = sqrt(3.0) / 64;
    occupy_all(stepped.stepper);
    ok(vkn_stepper_set_loss_scale(stepped.stepper, 4096));
    for (uint64_t step = 1; step <= 2; step++) {
        ok(vkn_stepper_sample_rays(stepped.stepper, &rays, &samples));
        assert_int_equal(samples->step, step);
        check_own(samples);
        const uint32_t(*ranges)[2] = samples->ranges.data;
        const float *distances = samples->distances.data;
        assert_true(samples->count > 1000);
        for (uint32_t r = 0; r < OWN_RAYS; r++) {
            uint32_t first = ranges[r][0], last = first + ranges[r][1] - 1;
            if (ranges[r][1] == 0)
                continue;
            assert_true(distances[first] > own.nearest[r] && distances[last] < own.farthest[r]);
            assert_float_equal((distances[last] - distances[first]) / step_size, last - first,
                               1e-3);
            if (own.nearest[r] > 1.1F) /* inside of the cube from the beginning */
                assert_float_equal(distances[first], own.nearest[r] + step_size / 2, 1e-5);
        }
        ok(ball_values(NULL, samples));
        ok(vkn_stepper_composite(stepped.stepper, &composited));
        compare_scaled(vkn_stepper_config(stepped.stepper), samples, &scaling, composited);
    }
    ok(vkn_stepper_set_loss_scale(stepped.stepper, 1));
    ok(vkn_stepper_sample(stepped.stepper, &samples)); /* with rays of the views again */
    ok(ball_values(NULL, samples));
    ok(vkn_stepper_composite(stepped.stepper, &composited));
    check_samples(samples, 64);
    compare_composited(vkn_stepper_config(stepped.stepper), samples, composited);
    end(&stepped);
}

static void test_own_samples(void **state)
{
    struct vkn_config config = stepper_config();
    config.march.sampling = VKN_SAMPLING_UNIFORM; /* needs no grid */
    config.march.ray_samples = 8;
    struct stepped stepped = begin(state, &config);
    const struct vkn_stepper_rays rays = given_rays(true);
    const struct scaling scaling = {.weights = own.weights};
    const struct vkn_samples *samples;
    const struct vkn_composited *composited;
    ok(vkn_stepper_sample_rays(stepped.stepper, &rays, &samples));
    check_own(samples);
    const float *distances = samples->distances.data, *widths = samples->widths.data;
    const uint32_t(*ranges)[2] = samples->ranges.data;
    assert_int_equal(samples->count, own.count);
    for (uint32_t i = 0; i < own.count; i++) {
        assert_float_equal(distances[i], 0.5 * ((double)own.t_starts[i] + own.t_ends[i]), 1e-6);
        assert_float_equal(widths[i], (double)own.t_ends[i] - own.t_starts[i], 1e-6);
    }
    for (uint32_t r = 0; r < OWN_RAYS; r++)
        assert_int_equal(ranges[r][1], own.ranges[r][1]);
    ok(ball_values(NULL, samples));
    ok(vkn_stepper_composite(stepped.stepper, &composited));
    compare_scaled(vkn_stepper_config(stepped.stepper), samples, &scaling, composited);
    end(&stepped);
}

static void test_own_refused(void **state)
{
    const struct vkn_config config = stepper_config();
    struct stepped stepped = begin(state, &config);
    vkn_stepper *stepper = stepped.stepper;
    const struct vkn_samples *samples;
    struct vkn_stepper_rays rays = given_rays(false);
#define REFUSED(message) assert_refused(vkn_stepper_sample_rays(stepper, &rays, &samples), message)
    rays.count = 257;
    REFUSED("vkn_stepper_rays: count: 257 is not from 1 to 256");
    rays.count = 0;
    REFUSED("count: 0 is not from 1 to 256");
    rays.count = OWN_RAYS;
    rays.directions = NULL;
    REFUSED("`directions` is NULL");
    rays = given_rays(false);
    own.weights[4] = -1;
    REFUSED("weights: element 4 is -1: must be from 0 to");
    own.times[3] = 1.5F;
    REFUSED("times: element 3 is 1.5: must be from 0 to 1");
    own.origins[2][1] = NAN;
    REFUSED("origins: element 7 is ");
    rays = given_rays(false);
    own.farthest[6] = own.nearest[6] / 2;
    REFUSED("nearest: element 6 is ");
    memset(own.directions[5], 0, sizeof own.directions[5]);
    REFUSED("directions: element 15 is 0: must be a vector of a length above 0");
    rays = given_rays(true);
    rays.t_ends = NULL;
    REFUSED("`t_ends` is NULL");
    rays = given_rays(true);
    rays.sample_count = own.count - 1;
    REFUSED("ranges: element 199 is 12: must be at most 11");
    rays.sample_count = own.count + 1;
    REFUSED("the ranges have");
    rays.sample_count = 5000000;
    REFUSED("sample_count: 5e+06 is not from 0 to ");
    rays = given_rays(true);
    own.ranges[3][0]++;
    REFUSED("ranges: element 6 is 25: must be 24, where the ray before ends");
    rays = given_rays(true);
    own.t_ends[2] = 0;
    REFUSED("t_ends: element 2 is 0: must be finite, and at least t_starts");
    rays = given_rays(true);
    own.t_starts[9] = 0;
    REFUSED("t_starts: element 9 is 0: must be finite, and at least 0 and the ray's start before");
#undef REFUSED
    assert_null(samples);
    assert_refused(vkn_stepper_set_loss_scale(stepper, 0), "scale: 0 is not from 5.96046e-08 to ");
    assert_refused(vkn_stepper_set_loss_scale(stepper, NAN), "scale: ");
    ok(vkn_stepper_sample(stepper, &samples));
    assert_int_equal(samples->step, 1);
    end(&stepped);
}

/* ---- the occupancy grid ---------------------------------------------------------------------- */

static uint32_t count_samples(vkn_stepper *stepper, float *last_x)
{
    const struct vkn_samples *samples;
    ok(vkn_stepper_sample(stepper, &samples));
    const float(*positions)[3] = samples->positions.data;
    *last_x = 0;
    for (uint32_t i = 0; i < samples->count; i++)
        *last_x = fmaxf(*last_x, positions[i][0]);
    return samples->count;
}

/* Samples are where densities were, and nowhere if there were none. */
static void test_grid(void **state)
{
    const struct vkn_config config = stepper_config();
    struct stepped stepped = begin(state, &config);
    float last, everywhere = 2, half = 0.4999F, nowhere = -1;
    uint32_t all = count_samples(stepped.stepper, &last);
    assert_true(all > 500 && last > 0.9F);
    ok(vkn_stepper_update_grid(stepped.stepper, half_space, &everywhere));
    uint32_t dense = count_samples(stepped.stepper, &last);
    assert_true(dense > 500 && last > 0.9F);
    for (int i = 0; i < 400; i++) /* until the old cells have decayed */
        ok(vkn_stepper_update_grid(stepped.stepper, half_space, &half));
    uint32_t some = count_samples(stepped.stepper, &last);
    assert_true(some > 100 && last <= 0.5001F && last > 0.4F);
    end(&stepped);
    stepped = begin(state, &config);
    ok(vkn_stepper_update_grid(stepped.stepper, half_space, &nowhere));
    assert_int_equal(count_samples(stepped.stepper, &last), 0);
    const struct vkn_composited *composited;
    ok(vkn_stepper_composite(stepped.stepper, &composited)); /* without samples */
    assert_true(composited->finite && composited->loss > 0 && composited->live == 0);
    ok(vkn_stepper_update_grid(stepped.stepper, half_space, &half));
    assert_true(count_samples(stepped.stepper, &last) > 0);
    end(&stepped);
}

/* Rays have samples only in the cells that the caller's grid occupies. */
static void test_own_grid(void **state)
{
    enum { N = 16, CELLS = N * N * N };
    const struct vkn_config config = stepper_config();
    struct stepped stepped = begin(state, &config);
    struct vkn_occupancy grid = {.size = sizeof grid};
    static float values[CELLS];
    static uint8_t occupied[CELLS];
    float last_x = 0;
    ok(vkn_stepper_occupancy(stepped.stepper, &grid));
    assert_true(grid.resolution == N && grid.cascades == 1 && grid.time_bins == 1);
    assert_true(count_samples(stepped.stepper, &last_x) > 0 && last_x > 0.9F);
    for (size_t i = 0; i < CELLS; i++)
        values[i] = i % N < N / 4 ? 1 : 0; /* x below a quarter */
    grid.values = values;
    grid.threshold = 0.5F;
    ok(vkn_stepper_set_occupancy(stepped.stepper, &grid));
    assert_true(count_samples(stepped.stepper, &last_x) > 0 && last_x < 0.2501F);
    grid.occupied = occupied;
    ok(vkn_stepper_occupancy(stepped.stepper, &grid));
    for (size_t i = 0; i < CELLS; i++)
        assert_int_equal(occupied[i], i % N < N / 4);
    grid.cascades = 2;
    assert_refused(vkn_stepper_set_occupancy(stepped.stepper, &grid),
                   "vkn_stepper_set_occupancy: grid: cascades: 2: must be 1");
    end(&stepped);
}

static void test_grid_not_finite(void **state)
{
    const struct vkn_config config = stepper_config();
    struct stepped stepped = begin(state, &config);
    float last, half = 0.5F;
    struct capture capture = capture_begin();
    ok(vkn_stepper_update_grid(stepped.stepper, no_numbers, NULL));
    char *text = capture_end(&capture);
    assert_non_null(strstr(text, "densities for the occupancy grid are not finite"));
    free(text);
    assert_int_equal(count_samples(stepped.stepper, &last), 0);
    capture = capture_begin();
    ok(vkn_stepper_update_grid(stepped.stepper, half_space, &half));
    text = capture_end(&capture);
    assert_null(strstr(text, "no finite numbers"));
    free(text);
    assert_true(count_samples(stepped.stepper, &last) > 0);
    assert_int_equal(vkn_stepper_update_grid(stepped.stepper, refuse, NULL), VKN_INTERRUPTED);
    assert_message("`density` ended with status 130");
    ok(vkn_stepper_update_grid(stepped.stepper, half_space, &half));
    end(&stepped);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static struct vkn_camera camera_of(vkn_scene *scene, size_t view)
{
    struct vkn_camera camera = {.size = sizeof camera};
    ok(vkn_scene_camera(scene, VKN_SPLIT_TRAIN, view, &camera));
    return camera;
}

/* A solid block of one colour; fog with more samples per ray than a round has; rendering does not
 * change the samples of a step. */
static void test_render(void **state)
{
    struct vkn_config config = stepper_config();
    config.march.steps_per_unit = 256;
    struct stepped stepped = begin(state, &config);
    const struct vkn_camera camera = camera_of(stepped.scene, 2);
    struct vkn_picture_params params = {.size = sizeof params, .supersample = 2};
    float block[4] = {0.25F, 0.5F, 0.75F, 1e4F}, mist[4] = {0.25F, 0.5F, 0.75F, 1};
    struct vkn_picture *picture;
    ok(vkn_stepper_render(stepped.stepper, &camera, &params, solid, block, &picture));
    assert_int_equal(picture->width, 12);
    assert_int_equal(picture->height, 10);
    size_t middle = 5 * 12 + 6, hit = 0;
    assert_float_equal(picture->opacity[middle], 1, 1e-6);
    for (int c = 0; c < 3; c++)
        assert_float_equal(picture->color[3 * middle + (size_t)c], block[c], 1e-6);
    for (size_t i = 0; i < 120; i++)
        hit += picture->opacity[i] > 0.5F;
    assert_true(hit > 20);
    vkn_picture_free(&picture);
    const struct vkn_samples *samples;
    const struct vkn_composited *composited;
    unsigned calls = 0;
    ok(vkn_stepper_sample(stepped.stepper, &samples));
    ok(ball_values(NULL, samples));
    ok(vkn_stepper_render(stepped.stepper, &camera, NULL, ball_values, &calls, &picture));
    vkn_picture_free(&picture);
    assert_true(calls > 1);
    check_samples(samples, 256);
    ok(vkn_stepper_composite(stepped.stepper, &composited));
    compare_composited(vkn_stepper_config(stepped.stepper), samples, composited);
    params.background = VKN_BACKGROUND_BLACK;
    ok(vkn_stepper_render(stepped.stepper, &camera, &params, solid, mist, &picture));
    /* The path is about as long as the cube's side in training space. */
    assert_float_equal(picture->opacity[middle], 1 - exp(-1.0), 0.01);
    assert_float_equal(picture->color[3 * middle], 0.25 * picture->opacity[middle], 1e-5);
    assert_float_equal(picture->depth[middle] * vkn_stepper_config(stepped.stepper)->scene.scale,
                       1.6, 0.4);
    vkn_picture_free(&picture);
    end(&stepped);
}

static void test_render_refused(void **state)
{
    const struct vkn_config config = stepper_config();
    struct stepped stepped = begin(state, &config);
    struct vkn_picture *picture;
    struct vkn_camera camera = camera_of(stepped.scene, 0);
    const struct vkn_picture_params params = {.supersample = 3};
    float block[4] = {0};
    assert_refused(vkn_stepper_render(stepped.stepper, &camera, &params, solid, block, &picture),
                   "supersample");
    assert_int_equal(vkn_stepper_render(stepped.stepper, &camera, NULL, refuse, NULL, &picture),
                     VKN_INTERRUPTED);
    assert_message("`field` ended with status 130");
    assert_null(picture);
    camera.width = 0;
    assert_refused(vkn_stepper_render(stepped.stepper, &camera, NULL, solid, block, &picture),
                   "width");
    end(&stepped);
}

/* The scene and the context may be destroyed before the stepper. */
static void test_any_order(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config config = stepper_config();
    vkn_context *context;
    vkn_scene *scene;
    vkn_stepper *stepper;
    const struct vkn_samples *samples;
    ok(vkn_context_create(NULL, &context));
    ok(vkn_scene_open(tests->folder->path, &config, &scene));
    ok(vkn_stepper_create(context, scene, &config, &on_host, &stepper));
    vkn_scene_close(&scene);
    vkn_context_destroy(&context);
    ok(vkn_stepper_sample(stepper, &samples));
    check_samples(samples, 64);
    vkn_stepper_destroy(&stepper);
    vkn_stepper_destroy(&stepper);
}

/* ---- calls that are refused ------------------------------------------------------------------ */

static void test_order(void **state)
{
    struct vkn_config config = stepper_config();
    config.steps = 3;
    struct stepped stepped = begin(state, &config);
    const struct vkn_samples *samples;
    const struct vkn_composited *composited;
    float everywhere = 2;
    assert_refused(vkn_stepper_composite(stepped.stepper, &composited), "there are no samples");
    assert_null(composited);
    ok(vkn_stepper_sample(stepped.stepper, &samples));
    ok(ball_values(NULL, samples));
    ok(vkn_stepper_composite(stepped.stepper, &composited));
    assert_refused(vkn_stepper_composite(stepped.stepper, &composited), "there are no samples");
    ok(vkn_stepper_sample(stepped.stepper, &samples));
    ok(vkn_stepper_update_grid(stepped.stepper, half_space, &everywhere));
    assert_refused(vkn_stepper_composite(stepped.stepper, &composited),
                   "vkn_stepper_update_grid not in between");
    ok(vkn_stepper_sample(stepped.stepper, &samples));
    assert_refused(vkn_stepper_sample(stepped.stepper, &samples), "all 3 steps");
    assert_null(samples);
    end(&stepped);
}

static void test_refused(void **state)
{
    const struct step_tests *group = *state;
    struct vkn_config config = stepper_config();
    struct stepped stepped = begin(state, &config);
    const struct vkn_samples *samples;
    const struct vkn_composited *composited;
    vkn_stepper *stepper = stepped.stepper, *none;
    assert_refused(vkn_stepper_create(NULL, stepped.scene, NULL, NULL, &none), "`context` is NULL");
    assert_refused(vkn_stepper_create(group->context, NULL, NULL, NULL, &none), "`scene` is NULL");
    assert_refused(vkn_stepper_create(group->context, stepped.scene, NULL, NULL, NULL),
                   "`stepper` is NULL");
    assert_refused(vkn_stepper_sample(NULL, &samples), "`stepper` is NULL");
    assert_refused(vkn_stepper_sample(stepper, NULL), "`samples` is NULL");
    assert_refused(vkn_stepper_composite(NULL, &composited), "`stepper` is NULL");
    assert_refused(vkn_stepper_composite(stepper, NULL), "`composited` is NULL");
    assert_refused(vkn_stepper_update_grid(NULL, half_space, NULL), "`stepper` is NULL");
    assert_refused(vkn_stepper_update_grid(stepper, NULL, NULL), "`density` is NULL");
    const struct vkn_camera camera = camera_of(stepped.scene, 0);
    struct vkn_picture *picture;
    assert_refused(vkn_stepper_render(NULL, &camera, NULL, solid, NULL, &picture),
                   "`stepper` is NULL");
    assert_refused(vkn_stepper_render(stepper, NULL, NULL, solid, NULL, &picture),
                   "`camera` is NULL");
    assert_refused(vkn_stepper_render(stepper, &camera, NULL, NULL, NULL, &picture),
                   "`field` is NULL");
    assert_refused(vkn_stepper_render(stepper, &camera, NULL, solid, NULL, NULL),
                   "`picture` is NULL");
    assert_null(vkn_stepper_config(NULL));
    vkn_stepper_destroy(NULL);
    vkn_stepper_destroy(&none);
    config.march.sampling = VKN_SAMPLING_PROPOSAL;
    assert_refused(vkn_stepper_create(group->context, stepped.scene, &config, NULL, &none),
                   "march.sampling");
    config.march.sampling = VKN_SAMPLING_OCCUPANCY;
    config.scene.refine = VKN_REFINEMENT_POSES;
    assert_refused(vkn_stepper_create(group->context, stepped.scene, &config, NULL, &none),
                   "scene.refine: a stepper does not refine cameras");
    assert_null(none);
    const struct vkn_stepper_params odd = {.size = 3};
    assert_refused(vkn_stepper_create(group->context, stepped.scene, NULL, &odd, &none),
                   "`size` is 3");
    end(&stepped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample),          cmocka_unit_test(test_times),
        cmocka_unit_test(test_uniform),         cmocka_unit_test(test_streamed_images),
        cmocka_unit_test(test_composite),       cmocka_unit_test(test_too_many_samples),
        cmocka_unit_test(test_not_finite),      cmocka_unit_test(test_own_rays),
        cmocka_unit_test(test_own_samples),     cmocka_unit_test(test_own_refused),
        cmocka_unit_test(test_own_grid),        cmocka_unit_test(test_grid),
        cmocka_unit_test(test_grid_not_finite), cmocka_unit_test(test_render),
        cmocka_unit_test(test_render_refused),  cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_order),           cmocka_unit_test(test_refused),
    };
    vkn_log_quiet(true);
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
