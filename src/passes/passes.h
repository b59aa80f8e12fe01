/* recipe: what rooms put together steps and pictures from: buffers, passes, and what a pass costs.
 * Each of rays, field, volume and optim lists its own passes; pipeline puts them in order. */
#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "config/config.h"
#include "gpu/gpu.h"
#include "shared/layout.h"

struct field_model;
struct field_backend;
struct pass;

/* ---- buffers ------------------------------------------------------------------------------- */

#define MAX_MOMENTS 2u /* of a parameter, which the optimiser keeps: BIND_MOMENT1 and the next */

/* What the sizes of buffers in shared/buffers.h are made of. */
struct buffer_counts {
    uint64_t rays, samples, cameras, pixels;
    uint64_t params;               /* floats of the field */
    uint64_t entries;              /* groups of parameters with a count of steps */
    uint64_t moments[MAX_MOMENTS]; /* each 0, or params where the optimiser has it */
    uint64_t summed;               /* of the parameters: those whose gradients workgroups sum up */
    uint64_t f16_params;           /* 0 or params: whether f16 copies are kept */
    uint64_t panels;        /* instead: weights as products of layers read them, in 16 bits each */
    uint64_t feature_bytes; /* of one sample */
    uint64_t layer_bytes;   /* of a chunk of rows' activations, where layers are passes, */
    uint64_t kept_bytes;    /* and of those that stay for the backward pass */
    uint64_t input_gradients; /* samples, or 0 where nobody asks for those by place and direction */
    uint64_t sum_bytes;       /* of one parameter in BIND_ACCUMULATORS; 0: sums are floats */
    bool f16_sums; /* two of them are what the optimiser reads, behind any in fixed point */
    uint64_t groups, scratch_bytes; /* workgroups of field_backward; bytes of each one's tiles */
    uint64_t cells, bit_words;      /* of the occupancy grid */
    /* Of a mesh: points of a layer, layers of a slab, tiles, room for vertices and triangles;
     * pixels of its views. */
    uint64_t layer, layers, tiles, vertices, triangles, visibility_maps;
    uint64_t texels, splats; /* pixels of a texture; Gaussians: at a time */
};

/* Whose buffers: lists of memory tell "rays", "view rays", "probe rays" and "trial rays" apart. */
enum buffer_user {
    BUFFERS_OF_STEP,
    BUFFERS_OF_VIEW,   /* pictures and meshes: VIEW_BUFFERS in set 1 */
    BUFFERS_OF_QUERY,  /* the field at chosen places; the same */
    BUFFERS_OF_TRIAL,  /* self-tests and tuning; as the step's */
    BUFFERS_OF_COARSE, /* the same, of a coarse field and its samples */
};

/* Bit of a set of buffers: BUFFERS(RAYS) | BUFFERS(SAMPLES). */
#define BUFFERS(NAME) (1u << BIND_##NAME)
#define BUFFERS_ALL   ((1u << GPU_BINDINGS) - 1u)
/* What every set of samples has of its own. */
#define BUFFERS_OF_SET                                                                           \
    (BUFFERS(STATE) | BUFFERS(RESULTS) | BUFFERS(SAMPLES) | BUFFERS(FIELD) | BUFFERS(FEATURES) | \
     BUFFERS(FIELD_GRADIENTS) | BUFFERS(LIVE))
/* Of a field: what its optimiser changes, and what is made of it. */
#define BUFFERS_OF_PARAMETERS                                                             \
    (BUFFERS(PARAMS) | BUFFERS(F16_PARAMS) | BUFFERS(GRADIENTS) | BUFFERS(ACCUMULATORS) | \
     BUFFERS(AVERAGE) | BUFFERS(F16_AVERAGE) | BUFFERS(MOMENT1) | BUFFERS(MOMENT2) |      \
     BUFFERS(STEP_COUNTS))
#define BUFFERS_OF_FIELD \
    (BUFFERS(PARAMS) | BUFFERS(F16_PARAMS) | BUFFERS(OCCUPANCY) | BUFFERS(OCCUPANCY_BITS))

struct buffers {
    struct gpu_arena *arena;
    struct gpu_buffer at[GPU_BINDINGS]; /* by number, BIND_* */
};

/* Creates those in `mask` that the user's lists have, as zeros. The caller destroys *buffers. */
vkn_status buffers_create(struct gpu_device *device, enum buffer_user user, uint32_t mask,
                          const struct buffer_counts *counts, struct buffers *buffers);
void buffers_destroy(struct buffers *buffers);
/* What buffers_create would take, for gpu_memory_check; returns how many. */
size_t buffers_list(enum buffer_user user, uint32_t mask, const struct buffer_counts *counts,
                    struct gpu_need *needs);
