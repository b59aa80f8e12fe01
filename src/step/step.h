/* Declares the training step: its setup from a configuration, its passes, buffers and command
 * buffers, and its data exchange among ranks. */
#ifndef STEP_STEP_H
#define STEP_STEP_H

#include <stdatomic.h>

#include <vknerf/run.h>

#include "field/field.h"
#include "passes/passes.h"
#include "scene/scene.h"

/* The device of the public API. */
struct vkn_context {
    struct gpu_device *device;
    _Atomic uint32_t holders; /* references besides the creator's; the last one closes the device */
};
/* Adds a reference, which vkn_context_destroy removes. Returns `context`. */
vkn_context *context_hold(vkn_context *context);
/* Converts the parameters of vkn_context_create; `params` may be NULL. */
vkn_status context_options(const struct vkn_context_params *params, struct gpu_options *options);
/* Creates the context of a job. The caller destroys *context. */
vkn_status context_of_job(const struct vkn_job *job, vkn_context **context);

/* ---- configuration --------------------------------------------------------------------------- */
/* Makes a configuration effective: sets every open setting to its default for the scene and the
 * device. VKN_BAD_INPUT names the invalid key. */
vkn_status setup_resolve_config(struct vkn_config *config, const struct vkn_scene *scene,
                                const struct gpu_capabilities *device);
/* Checks that a training which resumes a checkpoint goes on to estimate what the checkpoint's
 * training did of the views: `then` and `now` are the configurations. VKN_BAD_INPUT names the
 * checkpoint and the key. */
vkn_status setup_check_resumed(const char *path, const struct vkn_config *then,
                               const struct vkn_config *now);
/* Copies from `from` the settings of the model's kind and shape that `config` leaves open, before
 * the weights of `from` become the initial weights of `config`. */
void setup_inherit_model(struct vkn_config *config, const struct vkn_config *from);
/* Returns the default distance from the camera at which rays begin, in training units. */
float setup_near_distance(const struct vkn_scene *scene);
struct field_choice;
/* Chooses precision and matrix settings (see field_choose) before setup_resolve_config is called on
 * the configuration. */
vkn_status setup_choose_precision(struct gpu_device *device, const struct vkn_scene *scene,
                                  struct vkn_config *config, struct field_choice *choice);

/* An effective configuration with the model, backend and constants that follow from it. */
struct setup {
    struct vkn_config config;
    struct field_model model;
    struct field_backend backend;
    struct Config constants;
    struct gpu_constants specialization;
    uint32_t buckets; /* gradient buckets of a field */
    bool overlaps;    /* buckets are all-reduced while later ones are computed */
    bool averaged;    /* parameter averaging after each update interval */
    float rate;       /* factor of all learning rates for parameter averaging; else 1 */
    struct field_model proposal_model; /* kind NULL: no proposal */
    struct field_backend proposal_backend;
};
/* Returns the setup of the coarse samples: the proposal's model and sample capacity, if there is a
 * proposal; else a copy of `setup`. */
struct setup setup_of_coarse(const struct setup *setup);
/* Creates the setup of an effective configuration. VKN_BAD_INPUT names the key that the device does
 * not support. */
vkn_status setup_create(const struct vkn_config *config, const struct gpu_capabilities *device,
                        struct setup *setup);
/* Creates the setup with the tuned backend of the device, see field_apply_tuning. */
vkn_status setup_create_tuned(const struct vkn_config *config, const struct gpu_device *device,
                              struct setup *setup);
/* Adapts the setup to device `number` of the `devices` of a training (parallel.mode). Each device
 * computes parallel.ranks_per_device virtual ranks. */
void setup_set_rank(struct setup *setup, uint32_t devices, uint32_t number);
/* Returns the buffer sizes that follow from the setup's current constants, without cameras and
 * pixels. */
struct buffer_counts setup_counts(const struct setup *setup);
/* Returns the ranges that the setup's passes are repeated over. */
struct repeats setup_repeats(const struct setup *setup);
/* Records the model's forward passes with the given pipelines, each in `groups` workgroups and
 * followed by a barrier. `last`, unless NULL, replaces the last pipeline and computes densities. */
