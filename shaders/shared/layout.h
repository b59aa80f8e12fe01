/* What host and shaders both read: bindings, specialisation constants and the structs in buffers.
 * Included by C and by GLSL. Structs hold 4-byte scalars only, so that both sides agree on offsets.
 */
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
#include "shared/layers.h"

/* ---- specialisation constants ---------------------------------------------------------------- */

#define SPEC_SUBGROUP_SIZE 0
#define SPEC_LOCAL_SIZE    1

#define SPEC_LEVELS         2 /* hash grid levels */
#define SPEC_FEATURES       3 /* features of a grid entry */
#define SPEC_DENSITY_WIDTH  4
#define SPEC_DENSITY_LAYERS 5 /* hidden layers */
#define SPEC_GEOMETRY       6 /* outputs of the density MLP: raw density and features for the colour */
#define SPEC_SH_DEGREE      7 /* 1..4 */
#define SPEC_COLOR_WIDTH    8
#define SPEC_COLOR_LAYERS   9  /* 0: there is no colour MLP */
#define SPEC_RESOLUTION     10 /* cells along an edge of the occupancy grid */
#define SPEC_CASCADES       11
#define SPEC_LOSS           12 /* enum vkn_loss: shaders/volume/loss.glsl */
#define SPEC_BACKGROUND     13 /* BACKGROUND_* */
#define SPEC_DETERMINISTIC  14
#define SPEC_F16            15 /* 1: parameters are read, and gradients of activations stored, as f16 */
#define SPEC_ROW_STRIDE     16 /* tiles: values from a row to the next */
#define SPEC_HOLD_SUMS      17 /* tiles: 1: weight gradients stay in registers; 0: in BIND_PARTIALS */
#define SPEC_TILE_ROWS      18 /* samples that a workgroup of the MLPs takes at a time */
#define SPEC_OWNED_ROWS     19 /* matrices: rows of a tile that subgroups take through the layers */
#define SPEC_GRADIENT_TILES \
    20 /* fp32, fp16: tiles of rows whose weight gradients are formed at once */
#define SPEC_CONTRACTION     21 /* CONTRACTION_* */
#define SPEC_DENSITY_ONLY    22 /* 1: field_forward leaves out the colour, which becomes 0 */
#define SPEC_ENTRY_SIZE      23 /* parameters of an optimiser's entry, in the group where it has most \
                                 */
#define SPEC_INPUT_GRADIENTS 24 /* 1: field_backward leaves gradients by direction as well */
#define SPEC_CPU_KERNELS     25 /* 1: few invocations that do much each, as suits a CPU device */
#define SPEC_PAIRED          26 /* 1: all entries have that many, an even number, from a multiple on */
#define SPEC_F16_SUMS \
    27 /* 1: gradients that no workgroup sums are pairs of f16 in BIND_ACCUMULATORS */
#define SPEC_TRANSPOSED         28 /* first of the MLPs' weights stored by output, among f16 parameters */
#define SPEC_ROUNDED            29 /* ROUND_*, F32_PRODUCTS: shaders/shared/rounding.glsl */
#define SPEC_SAMPLING           30 /* SAMPLING_* */
#define SPEC_DENSITY_ACTIVATION 31 /* DENSITY_* */
#define SPEC_ALPHA_THRESHOLD    32 /* 1: samples below Config.alpha_threshold count as empty */
#define SPEC_PRODUCT_BLOCKS     33 /* matrices: blocks of rows of a layer that a subgroup has, */
#define SPEC_PRODUCT_PANELS     34 /* and panels of its weights: shaders/field/product_matrix.glsl */
#define SPEC_VISIBILITY         35 /* 1: densities come first, and what find_visible lists is coloured */
#define SPEC_F16_SUM_OFFSET     36 /* sums in fixed point that lie before these there */
#define SPEC_DEFORMED           37 /* 1: the field is asked where samples were in the canonical scene */
#define SPEC_TIME_INPUTS        38 /* values of the time behind the grid's features; 0: none */
#define SPEC_DISTORTION         39 /* 1: the loss has Config.loss_distortion */
#define SPEC_TIME_BINS          40 /* slices of time that the occupancy grid has, each with all cascades */
#define SPEC_SPACING            41 /* SPACING_* */
#define SPEC_ACTIVATION         42 /* ACTIVATION_* */
#define SPEC_DIRECTION          43 /* DIRECTION_* */
#define SPEC_OPTIMIZER          44 /* enum vkn_optimizer: shaders/optim/optimizers.glsl */
#define SPEC_COUNT              45

