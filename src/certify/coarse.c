/* Makes random rays, and results of a coarse field or proposal, for tests of sampling. */
#include "certify/coarse.h"

void random_ray(struct Ray *ray, double span[2], const struct Config *config,
                const struct reference_stepping *stepping, struct random *random)
{
    double side = config->aabb_scale, origin[3], direction[3], length = 0;
    random_direction(random, origin);
    double distance = random_between(random, 0, 1.5) * side;
    for (int i = 0; i < 3; i++) {
        origin[i] = 0.5 + distance * origin[i];
        direction[i] = 0.5 + random_between(random, -0.6, 0.6) * side - origin[i];
    }
    if (random_below(random, 8) == 0) /* within a plane, or along an axis */
        direction[random_below(random, 3)] = direction[random_below(random, 3)] = 0;
    for (int i = 0; i < 3; i++)
        length += direction[i] * direction[i];
    memset(ray, 0xff, sizeof *ray);
    for (int i = 0; i < 3; i++) {
        ray->origin[i] = (float)origin[i];
        ray->direction[i] = (float)(direction[i] / sqrt(length));
        origin[i] = ray->origin[i];
        direction[i] = ray->direction[i];
    }
    double nearest = reference_nearest(stepping, config->near_distance);
    bool hits = reference_cube(origin, direction, side, span) && span[1] > nearest;
    if (stepping->contracted) {
        hits = true;
        span[0] = 0;
        span[1] = config->far_distance;
    }
    span[0] = fmax(span[0], nearest);
    double jitter = random_between(random, 0, 1), marches = config->ray_samples > 0 ? 0 : 1;
    ray->step = hits ? (float)(reference_steps_to(stepping, span[0]) + marches * jitter) : 0;
    ray->last = hits ? (float)reference_steps_to(stepping, span[1]) : -1;
}

void inputs_destroy(struct inputs *inputs)
{
    free(inputs->rays);
    free(inputs->spans);
    free(inputs->grid.occupied);
}

void move_rays_back(struct inputs *inputs, const struct Config *config)
{
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        struct Ray *ray = &inputs->rays[r];
        double *span = inputs->spans[r], origin[3], direction[3];
        for (int c = 0; c < 3; c++) {
            ray->origin[c] -= 20 * ray->direction[c];
            origin[c] = ray->origin[c];
            direction[c] = ray->direction[c];
        }
        bool hits = reference_cube(origin, direction, config->aabb_scale, span);
        hits = hits && span[1] - span[0] > 0.3;
        ray->step = hits ? (float)reference_steps_to(&inputs->stepping, span[0]) : 0;
        ray->last = hits ? (float)reference_steps_to(&inputs->stepping, span[1]) : -1;
    }
}

void put_rays(struct fixture *fixture, const struct inputs *inputs)
{
    const struct State state = {.step = inputs->step, .ray_count = inputs->ray_count};
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_poison(fixture, BIND_RESULTS);
    fixture_poison(fixture, BIND_SAMPLES);
    fixture_poison(fixture, BIND_RAYS);
    fixture_put(fixture, BIND_RAYS, inputs->rays, inputs->ray_count * sizeof *inputs->rays);
}

uint32_t march_groups(const struct fixture *fixture, const struct inputs *inputs)
{
    uint32_t groups = fixture_subgroups(fixture, inputs->ray_count);
    return groups < fixture->config.group_limit ? groups : fixture->config.group_limit;
}

void run_march(struct fixture *fixture, const struct inputs *inputs, const char *shader)
{
    fixture_run(fixture, shader, (struct Push){.b = fixture->local_size},
                march_groups(fixture, inputs));
}

double rounding_at(const struct inputs *inputs, uint32_t r, double t)
{
    switch (inputs->stepping.spacing) {
    case SPACING_LINEAR:
        return 3e-6 * t;
    case SPACING_DISPARITY:
        return 3e-6 * t + 3e-7 * t * t / inputs->spans[r][0];
    case SPACING_LOG:
        return 1e-5 * t;
    default:
        return 1e-4 * reference_step_size(&inputs->stepping, t) + 3e-6 * t;
    }
}

void check_bin(const struct fixture *fixture, const struct inputs *inputs, uint32_t r, uint32_t bin,
               double position, const struct Sample *sample)
{
    uint32_t count = fixture->config.ray_samples;
    double t = reference_in_bin(&inputs->stepping, inputs->spans[r], count, bin, position);
    double width = reference_bin_width(&inputs->stepping, inputs->spans[r], count, bin);
    double end = reference_in_bin(&inputs->stepping, inputs->spans[r], count, bin, 1);
    check_equal(sample->ray, r);
    check_close(sample->t, t, 1, rounding_at(inputs, r, t), "distance of a sample of ray", r);
    check_close(sample->width, width, 1, rounding_at(inputs, r, end), "width of a sample of ray",
                r);
}