void setup_record_forward(const struct setup *setup, struct gpu_recording *recording,
                          struct gpu_pipeline *const pipelines[], const struct gpu_pipeline *last,
                          const struct gpu_bindings *bindings, uint32_t groups);
/* Returns the average marching steps of rays through training pixels, in fully occupied space; 0 if
 * no ray meets the cube. */
double setup_ray_steps(const struct setup *setup, const struct vkn_scene *scene);
/* Converts a camera to its struct in BIND_CAMERAS, as the camera of a whole image. */
struct Camera setup_camera(const struct scene_camera *camera);

/* ---- the training step ----------------------------------------------------------------------- */
#define STEP_RECORDINGS        2u
#define STEP_MAX_SETS          4u
#define STEP_MAX_VIRTUAL_RANKS 16u
#define STEP_FIELDS            2u /* the main field; the coarse field or proposal */
#define STEP_MAX_PASSES        88u
#define STEP_MAX_PIPELINES     (STEP_MAX_PASSES + 2u)
#define STEP_MAX_TIMED         320u /* timed chunks of one step, and of passes outside of steps */
#define STEP_MAX_TIMINGS       (UPDATE_INTERVAL * 256u + STEP_MAX_TIMED)

/* The training images on the device. */
struct step_images {
    uint32_t views;     /* training views, whose cameras come first in BIND_CAMERAS */
    uint32_t slots;     /* further cameras, for streamed image strips; 0: all views are resident */
    uint32_t resident;  /* views or image strips whose pixels are on the device */
    uint64_t pixels;    /* of BIND_PIXELS */
    uint32_t cell_edge; /* of a cell of the error map, in pixels */
    uint32_t view_cells, slot_cells; /* most cells of the error map in a view, and in a slot */
    uint64_t depths;                 /* known depths of the training views, with loss.depth */
    float times[2];                  /* first and last time of the training views */
    float up[3];                     /* scene_up of the training views */
    float view_size;                 /* mean of the longer sides of the training images, pixels */
    struct scene_share share; /* without streaming: the share of the views that a virtual rank draws
                                 from; share.of 0: all views */
};

/* When a pass runs. */
enum step_phase {
    STEP_INTERVAL_BEGIN, /* at the start of an update interval */
    STEP_INTERVAL_GRID,  /* next, after ranks have all-reduced occupancy cells */
    STEP_EVERY,          /* in every step */
    STEP_INTERVAL_END,
    STEP_AVERAGE /* in parameter averaging */
};

/* A set of samples of the step's rays, with their values and counts. The first set uses the step's
 * buffers; further sets exist with a coarse field (SET_* in internal.h). */
struct sample_set {
    struct buffers own; /* buffers that differ from the first set's */
    /* coarse: the set uses the coarse field or proposal; learns: the set trains the proposal. */
    bool coarse, learns;
    const struct sample_set *coarse_set; /* whose weights decide where this set's samples lie */
    struct gpu_bindings *training, *inference; /* master parameters; their moving average */
};

/* A pass of a step. */
struct step_pass {
    const struct pass *pass;
    enum step_phase phase;
    uint32_t set;    /* the set of samples */
    bool begins_set; /* the first pass on its set: the set's counts are cleared before it */
    /* The pipeline is a proposal's; the pass runs only in steps that train the proposal. */
    bool proposal, learns;
    bool first; /* the first pass of its step_phase */
    struct gpu_pipeline *pipeline;
};