/* Operations of the precision policy whose results can be rounded to f16: bits of SPEC_ROUNDED. */
#define ROUND_SUMS                 1
#define ROUND_WEIGHT_SUMS          2
#define ROUND_COMPOSITING          4
#define ROUND_MASTERS              8
#define ROUND_MOMENTS              16
/* MLP products of f16 numbers are computed in f32, as fp32 has them. */
#define F32_PRODUCTS               32
/* Stored numbers, which precisions have in f16; here rounded to bf16 alone. */
#define ROUND_ACTIVATIONS          64
#define ROUND_ACTIVATION_GRADIENTS 128
/* The factor that makes a bit of f16's one of bf16's. */
#define ROUND_BF16                 65536

#define CONTRACTION_NONE 0
#define CONTRACTION_CUBE 1 /* shaders/shared/contraction.glsl */

#define SAMPLING_OCCUPANCY    0 /* where steps of the march meet occupied cells */
#define SAMPLING_UNIFORM      1 /* all along the ray */
#define SAMPLING_HIERARCHICAL 2 /* of a coarse field, and more where it finds more */

#define SAMPLING_PROPOSAL 3 /* where a field of its own proposes them */

#define SPACING_STEPS     0 /* of the march */
#define SPACING_LINEAR    1
#define SPACING_DISPARITY 2
#define SPACING_LOG       3

/* enum vkn_density_activation; 0, of older checkpoints, is exp. */
#define DENSITY_EXP      1
#define DENSITY_SOFTPLUS 2
#define DENSITY_RELU     3

#define BACKGROUND_RANDOM 0
#define BACKGROUND_WHITE  1
#define BACKGROUND_BLACK  2

/* In BIND_PIXELS: not to be trained on (SCENE_IGNORED). */
#define PIXEL_IGNORED    0x00ffffffu
#define PIXEL_DRAWS      16   /* times that a ray tries to find a pixel that counts */
#define CURRICULUM_START 0.1f /* share of the time whose views a curriculum begins with */

/* Kinds of lenses: enum vkn_lens. */
#define LENS_PERSPECTIVE        0
#define LENS_FISHEYE            1
#define LENS_EQUIRECTANGULAR    2
#define LENS_THIN_PRISM_FISHEYE 3

#define MAX_LEVELS           32
#define MAX_PARAMETER_GROUPS 8 /* of parameters */
#define MAX_GRADIENT_BUCKETS 8 /* of gradients */
#define ENTRY_ALIGN                                                                \
    64 /* entries that begin with a multiple of it are all of one group, so that a \
          workgroup of update_weights, which has no more, asks for its group once */
#define MAX_RAY_SAMPLES      1024 /* samples that one ray may take */
#define MAX_COARSE_SAMPLES   256  /* those of a coarse field, */
#define MAX_FINE_SAMPLES     512  /* and those that are drawn from what it finds */
#define STATS_RING           256
#define MIN_STEP_RAYS        64  /* of a step; more are a multiple of it */
#define UPDATE_INTERVAL      16  /* training steps from one occupancy update to the next */
#define MAX_PARAM_WORKGROUPS 64u /* that share out all parameters, on CPU devices */
#define ANY_STEP             (UPDATE_INTERVAL + 1) /* place of a step that fits any in its period */
#define MAX_LAYERS           16  /* layers, those of both MLPs together, that programs write out */
#define COLOR_OUTPUTS        16  /* rgb padded to a matrix tile; the padding's weights stay zero */
#define OCCUPANCY_BLOCK      8   /* edge, in cells, of the blocks that marching skips at once */
#define CELL_BLOCK           256 /* groups of four cells in a row that are in one share of them */
#define OCCUPANCY_WARMUP     256 /* first steps: updates visit all cells, alpha_threshold waits */
#define FIXED_SCALE          4398046511104.0 /* 2^42 units per unit of gradient times ray count */

/* Kinds of loss scaling. */
#define SCALE_STATIC   0
#define SCALE_DYNAMIC  1
#define SCALE_SCHEDULE 2

/* Kinds of learning-rate schedules. */
#define RATE_STEP        0
#define RATE_EXPONENTIAL 1
#define RATE_COSINE      2
#define RATE_POINTS      3

#define MAX_SCHEDULE_POINTS 32
#define MAX_RATE_CUTS       10 /* of a falling loss scale; more would stop the training */

/* ---- structs --------------------------------------------------------------------------------- */

