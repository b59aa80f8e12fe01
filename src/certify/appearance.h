/* Declares what the tests of appearance share: random rays of views with an appearance each, and
 * their losses. */
#ifndef CERTIFY_APPEARANCE_H
#define CERTIFY_APPEARANCE_H

#include "certify/fixture.h"

#define VIEWS   90u /* more than one for each invocation of update_appearance */
#define CELLS   3u  /* of the error map, which precedes the sums */
#define RAYS    96u
#define SAMPLES 3u   /* of a ray */
#define STEP    1e-5 /* of numerical derivatives */
#define RATIO   (RAYS / 128.0)

/* The contents of BIND_STATE. */
struct contents {
    struct State state;
    struct ErrorCell map[CELLS], sums[VIEWS][APPEARANCE_PARAMETERS];
    struct Appearance views[VIEWS];
};

/* Random rays with samples, and the views that they belong to. */
struct inputs {
    struct contents contents;
    struct Camera cameras[VIEWS];
    struct Ray rays[RAYS];
    struct RayResult results[RAYS];
    struct Sample samples[RAYS * SAMPLES];
    float field[RAYS * SAMPLES][4];
};

/* Returns a fixture with an appearance of each view. */
struct fixture appearance_fixture(struct gpu_device *device, enum vkn_appearance kind);

/* Returns whether all parameters of the appearance are trained, not only exposures. */
bool appearance_is_full(const struct fixture *fixture);

/* Draws parameters that saturate no colour up to 0.5. */
void appearance_random(struct random *random, struct Appearance *appearance);

/* Returns the ray's position in its image, from -1 to 1. */
void appearance_position_of(const struct Ray *ray, double position[2]);

/* Makes random rays. Cameras are strips: camera n shows pixels of view 3 n / 4. */
struct inputs *appearance_inputs_create(uint64_t seed);

/* Uploads the state, cameras, rays and samples. */
void appearance_put_inputs(struct fixture *fixture, const struct inputs *inputs);

/* Returns the appearance of a ray's view. */
const struct Appearance *appearance_of_ray(const struct inputs *inputs, const struct Ray *ray);

/* Returns the loss of a ray's colour. */
double appearance_loss_of_color(const struct fixture *fixture, const struct Ray *ray,
                                const double p[APPEARANCE_PARAMETERS], const double color[3],
                                double transmittance);

/* Checks the gradients of a ray's samples, and the colour that composite keeps of the ray. */
void appearance_check_ray(const struct fixture *fixture, const struct inputs *inputs, uint32_t r,
                          const float (*gradients)[4], const struct RayResult *result);

#endif