/* A training step on a device. */
struct step {
    struct gpu_device *device;
    struct setup setup, coarse_setup; /* see setup_of_coarse */
    uint32_t local_size;
    struct buffers buffers;
    struct buffers coarse; /* of the coarse field or proposal, if there is one */
    struct sample_set sets[STEP_MAX_SETS];
    uint32_t set_count;
    struct step_pass passes[STEP_MAX_PASSES];
    size_t pass_count;
    struct gpu_pipeline *mark_unseen_cells, *round_parameters[STEP_FIELDS]; /* [1]: a proposal's */
    struct gpu_recording *intervals[STEP_RECORDINGS]; /* each a whole update interval */
    bool joined[STEP_RECORDINGS];   /* the interval's steps are joined, see enum pass_place */
    struct step_ranks *ranks;       /* synchronous data parallelism, without `intervals` */
    struct step_average *averaging; /* parameter averaging */
    bool profile;                   /* see step_profile */
    /* How the work is split into submissions, see step_measure; all zero: it is not split. */
    bool measured;
    double pass_seconds[STEP_MAX_PASSES];    /* of each pass; negative: unknown */
    double planned_seconds[STEP_RECORDINGS]; /* of an interval when its submissions were chosen */
    double submission_seconds;               /* of the submission that is being recorded */
};

/* Allocates the buffers of a setup, uploads initial parameters and state, and creates the
 * pipelines. The caller then uploads BIND_CAMERAS and calls step_begin. */
vkn_status step_create(struct gpu_device *device, const struct setup *setup,
                       const struct step_images *images, struct step *step);
/* Frees the step. */
void step_destroy(struct step *step);
/* Lists the pipelines of step_create and where to store them: with `proposal` the pipelines of
 * coarse_setup, else of setup; without `proposal` also sets step->passes. Returns their number. */
size_t step_list_pipelines(struct step *step, bool proposal, struct field_pass_request *pipelines);
/* Records the passes of step number `slot` of an update interval, from pass `from` (NULL: the
 * first) up to, not including, pass `until` (NULL: to the end). */
void step_record_part(struct step *step, struct gpu_recording *recording, uint32_t slot,
                      const char *from, const char *until);
/* Marks the cells that no camera sees. Records the update intervals, unless several ranks train
 * synchronously. */
vkn_status step_begin(struct step *step);
/* Uploads the start of the training views' refinement and appearance (scene.refine,
 * scene.appearance). Called after step_create. */
vkn_status step_begin_views(const struct step *step, const struct scene_split *train);
/* Refinements and appearances of the training views in a saved_state, as far as it has them. */
struct step_views {
    const struct View *cameras;
    const struct Appearance *appearances;
};
/* What loss.robust has found; all 0: too few outlier cells to matter, all rays have a weight. */
struct step_outliers {
    double share;   /* of the cells with a ray */
    uint32_t views; /* training views with outlier cells */
};
/* Reads the refinement of the training views [first, first + count) into views[count]. */
vkn_status step_read_views(const struct step *step, size_t first, size_t count, struct View *views);
/* Returns the byte of BIND_STATE where the error map begins. */
static inline uint64_t step_error_map_offset(const struct step *step)
{
    return sizeof(struct State) + sizeof(struct ErrorCell) * step->setup.constants.sky_cells;
}
/* Finds the `count` training views in a checkpoint's state, after an error map of `error_cells`
 * cells. VKN_BAD_INPUT names the checkpoint when the state is of another number of views, or when a
 * camera or an appearance is not finite. */
vkn_status step_find_views(const char *path, const struct saved_state *saved, uint64_t count,
                           uint64_t error_cells, struct step_views *views);
/* Moves a training view's camera from the scene's pose to the refined pose. */
void step_move_camera(const struct View *view, struct scene_camera *camera);
/* A refined training view. */
struct step_camera {
    struct scene_camera camera; /* with the refined pose and lens */
    double pixels;              /* scene_pixel_movement */
    double degrees;             /* by which the camera has turned about its position */
    double distance;            /* by which the camera has moved, in training space */
    bool at_limit;              /* pose or lens would move the view further than refine.limit */
};
/* Reads the refined training views into cameras[train->camera_count]. */
vkn_status step_read_cameras(const struct step *step, const struct scene_split *train,
                             struct step_camera *cameras);