struct Level {
    SHARED_UINT first;      /* index of the level's first parameter */
    SHARED_UINT entries;    /* entries in its table */
    SHARED_UINT resolution; /* grid points along an edge */
    SHARED_FLOAT scale;     /* position = unit-cube position * scale + 0.5 */
    SHARED_UINT dense;      /* 1: indexed directly; 0: hashed */
    SHARED_UINT padding;
};

/* A range of parameters that the optimiser treats alike. Groups follow each other without a gap. */
struct ParameterGroup {
    SHARED_UINT first, count; /* parameters */
    SHARED_UINT entry; /* parameters in a row that share one count of steps; divides `count` */
    SHARED_UINT first_entry; /* its first one's index in BIND_STEP_COUNTS, a multiple of ENTRY_ALIGN
                              */
    SHARED_UINT sparse;      /* 1: an entry without a gradient is left alone */
    SHARED_FLOAT rate;       /* factor of the learning rate; 0: nothing of the group changes */
    SHARED_FLOAT decay;      /* weight decay */
};

/* The loss scale from so many finished steps on; the learning rate after so many. */
struct SchedulePoint {
    SHARED_UINT step;
    SHARED_FLOAT value;
};

/* Where a piece of the gradients begins, in which ranks exchange them: a level of the grid, its
 * first parameter. The first piece has the MLPs' weights as well. */
struct GradientBucket {
    SHARED_UINT level, parameter;
};

/* A layer's weights among the parameters, [input][output]. */
struct LayerWeights {
    SHARED_UINT first, inputs, outputs;
};

/* A layer that is a pass of its own: from which columns of the activations to which
 * (shaders/field/layers.glsl). Numbers of columns are multiples of 32. */
struct LayerColumns {
    SHARED_UINT from, own; /* it reads `own` columns from there on, */
    SHARED_UINT behind;    /* then those from there on */
    SHARED_UINT to;
    SHARED_UINT panels; /* chunk of BIND_F16_PARAMS that its weights' panels begin with, a chunk of
                           biases behind each */
    SHARED_UINT transposed; /* the same, of the transposed weights of its own columns */
    SHARED_UINT activated;  /* 1: its outputs go through the activation function, mostly a ReLU */
    SHARED_UINT input_activated; /* 1: its own columns did */
    SHARED_UINT also_read_by;    /* the layer that reads its own columns again, behind others, where
                             gradients    go back to these; 0: none */
};

/* Constants of a run. */
struct Config {
    SHARED_UINT seed;
    SHARED_UINT total_steps;  /* training stops here; 0xffffffff: no limit */
    SHARED_UINT camera_count; /* of the training views, first in BIND_CAMERAS */
    /* Cameras of the views that rays are drawn from, whose pixels are on the device: one in
     * every `view_stride`. */
    SHARED_UINT first_view, view_stride, view_count;
    SHARED_UINT param_count;
    SHARED_UINT summed_params; /* the first of them, whose gradients are summed over workgroups */
    SHARED_UINT first_layered; /* of those, the first of layers that are passes of their own */
    SHARED_UINT entry_count;   /* of all groups, with what their alignment leaves between them */
    SHARED_UINT ray_capacity, sample_capacity;
    SHARED_UINT ray_samples;  /* of each ray, where sampling is uniform or, of the coarse field,
                                 hierarchical; else 0 */
    SHARED_UINT fine_samples; /* besides those, where it is hierarchical; of a ray, where a proposal
                                 places them from what it finds in those; else 0 */
    SHARED_UINT target_samples;  /* live samples wanted in a step */
    SHARED_UINT forward_groups;  /* most workgroups of a pass over samples, who share these out */
    SHARED_UINT backward_groups; /* workgroups of field_backward */
    SHARED_UINT layer_splits; /* of the rows, whose weight gradients layer_weights adds up apart; 0:
                                 as many */
    SHARED_UINT group_limit;  /* most workgroups that the device takes in a row of a dispatch */
    SHARED_UINT time_schedule; /* 1: progress also follows Control.time_progress */
    SHARED_UINT ranks;         /* that take a step together, each with as many rays; 1: alone */
    SHARED_UINT first_ray;     /* number of this rank's first ray among those of all */
    /* Of the occupancy grid's cells, an update looks at one share of so many. */
    SHARED_UINT cell_share, cell_shares;

