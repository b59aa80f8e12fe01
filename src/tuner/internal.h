/* Declarations shared by the files of the tuner module: the cache of trials and the workload. */
#ifndef TUNER_INTERNAL_H
#define TUNER_INTERNAL_H

#include "tuner/tuner.h"

/* ---- cache of trials ----------------------------------------------------------------------- */

/* Results of trials, cached in a file for a device, a driver and the SPIR-V of the shaders. */
struct field_trial_cache;

/* Opens the cache. NULL: no cache folder, out of memory, switched off, or under
 * VKNERF_SELF_TEST_BREAK. A file that is damaged or of another driver counts as empty; so does any
 * file with VKNERF_MEASURE=1. */
struct field_trial_cache *field_trial_cache_open(const struct gpu_device *device);
/* Finds the trial of the backend for the model of `config`; false: not cached. `cache` may be
 * NULL. */
bool field_trial_cache_find(const struct field_trial_cache *cache, const struct vkn_config *config,
                            const struct field_backend *backend, struct field_trial *trial);
/* Adds or replaces the trial of the backend. */
void field_trial_cache_add(struct field_trial_cache *cache, const struct vkn_config *config,
                           const struct field_backend *backend, const struct field_trial *trial);
/* Saves added trials and closes the cache. If saving fails, the next start only measures again. */
void field_trial_cache_close(struct field_trial_cache **cache);

/* ---- the workload ---------------------------------------------------------------------------- */

#define WORKLOAD_RAYS       64u
#define WORKLOAD_LOCAL_SIZE 64u /* workgroup size of shaders that do not choose it themselves */

/* Outputs of a backend. */
struct workload_results {
    float (*values)[4]; /* [sample]: rgb and density */
    float *weights;     /* [weight]: gradients of the MLPs' weights, summed over workgroups */
    float *features;    /* gradients of the grid's features: [level][sample][feature] */
};

/* Inputs and expected outputs, on the host. */
struct field_workload {
    struct gpu_device *device;
    struct vkn_config config;
    struct field_model model;
    uint32_t sample_count;
    uint32_t runs;             /* timed runs of a pass */
    double seconds;            /* lower limit of the time of all runs */
    bool times_reduction;      /* timings of field_backward include reduce_gradients */
    struct field_backend fp32; /* untuned reference */
    struct Ray *rays;
    struct Sample *samples;
    uint32_t *live;                   /* [live sample]: index of the sample */
    float (*gradients)[4];            /* [sample]: gradients of rgb and density */
    float *params;                    /* [parameter]: of the MLPs, then of the hash grid */
    struct workload_results expected; /* outputs of fp32 */
    double milliseconds;              /* time of fp32 */
};

/* Fills in rays, samples, parameters and the output gradients that field_backward starts from. */
vkn_status workload_fill(struct field_workload *work);
/* Returns the number of grid features: levels * samples * features. */
uint64_t workload_features(const struct field_workload *work);
/* Allocates the arrays. The caller calls workload_results_destroy, also after a failure. */
vkn_status workload_results_create(const struct field_workload *work,
                                   struct workload_results *results);
void workload_results_destroy(struct workload_results *results);
/* Returns whether the results of a pass agree with fp32's; else describes the first difference in
 * trial->fault. */
bool workload_check(const struct field_workload *work, const struct field_backend *backend,
                    enum field_trial_pass pass, const struct workload_results *results,
                    struct field_trial *trial);

/* ---- a backend on the device ---------------------------------------------------------------- */

#define WORKLOAD_PASSES 8u /* most passes of a trial */

/* Pipelines and buffers of a backend for the workload. */
struct workload_attempt {
    struct field_workload *work;
    struct field_backend backend;
    uint32_t groups[FIELD_PASSES];
    struct Config constants;
    struct gpu_constants specialization;
    struct buffers buffers;
    struct gpu_bindings *bindings;
    char names[FIELD_PASSES][FIELD_SHADER_NAME];
    struct gpu_pipeline *pipelines[FIELD_PASSES][WORKLOAD_PASSES]; /* as in workload_list */
    struct gpu_pipeline *round_parameters, *reduce;
    uint32_t partials; /* number of partial sums of weight gradients in BIND_PARTIALS */
};

/* Lists the passes that a trial of `pass` runs, in order; *timed: index of the first pass whose
 * time counts. Returns the number of passes. */
size_t workload_list(const struct field_model *model, enum field_trial_pass pass,
                     const struct pass *passes[WORKLOAD_PASSES], size_t *timed);
/* Returns the pass that stands for the trial in messages; NULL: the model has none. */
const struct pass *workload_pass(const struct field_model *model, enum field_trial_pass pass);
/* Writes the shader name of workload_pass, and returns a hash of all timed shaders; 0: there are
 * none, or one is compiled at run time. */
uint64_t workload_hash(const struct gpu_device *device, const struct field_model *model,
                       const struct field_backend *backend, enum field_trial_pass pass,
                       char name[FIELD_SHADER_NAME]);

/* Creates pipelines of the wanted passes and their buffers. *compiled is false if a pipeline could
 * not be created. The caller calls workload_close, also after an error. */
vkn_status workload_open(struct workload_attempt *attempt, struct field_workload *work,
                         const struct field_backend *backend, const bool wanted[FIELD_PASSES],
                         bool *compiled);
void workload_close(struct workload_attempt *attempt);
/* Compiles the pipelines of the forward and backward pass; the device keeps them for their next
 * use. Callable from several threads. */
vkn_status workload_compile(struct field_workload *work, const struct field_backend *backend);
/* Records a trial of the pass. Only the pass itself is timed, not the preparation of its inputs. */
vkn_status workload_record(struct workload_attempt *attempt, enum field_trial_pass pass,
                           struct gpu_recording **recording);
/* Submits the recording once and measures its time. */
vkn_status workload_time(struct gpu_recording *recording, double *milliseconds);
/* Fills the pass's outputs with NaN, runs the pass and downloads the outputs. */
vkn_status workload_compute(struct workload_attempt *attempt, enum field_trial_pass pass,
                            struct workload_results *results, double *milliseconds);

#endif
