/* A path: how the field computes on a device, and which programs do it. */
#ifndef FIELD_PATH_H
#define FIELD_PATH_H

#include "field/field.h"

/* Programs of a pass differ by path; a name is the pass's, then this. */
enum field_variant {
    FIELD_SAME,     /* one program for all */
    FIELD_FORWARD,  /* as FIELD_VALUES, with tiles of a size of its own */
    FIELD_VALUES,   /* evaluates the field: "_fp32", "_fp16", "_16x16x16", ... */
    FIELD_BACKWARD, /* the same, with rows that may lie in device memory */
    FIELD_SCATTER,  /* how the grid's gradients are added up */
    FIELD_REDUCE,
    FIELD_COPIES, /* "_half" where 16-bit copies of the parameters are kept */
    FIELD_DEPTH,  /* fp32 on every path; "_deep" where the MLPs have more than SHORT_LAYERS */
};
#define FIELD_PROGRAM_NAME 64u

/* What of a path may be chosen by measuring. None changes what is computed, but for the order in
 * which weight gradients are added up. */
enum field_tunable {
    FIELD_ROUNDS,
    FIELD_HOLD_SUMS,
    FIELD_OWNED_ROWS,
    FIELD_BACKWARD_ROWS,
    FIELD_BACKWARD_GROUPS,
    FIELD_FORWARD_ROWS,
    FIELD_FORWARD_GROUPS,
    FIELD_TUNABLES,
};
struct field_tuning {
    uint32_t values[FIELD_TUNABLES]; /* 0 where the path has no such thing */
};

struct field_path {
    enum vkn_precision precision;       /* never AUTO */
    enum vkn_gradient_sums sums;        /* never DEFAULT */
    const char *sums_program;           /* suffix of scatter_gradients */
    uint32_t sums_size;                 /* its workgroups' size; 0: that of the other passes */
    struct gpu_matrix_shape shape;      /* COOPMAT */
    bool half;                          /* 16-bit parameters and activations */
    bool half_accumulate;               /* COOPMAT: f16 instead of f32 */
    bool conversions;                   /* COOPMAT: through VK_NV_cooperative_matrix2 */
    bool hold_sums;                     /* COOPMAT: see SPEC_HOLD_SUMS */
    bool roll_loops;                    /* COOPMAT: see SPEC_ROLL_LOOPS */
    bool rows_in_memory;                /* COOPMAT: backward's rows do not fit into shared memory */
    uint32_t owned_rows;                /* COOPMAT: see SPEC_OWNED_ROWS */
    uint32_t forward_row, backward_row; /* COOPMAT: f16 from a row to the next, SPEC_ROW */
    uint32_t rounds;                    /* FP32, FP16: see SPEC_ROUNDS */
    bool deep;              /* the MLPs have more than SHORT_LAYERS layers */
    uint32_t forward_rows;  /* samples of a tile of field_forward: its workgroup's size */
    uint32_t backward_rows; /* the same of field_backward */
    uint32_t forward_groups, backward_groups; /* most workgroups; workgroups */
    uint64_t scratch_bytes; /* of BIND_SCRATCH for one workgroup of field_backward */
    bool tuned;             /* not as field_path_create left it */
};

/* Chooses everything but the precision, which must not be AUTO. VKN_BAD_INPUT names the setting
 * that the device cannot do, and what it can. */
vkn_status field_path_create(const struct vkn_config *config, const struct field_model *model,
                             const struct gpu_capabilities *device, struct field_path *path);
struct field_tuning field_path_tuning(const struct field_path *path);
/* Sets all tunables. False, and the path stays as it is, when the device cannot do it: tiles have
 * to fit into workgroups, subgroups and shared memory, workgroups' memory into a buffer. */
bool field_path_tune(const struct field_tuning *tuning, const struct vkn_config *config,
                     const struct field_model *model, const struct gpu_capabilities *device,
                     struct field_path *path);
/* The program of `pass`. */
void field_path_program(const struct field_path *path, const char *pass, enum field_variant variant,
                        char name[FIELD_PROGRAM_NAME]);
/* Fills its part of the run's constants. */
void field_path_configure(const struct field_path *path, struct gpu_constants *specialization);
/* Creates the program of `pass`: of `local_size` invocations, but of a tile's for FIELD_FORWARD and
 * FIELD_BACKWARD. The caller destroys *program. */
vkn_status field_path_create_program(struct gpu_device *device, const struct field_path *path,
                                     const char *pass, enum field_variant variant,
                                     uint32_t local_size, const struct gpu_constants *constants,
                                     struct gpu_program **program);
/* Programs of several passes at once, as gpu_programs_create does it. */
struct field_pass_request {
    const char *pass;
    struct gpu_program **program;
    enum field_variant variant;
};
vkn_status field_path_create_programs(struct gpu_device *device, const struct field_path *path,
                                      const struct field_pass_request *requests, size_t count,
                                      uint32_t local_size, const struct gpu_constants *constants);
/* The constants of one program: rows of forward and backward differ. */
void field_path_specialize(const struct field_path *path, enum field_variant variant,
                           struct gpu_constants *specialization);
/* As the configuration names the matrices' shape; DEFAULT without matrices. */
enum vkn_matrix_shape field_path_shape(const struct field_path *path);
/* "fp32", "fp16" or "coopmat 16x16x16 (f32 accumulation)", and whether with conversions. */
const char *field_path_describe(const struct field_path *path, char text[FIELD_PROGRAM_NAME]);

#endif
