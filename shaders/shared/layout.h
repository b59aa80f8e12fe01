/* Layout that host and shaders share: the structs in buffers. C and GLSL include this file. Structs
 * hold 4-byte scalars only, so that both sides agree on offsets. */
#ifndef SHARED_LAYOUT_H
#define SHARED_LAYOUT_H

#ifdef VULKAN /* defined by the GLSL compiler */
#define SHARED_UINT  uint
#define SHARED_FLOAT float
#else
#include <stdint.h>
#define SHARED_UINT  uint32_t
#define SHARED_FLOAT float
/* GLSL names a struct without the keyword; give C the same names. */
typedef struct Level Level;
typedef struct ParameterGroup ParameterGroup;
typedef struct LayerWeights LayerWeights;
typedef struct GradientBucket GradientBucket;
typedef struct LayerColumns LayerColumns;
typedef struct SchedulePoint SchedulePoint;
typedef struct Dispatch Dispatch;
#endif

#include "shared/buffers.h"
#include "shared/constants.h"
#include "shared/layers.h"

/* A level of the hash grid. */
struct Level {
    SHARED_UINT first;      /* index of the level's first parameter */
    SHARED_UINT entries;    /* entries in the level's table */
    SHARED_UINT resolution; /* grid points along an edge */
    SHARED_FLOAT scale;     /* position = unit-cube position * scale + 0.5 */
    SHARED_UINT dense;      /* 1: indexed directly; 0: hashed */
    SHARED_FLOAT decay; /* grid.decay / parameters of the level: gradient of the decay per value */
};

/* A range of parameters that the optimiser treats alike. Groups follow each other without a gap. */
struct ParameterGroup {
    SHARED_UINT first, count; /* parameters */
    SHARED_UINT entry; /* consecutive parameters that share one count of steps; divides `count` */
    SHARED_UINT first_entry; /* its first entry in BIND_STEP_COUNTS, a multiple of ENTRY_ALIGN */
    SHARED_UINT sparse;      /* 1: the optimiser skips entries without a gradient */
    SHARED_FLOAT rate;       /* factor of the learning rate; 0: the group does not change */
    SHARED_FLOAT decay;      /* weight decay */
};

/* A point of a schedule: the loss scale or learning rate from a number of finished steps on. */
struct SchedulePoint {
    SHARED_UINT step;
    SHARED_FLOAT value;
};

/* Begin of a gradient bucket, the unit of the all-reduce: a level of the hash grid and its first
 * parameter. Bucket 0 also contains the MLPs. */
struct GradientBucket {
    SHARED_UINT level, parameter;
};

/* A layer's weights among the parameters, [input][output]. */
struct LayerWeights {
    SHARED_UINT first, inputs, outputs;
};

/* Columns of the activations that a layer reads and writes, if the layer is a pass of its own
 * (shaders/field/layers.glsl). Numbers of columns are multiples of 32. */
struct LayerColumns {
    SHARED_UINT input_column, input_count; /* first inputs: columns from input_column on */
    SHARED_UINT second_column;             /* first column of the layer's second inputs, if any */
    SHARED_UINT gradient_count; /* inputs that have gradients: the first, or also the direction's */
    SHARED_UINT output_column;  /* first column that the layer writes */
    SHARED_UINT panels;         /* first chunk of the weights' panels in BIND_F16_PARAMS, with a
                                   chunk of biases after each panel */
    SHARED_UINT transposed;     /* first chunk of the panels of these inputs' transposed weights */
    SHARED_UINT activated;      /* 1: the outputs go through the activation function */
    SHARED_UINT input_activated; /* 1: the first inputs went through the activation function */
    SHARED_UINT also_read_by;    /* later layer whose second inputs are this layer's first inputs,
                                    if the inputs' gradients are needed; 0: none */
};

