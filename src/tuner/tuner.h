/* tuner: chooses the backend of a run by testing and timing the candidates on a small workload,
 * caches the results, and finds and applies the values of a backend's tunables. */
#ifndef TUNER_TUNER_H
#define TUNER_TUNER_H

#include "field/field.h"

/* ---- candidates ------------------------------------------------------------------------------ */

/* Result of a candidate. */
enum field_verdict {
    FIELD_NOT_TRIED,
    FIELD_UNSUPPORTED, /* not supported by the device, or switched off */
    FIELD_WRONG,       /* the results differ from fp32's */
    FIELD_CORRECT,
};

/* A backend that a run may take. */
struct field_candidate {
    enum vkn_precision precision;
    enum vkn_matrix_shape shape; /* COOPMAT */
    bool conversions;            /* COOPMAT */
    bool timed;                  /* the fastest timed one is chosen; else the first correct one */
    enum field_verdict verdict;
    double milliseconds;          /* if FIELD_CORRECT; 0: not timed */
    char name[FIELD_SHADER_NAME]; /* from field_backend_describe */
    char why[256];                /* reason, unless FIELD_CORRECT */
    struct field_backend backend; /* unless FIELD_UNSUPPORTED */
};

#define FIELD_MAX_CANDIDATES 10u

/* Lists the candidates for config->precision. AUTO: fp32, fp16, cooperative matrices without and
 * with conversions and, unless the configuration has a shape or conversions, of 16x8x16. COOPMAT:
 * the same matrices, then their replacements: other matrix shapes, fp16, fp32. Another precision:
 * that one, then its replacements. Returns their number. */
uint32_t field_list_candidates(const struct vkn_config *config,
                               struct field_candidate candidates[FIELD_MAX_CANDIDATES]);
/* Creates the candidate's backend with its cached tuning and tests its matrices. If the device does
 * not support the backend, sets FIELD_UNSUPPORTED, and vkn_last_error() has the message of
 * field_backend_create. *shapes_removed is set if the test removed matrix shapes. */
vkn_status field_candidate_create(struct gpu_device *device, const struct vkn_config *config,
                                  const struct field_model *model,
                                  struct field_candidate *candidate, bool *shapes_removed);
/* Removes the backend's tuning from the cache and recreates the backend untuned. */
vkn_status field_discard_tuning(struct gpu_device *device, const struct vkn_config *config,
                                const struct field_model *model, struct field_candidate *candidate);
/* Creates the backend that AUTO is expected to choose, without measuring: on GPUs the first
 * supported of cooperative matrices, fp16 (which some devices compute in pairs) and fp32; on CPU
 * devices fp32. Errors as field_backend_create. */
vkn_status field_predict_fastest(const struct vkn_config *config, const struct field_model *model,
                                 const struct gpu_capabilities *device,
                                 struct field_backend *backend);
/* Returns the index of the fastest candidate that is FIELD_CORRECT; the last one if none is. A
 * later candidate replaces an earlier one only if it takes less than 95% of the earlier one's time.
 */
uint32_t field_fastest(const struct field_candidate *candidates, uint32_t count);

/* ---- the choice ------------------------------------------------------------------------------ */

/* Candidates, the index of the chosen one, and the reasons for the choice. */
struct field_choice {
    struct field_candidate candidates[FIELD_MAX_CANDIDATES];
    uint32_t count, chosen;
    char why[320];
    char why_sums[128]; /* why the grid's gradients are accumulated the way they are */
};

/* Chooses the backend for an effective configuration, and sets its precision and matrix settings.
 * AUTO and, if the configuration has no shape and no conversions, COOPMAT: times the candidates
 * once, caches the results, and takes the fastest that passes the self-test; takes the first
 * without timing on CPU devices, where fp32 is the fastest, and for deterministic runs, whose
 * result must not depend on a measurement. Another precision: tests it once; if it fails, warns and
 * takes other matrix shapes, then fp16, then fp32. VKN_BAD_INPUT: the device does not support the
 * requested precision (as field_backend_create). VKN_NO_DEVICE: the device was lost. */
vkn_status field_choose(struct gpu_device *device, struct vkn_config *config,
                        struct field_choice *choice);
/* Seconds after which the measurement starts compiling no further backend for a GPU. 0 (in tests):
 * applies to CPU devices, too. */
extern double field_compile_limit;
/* Returns why the chosen backend computes an operation the way it does. */
const char *field_choice_why(const struct field_choice *choice, enum field_operation operation);

/* ---- tuning ---------------------------------------------------------------------------------- */

