/* Makes random rays with samples and field values, and settings of composite. */
#include "certify/composite.h"

/* The alpha threshold of the settings. */
#define SETTING 0.01f

/* Makes transparent, mixed and opaque rays; some without samples, some outside the step. */
static uint32_t random_ray(struct inputs *inputs, uint32_t r, uint32_t first,
                           const struct reference_stepping *stepping, struct random *random)
{
    struct Ray *ray = &inputs->rays[r];
    uint32_t count = random_below(random, 5) == 0 ? 0 : random_below(random, 150);
    double t = random_between(random, 0.2, 1), least = random_between(random, -5, 1);
    for (int c = 0; c < 3; c++) {
        ray->background[c] = (float)random_between(random, 0, 1);
        ray->target[c] = (float)random_between(random, 0, 1);
    }
    ray->target[3] = (float)random_between(random, 0, 1);
    ray->last = 500;
    double direction[3];
    random_direction(random, direction);
    for (int i = 0; i < 3; i++) {
        ray->origin[i] = (float)random_between(random, -1, 2);
        ray->direction[i] = (float)direction[i];
    }
    ray->distance_scale = (float)random_between(random, 0.7, 1);
    for (uint32_t s = first; s < first + count; s++) {
        double step = reference_step_size(stepping, t);
        inputs->samples[s] =
            (struct Sample){(float)t, (float)(step * random_between(random, 0.3, 2)), r};
        for (int c = 0; c < 3; c++)
            inputs->field[s][c] = (float)random_between(random, 0.01, 0.99);
        inputs->field[s][3] = (float)exp(random_between(random, least, least + 5));
        t = fmin(t + step * (1 + random_below(random, 3)), 2000);
    }
    inputs->results[r] = (struct RayResult){.transmittance = 1, .first = first, .count = count};
    return count;
}

/* Returns the width of a sample in the unit of density, contracted where space is. */
static double width_of(const struct fixture *fixture, const struct Ray *ray,
                       const struct Sample *sample)
{
    const struct reference_space space = reference_space(&fixture->settings);
    double position[3];
    for (int i = 0; i < 3; i++)
        position[i] = ray->origin[i] + (double)sample->t * ray->direction[i];
    return sample->width * reference_shrinking(&space, position);
}

struct inputs composite_inputs_create(const struct fixture *fixture, uint32_t rays, uint32_t seed)
{
    struct random random = {seed};
    struct reference_stepping stepping =
        reference_stepping(&fixture->config, fixture_contracts(fixture));
    uint32_t capacity = fixture->config.sample_capacity;
    struct inputs inputs = {
        .ray_count = rays, .step = OCCUPANCY_WARMUP, .threshold = (double)THRESHOLD};
    inputs.rays = base_alloc(rays, sizeof *inputs.rays);
    inputs.results = base_alloc(rays, sizeof *inputs.results);
    inputs.samples = base_alloc(capacity, sizeof *inputs.samples);
    inputs.field = base_alloc(capacity, sizeof *inputs.field);
    inputs.expected = base_alloc(capacity, sizeof *inputs.expected);
    for (uint32_t r = 0; r < rays; r++)
        inputs.sample_count += random_ray(&inputs, r, inputs.sample_count, &stepping, &random);
    check_that(inputs.sample_count <= capacity);
    for (uint32_t s = 0; s < inputs.sample_count; s++) {
        struct reference_sample *sample = &inputs.expected[s];
        sample->t = inputs.samples[s].t;
        sample->width = width_of(fixture, &inputs.rays[inputs.samples[s].ray], &inputs.samples[s]);
        sample->density = inputs.field[s][3];
        for (int c = 0; c < 3; c++)
            sample->color[c] = inputs.field[s][c];
        sample->length = inputs.samples[s].width;
        const struct reference_space space = reference_space(&fixture->settings);
        reference_normalize(&space, inputs.samples[s].width, sample);
    }
    return inputs;
}

void composite_inputs_destroy(struct inputs *inputs)
{
    void *all[] = {inputs->rays, inputs->results, inputs->samples, inputs->field, inputs->expected};
    for (size_t i = 0; i < BASE_COUNT(all); i++)
        free(all[i]);
}

