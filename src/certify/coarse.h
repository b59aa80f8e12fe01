/* Makes random rays, and results of a coarse field or proposal in bins of equal size along them,
 * for tests of sampling. */
#ifndef CERTIFY_COARSE_H
#define CERTIFY_COARSE_H

#include "certify/fixture.h"

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
void random_ray(struct Ray *ray, double span[2], const struct Config *config,
                const struct reference_stepping *stepping, struct random *random);

void inputs_destroy(struct inputs *inputs);

/* Moves the rays so far from the cube that one of 256 bins has hardly more floats than 512 fine
 * samples need. Rays that only touch the cube are dropped. */
void move_rays_back(struct inputs *inputs, const struct Config *config);

void put_rays(struct fixture *fixture, const struct inputs *inputs);

/* Returns the number of workgroups for all rays, up to the device's limit. */
uint32_t march_groups(const struct fixture *fixture, const struct inputs *inputs);

void run_march(struct fixture *fixture, const struct inputs *inputs, const char *shader);

/* ---- samples in bins ----------------------------------------------------------------------- */

/* Returns a distance's rounding error: that of the step count, as in check_ray, and that of the
 * ray's start. With disparity it grows with the distance squared. */
double rounding_at(const struct inputs *inputs, uint32_t r, double t);

/* Checks the sample at `position` (0 to 1) of a bin of ray `r`. */
void check_bin(const struct fixture *fixture, const struct inputs *inputs, uint32_t r, uint32_t bin,
               double position, const struct Sample *sample);

/* Returns the sample's random position in its bin; the random stream is indexed by ray and bin. */
double bin_jitter(const struct fixture *fixture, const struct inputs *inputs, uint32_t r,
                  uint32_t bin);

double bin_position(const struct fixture *fixture, const struct inputs *inputs, uint32_t r,
                    double t);

/* ---- results of a coarse field ------------------------------------------------------------- */

struct coarse {
    struct gpu_arena *arena;
    struct gpu_buffer results, samples, field;
    struct RayResult *found;      /* first sample and count of each ray */
    double (*weights)[MOST_BINS]; /* weight of each ray's bins */
};

/* Returns the width that the density is integrated over, contracted if space is. */
double density_width(const struct fixture *fixture, const struct inputs *inputs,
                     const struct Sample *sample);

/* Kinds of rays, and a function that returns the weight of a bin on a ray of a kind. The weights of
 * a ray leave some transmittance, unless one is infinite or NaN. */
struct coarse_weights {
    uint32_t kinds;
    double (*weight)(uint32_t kind, uint32_t bin, uint32_t bins, struct random *random);
};

float density_of(double weight, double transmittance, double width);

/* Computes densities that give the coarse samples their weights; rays are of all kinds in turn, or
 * of one `kind` unless it is negative. */
void make_field(const struct fixture *fixture, const struct inputs *inputs,
                const struct Sample *samples, const struct coarse_weights *weights, int kind,
                struct coarse *coarse, float (*field)[4]);

/* Samples the rays with `shader` for a coarse field and makes that field's results. */
struct coarse coarse_of(struct fixture *fixture, const struct inputs *inputs, const char *shader,
                        const struct coarse_weights *weights, int kind);

void coarse_destroy(struct coarse *coarse);

#endif