/* Constants of a run. */
struct Config {
    SHARED_UINT seed;
    SHARED_UINT total_steps;  /* the training ends here; 0xffffffff: no limit */
    SHARED_UINT camera_count; /* training views, the first cameras of BIND_CAMERAS */
    /* Resident views, from which rays are drawn: every view_stride-th camera from first_view on. */
    SHARED_UINT first_view, view_stride, view_count;
    SHARED_UINT param_count;
    SHARED_UINT summed_params; /* parameters of the MLPs, which come first: their gradients are
                                  summed over workgroups */
    SHARED_UINT first_layered; /* first parameter of the layers that are passes of their own */
    SHARED_UINT entry_count;   /* entries of all groups, with the gaps of their alignment */
    SHARED_UINT ray_capacity, sample_capacity;
    SHARED_UINT ray_samples;     /* uniform sampling: samples of each ray; hierarchical sampling and
                                    proposals: coarse samples of each ray; otherwise 0 */
    SHARED_UINT fine_samples;    /* hierarchical sampling: samples of a ray besides the coarse ones;
                                    proposals: samples of a ray; otherwise 0 */
    SHARED_UINT target_samples;  /* live samples wanted in a step */
    SHARED_UINT forward_groups;  /* most workgroups of a pass over samples */
    SHARED_UINT backward_groups; /* workgroups of field_backward */
    SHARED_UINT layer_splits;    /* ranges of rows whose weight gradients layer_weights sums
                                    separately; 0: as many as backward_groups */
    SHARED_UINT group_limit;     /* most workgroups of the device in x or y of a dispatch */
    SHARED_UINT time_schedule;   /* 1: progress also follows Control.time_progress */
    SHARED_UINT ranks;           /* ranks of synchronous data parallelism; 1 without it */
    SHARED_UINT first_ray;       /* index of this rank's first ray among the rays of all ranks */
    /* This rank's share of the occupancy grid's cells, and the number of shares. */
    SHARED_UINT cell_share, cell_shares;

    SHARED_FLOAT near_distance; /* rays start at this distance from the camera; half of the training
                                   rays further away at first: from near_start in step 0 to
                                   near_distance in step near_steps */
    SHARED_FLOAT near_start;
    SHARED_UINT near_steps;
    SHARED_FLOAT far_distance; /* rays end here; unless space is contracted, also where the cube
                                  ends */
    SHARED_FLOAT aabb_scale;   /* side of the cube, centred at 0.5, that is reconstructed or, in
                                  contracted space, not contracted */
    /* Marching step: clamp(t * cone_angle, step_min, step_max). In contracted space steps are
     * uniform in 1 / t beyond the distance at which the step reaches step_max. */
    SHARED_FLOAT step_min, step_max, cone_angle;
    SHARED_FLOAT early_stop;      /* transmittance below which a ray ends */
    SHARED_FLOAT alpha_threshold; /* alpha below which samples count as empty, after the warm-up */
    SHARED_FLOAT occupancy_decay;
    SHARED_FLOAT occupancy_threshold;

    SHARED_FLOAT loss_delta;      /* Huber's delta */
    SHARED_FLOAT loss_distortion; /* weight of the distortion loss */
    SHARED_FLOAT loss_depth;      /* weight of the depth loss; 0: none */
    SHARED_FLOAT loss_near;       /* weight of the loss of density nearer than near_start */
    SHARED_FLOAT ladder_unit;     /* distance that the power ladder counts as 1 */
    SHARED_FLOAT ladder_range;    /* of the power ladder from near_distance to far_distance */
    SHARED_FLOAT learning_rate, beta1, beta2, epsilon;
    SHARED_FLOAT clip_norm;     /* 0: no clipping */
    SHARED_UINT norm_interval;  /* the norm of the gradient is computed in steps that are a multiple
                                   of this number, and in the last step */
    SHARED_FLOAT average_decay; /* decay of the moving average, per step */
    SHARED_UINT warmup_steps;
    SHARED_UINT rate_kind;                   /* RATE_* */
    SHARED_FLOAT final_rate;                 /* exponential, cosine: rate at the end */
    SHARED_FLOAT decay_factor;               /* learning rate factor at each milestone */
    SHARED_FLOAT milestones[4];              /* shares of the training; above 1: never */
    SHARED_UINT decay_start, decay_interval; /* in steps, for a training without a limit */