/* Bytes of one; 0 for a number that the user's lists do not have. */
uint64_t buffers_bytes(enum buffer_user user, uint32_t number, const struct buffer_counts *counts);
/* Bytes that buffers_create would allocate, but for alignment. */
uint64_t buffers_total(enum buffer_user user, uint32_t mask, const struct buffer_counts *counts);
/* Puts those in `mask` into a list for gpu_bindings_create, each under its number. */
void buffers_bind(const struct buffers *buffers, uint32_t mask,
                  const struct gpu_buffer *bound[GPU_BINDINGS]);

/* A buffer of the step that checkpoints hold as a tensor of 4-byte elements. */
struct saved_buffer {
    uint32_t number;
    const char *tensor;
    bool real;        /* f32; else u32 */
    bool weights;     /* --init takes it over */
    bool coarse;      /* of the coarse field, which hierarchical sampling has */
    const char *fine; /* then the tensor of the fine one */
};
#define MAX_SAVED_BUFFERS 16u
/* Lists those in `mask` in the order of a checkpoint, those of a coarse field last where there is
 * one. Returns their number. */
size_t buffers_list_saved(uint32_t mask, bool coarse, struct saved_buffer kept[MAX_SAVED_BUFFERS]);

/* ---- parameters ---------------------------------------------------------------------------- */

/* Parameters that the optimiser treats alike: the next `count` of them behind the group before. */
struct parameter_group {
    uint32_t count;
    uint32_t entry; /* parameters in a row that share one count of steps; divides `count` */
    bool sparse;    /* an entry without a gradient is left alone, its moments too */
    float rate;     /* factor of the learning rate; 0: nothing of the group changes */
    float decay;    /* factor of optimizer.weight_decay; 0: none */
};
/* First entry behind `count` groups' own. Each group begins at a multiple of ENTRY_ALIGN. */
uint32_t groups_entry_count(const struct parameter_group *groups, uint32_t count);

/* ---- cost ---------------------------------------------------------------------------------- */

/* Of one pass in one step; of passes that run once a period, in that period. */
struct cost {
    double flops;  /* a multiply-add is two, any other f32 or f16 operation one; integers none */
    double bytes;  /* as written, whether caches serve them or not; what all share, weights, once */
    double memory; /* bytes that cross the memory's bus when caches are perfect: each touched byte
                      read once and written once */
    double atomics; /* on memory, one for each word */
};

/* What of a run the formulas know. */
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

struct cost_counts { /* of one step, means */
    double rays, marched, live;
    double touched;          /* grid entries that a gradient reached */
    double evaluated;        /* cells at which an occupancy update evaluates the field */
    const struct pass *pass; /* whose cost is asked for; its cells are samples, each of a ray */
};

typedef struct cost cost_function(const struct cost_model *model, const struct cost_counts *counts);

/* The same bytes whether counted as written or as memory traffic. */
static inline struct cost cost_streaming(double flops, double bytes)
{
    return (struct cost){.flops = flops, .bytes = bytes, .memory = bytes};
}

/* ---- passes -------------------------------------------------------------------------------- */

/* Programs of a pass differ by backend; a name is the pass's, then this. */
enum field_variant {
    FIELD_NO_VARIANT, /* one program for all */
    FIELD_FORWARD,    /* as FIELD_VALUES, with tiles of a size of its own */
    FIELD_VALUES,     /* evaluates the field: "_fp32", "_fp16", "_16x16x16", ... */
    FIELD_BACKWARD,   /* the same, with rows that may lie in device memory */
    FIELD_SCATTER,    /* how the grid's gradients are added up */
    FIELD_REDUCE,
    FIELD_F16_PARAMS,        /* "_fp16" where f16 copies of the parameters are kept */
    FIELD_FP32,              /* fp32 on every backend */
    FIELD_F16_ACTIVATIONS,   /* "_fp16" where activations are f16 */
    FIELD_LAYER_PRODUCT,     /* products of layers: "_fp32", "_fp32_tiled", "_16x16x16", ... */
    FIELD_LAYER_PRODUCT_F32, /* the same, always with f32 sums */
};

/* What a pass runs again and again over, from the first to the last or back. */
enum pass_loop {
    LOOP_NONE,
    LOOP_CASCADES, /* from the innermost out */
    LOOP_LAYERS,
    LOOP_DENSITY_LAYERS,   /* those of the first MLP */
    LOOP_LAYERS_BACK,      /* from the last to the first whose inputs have gradients */
    LOOP_DEFORMATION,      /* layers of a deformation, behind the field's */
    LOOP_DEFORMATION_BACK, /* without the first of them */
    LOOP_UNFUSED_LAYERS,   /* all layers that are passes of their own */
};

