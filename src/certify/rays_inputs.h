/* Declares what the tests of generate_rays share: cameras with numbered pixels, and comparisons. */
#ifndef CERTIFY_RAYS_INPUTS_H
#define CERTIFY_RAYS_INPUTS_H

#include "certify/rays.h"

#define CAMERAS 3u
#define RAYS    4000u

/* Width and height of each camera's image. */
extern const uint32_t rays_sizes[CAMERAS][2];
#define PIXELS (37u * 23 + 64 * 48 + 5 * 9)

/* Cameras and their pixels. */
struct views {
    struct scene_camera cameras[CAMERAS];
    uint32_t pixels[PIXELS]; /* red and green encode the pixel's index */
};

/* Places the cameras at `distance` from the cube's centre. */
struct views rays_views_create(double distance);

/* Returns a fixture with the cameras and their pixels. */
struct fixture rays_fixture(struct gpu_device *device, const struct views *views,
                            enum vkn_background background, uint32_t aabb_scale,
                            enum vkn_contraction contraction, uint64_t seed);

/* Runs a step; returns its rays, which the caller frees. */
struct Ray *rays_run_step(struct fixture *fixture, uint32_t step, uint32_t rays);

/* Returns the pixel whose colour is the ray's target. */
uint32_t rays_pixel_of(const struct views *views, const struct Ray *ray, size_t index);

/* Returns the camera of a pixel. */
uint32_t rays_camera_of(uint32_t pixel);

/* Checks that each ray goes through its pixel, and counts the rays of each pixel. */
void rays_check(const struct fixture *fixture, const struct views *views, const struct Ray *rays,
                uint32_t count, uint32_t *hits);

/* Checks that hits are equally likely: Pearson's chi-square test, at 5 standard deviations. */
void rays_check_uniform(const uint32_t *hits, size_t count, const char *what);

/* Checks that values are uniformly distributed over 0..1. */
void rays_check_uniform_values(const double *values, size_t count, const char *what);

/* ---- known depths ---------------------------------------------------------------------------- */

#define DEPTHS 7u

/* Returns a fixture whose rays go through the known depths with a probability of 0.4. */
struct fixture rays_fixture_of_depths(struct gpu_device *device, struct views *views);

/* Returns the known depth of a ray by its standard deviation, and checks distance and pixel. */
uint32_t rays_depth_of_ray(const struct views *views, const struct Ray *ray, size_t index);

#endif