    SHARED_UINT scale_kind; /* SCALE_* */
    SHARED_FLOAT scale_growth, scale_backoff;
    SHARED_UINT scale_interval;   /* good steps before the loss scale grows */
    SHARED_FLOAT scale_underflow; /* while a larger share underflows, the scale grows faster */
    SHARED_UINT max_backoffs;     /* back-offs, without a growth between them, that cut the rate */
    SHARED_FLOAT rate_cut_factor; /* learning rate factor of such a cut; 1: no cuts */
    SHARED_FLOAT scale_minimum, scale_maximum; /* bounds of a dynamic loss scale */
    SHARED_UINT scale_hysteresis; /* number, from 1, of the first overflow after a growth that
                                     lowers the loss scale */
    SHARED_UINT scale_points;     /* number of points of `schedule`, by increasing step */
    SchedulePoint schedule[MAX_SCHEDULE_POINTS];
    SHARED_UINT rate_points; /* number of points of `rates`, by increasing step */
    SchedulePoint rates[MAX_SCHEDULE_POINTS];

    SHARED_FLOAT render_background[3];           /* background of finished pixels */
    ParameterGroup groups[MAX_PARAMETER_GROUPS]; /* `first_entry` of unused groups: above all
                                                    entries */
    Level levels[MAX_LEVELS];
    LayerWeights layers[MAX_LAYERS]; /* `first` of unused layers: above all parameters */
    GradientBucket buckets[MAX_GRADIENT_BUCKETS + 1]; /* after the last bucket: the end of all */

    /* Layer-by-layer models (shaders/field/layers.glsl). */
    SHARED_UINT columns;         /* of a row of activations */
    SHARED_UINT kept_rows;       /* rows whose activations the forward pass keeps; 0: recomputed */
    SHARED_UINT chunk_rows;      /* rows that go through the layers at a time, a multiple of 64 */
    SHARED_UINT cells_per_chunk; /* cells of the occupancy grid in a chunk: at most ray_capacity */
    SHARED_UINT first_output;    /* column of raw density; 32 columns later: colour features */
    SHARED_UINT color_output;    /* column of raw rgb */
    LayerColumns layer_columns[MAX_LAYERS];
    SHARED_UINT row_features; /* values of BIND_FEATURES per sample before the activations */

    /* Deformation. */
    SHARED_UINT deformation_input;  /* first column of the deformation's inputs */
    SHARED_UINT deformation_output; /* first column of the displacement, in sides of the cube */
    SHARED_UINT deformation_octaves, time_octaves;
    SHARED_FLOAT first_time, last_time; /* times of the first and last training view */
    SHARED_FLOAT curriculum; /* share of the training after which all views are drawn; 0: all are
                                drawn from the beginning */

    /* Proposal: the proposal's param_count, summed_params, entry_count and backward_groups, and the
     * schedule of its training. */
    SHARED_UINT proposal_params, proposal_summed, proposal_entries, proposal_groups;
    SHARED_UINT anneal_steps, proposal_interval;
    SHARED_FLOAT loss_interlevel;

    /* batch.keep: the share of live samples that get gradients; the least probability of a ray. */
    SHARED_FLOAT keep_share, keep_least;

    /* Box in training space that pictures show: limits along its axes, the unit vectors
     * crop_axes[3 * k] to crop_axes[3 * k + 2]. Without a crop the limits are the largest floats.
     */
    SHARED_FLOAT crop_low[3], crop_high[3], crop_axes[9];

    /* Error map (shaders/rays/error_map.glsl). A slot holds the pixels of a view or image strip:
     * the slots of the device's `slot_turns` virtual ranks take turns, and slot j has the camera
     * slot_view + j / slot_turns * view_stride + j % slot_turns. */
    SHARED_FLOAT error_share;   /* share of the rays that are drawn by error */
    SHARED_UINT error_unbiased; /* 1: gradients are weighted as the reported loss is */
    SHARED_UINT cell_edge;      /* edge of a cell, in pixels of the whole training image */
    SHARED_UINT error_cells;    /* cells of all views */
    SHARED_UINT slot_cells;     /* most cells of a slot */
    SHARED_UINT slot_count, slot_view, slot_turns;