/* Reads the appearances of the training views [first, first + count), see scene.appearance. */
vkn_status step_read_appearances(const struct step *step, size_t first, size_t count,
                                 struct Appearance *appearances);
/* Returns whether scene.appearance counts two cameras as one: equal size and kind of lens. */
bool step_same_camera(const struct scene_camera *a, const struct scene_camera *b);
/* Returns the bytes that step_create would allocate, without alignment. */
uint64_t step_memory(const struct setup *setup, const struct step_images *images);
/* Checks by gpu_memory_check that (step_memory + exchange_bytes) * ranks bytes are available;
 * `exchange_bytes` is the memory for streaming images. */
vkn_status step_check_memory(const struct gpu_device *device, const struct setup *setup,
                             const struct step_images *images, uint64_t exchange_bytes,
                             uint64_t ranks);
/* Lists the step's buffers that a checkpoint stores, in its order. Returns their number. */
size_t step_list_saved(const struct step *step, struct saved_buffer saved[MAX_SAVED_BUFFERS]);
/* Returns the bytes of a checkpoint's tensor. */
uint64_t step_saved_size(const struct step *step, const struct saved_buffer *saved);
/* Downloads a checkpoint's tensor of step_saved_size bytes; packed moments become f32. */
vkn_status step_download_saved(const struct step *step, const struct saved_buffer *saved,
                               void *data);
/* Uploads a checkpoint's tensor. Packed moments are rounded to nearest. Members that an older
 * version's state lacks become zero. The error map, after the state, becomes the checkpoint's or,
 * if that has none of this size, empty. Views stay as they are unless the tensor has the buffer's
 * size. */
vkn_status step_upload_saved(const struct step *step, const struct saved_buffer *saved,
                             const void *data, uint64_t size);
/* Uploads refined views and appearances from a checkpoint's state, as far as the step trains them.
 * VKN_BAD_INPUT as in step_find_views; if only weights are loaded, the state may be of other views,
 * and a warning says that they are not taken over. */
vkn_status step_upload_views(const struct step *step, const char *path,
                             const struct saved_state *saved, uint64_t error_cells,
                             bool weights_only);
/* Returns the step's buffer of a checkpoint's tensor. */
const struct gpu_buffer *step_saved(const struct step *step, const struct saved_buffer *saved);
/* Recomputes the occupancy bits from the cells and the threshold of the state. */
vkn_status step_pack_occupancy(struct step *step);
/* Read and replace the occupancy grid for the public function `what` (occupancy.c); see
 * vkn_trainer_occupancy. */
vkn_status step_read_occupancy(struct step *step, const char *what, struct vkn_occupancy *given);
vkn_status step_write_occupancy(struct step *step, const char *what,
                                const struct vkn_occupancy *given);
/* Recomputes the f16 copies of uploaded parameters. */
vkn_status step_round_parameters(struct step *step);
/* Size of a text that names the first values which are not finite. */
#define STEP_NONFINITE_TEXT 384u
/* Search for values that are not finite, and describe the first in `text`. Return whether there are
 * any. step_nonfinite_weights: parameters, moments, moving averages. step_nonfinite_saved: also
 * occupancy cells. step_nonfinite_values: the results of one more step, which are discarded. */
bool step_nonfinite_weights(struct step *step, char text[STEP_NONFINITE_TEXT]);
bool step_nonfinite_saved(struct step *step, char text[STEP_NONFINITE_TEXT]);
bool step_nonfinite_values(struct step *step, char text[STEP_NONFINITE_TEXT]);
/* One run of a pass. */
struct step_timing {
    const char *name;
    uint32_t slot;     /* its step in the update interval, from 0; UPDATE_INTERVAL: in no step */
    double begin, end; /* seconds on the device's clock */
    bool again;        /* a further chunk or virtual rank of a pass that has run in this slot */
};
/* Returns whether work is split into short submissions: GPUs may have a watchdog and a screen, CPU
 * devices have neither. */
bool step_splits_submissions(const struct step *step);
/* Runs step number `slot` of an update interval pass by pass and measures the passes. The step must
 * not be beyond Control.step_limit. */
