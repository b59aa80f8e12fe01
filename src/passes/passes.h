/* Declares the passes, buffers, parameter groups and costs that steps and pictures are built from.
 * The modules rays, field, volume and optim list their passes; the step puts the lists in order. */
#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "config/config.h"
#include "gpu/gpu.h"
#include "shared/layout.h"

struct field_model;
struct field_backend;
struct pass;

/* ---- buffers ------------------------------------------------------------------------------- */

#define MAX_MOMENTS 2u /* moments per parameter in the optimiser: BIND_MOMENT1, BIND_MOMENT2 */

/* The counts from which shared/buffers.h computes the size of every buffer. All are numbers of
 * elements, except members that end in _bytes. */
struct buffer_counts {
    uint64_t rays, samples, cameras, pixels;
    uint64_t params;               /* parameters of the field */
    uint64_t entries;              /* optimiser entries: parameters that share a step count */
    uint64_t moments[MAX_MOMENTS]; /* `params` for each moment that the optimiser has, else 0 */
    uint64_t summed;          /* parameters of MLPs, whose gradients are summed over workgroups */
    uint64_t f16_params;      /* f16 values in BIND_F16_PARAMS; 0: no f16 copies are kept */
    uint64_t panels;          /* packed weights of unfused layers (each a pass), in 16-bit units */
    uint64_t feature_bytes;   /* of BIND_FEATURES, per sample */
    uint64_t layer_bytes;     /* activations of one chunk of rows, for unfused layers */
    uint64_t kept_bytes;      /* activations that are kept for the backward pass */
    uint64_t input_gradients; /* samples whose position and direction have gradients, or 0 */
    uint64_t sum_bytes;       /* per parameter in BIND_ACCUMULATORS; 0: gradient sums are floats */
    bool f16_sums; /* the optimiser reads pairs of f16 sums, stored after any fixed-point sums */
    uint64_t groups, scratch_bytes; /* workgroups of field_backward; bytes of each one's tiles */
    uint64_t cells, bit_words;      /* occupancy grid: cells; 32-bit words of BIND_OCCUPANCY_BITS */
    uint64_t sky_cells;             /* struct ErrorCell of the sky, or 0 */
    uint64_t error_cells, error_sums; /* error map: struct ErrorCell; floats after REDUCE_SIZE */
    uint64_t refined_views;           /* training views whose cameras are refined, or 0 */
    uint64_t appearances;             /* training views whose appearance is estimated, or 0 */
    uint64_t depths;                  /* known depths of training views, or 0 */
    /* Meshes: grid points of a layer, layers of a slab, tiles, most vertices and triangles, and
     * pixels of the visibility maps. */
    uint64_t layer, layers, tiles, vertices, triangles, visibility_maps;
    uint64_t texels, splats; /* per batch: pixels of a texture; Gaussians */
};

/* The user of a set of buffers. Each user has its own prefix of buffer names in memory lists, as
 * "view rays". */
enum buffer_user {
    BUFFERS_OF_STEP,
    BUFFERS_OF_VIEW,   /* pictures and meshes: VIEW_BUFFERS in descriptor set 1 */
    BUFFERS_OF_QUERY,  /* the field at chosen positions: VIEW_BUFFERS in descriptor set 1 */
    BUFFERS_OF_TRIAL,  /* self-tests and tuning: STEP_BUFFERS */
    BUFFERS_OF_COARSE, /* a coarse field and its samples: STEP_BUFFERS */
};

/* Bit of a buffer in a mask: BUFFERS(RAYS) | BUFFERS(SAMPLES). */
#define BUFFERS(NAME) (1u << BIND_##NAME)
#define BUFFERS_ALL   ((1u << GPU_BINDINGS) - 1u)
/* Buffers that every set of samples has a copy of. */
#define BUFFERS_OF_SET                                                                           \
    (BUFFERS(STATE) | BUFFERS(RESULTS) | BUFFERS(SAMPLES) | BUFFERS(FIELD) | BUFFERS(FEATURES) | \
     BUFFERS(FIELD_GRADIENTS) | BUFFERS(LIVE))