    /* Refinement of cameras (struct View). */
    SHARED_UINT first_sum; /* index of the first sum of gradients in the ErrorCells of STATE */
    SHARED_UINT first_view_word;                 /* word of BIND_STATE where the views begin */
    SHARED_FLOAT refine_rate, refine_final_rate; /* pixels per update */
    SHARED_FLOAT refine_start;  /* share of the training after which cameras move */
    SHARED_FLOAT refine_limit;  /* largest length of a pose's or lens's latent parameters, pixels */
    SHARED_FLOAT refine_detail; /* most cells per pixel of levels that move cameras */

    /* Known depths (struct Depth). */
    SHARED_UINT first_depth_word;
    SHARED_FLOAT depth_share; /* share of the rays that are drawn through known depths */

    /* Appearance of images (struct Appearance). */
    SHARED_UINT first_appearance_sum; /* as first_sum, first_view_word */
    SHARED_UINT first_appearance_word;
    SHARED_FLOAT appearance_rate, appearance_final_rate; /* change of a parameter per update */
    SHARED_UINT picture_kind;            /* APPEARANCE_* of the picture to be rendered; 0: none */
    SHARED_FLOAT picture_appearance[36]; /* APPEARANCE_PARAMETERS of the picture */

    /* The sky, which precedes the error map in BIND_STATE. */
    SHARED_UINT sky_cells;   /* SKY_CELLS; 0: there is no sky */
    SHARED_UINT picture_sky; /* 1: the picture to be rendered shows the sky */
    SHARED_FLOAT sky_up[3];  /* direction to the zenith */
};

/* Size of a dispatch, in workgroups. */
struct Dispatch {
    SHARED_UINT x, y, z;
    SHARED_UINT finished; /* finished workgroups of a pass whose last workgroup does more; else 0 */
};

/* Dispatch sizes of a step: indices of State.dispatches. */
#define DISPATCH_RAYS      0 /* one invocation per ray */
#define DISPATCH_MARCH     1 /* one subgroup per ray */
#define DISPATCH_SCAN      2 /* one workgroup, in deterministic mode */
#define DISPATCH_FORWARD   3 /* workgroups that share the samples, cells or rays */
#define DISPATCH_BACKWARD  4 /* Config.backward_groups */
#define DISPATCH_SUMMED    5 /* one invocation per parameter of BIND_PARTIALS */
#define DISPATCH_PARAMS    6 /* workgroups that share all parameters */
#define DISPATCH_ENTRIES   7 /* one invocation per optimiser entry; x * y workgroups */
#define DISPATCH_ONE       8 /* only `finished` is used: number of samples of pick_cells */
#define DISPATCH_OCCUPANCY 9 /* passes of the occupancy update */
#define DISPATCH_THRESHOLD 10
#define DISPATCH_PACK      11
#define DISPATCH_AVERAGE   12
#define DISPATCH_COUNT     13
/* First of the dispatch sizes of a proposal's training, which only BIND_DISPATCHES has. */
#define DISPATCH_PROPOSAL  DISPATCH_COUNT

/* State that steps change. Checkpoints store the struct as it is; the struct and the other buffers
 * in checkpoints are the whole state of a run. */
