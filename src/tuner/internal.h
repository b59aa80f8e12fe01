/* What the files of the room share: records of trials, and the inside of the workload. */
#ifndef TUNER_INTERNAL_H
#define TUNER_INTERNAL_H

#include "tuner/tuner.h"

/* ---- records ------------------------------------------------------------------------------- */

/* Trials of backends, remembered for a device, a driver and the programs' code in the user's cache
 * folder. */
struct field_trial_cache;

/* NULL when nothing is kept: no folder, no memory, switched off, or a test breaks something. A file
 * that is damaged or of another driver counts as empty, and so does any with VKNERF_MEASURE=1. */
struct field_trial_cache *field_trial_cache_open(const struct gpu_device *device);
/* What was found out about the backend for such a model. `records` may be NULL. */
bool field_trial_cache_find(const struct field_trial_cache *records,
                            const struct vkn_config *config, const struct field_backend *backend,
                            struct field_trial *trial);
void field_trial_cache_add(struct field_trial_cache *records, const struct vkn_config *config,
                           const struct field_backend *backend, const struct field_trial *trial);
/* Saves what was added; failing to costs the next start its time and nothing else. */
void field_trial_cache_close(struct field_trial_cache **records);

/* ---- the workload ---------------------------------------------------------------------------- */

#define WORKLOAD_RAYS       64u
#define WORKLOAD_LOCAL_SIZE 64u /* of the other programs */

/* What a backend computes. */
struct workload_results {
    float (*values)[4]; /* rgb and density of a sample */
    float *weights;     /* gradients of the MLPs' weights, summed */
    float *features;    /* gradients of the grid's: [level][sample][feature] */
};

struct field_workload {
    struct gpu_device *device;
    struct vkn_config config;
    struct field_model model;
    uint32_t sample_count;
    uint32_t runs;             /* of a program, to time it */
    double seconds;            /* at least */
    bool reduce;               /* the time of field_backward includes that of reduce_gradients */
    struct field_backend fp32; /* untuned */
    struct Ray *rays;
    struct Sample *samples;
    uint32_t *live;
    float (*gradients)[4]; /* of rgb and density */
    float *params;
    struct workload_results expected; /* fp32's */
    double milliseconds;              /* fp32's */
};

/* Rays, samples, parameters and the gradients that field_backward begins with. */
vkn_status workload_fill(struct field_workload *work);
/* Gradients of the grid's features. */
uint64_t workload_features(const struct field_workload *work);
vkn_status workload_results_create(const struct field_workload *work,
                                   struct workload_results *results);
void workload_results_destroy(struct workload_results *results);
/* Whether the results of a pass are fp32's; else says how not. */
bool workload_check(const struct field_workload *work, const struct field_backend *backend,
                    enum field_find_pass pass, const struct workload_results *results,
                    struct field_trial *trial);

/* ---- a backend on the device ---------------------------------------------------------------- */

#define WORKLOAD_PASSES 8u /* most of a recipe */

struct workload_attempt {
    struct field_workload *work;
    struct field_backend backend;
    uint32_t groups[FIELD_PASSES];
    struct Config constants;
    struct gpu_constants specialization;
    struct buffers buffers;
    struct gpu_bindings *bindings;
    char names[FIELD_PASSES][FIELD_SHADER_NAME];
    struct gpu_pipeline *pipelines[FIELD_PASSES][WORKLOAD_PASSES]; /* of workload_list */
    struct gpu_pipeline *round_parameters, *reduce;
    uint32_t partials; /* sums of weights' gradients in BIND_PARTIALS */
};

/* The passes that a trial of `pass` runs, in their order; *timed is the first of those that count.
 * Returns how many. */
size_t workload_list(const struct field_model *model, enum field_find_pass pass,
                     const struct pass *passes[WORKLOAD_PASSES], size_t *timed);
/* The one of them that is named in messages. */
const struct pass *workload_pass(const struct field_model *model, enum field_find_pass pass);
/* The name and the hash of its program, with those of its neighbours that depend on the backend; 0:
 * there is none. */
uint64_t workload_hash(const struct gpu_device *device, const struct field_model *model,
                       const struct field_backend *backend, enum field_find_pass pass,
                       char name[FIELD_SHADER_NAME]);

/* Programs of the passes wanted and what they work on. *compiled: a failure is not that of the
 * programs. The caller closes it, whatever comes back. */
vkn_status workload_open(struct workload_attempt *attempt, struct field_workload *work,
                         const struct field_backend *backend, const bool wanted[FIELD_PASSES],
                         bool *compiled);
void workload_close(struct workload_attempt *attempt);
/* Compiles the programs of both passes, which stay with the device for who asks next; from several
 * threads. */
vkn_status workload_compile(struct field_workload *work, const struct field_backend *backend);
/* A run of the pass on features fresh from the grid; only the pass is timed. */
vkn_status workload_record(struct workload_attempt *attempt, enum field_find_pass pass,
                           struct gpu_recording **recording);
/* Runs it once. */
vkn_status workload_time(struct gpu_recording *recording, double *milliseconds);
/* Runs the pass, its outputs poisoned before, and leaves what it computed. */
vkn_status workload_compute(struct workload_attempt *attempt, enum field_find_pass pass,
                            struct workload_results *results, double *milliseconds);

#endif
