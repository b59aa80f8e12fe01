/* Constants that host and shaders share: numbers of the specialisation constants, values that they
 * and the structs of shared/layout.h have, and limits. C and GLSL include this file. */
#ifndef SHARED_CONSTANTS_H
#define SHARED_CONSTANTS_H

#define SPEC_SUBGROUP_SIZE 0
#define SPEC_LOCAL_SIZE    1

#define SPEC_LEVELS             2 /* hash grid levels; without a grid: octaves of the position */
#define SPEC_FEATURES           3 /* features of a hash grid entry: 2 or 4; 0: there is no grid */
#define SPEC_DENSITY_WIDTH      4 /* density MLP: outputs of each hidden layer */
#define SPEC_DENSITY_LAYERS     5 /* density MLP: hidden layers */
#define SPEC_GEOMETRY           6 /* outputs of the density MLP: raw density, features for colour */
#define SPEC_SH_DEGREE          7 /* bands of harmonics, 1..4; otherwise octaves of the direction */
#define SPEC_COLOR_WIDTH        8 /* colour MLP: outputs of each hidden layer */
#define SPEC_COLOR_LAYERS       9 /* colour MLP: hidden layers; 0: there is no colour MLP */
#define SPEC_RESOLUTION         10 /* cells along an edge of the occupancy grid */
#define SPEC_CASCADES           11
#define SPEC_LOSS               12 /* enum vkn_loss: shaders/volume/loss.glsl */
#define SPEC_BACKGROUND         13 /* BACKGROUND_* */
#define SPEC_DETERMINISTIC      14
#define SPEC_F16                15 /* 1: features and their gradients are stored as f16 */
#define SPEC_ROW_STRIDE         16 /* values from one row of a tile to the next */
#define SPEC_HOLD_SUMS          17 /* 1: weight gradients stay in registers; 0: in BIND_PARTIALS */
#define SPEC_TILE_ROWS          18 /* samples in the tile of a workgroup of the MLPs */
#define SPEC_OWNED_ROWS         19 /* matrices: rows of a tile that the same subgroups share */
#define SPEC_GRADIENT_TILES     20 /* fp32, fp16: tiles per product of weight gradients */
#define SPEC_CONTRACTION        21 /* CONTRACTION_* */
#define SPEC_DENSITY_ONLY       22 /* 1: field_forward computes only densities and writes colour 0 */
#define SPEC_ENTRY_SIZE         23 /* parameters of an optimiser entry, largest over the groups */
#define SPEC_INPUT_GRADIENTS    24 /* 1: the backward pass also writes directions' gradients */
#define SPEC_CPU_KERNELS        25 /* 1: few invocations that do much each, for CPU devices */
#define SPEC_PAIRED             26 /* 1: all entries have SPEC_ENTRY_SIZE parameters, even and aligned */
#define SPEC_F16_SUMS           27 /* 1: the hash grid's gradients are f16 pairs in BIND_ACCUMULATORS */
#define SPEC_TRANSPOSED         28 /* first f16 parameter of the weights stored by output; 0: none */
#define SPEC_ROUNDED            29 /* ROUND_* and further bits: shaders/shared/rounding.glsl */
#define SPEC_SAMPLING           30 /* SAMPLING_* */
#define SPEC_DENSITY_ACTIVATION 31 /* DENSITY_* */
#define SPEC_ALPHA_THRESHOLD    32 /* 1: samples below Config.alpha_threshold count as empty */
#define SPEC_PRODUCT_BLOCKS     33 /* matrices: blocks of rows per subgroup */
#define SPEC_PRODUCT_PANELS     34 /* matrices: panels of weights per subgroup */
#define SPEC_VISIBILITY         35 /* 1: densities first, then colours of visible samples only */
#define SPEC_F16_SUM_OFFSET     36 /* offset of f16 sums in BIND_ACCUMULATORS, in units of 8 bytes */
#define SPEC_DEFORMED           37 /* 1: the field is evaluated at canonical positions */
#define SPEC_TIME_INPUTS        38 /* values of the encoded time, after the position's features */
#define SPEC_DISTORTION         39 /* DISTORTION_* */
#define SPEC_TIME_BINS          40 /* time bins of the occupancy grid, each with all cascades */
#define SPEC_SPACING            41 /* SPACING_* */
#define SPEC_ACTIVATION         42 /* ACTIVATION_* */
#define SPEC_DIRECTION          43 /* DIRECTION_* */
#define SPEC_OPTIMIZER          44 /* enum vkn_optimizer: shaders/optim/optimizers.glsl */
#define SPEC_SAMPLE_LANES       45 /* lanes that exchange sums in scatter_gradients: 4, or 1: none */
#define SPEC_GRID_DECAY         46 /* levels of the hash grid that decay: all; 0: grid.decay is off */
#define SPEC_KEEP               47 /* 1: the backward pass drops some rays: batch.keep */
#define SPEC_BY_ERROR           48 /* 1: some rays are drawn by error: shaders/rays/error_map.glsl */
#define SPEC_REFINE             49 /* REFINE_*: what training refines of the cameras, scene.refine */
#define SPEC_APPEARANCE         50 /* APPEARANCE_*: what training estimates of images and cameras */
#define SPEC_ROBUST             51 /* 1: rays through outlier cells have no weight: loss.robust */
#define SPEC_DEPTH              52 /* 1: some rays have a known depth: loss.depth */
#define SPEC_SKY                53 /* 1: opaque pixels have the sky behind the field, scene.sky */
#define SPEC_BF16_MOMENTS       54 /* 1: both moments in one word: shaders/optim/moments.glsl */
#define SPEC_RAY_WEIGHTS        55 /* 1: the caller gives each ray a weight in loss and gradients */
#define SPEC_COUNT              56