    SHARED_FLOAT near_distance; /* rays start this far in front of the camera */
    SHARED_FLOAT far_distance; /* and end here, or where the cube ends unless space is contracted */
    SHARED_FLOAT aabb_scale;   /* side of the cube, centred at 0.5, that is reconstructed or, when
                                  space is contracted, left as it is */
    SHARED_FLOAT step_min, step_max, cone_angle; /* marching step: clamp(t * cone_angle, min, max);
                                     contracted: past the distance of step_max even in 1 / t */
    SHARED_FLOAT early_stop;                     /* transmittance below which a ray ends */
    SHARED_FLOAT alpha_threshold; /* opacity below which samples count as empty, after the warm-up
                                   */
    SHARED_FLOAT occupancy_decay;
    SHARED_FLOAT occupancy_threshold;

    SHARED_FLOAT loss_delta;      /* Huber's delta */
    SHARED_FLOAT loss_distortion; /* weight of the distortion loss */
    SHARED_FLOAT learning_rate, beta1, beta2, epsilon;
    SHARED_FLOAT clip_norm;     /* 0: no clipping */
    SHARED_FLOAT average_decay; /* of the moving average, per step */
    SHARED_UINT warmup_steps;
    SHARED_UINT rate_kind;                   /* RATE_* */
    SHARED_FLOAT final_rate;                 /* that exponential and cosine come to */
    SHARED_FLOAT decay_factor;               /* learning rate factor at each milestone */
    SHARED_FLOAT milestones[4];              /* as shares of the training; above 1: never */
    SHARED_UINT decay_start, decay_interval; /* without a limit on steps or time: by step */

    SHARED_UINT scale_kind; /* SCALE_* */
    SHARED_FLOAT scale_growth, scale_backoff;
    SHARED_UINT scale_interval;   /* good steps before the loss scale grows */
    SHARED_UINT max_backoffs;     /* back-offs without such an interval between that cut the rate */
    SHARED_FLOAT rate_cut_factor; /* learning rate factor of such a cut; 1: no cuts */
    SHARED_FLOAT scale_minimum, scale_maximum; /* that a dynamic loss scale keeps to */
    SHARED_UINT scale_hysteresis; /* overflows up to the first back-off since the loss scale last
                                     grew */
    SHARED_UINT scale_points;     /* of `schedule`, by increasing step */
    SchedulePoint schedule[MAX_SCHEDULE_POINTS];
    SHARED_UINT rate_points; /* of `rates`, by increasing step */
    SchedulePoint rates[MAX_SCHEDULE_POINTS];

    SHARED_FLOAT render_background[3];           /* of finished pixels */
    ParameterGroup groups[MAX_PARAMETER_GROUPS]; /* behind the last: `first_entry` that none reaches
                                                  */
    Level levels[MAX_LEVELS];
    LayerWeights layers[MAX_LAYERS]; /* behind the last: `first` that none reaches */
    GradientBucket buckets[MAX_GRADIENT_BUCKETS + 1]; /* behind the last: where it ends */

    /* Of models whose layers are passes of their own. */
    SHARED_UINT columns;   /* of a row of activations */
    SHARED_UINT kept_rows; /* room for rows whose activations stay for the backward pass; 0: none do
                            */
    SHARED_UINT chunk_rows;      /* rows that go through the layers at a time, a multiple of 64 */
    SHARED_UINT cells_per_chunk; /* of those, cells of the occupancy grid: not more than there are
                                    rays */
    SHARED_UINT first_output;    /* column of raw density; of features for the colour: 32 behind */
    SHARED_UINT color_output;    /* column of raw rgb */
    LayerColumns flows[MAX_LAYERS];
    SHARED_UINT row_features; /* values of BIND_FEATURES that each sample has in front of the
                                 activations */

    /* Of a deformation. */
    SHARED_UINT deformation_input;  /* column that its inputs begin with */
    SHARED_UINT deformation_output; /* column of the displacement, in sides of the cube */
    SHARED_UINT deformation_octaves, time_octaves;
    SHARED_FLOAT first_time, last_time; /* of the training views */
    SHARED_FLOAT curriculum; /* share of the training in which those that are drawn become all; 0:
                                all are */

    /* Of a proposal: numbers of its own where there is one of the same name above, and when it
     * learns. */
    SHARED_UINT proposal_params, proposal_summed, proposal_entries, proposal_groups;
    SHARED_UINT anneal_steps, proposal_interval;
    SHARED_FLOAT loss_interlevel;

    SHARED_FLOAT crop_low[3], crop_high[3]; /* box in training space that pictures show; without one
                                               up to the largest numbers */
};

struct Dispatch {
    SHARED_UINT x, y, z;
    SHARED_UINT finished; /* workgroups at their end, where the last one goes on; else 0 */
};

