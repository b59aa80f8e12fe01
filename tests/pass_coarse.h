/* Makes random rays, and results of a coarse field or proposal in bins of equal size along them,
 * for tests of sampling. */
#ifndef TESTS_PASS_COARSE_H
#define TESTS_PASS_COARSE_H

#include "pass_fixture.h"

#define SAMPLE_WORDS (sizeof(struct Sample) / 4)
#define STEP         77u /* step at which rays are sampled, unless a test says otherwise */
#define MOST_BINS    256u

/* Shaders that sample the rays: `all` at once, or `count` and `write` in the rays' order. */
struct march_shaders {
    const char *all, *count, *write;
};

struct inputs {
    const struct march_shaders *shaders;
    struct reference_grid grid; /* of the first time bin; cells of other bins follow */
    uint32_t time_bins;
    struct reference_stepping stepping;
    struct Ray *rays;
    double (*spans)[2]; /* first and last distance of each ray */
    uint32_t ray_count, step;
};

struct scenario {
    uint32_t aabb_scale, resolution, steps_per_unit, rays;
    double cone;         /* negative: none */
    uint32_t local_size; /* in subgroups */
    bool contracted;
    uint32_t time_bins;       /* time bins; 0: a static scene */
    enum vkn_spacing spacing; /* of bins */
};

/* The spacings' values in the shaders. */
static const uint32_t shader_spacings[] = {
    [VKN_SPACING_DEFAULT] = SPACING_STEPS,       [VKN_SPACING_STEPS] = SPACING_STEPS,
    [VKN_SPACING_LINEAR] = SPACING_LINEAR,       [VKN_SPACING_LOG] = SPACING_LOG,
    [VKN_SPACING_DISPARITY] = SPACING_DISPARITY,
};

/* Makes a ray from outside or inside the cube towards its middle; some rays are along an axis, some
 * miss the cube, which ends rays unless space is contracted. */
static inline void random_ray(struct Ray *ray, double span[2], const struct Config *config,
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

static inline void inputs_destroy(struct inputs *inputs)
{
    free(inputs->rays);
    free(inputs->spans);
    free(inputs->grid.occupied);
}

/* Moves the rays so far from the cube that one of 256 bins has hardly more floats than 512 fine
 * samples need. Rays that only touch the cube are dropped. */
static inline void move_rays_back(struct inputs *inputs, const struct Config *config)
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

static inline void put_rays(struct bench *bench, const struct inputs *inputs)
{
    const struct State state = {.step = inputs->step, .ray_count = inputs->ray_count};
    bench_put(bench, BIND_STATE, &state, sizeof state);
    bench_poison(bench, BIND_RESULTS);
    bench_poison(bench, BIND_SAMPLES);
    bench_poison(bench, BIND_RAYS);
    bench_put(bench, BIND_RAYS, inputs->rays, inputs->ray_count * sizeof *inputs->rays);
}

/* Returns the number of workgroups for all rays, up to the device's limit. */
static inline uint32_t march_groups(const struct bench *bench, const struct inputs *inputs)
{
    uint32_t groups = bench_subgroups(bench, inputs->ray_count);
    return groups < bench->config.group_limit ? groups : bench->config.group_limit;
}

static inline void run_march(struct bench *bench, const struct inputs *inputs, const char *shader)
{
    bench_run(bench, shader, (struct Push){.b = bench->local_size}, march_groups(bench, inputs));
}

/* ---- samples in bins ----------------------------------------------------------------------- */

/* Returns a distance's rounding error: that of the step count, as in check_ray, and that of the
 * ray's start. With disparity it grows with the distance squared. */
static inline double rounding_at(const struct inputs *inputs, uint32_t r, double t)
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

/* Checks the sample at `position` (0 to 1) of a bin of ray `r`. */
static inline void check_bin(const struct bench *bench, const struct inputs *inputs, uint32_t r,
                             uint32_t bin, double position, const struct Sample *sample)
{
    uint32_t count = bench->config.ray_samples;
    double t = reference_in_bin(&inputs->stepping, inputs->spans[r], count, bin, position);
    double width = reference_bin_width(&inputs->stepping, inputs->spans[r], count, bin);
    double end = reference_in_bin(&inputs->stepping, inputs->spans[r], count, bin, 1);
    assert_int_equal(sample->ray, r);
    assert_close(sample->t, t, 1, rounding_at(inputs, r, t), "distance of a sample of ray", r);
    assert_close(sample->width, width, 1, rounding_at(inputs, r, end), "width of a sample of ray",
                 r);
}

/* Returns the sample's random position in its bin; the random stream is indexed by ray and bin. */
static inline double bin_jitter(const struct bench *bench, const struct inputs *inputs, uint32_t r,
                                uint32_t bin)
{
    double unit[3];
    reference_random_unit(bench->config.seed, inputs->step,
                          (bench->config.first_ray + r) * bench->config.ray_samples + bin, 32,
                          unit);
    return unit[0];
}

static inline double bin_position(const struct bench *bench, const struct inputs *inputs,
                                  uint32_t r, double t)
{
    const double *span = inputs->spans[r];
    double from = reference_steps_to(&inputs->stepping, span[0]);
    double steps = reference_steps_to(&inputs->stepping, span[1]) - from;
    return (reference_steps_to(&inputs->stepping, t) - from) / steps * bench->config.ray_samples;
}

/* ---- results of a coarse field ------------------------------------------------------------- */

struct coarse {
    struct gpu_arena *arena;
    struct gpu_buffer results, samples, field;
    struct RayResult *found;      /* first sample and count of each ray */
    double (*weights)[MOST_BINS]; /* weight of each ray's bins */
};

/* Returns the width that the density is integrated over, contracted if space is. */
static inline double density_width(const struct bench *bench, const struct inputs *inputs,
                                   const struct Sample *sample)
{
    const struct Ray *ray = &inputs->rays[sample->ray];
    double norm = 1;
    for (int c = 0; c < 3 && inputs->stepping.contracted; c++) {
        double position = ray->origin[c] + (double)sample->t * ray->direction[c] - 0.5;
        norm = fmax(norm, 2 * fabs(position) / bench->config.aabb_scale);
    }
    return sample->width / (norm * norm);
}

/* Kinds of rays, and a function that returns the weight of a bin on a ray of a kind. The weights of
 * a ray leave some transmittance, unless one is infinite or NaN. */
struct coarse_weights {
    uint32_t kinds;
    double (*weight)(uint32_t kind, uint32_t bin, uint32_t bins, struct random *random);
};

static inline float density_of(double weight, double transmittance, double width)
{
    if (isinf(weight))
        return INFINITY;
    return transmittance > 0 ? (float)(-log1p(-weight / transmittance) / width) : 1;
}

/* Computes densities that give the coarse samples their weights; rays are of all kinds in turn, or
 * of one `kind` unless it is negative. */
static inline void make_field(const struct bench *bench, const struct inputs *inputs,
                              const struct Sample *samples, const struct coarse_weights *weights,
                              int kind, struct coarse *coarse, float (*field)[4])
{
    struct random random = {77};
    uint32_t bins = bench->config.ray_samples;
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        double transmittance_in = 1;
        uint32_t ray_kind = kind < 0 ? r % weights->kinds : (uint32_t)kind;
        for (uint32_t i = 0; i < coarse->found[r].count; i++) {
            uint32_t at = coarse->found[r].first + i;
            double width = density_width(bench, inputs, &samples[at]);
            double weight = weights->weight(ray_kind, i, bins, &random);
            field[at][3] = density_of(weight, transmittance_in, width);
            double transmittance_out = transmittance_in * exp(-(double)field[at][3] * width);
            coarse->weights[r][i] =
                transmittance_in > transmittance_out ? transmittance_in - transmittance_out : 0;
            transmittance_in = transmittance_out;
        }
    }
}

