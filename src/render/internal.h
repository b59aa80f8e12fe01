/* Declares struct vkn_renderer and the functions that the files of this module render with. */
#ifndef RENDER_INTERNAL_H
#define RENDER_INTERNAL_H

#include <vknerf/renderer.h>

#include "step/step.h"
#include "render/render.h"

#define MARCH_SAMPLES           64u /* samples of a ray in a march iteration, at least */
#define RENDER_NORMAL_PIPELINES 3u

struct render_query; /* query.c */

/* Renders the field of a checkpoint or of a trainer in batches of rays. A batch is marched in
 * iterations: each takes up to march_samples samples of every ray, evaluates the field at the
 * samples and composites their colours. */
struct vkn_renderer {
    struct gpu_device *device;
    /* Reference that keeps the field alive: the context of a checkpoint or the trainer, or NULL. */
    vkn_context *context;
    vkn_trainer *trainer;
    char *scene_path;
    const struct step *step;    /* step whose field is rendered; NULL: the field of a checkpoint */
    const uint64_t *steps_done; /* training steps of `step`; NULL: see checkpoint_step */
    uint64_t checkpoint_step;
    char *checkpoint; /* its path; NULL: a trainer's field */
    /* A copy of the state of a checkpoint with refined cameras, appearances or outliers. */
    struct saved_state state;
    struct setup setup; /* sized for the renderer's batches of rays and samples */
    bool has_time;      /* `time` replaces the time of every camera */
    float time;         /* scene time, 0..1; also the time of samples that belong to no camera */
    uint32_t march_iterations_per_submit; /* march iterations of one submission; 0: all */
    struct buffers buffers;
    struct gpu_bindings *bindings;
    /* The coarse field or the proposal that places the fine samples; without one all zero. */
    struct setup coarse_setup; /* see setup_of_coarse */
    struct buffers coarse;
    struct gpu_bindings *coarse_bindings;
    struct gpu_pipeline *sample_coarse_rays, *find_coarse_density;
    /* Pipelines of a proposal, for which find_coarse_density is NULL. */
    struct gpu_pipeline *proposal_forward[RENDER_MAX_FORWARD], *round_proposal;
    uint32_t march_samples; /* most samples of a ray in a march iteration */
    struct gpu_pipeline *generate_view_rays, *sample_view_rays, *composite_view, *finish_pixels,
        *round_parameters;
    struct gpu_pipeline *given_rays;                  /* NULL until rays are given */
    struct render_query *query;                       /* NULL until points are queried */
    struct gpu_pipeline *pack_occupancy;              /* NULL: the model has no occupancy grid */
    struct gpu_pipeline *forward[RENDER_MAX_FORWARD]; /* the field's forward passes */
    render_evaluate_samples *evaluate; /* set by render_set_evaluator; NULL: the field has passes */
    void *evaluate_context;
    /* Empty until normals or points are requested. */
    struct buffers normals, points; /* hold NORMALS and MESH_VERTICES */
    struct gpu_pipeline *sample_normals, *composite_normals, *finish_normals;
    struct difference_normals *difference_normals; /* replaces sample_normals for models without a
                                                      pass for normals */
};

/* Lists the pipelines of views and the members of *r that receive them; returns the number. */
size_t render_list_views(struct vkn_renderer *r,
                         struct field_pass_request passes[RENDER_MAX_PIPELINES]);
/* Does the same for the pipelines of the proposal, with coarse_setup; 0 without a proposal. */
size_t render_list_proposal(struct vkn_renderer *r,
                            struct field_pass_request passes[RENDER_MAX_PIPELINES]);
/* Does the same for normals; sample_normals only where the model has a pass for normals. */
size_t render_list_normals(struct vkn_renderer *r,
                           struct field_pass_request passes[RENDER_NORMAL_PIPELINES]);
/* Creates a renderer of a step's field. With `step` NULL the caller fills the renderer's field
 * buffers. `precision`: AUTO for the configuration's. */
vkn_status render_create(struct gpu_device *device, const struct vkn_config *config,
                         enum vkn_precision precision, const char *scene_path,
                         const struct step *step, const uint64_t *steps_done,
                         vkn_renderer **renderer);
/* Allocates BIND_MESH_VERTICES for the points that a batch of rays hits. */
vkn_status render_enable_points(struct vkn_renderer *r);
/* Creates pipelines with workgroups of PASS_LOCAL_SIZE for the renderer's backend. */
vkn_status render_create_passes(struct vkn_renderer *r, const struct field_pass_request *passes,
                                size_t count);
/* Destroys what vkn_renderer_query has made; accepts NULL. */
void render_query_destroy(struct render_query **query);
/* Allocates the maps of a picture, [height][width], with normals if `normals`. */
vkn_status render_allocate_picture(struct vkn_picture *picture, uint32_t width, uint32_t height,
                                   bool normals);