#define DISPATCH_RAYS     0 /* one invocation per ray */
#define DISPATCH_MARCH    1 /* one subgroup per ray */
#define DISPATCH_SCAN     2
#define DISPATCH_FORWARD  3 /* groups that share out samples, or what else there is */
#define DISPATCH_BACKWARD 4
#define DISPATCH_SUMMED \
    5 /* one invocation per parameter whose gradient is summed over workgroups */
#define DISPATCH_PARAMS    6 /* groups that share out all parameters */
#define DISPATCH_ENTRIES   7 /* one invocation per entry of the optimiser's groups; in rows */
#define DISPATCH_ONE       8 /* `finished`: cells that pick_cells found; else only in checkpoints */
#define DISPATCH_OCCUPANCY 9 /* the occupancy update's three passes */
#define DISPATCH_THRESHOLD 10
#define DISPATCH_PACK      11
#define DISPATCH_AVERAGE   12
#define DISPATCH_COUNT     13
/* The same again, of a proposal's learning; not in struct State. */
#define DISPATCH_PROPOSAL  DISPATCH_COUNT

/* Everything that a step changes; with the parameters and the occupancy grid it is the whole state
 * of a run, so a checkpoint stores it as it is. */
struct State {
    SHARED_UINT step;         /* steps finished or, between begin_step and the end, running + 1 */
    SHARED_UINT running;      /* this step runs */
    SHARED_UINT ray_count;    /* rays of this step */
    SHARED_UINT sample_count; /* samples that the rays asked for; may exceed the capacity */
    SHARED_UINT live_count;
    SHARED_UINT live_rays; /* rays in the loss: those whose pixel counts and whose samples all
                              fitted */
    SHARED_FLOAT learning_rate;
    SHARED_FLOAT loss_scale;
    SHARED_UINT good_steps; /* since the loss scale last changed */
    SHARED_UINT skipped_steps;
    SHARED_UINT updates;          /* weight updates done: steps of groups that are not sparse */
    SHARED_UINT nonfinite;        /* a gradient of this step was not finite: the step is skipped */
    SHARED_FLOAT gradient_factor; /* unscale and clip */
    SHARED_FLOAT grad_norm;
    SHARED_UINT average_step; /* step at which the average was last refreshed */
    SHARED_FLOAT average_weight;
    SHARED_FLOAT threshold;  /* of the occupancy grid, this update */
    SHARED_UINT underflowed; /* gradients of activations that f16 turned into zero, this step */
    SHARED_UINT rounded;     /* of so many that were not zero */
    SHARED_UINT settled;     /* a step was good since the loss scale or the rate was set anew */
    SHARED_UINT backoffs;    /* back-offs since the loss scale last grew, once settled */
    SHARED_UINT rate_cuts;   /* times that a falling loss scale has lowered the learning rate */
    Dispatch dispatches[DISPATCH_COUNT];
    /* Checkpoints of older programs end here: what follows is zero then (src/checkpoint/find.c). */
    SHARED_UINT tolerated; /* overflows since the loss scale last grew that have not lowered it */
};

/* What a rank's samples came to beside gradients and then, all ranks together, the step's. Words of
 * BIND_REDUCE. */
#define RANK_STATS_STEP   0
#define RANK_STATS_COARSE 1 /* of the coarse samples of hierarchical sampling */
#define RANK_STATS_WORDS  8
struct RankStats {
    SHARED_UINT samples, live, live_rays, nonfinite, underflowed, rounded; /* as in State */
    SHARED_FLOAT loss, square;                                             /* sums over the rays */
};

struct Control {
    SHARED_FLOAT time_progress; /* share of --seconds that has passed */
    SHARED_UINT step_limit;     /* steps wait here, whatever the configuration's limit */
    SHARED_UINT min_updates;    /* where ranks are averaged: of the rank that has done fewest */
    SHARED_UINT padding;
};

/* One step's figures. `step` is written last-come: the host checks it before it trusts the rest. */
struct Stats {
    SHARED_UINT step;
    SHARED_UINT rays, samples, live;
    SHARED_FLOAT loss;   /* mean over the rays */
    SHARED_FLOAT square; /* mean squared colour error */
    SHARED_FLOAT learning_rate, loss_scale;
    SHARED_FLOAT grad_norm;
    SHARED_UINT skipped_steps;
    SHARED_FLOAT underflowed; /* share of the rounded gradients that became zero */
    SHARED_UINT rate_cuts;    /* after the step */
};