/* Buffers that every trained field has a copy of: parameters, gradients and optimiser state. */
#define BUFFERS_OF_PARAMETERS                                                             \
    (BUFFERS(PARAMS) | BUFFERS(F16_PARAMS) | BUFFERS(GRADIENTS) | BUFFERS(ACCUMULATORS) | \
     BUFFERS(AVERAGE) | BUFFERS(F16_AVERAGE) | BUFFERS(MOMENT1) | BUFFERS(MOMENT2) |      \
     BUFFERS(STEP_COUNTS))
/* Buffers that evaluating a field needs. */
#define BUFFERS_OF_FIELD \
    (BUFFERS(PARAMS) | BUFFERS(F16_PARAMS) | BUFFERS(OCCUPANCY) | BUFFERS(OCCUPANCY_BITS))

/* Buffers that are allocated together. */
struct buffers {
    struct gpu_arena *arena;
    struct gpu_buffer at[GPU_BINDINGS]; /* by number, BIND_* */
};

/* Creates the buffers of `mask` that the list of `user` has, filled with zeros. The caller destroys
 * *buffers. VKN_BAD_INPUT when the buffers do not fit. */
vkn_status buffers_create(struct gpu_device *device, enum buffer_user user, uint32_t mask,
                          const struct buffer_counts *counts, struct buffers *buffers);
/* Frees the buffers. */
void buffers_destroy(struct buffers *buffers);
/* Lists what buffers_create would allocate, for gpu_memory_check. Returns the number of items. */
size_t buffers_list(enum buffer_user user, uint32_t mask, const struct buffer_counts *counts,
                    struct gpu_need *needs);
/* Returns the bytes of one buffer; 0 when the list of `user` does not have it. */
uint64_t buffers_bytes(enum buffer_user user, uint32_t number, const struct buffer_counts *counts);
/* Returns the bytes that buffers_create would allocate, without alignment. */
uint64_t buffers_total(enum buffer_user user, uint32_t mask, const struct buffer_counts *counts);
/* Enters the buffers of `mask` into bound[number] for gpu_bindings_create. */
void buffers_bind(const struct buffers *buffers, uint32_t mask,
                  const struct gpu_buffer *bound[GPU_BINDINGS]);

/* A buffer of the step that checkpoints hold as a tensor of 4-byte elements. */
struct saved_buffer {
    uint32_t number;
    const char *tensor;
    bool is_f32;       /* else u32 */
    bool is_inherited; /* --init copies the tensor from the other checkpoint */
    bool coarse;       /* the buffer belongs to the coarse field or proposal */
    const char *fine;  /* name of the main field's corresponding tensor */
};
#define MAX_SAVED_BUFFERS 16u
/* Lists the buffers of `mask` that a checkpoint stores, in its order; with `coarse`, the buffers of
 * the coarse field follow. Returns their number. */
size_t buffers_list_saved(uint32_t mask, bool coarse, struct saved_buffer saved[MAX_SAVED_BUFFERS]);

/* The state in a checkpoint of a training that had a sky, refined cameras, estimated appearances or
 * looked for outliers. */
struct saved_state {
    const void *data; /* struct State and what follows; NULL: none of these */
    uint64_t size;
    bool has_sky;                    /* the cells of the sky follow struct State */
    bool has_views, has_appearances; /* struct View and struct Appearance follow */
    bool has_map, has_outliers;      /* an error map is before these; it has outlier cells */
};

/* ---- parameters ---------------------------------------------------------------------------- */