vkn_status step_measure(struct step *step, uint32_t slot);
/* Updates the passes' times from the timings of a finished interval or, if `count` is 0, from its
 * `seconds` (0: unknown). */
void step_update_times(struct step *step, const struct step_timing *timings, uint32_t count,
                       double seconds);
/* Returns the measured seconds of one step. */
double step_seconds(const struct step *step);
/* Sets the wanted live samples of a step, from the next interval on. `samples` must not exceed the
 * number at step_create. */
vkn_status step_set_samples(struct step *step, uint32_t samples);
/* Records an interval, of whose steps `steps` run, again if it should be split differently (into
 * submissions of at most 50 ms, or single passes) or if its steps should be joined (enum
 * pass_place), which takes all steps. Called before each step_submit. The recording must not be in
 * flight. */
vkn_status step_prepare(struct step *step, uint32_t recording, uint64_t steps);
/* Submit an interval, and wait until it has finished. */
vkn_status step_submit(struct step *step, uint32_t recording);
vkn_status step_wait(struct step *step, uint32_t recording);
/* Waits for at most `seconds`. Returns whether the interval has finished; call step_wait then. */
bool step_wait_a_while(const struct step *step, uint32_t recording, double seconds);
/* Records the intervals again so that start and end of every pass are timed. By default only the
 * passes of the last step and outside of steps are timed, each up to the start of the next. No
 * recording may be in flight. */
vkn_status step_profile(struct step *step);
/* Returns the timed passes of a finished recording in order; none on devices without timestamps. */
uint32_t step_timings(struct step *step, uint32_t recording,
                      struct step_timing timings[STEP_MAX_TIMINGS]);
/* Computes the cost in one step of the passes named `pass` (see step_timings) on a device of this
 * subgroup size; a pass outside of steps counts as 1 / UPDATE_INTERVAL of its cost. Returns false
 * when no pass has the name. */
bool setup_cost(const struct setup *setup, uint32_t subgroup_size, const struct cost_counts *counts,
                const char *pass, struct cost *cost);
/* Highest measured rates of a device, per second; 0: unknown. */
struct cost_peaks {
    double flops, bytes, atomics;
};
/* Returns the least seconds in which a device with these peaks can do the work; 0 when no peak is
 * known. Sets *bound to the limiting peak: "flops", "bytes" or "atomics". */
double cost_floor(const struct cost *cost, const struct cost_peaks *peaks, const char **bound);

/* ---- statistics ------------------------------------------------------------------------------ */

/* Sums of the statistics of steps. */
struct step_sums {
    uint64_t steps;
    uint64_t coarse_steps; /* steps that trained a coarse field or a proposal */
    double rays, samples, live, loss, distortion_loss, coarse_loss, square, underflowed;
};
/* Adds the statistics of a step. */
void step_add_stats(struct step_sums *sums, const struct Stats *stats);
/* Means of the parts of the loss, each over the steps that computed it. NaN: not a part of the
 * loss, or computed in no step. */
struct step_losses {
    double color, distortion, interlevel, coarse;
};
/* Returns the means of the parts of the loss; sums->steps must be above 0. */
struct step_losses step_mean_losses(const struct step *step, const struct step_sums *sums);

/* ---- synchronous data parallelism ------------------------------------------------------------ */

/* A step has two halves: each rank computes gradients of its rays; then all ranks update their
 * parameters from the average gradients, which the caller all-reduces. A device computes its
 * virtual ranks (parallel.ranks_per_device) one after another, each in a `turn` of the first half.
 * The rays of a turn have numbers from Config.first_ray + turn * ray_capacity on. */

/* Returns the number of virtual ranks of the device. */
uint32_t step_virtual_ranks(const struct step *step);
/* A contiguous part of a gradient bucket, in host memory that belongs to the step. */
struct step_span {
    float *values;
    size_t count; /* 32-bit words */
    bool is_f16;  /* each word is two f16; else one f32 */
};
/* A gradient bucket. Buckets begin with the coarse field's; then follow hash grid levels from
 * coarse to fine. Values are valid after step_wait_bucket. */