struct Camera {
    SHARED_UINT width, height, first_pixel;
    SHARED_UINT lens; /* LENS_* */
    SHARED_FLOAT focal_x, focal_y, center_x, center_y;
    SHARED_FLOAT k1, k2, p1, p2, k3, k4, sx1, sy1;
    SHARED_FLOAT limit;    /* scene_camera_limit: nothing lies further out */
    SHARED_FLOAT time;     /* 0..1 for dynamic scenes, else 0 */
    SHARED_FLOAT pose[12]; /* camera to world, row-major 3 x 4 */
};

struct Ray {
    SHARED_FLOAT origin[3];
    SHARED_FLOAT step; /* next position in stepping space; beyond `last`: finished */
    SHARED_FLOAT direction[3];
    SHARED_FLOAT last; /* end of the ray in stepping space; -1: misses the cube; not in the loss
                          are -2: its samples did not fit, -3: its pixel does not count */
    SHARED_FLOAT target[4]; /* premultiplied colour and alpha of the pixel */
    SHARED_FLOAT background[3];
    SHARED_FLOAT distance_scale; /* depth = t times this: distance along the camera's axis; those
                                of other lenses than perspective ones along the ray */
    SHARED_UINT view;            /* its camera in BIND_CAMERAS */
    SHARED_FLOAT time;           /* of that camera */
};

struct RayResult {
    SHARED_FLOAT color[3]; /* without background */
    SHARED_FLOAT transmittance;
    SHARED_FLOAT depth; /* sum of weight * t */
    SHARED_UINT first;  /* its samples: first .. first + count */
    SHARED_UINT count;
    SHARED_UINT padding;
};

struct Sample {
    SHARED_FLOAT t;     /* distance along the ray */
    SHARED_FLOAT width; /* length of the ray that it stands for, of which it is the middle; 0: of a
                           place that no ray goes through */
    SHARED_UINT ray;
};

/* What list_samples finds beside the samples. */
struct ListSummary {
    SHARED_UINT samples, rays;
    SHARED_UINT rays_in_loss;
    SHARED_UINT step; /* as in State */
    SHARED_FLOAT learning_rate;
    SHARED_UINT unusable; /* densities that are no numbers, see import_densities */
};

/* A finished pixel. */
struct Output {
    SHARED_FLOAT color[3]; /* composited on the background, 0..1 */
    SHARED_FLOAT opacity;
    SHARED_FLOAT depth;     /* t times distance_scale, training units; 0 where nothing was hit */
    SHARED_UINT packed;     /* the colour as RGBA8 */
    SHARED_FLOAT normal[3]; /* unit length, training space; 0 without a surface, or unless asked for
                             */
};

#include "shared/surface.h"

/* Push constants. Programs read the words they need. */
struct Push {
    SHARED_UINT a, b, c, d;
    SHARED_UINT e, f, g, h;
};

/* What a pass of the field has a row for: push.e. */
#define ROWS_SAMPLES    0
#define ROWS_LIVE       1
#define ROWS_CELLS      2
#define ROWS_DENSITIES  3 /* samples, whose colours nobody asks for */
#define ROWS_RECOMPUTED 4 /* live samples, where their activations are not there from before */

/* Whose samples composite has: push.e. */
#define COMPOSITE_ALL    0
#define COMPOSITE_COARSE 1 /* those of the coarse field of hierarchical sampling */

/* Whose samples list_samples lists: push.a. */
#define LIST_STEP  0 /* those of a step's rays */
#define LIST_CELLS 1 /* of cells of the occupancy grid that pick_cells picked */
#define LIST_VIEW  2 /* of push.b rays of a picture */

/* Areas of BIND_REDUCE, in floats. */
#define REDUCE_GROUPS    16384               /* most workgroups that leave partial sums */
#define REDUCE_LOSS      0                   /* composite: loss, squared error by workgroup */
#define REDUCE_GRADIENT  (2 * REDUCE_GROUPS) /* check_gradients: sum of squares by workgroup */
#define REDUCE_OCCUPANCY (3 * REDUCE_GROUPS) /* update_occupancy: sum by workgroup */
#define REDUCE_COARSE    (4 * REDUCE_GROUPS) /* check_coarse_gradients: loss, sum of squares */
#define REDUCE_RANK_STATS \
    (4 * REDUCE_GROUPS + 4) /* export_step_stats, import_step_stats: struct Found of FOUND_* */
#define REDUCE_SIZE (REDUCE_RANK_STATS + 2 * RANK_STATS_WORDS)

#endif