/* Parameters with the same optimiser settings; a group begins where the previous one ends. */
struct parameter_group {
    uint32_t count; /* parameters */
    uint32_t entry; /* consecutive parameters that share one step count; divides `count` */
    bool sparse;    /* an entry without a gradient keeps its parameters and moments */
    float rate;     /* factor of the learning rate; 0: the group is frozen */
    float decay;    /* factor of optimizer.weight_decay; 0: none */
};
/* Returns the optimiser entries of the first `count` groups, including the gaps between groups:
 * each group begins at a multiple of ENTRY_ALIGN. */
uint32_t groups_entry_count(const struct parameter_group *groups, uint32_t count);

/* ---- cost ---------------------------------------------------------------------------------- */

/* The cost of one pass in one step, or in one update interval for passes that run once in it. */
struct cost {
    double flops;   /* a multiply-add is two, any other f32 or f16 operation one; integers none */
    double bytes;   /* loaded and stored by the shader, cached or not; shared weights count once */
    double memory;  /* bytes that cross the memory bus when caches are perfect: each touched byte
                       read once and written once */
    double atomics; /* atomic operations on memory, one for each 32-bit word */
};

/* Operations for a ray's colour of the sky (shaders/shared/sky.glsl), and bytes read. */
#define COST_SKY_FLOPS 760
#define COST_SKY_BYTES (4.0 * SKY_LEVELS * 16)

/* The facts of a run that the cost formulas use. */
struct cost_model {
    const struct vkn_config *config; /* effective */
    const struct field_model *model;
    const struct field_backend *backend;
    const struct Config *constants;
    const struct parameter_group *groups;
    uint32_t group_count;
    struct buffer_counts counts;
    double local_size, subgroup_size;
    bool cpu_kernels; /* gpu_cpu_kernels */
};

/* Averages over steps, from which the cost of a pass follows. */
struct cost_counts {
    double rays, marched, live; /* rays; samples; samples with a gradient */
    double touched;             /* hash grid entries with a gradient */
    double evaluated;           /* cells at which an occupancy update evaluates the field */
    const struct pass *pass; /* the pass to cost; for ROWS_CELLS, each cell counts as a sample and
                                a ray */
};

/* Computes the cost of a pass. */
typedef struct cost cost_function(const struct cost_model *model, const struct cost_counts *counts);

/* Returns the cost of a pass whose every byte crosses the memory bus. */
static inline struct cost cost_streaming(double flops, double bytes)
{
    return (struct cost){.flops = flops, .bytes = bytes, .memory = bytes};
}

/* Adds a share of a pass's cost. */
static inline void cost_add(struct cost *sum, const struct cost *cost, double share)
{
    sum->flops += share * cost->flops;
    sum->bytes += share * cost->bytes;
    sum->memory += share * cost->memory;
    sum->atomics += share * cost->atomics;
}

/* ---- passes -------------------------------------------------------------------------------- */

/* How the shader of a pass depends on the backend: the suffix that is added to the pass's name. */
enum field_variant {
    FIELD_NO_VARIANT,      /* no suffix */
    FIELD_FORWARD,         /* as FIELD_VALUES, with its own tile size */
    FIELD_VALUES,          /* evaluates the MLPs: "_fp32", "_fp16", "_16x16x16", ... */
    FIELD_BACKWARD,        /* as FIELD_VALUES; "_memory" is added when tiles lie in device memory */
    FIELD_SCATTER,         /* gradient accumulator of the hash grid: "_float", "_fixed", ... */
    FIELD_REDUCE,          /* "_fixed" when the accumulator is fixed point */
    FIELD_F16_PARAMS,      /* "_fp16" when f16 copies of the parameters are kept */
    FIELD_FP32,            /* fp32 on every backend; "_tiled" on GPUs */
    FIELD_F16_ACTIVATIONS, /* "_fp16" when activations are f16 */
    FIELD_LAYER_PRODUCT, /* matrix products of unfused layers: "_fp32", "_fp32_tiled", "_16x16x16",
                            ... */
    FIELD_LAYER_PRODUCT_F32, /* as FIELD_LAYER_PRODUCT, but sums are always f32 */
};