struct State {
    SHARED_UINT step;      /* finished steps; between begin_step and the end of the step one more */
    SHARED_UINT running;   /* 1: this step runs; 0: the step is idle */
    SHARED_UINT ray_count; /* rays of this step */
    SHARED_UINT sample_count; /* samples that the rays need; may exceed sample_capacity */
    SHARED_UINT live_count;   /* samples that carry a gradient; with batch.keep of kept rays only */
    SHARED_UINT live_rays;    /* rays in the loss: the pixel is used and all samples fitted */
    SHARED_FLOAT learning_rate;
    SHARED_FLOAT loss_scale;
    SHARED_UINT good_steps; /* good steps since the loss scale last changed */
    SHARED_UINT skipped_steps;
    SHARED_UINT updates;   /* weight updates: steps of groups that are not sparse */
    SHARED_UINT nonfinite; /* 1: a gradient of this step was not finite and the step is skipped */
    SHARED_FLOAT gradient_factor; /* factor that unscales and clips gradients */
    SHARED_FLOAT grad_norm;       /* of the last good step in which the norm was computed */
    SHARED_UINT average_step;     /* step at which the average was last refreshed */
    SHARED_FLOAT average_weight;  /* of the parameters when update_average next mixes them in */
    SHARED_FLOAT threshold;       /* occupancy threshold of this update */
    SHARED_UINT underflowed;      /* gradients of activations that underflowed in f16, this step */
    SHARED_UINT rounded;  /* gradients of activations, this step, that were not 0 before rounding */
    SHARED_UINT settled;  /* 1: a good step followed the setting of the loss scale or a rate cut */
    SHARED_UINT backoffs; /* back-offs, while `settled`, since the loss scale last grew */
    SHARED_UINT rate_cuts; /* cuts of the learning rate by back-offs */
    Dispatch dispatches[DISPATCH_COUNT];
    /* Checkpoints of older versions end here, and what follows is zero
     * (src/checkpoint/checkpoint.c). */
    SHARED_UINT tolerated; /* overflows since the loss scale last grew that have not lowered it */
    /* 0 unless batch.keep is below 1. */
    SHARED_UINT reached_count; /* live samples of all rays in the loss of this step */
    SHARED_UINT kept_rays;     /* rays in the loss of this step that were kept */
    SHARED_FLOAT keep_gain;    /* a ray whose loss is the mean loss is kept with this probability */
    SHARED_FLOAT mean_loss;    /* mean loss of the last good step's rays; 0: all rays are kept */
    /* The step that update_weights ends, which may run when the next step has begun. */
    SHARED_FLOAT update_rate;   /* its learning rate */
    SHARED_UINT update_skipped; /* its `nonfinite` */
};

/* Step statistics that are all-reduced with the gradients: of this rank, then totals of all ranks.
 * Stored as words of BIND_REDUCE. */
#define RANK_STATS_STEP   0
#define RANK_STATS_COARSE 1 /* coarse samples of hierarchical sampling */
#define RANK_STATS_WORDS  11
struct RankStats {
    SHARED_UINT samples, live, live_rays, nonfinite, underflowed, rounded; /* as in State */
    SHARED_FLOAT loss, square, distortion_loss;                            /* sums over the rays */
    SHARED_UINT reached, kept_rays;                                        /* as in State */
};

/* Values that the host sets between two submissions of command buffers. */
struct Control {
    SHARED_FLOAT time_progress; /* share of --seconds that has passed */
    SHARED_UINT step_limit;  /* steps beyond this limit stay idle, whatever Config.total_steps is */
    SHARED_UINT min_updates; /* parameter averaging: fewest weight updates of any rank */
    SHARED_UINT padding;
};

/* Statistics of one step. The host checks `step` before it trusts the rest. */
struct Stats {
    SHARED_UINT step;
    SHARED_UINT rays, samples, live; /* of all ranks */
    SHARED_FLOAT loss;               /* of the rays' colours, mean over the rays */
    SHARED_FLOAT square;             /* mean squared colour error */
    SHARED_FLOAT learning_rate, loss_scale;
    SHARED_FLOAT grad_norm; /* infinity: the step was skipped; -1: the norm was not computed */
    SHARED_UINT skipped_steps;
    SHARED_FLOAT underflowed; /* share of nonzero activation gradients that underflowed */
    SHARED_UINT rate_cuts;    /* cuts of the learning rate up to and including this step */
    /* Other parts of the loss, weights included, means over the rays; the loss of the coarse field
     * or the proposal is negative in a step that trains neither. */
    SHARED_FLOAT distortion_loss, coarse_loss;
    /* With batch.keep below 1, else 0. */
    SHARED_FLOAT kept_share;  /* share of the live samples that carry a gradient */
    SHARED_FLOAT keep_weight; /* rays in the loss per kept ray: the mean weight of kept rays */
};

/* A view's camera, in training space; pixels count from the left and top. */
struct Camera {
    SHARED_UINT width, height, first_pixel;
    SHARED_UINT lens; /* LENS_* */
    SHARED_FLOAT focal_x, focal_y, center_x, center_y;
    SHARED_FLOAT k1, k2, p1, p2, k3, k4, sx1, sy1;
    SHARED_FLOAT limit; /* scene_camera_limit: largest angle or radius of the lens */
    /* The part of the view that the pixels show: its first row in the whole image, its downscale
     * factor. Then the view's first cell in the error map, and the number of cells in a row. */
    SHARED_UINT first_row, shrink, first_cell, cell_columns;
    SHARED_UINT first_depth, depth_count; /* of the known depths of these rows: struct Depth */
    SHARED_UINT view;                     /* training view that the pixels belong to */
    SHARED_UINT counted;      /* 1: sum_errors has counted the used pixels of the cells */
    SHARED_FLOAT strip_share; /* probability that an even draw of this strip is kept: 1 unless
                                 panoramas are cut into strips */
    SHARED_FLOAT time;        /* 0..1 for dynamic scenes, else 0 */
    SHARED_FLOAT pose[12];    /* camera to world, row-major 3 x 4 */
};