/* Samples the rays with `shader` for a coarse field and makes that field's results. */
static inline struct coarse coarse_of(struct bench *bench, const struct inputs *inputs,
                                      const char *shader, const struct coarse_weights *weights,
                                      int kind)
{
    struct coarse coarse = {.weights = base_alloc(inputs->ray_count, sizeof *coarse.weights)};
    const uint64_t capacity = bench->config.sample_capacity;
    const struct gpu_buffer *bound[GPU_BINDINGS];
    float(*field)[4] = base_alloc(capacity, sizeof *field);
    struct gpu_buffer_request requests[] = {
        {&coarse.results, "coarse", bench->buffers[BIND_RESULTS].size, GPU_DEVICE},
        {&coarse.samples, "coarse", bench->buffers[BIND_SAMPLES].size, GPU_DEVICE},
        {&coarse.field, "coarse", capacity * sizeof *field, GPU_DEVICE},
    };
    ok(gpu_arena_create(bench->device, requests, BASE_COUNT(requests), &coarse.arena));
    put_rays(bench, inputs);
    struct State none = {.step = inputs->step, .ray_count = inputs->ray_count};
    bench_put(bench, BIND_STATE, &none, sizeof none);
    bench_run(bench, shader, (struct Push){.a = bench->config.ray_samples, .b = inputs->ray_count},
              march_groups(bench, inputs));
    coarse.found = bench_read(bench, BIND_RESULTS);
    struct Sample *samples = bench_read(bench, BIND_SAMPLES);
    make_field(bench, inputs, samples, weights, kind, &coarse, field);
    ok(gpu_upload(bench->device, &coarse.results, 0, coarse.found, coarse.results.size));
    ok(gpu_upload(bench->device, &coarse.samples, 0, samples, coarse.samples.size));
    ok(gpu_upload(bench->device, &coarse.field, 0, field, coarse.field.size));
    for (uint32_t i = 0; i < GPU_BINDINGS; i++)
        bound[i] = &bench->buffers[i];
    bound[BIND_COARSE_RESULTS] = &coarse.results;
    bound[BIND_COARSE_SAMPLES] = &coarse.samples;
    bound[BIND_COARSE_FIELD] = &coarse.field;
    gpu_bindings_destroy(&bench->bindings);
    ok(gpu_bindings_create(bench->device, bound, &bench->bindings));
    free(samples);
    free(field);
    return coarse;
}

static inline void coarse_destroy(struct coarse *coarse)
{
    gpu_arena_destroy(&coarse->arena);
    free(coarse->found);
    free(coarse->weights);
}

#endif