/* Returns the tunable's name in files and messages: "rounds", "hold_sums", ... */
const char *field_tunable_name(enum field_tunable tunable);

#define FIELD_MAX_OPTIONS 12u
/* Lists the values to try for one tunable that are legal for the backend with its other tunables,
 * in increasing order. Returns their number; 0: the backend does not have the tunable. */
uint32_t field_tuning_options(enum field_tunable tunable, const struct field_model *model,
                              const struct gpu_capabilities *device,
                              const struct field_backend *backend,
                              uint32_t values[FIELD_MAX_OPTIONS]);

/* Applies the cached tuning to an untuned backend. Returns false and changes nothing if there is
 * none, the file is damaged or a value is illegal; for deterministic runs, whose result must not
 * depend on a measurement; with VKNERF_DISABLE=tuning or VKNERF_MEASURE=1; and under
 * VKNERF_SELF_TEST_BREAK, except for =tuning, which breaks tuned backends. */
bool field_apply_tuning(const struct gpu_device *device, const struct vkn_config *config,
                        const struct field_model *model, struct field_backend *backend);
/* Time of the untuned backend over that of the tuned one, as measured by vknerf bench --tune. */
struct field_speedups {
    double forward, backward;
};
/* Caches the backend's tunables; if it is untuned, removes them from the cache. VKN_ERROR: no cache
 * folder, no space, or shaders compiled at run time. */
vkn_status field_tuning_save(const struct gpu_device *device, const struct field_model *model,
                             const struct field_backend *backend,
                             const struct field_speedups *speedups);

#define FIELD_TUNING_TEXT 192u
/* Writes "tuned: rounds 8, backward_rows 64, ..." or "defaults: ..." and returns `text`. */
const char *field_tuning_describe(const struct field_backend *backend,
                                  char text[FIELD_TUNING_TEXT]);

/* ---- the workload ---------------------------------------------------------------------------- */

/* Result of testing and timing a backend. */
struct field_trial {
    double milliseconds; /* shortest time of field_forward plus shortest of field_backward */
    char fault[256];     /* the shader that is wrong and how; empty: results agree with fp32's */
    bool given_up;       /* not tested: compilation of the candidates took too long */
};

struct field_workload;

/* Creates a workload for the model of an effective configuration, whatever its precision, batch and
 * march settings. The weights keep every hidden unit away from the kink of its ReLU and let no sum
 * cancel, so that precisions differ only by rounding and errors stand out. */
vkn_status field_workload_create(struct gpu_device *device, const struct vkn_config *config,
                                 struct field_workload **workload);
/* Destroys the workload and sets it to NULL. */
void field_workload_destroy(struct field_workload **workload);
/* As field_workload_create, with `samples` samples, for tuning. */
vkn_status field_workload_create_large(struct gpu_device *device, const struct vkn_config *config,
                                       uint32_t samples, struct field_workload **workload);
/* Runs field_forward and field_backward of the backend and compares the results with those of the
 * untuned fp32 backend. A shader that does not compile is a fault of the backend. Errors: the
 * device was lost, memory is short, or fp32 itself fails. */
vkn_status field_workload_try(struct field_workload *workload, const struct field_backend *backend,
                              struct field_trial *trial);

/* ---- comparing times of backends ------------------------------------------------------------- */

/* Passes that are timed separately. */
enum field_trial_pass {
    FIELD_PASS_FORWARD,
    FIELD_PASS_BACKWARD,
    FIELD_PASS_GRID, /* encode_samples and scatter_gradients, whose number of workgroups is
                        field_forward's; timed, but not checked */
    FIELD_PASSES,
};

struct field_benchmark;

/* Compiles a pass of the backend for the workload, runs it and compares the results with those of
 * the untuned fp32 backend. *benchmark is NULL and trial->fault set if the pass does not compile or
 * is wrong. Errors: the device was lost or memory is short. The caller destroys *benchmark, before
 * the workload. */
vkn_status field_benchmark_create(struct field_workload *work, const struct field_backend *backend,
                                  enum field_trial_pass pass, struct field_benchmark **benchmark,
                                  struct field_trial *trial);
void field_benchmark_destroy(struct field_benchmark **benchmark);
/* Times two backends alternately, at least `least` times each and for `seconds` in all; returns the
 * medians. FIELD_PASS_BACKWARD includes reduce_gradients, which takes longer the more workgroups
 * there are. */
vkn_status field_benchmark_compare(struct field_benchmark *const pair[2], double seconds,
                                   uint32_t least, double milliseconds[2]);

#endif