void composite_put_inputs(struct fixture *fixture, const struct inputs *inputs)
{
    fixture_put(fixture, BIND_RAYS, inputs->rays, inputs->ray_count * sizeof *inputs->rays);
    fixture_put(fixture, BIND_RESULTS, inputs->results,
                inputs->ray_count * sizeof *inputs->results);
    fixture_put(fixture, BIND_SAMPLES, inputs->samples,
                inputs->sample_count * sizeof *inputs->samples);
    fixture_put(fixture, BIND_FIELD, inputs->field, inputs->sample_count * sizeof *inputs->field);
}

void composite_avoid_threshold(struct inputs *inputs)
{
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        double alpha = -expm1(-inputs->expected[s].density * inputs->expected[s].width);
        if (fabs(alpha / (double)THRESHOLD - 1) < 1e-3 || fabs(alpha / (double)SETTING - 1) < 1e-3)
            inputs->expected[s].density = inputs->field[s][3] *= 1.01f;
    }
}

struct reference_ray composite_ray_start(const struct fixture *fixture, const struct inputs *inputs)
{
    struct reference_ray ray = reference_ray_start;
    bool cells = fixture->constants.values[SPEC_SAMPLING] == SAMPLING_OCCUPANCY;
    if (inputs->step >= OCCUPANCY_WARMUP)
        ray.current_alpha_threshold =
            fmin((double)fixture->config.alpha_threshold, cells ? inputs->threshold : 1);
    return ray;
}

void composite_set_alpha_threshold(struct fixture *fixture)
{
    fixture_set_constant(fixture, SPEC_ALPHA_THRESHOLD, 1);
    fixture->config.alpha_threshold = SETTING;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
}

void composite_set_distortion(struct fixture *fixture, float weight)
{
    bool is_ladder = fixture->settings.loss.distortion_curve == VKN_DISTORTION_LADDER;
    fixture_set_constant(fixture, SPEC_DISTORTION,
                         is_ladder ? DISTORTION_LADDER : DISTORTION_LINEAR);
    fixture->config.loss_distortion = weight;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
}

void composite_set_density_losses(struct fixture *fixture, struct inputs *inputs, float weight,
                                  float range)
{
    fixture_set_constant(fixture, SPEC_SKY, 1);
    for (uint32_t r = 0; r < inputs->ray_count; r += 3)
        inputs->rays[r].has_sky = 1;
    fixture->config.loss_near = weight;
    fixture->config.near_start = range;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
}

void composite_set_known_depth(struct fixture *fixture, struct inputs *inputs, float weight)
{
    struct random random = {5};
    fixture_set_constant(fixture, SPEC_DEPTH, 1);
    fixture->config.loss_depth = weight;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        const struct RayResult *range = &inputs->results[r];
        uint32_t kind = random_below(&random, 4);
        float at = (float)random_between(&random, 0.2, 3);
        if (kind == 0 && range->count > 0)
            at = inputs->samples[range->first + random_below(&random, range->count)].t;
        inputs->rays[r].known_t = at;
        inputs->rays[r].known_sigma = kind == 3 ? 0 : (float)random_between(&random, 0.001, 0.2);
    }
}

void composite_set_keep(struct fixture *fixture, struct inputs *inputs, float share)
{
    fixture_set_constant(fixture, SPEC_KEEP, 1);
    fixture->config.keep_share = share;
    fixture->config.keep_least = share / 4;
    fixture->config.first_ray = 4096;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    inputs->keep = (struct State){.keep_gain = share, .mean_loss = 0.05f};
}

struct fixture composite_fixture_of_curve(struct gpu_device *device, enum vkn_loss loss,
                                          bool deterministic, uint32_t aabb_scale, bool contracted,
                                          enum vkn_distortion_curve curve)
{
    struct vkn_config settings = {
        .scene = {.aabb_scale = aabb_scale,
                  .contraction = contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE},
        .loss = {.kind = loss, .distortion_curve = curve},
        .march.near_distance = 0.15f, /* nearer than all samples */
        .batch = {.samples = 8192, .max_rays = 320},
    };
    struct fixture fixture = fixture_configure(device, settings);
    fixture_set_constant(&fixture, SPEC_DETERMINISTIC, deterministic);
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

struct fixture composite_fixture(struct gpu_device *device, enum vkn_loss loss, bool deterministic,
                                 uint32_t aabb_scale, bool contracted)
{
    return composite_fixture_of_curve(device, loss, deterministic, aabb_scale, contracted,
                                      VKN_DISTORTION_LINEAR);
}