/* Operations of the precision policy whose results can be rounded to f16: bits of SPEC_ROUNDED. */
#define ROUND_SUMS                 1
#define ROUND_WEIGHT_SUMS          2
#define ROUND_COMPOSITING          4
#define ROUND_MASTERS              8
#define ROUND_MOMENTS              16
/* MLP products of f16 numbers are computed in f32, as in precision fp32. */
#define F32_PRODUCTS               32
/* Stored values: rounded to bf16 only, because f16 precisions store them as f16 anyway. */
#define ROUND_ACTIVATIONS          64
#define ROUND_ACTIVATION_GRADIENTS 128
/* The device flushes subnormal f16 numbers to zero. */
#define F16_NO_SUBNORMALS          256
/* Factor from the bit that rounds to f16 to the bit that rounds to bf16. */
#define ROUND_BF16                 65536

#define CONTRACTION_NONE 0
#define CONTRACTION_CUBE 1 /* shaders/shared/contraction.glsl */

#define SAMPLING_OCCUPANCY    0 /* steps of the march in occupied cells */
#define SAMPLING_UNIFORM      1 /* equal bins along the whole ray */
#define SAMPLING_HIERARCHICAL 2 /* a coarse field's samples, and more where they have weight */
#define SAMPLING_PROPOSAL     3 /* where a proposal's samples have weight */

#define SPACING_STEPS     0 /* the marching step */
#define SPACING_LINEAR    1
#define SPACING_DISPARITY 2
#define SPACING_LOG       3

/* enum vkn_density_activation; 0, in checkpoints of older versions, is exp. */
#define DENSITY_EXP      1
#define DENSITY_SOFTPLUS 2
#define DENSITY_RELU     3

#define BACKGROUND_RANDOM 0
#define BACKGROUND_WHITE  1
#define BACKGROUND_BLACK  2

/* Value in BIND_PIXELS of pixels that are not trained on (SCENE_IGNORED). */
#define PIXEL_IGNORED    0x00ffffffu
#define PIXEL_DRAWS      16   /* most draws of a ray's pixel until it is not PIXEL_IGNORED */
#define NEAR_SHARE       0.4f /* share of the training after which rays start at near_distance */
#define CURRICULUM_START 0.1f /* share of the time range with which a curriculum begins */

/* Lens models: enum vkn_lens. */
#define LENS_PERSPECTIVE        0
#define LENS_FISHEYE            1
#define LENS_EQUIRECTANGULAR    2
#define LENS_THIN_PRISM_FISHEYE 3

#define MAX_LEVELS           32
#define MAX_PARAMETER_GROUPS 8
#define MAX_GRADIENT_BUCKETS 8
/* Alignment of a parameter group's first entry, and most invocations of a workgroup of
 * update_weights: so all entries of a workgroup are of one parameter group. */
