/* The inside of a renderer, for the files that make something else than pictures with it. */
#ifndef RENDER_INTERNAL_H
#define RENDER_INTERNAL_H

#include <vknerf/renderer.h>

#include "step/step.h"
#include "render/render.h"

#define MARCH_SAMPLES           64u /* at the least */
#define RENDER_NORMAL_PIPELINES 3u

struct vkn_renderer {
    struct gpu_device *device;
    /* Held, so that it goes last: the context of a checkpoint's field, or the trainer of one in
     * training. */
    vkn_context *context;
    vkn_trainer *trainer;
    char *scene_path;
    const struct step *step;    /* whose field is shown; NULL: that of a checkpoint, its own */
    const uint64_t *steps_done; /* of that step's training; NULL: see checkpoint_step */
    uint64_t checkpoint_step;
    struct setup setup;                   /* of the renderer's batches of rays and samples */
    bool has_time;                        /* all cameras are at `time` */
    float time;                           /* also of samples that no camera looks at */
    uint32_t march_iterations_per_submit; /* handed to the device at once; 0: all */
    struct buffers buffers;
    struct gpu_bindings *bindings;
    /* Where there are coarse samples; else NULL: what they are evaluated by, and they. */
    struct setup coarse_setup; /* see setup_of_coarse */
    struct buffers coarse;
    struct gpu_bindings *coarse_bindings;
    struct gpu_pipeline *sample_coarse_rays, *find_coarse_density;
    /* Of a proposal, whose find_coarse_density is NULL. */
    struct gpu_pipeline *proposal_forward[RENDER_MAX_FORWARD], *round_proposal;
    uint32_t march_samples; /* most samples of a ray in a round */
    struct gpu_pipeline *generate_view_rays, *sample_view_rays, *composite_view, *finish_pixels,
        *round_parameters;
    struct gpu_pipeline *pack_occupancy;              /* NULL: there is no grid to look at */
    struct gpu_pipeline *forward[RENDER_MAX_FORWARD]; /* the field's forward recipe */
    render_evaluate_samples *evaluate; /* see render_set_evaluator; NULL: the field has passes */
    void *evaluate_context;
    /* Once normals are wanted; else NULL. */
    struct buffers normals, points; /* NORMALS; MESH_VERTICES */
    struct gpu_pipeline *sample_normals, *composite_normals, *finish_normals;
    struct difference_normals *difference_normals; /* replaces the pass sample_normals for models
                                                      that have none */
};

/* The programs of views; of the proposal of their samples, for coarse_setup; and of their normals
 * where the model has some, with their places in the renderer; return their number. */
size_t render_list_views(struct vkn_renderer *r,
                         struct field_pass_request passes[RENDER_MAX_PIPELINES]);
size_t render_list_proposal(struct vkn_renderer *r,
                            struct field_pass_request passes[RENDER_MAX_PIPELINES]);
size_t render_list_normals(struct vkn_renderer *r,
                           struct field_pass_request passes[RENDER_NORMAL_PIPELINES]);
/* A renderer of a step's field or, without a step, of one that the caller puts into its buffers.
 * `precision`: AUTO for the configuration's. */
vkn_status render_create(struct gpu_device *device, const struct vkn_config *config,
                         enum vkn_precision precision, const char *scene_path,
                         const struct step *step, const uint64_t *steps_done,
                         vkn_renderer **renderer);
/* Room for the points that rays hit, BIND_MESH_VERTICES. */
vkn_status render_want_points(struct vkn_renderer *r);
/* Programs of PASS_LOCAL_SIZE invocations, for the renderer's path. */
vkn_status render_create_passes(struct vkn_renderer *r, const struct field_pass_request *passes,
                                size_t count);
/* The view that rays are generated for. */
vkn_status render_upload_camera(struct vkn_renderer *r, const struct scene_camera *camera);
vkn_status render_upload_constants(struct vkn_renderer *r);
/* A view as its image has it, on a grey of 0..1: colours, opacity, and which pixels count. The
 * caller frees what *picture owns, also after a failure. */
vkn_status render_read_photograph(const struct vkn_scene *scene, enum scene_split_name split,
                                  size_t view, float background, struct vkn_picture *picture);
/* Hands over as much at once from here on as the seconds of a batch suggest. */
void render_choose_submit_size(struct vkn_renderer *r, double seconds);
/* Mean opacity of what a view shows nearer than half of the way to the nearest point of the sparse
 * model (scene_nearest_point): nothing should be there. NaN where there are too few points. */
vkn_status render_floaters(vkn_renderer *renderer, const struct vkn_scene *scene,
                           const struct scene_camera *camera, double *share);
/* Marches and evaluates the first `rays` of BIND_RAYS to their ends. `density`, where not NULL,
 * takes the place of the last pass that evaluates their samples; `composite` adds them up. A
 * barrier behind it. */
void render_record_march(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                         const struct gpu_pipeline *density, const struct gpu_pipeline *composite);
/* The same, and runs it all, where the caller evaluates samples, see render_set_evaluator;
 * composites them.
 */
vkn_status render_march_with_evaluator(struct vkn_renderer *r, uint32_t rays);

#endif
