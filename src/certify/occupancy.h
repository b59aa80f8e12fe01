/* Declares what the tests of the occupancy grid share. */
#ifndef CERTIFY_OCCUPANCY_H
#define CERTIFY_OCCUPANCY_H

#include "certify/backends.h"

/* A cube of side aabb_scale, or all of space contracted around it. */
struct space_case {
    uint32_t aabb_scale;
    bool contracted;
    enum vkn_density_activation activation; /* 0: the default */
};

/* Returns the number of cells in a cascade. */
uint32_t occupancy_cells_of(const struct fixture *fixture);

/* Returns the number of cascades. */
uint32_t occupancy_cascades_of(const struct fixture *fixture);

/* Returns a fixture with the backend `path`, for a model with a hash grid. */
struct fixture occupancy_fixture_on(struct gpu_device *device, const struct backend_case *path,
                                    struct space_case space, uint32_t resolution);

/* Returns a fixture for a model of layers, with several chunks of cells. */
struct fixture occupancy_fixture_of_layers(struct gpu_device *device,
                                           const struct backend_case *path,
                                           struct space_case space);

/* Returns a fixture in fp32. */
struct fixture occupancy_fixture(struct gpu_device *device, struct space_case space,
                                 uint32_t resolution);

/* Makes values of unseen, empty, thin and thick cells. */
float *occupancy_random_values(uint32_t count, uint32_t seed);

/* Makes parameters of a field with large features; the caller frees them. */
float *occupancy_random_params(const struct fixture *fixture);

/* Uploads parameters, and their f16 copies if the backend has them. */
void occupancy_put_params(struct fixture *fixture, const float *params);

/* Runs the model's passes: a single one, or several for each chunk of cells. */
void occupancy_run_update(struct fixture *fixture, uint32_t groups);

/* Runs mark_unseen_cells for the cameras `views`, and checks all cells; `far` is their reach, 0 the
 * setting. */
void occupancy_check_unseen(struct gpu_device *device, struct space_case space_case,
                            const struct scene_camera *views, uint32_t cameras_used,
                            uint32_t groups, float far);

#endif