/* A known depth of a training view, with loss.depth. The depths follow the cameras in
 * BIND_CAMERAS, from the word Config.first_depth_word on. */
struct Depth {
    SHARED_FLOAT x, y;         /* position in the whole image, pixels */
    SHARED_FLOAT depth, sigma; /* in the unit of t times Ray.distance_scale; standard deviation */
};
#define DEPTH_WORDS 4
#define MANY_DEPTHS 64u /* a view or strip with fewer known depths has fewer rays through them */

/* A ray in training space. The direction has unit length. */
struct Ray {
    SHARED_FLOAT origin[3];
    SHARED_FLOAT step; /* in stepping space: next position of a march, which is finished beyond
                          `last`; without an occupancy grid, where the ray begins */
    SHARED_FLOAT direction[3];
    SHARED_FLOAT last; /* end of the ray in stepping space; -1: misses the cube; not in the loss: -2
                          if its samples did not fit, -3 if its pixel does not count */
    SHARED_FLOAT target[4]; /* premultiplied colour and alpha of the pixel */
    SHARED_FLOAT background[3];
    SHARED_FLOAT distance_scale; /* depth = t times this: along the optical axis for perspective
                                    lenses, along the ray for others */
    SHARED_UINT view;            /* camera in BIND_CAMERAS */
    SHARED_FLOAT time;           /* time of the camera */
    SHARED_FLOAT weight;  /* density of the ray's pixel in even drawing / density with which it was
                             drawn; 1 without drawing by error; 0 in an outlier cell */
    SHARED_UINT cell;     /* cell of the error map */
    SHARED_UINT position; /* in the image: packSnorm2x16 of the distance from the middle, in units
                             of the longer side */
    SHARED_FLOAT known_t, known_sigma; /* known distance along the ray, and its standard deviation;
                                          0: unknown */
    SHARED_UINT has_sky;               /* 1: the background is the sky, which the pixel may show */
};

/* A cell of the error map: a square of a training view, with an edge of Config.cell_edge pixels.
 * The cells follow struct State, and with scene.sky the sky's SKY_CELLS, in BIND_STATE. With
 * loss.robust a cell more follows, the summary of the cells that the last update interval looked
 * at: `error` is the running quantile of errors, `low` the number of cells above the quantile,
 * `high` that of all cells with a ray, and `rays` that of outlier cells. */
struct ErrorCell {
    SHARED_FLOAT error;    /* running mean of the rays' losses; 0: no ray yet; negative, the mean
                              times -1, for an outlier cell */
    SHARED_UINT low, high; /* sum of losses since the last update interval, in ERROR_UNITS */
    SHARED_UINT rays;      /* number of these losses */
};

/* Refinement of a training view. The camera turns about its position by the rotation vector `turn`
 * (radians) and moves by `shift`, both in training space: (turn, shift) = whitening * latent. The
 * optimiser updates the latent parameters, which are equally stiff: a change of length 1 moves the
 * pixels of points in the view's frustum by about one pixel (CamP, Park et al., 2023).
 * Views with the same lens are a camera group, whose latent parameters are those of its first view,
 * `group`: lens = lens_whitening * lens_latent. The changes do not depend on the image's size: of
 * the logarithms of the focal lengths (x, y), of the principal point in focal lengths (x, y), and
 * of k1, k2, p1, p2. In BIND_STATE, after the error map: first [view][VIEW_SUMS] ErrorCell, the
 * sums of gradients in GRADIENT_UNITS (shaders/rays/lens_gradients.glsl lists those of a lens),
 * with numbers of summands in the first sum of the pose and of the lens; then [view] View. */
