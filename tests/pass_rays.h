/* Checks training and view rays against the reference. */
#ifndef TESTS_PASS_RAYS_H
#define TESTS_PASS_RAYS_H

#include "pass_fixture.h"

/* Checks origin, direction, cosine to the viewing axis, and first and last step: the ray's part
 * inside the cube, or all of it in contracted space, between near and far distance. */
static inline void assert_ray(const struct Ray *ray, const struct scene_camera *camera, double x,
                              double y, const struct Config *config, bool contracted,
                              double jitter_from, double jitter_to, size_t index)
{
    struct reference_stepping stepping = reference_stepping(config, contracted);
    double origin[3], direction[3], span[2], forward = 0;
    scene_camera_ray(camera, x, y, origin, direction);
    for (int i = 0; i < 3; i++) {
        assert_close(ray->origin[i], origin[i], 1e-6, 1, "origin of ray", index);
        assert_close(ray->direction[i], direction[i], 3e-6, 1, "direction of ray", index);
        forward -= direction[i] * camera->pose[4 * i + 2];
    }
    assert_close(ray->distance_scale, forward, 3e-6, 1, "cosine of ray", index);
    bool hits = reference_cube(origin, direction, config->aabb_scale, span) || contracted;
    if (contracted) {
        span[0] = config->near_distance;
        span[1] = config->far_distance;
    }
    span[1] = fmin(span[1], config->far_distance);
    double start = fmax(span[0], config->near_distance);
    if (!hits || span[1] < start + 1e-4) {
        if (!hits || span[1] < start - 1e-4) /* closer cases depend on rounding */
            assert_true(ray->last == -1.0f);
        return;
    }
    double first = reference_steps_to(&stepping, start),
           last = reference_steps_to(&stepping, span[1]);
    double jitter = ray->step - first, slack = 3e-5 * (1 + last);
    if (!(jitter > jitter_from - slack && jitter < jitter_to + slack))
        fail_msg("ray %zu begins %.7g steps inside", index, jitter);
    assert_close(ray->last, last, 1, slack, "last step of ray", index);
}

/* Checks the ray's position in an image of width x height pixels. */
static inline void assert_position(const struct Ray *ray, double width, double height, double x,
                                   double y, size_t index)
{
    double longer = fmax(width, height);
    assert_close((int16_t)(ray->position & 0xffff) / 32767.0, (x - 0.5 * width) / longer, 2e-5, 1,
                 "column of ray", index);
    assert_close((int16_t)(ray->position >> 16) / 32767.0, (y - 0.5 * height) / longer, 2e-5, 1,
                 "row of ray", index);
}

static inline void assert_fresh_result(const struct RayResult *result)
{
    const struct RayResult fresh = {.transmittance = 1};
    assert_memory_equal(result, &fresh, sizeof fresh);
}

#endif