/* What a pass is repeated over, in ascending order unless the name ends in BACK. */
enum pass_loop {
    LOOP_NONE,
    LOOP_CASCADES, /* from the innermost cascade outwards */
    LOOP_LAYERS,   /* layers of the field, without a deformation's */
    LOOP_DENSITY_LAYERS,
    LOOP_LAYERS_BACK,      /* down to the first layer whose inputs need gradients */
    LOOP_DEFORMATION,      /* layers of the deformation */
    LOOP_DEFORMATION_BACK, /* layers of the deformation, down to the first whose inputs need
                              gradients */
    LOOP_UNFUSED_LAYERS,   /* all layers that are passes of their own (unfused layers) */
};

/* Conditions under which a pass belongs to a step; a pass is listed when all of its flags hold. */
enum pass_use {
    PASS_ALWAYS = 0,
    PASS_DETERMINISTIC = 1,
    PASS_NOT_DETERMINISTIC = 2,
    PASS_OCCUPANCY = 4,           /* march.sampling=occupancy */
    PASS_UNIFORM = 8,             /* any other march.sampling: the first samples are uniform */
    PASS_HIERARCHICAL = 16,       /* march.sampling=hierarchical */
    PASS_ONE_FIELD = 32,          /* neither a coarse field nor a proposal */
    PASS_RECOMPUTES = 64,         /* activations are computed again for the backward pass */
    PASS_KEEPS_ACTIVATIONS = 128, /* activations are kept for the backward pass */
    PASS_VISIBILITY = 256,        /* march.visibility=on */
    PASS_NO_VISIBILITY = 512,
    PASS_SINGLE_RANK = 1024,      /* a single rank computes the step */
    PASS_SYNCHRONOUS = 2048,      /* synchronous data parallelism */
    PASS_PACKS_F16 = 4096,        /* gradients are packed to f16 for the all-reduce */
    PASS_AVERAGED = 8192,         /* parameter averaging after each update interval */
    PASS_PROPOSAL = 16384,        /* march.sampling=proposal */
    PASS_TWO_FIELDS = 32768,      /* a coarse field or a proposal */
    PASS_TRAINS_PROPOSAL = 65536, /* the pass trains the proposal, which not every step does */
    /* Properties of the model, see field_list_passes. */
    PASS_GRID = 1 << 17, /* the position encoding is a hash grid */
    PASS_NO_GRID = 1 << 18,
    PASS_DEFORMED = 1 << 19, /* a deformation precedes the field */
    PASS_NOT_DEFORMED = 1 << 20,
    PASS_REFINED = 1 << 21, /* scene.refine: training refines the cameras */
    PASS_OF_FIELD = PASS_GRID | PASS_NO_GRID | PASS_DEFORMED | PASS_NOT_DEFORMED | PASS_REFINED,
    PASS_BY_ERROR = 1 << 22,    /* batch.by_error: some rays are drawn by error */
    PASS_ROBUST = 1 << 24,      /* loss.robust: rays through outlier cells have no weight */
    PASS_MAPS_ERRORS = 1 << 25, /* either of them: training keeps an error map */
    PASS_APPEARANCE = 1 << 23,  /* scene.appearance: training estimates the images' appearance */
    PASS_SKY = 1 << 26,         /* scene.sky: a background by direction */
    PASS_JOINED = 1 << 27,      /* steps may be joined, see enum pass_place */
};

/* Where a pass runs. The end of a step and the start of the next may be joined: finish_step
 * replaces reduce_gradients, check_gradients and begin_step, and update_weights runs beside the
 * next step's first pass. */
enum pass_place {
    PASS_IN_EACH_STEP,
    PASS_AT_BEGIN,    /* in a step that is not joined to the one before */
    PASS_AT_END,      /* in a step that is not joined to the next */
    PASS_JOINS_NEXT,  /* in a step that is joined to the next */
    PASS_JOINS_BEFORE /* in a step that is joined to the one before; no barrier follows */
};

