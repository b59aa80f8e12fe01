/* tuner: which backend a run takes: the backends that come into question on a device, a small
 * workload that every one of them can run, what is remembered of it, and the tunables of the
 * backend taken. */
#ifndef TUNER_TUNER_H
#define TUNER_TUNER_H

#include "field/field.h"

/* ---- candidates ------------------------------------------------------------------------------ */

enum field_verdict {
    FIELD_NOT_TRIED,
    FIELD_UNSUPPORTED, /* by the device, or switched off */
    FIELD_WRONG,       /* its results are not fp32's */
    FIELD_CORRECT,
};

struct field_candidate {
    enum vkn_precision precision;
    enum vkn_matrix_shape shape; /* COOPMAT */
    bool conversions;            /* COOPMAT */
    enum field_verdict verdict;
    double milliseconds;          /* when RIGHT; 0: not measured */
    char name[FIELD_SHADER_NAME]; /* see field_backend_describe */
    char why[256];                /* it is not tried, not offered or wrong */
    struct field_backend backend; /* unless NOT_OFFERED */
};

#define FIELD_MAX_CANDIDATES 10u

/* With precision AUTO: fp32, fp16, cooperative matrices without and with conversions. With another:
 * it, then what to fall back to: other matrices, fp16, fp32. Returns their number. */
uint32_t field_list_candidates(const struct vkn_config *config,
                               struct field_candidate candidates[FIELD_MAX_CANDIDATES]);
/* Creates the candidate's backend, tuned for the device and its matrices tested, or makes it
 * NOT_OFFERED; then vkn_last_error() says it in the words of field_backend_create. *shapes_removed
 * is set when the test took out matrices. */
vkn_status field_candidate_create(struct gpu_device *device, const struct vkn_config *config,
                                  const struct field_model *model,
                                  struct field_candidate *candidate, bool *shapes_removed);
/* Forgets how the backend was tuned, and makes it what it was before. */
vkn_status field_discard_tuning(struct gpu_device *device, const struct vkn_config *config,
                                const struct field_model *model, struct field_candidate *candidate);
/* The backend that AUTO is expected to find the fastest on a device, before anything is measured:
 * matrices, then fp16, whose arithmetic does two numbers at a time where a device has it, then
 * fp32; on CPU devices fp32. Else as field_backend_create. */
vkn_status field_predict_fastest(const struct vkn_config *config, const struct field_model *model,
                                 const struct gpu_capabilities *device,
                                 struct field_backend *backend);
/* The right one with the shortest time, an earlier one unless it is at least 5% longer; the first
 * must be right. */
uint32_t field_fastest(const struct field_candidate *candidates, uint32_t count);

/* ---- the choice ------------------------------------------------------------------------------ */

struct field_choice {
    struct field_candidate candidates[FIELD_MAX_CANDIDATES];
    uint32_t count, chosen;
    char why[320];
    char why_sums[128]; /* of the grid's gradients */
};

/* Turns precision AUTO into the fastest backend that passes the self-test on this device, from one
 * measurement that is remembered, and that a GPU's compiler cannot draw out (field_compile_limit);
 * without a measurement into fp32 on CPU devices, where that is known to be fastest, and for
 * deterministic runs, which a measurement must not decide about. Another precision is tested once
 * and, when wrong, replaced with a warning: other matrices, then fp16, then fp32. Expects an
 * effective model; sets precision and matrix settings. VKN_BAD_INPUT as field_backend_create for
 * what the device does not offer; VKN_NO_DEVICE when it is lost. */
vkn_status field_choose(struct gpu_device *device, struct vkn_config *config,
                        struct field_choice *choice);
/* Seconds after which the measurement compiles no further backend for a GPU; 0, in tests, for CPU
 * devices too. */
extern double field_compile_limit;
/* Why the chosen backend does an operation the way it does. */
const char *field_choice_why(const struct field_choice *choice, enum field_operation operation);

/* ---- tuning ---------------------------------------------------------------------------------- */

/* "rounds", "hold_sums", ... */
const char *field_tunable_name(enum field_tunable tunable);

