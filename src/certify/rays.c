/* Checks training and view rays against the reference. */
#include "certify/rays.h"

void check_camera_ray(const struct Ray *ray, const struct scene_camera *camera, double x, double y,
                      const struct Config *config, bool contracted, double jitter_from,
                      double jitter_to, size_t index)
{
    const double limits[2] = {config->near_distance, config->far_distance};
    double origin[3], direction[3], forward = 0;
    scene_camera_ray(camera, x, y, origin, direction);
    for (int i = 0; i < 3; i++) {
        check_close(ray->origin[i], origin[i], 1e-6, 1, "origin of ray", index);
        check_close(ray->direction[i], direction[i], 3e-6, 1, "direction of ray", index);
        forward -= direction[i] * camera->pose[4 * i + 2];
    }
    check_close(ray->distance_scale, forward, 3e-6, 1, "cosine of ray", index);
    check_ray_span(ray, origin, direction, limits, config, contracted, jitter_from, jitter_to,
                   index);
}

void check_ray_span(const struct Ray *ray, const double origin[3], const double direction[3],
                    const double limits[2], const struct Config *config, bool contracted,
                    double jitter_from, double jitter_to, size_t index)
{
    struct reference_stepping stepping = reference_stepping(config, contracted);
    double span[2];
    bool hits = reference_cube(origin, direction, config->aabb_scale, span) || contracted;
    if (contracted) {
        span[0] = limits[0];
        span[1] = limits[1];
    }
    span[1] = fmin(span[1], limits[1]);
    double start = fmax(span[0], limits[0]);
    if (!hits || span[1] < start + 1e-4) {
        if (!hits || span[1] < start - 1e-4) /* closer cases depend on rounding */
            check_that(ray->last == -1.0f);
        return;
    }
    double first = reference_steps_to(&stepping, start),
           last = reference_steps_to(&stepping, span[1]);
    double jitter = ray->step - first, slack = 3e-5 * (1 + last);
    if (!(jitter > jitter_from - slack && jitter < jitter_to + slack))
        check_fail("ray %zu begins %.7g steps inside", index, jitter);
    check_close(ray->last, last, 1, slack, "last step of ray", index);
}

void check_ray_position(const struct Ray *ray, double width, double height, double x, double y,
                        size_t index)
{
    double longer = fmax(width, height);
    check_close((int16_t)(ray->position & 0xffff) / 32767.0, (x - 0.5 * width) / longer, 2e-5, 1,
                "column of ray", index);
    check_close((int16_t)(ray->position >> 16) / 32767.0, (y - 0.5 * height) / longer, 2e-5, 1,
                "row of ray", index);
}

void check_fresh_result(const struct RayResult *result)
{
    const struct RayResult fresh = {.transmittance = 1};
    check_memory(result, &fresh, sizeof fresh);
}