#define PASS_ONE_WORKGROUP (-1) /* as `dispatch`: always one workgroup */
#define PASS_LOCAL_SIZE    64u /* invocations of a workgroup, unless the variant has its own size */

/* One pass: a shader, its backend variant, and when and how it is dispatched. */
struct pass {
    const char *name;  /* of the shader, without the variant's suffix */
    const char *label; /* name in profiles when a step uses the shader twice; NULL: `name` */
    enum field_variant variant;
    unsigned use;           /* PASS_DETERMINISTIC | PASS_UNIFORM, ... */
    int dispatch;           /* DISPATCH_*: entry of BIND_DISPATCHES with its workgroup counts, which
                               begin_step writes on the device; or PASS_ONE_WORKGROUP */
    int gpu_dispatch;       /* the entry on devices without CPU kernels; 0: `dispatch` */
    bool writes_dispatches; /* the shader writes BIND_DISPATCHES, so that a full barrier follows */
    bool average;           /* reads the moving average of the parameters instead of the masters */
    enum pass_loop loop;    /* push.c is the index of the iteration */
    bool by_chunk;  /* runs once for each chunk of rows (push.d); neighbouring passes by chunk run
                       together, chunk by chunk */
    bool by_bucket; /* runs once for each gradient bucket (push.d), together with neighbours */
    enum pass_place place; /* in a step; all other passes run in each step */
    uint32_t rows;         /* push.e: ROWS_*, or a constant of the pass's module */
    cost_function *cost;
};

/* A list of passes in the order in which they run. */
struct pass_list {
    const struct pass *passes;
    size_t count;
};
/* clang-format off */
#define PASS_LIST(list) {list, sizeof(list) / sizeof *(list)}
/* clang-format on */

/* ---- passes that repeat ---------------------------------------------------------------------- */

/* The ranges that passes are repeated over. */
struct repeats {
    uint32_t cascades; /* of the occupancy grid, over all time bins */
    uint32_t layers, density_layers, first_deformation, deformation_layers;
    uint32_t first_unfused;          /* first layer of LOOP_UNFUSED_LAYERS */
    uint32_t first_back;             /* last layer that LOOP_LAYERS_BACK visits */
    uint32_t first_deformation_back; /* last of the deformation's that LOOP_DEFORMATION_BACK visits
                                      */
    uint32_t buckets;                /* gradient buckets, coarse levels of a hash grid first */
    uint64_t samples, cells; /* sample capacity of a step; cells of an occupancy update or 0 */
    uint32_t chunk_rows, cells_per_chunk; /* rows of a chunk: samples, cells */
};
/* Returns how often `pass->loop` repeats the pass for a chunk of rows; 1 without a loop. */
uint32_t pass_loop_count(const struct pass *pass, const struct repeats *repeats);
/* Returns push.c of repetition `round`: `round` itself without a loop. */
uint32_t pass_loop_index(const struct pass *pass, const struct repeats *repeats, uint32_t round);
/* Returns the number of chunks or gradient buckets that the pass runs for; 1 for other passes. */
uint32_t pass_chunks(const struct pass *pass, const struct repeats *repeats);
/* Returns whether both passes run together, chunk by chunk or bucket by bucket. */
bool pass_shares_chunks(const struct pass *previous, const struct pass *pass);

/* A pass outside of a step, with its pipeline and number of workgroups. */
struct pass_dispatch {
    const struct pass *pass;
    const struct gpu_pipeline *pipeline;
    uint32_t groups;
};
/* Records the dispatches in order, with a barrier after each. */
void passes_record(const struct repeats *repeats, struct gpu_recording *recording,
                   const struct pass_dispatch *dispatches, size_t count,
                   const struct gpu_bindings *bindings);

#endif
