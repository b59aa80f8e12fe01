/* Checks training and view rays against the reference. */
#ifndef CERTIFY_RAYS_H
#define CERTIFY_RAYS_H

#include "certify/fixture.h"

/* Checks origin, direction, cosine to the viewing axis, and first and last step: the ray's part
 * inside the cube, or all of it in contracted space, between near and far distance. */
void check_camera_ray(const struct Ray *ray, const struct scene_camera *camera, double x, double y,
                      const struct Config *config, bool contracted, double jitter_from,
                      double jitter_to, size_t index);

/* Checks first and last step of a ray between the distances `limits`. */
void check_ray_span(const struct Ray *ray, const double origin[3], const double direction[3],
                    const double limits[2], const struct Config *config, bool contracted,
                    double jitter_from, double jitter_to, size_t index);

/* Checks the ray's position in an image of width x height pixels. */
void check_ray_position(const struct Ray *ray, double width, double height, double x, double y,
                        size_t index);

void check_fresh_result(const struct RayResult *result);

#endif