#define ENTRY_ALIGN          64
#define MAX_RAY_SAMPLES      1024 /* most samples of a ray */
#define MAX_COARSE_SAMPLES   256  /* most samples of a ray of a coarse field */
#define MAX_FINE_SAMPLES     512  /* most samples of a ray drawn from the coarse weights */
#define STATS_RING           256  /* latest steps whose statistics BIND_STATS holds */
#define MIN_STEP_RAYS        64   /* fewest rays of a step; more are a multiple of it */
#define UPDATE_INTERVAL      16 /* training steps in an update interval, with one occupancy update */
#define MAX_PARAM_WORKGROUPS 64u /* most workgroups of DISPATCH_PARAMS, for CPU devices */
#define ANY_STEP             (UPDATE_INTERVAL + 1) /* push.a of begin_step: any step may run */
#define MAX_LAYERS           16  /* most layers of both MLPs together: shaders unroll them */
#define COLOR_OUTPUTS        16  /* rgb padded to a matrix tile; the padding's weights stay zero */
#define OCCUPANCY_BLOCK      8   /* edge, in cells, of the blocks that a ray skips at once */
#define CELL_BLOCK           256 /* consecutive groups of four cells in one rank's share */
#define OCCUPANCY_WARMUP     256 /* first steps: updates visit all cells, alpha_threshold is 0 */
/* 2^95: a larger gradient counts as not finite, so that sums of 2^32 gradients are finite. */
#define MOST_GRADIENT        39614081257132168796771975168.0
#define FIXED_SCALE          4398046511104.0 /* 2^42 units per 1 of the summed loss's gradient */

/* Curve of distance that the distortion loss is computed on; DISTORTION_NONE: no such loss. */
#define DISTORTION_NONE   0
#define DISTORTION_LINEAR 1 /* distance, contracted in contracted space */
#define DISTORTION_LADDER 2 /* power ladder: Config.ladder_unit */

/* Kinds of loss scaling. */
#define SCALE_STATIC   0
#define SCALE_DYNAMIC  1
#define SCALE_SCHEDULE 2

/* Kinds of learning-rate schedules. */
#define RATE_STEP        0
#define RATE_EXPONENTIAL 1
#define RATE_COSINE      2
#define RATE_POINTS      3

/* The error map (struct ErrorCell). */
#define ERROR_MEMORY 32         /* rays of a cell that weigh as much as its error so far */
#define ERROR_UNITS  16777216.0 /* fixed-point units per 1 of a ray's loss, 2^24 */

/* Outlier cells, with loss.robust: shaders/rays/mark_outliers.comp. */
#define OUTLIER_MEMORY 8 /* instead of ERROR_MEMORY, because the cells are small */
#define OUTLIER_STEPS \
    1000 /* steps before cells are marked, at most OUTLIER_START of the training */
#define OUTLIER_START 0.35f
#define OUTLIER_TURNS 4     /* update intervals in which all cells are looked at once */
#define OUTLIER_LEAST 0.01f /* with a smaller share of outlier cells all rays have a weight */

/* Refinement of cameras: bits of SPEC_REFINE. */
#define REFINE_POSES   1
#define REFINE_LENSES  2
#define GRADIENT_UNITS 16777216.0 /* fixed-point units per 1 of a gradient, 2^24 */

/* Appearance of images (struct Appearance): values of SPEC_APPEARANCE; 0: none. */
#define APPEARANCE_EXPOSURE 1
#define APPEARANCE_FULL     2

/* The sky: octahedral maps of 4, 16, 64 and 256 texels along an edge (shaders/shared/sky.glsl). */
#define SKY_LEVELS 4
#define SKY_TEXELS 69904            /* 4^2 + 16^2 + 64^2 + 256^2 */
#define SKY_CELLS  (4 * SKY_TEXELS) /* struct ErrorCell of each texel: red, green, blue, weight */
#define SKY_MEMORY 8.0f             /* most rays that a texel's colour so far weighs as much as */
#define SKY_LOSS   0.002f           /* weight of density's loss where pixels may show the sky */
#define SKY_PRIOR  0.0625f          /* rays that the colour of the coarser map weighs as much as */

#define MAX_SCHEDULE_POINTS 32
#define MAX_RATE_CUTS       10 /* most cuts of the rate by back-offs: more would stop the training */

#endif
