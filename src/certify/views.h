/* Declares what the tests of refined views share. */
#ifndef CERTIFY_VIEWS_H
#define CERTIFY_VIEWS_H

#include "certify/fixture.h"

#define VIEWS 150u /* more than two for each invocation of update_views */
#define CELLS 5u   /* of the error map, which precedes the sums of gradients */

/* The contents of BIND_STATE. */
struct refined {
    struct State state;
    struct ErrorCell map[CELLS], sums[VIEWS][VIEW_SUMS];
    struct View views[VIEWS];
};

/* Returns a fixture that refines poses and lenses as `refine` says (REFINE_*), with `pixels`
 * pixels. */
struct fixture views_fixture(struct gpu_device *device, struct vkn_config settings, uint32_t refine,
                             uint64_t pixels);

/* Returns the camera with the pose and lens of its view. */
struct scene_camera views_moved_camera(const struct scene_camera *camera, const struct View *view);

/* Runs view_gradients on random samples, and checks the sums of all views. */
void views_check_gradients(struct gpu_device *device, uint32_t refine, bool contracted,
                           bool deterministic);

#endif