/* When a pass belongs to a step: where all of these hold. */
enum pass_use {
    PASS_ALWAYS = 0,
    PASS_DETERMINISTIC = 1,
    PASS_NOT_DETERMINISTIC = 2,
    PASS_OCCUPANCY = 4, /* march.sampling */
    PASS_UNIFORM = 8,   /* uniform or, for a coarse field or proposal, those that have one */
    PASS_HIERARCHICAL = 16,
    PASS_ONE_FIELD = 32,  /* neither this nor a proposal */
    PASS_RECOMPUTES = 64, /* mlp.activation_checkpointing */
    PASS_KEEPS_ACTIVATIONS = 128,
    PASS_VISIBILITY = 256, /* march.visibility */
    PASS_NO_VISIBILITY = 512,
    PASS_SINGLE_RANK = 1024, /* one rank takes the step */
    PASS_SYNCHRONOUS = 2048,
    PASS_PACKS_F16 = 4096, /* parallel.communication_type=f16, of sums of floats */
    PASS_AVERAGED = 8192,  /* ranks take periods alone and are averaged */
    PASS_PROPOSAL = 16384,
    PASS_TWO_FIELDS = 32768, /* that or hierarchical */
    PASS_LEARNS = 65536,     /* a proposal's passes: in steps in which it does */
    /* What the field is made of, see field_list_passes. */
    PASS_GRID = 1 << 17, /* its position encoding is a hash grid */
    PASS_NO_GRID = 1 << 18,
    PASS_DEFORMED = 1 << 19, /* a deformation is in front of it */
    PASS_NOT_DEFORMED = 1 << 20,
    PASS_OF_FIELD = PASS_GRID | PASS_NO_GRID | PASS_DEFORMED | PASS_NOT_DEFORMED,
};

#define PASS_ONE_WORKGROUP (-1)
#define PASS_LOCAL_SIZE    64u /* invocations of a workgroup, unless the variant has its own */

/* A program, or the variant of it for the run's backend, in its place of a recording. */
struct pass {
    const char *name;  /* of the program, without what the variant adds */
    const char *label; /* in profiles, of a program that a step has twice; NULL: its name */
    enum field_variant variant;
    unsigned use; /* PASS_DETERMINISTIC | PASS_UNIFORM, ... */
    int dispatch; /* DISPATCH_*, the slot of BIND_DISPATCHES that holds its group counts, so that
                     begin_step decides on the device what runs; PASS_ONE_WORKGROUP: always one */
    int gpu_dispatch;    /* the slot where programs are not shaped for a CPU; 0: the same */
    bool decides;        /* writes BIND_DISPATCHES */
    bool average;        /* reads the moving average of the parameters instead of the masters */
    enum pass_loop loop; /* what push.c counts */
    bool by_chunk;  /* runs for each chunk of rows, push.d, together with its neighbours that do */
    bool by_bucket; /* the same for each piece of the gradients */
    uint32_t rows;  /* push.e: ROWS_*, or of a room's own kinds */
    cost_function *cost;
};

struct pass_list {
    const struct pass *passes; /* in their order */
    size_t count;
};
/* clang-format off */
#define PASS_LIST(list) {list, sizeof(list) / sizeof *(list)}
/* clang-format on */

/* ---- passes that repeat ---------------------------------------------------------------------- */

struct repeats {       /* what passes repeat over */
    uint32_t cascades; /* of all slices of time */
    uint32_t layers, density_layers, first_deformation, deformation_layers;
    uint32_t first_unfused;  /* of LOOP_UNFUSED_LAYERS */
    uint32_t first_back;     /* the last of LOOP_LAYERS_BACK */
    uint32_t buckets;        /* of the gradients, coarse levels of a grid first */
    uint64_t samples, cells; /* as there is room for; as an update goes through, or 0 */
    uint32_t chunk_rows, cells_per_chunk; /* of a chunk */
};
/* How often a pass that loops runs for a chunk of rows, what push.c is then, and how many chunks,
 * or pieces, there are; 1, 0 and 1 for any other. */
uint32_t pass_loop_count(const struct pass *pass, const struct repeats *repeats);
uint32_t pass_loop_index(const struct pass *pass, const struct repeats *repeats, uint32_t round);
uint32_t pass_chunks(const struct pass *pass, const struct repeats *repeats);
/* Whether a pass runs with the one before it for each chunk, or piece. */
bool pass_shares_chunks(const struct pass *before, const struct pass *pass);

/* Passes outside of a step, and in how many workgroups; a barrier comes behind each. */
struct pass_dispatch {
    const struct pass *pass;
    const struct gpu_pipeline *pipeline;
    uint32_t groups;
};
void passes_record(const struct repeats *repeats, struct gpu_recording *recording,
                   const struct pass_dispatch *dispatches, size_t count,
                   const struct gpu_bindings *bindings);

#endif