#define VIEW_PARAMETERS 6
#define LENS_PARAMETERS 8
#define LENS_SCALE      LENS_PARAMETERS /* first sum of the gradients of the scene's scale */
#define LENS_SUMS       (LENS_PARAMETERS + 6)
#define VIEW_SUMS       (VIEW_PARAMETERS + LENS_SUMS)
#define VIEW_GAUGES     7 /* movements of all cameras that change no picture: 3 + 3 + scale */
struct View {
    SHARED_FLOAT turn[3], shift[3];
    SHARED_FLOAT latent[VIEW_PARAMETERS], moment1[VIEW_PARAMETERS], moment2[VIEW_PARAMETERS];
    SHARED_FLOAT whitening[VIEW_PARAMETERS * VIEW_PARAMETERS]; /* [turn, shift][latent] */
    SHARED_FLOAT gauge[VIEW_GAUGES * VIEW_PARAMETERS]; /* the view's part of orthonormal vectors */
    SHARED_UINT updates;                               /* of the latent parameters */
    SHARED_UINT group;                                 /* first view with the same lens */
    SHARED_FLOAT lens[LENS_PARAMETERS];
    SHARED_FLOAT lens_latent[LENS_PARAMETERS];
    SHARED_FLOAT lens_moment1[LENS_PARAMETERS], lens_moment2[LENS_PARAMETERS];
    SHARED_FLOAT lens_whitening[LENS_PARAMETERS * LENS_PARAMETERS]; /* [lens][latent] */
    SHARED_UINT lens_updates;
    SHARED_UINT padding[3]; /* to a multiple of struct ErrorCell */
};
/* First words of the members, and the number of all words. Moments follow the latent parameters. */
#define VIEW_TURN           0
#define VIEW_SHIFT          3
#define VIEW_LATENT         6
#define VIEW_MOMENT1        12
#define VIEW_MOMENT2        18
#define VIEW_WHITENING      24
#define VIEW_GAUGE          60
#define VIEW_UPDATES        102
#define VIEW_GROUP          103
#define VIEW_LENS           104
#define VIEW_LENS_LATENT    112
#define VIEW_LENS_MOMENT1   120
#define VIEW_LENS_MOMENT2   128
#define VIEW_LENS_WHITENING 136
#define VIEW_LENS_UPDATES   200
#define VIEW_WORDS          204

/* Appearance of a training view: what its camera makes of a ray's colour, after PPISP (Deng et al.,
 * 2026; shaders/volume/appearance.glsl). All zero changes nothing. The first APPEARANCE_IMAGE
 * parameters are the image's: exposure and white balance (gains of red and blue) in stops, then
 * shifts of the chromaticities (r, g) of red, green and blue. The others are the camera's and equal
 * in all views of a group, whose moments are those of its first view, `group`: by channel the
 * vignetting (centre x, y, coefficients of the 2nd, 4th and 6th power of the distance), then by
 * channel the response curve (toe, shoulder, gamma, centre). In BIND_STATE: [view]
 * [APPEARANCE_PARAMETERS] ErrorCell after the sums of struct View, with numbers of rays in the
 * first of the image's and of the camera's, and [view] Appearance after the views. */
#define APPEARANCE_IMAGE      9
#define APPEARANCE_VIGNETTING 9  /* first parameter, 5 by channel */
#define APPEARANCE_CURVE      24 /* first parameter, 4 by channel */
#define APPEARANCE_PARAMETERS 36
struct Appearance {
    SHARED_FLOAT values[APPEARANCE_PARAMETERS];
    SHARED_FLOAT moment1[APPEARANCE_PARAMETERS], moment2[APPEARANCE_PARAMETERS];
    SHARED_UINT updates, camera_updates; /* of the image's and of the camera's parameters */
    SHARED_UINT group;                   /* first view of the same camera */
    SHARED_FLOAT given;                  /* exposure by the image file, about the mean; else 0 */
};
#define APPEARANCE_UPDATES 108 /* word of `updates`; camera_updates follows */
#define APPEARANCE_GROUP   110
#define APPEARANCE_GIVEN   111
#define APPEARANCE_WORDS   112