struct step_bucket {
    struct step_span spans[2 * STEP_FIELDS];
    uint32_t count;
};
/* Return the number of gradient buckets, and a bucket of a turn. */
uint32_t step_buckets(const struct step *step);
struct step_bucket step_bucket(const struct step *step, uint32_t turn, uint32_t bucket);
/* Returns the bytes per step that are all-reduced: all buckets, and 1 / UPDATE_INTERVAL of the
 * occupancy cells and the error map. */
uint64_t step_bucket_bytes(const struct step *step);
/* Returns the step statistics [step_fields] of a turn, the coarse field's last. They are valid
 * after step_wait_bucket of the last bucket. */
struct RankStats *step_statistics(const struct step *step, uint32_t turn);
/* Returns the number of fields that the step trains. */
uint32_t step_fields(const struct step *step);
/* What an all-reduce replaces values by. STEP_ERRORS: the values are struct ErrorCell, and their
 * sums of losses and rays are replaced by the sums over all ranks. */
enum step_reduction { STEP_MEAN, STEP_MAXIMUM, STEP_ERRORS };
/* All-reduces values over all ranks. The result is the same on every rank. */
typedef vkn_status step_all_reduce(void *context, float *values, size_t count,
                                   enum step_reduction reduction);
/* Reduces cells[ranks][first .. end - 1], in words, as STEP_ERRORS says, into the first `kept` of
 * the arrays. The sums are exact. */
void step_add_errors(float *const cells[], uint32_t ranks, uint32_t kept, size_t first, size_t end);
/* Begins an update interval before the first turn of a step, if one begins after `number` finished
 * steps: updates the occupancy grid and the error map. `combine` all-reduces the error map and, if
 * each device updates a share of the occupancy cells, these cells. */
vkn_status step_begin_interval(struct step *step, uint64_t number, step_all_reduce *combine,
                               void *context);
/* Exchanges the error map where a run ends or begins within an update interval. With `combine`
 * every rank gets the sums of all ranks, as a checkpoint stores them. With `combine` NULL the
 * rank's sums become zero: they stay on one rank only, until the next update interval. */
vkn_status step_exchange_errors(struct step *step, step_all_reduce *combine, void *context);
/* Submits the first half of a step for a turn. */
vkn_status step_submit_gradients(struct step *step, uint32_t turn);
/* Waits for a gradient bucket. */
vkn_status step_wait_bucket(struct step *step, uint32_t turn, uint32_t bucket);
/* Waits for at most `seconds`; returns whether the bucket is complete. */
bool step_wait_bucket_a_while(const struct step *step, uint32_t turn, uint32_t bucket,
                              double seconds);
/* Uploads the averages that the caller has stored in the first turn's step_bucket. */
vkn_status step_submit_bucket(struct step *step, uint32_t bucket);
/* Submits the second half, after all buckets, with the sums in the first turn's step_statistics. */
vkn_status step_submit_weights(struct step *step);
/* Waits for the second half. */
vkn_status step_wait_weights(struct step *step);
/* Restores the state from before the step; called instead of step_submit_weights. */
vkn_status step_abandon(struct step *step);
/* Returns timed passes after step_wait_weights: with `begin` the passes at the start of the update
 * interval, else the passes of the step that follows `number` finished steps. */
uint32_t step_half_timings(struct step *step, bool begin, uint64_t number,
                           struct step_timing timings[STEP_MAX_TIMINGS]);

/* ---- parameter averaging --------------------------------------------------------------------- */
/* Stores the step counts; all ranks must have the same parameters. */
vkn_status step_begin_average(struct step *step);
/* Averages the ranks' parameters, moving averages and moments, and takes the maximum of occupancy
 * cells. `updates` is the smallest number of weight updates of any rank. */
vkn_status step_average(struct step *step, uint32_t updates, step_all_reduce *combine,
                        void *context);

#endif