/* Prepares for calls of render_given_rays. */
vkn_status render_begin_rays(struct vkn_renderer *r, enum vkn_background background);
/* Renders up to Config.ray_capacity rays into the first `count` pixels of an allocated picture.
 * `rays` have origin, direction and time in training space, and in `step` and `last` the nearest
 * and the farthest distance of samples. */
vkn_status render_given_rays(struct vkn_renderer *r, const struct Ray *rays, uint32_t count,
                             struct vkn_picture *picture);
/* Reads the parameters of a picture for the function `what`, and lets the next pictures be as they
 * say, until render_end_params, which must be called after failures too. */
vkn_status render_begin_params(vkn_renderer *renderer, const char *what,
                               const struct vkn_picture_params *given,
                               struct vkn_picture_params *params, enum vkn_background *background);
void render_end_params(vkn_renderer *renderer);
/* Uploads the camera that rays are generated for. */
vkn_status render_upload_camera(struct vkn_renderer *r, const struct scene_camera *camera);
/* Uploads the configuration constants of the field and of the coarse field. */
vkn_status render_upload_constants(struct vkn_renderer *r);
/* Checks that the scene has as many training views as the training of the renderer's step. */
vkn_status render_check_views(const struct vkn_renderer *r, const struct vkn_scene *scene);
/* Finds the views in the state of the renderer's checkpoint, for the scene of its training.
 * VKN_BAD_INPUT as in step_find_views. */
vkn_status render_find_saved_views(const struct vkn_renderer *r, const struct vkn_scene *scene,
                                   struct step_views *views);
/* Reads the image of a view, composited on a grey background of 0..1: colours, opacity, and the
 * mask of used pixels. The caller frees what *picture owns, also after a failure. */
vkn_status render_read_photograph(const struct vkn_scene *scene, enum scene_split_name split,
                                  size_t view, float background, struct vkn_picture *picture);
/* Returns the background of an evaluation, 0 or 1 in each channel. */
float render_background_grey(const struct render_evaluation *request);
/* Lets the next pictures be as the camera of a view takes them, until render_set_exposure: training
 * views as the training has estimated them; other views at the exposure of their image file, else
 * at the mean exposure, with the vignetting and response curve of a training view of the same
 * camera. */
vkn_status render_set_view_appearance(struct vkn_renderer *r, const struct vkn_scene *scene,
                                      enum scene_split_name split, size_t view);
/* Measures the PSNR after the colours were corrected by a fit to the target, affine or quadratic in
 * the channels, as multinerf does. VKN_ERROR if memory runs out. */
vkn_status render_corrected_psnr(const struct vkn_picture *picture,
                                 const struct vkn_picture *target, bool quadratic, double *psnr);
/* A view, aligned by each half of its image. */
struct render_aligned {
    double psnr;                    /* of each half at the pose that the other half has aligned */
    struct scene_camera cameras[2]; /* aligned by the first half; by the second half */
};
/* Aligns the pose of a view with the field, from that of `camera`. `whitening`: of the camera's
 * pose (scene_whiten). VKN_INTERRUPTED when stopped. */
vkn_status render_align_view(const struct render_evaluation *request, size_t view,
                             const struct scene_camera *camera,
                             const struct scene_whitening *whitening,
                             struct render_aligned *aligned);
/* Sets how many march iterations later submissions hold, from the seconds of the last batch. */
void render_choose_submit_size(struct vkn_renderer *r, double seconds);
/* Measures floaters: the mean opacity of a view up to half of the distance to the nearest point of
 * the sparse model (scene_nearest_point), where space should be empty. NaN where the sparse model
 * has too few points. */
vkn_status render_floaters(vkn_renderer *renderer, const struct vkn_scene *scene,
                           const struct scene_camera *camera, double *share);
/* Measures a picture's depths against the known depths of the split's view `index`: depth_error,
 * depth_inliers and depths. */
vkn_status render_depth_error(const struct render_evaluation *request, size_t index,
                              const struct vkn_picture *picture, struct vkn_evaluated_view *view);
/* Records the march of the first `rays` rays until all have ended, and a barrier. `density`
 * replaces the field's last forward pass unless it is NULL. `composite` runs in each iteration. */
void render_record_march(struct vkn_renderer *r, struct gpu_recording *recording, uint32_t rays,
                         const struct gpu_pipeline *density, const struct gpu_pipeline *composite);
/* Runs the same march with the caller's evaluation of samples, see render_set_evaluator. */
vkn_status render_march_with_evaluator(struct vkn_renderer *r, uint32_t rays);

#endif