#define FIELD_MAX_OPTIONS 12u
/* The values worth trying of one tunable that are legal for the backend, all others being as they
 * are, in increasing order. Returns their number: 0 where the backend has no such thing. */
uint32_t field_tuning_options(enum field_tunable tunable, const struct field_model *model,
                              const struct gpu_capabilities *device,
                              const struct field_backend *backend,
                              uint32_t values[FIELD_MAX_OPTIONS]);

/* Tunes an untuned backend as it is remembered. False, and nothing is changed, when nothing is, the
 * file is damaged or values are illegal; for deterministic runs, whose result no measurement
 * decides; with VKNERF_DISABLE=tuning, VKNERF_MEASURE=1 or while a test breaks something (but
 * VKNERF_SELF_TEST_BREAK=tuning, which breaks what is tuned). */
bool field_apply_tuning(const struct gpu_device *device, const struct vkn_config *config,
                        const struct field_model *model, struct field_backend *backend);
/* What vknerf bench --tune saw: times as fast as untuned. */
struct field_speedups {
    double forward, backward;
};
/* Remembers the backend's tunables, of an untuned one that there is nothing to remember. VKN_ERROR
 * when that is not possible: no folder, no space, programs compiled at run time. */
vkn_status field_tuning_save(const struct gpu_device *device, const struct field_model *model,
                             const struct field_backend *backend,
                             const struct field_speedups *speedups);

#define FIELD_TUNING_TEXT 192u
/* "tuned: rounds 8, backward_rows 64, ..." or "defaults: ...". */
const char *field_tuning_describe(const struct field_backend *backend,
                                  char text[FIELD_TUNING_TEXT]);

/* ---- the workload ---------------------------------------------------------------------------- */

/* What came of running a backend. */
struct field_trial {
    double milliseconds; /* of field_forward and field_backward, the shortest of a few runs */
    char fault[256];     /* the program that is wrong and how; empty: the results are fp32's */
    bool given_up;       /* not tried: compiling took too long */
};

struct field_workload;

/* For an effective model; precision, batch and march do not matter. Weights are such that every
 * unit of the MLPs stays well on its side of the ReLU and sums do not cancel, so that precisions
 * differ by rounding alone and what is wrong stands out. The caller destroys *workload. */
vkn_status field_workload_create(struct gpu_device *device, const struct vkn_config *config,
                                 struct field_workload **workload);
void field_workload_destroy(struct field_workload **workload);
/* The same with so many samples, to tune backends with: see contest.h. */
vkn_status field_workload_create_large(struct gpu_device *device, const struct vkn_config *config,
                                       uint32_t samples, struct field_workload **workload);
/* Runs the backend's field_forward and field_backward and compares with the fp32 backend's,
 * untuned, which runs by itself first. A program that does not compile is a fault of the backend;
 * the status is not VKN_OK when the device is lost, memory runs out or fp32 itself fails. */
vkn_status field_workload_try(struct field_workload *workload, const struct field_backend *backend,
                              struct field_trial *trial);

/* ---- contests -------------------------------------------------------------------------------- */

enum field_find_pass {
    FIELD_PASS_FORWARD,
    FIELD_PASS_BACKWARD,
    FIELD_PASS_GRID, /* encode_samples and scatter_gradients, which run in as many workgroups as
                        field_forward does; not compared with anything */
    FIELD_PASSES,
};

struct field_benchmark;

/* Compiles the pass, runs it and compares with the workload's fp32, untuned. *contender is NULL
 * when it is wrong or does not compile, which trial->fault tells; the status is not VKN_OK when the
 * device is lost or memory runs out. The caller destroys *contender, before the workload. */
vkn_status field_benchmark_create(struct field_workload *work, const struct field_backend *backend,
                                  enum field_find_pass pass, struct field_benchmark **benchmark,
                                  struct field_trial *trial);
void field_benchmark_destroy(struct field_benchmark **benchmark);
/* Runs both by turns, for so many seconds but `least` times each; medians. reduce_gradients counts
 * with field_backward: the more workgroups, the more it has to add up. */
vkn_status field_benchmark_compare(struct field_benchmark *const pair[2], double seconds,
                                   uint32_t least, double milliseconds[2]);

#endif