double bin_jitter(const struct fixture *fixture, const struct inputs *inputs, uint32_t r,
                  uint32_t bin)
{
    double unit[3];
    reference_random_unit(fixture->config.seed, inputs->step,
                          (fixture->config.first_ray + r) * fixture->config.ray_samples + bin, 32,
                          unit);
    return unit[0];
}

double bin_position(const struct fixture *fixture, const struct inputs *inputs, uint32_t r,
                    double t)
{
    const double *span = inputs->spans[r];
    double from = reference_steps_to(&inputs->stepping, span[0]);
    double steps = reference_steps_to(&inputs->stepping, span[1]) - from;
    return (reference_steps_to(&inputs->stepping, t) - from) / steps * fixture->config.ray_samples;
}

double density_width(const struct fixture *fixture, const struct inputs *inputs,
                     const struct Sample *sample)
{
    const struct Ray *ray = &inputs->rays[sample->ray];
    double norm = 1;
    for (int c = 0; c < 3 && inputs->stepping.contracted; c++) {
        double position = ray->origin[c] + (double)sample->t * ray->direction[c] - 0.5;
        norm = fmax(norm, 2 * fabs(position) / fixture->config.aabb_scale);
    }
    return sample->width / (norm * norm);
}

float density_of(double weight, double transmittance, double width)
{
    if (isinf(weight))
        return INFINITY;
    return transmittance > 0 ? (float)(-log1p(-weight / transmittance) / width) : 1;
}

void make_field(const struct fixture *fixture, const struct inputs *inputs,
                const struct Sample *samples, const struct coarse_weights *weights, int kind,
                struct coarse *coarse, float (*field)[4])
{
    struct random random = {77};
    uint32_t bins = fixture->config.ray_samples;
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        double transmittance_in = 1;
        uint32_t ray_kind = kind < 0 ? r % weights->kinds : (uint32_t)kind;
        for (uint32_t i = 0; i < coarse->found[r].count; i++) {
            uint32_t at = coarse->found[r].first + i;
            double width = density_width(fixture, inputs, &samples[at]);
            double weight = weights->weight(ray_kind, i, bins, &random);
            field[at][3] = density_of(weight, transmittance_in, width);
            double transmittance_out = transmittance_in * exp(-(double)field[at][3] * width);
            coarse->weights[r][i] =
                transmittance_in > transmittance_out ? transmittance_in - transmittance_out : 0;
            transmittance_in = transmittance_out;
        }
    }
}

struct coarse coarse_of(struct fixture *fixture, const struct inputs *inputs, const char *shader,
                        const struct coarse_weights *weights, int kind)
{
    struct coarse coarse = {.weights = base_alloc(inputs->ray_count, sizeof *coarse.weights)};
    const uint64_t capacity = fixture->config.sample_capacity;
    const struct gpu_buffer *bound[GPU_BINDINGS];
    float(*field)[4] = base_alloc(capacity, sizeof *field);
    struct gpu_buffer_request requests[] = {
        {&coarse.results, "coarse", fixture->buffers[BIND_RESULTS].size, GPU_DEVICE},
        {&coarse.samples, "coarse", fixture->buffers[BIND_SAMPLES].size, GPU_DEVICE},
        {&coarse.field, "coarse", capacity * sizeof *field, GPU_DEVICE},
    };
    check_ok(gpu_arena_create(fixture->device, requests, BASE_COUNT(requests), &coarse.arena));
    put_rays(fixture, inputs);
    struct State none = {.step = inputs->step, .ray_count = inputs->ray_count};
    fixture_put(fixture, BIND_STATE, &none, sizeof none);
    fixture_run(fixture, shader,
                (struct Push){.a = fixture->config.ray_samples, .b = inputs->ray_count},
                march_groups(fixture, inputs));
    coarse.found = fixture_read(fixture, BIND_RESULTS);
    struct Sample *samples = fixture_read(fixture, BIND_SAMPLES);
    make_field(fixture, inputs, samples, weights, kind, &coarse, field);
    check_ok(gpu_upload(fixture->device, &coarse.results, 0, coarse.found, coarse.results.size));
    check_ok(gpu_upload(fixture->device, &coarse.samples, 0, samples, coarse.samples.size));
    check_ok(gpu_upload(fixture->device, &coarse.field, 0, field, coarse.field.size));
    for (uint32_t i = 0; i < GPU_BINDINGS; i++)
        bound[i] = &fixture->buffers[i];
    bound[BIND_COARSE_RESULTS] = &coarse.results;
    bound[BIND_COARSE_SAMPLES] = &coarse.samples;
    bound[BIND_COARSE_FIELD] = &coarse.field;
    gpu_bindings_destroy(&fixture->bindings);
    check_ok(gpu_bindings_create(fixture->device, bound, &fixture->bindings));
    free(samples);
    free(field);
    return coarse;
}

void coarse_destroy(struct coarse *coarse)
{
    gpu_arena_destroy(&coarse->arena);
    free(coarse->found);
    free(coarse->weights);
}