/* Sums over the cells of all slots up to a slot, in BIND_REDUCE from REDUCE_SLOTS on: first
 * [slot] ErrorSums, then [slot][cell] the sum of the slot's masses up to the cell, then
 * [slot][cell] the cell's share in even drawing. */
struct ErrorSums {
    SHARED_FLOAT mass;  /* of masses: unnormalised probabilities in drawing by error */
    SHARED_FLOAT error; /* of error * share */
    SHARED_FLOAT share; /* of shares in even drawing; masked pixels have none */
};

/* Results of compositing a ray, and the range of the ray's samples. */
struct RayResult {
    SHARED_FLOAT color[3]; /* without background */
    SHARED_FLOAT transmittance;
    SHARED_FLOAT depth; /* sum of weight * t, or the median depth */
    SHARED_UINT first;  /* the ray's samples: [first, first + count) */
    SHARED_UINT count;
    SHARED_UINT padding;
};

/* A sample: an interval of a ray. */
struct Sample {
    SHARED_FLOAT t;     /* distance along the ray */
    SHARED_FLOAT width; /* length of the interval, with t in the middle; 0: on no ray */
    SHARED_UINT ray;    /* index in BIND_RAYS */
};

/* Counts and state that list_samples writes besides the samples. */
struct ListSummary {
    SHARED_UINT samples, rays;
    SHARED_UINT rays_in_loss;
    SHARED_UINT step; /* as in State */
    SHARED_FLOAT learning_rate;
    SHARED_UINT unusable; /* densities that are NaN or infinite, see import_densities */
};

/* A finished pixel. */
struct Output {
    SHARED_FLOAT color[3]; /* composited on the background, 0..1 */
    SHARED_FLOAT opacity;
    SHARED_FLOAT depth;     /* t times distance_scale, training units; 0: nothing was hit */
    SHARED_UINT packed;     /* the colour as RGBA8 */
    SHARED_FLOAT normal[3]; /* unit length, training space; 0: no surface, or normals were not
                               requested */
};

#include "shared/surface.h"

/* Push constants. Shaders read the words they need. */
struct Push {
    SHARED_UINT a, b, c, d;
    SHARED_UINT e, f, g, h;
};

/* Rows of a pass of the field: push.e. */
#define ROWS_SAMPLES    0
#define ROWS_LIVE       1
#define ROWS_CELLS      2
#define ROWS_DENSITIES  3 /* samples, without colours */
#define ROWS_RECOMPUTED 4 /* live samples, whose activations are recomputed */

/* Halves of packed moments (shaders/optim/moments.glsl) in parameter averaging: push.f. */
#define PACKED_MOMENT1 1
#define PACKED_MOMENT2 2

/* Samples that composite processes: push.e. */
#define COMPOSITE_ALL    0
#define COMPOSITE_COARSE 1 /* coarse samples of hierarchical sampling */

/* Samples that list_samples lists: push.a. */
#define LIST_STEP  0 /* of a step's rays */
#define LIST_CELLS 1 /* of cells of the occupancy grid that pick_cells chose */
#define LIST_VIEW  2 /* of push.b rays of a picture */

/* Areas of BIND_REDUCE, in floats. */
#define REDUCE_GROUPS     16384                   /* most workgroups that store partial sums */
#define REDUCE_LOSS       0                       /* composite: loss, squared error by workgroup */
#define REDUCE_GRADIENT   (2 * REDUCE_GROUPS)     /* check_gradients: sum of squares by workgroup */
#define REDUCE_OCCUPANCY  (3 * REDUCE_GROUPS)     /* update_occupancy: sum by workgroup */
#define REDUCE_DISTORTION (4 * REDUCE_GROUPS)     /* composite: distortion loss by workgroup */
#define REDUCE_COARSE     (5 * REDUCE_GROUPS)     /* check_coarse_gradients: loss, sum of squares */
#define REDUCE_RANK_STATS (5 * REDUCE_GROUPS + 4) /* RankStats [RANK_STATS_*] */
#define REDUCE_SLOTS      (REDUCE_RANK_STATS + 2 * RANK_STATS_WORDS) /* sum_errors: ErrorSums [slot] */
#define REDUCE_SIZE       REDUCE_SLOTS                               /* without an error map */

#endif
